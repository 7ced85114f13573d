"""``lab.context``: memories for a prompt, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.clock import When
from memlab.kernel.base.display import Displayed, clip, details, table
from memlab.kernel.base.printable import printable
from memlab.kernel.recall import Filters, Hits
from memlab.kernel.slates import Slate
from memlab.kernel.state import checked_text
from memlab.kernel.verbs.core import Core
from memlab.kernel.verbs.recalling.asking import Questions
from memlab.subjects.context.files import FileNames
from memlab.subjects.context.injection import Injection
from memlab.subjects.context.writing import Sheet

__all__ = ["Context", "Contexts"]

_SETTINGS = ("tier-1-tokens", "tier-2-tokens", "tier-3-tokens", "always-kinds", "limit")


@dataclass(frozen=True)
class Context(Displayed):
    """What an agent is to know for a task: ``text`` between marks, ``markdown`` as a quotation, or ``messages()``.

    Attributes
    ----------
    task
        What it was asked for.
    text
        The memories between marks, for a prompt; empty where there is nothing to say.
    markdown
        The same as a quotation in Markdown.
    tokens
        The tokens of ``text``, at four bytes each; neither they nor those of ``markdown`` are ever above ``budget``.
    budget
        The tokens that were allowed.
    hits
        The hits of the recall, exactly the memories that were injected: ``lab.feedback(context.hits[0], ...)`` and
        ``lab.agents.credits.answer(answer, context.hits)`` judge them.
    frame
        A row for each memory, in order: memory_id, tier (1 always, 2 for the task, 3 cut), form ("warning", "note" or
        "fact"), tokens (in the longer of the two texts), reason.
    left_out
        A row for each memory that could have been expected: memory_id, what (it is), why (it is not there).
    pack
        The name of the pack that decided.
    pack_hash
        The hash of that pack.
    seed
        The seed of the lab, which decides the probes.
    settings
        The settings of the pack that bound it: the tokens of the tiers, always-kinds and limit.
    modules
        The modules of the project's map (``lab.agents.modules``) that the task speaks of and the text describes.
    """

    task: str
    text: str
    markdown: str
    tokens: int
    budget: int
    hits: Hits = field(repr=False)
    frame: pl.DataFrame = field(repr=False, compare=False)
    left_out: pl.DataFrame = field(repr=False, compare=False)
    pack: str
    pack_hash: str
    seed: int
    settings: Mapping[str, float | bool | str] = field(repr=False)
    modules: tuple[str, ...] = ()

    @property
    def decision(self) -> int | None:
        """The number of the recall; None if it was not logged."""
        return self.hits.decision

    @property
    def slate(self) -> Slate:
        """The candidates of the recall with their features."""
        return self.hits.slate

    def messages(self) -> list[dict[str, str]]:
        """The text as one message of a conversation; none where there is nothing to say.

        Its role is "user", as what is remembered has no more say than who said it.
        """
        return [{"role": "user", "content": self.text}] if self.text else []

    def __len__(self) -> int:
        """How many memories it holds."""
        return len(self.frame)

    def __bool__(self) -> bool:
        """True: it is there even where it holds nothing."""
        return True

    def __str__(self) -> str:
        return printable(self.text)

    @property
    def _summary(self) -> str:
        place = "not logged" if self.decision is None else f"recall {self.decision}"
        left = f", {len(self.left_out)} left out" if len(self.left_out) else ""
        return (
            f"{len(self)} memories for {clip(self.task)!r}, {self.tokens} of {self.budget} tokens{left}; {place}, pack "
            f"{self.pack} [{self.pack_hash[:12]}]"
        )

    def __repr__(self) -> str:
        return printable(f"<Context: {self._summary}>\n{self.text}")

    def _display(self) -> object:
        texts = {hit.id: hit.text for hit in self.hits}
        rows = [
            (
                row["tier"],
                row["memory_id"],
                row["form"],
                row["tokens"],
                row["reason"],
                clip(texts[row["memory_id"]], 200),
            )
            for row in self.frame.iter_rows(named=True)
        ]
        whole = table(self._summary, ("tier", "id", "form", "tokens", "reason", "memory"), rows)
        left = table("", ("id", "what", "why"), self.left_out.rows())
        more = details(f"{len(self.left_out)} left out", left) if len(self.left_out) else None
        lines = table("", ("",), [(line,) for line in self.text.splitlines()])
        return whole, more, details("as text", lines)


class Contexts:
    """The contexts that are asked of one lab."""

    def __init__(self, core: Core, questions: Questions) -> None:
        self._core, self._questions, self._files = core, questions, FileNames()

    def make(
        self,
        task: str,
        *,
        budget: int,
        session: str | None,
        project: str | None,
        files: str | Sequence[str],
        viewer: str | None,
        at: When | None,
        log: bool,
    ) -> Context:
        """What is to be known for a task; see ``Lab.context``."""
        named = [files] if isinstance(files, str) else list(files)
        for file in named:
            if not file.strip():
                raise InputError("files are paths such as src/auth.py; one of them is empty.")
            checked_text(file, where="files")
        injection = Injection(self._files, budget)
        hits = self._questions.ask(
            "\n".join([task, " ".join(named)] if named else [task]),
            limit=None,
            project=project,
            session=session,
            filters=Filters.of(viewer=viewer),
            at=at,
            log=log and Sheet(budget).holds_any,
            use=injection,
        )
        sheet, pack = injection.sheet, hits.pack
        return Context(
            task=task,
            text=sheet.text,
            markdown=sheet.markdown,
            tokens=sheet.tokens,
            budget=budget,
            hits=hits,
            frame=injection.frame,
            left_out=injection.left_out
            if hits.off is None
            else pl.DataFrame([(None, "all memories", hits.off)], schema=injection.left_out.schema, orient="row"),
            pack=pack.name,
            pack_hash=pack.hash,
            seed=self._core.seed,
            settings={name: pack.settings[name] for name in _SETTINGS},
            modules=injection.modules,
        )
