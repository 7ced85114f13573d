"""Magics and completions of notebooks: Hy code, policies and the verbs of a lab."""

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
from memlab.kernel.base.display import Displayed, Markup, box, clip, details, table
from memlab.kernel.base.printable import printable
from memlab.kernel.language import slot_of
from memlab.kernel.policies import SLOTS, Pack, Version, pack_names
from memlab.kernel.recall import Hits
from memlab.kernel.verbs.results import Memory
from memlab.subjects.lab import Lab
from memlab.subjects.lens import vocabulary
from memlab.subjects.programs import OPERATIONS, Ran
from memlab.subjects.questions.scoring import NEW, Scores, explain_change, note_on_feedback
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


@magics_class
class HyMagics(Magics):
    """The magic ``%%hy``, which executes Hy code."""

    @cell_magic
    def hy(self, line: str, cell: str) -> Any:
        """Run the cell as Hy code, **which can do everything that Python can**.

        The value of the last form is shown. The code uses the names of the notebook: ``recall-score`` is
        ``recall_score`` in the next cell. The words of ``memlab.dialect`` are available: ``(defpolicy name [a b]
        body)`` and ``(lambda (a b) body)`` create policies; ``fn``, ``let``, ``defn`` and ``+`` have their meaning in
        Hy. After a ``(pack ...)``, ``defn`` and ``defmacro`` have their meaning in the dialect until the end of the
        cell.
        """
        if line.strip():
            raise UsageError(f"%%hy takes no arguments, not {line.strip()!r}. Write code below it.")
        shell = self.shell
        assert shell is not None
        # tracebacks look for the text of a cell in this cache
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
    """Compile a cell's Hy code, with the macros of the policy dialect.

    Returns two code objects: the statements, and the last expression. What ``pack`` replaced, ``defn`` and ``defmacro``, is
    restored.
    """
    import hy.macros
    from hy.compiler import hy_compile
    from hy.errors import HyLanguageError
    from hy.reader import read_many

    hy.macros.require("memlab.dialect", module, assignments="EXPORTS")
    macros: dict[str, Any] = module.__dict__["_hy_macros"]
    replaced = ("defn", "defmacro")
    before = {name: macros[name] for name in replaced if name in macros}
    try:
        tree = read_many(source, filename=file, skip_shebang=True)
        body, last = hy_compile(tree, module, get_expr=True, filename=file, source=source)
    except HyLanguageError as error:
        if isinstance(error.__context__, PolicyError):  # the error of a macro is more precise
            raise error.__context__ from None
        raise PolicySyntaxError(str(error).strip(), file=file) from error
    finally:
        for name in replaced:
            macros.pop(name, None)
        macros.update(before)
    return compile(body, file, "exec"), compile(last, file, "eval")


# -- magics of a lab --------------------------------------------------------------------------------------------------

# Options of a line; a reason, which may contain spaces; a query that ends with a question mark.
_OPTION = re.compile(r"--([\w-]+)(?:[=\s]\s*(\"[^\"]*\"|'[^']*'|\S+))?\s*")
_REASON = re.compile(r"--reason[=\s]\s*(?:\"([^\"]*)\"|'([^']*)'|(.+?))\s*(?=--\w|$)")
_QUERY_LINE = re.compile(r"\s*(?:[\w.\[\], ]+=\s*)?%(?:recall|remember)\s.*\?\s*")


