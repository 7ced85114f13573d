"""Numbers of the five systems through a whole lab, on vectors of given similarity, by independent arithmetic.

``tests/policies`` tests the packs' formulas on values. These tests cover the numbers that no scenario has reached,
through all layers, because a pack's setting has no effect if the engine ignores it.
"""

import itertools
import math

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.kernel.base.clock import DAY, to_micros
from memlab.kernel.embedding import load_embedder

QUESTION = "What about it?"
WIDTH = 64
HALF_LIFE = {
    "decision": math.inf,
    "preference": 180,
    "pr-finding": 90,
    "gotcha": 60,
    "task-outcome": 30,
    "context": 7,
}


class Near:
    """An embedder that puts a text at a given cosine from the question, and any two of those apart otherwise.

    A text that was told no cosine is at right angles to the question.
    """

    def __init__(self):
        self.cosine, self.axis = {QUESTION: 1.0}, {}

    def at(self, cosine, text):
        self.cosine[text] = cosine
        return text

    def __call__(self, texts):
        out = np.zeros((len(texts), WIDTH))
        for row, text in enumerate(texts):
            cosine = self.cosine.get(text, 0.0)
            axis = self.axis.setdefault(text, 1 + len(self.axis) % (WIDTH - 1))
            out[row, 0], out[row, axis] = cosine, math.sqrt(1 - cosine**2)
        return out


@pytest.fixture
def near():
    return Near()


@pytest.fixture
def opened(near, clock):
    labs = []

    def open_(pack):
        labs.append(memlab.open(pack=pack, embedder=load_embedder(near), clock=clock))
        return labs[-1]

    yield open_
    for lab in labs:
        lab.close()


def cosine(lab, first, second=QUESTION):
    a, b = lab.io.embedder.encode([first, second]).astype(np.float64)
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def scores_by_text(lab, **more):
    """Return the score of every candidate of the question, by text."""
    slate = lab.recall(QUESTION, log=False, **more).slate
    texts = lab.memories["text"]
    return {
        texts[id - 1]: score
        for id, score in zip(slate.ids.tolist(), slate.scores.tolist(), strict=True)
    }


class TestCascade:
    @pytest.mark.long
    def test_ten_seeds_and_no_eleventh(self, near, opened):
        """Of thirteen near memories, the ten nearest spread to their neighbours: 0.5 * 0.7, multiplied by 1.5."""
        lab = opened("cascade")
        seeds = [near.at(0.95 - 0.03 * n, f"seed {n}") for n in range(13)]
        assert min(cosine(lab, seed) for seed in seeds) > 0.5
        lab.remember([*seeds, *(f"beside {n}" for n in range(13))], linking="off")
        for n in range(13):
            lab.graph.link(n + 1, n + 14, weight=0.5)
        result = scores_by_text(lab)
        assert {text for text in result if text.startswith("beside")} == {
            f"beside {n}" for n in range(10)
        }
        assert result["beside 3"] == pytest.approx(0.5 * 0.7 * 1.5)
        assert result["seed 3"] == pytest.approx(cosine(lab, "seed 3") * 1.5)

    def test_two_edges_from_a_seed_and_no_third(self, near, opened):
        lab = opened("cascade")
        lab.remember([near.at(0.6, "seed"), "one away", "two away", "three away"], linking="off")
        for source, weight in ((1, 0.3), (2, 0.9), (3, 1.0)):
            lab.graph.link(source, source + 1, weight=weight)
        result = scores_by_text(lab)
        assert result["one away"] == pytest.approx(0.3 * 0.7 * 1.5)
        assert result["two away"] == pytest.approx(0.9 * 0.7**2 * 1.5), (
            "that edge's weight, not the product of both"
        )
        assert "three away" not in result

    def test_a_memory_reached_twice_keeps_the_better_score(self, near, opened):
        lab = opened("cascade")
        lab.remember([near.at(0.6, "seed"), "by hand", "twice"], linking="off")
        lab.graph.link(1, 3, weight=0.1)
        lab.graph.link(1, 2, weight=1.0)
        lab.graph.link(2, 3, weight=1.0)
        assert scores_by_text(lab)["twice"] == pytest.approx(max(0.1 * 0.7, 1.0 * 0.7**2) * 1.5)

    @pytest.mark.parametrize(("closeness", "again"), [(0.33, False), (0.27, True)])
    def test_a_context_nearer_than_three_tenths_goes_on_with_the_topic(
        self, near, opened, closeness, again
    ):
        """What came up once comes up again only on another topic. The memory is near to both contexts."""
        lab = opened("cascade")
        next_one = near.at(closeness, "And this?")
        assert cosine(lab, next_one) == pytest.approx(closeness, abs=0.01)
        lab.remember("A note", triggers=["about", "this"], kind="negative", linking="off")
        turns = lab.agents.turns()
        told = []
        for context in (QUESTION, next_one, "the end"):
            told.append([hit.text for hit in turns.offer(context)])
            assert turns.wait(30)
        assert told == [[], ["A note"], ["A note"] if again else []]

    @pytest.mark.long
    def test_a_near_duplicate_adds_one_to_the_strength(self, near, opened):
        lab = opened("cascade")
        first = lab.remember(near.at(1.0, "Releases leave on Monday"), strength=3.0)
        again = lab.remember(near.at(0.97, "Releases leave on Monday!"))
        assert (again.id, len(lab)) == (first.id, 1)
        assert lab.memories["strength"].to_list() == [4.0]


