"""The pack cascade with feedback and with a verifier that rejects results: how trust changes."""

import pytest

import memlab


@pytest.fixture
def lab(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        yield lab


def test_trust_that_is_given_weighs_instead_of_that_of_the_provenance(lab):
    text = "alpha beta gamma fact"
    lab.remember(text, trust=0.1, confidence=0.8)
    lab.remember(f"{text} told", confidence=0.8, linking="off")
    left = lab.recall(text, log=False).slate
    by_id = dict(zip(left.ids.tolist(), left.numbers["retention"].tolist(), strict=True))
    assert by_id == pytest.approx({1: 0.08, 2: 0.8})


@pytest.mark.long
def test_a_rejected_result_is_no_use_and_a_verified_one_counts_once(lab, clock):
    lab.remember("redis cache for sessions", confidence=0.5)
    lab.remember("redis cache for pages", confidence=0.5, linking="off")
    born = lab.memories["accessed"][0]
    clock.advance(hours=3)
    hits = lab.recall("redis cache for sessions")
    assert set(hits.ids) == {1, 2}
    clock.advance(hours=1)
    lab.agents.verify(hits, [1])
    asked = memlab.kernel.base.clock.from_micros(hits.slate.at)
    assert lab.memories.select("access", "accessed", "confidence").rows() == [
        (1.0, asked, 0.52),
        (0.0, born, 0.48),
    ]


@pytest.mark.long
def test_a_rejection_takes_back_its_own_recall_and_no_other(lab, clock):
    lab.remember("redis cache for sessions", confidence=0.5)
    clock.advance(hours=1)
    first = lab.recall("redis cache for sessions")
    clock.advance(hours=1)
    second = lab.recall("redis cache for sessions")
    lab.agents.verify(first, [])
    assert lab.memories.select("access", "accessed").rows() == [
        (1.0, memlab.kernel.base.clock.from_micros(second.slate.at))
    ]
    uses = lab.io.store.state.uses.values[0]
    assert uses[:3].tolist() == [second.slate.at, first.slate.at - 3_600_000_000, uses[2]]


@pytest.mark.long
def test_the_fold_of_a_prefix_and_the_rest_agree_after_a_rejection(tmp_path, clock):
    with memlab.open(tmp_path / "lab", pack="cascade", clock=clock) as lab:
        lab.remember("redis cache for sessions")
        clock.advance(hours=1)
        lab.agents.verify(lab.recall("redis cache for sessions"), [])
        before = lab.memories
    with memlab.open(tmp_path / "lab", clock=clock) as lab:
        assert lab.memories.equals(before)
