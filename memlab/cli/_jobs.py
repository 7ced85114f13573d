"""The main jobs: the demo, the benches, the evaluation of policies on a log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import memlab
from memlab.cli._base import LAB, as_json_option, existing, main, tell, terminal_width

if TYPE_CHECKING:
    import polars as pl

    from memlab.evaluation import Evaluation


@main.command()
@click.option("--output", type=click.Path(path_type=Path), default=Path("memlab-demo.html"), show_default=True)
@click.option("--full", is_flag=True, help="Then live a simulated quarter and judge every pack from its log: a minute.")
@as_json_option
def demo(output: Path, full: bool, as_json: bool) -> None:
    """The main job on a bundled conversation, offline, in seconds; ends with a page to open."""
    from memlab.demo import run_demo

    result = run_demo(output=output, full=full, quiet=as_json, progress=True)
    tell(result.to_dict(), as_json=as_json, text=lambda: f"Open {result.output}")


@main.group()
def bench() -> None:
    """Retrieval quality and latency on real conversations."""


@bench.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--packs", multiple=True, help="Packs by name or path; may be repeated. Default: all of them.")
@click.option("--download", is_flag=True, help="Fetch the original file to PATH and check its hash.")
@as_json_option
def locomo(path: Path | None, packs: tuple[str, ...], download: bool, as_json: bool) -> None:
    """Rank the turns of LoCoMo-format conversations with every pack."""
    from memlab.bench import bench_locomo
    from memlab.ingest import download_locomo, read_locomo

    if path is None and not download:
        raise click.UsageError("Give the PATH of a LoCoMo file, or --download to fetch the original.")
    where = path or Path("locomo10.json")
    if download:
        download_locomo(where)
    quiet = as_json or not sys.stderr.isatty()
    result = bench_locomo(read_locomo(where), packs=packs or None, dataset=where.stem, progress=not quiet)
    tell(result.to_dict(), as_json=as_json, text=lambda: repr(result))


@main.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--policies", "-p", multiple=True, help="A pack's name, a .hy file, or a column of scores; repeat it.")
@click.option("--report", type=click.Path(path_type=Path), help="Write one self-contained HTML page.")
@click.option("--horizon", help="Give every recall the same time to earn: 7d, 12h.")
@click.option("--missing", type=click.Choice(["censor", "zero"]), default="censor", show_default=True)
@click.option("--estimator", type=click.Choice(["snips", "ht"]), default="snips", show_default=True)
@click.option("--decision", default="decision", show_default=True, help="A file's column of recalls.")
@click.option("--item", default="memory_id", show_default=True, help="A file's column of memories.")
@click.option("--shown", default="rank", show_default=True, help="A file's column of ranks; 0 or empty: not shown.")
@click.option("--reward", default="reward", show_default=True, help="A file's column of rewards.")
@click.option("--propensity", help="A file's column of the probability of being shown.")
@click.option("--limit", type=click.IntRange(1), help="A file's size of the head, where a log also shows probes.")
@click.option("--cluster", help="A file's column of what belongs together: a user, a conversation.")
@as_json_option
def evaluate(
    log: Path,
    policies: tuple[str, ...],
    report: Path | None,
    horizon: str | None,
    missing: Literal["censor", "zero"],
    estimator: Literal["snips", "ht"],
    limit: int | None,
    as_json: bool,
    **columns: str | None,
) -> None:
    """What each policy would have been worth on LOG: a lab, or a CSV or Parquet file with one row a candidate.

    Exit status 1 when no policy could be given a value.
    """
    if log.is_dir():
        with existing(log, read_only=True) as lab:
            chosen = list(policies) or list(memlab.packs())
            found = memlab.evaluate(lab.slates(), chosen, horizon=horizon, missing=missing, estimator=estimator)
            _evaluated(found, report, as_json=as_json)
        return
    slates, names = _wide(log, policies, limit, columns)
    found = memlab.evaluate(slates, names, horizon=horizon, missing=missing, estimator=estimator)
    _evaluated(found, report, as_json=as_json)


@main.command()
@LAB
@click.option("--labels", type=click.Path(path_type=Path), help="What was wanted: a .csv, .jsonl or .parquet file.")
@click.option("--examples", type=click.IntRange(0, 1000), default=3, show_default=True, help="So many of each place.")
@click.option("--cluster", help="What is independent: session, day, decision.")
@as_json_option
def failures(lab: Path, labels: Path | None, examples: int, cluster: str | None, as_json: bool) -> None:
    """Where LAB lost what was wanted: never stored, not in the pool, ranked out, or shown and unused.

    The file has a row for each wanted memory: decision or question, and memory_id or ref. Without it, what feedback
    calls a success was wanted.
    """
    wanted = None if labels is None else _labels(labels)
    with existing(lab, read_only=True) as opened:
        found = memlab.failures(opened, wanted, examples=examples, cluster=cluster)
    tell(found.to_dict(), as_json=as_json, text=lambda: found.text(terminal_width()))


def _labels(path: Path) -> pl.DataFrame:
    import polars as pl

    from memlab.moving import UNREADABLE

    try:
        if path.suffix == ".csv":
            return pl.read_csv(path)
        if path.suffix == ".jsonl":
            return pl.read_ndjson(path)
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
    except UNREADABLE as error:
        raise memlab.InputError(f"Cannot read {path}: {str(error).splitlines()[0]}") from None
    raise memlab.InputError(f"{path} is no .csv, .jsonl or .parquet file.")


def _evaluated(found: Evaluation, report: Path | None, *, as_json: bool) -> None:
    written = None if report is None else str(found.report(report))
    tell(
        found.to_dict() | {"report": written},
        as_json=as_json,
        text=lambda: found.text(terminal_width()) + (f"\n\nOpen {written}" if written else ""),
    )
    if not found.frame["value"].count():
        sys.exit(1)


def _wide(
    log: Path, policies: tuple[str, ...], limit: int | None, columns: dict[str, str | None]
) -> tuple[memlab.Slates, list[str]]:
    import polars as pl

    from memlab.moving import UNREADABLE

    if log.suffix not in (".csv", ".parquet"):
        raise memlab.InputError(f"{log} is neither a lab's folder nor a .csv or .parquet file.")
    try:
        frame = pl.read_csv(log) if log.suffix == ".csv" else pl.read_parquet(log)
    except UNREADABLE as error:
        raise memlab.InputError(f"Cannot read {log}: {str(error).splitlines()[0]}") from None
    if not policies:
        raise click.UsageError("Say which --policies to evaluate: columns of scores, packs or .hy files.")
    scores = [name for name in policies if name in frame.columns]
    slates = memlab.Slates.from_wide(
        frame,
        decision=columns["decision"] or "",
        item=columns["item"] or "",
        shown=columns["shown"],
        reward=columns["reward"],
        propensity=columns["propensity"],
        cluster=columns["cluster"],
        limit=limit,
        scores=scores,
    )
    return slates, list(policies)
