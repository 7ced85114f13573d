"""What an utterance shows: the features that the ``admit`` policy reads.

Each detector is a table of English phrases or a look at how a sentence begins; none was fitted to a data set. A
question tells nothing of its speaker, so the detectors of what someone says of themselves leave questions out, but for
what is told before the asking begins. All take time in proportion to the text.

The idea of reasons to extract and reasons to skip comes from assistants that keep a profile of their user; which of
them wins is the policy's to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memlab.subjects.phrases import first_of, holds, padded, phrases, sentences, words_of

__all__ = ["DETECTORS", "Utterance", "kind_of", "provenance_of", "utterance"]

_IDENTITY = phrases("""
    my name is | my names | call me | i work as | i work at | i work for | i work in | i live in | i live at
    | i was born | i grew up | i come from | i study | my job is | my birthday is | my birthday's | my wife | my husband
    | my partner | my son | my daughter | my mother | my father | my brother | my sister | my dog | my cat | i have two
    | i have a wife | i have a husband | i have a son | i have a daughter | i have kids | i have children | years old
    | i'm working as | i am working as | i'm working at | i am working at
    | my pronouns | my native language | i speak | i'm from | i am from | the user is | the user's name | the user works
    | the user lives
""")
_I_AM = (" i am ", " i'm ")
# what follows "I am" when it says what someone is doing or how the moment is, not who they are
_NOT_IDENTITY = frozenset(
    [
        "not",
        "sure",
        "afraid",
        "sorry",
        "done",
        "ready",
        "just",
        "still",
        "here",
        "back",
        "glad",
        "happy",
        "sad",
        "tired",
        "stuck",
        "confused",
        "unable",
        "able",
        "aware",
        "certain",
        "curious",
        "interested",
        "about",
        "in",
        "on",
        "at",
        "so",
        "very",
        "really",
        "quite",
        "now",
        "also",
        "always",
        "never",
        "almost",
        "getting",
        "gonna",
        "fine",
        "ok",
        "okay",
        "good",
        "great",
        "busy",
        "late",
        "early",
        "free",
        "serious",
        "kidding",
        "lost",
        "worried",
        "excited",
    ]
)
_PREFERENCE = phrases("""
    i like | i love | i prefer | i hate | i dislike | i enjoy | i adore | i can't stand | i cannot stand
    | i don't like | i do not like | i don't enjoy | i never liked | i usually | i always | i never | i'd rather
    | i would rather | my favorite | my favourite | i'm a fan of | i am a fan of | i'm fond of | i am fond of
    | i can't eat | i don't eat | i don't drink | i am allergic | i'm allergic | we prefer | we like | we always
    | we never | user prefers | user likes | user loves | user hates | user dislikes | user enjoys | he prefers
    | she prefers | they prefer | he likes | she likes | they like | prefers to
""")
_HOW_IT_IS_WANTED = phrases("always | never | from now on | by default | make sure to always")
_GOAL = phrases("""
    i want to | i'd like to | i would like to | i plan to | i'm planning to | i am planning to | i plan on
    | i'm going to | i am going to | i'm gonna | i hope to | i intend to | i aim to | i wish to | my goal is
    | my goals are | my plan is | my dream is | i need to | i'm trying to | i am trying to | i'm saving for
    | i'm working towards | i'm training for | we want to | we plan to | we're going to | we are going to
    | we intend to | our goal is | user wants to | user plans to
""")
_TIMES = phrases("""
    yesterday | recently | lately | last night | last week | last weekend | last month | last year | this morning
    | this afternoon | this week | this weekend | today | tonight | ago | the other day | last monday | last tuesday
    | last wednesday | last thursday | last friday | last saturday | last sunday | on monday | on tuesday
    | on wednesday | on thursday | on friday | on saturday | on sunday
""")
_SOMEONE = phrases("i | we | my | our | i've | we've")
_EVENTS = phrases("""
    i went | i met | i bought | i sold | i moved | i started | i finished | i visited | i got | i lost | i found
    | i saw | i signed | i quit | i joined | i graduated | i married | i attended | i just | i've just | i have just
    | i've started | i've moved | we went | we met | we bought | we moved | we started | we finished | we shipped
    | we deployed | we released | we got | we visited | happened to me
""")
_CORRECTS_FIRST = phrases("""
    actually | correction | wrong | not quite | that's wrong | that is wrong | you're wrong | you are wrong | i meant
    | well actually | no actually | sorry i meant | i said
""")
_CORRECTS = phrases("""
    that's wrong | that is wrong | that's not right | that is not right | that's incorrect | that is incorrect
    | that isn't right | that's not true | that is not true | that's not what i | you're wrong | you are wrong
    | you misunderstood | i meant | i didn't mean | i did not mean | it's not what i | as i said | not correct
    | that was a mistake | should have been
