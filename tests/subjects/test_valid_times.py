"""The valid time decides which of two values holds, whatever the order in which they were told."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import Any

import pytest

import memlab

NOW = "2026-06-01"
HISTORY = [
    ("Ada", "lives-in", "Rome", 0),
    ("Ada", "lives-in", "Oslo", 10),
    ("Ada", "lives-in", "Oslo", 14),
    ("Ada", "lives-in", "Rome", 20),
    ("Ada", "lives-in", "Rome", 25),
    ("Ada", "lives-in", "Lima", 30),
    ("Ada", "works-at", "Acme", 5),
    ("Ada", "works-at", "Globex", 22),
    ("Bob", "lives-in", "Oslo", 3),
    ("Bob", "lives-in", "Oslo", 12),
    ("Bob", "lives-in", "Oslo", 28),
    ("Bob", "uses", "Rust", 8),
    ("Bob", "uses", "Go", 9),
    ("Bob", "uses", "Rust", 18),
]
ENDS = [
    ("Cleo", "lives-in", "Bonn", 2, 6),
    ("Cleo", "lives-in", "Kyiv", 11, None),
    ("Cleo", "lives-in", "Bonn", 17, 24),
]


def day(number: int) -> str:
    return (date(2026, 1, 1) + timedelta(days=number)).isoformat()


def rows() -> list[dict[str, Any]]:
    values_by_day: list[tuple[Any, ...]] = [*((*item, None) for item in HISTORY), *ENDS]
    return [
        {"text": f"{who} {what} {value}", "subject": who, "predicate": what, "value": value, "confidence": 0.95,
         "at": day(start)} | ({} if stop is None else {"valid_until": day(stop)})
        for who, what, value, start, stop in values_by_day
    ]  # fmt: skip


def values_by_day(
    order: list[dict[str, Any]], *, how: str
) -> dict[int, list[tuple[str, str, str]]]:
    """Return the valid values of each day, for a history told in this order."""
    with memlab.open(pack="factgraph", clock=memlab.ManualClock(NOW)) as lab:
        if how == "many":
            lab.remember(order)
        elif how == "one by one":
            for row in order:
                lab.remember(**row)
        else:
            for row in order:
                held = {
                    name: row[name] for name in ("confidence", "at", "valid_until") if name in row
                }
                lab.facts.add(row["subject"], row["predicate"], row["value"], **held)
        return {number: held_on(lab, number) for number in range(-1, 45)}


def held_on(lab: memlab.Lab, number: int) -> list[tuple[str, str, str]]:
    frame = lab.facts.frame(at=day(number))
    return sorted(frame.select("subject", "predicate", "value").rows())


@pytest.fixture(scope="module")
def in_order() -> dict[int, list[tuple[str, str, str]]]:
    return values_by_day(sorted(rows(), key=lambda row: str(row["at"])), how="one by one")


@pytest.mark.long
def test_told_in_order_each_value_holds_until_the_next(
    in_order: dict[int, list[tuple[str, str, str]]],
) -> None:
    where = {number: [value for who, what, value in item if (who, what) == ("Ada", "lives-in")]
             for number, item in in_order.items()}  # fmt: skip
    assert [where[number] for number in (-1, 0, 9, 10, 19, 20, 29, 30, 44)] == [
        [], ["Rome"], ["Rome"], ["Oslo"], ["Oslo"], ["Rome"], ["Rome"], ["Lima"], ["Lima"]
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("count", [3, pytest.param(17, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["one by one", "many", "facts"])
def test_orders_of_telling_give_one_history(
    in_order: dict[int, list[tuple[str, str, str]]], how: str, count: int
) -> None:
    chance = random.Random(f"valid times, {how}")
    for _ in range(count):
        order = rows()
        chance.shuffle(order)
        assert values_by_day(order, how=how) == in_order, [
            (row["text"], row["at"]) for row in order
        ]


@pytest.mark.parametrize("pack", ["companion", "workbench", "factgraph"])
def test_a_fact_told_late_does_not_retire_the_newer_one(pack: str) -> None:
    with memlab.open(pack=pack, clock=memlab.ManualClock(NOW)) as lab:
        lab.facts.add("User", "lives_in", "SF", confidence=0.95, at="2026-05-01")
        lab.facts.add("User", "lives_in", "NYC", confidence=0.95, at="2026-01-01")
        assert lab.facts.frame(at="2026-05-15")["value"].to_list() == ["SF"]
        assert lab.facts.frame(at="2026-02-15")["value"].to_list() == ["NYC"]


@pytest.mark.parametrize("pack", ["companion", "workbench"])
def test_words_told_late_are_superseded_by_the_newer_ones(pack: str) -> None:
    with memlab.open(pack=pack, clock=memlab.ManualClock(NOW)) as lab:
        lab.remember("I moved to Oslo", kind="event", at="2026-05-01")
        lab.remember("I live in Rome", kind="event", at="2026-01-01")
        assert lab.memories["status"].to_list() == ["active", "superseded"]
        assert lab.memories["valid_until"].to_list()[1] == lab.memories["created"].to_list()[0]


@pytest.mark.long
def test_a_history_is_the_same_from_its_journal(tmp_path: Any) -> None:
    order = rows()
    random.Random("journal").shuffle(order)
    with memlab.open(tmp_path / "lab", pack="factgraph", clock=memlab.ManualClock(NOW)) as lab:
        lab.remember(order)
        before = [held_on(lab, number) for number in range(45)]
    with memlab.open(tmp_path / "lab") as lab:
        assert [held_on(lab, number) for number in range(45)] == before
