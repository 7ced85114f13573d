"""Quarantine: what came from one place out of recall, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memlab.kernel.schema import SOURCES
from memlab.ui.cli._base import LAB, Word, as_json_option, existing, main, tell

_SHOWN = 20


@main.command()
@LAB
@click.option("--source", type=Word(SOURCES), help="What it was learned from.")
@click.option("--session", help="The session or conversation that it came from.")
@click.option("--creator", help="Who wrote it: agent:coder, ...")
@click.option("--since", help="Written at this time or later, such as 2026-11-01.")
@click.option("--reason", default="", help="Kept in the journal.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--replay", type=int, default=100, show_default=True, help="How many recalls are asked again.")
@as_json_option
def quarantine(
    lab: Path,
    source: str | None,
    session: str | None,
    creator: str | None,
    since: str | None,
    reason: str,
    dry_run: bool,
    replay: int,
    as_json: bool,
) -> None:
    """Take what came from a source, session or creator out of recall; `release` undoes it.

    memlab quarantine a.memlab --session "web 17" --since 2026-11-01 --dry-run
    """
    if source is None and session is None and creator is None:
        raise click.UsageError("Say what came from where: one of --source, --session and --creator is needed.")
    with existing(lab, read_only=dry_run) as opened:
        done = opened.review.quarantine(
            source=source,
            session=session,
            creator=creator,
            since=since,
            reason=reason,
            dry_run=dry_run,
            replay=replay,
            progress=not as_json,
        )
    report = {
        "event": done.event,
        "quarantined": list(done.ids),
        "back": list(done.back),
        "changed": done.frame.to_dicts(),
        "shown": done.shown.to_dicts(),
        "replay": done.replay.to_dicts(),
        "review": done.derived.to_dicts(),
    }
    tell(report, as_json=as_json, text=lambda: "\n".join([repr(done)[1:-1], *_lines(report)]))


@main.command()
@LAB
@click.argument("event", type=int)
@as_json_option
def release(lab: Path, event: int, as_json: bool) -> None:
    """Undo the quarantine of EVENT in LAB: each memory is what it was before."""
    with existing(lab) as opened:
        rows = opened.review.release(event).frame.to_dicts()
    lines = [f"#{row['memory_id']} is {row['status']} (was {row['before']})" for row in rows]
    tell({"changed": rows}, as_json=as_json, text=lambda: "\n".join(lines or ["nothing to change"]))


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [f"#{row['memory_id']} is {row['status']} (was {row['before']})" for row in report["changed"]]
    lines += [f"review #{row['memory_id']} ({row['how']}: #{row['of']})" for row in report["review"]]
    more = len(lines) - _SHOWN
    undo = [f"undo: memlab release LAB {report['event']}"] if report["event"] is not None else []
    return [*lines[:_SHOWN], *([f"... and {more:,} more"] if more > 0 else []), *undo]
