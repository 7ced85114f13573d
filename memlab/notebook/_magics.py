"""``%%hy``: a cell of trusted Hy code, in the notebook's own namespace."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class

from memlab.errors import PolicyError

__all__ = ["HyMagics"]


@magics_class
class HyMagics(Magics):
    """Magics that take the trusted road: what they get is executed."""

    @cell_magic
    def hy(self, line: str, cell: str) -> Any:
        """Runs the cell as Hy code, **which can do whatever Python can**, and shows its last value.

        It reads and binds the names of the notebook: ``recall-score`` is ``recall_score`` in the next cell. The words
        of ``memlab.dialect`` are there: ``(defpolicy name [a b] body)``, ``(lambda (a b) body)``, ``(let* ((a 1))
        body)`` mean what they mean in a policy; ``fn``, ``let``, ``defn`` and ``+`` are Hy's own. From a ``(pack ...)``
        to the end of its cell ``defn`` is the dialect's, as in a file.
        """
        if line.strip():
            raise UsageError(f"%%hy takes nothing on its line, and here is {line.strip()!r}.")
        from memlab.language.trusted._trusted import compiled

        shell = self.shell
        assert shell is not None
        # with the cell's text where tracebacks look for it
        name = shell.compile.cache(cell, shell.execution_count)
        try:
            body, last = compiled(cell, shell.user_module, name)
        except PolicyError as error:
            raise UsageError(str(error)) from None
        exec(body, shell.user_ns)
        return eval(last, shell.user_ns)
