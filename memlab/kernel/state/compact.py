"""Columns as an event carries them: small, and without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlab.errors import PrivacyError
from memlab.kernel.privacy import Finding, is_sensitive, refuse_strings

__all__ = ["compact", "redactions", "refuse_names"]


def compact(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Columns without nulls throughout, and a value that all rows share once."""
    small: dict[str, Any] = {}
    for name, values in columns.items():
        first = values[0]
        if isinstance(first, list) or any(isinstance(value, list) for value in values):
            small[name] = values
        elif all(value == first for value in values):
            if first is not None:
                small[name] = first
        else:
            small[name] = values
    return small


def redactions(redacted: Sequence[tuple[int, Finding]]) -> dict[str, Any]:
    """What an event says of secrets that were redacted: of which memory, and of which kind."""
    return {"redacted": [[id, finding.type] for id, finding in redacted]} if redacted else {}


def refuse_names(columns: Mapping[str, list[Any]]) -> None:
    """PrivacyError if a value other than the texts, which are redacted, holds a secret, or names a file of secrets."""
    for name, values in columns.items():
        refuse_strings(values, f"field {name}")
    for row, paths in enumerate(columns.get("files", ())):
        held = next(filter(is_sensitive, paths or ()), None)
        if held is not None:
            raise PrivacyError(
                f'Row {row}, field files: "{held}" is by its name a file of secrets, which no memory points to. '
                "Leave it out of files."
            )
