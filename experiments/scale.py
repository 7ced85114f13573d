"""Measure the cost of a lab as it grows, next to bare indexes.

    pip install 'memlab-core[bench]' && python experiments/scale.py locomo-dev5.json
    python experiments/scale.py locomo-dev5.json --sizes 1000000 --singles 10000 --folder labs

The turns are synthetic conversations, recombined from the sentences of the given ones (see ``recombined.py``); the
questions are real. A lab embeds, indexes words, links turns and syncs. A recall reads words, vectors and graph, applies
the policy and logs. An index stores precomputed vectors (bm25s: texts) and returns ten of them.

Building and searching are separate processes, and so is every size. With ``--folder`` the corpus, the labs and the
indexes are stored and used again by the next run.

ingest      durable memories per second; for an index including saving (two threads, if it has any)
reopen      seconds until a query can be answered; modules are imported and files in the page cache
p50, p95    milliseconds of one query; "whole" is ``lab.recall`` with its log, "one project" the same with a filter
recall@10   share of the exact ten nearest, or equally near ones, that an index returns. The first effort that reaches
            ``--target`` is shown, or the best one
RSS         peak memory of the answering process in MB, and as a multiple of the vectors (4 bytes a component)
singles     ``lab.remember`` calls per second, each durable, on top of the corpus
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bare_indexes import INDEXES, TEN, Matrix
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
from recombined import START, Recombined, time_of_row
from results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    import memlab

BATCH = 2_000
WARM = 20
LAB = "memlab"
NAMED = {index.name: index for index in INDEXES}


# -- children -------------------------------------------------------------------------------------------------


def prepare(
    path: str, folder: str, count: int, sizes: list[int], questions: int, seed: int
) -> dict[str, Any]:
    """Write the corpus, its vectors, and the questions with their exact neighbours for each size."""
    from memlab.io.ingest import read_locomo
    from memlab.kernel.embedding import load_embedder
    from memlab.kernel.state import add_prefix

    where = Path(folder)
    made_of = {
        "source": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        "seed": seed,
        "count": count,
    }
    source = Recombined(read_locomo(path), seed)
    embedder = load_embedder()
    if not _has_corpus(where, made_of):
        vectors = np.lib.format.open_memmap(
            where / "vectors.npy", mode="w+", dtype=np.int8, shape=(count, embedder.dim)
        )
        rows = source.rows(count)
        with (
            (where / "corpus.jsonl").open("w", encoding="utf-8") as file,
            _bar(count, "corpus") as step,
        ):
            for start in range(0, count, BATCH):
                batch = list(islice(rows, BATCH))
                file.writelines(json.dumps(row) + "\n" for row in batch)
                texts = [add_prefix(row["text"], row["speaker"]) for row in batch]
                vectors[start : start + len(batch)] = embedder.encode(texts)
                step(len(batch))
        vectors.flush()
        (where / "corpus.json").write_text(json.dumps(made_of), encoding="utf-8")
    stored = np.load(where / "vectors.npy", mmap_mode="r")
    for size in sizes:
        queries = source.questions(questions, rows=size)
        query_vectors = embedder.encode([text for text, _ in queries])
        nearest = np.full((questions, 0), -1.0)
        for start in range(0, size, 50_000):
            part = _normalise(stored[start : min(size, start + 50_000)])
            nearest = np.sort(np.hstack([nearest, _normalise(query_vectors) @ part.T]))[:, -TEN:]
        np.savez(where / f"asked-{size}.npz", vectors=query_vectors, nearest=nearest)
        (where / f"asked-{size}.json").write_text(json.dumps(queries), encoding="utf-8")
    return {"turns": count}


def measure_ingest(folder: str, size: int, lab: str) -> dict[str, Any]:
    """Fill a lab in batches of 2,000, and close it."""
    _import_modules()
    with _read_corpus(folder, 0, size) as rows, _bar(size, f"{size:,}: memlab, ingest") as step:
        opened = _open_lab(Path(lab))
        spent = 0.0
        while batch := list(islice(rows, BATCH)):
            spent += timed(opened.remember, batch, chain=True)[0]
            step(len(batch))
        waiting, _ = timed(_wait_for_index, opened)
        closing, _ = timed(opened.close)
    return {
        "ingest": size / (spent + closing),
        "index_s": waiting,
        "ingest_rss": peak_mb(),
        "disk": disk_mb(Path(lab)),
    }


def measure_recalls(folder: str, lab: str, size: int) -> dict[str, Any]:
    """Time whole recalls with and without the log, in one project, and by the index alone."""
    plan = json.loads((Path(folder) / f"asked-{size}.json").read_text(encoding="utf-8"))
    query_vectors = _read_queries(folder, size)
    _import_modules()
    reopen, opened = timed(_open_lab, Path(lab))
    first, _ = timed(opened.recall, plan[0][0], log=False)
    _wait_for_index(opened)
    measures: dict[str, Any] = {"reopen": reopen, "first_ms": 1000 * first}
    ways: dict[str, Callable[[str, str], object]] = {
        "unlogged": lambda text, project: opened.recall(text, limit=TEN, log=False),
        "whole": lambda text, project: opened.recall(text, limit=TEN),
        "one_project": lambda text, project: opened.recall(text, limit=TEN, project=plan[0][1]),
    }
    with _bar(len(ways) * len(plan), f"{size:,}: memlab, recall") as step:
        for name, ask in ways.items():
            for question in plan[:WARM]:
                ask(*question)
            seconds = []
            for question in plan:
                seconds.append(timed(ask, *question)[0])
                step(1)
            measures |= {
                f"{name}_p50": percentile_ms(seconds, 50),
                f"{name}_p95": percentile_ms(seconds, 95),
            }
    measures["rss"] = peak_mb()
    vectors = opened.io.store.state.vectors
    ran = [timed(vectors.top, query, TEN) for query in query_vectors["vectors"]]
    measures["index_p50"] = percentile_ms([seconds for seconds, _ in ran], 50)
    measures["recall"] = _recall_at_ten(folder, size, [rows for _, (rows, _) in ran])
    measures["report"] = str(opened.upkeep.index.report())
    opened.close()
    return measures


def measure_singles(folder: str, lab: str, size: int, count: int) -> dict[str, Any]:
    """Remember one memory at a time, on top of the corpus."""
    _import_modules()
    opened = _open_lab(Path(lab))
    opened.recall("a first question loads what a recall needs", log=False)
    with (
        _read_corpus(folder, size, count) as rows,
        _bar(count, f"{size:,}: memlab, singles") as step,
    ):
        seconds = []
        for row in rows:
            seconds.append(timed(opened.remember, **row, chain=True)[0])
            step(1)
    opened.close()
    return {
        "singles": count / sum(seconds),
        "singles_p50": percentile_ms(seconds, 50),
        "singles_p95": percentile_ms(seconds, 95),
        "singles_max": 1000 * max(seconds),
    }


def build(folder: str, size: int, name: str) -> dict[str, Any]:
    """Build and save a bare index."""
    index = NAMED[name]
    path = _index_path(folder, size, name)
    vectors: Any
    if index.lexical:
        with (Path(folder) / "corpus.jsonl").open(encoding="utf-8") as file:
            vectors = [json.loads(line)["text"] for line in islice(file, size)]
    else:
        stored = np.load(Path(folder) / "vectors.npy", mmap_mode="r")
        vectors = np.empty((size, stored.shape[1]), dtype=np.float32)
        for start in range(0, size, 50_000):
            vectors[start : start + 50_000] = _normalise(stored[start : min(size, start + 50_000)])
    seconds, _ = timed(index.build, vectors, path)
    return {"ingest": size / seconds, "ingest_rss": peak_mb(), "disk": disk_mb(path)}


def search(folder: str, size: int, name: str, target: float) -> dict[str, Any]:
    """Query a bare index with rising effort until it reaches the target."""
    index = NAMED[name]
    plan = json.loads((Path(folder) / f"asked-{size}.json").read_text(encoding="utf-8"))
    vectors = _normalise(_read_queries(folder, size)["vectors"])
    queries = [text for text, _ in plan] if index.lexical else list(vectors)
    importlib.import_module(index.module)
    reopen, served = timed(index.serve, _index_path(folder, size, name), vectors.shape[1])
    tried: list[dict[str, Any]] = []
    for effort in index.efforts:
        find = served(effort)
        for query in queries[:WARM]:
            find(query)
        ran = [timed(find, query) for query in queries]
        seconds = [duration for duration, _ in ran]
        share = None if index.lexical else _recall_at_ten(folder, size, [rows for _, rows in ran])
        tried.append(
            {
                "effort": effort,
                "p50": percentile_ms(seconds, 50),
                "p95": percentile_ms(seconds, 95),
                "recall": share,
            }
        )
        if share is None or share >= target:
            break
    best = tried[-1] if index.lexical else max(tried, key=lambda duration: duration["recall"])
    return {"reopen": reopen, **best, "tried": tried, "rss": peak_mb()}


def _import_modules() -> None:
    """Import the modules that opening a lab needs, so that no size pays for them."""
    import memlab

    with memlab.open() as passing:
        passing.remember("loaded")
        passing.recall("loaded")


def _wait_for_index(lab: memlab.Lab) -> None:
    """Wait for an index that is built in the background after a first recall."""
    lab.recall("a first question", log=False)
    lab.upkeep.index.wait()


def _open_lab(path: Path) -> memlab.Lab:
    import memlab

    # later than any turn: three million turns span twenty years
    return memlab.open(path, clock=memlab.ManualClock(START.replace(year=2020)))


@contextmanager
def _read_corpus(folder: str, first: int, count: int) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield rows ``first`` to ``first + count`` in batches."""
    with (Path(folder) / "corpus.jsonl").open(encoding="utf-8") as file:
        rows = (json.loads(line) for line in islice(file, first, first + count))
        yield ({"kind": "turn", "at": time_of_row(row.pop("minute")), **row} for row in rows)


