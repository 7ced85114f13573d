"""Policy files: check, tell, hash, compare and explain them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import click

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.language import Policy, canonical
from memlab.subjects.lens import Explanation, diff_packs, diff_policies, highlight
from memlab.ui.cli._base import FILE, as_json_option, main, say, tell
from memlab.ui.cli._input import InputFile, LocalPath
from memlab.ui.cli._policy_file import PolicyFile, errors_of, given_values, opened, read_frame


@main.group()
def policy() -> None:
    """Check and compare policy files, and see what a lab has used."""


_SLOT = click.option("--slot", help="The slot; for a file with one policy, what it is for.")
_COLOR = click.option("--color/--no-color", default=None, help="Colours. Default: when the output is a terminal.")


def _colored(wanted: bool | None) -> bool:
    if wanted is None:
        return sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return wanted


@policy.command()
@FILE
@_SLOT
@as_json_option
def check(file: str, slot: str | None, as_json: bool) -> None:
    """Read FILE (a pack's name, a pack's file or a policy's file) and type-check all its policies.

    Errors are printed as file:line:column, all of them; exit status 1.
    """
    try:
        found = opened(file, slot)
    except PolicyError as error:
        _refuse(file, errors_of(file, error), as_json)
    hashes = {name: item.hash for name, item in found.policies.items()}
    report = {"ok": True, "pack": found.name, "hash": _hash(found), "slots": hashes}
    count = f"{len(hashes)} policies, all valid" if found.pack else "a valid policy"
    tell(report, as_json=as_json, text=lambda: f"{found.name} [{_hash(found)[:12]}]: {count}")


def _refuse(file: str, errors: list[PolicyError], as_json: bool) -> NoReturn:
    if as_json:
        rows = [
            {"file": e.file or file, "line": e.line, "column": e.column, "policy": e.policy, "message": e.message}
            for e in errors
        ]
        tell({"ok": False, "errors": rows}, as_json=True)
    else:
        for error in errors:
            place = ":".join(str(part) for part in (error.file or file, error.line, error.column) if part is not None)
            say(f"{place}: {error}", err=True)
        say(f"memlab: {file} has {len(errors)} error{'s' if len(errors) > 1 else ''}", err=True)
    sys.exit(1)


def _hash(file: PolicyFile) -> str:
    return file.pack.hash if file.pack is not None else file.one(None).hash


@policy.command(name="show")
@FILE
@_SLOT
@_COLOR
@as_json_option
def show_policy(file: str, slot: str | None, color: bool | None, as_json: bool) -> None:
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
                lines += [shown(f"(setting {name} {_literal(value)})") for name, value in settings.items()]
            lines.append("")
        parts = [f"{shown(f'; {name} [{item.hash[:12]}]')}\n{shown(item.source)}" for name, item in chosen.items()]
        return "\n".join([*lines, "\n\n".join(parts)])

    if as_json:
        tell(report, as_json=True)
    else:
        say(text(), painted=paint)


def _literal(value: float | bool | str) -> str:
    return json.dumps(value, ensure_ascii=False)


@policy.command(name="hash")
@FILE
@_SLOT
@as_json_option
def hash_(file: str, slot: str | None, as_json: bool) -> None:
    """The hash of FILE (slots, settings, parameters, helpers and the dialect's version), and those of its policies.

    The source hash forgives layout and bound names, the meaning hash says what is computed.
    """
    found = opened(file, slot)
    chosen = found.policies if slot is None else {slot: found.one(slot)}
    rows = {n: {"hash": p.hash, "source": p.source_hash, "meaning": p.meaning_hash} for n, p in chosen.items()}
    width = max(map(len, rows), default=0)

    def text() -> str:
        table = [
            f"{name:{width}}  version {row['hash'][:12]}  source {row['source'][:12]}  meaning {row['meaning'][:12]}"
            for name, row in rows.items()
        ]
        return "\n".join([_hash(found), *table])

    tell({"pack": found.name, "hash": _hash(found), "slots": rows}, as_json=as_json, text=text)


@policy.command()
@click.argument("before", type=InputFile(".hy", as_text=True))
@click.argument("after", type=InputFile(".hy", as_text=True))
@_SLOT
@_COLOR
@as_json_option
def diff(before: str, after: str, slot: str | None, color: bool | None, as_json: bool) -> None:
    """What differs between two packs, or two policies of one slot: form by form; exit status 1 if anything does."""
    old, new = opened(before, slot), opened(after, slot)
    slots: dict[str, dict[str, str]] = {}
    settings: dict[str, dict[str, object]] = {}
    if old.pack is not None and new.pack is not None and slot is None:
        found = diff_packs(old.pack, new.pack)
        pairs = [(name, old.policies[name], new.policies[name]) for name in old.policies if name in new.policies]
        settings = {
            name: {"before": value, "after": new.pack.settings.get(name)}
            for name, value in old.pack.settings.items()
            if value != new.pack.settings.get(name)
        }
    else:
        single = slot or next((name for side in (old, new) if side.pack is None for name in side.policies), None)
        left, right = old.one(single), new.one(single)
        found = diff_policies(left, right)
        pairs = [(left.signature.slot, left, right)]
    slots = {
        name: {"before": left.source, "after": right.source} for name, left, right in pairs if left.hash != right.hash
    }
    # other literals of the same value, another order of arguments
    respelled = [name for name in slots if not any(change.place.startswith(name) for change in found.changes)]

    def text() -> str:
        notes = [f"{name}: the same forms, spelled otherwise" for name in respelled]
        return "\n".join([found.text(color=_colored(color)), *notes]) if found or notes else "no difference"

    if as_json:
        tell({"slots": slots, "settings": settings, "changes": found.frame.to_dicts()}, as_json=True)
    else:
        say(text(), painted=_colored(color))
    if slots or settings:
        sys.exit(1)


@policy.command()
@FILE
@_SLOT
@click.option("--field", help="The field of a record to explain; all of them without it.")
@click.option("--values", multiple=True, help="A JSON object, or name=value; may be repeated.")
@click.option("--frame", type=LocalPath(), help="The slate, as .parquet, .csv or .jsonl.")
@click.option("--row", type=int, default=0, show_default=True, help="The row of the frame, from 0.")
@click.option("--by", help="The frame's column of slates, when it holds many.")
@click.option("--order", default="memory_id", show_default=True, help="The frame's column of memory ids.")
@as_json_option
def explain(
    file: str,
    slot: str | None,
    field: str | None,
    values: tuple[str, ...],
    frame: Path | None,
    row: int,
    by: str | None,
    order: str,
    as_json: bool,
) -> None:
    """Why a policy of FILE gives its value for one item: the terms that sum to it, and the whole computation.

    Values come from --values, or from a row of --frame, which aggregates of the slate need; --values go first.
    """
    chosen = opened(file, slot).one(slot)
    given, aggregates = _item(chosen, given_values(values), frame, row, by, order)
    names = (field,) if field is not None else chosen.fields
    parts = [chosen.field(name) for name in names] if names else [chosen]
    made = {part.name: part.explain(given, aggregates=aggregates) for part in parts}
    report = {
        name: {
            "value": found.value,
            "terms": [{"text": term.text, "value": term.value} for term in found.terms],
            "branches": [{"text": branch.text, "taken": branch.taken} for branch in found.branches],
        }
        for name, found in made.items()
    }
    tell(
        {"policy": chosen.name, "hash": chosen.hash, "values": given, "explained": report},
        as_json=as_json,
        text=lambda: "\n\n".join(_explained(name, found) for name, found in made.items()),
    )


def _explained(name: str, found: Explanation) -> str:
    lines = [f"{name} = {_literal(found.value) if found.value is not None else 'null'}"]
    lines += [f"  {'taken' if branch.taken else 'not taken'}: {branch.text}" for branch in found.branches]
    lines += [f"  {term.value:+12.6g}  {term.text}" for term in found.terms]
    return "\n".join([*lines, "", str(found.tree)])


def _item(
    policy: Policy, given: dict[str, object], frame: Path | None, row: int, by: str | None, order: str
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
            raise InputError(f"{policy.name} also reads {', '.join(missing)}: give them with --values name=value.")
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