""")
_NO_CORRECTION = phrases("""
    no problem | no problems | no worries | no thanks | no thank | no idea | no one | no need | no longer | no matter
    | no doubt | no way
""")
_GREETINGS = phrases("""
    hi | hello | hey | hey there | hi there | hello there | good morning | good afternoon | good evening | good night
    | good day | greetings | howdy | yo | thanks | thank you | thanks a lot | thank you very much | thank you so much
    | many thanks | thx | ty | cheers | bye | goodbye | good bye | see you | see you later | see ya | later | take care
    | have a nice day | have a good day | welcome | you're welcome | nice to meet you | how are you | what's up | sup
    | ok | okay | great | cool | nice | perfect | awesome | no problem | no worries | sounds good | got it
""")
_MOST_WITH_GREETING = 2
_LONGEST_GREETING = 24
_MOST_POLITE = 6
_POLITE = phrases("""
    please | can you | could you | would you | will you | can you please | could you please | would you please
    | just | now | ok | okay | and | then | also | next | kindly | i want you to | i'd like you to | i need you to
    | i would like you to | let's | go ahead and | now please | please just
""")
_ORDERS = frozenset(
    [
        "write",
        "create",
        "add",
        "fix",
        "refactor",
        "implement",
        "explain",
        "summarize",
        "summarise",
        "translate",
        "delete",
        "remove",
        "generate",
        "show",
        "tell",
        "give",
        "list",
        "make",
        "build",
        "install",
        "deploy",
        "commit",
        "push",
        "open",
        "close",
        "search",
        "find",
        "compute",
        "calculate",
        "draw",
        "convert",
        "rename",
        "rewrite",
        "update",
        "upgrade",
        "move",
        "copy",
        "merge",
        "rebase",
        "revert",
        "debug",
        "optimize",
        "optimise",
        "improve",
        "describe",
        "compare",
        "suggest",
        "recommend",
        "print",
        "read",
        "load",
        "save",
        "download",
        "upload",
        "send",
        "set",
        "change",
        "edit",
        "replace",
        "format",
        "clean",
        "configure",
        "help",
        "check",
        "verify",
        "review",
        "analyze",
        "analyse",
        "continue",
        "stop",
        "start",
        "restart",
        "try",
        "do",
        "go",
    ]
)
# these also begin statements ("test coverage is low"), so they need what an order goes on with
_DOUBTFUL_ORDERS = frozenset(
    [
        "run",
        "test",
        "use",
        "call",
        "plan",
        "document",
        "log",
        "schedule",
        "name",
        "group",
        "sort",
        "count",
        "view",
        "turn",
    ]
)
_OBJECTS = frozenset(
    [
        "the",
        "a",
        "an",
        "this",
        "that",
        "these",
        "those",
        "my",
        "our",
        "all",
        "every",
        "each",
        "it",
        "them",
        "me",
        "us",
        "for",
        "to",
        "on",
        "in",
        "with",
        "some",
        "any",
        "only",
        "both",
    ]
)
_QUESTIONS = phrases("""
    what is | what's | what are | what was | what were | what does | what do | what did | what would | what should
    | how do i | how do you | how do we | how does | how did | how can i | how can we | how to | how should | how is
    | how are | how many | how much | how long | how often | where is | where are | where do | where does | where can
    | when is | when are | when does | when did | when will | who is | who are | who was | which | why is | why are
    | why does | why do | why did | is there | are there | is it | can i | may i | should i | do you know | does | did
    | do i need | what if | what about | how about
""")
_CODE_LINE = re.compile(
    r"\s{0,64}(?:```|>>> |\$ |#!|#include\b|</?[a-zA-Z][\w-]{0,40}[ />]"
    r"|(?:async )?def \w{1,80}\(|class \w{1,80}\s?[:({]"
    r"|from [\w.]{1,120} import\b|import [\w.]{1,120}\s{0,8}(?:;|as\b|$)"
    r"|(?:export |public |private |static ){0,3}(?:function|fn|func) ?\w{0,80}\("
    r"|(?:const|let|var) \w{1,80} ?=|(?:if|for|while|switch) ?\(.{0,200}\) ?\{|return\b[^.]{0,80};$"
    r"|(?:SELECT|select) .{1,200} (?:FROM|from) |(?:INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE) \w"
    r"|Traceback \(most recent call last\)|[\w.\[\]]{1,80} ?(?:=|\+=) ?[^=\s].{0,200};$"
    r"|[{}]\s?$|\w{1,80}\(.{0,200}\);?$)"
)

_CLAUSE = re.compile(r"[,;:\u2013\u2014]")
_SUPPOSES = (" if ", " when ", " suppose ", " assuming ", " unless ", " whether ")

DETECTORS = (
    "tells-identity",
    "tells-preference",
    "tells-goal",
    "tells-event",
    "corrects",
    "greets",
    "commands",
    "holds-code",
    "asks-plainly",
)
"""The flags, in the order in which reasons are given."""

_KINDS = {
    "corrects": "correction",
    "tells-identity": "personal",
    "tells-preference": "preference",
    "tells-goal": "goal",
    "tells-event": "event",
}
_PROVENANCES = {"user": "user-stated", "assistant": "inferred", "system": "observed", "tool": "observed"}


@dataclass(frozen=True)
class Utterance:
    """What one utterance shows: its number of words, and the detectors that fired."""

    length: int
    fired: frozenset[str]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The detectors that fired, in the order of ``DETECTORS``."""
        return tuple(name for name in DETECTORS if name in self.fired)


