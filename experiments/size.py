"""Measure the size of the code: lines and tokens by package, longest files, repeated names.

    python experiments/size.py [FOLDER]

Tokens are those of Python's tokenizer, without comments, docstrings, line ends and indentation. A line of code has at
least one token. Tokens compare projects better than lines, whose density differs. A nested comprehension is inside
another comprehension; its count is per 100 statements.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import NamedTuple

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Size(NamedTuple):
    """Counts of one file or of several: lines of code, tokens, statements, nested comprehensions."""

    lines: int = 0
    tokens: int = 0
    statements: int = 0
    nested: int = 0


def measure_source(source: str) -> Size:
    """Count the lines, tokens, statements and nested comprehensions of a Python text.

    >>> measure_source('"A docstring."\\n\\nx = 1  # one\\n')
    Size(lines=1, tokens=3, statements=1, nested=0)
    """
    tree = ast.parse(source)
    tokens = read_tokens(source, tree)
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    statements = sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - _count_docstrings(
        tree
    )
    return Size(len(lines), len(tokens), statements, _count_nested(tree))


def read_tokens(source: str, tree: ast.AST) -> list[tokenize.TokenInfo]:
    """Return the tokens of a Python text that count."""
    docstrings = _docstring_lines(tree)
    if sys.version_info >= (3, 12):
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    else:  # Python 3.11 has the tokenizer of its parser too, which takes a tenth of the time
        tokens = tokenize._generate_tokens_from_c_tokenizer(source)
    return [
        token for token in tokens if token.type not in _LAYOUT and token.start[0] not in docstrings
    ]


def add_sizes(sizes: list[Size]) -> Size:
    """Add the counts of several files.

    >>> add_sizes([Size(1, 3, 1, 0), Size(2, 5, 2, 1)])
    Size(lines=3, tokens=8, statements=3, nested=1)
    """
    return Size(*(sum(column) for column in zip(*sizes, strict=True)))


def _docstrings(tree: ast.AST) -> list[ast.Expr]:
    firsts = [
        node.body[0] for node in ast.walk(tree) if isinstance(node, _DOCUMENTED) and node.body
    ]
    return [
        first
        for first in firsts
        if isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ]


def _docstring_lines(tree: ast.AST) -> set[int]:
    return {
        line
        for text in _docstrings(tree)
        for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)
    }


def _count_docstrings(tree: ast.AST) -> int:
    return len(_docstrings(tree))


def _count_nested(tree: ast.AST) -> int:
    inner: set[ast.AST] = set()
    for outer in ast.walk(tree):
        if isinstance(outer, _COMPREHENSION):
            inner.update(
                node
                for node in ast.walk(outer)
                if node is not outer and isinstance(node, _COMPREHENSION)
            )
    return len(inner)


def _package_of(path: Path) -> str:
    depth = 3 if path.parts[:2] == ("kernel", "verbs") else 2
    return "/".join(path.parts[:depth])


def _format_row(size: Size, name: str) -> str:
    density = size.tokens / max(size.lines, 1)
    nested = 100 * size.nested / max(size.statements, 1)
    return f"{size.lines:>7,} {size.tokens:>9,} {density:>7.1f} {nested:>7.2f}  {name}"


def measure_tree(root: Path) -> dict[Path, Size]:
    """Measure every Python file below ``root``, under its path from there."""
    return {
        path.relative_to(root): measure_source(path.read_text(encoding="utf-8"))
        for path in root.rglob("*.py")
    }


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path(__file__).parent.parent / "memlab"
    )
    root = parser.parse_args().folder
    sizes = measure_tree(root)
    packages: dict[str, list[Size]] = {}
    for path, size in sizes.items():
        packages.setdefault(_package_of(path), []).append(size)
    print("  lines    tokens  a line  nested  package (nested comprehensions for 100 statements)")
    totals = {name: add_sizes(of_package) for name, of_package in packages.items()}
    for name, size in sorted(totals.items(), key=lambda item: -item[1].lines):
        print(_format_row(size, name))
    for group in sorted({path.parts[0] for path in sizes if len(path.parts) > 1}):
        print(
            _format_row(
                add_sizes([size for path, size in sizes.items() if path.parts[0] == group]),
                f"{group} in all",
            )
        )
    print(_format_row(add_sizes(list(sizes.values())), f"in {len(sizes)} files"))
    longest = sorted(sizes, key=lambda path: -sizes[path].lines)[:3]
    print("longest:", ", ".join(f"{path} {sizes[path].lines}" for path in longest))
    names = Counter(path.name for path in sizes if path.name != "__init__.py")
    print(
        "one name for several files:",
        ", ".join(f"{name} x{count}" for name, count in names.most_common() if count > 1),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
