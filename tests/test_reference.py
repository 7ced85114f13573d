"""The reference has an entry for every public name, and the first line of every entry describes it."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import re
from pathlib import Path

import pytest

import memlab
from memlab.errors import MissingExtra
from memlab.subjects.lab import Lab
from memlab.subjects.lens import Attribution, Explanation, PolicyDiff, Why
from memlab.subjects.programs.watch import Watch
from tests.tables_of_docs import TABLES, between

DOCS = Path(__file__).parents[1] / "docs"
DIRECTIVES = [
    name
    for page in DOCS.rglob("*.md")
    for name in re.findall(r"^::: (\S+)$", page.read_text(), flags=re.M)
]
MODULES = (
    "io.adapters",
    "errors",
    "subjects.verifiers",
    "io.ingest",
    "science.simulation",
    "science.evaluation",
    "io.serving",
    "ui.widgets",
)
NO_ENTRY = {
    "memlab.__version__",
    *(
        f"memlab.{name}"
        for name in ("adapters", "examples", "ingest", "simulation", "verifiers", "widgets")
    ),
}
"""A number, and modules, which have pages."""
INTERNAL = {
    "Values",  # a type of arrays, and a class of subjects/reading
    "Change",
    "Store",
    "State",
    "Transaction",
    "Words",
    "Projection",
    "Query",
    "Event",
    "Path",
}
"""What tools get from ``lab.io.store``; and pathlib's Path, whose name a class within memlab has too."""


