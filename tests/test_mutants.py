"""The campaign of mutants: locating and changing code, and the tests that run for a mutant."""

from pathlib import Path

import numpy as np
import pytest

from tests.campaigns.edits import (
    Mutant,
    MutantError,
    draw_mutants,
    mutate,
    read_mutants,
    write_mutants,
)
from tests.campaigns.mutants import ROOT, check_list
from tests.campaigns.reach import ReachMap, function_name

SOURCE = '''
"""A module."""

LIMIT = 5


class Store:
    def admits(self, ages, limit=LIMIT):
        kept = [age for age in ages if age < limit
                and age >= 0]
        kept.sort()
        return kept, "tab's"

    def other(self, limit):
        def inner(age):
            return age < limit
        if inner(1):
            return 1
        return min(inner(2), inner(2))
'''


def changed(function, old, new, **more):
    return mutate(Mutant(f"a.module{':' if function else ''}{function}", old, new, **more), SOURCE)


@pytest.mark.parametrize(
    ("function", "old", "new", "line"),
    [
        (
            "Store.admits",
            "age<limit",
            "age <= limit",
            "        kept = [age for age in ages if (age <= limit)",
        ),
        ("Store.admits", "'tab\\'s'", "''", "        return kept, ('')"),
        ("Store.admits", "kept.sort()", "pass", "        pass"),
        (
            "Store.admits",
            'return kept, "tab\'s"',
            "kept.clear()\nreturn kept, ''",
            "        kept.clear()",
        ),
        ("Store.other.inner", "age < limit", "not age", "            return (not age)"),
        ("Store.admits", "LIMIT", "LIMIT + 1", "    def admits(self, ages, limit=(LIMIT + 1)):"),
        ("", "LIMIT = 5", "LIMIT = 6", "LIMIT = 6"),
        ("Store", "inner(1)", "not inner(1)", "        if (not inner(1)):"),
    ],
)
def test_code_is_found_by_its_shape_within_a_function(function, old, new, line):
    assert line in changed(function, old, new).splitlines()


def test_nth_chooses_among_several_matches():
    assert "min((0), inner(2))" in changed("Store.other", "inner(2)", "0", nth=1)
    assert "min(inner(2), (0))" in changed("Store.other", "inner(2)", "0", nth=2)


@pytest.mark.parametrize(
    ("function", "old", "new", "message"),
    [
        ("Store.other", "inner(2)", "0", "2 times"),
        ("Store.other", "inner(3)", "0", "no code such as"),
        ("Store.nowhere", "inner(2)", "0", "there is no nowhere"),
        ("Store.admits", "age < limit", "age <", "gives no code that compiles"),
        ("Store.admits", "age < limit", "(age < limit)", "changes nothing"),
        ("Store.admits", "kept.sort(); return kept", "pass", "several statements"),
    ],
)
def test_a_mutant_that_cannot_be_applied_says_why(function, old, new, message):
    with pytest.raises(MutantError, match=message):
        changed(function, old, new)


@pytest.mark.long
def test_a_seed_draws_the_same_mutants_which_can_all_be_applied_and_written(tmp_path):
    modules = ("memlab.kernel.verbs.gate", "memlab.kernel.hooks")
    drawn = draw_mutants(modules, ROOT, seed=3, count=25)
    assert drawn == draw_mutants(modules, ROOT, seed=3, count=25)
    assert len({mutant.id for mutant in drawn}) == 25
    write_mutants(drawn, tmp_path / "drawn.toml", "Drawn.")
    assert read_mutants(tmp_path / "drawn.toml") == drawn
    assert check_list(tmp_path / "drawn.toml") == 0


def test_a_function_is_named_by_its_module_and_what_is_around_it():
    assert function_name(check_list.__code__) is None
    assert function_name(Path.exists.__code__) is None
    from memlab.kernel.hooks import list_hooks

    assert function_name(list_hooks.__code__) == "memlab.kernel.hooks:list_hooks"
    (generator,) = (code for code in list_hooks.__code__.co_consts if hasattr(code, "co_name"))
    assert function_name(generator) == "memlab.kernel.hooks:list_hooks"


@pytest.fixture
def reach(tmp_path):
    """Write three tests: a narrow and a broad one that reach ``f``, and another of the same file without it."""
    tests = [
        "tests/a.py::narrow",
        "tests/a.py::beside",
        "tests/b.py::broad[1]",
        "tests/b.py::broad[2]",
    ]
    reached = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=bool)
    result = ReachMap(tests, np.array([0.1, 0.1, 0.1, 0.1]), ["m:f", "m:g", "n:h"], reached)
    result.save(tmp_path / "map.npz")
    return ReachMap.load(tmp_path / "map.npz")


def test_the_most_specific_tests_come_first(reach):
    assert reach.tests_for("m", "f") == ([0, 2, 3], [1])


def test_a_function_that_has_moved_is_found_by_its_name(reach):
    assert reach.tests_for("elsewhere", "h") == ([2, 3], [])


def test_the_top_of_a_module_is_reached_by_the_tests_of_its_functions(reach):
    assert reach.tests_for("n", "") == ([], [2, 3])
    assert reach.tests_for("o", "x") == ([], [])
