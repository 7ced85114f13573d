"""The memory map in a browser: in JupyterLab, as a page over a websocket, and where there is no WebGL."""

import io

import polars as pl
import pytest
from texts import TEXTS

import memlab
from memlab.ui.widgets import MemoryMap
from tests.widgets.shared import shared

pytestmark = pytest.mark.browser

SETUP = f"""
import memlab
lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
lab.remember([{{"text": text, "kind": kind, "speaker": "Ada"}} for text, kind in {TEXTS!r}])
lab.graph.link(1, 5)
chart = memlab.widgets.MemoryMap(lab)
chart
"""


def lasso(page, left=0.02, top=0.02, right=0.98, bottom=0.98):
    """Drag around a rectangle of the map, by shares of its width and height."""
    page.get_by_role("button", name="Lasso").click()
    box = page.locator(".plane").bounding_box()
    # buttons lie over the left of the top
    corners = [(right, top), (right, bottom), (left, bottom), (left, top)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=3)
    page.mouse.up()


def test_in_jupyterlab_a_lasso_is_a_selection(notebook, run_cell, axe):
    page = notebook(SETUP)
    page.locator(".plane[data-drawn='webgl']").wait_for()
    page.locator(".plane").scroll_into_view_if_needed()
    lasso(page)
    page.get_by_text("6 selected").wait_for()
    assert run_cell(page, "lab.memories.filter(chart.selection).height") == "6"
    run_cell(page, "chart.focus = 1; chart.ids = [1, 5]; 'set'")
    page.get_by_text("2 selected").wait_for()
    page.locator(".focus").get_by_text("The user prefers tabs").wait_for()
    page.get_by_text("relates-to →").wait_for()
    page.get_by_label("Trace spreading activation").fill("tabs or spaces?")
    page.get_by_label("Trace spreading activation").press("Enter")
    page.get_by_text("Step 0 of 4").wait_for()
    page.get_by_role("slider", name="Step").press("ArrowRight")
    page.get_by_text("Step 1 of 4").wait_for()
    assert axe(page) == []


@pytest.fixture
def page_of(serve, tab):
    def opened(rows=None, *, scheme="light", edges=(), plain=False, **options):
        def make():
            lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
            lab.remember(
                rows or [{"text": text, "kind": kind, "speaker": "Ada"} for text, kind in TEXTS]
            )
            for a, b in edges:
                lab.graph.link(a, b)
            return MemoryMap(lab, **options)

        url, widget = serve(make)
        page = tab("about:blank" if plain else url, scheme=scheme)
        if plain:
            page.add_init_script(
                "const get = HTMLCanvasElement.prototype.getContext;"
                "HTMLCanvasElement.prototype.getContext = function (kind, ...rest)"
                "{ return kind.startsWith('webgl') ? null : get.call(this, kind, ...rest) }"
            )
            page.goto(url)
        page.locator(".plane[data-drawn]").wait_for()
        return page, widget

    return opened


def inked(page):
    """How many pixels of the map have been drawn."""
    page.wait_for_timeout(300)
    return page.evaluate(
        """() => { const from = document.querySelector('.plane canvas'), to = document.createElement('canvas');
            [to.width, to.height] = [from.width, from.height];
            const pen = to.getContext('2d'); pen.drawImage(from, 0, 0);
            return pen.getImageData(0, 0, to.width, to.height).data.filter((v, at) => at % 4 === 3 && v > 0).length }"""
    )


def test_points_are_drawn_by_webgl_zoomed_and_coloured(page_of):
    page, chart = page_of()
    before = inked(page)
    assert before > 50
    page.get_by_role("button", name="Zoom in").click()
    assert inked(page) != before
    page.get_by_label("Colour").select_option("retention")
    page.get_by_text("1: as new").wait_for()
    assert chart.colour == "retention"
    page.get_by_label("Colour").select_option("kind")
    page.get_by_role("button", name="fact 3").click()
    page.get_by_text("3 selected").wait_for()
    assert sorted(chart.ids) == [3, 4, 5]


def test_without_webgl_it_says_so_and_draws_on(page_of):
    page, _ = page_of(plain=True)
    page.get_by_text("draws no WebGL here").wait_for()
    assert inked(page) > 50
    lasso(page)
    page.get_by_text("6 selected").wait_for()


