"""The Python half of the recall explorer: requests of a browser and their answers."""

import polars as pl
import pytest

import memlab
from memlab.ui.widgets import RecallExplorer
from tests.widgets.shared import shared

FORM = {"limit": 3, "pack": "", "at": ""}


@pytest.fixture
def explorer(asked):
    return RecallExplorer(asked, question="tabs or spaces?", limit=3)


def test_a_question_from_python_is_asked_without_a_trace(explorer, asked):
    before = asked.log.height
    assert len(explorer.hits) == 3
    assert explorer.hits.decision is None
    explorer.question = "when do deploys go out?"
    assert explorer.hits[0].text == "Deploys go out on Tuesdays"
    assert asked.log.height == before


@pytest.mark.long
def test_enter_is_a_logged_recall_and_the_thumbs_are_its_feedback(explorer, asked, ask):
    assert "Press Enter" in ask(explorer, "feedback", memory=1, outcome="success")
    assert ask(explorer, "recall", question="tabs?", **FORM, log=True) == {}
    first = explorer.hits[0]
    assert ask(explorer, "feedback", memory=first.id, outcome="success") == {}
    judged = asked.slates().feedback.collect()
    assert (judged["decision"].item(), judged["memory_id"].item()) == (
        explorer.hits.decision,
        first.id,
    )
    assert explorer.judged == {str(first.id): "success"}


@pytest.mark.long
def test_terms_sum_to_the_score(explorer, ask):
    for hit in explorer.hits:
        found = ask(explorer, "explain", memory=hit.id)
        assert found["terms"]["value"].sum() == pytest.approx(hit.score)
        assert found["tree"].columns == ["depth", "role", "source", "value", "shown", "live"]
    assert shared(explorer, "about")["sums"]


def test_a_pack_whose_score_is_no_sum_says_so(asked):
    pack = asked.policies.pack.with_policy(
        "recall-score", memlab.load_pack("fsrs").policies["recall-score"]
    )
    product = RecallExplorer(asked, question="tabs", pack=pack)
    assert len(product.hits) > 0
    assert not shared(product, "about")["sums"]


@pytest.mark.parametrize(("known", "count"), [(0.4, 1), (0.6, 3)])
def test_what_the_pack_says_of_an_answer_is_shown(asked, known, count):
    policy = f"(defpolicy known [score] (+ (* 0 (slate-max score)) {known}))"
    pack = f'(pack knows "Says it.") (setting known-floor 0.5) (setting unknown-limit 1) {policy}'
    explorer = RecallExplorer(
        asked, question="tabs or spaces?", limit=3, pack=memlab.load_pack(pack)
    )
    assert shared(explorer, "about")["known"] == pytest.approx(known)
    assert (len(explorer.hits), shared(explorer, "about")["fewer"]) == (count, known < 0.5)
    explorer.question = ""
    assert (shared(explorer, "about")["known"], shared(explorer, "about")["fewer"]) == (None, False)


def test_two_hits_are_compared_as_hits_why_does(explorer, ask):
    a, b = explorer.hits.ids[:2]
    found = ask(explorer, "why", a=a, b=b)
    assert found["verdict"] == explorer.hits.why(a, b).verdict
    assert found["terms"].equals(explorer.hits.why(a, b).frame)


def test_what_is_pinned_is_a_selection_of_memories(explorer, asked):
    assert asked.memories.filter(explorer.selection)["id"].to_list() == sorted(explorer.hits.ids)
    explorer.pinned = [2]
    assert asked.memories.filter(explorer.selection)["id"].to_list() == [2]
    assert isinstance(explorer.selection, pl.Expr)


@pytest.mark.long
def test_pins_that_are_shown_no_more_are_dropped(explorer, ask):
    explorer.pinned = [explorer.hits.ids[0], explorer.hits.ids[-1]]
    ask(explorer, "recall", question="tabs or spaces?", limit=1, pack="", at="")
    assert explorer.pinned == [explorer.hits.ids[0]]


