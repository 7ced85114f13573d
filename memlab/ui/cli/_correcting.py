"""Correcting a lab: edit, deprecate, delete, restore, purge, and backups."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.ui.cli._base import LAB, as_json_option, existing, main, taken_out, tell
from memlab.ui.cli._input import LocalPath, Text

MEMORIES = click.argument("memories", type=int, nargs=-1)


@main.command()
@LAB
@click.argument("memory", type=int)
@click.option("--text", type=Text(), help="Its new words (- for standard input): a new memory supersedes it.")
@click.option("--tag", "tags", multiple=True, help="Its tags, in place of those it has.")
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE", help="Any field; VALUE as JSON, or a word.")
@as_json_option
def edit(lab: Path, memory: int, text: str | None, tags: tuple[str, ...], sets: tuple[str, ...], as_json: bool) -> None:
    """Correct MEMORY in LAB.

    memlab edit a.memlab 3 --set importance=0.9 --set pinned=true --set project=null
    """
    fields: dict[str, Any] = {"tags": list(tags)} if tags else {}
    for given in sets:
        name, sign, value = given.partition("=")
        if not sign:
            raise click.UsageError(f"--set takes FIELD=VALUE, not {given!r}.")
        fields[name] = _value(value)
    with existing(lab) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", memlab.RedactionWarning)  # said below
        edited = opened.edit(memory, text=text, **fields)
    told = {name: list(getattr(edited, name)) for name in ("rebuilt", "dropped", "notes")}
    report = {"id": edited.id, "text": edited.text, "supersedes": memory if edited.id != memory else None, **told}
    made = f" supersedes #{memory}" if edited.id != memory else " is changed"
    lines = [f"#{edited.id}{made}: {edited.text}", *taken_out(edited), *(f"  {note}" for note in edited.notes)]
    tell(report, as_json=as_json, text=lambda: "\n".join(lines))


@main.command()
@LAB
@click.argument("memory", type=int)
@click.argument("reason", type=Text())
@as_json_option
def deprecate(lab: Path, memory: int, reason: str, as_json: bool) -> None:
    """Flag MEMORY as wrong for REASON: it leaves recall; what it supersedes or was superseded by is listed."""
    with existing(lab) as opened:
        done = opened.review.deprecate(memory, reason)
    _report(done, as_json)


@main.command()
@LAB
@MEMORIES
@click.option("--project", help="All memories of this project.")
@as_json_option
def delete(lab: Path, memories: tuple[int, ...], project: str | None, as_json: bool) -> None:
    """Delete MEMORIES, or all of a project. `undelete` brings them back while `grace-days` last."""
    with existing(lab) as opened:
        done = opened.delete(memories or None, project=project)
    _report(done, as_json)


@main.command()
@LAB
@MEMORIES
@click.option("--project", help="All that is deleted of this project.")
@as_json_option
def undelete(lab: Path, memories: tuple[int, ...], project: str | None, as_json: bool) -> None:
    """Bring MEMORIES back that were forgotten, deprecated, deleted or summarised (by the number of the summary)."""
    with existing(lab) as opened:
        done = opened.restore(memories or None, project=project)
    _report(done, as_json)


@main.command()
@LAB
@MEMORIES
@click.option("--project", help="All memories of this project.")
@click.option("--session", help="All of this session.")
@click.option("--subject", help="All that is known of this entity, under all its names.")
@click.option("--creator", help="All that this user or agent wrote.")
@click.option("--overdue", is_flag=True, help="What was deleted for longer than `grace-days`.")
@click.option("--remove-exports", is_flag=True, help="Also remove known exports that hold something of it.")
@click.option("--reason", default="", help="Kept in the journal.")
@click.option("--yes", is_flag=True, help="Do it: nothing brings back what was purged.")
@as_json_option
def purge(
    lab: Path,
    memories: tuple[int, ...],
    project: str | None,
    session: str | None,
    subject: str | None,
    creator: str | None,
    overdue: bool,
    remove_exports: bool,
    reason: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove MEMORIES for good from the journal and every file made of it, and print a receipt.

    Backups and mirrors are reached, exports are named. --project, --session, --subject and --creator narrow each other.
    """
    if not yes:
        raise memlab.InputError("What is purged cannot be brought back. Say so with --yes, or use: memlab delete.")
    names = {"project": project, "session": session, "subject": subject, "creator": creator}
    with existing(lab) as opened:
        done = opened.purge(memories or None, **names, overdue=overdue, remove_exports=remove_exports, reason=reason)
    review = done.review.to_dicts()
    report = {
        "purged": list(done.ids),
        "events": done.events,
        "slates": done.slates,
        "questions": done.questions,
        "receipt": done.frame.to_dicts(),
        "review": review,
    }
    tell(report, as_json=as_json, text=lambda: "\n".join([str(done), *_review(review)]))


@main.command()
@LAB
@click.option("--folder", type=LocalPath(), help="Where to, instead of LAB/backups.")
@click.option("--keep", type=int, default=3, show_default=True, help="How many to keep there.")
@as_json_option
def backup(lab: Path, folder: Path | None, keep: int, as_json: bool) -> None:
    """Copy LAB as it is now; the copy opens as a lab."""
    with existing(lab) as opened:
        made = opened.io.backup(folder, keep=keep)
    report = {"path": str(made.path), "event": made.event, "size": made.size, "kept": made.frame.height}
    tell(report, as_json=as_json, text=lambda: f"{made.path} ({made.size:,} bytes, {made.frame.height} kept)")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _report(done: Corrected, as_json: bool) -> None:
    rows, review = done.frame.to_dicts(), done.review.to_dicts()
    lines = [f"#{row['memory_id']} is {row['status']} (was {row['before']})" for row in rows]
    report = {"changed": rows, "review": review}
    tell(report, as_json=as_json, text=lambda: "\n".join([*(lines or ["nothing to change"]), *_review(review)]))


def _review(rows: list[dict[str, Any]]) -> list[str]:
    return [f"review #{row['memory_id']} ({row['how']}: #{row['of']}) {row['text'][:80]}" for row in rows]
