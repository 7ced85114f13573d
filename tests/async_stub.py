"""Write the types of ``AsyncLab``: ``memlab/io/aio/__init__.pyi``, from the sources of ``Lab`` and its accessors.

    python tests/async_stub.py

``AsyncLab`` makes its methods from those of ``Lab`` when they are called, which editors and mypy cannot see. The stub
has each public method with ``async``, each value as something to await, and each object that uses the lab with a class
of its own. A test compares it.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import memlab

ROOT = Path(memlab.__file__).parent
STUB = ROOT / "io/aio/__init__.pyi"

FIRST = ("memlab.subjects.lab", "Lab")
# Classes whose methods use the lab: `LIVE` of memlab.io.aio, and the accessors, whose names begin with Lab.
LIVE = {"Lab", "Agent", "Session", "SessionName", "Turns"}
# What AsyncLab defines itself.
OWN = {"Lab": {"close", "on"}}

HEAD = '''"""Types of ``AsyncLab``, written by ``python tests/async_stub.py``: do not edit."""

# A text is an iterable of texts, as in the sources.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

'''

OPTIONS = """pack: PackLike | None = None, embedder: EmbedderSpec = None, clock: Clock = ..., seed: int = 0,
    read_only: bool = False, reembed: bool | Literal["background"] = False, index: str = "annoy",
    backups: bool = False, create: bool = True, key: KeySource | None = None"""

OWN_PART = """
    def __init__(self, path: str | Path | Lab | None = None, *, OPTIONS) -> None: ...
    @classmethod
    async def open(cls, path: str | Path | None = None, *, OPTIONS) -> Self: ...
    @property
    def lab(self) -> Lab: ...
    async def run(self, f: Callable[_P, _T], *args: _P.args, **keywords: _P.kwargs) -> _T: ...
    async def on(self, verb: str, f: Callable[[VerbCall], object]) -> Listener: ...
    async def close(self) -> None: ...
    def __getitem__(self, memory: MemoryLike) -> Awaitable[Memory]: ...
    if not TYPE_CHECKING:
        # Accessors that extensions declare.
        def __getattr__(self, name: str) -> Any: ...
"""

LIVE_PART = """
class _Live:
    def __await__(self) -> Generator[Any, Any, Self]: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
