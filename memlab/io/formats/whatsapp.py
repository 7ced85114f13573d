"""Chats that WhatsApp exports as text, on Android and iOS, in the languages of the phone.

    12/31/23, 9:41 PM - Ida: Hello                Android, United States
    31.12.23, 21:41 - Ida: Hallo                  Android, Germany
    [31/12/2023, 21:41:05] Ida: Hello             iOS, United Kingdom

A message continues on lines without a date. WhatsApp marks texts that it wrote itself by U+200E on iOS, and leaves
out the speaker on Android. The files name no time zone, so times are read as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlab.io.formats.lines import Lines, Notes, decode_line
from memlab.kernel.base.clock import to_micros

# A date, a time and the rest of a line. Separators, brackets and the words between date and time differ by language.
_HEADER = re.compile(
    r"[\u200e\u200f\ufeff]*\[?(?P<first>\d{1,4})(?P<mark>[./-])(?P<second>\d{1,2})(?P=mark)(?P<third>\d{1,4})\.?"
    r"(?:,|\s(?:à|um|at|a las|às|kl\.))?\s+(?P<hour>\d{1,2})[:.](?P<minute>\d\d)(?:[:.](?P<seconds>\d\d))?"
    r"(?:\s?(?P<half>[AaPp])\.?\s?[Mm]\.?)?(?:\]\s|\s[-\u2013]\s)(?P<rest>.*)\Z"
)
# A speaker never contains a quotation mark, but a line about a changed subject does: Ida changed it to "Trip: Rome".
_SPOKEN = re.compile(r"(?P<name>[^:\"\u201c\u201e\u00ab\n]{1,100}): ?(?P<text>.*)\Z", re.DOTALL)
# Marks of direction and isolation around names and generated texts; "~" precedes names outside the address book.
_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff"))

# Words of WhatsApp, in English, German, French, Spanish, Portuguese and Italian.
_OMITTED = re.compile(
    r"<?(?:view once|image|photo|video|audio|voice|gif|sticker|document|contact|media|file|bild|videonachricht"
    r"|sprachnachricht|dokument|kontaktkarte|medien|datei|vidéo|fiche|médias?|fichier|imagen|vídeo|documento|tarjeta"
    r"|multimedia|archivo|nota|imagem|áudio|figurinha|cartão|mídia|arquivo|immagine|scheda)(?: [^\W\d_]+){0,3}"
    r" (?:omitted|ausgeschlossen|weggelassen|omise?s?|absente?s?|omitid[oa]s?|ocult(?:ad)?[oa]s?|omess[oaie]"
    r"|esclus[oaie])\.?>?",
    re.IGNORECASE,
)
# Texts after U+200E that WhatsApp wrote in the name of the other person of a chat.
_NOTICE = re.compile(
    r".*(?:end-to-end|ende-zu-ende|bout en bout|extremo a extremo|ponta a ponta|punto a punto).*"
    r"|(?:missed (?:voice|video) call|verpasster (?:sprach|video)anruf|appel (?:vocal|vidéo) manqué"
    r"|(?:video)?llamada perdida|chamada de (?:voz|vídeo) perdida|(?:video)?chiamata (?:vocale )?persa).{0,40}",
    re.IGNORECASE,
)
_ATTACHED = re.compile(
    r"[^\n]{1,200}\.\w{2,5} \((?:file attached|Datei angehängt|fichier joint|archivo adjunto|arquivo anexado"
    r"|file allegato)\)\n?"
)
# The name and size of a document before the words about its omission.
_FILE = re.compile(r"[^\n]{1,200}\.\w{2,5}(?: \u2022 [^\n]*)?")
_EDITED = re.compile(
    r"(?<!\s)\s*<[^<>\n]{0,40}(?:edited|bearbeitet|modifié|editó|editad[oa]|modificato)[^<>\n]{0,30}>\s*\Z",
    re.IGNORECASE,
)
_DELETED = re.compile(
    r"(?:this message was deleted|you deleted this message|diese nachricht wurde gelöscht|du hast diese nachricht"
    r" gelöscht|ce message a été supprimé|vous avez supprimé ce message|se eliminó este mensaje|eliminaste este"
    r" mensaje|mensagem apagada|questo messaggio è stato eliminato|null)\.?",
    re.IGNORECASE,
)
# A text in angle brackets that iOS adds to a message: an edited mark or the name of a file.
_ADDED = re.compile(r"(?<!\s)\s*\u200e<[^<>\n]*>")
# The names that WhatsApp gives to exported files, around the name of the chat.
_TITLE = re.compile(
    r"(?:whatsapp[ -]chat|discussion whatsapp|chat de whatsapp|chat whatsapp|conversa do whatsapp)"
    r"(?: with| mit| avec| con| com)?[ -]*",
    re.IGNORECASE,
)

_MOST_CHARACTERS = 1_000_000
"""Maximum characters of a message; a memory has at most 1 MB."""


def is_whatsapp(path: Path, start: str) -> bool:
    """Return whether one of the first 50 lines of a text file has the form of a WhatsApp message."""
    return path.suffix.lower() == ".txt" and any(
        (match := _HEADER.match(line)) is not None and _SPOKEN.match(match["rest"]) is not None
        for line in start.splitlines()[:50]
    )


@dataclass
class _Message:
    """A message while its lines are read."""

    location: int
    at: int
    day: str
    rest: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, line: str) -> None:
        """Append a line; beyond the maximum length, only count the line's size."""
        self.size += len(line) + 1
        if self.size <= _MOST_CHARACTERS:
            self.rest.append(line)


