"""The same simulated run under each pack: if uses change later recalls, one-step values differ from those of the run."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from lives import SINGLE, small

import memlab
from memlab.errors import InputError, UnknownName
from memlab.io.ingest import Conversation, LabelledConversation, Question, Turn
from memlab.science.evaluation import cluster_interval
from memlab.science.simulation import MessageEvent, QuestionEvent, Transcript, User, live, trial
from tests.displays import html_of

pytestmark = pytest.mark.long

WORLD = small("differs", days=8)
PLAIN = SINGLE.replace("single", "plain")
RICH = f"""{SINGLE.replace("single", "rich")}
(defpolicy recall-score [similarity lexical access]
  (+ (min-max similarity) (min-max lexical) (* 1.5 (min-max access))))"""
"""A pack that shows again the memories that it has shown."""


@pytest.fixture(scope="module")
def life():
    with live(WORLD, pack=PLAIN, every_days=1) as lived:
        yield lived


@pytest.fixture(scope="module")
def lone(life):
    return trial([PLAIN, RICH], WORLD, seeds=[WORLD.seed], beside=life)


@pytest.fixture(scope="module")
def tried(life):
    return memlab.trial([PLAIN, RICH], WORLD, seeds=[WORLD.seed, 5, 6], beside=life)


def row(trial_result, pack):
    return trial_result.frame.filter(pack=pack).row(0, named=True)


def test_a_life_is_worth_what_its_pack_truly_earned(life, lone, tried):
    own = lone.lives.filter(pack="plain")["value"][0]
    assert own == pytest.approx(life.truth(PLAIN, how="recall"))
    assert own == pytest.approx(life.earned()["value"].mean())
    assert tried.lives.filter(pack="plain", seed=WORLD.seed)["value"][0] == pytest.approx(own)


def test_an_interval_excludes_zero_exactly_when_its_p_is_below_the_level(tried):
    """All differences are judged together, so intervals are wider with more packs, as p-values are larger."""
    dice, hidden = np.random.default_rng(3), tried._rows
    base = next(row for row in hidden if row.pack == tried.baseline)
    verdicts = set()
    for _ in range(40):
        gaps = [
            cluster_interval(dice.normal(dice.normal(), 0.8, 5), list("abcde")) for _ in range(3)
        ]
        rows = [
            replace(base, pack=str(n), difference=gap, gap=gap.value) for n, gap in enumerate(gaps)
        ]
        frame = replace(tried, _rows=(base, *rows)).frame.filter(pl.col("verdict") != "baseline")
        for row in frame.iter_rows(named=True):
            excluded = row["difference_low"] > 0 or row["difference_high"] < 0
            assert excluded == (row["p"] < 0.05) == (row["verdict"] != "not separated")
            verdicts.add(row["verdict"])
    assert verdicts == {"better", "worse", "not separated"}


def test_a_trial_of_few_runs_says_what_makes_more(tried):
    assert "seeds=5" not in replace(tried, _more="").sentence
    assert tried._more == "simulate more runs, such as seeds=5"


NEAR = """(pack near-one "The nearest one." :inherits memlab)
(setting limit 1) (setting probe-rate 0)
(defpolicy recall-score [similarity] similarity)"""
OFTEN = NEAR.replace("near-one", "often").replace(
    "[similarity] similarity", "[similarity access] (+ access (* 0.1 similarity))"
)


def test_one_step_and_simulated_values_differ_where_use_changes_the_memory(trigrams):
    """Asked three times for tea and then six times for the goat. The nearest one is always right, and is used.

    By one step the pack that shows what was used most follows it with a delay of three; living, it stays with tea.
    """
    hour = 3_600_000_000
    said = [
        MessageEvent(n * hour, what, what, project="p") for n, what in enumerate(["tea", "goat"])
    ]
    asked = [
        QuestionEvent((9 + n) * hour, n, what, "p", {what: 1.0})
        for n, what in enumerate(["tea"] * 3 + ["goat"] * 6)
    ]
    script = Transcript("once more", (*said, *asked))
    with live(script, pack=NEAR, embedder=trigrams) as life:
        result = trial([NEAR, OFTEN], script, of="utility", beside=life, embedder=trigrams)
    near, often = row(result, "near-one"), row(result, "often")
    assert (near["value"], near["one_step"]) == (1.0, 1.0)
    assert often["one_step"] == pytest.approx(6 / 9)
    assert often["value"] == pytest.approx(3 / 9)
    assert (often["difference"], often["one_step_difference"]) == (
        pytest.approx(-6 / 9),
        pytest.approx(-3 / 9),
    )
    # one conversation says nothing about the next
    assert (often["low"], often["verdict"]) == (None, "no interval")


def test_differences_are_paired_and_over_seeds(tried):
    rich = row(tried, "rich")
    by_seed = tried.lives.pivot("pack", index="seed", values=["value", "questions"])
    gaps = by_seed["value_rich"] - by_seed["value_plain"]
    # a mean over questions: a seed with more questions weighs more
    asked = by_seed["questions_rich"]
    assert rich["difference"] == pytest.approx((gaps * asked).sum() / asked.sum())
    assert rich["difference_low"] < rich["difference"] < rich["difference_high"]
    assert tried.clusters == "3 seeds"
    assert row(tried, "plain")["verdict"] == "baseline"
    assert tried.baseline == "plain"


def test_a_trial_renders(tried):
    assert "simulated" in repr(tried)
    assert "one step" in repr(tried)
    assert "<table" in html_of(tried)
    data = json.loads(json.dumps(tried.to_dict()))
    assert data["seeds"] == [WORLD.seed, 5, 6]
    assert len(data["script_hash"]) == 64
    assert {pack["hash"] for pack in data["packs"]} == {
        memlab.load_pack(pack).hash for pack in (PLAIN, RICH)
    }


def test_the_same_trial_is_the_same(lone):
    again = trial([PLAIN, RICH], WORLD, seeds=[WORLD.seed])
    assert again.lives.equals(lone.lives)
    assert again.script_hash == lone.script_hash


def talk(name, what):
    turn = Turn("D1:1", "Ada", f"I moved to {what}", "session_1", datetime(2026, 1, 5, tzinfo=UTC))
    return LabelledConversation(
        Conversation(name, (turn,)), (Question("Where does Ada live?", 1, ("D1:1",)),)
    )


def events():
    hour = 3_600_000_000
    said = [
        MessageEvent(n * hour, f"m{n}", f"tea number {n}", project=f"p{n % 2}") for n in range(6)
    ]
    asked = [
        QuestionEvent((10 + n) * hour, n, f"tea number {n}", f"p{n % 2}", {f"m{n}": 1.0})
        for n in range(1, 5)
    ]
    return [*said, *asked]


def test_a_transcript_and_its_events_are_lived_alike(trigrams):
    script = Transcript("events", tuple(events()))
    one, other = (
        trial(["memlab", "workbench"], given, embedder=trigrams) for given in (script, events())
    )
    assert one.lives.equals(other.lives)
    assert (one.questions, one.clusters, one.seeds) == (4, "2 conversations", (0,))
    assert one.sentence.endswith(
        "2 conversations are too few to distinguish packs: add conversations."
    )
    # each has one useful memory among the three of its project, and ten are shown
    assert (
        trial(["memlab", "workbench"], script, embedder=trigrams, of="utility").frame["value"].max()
        == 1
    )


def test_labelled_conversations_are_lived_as_they_were_read(trigrams):
    result = trial(
        ["memlab", "workbench"],
        [talk("one", "Oslo"), talk("two", "Graz")],
        embedder=trigrams,
        of="utility",
    )
    assert (result.questions, result.clusters) == (2, "2 conversations")
    assert result.frame["value"].to_list() == [1.0, 1.0]


def test_days_cut_a_life_short(trigrams):
    moved = [replace(event, at=event.at + 30 * 86_400_000_000) for event in events()[6:]]
    later = [replace(event, number=event.number + 10) for event in moved]
    result = trial(["memlab", "workbench"], [*events(), *later], days=3, embedder=trigrams)
    assert result.questions == 4


def test_an_evaluation_can_be_shown_next_to_a_trial(trigrams, life):
    evaluation = memlab.evaluate(life.slates, [PLAIN, RICH], missing="censor")
    tried = trial([PLAIN, RICH], WORLD, seeds=1, days=4, beside=evaluation)
    known = {row.policy: row.value and row.value.value for row in evaluation.rows}
    assert {name: row(tried, name)["one_step"] for name in ("plain", "rich")} == {
        name: known[name] for name in ("plain", "rich")
    }


def test_a_pack_that_merges_is_scored_by_the_surviving_memories(trigrams):
    """What is said twice is one memory under a pack that links: ids no longer count the messages."""
    hour = 3_600_000_000
    said = [
        MessageEvent(n * hour, f"m{n}", text, kind="preference", project="p")
        for n, text in enumerate(["I like tea", "I like tea", "my goat is old"])
    ]
    asked = [
        QuestionEvent(9 * hour, 1, "goat", "p", {"m2": 1.0}),
        QuestionEvent(10 * hour, 2, "tea", "p", {"m1": 1.0}),
    ]
    script = Transcript(
        "twice", (*said, *asked), user=User(answers=1.0, errors=0.0, delay_hours=0.0)
    )
    with live(script, pack="workbench", embedder=trigrams) as life:
        assert len(life.lab) == 2
        assert life.earned(of="utility")["value"].to_list() == [1.0, 1.0]
        assert life.slates.feedback.collect()["memory_id"].max() == 2


def test_invalid_trials_are_refused():
    with pytest.raises(InputError, match="at least two packs"):
        trial(["memlab"], WORLD)
    with pytest.raises(InputError, match="at least two packs"):
        trial(["memlab", "memlab"], WORLD)
    with pytest.raises(InputError, match="A trial simulates a World"):
        trial(["memlab", "words"], [1, 2])
    with pytest.raises(InputError, match="a list of different seeds"):
        trial(["memlab", "workbench"], WORLD, seeds=[1, 1])
    with pytest.raises(UnknownName):
        trial(["memlab", "no-such-pack"], WORLD)
    with pytest.raises(InputError, match="nothing to simulate"):
        trial(["memlab", "workbench"], events()[:6])
