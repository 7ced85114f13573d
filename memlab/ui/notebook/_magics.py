"""``%%hy``: a cell of Hy code, in the notebook's own namespace."""

from __future__ import annotations

from types import CodeType, ModuleType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class

from memlab.errors import PolicyError, PolicySyntaxError

__all__ = ["HyMagics"]


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
