"""Magics and completions: ``%%hy``, ``%%policy``, ``%recall``, ``%remember`` and ``%%memory``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any

import polars as pl
from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.error import UsageError
from IPython.core.guarded_eval import EVALUATION_POLICIES
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from memlab.errors import (
    InputError,
    MemlabError,
    PolicyError,
    PolicySyntaxError,
    UnknownName,
    did_you_mean,
)
from memlab.kernel.base.display import Displayed, box, details, table
from memlab.kernel.base.printable import printable
from memlab.kernel.language import compile_policy, slot_of
from memlab.kernel.policies import SLOTS, Version, get_slot, pack_names
from memlab.kernel.recall import Hits
from memlab.kernel.verbs.results import Memory
from memlab.subjects.lab import Lab
from memlab.subjects.lens import vocabulary
from memlab.subjects.programs import OPERATIONS, Ran
from memlab.ui.widgets.ranks import (
    DECIDES_RANKS,
    NOTHING,
    TOP,
    Ranks,
    latest_questions,
    moved,
    shown_moves,
    summed_moves,
)

__all__ = [
    "HyMagics",
    "Installed",
    "LabMagics",
    "complete",
    "complete_no_more",
    "install_and_compare",
    "keep_question_mark",
    "labs_of",
]


@magics_class
class HyMagics(Magics):
    """Magics that execute what they get."""

    @cell_magic
    def hy(self, line: str, cell: str) -> Any:
        """Runs the cell as Hy code, **which can do whatever Python can**, and shows its last value.

        It reads and binds the names of the notebook: ``recall-score`` is ``recall_score`` in the next cell. The words
        of ``memlab.dialect`` are there: ``(defpolicy name [a b] body)`` and ``(lambda (a b) body)`` give policies;
        ``fn``, ``let``, ``defn`` and ``+`` are Hy's own. From a ``(pack ...)`` to the end of its cell ``defn`` is the
        dialect's, as in a file.
        """
        if line.strip():
            raise UsageError(f"%%hy takes nothing on its line, and here is {line.strip()!r}.")
        shell = self.shell
        assert shell is not None
        # with the cell's text where tracebacks look for it
        name = shell.compile.cache(cell, shell.execution_count)
        try:
            body, last = _compile(cell, shell.user_module, name)
        except PolicyError as error:
            raise UsageError(str(error)) from None
        try:
            exec(body, shell.user_ns)
            return eval(last, shell.user_ns)
        except PolicyError as error:
            raise UsageError(str(error)) from None


def _compile(source: str, module: ModuleType, file: str) -> tuple[CodeType, CodeType]:
    """A cell with the dialect's macros, as two code objects: what to execute, and its last expression.

    What ``pack`` makes of ``defn`` ends with the cell.
    """
    import hy.macros
    from hy.compiler import hy_compile
    from hy.errors import HyLanguageError
    from hy.reader import read_many

    hy.macros.require("memlab.dialect", module, assignments="EXPORTS")
    macros: dict[str, Any] = module.__dict__["_hy_macros"]
    before = macros.get("defn")
    try:
        tree = read_many(source, filename=file, skip_shebang=True)
        body, last = hy_compile(tree, module, get_expr=True, filename=file, source=source)
    except HyLanguageError as error:
        if isinstance(error.__context__, PolicyError):  # a macro's, which says more
            raise error.__context__ from None
        raise PolicySyntaxError(str(error).strip(), file=file) from error
    finally:
        macros.pop("defn", None)
        if before is not None:
            macros["defn"] = before
    return compile(body, file, "exec"), compile(last, file, "eval")


# -- magics of a lab --------------------------------------------------------------------------------------------------

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
            reason = " ".join("".join(filter(None, one.groups())) for one in _REASON.finditer(line))
            before, rest = _read_options(_REASON.sub("", line), "%%policy", ("lab", "reason"))
            slot, _, rest = rest.partition(" ")
            after, rest = _read_options(rest.strip(), "%%policy", ("lab", "reason"))
            if not slot or rest:
                raise InputError(
                    "%%policy takes one slot on its line, such as: %%policy recall-score --reason WHY"
                )
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
            return lab.recall(
                question, limit=None if limit is None else int(limit), pack=options.get("pack")
            )

    @line_magic
    def remember(self, line: str) -> Memory:
        """``%remember [--lab NAME] [--kind KIND] [--project NAME] TEXT``: remembers one text, as it stands."""
        with _said_in_a_line():
            options, text = _read_options(line, "%remember", ("lab", "kind", "project"))
            if not text:
                raise InputError(
                    "%remember takes a text, such as: %remember --kind preference The user prefers tabs"
                )
            fields: dict[str, Any] = {
                name: value for name, value in options.items() if name != "lab"
            }
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
                raise InputError(
                    f"%%memory takes its operations below its line, and here is {rest!r}."
                )
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
            raise InputError(
                f"There are several labs here: {', '.join(known)}. Say which: --lab {next(iter(known))}"
            )
        return next(iter(known.values()))


def labs_of(names: Mapping[str, Any]) -> dict[str, Lab]:
    """The open labs of a notebook by name. What IPython keeps of earlier outputs (``_``, ``_3``) does not count."""
    found = {
        name: value
        for name, value in names.items()
        if isinstance(value, Lab) and not name.startswith("_")
    }
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
        options[name] = (
            value[1:-1] if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1 else value
        )
        rest = rest[found.end() :]
    return options, rest


# -- completion -------------------------------------------------------------------------------------------------------

_PACK = re.compile(
    r"""(?:\.(?:use|load_pack)\(\s*["']|^[^\n]*%recall\s(?:.*\s)?--pack[\s=]\s*)([\w-]*)$"""
)
_LAB = re.compile(r"%(?:policy|memory|recall|remember)\s(?:.*\s)?--lab[\s=]\s*([\w.]*)$")
_SLOT = re.compile(r"\A%%policy\s+(?:--lab[\s=]\s*\S+\s+)?([\w-]*)$")
_IN_POLICY = re.compile(
    r"\A%%policy\s[^\n]*?\b(" + "|".join(map(re.escape, SLOTS)) + r")(?![\w-])[^\n]*\n"
)
_IN_MEMORY = re.compile(r"\A%%memory\b[^\n]*\n")
_WORD = re.compile(r"[^\s()\[\]{};\"'`~,:]*$")


def complete(shell: InteractiveShell) -> None:
    """Add the completions to a shell's completer."""
    # IPython reads a property for completion only of types that are listed as harmless to read
    _policy().allowed_getattr.add(Lab)
    complete_no_more(shell, also_types=False)

    @context_matcher()  # type: ignore[untyped-decorator]
    def memlab_names(context: Any) -> dict[str, Any]:
        return _completions(
            context.full_text, context.text_until_cursor, lambda: labs_of(shell.user_ns)
        )

    shell.Completer.custom_matchers.append(memlab_names)


def complete_no_more(shell: InteractiveShell, *, also_types: bool = True) -> None:
    """Take the completions away again."""
    if also_types:
        _policy().allowed_getattr.discard(Lab)
    matchers = shell.Completer.custom_matchers
    matchers[:] = [one for one in matchers if getattr(one, "__module__", "") != __name__]


def _policy() -> Any:
    return EVALUATION_POLICIES["limited"]


def _completions(cell: str, line: str, labs: Callable[[], Iterable[str]]) -> dict[str, Any]:
    """What can stand at the end of ``line``, which stands in ``cell``; nothing where memlab is not asked."""
    for pattern, kind, names in (
        (_PACK, "pack", pack_names),
        (_LAB, "lab", labs),
        (_SLOT, "slot", lambda: SLOTS),
    ):
        if (found := pattern.search(line)) is not None:
            return _offered(found[1], ((name, kind) for name in names()))
    if line.startswith("%") or (word := _WORD.search(line)) is None:
        return {"completions": []}
    if (policy := _IN_POLICY.match(cell)) is not None:
        words = [(one.name, "feature") for one in SLOTS[policy[1]].signature.inputs.values()]
        return _offered(word[0], [*words, *((one[0], one[1]) for one in vocabulary())])
    if _IN_MEMORY.match(cell):
        return _offered(word[0], ((name, "operation") for name in OPERATIONS))
    return {"completions": []}


def _offered(begun: str, names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    found = [SimpleCompletion(name, type=kind) for name, kind in names if name.startswith(begun)]
    return {"completions": found, "matched_fragment": begun, "suppress": bool(found)}


# -- installed policies -----------------------------------------------------------------------------------------------

_QUESTIONS = 10


@dataclass(frozen=True)
class Installed(Displayed):
    """A ``version`` that was installed, and its ``moves``: by question and memory, ranks and scores before and after.

    ``moves`` has what stands among the first eight before or after; a rank is null where it is never shown.
    """

    version: Version
    moves: pl.DataFrame
    _sums: tuple[dict[str, Any], ...] = field(repr=False)

    def _lines(self) -> Iterator[str]:
        for one in self._sums:
            new = f"{one['new']} new in the top {TOP}" if one["new"] else f"the top {TOP} as before"
            yield f"{one['question']}: {one['pairs']} of {one['of']} pairs reordered, {new}"

    def _head(self) -> str:
        if self._sums:
            return (
                f"{self.version} is live. On the {len(self._sums)} questions that were asked last:"
            )
        if self.version.slot not in DECIDES_RANKS:
            return f"{self.version} is live. {self.version.slot} decides no rank, so no answer moves by it alone."
        return f"{self.version} is live. Nothing was asked yet that could move."

    def __repr__(self) -> str:
        return printable("\n".join([self._head(), *(f"  {line}" for line in self._lines())]))

    def _display(self) -> object:
        parts: list[object] = []
        for one, line in zip(self._sums, self._lines(), strict=True):
            own = self.moves.filter(
                (pl.col("question") == one["question"]) & (pl.col("rank_after") <= TOP)
            )
            rows = own.select("rank_after", "rank_before", "text").rows()
            inside = table(
                "",
                ("after", "before", "memory"),
                [[a, "-" if b is None else b, text] for a, b, text in rows],
            )
            parts.append(details(line, inside, opened=not parts))
        return self._head(), box(parts)


def install_and_compare(
    lab: Lab, slot: str, source: str, *, first_line: int = 1, reason: str = ""
) -> Installed:
    """Install a policy, and compare the ranks of the lab's last questions before and after, without a trace of that.

    Errors count the lines of ``source`` from ``first_line`` on; what they are about is not installed.
    """
    text = source.strip("\n")
    placed = "\n" * (first_line - 1 + len(source) - len(source.lstrip("\n"))) + text
    if (named := slot_of(placed)) not in ("", slot):
        raise PolicyError(
            f"This is a policy of {named}, and {slot} is to be filled: write %%policy {named}."
        )
    draft = compile_policy(placed, get_slot(slot).signature, name=slot)
    questions = latest_questions(lab, _QUESTIONS) if slot in DECIDES_RANKS else []
    ranks = Ranks(lab)
    both = (
        [ranks.under(slot, one, questions) for one in (lab.policies[slot], draft)]
        if questions
        else [NOTHING] * 2
    )
    frame = moved(*both)
    # both are ranked before the new one is live: the questions are asked once, of the same state
    moves = shown_moves(frame, ranks)
    version = lab.policies.install(slot, text, reason=reason)
    asked = pl.Series(questions, dtype=pl.String)
    named_moves = moves.with_columns(question=asked.gather(moves["question"]))
    return Installed(version, named_moves, tuple(summed_moves(frame, questions)))
