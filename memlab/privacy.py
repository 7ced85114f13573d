"""The privacy gate: what may not reach the disk is replaced before the journal sees it.

``screen`` finds credentials of well-known shapes (a prefix, a PEM block, a URL with a password), values that are
assigned to a telling name (``password = ...``, ``api_key: ...``, ``SECRET_KEY=...``, "my password is '...'") and long
random strings that follow a telling word. Each becomes ``[REDACTED: type]``. The result has the type ``Screened``,
the only one that the journal stores, so a type checker finds text that went round the gate.

A rule is a literal trigger and a pattern that starts with it. Testing for the literals costs a few microseconds, so
ordinary text is let through at once; a pattern runs only where its trigger occurs, and each is linear: repetitions are
bounded, or end the pattern, or are followed by a character that they cannot match. The gate is a net with known holes:
a password that looks like prose ("it is swordfish") passes, and personal data is not looked for.
"""

from __future__ import annotations

import itertools
import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NewType

import msgspec

from memlab.errors import PrivacyError

__all__ = ["Finding", "Screened", "Screening", "refuse", "screen", "screen_many"]

Screened = NewType("Screened", str)
"""Text that went through ``screen``: holds no credential that the gate knows."""


class Finding(msgspec.Struct, frozen=True):
    """One secret: what it is, and where it stood in the original text. The secret itself is not kept."""

    type: str
    start: int
    end: int


class Screening(msgspec.Struct, frozen=True):
    """Text after the gate, and what the gate took out, in order of place."""

    text: Screened
    findings: tuple[Finding, ...] = ()


def screen(text: str) -> Screening:
    """Replace each secret in ``text`` by ``[REDACTED: type]``.

    Screening twice changes nothing more. Linear in the length of the text.

    >>> screen("the password is 'hunter2', mail me").text
    "the password is '[REDACTED: password]', mail me"
    """
    return _screen(text, _TRIGGERS)


def screen_many(texts: Iterable[str]) -> list[Screening]:
    """``screen`` for each text, in order: about 3 microseconds for an ordinary turn of conversation."""
    texts = list(texts)
    everything = "\n".join(texts).lower()
    triggers = [trigger for trigger in _TRIGGERS if trigger in everything]
    return [_screen(text, triggers) for text in texts]


def _screen(text: str, triggers: Iterable[str]) -> Screening:
    low = text.lower()
    present = [trigger for trigger in triggers if trigger in low]
    if not present:
        return Screening(Screened(text))
    if len(low) != len(text):  # the dotted capital I is the only character that grows
        low = text.replace("\u0130", "I").lower()
    found = [finding for trigger in present for rule in _RULES[trigger] for finding in rule(text, low)]
    if not found:
        return Screening(Screened(text))
    findings = _merge(found)
    parts, position = [], 0
    for finding in findings:
        parts += [text[position : finding.start], f"[REDACTED: {finding.type}]"]
        position = finding.end
    parts.append(text[position:])
    return Screening(Screened("".join(parts)), findings)


def refuse(text: str, what: str) -> None:
    """Raise PrivacyError if ``text`` holds a secret: for places where redaction would change the meaning.

    ``what`` names the place in the message, such as ``"tag"`` or ``"source of policy recall-score"``.
    """
    findings = screen(text).findings
    if findings:
        first = findings[0]
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        line = text.count("\n", 0, first.start) + 1
        column = first.start - text.rfind("\n", 0, first.start)
        raise PrivacyError(
            f"The {what} holds what looks like a secret ({first.type}, line {line}, column {column}){more}. "
            "It would be stored as given: take the secret out."
        )


_Rule = Callable[[str, str], Iterable[Finding]]
"""The findings in a text; its lower-case form, of the same length, is passed along."""


def _merge(found: list[Finding]) -> tuple[Finding, ...]:
    """Overlapping findings become one, of the type that starts first (the longer one, then the earlier rule)."""
    found.sort(key=lambda finding: (finding.start, -finding.end))
    merged = [found[0]]
    for finding in found[1:]:
        last = merged[-1]
        if finding.start >= last.end:
            merged.append(finding)
        elif finding.end > last.end:
            merged[-1] = Finding(last.type, last.start, finding.end)
    return tuple(merged)


# -- credentials of a known shape ----------------------------------------------------------------------------------

