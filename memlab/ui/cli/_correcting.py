"""Correcting a lab: edit, deprecate, delete, restore, purge, and backups."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.kernel.schema import SOURCES
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.subjects.review.review import Quarantined
from memlab.ui.cli._base import LAB, Word, as_json_option, existing, main, taken_out, tell, upkeep
from memlab.ui.cli._input import LocalPath, Text

_SHOWN = 20
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
@MEMORIES
@click.option("--how", type=click.Choice(["forget", "delete", "deprecate", "quarantine"]), default="forget")
@click.option("--project", help="Delete all memories of this project.")
@click.option("--reason", type=Text(), default="", help="Why; a deprecation needs it, a quarantine may have it.")
@click.option("--source", type=Word(SOURCES), help="Quarantine what was learned from this.")
@click.option("--session", help="Quarantine what came from this session or conversation.")
@click.option("--creator", help="Quarantine what this user or agent wrote: agent:coder, ...")
@click.option("--since", help="Quarantine what was written at this time or later, such as 2026-11-01.")
@click.option("--dry-run", is_flag=True, help="Say what a quarantine would do, and write nothing.")
@click.option("--replay", type=int, help="How many recalls a quarantine asks again. Default: 100.")
@as_json_option
def forget(lab: Path, memories: tuple[int, ...], how: Any, as_json: bool, **given: Any) -> None:
    """Take MEMORIES of LAB, with their corrections, out of every recall; `restore` brings them back.

    --how delete: due to be purged once `grace-days` are over. --how deprecate: wrong, for a REASON. --how quarantine:
    what came from a source, session or creator.

    memlab forget a.memlab --how quarantine --session "web 17" --since 2026-11-01 --dry-run
    """
    quarantines = how == "quarantine"
    if quarantines and not any(given[name] is not None for name in ("source", "session", "creator")):
        raise click.UsageError("Say what came from where: one of --source, --session and --creator is needed.")
    if how in ("forget", "deprecate") and not memories:
        raise click.UsageError("Say which MEMORIES, by their ids.")
    if how == "deprecate" and not given["reason"]:
        raise click.UsageError("Say why: --reason.")
    asked = {name: value for name, value in given.items() if value not in (None, "", False)}
    if quarantines:
        asked["progress"] = not as_json
    with existing(lab, read_only=given["dry_run"]) as opened:
        done = opened.forget(memories or None, how=how, **asked)
    if isinstance(done, Quarantined):
        _tell_quarantined(done, as_json=as_json)
    elif how != "forget":
        _report(done, as_json)
    else:
        also = ", ".join(f"#{id}" for id in done.ids if id not in memories)
        report = {"id": memories[0], "ids": list(done.ids), "status": "forgotten"}
        named = ", ".join(f"#{id} is forgotten" for id in memories)
        tell(report, as_json=as_json, text=lambda: named + (f", with its corrections {also}" if also else ""))


@main.command()
@LAB
@MEMORIES
@click.option("--project", help="All that is deleted of this project.")
@click.option("--quarantine", type=int, metavar="EVENT", help="All that the quarantine of this event took.")
@as_json_option
def restore(lab: Path, memories: tuple[int, ...], project: str | None, quarantine: int | None, as_json: bool) -> None:
    """Bring MEMORIES back that were forgotten, deprecated, deleted or summarised (by the number of the summary).

    A backup of the lab's files is put in place by `memlab upkeep restore`.
    """
    with existing(lab) as opened:
        done = opened.restore(memories or None, project=project, quarantine=quarantine)
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
        raise memlab.InputError(
            "What is purged cannot be brought back. Say so with --yes, or use: memlab forget --how delete."
        )
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


@upkeep.command()
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


def _tell_quarantined(done: Quarantined, *, as_json: bool) -> None:
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


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [f"#{row['memory_id']} is {row['status']} (was {row['before']})" for row in report["changed"]]
    lines += [f"review #{row['memory_id']} ({row['how']}: #{row['of']})" for row in report["review"]]
    more = len(lines) - _SHOWN
    undo = [f"undo: memlab restore LAB --quarantine {report['event']}"] if report["event"] is not None else []
    return [*lines[:_SHOWN], *([f"... and {more:,} more"] if more > 0 else []), *undo]
