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
from functools import cached_property
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
    "answer": "Answer",
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
    "answer": ("codebase-discovery", 0.7),
    "statement": ("context", 0.6),
}
# Limits of one session: lessons of a sort, tokens of a lesson, files of a lesson, characters of a quoted error or command.
_MOST_OF_A_SORT = 20
_MOST_TOKENS = 80
_MOST_FILES = 5
_MOST_QUOTED = 160
_MOST_COMMAND = 120
_MOST_EXPLAINED = 40
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
_FENCE = re.compile(
    r"```.*?(?:```|\Z)|<(system-reminder|command-\w+|local-command-\w+)>.*?</\1>", re.S
)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.M)
_EDITS = re.compile(r"edit|write|patch|replace|create|insert", re.IGNORECASE)
_PATHS = ("file_path", "path", "notebook_path", "filename", "target_file")

# Parts of a command line: separators, what precedes a program, and programs that start another program.
_PARTS = re.compile(r"\s*(?:&&|\|\||[;|\n])\s*")
_BEFORE = re.compile(
    r"^(?:(?:\w+=\S*|sudo|time|env(?: -u \w+| -i)*|timeout \S+|(?:uv|poetry|pipenv|hatch|pdm) run|(?:\S*/)?python3? -m|npx|"
    r"bundle exec)\s+)+"
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
_STATUS = re.compile(
    r"(?:exit(?:ed with)?|return)[ _]?(?:code|status)\W{0,4}(-?\d+)", re.IGNORECASE
)
_ERRORS = (
    re.compile(r"^(?:E +)?([\w.]*(?:Error|Exception|Warning)\b: .+)$", re.M),
    re.compile(r"^(?:error|fatal|npm ERR!|make: \*\*\*|E  ).*\S.*$", re.M | re.IGNORECASE),
    re.compile(r"^.*(?:command not found|No such file|Permission denied|not recognized).*$", re.M),
    re.compile(r"^.*\b[1-9]\d* (?:failed|failures?|errors?)\b.*$", re.M),
    re.compile(r"^(?:FAILED|FAIL|ERROR|Traceback|panic)\b.*$", re.M),
)
# Errors of commands and names that do not exist.
_MISSING = re.compile(r"command not found|No such file|not recognized", re.IGNORECASE)
_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_SHELL = re.compile(
    r"^\S+: (?:line \d+: )?(?:\S+: )?(?=command not found|No such file|Permission denied)"
)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.S)
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

    @cached_property
    def parts(self) -> dict[str, str]:
        """The commands of a command line by their programs: "pytest", "git push"; readers left out."""
        line = self.command.partition("<<")[0]
        masked = _QUOTED.sub(lambda match: "_" * len(match.group()), line)
        result, start = {}, 0
        for end in [*_PARTS.finditer(masked), None]:
            part = line[start : end.start() if end else None].strip("() &\n")
            start = end.end() if end else 0
            words = _BEFORE.sub("", part).split()
            name = words[0].rpartition("/")[2] if words and words[0] not in _READERS else ""
            if name in _SUBCOMMANDS:
                further = next((word for word in words[1:] if not word.startswith("-")), "")
                name = f"{name} {further}".strip()
            if name and (name not in _READERS or "/" in words[0]):
                result[name] = part
        return result

    @property
    def program(self) -> str:
        """The last program of the command line, which the others prepare; "" without one."""
        return next(reversed(self.parts), "")

    def find(self, program: str) -> str | None:
        """Return the part that runs a program, with or without its subcommand, or None."""
        return next(
            (
                part
                for name, part in self.parts.items()
                if program in (name, name.split()[0]) or name == program.split()[0]
            ),
            None,
        )


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
    return Call(number, "" if is_edit else command, (*patched, *named), is_edit)


