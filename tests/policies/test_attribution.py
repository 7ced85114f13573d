"""What each version of a policy showed, and how that was judged."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples
from scipy.stats import beta

from memlab.kernel.policies import Version
from memlab.subjects.lens.attribution import attribute_outcomes, credible_interval
from tests.displays import html_of


def versions(*events):
    """Return versions of a slot that became active with these events."""
    return [
        Version(
            number,
            seq,
            seq * 1_000_000,
            "recall-score",
            "install",
            "mine",
            f"hash {number}",
            "",
            (),
            "",
        )
        for number, seq in enumerate(events, 1)
    ]


def timeline(*rows):
    return pl.DataFrame(
        rows, schema={"event": pl.Int64, "pack_hash": pl.String, "version": pl.Int64}, orient="row"
    )


def recalls(*rows):
    """Return decisions and exposures of recalls (event, hash of the pack, shown, probes)."""
    pairs = [
        (seq, memory, memory in probes) for seq, _, memories, probes in rows for memory in memories
    ]
    return (
        pl.DataFrame(
            [row[:2] for row in rows],
            schema={"decision": pl.Int64, "pack_hash": pl.String},
            orient="row",
        ),
        pl.DataFrame(
            pairs,
            schema={"decision": pl.Int64, "memory_id": pl.Int64, "probe": pl.Boolean},
            orient="row",
        ),
    )


def judgements(*rows):
    """Return feedback rows (decision, memory, outcome)."""
    schema = {"decision": pl.Int64, "memory_id": pl.Int64, "outcome": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


TWO = versions(1, 10)
LIVE = timeline((1, "a", 1), (10, "b", 2))


def row(attribution, number):
    [found] = attribution.frame.filter(pl.col("version") == number).iter_rows(named=True)
    return found


def test_feedback_counts_for_the_version_that_decided():
    asked = recalls((2, "a", [7, 8], []), (11, "b", [7, 9], []), (12, "b", [9], []))
    said = judgements((2, 7, "success"), (2, 8, "fail"), (12, 9, "success"))
    outcomes = attribute_outcomes("recall-score", TWO, LIVE, *asked, said)
    first, second = row(outcomes, 1), row(outcomes, 2)
    assert (first["recalls"], first["shown"], first["judged"], first["success"], first["fail"]) == (
        1,
        2,
        2,
        1,
        1,
    )
    assert (second["recalls"], second["shown"], second["judged"], second["success"]) == (2, 3, 1, 1)
    assert first["rate"] == 0.5
    assert first["low"] < 0.5 < first["high"]


def test_probes_are_counted_apart():
    asked = recalls((2, "a", [7, 8, 9], [9]))
    said = judgements((2, 7, "success"), (2, 9, "fail"))
    outcomes = attribute_outcomes("recall-score", TWO, LIVE, *asked, said)
    first = row(outcomes, 1)
    assert (first["shown"], first["judged"], first["success"], first["fail"]) == (2, 1, 1, 0)
    assert (
        first["probes"],
        first["probe_judged"],
        first["probe_success"],
        first["probe_fail"],
    ) == (1, 1, 0, 1)
    assert "Not included: 1 exploration item, 1 of them judged" in repr(outcomes)


def test_the_last_word_on_a_memory_counts():
    said = judgements((2, 7, "fail"), (2, 7, "success"), (2, 7, None))
    first = row(attribute_outcomes("recall-score", TWO, LIVE, *recalls((2, "a", [7], [])), said), 1)
    assert (first["judged"], first["success"], first["fail"]) == (1, 1, 0)


def test_a_bare_reward_is_neither_success_nor_failure():
    first = row(
        attribute_outcomes(
            "recall-score", TWO, LIVE, *recalls((2, "a", [7], [])), judgements((2, 7, None))
        ),
        1,
    )
    assert (first["judged"], first["success"], first["fail"], first["rate"]) == (1, 0, 0, None)


def test_feedback_without_a_recall_is_reported():
    said = judgements((None, 7, "success"), (2, 99, "success"), (77, 7, "success"))
    outcomes = attribute_outcomes("recall-score", TWO, LIVE, *recalls((2, "a", [7], [])), said)
    assert outcomes.loose == 3
    assert "3 judgements ignored: not linked to a logged recall" in repr(outcomes)
    assert row(outcomes, 1)["judged"] == 0


def test_a_recall_that_another_process_overtook_goes_to_the_version_it_used():
    asked = recalls((11, "a", [7], []))  # it read before event 10, and was written after
    outcomes = attribute_outcomes("recall-score", TWO, LIVE, *asked, judgements())
    assert (row(outcomes, 1)["recalls"], row(outcomes, 2)["recalls"]) == (1, 0)


def test_a_pack_at_two_times_is_two_versions():
    three = versions(1, 10, 20)
    live = timeline((1, "a", 1), (10, "b", 2), (20, "a", 3))
    outcomes = attribute_outcomes(
        "recall-score",
        three,
        live,
        *recalls((2, "a", [7], []), (21, "a", [7], []), (22, "a", [7], [])),
        judgements(),
    )
    assert outcomes.frame["recalls"].to_list() == [1, 0, 2]


@pytest.mark.parametrize("hash", [None, "of an older dialect"])
def test_without_a_known_hash_the_place_in_the_journal_decides(hash):
    outcomes = attribute_outcomes(
        "recall-score", TWO, LIVE, *recalls((12, hash, [7], [])), judgements()
    )
    assert outcomes.frame["recalls"].to_list() == [0, 1]


def test_the_columns():
    frame = attribute_outcomes("recall-score", TWO, LIVE, *recalls(), judgements()).frame
    assert frame.columns[:6] == ["version", "hash", "pack", "since", "recalls", "shown"]
    assert frame.columns[6:12] == ["judged", "success", "fail", "rate", "low", "high"]
    assert frame["since"].dtype == pl.Datetime("us", "UTC")
    assert frame["rate"].null_count() == 2
    assert frame.select("low", "high").rows() == [(0.0, 1.0)] * 2


def test_an_attribution_renders():
    outcomes = attribute_outcomes(
        "recall-score", TWO, LIVE, *recalls((2, "a", [7], [])), judgements((2, 7, "success"))
    )
    assert "1.000" in repr(outcomes)
    assert "Observational" in repr(outcomes)
    page = html_of(outcomes)
    assert page.count("1.000]") == 1, "what nobody judged has no interval"


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=20))
def test_intervals_are_those_of_the_beta_posterior(counts):
    success, fail = (pl.Series(values) for values in zip(*counts, strict=True))
    low, high = credible_interval(success, fail)
    for index, (s, f) in enumerate(counts):
        posterior = beta(s + 0.5, f + 0.5)
        assert low[index] == (pytest.approx(posterior.ppf(0.025), rel=1e-9) if s else 0)
        assert high[index] == (pytest.approx(posterior.ppf(0.975), rel=1e-9) if f else 1)
        assert s + f == 0 or low[index] <= s / (s + f) <= high[index]


@st.composite
def logs(draw):
    """Draw versions, active packs, recalls and judgements in the order of one journal."""
    live, asked, said, since = [(1, "a", 1)], [], [], [1]
    for seq in range(2, draw(st.integers(2, 30))):
        what = draw(st.sampled_from(["swap", "recall", "judge", "judge"]))
        if what == "swap":
            if draw(st.booleans()):
                since.append(seq)
            live.append((seq, draw(st.sampled_from("abc")), len(since)))
        elif what == "recall":
            shown = draw(st.lists(st.integers(1, 6), unique=True, max_size=4))
            probes = shown[len(shown) - draw(st.integers(0, min(len(shown), 1))) :]
            asked.append((seq, draw(st.sampled_from(["a", "b", "c", "x", None])), shown, probes))
        else:
            decision = draw(st.one_of(st.none(), st.integers(2, seq - 1))) if seq > 2 else None
            outcome = draw(st.sampled_from(["success", "fail", None]))
            said.append((decision, draw(st.integers(1, 6)), outcome))
    return versions(*since), live, asked, said


def slowly(since, live, asked, said):
    """Compute the same counts one event after the other."""
    counts = [
        dict.fromkeys(
            ("recalls", "shown", "judged", "success", "fail", "probes", "probe_judged"), 0
        )
        for _ in since
    ]
    decided = {}
    for seq, pack, shown, probes in asked:
        before = [entry for entry in live if entry[0] < seq]
        same = [entry for entry in before if entry[1] == pack]
        number = (same or before)[-1][2]
        decided[seq] = number, shown, probes
        counts[number - 1]["recalls"] += 1
        counts[number - 1]["shown"] += len(shown) - len(probes)
        counts[number - 1]["probes"] += len(probes)
    words, loose = {}, 0
    for decision, memory, outcome in said:
        if decision not in decided or memory not in decided[decision][1]:
            loose += 1
            continue
        words[decision, memory] = outcome or words.get((decision, memory))
    for (decision, memory), outcome in words.items():
        number, _, probes = decided[decision]
        if memory in probes:
            counts[number - 1]["probe_judged"] += 1
        else:
            counts[number - 1]["judged"] += 1
            if outcome is not None:
                counts[number - 1][outcome] += 1
    return counts, loose


@pytest.mark.long
@examples(150)
@given(logs())
def test_the_same_as_counting_one_event_after_the_other(log):
    since, live, asked, said = log
    outcomes = attribute_outcomes(
        "recall-score", since, timeline(*live), *recalls(*asked), judgements(*said)
    )
    counts, loose = slowly(*log)
    assert outcomes.frame.select(counts[0].keys()).to_dicts() == counts
    assert outcomes.loose == loose
