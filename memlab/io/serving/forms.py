"""What the tools are given and what they answer: models, from which their schemas are made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from memlab.errors import did_you_mean
from memlab.kernel.base.printable import printable
from memlab.kernel.schema import KINDS
from memlab.kernel.verbs.results import Memory

__all__ = [
    "LONGEST_REQUEST",
    "ContextAnswer",
    "ContextForm",
    "Credited",
    "FeedbackAnswer",
    "FeedbackForm",
    "ForgetAnswer",
    "ForgetForm",
    "Found",
    "Injected",
    "Judged",
    "RecallAnswer",
    "RecallForm",
    "RememberAnswer",
    "RememberForm",
    "faults_of",
    "schema_of",
]

LONGEST_REQUEST = 4 << 20
"""Bytes of a request: a memory of 1 MB, escaped, and some room."""

_MOST_FAULTS = 5
_KINDS = ", ".join(one for one in KINDS if one not in ("turn", "summary"))
_Id = Annotated[int, Field(ge=1, le=1 << 62)]
_Ids = Annotated[list[_Id], Field(max_length=100)]
_Words = Annotated[list[str], Field(max_length=100)]
_Session = Annotated[
    str | None,
    Field(
        description="The conversation or piece of work that this belongs to. Unless given: this one."
    ),
]
_Project = Annotated[
    str | None,
    Field(description="The project that it is about; leave it out for what holds in all."),
]


class _Form(BaseModel):
    """Arguments of a tool: others than these are refused, so that nothing is lost without a word."""

    model_config = ConfigDict(extra="forbid")


class RememberForm(_Form):
    text: Annotated[
        str, Field(description="One statement, in whole sentences that need no context.")
    ]
    kind: Annotated[str | None, Field(description=f"One of: {_KINDS}. Unless given: fact.")] = None
    tags: _Words = []
    files: Annotated[_Words, Field(description="Paths that it is about.")] = []
    triggers: Annotated[
        _Words, Field(description="Words that are to bring it up whenever a question has them.")
    ] = []
    importance: Annotated[
        float | None, Field(ge=0, le=1, description="How much it matters, 0 to 1.")
    ] = None
    project: _Project = None
    session: _Session = None
    replaces: Annotated[
        _Id | None,
        Field(
            description="The id of the memory that was wrong or is outdated; this takes its place."
        ),
    ] = None


class RecallForm(_Form):
    query: Annotated[str, Field(description="What is to be known, in the user's words.")]
    limit: Annotated[
        int | None, Field(ge=1, le=50, description="At most so many memories. Unless given: some.")
    ] = None
    project: _Project = None
    session: _Session = None
    again: Annotated[bool, Field(description="Also what this session was given before.")] = False


class ForgetForm(_Form):
    memories: Annotated[
        _Ids, Field(min_length=1, description="Ids, as remember, recall and context give them.")
    ]


class FeedbackForm(_Form):
    recall: Annotated[
        _Id | None, Field(description="The number of the recall, as recall and context give it.")
    ] = None
    answer: Annotated[
        str | None,
        Field(
            description="The answer that you gave: memlab reads from it which memories it was made of."
        ),
    ] = None
    reply: Annotated[
        str | None, Field(description="What the user said to that answer, who may put it right.")
    ] = None
    memories: Annotated[
        _Ids,
        Field(
            description="Ids of the memories that are judged. Unless given: all that the recall showed."
        ),
    ] = []
    outcome: Annotated[
        Literal["success", "fail"] | None,
        Field(description="success: it helped. fail: it was wrong or misled."),
    ] = None


class ContextForm(_Form):
    task: Annotated[str, Field(description="What you are about to do, in a sentence or two.")]
    budget: Annotated[int, Field(ge=1, le=100_000, description="Tokens of the text, at most.")] = (
        1800
    )
    files: Annotated[_Words, Field(description="Paths that you are about to read or change.")] = []
    project: _Project = None
    session: _Session = None


class _Answer(BaseModel):
    """What a tool answers: frozen, and nothing in it steers a terminal, whichever server wrote it."""

    model_config = ConfigDict(frozen=True)

    @field_validator("*")
    @classmethod
    def _make_printable(cls, value: Any) -> Any:
        if isinstance(value, str):
            return printable(value)
        if isinstance(value, int) and value.bit_length() > 63:
            raise ValueError("the number has more than 64 bits")
        if isinstance(value, tuple):
            return tuple(printable(one) if isinstance(one, str) else one for one in value)
        return value


class Found(_Answer):
    """One memory that was found; what goes without saying (it is active, it has no tags) is not said."""

    id: int
    text: str
    kind: str
    created: str
    score: float
    status: str | None = None
    ref: Annotated[str | None, Field(description="The caller's own identifier.")] = None
    project: str | None = None
    speaker: str | None = None
    tags: tuple[str, ...] = ()
    probe: Annotated[bool, Field(description="Shown to learn about it, from below the best.")] = (
        False
    )

    @classmethod
    def of(cls, memory: Memory, *, score: float = 0.0, probe: bool = False) -> Found:
        """Return a memory as it is answered."""
        return cls(
            id=memory.id,
            text=memory.text,
            kind=memory.kind,
            created=f"{memory.created:%Y-%m-%d %H:%M} UTC",
            score=round(score, 4),
            status=None if memory.status == "active" else memory.status,
            ref=memory.ref,
            project=memory.project,
            speaker=memory.speaker,
            tags=memory.tags,
            probe=probe,
        )


class RememberAnswer(_Answer):
    id: Annotated[int, Field(description="The memory that stands for what was given.")]
    outcome: Annotated[str, Field(description="added, merged, skipped, replaced or unchanged")]
    text: str
    superseded: Annotated[tuple[int, ...], Field(description="Memories that are out of use now.")]
    redacted: Annotated[
        tuple[str, ...],
        Field(description="Kinds of secrets that were taken out before it was stored."),
    ]
    notes: Annotated[
        tuple[str, ...],
        Field(description="What a correction rebuilt and dropped besides the text."),
    ] = ()


class RecallAnswer(_Answer):
    recall: Annotated[
        int | None, Field(description="Its number, for feedback; null where nothing is logged.")
    ]
    note: str
    memories: tuple[Found, ...]
    known: Annotated[
        float | None, Field(description="The probability that they contain the answer.")
    ] = None
    off: Annotated[str | None, Field(description="Why memory is switched off.")] = None
    redacted: Annotated[
        tuple[str, ...], Field(description="Kinds of secrets that were taken out of the question.")
    ] = ()
    given_before: Annotated[
        tuple[int, ...], Field(description="Left out, as this session was given them before.")
    ] = ()


class ForgetAnswer(_Answer):
    forgotten: tuple[int, ...]
    unchanged: Annotated[tuple[int, ...], Field(description="What was out of use before.")]


class Injected(_Answer):
    """One memory that a context holds."""

    id: int
    tier: Annotated[
        int, Field(description="1: always there, 2: called up by the task, 3: more, cut")
    ]
    reason: str


class ContextAnswer(_Answer):
    recall: Annotated[
        int | None, Field(description="Its number, for feedback; null where nothing is logged.")
    ]
    text: Annotated[
        str, Field(description="What to know, marked as data; empty if there is nothing.")
    ]
    tokens: int
    memories: Annotated[tuple[Injected, ...], Field(description="In the order of the text.")]
    left_out: Annotated[int, Field(description="Memories that there was no room or no need for.")]


class Judged(_Answer):
    """One judgement as it was logged."""

    memory: int
    outcome: str
    recall: int | None


class Credited(_Answer):
    """What an answer owes to one memory."""

    memory: int
    reward: float | None
    status: Annotated[
        str, Field(description="logged, no say, stated (it was judged), known (credited before)")
    ]


class FeedbackAnswer(_Answer):
    judged: tuple[Judged, ...]
    credited: tuple[Credited, ...]
    notice: str | None = Field(
        None, description="A proposal for the user, who alone can carry it out."
    )


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model in few words: models read it with every request, and clients check answers by it.

    Left out are titles, which repeat names, and of what may be missing that it may also be null; definitions stand
    where they are used (a client takes 3 ms less to check the answer of a recall).
    """
    schema = model.model_json_schema()
    short: dict[str, Any] = _short(schema, schema.pop("$defs", {}))
    return short


def _short(node: Any, defined: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_short(one, defined) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _short(defined[node["$ref"].rpartition("/")[2]], defined)
    kept = {
        key: _short(value, defined)
        for key, value in node.items()
        if key != "title" or not isinstance(value, str)
    }
    if "default" in kept and kept["default"] is None:
        (given,) = (one for one in kept.pop("anyOf") if one != {"type": "null"})
        kept = given | {key: value for key, value in kept.items() if key != "default"}
    return kept


def faults_of(error: ValidationError, form: type[BaseModel]) -> str:
    """Return what is wrong with arguments, without the values: a client's text may be long."""
    said = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False)[
        :_MOST_FAULTS
    ]:
        where = ".".join(str(part)[:60] for part in fault["loc"])
        known = fault["type"] == "extra_forbidden"
        said.append(
            f'there is no argument "{where}". {did_you_mean(where, form.model_fields)}'
            if known
            else f"{where}: {fault['msg']}."
        )
    return " ".join(said)
