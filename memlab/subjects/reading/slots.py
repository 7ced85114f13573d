"""Property slots: a holder, a property with one value at a time, and the value.

"I live in Rome", "She moved to Oslo" and "The user is based in Lima" fill the slot "residence" of
three holders. Two statements conflict if they give one slot of one holder different values. The
patterns are general frames of English. The words that fill them are tables of ``english.toml``
under ``linking``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from memlab.kernel.english import lexicon, table, vocabulary

SPEAKER = "i"
"""The holder of a slot in the first person."""

LONGEST = 400
"""The maximum characters of a text that is read for slots; a longer text is not one statement."""

_MOST = 6
"""The number of slots from which no more matches of a pattern are read.

A text with more slots is a list.
"""


@dataclass(frozen=True)
class Slot:
    """A statement that the property ``name`` of a ``holder`` has a value.

    ``cue`` is whether the statement reports a change of the value. ``past`` is whether the value is
    an earlier one. A denied value begins with "not ".
    """

    holder: str
    name: str
    value: str
    cue: bool
    past: bool


# Components of the frames: a subject, words between subject and verb, a value, and a capitalised place.
_SUBJECT = (
    r"(?P<who>\b(?:(?:my|our|his|her|the user's|user's) (?:[a-z-]+ )??[a-z-]+|i|we|he|she|they|the user|user|"
    r"(?-i:[A-Z])[\w-]+(?:'s [a-z]+)?))"
)
_ADVERB = (
    r"(?:(?:'ve|'s|'m|'re| have| has| had| am| is| are| was| were| got| been| just| now| recently| currently| finally|"
    r" officially| still| also| actually| already| both| only| no longer| not| never| used to| would| will| anymore) ?)*"
)
_PLACE = r"(?P<value>(?:the |a |an )?(?-i:[A-Z])[\w'-]+(?:[ ,]+(?-i:[A-Z])[\w'-]+){0,2})"


# Compiled once, because 20 frames contain lists of occupations, diets, bonds and states.
@cache
def _slot_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the sentence patterns of English, each with the name of its slot."""
    jobs = "|".join(
        sorted(map(re.escape, vocabulary("linking", "occupations")), key=len, reverse=True)
    )
    diets = "|".join(map(re.escape, table("linking", "diets")))
    bonds = "|".join(
        sorted(map(re.escape, table("linking", "relationship")), key=len, reverse=True)
    )
    states = "|".join(sorted(map(re.escape, _state_pairs()), key=len, reverse=True))
    frames = [
        (
            "residence",
            rf"{_SUBJECT}{_ADVERB} ?(?:lives?|living|resides?|based|moved|relocated|moving|settled) (?:back )?(?:in|to) {_PLACE}",
        ),
        (
            "residence",
            rf"{_SUBJECT}{_ADVERB} ?(?:lives?|living|lived) (?:in|with|on) (?P<value>(?:a|an|the|my|her|his|their) [\w ]{{3,24}})",
        ),
        (
            "employer",
            rf"{_SUBJECT}{_ADVERB} ?(?:works?|working|employed|worked) (?:at|for|by) {_PLACE}",
        ),
        (
            "employer",
            rf"{_SUBJECT}{_ADVERB} ?(?:joined|hired by|started (?:working )?(?:a new job )?at|left|quit) {_PLACE}",
        ),
        (
            "job",
            rf"{_SUBJECT}{_ADVERB} ?(?:work(?:s|ing|ed)? as|became|become|promoted to|'m|am|is|was|a)? ?(?:an?|the)? ?(?:[a-z]+ ){{0,2}}?(?P<value>{jobs})\b",
        ),
        (
            "job",
            rf"(?:job|role|title|position|profession)(?: is| was| changed to)(?: now)?(?: an?)? (?P<value>(?:[a-z]+ ){{0,2}}(?:{jobs}))\b",
        ),
        (
            "age",
            rf"{_SUBJECT}{_ADVERB} ?(?:(?<=am )|(?<=is )|(?<=are )|(?<=was )|turned |turns |aged )(?P<value>\d{{1,3}})(?: years old| yrs old|(?= (?:now|today|last|this|yesterday|in)\b)|$)",
        ),
        ("relationship", rf"{_SUBJECT}{_ADVERB} ?(?P<value>{bonds})\b"),
        (
            "diet",
            rf"{_SUBJECT}{_ADVERB} ?(?:turned|went|became|gone|stopped being|follows?|following|on|eats?|eating|started eating|stopped eating|quit|a|an|being|strictly|mostly|having)* ?(?:a |an |any )?(?P<value>{diets})\b",
        ),
        (
            "favourite",
            r"favou?rite (?P<of>[a-z-]+(?: [a-z-]+)?)(?: of (?:mine|all time))? (?:is|was|are|changed to|became|:)(?: now)? (?P<value>[\w'-]+(?: [\w'-]+){0,4})",
        ),
        (
            "favourite",
            r"(?P<value>(?-i:[A-Z])[\w'-]+(?: [A-Z]?[\w'-]+){0,3}) (?:is|are)(?: now)? (?:my|the user's|her|his) (?:new |current )?favou?rite (?P<of>[a-z-]+(?: [a-z-]+)?)",
        ),
        (
            "tool",
            r"\b(?:uses?|using|used|adopted|chose|picked)(?: now)? (?P<value>[\w.+#/-]+(?: (?-i:[A-Z])[\w.+#-]+)?)(?: now)? (?:for|as)(?: all| our| my| the)? (?P<of>[a-z][\w-]+(?: [a-z][\w-]+)?)",
        ),
        (
            "tool",
            r"\b(?P<of>[a-z][\w-]+(?: [a-z]+)?) (?:now )?(?:runs?|is|are|was|happens?|goes?|go|done|handled|managed|built|written|stored|kept|hosted|deployed|live|lives)(?: now)?(?: done| run| handled| managed| built| written| stored| kept| hosted| deployed)? (?:with|on|using|via|by|through|in) (?P<value>[\w.+#/-]+(?: (?-i:[A-Z])[\w.+#-]+)?)",
        ),
        (
            "tool",
            r"\b(?:our|the|my) (?P<of>[a-z][\w-]+(?: [a-z]+)?) (?:is|are)(?: now)? (?P<value>(?-i:[A-Z])[\w.+#-]+(?: (?-i:[A-Z])[\w.+#-]+)?)$",
        ),
        (
            "change",
            r"\b(?:switched|migrated|moved|changed|converted|ported)(?: (?:(?:the|our|my|all) )?(?P<of>[\w-]+(?: [\w-]+){0,3}?))?(?: over)?(?: from (?P<from>[\w.+#/ -]+?))? to (?P<value>[\w.+#/-]+(?: (?-i:[A-Z])[\w.+#-]*)?)(?: for (?:the |our |my )?(?P<of2>[\w-]+(?: [\w-]+)?))?",
        ),
        (
            "change",
            r"\breplaced (?:the |our |my )?(?P<from>[\w.+#/ -]+?) (?:with|by) (?P<value>[\w.+#/-]+(?: (?-i:[A-Z])[\w.+#-]*)?)(?: for (?:the |our |my )?(?P<of2>[\w-]+(?: [\w-]+)?))?",
        ),
        (
            "version",
            r"\b(?P<of>(?-i:[A-Z])[\w.+-]*[A-Za-z+]|node|python|java|ruby|go|php|postgres|react|django|rails)(?:'s)? ?(?:version|v|is (?:at|on)|requires?|:)? ?v?(?P<value>\d{1,3}(?:\.\d+){0,3})\b",
        ),
        (
            "port",
            r"\b(?P<of>[a-z][\w-]*(?: [a-z]+)?(?<!\bport))?(?: (?:now )?(?:runs?|listens?|is|starts?|served|available|exposed|binds?)(?: now)?)?(?: on| at| to)? ?\bport (?:is |now |changed to |: ?)*(?P<value>\d{2,5})\b",
        ),
        (
            "port",
            r"\b(?P<of>[a-z][\w-]*(?: [a-z]+)?) (?:now )?(?:runs|listens|starts|is served)(?: now)? on (?P<value>\d{4,5})\b",
        ),
        (
            "status",
            rf"\b(?P<of>[A-Za-z][\w-]*(?: [a-z][\w-]*){{0,3}}) (?:is|are|was|has been|have been|got|turned|stays?)(?: now| currently| no longer| not| still)* (?P<value>{states})\b",
        ),
    ]
    return tuple((name, re.compile(frame, re.IGNORECASE)) for name, frame in frames)


