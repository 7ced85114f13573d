"""The quality that widgets show next to ranks: equal to ``lab.score``, incremental, explained, honest without labels."""

import os
import random
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab.kernel.policies import SLOTS
from memlab.subjects.questions.scoring import note_on_feedback
from memlab.ui.notebook._magics import install_and_compare
from memlab.ui.widgets import PolicyStudio, RecallExplorer, VersionTimeline, quality, ranks
from memlab.ui.widgets.quality import NEW, Quality
from memlab.ui.widgets.ranks import rebased_text
from tests.displays import html_of
from tests.labelled import ASKED, TEXTS
from tests.widgets.shared import shared

pytestmark = pytest.mark.long

SCORE = "recall-score"
OLDEST = "(fn [age-days] (* (param :weight 1 :low -1 :high 1) age-days))"
LINE = "(fn [recency] (+ (inherited) (* 0.1 recency)))"


@pytest.fixture
def labelled(lab):
    """A lab with five questions, and old notes that a policy of age ranks first."""
    lab.remember([{"text": f"an old note {n}", "at": f"2020-01-0{n}"} for n in range(1, 10)])
    lab.remember([{"text": text, "at": f"2026-01-0{n}"} for n, text in enumerate(TEXTS, 1)])
    lab.questions.add([{"query": query, "wants": wants + 9} for query, wants in ASKED])
    return lab


def values(lab, policy):
    frame = lab.score({NEW: policy}, metrics=("hit@5", "ndcg@10")).frame
    return frame.drop("policy", "low", "high").rows()


def shown(lab, slot, source, judge=None):
    """The rows of the scores that a widget shows, under the active pack and the draft."""
    pack = lab.policies.pack
    draft = pack.with_policy(slot, lab.policies.check(slot, source))
    frame = (judge or Quality(lab)).score_drafts(pack, draft).frame
    return frame.drop("policy", "low", "high").rows()


def counts(widget):
    """The numbers of gained and lost questions that a widget shows."""
    metric = shared(widget, "quality")["metrics"][0]
    return metric["gained"], metric["lost"]


@pytest.mark.parametrize(
    ("slot", "source"),
    [
        (SCORE, OLDEST),
        (SCORE, LINE),
        (SCORE, "(fn [similarity recency] (if (> recency 0.2) similarity (/ 1 0)))"),
        (SCORE, "(fn [words] (if (> words 4) 1 0))"),  # ties
        (SCORE, "(fn [] (inherited))"),
        ("eligible", "(defpolicy eligible [age-days] (< age-days 100))"),
        ("cut", "(fn [recency] recency)"),
        ("seed-score", "(fn [lexical] (* -1 lexical))"),
        ("spread", "(fn [activation] 0)"),
        ("known", "(fn [score] 0)"),
        ("select", "(fn [score likeness] (- score likeness))"),
    ],
)
def test_the_numbers_are_those_of_score(labelled, slot, source):
    judge = Quality(labelled)
    for _ in range(2):  # The second time from kept pools, if they suffice.
        assert shown(labelled, slot, source, judge) == values(
            labelled, labelled.policies.check(slot, source)
        )
    labelled.policies.install(SCORE, OLDEST, compare=0)
    assert shown(labelled, slot, source, judge) == values(
        labelled, labelled.policies.check(slot, source)
    )


def test_a_pack_that_abstains_shows_fewer(labelled):
    text = '(pack shy "Shy." :inherits memlab) (setting known-floor 1) (setting unknown-limit 1)'
    shy, pack = memlab.load_pack(text), labelled.policies.pack
    ours = Quality(labelled).score_drafts(pack, shy)
    theirs = labelled.score({NEW: shy}, metrics=("hit@5", "ndcg@10"))
    assert ours.ranks.equals(theirs.ranks)
    assert ours.frame.equals(theirs.frame)


def test_a_pack_that_hides_near_duplicates(labelled):
    labelled.questions.add("an old note", wants=[2])
    labelled.policies.use(
        '(pack terse "T." :inherits memlab) (setting collapse-above 0.3)', compare=0
    )
    source = "(fn [similarity] similarity)"
    plain = shown(labelled, SCORE, source)
    assert plain == values(labelled, source)
    labelled.policies.use("memlab", compare=0)
    assert plain != shown(labelled, SCORE, source)


DATA = Path(os.environ.get("MEMLAB_DATA", "nowhere")) / "locomo" / "locomo-dev5.json"


