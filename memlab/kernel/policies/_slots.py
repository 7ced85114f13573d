"""The slots: every decision that a pack makes, with what it may read and what it must return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memlab.errors import UnknownName
from memlab.kernel.base.arguments import shown
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
"""What the reinforce policy may update."""


@dataclass(frozen=True)
class Adapter:
    """A policy that reads ``input`` returns ``per_unit`` for one of our unit (the original decay: ms, not days)."""

    input: str
    per_unit: float


@dataclass(frozen=True)
class Slot(Displayed):
    """One decision of a pack: what its policy reads and what it returns.

    A policy reads ``inputs`` and the features of these ``stages``, but for those in ``without``. A slot ``of_pair`` reads
    the features of stage ``memory`` of two memories, as ``new/...`` and ``old/...``. ``returns``, ``words``, ``fields``,
    ``aggregates`` and ``lists`` are those of `Signature`.

    A pack that does not name a slot with a default has the policy ``source``, or that of the slot's file in ``defaults/``
    where ``source`` is empty, and its hash is what it was before the slot was declared. A slot of an extension always has
    a default. ``version`` is raised when its value comes to mean something else, and counts in hashes from 2 on.
    ``file`` is the file of the default policy, where it is not in ``defaults/``. ``adapters`` map the unit in which an older spelling returns to ours, by one of its inputs.

    >>> Slot("urgent", "Whether a note is urgent.", returns="bool", stages=("memory",), source="(fn [importance] (> importance 0.8))")
    <Slot urgent, 46 inputs: Whether a note is urgent.>
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
        """What a policy of this slot is checked against: it has the features that are declared now."""
        known = self._signatures.get(FEATURES.changes)
        if known is None:
            known = Signature(
                self.name,
                self._inputs(),
                self.returns,
                words=self.words,
                fields=self.fields,
                aggregates=self.aggregates,
                lists=self.lists,
            )
            self._signatures.clear()
            self._signatures[FEATURES.changes] = known
        return known

    @property
    def has_default(self) -> bool:
        """Whether a pack may leave this slot out."""
        return self.default or bool(self.source) or self.file is not None

    def _inputs(self) -> dict[str, Input]:
        inputs = _of_both_memories() if self.of_pair else {}
        for feature in FEATURES.values():
            if feature.stage in self.stages and feature.name not in self.without:
                inputs[feature.name] = _input_of(feature)
        return inputs | {item.name: item for item in self.inputs}

    def __repr__(self) -> str:
        return printable(
            f"<Slot {self.name}, {len(self.signature.inputs)} inputs: {clip(self.doc, 80)}>"
        )

    def _display(self) -> object:
        rows = [(item.name, item.type, item.doc) for item in self.signature.inputs.values()]
        return table(f"{self.name}: {self.doc}", ("input", "type", ""), rows)


def _input_of(feature: Feature) -> Input:
    return Input(feature.name, feature.type, feature.formula, feature.words)


def _of_both_memories() -> dict[str, Input]:
    """Return the features of a new memory and of an old one, under prefixed names."""
    inputs = {}
    for side in ("new", "old"):
        for feature in FEATURES.values():
            if feature.stage == "memory":
                name = f"{side}/{feature.name}"
                inputs[name] = Input(
                    name, feature.type, f"of the {side} memory: {feature.formula}", feature.words
                )
    return inputs


