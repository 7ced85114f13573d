"""Every feature that a policy may read, declared once.

The checker, the error messages, the documentation and the slates read this table.
`memlab.kernel.recall` computes the values. A feature's `fingerprint` changes with its definition.
Where the value depends on the embedder or on settings of the pack, the fingerprint changes with
them too. A logged value may be reused only under the same fingerprint.
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
    """A named value of one candidate memory.

    Parameters
    ----------
    name
        Name of the feature in a policy, in lower case with hyphens.
    type
        Type of the value: a number, a boolean, a string or a set of strings.
    stage
        Earliest stage at which the value exists. A ``memory`` feature needs the memory and the time alone, a ``query``
        feature also the query. A ``spread`` feature exists only after spreading.
    formula
        Definition of the value in words or as a formula. The formula is part of the fingerprint, so
        a new wording makes logged values unusable.
    unit
        Unit of a number, such as ``days``; empty if it has none.
    range
        Range of a number, such as ``0..1``; empty if it is unbounded.
    depends
        Names of settings, slots or ``embedder`` that decide the value in addition to the formula.
    words
        All possible values of a string; empty if any string is possible.
    version
        Version of the definition. A higher number means that older logged values are not comparable.
    nullable
        True if a number may be null; arrays hold null as NaN.
    on_demand
        True if a slate stores the value only if a policy of the pack or of a challenger reads it. Such features cost a
        tenth of a recall or more. A log without the value omits the fingerprint.
    compute
        Function of an extension that computes the values, one for each memory of a `Pool`.
    owner
        Name and version of the extension that declares the feature; empty for memlab's own.
    doc
        Description for readers, one or more sentences. The description may be reworded at any time.
        By default the formula.
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
    owner: str = ""
    doc: str = field(default="", compare=False)

    @property
    def description(self) -> str:
        """Text that explains the feature: `doc`, or by default the formula."""
        return self.doc or self.formula

    def __repr__(self) -> str:
        of = f" of {self.owner}" if self.owner else ""
        return printable(f"<Feature {self.name}{of}, {self.type}: {clip(self.description, 80)}>")

    def fingerprint(self, dependencies: dict[str, str]) -> str:
        """Return a hash of everything that determines the feature's values.

        The fingerprint of an extension's feature also names the extension and its version.

        Parameters
        ----------
        dependencies
            Hash or value of each dependency by name. Names that are not in `depends` are ignored.

        Returns
        -------
        str
            16 hexadecimal digits, followed by name and version of the extension if one owns the feature.
        """
        parts = [self.name, self.type, self.formula, str(self.version)]
        parts += [f"{name}={dependencies[name]}" for name in self.depends if name in dependencies]
        hash = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
        return f"{hash} {self.owner}" if self.owner else hash


def _describe_feature_fault(feature: Feature) -> str | None:
    """Return the reason to refuse a feature of an extension, or None to accept it."""
    if feature.compute is None:
        return f"The feature {feature.name} has no function: give compute=, a function from a Pool to its values."
    if feature.stage == "spread" or feature.type == "set":
        return f"The feature {feature.name} of an extension has the stage memory or query, and is num, bool or str."
    return None


# Dependencies shared by several features: names of settings and slots whose values enter the fingerprint.
_WORDS = ("language",)
_BM25 = (*_WORDS, "bm25-k1", "bm25-b")
_RECENCY = ("half-life", "base-half-life")
_RETENTION = ("retention", *_RECENCY)
# A seed-score may aggregate over all candidates and read any of their features.
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

