"""Find a value that a later text says is over: "no longer tox", "renamed from master to main"."""

from __future__ import annotations

import re
from functools import lru_cache

from memlab.kernel.english import holds, padded, phrases, vocabulary, words_of
from memlab.subjects.reading.change import Telling, signs_of_change
from memlab.subjects.reading.claims import Statement, stem
from memlab.subjects.reading.sentences import is_plain_word

# A value: code in backticks, or one word with the signs of paths, versions and options.
_VALUE = r"(?P<value>`[^`]+`|[\w@][\w./+:@-]*[\w+]|\w)"
# The value that ends: after a denial, after the verb of a change, or before the end that is stated of it.
_DENIED = (
    re.compile(
        r"\b(?:no longer|no more|instead of|rather than|in place of|forget(?: about)?|, (?:and )?not|got rid of|we dropped|"
        r"(?:moved|switched|migrated|came|got|are|is) off(?: of)?|away from|scrap(?:ped)?(?: the \w+ (?:with|of|about))?|ditch(?:ed)?|stop(?:ped)? using|"
        r"(?:renamed|moved|migrated|switched|raised|lowered|bumped|changed|went|goes)(?: [\w-]+){0,4}? (?:away )?from)\s+"
        r"(?:(?:use|using|the|an?|our|on|in|at|with|called|need|to|is|be|support|via|through)\s+){0,3}" + _VALUE,
        re.IGNORECASE,
    ),
    re.compile(
        # The same values, taken whole: a space follows, so neither a shorter value nor a later start can match.
        r"(?P<value>`[^`]+`|(?:@|\b\w)[\w./+:@-]*+(?<=[\w+]))(?: (?:line|branch|file|server|job|command|script|option|flag|version|release))?\s+(?:is|are|was|were|got|has been|gets) "
        r"(?:(?:over|out|off|gone)(?! (?:sick|today|tonight|tomorrow|yesterday|until|till|last|next|this|for (?!good)|\w+ing)\b)|shut down|cancell?ed|discontinued|dead|parked|retired|obsolete|dropped|removed|deleted|deprecated|renamed|replaced|no longer used|not used any ?more)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bno \.?" + _VALUE + r"(?: \w+)? (?:any ?more|any longer)\b", re.IGNORECASE),
)  # fmt: skip
# Two words that end together, as in "moved off cargo release", and paths with a folder.
_TWO_WORDS = re.compile(
    _DENIED[0].pattern.replace(_VALUE, r"(?P<value>[\w-]+ [\w-]+)"), re.IGNORECASE
)
_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]+/)+[\w.-]*\w")
_OVER = re.compile(r"\bno longer (?:need|necessary|requir|true|the case|used)", re.IGNORECASE)
# A comma before "not" is no word boundary, so that pattern begins with it.
_NOT = re.compile(
    r",\s(?:and\s)?not\s(?:(?:the|an?|on|in|with|through|via)\s){0,2}" + _VALUE, re.IGNORECASE
)
# What moved and where to, a place after its preposition, and a setting with a name of several parts and its value.
_MOVED = re.compile(
    r"`?(?P<name>[\w.-]*\w)`?(?:\(\))?,? (?:has |have |was |were |is |are |got )?(?:moved|renamed|now) (?:to|in|into|at|under) `?(?P<to>[\w./-]*\w)",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\b(?:in|at|under|from|into) `?([\w-]*[./][\w./-]*\w)", re.IGNORECASE)
_SETTING = re.compile(
    r"\b(?P<name>[a-z]+(?:[-_][a-z]+)+)`?(?:\W{1,3}(?:is|are|was|now|got|has been|bumped|raised|lowered|set|changed|to|at|of))*"
    r"[\s=:(`]{1,3}(?P<value>[<>=~^]*\d[\w.]*)",
    re.IGNORECASE,
)
# A name, number or code can be taken from its context; a plain word is a value at the end of a clause only.
_NAMED = re.compile(r"[\d`./_:@+]|[a-z][A-Z]|\b[A-Z]")
_END = r"(?!\s+(?!(?:and|but|for|because|any|now|in|on|as|to|each|every)\b)\w)"
_STANDING = re.compile(r"\W*(?:never|always|do not|don't)\b", re.IGNORECASE)
# The share of the words of a standing rule, or of the shorter of two texts, that a text which ends the other has.
_SAME_ACT = 0.5
# The words that a text and the statement that it ends must have in common.
_COMMON = 2
# The share of the shorter text's words that two texts on one topic have in common.
_SAME_TOPIC = 0.2
# A run of characters without a space that is longer than any value, in which a search takes quadratic time, and
# addresses and numbers of issues, which are no topic.
_RUN = re.compile(r"\S{121,}|https?://\S+|(?<!\w)#\d+\b")
# A name of several parts, such as FEED_CHUNK, and a number.
_NAME = re.compile(r"(?<![\w.])[A-Za-z]\w*(?:[_./-]\w+)+")
# A name with a version: temurin-17, python3.12.
_VERSION = re.compile(r"(?<![^\W_])([A-Za-z]{4,})-?(\d+(?:\.\d+)*)(?![\w.]*\w)")
_PREFERS = re.compile(r"\b(?:instead of|rather than|in place of)\b|,\s(?:and\s)?not\b", re.I)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)*")
# What got another number, and what is said to be at a place or done by a means.
_RAISED = re.compile(
    r"\b(?:raised|lowered|bumped|increased|reduced|doubled|upped|set|changed) ((?:[\w-]+ ){1,5}?)(?:from \S+ )?to \d",
    re.I,
)
_PLACED = re.compile(
    r"(?:^|[.:;,(] (?:and |so |fyi )?)(?:the |all |our )?((?:[\w-]+ )??[\w-]+) (?:is|are|was|were|runs?|goe?s?|lives?|sits?)"
    r"(?: \w+(?:ed|t|n))? (?:now )?(?:on|in|at|by|through|with|via|to|under|from|over)\b",
    re.I,
)
# Stems of subjects that most statements share.
_PERSONS = frozenset(("user", "team"))


