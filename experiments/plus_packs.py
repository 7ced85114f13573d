"""What each ``-plus`` pack costs on labelled chats, and whether its design is visible in the ranking.

    python experiments/plus_packs.py --locomo locomo-dev5.json --beam beam100k [--as turns] [--queries 40] [--json]

Each conversation lives in a lab under the pack, as turns or as memories of the kind that the design is for, until a day
after its end. The pack's own upkeep forgets first; then the same memories are ranked by the pack and by the default
pack. Columns:

recall@10      of the evidence that the pack still has: the pack's, the default's, and their difference with its 95%
               interval by conversation
evidence gone  share of the labelled evidence that the pack has forgotten or superseded by that day
visible        share of queries whose first ten change where the pack's own term is taken out of its recall-score

The bundled conversation of the demo is always asked; LoCoMo and BEAM where their files are given, of these only the
chats that ``held_out.py`` does not set aside.
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
"""What a message is remembered as where it is no turn."""

TEN = 10
IN_USE = ("active", "staged", "confirmed")


@dataclass(frozen=True)
class Asked:
    """One query: recall@10 under both packs, evidence that it has and that is gone, whether the term moved it."""

    cluster: str
    own: float | None
    default: float | None
    labels: int
    gone: int
    moved: bool


def chats(
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


def asked_of(chat: LabelledConversation, design: str, as_turns: bool, queries: int) -> list[Asked]:
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
        kept = set(frame["ref"].to_list())
        found = []
        wanted = [
            question for question in chat.questions if question.answerable and question.evidence
        ]
        for question in _sample(wanted, queries):
            evidence = set(question.evidence)
            left = evidence & kept
            tops = [
                [hit.ref for hit in lab.recall(question.text, limit=TEN, pack=each, log=False)]
                for each in (pack, default, without)
            ]
            own, others = (len(left & set(top)) / len(left) if left else None for top in tops[:2])
            found.append(
                Asked(
                    talk.name, own, others, len(evidence), len(evidence - kept), tops[0] != tops[2]
                )
            )
        return found


def _sample(questions: Sequence[Any], most: int) -> list[Any]:
    """Return at most ``most`` of the questions, spread evenly; all for 0."""
    if not most or len(questions) <= most:
        return list(questions)
    return [questions[place] for place in np.linspace(0, len(questions) - 1, most).astype(int)]


def summary(found: Sequence[Asked]) -> dict[str, Any]:
    """The figures of one row of the table."""
    judged = [one for one in found if one.own is not None and one.default is not None]
    differences = [one.own - one.default for one in judged]
    many = len({one.cluster for one in judged}) > 1
    clusters = [one.cluster if many else str(at) for at, one in enumerate(judged)]
    interval = cluster_interval(differences, clusters) if len(judged) > 1 else None
    return {
        "queries": len(found),
        "judged": len(judged),
        "own": float(np.mean([one.own for one in judged])) if judged else None,
        "default": float(np.mean([one.default for one in judged])) if judged else None,
        "difference": float(np.mean(differences)) if judged else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "gone": sum(one.gone for one in found) / max(1, sum(one.labels for one in found)),
        "visible": float(np.mean([one.moved for one in found])),
    }


def main() -> None:
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
        "--queries", type=int, default=0, help="of each conversation, spread evenly; 0: all"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results(
        "plus_packs", arguments, data=[CONVERSATION, arguments.locomo, arguments.beam]
    )
    rows = []
    for name, every in chats(arguments.locomo, arguments.beam):
        for kind in arguments.kinds:
            for design in arguments.designs:
                found: list[Asked] = []
                with bar(sys.stderr.isatty(), len(every), unit="chat") as step:
                    for chat in every:
                        found += asked_of(chat, design, kind == "turns", arguments.queries)
                        step(1)
                rows.append({"data": name, "as": kind, "pack": f"{design}-plus", **summary(found)})
                if not arguments.json:
                    _say(rows[-1], head=len(rows) == 1)
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


def _say(row: dict[str, Any], *, head: bool) -> None:
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
