"""agent-framework's ``ContextProvider`` on a lab.

It adds memories before a run, and stores turns and attributed rewards after the run.

    from memlab.io.adapters.agent_framework import LabContext
    agent = Agent(client=client, context_providers=[LabContext(memlab.open("agent.memlab"))])

| agent-framework | in the lab |
|---|---|
| ``before_run`` | ``recall`` for the user's messages, without memories of this session: logged |
| ``after_run`` | ``attribute`` the answer to the recalled memories, then ``remember`` both turns |

The memories are added as one message that declares them as data. The session's own history has its turns.
"""

from __future__ import annotations

import asyncio
from typing import Any

from memlab.errors import InputError, require_extra
from memlab.io.adapters._runs import format_memories, recall_for_run, store_run
from memlab.subjects.lab import Lab

with require_extra("agent-framework", "memlab.io.adapters.agent_framework"):
    from agent_framework import ContextProvider, Message


class LabContext(ContextProvider):
    """Context provider that recalls memories before each run of an agent.

    Parameters
    ----------
    lab
        The lab.
    source_id
        Name of the provider.
    limit
        Maximum number of memories, not counting an exploration item.
    project
        Project of recalls and stored turns.
    remember
        Whether to store the turns of each run.

    Examples
    --------
    >>> Agent(client=client, context_providers=[LabContext(lab, limit=3)])              # doctest: +SKIP
    """

    def __init__(
        self,
        lab: Lab,
        *,
        source_id: str = "memlab",
        limit: int = 5,
        project: str | None = None,
        remember: bool = True,
    ) -> None:
        super().__init__(source_id)
        if limit < 1:
            raise InputError(f"limit must be at least 1, not {limit}.")
        self.lab, self.limit, self.project, self.remember = lab, limit, project, remember

    async def before_run(
        self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]
    ) -> None:
        """Add recalled memories to the context of a run.

        Parameters
        ----------
        agent, session
            Unused.
        context
            The context of the run, with the user's messages.
        state
            The provider's state, which keeps the number of the recall.
        """
        state.pop("decision", None)
        query = "\n".join(_texts_of(context.input_messages, "user"))
        if not query:
            return
        hits = await asyncio.to_thread(
            recall_for_run,
            self.lab,
            query,
            session=context.session_id,
            limit=self.limit,
            project=self.project,
        )
        if hits:
            state["decision"] = hits.decision
            context.extend_messages(self, [Message("user", [format_memories(hits)])])

    async def after_run(
        self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]
    ) -> None:
        """Attribute the answer to the recalled memories, and store the turns.

        Parameters
        ----------
        agent, session
            Unused.
        context
            The context of the run, with its response.
        state
            The provider's state, with the number of the recall.
        """
        answers = (
            _texts_of(context.response.messages, "assistant")
            if context.response is not None
            else []
        )
        decision = state.pop("decision", None)
        queries = _texts_of(context.input_messages, "user")
        await asyncio.to_thread(
            store_run,
            self.lab,
            queries,
            answers,
            decision=decision,
            session=context.session_id,
            project=self.project,
            remember=self.remember,
        )


def _texts_of(messages: Any, role: str) -> list[str]:
    """Return the texts, other than blank ones, of the messages with a role."""
    return [message.text for message in messages if message.role == role and message.text.strip()]
