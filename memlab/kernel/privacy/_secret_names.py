"""Secrets that only their context or content reveals, because they have no fixed form.

They are values of telling names in code or sentences, seed phrases of wallets, blocks of private keys, and personal
identifiers.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from memlab.kernel.privacy._values import (
    entropy,
    has_digit,
    has_symbol,
    is_mixed,
    is_path,
    is_placeholder,
    is_random,
)

Match = tuple[str, int, int]
"""The kind of a secret, and the start and end of its value."""

# Names that tell that a secret follows, in several languages. A text is searched once for each name.
_PASSWORDS = (
    *(
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "pwd",
        "passwort",
        "kennwort",
        "mot de passe",
        "mdp",
    ),
    *(
        "contraseña",
        "contrasena",
        "senha",
        "palavra-passe",
        "parola d'ordine",
        "wachtwoord",
        "lösenord",
        "adgangskode",
    ),
    *(
        "passord",
        "salasana",
        "hasło",
        "haslo",
        "heslo",
        "jelszó",
        "parolă",
        "şifre",
        "пароль",
        "пароля",
        "密码",
        "密碼",
    ),
    *(
        "パスワード",
        "비밀번호",
        "pass phrase",
        "pass code",
        "pin code",
        "clave de acceso",
        "parola",
    ),
)
_SECRETS = ("secret", "credential", "credentials", "geheimnis", "segreto", "secreto", "segredo")
_TOKENS = ("token", "jeton", "toegangscode")
_KEYS = (
    *(
        "api key",
        "api_key",
        "api-key",
        "apikey",
        "access key",
        "auth key",
        "account key",
        "service key",
    ),
    *(
        "api-schlüssel",
        "api schlüssel",
        "zugangsschlüssel",
        "clé api",
        "clé d'api",
        "cle api",
        "clé secrète",
    ),
    *(
        "clave api",
        "clave de api",
        "clave secreta",
        "chave api",
        "chave de api",
        "chave da api",
        "chave secreta",
    ),
    *(
        "chiave api",
        "chiave segreta",
        "api-sleutel",
        "api sleutel",
        "ключ api",
        "api-ключ",
        "api 密钥",
        "apiキー",
    ),
)
# The kind that a finding reports for each name, in the order in which the names are searched.
_KIND = {
    **dict.fromkeys(_PASSWORDS, "password"),
    **dict.fromkeys(_SECRETS, "secret"),
    **dict.fromkeys(_TOKENS, "token"),
    **dict.fromkeys(_KEYS, "API key"),
}

# -- Assignments in code, configuration and chat -------------------------------------------------------------------

# "SECRET_KEY_BASE", "DB_PASSWORD_PROD"; other endings ("token_type", "password_length") name other things. The patterns
# after ``_ENDING`` match the other parts of an assignment: operator, quoted or bare value, and values that are code.
_ENDING = r"(?:[ _-]?(?:access[ _-]?)?key(?:_base)?)?(?:_(?:prod|production|dev|staging|test|base64|\d{1,3}))?"
_OPERATOR = (
    r"""\\?["'`*\u201d]{0,3}[ \t]{0,3}"""
    r"(?P<op>:[ ]?str(?:ing)?[ ]?=|:=|=>|==?|\uff1a|:|\u2192|->)(?P<gap>[ \t]{0,3}(?:\r?\n[ \t]{0,8})?)"
)
_VALUE = (
    r"""(?:[bru]?\\?["'`\u201c\u201e\u00ab](?P<quoted>[^\s"'`\\\u201c\u201d\u00bb]{4,256})\\?["'`\u201c\u201d\u00bb]"""
    r"""|(?P<bare>[^\s"'`,;&|()\[\]{}<>$\\][^\s"'`,;&|()\[\]{}<>\\]{3,255}))"""
)
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_"
_OPENING = frozenset("([{<$")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+[.:?!]?")
_KEY_OWNER = re.compile(
    r"(?:api|access|auth|secret|private|encryption|signing|master|account|service|app)[ _-]?\Z"
)
_HASHES = re.compile(r"(?:sha\d{0,3}|md5|blake\w{0,3})[-:_]")

_Accept = Callable[[str, "re.Match[str]", str], bool]


