"""The widgets that extensions declare: each is a tab of ``memlab view``."""

from __future__ import annotations

from memlab.registry import Owned, Registry
from memlab.widgets._widget import Widget

__all__ = ["WIDGETS"]


def _refusal(declared: Owned) -> str | None:
    """Return why an extension's widget is refused."""
    kind = declared.value
    if not isinstance(kind, type) or not issubclass(kind, Widget) or not getattr(kind, "bundle", ""):
        return f'{declared.name} is no widget: class {declared.name}(memlab.widgets.Widget, bundle="...", esm="...").'
    taken = next((one for one in Widget.__subclasses__() if one is not kind and one.bundle == kind.bundle), None)
    own = taken is not None and taken.__module__.startswith("memlab.")
    return f"The bundle {kind.bundle} is that of {taken.__name__}." if own and taken else None


WIDGETS: Registry[Owned] = Registry("widget", kind="widgets", about="doc", check=_refusal)
