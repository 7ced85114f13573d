"""The quality next to ranks in a browser: it moves with a slider, a lost question is red and explains itself."""

import pytest

import memlab
from memlab.ui.widgets import PolicyStudio, RecallExplorer, VersionTimeline

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)> \u202etabs\u202c or spaces?"
TEXTS = ["The user prefers tabs", "Deploys go out on Tuesdays", "Ana lives in Rome <b>now</b>"]
ASKED = [(HOSTILE, 10), ("when do deploys go out?", 11), ("where does Ana live?", 12)]
AGED = "(fn [age-days] (+ (inherited) (* (param :weight 0 :low 0 :high 1) age-days)))"
LINE = "(fn [recency] (+ (inherited) (* 0.1 recency)))"
SCORE = "recall-score"


def labelled():
    lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
    lab.remember([{"text": f"an old note {n}", "at": f"2020-01-0{n}"} for n in range(1, 10)])
    lab.remember([{"text": text, "at": "2026-02-01"} for text in TEXTS])
    lab.questions.add([{"query": query, "wants": wants} for query, wants in ASKED])
    return lab


@pytest.fixture
def page_of(serve, tab):
    def opened(make, *, scheme="light", width=1280):
        url, widget = serve(lambda: make(labelled()))
        page = tab(url, scheme=scheme, width=width)
        page.locator(".memlab .quality").wait_for()
        return page, widget

    return opened


def studio_of(lab):
    studio = PolicyStudio(lab)
    studio.source = AGED
    return studio


def metric(page, row=0):
    return page.locator(".memlab .quality .metrics dd").nth(row).inner_text()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1600)])
def test_a_slider_moves_the_number_and_a_lost_question_explains_itself(page_of, axe, scheme, width):
    page, _ = page_of(studio_of, scheme=scheme, width=width)
    page.get_by_role("slider", name="weight").press("End")
    page.get_by_text("3 lost", exact=True).wait_for()
    assert metric(page).startswith("1.000 → 0.000")
    assert "(3 of 3 → 0 of 3)" in metric(page)
    assert page.locator(".memlab .side").first.get_by_title("wanted", exact=True).count() == 1
    lost = page.get_by_role("button", name="✗ lost")
    assert lost.count() == 3
    red = page.locator(".memlab").evaluate(
        """root => { const probe = document.createElement('i');
            probe.style.color = getComputedStyle(root).getPropertyValue('--bad');
            root.append(probe); const colour = getComputedStyle(probe).color; probe.remove();
            return colour; }"""
    )
    assert lost.first.evaluate("one => getComputedStyle(one).color") == red
    lost.first.click()
    page.get_by_text("The best memory that overtakes it").wait_for()
    told = page.locator(".memlab .told").inner_text()
    assert 'Wanted: memory 10 ("The user prefers tabs"). Its rank before is 1' in told
    assert "age-days" in told
    assert axe(page) == []
    page.get_by_role("slider", name="weight").press("Home")
    page.get_by_text("0 lost", exact=True).wait_for()
    assert page.locator(".memlab .told").count() == 0
    # Whether a question looks like markup or not, it is text.
    assert page.locator(".memlab img, .memlab .said b").count() == 0


def test_questions_are_text(page_of):
    page, _ = page_of(studio_of)
    page.get_by_role("slider", name="weight").press("End")
    page.get_by_text("3 lost", exact=True).wait_for()
    page.get_by_role("button", name="✗ lost").last.click()
    page.locator(".memlab .told").wait_for()
    shown = page.locator(".memlab .quality").inner_text()
    assert "<img src=x onerror=alert(1)>" in shown
    assert "Ana lives in Rome <b>now</b>" in shown
    assert "\u202e" not in shown
    assert page.locator(".memlab .quality :is(img, .told b)").count() == 0


def test_a_loss_is_confirmed_in_place(page_of, axe):
    page, studio = page_of(studio_of)
    page.get_by_role("slider", name="weight").press("End")
    page.get_by_text("3 lost", exact=True).wait_for()
    page.get_by_label("Reason").fill("older is better")
    page.get_by_role("button", name="Install", exact=True).click()
    doubt = page.locator(".memlab .doubt")
    doubt.get_by_text("It loses more than its interval.").wait_for()
    assert axe(page) == []
    assert studio.installed is None
    doubt.get_by_role("button", name="Keep the active version").click()
    doubt.wait_for(state="detached")
    page.get_by_role("button", name="Install", exact=True).click()
    doubt.get_by_role("button", name="Install anyway").click()
    page.get_by_text("Version 2 of recall-score is active.").wait_for()
    assert doubt.count() == 0
    page.get_by_text("On 3 labelled questions", exact=True).wait_for()


def test_a_version_of_another_parent_is_rebased(page_of, axe):
    def stale(lab):
        number = lab.policies.install(SCORE, LINE).number
        lab.policies.use("companion", compare=0)
        lab.policies.rollback(SCORE, to=number)
        return PolicyStudio(lab)

    page, studio = page_of(stale)
    offer = page.get_by_role("region", name="Rebase")
    assert "the pack companion does not have today" in offer.inner_text()
    assert " → " in offer.locator("dd").first.inner_text()
    assert axe(page) == []
    offer.get_by_role("button", name="Rebase").click()
    page.get_by_text("is active.").or_(page.locator(".memlab .doubt")).first.wait_for()
    if page.locator(".memlab .doubt").count():
        page.get_by_role("button", name="Install anyway").click()
    page.get_by_text("of recall-score is active.").wait_for()
    assert offer.count() == 0
    assert studio.policy.inherited == memlab.load_pack("companion").policies[SCORE]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1600)])
def test_the_timeline_and_the_explorer_show_the_number(page_of, axe, scheme, width):
    def two(lab):
        lab.policies.install(SCORE, AGED.replace("weight 0", "weight 1"), compare=0)
        return VersionTimeline(lab)

    page, _ = page_of(two, scheme=scheme, width=width)
    assert metric(page).startswith("1.000 → 0.000")
    page.get_by_role("button", name="✗ lost").first.click()
    page.locator(".memlab .told").wait_for()
    assert axe(page) == []

    def aged(lab):
        text = f'(pack aged "Old." :inherits memlab) (defpolicy recall-score [age-days] {AGED[15:]}'
        return RecallExplorer(lab, question="deploys", pack=memlab.load_pack(text))

    page, _ = page_of(aged, scheme=scheme, width=width)
    page.get_by_text("3 labelled questions").wait_for()
    page.get_by_label("Pack").select_option("")
    page.wait_for_function("() => !document.querySelector('.memlab .changes')")
    assert metric(page) == "1.000 (3 of 3)"
    assert axe(page) == []


def test_without_questions_a_sentence_says_what_to_do(page_of):
    def bare(lab):
        lab.questions.remove(lab.questions.frame)
        return PolicyStudio(lab)

    page, _ = page_of(bare)
    assert "lab.questions.add(" in page.locator(".memlab .quality").inner_text()
