"""Exports of Slack, Discord (DiscordChatExporter) and Telegram (the desktop app).

    slack/users.json, channels.json, general/2026-01-02.json    a folder with a file for each channel and day
    General.json with guild, channel, messages                  Discord: a file for each channel
    result.json with messages, or with chats.list               Telegram: one chat, or all chats

A session is a day of a channel, and in Slack also a thread.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from memlab.errors import DatasetError, InputError
from memlab.io.formats.columns import parse_instant
from memlab.io.formats.lines import Notes, decode_json, read_document
from memlab.kernel.base.clock import from_micros

Rows = Iterator[tuple[int, dict[str, Any]]]


def _build_row(
    location: int, text: str, speaker: object, at: object, channel: str, notes: Notes
) -> Rows:
    """Yield the row of a message, with channel and day as session; skip blank texts and invalid times."""
    if not text.strip():
        notes.left_out["entry without words"] += 1
        return
    try:
        instant, form = parse_instant(at)
    except InputError as problem:
        notes.skip(location, "at not understood", str(problem))
        return
    notes.guessed |= {"session": "channel and day", "at": form}
    row = {
        "text": text,
        "session": f"{channel[:180]}/{from_micros(instant):%Y-%m-%d}",
        "at": instant,
    }
    if isinstance(speaker, str) and speaker.strip():
        row["speaker"] = speaker.strip()
    yield location, row


def _list_objects(value: object) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """Yield the objects in a list with their positions in the list, counted from 1."""
    for number, item in enumerate(value if isinstance(value, list) else (), 1):
        if isinstance(item, dict):
            yield number, item


def _get_object(value: object, name: str) -> Mapping[str, Any]:
    """Return the object in a field, or an empty dict if the field has no object."""
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _load(path: Path, type: Any = Any) -> Any:
    """Parse a JSON document; raise DatasetError if the content is not of ``type``."""
    return decode_json(read_document(path), path.name, 1, type)


# -- Slack --------------------------------------------------------------------------------------------------------

# The files of a channel, one for each day.
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].json"
# Kinds of Slack messages that people or programs wrote; other kinds report joins, topics and pins.
_WRITTEN = (None, "bot_message", "me_message", "thread_broadcast", "file_share", "file_comment")
# <@U024BE7LH>, <#C024BE7LR|general>, <https://example.org|label>, <!here>
_MARKUP = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")


def is_slack(folder: Path, start: str) -> bool:
    """Return whether a folder is a Slack export, or a channel's folder next to users.json."""
    if not folder.is_dir():
        return False
    has_days = next(folder.glob(f"*/{_DAY}"), None) is not None
    return (
        has_days and any((folder / name).is_file() for name in ("users.json", "channels.json"))
    ) or (next(folder.glob(_DAY), None) is not None and (folder.parent / "users.json").is_file())


def parse_slack(folder: Path, notes: Notes) -> Rows:
    """Yield the messages of a Slack export, channel by channel, as memory rows."""
    if not folder.is_dir():
        raise DatasetError(f"{folder.name} is a file. Give the folder or zip of a Slack export.")
    root = folder if next(folder.glob(_DAY), None) is None else folder.parent
    names = {str(user.get("id")): _find_name(user) for user in _load_list(root / "users.json")}
    # conversations of a few people have a folder that is named by an id
    channels = {
        str(talk.get("id")): ", ".join(names.get(str(id)) or str(id) for id in talk["members"])
        for talk in _load_list(root / "dms.json")
        if isinstance(talk.get("members"), list)
    }
    notes.guessed["speaker"] = "users.json" if names else "user_profile or user"
    notes.unit = "message"
    files = sorted(folder.glob(_DAY)) or sorted(folder.glob(f"*/{_DAY}"))
    others = sum(path.is_file() for path in folder.rglob("*")) - len(files)
    if others:
        notes.left_out["side file of an export"] += others
    for path in files:
        try:
            messages = _load(path) if not path.is_symlink() else None
        except (DatasetError, OSError) as problem:
            notes.skip(0, "file not read", str(problem))
            continue
        channel = channels.get(path.parent.name, path.parent.name)
        for number, message in _list_objects(messages):
            yield from _read_slack_message(number, message, channel, names, notes)


def _load_list(path: Path) -> list[Mapping[str, Any]]:
    """Return the objects in a side file of a Slack export, or [] if the file does not exist."""
    return [item for _, item in _list_objects(_load(path))] if path.is_file() else []


