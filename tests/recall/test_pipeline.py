"""The road from a question to a slate: what each stage hands on, and that policies decide."""

import numpy as np
import pytest

import memlab
from memlab.kernel.slates import decode, encode


def ranked(lab, pack, query="kayak", **more):
    lab.policies.use(pack)
    return lab.recall(query, log=False, **more)


@pytest.fixture
def chain(lab):
    """Return a lab with five turns in a row; only the first has the word."""
    lab.remember(
        [{"text": text, "session": "s"} for text in ("kayak", "bb", "cc", "dd", "ee")], chain=True
    )
    return lab


def pack(*forms):
    return "(pack trial)" + " ".join(forms)


LEXICAL = "(setting dense-candidates 0) (defpolicy seed-score [lexical] lexical)"


def test_without_spreading_only_what_was_found(chain):
    assert ranked(chain, pack(LEXICAL, "(setting spread-steps 0)")).ids == (1,)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_spreading_reaches_as_far_as_its_steps(chain, steps):
    hits = ranked(
        chain,
        pack(
            LEXICAL,
            f"(setting spread-steps {steps})",
            "(defpolicy spread [activation] (* 0.5 activation))",
            "(defpolicy recall-score [activation] activation)",
        ),
    )
    assert hits.ids == tuple(range(1, steps + 2))
    seed = hits.slate.numbers["seed"][0]
    assert [hit.score for hit in hits] == pytest.approx(
        [seed * 0.5**hop for hop in range(steps + 1)]
    )
    assert hits.slate.numbers["hops"].tolist() == list(range(steps + 1))


def test_the_spread_policy_sees_direction_and_depth(chain):
    chain.policies.use(
        pack(
            LEXICAL,
            "(setting spread-steps 2)",
            "(defpolicy spread [outgoing depth] (if outgoing depth 0))",
        )
    )
    assert chain.recall("kayak", log=False).slate.numbers["received"].tolist() == [0, 1, 2]


@pytest.mark.long
def test_eligible_is_asked_of_what_was_found_and_of_what_was_reached(chain):
    only_reached = pack(LEXICAL, "(defpolicy eligible [hops] (> hops 0))")
    assert ranked(chain, only_reached).ids == ()
    only_found = pack(LEXICAL, "(defpolicy eligible [hops] (= hops 0))")
    assert ranked(chain, only_found).ids == (1,)


def test_the_pool_is_cut_by_what_the_setting_says(lab):
    lab.remember([f"kayak {'very ' * number}" for number in range(30)])
    slate = ranked(lab, pack("(setting pool 7)")).slate
    assert len(slate) == 7
    assert slate.cut.startswith("7 ")


def test_nan_and_null_scores_are_never_shown(lab):
    lab.remember(["kayak", "a kayak", "no boat"])
    hits = ranked(lab, pack("(defpolicy recall-score [length] (if (> length 1) (log -1) length))"))
    assert all(np.isfinite(hit.score) for hit in hits)
    assert np.isneginf(hits.slate.scores).sum() == len(hits.slate) - len(hits)


def test_ties_go_to_the_older_memory(lab):
    lab.remember(["kayak"] * 5)
    assert ranked(lab, pack("(defpolicy recall-score [similarity] 1)"), limit=3).ids == (1, 2, 3)


def test_a_slate_survives_its_bytes(chain):
    slate = chain.recall("kayak", log=False).slate
    again = decode(encode(slate))
    assert again.frame.equals(slate.frame)
    assert (again.query, again.policies, again.fingerprints) == (
        slate.query,
        slate.policies,
        slate.fingerprints,
    )


def test_a_fingerprint_changes_with_what_decides_the_value(chain):
    fingerprints = ranked(chain, pack()).slate.fingerprints
    two = ranked(chain, pack("(setting bm25-k1 2)")).slate.fingerprints
    changed = {name for name in fingerprints if fingerprints[name] != two[name]}
    assert {"lexical", "session-lexical"} <= changed
    assert not {"similarity", "age-days", "coverage"} & changed


@pytest.mark.long
@pytest.mark.parametrize("name", memlab.packs())
def test_every_pack_recalls_from_a_lab_of_one(lab, name):
    lab.remember("kayak")
    assert ranked(lab, name, query="kayak").ids == (1,)


def test_a_memory_reached_by_spreading_has_all_features_and_log_columns(chain):
    fingerprints = ranked(chain, pack()).slate.fingerprints
    two = ranked(chain, pack("(setting spread-steps 2)")).slate.fingerprints
    assert {name for name in fingerprints if fingerprints[name] != two[name]} == {
        "received",
        "activation",
        "hops",
        "session-seed",
        "takes-over",
        "corrects",
    }


@pytest.mark.long
@pytest.mark.parametrize("design", ["extra", "lot", "ab"])
def test_a_challenger_has_no_more_results_in_a_context_than_the_live_pack(lab, clock, design):
    """Both have the room that the budget leaves, not the setting limit."""
    topics = ["harbour", "boat", "tide", "rope", "sail"]
    lab.remember(
        [f"note {n} on the {topics[n % 5]} and the {topics[n * 3 % 5]}" for n in range(40)],
        linking="off",
    )
    lab.challenge(
        '(pack words "Words alone.") (defpolicy recall-score [lexical] lexical)', design=design
    )
    for number in range(5):
        clock.advance(hours=1)
        context = lab.context(f"what of the {topics[number]} and note {number}", budget=150)
        live, head = (
            context.slate.challenge["live"],
            context.slate.challenge["heads"]["words"]["ids"],
        )
        assert 0 < len(head) <= len(live) < lab.policies.pack.count("limit")


@pytest.mark.long
@pytest.mark.parametrize(
    "ends",
    [
        "(defpolicy forget [age-days] (> age-days 30))",
        '(defpolicy promote [status age-days] (if (> age-days 30) "forgotten" status))',
    ],
)
def test_a_challenger_shows_nothing_that_is_over_under_the_live_pack(lab, clock, ends):
    lab.remember(["the harbour opens at six", "the harbour is by the sea"], linking="off")
    clock.advance(days=60)
    lab.remember("the harbour closes at nine")
    lab.policies.use(f"(pack tidy :inherits memlab) {ends}")
    lab.challenge(
        "(pack keeps :inherits memlab) (setting pool 150)",
        design="ab",
        reason="is anything old of use?",
    )
    for _ in range(10):
        slate = lab.recall("when is the harbour open?").slate
        assert {1, 2} <= set(slate.challenge["heads"]["keeps"]["ids"]), (
            "the challenger would show them"
        )
        assert slate.ids.tolist() == list(slate.shown) == [3]
