"""The evaluation board, the life player and ``memlab view`` in a browser, in JupyterLab and in marimo."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from texts import TEXTS

import memlab
from memlab.ui import widgets
from memlab.ui.widgets import EvaluationBoard, LifePlayer
from memlab.ui.widgets.view import write_bundle

pytestmark = pytest.mark.browser

TABS = [getattr(widgets, name).title() for name in widgets.SHIPPED]
FILL = f"""
import memlab
clock = memlab.ManualClock("2026-03-01")
lab = memlab.open({{path}} clock=clock)
lab.remember([{{"text": text, "kind": kind, "speaker": "Ada"}} for text, kind in {TEXTS!r}])
lab.challenge("companion", reason="is fresh better?")
for day in range(24):
    clock.advance(hours=9)
    for hit in lab.recall(["tabs or spaces?", "when do deploys go out?", "changelog"][day % 3], limit=3):
        lab.feedback(hit, "success" if hit.id % 3 == day % 3 else "fail")
"""


def filled(path=None):
    names = {}
    exec(FILL.replace("{path}", "" if path is None else f"{str(path)!r},"), names)
    return names["lab"]


@pytest.fixture
def page_of(serve, tab):
    def opened(make, *, scheme="light"):
        url, widget = serve(lambda: make(filled()))
        page = tab(url, scheme=scheme)
        page.locator(".memlab").wait_for()
        return page, widget

    return opened


@pytest.fixture
def viewed(tmp_path):
    """``memlab view`` as a process on a filled lab: its address, and the lab's folder."""
    path, started = tmp_path / "agent.memlab", []
    filled(path).close()

    def start(*words):
        command = [sys.executable, "-m", "memlab", "view", str(path), "--no-open", "--json", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return json.loads(process.stdout.readline())["url"], path

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_board_shows_gates_plans_and_a_challenge(page_of, axe, scheme):
    page, board = page_of(
        lambda lab: EvaluationBoard(lab, ["memlab", "companion"], missing="zero"), scheme=scheme
    )
    page.locator(".leaders .whisker").first.wait_for(timeout=90_000)
    page.locator(".recall").first.wait_for()
    assert axe(page) == []
    page.get_by_role("button", name="Gates of companion").click()
    assert page.locator(".gatelist tbody tr").count() == 9
    page.get_by_role("button", name="Plan a challenge").click()
    page.locator(".designs .chosen").wait_for(timeout=90_000)
    slider = page.get_by_role("slider", name="extra items")
    slider.focus()
    for _ in range(2):  # from "auto" over one item to two
        slider.press("ArrowRight")
    assert "challenge, 2 extra" in page.locator(".designs .chosen").inner_text()
    for design, row in (("lot", "challenge by lot"), ("ab", "A/B by recall")):
        page.get_by_role("combobox", name="design").select_option(design)
        assert row in page.locator(".designs .chosen").inner_text()
        assert slider.count() == 0
    page.get_by_role("combobox", name="design").select_option("extra")
    before = page.locator(".designs .chosen").inner_text()
    box = page.get_by_label("share that takes part").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert page.locator(".designs .chosen").inner_text() != before
    assert axe(page) == []
    page.get_by_role("button", name="Challenge", exact=True).click()
    page.locator(".track .band").wait_for(timeout=60_000)
    assert axe(page) == []
    assert board.evaluation is not None
    assert page.locator(".memlab img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_player_is_scrubbed_and_tuned(page_of, axe, scheme):
    page, player = page_of(LifePlayer, scheme=scheme)
    page.locator(".curve").first.wait_for(timeout=90_000)
    page.get_by_role("button", name="Play").wait_for()
    page.get_by_label("Event", exact=True).fill("12")
    page.get_by_role("heading", name="Event 12:").wait_for(timeout=60_000)
    page.locator(".slot").first.click()
    assert "defpolicy" in page.locator(".source code").inner_text()
    slider = page.get_by_label("base-half-life")
    slider.fill("200")
    page.get_by_text("with the slider values").first.wait_for(timeout=60_000)
    page.locator("canvas").first.click(position={"x": 8, "y": 8})
    page.wait_for_function("() => document.querySelectorAll('.tocome .keys button').length === 1")
    assert player.chosen == [1]
    assert page.locator("canvas").count() == 2
    assert axe(page) == []
    texts = page.locator(".memlab").inner_text()
    assert page.locator(".memlab img, .memlab .said b").count() == 0
    assert not re.search("[\u202a-\u202e\x1b]", texts)


def test_a_lab_without_memories_or_feedback_says_what_is_missing(serve, tab):
    for make, said in (
        (EvaluationBoard, "No recalls logged yet"),
        (LifePlayer, "no memories yet"),
    ):
        url, _ = serve(lambda make=make: make(memlab.open()))
        tab(url).get_by_text(said).wait_for()


def test_view_has_a_tab_for_each_widget_and_follows_an_agent(viewed, tab, axe):
    url, path = viewed()
    page = tab(f"{url}#explorer")
    page.locator(".memlab .explorer").wait_for(timeout=60_000)
    assert page.get_by_role("tab").all_inner_texts() == TABS
    page.get_by_label("Query", exact=True).fill("where is the harbour?")
    page.locator(".hit").first.wait_for()
    with memlab.open(path) as lab:
        new = lab.remember("The harbour is in the north, <img src=x onerror=alert(1)>")
        page.locator(f".hit[data-memory='{new.id}']").wait_for()
        lab.purge(new)
        page.locator(f".hit[data-memory='{new.id}']").wait_for(state="detached")
    assert "harbour is in the north" not in page.content()
    assert page.get_by_role("button", name="Search and log").is_disabled()
    assert axe(page, "body") == []
    page.get_by_role("tab", name="Recall explorer").press("ArrowRight")
    for title in TABS:
        page.get_by_role("tab", name=title).click()
        page.locator(f"section.memlab[aria-label='{title}']").wait_for(timeout=60_000)
    refused = tab(url.partition("?")[0])
    assert "403" in refused.content()


def test_a_folder_is_read_from_a_disk_and_what_needs_python_is_disabled(viewed, tab, axe, tmp_path):
    _, path = viewed()
    with memlab.open(path, read_only=True) as lab:
        index = write_bundle(lab, tmp_path / "out")
    page = tab(f"{index.as_uri()}#explorer")
    page.locator(".hit").first.wait_for()
    assert page.get_by_label("Query", exact=True).is_disabled()
    page.get_by_text("open the lab itself: memlab view LAB").first.wait_for()
    page.get_by_role("tab", name="Evaluation board").click()
    page.locator(".board").wait_for()
    page.get_by_role("tab", name="Life player").click()
    page.locator(".player canvas").first.wait_for()
    page.get_by_label("Event", exact=True).fill("20")
    assert "event 20" in page.locator(".when").inner_text()
    assert page.get_by_label("base-half-life").is_disabled()
    assert axe(page, "body") == []
    assert page.locator(".alert").count() == 0


CELL = FILL.replace("{path}", "")
ASKED = ["tabs or spaces?", "when do deploys go out?"]
ALL = {
    "overview": "Overview(lab)",
    "recalls": "RecallLog(lab)",
    "studio": f"PolicyStudio(lab, questions={ASKED!r})",
    "explorer": f"RecallExplorer(lab, question={ASKED[0]!r})",
    "timeline": f"VersionTimeline(lab, questions={ASKED!r})",
    "table": "MemoryTable(lab)",
    "chart": "MemoryMap(lab)",
    "board": 'EvaluationBoard(lab, ["memlab", "companion"], missing="zero")',
    "player": "LifePlayer(lab)",
    "labels": "QuestionList(lab)",
}
SHOWN = [
    ".tiles",
    ".entry",
    ".after .row",
    ".hit",
    ".axis",
    ".scroll .row",
    ".plane[data-drawn]",
    ".leaders .whisker",
    ".curve",
    ".top",
]


def wait_for_all(page):
    for title, shown in zip(TABS, SHOWN, strict=True):
        page.locator(f".memlab[aria-label='{title}'] {shown}").first.wait_for(timeout=120_000)


def test_all_in_one_notebook_say_that_the_kernel_was_restarted(notebook, run_cell, axe):
    page = notebook(
        CELL, *(f"{name} = memlab.widgets.{made}\n{name}" for name, made in ALL.items())
    )
    wait_for_all(page)
    page.get_by_role("button", name="Plan a challenge").click()
    page.locator(".designs .chosen").wait_for(timeout=90_000)
    page.get_by_role("slider", name="share that takes part").fill("0.5")
    assert "50% of recalls" in page.locator(".planner").inner_text()
    page.get_by_label("Event", exact=True).fill("9")
    page.get_by_role("heading", name="Event 9:").wait_for(timeout=60_000)
    # the others are looked at in tests of their own
    assert axe(page, ".memlab:has(.board, .player)") == []
    assert (
        run_cell(
            page, "print(board.plan.frame.height > 5, player.event, player.forecast is not None)"
        )
        == "True 9 True"
    )
    page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    for title in TABS:
        page.locator(f".memlab[aria-label='{title}']").get_by_role("alert").get_by_text(
            "Run the cell again"
        ).wait_for()
    wait_for_all(page)  # what was shown stays to be read


MARIMO = os.environ.get("MEMLAB_MARIMO") or (
    sys.executable if importlib.util.find_spec("marimo") else ""
)


@pytest.mark.skipif(
    not MARIMO, reason="marimo is not installed; MEMLAB_MARIMO may be a Python that has it"
)
def test_each_widget_in_marimo(tab, tmp_path):
    cells = [("", CELL, "clock, day, hit, lab, memlab")]
    cells += [
        ("lab, memlab", f"{name} = memlab.widgets.{made}\n{name}", f"{name},")
        for name, made in ALL.items()
    ]
    text = "import marimo\napp = marimo.App()\n"
    for takes, source, gives in cells:
        body = "\n".join(f"    {line}" for line in source.strip().splitlines())
        text += f"\n@app.cell\ndef _({takes}):\n{body}\n    return {gives}\n"
    (tmp_path / "cells.py").write_text(text)
    command = [
        MARIMO,
        "-m",
        "marimo",
        "run",
        "cells.py",
        "--headless",
        "--no-token",
        "--host",
        "127.0.0.1",
    ]
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(Path(memlab.__file__).parents[1])}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=log, stderr=log, env=os.environ | home
        )
    try:
        deadline = time.monotonic() + 90
        while not (found := re.search(r"http://[\w.]+:\d+", (tmp_path / "log").read_text())):
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.3)
        page = tab(found[0])
        wait_for_all(page)
        page.get_by_label("Query", exact=True).fill("when do deploys go out?")
        page.locator(".explorer").get_by_text("Deploys go out on Tuesdays").first.wait_for()
        page.locator("[data-memory='3'] .open").click()
        page.get_by_label("Text of memory 3").wait_for()
        assert page.get_by_role("alert").count() == 0
    finally:
        process.terminate()
        process.wait(30)


