"""The memory table in a browser: in JupyterLab, and as a page over a websocket."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from texts import TEXTS

import memlab
from memlab.ui.widgets import MemoryTable
from tests.widgets.shared import set_shared, shared

pytestmark = pytest.mark.browser

SETUP = f"""
import memlab
lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
lab.remember([{{"text": text, "kind": kind, "speaker": "Ada"}} for text, kind in {TEXTS!r}])
table = memlab.widgets.MemoryTable(lab)
table
"""


def shown(page):
    return [
        int(one.get_attribute("data-memory")) for one in page.locator(".memlab .scroll .row").all()
    ]


def wait_for_rows(page, count):
    page.wait_for_function(
        "n => document.querySelectorAll('.memlab .scroll .row[data-memory]').length === n",
        arg=count,
    )


def test_in_jupyterlab_it_is_filtered_corrected_and_read_back(notebook, run_cell, axe):
    page = notebook(SETUP)
    wait_for_rows(page, 6)
    page.get_by_title("fact: 3 of 3").click()
    wait_for_rows(page, 3)
    assert page.get_by_title("convention: 2 of 2").count() == 1
    assert page.get_by_title("Ada: 3 of 6").count() == 1
    page.get_by_label("Clear the filter of kind").click()
    wait_for_rows(page, 6)
    page.locator("[data-memory='2'] .open").click()
    page.get_by_label("Text of memory 2").fill("Deploys go out on Wednesdays")
    page.get_by_role("button", name="Save text").click()
    page.get_by_role("heading", name="Memory 7").wait_for()
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Restore", exact=True).wait_for()
    assert run_cell(page, "print(lab[7].text, lab[7].status, lab[2].status)").endswith(
        "forgotten superseded"
    )
    page.get_by_role("button", name="Restore", exact=True).click()
    page.get_by_text("Restored").wait_for()
    assert axe(page) == []
    assert run_cell(page, "print(lab[7].status)") == "active"
    run_cell(page, "table.filters = {'kind': ['preference']}; 'set'")
    wait_for_rows(page, 1)
    assert run_cell(page, "lab.memories.filter(table.selection)['id'].to_list()") == "[1]"
    run_cell(page, "lab.close(); 'closed'")
    page.get_by_role("searchbox").fill("x")
    page.get_by_role("alert").get_by_text("was closed").wait_for()


@pytest.fixture
def page_of(serve, tab):
    def opened(rows=None, *, scheme="light", **options):
        def make():
            lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
            lab.remember(
                rows or [{"text": text, "kind": kind, "speaker": "Ada"} for text, kind in TEXTS]
            )
            return MemoryTable(lab, **options)

        url, widget = serve(make)
        page = tab(url, scheme=scheme)
        page.locator(".memlab .sheet").wait_for()
        return page, widget

    return opened


def many(count):
    days = [f"2026-01-{1 + n % 28:02d}" for n in range(count)]
    return [
        {"text": f"Row {n}", "kind": ("fact", "goal")[n % 2], "at": day}
        for n, day in enumerate(days)
    ]


def test_rows_are_asked_for_as_they_are_scrolled_to(page_of):
    page, _ = page_of(many(3_000))
    page.get_by_text("3,000 memories").wait_for()
    assert 5 < len(shown(page)) < 40
    page.get_by_role("button", name="#", exact=True).click()
    page.locator("[data-memory='1']").wait_for()
    page.locator(".scroll").evaluate("el => { el.scrollTop = el.scrollHeight }")
    page.locator("[data-memory='3000']").wait_for()
    last = page.locator("[data-memory='2999'] .open")
    last.focus()
    last.press("ArrowDown")
    assert (
        page.evaluate("() => document.activeElement.closest('[data-memory]').dataset.memory")
        == "3000"
    )


def test_a_million_rows_are_scrolled_to_the_last(page_of):
    """The numbers of 300 rows, again and again: a browser has as much to scroll through as of a million memories."""
    page, table = page_of(many(300))
    table._order = pl.Series("row", np.arange(1_000_000) % 300, dtype=pl.UInt32)
    set_shared(
        table, "about", {**shared(table, "about"), "memories": 1_000_000, "shown": 1_000_000}
    )
    page.get_by_text("1,000,000 memories").wait_for()
    box = page.locator(".scroll")
    for share, at in ((0.5, 500_025), (1, 999_999)):
        box.evaluate("(el, share) => { el.scrollTop = share * el.scrollHeight }", share)
        row = page.locator(f".row[data-at='{at}']:not(.waiting)")
        row.wait_for()
        assert row.get_attribute("data-memory") == str(table._rows.frame["id"][at % 300])
        assert len(shown(page)) < 40
    page.locator(".row[data-at='999999'] .open").focus()
    for at in range(999_998, 999_978, -1):  # beyond what was shown, row by row
        page.keyboard.press("ArrowUp")
        page.wait_for_function(
            "at => document.activeElement.closest('[data-at]')?.dataset.at === String(at)", arg=at
        )


def test_a_histogram_is_brushed_and_all_other_heads_follow(page_of):
    page, table = page_of(many(280))
    plot = page.locator(".plot").first
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
    page.mouse.up()
    page.get_by_label("Clear the filter of remembered").wait_for()
    page.wait_for_function(
        "() => / of 280 memories/.test(document.querySelector('.memlab .about').textContent)"
    )
    count = table.frame.height
    assert 100 < count < 200
    assert page.locator(".memlab .count").first.inner_text() == str(
        table.frame.filter(kind="fact").height
    )
    page.get_by_role("slider", name="created to").press("ArrowLeft")
    page.wait_for_function(
        "n => parseInt(document.querySelector('.memlab .about').textContent) < n", arg=count
    )
    assert table.filters["created"][0] is None


def test_several_are_ticked_flagged_and_restored(page_of):
    page, table = page_of()
    for id in (1, 3):
        page.get_by_label(f"Select memory {id}").check()
    page.get_by_role("button", name="Show only these").click()
    wait_for_rows(page, 2)
    assert sorted(table.ids) == [1, 3]
    page.get_by_role("button", name="Flag as wrong …").click()
    page.get_by_label("Why are they wrong?").fill("made up")
    page.get_by_role("button", name="Flag as wrong", exact=True).click()
    page.get_by_text("2 memories flagged as wrong").wait_for()
    page.get_by_role("group", name="Selected memories").get_by_role(
        "button", name="Restore"
    ).click()
    page.get_by_text("2 memories restored").wait_for()
    page.get_by_role("button", name="Clear filters").click()
    wait_for_rows(page, 6)
    page.get_by_label("Select all shown").click()
    page.get_by_text("6 selected").wait_for()


def test_a_search_by_meaning(page_of):
    page, _ = page_of()
    page.locator(".tools select").select_option("meaning")
    page.get_by_role("searchbox").fill("when do deploys go out?")
    page.wait_for_function(
        "() => document.querySelector('.memlab .scroll .row')?.dataset.memory === '2'"
    )
    page.get_by_text("not logged").wait_for()


def test_what_memories_say_is_text(page_of):
    page, _ = page_of()
    wait_for_rows(page, 6)
    page.locator("[data-memory='3'] .open").click()
    page.get_by_label("Text of memory 3").wait_for()
    assert page.locator(".memlab img, .memlab .open b").count() == 0
    texts = "\n".join(page.locator(".memlab .open").all_inner_texts())
    assert "<img src=x onerror=alert(1)>" in texts
    assert "␛[2J" in texts
    assert not re.search("[\u202a-\u202e\x1b]", texts)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_those_who_cannot_see_it_all(page_of, axe, scheme):
    page, _ = page_of(scheme=scheme, filters={"kind": ["fact"]})
    wait_for_rows(page, 3)
    page.locator("[data-memory='3'] .open").click()
    page.get_by_role("button", name="History").click()
    page.get_by_text("History of memory").wait_for()
    page.get_by_label("Select memory 3").check()
    assert axe(page) == []


def test_columns_are_chosen_the_order_is_shown_and_the_selection_is_exported(serve, tab, axe):
    def make():
        lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
        lab.remember([{"text": text, "kind": kind, "session": "s1"} for text, kind in TEXTS])
        return MemoryTable(lab)

    url, table = serve(make)
    page = tab(url)
    wait_for_rows(page, 6)
    heads = page.get_by_role("columnheader")
    newest = heads.filter(has_text="remembered")
    assert newest.get_attribute("aria-sort") == "descending"
    assert "↓" in newest.inner_text()
    assert "↕" in heads.filter(has_text="kind").first.inner_text()
    newest.get_by_title("Sort by remembered").click()
    page.wait_for_function("() => document.querySelector('[data-at]').dataset.memory === '1'")
    assert table.sort == ["created", False]
    page.locator("summary", has_text="Columns").click()
    assert axe(page) == []
    page.get_by_label("session", exact=True).check()
    heads.filter(has_text="session").wait_for()
    page.get_by_label("kind", exact=True).uncheck()
    heads.filter(has_text="kind").wait_for(state="detached")
    page.get_by_label("Select memory 2").check()
    page.get_by_label("Select memory 4").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as JSON lines").click()
    lines = [
        json.loads(line) for line in Path(download.value.path()).read_text("utf-8").splitlines()
    ]
    assert [line["text"] for line in lines] == [TEXTS[1][0], TEXTS[3][0]]
