"""The policies of a lab: history, install, rollback, pins, what each version earned, and watched files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from memlab.errors import InputError
from memlab.kernel.policies import Pack, Version
from memlab.ui.cli._base import LAB, as_json_option, existing, say, tell
from memlab.ui.cli._policy import policy

_SLOT = click.argument("slot")
_REASON = click.option("--reason", default="", help="Why, for the history.")


def _live(version: Version | Pack, as_json: bool) -> None:
    if isinstance(version, Pack):
        report: dict[str, Any] = {"pack": version.name, "hash": version.hash}
        tell(report, as_json=as_json, text=lambda: f"pack {version.name} [{version.hash[:12]}] is live")
        return
    report = {"slot": version.slot, "version": version.number, "hash": version.hash}
    text = f"{version.slot} version {version.number} [{version.hash[:12]}] is live"
    tell(report, as_json=as_json, text=lambda: text)


def _wanted(to: str | None) -> int | str | None:
    """A version's number, or the start of a hash (which may look like a long number)."""
    return int(to) if to is not None and to.isdecimal() and len(to) < 6 else to


@policy.command()
@LAB
@click.argument("slot", required=False)
@as_json_option
def history(lab: Path, slot: str | None, as_json: bool) -> None:
    """Every version that SLOT of LAB has had, or those of all slots."""
    with existing(lab, read_only=True) as opened:
        frame = opened.policies.history(slot)
    tell(frame.to_dicts(), as_json=as_json, text=lambda: "\n".join(_line(row) for row in frame.iter_rows(named=True)))


def _line(row: dict[str, Any]) -> str:
    """One event of the history: narrow enough for 80 columns, unless a name or the reason is long."""
    marks = ", ".join(name for name in ("live", "pinned") if row[name])
    slot = f"{row['slot']:<14} " if "slot" in row else ""
    line = f"{slot}{row['version']:>3} [{row['hash'][:12]}] {row['at']:%Y-%m-%d %H:%M} {row['action']} {row['pack']}"
    return f"{line}{f' ({marks})' if marks else ''}{': ' if row['reason'] else ''}{row['reason']}"


@policy.command()
@LAB
@_SLOT
@click.argument("file", type=click.File(encoding="utf-8"))
@_REASON
@as_json_option
def install(lab: Path, slot: str, file: Any, reason: str, as_json: bool) -> None:
    """Put the policy in FILE (- for standard input) into SLOT of LAB."""
    try:
        source = file.read()
    except UnicodeDecodeError as error:
        raise InputError(f"{file.name} is not UTF-8 text: {error.reason} at byte {error.start}.") from None
    with existing(lab) as opened:
        _live(opened.policies.install(slot, source, reason=reason), as_json)


@policy.command()
@LAB
@click.argument("slot", required=False)
@click.option("--to", help="A version's number (a pack's event) or the start of its hash. Default: the one before.")
@_REASON
@as_json_option
def rollback(lab: Path, slot: str | None, to: str | None, reason: str, as_json: bool) -> None:
    """Bring an earlier policy of SLOT back in LAB; without SLOT, the pack before the last that was used."""
    with existing(lab) as opened:
        _live(opened.policies.rollback(slot, to=_wanted(to), reason=reason), as_json)


@policy.command()
@LAB
@_SLOT
@click.option("--to", help="A version's number or the start of its hash. Default: the live one.")
@_REASON
@as_json_option
def pin(lab: Path, slot: str, to: str | None, reason: str, as_json: bool) -> None:
    """Keep the policy of SLOT through every later pack."""
    with existing(lab) as opened:
        _live(opened.policies.pin(slot, _wanted(to), reason=reason), as_json)


@policy.command()
@LAB
@_SLOT
@_REASON
@as_json_option
def unpin(lab: Path, slot: str, reason: str, as_json: bool) -> None:
    """Let packs decide SLOT again."""
    with existing(lab) as opened:
        opened.policies.unpin(slot, reason=reason)
        pack = opened.policies.pack
    tell({"slot": slot, "pack": pack.name}, as_json=as_json, text=lambda: f"{slot} follows the pack again")


@policy.command()
@LAB
@click.argument("slot", default="recall-score")
@as_json_option
def attribution(lab: Path, slot: str, as_json: bool) -> None:
    """How often what each version of SLOT put up was judged a success, with 95% credible intervals."""
    with existing(lab, read_only=True) as opened:
        found = opened.policies.attribution(slot)
    tell(found.frame.to_dicts(), as_json=as_json, text=lambda: repr(found))


@policy.command()
@LAB
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--slot", help="The slot of a file that holds one policy. Default: FILE is a pack.")
@click.option("--seconds", type=float, help="Stop after so long. Default: until interrupted.")
@as_json_option
def watch(lab: Path, file: Path, slot: str | None, seconds: float | None, as_json: bool) -> None:
    """Let LAB follow FILE: each save that is valid goes live, a broken one is reported and changes nothing."""
    with existing(lab) as opened, opened.policies.watch(file, slot) as watched:
        if not as_json:
            say(f"watching {file} (end with Ctrl-C)", err=True)
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while end is None or time.monotonic() < end:
                time.sleep(0.1)
        except KeyboardInterrupt:
            pass
        frame = watched.frame
    tell(frame.to_dicts(), as_json=as_json, text=lambda: str(frame))
