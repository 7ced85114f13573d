"""Remembering: texts are screened, embedded, linked if the pack says so, and stored in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.clock import When
from memlab.kernel.english import complete_answer, last_question
from memlab.kernel.hooks import hooks, load_part
from memlab.kernel.privacy import Finding, screen, screen_many
from memlab.kernel.schema import role_of
from memlab.kernel.state import (
    EVERYONE,
    Change,
    checked_columns,
    checked_text,
    columns_of,
    hidden_from,
    redactions,
    refuse_names,
    with_speaker,
)
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.fact_rows import named
from memlab.kernel.verbs.gate import check_on, why_off
from memlab.kernel.verbs.linking.comparing import Comparing, check_linking, linking_of
from memlab.kernel.verbs.linking.linked import Linked
from memlab.kernel.verbs.linking.linker import Linker
from memlab.kernel.verbs.remembering.admission import Admission, Observation, admission
from memlab.kernel.verbs.remembering.body import (
    chained,
    chosen,
    only,
    remembering,
    with_first,
    with_visibility,
    without,
)
from memlab.kernel.verbs.remembering.detectors import kind_of, provenance_of, utterance
from memlab.kernel.verbs.remembering.inferred import names_in_texts, with_feeling, with_inferred
from memlab.kernel.verbs.remembering.known import Known
from memlab.kernel.verbs.remembering.limits import check_bytes, check_files, check_sessions
from memlab.kernel.verbs.remembering.tellings import tellings_of
from memlab.kernel.verbs.results import Memory, Remembered, with_redacted

__all__ = ["Remembering"]


def _nothing_near(text: str, *, project: str | None) -> None:
    """Nothing is known, as nothing may be asked."""


class Remembering:
    """How one lab remembers. ``linker`` is woken for what is to be linked in the background."""

    def __init__(self, core: Core, linker: Linker) -> None:
        self._core, self._linker = core, linker

    def one(self, text: str, *, at: When | None, chain: bool, linking: str | None, fields: Mapping[str, Any]) -> Memory:
        """The memory that represents one text; see ``Lab.remember``."""
        row = {"text": text, **fields}
        if at is not None:
            row["at"] = at
        return self.alone(self.many([row], chain=chain, linking=linking))

    def alone(self, remembered: Remembered) -> Memory:
        """The memory of a call that gave one text; warns of what was taken out of it."""
        return with_redacted(self._core.memory(remembered.standing[0]), [found for _, found in remembered.redacted])

    def many(
        self,
        rows: Iterable[Mapping[str, Any] | str] | pl.DataFrame,
        *,
        chain: bool,
        linking: str | None,
        known: Known | None = None,
        succeed: bool = False,
    ) -> Remembered:
        """All of ``rows`` or, where one is refused, none; see ``Lab.remember``.

        ``known`` leaves out what is here already. ``succeed``: facts among them end older ones; see ``succession``.
        """
        columns = columns_of(rows)
        count = len(next(iter(columns.values()), ()))
        check_linking(linking)
        if not count:
            return self._remembered(range(0), ())
        store = self._core.store
        now = store.clock()
        given = columns
        columns = checked_columns(columns, now=now, open_words=self._core.open_words)
        if "purged" in columns.get("status", ()):
            row = columns["status"].index("purged")
            raise InputError(
                f"Row {row}: a new memory cannot have the status purged; see lab.forget(how='delete') and lab.purge."
            )
        screenings = screen_many(columns.pop("text"), personal=self._core.personal())
        texts = [screening.text for screening in screenings]
        refuse_names(columns)
        if "operations" in columns:
            load_part("check-operations")(columns["operations"])
        if known is not None:
            with store.reading() as state:
                kept = known.fresh(state, columns, texts)
            if not kept.any():
                return self._remembered(range(0), ())
            columns, given = only(kept, columns), only(kept, given)
            texts, screenings, count = chosen(texts, kept), chosen(screenings, kept), int(kept.sum())
        with store.reading() as state:  # an embedder may be elsewhere: it is not sent what will be refused
            check_on(store, state, columns.get("project", [None]))
        speakers = columns.get("speaker") or [None] * count
        with self._core.latencies.measured("embedding"):
            vectors = store.embedder.encode([with_speaker(*pair) for pair in zip(texts, speakers, strict=True)])
        linked: Linked | None = None
        told: list[dict[str, Any]] = []
        with self._core.latencies.measured("write"), store.writing() as tx:
            state, pack = store.state, store.versions.pack
            if known is not None and not (kept := known.still(state)).all():
                columns, given, speakers = only(kept, columns), only(kept, given), chosen(speakers, kept)
                texts, screenings, vectors = chosen(texts, kept), chosen(screenings, kept), vectors[kept]
                count = int(kept.sum())
            check_on(store, state, columns.get("project", [None]))
            check_files(pack, columns)
            first, how = tx.next_id, linking_of(pack, linking, columns)
            columns = with_feeling(columns, without(given, "emotional_weight", count), texts)
            for name in ("confidence", "strength"):
                with_first(name, columns, without(given, name, count), pack)
            if "creator" in columns:
                with_visibility(columns, without(given, "visibility", count), pack)
                check_bytes(pack, columns, texts)
            columns = named(state, pack, columns)
            if how == "now":
                edges = chained(state, columns, first, count) if chain else None
                linked = Comparing(self._core).before(columns, edges, texts, vectors, first=first, now=now)
                told = tellings_of(linked, columns, now)
                if linked.texts:
                    personal = self._core.personal()
                    texts = [
                        screen(linked.texts[row], personal=personal).text if row in linked.texts else text
                        for row, text in enumerate(texts)
                    ]
                    changed = list(linked.texts)
                    said = [with_speaker(texts[row], speakers[row]) for row in changed]
                    vectors[changed] = store.embedder.encode(said)
                    if "summary" in columns:  # what was given sums up one of the two texts
                        kept_of = columns["summary"]
                        columns["summary"] = [None if row in linked.texts else kept_of[row] for row in range(count)]
                if not (kept := linked.added).all():
                    columns = only(kept, columns)
                    texts, vectors, count = chosen(texts, kept), vectors[kept], int(kept.sum())
            columns = with_inferred(pack, columns, texts)
            if "creator" in columns:
                check_sessions(state, pack, columns, count)
            ids = range(first, first + count)
            standing: Sequence[int] = ids if linked is None else linked.standing
            findings = tuple(
                (standing[row], found) for row, screening in enumerate(screenings) for found in screening.findings
            )
            if count:
                names = names_in_texts(state, pack, columns, texts)
                body = remembering(state, columns, first, count, chain=chain, named_in=names) | redactions(findings)
                tx.payloads(ids, texts)
                tx.vectors(first, store.embedder.fingerprint, vectors)
                tx.event("remember", {**body, "waits": True} if how == "later" else body, at=now)
            change = Change() if linked is None else linked.change
            times = [] if linked is None else linked.fact_times
            gone = frozenset() if linked is None else {goes for _, _, goes, _ in linked.superseded}
            for ended_by in hooks("facts-stored") if succeed else ():
                succeeded = ended_by(state, pack, columns, ids, gone=gone, told=times, now=now)
                change += succeeded.change
                again = {id for id, _, _ in succeeded.fact_times}
                times = [*(one for one in times if one[0] not in again), *succeeded.fact_times]
            if change or told or times:
                more = {"tellings": told} if told else {}
                tx.event("link", {**change.body(), **more, **({"fact_times": times} if times else {})}, at=now)
        store.snapshot_if_due()
        if how == "later":
            self._linker.wake()
        return self._remembered(ids, findings, linked=linked, waits=how == "later")

    def _remembered(
        self,
        ids: range,
        redacted: tuple[tuple[int, Finding], ...],
        *,
        linked: Linked | None = None,
        waits: bool = False,
    ) -> Remembered:
        return Remembered(self._core.memory, self._core.memories, ids, redacted, linked=linked, waits=waits)

    def admit(
        self, text: str, *, role: str, project: str | None, viewer: str | None = None, asked: bool = False
    ) -> Admission:
        """Whether the pack admits an utterance, beside the memories that ``viewer`` sees (None: all).

        ``asked``: it answers a question.
        """
        screened = screen(checked_text(text), personal=self._core.personal()).text
        with self._core.reading() as state:
            near: Callable[..., float | None] = partial(Comparing(self._core).nearest, viewer=viewer)
            if why_off(self._core.store, state, project) is not None:
                near = _nothing_near  # what is off is compared with nothing, and no embedder is sent it
            return admission(
                self._core.pack, near, screened, utterance(screened, role, asked=asked), role=role, project=project
            )

    def _question_before(self, fields: Mapping[str, Any]) -> str | None:
        """The question of somebody else with which a session ended before an utterance of it; None without one."""
        session = fields.get("session")
        if session is None:
            return None
        with self._core.reading() as state:
            last = state.last_of(fields.get("project"), session)
            if last is None or ((hidden := hidden_from(state, EVERYONE)) is not None and hidden[last - 1]):
                return None
            speaker, creator = (state.names[name].at(last - 1) for name in ("speaker", "creator"))
            text = state.texts.at(last - 1)
        own = role_of(fields.get("speaker"), None if fields.get("speaker") else "user")
        other = role_of(speaker, creator) != own or (own == "other" and speaker != fields.get("speaker"))
        return last_question(text) if other and text else None

    def _sees(self, creator: str | None, visibility: str | None) -> str:
        """Return whose memories an utterance is compared with: those of its creator too if it will be private."""
        whose: dict[str, list[Any]] = {"creator": [creator]}
        with_visibility(whose, (0,), self._core.pack)
        said = visibility or whose.get("visibility", [None])[0]
        return creator if creator is not None and said == "private" else EVERYONE

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
        """``admit``, then ``one`` if it is admitted; see ``Lab.observe``."""
        check_linking(linking)
        given = checked_columns(
            {"text": [text], **{name: [value] for name, value in fields.items()}},
            now=self._core.store.clock(),
            open_words=self._core.open_words,
        )
        del given["text"]
        refuse_names(given)
        load_part("check-operations")(given.get("operations", ()))
        own = self._sees(fields.get("creator"), fields.get("visibility"))
        question = self._question_before(fields) if before is None else last_question(before)
        answer = None if question is None or role != "user" else complete_answer(question, checked_text(text))
        if answer is not None and question is not None:
            fields.setdefault("context", f"{question} {text}")
            text = answer.text
        project, asked = fields.get("project"), question is not None
        found = self.admit(text, role=role, project=project, viewer=own, asked=asked)
        if not found.admitted:
            return Observation(found, None)
        fields.setdefault("provenance", provenance_of(role, found.reasons))
        if (kind := kind_of(found.reasons)) is not None:
            fields.setdefault("kind", kind)
        return Observation(found, self.one(text, at=at, chain=chain, linking=linking, fields=fields))
