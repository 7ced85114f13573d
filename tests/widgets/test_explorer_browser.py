"""The recall explorer in a browser: in JupyterLab, and as a page over a websocket."""

import re

import pytest
from texts import TEXTS

import memlab
from memlab.ui.widgets import RecallExplorer

pytestmark = pytest.mark.browser

SETUP = f"""
import memlab
lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
lab.remember([{{"text": text, "kind": kind, "speaker": "Ada"}} for text, kind in {TEXTS!r}])
explorer = memlab.widgets.RecallExplorer(lab, question="tabs or spaces?", limit=6)
explorer
"""


def shown(page):
    return [int(one.get_attribute("data-memory")) for one in page.locator(".memlab .hit").all()]


def test_in_jupyterlab_it_is_asked_judged_and_read_back(notebook, run_cell, axe):
    page = notebook(SETUP)
    page.locator(".memlab .hit").first.wait_for()
    before = shown(page)
    page.get_by_label("Query", exact=True).fill("when do deploys go out?")
    page.wait_for_function(
        "() => document.querySelector('.memlab .hit .text').textContent.startsWith('Deploys')"
    )
    assert shown(page) != before
    assert "a preview, not logged" in page.locator(".memlab .about").inner_text()
    page.get_by_label("Query", exact=True).press("Enter")
    page.get_by_text("logged as recall").wait_for()
    page.get_by_label("memory 2 helped").click()
    page.locator(".memlab .success[aria-pressed=true]").wait_for()
    assert axe(page) == []
    read = "print(explorer.question, explorer.hits[0].id, explorer.judged, lab.slates().feedback.collect().height)"
    assert run_cell(page, read) == "when do deploys go out? 2 {'2': 'success'} 1"
    run_cell(page, "explorer.question = 'changelog'; explorer.hits[0].id")
    page.wait_for_function(
        "() => document.querySelector('.memlab .hit .text').textContent.includes('changelog')"
    )
    assert page.get_by_label("Query", exact=True).input_value() == "changelog"
    run_cell(page, "lab.close(); 'closed'")
    page.get_by_label("Query", exact=True).fill("x")
    page.get_by_role("alert").get_by_text("was closed").wait_for()


@pytest.fixture
def page_of(serve, tab):
    def opened(*, scheme="light", width=1100, **options):
        def make():
            lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
            lab.remember([{"text": text, "kind": kind, "speaker": "Ada"} for text, kind in TEXTS])
            return RecallExplorer(lab, **({"question": "tabs or spaces?", "limit": 6} | options))

        url, widget = serve(make)
        page = tab(url, scheme=scheme, width=width)
        page.locator(".memlab").wait_for()
        return page, widget

    return opened


def test_the_same_bundle_works_over_a_websocket(page_of, axe):
    page, explorer = page_of()
    page.locator(".memlab .hit").first.wait_for()
    page.get_by_label("Query", exact=True).fill("when do deploys go out?")
    page.wait_for_function(
        "() => document.querySelector('.memlab .hit .text').textContent.startsWith('Deploys')"
    )
    page.locator(".hit .text").first.click()
    page.get_by_text("score, by memlab/recall-score").wait_for()
    assert "likely that one of these answers the question" in page.locator(".known").inner_text()
    for pin in page.get_by_role("button", name="for comparison").all()[:2]:
        pin.click()
    page.get_by_text("is above by").wait_for()
    assert sorted(explorer.pinned) == sorted(shown(page)[:2])
    assert axe(page) == []


def test_fewer_hits_by_the_keys_of_the_slider(page_of):
    page, explorer = page_of()
    slider = page.get_by_label("Limit")
    slider.focus()
    for _ in range(4):
        slider.press("ArrowLeft")
    page.wait_for_function("() => document.querySelectorAll('.memlab .hit').length === 2")
    assert explorer.limit == 2