_PLACEHOLDERS_TEXT = """
    1234 abcd any api-key apikey bool bytes changeit credential credentials default empty example expired false
    hidden incorrect input int invalid key masked missing my-password my_password mypassword new_password
    newpassword nil none null number object old_password oldpassword optional pass passphrase passwd password
    passwort placeholder prompt pw pwd redacted removed required secret str string test text todo token true
    undefined user username value wrong xxxx your-password your_password yourpassword
"""
_PLACEHOLDERS = frozenset(_PLACEHOLDERS_TEXT.split())
_PLACEHOLDER = re.compile(r"(?i)[$<{(%\[]|\*{3}|\.{3}|x{4}|(?:your|my|the|some|an?|enter|insert|example|dummy)[_\s-]")


def _placeholder(value: str) -> bool:
    return value.lower() in _PLACEHOLDERS or value == value[0] * len(value) or _PLACEHOLDER.match(value) is not None


def _shape(
    trigger: str,
    type: str,
    pattern: str,
    *,
    lowered: bool = False,
    accept: Callable[[str], bool] | None = None,
) -> tuple[str, _Rule]:
    """What ``pattern`` matches, or its group 1, is a secret when ``accept`` agrees."""
    compiled = re.compile(pattern)
    group = 1 if compiled.groups else 0

    def find(text: str, low: str) -> Iterator[Finding]:
        for match in compiled.finditer(low if lowered else text):
            start, end = match.span(group)
            if accept is None or accept(text[start:end]):
                yield Finding(type, start, end)

    return trigger.lower(), find


def _token(prefix: str, type: str, body: str) -> tuple[str, _Rule]:
    """A token of a fixed prefix at the start of a word.

    The look-behind stands *after* the prefix: a pattern that begins with a literal is searched at memory speed.
    """
    return _shape(prefix, type, rf"{re.escape(prefix)}(?<![A-Za-z0-9_-]{re.escape(prefix)}){body}")


_DIGIT = re.compile(r"\d")


def _has_digit(value: str) -> bool:
    return _DIGIT.search(value) is not None


_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BASE64_LINES = re.compile(r"(?:(?:\s|\\n|\\r){1,8}[A-Za-z0-9+/=]{20,})*")


def _private_keys(text: str, low: str) -> Iterator[Finding]:
    """PEM and PGP blocks; one that was cut short counts as far as its base64 goes."""
    ends = _END.finditer(text)
    end = next(ends, None)
    begins = list(_BEGIN.finditer(text))
    for begin, following in itertools.zip_longest(begins, begins[1:]):
        while end is not None and end.start() < begin.end():
            end = next(ends, None)
        if end is not None and (following is None or end.start() < following.start()):
            yield Finding("private key", begin.start(), end.end())
        else:
            tail = _BASE64_LINES.match(text, begin.end())
            yield Finding("private key", begin.start(), tail.end() if tail else begin.end())


