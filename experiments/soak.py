"""Measure how a lab ages: a year of daily use under each pack, and ninety days of eight agents over HTTP.

    python experiments/soak.py year                        # every pack, about a minute each
    python experiments/soak.py year --packs memlab --days 30
    python experiments/soak.py http                        # eight clients of one server, ninety days

Days pass by a manual clock. A day of the year has six memories, five recalls with feedback, and maintenance. A week ends
with consolidation where the pack has it, a month with a backup and the purge of one memory. A day over HTTP has two
memories, six recalls and three judgements for each agent; the server maintains the lab once.

Each row is one day: megabytes of the lab without and with its backups, processor time of the day's median recall, resident
memory, descriptors and threads. A backup and a purge have their processor time. The summary compares the last tenth of
the days with the second tenth. The costs of a purge and a backup are divided by the megabytes of the lab.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from results import Results
from speed import draw_sentence

import memlab

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AGENTS = 8
TOKEN = "the-token-of-agent-{}"
# What an agent would say: a name, something it does and the subject, so that recalls find more than random words.
NAMES = ("Ada", "Bob", "Chen", "Dana", "Emil", "Fatima")
MB = 1e6

Row = dict[str, Any]


def measure_process(pid: int | str = "self") -> Row:
    """Return resident megabytes, descriptors, threads and processor seconds of a process."""
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return {
        "rss_mb": int(status["VmRSS"].split()[0]) / 1024,
        "descriptors": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
        "threads": int(status["Threads"]),
        "cpu_s": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"),
    }


def measure_folder(folder: Path) -> Row:
    """Return the megabytes of a lab without and with its backups."""
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    backups = sum(size for path, size in sizes.items() if "backups" in path.parts)
    return {"lab_mb": (sum(sizes.values()) - backups) / MB, "all_mb": sum(sizes.values()) / MB}


def draw_memory(dice: random.Random) -> str:
    return f"{dice.choice(NAMES)} {draw_sentence(dice, dice.randint(6, 14))}"


def time_cpu(do: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    begin = time.process_time()
    do()
    return time.process_time() - begin


# A year under each pack


def live_year(pack: str, days: int, seed: int, folder: Path) -> list[Row]:
    """Return one row for each day of a lab under a pack, which lives in this process."""
    dice, clock = random.Random(seed), memlab.ManualClock("2026-01-01")
    lab = memlab.open(folder, pack=pack, clock=clock)
    rows = []
    for day in range(1, days + 1):
        texts = [draw_memory(dice) for _ in range(6)]
        remember = time_cpu(lambda texts=texts: [lab.remember(text) for text in texts])
        recalls = []
        for _ in range(5):
            clock.advance(hours=2)
            query = draw_memory(dice)
            begin = time.process_time()
            hits = lab.recall(query)
            recalls.append(time.process_time() - begin)
            if hits:
                lab.feedback(dice.choice(list(hits)), dice.choice(("success", "fail")))
        upkeep = time_cpu(lab.upkeep.maintain)
        if day % 7 == 0:
            with contextlib.suppress(memlab.LabError):  # the pack does not consolidate
                lab.upkeep.consolidation.run()
        clock.advance(hours=14)
        recalls.sort()
        row = {
            "pack": pack,
            "day": day,
            "memories": len(lab),
            **measure_folder(folder),
            "recall_ms": 1e3 * recalls[2],
            "slow_recall_ms": 1e3 * recalls[-1],
            "remember_ms": 1e3 * remember / 6,
            "upkeep_ms": 1e3 * upkeep,
            **measure_process(),
            "backup_ms": None,
            "purge_ms": None,
        }
        if day % 30 == 0 or day in (10, days):
            row["backup_ms"] = 1e3 * time_cpu(lambda: lab.io.backup(keep=3))
            memory = dice.randint(1, len(lab))
            row["purge_ms"] = 1e3 * time_cpu(lambda memory=memory: lab.purge(memory, reason="soak"))
            row |= measure_folder(folder)
        rows.append(row)
    lab.close()
    return rows


# Eight agents over HTTP


def serve(folder: Path, pack: str) -> None:
    """Serve a lab with eight clients; each line of standard input begins another day."""
    from memlab.io.serving import serve_http

    clock = memlab.ManualClock("2026-01-01")
    lab = memlab.open(folder / "lab", pack=pack, clock=clock)
    clients = folder / "clients.toml"
    clients.write_text(
        "\n".join(
            f'[agent{number}]\ntoken = "{TOKEN.format(number)}"\nrole = "owner"'
            for number in range(AGENTS)
        )
    )
    clients.chmod(0o600)

    def pass_days() -> None:
        for line in sys.stdin:
            clock.advance(days=1)
            begin = time.process_time()
            lab.upkeep.maintain()
            done: Row = {"upkeep_ms": 1e3 * (time.process_time() - begin)}
            if line.strip() == "month":
                done["backup_ms"] = 1e3 * time_cpu(lambda: lab.io.backup(keep=3))
                done["purge_ms"] = 1e3 * time_cpu(lambda: lab.purge(len(lab), reason="soak"))
            print(json.dumps({**done, "memories": len(lab)}), flush=True)

    threading.Thread(target=pass_days, daemon=True).start()
    serve_http(lab, clients=clients, tell=lambda url, _: print(url, flush=True))


def live_over_http(pack: str, days: int, seed: int, folder: Path) -> list[Row]:
    """Return one row for each day of a server with eight clients, each a thread of this process."""
    from memlab.io.serving import connect

    command = [sys.executable, __file__, "serve", "--folder", str(folder), "--packs", pack]
    rows = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        latencies: list[float] = []
        faults: list[str] = []

        def live_day(number: int, day: int) -> None:
            dice = random.Random(f"{seed}-{number}-{day}")
            lab = connect(url, token=TOKEN.format(number), timeout=60)
            try:
                for _ in range(2):
                    lab.remember(draw_memory(dice))
                for call in range(6):
                    begin = time.perf_counter()
                    hits = lab.recall(draw_memory(dice))
                    latencies.append(time.perf_counter() - begin)
                    if call % 2 and len(hits):
                        lab.feedback(hits[:1], dice.choice(("success", "fail")), recall=hits.recall)
            except memlab.MemlabError as error:
                faults.append(f"day {day}, agent {number}: {error}")

        before = measure_process(server.pid)["cpu_s"]
        for day in range(1, days + 1):
            latencies.clear()
            agents = [
                threading.Thread(target=live_day, args=(number, day)) for number in range(AGENTS)
            ]
            for agent in agents:
                agent.start()
            for agent in agents:
                agent.join()
            process = measure_process(server.pid)
            calls = len(latencies) + 5 * AGENTS
            ends_month = day % 30 == 0 or day in (10, days)
            server.stdin.write("month\n" if ends_month else "day\n")
            server.stdin.flush()
            done = json.loads(server.stdout.readline())
            latencies.sort()
            rows.append(
                {
                    "pack": pack,
                    "day": day,
                    **measure_folder(folder / "lab"),
                    "recall_ms": 1e3 * (process["cpu_s"] - before) / max(1, calls),
                    "slow_recall_ms": 1e3 * latencies[int(0.99 * len(latencies))]
                    if latencies
                    else None,
                    "backup_ms": None,
                    "purge_ms": None,
                    **process,
                    **done,
                    "faults": len(faults),
                }
            )
            before = measure_process(server.pid)["cpu_s"]
        server.terminate()
    for fault in faults[:10]:
        print(fault)
    return rows


# The summary


def summarize(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return, for each pack, how the last tenth of the days differs from the second tenth."""
    table = pl.DataFrame(rows, infer_schema_length=None)
    lines = []
    for (pack,), days in table.group_by("pack", maintain_order=True):
        tenth = max(1, days.height // 10)
        early, late = days.slice(tenth, tenth), days.tail(tenth)
        costs = days.drop_nulls("purge_ms")
        per_mb = costs.select(
            "day",
            purge=pl.col("purge_ms") / pl.col("lab_mb"),
            backup=pl.col("backup_ms") / pl.col("lab_mb"),
        )

        def ratio(name: str, early: pl.DataFrame = early, late: pl.DataFrame = late) -> float:
            return float(late[name].median() / early[name].median())

        growth = days.select(size=pl.corr(pl.col("day"), pl.col("lab_mb")).pow(2)).item()
        lines.append(
            {
                "pack": pack,
                "days": days.height,
                "memories": days["memories"][-1],
                "lab_mb": days["lab_mb"][-1],
                "linear": growth,
                "recall": ratio("recall_ms"),
                "upkeep": ratio("upkeep_ms"),
                "rss": ratio("rss_mb"),
                "rss_growth_mb_per_lab_mb": float(
                    (late["rss_mb"].median() - early["rss_mb"].median())
                    / max(1e-9, late["lab_mb"].median() - early["lab_mb"].median())
                ),
                "descriptors": ratio("descriptors"),
                "threads": ratio("threads"),
                "purge_per_mb": float(per_mb["purge"][-1] / per_mb["purge"][0]),
                "backup_per_mb": float(per_mb["backup"][-1] / per_mb["backup"][0]),
            }
        )
    return lines


# Column, label, and whether it is divided by the lab's megabytes.
PANELS = (
    ("lab_mb", "lab, MB", False),
    ("recall_ms", "recall, ms of processor time", False),
    ("rss_mb", "resident memory, MB", False),
    ("purge_ms", "purge, ms for each MB of the lab", True),
)


def draw_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Return a figure with one line for each pack in each panel."""
    from matplotlib.figure import Figure

    table = pl.DataFrame(rows, infer_schema_length=None)
    figure = Figure(figsize=(10, 6), layout="constrained")
    for axes, (column, label, is_shared) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        for (pack,), days in table.group_by("pack", maintain_order=True):
            measured = days.drop_nulls(column)
            values = measured[column]
            if is_shared:
                values = values / measured["lab_mb"]
            if column == "recall_ms":
                values = values.rolling_median(7, min_samples=1)
            axes.plot(measured["day"], values, label=pack, linewidth=1.2)
        axes.set_xlabel("day")
        axes.set_title(label, fontsize=10)
        axes.set_ylim(bottom=0)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return figure


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("what", choices=("year", "http", "serve"))
    parser.add_argument(
        "--packs", nargs="+", default=None, help="default: all, or memlab over HTTP"
    )
    parser.add_argument("--days", type=int, default=None, help="default: 365, or 90 over HTTP")
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--folder", type=Path, default=None, help="of the server")
    arguments = parser.parse_args()
    if arguments.what == "serve":
        serve(arguments.folder, arguments.packs[0])
        return
    is_year = arguments.what == "year"
    packs = arguments.packs or (memlab.packs() if is_year else ["memlab"])
    days = arguments.days or (365 if is_year else 90)
    live = live_year if is_year else live_over_http
    rows = []
    for pack in packs:
        # a process for each pack, so that the memory of one is not that of all before it
        with tempfile.TemporaryDirectory() as folder, get_context("spawn").Pool(1) as pool:
            rows += pool.apply(live, (pack, days, arguments.seed, Path(folder)))
        with pl.Config(
            tbl_cols=-1, tbl_width_chars=200, float_precision=2, tbl_hide_column_data_types=True
        ):
            print(pl.DataFrame(summarize([row for row in rows if row["pack"] == pack])))
    Results(f"soak_{arguments.what}", arguments).save(rows, draw_figure(rows))


if __name__ == "__main__":
    main()
