"""Benchmark conversations that are replayed through an agent, next to stored ones."""

from datetime import UTC, datetime, timedelta

import pytest

import memlab
from memlab.errors import DatasetError
from memlab.io.ingest import Conversation, LabelledConversation, Question, Turn

pytestmark = pytest.mark.long

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
SAID = [
    ("1", "user", "The user lives in Lisbon", "s1", 0),
    ("2", "assistant", "Noted, Lisbon it is.", "s1", 0),
    ("3", "user", "The user keeps two cats", "s1", 0),
    ("4", "user", "The user no longer lives in Lisbon", "s2", 20),
    ("5", "user", "The user plays the cello", "s2", 20),
]
TURNS = tuple(
    Turn(ref, who, text, session, START + timedelta(days=day, minutes=int(ref)), role=who)
    for ref, who, text, session, day in SAID
)
QUESTIONS = (
    Question("Where does the user live?", "knowledge_update", ("1", "4"), outdated=("1",)),
    Question("What does the user play?", "information_extraction", ("5",)),
    Question("Who sold the boat?", "abstention", ()),
)
TALK = LabelledConversation(Conversation("moves", TURNS), QUESTIONS)
REPLACES = """(pack replaces "What is denied goes." :inherits memlab)
(defpolicy link [pair/negates] (if pair/negates "contradicts" "none"))
(defpolicy resolve [pair/negates] "keep-new")"""


@pytest.fixture(scope="module")
def bench(trigrams):
    return memlab.bench_dynamics(
        [TALK], packs=[REPLACES], limit=3, dataset="moves", embedder=trigrams
    )


def test_a_corrected_statement_is_not_retrieved_after_a_replay(bench):
    row = bench.frame.filter(ability="knowledge_update").row(0, named=True)
    assert (row["stored"], row["lived"]) == (1.0, 1.0), "recall is of the evidence that still holds"
    assert (row["outdated"], row["outdated_stored"], row["outdated_lived"]) == (1, 1.0, 0.0)
    assert bench.statuses == {"replaces": {"active": 4, "superseded": 1}}


def test_every_answerable_question_is_asked_and_the_first_row_is_of_all(bench):
    assert [(row.ability, row.questions) for row in bench.rows] == [
        ("", 2),
        ("information_extraction", 1),
        ("knowledge_update", 1),
    ]
    assert bench.rows[0].lived == 1.0
    assert "1 superseded" in repr(bench)
    assert bench.to_dict()["packs"] == dict(bench.hashes)


def test_without_evidence_there_is_nothing_to_measure():
    bare = LabelledConversation(TALK.conversation, (QUESTIONS[2],))
    with pytest.raises(DatasetError, match="nothing to measure"):
        memlab.bench_dynamics([bare])
