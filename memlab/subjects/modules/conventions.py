"""Read the conventions that the files of a project state.

The files are settings of formatters and linters, instructions for agents, and READMEs. No code is
run, and a setting that a file computes is not read. Texts are kept as written. A user reviews them
before they are remembered.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_MAX_NAMED = 12
"""The maximum number of settings in one convention; for more, a reader opens the file."""
_FOR_AGENTS = re.compile(
    r"(AGENTS?|CLAUDE(\.local)?|GEMINI|WARP)\.md|copilot-instructions\.md"
    r"|\.(cursorrules|windsurfrules|clinerules|roorules|goosehints|rules)"
)
"""A pattern of files for agents, at any depth; some are in capitals, as their tools look for them."""
# Patterns of files for agents or people in the root or in .github, and of folders with rules for coding assistants.
_AT_ROOT = re.compile(
    r"(agents?|claude|gemini|contributing|conventions?|style[ _-]?guide|guidelines|copilot-instructions)"
    r"(\.(md|mdx|txt|rst))?",
    re.IGNORECASE,
)
_FOLDERS = re.compile(
    r"(?:^|/)(\.cursor/rules|\.windsurf/rules|\.clinerules|\.roo/rules[\w-]*|\.continue/rules|\.amazonq/rules|"
    r"\.kiro/steering|\.junie|\.github/instructions)/(?:[^/]+/)*[^/]+\.(?:mdc?|txt)$"
)
# Patterns of files whose lists may be tables of contents, and of headings that announce rules.
_FOR_PEOPLE = re.compile(r"contributing|readme", re.IGNORECASE)
_README = re.compile(r"readme(\.\w+)?", re.IGNORECASE)
_OF_RULES = re.compile(r"style|convention|guideline|contribut|rules?\b|develop", re.IGNORECASE)
_OF_STATED_RULES = re.compile(r"style|convention|guideline|rules?\b", re.IGNORECASE)
"""A pattern of headings below which even a short entry is a rule.

Below "Contributing" or "Development", a short entry may be a chapter.
"""
# Patterns of headings that announce the technology of a project, and of an entry of a list.
_OF_STACK = re.compile(r"\b(tech(nology|nologies)?|stack|built with|technologies)\b", re.IGNORECASE)
_BULLET = re.compile(r"\s{0,3}(?:[-*+]|\d{1,2}[.)])\s+(\S.+)")
_LONGEST = 240
"""The maximum number of characters of a rule; a longer text is more than a rule."""
_LONG, _SHORT = 19, 6
"""The minimum characters of a rule in a file for people, and in a file for agents.

In files for people, shorter entries may be tables of contents.
"""
# Patterns of a line that begins like an order, and of Markdown marks around words.
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
    """Return whether ``rules_of`` reads the format of a file."""
    folder, _, name = path.rpartition("/")
    if is_instructions(path) or (_README.fullmatch(name) and folder in ("", ".github")):
        return True
    return any(re.fullmatch(pattern, name) for pattern, _ in _READERS)


def rules_of(path: str, text: str) -> Iterable[str]:
    """Return the rules that a file states, or no rules for an unknown format.

    A broken file raises ValueError.
    """
    name = path.rsplit("/", 1)[-1]
    if is_instructions(path):
        return _instructions(path, text)
    if _README.fullmatch(name):
        return _readme(text)
    for pattern, read in _READERS:
        if re.fullmatch(pattern, name):
            return read(text)
    return ()


# Rules in prose are list items and orders.


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of a heading and a line below it, outside code, front matter and comments; "" for a heading itself."""
    # An entry of a list may continue on indented lines, so it is yielded when the next line begins something else.
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
            entry = f"{entry} {line.strip()}"
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
    """Return a list item, cut after a sentence if too long; None for another line or without a short sentence."""
    if not (bullet := _BULLET.match(line)):
        return None
    words = bullet[1].strip()
    if len(words) > _LONGEST:
        ends = [end.end() for end in re.finditer(r"[.!?;](?=\s)", words) if end.end() <= _LONGEST]
        words = words[: ends[-1]] if ends else ""
    return words or None


