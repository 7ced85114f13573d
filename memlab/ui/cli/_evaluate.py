"""The main jobs: the demo, the evaluation of policies on a log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import memlab
from memlab.kernel.policies import CHALLENGE_DESIGNS
from memlab.ui.cli._base import LAB, F, LocalPath, as_json_option, existing, main, tell, terminal_width
from memlab.ui.cli._policy import policy

if TYPE_CHECKING:
    import polars as pl

    from memlab.io.ingest import LabelledConversation
    from memlab.science.bench import BenchResult, DynamicsResult
    from memlab.science.evaluation import Evaluation


# -- `memlab bench`: packs on labelled questions --

_PATH = LocalPath()


def _options(command: F) -> F:
    """What every bench takes."""
    for option in reversed(
        (
            click.option("--packs", multiple=True, help="A pack's name or .hy file; repeat it. Default: all of them."),
            click.option("--limit", type=click.IntRange(20), default=20, show_default=True, help="Memories a recall."),
            click.option("--trec", type=_PATH, help="Write runs and qrels that TREC's tools read to this folder."),
            as_json_option,
        )
    ):
        command = option(command)
    return command


_SHA256 = click.option("--sha256", default="", help="Refuse data of another SHA-256 than this.")


@main.group()
def bench() -> None:
    """Retrieval quality and latency on labelled questions: what is found, turn by turn."""


@bench.command()
@click.argument("path", type=_PATH, required=False)
@click.option("--evidence", type=(str, _PATH), multiple=True, metavar="NAME FILE", help="Other labels to judge by too.")
@click.option("--download", is_flag=True, help="Fetch the original file to PATH and check its hash.")
@_SHA256
@_options
def locomo(
    path: Path | None, evidence: tuple[tuple[str, Path], ...], download: bool, sha256: str, **asked: Any
) -> None:
    """Rank the turns of LoCoMo-format conversations with every pack.

    --evidence corrected corrections.json judges the same rankings by those labels, beside the published ones.
    """
    from memlab.io.ingest import check_digest, correct_evidence, download_locomo, read_locomo

    if path is None and not download:
        raise click.UsageError("Give the PATH of a LoCoMo file, or --download to fetch the original.")
    where = path or Path("locomo10.json")
    if download:
        download_locomo(where)
    digest = check_digest(where, sha256)
    read = read_locomo(where)
    labels = {name: correct_evidence(read, file) for name, file in evidence}
    _rank(read, where, digest, labels=labels, **asked)


@bench.command()
@click.argument("folder", type=_PATH)
@click.option("--dynamics", is_flag=True, help="Live the chats: linking, upkeep; what is outdated, and still shown?")
@_SHA256
@_options
def beam(folder: Path, sha256: str, dynamics: bool, **asked: Any) -> None:
    """Rank the messages of BEAM's chats (FOLDER/1/chat.json, ...) with every pack, by ability."""
    from memlab.io.ingest import check_digest, read_beam
    from memlab.science.bench import bench_dynamics

    if dynamics and asked["trec"] is not None:
        raise click.UsageError("--dynamics compares two lives of a chat and has no run to write: leave --trec out.")
    how = {"bench": bench_dynamics} if dynamics else {"unit": "message"}
    _rank(read_beam(folder), folder, check_digest(folder, sha256), **how, **asked)


@bench.command()
@click.argument("file", type=_PATH)
@_SHA256
@_options
def longmemeval(file: Path, sha256: str, **asked: Any) -> None:
    """Rank the turns of each of LongMemEval's haystacks with every pack, by type of question."""
    from memlab.io.ingest import check_digest, read_longmemeval

    digest = check_digest(file, sha256)
    _rank(read_longmemeval(file), file, digest, **asked)


@bench.command()
@click.argument("folder", type=_PATH)
@_SHA256
@_options
def lmeb(folder: Path, sha256: str, **asked: Any) -> None:
    """Rank the candidates of LMEB's tasks below FOLDER with every pack, by task."""
    from memlab.io.ingest import check_digest, read_lmeb

    digest = check_digest(folder, sha256)
    _rank(read_lmeb(folder), folder, digest, unit="document", **asked)


@bench.command("lab")
@LAB
@click.argument("labels", type=_PATH)
@_options
def bench_own(lab: Path, labels: Path, packs: tuple[str, ...], limit: int, trec: Path | None, as_json: bool) -> None:
    """Rank the memories of LAB for the questions of LABELS, a .jsonl or .csv file, with every pack.

    A row has a question and what it wants: {"question": "Where is the key?", "wanted": [17]}, where wanted are ids,
    refs or texts of memories. LAB is read only.
    """
    from memlab.io.ingest import read_questions
    from memlab.science.bench import bench_lab

    _show(partial(bench_lab, lab, read_questions(labels), packs=packs or None, limit=limit), trec, as_json=as_json)


