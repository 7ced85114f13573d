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
    package_versions,
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

__all__ = ["Comparison", "Experiment"]

# The name is that of a folder, so it has no separator and does not begin with a dot.
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_RANKS = 20
"""The minimum number of results of a recall, as for ``memlab.bench_conversations``."""

_KEYS = ("name", "folder", "policies", "data", "metrics", "seeds")
"""The keys of an experiment's file."""

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
        interval ``low`` to ``high``, the p-value ``p``, ``questions`` and ``clusters``.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values.

        Returns
        -------
        dict
            The keys are the names of the attributes.
        """
        names = {"a": self.a, "b": self.b, "level": self.level, "adjust": self.adjust}
        return names | {"frame": self.frame.to_dicts()}

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
        ``cluster`` are optional; without clusters, seeds are independent. Its source is part of the hash, the
        functions that it calls are not. A ``functools.partial`` passes options of JSON values.
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
        self.metrics = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        self.seeds = tuple(dict.fromkeys(seeds))
        self._measure, self._embedder = measure, embedder
        self._digests: dict[str, str] = {}
        if not self.metrics or not self.seeds:
            raise InputError("An experiment needs at least one metric and one seed.")
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
        """Read an experiment from a TOML file, in which nothing is executed.

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
        for key in declared:
            if key not in _KEYS:
                raise InputError(f'{path} has an unknown key "{key}". {did_you_mean(key, _KEYS)}')
        for key in ("policies", "data"):
            if key not in declared:
                raise InputError(f"{path} has no {key}. Add a list, or a table of names.")

        def resolve_path(value: Any) -> Any:
            """Return a path that is relative to the file."""
            return path.parent / Path(value).expanduser() if isinstance(value, str) else value

        def resolve_policy(value: Any) -> Any:
            """Return the path of a file of Hy; return a name or a text unchanged."""
            is_path = isinstance(value, str) and re.fullmatch(r"[^(;\n]+\.hy", value.strip())
            return str(resolve_path(value)) if is_path else value

        placed = declared | {
            "policies": _map_values(resolve_policy, declared["policies"]),
            "data": _map_values(resolve_path, declared["data"]),
            "folder": resolve_path(declared.get("folder", "runs")),
            "name": declared.get("name", path.stem),
        }
        return cls(**placed)

    # -- running ------------------------------------------------------------------------------------------------------

    @checked
    def run(self, *, executor: Workers = None, progress: bool = False) -> Experiment:
        """Measure all cells that have no result, and store each as soon as it is known.

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
        self._digests = self._check_data()
        self._write_declared()
        waiting = [key for key in self._keys() if find_cell(self.folder, self._hash(*key)) is None]
        plans: dict[str, Any] = {}
        tasks: list[tuple[Inputs, Any]] = []
        for policy, data, seed in waiting:
            pack, value = self.packs[policy], self.data[data]
            about = {
                "pack": describe_pack(pack) | {"name": policy},
                "data": {"name": data, "sha256": self._digests[data]},
            }
            inputs = Inputs(self._inputs(policy, data, seed), about)
            if self._measure is not None:
                tasks.append((inputs, (pack, value, seed)))
                continue
            if data not in plans:
                plans[data] = plan_data(data, value, self._embedder, pack)
            tasks.append((inputs, plans[data]._replace(pack=pack)))
        # A cell is one unit: the number of recalls is not known before all data are read.
        with bar(progress, len(tasks), unit="cell", desc=self.name) as step:
            run_cells(self.folder, self._work(), tasks, executor, step)
        return self

    def _work(self) -> Callable[[Any, Step], Outcome]:
        """Return the function that measures a cell."""
        if self._measure is not None:
            return partial(_measure_own, self._measure, self.metrics)
        return partial(_measure_retrieval, self._shared["limit"], self.metrics)

    def _keys(self) -> Iterator[tuple[str, str, int]]:
        """Yield the policy, data and seed of each cell."""
        for data in self.data:
            for policy in self.packs:
                for seed in self.seeds:
                    yield policy, data, seed

    def _inputs(self, policy: str, data: str, seed: int) -> dict[str, Any]:
        """Return the JSON values that decide the result of a cell."""
        inputs = {"pack": self.packs[policy].hash, "data": self._digests[data], "seed": seed}
        return self._shared | inputs

    def _hash(self, policy: str, data: str, seed: int) -> str:
        """Return the hash of a cell."""
        return hash_inputs(self._inputs(policy, data, seed))

    def _check_data(self) -> dict[str, str]:
        """Return the digest of each data set; DatasetError if one differs from that of an earlier run."""
        recorded = self._read_declared()
        digests = {}
        for name, value in self.data.items():
            digests[name] = digest_data(value)
            if recorded.get(name, digests[name]) != digests[name]:
                raise DatasetError(
                    f'The data "{name}" of the experiment {self.name} changed: their sha256 was '
                    f"{recorded[name][:12]} and is {digests[name][:12]}. Restore them, or give the new data another "
                    "name."
                )
        return recorded | digests

    @property
    def _file(self) -> Path:
        """The file of what was declared."""
        return self.folder / "experiment.json"

    def _read_declared(self) -> dict[str, str]:
        """Return the digests of the data of earlier runs, by name."""
        if not self._file.exists():
            return {}
        try:
            digests = json.loads(read_source_file(self._file))["data"]
            return {str(name): str(digest) for name, digest in digests.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                f"{self._file} was changed after it was written: {error!r:.80}. Delete this file, and run again."
            ) from error

    def _write_declared(self) -> None:
        """Write what was declared, with the digests of all data so far."""
        declared = {
            "name": self.name,
            "policies": {name: pack.hash for name, pack in self.packs.items()},
            "data": self._digests,
            "seeds": list(self.seeds),
            **self._shared,
        }
        text = json.dumps(declared, indent=1, ensure_ascii=False) + "\n"
        with writing(f"The experiment {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._file) as file:
                file.write(text.encode())

    # -- results ------------------------------------------------------------------------------------------------------

    def _cells(self) -> Iterator[tuple[tuple[str, str, int], Cell]]:
        """Yield the cells that have a result."""
        self._digests = self._digests or self._read_declared()
        for key in self._keys():
            if key[1] in self._digests:
                cell = find_cell(self.folder, self._hash(*key))
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

        Intervals are by cluster. ``value`` is the mean over questions. ``low`` and ``high`` are null
        below two clusters. With several seeds, ``seed`` is null in rows over all seeds. Cells without a result have no row.
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
        level: Annotated[float, Within(0, 1)] = 0.95,
        adjust: Adjustment | None = None,
    ) -> Comparison:
        """Compare two policies question by question, with intervals by cluster.

        Parameters
        ----------
        a, b
            The names of the policies. Differences are those of ``a`` minus ``b``.
        level
            The confidence level, between 0 and 1.
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
            If a cell of one of the policies has no result.

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
        rows = self.rows.filter(pl.col("policy").is_in([a, b]))
        cells = rows.select("data", "policy", "seed").n_unique()
        if cells < len({a, b}) * len(self.data) * len(self.seeds):
            raise InputError(
                f"Some cells of {a} or {b} have no result. Call run() first, or memlab experiment run."
            )
        keys = ["data", "cluster", "question"]
        left, right = (
            rows.filter(policy=name).group_by(keys, maintain_order=True).agg(pl.mean(*self.metrics))
            for name in (a, b)
        )
        pairs = left.join(right, on=keys, suffix="/b", maintain_order="left")
        groups: list[tuple[str | None, pl.DataFrame]] = [
            (name, pairs.filter(data=name)) for name in self.data
        ]
        if len(groups) > 1:
            groups.append((None, pairs))
        table: list[dict[str, Any]] = []
        estimates: list[Estimate | None] = []
        for metric in self.metrics:
            for label, group in groups:
                paired = group.drop_nulls([metric, f"{metric}/b"])
                # Clusters of two data sets may have the same name.
                clusters = [*map(str, zip(paired["data"], paired["cluster"], strict=True))]
                differences = paired[metric] - paired[f"{metric}/b"]
                estimates.append(cluster_interval(differences.to_numpy(), clusters))
                table.append(
                    {
                        "metric": metric,
                        "data": label,
                        "a": paired[metric].mean(),
                        "b": paired[f"{metric}/b"].mean(),
                        "difference": differences.mean(),
                        "questions": paired.height,
                        "clusters": len(set(clusters)),
                    }
                )
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
        return draw_figure(partial(self._draw, chosen), width=6.4, height=height, axes=axes)

    def _draw(self, metric: str, axes: Axes, *, alone: bool = True) -> None:
        """Draw dots with intervals: a line for each policy."""
        names = list(self.packs)[::-1]
        for number, data in enumerate(self.data):
            rows = self._overall().filter(data=data, metric=metric)
            # Data sets of one policy lie above each other, within half of a line.
            shift = 0.5 * ((len(self.data) - 1) / 2 - number) / len(self.data)
            heights = [names.index(name) + shift for name in rows["policy"]]
            colour = CYCLE[number % len(CYCLE)]
            axes.plot(rows["value"], heights, "os^vDPX"[number % 7], color=colour, label=data)
            for height, low, high in zip(heights, rows["low"], rows["high"], strict=True):
                if low is not None:
                    axes.plot([low, high], [height, height], color=colour, linewidth=1.4)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
        axes.set_xlabel(metric)
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
            raise InputError(f'A report is an .html, .tex or .csv file, not "{Path(path).name}".')
        first, *others = self.packs
        complete = results["seed"].null_count() or len(self.seeds) == 1
        tables = [self._table()]
        if complete and not self.missing:
            tables += [self.compare(name, first)._table(f"{name} minus {first}") for name in others]
        html = render_page(
            RESULTS_PAGE,
            {},
            brand="memlab experiment",
            title=self.name,
            caption=self._caption(),
            figures=[
                Markup(
                    draw_svg(
                        partial(self._draw, metric),
                        name=f"metric{number}",
                        width=7.6,
                        height=1.2 + 0.4 * len(self.packs),
                    )
                )
                for number, metric in enumerate(self.metrics)
            ],
            tables=[*tables[:-1], tables[-1]._replace(notes=[self._provenance()])],
        )
        return write_page(html, path)

    @property
    def missing(self) -> int:
        """The number of cells without a result."""
        return sum(1 for _ in self._keys()) - sum(1 for _ in self._cells())

    def to_dict(self) -> dict[str, Any]:
        """Return the experiment as JSON values.

        Returns
        -------
        dict
            The name, the number of missing cells, the hashes of packs and data, and the rows of
            ``results``.
        """
        results = self.results.to_dicts()
        return {
            "name": self.name,
            "missing": self.missing,
            "policies": {name: pack.hash for name, pack in self.packs.items()},
            "data": {name: self._digests.get(name) for name in self.data},
            "results": results,
        }

    def _overall(self) -> pl.DataFrame:
        """Return the results over all seeds."""
        results = self.results
        return results.filter(pl.col("seed").is_null()) if len(self.seeds) > 1 else results

    def _caption(self) -> str:
        """Return what the experiment has, in one sentence."""
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
    """Return the packs of policies by name; the names of baselines stand for their texts."""
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


