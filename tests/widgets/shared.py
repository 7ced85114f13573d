"""What a widget shares with its page."""

from typing import Any


def shared(widget: Any, name: str) -> Any:
    """Return a part of the state that a browser is sent, by its name without the underscore."""
    return widget.get_state(f"_{name}")[f"_{name}"]


def set_shared(widget: Any, name: str, value: Any) -> None:
    """Set a part of that state: the browser is sent it."""
    widget.set_trait(f"_{name}", value)
