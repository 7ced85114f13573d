"""An S-expression memory that changes how it remembers: a scenario through a lab under the pack ``associative``.

Every number is compared with a computation of its own, over dictionaries and from the description of the system, not
from the engine.
"""

import itertools
import math
import random

import polars as pl
import pytest

import memlab
from memlab.subjects.programs import adapt

DAY = 86_400_000_000
SESSION = """
; what a session left, as commands
(remember "The build breaks when the cache is cold" "fact" 0.9 "perpetual" ["build" "cache"])
(remember "Warm the cache before the build" "procedure" 0.8 "perpetual" ["build"])
(remember "The cache lives in redis" "fact" 0.6 "30d" ["cache"])
(remember "Redis restarts on mondays" "fact" 0.3 "30d")
(remember "Tea is in the kitchen" "fact" 0.1 "7d")
(remember "The kitchen is on the second floor" "fact" 0.2 "perpetual")
(associate 1 2 "caused-by" 0.9)
(associate 2 3 "depends-on" 0.6)
(associate 3 4 "relates-to" 0.5)
(associate 1 4 "relates-to" 0.2)
(associate 5 6 "relates-to" 0.7)
"""
LINKS = [(1, 2, 0.9), (2, 3, 0.6), (3, 4, 0.5), (1, 4, 0.2), (5, 6, 0.7)]
TAGS = {1: ["build", "cache"], 2: ["build"], 3: ["cache"]}


@pytest.fixture
def agent(trigrams, clock):
    """Return a lab whose links come from the session alone, because other tests cover those of the engine."""
    pack = '(pack own "x" :inherits associative) (setting linking "off") (setting probe-rate 0)'
    with memlab.open(embedder=trigrams, clock=clock, pack=pack) as lab:
        lab.upkeep.operations.run(SESSION)
        yield lab


def graph():
    """Return undirected neighbours with weights: memories by id, tags by name; the edge of a tag weighs 1."""
    joined = {}
    pairs = [*LINKS, *((id, tag, 1.0) for id, tags in TAGS.items() for tag in tags)]
    for a, b, weight in pairs:
        joined.setdefault(a, []).append((b, weight))
        joined.setdefault(b, []).append((a, weight))
    return joined


def spread(energy, joined, *, steps, damping, threshold):
    """Spread A[j] += A[i] * W[i,j] * D for all active i at once, ``steps`` times; values below F do not pass."""
    active = dict(energy)
    for _ in range(steps):
        arriving = {}
        for node, own in active.items():
            for other, weight in joined.get(node, ()):
                passed = own * weight * damping
                if passed >= threshold:
                    arriving[other] = arriving.get(other, 0.0) + passed
        for node, sum_ in arriving.items():
            active[node] = active.get(node, 0.0) + sum_
    return active


class TestSpreading:
    @pytest.mark.parametrize("steps", [0, 1, 2, 3])
    @pytest.mark.parametrize("threshold", [0.01, 0.2, 0.5])
    def test_activation_over_both_directions_with_a_cut(self, agent, steps, threshold):
        ran = agent.upkeep.operations.run(f"(activate [1 5] {steps} 0.7 {threshold})")
        got = {
            row["id"] if row["kind"] == "memory" else row["name"][4:]: row["activation"]
            for row in ran[0].rows
        }
        expected = spread({1: 1.0, 5: 1.0}, graph(), steps=steps, damping=0.7, threshold=threshold)
        assert got == pytest.approx(expected)

    @pytest.mark.long
    def test_a_recall_spreads_from_what_is_near_the_question(self, agent):
        slate = agent.recall("cold cache", log=False).slate.frame
        seeds = {
            row["memory_id"]: max(0.0, row["closeness"]) for row in slate.iter_rows(named=True)
        }
        expected = spread(seeds, graph(), steps=3, damping=0.7, threshold=0.01)
        for row in slate.iter_rows(named=True):
            assert row["activation"] == pytest.approx(expected[row["memory_id"]])

    @pytest.mark.long
    def test_a_trace_multiplies_along_the_strongest_paths(self, agent):
        frame = agent.upkeep.operations.run("(trace 1 2)")[0].value.frame
        got = {
            (row["to_id"], row["depth"]): row["product"]
            for row in frame.iter_rows(named=True)
            if row["to_kind"] == "memory"
        }
        # 1-2-3 over edges of .9 and .6; by way of the tags both weights are 1.
        assert got[2, 1] == pytest.approx(0.9)
        products = [
            row["product"]
            for row in frame.iter_rows(named=True)
            if (row["to_kind"], row["to_id"]) == ("memory", 3)
        ]
        assert max(products) == pytest.approx(1.0)
        assert any(p == pytest.approx(0.54) for p in products)


