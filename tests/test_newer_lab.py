"""A real wheel of a later memlab writes a lab, and this memlab refuses it with one sentence."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import memlab
from memlab.errors import NewerLab
from memlab.kernel.journal._database import VERSION
from memlab.kernel.policies import POLICY_FORMAT
from tests.journal.formats import format_of

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
LATER = "9.1.0"

_WRITE = """
import sys, memlab
with memlab.open(sys.argv[1]) as lab:
    lab.remember("Ana likes tea")
    lab.recall("tea")
    lab.policies.use(sys.argv[2])
    lab.io.snapshot()
    print(lab.io.backup().path)
"""


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    """Return the folder of an unpacked wheel with a later version and a later format of the journal."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling, which builds the wheel, is not installed: pip install hatchling")
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    # with the folders that its links lead to
    shutil.copytree(ROOT / "memlab", tree / "memlab", ignore=ignored)
    shutil.copytree(ROOT / ".core", tree / ".core", symlinks=True)
    replace(
        tree / ".core/pyproject.toml", f'version = "{memlab.__version__}"', f'version = "{LATER}"'
    )
    replace(tree / "memlab/kernel/version.py", f'"{memlab.__version__}"', f'"{LATER}"')
    replace(
        tree / "memlab/kernel/journal/_database.py",
        f"\nVERSION = {VERSION}\n",
        f"\nVERSION = {VERSION + 1}\n",
    )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    subprocess.run(command, cwd=tree / ".core", check=True, capture_output=True)
    (wheel,) = built.glob(f"memlab_core-{LATER}-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(built / "unpacked")
    return built / "unpacked"


def replace(path, before, after):
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, (path, before)
    path.write_text(text.replace(before, after), encoding="utf-8")


def run(package, *words):
    """Run Python with the memlab in the folder ``package``."""
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [
        str(package),
        *(path for path in known if path and not (Path(path) / "memlab").exists()),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, cwd=package
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_lab_of_a_later_memlab_is_refused_with_one_sentence_and_not_touched(later, tmp_path):
    folder = tmp_path / "agent.memlab"
    backup = Path(run(later, "-c", _WRITE, str(folder), "companion"))
    assert format_of(folder) == (VERSION + 1, LATER)
    files = {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "lock" not in path.name
    }
    text = (
        f"{folder} has format {VERSION + 1}, written by memlab {LATER}. This is memlab {memlab.__version__}, which "
        f"reads formats up to {VERSION}. Upgrade memlab."
    )
    calls = (
        lambda: memlab.open(folder),
        lambda: memlab.open(folder, read_only=True),
        lambda: memlab.open(folder, create=False),
        lambda: memlab.check(folder),
        lambda: memlab.restore(folder),
        lambda: memlab.restore(folder, backup),
    )
    for call in calls:
        with pytest.raises(NewerLab) as caught:
            call()
        assert str(caught.value) == text
    with (
        memlab.open(tmp_path / "other.memlab") as lab,
        pytest.raises(NewerLab, match=re.escape(text)),
    ):
        lab.load(folder)
    assert files == {path: path.read_bytes() for path in files}


def test_a_lab_of_this_memlab_is_raised_by_the_later_one_and_refused_here_from_then_on(
    later, tmp_path
):
    folder = tmp_path / "agent.memlab"
    with memlab.open(folder) as lab:
        lab.remember("The office is in Rome")
    assert format_of(folder) == (VERSION, memlab.__version__)
    run(later, "-c", _WRITE, str(folder), "companion")
    assert format_of(folder) == (VERSION + 1, LATER)
    with pytest.raises(NewerLab, match=f"format {VERSION + 1}, written by memlab {LATER}"):
        memlab.open(folder)


def test_a_pack_in_a_later_vocabulary_is_not_blamed(later, tmp_path):
    """The format of the journal is that of today; a setting was added, and the number of the vocabulary raised."""
    package, folder = tmp_path / "package", tmp_path / "agent.memlab"
    shutil.copytree(later, package)
    replace(
        package / "memlab/kernel/journal/_database.py",
        f"\nVERSION = {VERSION + 1}\n",
        f"\nVERSION = {VERSION}\n",
    )
    replace(
        package / "memlab/kernel/policies/_versions.py",
        f"POLICY_FORMAT = {POLICY_FORMAT}",
        f"POLICY_FORMAT = {POLICY_FORMAT + 1}",
    )
    added = 'Setting("moon-phase", "num", "added by a later version", default=0.0),'
    first = 'Setting(\n            "limit",'
    replace(package / "memlab/kernel/policies/_settings.py", first, f"{added}\n        {first}")
    run(package, "-c", _WRITE, str(folder), '(pack mine "Mine.")\n(setting moon-phase 1)')
    assert format_of(folder) == (VERSION, LATER)
    for read_only in (True, False):
        with pytest.raises(NewerLab) as caught:
            memlab.open(folder, read_only=read_only)
        text = str(caught.value)
        assert re.fullmatch(
            rf"Event \d+ \(use\) is written in the vocabulary of policies {POLICY_FORMAT + 1}, but memlab "
            rf'{memlab.__version__} reads vocabularies up to {POLICY_FORMAT}\. There is no setting "moon-phase"\. '
            r"Upgrade memlab\.",
            text,
        ), text
