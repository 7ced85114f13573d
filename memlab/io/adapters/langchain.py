"""LangChain's agent middleware and ``BaseRetriever`` on a lab.

    from langchain.agents import create_agent
    from memlab.io.adapters.langchain import LabMiddleware
    agent = create_agent(model, middleware=[LabMiddleware(memlab.open("agent.memlab"))])

| LangChain | in the lab |
|---|---|
| ``before_agent`` | ``recall`` for the user's messages, without memories of this thread: logged |
| ``wrap_model_call`` | the memories as one message before the user's, in each call of the model |
| ``after_agent`` | ``attribute`` the answer to the recalled memories, then ``remember`` both turns |
| ``LabRetriever.invoke`` | ``recall``: logged |

The memories are not stored in the thread's messages. The id of a LangGraph thread is the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

from memlab.errors import InputError, require_extra
from memlab.io.adapters._runs import format_memories, recall_for_run, store_run
from memlab.subjects.lab import Lab

with require_extra("langchain", "memlab.io.adapters.langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
    from langchain_core.retrievers import BaseRetriever
    from langgraph.config import get_config
    from pydantic import Field


class _Run(TypedDict):
    """The recall of a run, as the agent's state has it."""

    decision: int | None
    notes: str
    queries: list[str]


class _LabState(AgentState[Any]):
    """The state of an agent with the recall of its run."""

    memlab_run: Annotated[_Run | None, PrivateStateAttr]


class LabMiddleware(AgentMiddleware[_LabState, Any, Any]):
    """Middleware that recalls memories before each run of an agent.

    Parameters
    ----------
    lab
        The lab.
    limit
        Maximum number of memories, not counting an exploration item.
    project
        Project of recalls and stored turns.
    remember
        Whether to store the turns of each run.

    Examples
    --------
    >>> create_agent(model, middleware=[LabMiddleware(lab, limit=3)])                  # doctest: +SKIP
    """

    state_schema = _LabState

    def __init__(
        self, lab: Lab, *, limit: int = 5, project: str | None = None, remember: bool = True
    ) -> None:
        super().__init__()
        if limit < 1:
            raise InputError(f"limit must be at least 1, not {limit}.")
        self.lab, self.limit, self.project, self.remember = lab, limit, project, remember
        self.tools: list[Any] = []

    def before_agent(self, state: _LabState, runtime: Any) -> dict[str, Any]:
        """Recall memories for the user's messages.

        Parameters
        ----------
        state
            The agent's state, which keeps the number of the recall.
        runtime
            Unused.

        Returns
        -------
        dict
            The change of the state.
        """
        queries = _last_queries(state["messages"])
        run: _Run = {"decision": None, "notes": "", "queries": queries}
        if queries:
            hits = recall_for_run(
                self.lab,
                "\n".join(queries),
                session=_thread(),
                limit=self.limit,
                project=self.project,
            )
            if hits:
                run["decision"], run["notes"] = hits.decision, format_memories(hits)
        return {"memlab_run": run}

    async def abefore_agent(self, state: _LabState, runtime: Any) -> dict[str, Any]:
        """Recall memories without blocking the event loop.

        Parameters
        ----------
        state, runtime
            As for ``before_agent``.

        Returns
        -------
        dict
            The change of the state.
        """
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
    ) -> Any:
        """Add the recalled memories to a model call.

        Parameters
        ----------
        request
            The call of the model.
        handler
            Carries out a call.

        Returns
        -------
        object
            What the handler returns.
        """
        return handler(_with_memories(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Add the recalled memories to an asynchronous model call.

        Parameters
        ----------
        request, handler
            As for ``wrap_model_call``.

        Returns
        -------
        object
            What the handler returns.
        """
        return await handler(_with_memories(request))

    def after_agent(self, state: _LabState, runtime: Any) -> dict[str, Any]:
        """Attribute the answer to the recalled memories, and store the turns.

        Parameters
        ----------
        state
            The agent's state, with the number of the recall.
        runtime
            Unused.

        Returns
        -------
        dict
            The change of the state.
        """
        run = state.get("memlab_run")
        if run is not None:
            store_run(
                self.lab,
                run["queries"],
                _answers(state["messages"]),
                decision=run["decision"],
                session=_thread(),
                project=self.project,
                remember=self.remember,
            )
        return {"memlab_run": None}

    async def aafter_agent(self, state: _LabState, runtime: Any) -> dict[str, Any]:
        """Attribute the answer and store the turns without blocking the event loop.

        Parameters
        ----------
        state, runtime
            As for ``after_agent``.

        Returns
        -------
        dict
            The change of the state.
        """
        return await asyncio.to_thread(self.after_agent, state, runtime)


class LabRetriever(BaseRetriever):
    """Retriever whose documents are the results of recalls.

    A document has the id of its memory. Its metadata has the score, the speaker, the session and ``recall``,
    the number of the logged recall, which ``lab.feedback(id, outcome, decision=recall)`` takes.

    Attributes
    ----------
    lab
        The lab.
    k
        Number of documents; ``invoke`` accepts another number.
    project
        Project of the recalls.

    Examples
    --------
    >>> LabRetriever(lab=lab, k=3).invoke("where does Ada live?")                      # doctest: +SKIP
    """

    lab: Any
    k: int = Field(default=5, ge=1)
    project: str | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        """Return the recalled memories as documents, at most ``k`` or, for None, the retriever's own ``k``."""
        hits = self.lab.recall(
            query, limit=self.k if k is None else k, project=self.project, explore=False
        )
        return [
            Document(
                page_content=hit.text,
                id=str(hit.id),
                metadata={
                    "score": hit.score,
                    "speaker": hit.speaker,
                    "session": hit.session,
                    "recall": hits.decision,
                },
            )
            for hit in hits
        ]


def _thread() -> str | None:
    """Return the id of the current LangGraph thread, or None outside a thread."""
    thread = get_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


def _last_queries(messages: list[AnyMessage]) -> list[str]:
    """Return the texts of the user's messages at the end of a conversation."""
    queries: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, HumanMessage):
            break
        if message.text.strip():
            queries.append(message.text)
    return queries[::-1]


def _answers(messages: list[AnyMessage]) -> list[str]:
    """Return the texts of the model's messages that follow the user's last message."""
    answers: list[str] = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            break
        if isinstance(message, AIMessage) and message.text.strip():
            answers.append(message.text)
    return answers[::-1]


def _with_memories(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """Return a request to the model with recalled memories before the user's last message.

    A run without memories leaves the request unchanged.
    """
    run = request.state.get("memlab_run")
    if not run or not run["notes"]:
        return request
    messages = list(request.messages)
    last = next(
        (at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], HumanMessage)),
        len(messages),
    )
    messages.insert(last, HumanMessage(run["notes"]))
    return request.override(messages=messages)
