"""Turns: the agent goes on, and what comes up is there at the next offer."""

import gc
import itertools
import threading

import polars as pl
import pytest

import memlab
from memlab.subjects import verifiers
from tests.displays import html_of

NOTES = [
    "the bakery opens at six",
    "the bakery opens at noon",
    "deploys go out on Tuesdays",
    "deploys need a review",
]


@pytest.fixture
def cascade(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack="cascade") as lab:
        lab.remember(NOTES, linking="off")
        yield lab


def offered_ids(turns, *contexts):
    """Return the ids that are offered for each context in the turn after it."""
    results = []
    turns.offer(contexts[0])
    for context in (*contexts[1:], "zzzz qqqq"):
        assert turns.wait(30)
        results.append([hit.id for hit in turns.offer(context)])
    return results


def test_results_of_a_turn_are_ready_at_the_next(cascade):
    turns = cascade.agents.turns()
    first = turns.offer("when does the bakery open?")
    assert (len(first), first.contexts) == (0, ())
    assert turns.wait(30)
    second = turns.offer("and when does it close?")
    assert second.contexts == ("when does the bakery open?",)
    assert {hit.id for hit in second} == {1, 2}
    assert [hit.score for hit in second] == sorted((hit.score for hit in second), reverse=True)


def test_an_offer_equals_a_recall(cascade):
    plain = cascade.recall("the bakery opens at noon", log=False).ids
    assert offered_ids(cascade.agents.turns(), "the bakery opens at noon") == [list(plain)]


def test_a_memory_is_not_offered_twice_on_the_same_topic(cascade):
    assert offered_ids(cascade.agents.turns(), *["the bakery opens at six"] * 3)[1:] == [[], []]


@pytest.mark.long
def test_a_new_topic_clears_what_came_up(cascade):
    bakery, deploys = "the bakery opens at six", "deploys go out on Tuesdays"
    a, b = cascade.io.embedder.encode([bakery, deploys]).astype(float)
    assert a @ b / (a @ a * (b @ b)) ** 0.5 < 0.3, "the two contexts are two topics"
    result = offered_ids(cascade.agents.turns(), bakery, bakery, deploys, bakery)
    assert result[1] == []
    assert result[0] == result[3]
    assert set(result[2]) <= {3, 4}


@pytest.mark.long
def test_the_turn_says_where_a_topic_begins(cascade):
    turns = cascade.agents.turns()
    told = []
    for context in (
        "the bakery opens at six",
        "the bakery opens at noon",
        "deploys go out on Tuesdays",
        "deploys",
    ):
        told.append(turns.offer(context).new_topic)
        assert turns.wait(30)
    told.append(turns.offer("the end").new_topic)
    assert told[:4] == [False, False, False, True]


@pytest.mark.long
def test_how_near_a_topic_is_is_a_setting(trigrams, clock):
    for closeness, again in ((-1, []), (1, [1, 2])):
        pack = f'(pack mine "Topics." :inherits cascade) (setting topic-closeness {closeness})'
        with memlab.open(embedder=trigrams, clock=clock, pack=pack) as lab:
            lab.remember(NOTES, linking="off")
            result = offered_ids(
                lab.agents.turns(), "the bakery opens at six", "the bakery opens at noon"
            )
            assert (sorted(result[0]), sorted(result[1])) == ([1, 2], again)


@pytest.mark.long
def test_a_verifier_filters_the_offer_and_its_verdict_is_recorded(cascade):
    turns = cascade.agents.turns(verifier=lambda hits: [hit for hit in hits if "six" in hit.text])
    assert offered_ids(turns, "the bakery opens at six") == [[1]]
    assert cascade.memories["confidence"].round(12).to_list()[:2] == [0.82, 0.78]
    assert offered_ids(
        cascade.agents.turns(verifier=verifiers.overlap), "when does the bakery open?"
    )[0]


