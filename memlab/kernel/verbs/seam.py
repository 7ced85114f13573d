"""The interface of an extension's accessor to a lab: read, write events, run slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from memlab.errors import InputError, MissingExtension
from memlab.kernel.base.arguments import checked, describe_value
from memlab.kernel.base.arrays import Values
from memlab.kernel.base.clock import When
from memlab.kernel.journal import Event
from memlab.kernel.policies import FEATURES, get_slot
from memlab.kernel.recall import Moment
from memlab.kernel.state import EVENTS, Projection
from memlab.kernel.verbs.core import Core, Memories

P = TypeVar("P", bound=Projection)


@dataclass(frozen=True)
class Accessor:
    """An attribute of every lab: ``lab.NAME`` is what ``make`` returns.

    Parameters
    ----------
    name
        The name of the attribute, an identifier that ``Lab`` does not have.
    doc
        One sentence for ``help`` and completion.
    make
        A function that gets a `Seam` whenever the attribute is read.
    owner
        The extension that declares the accessor; memlab sets it.
    """

    name: str
    doc: str
    make: Callable[[Seam], Any] = field(compare=False)
    owner: str = ""


class Seam:
    """Access of an extension to a lab: its events, projections and slots.

    Parameters
    ----------
    lab
        The `Lab` with all of its verbs.
    core
        The lab's store and recaller.
    owner
        The name of the extension.

    Attributes
    ----------
    lab
        The `Lab` with all of its verbs.
    """

    def __init__(self, lab: Any, core: Core, owner: str) -> None:
        self.lab, self._core, self._owner = lab, core, owner

    @checked
    def write(self, kind: str, body: Mapping[str, Any], *, at: When | None = None) -> int:
        """Append an event of the extension to the journal.

        Parameters
        ----------
        kind
            A kind of event that the extension declares.
        body
            The fields of the event. The kind of the event must declare each field.
        at
            The time of the event. Default: now.

        Returns
        -------
        int
            The number of the event.

        Raises
        ------
        InputError
            If the extension does not declare the kind, or the kind does not declare a field.
        PrivacyError
            If a text holds a secret.
        """
        declared = EVENTS.get(kind)
        if declared is None or declared.owner != self._owner:
            raise InputError(
                f"The extension {self._owner} declares no event {kind!r}: declare it in events=."
            )
        unknown = [name for name in body if name not in declared.fields]
        if unknown:
            raise InputError(
                f"The event {kind} declares no field {unknown[0]!r}. Add it to the fields of its EventType."
            )
        with self._core.store.writing() as tx:
            return tx.event(kind, dict(body), at=self._core.instant(at))

    @checked
    def events(self, *kinds: str) -> list[Event]:
        """Return events that the lab's viewer may see, oldest first.

        Parameters
        ----------
        *kinds
            Kinds of events. Default: all kinds.

        Returns
        -------
        list of Event
            The events of these kinds, oldest first.
        """
        with self._core.reading():
            return list(self._core.store.journal.events(kinds=kinds or None))

    @checked
    def projection(self, kind: type[P]) -> P:
        """Return the extension's projection ``kind``, folded up to the last event.

        Parameters
        ----------
        kind
            The class of the projection.

        Returns
        -------
        Projection
            The projection, with all events of the lab applied.

        Raises
        ------
        MissingExtension
            If the lab was opened before the extension was registered.
        """
        if not (isinstance(kind, type) and issubclass(kind, Projection)):
            raise InputError(
                f"projection needs the class of a projection, not {describe_value(kind)}."
            )
        with self._core.reading() as state:
            if kind.name not in state.projections:
                raise MissingExtension(
                    f"The lab was opened before the extension {self._owner} was registered. Open it again."
                )
            return state.projection(kind)

    @checked
    def ask(
        self, slot: str, memories: Memories | None = None, **given: float | bool | str
    ) -> Values:
        """Run the active pack's policy of ``slot`` for memories and return its values.

        Parameters
        ----------
        slot
            A slot of the extension, or a built-in slot that reads only columns of memories.
        memories
            Memories, ids or a frame. Default: all memories.
        **given
            Inputs of the slot that are not features. Each value is used for all memories. Write an underscore for each
            hyphen in the name of an input.

        Returns
        -------
        ndarray
            One value per memory, in ascending order of ids. A null of the policy becomes None.

        Raises
        ------
        InputError
            If the policy reads a feature of a query, or an input that is missing.
        """
        declared = get_slot(slot)
        with self._core.reading() as state:
            chosen: Iterable[int] = (
                range(len(state)) if memories is None else self._core.rows(memories)
            )
            rows = np.array(sorted(chosen), dtype=np.int64)
            moment = Moment(state, self._core.pack, rows, self._core.instant(None))
            inputs = {
                name.replace("_", "-"): _repeat_value(value, len(rows))
                for name, value in given.items()
            }
            policy = self._core.pack.policy(slot)
            missing = [
                name
                for name in policy.inputs
                if name not in inputs and (name not in FEATURES or FEATURES[name].stage != "memory")
            ]
            if missing or declared.fields:
                raise InputError(
                    f"The policy of {slot} does not read memories alone, but {', '.join(missing[:3]) or 'an update'}. Pass "
                    "inputs as keyword arguments, or recall a query."
                )
            values, nulls = moment.ask(policy, inputs=inputs)
        if nulls is None:
            return values
        answers = values.astype(object)
        answers[nulls] = None
        return answers


def _repeat_value(value: float | bool | str, count: int) -> Callable[[], Values]:
    """Return a function that builds an array with ``count`` copies of one value."""
    dtype = object if isinstance(value, str) else None
    return lambda: np.full(count, value, dtype=dtype)
