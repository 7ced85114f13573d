"""Every example in a docstring runs; those that need files or a lab of the reader's are marked to be skipped."""

import doctest
import importlib
import pkgutil
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import memlab

pytestmark = pytest.mark.long

NEED_A_PACKAGE = (
    "adapters.agent_framework",
    "adapters.claude_tool",
    "adapters.google_adk",
    "adapters.langchain",
    "adapters.langgraph",
)
"""Frameworks that are not installed here."""
PACKAGES = [
    package
    for package in pkgutil.walk_packages(memlab.__path__, "memlab.")
    if not package.name.endswith(("__main__", *NEED_A_PACKAGE))
]
EXAMPLES = {
    package.name: Path(package.module_finder.find_spec(package.name).origin)
    .read_text(encoding="utf-8")
    .count(">>> ")
    for package in PACKAGES
}
"""The number of examples of each module. To look for them in those without takes longer than to run them."""


@pytest.mark.parametrize("name", [name for name, count in EXAMPLES.items() if count])
def test_the_examples_of_a_module(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # examples leave what they write
    result = doctest.testmod(
        importlib.import_module(name), extraglobs={"np": np, "pl": pl, "memlab": memlab}
    )
    assert result.failed == 0
    assert result.attempted <= EXAMPLES[name]


def test_every_module_is_imported_and_there_are_examples():
    for name in EXAMPLES:
        importlib.import_module(name)
    assert sum(EXAMPLES.values()) > 200