@pytest.mark.long
def test_two_agents_do_not_share_what_came_up(cascade):
    one, two = cascade.agents.turns(), cascade.agents.turns()
    assert offered_ids(one, "the bakery opens at six") == offered_ids(
        two, "the bakery opens at six"
    )


@pytest.mark.long
def test_filters_are_those_of_recall(cascade):
    cascade.remember("the bakery is closed", season="holidays", linking="off")
    assert 5 not in offered_ids(cascade.agents.turns(), "the bakery is closed")[0]
    assert 5 in offered_ids(cascade.agents.turns(season="holidays"), "the bakery is closed")[0]
    assert offered_ids(
        cascade.agents.turns(limit=1, where=pl.col("text") == NOTES[1]), "the bakery"
    ) == [[2]]


def test_the_agent_never_waits_and_the_newest_context_wins(cascade):
    begun, gate, threads, order = threading.Event(), threading.Event(), set(), []

    def slow(hits):
        begun.set()
        assert gate.wait(30)
        threads.add(threading.current_thread().name)
        order.append(hits.slate.query)
        return hits

    turns = cascade.agents.turns(verifier=slow, patience=30)
    contexts = [f"the bakery opens at {hour}" for hour in ("six", "seven", "eight", "nine")]
    turns.offer(contexts[0])
    assert begun.wait(30)
    offered = [turns.offer(context) for context in contexts[1:]]
    assert [len(item) for item in offered] == [0, 0, 0]
    assert not turns.wait(0)
    gate.set()
    assert turns.wait(30)
    last = turns.offer("and now")
    assert last.contexts == tuple(order) == (contexts[0], contexts[3])
    assert [*offered[1].skipped, *offered[2].skipped, *last.skipped] == contexts[1:3]
    assert len({hit.id for hit in last}) == len(last.hits) > 0
    assert len(threads) == 1


def test_an_error_of_a_search_is_raised_at_the_next_offer_and_loses_nothing(cascade):
    fails = [True, False]

    def admits(text):
        if fails[0]:
            raise ValueError("no answer")
        return True

    where = pl.col("text").map_elements(admits, return_dtype=pl.Boolean)
    with cascade.agents.turns(where=where) as turns:
        turns.offer("the bakery opens at six")
        assert turns.wait(30)
        del fails[0]
        with pytest.raises(memlab.InputError, match="no answer"):
            turns.offer("the bakery opens at noon")
        assert turns.wait(30)
        assert turns.offer("on we go").contexts == ("the bakery opens at noon",)


