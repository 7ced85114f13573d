"""Measure whether a correction within a long message is noticed.

    python experiments/put_right.py [--held-back] [--list]

``data/put_right.jsonl`` has 120 pairs with controls, one per line, written before any rule. ``new`` corrects ``old``;
``kind`` says in what respect. The control ``beside`` is a later statement that resembles the first and replaces
nothing. Each statement is surrounded by two to five asides of ``data/asides.json`` on either side. Half of the messages
are several sentences, half are one.

A new lab of the default pack remembers each pair, the older message a day earlier. A pair is noticed if linking joins
both by ``updates``. Sixty pairs are for development; ``--held-back`` runs the others alone. Intervals are the central
95% of a bootstrap over pairs.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np

import memlab
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.embedding import load_embedder

DATA = Path(__file__).parent / "data"


def build_message(statement: str, seed: str, asides: list[str]) -> str:
    """Return the statement among eight asides."""
    drawn = random.Random(seed)
    around = drawn.sample(asides, 8)
    position = drawn.randrange(2, 6)
    parts = [*around[:position], statement, *around[position:]]
    if drawn.random() < 0.5:
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts)
    return parts[0] + "".join(drawn.choice([", and ", ", but ", ", "]) + part for part in parts[1:])


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument(
        "--list", action="store_true", help="print missed pairs and noticed controls"
    )
    arguments = parser.parse_args()
    split = "held" if arguments.held_back else "dev"
    rows = [
        json.loads(line)
        for line in (DATA / "put_right.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    rows = [row for row in rows if row["split"] == split]
    asides = json.loads((DATA / "asides.json").read_text(encoding="utf-8"))
    embedder = load_embedder(None)

    def noticed(row: dict[str, str], part: str) -> bool:
        clock = ManualClock("2026-01-01")
        with memlab.open(embedder=embedder, clock=clock) as lab:
            lab.remember(build_message(row["old"], f"{row['id']}old", asides), linking="now")
            clock.advance(days=1)
            lab.remember(build_message(row[part], f"{row['id']}{part}", asides), linking="now")
            return "updates" in lab.edges["relation"].to_list()

    is_noticed = np.array([[noticed(row, part) for part in ("new", "beside")] for row in rows])
    draws = is_noticed[np.random.default_rng(0).integers(len(rows), size=(2000, len(rows)))].sum(
        axis=1
    )

    def stated(name: str, value: float, shares: np.ndarray) -> str:
        low, high = np.quantile(shares, [0.025, 0.975])
        return f"{name} {value:.3f} [{low:.3f}, {high:.3f}]"

    hit, wrong = is_noticed.sum(axis=0)
    print(f"{len(rows)} pairs and as many controls, {split}")
    print(stated("noticed", hit / len(rows), draws[:, 0] / len(rows)))
    print(stated("controls", wrong / len(rows), draws[:, 1] / len(rows)))
    print(
        stated(
            "precision", hit / max(hit + wrong, 1), draws[:, 0] / np.maximum(draws.sum(axis=1), 1)
        )
    )
    for kind in dict.fromkeys(row["kind"] for row in rows):
        part = is_noticed[[row["kind"] == kind for row in rows]]
        print(
            f"  {kind:10s}{len(part):4d}: {part[:, 0].sum()} noticed, {part[:, 1].sum()} controls"
        )
    if arguments.list:
        for row, (right, control) in zip(rows, is_noticed, strict=True):
            for wrong, name, part in ((not right, "missed", "new"), (control, "control", "beside")):
                if wrong:
                    print(name, row["kind"], "|", row["old"], "|", row[part])


if __name__ == "__main__":
    main()
