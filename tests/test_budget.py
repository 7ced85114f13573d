"""memlab stays within the size that .ci/budget.toml grants it."""

import ast
import importlib.util
import sys
import tomllib
from pathlib import Path

import click
import pytest

import memlab
from memlab.ui.cli import main

ROOT = Path(memlab.__file__).parent
BUDGET = tomllib.loads((ROOT.parent / ".ci/budget.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokens():
    if sys.version_info >= (3, 12):
        pytest.skip("the budget counts an f-string as one token, as Python 3.11 does")
    specification = importlib.util.spec_from_file_location(
        "size", ROOT.parent / "experiments/size.py"
    )
    size = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(size)
    sources = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    return {
        path.relative_to(ROOT): len(size.read_tokens(source, ast.parse(source)))
        for path, source in sources.items()
    }


@pytest.mark.long
def test_the_whole_keeps_to_its_tokens(tokens):
    assert sum(tokens.values()) <= BUDGET["tokens"]["whole"]


@pytest.mark.long
def test_the_kernel_keeps_to_its_tokens(tokens):
    assert (
        sum(count for path, count in tokens.items() if path.parts[0] == "kernel")
        <= BUDGET["tokens"]["kernel"]
    )


def test_a_lab_keeps_to_its_names():
    assert (
        len([name for name in dir(memlab.Lab) if not name.startswith("_")])
        <= BUDGET["names"]["lab"]
    )


def test_the_command_line_keeps_to_its_commands():
    assert len(main.list_commands(click.Context(main))) <= BUDGET["names"]["commands"]


def test_the_package_keeps_to_its_entries():
    assert (
        len([path for path in ROOT.iterdir() if path.name != "__pycache__"])
        <= BUDGET["names"]["package"]
    )