@pytest.mark.long
class TestScores:
    def test_the_score_of_a_recall(self, agent, clock):
        """0.4 activation + 0.3 recency + 0.2 importance + 0.1 success / (success + fail + 1)."""
        clock.advance(days=3)
        agent.upkeep.operations.run(
            '(recall "cold cache" 3) (feedback 1 "success") (feedback 1 "success") (feedback 2 "fail")'
        )
        clock.advance(days=10)
        memories = {row["id"]: row for row in agent.memories.to_dicts()}
        hits = agent.recall("cold cache", log=False)
        for row in hits.slate.frame.iter_rows(named=True):
            memory = memories[row["memory_id"]]
            judged = memory["success"] + memory["fail"] + 1
            half_life = 30 * (0.5 + 1.5 * memory["success"] / judged)
            idle = (clock() - int(memory["accessed"].timestamp() * 1e6)) / DAY
            recency = 0.5 ** (idle / half_life)
            assert row["recency"] == pytest.approx(recency)
            expected = 0.4 * row["activation"] + 0.3 * recency + 0.2 * memory["importance"]
            assert row["score"] == pytest.approx(expected + 0.1 * memory["success"] / judged)
        assert memories[1]["success"] == 2
        assert memories[2]["fail"] == 1

    def test_decay_sets_the_half_life_and_is_in_the_history(self, agent, clock):
        agent.upkeep.operations.run("(decay! 10)")
        clock.advance(days=20)
        row = agent.recall("tea", log=False).slate.frame.filter(memory_id=4).row(0, named=True)
        assert row["recency"] == pytest.approx(0.5 ** (20 / (10 * 0.5)))
        *_, logged = agent.io.store.journal.events(kinds=("use",))
        assert logged.body["reason"] == "decay!: a half-life of 10 days"
        agent.policies.rollback()
        row = agent.recall("tea", log=False).slate.frame.filter(memory_id=4).row(0, named=True)
        assert row["recency"] == pytest.approx(0.5 ** (20 / (30 * 0.5)))

    def test_the_three_originals_install_by_their_old_names(self, agent):
        texts = {
            "decay": "(lambda (success fail energy importance recency_ms base_half_ms)"
            " (let* ((total (+ success fail 1)) (ratio (/ success total)) (scale (+ 0.5 (* 1.5 ratio))))"
            " (* base_half_ms scale)))",
            "recall": "(lambda (activation recency importance access success fail)"
            " (+ (* 0.4 activation) (* 0.3 recency) (* 0.2 importance)"
            " (* 0.1 (/ success (+ success fail 1)))))",
            "exploration": "(lambda (limit tail_n acts recs imps accs succ fails) (if (> tail_n 2) (let*"
            " ((under-explored (filter (lambda (i) (< (nth accs i) 5)) (range 0 (length acts)))))"
            " (if (not (empty? under-explored)) (first under-explored) -1)) -1))",
        }
        before = {slot: agent.policies[slot].meaning_hash for slot in ("half-life", "recall-score")}
        ran = agent.upkeep.operations.run(
            "\n".join(f"(set-policy-fn {name} {text})" for name, text in texts.items())
        )
        assert [step.rows[0]["slot"] for step in ran] == ["half-life", "recall-score", "explore"]
        # As they stand in the pack, to the operation.
        assert {slot: agent.policies[slot].meaning_hash for slot in before} == before


class TestExploration:
    @pytest.mark.long
    def test_the_first_of_the_tail_that_was_used_less_than_five_times(self, trigrams, clock):
        pack = '(pack own "x" :inherits associative) (setting linking "off") (setting probe-rate 1)'
        pack += " (setting probe-floor 0)"
        with memlab.open(embedder=trigrams, clock=clock, pack=pack) as lab:
            lab.remember([f"note number {n}" for n in range(8)])
            for _ in range(12):
                clock.advance(hours=1)
                quiet = lab.recall("note number", limit=3, log=False).slate.frame
                ranked = quiet.sort("rank")
                tail = ranked.slice(3)
                under = [
                    row["memory_id"] for row in tail.iter_rows(named=True) if row["access"] < 5
                ]
                hits = lab.recall("note number", limit=3, explore=True)
                expected = under[:1] if len(tail) > 2 else []
                assert [hit.id for hit in hits if hit.probe] == expected

    def test_a_short_tail_explores_nothing(self, trigrams, clock):
        pack = '(pack own "x" :inherits associative) (setting linking "off") (setting probe-rate 1)'
        with memlab.open(embedder=trigrams, clock=clock, pack=pack) as lab:
            lab.remember(["note one", "note two", "note three", "note four"])
            assert not any(hit.probe for hit in lab.recall("note", limit=2, explore=True))


