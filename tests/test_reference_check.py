"""The rules of `.ci/reference.py` on a made-up package, so that the check itself is tested."""

import importlib.util
from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe")  # a part of the extra docs

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "reference.py"

DOCUMENTED = '''
def add(first: int, second: int) -> int:
    """Return the sum of two numbers.

    Parameters
    ----------
    first, second
        The numbers, of any size.

    Returns
    -------
    int
        The sum.

    Examples
    --------
    >>> add(1, 2)
    3
    """
    return first + second
'''


@pytest.fixture(scope="module")
def reference():
    """Load the checker, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("reference_check", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def load(tmp_path):
    """Return a function that writes a package with this source and loads it unimported."""

    def load_package(source):
        folder = tmp_path / "memlab"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").write_text(source, encoding="utf-8")
        loader = griffe.GriffeLoader(search_paths=[str(tmp_path)], allow_inspection=False)
        return loader.load("memlab", try_relative_path=False)  # else the real package is loaded

    return load_package


@pytest.fixture
def faults_of(reference, load):
    """Return a function that checks the docstring of `add`, or of another name, in a source."""

    def check(source, path="memlab.add", methods=()):
        package, objects = load(source), {path: list(methods)}
        returned = reference.returned_classes(package, {"page": objects})
        return list(reference.check_docstrings(package, objects, returned))

    return check


def test_a_complete_docstring_has_no_fault(faults_of):
    assert faults_of(DOCUMENTED) == []


def test_a_missing_parameter_is_a_fault(faults_of):
    source = DOCUMENTED.replace("second: int)", "second: int, third: int = 0)")
    assert faults_of(source) == ["memlab.add: the parameter third is not documented"]


def test_a_parameter_too_many_is_a_fault(faults_of):
    source = DOCUMENTED.replace("first, second\n", "first, second, third\n")
    assert faults_of(source) == ["memlab.add: third is documented and is no parameter"]


def test_a_private_parameter_need_not_be_documented(faults_of):
    assert faults_of(DOCUMENTED.replace("second: int)", "second: int, _cache: int = 0)")) == []


@pytest.mark.parametrize(("length", "count"), [(80, 0), (81, 1)])
def test_a_summary_has_at_most_80_characters(faults_of, length, count):
    summary = "Return " + "x" * (length - 8) + "."
    source = DOCUMENTED.replace("Return the sum of two numbers.", summary)
    expected = f"memlab.add: the summary has {length} characters; the maximum is 80"
    assert faults_of(source) == [expected] * count


def test_a_summary_ends_on_its_first_line(faults_of):
    source = DOCUMENTED.replace("Return the sum of two numbers.", "Return the sum of\n    two.")
    assert faults_of(source) == [
        "memlab.add: the summary does not end with a period on its first line"
    ]


def test_a_result_needs_a_section(faults_of):
    source = DOCUMENTED.replace("    Returns\n    -------\n    int\n        The sum.\n\n", "")
    assert faults_of(source) == ["memlab.add: there is no section Returns (-> int)"]


def test_a_docstring_is_needed(faults_of):
    assert faults_of("def add(): pass\n") == ["memlab.add: there is no docstring"]


def test_a_listed_name_must_exist(faults_of):
    assert faults_of(DOCUMENTED, "memlab.subtract") == ["memlab.subtract: there is no such object"]


def test_methods_and_properties_of_a_class_are_checked(faults_of):
    source = '''
class Counter:
    """A counter of events."""

    def add(self, count: int) -> None:
        """Add events."""

    @property
    def total(self) -> int:
        return 0
'''
    assert faults_of(source, "memlab.Counter", ["add", "remove"]) == [
        "memlab.Counter.add: the parameter count is not documented",
        "memlab.Counter.remove: there is no such method",
        "memlab.Counter.total: there is no docstring",
    ]


def test_a_re_exported_name_is_followed(faults_of, tmp_path):
    faults_of("")
    (tmp_path / "memlab" / "sums.py").write_text(DOCUMENTED, encoding="utf-8")
    assert faults_of("from memlab.sums import add\n") == []


def test_every_public_function_needs_an_example(reference, load):
    pages = {"sums": {"memlab.add": []}}
    assert list(reference.check_examples(load(DOCUMENTED), pages, {"sums"})) == []
    source = DOCUMENTED.replace(">>> add(1, 2)\n    3", "See the page.")
    faults = list(reference.check_examples(load(source), pages, {"sums"}))
    assert faults == ["memlab.add: there is no example"]
    assert list(reference.check_examples(load(source), pages, {"other"})) == []


def test_the_list_and_the_pages_are_compared(reference, tmp_path, monkeypatch):
    page = tmp_path / "docs" / "reference" / "sums.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Sums\n\n::: memlab.add\n\n::: memlab.multiply\n", encoding="utf-8")
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    pages = {"sums": {"memlab.add": [], "memlab.divide": ["by"]}}
    assert list(reference.check_pages(pages)) == [
        "sums: the page lacks memlab.divide",
        "sums: the list lacks memlab.multiply",
    ]
    monkeypatch.setattr(reference, "MAXIMUM", 2)
    assert list(reference.check_pages(pages))[-1] == "3 names are public; the maximum is 2"