_OF_PAIR = (
    Input("pair/similarity", "num", "cosine of the two"),
    Input(
        "pair/closeness",
        "num",
        "similarity on the scale of all-MiniLM-L6-v2, calibrated for the length of both texts (the shipped embedder)",
    ),
    Input(
        "pair/certainty",
        "num",
        "calibrated probability that the new statement ends or changes what the old one says: one speaker, both "
        "statements, one property, two values, 0-1",
    ),
    Input(
        "pair/negates",
        "bool",
        "in a statement of one speaker about the same thing, one of the two denies what the other says",
    ),
    Input(
        "pair/update-words",
        "bool",
        "the new one says that something changed (now, no longer, instead ...), in a statement of the same speaker "
        "about the same thing",
    ),
    Input(
        "pair/conflicts",
        "bool",
        "two statements of one holder and time exclude one another: by a denial, opposites, alternatives, numbers or "
        "the values of one property",
    ),
    Input("pair/updates", "bool", "the new one says that what the old one says is so no more"),
    Input(
        "pair/restates",
        "num",
        "how surely the new one, of the same speaker and later, makes a statement of the old one anew, in texts of "
        "any length: another number or date of the same, or the opposite, 0-1; 0: none",
    ),
    Input(
        "pair/overlap", "num", "share of the words of either that both hold, fillers left out, 0-1"
    ),
    Input(
        "pair/same-numbers",
        "bool",
        "both hold the same numbers, single capitals, weekdays and months",
    ),
    Input(
        "pair/same-order", "bool", "not the same words in another order: A owes B is not B owes A"
    ),
    Input("pair/same-subject", "bool", "they speak of the same subject; null where none is known"),
    Input(
        "pair/same-predicate",
        "bool",
        "they say the same sort of thing of it; null where none is known",
    ),
    Input("pair/same-value", "bool", "and the same thing; null where none is known"),
    Input(
        "pair/single-valued",
        "bool",
        "the predicate has one value at a time; null where none is known",
    ),
    Input("pair/same-session", "bool", "both come from one session"),
    Input(
        "pair/same-speaker", "bool", "both were said by one speaker, the user where none is named"
    ),
    Input("pair/same-kind", "bool", "both are of one kind"),
    Input("pair/days-apart", "num", "days from the old one's creation to the new one's"),
    Input(
        "pair/rank",
        "num",
        "the old one's place among the new one's neighbours, nearest first, from 1",
    ),
)
"""What a new memory and an old one have to do with each other."""

_OF_UTTERANCE = (
    Input("role", "str", "who speaks", ROLES),
    Input("length", "num", "its number of words"),
    Input("tells-identity", "bool", "it says who someone is: I am, my name is ..."),
    Input("tells-preference", "bool", "it says what someone likes: I like, I prefer ..."),
    Input("tells-goal", "bool", "it says what someone wants: I want to, I plan to ..."),
    Input("tells-event", "bool", "it says what happened to someone: yesterday I, recently I ..."),
    Input("corrects", "bool", "it puts something right: no, actually, that is wrong ..."),
    Input("greets", "bool", "it is a greeting, thanks or a farewell"),
    Input("commands", "bool", "it tells the assistant to do something"),
    Input("holds-code", "bool", "it holds code"),
    Input("asks-plainly", "bool", "it is a plain question: what is, how do I ..."),
    Input("nearest", "num", "closeness of the nearest memory; null where there is none"),
)

_LINKS = ("none", "duplicate", "similar", "related", "restates", "updates", "contradicts")
_RESOLUTIONS = ("keep-new", "keep-old", "merge", "keep-both")
_OUTCOMES = ("success", "fail", "recalled", "verified", "rejected")
_ALL: tuple[Stage, ...] = ("memory", "query", "spread")


def _refusal(slot: Slot) -> str | None:
    """Return why an extension's slot is refused: a pack of today does not name it."""
    return (
        None
        if slot.source
        else f"The slot {slot.name} has no default: give source=, the text of a policy."
    )


def _known(slot: Slot) -> dict[str, object]:
    signature = slot.signature
    known: dict[str, object] = {
        "decides": slot.doc,
        "returns": signature.returns,
        "words": signature.words,
    }
    return known | {"fields": signature.fields, "reads": tuple(signature.inputs)}


