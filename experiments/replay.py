"""Replay a simulated year of events under other packs.

    python experiments/replay.py
    python experiments/replay.py --events 20000 --packs companion cascade --json

The events are invented: people, places, small talk, questions and feedback on answers over 365 days. They run once
under the default pack, and are replayed under each of the others with maintenance once per simulated day. Seconds are
processor time and wall time. The last column counts the active memories at the end.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from random import Random
from typing import Any

from measuring import positive, provenance, stated

import memlab
from memlab.kernel.base.progress import bar

DAYS = 365
PEOPLE = ("Ada", "Bo", "Chen", "Dara", "Efe", "Femi", "Gita", "Hugo", "Ines", "Jun")
CITIES = ("Oslo", "Rome", "Lagos", "Quito", "Kyoto", "Porto", "Tallinn", "Accra")
THINGS = (
    "tea",
    "chess",
    "hills",
    "trains",
    "jazz",
    "bread",
    "kites",
    "maps",
    "ferns",
    "radios",
    "clay",
    "tides",
)
MOODS = ("happy about", "tired of", "curious about", "worried about", "proud of", "done with")


def run_events(lab: memlab.Lab, clock: memlab.ManualClock, events: int, seed: int) -> None:
    """Run the events: two in five remember, two recall, one gives feedback."""
    chance = Random(seed)
    pause = DAYS * 86_400 / events
    hits: Any = ()
    with bar(sys.stderr.isatty(), events, unit="event", desc="a year") as step:
        for number in range(events):
            clock.advance(seconds=pause * chance.uniform(0.2, 1.8))
            who, what = chance.choice(PEOPLE), chance.choice(THINGS)
            kind = number % 5
            if kind in (0, 2):
                if chance.random() < 0.05:
                    lab.facts.add(who, "lives-in", chance.choice(CITIES))
                else:
                    lab.remember(
                        f"{who} was {chance.choice(MOODS)} {what} on day {number * DAYS // events}",
                        kind=chance.choice(("observation", "event", "preference", "feeling")),
                        session=f"day {number * DAYS // events}",
                        importance=round(chance.random(), 2),
                    )
            elif kind in (1, 3):
                hits = lab.recall(f"what does {who} think of {what}?", limit=5, explore=True)
            elif hits:
                lab.feedback(chance.choice(hits), "success" if chance.random() < 0.6 else "fail")
            step(1)


def measure_packs(events: int, packs: list[str], seed: int) -> dict[str, Any]:
    """Return the figures of each pack."""
    clock = memlab.ManualClock("2025-01-01")
    with memlab.open(clock=clock, seed=seed) as lab:
        began = time.process_time(), time.perf_counter()
        run_events(lab, clock, events, seed)
        rows = [
            {
                "pack": lab.policies.pack.name,
                "lived": True,
                **_time_since(began),
                "left": _count_active(lab),
            }
        ]
        for pack in packs:
            began = time.process_time(), time.perf_counter()
            again = memlab.replay(lab, pack, progress=sys.stderr.isatty())
            rows.append(
                {
                    "pack": pack,
                    "lived": False,
                    **_time_since(began),
                    "left": _count_active(again.lab),
                }
            )
            again.lab.close()
    return {**provenance(["polars", "numpy"]), "events": events, "seed": seed, "rows": rows}


def _time_since(began: tuple[float, float]) -> dict[str, float]:
    """Return the processor and wall time since ``began``."""
    return {"cpu_s": time.process_time() - began[0], "wall_s": time.perf_counter() - began[1]}


def _count_active(lab: memlab.Lab) -> int:
    """Return the number of active memories."""
    return int(lab.memories["status"].is_in(["active", "staged", "confirmed"]).sum())


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    five = ["cascade", "companion", "workbench", "associative", "factgraph"]
    parser.add_argument("--events", type=positive, default=20_000)
    parser.add_argument("--packs", nargs="+", choices=memlab.packs(), default=five, metavar="NAME")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows = measure_packs(chosen.events, chosen.packs, chosen.seed)
    if chosen.json:
        print(json.dumps(rows, indent=2))
        return
    print(stated(rows))
    for row in rows["rows"]:
        how = "lived under" if row["lived"] else "replayed under"
        print(
            f"{how:>15} {row['pack']:12} {row['cpu_s']:7.1f} s CPU {row['wall_s']:7.1f} s   {row['left']:>7,} in use"
        )


if __name__ == "__main__":
    main()