def _bar(total: int, desc: str) -> Any:
    from memlab.kernel.base.progress import bar

    return bar(sys.stderr.isatty(), total, unit="it", desc=desc)


def _normalise(vectors: NDArray[Any]) -> Matrix:
    """Return vectors with a norm of 1."""
    floats = np.asarray(vectors).astype(np.float32)
    floats /= np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-9)
    return floats


def _read_queries(folder: str, size: int) -> Mapping[str, NDArray[Any]]:
    """Read the queries of a size."""
    with np.load(Path(folder) / f"asked-{size}.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


def _recall_at_ten(folder: str, size: int, rows: Sequence[Any]) -> float:
    """Return the share of returned rows that are as near as the exact tenth."""
    plan = _read_queries(folder, size)
    stored = np.load(Path(folder) / "vectors.npy", mmap_mode="r")
    shares = []
    for query, nearest, row in zip(_normalise(plan["vectors"]), plan["nearest"], rows, strict=True):
        near = _normalise(stored[np.unique(np.asarray(row, dtype=np.int64))[:TEN]]) @ query
        shares.append(float((near >= nearest[0] - 1e-5).sum()) / len(nearest))
    return float(np.mean(shares))


def _index_path(folder: str, size: int, name: str) -> Path:
    return Path(folder) / f"{name.replace(' ', '-')}-{size}"


def _has_corpus(folder: Path, made_of: Mapping[str, Any]) -> bool:
    """Return whether the folder has this corpus or a longer one; delete outdated builds."""
    noted = folder / "corpus.json"
    corpus = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
    if any(corpus.get(name) != made_of[name] for name in ("source", "seed")):
        for built in folder.glob("built-*.json"):
            built.unlink()
        return False
    return int(corpus["count"]) >= int(made_of["count"])


# -- the parent -----------------------------------------------------------------------------------------------


def compare(path: Path, folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Measure the lab and every installed index at every size."""
    sizes = sorted(set(chosen.sizes))
    indexes = [index for index in INDEXES if index.name in chosen.indexes]
    out = {index.name: reason for index in indexes if (reason := missing([index.needs]))}
    options = {
        "path": str(path.resolve()),
        "folder": str(folder),
        "seed": chosen.seed,
        "questions": chosen.questions,
    }
    run_child(__file__, "prepare", options | {"count": sizes[-1] + chosen.singles, "sizes": sizes})
    rows = []
    for size in sizes:
        rows.append({"size": size, "system": LAB, **_measure_lab(folder, size, chosen.singles)})
        for index in indexes:
            if index.name in out:
                continue
            about = {"folder": str(folder), "size": size, "name": index.name}
            try:
                built = _run_once(
                    folder / f"built-{index.name.replace(' ', '-')}-{size}.json", "build", about
                )
                searched = run_child(
                    __file__, "search", about | {"target": chosen.target}, threads=1
                )
            except Failed as failed:
                out[f"{index.name}, {size:,}"] = str(failed)
                continue
            rows.append({"size": size, "system": index.name, **built, **searched})
    for row in rows:
        row["vectors_mb"] = row["size"] * 256 * 4 / 1e6
    names = ["memlab", *(index.needs for index in indexes)]
    settings = {name: getattr(chosen, name) for name in ("seed", "questions", "singles", "target")}
    return {**provenance(names), **settings, "source": path.stem, "rows": rows, "left_out": out}


def _measure_lab(folder: Path, size: int, count: int) -> dict[str, Any]:
    """Build or reuse a lab; measure a copy of it."""
    name = f"lab-{size}"
    about = {"folder": str(folder), "size": size}
    built = _run_once(
        folder / f"built-{name}.json", "measure_ingest", about | {"lab": str(folder / name)}
    )
    copy = folder / "working-copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / name, copy)
    about["lab"] = str(copy)
    measures = run_child(__file__, "measure_recalls", about)
    added = run_child(__file__, "measure_singles", about | {"count": count})
    shutil.rmtree(copy)
    return {**built, **measures, **added}


def _run_once(path: Path, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a child, or the stored result of an earlier run."""
    if path.exists():
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return result | {"kept": True}
    if name == "measure_ingest":
        shutil.rmtree(arguments["lab"], ignore_errors=True)
    result = run_child(__file__, name, arguments)
    path.write_text(json.dumps(result), encoding="utf-8")
    return result


def format_table(comparison: Mapping[str, Any]) -> str:
    """Return all sizes as text."""
    lines = [
        stated(comparison),
        f"recombined from {comparison['source']}, seed {comparison['seed']}, {comparison['questions']} questions; ",
        f"{'size':>9}  {'':<19}{'ingest/s':>10}{'reopen s':>10}{'p50 ms':>9}{'p95 ms':>9}{'recall@10':>11}"
        f"{'RSS MB':>8}{'x vectors':>11}{'disk MB':>9}{'singles/s':>11}",
    ]
    for row in comparison["rows"]:
        times = row["rss"] / row["vectors_mb"]
        cost = f"{row['rss']:>8,.0f}{times:>10.1f}x{row['disk']:>9,.1f}"
        start = f"{row['ingest']:>10,.0f}{row['reopen']:>10.2f}"
        share = "" if row["recall"] is None else f"{row['recall']:.3f}"
        if row["system"] != LAB:
            lines.append(
                f"{'':>9}  {row['system']:<19}{start}{row['p50']:>9.2f}{row['p95']:>9.2f}{share:>11}{cost}"
                + (f"   effort {row['effort']:,}" if row["effort"] else "")
            )
            continue
        lines += [
            f"{row['size']:>9,}  {'memlab, whole':<19}{start}{row['whole_p50']:>9.2f}{row['whole_p95']:>9.2f}"
            f"{'':>11}{cost}{row['singles']:>11,.0f}",
            f"{'':>9}  {'  one project':<39}{row['one_project_p50']:>9.2f}{row['one_project_p95']:>9.2f}",
            f"{'':>9}  {'  unlogged':<39}{row['unlogged_p50']:>9.2f}{row['unlogged_p95']:>9.2f}",
            f"{'':>9}  {'  first question':<39}{row['first_ms']:>9.2f}",
            f"{'':>9}  {'  its vectors alone':<39}{row['index_p50']:>9.2f}{'':>9}{share:>11}",
            f"{'':>9}  {'  one remember':<39}{row['singles_p50']:>9.2f}{row['singles_p95']:>9.2f}"
            f"   at most {row['singles_max']:,.0f} ms",
        ]
    if any(row.get("kept") for row in comparison["rows"]):
        lines.append(
            "Labs or indexes of an earlier run were reused: ingest and disk are from that run."
        )
    lines += [f"{name}: {reason}" for name, reason in comparison["left_out"].items()]
    return "\n".join(lines)


def draw_figure(comparison: Mapping[str, Any]) -> Figure:
    """Draw cost against size: one line per system, one panel per cost."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from memlab.subjects.drawing import CYCLE, GREY, STYLE

    systems = list(dict.fromkeys(row["system"] for row in comparison["rows"]))
    colours = dict(zip([LAB, *NAMED], CYCLE, strict=False))
    marks = dict(zip([LAB, *NAMED], "os^vDPX", strict=False))
    panels = {
        "ingest": "ingest or build per second",
        "p50": "one query, p50 ms (dashed: index)",
        "recall": "recall@10 against exact",
        "reopen": "reopening, s",
        "rss": "peak memory, MB (grey: vectors)",
        "disk": "disk, MB",
    }

    def line(axes: Axes, system: str, measure: str, **style: Any) -> None:
        points = [
            (row["size"], row.get(measure)) for row in comparison["rows"] if row["system"] == system
        ]
        present = [(size, value) for size, value in points if value is not None]
        if present:
            axes.plot(
                *zip(*present, strict=True),
                color=colours[system],
                marker=marks[system],
                markersize=4.5,
                **style,
            )

    with rc_context({**STYLE, "font.size": 9.0, "axes.titlesize": 9.5}):
        figure = Figure(figsize=(11.0, 6.4), layout="constrained", facecolor="white")
        for axes, (measure, title) in zip(figure.subplots(2, 3).flat, panels.items(), strict=True):
            for system in systems:
                whole = "whole_p50" if system == LAB and measure == "p50" else measure
                line(axes, system, whole, label=system, linewidth=2.4 if system == LAB else 1.2)
            if measure == "p50":
                line(axes, LAB, "index_p50", linestyle="--", linewidth=1.6)
            if measure == "rss":
                sizes = sorted({row["size"] for row in comparison["rows"]})
                axes.plot(
                    sizes, [size * 256 * 4 / 1e6 for size in sizes], color=GREY, linewidth=1.0
                )
            axes.set_xscale("log")
            if measure == "recall":
                axes.set_ylim(0, 1.04)
            else:
                axes.set_yscale("log")
            axes.set_title(title)
            axes.grid(color=GREY, alpha=0.25, linewidth=0.6)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), frameon=False)
        figure.supxlabel(stated(comparison), color=GREY, fontsize=7.0, x=0.008, ha="left")
    return figure


def main() -> None:
    """Run the study."""
    names = list(NAMED)
    parser = Results.build_parser(__doc__)
    parser.add_argument("path", type=Path, help="conversations in LoCoMo's format, to recombine")
    parser.add_argument(
        "--sizes",
        type=lambda text: [positive(part) for part in text.split(",")],
        default=[1_000, 10_000, 100_000, 1_000_000],
        help="comma-separated numbers of memories",
    )
    parser.add_argument(
        "--folder", type=Path, help="store the corpus, the labs and the indexes here"
    )
    parser.add_argument("--questions", type=positive, default=200)
    parser.add_argument("--singles", type=positive, default=1_000)
    parser.add_argument(
        "--target", type=float, default=0.9, help="the recall@10 that an index is to reach"
    )
    parser.add_argument(
        "--indexes", nargs="*", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--figures", type=Path, default=FIGURES, help="the folder that scale.svg is written to"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results("scale", arguments, data=[arguments.path])
    with tempfile.TemporaryDirectory(prefix="scale-") as passing:
        folder = (arguments.folder or Path(passing)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        comparison = compare(arguments.path, folder, arguments)
    print(json.dumps(comparison, indent=1) if arguments.json else format_table(comparison))
    figure = draw_figure(comparison)
    save_figure(figure, "scale", arguments.figures)
    results.save(comparison["rows"], figure)
    if any(not reason.startswith("not installed") for reason in comparison["left_out"].values()):
        raise SystemExit(1)


if __name__ == "__main__" and not serve_child(
    (prepare, measure_ingest, measure_recalls, measure_singles, build, search)
):
    main()
