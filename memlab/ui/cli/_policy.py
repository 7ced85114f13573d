"""Policy files: check, tell, hash, compare and explain them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.language import Policy, canonical, compile_policy, read_pack, slot_of
from memlab.kernel.policies import SLOTS, Pack, get_slot, load_pack
from memlab.subjects.lens import Explanation, diff_packs, diff_policies, highlight
from memlab.ui.cli._base import (
    InputFile,
    LocalPath,
    Told,
    command,
    policy,
    read_frame,
    read_text,
    say,
    tell,
    value_of,
)

if TYPE_CHECKING:
    pass

__all__ = ["PolicyFile", "errors_of", "given_values", "opened", "read_frame"]


FILE = click.argument("file", type=InputFile(".hy", as_text=True))
_SLOT = click.option("--slot", help="The slot; for a file with one policy, what it is for.")
_COLOR = click.option(
    "--color/--no-color", default=None, help="Colours. Default: when the output is a terminal."
)


def _colored(wanted: bool | None) -> bool:
    if wanted is None:
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return wanted


@command(policy)
@FILE
@_SLOT
def check(file: str, slot: str | None, as_json: bool) -> Told:
    """Read FILE (a pack's name, a pack's file or a policy's file) and type-check all its policies.

    Errors are printed as file:line:column, all of them; exit status 1.
    """
    try:
        found = opened(file, slot)
    except PolicyError as error:
        return _refusal(file, errors_of(file, error), as_json)
    hashes = {name: item.hash for name, item in found.policies.items()}
    report = {"ok": True, "pack": found.name, "hash": _hash(found), "slots": hashes}
    count = f"{len(hashes)} policies, all valid" if found.pack else "a valid policy"
    return report, f"{found.name} [{_hash(found)[:12]}]: {count}"


def _refusal(file: str, errors: list[PolicyError], as_json: bool) -> Told:
    rows = [
        {
            "file": e.file or file,
            "line": e.line,
            "column": e.column,
            "policy": e.policy,
            "message": e.message,
        }
        for e in errors
    ]
    if as_json:
        return {"ok": False, "errors": rows}, "", 1
    for error in errors:
        place = ":".join(
            str(part) for part in (error.file or file, error.line, error.column) if part is not None
        )
        say(f"{place}: {error}", err=True)
    say(f"memlab: {file} has {len(errors)} error{'s' if len(errors) > 1 else ''}", err=True)
    raise click.exceptions.Exit(1)


def _hash(file: PolicyFile) -> str:
    return file.pack.hash if file.pack is not None else file.one(None).hash


@command(policy, name="show")
@FILE
@_SLOT
@_COLOR
def show_policy(file: str, slot: str | None, color: bool | None, as_json: bool) -> Told:
    """The settings and policies of FILE, with what it inherits; in colour on a terminal."""
    found = opened(file, slot)
    chosen = found.policies if slot is None else {slot: found.one(slot)}
    settings = {} if found.pack is None else dict(found.pack.settings)
    report = {
        "pack": found.name,
        "hash": _hash(found),
        "settings": settings,
        "policies": {name: item.source for name, item in chosen.items()},
    }
    paint = _colored(color)

    def shown(source: str, features: Iterable[str] = ()) -> str:
        return highlight(source, "terminal", features=features) if paint else source

    def text() -> str:
        lines = []
        if found.pack is not None:
            lines.append(shown(f"; pack {found.name} [{_hash(found)[:12]}]: {found.pack.doc}"))
            if slot is None:
                lines += [
                    shown(f"(setting {name} {_literal(value)})") for name, value in settings.items()
                ]
            lines.append("")
        parts = [
            f"{shown(f'; {name} [{item.hash[:12]}]')}\n{shown(item.source)}"
            for name, item in chosen.items()
        ]
        return "\n".join([*lines, "\n\n".join(parts)])

    return _painted(report, text, paint, as_json)


def _painted(report: Any, text: Callable[[], str], paint: bool, as_json: bool) -> Told:
    """Print a text in its own colours, or give what ``--json`` prints."""
    if as_json:
        return report, ""
    say(text(), painted=paint)
    return None


def _literal(value: float | bool | str) -> str:
    return json.dumps(value, ensure_ascii=False)


@command(policy, name="hash")
@FILE
@_SLOT
def hash_(file: str, slot: str | None) -> Told:
    """The hash of FILE (slots, settings, parameters, helpers and the dialect's version), and those of its policies.

    The source hash forgives layout and bound names, the meaning hash says what is computed.
    """
    found = opened(file, slot)
    chosen = found.policies if slot is None else {slot: found.one(slot)}
    rows = {
        n: {"hash": p.hash, "source": p.source_hash, "meaning": p.meaning_hash}
        for n, p in chosen.items()
    }
    width = max(map(len, rows), default=0)
    lines = [
        f"{name:{width}}  version {row['hash'][:12]}  source {row['source'][:12]}  meaning {row['meaning'][:12]}"
        for name, row in rows.items()
    ]
    return {"pack": found.name, "hash": _hash(found), "slots": rows}, [_hash(found), *lines]


@command(policy)
@click.argument("before", type=InputFile(".hy", as_text=True))
@click.argument("after", type=InputFile(".hy", as_text=True))
@_SLOT
@_COLOR
def diff(before: str, after: str, slot: str | None, color: bool | None, as_json: bool) -> Told:
    """What differs between two packs, or two policies of one slot: form by form; exit status 1 if anything does."""
    old, new = opened(before, slot), opened(after, slot)
    slots: dict[str, dict[str, str]] = {}
    settings: dict[str, dict[str, object]] = {}
    if old.pack is not None and new.pack is not None and slot is None:
        found = diff_packs(old.pack, new.pack)
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
        left, right = old.one(single), new.one(single)
        found = diff_policies(left, right)
        pairs = [(left.signature.slot, left, right)]
    slots = {
        name: {"before": left.source, "after": right.source}
        for name, left, right in pairs
        if left.hash != right.hash
    }
    # other literals of the same value, another order of arguments
    places = [change.place for change in found.changes]
    respelled = [name for name in slots if not _is_within(name, places)]

    def text() -> str:
        notes = [f"{name}: the same forms, spelled otherwise" for name in respelled]
        return (
            "\n".join([found.text(color=_colored(color)), *notes])
            if found or notes
            else "no difference"
        )

    report = {"slots": slots, "settings": settings, "changes": found.frame.to_dicts()}
    tell(_painted(report, text, _colored(color), as_json), as_json=as_json)
    if slots or settings:
        raise click.exceptions.Exit(1)
    return None


@command(policy)
@FILE
@_SLOT
@click.option("--field", help="The field of a record to explain; all of them without it.")
@click.option("--values", multiple=True, help="A JSON object, or name=value; may be repeated.")
@click.option("--frame", type=LocalPath(), help="The slate, as .parquet, .csv or .jsonl.")
@click.option("--row", type=int, default=0, show_default=True, help="The row of the frame, from 0.")
@click.option("--by", help="The frame's column of slates, when it holds many.")
@click.option(
    "--order", default="memory_id", show_default=True, help="The frame's column of memory ids."
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
) -> Told:
    """Why a policy of FILE gives its value for one item: the terms that sum to it, and the whole computation.

    Values come from --values, or from a row of --frame, which aggregates of the slate need; --values go first.
    """
    chosen = opened(file, slot).one(slot)
    given, aggregates = _item(chosen, given_values(values), frame, row, by, order)
    names = (field,) if field is not None else chosen.fields
    parts = [chosen.field(name) for name in names] if names else [chosen]
    made = {part.name: part.explain(given, aggregates=aggregates) for part in parts}
    report: dict[str, Any] = {}
    for name, found in made.items():
        terms = [{"text": term.text, "value": term.value} for term in found.terms]
        branches = [{"text": branch.text, "taken": branch.taken} for branch in found.branches]
        report[name] = {"value": found.value, "terms": terms, "branches": branches}
    text = "\n\n".join(_explained(name, found) for name, found in made.items())
    return {"policy": chosen.name, "hash": chosen.hash, "values": given, "explained": report}, text


def _is_within(name: str, places: list[str]) -> bool:
    return any(place.startswith(name) for place in places)


def _explained(name: str, found: Explanation) -> str:
    lines = [f"{name} = {_literal(found.value) if found.value is not None else 'null'}"]
    lines += [
        f"  {'taken' if branch.taken else 'not taken'}: {branch.text}" for branch in found.branches
    ]
    lines += [f"  {term.value:+12.6g}  {term.text}" for term in found.terms]
    return "\n".join([*lines, "", str(found.tree)])


def _item(
    policy: Policy,
    given: dict[str, object],
    frame: Path | None,
    row: int,
    by: str | None,
    order: str,
) -> tuple[dict[str, object], dict[str, float | None] | None]:
    """The values of one item and the aggregates of its slate; what is unknown or missing is an error by name."""
    inputs = policy.signature.inputs
    values: dict[str, object] = {}
    for name, value in given.items():
        if canonical(name) not in inputs:
            raise UnknownName(f"input of {policy.signature.slot}", name, inputs)
        values[canonical(name)] = value
    reads = {name for name in policy.inputs if name not in policy.derived}
    reads |= {name for item in policy.derived.values() for name in item.sets}
    if frame is None:
        missing = sorted(reads - values.keys())
        if missing:
            raise InputError(
                f"{policy.name} also reads {', '.join(missing)}: give them with --values name=value."
            )
        return values, None
    table = read_frame(frame)
    if not 0 <= row < table.height:
        raise InputError(f"{frame} has the rows 0 to {table.height - 1}, and no row {row}.")
    columns = {canonical(name): name for name in table.columns}
    for name in sorted(reads - values.keys()):
        if name not in columns:
            raise UnknownName(f"column of {frame.name}", name, columns)
        values[name] = table.item(row, columns[name])
    named = policy.aggregates(table, by=by, order=order)
    return values, named.row(row, named=True) if named.width else {}


# -- What the argument FILE of ``memlab policy`` may be: a pack that comes with memlab, a pack's file, or one policy --

_SPACE = r"(?:\s|;[^\n]*+)*+"
_IS_PACK = re.compile(rf"{_SPACE}(?:\(require memlab\.dialect \*\){_SPACE})?\({_SPACE}pack\b")


@dataclass(frozen=True)
class PolicyFile:
    """The policies of a file by slot; ``pack`` is None when it holds a single policy."""

    name: str
    policies: Mapping[str, Policy]
    pack: Pack | None

    def one(self, slot: str | None) -> Policy:
        """The policy of a slot, which may be left out when there is only one."""
        if slot is None:
            if len(self.policies) == 1:
                return next(iter(self.policies.values()))
            raise InputError(
                f"{self.name} holds several policies: say which with --slot ({', '.join(self.policies)})."
            )
        if slot not in self.policies:
            raise UnknownName("policy slot", slot, self.policies)
        return self.policies[slot]


def opened(spec: str, slot: str | None = None) -> PolicyFile:
    """The pack or the policy that ``spec`` names; ``slot`` says what a single policy is for, else its ``defpolicy``."""
    path = Path(spec).expanduser()
    if not path.is_file():
        pack = load_pack(spec)
        return PolicyFile(pack.name, pack.policies, pack)
    source = read_text(path)
    if _IS_PACK.match(source):
        pack = load_pack(path) if spec.endswith(".hy") else load_pack(source)
        return PolicyFile(pack.name, pack.policies, pack)
    name = slot or slot_of(source, file=spec)
    if not name:
        raise InputError(
            f"{spec} does not name the slot of its policy: say it with --slot ({', '.join(SLOTS)})."
        )
    policy = compile_policy(source, get_slot(name).signature, name=name, file=spec)
    return PolicyFile(name, {name: policy}, None)


def errors_of(spec: str, first: PolicyError) -> list[PolicyError]:
    """Every error of a pack's policies, each policy on its own; the first alone where they cannot be taken apart."""
    path = Path(spec).expanduser()
    if not path.is_file():
        return [first]
    try:
        pack = read_pack(read_text(path), file=spec)
    except PolicyError:
        return [first]
    found: list[PolicyError] = []
    for slot, form in pack.policies.items():
        if slot not in SLOTS:
            continue
        try:
            compile_policy(
                form,
                SLOTS[slot].signature,
                name=f"{pack.name}/{slot}",
                helpers=pack.helpers,
                file=spec,
            )
        except PolicyError as error:
            found.append(error)
    # an unknown slot, or a setting
    known = {(error.line, error.column, error.message) for error in found}
    return found if (first.line, first.column, first.message) in known else [first, *found]


def given_values(words: tuple[str, ...]) -> dict[str, object]:
    """Values from JSON objects and from ``name=value`` pairs, the last one for a name winning."""
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
                f'{word} is no value: write name=value, or a JSON object such as {{"similarity": 0.8}}.'
            )
        values[name.strip()] = value_of(text.strip())
    return values
