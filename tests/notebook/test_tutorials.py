"""``memlab notebook``: copies of the tutorials, and JupyterLab on them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.kernel.policies import load_pack
from memlab.ui.notebook.tutorials import tutorial_names

ORIGINALS = Path(__file__).parents[2] / "notebooks"


@pytest.fixture
def started(monkeypatch):
    """Record what is started in place of JupyterLab, which ends with status 0."""
    calls = []

    def run(words, check):
        calls.append(words)
        return subprocess.CompletedProcess(words, len(calls) - 1)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_all_are_copied_and_none_is_overwritten(run, json_of, tmp_path, started):
    names = [f"{name}.ipynb" for name in tutorial_names()]
    assert names == sorted(path.name for path in ORIGINALS.glob("*.ipynb"))
    assert json_of("notebook", "--no-open") == {
        "folder": ".",
        "copied": names,
        "kept": [],
        "opened": False,
    }
    for name in names:
        assert (tmp_path / name).read_bytes() == (ORIGINALS / name).read_bytes()
    (tmp_path / names[0]).write_text("mine")
    (tmp_path / names[1]).unlink()
    report = json_of("notebook", "--no-open")
    assert (report["copied"], report["kept"]) == ([names[1]], [names[0], *names[2:]])
    assert (tmp_path / names[0]).read_text() == "mine"
    assert f"{names[0]} exists" in run("notebook", "--no-open").output
    assert not started


@pytest.mark.parametrize("name", ["03", "03-policies", "03-policies.ipynb"])
def test_a_tutorial_is_opened_in_its_copy(run, json_of, tmp_path, started, name):
    report = json_of("notebook", name, "--to", "new/folder")
    assert report == {
        "folder": "new/folder",
        "copied": ["03-policies.ipynb"],
        "kept": [],
        "opened": True,
    }
    assert started == [[sys.executable, "-m", "jupyterlab", "new/folder/03-policies.ipynb"]]
    # JupyterLab's own failure is one of the command
    assert run("notebook").exit_code == 1
    assert started[1][-1] == "."


def test_failures_to_copy_are_reported(run, tmp_path):
    refused = run("notebook", "polices")
    assert refused.exit_code == 1
    assert 'There is no notebook "polices". Did you mean 03-policies?' in refused.output
    (tmp_path / "file").touch()
    refused = run("notebook", "--to", "file", "--no-open")
    assert refused.exit_code == 1
    assert "The notebooks cannot be copied to file" in refused.output


def test_shipped_outputs_are_those_of_the_default_pack():
    """If this fails after a change of the pack: python -m experiments.run_notebooks."""
    printed = re.compile(r"pack memlab \[([0-9a-f]{12})\]")
    hashes = {
        (path.name, found)
        for path in ORIGINALS.glob("*.ipynb")
        for found in printed.findall(_first_cells(path))
    }
    assert {name[:2] for name, _ in hashes} >= {"01", "03"}
    assert {found for _, found in hashes} == {load_pack("memlab").hash[:12]}


def _first_cells(path):
    """Return the outputs of a notebook before it installs a policy of its own, as text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    changed = next(
        (
            at
            for at, cell in enumerate(cells)
            if cell["cell_type"] == "code" and "policies." in "".join(cell["source"])
        ),
        len(cells),
    )
    return json.dumps([cell.get("outputs") for cell in cells[:changed]])


@pytest.mark.long
def test_jupyterlab_is_what_is_started():
    version = subprocess.run(
        [sys.executable, "-m", "jupyterlab", "--version"], capture_output=True, check=False
    )
    assert version.returncode == 0
