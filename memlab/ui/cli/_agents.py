"""What a file of messages says: facts and memories proposed, by rules or by a language model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.io.formats import Options, read_file
from memlab.kernel.base.display import clip
from memlab.kernel.base.loopback import HOST
from memlab.kernel.verbs.gate.identity import ROLES, Role
from memlab.subjects.modules.module_map import ModuleMap
from memlab.ui.cli._base import LAB, InputFile, LocalPath, Text, agent, as_json_option, existing, main, tell

_KEY = "MEMLAB_MODEL_KEY"


@agent.command()
@LAB
@click.argument("file", type=InputFile())
@click.option("--format", "format_", help="Else it is guessed; see: memlab.load.")
@click.option("--agent", help="Whose memories they become.")
@click.option("--project")
@click.option("--session")
@click.option(
    "--model", "url", metavar="URL", help=f"Ask a model at URL, such as http://127.0.0.1:8080/v1. Key: {_KEY}."
)
@click.option("--model-name", help="What its server calls it.")
@click.option("--model-calls", type=click.IntRange(1), help="Most requests. Default: any number.")
@click.option("--model-tokens", type=click.IntRange(1), default=1_000_000, show_default=True, help="Most tokens.")
@click.option("--model-cache", type=LocalPath(), help="Keep answers in this folder.")
@click.option(
    "--otherwise",
    type=click.Choice(["raise", "rules", "skip"]),
    default="raise",
    show_default=True,
    help="What becomes of a message that the model does not read.",
)
@click.option("--commit", is_flag=True, help="Store them.")
@as_json_option
def extract(
    lab: Path,
    file: Path,
    format_: str | None,
    url: str | None,
    model_name: str | None,
    model_calls: int | None,
    model_tokens: int,
    model_cache: Path | None,
    otherwise: Any,
    commit: bool,
    as_json: bool,
    **where: Any,
) -> None:
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
    said = [
        {name: row[name] for name in ("text", "speaker", "at") if name in row}
        for _, row in read_file(file, Options(format=format_)).rows
    ]
    with existing(lab, read_only=not commit) as opened:
        found = opened.agents.extract(said, model=model, otherwise=otherwise, **where)
        stored = list(opened.agents.commit(found).ids) if commit else []
    asked = [] if found.asked is None else found.asked.lines
    report = {"messages": found.messages, "proposed": found.frame.to_dicts(), "stored": stored, "asked": asked}
    end = [f"stored as {len(stored)} memories"] if commit else []
    tell(report, as_json=as_json, text=lambda: "\n".join([repr(found), *end]))


# -- The modules of a code base: scanned, listed, found by a task --


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


# -- A lab for agents: the Model Context Protocol over standard input and output, or over HTTP --


@main.command()
@LAB
@click.option("--http", is_flag=True, help="Serve streamable HTTP to this machine, with a token, until Ctrl-C.")
@click.option("--host", default=HOST, show_default=True, help="An address of this machine alone.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Default: any that is free.")
@click.option("--clients", type=click.Path(dir_okay=False, path_type=Path), help="TOML: a token and a role for each.")
@click.option("--read-only", is_flag=True, help="Tools that read, and no log of recalls.")
@click.option("--project", help="Remember into this project, and recall from it and from what belongs to none.")
@click.option("--viewer", help="Who asks and writes: user, agent:coder ... What is private to others is not there.")
@click.option("--role", type=click.Choice(ROLES), default="owner", show_default=True, help="What clients may do.")
@click.option("--pack", help="Let this pack decide from now on (a name or a .hy file).")
@click.option("--existing", "only_existing", is_flag=True, help="Make no lab: LAB is on a disk that may be away.")
@as_json_option
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
        raise click.UsageError("--clients goes with --http: over standard input and output there is one client.")
    if pack is not None and read_only:
        raise click.UsageError("--pack writes to the lab, so it does not go with --read-only.")
    with existing(lab, read_only=True) if read_only else memlab.open(lab, create=not only_existing) as opened:
        if pack is not None and memlab.load_pack(pack).hash != opened.policies.pack.hash:
            opened.policies.use(pack, reason="memlab serve")
        if not http:
            session = f"mcp-{opened.io.store.clock()}-{os.getpid()}"
            serve_stdio(opened, project=project, viewer=viewer, session=session, role=role)
            return

        def address(url: str, secret: str) -> None:
            found = {"url": url, "lab": str(lab), **({"token": secret} if secret else {})}
            line = f"Authorization: Bearer {secret}" if secret else f"Each client has its token: {clients}"
            tell(found, as_json=as_json, text=lambda: f"{url}\n{line}\nCtrl-C ends it.")

        token = None if clients else os.environ.get("MEMLAB_TOKEN")
        serve_http(
            opened,
            host=host,
            port=port,
            token=token or None,
            project=project,
            viewer=viewer,
            role=role,
            clients=clients,
            tell=address,
        )
