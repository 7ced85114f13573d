"""What a memory costs as it grows, beside bare indexes: one command, seeded, everything in one run, on a disk.

    pip install 'memlab[bench]' && python experiments/scale.py locomo-dev5.json
    python experiments/scale.py locomo-dev5.json --sizes 1000000 --singles 10000 --folder labs

The turns are synthetic conversations, recombined from the sentences of the given ones (see ``recombined.py``); the
questions are real. A lab does all that memlab promises: it embeds, posts words, links turns, syncs, and a recall reads
words, vectors and graph, applies the policy and logs what it saw. An index does one thing: it is given vectors that
were embedded before (bm25s: the texts) and returns ten of them. Building and searching are processes of their own, and
so is every size. With ``--folder`` the corpus, the labs and the indexes are kept, and used again by the next run.

ingest      memories a second, durable; for an index what it takes to build and save it (two threads, if it has any)
reopen      seconds until a question can be asked; modules are imported and files in the page cache
p50, p95    milliseconds of one question; "whole" is ``lab.recall`` with its log, "one project" the same with a filter
recall@10   share of the exact ten nearest that an index finds, or ones as near. Of several settings of its effort the
            first that reaches ``--target`` is shown, or the one that finds most
RSS         peak of the process that answers in MB, and as a multiple of the vectors (4 bytes a component)
singles     ``lab.remember`` a second, one durable call each, on top of the corpus
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
from recombined import START, Recombined, at
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
    """Write the corpus, its vectors, and for each size the questions and how near their exact ten are."""
    from memlab.io.ingest import read_locomo
    from memlab.kernel.embedding import load_embedder
    from memlab.kernel.state import prefix_speaker

    where = Path(folder)
    made_of = {
        "source": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        "seed": seed,
        "count": count,
    }
    source = Recombined(read_locomo(path), seed)
    embedder = load_embedder()
    if not _kept(where, made_of):
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
                said = [prefix_speaker(row["text"], row["speaker"]) for row in batch]
                vectors[start : start + len(batch)] = embedder.encode(said)
                step(len(batch))
        vectors.flush()
        (where / "corpus.json").write_text(json.dumps(made_of), encoding="utf-8")
    stored = np.load(where / "vectors.npy", mmap_mode="r")
    for size in sizes:
        asked = source.questions(questions, rows=size)
        given = embedder.encode([text for text, _ in asked])
        nearest = np.full((questions, 0), -1.0)
        for start in range(0, size, 50_000):
            part = _unit(stored[start : min(size, start + 50_000)])
            nearest = np.sort(np.hstack([nearest, _unit(given) @ part.T]))[:, -TEN:]
        np.savez(where / f"asked-{size}.npz", vectors=given, nearest=nearest)
        (where / f"asked-{size}.json").write_text(json.dumps(asked), encoding="utf-8")
    return {"turns": count}


def ingest(folder: str, size: int, lab: str) -> dict[str, Any]:
    """Fill a lab, a batch of 2,000 at a time, and close it."""
    _imported()
    with _corpus(folder, 0, size) as rows, _bar(size, f"{size:,}: memlab, ingest") as step:
        opened = _lab(Path(lab))
        spent = 0.0
        while batch := list(islice(rows, BATCH)):
            spent += timed(opened.remember, batch, chain=True)[0]
            step(len(batch))
        waiting, _ = timed(_settle, opened)
        closing, _ = timed(opened.close)
    return {
        "ingest": size / (spent + closing),
        "index_s": waiting,
        "ingest_rss": peak_mb(),
        "disk": disk_mb(Path(lab)),
    }


def recall(folder: str, lab: str, size: int) -> dict[str, Any]:
    """Open a lab and ask it: whole recalls with the log and without, in one project, and its index alone."""
    asked = json.loads((Path(folder) / f"asked-{size}.json").read_text(encoding="utf-8"))
    given = _asked(folder, size)
    _imported()
    reopen, opened = timed(_lab, Path(lab))
    first, _ = timed(opened.recall, asked[0][0], log=False)
    _settle(opened)
    found: dict[str, Any] = {"reopen": reopen, "first_ms": 1000 * first}
    ways: dict[str, Callable[[str, str], object]] = {
        "unlogged": lambda text, project: opened.recall(text, limit=TEN, log=False),
        "whole": lambda text, project: opened.recall(text, limit=TEN),
        "one_project": lambda text, project: opened.recall(text, limit=TEN, project=asked[0][1]),
    }
    with _bar(len(ways) * len(asked), f"{size:,}: memlab, recall") as step:
        for name, ask in ways.items():
            for question in asked[:WARM]:
                ask(*question)
            seconds = []
            for question in asked:
                seconds.append(timed(ask, *question)[0])
                step(1)
            found |= {
                f"{name}_p50": percentile_ms(seconds, 50),
                f"{name}_p95": percentile_ms(seconds, 95),
            }
    found["rss"] = peak_mb()
    vectors = opened.io.store.state.vectors
    ran = [timed(vectors.top, query, TEN) for query in given["vectors"]]
    found["index_p50"] = percentile_ms([seconds for seconds, _ in ran], 50)
    found["recall"] = _found(folder, size, [rows for _, (rows, _) in ran])
    found["report"] = str(opened.upkeep.index.report())
    opened.close()
    return found


def singles(folder: str, lab: str, size: int, count: int) -> dict[str, Any]:
    """Remember one at a time, on top of the corpus."""
    _imported()
    opened = _lab(Path(lab))
    opened.recall("a first question loads what a recall needs", log=False)
    with _corpus(folder, size, count) as rows, _bar(count, f"{size:,}: memlab, singles") as step:
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
    given: Any
    if index.lexical:
        with (Path(folder) / "corpus.jsonl").open(encoding="utf-8") as file:
            given = [json.loads(line)["text"] for line in islice(file, size)]
    else:
        stored = np.load(Path(folder) / "vectors.npy", mmap_mode="r")
        given = np.empty((size, stored.shape[1]), dtype=np.float32)
        for start in range(0, size, 50_000):
            given[start : start + 50_000] = _unit(stored[start : min(size, start + 50_000)])
    seconds, _ = timed(index.build, given, path)
    return {"ingest": size / seconds, "ingest_rss": peak_mb(), "disk": disk_mb(path)}


def search(folder: str, size: int, name: str, target: float) -> dict[str, Any]:
    """Open a bare index and ask it, with more effort until it finds enough."""
    index = NAMED[name]
    asked = json.loads((Path(folder) / f"asked-{size}.json").read_text(encoding="utf-8"))
    vectors = _unit(_asked(folder, size)["vectors"])
    queries = [text for text, _ in asked] if index.lexical else list(vectors)
    importlib.import_module(index.module)
    reopen, served = timed(index.serve, _index_path(folder, size, name), vectors.shape[1])
    tried: list[dict[str, Any]] = []
    for effort in index.efforts:
        find = served(effort)
        for query in queries[:WARM]:
            find(query)
        ran = [timed(find, query) for query in queries]
        seconds = [one for one, _ in ran]
        share = None if index.lexical else _found(folder, size, [rows for _, rows in ran])
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
    best = tried[-1] if index.lexical else max(tried, key=lambda one: one["recall"])
    return {"reopen": reopen, **best, "tried": tried, "rss": peak_mb()}


def _imported() -> None:
    """Load what an opening loads: an import is paid once, whatever the size."""
    import memlab

    with memlab.open() as passing:
        passing.remember("loaded")
        passing.recall("loaded")


def _settle(lab: memlab.Lab) -> None:
    """Wait for an index that a first recall lets build in the background."""
    lab.recall("a first question", log=False)
    lab.upkeep.index.wait()


def _lab(path: Path) -> memlab.Lab:
    import memlab

    # later than any turn: twenty years hold three million
    return memlab.open(path, clock=memlab.ManualClock(START.replace(year=2020)))


@contextmanager
def _corpus(folder: str, first: int, count: int) -> Iterator[Iterator[dict[str, Any]]]:
    """Rows ``first`` to ``first + count`` as a lab takes them."""
    with (Path(folder) / "corpus.jsonl").open(encoding="utf-8") as file:
        rows = (json.loads(line) for line in islice(file, first, first + count))
        yield ({"kind": "turn", "at": at(row.pop("minute")), **row} for row in rows)


def _bar(total: int, desc: str) -> Any:
    from memlab.kernel.base.progress import bar

    return bar(sys.stderr.isatty(), total, unit="it", desc=desc)


def _unit(vectors: NDArray[Any]) -> Matrix:
    floats = np.asarray(vectors).astype(np.float32)
    floats /= np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-9)
    return floats


def _asked(folder: str, size: int) -> Mapping[str, NDArray[Any]]:
    with np.load(Path(folder) / f"asked-{size}.npz") as kept:
        return {name: kept[name] for name in kept.files}


def _found(folder: str, size: int, rows: Sequence[Any]) -> float:
    """Recall@10: how many of the rows found for each question are as near as the exact tenth, by their vectors."""
    asked = _asked(folder, size)
    stored = np.load(Path(folder) / "vectors.npy", mmap_mode="r")
    shares = []
    for query, nearest, found in zip(_unit(asked["vectors"]), asked["nearest"], rows, strict=True):
        near = _unit(stored[np.unique(np.asarray(found, dtype=np.int64))[:TEN]]) @ query
        shares.append(float((near >= nearest[0] - 1e-5).sum()) / len(nearest))
    return float(np.mean(shares))


def _index_path(folder: str, size: int, name: str) -> Path:
    return Path(folder) / f"{name.replace(' ', '-')}-{size}"


def _kept(folder: Path, made_of: Mapping[str, Any]) -> bool:
    """Whether the folder holds this corpus, or a longer one; what was built from another is forgotten."""
    noted = folder / "corpus.json"
    kept = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
    if any(kept.get(name) != made_of[name] for name in ("source", "seed")):
        for built in folder.glob("built-*.json"):
            built.unlink()
        return False
    return int(kept["count"]) >= int(made_of["count"])


# -- the parent -----------------------------------------------------------------------------------------------


def compare(path: Path, folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Every size, and at each the lab and every index that is installed."""
    sizes = sorted(set(chosen.sizes))
    indexes = [index for index in INDEXES if index.name in chosen.indexes]
    out = {index.name: reason for index in indexes if (reason := missing([index.needs]))}
    given = {
        "path": str(path.resolve()),
        "folder": str(folder),
        "seed": chosen.seed,
        "questions": chosen.questions,
    }
    run_child(__file__, "prepare", given | {"count": sizes[-1] + chosen.singles, "sizes": sizes})
    rows = []
    for size in sizes:
        rows.append({"size": size, "system": LAB, **_measured_lab(folder, size, chosen.singles)})
        for index in indexes:
            if index.name in out:
                continue
            about = {"folder": str(folder), "size": size, "name": index.name}
            try:
                built = _once(
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


def _measured_lab(folder: Path, size: int, count: int) -> dict[str, Any]:
    name = f"lab-{size}"
    about = {"folder": str(folder), "size": size}
    built = _once(folder / f"built-{name}.json", "ingest", about | {"lab": str(folder / name)})
    copy = folder / "working-copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / name, copy)
    about["lab"] = str(copy)
    asked = run_child(__file__, "recall", about)
    added = run_child(__file__, "singles", about | {"count": count})
    shutil.rmtree(copy)
    return {**built, **asked, **added}


def _once(kept: Path, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a child built, from the kept folder if an earlier run did; the figures are then of that run."""
    if kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return found | {"kept": True}
    if name == "ingest":
        shutil.rmtree(given["lab"], ignore_errors=True)
    found = run_child(__file__, name, given)
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def table(found: Mapping[str, Any]) -> str:
    """All sizes as text."""
    lines = [
        stated(found),
        f"recombined from {found['source']}, seed {found['seed']}, {found['questions']} questions; ",
        f"{'size':>9}  {'':<19}{'ingest/s':>10}{'reopen s':>10}{'p50 ms':>9}{'p95 ms':>9}{'recall@10':>11}"
        f"{'RSS MB':>8}{'x vectors':>11}{'disk MB':>9}{'singles/s':>11}",
    ]
    for row in found["rows"]:
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
    if any(row.get("kept") for row in found["rows"]):
        lines.append(
            "Labs or indexes were kept from an earlier run: ingest and disk are of that run."
        )
    lines += [f"{name}: {reason}" for name, reason in found["left_out"].items()]
    return "\n".join(lines)


def drawing(found: Mapping[str, Any]) -> Figure:
    """Cost against size: one line a system, one panel a cost."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from memlab.subjects.drawing import CYCLE, GREY, STYLE

    systems = list(dict.fromkeys(row["system"] for row in found["rows"]))
    colours = dict(zip([LAB, *NAMED], CYCLE, strict=False))
    marks = dict(zip([LAB, *NAMED], "os^vDPX", strict=False))
    panels = {
        "ingest": "ingest or build, a second",
        "p50": "one question, p50 ms (dashed: index)",
        "recall": "recall@10 against exact",
        "reopen": "reopening, s",
        "rss": "peak memory, MB (grey: vectors)",
        "disk": "disk, MB",
    }

    def line(axes: Axes, system: str, measure: str, **style: Any) -> None:
        points = [
            (row["size"], row.get(measure)) for row in found["rows"] if row["system"] == system
        ]
        kept = [(size, value) for size, value in points if value is not None]
        if kept:
            axes.plot(
                *zip(*kept, strict=True),
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
                sizes = sorted({row["size"] for row in found["rows"]})
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
        figure.supxlabel(stated(found), color=GREY, fontsize=7.0, x=0.008, ha="left")
    return figure


def main() -> None:
    names = list(NAMED)
    parser = Results.build_parser(__doc__)
    parser.add_argument("path", type=Path, help="conversations in LoCoMo's format, to recombine")
    parser.add_argument(
        "--sizes",
        type=lambda text: [positive(part) for part in text.split(",")],
        default=[1_000, 10_000, 100_000, 1_000_000],
        help="memories, with commas between",
    )
    parser.add_argument(
        "--folder", type=Path, help="keep the corpus, the labs and the indexes here"
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
        found = compare(arguments.path, folder, arguments)
    print(json.dumps(found, indent=1) if arguments.json else table(found))
    figure = drawing(found)
    save_figure(figure, "scale", arguments.figures)
    results.save(found["rows"], figure)
    if any(not reason.startswith("not installed") for reason in found["left_out"].values()):
        raise SystemExit(1)


if __name__ == "__main__" and not serve_child((prepare, ingest, recall, singles, build, search)):
    main()