@pytest.mark.long
class TestTogether:
    def test_shared_success_strengthens_by_a_twentieth_up_to_one(self, agent):
        """Being recalled together strengthens what is joined, and the shared success joins and strengthens."""
        weight, times = {frozenset((3, 4)): 0.5, frozenset((1, 4)): 0.2, frozenset((5, 6)): 0.7}, {}
        for _ in range(8):
            hits = agent.recall("cold cache", limit=3)
            pairs = [frozenset(pair) for pair in itertools.combinations(sorted(hits.ids), 2)]
            for pair in pairs:
                if pair in weight:
                    weight[pair], times[pair] = (
                        min(1.0, weight[pair] + 0.05),
                        times.get(pair, 0) + 1,
                    )
            for hit in hits:
                agent.feedback(hit, "success")
            for pair in pairs:
                times[pair] = times.get(pair, 0) + (pair in weight)
                weight[pair] = min(1.0, weight.get(pair, 0.0) + 0.05)
        relates = agent.edges.filter(
            agent.edges["relation"] == "relates-to", agent.edges["to_kind"] == "memory"
        )
        got = {
            frozenset((row["source"], row["target"])): row for row in relates.iter_rows(named=True)
        }
        assert times
        for pair, count in times.items():
            assert got[pair]["weight"] == pytest.approx(weight[pair]), pair
            assert got[pair]["reinforcements"] == count

    def test_an_edge_ends_at_one(self, agent):
        for _ in range(25):
            hits = agent.recall("kitchen", where=pl.col("id") > 4)
            assert {hit.id for hit in hits} == {5, 6}
            for hit in hits:
                agent.feedback(hit, "success")
        row = agent.edges.filter(
            agent.edges["source"] == 5, agent.edges["to_kind"] == "memory"
        ).row(0, named=True)
        # recalled together, and helpful together
        assert (row["weight"], row["reinforcements"]) == (1.0, 50)


@pytest.mark.long
class TestShape:
    def test_density_clustering_and_key_memories(self, agent):
        agent.upkeep.operations.run('(recall "cold cache" 2) (recall "cold cache" 1)')
        value = agent.upkeep.operations.run("(stats)")[0].value
        totals = dict(value.frames["totals"].iter_rows())
        joined = graph()
        nodes = list(joined)
        pairs = {frozenset((a, b)) for a in joined for b, _ in joined[a]}
        assert totals["density"] == pytest.approx(len(pairs) / math.comb(len(nodes), 2))
        local = []
        for node in nodes:
            around = {other for other, _ in joined[node]}
            possible = math.comb(len(around), 2)
            closed = sum(frozenset(pair) in pairs for pair in itertools.combinations(around, 2))
            local.append(closed / possible if possible else 0.0)
        assert totals["clustering"] == pytest.approx(sum(local) / len(local))
        # Key: important and used, the geometric mean of the two shares.
        memories = agent.memories.to_dicts()
        most = max(row["access"] for row in memories)
        scores = {
            r["id"]: math.sqrt(r["importance"] * math.log1p(r["access"]) / math.log1p(most))
            for r in memories
        }
        best = max(scores, key=scores.get)
        assert value.frames["key"]["memory_id"][0] == best
        assert totals["communities"] >= 2  # the build, and the kitchen

    def test_layers_as_time_goes_by(self, agent, clock):
        """active: used within 7 days; stable: older, used 5 times; emerging: newer than 7 days, used hardly."""

        def expected(memory, now):
            age = (now - int(memory["created"].timestamp() * 1e6)) / DAY
            idle = (now - int(memory["accessed"].timestamp() * 1e6)) / DAY
            if age < 7 and memory["access"] < 2:
                return "emerging"
            if memory["access"] and idle <= 7:
                return "active"
            return "stable" if memory["access"] >= 5 else "decaying"

        unique = set()
        for days in (1, 5, 3, 30):
            clock.advance(days=days)
            if days < 30:
                agent.upkeep.operations.run('(recall "cold cache" 1) (recall "cold cache" 1)')
            layers = agent.graph.stats(progress=False).frames["layers"]
            counted = {
                row["layer"]: row["memories"]
                for row in layers.iter_rows(named=True)
                if row["memories"]
            }
            wanted = {}
            for memory in agent.memories.to_dicts():
                layer = expected(memory, clock())
                wanted[layer] = wanted.get(layer, 0) + 1
            assert counted == wanted
            unique |= set(wanted)
        assert unique == {"emerging", "active", "stable", "decaying"}

    def test_memories_with_a_time_to_live_expire(self, agent, clock):
        def gone():
            agent.upkeep.maintain(progress=False)
            return {
                row["id"]
                for row in agent.memories.to_dicts()
                if row["status"] not in ("active", "confirmed")
            }

        clock.advance(days=6)
        assert gone() == set()
        clock.advance(days=1)
        assert gone() == {5}
        clock.advance(days=22)
        assert gone() == {5}
        clock.advance(days=1)
        assert gone() == {3, 4, 5}


