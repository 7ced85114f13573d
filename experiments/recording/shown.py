"""Record a lab: slates, frames, evaluation, a context, exports, and a purge at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

import memlab
from experiments.recording.labs import Built
from experiments.recording.things import Thing, frame_thing, json_thing, text_thing
from memlab.kernel.journal import FORMAT
from memlab.kernel.policies import VOCABULARY, load_pack
from memlab.kernel.state import projections
from memlab.subjects.linking.linking import Linker

__all__ = ["pack_thing", "settled", "things_of"]

_EXPORTS = ("jsonl", "parquet", "md", "sexp")

_NUMBERS = rf'"(?:{FORMAT}|{VOCABULARY})":\d+,|,"(?:{FORMAT}|{VOCABULARY})":\d+'
"""Versions of formats in the JSON of an event. They are not recorded, because every change of a format raises one."""


def pack_thing(pack: str, *, keep: bool) -> Thing:
    """Return the hashes of a pack, of its policies and of its settings."""
    loaded = load_pack(pack)
    policies = dict(sorted(loaded.policy_hashes.items()))
    settings = dict(sorted(loaded.settings.items()))
    return json_thing(
        f"hashes/{pack}/pack", {"pack": loaded.hash, **policies, "settings": settings}, keep=keep
    )


def things_of(name: str, pack: str, built: Built, folder: Path, *, keep: bool) -> Iterator[Thing]:
    """Yield all recorded items of a lab, which is purged at the end."""
    lab = built.lab
    lab.graph.link_waiting()

    def called(kind: str) -> str:
        return f"{name}/{pack}/{kind}"

    def frame(kind: str, value: pl.DataFrame) -> Thing:
        return frame_thing(called(kind), value, keep=keep)

    yield json_thing(called("built"), {"pack": lab.policies.pack.hash, **built.extra}, keep=keep)
    slates = lab.slates()
    for table in ("decisions", "candidates", "exposures", "feedback"):
        yield frame(table, getattr(slates, table).collect())
    yield frame("memories", lab.memories)
    yield frame("edges", lab.edges)
    yield frame("facts", lab.facts.frame())
    yield json_thing(called("evaluation"), _evaluated(lab, pack), keep=keep)
    context = lab.context(built.task, session=built.session, log=False)
    yield frame("context", context.frame)
    yield text_thing(called("context-text"), context.text, keep=keep)
    exports = folder / "exports"
    exports.mkdir()
    for suffix in _EXPORTS:
        path = lab.io.export(exports / f"all.{suffix}")
        if suffix == "parquet":
            tables = pl.read_parquet(path)
            bodies = (
                pl.col("event")
                .struct.field("body")
                .str.replace_all(str(folder), "FOLDER", literal=True)
            )
            yield frame(
                "export-parquet",
                tables.with_columns(pl.col("event").struct.with_fields(body=_unnumbered(bodies))),
            )
        else:
            yield text_thing(
                called(f"export-{suffix}"),
                path.read_text().replace(str(folder), "FOLDER"),
                keep=keep,
            )
    yield json_thing(called("receipt"), _receipt(lab, built, folder), keep=keep)
    yield frame("memories-after-purge", lab.memories)


@contextmanager
def settled() -> Iterator[None]:
    """Link in the foreground alone, and fix the key of tombstones, so that runs are repeatable."""
    wake, chance = Linker.wake, projections.secrets
    Linker.wake = lambda self: None
    projections.secrets = SimpleNamespace(token_bytes=lambda size: (b"golden" * size)[:size])
    try:
        yield
    finally:
        Linker.wake, projections.secrets = wake, chance


def _unnumbered(bodies: pl.Expr) -> pl.Expr:
    """Remove the numbers of formats from the JSON of events."""
    return bodies.str.replace_all(_NUMBERS, "")


def _evaluated(lab: memlab.Lab, pack: str) -> dict[str, Any]:
    """Return the evaluation of the pack and another on the lab's log, or the refusal."""
    policies = [pack, "workbench" if pack == "memlab" else "memlab"]
    try:
        return memlab.evaluate(lab, policies, missing="zero").to_dict()
    except memlab.MemlabError as error:
        return {"refused": f"{type(error).__name__}: {error}"}


def _receipt(lab: memlab.Lab, built: Built, folder: Path) -> dict[str, Any]:
    """Purge, and return the receipt without the folder's name and sizes of files, which depend on it."""
    done = lab.purge(list(built.purge), reason="asked for")
    frame = done.frame.drop("bytes").with_columns(
        pl.col("where", "how").str.replace_all(str(folder), "FOLDER", literal=True)
    )
    return {
        "ids": done.ids,
        "events": done.events,
        "slates": done.slates,
        "questions": done.questions,
        "review": done.review.to_dicts(),
        "frame": frame.to_dicts(),
    }
