"""For agents that live on a lab: extraction, programs, attribution, modules of a code base, the switch, the server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.io.formats import Options, read_file
from memlab.kernel.base.display import clip
from memlab.kernel.base.printable import printable
from memlab.subjects.identity import ROLES, Role
from memlab.subjects.loopback import HOST
from memlab.subjects.modules.module_map import ModuleMap
from memlab.ui.cli._base import (
    LAB,
    InputFile,
    LocalPath,
    Text,
    Told,
    agent,
    command,
    existing,
    fields_of,
    main,
    make,
    read,
    read_text,
    tell,
    write,
    write_if,
)

_KEY = "MEMLAB_MODEL_KEY"
_AGENTS = "memlab.subjects.agent_verbs.agents:LabAgents"


@command(
    agent,
    write_if("commit"),
    verb=f"{_AGENTS}.extract",
    options={
        "agent": "Whose memories they become.",
        "project": "",
        "session": "",
        "otherwise": "What becomes of a message that the model does not read.",
    },
)
@click.argument("file", type=InputFile())
@click.option("--format", "format_", help="Else it is guessed; see: memlab.load.")
@click.option(
    "--model",
    "url",
    metavar="URL",
    help=f"Ask a model at URL, such as http://127.0.0.1:8080/v1. Key: {_KEY}.",
)
@click.option("--model-name", help="What its server calls it.")
@click.option("--model-calls", type=click.IntRange(1), help="Most requests. Default: any number.")
@click.option(
    "--model-tokens",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Most tokens.",
)
@click.option("--model-cache", type=LocalPath(), help="Keep answers in this folder.")
@click.option("--commit", is_flag=True, help="Store them.")
def extract(
    lab: memlab.Lab,
    file: Path,
    format_: str | None,
    url: str | None,
    model_name: str | None,
    model_calls: int | None,
    model_tokens: int,
    model_cache: Path | None,
    commit: bool,
    **options: Any,
) -> Told:
    """Propose facts and memories of the messages in FILE (- for standard input), as operations.

    Nothing is stored in LAB without --commit.
    """
    if (url is None) is not (model_name is None):
        raise click.UsageError("--model and --model-name belong together.")
    model = None
    if url is not None and model_name is not None:
        key = os.environ.get(_KEY) or None
        model = memlab.LanguageModel(
            url, model_name, key=key, calls=model_calls, tokens=model_tokens, cache=model_cache
        )
    messages = []
    for _, row in read_file(file, Options(format=format_)).rows:
        messages.append({name: row[name] for name in ("text", "speaker", "at") if name in row})
    extracted = lab.agents.extract(messages, model=model, **options)
    stored = list(lab.agents.commit(extracted).ids) if commit else []
    asked = [] if extracted.asked is None else extracted.asked.lines
    report = fields_of(extracted, "messages", proposed="frame") | {"stored": stored, "asked": asked}
    return report, [repr(extracted), *([f"stored as {len(stored)} memories"] if commit else [])]


@command(agent)
@LAB
@click.argument("file", type=InputFile())
@click.option("--yes", is_flag=True, help="Consent to operations that change something.")
def run(lab: Path, file: Path, yes: bool, as_json: bool) -> Told:
    """Run the operations in FILE (- for standard input), such as (remember "tabs" "preference" 0.8 "30d"), on LAB.

    All are checked first. Without --yes it asks before anything is changed, and --json refuses instead of asking.
    """
    from memlab.subjects.programs.program import read_program

    program = read_program(read_text(file), file=str(file))
    changing = [call for call in program.calls if call.operation.does != "reads"]
    if changing and not yes:
        shown = "\n".join(
            f"  {call.operation.does:<8} {' '.join(call.source.split())[:160]}" for call in changing
        )
        if as_json:
            raise memlab.InputError(f"{file} changes the lab; consent with --yes:\n{shown}")
        click.confirm(f"{printable(shown)}\nRun this on {lab}?", abort=True)
    with memlab.open(lab) if changing else existing(lab) as opened:
        ran = opened.upkeep.operations.run(file, consent=bool(changing))
    return json.loads(ran.json()), ran


@command(agent, write)
@click.option(
    "--recall", "decision", type=int, required=True, help="The recall, as `memlab recall` prints."
)
@click.option(
    "--answer",
    type=click.File(errors="replace"),
    required=True,
    help="A file with the answer, or -.",
)
@click.option(
    "--reply", type=click.File(errors="replace"), help="A file with what the user said next."
)
def attribute(lab: memlab.Lab, decision: int, answer: Any, reply: Any) -> Told:
    """Read from an answer which memories of a recall it was made of, and log that as rewards."""
    credited = lab.agents.credits.answer(
        answer.read(), decision, reply=None if reply is None else reply.read()
    )
    report = fields_of(credited, "decision", "policy", "cut", "listed", memories="frame")
    return report | {"logged": len(credited)}, credited


@command(agent, read)
@click.option(
    "--since", metavar="WHEN", help="Leave out what came before this instant, such as 2026-07-01."
)
@click.option("--report", type=LocalPath(), help="Write a page to this file as well.")
def metrics(lab: memlab.Lab, since: str | None, report: Path | None) -> Told:
    """What the contexts given from LAB were worth: tokens injected, referenced, saved."""
    measured = lab.agents.metrics(since=since)
    if report is not None:
        measured.report(report)
    values = dict(measured.frame.select("metric", "value").iter_rows())
    return {"metrics": values, **fields_of(measured, "gotchas", "contexts")}, measured


_SWITCH = {
    "project": "For this project; for all unless given.",
    "reason": "Why; it is kept in the log.",
}


@command(agent, write, verb=f"{_AGENTS}.switch_off", options=_SWITCH)
def switch_off(lab: memlab.Lab, project: str | None, reason: str) -> Told:
    """Switch memory off: nothing is remembered in LAB and recalls return nothing, until switch-on."""
    return _switched(lab.agents.switch_off(project, reason=reason).to_dicts())


@command(agent, write, verb=f"{_AGENTS}.switch_on", options={**_SWITCH, "by": "Who consents."})
def switch_on(lab: memlab.Lab, project: str | None, reason: str, by: str) -> Told:
    """Switch memory on again, after switch-off. Projects that were switched off by themselves stay off.

    Under a pack that needs consent this is the consent, for the project or else for what belongs to none.
    """
    return _switched(lab.agents.switch_on(project, reason=reason, by=by).to_dicts())


def _switched(rows: list[dict[str, Any]]) -> Told:
    names = ["all" if row["project"] is None else printable(row["project"]) for row in rows]
    off = [{**row, "since": row["since"].isoformat()} for row in rows]
    return {"off": off}, f"Memory is off for {', '.join(names)}." if names else "Memory is on."


# -- modules of a code base -----------------------------------------------------------------------------------------


@command(agent, make)
@click.argument("folder", type=LocalPath())
@click.option(
    "--project", help="What the project is called in LAB; the folder's name unless given."
)
def scan(lab: memlab.Lab, folder: Path, project: str | None, as_json: bool) -> Told:
    """Read the code in FOLDER, without running it, and keep its modules, commands and conventions in LAB.

    LAB is made if it is new. Conventions are shown for review, and are not remembered.
    """
    return _module_report(
        lab.agents.modules.scan(folder, project=project, progress=not as_json), rules=True
    )


_PROJECT = click.option("--project", help="Which project, where LAB has maps of several.")


@command(agent, write_if("accept"))
@click.argument("task", required=False, type=Text())
@_PROJECT
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Modules of a TASK at most.",
)
@click.option(
    "--html",
    type=LocalPath(),
    help="Write the map and the conventions to review as a page to this path.",
)
@click.option(
    "--conventions", is_flag=True, help="List the conventions to review, with their numbers."
)
@click.option(
    "--accept",
    type=click.IntRange(1),
    multiple=True,
    metavar="NUMBER",
    help="Remember this convention.",
)
def modules(
    lab: memlab.Lab,
    task: str | None,
    project: str | None,
    limit: int,
    html: Path | None,
    conventions: bool,
    accept: tuple[int, ...],
) -> Told:
    """The modules of a project in LAB and how well each is known; with a TASK those that it speaks of."""
    name = _project_of(lab, project)
    if task is not None:
        rows = lab.agents.modules.find(task, project=name, limit=limit).to_dicts()
        lines = [f"{row['score']:6.2f}  {row['module']}  ({', '.join(row['why'])})" for row in rows]
        return rows, lines or "No module is named by these words."
    scanned = lab.agents.modules.map(name)
    if beyond := [number for number in accept if number > scanned.conventions.height]:
        raise memlab.InputError(
            f"There is no convention {beyond[0]}: {name} has {scanned.conventions.height}."
        )
    if accept:
        kept = lab.remember(scanned.conventions[[number - 1 for number in dict.fromkeys(accept)]])
        return kept.outcomes.to_dicts(), kept
    if html is not None:
        scanned.to_html(html)
    if conventions:
        rows = scanned.conventions.select("text", "files").with_row_index("number", 1).to_dicts()
        lines = [f"{row['number']:>3}  {row['text']}  ({', '.join(row['files'])})" for row in rows]
        return rows, lines or f"No file of {name} states a convention."
    return _module_report(scanned)


def _project_of(lab: memlab.Lab, project: str | None) -> str:
    known = lab.agents.modules.projects()
    if project is None and len(known) != 1:
        there = ", ".join(known) or "none was scanned yet, see memlab agent scan"
        raise click.UsageError(f"Which --project? LAB has: {there}.")
    return project or known[0]


@command(agent, write)
@click.argument("files", nargs=-1, required=True)
@_PROJECT
@click.option("--session", help="Which session touched them.")
def touch(
    lab: memlab.Lab, files: tuple[str, ...], project: str | None, session: str | None
) -> Told:
    """Log FILES that a session read or wrote: their modules become better known.

    With - they come from standard input: a path a line, or the JSON that a coding agent gives to a hook after a tool,
    of which the file and the session are read. Where LAB has no map of the project nothing is logged, and it is said.
    """
    given: list[Any] = []
    for file in files:
        if file == "-":
            items, named = _touched_items(Text().convert("-", None, click.get_current_context()))
            given += items
            session = session or named
        else:
            given.append(file)
    touched = lab.agents.modules.touch(given, project=_project_of(lab, project), session=session)
    return _module_fields(touched), repr(touched)[1:-1]


def _touched_items(text: str) -> tuple[list[Any], str | None]:
    """Read what was touched, and the session that a hook names."""
    try:
        read = json.loads(text)
    except ValueError:
        return [line.strip() for line in text.splitlines() if line.strip()], None
    items = read if isinstance(read, list) else [read]
    named = read.get("session_id") if isinstance(read, dict) else None
    return items, named if isinstance(named, str) else None


def _module_fields(modules: ModuleMap) -> dict[str, object]:
    names = ("project", "version", "commands", "frameworks", "languages", "left_out")
    conventions = modules.conventions.select("text", "files").to_dicts()
    return fields_of(modules, *names, modules="frame") | {"conventions": conventions}


def _module_report(modules: ModuleMap, *, rules: bool = False) -> Told:
    rows = modules.frame.select("confidence", "module", "description").rows()
    lines = [
        repr(modules)[1:-1],
        *(f"  {word:<8} {name}  {clip(about, 80)}" for word, name, about in rows),
    ]
    lines += [f"{what}: {command}" for what, command, _ in modules.commands.rows()]
    if rules and modules.conventions.height:
        lines.append("Conventions, not remembered before you choose them:")
        for text, files in modules.conventions["text", "files"].rows():
            lines.append(f"  {clip(text, 100)}  ({', '.join(files)})")
    return _module_fields(modules), lines


# -- the Model Context Protocol -------------------------------------------------------------------------------------


@command(main)
@LAB
@click.option(
    "--http",
    is_flag=True,
    help="Serve streamable HTTP to this machine, with a token, until Ctrl-C.",
)
@click.option("--host", default=HOST, show_default=True, help="An address of this machine alone.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option(
    "--clients",
    type=click.Path(dir_okay=False, path_type=Path),
    help="TOML: a token and a role for each.",
)
@click.option("--read-only", is_flag=True, help="Tools that read, and no log of recalls.")
@click.option(
    "--project",
    help="Remember into this project, and recall from it and from what belongs to none.",
)
@click.option(
    "--viewer",
    help="Who asks and writes: user, agent:coder ... What is private to others is not there.",
)
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="owner",
    show_default=True,
    help="What clients may do.",
)
@click.option("--pack", help="Let this pack decide from now on (a name or a .hy file).")
@click.option(
    "--existing",
    "only_existing",
    is_flag=True,
    help="Make no lab: LAB is on a disk that may be away.",
)
def serve(
    lab: Path,
    http: bool,
    host: str,
    port: int,
    clients: Path | None,
    read_only: bool,
    project: str | None,
    viewer: str | None,
    role: Role,
    pack: str | None,
    only_existing: bool,
    as_json: bool,
) -> None:
    """Serve LAB, which is made if it is new, to agents by the Model Context Protocol.

    A host starts it as a command and talks to it over standard input and output: five tools (remember, recall, forget,
    feedback, context), and the rest to read. A reader recalls, a member also remembers and changes what it created
    alone, an owner changes whatever it sees. Several may serve one lab at once. It needs: pip install 'memlab[mcp]'.

    Over HTTP all clients send the token in MEMLAB_TOKEN (else one is made and printed), or each its own, by --clients:
    a table for each, [coder] with token = "..." and role = "member", in a file that its owner alone can read. It asks
    and writes as agent:coder, or as the viewer, and in the project, that the table names.
    """
    from memlab.io.serving import serve_http, serve_stdio

    if clients is not None and not http:
        raise click.UsageError(
            "--clients goes with --http: over standard input and output there is one client."
        )
    if pack is not None and read_only:
        raise click.UsageError("--pack writes to the lab, so it does not go with --read-only.")
    with (
        existing(lab, read_only=True)
        if read_only
        else memlab.open(lab, create=not only_existing) as opened
    ):
        if pack is not None and memlab.load_pack(pack).hash != opened.policies.pack.hash:
            opened.policies.use(pack, reason="memlab serve")
        who: dict[str, Any] = {"project": project, "viewer": viewer, "role": role}
        if not http:
            serve_stdio(opened, session=f"mcp-{opened.io.store.clock()}-{os.getpid()}", **who)
            return

        def address(url: str, secret: str) -> None:
            about = {"url": url, "lab": str(lab), **({"token": secret} if secret else {})}
            line = (
                f"Authorization: Bearer {secret}"
                if secret
                else f"Each client has its token: {clients}"
            )
            tell((about, f"{url}\n{line}\nCtrl-C ends it."), as_json=as_json)

        token = None if clients else os.environ.get("MEMLAB_TOKEN") or None
        serve_http(opened, host=host, port=port, token=token, clients=clients, tell=address, **who)
