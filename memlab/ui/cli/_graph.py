"""Edges and tags of a lab: link, tag."""

from __future__ import annotations

from pathlib import Path

import click
import polars as pl

from memlab.ui.cli._base import LAB, as_json_option, existing, graph, tell


@graph.command()
@LAB
@click.argument("source", type=int)
@click.argument("target", type=int)
@click.option("--relation", default="relates-to", show_default=True, help="What joins them, such as depends-on.")
@click.option("--weight", type=click.FloatRange(0, 1), default=1.0, show_default=True)
@as_json_option
def link(lab: Path, source: int, target: int, relation: str, weight: float, as_json: bool) -> None:
    """Join two memories of LAB by an edge from SOURCE to TARGET."""
    with existing(lab) as opened:
        opened.graph.link(source, target, relation, weight=weight)
        made = opened.edges.filter(pl.col("to_kind") == "memory")
    made = made.filter(pl.col("source") == source, pl.col("target") == target)
    row = made.tail(1).select("source", "target", "relation", "weight").to_dicts()[0]
    tell(row, as_json=as_json, text=lambda: f"#{source} {row['relation']} #{target}")


@graph.command()
@LAB
@click.argument("memories", type=int, nargs=-1)
@click.option("--tag", "tags", multiple=True, help="A tag to give; may be given several times.")
@click.option("--remove", is_flag=True, help="Take the tags away instead.")
@click.option("--describe", help="Say what the one --tag is for.")
@as_json_option
def tag(
    lab: Path, memories: tuple[int, ...], tags: tuple[str, ...], remove: bool, describe: str | None, as_json: bool
) -> None:
    """Give tags to MEMORIES of LAB; without arguments, list the tags that there are.

    memlab graph tag a.memlab 3 7 --tag release
    """
    if memories and not tags:
        raise click.UsageError("Say which tag: --tag NAME.")
    if describe is not None and len(tags) != 1:
        raise click.UsageError("--describe says what one tag is for: give one --tag.")
    if not memories and tags and describe is None:
        raise click.UsageError("Say which memories bear the tag, by their ids.")
    with existing(lab, read_only=not tags) as opened:
        changed = opened.graph.tag(memories, tags, remove=remove) if memories else ()
        if describe is not None:
            opened.graph.describe_tag(tags[0], describe)
        known = opened.graph.tags()
    if memories:
        said = ", ".join(f"#{id}" for id in changed) or "no memory"
        tell({"changed": list(changed)}, as_json=as_json, text=lambda: f"{said} changed")
        return
    rows = known.to_dicts()
    lines = [f"{row['memories']:>6}  {row['tag']}  {row['description'] or ''}".rstrip() for row in rows]
    tell(rows, as_json=as_json, text=lambda: "\n".join(lines))