@magics_class
class LabMagics(Magics):
    """Magics that call the verbs of a lab: the lab in ``--lab``, or the only open lab."""

    @cell_magic
    def policy(self, line: str, cell: str) -> Installed:
        """``%%policy SLOT [--lab NAME] [--reason WHY]``: install the cell as a policy.

        It shows how the results of the ten latest queries change. An invalid policy changes nothing; the error
        names the line in the cell. ``lab.policies.rollback(SLOT)`` undoes the installation.
        """
        with _usage_errors():
            reason = " ".join(
                "".join(filter(None, match.groups())) for match in _REASON.finditer(line)
            )
            before, rest = _read_options(_REASON.sub("", line), "%%policy", ("lab", "reason"))
            slot, _, rest = rest.partition(" ")
            after, rest = _read_options(rest.strip(), "%%policy", ("lab", "reason"))
            if not slot or rest:
                raise InputError(
                    "%%policy needs one slot, such as: %%policy recall-score --reason WHY"
                )
            lab = self._lab((before | after).get("lab"))
            return install_and_compare(lab, slot, cell, first_line=2, reason=reason)

    @line_magic
    def recall(self, line: str) -> Hits:
        """``%recall [--lab NAME] [--limit N] [--pack PACK] QUERY``: call ``lab.recall``.

        With ``--pack``, another pack is used and nothing is logged. ``hits = %recall ...`` keeps the result.
        """
        with _usage_errors():
            options, question = _read_options(line, "%recall", ("lab", "limit", "pack"))
            if not question:
                raise InputError("%recall needs a query, such as: %recall tabs or spaces?")
            limit = options.get("limit")
            if limit is not None and not limit.isdecimal():
                raise InputError(
                    f"--limit of %recall must be a whole number of at least 1, not {limit!r}."
                )
            lab = self._lab(options.get("lab"))
            return lab.recall(
                question,
                limit=None if limit is None else int(limit),
                pack=options.get("pack"),
                explore=False,
            )

    @line_magic
    def remember(self, line: str) -> Memory:
        """``%remember [--lab NAME] [--kind KIND] [--project NAME] TEXT``: store a text."""
        with _usage_errors():
            options, text = _read_options(line, "%remember", ("lab", "kind", "project"))
            if not text:
                raise InputError(
                    "%remember needs a text, such as: %remember --kind preference The user prefers tabs"
                )
            fields: dict[str, Any] = {
                name: value for name, value in options.items() if name != "lab"
            }
            memory: Memory = self._lab(options.get("lab")).remember(text, **fields)
            return memory

    @cell_magic
    def memory(self, line: str, cell: str) -> Ran:
        """``%%memory [--lab NAME]``: run operations.

        An operation is written as ``(recall "tabs?" 3)``. All operations are checked before the first one runs; see
        ``lab.upkeep.operations.run``.
        """
        with _usage_errors():
            options, rest = _read_options(line, "%%memory", ("lab",))
            if rest:
                raise InputError(
                    f"%%memory takes no arguments but --lab, not {rest!r}. Write operations below it."
                )
            # the line of the magic counts, so that errors name the line that the editor shows
            ran: Ran = self._lab(options.get("lab")).upkeep.operations.run("\n" + cell)
            return ran

    def _lab(self, name: str | None) -> Lab:
        """Return the lab with a name, or the only open lab if no name is given."""
        assert self.shell is not None
        names: Mapping[str, Any] = self.shell.user_ns
        labs = find_labs(names)
        if name is not None:
            first, *rest = name.split(".")
            value = names.get(first)
            for part in rest:
                value = getattr(value, part, None)
            if not isinstance(value, Lab):
                raise UnknownName("lab", name, labs)
            return value
        if not labs:
            raise InputError("There is no lab in this notebook. Open one: lab = memlab.open()")
        if len({id(lab) for lab in labs.values()}) > 1:
            raise InputError(
                f"There are several labs here: {', '.join(labs)}. Choose one: --lab {next(iter(labs))}"
            )
        return next(iter(labs.values()))


def find_labs(names: Mapping[str, Any]) -> dict[str, Lab]:
    """Return the open labs of a notebook by name.

    Outputs that IPython stores (``_``, ``_3``) are ignored.
    """
    labs = {
        name: value
        for name, value in names.items()
        if isinstance(value, Lab) and not name.startswith("_")
    }
    return {name: lab for name, lab in labs.items() if not lab.io.store.journal.closed}


def keep_question_mark(lines: list[str]) -> list[str]:
    """Protect a query's final "?" from IPython's help syntax.

    IPython takes a final question mark for a request for help.
    """
    return [f"{line.rstrip()} \n" if _QUERY_LINE.fullmatch(line) else line for line in lines]


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Convert errors of memlab to a usage error, which IPython prints as one line without a traceback."""
    try:
        yield
    except MemlabError as error:
        raise UsageError(str(error)) from None


def _read_options(line: str, magic: str, allowed: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """Split a magic's line into options and the remaining text."""
    options, rest = dict[str, str](), line.strip()
    while (match := _OPTION.match(rest)) is not None:
        name, value = match.groups()
        if name not in allowed:
            raise InputError(f"{magic} has no option --{name}. {did_you_mean(name, allowed)}")
        if value is None:
            raise InputError(f"--{name} of {magic} needs a value.")
        options[name] = (
            value[1:-1] if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1 else value
        )
        rest = rest[match.end() :]
    return options, rest


