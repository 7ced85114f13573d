"""Measure how well attributed rewards match the labelled use of memories.

    python experiments/attribution.py LOCOMO.json BEAM_FOLDER [--fit] [--corrections FILE]

The default pack recalls every question; the cues and the policy of ``lab.agents.credits`` judge its results. An
agent's answer is the gold answer: a third unchanged, a third paraphrased, and a third replaced by "I don't know". The
first table has every answer unchanged. The conversations are split into halves. Policy, threshold and calibration come
from the first half (``--fit`` prints them); the second half tests them. Each cue is ablated by setting it to 0.

The paraphrase follows a rule for each content word of the answer whose stem is in a result or in the evidence. The
entry of a dictionary of 90 everyday words replaces it if no text has that entry; otherwise the word is left out. So
answer and memories share no content word. Computed words, such as a date from "yesterday", stay.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import memlab
from memlab.io.ingest import (
    Conversation,
    LabelledConversation,
    Question,
    Turn,
    conversation,
    read_locomo,
)
from memlab.kernel.slates import decode
from memlab.subjects.attribution.attribution import read_cues
from memlab.subjects.attribution.cues import Answer
from memlab.subjects.attribution.known import fit_calibration

UNKNOWN = "I don't know."
KINDS = ("as it is", "paraphrased", "unanswered")
SWAPPED = "of another question"
"""A further variant: the answer of the next question, to which no result contributed."""
GENERAL = {
    word: general
    for general, words in {
        "animal": "dog cat puppy kitten pet horse bird turtle",
        "vehicle": "car truck bike bicycle bus van",
        "building": "house home shelter studio shop store church museum",
        "journey": "trip travel vacation holiday tour hike roadtrip",
        "relative": "mother father mom dad sister brother son daughter family kids husband wife grandma",
        "companion": "friend friends buddy colleague partner mentor",
        "artwork": "painting paintings drawing picture photo sculpture pottery",
        "craft": "paint draw sketch knit sew",
        "meal": "dinner lunch breakfast food pizza cake",
        "beverage": "coffee tea water juice",
        "contest": "race competition tournament match championship",
        "occupation": "job work career business",
        "instructor": "teacher coach trainer",
        "publication": "book books novel magazine article",
        "melody": "song music concert band",
        "joyful": "happy glad excited thrilled great",
        "unhappy": "sad upset down",
        "woodland": "forest trees woods",
        "seaside": "beach ocean sea lake",
        "summit": "mountain mountains hill",
        "town": "city village",
        "nation": "country usa",
        "youngsters": "children child",
        "fitness": "yoga running swimming gym exercise workout dancing dance",
        "outing": "camping picnic hiking parade festival event",
        "tale": "story stories movie film",
    }.items()
    for word in words.split()
}

GROUPS = {
    "words (rarest, words-lead, evidence-lead)": ("rarest", "words-lead", "evidence-lead"),
    "dates (same-date, said-then)": ("same-date", "said-then"),
    "meaning (alike, near-lead)": ("alike", "near-lead"),
    "the question (asked-*, of-another)": ("asked-lead", "asked-words", "of-another"),
}
"""Groups of correlated cues, which are ablated together as well."""


@dataclass
class Asked:
    """One recall of a question with a gold answer: cues by answer variant, and gold memories."""

    conversation: str
    kind: str
    cues: dict[str, dict[str, NDArray[np.float64]]]
    credit: dict[str, NDArray[np.float64]]
    gold: NDArray[np.bool_]
    drawn: str


def read_beam(folder: Path) -> Iterator[LabelledConversation]:
    """Yield the chats of BEAM with questions that have a text answer and evidence."""
    for chat in sorted(folder.glob("*/chat.json"), key=lambda path: int(path.parent.name)):
        turns, at = [], datetime(2024, 1, 1, tzinfo=UTC)
        for batch in json.loads(chat.read_text()):
            for message in (message for turn in batch["turns"] for message in turn):
                if anchor := message.get("time_anchor"):
                    at = datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
                text = re.sub(r"\s*->->[\s\d,]*$", "", message["content"])
                turns.append(
                    Turn(
                        str(message["id"]),
                        message["role"],
                        text,
                        f"batch {batch['batch_number']}",
                        at,
                    )
                )
        refs = {turn.ref for turn in turns}
        questions = []
        probing = json.loads(
            (chat.parent / "probing_questions" / "probing_questions.json").read_text()
        )
        for entry in (entry for kind in probing.values() for entry in kind):
            answer = next(
                (entry[key] for key in ("answer", "ideal_answer", "ideal_summary") if key in entry),
                "",
            )
            evidence = tuple(
                ref
                for ref in dict.fromkeys(find_leaves(entry.get("source_chat_ids")))
                if ref in refs
            )
            if answer and evidence:
                questions.append(Question(entry["question"], 1, evidence, answer))
        yield LabelledConversation(
            Conversation(f"beam-{chat.parent.name}", tuple(turns)), tuple(questions)
        )


def find_leaves(value: Any) -> Iterator[str]:
    """Yield the leaves of nested lists and objects as text."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from find_leaves(inner)
    elif value is not None:
        yield str(value)


