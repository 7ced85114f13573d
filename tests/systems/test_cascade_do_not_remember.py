"""Do not remember: credentials, and identifiers of a person."""

import pytest

import memlab
from memlab.errors import PrivacyError

SAID = {
    "078-05-1120": "My SSN is 078-05-1120",
    "4111 1111 1111 1111": "The card is 4111 1111 1111 1111",
    "+1 415 555 2671": "Call me at +1 415 555 2671",
    "ada@example.org": "Write to ada@example.org",
    "GB82 WEST 1234 5698 7654 32": "My IBAN is GB82 WEST 1234 5698 7654 32",
}


@pytest.mark.parametrize(("secret", "text"), SAID.items())
def test_identifiers_are_redacted_under_cascade(clock, secret, text):
    with memlab.open(pack="cascade", clock=clock) as lab:
        stored = lab.remember(text).text
        assert secret not in stored
        assert "[REDACTED" in stored


def test_they_may_pass_under_companion(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        assert lab.remember("Write to ada@example.org").text == "Write to ada@example.org"


def test_a_file_of_secrets_is_refused(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        with pytest.raises(PrivacyError, match=r"\.env"):
            lab.remember("content of env", files=[".env"])
        assert len(lab) == 0
