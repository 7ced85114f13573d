"""Logs of conversations in Markdown or plain text, and notes with headings."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memlab.errors import InputError
from memlab.io.formats.columns import parse_instant
from memlab.io.formats.lines import Lines, Notes, decode_line
from memlab.io.formats.messages import parse_role

_LONGEST = 1_000_000
"""Maximum bytes of a memory's text; the rest of a longer turn is counted but not stored."""

# Lines that name a speaker, as a heading ("## Ida (2026-01-02)"), in bold ("**Ida:** Hello") or plain ("Ida: Hello").
_HEADING = re.compile(
    r"#{1,6}\s+(?P<name>[^\n(\[]{1,40}?)\s*:?\s*(?:[(\[](?P<at>[^)\]]{4,40})[)\]])?\s*#*\s*\Z"
)
_BOLD = re.compile(
    r"(?P<mark>\*\*|__)(?P<name>[^*_:\n(]{1,40}?)\s*(?:\((?P<at>[^)]{4,40})\))?\s*(?::(?P=mark)|(?P=mark)\s*"
    r"(?:\((?P<time>[^)]{4,40})\))?\s*:)\s*(?P<text>.*)\Z"
)
_PLAIN = re.compile(
    r"(?:\[(?P<at>[^\]]{4,40})\]\s*|(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*)\s+)?"
    r"(?P<name>[^\W\d_][\w .'-]{0,39}?)(?:\s\((?P<time>[^)]{4,40})\))?:(?:\s+(?P<text>.*)|\s*)\Z"
)
# Fences of code, list items without bullet, and headings.
_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])\s+(?P<text>.*)\Z")
_TITLE = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*\Z")
# A date in the name of a file or in a heading: 2024-03-01, 2024_03_01, 20240301.
_DATE = re.compile(r"(?<![\d-])((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
# Marks of a heading that are not words of it: targets of links, emphasis, code.
_MARKUP = re.compile(r"(?<=\])\([^()\s]*\)|[*`\[\]]|<[^<>]*>")
# File names that say nothing about the contents.
_GENERIC = ("readme", "index", "notes", "untitled", "agents", "claude")
_TITLE_CHARACTERS = 200
"""Maximum characters of a title, which every paragraph of a section has; the innermost heading stays."""
_LOG_LINES = 10
"""Maximum lines before the first turn of a log, such as a title, a date and a list of participants."""
_LOG_SHARE = 0.15
"""Minimum share of lines that begin a turn of named people. In 31 of 532 documents of installed packages, words such as
"Note" repeat like names; one of them passes both tests. Answers of assistants are long, so that roles need no share."""


def find_speakers(start: str) -> frozenset[str]:
    """Find the speakers at the beginning of a conversation log.

    Speakers are words for roles, and names that begin several lines in the form of a speaker.
    """
    bold: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    for line in start.splitlines():
        for counts, match in (
            (bold, _BOLD.match(line)),
            (plain, _PLAIN.match(line)),
            (bold, _HEADING.match(line)),
        ):
            if match is not None:
                name = match["name"]
                if parse_role(name) is not None:
                    bold[name] += 2
                elif counts is plain or match.re is _BOLD:
                    counts[name] += 1
    speakers = {name for name, count in bold.items() if count > 1}
    repeated = {name for name, count in plain.items() if count > 1 and name[:1].isupper()}
    return frozenset(speakers | (repeated if len(repeated) > 1 or speakers else set()))


def is_log(start: str) -> bool:
    """Return whether a text is a conversation, judged by its speakers and number of turns."""
    speakers = find_speakers(start)
    lines = [line for line in start.splitlines() if line.strip()]
    turns = [n for n, line in enumerate(lines) if _start_turn(n, line, speakers) is not None]
    if not speakers or not turns or turns[0] >= _LOG_LINES:
        return False
    has_roles = any(parse_role(name) is not None for name in speakers)
    return has_roles or len(turns) >= _LOG_SHARE * len(lines)


def has_markup(start: str) -> bool:
    """Return whether a text has Markdown headings or list items."""
    return any(_TITLE.match(line) or _ITEM.match(line) for line in start.splitlines())


@dataclass
class _Turn:
    """A turn or paragraph while its lines are read."""

    location: int
    name: str
    at: str | None
    lines: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, line: str) -> None:
        """Append a line; beyond the maximum length, only count the line's size."""
        self.size += len(line) + 1
        if self.size <= _LONGEST:
            self.lines.append(line)