# Words in and near a match that point to the present, a change, the past, the future, or a denial.
_NOW = re.compile(
    r"\b(?:now|no longer|any ?more|anymore|these days|nowadays|from now on|currently|as of|instead|again)\b",
    re.IGNORECASE,
)
_CAME = re.compile(
    r"\b(?:moved|relocated|became|turned|switched|migrated|changed|converted|ported|replaced|joined|left|quit|got|started|"
    r"stopped|promoted|upgraded|downgraded|renamed|gave up|given up|went|gone|new|just|finally|since|passed|sold|broke|split)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were|used to|lived|worked|had been|back then|formerly|previously|once|as a (?:child|kid|teenager|student))\b",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"\b(?:will|going to|gonna|plan(?:s|ning)? (?:to|on)|want(?:s|ed)? to|would|might|may|could|should|hop(?:e|es|ing) to|thinking (?:of|about)|consider(?:s|ing)?|dream(?:s|ed|ing)?|if|try(?:ing)? to|next|about to)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:no longer|not|isn't|aren't|don't|doesn't|never|stopped|quit|left|gave up|given up|any ?more)\b|n't\b",
    re.IGNORECASE,
)


# Built once from the table of states.
@cache
def _state_pairs() -> dict[str, int]:
    """Return the number of the group of opposite states to which each state belongs."""
    pairs: dict[str, int] = {}
    for number, words in enumerate(lexicon()["linking"]["states"]):
        for word in words:
            pairs.setdefault(word, number)
    return pairs


