"""Measure precision, recall and cost of fact extraction on labelled messages.

    python experiments/extraction.py [--properties] [--held-back] [--show] [--rate FILE]

``messages.jsonl`` holds messages with the facts that they state. Half are controls without a fact: questions,
conditions, denials, quotations, reported speech, small talk, code, and an assistant's statements about itself. It was
written before the rules. ``--held-back`` runs the half that is not for development. A fact is right if its subject,
predicate and value are, ignoring case, articles and punctuation.

Printed are precision and recall with the central 95% of a bootstrap over messages, and the controls without a result.
``--properties`` runs ``properties.jsonl``: sixty facts about objects in ten forms ("the port of the server is 9100")
and sixty controls, written before their rules.

``--rate`` measures the turns of a LoCoMo file: messages read per second, and loading with extraction compared with
``remember_many`` on the same turns. Both alternate in one run.
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


def normalise_fact(fact: tuple[str, str, str]) -> tuple[str, ...]:
    """Return a fact without case, articles and surrounding punctuation."""
    return tuple(ARTICLE.sub("", part.casefold().strip(" .,!")) for part in fact)


def extract_facts(row: dict[str, Any]) -> set[tuple[str, ...]]:
    """Return the facts extracted from a message."""
    return {
        normalise_fact((fact.subject, fact.predicate, fact.value))
        for fact in read_facts(row["text"], row["role"])
    }


def format_figures(rows: list[dict[str, Any]], *, show: bool) -> str:
    """Return precision and recall with intervals, and the share of controls without a result."""
    right, extracted, wanted = [], [], []
    for row in rows:
        facts, labelled = extract_facts(row), {normalise_fact(tuple(fact)) for fact in row["facts"]}
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


def measure_rate(path: Path) -> str:
    """Return medians of five alternating runs in processor time, which other programs do not affect."""
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
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--properties", action="store_true", help="run properties.jsonl: facts about objects"
    )
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument(
        "--show", action="store_true", help="also print each message that is read wrongly"
    )
    parser.add_argument("--rate", type=Path, metavar="FILE", help="a LoCoMo file")
    arguments = parser.parse_args()
    if arguments.rate is not None:
        print(measure_rate(arguments.rate))
        return
    split = "held back" if arguments.held_back else "development"
    lines = (
        (PROPERTIES if arguments.properties else MESSAGES).read_text(encoding="utf-8").splitlines()
    )
    rows = [json.loads(line) for line in lines]
    print(format_figures([row for row in rows if row["split"] == split], show=arguments.show))


if __name__ == "__main__":
    main()
