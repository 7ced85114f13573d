"""An experiment: packs on data with seeds, whose results are stored, resumed and compared.

Each pack, data set and seed is a cell (`memlab.science.cells`), so a run measures only what has no
cell yet. The file ``experiment.json`` has the hashes of what was declared, so that data cannot change
under their name.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl

from memlab.errors import DatasetError, InputError, UnknownName, did_you_mean
from memlab.kernel.base.arguments import AsGiven, Within, checked, describe_value
from memlab.kernel.base.disk import read_source_file, replacing, writing
from memlab.kernel.base.display import Columns, Markup, Report, Table, format_rows
from memlab.kernel.base.printable import count_of
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.embedding import EmbedderSpec, load_embedder
from memlab.kernel.policies import Pack, PolicyLike, as_pack, list_policies
from memlab.science.batch import Workers
from memlab.science.bench.parts import PackTask, describe_pack, rank_questions, summarise_rows
from memlab.science.cells import (
    Cell,
    Inputs,
    Outcome,
    find_cell,
    hash_inputs,
    lock_folder,
    package_versions,
    read_cells,
    run_cells,
)
from memlab.science.evaluation import BASELINES, Estimate, cluster_interval
from memlab.science.evaluation.parts import Adjustment, adjust_all, split_metric
from memlab.science.experiments._data import digest_data, name_data, plan_data
from memlab.subjects.drawing import (
    CYCLE,
    GREY,
    RESULTS_PAGE,
    OnAxes,
    add_legend,
    draw_figure,
    draw_svg,
    render_latex,
    render_page,
    write_page,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The name is that of a folder, so it has no separator and does not begin with a dot.
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_RANKS = 20
"""The minimum number of results of a recall, as for ``memlab.bench_conversations``."""

_HY_FILE = re.compile(r"\s*[^(;\n]+\.hy\s*")  # A text begins with a bracket or a comment.
_DECLARED = "experiment.json"
"""The file with the hashes of what was declared."""

_KEYS = ("policies", "data", "name", "folder", "metrics", "seeds")
"""The keys of an experiment's file; it needs the first two."""

_KEY_COLUMNS = {"data", "policy", "seed", "cluster", "question"}
"""The columns of rows that no metric can have."""

_RESULTS = {
    **dict.fromkeys(("data", "policy", "hash"), pl.String),
    "seed": pl.Int64,
    "metric": pl.String,
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
    **dict.fromkeys(("questions", "clusters"), pl.Int64),
}
"""The columns of the results of an experiment."""

_DIFFERENCES = {
    **dict.fromkeys(("metric", "data"), pl.String),
    **dict.fromkeys(("a", "b", "difference", "low", "high", "p"), pl.Float64),
    **dict.fromkeys(("questions", "clusters"), pl.Int64),
}
"""The columns of a comparison."""

_OTHER = "\n/b"
"""The ending of the second policy's columns; a metric may have every name of one line."""

Measure = Callable[[Pack, Any, int], "pl.DataFrame | Mapping[str, float]"]
"""A function of a pack, data and a seed; see ``Experiment``."""


@dataclass(frozen=True, repr=False)
class Comparison(Report):
    """The paired differences of two policies, made by ``Experiment.compare``.

    Parameters
    ----------
    a, b
        The names of the policies. Differences are those of ``a`` minus ``b``.
    frame
        A row for each metric and data set, and for all data sets together (``data`` is null) if there
        are several: ``metric``, ``data``, the means ``a`` and ``b``, their ``difference``, its
        interval ``low`` to ``high``, the p-value ``p``, ``questions`` and ``clusters``. Below 30
        clusters, means weigh clusters equally, as the interval does; otherwise they are over questions.
    level
        The confidence level.
    adjust
        The adjustment for the number of rows, or None.
    """

    a: str
    b: str
    frame: pl.DataFrame = field(repr=False)
    level: float = 0.95
    adjust: str | None = None

    def _display(self) -> object:
        adjusted = f", adjusted for all rows ({self.adjust})" if self.adjust else ""
        caption = f"{self.a} minus {self.b}, paired by question; [{self.level:.0%} interval by cluster]{adjusted}"
        return caption, self._table()

    def _table(self, title: str = "") -> Table:
        """Return the differences as a table."""
        columns: Columns = (
            ("metric", "{metric}"),
            ("data", lambda row: row["data"] or "all"),
            (self.a, "{a:.4g}"),
            (self.b, "{b:.4g}"),
            ("difference", "{difference:+.4f}"),
            ("", "[{low:+.4f}, {high:+.4f}]"),
            ("p", "{p:.2g}"),
            ("questions", "{questions}"),
            ("clusters", "{clusters}"),
        )
        return Table(title, *format_rows(self.frame.iter_rows(named=True), columns), left=(0, 1))


