"""The policy studio in a browser: in JupyterLab, and as a page over a websocket."""

import re
import time

import pytest
from texts import TEXTS

import memlab
from memlab.ui.widgets import PolicyStudio

pytestmark = pytest.mark.browser

QUESTIONS = ["tabs or spaces?", "when do deploys go out?"]
TURNED = "(fn [similarity] (* (param :weight -1 :low -1 :high 1) similarity))"
SETUP = f"""
import memlab
lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
lab.remember([{{"text": text, "kind": kind}} for text, kind in {TEXTS!r}])
studio = memlab.widgets.PolicyStudio(lab, questions={QUESTIONS!r})
studio
"""


def order(page):
    """The memories after, best first, as they are drawn."""
    rows = page.locator(".memlab .after .row").all()
    return [
        int(one.get_attribute("data-memory"))
        for one in sorted(rows, key=lambda one: int(one.get_attribute("data-rank")))
    ]


def write(page, text):
    """Type a whole policy; brackets close themselves, so it is put in as a paste would."""
    page.locator(".memlab .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def wait_for_order(page, wanted):
    page.wait_for_function(
        """wanted => {
            const rows = [...document.querySelectorAll('.memlab .after .row')];
            rows.sort((a, b) => a.dataset.rank - b.dataset.rank);
            return JSON.stringify(rows.map(row => Number(row.dataset.memory))) === JSON.stringify(wanted);
        }""",
        arg=wanted,
    )


def test_in_jupyterlab_a_policy_is_typed_dragged_installed_and_rolled_back(notebook, run_cell, axe):
    page = notebook(SETUP)
    page.locator(".memlab .after .row").first.wait_for()
    before = order(page)
    write(page, TURNED)
    page.get_by_text("differs from version 1").wait_for()
    turned = order(page)
    assert turned != before
    slider = page.get_by_role("slider", name="weight")
    slider.focus()
    slider.press("End")
    page.wait_for_function(
        "() => document.querySelector('.memlab .cm-content').textContent.includes(':weight 1 ')"
    )
    nearest = run_cell(
        page,
        f"pack = lab.policies.pack.with_policy(studio.slot, studio.policy)\n"
        f"[hit.id for hit in lab.recall({QUESTIONS[0]!r}, pack=pack)]",
    )
    wait_for_order(page, [int(one) for one in re.findall(r"\d+", nearest)])
    assert (
        run_cell(
            page, "print(studio.params, lab.policies.pack.policies[studio.slot] == studio.policy)"
        )
        == "{'weight': 1.0} False"
    )
    page.get_by_label("Reason").fill("nearness alone")
    page.get_by_role("button", name="Install").click()
    page.get_by_text("Version 2 of recall-score is active.").wait_for()
    assert axe(page) == []
    page.get_by_role("button", name="Roll back").click()
    page.get_by_text("Version 3 of recall-score is active").wait_for()
    wait_for_order(page, before)
    assert (
        run_cell(page, "list(lab.policies.history(studio.slot)['action'])")
        == "['use', 'install', 'rollback']"
    )
    run_cell(page, f"studio.source = {TURNED!r}; 'set'")
    wait_for_order(page, turned)
    page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    page.get_by_role("alert").get_by_text("Run the cell again").wait_for()
    assert order(page) == turned  # what was shown stays to be read
    page.evaluate(
        """async () => {
            const { commands, shell } = window.jupyterapp;
            shell.currentWidget.content.activeCellIndex = 0;
            await commands.execute('notebook:run-cell');
        }"""
    )
    wait_for_order(page, before)
    assert page.get_by_role("alert").count() == 0


@pytest.fixture
def page_of(serve, tab):
    def opened(*, scheme="light", width=1100, **options):
        def make():
            lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
            lab.remember([{"text": text, "kind": kind} for text, kind in TEXTS])
            return PolicyStudio(lab, **({"questions": QUESTIONS} | options))

        url, widget = serve(make)
        page = tab(url, scheme=scheme, width=width)
        page.locator(".memlab .cm-content").wait_for()
        return page, widget

    return opened


def test_what_is_typed_letter_by_letter_is_ranked(page_of):
    page, studio = page_of()
    first = order(page)
    page.locator(".memlab .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.press("Delete")
    page.keyboard.type("(fn [similarity] (- similarity", delay=10)  # brackets close themselves
    page.get_by_text("differs from version 1").wait_for()
    assert studio.source == "(fn [similarity] (- similarity))"
    wait_for_order(
        page, studio.moves.filter(question=QUESTIONS[0]).sort("rank_after")["memory_id"].to_list()
    )
    assert order(page) != first


def test_an_error_has_its_caret_and_the_last_ranks_stay_greyed(page_of, axe):
    page, _ = page_of()
    write(page, TURNED)
    page.get_by_text("differs from version 1").wait_for()
    good = order(page)
    write(page, "(fn [similarity]\n(+ similarty 1))")
    page.get_by_text("Line 2, column 4").wait_for()
    assert "Did you mean similarity" in page.locator(".memlab .status").inner_text()
    assert page.locator(".memlab .caret").inner_text().splitlines()[1].strip() == "^" * len(
        "similarty"
    )
    assert page.locator(".memlab .cm-lintRange-error").inner_text() == "similarty"
    assert page.locator(".memlab .stale").count() == 1
    assert order(page) == good
    assert page.get_by_role("button", name="Install").is_disabled()
    assert axe(page) == []
    write(page, TURNED)
    page.locator(".memlab .stale").wait_for(state="detached")


def test_a_feature_is_completed_with_its_doc_and_becomes_an_argument(page_of):
    page, _ = page_of()
    write(page, "(fn [similarity] (+ similarity ))")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("recency-w", delay=20)
    page.locator(".memlab .cm-tooltip-autocomplete li").first.wait_for()
    page.locator(".memlab .cm-completionInfo").wait_for()
    page.wait_for_timeout(200)
    page.keyboard.press("Enter")
    page.locator(
        ".cm-line", has_text="[similarity recency-weight] (+ similarity recency-weight)"
    ).wait_for()


def test_a_slider_dragged_by_the_mouse_changes_the_number_and_the_order(page_of):
    page, studio = page_of()
    write(page, TURNED)
    slider = page.get_by_role("slider", name="weight")
    slider.wait_for()
    turned = order(page)
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2, steps=12)
    page.mouse.up()
    wait_for_order(page, turned[::-1])
    page.wait_for_function(
        "() => document.querySelector('.memlab .cm-content').textContent.includes(':weight 1 ')"
    )
    until = time.monotonic() + 30
    # the page shows what was written before Python has read it
    while studio.params != {"weight": 1.0}:
        assert time.monotonic() < until, studio.params
        page.wait_for_timeout(50)


def test_numbers_become_sliders_and_a_hit_is_explained(page_of, axe):
    page, _ = page_of()
    offer = page.get_by_role("button", name=re.compile(r"Add sliders for \d+ numbers"))
    numbers = int(re.sub(r"\D", "", offer.inner_text()))
    offer.click()
    page.get_by_role("slider", name="similarity", exact=True).wait_for()
    assert page.get_by_role("slider").count() == numbers > 20
    page.locator(".memlab .after button.line").first.click()
    page.locator(".memlab .explained table").wait_for()
    assert axe(page) == []


def test_what_memories_and_questions_say_is_text(page_of):
    page, _ = page_of(questions=["<img src=x onerror=alert(1)> \u202etabs\u202c", "spaces"])
    page.locator(".memlab .after .row").first.wait_for()
    assert page.locator(".memlab img, .memlab .row b").count() == 0
    shown = page.locator(".memlab").inner_text()
    assert "<img src=x onerror=alert(1)>" in shown
    assert "␛[2J" in shown
    assert not re.search("[\u202a-\u202e\x1b]", shown)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_those_who_cannot_see_it_all(page_of, axe, scheme):
    page, _ = page_of(scheme=scheme)
    write(page, TURNED)
    page.get_by_text("differs from version 1").wait_for()
    assert page.locator(f".memlab[data-theme={scheme}]").count() == 1
    assert axe(page) == []
