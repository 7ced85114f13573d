"""Find what a session of work taught: commands that failed and then passed, corrections, rules.

A session of work has calls of tools that name a command or a file. Its lessons carry the files of
their turn, so that a later task on these files gets them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, zip_longest

from memlab.io.formats import Message
from memlab.kernel.base.display import clip
from memlab.kernel.english import holds, padded, phrases, vocabulary, words_of
from memlab.subjects.extraction.proposing import Scope, Source
from memlab.subjects.extraction.staged import Proposed
from memlab.subjects.reading.acts import read_sentences
from memlab.subjects.reading.change import Telling
from memlab.subjects.reading.sentences import count_tokens, shorten

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

# The kind of memory of each sort of lesson, and its confidence if an agent says it: a person may correct any of them.
_SORTS = {
    "gotcha": ("gotcha", 0.8),
    "correction": ("correction", 0.6),
    "feedback": ("human-feedback", 0.6),
    "rule": ("convention", 0.6),
    "cause": ("learning", 0.5),
    "answer": ("codebase-discovery", 0.5),
    "statement": ("context", 0.6),
}
# Limits of one session: lessons of a sort, tokens of a lesson, files of a lesson, characters of a quoted error or command.
_MOST_OF_A_SORT = 20
_MOST_TOKENS = 60
_MOST_FILES = 5
_MOST_QUOTED = 100
_MOST_COMMAND = 100
_MOST_EXPLAINED = 30
# The minimum words of a lesson, and of its words that name something.
_FEWEST_WORDS, _FEWEST_TELLING = 4, 3
# The words above which a sentence that refers back says enough by itself.
_MANY = 6
# The minimum number of named things in a fact that an agent found.
_FEWEST_NAMES = 2
# The words from which a rejection without a name says what is wrong.
_SHORT = 12
# The share of words from which an agent's sentence repeats a lesson.
_REPEATED = 0.6
# Lessons with which an agent's sentence is compared, and the maximum characters of a text in which paths are looked for.
_COMPARED, _KEPT = 200, 4_000

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
_PARTS = re.compile(r"(?:(?<!\s)\s+)?(?:&&|\|\||[;|\n])\s*")
_BEFORE = re.compile(
    r"^(?:(?:\w+=\S*|sudo|time|env(?: -u \w+| -i)*|timeout \S+|(?:uv|poetry|pipenv|hatch|pdm) run|(?:\S*/)?python3? -m|npx|"
    r"bundle exec)\s+)+"
)

# The exit status in a result, and lines of programs that report a failure, the most telling first.
_STATUS = re.compile(
    r"(?:exit(?:ed with)?|return)[ _]?(?:code|status)\W{0,4}(-?\d+)", re.IGNORECASE
)
_ERRORS = (
    re.compile(r"^(?:E +)?([\w.]*(?:Error|Exception|Warning)\b: .+)$", re.M),
    re.compile(
        r"^(?:remote: )?(?:error|fatal|npm ERR!|make: \*\*\*|E  ).*\S.*$", re.M | re.IGNORECASE
    ),
    re.compile(r"^.*(?:command not found|No such file|Permission denied|not recognized).*$", re.M),
    re.compile(r"^.*\b[1-9]\d* (?:failed|failures?|errors?)\b.*$", re.M),
    re.compile(r"^(?:FAILED|FAIL|ERROR|Traceback|panic)\b.*$", re.M),
)
# How Claude Code begins the result of a call that the user rejected.
_REJECTED = re.compile(r"(?:Error: )?The user doesn't want to ")
# Errors of commands and names that do not exist.
_MISSING = re.compile(r"command not found|No such file|not recognized", re.IGNORECASE)
_NOT_THERE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_SHELL = re.compile(
    r"^\S+: (?:line \d+: )?(?:\S+: )?(?=command not found|No such file|Permission denied)"
)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?(?:\n\2\b|\Z)", re.S)
# Runs that only print a help text or a version.
_ASKS = re.compile(r"\s(?:--help|--version|-h)\b")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.S)
_MARKS = " \n\t=-*>#\u2022"
# Negations without their apostrophe, as people type them, and an announcement before a sentence ("next, unrelated: ...").
_HASTY = re.compile(
    r"\b(do|does|did|is|are|was|were|wo|ca|should|must|have|has|would|could)nt\b", re.IGNORECASE
)
_LEAD = re.compile(r"^[^:`\"]{1,40}:\s+")
# A sentence whose replacement follows.
_REPLACED = re.compile(r"\b(?:scrap|scratch|forget|drop|ditch) (?:that|this|it)\W*$", re.IGNORECASE)
# What an agent did in a session: names of commits and of pull requests.
_OF_THE_SESSION = re.compile(r"\bPR #?\d|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")


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
        """The commands in a command line, by program; commands that only read are left out."""
        line = _HEREDOC.sub("", self.command)
        masked = _QUOTED.sub(lambda match: "_" * len(match.group()), line)
        readers, result, start = vocabulary("session", "readers"), {}, 0
        for end in [*_PARTS.finditer(masked), None]:
            part = line[start : end.start() if end else None].strip("() &\n")
            start = end.end() if end else 0
            words = _BEFORE.sub("", part).split()
            name = words[0].rpartition("/")[2] if words and words[0] not in readers else ""
            if name in vocabulary("session", "programs"):
                further = next((word for word in words[1:] if not word.startswith("-")), "")
                name = f"{name} {further}".strip()
            if name and (name not in readers or "/" in words[0]):
                result[name] = part
        return result

    @property
    def program(self) -> str:
        """The last program in the command line, or "" for a line without programs."""
        return next(reversed(self.parts), "")

    def find(self, program: str) -> str | None:
        """Return the command of a call that runs a program, or None for other calls."""
        return next(
            (
                part
                for name, part in self.parts.items()
                if (program in (name, name.split()[0]) or name == program.split()[0])
                and not _ASKS.search(part)
            ),
            None,
        )

    def find_similar(self, command: str) -> str | None:
        """Return the first command of a call that is about the same as another command, or None."""
        targets = _list_targets(command)
        return next((part for part in self.parts.values() if targets & _list_targets(part)), None)


def find_work(messages: Sequence[Message], where: Scope) -> list[Proposed]:
    """Return the lessons of a session in which tools ran commands or opened files."""
    calls = read_calls(messages)
    if not calls:
        return []
    work = _Work(messages, calls, where)
    lessons: dict[str, Proposed] = {}
    for lesson in (*work.find_gotchas(), *work.read_sentences()):
        lessons.setdefault(lesson.text.casefold(), lesson)
    by_sort = {sort: [item for item in lessons.values() if item.rule == sort] for sort in WORK}
    return [lesson for items in by_sort.values() for lesson in items[-_MOST_OF_A_SORT:]]


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
    """Return the command and the files of a tool call; an edit of files has no command."""
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
    paths = [fields[name] for name in _PATHS if isinstance(fields.get(name), str)]
    is_edit = bool(patched or _EDITS.search(name))
    return Call(number, "" if is_edit else command, (*patched, *paths), is_edit)


def _read_result(message: Message) -> tuple[bool | None, str]:
    """Return whether a tool result reports a failure, and its most informative line.

    A call that the user rejected neither failed nor passed.
    """
    text = message.text
    if _REJECTED.match(text):
        return None, ""
    if text.startswith("{"):  # Codex wraps what a command printed
        try:
            wrapped = json.loads(text)
        except (ValueError, RecursionError):
            wrapped = {}
        if isinstance(wrapped.get("output"), str):
            text = f"{wrapped['output']}\n{json.dumps(wrapped.get('metadata'))}"
    # Tools report the cause first, and tracebacks last.
    lines = [
        "; ".join(dict.fromkeys(line.strip(_MARKS) for line in (matches[0], matches[-1])))
        for pattern in _ERRORS
        if (matches := pattern.findall(text))
    ]
    statuses = _STATUS.findall(text)
    failed = message.failed or (int(statuses[-1]) != 0 if statuses else bool(lines))
    last = next((line for line in reversed(text.splitlines()) if line.strip(_MARKS)), "")
    line = _SHELL.sub("", (lines[0] if lines else last).strip(_MARKS))
    return failed, clip(re.sub(r" \([\w/.-]+\)$", "", line), _MOST_QUOTED)


class _Work:
    """A session of work: its messages, its calls, and the turn of the user to which each belongs."""

    def __init__(self, messages: Sequence[Message], calls: list[Call], where: Scope) -> None:
        self.messages, self.calls, self.where = messages, calls, where
        self.turns = list(
            accumulate(message.role == "user" and bool(message.text) for message in messages)
        )
        self.calls_of: dict[int, list[Call]] = defaultdict(list)
        """The calls of each turn."""
        for call in calls:
            self.calls_of[self.turns[call.number]].append(call)
        self.spoken: dict[int, list[int]] = defaultdict(list)
        """The numbers of the messages with words of each turn, without results of tools."""
        for number, message in enumerate(messages):
            if message.text and message.role in ("user", "assistant"):
                self.spoken[self.turns[number]].append(number)

    def propose(
        self, sort: str, text: str, number: int, files: list[str], position: tuple[int, int] | None = None,
        programs: Sequence[str] = (),
    ) -> Proposed:  # fmt: skip
        """Return a proposal for a lesson in a message, with the lesson's files and programs.

        A failed command without any file is a quirk of the environment.
        """
        message = self.messages[number]
        start, stop = position or (0, len(message.text))
        kind, confidence = _SORTS[sort]
        by_user = message.role == "user"
        if sort == "rule" and not by_user:
            kind = "context"  # only what a person says belongs in every prompt
        paths = [file.removeprefix("./") for file in files if _PATH.fullmatch(file.lstrip("/"))]
        paths = list(dict.fromkeys(paths))[:_MOST_FILES]
        fields = {
            "kind": "environment-quirk" if sort == "gotcha" and not paths else kind,
            "confidence": 0.8 if by_user or sort == "gotcha" else confidence,
            "provenance": "user-stated" if by_user else "inferred",
            "tags": list(dict.fromkeys([sort, *programs]))[:4],
            "reason": f"extracted by the rule {sort}",
            **({"files": paths} if paths else {}),
        } | Source(message, number, self.where).fields(own=True)
        span = message.text[start:stop].strip()
        return Proposed("memory", text, sort, number, start, stop, span, fields)

    def files_of(self, turn: int) -> list[str]:
        """Return the files of a turn: edited files first, then read files, then named files.

        A turn that has no files comments on the preceding turn, whose files are returned.
        """
        calls = self.calls_of[turn]
        touched = sorted(calls, key=lambda call: not call.edits)
        texts = [call.command for call in calls]
        texts += [self.messages[number].text for number in self.spoken[turn]]
        paths = [path for text in texts if len(text) < _KEPT for path in _PATH.findall(text)]
        files = [*(file for call in touched for file in call.files), *paths]
        return files if files or not turn else self.files_of(turn - 1)

    # -- commands ---------------------------------------------------------------------------------------------

    def find_gotchas(self) -> Iterator[Proposed]:
        """Yield a lesson for each command that failed and later had another result."""
        # The next run of the same program counts; a program that does not exist is replaced by another one.
        by_program: dict[str, list[int]] = defaultdict(list)
        for position, call in enumerate(self.calls):
            for program in call.parts:
                by_program[program.split()[0]].append(position)
        for position, call in enumerate(self.calls):
            if not call.failed or not (program := call.program):
                continue
            after = next(
                (
                    self.calls[index]
                    for index in by_program[program.split()[0]]
                    if index > position and self.calls[index].find(program)
                ),
                None,
            ) or self._find_replacement(call)
            if after is None or (after.failed and after.error == call.error):
                continue
            between = self.calls[position + 1 : self.calls.index(after)]
            if text := _tell_pair(call, between, after):
                text = f"{text} {self._explain(call.number, after.number)}".strip()
                edited = [file for item in between if item.edits for file in item.files]
                paths = _PATH.findall(f"{call.error} {call.command}")
                files = [*edited, *paths, *self.files_of(self.turns[call.number])]
                programs = [program, after.program]
                yield self.propose("gotcha", text, call.number, files, (0, 0), programs)

    def _find_replacement(self, call: Call) -> Call | None:
        """Return a later command of the same turn that passed and replaces a command that never passed, or None.

        A command that does not exist is replaced by any other, another one by a command for the same
        thing: `pnpm install` replaces `npm install`.
        """
        rest = self.calls_of[self.turns[call.number]]
        failing = call.parts[call.program]
        is_missing = _MISSING.search(call.error)
        for later in rest[rest.index(call) + 1 :]:
            if (
                later.failed is False
                and later.program
                and (is_missing or later.find_similar(failing))
            ):
                return later
        return None

    def _explain(self, start: int, stop: int) -> str:
        """Return an agent's sentence that explains a failure, or one after the success that quotes code, or "".

        ``start`` and ``stop`` are the numbers of the messages with the failure and the success.
        """
        sentences = [
            (number, sentence)
            for number in range(start, min(stop + 3, len(self.messages)))
            if self.messages[number].role == "assistant"
            for _, _, sentence in _list_sentences(self.messages[number].text)
            if _NAMED.search(sentence)
        ]
        causes = phrases("session", "breakthrough", "solution")
        explained = [text for _, text in sentences if holds(padded(words_of(text)), causes)]
        after = [text for number, text in sentences if number > stop and "`" in text]
        return shorten(next(iter([*explained, *after]), ""), _MOST_EXPLAINED)

    # -- sentences --------------------------------------------------------------------------------------------

    def read_sentences(self) -> Iterator[Proposed]:
        """Yield the lessons in sentences of a session, first those of the user.

        Lessons of the user come first, because an agent repeats them.
        """
        lessons: list[set[str]] = []
        for role in ("user", "assistant"):
            for number, message in enumerate(self.messages):
                if message.role != role or not message.text:
                    continue
                for lesson in self._read_message(number):
                    words = _telling_words(lesson.text)
                    if role == "user" or all(
                        len(words & other) < _REPEATED * len(words) for other in lessons
                    ):
                        yield lesson
                    lessons.append(words)
                    del lessons[:-_COMPARED]

    def _read_message(self, number: int) -> Iterator[Proposed]:
        """Yield the lessons in a message, each from a sentence or from the whole message."""
        message, turn = self.messages[number], self.turns[number]
        text, by_user = message.text, message.role == "user"
        is_first = by_user and self.calls[0].number > number
        of_call = number > 0 and _REJECTED.match(self.messages[number - 1].text) is not None
        if by_user and not is_first and (rejection := _read_rejection(text, of_call=of_call)):
            calls = (call.command for call in reversed(self.calls_of[turn - 1]))
            done = next(filter(None, calls), "")
            if done and len(words_of(rejection)) < 2 * _SHORT:
                rejection = f"{rejection} (said after `{clip(done, 80)}`)"
            yield self.propose("feedback", rejection, number, self.files_of(turn - 1))
            return
        if answer := self._read_answer(number):
            files = [*_PATH.findall(answer), *self.files_of(turn)]
            yield self.propose("answer", answer, number, files)
            return
        yield from self._read_statements(number, is_first)

    def _read_statements(self, number: int, is_first: bool) -> Iterator[Proposed]:
        """Yield the lessons in sentences of a message.

        A sentence that refers to the sentence before it is stored with that sentence.
        """
        # Collected first, because a later sentence may extend the one before it.
        message, turn = self.messages[number], self.turns[number]
        by_user = message.role == "user"
        before = self._last_words(number)
        lessons: list[tuple[str, str, int, int]] = []
        last, end = -1, 0
        for start, stop, sentence in _list_sentences(message.text):
            words = _split_words(sentence)
            # a question, which is not listed, may name what the sentence is about
            question = " ".join(_FENCE.sub(" ", message.text[end:start]).split()).strip(_MARKS)
            before, end = shorten(question, _MOST_EXPLAINED) or before, stop
            is_replacement = by_user and _REPLACED.search(before)
            sort = _choose_sort(sentence, padded(words), by_user=by_user, is_first=is_first)
            if sort == "statement" and not by_user and not self._is_finding(number):
                sort = None
            refers = words[:1] and words[0] in vocabulary("session", "back")
            explains = last == start and (
                refers or lessons[-1][0] == "cause" or "it" in words[1:4] or is_replacement
            )
            if explains and _NAMED.search(sentence):
                earlier, text, begin, _ = lessons[-1]
                if count_tokens(f"{text} {sentence}") <= _MOST_TOKENS:
                    lessons[-1] = (earlier, f"{text} {sentence}", begin, stop)
                    last, before = stop, sentence
                    continue
            whole = sentence
            if refers and words[0] not in vocabulary("session", "joins"):
                whole = f"{before} {sentence}" if _has_object(before) else ""
                if not whole and (_NAMED.search(sentence) or len(_telling_words(sentence)) > _MANY):
                    whole = sentence
            if is_replacement:
                sort, whole = "correction", f"{before} {sentence}"
            before = sentence
            if sort is not None and _has_object(whole):
                lessons.append((sort, whole, start, stop))
                last = stop
        for sort, whole, start, stop in lessons:
            files = _PATH.findall(whole) or self.files_of(turn)
            words = words_of(whole)
            programs = [
                call.program
                for call in self.calls_of[turn]
                if call.program and call.program.split()[0] in words
            ]
            lesson = shorten(whole, _MOST_TOKENS)
            yield self.propose(sort, lesson, number, files, (start, stop), programs)

    def _is_finding(self, number: int) -> bool:
        """Return whether an agent's message reports a finding, not an edit.

        The last call before it is no edit, and either more calls follow it or its turn has no edit.
        """
        calls = self.calls_of[self.turns[number]]
        before = [call for call in calls if call.number < number]
        return bool(before) and not (
            before[-1].edits or (before[-1] is calls[-1] and any(call.edits for call in calls))
        )

    def _last_words(self, number: int) -> str:
        """Return the agent's last sentence before a user's message, shortened, or "" if there is none."""
        earlier = self.spoken[self.turns[number] - 1][-1:]
        if self.messages[number].role != "user" or not earlier:
            return ""
        sentences = [text for *_, text in _list_sentences(self.messages[earlier[0]].text)]
        return shorten(sentences[-1], _MOST_EXPLAINED) if sentences else ""

    def _read_answer(self, number: int) -> str:
        """Return a question and the answer that a message gives, or "" if it answers none or says too little.

        A user's message answers the agent's last question. An agent's last message answers a
        question of the user that the agent investigated.
        """
        # Of a user, the last words before must be a question; of an agent, the user's message must contain one.
        message, turn = self.messages[number], self.turns[number]
        by_user, question = message.role == "user", ""
        if by_user:
            earlier = self.spoken[turn - 1][-1:]
            if earlier and self.messages[earlier[0]].role == "assistant":
                question = self.messages[earlier[0]].text.strip()
                question = question if question.endswith("?") else ""
        elif number == self.spoken[turn][-1] and any(
            call.number < number for call in self.calls_of[turn]
        ):
            first = self.messages[self.spoken[turn][0]]
            question = first.text.strip() if first.role == "user" else ""
        mark = question.find("?")
        if mark < 0:
            return ""
        start = max(question.rfind(". ", 0, mark), question.rfind("\n", 0, mark)) + 1
        question = shorten(" ".join(question[start : question.rfind("?") + 1].split()), 30)
        answer = shorten(" ".join(_FENCE.sub(" ", message.text).split()), _MOST_TOKENS)
        if len(_telling_words(question)) < 2 or answer.endswith("?") or not _has_object(answer):
            return ""
        opening = words_of(answer)[0]
        if not by_user and (
            not _NAMED.search(answer) or opening in vocabulary("session", "of-myself")
        ):
            return ""
        return f"{question} {answer}"


def _tell_pair(call: Call, between: Sequence[Call], after: Call) -> str:
    """Return a text about a failure, the steps after it and the next result; "" for a second failure without steps."""
    # What failed comes first, then what replaced it, then what made it pass.
    failing = call.parts[call.program]
    passing = (
        after.find(call.program)
        or after.find_similar(failing)
        or after.parts.get(after.program, "")
    )
    edited = list(dict.fromkeys(file for item in between if item.edits for file in item.files))
    prepared = [*(item for item in between if item.failed is False), after]
    helped = [part for item in prepared for part in item.parts.values()]
    helped = [part for part in helped if part not in (failing, passing, *call.parts.values())]
    steps = [f"`{clip(part, 100)}`" for part in dict.fromkeys(helped)][-2:]
    if edited:
        steps.append(f"a change of {', '.join(edited[:_MOST_FILES])}")
    if after.failed and not steps:
        return ""
    is_gone = "/" in failing.split()[0] and "no such file" in call.error.casefold()
    text = f"`{clip(failing, _MOST_COMMAND * 2 // 3)}` {'is gone' if is_gone else 'failed'}: {call.error.rstrip('.')}."
    if not after.failed and passing != failing:
        text += f" `{clip(passing, _MOST_COMMAND)}` passed instead."
    if steps:
        text += f" {'This changed' if after.failed else 'It passed'} after {' and '.join(steps)}."
    elif passing == failing:
        text += " It passed when it was run again, without a change."
    if moved := _NOT_THERE.search(call.error):
        text += f" `{moved[1]}` is no longer in `{moved[2]}`."
    return text


def _list_targets(command: str) -> set[str]:
    """Return the words of a command after the program that begin with a letter and have at least three characters."""
    return {word for word in command.split()[1:] if word[0].isalpha() and len(word) > 2}


def _list_sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, stop and text of each sentence in a message that is no question, wish or greeting.

    Code blocks are left out.
    """
    own = _FENCE.sub(lambda match: " " * len(match.group()), text)
    for part in read_sentences(own):
        if part.act not in ("question", "wish", "greeting"):
            sentence = " ".join(own[part.start : part.stop].split()).strip(_MARKS)
            if sentence:
                yield part.start, part.stop, sentence


