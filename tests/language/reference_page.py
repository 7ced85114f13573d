"""The reference of the policy language, written from declarations and from ``examples.hy``.

``python tests/language/reference_page.py`` writes ``docs/reference/policy-language.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from memlab.kernel.language import reader
from memlab.kernel.language.reader import ABSENT, ALIASES
from memlab.kernel.language.texts import library
from memlab.kernel.policies import FEATURES, SETTINGS, SLOTS, Setting, Slot, load_pack
from memlab.subjects.lens.highlight import vocabulary
from memlab.subjects.linking.resolving import LINK_EDGES

PATH = Path(__file__).parents[2] / "docs" / "reference" / "policy-language.md"
EXAMPLES = Path(__file__).with_name("examples.hy")

# Characters of a policy that a page can show; longer ones are in the pack's file.
SHOWN_CHARACTERS = 700

INTRODUCTION = """# The policy language

This page lists every form, helper, slot, feature and setting, with examples. [The
guide](../policy-language.md) explains how policies work. This page is generated: `python
tests/language/reference_page.py` writes it from the declarations and from
`tests/language/examples.hy`. All examples run in the tests, on a row, on columns and on arrays. The
first comment of an example gives the values of the features. In an example, the comment `; =>`
after a form gives the value of the form."""

# Forms by section, with the rules that no single form states.
SECTIONS: Mapping[str, tuple[str, str]] = {
    "Definitions": (
        "fn defn defpolicy param",
        """A helper is inlined where it is called. A helper can use only its arguments, and may call other
helpers but not itself. A helper of a pack hides a helper of the library with the same name. The
bounds of a parameter are inclusive and optional. The current value of a parameter is part of the
policy's hash.""",
    ),
    "Inheritance": (
        "inherited inherit",
        """In a text that is installed in a lab, or passed to `evaluate` or `tune` with a log of the lab,
`(inherited)` is the policy in the text of the active pack. `(inherited)` ignores policies that were
installed later. In the file of a pack, `(inherited)` is the policy of the pack that `:inherits`
names. memlab adds the form `inherit` when it stores a version, so that the version is complete. The
inheriting and the inherited text share features and parameters, but neither text can use names or
helpers of the other text.""",
    ),
    "Numbers": ("+ - * / min max clamp abs sign floor ceil sqrt pow exp log log1p tanh", ""),
    "Tests": (
        "< <= > >= = != and or not null?",
        """A comparison of several values is a chain, as in `(< 0 x 1)`. Tests and the arguments of `and`, `or`
and `not` must be booleans, so `(if x ...)` with a number is an error.""",
    ),
    "Choice": (
        "if when unless cond case do in not-in one-of if-null",
        """All branches of a choice have the same type. `cond` and `case` end with `else` (or `True`), so a
policy always has a value. `case`, `in`, `not-in` and `one-of` compare a string or a number with
literals.""",
    ),
    "Macros": (
        "defmacro -> ->>",
        """A macro is expanded once, before the text is checked and hashed. The hash is computed from the
expanded text, so comments and the names of macros have no effect. The template of a macro inserts a
parameter by `~name`, and the forms after `#*` by `~@name`. The template of a macro computes nothing
and must use each parameter. A name that a template binds is invisible to the forms of the call. A
template that uses a name which the caller has bound is refused, so pass features as arguments.
Macros, helpers and policies may stand in any order in a file. A macro or helper of a text hides a
macro or helper of the language. The message of an error within an expansion gives the position of
the call. Constants of a template can be tuned if the template writes them as `(param ...)`.""",
    ),
    "Binding": (
        "let quote",
        "A bound value is computed only once, even if the body uses it several times.",
    ),
    "Units": ("days weeks hours minutes", "Durations are numbers, in days."),
    "Slate aggregates": (
        "slate-min slate-max slate-mean slate-rank min-max",
        """The policies of some slots can aggregate over the slate, which is the set of all eligible candidates
of a recall. The table of each slot says whether its policies can use slate aggregates. All back
ends compute aggregates by the same code, in the order of memory ids, so the order of rows has no
effect. `min-max` is 0 if all values are equal.""",
    ),
    "Sets": (
        "has has-any has-all overlap jaccard size",
        """A policy cannot use a set directly. Six forms reduce a set to a boolean or a number before the
policy runs.""",
    ),
    "Thompson sampling": (
        "beta-sample",
        """`beta-sample` is allowed in the slot `explore`. `beta-sample` is the probability that the draw for
an item is the largest of all candidates' draws. If `explore` returns `beta-sample`, a recall draws
one candidate with these probabilities as weights, which is Thompson sampling. The probability
`beta-sample` is integrated numerically, with an error below 0.0001 for 100 candidates, and the log
contains the probability that was used for the draw. `beta-sample` is null if a parameter is null or
not positive.""",
    ),
    "Records": (
        "update",
        """The slot `reinforce` returns a record. All expressions of an update read the values from before the
update. A field of the record that a branch omits keeps its value, and `(update)` changes no field.""",
    ),
}