# Cached, because each text is compared with many others.
@lru_cache(maxsize=32768)
def _denied_values(text: str) -> tuple[str, ...]:
    """Return the values that a text declares invalid, as in "no longer stable"."""
    text = _RUN.sub(" ", text)
    matches = [match for pattern in (*_DENIED, _NOT) for match in pattern.finditer(text)]
    return tuple(
        dict.fromkeys(
            value
            for match in matches
            if (value := match["value"]).lower() not in vocabulary("session", "empty")
            and (
                _NAMED.search(value)
                or re.match(_END, text[match.end("value") :])
                or match.re in _DENIED[1:]
            )
        )
    )


def _ended_names(text: str) -> list[str]:
    """Return the values that a text declares invalid or ended, without the marks of code."""
    return [value.strip("`") for value in _denied_values(text)]


# Cached, because each text is compared with many others.
@lru_cache(maxsize=4096)
def names_of_change(text: str, *, stated: bool = False) -> tuple[str, ...]:
    """Return the names that a report of a change is about: values that end, and names of code.

    A `stated` report needs no words of change.

    >>> names_of_change("we moved off Mailgun, MAIL_URL changed")
    ('Mailgun', 'MAIL_URL')
    """
    if not (stated or reports_change(text)):
        return ()
    content = Statement(text).content
    ended = [
        name for name in _ended_names(text) if not content.isdisjoint(map(stem, words_of(name)))
    ]
    return tuple(name for name in dict.fromkeys((*ended, *_NAME.findall(text))) if len(name) > 2)