class Experiment(Report):
    """Policies on data with seeds, measured once, stored, resumed and compared.

    A result is stored under ``folder/name/cells`` by the hash of the pack, the data, the metrics, the
    seed, and the versions of memlab and of the packages that matter. Names and paths are not part of
    it. A second run reads the results, and a changed pack measures its own cells alone.

    Parameters
    ----------
    name
        The name of the experiment and of its folder: letters, digits and ``_.+-``.
    policies
        Packs or policies in any form, or a mapping of names to them; also "bm25" and "dense".
    data
        Paths, or a mapping of names to data. Without ``measure``, data are labelled conversations (a path
        in the format of LoCoMo, BEAM, LongMemEval or LMEB, or what a reader of ``memlab.ingest`` returns)
        or a lab with questions. With ``measure``, data are a path, a lab, a log, a frame or JSON values.
    metrics
        Retrieval metrics, such as "recall@10", or the names of what ``measure`` returns.
    seeds
        The seeds that ``measure`` gets. Retrieval draws nothing, so it has one seed.
    folder
        The folder of all experiments.
    measure
        A function of a pack, data and a seed, in a module or a notebook. It returns a frame with a row for each
        unit, or one row as a mapping, with a column for each metric. The columns ``question`` and
        ``cluster`` are optional; without clusters, seeds are independent. Its source, defaults and variables of
        an enclosing function are part of the hash; global variables and functions that it calls are not. A
        ``functools.partial`` passes options of JSON values.
    embedder
        The embedder of the labs.

    Raises
    ------
    InputError
        If a name, a metric, a seed or data are not valid.
    UnknownName, PolicyError
        If a pack or a metric does not exist, or a policy is invalid.

    Examples
    --------
    >>> import memlab
    >>> experiment = memlab.Experiment("words", ["bm25", "dense"], memlab.examples.CONVERSATION)
    >>> experiment.packs["bm25"].name, experiment.metrics
    ('bm25', ('recall@10', 'ndcg@10'))
    """

    @checked
    def __init__(
        self,
        name: str,
        policies: PolicyLike,
        data: Annotated[Any, AsGiven],
        *,
        metrics: str | Sequence[str] = ("recall@10", "ndcg@10"),
        seeds: Sequence[int] = (0,),
        folder: str | Path = "runs",
        measure: Annotated[Any, AsGiven] = None,
        embedder: EmbedderSpec = None,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise InputError(
                f'"{name}" cannot be the name of an experiment. Use letters, digits and _.+- as for a folder.'
            )
        self.name = name
        self.folder = Path(folder).expanduser() / name
        self.packs = _load_packs(policies)
        self.data = name_data(data)
        self.metrics = tuple(dict.fromkeys([metrics] if isinstance(metrics, str) else metrics))
        self.seeds = tuple(dict.fromkeys(seeds))
        self._measure, self._embedder = measure, embedder
        self._digests: dict[str, str] = {}
        if not self.metrics or not self.seeds:
            raise InputError("An experiment needs at least one metric and one seed.")
        if conflicts := _KEY_COLUMNS.intersection(self.metrics):
            raise InputError(
                f'"{conflicts.pop()}" is a column of experiment.rows. Name the metric differently.'
            )
        if measure is None:
            cuts = [split_metric(metric)[1] for metric in self.metrics]
            if len(self.seeds) > 1:
                raise InputError(
                    "Retrieval draws nothing at random, so every seed would give the same figures. Pass one seed, or "
                    "measure= with a function that uses the seed."
                )
            self._shared: dict[str, Any] = {
                "measure": "retrieval",
                "limit": max(_RANKS, *cuts),
                "embedder": load_embedder(embedder).fingerprint,
            }
        else:
            self._shared = {"measure": _identify(measure)}
        self._shared |= {"metrics": list(self.metrics), "versions": package_versions()}

    @classmethod
    @checked
    def read(cls, path: str | Path) -> Experiment:
        """Read an experiment from a TOML file, without executing code.

        Parameters
        ----------
        path
            A file with the keys ``name``, ``policies``, ``data`` and optionally ``metrics``, ``seeds`` and
            ``folder``. Paths are relative to the file. The name is by default that of the file.

        Returns
        -------
        Experiment
            The experiment; nothing is run.

        Raises
        ------
        InputError
            If the file cannot be read, is not TOML, or has an unknown key.

        Examples
        --------
        >>> import memlab
        >>> memlab.Experiment.read("words.toml").run()                  # doctest: +SKIP
        """
        path = Path(path).expanduser()
        try:
            declared = tomllib.loads(read_source_file(path))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path} is not TOML: {error}.") from None
        if unknown := [key for key in declared if key not in _KEYS]:
            raise InputError(
                f'{path} has an unknown key "{unknown[0]}". {did_you_mean(unknown[0], _KEYS)}'
            )
        if missing := [key for key in _KEYS[:2] if key not in declared]:
            raise InputError(f"{path} has no {missing[0]}. Add a list, or a table of names.")
        # Paths are relative to the file; names of packs and texts of policies stay as they are.
        policies = {
            name or str(number): str(path.parent / spec)
            if isinstance(spec, str) and _HY_FILE.fullmatch(spec)
            else spec
            for number, (name, spec) in enumerate(list_policies(declared["policies"]))
        }
        is_table = isinstance(declared["policies"], Mapping)
        data = {
            name: path.parent / value if isinstance(value, Path) else value
            for name, value in name_data(declared["data"]).items()
        }
        folder = declared.pop("folder", "runs")
        if isinstance(folder, str):
            folder = path.parent / Path(folder).expanduser()
        placed = {"policies": policies if is_table else [*policies.values()], "data": data}
        return cls(**{"name": path.stem, **declared, **placed, "folder": folder})

    # -- running ------------------------------------------------------------------------------------------------------

    @checked
    def run(self, *, executor: Workers = None, progress: bool = False) -> Experiment:
        """Measure all cells without a result, and store each result at once.

        Parameters
        ----------
        executor
            A number of processes, or an object with ``submit``, such as a ``dask.distributed.Client``.
            Each cell is a task. Default: this thread.
        progress
            Whether to show a progress bar.

        Returns
        -------
        Experiment
            The experiment itself.

        Raises
        ------
        DatasetError
            If data changed under their name since an earlier run, have no labelled questions, or a stored
            result was changed.
        InputError
            If ``measure`` returns no valid frame.
        LabError
            If the folder cannot be written; complete results stay.
        WorkerLost
            If the executor does not return a result.

        Examples
        --------
        >>> import memlab
        >>> experiment = memlab.Experiment("words", "bm25", memlab.examples.CONVERSATION)
        >>> experiment.run().results["value"].to_list()                 # doctest: +SKIP
        [0.7638888888888888, 0.6210476837361586]
        """
        self._declare()
        plans: dict[str, PackTask] = {}
        tasks: list[tuple[Inputs, Any]] = []
        for (policy, data, seed), inputs in self._inputs():
            if find_cell(self.folder, hash_inputs(inputs.values)) is not None:
                continue
            pack, value = self.packs[policy], self.data[data]
            if self._measure is None and data not in plans:
                plans[data] = plan_data(data, value, self._embedder, pack)
            task = plans[data]._replace(pack=pack) if plans else (pack, value, seed)
            tasks.append((inputs, task))
        work = partial(_measure_cell, self._measure, self.metrics, self._shared.get("limit", 0))
        # A cell is one unit: the number of recalls is not known before all data are read.
        with bar(progress, len(tasks), unit="cell", desc=self.name) as step:
            run_cells(self.folder, work, tasks, executor, step)
        return self

    def _inputs(self) -> Iterator[tuple[tuple[str, str, int], Inputs]]:
        """Yield each cell's policy, data and seed, with the inputs that identify the cell."""
        for data, policy, seed in product(self.data, self.packs, self.seeds):
            pack, digest = self.packs[policy], self._digests.get(data, "")
            about = {
                "pack": describe_pack(pack) | {"name": policy},
                "data": {"name": data, "sha256": digest},
            }
            values = {**self._shared, "pack": pack.hash, "data": digest, "seed": seed}
            yield (policy, data, seed), Inputs(values, about)

    def _read_declared(self) -> dict[str, str]:
        """Return the digests of the data in earlier runs, by data name."""
        path = self.folder / _DECLARED
        try:
            digests = json.loads(read_source_file(path))["data"] if path.exists() else {}
            return {name: str(digest) for name, digest in digests.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                f"{path} is damaged: {error!r:.80}. Delete it, and run again: results stay, but changed data go unnoticed."
            ) from error

    def _declare(self) -> None:
        """Write the declared experiment, with the digests of all data used until now.

        Raises DatasetError if data changed since a run that stored a result of them.
        """
        digests = {name: digest_data(value, self._embedder) for name, value in self.data.items()}
        # Read and written under one lock: two runs at once would lose each other's digests.
        with writing(f"The experiment {self.folder}"), lock_folder(self.folder):
            recorded = self._read_declared()
            for name, digest in digests.items():
                before = recorded.get(name, digest)
                # Data without a result, such as a lab that had no questions, may change.
                if before != digest and any(
                    cell.inputs.get("data") == before for cell in read_cells(self.folder)
                ):
                    raise DatasetError(
                        f'The data "{name}" of the experiment {self.name} changed: their sha256 was {before[:12]} and '
                        f"is {digest[:12]}. Restore them, or give the new data another name."
                    )
            self._digests = recorded | digests
            declared = {
                "name": self.name,
                "policies": {name: pack.hash for name, pack in self.packs.items()},
                "data": self._digests,
                "seeds": list(self.seeds),
                **self._shared,
            }
            text = json.dumps(declared, indent=1, ensure_ascii=False) + "\n"
            with replacing(self.folder / _DECLARED) as file:
                file.write(text.encode())

    # -- results ------------------------------------------------------------------------------------------------------

    def _cells(self) -> Iterator[tuple[tuple[str, str, int], Cell]]:
        """Yield the cells that have a result."""
        if not self._digests:
            # Data that were moved away have the digest of their last run.
            self._digests = self._read_declared() | {
                name: digest_data(value, self._embedder)
                for name, value in self.data.items()
                if not isinstance(value, Path) or value.exists()
            }
        for key, inputs in self._inputs():
            cell = find_cell(self.folder, hash_inputs(inputs.values))
            if cell is not None:
                yield key, cell

    @property
    def rows(self) -> pl.DataFrame:
        """A row for each policy, data set, seed and question, with its metrics."""
        frames = [
            cell.rows.select(
                pl.lit(data).alias("data"),
                pl.lit(policy).alias("policy"),
                pl.lit(seed, pl.Int64).alias("seed"),
                "cluster",
                "question",
                *self.metrics,
            )
            for (policy, data, seed), cell in self._cells()
        ]
        if frames:
            return pl.concat(frames)
        schema: dict[str, Any] = dict.fromkeys(
            ("data", "policy", "seed", "cluster", "question"), pl.String
        )
        return pl.DataFrame(
            schema=schema | {"seed": pl.Int64} | dict.fromkeys(self.metrics, pl.Float64)
        )

    @property
    def results(self) -> pl.DataFrame:
        """A row for each policy, data set, seed and metric, with a 95% interval.

        Intervals are by cluster. ``value`` is the mean over questions. ``low`` and ``high`` are null below two
        clusters. With several seeds, ``seed`` is null in rows over all seeds. Cells without a result have no row.
        """
        figures_of: dict[tuple[str, str, int | None], Mapping[str, Any]] = {
            key: cell.results for key, cell in self._cells()
        }
        if len(self.seeds) > 1:
            for (data, policy), rows in self.rows.group_by("data", "policy", maintain_order=True):
                figures_of[str(policy), str(data), None] = summarise_rows(rows, self.metrics)
        return pl.DataFrame(
            [
                {
                    "data": data,
                    "policy": policy,
                    "hash": self.packs[policy].hash,
                    "seed": seed,
                    "metric": metric,
                    **figures["metrics"][metric],
                    "questions": figures["questions"],
                    "clusters": figures["clusters"],
                }
                for (policy, data, seed), figures in figures_of.items()
                for metric in self.metrics
            ],
            schema=_RESULTS,
        )

    @checked
    def compare(
        self,
        a: str,
        b: str,
        *,
        level: Annotated[float, Within(0.5, 0.9999)] = 0.95,
        adjust: Adjustment | None = None,
    ) -> Comparison:
        """Compare two policies question by question, with intervals by cluster.

        Parameters
        ----------
        a, b
            The names of the policies. Differences are those of ``a`` minus ``b``.
        level
            The confidence level, between 0.5 and 0.9999.
        adjust
            "bonferroni" or "bh" for intervals and p-values that hold for all rows together.

        Returns
        -------
        Comparison
            The differences for each metric and data set. Seeds are averaged first, unless they are the
            clusters.

        Raises
        ------
        UnknownName
            If no policy has the name.
        InputError
            If a cell of one of the policies has no result, or they have no question in common.

        Examples
        --------
        >>> import memlab
        >>> experiment = memlab.Experiment("words", ["bm25", "dense"], memlab.examples.CONVERSATION)
        >>> experiment.run().compare("bm25", "dense").frame["difference"].to_list()  # doctest: +SKIP
        [0.004629629629629586, 0.030932393962370453]
        """
        for name in (a, b):
            if name not in self.packs:
                raise UnknownName("policy", name, self.packs)
        rows, keys = self.rows, ["data", "cluster", "question"]
        chosen = [rows.filter(policy=name) for name in (a, b)]
        if any(
            side.select("data", "seed").n_unique() < len(self.data) * len(self.seeds)
            for side in chosen
        ):
            raise InputError(
                f"Some cells of {a} or {b} have no result. Call run() first, or memlab experiment run."
            )
        # Seeds of one question depend on each other, so their mean counts once.
        left, right = (
            side.group_by(keys, maintain_order=True).agg(pl.mean(*self.metrics)) for side in chosen
        )
        if left.join(right, on=keys, how="semi").is_empty():
            raise InputError(
                f"{a} and {b} have no question in common, so there are no pairs. Let measure return the same questions "
                "and clusters for both."
            )
        pairs = left.join(right, on=keys, suffix=_OTHER, maintain_order="left")
        table: list[dict[str, Any]] = []
        estimates: list[Estimate | None] = []
        sets = [*self.data, None] if len(self.data) > 1 else [*self.data]
        for metric, data in product(self.metrics, sets):
            group = pairs if data is None else pairs.filter(data=data)
            paired = group.drop_nulls([metric, metric + _OTHER])
            sides = {"a": paired[metric], "b": paired[metric + _OTHER]}
            sides["difference"] = sides["a"] - sides["b"]
            # Clusters of two data sets may have the same name.
            clusters = (paired["data"] + "\n" + paired["cluster"]).to_list()
            counts = {"questions": paired.height, "clusters": len(set(clusters))}
            row: dict[str, Any] = {"metric": metric, "data": data} | counts
            for name, values in sides.items():
                row[name] = values.mean()
            estimates.append(cluster_interval(sides["difference"].to_numpy(), clusters))
            table.append(row)
        family = [estimate for estimate in estimates if estimate is not None]
        ends = iter(
            adjust_all(family, level, adjust)
            if adjust
            else [(estimate.at_level(level), estimate.p) for estimate in family]
        )
        for row, estimate in zip(table, estimates, strict=True):
            if estimate is not None:
                fitted, p = next(ends)
                row |= {"low": fitted.low, "high": fitted.high, "p": p}
        return Comparison(a, b, pl.DataFrame(table, schema=_DIFFERENCES), level, adjust)

    # -- reports ------------------------------------------------------------------------------------------------------

    @checked
    def figure(self, metric: str | None = None, axes: OnAxes | None = None) -> Figure:
        """Draw a metric of each policy on each data set, with intervals.

        Parameters
        ----------
        metric
            The metric. Default: the first.
        axes
            The axes to draw on. Default: a new figure.

        Returns
        -------
        Figure
            A line for each policy, and a dot for each data set.

        Raises
        ------
        UnknownName
            If the experiment does not have the metric.
        """
        chosen = self.metrics[0] if metric is None else metric
        if chosen not in self.metrics:
            raise UnknownName("metric", chosen, self.metrics)
        height = 1.2 + 0.4 * len(self.packs)
        draw = partial(self._draw, chosen, alone=axes is not None)
        return draw_figure(draw, width=6.4, height=height, axes=axes)

    def _draw(self, metric: str, axes: Axes, *, alone: bool = False) -> None:
        """Draw dots with intervals of a metric: a line for each policy, a colour for each data set."""
        names = list(self.packs)[::-1]
        results = self._overall().filter(metric=metric)  # reads all cells
        for number, data in enumerate(self.data):
            rows = results.filter(data=data)
            # Data sets of one policy lie above each other, within half of a line.
            shift = 0.5 * ((len(self.data) - 1) / 2 - number) / len(self.data)
            heights = [names.index(name) + shift for name in rows["policy"]]
            colour, value = CYCLE[number % len(CYCLE)], rows["value"]
            axes.plot(value, heights, "os^vDPX"[number % 7], color=colour, label=data)
            low, high = rows["low"].fill_null(value), rows["high"].fill_null(value)
            axes.hlines(heights, low, high, color=colour, linewidth=1.4)
        # Names are of a user, and may have dollar signs that are no formula.
        axes.set_yticks(range(len(names)), names, parse_math=False)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
        axes.set_xlabel(metric, parse_math=False)
        if len(self.data) > 1:
            add_legend([axes], alone=alone, ncols=4, fontsize="small")

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the results as a page, as LaTeX or as CSV.

        Parameters
        ----------
        path
            A file that ends with ``.html``, ``.tex`` or ``.csv``. The page is self-contained and has the
            differences from the first policy.

        Returns
        -------
        Path
            The path of the file.

        Raises
        ------
        InputError
            If the ending is another one, no cell has a result, or the file cannot be written.

        Examples
        --------
        >>> import memlab
        >>> experiment = memlab.Experiment("words", ["bm25", "dense"], memlab.examples.CONVERSATION)
        >>> experiment.run().report("words.html")                       # doctest: +SKIP
        PosixPath('words.html')
        """
        ending = Path(path).suffix
        results = self.results
        if not results.height:
            raise InputError(f"The experiment {self.name} has no result yet. Call run() first.")
        if ending == ".csv":
            return write_page(results.write_csv(), path)
        if ending == ".tex":
            return write_page(
                render_latex(self._table(), f"{self._caption()}. {self._provenance()}") + "\n", path
            )
        if ending != ".html":
            raise InputError(
                f'A report must be an .html, .tex or .csv file, not "{Path(path).name}".'
            )
        first, *others = self.packs
        comparisons = [] if self.missing else [self.compare(name, first) for name in others]
        tables = [self._table(), *(each._table(f"{each.a} minus {first}") for each in comparisons)]
        size = {"width": 7.6, "height": 1.2 + 0.4 * len(self.packs)}
        html = render_page(
            RESULTS_PAGE,
            {},
            brand="memlab experiment",
            title=self.name,
            caption=self._caption(),
            figures=[
                Markup(draw_svg(partial(self._draw, metric), name=f"metric{number}", **size))
                for number, metric in enumerate(self.metrics)
            ],
            tables=[*tables[:-1], tables[-1]._replace(notes=[self._provenance()])],
        )
        return write_page(html, path)

    @property
    def missing(self) -> int:
        """The number of cells that have no result yet."""
        return sum(1 for _ in self._inputs()) - sum(1 for _ in self._cells())

    def _overall(self) -> pl.DataFrame:
        """Return the results over all seeds."""
        results = self.results
        return results.filter(pl.col("seed").is_null()) if len(self.seeds) > 1 else results

    def _caption(self) -> str:
        """Describe the experiment in one sentence: policies, data, seeds and missing cells."""
        seeds = f" with {count_of(len(self.seeds), 'seed')}" if len(self.seeds) > 1 else ""
        missing = f"; {count_of(self.missing, 'cell')} without a result" if self.missing else ""
        sets = count_of(len(self.data), "data set")
        return (
            f"{self.name}: {count_of(len(self.packs), 'policy')} on {sets}{seeds}; means over questions; "
            f"[95% interval by cluster]{missing}"
        )

    def _provenance(self) -> str:
        """Return the hashes and versions that identify the results."""
        hashes = [f"{name} {pack.hash[:12]}" for name, pack in self.packs.items()]
        hashes += [
            f"{name} {self._digests[name][:12]}" for name in self.data if name in self._digests
        ]
        versions = [f"{name} {number}" for name, number in package_versions().items() if number]
        return f"SHA-256: {', '.join(hashes)}; {', '.join(versions)}."

    def _table(self) -> Table:
        """Return a row for each policy and data set, with all metrics."""
        rows = []
        for (data, policy), group in self._overall().group_by(
            "data", "policy", maintain_order=True
        ):
            row = {"data": data, "policy": policy} | group.select("questions", "clusters").row(
                0, named=True
            )
            for each in group.iter_rows(named=True):
                number = self.metrics.index(each["metric"])
                row |= {f"{end}{number}": each[end] for end in ("value", "low", "high")}
            rows.append(row)
        metrics = [
            column
            for number, name in enumerate(self.metrics)
            for column in (
                (name, f"{{value{number}:.4g}}"),
                ("", f"[{{low{number}:.4g}}, {{high{number}:.4g}}]"),
            )
        ]
        columns: Columns = (
            ("data", "{data}"),
            ("policy", "{policy}"),
            *metrics,
            ("questions", "{questions}"),
            ("clusters", "{clusters}"),
        )
        return Table("", *format_rows(rows, columns), left=(0, 1))

    def _display(self) -> object:
        return self._caption(), self._table()


def _load_packs(policies: object) -> dict[str, Pack]:
    """Return the packs of the policies by name; accept the names of baselines."""
    packs: dict[str, Pack] = {}
    for name, spec in list_policies(policies):
        pack = as_pack(BASELINES.get(spec, spec) if isinstance(spec, str) else spec, None, name)
        if pack.name in packs:
            raise InputError(
                f'Two policies have the name "{pack.name}". Pass a mapping of names to policies.'
            )
        packs[pack.name] = pack
    if not packs:
        raise InputError("An experiment needs policies: pass at least one.")
    return packs


def _identify(measure: Any) -> dict[str, Any]:
    """Return the name, the source hash and the options of a measuring function."""
    function, options = measure, {}
    if isinstance(measure, partial):
        function, options = measure.func, {"args": list(measure.args), "keywords": measure.keywords}
    try:
        if inspect.ismethod(function):  # The state of its object is not part of the source.
            raise TypeError
        source = inspect.getsource(function)
        defaults = dict(enumerate(function.__defaults__ or ())) | (function.__kwdefaults__ or {})
        variables = defaults | dict(inspect.getclosurevars(function).nonlocals)
        # Functions that it calls are not part of the hash, wherever they stand.
        if values := {str(name): value for name, value in variables.items() if not callable(value)}:
            options = {**options, "values": values}
        return {
            "function": function.__qualname__,
            "source": hashlib.sha256(source.encode()).hexdigest(),
            **json.loads(json.dumps(options, allow_nan=False)),
        }
    except (OSError, TypeError, ValueError, AttributeError):
        raise InputError(
            "measure must be a function of a module or a notebook, or a functools.partial of one, whose options, defaults "
            f"and variables of an enclosing function are JSON values; not {describe_value(measure)}."
        ) from None


def _measure_cell(
    measure: Measure | None, metrics: Sequence[str], limit: int, task: Any, step: Step
) -> Outcome:
    """Return one cell's result: from ranking labelled questions under a pack, or from the user's function ``measure``."""
    if measure is None:
        outcome = rank_questions(limit, metrics, task, lambda _: None, timed=False)
        step(1)
        return outcome
    value = measure(*task)
    defaults = {"cluster": pl.lit(f"seed {task[2]}"), "question": pl.int_range(pl.len())}
    try:
        frame = pl.DataFrame([value]) if isinstance(value, Mapping) else value.clone()
        rows = frame.select(
            *(
                pl.coalesce(pl.col(f"^{name}$"), default).cast(pl.String).alias(name)
                for name, default in defaults.items()
            ),
            pl.col(*metrics).cast(pl.Float64).fill_nan(None),
        )
        if not rows.height:
            raise ValueError("no rows")
        figures = summarise_rows(rows, metrics)
        json.dumps(figures, allow_nan=False)
    except (pl.exceptions.PolarsError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"measure returned {describe_value(value)} without finite metrics {', '.join(metrics)}: "
            f"{str(error).partition(chr(10))[0]}. Return a frame with a row for each unit, or one row as a mapping."
        ) from error
    step(1)
    return Outcome(figures, rows)
