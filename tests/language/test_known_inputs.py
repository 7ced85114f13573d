"""A policy where some inputs are known beforehand computes what the whole policy computes, to the bit."""

import numpy as np
import pytest

import memlab
from memlab.kernel.language import Coded, Program, compile_policy
from memlab.kernel.policies import FEATURES, SLOTS

ROWS = 50


def columns(policy, dice, constants):
    """Return an array for each input, and one value for each known input."""
    result = {}
    for name in policy.inputs:
        kind = FEATURES[name].type if name in FEATURES else "num"
        if name in constants:
            value = constants[name]
            nulls = np.ones(ROWS, dtype=bool) if value is None else None
            result[name] = np.full(ROWS, 0.0 if value is None else value), nulls
        elif kind == "bool":
            result[name] = dice.random(ROWS) < 0.5, None
        elif kind == "str":
            result[name] = (
                dice.choice(np.array(["user", "assistant", "other"], dtype=object), ROWS),
                None,
            )
        else:
            result[name] = dice.normal(size=ROWS), None
    return result


@pytest.mark.parametrize("pack", sorted(memlab.packs()))
@pytest.mark.parametrize("slot", ["seed-score", "cut", "recall-score"])
def test_a_smaller_program_agrees_with_the_whole(pack, slot):
    policy, dice = memlab.load_pack(pack).policies[slot], np.random.default_rng(5)
    if policy.derived:
        pytest.skip("it reads sets")
    flags = [
        name for name in policy.inputs if name.startswith(("asks-", "names-")) and name in FEATURES
    ]
    for _ in range(8):
        known = {
            name: None if FEATURES[name].nullable else bool(dice.random() < 0.5) for name in flags
        }
        given = columns(policy, dice, known)
        values, nulls = policy.arrays(given, order=np.arange(ROWS))
        program = Program(policy).specialise(tuple(known.items()))
        assert not set(program.reads) & set(known)
        ready = [given[name] for name in program.reads]
        smaller, missing = program.compute(ready, ROWS, order=np.arange(ROWS))
        assert np.array_equal(values.view(np.int64), smaller.view(np.int64))
        assert (nulls is None) == (missing is None)


def test_words_as_codes_are_compared_as_words_are():
    text = '(fn [kind] (if (= kind "fact") 1 (if (= kind "turn") 2 0)))'
    policy = compile_policy(text, SLOTS["recall-score"].signature)
    program = Program(policy)
    assert program.compares == {"kind"}
    coded = Coded(np.array([0, 1, -1, 0]), ("turn", "fact"), {"turn": 0, "fact": 1})
    values, nulls = program.compute([(coded, None)], 4)
    assert (values.tolist(), nulls) == ([2.0, 1.0, 0.0, 2.0], None)
    assert coded.array().tolist() == ["turn", "fact", None, "turn"]
