"""Screening of texts: redacting or refusing secrets.

A fast test first recognises ordinary texts, which contain no secrets.
"""

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

# Most texts are ordinary. They contain nothing that the gate has to examine, so only this test is run on them.
#
# An ordinary text has no telling word and no long run of characters except words. It has no escape, no line break
# within a token, no spelled-out characters, and no twelve words of a seed phrase.


LONG = 14
"""The minimum length of a run of characters without spaces that may be a credential."""

# Telling words, except those that contain another telling word, and other literals with which credentials begin.
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
"""Stems of the words in ``_ASCII``. Every such word contains one of them, so most texts need half as many searches."""

# Telling words with characters outside ASCII, which are searched only in texts that have such characters.
_OTHER = tuple(word for word in _NAMED if not word.isascii())

# Patterns of escapes, of runs of ordinary words and punctuation, and of parts of personal identifiers.
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|&#|&[A-Za-z]{2,8};|\\[uUx_*.-]|=[0-9A-F]{2}")
_PROSE = re.compile(
    r"[^\w@$%&=~+#\\]{0,4}+(?:(?:[A-Z]?[a-z]{1,24}+|[A-Z]{1,12}+)(?:[^\w@$%&=~+#\\]{1,4}+|\Z)){1,8}+\Z"
)
_PERSONAL = re.compile(r"@|[0-9](?:[^0-9A-Za-z]{0,2}[0-9]){6}|[A-Za-z]{2}[0-9]{2} ?[A-Za-z0-9]{4}")


def is_ordinary(text: str, personal: Collection[str] = ()) -> bool:
    """Return whether a text certainly contains no secret and needs no examination."""
    # The fastest tests come first. For most texts, the stems and the lengths of words decide.
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


@cache  # needed only for batches of texts
def _odd() -> str:
    """Return a Polars pattern of the content, except telling words, for which ``is_ordinary`` rejects a text.

    It also matches some texts that ``is_ordinary`` accepts.
    """
    seed = rf"(?:[A-Za-z]{{3,8}}[^A-Za-z]{{1,12}}){{{MIN_SEED_WORDS - 1}}}"
    return rf"\S{{{LONG}}}|[^\x00-\x7f]|\n|%[0-9A-Fa-f]{{2}}|&#|&[A-Za-z]|\\|\+|\" \"|' '|=[0-9A-F]|(?:\S\s+){{7}}|{seed}"


def are_ordinary(texts: Sequence[str], personal: Collection[str] = ()) -> list[bool]:
    """Return for each text whether it certainly contains no secret.

    False means that the text must be examined.
    """
    column = pl.Series(texts, dtype=pl.String)
    odd = column.str.contains_any(list(_ASCII), ascii_case_insensitive=True) | column.str.contains(
        _odd()
    )
    if personal:
        odd |= column.str.contains(_PERSONAL.pattern)
    return (~odd).to_list()


Screened = NewType("Screened", str)
"""A text that has passed ``screen``, and contains no credential that the gate recognises."""

_TOGETHER = 16
"""The minimum number of texts for which testing all of them with Polars is faster than a loop."""


_CLEAN: set[bytes] = set()
"""Digests of texts without secrets, because every lab that is opened checks the same sources of its pack."""

_REMEMBERED = 4096
"""The number of digests at which ``_CLEAN`` is cleared; they take some 400 kB."""


class Finding(msgspec.Struct, frozen=True):
    """A secret that was found: its kind, and its span in the original text.

    The text of the secret is not stored.
    """

    type: str
    start: int
    end: int


class Screening(msgspec.Struct, frozen=True):
    """A screened text, and the secrets that were replaced, in order of position."""

    text: Screened
    findings: tuple[Finding, ...] = ()


def screen(text: str, *, personal: Collection[str] = ()) -> Screening:
    """Replace each secret in ``text`` by ``[REDACTED: type]``.

    ``personal`` names kinds of personal identifiers that are replaced too (see ``memlab.kernel.privacy.PERSONAL``).
    Screening a screened text changes nothing. The time is linear in the length of the text.

    >>> screen("the password is 'hunter2', mail me").text
    "the password is '[REDACTED: password]', mail me"
    """
    if is_ordinary(text, personal):
        return Screening(Screened(text))
    findings = merge_findings(_find_all(text, personal))
    if not findings:
        return Screening(Screened(text))
    parts, position = [], 0
    for finding in findings:
        parts += [text[position : finding.start], f"[REDACTED: {finding.type}]"]
        position = finding.end
    parts.append(text[position:])
    return Screening(Screened("".join(parts)), findings)


def screen_many(texts: Iterable[str], *, personal: Collection[str] = ()) -> list[Screening]:
    """Screen several texts, and return their screenings in the same order.

    An ordinary turn of a conversation takes about a microsecond.
    """
    texts = list(texts)
    if len(texts) < _TOGETHER:
        return [screen(text, personal=personal) for text in texts]
    return [
        Screening(Screened(text)) if ordinary else screen(text, personal=personal)
        for text, ordinary in zip(texts, are_ordinary(texts, personal), strict=True)
    ]


