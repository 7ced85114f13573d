"""Commands on the memories of a lab: load, remember, recall, correct, remove."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import polars as pl

import memlab
from memlab.kernel.schema import KINDS, SOURCES, normalise_word
from memlab.kernel.state import normalize_tag
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.subjects.review.review import Quarantined
from memlab.ui.cli._base import (
    InputFile,
    Report,
    Text,
    Word,
    command,
    get_fields,
    keep,
    main,
    make,
    open_existing,
    parse_value,
    print_report,
    read,
    write,
    write_if,
)

# Changed memories that a quarantine lists; more would hide the command that undoes it.
_MAX_LINES = 20
# The class whose verbs the commands call.
_LAB = "memlab.subjects.lab:Lab"
MEMORIES = click.argument("memories", type=int, nargs=-1)


@command(
    main,
    make,
    verb=f"{_LAB}.load",
    options={
        "format": "Format of the files. Default: detected from the contents.",
        "project": "Project of all memories.",
        "session": "Session of memories that have none in the file.",
        "policies": "Also use the pack of an export.",
        "strict": "Stop at the first line that cannot be read.",
        "extract": "Also store the facts and observations found in the messages.",
        "seconds": "Stop reading after so many seconds; what was read is stored.",
    },
)
@click.argument("files", type=InputFile(), nargs=-1, required=True)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Column to read a field from, such as text=body. at= with no column ignores times.",
)
@click.option(
    "--linking",
    type=click.Choice(["off", "corrections", "now", "later"]),
    help="When to compare new memories with stored ones. Default: set by the pack.",
)
def load(
    lab: memlab.Lab,
    files: tuple[Path, ...],
    columns: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Add the contents of FILES to LAB.

    FILES are chats, transcripts, tables, exports, or folders of them; - is standard input. Memories that LAB
    already has are not added again. LAB is created if it does not exist.

    Example: memlab load my.memlab conversations.json
    """
    parts = [column.partition("=") for column in columns]
    options["columns"] = {field: column or None for field, _, column in parts}
    for file in files:
        loaded = lab.load(file, **options)
        counts = {what: loaded.count(what) for what in ("added", "known", "purged", "skipped")}
        report = get_fields(
            loaded, "source", "edges", "extracted", "registers", "left_out", why_skipped="skipped"
        )
        report |= {**counts, "redacted": len(loaded.redacted), "guessed": loaded.guessed.rows()}
        print_report((report, loaded), as_json=as_json)


