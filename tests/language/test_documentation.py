"""docs/policy-language.md: every example runs, every name is documented, every documented name exists.

The tables between ``<!-- table: name -->`` and ``<!-- end -->`` repeat declarations; ``python
tests/language/test_documentation.py`` writes them anew.
"""

from __future__ import annotations

import doctest
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from memlab.kernel.language import Input, Policy, Signature, compile_policy, reader
from memlab.kernel.language.forms import FORMS, LIST_FORMS
from memlab.kernel.language.reader import ABSENT, ALIASES, LITERALS, Form, Text, read_forms
from memlab.kernel.language.texts import library
from memlab.kernel.policies import FEATURES, SETTINGS, SLOTS, load_pack
from memlab.subjects.linking.resolving import LINK_EDGES as EDGES

PATH = Path(__file__).parents[2] / "docs" / "policy-language.md"
PAGE = PATH.read_text(encoding="utf-8")


# Examples: a comment with the features, then forms, each with its value behind ``; =>``.


class Example(NamedTuple):
    slot: str
    given: dict[str, Any]
    source: str
    expected: Any


def blocks(kind: str) -> list[tuple[str, str]]:
    """The rest of the info line and the text of every fenced block of a language."""
    return re.findall(rf"^```{kind}([^\n]*)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


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
    found = re.findall(r"([^\s,;]+) (\{.*?\}|\[.*?\]|\"[^\"]*\"|[^\s,]+)", line)
    return {name: value(text) for name, text in found}


def examples() -> Iterator[Example]:
    for info, text in blocks("hy"):
        if info.strip() == "pack":
            continue
        first, *lines = text.splitlines()
        given, source = features(first), ""
        for line in lines:
            code, mark, expected = line.partition("; =>")
            source += code + "\n"
            if mark:
                yield Example(info.strip(), given, source.strip(), value(expected))
                source = ""
        assert not source.strip(), f"no value behind {source}"


EXAMPLES = list(examples())


def signature_of(example: Example) -> Signature:
    """The slot that is named, or one that has just what the example gives and returns what it shows."""
    if example.slot:
        return SLOTS[example.slot].signature

    def type_of(value: Any) -> Any:
        item = next((v for v in value if v is not None), 0.0) if isinstance(value, list) else value
        return {bool: "bool", str: "str", set: "set"}.get(type(item), "num")

    inputs = [Input(name, type_of(v)) for name, v in example.given.items()]
    return Signature("example", inputs, type_of(example.expected), aggregates=True)


def policy_of(example: Example) -> Policy:
    source = example.source
    if not re.match(r"\((fn|lambda|defn|defpolicy) ", source):
        source = f"(fn [{' '.join(example.given)}] {source})"
    return compile_policy(source, signature_of(example))


def near(found: Any, expected: Any) -> bool:
    """Equal up to the last digit that is shown."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(near, found, expected))
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(near(found[k], v) for k, v in expected.items())
    if isinstance(expected, float) and isinstance(found, float):
        return found == pytest.approx(expected, abs=6e-11, rel=6e-10, nan_ok=True)
    return (
        found is expected if expected is None or isinstance(expected, bool) else found == expected
    )


def slate_of(example: Example) -> tuple[list[dict[str, Any]], bool]:
    """The rows of an example, and whether they are a slate; what is given for one item is given twice."""
    sizes = {len(v) for v in example.given.values() if isinstance(v, list)}
    if not sizes:
        return [example.given] * 2, False
    (size,) = sizes
    return [
        {n: v[i] if isinstance(v, list) else v for n, v in example.given.items()}
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
    found = [
        policy.row(r, aggregates=aggregates[i] if aggregates else None) for i, r in enumerate(rows)
    ]
    assert near(found, expected)

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


def test_python_examples_are_doctests() -> None:
    text = "\n".join(body for _, body in blocks("python"))
    test = doctest.DocTestParser().get_doctest(text, {}, PATH.name, str(PATH), 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert tried > 10
    assert not failed, "\n".join(said)


@pytest.mark.parametrize("text", [text for info, text in blocks("hy") if info.strip() == "pack"])
def test_a_pack_that_is_shown_loads(text: str) -> None:
    assert load_pack(text).policies["recall-score"].doc


# What is documented, and what there is.


def called(form: Form) -> set[str]:
    """The names in front of calls; quoted lists, arguments and bound names are none."""
    if form.head == "quote":
        return {"quote"}
    items = form.items
    if form.head in ("fn", "lambda", "λ"):
        items = items[2:]
    elif form.head in ("defn", "defpolicy"):
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


def table(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading."""
    match = re.search(
        rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE
    )
    assert match is not None, heading
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in match.group(1).splitlines()
    ]


