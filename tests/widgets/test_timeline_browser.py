"""The version timeline in a browser: in JupyterLab, and as a page over a websocket."""

from dataclasses import replace

import pytest
from texts import TEXTS
from waiting import until

import memlab
from memlab.ui.widgets import VersionTimeline

pytestmark = pytest.mark.browser

TURNED = "(fn [similarity]\n  (- similarity))"
QUESTIONS = ["tabs or spaces?", "<img src=x onerror=alert(1)>"]


def lived():
    clock = memlab.ManualClock("2026-03-01")
    lab = memlab.open(clock=clock)
    lab.remember([{"text": text, "kind": kind} for text, kind in TEXTS])
    clock.advance(days=1)
    lab.feedback(lab.recall("tabs?")[0], "success")
    clock.advance(days=3)
    lab.policies.install("recall-score", TURNED, reason="<b>turned</b>")
    lab.challenge("companion", reason="fresh?")
    clock.advance(days=4)
    lab.feedback(lab.recall("tabs?")[0], "fail")
    return lab


SETUP = f"""
import memlab
clock = memlab.ManualClock("2026-03-01")
lab = memlab.open(clock=clock)
lab.remember([{{"text": text, "kind": kind}} for text, kind in {TEXTS!r}])
clock.advance(days=1)
lab.policies.install("recall-score", {TURNED!r}, reason="turned")
timeline = memlab.widgets.VersionTimeline(lab, questions=["tabs or spaces?"])
timeline
"""


def test_in_jupyterlab_a_version_is_brought_back(notebook, run_cell, axe):
    page = notebook(SETUP)
    page.locator(".memlab .diff").wait_for()
    assert axe(page) == []
    page.get_by_label("Reason for restoring").fill("worse")
    page.get_by_role("button", name="Restore version 1").click()
    page.get_by_text("active again, as version 3").wait_for()
    assert run_cell(page, "list(timeline.versions['reason'])") == "['', 'turned', 'worse']"
    run_cell(page, "timeline.picked = [2, 3]; 'picked'")
    page.get_by_label("Versions 2 and 3").wait_for()


@pytest.fixture
def page_of(serve, tab):
    def opened(*, scheme="light", width=1100, **options):
        url, widget = serve(
            lambda: VersionTimeline(lived(), **({"questions": QUESTIONS} | options))
        )
        page = tab(url, scheme=scheme, width=width)
        page.locator(".memlab .axis").wait_for()
        return page, widget

    return opened


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_versions_stand_side_by_side_with_what_they_move(page_of, axe, scheme):
    page, timeline = page_of(scheme=scheme)
    page.get_by_label("Versions 1 and 2").wait_for()
    assert page.locator(".memlab .diff .new").all_inner_texts()[:2] != ["", ""]
    assert "pairs reordered" in page.locator(".memlab .two h3").inner_text()
    assert page.get_by_text("companion").count() >= 1
    assert axe(page) == []
    page.get_by_label("Pick version 1").click()
    page.get_by_text("Pick two versions").wait_for()
    assert until(lambda: timeline.picked == [2])
    page.get_by_role("button", name="recall-score version 1").click()
    page.get_by_label("Versions 1 and 2").wait_for()


def test_without_a_reason_nothing_is_brought_back(page_of):
    page, timeline = page_of()
    back = page.get_by_role("button", name="Restore version 1")
    assert back.is_disabled()
    page.get_by_label("Reason for restoring").fill("worse")
    back.click()
    page.get_by_text("active again, as version 3").wait_for()
    assert timeline.versions["action"].to_list() == ["use", "install", "rollback"]


def test_what_was_said_is_text(page_of):
    page, _ = page_of()
    page.locator(".memlab .minis").wait_for()
    assert page.locator(".memlab img, .memlab .reason b").count() == 0
    assert "<b>turned</b>" in page.locator(".memlab .versions").inner_text()
    assert "<img src=x onerror=alert(1)>" in page.locator(".memlab .minis").inner_text()


def test_a_version_shows_its_origin(serve, tab):
    def make():
        lab = lived()
        parent = lab.policies.pack.hash
        lineage = memlab.Lineage((parent,), "<i>evolve</i>", "c" * 64)
        lab.policies.use(replace(memlab.load_pack("companion"), lineage=lineage))
        return VersionTimeline(lab, questions=QUESTIONS)

    url, _ = serve(make)
    line = tab(url).locator(".memlab .versions .lineage")
    assert line.inner_text() == f"↳ <i>evolve</i> of version 2, evidence {'c' * 12}"
