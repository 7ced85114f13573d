"""Commands that maintain a lab: decay, checks, copies, other labs, edges and tags."""

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
    Report,
    command,
    get_fields,
    graph,
    keep,
    print_report,
    read,
    read_key,
    say,
    upkeep,
    write,
    write_if,
)

# The classes whose verbs the commands call.
_IO = "memlab.subjects.io.io:LabIO"
_GRAPH = "memlab.subjects.clusters.clusters:LabGraph"


@command(upkeep, write)
@click.option(
    "--at",
    metavar="WHEN",
    help="Time at which decay and status changes are computed, such as 2026-07-01. Default: now.",
)
def maintain(lab: memlab.Lab, at: str | None, as_json: bool) -> Report:
    """Apply decay and status changes to LAB.

    It updates statuses, labels and clusters, and prunes edges. A second run for the same instant writes nothing.

    Example: memlab upkeep maintain my.memlab
    """
    done = lab.upkeep.maintain(at, progress=not as_json)
    report = get_fields(done, "at", "pack", "events", hash="pack_hash", changes="counts")
    return report | {"pruned": done.pruned.height, "due": done.due["id"].to_list()}, repr(done)[
        1:-1
    ]


@command(
    upkeep,
    write_if("dry_run", value=False),
    verb="memlab.subjects.clusters.consolidation:LabConsolidation.run",
    options={
        "keep": "Number of memories of each group that stay active: the most important.",
        "project": "Only this project.",
        "by": "How memories are grouped.",
        "dry_run": "Show the result, and write nothing.",
    },
)
@click.option(
    "--older-than",
    "older_than_days",
    type=float,
    metavar="DAYS",
    help="Group only memories that are at least this many days old. Default: the pack's setting.",
)
def consolidate(lab: memlab.Lab, **options: Any) -> Report:
    """Replace old memories of a cluster by one summary.

    The consolidate policy of the active pack decides which memories. A summary contains some of their sentences,
    not all: --dry-run shows the result. `memlab restore LAB SUMMARY` undoes one summary.

    Example: memlab upkeep consolidate my.memlab --older-than 90 --dry-run
    """
    done = lab.upkeep.consolidation.run(**options)
    report, lines = (
        get_fields(done, "at", "pack", "event", "dry_run", summaries="frame"),
        [repr(done)[1:-1]],
    )
    for row in report["summaries"]:
        summary = "new" if row["summary"] is None else f"#{row['summary']}"
        lines.append(f"{summary}  of {row['count']}, {row['of']}: {row['text'][:100]}")
    return report, lines


@command(upkeep, read)
def stats(lab: memlab.Lab) -> Report:
    """Count the contents of LAB.

    A notice follows if the active policy performs worse than an earlier one.

    Example: memlab upkeep stats my.memlab
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
        report["notice"] = f"policies cannot be compared: {error}"
    else:
        if fall is not None:
            report["notice"] = repr(fall)
    return report, [f"{name:<9} {value}" for name, value in report.items()]


@command(upkeep, read)
def du(lab: memlab.Lab) -> Report:
    """Show the disk space that each part of LAB uses.

    Example: memlab upkeep du my.memlab
    """
    used = lab.upkeep.usage()
    return {"bytes": used.total, "parts": used.frame.to_dicts()}, repr(used)[1:-1]


@command(
    upkeep,
    write,
    verb="memlab.subjects.retention.retention:LabUpkeep.thin",
    options={
        "full_days": "Days for which slates keep features; 0 is unlimited. Default: LAB's setting.",
        "thin_days": "Days for which slates are kept; 0 is unlimited. Default: LAB's setting.",
        "consent": "Apply the thinning. Without this option, nothing changes.",
    },
)
def thin(lab: memlab.Lab, **options: Any) -> Report:
    """Preview or apply the thinning of LAB's log.

    The preview lists the questions that the log can no longer answer afterwards. --consent applies it.

    Example: memlab upkeep thin my.memlab --full-days 30
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
@click.option("--no-repair", is_flag=True, help="Report damage without repairing it.")
def check(lab: Path, no_repair: bool) -> Report:
    """Check every file of LAB, and repair damage.

    Repairs come from the journal or a backup. The exit status is 1 if something is damaged or lost.

    Example: memlab upkeep check my.memlab
    """
    done = memlab.check(lab, repair=not no_repair)
    report = get_fields(done, "sound", parts="frame")
    lines = [
        f"{row['state']:9} {row['file']}: {row['part']} {row['detail']}".rstrip()
        for row in report["parts"]
    ]
    restoring = "damaged: restore a backup with `memlab upkeep restore`"
    return report, [*lines, "sound" if done.sound else restoring], int(not done.sound)


@command(upkeep)
@LAB
@click.argument("key_file", type=LocalPath())
def encrypt(lab: Path, key_file: Path) -> Report:
    """Encrypt LAB and its backups with the key in KEY_FILE.

    Exports and mirrors stay plain. Without the key, nobody can read LAB again.

    Example: memlab upkeep encrypt my.memlab key.txt
    """
    plain = [str(path) for path in memlab.encrypt(lab, read_key(key_file))]
    return {"plain": plain}, ["encrypted", *(f"stays plain: {path}" for path in plain)]