def correct_evidence(
    labelled: Sequence[LabelledConversation], path: Path | None
) -> list[LabelledConversation]:
    """Return the questions with evidence from a file of corrections."""
    if path is None:
        return list(labelled)
    better = {
        (entry["sample_id"], entry["question"]): tuple(entry["correct"])
        for entry in json.loads(path.read_text())
    }
    return [
        LabelledConversation(
            entry.conversation,
            tuple(
                Question(
                    q.text,
                    q.category,
                    better.get((entry.conversation.name, q.text)) or q.evidence,
                    q.answer,
                )
                for q in entry.questions
            ),
        )
        for entry in labelled
    ]


def paraphrase(answer: str, texts: Sequence[str], stems: Any) -> str:
    """Return the answer without the content words of ``texts``; see the module."""
    used_stems = {stem for text in texts for stem in stems(text)}
    words = []
    for word in re.findall(r"\S+", answer):
        if not used_stems & set(stems(word)):
            words.append(word)
        elif (general := GENERAL.get(re.sub(r"\W", "", word.lower()))) and not used_stems & set(
            stems(general)
        ):
            words.append(general)
    return " ".join(words) or "something like that"


def recall_all(labelled: LabelledConversation, seed: int, policy: Any) -> Iterator[Asked]:
    """Recall every question of a conversation, and judge the results by each answer variant."""
    talk, draw = labelled.conversation, random.Random(f"{seed} {labelled.conversation.name}")
    with memlab.open(seed=seed) as lab:
        conversation(lab, talk, project="p")
        refs = dict(lab.memories.select("id", "ref").iter_rows())
        texts = dict(lab.memories.select("ref", "text").iter_rows())
        questions = [
            entry for entry in labelled.questions if entry.category != 5 and entry.evidence
        ]
        for question, following in zip(questions, [*questions[1:], *questions[:1]], strict=True):
            hits = lab.recall(question.text, project="p", at=talk.end)
            result_texts = [hit.text for hit in hits] + [
                texts[ref] for ref in question.evidence if ref in texts
            ]
            with lab.io.store.reading() as state:
                variants = (
                    question.answer,
                    paraphrase(question.answer, result_texts, state.words.stems),
                    UNKNOWN,
                    following.answer,
                )
                slate = decode(
                    next(blob for _, blob in lab.io.store.journal.slates(hits.decision - 1)),
                    decision=0,
                )
                cues, credit = {}, {}
                for kind, text in zip((*KINDS, SWAPPED), variants, strict=True):
                    ids, cues[kind] = read_cues(
                        lab.io.store,
                        lab.policies.pack,
                        slate,
                        Answer(question.text, text, slate.at),
                    )
                    credit[kind] = compute_credits(policy, cues[kind])
            gold = np.array([refs[id] in question.evidence for id in ids.tolist()])
            source = "BEAM" if talk.name.startswith("beam") else "LoCoMo"
            yield Asked(talk.name, source, cues, credit, gold, draw.choice(KINDS))


