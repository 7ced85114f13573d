"""The settings of the pipeline that a pack may give, declared once with type and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memlab.errors import InputError, UnknownName

__all__ = ["SETTINGS", "SettingValue", "checked_setting"]

SettingValue = float | bool | str


@dataclass(frozen=True)
class SettingDeclaration:
    name: str
    type: Literal["count", "num", "bool", "word"]
    doc: str
    low: float = 0
    high: float = float("inf")
    words: tuple[str, ...] = ()


SETTINGS: dict[str, SettingDeclaration] = {
    setting.name: setting
    for setting in (
        SettingDeclaration("limit", "count", "memories that a recall shows unless the caller says", 1, 10_000),
        SettingDeclaration("dense-candidates", "count", "nearest vectors that become candidates", 0, 100_000),
        SettingDeclaration("lexical-candidates", "count", "best BM25 scores that become candidates", 0, 100_000),
        SettingDeclaration(
            "pool", "count", "candidates that are scored and logged: the best by activation", 1, 100_000
        ),
        SettingDeclaration("bm25-k1", "num", "BM25: how soon a repeated word saturates", 0, 10),
        SettingDeclaration("bm25-b", "num", "BM25: how much a long memory is held back", 0, 1),
        SettingDeclaration("seeds", "count", "best candidates from which activation spreads", 0, 100_000),
        SettingDeclaration("spread-steps", "count", "edges that activation crosses", 0, 10),
        SettingDeclaration("spread-threshold", "num", "activation below which nothing passes", 0),
        SettingDeclaration(
            "spread-combine",
            "word",
            "arrivals at one memory: the best counts, or their sum",
            words=("max", "sum"),
        ),
        SettingDeclaration("probe-rate", "num", "share of logged recalls that also show probes", 0, 1),
        SettingDeclaration(
            "probe-depth", "count", "ranks below the shown ones from which a probe is drawn", 1, 100_000
        ),
        SettingDeclaration("probe-floor", "num", "share of a probe's probability that is the same for all", 0, 1),
        SettingDeclaration("probes", "count", "how many probes such a recall shows", 1, 1000),
        SettingDeclaration("damping", "num", "share of activation that an edge passes on", 0, 1),
        SettingDeclaration("base-half-life", "num", "days, handed to the half-life policy", 1e-6, 1e9),
    )
}


def checked_setting(name: str, value: object) -> SettingValue:
    """The value if the setting exists and takes it."""
    try:
        declared = SETTINGS[name]
    except KeyError:
        raise UnknownName("setting", name, SETTINGS) from None
    if declared.type == "word":
        if value not in declared.words:
            raise InputError(f"Setting {name} is one of {', '.join(declared.words)}, not {value!r}.")
        return str(value)
    if declared.type == "bool":
        if not isinstance(value, bool):
            raise InputError(f"Setting {name} is true or false, not {value!r}.")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InputError(f"Setting {name} is a number, not {value!r}.")
    if not declared.low <= value <= declared.high:
        raise InputError(f"Setting {name} lies in {declared.low:g}..{declared.high:g}, not {value:g}.")
    if declared.type == "count":
        if value != int(value):
            raise InputError(f"Setting {name} is a whole number, not {value:g}.")
        return int(value)
    return float(value)
