"""The slots: every decision of a pack, with the values it may read and the value it must return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memlab.errors import UnknownName
from memlab.kernel.base.arguments import describe_value
from memlab.kernel.base.display import Displayed, clip, table
from memlab.kernel.base.printable import printable
from memlab.kernel.language import Input, Returns, Signature
from memlab.kernel.policies._features import FEATURES, Feature, Stage
from memlab.kernel.registry import Registry
from memlab.kernel.schema import RELATIONS, ROLES, STATUSES

_FIELDS_OF_USE = (
    "strength",
    "confidence",
    "importance",
    "energy",
    "stability",
    "difficulty",
    "emotional-weight",
)
"""Fields of a memory that the reinforce policy may update."""


@dataclass(frozen=True)
class Adapter:
    """Conversion from the unit of an older policy to the unit of its slot.

    A policy that reads `input` returns values in its own unit, and `per_unit` of them make one of
    the slot's unit. The original decay policies, for example, returned milliseconds instead of
    days.
    """

    input: str
    per_unit: float


@dataclass(frozen=True)
class Slot(Displayed):
    """One decision of a pack: the values its policy reads and the value it returns.

    A pack that does not fill a slot with a default uses the policy `source`, or the policy in
    `file` or in ``defaults/``. The hash of the pack is then the same as before the slot was
    declared.

    Parameters
    ----------
    name
        Name of the slot in a pack.
    doc
        Description of the decision, one or more sentences.
    inputs
        Values that only policies of this slot may read.
    returns
        Type of the value that a policy returns: a number, a boolean, a string or a record of fields.
    stages
        Stages whose features a policy may read.
    without
        Names of features of these stages that a policy may not read.
    of_pair
        True if a policy compares two memories. Such a policy reads their features of stage
        ``memory`` as ``new/...`` and ``old/...``.
    words
        Strings that a policy may return.
    fields
        Fields that a record may update.
    aggregates
        True if a policy may aggregate over all candidates.
    lists
        Feature by the name of the list of its values over the candidates.
    draws
        True if the engine draws candidates by the values of a policy.
    adapters
        Conversions for policies that return an older unit.
    default
        True if a file in ``defaults/`` holds the default policy.
    source
        Text of the default policy. The slot of an extension always has a default policy.
    file
        File of the default policy, if it is not in ``defaults/``.
    version
        Version of the slot. It is raised when the value changes its meaning, and enters hashes from 2 on.
    owner
        Name and version of the extension that declares the slot; empty for memlab's own.

    Examples
    --------
    >>> Slot("urgent", "Whether a note is urgent.", returns="bool", stages=("memory",), source="(fn [importance] (> importance 0.8))")
    <Slot urgent, 47 inputs: Whether a note is urgent.>
    """

    name: str
    doc: str
    inputs: tuple[Input, ...] = ()
    returns: Returns = "num"
    stages: tuple[Stage, ...] = ()
    without: tuple[str, ...] = ()
    of_pair: bool = False
    words: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    aggregates: bool = False
    lists: Mapping[str, str] = field(default_factory=dict)
    draws: bool = False
    adapters: tuple[Adapter, ...] = ()
    default: bool = False
    source: str = ""
    file: Path | None = None
    version: int = 1
    owner: str = ""
    _signatures: dict[int, Signature] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def signature(self) -> Signature:
        """The signature that policies of this slot are checked against."""
        # Extensions add features at run time, so the signature is rebuilt when the registry has changed.
        signature = self._signatures.get(FEATURES.changes)
        if signature is None:
            signature = Signature(
                self.name,
                self._inputs(),
                self.returns,
                words=self.words,
                fields=self.fields,
                aggregates=self.aggregates,
                lists=self.lists,
                draws=self.draws,
            )
            self._signatures.clear()
            self._signatures[FEATURES.changes] = signature
        return signature

    @property
    def has_default(self) -> bool:
        """True if a pack may omit this slot."""
        return self.default or bool(self.source) or self.file is not None

    def _inputs(self) -> dict[str, Input]:
        """Return every input that a policy of this slot may read, by name."""
        inputs = _of_both_memories() if self.of_pair else {}
        for feature in FEATURES.values():
            if feature.stage in self.stages and feature.name not in self.without:
                inputs[feature.name] = _input_of(feature)
        return inputs | {own.name: own for own in self.inputs}

    def __repr__(self) -> str:
        return printable(
            f"<Slot {self.name}, {len(self.signature.inputs)} inputs: {clip(self.doc, 80)}>"
        )

    def _display(self) -> object:
        rows = [(item.name, item.type, item.doc) for item in self.signature.inputs.values()]
        return table(f"{self.name}: {self.doc}", ("input", "type", ""), rows)


def _input_of(feature: Feature) -> Input:
    """Return the policy input that represents a feature."""
    return Input(feature.name, feature.type, feature.description, feature.words)


def _of_both_memories() -> dict[str, Input]:
    """Return the inputs for a memory pair, by name, prefixed "new/" and "old/"."""
    inputs = {}
    for side in ("new", "old"):
        for feature in FEATURES.values():
            if feature.stage == "memory":
                name = f"{side}/{feature.name}"
                inputs[name] = Input(
                    name, feature.type, f"The {side} memory: {feature.description}", feature.words
                )
    return inputs


_OF_PAIR = (
    Input("pair/similarity", "num", "Cosine of the two vectors."),
    Input(
        "pair/closeness",
        "num",
        "Similarity on the scale of all-MiniLM-L6-v2, calibrated for the lengths of both texts (shipped embedder only).",
    ),
    Input(
        "pair/certainty",
        "num",
        "Calibrated probability that the new memory ends or changes a statement of the old one, 0 to 1: "
        "two statements of one speaker about one property with two values.",
    ),
    Input(
        "pair/negates",
        "bool",
        "True if one statement denies the other: same speaker, same subject.",
    ),
    Input(
        "pair/update-words",
        "bool",
        "True if the new memory contains a word for a change (now, no longer, instead ...) in a statement "
        "of the same speaker about the same subject.",
    ),
    Input(
        "pair/conflicts",
        "bool",
        "True if two statements of one speaker about one time exclude each other: by a denial, opposites, "
        "alternatives, numbers or two values of one property.",
    ),
    Input(
        "pair/updates",
        "bool",
        "True if the new memory says that a statement of the old one is no longer valid.",
    ),
    Input(
        "pair/restates",
        "num",
        "Confidence that the new memory, later and by the same speaker, restates a statement of the old "
        "one with another number or date, or with the opposite meaning, 0 to 1. Texts may have any length; "
        "0 if there is none.",
    ),
    Input(
        "pair/overlap",
        "num",
        "Share of the words of both memories that occur in each of them, filler words left out, 0 to 1.",
    ),
    Input(
        "pair/same-numbers",
        "bool",
        "True if both contain the same numbers, single capital letters, weekdays and months.",
    ),
    Input(
        "pair/same-order",
        "bool",
        'False if the same words occur in another order: "A owes B" and "B owes A".',
    ),
    Input(
        "pair/same-subject",
        "bool",
        "True if both facts have one subject; null if a subject is missing.",
    ),
    Input(
        "pair/same-predicate",
        "bool",
        "True if both facts have one predicate; null if a predicate is missing.",
    ),
    Input(
        "pair/same-value", "bool", "True if both facts have one value; null if a value is missing."
    ),
    Input(
        "pair/single-valued",
        "bool",
        "True if the predicate has one value at a time; null if there is no predicate.",
    ),
    Input("pair/same-session", "bool", "True if both belong to one session."),
    Input(
        "pair/same-speaker",
        "bool",
        "True if both have one speaker; a memory without a speaker counts as the user's.",
    ),
    Input("pair/same-kind", "bool", "True if both have one kind."),
    Input(
        "pair/days-apart",
        "num",
        "Days from the creation of the old memory to the creation of the new one.",
    ),
    Input(
        "pair/rank",
        "num",
        "Rank of the old memory among the neighbours of the new one: 1 is the nearest.",
    ),
)
"""Inputs that describe the relation of a new memory to an old one, for the slots link and resolve."""

# Inputs of the slot admit, which reads an utterance before it is stored.
_OF_UTTERANCE = (
    Input("role", "str", "Role of the speaker.", ROLES),
    Input("length", "num", "Number of words in the utterance."),
    Input(
        "tells-identity",
        "bool",
        "True if the utterance says who the speaker is: I am, my name is ...",
    ),
    Input(
        "tells-preference",
        "bool",
        "True if the utterance says what the speaker likes: I like, I prefer ...",
    ),
    Input(
        "tells-goal",
        "bool",
        "True if the utterance says what the speaker plans: I want to, I plan to ...",
    ),
    Input(
        "tells-event",
        "bool",
        "True if the utterance says what happened to the speaker: yesterday I, recently I ...",
    ),
    Input(
        "corrects",
        "bool",
        "True if the utterance corrects something: no, actually, that is wrong ...",
    ),
    Input("greets", "bool", "True if the utterance is a greeting, thanks or a farewell."),
    Input("commands", "bool", "True if the utterance tells the assistant to do something."),
    Input("holds-code", "bool", "True if the utterance contains code."),
    Input(
        "asks-plainly", "bool", "True if the utterance is a plain question: what is, how do I ..."
    ),
    Input("nearest", "num", "Closeness of the nearest memory; null if the lab has none."),
)

# Values that policies of link and resolve may return, and outcomes that reinforce reads. Events store these words.
_LINKS = ("none", "duplicate", "similar", "related", "restates", "updates", "contradicts")
_RESOLUTIONS = ("keep-new", "keep-old", "merge", "keep-both")
_OUTCOMES = ("success", "fail", "recalled", "verified", "rejected")
_ALL: tuple[Stage, ...] = ("memory", "query", "spread")


def _describe_slot_fault(slot: Slot) -> str | None:
    """Return the reason to refuse an extension's slot, or None to accept it.

    Existing packs do not fill the slot, so it needs a default.
    """
    return (
        None
        if slot.source
        else f"The slot {slot.name} has no default: give source=, the text of a policy."
    )


def _describe(slot: Slot) -> dict[str, object]:
    """Return what a slot decides, returns and reads, by name, for error messages and completion."""
    signature = slot.signature
    details: dict[str, object] = {
        "decides": slot.doc,
        "returns": signature.returns,
        "words": signature.words,
    }
    return details | {"fields": signature.fields, "reads": tuple(signature.inputs)}


SLOTS: Registry[Slot] = Registry(
    "policy slot",
    (
        Slot(
            "eligible",
            "Whether a candidate may be returned. The policy eligible can use a threshold, the "
            "candidate's branch or its visibility. The slot eligible runs twice: before spreading on the "
            "memories that the search found (hops 0), and after spreading on the memories that spreading "
            "reached (hops > 0).",
            inputs=(
                Input(
                    "hops",
                    "num",
                    "Number of edges from the nearest seed; 0 for a memory that the search found.",
                ),
            ),
            stages=("memory", "query"),
            returns="bool",
        ),
        Slot(
            "seed-score",
            "Score of a candidate before spreading. Activation spreads from the `seeds` best candidates.",
            stages=("memory", "query"),
            aggregates=True,
        ),
        Slot(
            "spread",
            "Activation that an edge passes from an active memory to its neighbour.",
            inputs=(
                Input("activation", "num", "Activation of the memory at the start of the edge."),
                Input("weight", "num", "Weight of the edge, 0 to 1."),
                Input("relation", "str", "Relation of the edge.", RELATIONS),
                Input(
                    "depth",
                    "num",
                    "Number of edges from the seed, this edge included: 1 for the first.",
                ),
                Input("damping", "num", "Value of the setting damping."),
                Input(
                    "outgoing",
                    "bool",
                    "True if activation crosses the edge from its source to its target.",
                ),
            ),
        ),
        Slot(
            "cut",
            "Value by which the candidate pool is limited. The `pool` candidates with the highest values "
            "of cut are scored; ties are broken by id. Features of the pool, such as session-seed, cover "
            "all candidates at the stage cut.",
            stages=_ALL,
            aggregates=True,
            default=True,
        ),
        Slot(
            "recall-score",
            "Final score of a candidate, by which results are ordered.",
            stages=_ALL,
            aggregates=True,
        ),
        Slot(
            "known",
            "Probability that the pool contains the answer. The maximum of known over all candidates "
            "counts; if it is below known-floor, at most unknown-limit results are shown. The policy "
            "known is calibrated for the pack's recall-score, so a pack with its own recall-score does "
            "not inherit known, known-floor and unknown-limit. If you install another recall-score, also "
            "install a matching known.",
            inputs=(Input("score", "num", "Recall-score of the candidate."),),
            stages=_ALL,
            aggregates=True,
            default=True,
        ),
        Slot(
            "select",
            "Order in which the scored candidates are shown. Each step of select adds the candidate with "
            "the highest value, given the candidates selected so far; null excludes a candidate from this"
            " step. By default, the candidates with the highest scores are shown, subject to mmr-weight "
            "and collapse-above; a policy in the slot select replaces both settings.",
            inputs=(
                Input("score", "num", "Recall-score of the candidate."),
                Input(
                    "likeness",
                    "num",
                    "Largest closeness to a result already taken, at least 0; 0 for the first.",
                ),
                Input(
                    "novelty",
                    "num",
                    "Squared share of the candidate's vector outside the span of those taken, above 0 and at most 1.",
                ),
                Input("taken", "num", "Number of results taken so far."),
                Input(
                    "session-taken",
                    "num",
                    "Number of results taken from the candidate's session; 0 for a candidate without a session.",
                ),
                Input(
                    "speaker-taken",
                    "num",
                    "Number of results taken from the candidate's speaker; 0 for a candidate without a speaker.",
                ),
                Input(
                    "tokens",
                    "num",
                    "Tokens that the candidate's text would cost in a context; null outside a context.",
                ),
                Input(
                    "budget",
                    "num",
                    "Tokens that the results taken leave in the context; null outside a context.",
                ),
            ),
            stages=_ALL,
            aggregates=True,
            source="(fn [score] score)",
        ),
        Slot(
            "explore",
            "Weight for drawing a candidate below the top results as an exploration item (probe).",
            inputs=(
                Input("score", "num", "Recall-score of the candidate."),
                Input("limit", "num", "Number of results that the caller requested."),
                Input("tail-n", "num", "Number of candidates below the top results."),
            ),
            stages=_ALL,
            aggregates=True,
            lists={
                "acts": "activation",
                "recs": "recency",
                "imps": "importance",
                "accs": "access",
                "succ": "success",
                "fails": "fail",
            },
            draws=True,
        ),
        Slot(
            "half-life",
            "Number of days in which the recency of a memory that is not recalled falls by half.",
            inputs=(
                Input("base-half-days", "num", "Value of the setting base-half-life, in days."),
                Input(
                    "base-half-ms", "num", "Value of the setting base-half-life, in milliseconds."
                ),
                Input("recency-ms", "num", "Milliseconds since the memory was last recalled."),
            ),
            stages=("memory",),
            without=("recency", "retention"),
            adapters=(Adapter("base-half-ms", 86_400_000.0),),
        ),
        Slot(
            "retention",
            "Share of a memory that is retained: 1 for a new memory, 0 for a memory that has decayed "
            "completely. Retention is computed from the time whenever it is needed, so decay changes no stored value.",
            inputs=(Input("half-life", "num", "Value of the half-life policy, in days."),),
            stages=("memory",),
            without=("retention",),
        ),
        Slot(
            "reinforce",
            "Changes to the fields of a memory after the memory was used. Every expression in reinforce "
            "reads the values from before the use.",
            inputs=(
                Input("outcome", "str", "Outcome of the use.", _OUTCOMES),
                Input(
                    "rating",
                    "num",
                    "Rating by the user: 1 again, 2 hard, 3 good, 4 easy; null without a rating.",
                ),
                Input(
                    "elapsed-days",
                    "num",
                    "Days between the previous use and the use that is judged.",
                ),
                Input("half-life", "num", "Value of the half-life policy, in days."),
            ),
            stages=("memory",),
            returns="record",
            fields=_FIELDS_OF_USE,
        ),
        Slot(
            "admit",
            "Value of storing an utterance, 0 to 1. The utterance is stored if the value reaches the "
            "setting admit-threshold.",
            inputs=_OF_UTTERANCE,
        ),
        Slot(
            "link",
            "Relation of a new memory to one of its neighbours.",
            inputs=_OF_PAIR,
            of_pair=True,
            returns="str",
            words=_LINKS,
        ),
        Slot(
            "resolve",
            "Decision which of two memories stays, if link calls the pair duplicate, updates or contradicts.",
            inputs=_OF_PAIR,
            of_pair=True,
            returns="str",
            words=_RESOLUTIONS,
        ),
        Slot(
            "promote",
            "New status of a memory. Upkeep applies promote to all memories that take part in recall. A "
            "recall applies promote to its candidates, so an expired memory is hidden before upkeep records the change.",
            stages=("memory",),
            returns="str",
            words=tuple(word for word in STATUSES if word not in ("purged", "quarantined")),
        ),
        Slot(
            "forget",
            "Whether a memory is forgotten, which excludes it from recall until it is restored. After "
            "promote, upkeep applies forget to all memories that take part in recall and to retracted "
            "memories; a recall applies forget to its candidates. The setting forgotten-as names the "
            "status of a forgotten memory.",
            stages=("memory",),
            returns="bool",
        ),
        Slot(
            "label",
            "Label for the state of a memory; null keeps the current label. Upkeep applies label and records each change.",
            stages=("memory",),
            returns="str",
        ),
        Slot(
            "consolidate",
            "Whether a memory may be merged into a summary, which then replaces it in recall. "
            "lab.upkeep.consolidation.run applies consolidate to all memories that take part in recall, "
            "except facts with a subject.",
            inputs=(
                Input(
                    "older-than",
                    "num",
                    "Minimum age in days: the caller's value, or the setting consolidate-days.",
                ),
            ),
            stages=("memory",),
            returns="bool",
        ),
        Slot(
            "prune",
            "Whether an edge is removed. Upkeep applies prune to all edges except edges to tags, which "
            "follow the tags of the memory.",
            inputs=(
                Input("weight", "num", "Weight of the edge, 0 to 1."),
                Input("relation", "str", "Relation of the edge.", RELATIONS),
                Input("reinforcements", "num", "Number of times the edge was strengthened."),
                Input("age-days", "num", "Days since the edge was created."),
                Input(
                    "idle-days",
                    "num",
                    "Days since both memories had been recalled, at most the age of the edge.",
                ),
                Input(
                    "source-degree",
                    "num",
                    "Number of edges at the source node, this edge included.",
                ),
                Input(
                    "target-degree",
                    "num",
                    "Number of edges at the target node, this edge included.",
                ),
            ),
            returns="bool",
        ),
    ),
    kind="slots",
    about="doc",
    known=_describe,
    check=_describe_slot_fault,
)
"""Every slot by name: docs/reference/policy-language.md#slots."""


def get_slot(name: str) -> Slot:
    """Return the slot with the given name.

    Parameters
    ----------
    name
        Name of a slot.

    Returns
    -------
    Slot
        The declared slot.

    Raises
    ------
    UnknownName
        If no slot has this name. The message suggests the nearest name.
    """
    if not isinstance(name, str):
        raise UnknownName("policy slot", describe_value(name), SLOTS)
    try:
        return SLOTS[name]
    except KeyError:
        raise UnknownName("policy slot", name, SLOTS) from None