def _read_result(message: Message) -> tuple[bool, str]:
    """Return whether a result reports a failure, and its most telling line."""
    text = message.text
    if text.startswith("{"):  # Codex wraps what a command printed
        try:
            wrapped = json.loads(text)
        except (ValueError, RecursionError):
            wrapped = {}
        if isinstance(wrapped.get("output"), str):
            text = f"{wrapped['output']}\n{json.dumps(wrapped.get('metadata'))}"
    lines = [matches[-1] for pattern in _ERRORS if (matches := pattern.findall(text))]
    statuses = _STATUS.findall(text)
    failed = message.failed or (int(statuses[-1]) != 0 if statuses else bool(lines))
    last = next((line for line in reversed(text.splitlines()) if line.strip(_MARKS)), "")
    line = _SHELL.sub("", (lines[0] if lines else last).strip(_MARKS))
    return failed, clip(re.sub(r" \([\w/.-]+\)$", "", line), _MOST_QUOTED)


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
    """Yield a lesson for each command that failed and later had another result.

    A command that does not exist is replaced by the next command that passes in its turn.
    """
    for position, call in enumerate(calls):
        if not call.failed or not (program := call.program):
            continue
        rest = range(position + 1, len(calls))
        later = next((index for index in rest if calls[index].find(program)), None)
        is_missing = _MISSING.search(call.error) is not None
        if later is None and is_missing:
            later = next(
                (
                    index
                    for index in rest
                    if turns[calls[index].number] == turns[call.number]
                    and calls[index].failed is False
                    and calls[index].program
                ),
                None,
            )
        if later is None or (calls[later].failed and calls[later].error == call.error):
            continue
        between, after = calls[position + 1 : later], calls[later]
        said = _explain(messages, call.number, after.number)
        text = _tell_pair(call, between, after, said, is_missing=is_missing)
        if text is not None:
            edited = [file for item in between if item.edits for file in item.files]
            of_turn = _files_of_turn(messages, calls, turns, call.number)
            files = [*edited, *_PATH.findall(f"{call.error} {call.command}"), *of_turn]
            source = Source(messages[call.number], call.number, where)
            yield _propose("gotcha", text, source, files, (0, 0), [program, after.program])


def _tell_pair(
    call: Call, between: Sequence[Call], after: Call, said: str, *, is_missing: bool
) -> str | None:
    """Return what happened from a failure to the next result; None if nothing was changed."""
    failing = call.parts[call.program]
    passing = after.find(call.program) or after.parts.get(after.program, "")
    edited = list(dict.fromkeys(file for item in between if item.edits for file in item.files))
    prepared = [*(item for item in between if item.failed is False), after]
    helped = [part for item in prepared for part in item.parts.values()]
    helped = [part for part in helped if part not in (failing, passing, *call.parts.values())]
    steps = [f"`{clip(part, 100)}`" for part in dict.fromkeys(helped)][-2:]
    if edited:
        steps.append(f"a change of {', '.join(edited[:_MOST_FILES])}")
    if after.failed and not steps:
        return None
    is_gone = is_missing and "/" in failing.split()[0] and "no such file" in call.error.casefold()
    state = "is gone" if is_gone else "failed"
    text = f"`{clip(failing, _MOST_COMMAND)}` {state}: {call.error.rstrip('.')}."
    if not after.failed and passing != failing:
        text += f" `{clip(passing, _MOST_COMMAND)}` passed instead."
    if steps:
        text += f" {'This changed' if after.failed else 'It passed'} after {' and '.join(steps)}."
    elif passing == failing:
        text += " It passed when it was run again, without a change."
    if moved := _NOT_THERE.search(call.error):
        text += f" `{moved[1]}` is no longer in `{moved[2]}`."
    return f"{text} {said}".strip()