def _map_values(change: Callable[[Any], Any], values: Any) -> Any:
    """Change one value, each value of a list, or each value of a table."""
    if isinstance(values, Mapping):
        return {name: change(value) for name, value in values.items()}
    return [change(value) for value in values] if isinstance(values, list) else change(values)


def _identify(measure: Any) -> dict[str, Any]:
    """Return the name, the source and the options of a function, which decide what it measures."""
    function, options = measure, {}
    if isinstance(measure, partial):
        function, options = measure.func, {"args": list(measure.args), "keywords": measure.keywords}
    try:
        source = inspect.getsource(function)
        return {
            "function": function.__qualname__,
            "source": hashlib.sha256(source.encode()).hexdigest(),
            **json.loads(json.dumps(options, allow_nan=False)),
        }
    except (OSError, TypeError, ValueError, AttributeError):
        raise InputError(
            "measure is a function of a module or a notebook, or a functools.partial of one with options of JSON "
            f"values; not {describe_value(measure)}."
        ) from None


def _measure_retrieval(limit: int, metrics: Sequence[str], task: PackTask, step: Step) -> Outcome:
    """Rank the labelled questions of data under a pack."""
    outcome = rank_questions(limit, metrics, task, lambda _: None, timed=False)
    step(1)
    return outcome


