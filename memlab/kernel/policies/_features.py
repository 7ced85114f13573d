"""Every feature that a policy may read, declared once.

The checker, the errors, the documentation and the slates read this table; ``memlab.kernel.recall`` computes
them. ``fingerprint`` changes with the definition, and with the embedder or the pack's settings where the value
depends on them: a logged feature may be re-used only where its fingerprint is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from memlab.kernel.base.display import clip
from memlab.kernel.base.printable import printable
from memlab.kernel.registry import Registry
from memlab.kernel.schema import (
    KINDS,
    PROVENANCES,
    SCOPES,
    SOURCES,
    SPEAKER_ROLES,
    STATUSES,
    USES,
    VISIBILITIES,
)

Stage = Literal["memory", "query", "spread"]


@dataclass(frozen=True)
class Feature:
    """A named value of one candidate.

    ``stage``: ``memory`` needs the memory and the time alone, ``query`` the question too, ``spread`` exists only
    after spreading. ``depends`` names what, besides the formula, decides the value: the embedder, settings or slots.

    A number may be null where ``nullable``; arrays hold it as NaN. A slate keeps every feature, of a set the tests that
    the pack's policies of ranking make of it. A feature that is computed ``on_demand`` is stored only if
    a policy of the pack or of a challenger reads it. A log without the feature has no fingerprint of it.
    """

    name: str
    type: Literal["num", "bool", "str", "set"]
    stage: Stage
    formula: str
    unit: str = ""
    range: str = ""
    depends: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    version: int = 1
    nullable: bool = False
    on_demand: bool = False
    compute: Callable[[Any], Any] | None = field(default=None, compare=False)
    """How the values of an extension's feature are computed: from a `Pool`, one value for each of its memories."""
    owner: str = ""

    def __repr__(self) -> str:
        of = f" of {self.owner}" if self.owner else ""
        return printable(f"<Feature {self.name}{of}, {self.type}: {clip(self.formula, 80)}>")

    def fingerprint(self, given: dict[str, str]) -> str:
        """Return a hash of the definition and of what it depends on, ``given`` by name.

        The fingerprint of an extension's feature also names the extension and its version.
        """
        parts = [self.name, self.type, self.formula, str(self.version)]
        parts += [f"{name}={given[name]}" for name in self.depends if name in given]
        hash = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
        return f"{hash} {self.owner}" if self.owner else hash


def _refusal(feature: Feature) -> str | None:
    """Return why an extension's feature is refused."""
    if feature.compute is None:
        return f"The feature {feature.name} has no function: give compute=, a function from a Pool to its values."
    if feature.stage == "spread" or feature.type == "set":
        return f"The feature {feature.name} of an extension has the stage memory or query, and is num, bool or str."
    return None


_WORDS = ("language",)
_BM25 = (*_WORDS, "bm25-k1", "bm25-b")
_RECENCY = ("half-life", "base-half-life")
_RETENTION = ("retention", *_RECENCY)
# A seed-score may range over all candidates and read any feature of theirs.
_CANDIDATES = ("dense-candidates", "lexical-candidates", "triggers")
_SEEDS = ("embedder", *_BM25, *_RETENTION, *_CANDIDATES, "eligible", "seed-score")
_SPREAD = (
    *_SEEDS,
    "spread",
    "damping",
    "seeds",
    "entity-seeds",
    "entity-floor",
    "anchors",
    "spread-steps",
    "spread-threshold",
    "spread-mode",
    "fan-out",
)