def compute_credits(policy: Any, cues: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the credits of a policy; NaN where it abstains."""
    types = policy.signature.inputs
    values, nulls = policy.arrays(
        {
            name: cues[name] if types[name].type == "num" else cues[name] > 0
            for name in policy.inputs
        }
    )
    values = np.broadcast_to(np.asarray(values, dtype=np.float64), len(cues["covers"]))
    return values if nulls is None else np.where(nulls, np.nan, values)


def flatten(
    answers: Sequence[Asked], kind: str | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the credit and the labelled use of every result under one answer variant."""
    credit = [answer.credit[kind or answer.drawn] for answer in answers]
    used = [answer.gold & ((kind or answer.drawn) in KINDS[:2]) for answer in answers]
    return np.concatenate(credit), np.concatenate(used)


def compute_figures(
    credit: NDArray[np.float64], used: NDArray[np.bool_], threshold: float
) -> dict[str, float]:
    """Return precision and recall at a threshold, recall at precision .9, and precision at recall .7."""
    scores = np.nan_to_num(credit, nan=-1.0)
    is_credited = scores >= threshold
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(used[order])
    precision, recall = right / np.arange(1, len(order) + 1), right / max(used.sum(), 1)
    return {
        "precision": float(used[is_credited].mean()) if is_credited.any() else float("nan"),
        "recall": float(is_credited[used].mean()) if used.any() else float("nan"),
        "recall at .9": float(recall[precision >= 0.9].max(initial=0.0)),
        "precision at .7": float(precision[recall >= 0.7].max(initial=0.0))
        if used.any()
        else float("nan"),
        "credited": float(is_credited.mean()),
        "no say": float(np.isnan(credit).mean()),
    }


def format_row(name: str, answers: Sequence[Asked], kind: str | None, threshold: float) -> str:
    """Return one row of the table."""
    figures_of_line = compute_figures(*flatten(answers, kind), threshold)
    return f"{name:<44}{len(answers):>5}" + "".join(
        f"{value:>16.3f}" for value in figures_of_line.values()
    )


HEAD = f"{'':<44}{'n':>5}" + "".join(
    f"{name:>16}"
    for name in ("precision", "recall", "recall at P .9", "prec. at R .7", "credited", "no say")
)


def print_tables(answers: Sequence[Asked], threshold: float) -> None:
    """Print the tables of unchanged answers and of the three variants."""
    print(HEAD)
    for source in ("LoCoMo", "BEAM", None):
        own = [answer for answer in answers if source in (None, answer.kind)]
        print(format_row(f"{source or 'both'}: every answer as it is", own, "as it is", threshold))
        for kind in KINDS:
            print(
                format_row(
                    f"{source or 'both'}: the third {kind}",
                    [o for o in own if o.drawn == kind],
                    kind,
                    threshold,
                )
            )
        print(format_row(f"{source or 'both'}: the three thirds", own, None, threshold))
        print(format_row(f"{source or 'both'}: every answer {SWAPPED}", own, SWAPPED, threshold))


def ablate(answers: Sequence[Asked], policy: Any, threshold: float) -> None:
    """Print the figures without each cue."""
    print(f"\nwithout a cue (0 for all), every answer as it is\n{HEAD}")
    without = {"with all": ()} | {f"without {cue}": (cue,) for cue in policy.inputs}
    for name, cues in (
        without | {f"without {name}": cues for name, cues in GROUPS.items()}
    ).items():
        less = []
        for answer in answers:
            cues_left = {
                cue: values * (cue not in cues) for cue, values in answer.cues["as it is"].items()
            }
            # not exactly 0: all zeros mean an answer without new information
            if "alike" in cues:
                cues_left["alike"] = answer.cues["as it is"]["alike"] * 1e-9
            less.append(
                Asked(
                    answer.conversation,
                    answer.kind,
                    {},
                    {"as it is": compute_credits(policy, cues_left)},
                    answer.gold,
                    "",
                )
            )
        print(format_row(name, less, "as it is", threshold))


def fit(answers: Sequence[Asked], names: Sequence[str]) -> None:
    """Print the weights of a logistic regression and its cross-validated figures."""
    from sklearn.linear_model import LogisticRegression

    rows = [
        (
            answer.conversation,
            kind,
            np.stack([answer.cues[kind][name] for name in names], axis=1),
            answer.gold & (kind != SWAPPED),
        )
        for answer in answers
        for kind in (*KINDS[:2], SWAPPED)
    ]
    where = np.concatenate([[name] * len(gold) for name, _, _, gold in rows])
    which = np.concatenate([[kind] * len(gold) for _, kind, _, gold in rows])
    x, y = np.concatenate([row[2] for row in rows]), np.concatenate([row[3] for row in rows])
    spread = x.std(axis=0)
    held_out = np.zeros(len(y))
    for name in np.unique(where):
        model = LogisticRegression(C=1.0, max_iter=2000).fit(
            (x / spread)[where != name], y[where != name]
        )
        held_out[where == name] = model.predict_proba((x / spread)[where == name])[:, 1]
    for kind in (*KINDS[:2], SWAPPED):
        chosen = which == kind
        print(
            f"cross-validated, {kind}:",
            {k: round(v, 3) for k, v in compute_figures(held_out[chosen], y[chosen], 0.5).items()},
        )
    model = LogisticRegression(C=1.0, max_iter=2000).fit(x / spread, y)
    print(f"intercept {model.intercept_[0]:.2f}")
    for name, weight in zip(names, model.coef_[0] / spread, strict=True):
        print(f"  {name:<16}{weight:+.3f}")


def build_matrix(
    answers: Sequence[Asked], kinds: Sequence[str], names: Sequence[str]
) -> tuple[Any, Any]:
    """Return the cues and the labelled use of every result under several variants."""
    pairs = [
        (answer.cues[kind], answer.gold & (kind in KINDS[:2]))
        for kind in kinds
        for answer in answers
    ]
    return (
        np.concatenate([np.stack([cues[name] for name in names], axis=1) for cues, _ in pairs]),
        np.concatenate([used for _, used in pairs]),
    )


def print_other_models(first: Sequence[Asked], second: Sequence[Asked]) -> None:
    """Print other models of the same cues, fitted on the first half and tested on the second."""
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    every = sorted(second[0].cues["as it is"])
    question = [
        name
        for name in every
        if name.startswith("asked") or name in ("of-another", "length", "is-question")
    ]
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    pairs = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=0.01),
    )
    trees = HistGradientBoostingClassifier(
        max_depth=4, learning_rate=0.05, max_iter=150, random_state=0
    )
    forest = ExtraTreesClassifier(500, min_samples_leaf=5, random_state=0)
    kinds = (*KINDS[:2], SWAPPED)
    print(f"\nother ways, fitted on the first half; the threshold is a chance of a half\n{HEAD}")
    for name, model, names, on in (
        ("the question alone", linear, question, kinds[:1]),
        ("linear, cues of the policy", linear, FITTED, kinds),
        ("linear, all cues", linear, every, kinds),
        ("linear, all cues, answers as they are", linear, every, kinds[:1]),
        ("pairs of cues of the policy", pairs, FITTED, kinds),
        ("boosted trees, all cues", trees, every, kinds),
        ("boosted trees, answers as they are", trees, every, kinds[:1]),
        ("forest, all cues, answers as they are", forest, every, kinds[:1]),
    ):
        model.fit(*build_matrix(first, on, names))
        for source in ("LoCoMo", "BEAM", None):
            own = [answer for answer in second if source in (None, answer.kind)]
            x, used = build_matrix(own, KINDS[:1], names)
            values = compute_figures(model.predict_proba(x)[:, 1], used, 0.5)
            print(
                f"{name + ': ' + (source or 'both'):<44}{len(own):>5}"
                + "".join(f"{v:>16.3f}" for v in values.values())
            )