@pytest.mark.skipif(not DATA.is_file(), reason="MEMLAB_DATA has no locomo/locomo-dev5.json")
def test_the_numbers_are_those_of_score_on_conversations():
    draw = random.Random(5)
    with memlab.open(clock=memlab.ManualClock("2024-06-01")) as lab:
        for labelled in memlab.ingest.read_locomo(DATA)[:2]:
            source = labelled.conversation
            lab.remember(source.rows(project=source.name), chain=True)
            lab.questions.add([labelled])
        lab.questions.remove(lab.questions.frame[90:])
        judge = Quality(lab)
        for _ in range(12):
            a, b = draw.sample(["recency", "similarity", "coverage", "late", "words"], 2)
            weight = draw.uniform(-1, 1)
            source = draw.choice(
                [
                    f"(fn [{a} {b}] (+ (inherited) (* {weight} (min-max {a})) (* 0.1 {b})))",
                    f"(fn [{a} {b}] (if (> {a} {abs(weight)}) {b} (inherited)))",
                ]
            )
            assert shown(lab, SCORE, source, judge) == values(lab, source)


def test_drafts_are_scored_on_pools_that_are_kept(labelled, monkeypatch):
    asked = []

    def count(*arguments):
        asked.append(arguments)
        return ask(*arguments)

    ask = ranks.recall_question
    monkeypatch.setattr(ranks, "recall_question", count)
    judge = Quality(labelled)
    for weight in range(30):
        shown(labelled, SCORE, f"(fn [recency] (+ (inherited) (* 0.{weight + 1} recency)))", judge)
    assert len(asked) == len(ASKED)
    labelled.remember("Something new")
    shown(labelled, SCORE, LINE, judge)
    assert len(asked) == 2 * len(ASKED)


def test_many_questions_are_a_sample_that_is_stated(labelled, monkeypatch):
    monkeypatch.setattr(quality, "_SAMPLE", 3)
    monkeypatch.setattr(quality, "RECALLED", 2)
    studio = PolicyStudio(labelled)
    studio._judge._recalled = 2
    sums = shared(studio, "quality")
    assert (sums["count"], sums["total"]) == (3, 5)
    pack = labelled.policies.pack
    first = studio._judge.score_drafts(pack, pack).ranks["id"].to_list()
    assert Quality(labelled).score_drafts(pack, pack).ranks["id"].to_list() == first
    studio.slot = "cut"
    studio.source = "(fn [recency] recency)"
    assert shared(studio, "quality")["count"] == 2
    version = labelled.policies.install(SCORE, LINE, compare=2)
    assert "a random sample of 2 questions of 5" in repr(version)


