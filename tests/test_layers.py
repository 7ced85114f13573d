"""Imports point down: the layers of pyproject.toml, no cycle between modules, nothing private of another package.

Every import counts: those within functions and those for type checkers alone, too.
"""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import memlab
from memlab.subjects import PACK_DECLARATIONS

ROOT = Path(memlab.__file__).parent


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


CONTRACTS = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
EXTENSIONS = {
    name.rpartition(".")[2]
    for contract in CONTRACTS
    if contract["id"] == "no-extension"
    for name in contract["forbidden_modules"]
}

MODULES = {module_of(path): path for path in ROOT.rglob("*.py")}


@cache
def imports(module: str) -> tuple[tuple[str, str], ...]:
    """Return the modules of memlab that a module imports, each with the imported name."""
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} imports by a relative name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in MODULES:
                    yield whole, ""
                elif node.module in MODULES:
                    yield str(node.module), alias.name


def package_of(module: str) -> str:
    """Return what may share private names: a package of memlab, or the folder of a subject."""
    home = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    parts = home.split(".")
    return ".".join(parts[: 4 if parts[1:3] == ["kernel", "verbs"] else 3])


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the modules in cycles: those left after removing, repeatedly, modules without importers or imports."""
    left = {module: set(value) for module, value in graph.items()}
    while True:
        imported = {other for others in left.values() for other in others}
        ends = {module for module, others in left.items() if not others or module not in imported}
        if not ends:
            return sorted([module, *sorted(others)] for module, others in left.items())
        left = {module: others - ends for module, others in left.items() if module not in ends}


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_every_package_is_in_a_layer():
    contracts = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]
    listed = {
        name.strip()
        for line in contracts["contracts"][0]["layers"]
        for name in re.split(r"[|:]", line)
    }
    groups = {
        "memlab",
        *(f"memlab.{name}" for name in ("io", "kernel", "science", "subjects", "ui")),
    }
    packages = {".".join(module.split(".")[:3]) for module in MODULES} - groups
    assert packages - listed == set()


@pytest.mark.long
def test_the_layers_of_pyproject_hold():
    assert (
        lint_imports(
            config_filename=str(ROOT.parent / "pyproject.toml"), no_cache=True, is_debug_mode=False
        )
        == 0
    )


@pytest.mark.long
def test_no_module_imports_itself_by_way_of_others():
    graph = {
        module: {found for found, _ in imports(module) if found != module} for module in MODULES
    }
    assert cycles(graph) == []


def test_a_cycle_would_be_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert cycles(graph) == [["b", "c"], ["c", "b"]]


def test_every_extension_is_independent_of_the_others():
    """But for agent_verbs, which composes them."""
    independent = next(
        contract["modules"] for contract in CONTRACTS if contract["id"] == "independence"
    )
    assert {name.rpartition(".")[2] for name in independent} == EXTENSIONS - {"agent_verbs"}


@pytest.mark.long
@pytest.mark.parametrize("subject", ["attribution", "context"])
def test_a_subject_is_named_only_where_the_lab_and_its_agents_offer_it(subject):
    """In ``EXTENSIONS``, and where the lab and its agents offer it; former paths are of a subject that was moved."""
    named = re.compile(rf"\bmemlab\.subjects\.{subject}\b")
    own = ROOT / "subjects" / subject
    files = [path for path in ROOT.rglob("*.py") if own not in path.parents]
    naming = [
        str(path.relative_to(ROOT))
        for path in files
        if named.search(path.read_text(encoding="utf-8"))
    ]
    agents = {"subjects/agent_verbs/agents.py", "subjects/agent_verbs/session.py"}
    allowed = {"subjects/__init__.py", *agents, "subjects/lab.py"}
    assert set(naming) - {"kernel/former_paths.py"} <= allowed


def test_no_slot_of_a_subject_is_in_the_kernel():
    """What packs decide of ``attribution`` and ``context`` is declared in their folders.

    Settings are the kernel's: a slate lists them in the order in which they are declared.
    """
    own = [name for module in PACK_DECLARATIONS for name in _declared_by(module)]
    sources = {
        path: path.read_text(encoding="utf-8")
        for path in (ROOT / "kernel" / "policies").glob("*.py")
    }
    assert own
    assert [
        (str(path), name) for path, text in sources.items() for name in own if f'"{name}"' in text
    ] == []


def _declared_by(module):
    extension = importlib.import_module(module).EXTENSION
    return [declared.name for declared in extension.slots]


def test_a_lab_imports_extensions_for_type_checkers_alone():
    """What they offer is made by its name, so that a lab opens without their modules."""
    tree = ast.parse(MODULES["memlab.subjects.lab"].read_text(encoding="utf-8"))
    types = {
        item
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for item in ast.walk(node)
    }
    results = {
        node.module.split(".")[2]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node not in types
        and (node.module or "").startswith("memlab.subjects.")
    }
    assert results & EXTENSIONS == set()


@pytest.mark.long
def test_a_lab_opens_without_the_verbs_of_extensions():
    """At most what they declare is imported; what an accessor does is imported when it is asked for."""
    script = "import sys, memlab; memlab.open().close(); print(*(m for m in sys.modules if m.startswith('memlab')))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    opened = ran.stdout.split()
    declared = {f"memlab.subjects.{name}.{name}" for name in EXTENSIONS}
    assert declared.isdisjoint(opened)
    assert len(opened) < 380


@pytest.mark.long
def test_nothing_private_of_another_package_is_imported():
    results = [
        f"{module} imports {name or 'all'} of {other}"
        for module in MODULES
        for other, name in imports(module)
        if package_of(other) != package_of(module)
        and (private(name) or any(map(private, other.split("."))))
    ]
    assert results == []


def test_every_folder_of_modules_is_a_package():
    """Else import-linter does not see what is in it."""
    assert [
        str(path.parent) for path in MODULES.values() if not (path.parent / "__init__.py").exists()
    ] == []
