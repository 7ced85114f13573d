"""Mutants as edits of a syntax tree: named by module and function, located by the shape of the old code.

    [[mutant]]
    at = "memlab.subjects.identity:Identity.place"
    old = "project is None"
    new = "project is not None"
    breaks = "A reader never writes to a project that is not its own (docs/howto/agents.md)."

``old`` is an expression or a statement. It matches code of the same syntax tree, whatever its spacing, line breaks and
quotes. The search covers the function, the class, or the whole module if ``at`` has no colon. The number ``nth`` (from 1)
chooses among several matches. The text ``new`` is any code, several lines included; "pass" removes a statement.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import random
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Mutant:
    """One change of the code. ``equivalent`` says why no test can tell it from the code as it is."""

    at: str
    old: str
    new: str
    breaks: str = ""
    nth: int = 0
    equivalent: str = ""

    @property
    def id(self) -> str:
        """Return a name of the change that does not depend on its position in a list."""
        parts = (self.at, self.old, self.new, str(self.nth))
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]

    @property
    def module(self) -> str:
        """Return the dotted name of the module."""
        return self.at.partition(":")[0]

    @property
    def function(self) -> str:
        """Return the qualified name within the module; empty for the whole module."""
        return self.at.partition(":")[2]

    def __str__(self) -> str:
        return f"{self.at}  {_flat(self.old)} -> {_flat(self.new)}"


class MutantError(ValueError):
    """A mutant that cannot be applied: nothing matches, or several places do."""


def read_mutants(path: Path) -> list[Mutant]:
    """Read a list of mutants, a TOML file with tables ``[[mutant]]``."""
    return [Mutant(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]]


def write_mutants(mutants: Iterable[Mutant], path: Path, head: str) -> None:
    """Write a list of mutants, under a comment."""
    blocks = [f"# {line}" for line in head.splitlines()]
    for mutant in mutants:
        lines = [
            "",
            "[[mutant]]",
            *(f"{name} = {_quoted(value)}" for name, value in vars(mutant).items() if value),
        ]
        blocks.append("\n".join(lines))
    path.write_text("\n".join(blocks) + "\n", encoding="utf-8")


def _quoted(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    if "\n" in value or '"' in value or "\\" in value:
        return (
            f"'''\n{value}'''"
            if "'''" not in value
            else '"""\n' + value.replace("\\", "\\\\") + '"""'
        )
    return f'"{value}"'


def _flat(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 70 else f"{line[:67]}..."


# -- to the source of a module ----------------------------------------------------------------------------------------


def module_path(module: str, root: Path) -> Path:
    """Return the file of a module under ``root``."""
    path = root.joinpath(*module.split("."))
    return package if (package := path / "__init__.py").is_file() else path.with_suffix(".py")


def read_module(mutant: Mutant, root: Path) -> str:
    """Return the source of a mutant's module. MutantError if there is none."""
    path = module_path(mutant.module, root)
    if not path.is_file():
        raise MutantError(f"{mutant.at}: there is no module {mutant.module}.")
    return path.read_text(encoding="utf-8")


def mutate(mutant: Mutant, source: str) -> str:
    """Return the source of a module with the mutant in it.

    Raises
    ------
    MutantError
        If the code is not found, is found several times, or would not compile.
    """
    scope = _scope_of(ast.parse(source), mutant)
    matches = [node for node in ast.walk(scope) if _same_code(node, mutant.old)]
    matches.sort(key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]
    if not matches or mutant.nth > len(matches):
        raise MutantError(f"{mutant.at}: no code such as {_flat(mutant.old)!r}.")
    if len(matches) > 1 and not mutant.nth:
        raise MutantError(f"{mutant.at}: {len(matches)} times {_flat(mutant.old)!r}; give nth.")
    changed = _replace(source, matches[max(mutant.nth - 1, 0)], mutant.new)
    try:
        compile(changed, mutant.at, "exec")
    except SyntaxError as error:
        raise MutantError(
            f"{mutant.at}: {_flat(mutant.new)!r} gives no code that compiles ({error})."
        ) from None
    if ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)):
        raise MutantError(f"{mutant.at}: {_flat(mutant.new)!r} changes nothing.")
    return changed


