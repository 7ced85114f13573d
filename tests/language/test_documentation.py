"""The guide and the reference of the policy language: examples run, and the reference is as generated."""

from __future__ import annotations

import doctest
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from memlab.kernel.language import Input, Policy, Signature, compile_policy
from memlab.kernel.language.forms import FORMS, LIST_FORMS
from memlab.kernel.language.macros import MACROS
from memlab.kernel.language.reader import ABSENT, ALIASES, LITERALS, Form, Text, read_forms
from memlab.kernel.language.texts import library
from memlab.kernel.policies import FEATURES, SETTINGS, SLOTS, load_pack
from tests.language import reference_page

GUIDE = Path(__file__).parents[2] / "docs" / "policy-language.md"
MARKS = ("quasiquote", "unquote", "unquote-splice")
PAGES = {path: path.read_text(encoding="utf-8") for path in (GUIDE, reference_page.PATH)}


# Examples: a comment with the features, then forms, each with its value behind ``; =>``.


class Example(NamedTuple):
    slot: str
    inputs: dict[str, Any]
    source: str
    expected: Any


def blocks(kind: str) -> list[tuple[str, str]]:
    """The rest of the info line and the text of every fenced block of a language."""
    return [
        block
        for page in PAGES.values()
        for block in re.findall(
            rf"^```{kind}([^\n]*)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL
        )
    ]


def literal(form: Form) -> Any:
    """A value as the examples write it."""
    if form.kind == "list":
        return [literal(item) for item in form.items]
    if form.kind == "symbol":
        return {"true": True, "false": False, "null": None, "inf": math.inf, "nan": math.nan}[
            form.text
        ]
    return form.text if form.kind == "str" else form.number


def value(text: str) -> Any:
    text = text.strip()
    if text in ("inf", "nan"):
        return float(text)
    if text.startswith("{"):
        return set(value(f"[{text[1:-1]}]"))
    if text.startswith(":"):
        forms = read_forms(Text(text))
        return {k.text: literal(v) for k, v in zip(forms[::2], forms[1::2], strict=True)}
    (form,) = read_forms(Text(text))
    return literal(form)


def features(line: str) -> dict[str, Any]:
    """``; x 2, kind "fact", tags {"a" "b"}, similarity [0.2 0.8]`` as a dict."""
    pairs = re.findall(r"([^\s,;]+) (\{.*?\}|\[.*?\]|\"[^\"]*\"|[^\s,]+)", line)
    return {name: value(text) for name, text in pairs}


def examples() -> Iterator[Example]:
    for info, text in blocks("hy"):
        if info.strip() == "pack":
            continue
        first, *lines = text.splitlines()
        inputs, source = features(first), ""
        for line in lines:
            code, mark, expected = line.partition("; =>")
            source += code + "\n"
            if mark:
                yield Example(info.strip(), inputs, source.strip(), value(expected))
                source = ""
        assert not source.strip(), f"no value behind {source}"


EXAMPLES = list(examples())


def signature_of(example: Example) -> Signature:
    """Return the signature of the example's slot, or one made from its features and its value."""
    if example.slot:
        return SLOTS[example.slot].signature

    def type_of(value: Any) -> Any:
        item = next((v for v in value if v is not None), 0.0) if isinstance(value, list) else value
        return {bool: "bool", str: "str", set: "set"}.get(type(item), "num")

    inputs = [Input(name, type_of(v)) for name, v in example.inputs.items()]
    return Signature("example", inputs, type_of(example.expected), aggregates=True)


def policy_of(example: Example) -> Policy:
    source = example.source
    if not re.match(r"\((fn|lambda|defn|defmacro|inherit|defpolicy) ", source):
        source = f"(fn [{' '.join(example.inputs)}] {source})"
    return compile_policy(source, signature_of(example))


def near(result: Any, expected: Any) -> bool:
    """Equal up to the last digit that is shown."""
    if isinstance(expected, list):
        return len(result) == len(expected) and all(map(near, result, expected))
    if isinstance(expected, dict):
        return set(result) == set(expected) and all(near(result[k], v) for k, v in expected.items())
    if isinstance(expected, float) and isinstance(result, float):
        return result == pytest.approx(expected, abs=6e-11, rel=6e-10, nan_ok=True)
    return (
        result is expected if expected is None or isinstance(expected, bool) else result == expected
    )