_SHAPES = [
    ("private key", _private_keys),
    _shape("AKIA", "AWS access key", r"AKIA(?<![A-Z0-9]AKIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _shape("ASIA", "AWS access key", r"ASIA(?<![A-Z0-9]ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    *(_token(f"gh{kind}_", "GitHub token", r"[A-Za-z0-9]{30,}") for kind in "pousr"),
    _token("github_pat_", "GitHub token", r"[A-Za-z0-9_]{22,}"),
    _token("glpat-", "GitLab token", r"[A-Za-z0-9_.-]{20,}"),
    *(_token(f"xox{kind}-", "Slack token", r"[A-Za-z0-9-]{10,}") for kind in "abeoprs"),
    _token("xapp-", "Slack token", r"[A-Za-z0-9-]{20,}"),
    _shape("hooks.slack.com/services/", "Slack webhook", r"hooks\.slack\.com/services/([A-Za-z0-9_/]{20,})"),
    _token("AIza", "Google API key", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _token("GOCSPX-", "Google client secret", r"[A-Za-z0-9_-]{20,}"),
    _token("ya29.", "Google token", r"[A-Za-z0-9_.-]{20,}"),
    *(_token(prefix, "Stripe key", r"[A-Za-z0-9]{10,}") for prefix in ("sk_live_", "rk_live_", "sk_test_", "rk_test_")),
    _token("whsec_", "Stripe secret", r"[A-Za-z0-9+/=]{20,}"),
    _shape("sk-", "API key", r"sk-(?<![A-Za-z0-9_-]sk-)[A-Za-z0-9_-]{20,}", accept=_has_digit),
    _token("npm_", "npm token", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _token("pypi-", "PyPI token", r"AgE[A-Za-z0-9_-]{30,}"),
    _token("hf_", "Hugging Face token", r"[A-Za-z0-9]{30,}"),
    _token("dop_v1_", "DigitalOcean token", r"[a-f0-9]{40,}"),
    _shape("SG.", "SendGrid key", r"SG\.(?<![A-Za-z0-9_-]SG\.)[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,}"),
    _shape("AGE-SECRET-KEY-1", "private key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    # the boundary keeps a run of "eyJ" from being tried at each of its starts
    _shape("eyJ", "JWT", r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    _shape(
        "bearer",
        "bearer token",
        r"bearer[ \t]{1,4}([a-z0-9._~+/-]{16,}={0,3})",
        lowered=True,
        accept=lambda value: _has_digit(value) and not _placeholder(value),
    ),
    _shape(
        "authorization",
        "credentials",
        r"authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?basic\s{1,4}([a-z0-9+/=_-]{6,})",
        lowered=True,
    ),
    # "/" ends both classes, so one "://" cannot be read through by the next
    _shape(
        "://",
        "URL password",
        r"://[^\s/:@?#'\"<>`]{0,128}:([^\s/?#'\"<>`]{1,256})@",
        accept=lambda value: not _placeholder(value),
    ),
    _shape("accountkey=", "connection string key", r"accountkey=([a-z0-9+/=]{16,})", lowered=True),
    _shape("sharedaccesskey=", "connection string key", r"sharedaccesskey=([a-z0-9+/=]{16,})", lowered=True),
]  # fmt: skip


# -- values given to a telling name --------------------------------------------------------------------------------

# "SECRET_KEY_BASE", "DB_PASSWORD_PROD"; other endings ("token_type", "password_length") name something else
_ENDING = r"(?:[ _-]?key(?:_base)?)?(?:_(?:prod|production|dev|staging|test|base64|\d{1,3}))?"
_OPERATOR = r"""\\?["'`*]{0,3}[ \t]{0,3}(?P<op>:[ ]?str(?:ing)?[ ]?=|:=|=>|==?|:)[ \t]{0,3}"""
_VALUE = r"""(?:[bru]?\\?["'`](?P<quoted>[^\s"'`\\]{4,256})\\?["'`]|(?P<bare>[^\s"'`,;&|()\[\]{}<>$\\]{4,256}))"""

_NAME_CHARACTERS = string.ascii_letters + string.digits + "_"
_OPENING = frozenset("([{<$")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+[.:?!]?")
_PATH = re.compile(r"\.{0,2}/|~|[A-Za-z]:\\|[a-z+]{2,10}://")
_SYMBOL = re.compile(r"[!@#%^*~+=?](?=.)")
_KEY_OWNER = re.compile(r"(?:api|access|auth|secret|private|encryption|signing|master|account|service)[ _-]?\Z")

_Accept = Callable[[str, "re.Match[str]", str], bool]


def _is_password(value: str, match: re.Match[str], text: str) -> bool:
    """The value of a name that means a password: anything quoted; bare, what is neither code nor a word of prose."""
    if _placeholder(value) or _PATH.match(value):
        return False
    if match["bare"] is None:
        return True
    if _in_code(match, text):
        return False
    if _has_digit(value) or _SYMBOL.search(value):
        return True
    # a word after "=": code, unless an env file, a query, a connection string or a command line gives it
    before = text[max(0, match.start() - 1) : match.start()]
    return match["op"] == "=" and (_in_env(match, text) or before in {"?", "&", ";", "-"})


def _is_key(value: str, match: re.Match[str], text: str) -> bool:
    """The value of a name such as token or secret, which code and prose use for much else: it must look random."""
    bare = match["bare"] is not None
    env = bare and match["op"] == "=" and _in_env(match, text)
    if len(value) < (16 if bare and not env else 8) or _placeholder(value) or _PATH.match(value):
        return False
    if bare and _in_code(match, text):
        return False
    digits, letters = sum(map(str.isdigit, value[:64])), sum(map(str.isalpha, value[:64]))
    return letters >= 2 and (env or digits >= 2) and (env or not bare or _entropy(value[:64]) >= 2.8)


def _is_named_key(value: str, match: re.Match[str], text: str) -> bool:
    """As ``_is_key``, where the word before "key" says that it opens something: api, access, private ..."""
    start = match.start()
    return _KEY_OWNER.search(text[max(0, start - 12) : start].lower()) is not None and _is_key(value, match, text)


def _in_env(match: re.Match[str], text: str) -> bool:
    """Whether name and value stand as in an env file: ``DB_PASSWORD=...``, capitals and no space."""
    start, end = match.start(), match.start("op")
    before = text[max(0, start - 64) : start]
    name = before[len(before.rstrip(_NAME_CHARACTERS)) :] + text[start:end]
    return name.isupper() and " " not in name and text[match.end("op")] not in " \t"


def _in_code(match: re.Match[str], text: str) -> bool:
    """Whether a bare value is a call, a subscript, a generic type, a variable or a dotted name."""
    end = match.end("bare")
    return text[end : end + 1] in _OPENING or _DOTTED.fullmatch(text, match.start("bare"), end) is not None


def _entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits."""
    return math.log2(len(value)) - sum(n * math.log2(n) for n in Counter(value).values()) / len(value)


def _assigned(name: str, type: str, accept: _Accept) -> tuple[str, _Rule]:
    """``name = value`` in code, configuration, JSON, env files and chat."""
    compiled = re.compile(re.escape(name) + _ENDING + _OPERATOR + _VALUE)

    def find(text: str, low: str) -> Iterator[Finding]:
        for match in compiled.finditer(low):
            start, end = match.span("quoted" if match["bare"] is None else "bare")
            if accept(text[start:end], match, text):
                yield Finding(type, start, end)

    return name, find


# what follows "my password is" when it is not the password
_STATES_TEXT = """
    about actually already also always around available being better blocked broken called changed compromised
    correct different disabled easy empty enabled expired fine forgotten gone good great hacked hard here
    hidden important incorrect invalid just kept known leaked like locked long lost mandatory missing more
    needed never none okay only optional please public really required reset safe same saved secret secure sent
    short simple something still stolen stored strong stuck that there this unknown unsafe updated used useless
    very visible wanted weak what when where working wrong your
"""
_STATES = frozenset(_STATES_TEXT.split())
_IS = re.compile(
    r"pass(?:word|phrase|code|wort)"
    r"(?: (?:for|to|on|of) [^\n.,;:'\"]{1,40}?)?\s{1,3}(?:is|was|ist)(?: now)?:?\s{1,3}"
    r"(?:[\"'`\u201c\u2018](?P<quoted>[^\n\"'`\u201d\u2019]{3,128})[\"'`\u201d\u2019]"
    r"|(?P<bare>[^\s\"'`,;()\[\]{}<>$]{4,128})(?P<end>[,;]|\s|\Z))"
)


def _said(text: str, low: str) -> Iterator[Finding]:
    """ "The password is hunter2", "my password is 'correct horse'", "my wifi password is swordfish." """
    for match in _IS.finditer(low):
        if match["quoted"] is not None:
            start, end = match.span("quoted")
            if not _placeholder(text[start:end]):
                yield Finding("password", start, end)
            continue
        start, end = match.span("bare")
        value = text[start:end].rstrip(".!?:)")
        if len(value) < 4 or _placeholder(value) or _PATH.match(value) or _DOTTED.fullmatch(value):
            continue
        closes = match["end"] != " " or len(value) < end - start
        mine = "my " in low[max(0, match.start() - 24) : match.start()]
        state = value.lower() in _STATES or value.lower().endswith(("ed", "ing", "able"))
        if _has_digit(value) or _SYMBOL.search(value) or (mine and closes and not state):
            yield Finding("password", start, start + len(value))


def _random_after(word: str, type: str) -> tuple[str, _Rule]:
    """A long random string within three short words of a telling one: "use the token Zx81..." """
    compiled = re.compile(
        re.escape(word)
        + r"s?(?:\s{1,3}+[a-z:'\"=(]{1,8}+(?=\s)){0,3}[\s:=]{0,3}+[\"'`(<]?(?P<value>[\w+/=.~-]{20,256})"
    )

    def accept(value: str) -> bool:
        return (
            sum(map(str.isdigit, value)) >= 3
            and not value.islower()
            and not value.isupper()
            and not _PATH.match(value)
            and "." not in value.strip(".")
            and _entropy(value) >= 3.7
        )

    return _shape(word, type, compiled.pattern.replace("(?P<value>", "("), lowered=True, accept=accept)


_PASSWORDS = ("password", "passwd", "passphrase", "passwort", "kennwort", "contrase\u00f1a", "mot de passe", "pwd")
_ALL: list[tuple[str, _Rule]] = [
    *_SHAPES,
    *(_assigned(name, "password", _is_password) for name in _PASSWORDS),
    ("pass", _said),
    _assigned("secret", "secret", _is_key),
    _assigned("token", "token", _is_key),
    _assigned("credential", "secret", _is_key),
    _assigned("credentials", "secret", _is_key),
    _assigned("key", "API key", _is_named_key),
    _random_after("token", "token"),
    _random_after("secret", "secret"),
    _random_after("api key", "API key"),
    _random_after("api_key", "API key"),
    _random_after("password", "password"),
    _random_after("credential", "secret"),
]
_TRIGGERS = tuple(dict.fromkeys(trigger for trigger, _ in _ALL))
_RULES = {trigger: [rule for other, rule in _ALL if other == trigger] for trigger in _TRIGGERS}
