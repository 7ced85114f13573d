"""``memlab try``: the first ten minutes on a page, on a sample lab and on the user's own data."""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import InputError
from memlab.kernel.base.arguments import checked
from memlab.subjects.io.results import Loaded
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab
from memlab.ui.demo._sample import sample_lab
from memlab.ui.widgets import (
    MemoryTable,
    Overview,
    PolicyStudio,
    QuestionList,
    RecallExplorer,
    RecallLog,
    VersionTimeline,
    Widget,
)
from memlab.ui.widgets.view import Page, serve_page

_LARGEST = 700_000
"""Bytes of a dropped file: in base64 it fits one message of a page, which has at most a mebibyte."""
_PROPOSED = 20
"""Questions proposed on the user's own data, as many as a person ticks in two minutes."""
_ASKED = 10
"""Questions of the studio, as many as fit its page."""
# Versions that someone installed after the pack's own.
_LATER = pl.col("version") > 1
# The end and the beginning of a notebook cell.
_STUDIO = "memlab.widgets.PolicyStudio(lab)\n"
_SAMPLE = "from memlab.ui.demo import sample_lab\n\nlab = sample_lab()\n"


class Trial:
    """The lab of ``memlab try``: the sample until a file is read, then the user's own data.

    ``path`` is the directory of the user's lab; None keeps it in memory.
    """

    def __init__(self, path: Path | None = None, file: Path | None = None) -> None:
        self.path = path
        self.files: list[str] = []
        self.loaded: Loaded | None = None
        self.lab: Lab | None = None
        self.switched: Callable[[], None] = lambda: None
        if file is not None:
            self.load(file, str(file))

    @property
    def current(self) -> Lab:
        """The lab that the page shows."""
        if self.lab is None:
            self.lab = sample_lab()
        return self.lab

    def load(self, file: Path, name: str) -> None:
        """Read a file into the user's lab, replacing the sample, and propose questions."""
        own = self.loaded is not None
        lab = self.current if own else open_lab(self.path)
        try:
            loaded = lab.load(file)
            if not len(lab):
                raise InputError(f"No message was found in {file.name}. Try another file.")
        except BaseException:
            if not own:
                lab.close()
            raise
        lab.questions.propose(_PROPOSED)
        self.lab, self.loaded = lab, loaded
        self.files.append(name)
        self.switched()

    @property
    def cell(self) -> str:
        """Python code that rebuilds the state of this lab in a notebook."""
        lab = self.current
        lines = ["import memlab"]
        if self.loaded is None:
            lines.append(_SAMPLE)
        elif self.path is not None:
            return f"import memlab\n\nlab = memlab.open({str(self.path)!r})\n{_STUDIO}"
        else:
            accepted = lab.questions.frame.filter("accepted").select("query", "wants").to_dicts()
            lines += ["", 'lab = memlab.open()  # memlab.open("my.memlab") keeps it']
            lines += [f"lab.load({name!r})" for name in self.files]
            if accepted:
                rows = "".join(f"    {row!r},\n" for row in accepted)
                lines.append(f"lab.questions.add([\n{rows}])")
        changed = lab.policies.history().filter("live", _LATER)
        for slot, reason in changed.select("slot", "reason").rows():
            source = lab.policies[slot].source
            lines.append(f"lab.policies.install({slot!r}, {source!r}, reason={reason!r})")
        return "\n".join(lines) + "\n" + _STUDIO

    def make(self, kind: type[Widget]) -> Widget:
        """Return a widget of the current lab; a studio gets the questions with the worst ranks."""
        lab = self.current
        if kind is FirstMinutes:
            return FirstMinutes(self)
        if kind is PolicyStudio and len(lab.questions):
            ranks = lab.score(metrics="hit@5").ranks.sort("active", descending=True)
            return PolicyStudio(lab, questions=list(dict.fromkeys(ranks["query"]))[:_ASKED])
        return kind(lab)


class FirstMinutes(Overview):
    """The overview of ``memlab try``, which also reads a file of the user."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        super().__init__(trial.current)
        loaded = trial.loaded
        self._offer = {"note": _introduce(trial), "own": loaded is not None, "largest": _LARGEST}
        if loaded is not None:
            self._card = [list(row) for row in loaded.card]

    @classmethod
    def title(cls) -> str:
        """Return the overview's title, because this widget uses the overview's script."""
        return Overview.title()

    @property
    def cell(self) -> str:
        """Python code that rebuilds the state of this lab in a notebook."""
        return self._trial.cell

    @checked
    def answer_load(self, path: str) -> dict[str, Any]:
        """Read a file or folder from this machine."""
        file = Path(path).expanduser().absolute()
        self._trial.load(file, str(file))
        return {"read": True}

    @checked
    def answer_drop(self, name: str, content: str) -> dict[str, Any]:
        """Read a file that was dropped onto the page."""
        own = Path(name).name
        if own in ("", ".", "..") or "\0" in own:
            raise InputError(f"{name!r} is not a valid file name. Type its path instead.")
        try:
            data = base64.b64decode(content, validate=True)
        except binascii.Error:
            raise InputError(f"{own} was not received completely. Type its path instead.") from None
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / own
            file.write_bytes(data)
            self._trial.load(file, own)
        return {"read": True}


def build_page(trial: Trial, port: int = 0) -> Page:
    """Return the page of a trial, whose widgets are rebuilt when the lab changes."""
    kinds = [
        *(FirstMinutes, PolicyStudio, QuestionList, RecallExplorer, RecallLog),
        *(VersionTimeline, MemoryTable),
    ]
    page = Page(kinds, make=trial.make, port=port, title=_title(trial), note="this machine only")

    def switch() -> None:
        """Discard the widgets of the previous lab."""
        page.live.clear()
        page.title = _title(trial)

    trial.switched = switch
    return page


def serve_trial(
    trial: Trial, *, port: int, open_browser: bool, tell: Callable[[str], object]
) -> None:
    """Serve the page of a trial until interrupted; pass the address to ``tell``."""
    serve_page(
        lambda: build_page(trial, port),
        lambda: trial.current,
        open_browser=open_browser,
        tell=tell,
    )


def _title(trial: Trial) -> str:
    return "sample lab" if trial.loaded is None else trial.loaded.source


def _introduce(trial: Trial) -> str:
    """Return a text that explains what the page shows and where the lab is stored."""
    if trial.loaded is None:
        return (
            "A sample: Noor and her assistant Quill over three months, 36 labelled questions, and ten days of recalls. "
            "It is in memory and ends with Ctrl-C. Nothing leaves this machine."
        )
    where = (
        "The lab is in memory and ends with Ctrl-C; start with --lab PATH to keep it."
        if trial.path is None
        else f"The lab is in {trial.path}."
    )
    return (
        f"{repr(trial.loaded).splitlines()[0]}. {where} Next: accept the proposed questions that are right "
        "(Question list), then drag a weight (Policy studio)."
    )
