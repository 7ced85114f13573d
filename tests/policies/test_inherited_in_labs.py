"""``(inherited)`` in a lab: which policy it stands for, and that a stored version does not change afterwards."""

import json

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, NewerLab, PolicyError
from memlab.kernel.journal import Event
from memlab.kernel.policies import (
    POLICY_FORMAT,
    SLOTS,
    VOCABULARY,
    VersionLog,
    _packs,
    load_pack,
    pack_names,
)
from memlab.kernel.policies._packs import pack_source
from memlab.ui.widgets import PolicyStudio
from tests.displays import html_of

LINE = "(fn [recency] (+ (inherited) (* 0.1 recency)))"
FILE = '(pack mine "Recent." :inherits {}) (defpolicy recall-score [recency] "More recent." {})'
BODY = "(+ (inherited) (* 0.1 recency))"
SCORE = "recall-score"


@pytest.fixture
def shelve(monkeypatch):
    """Return a function that puts packs next to those that come with memlab, or in their place."""

    def put(**texts):
        _packs._pack_from_sources.cache_clear()
        monkeypatch.setattr(_packs, "pack_source", lambda n: texts.get(n) or pack_source(n))

    yield put
    _packs._pack_from_sources.cache_clear()


@pytest.fixture
def asked(lab, clock):
    lab.remember(["Ana prefers tabs", "Ben prefers spaces", "Deploys go out on Friday"])
    clock.advance(days=3)
    lab.remember(["Ana moved to Oslo", "Ben has a dog"])
    lab.recall("what does Ana prefer?")
    return lab


def scores(lab, **more):
    return {hit.id: hit.score for hit in lab.recall("what does Ana prefer?", log=False, **more)}


@pytest.mark.long
def test_one_line_adds_to_the_default(asked):
    before = scores(asked)
    recent = asked.recall("what does Ana prefer?", log=False)
    recency = dict(zip(recent.slate.ids.tolist(), recent.slate.frame["recency"], strict=True))
    asked.policies.install(SCORE, LINE)
    for id, score in scores(asked).items():
        assert score == pytest.approx(before[id] + 0.1 * recency[id], abs=1e-6)


@pytest.mark.long
def test_installing_twice_changes_nothing(asked):
    first = asked.policies.install(SCORE, LINE)
    assert asked.policies.install(SCORE, LINE).hash == first.hash
    assert first.policy.inherited == load_pack("memlab").policies[SCORE]
    assert asked.policies.check(SCORE, LINE).hash == first.hash
    assert asked.policies.install(SCORE, first.policy).hash == first.hash


@pytest.mark.long
def test_the_parent_is_the_pack_in_use_as_its_file_has_it(asked):
    asked.policies.install(SCORE, "(fn [similarity] similarity)")
    asked.policies.pin("forget")
    assert asked.policies.check(SCORE, LINE).inherited == load_pack("memlab").policies[SCORE]
    asked.policies.use("companion", compare=0)
    assert asked.policies.check(SCORE, LINE).inherited == load_pack("companion").policies[SCORE]


@pytest.mark.long
@pytest.mark.parametrize("pack", pack_names())
def test_every_policy_of_every_pack_is_inherited_unchanged(pack, lab):
    lab.policies.use(pack, compare=0)
    for slot, policy in load_pack(pack).policies.items():
        if policy.root.op == "interpreted" or SLOTS[slot].owner:
            continue
        names = " ".join(n for n in policy.arguments if n in SLOTS[slot].signature.lists)
        child = lab.policies.check(slot, f"(fn [{names}] (inherited))")
        assert child.meaning_hash == policy.meaning_hash
        assert child.inputs == policy.inputs
        assert dict(child.params) == dict(policy.params)


def test_a_file_inherits_from_the_pack_that_it_names():
    for parent in ("memlab", "companion", "actr"):
        policy = load_pack(FILE.format(parent, BODY)).policies[SCORE]
        assert policy.inherited == load_pack(parent).policies[SCORE]
        assert policy.inherited.name == f"{parent}/{SCORE}"
    assert load_pack(FILE.format("memlab", "(boost (inherited) recency 0.1)")).policies[SCORE].hash