class TestStudio:
    def test_the_number_moves_with_the_draft(self, labelled, ask):
        studio = PolicyStudio(labelled)
        assert studio.questions == [query for query, _ in ASKED]
        assert shared(studio, "quality")["same"]
        ask(studio, "check", source=OLDEST, view="one")
        sums = shared(studio, "quality")
        assert counts(studio) == (0, 5)
        assert [row["value"] for row in sums["metrics"]] == [0.0, pytest.approx(0.0, abs=0.2)]
        assert sums["metrics"][0]["high"] < 0
        assert [row["query"] for row in sums["lost"]] == [query for query, _ in ASKED]
        ask(studio, "check", source=OLDEST.replace(":weight 1", ":weight -1"), view="one")
        assert counts(studio) != (0, 5)

    def test_a_broken_text_keeps_the_number(self, labelled, ask):
        studio = PolicyStudio(labelled)
        ask(studio, "check", source=OLDEST, view="one")
        before = shared(studio, "quality")
        ask(studio, "check", source="(fn [age-days]", view="one")
        assert shared(studio, "quality") == before

    def test_a_lost_question_is_explained(self, labelled, ask):
        studio = PolicyStudio(labelled)
        ask(studio, "check", source=LINE.replace("0.1 recency", "-9 recency"), view="one")
        lost = shared(studio, "quality")["lost"][0]
        first, second, *terms = ask(studio, "moved", question=lost["id"])["sentences"]
        wanted = dict(zip(range(1, 6), (wants + 9 for _, wants in ASKED), strict=True))
        assert f'memory {wanted[lost["id"]]} ("' in first
        assert f"rank before is {lost['before']}, after " in first
        assert "that overtakes it" in second
        assert "recency) (Exponential decay of the time without recall): " in terms[0]
        assert "before, no difference" in terms[0]
        assert "There is no question" in ask(studio, "moved", question=99)

    def test_a_memory_that_is_no_longer_found_is_told(self, labelled, ask):
        studio = PolicyStudio(labelled, slot="eligible")
        studio.source = "(defpolicy eligible [age-days] (> age-days 100))"
        lost = shared(studio, "quality")["lost"][0]
        last = ask(studio, "moved", question=lost["id"])["sentences"][-1]
        assert last == "After the change, it is no candidate: it is not found, or not eligible."

    def test_a_loss_is_confirmed_before_it_is_installed(self, labelled, ask, recwarn):
        studio = PolicyStudio(labelled)
        ask(studio, "check", source=OLDEST, view="one")
        answer = ask(studio, "install", reason="older is better")
        assert "hit@5" in answer["loss"]
        assert "It loses more than its interval." in answer["loss"]
        assert studio.installed is None
        assert labelled.policies.history(SCORE).height == 1
        assert ask(studio, "install", reason="older is better", sure=True) == {}
        assert labelled.policies[SCORE].source == OLDEST
        assert not [one for one in recwarn if one.category is memlab.errors.RankingWarning]

    def test_a_gain_is_installed_at_once(self, labelled, ask):
        labelled.policies.install(SCORE, OLDEST, compare=0)
        studio = PolicyStudio(labelled)
        ask(studio, "check", source="(fn [similarity] similarity)", view="one")
        assert counts(studio)[0] > 0
        assert ask(studio, "install", reason="nearer") == {}
        assert studio.installed.number == 3

    def test_without_questions_feedback_stands_there(self, labelled):
        labelled.questions.remove(labelled.questions.frame)
        note = shared(PolicyStudio(labelled), "quality")["note"]
        assert "nothing shows whether a change is better" in note
        assert "lab.questions.add(" in note
        for outcome in ("success", "success", "fail"):
            labelled.feedback(labelled.recall("tabs?", limit=1)[0], outcome)
        studio = PolicyStudio(labelled)
        note = shared(studio, "quality")["note"]
        studio.slot = "cut"
        assert "cut version 1" in shared(studio, "quality")["note"]
        assert "67% of 3 judged results helped" in note
        assert "does not show how a change would do" in note
        assert "lab.questions.infer()" in note

    def test_questions_of_another_viewer_are_not_shown(self, labelled, ask):
        labelled.remember("Bob hides a key", visibility="private", creator="user:bob")
        labelled.questions.add("where is the key?", wants=16, viewer="user:bob")
        total = {
            viewer: shared(PolicyStudio(labelled, viewer=viewer), "quality")["total"]
            for viewer in ("user:ana", "user:bob", None)
        }
        assert total == {"user:ana": 5, "user:bob": 6, None: 6}
        studio = PolicyStudio(labelled, viewer="user:bob")
        labelled.questions.add("who hides it?", wants=16, viewer="user:bob")
        studio.source = OLDEST
        assert shared(studio, "quality")["total"] == 7
        lost = [row["id"] for row in shared(studio, "quality")["lost"]]
        assert "Bob hides a key" in ask(studio, "moved", question=lost[-1])["sentences"][0]

    def test_labelled_queries_are_asked_at_their_own_time(self, labelled):
        labelled.questions.add("where does Ana live", wants=12, at="2026-01-04")
        studio = PolicyStudio(labelled, questions=["where does Ana live", "tabs or spaces?"])
        studio.source = OLDEST
        age = studio.moves.filter(pl.col("memory_id") == 12).sort("question")["score_after"]
        assert age.to_list() == pytest.approx([57.5, 1.0])  # At noon of 1 March, and then.


