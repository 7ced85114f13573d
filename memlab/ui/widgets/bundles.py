"""The scripts of widgets and pages, as ``npm run build`` in ``src`` makes them."""

from pathlib import Path

__all__ = ["STATIC", "bundle"]

STATIC = Path(__file__).parent / "static"
"""The folder with a ``.js`` for each widget, and one for each page that shows them."""


def bundle(name: str) -> str:
    """The script of a widget (``studio``) or of a page (``page``, ``app``)."""
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")