def _read_rejection(text: str, *, of_call: bool) -> str:
    """Return a user's message that rejects the agent's work or a call, or "" for another or an uninformative message.

    The sentences of such a message depend on one another, so they are one lesson.
    """
    flat = " ".join(_FENCE.sub(" ", text).split())
    low = padded(_split_words(flat))
    if not of_call and not (
        low.startswith(tuple(phrases("session", "rejects")))
        and vocabulary("session", "accepts").isdisjoint(low.split()[:3])
    ):
        return ""
    sentences = [sentence for _, _, sentence in _list_sentences(text)]
    if not sentences or not _has_object(" ".join(sentences)):
        return ""
    if (
        not of_call
        and len(words_of(flat)) < _SHORT
        and not (
            _NAMED.search(flat) or holds(low, phrases("session", "rule", "weak-rule", "avoid"))
        )
    ):
        return ""
    return shorten(flat, _MOST_TOKENS)


def _choose_sort(sentence: str, low: str, *, by_user: bool, is_first: bool) -> str | None:
    """Return the sort of lesson that a sentence states, or None for other sentences.

    The first message of a user states the task, so that only plain rules in it are lessons.
    """
    first = (low.split() or [""])[0]
    if holds(low, phrases("session", "momentary")) or (
        _is_request(sentence) if by_user else first in vocabulary("session", "of-myself")
    ):
        return None
    if holds(low, phrases("session", "corrected")):
        return "correction"
    is_change = by_user and Telling(sentence, sentence).plain_sign >= 1
    if holds(low, phrases("session", "of-the-day")) and not is_change:
        return None
    names = len(_NAMED.findall(sentence))
    if holds(low, phrases("session", "rule")) or (
        by_user
        and not is_first
        and holds(low, phrases("session", "weak-rule", "avoid"))
        and (names or vocabulary("session", "of-the-speaker").isdisjoint(low.split()))
    ):
        return "rule"
    if holds(low, phrases("session", "breakthrough", "solution")) or (names and " because " in low):
        return "cause"
    if not by_user:
        # what an agent says of its own work is no fact
        is_fact = names >= _FEWEST_NAMES or holds(low, phrases("session", "weak-rule", "relates"))
        is_fact &= names > 0 and not first.endswith("ed") and _states(sentence)
        return "statement" if is_fact and not _OF_THE_SESSION.search(sentence) else None
    is_talk = first in vocabulary("session", "chatter") or holds(
        low, phrases("session", "failure", "addressed")
    )
    is_statement = is_change or not (is_first or (is_talk and not names))
    return "statement" if is_statement and _states(sentence) else None


def _states(sentence: str) -> bool:
    """Return whether the first sentence of a text is a statement without a hedge."""
    part = next(read_sentences(sentence), None)
    return part is not None and part.act == "statement" and not part.hedged


def _split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, with missing apostrophes of negations added, such as in "don't"."""
    return words_of(_HASTY.sub(r"\1n't", text))


def _is_request(sentence: str) -> bool:
    """Return whether a user's sentence begins, after openers, with a word that asks for something."""
    words = _split_words(_LEAD.sub("", sentence))
    while words and words[0] in vocabulary("acts", "openers"):
        del words[0]
    return not vocabulary("session", "asks").isdisjoint(words[:1])


def _telling_words(text: str) -> set[str]:
    """Return the distinct words of a text that are not fillers."""
    return {word for word in words_of(text) if word not in vocabulary("negation", "fillers")}


def _has_object(text: str) -> bool:
    """Return whether a lesson is long enough and names the thing that it is about."""
    words = _telling_words(text)
    return (
        len(text.split()) >= _FEWEST_WORDS
        and len(words) >= _FEWEST_TELLING
        and (_NAMED.search(text) is not None or len(words) > _FEWEST_TELLING)
    )
