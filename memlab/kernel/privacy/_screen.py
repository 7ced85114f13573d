"""Redacting and refusing: where findings become a text without secrets, or an error."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from typing import NewType

import msgspec

from memlab.errors import PrivacyError
from memlab.kernel.privacy._disguises import views
from memlab.kernel.privacy._kinds import KINDS, Kind
from memlab.kernel.privacy._ordinary import is_ordinary, which_are_ordinary
from memlab.kernel.privacy._personal import personal
from memlab.kernel.privacy._private_keys import private_keys
from memlab.kernel.privacy._secret_names import secrets_by_name
from memlab.kernel.privacy._seed import seed_phrases

__all__ = ["Finding", "Screened", "Screening", "refuse", "screen", "screen_many"]

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
    findings = _merged(_found(text, personal))
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
        for text, ordinary in zip(texts, which_are_ordinary(texts, personal), strict=True)
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


def _merged(found: list[Finding]) -> tuple[Finding, ...]:
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
    for view, way in views(text):
        for kind, start, end, is_full in _found_in(view.text, wanted):
            begin, stop = view.origin(start, end)
            if way == "as it is" and is_full:
                full_length[begin] = stop
            if way != "joined" or begin not in full_length:  # what is whole does not go on in the next line
                found.append(Finding(kind, begin, stop))
    return found


def _found_in(text: str, wanted: Collection[str]) -> Iterator[tuple[str, int, int, bool]]:
    """Kind, start, end, and whether that is all of it."""
    low = text.lower()
    if len(low) != len(text):  # the dotted capital I is the only character that grows
        low = text.replace("\u0130", "I").lower()
    for number in sorted({number for begin, numbers in _BEGINS if begin in low for number in numbers}):
        kind = KINDS[number]
        for start, end in _matches(kind, text):
            yield kind.name, start, end, 0 < kind.full_length <= end - start
    if "private key" in low or "PuTTY-User-Key" in text:
        yield from (("private key", start, end, True) for start, end in private_keys(text))
    yield from ((*found, False) for found in secrets_by_name(text, low))
    yield from ((*found, True) for found in seed_phrases(low))
    if wanted:
        yield from ((*found, True) for found in personal(text, wanted))


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
