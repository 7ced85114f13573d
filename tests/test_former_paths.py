"""Import paths of 0.1 lead to the module itself, and say where it is now."""

import importlib
import subprocess
import sys

import pytest

from memlab.errors import RenamedWarning
from memlab.kernel.former_paths import FORMER_PATHS, present_path


@pytest.mark.parametrize("former", sorted(FORMER_PATHS))
def test_a_former_path_gives_the_module_itself(former):
    sys.modules.pop(former, None)
    with pytest.warns(RenamedWarning, match=f"{former} is now {FORMER_PATHS[former]}"):
        module = importlib.import_module(former)
    assert module is importlib.import_module(FORMER_PATHS[former])
    assert module.__spec__ is not None
    assert module.__spec__.name == FORMER_PATHS[former]


def test_a_module_within_a_former_package_is_not_loaded_twice():
    with pytest.warns(RenamedWarning):
        former = importlib.import_module("memlab.evaluation._tests")
    assert former is importlib.import_module("memlab.science.evaluation._tests")


@pytest.mark.long
def test_the_dialect_is_required_by_its_name_without_a_warning():
    script = "import warnings; warnings.simplefilter('error'); import hy, memlab.dialect as d; print(d.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "memlab.subjects.lens.dialect"


@pytest.mark.parametrize(
    "path", ["memlab.kernel.language", "memlab.errors", "memlab.nothing", "memlabs.index", "memlab"]
)
def test_a_path_that_has_not_moved_is_left_alone(path):
    assert present_path(path) is None


def test_an_unknown_module_is_not_found_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'memlab\.nothing'"):
        importlib.import_module("memlab.nothing")
