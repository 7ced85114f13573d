"""Find what a session of work taught: commands that failed and then passed, corrections, rules.

A session of work has calls of tools that name a command or a file. Its lessons carry the files of
their turn, so that a later task on these files gets them.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from memlab.io.formats import Message
from memlab.kernel.base.display import clip
from memlab.kernel.english import holds, padded, phrases, vocabulary, words_of
from memlab.subjects.extraction.proposing import Scope, Source
from memlab.subjects.extraction.staged import Proposed
from memlab.subjects.reading.acts import read_sentences
from memlab.subjects.reading.sentences import shorten

__all__ = ["WORK", "find_work", "read_calls"]

WORK = {
    "gotcha": "Gotcha",
    "correction": "Changed",
    "feedback": "Told",
    "rule": "Rule",
    "cause": "Cause",
    "statement": "Stated",
}
"""The sorts of lesson of work in order of importance, with their labels in a report."""

# The kind of memory and the confidence of each sort of lesson.
_SORTS = {
    "gotcha": ("gotcha", 0.8),
    "correction": ("correction", 0.8),
    "feedback": ("human-feedback", 0.8),
    "rule": ("convention", 0.8),
    "cause": ("learning", 0.7),
    "statement": ("context", 0.6),
}
# Limits of one session: lessons of a sort, tokens of a lesson, files of a lesson, characters of a quoted error or command.
_MOST_OF_A_SORT = 20
_MOST_TOKENS = 80
_MOST_FILES = 5
_MOST_QUOTED = 160
# The minimum words of a lesson, and of its words that name something.
_FEWEST_WORDS, _FEWEST_TELLING = 4, 3
# The share of words from which an agent's sentence repeats a lesson.
_REPEATED = 0.6

# A path with an extension of a source or configuration file.
_PATH = re.compile(
    r"(?<![\w/.:@-])(?:\.?[\w-]+/)*[\w.-]*[\w-]\.(?:py|pyi|toml|cfg|ini|md|rst|txt|ya?ml|json|lock|[jt]sx?|mjs|rs|go|java|kt|rb|"
    r"php|c|h|cc|cpp|hpp|cs|sh|sql|html|css|hy|ex|hs|xml|gradle|proto)\b(?![\w/])"
    r"|\b(?:Dockerfile|Makefile|Justfile|Jenkinsfile)\b"
)
# Something with a name: code, an option, a number, or a name with signs or capitals of code.
_NAMED = re.compile(
    r"`[^`]+`|(?<!\w)--?[a-z][\w-]+|\d|\w[_.]\w|[a-z][A-Z]|\b[A-Z]{2,}\b|(?<=[a-z,] )[A-Z]\w"
)
_FENCE = re.compile(r"```.*?(?:```|\Z)|<(system-reminder|command-\w+|local-command-\w+)>.*?</\1>", re.S)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.M)
_EDITS = re.compile(r"edit|write|patch|replace|create|insert", re.IGNORECASE)
_PATHS = ("file_path", "path", "notebook_path", "filename", "target_file")

# Parts of a command line: separators, what precedes a program, and programs that start another program.
_PARTS = re.compile(r"\s*(?:&&|\|\||[;|\n])\s*")
_BEFORE = re.compile(
    r"^(?:(?:\w+=\S*|sudo|time|env(?: -u \w+| -i)*|timeout \S+|(?:uv|poetry|pipenv|hatch|pdm) run|(?:\S*/)?python3? -m|npx|bundle exec)\s+)+"
)
_SUBCOMMANDS = frozenset(
    ("git", "npm", "yarn", "pnpm", "cargo", "go", "docker", "make", "pip", "uv", "poetry", "hatch", "pdm", "python",
     "python3", "node", "kubectl", "terraform", "nox", "tox", "gh", "bash", "sh", "just", "mvn", "gradle", "dotnet")
)  # fmt: skip
# Programs that read or search: their failure teaches nothing, and their output may quote failures.
_READERS = frozenset(
    ("cat", "ls", "grep", "rg", "find", "head", "tail", "sed", "awk", "echo", "cd", "pwd", "which", "wc", "tree", "diff",
     "export", "source", "sleep", "true", "test", "env", "git diff", "git log", "git show", "git status", "git grep", "git blame",
     "git stash", "git add", "git commit", "git checkout", "git branch")
)  # fmt: skip

# The exit status in a result, and lines of programs that report a failure, the most telling first.
_STATUS = re.compile(r"(?:exit(?:ed with)?|return)[ _]?(?:code|status)\W{0,4}(-?\d+)", re.IGNORECASE)
_ERRORS = (
    re.compile(r"^(?:E +)?([\w.]*(?:Error|Exception|Warning)\b: .+)$", re.M),
    re.compile(r"^(?:error|fatal|npm ERR!|make: \*\*\*|E  ).*\S.*$", re.M | re.IGNORECASE),
    re.compile(r"^.*(?:command not found|No such file|Permission denied|not recognized).*$", re.M),
    re.compile(r"^.*\b[1-9]\d* (?:failed|failures?|errors?)\b.*$", re.M),
    re.compile(r"^(?:FAILED|FAIL|ERROR|Traceback|panic)\b.*$", re.M),
)
_MARKS = " \n\t=-*>#\u2022"


@dataclass
class Call:
    """A call of a tool that runs a command or names files, with its result.

    ``number`` is the number of its message. ``failed`` is None without a result, and ``error`` is
    the line of the result that tells most.
    """

    number: int
    command: str
    files: tuple[str, ...]
    edits: bool
    failed: bool | None = None
    error: str = ""

    @property
    def program(self) -> str:
        """The program of the command, with its subcommand: "pytest", "git push"."""
        for part in _PARTS.split(self.command):
            words = _BEFORE.sub("", part.strip()).split()
            if words and words[0] not in ("cd", "export", "source", "set"):
                name = words[0].rpartition("/")[2]
                further = next((word for word in words[1:] if not word.startswith("-")), "")
                return f"{name} {further}".strip() if name in _SUBCOMMANDS else name
        return ""


def find_work(messages: Sequence[Message], where: Scope) -> list[Proposed]:
    """Return the lessons of a session of work; none if no call names a command or file."""
    calls = read_calls(messages)
    if not calls:
        return []
    turns = _number_turns(messages)
    gotchas = list(_find_gotchas(messages, calls, turns, where))
    sentences = list(_read_sentences(messages, calls, turns, where))
    lessons: dict[str, Proposed] = {}
    for lesson in (*gotchas, *sentences):
        lessons.setdefault(lesson.text.casefold(), lesson)
    return [
        lesson
        for sort in WORK
        for lesson in [item for item in lessons.values() if item.rule == sort][-_MOST_OF_A_SORT:]
    ]


def read_calls(messages: Sequence[Message]) -> list[Call]:
    """Return the calls that run a command or name files, each with its result.

    Results follow their calls in order, as in the transcripts of all hosts.
    """
    calls: list[Call] = []
    pending: deque[Call] = deque()
    for number, message in enumerate(messages):
        if message.role == "tool":
            if pending:
                call = pending.popleft()
                call.failed, call.error = _read_result(message)
        elif message.role == "user" and message.text:
            pending.clear()
        for name, arguments in zip_longest(message.calls, message.arguments, fillvalue=""):
            call = _read_call(number, name, arguments)
            pending.append(call)
            if call.command or call.files:
                calls.append(call)
    return calls


def _read_call(number: int, name: str, arguments: str) -> Call:
    """Return the command and the files of a call of a tool."""
    try:
        fields = json.loads(arguments)
    except (ValueError, RecursionError):
        fields = arguments
    if not isinstance(fields, dict):
        fields = {"input": fields}
    command = fields.get("command", fields.get("cmd", ""))
    if isinstance(command, list):
        command = " ".join(map(str, command[2:] if command[1:2] in (["-lc"], ["-c"]) else command))
    command = str(command or "").strip()
    patched = _PATCHED.findall(f"{command}\n{fields.get('input') or fields.get('patch') or ''}")
    named = [fields[name] for name in _PATHS if isinstance(fields.get(name), str)]
    is_edit = bool(patched or _EDITS.search(name))
    return Call(number, "" if is_edit else command, tuple([*patched, *named]), is_edit)


def _read_result(message: Message) -> tuple[bool, str]:
    """Return whether a result reports a failure, and its most telling line."""
    text = message.text.replace("\\n", "\n")
    lines = [matches[-1] for pattern in _ERRORS if (matches := pattern.findall(text))]
    statuses = _STATUS.findall(text)
    failed = message.failed or (int(statuses[-1]) != 0 if statuses else bool(lines))
    last = next((line for line in reversed(text.splitlines()) if line.strip(_MARKS)), "")
    return failed, clip((lines[0] if lines else last).strip(_MARKS), _MOST_QUOTED)


def _number_turns(messages: Sequence[Message]) -> list[int]:
    """Return the number of the user's turn to which each message belongs."""
    turns, turn = [], 0
    for message in messages:
        turn += message.role == "user" and bool(message.text)
        turns.append(turn)
    return turns


