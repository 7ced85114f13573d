"""Compare memlab with chromadb, LangGraph's store, txtai and mem0.

    pip install 'memlab-core[bench]' && python experiments/side_by_side.py locomo-dev5.json beam100k

Each argument is a file in LoCoMo's format or a folder of BEAM's, with a table of its own. Each system stores every turn
of a conversation in a new store. Then it answers the conversation's questions with evidence, ten turns each, after a
warm-up and in the same order.

All systems get the same text ("Ann: I moved"), the same labels (ref, session, speaker, time) and the same 256-d vectors
of memlab's embedder, computed beforehand. Only the row "memlab + embedding" computes them itself. Each system runs in a
process of its own, without a network or telemetry. Systems alternate; figures are medians over ``--runs``. A system
that is not installed is named and left out.

recall@10   Share of a question's evidence in the top ten, mean over questions, turn level.
nDCG@10     The same, weighted by rank.
adds/s      The turns of a conversation in one saved batch. "singly": 100 turns of the first, one call each.
p50, p95    Milliseconds of one query.
RSS         Peak memory of the process in MB with imports. "imports" is the memory before the first store.
disk        MB of all stores after they are closed.

Searches and guarantees differ; the table names them. chromadb, LangGraph and mem0 rank by vectors alone, as "memlab
dense" does, and txtai by vectors and words. (The words and entities of mem0 need a downloaded model, which is left
out.) memlab's default pack also weighs speakers, sessions and neighbouring turns. Its weights were fitted on
conversations of these sets, so its recall on them is not held out; docs/benchmarks.md has the held-out value.

"Synced" means that the disk was told to sync before a call returned. A trace of system calls shows it for memlab,
chromadb and mem0 (eight times per add in the latter two). "logged" also stores the candidates of every recall.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import (
    FIGURES,
    Failed,
    disk_mb,
    missing,
    peak_mb,
    percentile_ms,
    positive,
    provenance,
    run_child,
    save_figure,
    serve_child,
    stated,
    timed,
)
from numpy.typing import NDArray
from peer_stores import BASE, PEERS, SYSTEMS, TEN, MemlabStore, Row, Store, System
from results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from memlab.kernel.embedding import Embedder

SINGLES = 100
"""The number of turns that are added one by one."""
WARM = 10
"""The number of warm-up questions of each conversation."""
MEASURES = ("recall", "ndcg", "adds", "singles", "p50", "p95", "rss", "imports", "disk")


def prepare(
    path: str, conversations: int | None, questions: int | None, folder: str
) -> dict[str, Any]:
    """Write the input of all systems: ``plan.json``, and ``vectors.npy`` of its texts."""
    from memlab.io.ingest import read_beam, read_locomo
    from memlab.kernel.embedding import load_embedder
    from memlab.kernel.privacy import screen
    from memlab.kernel.state import add_prefix

    plan: list[dict[str, Any]] = []
    read = read_beam if Path(path).is_dir() else read_locomo
    for labelled in read(path)[:conversations]:
        talk = labelled.conversation
        rows: list[dict[str, Any]] = [
            {
                "text": screen(str(row["text"])).text,
                "speaker": row["speaker"],
                "session": row["session"],
                "ref": row["ref"],
                "at": turn.at.isoformat(),
            }
            for row, turn in zip(
                talk.rows(), (turn for turn in talk.turns if turn.content), strict=True
            )
        ]
        for row in rows:
            row["said"] = add_prefix(row["text"], row["speaker"])
        refs = {row["ref"] for row in rows}
        questions_asked = [
            {
                "text": screen(question.text).text,
                "evidence": [ref for ref in question.evidence if ref in refs],
            }
            for question in labelled.questions
            if question.answerable and refs.intersection(question.evidence)
        ]
        at = (talk.end + timedelta(days=1)).isoformat()
        plan.append(
            {"name": talk.name, "rows": rows, "questions": questions_asked[:questions], "at": at}
        )
    texts = [row["said"] for talk in plan for row in talk["rows"]]
    texts += [question["text"] for talk in plan for question in talk["questions"]]
    texts = list(dict.fromkeys(texts))
    np.save(Path(folder) / "vectors.npy", load_embedder().encode(texts))
    (Path(folder) / "plan.json").write_text(
        json.dumps({"talks": plan, "texts": texts}), encoding="utf-8"
    )
    return {
        "conversations": len(plan),
        "turns": sum(len(talk["rows"]) for talk in plan),
        "questions": sum(len(talk["questions"]) for talk in plan),
    }


def measure_system(system: str, folder: str, run: int) -> dict[str, Any]:
    """Run one system once over all conversations."""
    from memlab.kernel.base.progress import bar

    plan = json.loads((Path(folder) / "plan.json").read_text(encoding="utf-8"))
    integers = np.load(Path(folder) / "vectors.npy")
    row_by_text = {text: row for row, text in enumerate(plan["texts"])}
    opened = _build_opener(
        next(candidate for candidate in SYSTEMS if candidate.name == system), row_by_text, integers
    )
    warmed = _warm_up(opened)
    measures: dict[str, list[float]] = {"recall": [], "ndcg": [], "seconds": []}
    added, spent, disk = 0, 0.0, 0.0
    steps = sum(len(talk["rows"]) + len(talk["questions"]) for talk in plan["talks"])
    with bar(sys.stderr.isatty(), steps, unit="call", desc=f"{system}, run {run}") as step:
        for talk in plan["talks"]:
            with tempfile.TemporaryDirectory(prefix="side-by-side-") as place_of_store:
                store = opened(Path(place_of_store))
                spent += timed(_time_batch, store, talk["rows"])[0]
                added += len(talk["rows"])
                step(len(talk["rows"]))
                for question in talk["questions"][:WARM]:
                    store.ask(question["text"], talk["at"])
                for question in talk["questions"]:
                    seconds, refs = timed(store.ask, question["text"], talk["at"])
                    measures["seconds"].append(seconds)
                    measures["recall"].append(recall_at_ten(refs, question["evidence"]))
                    measures["ndcg"].append(ndcg_at_ten(refs, question["evidence"]))
                    step(1)
                store.close()
                disk += disk_mb(Path(place_of_store))
    peak = peak_mb()
    singly = plan["talks"][0]["rows"][:SINGLES]
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as place_of_store:
        store = opened(Path(place_of_store))
        seconds, _ = timed(_time_singles, store, singly)
        store.close()
    return {
        "recall": statistics.fmean(measures["recall"]),
        "ndcg": statistics.fmean(measures["ndcg"]),
        "adds": added / spent,
        "singles": len(singly) / seconds,
        "p50": percentile_ms(measures["seconds"], 50),
        "p95": percentile_ms(measures["seconds"], 95),
        "rss": peak,
        "imports": warmed,
        "disk": disk,
    }


def _time_batch(store: Store, rows: Sequence[Row]) -> None:
    """Time adding a batch."""
    store.add(rows)
    store.save()


def _time_singles(store: Store, rows: Sequence[Row]) -> None:
    """Time adding turns one by one."""
    for row in rows:
        store.add([row])


def _warm_up(opened: Callable[[Path], Store]) -> float:
    """Open and close an empty store, which imports its modules; return the memory in MB."""
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as folder:
        opened(Path(folder)).close()
    return peak_mb()


def recall_at_ten(refs: Sequence[str], evidence: Sequence[str]) -> float:
    """Return fractional recall@10."""
    return len(set(refs[:TEN]) & set(evidence)) / len(evidence)


def ndcg_at_ten(refs: Sequence[str], evidence: Sequence[str]) -> float:
    """Return nDCG@10."""
    wanted = set(evidence)
    total = sum(
        1 / math.log2(rank + 1)
        for rank, ref in enumerate(dict.fromkeys(refs[:TEN]), 1)
        if ref in wanted
    )
    return total / sum(1 / math.log2(rank + 1) for rank in range(1, min(TEN, len(wanted)) + 1))


def _build_opener(
    system: System, row_by_text: Mapping[str, int], integers: NDArray[np.int8]
) -> Callable[[Path], Store]:
    """Return a function that opens a new store of a system in a folder."""
    if system.name in PEERS:
        floats = integers.astype(np.float32)
        floats /= np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-9)
        return lambda folder: PEERS[system.name](
            folder, lambda texts: floats[[row_by_text[text] for text in texts]]
        )

    from memlab.kernel.embedding import load_embedder
    from memlab.science.evaluation import BASELINES

    embedder: Embedder | None = None
    if system.options.get("embed"):
        load_embedder().encode([""])
    else:
        embedder = replace(
            load_embedder(), _embed=lambda texts: integers[[row_by_text[text] for text in texts]]
        )
    pack = BASELINES["dense"] if system.options.get("dense") else None
    return lambda folder: MemlabStore(folder, embedder, pack=pack, log=system.options["log"])


def compare(
    path: Path, *, conversations: int | None, questions: int | None, runs: int, only: Sequence[str]
) -> dict[str, Any]:
    """Run every system ``runs`` times; return medians, ratios to memlab, and systems left out."""
    chosen = [system for system in SYSTEMS if system.name in only]
    out = {system.name: reason for system in chosen if (reason := missing(system.needs))}
    runs_by_system: dict[str, list[dict[str, Any]]] = {
        system.name: [] for system in chosen if system.name not in out
    }
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as folder:
        options = {
            "path": str(path.resolve()),
            "conversations": conversations,
            "questions": questions,
            "folder": folder,
        }
        data = run_child(__file__, "prepare", options)
        for run in range(1, runs + 1):
            for name in list(runs_by_system):
                try:
                    runs_by_system[name].append(
                        run_child(
                            __file__,
                            "measure_system",
                            {"system": name, "folder": folder, "run": run},
                        )
                    )
                except Failed as failed:
                    out[name] = str(failed)
                    del runs_by_system[name]
    rows = [
        {
            "system": system.name,
            "keeps": system.keeps,
            "searches": system.searches,
            **{
                measure: statistics.median(run[measure] for run in runs_by_system[system.name])
                for measure in MEASURES
            },
            "runs": runs_by_system[system.name],
        }
        for system in chosen
        if system.name in runs_by_system
    ]
    base = next((row for row in rows if row["system"] == BASE), None)
    for row in rows:
        row["ratios"] = {m: row[m] / base[m] for m in MEASURES if base[m]} if base else {}
    distributions = dict.fromkeys(name for system in chosen for name in system.needs)
    return {
        **provenance(distributions),
        **data,
        "dataset": path.stem,
        "rows": rows,
        "left_out": out,
    }


def format_table(comparison: Mapping[str, Any]) -> str:
    """Return the comparison as text."""
    lines = [
        stated(comparison),
        f"{comparison['dataset']}: {comparison['conversations']} conversations, {comparison['turns']:,} turns, "
        f"{comparison['questions']:,} questions with an answer",
        "",
        f"{'':<19}{'recall':>7}{'nDCG':>7}{'adds/s':>9}{'singly':>8}{'p50':>9}{'p95':>9}{'RSS':>7}{'imports':>8}"
        f"{'disk':>7}{'adds':>8}{'p50':>8}{'RSS':>7}",
        f"{'':<19}{'@10':>7}{'@10':>7}{'':>9}{'/s':>8}{'ms':>9}{'ms':>9}{'MB':>7}{'MB':>8}"
        f"{'MB':>7}{f'against {BASE}':>23}",
    ]
    for row in comparison["rows"]:
        ratios = row["ratios"]
        against = "".join(
            f"{ratios[name]:>{width - 1}.2f}x" if name in ratios else f"{'':>{width}}"
            for name, width in (("adds", 8), ("p50", 8), ("rss", 7))
        )
        disk = f"{row['disk']:.1f}" if row["disk"] else "-"
        lines.append(
            f"{row['system']:<19}{row['recall']:>7.3f}{row['ndcg']:>7.3f}{row['adds']:>9,.0f}{row['singles']:>8,.0f}{row['p50']:>9.2f}"
            f"{row['p95']:>9.2f}{row['rss']:>7.0f}{row['imports']:>8.0f}{disk:>7}{against}"
            f"   {row['keeps']}; {row['searches']}"
        )
    lines += [f"{name}: {reason}" for name, reason in comparison["left_out"].items()]
    return "\n".join(lines)


def draw_figure(comparison: Mapping[str, Any]) -> Figure:
    """Draw one line per system and one panel per measure."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from memlab.subjects.drawing import BLUE, GREY, INK, ORANGE, STYLE

    rows = list(reversed(comparison["rows"]))
    heights = list(range(len(rows)))
    colours = [BLUE if row["system"].startswith("memlab") else ORANGE for row in rows]

    def panel(
        axes: Axes, measure: str, title: str, number_format: str, *, logarithmic: bool
    ) -> None:
        for height, colour, row in zip(heights, colours, rows, strict=True):
            value = row[measure]
            if not value:
                axes.text(
                    0.02,
                    height,
                    row["keeps"],
                    transform=axes.get_yaxis_transform(),
                    va="center",
                    color=GREY,
                )
                continue
            if measure == "p50":
                axes.plot(
                    [value, row["p95"]], [height, height], color=colour, linewidth=1.6, zorder=2
                )
            axes.scatter(
                [value],
                [height],
                s=44,
                color=colour,
                marker="o" if colour == BLUE else "s",
                zorder=3,
            )
            axes.annotate(
                format(value, number_format),
                (value, height),
                (0, 7),
                textcoords="offset points",
                ha="center",
                color=INK,
            )
        if logarithmic:
            axes.set_xscale("log")
            axes.margins(x=0.22)
        else:
            axes.set_xlim(0, 1.25 * max(row[measure] for row in rows))
        axes.set_title(title)
        axes.set_ylim(-0.5, len(rows) - 0.3)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)

    with rc_context({**STYLE, "font.size": 9.0, "axes.titlesize": 9.5}):
        figure = Figure(
            figsize=(12.0, 1.6 + 0.42 * len(rows)), layout="constrained", facecolor="white"
        )
        panels = figure.subplots(1, 5, sharey=True)
        panel(panels[0], "recall", "recall@10", ".3f", logarithmic=False)
        panel(panels[1], "adds", "adds a second", ",.0f", logarithmic=True)
        panel(panels[2], "p50", "p50, line to p95, ms", ".3g", logarithmic=True)
        panel(panels[3], "rss", "peak memory, MB", ",.0f", logarithmic=False)
        panel(panels[4], "disk", "disk, MB", ",.1f", logarithmic=False)
        panels[0].set_yticks(heights, [row["system"] for row in rows])
        figure.suptitle(
            f"{comparison['turns']:,} turns and {comparison['questions']:,} questions of {comparison['dataset']}, "
            "the same vectors, one machine",
            x=0.008,
            ha="left",
            weight="bold",
            size=10.5,
        )
        figure.supxlabel(stated(comparison), color=GREY, fontsize=7.0, x=0.008, ha="left")
    return figure