# -- completion -------------------------------------------------------------------------------------------------------

# Patterns of the text before the cursor at which a name of memlab may be completed.
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
_DEFINED = re.compile(r"\((?:defn|defmacro)\s+([^\s()\[\]]+)")


def add_completions(shell: InteractiveShell) -> None:
    """Add memlab's completions to a shell's completer."""
    # IPython evaluates a property for completion only if its type is listed as safe
    _evaluation_policy().allowed_getattr.add(Lab)
    remove_completions(shell, also_types=False)

    @context_matcher()  # type: ignore[untyped-decorator]
    def memlab_names(context: Any) -> dict[str, Any]:
        """Return memlab's completions for the text before the cursor."""
        return _find_completions(
            context.full_text, context.text_until_cursor, lambda: find_labs(shell.user_ns)
        )

    shell.Completer.custom_matchers.append(memlab_names)


def remove_completions(shell: InteractiveShell, *, also_types: bool = True) -> None:
    """Remove memlab's completions from a shell's completer."""
    if also_types:
        _evaluation_policy().allowed_getattr.discard(Lab)
    matchers = shell.Completer.custom_matchers
    matchers[:] = [
        matcher for matcher in matchers if getattr(matcher, "__module__", "") != __name__
    ]


def _evaluation_policy() -> Any:
    """Return IPython's "limited" setting for evaluating names during completion."""
    return EVALUATION_POLICIES["limited"]


def _find_completions(cell: str, line: str, labs: Callable[[], Iterable[str]]) -> dict[str, Any]:
    """Return the completions at the end of ``line``."""
    # a name after an option completes first; otherwise the first line of the cell decides which words fit
    for pattern, kind, names in (
        (_PACK, "pack", pack_names),
        (_LAB, "lab", labs),
        (_SLOT, "slot", lambda: SLOTS),
    ):
        if (match := pattern.search(line)) is not None:
            return _build_matches(match[1], ((name, kind) for name in names()))
    if line.startswith("%") or (word := _WORD.search(line)) is None:
        return {"completions": []}
    if (policy := _IN_POLICY.match(cell)) is not None:
        inputs = [(row.name, "feature") for row in SLOTS[policy[1]].signature.inputs.values()]
        inputs += [(name, "helper") for name in _DEFINED.findall(cell)]
        return _build_matches(word[0], [*inputs, *((entry[0], entry[1]) for entry in vocabulary())])
    if _IN_MEMORY.match(cell):
        return _build_matches(word[0], ((name, "operation") for name in OPERATIONS))
    return {"completions": []}