def find_object(dotted):
    """Return the object with a dotted name."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[cut:], module)
    raise LookupError(dotted)


def entries():
    for name in DIRECTIVES:
        with contextlib.suppress(MissingExtra):  # an adapter of a framework that is not installed
            yield name, find_object(name)


ENTRIES = dict(entries())


def members(cls):
    """Return the public methods and properties that a class defines."""
    for name, value in vars(cls).items():
        function = next(
            (
                item
                for item in (getattr(value, part, None) for part in ("fget", "func", "__func__"))
                if item
            ),
            value,
        )
        if not name.startswith("_") and inspect.isroutine(function):
            yield name, inspect.unwrap(function)


def classes():
    """Return the public classes of memlab by name."""
    for file in sorted(Path(memlab.__file__).parent.rglob("*.py")):
        parts = file.relative_to(Path(memlab.__file__).parents[1]).with_suffix("").parts
        if "__main__" not in parts:
            try:
                module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
            except MissingExtra:
                continue
            own = (
                var
                for var in vars(module).values()
                if getattr(var, "__module__", "") == module.__name__
            )
            yield from ((item.__name__, item) for item in own if inspect.isclass(item))


def returned():
    """Return the classes that ``Lab`` returns, and the classes that those return."""
    by_name = dict(classes())
    todo, seen = [Lab, Attribution, Explanation, PolicyDiff, Watch, Why], set()
    while todo:
        cls = todo.pop()
        if cls in seen or cls.__name__ in INTERNAL:
            continue
        seen.add(cls)
        for _, function in members(cls):
            words = re.findall(r"\w+", str(function.__annotations__.get("return", "")))
            todo += [
                by_name[word] for word in words if word in by_name and not word.startswith("_")
            ]
    return seen


def test_each_name_has_one_entry():
    assert len(DIRECTIVES) == len(set(DIRECTIVES)) > 100


@pytest.mark.parametrize("module", ["", *MODULES])
def test_every_public_name_has_an_entry(module):
    package = importlib.import_module(f"memlab.{module}".rstrip("."))
    names = {f"{package.__name__}.{name}": getattr(package, name) for name in package.__all__}
    entries = {id(value) for value in ENTRIES.values()}
    assert [
        name for name, value in names.items() if name not in NO_ENTRY and id(value) not in entries
    ] == []


@pytest.mark.long
def test_every_class_that_a_lab_returns_has_an_entry():
    assert {
        cls.__qualname__ for cls in returned() - {c for c in ENTRIES.values() if inspect.isclass(c)}
    } == set()


def test_the_first_line_of_every_docstring_is_a_sentence():
    told = {
        name: value
        for name, value in ENTRIES.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    for name, value in list(told.items()):
        if inspect.isclass(value):
            told |= {f"{name}.{member}": function for member, function in members(value)}
    first = {name: (inspect.getdoc(value) or "").split("\n")[0] for name, value in told.items()}
    assert {
        name: line for name, line in first.items() if not re.fullmatch(r"[A-Z`\"'0-9].*[.?]", line)
    } == {}


@pytest.mark.parametrize(
    ("page", "name"), [(page, name) for page, tables in TABLES.items() for name in tables]
)
def test_a_table_says_what_is_declared(page, name):
    match = between(name).search((DOCS / page).read_text(encoding="utf-8"))
    assert match is not None
    assert match.group() == TABLES[page][name]() + "\n", (
        "write it again: python tests/tables_of_docs.py"
    )


def test_every_column_of_a_lab_is_documented():
    lab = memlab.open()
    page = (DOCS / "reference" / "memories.md").read_text(encoding="utf-8")
    assert [
        name for name in (*lab.memories.columns, *lab.edges.columns) if f"`{name}`" not in page
    ] == []


def attributes(cls):
    """Return the names in the section ``Attributes`` of a docstring, empty without one."""
    match = re.search(
        r"^Attributes\n-+\n(.*?)(?=\n\n\S|\Z)", inspect.getdoc(cls) or "", flags=re.M | re.S
    )
    lines = [] if match is None else re.findall(r"^(\w+(?:, \w+)*)$", match[1], flags=re.M)
    return [name for line in lines for name in line.split(", ")]


def test_a_section_of_attributes_names_every_field():
    results = [
        cls for cls in ENTRIES.values() if inspect.isclass(cls) and dataclasses.is_dataclass(cls)
    ]
    listed = {cls: names for cls in results if (names := attributes(cls))}
    # A subclass lists all of its fields, or those that its base class does not have.
    declared = {
        cls: [
            [name for name in names if not name.startswith("_")]
            for names in (inspect.get_annotations(cls), [f.name for f in dataclasses.fields(cls)])
        ]
        for cls in listed
    }
    assert len(listed) > 10
    assert {cls: names for cls, names in listed.items() if names not in declared[cls]} == {}


@pytest.mark.long
def test_every_page_that_a_docstring_names_is_there():
    sources = [
        file.read_text(encoding="utf-8") for file in Path(memlab.__file__).parent.rglob("*.py")
    ]
    named = {
        match
        for source in sources
        for match in re.findall(r"\bdocs/([\w/-]+\.md)(#[\w-]+)?", source)
    }
    assert [page for page, _ in named if not (DOCS / page).is_file()] == []
    for page, anchor in named:
        headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), flags=re.M)
        anchors = {
            "#" + re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
        }
        assert not anchor or anchor in anchors, f"{page}{anchor}"


def test_every_page_is_in_the_navigation():
    listed = (DOCS.parent / "mkdocs.yml").read_text().split()
    assert [
        page for file in DOCS.rglob("*.md") if (page := str(file.relative_to(DOCS))) not in listed
    ] == []


@pytest.mark.long
def test_the_columns_of_stats_and_metrics_are_documented():
    lab = memlab.open()
    lab.graph.link(lab.remember("Use tabs"), lab.remember("Run the tests"))
    stats, metrics = lab.graph.stats(), lab.agents.metrics()
    listed = re.sub(r"\s+", " ", inspect.getdoc(type(stats)))
    lines = {
        name: f"``{name}``: {', '.join(frame.columns)} " for name, frame in stats.frames.items()
    }
    assert [name for name, line in lines.items() if line not in listed] == []
    text = re.sub(r" \([^()]*\)", "", re.sub(r"\s+", " ", inspect.getdoc(type(metrics))))
    assert [
        name
        for name in metrics.frame["metric"]
        if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)
    ] == []
    frames = metrics.frame, metrics.contexts, metrics.memories
    assert [frame.columns for frame in frames if f": {', '.join(frame.columns)}." not in text] == []
