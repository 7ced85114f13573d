"""The greatest of what docs/secrets.md names is found: the longest card number, the deepest encoding."""

from __future__ import annotations

import base64

import pytest

from memlab.kernel.privacy import screen

# made up, and put together so that no scanner takes it for one
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5zA7"


@pytest.mark.parametrize("number", ["4222222222222", "4111111111111111", "6304000000000000000"])
def test_a_card_number_has_13_to_19_digits(number: str) -> None:
    screened = screen(f"pay with {number} today", personal={"card number"})
    assert screened.text == "pay with [REDACTED: card number] today"


def test_a_token_is_found_in_encodings_within_one_another_four_deep() -> None:
    text = TOKEN
    for _ in range(4):
        text = base64.b64encode(text.encode()).decode()
    assert screen(text).text.startswith("[REDACTED")
