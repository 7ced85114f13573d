"""Fit the confidence of extracted facts to judged proposals; print the table for ``english.toml``.

    python experiments/fit_extraction_confidence.py FOLDER --chitchat dataset.json

Proposals and judgements are those of ``extraction_judged.py``, without held-out chats. The share of useful facts of a
rule shrinks towards the share of its sort, and that towards .5. A logistic regression on the sort and the form of the
statement is compared with it. Both are cross-validated with whole chats left out. Printed are the mean squared error
and the area under the curve of each, and the table's confidence of facts that are not useful.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from extraction_judged import JUDGEMENTS, propose_facts
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline

from memlab.kernel.english import lexicon
from memlab.subjects.extraction.staged import Proposed

PRIOR, OF_SORT, OF_RULE = 0.5, 4.0, 6.0
"""The prior share without evidence, and the number of judged cases that the wider share counts as."""


def find_sort(rule: str) -> str:
    """Return the sort of a rule's values, or the kind of its predicate."""
    sorts = {row[1]: row[2] for row in lexicon()["extraction"]["verbs"].values()}
    words = lexicon()["extraction"]
    if rule in sorts:
        return str(sorts[rule])
    if rule.startswith(("favorite-", "favourite-")):
        return "favourite"
    name = rule.replace("-", " ")
    if name in words["relations"]:
        return "relation"
    return (
        "property"
        if name in words["properties"] or rule in words["renamed-properties"].values()
        else "open"
    )


def compute_shares(rules: list[str], useful: np.ndarray) -> dict[str, float]:
    """Return the shrunk share of each rule, and of each sort under "sort:"."""
    count, right = (
        Counter(rules),
        Counter(rule for rule, fine in zip(rules, useful, strict=True) if fine),
    )
    table: dict[str, float] = {}
    for sort in {find_sort(rule) for rule in count}:
        of = [rule for rule in count if find_sort(rule) == sort]
        cases, fine = sum(count[rule] for rule in of), sum(right[rule] for rule in of)
        table[f"sort:{sort}"] = (fine + PRIOR * OF_SORT) / (cases + OF_SORT)
        for rule in of:
            table[rule] = (right[rule] + table[f"sort:{sort}"] * OF_RULE) / (count[rule] + OF_RULE)
    return table


def describe_statement(rule: str, proposal: Proposed) -> dict[str, float | str]:
    """Return the features of the form of a statement."""
    value = str(proposal.fields.get("value", proposal.fields.get("object", "")))
    words = value.lower().split()
    return {
        "sort": find_sort(rule),
        "words": float(min(len(words), 10)),
        "pronoun": float(bool({"it", "them", "they", "he", "she", "there"} & set(words))),
        "capital": float(any(part[:1].isupper() for part in value.split())),
        "article": float(bool(words) and words[0] in ("the", "a", "an")),
        "start": float(proposal.start == 0),
        "said": float(min(len(proposal.span), 200)) / 100,
    }


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chitchat", type=Path)
    arguments = parser.parse_args()
    proposals = dict(propose_facts(arguments.folder, also=arguments.chitchat))
    rows = map(
        json.loads, (JUDGEMENTS / "extraction.jsonl").read_text(encoding="utf-8").splitlines()
    )
    judged = [
        (key, row["judgement"] == "useful")
        for row in rows
        if (key := (row["chat"], row["message"], row["sort"], row["rule"], row["nth"])) in proposals
        and row["sort"] == "fact"
    ]
    keys = [key for key, _ in judged]
    useful = np.array([fine for _, fine in judged])
    rules, groups = [key[3] for key in keys], [key[0] for key in keys]
    inputs = [describe_statement(key[3], proposals[key]) for key in keys]
    table, regression = np.zeros(len(keys)), np.zeros(len(keys))
    for train, test in GroupKFold(10).split(keys, useful, groups):
        rates = compute_shares([rules[n] for n in train], useful[train])
        table[test] = [
            rates.get(rules[n], rates.get(f"sort:{find_sort(rules[n])}", PRIOR)) for n in test
        ]
        model = make_pipeline(DictVectorizer(), LogisticRegression(C=0.5, max_iter=2000))
        model.fit([inputs[n] for n in train], useful[train])
        regression[test] = model.predict_proba([inputs[n] for n in test])[:, 1]
    now = np.array([proposals[key].confidence for key in keys])
    print(f"{len(keys)} judged facts that are proposed, {int(useful.sum())} useful")
    for name, sure in (
        ("as it is", now),
        ("shrunk shares", table),
        ("logistic regression", regression),
    ):
        error, area = brier_score_loss(useful, sure), roc_auc_score(useful, sure)
        low = sum(sure[~useful] < 0.6)
        print(
            f"{name:20} squared error {error:.4f}  area {area:.3f}  not useful below .6: {low} of {sum(~useful)}"
        )
    print("[confidence.rules]")
    for rule, share in sorted(compute_shares(rules, useful).items()):
        print(f"{rule} = {share:.2f}  # {rules.count(rule)}")


if __name__ == "__main__":
    main()