@pytest.mark.long
def test_an_adaptation_that_does_worse_is_reverted(trigrams, clock):
    """Every version hashed and counted; a better one is found on the log, a worse one taken back."""
    pack = """(pack own "x" :inherits associative)
        (setting linking "off") (setting edge-gain 0) (setting limit 3)
        (setting probe-rate 1) (setting probes 1) (setting probe-depth 9) (setting probe-floor 1)
        (defpolicy explore [activation] 1)
        (defpolicy recall-score [activation importance] (+ (* 0.6 activation) (* 0.02 importance)))"""
    words = ["goat", "sea", "bakery", "tabs", "spaces", "deploy", "review"]
    with memlab.open(embedder=trigrams, clock=clock, pack=pack) as lab:
        chance = random.Random(3)
        lab.upkeep.operations.run(
            "\n".join(
                f'(remember "{chance.choice(words)} and {chance.choice(words)} {n}" fact {0.9 if n % 2 else 0.1})'
                for n in range(12)
            )
        )

        importance = lab.memories["importance"].to_list()

        def live(recalls):
            success = fail = 0
            for _ in range(recalls):
                clock.advance(hours=1)
                query = f"{chance.choice(words)} {chance.choice(words)}"
                for hit in lab.recall(query, explore=True):
                    good = chance.random() < (0.9 if importance[hit.id - 1] > 0.5 else 0.1)
                    lab.feedback(hit, "success" if good else "fail")
                    success, fail = (
                        success + (good and not hit.probe),
                        fail + (not good and not hit.probe),
                    )
            return success, fail

        counts = [live(200)]
        first = lab.policies["recall-score"].hash
        assert adapt(lab, consent=True).action == "installed"
        better = lab.policies["recall-score"].hash
        counts.append(live(60))
        lab.upkeep.operations.run(
            '(set-policy-fn recall-score "(fn [importance] (- 1 importance))")'
        )
        counts.append(live(100))
        frame = lab.policies.attribution("recall-score").frame
        assert [(row["success"], row["fail"]) for row in frame.iter_rows(named=True)] == counts
        assert (
            counts[1][0] / sum(counts[1])
            > counts[0][0] / sum(counts[0])
            > counts[2][0] / sum(counts[2])
        )
        back = adapt(lab, consent=True)
        assert back.action == "rolled back"
        assert back.after == better != first
        assert lab.policies["recall-score"].hash == better


@pytest.mark.long
def test_the_whole_memory_is_data(agent, tmp_path, trigrams, clock):
    """Kept as data and as S-expressions: what is written is read back, and one memory is a form."""
    agent.upkeep.operations.run('(recall "cold cache" 3) (feedback 1 "success")')
    path = agent.io.export(tmp_path / "memory.sexp")
    with memlab.load(path, embedder=trigrams, clock=clock) as other:
        assert other.policies.pack.hash == agent.policies.pack.hash
        assert other.memories.drop("origin").equals(agent.memories.drop("origin"))
        question = {"log": False, "limit": 5}
        assert other.recall("cold cache", **question).frame.equals(
            agent.recall("cold cache", **question).frame
        )
    assert agent[1].sexp.startswith(
        '(memory :id 1 :text "The build breaks when the cache is cold" :kind "fact"'
    )
