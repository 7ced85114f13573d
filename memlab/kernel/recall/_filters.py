"""What a caller admits to a recall: words of a few columns, who asks, and any Polars expression over the memories.

A filter is applied before anything is searched: what it leaves out is no candidate, and its words count in no
statistic. It is logged with the slate, so that the question can be asked again as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.privacy import refuse
from memlab.kernel.recall._where import Where
from memlab.kernel.schema import SCOPES, STATUSES, VISIBILITIES, spelled

__all__ = ["NO_FILTERS", "Filters", "WordOrWords"]

WordOrWords = str | Sequence[str] | None

_VOCABULARIES = {"scope": SCOPES, "visibility": VISIBILITIES, "status": STATUSES, "branch": None, "season": None}


@dataclass(frozen=True)
class Filters:
    """Which memories may take part; None admits all, of ``status`` all that recall admits by default.

    ``branch`` also admits what has no branch, and ``season`` what belongs to none; without it, nothing that belongs to
    a season takes part. ``viewer`` leaves out what is private to another creator. ``without`` names projects that take
    no part, as memory is off for them (None among them: what belongs to no project); None leaves out every memory, as
    it is off for all that is asked.
    """

    scope: tuple[str, ...] | None = None
    branch: tuple[str, ...] | None = None
    visibility: tuple[str, ...] | None = None
    status: tuple[str, ...] | None = None
    season: tuple[str, ...] | None = None
    viewer: str | None = None
    where: Where | None = None
    without: tuple[str | None, ...] | None = ()

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``of`` that give these filters."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "without"}
        return given | {"where": None if self.where is None else self.where.expression}

    @classmethod
    def of(
        cls,
        *,
        scope: WordOrWords = None,
        branch: WordOrWords = None,
        visibility: WordOrWords = None,
        status: WordOrWords = None,
        season: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
    ) -> Filters:
        """What a caller gave, checked. InputError, UnknownName, PrivacyError.

        >>> Filters.of(status=["superseded", "active"]).status
        ('active', 'superseded')
        """
        given = {"scope": scope, "visibility": visibility, "status": status, "branch": branch, "season": season}
        if where is None and viewer is None and all(words is None for words in given.values()):
            return NO_FILTERS
        if viewer is not None:
            if not isinstance(viewer, str) or not viewer:
                raise InputError(f'viewer is who asks, such as "agent:coder", not {viewer!r:.60}.')
            refuse(viewer, "viewer")
        words = {name: _words(name, value) for name, value in given.items()}
        return cls(**words, viewer=viewer, where=None if where is None else Where.of(where))

    @classmethod
    def read(cls, logged: Mapping[str, Any]) -> Filters:
        """What ``logged`` gave. InputError if an expression cannot be read back."""
        if "where-text" in logged:
            raise InputError(
                f"It was filtered by an expression that a log does not keep, only its text: {logged['where-text']}"
            )
        words = {name: tuple(logged[name]) if name in logged else None for name in _VOCABULARIES}
        where = logged.get("where")
        return cls(
            **words,
            viewer=logged.get("viewer"),
            where=None if where is None else Where.read(where),
            without=tuple(logged.get("without", ())),
        )

    def logged(self) -> dict[str, Any]:
        """What a slate keeps: only what was given."""
        if self is NO_FILTERS:
            return {}
        kept: dict[str, Any] = {
            name: list(words) for name in _VOCABULARIES if (words := getattr(self, name)) is not None
        }
        if self.viewer is not None:
            kept["viewer"] = self.viewer
        if self.without:
            kept["without"] = list(self.without)
        if self.where is not None:
            kept["where" if self.where.plain else "where-text"] = self.where.text
        return kept


NO_FILTERS = Filters()


def _words(name: str, given: WordOrWords) -> tuple[str, ...] | None:
    if given is None:
        return None
    known = _VOCABULARIES[name]
    words = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [None]
    if not words:
        ways = f" of {', '.join(known)}" if known else ""
        raise InputError(f"{name}=[] admits nothing; name at least one{ways}.")
    for place, word in enumerate(words):
        if not isinstance(word, str) or not word:
            raise InputError(f"{name} is a word or a list of words, not {given!r:.60}.")
        if known is not None:
            words[place] = word = spelled(word, known)
        if known is not None and word not in known:
            raise UnknownName(name, word, known)
        refuse(word, name)
    return tuple(sorted(set(words)))