def _explain(messages: Sequence[Message], start: int, stop: int) -> str:
    """Return the sentence in which the agent explains a failure, or what it says of the success."""
    sentences = [
        (number, sentence)
        for number in range(start, min(stop + 3, len(messages)))
        if messages[number].role == "assistant"
        for _, _, sentence in _list_sentences(messages[number].text)
        if _NAMED.search(sentence)
    ]
    causes = phrases("session", "breakthrough", "solution")
    explained = [text for _, text in sentences if holds(padded(words_of(text)), causes)]
    after = [text for number, text in sentences if number > stop and "`" in text]
    return shorten(next(iter([*explained, *after]), ""), _MOST_EXPLAINED)


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
            if answer := _read_answer(messages, number, calls, turns):
                told.append(_telling_words(answer))
                files = [*_PATH.findall(answer), *_files_of_turn(messages, calls, turns, number)]
                source = Source(message, number, where)
                yield _propose("answer", answer, source, files, (0, len(message.text)), [])
                continue
            is_first = role == "user" and not earlier
            before = ""
            for start, stop, sentence in _list_sentences(message.text):
                low = padded(words_of(sentence))
                sort = _choose_sort(sentence, low, role, is_first=is_first)
                text = sentence
                if words_of(sentence)[:1] and words_of(sentence)[0] in vocabulary(
                    "session", "back"
                ):
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
                if not files and earlier:  # a comment on the turn before
                    files = _files_of_turn(messages, calls, turns, earlier[-1].number)
                programs = [call.program for call in calls if turns[call.number] == turns[number]]
                named = [
                    name for name in programs if name and name.split()[0] in words_of(sentence)
                ]
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


def _read_answer(
    messages: Sequence[Message], number: int, calls: Sequence[Call], turns: list[int]
) -> str:
    """Return a question with its answer, or "" if a message answers none.

    A user answers the agent's last question, and an agent with its last words a question of the
    user that it looked into.
    """
    message = messages[number]
    of_user = message.role == "user"
    before = [
        item for item in messages[:number] if item.text and item.role in ("user", "assistant")
    ]
    if of_user:
        asked = before[-1:] if before and before[-1].role == "assistant" else []
    else:
        is_last = number == max(
            index
            for index, turn in enumerate(turns)
            if turn == turns[number]
            and messages[index].role == "assistant"
            and messages[index].text
        )
        looked = any(call.number < number and turns[call.number] == turns[number] for call in calls)
        asked = [item for item in before if item.role == "user"][-1:] if is_last and looked else []
    question = asked[0].text.strip() if asked else ""
    if "?" not in question or (of_user and not question.endswith("?")):
        return ""
    start = max(
        question.rfind(". ", 0, question.find("?")), question.rfind("\n", 0, question.find("?"))
    )
    question = shorten(" ".join(question[start + 1 : question.rfind("?") + 1].split()), 30)
    answer = shorten(" ".join(_FENCE.sub(" ", message.text).split()), _MOST_TOKENS)
    low = padded(words_of(answer))
    if (
        len(_telling_words(question)) < 2
        or answer.endswith("?")
        or not _has_object(answer, _telling_words(answer))
    ):
        return ""
    if not of_user and (
        not _NAMED.search(answer) or low.split()[0] in vocabulary("session", "of-myself")
    ):
        return ""
    return f"{question} {answer}"


def _read_rejection(text: str) -> str:
    """Return a message in which a user rejects what the agent did, or "" if it is none.

    Its sentences depend on one another, so that they are one lesson.
    """
    flat = " ".join(_FENCE.sub(" ", text).split())
    low = padded(words_of(flat))
    if not low.startswith(tuple(phrases("session", "rejects"))):
        return ""
    if not vocabulary("session", "accepts").isdisjoint(low.split()[:3]):
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
    by_user = role == "user"
    if holds(low, phrases("session", "momentary")) or (
        not by_user and first in vocabulary("session", "of-myself")
    ):
        return None
    if holds(low, phrases("session", "corrected")):
        return "correction"
    if holds(low, phrases("session", "rule")) or (
        by_user and not is_first and holds(low, phrases("session", "weak-rule", "avoid"))
    ):
        return "rule"
    if holds(low, phrases("session", "breakthrough", "solution")):
        return "cause"
    is_statement = by_user and not is_first
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
