"""Two weeks with an assistant that knows its user: which memories stay, which fade, and which are deleted.

    lab = memlab.open("friend.memlab", pack="companion")
    lab.remember("The user's name is Ada", kind="personal")              # a user fact: does not fade
    lab.remember("We laughed about the goat", kind="event")              # an agent's memory: 100, then less every day
    lab.upkeep.schedule()                                                # records changes every four hours

A memory loses max(2, 5 - 0.03 emotional weight) of its strength for each day since its last recall; a recall adds 5.
It is vivid from 80 on, clear from 50, hazy from 20, then a fragment, and at 0 it is softly deleted. The ledger in this
file does that arithmetic independently. Every pass must find exactly what the ledger says.
"""

from dataclasses import dataclass

import pytest

import memlab
from memlab.kernel.base.clock import DAY, HOUR, from_micros, to_micros

MONDAY = to_micros("2026-06-01T08:00:00")
PASS = 4 * HOUR


@dataclass
class Entry:
    """One memory of the ledger."""

    strength: float
    last: int
    feeling: float
    fades: bool = True

    def at(self, now):
        loss = max(2, 5 - 0.03 * self.feeling) if self.fades else 0
        return max(0, self.strength - loss * (now - self.last) / DAY)

    def recalled(self, now):
        self.strength, self.last = min(100, self.at(now) + 5), now

    def standing(self, now):
        left = self.at(now)
        if left <= 0:
            return "deleted"
        return (
            "vivid"
            if left >= 80
            else "clear"
            if left >= 50
            else "hazy"
            if left >= 20
            else "fragment"
        )


class Friend:
    """A lab under the pack companion, its ledger, and a clock that advances from pass to pass."""

    def __init__(self, embedder):
        self.clock = memlab.ManualClock(MONDAY)
        self.lab = memlab.open(embedder=embedder, clock=self.clock, pack="companion")
        self.ledger = {}
        self.told = {}

    def remember(self, text, *, kind, feeling=5.0, days_ago=0.0):
        at = MONDAY - round(days_ago * DAY)
        more = {} if feeling == 5.0 else {"emotional_weight": feeling}
        memory = self.lab.remember(text, kind=kind, at=at, **more)
        self.ledger[memory.id] = Entry(
            100, at, feeling, fades=kind not in ("personal", "preference", "goal", "trait")
        )
        self.told[memory.id] = []
        return memory.id

    def recall(self, text):
        """Recall, and strengthen every result in the ledger."""
        hits = self.lab.recall(text, limit=1)
        for id in hits.ids:
            self.ledger[id].recalled(self.clock())
        return hits

    def live(self, *, until):
        """Run pass after pass until a number of days after that Monday; check each against the ledger."""
        while self.clock() < MONDAY + round(until * DAY):
            upkeep = self.lab.upkeep.maintain()
            for row in upkeep.frame.iter_rows(named=True):
                self.told[row["id"]].append(((self.clock() - MONDAY) / DAY, row["to"]))
            for row in self.lab.memories.iter_rows(named=True):
                wanted = self.ledger[row["id"]].standing(self.clock())
                assert row["status"] == ("deleted" if wanted == "deleted" else "active")
                assert wanted in (row["label"], "deleted")
            self.clock.now += PASS


@pytest.fixture(scope="module")
def story(trigrams):
    friend = Friend(trigrams)
    ids = {
        "name": friend.remember(
            "The user is called Ada and works as a software engineer", kind="personal"
        ),
        "goat": friend.remember("We laughed about the goat that ate her umbrella", kind="event"),
        "funeral": friend.remember(
            "Ada was at the funeral of her grandmother", kind="feeling", feeling=100.0
        ),
        "jazz": friend.remember("Ada talked of jazz clubs in Lisbon", kind="observation"),
        "bus": friend.remember(
            "The bus was late on a rainy Monday morning", kind="event", days_ago=7.0
        ),
    }
    friend.forecast = friend.lab.upkeep.forecast(list(ids.values()), MONDAY + 14 * DAY, points=200)
    friend.live(until=6)
    friend.hits = friend.recall("jazz clubs in Lisbon")
    friend.live(until=14)
    friend.ids = ids
    yield friend
    friend.lab.close()