@command(
    main,
    make,
    verb=f"{_LAB}.remember",
    options={"at": "When it was said, in ISO 8601. Default: now."},
)
@click.argument("text", type=Text())
@click.option(
    "--kind",
    default="fact",
    show_default=True,
    help="Kind of the new memory, such as note or preference.",
)
@click.option("--project", help="Project of the new memory.")
@click.option("--session", help="Session in which the new memory was said.")
@click.option("--speaker", help="Who said the text of the new memory, such as user.")
@click.option("--tag", "tags", multiple=True, help="Tag of the new memory; may be repeated.")
@click.option(
    "--importance", type=float, help="Importance of the new memory, from 0 to 1. Default: 0.5."
)
def remember(lab: memlab.Lab, text: str, tags: tuple[str, ...], **fields: Any) -> Report:
    """Store TEXT as a memory in LAB.

    - reads standard input. LAB is created if it does not exist.

    Example: memlab remember my.memlab "I prefer tea" --kind preference
    """
    fields = {name: value for name, value in fields.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", memlab.RedactionWarning)  # reported below
        memory = lab.remember(text, tags=list(tags) or None, **fields)
    return get_fields(memory, "id", "text", "redacted"), [
        f"#{memory.id} {memory.text}",
        *_format_redactions(memory),
    ]


def _format_redactions(memory: memlab.Memory) -> list[str]:
    """Return a line that lists the secrets removed from a memory, if any."""
    return (
        [f"removed before it was stored: {', '.join(memory.redacted)}"] if memory.redacted else []
    )


def _open_with_pack(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab; with --pack, open a copy in memory with this pack."""
    pack = options["pack"]
    if pack is None:
        return open_existing(path)
    open_existing(path, read_only=True).close()
    copy = memlab.load(path, policies=False)
    copy.policies.use(pack)
    return copy


@command(
    main,
    _open_with_pack,
    verb=f"{_LAB}.recall",
    options={
        "limit": "Maximum number of memories. Default: set by the pack.",
        "project": "Only memories of this project or no project.",
        "session": "Session of the query.",
        "at": "Time of the query in ISO 8601. Default: now.",
    },
)
@click.argument("query", type=Text())
@click.option(
    "--pack",
    help="Use this pack (a name or a .hy file) for this recall only; nothing is logged.",
)
@click.option("--explain", is_flag=True, help="Show the terms of each score.")
@click.option("--explore", is_flag=True, help="May also show an exploration item of the pack.")
def recall(
    lab: memlab.Lab, query: str, pack: str | None, explain: bool, explore: bool, **options: Any
) -> Report:
    """Show the memories of LAB that rank highest for QUERY.

    - reads standard input. The recall is logged, unless --pack is given.

    Example: memlab recall my.memlab "Where does Ada live?" --limit 5
    """
    hits = lab.recall(query, log=pack is None, explore=explore or None, **options)
    explanations = [hit.explain() for hit in hits] if explain else []
    rows = [get_fields(hit, "rank", "id", "score", "text", "ref", "created") for hit in hits]
    for row, explanation in zip(rows, explanations, strict=False):
        row["terms"] = explanation.frame.to_dicts()
    summary = {
        "decision": hits.decision,
        "pack": hits.pack.name,
        "hash": hits.pack.hash,
        "known": hits.known,
        "confidence": hits.confidence,
        "weak": hits.weak,
        "probes": hits.probes,
    }
    prefix = "" if hits.decision is None else f"recall {hits.decision}: "
    return {**summary, "hits": rows}, [f"{prefix}{hits!r}", *map(repr, explanations)]


@command(
    main,
    keep,
    verb=f"{_LAB}.context",
    options={
        "budget": "Maximum number of tokens.",
        "session": "Session; it never receives a memory twice.",
        "project": "Only memories of this project or no project.",
        "viewer": "Viewer, such as agent:coder; memories private to others are omitted.",
        "again": "Include memories that the session has received.",
    },
)
@click.argument("task", type=Text())
@click.option(
    "--file", "files", multiple=True, help="File that the task is about; may be repeated."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "messages", "json"]),
    default="text",
    show_default=True,
    help="Format of the output; json also lists omitted memories.",
)
def context(lab: memlab.Lab, task: str, form: str, as_json: bool, **options: Any) -> Report:
    """Build a prompt context for TASK from the memories of LAB.

    - reads standard input. The text has at most --budget tokens.

    Example: memlab context my.memlab "fix the login" --file src/auth.py
    """
    prompt = lab.context(task, **options)
    if form == "messages" and not as_json:
        print_report((prompt.messages(), ""), as_json=True)
        return None
    attributes = ("text", "tokens", "budget", "decision", "left_out", "pack", "seed", "settings")
    report = get_fields(prompt, *attributes, memories="frame", hash="pack_hash")
    if form == "json":
        print_report((report, ""), as_json=True)
        return None
    if not as_json and not len(prompt):
        return None
    return report, prompt.markdown if form == "markdown" else prompt.text


@command(
    main,
    write,
    verb=f"{_LAB}.feedback",
    options={
        "decision": "Number of the recall, from `memlab recall`. Default: the last one with the memory."
    },
)
@click.argument("memory", type=int)
@click.argument("outcome", type=click.Choice(["success", "fail"]))
def feedback(lab: memlab.Lab, memory: int, outcome: str, decision: int | None) -> Report:
    """Record whether MEMORY was helpful.

    OUTCOME is success or fail.

    Example: memlab feedback my.memlab 3 success
    """
    logged = lab.feedback(memory, outcome, decision=decision)
    report = get_fields(logged, "event", "decision") | {"memory": memory, "outcome": outcome}
    source = "no recall" if logged.decision is None else f"recall {logged.decision}"
    return report, f"#{memory} {outcome}: event {logged.event}, for {source}"


@command(main, read)
@click.argument("memory", type=int, required=False)
@click.option("--kind", help="List only memories of this kind.")
@click.option("--project", help="List only memories of this project.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Only memories with this tag; repeat for several tags, which must all be present.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Number of memories to list.",
)
def show(lab: memlab.Lab, memory: int | None, **filters: Any) -> Report:
    """Show MEMORY of LAB with all its fields, or list the newest memories.

    Example: memlab show my.memlab 3
    """
    if memory is None:
        return _list_newest(lab.memories, **filters)
    row = lab.memories.row(lab[memory].id - 1, named=True)
    chain = lab.upkeep.review.provenance(memory).to_dicts()
    lines = [f"{name:<17} {value}" for name, value in row.items()]
    for entry in chain[1:] and chain:
        words = [
            f"{name} {value}"
            for name, value in entry.items()
            if value is not None and name not in ("how", "at")
        ]
        lines.append(f"{entry['how']:<17} {entry['at']:%Y-%m-%d %H:%M} {', '.join(words)}")
    return row | {"provenance_chain": chain}, lines


def _list_newest(
    frame: pl.DataFrame, kind: str | None, project: str | None, tags: tuple[str, ...], limit: int
) -> Report:
    """Return at most ``limit`` of the newest memories that satisfy the filters, the newest last."""
    if kind is not None:
        frame = frame.filter(pl.col("kind") == normalise_word(kind, KINDS))
    if project is not None:
        frame = frame.filter(pl.col("project") == project)
    for tag in tags:
        frame = frame.filter(pl.col("tags").list.contains(normalize_tag(tag)))
    rows = frame.tail(limit).to_dicts()
    return rows, [f"#{row['id']:<6} {row['kind']:<12} {row['text'][:100]}" for row in rows]


# -- correct and remove ---------------------------------------------------------------------------------------------


@command(main, write)
@click.argument("memory", type=int)
@click.option(
    "--text",
    type=Text(),
    help="New text (- for standard input), in a memory that supersedes this one.",
)
@click.option(
    "--tag", "tags", multiple=True, help="New tags, which replace all others; may be repeated."
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Set a field of the memory other than its text; VALUE is JSON or a word. May be repeated.",
)
def edit(
    lab: memlab.Lab, memory: int, text: str | None, tags: tuple[str, ...], sets: tuple[str, ...]
) -> Report:
    """Correct MEMORY in LAB.

    A new text creates a memory that supersedes it. Other fields are changed in place.

    Example: memlab edit my.memlab 3 --set importance=0.9 --set project=null
    """
    fields: dict[str, Any] = {"tags": list(tags)} if tags else {}
    for pair in sets:
        name, sign, value = pair.partition("=")
        if not sign:
            raise click.UsageError(f"--set needs FIELD=VALUE, not {pair!r}.")
        if name in ("memory", "text"):
            raise click.UsageError(f"--set cannot set {name}. Use --text for a new text.")
        fields[name] = parse_value(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", memlab.RedactionWarning)  # reported below
        edited = lab.edit(memory, text=text, **fields)
    new = edited.id != memory
    report = get_fields(edited, "id", "text", "rebuilt", "dropped", "notes") | {
        "supersedes": memory if new else None
    }
    change = f" supersedes #{memory}" if new else " is changed"
    notes = [f"  {note}" for note in edited.notes]
    return report, [f"#{edited.id}{change}: {edited.text}", *_format_redactions(edited), *notes]


@command(
    main,
    write_if("dry_run", value=False),
    verb=f"{_LAB}.forget",
    options={"how": "Way of forgetting; see above."},
)
@MEMORIES
@click.option("--project", help="With --how delete: all memories of this project.")
@click.option(
    "--reason",
    type=Text(),
    default="",
    help="Reason for the change; required to deprecate.",
)
@click.option("--source", type=Word(SOURCES), help="Quarantine memories from this kind of source.")
@click.option("--session", help="Quarantine memories from this session.")
@click.option("--creator", help="Quarantine memories of this user or agent, such as agent:coder.")
@click.option("--since", help="Quarantine memories written since this time, such as 2026-11-01.")
@click.option("--dry-run", is_flag=True, help="Show what a quarantine would do, and write nothing.")
@click.option(
    "--replay",
    type=int,
    help="Number of past recalls to repeat, to show how a quarantine changes their results. "
    "Default: 100.",
)
def forget(
    lab: memlab.Lab, memories: tuple[int, ...], how: Any, as_json: bool, **arguments: Any
) -> Report:
    """Exclude MEMORIES of LAB, and their edits, from recall.

    With --how delete, they are hidden from every read, and `memlab purge --overdue` removes them after `grace-days`.
    With --how deprecate, they are marked as wrong, for a --reason. With --how quarantine, everything from a source,
    session or creator is excluded.

    `memlab restore` undoes each of these.

    Example: memlab forget my.memlab --how quarantine --session "web 17" --dry-run
    """
    # wrong combinations are refused here, in terms of the options instead of the verb's arguments
    quarantines = how == "quarantine"
    if quarantines and not any(
        arguments[name] is not None for name in ("source", "session", "creator")
    ):
        raise click.UsageError("A quarantine needs one of --source, --session and --creator.")
    if how in ("forget", "deprecate") and not memories:
        raise click.UsageError("Give the ids of MEMORIES.")
    if how == "deprecate" and not arguments["reason"]:
        raise click.UsageError("Give a reason: --reason TEXT.")
    options = {name: value for name, value in arguments.items() if value not in (None, "", False)}
    if quarantines:
        options["progress"] = not as_json
    done = lab.forget(memories or None, how=how, **options)
    if isinstance(done, Quarantined):
        return _report_quarantine(done)
    if how != "forget":
        return _report_correction(done)
    edits = ", ".join(f"#{id}" for id in done.ids if id not in memories)
    text = ", ".join(f"#{id} is forgotten" for id in memories)
    report = {"id": memories[0], "ids": list(done.ids), "status": "forgotten"}
    return report, text + (f", with its corrections {edits}" if edits else "")


@command(main, write)
@MEMORIES
@click.option("--project", help="Restore all deleted memories of this project.")
@click.option(
    "--quarantine",
    type=int,
    metavar="EVENT",
    help="Restore all memories of the quarantine with this event number.",
)
def restore(lab: memlab.Lab, memories: tuple[int, ...], **options: Any) -> Report:
    """Restore MEMORIES that were forgotten, deprecated, deleted or summarised.

    A summary's number restores the memories that it replaced. `memlab upkeep restore` restores a backup of the files.

    Example: memlab restore my.memlab 3 7
    """
    return _report_correction(lab.restore(memories or None, **options))


def _open_for_purge(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab for a purge, or raise InputError if --yes is missing."""
    if not options["yes"]:
        raise memlab.InputError(
            "Purged memories cannot be restored. Confirm with --yes, or use: memlab forget --how delete."
        )
    return open_existing(path)


@command(
    main,
    _open_for_purge,
    verb=f"{_LAB}.purge",
    options={
        "project": "All memories of this project.",
        "session": "All memories of this session.",
        "subject": "All memories about this entity, under all its names.",
        "creator": "All memories of this user or agent.",
        "overdue": "Memories deleted for longer than the setting `grace-days`.",
        "remove_exports": "Also remove known exports that contain purged text.",
        "reason": "Reason, which the journal keeps.",
    },
)
@MEMORIES
@click.option("--yes", is_flag=True, help="Confirm the purge. Purged memories cannot be restored.")
def purge(lab: memlab.Lab, memories: tuple[int, ...], yes: bool, **options: Any) -> Report:
    """Remove MEMORIES permanently from all files of LAB, and print a receipt.

    Backups and mirrors are cleaned, too; exports are listed. Several of --project, --session, --subject and
    --creator must all apply to a memory.

    Example: memlab purge my.memlab 3 --reason "asked by the user" --yes
    """
    done = lab.purge(memories or None, **options)
    report = get_fields(
        done, "events", "slates", "questions", "review", purged="ids", receipt="frame"
    )
    return report, [str(done), *_format_reviews(report["review"])]


def _report_correction(done: Corrected) -> Report:
    """Build the report of a correction: the changed memories, and memories that need review."""
    report = get_fields(done, "review", changed="frame")
    lines = _format_statuses(report["changed"]) or ["nothing to change"]
    return report, lines + _format_reviews(report["review"])


def _format_statuses(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each memory whose status changed."""
    return [f"#{row['memory_id']} is {row['status']} (was {row['before']})" for row in rows]


def _format_reviews(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each memory that needs review."""
    return [
        f"review #{row['memory_id']} ({row['how']}: #{row['of']}) {row['text'][:80]}"
        for row in rows
    ]


def _report_quarantine(done: Quarantined) -> Report:
    """Build the report of a quarantine, with the command that undoes it."""
    names = {"quarantined": "ids", "changed": "frame", "review": "derived"}
    report = get_fields(done, "event", "back", "shown", "replay", **names)
    lines = _format_statuses(report["changed"])
    lines += [
        f"review #{row['memory_id']} ({row['how']}: #{row['of']})" for row in report["review"]
    ]
    more = len(lines) - _MAX_LINES
    lines = lines[:_MAX_LINES] + ([f"... and {more:,} more"] if more > 0 else [])
    undo = [] if done.event is None else [f"undo: memlab restore LAB --quarantine {done.event}"]
    return report, [repr(done)[1:-1], *lines, *undo]
