"""Fit the probability of a change of state between two texts, and its certainty.

    python experiments/fit_certainty.py FOLDER            # prints the results of cross-validation
    python experiments/fit_certainty.py FOLDER --write    # and writes memlab/kernel/verbs/linking/certainty.json

FOLDER holds locomo/locomo-dev5.json and beam100k/1 ... 12; only the development chats are read. The pairs come from
``data/changes_of_state*.jsonl`` (three writers who saw no rule), from the development split of
``contradictions.jsonl``, and from BEAM's updated values. From the real chats comes every message with its five nearest
earlier messages of the same speaker. These count as no change unless ``data/changes_judged.jsonl``, which holds message
numbers alone, has another judgement.

The features are those of ``memlab.subjects.reading.change``; the fit is a logistic regression with an L2 penalty. One
unread real pair has the weight ``REAL``, a read one more. The bound to flag is the held-out score that a share of
MOST_FLAGGED of the controls of one speaker exceeds.

The certainty is the share of right pairs among real pairs with a similar held-out score, with one right and one wrong
pair added. The certainty of a rule is the share of right pairs among the pairs on which it fired.

On the development texts the command prints an area under the curve of 0.743 on the writers' pairs. The shipped table
comes from an earlier fit. A new fit changes its weights by at most 0.06 and the bound to flag by 0.0004, so it is
kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from changes_of_state import read_beam_pairs, read_pairs
from held_out import BEAM_READ
from linking_decisions import read_chats
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from memlab.kernel.embedding import load_embedder
from memlab.subjects.reading.change import features
from memlab.subjects.reading.comparison import CERTAINTY, by_rules, read_text

HERE = Path(__file__).parent
DATA = HERE / "data"
WEIGHTS = HERE.parent / "memlab/kernel/verbs/linking/certainty.json"
WRITERS = ("changes_of_state", "changes_of_state_a", "changes_of_state_b")
NEAREST = 5
FOLDS = 5
REAL = 0.03
"""The weight of an unread pair of real messages, which counts as no change."""

READ = 0.3
"""The weight of a pair that was read because it scored high, and is no change."""

PENALTY = 30.0
MOST_FLAGGED = 0.043
"""Two of the 46 (of 60) controls that have one speaker."""

FEWEST = 5
LIKE = 0.9
"""The prior share of right pairs. FEWEST pairs with it are added to a rule's own, so rare rules depend on it."""

Floats = NDArray[np.float64]


class Rows:
    """Pairs of texts, with the features of pairs that share a subject."""

    def __init__(self) -> None:
        self.told: list[dict[str, float]] = []
        self.pair: list[int] = []
        self.label: list[float] = []
        self.weight: list[float] = []
        self.group: list[str] = []
        self.fold: list[int] = []
        self.pairs = 0
        self.ruled: dict[str, list[int]] = {}
        """How often each rule was right and how often it fired, on written or read pairs."""

    def add(
        self, before: str, after: str, label: float, weight: float, group: str, fold: int
    ) -> None:
        """Add a pair; ``group`` is its source."""
        new, old = read_text(after), read_text(before)
        ruled = by_rules(new, old, same_speaker=True, user_speaks=False)
        if new.telling and old.telling and not new.telling.strong.isdisjoint(old.telling.strong):
            self.told.append(features(new.telling, old.telling, ruled.certainty))
            self.pair.append(self.pairs)
        if (
            ruled.rule
            and (ruled.updates or ruled.conflicts or group == "contradictions")
            and weight > REAL
        ):
            count = self.ruled.setdefault(ruled.rule, [0, 0])
            count[0] += int(label)
            count[1] += 1
        self.label.append(label)
        self.weight.append(weight)
        self.group.append(group)
        self.fold.append(fold)
        self.pairs += 1

    def best(self, scores: Floats) -> Floats:
        """Return the best score of each pair; -inf without features."""
        best = np.full(self.pairs, -np.inf)
        best[self.pair] = scores
        return best


def read_real_pairs(folder: Path) -> list[tuple[str, int, int, str, str]]:
    """Return chat, numbers of the later and earlier message, and both texts."""
    embedder = load_embedder(None)
    pairs = []
    for name, rows in read_chats(folder, held_out=False).items():
        vectors = embedder.encode([row["text"] for row in rows]).astype(np.float64)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        for later in range(1, len(rows)):
            nearest = np.argsort(-(vectors[:later] @ vectors[later]))[:NEAREST].tolist()
            pairs += [
                (name, later, earlier, rows[earlier]["text"], rows[later]["text"])
                for earlier in nearest
                if rows[earlier]["speaker"] == rows[later]["speaker"]
            ]
    return pairs


def gather_rows(folder: Path) -> tuple[Rows, list[tuple[str, int, int]]]:
    """Return all pairs, and the chat and message numbers of each real one in row order."""
    rows = Rows()
    draw = np.random.default_rng(0)
    for name in WRITERS:
        for pair in read_pairs(DATA / f"{name}.jsonl"):
            if pair["before"]["speaker"] == pair["after"]["speaker"]:
                label = float(pair["kind"] == "change")
                rows.add(
                    pair["before"]["text"],
                    pair["after"]["text"],
                    label,
                    1.0,
                    name,
                    int(draw.integers(FOLDS)),
                )
    for pair in read_pairs(HERE / "contradictions.jsonl"):
        if pair["split"] == "development":
            label = float(pair["label"] in ("contradiction", "update"))
            rows.add(
                pair["old"], pair["new"], label, 0.5, "contradictions", int(draw.integers(FOLDS))
            )
    for position, (_, pair) in enumerate(read_beam_pairs(folder / "beam100k", BEAM_READ)):
        if pair["before"]["text"] != pair["after"]["text"]:
            rows.add(
                pair["before"]["text"],
                pair["after"]["text"],
                1.0,
                1.0,
                "beam",
                position // 4 % FOLDS,
            )
    judged = {
        (entry["data"], entry["later"], entry["earlier"]): entry["judgement"]
        for entry in _read_judgements()
    }
    names = []
    for name, later, earlier, before, after in read_real_pairs(folder):
        judgement = judged.get((name, later, earlier), "unread")
        weight = {"right": 1.0, "wrong": READ, "unclear": 0.0, "unread": REAL}[judgement]
        # folds are chats, so that no message is in two of them
        rows.add(
            before, after, float(judgement == "right"), weight, "real", sum(map(ord, name)) % FOLDS
        )
        names.append((name, later, earlier))
    return rows, names


