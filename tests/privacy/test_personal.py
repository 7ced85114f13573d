"""Personal identifiers: redacted only where a pack says so, by their check digits where they have any."""

from __future__ import annotations

import pytest

import memlab
from memlab.kernel.policies import load_pack
from memlab.kernel.privacy import PERSONAL, personal_kinds, screen, screen_many

FOUND = [
    ("card 4111 1111 1111 1111 expires soon", "card number", "4111 1111 1111 1111"),
    ("amex 378282246310005", "card number", "378282246310005"),
    ("pay to DE89 3704 0044 0532 0130 00 today", "IBAN", "DE89 3704 0044 0532 0130 00"),
    ("GB82WEST12345698765432", "IBAN", "GB82WEST12345698765432"),
    ("SSN 219-09-9999", "US social security number", "219-09-9999"),
    ("call +49 30 901820-12 or so", "phone number", "+49 30 901820-12"),
    ("call (415) 555-2671", "phone number", "(415) 555-2671"),
    ("write to ada.l@example.org.", "e-mail address", "ada.l@example.org"),
]
PASSED = [
    ("card number", "order 4111 1111 1111 1112 of today"),
    ("IBAN", "DE89 3704 0044 0532 0130 01"),
    ("US social security number", "000-12-3456 and 666-12-3456 and 2026-03-01"),
    ("phone number", "version 2.31.4 of 2026-03-01, 10.0.0.1, 12:30:45, 3.14159265"),
    ("e-mail address", "git@ and @handle and a@b"),
]


@pytest.mark.parametrize(("text", "kind", "secret"), FOUND)
def test_an_identifier_is_redacted_where_it_is_asked_for(text: str, kind: str, secret: str) -> None:
    assert screen(text).text == text
    assert screen(text, personal={kind}).text == text.replace(secret, f"[REDACTED: {kind}]")


def test_an_identifier_is_redacted_in_each_of_many_texts() -> None:
    screened = screen_many(["ask al@ex.org"] * 40, personal={"e-mail address"})
    assert {screening.text for screening in screened} == {"ask [REDACTED: e-mail address]"}


@pytest.mark.parametrize(("kind", "text"), PASSED)
def test_strings_that_only_resemble_personal_data_pass(kind: str, text: str) -> None:
    assert screen(text, personal={kind}).text == text


def test_each_kind_has_a_setting_that_is_off() -> None:
    default = load_pack("memlab").settings
    assert personal_kinds(default) == frozenset()
    assert personal_kinds(dict.fromkeys(PERSONAL, True)) == frozenset(PERSONAL.values())
    assert PERSONAL.keys() <= default.keys()


def test_the_live_pack_decides_for_texts_and_questions(lab: memlab.Lab) -> None:
    lab.remember("ada@example.org likes tea")
    lab.policies.use("(pack careful) (setting redact-emails true)")
    result = lab.remember(["bob@example.org likes coffee"])
    assert lab[1].text == "ada@example.org likes tea"
    assert lab[2].text == "[REDACTED: e-mail address] likes coffee"
    assert [(id, found.type) for id, found in result.redacted] == [(2, "e-mail address")]
    hits = lab.recall("does bob@example.org like tea?")
    assert hits.slate.query == "does [REDACTED: e-mail address] like tea?"
    assert [found.type for found in hits.redacted] == ["e-mail address"]