FEATURES: Registry[Feature] = Registry(
    "feature",
    (
        # what the question and the memory have in common
        Feature(
            "similarity",
            "num",
            "query",
            "cosine of the question and the memory",
            "",
            "-1..1",
            ("embedder",),
        ),
        Feature(
            "closeness",
            "num",
            "query",
            "similarity on the scale of all-MiniLM-L6-v2: at equal quantiles for the shipped model, else as it is",
            "",
            "-1..1",
            ("embedder",),
        ),
        Feature(
            "nearness",
            "num",
            "query",
            "closeness as a threshold wants it: for the shipped model closeness + coverage - 0.126 ln(length / 12), at "
            "most 1, where unspecific words of the query (user, like, do) do not count in coverage unless it has no "
            "others; else closeness",
            "",
            "<= 1",
            ("embedder", *_WORDS),
            on_demand=True,
            version=3,
        ),
        Feature(
            "lexical",
            "num",
            "query",
            "BM25 of the memory's words; of a long text, of its best passage",
            "",
            ">= 0",
            _BM25,
        ),
        Feature(
            "coverage",
            "num",
            "query",
            "share of the question's idf mass found in the memory; of a long text, in its best passage",
            "share",
            "0..1",
            _WORDS,
        ),
        Feature(
            "session-lexical",
            "num",
            "query",
            "BM25 of the whole session as one document",
            "",
            ">= 0",
            _BM25,
        ),
        Feature(
            "before-coverage",
            "num",
            "query",
            "coverage of the memory just before in the session",
            "share",
            "0..1",
            _WORDS,
            version=2,
        ),
        Feature(
            "phrase",
            "num",
            "query",
            "share of the question's pairs of neighbouring words that are neighbours in the text, stop words left out",
            "share",
            "0..1",
            _WORDS,
            on_demand=True,
        ),
        Feature(
            "late",
            "num",
            "query",
            "mean over the question's words, by idf, of the cosine with the nearest word of the text, by the shipped "
            "model's vectors of single words; the same stem: 1, below 0: 0; stop words and names of speakers left out, "
            "as are many, much and often where no text has them; of a long text, in its best passage",
            "",
            "0..1",
            _WORDS,
            on_demand=True,
        ),
        Feature(
            "around-lexical",
            "num",
            "query",
            "BM25 (k1 0.9, b 0.2, its own length) of its words and those of the two memories before and after it in "
            "the session together; names of speakers left out",
            "",
            ">= 0",
            _WORDS,
            on_demand=True,
        ),
        Feature(
            "around-similarity",
            "num",
            "query",
            "mean similarity of it, the two memories before and the two after it in the session",
            "",
            "-1..1",
            ("embedder",),
            on_demand=True,
        ),
        Feature(
            "asks-when",
            "bool",
            "query",
            "the question asks for a time",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "asks-how-many",
            "bool",
            "query",
            "the question asks for a number or a span",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "asks-you",
            "bool",
            "query",
            "the question says you or your",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "asks-now",
            "bool",
            "query",
            "the question asks what holds (is, do, has ...), not what was (did, was ...)",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "asks-over-time",
            "bool",
            "query",
            "the question compares times or asks for what was (between, than, total, originally ...)",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "outdated",
            "num",
            "query",
            "greatest share of the question's words, stop words left out, that stand in one statement of it and in a "
            "later memory which makes that statement anew (an edge updates); 0 below two fifths",
            "share",
            "0..1",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "names-things",
            "num",
            "query",
            "how many of its words stand with a capital inside a sentence, 3 at most; names of speakers left out",
            "words",
            "0..3",
            _WORDS,
            on_demand=True,
        ),
        Feature(
            "date-gap",
            "num",
            "query",
            "time from the nearest day that the question names to its creation; 0: on that day; null: it names none",
            "days",
            nullable=True,
        ),
        Feature(
            "names-date",
            "num",
            "query",
            "1 if it was created when the question says (2023-05-07, May 2023, last week), else 0; null: no date",
            "",
            "0..1",
            nullable=True,
        ),
        Feature(
            "names-file",
            "bool",
            "query",
            "the question names one of its files, by path, end of path, name or stem",
            depends=_WORDS,
        ),
        Feature(
            "names-tag",
            "bool",
            "query",
            "the words of one of its tags stand in the question",
            depends=_WORDS,
        ),
        Feature("names-speaker", "bool", "query", "the question contains a name of who said it"),
        Feature(
            "names-other", "bool", "query", "the question names a speaker, but not who said this"
        ),
        Feature("query-tags", "set", "query", "what the question writes as #tag, without the #"),
        Feature(
            "triggered", "bool", "query", "one of its triggers occurs in the question, in any case"
        ),
        Feature("same-session", "bool", "query", "it comes from the session that asks"),
        Feature("same-branch", "bool", "query", "it has no branch, or the one that asks"),
        # the shape of the memory
        Feature("asks", "bool", "memory", "its text holds a question mark"),
        Feature("answers", "bool", "memory", "the memory just before in its session asks"),
        Feature(
            "length",
            "num",
            "memory",
            "its number of words, stop words left out",
            "words",
            ">= 0",
            _WORDS,
        ),
        Feature(
            "words", "num", "memory", "its number of words", "words", ">= 0", _WORDS, on_demand=True
        ),
        Feature(
            "says-when",
            "bool",
            "memory",
            "a word of it tells a time",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "says-number",
            "bool",
            "memory",
            "a word of it is a number",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "first-person",
            "bool",
            "memory",
            "it says I, my, me, we, our or mine",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "says-change",
            "bool",
            "memory",
            "a word of it says that something changed (now, moved, instead ...)",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "says-others",
            "bool",
            "memory",
            "a word of it speaks of someone or something else (she, another, neighbours ...)",
            depends=_WORDS,
            on_demand=True,
        ),
        Feature(
            "speaker-role",
            "str",
            "memory",
            "what who said it is called (user, assistant, system, tool), else who wrote it; other: a name or none",
            words=SPEAKER_ROLES,
            on_demand=True,
        ),
        # what spreading found
        Feature(
            "seed",
            "num",
            "spread",
            "seed-score; 0 for what only spreading reached",
            "",
            "",
            _SEEDS,
            version=2,
        ),
        Feature(
            "received",
            "num",
            "spread",
            "what arrived over edges; 0 for none",
            "",
            ">= 0",
            _SPREAD,
            version=2,
        ),
        Feature(
            "activation",
            "num",
            "spread",
            "activation after spreading, its own as a seed included",
            "",
            "",
            _SPREAD,
            version=2,
        ),
        Feature(
            "hops",
            "num",
            "spread",
            "edges from the nearest seed; 0 for a direct candidate",
            "edges",
            ">= 0",
            _SPREAD,
            version=2,
        ),
        Feature(
            "session-seed",
            "num",
            "spread",
            "greatest seed-score of its session in the pool",
            "",
            "",
            (*_SPREAD, "cut", "pool"),
            version=2,
        ),
        Feature(
            "takes-over",
            "num",
            "spread",
            "greatest, over the older memories of the pool that its speaker said in another session, of the closeness "
            "of the two (0 if below) times the cube of the older one's relevance: the mean of late and similarity, "
            "each from 0 to 1 over the pool",
            "",
            "0..1",
            ("embedder", *_WORDS, *_SPREAD, "cut", "pool"),
            on_demand=True,
            version=2,
        ),
        Feature(
            "corrects",
            "num",
            "spread",
            "of a correction: greatest, over the older memories of its speaker in the pool, of the relevance, cubed, "
            "times how surely it corrects that one, by closeness for their lengths, common words, late, says-change; "
            "relevance is late, or the mean of late and similarity, each from 0 to 1 over the pool, if that is "
            "greater; 0 for any other kind",
            "",
            "0..1",
            ("embedder", *_WORDS, *_SPREAD, "cut", "pool"),
            on_demand=True,
        ),
        # time and use
        Feature("age-days", "num", "memory", "time since it was created", "days", ">= 0"),
        Feature(
            "idle-days",
            "num",
            "memory",
            "time since it was last recalled, or created",
            "days",
            ">= 0",
        ),
        Feature(
            "recency",
            "num",
            "memory",
            "0.5 ^ (idle-days / half-life)",
            "share",
            "0..1",
            _RECENCY,
            nullable=True,
        ),
        Feature(
            "elapsed-days", "num", "memory", "time since its last use: idle-days", "days", ">= 0"
        ),
        Feature(
            "retention",
            "num",
            "memory",
            "what the retention policy gives",
            "share",
            ">= 0",
            _RETENTION,
            nullable=True,
        ),
        Feature("access", "num", "memory", "how often it was recalled", "count", ">= 0"),
        Feature("uses", "num", "memory", "access + 1: its creation counts", "count", ">= 1"),
        *(
            Feature(
                f"use-{number}-days",
                "num",
                "memory",
                f"age of its latest use but {number - 1}, creation included"
                if number > 1
                else "age of its latest use",
                "days",
                ">= 0",
                nullable=number > 1,
            )
            for number in range(1, USES + 1)
        ),
        Feature("success", "num", "memory", "feedback of success so far", "count", ">= 0"),
        Feature("fail", "num", "memory", "feedback of failure so far", "count", ">= 0"),
        # what was given when it was stored
        Feature("importance", "num", "memory", "how much it matters", "share", "0..1"),
        Feature("confidence", "num", "memory", "how sure it is", "share", "0..1"),
        Feature(
            "trust",
            "num",
            "memory",
            "trust given to its source; null: none given",
            "share",
            "0..1",
            nullable=True,
        ),
        Feature(
            "strength", "num", "memory", "vividness when last recalled, or a count", "", ">= 0"
        ),
        Feature("energy", "num", "memory", "energy when last used", "share", "0..1"),
        Feature(
            "stability",
            "num",
            "memory",
            "days until the chance of recall falls to 0.9",
            "days",
            ">= 0",
            nullable=True,
        ),
        Feature(
            "difficulty", "num", "memory", "how hard it is to keep", "", "1..10", nullable=True
        ),
        Feature(
            "ttl-days",
            "num",
            "memory",
            "how long it is to live; null: for good",
            "days",
            ">= 0",
            nullable=True,
        ),
        Feature(
            "emotional-weight", "num", "memory", "how much feeling it carries", "percent", "0..100"
        ),
        Feature(
            "recency-weight", "num", "memory", "how much its own recency may add", "share", "0..1"
        ),
        Feature("pinned", "bool", "memory", "kept fresh whatever its age"),
        Feature("kind", "str", "memory", "what sort of memory it is", words=KINDS),
        Feature("scope", "str", "memory", "how far it reaches", words=SCOPES),
        Feature("provenance", "str", "memory", "how it came to be known", words=PROVENANCES),
        Feature("visibility", "str", "memory", "who may see it", words=VISIBILITIES),
        Feature("source", "str", "memory", "what it was learned from", words=SOURCES),
        Feature("status", "str", "memory", "where it is in its life", words=STATUSES),
        Feature("tags", "set", "memory", "its labels"),
        Feature("files", "set", "memory", "the paths that it is about"),
    ),
    kind="features",
    about="formula",
    check=_refusal,
)
"""Every feature by name, with its type, formula, unit and range: docs/policy-language.md#features."""
