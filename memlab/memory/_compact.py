"""Columns as an event carries them: small, and without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlab.privacy import refuse

__all__ = ["compact", "refuse_names"]


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


def refuse_names(columns: Mapping[str, list[Any]]) -> None:
    """PrivacyError if a value other than the texts, which are redacted, holds a secret."""
    for name, values in columns.items():
        seen: set[str] = set()
        for value in values:
            if isinstance(value, str):
                seen.add(value)
            elif isinstance(value, list):
                seen.update(value)
        for value in seen:
            refuse(value, f"field {name}")
