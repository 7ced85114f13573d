"""Commands on the policies of a lab: packs, history, installation, pins."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.kernel.base.disk import read_source_file
from memlab.kernel.policies import Pack, Version
from memlab.ui.cli._base import InputFile, Report, command, policy, read, say, write

# Arguments and options of several commands.
_SLOT = click.argument("slot")
_REASON = click.option(
    "--reason", default="", help="Reason for the change, recorded in the history."
)


@command(policy)
def packs() -> Report:
    """List the packs that memlab provides.

    Example: memlab policy packs
    """
    packs = [memlab.load_pack(name) for name in memlab.packs()]
    report = [{"name": pack.name, "hash": pack.hash, "doc": pack.doc} for pack in packs]
    return report, [f"{pack.name:<12} [{pack.hash[:12]}] {pack.doc}" for pack in packs]


@command(policy, write)
@click.argument("pack")
@_REASON
def use(lab: memlab.Lab, pack: str, reason: str) -> Report:
    """Make PACK the active pack of LAB.

    PACK is a name or a .hy file.

    Example: memlab policy use my.memlab cascade --reason "more facts"
    """
    active = lab.policies.use(pack, reason=reason)
    report = {"pack": active.name, "hash": active.hash}
    return report, f"{active.name} [{active.hash[:12]}] is active"


def _report_active(version: Version | Pack) -> Report:
    """Build the report that states the version or pack now active."""
    if isinstance(version, Pack):
        report: dict[str, Any] = {"pack": version.name, "hash": version.hash}
        return report, f"pack {version.name} [{version.hash[:12]}] is active"
    report = {"slot": version.slot, "version": version.number, "hash": version.hash}
    line = f"{version.slot} version {version.number} [{version.hash[:12]}] is active"
    if version.scores is None:
        return report, line
    return report | {"scores": version.scores.to_dict()}, [line, "", repr(version.scores)]


def _parse_version(to: str | None) -> int | str | None:
    """Convert ``--to`` to a version number if it has at most five digits; otherwise keep it as a hash."""
    return int(to) if to is not None and to.isdecimal() and len(to) < 6 else to


@command(policy, read)
@click.argument("slot", required=False)
def history(lab: memlab.Lab, slot: str | None) -> Report:
    """List the versions of SLOT in LAB, or of all slots.

    Example: memlab policy history my.memlab recall-score
    """
    rows = lab.policies.history(slot).to_dicts()
    return rows, [_format_history(row) for row in rows]


def _format_history(row: dict[str, Any]) -> str:
    """Format a version of the history as one line."""
    marks = ", ".join(name for name in ("live", "pinned") if row[name])
    slot = f"{row['slot']:<14} " if "slot" in row else ""
    line = f"{slot}{row['version']:>3} [{row['hash'][:12]}] {row['at']:%Y-%m-%d %H:%M} {row['action']} {row['pack']}"
    return f"{line}{f' ({marks})' if marks else ''}{': ' if row['reason'] else ''}{row['reason']}"


@command(policy, write)
@_SLOT
@click.argument("file", type=InputFile(".hy"))
@_REASON
def install(lab: memlab.Lab, slot: str, file: Path, reason: str) -> Report:
    """Install the policy in FILE into SLOT of LAB.

    - reads standard input.

    Example: memlab policy install my.memlab recall-score mine.hy
    """
    return _report_active(lab.policies.install(slot, read_source_file(file), reason=reason))


@command(policy, write)
@click.argument("slot", required=False)
@click.option(
    "--to",
    help="Version number (for a pack: its event number) or the first characters of the hash. "
    "Default: the previous version.",
)
@_REASON
def rollback(lab: memlab.Lab, slot: str | None, to: str | None, reason: str) -> Report:
    """Restore an earlier policy of SLOT in LAB.

    Without SLOT, the previous pack becomes active again.

    Example: memlab policy rollback my.memlab recall-score --to 2
    """
    return _report_active(lab.policies.rollback(slot, to=_parse_version(to), reason=reason))


@command(policy, write)
@_SLOT
@click.option(
    "--to", help="Version number or the first characters of the hash. Default: the active version."
)
@_REASON
def pin(lab: memlab.Lab, slot: str, to: str | None, reason: str) -> Report:
    """Keep the policy of SLOT when another pack becomes active.

    Example: memlab policy pin my.memlab recall-score
    """
    return _report_active(lab.policies.pin(slot, _parse_version(to), reason=reason))


@command(policy, write)
@_SLOT
@_REASON
def unpin(lab: memlab.Lab, slot: str, reason: str) -> Report:
    """Unpin SLOT, so that its policy follows the active pack.

    Example: memlab policy unpin my.memlab recall-score
    """
    lab.policies.unpin(slot, reason=reason)
    return {"slot": slot, "pack": lab.policies.pack.name}, f"{slot} follows the pack again"


@command(policy, write)
@click.argument("switch", type=click.Choice(["on", "off"]))
@_REASON
def explore(lab: memlab.Lab, switch: str, reason: str) -> Report:
    """Decide whether plain recalls of LAB show exploration items.

    Agents, servers and simulated runs explore as the active pack declares.

    Example: memlab policy explore my.memlab off --reason "labels suffice"
    """
    lab.policies.explore(switch == "on", reason=reason)
    return {"explores": switch == "on"}, f"exploration of plain recalls is {switch}"


@command(policy, read)
@click.argument("slot", default="recall-score")
def attribution(lab: memlab.Lab, slot: str) -> Report:
    """Show the success rate of each version of SLOT, with 95% credible intervals.

    Example: memlab policy attribution my.memlab recall-score
    """
    rates = lab.policies.attribution(slot)
    return rates.frame.to_dicts(), rates


@command(policy, write)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--slot",
    help="Slot to install into, if FILE contains one policy. Without --slot, FILE is installed "
    "as a pack.",
)
@click.option("--seconds", type=float, help="Stop after this many seconds. Default: at Ctrl-C.")
def watch(
    lab: memlab.Lab, file: Path, slot: str | None, seconds: float | None, as_json: bool
) -> Report:
    """Install the policies in FILE each time that FILE is saved.

    An invalid file is reported and changes nothing.

    Example: memlab policy watch my.memlab mine.hy --slot recall-score
    """
    with lab.policies.watch(file, slot) as watched:
        if not as_json:
            say(f"watching {file} (press Ctrl-C to stop)", err=True)
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while end is None or time.monotonic() < end:
                time.sleep(0.1)
        except KeyboardInterrupt:
            pass
        frame = watched.frame
    return frame.to_dicts(), str(frame)