def _instructions(path: str, text: str) -> Iterator[str]:
    """Yield the rules in an instruction file: list items, imperative sentences and the technology."""
    people = _FOR_PEOPLE.search(path.rsplit("/", 1)[-1]) is not None
    for heading, line in _lines(text):
        if _OF_STACK.search(heading) and not people and not _OF_RULES.search(heading):
            continue
        if entry := _entry(line):
            if _is_sentence(entry, _LONG if people else _SHORT):
                yield entry
        elif (
            not people
            and _is_sentence(line, _SHORT)
            and len(line) <= 240
            and _IMPERATIVE.match(line.strip())
        ):
            yield line.strip()
    yield from _stack(text)


def _readme(text: str) -> Iterator[str]:
    """Yield the rules in a README: list items below headings that announce rules, and the technology."""
    for heading, line in _lines(text):
        entry = _entry(line)
        minimum = _SHORT if _OF_STATED_RULES.search(heading) else _LONG
        if (
            entry
            and _OF_RULES.search(heading)
            and not _OF_STACK.search(heading)
            and _is_sentence(entry, minimum)
        ):
            yield entry
    yield from _stack(text)


def _is_sentence(text: str, minimum: int) -> bool:
    """Return whether a text is printable prose of at least ``minimum`` characters and two words."""
    text = text.strip()
    plain = (
        text.isprintable()
        and not text.startswith(("[", "<", "!", "|", "http"))
        and not text.endswith(":")
    )
    return plain and len(text) >= minimum and len(text.split()) >= 2


def _stack(text: str) -> Iterator[str]:
    """Yield one rule that names a project's technology, read from a list or a sentence."""
    names: list[str] = []
    for heading, line in _lines(text):
        if _OF_STACK.search(heading) and not _OF_RULES.search(heading) and (entry := _entry(line)):
            names.append(_leading_name(entry))
    if not names and (
        sentence := re.search(
            r"^(?:built|made|written) with ([^\n]{3,160}?)[.\n]", text, re.I | re.M
        )
    ):
        names = [_leading_name(sentence[1])]
    names = [name for name in dict.fromkeys(names) if name and name.isprintable()]
    if names:
        yield f"The tech stack is {', '.join(names[:_MAX_NAMED])}."


def _leading_name(text: str) -> str:
    """Return the name at the start of a list item, such as "Next.js 14".

    An example of an entry is "**Next.js 14** - the framework".
    """
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    text = _WORDS.sub("", text)
    return re.split(r"\s+[-\u2013\u2014]\s+|\s+\(|\.\s", text)[0].strip(" .")[:80]


# Rules in settings are read by a function for each tool.


def jsonc(text: str) -> Any:
    """Return JSON after removing comments and trailing commas; raise ValueError if invalid.

    >>> jsonc('{"a": "http://x", /* why */ "b": [1, 2,], // end' + chr(10) + "}")
    {'a': 'http://x', 'b': [1, 2]}
    """
    token = r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/'
    plain = re.sub(
        token, lambda match: match[0] if match[0][0] == '"' else " ", text, flags=re.DOTALL
    )
    comma = r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])'
    return json.loads(re.sub(comma, lambda match: match[0] if match[0][0] == '"' else "", plain))


def _table(value: Any) -> dict[str, Any]:
    """Return ``value`` for a dict, or an empty dict for other values."""
    return value if isinstance(value, dict) else {}


def _settings(values: Mapping[str, Any]) -> str:
    """Return plain settings, sorted by name, as text of at most 200 characters, such as "semi false, tabWidth 2"."""
    plain = {
        name: value
        for name, value in sorted(values.items())
        if isinstance(value, str | int | float)
    }
    return ", ".join(
        f"{name} {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in plain.items()
    )[:200]


def _biome(text: str) -> Iterator[str]:
    """Yield the rules in Biome's settings: indentation, line width, formatting, linter errors."""
    config = _table(jsonc(text))
    formatter, script = (
        _table(config.get("formatter")),
        _table(_table(config.get("javascript")).get("formatter")),
    )
    style, width = formatter.get("indentStyle"), formatter.get("indentWidth")
    if style in ("tab", "space"):
        by = f"{width} spaces" if style == "space" and isinstance(width, int) else f"{style}s"
        yield f"Code is indented by {by} (biome)."
    if isinstance(formatter.get("lineWidth"), int):
        yield f"Lines have at most {formatter['lineWidth']} characters (biome)."
    if options := _settings(
        {name: script[name] for name in script if name not in ("enabled", "indentStyle")}
    ):
        yield f"JavaScript is formatted by biome: {options}."
    rules = _table(_table(config.get("linter")).get("rules"))
    strict = [
        name
        for group in rules.values()
        for name, level in _table(group).items()
        if level == "error" or _table(level).get("level") == "error"
    ]
    if strict:
        yield f"The linter biome refuses: {', '.join(map(str, strict[:_MAX_NAMED]))}."


