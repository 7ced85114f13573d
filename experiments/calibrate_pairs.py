"""Fit ``PAIR_KNOTS`` in ``memlab/kernel/embedding/_embedder.py``: closeness by text length.

    python experiments/calibrate_pairs.py FOLDER     # FOLDER holds locomo/locomo-dev5.json and beam100k/1 ... 12

Random pairs of texts come from one chat each: messages of LoCoMo, turns of BEAM, and single sentences of BEAM. Held-out
chats are not read. The length of a pair is the geometric mean of both lengths in characters.

A column is a level of closeness that some share of pairs of short statements (40 to 60 characters) exceeds. Each row
holds the closeness that the same share of pairs of its length exceeds. Then the share above the thresholds of the
designs is printed, before and after. No label is read. Takes 15 seconds on one core.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np
from held_out import BEAM_READ, LOCOMO_READ

from memlab.io.ingest import read_beam, read_locomo
from memlab.kernel.embedding import load_embedder
from memlab.kernel.embedding._embedder import SHIPPED_KNOTS, calibrated, even_length
from memlab.kernel.state import add_prefix
from memlab.subjects.reading.sentences import sentences

LEVELS = (-0.06, 0.02, 0.19, 0.40, 0.57, 0.66)
BINS = (40, 60, 80, 120, 160, 240, 320, 640, 1000, 1500, 3000)
THRESHOLDS = (0.6, 0.8, 0.85, 0.92)
MOST = 400_000


def read_chats(folder: Path) -> dict[str, list[list[tuple[str, str]]]]:
    """Return the texts with their speakers by kind, one list per chat."""
    groups: dict[str, list[list[tuple[str, str]]]] = {"messages": [], "turns": [], "sentences": []}
    for benchmark in read_locomo(folder / "locomo/locomo-dev5.json"):
        if benchmark.conversation.name in LOCOMO_READ:
            groups["messages"].append(
                [(turn.text, turn.speaker) for turn in benchmark.conversation.turns]
            )
    for number in BEAM_READ:
        turns = read_beam(folder / "beam100k" / str(number))[0].conversation.turns
        groups["turns"].append([(turn.text, turn.speaker) for turn in turns])
        short = [
            (sentence.strip(), turn.speaker)
            for turn in turns
            for sentence in sentences(turn.text)
            if len(sentence.strip()) > 10
        ]
        groups["sentences"].append(short[::4])
    return groups


def draw_pairs(
    rows: list[tuple[str, str]], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return closeness and length of random pairs; identical texts are left out."""
    rows = list(dict.fromkeys(rows))
    vectors = load_embedder(None).encode([add_prefix(*row) for row in rows]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    size = np.array([max(1, len(text)) for text, _ in rows])
    first, second = np.triu_indices(len(rows), 1)
    if len(first) > MOST:
        sample = rng.choice(len(first), MOST, replace=False)
        first, second = first[sample], second[sample]
    cosine = np.concatenate(
        [
            (vectors[first[at : at + 50_000]] * vectors[second[at : at + 50_000]]).sum(1)
            for at in range(0, len(first), 50_000)
        ]
    )
    return calibrated(cosine, SHIPPED_KNOTS), np.sqrt(size[first] * size[second])


def main() -> None:
    """Print the knots."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    arguments, rng = parser.parse_args(), np.random.default_rng(0)
    drawn = {
        kind: [draw_pairs(rows, rng) for rows in lists]
        for kind, lists in read_chats(arguments.folder).items()
    }
    kinds = {
        kind: tuple(np.concatenate(part) for part in zip(*members, strict=True))
        for kind, members in drawn.items()
    }
    everything = [np.concatenate(part) for part in zip(*kinds.values(), strict=True)]
    short = everything[0][(everything[1] >= 40) & (everything[1] < 60)]
    above = [float((short > level).mean()) for level in LEVELS]
    print("share of short pairs above", dict(zip(LEVELS, np.round(above, 5).tolist(), strict=True)))
    for low, high in itertools.pairwise(BINS):
        rows, middle = [], []
        for closeness, length in kinds.values():
            in_range = (length >= low) & (length < high)
            if in_range.sum() >= 3000:
                rows.append([np.quantile(closeness[in_range], 1 - share) for share in above])
                middle.append(np.median(length[in_range]))
        print(
            f"({np.mean(middle):.0f}, ({', '.join(f'{values:.3f}' for values in np.mean(rows, axis=0))})),"
        )
    for low, high in itertools.pairwise(BINS):
        for kind, (closeness, length) in kinds.items():
            in_range = (length >= low) & (length < high)
            if in_range.sum() >= 3000:
                after = even_length(closeness[in_range], length[in_range])
                shares = (
                    " ".join(f"{(values > level).mean():.4f}" for level in THRESHOLDS)
                    for values in (closeness[in_range], after)
                )
                print(
                    f"{low:5d}-{high:5d} {kind:9s} {in_range.sum():8d}  before {next(shares)}  after {next(shares)}"
                )


if __name__ == "__main__":
    main()
