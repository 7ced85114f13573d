"""Rules that the files of a project state: settings of formatters and linters, instructions for agents, README.

Nothing is run, and a setting that a file computes is not read. Texts are taken as they stand; they are shown to a
person before anything is remembered.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

__all__ = [
    "is_instructions",
    "jsonc",
    "rules_of",
    "rules_of_package",
    "rules_of_pyproject",
    "states_rules",
]

_MOST_NAMED = 12
"""Settings that one rule names: more are a file to be opened."""
_FOR_AGENTS = re.compile(
    r"(AGENTS?|CLAUDE(\.local)?|GEMINI|WARP)\.md|copilot-instructions\.md"
    r"|\.(cursorrules|windsurfrules|clinerules|roorules|goosehints|rules)"
)
"""Files for agents, at any depth: written in capitals, as their tools look for them."""
_AT_ROOT = re.compile(
    r"(agents?|claude|gemini|contributing|conventions?|style[ _-]?guide|guidelines|copilot-instructions)"
    r"(\.(md|mdx|txt|rst))?",
    re.IGNORECASE,
)
_FOLDERS = re.compile(
    r"(?:^|/)(\.cursor/rules|\.windsurf/rules|\.clinerules|\.roo/rules[\w-]*|\.continue/rules|\.amazonq/rules|"
    r"\.kiro/steering|\.junie|\.github/instructions)/(?:[^/]+/)*[^/]+\.(?:mdc?|txt)$"
)
_FOR_PEOPLE = re.compile(r"contributing|readme", re.IGNORECASE)
_README = re.compile(r"readme(\.\w+)?", re.IGNORECASE)
_OF_RULES = re.compile(r"style|convention|guideline|contribut|rules?\b|develop", re.IGNORECASE)
_OF_STATED_RULES = re.compile(r"style|convention|guideline|rules?\b", re.IGNORECASE)
"""Headings below which even a short entry is a rule; below "Contributing" or "Development" it may be a chapter."""
_OF_STACK = re.compile(r"\b(tech(nology|nologies)?|stack|built with|technologies)\b", re.IGNORECASE)
_BULLET = re.compile(r"\s{0,3}(?:[-*+]|\d{1,2}[.)])\s+(\S.+)")
_LONGEST = 240
"""Characters of a rule: more is a page to be read."""
_LONG, _SHORT = 19, 6
"""Characters of a bullet that is a rule: in a page for people shorter ones are entries of a list of contents."""
_IMPERATIVE = re.compile(
    r"(?:always|never|do not|don't|avoid|prefer|use|keep|write|run|add|follow|ensure|make sure|name|put|place|import|"
    r"handle|return|test|document|format|commit|ask|check|create|define|extract|favou?r|include|limit|only|respect|"
    r"start|stick|store|update|validate|wrap|no|(?:\w+ ){1,4}(?:must|should|may not|cannot))\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\*\*|__|`(?=\S)|(?<=\S)`")


def is_instructions(path: str) -> bool:
    """Return whether a file tells agents or people how to work on the project."""
    folder, _, name = path.rpartition("/")
    if _FOR_AGENTS.fullmatch(name) is not None or _FOLDERS.search(path) is not None:
        return True
    return folder in ("", ".github") and _AT_ROOT.fullmatch(name) is not None


def states_rules(path: str) -> bool:
    """Return whether ``rules_of`` knows the form of a file."""
    folder, _, name = path.rpartition("/")
    if is_instructions(path) or (_README.fullmatch(name) and folder in ("", ".github")):
        return True
    return any(re.fullmatch(pattern, name) for pattern, _ in _READERS)


def rules_of(path: str, text: str) -> Iterable[str]:
    """Return the rules that a file states; none for a file of which no form is known. ValueError where it is broken."""
    name = path.rsplit("/", 1)[-1]
    if is_instructions(path):
        return _instructions(path, text)
    if _README.fullmatch(name):
        return _readme(text)
    for pattern, read in _READERS:
        if re.fullmatch(pattern, name):
            return read(text)
    return ()


# -- prose ------------------------------------------------------------------------------------------------------------


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The lines of a page outside code, front matter and comments, each with the heading above it."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    heading, fenced, entry = "", False, ""
    for line in [*text.splitlines(), ""]:
        if (
            entry
            and not fenced
            and line[:1] in " \t"
            and line.strip()
            and not _BULLET.fullmatch(line)
        ):
            entry = f"{entry} {line.strip()}"  # an entry that goes on
            continue
        if entry:
            yield heading, entry
            entry = ""
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif line.startswith("#") and not fenced:
            heading = line
            yield line, ""
        elif not fenced and _BULLET.match(line):
            entry = line.rstrip()
        elif not fenced:
            yield heading, line.rstrip()


def _entry(line: str) -> str | None:
    """The words of an entry of a list: as many of its sentences as fit."""
    if not (bullet := _BULLET.match(line)):
        return None
    words = bullet[1].strip()
    if len(words) > _LONGEST:
        ends = [end.end() for end in re.finditer(r"[.!?;](?=\s)", words) if end.end() <= _LONGEST]
        words = words[: ends[-1]] if ends else ""
    return words or None


def _instructions(path: str, text: str) -> Iterator[str]:
    """Bullets, and of a file for agents the lines that are orders too."""
    people = _FOR_PEOPLE.search(path.rsplit("/", 1)[-1]) is not None
    for heading, line in _lines(text):
        if _OF_STACK.search(heading) and not people and not _OF_RULES.search(heading):
            continue
        if entry := _entry(line):
            if _says(entry, _LONG if people else _SHORT):
                yield entry
        elif (
            not people
            and _says(line, _SHORT)
            and len(line) <= 240
            and _IMPERATIVE.match(line.strip())
        ):
            yield line.strip()
    yield from _stack(text)


def _readme(text: str) -> Iterator[str]:
    for heading, line in _lines(text):
        entry = _entry(line)
        least = _SHORT if _OF_STATED_RULES.search(heading) else _LONG
        if (
            entry
            and _OF_RULES.search(heading)
            and not _OF_STACK.search(heading)
            and _says(entry, least)
        ):
            yield entry
    yield from _stack(text)


def _says(text: str, least: int) -> bool:
    text = text.strip()
    plain = (
        text.isprintable()
        and not text.startswith(("[", "<", "!", "|", "http"))
        and not text.endswith(":")
    )
    return plain and len(text) >= least and len(text.split()) >= 2


def _stack(text: str) -> Iterator[str]:
    """What a project is built with, below a heading that says so, or in a sentence that begins so."""
    named: list[str] = []
    for heading, line in _lines(text):
        if _OF_STACK.search(heading) and not _OF_RULES.search(heading) and (entry := _entry(line)):
            named.append(_named(entry))
    if not named and (
        said := re.search(r"^(?:built|made|written) with ([^\n]{3,160}?)[.\n]", text, re.I | re.M)
    ):
        named = [_named(said[1])]
    named = [name for name in dict.fromkeys(named) if name and name.isprintable()]
    if named:
        yield f"The tech stack is {', '.join(named[:_MOST_NAMED])}."


def _named(text: str) -> str:
    """The name at the beginning of an entry: "**Next.js 14** - the framework" gives "Next.js 14"."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = _WORDS.sub("", text)
    return re.split(r"\s+[-\u2013\u2014]\s+|\s+\(|\.\s", text)[0].strip(" .")[:80]