class TestCompanion:
    def test_initial_values_of_a_memory(self, opened):
        """Strength 100, emotional weight 5, confidence 80 of 100, and half of its own recency."""
        lab = opened("companion")
        lab.remember("We met", kind="event")
        row = lab.memories.row(0, named=True)
        assert [
            row[name] for name in ("strength", "emotional_weight", "confidence", "recency_weight")
        ] == [
            100,
            5,
            0.8,
            0.5,
        ]

    def test_the_hybrid_score_of_a_recall(self, near, opened, clock):
        """0.6 similarity + 0.4 strength / 100; the strength is that of the day, and nothing below 0.3 takes part."""
        lab = opened("companion")
        arguments = {
            "calm": (0.8, 5.0, 100.0),
            "moved": (0.5, 90.0, 70.0),
            "near": (0.32, 0.0, 90.0),
            "far": (0.28, 5, 100),
        }
        for name, (c, feeling, strength) in arguments.items():
            told = {"kind": "event", "emotional_weight": feeling, "strength": strength}
            lab.remember(near.at(c, name), linking="off", **told)
        clock.advance(days=6)
        expected = {
            name: 0.6 * cosine(lab, name) + 0.4 * (strength - 6 * max(2, 5 - 0.03 * feeling)) / 100
            for name, (_, feeling, strength) in arguments.items()
            if name != "far"
        }
        assert scores_by_text(lab) == pytest.approx(expected, rel=1e-9)

    def test_related_memories_are_included_within_two_hops(self, near, opened):
        lab = opened("companion")
        lab.remember([near.at(0.6, "seed"), "one away", "two away", "three away"], linking="off")
        for source in (1, 2, 3):
            lab.graph.link(source, source + 1, "similar-to", weight=0.9)
        assert scores_by_text(lab).keys() == {"seed", "one away", "two away"}
        assert scores_by_text(lab)["two away"] == pytest.approx(0.6 * cosine(lab, "two away") + 0.4)

    @pytest.mark.parametrize(
        ("closeness", "text", "relation"),
        [
            (0.57, "the tea", None),
            (0.63, "the tea", "relates-to"),
            (0.82, "the tea", "relates-to"),
            (0.88, "green tea", "similar-to"),  # "the tea" would be the same fact again
            (0.88, "coffee now", "updates"),
            (0.88, "never tea", "contradicts"),
        ],
    )
    def test_the_edges_of_the_linker(self, near, opened, clock, closeness, text, relation):
        """Under 0.6 nothing, to 0.85 related, above it similar, updates or contradicts: with nearness and time."""
        lab = opened("companion")
        clock.advance(days=1)
        lab.remember(near.at(1.0, "tea"), kind="preference")
        lab.remember(near.at(closeness, text), kind="preference")
        rows = lab.edges.filter(lab.edges["relation"] != "supersedes")
        assert rows["relation"].to_list() == ([] if relation is None else [relation])
        if relation is not None:
            assert rows["weight"].to_list() == pytest.approx([cosine(lab, text, "tea")], abs=1e-6)
            assert rows["created"].dt.timestamp("us").to_list() == [clock()]


