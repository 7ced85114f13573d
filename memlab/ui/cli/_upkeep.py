"""What keeps a lab: time, checks, copies, other labs and files; edges and tags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import polars as pl

import memlab
from memlab.errors import InputError
from memlab.ui.cli._base import (
    LAB,
    LocalPath,
    Told,
    command,
    fields_of,
    graph,
    keep,
    read,
    say,
    tell,
    upkeep,
    write,
    write_if,
)

_IO = "memlab.subjects.io.io:LabIO"
_GRAPH = "memlab.subjects.clusters.clusters:LabGraph"


@command(upkeep, write)
@click.option(
    "--at", metavar="WHEN", help="As of this instant, such as 2026-07-01; now unless given."
)
def maintain(lab: memlab.Lab, at: str | None, as_json: bool) -> Told:
    """Apply decay and status changes to LAB.

    It records statuses, labels, edges to prune, and clusters that are due.

    A second pass as of the same instant writes nothing.
    """
    done = lab.upkeep.maintain(at, progress=not as_json)
    report = fields_of(done, "at", "pack", "events", hash="pack_hash", changes="counts")
    return report | {"pruned": done.pruned.height, "due": done.due["id"].to_list()}, repr(done)[
        1:-1
    ]


@command(
    upkeep,
    write_if("dry_run", wanted=False),
    verb="memlab.subjects.clusters.consolidation:LabConsolidation.run",
    options={
        "keep": "How many of each group stay beside their summary: the most important.",
        "project": "Only what belongs to this project.",
        "by": "",
        "dry_run": "Write nothing; tell what would become of what.",
    },
)
@click.option(
    "--older-than",
    "older_than_days",
    type=float,
    metavar="DAYS",
    help="In place of the pack's setting.",
)
def consolidate(lab: memlab.Lab, **options: Any) -> Told:
    """Replace many old memories of a cluster by one summary.

    `memlab restore LAB SUMMARY` undoes one summary.

    The live pack's consolidate policy says which memories may go. A summary has some of their own sentences, not all:
    see with --dry-run what would be left.
    """
    done = lab.upkeep.consolidation.run(**options)
    report, lines = (
        fields_of(done, "at", "pack", "event", "dry_run", summaries="frame"),
        [repr(done)[1:-1]],
    )
    for row in report["summaries"]:
        summary = "would be made" if row["summary"] is None else f"#{row['summary']}"
        lines.append(f"{summary}  of {row['count']}, {row['of']}: {row['text'][:100]}")
    return report, lines


@command(upkeep, read)
def stats(lab: memlab.Lab) -> Told:
    """Count the contents of LAB.

    A notice follows if the active policy earns less than an earlier policy did.
    """
    slates, pack = lab.slates(), lab.policies.pack
    report = {
        "memories": len(lab),
        "edges": lab.edges.height,
        "recalls": slates.decisions.collect().height,
        "feedback": slates.feedback.collect().height,
        "pack": pack.name,
        "hash": pack.hash,
        "embedder": lab.io.embedder.name,
    }
    try:
        fall = lab.upkeep.operations.check_fall()
    except InputError as error:
        report["notice"] = f"what the policies earned cannot be compared: {error}"
    else:
        if fall is not None:
            report["notice"] = repr(fall)
    return report, [f"{name:<9} {value}" for name, value in report.items()]


@command(upkeep, read)
def du(lab: memlab.Lab) -> Told:
    """Show the disk space that each part of LAB uses."""
    used = lab.upkeep.usage()
    return {"bytes": used.total, "parts": used.frame.to_dicts()}, repr(used)[1:-1]


@command(
    upkeep,
    write,
    verb="memlab.subjects.retention.retention:LabUpkeep.thin",
    options={
        "full_days": "Days that slates keep their features; 0: for good. Default: the setting of LAB.",
        "thin_days": "Days that slates are kept at all; 0: for good. Default: the setting of LAB.",
        "consent": "Apply it. Without this option, nothing changes.",
    },
)
def thin(lab: memlab.Lab, **options: Any) -> Told:
    """Preview what thinning the log of LAB removes, or apply it.

    --consent applies it. The preview names the questions that the log can no longer answer afterwards.
    """
    done = lab.upkeep.thin(**options)
    report = {
        "done": done.done,
        "bytes": done.bytes,
        "ends": list(done.ends),
        "segments": done.frame.to_dicts(),
    }
    return report, repr(done)[1:-1]


# -- files ----------------------------------------------------------------------------------------------------------


@command(upkeep)
@LAB
@click.option("--no-repair", is_flag=True, help="Say what is damaged, and change nothing.")
def check(lab: Path, no_repair: bool) -> Told:
    """Check every file of LAB and repair what is damaged.

    Repairs come from the journal or a backup.

    Exit status 1 if something is damaged or lost.
    """
    done = memlab.check(lab, repair=not no_repair)
    report = fields_of(done, "sound", parts="frame")
    lines = [
        f"{row['state']:9} {row['file']}: {row['part']} {row['detail']}".rstrip()
        for row in report["parts"]
    ]
    restoring = (
        "not whole: `memlab upkeep restore` puts a backup in place, or settles what is there"
    )
    return report, [*lines, "sound" if done.sound else restoring], int(not done.sound)


@command(upkeep)
@LAB
@click.argument("backup", required=False, type=LocalPath())
def restore(lab: Path, backup: Path | None) -> Told:
    """Replace the journal of LAB by BACKUP.

    Without BACKUP, the most complete source is used: the journal itself, or a backup.

    What was in its place is kept below LAB. Memories that were deleted come back with `memlab restore`.
    """
    done = memlab.restore(lab, backup)
    return done.frame.to_dicts()[0], repr(done)[1:-1]


@command(
    upkeep,
    write,
    verb=f"{_IO}.backup",
    options={"folder": "Where to, instead of LAB/backups.", "keep": "How many to keep there."},
)
def backup(lab: memlab.Lab, **options: Any) -> Told:
    """Copy LAB as it is now; the copy opens as a lab."""
    made = lab.io.backup(**options)
    report = fields_of(made, "path", "event", "size") | {"kept": made.frame.height}
    return report, f"{made.path} ({made.size:,} bytes, {made.frame.height} kept)"


@command(
    upkeep,
    keep,
    verb=f"{_IO}.export",
    options={
        "project": "Only the memories of this project.",
        "overwrite": "Replace what is at PATH.",
    },
)
@click.argument("path", type=LocalPath())
@click.option(
    "--format",
    type=click.Choice(["jsonl", "parquet", "markdown", "sexp"]),
    help="Else the suffix of PATH says it.",
)
@click.option("--no-policies", is_flag=True, help="Leave the pack and its history out.")
def export(
    lab: memlab.Lab, path: Path, project: str | None, no_policies: bool, **options: Any
) -> Told:
    """Write the memories of LAB to a file or a folder.

    The name of PATH decides the format: .jsonl, .md, .sexp, .parquet, or a folder of tables.
    """
    written = lab.io.export(path, project=project, policies=not no_policies, **options)
    frame = lab.memories
    count = len(frame) if project is None else int((frame["project"] == project).sum())
    return {"path": str(written), "memories": count}, f"{count:,} memories in {written}"


@command(upkeep, keep)
@click.argument("folder", type=LocalPath())
@click.option(
    "--every", type=click.FloatRange(min=0, min_open=True), help="Keep on, so many seconds apart."
)
def mirror(lab: memlab.Lab, folder: Path, every: float | None, as_json: bool) -> None:
    """Write each memory of LAB as a Markdown file in FOLDER.

    With --every, the copy is updated until it is interrupted.
    """
    with lab.io.mirror(folder) as kept:
        tell(({"folder": str(folder), "memories": len(kept)}, kept), as_json=as_json)
        while every is not None:
            if kept.wait(every):
                return
            if changed := kept.update():
                say(json.dumps({"changed": changed}) if as_json else f"{changed} files changed")


# -- other labs -----------------------------------------------------------------------------------------------------


@command(upkeep, write)
@click.argument("target", type=LocalPath())
@click.option(
    "--exclude", multiple=True, metavar="PROJECT", help="Leave this project here. May be repeated."
)
@click.option("--preview", is_flag=True, help="Only say what would go.")
def move(lab: memlab.Lab, target: Path, exclude: tuple[str, ...], preview: bool) -> Told:
    """Copy the memories of LAB into the lab TARGET.

    TARGET is created if it does not exist, and LAB is marked as synced.

    Secrets that are found are redacted. What is there already is not added again.
    """
    if preview:
        seen = lab.io.preview(exclude)
        return fields_of(seen, "memories", projects="frame"), f"{seen!r}\n{seen.frame}"
    moved = lab.io.move_to(target, exclude=exclude)
    counts = {name: int(moved.frame[name].sum()) for name in ("known", "purged")}
    return fields_of(moved, "added", "edges", "redacted") | {"target": str(target), **counts}, moved


@command(upkeep, write_if("dry_run", wanted=False), verb=f"{_IO}.join", options={"dry_run": ""})
@click.argument("other", type=LocalPath())
def join(lab: memlab.Lab, other: Path, dry_run: bool) -> Told:
    """Merge OTHER, a lab or an export, into LAB.

    Where both have a memory, the later change wins.
    """
    joined = lab.io.join(other, dry_run=dry_run)
    report = fields_of(
        joined, "source", "edges", "known", "kept_away", "purged", "dry_run", rows="frame"
    )
    report |= {what: joined.count(what) for what in ("added", "edited", "status", "conflict")}
    report["redacted"] = len(joined.redacted)
    lines = [
        f"conflict, memory {id}: here {before!r}, there {after!r}; {stands} stands"
        for id, _, before, after, stands in joined.conflicts.rows()
    ]
    return report, [repr(joined), *lines]


# -- edges and tags -------------------------------------------------------------------------------------------------


@command(
    graph,
    write,
    verb=f"{_GRAPH}.link",
    options={"relation": "What joins them, such as depends-on.", "weight": ""},
)
@click.argument("source", type=int)
@click.argument("target", type=int)
def link(lab: memlab.Lab, source: int, target: int, relation: str, weight: float) -> Told:
    """Join two memories of LAB by an edge from SOURCE to TARGET."""
    lab.graph.link(source, target, relation, weight=weight)
    edges = lab.edges.filter(
        pl.col("to_kind") == "memory", pl.col("source") == source, pl.col("target") == target
    )
    row = edges.tail(1).select("source", "target", "relation", "weight").to_dicts()[0]
    return row, f"#{source} {row['relation']} #{target}"


@command(graph, write_if("tags"))
@click.argument("memories", type=int, nargs=-1)
@click.option("--tag", "tags", multiple=True, help="A tag to give; may be given several times.")
@click.option("--remove", is_flag=True, help="Take the tags away instead.")
@click.option("--describe", help="Say what the one --tag is for.")
def tag(
    lab: memlab.Lab,
    memories: tuple[int, ...],
    tags: tuple[str, ...],
    remove: bool,
    describe: str | None,
) -> Told:
    """Give tags to MEMORIES of LAB; without arguments, list the tags that there are.

    memlab graph tag a.memlab 3 7 --tag release
    """
    if memories and not tags:
        raise click.UsageError("Say which tag: --tag NAME.")
    if describe is not None and len(tags) != 1:
        raise click.UsageError("--describe says what one tag is for: give one --tag.")
    if not memories and tags and describe is None:
        raise click.UsageError("Say which memories bear the tag, by their ids.")
    changed = lab.graph.tag(memories, tags, remove=remove) if memories else ()
    if describe is not None:
        lab.graph.describe_tag(tags[0], describe)
    if memories:
        named = ", ".join(f"#{id}" for id in changed) or "no memory"
        return {"changed": list(changed)}, f"{named} changed"
    rows = lab.graph.tags().to_dicts()
    return rows, [
        f"{row['memories']:>6}  {row['tag']}  {row['description'] or ''}".rstrip() for row in rows
    ]


@command(graph, read, verb=f"{_GRAPH}.trace", options={"depth": "Most edges of a path."})
@click.argument("memory", type=int)
def trace(lab: memlab.Lab, memory: int, depth: int) -> Told:
    """How MEMORY of LAB is joined to others: the strongest paths over its edges."""
    paths = lab.graph.trace(memory, depth)
    return paths.frame.to_dicts(), paths.tree


@command(graph, read, verb=f"{_GRAPH}.similar", options={"limit": ""})
@click.argument("memory", type=int)
def similar(lab: memlab.Lab, memory: int, limit: int) -> Told:
    """The memories of LAB that are nearest to MEMORY."""
    rows = lab.graph.similar(memory, limit=limit).to_dicts()
    return rows, [f"{row['similarity']:.3f}  #{row['memory_id']}  {row['text']}" for row in rows]
