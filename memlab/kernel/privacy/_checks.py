"""What a pattern cannot say of what it found."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

from memlab.kernel.privacy._values import has_digit, has_symbol, is_mixed, is_placeholder, is_random

__all__ = ["is_basic", "is_login", "is_random_hex", "is_url_password", "is_wallet_key"]

_PORT = re.compile(r"[0-9]{1,5}(?:[/?#]|\Z)")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def is_basic(value: str) -> bool:
    """Whether base64 reads "name:password", or did before it was changed."""
    return _is_basic(value) or (len(value) >= 12 and is_random(value))


def _is_basic(value: str) -> bool:
    try:
        name, colon, password = base64.b64decode(value + "=" * (-len(value) % 4)).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return bool(name and colon and password) and name.isprintable() and password.isprintable()


def is_url_password(value: str) -> bool:
    """Not a port and a path with an @ in it."""
    return _PORT.match(value) is None and not is_placeholder(value)


def is_login(value: str) -> bool:
    """What ends a line of .pgpass, and no line number, message or type."""
    return (has_digit(value) or has_symbol(value)) and not value.isdigit() and not is_placeholder(value)


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
