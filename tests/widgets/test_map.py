"""The Python half of the memory map: where points lie, what colours them, neighbourhoods and activation."""

import io

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.ui.widgets import MemoryMap
from tests.widgets.shared import shared


def read(given):
    return pl.read_ipc_stream(io.BytesIO(given))


@pytest.fixture
def chart(asked):
    return MemoryMap(asked)


def test_every_memory_is_a_point_within_the_square(chart):
    points = read(shared(chart, "points"))
    assert points["id"].to_list() == [1, 2, 3, 4, 5, 6]
    assert points.select(pl.col("x", "y").abs().max()).row(0) <= (1, 1)
    assert 0 < shared(chart, "about")["kept"] <= 1


def test_a_map_is_the_same_each_time(chart, asked):
    assert shared(chart, "points") == shared(MemoryMap(asked), "points")


def test_axes_are_those_of_most_variance():
    from memlab.ui.widgets import principal_axes

    dice = np.random.default_rng(1)
    given = (
        dice.normal(size=(500, 3)) @ dice.normal(size=(3, 16)) * [9] + dice.normal(size=(500, 16))
    ).clip(-127, 127)
    vectors = (given * 3).clip(-127, 127).astype(np.int8)
    units = vectors / np.linalg.norm(vectors.astype(float), axis=1, keepdims=True)
    centred = units - units.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    places, kept = principal_axes(vectors)
    assert np.abs(places) == pytest.approx(np.abs(u[:, :2] * s[:2]), abs=1e-4)
    assert kept == pytest.approx(float((s[:2] ** 2).sum() / (s**2).sum()), abs=1e-4)


def test_colours_by_kind_are_words_of_a_legend(chart):
    legend = shared(chart, "about")["legend"]
    assert legend["words"][0] == ["fact", 3]
    assert sorted(read(shared(chart, "shades"))["place"].to_list()) == [0, 0, 0, 1, 1, 2]


def test_many_words_share_the_last_place(lab):
    lab.remember([{"text": f"Of kind {kind}", "kind": kind} for kind in memlab.KINDS[:12]])
    chart = MemoryMap(lab)
    assert shared(chart, "about")["legend"]["words"][-1] == ["5 others", 5]
    assert read(shared(chart, "shades"))["place"].max() == 7


def test_retention_and_recall_are_scales(chart, asked, clock):
    asked.recall("tabs")
    clock.advance(days=20)
    asked.remember("New")
    chart.colour = "retention"
    chart.send_state  # noqa: B018
    assert chart.answer({"id": 1, "verb": "refresh", "arguments": {}})[0]["value"] == {}
    values = read(shared(chart, "shades"))["value"].to_list()
    assert values[-1] == max(values)
    chart.colour = "recalled"
    assert shared(chart, "about")["legend"]["ends"][1] == "now"


def test_clusters_are_words_once_they_are_found(chart, asked):
    chart.colour = "cluster"
    assert shared(chart, "about")["legend"]["none"] == 6
    assert chart.fault == ""


def test_a_lasso_is_a_selection_of_memories(chart, asked):
    assert asked.memories.filter(chart.selection).height == 6
    chart.ids = [2, 4]
    assert asked.memories.filter(chart.selection)["id"].to_list() == [2, 4]


def test_a_neighbourhood_has_the_edges_of_a_memory_and_its_nearest(chart, asked, ask):
    asked.graph.link(1, 5, "contradicts")
    tagged = asked.remember("Tabs again", tags=["style"])
    asked.graph.link(5, tagged.id)
    found = ask(chart, "graph", seeds=1, depth=2)
    names = {(one["kind"], one["id"]): place for place, one in enumerate(found["nodes"].to_dicts())}
    edges = {(one["source"], one["target"], one["relation"]) for one in found["edges"].to_dicts()}
    assert (names["memory", 1], names["memory", 5], "contradicts") in edges
    assert "near" in found["edges"]["relation"].to_list()
    assert found["nodes"]["hops"].max() <= 2
    assert ask(chart, "graph", seeds=1, most=2)["nodes"].height == 2


@pytest.mark.long
def test_activation_spreads_step_by_step_as_the_lab_says(chart, asked, ask):
    before = asked.log.height
    for other in (2, 3):
        asked.graph.link(1, other)
    asked.graph.link(3, 4)
    found = ask(chart, "spread", question="tabs or spaces?", steps=2)
    place = {
        id: at
        for at, (kind, id) in enumerate(found["nodes"].select("kind", "id").rows())
        if kind == "memory"
    }
    last = {one["node"]: one["activation"] for one in found["active"].filter(step=2).to_dicts()}
    for one in asked.graph.activate(found["seeds"], steps=2).to_dicts():
        assert last[place[one["id"]]] == pytest.approx(one["activation"])
    assert set(found["active"].filter(step=0)["node"]) == {place[id] for id in found["seeds"]}
    assert asked.log.height == before + 3  # the edges, and no recall


