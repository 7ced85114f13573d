"""Count the contradictions and updates that each pack notices on 300 labelled pairs.

    python experiments/contradictions.py [--held-back] [--beam FOLDER]

``contradictions.jsonl`` holds contradictions, updates and as many controls: the same topic, properties with several
values, other subjects, other times. They were written before the rules. A new lab remembers each pair, the older
statement a day before the newer. A pair is noticed if linking joins it by ``contradicts`` or ``updates``, or supersedes
the older one.

Printed are precision and recall with the central 95% of a bootstrap over pairs, and the share noticed by label. 200
pairs are for development; ``--held-back`` runs the other 100 alone. ``--beam`` reads the users' turns of BEAM chats,
and counts conflicts with one of the 5 nearest earlier statements, which are rarely true.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import memlab
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.embedding import Embedder, load_embedder
from memlab.subjects.reading.claims import claim, conflicts, updates
from memlab.subjects.reading.sentences import sentences

PAIRS = Path(__file__).with_name("contradictions.jsonl")
PACKS = ("cascade", "companion", "workbench", "factgraph")
KINDS = {
    "cascade": "preference",
    "companion": "preference",
    "workbench": "convention",
    "factgraph": "fact",
}
POSITIVE = ("contradiction", "update")
NOTICED = ("contradicts", "updates", "supersedes")


def noticed(pack: str, old: str, new: str, embedder: Embedder) -> bool:
    """Return whether a pack links or supersedes two consecutive statements."""
    clock = ManualClock("2026-01-01")
    with memlab.open(pack=pack, embedder=embedder, clock=clock) as lab:
        lab.remember(old, kind=KINDS[pack])
        clock.advance(days=1)
        lab.remember(new, kind=KINDS[pack])
        return bool(lab.edges.height) and bool(lab.edges["relation"].is_in(NOTICED).any())


def format_figures(rows: list[dict[str, Any]], is_noticed: list[bool]) -> str:
    """Return precision and recall with intervals, and the share noticed by label."""
    hit, right = np.array(is_noticed), np.array([row["label"] in POSITIVE for row in rows])
    draws = np.random.default_rng(0).integers(len(rows), size=(2000, len(rows)))

    def interval(value: Any, values: Any) -> str:
        share = (value[draws] & values[draws]).sum(axis=1) / np.maximum(
            values[draws].sum(axis=1), 1
        )
        low, high = np.quantile(share, [0.025, 0.975])
        return f"{(value & values).sum() / max(values.sum(), 1):.3f} [{low:.3f}, {high:.3f}]"

    labels = dict.fromkeys(row["label"] for row in rows)
    shares = (f"{label} {np.mean([f for f, r in zip(is_noticed, rows, strict=True) if r['label'] == label]):.2f}"
              for label in labels)  # fmt: skip
    return f"precision {interval(right, hit)}, recall {interval(hit, right)}; {', '.join(shares)}"


def print_beam_conflicts(folder: Path, embedder: Embedder) -> None:
    """Print the conflicts of users' short statements with their five nearest earlier ones."""
    noticed_count = fired = pairs = 0
    examples: list[str] = []
    for path in sorted(folder.glob("*/chat.json")):
        texts: list[str] = []
        for turn in _read_turns(json.loads(path.read_text(encoding="utf-8"))):
            texts += [
                sentence.strip()
                for sentence in sentences(turn)
                if claim(sentence.strip()) is not None and "?" not in sentence
            ]
        vectors = embedder.encode(texts).astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for position in range(1, len(texts)):
            noticed_count += 1
            for other in np.argsort(-(vectors[:position] @ vectors[position]))[:5].tolist():
                pairs += 1
                new, old = claim(texts[position]), claim(texts[other])
                if conflicts(new, old) or updates(new, old):
                    fired += 1
                    examples.append(f"  {texts[other]!r} / {texts[position]!r}")
    print(f"BEAM: {noticed_count:,} statements, {pairs:,} pairs, {fired} said to conflict")
    for line in examples[:: max(1, len(examples) // 12)]:
        print(line)


def _read_turns(chat: Any) -> list[str]:
    """Return the users' messages of a chat, at any depth of the file."""
    if isinstance(chat, dict):
        if chat.get("role") == "user" and isinstance(chat.get("content"), str):
            return [chat["content"]]
        return [text for value in chat.values() for text in _read_turns(value)]
    return [text for value in chat for text in _read_turns(value)] if isinstance(chat, list) else []


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--held-back", action="store_true")
    parser.add_argument("--beam", type=Path)
    arguments = parser.parse_args()
    split = "held-back" if arguments.held_back else "development"
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["split"] == split]
    embedder = load_embedder(None)
    claims = [(claim(row["new"]), claim(row["old"])) for row in rows]
    print(f"{len(rows)} pairs, {split}")
    print(
        f"rules      {format_figures(rows, [conflicts(new, old) or updates(new, old) for new, old in claims])}"
    )
    for pack in PACKS:
        print(
            f"{pack:10s} {format_figures(rows, [noticed(pack, row['old'], row['new'], embedder) for row in rows])}"
        )
    if arguments.beam is not None:
        print_beam_conflicts(arguments.beam, embedder)


if __name__ == "__main__":
    main()