@command(upkeep)
@LAB
def decrypt(lab: Path) -> Report:
    """Write LAB and its backups without encryption.

    Example: memlab --key-file key.txt upkeep decrypt my.memlab
    """
    memlab.decrypt(lab)
    return {"encrypted": False}, "not encrypted any more"


@command(upkeep)
@LAB
@click.argument("key_file", type=LocalPath())
def rekey(lab: Path, key_file: Path) -> Report:
    """Replace the key of LAB and of its backups by the key in KEY_FILE.

    Example: memlab --key-file key.txt upkeep rekey my.memlab new-key.txt
    """
    memlab.rekey(lab, read_key(key_file))
    return {"encrypted": True}, "key replaced"


@command(upkeep)
@LAB
@click.argument("backup", required=False, type=LocalPath())
def restore(lab: Path, backup: Path | None) -> Report:
    """Replace the journal of LAB by BACKUP.

    Without BACKUP, the most complete source is used: the journal itself, or a backup. The replaced files are kept below
    LAB. `memlab restore` restores deleted memories.

    Example: memlab upkeep restore my.memlab my.memlab/backups/0001
    """
    done = memlab.restore(lab, backup)
    return done.frame.to_dicts()[0], repr(done)[1:-1]


@command(
    upkeep,
    write,
    verb=f"{_IO}.backup",
    options={
        "folder": "Folder of the backup. Default: LAB/backups.",
        "keep": "Number of backups to keep there.",
    },
)
def backup(lab: memlab.Lab, **options: Any) -> Report:
    """Copy LAB to a backup, which opens as a lab.

    Example: memlab upkeep backup my.memlab --keep 5
    """
    copy = lab.io.backup(**options)
    report = get_fields(copy, "path", "event", "size") | {"kept": copy.frame.height}
    return report, f"{copy.path} ({copy.size:,} bytes, {copy.frame.height} kept)"


@command(
    upkeep,
    keep,
    verb=f"{_IO}.export",
    options={
        "project": "Only this project.",
        "subject": "Only what a purge of this subject removes.",
        "creator": "Only what a purge of this creator removes.",
        "viewer": "Only what this user can see.",
        "overwrite": "Replace an existing PATH.",
    },
)
@click.argument("path", type=LocalPath())
@click.option(
    "--format",
    type=click.Choice(["jsonl", "parquet", "markdown", "sexp"]),
    help="Format of the exported file or folder. Default: by the suffix of PATH.",
)
@click.option("--no-policies", is_flag=True, help="Omit the policy pack and its history.")
def export(
    lab: memlab.Lab,
    path: Path,
    project: str | None,
    viewer: str | None,
    no_policies: bool,
    **options: Any,
) -> Report:
    """Write the memories of LAB to a file or folder.

    The suffix of PATH decides the format: .jsonl, .md, .sexp or .parquet. With --format parquet, a PATH without suffix is
    a folder of tables.

    Example: memlab upkeep export my.memlab memories.jsonl
    """
    written = lab.io.export(
        path, project=project, viewer=viewer, policies=not no_policies, **options
    )
    if viewer or options["subject"] or options["creator"]:
        return {"path": str(written)}, f"{written} written"
    frame = lab.memories
    count = len(frame) if project is None else int((frame["project"] == project).sum())
    return {"path": str(written), "memories": count}, f"{count:,} memories in {written}"


@command(upkeep, keep)
@click.argument("folder", type=LocalPath())
@click.option(
    "--every",
    type=click.FloatRange(min=0, min_open=True),
    help="Keep the files up to date, with this many seconds between two updates.",
)
def mirror(lab: memlab.Lab, folder: Path, every: float | None, as_json: bool) -> None:
    """Write each memory of LAB as a Markdown file in FOLDER.

    --every keeps the files up to date until Ctrl-C.

    Example: memlab upkeep mirror my.memlab notes --every 5
    """
    with lab.io.mirror(folder) as files:
        print_report(({"folder": str(folder), "memories": len(files)}, files), as_json=as_json)
        while every is not None:
            if files.wait(every):
                return
            if changed := files.update():
                say(json.dumps({"changed": changed}) if as_json else f"{changed} files changed")


# -- other labs -----------------------------------------------------------------------------------------------------


