"""Completion in a notebook: the slots in ``lab.policies["``, and the packs in ``lab.use("``."""

from __future__ import annotations

import re
from typing import Any

from IPython.core.completer import SimpleCompletion, context_matcher
from IPython.core.guarded_eval import EVALUATION_POLICIES

from memlab.lab import Lab
from memlab.policies import pack_names

__all__ = ["complete", "complete_no_more"]

_USED = re.compile(r"""\.(?:use|load_pack)\(\s*["']([\w-]*)$""")


def complete(completer: Any) -> None:
    """Add the completions to a shell's completer."""
    # IPython reads a property for completion only of types that are listed as harmless to read
    _policy().allowed_getattr.add(Lab)
    completer.custom_matchers.append(_packs)


def complete_no_more(completer: Any) -> None:
    """Take the completions away again."""
    _policy().allowed_getattr.discard(Lab)
    if _packs in completer.custom_matchers:
        completer.custom_matchers.remove(_packs)


def _policy() -> Any:
    return EVALUATION_POLICIES["limited"]


@context_matcher()  # type: ignore[untyped-decorator]
def _packs(context: Any) -> dict[str, Any]:
    found = _USED.search(context.text_until_cursor)
    if found is None:
        return {"completions": []}
    names = [SimpleCompletion(name, type="pack") for name in pack_names() if name.startswith(found[1])]
    return {"completions": names, "matched_fragment": found[1], "suppress": True}
