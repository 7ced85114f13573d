"""What becomes of memories that nobody uses: every pack's closed form against a computation of its own."""

import io
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from fsrs import Card, Scheduler
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.image import imread
from properties import examples

import memlab
from memlab.errors import InputError, UnknownName
from memlab.kernel.base.clock import DAY, from_micros, to_micros
from memlab.kernel.policies import load_pack
from memlab.kernel.schema import RECALLABLE
from memlab.subjects.drawing import CYCLE, INK
from memlab.subjects.retention.upkeep import find_transitions
from tests.displays import html_of, png_of

BEGIN = to_micros("2026-03-01T12:00:00")
CLOSE = 1e-12
SCHEDULER = Scheduler()
PACKS = sorted(memlab.packs())
KINDS = [
    "fact",
    "preference",
    "procedure",
    "correction",
    "negative",
    "gotcha",
    "decision",
    "context",
    "pr-review",
]


def alone(name):
    """Return a pack in which memories are not compared, so that time alone changes them."""
    return f'(pack {name}-alone :inherits {name}) (setting linking "off")'


def lived(embedder):
    """Return a lab of varied memories, a year old at most and recalled up to seven times, and their values."""
    dice = np.random.default_rng(7)
    lab = memlab.open(embedder=embedder, clock=memlab.ManualClock(BEGIN), pack=alone("memlab"))
    rows = [
        {
            "text": f"memory {number}",
            "kind": KINDS[number % len(KINDS)],
            "provenance": ["user-stated", "observed", "inferred", "extracted"][number % 4],
            "at": BEGIN - int(dice.integers(0, 365 * DAY)),
            "confidence": float(dice.uniform(0, 1)),
            "strength": float(dice.uniform(0, 100)),
            "emotional_weight": float(dice.uniform(0, 100)),
            "energy": float(dice.uniform(0, 1)),
            "stability": None if number % 5 == 0 else float(dice.uniform(0.1, 200)),
            "pinned": number % 7 == 0,
        }
        for number in range(40)
    ]
    lab.remember(rows)
    uses = {}
    with lab.io.store.writing() as tx:
        for id, row in enumerate(rows, 1):
            times = sorted(int(time) for time in dice.integers(row["at"], BEGIN, id % 8))
            for time in times:
                tx.event("recall", {"ids": [id]}, at=time)
            uses[id] = [row["at"], *times]
        for id in range(1, 41, 3):
            for outcome in ["success"] * (id % 4) + ["fail"] * (id % 3):
                tx.event("feedback", {"memory": id, "outcome": outcome}, at=BEGIN)
    known = {}
    for row in lab.memories.iter_rows(named=True):
        known[row["id"]] = {
            **row,
            "uses": uses[row["id"]],
            "born": uses[row["id"]][0],
            "last": uses[row["id"]][-1],
        }
    return lab, known


@pytest.fixture(scope="module")
def life(trigrams):
    return lived(trigrams)


# What each system says, in plain Python: (retention, half-life in days) of a memory at an instant.


def by_default(row, now):
    return 0.5 ** ((now - row["last"]) / DAY / 30), 30


def by_associative(row, now):
    half = 30 * (0.5 + 1.5 * row["success"] / (row["success"] + row["fail"] + 1))
    return row["energy"] * 0.5 ** ((now - row["last"]) / DAY / half), half


def by_workbench(row, now):
    days = {
        "decision": math.inf,
        "preference": 180,
        "pr-review": 90,
        "gotcha": 60,
        "context": 7,
    }.get(row["kind"], 30)
    days = math.inf if row["pinned"] else days
    return math.exp(-math.log(2) / days * ((now - row["last"]) / DAY)), days


def by_cascade(row, now):
    time = {"correction": 365, "negative": 365, "preference": 90, "procedure": 60}.get(
        row["kind"], 30
    )
    time = 7 if row["provenance"] == "inferred" else time
    trust = {"user-stated": 1.0, "observed": 0.8, "inferred": 0.6, "extracted": 0.7}[
        row["provenance"]
    ]
    faded = row["confidence"] * math.exp(-(now - row["born"]) / DAY / time)
    return min(1, max(0, faded * (1 + 0.1 * math.log(row["access"] + 1)) * trust)), time * math.log(
        2
    )


def by_companion(row, now):
    user_fact = row.get("kind") in ("personal", "preference", "goal", "trait")
    loss = (
        0 if user_fact else max(2, 5 - 0.03 * row["emotional_weight"]) * (now - row["last"]) / DAY
    )
    return min(100, max(0, row["strength"] - loss)) / 100, 30


def by_factgraph(row, now):
    return 0.95 ** (max(0, (now - row["last"]) / DAY - 7) / 7), 30


