"""Take the pictures of the widgets: ``python experiments/screenshots.py [widget ...]``.

Each widget is served on this machine as a page, on the bundled conversation, and drawn by Chromium into
``docs/images/<bundle>.png``. ``SCENES`` has the actions before a picture is taken, and ``FILMS`` the actions while
``<bundle>.gif`` is recorded.

It needs the extra ``dev`` and a Chromium (``MEMLAB_BROWSER`` may be its path).
"""

from __future__ import annotations

import asyncio
import functools
import io
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops, ImageOps
from playwright.async_api import async_playwright

import memlab
from memlab.io.ingest import conversation, read_locomo
from memlab.science.simulation import WORLDS, World, live
from memlab.ui import widgets
from memlab.ui.demo import CONVERSATION, QUESTION
from memlab.ui.demo.first_minutes import Trial, build_page
from memlab.ui.widgets import (
    EvaluationBoard,
    LifePlayer,
    MemoryMap,
    MemoryTable,
    PolicyStudio,
    RecallExplorer,
    VersionTimeline,
)
from memlab.ui.widgets._widget import Widget
from memlab.ui.widgets.view import Page

TARGET = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 980
GENTLE = """(pack gentle "Forgets memories of low retention." :inherits fsrs)
(defpolicy forget [retention] (< retention (param :floor 0.5 :low 0 :high 1)))"""


def build_conversation_lab() -> memlab.Lab:
    """Return a lab with the bundled conversation, a day after its end."""
    (labelled,) = read_locomo(CONVERSATION)
    lab = memlab.open(clock=memlab.ManualClock(labelled.conversation.end + timedelta(days=1)))
    conversation(lab, labelled.conversation)
    return lab


@functools.cache
def build_team_lab() -> memlab.Lab:
    """Return a lab of a simulated team with corrections and clusters."""
    lab = live(WORLDS["differs"]).lab
    decisions = lab.memories.filter(kind="decision")["id"].to_list()
    lab.forget(decisions[:14])
    lab.forget(decisions[14:20], how="deprecate", reason="the team has moved")
    lab.edit(decisions[-1], pinned=True)
    for a, b in zip(decisions[-8:-2:2], decisions[-7:-2:2], strict=True):
        lab.graph.link(a, b, "contradicts")
    lab.graph.clusters.find()
    return lab


def build_challenged_lab() -> memlab.Lab:
    """Return a month of a simulated user under the default pack, with a challenger."""
    world = World("month", days=30, projects=4, messages_per_day=10, questions_per_day=8)
    return live(world, challengers=["companion"], every_days=1.0).lab


def build_operated_lab() -> memlab.Lab:
    """Return a month under a pack that confirms facts; some are corrected, merged or forgotten."""
    lab = live(
        World("kept", days=30, projects=2, messages_per_day=6, questions_per_day=4),
        pack="factgraph",
        every_days=1.0,
    ).lab
    for id in (3, 17, 40, 58):
        lab.edit(id, text=f"{lab[id].text} (corrected)")
    lab.forget([12, 13, 29])
    lab.recall("when is the weekly sync?", limit=5)
    return lab