# -- commands ---------------------------------------------------------------------------------------------------------


def _find_gotchas(
    messages: Sequence[Message], calls: list[Call], turns: list[int], where: Scope
) -> Iterator[Proposed]:
    """Yield a lesson for each command that failed and later had another result."""
    for position, call in enumerate(calls):
        if not call.failed or not call.program or call.program in _READERS:
            continue
        later = next(
            (
                index
                for index in range(position + 1, len(calls))
                if calls[index].program == call.program and calls[index].failed is not None
            ),
            None,
        )
        if later is None or (calls[later].failed and calls[later].error == call.error):
            continue
        between, after = calls[position + 1 : later], calls[later]
        edited = list(dict.fromkeys(file for item in between if item.edits for file in item.files))
        helped = [
            item.command
            for item in between
            if item.failed is False and item.program and item.program not in _READERS
        ]
        if after.failed and not (edited or helped):
            continue
        text = f"`{clip(call.command, _MOST_QUOTED)}` failed: {call.error.rstrip('.')}."
        outcome = "It passed" if not after.failed else "This changed"
        if not after.failed and after.command != call.command:
            text += f" `{clip(after.command, _MOST_QUOTED)}` passed instead."
        if helped or edited:
            steps = [f"`{clip(command, 80)}`" for command in dict.fromkeys(helped)][-3:]
            if edited:
                steps.append(f"a change of {', '.join(edited[:_MOST_FILES])}")
            text += f" {outcome} after {' and '.join(steps)}."
        elif after.command == call.command:
            text += " It passed when it was run again, without a change."
        said = [
            Source(messages[number], number, where) for number in range(call.number, after.number + 2)
            if number < len(messages) and messages[number].role == "assistant"
        ]  # fmt: skip
        reasons = (
            sentence
            for source in said
            for _, _, sentence in _list_sentences(source.message.text)
            if holds(padded(words_of(sentence)), phrases("session", "breakthrough", "solution"))
        )
        text += f" {reason}" if (reason := next(reasons, "")) else ""
        of_turn = _files_of_turn(messages, calls, turns, call.number)
        files = [*edited, *_PATH.findall(f"{call.error} {call.command}"), *of_turn]
        source = Source(messages[call.number], call.number, where)
        yield _propose("gotcha", text, source, files, (0, 0), [call.program])


