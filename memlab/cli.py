"""The command line: one verb a command, each with ``--json``, a useful exit status and plain errors.

Exit status: 0 done, 1 refused with a reason, 2 a wrong call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import memlab
from memlab.errors import MemlabError

__all__ = ["main"]

F = TypeVar("F", bound=Callable[..., Any])


class _Commands(click.Group):
    """A group that turns memlab's errors into one clear line and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemlabError as error:
            click.echo(f"memlab: {error}", err=True)
            ctx.exit(1)


def _as_json(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


_LAB = click.argument("lab", type=click.Path(path_type=Path))


def _show(value: Any, *, as_json: bool, text: Callable[[], str] | None = None) -> None:
    if as_json:
        click.echo(json.dumps(value, default=str, ensure_ascii=False))
    else:
        click.echo(text() if text is not None else str(value))


def _existing(path: Path, *, read_only: bool = False) -> memlab.Lab:
    if not path.exists():
        raise memlab.InputError(f"There is no lab at {path}. Make one with: memlab remember {path} TEXT")
    return memlab.open(path, read_only=read_only)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memlab.__version__, prog_name="memlab")
def main() -> None:
    """A laboratory for the long-term memory of AI agents."""


# -- the main jobs --------------------------------------------------------------------------------------------


@main.command()
@click.option("--output", type=click.Path(path_type=Path), default=Path("memlab-demo.html"), show_default=True)
@_as_json
def demo(output: Path, as_json: bool) -> None:
    """The whole story on a bundled conversation, offline; ends with a page to open."""
    from memlab.demo import run_demo

    result = run_demo(output=output, quiet=as_json)
    _show(result.to_dict(), as_json=as_json, text=lambda: f"Open {result.output}")


@main.group()
def bench() -> None:
    """Retrieval quality and latency on real conversations."""


@bench.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--packs", multiple=True, help="Packs by name or path; may be repeated. Default: all of them.")
@click.option("--download", is_flag=True, help="Fetch the original file to PATH and check its hash.")
@_as_json
def locomo(path: Path | None, packs: tuple[str, ...], download: bool, as_json: bool) -> None:
    """Rank the turns of LoCoMo-format conversations with every pack."""
    from memlab.evaluation import bench_locomo
    from memlab.ingest import download_locomo, read_locomo

    if path is None and not download:
        raise click.UsageError("Give the PATH of a LoCoMo file, or --download to fetch the original.")
    where = path or Path("locomo10.json")
    if download:
        download_locomo(where)
    quiet = as_json or not sys.stderr.isatty()
    result = bench_locomo(read_locomo(where), packs=packs or None, dataset=where.stem, progress=not quiet)
    _show(result.to_dict(), as_json=as_json, text=lambda: repr(result))


# -- one lab --------------------------------------------------------------------------------------------------


@main.command()
@_LAB
@click.argument("text")
@click.option("--kind", default="fact", show_default=True)
@click.option("--project")
@click.option("--session")
@click.option("--speaker")
@click.option("--tag", "tags", multiple=True)
@click.option("--importance", type=float)
@_as_json
def remember(lab: Path, text: str, as_json: bool, tags: tuple[str, ...], **fields: Any) -> None:
    """Remember TEXT in LAB, which is made if it is new."""
    given = {name: value for name, value in fields.items() if value is not None}
    with memlab.open(lab) as opened:
        memory = opened.remember(text, tags=list(tags) or None, **given)
    _show({"id": memory.id, "text": memory.text}, as_json=as_json, text=lambda: f"#{memory.id} {memory.text}")


