"""The settings that a pack may assign, declared once with type, bounds and description."""

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

# The values of the setting `anchors`; packs store them.
ANCHORS = ("all", "entities-first")

_MAX_TEXT = 2_000
"""Maximum number of characters of a text setting, so that one line of a log can hold it."""


@dataclass(frozen=True)
class Setting:
    """One setting of a pack.

    Parameters
    ----------
    name
        Name of the setting in a pack, in lower case with hyphens.
    type
        Type of the value: a whole number, a number, a boolean, one of `words`, or a text.
    doc
        Description of the setting, one or more sentences.
    low, high
        Bounds of a number, both inclusive.
    words
        Possible values of a setting of type ``word``.
    default
        Value in a pack that does not assign the setting. The default is left out of the pack's
        hash, so a new setting with a default leaves the hashes of older packs unchanged. Without a
        default, every base pack must assign a value.
    version
        Version of the setting. It is raised when a value changes its meaning, and enters hashes from 2 on.
    owner
        Name and version of the extension that declares the setting; empty for memlab's own.
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


def _describe_setting_fault(setting: Setting) -> str | None:
    """Return the reason to refuse an extension's setting, or None to accept it.

    A setting of an extension needs a default, because existing packs do not assign it.
    """
    return (
        f"The setting {setting.name} has no default: give default=."
        if setting.default is None
        else None
    )


SETTINGS: Registry[Setting] = Registry(
    "setting",
    (
        Setting(
            "limit",
            "count",
            "Number of results of a recall, unless the caller requests another.",
            1,
            10_000,
        ),
        Setting(
            "dense-candidates",
            "count",
            "Number of nearest vectors that become candidates.",
            0,
            100_000,
        ),
        Setting(
            "lexical-candidates",
            "count",
            "Number of memories with the best BM25 scores that become candidates.",
            0,
            100_000,
        ),
        Setting(
            "pool",
            "count",
            "Maximum size of the candidate pool, which is scored and logged; the cut policy ranks its members.",
            1,
            100_000,
        ),
        Setting(
            "language",
            "word",
            "Language for stemming and stop words; with none, words are used as written.",
            words=LANGUAGES,
        ),
        Setting(
            "bm25-k1",
            "num",
            "BM25 parameter k1: the larger, the more a repeated word counts.",
            0,
            10,
        ),
        Setting(
            "bm25-b",
            "num",
            "BM25 parameter b: how strongly the scores of long memories are reduced.",
            0,
            1,
        ),
        Setting(
            "seeds", "count", "Number of best candidates from which activation spreads.", 0, 100_000
        ),
        Setting(
            "entity-seeds",
            "count",
            "Number of entities, nearest to the query or named in it, from which activation spreads as well.",
        ),
        Setting(
            "entity-floor",
            "num",
            "Minimum closeness to the query for an entity that the query does not name to become a seed.",
            0,
            1,
            default=0.0,
        ),
        Setting(
            "anchors",
            "word",
            "Starting points of activation: candidates and entities, or candidates only if no entity is near enough.",
            words=ANCHORS,
            default="all",
        ),
        Setting(
            "spread-steps", "count", "Maximum number of edges that activation crosses.", 0, 100
        ),
        Setting("spread-threshold", "num", "Activation below which a node passes nothing on.", 0),
        Setting(
            "spread-mode",
            "word",
            "Spreading algorithm. cascade: breadth first, the largest activation received counts. energy: "
            "all nodes at once, activation adds up. hops: one step per edge, weights ignored. ppr: personalised PageRank.",
            words=SPREAD_MODES,
        ),
        Setting(
            "fan-out",
            "count",
            "Maximum number of edges of one node that activation crosses; the newest are used.",
            1,
            1_000_000,
        ),
        Setting(
            "known-floor",
            "num",
            "Minimum value of the known policy for a recall to show more than unknown-limit results.",
            0,
            1,
            default=0.0,
        ),
        Setting(
            "unknown-limit",
            "count",
            "Maximum number of results if the known policy is below known-floor.",
            1,
            default=5,
        ),
        Setting(
            "probe-rate",
            "num",
            "Share of logged recalls that also show exploration items (probes), among recalls that explore.",
            0,
            1,
        ),
        Setting(
            "probe-depth",
            "count",
            "Number of ranks below the results from which a probe is drawn.",
            1,
            100_000,
        ),
        Setting(
            "probe-floor",
            "num",
            "Share of the drawing probability that is uniform over the ranks; the rest follows the explore policy.",
            0,
            1,
        ),
        Setting("probes", "count", "Number of probes in a recall that shows any.", 1, 1000),
        Setting(
            "damping",
            "num",
            "Share of activation that an edge passes on; the spread policy reads it.",
            0,
            1,
        ),
        Setting(
            "base-half-life", "num", "Half-life in days; the half-life policy reads it.", 1e-6, 1e9
        ),
        Setting(
            "triggers",
            "bool",
            "Whether a memory becomes a candidate if the query contains one of its triggers.",
        ),
        Setting(
            "fact-status",
            "word",
            "Initial status of a fact.",
            words=("active", "staged", "confirmed"),
        ),
        Setting(
            "mmr-weight",
            "num",
            "Weight of the score in maximal marginal relevance; the rest penalises similarity to earlier "
            "results. 1: score only.",
            0,
            1,
        ),
        Setting(
            "collapse-above",
            "num",
            "Closeness above which only the better of two candidates is shown; 1: both are shown.",
            -1,
            1,
        ),
        Setting(
            "linking",
            "word",
            "When new memories are compared with old ones: never, corrections only, before they are stored, or "
            "later in the background.",
            words=("off", "corrections", "now", "later"),
        ),
        Setting(
            "link-candidates",
            "count",
            "Number of nearest neighbours that a new memory is compared with.",
            0,
            1000,
        ),
        Setting(
            "conflict-closeness",
            "num",
            "Closeness above which resolve also decides about similar or related memories of which one "
            "denies the other or gives its property another value; 1: never.",
            -1,
            1,
        ),
        Setting(
            "destroy-certainty",
            "num",
            "Minimum pair/certainty for superseding, merging or dropping a memory. Below it both memories "
            "stay, joined by an edge contradicts or updates. Exact repetitions may merge at any certainty; "
            "0: the resolve policy alone decides.",
            0,
            1,
        ),
        Setting(
            "edges-per-node",
            "count",
            "Maximum number of edges of one relation that linking leaves at a memory, the strongest first; 0: no limit.",
            0,
            1_000_000,
        ),
        Setting(
            "merge-gain",
            "num",
            "Strength that a memory gains from each near-duplicate merged into it.",
            0,
        ),
        Setting(
            "merge-access",
            "num",
            "Accesses that a memory gains from each near-duplicate merged into it.",
            0,
            1000,
            default=0.0,
        ),
        Setting(
            "edge-gain",
            "num",
            "Increase of an edge's weight, up to 1, when both its memories are used together.",
            0,
            1,
        ),
        Setting(
            "coactivation-gain",
            "num",
            "Increase of an edge's weight, up to 1, when one recall shows both its memories.",
            0,
            1,
            default=0.0,
        ),
        Setting(
            "edge-pairs",
            "count",
            "Maximum number of pairs of memories whose edges one joint use changes.",
            0,
            10_000,
        ),
        Setting(
            "tag-share",
            "num",
            "Share of verified memories above which their common tag is given to the others; 1: never.",
            0,
            1,
        ),
        Setting(
            "verify-coverage",
            "num",
            "Minimum coverage at which the built-in verifier accepts a result.",
            0,
            1,
        ),
        Setting(
            "admit-threshold",
            "num",
            "Minimum value of the admit policy for an utterance to be stored.",
            0,
            1,
        ),
        Setting(
            "single-valued",
            "text",
            "Predicates with one value at a time, separated by spaces; * stands for any ending.",
            default="lives-in works-at status name age birthday prefers:*",
        ),
        Setting(
            "succession-confidence",
            "num",
            "Minimum confidence of an extracted fact to end an older one; above 1: never.",
            0,
            2,
            default=0.8,
        ),
        Setting("initial-confidence", "num", "Confidence of a memory stored without one.", 0, 1),
        Setting(
            "initial-strength",
            "num",
            "Strength of a memory stored without one.",
            0,
            1e9,
            default=100.0,
        ),
        Setting(
            "session-writes",
            "count",
            "Maximum number of memories that an agent may write in a session; 0: no limit.",
            0,
        ),
        Setting(
            "write-bytes",
            "count",
            "Maximum size in bytes of a memory that an agent writes; 0: no limit.",
            0,
        ),
        Setting(
            "redact-cards",
            "bool",
            "Whether numbers of payment cards are redacted in texts and queries.",
        ),
        Setting("redact-ibans", "bool", "Whether IBANs are redacted in texts and queries."),
        Setting(
            "redact-social-security",
            "bool",
            "Whether US social security numbers are redacted in texts and queries.",
        ),
        Setting(
            "redact-phones", "bool", "Whether phone numbers are redacted in texts and queries."
        ),
        Setting(
            "redact-emails", "bool", "Whether e-mail addresses are redacted in texts and queries."
        ),
        Setting(
            "visibility",
            "word",
            "Visibility of a memory that has a creator and no visibility of its own. by-creator: memories "
            "written by an agent are visible to the project, all others to their creator only.",
            words=(*VISIBILITIES, "by-creator"),
            default="project",
        ),
        Setting(
            "open-words",
            "bool",
            "Whether memories and edges may have kinds and relations beyond the declared ones; any short "
            "word is then valid.",
            default=False,
        ),
        Setting(
            "infer-tags",
            "word",
            "Source of inferred tags: none, file paths, or also topics (plain English) and entities.",
            words=("off", "paths", "all"),
            default="off",
        ),
        Setting(
            "infer-entities",
            "word",
            "Whether a memory that is not a turn is linked to the entities that its text names (plain English).",
            words=("off", "names"),
            default="off",
        ),
        Setting(
            "infer-common-tag",
            "bool",
            "Whether verified memories of one recall without a common tag receive one: a topic, or a word "
            "that all of them share with the query.",
            default=False,
        ),
        Setting(
            "consent",
            "word",
            "Whether memory is on for every project, or off until a user consents with lab.agents.switch_on.",
            words=("given", "needed"),
            default="given",
        ),
        Setting(
            "ignored-files",
            "bool",
            "Whether a memory is refused if it refers to a file that a .gitignore or .secretsignore file excludes.",
            default=False,
        ),
        Setting(
            "flag-contradictions",
            "bool",
            "Whether a context marks a memory that another active memory contradicts.",
            default=False,
        ),
        Setting(
            "maintain-after-session",
            "bool",
            "Whether the end of a session or conversation runs lab.upkeep.maintain.",
            default=False,
        ),
        Setting(
            "write-summary",
            "bool",
            "Whether a memory without a summary, unless it is a turn, gets one of at most 35 tokens.",
            default=False,
        ),
        Setting(
            "tier-1-tokens", "count", "Token budget of tier 1: memories that every prompt contains."
        ),
        Setting("tier-2-tokens", "count", "Token budget of tier 2: memories for the task at hand."),
        Setting(
            "tier-3-tokens",
            "count",
            "Token budget of each tier 3 result, which is fetched on request; at least 8.",
        ),
        Setting(
            "context-days",
            "bool",
            "Whether a context puts the date of a memory before its text, so that the later of two "
            "conflicting ones is clear.",
            default=False,
        ),
        Setting(
            "context-fill",
            "bool",
            "Whether the results of the recall fill the budget of a context, in place of limit results within "
            "tier-2-tokens.",
            default=False,
        ),
        Setting(
            "recall-again",
            "bool",
            "Whether an agent's recall repeats memories that the agent received earlier in the session.",
            default=True,
        ),
        Setting(
            "always-kinds",
            "text",
            "Kinds that tier 1 includes in addition to pinned memories, separated by spaces.",
            default="codebase-map convention decision",
        ),
        Setting(
            "forgotten-as",
            "word",
            "Status of a memory that the forget policy selects.",
            words=("forgotten", "expired", "deleted"),
        ),
        Setting("upkeep-hours", "num", "Hours between two runs of lab.upkeep.schedule.", 1e-6, 1e6),
        Setting(
            "grace-days", "num", "Days between the deletion of a memory and its purge.", 0, 1e6
        ),
        Setting(
            "topic-closeness",
            "num",
            "Closeness to the previous context below which a topic counts as new.",
            -1,
            1,
        ),
        Setting(
            "refine-every",
            "count",
            "Number of recalls between two refinements of clusters; 0: no refinement.",
            0,
        ),
        Setting(
            "cluster-closeness",
            "num",
            "Minimum mean-centred cosine to a cluster's centroid for upkeep to add a memory to the "
            "cluster; 0: none are added.",
            0,
            1,
        ),
        Setting(
            "cluster-merge",
            "num",
            "Distance below which two clusters are merged, as a share of the smaller radius; 0: no merging.",
            0,
            2,
        ),
        Setting(
            "consolidate-days",
            "num",
            "Age in days that the consolidate policy reads, unless the caller gives one.",
            0,
            1e6,
        ),
        Setting(
            "consolidate-least",
            "count",
            "Minimum number of memories that one summary replaces.",
            2,
            100_000,
        ),
        Setting(
            "consolidate-keep",
            "count",
            "Number of memories of each group that stay active with its summary, the most important first.",
            0,
        ),
        Setting(
            "summary-tokens",
            "count",
            "Maximum number of tokens of a generated summary.",
            1,
            100_000,
        ),
        Setting(
            "familiarity-start",
            "num",
            "Familiarity before the first conversation, 0 to 100.",
            0,
            100,
        ),
        Setting(
            "familiarity-gain",
            "num",
            "Share of the missing familiarity that each conversation adds.",
            0,
            1,
        ),
        Setting("trust-start", "num", "Trust before the first rated recall, 0 to 100.", 0, 100),
        Setting("trust-gain", "num", "Trust that a helpful recall adds, in points of 100.", 0, 100),
        Setting(
            "trust-loss", "num", "Trust that an unhelpful recall removes, in points of 100.", 0, 100
        ),
    ),
    kind="settings",
    about="doc",
    check=_describe_setting_fault,
)
"""Every setting by name: docs/reference/policy-language.md#settings. Values: docs/systems.md#settings-of-each-pack."""