def test_a_file_that_inherits_nothing_is_refused():
    for name in ("mine", "memlab"):
        text = f'(pack {name} "Alone.") (defpolicy recall-score [] "{name}" (* 2 (inherited)))'
        with pytest.raises(PolicyError, match="this text has no parent") as caught:
            load_pack(text)
        assert (caught.value.line, caught.value.column) == (1, text.index("(inherited)") + 1)
    with pytest.raises(InputError, match="in a circle"):
        load_pack(FILE.format("mine", BODY))


def test_two_parents_at_once_are_refused(shelve):
    half = '(defpolicy recall-score [] "Half." (* 0.5 (inherited)))'
    shelve(half=f'(pack half "Half." :inherits memlab) {half}')
    alias = "(from-pack half recall-score :as half-score)"
    head = f'(pack mine "Mine." :inherits companion) {alias} (defpolicy recall-score [half-score]'
    with pytest.raises(PolicyError, match="inherit from two packs"):
        load_pack(f'{head} "Both." (+ half-score (inherited)))')
    policy = load_pack(f'{head} "One." (+ half-score 1))').policies[SCORE]
    assert policy.inherited == load_pack("memlab").policies[SCORE]


@pytest.mark.long
def test_a_later_change_of_the_parent_changes_nothing(disk, shelve):
    with disk() as lab:
        lab.remember("Ana prefers tabs")
        one = lab.policies.install(SCORE, LINE).hash
        lab.policies.use(FILE.format("companion", BODY), compare=0)
        two = lab.policies[SCORE].hash
    other = FILE.format("memlab", "recency").replace("(pack mine", "(pack companion")
    shelve(companion=other)
    with disk() as lab:
        assert [
            v.hash for v in (lab.policies.rollback(SCORE, to=2), lab.policies.rollback(SCORE, to=3))
        ] == [one, two]
        assert lab.policies[SCORE].hash == two
        # Only a version that is installed from now on sees the new parent.
        assert load_pack(FILE.format("companion", BODY)).policies[SCORE].hash != two


@pytest.mark.long
def test_a_stored_version_has_both_texts(disk):
    with disk() as lab:
        lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
        version = lab.policies.install(SCORE, LINE)
        expected = scores(lab)
    with disk() as lab:
        again = lab.policies[SCORE]
        assert again.hash == version.hash
        assert again.source == LINE
        assert scores(lab) == expected
        assert "(inherit memlab" in "".join(again.helpers)
        assert "recall-score, inherited" in str(lab.policies.diff(SCORE))
        assert "memlab/recall-score" in html_of(version)


@pytest.mark.long
def test_a_refused_text_changes_nothing(asked):
    head = asked.io.store.state.seq
    for text in ("(fn [recency] (+ (inherited) recenc))", "(fn [] (inherited 1))"):
        with pytest.raises(PolicyError):
            asked.policies.install(SCORE, text)
    assert asked.io.store.state.seq == head
    assert asked.policies[SCORE] == load_pack("memlab").policies[SCORE]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["jsonl", "parquet", "hy"])
def test_an_export_keeps_the_policy(kind, asked, tmp_path, trigrams, clock):
    version = asked.policies.install(SCORE, LINE)
    path = asked.io.export(tmp_path / f"lab.{kind}")
    path = getattr(path, "path", path)
    with memlab.load(path, embedder=trigrams, clock=clock) as other:
        assert other.policies[SCORE].hash == version.hash
        assert other.policies.pack.hash == asked.policies.pack.hash


@pytest.mark.long
def test_a_replay_runs_the_same_policy(asked):
    asked.policies.install(SCORE, LINE)
    again = memlab.replay(asked, asked.policies.pack, every_days=0)
    assert again.lab.policies[SCORE].hash == asked.policies[SCORE].hash


@pytest.mark.long
def test_a_challenger_inherits_from_the_parent_of_its_pack(asked):
    asked.policies.install(SCORE, "(fn [similarity] similarity)")
    challenge = asked.challenge(FILE.format("companion", BODY))
    assert challenge.pack.policies[SCORE].inherited == load_pack("companion").policies[SCORE]
    assert asked.recall("what does Ana prefer?")