# -- settings ---------------------------------------------------------------------------------------------------------


def jsonc(text: str) -> Any:
    """Read JSON with comments and commas after the last item. ValueError for what is broken.

    >>> jsonc('{"a": "http://x", /* why */ "b": [1, 2,], // end' + chr(10) + "}")
    {'a': 'http://x', 'b': [1, 2]}
    """
    token = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/'
    plain = re.sub(token, lambda one: one[0] if one[0][0] == '"' else " ", text, flags=re.DOTALL)
    comma = r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])'
    return json.loads(re.sub(comma, lambda one: one[0] if one[0][0] == '"' else "", plain))


def _table(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}


def _settings(given: Mapping[str, Any]) -> str:
    """Plain values as words: "tabWidth 2, semi false"."""
    plain = {
        name: value for name, value in sorted(given.items()) if isinstance(value, str | int | float)
    }
    return ", ".join(
        f"{name} {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in plain.items()
    )[:200]


def _biome(text: str) -> Iterator[str]:
    given = _table(jsonc(text))
    formatter, script = (
        _table(given.get("formatter")),
        _table(_table(given.get("javascript")).get("formatter")),
    )
    style, width = formatter.get("indentStyle"), formatter.get("indentWidth")
    if style in ("tab", "space"):
        by = f"{width} spaces" if style == "space" and isinstance(width, int) else f"{style}s"
        yield f"Code is indented by {by} (biome)."
    if isinstance(formatter.get("lineWidth"), int):
        yield f"Lines have at most {formatter['lineWidth']} characters (biome)."
    if said := _settings(
        {name: script[name] for name in script if name not in ("enabled", "indentStyle")}
    ):
        yield f"JavaScript is formatted by biome: {said}."
    rules = _table(_table(given.get("linter")).get("rules"))
    strict = [
        name
        for group in rules.values()
        for name, level in _table(group).items()
        if level == "error" or _table(level).get("level") == "error"
    ]
    if strict:
        yield f"The linter biome refuses: {', '.join(map(str, strict[:_MOST_NAMED]))}."


