"""Memory switched off, for all or for a project: what is refused then, and what a recall leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import polars as pl

from memlab.clock import from_micros
from memlab.errors import MemoryOff
from memlab.journal import Event
from memlab.recall import Filters
from memlab.state import Projection, State

__all__ = ["Switches", "check_on", "filters_while_off"]

_SCHEMA: dict[str, Any] = {"project": pl.String, "since": pl.Int64, "reason": pl.String}


class Switches(Projection):
    """What is switched off: all (None), or projects, each since when and why."""

    name: ClassVar[str] = "switches"
    kinds: ClassVar[tuple[str, ...]] = ("switch",)

    def __init__(self) -> None:
        self._off: dict[str | None, tuple[int, str]] = {}

    def off(self, project: str | None) -> str | None:
        """Why memory is off for what belongs to this project, or to none; None where it is on."""
        for name in dict.fromkeys((None, project)):
            if name in self._off:
                since, reason = self._off[name]
                what = "for all" if name is None else f'for the project "{name}"'
                return f"Memory is off {what} since {from_micros(since):%Y-%m-%d %H:%M} UTC{reason and f': {reason}'}."
        return None

    def has(self, project: str | None) -> bool:
        """Whether this project, or with None all, is switched off by itself."""
        return project in self._off

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects that are off."""
        return tuple(sorted(name for name in self._off if name is not None))

    def fold(self, event: Event) -> None:
        project = event.body["project"]
        if event.body["on"]:
            self._off.pop(project, None)
        else:
            self._off[project] = (event.at, event.body["reason"])

    @property
    def frame(self) -> pl.DataFrame:
        """One row for all (project null) and each project that is off: project, since, reason."""
        rows = [{"project": project, "since": since, "reason": why} for project, (since, why) in self._off.items()]
        frame = pl.DataFrame(rows, schema=_SCHEMA).sort("project", nulls_last=False)
        return frame.with_columns(pl.col("since").cast(pl.Datetime("us", "UTC")))

    def dump(self) -> Any:
        return [{"project": project, "since": since, "reason": why} for project, (since, why) in self._off.items()]

    def load(self, dumped: Any) -> None:
        self._off = {row["project"]: (row["since"], row["reason"]) for row in dumped}


def check_on(state: State, projects: Iterable[str | None]) -> None:
    """MemoryOff where something is to be remembered for a project, or for none, for which memory is off."""
    switches = state.projection(Switches)
    for project in dict.fromkeys(projects):
        why = switches.off(project)
        if why is not None:
            again = "lab.agents.switch_on()" if switches.has(None) else f"lab.agents.switch_on(project={project!r})"
            raise MemoryOff(f"{why} Nothing is remembered until {again}.")


def filters_while_off(state: State, project: str | None, filters: Filters) -> tuple[Filters, str | None]:
    """What a recall from this project admits, and why it admits nothing; None where it does."""
    switches = state.projection(Switches)
    why = switches.off(project)
    if why is not None:
        return replace(filters, without=None), why
    return (replace(filters, without=switches.projects) if switches.projects else filters), None
