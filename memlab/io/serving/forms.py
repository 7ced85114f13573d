"""Models of the tools' arguments and answers, and their JSON schemas.

An argument that is a parameter of a verb has the verb's default and limits, and is described by the first sentence of
the verb's documentation. A form adds differences for a model: narrower limits, or a separate description.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from memlab.errors import did_you_mean
from memlab.kernel.base.arguments import Parameter, Within, describe_parameters
from memlab.kernel.base.printable import printable
from memlab.kernel.schema import MEMORY
from memlab.kernel.verbs.results import Memory
from memlab.subjects.lab import Lab

LONGEST_REQUEST = 4 << 20
"""Maximum bytes of a request: a memory of 1 MB takes up to three times as much when it is escaped."""

# Maximum faults in one message: enough to correct a call at once. A list of 100 would fill the
# window of a model.
_MAX_FAULTS = 5
# The kinds that a model needs; the lab accepts all others too, and names them if a kind is wrong.
_KINDS = "fact, preference, personal, goal, decision, convention, procedure, gotcha, negative, correction"
_Id = Annotated[int, Field(ge=1)]
# Messages of a day of work; a request has at most LONGEST_REQUEST bytes.
_MAX_MESSAGES = 20_000
# 100 items are more than a recall shows, and bound the work of one call.
_Ids = Annotated[list[_Id], Field(max_length=100)]
_Words = Annotated[list[str], Field(max_length=100)]


def _describe_argument(
    parameters: Mapping[str, Parameter], name: str, text: str = "", **limits: float
) -> Any:
    """Build the schema field of a tool's argument from a verb's parameter.

    A ``text`` replaces the description; ``limits`` are added to the limits of the parameter.
    """
    parameter = parameters[name]
    options: dict[str, Any] = {"description": text or _first_sentence(parameter.doc)}
    if not parameter.required:
        options["default"] = [] if parameter.default == () else parameter.default
    if parameter.limits is not None:
        bounds = {"ge": parameter.limits.lower, "le": parameter.limits.upper}
        options |= {key: bound for key, bound in bounds.items() if math.isfinite(bound)}
    return Field(**options | limits)


def _first_sentence(text: str) -> str | None:
    """Return the first sentence of a text, or None for an empty text."""
    sentence, stop, _ = text.partition(". ")
    return sentence + stop.rstrip() or None


def _describe_fields() -> dict[str, Parameter]:
    """Build an optional parameter for each column of a memory, by name."""
    return {
        column.name: Parameter(
            column.name,
            (str,),
            required=False,
            default=() if column.storage == "list" else None,
            limits=Within(column.low, column.high),
            doc=column.doc,
        )
        for column in MEMORY.values()
    }


_recall = functools.partial(_describe_argument, describe_parameters(Lab.recall))
_context = functools.partial(_describe_argument, describe_parameters(Lab.context))
_feedback = functools.partial(_describe_argument, describe_parameters(Lab.feedback))
_remember = functools.partial(
    _describe_argument, describe_parameters(Lab.remember) | _describe_fields()
)


class _Form(BaseModel):
    """Arguments of a tool. Unknown arguments and values of another type, such as "9" for 9, are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RememberForm(_Form):
    """Arguments of the tool ``remember``."""

    text: Annotated[
        str, Field(description="One statement in full sentences, clear without context.")
    ]
    kind: Annotated[str | None, _remember("kind", f"One of: {_KINDS}. Default: fact.")]
    tags: Annotated[_Words, _remember("tags")]
    files: Annotated[_Words, _remember("files", "Paths that it is about.")]
    triggers: Annotated[_Words, _remember("triggers", "Phrases of queries that must find it.")]
    importance: Annotated[
        float | None, _remember("importance", "From 0 (trivial) to 1 (essential).")
    ]
    project: Annotated[str | None, _remember("project", "Its project; none means all.")]
    session: Annotated[str | None, _remember("session", "The session it comes from.")]
    replaces: Annotated[
        _Id | None, Field(description="Id of a wrong memory that this text replaces.")
    ] = None
    transcript: Annotated[
        list[dict[str, Any]],
        Field(
            max_length=_MAX_MESSAGES,
            description="Messages of a finished session, each {role, content}. Their lessons are stored too.",
        ),
    ] = []


class RecallForm(_Form):
    """Arguments of the tool ``recall``."""

    query: Annotated[str, _recall("query", "What you need to know, in the user's words.")]
    # 50 memories of 500 characters are 6,000 tokens, which a model still reads.
    limit: Annotated[int | None, _recall("limit", le=50)]
    project: Annotated[str | None, _recall("project")]
    session: Annotated[str | None, _recall("session")]
    # The verb's default is True; a model still has in its window what the session returned before.
    again: Annotated[bool, _recall("again")] = False


