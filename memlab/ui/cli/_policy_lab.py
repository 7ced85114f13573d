"""The policies of a lab: packs, history, install, rollback, pins, what each version earned, and watched files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.kernel.policies import Pack, Version
from memlab.ui.cli._base import InputFile, Told, command, policy, read, read_text, say, write

_SLOT = click.argument("slot")
_REASON = click.option("--reason", default="", help="Why, for the history.")


@command(policy)
def packs() -> Told:
    """The packs that come with memlab."""
    known = [memlab.load_pack(name) for name in memlab.packs()]
    report = [{"name": pack.name, "hash": pack.hash, "doc": pack.doc} for pack in known]
    return report, [f"{pack.name:<12} [{pack.hash[:12]}] {pack.doc}" for pack in known]


@command(policy, write)
@click.argument("pack")
@_REASON
def use(lab: memlab.Lab, pack: str, reason: str) -> Told:
    """Let PACK (a name or a .hy file) decide in LAB from now on."""
    live = lab.policies.use(pack, reason=reason)
    return {"pack": live.name, "hash": live.hash}, f"{live.name} [{live.hash[:12]}] is live"


def _live(version: Version | Pack) -> Told:
    if isinstance(version, Pack):
        report: dict[str, Any] = {"pack": version.name, "hash": version.hash}
        return report, f"pack {version.name} [{version.hash[:12]}] is live"
    report = {"slot": version.slot, "version": version.number, "hash": version.hash}
    return report, f"{version.slot} version {version.number} [{version.hash[:12]}] is live"


def _wanted(to: str | None) -> int | str | None:
    """Read a version's number, or the start of a hash (which may look like a long number)."""
    return int(to) if to is not None and to.isdecimal() and len(to) < 6 else to


@command(policy, read)
@click.argument("slot", required=False)
def history(lab: memlab.Lab, slot: str | None) -> Told:
    """Every version that SLOT of LAB has had, or those of all slots."""
    rows = lab.policies.history(slot).to_dicts()
    return rows, [_history_line(row) for row in rows]


def _history_line(row: dict[str, Any]) -> str:
    """Write one event of the history: narrow enough for 80 columns, unless a name or the reason is long."""
    marks = ", ".join(name for name in ("live", "pinned") if row[name])
    slot = f"{row['slot']:<14} " if "slot" in row else ""
    line = f"{slot}{row['version']:>3} [{row['hash'][:12]}] {row['at']:%Y-%m-%d %H:%M} {row['action']} {row['pack']}"
    return f"{line}{f' ({marks})' if marks else ''}{': ' if row['reason'] else ''}{row['reason']}"


@command(policy, write)
@_SLOT
@click.argument("file", type=InputFile(".hy"))
@_REASON
def install(lab: memlab.Lab, slot: str, file: Path, reason: str) -> Told:
    """Put the policy in FILE (- for standard input) into SLOT of LAB."""
    return _live(lab.policies.install(slot, read_text(file), reason=reason))


@command(policy, write)
@click.argument("slot", required=False)
@click.option(
    "--to",
    help="A version's number (a pack's event) or the start of its hash. Default: the one before.",
)
@_REASON
def rollback(lab: memlab.Lab, slot: str | None, to: str | None, reason: str) -> Told:
    """Bring an earlier policy of SLOT back in LAB; without SLOT, the pack before the last that was used."""
    return _live(lab.policies.rollback(slot, to=_wanted(to), reason=reason))


@command(policy, write)
@_SLOT
@click.option("--to", help="A version's number or the start of its hash. Default: the live one.")
@_REASON
def pin(lab: memlab.Lab, slot: str, to: str | None, reason: str) -> Told:
    """Keep the policy of SLOT through every later pack."""
    return _live(lab.policies.pin(slot, _wanted(to), reason=reason))


@command(policy, write)
@_SLOT
@_REASON
def unpin(lab: memlab.Lab, slot: str, reason: str) -> Told:
    """Let packs decide SLOT again."""
    lab.policies.unpin(slot, reason=reason)
    return {"slot": slot, "pack": lab.policies.pack.name}, f"{slot} follows the pack again"


@command(policy, read)
@click.argument("slot", default="recall-score")
def attribution(lab: memlab.Lab, slot: str) -> Told:
    """How often what each version of SLOT put up was judged a success, with 95% credible intervals."""
    judged = lab.policies.attribution(slot)
    return judged.frame.to_dicts(), judged


@command(policy, write)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--slot", help="The slot of a file that holds one policy. Default: FILE is a pack.")
@click.option("--seconds", type=float, help="Stop after so long. Default: until interrupted.")
def watch(
    lab: memlab.Lab, file: Path, slot: str | None, seconds: float | None, as_json: bool
) -> Told:
    """Let LAB follow FILE: each save that is valid goes live, a broken one is reported and changes nothing."""
    with lab.policies.watch(file, slot) as watched:
        if not as_json:
            say(f"watching {file} (end with Ctrl-C)", err=True)
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while end is None or time.monotonic() < end:
                time.sleep(0.1)
        except KeyboardInterrupt:
            pass
        frame = watched.frame
    return frame.to_dicts(), str(frame)