def refuse(text: str, what: str) -> None:
    """Raise PrivacyError if ``text`` contains a secret.

    It is used for texts whose meaning a redaction would change.

    ``what`` names the text in the message, such as ``"tag"`` or ``"source of policy recall-score"``.
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
            "Redaction would change its meaning, so nothing was stored: remove the secret and try again."
        )
    if len(_CLEAN) >= _REMEMBERED:
        _CLEAN.clear()
    _CLEAN.add(digest)


def merge_findings(findings: list[Finding]) -> tuple[Finding, ...]:
    """Merge findings that overlap in the text.

    The merged finding has the kind of the finding that starts first. If several start together, the kind of the longest
    counts, and then of the first in ``KINDS``.
    """
    if not findings:
        return ()
    findings.sort(key=lambda finding: (finding.start, -finding.end))
    merged = [findings[0]]
    for finding in findings[1:]:
        last = merged[-1]
        if finding.start >= last.end:
            merged.append(finding)
        elif finding.end > last.end:
            merged[-1] = Finding(last.type, last.start, finding.end)
    return tuple(merged)


# -- Finding secrets -----------------------------------------------------------------------------------------------


def _find_all(text: str, wanted: Collection[str]) -> list[Finding]:
    """Find secrets, and personal data of the wanted kinds, in a text and its decoded variants.

    The spans are those of the original text.
    """
    findings: list[Finding] = []
    full_length: dict[int, int] = {}
    for view, way in read_views(text):
        for kind, start, end, is_full in _find_in_variant(view.text, wanted):
            begin, stop = view.origin(start, end)
            if way == "as it is" and is_full:
                full_length[begin] = stop
            # A secret that is complete on its line does not continue on the next line.
            if way != "joined" or begin not in full_length:
                findings.append(Finding(kind, begin, stop))
    return findings


def _find_in_variant(text: str, wanted: Collection[str]) -> Iterator[tuple[str, int, int, bool]]:
    """Yield kind, start, end and completeness of each secret and ``wanted`` kind of personal data in one variant."""
    low = text.lower()
    if len(low) != len(
        text
    ):  # the capital I with a dot is the only character whose lower case is longer
        low = text.replace("\u0130", "I").lower()
    for number in sorted(
        {number for begin, numbers in _BEGINS if begin in low for number in numbers}
    ):
        kind = KINDS[number]
        for start, end in _matches(kind, text):
            yield kind.name, start, end, 0 < kind.full_length <= end - start
    if "private key" in low or "PuTTY-User-Key" in text:
        yield from (("private key", start, end, True) for start, end in find_private_keys(text))
    yield from ((*match, False) for match in find_named_secrets(text, low))
    yield from ((*match, True) for match in find_seed_phrases(low))
    if wanted:
        yield from ((*match, True) for match in find_personal(text, wanted))


def _begins() -> list[tuple[str, list[int]]]:
    """Return each literal with the indices of the credential kinds that contain it."""
    numbers_by_literal: dict[str, list[int]] = {}
    for number, kind in enumerate(KINDS):
        for begin in kind.begins:
            numbers_by_literal.setdefault(begin, []).append(number)
    return list(numbers_by_literal.items())


_BEGINS = _begins()  # many kinds share a literal, which is searched once


def _matches(kind: Kind, text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of all credentials of one kind in a text."""
    pattern, group = kind.pattern, 1 if kind.pattern.groups else 0
    for match in pattern.finditer(text):
        start, end = match.span(group)
        if start >= 0 and (kind.accept is None or kind.accept(text[start:end])):
            yield start, end


# Strings of an event other than texts, such as names and reasons, are stored without redaction, so they must not
# contain a secret.


Path = tuple[str, ...]

# Up to 20,000 strings of up to 200 characters are cached, which takes some 3 MB.
_LONGEST, _MOST = 200, 20_000
_HASH = re.compile(r"[0-9a-f]{64}")  # the form of memlab's content hashes
_passed: set[str] = set()
"""Strings that were found to have no secret. Most events repeat the same names."""


def refuse_strings(value: Any, what: str, *, hashes: Collection[Path] = ()) -> None:
    """Raise PrivacyError if any string in ``value``, at any depth, contains a secret.

    ``what`` names the value in the message.

    ``hashes`` are paths to fields with content hashes, in which ``*`` matches any name. A string at such a path is not
    examined if it has the exact form of a hash, because a hash may look like a token.

    >>> refuse_strings({"project": "api", "ids": [1, 2]}, "event")
    """
    if hashes:
        value = _without_hashes(value, hashes)
    strings: set[str] = set()
    _gather(value, strings)
    strings -= _passed
    if not strings:
        return
    fresh = list(strings)
    if any(screening.findings for screening in screen_many(fresh)):
        for path, text in _list_strings(value, ()):
            refuse(text, f"{what}, field {path}" if path else what)
    if len(_passed) > _MOST:
        _passed.clear()
    _passed.update(text for text in fresh if len(text) <= _LONGEST)


def _gather(value: Any, into: set[str]) -> None:
    """Add the strings and mapping keys in nested lists, tuples and mappings to the set ``into``."""
    # Exact types are compared, and lists by the set of their types, because event bodies may have a million numbers.
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
            if kinds:  # lists of lists, such as the tags of each row, are searched as one list
                _gather(list(chain.from_iterable(part for part in value if part)), into)
        elif not kinds <= _NUMBERS:
            for part in value:
                _gather(part, into)
    elif isinstance(value, str):
        into.add(str(value))
    elif isinstance(value, Mapping):
        _gather(dict(value), into)


def _without_hashes(value: Any, paths: Collection[Path]) -> Any:
    """Return a value with content hashes in fields at ``paths`` replaced by None.

    Keys of mappings are unchanged.
    """
    # Each call follows one name of the paths. An empty path means that the value itself may be a hash.
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
        for member in list(value) if name == "*" else [name]:
            if member in value:
                rests = [path[1:] for path in paths if path and path[0] in (member, "*")]
                screened[member] = _without_hashes(value[member], rests)
    return screened


# Types of values that cannot contain a string.
_NUMBERS = frozenset((int, float, bool, bytes, type(None)))


def _list_strings(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield (path, string) for each string and key in a nested value; the path joins the enclosing keys by dots."""
    if isinstance(value, str):
        yield ".".join(path), value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield ".".join(path), str(name)
            yield from _list_strings(part, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _list_strings(part, path)
