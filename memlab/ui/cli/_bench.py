"""`memlab bench`: packs on labelled questions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlab.ui.cli._base import LAB, F, as_json_option, main, tell
from memlab.ui.cli._input import LocalPath

if TYPE_CHECKING:
    from memlab.io.ingest import LabelledConversation
    from memlab.science.bench import BenchResult, DynamicsResult

_PATH = LocalPath()


def _options(command: F) -> F:
    """What every bench takes."""
    for option in reversed(
        (
            click.option("--packs", multiple=True, help="A pack's name or .hy file; repeat it. Default: all of them."),
            click.option("--limit", type=click.IntRange(20), default=20, show_default=True, help="Memories a recall."),
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
def bench_own(lab: Path, labels: Path, packs: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Rank the memories of LAB for the questions of LABELS, a .jsonl or .csv file, with every pack.

    A row has a question and what it wants: {"question": "Where is the key?", "wanted": [17]}, where wanted are ids,
    refs or texts of memories. LAB is read only.
    """
    from memlab.io.ingest import read_questions
    from memlab.science.bench import bench_lab

    _show(partial(bench_lab, lab, read_questions(labels), packs=packs or None, limit=limit), as_json=as_json)


def _rank(
    read: tuple[LabelledConversation, ...],
    where: Path,
    digest: str,
    *,
    bench: Callable[..., BenchResult | DynamicsResult] | None = None,
    packs: tuple[str, ...],
    limit: int,
    as_json: bool,
    **more: Any,
) -> None:
    from memlab.science.bench import bench_conversations

    run = partial(bench or bench_conversations, read, dataset=where.resolve().stem, sha256=digest, **more)
    _show(partial(run, packs=packs or None, limit=limit), as_json=as_json)


def _show(bench: Callable[..., BenchResult | DynamicsResult], *, as_json: bool) -> None:
    result = bench(progress=not as_json and sys.stderr.isatty())
    tell(result.to_dict(), as_json=as_json, text=lambda: repr(result))
