"""Memories of one lab: load, remember, recall, look, give feedback, correct, remove, restore."""

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
    Text,
    Told,
    Word,
    command,
    existing,
    fields_of,
    keep,
    main,
    make,
    read,
    tell,
    value_of,
    write,
    write_if,
)

_SHOWN = 20
_LAB = "memlab.subjects.lab:Lab"
MEMORIES = click.argument("memories", type=int, nargs=-1)


@command(
    main,
    make,
    verb=f"{_LAB}.load",
    options={
        "format": "Else it is guessed; see: memlab.load.",
        "project": "Give this project to all of them.",
        "session": "The session of what names none.",
        "policies": "Use the pack of an export as well.",
        "strict": "Stop at the first line that cannot be read.",
        "extract": "Also store the facts and observations found in the messages.",
    },
)
@click.argument("files", type=InputFile(), nargs=-1, required=True)
@click.option(
    "--column", "columns", multiple=True, metavar="FIELD=COLUMN", help="text=body; at= for no time."
)
@click.option(
    "--linking", type=click.Choice(["off", "now", "later"]), help="Else the pack says it."
)
def load(
    lab: memlab.Lab,
    files: tuple[Path, ...],
    columns: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Add to LAB, which is made if it is new, what FILES (- for standard input) hold.

    They are chats, transcripts, tables, exports, or folders of them.
    """
    parts = [one.partition("=") for one in columns]
    options["columns"] = {field: column or None for field, _, column in parts}
    for file in files:
        loaded = lab.load(file, **options)
        counts = {what: loaded.count(what) for what in ("added", "known", "purged", "skipped")}
        report = fields_of(
            loaded, "source", "edges", "extracted", "registers", "left_out", why_skipped="skipped"
        )
        report |= {**counts, "redacted": len(loaded.redacted), "guessed": loaded.guessed.rows()}
        tell((report, loaded), as_json=as_json)


@command(
    main,
    make,
    verb=f"{_LAB}.remember",
    options={"at": "When it was said, as an ISO time. Default: now."},
)
@click.argument("text", type=Text())
@click.option("--kind", default="fact", show_default=True)
@click.option("--project")
@click.option("--session")
@click.option("--speaker")
@click.option("--tag", "tags", multiple=True)
@click.option("--importance", type=float)
def remember(lab: memlab.Lab, text: str, tags: tuple[str, ...], **fields: Any) -> Told:
    """Remember TEXT (- for standard input) in LAB, which is made if it is new."""
    given = {name: value for name, value in fields.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", memlab.RedactionWarning)  # said below
        memory = lab.remember(text, tags=list(tags) or None, **given)
    return fields_of(memory, "id", "text", "redacted"), [
        f"#{memory.id} {memory.text}",
        *_taken_out(memory),
    ]


def _taken_out(memory: memlab.Memory) -> list[str]:
    """Return a line that says what was taken out of a memory before it was stored; none if nothing was."""
    return (
        [f"taken out before it was stored: {', '.join(memory.redacted)}"] if memory.redacted else []
    )


def _under(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab, or with another pack a copy of it in memory, of which that pack is live."""
    pack = options["pack"]
    if pack is None:
        return existing(path)
    existing(path, read_only=True).close()
    copy = memlab.load(path, policies=False)
    copy.policies.use(pack)
    return copy


@command(
    main,
    _under,
    verb=f"{_LAB}.recall",
    options={
        "limit": "",
        "project": "",
        "session": "",
        "at": "When it is asked, as an ISO time. Default: now.",
    },
)
@click.argument("query", type=Text())
@click.option(
    "--pack",
    help="Ask under this pack (a name or a .hy file) without making it live; nothing is logged.",
)
@click.option("--explain", is_flag=True, help="Show the terms of each score.")
def recall(lab: memlab.Lab, query: str, pack: str | None, explain: bool, **options: Any) -> Told:
    """The memories of LAB that its live pack puts first for QUERY (- for standard input)."""
    hits = lab.recall(query, log=pack is None, **options)
    explanations = [hit.explain() for hit in hits] if explain else []
    rows = [fields_of(hit, "rank", "id", "score", "text", "ref") for hit in hits]
    for row, explanation in zip(rows, explanations, strict=False):
        row["terms"] = [{"term": term, "value": value} for term, value in explanation.terms]
    about = {
        "decision": hits.decision,
        "pack": hits.pack.name,
        "hash": hits.pack.hash,
        "known": hits.known,
    }
    place = "" if hits.decision is None else f"recall {hits.decision}: "
    return {**about, "hits": rows}, [f"{place}{hits!r}", *map(repr, explanations)]


@command(
    main,
    keep,
    verb=f"{_LAB}.context",
    options={
        "budget": "Most tokens.",
        "session": "In a session nothing is given twice.",
        "project": "",
        "viewer": "Who asks, such as agent:coder: what others keep private is left out.",
    },
)
@click.argument("task", type=Text())
@click.option("--file", "files", multiple=True, help="A file at hand; may be given several times.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "messages", "json"]),
    default="text",
    show_default=True,
    help="json has all of it, and what was left out.",
)
def context(lab: memlab.Lab, task: str, form: str, as_json: bool, **options: Any) -> Told:
    """What an agent is to know for TASK (- for standard input), from LAB, as text for a prompt."""
    made = lab.context(task, **options)
    if form == "messages" and not as_json:
        tell((made.messages(), ""), as_json=True)
        return None
    numbers = ("text", "tokens", "budget", "decision", "left_out", "pack", "seed", "settings")
    report = fields_of(made, *numbers, memories="frame", hash="pack_hash")
    if form == "json":
        tell((report, ""), as_json=True)
        return None
    if not as_json and not len(made):
        return None
    return report, made.markdown if form == "markdown" else made.text


@command(
    main,
    write,
    verb=f"{_LAB}.feedback",
    options={
        "decision": "The recall that showed it, as `memlab recall` prints. Default: the last."
    },
)
@click.argument("memory", type=int)
@click.argument("outcome", type=click.Choice(["success", "fail"]))
def feedback(lab: memlab.Lab, memory: int, outcome: str, decision: int | None) -> Told:
    """Log how MEMORY did."""
    logged = lab.feedback(memory, outcome, decision=decision)
    report = fields_of(logged, "event", "decision") | {"memory": memory, "outcome": outcome}
    place = (
        "no recall: none has shown it" if logged.decision is None else f"recall {logged.decision}"
    )
    return report, f"#{memory} {outcome}, logged as event {logged.event}, of {place}"


@command(main, read)
@click.argument("memory", type=int, required=False)
@click.option("--kind", help="Of the newest: only this kind.")
@click.option("--project", help="Only those of this project.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Only those with this tag; repeat it for those with all of them.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="So many of the newest."
)
def show(lab: memlab.Lab, memory: int | None, **wanted: Any) -> Told:
    """One MEMORY of LAB with all its fields; without it, the newest memories."""
    if memory is None:
        return _newest(lab.memories, **wanted)
    row = lab.memories.row(lab[memory].id - 1, named=True)
    chain = lab.upkeep.review.provenance(memory).to_dicts()
    lines = [f"{name:<17} {value}" for name, value in row.items()]
    for one in chain[1:] and chain:
        words = [
            f"{name} {value}"
            for name, value in one.items()
            if value is not None and name not in ("how", "at")
        ]
        lines.append(f"{one['how']:<17} {one['at']:%Y-%m-%d %H:%M} {', '.join(words)}")
    return row | {"provenance_chain": chain}, lines


def _newest(
    frame: pl.DataFrame, kind: str | None, project: str | None, tags: tuple[str, ...], limit: int
) -> Told:
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
    "--text", type=Text(), help="Its new words (- for standard input): a new memory supersedes it."
)
@click.option("--tag", "tags", multiple=True, help="Its tags, in place of those it has.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Any field; VALUE as JSON, or a word.",
)
def edit(
    lab: memlab.Lab, memory: int, text: str | None, tags: tuple[str, ...], sets: tuple[str, ...]
) -> Told:
    """Correct MEMORY in LAB.

    memlab edit a.memlab 3 --set importance=0.9 --set pinned=true --set project=null
    """
    fields: dict[str, Any] = {"tags": list(tags)} if tags else {}
    for given in sets:
        name, sign, value = given.partition("=")
        if not sign:
            raise click.UsageError(f"--set takes FIELD=VALUE, not {given!r}.")
        fields[name] = value_of(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", memlab.RedactionWarning)  # said below
        edited = lab.edit(memory, text=text, **fields)
    new = edited.id != memory
    report = fields_of(edited, "id", "text", "rebuilt", "dropped", "notes") | {
        "supersedes": memory if new else None
    }
    change = f" supersedes #{memory}" if new else " is changed"
    notes = [f"  {note}" for note in edited.notes]
    return report, [f"#{edited.id}{change}: {edited.text}", *_taken_out(edited), *notes]


@command(main, write_if("dry_run", wanted=False), verb=f"{_LAB}.forget", options={"how": ""})
@MEMORIES
@click.option("--project", help="Delete all memories of this project.")
@click.option(
    "--reason",
    type=Text(),
    default="",
    help="Why; a deprecation needs it, a quarantine may have it.",
)
@click.option("--source", type=Word(SOURCES), help="Quarantine what was learned from this.")
@click.option("--session", help="Quarantine what came from this session or conversation.")
@click.option("--creator", help="Quarantine what this user or agent wrote: agent:coder, ...")
@click.option(
    "--since", help="Quarantine what was written at this time or later, such as 2026-11-01."
)
@click.option("--dry-run", is_flag=True, help="Say what a quarantine would do, and write nothing.")
@click.option("--replay", type=int, help="How many recalls a quarantine asks again. Default: 100.")
def forget(
    lab: memlab.Lab, memories: tuple[int, ...], how: Any, as_json: bool, **given: Any
) -> Told:
    """Take MEMORIES of LAB, with their corrections, out of every recall; `restore` brings them back.

    --how delete: due to be purged once `grace-days` are over. --how deprecate: wrong, for a REASON. --how quarantine:
    what came from a source, session or creator.

    memlab forget a.memlab --how quarantine --session "web 17" --since 2026-11-01 --dry-run
    """
    quarantines = how == "quarantine"
    if quarantines and not any(
        given[name] is not None for name in ("source", "session", "creator")
    ):
        raise click.UsageError(
            "Say what came from where: one of --source, --session and --creator is needed."
        )
    if how in ("forget", "deprecate") and not memories:
        raise click.UsageError("Say which MEMORIES, by their ids.")
    if how == "deprecate" and not given["reason"]:
        raise click.UsageError("Say why: --reason.")
    options = {name: value for name, value in given.items() if value not in (None, "", False)}
    if quarantines:
        options["progress"] = not as_json
    done = lab.forget(memories or None, how=how, **options)
    if isinstance(done, Quarantined):
        return _quarantined(done)
    if how != "forget":
        return _corrected(done)
    also = ", ".join(f"#{id}" for id in done.ids if id not in memories)
    named = ", ".join(f"#{id} is forgotten" for id in memories)
    report = {"id": memories[0], "ids": list(done.ids), "status": "forgotten"}
    return report, named + (f", with its corrections {also}" if also else "")


@command(main, write)
@MEMORIES
@click.option("--project", help="All that is deleted of this project.")
@click.option(
    "--quarantine", type=int, metavar="EVENT", help="All that the quarantine of this event took."
)
def restore(lab: memlab.Lab, memories: tuple[int, ...], **options: Any) -> Told:
    """Bring MEMORIES back that were forgotten, deprecated, deleted or summarised (by the number of the summary).

    A backup of the lab's files is put in place by `memlab upkeep restore`.
    """
    return _corrected(lab.restore(memories or None, **options))


def _consented(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    if not options["yes"]:
        raise memlab.InputError(
            "What is purged cannot be brought back. Say so with --yes, or use: memlab forget --how delete."
        )
    return existing(path)


@command(
    main,
    _consented,
    verb=f"{_LAB}.purge",
    options={
        "project": "All memories of this project.",
        "session": "All of this session.",
        "subject": "All that is known of this entity, under all its names.",
        "creator": "All that this user or agent wrote.",
        "overdue": "What was deleted for longer than `grace-days`.",
        "remove_exports": "Also remove known exports that hold something of it.",
        "reason": "Kept in the journal.",
    },
)
@MEMORIES
@click.option("--yes", is_flag=True, help="Do it: nothing brings back what was purged.")
def purge(lab: memlab.Lab, memories: tuple[int, ...], yes: bool, **options: Any) -> Told:
    """Remove MEMORIES for good from the journal and every file made of it, and print a receipt.

    Backups and mirrors are reached, exports are named. --project, --session, --subject and --creator narrow each other.
    """
    done = lab.purge(memories or None, **options)
    report = fields_of(
        done, "events", "slates", "questions", "review", purged="ids", receipt="frame"
    )
    return report, [str(done), *_review_lines(report["review"])]


def _corrected(done: Corrected) -> Told:
    report = fields_of(done, "review", changed="frame")
    lines = _status_lines(report["changed"]) or ["nothing to change"]
    return report, lines + _review_lines(report["review"])


def _status_lines(rows: list[dict[str, Any]]) -> list[str]:
    return [f"#{row['memory_id']} is {row['status']} (was {row['before']})" for row in rows]


def _review_lines(rows: list[dict[str, Any]]) -> list[str]:
    return [
        f"review #{row['memory_id']} ({row['how']}: #{row['of']}) {row['text'][:80]}"
        for row in rows
    ]


def _quarantined(done: Quarantined) -> Told:
    named = {"quarantined": "ids", "changed": "frame", "review": "derived"}
    report = fields_of(done, "event", "back", "shown", "replay", **named)
    lines = _status_lines(report["changed"])
    lines += [
        f"review #{row['memory_id']} ({row['how']}: #{row['of']})" for row in report["review"]
    ]
    more = len(lines) - _SHOWN
    lines = lines[:_SHOWN] + ([f"... and {more:,} more"] if more > 0 else [])
    undo = [] if done.event is None else [f"undo: memlab restore LAB --quarantine {done.event}"]
    return report, [repr(done)[1:-1], *lines, *undo]
