"""Checking a lab's files, copying it, and putting a copy back."""

from __future__ import annotations

from pathlib import Path

import click

import memlab
from memlab.ui.cli._base import LAB, as_json_option, tell, upkeep
from memlab.ui.cli._input import LocalPath

__all__: list[str] = []


@upkeep.command()
@LAB
@click.option("--no-repair", is_flag=True, help="Say what is damaged, and change nothing.")
@as_json_option
@click.pass_context
def check(ctx: click.Context, lab: Path, no_repair: bool, as_json: bool) -> None:
    """Compare every file of LAB with what was written, and mend what a backup or the journal can give.

    Exit status 1 if something is damaged or lost.
    """
    found = memlab.check(lab, repair=not no_repair)
    rows = found.frame.to_dicts()
    lines = [f"{row['state']:9} {row['file']}: {row['part']} {row['detail']}".rstrip() for row in rows]
    verdict = (
        "sound"
        if found.sound
        else "not whole: `memlab upkeep restore` puts a backup in place, or settles what is there"
    )
    tell({"sound": found.sound, "parts": rows}, as_json=as_json, text=lambda: "\n".join([*lines, verdict]))
    if not found.sound:
        ctx.exit(1)


@upkeep.command()
@LAB
@click.argument("backup", required=False, type=LocalPath())
@as_json_option
def restore(lab: Path, backup: Path | None, as_json: bool) -> None:
    """Put BACKUP in the place of LAB's journal, or what holds the most of it: its own journal, or a backup.

    What was in its place is kept below LAB. Memories that were deleted come back with `undelete`.
    """
    done = memlab.restore(lab, backup)
    report = {**done.frame.to_dicts()[0]}
    tell(report, as_json=as_json, text=lambda: repr(done)[1:-1])
