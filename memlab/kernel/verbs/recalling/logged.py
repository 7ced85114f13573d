"""Logged recalls by their numbers."""

from __future__ import annotations

from memlab.errors import UnknownName
from memlab.kernel.policies import Pack
from memlab.kernel.recall import Hits, recalled
from memlab.kernel.slates import Slate, read_slates
from memlab.kernel.storage.store import Store

__all__ = ["find_slate", "logged_hits", "logged_slate"]


def find_slate(store: Store, decision: int) -> Slate | None:
    """The slate of a logged recall; None if no recall of this number was logged."""
    return next(read_slates(store.journal, decision - 1, upto=decision), None)


def logged_slate(store: Store, decision: int) -> Slate:
    """The slate of a logged recall; UnknownName if there is none of this number."""
    slate = find_slate(store, decision)
    if slate is None:
        logged = (str(event.seq) for event in store.journal.events(kinds=("recall",)))
        raise UnknownName("logged recall", decision, logged)
    return slate


def logged_hits(store: Store, decision: int) -> Hits:
    """What a logged recall showed, with the pack that decided; UnknownName if there is none of this number.

    Texts are those of today: what was purged since has none.
    """
    slate = logged_slate(store, decision)
    with store.reading() as state:
        pack = _decided(store, slate)
        return Hits(slate, pack, decision, recalled(state, slate.shown))


def _decided(store: Store, slate: Slate) -> Pack:
    """Return the pack that decided a recall, with the values of parameters that were given for that one."""
    decision = slate.decision
    event = next(iter(store.journal.events(after=decision - 1, upto=decision)), None)
    body = {} if event is None else event.body
    pack = store.versions.live_at(store.versions.event_of(body.get("of", slate.pack_hash)))
    return pack.with_params(body["params"]) if "params" in body else pack
