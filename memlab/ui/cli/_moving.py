"""Memories out of a lab and into it: export, move, load, join, run, mirror."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

import memlab
from memlab.kernel.base.printable import printable
from memlab.ui.cli._base import LAB, agent, as_json_option, existing, keeping, main, say, tell, upkeep
from memlab.ui.cli._input import InputFile, LocalPath

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
    from memlab.subjects.programs.program import read_program

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
