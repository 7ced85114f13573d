"""The first minutes: the demo, the tutorials, and all widgets of a lab in a browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

import memlab
from memlab.ui.cli._base import LocalPath, Told, command, main, tell, write_if


@command(main)
@click.option("--output", type=LocalPath(), default=Path("memlab-demo.html"), show_default=True)
@click.option(
    "--full",
    is_flag=True,
    help="Then live a simulated quarter and judge every pack from its log: a minute.",
)
def demo(output: Path, full: bool, as_json: bool) -> Told:
    """The main job on a bundled conversation, offline, in seconds; ends with a page to open."""
    from memlab.ui.demo import run_demo

    result = run_demo(output=output, full=full, quiet=as_json, progress=True)
    return result.to_dict(), f"Open {result.output}"


@command(main)
@click.argument("name", required=False)
@click.option(
    "--to", type=LocalPath(), default=Path(), help="The folder of the copies. Default: here."
)
@click.option("--no-open", is_flag=True, help="Copy, and start nothing.")
def notebook(name: str | None, to: Path, no_open: bool, as_json: bool) -> None:
    """Open copies of the tutorials in JupyterLab: all of them, or NAME (01-your-own-design, or 01).

    A notebook that is in the folder already is opened as it is, never overwritten.
    """
    from memlab.ui.notebook.tutorials import copy_tutorials

    copies = copy_tutorials(to, name)
    report = {
        "folder": str(to),
        "copied": copies.copied,
        "kept": copies.kept,
        "opened": not no_open,
    }
    lines = [f"copied {file}" for file in copies.copied] + [
        f"{file} is there already" for file in copies.kept
    ]
    tell((report, lines), as_json=as_json)
    if no_open:
        return
    shown = to if name is None else to / (*copies.copied, *copies.kept)[0]
    sys.stdout.flush()
    started = subprocess.run([sys.executable, "-m", "jupyterlab", str(shown)], check=False)
    if started.returncode:
        raise click.exceptions.Exit(1)


@command(main, write_if("write"))
@click.option(
    "--write",
    is_flag=True,
    help="Let the page write to LAB: log recalls, give feedback, install policies.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Of this machine. Default: any that is free.",
)
@click.option("--open/--no-open", "open_browser", default=True, help="Open a browser.")
@click.option("--bundle", type=LocalPath(), help="Write a folder that needs no Python, and end.")
def view(
    lab: memlab.Lab, write: bool, port: int, open_browser: bool, bundle: Path | None, as_json: bool
) -> Told:
    """Look at LAB in a browser, with every widget, and live while an agent writes to it; until Ctrl-C.

    The page is of this machine alone: its address has a token, and nothing is asked of the network. It reads LAB
    unless --write is given. With --bundle, DIR/index.html is written instead, to be sent to somebody: it holds what
    the widgets show of the memories.
    """
    from memlab.ui.widgets.view import serve, write_bundle

    if bundle is not None:
        if write or port:
            raise click.UsageError(
                "--bundle writes a folder and serves nothing: leave --write and --port out."
            )
        made = write_bundle(lab, bundle)
        return {"index": str(made)}, f"Open {made}"

    def address(url: str) -> None:
        about = {"url": url, "lab": str(lab.io.path), "write": write}
        tell((about, f"{url}\nCtrl-C ends it."), as_json=as_json)

    serve(lab, port=port, open_browser=open_browser, tell=address)
    return None