# A pattern of an ESLint rule with the level error, and of the rule's first option.
_ESLINT = re.compile(
    r"""["']?([@\w/-]+)["']?\s*:\s*(?:\[\s*(?:["']error["']|2)\s*(?:,\s*["']([\w.-]+)["'])?|["']error["']|2\b)"""
)


def _eslint(text: str) -> Iterator[str]:
    """Yield the configurations that ESLint extends, and the rules that are errors.

    The file may be JSON, YAML or code, so it is searched instead of parsed.
    """
    base = re.findall(r"""extends["']?\s*:\s*\[?\s*["']([@\w/:.-]+)["']""", text)
    base += re.findall(r"^extends:\s*(?:-\s*)?[\"']?([@\w/:.-]+)", text, re.M)
    for name in dict.fromkeys(base):
        yield f"ESLint extends {name}."
    rules = {
        name: option for name, option in _ESLINT.findall(text) if name not in ("error", "level")
    }
    rules |= dict.fromkeys(
        re.findall(r"^\s+[\"']?([@\w/-]+)[\"']?:\s*(?:error|2)\s*$", text, re.M), ""
    )
    if rules:
        descriptions = [f"{name} {option}".strip() for name, option in rules.items()]
        yield f"ESLint refuses what breaks: {', '.join(descriptions[:_MAX_NAMED])}."


def _prettier(text: str) -> Iterator[str]:
    """Yield one rule with the options of Prettier, read from JSON, code, YAML or TOML."""
    if text.lstrip().startswith("{"):
        options = _table(jsonc(text))
    elif re.search(r"export default|module\.exports", text):
        options = dict(
            re.findall(r"^\s*[\"']?(\w+)[\"']?\s*:\s*[\"']?(\w+)[\"']?,?\s*$", text, re.M)
        )
    else:  # YAML or TOML
        options = dict(re.findall(r"^(\w+)\s*[:=]\s*[\"']?([\w-]+)[\"']?\s*$", text, re.M))
    yield from _of_prettier(options)


def _of_prettier(options: Any) -> Iterator[str]:
    """Yield the options of Prettier as one rule."""
    if description := _settings(_table(options)):
        yield f"Code is formatted by prettier: {description}."


# Options of TypeScript besides strict mode that change how code must be written.
_STRICT = (
    "noUncheckedIndexedAccess",
    "noImplicitReturns",
    "exactOptionalPropertyTypes",
    "noUnusedLocals",
)


def _tsconfig(text: str) -> Iterator[str]:
    """Yield the TypeScript options that make checks stricter."""
    options = _table(_table(jsonc(text)).get("compilerOptions"))
    if options.get("strict") is True:
        yield "TypeScript is checked in strict mode."
    if more := [name for name in _STRICT if options.get(name) is True]:
        yield f"TypeScript is checked with {', '.join(more)}."


def _editorconfig(text: str) -> Iterator[str]:
    """Yield the indentation and maximum line length of each section, as rules."""
    for section in re.split(r"^(?=\[)", text[:20_000], flags=re.M):
        if not (header := re.match(r"\[([^\]\n]{1,60})\]", section)):
            continue
        options = dict(re.findall(r"^(\w+)\s*=\s*([\w-]+)\s*$", section, re.M))
        if style := options.get("indent_style"):
            width = f", {options['indent_size']} wide" if "indent_size" in options else ""
            yield f"Files {header[1]} are indented by {style}{width}."
        if (maximum := options.get("max_line_length", "off")) != "off":
            yield f"Lines of files {header[1]} have at most {maximum} characters."


def _rustfmt(text: str) -> Iterator[str]:
    """Yield the options of rustfmt as one rule."""
    if options := _settings(tomllib.loads(text)):
        yield f"Rust is formatted by rustfmt: {options}."


