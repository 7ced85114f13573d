"""The Python half of the front view: its points are the rows of the front, and texts stay texts."""

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, MemlabError
from tests.displays import page_of
from tests.widgets.shared import shared


def evolve():
    """Return a search on a lab of which one question is markup."""
    lab = memlab.open()
    texts = [f"{name} likes {what}" for name in ("Ana", "Ben") for what in ("tea", "rain", "Rome")]
    lab.remember(texts)
    for number, text in enumerate(texts, 1):
        lab.questions.add(f"<img src=x onerror=alert(1)> Who says that {text}?", wants=number)
    return memlab.evolve(lab, "(fn [age-days] age-days)", metric="recall@1", budget=200)


@pytest.fixture(scope="module")
def found():
    return evolve()


@pytest.mark.long
def test_the_points_are_the_rows_of_the_front(found):
    view = memlab.widgets.FrontView(found)
    points = shared(view, "points")
    assert [point["hash"] for point in points] == found.front["hash"].to_list()
    assert [point["value"] for point in points] == found.front["value"].to_list()
    assert view.selected == (found.best_hash or "")
    for point in points:
        better = [change for change in point["changes"] if change["change"] > 0]
        assert (len(better), len(point["changes"]) - len(better)) == (
            point["gained"],
            point["lost"],
        )
    assert points[0]["differences"] == []
    assert all(kind == "same" for kind, *_ in points[0]["lines"])
    assert points[1]["differences"]
    assert any(kind != "same" for kind, *_ in points[1]["lines"])


@pytest.mark.long
def test_another_hash_is_a_fault(found):
    view = memlab.widgets.FrontView(found)
    view.selected = "nowhere"
    assert "policy of the front" in view.fault
    view.selected = found.front["hash"][0]
    assert view.fault == ""


@pytest.mark.long
def test_a_page_without_python_has_the_front(found):
    html = page_of(memlab.widgets.FrontView(found))
    assert found.front["hash"][0][:12] in html


@pytest.mark.parametrize("junk", [None, 3, "found", pl.DataFrame()])
def test_anything_else_is_refused(junk):
    with pytest.raises((InputError, MemlabError)):
        memlab.widgets.FrontView(junk)
