"""What a value looks like: made by chance, made up by a person, or a word that stands where a secret would."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections import Counter

__all__ = [
    "entropy",
    "has_digit",
    "has_symbol",
    "is_basic",
    "is_login",
    "is_mixed",
    "is_path",
    "is_placeholder",
    "is_random",
    "is_random_hex",
    "is_url_password",
    "is_wallet_key",
    "looks_generated",
]


_PLACEHOLDERS_TEXT = """
    1234 abcd any api-key apikey bool bytes changeit changeme credential credentials default empty example expired false
    hidden incorrect input int invalid key masked missing my-password my_password mypassword new_password
    newpassword nil none null number object old_password oldpassword optional pass passphrase passwd password
    passwort placeholder prompt pw pwd redacted removed required secret str string test text todo token true
    undefined user username value wrong xxxx your-password your_password yourpassword
"""
_PLACEHOLDERS = frozenset(_PLACEHOLDERS_TEXT.split())
_PLACEHOLDER = re.compile(
    r"[$<{(%\[]|\*{3}|\.{3}|x{4}|(?:your|my|the|some|an?|enter|insert|example|dummy|sample|replace|change)[_\s-]"
    r"|(?:min|max|at ?least)[_-]?\d|\d{1,4} ?[-\u2013] ?\d{1,4}\Z|\[?redacted",
    re.IGNORECASE,
)
_PATH = re.compile(r"\.{0,2}/|~|[A-Za-z]:\\|[a-z+]{2,10}://")
_SYMBOL = re.compile(r"[!@#%^*~+=?&$](?=.)")
_DIGIT = re.compile(r"[0-9]")
_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]")
_RUN = re.compile(r"[A-Za-z0-9]+")
_LOOKED_AT = 256


def is_placeholder(value: str) -> bool:
    """Whether it only stands where a secret would: "changeme", "your-token", "${TOKEN}", "8-64", "xxxx"."""
    return (
        value.lower() in _PLACEHOLDERS
        or value == value[0] * len(value)
        or _PLACEHOLDER.match(value) is not None
        or value.lower().endswith(("-here", "_here", "...", "\u2026"))
    )


def is_path(value: str) -> bool:
    """Whether it begins as a path or a URL does."""
    return _PATH.match(value) is not None


def has_digit(value: str) -> bool:
    return _DIGIT.search(value) is not None


def has_symbol(value: str) -> bool:
    """Whether a sign stands in it that words and names do not have, and not at its end."""
    return _SYMBOL.search(value) is not None


def is_mixed(value: str) -> bool:
    """Whether small letters, capitals and digits follow one another as they do by chance, and not as in a name.

    >>> is_mixed("aB3dE5fG7hJ9kL2m"), is_mixed("webkit-transition-duration-300ms"), is_mixed("eos_token_id_50256")
    (True, False, False)
    """
    value = value[:_LOOKED_AT]
    turns = sum(1 for _ in _TURN.finditer(value))
    if has_digit(value):
        return turns >= max(2, 0.14 * len(value))
    return turns >= max(4, 0.2 * len(value))


def is_random(value: str) -> bool:
    """``is_mixed``, and no placeholder."""
    return len(set(value[:_LOOKED_AT])) >= 2 and is_mixed(value) and not is_placeholder(value)


def looks_generated(value: str) -> bool:
    """Whether what follows a prefix that says much is a token's, and not a name's: less has to speak for it.

    >>> looks_generated("SVTBTYERVDWRZBATUOKORWSSXDZXULVNRJ"), is_made("config_from_pretrained")
    (True, False)
    """
    if is_placeholder(value):
        return False
    value = value[:_LOOKED_AT]
    run = max(_RUN.findall(value), key=len, default="")
    return sum(1 for _ in _TURN.finditer(value)) >= 2 or (len(run) >= 20 and entropy(run) >= 3.3)


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits."""
    return math.log2(len(value)) - sum(n * math.log2(n) for n in Counter(value).values()) / len(
        value
    )


# What a pattern cannot say of what it found.


_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|\Z)")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def is_basic(value: str) -> bool:
    """Whether base64 reads "name:password", or did before it was changed."""
    return _is_basic(value) or (len(value) >= 12 and is_random(value))


def _is_basic(value: str) -> bool:
    try:
        name, colon, password = (
            base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
        )
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(name and colon and password) and name.isprintable() and password.isprintable()


def is_url_password(value: str) -> bool:
    """Not a port and a path with an @ in it."""
    return _PORT.match(value) is None and not is_placeholder(value)


def is_login(value: str) -> bool:
    """What ends a line of .pgpass, and no line number, message or type."""
    return (
        (has_digit(value) or has_symbol(value))
        and not value.isdigit()
        and not is_placeholder(value)
    )


def is_random_hex(value: str) -> bool:
    return is_mixed(value.removeprefix("0x")) and len(set(value)) >= 8


def is_wallet_key(value: str) -> bool:
    """Whether the check digits of a wallet's key are right."""
    number = 0
    for character in value:
        place = _BASE58.find(character)
        if place < 0:
            return False
        number = number * 58 + place
    data = number.to_bytes(max(4, (number.bit_length() + 7) // 8), "big")
    return hashlib.sha256(hashlib.sha256(data[:-4]).digest()).digest()[:4] == data[-4:]
