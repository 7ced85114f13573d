"""All widgets of a lab in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from memlab.ui.cli._base import LAB, as_json_option, existing, main, tell
from memlab.ui.cli._input import LocalPath

__all__: list[str] = []


@main.command()
@LAB
@click.option("--write", is_flag=True, help="Let the page write to LAB: log recalls, give feedback, install policies.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of this machine. Default: any that is free.")
@click.option("--open/--no-open", "open_browser", default=True, help="Open a browser.")
@click.option("--bundle", type=LocalPath(), help="Write a folder that needs no Python, and end.")
@as_json_option
def view(lab: Path, write: bool, port: int, open_browser: bool, bundle: Path | None, as_json: bool) -> None:
    """Look at LAB in a browser, with every widget, and live while an agent writes to it; until Ctrl-C.

    The page is of this machine alone: its address has a token, and nothing is asked of the network. It reads LAB
    unless --write is given. With --bundle, DIR/index.html is written instead, to be sent to somebody: it holds what
    the widgets show of the memories.
    """
    from memlab.ui.widgets.view import serve, write_bundle

    if bundle is not None and (write or port):
        raise click.UsageError("--bundle writes a folder and serves nothing: --write and --port do not go with it.")

    def address(url: str) -> None:
        found = {"url": url, "lab": str(lab), "write": write}
        tell(found, as_json=as_json, text=lambda: f"{url}\nCtrl-C ends it.")

    with existing(lab, read_only=not write) as opened:
        if bundle is not None:
            made = write_bundle(opened, bundle)
            tell({"index": str(made)}, as_json=as_json, text=lambda: f"Open {made}")
            return
        serve(opened, port=port, open_browser=open_browser, tell=address)
