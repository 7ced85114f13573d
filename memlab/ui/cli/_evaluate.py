"""Policies on a log and packs on labelled questions: evaluate, challenge, verdict, plan, adapt; bench, failures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import memlab
from memlab.ui.cli._base import (
    LocalPath,
    Told,
    bench,
    command,
    existing,
    fields_of,
    main,
    policy,
    read,
    read_frame,
    terminal_width,
    write,
    write_if,
)

if TYPE_CHECKING:
    from memlab.io.ingest import LabelledConversation
    from memlab.science.bench import BenchResult, DynamicsResult
    from memlab.science.evaluation import Evaluation

_PATH = LocalPath()
_JUDGED = {
    "horizon": "Give every recall the same time to earn: 7d, 12h.",
    "missing": "What missing feedback counts as; required where it matters.",
}
_LEVEL = click.option("--level", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True)
_RANGE = click.option(
    "--reward-range", type=float, nargs=2, metavar="LOW HIGH", help="What one item may earn."
)
_REPORT = click.option("--report", type=_PATH, help="Write one self-contained HTML page.")


@command(
    main,
    verb="memlab.science.evaluation:evaluate",
    options={
        **_JUDGED,
        "estimator": "",
        "baseline": "The policy to which the others are compared. Default: the one that logged.",
        "position": "Weigh rewards by how often the rank of an item is looked at.",
    },
)
@click.argument("log", type=_PATH)
@click.option(
    "--policies",
    "-p",
    multiple=True,
    help="A pack's name, a .hy file, or a column of scores; repeat it.",
)
@_REPORT
@_LEVEL
@_RANGE
@click.option("--labels", type=_PATH, help="Judge by a file of decision, memory_id, relevance.")
@click.option(
    "--decision", default="decision", show_default=True, help="A file's column of recalls."
)
@click.option("--item", default="memory_id", show_default=True, help="A file's column of memories.")
@click.option(
    "--shown",
    default="rank",
    show_default=True,
    help="A file's column of ranks; 0 or empty: not shown.",
)
@click.option("--reward", default="reward", show_default=True, help="A file's column of rewards.")
@click.option("--propensity", help="A file's column of the probability of being shown.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="A file's top-k size of a recall, where a log also shows probes.",
)
@click.option("--at", help="A file's column of when a recall was.")
@click.option("--feedback-at", help="A file's column of when its reward came.")
@click.option(
    "--cluster",
    help="What belongs together: a file's column (a user); of a lab also: day, decision.",
)
def evaluate(
    log: Path,
    policies: tuple[str, ...],
    report: Path | None,
    labels: Path | None,
    cluster: str | None,
    **options: Any,
) -> Told:
    """Estimate how each policy would have performed on LOG: a lab, or a CSV or Parquet file of candidates.

    Exit status 1 when no policy could be given a value.
    """
    columns = ("decision", "item", "shown", "reward", "propensity", "limit", "at", "feedback_at")
    named = {name: options.pop(name) for name in columns}
    options["labels"] = None if labels is None else read_frame(labels)
    if log.is_dir():
        with existing(log, read_only=True) as lab:
            chosen = list(policies) or list(memlab.packs())
            return _evaluated(
                memlab.evaluate(lab.slates(), chosen, cluster=cluster, **options), report
            )
    frame = read_frame(log, dates=True)
    if not policies:
        raise click.UsageError(
            "Say which --policies to evaluate: columns of scores, packs or .hy files."
        )
    if labels is not None and named["reward"] not in frame.columns:
        named["reward"] = None
    days = cluster in ("day", "decision") and cluster not in frame.columns
    scores = [name for name in policies if name in frame.columns]
    slates = memlab.Slates.from_wide(
        frame, cluster=None if days else cluster, scores=scores, **named
    )
    result = memlab.evaluate(slates, list(policies), cluster=cluster if days else None, **options)
    return _evaluated(result, report)


def _evaluated(result: Evaluation, report: Path | None) -> Told:
    value, text = _with_report(result, report, result.text(terminal_width()))
    return value, text, int(not result.frame["value"].count())


def _with_report(result: Any, report: Path | None, text: str) -> tuple[Any, str]:
    """Tell of a result, with a page where one is wanted."""
    written = None if report is None else str(result.report(report))
    return result.to_dict() | {"report": written}, text + (f"\n\nOpen {written}" if written else "")


@command(
    policy,
    write,
    verb="memlab.kernel.verbs.policies.policies:LabPolicies.challenge",
    options={
        "reason": "Why, for the history.",
        "design": "",
        "extra": "Items beside the head.",
        "rate": "The share of recalls.",
    },
)
@click.argument("pack")
@click.option("--end", is_flag=True, help="Compare PACK no longer.")
def challenge(lab: memlab.Lab, pack: str, end: bool, **options: Any) -> Told:
    """Compare PACK (a name or a .hy file) with the live pack of LAB from the next recall on.

    Beside the head, EXTRA items are shown that only PACK would show; with the design "lot" a lot decides among those on
    which the packs differ, and no recall is longer; with "ab" the whole head of one of the packs is shown. `memlab
    policy verdict` says which is better.
    """
    if end:
        lab.policies.end_challenge(pack, reason=options["reason"])
        return {"ended": pack}, f"{pack} is a challenger no longer"
    made = lab.challenge(pack, **options)
    report = fields_of(made, "name", "design", "extra", "rate", "reason")
    return report | {"hash": made.pack.hash}, repr(made).strip("<>")


@command(
    policy,
    read,
    verb="memlab.science.evaluation:verdict",
    options={
        **_JUDGED,
        "cluster": "What belongs together and enters as one block: session, day, a column.",
    },
)
@click.argument("challenger", required=False)
@_LEVEL
@_RANGE
@_REPORT
def verdict(lab: memlab.Lab, challenger: str | None, report: Path | None, **options: Any) -> Told:
    """Which is better, the live pack of LAB or CHALLENGER (default: each of them); valid at every look."""
    result = lab.verdict(challenger, **options)
    return _with_report(result, report, repr(result))


@command(
    policy,
    write_if("yes"),
    verb="memlab.subjects.programs.operations:LabOperations.adapt_policy",
    options={
        **_JUDGED,
        "cluster": "What belongs together and counts once: day, session, decision, a column.",
        "estimator": "",
        "level": "",
        "seed": "Of the search for other numbers.",
    },
)
@_RANGE
@click.option("--yes", is_flag=True, help="Consent: carry out what is proposed.")
def adapt(lab: memlab.Lab, yes: bool, **options: Any) -> Told:
    """Propose to bring back an earlier policy of LAB, or to use other numbers, where the log shows that it does better.

    Nothing is changed without --yes.
    """
    result = lab.upkeep.operations.adapt_policy(**options, consent=yes)
    return result.to_dict(), result


@command(
    policy,
    read,
    verb="memlab.science.evaluation:plan",
    options={
        **_JUDGED,
        "baseline": "The policy to which the others are compared. Default: the live pack.",
    },
)
@click.argument("packs", nargs=-1, required=True)
@_LEVEL
@_RANGE
def plan(lab: memlab.Lab, packs: tuple[str, ...], **options: Any) -> Told:
    """How many recalls of LAB each design needs to tell PACKS from the live pack, by what its log knows so far."""
    result = memlab.plan(lab.slates(), list(packs), **options)
    return fields_of(result, "baseline", "recalls", "best", "notes", designs="frame"), result


# -- labelled questions ---------------------------------------------------------------------------------------------


@command(bench, read)
@click.option("--labels", type=_PATH, help="What was wanted: a .csv, .jsonl or .parquet file.")
@click.option(
    "--examples",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=True,
    help="So many of each place.",
)
@click.option("--cluster", help="What is independent: session, day, decision.")
def failures(lab: memlab.Lab, labels: Path | None, **options: Any) -> Told:
    """Where LAB lost what was wanted: never stored, not in the pool, ranked out, or shown and unused.

    The file has a row for each wanted memory: decision or question, and memory_id or ref. Without it, what feedback
    calls a success was wanted.
    """
    result = memlab.failures(lab, None if labels is None else read_frame(labels), **options)
    return result.to_dict(), result.text(terminal_width())


def _options(function: Callable[..., Told]) -> Callable[..., Told]:
    """Give a command what every bench takes."""
    packs = click.option(
        "--packs", multiple=True, help="A pack's name or .hy file; repeat it. Default: all of them."
    )
    limit = click.option(
        "--limit", type=click.IntRange(20), default=20, show_default=True, help="Memories a recall."
    )
    return packs(limit(function))


_SHA256 = click.option("--sha256", default="", help="Refuse data of another SHA-256 than this.")


@command(bench)
@click.argument("path", type=_PATH, required=False)
@click.option(
    "--evidence",
    type=(str, _PATH),
    multiple=True,
    metavar="NAME FILE",
    help="Other labels to judge by too.",
)
@click.option(
    "--download", is_flag=True, help="Fetch the original file to PATH and check its hash."
)
@_SHA256
@_options
def locomo(
    path: Path | None,
    evidence: tuple[tuple[str, Path], ...],
    download: bool,
    sha256: str,
    as_json: bool,
    **asked: Any,
) -> Told:
    """Rank the turns of LoCoMo-format conversations with every pack.

    --evidence corrected corrections.json judges the same rankings by those labels, beside the published ones.
    """
    from memlab.io.ingest import check_digest, correct_evidence, download_locomo, read_locomo

    if path is None and not download:
        raise click.UsageError(
            "Give the PATH of a LoCoMo file, or --download to fetch the original."
        )
    where = path or Path("locomo10.json")
    if download:
        download_locomo(where)
    digest = check_digest(where, sha256)
    read = read_locomo(where)
    labels = {name: correct_evidence(read, file) for name, file in evidence}
    return _rank(read, where, digest, as_json, labels=labels, **asked)


@command(bench)
@click.argument("folder", type=_PATH)
@click.option(
    "--dynamics",
    is_flag=True,
    help="Live the chats: linking, upkeep; what is outdated, and still shown?",
)
@_SHA256
@_options
def beam(folder: Path, dynamics: bool, sha256: str, as_json: bool, **asked: Any) -> Told:
    """Rank the messages of BEAM's chats (FOLDER/1/chat.json, ...) with every pack, by ability."""
    from memlab.io.ingest import check_digest, read_beam
    from memlab.science.bench import bench_dynamics

    how = {"bench": bench_dynamics} if dynamics else {"unit": "message"}
    return _rank(read_beam(folder), folder, check_digest(folder, sha256), as_json, **how, **asked)


