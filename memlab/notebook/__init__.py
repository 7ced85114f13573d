"""memlab inside IPython and Jupyter: ``%load_ext memlab``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Registers magics and completions. IPython calls it for ``%load_ext memlab``; the first ``%%hy`` loads Hy."""
    from memlab.notebook._completion import complete
    from memlab.notebook._magics import HyMagics

    shell.register_magics(HyMagics)
    complete(shell.Completer)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Takes magics and completions away again."""
    from memlab.notebook._completion import complete_no_more

    complete_no_more(shell.Completer)
    shell.magics_manager.magics["cell"].pop("hy", None)
    shell.magics_manager.registry.pop("HyMagics", None)