# Cached, because each statement is compared with many others.
@lru_cache(maxsize=8192)
def read_slots(text: str) -> tuple[Slot, ...]:
    """Return the property slots to which a statement assigns values.

    >>> [(slot.holder, slot.name, slot.value) for slot in read_slots("I moved to Oslo")]
    [('i', 'residence', 'oslo')]
    """
    if len(text) > LONGEST:
        return ()
    plain = _normalize_text(text)
    if not _trigger_pattern().search(plain):
        return ()
    slots: dict[tuple[str, str], Slot] = {}
    for name, pattern in _slot_patterns():
        for match in pattern.finditer(plain):
            for slot in _match_slots(name, match, plain):
                slots.setdefault((slot.holder, slot.name), slot)
            if len(slots) >= _MOST:
                break
    for slot in _tool_class_slots(plain):
        slots.setdefault((slot.holder, slot.name), slot)
    return tuple(slots.values())


# A pattern of a tool after a verb or preposition of use.
_USES = re.compile(
    r"\b(?:use[sd]?|using|with|on|via|runs?|to|is|are|by|through|adopted|chose|prefers?)(?: now| in)? (?P<value>[\w.+#-]+(?: [\w.+#-]+)?)",
    re.IGNORECASE,
)


def _tool_class_slots(text: str) -> list[Slot]:
    """Return a slot for each known tool that a text says is used or not, named by the class of the tool."""
    slots: list[Slot] = []
    for match in _USES.finditer(text):
        words = match["value"].lower().rstrip(".,;").split()
        for value in (" ".join(words), words[0] if words else ""):
            kind = _get_tool_class(value)
            if kind is not None and not _FUTURE.search(
                text[max(0, match.start() - 40) : match.end()]
            ):
                cue = bool(_NOW.search(text) or _CAME.search(text))
                denied = bool(_NOT.search(text[max(0, match.start() - 12) : match.start() + 4]))
                slots.append(
                    Slot("", f"class:{kind}", f"not {value}" if denied else value, cue, False)
                )
                break
    return slots


# Compiled once. It rejects most texts before the frames are tried.
@cache
def _trigger_pattern() -> re.Pattern[str]:
    """Return a pattern of trigger words, of which every slot pattern needs at least one.

    A text without a match fills no slot.
    """
    return re.compile(
        r"\b(?:liv|resid|based|mov|relocat|settled|work|employ|join|hired|started|left|quit|am|is|are|was|'m|'s|turn|aged?|years|"
        r"becam|favou?rite|us(?:e|es|ing|ed)|run|port|switch|migrat|chang|convert|replac|version|\w+ \d|eat|went|got|broke|split|"
        r"has been|have been|date|dating|divorc|married|engaged|separated|stopped)",
        re.IGNORECASE,
    )


def _normalize_text(text: str) -> str:
    """Return a text with straight apostrophes, "I'm" and "I've" expanded, and "i" for "I".

    A final full stop or exclamation mark is removed.
    """
    plain = text.replace("\u2019", "'").strip().rstrip(".!")
    plain = re.sub(r"\bI'm\b", "I am", plain)
    plain = re.sub(r"\bI've\b", "I have", plain)
    return re.sub(r"^I\b|(?<=\W)I\b", "i", plain)


