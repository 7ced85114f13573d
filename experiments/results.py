"""Write the results of a study to a folder: a table, a figure and a record of the run.

    parser = Results.build_parser(__doc__)                        # adds the option --results
    arguments = parser.parse_args()
    results = Results("my_study", arguments, data=[path])
    results.save(rows, plot_dots(rows, label="pack", value="recall@10"))

The folder is ``results/STUDY``; git ignores it.

- ``table.csv`` has one row for each mapping in ``rows``.
- ``figure.svg`` is drawn by a function of matplotlib axes, such as ``plot_dots``, ``plot_bars`` and ``plot_lines`` return.
- ``run.json`` records the command, date, commit, machine, versions, seeds and the SHA-256 digests of the data.

A study that compares policies on data is a ``memlab.Experiment``: see ``run_experiment``.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from measuring import provenance, save_figure

from memlab.io.ingest import digest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from memlab import Experiment

__all__ = ["Results", "plot_bars", "plot_dots", "plot_lines", "run_experiment"]

Row = Mapping[str, Any]
Draw = Callable[["Axes"], None]

FOLDER = Path(__file__).resolve().parents[1] / "results"

# The packages whose versions can change a result.
_PACKAGES = ("memlab", "polars", "numpy", "scipy", "scikit-learn", "hy", "matplotlib")


class Results:
    """The results folder of one run of a study.

    ``arguments`` are the parsed options; those whose name contains "seed" are recorded as seeds. ``data`` are the files
    and folders that the study reads.
    """

    def __init__(
        self, study: str, arguments: argparse.Namespace, *, data: Iterable[Path | None] = ()
    ) -> None:
        self.study = study
        self.folder = Path(getattr(arguments, "results", FOLDER)) / study
        self._arguments = vars(arguments)
        self._data = [path for path in data if path is not None]
        self._started = time.perf_counter()

    @staticmethod
    def build_parser(description: str | None) -> argparse.ArgumentParser:
        """Return a parser that prints ``description`` as written and has the option ``--results``."""
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        Results.add_option(parser)
        return parser

    @staticmethod
    def add_option(parser: argparse.ArgumentParser) -> None:
        """Add the option ``--results`` to a parser."""
        parser.add_argument(
            "--results",
            type=Path,
            default=FOLDER,
            metavar="FOLDER",
            help="the folder in which the study's own folder is written (default: results)",
        )

    def save(
        self,
        rows: Sequence[Row],
        draw: Draw | Figure | None = None,
        *,
        width: float = 7.0,
        height: float = 3.6,
    ) -> Path:
        """Write the table, the figure and the record of the run; return the folder.

        ``draw`` draws one panel of ``width`` x ``height`` inches, or is a finished figure.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write_table(rows)
        if draw is not None:
            self.write_figure(draw, width=width, height=height)
        self.write_run()
        print(f"Results are in {self.folder}", file=sys.stderr)
        return self.folder

    def write_table(self, rows: Sequence[Row], name: str = "table") -> Path:
        """Write rows as CSV; nested values become JSON."""
        self.folder.mkdir(parents=True, exist_ok=True)
        flat = [
            {
                key: json.dumps(value, default=str)
                if isinstance(value, (list, tuple, dict))
                else value
                for key, value in row.items()
            }
            for row in rows
        ]
        path = self.folder / f"{name}.csv"
        pl.DataFrame(flat, infer_schema_length=None, strict=False).write_csv(path)
        return path

    def write_figure(
        self, draw: Draw | Figure, name: str = "figure", *, width: float = 7.0, height: float = 3.6
    ) -> Path:
        """Write a figure as SVG, after drawing its panel where ``draw`` is a function."""
        if not callable(draw):
            return save_figure(draw, name, self.folder)
        # imported late: matplotlib takes 0.3 s, and a study that fails early should not wait for it
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        from memlab.subjects.drawing import STYLE

        with rc_context(STYLE):
            figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
            draw(figure.subplots())
        return save_figure(figure, name, self.folder)

    def write_run(self) -> Path:
        """Write the command, its environment, its seeds and the digests of its data as JSON."""
        arguments = {name: value for name, value in self._arguments.items() if name != "results"}
        run = {
            "study": self.study,
            "command": shlex.join(["python", *sys.argv]),
            **provenance(_PACKAGES),
            "seconds": round(time.perf_counter() - self._started, 1),
            "seeds": {name: value for name, value in arguments.items() if "seed" in name},
            "arguments": arguments,
            "data": {path.name: digest(path) for path in self._data},
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "run.json"
        path.write_text(json.dumps(run, indent=1, default=str) + "\n", encoding="utf-8")
        return path


def run_experiment(experiment: Experiment) -> Path:
    """Run an experiment, print its results, and write ``table.csv`` and ``report.html`` next to its cells.

    A study that compares policies on data is an experiment, so it needs no other table, figure or record.
    """
    print(experiment.run(progress=sys.stderr.isatty()))
    for name in ("table.csv", "report.html"):
        experiment.report(experiment.folder / name)
    print(f"Results are in {experiment.folder}", file=sys.stderr)
    return experiment.folder


def plot_dots(
    rows: Sequence[Row],
    *,
    label: str,
    value: str,
    group: str | None = None,
    interval: tuple[str, str] | None = None,
    reference: float | None = None,
    log: bool = False,
    title: str = "",
) -> Draw:
    """Return a drawing with one line per label and one dot per group, with intervals where given.

    ``label``, ``value``, ``group`` and the two ends of ``interval`` are names of columns. Rows without a value are left
    out. ``reference`` is a value that a vertical line marks.
    """

    def draw(axes: Axes) -> None:
        from memlab.subjects.drawing import CYCLE, GREY

        labels = list(dict.fromkeys(str(row[label]) for row in rows))[::-1]
        groups = list(dict.fromkeys(str(row[group]) for row in rows)) if group else [""]
        for number, name in enumerate(groups):
            members = [
                row
                for row in rows
                if row.get(value) is not None and (not group or str(row[group]) == name)
            ]
            # groups of one label lie above each other, within 0.5 of a line
            shift = 0.5 * ((len(groups) - 1) / 2 - number) / len(groups)
            heights = [labels.index(str(row[label])) + shift for row in members]
            colour, marker = CYCLE[number % len(CYCLE)], "os^vDPX"[number % 7]
            axes.scatter(
                [row[value] for row in members],
                heights,
                color=colour,
                marker=marker,
                s=26,
                zorder=3,
                label=name or None,
            )
            for height, row in zip(heights, members, strict=True):
                if interval and row.get(interval[0]) is not None:
                    axes.plot(
                        [row[interval[0]], row[interval[1]]],
                        [height, height],
                        color=colour,
                        linewidth=1.4,
                    )
        if reference is not None:
            axes.axvline(reference, color=GREY, linewidth=0.8, linestyle="--")
        if log:
            axes.set_xscale("log")
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(-0.6, len(labels) - 0.4)
        axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
        axes.set_xlabel(value)
        axes.set_title(title, loc="left")
        if len(groups) > 1:
            axes.legend(frameon=False, fontsize="small")

    return draw


def plot_bars(rows: Sequence[Row], *, label: str, value: str, title: str = "") -> Draw:
    """Return a drawing with one horizontal bar per row; ``label`` and ``value`` are columns."""

    def draw(axes: Axes) -> None:
        from memlab.subjects.drawing import BLUE

        chosen = [row for row in rows if row.get(value) is not None][::-1]
        axes.barh([str(row[label]) for row in chosen], [row[value] for row in chosen], color=BLUE)
        axes.set_xlabel(value)
        axes.set_title(title, loc="left")

    return draw


def plot_lines(
    rows: Sequence[Row],
    *,
    x: str,
    y: str,
    group: str | None = None,
    log: str = "",
    title: str = "",
) -> Draw:
    """Return a drawing with one line per group; ``log`` names the logarithmic axes ("x", "xy")."""

    def draw(axes: Axes) -> None:
        from memlab.subjects.drawing import CYCLE

        groups = list(dict.fromkeys(str(row[group]) for row in rows)) if group else [""]
        for number, name in enumerate(groups):
            points = sorted(
                (row[x], row[y])
                for row in rows
                if row.get(y) is not None and (not group or str(row[group]) == name)
            )
            axes.plot(
                [left for left, _ in points],
                [height for _, height in points],
                color=CYCLE[number % len(CYCLE)],
                marker="os^vDPX"[number % 7],
                markersize=4,
                label=name or None,
            )
        if "x" in log:
            axes.set_xscale("log")
        if "y" in log:
            axes.set_yscale("log")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_title(title, loc="left")
        if len(groups) > 1:
            axes.legend(frameon=False, fontsize="small")

    return draw
