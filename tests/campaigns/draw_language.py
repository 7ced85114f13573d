"""Draw sentences, strings and comments of memlab by seed, for readers who judge the language.

    python -m tests.campaigns.draw_language strings --seed 1    # 20 messages, 20 docstrings of functions
    python -m tests.campaigns.draw_language sentences --seed 1  # 100 sentences of documentation and docstrings
    python -m tests.campaigns.draw_language comments --seed 1   # 40 comments, each with the code around it

A reader gets the printed lines and nothing else. At least 38 of 40 strings should be understood. At most 3 sentences
may break the rules of style, and at most 3 comments may repeat the code.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FRAMES = {
    "UnknownName": ("There is no ", ' "the name that was given". Did you mean ...?'),
    "of_format": ("", " has format N, written by a later memlab. Upgrade memlab."),
    "of_word": ("", ", which this memlab does not know: a later memlab wrote it. Upgrade memlab."),
}
"""What these errors put before and after the text that they are given, so that readers see the message of users."""
PAGES = ("README.md", "docs/*.md", "docs/howto/*.md", "docs/reference/*.md")


def read_modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "memlab").rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def literal(node: ast.expr) -> Iterator[str]:
    """Yield the text of a string of at least four words; fields of an f-string stay in braces."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = ast.unparse(node)
        if len(re.sub(r"\{[^}]*\}", "", text).split()) >= 4:
            yield text


def list_messages() -> Iterator[str]:
    """Yield the texts of raised errors and of options and commands of the command line."""
    for _, tree in read_modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                start, end = FRAMES.get(ast.unparse(node.exc.func).rpartition(".")[2], ("", ""))
                for text in literal(node.exc.args[0]):
                    yield re.sub(
                        r"^(f?)(['\"]+)(.*)\2$",
                        lambda match: f"{match[1]}{match[2]}{start}{match[3]}{end}{match[2]}",  # noqa: B023
                        text,
                        flags=re.DOTALL,
                    )
            elif isinstance(node, ast.keyword) and node.arg in {"help", "title", "description"}:
                yield from literal(node.value)
    for path in sorted((ROOT / "memlab" / "ui" / "widgets" / "src").rglob("*.tsx")):
        if "node_modules" not in path.parts:
            text = path.read_text(encoding="utf-8")
            yield from re.findall(r'(?:title|label|aria-label|placeholder)="([^"{]{6,})"', text)


def list_docstrings(*, private: bool) -> Iterator[str]:
    for path, tree in read_modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            docstring = ast.get_docstring(node)
            is_private = node.name.startswith("_") and not node.name.startswith("__")
            if docstring and (is_private or not private):
                summary = " ".join(docstring.split("\n\n")[0].split())
                yield f"{path.relative_to(ROOT)}, {node.name}: {summary}"


def list_sentences() -> Iterator[str]:
    for pattern in PAGES:
        for page in sorted(ROOT.glob(pattern)):
            prose = re.sub(
                r"^```.*?^```$|<!--.*?-->|^ *\|[^\n]*$|^#[^\n]*$|^:::[^\n]*$|^ +options:[^\n]*$|^!\["
                r"|\]\([^)\n]*\.(?:png|svg|gif)\)",
                "",
                page.read_text(encoding="utf-8").partition("\n## References\n")[0],
                flags=re.M | re.S,
            )
            # The items of a list are sentences too, without their marker.
            for sentence in re.split(
                r"(?<=[.!?])\s+(?=[A-Z`*\[])|\n\n|^ *(?:- |\d\. )", prose, flags=re.M
            ):
                text = " ".join(sentence.split())
                if len(text.split()) > 4:
                    yield f"{page.name}: {text}"
    yield from list_docstrings(private=False)


def list_comments() -> Iterator[str]:
    for path, _ in read_modules():
        lines = path.read_text(encoding="utf-8").splitlines()
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type == tokenize.COMMENT and len(token.string.split()) > 3:
                    row = token.start[0]
                    around = "\n      ".join(lines[max(0, row - 2) : row + 3])
                    yield f"{path.relative_to(ROOT)}:{row}\n      {around}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["strings", "sentences", "comments"])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    if options.kind == "strings":
        drawn = dice.sample(sorted(set(list_messages())), 20)
        drawn += dice.sample(sorted(set(list_docstrings(private=True))), 20)
    elif options.kind == "sentences":
        drawn = dice.sample(sorted(set(list_sentences())), 100)
    else:
        drawn = dice.sample(sorted(set(list_comments())), 40)
    for number, text in enumerate(drawn, 1):
        print(f"{number}. {text}")


if __name__ == "__main__":
    main()
