"""Prompts of the server, which hosts offer to a user as commands: /remember, /context, /end-session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from memlab.errors import InputError, UnknownName
from memlab.io.serving._connection import Connection

# 100 kB are 25,000 tokens, more than a user types.
_MAX_LENGTH = 100_000


@dataclass(frozen=True)
class Prompt:
    """A message that the user sends by a command of the host.

    Attributes
    ----------
    name, description
        The name and the description of the command, for the user.
    argument
        The name of its only argument, or "".
    about
        What the argument is, for the user.
    write
        The function that writes the message for a connection and the value of the argument.
    required
        Whether the argument is required.
    writes
        Whether the message asks the model to call a tool that writes.
    """

    name: str
    description: str
    argument: str
    about: str
    write: Callable[[Connection, str], str]
    required: bool = True
    writes: bool = True


def write_prompt(connection: Connection, name: str, arguments: Mapping[str, str]) -> str:
    """Return the message of a prompt.

    Raises UnknownName for an unknown prompt or argument, and InputError for an empty or long argument.
    """
    available = {
        prompt.name: prompt for prompt in PROMPTS if connection.can_write or not prompt.writes
    }
    if name not in available:
        raise UnknownName("prompt", name[:100], available)
    prompt = available[name]
    for key in arguments:
        if key != prompt.argument:
            raise UnknownName(f"argument of {name}", key[:100], [prompt.argument])
    value = arguments.get(prompt.argument, "").strip()
    if (prompt.required and not value) or len(value) > _MAX_LENGTH:
        raise InputError(
            f"{name}: {prompt.argument} must have 1 to {_MAX_LENGTH:,} characters, not {len(value):,}."
        )
    return prompt.write(connection, value)


def _remember(_: Connection, text: str) -> str:
    """Return a prompt that asks the model to store a text."""
    return (
        "Store this with the tool remember, as one statement that is clear without this conversation. Choose its kind, "
        f"and say what you stored:\n\n{text}"
    )


def _context(connection: Connection, task: str) -> str:
    """Return a task with its context, so that the model need not call the tool."""
    context = connection.lab.context(
        task,
        session=connection.session,
        project=connection.project,
        viewer=connection.viewer,
        again=True,
    )
    number = (
        ""
        if context.decision is None or not len(context)
        else f"(Recall {context.decision}, for the tool feedback.)"
    )
    return "\n\n".join(part for part in (context.text, number, task) if part)


def _end_session(_: Connection, summary: str) -> str:
    """Return a prompt that asks the model to store the lessons of the session."""
    wish = f" The user says of it: {summary}" if summary else ""
    return (
        "This session ends. First call feedback with the number of your last recall or context and your last answer, if "
        "you have used memories. Then call remember once: `text` is one sentence on what was done and decided, and "
        "`transcript` has the messages of this session that a later one needs, each with role and content: what the user "
        f"stated, decided or corrected, what failed, and what worked.{wish}"
    )


PROMPTS: tuple[Prompt, ...] = (
    Prompt(
        "remember", "Store a statement for later sessions.", "text", "What to store.", _remember
    ),
    Prompt(
        "context",
        "Start a task with the memories that it needs.",
        "task",
        "The task or question.",
        _context,
        writes=False,
    ),
    Prompt(
        "end-session",
        "Store what this session has taught.",
        "summary",
        "What was most important.",
        _end_session,
        required=False,
    ),
)
"""The prompts, in the order in which they are listed."""
