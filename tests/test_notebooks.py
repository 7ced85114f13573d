"""The tutorials run from the first cell to the last, in a real kernel.

Two of them live for a week or a month: here for a few days of it, and whole with ``pytest -m slow``.
"""

from pathlib import Path

import pytest

pytestmark = pytest.mark.long

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
SHORTER = {
    "01-your-own-design": {
        "days=7, questions_per_day=80, messages_per_day=60": "days=2, questions_per_day=30, messages_per_day=15",
    },
    "02-five-systems": {
        "for day in range(30)": "for day in range(11)",
        "points=16": "points=3",
    },
    "04-evaluate-policies": {
        "days=7, questions_per_day=80, messages_per_day=60": "days=4, questions_per_day=30, messages_per_day=15",
        "queries, pool, head = 1200, 20, 5": "queries, pool, head = 600, 20, 5",
    },
}
"""Texts of a notebook that vary, and their replacements."""


def test_there_are_notebooks():
    assert NOTEBOOKS


LONG = [
    pytest.param(path, False, marks=pytest.mark.slow, id=f"{path.stem}-whole")
    for path in NOTEBOOKS
    if path.stem in SHORTER
]


@pytest.mark.parametrize(
    ("path", "short"), [*(pytest.param(path, True, id=path.stem) for path in NOTEBOOKS), *LONG]
)
# the kernel's own start-up, in threads of jupyter_client, is not ours to keep silent
@pytest.mark.filterwarnings(
    "default::DeprecationWarning", "default::pytest.PytestUnraisableExceptionWarning"
)
def test_runs_from_top_to_bottom(path, short, execute_notebook):
    source = path.read_text(encoding="utf-8")
    for long, shorter in SHORTER.get(path.stem, {}).items() if short else ():
        assert source.count(long) == 1, long
        source = source.replace(long, shorter)
    notebook = execute_notebook(source)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("text/html" in output.get("data", {}) for output in outputs), "nothing rendered"