class TestRebase:
    @pytest.fixture
    def stale(self, labelled):
        """A lab whose active version inherits from a pack that is no longer in use."""
        number = labelled.policies.install(SCORE, LINE).number
        labelled.policies.use("companion", compare=0)
        labelled.policies.rollback(SCORE, to=number)
        return labelled

    def test_a_version_of_another_parent_is_rebased(self, stale, ask):
        studio = PolicyStudio(stale)
        offer = shared(studio, "about")["rebase"]
        assert offer["pack"] == "companion"
        assert [row["metric"] for row in offer["quality"]["metrics"]] == ["hit@5", "ndcg@10"]
        answer = ask(studio, "rebase", reason="")
        if "loss" in answer:
            answer = ask(studio, "rebase", reason="", sure=True)
        assert answer == {}
        policy = stale.policies[SCORE]
        assert policy.source == LINE
        assert policy.inherited == memlab.load_pack("companion").policies[SCORE]
        assert policy == stale.policies.check(SCORE, LINE)
        assert stale.policies.history(SCORE)["reason"][-1] == "rebased on companion"
        assert shared(studio, "about")["rebase"] is None
        assert studio.source == LINE
        assert "is already the current policy of the pack" in ask(studio, "rebase", reason="")

    def test_versions_with_their_parent_are_not_marked(self, labelled):
        def offered():
            return shared(PolicyStudio(labelled), "about")["rebase"]

        assert offered() is None
        labelled.policies.install(SCORE, LINE)
        assert offered() is None
        labelled.policies.install(SCORE, OLDEST, compare=0)
        assert offered() is None
        text = f'(pack mine "M." :inherits companion) (defpolicy recall-score [recency] {LINE[13:]}'
        labelled.policies.use(text, compare=0)
        assert offered() is None

    def test_a_draft_next_to_it_stays(self, stale, ask):
        studio = PolicyStudio(stale)
        ask(studio, "check", source=OLDEST, view="one")
        ask(studio, "rebase", reason="", sure=True)
        assert studio.source == OLDEST

    def test_parameters_of_the_text_are_kept(self, labelled):
        source = "(fn [recency] (+ (inherited) (* (param :w 0.1) recency)))"
        number = labelled.policies.install(SCORE, source, params={"w": 0.7}).number
        labelled.policies.use("companion", compare=0)
        labelled.policies.rollback(SCORE, to=number)
        text = rebased_text(labelled.policies[SCORE], labelled.policies.pack)
        assert text == source.replace("0.1", "0.7")


def test_the_timeline_compares_two_versions(labelled, ask):
    labelled.policies.install(SCORE, OLDEST, compare=0)
    timeline = VersionTimeline(labelled)
    assert counts(timeline) == (0, 5)
    assert "overtakes" in " ".join(ask(timeline, "moved", question=1)["sentences"])
    timeline.picked = [1]
    assert shared(timeline, "quality") == {}
    timeline.slot = "inject"
    assert shared(timeline, "quality") == {}


def test_the_explorer_compares_the_chosen_pack(labelled, ask, clock):
    explorer = RecallExplorer(labelled, question="tabs or spaces?")
    assert shared(explorer, "quality") == {}
    ask(explorer, "judge")
    assert shared(explorer, "quality")["same"]
    text = '(pack aged "A." :inherits memlab) (defpolicy recall-score [age-days] age-days)'
    explorer = RecallExplorer(labelled, pack=memlab.load_pack(text))
    ask(explorer, "judge")
    assert counts(explorer) == (0, 5)
    assert len(ask(explorer, "moved", question=1)["sentences"]) >= 2
    clock.advance(days=1)
    labelled.questions.remove([1, 2])
    ask(explorer, "judge")
    assert shared(explorer, "quality")["total"] == 3
    explorer.at = "2026-03-01T13:00"
    ask(explorer, "judge")
    assert shared(explorer, "quality")["total"] == 5


class TestInstall:
    def test_a_version_has_its_scores(self, labelled):
        version = labelled.policies.install(SCORE, LINE)
        assert version.scores.frame["metric"].to_list() == ["hit@5", "ndcg@10"] * 2
        assert "this policy" in repr(version)
        assert "ndcg@10" in html_of(version)
        assert labelled.policies.install(SCORE, OLDEST, compare=0).scores is None
        labelled.questions.remove(labelled.questions.frame)
        assert labelled.policies.install(SCORE, LINE).scores is None

    def test_a_cell_shows_scores_and_explains_questions(self, labelled):
        labelled.questions.add("<img src=x onerror=alert(1)> the parser", wants=15)
        with pytest.warns(memlab.errors.RankingWarning):
            installed = install_and_compare(labelled, SCORE, OLDEST)
        html, text = html_of(installed), repr(installed)
        assert "Lost by this policy" in text
        assert "<details><summary" in html
        assert html.count("Lost: ") == 6
        assert "The best memory that overtakes it" in html
        assert "<img" not in html

    def test_a_cell_without_questions_says_what_is_missing(self, labelled):
        labelled.questions.remove(labelled.questions.frame)
        assert "No labelled questions" in repr(install_and_compare(labelled, SCORE, LINE))
        assert "No labelled questions" in html_of(install_and_compare(labelled, SCORE, OLDEST))
        assert "Question list" in note_on_feedback(labelled, SCORE)


def test_every_slot_has_a_number_or_none(labelled, ask):
    studio = PolicyStudio(labelled)
    for slot in SLOTS:
        studio.slot = slot
        assert studio.fault == ""
        assert ("metrics" in shared(studio, "quality")) == (slot in quality.DECIDES_RANKS)
