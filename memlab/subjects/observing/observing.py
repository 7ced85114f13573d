"""Decide by the policy ``admit`` which utterances to store, and store them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import UnknownName
from memlab.kernel.base.clock import When
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.hooks import load_part
from memlab.kernel.policies import Pack
from memlab.kernel.privacy import screen
from memlab.kernel.schema import ROLES, infer_role
from memlab.kernel.state import (
    EVERYONE,
    hidden_rows,
    refuse_secret_values,
    validate_columns,
    validate_text,
)
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.gate import explain_off
from memlab.kernel.verbs.linking import Comparer, check_linking, get_comparer
from memlab.kernel.verbs.remembering.remember import Remembering
from memlab.kernel.verbs.remembering.rows import default_visibility
from memlab.kernel.verbs.results import Memory
from memlab.subjects.reading.acts import complete_answer, last_question
from memlab.subjects.reading.utterances import (
    DETECTORS,
    Utterance,
    kind_of,
    provenance_of,
    utterance,
)


@dataclass(frozen=True)
class Admission(Displayed):
    """The decision of the policy ``admit`` on one utterance.

    Attributes
    ----------
    text
        The utterance, with its secrets redacted.
    role
        The role of the speaker: "user", "assistant", "system" or "tool".
    worth
        The value of the policy, 0 to 1.
    admitted
        Whether ``worth`` reaches ``threshold``, so that the utterance is stored.
    reasons
        The names of the detectors that fired, such as "tells-preference". They are inputs of the
        slot ``admit``.
    confidence
        How clear the decision is, 0 to 1: ``worth`` if admitted, otherwise 1 minus ``worth``.
    threshold
        The pack's setting ``admit-threshold``.
    pack
        The name of the pack whose policy decided.
    pack_hash
        The hash of the pack whose policy decided.

    Examples
    --------
    >>> import memlab
    >>> admission = memlab.open().agents.admit("I prefer tabs")
    >>> admission.admitted, admission.reasons
    (True, ('tells-preference',))
    """

    text: str
    role: str
    worth: float
    admitted: bool
    reasons: tuple[str, ...]
    confidence: float
    threshold: float
    pack: str
    pack_hash: str

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row, which contains the decision and its reasons.

        The columns are ``role``, ``worth``, ``threshold``, ``admitted``, ``confidence``,
        ``reasons`` and ``text``.
        """
        return pl.DataFrame(
            {
                "role": [self.role],
                "worth": [self.worth],
                "threshold": [self.threshold],
                "admitted": [self.admitted],
                "confidence": [self.confidence],
                "reasons": [list(self.reasons)],
                "text": [self.text],
            },
            schema_overrides={"reasons": pl.List(pl.String)},
        )

    def __repr__(self) -> str:
        verdict = "admitted" if self.admitted else "not admitted"
        why = ", ".join(self.reasons) or "no detector fired"
        return printable(
            f"<Admission {verdict}: worth {self.worth:g} of {self.threshold:g}, {why}>"
        )


@dataclass(frozen=True)
class Observation(Displayed):
    """The outcome of observing an utterance; true if the utterance was stored.

    Attributes
    ----------
    admission
        The decision whether to store the utterance.
    memory
        The memory of the utterance; None if it was not stored.

    Examples
    --------
    >>> import memlab
    >>> observation = memlab.open().agents.observe("I prefer tabs")
    >>> bool(observation), observation.memory.text
    (True, 'I prefer tabs')
    """

    admission: Admission
    memory: Memory | None

    def __bool__(self) -> bool:
        return self.memory is not None

    def __repr__(self) -> str:
        outcome = "nothing was stored" if self.memory is None else f"memory {self.memory.id}"
        return printable(f"<Observation {outcome}; {repr(self.admission)[1:-1]}>")


