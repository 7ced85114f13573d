"""What time does to a lab: upkeep, and summaries that replace what is old."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click
import polars as pl

import memlab
from memlab.kernel.base.printable import printable
from memlab.ui.cli._base import (
    LAB,
    InputFile,
    LocalPath,
    agent,
    as_json_option,
    existing,
    graph,
    keeping,
    main,
    say,
    tell,
    upkeep,
)


@upkeep.command()
@LAB
@click.option("--at", metavar="WHEN", help="As of this instant, such as 2026-07-01; now unless given.")
@as_json_option
def maintain(lab: Path, at: str | None, as_json: bool) -> None:
    """Record what time has done to LAB: statuses, labels, edges to prune, clusters that are due.

    A second pass as of the same instant writes nothing.
    """
    with existing(lab) as opened:
        found = opened.upkeep.maintain(at, progress=not as_json)
    report = {
        "at": found.at.isoformat(),
        "pack": found.pack,
        "hash": found.pack_hash,
        "changes": found.counts.to_dicts(),
        "pruned": found.pruned.height,
        "due": found.due["id"].to_list(),
        "events": list(found.events),
    }
    tell(report, as_json=as_json, text=lambda: repr(found)[1:-1])


@upkeep.command()
@LAB
@click.option("--older-than", "days", type=float, metavar="DAYS", help="In place of the pack's consolidate-days.")
@click.option("--keep", type=int, help="How many of each group stay beside their summary: the most important.")
@click.option("--project", help="Only what belongs to this project.")
@click.option("--by", type=click.Choice(["clusters", "communities"]), default="clusters", show_default=True)
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would become of what.")
@as_json_option
def consolidate(
    lab: Path, days: float | None, keep: int | None, project: str | None, by: str, dry_run: bool, as_json: bool
) -> None:
    """Let one summary stand for many old memories of a cluster of LAB; undelete undoes one.

    The live pack's consolidate policy says which memories may go. A summary has some of their own sentences, not all:
    see with --dry-run what would be left.
    """
    with existing(lab, read_only=dry_run) as opened:
        found = opened.upkeep.consolidation.run(
            older_than_days=days,
            keep=keep,
            project=project,
            by="communities" if by == "communities" else "clusters",
            dry_run=dry_run,
        )
    report = {"at": found.at.isoformat(), "pack": found.pack, "event": found.event, "dry_run": found.dry_run}
    rows = found.frame.to_dicts()
    lines = [
        f"{'would be made' if row['summary'] is None else '#' + str(row['summary'])}  of {row['count']}, {row['of']}: "
        f"{row['text'][:100]}"
        for row in rows
    ]
    tell({**report, "summaries": rows}, as_json=as_json, text=lambda: "\n".join([repr(found)[1:-1], *lines]))


@agent.command("switch-off")
@LAB
@click.option("--project", help="For this project; for all unless given.")
@click.option("--reason", default="", help="Why; it is kept in the log.")
@as_json_option
def switch_off(lab: Path, project: str | None, reason: str, as_json: bool) -> None:
    """Switch memory off: nothing is remembered in LAB and recalls return nothing, until switch-on."""
    with existing(lab) as opened:
        off = opened.agents.switch_off(project, reason=reason)
    _tell_off(off, as_json=as_json)


@agent.command("switch-on")
@LAB
@click.option("--project", help="For this project; for all unless given.")
@click.option("--reason", default="", help="Why; it is kept in the log.")
@click.option("--by", default="user", show_default=True, help="Who consents.")
@as_json_option
def switch_on(lab: Path, project: str | None, reason: str, by: str, as_json: bool) -> None:
    """Switch memory on again, after switch-off. Projects that were switched off by themselves stay off.

    Under a pack that needs consent this is the consent, for the project or else for what belongs to none.
    """
    with existing(lab) as opened:
        off = opened.agents.switch_on(project, reason=reason, by=by)
    _tell_off(off, as_json=as_json)


def _tell_off(off: pl.DataFrame, *, as_json: bool) -> None:
    names = ["all" if name is None else printable(name) for name in off["project"].to_list()]
    rows = [{**row, "since": row["since"].isoformat()} for row in off.to_dicts()]
    text = f"Memory is off for {', '.join(names)}." if names else "Memory is on."
    tell({"off": rows}, as_json=as_json, text=lambda: text)


# -- Checking a lab's files, copying it, and putting a copy back --


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
@as_json_option
def rebuild(lab: Path, as_json: bool) -> None:
    """Make again what corrections of earlier versions left in old words in LAB: summaries, values of facts.

    `memlab upkeep check` lists it. What superseded what in the past stays as it is.
    """
    with existing(lab) as opened:
        rows = opened.upkeep.review.rebuild().to_dicts()
    lines = [f"memory {row['memory_id']}: {row['field']}" for row in rows]
    tell({"rebuilt": rows}, as_json=as_json, text=lambda: "\n".join([*lines, f"{len(rows):,} fields rebuilt"]))


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


# -- Memories out of a lab and into it: export, move, load, join, run, mirror --

_EXPORTS = click.Choice(["jsonl", "parquet", "markdown", "sexp"])


@upkeep.command()
@LAB
@click.argument("path", type=LocalPath())
@click.option("--format", "format_", type=_EXPORTS, help="Else the suffix of PATH says it.")
@click.option("--project", help="Only the memories of this project.")
@click.option("--no-policies", is_flag=True, help="Leave the pack and its history out.")
@click.option("--overwrite", is_flag=True, help="Replace what is at PATH.")
@as_json_option
def export(
    lab: Path, path: Path, format_: str | None, project: str | None, no_policies: bool, overwrite: bool, as_json: bool
) -> None:
    """Write the memories of LAB to PATH: .jsonl, .md, .sexp, .parquet, or a folder of tables."""
    with keeping(lab) as opened:
        written = opened.io.export(path, format=format_, project=project, policies=not no_policies, overwrite=overwrite)
        frame = opened.memories
    count = len(frame) if project is None else int((frame["project"] == project).sum())
    report = {"path": str(written), "memories": count}
    tell(report, as_json=as_json, text=lambda: f"{count:,} memories in {written}")


@upkeep.command("move")
@LAB
@click.argument("target", type=LocalPath())
@click.option("--exclude", multiple=True, metavar="PROJECT", help="Leave this project here. May be repeated.")
@click.option("--preview", is_flag=True, help="Only say what would go.")
@as_json_option
def move_command(lab: Path, target: Path, exclude: tuple[str, ...], preview: bool, as_json: bool) -> None:
    """Bring the memories of LAB into the lab TARGET, which is made if it is new, and mark LAB as synced.

    Secrets that are found are redacted. What is there already is not added again.
    """
    with existing(lab) as opened:
        if preview:
            seen = opened.io.preview(exclude)
            report = {"memories": seen.memories, "projects": seen.frame.to_dicts()}
            tell(report, as_json=as_json, text=lambda: f"{seen!r}\n{seen.frame}")
            return
        moved = opened.io.move_to(target, exclude=exclude)
    report = {
        "target": str(target),
        "added": moved.added,
        "known": int(moved.frame["known"].sum()),
        "purged": int(moved.frame["purged"].sum()),
        "edges": moved.edges,
        "redacted": moved.redacted,
    }
    tell(report, as_json=as_json, text=lambda: repr(moved))


def _columns(given: tuple[str, ...]) -> dict[str, str | None]:
    return {field: column or None for field, _, column in (one.partition("=") for one in given)}


@main.command()
@LAB
@click.argument("files", type=InputFile(), nargs=-1, required=True)
@click.option("--format", "format_", help="Else it is guessed; see: memlab.load.")
@click.option("--column", "columns", multiple=True, metavar="FIELD=COLUMN", help="text=body; at= for no time.")
@click.option("--project", help="Give this project to all of them.")
@click.option("--session", help="The session of what names none.")
@click.option("--linking", type=click.Choice(["off", "now", "later"]), help="Else the pack says it.")
@click.option("--policies", is_flag=True, help="Use the pack of an export as well.")
@click.option("--strict", is_flag=True, help="Stop at the first line that cannot be read.")
@click.option("--extract", is_flag=True, help="Also store the facts and observations found in the messages.")
@as_json_option
def load(
    lab: Path,
    files: tuple[Path, ...],
    format_: str | None,
    columns: tuple[str, ...],
    project: str | None,
    session: str | None,
    linking: str | None,
    policies: bool,
    strict: bool,
    extract: bool,
    as_json: bool,
) -> None:
    """Add to LAB, which is made if it is new, what FILES (- for standard input) hold.

    They are chats, transcripts, tables, exports, or folders of them.
    """
    with memlab.open(lab) as opened:
        for file in files:
            loaded = opened.load(
                file,
                format=format_,
                columns=_columns(columns),
                project=project,
                session=session,
                linking=linking,
                policies=policies,
                strict=strict,
                extract=extract,
            )
            report = {
                "source": loaded.source,
                **{what: loaded.count(what) for what in ("added", "known", "purged", "skipped")},
                "edges": loaded.edges,
                "extracted": loaded.extracted,
                "redacted": len(loaded.redacted),
                "registers": list(loaded.registers),
                "left_out": dict(loaded.left_out),
                "why_skipped": dict(loaded.skipped),
                "guessed": loaded.guessed.rows(),
            }
            tell(report, as_json=as_json, text=partial(repr, loaded))


@upkeep.command()
@LAB
@click.argument("other", type=LocalPath())
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@as_json_option
def join(lab: Path, other: Path, dry_run: bool, as_json: bool) -> None:
    """Join OTHER, a lab or an export of one, into LAB: of what both have, the later change stands."""
    with existing(lab, read_only=dry_run) as opened:
        joined = opened.io.join(other, dry_run=dry_run)
    report = {
        "source": joined.source,
        **{what: joined.count(what) for what in ("added", "edited", "status", "conflict")},
        "edges": joined.edges,
        "known": joined.known,
        "kept_away": joined.kept_away,
        "purged": list(joined.purged),
        "redacted": len(joined.redacted),
        "dry_run": joined.dry_run,
        "rows": joined.frame.rows(named=True),
    }
    tell(report, as_json=as_json, text=lambda: "\n".join([repr(joined), *map(_conflict, joined.conflicts.rows())]))


def _conflict(row: tuple[int, str, str, str, str]) -> str:
    id, _, before, after, stands = row
    return f"conflict, memory {id}: here {before!r}, there {after!r}; {stands} stands"


@agent.command()
@LAB
@click.argument("file", type=InputFile())
@click.option("--yes", is_flag=True, help="Consent to operations that change something.")
@as_json_option
def run(lab: Path, file: Path, yes: bool, as_json: bool) -> None:
    """Run the operations in FILE (- for standard input), such as (remember "tabs" "preference" 0.8 "30d"), on LAB.

    All are checked first. Without --yes it asks before anything is changed, and --json refuses instead of asking.
    """
    from memlab.subjects.programs import read_program

    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise memlab.InputError(f"Cannot read the operations in {file}: {error}.") from None
    program = read_program(source, file=str(file))
    changing = [call for call in program.calls if call.operation.does != "reads"]
    if changing and not yes:
        shown = "\n".join(f"  {call.operation.does:<8} {' '.join(call.source.split())[:160]}" for call in changing)
        if as_json:
            raise memlab.InputError(f"{file} changes the lab; consent with --yes:\n{shown}")
        click.confirm(f"{printable(shown)}\nRun this on {lab}?", abort=True)
    with memlab.open(lab) if changing else existing(lab) as opened:
        ran = opened.upkeep.operations.run(file, consent=bool(changing))
    tell(json.loads(ran.json()), as_json=as_json, text=lambda: repr(ran))


@upkeep.command()
@LAB
@click.argument("folder", type=LocalPath())
@click.option("--every", type=click.FloatRange(min=0, min_open=True), help="Keep on, so many seconds apart.")
@as_json_option
def mirror(lab: Path, folder: Path, every: float | None, as_json: bool) -> None:
    """Keep a readable copy of LAB in FOLDER: one Markdown file a memory. With --every until it is interrupted."""
    with keeping(lab) as opened, opened.io.mirror(folder) as kept:
        tell({"folder": str(folder), "memories": len(kept)}, as_json=as_json, text=lambda: repr(kept))
        while every is not None:
            if kept.wait(every):
                return
            if changed := kept.update():
                say(json.dumps({"changed": changed}) if as_json else f"{changed} files changed")


# -- Edges and tags of a lab: link, tag --


@graph.command()
@LAB
@click.argument("source", type=int)
@click.argument("target", type=int)
@click.option("--relation", default="relates-to", show_default=True, help="What joins them, such as depends-on.")
@click.option("--weight", type=click.FloatRange(0, 1), default=1.0, show_default=True)
@as_json_option
def link(lab: Path, source: int, target: int, relation: str, weight: float, as_json: bool) -> None:
    """Join two memories of LAB by an edge from SOURCE to TARGET."""
    with existing(lab) as opened:
        opened.graph.link(source, target, relation, weight=weight)
        made = opened.edges.filter(pl.col("to_kind") == "memory")
    made = made.filter(pl.col("source") == source, pl.col("target") == target)
    row = made.tail(1).select("source", "target", "relation", "weight").to_dicts()[0]
    tell(row, as_json=as_json, text=lambda: f"#{source} {row['relation']} #{target}")


@graph.command()
@LAB
@click.argument("memories", type=int, nargs=-1)
@click.option("--tag", "tags", multiple=True, help="A tag to give; may be given several times.")
@click.option("--remove", is_flag=True, help="Take the tags away instead.")
@click.option("--describe", help="Say what the one --tag is for.")
@as_json_option
def tag(
    lab: Path, memories: tuple[int, ...], tags: tuple[str, ...], remove: bool, describe: str | None, as_json: bool
) -> None:
    """Give tags to MEMORIES of LAB; without arguments, list the tags that there are.

    memlab graph tag a.memlab 3 7 --tag release
    """
    if memories and not tags:
        raise click.UsageError("Say which tag: --tag NAME.")
    if describe is not None and len(tags) != 1:
        raise click.UsageError("--describe says what one tag is for: give one --tag.")
    if not memories and tags and describe is None:
        raise click.UsageError("Say which memories bear the tag, by their ids.")
    with existing(lab, read_only=not tags) as opened:
        changed = opened.graph.tag(memories, tags, remove=remove) if memories else ()
        if describe is not None:
            opened.graph.describe_tag(tags[0], describe)
        known = opened.graph.tags()
    if memories:
        said = ", ".join(f"#{id}" for id in changed) or "no memory"
        tell({"changed": list(changed)}, as_json=as_json, text=lambda: f"{said} changed")
        return
    rows = known.to_dicts()
    lines = [f"{row['memories']:>6}  {row['tag']}  {row['description'] or ''}".rstrip() for row in rows]
    tell(rows, as_json=as_json, text=lambda: "\n".join(lines))
