"""Pictures of the widgets for the documentation: ``python experiments/screenshots.py [widget ...]``.

Each widget is served on this machine as a page, on the bundled conversation, and drawn by Chromium into
``docs/images/<bundle>.png`` and ``<bundle>-dark.png``. What is done in the page before the picture is taken stands in
``SCENES``. Needs the extra ``dev`` and a Chromium (``MEMLAB_BROWSER`` may be its path).
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import async_playwright

import memlab
from memlab.demo import CONVERSATION, QUESTION
from memlab.ingest import conversation, read_locomo
from memlab.widgets import RecallExplorer
from memlab.widgets._page import Page
from memlab.widgets._widget import Widget

TARGET = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 980


def talked() -> memlab.Lab:
    """A lab with the bundled conversation, a day after it ended."""
    (labelled,) = read_locomo(CONVERSATION)
    lab = memlab.open(clock=memlab.ManualClock(labelled.conversation.end + timedelta(days=1)))
    conversation(lab, labelled.conversation)
    return lab


async def explore(page: Any) -> None:
    """A logged recall of which the best is explained and two are compared."""
    await page.get_by_label("Question").press("Enter")
    await page.get_by_text("logged as recall").wait_for()
    for pin in (await page.get_by_role("button", name="to compare").all())[:2]:
        await pin.click()
    await page.get_by_text("is above by").wait_for()
    await page.locator(".hit .text").nth(1).click()
    await page.locator(".explained table").wait_for()
    await page.locator(".hit .success").first.click()
    await page.locator(".success[aria-pressed=true]").wait_for()
    await page.evaluate("document.activeElement.blur()")


SCENES: dict[str, tuple[Callable[[memlab.Lab], Widget], Callable[[Any], Awaitable[None]]]] = {
    "explorer": (lambda lab: RecallExplorer(lab, question=QUESTION, limit=6), explore),
}


async def main(wanted: list[str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("MEMLAB_BROWSER") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name in wanted or SCENES:
            make, act = SCENES[name]
            for scheme, file in (("light", f"{name}.png"), ("dark", f"{name}-dark.png")):
                with talked() as lab:
                    served = Page(make(lab))
                    context = await browser.new_context(
                        viewport={"width": WIDTH, "height": 900}, color_scheme=scheme, device_scale_factor=1.5
                    )
                    page = await context.new_page()
                    await page.goto(served.url)
                    await page.locator(".memlab").wait_for()
                    await act(page)
                    await page.mouse.move(0, 0)
                    await page.wait_for_timeout(400)
                    drawn = Image.open(io.BytesIO(await page.locator(".memlab").screenshot()))
                    drawn.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(TARGET / file, optimize=True)
                    await context.close()
                    served.close()
                print(f"{TARGET / file}: {(TARGET / file).stat().st_size / 1024:.0f} kB")
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
