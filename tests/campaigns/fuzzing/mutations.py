"""Mutations: each takes a text, another text and the dice, and gives a text."""

from __future__ import annotations

import random
import re

__all__ = ["MUTATIONS", "tokens_of"]

_TOKEN = re.compile(r"""[()\[\]{}'`~]|#_|"(?:[^"\\]|\\.)*"|[^\s()\[\]{}'"`~]+|\s+|.""", re.DOTALL)
_TROUBLE_TEXT = (
    "( ) [ ] { } ' ` ~ ~@ # #_ #* #** #^ #[[ ]] #[f[ \" \\ ; : . .. a.b fn lambda λ let let* if cond case else when"
    " update quote param :low :high :weight defn defpolicy pack setting in has tags x y s null nan inf -inf NaN 0x1f"
    " 1e309 1_000 1,000 1j 0b1 -0.0 +1 9007199254740993 1e-400 eval exec import require py pys __import__ __builtins__"
    " memlab-canary (memlab-canary) #memlab-canary defmacro defreader do-mac eval-when-compile hy.eval setv while range"
    " filter map reduce nth first length choice flip é ＋ ｘ \u202e \u200b \u0000 \ufeff ½ １ 𝒙 \r \n \t"
)
_TROUBLE = _TROUBLE_TEXT.split(" ")


def tokens_of(text: str) -> list[str]:
    """Split the first 40,000 characters of a text into brackets, strings, words and blanks."""
    return _TOKEN.findall(text[:40_000])


def _span(tokens: list[str], dice: random.Random) -> tuple[int, int] | None:
    """Return a balanced run of tokens, from an opening bracket to the one that closes it."""
    opening = [i for i, token in enumerate(tokens) if token in "(["]
    if not opening:
        return None
    start = depth = dice.choice(opening)
    depth = 0
    for stop in range(start, len(tokens)):
        depth += (tokens[stop] in ("(", "[")) - (tokens[stop] in (")", "]"))
        if depth == 0:
            return start, stop + 1
    return None


def splice(text: str, other: str, dice: random.Random) -> str:
    """Replace a form of one text by a form of another."""
    ours, theirs = tokens_of(text), tokens_of(other)
    here, there = _span(ours, dice), _span(theirs, dice)
    if here is None or there is None:
        return text + other
    return "".join(ours[: here[0]] + theirs[there[0] : there[1]] + ours[here[1] :])


def edit(text: str, other: str, dice: random.Random) -> str:
    """Delete, double, swap or replace one to four tokens."""
    tokens = tokens_of(text) or [""]
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        i, j = dice.randrange(len(tokens)), dice.randrange(len(tokens))
        change = dice.randrange(5)
        if change == 0 and len(tokens) > 1:
            del tokens[i]
        elif change == 1:
            tokens.insert(i, tokens[i])
        elif change == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif change == 3:
            tokens[i] = dice.choice(_TROUBLE)
        else:
            tokens[i] = tokens[j]
    return "".join(tokens)


def nest(text: str, other: str, dice: random.Random) -> str:
    """Put a form inside many others, or repeat it many times in a row."""
    tokens = tokens_of(text)
    span = _span(tokens, dice) or (0, len(tokens))
    inner = "".join(tokens[span[0] : span[1]])
    count = dice.choice((2, 10, 90, 101, 300, 3000))
    front, back = dice.choice(
        (
            ("(", ")"),
            ("[", "]"),
            ("(- ", ")"),
            ("(if p ", " 1)"),
            ("(let [a 1] ", ")"),
            ("'", ""),
            ("#_", ""),
            ("(+ 1 ", ")"),
        )
    )
    nested = inner * count if dice.random() < 0.2 else front * count + inner + back * count
    return "".join([*tokens[: span[0]], nested[:60_000], *tokens[span[1] :]])


def corrupt(text: str, other: str, dice: random.Random) -> str:
    """Remove, insert or replace characters, anywhere in Unicode."""
    characters = list(text)
    for _ in range(dice.choice((1, 1, 2, 8))):
        i = dice.randrange(len(characters) + 1)
        strange = chr(
            dice.choice((dice.randrange(128), dice.randrange(0x3000), dice.randrange(0x110000)))
        )
        characters[i : i + dice.choice((0, 0, 1, 1, 3))] = [strange] * dice.choice((0, 1, 1, 1, 40))
    return "".join(characters)


def numbers(text: str, other: str, dice: random.Random) -> str:
    """Make a number long, large or odd."""
    items = list(re.finditer(r"(?<![\w.])-?\d[\w.]*", text))
    if not items:
        return edit(text, other, dice)
    at = dice.choice(items)
    odd = dice.choice(
        ("9" * dice.choice((17, 400, 5000)), "1e" + "9" * dice.choice((3, 40)), "0." + "1" * 3000, "0x" + "f" * 500,
         "1e308", "-1e-323", "1/2", "1_0", "٣", "1e", "+-1", "00", "-01", "1.2.3", "0" * 4000 + "1")
    )  # fmt: skip
    return text[: at.start()] + odd + text[at.end() :]


def cut(text: str, other: str, dice: random.Random) -> str:
    """Return the front of one text, or the front of one and the back of another."""
    at = dice.randrange(len(text) + 1)
    return text[:at] + (other[dice.randrange(len(other) + 1) :] if dice.random() < 0.5 else "")


def soup(text: str, other: str, dice: random.Random) -> str:
    """Return the tokens in random order."""
    pool = tokens_of(text) + _TROUBLE
    return dice.choice((" ", "")).join(dice.choice(pool) for _ in range(dice.randint(1, 60)))


MUTATIONS = (splice, splice, splice, edit, edit, edit, nest, corrupt, numbers, cut, soup)