@main.command()
@_LAB
@click.argument("query")
@click.option("--limit", type=int)
@click.option("--project")
@click.option("--session")
@click.option("--explain", is_flag=True, help="Show the terms of each score.")
@_as_json
def recall(
    lab: Path, query: str, limit: int | None, project: str | None, session: str | None, explain: bool, as_json: bool
) -> None:
    """The memories of LAB that its live pack puts first for QUERY."""
    with _existing(lab) as opened:
        hits = opened.recall(query, limit=limit, project=project, session=session)
        told = [hit.explain() for hit in hits] if explain else []
    rows: list[dict[str, Any]] = [
        {"rank": hit.rank, "id": hit.id, "score": hit.score, "text": hit.text, "ref": hit.ref} for hit in hits
    ]
    for row, explanation in zip(rows, told, strict=False):
        row["terms"] = [{"term": term, "value": value} for term, value in explanation.terms]
    report = {"decision": hits.decision, "pack": hits.pack.name, "hash": hits.pack.hash, "hits": rows}
    _show(report, as_json=as_json, text=lambda: "\n".join([repr(hits), *map(repr, told)]))


@main.command()
@_LAB
@click.argument("memory", type=int)
@click.argument("outcome", type=click.Choice(["success", "fail"]))
@_as_json
def feedback(lab: Path, memory: int, outcome: str, as_json: bool) -> None:
    """Log how MEMORY did."""
    with _existing(lab) as opened:
        logged = opened.feedback(memory, outcome)
    _show({"event": logged.event, "memory": memory, "outcome": outcome}, as_json=as_json, text=lambda: repr(logged))


@main.command(name="list")
@_LAB
@click.option("--kind")
@click.option("--project")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@_as_json
def list_(lab: Path, kind: str | None, project: str | None, limit: int, as_json: bool) -> None:
    """The newest memories of LAB."""
    import polars as pl

    with _existing(lab, read_only=True) as opened:
        frame = opened.memories
    for column, wanted in (("kind", kind), ("project", project)):
        if wanted is not None:
            frame = frame.filter(pl.col(column) == wanted)
    frame = frame.tail(limit)
    _show(
        frame.to_dicts(),
        as_json=as_json,
        text=lambda: "\n".join(
            f"#{row['id']:<6} {row['kind']:<12} {row['text'][:100]}" for row in frame.iter_rows(named=True)
        ),
    )


@main.command()
@_LAB
@click.argument("memory", type=int)
@_as_json
def show(lab: Path, memory: int, as_json: bool) -> None:
    """One memory of LAB with all its fields."""
    with _existing(lab, read_only=True) as opened:
        row = opened.memories.row(opened[memory].id - 1, named=True)
    _show(row, as_json=as_json, text=lambda: "\n".join(f"{name:<17} {value}" for name, value in row.items()))


@main.command()
@_LAB
@click.argument("memory", type=int)
@_as_json
def forget(lab: Path, memory: int, as_json: bool) -> None:
    """Take MEMORY out of every recall."""
    with _existing(lab) as opened:
        opened.forget(memory)
    _show({"id": memory, "status": "forgotten"}, as_json=as_json, text=lambda: f"#{memory} is forgotten")


@main.command()
@_LAB
@click.argument("memory", type=int)
@_as_json
def restore(lab: Path, memory: int, as_json: bool) -> None:
    """Undo forget."""
    with _existing(lab) as opened:
        opened.restore(memory)
    _show({"id": memory, "status": "active"}, as_json=as_json, text=lambda: f"#{memory} is active")


@main.command()
@_LAB
@_as_json
def stats(lab: Path, as_json: bool) -> None:
    """What LAB holds."""
    with _existing(lab, read_only=True) as opened:
        report = {
            "memories": len(opened),
            "edges": opened.edges.height,
            "recalls": opened.slates.decisions.collect().height,
            "feedback": opened.slates.feedback.collect().height,
            "pack": opened.pack.name,
            "hash": opened.pack.hash,
            "embedder": opened.embedder.name,
        }
    _show(report, as_json=as_json, text=lambda: "\n".join(f"{name:<9} {value}" for name, value in report.items()))


# -- policies -------------------------------------------------------------------------------------------------


