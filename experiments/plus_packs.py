"""Measure the cost of each ``-plus`` pack on labelled chats, and whether its design is visible.

    python experiments/plus_packs.py --locomo locomo-dev5.json --beam beam100k [--as turns] [--queries 40]

A lab under the pack holds each conversation until a day after its end, as turns or as memories of the kind that the
design is for. The pack's own maintenance runs first. Then the pack and the default pack rank the same memories.

own, default   recall@10 of the pack and of the default pack, of the evidence that the lab still has
difference     the difference of the two
gone           share of a query's evidence that was forgotten or superseded by that day
visible        share of queries whose top ten changes without the pack's own term in its recall-score

The bundled conversation is always included. LoCoMo and BEAM are included if their files are given, without the chats
that ``held_out.py`` sets aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from held_out import BEAM_READ, LOCOMO_READ
from results import Results, run_experiment

import memlab
from memlab.io.ingest import LabelledConversation, read_beam, read_locomo
from memlab.kernel.policies import Pack, load_pack
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


METRICS = ("own", "default", "difference", "gone", "visible")


def read_chats(path: Path) -> list[LabelledConversation]:
    """Return the conversations of a file of LoCoMo or a folder of BEAM, without those that are held out."""
    if path.is_dir():
        return [chat for number in BEAM_READ for chat in read_beam(path / str(number))]
    chats = read_locomo(path)
    return [chat for chat in chats if path == CONVERSATION or chat.conversation.name in LOCOMO_READ]


def measure(pack: Pack, path: Path, seed: int, kinds: str, queries: int) -> pl.DataFrame:
    """Return the figures of each query under a ``-plus`` pack."""
    chats = read_chats(path)
    rows = [row for chat in chats for row in recall_chat(chat, pack, kinds == "turns", queries)]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    # The queries of one conversation are the units if there is no other.
    return frame if len(chats) > 1 else frame.with_columns(cluster=pl.col("question"))


def recall_chat(
    chat: LabelledConversation, pack: Pack, as_turns: bool, queries: int
) -> list[dict[str, Any]]:
    """Rank the queries of one conversation under a ``-plus`` pack and under the default pack."""
    default = load_pack("memlab")
    without = pack.with_policy("recall-score", default.policies["recall-score"])
    talk = chat.conversation
    clock = memlab.ManualClock(talk.turns[0].at)
    with memlab.open(pack=pack, clock=clock) as lab:
        rows = [dict(row) for row in talk.rows()]
        if not as_turns:
            rows = [{**row, "kind": KIND[pack.name.removesuffix("-plus")]} for row in rows]
        lab.remember(rows, chain=True, linking="off" if as_turns else None)
        clock.set(talk.end + timedelta(days=1))
        lab.upkeep.maintain()
        frame = lab.memories.filter(lab.memories["status"].is_in(IN_USE))
        active_refs = set(frame["ref"].to_list())
        figures = []
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
            figures.append(
                {
                    "cluster": talk.name,
                    "question": f"{talk.name}/{len(figures)}",
                    "own": own,
                    "default": others,
                    "difference": None if own is None or others is None else own - others,
                    "gone": len(evidence - active_refs) / len(evidence),
                    "visible": float(tops[0] != tops[2]),
                }
            )
        return figures


def _sample(questions: Sequence[Any], maximum: int) -> list[Any]:
    """Return at most ``maximum`` of the questions, spread evenly; all for 0."""
    if not maximum or len(questions) <= maximum:
        return list(questions)
    return [
        questions[position] for position in np.linspace(0, len(questions) - 1, maximum).astype(int)
    ]


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
    arguments = parser.parse_args()
    paths = {"demo": CONVERSATION, "LoCoMo": arguments.locomo, "BEAM": arguments.beam}
    for kinds in arguments.kinds:
        experiment = memlab.Experiment(
            f"plus_packs-{kinds}",
            [f"{design}-plus" for design in arguments.designs],
            {name: path for name, path in paths.items() if path is not None},
            metrics=METRICS,
            folder=arguments.results,
            measure=partial(measure, kinds=kinds, queries=arguments.queries),
        )
        run_experiment(experiment)


if __name__ == "__main__":
    main()