class AboutForm(_Form):
    """Arguments of the tool ``about``."""

    subject: Annotated[
        str | None,
        Field(
            max_length=1_000,
            description='Subject, or "user" for the user. Default: list all subjects.',
        ),
    ] = None
    project: Annotated[str | None, _recall("project")]


class ForgetForm(_Form):
    """Arguments of the tool ``forget``."""

    memories: Annotated[_Ids, Field(min_length=1, description="Ids of memories.")]


class FeedbackForm(_Form):
    """Arguments of the tool ``feedback``."""

    recall: Annotated[
        int | None, _feedback("decision", "Number of the recall, from recall or context.")
    ]
    answer: Annotated[
        str | None,
        Field(description="Your answer; memlab infers which memories it used."),
    ] = None
    reply: Annotated[
        str | None,
        Field(description="The user's reply to your answer."),
    ] = None
    memories: Annotated[
        _Ids,
        Field(description="Ids to judge. Default: all results of the recall."),
    ] = []
    outcome: Annotated[
        Literal["success", "fail"] | None,
        _feedback("outcome"),
    ]


class ContextForm(_Form):
    """Arguments of the tool ``context``."""

    task: Annotated[str, _context("task")]
    # 100,000 tokens fill the window of most models.
    budget: Annotated[int, _context("budget", le=100_000)]
    files: Annotated[_Words, _context("files")]
    project: Annotated[str | None, _context("project")]
    session: Annotated[str | None, _context("session")]
    again: Annotated[bool, _context("again")]


class _Answer(BaseModel):
    """Answer of a tool: immutable, without control characters.

    A client checks answers with these models, too, so that a hostile server cannot steer its terminal.
    """

    model_config = ConfigDict(frozen=True)

    @field_validator("*")
    @classmethod
    def _make_printable(cls, value: Any) -> Any:
        """Replace control characters in texts; raise an error for integers too large for a lab."""
        if isinstance(value, str):
            return printable(value)
        if isinstance(value, int) and value.bit_length() > 63:
            raise ValueError("the number has more than 64 bits")
        if isinstance(value, tuple):
            return tuple(printable(item) if isinstance(item, str) else item for item in value)
        return value


class MemoryAnswer(_Answer):
    """One recalled memory; fields that have their default value are not sent."""

    id: int
    text: str
    kind: str
    created: AwareDatetime
    score: float = 0.0
    status: str | None = None
    ref: Annotated[str | None, Field(description="The caller's own identifier of the memory.")] = (
        None
    )
    project: str | None = None
    speaker: str | None = None
    tags: tuple[str, ...] = ()
    probe: Annotated[
        bool,
        Field(
            description="Whether the memory is an exploration item, drawn at random from below the results."
        ),
    ] = False

    @classmethod
    def from_memory(
        cls, memory: Memory, *, score: float = 0.0, probe: bool = False
    ) -> MemoryAnswer:
        """Build the answer that describes a memory."""
        return cls(
            id=memory.id,
            text=memory.text,
            kind=memory.kind,
            created=memory.created,
            score=round(score, 4),
            status=None if memory.status == "active" else memory.status,
            ref=memory.ref,
            project=memory.project,
            speaker=memory.speaker,
            tags=memory.tags,
            probe=probe,
        )


class LearnedMemory(_Answer):
    """One memory that was learned from a transcript."""

    id: int
    text: str


class RememberAnswer(_Answer):
    """Answer of the tool ``remember``."""

    id: Annotated[int, Field(description="Id of the memory that holds the text.")]
    outcome: Annotated[
        str,
        Field(
            description="What happened to the text: added, merged, skipped, replaced or unchanged."
        ),
    ]
    text: str
    superseded: Annotated[
        tuple[int, ...], Field(description="Ids of memories that this one replaced.")
    ]
    redacted: Annotated[
        tuple[str, ...], Field(description="Types of secrets removed from the text.")
    ]
    notes: Annotated[
        tuple[str, ...],
        Field(description="Derived data that a correction rebuilt or removed, besides the text."),
    ] = ()
    learned: Annotated[
        tuple[LearnedMemory, ...], Field(description="Memories learned from the transcript.")
    ] = ()


class RecallAnswer(_Answer):
    """Answer of the tool ``recall``."""

    recall: Annotated[
        int | None, Field(description="Number of the recall, for feedback; null if not logged.")
    ]
    memories: tuple[MemoryAnswer, ...]
    weak: Annotated[
        bool, Field(description="True if the memories probably do not answer the query.")
    ] = False
    known: Annotated[
        float | None, Field(description="Probability that the memories contain the answer.")
    ] = None
    confidence: Annotated[
        str, Field(description="The probability of an answer as a phrase, or why it is unknown.")
    ] = ""
    off: Annotated[
        str | None, Field(description="Why memory is switched off; null if memory is on.")
    ] = None
    redacted: Annotated[
        tuple[str, ...], Field(description="Types of secrets removed from the query.")
    ] = ()
    given_before: Annotated[
        tuple[int, ...],
        Field(description="Ids of memories omitted because this session already returned them."),
    ] = ()