async def tabulate(page: Any) -> None:
    """Filter by two columns, and open one memory."""
    await page.get_by_title("decision: ").click()
    await page.get_by_title("convention: ").click()
    plot = await page.locator(".plot").first.bounding_box()
    await page.mouse.move(plot["x"] + plot["width"] * 0.45, plot["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(plot["x"] + plot["width"] * 0.95, plot["y"] + 20, steps=4)
    await page.mouse.up()
    await page.wait_for_timeout(500)
    await page.locator(".scroll .open").nth(2).click()
    await page.locator(".details .fields").wait_for()
    await page.get_by_role("button", name="History").click()
    await page.get_by_text("History of memory").wait_for()
    await page.evaluate("document.activeElement.blur()")


async def chart(page: Any) -> None:
    """Open one memory with its neighbours."""
    await page.locator(".plane[data-drawn]").wait_for()
    await page.wait_for_timeout(400)
    plane = await page.locator(".plane").bounding_box()
    await page.mouse.click(plane["x"] + plane["width"] * 0.42, plane["y"] + plane["height"] * 0.4)
    await page.locator(".plane").focus()
    await page.keyboard.press("Enter")
    await page.locator(".graph").wait_for()
    await page.wait_for_timeout(9_000)
    await page.evaluate("document.activeElement.blur()")


async def explore(page: Any) -> None:
    """Explain the best result of a logged recall, and compare two."""
    await page.get_by_label("Query", exact=True).press("Enter")
    await page.get_by_text("logged as recall").wait_for()
    for pin in (await page.get_by_role("button", name="for comparison").all())[:2]:
        await pin.click()
    await page.get_by_text("is above by").wait_for()
    await page.locator(".hit .text").nth(1).click()
    await page.locator(".explained table").wait_for()
    await page.locator(".hit .success").first.click()
    await page.locator(".success[aria-pressed=true]").wait_for()
    await page.evaluate("document.activeElement.blur()")


POLICY = """\
(defpolicy recall-score
  [similarity lexical session-seed age-days asks]
  "Meaning, words, context, and how fresh."
  (+ (* (param :meaning 0.4 :low 0 :high 1)
        (min-max similarity))
     (* (param :words 0.4 :low 0 :high 1)
        (min-max lexical))
     (* (param :context 0.2 :low 0 :high 1)
        (min-max session-seed))
     (* (param :fresh 0 :low 0 :high 1)
        (half-life-decay age-days
          (param :half-life 60 :low 5 :high 180)))
     (if asks -0.1 0)))
"""


def studio(lab: memlab.Lab) -> PolicyStudio:
    """Return the studio with ten questions and a policy with four parameters."""
    (labelled,) = read_locomo(CONVERSATION)
    questions = list(dict.fromkeys(question.text for question in labelled.questions))
    lab.policies.install("recall-score", POLICY, reason="four numbers to try")
    return PolicyStudio(
        lab,
        questions=[QUESTION, *(question for question in questions if question != QUESTION)][:10],
    )


async def slide(page: Any, name: str, value: float, *, wait: int = 250) -> None:
    """Drag a slider to a value, and wait for the ranks."""
    slider = page.get_by_role("slider", name=name)
    await slider.evaluate(
        "(one, value) => { one.value = value; one.dispatchEvent(new Event('input', { bubbles: true })); }",
        value,
    )
    await page.wait_for_timeout(wait)


async def tune(page: Any) -> None:
    """Drag two sliders, and explain a memory that rose."""
    await page.locator(".slopes .row").first.wait_for()
    await slide(page, "words", 0.3)
    await slide(page, "fresh", 0.35)
    await page.locator(".after [data-rank='1'] button").click()
    await page.locator(".explained table").wait_for()


def versions(lab: memlab.Lab) -> VersionTimeline:
    """Return three versions of one slot over six weeks, with a challenger and a pin."""
    clock = lab.io.store.clock
    assert isinstance(clock, memlab.ManualClock)
    (labelled,) = read_locomo(CONVERSATION)
    questions = list(dict.fromkeys(entry.text for entry in labelled.questions))
    fresh = POLICY.replace(":fresh 0 ", ":fresh 0.35 ")
    for day in range(42):
        clock.advance(days=1)
        if day == 8:
            lab.policies.install("recall-score", POLICY, reason="four numbers to try")
        if day == 15:
            lab.challenge("companion", reason="is it better at what changed?")
        if day == 20:
            lab.policies.install("recall-score", fresh, reason="outdated memories stood first")
            lab.policies.pin("half-life", reason="held while scores are compared")
        if day == 27:
            lab.policies.end_challenge("companion")
        if day == 34:
            lab.policies.install(
                "recall-score",
                fresh.replace(":half-life 60", ":half-life 20"),
                reason="fresher still",
            )
        for question in questions[day % 5 :: 5][:6]:
            hit = lab.recall(question)[0]
            lab.feedback(
                hit, "success" if (hit.id * 7 + day * 3) % 10 < (6 if day < 20 else 8) else "fail"
            )
    return VersionTimeline(
        lab, questions=[QUESTION, *(entry for entry in questions if entry != QUESTION)][:10]
    )


async def compare(page: Any) -> None:
    """Select two versions."""
    await page.get_by_label("Pick version 4").click()
    await page.get_by_label("Pick version 2").click()
    await page.get_by_label("Versions 2 and 3").wait_for()


async def evaluate(page: Any) -> None:
    """Open the planner below the leaderboard, with two extra items."""
    await page.locator(".leaders").wait_for(timeout=120_000)
    await page.get_by_role("button", name="Plan a challenge").click()
    await page.locator(".designs").wait_for(timeout=120_000)
    await page.get_by_role("slider", name="extra items").fill("2")
    await page.evaluate("document.activeElement.blur()")


async def scrub(page: Any) -> None:
    """Open the end of a run, the policy of its last event, and change a parameter."""
    await page.get_by_role("button", name="Play").click(timeout=120_000)
    await page.get_by_role("button", name="Pause").click()
    await page.get_by_label("Event", exact=True).press("End")
    await page.get_by_role("heading", name="recall").wait_for()
    await page.get_by_text("Working for").wait_for(state="hidden", timeout=60_000)
    await page.get_by_role("button", name="recall-score").click()
    await page.get_by_label("retention w20").fill("0.25")
    await page.get_by_text("with the slider values").first.wait_for(timeout=60_000)
    await page.evaluate("document.activeElement.blur()")


async def open_missed_question(page: Any) -> None:
    """Open the cause of a miss, in a window that shows all missed questions."""
    await page.set_viewport_size({"width": 1200, "height": 980})
    await page.get_by_role("button", name="physiotherapist").click()
    await page.get_by_text("stands above").wait_for()
    await page.evaluate("document.activeElement.blur()")


async def view(page: Any) -> None:
    """Open the page of a lab on the tab of the explorer."""
    await page.get_by_role("tab", name="Recall explorer").click()
    await page.get_by_placeholder("What would you ask this memory?").fill(QUESTION)
    await page.locator(".hit").first.wait_for()
    await page.evaluate("document.activeElement.blur()")


SCENES: dict[
    str, tuple[Callable[[memlab.Lab], Widget | Page], Callable[[Any], Awaitable[None]]]
] = {
    "explorer": (lambda lab: RecallExplorer(lab, question=QUESTION, limit=6), explore),
    "studio": (studio, tune),
    "timeline": (versions, compare),
    "map": (lambda _: MemoryMap(build_team_lab(), colour="cluster"), chart),
    "table": (lambda _: MemoryTable(build_team_lab()), tabulate),
    "board": (
        lambda lab: EvaluationBoard(lab, ["memlab", "companion", "cascade"], missing="zero"),
        evaluate,
    ),
    "player": (lambda lab: LifePlayer(lab, packs=[GENTLE, "companion"], until="2026-06-01"), scrub),
    "overview": (lambda _: build_page(Trial()), open_missed_question),
    "view": (
        lambda lab: Page(KINDS, make=lambda kind: kind(lab), title="agent.memlab", note="writable"),
        view,
    ),
}
# the base class has no bundle
KINDS = [getattr(widgets, name) for name in widgets.__all__ if name != "Widget"]
LABS = {"board": build_challenged_lab, "player": build_operated_lab}
"""Labs of scenes that do not use the bundled conversation."""


async def film_studio(page: Any, draw: Callable[[int], Awaitable[None]]) -> None:
    """Drag two sliders, then install the policy; ``draw`` takes hundredths of a second."""
    await page.locator(".slopes .row").first.wait_for()
    await draw(120)
    for name, values in (("fresh", range(0, 51, 2)), ("half-life", range(60, 44, -1))):
        await page.get_by_role("slider", name=name).focus()
        for value in values:
            await slide(page, name, value / 100 if name == "fresh" else value, wait=0)
            for _ in range(2):
                await page.wait_for_timeout(60)
                await draw(6)
        await draw(130)
    await page.get_by_label("Reason").fill("outdated memories stood first")
    await draw(60)
    await page.get_by_role("button", name="Install").click()
    await page.get_by_text("is active.").wait_for()
    await page.wait_for_timeout(300)
    await draw(220)


FILMS = {"studio": film_studio}


async def film(browser: Any, name: str) -> None:
    """Record ``FILMS`` as an animated picture in one palette, without repeated frames."""
    frames: list[Image.Image] = []
    times: list[int] = []
    with build_conversation_lab() as lab:
        served = Page(SCENES[name][0](lab))
        context = await browser.new_context(
            viewport={"width": WIDTH, "height": 900}, color_scheme="light"
        )
        page = await context.new_page()
        await page.goto(served.url)

        async def draw(hundredths: int) -> None:
            drawn = Image.open(io.BytesIO(await page.locator(".memlab").screenshot())).convert(
                "RGB"
            )
            if frames and ImageChops.difference(drawn, frames[-1]).getbbox() is None:
                times[-1] += hundredths
            else:
                frames.append(drawn)
                times.append(hundredths)

        await FILMS[name](page, draw)
        await context.close()
        served.close()
    height = max(frame.height for frame in frames)
    framed = [
        ImageOps.pad(frame, (frame.width, height), color="white", centering=(0, 0))
        for frame in frames
    ]
    palette = framed[len(framed) // 2].quantize(128, dither=Image.Dither.NONE)
    first, *rest = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in framed)
    file = TARGET / f"{name}.gif"
    durations = [10 * time for time in times]
    first.save(
        file,
        save_all=True,
        append_images=rest,
        duration=durations,
        loop=0,
        optimize=True,
        disposal=1,
    )
    print(f"{file}: {len(frames)} frames, {file.stat().st_size / 1024:.0f} kB")


async def main(wanted: list[str]) -> None:
    """Take the wanted pictures."""
    TARGET.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("MEMLAB_BROWSER") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in wanted or SCENES:
            make, act = SCENES[name]
            target = TARGET / f"{name}.png"
            with LABS.get(name, build_conversation_lab)() as lab:
                widget = make(lab)
                served = widget if isinstance(widget, Page) else Page(widget)
                context = await browser.new_context(
                    viewport={"width": WIDTH, "height": 900},
                    color_scheme="light",
                    device_scale_factor=1.5,
                )
                page = await context.new_page()
                await page.goto(served.url)
                await page.locator(".memlab").first.wait_for()
                await act(page)
                await page.mouse.move(0, 0)
                await page.wait_for_timeout(400)
                # The overview is long, so its picture ends with the window.
                body = page.locator("body" if name == "view" else ".memlab")
                element = page if name == "overview" else body
                drawn = Image.open(io.BytesIO(await element.screenshot()))
                drawn.convert("RGB").quantize(
                    256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
                ).save(target, optimize=True)
                await context.close()
                served.close()
            print(f"{target}: {target.stat().st_size / 1024:.0f} kB")
            if name in FILMS:
                await film(browser, name)
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