def test_a_memory_is_looked_at_by_keys_and_its_text_stays_text(page_of):
    page, chart = page_of()
    page.locator(".plane").focus()
    page.keyboard.press("Enter")
    page.locator(".focus").wait_for()
    assert chart.focus > 0
    for id in (3, 4):
        chart.focus = id
        page.get_by_text(f"#{id} · fact").wait_for()
    assert page.locator(".memlab img, .memlab .said b").count() == 0
    assert "␛[2J" in page.locator(".focus").inner_text()


def test_a_graph_of_2000_nodes_is_drawn(page_of, record_property):
    rows = [{"text": f"Row {n}", "tags": [f"t{n % 40}", "all"]} for n in range(2_200)]
    page, chart = page_of(rows)
    chart.focus = 1
    page.locator(".graph").wait_for()
    page.get_by_label("At most").fill("2000")
    page.get_by_label("Graph of 2000 nodes").wait_for()
    page.wait_for_function("() => Number(document.querySelector('.graph').dataset.rate) > 0")
    record_property("frames a second", page.locator(".graph").get_attribute("data-rate"))
    print("frames a second:", page.locator(".graph").get_attribute("data-rate"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_those_who_cannot_see_it_all(page_of, axe, scheme):
    page, chart = page_of(scheme=scheme, edges=[(1, 5), (2, 6)])
    chart.focus = 1
    page.locator(".focus").wait_for()
    page.get_by_text("relates-to").wait_for()
    assert axe(page) == []


def test_activation_spreads_step_by_step(page_of):
    page, chart = page_of(edges=[(1, 5), (2, 6)])
    chart.focus = 1
    page.locator(".focus").wait_for()
    page.get_by_label("Trace spreading activation").fill("tabs or spaces?")
    page.get_by_label("Trace spreading activation").press("Enter")
    page.get_by_text("Step 0 of 4").wait_for()
    page.get_by_role("slider", name="Step").press("ArrowRight")
    page.get_by_text("Step 1 of 4").wait_for()
    assert page.locator(".steps li").count() > 2
    assert chart.focus == 0


def test_a_lasso_has_a_list_of_texts_and_regions_are_named(page_of, axe):
    topics = ["harbour boats", "garden roses", "bakery bread", "guitar music"]
    rows = [
        {"text": f"The {topics[n % 4]} of day {n} " + "and more " * 30, "speaker": "Ada"}
        for n in range(200)
    ]
    page, chart = page_of(rows)
    assert len(shared(chart, "about")["regions"]) > 1
    before = labelled(page)
    assert before > 200
    lasso(page)
    listed = page.get_by_label("Selected memories").locator("li")
    listed.first.wait_for()
    assert listed.count() == 50
    assert "The first 50 texts" in page.get_by_label("Selected memories").inner_text()
    text = listed.first.locator(".folded")
    height = text.bounding_box()["height"]
    text.click()
    assert text.bounding_box()["height"] > height
    assert axe(page) == []
    listed.first.get_by_title("Show its neighbourhood").click()
    page.get_by_label("Neighbourhood", exact=True).wait_for()
    assert chart.focus == chart.ids[0]
    for colour in ("speaker", "session", "created"):
        page.get_by_label("Colour").select_option(colour)
        page.wait_for_function(
            "text => document.querySelector('.legend').textContent.includes(text)",
            arg={"speaker": "Ada", "session": "none", "created": "2026-03-01"}[colour],
        )
    assert chart.fault == ""


def labelled(page):
    """How many pixels lie over the points."""
    page.wait_for_timeout(300)
    return page.evaluate(
        """() => { const from = document.querySelectorAll('.plane canvas')[1];
            return from.getContext('2d').getImageData(0, 0, from.width, from.height)
                .data.filter((v, at) => at % 4 === 3 && v > 0).length }"""
    )


@pytest.mark.parametrize("width", [1100, 600])
def test_points_are_inspected_where_they_are_drawn(serve, tab, width):
    def make():
        lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
        lab.remember([text for text, _ in TEXTS])
        return MemoryMap(lab)

    url, chart = serve(make)
    page = tab(url, width=width)
    page.locator(".plane[data-drawn]").wait_for()
    box = page.locator(".plane").bounding_box()
    points = pl.read_ipc_stream(io.BytesIO(shared(chart, "points"))).rows(named=True)
    point = max(points, key=lambda row: row["x"])
    scale = 0.94 / 2
    page.mouse.click(
        box["x"] + box["width"] * (0.5 + scale * point["x"]),
        box["y"] + box["height"] * (0.5 - scale * point["y"]),
    )
    page.locator(".near").wait_for()
    assert chart.focus == point["id"]