_ESLINT = re.compile(
    r"""["']?([@\w/-]+)["']?\s*:\s*(?:\[\s*(?:["']error["']|2)\s*(?:,\s*["']([\w.-]+)["'])?|["']error["']|2\b)"""
)


def _eslint(text: str) -> Iterator[str]:
    """Rules that are errors, with their first option, and what is extended; the file may be JSON, YAML or code."""
    base = re.findall(r"""extends["']?\s*:\s*\[?\s*["']([@\w/:.-]+)["']""", text)
    base += re.findall(r"^extends:\s*(?:-\s*)?[\"']?([@\w/:.-]+)", text, re.M)
    for name in dict.fromkeys(base):
        yield f"ESLint extends {name}."
    found = {
        name: option for name, option in _ESLINT.findall(text) if name not in ("error", "level")
    }
    found |= dict.fromkeys(
        re.findall(r"^\s+[\"']?([@\w/-]+)[\"']?:\s*(?:error|2)\s*$", text, re.M), ""
    )
    if found:
        said = [f"{name} {option}".strip() for name, option in found.items()]
        yield f"ESLint refuses what breaks: {', '.join(said[:_MOST_NAMED])}."


def _prettier(text: str) -> Iterator[str]:
    if text.lstrip().startswith("{"):
        given = _table(jsonc(text))
    elif re.search(r"export default|module\.exports", text):
        given = dict(re.findall(r"^\s*[\"']?(\w+)[\"']?\s*:\s*[\"']?(\w+)[\"']?,?\s*$", text, re.M))
    else:  # YAML or TOML
        given = dict(re.findall(r"^(\w+)\s*[:=]\s*[\"']?([\w-]+)[\"']?\s*$", text, re.M))
    yield from _of_prettier(given)


def _of_prettier(given: Any) -> Iterator[str]:
    if said := _settings(_table(given)):
        yield f"Code is formatted by prettier: {said}."


_STRICT = (
    "noUncheckedIndexedAccess",
    "noImplicitReturns",
    "exactOptionalPropertyTypes",
    "noUnusedLocals",
)


def _tsconfig(text: str) -> Iterator[str]:
    given = _table(_table(jsonc(text)).get("compilerOptions"))
    if given.get("strict") is True:
        yield "TypeScript is checked in strict mode."
    if more := [name for name in _STRICT if given.get(name) is True]:
        yield f"TypeScript is checked with {', '.join(more)}."


def _editorconfig(text: str) -> Iterator[str]:
    for section in re.split(r"^(?=\[)", text[:20_000], flags=re.M):
        if not (named := re.match(r"\[([^\]\n]{1,60})\]", section)):
            continue
        given = dict(re.findall(r"^(\w+)\s*=\s*([\w-]+)\s*$", section, re.M))
        if style := given.get("indent_style"):
            width = f", {given['indent_size']} wide" if "indent_size" in given else ""
            yield f"Files {named[1]} are indented by {style}{width}."
        if (most := given.get("max_line_length", "off")) != "off":
            yield f"Lines of files {named[1]} have at most {most} characters."


def _rustfmt(text: str) -> Iterator[str]:
    if said := _settings(tomllib.loads(text)):
        yield f"Rust is formatted by rustfmt: {said}."


def _ruff(text: str) -> Iterator[str]:
    yield from _of_ruff(tomllib.loads(text))


def _of_ruff(given: Any) -> Iterator[str]:
    given = _table(given)
    if isinstance(given.get("line-length"), int):
        yield f"Lines of Python have at most {given['line-length']} characters (ruff)."
    chosen = _table(given.get("lint")).get("select", given.get("select"))
    if isinstance(chosen, list) and chosen:
        yield f"Python is linted by ruff, rules {', '.join(map(str, chosen[:_MOST_NAMED]))}."
    if said := _settings(_table(given.get("format"))):
        yield f"Python is formatted by ruff: {said}."