def parse_log(
    read: Lines,
    speakers: frozenset[str],
    *,
    session: str | None,
    project: str | None,
    default_session: str,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the turns of a conversation log as memory rows.

    A turn begins at the line that names its speaker; lines in a code fence never do. Without a session, one is named by
    ``default_session`` and the first turn.
    """
    notes = read.notes
    notes.guessed |= {
        "reader": "log",
        "speaker": ", ".join(sorted(speakers)[:8]),
        "text": "what follows a speaker",
    }
    for location, row in _read_turns(read, speakers):
        if session is None:
            session = f"{default_session}-{hashlib.blake2b(row['text'].encode(), digest_size=4).hexdigest()}"
            notes.guessed["session"] = f'"{session}", because no line names one'
        row["session"] = session
        if project is not None:
            row["project"] = project
        yield location, row


def _read_turns(read: Lines, speakers: frozenset[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the turns of a log, without adding their session and project."""
    notes = read.notes
    turn: _Turn | None = None
    fenced = False
    for number, raw in read:
        line = decode_line(raw, notes)
        started = None if fenced else _start_turn(number, line, speakers)
        if started is not None:
            yield from _finish_turn(turn, notes)
            turn = started
        elif turn is not None:
            turn.add(line)
        elif line.strip():
            notes.left_out["line before the first speaker"] += 1
        if _FENCE.match(line):
            fenced = not fenced
    yield from _finish_turn(turn, notes)


def _start_turn(number: int, line: str, speakers: frozenset[str]) -> _Turn | None:
    """Return the turn that a name in ``speakers`` or a role begins on a line, or None otherwise."""
    match = _HEADING.match(line) or _BOLD.match(line) or _PLAIN.match(line)
    if match is None or (match["name"] not in speakers and parse_role(match["name"]) is None):
        return None
    parts = match.groupdict()
    turn = _Turn(number, match["name"], parts.get("at") or parts.get("stamp") or parts.get("time"))
    if parts.get("text"):
        turn.add(parts["text"])
    return turn


def _finish_turn(turn: _Turn | None, notes: Notes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the row of a finished turn; skip a turn that is empty, too long or has an invalid time."""
    if turn is None:
        return
    text = "\n".join(turn.lines).strip()
    if turn.size > _LONGEST:
        notes.skip(turn.location, f"turn of more than {_LONGEST:,} bytes", f"{turn.size:,}")
        return
    if not text:
        notes.left_out["entry without words"] += 1
        return
    row: dict[str, Any] = {
        "text": text,
        "kind": "turn",
        "speaker": parse_role(turn.name) or turn.name,
    }
    if turn.at is not None:
        try:
            row["at"], form = parse_instant(turn.at)
        except InputError as problem:
            notes.skip(turn.location, "at not understood", str(problem))
            return
        notes.guessed["at"] = f"next to the speaker ({form})"
    yield turn.location, row


# -- notes --------------------------------------------------------------------------------------------------------


def parse_notes(
    read: Lines, *, session: str | None, project: str | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each paragraph and list item as a memory, titled by file name and headings.

    Front matter of ``name: value`` lines between ``---`` gives a title, tags and a time to all memories of the file. The
    time of a memory is the date in its nearest heading, in the front matter, in the file's name, or the file's own.
    """
    notes = read.notes
    notes.has_own_times = False
    notes.guessed |= {
        "reader": "notes",
        "text": "paragraphs and list items",
        "title": "name of the file and headings",
    }
    common: dict[str, Any] = {"source": "file"}
    common |= {
        name: value
        for name, value in (("session", session), ("project", project))
        if value is not None
    }
    name = read.path.stem
    if (day := _find_date(name)) is not None:
        name = _DATE.sub("", name)
        common["at"] = day
        notes.guessed["at"] = "date in the name of the file"
    else:
        common["at"] = read.path.stat().st_mtime_ns // 1000
        notes.guessed["at"] = "date of the file"
    name = name.replace("-", " ").replace("_", " ").strip()
    common["title"] = "" if name.lower() in _GENERIC else name
    titles: list[tuple[int, str]] = []
    paragraph, fenced, front = _Turn(0, "", None), False, False
    for number, raw in read:
        line = decode_line(raw, notes)
        if number == 1 and line.strip() == "---":
            front = True
        elif front:
            front = line.strip() != "---"
            if front:
                _read_field(line, number, common, notes)
        # a heading, a list item and a blank line each end the paragraph before them
        elif not fenced and (title := _TITLE.match(line)):
            yield from _finish_paragraph(paragraph, common, titles, notes)
            paragraph = _Turn(0, "", None)
            titles = [level_title for level_title in titles if level_title[0] < len(title[1])] + [
                (len(title[1]), title[2])
            ]
        elif not fenced and (item := _ITEM.match(line)):
            yield from _finish_paragraph(paragraph, common, titles, notes)
            paragraph = _Turn(number, "", None)
            paragraph.add(item["text"])
        elif not fenced and not line.strip():
            yield from _finish_paragraph(paragraph, common, titles, notes)
            paragraph = _Turn(0, "", None)
        else:
            if not paragraph.lines:
                paragraph.location = number
            paragraph.add(line)
        if not front and _FENCE.match(line):
            fenced = not fenced
    yield from _finish_paragraph(paragraph, common, titles, notes)


def _find_date(name: str) -> int | None:
    """Return the date in a file name or heading as microseconds since 1970, or None."""
    match = _DATE.search(name)
    try:
        return None if match is None else parse_instant(f"{match[1]}-{match[3]}-{match[4]}")[0]
    except InputError:
        return None


def _join_titles(document: str, headings: Iterable[str]) -> str:
    """Join a document's title and headings, without repetitions or markup.

    Only the last ``_TITLE_CHARACTERS`` characters are kept.
    """
    parts = [document] if document else []
    for heading in headings:
        words = " ".join(_MARKUP.sub("", heading).split())
        # the first heading mostly repeats the name of the file
        if parts and parts[-1].casefold() in words.casefold():
            parts.pop()
        parts += [words] if words else []
    return " / ".join(parts)[-_TITLE_CHARACTERS:]


def _read_field(line: str, number: int, common: dict[str, Any], notes: Notes) -> None:
    """Read a line of front matter: the title, the tags or the time of all memories of the file."""
    name, _, value = line.partition(":")
    name, value = name.strip(), value.strip().strip("\"'")
    if not value:
        return
    if name == "title":
        common["title"] = value
    elif name == "tags":
        tags = [part.strip().strip("\"'") for part in value.strip("[]").split(",")]
        common["tags"] = [tag for tag in tags if tag]
    elif name in ("updated", "updated_at", "date", "created", "created_at", "at"):
        try:
            common["at"], form = parse_instant(value)
        except InputError as problem:
            notes.skip(number, "at not understood", str(problem))
        else:
            notes.guessed["at"] = f"{name} ({form})"
    else:
        notes.left_out[f"field {name[:40]}"] += 1


def _finish_paragraph(
    paragraph: _Turn, common: Mapping[str, Any], titles: list[tuple[int, str]], notes: Notes
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the row of a finished paragraph; skip a paragraph that is empty or too long."""
    text = "\n".join(paragraph.lines).strip()
    if paragraph.size > _LONGEST:
        notes.skip(
            paragraph.location, f"paragraph of more than {_LONGEST:,} bytes", f"{paragraph.size:,}"
        )
    elif text:
        headings = [heading for _, heading in titles]
        row = {**common, "text": text, "title": _join_titles(common["title"], headings)}
        days = [day for heading in headings if (day := _find_date(heading)) is not None]
        if days:
            row["at"] = days[-1]
            notes.guessed["at"] = "date in the heading, or " + notes.guessed["at"].removeprefix(
                "date in the heading, or "
            )
        yield paragraph.location, {name: value for name, value in row.items() if value != ""}
