"""The overview, the recall log, the question list and ``memlab try`` in a browser."""

import json
import re
import subprocess
import sys

import pytest
from texts import TEXTS

import memlab
from memlab.ui.demo import sample_lab
from memlab.ui.widgets import Overview, QuestionList, RecallLog
from memlab.ui.widgets.view import write_bundle

pytestmark = pytest.mark.browser


@pytest.fixture
def page_of(serve, tab):
    def opened(make, *, scheme="light", width=1280):
        url, widget = serve(make)
        page = tab(url, scheme=scheme, width=width)
        page.locator(".memlab").wait_for()
        return page, widget

    return opened


@pytest.fixture
def tried(tmp_path):
    """Start ``memlab try`` as a process and return its address."""
    started = []

    def start(*words):
        command = [sys.executable, "-m", "memlab", "try", *map(str, words), "--no-open", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        started.append(process)
        return json.loads(process.stdout.readline())["url"]

    yield start
    for process in started:
        process.terminate()
        process.communicate(timeout=30)


def hostile():
    """A lab whose memories and queries contain markup, control characters and right-to-left text."""
    lab = memlab.open(clock=memlab.ManualClock("2026-03-01"))
    lab.remember([{"text": text, "kind": kind, "speaker": "<i>Ada</i>"} for text, kind in TEXTS])
    for text, _ in TEXTS:
        lab.feedback(lab.recall(text, viewer="<u>agent</u>\x1b", session="<s>x</s>")[0], "fail")
    lab.agents.verify(lab.recall("<img src=x onerror=alert(2)> gap \u202e"), [])
    lab.questions.add("<b>tabs?</b> \u202e", wants=3)
    lab.edit(1, text="<img src=x onerror=alert(3)> spaces \x1b[2J")
    return lab


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1600)])
def test_the_overview_shows_what_was_asked_shown_and_helpful_at_once(page_of, axe, scheme, width):
    page, _ = page_of(lambda: Overview(sample_lab()), scheme=scheme, width=width)
    page.locator(".misses li").first.wait_for(timeout=60_000)
    latest = page.locator(".entry").nth(2)
    for part in ("When did Mungo have surgery on his knee?", "#", "nothing found", "quill"):
        assert part in latest.inner_text()
    assert page.locator(".days li").count() == 8
    assert page.locator(".misses li").count() == 3
    assert (
        "3 of 36 questions are missed"
        in page.locator("[aria-label='Labelled questions']").inner_text()
    )
    sure = page.locator("[aria-label=Gaps] li").filter(has_text="nothing found")
    assert sure.count() == 3
    assert "three weeks" in page.locator("[aria-label='Stale answers']").inner_text()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert axe(page) == []
    page.locator(".misses button").first.click()
    assert "stands above" in page.locator(".why").inner_text()
    assert "The first result: " in page.locator(".why").inner_text()
    assert (
        "hit@5 0.917 (33 of 36)" in page.locator("[aria-label='Labelled questions']").inner_text()
    )
    assert "33 of 36 hit@5" in page.locator(".tiles").inner_text()


def test_an_explanation_of_a_miss_closes_when_the_active_pack_changes(serve, tab):
    url, overview = serve(lambda: Overview(sample_lab()))
    page = tab(url)
    page.locator(".misses li").first.wait_for(timeout=60_000)
    page.locator(".misses button").first.click()
    page.locator(".why").wait_for()
    overview._sums = overview._sums | {"pack": "another"}
    page.locator(".why").wait_for(state="detached")


def test_a_click_on_a_recall_opens_the_explorer_as_of_that_instant(page_of, axe):
    page, log = page_of(lambda: RecallLog(sample_lab()))
    page.get_by_label("Search").fill("salma")
    page.wait_for_function("() => document.querySelectorAll('.entry').length === 1")
    page.locator(".entry .line").click()
    page.locator(".then .hit").first.wait_for(timeout=60_000)
    row = log.frame.row(0, named=True)
    shown = [int(one.get_attribute("data-memory")) for one in page.locator(".then .hit").all()]
    assert len(shown) == len(row["shown"]) == page.locator(".items li").count()
    assert log.at == row["at"].isoformat()
    assert page.locator(".items .chip.helped").count() == len(row["helped"])
    assert page.get_by_label("Query", exact=True).input_value() == row["query"]
    assert page.get_by_role("button", name="Search and log").is_disabled()
    assert axe(page) == []


