"""How many facts of labelled messages are extracted, how many of those are right, and what extraction costs.

    python experiments/extraction.py [--properties] [--held-back] [--show] [--rate FILE]

``messages.jsonl`` holds messages with the facts that they state; half are controls that state none: questions,
conditions, denials, quotations, reported speech, small talk, code, and what an assistant says of itself. It was written
before the rules. Those for development are asked unless ``--held-back`` asks the other half. A fact is right where
subject, predicate and value are, without regard to case, articles and marks. Printed are precision and recall with the
central 95% of a bootstrap over messages, and the controls that gave nothing. ``--properties`` asks ``properties.jsonl``
instead, of the same kind: sixty facts about things and others in ten shapes ("the port of the server is 9100"), sixty
controls, written before the rules for them. ``--rate`` measures the turns of a
LoCoMo file: messages a second that are read, and loading with extraction (the turns, then what was extracted of them)
beside ``remember_many`` on the same turns, in turn in one run.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

import memlab
from memlab.io.ingest import read_locomo
from memlab.subjects.extraction.reading import read_facts

MESSAGES = Path(__file__).with_name("messages.jsonl")
PROPERTIES = Path(__file__).with_name("properties.jsonl")
ARTICLE = re.compile(r"^(?:the|an?) ")


def normal(fact: tuple[str, str, str]) -> tuple[str, ...]:
    """A fact without case, articles and marks at its ends."""
    return tuple(ARTICLE.sub("", part.casefold().strip(" .,!")) for part in fact)


def found_in(row: dict[str, Any]) -> set[tuple[str, ...]]:
    """The facts that are extracted of a message."""
    return {
        normal((fact.subject, fact.predicate, fact.value))
        for fact in read_facts(row["text"], row["role"])
    }


def figures(rows: list[dict[str, Any]], *, show: bool) -> str:
    """Precision and recall with intervals, and the share of controls that gave nothing."""
    right, extracted, wanted = [], [], []
    for row in rows:
        facts, labelled = found_in(row), {normal(tuple(fact)) for fact in row["facts"]}
        right.append(len(facts & labelled))
        extracted.append(len(facts))
        wanted.append(len(labelled))
        if show and facts != labelled:
            print(f"{row['group']}: {row['text']!r}")
            print(f"    missed {labelled - facts or '-'}, wrong {facts - labelled or '-'}")
    draws = np.random.default_rng(0).integers(len(rows), size=(2000, len(rows)))

    def share(part: list[int], whole: list[int]) -> str:
        a, b = np.array(part), np.array(whole)
        low, high = np.quantile(
            a[draws].sum(axis=1) / np.maximum(b[draws].sum(axis=1), 1), [0.025, 0.975]
        )
        return f"{a.sum() / max(b.sum(), 1):.3f} [{low:.3f}, {high:.3f}]"

    silent = [not count for count, labels in zip(extracted, wanted, strict=True) if not labels]
    return (
        f"{len(rows)} messages, {sum(wanted)} facts: precision {share(right, extracted)}, recall {share(right, wanted)}; "
        f"{sum(silent)} of {len(silent)} controls gave nothing"
    )


def rate(path: Path) -> str:
    """Medians of five runs in turn, in processor time: other programs do not count."""
    rows = [row for labelled in read_locomo(path) for row in labelled.conversation.rows()]
    messages = [
        {"content": row["text"], "speaker": row["speaker"], "at": row["at"]} for row in rows
    ]
    durations: dict[str, list[float]] = {"extract": [], "remember": [], "both": []}
    stored = 0
    for _ in range(6):
        with memlab.open() as lab:
            begun = time.process_time()
            lab.remember(rows)
            durations["remember"].append(time.process_time() - begun)
        with memlab.open() as lab:
            begun = time.process_time()
            extracted = lab.agents.extract(messages)
            durations["extract"].append(time.process_time() - begun)
            lab.remember(rows)
            stored = len(lab.agents.commit(extracted))
            durations["both"].append(time.process_time() - begun)
    read, plain, whole = (
        len(rows) / np.median(durations[name][1:]) for name in ("extract", "remember", "both")
    )
    return (
        f"{len(rows)} turns: {read:,.0f}/s read to {stored} facts and memories; remember_many {plain:,.0f}/s, "
        f"loading with extraction {whole:,.0f}/s ({whole / plain:.2f} of it)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--properties", action="store_true", help="ask of things and others, properties.jsonl"
    )
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument(
        "--show", action="store_true", help="also print each message that is read otherwise"
    )
    parser.add_argument("--rate", type=Path, metavar="FILE", help="a LoCoMo file")
    arguments = parser.parse_args()
    if arguments.rate is not None:
        print(rate(arguments.rate))
        return
    split = "held back" if arguments.held_back else "development"
    lines = (
        (PROPERTIES if arguments.properties else MESSAGES).read_text(encoding="utf-8").splitlines()
    )
    rows = [json.loads(line) for line in lines]
    print(figures([row for row in rows if row["split"] == split], show=arguments.show))


if __name__ == "__main__":
    main()