def by_fsrs(row, now):
    first_good = 2.3065
    card = Card(
        stability=row["stability"] or first_good,
        difficulty=5.0,
        last_review=from_micros(row["last"]),
    )
    return SCHEDULER.get_card_retrievability(card, from_micros(now)), 30


def by_actr(row, now):
    ages = [max((now - use) / DAY, 0.05 / 86_400) for use in row["uses"]]
    strength = math.log(math.fsum(age**-0.5 for age in ages))
    return 1 / (1 + math.exp((-1.7 - strength) / 0.25)), 30


FORMULAS = {
    "memlab": by_default,
    "associative": by_associative,
    "workbench": by_workbench,
    "cascade": by_cascade,
    "companion": by_companion,
    "factgraph": by_factgraph,
    "fsrs": by_fsrs,
    "actr": by_actr,
}
FORMULAS |= {
    f"{name}-plus": FORMULAS[name]
    for name in ("associative", "cascade", "companion", "factgraph", "workbench")
}
"""A plus pack lets memories fade as the design that it is named after."""
spans = st.floats(math.log(60e6), math.log(30 * 365 * DAY)).map(lambda log: round(math.exp(log)))


class TestClosedForms:
    def test_every_pack_has_a_formula_here(self):
        assert sorted(FORMULAS) == PACKS

    @pytest.mark.long
    @pytest.mark.parametrize("name", PACKS)
    @examples(40, quick=5)
    @given(
        after=st.floats(0, 400).map(lambda days: round(days * DAY)),
        span=spans,
        points=st.integers(2, 9),
    )
    def test_the_curve_is_the_formula_at_any_time(self, life, name, after, span, points):
        lab, known = life
        begin = BEGIN + after
        result = lab.upkeep.forecast(
            list(known), begin + span, points=points, packs=[name], at=begin
        )
        assert result.frame.height == len(known) * len(set(result.frame["at"]))
        frame = result.frame.with_columns(pl.col("at").to_physical())
        for row in frame.iter_rows(named=True):
            retention, half = FORMULAS[name](known[row["memory_id"]], row["at"])
            # where a curve has come down to less than any double, the two may differ in what is left of nothing
            assert row["retention"] == pytest.approx(retention, rel=CLOSE, abs=1e-300)
            assert row["half_life"] == (half if half < 1e200 else 1e300) or math.isclose(
                row["half_life"], half
            )
        assert frame["at"].min() == begin
        assert frame["at"].max() == begin + span

    @pytest.mark.long
    @examples(60)
    @given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 60))
    def test_a_single_memory_of_companion(self, trigrams, strength, feeling, days):
        lab = memlab.open(
            embedder=trigrams, clock=memlab.ManualClock(BEGIN), pack=alone("companion")
        )
        lab.remember("x", strength=strength, emotional_weight=feeling)
        until = BEGIN + max(round(days * DAY), 1)
        row = {"strength": strength, "emotional_weight": feeling, "last": BEGIN}
        result = lab.upkeep.forecast(1, until, points=2).frame["retention"].to_list()
        assert result == pytest.approx(
            [by_companion(row, at)[0] for at in (BEGIN, until)], rel=CLOSE, abs=CLOSE
        )