FORMER_SETTINGS: Mapping[str, tuple[str, Mapping[str, SettingValue]]] = MappingProxyType(
    {"spread-combine": ("spread-mode", {"max": "cascade", "sum": "energy"})}
)
"""Settings of earlier versions: the name of the successor, and its value for each of the former values."""


def current_setting(name: str, value: object) -> tuple[str, object]:
    """Return the current name and value of a possibly renamed setting.

    Settings that `FORMER_SETTINGS` does not list are returned unchanged.
    """
    if name not in FORMER_SETTINGS:
        return name, value
    successor, values = FORMER_SETTINGS[name]
    if value not in values:
        raise InputError(
            f"Setting {name} (now named {successor}) must be one of {', '.join(values)}, not {value!r}."
        )
    return successor, values[str(value)]


def check_setting(name: str, value: object) -> SettingValue:
    """Validate a setting's value and convert it to the setting's type.

    Parameters
    ----------
    name
        Name of the setting.
    value
        Value to check. Whole numbers may be given as floats.

    Returns
    -------
    SettingValue
        The value as a float, an int for a count, a bool or a string.

    Raises
    ------
    UnknownName
        If no setting has this name.
    InputError
        If the value has another type or is out of bounds.
    """
    try:
        declared = SETTINGS[name]
    except KeyError:
        raise UnknownName("setting", name, SETTINGS) from None
    # Texts are checked before numbers, and booleans before numbers, because True is an int.
    if declared.type == "word":
        if value not in declared.words:
            raise InputError(
                f"Setting {name} must be one of {', '.join(declared.words)}, not {value!r}."
            )
        return str(value)
    if declared.type == "text":
        if not isinstance(value, str) or len(value) > _MAX_TEXT or not value.isprintable():
            raise InputError(
                f"Setting {name} must be a printable text of at most {_MAX_TEXT:,} characters, not {value!r:.60}."
            )
        return value
    if declared.type == "bool":
        if not isinstance(value, bool):
            raise InputError(f"Setting {name} must be true or false, not {value!r}.")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InputError(f"Setting {name} must be a number, not {value!r}.")
    if not declared.low <= value <= declared.high:
        raise InputError(
            f"Setting {name} must be between {declared.low:g} and {declared.high:g}, not {value:g}."
        )
    if declared.type == "count":
        if value != int(value):
            raise InputError(f"Setting {name} must be a whole number, not {value:g}.")
        return int(value)
    return float(value)
