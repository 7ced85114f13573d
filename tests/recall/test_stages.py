"""The stages of a recall: their order, what takes their place, and what a plan keeps."""

from dataclasses import replace

import numpy as np
import pytest

import memlab
from memlab import Extension
from memlab.errors import InputError
from memlab.kernel.extension import forget_extension
from memlab.kernel.recall import Stage
from memlab.kernel.recall._moment import SHARED
from memlab.kernel.recall._plan import Plans, compile_plan
from memlab.kernel.recall._stages import STAGES, own_stage
from memlab.kernel.slates import encode

NAMES = ("find", "admit", "seed", "spread", "cut", "score", "known", "select", "explore", "log")


@pytest.fixture(autouse=True)
def _only_shipped():
    yield
    forget_extension("halves")
    forget_extension("others")


def a_lab():
    lab = memlab.open()
    lab.remember([f"The harbour master wrote {number} letters" for number in range(20)])
    return lab


def halved(run):
    own_stage("score").run(run)
    run.scores = run.scores / 2


def stage(name="score", run=halved, gives=("scores",)):
    return Stage(name, "Half of what the pack gives.", ("pool",), gives, run)


def test_each_stage_reads_what_those_before_it_give():
    assert tuple(STAGES) == NAMES
    given = {"question"}
    for each in STAGES.values():
        assert set(each.reads) <= given
        given |= set(each.gives)


def test_an_extension_replaces_a_stage_until_it_is_forgotten_and_slates_say_so():
    with a_lab() as lab:
        before = lab.recall("harbour", log=False)
        memlab.extend(Extension("halves", "1.0", stages=(stage(),)))
        during = lab.recall("harbour", log=False)
        forget_extension("halves")
        after = lab.recall("harbour", log=False)
    assert [hit.score for hit in during] == [hit.score / 2 for hit in before]
    assert [hit.score for hit in after] == [hit.score for hit in before]
    assert during.slate.fingerprints["stage score"] == "halves 1.0"
    assert after.slate.fingerprints == before.slate.fingerprints


def test_an_invalid_replacement_of_a_stage_is_refused():
    for given, said in (
        (stage("sort"), "There is no stage sort"),
        (stage(gives=()), "this one lacks scores"),
        (replace(stage(), run=None), "has no function"),
    ):
        with pytest.raises(InputError, match=said):
            memlab.extend(Extension("halves", "1.0", stages=(given,)))
    memlab.extend(Extension("halves", "1.0", stages=(stage(),)))
    with pytest.raises(InputError, match=r"replaced by the extension halves 1\.0 already"):
        memlab.extend(Extension("others", "1.0", stages=(stage(),)))
    with pytest.raises(InputError, match="There is no stage sort"):
        own_stage("sort")


def test_a_stage_that_reads_what_is_not_there_yet_is_named():
    pack = memlab.load_pack("memlab")
    memlab.extend(
        Extension(
            "halves", "1.0", stages=(replace(stage("find", gives=("found",)), reads=("pool",)),)
        )
    )
    with pytest.raises(InputError, match="The stage find reads pool, which no earlier stage sets"):
        compile_plan(pack, "embedder")


def test_a_plan_is_kept_by_hash_name_and_what_known_was_calibrated_for():
    plans, pack = Plans(), memlab.load_pack("memlab")
    assert plans.get(pack, "embedder") is plans.get(replace(pack), "embedder")
    assert plans.get(replace(pack, name="other"), "embedder") is not plans.get(pack, "embedder")
    assert plans.get(pack, "other") is not plans.get(pack, "embedder")
    assert not plans.get(replace(pack, known_for=""), "embedder").show.tells_known
    assert plans.get(pack, "embedder").show.tells_known


@pytest.mark.long
@pytest.mark.parametrize("pack", sorted(memlab.packs()))
def test_the_bytes_of_a_slate_do_not_depend_on_what_was_encoded_before(pack):
    with memlab.open(pack=pack) as lab:
        lab.remember([f"The harbour master wrote {number} letters" for number in range(20)])
        slate, core = lab.recall("who wrote letters?").slate, lab._core
        assert core.recaller.encode(core.pack, slate) == encode(slate)


def test_numbers_of_a_slate_are_rows_of_one_table():
    with a_lab() as lab:
        numbers = lab.recall("harbour", log=False).slate.numbers
    table = next(iter(numbers.values())).base
    assert np.array_equal(np.array(list(numbers.values())), table, equal_nan=True)


def test_values_shared_by_candidates_are_set_for_each():
    runs = []

    def record_run(run):
        runs.append(run)
        own_stage("score").run(run)

    with a_lab() as lab:
        memlab.extend(Extension("halves", "1.0", stages=(stage(run=record_run),)))
        lab.recall("harbour", log=False)
        lab.recall("the harbour on 7 May 2023", session="s", log=False)
    assert runs[0].query.uniform.keys() == SHARED
    assert SHARED - runs[1].query.uniform.keys() == {"names-date", "date-gap", "same-session"}