NULLS = """| where | null | NaN |
|---|---|---|
| arithmetic and functions | null if an argument is null | NaN |
| `=` `<` ... | null | equal to itself and greater than every number, as Polars sorts it |
| `min` `max` | skipped; null if all are null | skipped; NaN if all are NaN |
| `clamp` | a null value stays null; a null bound does not apply | the same |
| `and` `or` `not` | Kleene logic: `(and false null)` is false, `(and true null)` is null | |
| `if` `cond` `when` `unless` | a null test takes the other branch | |
| `case` `in` | `case`: the else value; `in`: null | equals nothing |
| `if-null` | the next value | stays NaN |
| slate aggregates | skipped; null stays null in `slate-rank` and `min-max` | skipped; stays NaN |"""

RESOLVED = """The slot `resolve` decides about pairs that `link` calls `duplicate`, `updates` or `contradicts`. If
the closeness of a pair exceeds the setting `conflict-closeness`, `resolve` also decides about
similar and related pairs in which one memory denies the other. For `resolve`, the memory that
becomes valid later counts as the new memory."""

OUTCOMES = {
    "keep-both": "Both stay, joined by the edge of `link`. The same happens below the certainty"
    " `destroy-certainty`. An edge `contradicts` replaces `similar-to` and `relates-to`.",
    "keep-new": "The old memory is superseded. The new one gets the edge of `link` and an edge"
    " `supersedes` of weight 1.",
    "keep-old": "The new memory is not stored; the call returns the old one.",
    "merge": "A duplicate is not stored; the old memory gains `merge-gain` in strength,"
    " `merge-access` accesses, and the tags, files and agents of the duplicate. Other pairs become"
    " one new memory with the content of both, which supersedes the old one.",
}

LATER = """With `linking` "later", a memory is stored before it is compared. With `linking` "later", a memory
that would otherwise not be stored stays in the lab with the status superseded."""

PAIRS = """A policy of this slot compares two memories. Such a policy reads the features of the stage memory as
`new/...` and `old/...`; the slash is part of the name."""

LISTS = """A policy of this slot may also return the index of an item. A policy that returns an index reads the
parallel lists of the following table, and uses `range`, `length`, `filter`, `nth`, `first` and
`empty?`. If the index is -1, no item is selected. The item at the returned index has the weight 1,
and all other items have the weight 0."""