def when(days):
    """Return the time of the pass that notices an event ``days`` after the first Monday morning."""
    passes = days * DAY / PASS
    return (int(passes) if passes == int(passes) else int(passes) + 1) * PASS / DAY


@pytest.mark.long
def test_an_unused_memory_fades(story):
    """At an emotional weight of 5 a memory loses 4.85 a day: clear after 20 of its 100 are gone, hazy after 50."""
    assert story.told[story.ids["goat"]] == [
        (0, "vivid"),
        (when(20 / 4.85), "clear"),
        (when(50 / 4.85), "hazy"),
    ]


@pytest.mark.long
def test_feeling_slows_the_fading(story):
    """At a weight of 100 it loses 2 a day: after ten days it is at 80, still vivid, and clear at the pass after."""
    assert story.told[story.ids["funeral"]] == [(0, "vivid"), (10 + 4 / 24, "clear")]


@pytest.mark.long
def test_a_recall_adds_five_to_what_is_left(story):
    """After six days 70.9 was left; the recall made it 75.9, and it loses from there."""
    assert story.ids["jazz"] in story.hits.ids
    left = 100 - 6 * 4.85 + 5
    assert left == pytest.approx(75.9)
    told = story.told[story.ids["jazz"]]
    assert told == [
        (0, "vivid"),
        (when(20 / 4.85), "clear"),
        (when(6 + (left - 50) / 4.85), "hazy"),
    ]
    row = story.lab.memories.row(story.ids["jazz"] - 1, named=True)
    assert row["strength"] == pytest.approx(left, rel=1e-12)
    assert (row["access"], row["accessed"]) == (1, from_micros(MONDAY + 6 * DAY))


@pytest.mark.long
def test_a_week_old_memory_is_gone_by_the_end(story):
    """Said a week before: clear by Monday, then hazy, a fragment, and softly deleted after 20.6 days in all."""
    told = story.told[story.ids["bus"]]
    gone = [(0, "clear"), (when(50 / 4.85 - 7), "hazy"), (when(80 / 4.85 - 7), "fragment")]
    assert told == [*gone, (when(100 / 4.85 - 7), "deleted")]
    row = story.lab.memories.row(story.ids["bus"] - 1, named=True)
    assert row["changed"] == from_micros(MONDAY + round(told[-1][0] * DAY))
    assert row["text"].startswith("The bus"), "softly: it is still there"


def test_a_deleted_memory_is_not_retrieved(story):
    hits = story.lab.recall("the bus on a rainy Monday morning", limit=10, log=False)
    assert story.ids["bus"] not in hits.ids


def test_facts_about_the_users_identity_do_not_fade(story):
    assert story.told[story.ids["name"]] == [(0, "vivid")]
    assert story.lab.memories["confidence"][story.ids["name"] - 1] == 0.8, (
        "a user fact begins at 80 of 100"
    )


def test_the_forecast_of_the_first_day_came_true(story):
    """To the pass: but for what was recalled in between."""
    for name, id in story.ids.items():
        if name == "jazz":
            continue
        moved = story.forecast.transitions.filter(memory_id=id)
        days = [(at.timestamp() * 1e6 - MONDAY) / DAY for at in moved["at"]]
        assert [word for _, word in story.told[id]] == moved["to"].to_list()
        for forecast, (noted, _) in zip(days, story.told[id], strict=True):
            assert forecast - 2 / 86_400 <= noted <= forecast + PASS / DAY


def test_only_transitions_were_written(story):
    """84 passes, and an event for each in which something changed."""
    events = [
        event
        for event in story.lab.io.store.journal.events(kinds=["maintain"])
        if event.at < MONDAY + 14 * DAY
    ]
    assert len(events) == len({at for value in story.told.values() for at, _ in value})


def test_thirty_days_later_it_may_be_purged(story):
    deleted = story.told[story.ids["bus"]][-1][0]
    for days, waiting in ((deleted + 29.9, []), (deleted + 30, [story.ids["bus"]])):
        due = story.lab.upkeep.maintain(MONDAY + round(days * DAY)).due
        assert due["id"].to_list() == waiting