def _build_matches(fragment: str, names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the names that begin with a fragment, as completions."""
    matches = [
        SimpleCompletion(name, type=kind) for name, kind in names if name.startswith(fragment)
    ]
    return {"completions": matches, "matched_fragment": fragment, "suppress": bool(matches)}


# -- installed policies -----------------------------------------------------------------------------------------------

# Recent queries that are compared; a table of each fits one screen of a notebook.
_QUESTIONS = 10
# Lost and gained questions that are explained, each by two recalls.
_EXPLAINED = 10
# The red of errors in a light and a dark notebook.
_LOST = Markup("<span style='color:var(--jp-error-color1,#d32f2f)'>{}</span>")


@dataclass(frozen=True)
class Installed(Displayed):
    """An installed policy version, its scores, and how it changed the results of recent queries.

    Attributes
    ----------
    version
        The installed version.
    moves
        The ranks and scores before and after the installation: one row per query and memory among
        its first eight results. A rank is null if the memory is not in the results.
    """

    version: Version
    moves: pl.DataFrame
    _sums: tuple[dict[str, Any], ...] = field(repr=False)
    # A line and an explanation for each lost or gained question; a note if the lab has no question.
    _changes: tuple[tuple[str, list[str]], ...] = field(default=(), repr=False)
    _note: str = field(default="", repr=False)

    def _lines(self) -> Iterator[str]:
        """Yield, for each query, the number of reordered pairs and the number of new results."""
        for row in self._sums:
            new = f"{row['new']} new in the top {TOP}" if row["new"] else f"the same top {TOP}"
            yield f"{row['question']}: {row['pairs']} of {row['of']} pairs reordered, {new}"

    def _heading(self) -> str:
        """Return the heading above the summaries of the queries."""
        if self._sums:
            return f"{self.version} is active. Changes for the {len(self._sums)} latest queries:"
        if self.version.slot not in DECIDES_RANKS:
            return f"{self.version} is active. {self.version.slot} does not change ranks directly."
        return f"{self.version} is active. There are no queries to compare yet."

    def __repr__(self) -> str:
        scores = self.version.scores
        quality = [str(scores or self._note)] if scores or self._note else []
        lines = [f"  {line}" for line in self._lines()]
        return printable("\n".join([*quality, self._heading(), *lines]))

    def _display(self) -> object:
        """Return the ranks of each query before and after the installation, as tables."""
        parts: list[object] = []
        for row, line in zip(self._sums, self._lines(), strict=True):
            own = self.moves.filter(
                (pl.col("question") == row["question"]) & (pl.col("rank_after") <= TOP)
            )
            rows = own.select("rank_after", "rank_before", "text").rows()
            ranks = table(
                "",
                ("after", "before", "memory"),
                [[a, "-" if b is None else b, text] for a, b, text in rows],
            )
            parts.append(details(line, ranks, opened=not parts))
        changes = [
            details(_LOST.format(line) if line.startswith("Lost") else line, why)
            for line, why in self._changes
        ]
        return self.version.scores or self._note or None, *changes, self._heading(), box(parts)


def install_and_compare(
    lab: Lab, slot: str, source: str, *, first_line: int = 1, reason: str = ""
) -> Installed:
    """Install a policy, and compare the ranks of recent queries before and after.

    The comparison is not logged. Lines in errors count from ``first_line``; an invalid policy is not installed.
    """
    text = source.strip("\n")
    padded = "\n" * (first_line - 1 + len(source) - len(source.lstrip("\n"))) + text
    if (policy_slot := slot_of(padded)) not in ("", slot):
        raise PolicyError(
            f"This is a policy of {policy_slot}, not of {slot}. Write %%policy {policy_slot}."
        )
    draft = lab.policies.check(slot, padded)
    questions = latest_questions(lab, _QUESTIONS) if slot in DECIDES_RANKS else []
    ranks = Ranks(lab)
    rankings = (
        [ranks.under(slot, policy, questions) for policy in (lab.policies[slot], draft)]
        if questions
        else [NOTHING] * 2
    )
    frame = moved(*rankings)
    # both are ranked before the installation, so that the queries use the same state of the lab
    moves = shown_moves(frame, ranks, questions)
    before, note = lab.policies.pack, ""
    if not len(lab.questions) and slot in DECIDES_RANKS:
        note = note_on_feedback(lab, slot)
    version = lab.policies.install(slot, text, reason=reason)
    queries = pl.Series(questions, dtype=pl.String)
    named_moves = moves.with_columns(question=queries.gather(moves["question"]))
    changes = tuple(_explain_changes(lab, version.scores, before)) if version.scores else ()
    return Installed(version, named_moves, tuple(summed_moves(frame, questions)), changes, note)


def _explain_changes(lab: Lab, scores: Scores, before: Pack) -> Iterator[tuple[str, list[str]]]:
    """Yield the first lost and gained questions, each as a line with an explanation."""
    after = lab.policies.pack
    for kind, rows in (("Lost", scores.lost(NEW)), ("Gained", scores.gained(NEW))):
        for id, query, _, old, new in rows.head(_EXPLAINED).rows():
            line = f"{kind}: {clip(query)} (rank {old or 'none'} before, {new or 'none'} after)"
            yield line, explain_change(lab, id, before, after)
