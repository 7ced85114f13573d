"""How the conformance tests ask a pack: every way of running a policy must give the same answer."""

import itertools

import numpy as np
import polars as pl
import pytest

from memlab.kernel.policies import load_pack

UNSAID = {
    "activation": 1.0,
    "kind": "fact",
    "trust": None,
    "new/kind": "event",
    "old/kind": "event",
    "pair/overlap": 0.5,
    "pair/same-order": True,
    "pair/same-numbers": True,
    "pair/update-words": False,
    "pair/negates": False,
    "pair/conflicts": False,
    "pair/updates": False,
    "pair/same-subject": False,
    "pair/same-predicate": False,
    "pair/same-value": False,
}
"""What holds of a memory, or a pair, of which nothing was said."""


def decisions(pack, slot, rows):
    """Return the decisions of a slot for rows of values: by columns, by arrays and row by row, which must agree.

    A record gives a dict a row: the fields that the policy may update.
    """
    policy = load_pack(pack).policies[slot]
    assert rows, "nothing to decide"
    rows = [UNSAID | row for row in rows]
    one_by_one = [policy.row({name: row[name] for name in policy.inputs}) for row in rows]
    columns = {name: [row[name] for row in rows] for name in policy.inputs} or {
        "hops": [0.0] * len(rows)
    }
    assert policy.columns(pl.DataFrame(columns, strict=False)).to_list() == one_by_one
    arrays = {name: _array(values) for name, values in columns.items()}
    if policy.signature.returns == "record":
        result = {name: _values(*pair) for name, pair in policy.updates(arrays).items()}
        same = [{name: values[at] for name, values in result.items()} for at in range(len(rows))]
        for ours, theirs in zip(same, one_by_one, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-12)
    else:
        same = _values(*policy.arrays(arrays))
        numbers = policy.signature.returns == "num"
        assert same == (pytest.approx(one_by_one, rel=1e-12) if numbers else one_by_one)
    return one_by_one


def decide(pack, slot, **values):
    """Return the decision for one row; underscores in names become hyphens."""
    return decisions(
        pack, slot, [{name.replace("_", "-"): value for name, value in values.items()}]
    )[0]


def every(**choices):
    """Return rows of every combination of values; underscores become hyphens, double ones the slash of pairs."""
    names = [name.replace("__", "/").replace("_", "-") for name in choices]
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*choices.values())]


def _array(values):
    unknown = np.array([value is None for value in values])
    if any(isinstance(value, str) for value in values):
        array = np.array([value or "" for value in values], dtype=object)
    else:
        array = np.array([0 if value is None else value for value in values])
    return (array, unknown) if unknown.any() else array


def _values(values, nulls):
    return [
        None if nulls is not None and nulls[at] else value
        for at, value in enumerate(values.tolist())
    ]
