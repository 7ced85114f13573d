"""Completion in a notebook: slots, packs and labs where they are named, and the words of a policy in ``%%policy``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.guarded_eval import EVALUATION_POLICIES
from IPython.core.interactiveshell import InteractiveShell

from memlab.kernel.policies import SLOTS, pack_names
from memlab.subjects.lab import Lab
from memlab.subjects.lens import vocabulary
from memlab.subjects.programs.program import OPERATIONS
from memlab.ui.notebook._lab_magics import labs_of

__all__ = ["complete", "complete_no_more"]

_PACK = re.compile(r"""(?:\.(?:use|load_pack)\(\s*["']|^[^\n]*%recall\s(?:.*\s)?--pack[\s=]\s*)([\w-]*)$""")
_LAB = re.compile(r"%(?:policy|memory|recall|remember)\s(?:.*\s)?--lab[\s=]\s*([\w.]*)$")
_SLOT = re.compile(r"\A%%policy\s+(?:--lab[\s=]\s*\S+\s+)?([\w-]*)$")
_IN_POLICY = re.compile(r"\A%%policy\s[^\n]*?\b(" + "|".join(map(re.escape, SLOTS)) + r")(?![\w-])[^\n]*\n")
_IN_MEMORY = re.compile(r"\A%%memory\b[^\n]*\n")
_WORD = re.compile(r"[^\s()\[\]{};\"'`~,:]*$")


def complete(shell: InteractiveShell) -> None:
    """Add the completions to a shell's completer."""
    # IPython reads a property for completion only of types that are listed as harmless to read
    _policy().allowed_getattr.add(Lab)
    complete_no_more(shell, also_types=False)

    @context_matcher()  # type: ignore[untyped-decorator]
    def memlab_names(context: Any) -> dict[str, Any]:
        return _completions(context.full_text, context.text_until_cursor, lambda: labs_of(shell.user_ns))

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