@pytest.mark.long
class TestWorkbench:
    def test_the_score_of_a_recall(self, near, opened, clock):
        """0.6 cosine + 0.25 e^(-rate * days since access) + 0.15 min(access / 20, 1), rate = ln 2 / half-life."""
        lab = opened("workbench")
        rows = [
            {"text": near.at(0.4 + 0.05 * n, kind), "kind": kind}
            for n, kind in enumerate(HALF_LIFE)
        ]
        rows.append({"text": near.at(0.9, "pinned"), "kind": "context", "pinned": True})
        lab.remember(rows, linking="off")
        for uses, text in ((3, "gotcha"), (25, "preference")):
            for _ in range(uses):
                assert lab.recall(QUESTION, limit=1, where=pl.col("text") == text).ids
        clock.advance(days=45)
        lab.recall(QUESTION, limit=1, where=pl.col("text") == "context")
        clock.advance(days=5.5)
        expected = {}
        for row in lab.memories.to_dicts():
            days = (clock() - to_micros(row["accessed"])) / DAY
            assert days == pytest.approx(5.5 if row["text"] == "context" else 50.5)
            half_life = math.inf if row["pinned"] else HALF_LIFE[row["kind"]]
            fresh = math.exp(-math.log(2) / half_life * days)
            expected[row["text"]] = (
                0.6 * cosine(lab, row["text"]) + 0.25 * fresh + 0.15 * min(row["access"] / 20, 1)
            )
        assert set(lab.memories["access"]) == {0, 1, 3, 25}
        assert scores_by_text(lab) == pytest.approx(expected, rel=1e-9)

    def test_a_project_that_was_deleted_is_due_after_thirty_days(self, opened, clock):
        lab = opened("workbench")
        lab.remember(
            [{"text": f"note {n}", "project": "api"} for n in range(2)] + ["for all"], linking="off"
        )
        lab.forget(project="api", how="delete")
        clock.advance(days=29.99)
        assert lab.upkeep.maintain().due.is_empty()
        clock.advance(days=0.01)
        assert lab.upkeep.maintain().due["id"].to_list() == [1, 2]
        lab.restore(project="api")
        assert lab.upkeep.maintain().due.is_empty()
        assert lab.memories["status"].to_list() == ["active"] * 3


@pytest.mark.long
class TestFactgraph:
    def test_the_three_nearest_entities_begin(self, near, opened):
        """Five entities stand at given nearness of the question; their facts are far from it, and nobody is named."""
        lab = opened("factgraph")
        nearness = {"Ann": 0.9, "Bob": 0.5, "Cid": 0.8, "Dora": 0.7, "Eve": 0.6}
        for name, c in nearness.items():
            lab.facts.add(
                near.at(c, name),
                "grows",
                f"what {name} grows",
                text=f"a crop of {name}",
                linking="off",
            )
        for n in range(3):
            lab.remember(near.at(0.3, f"the nearest text {n}"), linking="off")
        crops = {text for text in scores_by_text(lab) if text.startswith("a crop")}
        assert crops == {"a crop of Ann", "a crop of Cid", "a crop of Dora"}

    def test_two_hops_are_three_edges(self, near, opened):
        """From an entity its facts, its neighbours' facts, and not the facts of their neighbours."""
        lab = opened("factgraph")
        for n in range(3):
            lab.remember(near.at(0.3, f"the nearest text {n}"), linking="off")
        near.at(0.9, "Ann")
        people = ["Ann", "Bob", "Cid", "Dora"]
        lab.policies.install("link", '(fn [] "none")', reason="no edges but those of facts")
        for one, other in itertools.pairwise(people):
            lab.facts.add(one, "knows", object=other, text=f"{one} and {other}")
        for n in range(2):  # two that are nearer than Cid and Dora: the other entities that begin
            lab.facts.entities.declare(near.at(0.4, f"stranger {n}"))
        assert {text for text in scores_by_text(lab) if " and " in text} == {
            "Ann and Bob",
            "Bob and Cid",
        }
