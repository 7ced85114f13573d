"""Commands on experiments: new, run, compare, report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlab.errors import InputError
from memlab.kernel.base.disk import writing
from memlab.ui.cli._base import LocalPath, Report, command, get_fields, main, terminal_width

if TYPE_CHECKING:
    from memlab.science.experiments import Experiment

# An argument of every command, and the metrics of a new experiment: those of the class.
_FILE = click.argument("file", type=LocalPath())
_METRICS = ("recall@10", "ndcg@10")


@main.group()
def experiment() -> None:
    """Measure policies on data, store the results, and compare the policies."""


def _read(file: Path) -> Experiment:
    """Read the experiment of a file."""
    from memlab.science.experiments import Experiment

    return Experiment.read(file)


@command(experiment)
@_FILE
@click.option("--policies", "-p", multiple=True, help="A pack's name or .hy file; may be repeated.")
@click.option(
    "--data",
    "-d",
    multiple=True,
    help="Data to measure on: a file, folder or lab; may be repeated.",
)
@click.option(
    "--metrics",
    "-m",
    multiple=True,
    default=_METRICS,
    help="Metric to compute, such as ndcg@10; may be repeated.",
)
def new(
    file: Path, policies: tuple[str, ...], data: tuple[str, ...], metrics: tuple[str, ...]
) -> Report:
    """Write a template of an experiment to FILE, for editing.

    Paths are relative to FILE.

    Example: memlab experiment new words.toml -p memlab -p bm25 -d locomo10.json
    """
    declared = {"policies": policies or ("memlab", "bm25"), "data": data, "metrics": metrics}
    lines = [
        f"{key} = {json.dumps(values, ensure_ascii=False)}" for key, values in declared.items()
    ]
    with writing(f"The experiment {file}"):
        try:
            with file.open("x", encoding="utf-8") as target:
                target.write("\n".join(lines) + "\n")
        except FileExistsError:
            raise InputError(f"{file} exists already. Edit it, or name another file.") from None
    return {"written": str(file)}, f"{file} is written. Run it with: memlab experiment run {file}"


@command(experiment)
@_FILE
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Number of processes that measure at the same time. Default: this one.",
)
def run(file: Path, workers: int | None, as_json: bool) -> Report:
    """Measure missing results of the experiment in FILE, and show all results.

    Each combination of pack, data set and seed is measured once. An interrupted run continues.

    Example: memlab experiment run words.toml
    """
    result = _read(file).run(executor=workers, progress=not as_json and sys.stderr.isatty())
    return get_fields(result, "name", "missing", "results"), result.text(terminal_width())


@command(
    experiment,
    verb="memlab.science.experiments:Experiment.compare",
    options={"level": "", "adjust": ""},
)
@_FILE
@click.argument("a")
@click.argument("b")
def compare(file: Path, a: str, b: str, **options: Any) -> Report:
    """Show the differences of policy A minus policy B, paired by question.

    Example: memlab experiment compare words.toml memlab bm25
    """
    result = _read(file).compare(a, b, **options)
    fields = get_fields(result, "a", "b", "level", "adjust", "frame")
    return fields, result.text(terminal_width())


@command(experiment)
@_FILE
@click.argument("path", type=LocalPath())
def report(file: Path, path: Path) -> Report:
    """Write the results of the experiment in FILE to PATH: .html, .tex or .csv.

    Example: memlab experiment report words.toml words.html
    """
    written = str(_read(file).report(path))
    return {"report": written}, f"Open {written}"
