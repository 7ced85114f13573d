"""Commands on policy files: check, show, hash, compare and explain."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.base.disk import read_source_file
from memlab.kernel.base.printable import count_of
from memlab.kernel.language import Policy, canonical, compile_policy, read_pack, slot_of
from memlab.kernel.policies import DEFAULT_PACK, SLOTS, Pack, get_slot, inherited_helpers, load_pack
from memlab.subjects.lens import Explanation, diff_packs, diff_policies, highlight
from memlab.subjects.questions.scoring import Scores, note_on_feedback
from memlab.ui.cli._base import (
    LAB,
    InputFile,
    LocalPath,
    Report,
    command,
    open_existing,
    parse_value,
    policy,
    print_report,
    read_frame,
    say,
)

__all__ = ["PolicyFile", "collect_errors", "open_policies", "parse_values", "read_frame"]


# Arguments and options of several commands.
FILE = click.argument("file", type=InputFile(".hy", as_text=True))
_SLOT = click.option(
    "--slot",
    help="Which policy of a pack to use, by its slot. If FILE contains one policy: the slot to compile it for. "
    "Default: the slot that the policy names.",
)
_COLOR = click.option(
    "--color/--no-color",
    default=None,
    help="Print in colours. Default: only if the output is a terminal.",
)


def _use_colors(requested: bool | None) -> bool:
    """Return whether to colour the output: as requested, or else on a terminal without NO_COLOR."""
    if requested is None:
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return requested


@command(policy)
@FILE
@_SLOT
@click.option(
    "--lab",
    type=LocalPath(),
    help="Lab on whose labelled questions FILE is scored. The lab is not changed.",
)
def check(file: str, slot: str | None, lab: Path | None, as_json: bool) -> Report:
    """Check the types of all policies in FILE, and score them on a lab.

    FILE is a pack's name, a pack's file or a policy's file. Errors are printed as file:line:column, with exit status 1.
    With --lab, the questions gained and lost are listed next to the scores of FILE and of the active pack.

    Example: memlab policy check mine.hy --lab my.memlab
    """
    try:
        loaded = open_policies(file, slot)
    except PolicyError as error:
        return _report_errors(file, collect_errors(file, error), as_json)
    hashes = {name: item.hash for name, item in loaded.policies.items()}
    report = {
        "ok": True,
        "pack": loaded.name,
        "hash": _file_hash(loaded),
        "slots": hashes,
    }
    count = f"{len(hashes)} policies, all valid" if loaded.pack else "a valid policy"
    line = f"{loaded.name} [{_file_hash(loaded)[:12]}]: {count}"
    if lab is None:
        return report, line
    scores, note = _score_file(lab, file, loaded)
    return report | {"scores": scores and scores.to_dict()}, [line, "", str(scores or note)]


def _score_file(lab: Path, file: str, loaded: PolicyFile) -> tuple[Scores | None, str]:
    """Score a file on a lab's questions; return the scores and an empty note.

    If the lab has no questions, return None and a note about its feedback.
    """
    with open_existing(lab, read_only=True) as opened:
        slot = "recall-score" if loaded.pack else loaded.get_policy(None).signature.slot
        if not len(opened.questions):
            return None, note_on_feedback(opened, slot)
        policy = loaded.pack or opened.policies.check(
            slot, read_source_file(Path(file).expanduser())
        )
        return opened.score({loaded.name: policy}, metrics=("hit@5", "ndcg@10")), ""


def _report_errors(file: str, errors: list[PolicyError], as_json: bool) -> Report:
    """Print the errors of a file and exit with status 1, or return them for ``--json``."""
    rows = [
        {
            "file": error.file or file,
            "line": error.line,
            "column": error.column,
            "policy": error.policy,
            "message": error.message,
        }
        for error in errors
    ]
    if as_json:
        return {"ok": False, "errors": rows}, "", 1
    for error in errors:
        location = ":".join(
            str(part) for part in (error.file or file, error.line, error.column) if part is not None
        )
        say(f"{location}: {error}", err=True)
    say(f"memlab: {file} has {count_of(len(errors), 'error')}", err=True)
    raise click.exceptions.Exit(1)


def _file_hash(file: PolicyFile) -> str:
    """Return the hash of the pack or the policy in a file."""
    return file.pack.hash if file.pack is not None else file.get_policy(None).hash


@command(policy, name="show")
@FILE
@_SLOT
@_COLOR
def show_policy(file: str, slot: str | None, color: bool | None, as_json: bool) -> Report:
    """Show the settings and policies of FILE, including the inherited settings and policies.

    Example: memlab policy show companion --slot recall-score
    """
    loaded = open_policies(file, slot)
    chosen = loaded.policies if slot is None else {slot: loaded.get_policy(slot)}
    settings = {} if loaded.pack is None else dict(loaded.pack.settings)
    report = {
        "pack": loaded.name,
        "hash": _file_hash(loaded),
        "settings": settings,
        "policies": {name: item.source for name, item in chosen.items()},
    }
    paint = _use_colors(color)

    def highlight_source(source: str, features: Iterable[str] = ()) -> str:
        """Return source code, highlighted for a terminal."""
        return highlight(source, "terminal", features=features) if paint else source

    def text() -> str:
        """Return the settings and the policies of the file as text."""
        lines = []
        if loaded.pack is not None:
            lines.append(
                highlight_source(
                    f"; pack {loaded.name} [{_file_hash(loaded)[:12]}]: {loaded.pack.doc}"
                )
            )
            if slot is None:
                lines += [
                    highlight_source(f"(setting {name} {_format_value(value)})")
                    for name, value in settings.items()
                ]
            lines.append("")
        parts = [
            f"{highlight_source(f'; {name} [{item.hash[:12]}]')}\n{highlight_source(item.source)}"
            for name, item in chosen.items()
        ]
        return "\n".join([*lines, "\n\n".join(parts)])

    return _print_painted(report, text, paint, as_json)


def _print_painted(report: Any, text: Callable[[], str], paint: bool, as_json: bool) -> Report:
    """Print a text, in colour if ``paint`` is true, or return the report for ``--json``."""
    if as_json:
        return report, ""
    say(text(), painted=paint)
    return None


def _format_value(value: float | bool | str) -> str:
    """Return the value of a setting or a result as JSON text."""
    return json.dumps(value, ensure_ascii=False)


@command(policy, name="hash")
@FILE
@_SLOT
def hash_(file: str, slot: str | None) -> Report:
    """Show the hash of FILE and of each policy in the file.

    The version hash covers slots, settings, parameters, helpers and the version of the dialect. The source hash ignores
    layout and bound names; the meaning hash identifies what is computed.

    Example: memlab policy hash companion
    """
    loaded = open_policies(file, slot)
    chosen = loaded.policies if slot is None else {slot: loaded.get_policy(slot)}
    rows = {
        n: {"hash": p.hash, "source": p.source_hash, "meaning": p.meaning_hash}
        for n, p in chosen.items()
    }
    width = max(map(len, rows), default=0)
    lines = [
        f"{name:{width}}  version {row['hash'][:12]}  source {row['source'][:12]}  meaning {row['meaning'][:12]}"
        for name, row in rows.items()
    ]
    return {"pack": loaded.name, "hash": _file_hash(loaded), "slots": rows}, [
        _file_hash(loaded),
        *lines,
    ]


@command(policy)
@click.argument("before", type=InputFile(".hy", as_text=True))
@click.argument("after", type=InputFile(".hy", as_text=True))
@_SLOT
@_COLOR
def diff(before: str, after: str, slot: str | None, color: bool | None, as_json: bool) -> Report:
    """Show the differences between two packs, or two policies of one slot.

    The exit status is 1 if there are differences.

    Example: memlab policy diff companion mine.hy
    """
    old, new = open_policies(before, slot), open_policies(after, slot)
    slots: dict[str, dict[str, str]] = {}
    settings: dict[str, dict[str, object]] = {}
    if old.pack is not None and new.pack is not None and slot is None:
        differences = diff_packs(old.pack, new.pack)
        pairs = [
            (name, old.policies[name], new.policies[name])
            for name in old.policies
            if name in new.policies
        ]
        settings = {
            name: {"before": value, "after": new.pack.settings.get(name)}
            for name, value in old.pack.settings.items()
            if value != new.pack.settings.get(name)
        }
    else:
        single = slot or next(
            (name for side in (old, new) if side.pack is None for name in side.policies), None
        )
        left, right = old.get_policy(single), new.get_policy(single)
        differences = diff_policies(left, right)
        pairs = [(left.signature.slot, left, right)]
    slots = {
        name: {"before": left.source, "after": right.source}
        for name, left, right in pairs
        if left.hash != right.hash
    }
    # other literals of the same value, another order of arguments
    places = [change.place for change in differences.changes]
    respelled = [name for name in slots if not _is_within(name, places)]

    def text() -> str:
        """Return the differences between the files as text."""
        notes = [f"{name}: the same forms, written differently" for name in respelled]
        return (
            "\n".join([differences.text(color=_use_colors(color)), *notes])
            if differences or notes
            else "no difference"
        )

    report = {"slots": slots, "settings": settings, "changes": differences.frame.to_dicts()}
    print_report(_print_painted(report, text, _use_colors(color), as_json), as_json=as_json)
    if slots or settings:
        raise click.exceptions.Exit(1)
    return None


@command(policy)
@FILE
@_SLOT
@click.option("--field", help="Field to explain, if the policy returns a record. Default: all.")
@click.option(
    "--values", multiple=True, help="Values as a JSON object, or name=value; may be repeated."
)
@click.option(
    "--frame",
    type=LocalPath(),
    help="Table of candidates, one row each, as .parquet, .csv or .jsonl.",
)
@click.option(
    "--row",
    type=int,
    default=0,
    show_default=True,
    help="Row of --frame to explain, counted from 0.",
)
@click.option(
    "--by", help="Column of --frame whose values separate the candidate lists of different recalls."
)
@click.option(
    "--order",
    default="memory_id",
    show_default=True,
    help="Column of --frame that orders equal values.",
)
def explain(
    file: str,
    slot: str | None,
    field: str | None,
    values: tuple[str, ...],
    frame: Path | None,
    row: int,
    by: str | None,
    order: str,
) -> Report:
    """Explain the value that a policy in FILE gives to one item.

    It shows the terms of the sum and the whole computation. Values come from --values or from a row of --frame;
    aggregates need --frame. --values take precedence.

    Example: memlab policy explain mine.hy --values similarity=0.8
    """
    chosen = open_policies(file, slot).get_policy(slot)
    item_values, aggregates = _read_item(chosen, parse_values(values), frame, row, by, order)
    names = (field,) if field is not None else chosen.fields
    parts = [chosen.field(name) for name in names] if names else [chosen]
    explanations = {part.name: part.explain(item_values, aggregates=aggregates) for part in parts}
    report: dict[str, Any] = {}
    for name, explanation in explanations.items():
        terms = [
            {"text": term.text, "value": term.value, "label": term.label, "group": term.group}
            for term in explanation.terms
        ]
        branches = [{"text": branch.text, "taken": branch.taken} for branch in explanation.branches]
        report[name] = {"value": explanation.value, "terms": terms, "branches": branches}
    text = "\n\n".join(
        _format_explanation(name, explanation) for name, explanation in explanations.items()
    )
    return {
        "policy": chosen.name,
        "hash": chosen.hash,
        "values": item_values,
        "explained": report,
    }, text


@command(policy)
@LAB
@click.argument("policies", nargs=-1)
@click.option(
    "--questions", type=LocalPath(), help="File of questions. Default: the lab's own questions."
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Metric to compute on the questions, such as ndcg@10; may be repeated.",
)
def score(
    lab: Path, policies: tuple[str, ...], questions: Path | None, metrics: tuple[str, ...]
) -> Report:
    """Score POLICIES on the labelled questions of LAB, compared with the active pack.

    A policy is a .hy file, a pack's name or a feature's name. LAB is only read.

    Example: memlab policy score my.memlab mine.hy companion
    """
    with open_existing(lab, read_only=True) as opened:
        chosen = {"metrics": metrics} if metrics else {}
        scores = opened.score(list(policies), questions, **chosen)
        return scores.to_dict(), scores


def _is_within(name: str, places: list[str]) -> bool:
    """Return whether any location begins with ``name``, such as the name of a slot."""
    return any(path.startswith(name) for path in places)


def _format_explanation(name: str, explanation: Explanation) -> str:
    """Format the explanation of a policy's value as text."""
    lines = [
        f"{name} = {_format_value(explanation.value) if explanation.value is not None else 'null'}"
    ]
    lines += [
        f"  {'taken' if branch.taken else 'not taken'}: {branch.text}"
        for branch in explanation.branches
    ]
    terms = [term for term in explanation.terms if term.value]
    lines += [f"  {term.value:+12.6g}  {term.label or term.text}" for term in terms]
    hidden = len(explanation.terms) - len(terms)
    if hidden:
        lines.append(f"  {count_of(hidden, 'other term')} contributed nothing")
    return "\n".join([*lines, "", str(explanation.tree)])


