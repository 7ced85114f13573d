"""How large the code is: lines of code a package, the longest files, and how often a name stands for several files.

    python experiments/size.py [FOLDER]

A line of code is one that holds a token of it: no blank line, comment or docstring.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

_NOTHING = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(source: str) -> int:
    """Lines that hold code.

    >>> lines_of_code('"A docstring."\\n\\nx = 1  # one\\n')
    1
    """
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOTHING:
            held.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and body:
            first = body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                held -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(held)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent.parent / "memlab")
    root = parser.parse_args().folder
    sizes = {path.relative_to(root): lines_of_code(path.read_text(encoding="utf-8")) for path in root.rglob("*.py")}
    packages: Counter[str] = Counter()
    for path, size in sizes.items():
        packages["/".join(path.parts[: 2 if path.parts[0] == "subjects" else 1])] += size
    for name, size in packages.most_common():
        print(f"{size:>7,}  {name}")
    print(f"{sum(sizes.values()):>7,}  in {len(sizes)} files")
    print("longest:", ", ".join(f"{path} {size}" for path, size in Counter(sizes).most_common(3)))
    named = Counter(path.name for path in sizes if path.name != "__init__.py")
    print(
        "one name for several files:", ", ".join(f"{name} x{count}" for name, count in named.most_common() if count > 1)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