def _measure_own(
    measure: Measure, metrics: Sequence[str], task: tuple[Pack, Any, int], step: Step
) -> Outcome:
    """Call the function of a user, and check the frame that it returns."""
    pack, data, seed = task
    value = measure(pack, data, seed)
    frame = pl.DataFrame([value]) if isinstance(value, Mapping) else value
    if not isinstance(frame, pl.DataFrame) or not frame.height:
        raise InputError(
            f"measure returned {describe_value(value)}. Return a frame with a row for each unit, or one row as a mapping."
        )
    if missing := [name for name in metrics if name not in frame.columns]:
        raise InputError(
            f"measure returned no column {missing[0]}. Return it, or leave it out of metrics."
        )
    try:
        rows = frame.select(
            (pl.col(name) if name in frame.columns else other).cast(pl.String).alias(name)
            for name, other in (
                ("cluster", pl.lit(f"seed {seed}")),
                ("question", pl.int_range(pl.len())),
            )
        ).with_columns(frame.select(pl.col(*metrics).cast(pl.Float64)))
    except pl.exceptions.PolarsError as error:
        raise InputError(f"A metric of measure is not a number: {error}.") from None
    rows = rows.with_columns(pl.col(*metrics).fill_nan(None))
    if rows.select(pl.any_horizontal(pl.col(*metrics).is_infinite().any())).item():
        raise InputError("A metric of measure is infinite. Return null where there is no value.")
    step(1)
    return Outcome(summarise_rows(rows, metrics), rows)