def replaces_named(
    new: str,
    old: str,
    *,
    around: str = "",
    same_files: bool = False,
    incident: bool = False,
    stated: bool = False,
) -> bool:
    """Return whether a report ends a name of an earlier text, or gives its topic another number, version or path.

    `around` has the other sentences of the report's message, and `same_files` is whether both texts are about a file.
    Of an `incident`, the report must say that its need is over, or give another version. A `stated` report needs no
    words of change.

    >>> replaces_named("I raised FEED_CHUNK, 2000 is fine", "FEED_CHUNK: the merchant takes 500")
    True
    >>> replaces_named("temurin-21 is on all machines now", "JAVA_HOME=/usr/lib/jvm/temurin-17-jdk")
    True
    """
    new, old = (_RUN.sub(" ", text) for text in (new, old))
    is_over = _OVER.search(new) is not None
    if _changes_version(new, old) or (is_over and _shares_topic(new, old, numbers=True)):
        return stated or reports_change(new)
    if incident:
        return False
    ended, theirs = _ended_names(new), _ended_names(old)
    content = Statement(old).content
    names = [
        name
        for name in names_of_change(new, stated=stated)
        if name not in theirs and (find_name(name, old) or (same_files and stem(name) in content))
    ]
    shared, is_end = Statement(new).content & content, _PREFERS.search(new) is None
    if is_end:
        shared |= (Statement(around).content & content) | ({"same files"} if same_files else set())
    for name in names:
        # a plain word may be another thing, and "instead of csv" ends csv for one purpose only
        others = shared - {stem(word) for word in words_of(name)}
        is_same = others if is_end else len(others) >= _COMMON
        if name in ended and (is_same or (is_end and not is_plain_word(name.lower()))):
            return True
    if not (stated or reports_change(new)):
        return False
    mine, before = set(_NUMBER.findall(new)), set(_NUMBER.findall(old))
    is_other = bool(mine and before) and mine.isdisjoint(before)
    return (
        (
            is_other
            and (
                bool(names)
                or _shares_topic(new, old, numbers=False)
                or any(content & words for words in _find_things(_RAISED, new))
            )
        )
        or _ends_two_words(new, old)
        or _moves_path(new, old)
        or (stated and not _find_things(_PLACED, new).isdisjoint(_find_things(_PLACED, old)))
    )


def _changes_version(new: str, old: str) -> bool:
    """Return whether a text has another version of a name of an earlier text, as in temurin-21 and temurin-17."""
    versions: dict[str, set[str]] = {}
    for name, number in _VERSION.findall(new):
        versions.setdefault(name.lower(), set()).add(number)
    return any(
        number not in versions.get(name.lower(), {number}) and not is_plain_word(name.lower())
        for name, number in _VERSION.findall(old)
    )


def _shares_topic(new: str, old: str, *, numbers: bool) -> bool:
    """Return whether two texts have a fifth of the shorter text's words in common, at least two."""
    later, earlier = Telling(new, new).strong, Telling(old, old).strong
    shared = [word for word in later & earlier if numbers or not word[0].isdigit()]
    return len(shared) >= max(_COMMON, _SAME_TOPIC * min(len(later), len(earlier)))


def _ends_two_words(new: str, old: str) -> bool:
    """Return whether a text says that a thing named by two words ended, which an earlier text names too."""
    values = [match["value"] for match in _TWO_WORDS.finditer(new) if match[0][0] != ","]
    content = Statement(old).content
    return any(find_name(v, old) and content.issuperset(map(stem, words_of(v))) for v in values)


def _find_things(pattern: re.Pattern[str], text: str) -> set[frozenset[str]]:
    """Return the stems of the words of each thing that a pattern finds in a text.

    >>> _find_things(_PLACED, "Payments run through Adyen now")
    {frozenset({'payment'})}
    """
    return {Statement(name).content for name in pattern.findall(text)} - {frozenset()}


def _moves_path(new: str, old: str) -> bool:
    """Return whether two texts have different paths for one thing that the new text and both paths name."""
    mine, theirs = set(_PATH.findall(new)), set(_PATH.findall(old))
    words = map(stem, words_of(_PATH.sub(" ", new)))
    parts = [
        {stem(word) for path in paths for word in re.findall(r"[a-z]{4,}", path.lower())}
        for paths in (mine, theirs)
    ]
    # the folder in which both paths begin is no thing that moved
    folders = [{stem(path.split("/")[0].lower()) for path in paths} for paths in (mine, theirs)]
    moved = (parts[0] & parts[1]) - (folders[0] & folders[1])
    return mine.isdisjoint(theirs) and not moved.isdisjoint(words)