class TestTransitions:
    @pytest.mark.long
    def test_companion_to_the_second(self, lab):
        """At an emotional weight of 50 a memory loses 3.5 a day."""
        lab.policies.use(alone("companion"))
        lab.remember("x", emotional_weight=50)
        rows = lab.upkeep.forecast(1, "2026-06-01").transitions.filter(pl.col("from").is_not_null())
        wanted = [("clear", 20), ("hazy", 50), ("fragment", 80), ("deleted", 100)]
        assert rows["to"].to_list() == [word for word, _ in wanted]
        for at, (_, lost) in zip(rows["at"], wanted, strict=True):
            exact = datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(days=lost / 3.5)
            assert timedelta(seconds=-1e-3) < at - exact < timedelta(seconds=1)

    def test_half_lives_and_a_time_to_live(self, lab):
        lab.remember("x", ttl_days=50)
        rows = lab.upkeep.forecast(1, "2026-06-01", points=3).transitions.filter(
            pl.col("from").is_not_null()
        )
        days = [
            (at - datetime(2026, 3, 1, 12, tzinfo=UTC)) / timedelta(days=1) for at in rows["at"]
        ]
        assert rows.select("what", "to").rows() == [
            ("label", "clear"),
            ("label", "hazy"),
            ("status", "expired"),
        ]
        assert days == pytest.approx([30 * math.log2(1 / 0.8), 30, 50], abs=2 / 86_400)

    @pytest.mark.long
    def test_an_unlabelled_memory_gets_its_first_label_at_once(self, lab):
        lab.remember("x")
        row = lab.upkeep.forecast(1, "2026-03-02").transitions.row(0, named=True)
        assert (row["from"], row["to"], row["at"]) == (
            None,
            "vivid",
            datetime(2026, 3, 1, 12, tzinfo=UTC),
        )
        lab.upkeep.maintain()
        assert lab.upkeep.forecast(1, "2026-03-02").transitions.is_empty()

    @pytest.mark.long
    @pytest.mark.parametrize("name", [name for name in PACKS if name != "factgraph"])
    def test_a_forecast_equals_a_pass_at_that_time(self, life, name):
        """Under factgraph a pass that comes after has more to do: what was retracted is cleaned up."""
        lab, known = life
        frame = lab.upkeep.forecast(list(known), BEGIN + 200 * DAY, points=6, packs=[name]).frame
        rows = np.arange(len(known))
        for (at,), part in frame.group_by(pl.col("at").to_physical()):
            found = find_transitions(lab.io.store.state, load_pack(name), rows, at).frame
            told = {(row["id"], row["what"]): row["to"] for row in found.iter_rows(named=True)}
            for row in part.iter_rows(named=True):
                assert row["status"] == told.get((row["memory_id"], "status"), "active")
                if row["status"] in RECALLABLE:
                    assert row["label"] == told.get((row["memory_id"], "label"))

    @pytest.mark.long
    def test_frame_and_transitions_tell_the_same(self, life):
        lab, known = life
        result = lab.upkeep.forecast(list(known), BEGIN + 400 * DAY, points=40, packs=PACKS)
        for (pack, id), moved in result.transitions.group_by("pack", "memory_id"):
            curve = result.frame.filter(pack=pack, memory_id=id)
            for what in ("status", "label"):
                steps = moved.filter(what=what).sort("at")
                assert steps["from"].to_list()[1:] == steps["to"].to_list()[:-1]
                at_point = steps.sort("at").join_asof(
                    curve.select("at").sort("at"), on="at", strategy="forward"
                )
                assert at_point.height == steps.height
                last = curve.sort("at")[what].to_list()[-1]
                assert steps.is_empty() or steps["to"].to_list()[-1] == last

    @pytest.mark.long
    def test_memories_outside_recall_are_not_followed(self, lab):
        lab.policies.use(alone("factgraph"))
        lab.remember("x", confidence=0.3)
        moved = lab.upkeep.forecast(1, "2027-03-01").transitions.filter(what="status")
        assert moved["to"].to_list() == ["staged", "retracted"]


class TestAsked:
    @pytest.mark.long
    def test_the_live_pack_unless_said_and_nothing_is_written(self, lab):
        lab.policies.use(alone("companion"))
        lab.remember(["a", "b"])
        head = lab.io.store.journal.head
        result = lab.upkeep.forecast([2, lab[1]], "2026-04-01", points=5)
        assert result.packs == (("companion-alone", lab.policies.pack.hash),)
        assert result.frame.select("memory_id").to_series().to_list() == [1] * 5 + [2] * 5
        assert result.texts == ((1, "a"), (2, "b"))
        assert lab.io.store.journal.head == head

    @pytest.mark.long
    def test_packs_of_equal_name_are_distinguished(self, lab):
        lab.remember("a")
        two = [f"(pack mine) (setting base-half-life {days})" for days in (3, 30)]
        names = lab.upkeep.forecast(1, "2026-04-01", packs=two).frame["pack"].unique().to_list()
        assert len(names) == 2
        assert all(name.startswith("mine [") for name in names)

    @pytest.mark.long
    def test_a_single_pack_by_name(self, lab):
        lab.remember("a")
        assert lab.upkeep.forecast(1, "2026-04-01", packs="fsrs").frame[
            "pack"
        ].unique().to_list() == ["fsrs"]

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"until": "2026-03-01T12:00:00"}, InputError, "must be after the beginning"),
            ({"until": "2020-01-01"}, InputError, "must be after the beginning"),
            ({"points": 1}, InputError, "from 2 to 10,000"),
            ({"points": 2.5}, InputError, "whole number"),
            ({"points": True}, InputError, "whole number"),
            ({"packs": []}, InputError, "packs= is empty"),
            ({"packs": ["companoin"]}, UnknownName, "Did you mean companion"),
            ({"memories": 9}, UnknownName, 'no memory "9"'),
            ({"until": 2**62}, InputError, "until=.* must be in the years 1 to 9998"),
            ({"at": -(2**62)}, InputError, "at=.* must be in the years 1 to 9998"),
            (
                {"points": 10_000, "packs": ["memlab"] * 600},
                InputError,
                "exceed 5,000,000 values",
            ),
        ],
    )
    def test_impossible_forecasts_are_refused(self, lab, arguments, error, message):
        lab.remember("a")
        asked = {"memories": 1, "until": "2026-04-01"} | arguments
        with pytest.raises(error, match=message):
            lab.upkeep.forecast(asked.pop("memories"), asked.pop("until"), **asked)

    @pytest.mark.long
    def test_no_memories_give_empty_frames(self, lab):
        result = lab.upkeep.forecast([], "2026-04-01")
        assert (result.frame.height, result.transitions.height) == (0, 0)
        assert html_of(result)