def _find_name(user: Mapping[str, Any]) -> str:
    """Return the name that other people see for a Slack user, or "" if unknown."""
    profile = _get_object(user, "profile") or _get_object(user, "user_profile")
    names = (
        profile.get("display_name"),
        profile.get("real_name"),
        user.get("real_name"),
        user.get("username"),
        user.get("name"),
    )
    return next((name.strip() for name in names if isinstance(name, str) and name.strip()), "")


def _read_slack_message(
    number: int, message: Mapping[str, Any], channel: str, names: Mapping[str, str], notes: Notes
) -> Rows:
    """Yield the row of a Slack message, with a thread as its own session; omit system messages."""
    if message.get("subtype") not in _WRITTEN:
        notes.left_out["system message"] += 1
        return
    user = str(message.get("user") or message.get("bot_id") or "")
    for location, row in _build_row(
        number,
        _replace_markup(str(message.get("text") or ""), names),
        names.get(user) or _find_name(message) or user,
        message.get("ts"),
        channel,
        notes,
    ):
        thread = message.get("thread_ts")
        if isinstance(thread, str):
            row["session"] = f"{channel[:150]}/thread {thread}"
        yield location, row


def _replace_markup(text: str, names: Mapping[str, str]) -> str:
    """Replace the codes of users, channels and links in a Slack text by names."""

    def replace(match: re.Match[str]) -> str:
        """Return the readable text for a matched code."""
        sign, code, label = match.groups()
        if sign == "@":
            return "@" + (names.get(code) or label or code)
        if sign:
            return ("#" if sign == "#" else "@") + (label or code)
        return f"{label} ({code})" if label and label not in code else code

    return html.unescape(_MARKUP.sub(replace, text))


# -- Discord ------------------------------------------------------------------------------------------------------


def is_discord(path: Path, start: str) -> bool:
    """Return whether a file is a channel exported by DiscordChatExporter."""
    return start.lstrip()[:1] == "{" and all(
        f'"{name}"' in start for name in ("guild", "channel", "messages")
    )


def parse_discord(path: Path, notes: Notes) -> Rows:
    """Yield the messages of a Discord channel as memory rows."""
    document = _load(path, dict)
    guild, channel = (
        str(_get_object(document, name).get("name") or "") for name in ("guild", "channel")
    )
    notes.unit, notes.guessed["speaker"] = "message", "nickname or name of the author"
    for number, message in _list_objects(document.get("messages")):
        if message.get("type") not in ("Default", "Reply", "ThreadStarterMessage", None, 0, 19):
            notes.left_out["system message"] += 1
            continue
        author = _get_object(message, "author")
        yield from _build_row(
            number,
            str(message.get("content") or ""),
            author.get("nickname") or author.get("name"),
            message.get("timestamp"),
            " - ".join(filter(None, (guild, channel))) or path.stem,
            notes,
        )


# -- Telegram -----------------------------------------------------------------------------------------------------

# The types of chats in an export of one chat; an export of all chats begins with the account.
_CHATS = re.compile(
    r'"type":\s*"(?:personal_chat|bot_chat|saved_messages|(?:private|public)_(?:group|supergroup|channel))"'
)


def is_telegram(path: Path, start: str) -> bool:
    """Return whether a file is one chat or all chats, exported by Telegram's desktop app."""
    return start.lstrip()[:1] == "{" and (
        _CHATS.search(start) is not None
        or ('"personal_information"' in start and '"about"' in start)
    )


def parse_telegram(path: Path, notes: Notes) -> Rows:
    """Yield the messages of one Telegram chat, or of all chats, as memory rows."""
    document = _load(path, dict)
    lists = (_get_object(document, name).get("list") for name in ("chats", "left_chats"))
    chats = [(1, document)] if "messages" in document else chain(*map(_list_objects, lists))
    notes.unit, notes.guessed["speaker"] = "message", "from"
    for _, chat in chats:
        name = str(chat.get("name") or chat.get("type") or path.stem)
        for number, message in _list_objects(chat.get("messages")):
            if message.get("type") not in ("message", None):
                notes.left_out["system message"] += 1
                continue
            yield from _build_row(
                number,
                _join_text(message.get("text") or message.get("text_entities")),
                message.get("from"),
                # seconds since 1970 name an instant; ``date`` is the local time of the computer
                message.get("date_unixtime") or message.get("date"),
                name,
                notes,
            )


def _join_text(text: object) -> str:
    """Return the words of a Telegram text, which may be split into formatted parts; "" for other values."""
    if not isinstance(text, list):
        return text if isinstance(text, str) else ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in text)
    return "".join(part for part in parts if isinstance(part, str))