@main.command()
@_as_json
def packs(as_json: bool) -> None:
    """The packs that come with memlab."""
    known = [memlab.load_pack(name) for name in memlab.packs()]
    _show(
        [{"name": pack.name, "hash": pack.hash, "doc": pack.doc} for pack in known],
        as_json=as_json,
        text=lambda: "\n".join(f"{pack.name:<12} [{pack.hash[:12]}] {pack.doc}" for pack in known),
    )


@main.command()
@_LAB
@click.argument("pack")
@click.option("--reason", default="")
@_as_json
def use(lab: Path, pack: str, reason: str, as_json: bool) -> None:
    """Let PACK (a name or a .hy file) decide in LAB from now on."""
    with _existing(lab) as opened:
        live = opened.use(pack, reason=reason)
    _show(
        {"pack": live.name, "hash": live.hash}, as_json=as_json, text=lambda: f"{live.name} [{live.hash[:12]}] is live"
    )


@main.group()
def policy() -> None:
    """Check and compare policy files, and see what a lab has used."""


_FILE = click.argument("file")


@policy.command()
@_FILE
@_as_json
def check(file: str, as_json: bool) -> None:
    """Read FILE (a pack's name or a .hy file) and type-check all its policies."""
    pack = memlab.load_pack(file)
    report = {"pack": pack.name, "hash": pack.hash, "slots": {slot: item.hash for slot, item in pack.policies.items()}}
    _show(
        report,
        as_json=as_json,
        text=lambda: f"{pack.name} [{pack.hash[:12]}]: {len(pack.policies)} policies, all valid",
    )


@policy.command(name="show")
@_FILE
@click.option("--slot")
@_as_json
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

    _show(report, as_json=as_json, text=text)


@policy.command(name="hash")
@_FILE
@_as_json
def hash_(file: str, as_json: bool) -> None:
    """The hash of FILE: slots, settings, parameters, helpers and the dialect's version."""
    pack = memlab.load_pack(file)
    _show({"pack": pack.name, "hash": pack.hash}, as_json=as_json, text=lambda: pack.hash)


@policy.command()
@click.argument("before")
@click.argument("after")
@_as_json
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

    _show({"slots": slots, "settings": settings}, as_json=as_json, text=text)
    if slots or settings:
        sys.exit(1)


@policy.command()
@_LAB
@click.argument("slot")
@_as_json
def history(lab: Path, slot: str, as_json: bool) -> None:
    """Every version that SLOT of LAB has had."""
    with _existing(lab, read_only=True) as opened:
        frame = opened.policies.history(slot)
    _show(frame.to_dicts(), as_json=as_json, text=lambda: str(frame))


@policy.command()
@_LAB
@click.argument("slot")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--reason", default="")
@_as_json
def install(lab: Path, slot: str, file: Any, reason: str, as_json: bool) -> None:
    """Put the policy in FILE (- for standard input) into SLOT of LAB."""
    with _existing(lab) as opened:
        version = opened.policies.install(slot, file.read(), reason=reason)
    report = {"slot": slot, "version": version.number, "hash": version.hash}
    _show(report, as_json=as_json, text=lambda: f"{slot} version {version.number} [{version.hash[:12]}] is live")


@policy.command()
@_LAB
@click.argument("slot")
@click.option("--to", help="A version's number or the start of its hash. Default: the one before.")
@_as_json
def rollback(lab: Path, slot: str, to: str | None, as_json: bool) -> None:
    """Bring an earlier policy of SLOT back in LAB."""
    wanted: int | str | None = int(to) if to is not None and to.isdecimal() and len(to) < 6 else to
    with _existing(lab) as opened:
        version = opened.policies.rollback(slot, to=wanted)
    report = {"slot": slot, "version": version.number, "hash": version.hash}
    _show(report, as_json=as_json, text=lambda: f"{slot} version {version.number} [{version.hash[:12]}] is live")
