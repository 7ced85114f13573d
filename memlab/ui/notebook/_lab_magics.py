"""``%%policy``, ``%recall``, ``%remember`` and ``%%memory``: the verbs of a lab without Python around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from memlab.errors import InputError, MemlabError, UnknownName, did_you_mean
from memlab.kernel.recall import Hits
from memlab.kernel.verbs.results import Memory
from memlab.subjects.lab import Lab
from memlab.subjects.programs.operations import Ran
from memlab.ui.notebook._installed import Installed, install_and_compare

__all__ = ["LabMagics", "keep_question_mark", "labs_of"]

_OPTION = re.compile(r"--([\w-]+)(?:[=\s]\s*(\"[^\"]*\"|'[^']*'|\S+))?\s*")
_REASON = re.compile(r"--reason[=\s]\s*(?:\"([^\"]*)\"|'([^']*)'|(.+?))\s*(?=--\w|$)")
_ASKS = re.compile(r"\s*(?:[\w.\[\], ]+=\s*)?%(?:recall|remember)\s.*\?\s*")


@magics_class
class LabMagics(Magics):
    """Magics that call the verbs of a lab: that which ``--lab`` names, or the only one in the notebook."""

    @cell_magic
    def policy(self, line: str, cell: str) -> Installed:
        """``%%policy SLOT [--lab NAME] [--reason WHY]``: installs the cell as the policy of a slot.

        It shows what moved on the ten questions that the lab was asked last. A broken policy changes nothing, and is
        reported with the line of the cell and a caret. ``lab.policies.rollback(SLOT)`` takes it back.
        """
        with _said_in_a_line():
            reason = " ".join(next((part for part in one.groups() if part), "") for one in _REASON.finditer(line))
            before, rest = _read_options(_REASON.sub("", line), "%%policy", ("lab", "reason"))
            slot, _, rest = rest.partition(" ")
            after, rest = _read_options(rest.strip(), "%%policy", ("lab", "reason"))
            if not slot or rest:
                raise InputError("%%policy takes one slot on its line, such as: %%policy recall-score --reason WHY")
            lab = self._lab((before | after).get("lab"))
            return install_and_compare(lab, slot, cell, first_line=2, reason=reason)

    @line_magic
    def recall(self, line: str) -> Hits:
        """``%recall [--lab NAME] [--limit N] [--pack PACK] QUESTION``: what ``lab.recall`` shows, logged as that does.

        With ``--pack`` another pack is asked, and nothing is logged. ``hits = %recall ...`` keeps the answer.
        """
        with _said_in_a_line():
            options, question = _read_options(line, "%recall", ("lab", "limit", "pack"))
            if not question:
                raise InputError("%recall takes a question, such as: %recall tabs or spaces?")
            limit = options.get("limit")
            if limit is not None and not limit.isdecimal():
                raise InputError(f"--limit is a whole number, not {limit!r}.")
            lab = self._lab(options.get("lab"))
            return lab.recall(question, limit=None if limit is None else int(limit), pack=options.get("pack"))

    @line_magic
    def remember(self, line: str) -> Memory:
        """``%remember [--lab NAME] [--kind KIND] [--project NAME] TEXT``: remembers one text, as it stands."""
        with _said_in_a_line():
            options, text = _read_options(line, "%remember", ("lab", "kind", "project"))
            if not text:
                raise InputError("%remember takes a text, such as: %remember --kind preference The user prefers tabs")
            fields: dict[str, Any] = {name: value for name, value in options.items() if name != "lab"}
            memory: Memory = self._lab(options.get("lab")).remember(text, **fields)
            return memory

    @cell_magic
    def memory(self, line: str, cell: str) -> Ran:
        """``%%memory [--lab NAME]``: runs the cell's operations, such as ``(recall "tabs?" 3) (stats)``.

        All are checked before the first is run: see ``lab.upkeep.operations.run``.
        """
        with _said_in_a_line():
            options, rest = _read_options(line, "%%memory", ("lab",))
            if rest:
                raise InputError(f"%%memory takes its operations below its line, and here is {rest!r}.")
            # the magic's own line counts, so that errors name the line that the editor shows
            ran: Ran = self._lab(options.get("lab")).upkeep.operations.run("\n" + cell)
            return ran

    def _lab(self, name: str | None) -> Lab:
        assert self.shell is not None
        names: Mapping[str, Any] = self.shell.user_ns
        known = labs_of(names)
        if name is not None:
            first, *rest = name.split(".")
            found = names.get(first)
            for part in rest:
                found = getattr(found, part, None)
            if not isinstance(found, Lab):
                raise UnknownName("lab", name, known)
            return found
        if not known:
            raise InputError("There is no lab in this notebook. Open one: lab = memlab.open()")
        if len({id(lab) for lab in known.values()}) > 1:
            raise InputError(f"There are several labs here: {', '.join(known)}. Say which: --lab {next(iter(known))}")
        return next(iter(known.values()))


def labs_of(names: Mapping[str, Any]) -> dict[str, Lab]:
    """The open labs of a notebook by name. What IPython keeps of earlier outputs (``_``, ``_3``) does not count."""
    found = {name: value for name, value in names.items() if isinstance(value, Lab) and not name.startswith("_")}
    return {name: lab for name, lab in found.items() if not lab.io.store.journal.closed}


def keep_question_mark(lines: list[str]) -> list[str]:
    """A space after the last question mark of ``%recall tabs?``, which IPython takes for a call for help otherwise."""
    return [f"{line.rstrip()} \n" if _ASKS.fullmatch(line) else line for line in lines]


@contextmanager
def _said_in_a_line() -> Iterator[None]:
    try:
        yield
    except MemlabError as error:
        raise UsageError(str(error)) from None


def _read_options(line: str, magic: str, known: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """The options at the start of a line, and the rest of it as it stands."""
    options, rest = dict[str, str](), line.strip()
    while (found := _OPTION.match(rest)) is not None:
        name, value = found.groups()
        if name not in known:
            raise InputError(f"{magic} has no option --{name}. {did_you_mean(name, known)}")
        if value is None:
            raise InputError(f"--{name} of {magic} needs a value.")
        options[name] = value[1:-1] if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1 else value
        rest = rest[found.end() :]
    return options, rest
