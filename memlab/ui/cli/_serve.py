"""A lab for agents: the Model Context Protocol over standard input and output, or over HTTP."""

from __future__ import annotations

import os
from pathlib import Path

import click

import memlab
from memlab.kernel.base.loopback import HOST
from memlab.kernel.verbs.gate import ROLES, Role
from memlab.ui.cli._base import LAB, as_json_option, existing, main, tell

__all__: list[str] = []


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
