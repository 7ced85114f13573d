"""Policy studio: edit a policy, drag its numbers, and compare the ranks of queries before and after."""

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
from memlab.kernel.policies import SLOTS, PolicyLike, Version, get_slot
from memlab.subjects.lab import Lab
from memlab.subjects.lens import parametrize, vocabulary
from memlab.ui.widgets._explorer import explained
from memlab.ui.widgets._widget import Answer, arrow, synced
from memlab.ui.widgets.quality import RECALLED, Quality, ShowsQuality, describe_loss
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
    rebased_text,
    shown_moves,
    summed_moves,
    text_of,
)

_MOST_QUESTIONS = 50
"""Queries that are ranked after each keystroke within a tenth of a second."""
_NAME = re.compile(r"\w[\w.-]{0,99}")
"""A file name that a browser may choose: no folder, no hidden file."""


class PolicyStudio(ShowsQuality, bundle="studio"):
    """An editor of policies that ranks queries by the active policy and by the draft.

    If the lab has labelled questions, nDCG@10 and hit@5 before and after change with the ranks. Recalls of the studio
    are not logged. A draft becomes active when it is installed, and can then be rolled back. ``source``, ``slot`` and
    ``questions`` can also be set from Python.

    Parameters
    ----------
    lab
        The lab.
    questions
        At most 50 queries. Default: the ten latest of the log, or else of the labelled questions.
    slot
        The slot of the policy.
    source
        The draft to begin with, in any form that ``lab.policies.install`` takes. Default: the active policy.
    project, viewer
        As in ``lab.recall``.

    Attributes
    ----------
    policy
        The last valid draft.
    installed
        The version that this studio installed last.
    chosen
        The position of the query in the large chart.

    Examples
    --------
    >>> studio = memlab.widgets.PolicyStudio(lab, questions=["tabs or spaces?"])           # doctest: +SKIP
    >>> studio.moves.filter(pl.col("rank_after") <= 5)                                     # doctest: +SKIP
    """

    source = synced("")
    slot = synced("recall-score")
    questions = synced([str], maxlen=_MOST_QUESTIONS)
    chosen = synced(0, min=0)

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
        source: PolicyLike | None = None,
        project: str | None = None,
        viewer: str | None = None,
    ) -> None:
        get_slot(slot)
        self._seen = lab if viewer is None else lab.at(viewer=viewer)
        self._judge = Quality(lab, project=project, viewer=viewer, recalled=RECALLED)
        queries = (
            latest_questions(self._seen, 10, project=project) or self._judge.queries[:10]
            if questions is None
            else list(questions)
        )
        if len(queries) > _MOST_QUESTIONS:
            raise InputError(
                f"PolicyStudio shows at most {_MOST_QUESTIONS} queries, not {len(queries)}."
            )
        self._ranks = Ranks(lab, project=project, viewer=viewer, labelled=self._judge.labelled)
        self._drafts, self._loaded = dict[str, str](), slot
        self.installed: Version | None = None
        self.policy = lab.policies[slot] if source is None else lab.policies.check(slot, source)
        self._frame = moved(NOTHING, NOTHING)
        self._followed: tuple[object, ...] = ()
        self._file: Path | None = None
        super().__init__(
            lab, questions=queries, slot=slot, source=text_of(self.policy, lab.policies.pack)
        )
        self.observe(lambda _: self._follow(), names=["source", "questions", "slot"])
        self._check()

    @property
    def params(self) -> dict[str, float]:
        """The parameter values of the draft, by name."""
        return {name: param.value for name, param in self.policy.params.items()}

    @property
    def moves(self) -> pl.DataFrame:
        """The rank and score of every candidate before and after; null without a rank."""
        queries = pl.Series(self.questions, dtype=pl.String)
        texts = self.lab.memories.select(pl.col("id").cast(pl.Int64).alias("memory_id"), "text")
        moves = self._frame.with_columns(question=queries.gather(self._frame["question"]))
        return moves.join(texts, on="memory_id", how="left", maintain_order="left")

    @checked
    def save(self, path: str | Path) -> Path:
        """Write the text to a file that ``lab.policies.watch`` installs.

        Parameters
        ----------
        path
            A file that ends in ``.hy``. An existing file is overwritten only if this studio saved it.

        Returns
        -------
        Path
            The absolute path of the file.

        Raises
        ------
        InputError
            If the file exists, cannot be written or has another ending.
        """
        file = Path(path).expanduser().absolute()
        if file.suffix != ".hy":
            raise InputError(
                f"The name of a policy file must end in .hy, but {file.name} does not."
            )
        if file.exists() and file != self._file:
            raise InputError(f"{file.name} exists already. Choose another name.")
        try:
            file.write_text(self.source.rstrip() + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from None
        self._file = file
        self._note = f'Saved as {file.name}: lab.policies.watch("{file.name}", "{self.slot}") installs each later save.'
        return file

    def refresh(self) -> None:
        """Rank the queries again in the current lab."""
        self._check()

    def page(self) -> str:
        """Return the ranks of the first query as an HTML table."""
        if not self.questions:
            return super().page()
        top = self.moves.filter(
            (pl.col("question") == self.questions[0]) & (pl.col("rank_after") <= HEAD)
        )
        rows = top.select("rank_after", "rank_before", "text").rows()
        return super().page() + table(self.questions[0], ("after", "before", "memory"), rows)

    # -- what a browser asks ------------------------------------------------------------------------------------

    @checked
    def answer_check(self, source: str, view: str) -> None:
        """Compile the text from a browser page, and rank the queries with the policy."""
        with self.hold_sync():
            self._author = view
            # The observer need not check this text again.
            self._followed = self.slot, source, self.questions
            self.source = source
            self._check()

    @checked
    def answer_words(self) -> Answer:
        """Return the name, kind, shape and text of each word that the slot allows."""
        signature = get_slot(self.slot).signature
        features = [
            [feature.name, f"{feature.type} feature", feature.name, feature.doc]
            for feature in signature.inputs.values()
        ]
        return {"words": features + [list(word) for word in vocabulary()]}

    @checked
    def answer_explain(self, memory: int) -> Answer:
        """Explain the draft's score of one candidate."""
        if not self.chosen < len(self.questions):
            raise InputError("No query is selected. Select one first.")
        pack = self.lab.policies.pack.with_policy(self.slot, self.policy)
        return explained(self._ranks.hits(self.questions[self.chosen], pack).explain(memory))

    @checked
    def answer_text(self, of: Literal["live", "sliders"]) -> None:
        """Load the active policy, or the draft with parameters, into the editor."""
        if of == "live":
            self.source = text_of(self.lab.policies[self.slot], self.lab.policies.pack)
        else:
            self._refuse_broken()
            self.source = parametrize(self.policy).source

    @checked
    def answer_install(self, reason: str, *, sure: bool = False) -> Answer:
        """Install the draft as the policy of this slot, from the next recall on."""
        self._refuse_broken()
        return self._install(self.source, self.policy, reason, sure=sure)

    @checked
    def answer_rebase(self, reason: str, *, sure: bool = False) -> Answer:
        """Install the active text again, with the pack's current policy as (inherited)."""
        pack = self.lab.policies.pack
        text = rebased_text(pack.policies[self.slot], pack)
        if text is None:
            raise InputError(
                "In the active version, (inherited) is already the current policy of the pack."
            )
        follows = self.policy == pack.policies[self.slot]
        reason = reason.strip() or f"rebased on {pack.name}"
        answer = self._install(text, self.lab.policies.check(self.slot, text), reason, sure=sure)
        if follows and not answer:
            self.source = text
        return answer

    @checked
    def answer_rollback(self, reason: str) -> None:
        """Restore the policy that this slot had before."""
        follows = self.policy == self.lab.policies[self.slot]
        version = self.lab.policies.rollback(self.slot, reason=reason)
        if follows:
            self.source = text_of(version.policy, self.lab.policies.pack)
        self._done(f"Rolled back. Version {version.number} of {self.slot} is active.")

    @checked
    def answer_challenge(self, reason: str) -> None:
        """Compare the draft with the active pack: each recall returns one extra memory."""
        self._refuse_broken()
        pack = draft_pack(
            self.lab.policies.pack, self.slot, self.policy, f"studio-{self.policy.hash[:8]}"
        )
        self.lab.challenge(pack, reason=reason)
        self._done(
            f'{pack.name} is a challenger now. Recalls return one extra memory, and lab.verdict("{pack.name}") compares.'
        )

    @checked
    def answer_save(self, name: str) -> None:
        """Save the text in the notebook's folder."""
        if not _NAME.fullmatch(name):
            raise InputError(
                "A file name contains letters, digits, - and _, and no folder. Elsewhere, use studio.save(path)."
            )
        self.save(name if name.endswith(".hy") else f"{name}.hy")

    def _install(self, text: str, policy: Policy, reason: str, *, sure: bool) -> Answer:
        """Install a policy text; if scores would fall and ``sure`` is false, return the loss instead."""
        if not reason.strip():
            raise InputError("Type a reason first. It is recorded in the history.")
        pack = self.lab.policies.pack
        scores = self._judge.score_drafts(pack, pack.with_policy(self.slot, policy))
        if scores is not None and not sure and (loss := describe_loss(scores)):
            return {"loss": loss}
        self.installed = self.lab.policies.install(self.slot, text, reason=reason, compare=0)
        self._done(f"Version {self.installed.number} of {self.slot} is active.")
        return {}

    # -- checking and ranking -----------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Check the draft again if the slot, the text or the queries have changed."""
        if (self.slot, self.source, self.questions) == self._followed:
            return
        with self.faults_shown():
            if self.slot != self._loaded:
                live = self.lab.policies[self.slot]
                self._drafts[self._loaded] = self.source
                self._loaded, self.policy = self.slot, live
                with self.hold_trait_notifications():
                    self.source = self._drafts.get(self.slot) or text_of(
                        live, self.lab.policies.pack
                    )
                    self._followed = self.slot, self.source, self.questions
            self._author = ""
            self._check()

    def _check(self) -> None:
        """Compile the draft and rank the queries; after an error, keep the last ranks."""
        self._followed = self.slot, self.source, self.questions
        draft = read_draft(self.source, self.slot, self.lab.policies.pack)
        self.policy = draft.policy or self.policy
        with self.hold_sync():
            if draft.problem is None:
                self._params = draft.sliders
            live = self.lab.policies[self.slot]
            before, after = (
                self._ranks.under(self.slot, policy, self.questions)
                for policy in (live, self.policy)
            )
            self._frame = moved(before, after)
            self._moves = arrow(shown_moves(self._frame, self._ranks, self.questions))
            self._sums = summed_moves(self._frame, self.questions)
            active = self.lab.policies.pack
            packs = active, active.with_policy(self.slot, self.policy)
            self._quality = self._judge.describe(self.slot, *packs)
            self._describe(draft, live)
            self.fault = ""

    def _describe(self, draft: Draft, live: Policy) -> None:
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
            "rebase": self._describe_rebase(live),
        }

    def _describe_rebase(self, live: Policy) -> dict[str, Any] | None:
        """Return the pack to rebase the active version on and the quality after it, or None if no rebase is due."""
        pack = self.lab.policies.pack
        text = rebased_text(live, pack)
        if text is None:
            return None
        rebased = pack.with_policy(self.slot, self.lab.policies.check(self.slot, text))
        return {"pack": pack.name, "quality": self._judge.summarize(pack, rebased)}

    def _refuse_broken(self) -> None:
        if (problem := self._about["problem"]) is not None:
            raise InputError(f"Correct the text first: {problem['text']}")

    def _done(self, note: str) -> None:
        self._check()
        self._note = note