def _files_of_turn(
    messages: Sequence[Message], calls: Sequence[Call], turns: list[int], number: int
) -> list[str]:
    """Return the files that a turn edited, read or named, in this order."""
    turn = turns[number]
    in_turn = [call for call in calls if turns[call.number] == turn]
    touched = sorted(in_turn, key=lambda call: not call.edits)
    said = [messages[index].text for index, other in enumerate(turns) if other == turn]
    named = [
        path
        for text in [*(call.command for call in in_turn), *said]
        if len(text) < 4_000
        for path in _PATH.findall(text)
    ]
    return [*(file for call in touched for file in call.files), *named]


# -- sentences --------------------------------------------------------------------------------------------------------


def _read_sentences(
    messages: Sequence[Message], calls: Sequence[Call], turns: list[int], where: Scope
) -> Iterator[Proposed]:
    """Yield the corrections, rules, causes and statements of a session.

    The user's come first, because an agent repeats them.
    """
    told: list[set[str]] = []
    for role in ("user", "assistant"):
        for number, message in enumerate(messages):
            if message.role != role or not message.text:
                continue
            earlier = [call for call in calls if call.number < number]
            if role == "user" and earlier and (text := _read_rejection(message.text)):
                told.append(_telling_words(text))
                done = next((call.command for call in reversed(earlier) if call.command), "")
                done = f" (said after `{clip(done, 80)}`)" if done else ""
                files = _files_of_turn(messages, calls, turns, earlier[-1].number)
                source = Source(message, number, where)
                yield _propose("feedback", text + done, source, files, (0, len(message.text)), [])
                continue
            is_first = role == "user" and not earlier
            before = ""
            for start, stop, sentence in _list_sentences(message.text):
                low = padded(words_of(sentence))
                sort = _choose_sort(sentence, low, role, is_first=is_first)
                text = sentence
                if words_of(sentence)[:1] and words_of(sentence)[0] in vocabulary("session", "back"):
                    text = f"{before} {sentence}".strip() if before else ""
                before = sentence
                words = _telling_words(text)
                if sort is None or not _has_object(text, words):
                    continue
                if role == "assistant" and any(
                    len(words & other) >= _REPEATED * len(words) for other in told
                ):
                    continue
                told.append(words)
                files = _PATH.findall(sentence) or _files_of_turn(messages, calls, turns, number)
                programs = [call.program for call in calls if turns[call.number] == turns[number]]
                named = [name for name in programs if name and name.split()[0] in words_of(sentence)]
                source = Source(message, number, where)
                yield _propose(
                    sort, shorten(text, _MOST_TOKENS), source, files, (start, stop), named
                )


