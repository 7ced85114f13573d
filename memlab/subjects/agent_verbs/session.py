"""``lab.agent(name).session(id)``: the memory of one chat, before and after each answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Protocol, Self

import polars as pl

from memlab.errors import InputError, MemlabError
from memlab.kernel.base.arguments import Count, Within, checked
from memlab.kernel.base.logs import LOGGER
from memlab.kernel.base.printable import printable
from memlab.kernel.state import validate_text
from memlab.kernel.verbs.results import Remembered
from memlab.kernel.verbs.verbs import Verbs
from memlab.subjects.attribution.attribution import Attributed
from memlab.subjects.context.context import Context
from memlab.subjects.extraction.extraction import Learned
from memlab.subjects.models import LanguageModel, Otherwise

_ASSISTANT = "assistant"
"""The speaker of answers. Loaded transcripts name speakers without a name by their role, too."""


class _Agent(Protocol):
    """What a session needs of an agent, whose module imports this one."""

    @property
    def name(self) -> str: ...
    @property
    def project(self) -> str | None: ...
    @property
    def memories(self) -> pl.DataFrame: ...
    def remember(self, text: Any, /) -> Remembered: ...
    def end_session(
        self, *, model: LanguageModel | None = None, otherwise: Otherwise = "raise"
    ) -> Learned: ...


class Session:
    """One chat of an agent: messages before each answer, credits and turns after it.

    ``lab.agent(name).session(id)`` makes one; the end of the ``with`` block learns from the chat.
    A session belongs to one chat and is not shared by threads.

    Parameters
    ----------
    agent
        The agent.
    verbs
        The verbs of the lab.
    name
        The session.
    budget, history, user, model, otherwise
        The arguments of ``agent.session``.

    Attributes
    ----------
    name
        The session.
    context
        The ``Context`` of the last ``before``, or None.
    learned
        What the end of the session learned, or None.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.agent("coder").remember("Deploys go out on Tuesdays", kind="convention")
    >>> with lab.agent("coder").session("s1") as s:
    ...     messages = s.before("When do deploys go out?")
    ...     attributed = s.after("On Tuesdays.")
    >>> "Tuesdays" in messages[-1]["content"], messages[-1]["role"], s.learned is not None
    (True, 'user', True)
    """

    def __init__(
        self,
        agent: _Agent,
        verbs: Verbs,
        name: str,
        *,
        budget: int,
        history: int,
        user: str,
        model: LanguageModel | None,
        otherwise: Otherwise,
    ) -> None:
        self.name: str = name
        self.context: Context | None = None
        self.learned: Learned | None = None
        self._agent, self._verbs = agent, verbs
        self._budget, self._kept, self._user = budget, history, user
        self._model, self._otherwise = model, otherwise
        self._asked: str | None = None
        self._answered: tuple[str, Context] | None = None
        # An earlier part of the chat was sent with contexts that are not stored, so its memories may come again.
        self._messages = self._read_turns()
        self._is_cut = bool(self._messages)

    def __repr__(self) -> str:
        exchanges = len(self._messages) // 2
        return printable(f"<Session {self.name} of {self._agent.name}: {exchanges} exchanges>")

    @checked
    def before(
        self, text: str, *, system: str | None = None, files: str | Sequence[str] = ()
    ) -> list[dict[str, str]]:
        """Return the messages for a chat model: history, memories and the user's text.

        The memories are those of ``agent.context``, in front of the text in one message of the user,
        so that roles alternate. The recall is logged.

        Parameters
        ----------
        text
            What the user says.
        system
            A system message to begin with.
        files
            Paths of the files that the agent works on, one or several.

        Returns
        -------
        list of dict
            Messages with ``role`` and ``content``.

        Examples
        --------
        >>> import memlab
        >>> session = memlab.open().agent("coder").session("s1")
        >>> session.before("Hello", system="Be brief.")
        [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hello'}]
        """
        if self._answered is not None:
            # The user may correct the answer, which takes its credit back.
            answer, context = self._answered
            self._credit(answer, context, reply=text)
        # Turns of this chat that are sent as history are not sent as memories, too.
        elsewhere = pl.col("session").ne_missing(self.name) | (pl.col("kind") != "turn")
        self.context = self._verbs.component("contexts").make(
            text,
            budget=self._budget,
            session=self.name,
            project=self._agent.project,
            files=files,
            viewer=self._agent.name,
            at=None,
            again=self._is_cut,
            log=True,
            where=elsewhere if self._sends_all else None,
        )
        self._asked, self._answered = text, None
        sent = self._messages[max(len(self._messages) - 2 * self._kept, 0) :]
        instruction = [] if system is None else [{"role": "system", "content": system}]
        return [*instruction, *map(dict, sent), _make_message(text, self.context)]

    @checked
    def after(self, answer: str, *, arguments: str | None = None) -> Attributed | None:
        """Store the exchange, and log which memories the answer used.

        Parameters
        ----------
        answer
            The answer to the last ``before``.
        arguments
            The arguments of tools that were called for the answer.

        Returns
        -------
        Attributed or None
            The credit of each memory; None if no memory was shown or memory is off.

        Raises
        ------
        InputError
            If there was no ``before``, or a limit of the session is exceeded.
        NotPermitted
            If the agent is a reader.

        Examples
        --------
        >>> import memlab
        >>> session = memlab.open().agent("coder").session("s1")
        >>> _ = session.before("Hello")
        >>> session.after("Hello! How can I help?") is None
        True
        """
        text, context = self._asked, self.context
        if text is None or context is None:
            raise InputError(
                "after(answer) needs the text that it answers: call before(text) first."
            )
        validate_text(answer, where="answer")
        if context.hits.off is None:
            turns = ((text, self._user), (answer, _ASSISTANT))
            self._agent.remember(
                [{"text": text, "speaker": speaker, "kind": "turn"} for text, speaker in turns]
            )
        self._messages += [
            _make_message(text, context),
            {"role": _ASSISTANT, "content": answer},
        ]
        self._is_cut |= not self._sends_all
        self._asked, self._answered = None, (answer, context)
        return self._credit(answer, context, arguments=arguments)

    @checked
    def end(self) -> Learned | None:
        """Extract memories from the turns of the session, as ``agent.end_session`` does.

        The end of a ``with`` block calls it. Without turns nothing is learned.

        Returns
        -------
        Learned or None
            Lessons, facts and notices; None without turns.

        Examples
        --------
        >>> import memlab
        >>> session = memlab.open().agent("coder").session("s1")
        >>> session.end() is None
        True
        """
        if self._messages and (self.context is None or self.context.hits.off is None):
            self.learned = self._agent.end_session(model=self._model, otherwise=self._otherwise)
        return self.learned

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self.end()
        except MemlabError:
            # The error of the block is the one to see.
            if error[0] is None:
                raise
            LOGGER.exception("The end of the session learned nothing.")

    @property
    def _sends_all(self) -> bool:
        """Whether the chat is still short enough that the model gets all of its messages as history."""
        return len(self._messages) <= 2 * self._kept

    def _credit(self, answer: str, context: Context, **more: str | None) -> Attributed | None:
        """Log rewards for the memories of the context that the answer used, and return them.

        The result is None if the context was not logged or has no memories.
        """
        if context.decision is None or not len(context.hits):
            return None
        cues: dict[str, Any] = {"arguments": None, "reply": None, "at": None, **more}
        attributed: Attributed = self._verbs.component("attributions").answer(
            answer, context.hits, **cues
        )
        return attributed

    def _read_turns(self) -> list[dict[str, str]]:
        """Return the stored active turns of the session as messages."""
        turns = self._agent.memories.filter(
            pl.col("session") == self.name, pl.col("kind") == "turn", pl.col("status") == "active"
        )
        return [
            {"role": _ASSISTANT if speaker == _ASSISTANT else "user", "content": text}
            for speaker, text in turns.select("speaker", "text").iter_rows()
        ]


def _make_message(text: str, context: Context) -> dict[str, str]:
    """Return a user message with the text of the context, an empty line and the user's text."""
    content = f"{context.text}\n\n{text}" if context.text else text
    return {"role": "user", "content": content}


class SessionName(str):
    """The name of an agent's session, a text; calling it opens a ``Session``."""

    _open: Callable[..., Session]

    @classmethod
    def of(cls, name: str, opening: Callable[..., Session]) -> SessionName:
        """Return a session name whose call runs ``opening`` to open a session."""
        session = cls(name)
        session._open = opening
        return session

    @checked
    def __call__(
        self,
        name: str | None = None,
        *,
        budget: Count = 1800,
        history: Annotated[int, Within(0)] = 20,
        user: str = "user",
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
    ) -> Session:
        """Open or continue a session of the agent for a chat.

        Parameters
        ----------
        name
            The session. Default: the agent's own.
        budget
            The maximum tokens of memories before each answer.
        history
            The number of exchanges that ``before`` repeats. Earlier ones are left out, and their
            memories may be shown again. 0 repeats none, for a framework that keeps the history.
        user
            The speaker of the user's turns.
        model
            A language model that extracts facts at the end. Default: rules.
        otherwise
            Handling of messages that the model fails to read: "raise", "rules" or "skip".

        Returns
        -------
        Session
            The session, to use in a ``with`` block.

        Examples
        --------
        >>> import memlab
        >>> memlab.open().agent("coder").session("s1")
        <Session s1 of agent:coder: 0 exchanges>
        """
        return self._open(
            name, budget=budget, history=history, user=user, model=model, otherwise=otherwise
        )
