"""Commands for agents: extraction, programs, attribution, modules, switch, server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.io.formats import Options, read_file
from memlab.kernel.base.disk import read_source_file
from memlab.kernel.base.display import clip
from memlab.kernel.base.printable import printable
from memlab.subjects.identity import ROLES, Role
from memlab.subjects.loopback import HOST
from memlab.subjects.modules.module_map import ModuleMap
from memlab.ui.cli._base import (
    LAB,
    MODEL_KEY,
    InputFile,
    LocalPath,
    Report,
    Text,
    agent,
    command,
    get_fields,
    main,
    make,
    open_existing,
    print_report,
    read,
    write,
    write_if,
)

# The class whose verbs the commands call.
_AGENTS = "memlab.subjects.agent_verbs.agents:LabAgents"


@command(
    agent,
    write_if("commit"),
    verb=f"{_AGENTS}.extract",
    options={
        "agent": "Agent that owns the memories.",
        "project": "Project of the memories.",
        "session": "Session of the messages.",
        "otherwise": "Treatment of messages that the model does not read.",
    },
)
@click.argument("file", type=InputFile())
@click.option("--format", "format_", help="Format of FILE. Default: detected from the contents.")
@click.option(
    "--model",
    "url",
    metavar="URL",
    help="Let the language model at URL read the messages, such as http://127.0.0.1:8080/v1. Its key "
    f"is read from the environment variable {MODEL_KEY}.",
)
@click.option("--model-name", help="Name of the language model on the server of --model.")
@click.option(
    "--model-calls",
    type=click.IntRange(1),
    help="Maximum number of requests to the model. Default: unlimited.",
)
@click.option(
    "--model-tokens",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Maximum number of tokens of all requests to the model and its answers.",
)
@click.option(
    "--model-cache", type=LocalPath(), help="Folder that caches the answers of the model."
)
@click.option(
    "--commit", is_flag=True, help="Store the proposed memories. Default: only print them."
)
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
) -> Report:
    """Propose facts and memories from the messages in FILE.

    - reads standard input. Proposals are printed as operations; --commit stores them in LAB.

    Example: memlab agent extract my.memlab chat.json --commit
    """
    if (url is None) is not (model_name is None):
        raise click.UsageError("--model and --model-name must be given together.")
    model = None
    if url is not None and model_name is not None:
        key = os.environ.get(MODEL_KEY) or None
        model = memlab.LanguageModel(
            url, model_name, key=key, calls=model_calls, tokens=model_tokens, cache=model_cache
        )
    messages = []
    for _, row in read_file(file, Options(format=format_)).rows:
        messages.append({name: row[name] for name in ("text", "speaker", "at") if name in row})
    extracted = lab.agents.extract(messages, model=model, **options)
    stored = list(lab.agents.commit(extracted).ids) if commit else []
    queries = [] if extracted.asked is None else extracted.asked.lines
    report = get_fields(extracted, "messages", proposed="frame") | {
        "stored": stored,
        "asked": queries,
    }
    return report, [repr(extracted), *([f"stored as {len(stored)} memories"] if commit else [])]


@command(agent)
@LAB
@click.argument("file", type=InputFile())
@click.option(
    "--yes", is_flag=True, help="Run operations that change the lab without asking for consent."
)
def run(lab: Path, file: Path, yes: bool, as_json: bool) -> Report:
    """Run the operations in FILE on LAB.

    An operation is written as (remember "tabs" "preference" 0.8 "30d"). If FILE is -, standard
    input is read. All operations are checked first. Changes need consent: by --yes, or by answering
    a question, which --json does not ask.

    Example: memlab agent run my.memlab steps.hy --yes
    """
    from memlab.subjects.programs.program import read_program

    program = read_program(read_source_file(file), file=str(file))
    changing = [call for call in program.calls if call.operation.does != "reads"]
    if changing and not yes:
        listing = "\n".join(
            f"  {call.operation.does:<8} {' '.join(call.source.split())[:160]}" for call in changing
        )
        if as_json:
            raise memlab.InputError(f"{file} changes the lab. Consent with --yes to:\n{listing}")
        click.confirm(f"{printable(listing)}\nRun this on {lab}?", abort=True)
    with memlab.open(lab) if changing else open_existing(lab) as opened:
        ran = opened.upkeep.operations.run(file, consent=bool(changing))
    return json.loads(ran.json()), ran


@command(agent, write)
@click.option(
    "--recall",
    "decision",
    type=int,
    required=True,
    help="Number of the recall that the answer used, as printed by `memlab recall`.",
)
@click.option(
    "--answer",
    type=click.File(errors="replace"),
    required=True,
    help="File with the text of the agent's answer; - is standard input.",
)
@click.option(
    "--reply", type=click.File(errors="replace"), help="File with the user's reply to the answer."
)
def attribute(lab: memlab.Lab, decision: int, answer: Any, reply: Any) -> Report:
    """Infer from an answer which recalled memories were used, and log rewards.

    Example: memlab agent attribute my.memlab --recall 12 --answer answer.txt
    """
    credited = lab.agents.credits.answer(
        answer.read(), decision, reply=None if reply is None else reply.read()
    )
    report = get_fields(credited, "decision", "policy", "cut", "listed", memories="frame")
    return report | {"logged": len(credited)}, credited


@command(agent, read)
@click.option(
    "--since", metavar="WHEN", help="Only contexts built since this time, such as 2026-07-01."
)
@click.option(
    "--report", type=LocalPath(), help="Also write the results as an HTML page to this file."
)
def metrics(lab: memlab.Lab, since: str | None, report: Path | None) -> Report:
    """Show how many tokens of the contexts of LAB were used, and how many tokens the contexts saved.

    Example: memlab agent metrics my.memlab --since 2026-07-01
    """
    measured = lab.agents.metrics(since=since)
    if report is not None:
        measured.report(report)
    values = dict(measured.frame.select("metric", "value").iter_rows())
    return {"metrics": values, **get_fields(measured, "gotchas", "contexts")}, measured


# Options of both switches.
_SWITCH = {
    "project": "Project. Default: all.",
    "reason": "Reason, for the log.",
}


@command(agent, write, verb=f"{_AGENTS}.switch_off", options=_SWITCH)
def switch_off(lab: memlab.Lab, project: str | None, reason: str) -> Report:
    """Switch memory off: nothing is stored in LAB, and recalls are empty.

    Example: memlab agent switch-off my.memlab --reason "private session"
    """
    return _report_switch(lab.agents.switch_off(project, reason=reason).to_dicts())


@command(
    agent, write, verb=f"{_AGENTS}.switch_on", options={**_SWITCH, "by": "Person who consents."}
)
def switch_on(lab: memlab.Lab, project: str | None, reason: str, by: str) -> Report:
    """Switch memory on again.

    Projects that were switched off separately stay off. Under a pack that requires consent, this command records
    the consent: for the project, or for memories without a project.

    Example: memlab agent switch-on my.memlab --by ada
    """
    return _report_switch(lab.agents.switch_on(project, reason=reason, by=by).to_dicts())


def _report_switch(rows: list[dict[str, Any]]) -> Report:
    """Build the report that lists the projects for which memory is off."""
    names = ["all" if row["project"] is None else printable(row["project"]) for row in rows]
    off = [{**row, "since": row["since"].isoformat()} for row in rows]
    return {"off": off}, f"Memory is off for {', '.join(names)}." if names else "Memory is on."


# -- modules of a code base -----------------------------------------------------------------------------------------


@command(agent, make)
@click.argument("folder", type=LocalPath())
@click.option("--project", help="Name of the project in LAB. Default: the name of the folder.")
def scan(lab: memlab.Lab, folder: Path, project: str | None, as_json: bool) -> Report:
    """Map the code in FOLDER: modules, commands and conventions.

    The code is read, not executed. The map is stored in LAB, which is created if it does not exist. Conventions are
    listed for review; `memlab agent modules --accept` remembers them.

    Example: memlab agent scan my.memlab src
    """
    return _report_modules(
        lab.agents.modules.scan(folder, project=project, progress=not as_json), rules=True
    )


# Options of several commands.
_PROJECT = click.option(
    "--project", help="Project of the map, if LAB has maps of several projects."
)


@command(agent, write_if("accept"))
@click.argument("task", required=False, type=Text())
@_PROJECT
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Maximum number of modules listed for TASK.",
)
@click.option(
    "--html",
    type=LocalPath(),
    help="Write the map and its conventions as a page to this path.",
)
@click.option(
    "--conventions",
    is_flag=True,
    help="List the conventions that the files of the project state, with their numbers.",
)
@click.option(
    "--accept",
    type=click.IntRange(1),
    multiple=True,
    metavar="NUMBER",
    help="Store the convention with this number, from --conventions, as a memory; may be repeated.",
)
def modules(
    lab: memlab.Lab,
    task: str | None,
    project: str | None,
    limit: int,
    html: Path | None,
    conventions: bool,
    accept: tuple[int, ...],
) -> Report:
    """List the modules of a project, with how well memory covers each module.

    With TASK, only modules that its words name are listed.

    Example: memlab agent modules my.memlab "fix the login"
    """
    # one command for four views: find, accept, list conventions, and the map
    name = _choose_project(lab, project)
    if task is not None:
        rows = lab.agents.modules.find(task, project=name, limit=limit).to_dicts()
        lines = [f"{row['score']:6.2f}  {row['module']}  ({', '.join(row['why'])})" for row in rows]
        return rows, lines or "No module matches these words."
    scanned = lab.agents.modules.map(name)
    if beyond := [number for number in accept if number > scanned.conventions.height]:
        raise memlab.InputError(
            f"There is no convention {beyond[0]}. {name} has {scanned.conventions.height}; list them with --conventions."
        )
    if accept:
        remembered = lab.remember(
            scanned.conventions[[number - 1 for number in dict.fromkeys(accept)]]
        )
        return remembered.outcomes.to_dicts(), remembered
    if html is not None:
        scanned.to_html(html)
    if conventions:
        rows = scanned.conventions.select("text", "files").with_row_index("number", 1).to_dicts()
        lines = [f"{row['number']:>3}  {row['text']}  ({', '.join(row['files'])})" for row in rows]
        return rows, lines or f"No file of {name} states a convention."
    return _report_modules(scanned)


def _choose_project(lab: memlab.Lab, project: str | None) -> str:
    """Return ``project``, or by default the only project with a map; otherwise raise UsageError."""
    projects = lab.agents.modules.projects()
    if project is None and len(projects) != 1:
        names = ", ".join(projects) or "none; run memlab agent scan first"
        raise click.UsageError(f"Give --project. Projects in LAB: {names}.")
    return project or projects[0]


@command(agent, write)
@click.argument("files", nargs=-1, required=True)
@_PROJECT
@click.option("--session", help="Session that read or wrote FILES.")
def touch(
    lab: memlab.Lab, files: tuple[str, ...], project: str | None, session: str | None
) -> Report:
    """Log that a session read or wrote FILES.

    The modules of these files then count as better known.

    - reads standard input: one path per line, or the JSON that a coding agent passes to a hook after a tool, with
    the file and the session. Without a map of the project nothing is logged, and a message says so.

    Example: memlab agent touch my.memlab src/auth.py --session monday
    """
    paths: list[Any] = []
    for file in files:
        if file == "-":
            items, hook_session = _read_touched(
                Text().convert("-", None, click.get_current_context())
            )
            paths += items
            session = session or hook_session
        else:
            paths.append(file)
    touched = lab.agents.modules.touch(
        paths, project=_choose_project(lab, project), session=session
    )
    return _get_module_fields(touched), repr(touched)[1:-1]


def _read_touched(text: str) -> tuple[list[Any], str | None]:
    """Return the files listed in a text, or the tool calls in a hook's JSON, and the hook's session or None."""
    try:
        read = json.loads(text)
    except ValueError:
        return [line.strip() for line in text.splitlines() if line.strip()], None
    items = read if isinstance(read, list) else [read]
    session = read.get("session_id") if isinstance(read, dict) else None
    return items, session if isinstance(session, str) else None


def _get_module_fields(modules: ModuleMap) -> dict[str, object]:
    """Return a module map as JSON values."""
    names = ("project", "version", "commands", "frameworks", "languages", "left_out")
    conventions = modules.conventions.select("text", "files").to_dicts()
    return get_fields(modules, *names, modules="frame") | {"conventions": conventions}


def _report_modules(modules: ModuleMap, *, rules: bool = False) -> Report:
    """Build the report of a module map: modules, commands and conventions."""
    rows = modules.frame.select("confidence", "module", "description").rows()
    lines = [
        repr(modules)[1:-1],
        *(f"  {word:<8} {name}  {clip(about, 80)}" for word, name, about in rows),
    ]
    lines += [f"{what}: {command}" for what, command, _ in modules.commands.rows()]
    if rules and modules.conventions.height:
        lines.append("Conventions (remember one with memlab agent modules LAB --accept NUMBER):")
        for text, files in modules.conventions["text", "files"].rows():
            lines.append(f"  {clip(text, 100)}  ({', '.join(files)})")
    return _get_module_fields(modules), lines


# -- the Model Context Protocol -------------------------------------------------------------------------------------


@command(main)
@click.argument("lab", required=False, type=LocalPath())
@click.option(
    "--root",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Serve all labs of this folder over HTTP, each with tokens of its own.",
)
@click.option(
    "--http",
    is_flag=True,
    help="Serve over HTTP on this machine, with a token, until Ctrl-C.",
)
@click.option(
    "--host",
    default=HOST,
    show_default=True,
    help="Loopback address on which --http and --root listen.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port on which --http and --root listen. Default: a free one.",
)
@click.option(
    "--clients",
    type=click.Path(dir_okay=False, path_type=Path),
    help="TOML file with the token and role of each client, for --http and --root.",
)
@click.option("--read-only", is_flag=True, help="Offer only tools that read, and log no recalls.")
@click.option(
    "--project",
    help="Project of new memories; recalls also return memories without a project.",
)
@click.option(
    "--viewer",
    help="Name of the client, such as agent:coder. Private memories of others are hidden from it.",
)
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="owner",
    show_default=True,
    help="What clients may do, unless --clients gives them roles.",
)
@click.option(
    "--pack", help="Make this pack (a name or a .hy file) the active pack of LAB before serving it."
)
@click.option(
    "--existing",
    "only_existing",
    is_flag=True,
    help="Fail if LAB does not exist, instead of creating it (for example if its disk is not "
    "mounted).",
)
def serve(
    lab: Path | None,
    root: Path | None,
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
    """Serve LAB to agents over the Model Context Protocol.

    A host starts this command and uses standard input and output. It has six tools (remember, recall, forget, feedback,
    context, about), prompts and resources. A reader recalls; a member also stores memories, and changes those that only
    this member created. An owner changes all visible memories. Several servers may share a lab. LAB is created if it
    does not exist. Needs: pip install 'memlab-core[mcp]'.

    With --http, all clients send the token in MEMLAB_TOKEN, or a random one, which is printed. The option
    --clients names a TOML file with one table per client instead, such as [coder] with token = "..." and role =
    "member". Only its owner may be able to read the file. A table may also set viewer (default: agent:coder) and
    project.

    With --root FOLDER in place of LAB, FOLDER/clients.toml lists the clients, and the token decides which lab answers.
    A table may set lab, the name of a folder in FOLDER; by default it is the table's name. `memlab audit-log` shows
    the calls.

    Example: memlab serve my.memlab --viewer agent:coder --role member
    """
    from memlab.io.serving import serve_http, serve_root, serve_stdio

    if (lab is None) == (root is None):
        raise click.UsageError("Name a LAB, or a folder of labs: --root FOLDER.")
    if root is not None:
        if read_only or project or viewer or pack or only_existing or role != "owner":
            raise click.UsageError(
                "--root takes --host, --port and --clients: the file of clients sets the rest for each lab."
            )
        serve_root(
            root,
            host=host,
            port=port,
            clients=clients,
            tell=lambda url: print_report(
                ({"url": url, "root": str(root)}, f"{url}\nPress Ctrl-C to stop."), as_json=as_json
            ),
        )
        return
    assert lab is not None
    if clients is not None and not http:
        raise click.UsageError(
            "--clients needs --http, because standard input and output serve one client."
        )
    if pack is not None and read_only:
        raise click.UsageError("--pack writes to the lab and cannot be combined with --read-only.")
    with (
        open_existing(lab, read_only=True)
        if read_only
        else memlab.open(lab, create=not only_existing) as opened
    ):
        if pack is not None and memlab.load_pack(pack).hash != opened.policies.pack.hash:
            opened.policies.use(pack, reason="memlab serve")
        identity: dict[str, Any] = {"project": project, "viewer": viewer, "role": role}
        if not http:
            serve_stdio(opened, session=f"mcp-{opened.io.store.clock()}-{os.getpid()}", **identity)
            return

        def address(url: str, secret: str) -> None:
            """Print the server's address, and the token that all clients use."""
            report = {"url": url, "lab": str(lab), **({"token": secret} if secret else {})}
            line = (
                f"Authorization: Bearer {secret}" if secret else f"Tokens of the clients: {clients}"
            )
            print_report((report, f"{url}\n{line}\nPress Ctrl-C to stop."), as_json=as_json)

        token = None if clients else os.environ.get("MEMLAB_TOKEN") or None
        serve_http(
            opened, host=host, port=port, token=token, clients=clients, tell=address, **identity
        )


@command(main, name="audit-log")
@LAB
@click.option("--client", help="Show only the calls of this client.")
@click.option(
    "--most",
    "limit",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Number of calls to show; the newest are shown.",
)
def audit_log(lab: Path, client: str | None, limit: int) -> Report:
    """Show the calls of clients on LAB, or on a folder of labs.

    `memlab serve --http` writes the log: time, client, call, ids of the memories that were returned or changed, outcome,
    and refused logins. It contains no texts, and at most 30 MB.

    Example: memlab audit-log my.memlab --client agent:coder
    """
    from memlab.io.serving import read_audit_log

    frame = read_audit_log(lab)
    if client is not None:
        frame = frame.filter(frame["client"] == client)
    rows = frame.tail(limit).to_dicts()
    lines = [
        f"{row['at']:%Y-%m-%d %H:%M:%S}  {row['client'] or '-'}  {row['call']}  {row['outcome']}"
        + (f" x{row['count']}" if row["count"] > 1 else "")
        + (f"  {' '.join(f'#{id}' for id in row['ids'])}" if row["ids"] else "")
        for row in rows
    ]
    return rows, lines or "No calls were logged."
