"""The tutorials, copied and opened in JupyterLab."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from memlab.ui.cli._base import as_json_option, main, tell
from memlab.ui.cli._input import LocalPath


@main.command()
@click.argument("name", required=False)
@click.option("--to", type=LocalPath(), default=Path(), help="The folder of the copies. Default: here.")
@click.option("--no-open", is_flag=True, help="Copy, and start nothing.")
@as_json_option
def notebook(name: str | None, to: Path, no_open: bool, as_json: bool) -> None:
    """Open copies of the tutorials in JupyterLab: all of them, or NAME (01-first-memory, or 01).

    A notebook that is in the folder already is opened as it is, never overwritten.
    """
    from memlab.ui.notebook.tutorials import copy_tutorials

    copies = copy_tutorials(to, name)
    report = {"folder": str(to), "copied": copies.copied, "kept": copies.kept, "opened": not no_open}
    lines = [f"copied {file}" for file in copies.copied] + [f"{file} is there already" for file in copies.kept]
    tell(report, as_json=as_json, text=lambda: "\n".join(lines))
    if no_open:
        return
    shown = to if name is None else to / (*copies.copied, *copies.kept)[0]
    sys.stdout.flush()
    started = subprocess.run([sys.executable, "-m", "jupyterlab", str(shown)], check=False)
    if started.returncode:
        raise click.exceptions.Exit(1)