def parse_whatsapp(path: Path, notes: Notes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the messages of a WhatsApp export as memory rows.

    A session is a day of the chat. Messages that WhatsApp wrote, files and deleted messages are counted.
    """
    name = path.parent.name if path.stem == "_chat" else path.stem
    chat = _TITLE.sub("", name, count=1) or name
    is_day_first, reason = _find_date_order(path)
    order = "day before month" if is_day_first else "month before day"
    notes.guessed |= {
        "speaker": "the name before the colon",
        "session": "chat and day",
        "at": f"date and time of the line, {order} ({reason}), as UTC",
    }
    title = "" if _has_written(path, chat) else chat
    message: _Message | None = None
    for number, raw in Lines(path, notes):
        line = decode_line(raw, notes)
        match = _HEADER.match(line)
        if match is None:
            if message is not None:
                message.add(line)
            elif line.strip():
                notes.left_out["line before the first message"] += 1
            continue
        yield from _finish(message, chat, title, notes)
        message = None
        try:
            at = _parse_time(match, is_day_first)
        except ValueError as problem:
            notes.skip(number, "at not understood", str(problem))
            continue
        message = _Message(number, to_micros(at), f"{at:%Y-%m-%d}")
        message.add(match["rest"])
    yield from _finish(message, chat, title, notes)


def _has_written(path: Path, name: str) -> bool:
    """Return whether a message of ``name`` begins without U+200E, which lines of an iOS group's title never do."""
    for _, raw in Lines(path, Notes("")):
        match = _HEADER.match(decode_line(raw, Notes("")))
        spoken = _SPOKEN.match(match["rest"]) if match is not None else None
        if (
            spoken is not None
            and not spoken["text"].startswith("\u200e")
            and _clean_name(spoken["name"]) == name
        ):
            return True
    return False


def _clean_name(name: str) -> str:
    """Return the name of a speaker without surrounding marks."""
    return name.translate(_MARKS).strip().removeprefix("~").strip()


def _finish(
    message: _Message | None, chat: str, title: str, notes: Notes
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the row of a finished message; skip one that is too long, empty or written by WhatsApp."""
    if message is None:
        return
    if message.size > _MOST_CHARACTERS:
        notes.skip(
            message.location,
            f"message of more than {_MOST_CHARACTERS:,} characters",
            f"{message.size:,}",
        )
        return
    spoken = _SPOKEN.match("\n".join(message.rest))
    if spoken is None:
        notes.left_out["system line"] += 1
        return
    speaker = _clean_name(spoken["name"])
    plain = spoken["text"].translate(_MARKS).strip()
    if spoken["text"].startswith("\u200e") and (
        speaker == title or plain.startswith(f"{speaker} ") or _NOTICE.fullmatch(plain)
    ):
        notes.left_out["system line"] += 1
        return
    text = _remove_generated(spoken["text"], notes)
    if text:
        yield (
            message.location,
            {
                "text": text,
                "speaker": speaker,
                "session": f"{chat[:180]}/{message.day}",
                "at": message.at,
            },
        )


def _remove_generated(text: str, notes: Notes) -> str:
    """Return the text that a person wrote in a message; count the parts that WhatsApp wrote."""
    # a caption precedes or follows the line about a file that was not exported
    lines = text.split("\n")
    captions = {
        number: caption
        for number in (0, len(lines) - 1)
        if (caption := _remove_omission(lines[number])) is not None
    }
    text = "\n".join(captions.get(number, line) for number, line in enumerate(lines))
    # iOS puts its mark before each text of its own; a message that ends with one names a file
    tail = text.rpartition("\u200e")[2].strip() if "\u200e" in text else ""
    plain = text.translate(_MARKS).strip()
    if _DELETED.fullmatch(plain):
        notes.left_out["deleted message"] += 1
        return ""
    words, attachments = _ATTACHED.subn("", plain, count=1)
    if _EDITED.search(words):
        notes.left_out["mark of an edited message"] += 1
        words = _EDITED.sub("", words)
    elif tail and not attachments:
        words, attachments = _ADDED.subn("", text)
        words = words.translate(_MARKS)
    if attachments or captions:
        notes.left_out["picture or other file"] += 1
    elif not words.strip():
        notes.left_out["entry without words"] += 1
    return words.strip()


def _remove_omission(line: str) -> str | None:
    """Return a line without its notice of an omitted file, or None for a line without such a notice."""
    before, mark, words = line.rpartition("\u200e")
    words = words.translate(_MARKS).strip()
    if not mark:
        # Android writes these words in angle brackets, as a line of their own
        before, words = "", words if words.startswith("<") and words.endswith(">") else ""
    if not _OMITTED.fullmatch(words):
        return None
    return "" if _FILE.fullmatch(before.translate(_MARKS).strip()) else before


# -- dates --------------------------------------------------------------------------------------------------------


def _find_date_order(path: Path) -> tuple[bool, str]:
    """Return whether dates begin with the day, and the reason for this decision.

    A number above 12 decides. Messages in an export are in temporal order, so the order with fewer steps back decides
    next. The last hint is the separator: only the United States write 1/2/26 with AM or PM.
    """
    above = [0, 0]
    steps_back = [0, 0]
    last = [(0, 0, 0), (0, 0, 0)]
    is_american = False
    for _, raw in Lines(path, Notes("")):
        match = _HEADER.match(decode_line(raw, Notes("")))
        if match is None or len(match["first"]) == 4:
            continue
        first, second = int(match["first"]), int(match["second"])
        above[0] += first > 12
        above[1] += second > 12
        is_american = match["mark"] == "/" and match["half"] is not None
        for index, date in enumerate(((second, first), (first, second))):
            current = (int(match["third"]), *date)
            steps_back[index] += current < last[index]
            last[index] = current
    if above[0] != above[1]:
        return above[0] > above[1], "one of them exceeds 12"
    if steps_back[0] != steps_back[1]:
        return steps_back[0] < steps_back[1], "so that messages are in temporal order"
    return not is_american, "a guess, because no number exceeds 12"


def _parse_time(match: re.Match[str], is_day_first: bool) -> datetime:
    """Return a message's time in UTC. ``is_day_first`` decides dates such as 3/4/24.

    Raises ValueError for a date that does not exist.
    """
    first, second, third = int(match["first"]), int(match["second"]), int(match["third"])
    if len(match["first"]) == 4:
        year, month, day = first, second, third
    else:
        # a line with a number above 12 is certain, also in a file of two exports
        day, month = (
            (first, second) if first > 12 or (is_day_first and second <= 12) else (second, first)
        )
        year = third + 2000 if third < 100 else third
    hour = int(match["hour"])
    if match["half"] is not None:
        hour = hour % 12 + 12 * (match["half"] in "Pp")
    return datetime(
        year, month, day, hour, int(match["minute"]), int(match["seconds"] or 0), tzinfo=UTC
    )
