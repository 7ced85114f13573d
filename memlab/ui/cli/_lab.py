"""One lab: remember, recall, give feedback, look, forget, choose a pack."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click
import polars as pl

import memlab
from memlab.errors import InputError
from memlab.kernel.schema import KINDS, spelled
from memlab.kernel.state import tag_name
from memlab.ui.cli._base import LAB, agent, as_json_option, existing, graph, keeping, main, say, taken_out, tell, upkeep
from memlab.ui.cli._input import LocalPath, Text
from memlab.ui.cli._policy import policy


@main.command()
@LAB
@click.argument("text", type=Text())
@click.option("--kind", default="fact", show_default=True)
@click.option("--project")
@click.option("--session")
@click.option("--speaker")
@click.option("--tag", "tags", multiple=True)
@click.option("--importance", type=float)
@click.option("--at", help="When it was said, as an ISO time. Default: now.")
@as_json_option
def remember(lab: Path, text: str, as_json: bool, tags: tuple[str, ...], **fields: Any) -> None:
    """Remember TEXT (- for standard input) in LAB, which is made if it is new."""
    given = {name: value for name, value in fields.items() if value is not None}
    with memlab.open(lab) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", memlab.RedactionWarning)  # said below
        memory = opened.remember(text, tags=list(tags) or None, **given)
    report = {"id": memory.id, "text": memory.text, "redacted": list(memory.redacted)}
    tell(report, as_json=as_json, text=lambda: "\n".join([f"#{memory.id} {memory.text}", *taken_out(memory)]))


@main.command()
@LAB
@click.argument("query", type=Text())
@click.option("--limit", type=int)
@click.option("--project")
@click.option("--session")
@click.option("--at", help="When it is asked, as an ISO time. Default: now.")
@click.option("--pack", help="Ask under this pack (a name or a .hy file) without making it live; nothing is logged.")
@click.option("--explain", is_flag=True, help="Show the terms of each score.")
@as_json_option
def recall(lab: Path, query: str, pack: str | None, explain: bool, as_json: bool, **question: Any) -> None:
    """The memories of LAB that its live pack puts first for QUERY (- for standard input)."""
    with existing(lab) if pack is None else _under(lab, pack) as opened:
        hits = opened.recall(query, log=pack is None, **question)
        explanations = [hit.explain() for hit in hits] if explain else []
    rows: list[dict[str, Any]] = [
        {"rank": hit.rank, "id": hit.id, "score": hit.score, "text": hit.text, "ref": hit.ref} for hit in hits
    ]
    for row, explanation in zip(rows, explanations, strict=False):
        row["terms"] = [{"term": term, "value": value} for term, value in explanation.terms]
    of = {"decision": hits.decision, "pack": hits.pack.name, "hash": hits.pack.hash, "known": hits.known}
    report = {**of, "hits": rows}
    place = "" if hits.decision is None else f"recall {hits.decision}: "
    tell(report, as_json=as_json, text=lambda: "\n".join([f"{place}{hits!r}", *map(repr, explanations)]))


@main.command()
@LAB
@click.argument("task", type=Text())
@click.option("--budget", type=click.IntRange(1), default=1800, show_default=True, help="Most tokens.")
@click.option("--session", help="In a session nothing is given twice.")
@click.option("--project")
@click.option("--file", "files", multiple=True, help="A file at hand; may be given several times.")
@click.option("--viewer", help="Who asks, such as agent:coder: what others keep private is left out.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "messages", "json"]),
    default="text",
    show_default=True,
    help="json has all of it, and what was left out.",
)
@as_json_option
def context(lab: Path, task: str, form: str, as_json: bool, files: tuple[str, ...], **asked: Any) -> None:
    """What an agent is to know for TASK (- for standard input), from LAB, as text for a prompt."""
    with keeping(lab) as opened:
        found = opened.context(task, files=files, **asked)
    if as_json or form == "json":
        report = {
            "text": found.text,
            "tokens": found.tokens,
            "budget": found.budget,
            "decision": found.decision,
            "memories": found.frame.to_dicts(),
            "left_out": found.left_out.to_dicts(),
            "pack": found.pack,
            "hash": found.pack_hash,
            "seed": found.seed,
            "settings": dict(found.settings),
        }
        tell(report, as_json=True)
    elif form == "messages":
        tell(found.messages(), as_json=True)
    elif len(found):
        say(found.markdown if form == "markdown" else found.text)


@agent.command()
@LAB
@click.option("--since", metavar="WHEN", help="Leave out what came before this instant, such as 2026-07-01.")
@click.option("--report", type=LocalPath(), help="Write a page to this file as well.")
@as_json_option
def metrics(lab: Path, since: str | None, report: Path | None, as_json: bool) -> None:
    """What the contexts given from LAB were worth: tokens injected, referenced, saved."""
    with existing(lab, read_only=True) as opened:
        found = opened.agents.metrics(since=since)
    if report is not None:
        found.report(report)
    whole = {
        "metrics": dict(found.frame.select("metric", "value").iter_rows()),
        "gotchas": found.gotchas.to_dicts(),
        "contexts": found.contexts.to_dicts(),
    }
    tell(whole, as_json=as_json, text=lambda: repr(found))


def _under(lab: Path, pack: str) -> memlab.Lab:
    """A copy of the lab in memory, of which another pack is live."""
    existing(lab, read_only=True).close()
    copy = memlab.load(lab, policies=False)
    copy.policies.use(pack)
    return copy


@main.command()
@LAB
@click.argument("memory", type=int)
@click.argument("outcome", type=click.Choice(["success", "fail"]))
@click.option("--decision", type=int, help="The recall that showed it, as `memlab recall` prints. Default: the last.")
@as_json_option
def feedback(lab: Path, memory: int, outcome: str, decision: int | None, as_json: bool) -> None:
    """Log how MEMORY did."""
    with existing(lab) as opened:
        logged = opened.feedback(memory, outcome, decision=decision)
    report = {"event": logged.event, "memory": memory, "outcome": outcome, "decision": logged.decision}
    place = "no recall: none has shown it" if logged.decision is None else f"recall {logged.decision}"
    tell(report, as_json=as_json, text=lambda: f"#{memory} {outcome}, logged as event {logged.event}, of {place}")


@agent.command()
@LAB
@click.option("--recall", "decision", type=int, required=True, help="The recall, as `memlab recall` prints.")
@click.option("--answer", type=click.File(errors="replace"), required=True, help="A file with the answer, or -.")
@click.option("--reply", type=click.File(errors="replace"), help="A file with what the user said next.")
@as_json_option
def attribute(lab: Path, decision: int, answer: Any, reply: Any, as_json: bool) -> None:
    """Read from an answer which memories of a recall it was made of, and log that as rewards."""
    with existing(lab) as opened:
        found = opened.agents.credits.answer(answer.read(), decision, reply=None if reply is None else reply.read())
    report = {
        "decision": found.decision,
        "policy": found.policy,
        "cut": found.cut,
        "listed": found.listed,
        "logged": len(found),
        "memories": found.frame.to_dicts(),
    }
    tell(report, as_json=as_json, text=lambda: repr(found))


@main.command()
@LAB
@click.argument("memory", type=int, required=False)
@click.option("--kind", help="Of the newest: only this kind.")
@click.option("--project", help="Only those of this project.")
@click.option("--tag", "tags", multiple=True, help="Only those with this tag; repeat it for those with all of them.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="So many of the newest.")
@as_json_option
def show(lab: Path, memory: int | None, as_json: bool, **of: Any) -> None:
    """One MEMORY of LAB with all its fields; without it, the newest memories."""
    with existing(lab, read_only=True) as opened:
        frame = opened.memories
        if memory is None:
            _list(frame, as_json=as_json, **of)
            return
        row = frame.row(opened[memory].id - 1, named=True)
        told = opened.upkeep.review.provenance(memory).to_dicts()
    lines = [f"{name:<17} {value}" for name, value in row.items()]
    for one in told[1:] and told:
        words = [f"{name} {value}" for name, value in one.items() if value is not None and name not in ("how", "at")]
        lines.append(f"{one['how']:<17} {one['at']:%Y-%m-%d %H:%M} {', '.join(words)}")
    tell(row | {"provenance_chain": told}, as_json=as_json, text=lambda: "\n".join(lines))


def _list(
    frame: pl.DataFrame, kind: str | None, project: str | None, tags: tuple[str, ...], limit: int, *, as_json: bool
) -> None:
    for column, wanted in (("kind", None if kind is None else spelled(kind, KINDS)), ("project", project)):
        if wanted is not None:
            frame = frame.filter(pl.col(column) == wanted)
    for tag in tags:
        frame = frame.filter(pl.col("tags").list.contains(tag_name(tag)))
    frame = frame.tail(limit)
    tell(
        frame.to_dicts(),
        as_json=as_json,
        text=lambda: "\n".join(
            f"#{row['id']:<6} {row['kind']:<12} {row['text'][:100]}" for row in frame.iter_rows(named=True)
        ),
    )


@upkeep.command()
@LAB
@as_json_option
def stats(lab: Path, as_json: bool) -> None:
    """What LAB holds, and a notice if the live policy earns less than an earlier one did."""
    with existing(lab, read_only=True) as opened:
        report = {
            "memories": len(opened),
            "edges": opened.edges.height,
            "recalls": opened.slates().decisions.collect().height,
            "feedback": opened.slates().feedback.collect().height,
            "pack": opened.policies.pack.name,
            "hash": opened.policies.pack.hash,
            "embedder": opened.io.embedder.name,
        }
        try:
            fall = opened.upkeep.operations.check_fall()
        except InputError as error:
            report["notice"] = f"what the policies earned cannot be compared: {error}"
        else:
            if fall is not None:
                report["notice"] = repr(fall)
    tell(report, as_json=as_json, text=lambda: "\n".join(f"{name:<9} {value}" for name, value in report.items()))


@graph.command()
@LAB
@click.argument("memory", type=int)
@click.option("--depth", type=int, default=2, show_default=True, help="Most edges of a path.")
@as_json_option
def trace(lab: Path, memory: int, depth: int, as_json: bool) -> None:
    """How MEMORY of LAB is joined to others: the strongest paths over its edges."""
    with existing(lab, read_only=True) as opened:
        found = opened.graph.trace(memory, depth)
    tell(found.frame.to_dicts(), as_json=as_json, text=lambda: found.tree)


@graph.command()
@LAB
@click.argument("memory", type=int)
@click.option("--limit", type=int, default=10, show_default=True)
@as_json_option
def similar(lab: Path, memory: int, limit: int, as_json: bool) -> None:
    """The memories of LAB that are nearest to MEMORY."""
    with existing(lab, read_only=True) as opened:
        rows = opened.graph.similar(memory, limit=limit).to_dicts()
    lines = [f"{row['similarity']:.3f}  #{row['memory_id']}  {row['text']}" for row in rows]
    tell(rows, as_json=as_json, text=lambda: "\n".join(lines))


@policy.command()
@as_json_option
def packs(as_json: bool) -> None:
    """The packs that come with memlab."""
    known = [memlab.load_pack(name) for name in memlab.packs()]
    tell(
        [{"name": pack.name, "hash": pack.hash, "doc": pack.doc} for pack in known],
        as_json=as_json,
        text=lambda: "\n".join(f"{pack.name:<12} [{pack.hash[:12]}] {pack.doc}" for pack in known),
    )


@policy.command()
@LAB
@click.argument("pack")
@click.option("--reason", default="")
@as_json_option
def use(lab: Path, pack: str, reason: str, as_json: bool) -> None:
    """Let PACK (a name or a .hy file) decide in LAB from now on."""
    with existing(lab) as opened:
        live = opened.policies.use(pack, reason=reason)
    tell(
        {"pack": live.name, "hash": live.hash}, as_json=as_json, text=lambda: f"{live.name} [{live.hash[:12]}] is live"
    )
