"""Widgets for notebooks: inspect a lab and try changes in the page.

    memlab.widgets.RecallExplorer(lab)               # the last expression of a cell

Each widget is self-contained, based on anywidget, and works offline in JupyterLab, Notebook 7, VS Code
and marimo. The next cell can read the contents of a widget (``explorer.hits``) and change them.
Widgets are loaded at first use, so that importing memlab loads no widget library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from memlab.errors import require_extra

if TYPE_CHECKING:
    from memlab.ui.widgets._board import EvaluationBoard as EvaluationBoard
    from memlab.ui.widgets._explorer import RecallExplorer as RecallExplorer
    from memlab.ui.widgets._front import FrontView as FrontView
    from memlab.ui.widgets._map import MemoryMap as MemoryMap
    from memlab.ui.widgets._overview import Overview as Overview
    from memlab.ui.widgets._player import LifePlayer as LifePlayer
    from memlab.ui.widgets._questions import QuestionList as QuestionList
    from memlab.ui.widgets._recalls import RecallLog as RecallLog
    from memlab.ui.widgets._studio import PolicyStudio as PolicyStudio
    from memlab.ui.widgets._table import MemoryTable as MemoryTable
    from memlab.ui.widgets._timeline import VersionTimeline as VersionTimeline
    from memlab.ui.widgets._widget import Widget as Widget

_MODULES = {
    "Overview": "_overview",
    "RecallLog": "_recalls",
    "PolicyStudio": "_studio",
    "RecallExplorer": "_explorer",
    "VersionTimeline": "_timeline",
    "MemoryTable": "_table",
    "MemoryMap": "_map",
    "EvaluationBoard": "_board",
    "LifePlayer": "_player",
    "QuestionList": "_questions",
}
"""The module of each widget, in the order of the tabs of ``memlab view``."""

SHIPPED = tuple(_MODULES)
"""The widgets of a lab. Extensions add widgets with ``memlab.extend``."""

_MODULES |= {"FrontView": "_front", "Widget": "_widget"}

__all__ = [*_MODULES]

_INTERNALS = {"arrow": "_widget", "principal_axes": "_map"}
"""Functions for tests, which are not documented."""


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name) or _INTERNALS.get(name)
    if module is None:
        raise AttributeError(f"module 'memlab.ui.widgets' has no attribute {name!r}")
    with require_extra("widgets", f"memlab.widgets.{name}"):
        return getattr(importlib.import_module(f"memlab.ui.widgets.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
