"""Measure the cost of each ``-plus`` pack on labelled chats, and whether its design is visible.

    python experiments/plus_packs.py --locomo locomo-dev5.json --beam beam100k [--as turns] [--queries 40] [--json]

A lab under the pack holds each conversation until a day after its end, as turns or as memories of the kind that the
design is for. The pack's own maintenance runs first. Then the pack and the default pack rank the same memories.

recall@10      of the evidence that the lab still has: the pack's, the default's, and their difference with its 95%
               interval by conversation
evidence gone  share of the labelled evidence that was forgotten or superseded by that day
visible        share of queries whose top ten changes without the pack's own term in its recall-score

The bundled conversation is always included. LoCoMo and BEAM are included if their files are given, without the chats
that ``held_out.py`` sets aside.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from held_out import BEAM_READ, LOCOMO_READ
from results import Results, plot_dots

import memlab
from memlab.io.ingest import LabelledConversation, read_beam, read_locomo
from memlab.kernel.base.progress import bar
from memlab.kernel.policies import load_pack
from memlab.science.evaluation import cluster_interval
from memlab.ui.demo import CONVERSATION

DESIGNS = ("cascade", "companion", "workbench", "associative", "factgraph")
KIND = {
    "cascade": "fact",
    "companion": "observation",
    "workbench": "context",
    "associative": "fact",
    "factgraph": "fact",
}
"""The kind of memory of a message, by design."""

TEN = 10
IN_USE = ("active", "staged", "confirmed")


@dataclass(frozen=True)
class Asked:
    """One query: recall@10 under both packs, evidence, lost evidence, visibility of the term."""

    cluster: str
    own: float | None
    default: float | None
    labels: int
    gone: int
    moved: bool


def read_chats(
    locomo: Path | None, beam: Path | None
) -> Iterator[tuple[str, list[LabelledConversation]]]:
    """Yield each data set with its conversations."""
    yield "demo", list(read_locomo(CONVERSATION))
    if locomo is not None:
        yield (
            "LoCoMo",
            [chat for chat in read_locomo(locomo) if chat.conversation.name in LOCOMO_READ],
        )
    if beam is not None:
        yield "BEAM", [chat for number in BEAM_READ for chat in read_beam(beam / str(number))]


def recall_chat(
    chat: LabelledConversation, design: str, as_turns: bool, queries: int
) -> list[Asked]:
    """Rank the queries of one conversation under the ``-plus`` pack of a design and under the default pack."""
    pack, default = load_pack(f"{design}-plus"), load_pack("memlab")
    without = pack.with_policy("recall-score", default.policies["recall-score"])
    talk = chat.conversation
    clock = memlab.ManualClock(talk.turns[0].at)
    with memlab.open(pack=pack, clock=clock) as lab:
        rows = [dict(row) for row in talk.rows()]
        if not as_turns:
            rows = [{**row, "kind": KIND[design]} for row in rows]
        lab.remember(rows, chain=True, linking="off" if as_turns else None)
        clock.set(talk.end + timedelta(days=1))
        lab.upkeep.maintain()
        frame = lab.memories.filter(lab.memories["status"].is_in(IN_USE))
        active_refs = set(frame["ref"].to_list())
        queries_of_chat = []
        wanted = [
            question for question in chat.questions if question.answerable and question.evidence
        ]
        for question in _sample(wanted, queries):
            evidence = set(question.evidence)
            left = evidence & active_refs
            tops = [
                [hit.ref for hit in lab.recall(question.text, limit=TEN, pack=each, log=False)]
                for each in (pack, default, without)
            ]
            own, others = (len(left & set(top)) / len(left) if left else None for top in tops[:2])
            queries_of_chat.append(
                Asked(
                    talk.name,
                    own,
                    others,
                    len(evidence),
                    len(evidence - active_refs),
                    tops[0] != tops[2],
                )
            )
        return queries_of_chat


def _sample(questions: Sequence[Any], maximum: int) -> list[Any]:
    """Return at most ``maximum`` of the questions, spread evenly; all for 0."""
    if not maximum or len(questions) <= maximum:
        return list(questions)
    return [
        questions[position] for position in np.linspace(0, len(questions) - 1, maximum).astype(int)
    ]


def summarise(queries: Sequence[Asked]) -> dict[str, Any]:
    """Return the figures of one row of the table."""
    judged = [query for query in queries if query.own is not None and query.default is not None]
    differences = [query.own - query.default for query in judged]
    many = len({query.cluster for query in judged}) > 1
    clusters = [query.cluster if many else str(at) for at, query in enumerate(judged)]
    interval = cluster_interval(differences, clusters) if len(judged) > 1 else None
    return {
        "queries": len(queries),
        "judged": len(judged),
        "own": float(np.mean([query.own for query in judged])) if judged else None,
        "default": float(np.mean([query.default for query in judged])) if judged else None,
        "difference": float(np.mean(differences)) if judged else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "gone": sum(query.gone for query in queries)
        / max(1, sum(query.labels for query in queries)),
        "visible": float(np.mean([query.moved for query in queries])),
    }


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--locomo", type=Path, help="LoCoMo's file")
    parser.add_argument("--beam", type=Path, help="a folder of BEAM's chats")
    parser.add_argument(
        "--as",
        dest="kinds",
        choices=("turns", "memories"),
        nargs="+",
        default=["turns", "memories"],
    )
    parser.add_argument("--designs", choices=DESIGNS, nargs="+", default=list(DESIGNS))
    parser.add_argument(
        "--queries", type=int, default=0, help="queries per conversation, spread evenly (0: all)"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results(
        "plus_packs", arguments, data=[CONVERSATION, arguments.locomo, arguments.beam]
    )
    rows = []
    for name, every in read_chats(arguments.locomo, arguments.beam):
        for kind in arguments.kinds:
            for design in arguments.designs:
                queries: list[Asked] = []
                with bar(sys.stderr.isatty(), len(every), unit="chat") as step:
                    for chat in every:
                        queries += recall_chat(chat, design, kind == "turns", arguments.queries)
                        step(1)
                rows.append(
                    {"data": name, "as": kind, "pack": f"{design}-plus", **summarise(queries)}
                )
                if not arguments.json:
                    _print_row(rows[-1], head=len(rows) == 1)
    points = [row | {"case": f"{row['pack']}, {row['as']}"} for row in rows]
    results.save(
        rows,
        plot_dots(
            points,
            label="case",
            value="difference",
            group="data",
            interval=("low", "high"),
            reference=0.0,
            title="Recall@10 of each plus pack minus the default pack",
        ),
        height=4.5,
    )
    if arguments.json:
        print(json.dumps(rows, indent=1))


def _print_row(row: dict[str, Any], *, head: bool) -> None:
    """Print a row of the table."""
    if head:
        print(
            f"{'':<35}{'n':>5} {'pack':>6} {'default':>8} {'difference':>24} {'gone':>6} {'visible':>8}"
        )
    label = f"{row['data']:<8}{row['as']:<10}{row['pack']:<17}"
    if row["own"] is None:
        print(
            f"{label}{row['judged']:>5} {'-':>6} {'-':>8} {'-':>24} {row['gone']:>6.3f} {row['visible']:>8.2f}"
        )
        return
    between = f"[{row['low']:+.3f}, {row['high']:+.3f}]" if row["low"] is not None else ""
    print(
        f"{label}{row['judged']:>5} {row['own']:>6.3f} {row['default']:>8.3f} {row['difference']:>+7.3f} {between:>16} "
        f"{row['gone']:>6.3f} {row['visible']:>8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