def utterance(text: str) -> Utterance:
    """The features of one utterance; linear in the length of the text.

    >>> utterance("Hi! I'm a nurse and I prefer short answers.").reasons
    ('tells-identity', 'tells-preference')
    >>> utterance("How do I rename a branch?").reasons
    ('asks-plainly',)
    """
    words = words_of(text)
    parts = [(sentence, padded(words_of(sentence))) for sentence in sentences(text)]
    parts = [(sentence, said) for sentence, said in parts if said.strip()]
    told = [said for sentence, said in parts if not _asks(sentence, said)]
    told += [said for sentence, said in parts if _asks(sentence, said) for said in _told_before(sentence)]
    fired = {
        "tells-identity": any(map(_tells_identity, told)),
        "tells-preference": any(map(_tells_preference, told)),
        "tells-goal": any(holds(said, _GOAL) for said in told),
        "tells-event": any(map(_tells_event, told)),
        "corrects": any(map(_corrects, told)),
        "greets": len(words) <= _LONGEST_GREETING and _greets(padded(words)),
        "commands": any(_commands(said) for _, said in parts),
        "holds-code": any(_CODE_LINE.match(line) for line in text.splitlines()),
        "asks-plainly": bool(parts) and _asks(*parts[-1]),
    }
    return Utterance(len(words), frozenset(name for name, found in fired.items() if found))


def kind_of(reasons: tuple[str, ...]) -> str | None:
    """The kind of a memory that is made of an utterance with these reasons: what corrects is a correction, ..."""
    return next((kind for name, kind in _KINDS.items() if name in reasons), None)


def provenance_of(role: str, reasons: tuple[str, ...]) -> str:
    """How it came to be known: what a user says is stated, what an assistant says is inferred."""
    return "user-corrected" if role == "user" and "corrects" in reasons else _PROVENANCES[role]


def _told_before(question: str) -> list[str]:
    """What a question tells before it asks: "I am a nurse, how do I ...?". A condition tells nothing."""
    *before, _ = _CLAUSE.split(question)
    told = [padded(words_of(clause)) for clause in before]
    return [said for said in told if said.strip() and not _asks("", said) and not said.startswith(_SUPPOSES)]


def _asks(sentence: str, said: str) -> bool:
    return sentence.rstrip().endswith("?") or first_of(said, _QUESTIONS) is not None


def _tells_identity(said: str) -> bool:
    if holds(said, _IDENTITY):
        return True
    for start in _I_AM:
        at = said.find(start)
        while at >= 0:
            following = said[at + len(start) : at + len(start) + 40].split(" ", 1)[0]
            activity = following.endswith("ing") and following != "living"
            if following and not activity and following not in _NOT_IDENTITY:
                return True
            at = said.find(start, at + 1)
    return False


def _tells_preference(said: str) -> bool:
    return holds(said, _PREFERENCE) or first_of(said, _HOW_IT_IS_WANTED) is not None


def _tells_event(said: str) -> bool:
    return holds(said, _EVENTS) or (holds(said, _TIMES) and holds(said, _SOMEONE))


def _corrects(said: str) -> bool:
    if holds(said, _CORRECTS) or first_of(said, _CORRECTS_FIRST) is not None:
        return True
    return said.startswith(" no ") and len(said) > 4 and first_of(said, _NO_CORRECTION) is None


def _greets(said: str) -> bool:
    """It begins with a greeting and says hardly more: two words, such as a name."""
    found = False
    while (greeting := first_of(said, _GREETINGS)) is not None:
        found, said = True, said[len(greeting) - 1 :]
    return found and len(said.split()) <= _MOST_WITH_GREETING


def _commands(said: str) -> bool:
    """After what is merely polite it begins with the verb of an order."""
    for _ in range(_MOST_POLITE):
        polite = first_of(said, _POLITE)
        if polite is None:
            break
        said = said[len(polite) - 1 :]
    first, _, rest = said.strip().partition(" ")
    return first in _ORDERS or (first in _DOUBTFUL_ORDERS and rest.partition(" ")[0] in _OBJECTS)
