"""The scripts of widgets and pages, which ``npm run build`` in ``src`` writes."""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
"""The folder with one ``.js`` file for each widget and each page."""


def bundle(name: str) -> str:
    """Return the script of a widget (``studio``) or of a page (``page``, ``app``)."""
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")
