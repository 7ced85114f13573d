"""The Python half of the life player: frames of the past, the policies of events, and forecast curves."""

import io

import polars as pl
import pytest

import memlab
from memlab.kernel.schema import STATUSES
from memlab.ui.widgets import LifePlayer
from tests.widgets.shared import shared


@pytest.fixture
def lived(lab, clock):
    """Five memories; then one is corrected, one forgotten, one recalled and judged."""
    lab.remember([f"The user keeps a {what}" for what in ("cat", "dog", "fern", "boat", "diary")])
    clock.advance(days=40)
    lab.edit(2, text="The user keeps two dogs")
    lab.forget(3)
    lab.feedback(lab.recall("which cat?", limit=2)[0], "success")
    clock.advance(days=20)
    lab.remember("The user moved to Oslo")
    return lab


@pytest.fixture
def player(lived):
    return LifePlayer(lived)


def frame_of(given):
    return pl.read_ipc_stream(io.BytesIO(given))


def at(player, event):
    """The frame after an event, with statuses as words."""
    player.answer_frame(event)
    player.finish()
    words = pl.Series(STATUSES)
    return frame_of(shared(player, "frame")).with_columns(
        status=words.gather(frame_of(shared(player, "frame"))["status_a"].cast(pl.UInt32))
    )


@pytest.mark.long
def test_a_frame_is_the_lab_as_it_was(player, lived):
    first = shared(player, "about")["first"]
    for event in range(first, shared(player, "about")["head"] + 1):
        past = lived.at(event=event).memories
        found = at(player, event)
        assert found["id"].to_list() == past["id"].to_list()
        assert found["status"].to_list() == past["status"].to_list()


@pytest.mark.long
def test_what_is_left_is_what_the_forecast_says_of_both_packs(player, lived):
    found = at(player, shared(player, "about")["head"])
    ids = found["id"].to_list()
    for side, pack in (("a", "memlab"), ("b", "companion")):
        direct = lived.upkeep.forecast(ids, "2026-12-01", points=2, packs=pack).frame
        left = direct.group_by("memory_id", maintain_order=True).first()["retention"]
        assert (found[f"keep_{side}"] / 255).to_list() == pytest.approx(left.to_list(), abs=0.005)


@pytest.mark.long
def test_key_frames_reach_from_the_first_event_to_the_last(player, ask):
    assert ask(player, "frames", packs=["fsrs", "companion"]) == {}
    player.finish()
    events = frame_of(shared(player, "frames"))["event"].unique().to_list()
    assert events[-1] == shared(player, "about")["head"]
    assert player.packs == ["fsrs", "companion"]


@pytest.mark.long
def test_an_event_names_the_policies_that_decided_it(player, lived, ask):
    event = lived.log.filter(pl.col("kind") == "feedback")["event"][0]
    found = ask(player, "event", event=event)
    (decider,) = found["deciders"]
    version = lived.policies.deciders(lived.policies.pack.hash)["reinforce"]
    assert (decider["slot"], decider["hash"], decider["source"]) == (
        "reinforce",
        version.hash[:12],
        version.source,
    )
    assert found["memories"]["id"].to_list() == [1]
    assert 'There is no event "999"' in ask(player, "event", event=999)


@pytest.mark.long
def test_curves_follow_the_sliders(player, ask):
    head = shared(player, "about")["head"]
    assert [one["name"] for one in shared(player, "about")["params"]] == ["base-half-life"]
    ask(
        player,
        "curves",
        event=head,
        chosen=[1],
        until="2026-08-01",
        params={"base-half-life": 300.0},
    )
    player.finish()
    last = (
        frame_of(shared(player, "curves"))
        .group_by("tuned", maintain_order=True)
        .last()
        .sort("tuned")
    )
    assert last["retention"][1] > last["retention"][0] + 0.3
    assert player.chosen == [1]
    assert player.forecast.frame["memory_id"].unique().to_list() == [1]


@pytest.mark.long
def test_what_would_be_let_go_by_a_date(player, ask):
    ask(player, "frames", packs=["companion", "fsrs"])
    ask(player, "curves", event=0, chosen=[], until="2029-01-01", params={})
    player.finish()
    (side,) = shared(player, "gone")["sides"]
    assert 0 < side["count"] <= side["of"] == 7
    assert side["first"][0]["to"] == "deleted"


@pytest.mark.long
def test_a_purge_takes_what_was_kept_of_the_past(player, lived):
    player.fill()
    assert "diary" in frame_of(shared(player, "memories"))["text"].str.join(" ")[0]
    lived.purge(5)
    player.refresh()
    assert shared(player, "frames") == b""
    assert "diary" not in frame_of(shared(player, "memories"))["text"].str.join(" ")[0]


@pytest.mark.long
def test_new_events_reach_it(player, lived):
    head = shared(player, "about")["head"]
    lived.remember("The user sold the boat")
    player.refresh()
    assert shared(player, "about")["head"] > head
    assert frame_of(shared(player, "events"))["event"][-1] == shared(player, "about")["head"]


@pytest.mark.long
def test_two_players_on_one_lab_are_two(player, lived):
    other = LifePlayer(lived)
    assert at(player, 5).equals(at(player, 5))
    assert (player.event, other.event) == (5, 0)
    head = shared(other, "about")["head"]
    assert at(other, head).height == len(lived) > at(player, 5).height
    other.chosen = [1]
    assert player.chosen == []


@pytest.mark.long
def test_of_more_than_can_be_drawn_some_are_evenly_chosen(lived, monkeypatch):
    monkeypatch.setattr("memlab.ui.widgets._player._MOST", 3)
    player = LifePlayer(lived)
    assert (shared(player, "about")["drawn"], shared(player, "about")["memories"]) == (
        3,
        len(lived),
    )
    ids = frame_of(shared(player, "memories"))["id"].to_list()
    assert set(at(player, shared(player, "about")["head"])["id"]) == set(ids)
    assert (ids[0], ids[-1]) == (1, len(lived))


@pytest.mark.long
def test_an_empty_lab_and_a_closed_one_say_so(lab, ask):
    player = LifePlayer(lab)
    assert shared(player, "about")["memories"] == 0
    player.fill()
    assert "There is no event" in ask(player, "event", event=99)
    lab.close()
    assert (
        "was closed" in f"{ask(player, 'frames', packs=['memlab', 'fsrs'])} {settled_error(player)}"
    )


def settled_error(player):
    try:
        player.finish()
    except memlab.MemlabError as error:
        return error
    return ""


@pytest.mark.parametrize(
    "bad", [{"packs": ["memlab"]}, {"packs": ["memlab", "fsrss"]}, {"packs": 7}, {"until": 3}]
)
def test_a_constructor_refuses_what_it_cannot_show(lab, bad):
    with pytest.raises(memlab.InputError):
        LifePlayer(lab, **bad)


@pytest.mark.long
@pytest.mark.parametrize("until", ["soon", "1999-01-01"])
def test_a_date_that_is_none_is_said(player, ask, until):
    ask(player, "curves", event=0, chosen=[], until=until, params={})
    assert str(settled_error(player))


@pytest.mark.long
def test_selection_is_an_expression(player, lived, ask):
    ask(player, "curves", event=0, chosen=[4], until="", params={})
    assert lived.memories.filter(player.selection)["id"].to_list() == [4]
