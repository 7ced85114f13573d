"""Measure the cost of a log of several years, and whether sealing changes conclusions.

    python experiments/years_of_log.py                        # 10,000 recalls, about two minutes
    python experiments/years_of_log.py --recalls 100000 --folder years

A lab of 1,000 invented memories on disk, drawn by a seed, is queried repeatedly, and each recall is judged once. The
first ``--compared`` recalls stay unsealed while a challenger runs. Then the log is evaluated and judged, sealed, and
evaluated and judged again. The rest is logged normally.

Sizes are bytes of files per recall, with events and judgements and without the memories. Times are processor time of
the whole process. ``searched`` are the bytes that a purge of one memory searches at the end.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
from results import Results, plot_bars
from speed import draw_rows, draw_sentence

import memlab
import memlab.kernel.storage.store as store

Result = TypeVar("Result")
MEMORIES = 1_000
NEVER = 10**9
APART = 600_000_000
"""Microseconds between two recalls; 100,000 recalls span two years."""

clock = memlab.ManualClock("2026-01-01")


def time_call(do: Callable[[], Result]) -> tuple[float, Result]:
    """Return the processor seconds and the result of a call."""
    begin = time.process_time()
    result = do()
    return time.process_time() - begin, result


def count_bytes(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def log_recalls(lab: memlab.Lab, dice: random.Random, count: int) -> None:
    """Log ``count`` recalls, and judge one memory of each."""
    for _ in range(count):
        clock.set(clock.now + APART)
        hits = lab.recall(draw_sentence(dice, 8), explore=True)
        lab.feedback(hits[dice.randrange(len(hits))], dice.choice(("success", "fail")))


def draw_conclusions(lab: memlab.Lab) -> tuple[dict[str, Any], float]:
    """Return estimates and verdict as JSON, and the seconds of the estimates."""
    policies = [
        "memlab",
        pl.col("similarity"),
        pl.col("lexical") + pl.col("use-1-days").fill_null(0),
    ]
    took, evaluation = time_call(
        lambda: memlab.evaluate(lab.slates(), policies, missing="censor", cluster="day")
    )
    verdict = lab.verdict(missing="censor", cluster="day")
    return {"estimates": repr(evaluation.to_dict()), "verdict": str(verdict)}, took


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--recalls", type=int, default=10_000)
    parser.add_argument("--compared", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--folder", type=Path, help="a folder to store the lab in (default: deleted)"
    )
    arguments = parser.parse_args()
    results = Results("years_of_log", arguments)
    folder = arguments.folder or Path(tempfile.mkdtemp())
    shutil.rmtree(folder / "lab", ignore_errors=True)
    dice = random.Random(arguments.seed)
    every, at = store._SEAL_EVERY, store._SEAL_AT
    measures: dict[str, Any] = {
        "recalls": arguments.recalls,
        "compared": arguments.compared,
        "memories": MEMORIES,
    }
    with memlab.open(folder / "lab", pack="memlab", clock=clock) as lab:
        lab.remember(draw_rows(MEMORIES, dice), chain=True)
    empty = count_bytes(folder)
    store._SEAL_EVERY = store._SEAL_AT = NEVER
    with memlab.open(folder / "lab", clock=clock) as lab:
        lab.challenge("workbench")
        measures["logged, challenged, ms"] = (
            1000
            * time_call(lambda: log_recalls(lab, dice, arguments.compared))[0]
            / arguments.compared
        )
    measures["full, bytes"] = (count_bytes(folder) - empty) / arguments.compared
    with memlab.open(folder / "lab", clock=clock) as lab:
        before, measures["evaluate before, s"] = draw_conclusions(lab)
        store._SEAL_EVERY, store._SEAL_AT = every, at
        took, count = time_call(lambda: lab.io.store.seal(every=min(every, arguments.compared)))
        measures["seal, ms"] = 1000 * took / count
        after, measures["evaluate after, s"] = draw_conclusions(lab)
        measures["estimates equal"] = before["estimates"] == after["estimates"]
        measures["verdicts equal"] = before["verdict"] == after["verdict"]
        lab.policies.end_challenge("workbench")
        left = arguments.recalls - arguments.compared
        if left:
            measures["logged with sealing, ms"] = (
                1000 * time_call(lambda: log_recalls(lab, dice, left))[0] / left
            )
            measures["of that judged and recalled"] = left
    measures["files, bytes"] = (count_bytes(folder) - empty) / arguments.recalls
    with memlab.open(folder / "lab", clock=clock) as lab:
        lab.io.store.seal()
        used = dict(lab.upkeep.usage().frame.select("what", "bytes").iter_rows())
        sealed = sum(count for what, count in used.items() if what.startswith("sealed slates"))
        measures["sealed, bytes"] = sealed / arguments.recalls
        measures["questions, bytes"] = used["questions of sealed slates"] / arguments.recalls
        measures["evaluate all, s"] = draw_conclusions(lab)[1]
        measures["whole lab before the purge, MB"] = count_bytes(folder) / 1e6
        took, done = time_call(lambda: lab.purge(17))
        measures["purge, s"] = took
        searched = done.frame.filter(step="searched").row(0, named=True)
        measures["searched, bytes"], measures["found"] = searched["bytes"], done.found.height
    measures["whole lab, MB"] = count_bytes(folder) / 1e6
    measures["peak memory, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    for name, value in measures.items():
        print(f"{name:32}{value:12,.2f}" if isinstance(value, float) else f"{name:32}{value!s:>12}")
    table = [{"measure": name, "value": str(value)} for name, value in measures.items()]
    sizes = [
        {"state of the log": label, "bytes per recall": measures[name]}
        for label, name in (
            ("not sealed", "full, bytes"),
            ("all files at the end", "files, bytes"),
            ("sealed slates", "sealed, bytes"),
            ("queries of sealed slates", "questions, bytes"),
        )
    ]
    results.save(
        table,
        plot_bars(
            sizes,
            label="state of the log",
            value="bytes per recall",
            title="Sealing shrinks the log",
        ),
    )
    (folder / "years.json").write_text(json.dumps(measures, indent=1))
    if arguments.folder is None:
        shutil.rmtree(folder)
    sys.exit(0 if measures["estimates equal"] and measures["verdicts equal"] else 1)


if __name__ == "__main__":
    main()
