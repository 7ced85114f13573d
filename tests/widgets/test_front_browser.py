"""The front view in a browser: a dot opens its policy, by a click or by a key."""

import pytest
from test_front import evolve
from waiting import until

from memlab.ui.widgets import FrontView

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_dot_opens_its_policy(serve, tab, axe, scheme):
    url, view = serve(lambda: FrontView(evolve()))
    page = tab(url, scheme=scheme)
    page.locator(".memlab .dot").first.wait_for()
    hashes = view.evolved.front["hash"].to_list()
    assert page.locator(".memlab .dot").count() == len(hashes)
    changed = next(name for name in hashes if view.evolved.changes.filter(hash=name).height)
    dot = page.locator(".memlab .dot").nth(hashes.index(changed))
    if view.selected != changed:
        dot.focus()
        page.keyboard.press("Enter")
    page.get_by_label(f"Policy {changed[:12]}").wait_for()
    assert until(lambda: view.selected == changed)
    assert page.locator(".memlab .diff ins, .memlab .diff .new").count() > 0
    assert "<img src=x" in page.locator(".memlab section table").last.inner_text()
    assert page.locator(".memlab img").count() == 0
    assert axe(page) == []
    page.locator(".memlab .dot").first.click()
    page.get_by_role("heading", name="The start, ").wait_for()
    assert until(lambda: view.selected == hashes[0])
