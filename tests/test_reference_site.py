"""The documentation site shows the public methods of a class and no others."""

import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

griffe = pytest.importorskip("griffe")
ROOT = Path(__file__).parents[1]


def list_methods(cls):
    """Return the public methods that a class defines itself."""
    return {
        name
        for name, member in cls.members.items()
        if member.is_function and not name.startswith("_")
    }


def test_a_class_shows_only_the_methods_in_the_list_of_public_names():
    extensions = griffe.load_extensions(str(ROOT / "docs" / "docstrings.py"))
    package = griffe.load("memlab", search_paths=[str(ROOT)], extensions=extensions)
    pages = tomllib.loads((ROOT / "docs" / "reference.toml").read_text(encoding="utf-8"))
    compared = 0
    for public in pages.values():
        for path, methods in public.items():
            target = package[path.removeprefix("memlab.")]
            cls = target.final_target if target.is_alias else target
            if cls.is_class:
                inherited = set(methods) - set(cls.members)
                assert list_methods(cls) == set(methods) - inherited, path
                compared += len(methods)
    assert compared > 100
