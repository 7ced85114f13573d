"""Tests whether a value is random, chosen by a person, or a placeholder."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections import Counter

# Words and patterns that documentation and code write in place of a secret.
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
# Random values differ from names by symbols, and by changes between small letters, capitals and digits.
_PATH = re.compile(r"\.{0,2}/|~|[A-Za-z]:\\|[a-z+]{2,10}://")
_SYMBOL = re.compile(r"[!@#%^*~+=?&$](?=.)")
_DIGIT = re.compile(r"[0-9]")
_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]")
_RUN = re.compile(r"[A-Za-z0-9]+")
_LOOKED_AT = (
    256  # the number of characters that are examined; more characters say no more about a value
)


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder, such as "changeme", and not a secret.

    Other examples are "your-token", "${TOKEN}", "8-64" and "xxxx".
    """
    return (
        value.lower() in _PLACEHOLDERS
        or value == value[0] * len(value)
        or _PLACEHOLDER.match(value) is not None
        or value.lower().endswith(("-here", "_here", "...", "\u2026"))
    )


def is_path(value: str) -> bool:
    """Return whether a value begins like a path or a URL."""
    return _PATH.match(value) is not None


def has_digit(value: str) -> bool:
    """Return whether a value has a digit."""
    return _DIGIT.search(value) is not None


def has_symbol(value: str) -> bool:
    """Return whether a value contains, before its end, a symbol that names do not contain."""
    return _SYMBOL.search(value) is not None


def is_mixed(value: str) -> bool:
    """Return whether upper case, lower case and digits alternate as in random values.

    Names in mixed case alternate less often.

    >>> is_mixed("aB3dE5fG7hJ9kL2m"), is_mixed("webkit-transition-duration-300ms"), is_mixed("eos_token_id_50256")
    (True, False, False)
    """
    value = value[:_LOOKED_AT]
    turns = sum(1 for _ in _TURN.finditer(value))
    if has_digit(value):
        return turns >= max(2, 0.14 * len(value))
    return turns >= max(4, 0.2 * len(value))


def is_random(value: str) -> bool:
    """Return whether a value looks random and is not a placeholder."""
    return len(set(value[:_LOOKED_AT])) >= 2 and is_mixed(value) and not is_placeholder(value)


def looks_generated(value: str) -> bool:
    """Return whether a value after a known prefix is a token and not a name.

    The prefix is evidence in itself, so the threshold is lower than for ``is_random``.

    >>> looks_generated("SVTBTYERVDWRZBATUOKORWSSXDZXULVNRJ"), looks_generated("config_from_pretrained")
    (True, False)
    """
    if is_placeholder(value):
        return False
    value = value[:_LOOKED_AT]
    run = max(_RUN.findall(value), key=len, default="")
    return sum(1 for _ in _TURN.finditer(value)) >= 2 or (len(run) >= 20 and entropy(run) >= 3.3)


def entropy(value: str) -> float:
    """Return the Shannon entropy of the characters of a value, in bits per character."""
    return math.log2(len(value)) - sum(n * math.log2(n) for n in Counter(value).values()) / len(
        value
    )


# The functions below check matches in ways that a regular expression cannot.


# The pattern of a URL's port, and the alphabet of Base58, in which wallets write keys.
_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|\Z)")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def is_basic(value: str) -> bool:
    """Return whether a value is HTTP Basic credentials or looks random.

    Basic credentials are base64 of "name:password". A random value is accepted too, because it may be altered base64.
    """
    return _is_basic(value) or (len(value) >= 12 and is_random(value))


def _is_basic(value: str) -> bool:
    """Return whether a value is base64 of a printable "name:password"."""
    try:
        name, colon, password = (
            base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
        )
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(name and colon and password) and name.isprintable() and password.isprintable()


def is_url_password(value: str) -> bool:
    """Return whether a match is a password and not a port followed by a path with "@"."""
    return _PORT.match(value) is None and not is_placeholder(value)


def is_login(value: str) -> bool:
    """Return whether the last field of a .pgpass line is a password.

    In other lines with colons, this field is a line number, a message or a type.
    """
    return (
        (has_digit(value) or has_symbol(value))
        and not value.isdigit()
        and not is_placeholder(value)
    )


def is_random_hex(value: str) -> bool:
    """Return whether a string of hexadecimal digits looks random."""
    return is_mixed(value.removeprefix("0x")) and len(set(value)) >= 8


def is_wallet_key(value: str) -> bool:
    """Return whether the checksum of a wallet key in Base58 is valid."""
    number = 0
    for character in value:
        digit = _BASE58.find(character)
        if digit < 0:
            return False
        number = number * 58 + digit
    data = number.to_bytes(max(4, (number.bit_length() + 7) // 8), "big")
    return hashlib.sha256(hashlib.sha256(data[:-4]).digest()).digest()[:4] == data[-4:]
