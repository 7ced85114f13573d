"""The rollback of a guarded pack, which follows feedback without a call of the owner."""

from __future__ import annotations

from contextlib import suppress

from memlab.errors import UnknownName
from memlab.kernel.base.printable import count_of
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.policies.policies import LabPolicies
from memlab.subjects.guard.register import Guards


def roll_back(core: Core) -> None:
    """End the running guard if the guarded pack is worse than the active pack.

    The function runs after feedback was stored.
    """
    guard = core.store.state.projection(Guards).running
    if guard is None or not guard.decided:
        return
    with core.store.exclusive():
        guard = core.store.state.projection(Guards).running
        if guard is None or not guard.decided:  # Another process was faster.
            return
        loss, low, _ = (float(bound[0]) for bound in guard.process.bounds(guard.options["level"]))
        scale = guard.options["high"] - guard.options["low"]
        reason = (
            f"Rolled back after {count_of(int(guard.process.recalls[0]), 'judged recall')}: the loss per recall is "
            f"{loss * scale:.3f}, at least {low * scale:.3f}."
        )
        # Another process may end it until the lab is locked for writing.
        with suppress(UnknownName):
            LabPolicies(core).end_challenge(guard.pack, reason=reason)
