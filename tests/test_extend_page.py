"""The extensions of docs/howto/extend.md, each as a package that a fresh process finds by its entry point."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import memlab

ROOT = Path(memlab.__file__).parent.parent
PAGE = (ROOT / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")
SNIPPETS = [text for text in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL) if "extend(Extension(" in text]

CHECKS = {
    "numbers": """
lab.remember(["Rent is 950 euros", "Rent is 800 euros"])
lab.policies.install("recall-score", "(fn [numbers-met] numbers-met)")
assert lab.recall("who pays 800 euros?")[0].text == "Rent is 800 euros"
assert lab.policies.pack.number("numbers-weight") == 0.2
pack = memlab.load_pack('(pack mine "More." :inherits memlab) (setting numbers-weight 0.5)')
assert pack.hash != memlab.load_pack("memlab").hash
""",
    "urgency": """
lab.remember("the house burns", importance=0.9)
lab.remember("tabs", importance=0.6)
assert lab.urgent()["id"].to_list() == [1]
lab.policies.install("urgent", "(fn [importance] (< importance 0.7))")
assert lab.urgent()["id"].to_list() == [2]
""",
    "notes": """
secret = lab.remember("mine alone", creator="ada", visibility="private")
lab.notes.pin(secret, "a remark on it")
assert lab.notes.all() == {1: "a remark on it"}
assert lab.at(viewer="bob").notes.all() == {}
lab.io.export("whole.jsonl")
other = memlab.open()
other.load("whole.jsonl", progress=False)
assert len(other.memories) == 1
lab.purge(secret)
assert lab.notes.all() == {1: ""}
""",
    "chess": """
played = lab.remember("Ada: 1. e4", subject="Ada", predicate="opens-with", value="e4")
assert lab.edit(played, text="Ada: 1. d4").value == "d4"
""",
    "captions": """
open("talk.vtt", "w").write("WEBVTT\\n\\n<v Ada>I live in Rome\\n<v Bob>I live in Oslo\\n")
lab.load("talk.vtt", progress=False)
lab.load("talk.vtt", progress=False)
assert lab.memories["speaker"].to_list() == ["Ada", "Bob"]
""",
    "small": """
from click.testing import CliRunner
from memlab.ui.cli import main
assert memlab.open(embedder="lengths").remember("tabs").id == 1
assert CliRunner().invoke(main, ["shout", "ok"]).output == "OK\\n"
""",
    "whole": """
import numpy as np
from memlab.kernel.index import KINDS, Vectors
from memlab.kernel.index._base import build_base, Base
from pathlib import Path
vectors = Vectors(16)
vectors.append(np.random.default_rng(0).integers(-127, 128, (4096, 16)).astype(np.int8))
path = build_base(vectors, Path("."), KINDS["whole"], seconds=lambda: 0.0)
assert "whole" in path.name
lab = memlab.open(index="whole")
""",
    "count": """
from memlab.kernel.extension import extensions
(kind,) = [declared.value for declared in extensions()["count"].widgets]
lab.remember("tabs")
reply, _ = kind(lab).answer({"id": 1, "verb": "count", "arguments": {}})
assert reply["value"] == {"memories": 1}
from memlab.ui.widgets.view import write_bundle
assert (write_bundle(lab, Path("page")).parent / "static" / "count.js").exists()
""",
}


def name_of(snippet):
    return re.search(r'Extension\(\s*"([a-z]+)"', snippet)[1]


def test_every_extension_of_the_page_is_short_and_has_a_check():
    assert {name_of(snippet) for snippet in SNIPPETS} == set(CHECKS)
    assert [name_of(snippet) for snippet in SNIPPETS if len(snippet.strip().splitlines()) > 30] == []


@pytest.mark.long
@pytest.mark.parametrize("snippet", SNIPPETS, ids=name_of)
def test_it_works_as_an_installed_package(snippet, tmp_path):
    name = name_of(snippet)
    module = snippet.replace("extend(Extension(", "extension = (Extension(")
    (tmp_path / f"memlab_{name}.py").write_text(module, encoding="utf-8")
    info = tmp_path / f"memlab_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: memlab-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[memlab.extensions]\n{name} = memlab_{name}:extension\n")
    code = f"import memlab\nfrom pathlib import Path\nlab = memlab.open()\n{CHECKS[name]}"
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error::UserWarning"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