FAULTY = {
    "it raises": (lambda hits: 1 / 0, "ZeroDivisionError"),
    "it names what was not shown": (lambda hits: [4711], 'no hit of this recall "4711"'),
    "it says nothing": (lambda hits: None, "not None"),
    "it never ends its list": (lambda hits: itertools.count(1), "more than 10,000 memories"),
    "it names no relation": (
        lambda hits: verifiers.Verdict(hits.ids, relations={hits.ids: "is the boss of"}),
        'no relation "is the boss of"',
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("how", FAULTY)
def test_a_faulty_verifier_is_said_and_changes_nothing(cascade, how):
    verifier, said = FAULTY[how]
    before = cascade.memories["confidence"].to_list()
    with cascade.agents.turns(verifier=verifier) as turns:
        turns.offer("the bakery opens at six")
        assert turns.wait(30)
        offer = turns.offer("and on")
    assert sorted(hit.id for hit in offer) == [1, 2], "what its recall showed comes up unverified"
    assert said in offer.notes[0]
    assert cascade.memories["confidence"].to_list() == before
    assert cascade.upkeep.review.gaps().is_empty()


@pytest.mark.long
def test_a_verifier_that_hangs_holds_up_nothing(cascade):
    gate, asked = threading.Event(), []

    def hangs(hits):
        asked.append(hits.slate.query)
        assert gate.wait(60)
        return []

    turns = cascade.agents.turns(verifier=hangs, patience=0.05)
    turns.offer("the bakery opens at six")
    assert turns.wait(30)
    offer = turns.offer("deploys go out on Tuesdays")
    assert "no verdict within 0.05 s" in offer.notes[0]
    assert {1, 2} == {hit.id for hit in offer}
    assert turns.wait(30)
    assert "has not answered for recall" in turns.offer("and on").notes[0]
    assert len(asked) == 1, "it is not asked again before it has answered"
    assert cascade.recall("the bakery").ids, "the lab goes on"
    gate.set()
    assert turns.wait(30)
    turns.close()
    assert cascade.upkeep.review.gaps().is_empty(), "what it says too late counts for nothing"


@pytest.mark.long
def test_closing_does_not_wait_for_a_verdict(cascade):
    begun, gate = threading.Event(), threading.Event()

    def hangs(hits):
        begun.set()
        assert gate.wait(60)
        return hits

    turns = cascade.agents.turns(verifier=hangs, patience=600)
    turns.offer("the bakery opens at six")
    assert begun.wait(30)
    turns.close()
    gate.set()


@pytest.mark.long
def test_a_verifier_may_close_the_turns_and_ask_the_lab(cascade):
    ended = threading.Event()

    def verifier(hits):
        cascade.recall("deploys", log=False)
        turns.close()
        ended.set()
        return hits

    turns = cascade.agents.turns(verifier=verifier, patience=30)
    turns.offer("the bakery opens at six")
    assert ended.wait(30)


@pytest.mark.long
def test_turns_that_are_left_end_their_thread(cascade):
    turns = cascade.agents.turns()
    turns.offer("the bakery")
    assert turns.wait(30)
    (thread,) = [
        thread for thread in threading.enumerate() if thread.name.startswith("memlab turns")
    ]
    del turns
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_without_a_verifier_all_that_is_shown_comes_up_and_nothing_changes(cascade):
    cascade.remember("zebra bakery noon", linking="off")
    result = offered_ids(cascade.agents.turns(verifier=None), "the bakery opens at noon")[0]
    assert result == list(cascade.recall("the bakery opens at noon", log=False).ids)
    assert cascade.memories["confidence"].unique().to_list() == [0.8]


def test_closing_the_lab_ends_all_turns(trigrams, clock):
    lab = memlab.open(embedder=trigrams, clock=clock, pack="cascade")
    lab.remember(NOTES, linking="off")
    turns = lab.agents.turns()
    turns.offer("the bakery")
    lab.close()
    with pytest.raises(memlab.LabError, match="are closed"):
        turns.offer("the bakery")
    assert not [
        thread for thread in threading.enumerate() if thread.name.startswith("memlab turns")
    ]


def test_with_ends_them_too(cascade):
    with cascade.agents.turns() as turns:
        turns.offer("the bakery")
    with pytest.raises(memlab.LabError, match="are closed"):
        turns.offer("the bakery")


def test_a_context_has_a_text(cascade):
    with pytest.raises(memlab.InputError, match="empty"):
        cascade.agents.turns().offer(" ")


def test_an_offer_is_a_frame_and_renders_as_text(cascade):
    cascade.remember("<script>the bakery opens</script>", linking="off")
    turns = cascade.agents.turns()
    turns.offer("the bakery opens")
    turns.wait(30)
    surfaced = turns.offer("more")
    assert surfaced.frame["memory_id"].to_list() == [hit.id for hit in surfaced]
    assert surfaced[0] is surfaced.hits[0]
    assert "<script>" not in html_of(surfaced)
    assert memlab.subjects.agents.turns.Surfaced().frame.schema == surfaced.frame.schema


def test_a_lab_that_is_only_read_has_turns_too(disk):
    with disk(pack="cascade") as lab:
        lab.remember(NOTES, linking="off")
    with disk(read_only=True) as lab:
        assert sorted(
            offered_ids(lab.agents.turns(verifier=verifiers.overlap), "the bakery opens at six")[0]
        ) == [1, 2]