@pytest.mark.long
def test_an_evaluation_inherits_from_the_lab(asked):
    # A query that is asked again is no new evidence, so each recall asks another one.
    for query in ("what does Ana prefer?", "what does Ben prefer?", "when do deploys go out?"):
        asked.feedback(asked.recall(query, explore=True)[0], "success")
    asked.policies.install(SCORE, "(fn [similarity] similarity)")
    both = memlab.evaluate(
        asked, {"line": LINE, "file": FILE.format("memlab", BODY)}, missing="zero"
    )
    line, file = (next(row for row in both.rows if row.policy == n) for n in ("line", "file"))
    assert line.value.value == file.value.value
    tuned = "(fn [recency] (+ (inherited) (* (param :w 0.1 :low 0 :high 1) recency)))"
    tuning = memlab.tune(
        asked.slates(),
        tuned,
        missing="zero",
        metric="order",
        budget=20,
        folds=2,
        cluster="decision",
    )
    assert list(tuning.params) == ["w"]
    loose = memlab.Slates.from_wide(
        pl.read_parquet(memlab.examples.LOG),
        decision="query_id",
        item="memory_id",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=3,
        scores=["old_score"],
    )
    with pytest.raises(PolicyError, match="this text has no parent"):
        memlab.evaluate(loose, "(fn [] (inherited))", missing="zero")


@pytest.mark.long
def test_an_older_memlab_names_the_vocabulary(monkeypatch, asked):
    asked.policies.install(SCORE, LINE)
    helpers = asked.policies[SCORE].helpers
    body = {"slot": SCORE, "source": "line", "helpers": list(helpers), VOCABULARY: POLICY_FORMAT}
    # An older reader knows neither the form nor the number.
    monkeypatch.setattr("memlab.kernel.language.texts.DEFINING", ("defn",))
    monkeypatch.setattr("memlab.kernel.policies._versions.POLICY_FORMAT", POLICY_FORMAT - 1)
    from memlab.kernel.language import policy, texts

    for cache in (texts.definitions_of, texts.parse, policy._compile):
        cache.cache_clear()
    versions = VersionLog()
    shelf = {"default": pack_source("memlab"), "line": LINE}
    versions.fold(Event(1, 0, "use", {"sources": ["default"]}), shelf.__getitem__)
    with pytest.raises(NewerLab, match=f"vocabulary of policies {POLICY_FORMAT}"):
        versions.fold(Event(2, 0, "install", body), shelf.__getitem__)


@pytest.mark.long
def test_the_studio_shows_the_line_and_offers_the_new_parent(asked):
    asked.policies.install(SCORE, LINE)
    studio = PolicyStudio(asked, questions=["what does Ana prefer?"])
    assert studio.source == LINE
    assert studio.policy == asked.policies[SCORE]
    # With another pack in use, the text says what the version inherits, so it means the same as before.
    asked.policies.pin(SCORE)
    asked.policies.use("companion", compare=0)
    studio = PolicyStudio(asked, questions=["what does Ana prefer?"])
    assert studio.source.startswith("(inherit memlab")
    assert studio.policy == asked.policies[SCORE]


@pytest.mark.long
def test_files_and_operations_may_use_it(asked, tmp_path, run):
    path = tmp_path / "line.hy"
    path.write_text(LINE.replace("(fn", "(defpolicy recall-score"))
    watch = asked.policies.watch(path, SCORE, on_change=lambda change: None)
    watch.stop()
    assert asked.policies[SCORE].inherited == load_pack("memlab").policies[SCORE]
    report = json.loads(run("policy", "hash", str(path), "--json").stdout)
    assert report["slots"][SCORE]["hash"] == asked.policies[SCORE].hash
    code = LINE.replace('"', '\\"')
    program = asked.upkeep.operations.run(f'(set-policy-fn "recall-score" "{code}")', consent=True)
    assert program[0].value.policy == asked.policies[SCORE]