def slate_of(example: Example) -> tuple[list[dict[str, Any]], bool]:
    """The rows of an example, and whether they are a slate; what is given for one item is given twice."""
    sizes = {len(v) for v in example.inputs.values() if isinstance(v, list)}
    if not sizes:
        return [example.inputs] * 2, False
    (size,) = sizes
    return [
        {n: v[i] if isinstance(v, list) else v for n, v in example.inputs.items()}
        for i in range(size)
    ], True


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=[e.source.replace("\n", " ")[:60] for e in EXAMPLES]
)
def test_an_example_gives_what_it_says_on_row_columns_and_arrays(example: Example) -> None:
    policy = policy_of(example)
    rows, slate = slate_of(example)
    expected = example.expected if slate else [example.expected] * len(rows)
    dtypes = {"num": pl.Float64, "bool": pl.Boolean, "str": pl.String, "set": pl.List(pl.String)}
    declared = {name: policy.signature.inputs[name] for name in rows[0]}
    frame = pl.DataFrame(
        {n: [sorted(r[n]) if isinstance(r[n], set) else r[n] for r in rows] for n in declared},
        schema={n: dtypes[i.type] for n, i in declared.items()},
    ).with_columns(memory_id=pl.int_range(len(rows)))

    assert near(policy.columns(frame).to_list(), expected)

    aggregates = policy.aggregates(frame).rows(named=True) if policy.root.op != "const" else []
    values_of_rows = [
        policy.row(r, aggregates=aggregates[i] if aggregates else None) for i, r in enumerate(rows)
    ]
    assert near(values_of_rows, expected)

    blank = {"num": 0.0, "bool": False, "str": ""}
    arrays: dict[str, Any] = {"memory_id": np.arange(len(rows))}
    for name, item in declared.items():
        values = [r[name] for r in rows]
        if item.type == "set":
            arrays[name] = values
        else:
            filled = [blank[item.type] if v is None else v for v in values]
            dtype = {"num": float, "bool": bool, "str": object}[item.type]
            arrays[name] = (np.array(filled, dtype), np.array([v is None for v in values]))
    results = policy.updates(arrays) if policy.root.op == "record" else {"": policy.arrays(arrays)}
    lists = {
        k: [None if n is not None and n[i] else v for i, v in enumerate(a.tolist())]
        for k, (a, n) in results.items()
    }
    listed = (
        [{k: v[i] for k, v in lists.items()} for i in range(len(rows))]
        if "" not in lists
        else lists[""]
    )
    assert near(listed, expected)


@pytest.mark.long
def test_python_examples_are_doctests() -> None:
    text = "\n".join(body for _, body in blocks("python"))
    test = doctest.DocTestParser().get_doctest(text, {}, GUIDE.name, str(GUIDE), 0)
    output: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
    assert tried > 10
    assert not failed, "\n".join(output)


@pytest.mark.parametrize("text", [text for info, text in blocks("hy") if info.strip() == "pack"])
def test_a_pack_that_is_shown_loads(text: str) -> None:
    assert load_pack(text).policies["recall-score"].doc


# Every declared name is documented, and every documented name is declared.


def called(form: Form) -> set[str]:
    """The names in front of calls; quoted lists, arguments and bound names are none."""
    if form.head == "quote":
        return {"quote"}
    items = form.items
    if form.head in ("fn", "lambda", "λ"):
        items = items[2:]
    elif form.head in ("defn", "defmacro", "defpolicy"):
        items = items[3:]
    elif form.head in ("let", "let*") and items[1].kind == "call":
        items = (*(pair.items[1] for pair in items[1].items), items[2])
    return {form.head, *(name for item in items for name in called(item))} - {""}


def used_in_examples() -> set[str]:
    """The names of all calls, in examples and in packs."""
    packs = [text for info, text in blocks("hy") if info.strip() == "pack"]
    sources = [*(example.source for example in EXAMPLES), *packs]
    return {
        name for source in sources for form in read_forms(Text(source)) for name in called(form)
    }


def code_in(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def test_every_form_has_an_example() -> None:
    shown = {ALIASES.get(name, name) for name in used_in_examples()}
    assert not set(FORMS) - shown


def test_every_function_over_lists_has_an_example() -> None:
    assert not set(LIST_FORMS) - used_in_examples()


def test_every_helper_has_an_example() -> None:
    assert not set(library()) - used_in_examples()


def test_examples_call_nothing_that_is_not_there() -> None:
    known = {*FORMS, *LIST_FORMS, *MACROS, *library(), *ALIASES, *MARKS, "defmacro"}
    own = set(re.findall(r"\((?:defn|defmacro) (\S+)", "".join(PAGES.values())))
    assert not used_in_examples() - known - own


def test_every_declared_name_is_in_the_reference() -> None:
    page = PAGES[reference_page.PATH]
    names = {*ALIASES, *ABSENT, *FEATURES, *SETTINGS}
    assert not names - set(code_in(page))
    assert [slot for slot in SLOTS if f"\n### {slot}\n" not in page] == []
    assert [
        name
        for name in {*FORMS, *library()} - {"pack", "setting"}
        if f"`({name} " not in page and f"`({name})`" not in page
    ] == []


def test_the_guide_names_every_literal_and_every_type() -> None:
    assert not set(LITERALS) - set(code_in(PAGES[GUIDE]))
    assert re.findall(r"^\| (num|bool|str|set) \|", PAGES[GUIDE], flags=re.MULTILINE) == [
        "num",
        "bool",
        "str",
        "set",
    ]


def anchors(page: str) -> set[str]:
    """The anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_every_link_leads_to_a_heading(path: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)]+)\)", PAGES[path]):
        name, _, anchor = target.partition("#")
        page = (path.parent / name).read_text(encoding="utf-8") if name else PAGES[path]
        assert not anchor or anchor in anchors(page), target


def test_the_reference_is_generated_from_the_declarations() -> None:
    assert PAGES[reference_page.PATH] == reference_page.write_page(), (
        "write it again: python tests/language/reference_page.py"
    )
