"""Measure how much of the evidence a prompt context holds within a token budget.

    python experiments/context_evidence.py locomo-dev5.json
    python experiments/context_evidence.py locomo-dev5.json --beam BEAM --chats 8

Each question is a task, and its evidence are the labelled memories. ``whole`` is the share of the evidence whose full
text the context contains, with the 95% interval over conversations. ``plain`` is the same share if the results of the
recall are taken in their order, whole and with the same heading, until one does not fit. ``touched`` counts shortened
memories too, and ``used`` is the share of the budget. ``cost`` is the processor time of a context divided by that of a
recall with ten results.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from results import Results, plot_lines

import memlab
from memlab.io.ingest import LabelledConversation, conversation, read_beam, read_locomo
from memlab.science.distributions import t_quantile

_HEADING = 4 * 12
"""Bytes of the day, the speaker and the mark of a note."""


def measure_conversation(
    item: LabelledConversation, pack: str, budgets: Sequence[int]
) -> list[dict[str, float]]:
    """Return the mean figures of the questions of a conversation, for each budget."""
    figures: dict[int, list[dict[str, float]]] = {budget: [] for budget in budgets}
    with memlab.open(pack=pack) as lab:
        conversation(lab, item.conversation, project="p")
        ids = dict(lab.memories.select("ref", "id").rows())
        for question in item.questions:
            wanted = {ids[ref] for ref in question.evidence if ref in ids}
            if question.category == 5 or not wanted:
                continue
            about: dict[str, Any] = {"project": "p", "at": item.conversation.end, "log": False}
            begun = time.process_time()
            lab.recall(question.text, **about)
            recalled = time.process_time() - begun
            ranked = lab.recall(question.text, limit=100, **about)
            for budget in budgets:
                begun = time.process_time()
                context = lab.context(question.text, budget=budget, **about)
                cost = (time.process_time() - begun) / recalled
                flat = context.text.replace("\u2039", "<").replace("\u203a", ">")
                whole = {id for id in wanted if " ".join(lab[id].text.split()) in flat}
                plain = fill_plainly([(hit.id, hit.text) for hit in ranked], budget)
                figures[budget].append(
                    {
                        "whole": len(whole) / len(wanted),
                        "plain": len(wanted & plain) / len(wanted),
                        "touched": len(wanted & {*context.frame["memory_id"]}) / len(wanted),
                        "used": context.tokens / budget,
                        "cost": cost,
                    }
                )
    return [
        {
            name: statistics.fmean(row[name] for row in figures[budget])
            for name in figures[budget][0]
        }
        for budget in budgets
    ]


def fill_plainly(results: Sequence[tuple[int, str]], budget: int) -> set[int]:
    """Return the results that fit in their order, whole, next to the first line and the marks of a context."""
    free, chosen = 4 * budget - 136, set()
    for id, text in results:
        free -= len(text.encode()) + _HEADING
        if free < 0:
            break
        chosen.add(id)
    return chosen


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95% interval of a mean."""
    if len(values) < 2:
        return float("nan"), float("nan")
    half = t_quantile(len(values) - 1, 0.975) * statistics.stdev(values) / len(values) ** 0.5
    return statistics.fmean(values) - half, statistics.fmean(values) + half


def measure(
    items: Iterable[LabelledConversation], name: str, pack: str, budgets: Sequence[int]
) -> list[dict[str, Any]]:
    """Return a row for each budget: means over conversations."""
    measured = [measure_conversation(item, pack, budgets) for item in items]
    rows = []
    for index, budget in enumerate(budgets):
        figures = [rows_of[index] for rows_of in measured]
        row: dict[str, Any] = {"data": name, "conversations": len(figures), "budget": budget}
        row |= {
            key: round(statistics.fmean(figure[key] for figure in figures), 3) for key in figures[0]
        }
        row["low"], row["high"] = (
            round(end, 3) for end in interval([figure["whole"] for figure in figures])
        )
        rows.append(row)
    return rows


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("locomo", type=Path, help="conversations in LoCoMo's format")
    parser.add_argument("--beam", type=Path, help="a folder with chats of BEAM")
    parser.add_argument("--chats", type=int, default=8, help="the number of chats of BEAM")
    parser.add_argument("--pack", default="memlab")
    parser.add_argument("--budgets", type=int, nargs="+", default=[500, 1000, 2000, 4000])
    arguments = parser.parse_args()
    data = [arguments.locomo] + ([arguments.beam] if arguments.beam else [])
    results = Results("context_evidence", arguments, data=data)
    rows = measure(read_locomo(arguments.locomo), "LoCoMo", arguments.pack, arguments.budgets)
    if arguments.beam:
        chats = islice(read_beam(arguments.beam), arguments.chats)
        rows += measure(chats, "BEAM", arguments.pack, arguments.budgets)
    for row in rows:
        print(
            f"{row['data']:7} {row['budget']:>6,} tokens: whole {row['whole']:.3f} [{row['low']:.3f}, {row['high']:.3f}], "
            f"plain {row['plain']:.3f}, touched {row['touched']:.3f}, used {row['used']:.2f}, cost {row['cost']:.2f}"
        )
    locomo = [row for row in rows if row["data"] == "LoCoMo"]
    results.save(rows, plot_lines(locomo, x="budget", y="whole", title="Evidence within a budget"))


if __name__ == "__main__":
    main()
