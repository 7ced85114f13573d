"""Compare embedders on labelled questions: alone, and under the default pack; with their reliance on each lab.

    python experiments/embedders.py DATA --embedders shipped minilm --sets prefeval locomo beam

DATA has ``locomo/locomo-dev5.json``, ``beam100k/`` and ``prefeval/`` (topics of PrefEval). Preferences are turns of one
user in a session each. Printed are fractional recall@10 and nDCG@10 of the default pack and recall@10 of the embedder
alone. The rule of the default pack saw every other topic of PrefEval; the others are reported as "left out".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fit_default_pack import measure_ranking
from results import Results

import memlab
from memlab.io.ingest import read_beam, read_locomo

SETS = ("prefeval", "locomo", "beam")


class Case(NamedTuple):
    """Memories of one lab, with questions (text, wanted refs, group)."""

    name: str
    rows: Sequence[dict[str, Any]]
    questions: Sequence[tuple[str, frozenset[str], str]]
    at: datetime | None


def read_set(name: str, data: Path) -> Iterator[Case]:
    """Yield the labs of a data set."""
    if name == "prefeval":
        rows, questions = [], []
        for number, path in enumerate(sorted((data / "prefeval").glob("*.json"))):
            for item in json.loads(path.read_text(encoding="utf-8")):
                ref = f"p{len(rows)}"
                row = {"text": item["preference"], "ref": ref, "session": ref}
                rows.append(row | {"kind": "turn", "speaker": "user"})
                group = "left out" if number % 2 else "seen"
                questions.append((item["question"], frozenset({ref}), group))
        yield Case(name, rows, questions, None)
        return
    source = data / "locomo" / "locomo-dev5.json" if name == "locomo" else data / "beam100k"
    for labelled in (read_locomo if name == "locomo" else read_beam)(source):
        talk = labelled.conversation
        questions = [
            (question.text, frozenset(question.evidence), "all")
            for question in labelled.questions
            if question.answerable and question.evidence
        ]
        at = talk.end + timedelta(days=1)
        yield Case(talk.name, list(talk.rows(project="p")), questions, at)


def measure(case: Case, embedder: str | None) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield the group, recall, nDCG and recall of the embedder alone for each question, and the reliance."""
    with memlab.open(embedder=embedder) as lab:
        lab.remember(list(case.rows), chain=True)
        ids = dict(lab.memories.select("ref", "id").iter_rows())
        own = lab.io.embedder
        matrix = own.encode(lab.memories.sort("id")["text"].to_list()).astype(float)
        matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1.0)
        for text, refs, group in case.questions:
            gold = {ids[ref] for ref in refs if ref in ids}
            if gold:
                at = {} if case.at is None else {"at": case.at}
                hits = lab.recall(text, limit=10, log=False, **at)
                hit = np.isin([hit.id for hit in hits], list(gold))
                order = -np.arange(len(hit), dtype=float)
                near = np.argsort(-(matrix @ own.encode_queries([text])[0]), kind="stable")[:10] + 1
                alone = len(gold & set(near.tolist())) / len(gold)
                yield (
                    group,
                    *measure_ranking(order, hit, len(gold)),
                    alone,
                    lab.io.embedder.reliance,
                )


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedders", nargs="+", default=["shipped", "minilm"])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    arguments = parser.parse_args()
    results = Results("embedders", arguments)
    table = []
    for name in arguments.sets:
        for embedder in arguments.embedders:
            spec = None if embedder == "shipped" else embedder
            measured = [
                row for case in read_set(name, arguments.data) for row in measure(case, spec)
            ]
            for group in dict.fromkeys(["all", *(row[0] for row in measured)]):
                part = np.array([row[1:] for row in measured if group in ("all", row[0])])
                recall, ndcg, alone, reliance = part.mean(axis=0).round(4).tolist()
                about = {"set": name, "group": group, "embedder": embedder, "questions": len(part)}
                figures = {"recall@10": recall, "nDCG@10": ndcg, "alone": alone}
                table.append(about | figures | {"reliance": reliance})
                print(table[-1], flush=True)
    results.save(table)


if __name__ == "__main__":
    main()