def _rank(
    read: tuple[LabelledConversation, ...],
    where: Path,
    digest: str,
    *,
    bench: Callable[..., BenchResult | DynamicsResult] | None = None,
    packs: tuple[str, ...],
    limit: int,
    trec: Path | None,
    as_json: bool,
    **more: Any,
) -> None:
    from memlab.science.bench import bench_conversations

    run = partial(bench or bench_conversations, read, dataset=where.resolve().stem, sha256=digest, **more)
    _show(partial(run, packs=packs or None, limit=limit), trec, as_json=as_json)


def _show(bench: Callable[..., BenchResult | DynamicsResult], trec: Path | None, *, as_json: bool) -> None:
    from memlab.science.bench import BenchResult

    result = bench(progress=not as_json and sys.stderr.isatty())
    written = [str(path) for path in result.trec(trec)] if trec and isinstance(result, BenchResult) else []
    text = f"\n\nTREC: {', '.join(written)}" if written else ""
    tell(result.to_dict() | {"trec": written}, as_json=as_json, text=lambda: f"{result!r}{text}")


@main.command()
@click.option("--output", type=LocalPath(), default=Path("memlab-demo.html"), show_default=True)
@click.option("--full", is_flag=True, help="Then live a simulated quarter and judge every pack from its log: a minute.")
@as_json_option
def demo(output: Path, full: bool, as_json: bool) -> None:
    """The main job on a bundled conversation, offline, in seconds; ends with a page to open."""
    from memlab.ui.demo import run_demo

    result = run_demo(output=output, full=full, quiet=as_json, progress=True)
    tell(result.to_dict(), as_json=as_json, text=lambda: f"Open {result.output}")


_MISSING = click.Choice(["censor", "inverse", "bounds", "zero"])
_LEVEL = click.option("--level", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True)
_HORIZON = click.option("--horizon", help="Give every recall the same time to earn: 7d, 12h.")
_SILENCE = click.option("--missing", type=_MISSING, help="What silence means; asked for where it matters.")
_RANGE = click.option("--reward-range", type=float, nargs=2, metavar="LOW HIGH", help="What one item may earn.")