def _is_password(value: str, match: re.Match[str], text: str) -> bool:
    """Return whether the value assigned to a name such as "password" is a secret.

    A quoted value is a secret unless it is a placeholder or a path. A bare value must also not be code.
    It must have a digit or a symbol, or be assigned in an env file, a URL, a connection string or a
    command line.
    """
    if is_placeholder(value) or is_path(value):
        return False
    if match["bare"] is None:
        return True
    if "\n" in match["gap"]:
        return is_mixed(value) and not _in_code(match, text)
    if _in_code(match, text):
        return False
    if has_digit(value) or has_symbol(value):
        return True
    # A word after "=" is code, except in an env file, a URL's query, a connection string or a command line.
    before = text[max(0, match.start() - 1) : match.start()]
    return match["op"] == "=" and (_in_env(match, text) or before in {"?", "&", ";", "-"})


def _is_key(value: str, match: re.Match[str], text: str) -> bool:
    """Return whether the value assigned to a name such as "token" is a secret.

    Code and prose use such names for many other things, so the value must look random.
    """
    # A bare value needs more evidence than a quoted value. A value in an env file needs less evidence than one in prose.
    bare = match["bare"] is not None
    env = bare and match["op"] == "=" and _in_env(match, text)
    if len(value) < (16 if bare and not env else 8) or is_placeholder(value) or is_path(value):
        return False
    if _HASHES.match(value.lower()) or (bare and _in_code(match, text)):
        return False
    digits, letters = sum(map(str.isdigit, value[:64])), sum(map(str.isalpha, value[:64]))
    if env:
        return letters >= 2 and "_" not in value
    return (
        letters >= 2
        and digits >= 2
        and is_mixed(value)
        and (not bare or entropy(value[:64]) >= 2.8)
    )


def _is_named_key(value: str, match: re.Match[str], text: str) -> bool:
    """Return whether the value of "key" is a secret, given the word before "key".

    The word must indicate access, such as "api", "access" or "private", and ``_is_key`` must accept the value.
    """
    start = match.start()
    return _KEY_OWNER.search(text[max(0, start - 12) : start].lower()) is not None and _is_key(
        value, match, text
    )


def _in_env(match: re.Match[str], text: str) -> bool:
    """Return whether an assignment has the form of an env file: ``DB_PASSWORD=...``.

    The name is in capitals, and there is no space around the equals sign.
    """
    start, end = match.start(), match.start("op")
    before = text[max(0, start - 64) : start]
    name = before[len(before.rstrip(_NAME_CHARACTERS)) :] + text[start:end]
    return name.isupper() and " " not in name and text[match.end("op")] not in " \t\n"


def _in_code(match: re.Match[str], text: str) -> bool:
    """Return whether a bare value is an expression of code.

    Such an expression is a call, a subscript, a generic type, a variable or a dotted name.
    """
    end = match.end("bare")
    return (
        text[end : end + 1] in _OPENING
        or _DOTTED.fullmatch(text, match.start("bare"), end) is not None
    )


@cache  # one pattern for each name, compiled when a text first has the name
def _assignment_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of an assignment to a name such as "password"."""
    return re.compile(re.escape(name) + _ENDING + _OPERATOR + _VALUE)


def _assigned(name: str, kind: str, accept: _Accept, text: str, low: str) -> Iterator[Match]:
    """Yield secrets assigned to a name in code, configuration, env files and chat."""
    for match in _assignment_pattern(name).finditer(low):
        start, end = match.span("quoted" if match["bare"] is None else "bare")
        if accept(text[start:end], match, text):
            yield kind, start, end


# -- Statements in sentences ---------------------------------------------------------------------------------------

# Words after "my password is" that are not the password, such as "my password is wrong". The patterns below match the
# parts of such a sentence: an object, a verb in several languages, and a quoted or bare value.
_STATES_TEXT = """
    about actually already also always around available being better blocked broken called changed compromised
    correct different disabled easy empty enabled expired fine forgotten gone good great hacked hard here
    hidden important incorrect invalid just kept known leaked like locked long lost mandatory missing more
    needed never none okay only optional please public really required reset safe same saved secret secure sent
    short simple something still stolen stored strong stuck that there this unknown unsafe updated used useless
    very visible wanted weak what when where working wrong your
