"""The recall log, the overview and the question list in Python: pages, lists, explanations, rights."""

import io

import polars as pl
import pytest
from displays import page_of
from shared import shared
from texts import TEXTS

import memlab
from memlab.ui.demo import sample_lab
from memlab.ui.widgets import Overview, QuestionList, RecallLog


@pytest.fixture(scope="module")
def sample():
    """The sample lab, which no test writes to."""
    return sample_lab()


def rows(widget, name):
    return pl.read_ipc_stream(io.BytesIO(shared(widget, name)))


@pytest.mark.long
def test_the_sample_lab_is_labelled_and_asked_the_same_each_time(sample):
    assert (len(sample), len(sample.questions)) == (172, 36)
    recalls = sample.agents.recalls()
    counts = dict(recalls["outcome"].value_counts().iter_rows())
    assert (sum(counts.values()), counts["nothing"], counts["unrated"]) == (41, 3, 11)
    assert counts["helped"] > counts["failed"] > 0
    assert sample_lab().agents.recalls().equals(recalls)


@pytest.mark.long
def test_a_page_has_the_latest_recalls_and_what_each_showed(sample):
    log = RecallLog(sample)
    page, items = rows(log, "recalls"), rows(log, "items")
    recalls = sample.agents.recalls()
    assert page["decision"].to_list() == recalls["decision"].to_list()[::-1][:20]
    for row in recalls.tail(20).iter_rows(named=True):
        own = items.filter(decision=row["decision"]).sort("position")
        assert own["memory_id"].to_list() == row["shown"]
        assert own.filter(own["reward"] >= 0.5)["memory_id"].to_list() == row["helped"]
        assert own["score"].null_count() == 0


@pytest.mark.long
def test_the_log_is_searched_and_paged(sample, ask):
    log = RecallLog(sample)
    ask(log, "list", search="MUNGO", outcome="", start=0)
    assert all("mungo" in query.lower() for query in rows(log, "recalls")["query"])
    assert len(log.frame) == shared(log, "log")["matching"] == 5
    ask(log, "list", search="quill", outcome="failed", start=0)
    assert rows(log, "recalls")["outcome"].unique().to_list() == ["failed"]
    ask(log, "list", search="", outcome="", start=40)
    assert rows(log, "recalls").height == 1
    assert "outcome" in ask(log, "list", search="", outcome="good", start=0)
    log.outcome, log.start = "", 0
    assert rows(log, "recalls").height == 20


@pytest.mark.long
def test_opening_a_recall_asks_again_as_of_then(ask, lab, clock):
    lab.remember("The user prefers tabs")
    clock.advance(days=1)
    decision = lab.recall("tabs or spaces?").decision
    clock.advance(days=1)
    lab.edit(1, text="The user prefers spaces")
    log = RecallLog(lab)
    ask(log, "open", decision=decision)
    assert [hit.text for hit in log.hits] == ["The user prefers tabs"]
    assert (log.question, log.opened, log.hits.decision) == ("tabs or spaces?", decision, None)
    assert len(lab.agents.recalls()) == 1
    assert "recall" in ask(log, "open", decision=99)
    assert ask(log, "explain", memory=1)["score"] == pytest.approx(log.hits[0].score)


@pytest.mark.long
def test_a_viewer_sees_no_private_memory(lab):
    lab.remember(
        [
            {"text": "Ada likes tabs"},
            {"text": "Bob hides tabs", "visibility": "private", "creator": "bob"},
        ]
    )
    lab.recall("who likes tabs?", viewer="bob")
    lab.recall("tabs of Ada?", viewer="ada")
    for kind in (RecallLog, Overview):
        widget = kind(lab, viewer="ada")
        widget.fill()
        state, _, buffers = widget.plain_state()
        assert "Bob hides" not in str(state)
        assert not any(b"Bob hides" in buffer for buffer in buffers)
        assert rows(widget, "recalls")["query"].to_list() == ["tabs of Ada?"]
        assert widget.lab.io.store.journal.read_only


@pytest.mark.long
def test_a_new_recall_appears_on_refresh(lab):
    lab.remember("The user prefers tabs")
    overview = Overview(lab)
    assert shared(overview, "sums")["recalls"] == 0
    lab.recall("tabs or spaces?")
    overview.refresh()
    assert shared(overview, "sums")["recalls"] == 1
    assert rows(overview, "recalls")["query"].to_list() == ["tabs or spaces?"]


@pytest.mark.long
def test_days_without_recalls_are_counted_as_zero(lab, clock):
    lab.remember("The user prefers tabs")
    lab.recall("tabs?")
    clock.advance(days=3)
    lab.recall("tabs?")
    days = Overview(lab).days
    assert days["recalls"].to_list() == [1, 0, 0, 1]
    clock.advance(days=40)
    lab.recall("tabs?")
    assert Overview(lab).days["recalls"].to_list() == [0] * 13 + [1]


@pytest.mark.long
def test_the_overview_scores_questions_and_explains_each_miss_in_words(sample, ask):
    overview = Overview(sample)
    assert overview.misses is None
    overview.fill()
    quality = shared(overview, "answered")
    scores = sample.score()
    assert (
        quality["value"] == scores.frame.filter(policy="active", metric="ndcg@10")["value"].item()
    )
    missed = scores.ranks.filter((scores.ranks["active"] > 5) | scores.ranks["active"].is_null())
    assert [miss["id"] for miss in quality["misses"]] == missed["id"].to_list()
    assert (quality["scored"], len(missed)) == (36, 3)
    for miss in quality["misses"]:
        why = ask(overview, "miss", question=miss["id"])
        text = why["text"]
        assert why["above"] in {memory[:200] for memory in sample.memories["text"]}
        assert text.startswith("Memory ")
        assert "stands above" in text
        assert "because: " in text
    assert "not in the list of missed questions" in ask(overview, "miss", question=1)
    lost = {place: count for place, count, _ in quality["lost"]}
    assert lost == dict(
        memlab.failures(sample, sample.questions).frame.select("place", "count").rows()
    )


