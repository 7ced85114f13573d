"""A coding assistant's memory graph, as its design has it: a scenario through a lab under the pack ``cascade``.

Every number of retrieval and use is compared with a computation of its own: a breadth-first walk over dictionaries,
written here from the description and not from the engine.
"""

import math
import zlib

import numpy as np
import pytest

import memlab
from memlab.kernel.base.clock import DAY
from memlab.kernel.embedding import load_embedder
from memlab.subjects.clusters.registers import is_refinement_due

TOPICS = {
    "tabs": 0,
    "indent": 0,
    "deploy": 1,
    "friday": 1,
    "cache": 2,
    "redis": 2,
    "secrets": 3,
    "tea": 4,
}
TRUST = {
    "user-stated": 1.0,
    "user-corrected": 1.0,
    "observed": 0.8,
    "inferred": 0.6,
    "extracted": 0.7,
}
TIME_CONSTANT = {"correction": 365, "preference": 90, "procedure": 60, "fact": 30, "negative": 365}
EDGE = {"has-tag": 0.8, "in-cluster": 0.6, "supersedes": 0.9}


def topics(texts):
    """Embed texts on given axes: half of a vector is its topic, so texts on one topic have a similarity of 0.5.

    The other half is the text's own.
    """
    out = np.zeros((len(texts), 256))
    for row, text in enumerate(texts):
        for word in text.lower().replace("?", " ").split():
            if word in TOPICS:
                out[row, TOPICS[word]] = 1.0
        out[row, 8 + zlib.crc32(text.encode()) % 248] = 1.0
    return out


MEMORIES = [
    # 1-3: the style of the code, by a tag; the third shares no word and no direction with a question about tabs
    {
        "text": "The user prefers tabs",
        "kind": "preference",
        "tags": ["style"],
        "provenance": "user-stated",
    },
    {
        "text": "Indent by tabs in Makefiles",
        "kind": "fact",
        "tags": ["style"],
        "provenance": "observed",
    },
    {
        "text": "Lines end at one hundred",
        "kind": "correction",
        "tags": ["style"],
        "provenance": "user-corrected",
    },
    # 4-6: how things go out; the fifth supersedes the fourth
    {"text": "Deploy on any day", "kind": "fact", "provenance": "inferred"},
    {"text": "Never deploy on friday", "kind": "correction", "provenance": "user-corrected"},
    {
        "text": "Ask Ann for the key",
        "kind": "procedure",
        "provenance": "extracted",
        "title": "release",
        "steps": ["ask"],
    },
    # 7-8: a cluster
    {"text": "The cache is redis", "kind": "fact", "provenance": "observed", "recency_weight": 0.0},
    {"text": "Evictions come at noon", "kind": "fact", "provenance": "observed"},
    # 9: a warning that waits for its trigger, 10: something else
    {
        "text": "Never log secrets",
        "kind": "negative",
        "triggers": ["print(token"],
        "provenance": "user-stated",
    },
    {"text": "Some tea", "kind": "fact", "provenance": "observed"},
]
# the fourth is out of use since the fifth supersedes it, and the walk is over all
ALL = ("active", "superseded")
LINKS = [(5, 4, "supersedes", 1.0), (4, 6, "derived-from", 1.0), (2, 6, "relates-to", 0.45)]


@pytest.fixture
def lab(clock):
    with memlab.open(embedder=load_embedder(topics), clock=clock, pack="cascade") as opened:
        opened.remember(
            [{"confidence": 0.6, "strength": 1.0, **memory} for memory in MEMORIES], linking="off"
        )
        for source, target, relation, weight in LINKS:
            opened.graph.link(source, target, relation, weight=weight)
        with opened.io.store.writing() as tx:
            cluster = {
                "source": [7, 8],
                "kind": "cluster",
                "target": ["storage"] * 2,
                "weight": [1.0, 1.0],
            }
            tx.event("link", {"join": [cluster | {"relation": "in-cluster"}]}, at=clock())
        yield opened


def graph(lab):
    """Return the neighbours of each node by name, in both directions, with undiscounted weights."""
    near = {}
    for edge in lab.edges.to_dicts():
        a, b = ("memory", edge["source"]), (edge["to_kind"], edge["to"] or edge["target"])
        worth = (
            edge["weight"] if edge["relation"] == "relates-to" else EDGE.get(edge["relation"], 0.3)
        )
        near.setdefault(a, []).append((b, worth))
        near.setdefault(b, []).append((a, worth))
    return near


def walked(lab, question, *, seeds=None):
    """Score memories: the ten nearest of similarity 0.4 or more, then breadth first over two edges."""
    vector, *vectors = lab.io.embedder.encode([question, *lab.memories["text"]]).astype(float)
    cosine = {
        id: v @ vector / math.sqrt(v @ v * (vector @ vector)) for id, v in enumerate(vectors, 1)
    }
    nearest = sorted(cosine, key=lambda id: (-cosine[id], id))[:10]
    score = {("memory", id): cosine[id] for id in nearest if cosine[id] >= 0.4} | (seeds or {})
    near, layer, depth = graph(lab), list(score), dict.fromkeys(score, 0)
    for step in (1, 2):
        reached = {}
        for node in layer:
            for other, worth in near.get(node, ()):
                if depth.get(other, step) == step:
                    reached[other] = max(reached.get(other, 0.0), worth * 0.7**step)
        for node, value in reached.items():
            score[node] = max(score.get(node, 0.0), value)
            depth[node] = step
        layer = list(reached)
    return {name: value for (kind, name), value in score.items() if kind == "memory"}