"""
_STATES = frozenset(_STATES_TEXT.split())
# The patterns of parts of a sentence, which ``_sentence_pattern`` joins.
_OF = (
    r"(?:,? (?:for|to|on|of|at|in|für|zum|zur|vom|von|der|des|del|de la|de|pour|du|per|para|do|da|van|voor|till|til|"
    r"för) [^\n.,;:'\"=]{1,40}?)?"
)
_VERB = (
    r"\s{1,3}(?P<verb>is|was|are|=|ist|war|lautet|hei(?:ß|ss)t|est|était|es|era|é|è|eh|sar[àá]|luidt|är|er|on|"
    r"to|jest|je|это|—|-|–)(?: (?:now|jetzt|nun|ahora|maintenant|ora|agora|nu|set to))?:?\s{1,3}"
)
_SAID = (
    r"(?:[\"'`\u201c\u2018\u201e\u00ab](?P<quoted>[^\n\"'`\u201d\u2019\u00bb]{3,128})[\"'`\u201d\u2019\u201c\u00bb]"
    r"|(?P<bare>[^\s\"'`,;()\[\]{}<>$][^\s\"'`,;()\[\]{}<>]{3,127})(?P<end>[,;]|\s|\Z))"
)
_PRONOUN = re.compile(
    r"\b(?:my|our|your|mein\w{0,2}|unser\w{0,2}|mon|ma|notre|mi|nuestra|mia|mio|minha|meu|mijn|onze)\s"
)
_SURE = frozenset(("lautet", "luidt", "=", "heisst", "heißt"))


@cache  # one pattern for each name, compiled when a text first has the name
def _sentence_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of sentences such as "the password is ...", for the given name."""
    return re.compile(re.escape(name) + r"s?" + _OF + _VERB + _SAID)


def _stated(name: str, kind: str, text: str, low: str) -> Iterator[Match]:
    """Yield secrets in sentences such as "The password is hunter2".

    Sentences in other languages are read too, such as "das Passwort lautet geheim".
    """
    # A quoted value needs little evidence. A bare word may be an ordinary word, as in "the password is wrong".
    for match in _sentence_pattern(name).finditer(low):
        if match["quoted"] is not None:
            start, end = match.span("quoted")
            value = text[start:end]
            if not is_placeholder(value) and (kind == "password" or is_random(value)):
                yield kind, start, end
            continue
        start, end = match.span("bare")
        value = text[start:end].rstrip(".!?:)")
        if len(value) < 4 or is_placeholder(value) or is_path(value) or _DOTTED.fullmatch(value):
            continue
        if kind != "password":
            if len(value) >= 12 and has_digit(value) and is_mixed(value):
                yield kind, start, start + len(value)
            continue
        closes = match["end"] != " " or len(value) < end - start
        before = low[max(0, match.start() - 24) : match.start()]
        state = value.lower() in _STATES or value.lower().endswith(("ed", "ing", "able"))
        mine = "my " in before or (match["verb"] in _SURE and not _PRONOUN.search(value + " "))
        if has_digit(value) or has_symbol(value) or (mine and closes and not state):
            yield kind, start, start + len(value)


@cache  # one pattern for each word, compiled when a text first has the word
def _following(word: str) -> re.Pattern[str]:
    """Return the pattern of a long string shortly after a word.

    At most three short words may be between the word and the string.
    """
    return re.compile(
        re.escape(word)
        + r"s?(?:\s{1,3}+[a-z:'\"=(]{1,8}+(?=\s)){0,3}[\s:=]{0,3}+[\"'`(<]?(?P<value>[\w+/=.~-]{20,256})"
    )


def _after(word: str, kind: str, text: str, low: str) -> Iterator[Match]:
    """Yield long random strings shortly after a word such as "token".

    An example is "use the token Zx81...". At most three short words may be between them.
    """
    for match in _following(word).finditer(low):
        start, end = match.span("value")
        value = text[start:end]
        if (
            sum(map(str.isdigit, value)) >= 3
            and is_mixed(value)
            and not is_path(value)
            and not _HASHES.match(value.lower())
            and "." not in value.strip(".")
            and entropy(value) >= 3.0
            and not (value.islower() and "-" in value)
        ):
            yield kind, start, end