def _read_judgements() -> list[dict[str, Any]]:
    """Read the judgements."""
    path = DATA / "changes_judged.jsonl"
    return read_pairs(path) if path.is_file() else []


def fit(matrix: Floats, label: Floats, weight: Floats) -> LogisticRegression:
    """Return the logistic regression of ``label`` on scaled features, with PENALTY on squares and a free intercept."""
    model = LogisticRegression(C=1.0 / PENALTY, tol=1e-10, max_iter=1_000)
    return model.fit(matrix, label, sample_weight=weight)


def replace_infinite(scores: Floats) -> Floats:
    """Return the scores with the lowest double for -inf, which scikit-learn refuses."""
    return np.maximum(scores, np.finfo(np.float64).min)


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument(
        "--above", type=float, help="print the numbers of the real pairs that score more"
    )
    arguments = parser.parse_args()
    rows, names_of_rows = gather_rows(arguments.folder)
    names = sorted({name for is_written in rows.told for name in is_written})
    positions = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(rows.told), len(names)))
    for number, is_written in enumerate(rows.told):
        for name, value in is_written.items():
            matrix[number, positions[name]] = value
    pair = np.array(rows.pair)
    label, weight, fold = np.array(rows.label), np.array(rows.weight), np.array(rows.fold)
    group = np.array(rows.group)
    own = group[pair] != "real"
    centre = matrix[own].mean(axis=0)
    scale = matrix[own].std(axis=0) + 1e-6
    scaled = (matrix - centre) / scale

    def scores(train: NDArray[np.bool_], test: NDArray[np.bool_]) -> Floats:
        model = fit(scaled[train], label[pair][train], weight[pair][train])
        return np.asarray(np.where(test, model.decision_function(scaled), -np.inf))

    out = np.full(len(matrix), -np.inf)
    for number in range(FOLDS):
        test = fold[pair] == number
        out = np.maximum(out, scores(~test, test))
    best = rows.best(out)
    is_written = np.isin(group, WRITERS)
    bound = float(np.quantile(np.maximum(best[is_written & (label == 0)], -9), 1 - MOST_FLAGGED))
    print(
        f"{len(label):,} pairs, {len(matrix):,} that share a word, {len(names)} features; flagged from {bound:.2f}"
    )
    for name in dict.fromkeys(rows.group):
        true, untrue = ((group == name) & (label == value) for value in (1, 0))
        print(
            f"{name:20s} changes noticed {(best[true] >= bound).sum()} of {true.sum()}, "
            f"controls {(best[untrue] >= bound).sum()} of {untrue.sum()}"
        )
    print(
        "area under the curve, the writers' pairs: "
        f"{roc_auc_score(label[is_written], replace_infinite(best[is_written])):.3f}"
    )
    for name in WRITERS:
        test = (group == name)[pair]
        left = rows.best(scores(~test, test))[group == name]
        print(
            f"  {name} left out: {roc_auc_score(label[group == name], replace_infinite(left)):.3f}"
        )
    read = (group == "real") & np.isfinite(best) & (weight > 0)
    steps: list[list[float]] = []
    for low, high in zip(
        (bound, bound + 0.5, bound + 1, bound + 1.5),
        (bound + 0.5, bound + 1, bound + 1.5, np.inf),
        strict=True,
    ):
        within = read & (best >= low) & (best < high)
        right, every = int(label[within].sum()), int(within.sum())
        share = max((right + 1) / (every + 2), steps[-1][1] if steps else 0.0)
        steps.append([round(low, 4), round(share, 2)])
        print(f"  from {low:.2f}: {every} real pairs, {right} right, certainty {share:.2f}")
    rules = {}
    for rule, (right, every) in sorted(rows.ruled.items()):
        share = (right + LIKE * FEWEST) / (every + FEWEST)
        if every >= FEWEST:
            rules[rule] = round(share, 2)
        print(
            f"  rule {rule:20s} right {right} of {every}: {share:.2f}, used {CERTAINTY[rule]:.2f}"
        )
    if arguments.above is not None:
        scored = best[group == "real"]
        for number in np.argsort(-scored).tolist():
            if scored[number] >= arguments.above:
                name, later, earlier = names_of_rows[number]
                print(
                    json.dumps(
                        {
                            "data": name,
                            "later": later,
                            "earlier": earlier,
                            "score": round(float(scored[number]), 2),
                        }
                    )
                )
    if arguments.write:
        model = fit(scaled, label[pair], weight[pair])
        weights = model.coef_[0] / scale
        table = {
            "command": "python experiments/fit_certainty.py FOLDER --write",
            "bias": round(float(model.intercept_[0] - (weights * centre).sum()), 4),
            "flag": round(bound, 4),
            "real": steps,
            "rules": rules,
            "weights": {
                name: round(float(value), 4) for name, value in zip(names, weights, strict=True)
            },
        }
        WEIGHTS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
