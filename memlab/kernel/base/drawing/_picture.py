"""A figure that shows itself. Importing this costs matplotlib: import it where a figure is drawn."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Picture"]


class Picture(Figure):
    """A figure that renders as the last line of a cell, whether or not pyplot was ever imported."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=144)
        return out.getvalue()