@pytest.mark.long
def test_gaps_and_stale_answers_are_listed_with_their_recalls(sample):
    overview = Overview(sample)
    gaps, stale = rows(overview, "gaps"), rows(overview, "stale")
    assert gaps.filter("sure")["query"].to_list()[0] == "When did Mungo have surgery on his knee?"
    (row,) = stale.to_dicts()
    count = sample.agents.recalls()["stale"].list.contains(164).sum()
    assert (row["memory"], row["by"], row["before"], row["count"]) == (164, 172, False, count)
    assert "three weeks" in row["successor"]


@pytest.mark.long
def test_without_labels_and_feedback_nothing_is_traced(lab):
    lab.remember("The user prefers tabs")
    lab.recall("tabs?")
    overview = Overview(lab)
    overview.fill()
    assert shared(overview, "answered") == {"lost": []}
    assert "memlab.open()" in overview.cell


@pytest.mark.long
def test_an_empty_lab_has_an_overview(ask):
    lab = memlab.open()
    overview, questions = Overview(lab), QuestionList(lab)
    overview.fill()
    assert overview.days.height == 0
    assert "0 recalls" in page_of(overview)
    assert "no further question" not in shared(questions, "note")
    ask(questions, "propose")
    assert "no further question" in shared(questions, "note")


@pytest.mark.long
def test_questions_are_proposed_accepted_and_removed(lab, ask):
    lab.remember(["Ana lives in Rome", "Ben lives in Oslo"])
    questions = QuestionList(lab)
    ask(questions, "propose")
    assert rows(questions, "questions")["accepted"].to_list() == [False, False]
    first, second = rows(questions, "questions")["id"]
    ask(questions, "accept", ids=[first])
    assert (len(lab.questions), shared(questions, "about")["accepted"]) == (1, 1)
    assert rows(questions, "questions")["id"].to_list() == [second, first]
    assert shared(questions, "note") == "1 accepted. 1 question counts in scores."
    ask(questions, "remove", ids=[second])
    assert shared(questions, "note") == "1 removed. 1 question counts in scores."
    assert lab.questions.frame["id"].to_list() == [first]
    ask(questions, "propose")
    assert lab.questions.frame["id"].to_list() == [first]
    assert "99" in ask(questions, "accept", ids=[99])
    assert "Rome" in page_of(questions)


@pytest.mark.long
def test_a_typed_question_is_added_with_the_marked_memories(lab, ask):
    lab.remember([f"Ana lives in town {number}" for number in range(12)] + ["Ben's cat is Mungo"])
    questions = QuestionList(lab)
    logged = lab.log.height
    found = ask(questions, "search", words="Which animal does Ben have?")["hits"]
    assert len(found) == 8
    assert found[0] == {"id": 13, "text": "Ben's cat is Mungo", "speaker": None}
    assert lab.log.height == logged
    ask(questions, "add", query="Which animal does Ben have?", wants=[13])
    assert shared(questions, "note") == "Question added. 1 question counts in scores."
    assert lab.questions.frame.select("query", "wants", "accepted").rows() == [
        ("Which animal does Ben have?", [13], True)
    ]
    assert "99" in ask(questions, "add", query="Where is Ben?", wants=[99])
    assert "Remove one" in ask(questions, "add", query="Which animal does Ben have?", wants=[1])
    assert len(lab.questions) == 1


def test_the_text_of_a_question_ends_with_a_whole_word(lab):
    lab.remember("Ana lives in Rome. " + "She runs a charity. " * 30)
    lab.questions.add("Where does Ana live?", wants=1)
    text = rows(QuestionList(lab), "questions")["text"][0]
    assert len(text) <= 300
    assert text.endswith(("She…", "runs…", "a…", "charity…"))


@pytest.mark.long
def test_the_overview_says_when_the_active_pack_changed(lab):
    lab.remember("Ana lives in Rome")
    overview = Overview(lab)
    before = shared(overview, "sums")["pack"]
    lab.policies.install("recall-score", "(fn [recency] recency)", reason="try")
    overview.refresh()
    assert shared(overview, "sums")["pack"] not in ("", before)


@pytest.mark.long
def test_what_people_wrote_is_escaped_on_a_page_without_python(lab):
    lab.remember([{"text": text, "kind": kind} for text, kind in TEXTS])
    lab.recall("<img src=x onerror=alert(1)> tabs?")
    lab.questions.add("<b>tabs?</b>", wants=3)
    for kind in (RecallLog, Overview, QuestionList):
        html = page_of(kind(lab))
        assert "<img" not in html
        assert "<b>" not in html


@pytest.mark.long
def test_a_miss_outside_the_pool_is_explained_too(lab, ask):
    lab.remember(["Ana keeps bees", *(f"Deploy number {n} went out" for n in range(150))])
    lab.questions.add("which deploy went out?", wants=1)
    overview = Overview(lab)
    overview.fill()
    text = ask(overview, "miss", question=1)["text"]
    assert text.startswith("Memory 1 is none of 100 candidates: stored, but not among")