"""


class Writer:
    """Collects the classes to write, and the imports that their annotations need."""

    def __init__(self) -> None:
        self.waiting, self.written = [FIRST], {FIRST}
        self.imports: dict[str, tuple[str, str]] = {
            "Any": ("typing", "Any"),
            "Awaitable": ("collections.abc", "Awaitable"),
            "Callable": ("collections.abc", "Callable"),
            "Generator": ("collections.abc", "Generator"),
            "Lab": FIRST,
            "Listener": ("memlab.subjects.listening", "Listener"),
            "Literal": ("typing", "Literal"),
            "ParamSpec": ("typing", "ParamSpec"),
            "Self": ("typing", "Self"),
            "TYPE_CHECKING": ("typing", "TYPE_CHECKING"),
            "TracebackType": ("types", "TracebackType"),
            "TypeVar": ("typing", "TypeVar"),
            "VerbCall": ("memlab.subjects.listening", "VerbCall"),
            "overload": ("typing", "overload"),
        }

    def write(self) -> str:
        classes = []
        while self.waiting:
            classes.append(self.write_class(*self.waiting.pop(0)))
        imports = []
        for name, (module, original) in sorted(self.imports.items(), key=lambda item: item[1]):
            if not original:
                imports.append(f"import {module} as {name}")
            else:
                renaming = "" if name == original else f" as {name}"
                imports.append(f"from {module} import {original}{renaming}")
        head = '\n__all__ = ["AsyncLab"]\n\n_P = ParamSpec("_P")\n_T = TypeVar("_T")\n'
        return HEAD + "\n".join(imports) + head + LIVE_PART + "\n".join(classes)

    def write_class(self, module: str, name: str) -> str:
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
        names = find_names(tree, module)
        node = next(
            node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name
        )
        members = list(node.body)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                members += [line for line in ast.walk(statement) if isinstance(line, ast.AnnAssign)]
        lines = []
        implemented = {
            f.name for f in members if isinstance(f, ast.FunctionDef) and has(f, "overload")
        }
        for member in members:
            if isinstance(member, ast.FunctionDef):
                if member.name.startswith("_") and member.name not in ("__call__", "__getitem__"):
                    continue
                if has(member, "classmethod"):
                    continue
                if member.name in implemented and not has(member, "overload"):
                    continue
                if member.name in OWN.get(name, ()) or (name == "Lab" and member.name[0] == "_"):
                    continue
                lines.append(self.write_function(member, names))
            elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Attribute):
                attribute = member.target.attr
                if attribute[0] != "_":
                    kind = self.read_annotation(member.annotation, names)
                    lines.append(f"@property\ndef {attribute}(self) -> Awaitable[{kind}]: ...")
        body = "\n".join(lines).replace("\n", "\n    ")
        base = "" if name == "Lab" else "(_Live)"
        opening = OWN_PART.replace("OPTIONS", OPTIONS) if name == "Lab" else ""
        if name == "Lab":
            for own in (
                "Path",
                "PackLike",
                "EmbedderSpec",
                "Clock",
                "KeySource",
                "MemoryLike",
                "Memory",
            ):
                self.imports[own] = names[own]
            opening += LIVE_PART.partition("_Live:\n")[2].split("\n", 1)[1]
        return f"class Async{name}{base}:\n    {body}\n{opening}"

    def write_function(self, function: ast.FunctionDef, names: dict[str, tuple[str, str]]) -> str:
        arguments = function.args
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ):
            if argument is not None and argument.annotation is not None:
                argument.annotation = ast.parse(
                    self.read_annotation(argument.annotation, names), mode="eval"
                ).body
        arguments.defaults = [shorten(default) for default in arguments.defaults]
        arguments.kw_defaults = [
            None if default is None else shorten(default) for default in arguments.kw_defaults
        ]
        assert function.returns is not None, function.name
        result, is_live = self.read_result(function.returns, names)
        lines = []
        if has(function, "property"):
            lines.append("@property")
            result = result if is_live else f"Awaitable[{result}]"
        elif has(function, "overload"):
            lines.append("@overload")
        prefix = "def" if is_live or has(function, "property") else "async def"
        text = (ast.get_docstring(function) or "").partition("\n")[0]
        body = f'\n    """{text}"""' if text else " ..."
        lines.append(f"{prefix} {function.name}({ast.unparse(arguments)}) -> {result}:{body}")
        return "\n".join(lines)

    def read_result(self, node: ast.expr, names: dict[str, tuple[str, str]]) -> tuple[str, bool]:
        """Return the type of a result, and whether it is an object that uses the lab."""
        if isinstance(node, ast.Name):
            module, original = names.get(node.id, ("", ""))
            if node.id == "Self":
                return "AsyncLab", True
            if original in LIVE or (original.startswith("Lab") and original not in ("LabFeature",)):
                if (module, original) not in self.written:
                    self.written.add((module, original))
                    self.waiting.append((module, original))
                return f"Async{original}", True
        return self.read_annotation(node, names), False

    def read_annotation(self, node: ast.expr, names: dict[str, tuple[str, str]]) -> str:
        """Return an annotation without the rules of `Annotated`, and note what it imports."""
        node = _Plain().visit(ast.parse(ast.unparse(node), mode="eval").body)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and not hasattr(builtins, part.id):
                source = names[part.id]
                if self.imports.setdefault(part.id, source) != source:
                    raise ValueError(
                        f"{part.id} is imported from {source} and {self.imports[part.id]}"
                    )
        return ast.unparse(node)


class _Plain(ast.NodeTransformer):
    """Replaces ``Annotated[X, ...]`` by X."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            assert isinstance(node.slice, ast.Tuple)
            return node.slice.elts[0]
        return node


def has(function: ast.FunctionDef, decorator: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == decorator for node in function.decorator_list
    )


def shorten(default: ast.expr) -> ast.expr:
    """Return a plain default as it is, and ``...`` for a name that would need an import."""
    plain = isinstance(default, ast.Constant | ast.UnaryOp) or ast.unparse(default) == "()"
    return default if plain else ast.Constant(...)


def find_names(tree: ast.Module, module: str) -> dict[str, tuple[str, str]]:
    """Return where each name of a module comes from: its module, and its name there."""
    names: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {item.asname or item.name: (node.module, item.name) for item in node.names}
        elif isinstance(node, ast.Import):
            names |= {item.asname or item.name: (item.name, "") for item in node.names}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names[node.name] = (module, node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, (module, node.targets[0].id))
    return names


def write_stub() -> str:
    """Return the stub, formatted."""
    text = Writer().write()
    for step in (("check", "--fix", "--quiet", "--select", "I"), ("format",)):
        command = [sys.executable, "-m", "ruff", *step, "--stdin-filename", str(STUB), "-"]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, cwd=ROOT.parent
        )
        text = done.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(write_stub(), encoding="utf-8")
