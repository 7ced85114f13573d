"""The extensions of docs/howto/extend*.md, each built, installed by pip and run in an environment of its own."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import memlab

ROOT = Path(memlab.__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "howto").glob("extend*.md"))
TEXT = "".join(page.read_text(encoding="utf-8") for page in PAGES)
MODULES = [
    text
    for text in re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    if "extension = Extension(" in text
]
(PROJECT,) = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)

CHECKS = {
    "emi": """
lab.remember("tabs", speaker="Bob")
lab.remember("spaces", speaker="Emi")
lab.remember("nobody said it")
lab.policies.install("recall-score", "(fn [said-by-emi] (if said-by-emi 1 0))")
assert [hit.score for hit in lab.recall("tabs")] == [1.0, 0.0, 0.0]
assert "said-by-emi" in str(lab.recall("tabs")[0].explain())
assert lab.slates().decisions.collect()["fingerprints"][-1].count(" emi 1.0") == 1
""",
    "cross": """
lab.remember(["rent is 950 euros", "who pays the rent"])
lab.policies.install("recall-score", "(fn [cross] cross)")
assert [hit.score for hit in lab.recall("who pays rent")] == [3.0, 1.0]
lab.policies.use("memlab")
lab.recall("who pays rent")
assert lab.slates().candidates.collect()["cross"].to_list() == [1.0, 3.0, None, None]
""",
    "urgency": """
lab.remember("the house burns", importance=0.9)
lab.remember("tabs", importance=0.6)
assert lab.urgent()["id"].to_list() == [1]
lab.policies.install("urgent", "(fn [importance] (< importance 0.7))")
assert lab.urgent()["id"].to_list() == [2]
assert memlab.load_pack("memlab").hash == HASH
""",
    "brief": """
from memlab_brief import PACK
long = "tabs are what I want everywhere, " + "and I have said so many times before, " * 10
lab.remember([long, "tabs"], linking="off")
lab.policies.install("recall-score", "(fn [similarity] 1)")
assert [hit.id for hit in lab.recall("tabs")] == [1, 2]
assert [hit.id for hit in lab.recall("tabs", pack=PACK)] == [2, 1]
lab.policies.use(PACK)
assert lab.policies.pack.name == "brief" and lab.recall("tabs")[0].id == 2
""",
    "irc": """
line = "[2026-03-01 10:00:00] <{}> {}\\n"
text = "-- the channel opens\\n" + line.format("Ada", "I live in Rome") + line.format("Bob", "I live in Oslo")
open("talk.irc", "w").write(text)
lab.load("talk.irc", progress=False)
lab.load("talk.irc", progress=False)
assert lab.memories["speaker"].to_list() == ["Ada", "Bob"]
assert [str(at)[:16] for at in lab.memories["created"]] == ["2026-03-01 10:00"] * 2
""",
    "whole": """
import zlib
import numpy as np
def embed(texts):
    return np.array([np.random.default_rng(zlib.crc32(text.encode())).normal(size=16) for text in texts])
texts = [f"note {number}" for number in range(4200)]
with memlab.open("big.memlab", index="whole", embedder=embed) as big:
    big.remember(texts, linking="off")
    before = [hit.id for hit in big.recall("note 77", log=False)]
    assert big.upkeep.index.rebuild()
    assert "whole, 4,096 of 4,200" in repr(big.upkeep.index)
    found = big.upkeep.index.report(sample=20, progress=False)
    assert found.recall == 1.0, found
    assert [hit.id for hit in big.recall("note 77", log=False)] == before
""",
    "notes": """
import pathlib
with memlab.open("notes.memlab") as told:
    secret = told.remember("mine alone", creator="ada", visibility="private")
    told.notes.pin(secret, "a remark on what is private")
    told.notes.pin(told.remember("tabs"), "a remark for all")
    whole = {1: "a remark on what is private", 2: "a remark for all"}
    assert told.notes.all() == whole
    assert told.at(viewer="bob").notes.all() == {2: "a remark for all"}
    told.io.export("whole.jsonl")
    told.at(viewer="bob").io.export("bob.jsonl")
    told.io.snapshot()
    lab.load("whole.jsonl", progress=False)
    assert lab.notes.all() == whole
    assert "what is private" not in pathlib.Path("bob.jsonl").read_text()
    told.purge(secret)
    assert told.notes.all() == {1: "", 2: "a remark for all"}
with memlab.open("notes.memlab") as told:
    assert told.notes.all() == {1: "", 2: "a remark for all"}
files = [path for path in pathlib.Path("notes.memlab").rglob("*") if path.is_file()]
assert not [path for path in files if b"what is private" in path.read_bytes()]
""",
    "count": """
from memlab_count import Count
from memlab.ui.widgets.view import write_bundle
lab.remember("tabs")
reply, _ = Count(lab).answer({"id": 1, "verb": "count", "arguments": {}})
assert reply["value"] == {"memories": 1}
assert (write_bundle(lab, Path("page")).parent / "static" / "count.js").exists()
""",
    "chess": """
played = lab.remember("Ada: 1. e4", subject="Ada", predicate="opens-with", value="e4")
assert lab.edit(played, text="Ada: 1. d4").value == "d4"
""",
    "small": """
import subprocess, sys
assert memlab.open(embedder="lengths").remember("tabs").id == 1
command = [sys.executable, "-m", "memlab", "shout", "ok"]
assert subprocess.run(command, capture_output=True, text=True).stdout == "OK\\n"
""",
}
"""What each extension of the pages must do once it is installed."""


def name_of(module):
    return re.search(r'Extension\(\s*"([a-z]+)"', module)[1]


def test_every_extension_of_the_pages_has_a_check_and_at_most_30_lines():
    assert {name_of(module) for module in MODULES} == set(CHECKS)
    assert [name_of(module) for module in MODULES if len(module.strip().splitlines()) > 30] == []


def write_project(module, folder):
    """Write the pages' project of one module: its pyproject.toml, under the module's name, and the module."""
    name = name_of(module)
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT.replace("emi", name), encoding="utf-8")
    (folder / f"memlab_{name}.py").write_text(module, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the Python of a fresh environment in which pip has installed every extension of the pages."""
    folder = tmp_path_factory.mktemp("extensions")
    venv.create(folder / "environment", with_pip=False)
    python = folder / "environment" / "bin" / "python"
    (site,) = (folder / "environment").glob("lib/*/site-packages")
    # The environment reads what memlab needs from that of the tests, and memlab from this tree.
    (site / "tested.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    projects = [write_project(module, folder / name_of(module)) for module in MODULES]
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-index",
        "--no-deps",
        "--no-compile",
    ]
    subprocess.run([*command, "--no-build-isolation", *projects], check=True, capture_output=True)
    return python


def run(python, code, folder):
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**known, "PYTHONWARNINGS": "error::UserWarning"}
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.long
@pytest.mark.parametrize("name", CHECKS)
def test_the_extension_works_once_pip_has_installed_it(installed, name, tmp_path):
    pack_hash = memlab.load_pack("memlab").hash
    start = f"import memlab\nfrom pathlib import Path\nHASH = {pack_hash!r}\nlab = memlab.open()\n"
    run(installed, start + CHECKS[name], tmp_path)


@pytest.mark.long
def test_every_installed_extension_is_found_by_its_entry_point(installed, tmp_path):
    code = "import memlab; print(*(f'{one.name} {one.version}' for one in memlab.extensions().values()))"
    assert run(installed, code, tmp_path) == " ".join(f"{name} 1.0" for name in sorted(CHECKS))
