"""Measure the speed of the widgets.

    python experiments/widget_speed.py [MEMORIES]          # the policy studio
    python experiments/widget_speed.py table [MEMORIES]    # the table and the map
    python experiments/widget_speed.py graph
    python experiments/widget_speed.py first

The policy studio runs ten queries on a lab of 10,000 memories by default. In the kernel, the time from the text to the
sent state is measured. A recall-score scores the candidates again; a slot that selects candidates repeats each
recall. In the browser, it is the time from the slider's event to the frame with the new ranks, over
the websocket of ``memlab view``. The first few are left out. A ratio is the p95 divided by its limit.

The table and the map show 100,000 memories. In the kernel, opening, pages, filters, searches, orders, points and
colours are timed. In the browser, it is the time from a jump of the scroll bar to readable rows, and frames per second
while a map moves, drawn in software.

The graph has 2,000 nodes. Measured are the kernel's time to select them, and frames per second until the layout stops.
A browser without a graphics card computes and draws it on one core. The first widget is timed in a new process, from
its name to its display in a cell.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from playwright.async_api import async_playwright

import memlab
from memlab.ui.widgets import MemoryMap, MemoryTable, PolicyStudio
from memlab.ui.widgets.view import Page

WORDS = [f"{kind}{number}" for kind in ("place", "thing", "person") for number in range(14)]
SCORE = """(fn [similarity lexical age-days]
  (+ (* (param :meaning {} :low 0 :high 1) (min-max similarity))
     (* 0.4 (min-max lexical))
     (* 0.1 (half-life-decay age-days 60))))"""
SEED = "(fn [similarity lexical] (+ (* (param :meaning {} :low 0 :high 1) (min-max similarity)) (min-max lexical)))"
ROUNDS, WARM = 60, 5
KERNEL, BROWSER = 150, 300
"""Limits of the 95th percentile in milliseconds."""


def fill_lab(count: int) -> memlab.Lab:
    """Return a lab of random memories."""
    chance = random.Random(7)
    lab = memlab.open()
    lab.remember(
        [{"text": f"{' '.join(chance.choices(WORDS, k=9))} {number}"} for number in range(count)]
    )
    return lab


def draw_queries() -> list[str]:
    """Return ten random queries."""
    chance = random.Random(8)
    return [" ".join(chance.choices(WORDS, k=4)) for _ in range(10)]


def print_row(what: str, times: list[float], limit: float) -> None:
    """Print a row."""
    middle, high = np.percentile(times[WARM:], [50, 95])
    print(f"{what:<58} p50 {middle:6.1f} ms  p95 {high:6.1f} ms  of {limit} ms: {high / limit:.2f}")


def time_checks(studio: PolicyStudio, slot: str, text: Callable[[float], str]) -> list[float]:
    """Return the times of checks in the kernel."""
    studio.slot = slot
    times = []
    for step in range(ROUNDS + WARM):
        source = text(round(0.1 + 0.01 * step, 2))
        start = time.perf_counter()
        reply, _ = studio.answer(
            {"id": step, "verb": "check", "arguments": {"source": source, "view": "x"}}
        )
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


async def time_slider(lab: memlab.Lab) -> list[float]:
    """Return the times from a slider to the ranks."""
    studio = PolicyStudio(lab, questions=draw_queries())
    studio.source = SCORE.format(0.5)
    served = Page(studio)
    path = os.environ.get("MEMLAB_BROWSER") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page: Any = await browser.new_page()
        await page.goto(served.url)
        await page.locator(".memlab .after .row").first.wait_for()
        times = [
            await page.evaluate(_MEASURE, round(0.1 + 0.01 * step, 2))
            for step in range(ROUNDS + WARM)
        ]
        await browser.close()
    served.close()
    return times


LOOKS = 15
_JUMP = """async (share) => {
    const el = document.querySelector('.scroll'), start = performance.now();
    el.scrollTop = share * el.scrollHeight;
    do await new Promise(requestAnimationFrame);
    while (document.querySelector('.scroll .waiting') || !document.querySelector('.scroll .row'));
    return performance.now() - start }"""
"""Jump to other rows, and wait until they are readable."""
_MOVE = """async () => {
    const el = document.querySelector('.plane'), start = performance.now();
    let frames = 0;
    while (performance.now() - start < 3000) {
        const key = frames++ % 2 ? 'ArrowLeft' : 'ArrowRight';
        el.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        await new Promise(requestAnimationFrame);
    }
    return 1000 * frames / (performance.now() - start) }"""


def invent_table_word(number: int) -> str:
    return f"{('place', 'thing', 'person')[number % 3]}{number // 3}"


def build_table_lab(count: int) -> memlab.Lab:
    """Return a lab with all kinds, 40 speakers and 12 projects, over a year."""
    chance = random.Random(7)
    lab = memlab.open()
    rows = [
        {
            "text": f"{' '.join(invent_table_word(chance.randrange(600)) for _ in range(9))} {number}",
            "kind": chance.choice(memlab.KINDS[:12]),
            "speaker": f"speaker {chance.randrange(40)}",
            "project": f"project {chance.randrange(12)}",
            "at": f"2025-{chance.randrange(1, 13):02d}-{chance.randrange(1, 28):02d}",
        }
        for number in range(count)
    ]
    lab.remember(rows, linking="off")
    return lab


def print_table_row(what: str, times: list[float], limit: float = float("nan")) -> None:
    middle, high = np.percentile(times, [50, 95])
    print(
        f"{what:<58} p50 {middle:7.1f} ms  p95 {high:7.1f} ms"
        + (f"  of {limit:g}" if limit == limit else "")
    )


def time_table_call(act: Callable[[int], object], rounds: int = LOOKS) -> list[float]:
    times = []
    for step in range(rounds):
        start = time.perf_counter()
        act(step)
        times.append(1_000 * (time.perf_counter() - start))
    return times


def measure_table_in_kernel(lab: memlab.Lab) -> None:
    print_table_row("table opens", time_table_call(lambda _: MemoryTable(lab), 5), 1_000)
    table = MemoryTable(lab)

    def ask(verb: str, **arguments: Any) -> None:
        reply, _ = table.answer({"id": 1, "verb": verb, "arguments": arguments})
        assert "error" not in reply, reply

    rest = {"filters": {}, "search": "", "by": "word", "sort": []}
    print_table_row(
        "a page of 100 rows",
        time_table_call(lambda step: ask("page", start=997 * step, count=100)),
        100,
    )
    kinds = memlab.KINDS
    print_table_row(
        "another kind",
        time_table_call(lambda n: ask("show", **{**rest, "filters": {"kind": [kinds[n % 12]]}})),
    )
    print_table_row(
        "another brush of time",
        time_table_call(
            lambda n: ask(
                "show", **{**rest, "filters": {"created": [f"2025-0{1 + n % 9}-01", None]}}
            )
        ),
    )
    print_table_row(
        "search by word",
        time_table_call(lambda n: ask("show", **{**rest, "search": invent_table_word(n)})),
    )
    print_table_row(
        "search by meaning",
        time_table_call(
            lambda n: ask("show", **{**rest, "search": invent_table_word(n), "by": "meaning"})
        ),
    )
    print_table_row(
        "another order",
        time_table_call(lambda n: ask("show", **{**rest, "sort": ["kind", bool(n % 2)]})),
    )


def measure_map_in_kernel(lab: memlab.Lab) -> None:
    print_table_row("map opens", time_table_call(lambda _: MemoryMap(lab), 5))
    chart = MemoryMap(lab)
    for colour in ("status", "retention", "recalled", "cluster"):
        print_table_row(
            f"map coloured by {colour}",
            time_table_call(lambda _, to=colour: setattr(chart, "colour", to), 1),
        )


async def measure_table_in_browser(lab: memlab.Lab) -> None:
    path = os.environ.get("MEMLAB_BROWSER") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1100, "height": 900})
        served = Page(MemoryTable(lab))
        start = time.perf_counter()
        await page.goto(served.url)
        await page.locator(".scroll .row[data-memory]").first.wait_for()
        print_table_row(
            "browser: table opens, without the reading",
            [1_000 * (time.perf_counter() - start)],
            1_000,
        )
        times = [await page.evaluate(_JUMP, (0.07 + 0.618 * step) % 1) for step in range(LOOKS)]
        print_table_row("browser: a jump to rows that were not read", times, 100)
        served.close()
        served = Page(MemoryMap(lab))
        await page.goto(served.url)
        await page.locator(".plane[data-drawn]").wait_for()
        await page.wait_for_timeout(1_000)
        await page.locator(".plane").focus()
        frames = await page.evaluate(_MOVE)
        print(f"browser: map moved, drawn in software{'':<22} {frames:5.1f} views a second")
        served.close()
        await browser.close()


def measure_table() -> None:
    with build_table_lab(int(sys.argv[2]) if len(sys.argv) > 2 else 100_000) as lab:
        measure_table_in_kernel(lab)
        measure_map_in_kernel(lab)
        asyncio.run(measure_table_in_browser(lab))


NODES = 2_000
_FIRST = """
import time, memlab
lab = memlab.open()
lab.remember([f"note {n} on thing {n % 40}" for n in range(1_000)])
lab.recall("thing 7")
start = time.perf_counter()
memlab.widgets.WIDGET(lab)._repr_mimebundle_()
print(time.perf_counter() - start)
"""


async def measure_graph_in_browser(chart: MemoryMap) -> None:
    path = os.environ.get("MEMLAB_BROWSER") or shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1100, "height": 900})
        served = Page(chart)
        await page.goto(served.url)
        await page.locator(".graph").wait_for()
        await page.get_by_label("At most").fill(str(NODES))
        graph = page.get_by_label(f"Graph of {NODES} nodes")
        await graph.wait_for()
        edges = (await graph.get_attribute("aria-label")).split(" and ")[1].split(";")[0]
        rate, since = "0", time.perf_counter()
        # the rate is updated every 30 frames until the layout stops
        while time.perf_counter() - since < 5:
            await page.wait_for_timeout(100)
            rate_text = await graph.get_attribute("data-rate")
            if rate_text != rate:
                rate, since = rate_text, time.perf_counter()
        print(
            f"browser: graph of {NODES:,} nodes, {edges}, drawn in software: {rate} frames a second on average"
        )
        served.close()
        await browser.close()


def measure_graph() -> None:
    with memlab.open() as lab:
        lab.remember(
            [{"text": f"Row {n}", "tags": [f"t{n % 40}", "all"]} for n in range(NODES + 200)]
        )
        chart = MemoryMap(lab)
        chart.focus = 1

        def ask(_: int) -> None:
            reply, _tables = chart.answer(
                {"id": 1, "verb": "graph", "arguments": {"seeds": 1, "most": NODES}}
            )
            assert "error" not in reply, reply

        print_table_row(f"kernel: a neighbourhood of {NODES:,} nodes", time_table_call(ask))
        asyncio.run(measure_graph_in_browser(chart))


def measure_first_widget() -> None:
    for name in memlab.widgets.__all__:
        command = [sys.executable, "-c", _FIRST.replace("WIDGET", name)]
        runs = [
            float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(3)
        ]
        print(f"first widget: {name:<44} median {1e3 * sorted(runs)[1]:7.1f} ms  of 1000")


def main() -> None:
    """Measure the studio."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with fill_lab(count) as lab:
        start = time.perf_counter()
        studio = PolicyStudio(lab, questions=draw_queries())
        print(f"{count:,} memories; opened in {time.perf_counter() - start:.2f} s, the first time")
        print_row(
            "kernel, recall-score scored again",
            time_checks(studio, "recall-score", SCORE.format),
            KERNEL,
        )
        print_row(
            "kernel, seed-score, each question asked again",
            time_checks(studio, "seed-score", SEED.format),
            KERNEL,
        )
        print_row("browser, slider to ranks on the page", asyncio.run(time_slider(lab)), BROWSER)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    {"table": measure_table, "graph": measure_graph, "first": measure_first_widget}.get(
        "".join(sys.argv[1:2]), main
    )()