class Observing:
    """Admission and storing of utterances in one lab."""

    def __init__(self, core: Core, remembering: Remembering) -> None:
        self._core, self._remembering = core, remembering

    def admit(
        self,
        text: str,
        *,
        role: str,
        project: str | None,
        viewer: str | None = None,
        asked: bool = False,
    ) -> Admission:
        """Return the decision of the pack's policy ``admit`` on an utterance.

        Parameters
        ----------
        text, role, project
            The utterance, the role of its speaker, and its project.
        viewer
            The viewer whose memories the utterance is compared with; None for all memories.
        asked
            Whether the utterance answers a question.
        """
        screened = screen(validate_text(text), personal=self._core.personal()).text
        with self._core.reading() as state:
            # While memory is off, the text is compared with nothing and sent to no embedder.
            off = explain_off(self._core.store, state, project) is not None
            near = None if off else get_comparer(self._core)
            return _decide_admission(
                self._core.pack,
                near,
                screened,
                utterance(screened, role, answers_question=asked),
                role,
                project,
                viewer,
            )

    def observe(
        self,
        text: str,
        *,
        role: str,
        at: When | None,
        chain: bool,
        linking: str | None,
        fields: dict[str, Any],
        before: str | None = None,
    ) -> Observation:
        """Store an utterance that the pack admits; see ``LabAgents.observe``."""
        # Fields are checked first, so that an invalid field is refused even if the utterance is not admitted.
        check_linking(linking)
        columns = validate_columns(
            {"text": [text], **{name: [value] for name, value in fields.items()}},
            now=self._core.store.clock(),
            open_words=self._core.open_words,
        )
        del columns["text"]
        refuse_secret_values(columns)
        load_part("check-operations")(columns.get("operations", ()))
        audience = self._find_audience(fields.get("creator"), fields.get("visibility"))
        question = self._question_before(fields) if before is None else last_question(before)
        answer = (
            None
            if question is None or role != "user"
            else complete_answer(question, validate_text(text))
        )
        if answer is not None and question is not None:
            fields.setdefault("context", f"{question} {text}")
            text = answer.text
        project, is_answer = fields.get("project"), question is not None
        admission = self.admit(text, role=role, project=project, viewer=audience, asked=is_answer)
        if not admission.admitted:
            return Observation(admission, None)
        fields.setdefault("provenance", provenance_of(role, admission.reasons))
        if (kind := kind_of(admission.reasons)) is not None:
            fields.setdefault("kind", kind)
        return Observation(
            admission,
            self._remembering.remember_one(
                text, at=at, chain=chain, linking=linking, fields=fields
            ),
        )

    def _question_before(self, fields: Mapping[str, Any]) -> str | None:
        """Return another speaker's question in the last turn, or None without a question."""
        # Only the very last message counts, because an answer follows its question directly.
        session = fields.get("session")
        if session is None:
            return None
        with self._core.reading() as state:
            last = state.last_in_session(fields.get("project"), session)
            if last is None or (
                (hidden := hidden_rows(state, EVERYONE)) is not None and hidden[last - 1]
            ):
                return None
            speaker, creator = (
                state.names[name].value_at(last - 1) for name in ("speaker", "creator")
            )
            text = state.texts.value_at(last - 1)
        own = infer_role(fields.get("speaker"), None if fields.get("speaker") else "user")
        other = infer_role(speaker, creator) != own or (
            own == "other" and speaker != fields.get("speaker")
        )
        return last_question(text) if other and text else None

    def _find_audience(self, creator: str | None, visibility: str | None) -> str:
        """Return the viewer whose memories are compared with an utterance.

        If the utterance will be private, its creator's private memories are compared too.
        """
        effective = visibility or default_visibility(creator, self._core.pack)
        return creator if creator is not None and effective == "private" else EVERYONE


def _decide_admission(
    pack: Pack,
    near: Comparer | None,
    text: str,
    parsed: Utterance,
    role: str,
    project: str | None,
    viewer: str | None,
) -> Admission:
    """Return the decision of a pack's policy ``admit`` on a parsed utterance."""
    if role not in ROLES:
        raise UnknownName("role", role, ROLES)
    policy, threshold = pack.policies["admit"], pack.number("admit-threshold")
    inputs: dict[str, Any] = {
        "role": np.array([role], dtype=object),
        "length": np.array([float(parsed.length)]),
        **{name: np.array([name in parsed.fired]) for name in DETECTORS},
    }
    if "nearest" in policy.inputs:
        nearest = None if near is None else near.nearest(text, project=project, viewer=viewer)
        inputs["nearest"] = (
            np.array([np.nan if nearest is None else nearest]),
            np.array([nearest is None]),
        )
    values, nulls = policy.arrays({name: inputs[name] for name in policy.inputs or ("length",)})
    unknown = (nulls is not None and bool(nulls[0])) or bool(np.isnan(values[0]))
    worth = 0.0 if unknown else float(np.clip(values[0], 0.0, 1.0))
    admitted = worth >= threshold
    return Admission(
        text=text,
        role=role,
        worth=worth,
        admitted=admitted,
        reasons=parsed.reasons,
        confidence=worth if admitted else 1.0 - worth,
        threshold=threshold,
        pack=pack.name,
        pack_hash=pack.hash,
    )
