"""Fit what circumstances take off the confidence of a fact that is read from a user's message to an assistant.

    python experiments/extraction_confidence.py FOLDER [--exports FILE]

The judged facts of ``judgements/extraction.jsonl`` are read again with their circumstances (``signs_of``), and a
logistic regression says what each takes off the log-odds that a fact is useful. A circumstance can only take off; one
that fewer than five judged facts have weighs half. Printed are the table ``confidence.circumstances``, and the Brier
score and the share of useful facts above .6 and above the floor, by cross-validation over conversations in five parts.
The signs and their words were chosen on some of these facts, so that it flatters them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from extraction_judged import JUDGEMENTS, chats, exported
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from memlab.reading import Message
from memlab.subjects.extraction.circumstances import roles_played, setting_of
from memlab.subjects.extraction.confidence import FLOOR, signs_of
from memlab.subjects.extraction.reading import facts_in

STRENGTH = 3.0
"""C of the regression: the inverse of what its coefficients cost."""

FEWEST = 5
"""Judged facts with a circumstance below which its weight is halved."""


def judged_facts(folder: Path, exports: Path | None) -> tuple[list[str], list[set[str]], np.ndarray, np.ndarray]:
    """Return chat, circumstances, log-odds of the rule and usefulness of each judged fact of a user's message."""
    rows = [json.loads(line) for line in (JUDGEMENTS / "extraction.jsonl").read_text(encoding="utf-8").splitlines()]
    judged = {
        (row["chat"], row["message"], row["rule"], row["nth"]): row["judgement"] == "useful"
        for row in rows
        if row["sort"] == "fact"
    }
    wanted = {key[0] for key in judged}
    names: list[str] = []
    signs: list[set[str]] = []
    base: list[float] = []
    useful: list[bool] = []
    texts = dict(chats(folder)) | (exported(exports, wanted) if exports else {})
    for name, said in texts.items():
        if name not in wanted or any("speaker" in one for one in said):
            continue
        messages = [Message(one["role"], one["content"]) for one in said]
        played = roles_played(messages)
        for number, message in enumerate(messages):
            seen: Counter[str] = Counter()
            setting = setting_of(message.text, played=number in played)
            for fact in facts_in(message.text, message.role) if message.role == "user" else ():
                key = (name, number, fact.predicate, seen[fact.predicate])
                seen[fact.predicate] += 1
                if key in judged:
                    names.append(name)
                    signs.append(set(signs_of(fact, setting, message.text)))
                    base.append(float(np.log(fact.confidence / (1 - fact.confidence))))
                    useful.append(judged[key])
    return names, signs, np.array(base), np.array(useful)


def conversation_of(name: str) -> str:
    """Return the name of a chat without the number of its part: an export cuts long conversations into several."""
    return name.rsplit("_", 1)[0]


def weights_of(signs: list[set[str]], base: np.ndarray, useful: np.ndarray) -> dict[str, float]:
    """Return what each circumstance takes off the log-odds."""
    known = sorted(set().union(*signs))
    have = np.array([[sign in of for sign in known] for of in signs], dtype=float)
    model = LogisticRegression(C=STRENGTH, max_iter=1000).fit(np.column_stack([have, base - base.mean()]), useful)
    counts = have.sum(axis=0)
    return {
        sign: round(min(0.0, float(weight)) * (0.5 if count < FEWEST else 1.0), 2)
        for sign, weight, count in zip(known, model.coef_[0], counts, strict=False)
    }


def confidences(signs: list[set[str]], base: np.ndarray, weights: dict[str, float]) -> np.ndarray:
    """Return the confidence of each fact under these weights."""
    odds = base + np.array([sum(weights.get(sign, 0.0) for sign in of) for of in signs])
    return np.asarray(1 / (1 + np.exp(-odds)))


def report(label: str, sure: np.ndarray, useful: np.ndarray) -> str:
    """Say how well confidences fit the judgements."""
    above, kept = sure >= 0.6, sure >= FLOOR
    return (
        f"{label:18} n {len(useful)}  Brier {np.mean((sure - useful) ** 2):.3f}  "
        f"above .6: {useful[above].sum()} useful of {above.sum()}  "
        f"above the floor {FLOOR}: {useful[kept].sum()} of {kept.sum()}  "
        f"below: {useful[~kept].sum()} of {(~kept).sum()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--exports", type=Path)
    arguments = parser.parse_args()
    names, signs, base, useful = judged_facts(arguments.folder, arguments.exports)
    print(report("rules alone", confidences(signs, base, {}), useful))
    sure = np.zeros(len(useful))
    for train, test in GroupKFold(5).split(base, groups=[conversation_of(name) for name in names]):
        weights = weights_of([signs[at] for at in train], base[train], useful[train])
        sure[test] = confidences([signs[at] for at in test], base[test], weights)
    print(report("cross-validated", sure, useful))
    weights = weights_of(signs, base, useful)
    print(report("fitted", confidences(signs, base, weights), useful))
    for sign, weight in weights.items():
        has = np.array([sign in of for of in signs])
        print(f"{sign} = {weight:<6} # {useful[has].sum()} useful of {has.sum()}")


if __name__ == "__main__":
    main()