# -- All of them ---------------------------------------------------------------------------------------------------

# Words after which a long random string is a secret, even without an operator such as "=".
_FOLLOWED = ("token", "secret", "api key", "api_key", "password", "credential")
TELLING_NAMES = tuple(_KIND)
"""The words, in lower case, that cause a text to be examined for secrets."""


def find_named_secrets(text: str, low: str) -> Iterator[Match]:
    """Yield values that are assigned to or stated for names such as ``password``.

    ``low`` is ``text`` in lower case, with the same length.
    """
    for name, kind in _KIND.items():
        if name not in low:
            continue
        yield from _assigned(name, kind, _is_password if kind == "password" else _is_key, text, low)
        yield from _stated(name, kind, text, low)
    if "pass" in low:
        yield from _assigned("pass", "password", _is_short, text, low)
    if "key" in low:
        yield from _assigned("key", "API key", _is_named_key, text, low)
    for word in _FOLLOWED:
        if word in low:
            yield from _after(word, _KIND[word], text, low)


def _is_short(value: str, match: re.Match[str], text: str) -> bool:
    """Return whether the value assigned to the short name "pass" is a secret.

    Examples are "pass: hunter2" and "DB_PASS=hunter2".

    "pass" must not be the end of a longer word. The value must contain a digit and be neither a word nor code.
    """
    start = match.start()
    word = start == 0 or not text[start - 1].isalnum()
    return word and _is_password(value, match, text) and has_digit(value)


# A seed phrase restores a wallet. It has 12 to 24 of the 2,048 words of BIP-39.


MIN_SEED_WORDS = 12
"""The minimum length of a seed phrase, which has 12, 15, 18, 21 or 24 words."""

# Phrases are written with numbers, commas or quotes between the words. Three quarters of the words must be different.
# People repeat few words in a phrase, and ordinary prose has far fewer words of the list.
_SEED_WORD = re.compile(r"[a-z]+")
_BETWEEN = re.compile(r"[\s,;|\"'\[\]-]{0,6}(?:[0-9]{1,2}[.):]{0,2}[\s\"']{0,3})?")
_APART = str.maketrans(dict.fromkeys(",\"'|;[]", " "))
_SEEDS_AMONG_WORDS = 0.75


@cache  # 2,048 words, read when a text first has enough words
def _seed_words() -> frozenset[str]:
    """Return the words of the BIP-39 list, from which seed phrases are made."""
    return frozenset(
        files("memlab.kernel.privacy").joinpath("seed_words.txt").read_text("ascii").split()
    )


def may_hold_seed_phrase(low: str) -> bool:
    """Return whether a lower-case text has enough BIP-39 words for a seed phrase."""
    seed_words = _seed_words()
    if len(seed_words.intersection(low.split())) >= _SEEDS_AMONG_WORDS * MIN_SEED_WORDS:
        return True
    separators = low.count(",") + low.count('"') + low.count("'") + low.count(";") + low.count("|")
    return (
        separators >= MIN_SEED_WORDS - 1
        and len(seed_words.intersection(low.translate(_APART).split()))
        >= _SEEDS_AMONG_WORDS * MIN_SEED_WORDS
    )


def find_seed_phrases(low: str) -> Iterator[tuple[str, int, int]]:
    """Yield the seed phrases of a lower-case text: runs of words of the BIP-39 list.

    Only spaces, commas, quotes and numbers may be between the words.

    At least three quarters of the words of a run are different. A word may be broken in two, and the first word may
    have an additional letter in front.
    """
    # ``broken`` is a word outside the list. The next word shows whether both are halves of one word of the list.
    start = stop = 0
    run: list[str] = []
    seed_words = _seed_words()
    broken = ""
    for match in _SEED_WORD.finditer(low):
        word = match[0]
        if run and _BETWEEN.fullmatch(low, stop, match.start()) is None:
            yield from _complete(run, start, stop)
            run, broken = [], ""
        if broken and broken + word in seed_words:
            word, broken = broken + word, ""
        if word in seed_words or (not run and word[1:] in seed_words):
            if not run:
                start = match.start()
            run.append(word)
            stop = match.end()
        elif run and not broken:
            broken, stop = word, match.end()
            continue
        elif run:
            yield from _complete(run, start, stop)
            run = []
        broken = ""
    yield from _complete(run, start, stop)


