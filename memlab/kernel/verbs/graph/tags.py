"""Tags: which there are, what each is for, and which memories bear them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import polars as pl

from memlab.kernel.journal import Event, Transaction
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import EventType, Field, Projection, State, listed, mapping, values_of

__all__ = ["TagDescriptions", "retagged", "tag_frame"]


_DESCRIBED = {
    "tag": Field("tag", held="reference", shared=True),
    "description": Field("text", of="tag", shared=True),
}


class TagDescriptions(Projection):
    """What each tag is for, as somebody said it. Whoever may read the lab may read it."""

    name: ClassVar[str] = "tags"
    kinds: ClassVar[tuple[str, ...]] = ("describe-tag",)
    events: ClassVar[tuple[EventType, ...]] = (
        EventType("describe-tag", "Somebody said what a tag is for, or with an empty text nothing.", _DESCRIBED),
    )
    # a description that a purge empties is none
    dumped: ClassVar[Field] = listed(mapping(_DESCRIBED), drops=True)

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def __getitem__(self, tag: str) -> str:
        """Return the description of a tag, empty where there is none."""
        return self._said.get(tag, "")

    def fold(self, event: Event) -> None:
        """Set the description of a tag, or with an empty one remove it."""
        tag, said = event.body["tag"], event.body["description"]
        if said:
            self._said[tag] = said
        else:
            self._said.pop(tag, None)

    def shows(self, kind: str, body: dict[str, Any], *, viewer: str, seen: bool) -> bool | None:
        """Return True: a description is part of what everybody sees."""
        return True

    def dump(self) -> Any:
        """Return a row for each described tag."""
        return [{"tag": tag, "description": said} for tag, said in self._said.items()]

    def load(self, dumped: Any) -> None:
        """Take in what ``dump`` gave."""
        self._said = {row["tag"]: row["description"] for row in dumped}


def tag_frame(memories: pl.DataFrame, descriptions: TagDescriptions) -> pl.DataFrame:
    """Return a row for each tag of the memories in use, the most frequent first."""
    frame = (
        memories.select("tags", "created", "status")
        .filter(pl.col("status").is_in(RECALLABLE))
        .explode("tags")
        .drop_nulls("tags")
        .group_by(tag="tags")
        .agg(memories=pl.len().cast(pl.Int64), first=pl.col("created").min(), last=pl.col("created").max())
        .sort("memories", "tag", descending=[True, False])
    )
    said = [descriptions[tag] or None for tag in frame["tag"].to_list()]
    return frame.with_columns(pl.Series("description", said, dtype=pl.String))


def retagged(
    tx: Transaction, state: State, rows: Sequence[int], tags: Sequence[str], *, remove: bool, now: int
) -> list[int]:
    """Write an event for each of ``rows`` whose tags change, and return the ids of these memories."""
    lists, changed = state.lists["tags"], []
    for row in rows:
        before = list(lists.at(row))
        after = [tag for tag in before if tag not in tags] if remove else list(dict.fromkeys([*before, *tags]))
        if after != before:
            part = values_of([row + 1], tags=[after], changed=now)
            tx.event("edit", {"memory": row + 1, "set": [part]}, at=now)
            changed.append(row + 1)
    return changed
