"""Personal identifiers: looked for where a pack's settings say so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache

__all__ = ["PERSONAL", "personal", "personal_kinds"]

PERSONAL = {
    "redact-cards": "card number",
    "redact-ibans": "IBAN",
    "redact-social-security": "US social security number",
    "redact-phones": "phone number",
    "redact-emails": "e-mail address",
}
"""The kind that each setting of a pack has redacted."""


def personal_kinds(settings: Mapping[str, object]) -> frozenset[str]:
    """The kinds that a pack with these settings has redacted.

    >>> personal_kinds({"redact-cards": True, "redact-ibans": False})
    frozenset({'card number'})
    """
    return frozenset(kind for setting, kind in PERSONAL.items() if settings.get(setting) is True)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {
        "card number": re.compile(r"(?<![\w.-])(?:[2-6][0-9]{3}(?P<gap>[ -]?)(?:[0-9]{4}(?P=gap)){2}[0-9]{1,7}|"
                                  r"3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5})(?![\w-])"),
        "IBAN": re.compile(
            r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
        ),
        "US social security number": re.compile(
            r"(?<![\w-])(?!000|666|9[0-9]{2})[0-9]{3}(?P<gap>[ -])(?!00)[0-9]{2}(?P=gap)(?!0000)[0-9]{4}(?![\w-])"
            r"|(?i:ssn|social security(?: number)?)[ :#is]{1,8}(?P<plain>[0-9]{9})(?![\w-])"
        ),
        "phone number": re.compile(
            r"(?<![\w+./-])(?:\+[1-9][0-9]{0,2}[ .-]?(?:\(0\)[ ]?)?(?:\(?[0-9]{1,5}\)?[ ./-]?){2,5}[0-9]{2,5}"
            r"|\(?[2-9][0-9]{2}\)?[ .-][2-9][0-9]{2}[ .-][0-9]{4}"
            r"|0[1-9][0-9]{1,4}[ /-](?:[0-9]{2,4}[ -]?){2,4}[0-9]{0,4})(?![\w-])"
        ),
        "e-mail address": re.compile(
            r"(?<![\w.+%-])[\w.+%-]{1,64}+@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![\w-])"
        ),
    }  # fmt: skip


def personal(text: str, kinds: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """Identifiers of these kinds. A card's number has the check digit of Luhn, an IBAN that of ISO 7064."""
    for kind, pattern in _patterns().items():
        if kind not in kinds:
            continue
        for match in pattern.finditer(text):
            group = "plain" if "plain" in pattern.groupindex and match["plain"] else 0
            start, end = match.span(group)
            if kind == "IBAN":
                end = _end_of_iban(text, start, end)
            if end > start and (kind != "card number" or _is_card(text[start:end])) and _is_long(kind, text[start:end]):
                yield kind, start, end


def _is_long(kind: str, found: str) -> bool:
    return kind != "phone number" or 8 <= sum(map(str.isdigit, found)) <= 15


def _is_card(found: str) -> bool:
    digits = [int(one) for one in found if one.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _end_of_iban(text: str, start: int, end: int) -> int:
    """Where the IBAN that begins at ``start`` ends: a word may follow it; ``start`` if there is none."""
    while end > start:
        plain = "".join(filter(str.isalnum, text[start:end])).upper()
        if 15 <= len(plain) <= 34:
            number = "".join(str(int(one, 36)) for one in plain[4:] + plain[:4])
            if int(number) % 97 == 1:
                return end
        cut = max(text.rfind(" ", start, end), text.rfind("-", start, end))
        end = cut if cut > start else start
    return start
