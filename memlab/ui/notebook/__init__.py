"""Extension of IPython and Jupyter: ``%load_ext memlab``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlab.errors import require_extra

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_replaced: dict[int, dict[tuple[str, str], Any]] = {}
"""Magics that memlab replaced, by shell, such as IPython's own ``%recall``; None for a new name."""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register magics and completions.

    IPython calls it for ``%load_ext memlab``. Hy itself is imported by the first ``%%hy``.

    Parameters
    ----------
    shell
        The shell of the notebook.
    """
    with require_extra("workbench", "%load_ext memlab"):
        from memlab.ui.notebook._magics import (
            HyMagics,
            LabMagics,
            add_completions,
            keep_question_mark,
        )

    magics = shell.magics_manager.magics
    kinds = (*HyMagics.magics.items(), *LabMagics.magics.items())
    _replaced.setdefault(
        id(shell), {(kind, name): magics[kind].get(name) for kind, names in kinds for name in names}
    )
    shell.register_magics(HyMagics, LabMagics)
    add_completions(shell)
    if keep_question_mark not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(keep_question_mark)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove magics and completions, and restore the magics that memlab replaced.

    Parameters
    ----------
    shell
        The shell of the notebook.
    """
    from memlab.ui.notebook._magics import keep_question_mark, remove_completions

    remove_completions(shell)
    if keep_question_mark in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(keep_question_mark)
    for (kind, name), before in _replaced.pop(id(shell), {}).items():
        if before is None:
            shell.magics_manager.magics[kind].pop(name, None)
        else:
            shell.magics_manager.magics[kind][name] = before
    for name in ("HyMagics", "LabMagics"):
        shell.magics_manager.registry.pop(name, None)