@pytest.mark.long
class TestFigure:
    def test_a_panel_for_each_pack_and_a_line_for_each_memory(self, lab):
        lab.remember(["first $x_1$", "_second", "third " * 40])
        figure = lab.upkeep.forecast([1, 2, 3], "2026-04-01", packs=["companion", "fsrs"]).figure()
        left, right = figure.axes
        assert [left.get_title(loc="left"), right.get_title(loc="left")] == ["companion", "fsrs"]
        assert [text.get_text()[:10] for text in figure.legends[0].get_texts()] == [
            "1: first $",
            "2: _second",
            "3: third t",
        ]
        assert png_of(figure)[:4] == b"\x89PNG"

    def test_the_figure_is_drawn_on_the_callers_axes(self, lab):
        lab.remember(["first", "second"])
        result = lab.upkeep.forecast([1, 2], "2026-04-01", packs=["companion", "fsrs"])
        own = Figure()
        axes = own.subplots(1, 3)
        assert result.figure(axes=axes[1:]) is own
        assert [panel.get_title(loc="left") for panel in axes] == ["", "companion", "fsrs"]
        assert [text.get_text() for text in axes[1].get_legend().get_texts()] == [
            "1: first",
            "2: second",
        ]
        for wrong in (axes, [axes[0], Figure().subplots()], axes[0], [1, 2]):
            with pytest.raises(InputError, match="axes"):
                result.figure(axes=wrong)
        with pytest.raises(
            InputError,
            match=r"axes need one entry per panel: 2 axes of one figure, .* plt.subplots\(1, 2\).*, not 1",
        ):
            lab.graph.stats().figure(axes=axes[:1])
        assert lab.graph.stats().figure(axes=axes[:2]) is own

    def test_a_single_memory_has_a_line_for_each_pack(self, lab):
        lab.remember("a")
        for packs in (PACKS, [name for name in PACKS if not name.endswith("-plus")]):
            figure = lab.upkeep.forecast(1, "2026-04-01", packs=packs).figure()
            assert len(figure.axes) == 1
            (legend,) = figure.legends
            assert [text.get_text() for text in legend.get_texts()] == packs[: len(CYCLE)], (
                "as many as have a colour"
            )
            more = len(packs) - len(CYCLE)
            assert legend.get_title().get_text() == (
                f"and {more} more, not drawn" if more > 0 else ""
            )

    def test_a_picture_has_no_background_and_text_for_light_and_dark_pages(self, lab):
        lab.remember("a")
        picture = imread(io.BytesIO(png_of(lab.upkeep.forecast(1, "2026-06-01").figure())))
        assert picture[0, 0, 3] == picture[-1, -1, 3] == 0
        light, dark = 1.05, 0.0056 + 0.05  # white, and #111111 of JupyterLab
        red, green, blue = (
            ((int(INK[at : at + 2], 16) / 255 + 0.055) / 1.055) ** 2.4 for at in (1, 3, 5)
        )
        ink = 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05  # relative luminance of WCAG
        assert min(light / ink, ink / dark) > 4.2

    def test_a_line_is_the_retention(self, lab):
        lab.remember("a")
        result = lab.upkeep.forecast(1, "2026-03-31T12:00:00", points=4)
        line = result.figure().axes[0].lines[0]
        assert line.get_xdata().tolist() == [0, 10, 20, 30]
        assert line.get_ydata().tolist() == result.frame["retention"].to_list()

    def test_a_page_shows_figure_and_transitions_escaped(self, lab):
        lab.remember("<b>bold</b> & co")
        page = html_of(lab.upkeep.forecast(1, "2026-06-01", packs=["companion", "memlab"]))
        assert "<b>bold" not in page
        assert "<svg" in page
        assert "fragment" in page

    def test_more_memories_than_colours_are_counted(self, lab):
        lab.remember([f"memory {n}" for n in range(14)])
        figure = lab.upkeep.forecast(list(range(1, 15)), "2026-04-01", points=3).figure()
        assert figure.legends[0].get_title().get_text() == "and 4 more, not drawn"
