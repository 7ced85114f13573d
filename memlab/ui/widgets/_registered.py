"""The widgets that extensions declare: each is a tab of ``memlab view``."""

from __future__ import annotations

from memlab.kernel.registry import Owned, Registry
from memlab.ui.widgets._widget import Widget
from memlab.ui.widgets.bundles import STATIC

__all__ = ["WIDGETS"]


def _refusal(declared: Owned) -> str | None:
    """Return why an extension's widget is refused."""
    kind = declared.value
    if not isinstance(kind, type) or not issubclass(kind, Widget) or not getattr(kind, "bundle", ""):
        return f'{declared.name} is no widget: class {declared.name}(memlab.widgets.Widget, bundle="...", esm="...").'
    own = {item.stem for item in STATIC.glob("*.js")}
    return f"The bundle {kind.bundle} is one of memlab's: choose another name." if kind.bundle in own else None


WIDGETS: Registry[Owned] = Registry("widget", kind="widgets", about="doc", check=_refusal)
