"""Every file that the documentation names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if "benchmarks" not in page.relative_to(ROOT).as_posix()
)
MADE_BY_A_READER = re.compile(r"_?counter\b")  # the example of write-a-widget.md
NAMED = re.compile(r"`((?:memlab|experiments|tests|policies|notebooks|docs)/[\w./-]+)`")


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_a_page_names_files_that_exist(page: Path) -> None:
    unique = set(NAMED.findall(page.read_text(encoding="utf-8")))
    missing = [name for name in unique if not (ROOT / name).exists()]
    assert sorted(name for name in missing if not MADE_BY_A_READER.search(name)) == []


def test_the_pages_about_the_code_name_files_and_are_short() -> None:
    pages = [ROOT / "docs" / name for name in ("where-to-look.md", "architecture.md")]
    table, architecture = (page.read_text(encoding="utf-8") for page in pages)
    assert len(NAMED.findall(table)) > 40
    assert architecture.count("\n") <= 200