# The `formula` of a feature is hashed into its fingerprint and is therefore never reworded. People read `doc`.
FEATURES: Registry[Feature] = Registry(
    "feature",
    (
        # The query compared with the memory.
        Feature(
            "similarity",
            "num",
            "query",
            "cosine of the question and the memory",
            "",
            "-1..1",
            ("embedder",),
            doc="Cosine of the query's vector and the memory's vector.",
        ),
        Feature(
            "closeness",
            "num",
            "query",
            "similarity on the scale of all-MiniLM-L6-v2: at equal quantiles for the shipped model, else as it is",
            "",
            "-1..1",
            ("embedder",),
            doc=(
                "Similarity mapped to the scale of all-MiniLM-L6-v2 by equal quantiles; with another "
                "embedder, the similarity."
            ),
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
            doc=(
                "Closeness adjusted for thresholds: closeness + coverage - 0.126 ln(length / 12), at most "
                "1. Unspecific words of the query (user, like, do) do not count unless it has no others. "
                "With another embedder, closeness."
            ),
        ),
        Feature(
            "lexical",
            "num",
            "query",
            "BM25 of the memory's words; of a long text, of its best passage",
            "",
            ">= 0",
            _BM25,
            doc="BM25 score of the memory's words; for a long text, of its best passage.",
        ),
        Feature(
            "coverage",
            "num",
            "query",
            "share of the question's idf mass found in the memory; of a long text, in its best passage",
            "share",
            "0..1",
            _WORDS,
            doc=(
                "Share of the query's words, weighted by idf, that the memory contains; for a long text, "
                "that its best passage contains."
            ),
        ),
        Feature(
            "session-lexical",
            "num",
            "query",
            "BM25 of the whole session as one document",
            "",
            ">= 0",
            _BM25,
            doc="BM25 score of the memory's whole session, read as one document.",
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
            doc="Coverage of the preceding memory in the same session.",
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
            doc="Share of the query's adjacent word pairs that are adjacent in the text; stop words do not count.",
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
            doc=(
                "Late interaction: for each query word, the cosine of its vector and the most similar word "
                "of the text, averaged with idf weights. Equal stems give 1, negative cosines 0. Stop "
                "words and speakers' names are left out; for a long text, the best passage counts."
            ),
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
            doc=(
                "BM25 score (k1 0.9, b 0.2) of the memory together with the two memories before and the "
                "two after it in the session; speakers' names are left out."
            ),
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
            doc="Mean similarity of the memory, the two memories before it and the two after it in the session.",
        ),
        Feature(
            "reliance",
            "num",
            "query",
            "quality of the lab's embedder, from halves of its texts: 0 as the shipped model, 1 from 2.5 times its effect",
            "share",
            "0..1",
            ("embedder",),
            on_demand=True,
            doc=(
                "How much better than the shipped model the lab's embedder tells the second half of a text from other "
                "second halves: 0 for the shipped model, 1 for an effect of 2.5 times its."
            ),
        ),
        Feature(
            "asks-when",
            "bool",
            "query",
            "the question asks for a time",
            depends=_WORDS,
            on_demand=True,
            doc="True if the query asks for a time.",
        ),
        Feature(
            "asks-how-many",
            "bool",
            "query",
            "the question asks for a number or a span",
            depends=_WORDS,
            on_demand=True,
            doc="True if the query asks for a number or a duration.",
        ),
        Feature(
            "asks-you",
            "bool",
            "query",
            "the question asks what the listener said or did, or for a summary",
            depends=_WORDS,
            on_demand=True,
            version=2,
            doc='True if the query asks what the assistant said ("did you", "your advice") or for a summary.',
        ),
        Feature(
            "asks-now",
            "bool",
            "query",
            "the question asks what holds (is, do, has ...), not what was (did, was ...)",
            depends=_WORDS,
            on_demand=True,
            doc="True if the query asks about the present (is, do, has ...) and not about the past (did, was ...).",
        ),
        Feature(
            "asks-over-time",
            "bool",
            "query",
            "the question compares times or asks for what was (between, than, total, originally ...)",
            depends=_WORDS,
            on_demand=True,
            doc=(
                "True if the query compares times or asks about an earlier state (between, than, total, originally ...)."
            ),
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
            doc=(
                "Largest share of the query's words, stop words left out, that one statement of the memory "
                "has in common with a later memory that restates it (an updates edge); 0 below two fifths."
            ),
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
            doc=(
                "Number of capitalised words inside the memory's sentences, at most 3; speakers' names are left out."
            ),
        ),
        Feature(
            "date-gap",
            "num",
            "query",
            "time from the nearest day that the question names to its creation; 0: on that day; null: it names none",
            "days",
            nullable=True,
            doc=(
                "Days between the memory's creation and the nearest date in the query; 0 on that date; "
                "null if the query has no date."
            ),
        ),
        Feature(
            "names-date",
            "num",
            "query",
            "1 if it was created when the question says (2023-05-07, May 2023, last week), else 0; null: no date",
            "",
            "0..1",
            nullable=True,
            doc=(
                "1 if the memory was created at the time named in the query (2023-05-07, May 2023, last "
                "week), else 0; null if the query names none."
            ),
        ),
        Feature(
            "names-file",
            "bool",
            "query",
            "the question names one of its files, by path, end of path, name or stem",
            depends=_WORDS,
            doc="True if the query names a file of the memory by path, end of path, file name or stem.",
        ),
        Feature(
            "names-tag",
            "bool",
            "query",
            "the words of one of its tags stand in the question",
            depends=_WORDS,
            doc="True if the query contains the words of one of the memory's tags.",
        ),
        Feature(
            "names-speaker",
            "bool",
            "query",
            "the question contains a name of who said it",
            doc="True if the query contains the name of the memory's speaker.",
        ),
        Feature(
            "names-other",
            "bool",
            "query",
            "the question names a speaker, but not who said this",
            doc="True if the query names a speaker, but not the memory's speaker.",
        ),
        Feature(
            "query-tags",
            "set",
            "query",
            "what the question writes as #tag, without the #",
            doc="Tags written in the query as #tag, without the #.",
        ),
        Feature(
            "triggered",
            "bool",
            "query",
            "one of its triggers occurs in the question, in any case",
            doc="True if the query contains one of the memory's triggers, in upper or lower case.",
        ),
        Feature(
            "same-session",
            "bool",
            "query",
            "it comes from the session that asks",
            doc="True if the memory and the query belong to one session.",
        ),
        Feature(
            "same-branch",
            "bool",
            "query",
            "it has no branch, or the one that asks",
            doc="True if the memory has no branch or the query's branch.",
        ),
        # Form of the memory's text.
        Feature(
            "asks",
            "bool",
            "memory",
            "its text holds a question mark",
            doc="True if the memory's text contains a question mark.",
        ),
        Feature(
            "answers",
            "bool",
            "memory",
            "the memory just before in its session asks",
            doc="True if the preceding memory of the session contains a question mark.",
        ),
        Feature(
            "length",
            "num",
            "memory",
            "its number of words, stop words left out",
            "words",
            ">= 0",
            _WORDS,
            doc="Number of words in the memory's text, stop words left out.",
        ),
        Feature(
            "words",
            "num",
            "memory",
            "its number of words",
            "words",
            ">= 0",
            _WORDS,
            on_demand=True,
            doc="Number of words in the memory's text.",
        ),
        Feature(
            "says-when",
            "bool",
            "memory",
            "a word of it tells a time",
            depends=_WORDS,
            on_demand=True,
            doc="True if the memory's text contains a word for a time.",
        ),
        Feature(
            "says-number",
            "bool",
            "memory",
            "a word of it is a number",
            depends=_WORDS,
            on_demand=True,
            doc="True if the memory's text contains a number.",
        ),
        Feature(
            "first-person",
            "bool",
            "memory",
            "it says I, my, me, we, our or mine",
            depends=_WORDS,
            on_demand=True,
            doc="True if the memory's text contains I, my, me, we, our or mine.",
        ),
        Feature(
            "says-change",
            "bool",
            "memory",
            "a word of it says that something changed (now, moved, instead ...)",
            depends=_WORDS,
            on_demand=True,
            doc="True if the memory's text contains a word for a change (now, moved, instead ...).",
        ),
        Feature(
            "says-others",
            "bool",
            "memory",
            "a word of it speaks of someone or something else (she, another, neighbours ...)",
            depends=_WORDS,
            on_demand=True,
            doc="True if the memory's text refers to other people or things (she, another, neighbours ...).",
        ),
        Feature(
            "says-rule",
            "bool",
            "memory",
            "a word of it states a rule or a preference (always, never, prefer ...)",
            depends=_WORDS,
            on_demand=True,
            doc="True if the memory's text has a word for a rule or a preference (always, never, prefer ...).",
        ),
        Feature(
            "speaker-role",
            "str",
            "memory",
            "what who said it is called (user, assistant, system, tool), else who wrote it; other: a name or none",
            words=SPEAKER_ROLES,
            on_demand=True,
            doc=(
                "Role of the memory's speaker: user, assistant, system or tool, else the role of its "
                "author; other for a name or no speaker."
            ),
        ),
        # Results of spreading.
        Feature(
            "seed",
            "num",
            "spread",
            "seed-score; 0 for what only spreading reached",
            "",
            "",
            _SEEDS,
            version=2,
            doc="Seed-score of the memory; 0 if only spreading reached it.",
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
            doc="Activation received over edges; 0 if there was none.",
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
            doc="Activation after spreading: the memory's own as a seed and the activation received over edges.",
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
            doc="Number of edges from the nearest seed; 0 for a memory that the search found directly.",
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
            doc="Largest seed-score in the pool among memories of the same session.",
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
            doc=(
                "Evidence that the memory replaces an older one. The maximum, over older memories of the "
                "pool by the same speaker in other sessions, of closeness (at least 0) times relevance "
                "cubed. Relevance is the mean of late and similarity, both scaled to 0..1 over the pool."
            ),
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
            doc=(
                "Evidence that a memory of the kind correction corrects another one; 0 for other kinds. "
                "The maximum, over older memories of the pool by the same speaker, of relevance cubed "
                "times the certainty of the correction. The certainty follows from closeness for their "
                "lengths, common words, late and says-change."
            ),
        ),
        # Time and use.
        Feature(
            "age-days",
            "num",
            "memory",
            "time since it was created",
            "days",
            ">= 0",
            doc="Days since the memory was created.",
        ),
        Feature(
            "idle-days",
            "num",
            "memory",
            "time since it was last recalled, or created",
            "days",
            ">= 0",
            doc="Days since the memory was last recalled, or since its creation if it never was.",
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
            doc="Exponential decay of the time without recall: 0.5 ^ (idle-days / half-life).",
        ),
        Feature(
            "elapsed-days",
            "num",
            "memory",
            "time since its last use: idle-days",
            "days",
            ">= 0",
            doc="Days since the memory was last used; equal to idle-days.",
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
            doc="Value of the pack's retention policy for the memory.",
        ),
        Feature(
            "access",
            "num",
            "memory",
            "how often it was recalled",
            "count",
            ">= 0",
            doc="Number of times the memory was recalled.",
        ),
        Feature(
            "uses",
            "num",
            "memory",
            "access + 1: its creation counts",
            "count",
            ">= 1",
            doc="Number of uses, the creation included: access + 1.",
        ),
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
                doc=f"Days since use number {number}, counted from the latest; null if there were fewer uses."
                if number > 1
                else "Days since the latest use, the creation included.",
            )
            for number in range(1, USES + 1)
        ),
        Feature(
            "success",
            "num",
            "memory",
            "feedback of success so far",
            "count",
            ">= 0",
            doc="Number of times feedback called the memory a success.",
        ),
        Feature(
            "fail",
            "num",
            "memory",
            "feedback of failure so far",
            "count",
            ">= 0",
            doc="Number of times feedback called the memory a failure.",
        ),
        # Fields stored with the memory.
        Feature(
            "importance",
            "num",
            "memory",
            "how much it matters",
            "share",
            "0..1",
            doc="Importance of the memory, from 0 (trivial) to 1 (essential).",
        ),
        Feature(
            "confidence",
            "num",
            "memory",
            "how sure it is",
            "share",
            "0..1",
            doc="Confidence that the memory is correct.",
        ),
        Feature(
            "trust",
            "num",
            "memory",
            "trust given to its source; null: none given",
            "share",
            "0..1",
            nullable=True,
            doc="Trust in the memory's source; null if none was given.",
        ),
        Feature(
            "strength",
            "num",
            "memory",
            "vividness when last recalled, or a count",
            "",
            ">= 0",
            doc="Strength of the memory at its last recall: vividness, or a count.",
        ),
        Feature(
            "energy",
            "num",
            "memory",
            "energy when last used",
            "share",
            "0..1",
            doc="Energy of the memory at its last use.",
        ),
        Feature(
            "stability",
            "num",
            "memory",
            "days until the chance of recall falls to 0.9",
            "days",
            ">= 0",
            nullable=True,
            doc="Days until the probability of recall falls to 0.9 (FSRS).",
        ),
        Feature(
            "difficulty",
            "num",
            "memory",
            "how hard it is to keep",
            "",
            "1..10",
            nullable=True,
            doc="Difficulty of retaining the memory (FSRS).",
        ),
        Feature(
            "ttl-days",
            "num",
            "memory",
            "how long it is to live; null: for good",
            "days",
            ">= 0",
            nullable=True,
            doc="Time to live of the memory; null if it never expires.",
        ),
        Feature(
            "emotional-weight",
            "num",
            "memory",
            "how much feeling it carries",
            "percent",
            "0..100",
            doc="Emotional intensity of the memory.",
        ),
        Feature(
            "recency-weight",
            "num",
            "memory",
            "how much its own recency may add",
            "share",
            "0..1",
            doc="Largest amount that the memory's own recency may add to its score.",
        ),
        Feature(
            "pinned",
            "bool",
            "memory",
            "kept fresh whatever its age",
            doc="True if the memory is pinned, which keeps it fresh at any age.",
        ),
        Feature(
            "kind",
            "str",
            "memory",
            "what sort of memory it is",
            words=KINDS,
            doc="Kind of the memory, such as turn, fact or preference.",
        ),
        Feature(
            "scope",
            "str",
            "memory",
            "how far it reaches",
            words=SCOPES,
            doc="Scope in which the memory is valid.",
        ),
        Feature(
            "provenance",
            "str",
            "memory",
            "how it came to be known",
            words=PROVENANCES,
            doc="Way in which the memory was obtained.",
        ),
        Feature(
            "visibility",
            "str",
            "memory",
            "who may see it",
            words=VISIBILITIES,
            doc="Group of viewers to whom the memory is visible.",
        ),
        Feature(
            "source",
            "str",
            "memory",
            "what it was learned from",
            words=SOURCES,
            doc="Type of source from which the memory was obtained.",
        ),
        Feature(
            "status",
            "str",
            "memory",
            "where it is in its life",
            words=STATUSES,
            doc="Lifecycle status of the memory.",
        ),
        Feature("tags", "set", "memory", "its labels", doc="Tags of the memory."),
        Feature(
            "files",
            "set",
            "memory",
            "the paths that it is about",
            doc="Paths of the files that the memory is about.",
        ),
    ),
    kind="features",
    about="description",
    check=_describe_feature_fault,
)
"""Every feature by name, with its type, description, unit and range: docs/reference/policy-language.md#features."""