def boosted(lab, scores, now):
    idle = {row["id"]: now - row["accessed"].timestamp() * 1e6 for row in lab.memories.to_dicts()}
    weight = dict(zip(lab.memories["id"], lab.memories["recency_weight"], strict=True))
    return {
        id: score * (1 + weight[id] * math.exp(-(idle[id] / (DAY / 24)) / 24))
        for id, score in scores.items()
    }


class TestRetrieval:
    @pytest.mark.long
    @pytest.mark.parametrize(
        "question",
        [
            "tabs or spaces?",
            "deploy on friday?",
            "indent tabs and the cache",
            "redis",
            "tea",
            "nothing",
        ],
    )
    def test_every_score_is_that_of_the_walk(self, lab, clock, question):
        clock.advance(hours=30)
        expected = boosted(lab, walked(lab, question), clock())
        slate = lab.recall(question, status=ALL, log=False).slate
        values = dict(zip(slate.ids.tolist(), slate.scores.tolist(), strict=True))
        assert values == pytest.approx(expected, rel=1e-9)
        best = sorted(expected, key=lambda id: (-round(expected[id], 12), id))[:10]
        assert list(slate.shown) == best

    @pytest.mark.long
    def test_a_tag_leads_to_what_has_no_word_in_common(self, lab):
        hits = lab.recall("tabs or spaces?", log=False)
        third = next(hit for hit in hits if hit.id == 3)
        slate = hits.slate
        at = slate.ids.tolist().index(3)
        assert slate.numbers["closeness"][at] < 0.4
        assert slate.numbers["coverage"][at] == 0
        assert slate.numbers["hops"][at] == 2
        assert third.score == pytest.approx(0.8 * 0.7**2 * 1.5)
        lab.policies.install("spread", "(fn [weight] 0)", reason="without edges")
        assert 3 not in lab.recall("tabs or spaces?", log=False).ids

    @pytest.mark.long
    def test_a_cluster_and_an_older_version_are_reached(self, lab):
        cache = lab.recall("redis cache", log=False)
        assert dict(zip(cache.ids, [hit.score for hit in cache], strict=True))[8] == pytest.approx(
            0.6 * 0.49 * 1.5
        )
        deploys = {hit.id: hit.score for hit in lab.recall("friday deploy", status=ALL, log=False)}
        assert deploys[6] == pytest.approx(0.3 * 0.7 * 1.5), "derived from a seed, one edge away"

    @pytest.mark.long
    def test_recent_use_lifts_and_the_lift_fades_in_a_day(self, lab, clock):
        def score(id):
            return next(
                hit.score for hit in lab.recall("tabs or spaces?", log=False) if hit.id == id
            )

        fresh = score(1)
        clock.advance(hours=24)
        assert score(1) / fresh == pytest.approx((1 + 0.5 / math.e) / 1.5)
        lab.recall("tabs or spaces?")
        assert score(1) == pytest.approx(fresh)

    def test_a_weight_of_nothing_is_not_lifted(self, lab):
        hits = lab.recall("redis cache", log=False)
        slate = hits.slate
        at = slate.ids.tolist().index(7)
        assert slate.scores[at] == slate.numbers["closeness"][at]


class TestWarnings:
    @pytest.mark.long
    def test_a_negative_memory_surfaces_when_its_trigger_matches(self, lab, clock):
        assert 9 not in lab.recall("print the menu", log=False).ids
        hits = lab.recall("then print(token) to the console", log=False)
        assert hits[0].id == 9
        expected = walked(lab, "then print(token) to the console", seeds={("memory", 9): 1.0})
        assert hits[0].score == pytest.approx(boosted(lab, expected, clock())[9])

    def test_a_surfaced_memory_is_available_at_the_next_turn(self, lab):
        turns = lab.agents.turns(verifier=memlab.verifiers.overlap)
        assert not turns.offer("then print(token) to the console")
        assert turns.wait(30)
        assert [hit.id for hit in turns.offer("and on")] == [9]


@pytest.mark.long
class TestConfidence:
    def test_the_graph_in_its_current_state(self, lab, clock):
        for days in (0.0, 1.5, 40.0):
            clock.advance(days=days)
            slate = lab.recall("tabs and redis", limit=10).slate
            rows = {row["id"]: row for row in lab.memories.to_dicts()}
            for id, told in zip(
                slate.ids.tolist(), slate.numbers["retention"].tolist(), strict=True
            ):
                row = rows[id]
                # this recall is counted once it is over
                access = row["access"] - (id in slate.shown)
                constant = 7 if row["provenance"] == "inferred" else TIME_CONSTANT[row["kind"]]
                age = (clock() - row["created"].timestamp() * 1e6) / DAY
                value = (
                    row["confidence"] * math.exp(-age / constant) * (1 + 0.1 * math.log(access + 1))
                )
                assert told == pytest.approx(
                    min(1.0, max(0.0, value * TRUST[row["provenance"]])), rel=1e-9
                )


