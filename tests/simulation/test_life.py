"""A simulated run uses the public verbs, and its ground truth does not depend on the active pack."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from lives import SINGLE, small
from redraw import Pools

import memlab
from memlab.errors import InputError, UnknownName
from memlab.science.simulation import FRESH, HABIT, SURE, WORLDS, MessageEvent, Phase, World, live

pytestmark = pytest.mark.long

OTHER = SINGLE.replace("single", "other") + "(defpolicy recall-score [age-days] (- age-days))"
"""A pack that shows the newest, whatever is asked."""


@pytest.fixture(scope="module")
def other():
    with live(small("differs"), pack=OTHER) as life:
        yield life


def feedback_of(life):
    """Return all feedback by question and memory."""
    number = {decision: value.number for decision, value in life.questions.items()}
    frame = life.slates.feedback.collect()
    rows = frame.select("decision", "memory_id", "outcome", "at").iter_rows()
    return {(number[decision], memory): (outcome, at) for decision, memory, outcome, at in rows}


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_can_be_lived(name):
    world = small(name, days=6)
    with live(world) as life:
        said = [event for event in world.events() if isinstance(event, MessageEvent)]
        assert len(life.lab) == len(said)
        assert (
            len(life.questions)
            == life.slates.decisions.collect().height
            == len(world.events()) - len(said)
        )
        assert life.worth.height == life.slates.candidates.collect().height
        assert life.worth["utility"].is_between(0, 1).all()
        assert np.isfinite(life.truth("memlab"))


def test_the_truth_does_not_depend_on_the_pack(fortnight, other):
    one, two = (
        [(a.at, a.number, a.text, a.useful) for a in life.questions.values()]
        for life in (fortnight, other)
    )
    assert one == two

    def worth(life):
        number = {decision: value.number for decision, value in life.questions.items()}
        frame = life.worth.with_columns(pl.col("decision").replace_strict(number))
        return {
            (row[0], row[1]): row[2]
            for row in frame.select("decision", "memory_id", "utility").iter_rows()
        }

    first, second = worth(fortnight), worth(other)
    both = first.keys() & second.keys()
    assert len(both) > 500
    assert all(first[key] == second[key] for key in both)
    shown = [
        set(life.slates.exposures.select("memory_id").collect()["memory_id"])
        for life in (fortnight, other)
    ]
    assert shown[0] != shown[1]


def test_an_item_gets_the_same_feedback_under_every_pack(fortnight, other):
    """Feedback depends on the question and the memory: neither on rank nor on pack."""
    one, two = feedback_of(fortnight), feedback_of(other)
    both = one.keys() & two.keys()
    assert len(both) > 20
    assert all(one[key] == two[key] for key in both)


def test_feedback_is_late_noisy_and_only_of_what_was_shown(fortnight):
    user, slates = fortnight.world.user, fortnight.slates
    table = slates.exposures.select("decision", "memory_id").collect()
    feedback = slates.feedback.collect()
    assert feedback.join(table, on=["decision", "memory_id"], how="anti").is_empty()
    assert not feedback.select(pl.struct("decision", "memory_id").is_duplicated().any()).item()
    frame = slates.decisions.select("decision", asked="at").collect()
    delay = feedback.join(frame, on="decision").select(
        (pl.col("at") - pl.col("asked")).dt.total_hours(fractional=True)
    )
    assert delay.to_series().min() >= 0
    assert delay.to_series().mean() == pytest.approx(user.delay_hours, rel=0.3)
    assert feedback.height / table.height == pytest.approx(user.answers, abs=0.08)
    rated = feedback.join(fortnight.worth, on=["decision", "memory_id"], suffix="_true")
    success = (rated["outcome"] == "success").to_numpy()
    assert success.mean() == pytest.approx(
        rated["reward_true"].mean(), abs=4 * success.std() / len(success) ** 0.5
    )


def test_the_truth_of_the_pack_that_logged_is_what_its_head_was_worth(fortnight):
    head = (
        fortnight.slates.exposures.filter(~pl.col("probe"))
        .select("decision", "memory_id")
        .collect()
    )
    worth = head.join(fortnight.worth, on=["decision", "memory_id"])
    for of in ("reward", "utility"):
        expected = worth[of].sum() / len(fortnight.questions)
        for how in ("auto", "rescore", "recall"):
            assert fortnight.truth(SINGLE, of=of, how=how) == pytest.approx(expected, abs=1e-12)
    assert fortnight.truth(pl.col("score")) == pytest.approx(
        worth["reward"].sum() / len(fortnight.questions), abs=1e-12
    )


def test_a_pack_whose_features_were_not_logged_is_recalled_again(fortnight):
    assert fortnight.truth("associative") == fortnight.truth("associative", how="recall")
    assert fortnight.truth("companion") == fortnight.truth("companion", how="recall")
    assert fortnight.truth(OTHER) == fortnight.truth(OTHER, how="rescore")


def test_no_policy_beats_the_one_that_knows(fortnight):
    key = ["decision", "memory_id"]
    known = fortnight.slates.candidates.join(fortnight.worth.lazy(), on=key, maintain_order="left")
    knowing = replace(fortnight, slates=replace(fortnight.slates, candidates=known))
    best = knowing.truth(pl.col("utility"))
    assert all(best > fortnight.truth(pack) for pack in memlab.packs())


def test_in_reverses_what_was_earned_misleads_and_propensities_do_not(reversal):
    earned = dict(reversal.logged().select("pack", "value").iter_rows())
    truth = {name: reversal.truth(pack) for name, pack in (("habit", HABIT), ("fresh", FRESH))}
    assert earned["habit"] > earned["fresh"] + 0.2
    assert truth["fresh"] > truth["habit"] + 0.2
    frame = reversal.slates.candidates.collect()
    pools = Pools.of(reversal, rate=1.0, depth=95)
    right = []
    for seed in range(20):
        log = pools.redraw(seed)
        shown = log.exposures.join(
            log.feedback.select("decision", "memory_id", "reward"), on=["decision", "memory_id"]
        )
        weighed = shown.with_columns(weight=1 / pl.col("propensity")).collect()
        values = {}
        for name, pack in (("habit", HABIT), ("fresh", FRESH)):
            policy = memlab.load_pack(pack).policies["recall-score"]
            head = (
                frame.select("decision", "memory_id", score=policy.columns(frame, by="decision"))
                .sort("decision", "score", "memory_id", descending=[False, True, False])
                .filter(pl.int_range(pl.len()).over("decision") < 5)
            )
            mine = weighed.join(head, on=["decision", "memory_id"], how="semi")
            values[name] = (mine["weight"] * mine["reward"]).sum() / mine["weight"].sum()
        right.append(values["fresh"] > values["habit"])
    assert sum(right) >= 18


def test_packs_are_live_from_their_day_on(reversal):
    decisions = reversal.slates.decisions.select("at", "pack").sort("at").collect()
    changes = [(one, two) for one, two in pairwise(decisions["pack"].to_list()) if one != two]
    assert changes == [("habit", "fresh")]
    start, first = decisions["at"][0], decisions.filter(pl.col("pack") == "fresh")["at"][0]
    assert (first.date() - start.date()).days >= reversal.world.days // 2 - 2


def test_in_same_every_policy_that_shows_five_is_worth_the_same():
    with live(small("same")) as life:
        values = [life.truth(pack) for pack in ("memlab", OTHER, "workbench")]
        values.append(life.truth(pl.col("age-days")))
    assert values == pytest.approx([values[0]] * 4, abs=1e-12)


def test_a_log_without_probes_leaves_nothing_to_chance():
    with live(small("differs", packs=((0, SURE),))) as life:
        assert life.slates.decisions.collect()["sampler"].unique().to_list() == ["deterministic"]
        assert life.slates.exposures.collect().group_by("decision").len()["len"].max() <= 5


def test_a_life_on_disk_is_the_same_life(tmp_path, fortnight):
    with live(small("differs"), pack=SINGLE, path=tmp_path / "agent.memlab") as life:
        assert feedback_of(life) == feedback_of(fortnight)
        assert life.truth("companion") == fortnight.truth("companion")
    with pytest.raises(InputError, match="already has"):
        live(small("differs"), pack=SINGLE, path=tmp_path / "agent.memlab")


def test_a_world_without_questions_is_no_life():
    with pytest.raises(InputError, match="nothing to simulate"):
        live(World("mute", days=2, projects=1, questions_per_day=0))
    with pytest.raises(InputError, match="nothing to simulate"):
        live(World("mute", days=2, projects=1, phases=(Phase(questions=0),)))


def test_wrong_choices_are_named(fortnight):
    with pytest.raises(UnknownName, match="recall"):
        fortnight.truth("memlab", how="recal")
    with pytest.raises(InputError, match="expression"):
        fortnight.truth(pl.col("score"), how="recall")