def test_pages_of_recalls(page_of):
    page, log = page_of(lambda: RecallLog(sample_lab()))
    page.locator(".entry").first.wait_for()
    page.get_by_role("button", name="Older", exact=True).click()
    page.get_by_text("21 to 40 of 41 recalls").wait_for()
    page.get_by_role("button", name="Older", exact=True).click()
    page.get_by_text("41 to 41 of 41 recalls").wait_for()
    assert page.get_by_role("button", name="Older", exact=True).is_disabled()
    page.get_by_label("Outcome").select_option("failed")
    page.wait_for_function("() => document.querySelectorAll('.entry').length === 3")
    assert (log.start, log.outcome) == (0, "failed")
    page.get_by_label("Search").fill("nobody asked this")
    page.get_by_text("No recall matches").wait_for()


@pytest.mark.parametrize("kind", [Overview, RecallLog, QuestionList])
def test_what_people_and_agents_wrote_is_text(page_of, kind):
    page, _ = page_of(lambda: kind(hostile()))
    first = page.locator(".questions li" if kind is QuestionList else ".entry").first
    first.wait_for()
    if kind is not QuestionList:
        page.locator(".entry .line").nth(1).click()
        page.locator(".then .hit").first.wait_for(timeout=60_000)
    if kind is Overview:
        page.locator("[aria-label='Labelled questions'] p").first.wait_for()
    assert page.locator(".memlab img, .memlab .said :is(b, i, u, s)").count() == 0
    texts = page.locator(".memlab").inner_text()
    assert "<img" in texts
    assert not re.search("[\u202a-\u202e\x1b]", texts)


def test_questions_are_proposed_and_ticked(page_of, axe):
    def make():
        lab = memlab.open()
        lab.remember(["Ana lives in Rome", "Ben lives in Oslo"])
        return QuestionList(lab)

    page, questions = page_of(make)
    page.get_by_text("No question yet").wait_for()
    page.get_by_role("button", name="Propose 20").click()
    page.get_by_role("button", name="Accept question 1").click()
    page.locator("[aria-label=Accepted] li").wait_for()
    page.get_by_role("button", name="Remove question 2").click()
    page.locator("[aria-label=Proposed]").wait_for(state="detached")
    page.get_by_text("1 removed. 1 question counts in scores.").wait_for()
    assert page.get_by_text("1 accepted.").count() == 0
    assert questions.lab.questions.frame.select("query", "accepted").rows() == [
        ("Where does Ana live?", True)
    ]
    assert axe(page) == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1600)])
def test_a_question_is_typed_and_its_memory_marked(page_of, axe, scheme, width):
    def make():
        lab = memlab.open()
        lab.remember([f"Ana's note {n} is about <b>Rome</b>" for n in range(12)] + ["Mungo purrs"])
        lab.remember("Ben lives in Oslo")
        lab.questions.propose(1)
        return QuestionList(lab)

    page, questions = page_of(make, scheme=scheme, width=width)
    page.get_by_label("Your own question").get_by_role("textbox").fill("Which pet is in Rome?")
    page.keyboard.press("Enter")
    page.locator(".own li").nth(7).wait_for()
    add = page.get_by_role("button", name="Add question")
    assert add.is_disabled()
    page.get_by_label("Not among them").fill("Mungo")
    page.get_by_role("button", name="Search").click()
    page.locator(".own li", has_text="Mungo").get_by_role("checkbox").check()
    page.get_by_label("Not among them").fill("notes")
    page.keyboard.press("Enter")
    page.locator(".own li", has_text="Rome").first.wait_for()
    assert axe(page) == []
    add.click()
    page.locator("[aria-label=Accepted] li").wait_for()
    frame = questions.lab.questions.frame.filter("accepted")
    assert frame.select("query", "wants").rows() == [("Which pet is in Rome?", [13])]
    assert page.locator(".own li").count() == 0
    assert page.locator(".memlab .own b").count() == 0


