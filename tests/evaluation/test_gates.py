"""Gates: each closes on what it names, says its figure and threshold, and what would help."""

import re

import pytest

from memlab.evaluation import GATES
from memlab.evaluation._gates import bounded_only, gates, recalls_to_open, rounded
from memlab.evaluation._weights import Weights

SOUND = Weights(items=500, effective=300, effective_share=0.3, largest=20, mean=1.02, top_share=0.1)


def found(weights=SOUND, **changed):
    given = {"unknown": 0.0, "unsupported": 0.0, "silent": 0.0, "explored": 0.4, "clusters": 8, "recalls": 1000}
    return {gate.name: gate for gate in gates(weights, **given | changed)}


def worse(**changed):
    return Weights(**{name: getattr(SOUND, name) for name in Weights.__dataclass_fields__} | changed)


def test_a_sound_log_opens_every_gate():
    assert list(found()) == list(GATES)
    assert all(gate.open for gate in found().values())


@pytest.mark.parametrize(
    ("name", "weights", "changed", "says"),
    [
        ("propensities", SOUND, {"unknown": 0.2}, "Log the probability"),
        ("exploration", SOUND, {"explored": 0.0, "unsupported": 0.1}, "Log with probes"),
        ("clusters", SOUND, {"clusters": 1}, "column cluster"),
        ("effective sample", worse(effective=40), {}, "About 1,500 more recalls at this probe rate"),
        ("effective sample", worse(effective=99.4), {}, "About 7 more recalls"),
        ("effective share", worse(effective_share=0.009), {}, "increase `probe-rate`"),
        ("mean weight", worse(mean=1.11), {}, "logged propensities are wrong"),
        ("mean weight", worse(mean=0.89), {}, "logged propensities are wrong"),
        ("mean weight", worse(mean=float("nan")), {}, "logged propensities are wrong"),
        ("weight tail", worse(top_share=0.51), {}, "A few rare probes"),
        ("support", SOUND, {"unsupported": 0.11}, "probe-depth"),
        ("silence", SOUND, {"silent": 0.51}, 'missing="zero"'),
    ],
)
def test_one_fault_closes_one_gate(name, weights, changed, says):
    closed = [gate for gate in found(weights, **changed).values() if not gate.open]
    assert [gate.name for gate in closed] == [name]
    assert says in closed[0].advice
    assert re.match(r"[A-Z0-9].+[.;)] .+\.", str(closed[0]))


NEVER_ENOUGH = {"effective_share": 0.009, "top_share": 0.51}


@pytest.mark.parametrize(("name", "value"), NEVER_ENOUGH.items())
def test_recalls_are_asked_for_only_where_they_would_do(name, value):
    assert recalls_to_open(list(found(worse(effective=40)).values())) == 1500
    assert recalls_to_open(list(found(worse(mean=1.2)).values())) == 3000
    assert recalls_to_open(list(found(worse(mean=1.2, effective=40)).values())) == 3000
    both = found(worse(effective=40, mean=1.2, **{name: value}))
    assert recalls_to_open(list(both.values())) is None
    assert not any("about" in str(gate).lower() for gate in both.values() if not gate.open)
    assert recalls_to_open(list(found().values())) == 0


def test_a_deterministic_log_can_value_what_it_showed():
    assert found(explored=0.0)["exploration"].open


def test_without_support_there_are_no_weights_to_check():
    nothing = worse(items=0, effective=0, effective_share=0, largest=0, mean=float("nan"), top_share=0)
    assert {name for name, gate in found(nothing, unsupported=1.0).items() if not gate.open} == {"support"}


def test_bounds_may_decide_only_where_support_is_all_that_lacks():
    assert bounded_only(tuple(found(unsupported=0.5).values()))
    assert bounded_only(tuple(found(unsupported=0.5, explored=0.0).values()))
    assert not bounded_only(tuple(found(unsupported=0.5, clusters=1).values()))
    assert not bounded_only(tuple(found().values()))


@pytest.mark.parametrize(("count", "shown"), [(0.2, "1"), (7.1, "8"), (99, "99"), (1234, "1,300"), (45_678, "46,000")])
def test_extrapolations_have_two_digits(count, shown):
    assert rounded(count) == shown