def _ruff(text: str) -> Iterator[str]:
    """Yield the rules that a ruff.toml states."""
    yield from _of_ruff(tomllib.loads(text))


def _of_ruff(config: Any) -> Iterator[str]:
    """Yield ruff's line length, lint rules and format options as rules."""
    config = _table(config)
    if isinstance(config.get("line-length"), int):
        yield f"Lines of Python have at most {config['line-length']} characters (ruff)."
    chosen = _table(config.get("lint")).get("select", config.get("select"))
    if isinstance(chosen, list) and chosen:
        yield f"Python is linted by ruff, rules {', '.join(map(str, chosen[:_MAX_NAMED]))}."
    if options := _settings(_table(config.get("format"))):
        yield f"Python is formatted by ruff: {options}."


def rules_of_pyproject(tool: Mapping[str, Any]) -> Iterator[str]:
    """Return the rules in a pyproject.toml, from its tables below ``tool``."""
    yield from _of_ruff(tool.get("ruff"))
    black = _table(tool.get("black"))
    if isinstance(black.get("line-length"), int):
        yield f"Lines of Python have at most {black['line-length']} characters (black)."
    elif "black" in tool:
        yield "Python is formatted by black."
    if options := _settings(
        {k: v for k, v in _table(tool.get("isort")).items() if k in ("profile", "line_length")}
    ):
        yield f"Imports are sorted by isort: {options}."
    if _table(tool.get("mypy")).get("strict") is True:
        yield "Types are checked by mypy in strict mode."
    if (mode := _table(tool.get("pyright")).get("typeCheckingMode")) in (
        "strict",
        "standard",
        "basic",
    ):
        yield f"Types are checked by pyright in {mode} mode."


def rules_of_package(content: Mapping[str, Any]) -> Iterator[str]:
    """Return the rules in a package.json: Prettier, ESLint, Node.js and modules."""
    yield from _of_prettier(content.get("prettier"))
    if isinstance(content.get("eslintConfig"), dict):
        yield from _eslint(json.dumps(content["eslintConfig"]))
    node = _table(content.get("engines")).get("node")
    if isinstance(node, str) and len(node) < 40:
        yield f"Node.js {node} is supported."
    if content.get("type") == "module":
        yield "JavaScript files are ES modules (import, not require)."


def _flake8(text: str) -> Iterator[str]:
    """Yield the rules of flake8, pycodestyle and mypy in an INI file."""
    config = configparser.ConfigParser(interpolation=None)
    config.read_string(text)
    for section in ("flake8", "pycodestyle"):
        if config.has_option(section, "max-line-length"):
            yield f"Lines of Python have at most {config[section]['max-line-length'][:10]} characters ({section})."
    if config.has_section("mypy") and config["mypy"].get("strict", "").lower() == "true":
        yield "Types are checked by mypy in strict mode."


def _aider(text: str) -> Iterator[str]:
    """Yield the commands and documents in the settings of aider, as rules."""
    for name, what in (("lint-cmd", "Lint with"), ("test-cmd", "Test with")):
        for command in re.findall(rf"^{name}:\s*[\"']?([^\"'\n#]{{2,100}})", text, re.M):
            yield f"{what}: {command.strip()}"
    for document in re.findall(r"^(?:read|conventions?):\s*\[?[\"']?([\w./-]+\.\w+)", text, re.M):
        yield f"Read {document} before a change."


def _commitlint(text: str) -> Iterator[str]:
    """Yield a rule for the form of commit messages if they are conventional commits."""
    if "conventional" in text:
        yield "Commit messages follow the conventional commits (commitlint)."


def _pre_commit(text: str) -> Iterator[str]:
    """Yield one rule with the hooks that pre-commit runs before a commit."""
    hooks = list(dict.fromkeys(re.findall(r"^\s*-?\s*id:\s*([\w-]+)", text, re.M)))
    if hooks:
        yield f"Before a commit run: {', '.join(hooks[:_MAX_NAMED])} (pre-commit)."


def _version(text: str, language: str) -> Iterator[str]:
    """Yield a rule with the language version from a file that contains only a version."""
    if re.fullmatch(r"v?[\w./*-]{1,30}", text.strip()):
        yield f"{language} {text.strip().removeprefix('v')} is used."


# The reader of each file, by a pattern of the file's name. The first match counts.
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
