"""Widgets for a notebook: a lab to look at and to try, live in the page.

    memlab.widgets.RecallExplorer(lab)               # the last expression of a cell

Each is one self-contained widget of anywidget, for JupyterLab, Notebook 7, VS Code and marimo; nothing is asked of the
network. What a widget shows can be read in the next cell (``explorer.hits``), and what is set there is shown. They are
loaded at first use: importing memlab loads no widget library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlab.ui.widgets._board import EvaluationBoard as EvaluationBoard
    from memlab.ui.widgets._explorer import RecallExplorer as RecallExplorer
    from memlab.ui.widgets._map import MemoryMap as MemoryMap
    from memlab.ui.widgets._player import LifePlayer as LifePlayer
    from memlab.ui.widgets._studio import PolicyStudio as PolicyStudio
    from memlab.ui.widgets._table import MemoryTable as MemoryTable
    from memlab.ui.widgets._timeline import VersionTimeline as VersionTimeline
    from memlab.ui.widgets._widget import Widget as Widget

_WHERE = {
    "PolicyStudio": "_studio",
    "RecallExplorer": "_explorer",
    "VersionTimeline": "_timeline",
    "MemoryTable": "_table",
    "MemoryMap": "_map",
    "EvaluationBoard": "_board",
    "LifePlayer": "_player",
}
"""In the order of the tabs of ``memlab view``."""

SHIPPED = tuple(_WHERE)
"""The widgets of memlab; extensions add theirs with ``memlab.extend``."""

_WHERE["Widget"] = "_widget"

__all__ = [*_WHERE]

_PARTS = {"arrow": "_widget", "principal_axes": "_map"}
"""For tests; no documented interface."""


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name) or _PARTS.get(name)
    if module is None:
        raise AttributeError(f"module 'memlab.ui.widgets' has no attribute {name!r}")
    return getattr(importlib.import_module(f"memlab.ui.widgets.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
