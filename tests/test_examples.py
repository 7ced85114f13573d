"""Every example in a docstring runs; those that need files or a lab of the reader's are marked to be skipped."""

import doctest
import importlib
import pkgutil

import numpy as np
import polars as pl
import pytest

import memlab

NEED_A_PACKAGE = (
    "adapters.agent_framework",
    "adapters.claude_tool",
    "adapters.google_adk",
    "adapters.langchain",
    "adapters.langgraph",
)
"""Frameworks that are not installed here."""
MODULES = [
    package.name
    for package in pkgutil.walk_packages(memlab.__path__, "memlab.")
    if not package.name.endswith(("__main__", *NEED_A_PACKAGE))
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name):
    result = doctest.testmod(
        importlib.import_module(name), extraglobs={"np": np, "pl": pl, "memlab": memlab}
    )
    assert result.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    tests = [test for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert sum(len(test.examples) for test in tests) > 200
