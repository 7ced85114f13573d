"""What time does to a lab: upkeep, and summaries that replace what is old."""

from __future__ import annotations

from pathlib import Path

import click
import polars as pl

from memlab.kernel.base.printable import printable
from memlab.ui.cli._base import LAB, agent, as_json_option, existing, tell, upkeep


@upkeep.command()
@LAB
@click.option("--at", metavar="WHEN", help="As of this instant, such as 2026-07-01; now unless given.")
@as_json_option
def maintain(lab: Path, at: str | None, as_json: bool) -> None:
    """Record what time has done to LAB: statuses, labels, edges to prune, clusters that are due.

    A second pass as of the same instant writes nothing.
    """
    with existing(lab) as opened:
        found = opened.upkeep.maintain(at, progress=not as_json)
    report = {
        "at": found.at.isoformat(),
        "pack": found.pack,
        "hash": found.pack_hash,
        "changes": found.counts.to_dicts(),
        "pruned": found.pruned.height,
        "due": found.due["id"].to_list(),
        "events": list(found.events),
    }
    tell(report, as_json=as_json, text=lambda: repr(found)[1:-1])


@upkeep.command()
@LAB
@click.option("--older-than", "days", type=float, metavar="DAYS", help="In place of the pack's consolidate-days.")
@click.option("--keep", type=int, help="How many of each group stay beside their summary: the most important.")
@click.option("--project", help="Only what belongs to this project.")
@click.option("--by", type=click.Choice(["clusters", "communities"]), default="clusters", show_default=True)
@click.option("--dry-run", is_flag=True, help="Write nothing; tell what would become of what.")
@as_json_option
def consolidate(
    lab: Path, days: float | None, keep: int | None, project: str | None, by: str, dry_run: bool, as_json: bool
) -> None:
    """Let one summary stand for many old memories of a cluster of LAB; undelete undoes one.

    The live pack's consolidate policy says which memories may go. A summary has some of their own sentences, not all:
    see with --dry-run what would be left.
    """
    with existing(lab, read_only=dry_run) as opened:
        found = opened.upkeep.consolidation.run(
            older_than_days=days,
            keep=keep,
            project=project,
            by="communities" if by == "communities" else "clusters",
            dry_run=dry_run,
        )
    report = {"at": found.at.isoformat(), "pack": found.pack, "event": found.event, "dry_run": found.dry_run}
    rows = found.frame.to_dicts()
    lines = [
        f"{'would be made' if row['summary'] is None else '#' + str(row['summary'])}  of {row['count']}, {row['of']}: "
        f"{row['text'][:100]}"
        for row in rows
    ]
    tell({**report, "summaries": rows}, as_json=as_json, text=lambda: "\n".join([repr(found)[1:-1], *lines]))


@agent.command("switch-off")
@LAB
@click.option("--project", help="For this project; for all unless given.")
@click.option("--reason", default="", help="Why; it is kept in the log.")
@as_json_option
def switch_off(lab: Path, project: str | None, reason: str, as_json: bool) -> None:
    """Switch memory off: nothing is remembered in LAB and recalls return nothing, until switch-on."""
    with existing(lab) as opened:
        off = opened.agents.switch_off(project, reason=reason)
    _tell_off(off, as_json=as_json)


@agent.command("switch-on")
@LAB
@click.option("--project", help="For this project; for all unless given.")
@click.option("--reason", default="", help="Why; it is kept in the log.")
@click.option("--by", default="user", show_default=True, help="Who consents.")
@as_json_option
def switch_on(lab: Path, project: str | None, reason: str, by: str, as_json: bool) -> None:
    """Switch memory on again, after switch-off. Projects that were switched off by themselves stay off.

    Under a pack that needs consent this is the consent, for the project or else for what belongs to none.
    """
    with existing(lab) as opened:
        off = opened.agents.switch_on(project, reason=reason, by=by)
    _tell_off(off, as_json=as_json)


def _tell_off(off: pl.DataFrame, *, as_json: bool) -> None:
    names = ["all" if name is None else printable(name) for name in off["project"].to_list()]
    rows = [{**row, "since": row["since"].isoformat()} for row in off.to_dicts()]
    text = f"Memory is off for {', '.join(names)}." if names else "Memory is on."
    tell({"off": rows}, as_json=as_json, text=lambda: text)