SLOTS: Registry[Slot] = Registry(
    "policy slot",
    (
        Slot(
            "eligible",
            "Whether a candidate takes part: thresholds, branch, visibility. Asked before spreading of what the "
            "question found (hops 0), and after it of what spreading reached (hops > 0).",
            inputs=(Input("hops", "num", "0 for what the question found"),),
            stages=("memory", "query"),
            returns="bool",
        ),
        Slot(
            "seed-score",
            "The score of a candidate before spreading; the best `seeds` of them spread.",
            stages=("memory", "query"),
            aggregates=True,
        ),
        Slot(
            "spread",
            "What passes over one edge, from the memory that is active to its neighbour.",
            inputs=(
                Input("activation", "num", "activation of the memory that is left"),
                Input("weight", "num", "weight of the edge, 0-1"),
                Input("relation", "str", "what the edge means", RELATIONS),
                Input("depth", "num", "edges from the seed, this one included; 1 at first"),
                Input("damping", "num", "the setting damping"),
                Input(
                    "outgoing", "bool", "whether the edge is crossed from its source to its target"
                ),
            ),
        ),
        Slot(
            "cut",
            "Which of all that was found and reached are scored: the best `pool` of them by this, ties by id. What "
            "reads the pool, such as session-seed, reads all of them here.",
            stages=_ALL,
            aggregates=True,
            default=True,
        ),
        Slot("recall-score", "The final score of a candidate.", stages=_ALL, aggregates=True),
        Slot(
            "known",
            "The probability that something of the pool answers, by the scores of all: the greatest that it gives to a "
            "candidate. It belongs to the recall-score beside it, as known-floor and unknown-limit do: a pack with a "
            "recall-score of its own inherits none of them. Whoever installs another recall-score alone installs "
            "known, too. Below known-floor no more than unknown-limit are shown.",
            inputs=(Input("score", "num", "its recall-score"),),
            stages=_ALL,
            aggregates=True,
            default=True,
        ),
        Slot(
            "select",
            "Which of the scored pool are shown, in which order: of those that wait the greatest is taken next, given what "
            "was taken before; null: not now. A pack that does not name it shows the best by score, as mmr-weight and "
            "collapse-above say, neither of which counts beside a policy of this slot.",
            inputs=(
                Input("score", "num", "its recall-score"),
                Input(
                    "likeness",
                    "num",
                    "its greatest closeness to one that was taken; 0 before the first, never less",
                ),
                Input(
                    "novelty",
                    "num",
                    "share of its vector that those taken do not span, squared, above 0 and at most 1",
                ),
                Input("taken", "num", "how many were taken"),
                Input(
                    "session-taken",
                    "num",
                    "how many of its session were taken; 0 for one without a session",
                ),
                Input(
                    "speaker-taken",
                    "num",
                    "how many of its speaker were taken; 0 for one without a speaker",
                ),
                Input(
                    "tokens",
                    "num",
                    "what its text would cost in tokens, where a context asks; else null",
                ),
                Input(
                    "budget",
                    "num",
                    "the tokens of a context that those taken leave; null where no context asks",
                ),
            ),
            stages=_ALL,
            aggregates=True,
            source="(fn [score] score)",
        ),
        Slot(
            "explore",
            "The weight with which a candidate below the top is shown as a probe.",
            inputs=(
                Input("limit", "num", "how many the caller asked for"),
                Input("tail-n", "num", "how many candidates are below the top"),
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
        ),
        Slot(
            "half-life",
            "Days in which a memory's recency falls by half; what is never recalled again.",
            inputs=(
                Input("base-half-days", "num", "the setting base-half-life, in days"),
                Input("base-half-ms", "num", "the setting base-half-life, in milliseconds"),
                Input("recency-ms", "num", "time since it was last recalled, in milliseconds"),
            ),
            stages=("memory",),
            without=("recency", "retention"),
            adapters=(Adapter("base-half-ms", 86_400_000.0),),
        ),
        Slot(
            "retention",
            "What is left of a memory: 1 as when new, 0 nothing. A closed form of time: nothing is rewritten to decay.",
            inputs=(Input("half-life", "num", "what the half-life policy gives, in days"),),
            stages=("memory",),
            without=("retention",),
        ),
        Slot(
            "reinforce",
            "What a use changes in a memory. Every expression reads the values from before.",
            inputs=(
                Input("outcome", "str", "what came of the use", _OUTCOMES),
                Input(
                    "rating", "num", "1 again, 2 hard, 3 good, 4 easy; null when nobody rated it"
                ),
                Input("elapsed-days", "num", "days from the use before to the one that is judged"),
                Input("half-life", "num", "what the half-life policy gives, in days"),
            ),
            stages=("memory",),
            returns="record",
            fields=_FIELDS_OF_USE,
        ),
        Slot(
            "admit",
            "Whether an utterance is worth remembering, 0-1; from the setting admit-threshold on it is.",
            inputs=_OF_UTTERANCE,
        ),
        Slot(
            "link",
            "What a new memory is to one of its neighbours.",
            inputs=_OF_PAIR,
            of_pair=True,
            returns="str",
            words=_LINKS,
        ),
        Slot(
            "resolve",
            "Which of two memories stays where link says duplicate, updates or contradicts.",
            inputs=_OF_PAIR,
            of_pair=True,
            returns="str",
            words=_RESOLUTIONS,
        ),
        Slot(
            "promote",
            "The status that a memory has from now on. Upkeep asks it of all that take part in recall, and a recall of "
            "its candidates: what it takes out of recall is not shown, whether upkeep has noted it or not.",
            stages=("memory",),
            returns="str",
            words=tuple(word for word in STATUSES if word not in ("purged", "quarantined")),
        ),
        Slot(
            "forget",
            "Whether a memory is forgotten: out of every recall, until it is restored. Upkeep asks it, after promote, "
            "of all that take part in recall and of what was retracted, and a recall of its candidates; the setting "
            "forgotten-as says what becomes of it.",
            stages=("memory",),
            returns="bool",
        ),
        Slot(
            "label",
            "A word for the state of a memory; null: the one that it has. Upkeep asks it and notes each change.",
            stages=("memory",),
            returns="str",
        ),
        Slot(
            "consolidate",
            "Whether a memory may go into a summary, which then takes part in recall in its place. "
            "lab.upkeep.consolidation.run asks it of all that take part in recall but facts of a subject.",
            inputs=(
                Input(
                    "older-than",
                    "num",
                    "days: the setting consolidate-days, or what the caller says",
                ),
            ),
            stages=("memory",),
            returns="bool",
        ),
        Slot(
            "prune",
            "Whether an edge is removed. Upkeep asks it of every edge but those to tags, which a column decides.",
            inputs=(
                Input("weight", "num", "weight of the edge, 0-1"),
                Input("relation", "str", "what the edge means", RELATIONS),
                Input("reinforcements", "num", "how often it was strengthened"),
                Input("age-days", "num", "days since it was made"),
                Input(
                    "idle-days",
                    "num",
                    "days since both its memories had been recalled, at most its age",
                ),
                Input(
                    "source-degree",
                    "num",
                    "how many edges meet the node that it leaves, this one included",
                ),
                Input(
                    "target-degree",
                    "num",
                    "how many edges meet the node that it enters, this one included",
                ),
            ),
            returns="bool",
        ),
    ),
    kind="slots",
    about="doc",
    known=_known,
    check=_refusal,
)
"""Every slot by name: docs/policy-language.md#slots."""


def slot_named(name: str) -> Slot:
    """Return the slot of this name; an error names the nearest one."""
    if not isinstance(name, str):
        raise UnknownName("policy slot", shown(name), SLOTS)
    try:
        return SLOTS[name]
    except KeyError:
        raise UnknownName("policy slot", name, SLOTS) from None
