"""Measure the speed of a lab: import, ingestion, opening and recalls, on a disk.

    python experiments/speed.py                     # synthetic memories, 1,000 to 100,000
    python experiments/speed.py --locomo locomo-dev5.json

Ingestion is durable, and recalls are whole: embedding, policy and log. The last column is the ratio to the unavoidable
parts: embedding the query, an exact search of the vectors, and one commit. ``language_speed.py`` times reading,
checking and swapping policies.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from results import Results, plot_lines

import memlab

# Word ranks after stop words, Zipf-Mandelbrot: the most frequent word is in some 10% of the sentences.
_RANKS = np.arange(40_000)
_SHARE = np.cumsum(1.0 / (_RANKS + 12.0))
_SHARE /= _SHARE[-1]
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ai", "or", "en")]


def compute_quantiles(seconds: list[float]) -> tuple[float, float]:
    """Return p50 and p95 in milliseconds."""
    return tuple(1000 * float(np.quantile(seconds, q)) for q in (0.5, 0.95))  # type: ignore[return-value]


def time_call(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def invent_word(rank: int) -> str:
    """Return an invented word for each rank; rare words are longer."""
    syllables = []
    rank += 100
    while rank:
        rank, part = divmod(rank, len(_SYLLABLES))
        syllables.append(_SYLLABLES[part])
    return "".join(syllables)


def draw_sentence(dice: random.Random, words: int = 12) -> str:
    """Return content words, drawn by their frequency in text."""
    drawn = np.searchsorted(_SHARE, [dice.random() for _ in range(words)])
    return " ".join(invent_word(int(rank)) for rank in drawn).capitalize() + "."


def remember_in_batches(lab: memlab.Lab, turns: list[dict[str, object]], *, first: int) -> None:
    """Remember rows from ``first`` on, 2,000 at a time."""
    for at in range(first, len(turns), 2000):
        lab.remember(turns[at : at + 2000], chain=True)


def draw_rows(count: int, dice: random.Random) -> list[dict[str, object]]:
    """Return random turns."""
    return [
        {
            "text": draw_sentence(dice),
            "kind": "turn",
            "speaker": dice.choice(["Ana", "Bo"]),
            "session": f"s{number // 20}",
            "project": f"p{number % 4}",
        }
        for number in range(count)
    ]


def time_recalls(lab: memlab.Lab, questions: list[tuple[str, str | None]]) -> list[float]:
    """Return the seconds of each recall after a warm-up."""
    for question, project in questions[:10]:
        lab.recall(question, project=project)
    return [
        time_call(lambda q=question, p=project: lab.recall(q, project=p))
        for question, project in questions
    ]


def time_parts(lab: memlab.Lab, questions: list[tuple[str, str | None]]) -> float:
    """Return the milliseconds of the unavoidable parts: embed, search exactly, commit a slate."""
    vectors, journal, blob = lab.io.store.state.vectors, lab.io.store.journal, b"x" * 30_000

    def must(question: str) -> None:
        vectors.top(lab.io.embedder.encode([question])[0], 100)
        with journal.write(durable=False) as tx:
            tx.slate(tx.event("recall", {"ids": []}, at=0), blob)

    return compute_quantiles([time_call(lambda q=question: must(q)) for question, _ in questions])[
        0
    ]


def time_import() -> float:
    """Return the milliseconds that ``import memlab`` adds, best of five."""

    def run(code: str) -> float:
        return min(
            time_call(lambda: subprocess.run([sys.executable, "-c", code], check=True))
            for _ in range(5)
        )

    return 1000 * (run("import memlab") - run("pass"))


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    results = Results("speed", arguments, data=[arguments.locomo])
    table = []

    print(f"import memlab            {time_import():8.1f} ms\n")

    print(
        f"{'scope':<14}{'turns':>9}{'turns/s':>9}{'reopen s':>10}{'p50 ms':>8}{'p95 ms':>8}{'p50 / parts':>13}"
    )
    with tempfile.TemporaryDirectory() as folder:
        if arguments.locomo:
            # the path differs in checkouts before 0.2
            from memlab.io.ingest import conversation, read_locomo

            path = Path(folder) / "locomo.memlab"
            benchmarks = read_locomo(arguments.locomo)
            with memlab.open(path) as lab:
                spent = time_call(
                    lambda: [
                        conversation(lab, b.conversation, project=b.conversation.name)
                        for b in benchmarks
                    ]
                )
                rate = len(lab) / spent
            queries = [(q.text, b.conversation.name) for b in benchmarks for q in b.questions]
            table.append(print_row("locomo", path, rate, queries))
        for size in arguments.sizes:
            dice = random.Random(arguments.seed)
            path = Path(folder) / f"{size}.memlab"
            turns = draw_rows(size, dice)
            with memlab.open(path) as lab:
                lab.remember(turns[:100], chain=True)
                spent = time_call(partial(remember_in_batches, lab, turns, first=100))
            questions: list[tuple[str, str | None]] = [
                (draw_sentence(dice, 8), None) for _ in range(100)
            ]
            table.append(print_row("all projects", path, (size - 100) / spent, questions))
            inside = [(question, "p1") for question, _ in questions]
            table.append(print_row("one project", path, None, inside))
    results.save(
        table,
        plot_lines(
            table,
            x="memories",
            y="p50 ms",
            group="scope",
            log="xy",
            title="Median time of a recall by size of the lab",
        ),
    )


def print_row(
    name: str, path: Path, rate: float | None, questions: list[tuple[str, str | None]]
) -> dict[str, object]:
    """Open a lab, time its recalls, print the row and return it."""
    started = time.perf_counter()
    with memlab.open(path) as lab:
        opened = time.perf_counter() - started
        p50, p95 = compute_quantiles(time_recalls(lab, questions))
        rated = "" if rate is None else f"{rate:,.0f}"
        ratio = p50 / time_parts(lab, questions)
        print(
            f"{name:<14}{len(lab):>9,}{rated:>9}{opened:>10.2f}{p50:>8.2f}{p95:>8.2f}{ratio:>13.1f}"
        )
        return {
            "scope": name,
            "memories": len(lab),
            "stored per s": rate,
            "open s": opened,
            "p50 ms": p50,
            "p95 ms": p95,
            "ratio to minimum": ratio,
        }


if __name__ == "__main__":
    main()