class Subject(_Answer):
    """A subject of the lab, and the number of memories that name it."""

    name: str
    memories: int


class AboutAnswer(_Answer):
    """Answer of the tool ``about``."""

    subject: str | None = None
    profile: Annotated[str, Field(description="Current facts about the subject, in prose.")] = ""
    memories: Annotated[tuple[MemoryAnswer, ...], Field(description="Newest first.")] = ()
    total: Annotated[
        int,
        Field(
            description="Number of memories about the subject; without a subject, of memories about any "
            "subject."
        ),
    ] = 0
    subjects: tuple[Subject, ...] = ()


class ForgetAnswer(_Answer):
    """Answer of the tool ``forget``."""

    forgotten: tuple[int, ...]
    unchanged: Annotated[
        tuple[int, ...],
        Field(description="Ids of memories that were already excluded, so nothing changed."),
    ]


class ContextMemory(_Answer):
    """One memory in a context."""

    id: int
    tier: Annotated[
        int, Field(description="1: always included, 2: triggered by the task, 3: other, shortened")
    ]
    reason: str


class ContextAnswer(_Answer):
    """Answer of the tool ``context``."""

    recall: Annotated[
        int | None, Field(description="Number of the recall, for feedback; null if not logged.")
    ]
    text: Annotated[
        str, Field(description="Memories for the prompt, marked as data; empty if there are none.")
    ]
    tokens: int
    weak: Annotated[
        bool, Field(description="True if the memories probably do not answer the task.")
    ] = False
    memories: Annotated[
        tuple[ContextMemory, ...],
        Field(description="Memories in the order of their lines in the text."),
    ]
    left_out: Annotated[
        int, Field(description="Number of memories that did not fit or were not needed.")
    ]


class LoggedFeedback(_Answer):
    """One judgement of a memory, as it was logged."""

    memory: int
    outcome: str
    recall: int | None


class Credit(_Answer):
    """Reward of one memory, inferred from an answer."""

    memory: int
    reward: float | None
    status: Annotated[
        str,
        Field(
            description="What happened to the reward: logged (stored now), known (stored before), stated (there is "
            "feedback), no say (too little evidence)",
        ),
    ]


class FeedbackAnswer(_Answer):
    """Answer of the tool ``feedback``."""

    judged: tuple[LoggedFeedback, ...]
    credited: tuple[Credit, ...]
    notice: str | None = Field(
        None, description="A proposal for the user; only the user can carry it out."
    )


def build_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a model without titles and references.

    A language model reads the schema with every request. Titles repeat names and are dropped. An
    argument that may be omitted is not also declared nullable. Definitions are inlined, which saves
    a client 3 ms when it checks the answer of a recall.
    """
    schema = model.model_json_schema()
    compact: dict[str, Any] = _compact_schema(schema, schema.pop("$defs", {}))
    return compact


def _compact_schema(node: Any, definitions: dict[str, Any]) -> Any:
    """Return a node of a JSON schema without titles and null types, with references replaced by their definitions."""
    if isinstance(node, list):
        return [_compact_schema(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _compact_schema(definitions[node["$ref"].rpartition("/")[2]], definitions)
    # dictionaries of any keys are the default
    node = {
        key: value for key, value in node.items() if (key, value) != ("additionalProperties", True)
    }
    dropped = ("title", "description") if "properties" in node else ("title",)
    compact = {
        key: _compact_schema(value, definitions)
        for key, value in node.items()
        # the docstring of a model is for readers of its code; a property may have the name "title"
        if not (isinstance(value, str) and key in dropped)
    }
    if "default" in compact and compact["default"] is None:
        (schema,) = (option for option in compact.pop("anyOf") if option != {"type": "null"})
        compact = schema | {key: value for key, value in compact.items() if key != "default"}
    return compact


def describe_faults(error: ValidationError, form: type[BaseModel]) -> str:
    """Describe invalid arguments without quoting their values."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    sentences = []
    for fault in faults[:_MAX_FAULTS]:
        name = ".".join(str(part)[:60] for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            hint = did_you_mean(name, form.model_fields)
            sentences.append(f'There is no argument "{name}". {hint}')
        else:
            sentences.append(f"{name}: {fault['msg']}.")
    return " ".join(sentences)