def _list_sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield position and text of each sentence that is not a question, without code blocks."""
    own = _FENCE.sub(lambda match: " " * len(match.group()), text)
    for part in read_sentences(own):
        if part.act not in ("question", "wish", "greeting"):
            sentence = " ".join(own[part.start : part.stop].split()).strip(_MARKS)
            if sentence:
                yield part.start, part.stop, sentence


def _read_rejection(text: str) -> str:
    """Return a message in which a user rejects what the agent did, or "" if it is none.

    Its sentences depend on one another, so that they are one lesson.
    """
    flat = " ".join(_FENCE.sub(" ", text).split())
    low = padded(words_of(flat))
    if not low.startswith(tuple(phrases("session", "rejects"))):
        return ""
    said = [sentence for _, _, sentence in _list_sentences(text)]
    if not said or not _has_object(flat, _telling_words(" ".join(said))):
        return ""
    return shorten(flat, _MOST_TOKENS)


def _choose_sort(sentence: str, low: str, role: str, *, is_first: bool) -> str | None:
    """Return the sort of lesson that a sentence states, or None.

    The first message of a user states the task, so that only plain rules in it are lessons.
    """
    first = low.split()[0] if low.strip() else ""
    if holds(low, phrases("session", "momentary")) or first in vocabulary("session", "of-myself"):
        return None
    if holds(low, phrases("session", "corrected")):
        return "correction"
    if holds(low, phrases("session", "rule")) or (
        not is_first and holds(low, phrases("session", "weak-rule", "avoid"))
    ):
        return "rule"
    if holds(low, phrases("session", "breakthrough", "solution")):
        return "cause"
    is_statement = role == "user" and not is_first
    is_statement &= not holds(low, phrases("session", "failure", "addressed"))
    return "statement" if is_statement and _states(sentence) else None


def _states(sentence: str) -> bool:
    """Return whether a sentence states something about the project."""
    part = next(read_sentences(sentence), None)
    return part is not None and part.act == "statement" and not part.hedged


def _telling_words(text: str) -> set[str]:
    """Return the words of a text that name something."""
    return {word for word in words_of(text) if word not in vocabulary("negation", "fillers")}


def _has_object(text: str, words: set[str]) -> bool:
    """Return whether a lesson names what it is about."""
    if len(text.split()) < _FEWEST_WORDS:
        return False
    return len(words) >= _FEWEST_TELLING and (
        _NAMED.search(text) is not None or len(words) > _FEWEST_TELLING
    )


def _propose(
    sort: str, text: str, source: Source, files: list[str], position: tuple[int, int], programs: list[str]
) -> Proposed:  # fmt: skip
    """Return a lesson as a proposal, with its files and programs.

    A failed command without any file is a quirk of the environment.
    """
    kind, confidence = _SORTS[sort]
    by_user = source.message.role == "user"
    named = [file.removeprefix("./") for file in files if _PATH.fullmatch(file.lstrip("/"))]
    named = list(dict.fromkeys(named))[:_MOST_FILES]
    fields = {
        "kind": "environment-quirk" if sort == "gotcha" and not named else kind,
        "confidence": confidence if by_user or sort == "gotcha" else confidence - 0.2,
        "provenance": "user-stated" if by_user else "inferred",
        "tags": list(dict.fromkeys([sort, *programs]))[:4],
        "reason": f"extracted by the rule {sort}",
        **({"files": named} if named else {}),
    } | source.fields(own=True)
    span = source.message.text[position[0] : position[1]].strip()
    return Proposed("memory", text, sort, source.number, *position, span, fields)