@pytest.mark.long
class TestAfterEachRetrieval:
    def test_a_life_of_verdicts_and_feedback(self, lab, clock):
        """Accesses, confidence, strength and the weights between results, compared with counts outside the lab."""
        chance = np.random.default_rng(5)
        access, confidence, strength = (
            dict.fromkeys(range(1, 11), value) for value in (0.0, 0.6, 1.0)
        )
        weight = {(2, 6): 0.45}
        judged = 0
        for question in [
            "tabs or spaces?",
            "deploy on friday?",
            "indent tabs and the cache",
            "redis",
        ] * 6:
            clock.advance(hours=5)
            hits = lab.recall(question)
            for id in hits.ids:
                access[id] += 1
            passed = [hit.id for hit in hits if chance.random() < 0.6]
            verified = lab.agents.verify(hits, passed)
            assert verified.tag is None or len(passed) > 2
            for id in hits.ids:
                step = 0.02 if id in passed else -0.02
                confidence[id] = min(1.0, max(0.0, confidence[id] + step))
                access[id] -= id not in passed
            for a in passed:
                for b in passed:
                    if a < b:
                        weight[a, b] = min(1.0, weight.get((a, b), 0.0) + 0.1)
            success = []
            for hit in hits:
                outcome = chance.choice(["success", "fail", ""])
                if not outcome:
                    continue
                lab.feedback(hit, str(outcome))
                judged += 1
                if outcome == "success":
                    strength[hit.id] += 1
                    confidence[hit.id] = min(1.0, confidence[hit.id] + 0.05)
                    for other in success:
                        pair = (min(hit.id, other), max(hit.id, other))
                        weight[pair] = min(1.0, weight.get(pair, 0.0) + 0.1)
                    success.append(hit.id)
                else:
                    confidence[hit.id] = max(0.0, confidence[hit.id] - 0.1)
        assert judged > 40
        memories = lab.memories
        for column, expected in (
            ("access", access),
            ("confidence", confidence),
            ("strength", strength),
        ):
            values = dict(zip(memories["id"], memories[column], strict=True))
            assert values == pytest.approx(expected, abs=1e-9), column
        edges = lab.edges.filter(relation="relates-to")
        ends = zip(edges["source"], edges["target"], strict=True)
        assert dict(zip(ends, edges["weight"], strict=True)) == pytest.approx(weight, abs=1e-9)

    def test_memories_used_together_are_retrieved_together(self, lab):
        """Ten verdicts that let the same two pass make a full edge, over which a question about one finds the other."""
        lab.remember("Spaces cost bytes", kind="fact", confidence=0.6, linking="off")
        assert 10 not in lab.recall("redis cache", log=False).ids
        for _ in range(10):
            hits = lab.recall("some tea and the redis cache", limit=10)
            lab.agents.verify(hits, [7, 10])
        result = {hit.id: hit.score for hit in lab.recall("redis cache", log=False)}
        assert result[10] == pytest.approx(1.0 * 0.7 * 1.5)

    def test_seeds_and_nothing_verified_is_a_gap_that_is_reviewed(self, lab):
        hits = lab.recall("which redis version do we deploy?", session="s1")
        assert lab.agents.verify(hits, []).gap is not None
        (gap,) = lab.upkeep.review.gaps().to_dicts()
        assert (gap["snippet"], gap["session"]) == ("which redis version do we deploy?", "s1")
        answer = lab.remember("redis 7 since we deploy by helm", linking="off")
        lab.upkeep.review.close_gap(gap["gap"], f"remembered as {answer.id}")
        assert lab.upkeep.review.gaps()["closed"].null_count() == 0

    def test_the_tag_that_most_share_is_given_to_the_others(self, lab):
        lab.remember("tabs again", kind="fact", linking="off")
        lab.edit(11, tags=None)  # its topic is the same tag
        hits = lab.recall("tabs indent", limit=10)
        verified = lab.agents.verify(hits, [1, 2, 11])
        assert verified.tag == "style"
        assert lab.memories["tags"][10].to_list() == ["style"]

    def test_every_fiftieth_recall_clusters_are_due(self, lab):
        for count in range(1, 51):
            lab.recall("tabs", limit=1)
            with lab.io.store.reading() as state:
                assert is_refinement_due(state, lab.policies.pack) is (count == 50)


@pytest.mark.long
class TestSeasons:
    def test_a_season_is_switched_on_by_the_caller(self, lab):
        lab.remember("tabs freeze until monday", season="release-week", linking="off")
        assert 11 not in lab.recall("tabs").ids
        assert 11 in lab.recall("tabs", season="release-week").ids