def _match_slots(name: str, match: re.Match[str], text: str) -> list[Slot]:
    # Plans fill no slot. Slots of things (tool, version, port, status) have no holder; slots of people have a holder.
    """Return the slots that one match of a sentence pattern fills, or [] for a future or an unclear value."""
    groups = match.groupdict()
    value = _strip_value(groups["value"] or "")
    before, near = text[: match.start()], text[max(0, match.start() - 40) : match.end() + 20]
    own = match[0]
    if not value or _FUTURE.search(text[max(0, match.start() - 40) : match.end()]):
        return []
    cue = bool(_NOW.search(near) or _CAME.search(own))
    past = bool(_PAST.search(own)) and not cue
    denied = bool(_NOT.search(own))
    holder = _read_holder(groups.get("who"), before)
    if name == "change":
        return _change_slots(groups, value)
    if name in ("tool", "version", "port", "favourite", "status"):
        topic = _topic_noun(groups.get("of") or "", name)
        if name == "tool" and (
            not topic
            or topic in vocabulary("linking", "no-purpose")
            or value in vocabulary("linking", "no-tool")
        ):
            return []
        if name == "version" and (topic in vocabulary("linking", "no-version") or len(text) > 120):
            return []
        if name == "favourite":
            holder = _read_holder(None, before)
        key = f"{name}:{topic}"
        if name == "status":
            opposite = _state_pairs().get(value)
            if opposite is None or topic in vocabulary("linking", "no-status"):
                return []
            key = f"status:{topic}:{opposite}"
        return [
            Slot(
                holder if name == "favourite" else "",
                key,
                f"not {value}" if denied else value,
                cue,
                past,
            )
        ]
    if holder == "":
        return []
    if name == "job" and _lacks_job_verb(own):
        return []
    if name == "relationship":
        value = dict(table("linking", "relationship"))[value]
    if name == "diet":
        value = dict(table("linking", "diets"))[value]
    if denied:
        value = f"not {value}"
    return [Slot(holder, name, value, cue, past)]


def _lacks_job_verb(own: str) -> bool:
    """Return whether no verb assigns an occupation, as in "she likes the teacher"."""
    return not re.search(
        r"\b(?:am|is|was|are|were|work\w*|became|become|promoted|'m|'s|job|role|title|position|profession)\b",
        own,
        re.IGNORECASE,
    )


def _change_slots(groups: dict[str, str | None], value: str) -> list[Slot]:
    """Return the slots that a change from one tool to another fills."""
    topic = _topic_noun(groups.get("of") or groups.get("of2") or "", "tool")
    slots = (
        [Slot("", f"tool:{topic}", value, True, False)]
        if topic and topic not in vocabulary("linking", "no-purpose")
        else []
    )
    left = _strip_value(groups.get("from") or "")
    if left:
        slots.append(Slot("", f"instead:{left}", value, True, False))
    kind = _get_tool_class(value)
    if kind is not None:
        slots.append(Slot("", f"class:{kind}", value, True, False))
    return slots


# Built once from the table of tools.
@cache
def _tool_classes() -> dict[str, str]:
    """Return the class of each known tool by the tool's name."""
    return {name: kind for kind, names in lexicon()["linking"]["tools"].items() for name in names}


def _get_tool_class(value: str) -> str | None:
    """Return the class of a tool, or None if the tool is unknown."""
    return _tool_classes().get(value)


def _read_holder(who: str | None, before: str) -> str:
    """Return the holder of a stated property: the speaker, the user, a name or a relative; "" if unclear."""
    if who is None:
        possessive = re.search(
            r"\b(my|our|the user's|user's|his|her|([A-Z][\w-]+)'s)\s*(?:\w+\s)?$", before
        )
        if possessive is None:
            return SPEAKER
        owner = possessive[1].lower()
        return (
            SPEAKER
            if owner in ("my", "our")
            else "user"
            if "user" in owner
            else (possessive[2] or owner).lower()
        )
    low = who.lower().strip()
    if low in ("i", "we"):
        return SPEAKER
    if low in ("the user", "user"):
        return "user"
    if low in ("he", "she", "they"):
        return low
    words = low.split()
    if words[0] in ("my", "our") or "user's" in words[:2]:
        return f"{SPEAKER}:{words[-1]}"
    if words[0] in ("his", "her"):
        return ""
    return low if low not in vocabulary("linking", "no-names") else ""


def _strip_value(value: str) -> str:
    """Return a value in lower case up to its first ending word, without punctuation, leading articles and possessives."""
    words = [word.strip(".,;:!?\"'()") for word in value.lower().split()]
    while words and words[0] in vocabulary("linking", "before-values"):
        words = words[1:]
    for position, word in enumerate(words):
        if word in vocabulary("linking", "value-ends"):
            words = words[:position]
            break
    return " ".join(words)


def _topic_noun(phrase: str, name: str) -> str:
    """Return the noun or phrase that identifies a slot's topic, without a final "s" or "ing".

    Without a noun, the result is "".
    """
    words = [
        word
        for word in phrase.lower().replace("colour", "color").split()
        if word not in vocabulary("linking", "before-topics")
    ]
    if not words:
        return ""
    last = words[-1] if name in ("tool", "port", "favourite") else " ".join(words)
    for ending in ("ing", "s"):
        if last.endswith(ending) and len(last) - len(ending) >= 3 and name != "version":
            return last[: -len(ending)]
    return last
