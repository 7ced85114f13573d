"""The rules of `.ci/language.py` on small made-up texts, so that the check itself is tested."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "language.py"


@pytest.fixture
def language(tmp_path, monkeypatch):
    """Load a copy of the checker whose root is an empty folder and whose rules are small."""
    spec = importlib.util.spec_from_file_location("language_check", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks up its own module by name.
    monkeypatch.setitem(sys.modules, "language_check", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    rules = {
        "names": {"vague": ["found", "held"], "protocol": ["close"], "public": {}, "repeated": 0},
        "phrases": {"blue cheese": "cheddar", "red herring": "clue"},
    }
    monkeypatch.setattr(module, "RULES", rules)
    return module


@pytest.fixture
def faults_of(language, tmp_path):
    """Return a function that writes a file and returns the rule and line of each fault in it."""

    def check(text, name="memlab/sample.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return [(fault.rule, fault.line) for fault in language.find_faults([path])]

    return check


def words(count):
    return "Return " + " ".join(["word"] * (count - 1)) + "."


# -- phrases --------------------------------------------------------------------------------------------------------


def test_a_phrase_is_a_fault_wherever_it_is(faults_of):
    assert faults_of("We eat blue cheese.\n", "docs/page.md") == [("phrase", 1)]
    assert faults_of("x = 1  # Blue cheese later\n") == [("phrase", 1)]


@pytest.mark.parametrize("sign", ["", "# ", "> ", "* "])
def test_a_phrase_across_a_line_break_is_a_fault(faults_of, sign):
    assert faults_of(f"{sign}This is a red\n{sign}herring.\n", "docs/page.md") == [("phrase", 1)]


def test_a_part_of_a_word_is_no_phrase(faults_of):
    assert faults_of("A bluecheese; navy-blue cheese; blue cheesecake.\n", "docs/page.md") == []


def test_cells_of_a_notebook_are_read_without_their_outputs(faults_of):
    cell = '{"source": ["We eat blue ", "cheese."], "outputs": [{"text": "blue cheese"}]}'
    assert faults_of(f'{{"cells": [{cell}]}}', "docs/page.ipynb") == [("phrase", 1)]


# -- docstrings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "rules"), [(30, []), (31, ["long sentence"])])
def test_a_sentence_has_at_most_thirty_words(faults_of, count, rules):
    text = f'def read():\n    """{words(count)}"""\n'
    assert [rule for rule, _ in faults_of(text)] == rules


def test_two_sentences_are_counted_separately(faults_of):
    assert faults_of(f'"""{words(20)} {words(20)}"""\n') == []


@pytest.mark.parametrize(
    "code",
    [
        f">>> {words(31)}",
        f"| {words(31)} |",
        f"`{words(31)}`",
    ],
    ids=["example", "table", "code"],
)
def test_code_and_tables_are_no_sentences(faults_of, code):
    assert faults_of(f'"""Return a value.\n\n{code}\n"""\n') == []


def test_a_literal_block_is_no_sentence(faults_of):
    command = "python -m module " + "option " * 31
    assert faults_of(f'"""Run the module.\n\n    {command}\n\nIt prints a table.\n"""\n') == []


def test_the_text_of_a_parameter_is_a_sentence(faults_of):
    docstring = (
        f"Return a value.\n\n    Parameters\n    ----------\n    value\n        {words(31)}\n    "
    )
    assert faults_of(f'def read(value):\n    """{docstring}"""\n') == [("long sentence", 1)]


def test_a_docstring_of_pronouns_is_a_fault(faults_of):
    text = 'def read():\n    """What that is to one, it is to those."""\n'
    assert faults_of(text) == [("pronouns", 1)]


def test_pronouns_in_a_long_docstring_are_accepted(faults_of):
    assert faults_of(f'"""What that is to one, it is to those. {words(20)}"""\n') == []


# -- comments -------------------------------------------------------------------------------------------------------


def test_a_constant_needs_a_comment_or_a_docstring(faults_of):
    assert faults_of("LIMIT = 3\n") == [("constant without a reason", 1)]
    assert faults_of("LIMIT = 3  # more than any person reads\n") == []
    assert faults_of("# More than any person reads.\nLIMIT = 3\n") == []
    assert faults_of('LIMIT = 3\n"""More than any person reads."""\n') == []


def test_a_comment_above_a_block_serves_the_block(faults_of):
    assert faults_of("# Measured on the sample log.\nLOW = 1\nHIGH = 2\n") == []
    assert faults_of("# Measured on the sample log.\nLOW = 1\n\nHIGH = 2\n") == [
        ("constant without a reason", 4)
    ]


def test_tests_need_no_comment_for_a_constant(faults_of):
    assert faults_of("LIMIT = 3\n", "tests/test_sample.py") == []


def test_a_complex_function_needs_a_comment(faults_of):
    branches = "\n".join(f"    if value == {number}:\n        pass" for number in range(8))
    rule = "complex function without a comment"
    assert faults_of(f"def read(value):\n{branches}\n") == [(rule, 1)]
    assert faults_of(f"def read(value):\n    # One branch for each format.\n{branches}\n") == []


def test_locks_and_caches_need_a_comment(faults_of):
    assert faults_of("guard = threading.Lock()\n") == [("lock without a reason", 1)]
    assert faults_of("guard = threading.Lock()  # two threads write\n") == []
    cached = "@cache\ndef read():\n    pass\n"
    assert faults_of(cached) == [("cache without a reason", 2)]
    assert faults_of(f"# Reading takes a second.\n{cached}") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [("pass", 1), ("if x: pass", 2), ("return [y for y in x]", 2), ("for y in x: pass", 2)],
)
def test_complexity_counts_branches_and_loops(language, body, expected):
    assert language.complexity(ast.parse(f"def read(x):\n    {body}\n").body[0]) == expected


# -- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("def found(): pass\n", "vague function name"),
        ("def _held(): pass\n", "vague function name"),
        ("def read(found): pass\n", "vague name"),
        ("found = 1\n", "vague name"),
        ("for held in (): pass\n", "vague name"),
    ],
)
def test_vague_names_are_faults(faults_of, text, rule):
    assert faults_of(text) == [(rule, 1)]


def test_a_name_of_more_than_five_functions_is_a_fault(faults_of):
    def methods(name, count):
        return "\n".join(f"class C{n}:\n    def {name}(self): pass" for n in range(count))

    assert faults_of(methods("read", 5)) == []
    assert faults_of(methods("read", 6)) == [("names of more than five functions", 0)]
    assert faults_of(methods("close", 6)) == [], "a method of a protocol"
    assert faults_of(methods("__len__", 6)) == []


# -- README and exceptions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prose", "lines", "count"), [(700, 60, 0), (701, 60, 1), (700, 61, 1), (701, 61, 2)]
)
def test_the_readme_has_a_maximum_length(language, prose, lines, count):
    text = "word " * prose + "\n```python\n" + "x = 1\n" * lines + "```\n"
    assert len(list(language.check_readme(text))) == count


def test_an_exception_covers_a_line_of_a_file(language, faults_of, tmp_path):
    exception = {"path": "docs/page.md", "line": "gate", "reason": "the name of a gate"}
    language.RULES["exceptions"] = [exception]
    faults_of("The gate is blue cheese.\n\nAll is blue cheese.\n", "docs/page.md")
    faults = list(language.find_faults([tmp_path / "docs"]))
    assert [language.allowed(fault) for fault in faults] == [True, False]


def test_the_status_is_1_if_there_is_a_fault(language, faults_of, tmp_path, monkeypatch, capsys):
    faults_of("All is blue cheese.\n", "docs/page.md")
    faults_of("All is correct.\n", "docs/other.md")
    for name, status in (("page", 1), ("other", 0)):
        monkeypatch.setattr(sys, "argv", ["language", str(tmp_path / "docs" / f"{name}.md")])
        assert language.main() == status
    assert capsys.readouterr().out == "docs/page.md:1: phrase: 'blue cheese'; write cheddar\n"
