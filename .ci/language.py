"""Check the language of memlab: phrases, docstrings, names, comments and the length of the README.

    python .ci/language.py                      # everything; exits with 1 if anything is wrong
    python .ci/language.py memlab/science       # the files below a folder
    python .ci/language.py --counts memlab      # one line for each rule

The rules and their exceptions stand in `language.toml` beside this file.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((Path(__file__).parent / "language.toml").read_text(encoding="utf-8"))
TEXTS = {".md", ".py", ".hy", ".ts", ".tsx", ".ipynb", ".css", ".html", ".toml"}
FOLDERS = ("memlab", "policies", "experiments", "tests", "docs", "notebooks")
# Not our prose: bundles, recorded data, texts of readers who saw no code, speech of simulated people, and the English
# that patterns match.
SKIPPED = {
    "english.toml",
    "signs.toml",
    "words.toml",
    "node_modules",
    "static",
    "__pycache__",
    "fixtures",
    "acts",
    "history",
    "data",
    "golden",
}

PRONOUNS = {"what", "it", "one", "that", "those"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
# What the mccabe checker of ruff counts, so that both name the same functions.
LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
BRANCHES = (*LOOPS, ast.If, ast.ExceptHandler, ast.match_case)


@dataclass(frozen=True)
class Fault:
    rule: str
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.rule}: {self.text}"


def list_files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_file():
            yield path
            continue
        for file in sorted(path.rglob("*")):
            parts = set(file.relative_to(ROOT).parts)
            if file.suffix in TEXTS and file.is_file() and not parts & SKIPPED:
                yield file


# Phrases


def visible_text(path: Path) -> str:
    """Return the text of a file in which a reader may meet a phrase, with its line numbers kept."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells)
    return text


def check_phrases(path: Path, text: str) -> Iterator[Fault]:
    lowered = text.lower()
    for phrase, better in RULES["phrases"].items():
        # most phrases are in no file: to look for their words takes a small part of the time of the expression
        if not all(word in lowered for word in phrase.lower().split()):
            continue
        words = r"[\s\"'#;*/>|]+".join(re.escape(word) for word in phrase.split())
        for match in re.finditer(rf"(?<![\w-]){words}(?![\w-])", text, flags=re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            yield Fault("phrase", path, line, f"{phrase!r}; write {better}")


# Docstrings


def strip_code(docstring: str) -> str:
    """Return the prose of a docstring, without examples, literal blocks, tables and section heads.

    A pilcrow stands where a list item, a section or the name of a parameter ends a sentence.
    """
    prose = []
    in_example = in_block = False
    previous = ""
    for line in docstring.splitlines():
        text = line.strip()
        if text.startswith(">>>"):
            in_example = True
        elif not text:
            in_example = False
        # An indented block after a line that ends with a colon, or at the start of a module's text, is literal.
        if line.startswith("    ") and not previous.strip():
            in_block = in_block or not re.match(r"[\w*, ]+$", heading_above(prose))
        elif text and not line.startswith("    "):
            in_block = False
        previous = line
        if in_example or in_block or text.startswith("|") or re.fullmatch(r"-{3,}", text):
            continue
        is_item = re.match(r"[-*] |\d+\. |[\w@,/ ]+ {2,}\S", text)  # a row of a table, too
        is_name = re.fullmatch(r"\*{0,2}\w+(, \*{0,2}\w+)*( : .*)?", text)
        prose.append(f"¶ {text} ¶" if is_name else f"¶ {text}" if is_item else text or "¶")
    return re.sub(r"`+[^`]+`+", "code", " ".join(prose).replace("::", "."))


def heading_above(prose: list[str]) -> str:
    """Return the last line of prose, without its marks."""
    return next((line.replace("¶", "").strip() for line in reversed(prose) if line != "¶"), "")


def split_sentences(prose: str) -> list[list[str]]:
    sentences = re.split(r"(?<=[.!?:])\s+(?=[A-Z`\"'(.\d]|code\b)|¶", prose)
    return [re.findall(r"[\w'/-]*\w[\w'/-]*", sentence) for sentence in sentences]


def check_docstring(path: Path, node: ast.AST, docstring: str) -> Iterator[Fault]:
    line = getattr(node, "lineno", 1)
    prose = strip_code(docstring)
    for words in split_sentences(prose):
        if len(words) > 30:
            yield Fault(
                "long sentence", path, line, f"{len(words)} words: {' '.join(words[:8])} ..."
            )
    words = re.findall(r"[\w'-]+", prose.lower())
    pronouns = [word for word in words if word in PRONOUNS]
    if len(words) < 26 and len(pronouns) >= 4:
        yield Fault("pronouns", path, line, " ".join(words))


# Comments


def comment_lines(source: str) -> set[int]:
    if "#" not in source:  # to read the tokens of a file takes longer than all other checks of it
        return set()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0] for token in tokens if token.type == tokenize.COMMENT}


def complexity(function: Function) -> int:
    """Return the cyclomatic complexity as the mccabe checker counts it."""
    branches = 1
    for node in ast.walk(function):
        branches += isinstance(node, BRANCHES)
    return branches