def find_name(name: str, text: str) -> bool:
    """Return whether a text contains a name as a word, possibly in the plural."""
    name = re.escape(re.sub(r"(?<=[a-z]{3})s$", "", name))
    return re.search(rf"(?<![\w.]){name}s?(?!\w)", text, re.IGNORECASE) is not None


def reports_change(text: str) -> bool:
    """Return whether a text reports a change, so that it may correct an earlier text.

    >>> reports_change("The branch is main now"), reports_change("The branch is main")
    (True, False)
    """
    words = words_of(text)
    return (
        holds(padded(words), phrases("session", "corrected", "present"))
        or not {"over", "came", "turned"}.isdisjoint(signs_of_change(words))
        or bool(_denied_values(text))
    )


def corrects(new: str, old: str) -> bool:
    """Return whether two texts share a thing other than a person.

    Both name a common thing other than a person: the user, a team.

    >>> corrects("I cycle to work now", "The user drives a Volvo")
    False
    """
    return bool(Statement(new).content & Statement(old).content - _PERSONS)


def denies_value(new: str, old: str) -> bool:
    """Return whether a later text declares a value of an earlier text invalid.

    Both must be about the same subject: they share another word, or two and half of the earlier
    text's words if the value is a plain word.
    """
    values = _denied_values(new)
    if not values:
        return False
    words = Statement(new).content
    for value in values:
        # a module and its path are one value: httpx._utils, httpx/_utils.py
        pattern = r"[./]".join(map(re.escape, re.split(r"[./]", value.strip("`"))))
        match = re.search(rf"(?<![\w.])`?{pattern}(?:\.py|s)?`?(?!\w)", old, re.IGNORECASE)
        if match is None or value in _denied_values(old):
            continue
        others = Statement(old).content - {stem(word) for word in re.findall(r"\w+", value.lower())}
        shared = others & words
        is_name = _NAMED.search(value) is not None
        # a command of several words and a path are their own subjects
        if is_name and (shared or " " in value or "/" in value):
            return True
        is_subject = len(shared) * 2 >= len(others) or len(shared) > _COMMON
        if is_subject and shared and re.match(_END, old[match.end() :]):
            return True
    return False


def moves_or_sets(new: str, old: str) -> bool:
    """Return whether a text moves a thing or changes a setting of an earlier text."""
    new, old = (_RUN.sub(" ", text) for text in (new, old))
    for moved in _MOVED.finditer(new):
        name = moved["name"]
        if _NAMED.search(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", old):
            return any(path != moved["to"] for path in _PLACE.findall(old))
    values = {match["name"].lower(): match["value"] for match in _SETTING.finditer(new)}
    return bool(values) and any(
        values.get(match["name"].lower(), match["value"]) != match["value"]
        for match in _SETTING.finditer(old)
    )


def ends_what_stays(new: str, old: str) -> bool:
    """Return whether a text ends what an earlier text declared permanent."""
    if not holds(padded(words_of(old)), phrases("session", "stays")) or not holds(
        padded(words_of(new)), phrases("session", "ends")
    ):
        return False
    later, earlier = Statement(new).content - _PERSONS, Statement(old).content - _PERSONS
    return len(later & earlier) >= max(_COMMON, _SAME_ACT * min(len(later), len(earlier)))


def ends_value(new: str, old: str) -> bool:
    """Return whether a text declares an earlier text's value invalid, moved or replaced."""
    return any(decide(new, old) for decide in (denies_value, ends_what_stays, moves_or_sets))


def spares_rule(new: str, old: str) -> bool:
    """Return whether a text concerns a different act than an earlier standing rule.

    >>> spares_rule("The branch is main now, no longer stable.", "Never force-push to main.")
    True
    """
    if _STANDING.match(old) is None:
        return False
    words = Statement(old).content
    return len(words & Statement(new).content) < _SAME_ACT * len(words)