def main() -> None:
    """Run the study."""
    names = [system.name for system in SYSTEMS]
    parser = Results.build_parser(__doc__)
    parser.add_argument(
        "paths", type=Path, nargs="+", help="files in LoCoMo's format or folders of BEAM chats"
    )
    parser.add_argument(
        "--conversations", type=positive, help="maximum conversations of each data set"
    )
    parser.add_argument("--questions", type=positive, help="maximum questions of each conversation")
    parser.add_argument("--runs", type=positive, default=3)
    parser.add_argument(
        "--systems", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument(
        "--figures",
        type=Path,
        default=FIGURES,
        help="the folder that side-by-side.svg is written to",
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results("side_by_side", arguments, data=arguments.paths)
    sets = []
    rows = []
    for path in arguments.paths:
        comparison = compare(
            path,
            conversations=arguments.conversations,
            questions=arguments.questions,
            runs=arguments.runs,
            only=arguments.systems,
        )
        if comparison["rows"]:
            name = f"side-by-side-{comparison['dataset']}" if sets else "side-by-side"
            figure = draw_figure(comparison)
            save_figure(figure, name, arguments.figures)
            results.write_figure(figure, name)
            rows += [
                {"data": comparison["dataset"], **{key: row[key] for key in ("system", *MEASURES)}}
                for row in comparison["rows"]
            ]
        sets.append(comparison)
        if not arguments.json:
            print(format_table(comparison), end="\n\n", flush=True)
    results.save(rows)
    if arguments.json:
        print(json.dumps(sets, indent=1))
    if any(
        not reason.startswith("not installed")
        for comparison in sets
        for reason in comparison["left_out"].values()
    ):
        raise SystemExit(1)


if __name__ == "__main__" and not serve_child((prepare, measure_system)):
    main()
