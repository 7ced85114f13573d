"""Every snippet of the how-to pages runs unchanged, the snippets of a page one after another."""

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "howto").glob("*.md"))


def test_there_are_pages():
    assert len(PAGES) >= 6


# Commands of a terminal, and code that needs its own bundle.
WITHOUT_PYTHON = {"view-in-a-browser", "write-a-widget", "policies-in-hy"}


# Pages about an extra, and a package of it.
NEEDS = {
    "async": "fastapi",
    "encrypt-a-lab": "sqlcipher3",
    "google-adk": "google.adk",
    "langchain": "langchain",
}


# Pages whose snippets start processes, or search and compare for seconds.
LONG = {"challenge-a-policy", "evolve-a-policy", "experiments", "guard-a-change", "use-more-cores"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.long] * (page.stem in LONG)) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_the_snippets_of_a_page_run(page, tmp_path, monkeypatch):
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert snippets or page.stem in WITHOUT_PYTHON
    names: dict[str, object] = {}
    for number, snippet in enumerate(snippets, 1):
        exec(compile(snippet, f"{page.name}, snippet {number}", "exec"), names)
    if hasattr(names.get("lab"), "close"):
        names["lab"].close()
