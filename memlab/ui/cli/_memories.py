"""One lab: remember, recall, give feedback, look, forget, choose a pack."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import click
import polars as pl

import memlab
from memlab.errors import InputError
from memlab.kernel.schema import KINDS, SOURCES, spelled
from memlab.kernel.state import tag_name
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.subjects.review.review import Quarantined
from memlab.ui.cli._base import (
    LAB,
    LocalPath,
    Text,
    Word,
    agent,
    as_json_option,
    existing,
    graph,
    keeping,
    main,
    say,
    taken_out,
    tell,
    upkeep,
)
from memlab.ui.cli._policy import policy


@main.command()
@LAB
@click.argument("text", type=Text())
@click.option("--kind", default="fact", show_default=True)
@click.option("--project")
@click.option("--session")
@click.option("--speaker")
@click.option("--tag", "tags", multiple=True)
@click.option("--importance", type=float)
@click.option("--at", help="When it was said, as an ISO time. Default: now.")
@as_json_option
def remember(lab: Path, text: str, as_json: bool, tags: tuple[str, ...], **fields: Any) -> None:
    """Remember TEXT (- for standard input) in LAB, which is made if it is new."""
    given = {name: value for name, value in fields.items() if value is not None}
    with memlab.open(lab) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", memlab.RedactionWarning)  # said below
        memory = opened.remember(text, tags=list(tags) or None, **given)
    report = {"id": memory.id, "text": memory.text, "redacted": list(memory.redacted)}
    tell(report, as_json=as_json, text=lambda: "\n".join([f"#{memory.id} {memory.text}", *taken_out(memory)]))


@main.command()
@LAB
@click.argument("query", type=Text())
@click.option("--limit", type=int)
@click.option("--project")
@click.option("--session")
@click.option("--at", help="When it is asked, as an ISO time. Default: now.")
@click.option("--pack", help="Ask under this pack (a name or a .hy file) without making it live; nothing is logged.")
@click.option("--explain", is_flag=True, help="Show the terms of each score.")
@as_json_option
def recall(lab: Path, query: str, pack: str | None, explain: bool, as_json: bool, **question: Any) -> None:
    """The memories of LAB that its live pack puts first for QUERY (- for standard input)."""
    with existing(lab) if pack is None else _under(lab, pack) as opened:
        hits = opened.recall(query, log=pack is None, **question)
        explanations = [hit.explain() for hit in hits] if explain else []
    rows: list[dict[str, Any]] = [
        {"rank": hit.rank, "id": hit.id, "score": hit.score, "text": hit.text, "ref": hit.ref} for hit in hits
    ]
    for row, explanation in zip(rows, explanations, strict=False):
        row["terms"] = [{"term": term, "value": value} for term, value in explanation.terms]
    of = {"decision": hits.decision, "pack": hits.pack.name, "hash": hits.pack.hash, "known": hits.known}
    report = {**of, "hits": rows}
    place = "" if hits.decision is None else f"recall {hits.decision}: "
    tell(report, as_json=as_json, text=lambda: "\n".join([f"{place}{hits!r}", *map(repr, explanations)]))


@main.command()
@LAB
@click.argument("task", type=Text())
@click.option("--budget", type=click.IntRange(1), default=1800, show_default=True, help="Most tokens.")
@click.option("--session", help="In a session nothing is given twice.")
@click.option("--project")
@click.option("--file", "files", multiple=True, help="A file at hand; may be given several times.")
@click.option("--viewer", help="Who asks, such as agent:coder: what others keep private is left out.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "messages", "json"]),
    default="text",
    show_default=True,
    help="json has all of it, and what was left out.",
)
@as_json_option
def context(lab: Path, task: str, form: str, as_json: bool, files: tuple[str, ...], **asked: Any) -> None:
    """What an agent is to know for TASK (- for standard input), from LAB, as text for a prompt."""
    with keeping(lab) as opened:
        found = opened.context(task, files=files, **asked)
    if as_json or form == "json":
        report = {
            "text": found.text,
            "tokens": found.tokens,
            "budget": found.budget,
            "decision": found.decision,
            "memories": found.frame.to_dicts(),
            "left_out": found.left_out.to_dicts(),
            "pack": found.pack,
            "hash": found.pack_hash,
            "seed": found.seed,
            "settings": dict(found.settings),
        }
        tell(report, as_json=True)
    elif form == "messages":
        tell(found.messages(), as_json=True)
    elif len(found):
        say(found.markdown if form == "markdown" else found.text)


@agent.command()
@LAB
@click.option("--since", metavar="WHEN", help="Leave out what came before this instant, such as 2026-07-01.")
@click.option("--report", type=LocalPath(), help="Write a page to this file as well.")
@as_json_option
def metrics(lab: Path, since: str | None, report: Path | None, as_json: bool) -> None:
    """What the contexts given from LAB were worth: tokens injected, referenced, saved."""
    with existing(lab, read_only=True) as opened:
        found = opened.agents.metrics(since=since)
    if report is not None:
        found.report(report)
    whole = {
        "metrics": dict(found.frame.select("metric", "value").iter_rows()),
        "gotchas": found.gotchas.to_dicts(),
        "contexts": found.contexts.to_dicts(),
    }
    tell(whole, as_json=as_json, text=lambda: repr(found))


def _under(lab: Path, pack: str) -> memlab.Lab:
    """A copy of the lab in memory, of which another pack is live."""
    existing(lab, read_only=True).close()
    copy = memlab.load(lab, policies=False)
    copy.policies.use(pack)
    return copy


@main.command()
@LAB
@click.argument("memory", type=int)
@click.argument("outcome", type=click.Choice(["success", "fail"]))
@click.option("--decision", type=int, help="The recall that showed it, as `memlab recall` prints. Default: the last.")
@as_json_option
def feedback(lab: Path, memory: int, outcome: str, decision: int | None, as_json: bool) -> None:
    """Log how MEMORY did."""
    with existing(lab) as opened:
        logged = opened.feedback(memory, outcome, decision=decision)
    report = {"event": logged.event, "memory": memory, "outcome": outcome, "decision": logged.decision}
    place = "no recall: none has shown it" if logged.decision is None else f"recall {logged.decision}"
    tell(report, as_json=as_json, text=lambda: f"#{memory} {outcome}, logged as event {logged.event}, of {place}")


@agent.command()
@LAB
@click.option("--recall", "decision", type=int, required=True, help="The recall, as `memlab recall` prints.")
@click.option("--answer", type=click.File(errors="replace"), required=True, help="A file with the answer, or -.")
@click.option("--reply", type=click.File(errors="replace"), help="A file with what the user said next.")
@as_json_option
def attribute(lab: Path, decision: int, answer: Any, reply: Any, as_json: bool) -> None:
    """Read from an answer which memories of a recall it was made of, and log that as rewards."""
    with existing(lab) as opened:
        found = opened.agents.credits.answer(answer.read(), decision, reply=None if reply is None else reply.read())
    report = {
        "decision": found.decision,
        "policy": found.policy,
        "cut": found.cut,
        "listed": found.listed,
        "logged": len(found),
        "memories": found.frame.to_dicts(),
    }
    tell(report, as_json=as_json, text=lambda: repr(found))


@main.command()
@LAB
@click.argument("memory", type=int, required=False)
@click.option("--kind", help="Of the newest: only this kind.")
@click.option("--project", help="Only those of this project.")
@click.option("--tag", "tags", multiple=True, help="Only those with this tag; repeat it for those with all of them.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="So many of the newest.")
@as_json_option
def show(lab: Path, memory: int | None, as_json: bool, **of: Any) -> None:
    """One MEMORY of LAB with all its fields; without it, the newest memories."""
    with existing(lab, read_only=True) as opened:
        frame = opened.memories
        if memory is None:
            _list(frame, as_json=as_json, **of)
            return
        row = frame.row(opened[memory].id - 1, named=True)
        told = opened.upkeep.review.provenance(memory).to_dicts()
    lines = [f"{name:<17} {value}" for name, value in row.items()]
    for one in told[1:] and told:
        words = [f"{name} {value}" for name, value in one.items() if value is not None and name not in ("how", "at")]
        lines.append(f"{one['how']:<17} {one['at']:%Y-%m-%d %H:%M} {', '.join(words)}")
    tell(row | {"provenance_chain": told}, as_json=as_json, text=lambda: "\n".join(lines))


def _list(
    frame: pl.DataFrame, kind: str | None, project: str | None, tags: tuple[str, ...], limit: int, *, as_json: bool
) -> None:
    for column, wanted in (("kind", None if kind is None else spelled(kind, KINDS)), ("project", project)):
        if wanted is not None:
            frame = frame.filter(pl.col(column) == wanted)
    for tag in tags:
        frame = frame.filter(pl.col("tags").list.contains(tag_name(tag)))
    frame = frame.tail(limit)
    tell(
        frame.to_dicts(),
        as_json=as_json,
        text=lambda: "\n".join(
            f"#{row['id']:<6} {row['kind']:<12} {row['text'][:100]}" for row in frame.iter_rows(named=True)
        ),
    )


@upkeep.command()
@LAB
@as_json_option
def stats(lab: Path, as_json: bool) -> None:
    """What LAB holds, and a notice if the live policy earns less than an earlier one did."""
    with existing(lab, read_only=True) as opened:
        report = {
            "memories": len(opened),
            "edges": opened.edges.height,
            "recalls": opened.slates().decisions.collect().height,
            "feedback": opened.slates().feedback.collect().height,
            "pack": opened.policies.pack.name,
            "hash": opened.policies.pack.hash,
            "embedder": opened.io.embedder.name,
        }
        try:
            fall = opened.upkeep.operations.check_fall()
        except InputError as error:
            report["notice"] = f"what the policies earned cannot be compared: {error}"
        else:
            if fall is not None:
                report["notice"] = repr(fall)
    tell(report, as_json=as_json, text=lambda: "\n".join(f"{name:<9} {value}" for name, value in report.items()))


@graph.command()
@LAB
@click.argument("memory", type=int)
@click.option("--depth", type=int, default=2, show_default=True, help="Most edges of a path.")
@as_json_option
def trace(lab: Path, memory: int, depth: int, as_json: bool) -> None:
    """How MEMORY of LAB is joined to others: the strongest paths over its edges."""
    with existing(lab, read_only=True) as opened:
        found = opened.graph.trace(memory, depth)
    tell(found.frame.to_dicts(), as_json=as_json, text=lambda: found.tree)


@graph.command()
@LAB
@click.argument("memory", type=int)
@click.option("--limit", type=int, default=10, show_default=True)
@as_json_option
def similar(lab: Path, memory: int, limit: int, as_json: bool) -> None:
    """The memories of LAB that are nearest to MEMORY."""
    with existing(lab, read_only=True) as opened:
        rows = opened.graph.similar(memory, limit=limit).to_dicts()
    lines = [f"{row['similarity']:.3f}  #{row['memory_id']}  {row['text']}" for row in rows]
    tell(rows, as_json=as_json, text=lambda: "\n".join(lines))


@policy.command()
@as_json_option
def packs(as_json: bool) -> None:
    """The packs that come with memlab."""
    known = [memlab.load_pack(name) for name in memlab.packs()]
    tell(
        [{"name": pack.name, "hash": pack.hash, "doc": pack.doc} for pack in known],
        as_json=as_json,
        text=lambda: "\n".join(f"{pack.name:<12} [{pack.hash[:12]}] {pack.doc}" for pack in known),
    )


@policy.command()
@LAB
@click.argument("pack")
@click.option("--reason", default="")
@as_json_option
def use(lab: Path, pack: str, reason: str, as_json: bool) -> None:
    """Let PACK (a name or a .hy file) decide in LAB from now on."""
    with existing(lab) as opened:
        live = opened.policies.use(pack, reason=reason)
    tell(
        {"pack": live.name, "hash": live.hash}, as_json=as_json, text=lambda: f"{live.name} [{live.hash[:12]}] is live"
    )


# -- Correcting a lab: edit, deprecate, delete, restore, purge, and backups --

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
