"""Fit the constants of ``memlab/kernel/recall/_features.py``: what a correction corrects.

    python experiments/corrects.py          # prints the fit and the errors of the constants in use

The pairs are those of ``tests/systems/correction_pairs.py`` and the development split of ``data/outdated.jsonl``. Each
lab holds fifteen old statements, the corrections of five of them, and five corrections of absent statements. The
nearest older statement of such a correction is no evidence. Each statement's query is recalled, and every correction
gives one row together with that statement. Takes half a minute on one core.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import memlab
from memlab.kernel.embedding import Embedder, load_embedder
from memlab.kernel.recall import _features

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests/systems"))
from correction_pairs import READ, UNREAD  # noqa: E402

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
STATEMENTS, CORRECTED, OTHERS, DRAWS = 15, 5, 5, 4
PENALTY = 0.5
NAMES = ("nearer", "gap", "late", "shared", "change")
Pair = tuple[str, str, str]
Floats = NDArray[np.float64]


def read_pairs() -> dict[str, Sequence[Pair]]:
    """Return old statement, correction and query of each pair, by source."""
    lines = map(json.loads, (HERE / "data/outdated.jsonl").read_text(encoding="utf-8").splitlines())
    outdated = [
        (line["old"], line["new"], line["question"]) for line in lines if line["split"] == "dev"
    ]
    return {"read": READ, "unread": UNREAD, "outdated": outdated}


def build_rows(
    statements: Sequence[Pair], there: Sequence[int], corrected: Sequence[int], embedder: Embedder
) -> Iterator[Floats]:
    """Yield the inputs of ``corrects`` for each correction and queried statement, and the label."""
    arguments: dict[str, Any] = {}

    def spy(*values: Any) -> Floats:
        arguments.update(
            zip(
                ("rows", "vectors", "_", "late", "words", "content", "change"), values, strict=False
            )
        )
        arguments["created"], arguments["speakers"], arguments["closeness"] = values[7:]
        return original(*values)

    original, _features.corrects = _features.corrects, spy
    try:
        with memlab.open(embedder=embedder, clock=memlab.ManualClock("2026-06-01")) as lab:
            of = {
                lab.remember(statements[number][0], at=START, linking="off").id: number
                for number in there
            }
            later = START + timedelta(days=30)
            by = {
                lab.remember(
                    statements[number][1], kind="correction", at=later, linking="off"
                ).id: number
                for number in corrected
            }
            for statement in there:
                ids = (
                    lab.recall(statements[statement][2], log=False, limit=1)
                    .slate.frame["memory_id"]
                    .to_list()
                )
                yield from _build_rows_of_query(arguments, ids, of, by, statement)
    finally:
        _features.corrects = original


def _build_rows_of_query(
    arguments: dict[str, Any],
    ids: list[int],
    of: dict[int, int],
    by: dict[int, int],
    statement: int,
) -> Iterator[Floats]:
    """Yield the rows of one query."""
    allowed = _features._find_older(arguments["created"], arguments["speakers"])
    length = np.log(np.maximum(arguments["words"], 1.0) / _features._TYPICAL)
    nearer = (
        _features._measure_all_pairs(arguments["vectors"], allowed, arguments["closeness"])
        - _features._AT_TYPICAL
    )
    nearer -= _features._PER_LOG_WORD * (length + length[:, None]) / 2.0
    index = next(at for at, id in enumerate(ids) if of.get(id) == statement)
    for row in arguments["rows"].tolist():
        own, best = nearer[row, index], nearer[row, allowed[row]].max()
        shared = _features._common_share(arguments["content"][row], arguments["content"][index])
        values = (own, own - best, arguments["late"][row], shared, float(arguments["change"][row]))
        yield np.array([*values, float(by[ids[row]] == statement)])


def main() -> None:
    """Print the fit."""
    embedder, chance = load_embedder(None), random.Random(0)
    tables: dict[str, Floats] = {}
    for name, pairs_of_set in read_pairs().items():
        blocks: list[Floats] = []
        for _ in range(DRAWS):
            order = chance.sample(range(len(pairs_of_set)), len(pairs_of_set))
            there, others = order[:STATEMENTS], order[STATEMENTS : STATEMENTS + OTHERS]
            blocks += build_rows(pairs_of_set, there, [*there[:CORRECTED], *others], embedder)
        tables[name] = np.array(blocks)
    every = np.concatenate(list(tables.values()))
    model = LogisticRegression(C=1.0 / PENALTY, tol=1e-10, max_iter=1_000).fit(
        every[:, :-1], every[:, -1]
    )
    weights = (*model.intercept_, *model.coef_[0])
    print(
        "fitted:",
        ", ".join(
            f"{name} {value:.2f}" for name, value in zip(("bias", *NAMES), weights, strict=True)
        ),
    )
    used = np.array(
        [
            _features._BIAS,
            _features._PER_NEARER,
            _features._PER_GAP,
            _features._PER_LATE,
            _features._PER_SHARED,
            _features._IF_CHANGE,
        ]
    )
    for name, table in tables.items():
        odds, right = used[0] + table[:, :-1] @ used[1:], table[:, -1] > 0
        low, high = (odds > bound for bound in _features._ODDS)
        print(
            f"{name:9} corrections of the statement {low[right].mean():.3f} above the lower bound, "
            f"{high[right].mean():.3f} above the upper (n {right.sum()}); others "
            f"{low[~right].mean():.4f} and {high[~right].mean():.4f} (n {(~right).sum()})"
        )


if __name__ == "__main__":
    main()