def test_what_is_looked_at_says_who_and_when(chart, ask):
    rows = ask(chart, "look", memories=[3])["rows"]
    assert rows["text"][0].startswith("The user wrote: spaces <b>")
    assert "99" in ask(chart, "look", memories=[99])


@pytest.mark.parametrize(
    ("trait", "value", "said"),
    [("colour", "knd", "Did you mean kind?")],
)
def test_what_cannot_be_shown_is_said_and_the_map_goes_on(chart, trait, value, said):
    good = getattr(chart, trait)
    setattr(chart, trait, value)
    assert said in chart.fault
    setattr(chart, trait, good)
    assert chart.fault == ""


def test_labs_of_no_and_few_memories(lab, ask):
    chart = MemoryMap(lab)
    assert (read(shared(chart, "points")).height, chart.fault) == (0, "")
    assert "No memory matches" in ask(chart, "spread", question="x")
    lab.remember("One")
    ask(chart, "refresh")
    assert read(shared(chart, "points")).height == 1


def test_more_than_can_be_drawn_is_an_even_sample(asked, monkeypatch):
    monkeypatch.setattr("memlab.ui.widgets._map._MOST", 3)
    chart = MemoryMap(asked)
    assert (shared(chart, "about")["shown"], shared(chart, "about")["memories"]) == (3, 6)


def test_a_lab_closed_under_it_is_said(chart, asked, ask):
    asked.close()
    assert "was closed" in ask(chart, "refresh")
    assert "was closed" in ask(chart, "graph", seeds=1)
    chart.colour = "status"
    assert "was closed" in chart.fault


def test_two_maps_on_one_lab_are_two(chart, asked):
    other = MemoryMap(asked, colour="status")
    other.ids = [1]
    assert (chart.ids, chart.colour) == ([], "kind")


TOPICS = ["harbour boats", "garden roses", "bakery bread", "guitar music"]


@pytest.mark.long
def test_regions_are_named_by_words_that_set_them_apart(lab):
    lab.remember([f"The {TOPICS[n % 4]} were the subject of talk {n}" for n in range(240)])
    regions = shared(MemoryMap(lab), "about")["regions"]
    assert 2 <= len(regions) <= 12
    named = {word for words, _, _ in regions for word in words.split(" · ")}
    assert named >= {"harbour", "garden", "bakery", "guitar"}
    assert not named & {"talk", "subject", "the"}  # words of all regions set none apart
    assert all(-1 <= x <= 1 and -1 <= y <= 1 for _, x, y in regions)


@pytest.mark.long
def test_words_of_a_purged_memory_leave_the_labels(lab):
    lab.remember([f"The {TOPICS[n % 4]} were the subject of talk {n}" for n in range(120)])
    chart = MemoryMap(lab)
    assert "guitar" in str(shared(chart, "about")["regions"])
    lab.purge([memory for memory in range(1, 121) if "guitar" in lab[memory].text])
    chart.refresh()
    assert "guitar" not in str(shared(chart, "about")["regions"])


def test_a_viewer_is_shown_words_of_own_texts_only(lab):
    lab.remember(
        [
            {
                "text": f"The {TOPICS[n % 4]} were the subject of talk {n}",
                "creator": "Ada" if n % 4 < 3 else "Bo",
                "visibility": "private",
            }
            for n in range(120)
        ]
    )
    regions = str(shared(MemoryMap(lab.at(viewer="Ada")), "about")["regions"])
    assert "bakery" in regions
    assert "guitar" not in regions


def test_outliers_keep_their_order_and_form_no_line():
    from memlab.ui.widgets._map import _spanned

    places = np.column_stack([np.arange(1000.0), np.zeros(1000)])
    places[-20:, 0] = 10.0 ** np.arange(4, 9, 0.25)
    spanned = _spanned(places.astype(np.float32))[:, 0]
    assert (np.diff(spanned) > 0).all()
    assert np.abs(spanned).max() == 1
    assert (spanned[-20:] < 0.99).sum() >= 15


def test_speakers_and_sessions_are_words_and_dates_a_scale(lab, clock):
    lab.remember("First", speaker="Ada", session="s1")
    clock.advance(days=10)
    lab.remember("Second", speaker="Bo", session="s1")
    chart = MemoryMap(lab, colour="speaker")
    assert sorted(shared(chart, "about")["legend"]["words"]) == [["Ada", 1], ["Bo", 1]]
    chart.colour = "session"
    assert shared(chart, "about")["legend"]["words"] == [["s1", 2]]
    chart.colour = "created"
    assert read(shared(chart, "shades"))["value"].to_list() == [0, 1]
    first, last = shared(chart, "about")["legend"]["ends"]
    assert first < last
