"""Policy studio: edit a policy, drag its numbers, and see how questions are ranked before and after."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.display import table
from memlab.kernel.language import Policy
from memlab.kernel.policies import SLOTS, Version, get_slot
from memlab.subjects.lab import Lab
from memlab.subjects.lens import parametrize, vocabulary
from memlab.ui.widgets._explorer import explained
from memlab.ui.widgets._widget import Widget, arrow, synced
from memlab.ui.widgets.ranks import (
    DECIDES_RANKS,
    HEAD,
    NOTHING,
    Draft,
    Ranks,
    draft_pack,
    latest_questions,
    moved,
    read_draft,
    shown_moves,
    summed_moves,
    text_of,
)

__all__ = ["PolicyStudio"]

_MOST_QUESTIONS = 50
_NAME = re.compile(r"\w[\w.-]{0,99}")


class PolicyStudio(Widget, bundle="studio"):
    """Edit the policy of a slot while questions are ranked by it: before, as the live one has them, and after.

    ``questions`` (at most 50) are asked of all that may be recalled now, without a trace; unless given they are the ten
    that the lab was asked last. ``project`` and ``viewer`` are as in a recall. Nothing is live before it is installed,
    and then it can be rolled back.

    ``source``, ``slot`` and ``questions`` can be set from Python as well. ``params`` are the values in the text,
    ``policy`` the last draft that compiled, ``moves`` the ranks of its candidates before and after, ``installed`` the
    version that was installed here last.

    >>> studio = memlab.widgets.PolicyStudio(lab, questions=["tabs or spaces?"])           # doctest: +SKIP
    >>> studio.moves.filter(pl.col("rank_after") <= 5)                                     # doctest: +SKIP
    """

    source = synced("")
    slot = synced("recall-score")
    questions = synced([str], maxlen=_MOST_QUESTIONS)
    chosen = synced(0, min=0)
    """The place of the question that is drawn large."""

    _author = synced("")
    _moves = synced(b"")
    _sums = synced([])
    _params = synced([])
    _about = synced({})
    _note = synced("")

    @checked
    def __init__(
        self,
        lab: Lab,
        *,
        questions: Sequence[str] | None = None,
        slot: str = "recall-score",
        project: str | None = None,
        viewer: str | None = None,
    ) -> None:
        get_slot(slot)
        self._seen = lab if viewer is None else lab.at(viewer=viewer)
        given = (
            latest_questions(self._seen, 10, project=project)
            if questions is None
            else list(questions)
        )
        if len(given) > _MOST_QUESTIONS:
            raise InputError(
                f"PolicyStudio shows at most {_MOST_QUESTIONS} questions, not {len(given)}."
            )
        self._ranks = Ranks(lab, project=project, viewer=viewer)
        self._drafts, self._loaded = dict[str, str](), slot
        self.installed: Version | None = None
        self.policy, self._frame = lab.policies[slot], moved(NOTHING, NOTHING)
        self._followed: tuple[object, ...] = ()
        self._file: Path | None = None
        super().__init__(lab, questions=given, slot=slot, source=text_of(self.policy))
        self.observe(lambda _: self._follow(), names=["source", "questions", "slot"])
        self._check()

    @property
    def params(self) -> dict[str, float]:
        """The values of the draft's parameters."""
        return {name: one.value for name, one in self.policy.params.items()}

    @property
    def moves(self) -> pl.DataFrame:
        """Every candidate: question, memory_id, rank and score before and after, text; null where it is none."""
        asked = pl.Series(self.questions, dtype=pl.String)
        texts = self.lab.memories.select(pl.col("id").cast(pl.Int64).alias("memory_id"), "text")
        named = self._frame.with_columns(question=asked.gather(self._frame["question"]))
        return named.join(texts, on="memory_id", how="left", maintain_order="left")

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the text to a ``.hy`` file, for ``lab.policies.watch(path, slot)``.

        A file that is there is not overwritten, unless it was saved here before.
        """
        file = Path(path).expanduser().absolute()
        if file.suffix != ".hy":
            raise InputError(f"A policy is saved in a file that ends in .hy, not in {file.name}.")
        if file.exists() and file != self._file:
            raise InputError(f"{file.name} is there already: choose another name.")
        try:
            file.write_text(self.source.rstrip() + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from None
        self._file = file
        self._note = f'Saved as {file.name}: lab.policies.watch("{file.name}", "{self.slot}") makes each save of it live.'
        return file

    def refresh(self) -> None:
        """Rank again, in the lab as it is now."""
        self._check()

    def page(self) -> str:
        """What moved in the first question, as a table."""
        if not self.questions:
            return super().page()
        shown = self.moves.filter(
            (pl.col("question") == self.questions[0]) & (pl.col("rank_after") <= HEAD)
        )
        rows = shown.select("rank_after", "rank_before", "text").rows()
        return super().page() + table(self.questions[0], ("after", "before", "memory"), rows)

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_check(self, source: str, view: str) -> None:
        """Compile what was typed in one view, and rank by it."""
        with self.hold_sync():
            self._author = view
            self._followed = self.slot, source, self.questions  # observers need not check it again
            self.source = source
            self._check()

    @checked
    def answer_words(self) -> dict[str, Any]:
        """What can be written in this slot: features, forms and helpers, as ``name, kind, how it is written, doc``."""
        signature = get_slot(self.slot).signature
        features = [
            [one.name, f"{one.type} feature", one.name, one.doc]
            for one in signature.inputs.values()
        ]
        return {"words": features + [list(word) for word in vocabulary()]}

    @checked
    def answer_explain(self, memory: int) -> dict[str, Any]:
        """Terms, features and the whole computation of a candidate of the chosen question, by the draft."""
        if not self.chosen < len(self.questions):
            raise InputError("No question is chosen.")
        pack = self.lab.policies.pack.with_policy(self.slot, self.policy)
        return explained(self._ranks.hits(self.questions[self.chosen], pack).explain(memory))

    @checked
    def answer_text(self, of: Literal["live", "sliders"]) -> None:
        """Put another text in the editor: the live policy's, or the draft with its numbers as parameters."""
        if of == "live":
            self.source = text_of(self.lab.policies[self.slot])
        else:
            self._refuse_broken()
            self.source = parametrize(self.policy).source

    @checked
    def answer_install(self, reason: str) -> None:
        """Make the draft live."""
        self._refuse_broken()
        if not reason.strip():
            raise InputError("Say why it is installed: the reason stands in the history.")
        self.installed = self.lab.policies.install(self.slot, self.source, reason=reason)
        self._done(f"Version {self.installed.number} of {self.slot} is live.")

    @checked
    def answer_rollback(self, reason: str) -> None:
        """Bring back the policy before the live one; the editor follows if nothing else was typed."""
        follows = self.policy == self.lab.policies[self.slot]
        version = self.lab.policies.rollback(self.slot, reason=reason)
        if follows:
            self.source = text_of(version.policy)
        self._done(f"Rolled back: version {version.number} of {self.slot} is live.")

    @checked
    def answer_challenge(self, reason: str) -> None:
        """Let the draft stand beside the live pack from the next recall on."""
        self._refuse_broken()
        pack = draft_pack(
            self.lab.policies.pack, self.slot, self.policy, f"studio-{self.policy.hash[:8]}"
        )
        self.lab.challenge(pack, reason=reason)
        self._done(
            f'{pack.name} is a challenger: recalls show one memory more, and lab.verdict("{pack.name}") compares.'
        )

    @checked
    def answer_save(self, name: str) -> None:
        """Save beside the notebook, under a name without folders."""
        if not _NAME.fullmatch(name):
            raise InputError(
                "A name without folders is needed, of letters, digits, - and _; in Python, studio.save(path)."
            )
        self.save(name if name.endswith(".hy") else f"{name}.hy")

    # -- checking and ranking -----------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Check what was set and not checked yet; another slot has a draft of its own."""
        if (self.slot, self.source, self.questions) == self._followed:
            return
        with self.faults_shown():
            if self.slot != self._loaded:
                live = self.lab.policies[self.slot]
                self._drafts[self._loaded] = self.source
                self._loaded, self.policy = self.slot, live
                with self.hold_trait_notifications():
                    self.source = self._drafts.get(self.slot) or text_of(live)
                    self._followed = self.slot, self.source, self.questions
            self._author = ""
            self._check()

    def _check(self) -> None:
        """Compile the text; where it is broken, the last policy and its ranks stay."""
        self._followed = self.slot, self.source, self.questions
        draft = read_draft(self.source, self.slot)
        self.policy = draft.policy or self.policy
        with self.hold_sync():
            if draft.problem is None:
                self._params = draft.sliders
            live = self.lab.policies[self.slot]
            before, after = (
                self._ranks.under(self.slot, one, self.questions) for one in (live, self.policy)
            )
            self._frame = moved(before, after)
            self._moves = arrow(shown_moves(self._frame, self._ranks))
            self._sums = summed_moves(self._frame, self.questions)
            self._say(draft, live)
            self.fault = ""

    def _say(self, draft: Draft, live: Policy) -> None:
        lab = self.lab
        versions = lab.policies.history(self.slot)
        pin = lab.policies.pins.get(self.slot)
        self._about = {
            "problem": draft.problem,
            "hash": self.policy.hash[:12],
            "live": int(versions["version"][-1]),
            "same": self.policy == live,
            "meaning": self.policy.meaning_hash == live.meaning_hash,
            "back": versions["hash"].n_unique() > 1,
            "pinned": None if pin is None else pin.number,
            "writable": not lab.io.store.journal.read_only,
            "ranks": self.slot in DECIDES_RANKS,
            "numbers": draft.numbers,
            "pack": lab.policies.pack.name,
            "memories": len(self._seen),
            "slots": list(SLOTS),
            "doc": SLOTS[self.slot].doc,
        }

    def _refuse_broken(self) -> None:
        if (problem := self._about["problem"]) is not None:
            raise InputError(f"The text has an error first: {problem['text']}")

    def _done(self, note: str) -> None:
        self._check()
        self._note = note