def test_empty_labs_name_the_next_call(page_of):
    for kind, call in (
        (Overview, 'lab.recall("…")'),
        (RecallLog, "lab.feedback(hit"),
        (QuestionList, "lab.load("),
    ):
        page, _ = page_of(lambda kind=kind: kind(memlab.open()))
        page.get_by_text(call).first.wait_for()


def test_a_folder_has_the_overview_and_the_log_without_python(tab, tmp_path, axe):
    index = write_bundle(sample_lab(), tmp_path / "out")
    page = tab(index.as_uri())
    page.locator(".misses li").first.wait_for()
    page.locator(".then .hit").first.wait_for()  # the latest recall is open
    page.locator(".entry .line").nth(3).click()
    assert page.locator("[aria-label^='Shown by recall']").count() == 2
    assert page.get_by_role("button", name="Copy as notebook cell").is_disabled()
    page.get_by_role("tab", name="Recall log").click()
    page.locator("#panel-recalls .entry").first.wait_for()
    page.get_by_text("This page has the latest of 41 recalls").wait_for()
    assert axe(page, "body") == []


def test_the_first_ten_minutes(tried, tab, axe, tmp_path):
    page = tab(tried())
    page.locator(".misses li").first.wait_for(timeout=60_000)
    page.get_by_role("tab", name="Policy studio").click()
    page.get_by_role("button", name=re.compile("Add sliders for")).click()
    page.get_by_label("first-person").first.wait_for()
    assert axe(page, "body") == []
    chat = tmp_path / "chat.jsonl"
    names = ("Rome", "Oslo", "Lima", "Kyoto")
    chat.write_text(
        "".join(
            json.dumps({"speaker": f"P{index}", "text": f"I live in {name}"}) + "\n"
            for index, name in enumerate(names)
        )
    )
    page.get_by_role("tab", name="Overview").click()
    path = page.get_by_label("Now yours")
    path.fill(str(tmp_path / "nothing.zip"))
    path.press("Enter")
    page.get_by_role("alert").get_by_text("There is nothing at").wait_for()
    path.fill(str(chat))
    path.press("Enter")
    page.locator(".read").wait_for(timeout=60_000)
    assert "4: P0 (1)" in page.locator(".read").inner_text()
    page.get_by_role("tab", name="Question list").click()
    page.get_by_role("button", name=re.compile("Accept all")).click()
    page.locator("[aria-label=Accepted] li").first.wait_for()
    page.get_by_role("tab", name="Overview").click()
    page.get_by_text(re.compile("of 4 questions (?:is|are) missed")).wait_for(timeout=60_000)
    page.get_by_role("button", name="Copy as notebook cell").click()
    assert f"lab.load({str(chat)!r})" in page.locator(".cell pre").inner_text()
    page.get_by_role("tab", name="Policy studio").click()
    page.locator("[aria-label='Policy studio'] .after .row").first.wait_for(timeout=60_000)


def test_a_file_is_dropped_on_the_page(tried, tab):
    page = tab(tried())
    page.locator(".offer").wait_for(timeout=60_000)
    drop = """(size) => {
        const text = '{"speaker": "Ann", "text": "I live in <b>Rome</b>"}\\n'.repeat(size);
        const data = new DataTransfer();
        data.items.add(new File([text], "chat.jsonl"));
        document.querySelector(".offer").dispatchEvent(
            new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(drop, 100_000)
    page.get_by_role("alert").get_by_text("Type its path instead").wait_for()
    page.evaluate(drop, 1)
    page.locator(".read").wait_for(timeout=60_000)
    assert "Ann" in page.locator(".read").inner_text()
    assert page.locator(".memlab b").count() == 0
