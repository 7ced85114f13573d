"""What a score owes to each feature: against the plain way, which changes one value after another."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import examples

from memlab.errors import InputError, UnknownName
from memlab.language import Input, Policy, Signature, compile_policy
from memlab.language._sensitivity import turned_pairs
from tests.language.insight.test_tree import Page
from tests.language.programs import ARGUMENTS, BOOL, NUM, SCHEMA, STR, bits, program, rows

INPUTS = [
    *(Input(name) for name in ("x", "y", "age_days")),
    Input("pinned", "bool"),
    Input("kind", "str"),
    Input("mood", "str", words=("calm", "glad", "sad")),
    Input("tags", "set"),
]
SLOT = Signature("score", INPUTS, aggregates=True)
SLOTS = {"num": NUM, "bool": BOOL, "str": STR}
sensitivity, slate_sensitivity = Policy.sensitivity, Policy.slate_sensitivity
QUICK = examples(50, quick=8, suppress_health_check=list(HealthCheck))


def policy(body: str, slot: Signature = SLOT) -> Policy:
    return compile_policy(f"(fn [x y age-days pinned kind mood tags] {body})", slot)


@pytest.fixture
def slate() -> pl.DataFrame:
    chance = np.random.default_rng(7)
    size = 40
    return pl.DataFrame(
        {
            "memory_id": np.arange(size) + 1,
            "x": chance.random(size),
            "y": chance.random(size),
            "age_days": chance.integers(0, 100, size),
            "pinned": chance.random(size) < 0.3,
            "kind": chance.choice(["fact", "event", "plan"], size),
            "mood": chance.choice(["calm", "glad", "sad"], size),
            "tags": [["a"] if c < 0.5 else ["a", "b"] for c in chance.random(size)],
        }
    )


BODIES = [
    '(+ (* 0.4 x) (* y y) (if pinned 1 0) (case kind "fact" 1 "event" 0.5 else 0) (half-life-decay age-days 30))',
    "(+ (min-max x) (* 0.5 (min-max y)) (/ 1 (slate-rank age-days)) (if pinned 0.2 0))",
    '(if (has tags "b") x (* y (size tags)))',
    '(if (and pinned (= mood "glad")) x null)',
]


class TestOneItem:
    def test_each_feature_alone(self, slate: pl.DataFrame) -> None:
        found = sensitivity(policy("(+ (* 0.4 x) (if pinned 1 0))"), 3, slate)
        x, pinned = slate["x"], slate["pinned"][3]
        low, high = (float(np.quantile(x, share, method="nearest")) for share in (0.1, 0.9))
        assert found.slopes == {"x": pytest.approx(0.4)}
        told = {(c.feature, c.at): c.change for c in found.changes}
        assert told == {
            ("pinned", "flip"): pytest.approx(-1.0 if pinned else 1.0),
            ("x", "10%"): pytest.approx(0.4 * (low - x[3])),
            ("x", "90%"): pytest.approx(0.4 * (high - x[3])),
        }
        assert found.changes[0].feature == "pinned"

    @pytest.mark.parametrize("body", BODIES)
    @pytest.mark.parametrize("row", [0, 17])
    def test_changes_are_those_of_the_slate_with_one_value_changed(
        self, slate: pl.DataFrame, body: str, row: int
    ) -> None:
        asked = policy(body)
        base = slate.with_columns(
            slate["tags"].list.contains("b").alias('(has tags "b")'), slate["tags"].list.len().alias("(size tags)")
        )
        for change in sensitivity(asked, row, slate).changes:
            name = change.feature.replace("-", "_") if change.feature not in base.columns else change.feature
            values = base[name].to_list()
            values[row] = change.to
            brute = asked.columns(base.with_columns(pl.Series(name, values, strict=False)))[row]
            assert bits(change.result) == bits(brute)

    @pytest.mark.parametrize("body", BODIES[:2])
    def test_slopes_are_central_differences(self, slate: pl.DataFrame, body: str) -> None:
        asked = policy(body)
        for name, slope in sensitivity(asked, 5, slate).slopes.items():
            column = name.replace("-", "_")
            low, high = (np.quantile(slate[column], share, method="nearest") for share in (0.1, 0.9))
            spread = float(high) - float(low)
            ends = []
            for step in (-1e-3 * spread, 1e-3 * spread):
                values = slate[column].cast(pl.Float64).to_list()
                values[5] += step
                ends.append(asked.columns(slate.with_columns(pl.Series(column, values)))[5])
            assert slope == pytest.approx((ends[1] - ends[0]) / (2e-3 * spread), rel=1e-6, abs=1e-9)

    def test_slopes_approach_the_derivative(self) -> None:
        found = sensitivity(policy("(* x x (exp y))"), {"x": 3.0, "y": -1.0})
        assert found.slopes["x"] == pytest.approx(6 * math.exp(-1), rel=1e-6)
        assert found.slopes["y"] == pytest.approx(9 * math.exp(-1), rel=1e-6)
        assert found.changes == ()
        assert found.frame.select("feature", "slope").rows() == [("x", found.slopes["x"]), ("y", found.slopes["y"])]

    def test_words_are_those_declared_or_those_of_the_slate(self, slate: pl.DataFrame) -> None:
        asked = policy('(+ (case mood "glad" 1 else 0) (case kind "fact" 2 else 0))')
        item = {"mood": "sad", "kind": "fact"}
        assert [(c.feature, c.to, c.change) for c in sensitivity(asked, item).changes] == [
            ("mood", "glad", 1.0),
            ("mood", "calm", 0.0),
        ]
        kinds = {c.to: c.change for c in sensitivity(asked, item, slate).changes if c.feature == "kind"}
        assert kinds == {"event": -2.0, "plan": -2.0}

    def test_null_has_no_slope_and_can_still_be_set(self, slate: pl.DataFrame) -> None:
        found = sensitivity(policy("(if pinned 1 (if-null x 0))"), {"x": None, "pinned": None}, slate)
        assert found.slopes == {"x": None}
        assert {c.to for c in found.changes if c.feature == "pinned"} == {False, True}
        assert all(c.value is None for c in found.changes)

    def test_a_word_as_result_says_what_it_would_be(self) -> None:
        label = Signature("label", INPUTS, "str")
        (change,) = sensitivity(policy('(if pinned "keep" "drop")', label), {"pinned": False}).changes
        assert (change.result, change.change) == ("keep", None)

    def test_errors_say_what_to_pass(self, slate: pl.DataFrame) -> None:
        with pytest.raises(InputError, match="pass the slate"):
            sensitivity(policy("(min-max x)"), {"x": 1.0})
        with pytest.raises(InputError, match="pass the slate"):
            sensitivity(policy("x"), 3)
        with pytest.raises(InputError, match="40 rows"):
            sensitivity(policy("x"), 40, slate)
        with pytest.raises(UnknownName, match="Did you mean x"):
            sensitivity(policy("x"), 1, slate.rename({"x": "xx"}))

    def test_text_and_html(self, slate: pl.DataFrame) -> None:
        found = sensitivity(policy('(+ (* 2 x) (case kind "<b>" 1 else 0))'), {"x": 0.5, "kind": "<b>"}, slate)
        assert "one feature changed" in repr(found)
        assert "slopes: x 2" in repr(found)
        page = Page(found._repr_html_())
        assert (page.open, "<b>" in page.text) == ([], True)
        assert page.text.count('"<b>"') == 3


class TestSlate:
    @pytest.mark.parametrize("body", BODIES)
    def test_effects_equal_the_plain_way(self, slate: pl.DataFrame, body: str) -> None:
        asked = policy(body)
        base = slate.with_columns(
            slate["tags"].list.contains("b").alias('(has tags "b")'), slate["tags"].list.len().alias("(size tags)")
        )

        def order(values: list[float | None]) -> list[int]:
            return sorted(range(len(values)), key=lambda i: (-(-math.inf if values[i] is None else values[i]), i))

        now = asked.columns(base).to_list()
        for effect in slate_sensitivity(asked, slate, top=5).effects:
            name = effect.feature if effect.feature in base.columns else effect.feature.replace("-", "_")
            new = asked.columns(base.with_columns(pl.Series(name, [effect.to] * 40))).to_list()
            gaps = [abs(b - a) for a, b in zip(now, new, strict=True) if a is not None and b is not None]
            assert effect.moved == pytest.approx(np.mean(gaps) if gaps else 0.0, abs=1e-15)
            assert effect.changed == np.mean([a != b for a, b in zip(now, new, strict=True)])
            before, after = order(now), order(new)
            assert effect.lost == len(set(before[:5]) - set(after[:5]))
            flips = sum(
                (before.index(i) < before.index(j)) != (after.index(i) < after.index(j))
                for i, j in combinations(range(40), 2)
            )
            assert effect.turned == flips / 780

    def test_what_is_not_read_is_not_listed_and_what_turns_most_stands_first(self, slate: pl.DataFrame) -> None:
        found = slate_sensitivity(policy("(+ (* 10 x) y)"), slate)
        assert [e.feature for e in found.effects] == ["x", "y"]
        assert found.frame["turned"][0] > found.frame["turned"][1] > 0

    def test_a_typical_value_is_one_that_occurs(self, slate: pl.DataFrame) -> None:
        effects = {e.feature: e.to for e in slate_sensitivity(policy(BODIES[0]), slate).effects}
        assert effects["age-days"] in slate["age_days"].to_list()
        assert effects["pinned"] is False
        assert slate.filter(pl.col("kind") == effects["kind"]).height == slate["kind"].value_counts()["count"].max()

    def test_words_have_no_order(self, slate: pl.DataFrame) -> None:
        label = Signature("label", INPUTS, "str")
        (effect,) = slate_sensitivity(policy('(if pinned "keep" "drop")', label), slate).effects
        assert (effect.moved, effect.turned, effect.lost) == (None, None, None)
        assert effect.changed == slate["pinned"].mean()

    def test_empty_and_single_slates(self, slate: pl.DataFrame) -> None:
        with pytest.raises(InputError, match="empty"):
            slate_sensitivity(policy("x"), slate.head(0))
        (effect,) = slate_sensitivity(policy("x"), slate.head(1)).effects
        assert (effect.turned, effect.lost) == (0.0, 0)

    def test_text_and_html(self, slate: pl.DataFrame) -> None:
        found = slate_sensitivity(policy(BODIES[0]), slate)
        assert repr(found).startswith("score over 40 items")
        assert Page(found._repr_html_()).open == []


def test_a_record_is_refused_by_name(slate: pl.DataFrame) -> None:
    record = policy("(update :x (* 2 x))", Signature("reinforce", INPUTS, "record", fields=("x",)))
    with pytest.raises(InputError, match=r"policy\.field\('x'\)\.sensitivity"):
        sensitivity(record, {"x": 1.0})
    with pytest.raises(InputError, match=r"policy\.field\('x'\)\.sensitivity"):
        slate_sensitivity(record, slate)
    assert sensitivity(record.field("x"), {"x": 1.0}).slopes == {"x": pytest.approx(2.0)}


@given(st.permutations(range(13)), st.permutations(range(13)))
def test_pairs_turned_are_counted(before: list[int], after: list[int]) -> None:
    brute = sum(
        (before.index(i) < before.index(j)) != (after.index(i) < after.index(j)) for i, j in combinations(range(13), 2)
    )
    assert turned_pairs(np.array(before), np.array(after)) == brute


@pytest.mark.long
@QUICK
@given(
    st.sampled_from(["num", "bool", "str"]).flatmap(lambda t: st.tuples(st.just(t), program(t, 3, inexact=True))),
    rows,
)
def test_any_program_on_any_slate(case: tuple[str, str], table: list[dict]) -> None:
    """Every result is that of the row with one value changed, bit for bit."""
    type, body = case
    asked = compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[type])
    slate = pl.DataFrame(table, schema=SCHEMA)
    found = sensitivity(asked, 0, slate)
    assert bits(found.value) == bits(asked.row(table[0]))
    for change in found.changes:
        assert bits(change.result) == bits(asked.row({**table[0], change.feature: change.to}))
    slate_sensitivity(asked, slate)
