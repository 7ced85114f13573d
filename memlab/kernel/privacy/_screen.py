"""Redacting and refusing: where findings become a text without secrets, or an error; and which texts are ordinary."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NewType

import msgspec
import polars as pl

from memlab.errors import PrivacyError
from memlab.kernel.privacy._disguises import SPELLED, has_broken_token, read_views, strip_disguise
from memlab.kernel.privacy._kinds import KINDS, Kind
from memlab.kernel.privacy._secret_names import (
    MIN_SEED_WORDS,
    TELLING_NAMES,
    find_named_secrets,
    find_personal,
    find_private_keys,
    find_seed_phrases,
    may_hold_seed_phrase,
)

__all__ = [
    "LONG",
    "Finding",
    "Screened",
    "Screening",
    "are_ordinary",
    "is_ordinary",
    "refuse",
    "refuse_strings",
    "screen",
    "screen_many",
]


# Whether a text is ordinary: without anything that the gate would look at. Most texts are, and cost no more.
#
# An ordinary text has no telling word, no long run of characters but words, no escape, no line that a token could run
# over, no characters one by one and no twelve words of a wallet.


LONG = 14
"""Characters without a space from which a run may be a credential."""

_NAMED = tuple(
    word
    for word in TELLING_NAMES
    if not any(other in word for other in TELLING_NAMES if other != word)
)
_OPERATORS = [
    f"{name}{sign}"
    for name in ("pass", "key")
    for sign in (":", "=", " :", " =", '"', "'", "`", "*")
]
_COMMANDS = [
    "sshpass",
    "mysql",
    "mariadb",
    "redis-cli",
    "curl ",
    "login ",
    "://",
    "pass:",
    "authorization",
    "bearer",
]
_ASCII = (*(word for word in _NAMED if word.isascii()), *_OPERATORS, *_COMMANDS)
_STEMS_TEXT = """
    pass pwd key secret token credential geheimnis segre jeton toegangscode kennwort mdp contrasena senha parola
    wachtwoord adgangskode salasana haslo heslo clave chave chiave sleutel schl mysql mariadb redis-cli ://
    authorization bearer
