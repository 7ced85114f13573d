"""companion: hybrid weights and the least similarity may be given with one recall, and are logged with it."""

import pytest

import memlab
from memlab.errors import UnknownName
from memlab.kernel.verbs.recalling.past import read_hits


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-06-01")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="companion", clock=clock) as opened:
        opened.remember("The user paints the sea in oil", kind="event")
        clock.advance(days=12)
        opened.remember("The user drinks tea in the morning", kind="event")
        yield opened


@pytest.mark.long
def test_weights_of_one_recall_are_those_of_the_formula(lab):
    (_, old) = sorted(
        lab.recall("painting the sea in oil", params={"near": -1}, log=False),
        key=lambda hit: -hit.id,
    )
    for similarity, strength in ((0.6, 0.4), (1.0, 0.0), (0.0, 1.0)):
        params = {"near": -1, "similarity_weight": similarity, "strength-weight": strength}
        hits = lab.recall("painting the sea in oil", params=params, log=False)
        result = next(hit for hit in hits if hit.id == old.id)
        assert result.score == pytest.approx(
            similarity * result.explain().features["nearness"] + strength * (100 - 4.85 * 12) / 100
        )


def test_a_least_similarity_lets_less_pass(lab):
    wide = lab.recall("the sea in oil", params={"near": -1}, log=False)
    assert len(wide) == 2
    near = max(hit.explain().features["nearness"] for hit in wide)
    assert (
        len(lab.recall("the sea in oil", params={"eligible:near": min(near, 1.0)}, log=False)) == 1
    )


@pytest.mark.long
def test_changed_parameters_have_a_hash_of_their_own_and_are_evaluated_so(lab):
    hits = lab.recall("the sea in oil", params={"near": -1, "strength-weight": 1})
    plain = lab.recall("the sea in oil")
    assert hits.pack.hash != plain.pack.hash == lab.policies.pack.hash
    assert lab.policies.pack.policies["recall-score"].params["strength-weight"].value == 0.4
    decisions = lab.slates().decisions.collect()
    assert decisions["pack_hash"].to_list() == [hits.pack.hash, plain.pack.hash]
    again = read_hits(lab.io.store, hits.decision)
    assert (again.pack.hash, again.ids) == (hits.pack.hash, hits.ids)
    lab.feedback(hits[0], "success", decision=hits.decision)
    lab.feedback(plain[0], "success", decision=plain.decision)
    explained = hits[0].explain()
    assert sum(value for _, value in explained.terms) == pytest.approx(hits[0].score)
    evaluation = memlab.evaluate(
        lab.slates(), {"as it was": hits.pack, "live": lab.policies.pack}, missing="zero"
    )
    assert set(evaluation.frame["policy"]) >= {"as it was", "live"}
    counted = lab.policies.attribution("recall-score")
    assert counted is not None


def test_a_parameter_that_no_policy_has_is_refused(lab):
    with pytest.raises(UnknownName, match="near"):
        lab.recall("x", params={"nera": 0.1})
    with pytest.raises(UnknownName, match="strength-weight"):
        lab.recall("x", params={"eligible:strength-weight": 0.1})
    with pytest.raises(memlab.InputError, match="between"):
        lab.recall("x", params={"near": 7})
    assert "recall" not in lab.log["kind"].to_list()