def share_without_overlap(answers: Sequence[Asked]) -> float:
    """Return the share of evidence that shares no word, number or date with the answer."""
    cues = [answer.cues["as it is"] for answer in answers]
    none = [(c["covers"] == 0) & (c["same-date"] == 0) & (c["said-then"] == 0) for c in cues]
    return float(np.concatenate(none)[np.concatenate([answer.gold for answer in answers])].mean())


def find_threshold(answers: Sequence[Asked]) -> float:
    """Return the lowest credit at which .9 of the credited memories were used."""
    credit, used = flatten(answers, "as it is")
    order = np.argsort(-np.nan_to_num(credit, nan=-1.0), kind="stable")
    precision = np.cumsum(used[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(precision >= 0.9)
    return float(credit[order][enough[-1]]) if len(enough) else 1.0


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("locomo", type=Path)
    parser.add_argument("beam", type=Path)
    parser.add_argument("--corrections", type=Path, help="corrected evidence for LoCoMo")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--fit",
        action="store_true",
        help="fit on the first half and print the result; do not read the second",
    )
    arguments = parser.parse_args()
    locomo, beam = (
        correct_evidence(read_locomo(arguments.locomo), arguments.corrections),
        list(read_beam(arguments.beam)),
    )
    policy = memlab.load_pack("memlab").policies["credit"]
    first = [
        answer
        for talk in (*locomo[:3], *beam[:4])
        for answer in recall_all(talk, arguments.seed, policy)
    ]
    threshold = find_threshold(first)
    print(
        f"policy credit [{policy.hash[:12]}], threshold {threshold:.3f}, of the first half\n\nfirst half"
    )
    print_tables(first, threshold)
    credit, used = flatten(first, None)
    says = ~np.isnan(credit)
    curve = fit_calibration(policy.hash, np.clip(credit[says], 0, 1), used[says].astype(float))
    if arguments.fit:
        fit(first, FITTED)
        print(f"calibration on the three thirds, pairs of credit and chance of use\n{curve.body}")
        return
    second = [
        answer
        for talk in (*locomo[3:], *beam[4:])
        for answer in recall_all(talk, arguments.seed, policy)
    ]
    print("\nsecond half, opened once everything above was frozen")
    print_tables(second, threshold)
    print(
        f"evidence that shares no word, number or date with its answer: {share_without_overlap(second):.3f}"
    )
    ablate(second, policy, threshold)
    print_other_models(first, second)
    credit, used = flatten(second, None)
    is_rated = ~np.isnan(credit)
    chance = curve.chance(np.clip(credit[is_rated], 0, 1))
    print(
        "\nthree thirds of the second half: chance of use by the curve of the first, and how often it was used"
    )
    for low, high in ((0, 0.05), (0.05, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        inside = (chance >= low) & (chance < high)
        if inside.any():
            row = f"{chance[inside].mean():>8.3f}{used[is_rated][inside].mean():>8.3f}"
            print(f"  {low:.2f}-{min(high, 1):.2f}{inside.sum():>7}{row}")


FITTED = (
    *(
        "evidence-lead",
        "near-lead",
        "asked-lead",
        "words-lead",
        "alike",
        "asked-words",
        "rarest",
        "same-date",
    ),
    *("said-then", "of-another", "length"),
)
"""The cues that ``--fit`` weighs."""

if __name__ == "__main__":
    main()
