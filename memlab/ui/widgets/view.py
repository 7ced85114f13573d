"""``memlab view``: all widgets of a lab as one page of this machine, or as a folder that needs no Python."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import webbrowser
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

from memlab.kernel.base.clock import from_micros
from memlab.kernel.base.disk import writing
from memlab.subjects.lab import Lab
from memlab.ui import widgets
from memlab.ui.widgets._page import Page, page_html
from memlab.ui.widgets._registered import WIDGETS
from memlab.ui.widgets._widget import Widget
from memlab.ui.widgets.bundles import bundle

__all__ = ["serve", "write_bundle"]

_LOOK = 1.0
"""Seconds between two looks at whether something was written: one look takes microseconds."""
_SHARE = 10
"""What the widgets need to ask again is at most one part in so many of the time."""
_FOLDER_POLICY = "default-src 'none'; script-src 'self' file: blob:; style-src 'unsafe-inline'; img-src data:"


def serve(lab: Lab, *, port: int = 0, open_browser: bool = True, tell: Callable[[str], object] = print) -> None:
    """Serve the widgets of ``lab`` until the process is interrupted or ended; ``tell`` is given the address.

    While another process writes to the lab, the widgets follow. InputError for a port that is taken.
    """
    asyncio.run(_serve(lab, port, open_browser, tell))


async def _serve(lab: Lab, port: int, open_browser: bool, tell: Callable[[str], object]) -> None:
    note = "read only" if lab.io.store.journal.read_only else "writable"
    page = Page(_kinds(), make=lambda kind: kind(lab), port=port, title=lab.io.store.where, note=note)
    ended = asyncio.Event()
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, ended.set)
    try:
        tell(page.url)
        if open_browser:
            webbrowser.open(page.url)
        following = asyncio.create_task(_follow(lab, page))
        await ended.wait()
        following.cancel()
    finally:
        page.close()
        await asyncio.sleep(0)  # the goodbyes are written


async def _follow(lab: Lab, page: Page) -> None:
    """Let the widgets ask again whenever something was written, more seldom where that takes long."""
    known, rest = lab.io.store.journal.head, _LOOK
    while True:
        await asyncio.sleep(rest)
        began, head = monotonic(), lab.io.store.journal.head
        if head != known:
            known = head
            page.refresh()
        rest = max(_LOOK, _SHARE * (monotonic() - began))


def write_bundle(lab: Lab, folder: Path) -> Path:
    """Write what the widgets show as a page that needs no Python, and return the path of its ``index.html``.

    Beside it lie the bundles as they are, and ``state.js`` with the state of each widget: its values as JSON, its
    tables as Arrow in base64. ``bundles.js`` holds the bundles once more, as texts: a page that is opened from a disk
    may import no file. Whoever has the folder has what its widgets show of the memories.
    """
    states, tabs = {}, {}
    texts = {"page": bundle("page")}
    for kind in _kinds():
        widget = kind(lab)
        with widget.faults_shown():
            widget.fill()
        states[kind.bundle], tabs[kind.bundle] = _kept(widget), kind.title()
        texts[kind.bundle] = kind.script
        widget.close()
    now = from_micros(lab.io.store.clock())
    files = {"state.js": f"globalThis.memlabState = {json.dumps(states)};\n"}
    for name, text in texts.items():
        files[f"static/{name}.js"] = text
    texts.pop("page")
    files["bundles.js"] = f"globalThis.memlabBundles = {json.dumps(texts)};\n"
    note = f"a copy of {now:%Y-%m-%d %H:%M} UTC"
    still = f"This is {note}. To ask anything else, open the lab itself: memlab view LAB."
    about = {"tabs": tabs, "title": lab.io.store.where, "note": note, "still": still}
    head = f'<meta http-equiv="Content-Security-Policy" content="{_FOLDER_POLICY}">'
    files["index.html"] = page_html(about, scripts=["state.js", "static/page.js"], head=head)
    with writing(f"The folder {folder}"):
        (folder / "static").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    return folder / "index.html"


def _kinds() -> list[type[Widget]]:
    """Return every widget, those of extensions last."""
    own = [getattr(widgets, name) for name in widgets.SHIPPED]
    return own + [declared.value for declared in WIDGETS.values()]


def _kept(widget: Widget) -> dict[str, Any]:
    state, paths, buffers = widget.plain_state()
    tables = {path[0]: base64.b64encode(one).decode() for path, one in zip(paths, buffers, strict=True)}
    return {"values": state, "tables": tables}