def test_every_form_has_an_example() -> None:
    shown = {ALIASES.get(name, name) for name in used_in_examples()}
    assert not set(FORMS) - shown


def test_every_function_over_lists_has_an_example_and_a_place_in_its_table() -> None:
    tabled = {name for cells in table("of lists") for name in code_in(cells[0])}
    assert tabled == set(LIST_FORMS)
    assert not tabled - used_in_examples()


def test_every_helper_has_an_example() -> None:
    assert not set(library()) - used_in_examples()


def test_examples_call_nothing_that_is_not_there() -> None:
    known = {*FORMS, *LIST_FORMS, *library(), *ALIASES}
    own = set(re.findall(r"\(defn (\S+)", PAGE))
    assert not used_in_examples() - known - own


def test_every_alias_is_in_its_table_and_means_what_it_says() -> None:
    rows = {
        alias: code_in(cells[1])[0]
        for cells in table("also written")
        for alias in code_in(cells[0])
    }
    assert rows == dict(ALIASES)


def test_every_literal_is_named() -> None:
    assert not set(LITERALS) - set(code_in(PAGE))


def test_what_is_left_out_is_what_the_errors_name() -> None:
    first = [name for cells in table("left out") for name in code_in(cells[0])]
    assert set(first) == set(ABSENT)


def test_every_type_and_its_nulls_are_in_the_table() -> None:
    assert [cells[0] for cells in table("type")] == ["num", "bool", "str", "set"]


def test_every_link_leads_somewhere() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-")
        for h in re.findall(r"^#+ (.*)$", PAGE, re.M)
    }
    for target in re.findall(r"\]\((?!http)([^)]+)\)", PAGE):
        path, _, anchor = target.partition("#")
        if path:
            text = (PATH.parent / path).read_text(encoding="utf-8")
            assert not anchor or f"# {anchor.replace('-', ' ')}" in text.lower()
        else:
            assert anchor in headings
    for script in re.findall(r"experiments/\w+\.py", PAGE):
        assert (PATH.parents[1] / script).exists()


# Tables that repeat declarations.


def helpers_table() -> str:
    rows = [f"| `({' '.join((h.name, *h.arguments))})` | {h.doc} |" for h in library().values()]
    return "\n".join(["| helper | what it gives |", "|---|---|", *rows])


def limits_table() -> str:
    source = Path(reader.__file__).read_text(encoding="utf-8")
    found = re.findall(
        r'^(MAX_\w+) = ([^\n]*)\n(?:"""(.*?)"""\n)?', source, flags=re.MULTILINE | re.DOTALL
    )
    rows = [
        f"| `{name}` | {getattr(reader, name):,} | {' '.join(doc.split())} |"
        for name, _, doc in found
    ]
    assert len(rows) == sum(name.startswith("MAX_") for name in vars(reader)), (
        "a limit is not in the table"
    )
    return "\n".join(["| limit | value | |", "|---|---:|---|", *rows])


def returns(signature: Signature) -> str:
    if signature.returns == "record":
        return f"record of {', '.join(f'`{f}`' for f in signature.fields)}"
    return signature.returns + (
        f": {', '.join(f'`{w}`' for w in signature.words)}" if signature.words else ""
    )


