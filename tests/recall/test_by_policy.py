"""The slot ``select``: one after another, by a policy that knows what was taken before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.kernel.policies import load_pack
from memlab.kernel.slates import decode

MMR = "(fn [score likeness] (- (* 0.7 score) (* 0.3 likeness)))"
ONE_A_SESSION = "(fn [score session-taken] (when (< session-taken 1) score))"
ONE_A_SPEAKER = "(fn [score speaker-taken] (when (< speaker-taken 1) score))"
NO_COPIES = "(fn [score likeness] (when (< likeness 0.9) score))"
DETERMINANT = "(fn [score novelty] (+ (* 2 score) (log novelty)))"


def a_lab(texts=(), **more):
    lab = memlab.open(**more)
    for number in range(8):
        lab.remember(
            f"tabs are fine, note {number % 3}", session=f"s{number % 3}", speaker=f"p{number % 4}"
        )
    for text in texts:
        lab.remember(text)
    return lab


def select_ids(lab, source, limit=5, **more):
    lab.policies.install("select", source)
    return [hit.id for hit in lab.recall("tabs", limit=limit, log=False, **more)]


@pytest.mark.long
def test_at_its_default_nothing_changes():
    with a_lab() as lab:
        before = [(hit.id, hit.score) for hit in lab.recall("tabs", log=False)]
        lab.policies.install("select", "(fn [score] score)")
        assert lab.policies.pack.hash == load_pack("memlab").hash
        assert [(hit.id, hit.score) for hit in lab.recall("tabs", log=False)] == before


def test_the_score_alone_gives_the_order_of_the_scores():
    with a_lab() as lab:
        plain = [hit.id for hit in lab.recall("tabs", limit=8, log=False)]
        assert select_ids(lab, "(fn [score] (* 2 score))", limit=8) == plain


@pytest.mark.long
def test_a_cap_for_each_session_and_speaker():
    with a_lab() as lab:
        sessions = dict(zip(lab.memories["id"], lab.memories["session"], strict=True))
        speakers = dict(zip(lab.memories["id"], lab.memories["speaker"], strict=True))
        assert len({sessions[id] for id in select_ids(lab, ONE_A_SESSION)}) == 3
        taken = select_ids(lab, ONE_A_SPEAKER)
        assert len(taken) == len({speakers[id] for id in taken}) == 4


def test_copies_are_shown_once():
    with memlab.open() as lab:
        lab.remember(
            ["tabs are fine", "tabs are fine", "tabs are fine!", "a meeting on Tuesday"],
            linking="off",
        )
        texts = dict(zip(lab.memories["id"], lab.memories["text"], strict=True))
        taken = [texts[id] for id in select_ids(lab, NO_COPIES)]
        assert taken.count("tabs are fine") == 1
        assert "a meeting on Tuesday" in taken


def test_an_item_that_select_never_takes_is_not_shown():
    with a_lab() as lab:
        assert select_ids(lab, "(fn [score] (when (> score 1000) score))") == []


@pytest.mark.parametrize("source", [MMR, ONE_A_SESSION, ONE_A_SPEAKER, NO_COPIES, DETERMINANT])
def test_the_library_policies_are_short(source):
    assert source.count("\n") < 5
    with a_lab() as lab:
        taken = select_ids(lab, source)
        assert len(taken) == len(set(taken)) > 0


@pytest.mark.long
def test_a_selection_policy_is_logged_and_the_default_is_not():
    with a_lab() as lab:
        lab.recall("tabs")
        lab.policies.install("select", MMR)
        lab.recall("tabs")
        logged = [
            decode(blob, decision=seq).policies for seq, blob in lab.io.store.journal.slates()
        ]
    assert ["select" in policies for policies in logged] == [False, True]


@pytest.mark.long
def test_a_parameter_of_it_can_be_given_for_one_recall():
    with a_lab() as lab:
        lab.policies.install(
            "select", "(fn [score likeness] (- score (* (param :w 0.0 :low 0 :high 5) likeness)))"
        )
        plain = [hit.id for hit in lab.recall("tabs", log=False)]
        apart = [hit.id for hit in lab.recall("tabs", log=False, params={"select:w": 5})]
        assert plain != apart


@pytest.mark.long
def test_a_challenger_is_shown_as_its_select_orders_it():
    text = '(defpolicy select [score session-taken] "One." (when (< session-taken 1) score))'
    other = f'(pack other "One a session." :inherits memlab) {text}'
    with a_lab() as lab:
        head = [hit.id for hit in lab.recall("tabs", pack=other, limit=3, log=False)]
        sessions = dict(zip(lab.memories["id"], lab.memories["session"], strict=True))
        assert len({sessions[id] for id in head}) == 3


@pytest.mark.long
def test_a_log_alone_cannot_evaluate_a_selection_policy():
    with a_lab() as lab:
        for query in ("tabs", "fine", "note"):
            lab.feedback(lab.recall(query)[0], "success")
        slates = lab.slates().collect()
        log = memlab.Slates.from_frames(
            slates.decisions, slates.candidates, slates.exposures, slates.feedback
        )
        pack = '(pack other "Apart." :inherits memlab) (defpolicy select [score likeness] "MMR." (- score likeness))'
        result = memlab.evaluate(log, [pack, "memlab"], missing="zero")
        assert "other" in str(result)


def slow_mmr(scores, cosines, weight, count):
    """Return the order by definition: every step compares all pairs."""
    taken = []
    while len(taken) < count:
        worth = [
            -np.inf
            if position in taken
            else weight * scores[position]
            - (1 - weight) * max([0.0, *(cosines[position, other] for other in taken)])
            for position in range(len(scores))
        ]
        taken.append(int(np.argmax(worth)))
    return taken


def slow_novelty(matrix, selected, position):
    """Return the squared residual of a unit vector after least squares on the selected vectors."""
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    if not selected:
        return 1.0
    basis = unit[selected].T
    left = unit[position] - basis @ np.linalg.lstsq(basis, unit[position], rcond=None)[0]
    return float(left @ left)


class FakePool:
    """A pool of vectors: what ``rank_by_policy`` asks of one."""

    def __init__(self, matrix, ask):
        self.rows = np.arange(len(matrix))
        self.state = self
        self.vectors = self
        self.names = {"speaker": self}
        self.codes = np.full(len(matrix), -1, dtype=np.int32)
        self._matrix, self._ask = matrix, ask

    def contexts(self):
        return self.codes

    def take(self, rows):
        return self._matrix[rows]

    def ask_some(self, policy, places, options):
        return self._ask({name: value() for name, value in options.items()}), None


class Reads:
    inputs = ("likeness", "novelty")


vectors = st.integers(2, 9).flatmap(
    lambda count: st.lists(
        st.lists(st.integers(-127, 127), min_size=12, max_size=12), min_size=count, max_size=count
    )
)


@pytest.mark.long
@given(vectors, st.floats(0.1, 0.9), st.randoms(use_true_random=False))
def test_likeness_is_that_of_the_definition(rows, weight, random):
    from memlab.kernel.recall._ranking import rank_by_policy

    matrix = np.array(rows, dtype=np.int8)
    norms = np.linalg.norm(matrix.astype(float), axis=1)
    if not norms.all():
        return
    scores = np.array([random.random() for _ in rows])
    cosines = matrix.astype(float) @ matrix.astype(float).T / np.outer(norms, norms)
    pool = FakePool(
        matrix, lambda given: weight * given["score"] - (1 - weight) * given["likeness"]
    )
    result = rank_by_policy(Reads, pool, scores, depth=len(rows), closeness=lambda cosine: cosine)
    slow = slow_mmr(scores, cosines, weight, len(rows))
    worth = [_worth(scores, cosines, weight, order) for order in (result.order.tolist(), slow)]
    assert np.allclose(*worth)


def _worth(scores, cosines, weight, order):
    return [
        weight * scores[item]
        - (1 - weight) * max([0.0, *(cosines[item, other] for other in order[:step])])
        for step, item in enumerate(order)
    ]


@pytest.mark.long
@given(vectors)
def test_novelty_is_what_least_squares_leaves(rows):
    from memlab.kernel.recall._ranking import rank_by_policy

    matrix = np.array(rows, dtype=np.int8)
    if not np.linalg.norm(matrix.astype(float), axis=1).all():
        return
    seen = []

    def ask(options):
        seen.append(options["novelty"])
        return options["score"]

    scores = -np.arange(len(rows), dtype=float)  # taken in the order of the rows
    rank_by_policy(
        Reads, FakePool(matrix, ask), scores, depth=len(rows), closeness=lambda cosine: cosine
    )
    for step, novelty in enumerate(seen):
        slow = [
            slow_novelty(matrix.astype(float), list(range(step)), position)
            for position in range(step, len(rows))
        ]
        assert np.allclose(novelty, slow, atol=1e-6)


class ReadsBudget:
    inputs = ("tokens", "budget")


def slow_knapsack(scores, costs, budget):
    """Select greedily the best item that still fits, by definition."""
    taken = []
    while True:
        left = budget - sum(costs[position] for position in taken)
        fits = [
            position
            for position in range(len(scores))
            if position not in taken and costs[position] <= left
        ]
        if not fits:
            return taken
        taken.append(max(fits, key=lambda place: (scores[place], -place)))


@pytest.mark.long
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50)), min_size=1, max_size=9),
    st.integers(0, 200),
)
def test_the_budget_is_what_those_taken_leave(candidates, budget):
    from memlab.kernel.recall._ranking import rank_by_policy

    scores, costs = (np.array(column, dtype=float) for column in zip(*candidates, strict=True))
    pool = FakePool(
        np.ones((len(scores), 2), dtype=np.int8),
        lambda given: np.where(given["tokens"][0] <= given["budget"][0], given["score"], np.nan),
    )
    result = rank_by_policy(
        ReadsBudget,
        pool,
        scores,
        depth=len(scores),
        closeness=lambda cosine: cosine,
        spending=lambda rows: (costs[rows], float(budget)),
    )
    assert result.order[: result.showable].tolist() == slow_knapsack(scores, costs, budget)


@pytest.mark.long
def test_a_context_has_a_budget_and_a_recall_has_none():
    priced = "(fn [score tokens budget] (when (and (>= tokens 1) (<= tokens budget)) score))"
    unpriced = "(fn [score tokens budget] (when (and (null? tokens) (null? budget)) score))"
    with a_lab() as lab:
        assert select_ids(lab, priced) == []
        assert len(select_ids(lab, unpriced)) == 5
        assert lab.context("tabs", budget=500).frame.height == 0
        lab.policies.install("select", priced)
        assert lab.context("tabs", budget=500).frame.height > 0
