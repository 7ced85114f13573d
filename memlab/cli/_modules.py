"""The modules of a code base: scanned, listed, found by a task."""

from __future__ import annotations

from pathlib import Path

import click

import memlab
from memlab.cli._base import LAB, as_json_option, existing, main, tell
from memlab.cli._input import LocalPath, Text
from memlab.display import clip
from memlab.subjects.modules.module_map import ModuleMap


@main.command()
@LAB
@click.argument("folder", type=LocalPath())
@click.option("--project", help="What the project is called in LAB; the folder's name unless given.")
@as_json_option
def scan(lab: Path, folder: Path, project: str | None, as_json: bool) -> None:
    """Read the code in FOLDER, without running it, and keep its modules, commands and conventions in LAB.

    LAB is made if it is new. Conventions are shown for review, and are not remembered.
    """
    with memlab.open(lab) as opened:
        found = opened.modules.scan(folder, project=project, progress=not as_json)
    tell(_report(found), as_json=as_json, text=lambda: _text(found, rules=True))


@main.command()
@LAB
@click.argument("task", required=False, type=Text())
@click.option("--project", help="Which project, where LAB has maps of several.")
@click.option("--limit", type=click.IntRange(1), default=3, show_default=True, help="Modules of a TASK at most.")
@as_json_option
def modules(lab: Path, task: str | None, project: str | None, limit: int, as_json: bool) -> None:
    """The modules of a project in LAB and how well each is known; with a TASK those that it speaks of."""
    with existing(lab, read_only=True) as opened:
        known = opened.modules.projects()
        if project is None and len(known) != 1:
            there = ", ".join(known) or "none was scanned yet, see memlab scan"
            raise click.UsageError(f"Which --project? LAB has: {there}.")
        named = project if project is not None else known[0]
        if task is not None:
            rows = opened.modules.find(task, project=named, limit=limit).to_dicts()
            lines = [f"{row['score']:6.2f}  {row['module']}  ({', '.join(row['why'])})" for row in rows]
            tell(rows, as_json=as_json, text=lambda: "\n".join(lines) or "No module is named by these words.")
            return
        found = opened.modules.map(named)
    tell(_report(found), as_json=as_json, text=lambda: _text(found, rules=False))


def _report(found: ModuleMap) -> dict[str, object]:
    return {
        "project": found.project,
        "version": found.version,
        "modules": found.frame.to_dicts(),
        "commands": found.commands.to_dicts(),
        "conventions": found.conventions.select("text", "files").to_dicts(),
        "frameworks": list(found.frameworks),
        "languages": dict(found.languages),
        "left_out": dict(found.left_out),
    }


def _text(found: ModuleMap, *, rules: bool) -> str:
    rows = found.frame.select("confidence", "module", "description").rows()
    lines = [repr(found)[1:-1], *(f"  {word:<8} {name}  {clip(said, 80)}" for word, name, said in rows)]
    lines += [f"{what}: {command}" for what, command, _ in found.commands.rows()]
    if rules and found.conventions.height:
        lines.append("Conventions, not remembered before you choose them:")
        lines += [
            f"  {clip(text, 100)}  ({', '.join(files)})" for text, files in found.conventions["text", "files"].rows()
        ]
    return "\n".join(lines)
