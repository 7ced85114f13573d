"""The policy studio in a page of MCP Apps: the widget of a notebook, which a page reaches by calls of two tools.

A page opens a studio, and is given a key beside the answer, where a host shows nothing to its model. What changes the
lab needs that key, which the page sends on a click of the user alone.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import traitlets
from comm.base_comm import BaseComm

from memlab.errors import InputError, UnknownName
from memlab.io.serving._desk import Desk
from memlab.kernel.base.loopback import matches, new_token
from memlab.kernel.base.threads import ThreadLock
from memlab.ui.widgets import PolicyStudio
from memlab.ui.widgets.ranks import latest_questions

__all__ = ["CHANGES", "ask", "change", "open_studio", "set_traits"]

CHANGES = ("install", "rollback", "challenge")
"""Requests that change the lab."""
_READS = ("check", "words", "explain", "text")
_SETTABLE = ("slot", "questions", "chosen")
_QUESTIONS = 10
_MOST = 8
_LOCK = ThreadLock()
"""Widgets are used by one thread at a time; a host calls from several."""

Messages = list[dict[str, Any]]


class _PageStudio(PolicyStudio):
    """A studio without files: its page is on another machine's side of the host."""

    saves = False

    def __init__(self, desk: Desk, questions: list[str]) -> None:
        self.changes = desk.owns
        super().__init__(desk.lab, questions=questions, project=desk.project, viewer=desk.viewer)


class _CallComm(BaseComm):
    """A comm that keeps what is sent until a call takes it along."""

    def __init__(self) -> None:
        self.sent: Messages = []
        super().__init__(target_name="jupyter.widget")

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Sequence[Any] | None = None, **keys: Any
    ) -> None:
        if msg_type == "comm_msg" and data["method"] != "echo_update":  # what the page has set it knows
            self.sent.append(_message(data, buffers or []))

    def take(self) -> Messages:
        """What was sent since, the oldest first."""
        taken, self.sent = self.sent, []
        return taken


@dataclass(frozen=True)
class _Open:
    studio: PolicyStudio
    comm: _CallComm
    key: str


def open_studio(desk: Desk, questions: Sequence[str]) -> tuple[str, str, Messages]:
    """A studio on these questions and those that were asked last: its page, its key and its first state.

    It ranks what whoever is connected may recall. Of more than eight the one that was used longest ago ends.
    """
    given = [*questions, *latest_questions(desk.seen, _QUESTIONS, project=desk.project)]
    with _LOCK:
        studio = _PageStudio(desk, list(dict.fromkeys(given))[:_QUESTIONS])
        page = _Open(studio, _CallComm(), new_token())
        studio.comm = page.comm
        state, paths, buffers = studio.plain_state()
        while len(desk.pages) >= _MOST:
            desk.pages.pop(next(iter(desk.pages))).studio.close()
        name = new_token()
        desk.pages[name] = page
    return name, page.key, [_message({"method": "update", "state": state, "buffer_paths": paths}, buffers)]


def set_traits(desk: Desk, name: str, state: Mapping[str, Any]) -> Messages:
    """Set what a page may set: slot, questions, chosen."""
    for trait in state:
        if trait not in _SETTABLE:
            raise UnknownName("state of a page", trait, _SETTABLE)
    with _LOCK:
        page = _page(desk, name)
        try:
            page.studio.set_state(dict(state))
        except traitlets.TraitError as error:
            raise InputError(f"The studio cannot show this: {error}") from None
        return page.comm.take()


def ask(desk: Desk, name: str, request: Mapping[str, Any]) -> Messages:
    """The answer to a request that changes nothing, after what else is to be shown."""
    if request.get("verb") not in _READS:
        raise InputError(f"The studio of a page answers {', '.join(_READS)}; {', '.join(CHANGES)} need studio_change.")
    return _answered(desk, name, request)


def change(desk: Desk, name: str, key: str, request: Mapping[str, Any]) -> Messages:
    """The same of a request that changes the lab; InputError without the page's key."""
    if request.get("verb") not in CHANGES:
        raise UnknownName("change of a policy", request.get("verb"), CHANGES)
    with _LOCK:
        known = _page(desk, name).key
    if not matches(key, known):
        raise InputError("A policy is changed by the user's click in the page of the studio, and by nothing else.")
    return _answered(desk, name, request)


def _answered(desk: Desk, name: str, request: Mapping[str, Any]) -> Messages:
    with _LOCK:
        page = _page(desk, name)
        reply, buffers = page.studio.answer(request)
        return [*page.comm.take(), _message({"method": "custom", "content": reply}, buffers)]


def _page(desk: Desk, name: str) -> _Open:
    if name not in desk.pages:
        raise InputError("This studio has ended, as its server was started again or others were opened: open it again.")
    page: _Open = desk.pages.pop(name)
    desk.pages[name] = page  # the one that was used last stands last
    return page


def _message(data: Any, buffers: Sequence[Any]) -> dict[str, Any]:
    return {"data": data, "buffers": [base64.b64encode(one).decode() for one in buffers]}