@command(upkeep, write)
@click.argument("target", type=LocalPath())
@click.option(
    "--exclude",
    multiple=True,
    metavar="PROJECT",
    help="Project to leave out of the copy; may be repeated.",
)
@click.option("--preview", is_flag=True, help="Show what would be copied, and write nothing.")
def move(lab: memlab.Lab, target: Path, exclude: tuple[str, ...], preview: bool) -> Report:
    """Copy the memories of LAB into the lab TARGET, and mark LAB as synced.

    Secrets are redacted. Memories that TARGET already has are not added again. TARGET is created if it does not exist.

    Example: memlab upkeep move my.memlab team.memlab --preview
    """
    if preview:
        outlook = lab.io.preview(exclude)
        return get_fields(outlook, "memories", projects="frame"), f"{outlook!r}\n{outlook.frame}"
    moved = lab.io.move_to(target, exclude=exclude)
    counts = {name: int(moved.frame[name].sum()) for name in ("known", "purged")}
    return get_fields(moved, "added", "edges", "redacted") | {
        "target": str(target),
        **counts,
    }, moved


@command(
    upkeep,
    write_if("dry_run", value=False),
    verb=f"{_IO}.join",
    options={"dry_run": "Show the result, and write nothing."},
)
@click.argument("other", type=LocalPath())
def join(lab: memlab.Lab, other: Path, dry_run: bool) -> Report:
    """Merge OTHER, a lab or an export, into LAB.

    If both have a memory, the later change wins.

    Example: memlab upkeep join my.memlab other.memlab --dry-run
    """
    joined = lab.io.join(other, dry_run=dry_run)
    report = get_fields(
        joined, "source", "edges", "known", "kept_away", "purged", "dry_run", rows="frame"
    )
    report |= {what: joined.count(what) for what in ("added", "edited", "status", "conflict")}
    report["redacted"] = len(joined.redacted)
    lines = [
        f"conflict, memory {id}: here {before!r}, there {after!r}; {winner} is kept"
        for id, _, before, after, winner in joined.conflicts.rows()
    ]
    return report, [repr(joined), *lines]


# -- edges and tags -------------------------------------------------------------------------------------------------


@command(
    graph,
    write,
    verb=f"{_GRAPH}.link",
    options={
        "relation": "Relation of the edge, such as depends-on.",
        "weight": "Weight of the edge, from 0 to 1.",
    },
)
@click.argument("source", type=int)
@click.argument("target", type=int)
def link(lab: memlab.Lab, source: int, target: int, relation: str, weight: float) -> Report:
    """Link two memories of LAB by an edge from SOURCE to TARGET.

    Example: memlab graph link my.memlab 3 7 --relation depends-on
    """
    lab.graph.link(source, target, relation, weight=weight)
    edges = lab.edges.filter(
        pl.col("to_kind") == "memory", pl.col("source") == source, pl.col("target") == target
    )
    row = edges.tail(1).select("source", "target", "relation", "weight").to_dicts()[0]
    return row, f"#{source} {row['relation']} #{target}"


@command(graph, write_if("tags"))
@click.argument("memories", type=int, nargs=-1)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    help="Tag to add to the memories, or to remove from them; may be repeated.",
)
@click.option("--remove", is_flag=True, help="Remove the tags instead of adding them.")
@click.option("--describe", help="Describe the tag; needs exactly one --tag.")
def tag(
    lab: memlab.Lab,
    memories: tuple[int, ...],
    tags: tuple[str, ...],
    remove: bool,
    describe: str | None,
) -> Report:
    """Add tags to MEMORIES of LAB, or list all tags.

    Example: memlab graph tag my.memlab 3 7 --tag release
    """
    if memories and not tags:
        raise click.UsageError("Give a tag: --tag NAME.")
    if describe is not None and len(tags) != 1:
        raise click.UsageError("--describe needs exactly one --tag.")
    if not memories and tags and describe is None:
        raise click.UsageError("Give the ids of the memories to tag.")
    changed = lab.graph.tag(memories, tags, remove=remove) if memories else ()
    if describe is not None:
        lab.graph.describe_tag(tags[0], describe)
    if memories:
        ids = ", ".join(f"#{id}" for id in changed) or "no memory"
        return {"changed": list(changed)}, f"{ids} changed"
    rows = lab.graph.tags().to_dicts()
    return rows, [
        f"{row['memories']:>6}  {row['tag']}  {row['description'] or ''}".rstrip() for row in rows
    ]


@command(
    graph, read, verb=f"{_GRAPH}.trace", options={"depth": "Maximum number of edges in a path."}
)
@click.argument("memory", type=int)
def trace(lab: memlab.Lab, memory: int, depth: int) -> Report:
    """Show the strongest paths from MEMORY to other memories of LAB.

    Example: memlab graph trace my.memlab 3 --depth 2
    """
    paths = lab.graph.trace(memory, depth)
    return paths.frame.to_dicts(), paths.tree


@command(
    graph, read, verb=f"{_GRAPH}.similar", options={"limit": "Number of similar memories to list."}
)
@click.argument("memory", type=int)
def similar(lab: memlab.Lab, memory: int, limit: int) -> Report:
    """List the memories of LAB that are most similar to MEMORY.

    Example: memlab graph similar my.memlab 3
    """
    rows = lab.graph.similar(memory, limit=limit).to_dicts()
    return rows, [f"{row['similarity']:.3f}  #{row['memory_id']}  {row['text']}" for row in rows]