def _read_item(
    policy: Policy,
    requested: dict[str, object],
    frame: Path | None,
    row: int,
    by: str | None,
    order: str,
) -> tuple[dict[str, object], dict[str, float | None] | None]:
    """Return an item's input values for a policy, and aggregates of the item's group."""
    # a value of the caller has precedence over one of the row; derived inputs are computed over the
    # whole slate
    inputs = policy.signature.inputs
    values: dict[str, object] = {}
    for name, value in requested.items():
        if canonical(name) not in inputs:
            raise UnknownName(f"input of {policy.signature.slot}", name, inputs)
        values[canonical(name)] = value
    reads = {name for name in policy.inputs if name not in policy.derived}
    reads |= {name for item in policy.derived.values() for name in item.sets}
    if frame is None:
        missing = sorted(reads - values.keys())
        if missing:
            raise InputError(
                f"{policy.name} needs {', '.join(missing)}. Give them with --values name=value."
            )
        return values, None
    table = read_frame(frame)
    if not 0 <= row < table.height:
        raise InputError(f"{frame} has no row {row}. Its rows are 0 to {table.height - 1}.")
    columns = {canonical(name): name for name in table.columns}
    for name in sorted(reads - values.keys()):
        if name not in columns:
            raise UnknownName(f"column of {frame.name}", name, columns)
        values[name] = table.item(row, columns[name])
    aggregates = policy.aggregates(table, by=by, order=order)
    return values, aggregates.row(row, named=True) if aggregates.width else {}