@command(bench)
@click.argument("file", type=_PATH)
@_SHA256
@_options
def longmemeval(file: Path, sha256: str, as_json: bool, **asked: Any) -> Told:
    """Rank the turns of each of LongMemEval's haystacks with every pack, by type of question."""
    from memlab.io.ingest import check_digest, read_longmemeval

    digest = check_digest(file, sha256)
    return _rank(read_longmemeval(file), file, digest, as_json, **asked)


@command(bench)
@click.argument("folder", type=_PATH)
@_SHA256
@_options
def lmeb(folder: Path, sha256: str, as_json: bool, **asked: Any) -> Told:
    """Rank the candidates of LMEB's tasks below FOLDER with every pack, by task."""
    from memlab.io.ingest import check_digest, read_lmeb

    digest = check_digest(folder, sha256)
    return _rank(read_lmeb(folder), folder, digest, as_json, unit="document", **asked)


@command(bench, name="lab")
@click.argument("lab", type=_PATH)
@click.argument("labels", type=_PATH)
@_options
def bench_own(lab: Path, labels: Path, as_json: bool, **asked: Any) -> Told:
    """Rank the memories of LAB for the questions of LABELS, a .jsonl or .csv file, with every pack.

    A row has a question and what it wants: {"question": "Where is the key?", "wanted": [17]}, where wanted are ids,
    refs or texts of memories. LAB is read only.
    """
    from memlab.io.ingest import read_questions
    from memlab.science.bench import bench_lab

    return _show(partial(bench_lab, lab, read_questions(labels)), as_json, **asked)


def _rank(
    read: tuple[LabelledConversation, ...],
    where: Path,
    digest: str,
    as_json: bool,
    *,
    bench: Callable[..., BenchResult | DynamicsResult] | None = None,
    packs: tuple[str, ...],
    limit: int,
    **more: Any,
) -> Told:
    from memlab.science.bench import bench_conversations

    run = partial(
        bench or bench_conversations, read, dataset=where.resolve().stem, sha256=digest, **more
    )
    return _show(run, as_json, packs, limit)


def _show(
    bench: Callable[..., BenchResult | DynamicsResult],
    as_json: bool,
    packs: tuple[str, ...],
    limit: int,
) -> Told:
    result = bench(packs=packs or None, limit=limit, progress=not as_json and sys.stderr.isatty())
    return result.to_dict(), repr(result)