def _is_constant(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    # Types and texts explain themselves; a number, or a table of them, does not.
    return bool(names) and all(re.fullmatch(r"_?[A-Z][A-Z0-9_]+", name) for name in names)


def _explained(
    node: ast.stmt, following: ast.stmt | None, comments: set[int], before: bool
) -> bool:
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        return isinstance(following.value.value, str)
    last = node.end_lineno or node.lineno
    return before or bool(comments & set(range(node.lineno - 1, last + 1)))


def check_constants(path: Path, tree: ast.Module, comments: set[int]) -> Iterator[Fault]:
    """Yield the constants without a comment. A comment above a block of constants serves them all."""
    bodies = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
    for body in bodies:
        explained_until = -1
        for node, following in zip(body, [*body[1:], None], strict=False):
            if not _is_constant(node):
                continue
            before = node.lineno == explained_until + 1
            if _explained(node, following, comments, before):
                explained_until = node.end_lineno or node.lineno
            else:
                yield Fault("constant without a reason", path, node.lineno, ast.unparse(node)[:60])


def check_comments(path: Path, tree: ast.Module, comments: set[int]) -> Iterator[Fault]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            lines = set(range(node.lineno - 1, (node.end_lineno or node.lineno) + 1))
            if complexity(node) > 8 and not comments & lines:
                text = f"{node.name} has a complexity of {complexity(node)}"
                yield Fault("complex function without a comment", path, node.lineno, text)
            for decorator in node.decorator_list:
                name = ast.unparse(decorator).split("(")[0].split(".")[-1]
                own = {decorator.lineno, decorator.lineno - 1, node.lineno}
                if name in {"cache", "lru_cache"} and not comments & own:
                    yield Fault("cache without a reason", path, node.lineno, node.name)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).split(".")[-1]
            is_lock = name in {"Lock", "RLock", "Condition", "Semaphore"}
            if is_lock and not comments & {node.lineno, node.lineno - 1}:
                yield Fault("lock without a reason", path, node.lineno, ast.unparse(node))


# Names


def check_names(path: Path, tree: ast.Module) -> Iterator[Fault]:
    public = RULES["names"]["public"].get(path.relative_to(ROOT).as_posix(), ())
    vague = set(RULES["names"]["vague"]) - set(public)
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name.strip("_") in vague:
            yield Fault("vague function name", path, node.lineno, node.name)
        elif isinstance(node, ast.arg) and node.arg.strip("_") in vague:
            yield Fault("vague name", path, node.lineno, node.arg)
        elif (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and node.id.strip("_") in vague
        ):
            yield Fault("vague name", path, node.lineno, node.id)


def count_repeated_names(trees: dict[Path, ast.Module]) -> dict[str, int]:
    """Return the names of more than five functions and methods, without those that a protocol prescribes.

    Functions within functions do not count: nobody calls them from elsewhere.
    """
    names: Counter[str] = Counter()
    for tree in trees.values():
        owners = [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]
        names.update(
            node.name for owner in owners for node in owner.body if isinstance(node, Function)
        )
    protocol = set(RULES["names"]["protocol"])
    return {
        name: count
        for name, count in names.most_common()
        if count > 5 and name not in protocol and not name.startswith("__")
    }


# README


def check_readme(text: str) -> Iterator[Fault]:
    path = ROOT / "README.md"
    blocks = re.findall(r"^```.*?^```$", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    words = len(prose.split())
    lines = sum(len(block.splitlines()) - 2 for block in blocks)
    if words > 700:
        yield Fault("README", path, 1, f"{words} words outside code blocks; the maximum is 700")
    if lines > 60:
        yield Fault("README", path, 1, f"{lines} lines of code; the maximum is 60")


def find_faults(paths: list[Path]) -> Iterator[Fault]:
    trees: dict[Path, ast.Module] = {}
    for path in list_files(paths):
        text = visible_text(path)
        yield from check_phrases(path, text)
        if path == ROOT / "README.md":
            yield from check_readme(text)
        if path.suffix != ".py":
            continue
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, Function | ast.ClassDef | ast.Module):
                docstring = ast.get_docstring(node)
                if docstring:
                    yield from check_docstring(path, node, docstring)
        if ROOT / "tests" in path.parents:
            continue
        yield from check_names(path, tree)
        if ROOT / "memlab" in path.parents:
            trees[path] = tree
            comments = comment_lines(text)
            yield from check_comments(path, tree, comments)
            yield from check_constants(path, tree, comments)
    repeated = count_repeated_names(trees)
    if len(repeated) > RULES["names"]["repeated"]:
        text = f"{len(repeated)}: " + ", ".join(
            f"{name} {count}" for name, count in repeated.items()
        )
        yield Fault("names of more than five functions", ROOT / "memlab", 0, text)


def allowed(fault: Fault) -> bool:
    """Say whether an exception of the rules covers a fault."""
    lines = (ROOT / fault.path).read_text(encoding="utf-8").splitlines() if fault.line else []
    line = lines[fault.line - 1] if fault.line <= len(lines) and lines else ""
    path = str(fault.path.relative_to(ROOT))
    return any(
        exception["path"] == path and exception["line"] in line
        for exception in RULES.get("exceptions", ())
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--counts", action="store_true", help="print one line for each rule")
    options = parser.parse_args()
    everything = [*(ROOT / name for name in FOLDERS), ROOT / "README.md", ROOT / "CHANGELOG.md"]
    paths = [path.resolve() for path in options.paths] or everything
    faults = [fault for fault in find_faults(paths) if not allowed(fault)]
    if options.counts:
        by_rule: dict[str, int] = defaultdict(int)
        for fault in faults:
            by_rule[fault.rule] += 1
        for rule, count in sorted(by_rule.items()):
            print(f"{count:6} {rule}")
    else:
        for fault in faults:
            print(fault)
    if len(RULES.get("exceptions", ())) > 20:
        print("language.toml has more than 20 exceptions.")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
