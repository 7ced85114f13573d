"""Front view: the policies that a search found, as value against size, each with what it changes."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.errors import UnknownName
from memlab.kernel.base.arguments import checked
from memlab.science.evolution import Evolved
from memlab.subjects.lens.diff import print_definition
from memlab.subjects.lens.edit import parsed
from memlab.ui.widgets._board import plain
from memlab.ui.widgets._timeline import side_by_side
from memlab.ui.widgets._widget import MOST_TEXT, Widget, synced

_MOST_CHANGES = 100
"""Questions or clusters in the list of a policy, from each end: a few screens."""

_WIDTH = 60
"""Characters of a line of a policy, of which two columns fit a notebook."""


class FrontView(Widget, bundle="front"):
    """The front of a search: the value of each policy against its size.

    A click or Enter on a dot shows the policy, its differences from the start, and the questions (or
    clusters) that it gained and lost.

    Parameters
    ----------
    evolved
        The result of ``memlab.evolve``.

    Attributes
    ----------
    selected
        The hash of the selected policy; empty for none. Default: the best policy.
    evolved
        The result.

    Examples
    --------
    >>> view = memlab.widgets.FrontView(memlab.evolve(lab))                                # doctest: +SKIP
    >>> view.evolved.diff(view.selected)                                                     # doctest: +SKIP
    """

    selected = synced("")

    _about = synced({})
    _points = synced([])

    @checked
    def __init__(self, evolved: Evolved) -> None:
        self.evolved = evolved
        super().__init__(
            None,
            selected=evolved.best_hash or "",
            _about={"sentence": evolved.sentence, "metric": evolved.metric, "start": evolved.start},
            _points=_describe_points(evolved),
        )
        self.observe(lambda _: self._check_selected(), names=["selected"])

    @property
    def where(self) -> str:
        """The words "a search", because the widget has no lab."""
        return "a search"

    def page(self) -> str:
        """Return the front as an HTML table."""
        return self.evolved._repr_html_()

    def _check_selected(self) -> None:
        """Show a fault if the selected policy is not in the front."""
        hashes = self.evolved.front["hash"].to_list()
        with self.faults_shown():
            if self.selected not in ("", *hashes):
                raise UnknownName("policy of the front", self.selected, hashes)


def _describe_points(evolved: Evolved) -> list[dict[str, Any]]:
    """Return the rows of the front with their texts, differences and changes."""
    whole = [parsed(policy) for policy in evolved.policies]
    texts = [print_definition(item.form, item.text, width=_WIDTH) for item in whole]
    points = []
    for row, text in zip(evolved.front.to_dicts(), texts, strict=True):
        changes = evolved.changes.filter(hash=row["hash"]).with_columns(
            pl.col("name").str.head(MOST_TEXT), change=pl.col("after") - pl.col("before")
        )
        rows = changes.sort("change", descending=True)
        if rows.height > 2 * _MOST_CHANGES:
            rows = pl.concat([rows.head(_MOST_CHANGES), rows.tail(_MOST_CHANGES)])
        points.append(
            row
            | {
                "best": row["hash"] == evolved.best_hash,
                "lines": side_by_side(texts[0], text),
                "differences": [str(change) for change in evolved.diff(row["hash"]).changes],
                "changes": rows.to_dicts(),
            }
        )
    return [plain(point) for point in points]
