"""The settings of the pipeline that a pack may give, declared once with type and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Literal

from memlab.errors import InputError, UnknownName
from memlab.kernel.graph import SPREAD_MODES
from memlab.kernel.index import LANGUAGES
from memlab.kernel.registry import Registry
from memlab.kernel.schema import VISIBILITIES

SettingValue = float | bool | str

ANCHORS = ("all", "entities-first")

_LONGEST = 2_000
"""Characters of a setting that is a text."""


@dataclass(frozen=True)
class Setting:
    """One setting.

    ``default`` is its value in a pack that does not give it; the hash of such a pack is as before the setting existed.
    ``version`` is raised when a value comes to mean something else, and counts in hashes and fingerprints from 2 on.
    """

    name: str
    type: Literal["count", "num", "bool", "word", "text"]
    doc: str
    low: float = 0
    high: float = inf
    words: tuple[str, ...] = ()
    default: SettingValue | None = None
    version: int = 1
    owner: str = ""


def _refusal(setting: Setting) -> str | None:
    """Return why an extension's setting is refused: a pack of today does not give it."""
    return f"The setting {setting.name} has no default." if setting.default is None else None


SETTINGS: Registry[Setting] = Registry(
    "setting",
    (
        Setting("limit", "count", "memories that a recall shows unless the caller says", 1, 10_000),
        Setting("dense-candidates", "count", "nearest vectors that become candidates", 0, 100_000),
        Setting(
            "lexical-candidates", "count", "best BM25 scores that become candidates", 0, 100_000
        ),
        Setting(
            "pool",
            "count",
            "candidates that are scored and logged: the best by the policy cut",
            1,
            100_000,
        ),
        Setting(
            "language",
            "word",
            "language of the words: its stems, its stop words; none: words as written",
            words=LANGUAGES,
        ),
        Setting("bm25-k1", "num", "BM25: how soon a repeated word saturates", 0, 10),
        Setting("bm25-b", "num", "BM25: how much a long memory is held back", 0, 1),
        Setting("seeds", "count", "best candidates from which activation spreads", 0, 100_000),
        Setting(
            "entity-seeds",
            "count",
            "entities nearest to the question, or named in it, from which activation spreads too",
        ),
        Setting(
            "entity-floor",
            "num",
            "closeness from which an entity that the query does not name is near enough to begin",
            0,
            1,
            default=0.0,
        ),
        Setting(
            "anchors",
            "word",
            "where activation begins: at candidates and entities, or at candidates only if no entity is near enough",
            words=ANCHORS,
            default="all",
        ),
        Setting("spread-steps", "count", "edges that activation crosses", 0, 100),
        Setting("spread-threshold", "num", "activation below which nothing passes", 0),
        Setting(
            "spread-mode",
            "word",
            "breadth first, the best arrival counts; all at once, arrivals add up; one step each, unweighed; PageRank",
            words=SPREAD_MODES,
        ),
        Setting(
            "fan-out",
            "count",
            "edges of one memory or node that activation crosses: its newest",
            1,
            1_000_000,
        ),
        Setting(
            "known-floor",
            "num",
            "what known must give for a recall to show more than unknown-limit",
            0,
            1,
            default=0.0,
        ),
        Setting(
            "unknown-limit",
            "count",
            "most memories that a recall shows where known is below its floor",
            1,
            default=5,
        ),
        Setting("probe-rate", "num", "share of logged recalls that also show probes", 0, 1),
        Setting(
            "probe-depth",
            "count",
            "ranks below the shown ones from which a probe is drawn",
            1,
            100_000,
        ),
        Setting(
            "probe-floor", "num", "share of a probe's probability that is the same for all", 0, 1
        ),
        Setting("probes", "count", "how many probes such a recall shows", 1, 1000),
        Setting("damping", "num", "share of activation that an edge passes on", 0, 1),
        Setting("base-half-life", "num", "days, given to the half-life policy", 1e-6, 1e9),
        Setting(
            "triggers",
            "bool",
            "whether a memory becomes a candidate when one of its triggers occurs",
        ),
        Setting(
            "fact-status",
            "word",
            "status in which a fact begins",
            words=("active", "staged", "confirmed"),
        ),
        Setting(
            "mmr-weight",
            "num",
            "share of the score against likeness to what is shown already; 1: score alone",
            0,
            1,
        ),
        Setting(
            "collapse-above",
            "num",
            "closeness above which only the better of two candidates is shown; 1: both",
            -1,
            1,
        ),
        Setting(
            "linking",
            "word",
            "when new memories are compared with old ones: never, before they are stored, in the background after",
            words=("off", "now", "later"),
        ),
        Setting(
            "link-candidates",
            "count",
            "nearest neighbours that a new memory is compared with",
            0,
            1000,
        ),
        Setting(
            "conflict-closeness",
            "num",
            "closeness above which resolve decides too about a pair that link calls similar or related, where one "
            "denies the other or gives its property another value; 1: never",
            -1,
            1,
        ),
        Setting(
            "destroy-certainty",
            "num",
            "pair/certainty below which nothing is superseded, merged or dropped, whatever resolve decides: both stay, "
            "joined by contradicts or updates; what repeats another word for word may merge; 0: resolve alone decides",
            0,
            1,
        ),
        Setting(
            "edges-per-node",
            "count",
            "most edges of one relation that linking leaves a memory, the strongest; 0: any number",
            0,
            1_000_000,
        ),
        Setting(
            "merge-gain",
            "num",
            "strength that a memory gains by a near-duplicate merged into it",
            0,
        ),
        Setting(
            "merge-access",
            "num",
            "accesses that a memory gains by each near-duplicate merged into it",
            0,
            1000,
            default=0.0,
        ),
        Setting(
            "edge-gain",
            "num",
            "what shared use adds to the weight of an edge, which ends at 1",
            0,
            1,
        ),
        Setting(
            "coactivation-gain",
            "num",
            "what being shown by one recall adds to the weight of an edge between two memories, which ends at 1",
            0,
            1,
            default=0.0,
        ),
        Setting(
            "edge-pairs",
            "count",
            "most pairs of memories whose edges one shared use changes",
            0,
            10_000,
        ),
        Setting(
            "tag-share",
            "num",
            "share of verified memories above which a tag is given to the others; 1: never",
            0,
            1,
        ),
        Setting(
            "verify-coverage",
            "num",
            "coverage from which the verifier that comes with memlab lets a hit pass",
            0,
            1,
        ),
        Setting(
            "admit-threshold", "num", "value of admit from which an utterance is remembered", 0, 1
        ),
        Setting(
            "single-valued",
            "text",
            "predicates that have one value at a time, with spaces between; a star stands for the rest of a name",
            default="lives-in works-at status name age birthday prefers:*",
        ),
        Setting(
            "succession-confidence",
            "num",
            "confidence from which a fact that was extracted ends an older one; above 1: never",
            0,
            2,
            default=0.8,
        ),
        Setting(
            "initial-confidence", "num", "confidence of a memory for which none was given", 0, 1
        ),
        Setting(
            "initial-strength",
            "num",
            "strength of a memory for which none was given",
            0,
            1e9,
            default=100.0,
        ),
        Setting(
            "session-writes",
            "count",
            "memories that an agent may write in a session; 0: any number",
            0,
        ),
        Setting("write-bytes", "count", "bytes that an agent's memory may have; 0: any number", 0),
        Setting(
            "redact-cards",
            "bool",
            "whether numbers of payment cards are redacted in texts and questions",
        ),
        Setting("redact-ibans", "bool", "whether IBANs are redacted in texts and questions"),
        Setting(
            "redact-social-security", "bool", "whether US social security numbers are redacted"
        ),
        Setting(
            "redact-phones", "bool", "whether phone numbers are redacted in texts and questions"
        ),
        Setting(
            "redact-emails", "bool", "whether e-mail addresses are redacted in texts and questions"
        ),
        Setting(
            "visibility",
            "word",
            "who may see a memory whose creator is given and for which nothing else is; by-creator: what an agent "
            "writes everyone with the project, what anybody else writes its creator alone",
            words=(*VISIBILITIES, "by-creator"),
            default="project",
        ),
        Setting(
            "open-words",
            "bool",
            "whether a memory may be of any kind, and an edge of any relation, that is a short word, beside those with "
            "a name here",
            default=False,
        ),
        Setting(
            "infer-tags",
            "word",
            "what gives a memory tags: nothing, its paths, or also its topics (plain English) and its entities",
            words=("off", "paths", "all"),
            default="off",
        ),
        Setting(
            "infer-entities",
            "word",
            "whether a memory that is no turn mentions the entities that its text names (plain English)",
            words=("off", "names"),
            default="off",
        ),
        Setting(
            "infer-common-tag",
            "bool",
            "whether verified memories of one recall that share no tag get one: a topic, or a word that all of them "
            "and the question have",
            default=False,
        ),
        Setting(
            "consent",
            "word",
            "whether memory is on for every project, or off for each until somebody consents: lab.agents.switch_on",
            words=("given", "needed"),
            default="given",
        ),
        Setting(
            "ignored-files",
            "bool",
            "whether a memory may not point to a file that a .gitignore or .secretsignore above it leaves out",
            default=False,
        ),
        Setting(
            "flag-contradictions",
            "bool",
            "whether a context says of a memory what contradicts it, where that is in use too",
            default=False,
        ),
        Setting(
            "maintain-after-session",
            "bool",
            "whether the end of a session and of a conversation runs a pass of lab.upkeep.maintain",
            default=False,
        ),
        Setting(
            "write-summary",
            "bool",
            "whether a memory, unless it is a turn, gets a summary of at most 35 tokens where none is given",
            default=False,
        ),
        Setting("tier-1-tokens", "count", "token budget of what a prompt always holds"),
        Setting("tier-2-tokens", "count", "token budget of what a task brings up"),
        Setting(
            "tier-3-tokens",
            "count",
            "token budget of one result on request: at least 8, whatever is given",
        ),
        Setting(
            "context-days",
            "bool",
            "whether a context says the day of a note before its words: of two that differ, which came later",
            default=False,
        ),
        Setting(
            "recall-again",
            "bool",
            "whether an agent's recall shows again what the agent was given before in the session",
            default=True,
        ),
        Setting(
            "always-kinds",
            "text",
            "kinds of which a prompt always holds some, beside what is pinned, with spaces between",
            default="codebase-map convention decision",
        ),
        Setting(
            "forgotten-as",
            "word",
            "status of what the forget policy forgets",
            words=("forgotten", "expired", "deleted"),
        ),
        Setting(
            "upkeep-hours", "num", "hours between two passes of lab.upkeep.schedule", 1e-6, 1e6
        ),
        Setting(
            "grace-days", "num", "days after which what was deleted is due to be purged", 0, 1e6
        ),
        Setting(
            "topic-closeness",
            "num",
            "closeness to the last context below which a topic is new",
            -1,
            1,
        ),
        Setting("refine-every", "count", "recalls between two refinements of clusters; 0: none", 0),
        Setting(
            "cluster-closeness",
            "num",
            "cosine to a cluster's centroid, both less the mean, from which upkeep lets a memory join; 0: none joins",
            0,
            1,
        ),
        Setting(
            "cluster-merge",
            "num",
            "share of the lesser radius within which two clusters become one; 0: none do",
            0,
            2,
        ),
        Setting(
            "consolidate-days",
            "num",
            "days, given to the consolidate policy unless the caller says",
            0,
            1e6,
        ),
        Setting("consolidate-least", "count", "least memories that a summary replaces", 2, 100_000),
        Setting(
            "consolidate-keep",
            "count",
            "memories of each group that stay beside its summary: the most important",
            0,
        ),
        Setting(
            "summary-tokens", "count", "most tokens of a summary that memlab makes", 1, 100_000
        ),
        Setting(
            "familiarity-start", "num", "familiarity before the first conversation, of 100", 0, 100
        ),
        Setting(
            "familiarity-gain",
            "num",
            "share of the familiarity still missing that a conversation adds",
            0,
            1,
        ),
        Setting("trust-start", "num", "trust before the first recall was judged, of 100", 0, 100),
        Setting("trust-gain", "num", "trust that a helpful recall adds, of 100", 0, 100),
        Setting("trust-loss", "num", "trust that an unhelpful recall takes, of 100", 0, 100),
    ),
    kind="settings",
    about="doc",
    check=_refusal,
)
"""Every setting by name: docs/policy-language.md#settings. Values by pack: docs/systems.md#settings-of-each-pack."""