def test_what_memories_say_is_text(page_of):
    page, _ = page_of()
    page.locator(".memlab .hit").first.wait_for()
    assert page.locator(".memlab img, .memlab .text b").count() == 0
    texts = "\n".join(page.locator(".memlab .text").all_inner_texts())
    assert "<img src=x onerror=alert(1)>" in texts
    assert "␛[2J" in texts
    assert not re.search("[\u202a-\u202e\x1b]", texts)


def test_bars_are_as_long_as_scores(page_of):
    page, explorer = page_of()
    page.locator(".memlab .hit").first.wait_for()
    page.wait_for_timeout(300)
    lengths = page.evaluate(
        """() => [...document.querySelectorAll('.memlab .hit .bar')].map(bar => {
            const zero = bar.querySelector('.zero')?.getBoundingClientRect().left ?? 0;
            const boxes = [...bar.querySelectorAll('i')].map(part => part.getBoundingClientRect());
            return boxes.reduce((sum, box) => sum + (box.left < zero - 1 ? -box.width : box.width), 0);
        })"""
    )
    scores = [hit.score for hit in explorer.hits]
    assert [one / lengths[0] for one in lengths] == pytest.approx(
        [one / scores[0] for one in scores], abs=0.02
    )


def test_a_score_that_is_no_sum_shows_its_tree(page_of):
    pack = memlab.load_pack("memlab").with_policy(
        "recall-score", memlab.load_pack("fsrs").policies["recall-score"]
    )
    page, _ = page_of(pack=pack)
    page.get_by_text("is not a sum of terms").wait_for()
    page.locator(".hit .text").first.click()
    page.locator(".tree li").first.wait_for()
    assert page.locator("details[open] .tree").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_those_who_cannot_see_it_all(page_of, axe, scheme):
    page, _ = page_of(scheme=scheme, pack=None)
    page.locator(".memlab .hit").first.wait_for()
    page.locator(".hit .text").first.click()
    page.locator(".explained table").wait_for()
    assert page.locator(f".memlab[data-theme={scheme}]").count() == 1
    assert axe(page) == []


def test_a_page_without_its_token_is_refused(page_of):
    page, _ = page_of()
    reply = page.request.get(page.url.partition("?")[0])
    assert reply.status == 403


def test_a_group_opens_to_its_terms_and_expressions_are_shown_on_request(page_of, axe):
    page, explorer = page_of()
    page.locator(".memlab .hit").first.wait_for()
    group = page.locator(".legend button").first
    before = page.locator(".hit .bar").first.locator("i").count()
    group.click()
    page.locator(".legend button[aria-expanded=true]").wait_for()
    assert page.locator(".hit .bar").first.locator("i").count() > before
    page.locator(".hit .text").first.click()
    page.locator(".explained tr.group").first.wait_for()
    assert "(*" not in page.locator(".memlab .explorer").inner_text()
    page.locator(".explained tr.group button").first.click()
    page.locator(".explained tr.member").first.wait_for()
    assert page.locator(".expression").count() == 0
    page.get_by_role("button", name="Show expressions").click()
    page.locator(".expression").first.wait_for()
    assert axe(page) == []
    labels = {label for hit in explorer.hits for label in hit.explain().frame["label"]}
    assert page.locator(".legend .note").inner_text().split(" · ")[0] in labels


def test_long_texts_take_three_lines_and_words_of_the_query_are_marked(serve, tab):
    long = "Tabs are eight columns wide. " * 40

    def make():
        lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
        lab.remember([long, "The user prefers tabs, not <mark>spaces</mark>"])
        return RecallExplorer(lab, question="which tab?", limit=2)

    url, _ = serve(make)
    page = tab(url)
    row = page.locator(".hit .folded").filter(has_text="eight columns")
    row.wait_for()
    assert row.bounding_box()["height"] < 70
    assert row.locator("mark").first.inner_text() == "Tabs"
    assert page.locator("mark").all_inner_texts().count("spaces") == 0  # markup of a text is text
    row.press("Enter")
    page.locator(".explained").wait_for()
    assert row.bounding_box()["height"] > 200
    assert page.locator(".actions svg.icon").count() == 4