def test_the_player_follows_and_curves_of_old_memories_fill_the_chart(serve, tab):
    def make():
        clock = memlab.ManualClock("2025-01-01")
        lab = memlab.open(clock=clock)
        for number in range(30):
            lab.remember(f"The user keeps note {number} of the harbour")
            clock.advance(days=1)
        clock.advance(days=365)
        lab.remember("The user moved to Oslo")
        player = LifePlayer(lab)
        player.fill()
        return player

    url, _ = serve(make)
    page = tab(url)
    page.get_by_role("heading", name="Event 3").wait_for()
    page.get_by_role("button", name="Play").click()
    page.wait_for_function(
        """() => { const number = (query) => document.querySelector(query)?.textContent.match(/vent (\\d+)/)?.[1];
            const seen = (window.seen ??= new Set());
            if (number('.when') === number('.decided h3')) seen.add(number('.when'));
            return seen.size >= 3 }"""
    )
    page.get_by_role("button", name="Pause").click()
    ticks = page.locator(".tocome text").all_inner_texts()
    assert "100%" not in ticks or "50%" not in ticks


def test_the_board_opens_on_challengers_says_what_each_input_does_and_folds_texts(serve, tab, axe):
    long = "The harbour was full of boats that day. " * 20

    def make():
        lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
        lab.remember([f"{long} {number}" for number in range(8)] + ["boats", "tides", "ropes"])
        lab.challenge('(pack words "Words alone.") (defpolicy recall-score [lexical] lexical)')
        for query in ("boats", "harbour tides", "ropes?"):
            for hit in lab.recall(query, limit=4):
                lab.feedback(hit, "success")
        board = EvaluationBoard(lab, missing="zero")
        board.evaluate()
        return board

    url, board = serve(make)
    page = tab(url, width=1280)
    page.locator(".leaders").wait_for()
    assert board.policies == ["memlab", "words"]
    assert page.locator(".board > .controls small").count() == 3
    text = page.locator(".recall[open] .folded").first
    text.wait_for()
    folded = text.bounding_box()["height"]
    assert folded < 75
    text.press("Enter")
    assert text.bounding_box()["height"] > folded
    assert axe(page) == []