def table(head: str, lines: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown; `head` has the headings separated by bars."""
    names = [name.strip() for name in head.split("|")]
    cells = [names, ["---"] * len(names), *lines]
    return "\n".join(f"| {' | '.join(map(escape_bars, line))} |" for line in cells)


def escape_bars(cell: str) -> str:
    return cell.replace("|", "\\|")


def code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def read_examples() -> dict[str, list[str]]:
    """Return fenced blocks of examples by section."""
    blocks: dict[str, list[str]] = {}
    for piece in EXAMPLES.read_text(encoding="utf-8").split("\n;;; ")[1:]:
        heading, _, text = piece.partition("\n")
        match = re.fullmatch(r"([\w ]+?)(?: \((\S+)\))?", heading)
        assert match is not None, heading
        info = f"hy {match[2]}" if match[2] else "hy"
        blocks.setdefault(match[1], []).append(f"```{info}\n{text.strip()}\n```")
    return blocks


def write_type(type: str, words: Iterable[str]) -> str:
    return f"{type}: {code(words)}" if words else type


def write_slot(slot: Slot, examples: dict[str, list[str]]) -> Iterator[str]:
    """Yield the paragraphs of a slot."""
    yield f"### {slot.name}"
    yield f"**{slot.name}**: {slot.doc}"
    fields = f" of {code(slot.fields)}" if slot.fields else ""
    without = f", without {code(slot.without)}" if slot.without else ""
    facts = (
        f"{write_type(slot.returns, slot.words)}{fields}",
        f"{', '.join(slot.stages)}{without}" if slot.stages else "none",
        "yes" if slot.aggregates else "no",
    )
    yield table("returns | stages of its features | slate aggregates", [facts])
    if slot.of_pair:
        yield PAIRS
    if slot.inputs:
        own = [(f"`{i.name}`", write_type(i.type, i.words), i.doc) for i in slot.inputs]
        yield table("input of this slot | type | description", own)
    if slot.lists:
        yield LISTS
        yield table("list | feature", [(f"`{k}`", f"`{v}`") for k, v in slot.lists.items()])
    yield from examples.pop(slot.name, [])
    if slot.name == "link":
        yield table(
            "link returns | edge from the new to the old memory",
            [(f"`{w}`", f"`{LINK_EDGES[w]}`" if w in LINK_EDGES else "none") for w in slot.words],
        )
        yield (
            "The weight of an edge from `link` is the closeness of the two memories. If `link` returns "
            "`restates`, the weight of the edge is the certainty that the old statement is no longer "
            "valid."
        )
    if slot.name == "resolve":
        yield RESOLVED
        yield table(
            "resolve returns | result", [(f"`{word}`", OUTCOMES[word]) for word in slot.words]
        )
        yield LATER
    source = load_pack("memlab").policies[slot.name].source
    if len(source) <= SHOWN_CHARACTERS:
        yield f"In the default pack:\n\n```\n{source.strip()}\n```"
    else:
        yield (
            "The default pack takes its long policy for this slot from `policies/default.hy`, or from the"
            " packaged default of the slot."
        )


def write_range(setting: Setting) -> str:
    if setting.words:
        return code(setting.words)
    return "" if setting.type == "bool" else f"{setting.low:g} to {setting.high:g}"


def write_value(value: object) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def write_limits() -> str:
    source = Path(reader.__file__).read_text(encoding="utf-8")
    limits = re.findall(
        r'^(MAX_\w+) = [^\n]*\n(?:"""(.*?)"""\n)?', source, flags=re.MULTILINE | re.DOTALL
    )
    assert len(limits) == sum(name.startswith("MAX_") for name in vars(reader))
    lines = [
        (f"`{name}`", f"{getattr(reader, name):,}", " ".join(doc.split())) for name, doc in limits
    ]
    return table("limit | value | description", lines)


def write_forms(examples: dict[str, list[str]]) -> Iterator[str]:
    """Yield the sections of forms."""
    words = {word.name: word for word in vocabulary()}
    for heading, (names, rules) in SECTIONS.items():
        yield f"### {heading}"
        forms = [words[name] for name in names.split()]
        yield table("form | meaning", [(f"`{form.shape}`", form.doc) for form in forms])
        if rules:
            yield rules
        yield from examples.pop(heading)
    yield "### Null and NaN"
    yield NULLS
    yield from examples.pop("Null and NaN")
    yield "### Other spellings"
    meanings: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        meanings.setdefault(name, []).append(alias)
    yield table("also written | means", [(code(a), f"`{name}`") for name, a in meanings.items()])
    yield "### Forms that do not exist"
    reasons: dict[str, list[str]] = {}
    for name, reason in ABSENT.items():
        reasons.setdefault(reason, []).append(name)
    yield table("form | reason", [(code(names), reason) for reason, names in reasons.items()])
    yield (
        "The language also has no functions as values, no recursion, no integers, dates or string "
        "operations, and no reader macros or f-strings. Forms that do not exist would differ between "
        "back ends, take unbounded time, or run code."
    )


def write_page() -> str:
    """Return the whole page."""
    examples = read_examples()
    pieces = [INTRODUCTION, "## Forms", *write_forms(examples), "## Helpers"]
    pieces.append(
        "Ages and half-lives in arguments of helpers may have any unit, unless the name of an "
        "argument says days or minutes. A feature among the arguments of a policy hides the helper of"
        " the same name. For example, a policy with `recency` as an argument calls `half-life-decay` "
        "instead of the helper `recency`."
    )
    helpers = [(f"`({' '.join((h.name, *h.arguments))})`", h.doc) for h in library().values()]
    pieces += [table("helper | meaning", helpers), *examples.pop("Helpers")]
    pieces += [
        "## Limits",
        "A text that exceeds a limit is refused before it is compiled.",
        write_limits(),
    ]
    pieces.append("## Slots")
    pieces.append(
        "A pack has one policy for each slot. The names of a policy's arguments are the"
        " [features](#features) and inputs that it reads."
    )
    for slot in SLOTS.values():
        pieces += write_slot(slot, examples)
    assert not examples, f"No section has these examples: {list(examples)}"
    pieces.append("## Features")
    features = [
        (f"`{f.name}`", write_type(f.type, f.words), f.stage, f.description, f.unit, f.range)
        for f in FEATURES.values()
    ]
    pieces.append(table("feature | type | stage | description | unit | range", features))
    pieces.append("## Settings")
    pieces.append(
        "A pack sets a setting with `(setting name value)`. The values of settings in other packs are"
        " in [Settings of each pack](../systems.md#settings-of-each-pack)."
    )
    defaults = load_pack("memlab").settings
    settings = [
        (f"`{s.name}`", s.type, write_range(s), write_value(defaults[s.name]), s.doc)
        for s in SETTINGS.values()
    ]
    pieces.append(table("setting | type | range | default pack | description", settings))
    return "\n\n".join(pieces) + "\n"


if __name__ == "__main__":
    PATH.write_text(write_page(), encoding="utf-8")
