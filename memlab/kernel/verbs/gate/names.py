"""How agents are named, as creators, sources and viewers."""

from __future__ import annotations

from memlab.errors import InputError
from memlab.kernel.privacy import refuse
from memlab.kernel.state import checked_text

__all__ = ["as_agent", "check_agent", "is_agent"]

_AGENT = "agent:"
_PROGRAMS = (_AGENT, "runner:")


def is_agent(creator: object) -> bool:
    """Return whether a creator is a program and not a person: an agent or a runner.

    >>> is_agent("agent:coder"), is_agent("runner:insights"), is_agent("user")
    (True, True, False)
    """
    return isinstance(creator, str) and creator.startswith(_PROGRAMS)


def as_agent(name: str) -> str:
    """How a creator, a source and a viewer are written that is the agent of this name.

    >>> as_agent("coder"), as_agent("agent:coder")
    ('agent:coder', 'agent:coder')
    """
    return f"{_AGENT}{name.removeprefix(_AGENT)}"


def check_agent(agent: object) -> None:
    """Raise InputError for what is no name of an agent, PrivacyError for a secret."""
    if not isinstance(agent, str) or not agent or len(agent) > 1000:
        raise InputError(f'An agent is a name of 1 to 1000 characters, such as "coder", not {agent!r:.60}.')
    refuse(checked_text(agent, where="agent"), "the name of an agent")