def rules_of_pyproject(tool: Mapping[str, Any]) -> Iterator[str]:
    """Return the rules of the tables below ``tool`` of a pyproject.toml."""
    yield from _of_ruff(tool.get("ruff"))
    black = _table(tool.get("black"))
    if isinstance(black.get("line-length"), int):
        yield f"Lines of Python have at most {black['line-length']} characters (black)."
    elif "black" in tool:
        yield "Python is formatted by black."
    if said := _settings(
        {k: v for k, v in _table(tool.get("isort")).items() if k in ("profile", "line_length")}
    ):
        yield f"Imports are sorted by isort: {said}."
    if _table(tool.get("mypy")).get("strict") is True:
        yield "Types are checked by mypy in strict mode."
    if (mode := _table(tool.get("pyright")).get("typeCheckingMode")) in (
        "strict",
        "standard",
        "basic",
    ):
        yield f"Types are checked by pyright in {mode} mode."


def rules_of_package(given: Mapping[str, Any]) -> Iterator[str]:
    """Return the rules that a package.json states besides what is needed."""
    yield from _of_prettier(given.get("prettier"))
    if isinstance(given.get("eslintConfig"), dict):
        yield from _eslint(json.dumps(given["eslintConfig"]))
    node = _table(given.get("engines")).get("node")
    if isinstance(node, str) and len(node) < 40:
        yield f"Node.js {node} is supported."
    if given.get("type") == "module":
        yield "JavaScript files are ES modules (import, not require)."


def _flake8(text: str) -> Iterator[str]:
    given = configparser.ConfigParser(interpolation=None)
    given.read_string(text)
    for section in ("flake8", "pycodestyle"):
        if given.has_option(section, "max-line-length"):
            yield f"Lines of Python have at most {given[section]['max-line-length'][:10]} characters ({section})."
    if given.has_section("mypy") and given["mypy"].get("strict", "").lower() == "true":
        yield "Types are checked by mypy in strict mode."


def _aider(text: str) -> Iterator[str]:
    for name, what in (("lint-cmd", "Lint with"), ("test-cmd", "Test with")):
        for command in re.findall(rf"^{name}:\s*[\"']?([^\"'\n#]{{2,100}})", text, re.M):
            yield f"{what}: {command.strip()}"
    for named in re.findall(r"^(?:read|conventions?):\s*\[?[\"']?([\w./-]+\.\w+)", text, re.M):
        yield f"Read {named} before a change."


def _commitlint(text: str) -> Iterator[str]:
    if "conventional" in text:
        yield "Commit messages follow the conventional commits (commitlint)."


def _pre_commit(text: str) -> Iterator[str]:
    hooks = list(dict.fromkeys(re.findall(r"^\s*-?\s*id:\s*([\w-]+)", text, re.M)))
    if hooks:
        yield f"Before a commit run: {', '.join(hooks[:_MOST_NAMED])} (pre-commit)."


def _version(text: str, of: str) -> Iterator[str]:
    if re.fullmatch(r"v?[\w./*-]{1,30}", text.strip()):
        yield f"{of} {text.strip().removeprefix('v')} is used."


_READERS: tuple[tuple[str, Callable[[str], Iterable[str]]], ...] = (
    (r"biome\.jsonc?", _biome),
    (r"\.eslintrc(\.\w+)?|eslint\.config\.\w+", _eslint),
    (r"\.prettierrc(\.\w+)?|prettier\.config\.\w+", _prettier),
    (r"tsconfig(\.base)?\.json", _tsconfig),
    (r"\.editorconfig", _editorconfig),
    (r"\.?rustfmt\.toml", _rustfmt),
    (r"\.?ruff\.toml", _ruff),
    (r"\.flake8|setup\.cfg|tox\.ini|mypy\.ini", _flake8),
    (r"\.aider\.conf\.ya?ml", _aider),
    (r"\.?commitlint(rc)?(\.config)?(\.\w+)?", _commitlint),
    (r"\.pre-commit-config\.ya?ml", _pre_commit),
    (r"\.nvmrc|\.node-version", lambda text: _version(text, "Node.js")),
    (r"\.python-version", lambda text: _version(text, "Python")),
)