FORMER_SETTINGS: Mapping[str, tuple[str, Mapping[str, SettingValue]]] = MappingProxyType(
    {"spread-combine": ("spread-mode", {"max": "cascade", "sum": "energy"})}
)
"""Settings that packs of earlier versions give: the one that took their place, and its value for each of theirs."""


def current_setting(name: str, value: object) -> tuple[str, object]:
    """Return a setting as packs of today give it: another one for what ``FORMER_SETTINGS`` lists, else the same."""
    if name not in FORMER_SETTINGS:
        return name, value
    now, values = FORMER_SETTINGS[name]
    if value not in values:
        raise InputError(
            f"Setting {name}, which is {now} today, is one of {', '.join(values)}, not {value!r}."
        )
    return now, values[str(value)]


def checked_setting(name: str, value: object) -> SettingValue:
    """The value if the setting exists and takes it."""
    try:
        declared = SETTINGS[name]
    except KeyError:
        raise UnknownName("setting", name, SETTINGS) from None
    if declared.type == "word":
        if value not in declared.words:
            raise InputError(
                f"Setting {name} is one of {', '.join(declared.words)}, not {value!r}."
            )
        return str(value)
    if declared.type == "text":
        if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
            raise InputError(
                f"Setting {name} is a printable text of at most {_LONGEST:,} characters, not {value!r:.60}."
            )
        return value
    if declared.type == "bool":
        if not isinstance(value, bool):
            raise InputError(f"Setting {name} is true or false, not {value!r}.")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InputError(f"Setting {name} is a number, not {value!r}.")
    if not declared.low <= value <= declared.high:
        raise InputError(
            f"Setting {name} lies in {declared.low:g}..{declared.high:g}, not {value:g}."
        )
    if declared.type == "count":
        if value != int(value):
            raise InputError(f"Setting {name} is a whole number, not {value:g}.")
        return int(value)
    return float(value)
