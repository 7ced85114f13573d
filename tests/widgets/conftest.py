"""What tests of widgets share: a lab with something to ask, Arrow read back, and hosts in which a browser shows
them.
"""

import asyncio
import io
import json
import os
import re
import secrets
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import polars as pl
import pytest
from chromium import absent
from texts import TEXTS

import memlab


@pytest.fixture
def asked(lab):
    """The lab with a few memories: markup, control characters and right-to-left among them."""
    lab.remember([{"text": text, "kind": kind, "speaker": "Ada"} for text, kind in TEXTS])
    return lab


@pytest.fixture
def ask():
    """Sends a widget a request as a browser does; its answer with tables as frames, or the error as a sentence."""

    def send(widget, verb, **arguments):
        reply, buffers = widget.answer({"id": 7, "verb": verb, "arguments": arguments})
        json.dumps(reply)  # what a browser can be sent
        assert reply["id"] == 7
        if "error" in reply:
            return reply["error"]
        tables = zip(reply["tables"], map(frame_of, buffers), strict=True)
        return {**reply["value"], **dict(tables)}

    return send


def frame_of(buffer):
    return pl.read_ipc_stream(io.BytesIO(buffer))


# -- a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def tab(browser):
    """Opens pages; afterwards none of them had an error, and none asked for anything that is not on this machine."""
    errors, strays, contexts = [], [], []

    def opened(url, *, scheme="light", width=1100):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda one: strays.append(one.url) if not local(one.url) else None)
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
    assert strays == []


def local(url):
    return re.match("(http|ws)://(127.0.0.1|localhost)[:/]|data:|blob:|file:///", url) is not None


# -- hosts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def serve():
    """Serves a widget as a page over a websocket, in a thread of its own: its address."""
    stops = []

    def start(make):
        """``make`` is called in the thread of the page: a lab may be used where it was opened."""
        ready, box = threading.Event(), {}

        def run():
            from memlab.ui.widgets.view import Page

            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)

            async def begin():
                widget = make()
                box.update(loop=loop, widget=widget, page=Page(widget))

            loop.run_until_complete(begin())
            ready.set()
            loop.run_forever()
            # messages that were on their way to a page when it closed
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        assert ready.wait(30)

        def stop():
            box["loop"].call_soon_threadsafe(box["page"].close)
            box["loop"].call_soon_threadsafe(box["loop"].stop)
            thread.join()

        stops.append(stop)
        return box["page"].url, box["widget"]

    yield start
    for stop in stops:
        stop()


@pytest.fixture(scope="session")
def jupyterlab(browser, tmp_path_factory):
    """One JupyterLab for all tests: ``(address, folder, token)``."""
    home = tmp_path_factory.mktemp("jupyter")
    token = secrets.token_hex(16)
    folders = {
        f"JUPYTER{name}_DIR": str(home / name)
        for name in ("_CONFIG", "_DATA", "_RUNTIME", "LAB_SETTINGS")
    }
    folders |= {
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "spaces"),
    }
    settings = home / "settings" / "@jupyterlab"
    for plugin, value in {
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        "notebook-extension/tracker": {"windowingMode": "none"},
    }.items():
        file = settings / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value))
    work = home / "work"
    work.mkdir()
    log = (home / "log").open("w")
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--port=0",
        "--ip=127.0.0.1",
    ]
    command += [
        f"--IdentityProvider.token={token}",
        "--LabApp.expose_app_in_browser=True",
        f"--ServerApp.root_dir={work}",
    ]
    process = subprocess.Popen(
        command,
        stdout=log,
        stderr=log,
        env={**os.environ, **folders, "IPYTHONDIR": str(home / "ipython")},
    )
    try:
        deadline = time.monotonic() + 120
        while (
            not (found := [one.read_text() for one in (home / "_RUNTIME").glob("jpserver-*.json")])
            or not found[0]
        ):
            assert process.poll() is None, (home / "log").read_text()
            assert time.monotonic() < deadline, (home / "log").read_text()
            time.sleep(0.2)
        yield json.loads(found[0])["url"], work, token
    finally:
        process.terminate()
        process.wait(30)
        log.close()


@pytest.fixture
def notebook(jupyterlab, tab):
    """Runs cells in JupyterLab, and returns the page once the last one has run."""
    import nbformat  # late: it costs 3 s of each process that collects tests

    address, folder, token = jupyterlab
    kernels = []

    def api(path, method="GET"):
        request = urllib.request.Request(f"{address}api/{path}?token={token}", method=method)
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read() or "null")

    def run(*cells, scheme="light"):
        name = f"{secrets.token_hex(4)}.ipynb"
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        made.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3",
            "language": "python",
        }
        nbformat.write(made, folder / name)
        # a workspace of its own: the default one opens earlier notebooks again
        page = tab(f"{address}lab/workspaces/{name[:8]}/tree/{name}?token={token}", scheme=scheme)
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        deadline = time.monotonic() + 90
        while not any(
            one["path"] == name
            and one["kernel"]["execution_state"] == "idle"
            and one["kernel"]["connections"] > 0
            for one in api("sessions")
        ):
            assert time.monotonic() < deadline, "the kernel did not start"
            page.wait_for_timeout(200)
        kernels.extend(one["kernel"]["id"] for one in api("sessions") if one["path"] == name)
        page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        return page

    yield run
    for kernel in kernels:
        api(f"kernels/{kernel}", "DELETE")


@pytest.fixture
def run_cell():
    """Runs one more cell at the end of the notebook that a page shows; the text of its output."""

    def run(page, source):
        before = page.locator(".jp-CodeCell").count()
        page.evaluate(
            """async (source) => {
                const { commands, shell } = window.jupyterapp;
                const panel = shell.currentWidget;
                panel.content.activeCellIndex = panel.content.widgets.length - 1;
                await commands.execute('notebook:insert-cell-below');
                panel.content.activeCell.model.sharedModel.setSource(source);
                await commands.execute('notebook:run-cell');
            }""",
            source,
        )
        cell = page.locator(".jp-CodeCell").nth(before)
        cell.locator(".jp-OutputArea-output").first.wait_for()
        return cell.locator(".jp-OutputArea-output").first.inner_text().strip()

    return run


@pytest.fixture
def axe():
    """What axe-core finds serious or critical in a part of a page; it is a tool for development, installed by npm."""
    script = (
        Path(memlab.__file__).parent
        / "ui"
        / "widgets"
        / "src"
        / "node_modules"
        / "axe-core"
        / "axe.min.js"
    )

    def check(page, within=".memlab"):
        if not script.exists():
            absent("axe-core is not there: npm ci in memlab/ui/widgets/src")
        page.evaluate(script.read_text(encoding="utf-8"))
        found = page.evaluate("within => axe.run(within)", within)
        return [
            (one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    return check
