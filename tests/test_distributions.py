"""Two distributions, memlab and memlab-core, hold one package of one version."""

import hashlib
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import memlab

ROOT = Path(__file__).parents[1]
WHOLE, CORE = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for folder in ("", ".core")
)
PINNED = dict(
    re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
)


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement)[0]


def test_one_version_stands_everywhere():
    assert memlab.__version__ == WHOLE["version"] == CORE["version"]
    assert f"memlab-core[annoy,workbench]=={memlab.__version__}" in WHOLE["dependencies"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(memlab.__version__)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.M)


def test_memlab_requires_the_whole_workbench():
    assert {name_of(requirement) for requirement in WHOLE["dependencies"]} == {
        *("memlab-core", "annoy", "hy", "ipywidgets", "jupyterlab", "matplotlib", "model2vec"),
        "polars",
    }


@pytest.mark.parametrize("field", ["requires-python", "license", "license-files", "scripts"])
def test_both_distributions_say_the_same(field):
    assert WHOLE[field] == CORE[field]


def test_the_licence_texts_of_both_are_equal():
    for name in CORE["license-files"]:
        assert (ROOT / name).read_bytes() == (ROOT / ".core" / name).read_bytes(), name


def test_an_extra_of_memlab_is_an_extra_of_memlab_core():
    for name, requirements in WHOLE["optional-dependencies"].items():
        assert requirements == [f"memlab-core[{name}]"]
        assert name in CORE["optional-dependencies"]


def test_core_requires_neither_notebooks_nor_science_nor_a_compiler():
    heavy = {
        "annoy",
        "anywidget",
        "ipywidgets",
        "jupyterlab",
        "matplotlib",
        "model2vec",
        "scikit-learn",
        "scipy",
    }
    assert not heavy & {name_of(requirement) for requirement in CORE["dependencies"]}


def test_no_bound_ends_at_a_minor_version_of_a_package_that_code_runs_on():
    extras = ("annoy", "mcp", "models", "plots", "science", "widgets", "workbench")
    parts = [*CORE["dependencies"], *(r for e in extras for r in CORE["optional-dependencies"][e])]
    caps = {name_of(part): part.partition("<")[2] for part in parts if "<" in part}
    assert {name: cap for name, cap in caps.items() if not cap.isdigit()} == {}


def test_constraints_fix_every_runtime_dependency_within_its_bounds():
    extras = [
        r for name, rs in CORE["optional-dependencies"].items() if name != "bench" for r in rs
    ]
    for requirement in [*CORE["dependencies"], *extras]:
        name = name_of(requirement).lower().replace("_", "-")
        if name != "memlab-core":
            low, high = re.search(r">=([\d.]+),<([\d.]+)", requirement).groups()
            assert as_numbers(low) <= as_numbers(PINNED[name]) < as_numbers(high), requirement


def as_numbers(version):
    return [int(part) for part in version.split(".")]


@pytest.mark.long
def test_windows_is_refused_in_one_sentence(tmp_path):
    # Modules of Python ask for the platform when they are imported.
    code = (
        "import shutil, subprocess, tempfile, sys; sys.platform = 'win32'\n"
        "try: import memlab\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("memlab does not run on Windows, because"), done.stderr
    assert done.stdout.count(".") == 1
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.long
def test_every_extra_that_a_message_names_exists():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "memlab").rglob("*.py")]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    named = {
        name.strip()
        for text in texts
        for names in re.findall(r"(?:memlab-core|\.core)\[([\w, -]+)\]", text)
        for name in names.split(",")
    }
    named |= {name for text in texts for name in re.findall(r'require_extra\(\s*"([\w-]+)"', text)}
    assert {"mcp", "plots", "science"} <= named <= set(CORE["optional-dependencies"])


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_descriptions_of_the_release_are_current(release):
    for name, text in release.descriptions().items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, "run .ci/release.py --describe"
    release.check_notice()
    release.check_hashes()


def test_hashes_are_of_every_file_of_a_pinned_version(release, tmp_path):
    files = [f"hy-{PINNED['hy']}.tar.gz", f"hy-{PINNED['hy']}-py3-none-any.whl", "hy-0.1.tar.gz"]
    for name in files:
        (tmp_path / name).write_text(name)
    digests = [hashlib.sha256(name.encode()).hexdigest() for name in files]
    line = release.list_hashes(tmp_path, ["hy"]).splitlines()[-1]
    assert line.startswith(f"hy=={PINNED['hy']} --hash=sha256:")
    assert [digest in line for digest in digests] == [True, True, False]
    with pytest.raises(release.ReleaseError, match="has no file of polars"):
        release.list_hashes(tmp_path, ["hy", "polars"])


def test_no_registry_stands_in_the_files_of_versions():
    for name in ("constraints.txt", "constraints-hashes.txt"):
        assert "://" not in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("rows", "status", "words"),
    [
        ([{"name": "hy", "version": "1", "vulns": []}], 0, "No known vulnerability in 1 packages."),
        ([{"name": "hy", "version": "1", "vulns": [{"id": "CVE-1"}]}], 1, "hy 1: CVE-1"),
        ([{"name": "hy", "skip_reason": "not found"}], 2, "does not know 1 of 1 packages"),
        (None, 2, "cannot be reached (ConnectionError: no route)"),
    ],
)
def test_an_audit_that_looked_nothing_up_finds_no_package_safe(release, rows, status, words):
    answer = "" if rows is None else json.dumps({"dependencies": rows, "fixes": []})
    line, code = release.judge_audit(answer, "Traceback\nConnectionError: no route\n")
    assert words in line
    assert code == status