def stages_of(signature: Signature) -> tuple[str, ...]:
    """The stages of which a slot offers the features, but for some."""
    offered = {
        stage: [f.name for f in FEATURES.values() if f.stage == stage]
        for stage in ("memory", "query", "spread")
    }
    return tuple(
        stage
        for stage, names in offered.items()
        if 2 * len(set(names) & set(signature.inputs)) > len(names)
    )


def slots_table() -> str:
    rows = ["| slot | decides | returns | features | over the slate |", "|---|---|---|---|---|"]
    own = ["| slot | input of its own | type | |", "|---|---|---|---|"]
    pairs: dict[str, list[str]] = {}
    for slot in SLOTS.values():
        signature, stages = slot.signature, stages_of(slot.signature)
        missing = [
            f.name
            for f in FEATURES.values()
            if f.stage in stages and f.name not in signature.inputs
        ]
        read = ", ".join(stages) + (
            f" without {', '.join(f'`{name}`' for name in missing)}" if missing else ""
        )
        aggregates = (
            "aggregates" + (" and lists" if signature.lists else "") if signature.aggregates else ""
        )
        rows.append(
            f"| `{slot.name}` | {slot.doc} | {returns(signature)} | {read} | {aggregates} |"
        )
        for item in signature.inputs.values():
            if item.name in FEATURES and FEATURES[item.name].stage in stages:
                continue
            side, _, feature = item.name.partition("/")
            if side in ("new", "old") and feature in FEATURES:
                pairs.setdefault(f"| `{slot.name}` | `{side}/...` | |", []).append(feature)
            else:
                own.append(
                    f"| `{slot.name}` | `{item.name}` | {type_of(item.type, item.words)} | {item.doc} |"
                )
    own += [f"{front} {', '.join(f'`{f}`' for f in found)} |" for front, found in pairs.items()]
    return "\n".join([*rows, "", *own])


def type_of(type: str, words: tuple[str, ...]) -> str:
    return type + (f": {', '.join(f'`{w}`' for w in words)}" if words else "")


def features_table() -> str:
    rows = ["| feature | type | of the | description | unit | range |", "|---|---|---|---|---|---|"]
    rows += [
        f"| `{f.name}` | {type_of(f.type, f.words)} | {f.stage} | {f.description} | {f.unit} | {f.range} |"
        for f in FEATURES.values()
    ]
    return "\n".join(rows)


def link_edges_table() -> str:
    rows = [
        f"| `{word}` | {f'`{EDGES[word]}`' if word in EDGES else 'none'} |"
        for word in SLOTS["link"].signature.words
    ]
    return "\n".join(["| link says | edge |", "|---|---|", *rows])


def settings_table() -> str:
    rows = ["| setting | type | range | what it is |", "|---|---|---|---|"]
    for s in SETTINGS.values():
        span = " ".join(f"`{w}`" for w in s.words) or (
            "" if s.type == "bool" else f"{s.low:g}..{s.high:g}"
        )
        rows.append(f"| `{s.name}` | {s.type} | {span} | {s.doc} |")
    return "\n".join(rows)


TABLES: dict[str, Callable[[], str]] = {
    "helpers": helpers_table,
    "limits": limits_table,
    "slots": slots_table,
    "features": features_table,
    "settings": settings_table,
    "link-edges": link_edges_table,
}


def between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- table: {name} -->\n).*?(?=<!-- end -->)", flags=re.DOTALL)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_what_is_declared(name: str) -> None:
    match = between(name).search(PAGE)
    assert match is not None
    assert match.group() == TABLES[name]() + "\n", (
        "write it anew: python tests/language/test_documentation.py"
    )


if __name__ == "__main__":
    page = PAGE
    for name, made in TABLES.items():
        page = between(name).sub(lambda _, made=made: made() + "\n", page, count=1)
    PATH.write_text(page, encoding="utf-8")
