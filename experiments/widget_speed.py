"""How soon a keystroke in the policy studio is a ranked list: ``python experiments/widget_speed.py [memories]``.

Ten questions on a lab of 10,000 memories (or as many as are given). In the kernel: from the text to the state that is
sent, for a recall-score that is scored again on what was asked, and for a slot that decides the candidates, where each
question is asked again. In the browser: from the event of the slider to the frame in which the page has the new ranks,
over the websocket of ``memlab view``. The first few are left out. A ratio is the p95 divided by what it may take.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from playwright.async_api import async_playwright

import memlab
from memlab.widgets import PolicyStudio
from memlab.widgets._page import Page

WORDS = [f"{kind}{number}" for kind in ("place", "thing", "person") for number in range(14)]
SCORE = """(fn [similarity lexical age-days]
  (+ (* (param :meaning {} :low 0 :high 1) (min-max similarity))
     (* 0.4 (min-max lexical))
     (* 0.1 (half-life-decay age-days 60))))"""
SEED = "(fn [similarity lexical] (+ (* (param :meaning {} :low 0 :high 1) (min-max similarity)) (min-max lexical)))"
ROUNDS, WARM = 60, 5
KERNEL, BROWSER = 150, 300
"""Milliseconds that the 95th of a hundred may take."""


def filled(count: int) -> memlab.Lab:
    chance = random.Random(7)
    lab = memlab.open()
    lab.remember_many([{"text": f"{' '.join(chance.choices(WORDS, k=9))} {number}"} for number in range(count)])
    return lab


def asked() -> list[str]:
    chance = random.Random(8)
    return [" ".join(chance.choices(WORDS, k=4)) for _ in range(10)]


def shown(what: str, times: list[float], limit: float) -> None:
    middle, high = np.percentile(times[WARM:], [50, 95])
    print(f"{what:<58} p50 {middle:6.1f} ms  p95 {high:6.1f} ms  of {limit} ms: {high / limit:.2f}")


def in_kernel(studio: PolicyStudio, slot: str, text: Callable[[float], str]) -> list[float]:
    studio.slot = slot
    times = []
    for step in range(ROUNDS + WARM):
        source = text(round(0.1 + 0.01 * step, 2))
        start = time.perf_counter()
        reply, _ = studio.answer({"id": step, "verb": "check", "arguments": {"source": source, "view": "x"}})
        times.append(1e3 * (time.perf_counter() - start))
        assert "error" not in reply, reply
        assert studio._about["problem"] is None
    return times


_MEASURE = """async (value) => {
  const slider = document.querySelector('.memlab .sliders input');
  const status = document.querySelector('.memlab p.status');
  const before = status.textContent;
  const begun = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  while (document.querySelector('.memlab p.status').textContent === before) {
    await new Promise(requestAnimationFrame);
    if (performance.now() - begun > 10000) throw new Error('no answer');
  }
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""


async def in_browser(lab: memlab.Lab) -> list[float]:
    studio = PolicyStudio(lab, questions=asked())
    studio.source = SCORE.format(0.5)
    served = Page(studio)
    path = os.environ.get("MEMLAB_BROWSER") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page: Any = await browser.new_page()
        await page.goto(served.url)
        await page.locator(".memlab .after .row").first.wait_for()
        times = [await page.evaluate(_MEASURE, round(0.1 + 0.01 * step, 2)) for step in range(ROUNDS + WARM)]
        await browser.close()
    served.close()
    return times


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with filled(count) as lab:
        start = time.perf_counter()
        studio = PolicyStudio(lab, questions=asked())
        print(f"{count:,} memories; opened in {time.perf_counter() - start:.2f} s, the first time")
        shown("kernel, recall-score scored again", in_kernel(studio, "recall-score", SCORE.format), KERNEL)
        shown("kernel, seed-score, each question asked again", in_kernel(studio, "seed-score", SEED.format), KERNEL)
        shown("browser, slider to ranks on the page", asyncio.run(in_browser(lab)), BROWSER)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
