"""The evidence about a parent for a proposer, and checks of the proposer's answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

from memlab.errors import MemlabError
from memlab.kernel.language import Policy
from memlab.subjects.lens.packing import text_of
from memlab.subjects.models import LanguageModel

_MAX_LENGTH = 20_000
"""The maximum length of a proposed text in characters. The shipped policy has 3,500."""
_ANSWER_TOKENS = 2_000
"""The maximum number of tokens of a model's answer, 2.5 times what the shipped policy takes."""

# What a language model is told: the form of the answer, and the operations that bred programs use.
_INSTRUCTIONS = """You improve the ranking policy of a memory store. A policy is an S-expression that
returns a number for each candidate; candidates are shown by descending number. Answer with one form
(fn [feature ...] expression) and nothing else. List each feature that you read. Read the listed features
only. Available: + - * / ** min max abs sqrt log log1p exp tanh sigmoid clamp if and or not < <= > >= = let,
and over the candidates of a query: min-max slate-min slate-max slate-mean slate-rank. (if-null x 0)
replaces missing values."""

Proposer: TypeAlias = Callable[[Policy, "ParentEvidence"], Any]
"""A function from a parent and its evidence to the text of a new policy."""


@dataclass(frozen=True)
class ParentEvidence:
    """The evidence about a parent from the search part of the data.

    Parameters
    ----------
    value
        The value of the parent on the search part.
    metric
        The name of the value.
    features
        The features that a proposal may read, with their descriptions. They are those of the slot
        and of registered extensions that the data have.
    refusals
        Why earlier proposals were refused. A text that does not compile has its line with a caret.
    """

    value: float
    metric: str
    features: Mapping[str, str] = field(repr=False)
    refusals: tuple[str, ...]
    _describe: Callable[[], tuple[Mapping[str, int], tuple[str, ...], tuple[str, ...]]] = field(
        repr=False
    )

    # Cached: these sentences take a second, and a proposer that only needs the value does not read them.
    @cached_property
    def _details(self) -> tuple[Mapping[str, int], tuple[str, ...], tuple[str, ...]]:
        return self._describe()

    @property
    def failures(self) -> Mapping[str, int]:
        """The number of wanted memories lost at each stage."""
        return self._details[0]

    @property
    def worst(self) -> tuple[str, ...]:
        """Sentences about the decisions with the worst results."""
        return self._details[1]

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates that the parent does not pass on a log of feedback."""
        return self._details[2]

    @property
    def text(self) -> str:
        """The evidence in words, for the prompt of a language model."""
        parts: list[tuple[str, Sequence[str]]] = [
            ("Value", [f"{self.metric} = {self.value:.4f} on the search part"]),
            ("Wanted memories", [f"{stage}: {count}" for stage, count in self.failures.items()]),
            ("Worst decisions", self.worst),
            ("Closed gates", self.gates),
            ("Refused proposals", self.refusals),
            ("Features", [f"{name}: {doc}" for name, doc in self.features.items()]),
        ]
        return "\n\n".join(f"{title}:\n" + "\n".join(lines) for title, lines in parts if lines)


class Refusal(Exception):
    """A proposal that is not used, with the reason."""


def model_proposer(model: LanguageModel) -> Proposer:
    """Return a proposer that asks a language model."""

    def propose(parent: Policy, evidence: ParentEvidence) -> str:
        """Return the policy in the model's answer."""
        answer = model.ask(
            _INSTRUCTIONS,
            f"The policy now:\n{text_of(parent)}\n\n{evidence.text}",
            length=_ANSWER_TOKENS,
        )
        block = re.search(r"```[a-z]*\n(.*?)```", str(answer), re.DOTALL)
        return block[1] if block else str(answer)

    return propose


def call_proposer(
    propose: Proposer,
    parent: Policy,
    evidence: ParentEvidence,
    compile: Callable[[str], Policy],
    seconds: float,
) -> Policy:
    """Call a proposer and return its policy; raise Refusal with the reason for a bad answer.

    The proposer runs in a thread. A thread cannot be ended, so one that exceeds the limit is left
    behind, and its answer is not read.
    """
    answers: SimpleQueue[Any] = SimpleQueue()

    def run() -> None:
        """Put the answer or the exception of the proposer into the queue."""
        try:
            answers.put(propose(parent, evidence))
        except BaseException as error:  # noqa: BLE001 - also exit(): it becomes the reason of a refusal
            answers.put(error)

    Thread(target=run, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        raise Refusal(f"The proposer did not answer within {seconds:g} s.") from None
    if isinstance(answer, BaseException):
        raise Refusal(
            f"The proposer raised {type(answer).__name__}: {str(answer)[:500]}"
        ) from answer
    if isinstance(answer, Policy):
        answer = text_of(answer)
    if not isinstance(answer, str):
        raise Refusal(
            f"The proposer returned {type(answer).__name__}. Return the text of a policy."
        )
    if len(answer) > _MAX_LENGTH:
        raise Refusal(f"The proposal has {len(answer):,} characters, above {_MAX_LENGTH:,}.")
    try:
        policy = compile(answer)
    except MemlabError as error:
        raise Refusal(str(error)) from error
    if policy.meaning_hash == parent.meaning_hash:
        raise Refusal("The proposal computes the same as its parent.")
    return policy
