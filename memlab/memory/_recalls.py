"""How many recalls there were since clusters were last refined, and what the last of them showed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlab.memory._registers import Happened

__all__ = ["Recalls"]


class Recalls:
    """A count of logged recalls, which an event of kind ``refine`` sets back to nothing."""

    kinds: tuple[str, ...] = ("recall", "refine")

    def __init__(self) -> None:
        self.since_refined = 0
        self.last: tuple[int, ...] = ()
        """The ids that the last recall showed, best first; none once clusters were refined."""

    def fold(self, event: Happened) -> None:
        if event.kind == "refine":
            self.since_refined, self.last = 0, ()
        else:
            self.since_refined, self.last = self.since_refined + 1, tuple(event.body["ids"])

    def dump(self) -> Any:
        return [self.since_refined, list(self.last)]

    def load(self, dumped: Any) -> None:
        self.since_refined, self.last = dumped[0], tuple(dumped[1])
