"""Policies: check, tell, hash and compare files; install and roll back in a lab."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.cli._base import FILE, LAB, as_json_option, existing, main, tell


@main.group()
def policy() -> None:
    """Check and compare policy files, and see what a lab has used."""


@policy.command()
@FILE
@as_json_option
def check(file: str, as_json: bool) -> None:
    """Read FILE (a pack's name or a .hy file) and type-check all its policies."""
    pack = memlab.load_pack(file)
    report = {"pack": pack.name, "hash": pack.hash, "slots": {slot: item.hash for slot, item in pack.policies.items()}}
    tell(
        report,
        as_json=as_json,
        text=lambda: f"{pack.name} [{pack.hash[:12]}]: {len(pack.policies)} policies, all valid",
    )


@policy.command(name="show")
@FILE
@click.option("--slot")
@as_json_option
def show_policy(file: str, slot: str | None, as_json: bool) -> None:
    """The settings and policies of FILE, with what it inherits."""
    pack = memlab.load_pack(file)
    if slot is not None and slot not in pack.policies:
        from memlab.errors import UnknownName

        raise UnknownName("policy slot", slot, pack.policies)
    chosen = {name: item for name, item in pack.policies.items() if slot in (None, name)}
    report = {
        "pack": pack.name,
        "hash": pack.hash,
        "settings": dict(pack.settings),
        "policies": {name: item.source for name, item in chosen.items()},
    }

    def text() -> str:
        lines = [f"; pack {pack.name} [{pack.hash[:12]}]: {pack.doc}"]
        if slot is None:
            lines += [f"(setting {name} {value!r})" for name, value in pack.settings.items()]
        return "\n".join([*lines, *(f"\n; {name} [{item.hash[:12]}]\n{item.source}" for name, item in chosen.items())])

    tell(report, as_json=as_json, text=text)


@policy.command(name="hash")
@FILE
@as_json_option
def hash_(file: str, as_json: bool) -> None:
    """The hash of FILE: slots, settings, parameters, helpers and the dialect's version."""
    pack = memlab.load_pack(file)
    tell({"pack": pack.name, "hash": pack.hash}, as_json=as_json, text=lambda: pack.hash)


@policy.command()
@click.argument("before")
@click.argument("after")
@as_json_option
def diff(before: str, after: str, as_json: bool) -> None:
    """Which slots and settings differ between two packs; exit status 1 if any does."""
    old, new = memlab.load_pack(before), memlab.load_pack(after)
    slots = {
        name: {"before": old.policies[name].source, "after": new.policies[name].source}
        for name in old.policies
        if old.policies[name].hash != new.policies[name].hash
    }
    settings = {
        name: {"before": old.settings[name], "after": new.settings[name]}
        for name in old.settings
        if old.settings[name] != new.settings[name]
    }

    def text() -> str:
        lines = [f"{name}: {pair['before']} -> {pair['after']}" for name, pair in settings.items()]
        for name, pair in slots.items():
            lines += [f"{name}:", *(f"- {line}" for line in str(pair["before"]).splitlines())]
            lines += [f"+ {line}" for line in str(pair["after"]).splitlines()]
        return "\n".join(lines) or "no difference"

    tell({"slots": slots, "settings": settings}, as_json=as_json, text=text)
    if slots or settings:
        sys.exit(1)


@policy.command()
@LAB
@click.argument("slot")
@as_json_option
def history(lab: Path, slot: str, as_json: bool) -> None:
    """Every version that SLOT of LAB has had."""
    with existing(lab, read_only=True) as opened:
        frame = opened.policies.history(slot)
    tell(frame.to_dicts(), as_json=as_json, text=lambda: str(frame))


@policy.command()
@LAB
@click.argument("slot")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--reason", default="")
@as_json_option
def install(lab: Path, slot: str, file: Any, reason: str, as_json: bool) -> None:
    """Put the policy in FILE (- for standard input) into SLOT of LAB."""
    with existing(lab) as opened:
        version = opened.policies.install(slot, file.read(), reason=reason)
    report = {"slot": slot, "version": version.number, "hash": version.hash}
    tell(report, as_json=as_json, text=lambda: f"{slot} version {version.number} [{version.hash[:12]}] is live")


@policy.command()
@LAB
@click.argument("slot")
@click.option("--to", help="A version's number or the start of its hash. Default: the one before.")
@as_json_option
def rollback(lab: Path, slot: str, to: str | None, as_json: bool) -> None:
    """Bring an earlier policy of SLOT back in LAB."""
    wanted: int | str | None = int(to) if to is not None and to.isdecimal() and len(to) < 6 else to
    with existing(lab) as opened:
        version = opened.policies.rollback(slot, to=wanted)
    report = {"slot": slot, "version": version.number, "hash": version.hash}
    tell(report, as_json=as_json, text=lambda: f"{slot} version {version.number} [{version.hash[:12]}] is live")
