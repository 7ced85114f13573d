"""Mutation and crossover: whatever the parents, the offspring compile, stay within the limits and evaluate."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import examples

from memlab.errors import InputError, PolicyNameError, PolicySyntaxError, UnknownName
from memlab.kernel.language import Input, Policy, Signature, compile_policy, read_pack
from memlab.kernel.language.graph import reachable
from memlab.kernel.policies import load_pack
from memlab.science.breeding import crossover, draft_crossover, draft_mutation, mutate
from memlab.science.breeding._breed import MUTATIONS, Offspring
from memlab.subjects.lens import subtrees
from memlab.subjects.lens.edit import Draft
from tests.language.programs import ARGUMENTS, BOOL, NUM, SCHEMA, STR, program

QUICK = examples(60, quick=8, suppress_health_check=list(HealthCheck))
SLOTS = {"num": NUM, "bool": BOOL, "str": STR}
typed = st.sampled_from(["num", "bool", "str"])
parents = typed.flatmap(
    lambda t: st.tuples(st.just(t), program(t, 2, inexact=True), program(t, 2, inexact=True))
)
seeds = st.integers(0, 2**32)

INPUTS = [
    Input("x"),
    Input("y"),
    Input("z"),
    Input("kind", "str", words=("fact", "event")),
    Input("tags", "set"),
]
SLOT = Signature("recall-score", INPUTS, aggregates=True)
RECORD = Signature(
    "reinforce", [*INPUTS, Input("pinned", "bool")], returns="record", fields=["x", "kind"]
)
WORDS = Signature("label", INPUTS, "str", words=("vivid", "hazy"))
ITEM = {"x": 1.0, "y": -2.0, "z": 0.0, "kind": "fact", "tags": ["a"], "pinned": True}
FRAME = pl.DataFrame(
    {"x": [1.0, None, math.nan], "y": [0.0, -1.0, 2.0], "z": [1e300, 3.0, 0.5]}
).with_columns(
    kind=pl.Series(["fact", "event", None]),
    tags=pl.Series([["a"], [], ["b"]]),
    memory_id=pl.Series([1, 2, 3]),
)


def policy(source: str, signature: Signature = SLOT, **options) -> Policy:
    return compile_policy(source, signature, **options)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def size(of: Policy) -> int:
    return len(reachable(of.root))


def check(parent: Policy, child: Offspring, maximum: int) -> None:
    """Check the invariants of every offspring."""
    policy = child.policy
    again = compile_policy(
        policy.source, policy.signature, name=policy.name, helpers=policy.helpers
    )
    assert again.with_params({name: p.value for name, p in policy.params.items()}) == policy
    assert size(policy) <= maximum or size(policy) < size(parent) or policy == parent
    assert child.changed is (policy.meaning_hash != parent.meaning_hash)
    assert policy.signature == parent.signature


@pytest.mark.long
@QUICK
@given(parents, seeds)
def test_any_parents_have_valid_offspring(case: tuple[str, str, str], seed: int) -> None:
    a, b = (compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[case[0]]) for body in case[1:])
    table = pl.DataFrame({name: [None, None] for name in SCHEMA}, schema=SCHEMA)
    for child in (mutate(a, rng(seed), max_nodes=40), crossover(a, b, rng(seed), max_nodes=40)):
        check(a, child, 40)
        assert len(child.policy.columns(table)) == 2
        child.policy.row(table.row(0, named=True))


@pytest.mark.long
@QUICK
@given(parents, seeds)
def test_the_same_seed_gives_the_same_offspring(case: tuple[str, str, str], seed: int) -> None:
    a, b = (compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[case[0]]) for body in case[1:])
    assert mutate(a, rng(seed)) == mutate(a, rng(seed))
    assert crossover(a, b, rng(seed)) == crossover(a, b, rng(seed))


@pytest.mark.long
def test_nearly_every_offspring_computes_something_else() -> None:
    packs = [load_pack(name) for name in ("memlab", "cascade", "workbench", "companion")]
    scores = [pack.policies["recall-score"] for pack in packs]
    dice, changed, tries = rng(1), 0, 0
    for i in range(200):
        a, b = scores[i % 4], scores[(i + 1) % 4]
        for child in (mutate(a, dice), crossover(a, b, dice)):
            check(a, child, 200)
            changed += child.changed
            tries += child.tries
    assert changed >= 396
    assert tries <= 800


@pytest.mark.long
def test_a_line_of_descent_stays_within_the_limit() -> None:
    parent, dice = load_pack("memlab").policies["recall-score"], rng(2)
    for _ in range(150):
        parent = mutate(parent, dice, max_nodes=60).policy
    assert size(parent) <= 60


@pytest.mark.parametrize("kind", MUTATIONS)
def test_every_kind_of_mutation(kind: str) -> None:
    parent = policy(
        '(fn [x kind] (let [a (* (param :w 0.5 :low 0 :high 1) x)] (if (= kind "fact") (+ a x 2) (exp a))))'
    )
    children = [mutate(parent, rng(seed), kinds=[kind]) for seed in range(20)]
    assert all(child.changed for child in children)
    assert all(child.edits[0].startswith(f"{kind}:") for child in children)
    assert len({child.policy.meaning_hash for child in children}) > 2
    for child in children:
        check(parent, child, 200)


@pytest.mark.long
def test_constants_are_shaken_log_normally() -> None:
    parent = policy("(fn [x] (* 2 (clamp x 0 1)))")
    values = []
    for seed in range(400):
        (told,) = mutate(parent, rng(seed), kinds=["constant"], scale=0.2).edits
        before, after = told.removeprefix("constant: ").split(" -> ")
        assert before == "2"
        values.append(math.log(float(after) / 2))
    assert np.mean(values) == pytest.approx(0, abs=0.03)
    assert np.std(values) == pytest.approx(0.2, abs=0.03)


def test_parameters_keep_their_bounds() -> None:
    parent = policy("(fn [x] (* (param :w 0.9 :low 0.8 :high 1) x))")
    values = [
        mutate(parent, rng(s), kinds=["parameter"], scale=3).policy.params["w"].value
        for s in range(50)
    ]
    assert min(values) == 0.8
    assert max(values) == 1.0


def test_a_new_feature_joins_the_arguments() -> None:
    for seed in range(50):
        child = mutate(policy("(fn [x] (* 2 x))"), rng(seed), kinds=["leaf"]).policy
        if "y" in child.inputs:
            assert child.source.startswith("(fn [x y] ")
            return
    pytest.fail("no seed brought y in")


def test_layout_and_comments_outside_the_change_stay() -> None:
    child = mutate(policy("(fn [x] ; why\n  (* 2   x))"), rng(), kinds=["constant"]).policy
    assert child.source.startswith("(fn [x] ; why\n  (* ")
    assert child.source.endswith("   x))")


@pytest.mark.long
def test_records_are_bred_expression_by_expression() -> None:
    a = policy(
        '(fn [x y kind pinned] (if pinned (update :x (+ x y)) (update :kind "fact" :x 1)))', RECORD
    )
    b = policy('(fn [x z kind] (update :kind (if (> z 1) kind "event") :x (* z x)))', RECORD)
    for seed in range(150):
        for child in (mutate(a, rng(seed)), crossover(a, b, rng(seed))):
            check(a, child, 200)
            assert set(child.policy.row(ITEM)) <= {"x", "kind"}


@pytest.mark.long
def test_closed_words_and_sets_are_respected() -> None:
    label = policy('(fn [x] (if (> x 1) "vivid" "hazy"))', WORDS)
    score = policy("(fn [tags x] (+ (size tags) (min-max x)))")
    for seed in range(150):
        child = mutate(label, rng(seed), edits=3).policy
        assert child.row(ITEM) in ("vivid", "hazy", "fact", None)
        mutate(score, rng(seed), edits=3).policy.columns(FRAME)


@pytest.mark.long
def test_bindings_and_helpers_come_along() -> None:
    pack = read_pack(
        "(pack p) (defn half [a] (/ a 2)) (defn quarter [a] (half (half a)))"
        "(defpolicy recall-score [y] (let [a (quarter y) b (+ a 1)] (* (param :w 3) (exp b))))"
    )
    donor = compile_policy(pack.policies["recall-score"], SLOT, helpers=pack.helpers).with_params(
        {"w": 7}
    )
    parent, found = policy("(fn [x] x)"), set()
    for seed in range(100):
        child = crossover(parent, donor, rng(seed)).policy
        found |= {
            word
            for word in ("let [a (quarter y) b", "let [a (quarter y)]", "(quarter y)")
            if word in child.source
        }
        if ":w" in child.source:
            assert child.params["w"].value == 7.0
        check(
            parent, Offspring(child, ("",), 1) if child != parent else Offspring(child, (), 1), 200
        )
    assert len(found) == 3


@pytest.mark.long
def test_helpers_of_one_name_and_two_meanings_do_not_mix() -> None:
    a = policy("(defn f [a] (* 2 a)) (fn [x] (f x))")
    b = policy("(defn f [a] (* 3 a)) (fn [y] (f y))")
    for seed in range(50):
        child = crossover(a, b, rng(seed))
        assert not child.edits or not child.edits[0].endswith("-> (f y)")
        assert child.policy.helpers == ()


def test_a_policy_that_nothing_fits_comes_back_as_it_is() -> None:
    parent = policy("(fn [x] x)")
    assert mutate(parent, rng(), kinds=["constant"], tries=5) == Offspring(parent, (), 5)
    assert mutate(parent, rng(), kinds=["grow"], max_nodes=1, tries=5).policy.root.op in (
        "input",
        "const",
    )
    assert crossover(parent, parent, rng(), tries=3) == Offspring(parent, (), 3)


@pytest.mark.long
@QUICK
@given(parents, seeds)
def test_a_draft_has_the_graph_of_its_compiled_text(case: tuple[str, str, str], seed: int) -> None:
    pool = [compile_policy(f"(fn [{ARGUMENTS}] {body})", SLOTS[case[0]]) for body in case[1:]]
    dice = rng(seed)
    for _ in range(8):
        a, b = (pool[int(dice.integers(len(pool)))] for _ in range(2))
        for draft, *_ in (draft_mutation(a, dice, 2), draft_crossover(a, b, dice)):
            if draft is not None:
                assert draft.root.digest == draft.policy.root.digest
                assert draft.size == size(draft.policy)
                pool.append(draft.policy)


def test_a_name_that_let_binds_again_is_checked_again() -> None:
    parent = policy("(fn [x y] (let [a x b (* 2 a)] (+ b (min-max (* 2 a)))))")
    x = next(tree for tree in subtrees(parent) if tree.source == "x")
    for text in ("y", "(+ x y)", "x", "(max y 1)"):
        draft = Draft(parent, {x.span: text})
        assert draft.root.digest == draft.policy.root.digest


def test_a_draft_that_is_not_valid_has_the_error_of_its_text() -> None:
    parent = policy("(fn [x] (+ x 1))")
    with pytest.raises(PolicyNameError, match="Nothing is called"):
        Draft(parent, {subtrees(parent)[1].span: "unknown"})
    with pytest.raises(PolicySyntaxError, match="not one whole form"):
        Draft(parent, {subtrees(parent)[1].span: "1) (+ 2"})


def test_the_root_is_not_swapped_with_its_own_argument() -> None:
    parent = policy("(fn [x] (min-max x))")
    assert not mutate(parent, rng(), kinds=["swap"]).changed


def test_refusals() -> None:
    lists = compile_policy(
        "(lambda (acts) (first (range (length acts))))",
        Signature("explore", INPUTS, lists={"acts": "x"}),
    )
    with pytest.raises(InputError, match="works on lists"):
        mutate(lists, rng())
    with pytest.raises(UnknownName, match="Did you mean constant"):
        mutate(policy("(fn [x] x)"), rng(), kinds=["constants"])
    for wrong in ({"edits": 0}, {"tries": 0}, {"max_nodes": 0}, {"scale": 0.0}, {"kinds": []}):
        with pytest.raises(InputError):
            mutate(policy("(fn [x] x)"), rng(), **wrong)  # type: ignore[arg-type]