@main.command()
@click.argument("log", type=LocalPath())
@click.option("--policies", "-p", multiple=True, help="A pack's name, a .hy file, or a column of scores; repeat it.")
@click.option("--report", type=LocalPath(), help="Write one self-contained HTML page.")
@_HORIZON
@_SILENCE
@click.option("--estimator", type=click.Choice(["snips", "ht"]), default="snips", show_default=True)
@click.option("--baseline", help="The policy to which the others are compared. Default: the one that logged.")
@_LEVEL
@_RANGE
@click.option("--position", is_flag=True, help="Weigh rewards by how often the place of an item is looked at.")
@click.option("--labels", type=LocalPath(), help="Judge by a file of decision, memory_id, relevance.")
@click.option("--decision", default="decision", show_default=True, help="A file's column of recalls.")
@click.option("--item", default="memory_id", show_default=True, help="A file's column of memories.")
@click.option("--shown", default="rank", show_default=True, help="A file's column of ranks; 0 or empty: not shown.")
@click.option("--reward", default="reward", show_default=True, help="A file's column of rewards.")
@click.option("--propensity", help="A file's column of the probability of being shown.")
@click.option("--limit", type=click.IntRange(1), help="A file's size of the head, where a log also shows probes.")
@click.option("--at", help="A file's column of when a recall was.")
@click.option("--feedback-at", help="A file's column of when its reward came.")
@click.option("--cluster", help="What belongs together: a file's column (a user); of a lab also: day, decision.")
@as_json_option
def evaluate(
    log: Path,
    policies: tuple[str, ...],
    report: Path | None,
    limit: int | None,
    reward_range: tuple[float, float] | None,
    labels: Path | None,
    cluster: str | None,
    decision: str,
    item: str,
    shown: str,
    reward: str,
    propensity: str | None,
    at: str | None,
    feedback_at: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """What each policy would have been worth on LOG: a lab, or a CSV or Parquet file with one row a candidate.

    Exit status 1 when no policy could be given a value.
    """
    judged = None if labels is None else _labels(labels)
    if log.is_dir():
        with existing(log, read_only=True) as lab:
            chosen = list(policies) or list(memlab.packs())
            found = memlab.evaluate(
                lab.slates(), chosen, cluster=cluster, reward_range=reward_range, labels=judged, **asked
            )
            _evaluated(found, report, as_json=as_json)
        return
    frame = _table(log)
    if not policies:
        raise click.UsageError("Say which --policies to evaluate: columns of scores, packs or .hy files.")
    days = cluster in ("day", "decision") and cluster not in frame.columns
    slates = memlab.Slates.from_wide(
        frame,
        decision=decision,
        item=item,
        shown=shown,
        reward=reward if reward in frame.columns or judged is None else None,
        propensity=propensity,
        cluster=None if days else cluster,
        at=at,
        feedback_at=feedback_at,
        limit=limit,
        scores=[name for name in policies if name in frame.columns],
    )
    found = memlab.evaluate(
        slates,
        list(policies),
        cluster=cluster if days else None,
        reward_range=reward_range,
        labels=judged,
        **asked,
    )
    _evaluated(found, report, as_json=as_json)


@bench.command()
@LAB
@click.option("--labels", type=LocalPath(), help="What was wanted: a .csv, .jsonl or .parquet file.")
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

    from memlab.io.formats import UNREADABLE

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


def _table(path: Path) -> pl.DataFrame:
    import polars as pl

    from memlab.io.formats import UNREADABLE

    if path.suffix not in (".csv", ".parquet"):
        raise memlab.InputError(f"{path} is neither a lab's folder nor a .csv or .parquet file.")
    try:
        return pl.read_csv(path, try_parse_dates=True) if path.suffix == ".csv" else pl.read_parquet(path)
    except UNREADABLE as error:
        raise memlab.InputError(f"Cannot read {path}: {str(error).splitlines()[0]}") from None


@policy.command()
@LAB
@click.argument("pack")
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--design", type=click.Choice(CHALLENGE_DESIGNS), default="extra", show_default=True)
@click.option("--extra", type=click.IntRange(1, 20), default=1, show_default=True, help="Items beside the head.")
@click.option("--rate", type=click.FloatRange(0.01, 1), default=1.0, show_default=True, help="The share of recalls.")
@click.option("--end", is_flag=True, help="Compare PACK no longer.")
@as_json_option
def challenge(lab: Path, pack: str, reason: str, end: bool, as_json: bool, **asked: Any) -> None:
    """Compare PACK (a name or a .hy file) with the live pack of LAB from the next recall on.

    Beside the head, EXTRA items are shown that only PACK would show; with the design "lot" a lot decides among those on
    which the packs differ, and no recall is longer; with "ab" the whole head of one of the packs is shown. `memlab
    verdict` says which is better.
    """
    with existing(lab) as opened:
        if end:
            opened.policies.end_challenge(pack, reason=reason)
            tell({"ended": pack}, as_json=as_json, text=lambda: f"{pack} is a challenger no longer")
            return
        made = opened.challenge(pack, reason=reason, **asked)
    report = {name: getattr(made, name) for name in ("name", "design", "extra", "rate", "reason")}
    tell(report | {"hash": made.pack.hash}, as_json=as_json, text=lambda: repr(made).strip("<>"))


@policy.command()
@LAB
@click.argument("challenger", required=False)
@_HORIZON
@_SILENCE
@click.option("--cluster", help="What belongs together and enters as one block: session, day, a column.")
@_LEVEL
@_RANGE
@click.option("--report", type=LocalPath(), help="Write one self-contained HTML page.")
@as_json_option
def verdict(lab: Path, challenger: str | None, report: Path | None, as_json: bool, **asked: Any) -> None:
    """Which is better, the live pack of LAB or CHALLENGER (default: each of them); valid at every look."""
    with existing(lab, read_only=True) as opened:
        found = opened.verdict(challenger, **asked)
        written = None if report is None else str(found.report(report))
        text = repr(found) + (f"\n\nOpen {written}" if written else "")
        tell(found.to_dict() | {"report": written}, as_json=as_json, text=lambda: text)


@policy.command()
@LAB
@_HORIZON
@_SILENCE
@click.option("--cluster", help="What belongs together and counts once: day, session, decision, a column.")
@click.option("--estimator", type=click.Choice(["snips", "ht"]), default="snips", show_default=True)
@_LEVEL
@_RANGE
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the search for other numbers.")
@click.option("--yes", is_flag=True, help="Consent: carry out what is proposed.")
@as_json_option
def adapt(lab: Path, yes: bool, as_json: bool, **asked: Any) -> None:
    """Propose to bring back an earlier policy of LAB, or to use other numbers, where the log shows that it does better.

    Nothing is changed without --yes.
    """
    with existing(lab, read_only=not yes) as opened:
        found = opened.upkeep.operations.adapt_policy(**asked, consent=yes)
    tell(found.to_dict(), as_json=as_json, text=lambda: repr(found))


@policy.command()
@LAB
@click.argument("packs", nargs=-1, required=True)
@_HORIZON
@_SILENCE
@click.option("--baseline", help="The policy to which the others are compared. Default: the live pack.")
@_LEVEL
@_RANGE
@as_json_option
def plan(lab: Path, packs: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """How many recalls of LAB each design needs to tell PACKS from the live pack, by what its log knows so far."""
    with existing(lab, read_only=True) as opened:
        found = memlab.plan(opened.slates(), list(packs), **asked)
    report = {"baseline": found.baseline, "recalls": found.recalls, "best": found.best, "notes": list(found.notes)}
    tell(report | {"designs": found.frame.to_dicts()}, as_json=as_json, text=lambda: repr(found))
