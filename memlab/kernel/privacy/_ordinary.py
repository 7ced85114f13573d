"""Whether a text is ordinary: without anything that the gate would look at. Most texts are, and cost no more.

An ordinary text has no telling word, no long run of characters but words, no escape, no line that a token could run
over, no characters one by one and no twelve words of a wallet.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

import polars as pl

from memlab.kernel.privacy._disguises import SPELLED, joined_lines, without_disguise
from memlab.kernel.privacy._secret_names import TELLING
from memlab.kernel.privacy._seed import LEAST, maybe_seed, seed_phrases

__all__ = ["LONG", "is_ordinary", "which_are_ordinary"]

LONG = 14
"""Characters without a space from which a run may be a credential."""

_NAMED = tuple(word for word in TELLING if not any(other in word for other in TELLING if other != word))
_OPERATORS = [f"{name}{sign}" for name in ("pass", "key") for sign in (":", "=", " :", " =", '"', "'", "`", "*")]
_COMMANDS = ["sshpass", "mysql", "mariadb", "redis-cli", "curl ", "login ", "://", "pass:", "authorization", "bearer"]
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
_PROSE = re.compile(r"[^\w@$%&=~+#\\]{0,4}+(?:(?:[A-Z]?[a-z]{1,24}+|[A-Z]{1,12}+)(?:[^\w@$%&=~+#\\]{1,4}+|\Z)){1,8}+\Z")
_PERSONAL = re.compile(r"@|[0-9](?:[^0-9A-Za-z]{0,2}[0-9]){6}|[A-Za-z]{2}[0-9]{2} ?[A-Za-z0-9]{4}")


def is_ordinary(text: str, personal: Collection[str] = ()) -> bool:
    """Whether the gate has nothing to look at."""
    if not text.isascii():
        low = text.lower()
        for word in _OTHER:
            if word in low:
                return False
        text = without_disguise(text)
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
        if len(sizes) >= LEAST and maybe_seed(low) and next(seed_phrases(low), None):
            return False
    if ("%" in text or "&" in text or "\\" in text or "=" in text) and _ESCAPE.search(text):
        return False
    if ("\n" in text or "+" in text or '" "' in text or "' '" in text) and joined_lines(text):
        return False
    return not (personal and _PERSONAL.search(text))


@cache
def _odd() -> str:
    """A pattern of Polars for all that ``is_ordinary`` does not let through by a word, and for somewhat more."""
    seed = rf"(?:[A-Za-z]{{3,8}}[^A-Za-z]{{1,12}}){{{LEAST - 1}}}"
    return (
        rf"\S{{{LONG}}}|[^\x00-\x7f]|\n|%[0-9A-Fa-f]{{2}}|&#|&[A-Za-z]|\\|\+|\" \"|' '|=[0-9A-F]|(?:\S\s+){{7}}|{seed}"
    )


def which_are_ordinary(texts: Sequence[str], personal: Collection[str] = ()) -> list[bool]:
    """``is_ordinary`` of each, where that can be decided for many at once; False where it has to be asked."""
    column = pl.Series(texts, dtype=pl.String)
    odd = column.str.contains_any(list(_ASCII), ascii_case_insensitive=True) | column.str.contains(_odd())
    if personal:
        odd |= column.str.contains(_PERSONAL.pattern)
    return (~odd).to_list()
