"""Commands for the first minutes: demo, tutorials, and widgets in a browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import polars as pl

import memlab
from memlab.errors import require_extra
from memlab.ui.cli._base import (
    LocalPath,
    Report,
    command,
    main,
    open_existing,
    print_report,
    write_if,
)


@command(main)
@click.option(
    "--output",
    type=LocalPath(),
    default=Path("memlab-demo.html"),
    show_default=True,
    help="Path of the HTML page to write.",
)
@click.option(
    "--full",
    is_flag=True,
    help="Also simulate three months of use, and write a page that evaluates packs from its log; takes a minute.",
)
def demo(output: Path, full: bool, as_json: bool) -> Report:
    """Show the main steps on a bundled conversation, offline, in seconds.

    The demo stores a conversation, recalls from it, explains a result, swaps a policy and compares
    packs. The result is a page to open in a browser.

    Example: memlab demo --output demo.html
    """
    from memlab.ui.demo import run_demo

    result = run_demo(output=output, full=full, quiet=as_json, progress=True)
    return result.to_dict(), f"Open {result.output}"


@command(main, name="try")
@click.argument("file", required=False, type=LocalPath())
@click.option(
    "--lab",
    "path",
    type=LocalPath(),
    help="Directory that stores the lab with your data. Default: in memory.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of this machine. Default: a free one.",
)
@click.option("--open/--no-open", "open_browser", default=True, help="Open the page in a browser.")
def try_(
    file: Path | None, path: Path | None, port: int, open_browser: bool, as_json: bool
) -> Report:
    """Show a sample lab, or the data in FILE, in a browser until Ctrl-C.

    The page has an overview with the questions that the lab misses, and the policy studio. A form
    reads your own data: a chat export, a folder, notes or a table. FILE is read at once. Your data
    are in memory, unless --lab names a directory. Nothing leaves this machine.

    Example: memlab try chat.zip --lab my.memlab
    """
    with require_extra("widgets", "memlab try"):
        from memlab.ui.demo.first_minutes import Trial, serve_trial

    trial = Trial(path, file)

    def address(url: str) -> None:
        """Print the address of the page."""
        lab = None if path is None else str(path)
        report = {"url": url, "lab": lab, "memories": len(trial.current)}
        print_report((report, f"{url}\nPress Ctrl-C to stop."), as_json=as_json)

    try:
        serve_trial(trial, port=port, open_browser=open_browser, tell=address)
    finally:
        trial.current.close()
    return None


@command(main)
@click.argument("name", required=False)
@click.option(
    "--to", type=LocalPath(), default=Path(), help="Folder of the copies. Default: the current one."
)
@click.option("--no-open", is_flag=True, help="Copy without opening JupyterLab.")
def notebook(name: str | None, to: Path, no_open: bool, as_json: bool) -> None:
    """Open copies of the tutorials in JupyterLab: all tutorials, or the tutorial NAME.

    NAME is the name of a notebook, such as 01-your-own-design, or its number, such as 01. A
    notebook that exists in the folder is opened and never overwritten.

    Example: memlab notebook 01 --to tutorials
    """
    from memlab.ui.notebook.tutorials import copy_tutorials

    copies = copy_tutorials(to, name)
    report = {
        "folder": str(to),
        "copied": copies.copied,
        "kept": copies.existing,
        "opened": not no_open,
    }
    lines = [f"copied {file}" for file in copies.copied] + [
        f"{file} exists" for file in copies.existing
    ]
    print_report((report, lines), as_json=as_json)
    if no_open:
        return
    target = to if name is None else to / (*copies.copied, *copies.existing)[0]
    sys.stdout.flush()
    process = subprocess.run([sys.executable, "-m", "jupyterlab", str(target)], check=False)
    if process.returncode:
        raise click.exceptions.Exit(1)


@command(main)
@click.argument("lab", type=LocalPath(), required=False)
@click.option("--read-only", is_flag=True, help="Open LAB without writing to it.")
def repl(lab: Path | None, read_only: bool) -> Report:
    """Open the REPL of Hy on LAB, or on a new lab in memory.

    The names lab, memlab and pl (Polars) are bound. A quoted form is a policy, such as
    '(fn [similarity] similarity), and lab.score, lab.policies.install and lab.challenge take it. Code that you type runs
    with your permissions. Ctrl-D ends.

    Example: memlab repl my.memlab --read-only
    """
    import hy
    from hy.repl import REPL

    if read_only and lab is None:
        raise click.UsageError("--read-only needs LAB: a new lab in memory would stay empty.")

    def show(value: object) -> str:
        """Return the text of a Hy form in Hy syntax, and of any other value in Python syntax."""
        return hy.repr(value) if isinstance(value, hy.models.Object) else repr(value)

    with memlab.open() if lab is None else open_existing(lab, read_only=read_only) as opened:
        console = REPL(locals={"lab": opened, "memlab": memlab, "pl": pl}, output_fn=show)
        console.banner = lambda: f"Hy {hy.__version__} on {opened!r}"
        console.run()
    return None


@command(main, write_if("write"))
@click.option(
    "--write",
    is_flag=True,
    help="Let the page log recalls, record feedback and install policies in LAB.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of this machine. Default: a free one.",
)
@click.option("--open/--no-open", "open_browser", default=True, help="Open the page in a browser.")
@click.option(
    "--bundle", type=LocalPath(), help="Write the page to a folder that needs no Python, and exit."
)
def view(
    lab: memlab.Lab, write: bool, port: int, open_browser: bool, bundle: Path | None, as_json: bool
) -> Report:
    """Show LAB in a browser with all widgets, until Ctrl-C.

    The page is updated while an agent writes to LAB. Only this machine can open it: its address has a token, and
    nothing is loaded from the network. LAB is read-only unless --write is given. --bundle writes DIR/index.html
    instead, which can be shared; it contains the memories that the widgets show.

    Example: memlab view my.memlab
    """
    with require_extra("widgets", "memlab view"):
        from memlab.ui.widgets.view import serve, write_bundle

    if bundle is not None:
        if write or port:
            raise click.UsageError(
                "--bundle writes a folder and serves nothing. Omit --write and --port."
            )
        index = write_bundle(lab, bundle)
        return {"index": str(index)}, f"Open {index}"

    def address(url: str) -> None:
        """Print the address of the page."""
        report = {"url": url, "lab": str(lab.io.path), "write": write}
        print_report((report, f"{url}\nPress Ctrl-C to stop."), as_json=as_json)

    serve(lab, port=port, open_browser=open_browser, tell=address)
    return None