# -- the argument FILE: a pack of memlab, a pack's file, or a file with one policy ---------------------------------

# White space and comments; a file is a pack if its first form is one, after the usual require.
_SPACE = r"(?:\s|;[^\n]*+)*+"
_IS_PACK = re.compile(rf"{_SPACE}(?:\(require memlab\.dialect \*\){_SPACE})?\({_SPACE}pack\b")


@dataclass(frozen=True)
class PolicyFile:
    """The policies of a file by slot.

    Attributes
    ----------
    name
        Name of the pack, or of the slot.
    policies
        Policy by slot.
    pack
        The pack; None if the file contains a single policy.
    """

    name: str
    policies: Mapping[str, Policy]
    pack: Pack | None

    def get_policy(self, slot: str | None) -> Policy:
        """Return a slot's policy; without a slot, return the only policy of the file."""
        if slot is None:
            if len(self.policies) == 1:
                return next(iter(self.policies.values()))
            raise InputError(
                f"{self.name} has several policies. Choose one with --slot ({', '.join(self.policies)})."
            )
        if slot not in self.policies:
            raise UnknownName("policy slot", slot, self.policies)
        return self.policies[slot]


def open_policies(spec: str, slot: str | None = None) -> PolicyFile:
    """Return the pack or policy that ``spec`` names.

    ``slot`` is the slot of a single policy. Default: the name in its ``defpolicy``.
    """
    path = Path(spec).expanduser()
    if not path.is_file():
        pack = load_pack(spec)
        return PolicyFile(pack.name, pack.policies, pack)
    source = read_source_file(path)
    if _IS_PACK.match(source):
        pack = load_pack(path) if spec.endswith(".hy") else load_pack(source)
        return PolicyFile(pack.name, pack.policies, pack)
    name = slot or slot_of(source, file=spec)
    if not name:
        raise InputError(
            f"{spec} does not name the slot of its policy. Give it with --slot ({', '.join(SLOTS)})."
        )
    # A new lab has the default pack, so (inherited) is the policy of that pack.
    helpers = inherited_helpers(name, source, (), lambda: load_pack(DEFAULT_PACK), file=spec)
    policy = compile_policy(source, get_slot(name).signature, name=name, helpers=helpers, file=spec)
    return PolicyFile(name, {name: policy}, None)