@pytest.mark.long
def test_another_pack_is_asked_and_never_logged(explorer, asked, ask):
    before = asked.log.height
    ask(explorer, "recall", question="tabs or spaces?", limit=3, pack="actr", at="", log=True)
    assert explorer.hits.pack.name == "actr"
    assert explorer.hits.decision is None
    assert (asked.log.height, asked.policies.pack.name) == (before, "memlab")


@pytest.mark.long
def test_an_instant_is_the_lab_as_it_was(explorer, asked, clock, ask):
    clock.advance(days=1)
    asked.remember("Tabs were given up for spaces")
    explorer.question = "Tabs were given up for spaces"
    assert explorer.hits[0].id == 7
    explorer.at = "2026-03-01T13:00:00Z"
    assert explorer.fault == ""
    assert 7 not in explorer.hits.ids
    explorer.at = ""
    assert explorer.hits[0].id == 7


@pytest.mark.long
@pytest.mark.parametrize(
    ("trait", "value", "said"),
    [
        ("pack", "memlabb", "Did you mean memlab?"),
        ("at", "1999-01-01", "The lab did not exist at that time"),
        ("at", "x", "time"),
    ],
)
def test_what_cannot_be_asked_is_said_in_the_widget_and_it_goes_on(explorer, trait, value, said):
    setattr(explorer, trait, value)
    assert said in explorer.fault
    setattr(explorer, trait, "")
    assert explorer.fault == ""
    assert len(explorer.hits) == 3


def test_bad_requests_are_answered_with_a_sentence(explorer, ask):
    assert "Known: explain, feedback, judge, moved, recall, why." in ask(explorer, "frob")
    assert "candidates of this recall" in ask(explorer, "explain", memory=999)
    assert "limit is a whole number" in ask(
        explorer, "recall", question="x", limit=0, pack="", at=""
    )
    assert "outcome" in ask(explorer, "feedback", memory=1, outcome="meh")


def test_an_empty_lab_has_nothing_to_show_and_says_so(lab):
    empty = RecallExplorer(lab, question="anything")
    assert len(empty.hits) == 0
    assert empty.fault == ""
    assert shared(empty, "about")["memories"] == 0


def test_a_lab_closed_under_it_is_said_in_the_widget(explorer, asked, ask):
    asked.close()
    assert "was closed" in ask(explorer, "recall", question="x", **FORM)
    explorer.question = "y"
    assert "was closed" in explorer.fault


@pytest.mark.long
def test_two_explorers_on_one_lab_do_not_disturb_each_other(explorer, asked, ask):
    other = RecallExplorer(asked, question="deploys")
    ask(explorer, "recall", question="tabs?", **FORM, log=True)
    assert other.question == "deploys"
    assert ask(other, "explain", memory=2)["score"] == pytest.approx(other.hits.explain(2).score)


def test_a_page_without_python_has_the_hits_as_a_table(explorer):
    data, _ = explorer._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "&lt;img src=x" in data["text/html"]
    assert "<img" not in data["text/html"]


@pytest.mark.long
@pytest.mark.parametrize("bad", [{"limit": 51}, {"limit": 0}, {"question": 5}, {"pack": 7}])
def test_a_constructor_refuses_what_it_cannot_show(asked, bad):
    with pytest.raises(memlab.InputError):
        RecallExplorer(asked, **bad)


def test_words_with_a_stem_of_the_query_are_highlighted(asked):
    explorer = RecallExplorer(asked, question="Which tab does the deployment use?", limit=6)
    words = shared(explorer, "about")["words"]
    assert {"tabs", "deploys"} <= set(words)
    assert not {"the", "spaces"} & set(words)
    explorer.question = ""
    assert shared(explorer, "about")["words"] == []


@pytest.mark.long
def test_a_logged_search_never_explores(explorer, asked, ask):
    asked.policies.use("(pack always :inherits memlab) (setting probe-rate 1) (setting limit 2)")
    asked.policies.explore(True)
    assert len(asked.recall("tabs?").probes) == 1
    assert ask(explorer, "recall", question="tabs?", **(FORM | {"limit": 2}), log=True) == {}
    assert explorer.hits.decision is not None
    assert explorer.hits.probes == ()
