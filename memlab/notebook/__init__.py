"""memlab inside IPython and Jupyter: ``%load_ext memlab``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Registers the magics. IPython calls it for ``%load_ext memlab``; Hy is loaded with the first ``%%hy``."""
    from memlab.notebook._magics import HyMagics

    shell.register_magics(HyMagics)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Takes the magics away again."""
    shell.magics_manager.magics["cell"].pop("hy", None)
    shell.magics_manager.registry.pop("HyMagics", None)
