"""The tutorials run from the first cell to the last, in a real kernel."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# the kernel's own start-up, in threads of jupyter_client, is not ours to keep silent
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::pytest.PytestUnraisableExceptionWarning")
def test_runs_from_top_to_bottom(path, execute_notebook):
    notebook = execute_notebook(path.read_text(encoding="utf-8"))
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("text/html" in output.get("data", {}) for output in outputs), "nothing rendered"