def collect_errors(spec: str, first: PolicyError) -> list[PolicyError]:
    """Return all errors in a pack's policies, or only ``first`` if splitting the pack fails."""
    path = Path(spec).expanduser()
    if not path.is_file():
        return [first]
    try:
        pack = read_pack(read_source_file(path), file=spec)
    except PolicyError:
        return [first]
    errors: list[PolicyError] = []
    for slot, form in pack.policies.items():
        if slot not in SLOTS:
            continue
        name, helpers, parent = f"{pack.name}/{slot}", pack.helpers, pack.inherits
        try:
            if parent is not None:
                helpers = inherited_helpers(
                    slot, form, helpers, partial(load_pack, parent), name=name, file=spec
                )
            compile_policy(form, SLOTS[slot].signature, name=name, helpers=helpers, file=spec)
        except PolicyError as error:
            errors.append(error)
    # the first error may concern an unknown slot or a setting instead of a policy
    positions = {(error.line, error.column, error.message) for error in errors}
    return errors if (first.line, first.column, first.message) in positions else [first, *errors]


def parse_values(words: tuple[str, ...]) -> dict[str, object]:
    """Parse JSON objects and ``name=value`` pairs; later values override earlier ones."""
    values: dict[str, object] = {}
    for word in words:
        if word.lstrip().startswith("{"):
            try:
                values |= json.loads(word)
            except json.JSONDecodeError as error:
                raise InputError(
                    f"--values is not JSON: {error.msg} at character {error.pos + 1} of {word}"
                ) from None
            continue
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise InputError(
                f"{word!r} is not of the form name=value. Write name=value, or a JSON "
                f'object such as {{"similarity": 0.8}}.'
            )
        values[name.strip()] = parse_value(text.strip())
    return values