"""
_STEMS = (*_STEMS_TEXT.split(), "mot de", "pin code", "cle api", "curl ", "login ")
"""Half as many pieces, one of which stands in each of those words."""

_OTHER = tuple(word for word in _NAMED if not word.isascii())

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|&#|&[A-Za-z]{2,8};|\\[uUx_*.-]|=[0-9A-F]{2}")
_PROSE = re.compile(
    r"[^\w@$%&=~+#\\]{0,4}+(?:(?:[A-Z]?[a-z]{1,24}+|[A-Z]{1,12}+)(?:[^\w@$%&=~+#\\]{1,4}+|\Z)){1,8}+\Z"
)
_PERSONAL = re.compile(r"@|[0-9](?:[^0-9A-Za-z]{0,2}[0-9]){6}|[A-Za-z]{2}[0-9]{2} ?[A-Za-z0-9]{4}")


def is_ordinary(text: str, personal: Collection[str] = ()) -> bool:
    """Whether the gate has nothing to look at."""
    if not text.isascii():
        low = text.lower()
        for word in _OTHER:
            if word in low:
                return False
        text = strip_disguise(text)
    low = text.lower()
    for stem in _STEMS:
        if stem in low and any(word in low for word in _ASCII):
            return False
    words = text.split()
    sizes = list(map(len, words))
    if sizes and max(sizes) >= LONG:
        for word in words:
            if len(word) >= LONG and _PROSE.match(word) is None:
                return False
    if len(sizes) >= 8:
        if sizes.count(1) >= 7 and re.search(SPELLED, text):
            return False
        if (
            len(sizes) >= MIN_SEED_WORDS
            and may_hold_seed_phrase(low)
            and next(find_seed_phrases(low), None)
        ):
            return False
    if ("%" in text or "&" in text or "\\" in text or "=" in text) and _ESCAPE.search(text):
        return False
    if ("\n" in text or "+" in text or '" "' in text or "' '" in text) and has_broken_token(text):
        return False
    return not (personal and _PERSONAL.search(text))


@cache
def _odd() -> str:
    """A pattern of Polars for all that ``is_ordinary`` does not let through by a word, and for somewhat more."""
    seed = rf"(?:[A-Za-z]{{3,8}}[^A-Za-z]{{1,12}}){{{MIN_SEED_WORDS - 1}}}"
    return rf"\S{{{LONG}}}|[^\x00-\x7f]|\n|%[0-9A-Fa-f]{{2}}|&#|&[A-Za-z]|\\|\+|\" \"|' '|=[0-9A-F]|(?:\S\s+){{7}}|{seed}"


def are_ordinary(texts: Sequence[str], personal: Collection[str] = ()) -> list[bool]:
    """``is_ordinary`` of each, where that can be decided for many at once; False where it has to be asked."""
    column = pl.Series(texts, dtype=pl.String)
    odd = column.str.contains_any(list(_ASCII), ascii_case_insensitive=True) | column.str.contains(
        _odd()
    )
    if personal:
        odd |= column.str.contains(_PERSONAL.pattern)
    return (~odd).to_list()


Screened = NewType("Screened", str)
"""Text that went through ``screen``: holds no credential that the gate knows."""

_TOGETHER = 16
"""Texts from which it is quicker to ask Polars which of them are ordinary."""


_CLEAN: set[bytes] = set()
"""Digests of texts that ``refuse`` found no secret in. Each lab that opens asks about the sources of its pack again."""

_REMEMBERED = 4096


class Finding(msgspec.Struct, frozen=True):
    """One secret: what it is, and where it stood in the original text. The secret itself is not kept."""

    type: str
    start: int
    end: int


class Screening(msgspec.Struct, frozen=True):
    """Text after the gate, and what the gate took out, in order of place."""

    text: Screened
    findings: tuple[Finding, ...] = ()


def screen(text: str, *, personal: Collection[str] = ()) -> Screening:
    """Replace each secret in ``text`` by ``[REDACTED: type]``.

    ``personal`` names kinds of personal identifiers that are replaced too (see ``memlab.kernel.privacy.PERSONAL``).
    Screening twice changes nothing more. Linear in the length of the text.

    >>> screen("the password is 'hunter2', mail me").text
    "the password is '[REDACTED: password]', mail me"
    """
    if is_ordinary(text, personal):
        return Screening(Screened(text))
    findings = merge_findings(_found(text, personal))
    if not findings:
        return Screening(Screened(text))
    parts, position = [], 0
    for finding in findings:
        parts += [text[position : finding.start], f"[REDACTED: {finding.type}]"]
        position = finding.end
    parts.append(text[position:])
    return Screening(Screened("".join(parts)), findings)


def screen_many(texts: Iterable[str], *, personal: Collection[str] = ()) -> list[Screening]:
    """``screen`` for each text, in order: about a microsecond for an ordinary turn of conversation."""
    texts = list(texts)
    if len(texts) < _TOGETHER:
        return [screen(text, personal=personal) for text in texts]
    return [
        Screening(Screened(text)) if ordinary else screen(text, personal=personal)
        for text, ordinary in zip(texts, are_ordinary(texts, personal), strict=True)
    ]


def refuse(text: str, what: str) -> None:
    """Raise PrivacyError if ``text`` holds a secret: for places where redaction would change the meaning.

    ``what`` names the place in the message, such as ``"tag"`` or ``"source of policy recall-score"``.
    """
    if is_ordinary(text, ()):
        return
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if digest in _CLEAN:
        return
    findings = screen(text).findings
    if findings:
        first = findings[0]
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        line = text.count("\n", 0, first.start) + 1
        column = first.start - text.rfind("\n", 0, first.start)
        raise PrivacyError(
            f"The {what} holds what looks like a secret ({first.type}, line {line}, column {column}){more}. "
            "It would be stored as given: take the secret out."
        )
    if len(_CLEAN) >= _REMEMBERED:
        _CLEAN.clear()
    _CLEAN.add(digest)


def merge_findings(found: list[Finding]) -> tuple[Finding, ...]:
    """Overlapping findings become one, of the type that starts first (the longer one, then the earlier rule)."""
    if not found:
        return ()
    found.sort(key=lambda finding: (finding.start, -finding.end))
    merged = [found[0]]
    for finding in found[1:]:
        last = merged[-1]
        if finding.start >= last.end:
            merged.append(finding)
        elif finding.end > last.end:
            merged[-1] = Finding(last.type, last.start, finding.end)
    return tuple(merged)


# -- what is found -------------------------------------------------------------------------------------------------


def _found(text: str, wanted: Collection[str]) -> list[Finding]:
    """Every finding, of every way to read the text, where it stands in the text itself."""
    found: list[Finding] = []
    full_length: dict[int, int] = {}
    for view, way in read_views(text):
        for kind, start, end, is_full in _found_in(view.text, wanted):
            begin, stop = view.origin(start, end)
            if way == "as it is" and is_full:
                full_length[begin] = stop
            # what is whole does not go on in the next line
            if way != "joined" or begin not in full_length:
                found.append(Finding(kind, begin, stop))
    return found


def _found_in(text: str, wanted: Collection[str]) -> Iterator[tuple[str, int, int, bool]]:
    """Kind, start, end, and whether that is all of it."""
    low = text.lower()
    if len(low) != len(text):  # the dotted capital I is the only character that grows
        low = text.replace("\u0130", "I").lower()
    for number in sorted(
        {number for begin, numbers in _BEGINS if begin in low for number in numbers}
    ):
        kind = KINDS[number]
        for start, end in _matches(kind, text):
            yield kind.name, start, end, 0 < kind.full_length <= end - start
    if "private key" in low or "PuTTY-User-Key" in text:
        yield from (("private key", start, end, True) for start, end in find_private_keys(text))
    yield from ((*found, False) for found in find_named_secrets(text, low))
    yield from ((*found, True) for found in find_seed_phrases(low))
    if wanted:
        yield from ((*found, True) for found in find_personal(text, wanted))


def _begins() -> list[tuple[str, list[int]]]:
    """Each literal that one of KINDS begins with, and the numbers of those kinds."""
    known: dict[str, list[int]] = {}
    for number, kind in enumerate(KINDS):
        for begin in kind.begins:
            known.setdefault(begin, []).append(number)
    return list(known.items())


_BEGINS = _begins()


def _matches(kind: Kind, text: str) -> Iterator[tuple[int, int]]:
    pattern, group = kind.pattern, 1 if kind.pattern.groups else 0
    for match in pattern.finditer(text):
        start, end = match.span(group)
        if start >= 0 and (kind.accept is None or kind.accept(text[start:end])):
            yield start, end


# Every string of an event: names, reasons and whatever else is stored as it was given.


Path = tuple[str, ...]

_LONGEST, _MOST = 200, 20_000
_HASH = re.compile(r"[0-9a-f]{64}")
_passed: set[str] = set()
"""Strings that hold no secret: names come again and again."""


def refuse_strings(value: Any, what: str, *, hashes: Collection[Path] = ()) -> None:
    """Raise PrivacyError if any string in ``value``, however deep, holds a secret; ``what`` holds it.

    ``hashes`` are the names that lead to fields of content hashes, ``*`` for any name. What has the exact form of one
    there is not looked at: by chance a hash looks like a token.

    >>> refuse_strings({"project": "api", "ids": [1, 2]}, "event")
    """
    if hashes:
        value = _without_hashes(value, hashes)
    strings: set[str] = set()
    _gather(value, strings)
    strings -= _passed
    if not strings:
        return
    given = list(strings)
    if any(screening.findings for screening in screen_many(given)):
        for path, text in _named(value, ()):
            refuse(text, f"{what}, field {path}" if path else what)
    if len(_passed) > _MOST:
        _passed.clear()
    _passed.update(text for text in given if len(text) <= _LONGEST)


def _gather(value: Any, into: set[str]) -> None:
    kind = type(value)
    if kind is dict:
        into.update(value)
        for part in value.values():
            if type(part) is str:
                into.add(part)
            elif type(part) not in _NUMBERS:
                _gather(part, into)
    elif kind is list or kind is tuple:
        kinds = set(map(type, value))
        if kinds == {str}:
            into.update(value)
        elif kinds <= {list, tuple, type(None)}:
            if kinds:  # lists of lists, such as the tags of each row: as one
                _gather(list(chain.from_iterable(part for part in value if part)), into)
        elif not kinds <= _NUMBERS:
            for part in value:
                _gather(part, into)
    elif isinstance(value, str):
        into.add(str(value))
    elif isinstance(value, Mapping):
        _gather(dict(value), into)


def _without_hashes(value: Any, paths: Collection[Path]) -> Any:
    """Return ``value`` with None for each content hash in the fields at ``paths``; names of fields stay."""
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, str):
        return None if () in paths and _HASH.fullmatch(value) else value
    if isinstance(value, list | tuple):
        return [_without_hashes(part, paths) for part in value]
    if not isinstance(value, Mapping):
        return value
    screened = dict(value)
    for name in {path[0] for path in paths if path}:
        for known in list(value) if name == "*" else [name]:
            if known in value:
                rests = [path[1:] for path in paths if path and path[0] in (known, "*")]
                screened[known] = _without_hashes(value[known], rests)
    return screened


_NUMBERS = frozenset((int, float, bool, bytes, type(None)))


def _named(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each string with the names that lead to it."""
    if isinstance(value, str):
        yield ".".join(path), value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield ".".join(path), str(name)
            yield from _named(part, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _named(part, path)