def _scope_of(tree: ast.Module, mutant: Mutant) -> ast.AST:
    scope: ast.AST = tree
    for name in filter(None, mutant.function.split(".")):
        inner = [node for node in _definitions(scope) if node.name == name]
        if not inner:
            raise MutantError(f"{mutant.at}: there is no {name}.")
        scope = inner[-1]  # of overloads the last is the function itself
    return scope


def _definitions(scope: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield the functions and classes directly within a scope, also those within its blocks."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
        elif isinstance(node, ast.stmt | ast.excepthandler):
            yield from _definitions(node)


def _same_code(node: ast.AST, code: str) -> bool:
    if not isinstance(node, ast.expr | ast.stmt):
        return False
    (wanted, *more) = ast.parse(textwrap.dedent(code).strip()).body
    if more:
        raise MutantError(
            f"{_flat(code)!r} is several statements; old is one statement or expression."
        )
    if isinstance(wanted, ast.Expr):
        return isinstance(node, ast.expr) and _shape(node) == _shape(wanted.value)
    return isinstance(node, ast.stmt) and _shape(node) == _shape(wanted)


def _shape(node: ast.AST) -> str:
    """Return the tree as text; an expression is the same whether it is read or assigned to."""
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()").replace("ctx=Del()", "ctx=Load()")


def _replace(source: str, node: ast.AST, new: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    start, end = (
        _offset(lines, node.lineno, node.col_offset),
        _offset(lines, node.end_lineno, node.end_col_offset),
    )  # type: ignore[attr-defined]
    text = textwrap.dedent(new).strip()
    if isinstance(node, ast.stmt):
        text = text.replace("\n", "\n" + " " * node.col_offset)
    elif _is_expression(text):
        text = f"({text})"
    whole = b"".join(lines)
    return (whole[:start] + text.encode() + whole[end:]).decode()


def _is_expression(code: str) -> bool:
    """Return whether code is an expression, which keeps its meaning in parentheses; a call may become a statement."""
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    return True


def _offset(lines: Sequence[bytes], line: int, column: int) -> int:
    return sum(map(len, lines[: line - 1])) + column


# -- drawn by operator ------------------------------------------------------------------------------------------------

_BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "minimum": "maximum",
    "maximum": "minimum",
}

Change = Callable[[ast.AST], Iterator[ast.AST | str]]


def _comparison(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[number] = _BOUNDARY[type(operator)]()
            yield changed


def _negation(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        yield ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _and_or(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _constant(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.BinOp(node, ast.Sub(), ast.Constant(1))


def _argument(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        for number in range(len(node.keywords)):
            changed = copy.deepcopy(node)
            del changed.keywords[number]
            yield changed


def _arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)


def _extreme(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Name) and node.id in _NAMES:
        yield ast.Name(_NAMES[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield ast.Attribute(node.value, _NAMES[node.attr])


def _removal(node: ast.AST) -> Iterator[str]:
    removable = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    removable |= isinstance(node, ast.AugAssign | ast.Raise | ast.Continue)
    removable |= isinstance(node, ast.Assign) and not any(
        isinstance(target, ast.Name | ast.Tuple) for target in node.targets
    )
    if removable:
        yield "pass"


def _early_return(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.For | ast.While | ast.With | ast.If):
        yield "return"


OPERATORS: dict[str, Change] = {
    "comparison": _comparison,
    "negation": _negation,
    "and-or": _and_or,
    "constant": _constant,
    "argument": _argument,
    "arithmetic": _arithmetic,
    "extreme": _extreme,
    "removal": _removal,
    "early-return": _early_return,
}
"""What each operator makes of a node of the syntax tree."""


def draw_mutants(
    modules: Sequence[str],
    root: Path,
    *,
    seed: int,
    count: int,
    operators: Sequence[str] = tuple(OPERATORS),
) -> list[Mutant]:
    """Draw mutants of modules: first an operator and a function by chance, then one of their mutants.

    Parameters
    ----------
    modules
        Modules or packages, by dotted name.
    root
        The folder of the tree.
    seed, count
        The same seed draws the same mutants of the same code.
    operators
        Names of ``OPERATORS``.
    """
    chance = random.Random(seed)
    pools: dict[str, dict[str, list[_Site]]] = {name: {} for name in operators}
    for module in _modules_within(modules, root):
        for site in _sites_of(module, root):
            if site.operator in pools:
                pools[site.operator].setdefault(site.at, []).append(site)
    drawn: dict[str, Mutant] = {}
    while len(drawn) < count and any(pools.values()):
        pool = pools[chance.choice([name for name in operators if pools[name]])]
        at = chance.choice(sorted(pool))
        mutant = _mutant_at(pool[at].pop(chance.randrange(len(pool[at]))))
        if not pool[at]:
            del pool[at]
        if mutant is not None:
            drawn[mutant.id] = mutant
    return sorted(drawn.values(), key=lambda mutant: mutant.at)


class _Site(NamedTuple):
    """A node of a function, and what an operator makes of it."""

    operator: str
    at: str
    function: ast.AST
    node: ast.AST
    changed: ast.AST | str
    source: str


def _modules_within(modules: Sequence[str], root: Path) -> list[str]:
    names = []
    for module in modules:
        path = root.joinpath(*module.split("."))
        file = module_path(module, root)
        files = sorted(path.rglob("*.py")) if file.name == "__init__.py" else [file]
        names += [
            ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            for file in files
        ]
    return sorted(set(names))


def _sites_of(module: str, root: Path) -> Iterator[_Site]:
    """Yield what each operator can change in the functions of a module.

    Docstrings, annotations, decorators, messages of errors and representations are left as they are.
    """
    source = module_path(module, root).read_text(encoding="utf-8")
    for at, function in _functions(ast.parse(source), f"{module}:"):
        for node in _mutable_nodes(function):
            for name, change in OPERATORS.items():
                target = node.test if name == "negation" and hasattr(node, "test") else node
                for changed in change(node):
                    yield _Site(name, at, function, target, changed, source)


def _functions(
    scope: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in _definitions(scope):
        at = f"{prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{at}.")
        elif not (node.name in ("__repr__", "_repr_html_", "__str__") or _is_stub(node)):
            yield at, node
            yield from _functions(node, f"{at}.")


def _is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(
        isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
        for item in function.body
    )


def _mutable_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions and statements of a function, without those of the functions within it."""
    for name, value in ast.iter_fields(function):
        if name in (
            "annotation",
            "returns",
            "decorator_list",
            "type_params",
            "exc",
            "cause",
            "msg",
            "format_spec",
        ):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.JoinedStr
            ):
                continue
            if isinstance(node, ast.AST):
                if isinstance(node, ast.expr | ast.stmt):
                    yield node
                yield from _mutable_nodes(node)


def _mutant_at(site: _Site) -> Mutant | None:
    """Return the mutant of a site; None where its code cannot be told from other code, or does not compile."""
    own = (site.node.lineno, site.node.col_offset)  # type: ignore[attr-defined]
    old = ast.get_source_segment(site.source, site.node) or ""
    old = textwrap.dedent(" " * own[1] + old)
    changed = site.changed
    new = changed if isinstance(changed, str) else ast.unparse(ast.fix_missing_locations(changed))
    try:
        matches = [node for node in ast.walk(site.function) if _same_code(node, old)]
        places = sorted((node.lineno, node.col_offset) for node in matches)  # type: ignore[attr-defined]
        mutant = Mutant(site.at, old, new, nth=places.index(own) + 1 if len(places) > 1 else 0)
        mutate(mutant, site.source)
    except (MutantError, SyntaxError, ValueError):
        return None
    return mutant
