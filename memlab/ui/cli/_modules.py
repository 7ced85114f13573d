"""The modules of a code base: scanned, listed, found by a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.kernel.base.display import clip
from memlab.subjects.modules.module_map import ModuleMap
from memlab.ui.cli._base import LAB, agent, as_json_option, existing, tell
from memlab.ui.cli._input import LocalPath, Text


@agent.command()
@LAB
@click.argument("folder", type=LocalPath())
@click.option("--project", help="What the project is called in LAB; the folder's name unless given.")
@as_json_option
def scan(lab: Path, folder: Path, project: str | None, as_json: bool) -> None:
    """Read the code in FOLDER, without running it, and keep its modules, commands and conventions in LAB.

    LAB is made if it is new. Conventions are shown for review, and are not remembered.
    """
    with memlab.open(lab) as opened:
        found = opened.agents.modules.scan(folder, project=project, progress=not as_json)
    tell(_report(found), as_json=as_json, text=lambda: _text(found, rules=True))


@agent.command()
@LAB
@click.argument("task", required=False, type=Text())
@click.option("--project", help="Which project, where LAB has maps of several.")
@click.option("--limit", type=click.IntRange(1), default=3, show_default=True, help="Modules of a TASK at most.")
@click.option("--html", type=LocalPath(), help="Write the map and the conventions to review as a page to this path.")
@click.option("--conventions", is_flag=True, help="List the conventions to review, with their numbers.")
@click.option("--accept", type=click.IntRange(1), multiple=True, metavar="NUMBER", help="Remember this convention.")
@as_json_option
def modules(
    lab: Path,
    task: str | None,
    project: str | None,
    limit: int,
    html: Path | None,
    conventions: bool,
    accept: tuple[int, ...],
    as_json: bool,
) -> None:
    """The modules of a project in LAB and how well each is known; with a TASK those that it speaks of."""
    with existing(lab, read_only=not accept) as opened:
        known = opened.agents.modules.projects()
        if project is None and len(known) != 1:
            there = ", ".join(known) or "none was scanned yet, see memlab agent scan"
            raise click.UsageError(f"Which --project? LAB has: {there}.")
        named = project if project is not None else known[0]
        if task is not None:
            rows = opened.agents.modules.find(task, project=named, limit=limit).to_dicts()
            lines = [f"{row['score']:6.2f}  {row['module']}  ({', '.join(row['why'])})" for row in rows]
            tell(rows, as_json=as_json, text=lambda: "\n".join(lines) or "No module is named by these words.")
            return
        found = opened.agents.modules.map(named)
        if beyond := [number for number in accept if number > found.conventions.height]:
            raise memlab.InputError(f"There is no convention {beyond[0]}: {named} has {found.conventions.height}.")
        if accept:
            chosen = found.conventions[[number - 1 for number in dict.fromkeys(accept)]]
            kept = opened.remember(chosen)
            tell(kept.outcomes.to_dicts(), as_json=as_json, text=lambda: repr(kept))
            return
    if html is not None:
        found.to_html(html)
    if conventions:
        rows = found.conventions.select("text", "files").with_row_index("number", 1).to_dicts()
        lines = [f"{row['number']:>3}  {row['text']}  ({', '.join(row['files'])})" for row in rows]
        tell(rows, as_json=as_json, text=lambda: "\n".join(lines) or f"No file of {named} states a convention.")
        return
    tell(_report(found), as_json=as_json, text=lambda: _text(found, rules=False))


@agent.command()
@LAB
@click.argument("files", nargs=-1, required=True)
@click.option("--project", help="Which project, where LAB has maps of several.")
@click.option("--session", help="Which session touched them.")
@as_json_option
def touch(lab: Path, files: tuple[str, ...], project: str | None, session: str | None, as_json: bool) -> None:
    """Log FILES that a session read or wrote: their modules become better known.

    With - they come from standard input: a path a line, or the JSON that a coding agent gives to a hook after a tool,
    of which the file and the session are read. Where LAB has no map of the project nothing is logged, and it is said.
    """
    given: list[Any] = []
    for file in files:
        if file == "-":
            items, named = _of_standard_input(Text().convert("-", None, click.get_current_context()))
            given += items
            session = session or named
        else:
            given.append(file)
    with existing(lab) as opened:
        known = opened.agents.modules.projects()
        if project is None and len(known) != 1:
            there = ", ".join(known) or "none was scanned yet, see memlab agent scan"
            raise click.UsageError(f"Which --project? LAB has: {there}.")
        found = opened.agents.modules.touch(given, project=project or known[0], session=session)
    tell(_report(found), as_json=as_json, text=lambda: repr(found)[1:-1])


def _of_standard_input(text: str) -> tuple[list[Any], str | None]:
    """What was touched, and the session that a hook names."""
    try:
        read = json.loads(text)
    except ValueError:
        return [line.strip() for line in text.splitlines() if line.strip()], None
    items = read if isinstance(read, list) else [read]
    named = read.get("session_id") if isinstance(read, dict) else None
    return items, named if isinstance(named, str) else None


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