def _complete(run: Sequence[str], start: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """Yield a run of 12 or more words as a seed phrase if at least three quarters of the words are different."""
    if len(run) >= MIN_SEED_WORDS and len(set(run)) >= _SEEDS_AMONG_WORDS * len(run):
        yield "seed phrase", start, stop


# Blocks of private keys have the formats of PEM, OpenSSH, PGP and PuTTY.


# Repetitions are bounded, because a text may contain thousands of first lines without a last line.
_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
_BASE64_LINES = re.compile(r"(?:(?:\s|\\n|\\r){1,8}[A-Za-z0-9+/=]{20,})*")
_PUTTY = re.compile(
    r"PuTTY-User-Key-File-[0-9][^\0]{0,4000}?Private-Lines: [0-9]{1,4}(?:\s{1,4}[A-Za-z0-9+/=]{4,})*+"
)


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each block of a private key, from its first to its last line.

    A block without its last line ends with its last line of base64.
    """
    ends = _END.finditer(text)
    end = next(ends, None)
    begins = list(_BEGIN.finditer(text))
    for begin, following in itertools.zip_longest(begins, begins[1:]):
        while end is not None and end.start() < begin.end():
            end = next(ends, None)
        if end is not None and (following is None or end.start() < following.start()):
            yield begin.start(), end.end()
        else:
            tail = _BASE64_LINES.match(text, begin.end())
            yield begin.start(), tail.end() if tail else begin.end()
    yield from (match.span() for match in _PUTTY.finditer(text))


# Personal identifiers are redacted if the settings of the pack request it.


PERSONAL = {
    "redact-cards": "card number",
    "redact-ibans": "IBAN",
    "redact-social-security": "US social security number",
    "redact-phones": "phone number",
    "redact-emails": "e-mail address",
}
"""The kind of personal identifier that each setting of a pack redacts."""


def personal_kinds(settings: Mapping[str, object]) -> frozenset[str]:
    """Return the kinds of personal identifiers that a pack's settings redact.

    >>> personal_kinds({"redact-cards": True, "redact-ibans": False})
    frozenset({'card number'})
    """
    return frozenset(kind for setting, kind in PERSONAL.items() if settings.get(setting) is True)


@cache  # most packs redact no identifiers, so the patterns are compiled only when needed
def _personal_patterns() -> dict[str, re.Pattern[str]]:
    """Return the pattern of each kind of personal identifier."""
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


def find_personal(text: str, kinds: Collection[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the kind and the span of each personal identifier of the requested kinds.

    A card number must have a valid check digit (Luhn), and an IBAN must have valid check digits (ISO 7064).
    """
    for kind, pattern in _personal_patterns().items():
        if kind not in kinds:
            continue
        for match in pattern.finditer(text):
            group = "plain" if "plain" in pattern.groupindex and match["plain"] else 0
            start, end = match.span(group)
            if kind == "IBAN":
                end = _end_of_iban(text, start, end)
            if (
                end > start
                and (kind != "card number" or _is_card(text[start:end]))
                and _is_long(kind, text[start:end])
            ):
                yield kind, start, end


def _is_long(kind: str, identifier: str) -> bool:
    """Return whether a phone number has 8 to 15 digits; accept all other identifiers.

    Other kinds of identifiers have any length.
    """
    return kind != "phone number" or 8 <= sum(map(str.isdigit, identifier)) <= 15


def _is_card(number: str) -> bool:
    """Return whether a number has 13 to 19 digits and a valid check digit."""
    digits = [int(character) for character in number if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _end_of_iban(text: str, start: int, end: int) -> int:
    """Return the end of the IBAN that begins at ``start``, or ``start`` if no IBAN begins there.

    Words that follow the IBAN are cut off until the check digits are valid.
    """
    while end > start:
        plain = "".join(filter(str.isalnum, text[start:end])).upper()
        if 15 <= len(plain) <= 34:
            number = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
            if int(number) % 97 == 1:
                return end
        cut = max(text.rfind(" ", start, end), text.rfind("-", start, end))
        end = cut if cut > start else start
    return start
