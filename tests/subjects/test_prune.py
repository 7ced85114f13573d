"""Which edges go: every edge on its own, degrees until nothing changes, and how many edges a hub passes over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.base.clock import DAY, to_micros
from memlab.kernel.policies import load_pack
from memlab.kernel.state import Change, build_join
from memlab.subjects.retention import upkeep
from memlab.subjects.retention.upkeep import can_prune

BEGIN = to_micros("2026-03-01")
RELATIONS = ("relates-to", "next", "supersedes")


def pack(body, inputs):
    return f"(pack p) (defpolicy prune [{' '.join(inputs)}] {body})"


@st.composite
def graphs(draw):
    """Draw memories with a creation and a last use, edges between them, and the times of the edges."""
    count = draw(st.integers(2, 7))
    ends = st.tuples(st.integers(1, count), st.integers(1, count)).filter(
        lambda pair: pair[0] != pair[1]
    )
    weights = st.sampled_from([0.0, 0.05, 0.1, 0.5, 1.0])
    edges = st.tuples(ends, st.sampled_from(RELATIONS), weights, st.integers(0, 500), st.booleans())
    used = draw(st.lists(st.none() | st.integers(0, 300), min_size=count, max_size=count))
    return count, used, draw(st.lists(edges, max_size=15))


@pytest.fixture(scope="module")
def joined(trigrams):
    def fresh(graph, spec):
        count, used, edges = graph
        lab = memlab.open(embedder=trigrams, clock=memlab.ManualClock(BEGIN), pack=spec)
        born = BEGIN - 400 * DAY
        lab.remember([{"text": f"memory {n}", "at": born, "tags": ["t"]} for n in range(count)])
        with lab.io.store.writing() as tx:
            for id, days in enumerate(used, 1):
                if days is not None:
                    tx.event("recall", {"ids": [id]}, at=BEGIN - days * DAY)
        first = count  # after the edges to tags
        for number, ((source, target), relation, weight, days, again) in enumerate(edges, first):
            with lab.io.store.writing() as tx:
                body = {
                    "source": [source],
                    "target": [target],
                    "relation": [relation],
                    "weight": [weight],
                }
                tx.event("link", {"edges": body}, at=BEGIN - days * DAY)
            if again:
                with lab.io.store.writing() as tx:
                    tx.event(
                        "strengthen",
                        {"strengthen": {"edges": [number], "weight": [weight]}},
                        at=BEGIN,
                    )
        return lab

    return fresh


def described(lab, graph):
    """Describe each edge except those to tags as the policy sees it, by number, in plain Python."""
    _, used, _ = graph
    result = {}
    rows = lab.edges.rows(named=True)
    degree = {}
    for row in rows:
        for end in ((row["from_kind"], row["source"]), (row["to_kind"], row["target"])):
            degree[end] = degree.get(end, 0) + 1
    for row in rows:
        if row["relation"] == "has-tag":
            continue
        age = (BEGIN - int(row["created"].timestamp()) * 1_000_000) / DAY
        both = [
            400 if used[row[end] - 1] is None else used[row[end] - 1]
            for end in ("source", "target")
        ]
        result[row["edge"]] = {
            "weight": row["weight"],
            "relation": row["relation"],
            "reinforcements": row["reinforcements"],
            "age-days": age,
            "idle-days": min(age, max(both)),
            "source-degree": float(degree[row["from_kind"], row["source"]]),
            "target-degree": float(degree[row["to_kind"], row["target"]]),
        }
    return result


POLICIES = [
    pack("(and (<= weight 0.1) (> idle-days 100))", ["weight", "idle-days"]),
    pack('(and (= relation "next") (= reinforcements 0) (> age-days 90))', ["relation", "reinforcements", "age-days"]),
    pack("(= 1 (min source-degree target-degree))", ["source-degree", "target-degree"]),
    pack("(and (<= target-degree 3) (< weight 0.5))", ["target-degree", "weight"]),
    pack("true", []),
    pack("(if (> weight 0.3) null true)", ["weight"]),
    '(pack p :inherits cascade) (setting linking "off")',
    '(pack p :inherits associative) (setting linking "off")',
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("spec", POLICIES)
@examples(25, quick=6)
@given(graph=graphs(), block=st.sampled_from([1, 2, 1 << 18]))
def test_a_pass_is_every_edge_on_its_own_until_none_goes(joined, spec, graph, block):
    lab, policy = joined(graph, spec), load_pack(spec).policies["prune"]
    wanted = set()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(upkeep, "_EDGES", block)
        if policy.inputs and not any("degree" in name for name in policy.inputs):
            wanted = {
                edge
                for edge, values in described(lab, graph).items()
                if policy.row({name: values[name] for name in policy.inputs})
            }
            before = set(lab.edges["edge"])
            report = lab.upkeep.maintain(BEGIN)
            assert set(report.pruned["edge"]) == wanted
            assert set(lab.edges["edge"]) == before - wanted
        else:
            report = lab.upkeep.maintain(BEGIN)
    left = described(lab, graph)
    assert not any(
        policy.row({name: values[name] for name in policy.inputs}) for values in left.values()
    )
    assert lab.edges.filter(relation="has-tag").height == graph[0], "a column decides about tags"
    head = lab.io.store.journal.head
    assert not lab.upkeep.maintain(BEGIN)
    assert lab.io.store.journal.head == head


@pytest.mark.long
def test_a_chain_goes_from_its_ends(joined):
    """What is removed leaves others at the end: asked again until nothing is removed."""
    chain = (5, [None] * 5, [((n, n + 1), "next", 1.0, 10, False) for n in range(1, 5)])
    ring = (4, [None] * 4, [((n, n % 4 + 1), "next", 1.0, 10, False) for n in range(1, 5)])
    leaves = pack("(<= (min source-degree target-degree) 2)", ["source-degree", "target-degree"])
    assert joined(chain, leaves).upkeep.maintain(BEGIN).pruned.height == 4
    lab = joined(ring, leaves)
    assert lab.upkeep.maintain(BEGIN).pruned.is_empty(), "each has two neighbours and its tag"


def test_edges_to_entities_are_asked_about(joined):
    lab = joined((2, [None, 10], []), pack("(> idle-days 5)", ["idle-days"]))
    with lab.io.store.writing() as tx:
        change = Change(join=[build_join([1, 2], "entity", ["Ann", "Bo"], "mentions", 0.5)])
        tx.event("link", change.body(), at=BEGIN - 100 * DAY)
    upkeep = lab.upkeep.maintain(BEGIN - 90 * DAY)
    assert upkeep.pruned.select("relation", "from_kind", "source", "to_kind").rows() == [
        ("mentions", "memory", 1, "entity")
    ]
    assert lab.upkeep.maintain(BEGIN).pruned.select("source", "target", "weight").rows() == [
        (2, 2, 0.5)
    ]


@pytest.mark.parametrize("name", sorted(memlab.packs()))
def test_who_may_prune(name):
    assert can_prune(load_pack(name)) == (name.removesuffix("-plus") in ("cascade", "associative"))


class TestPacks:
    @pytest.mark.parametrize(
        ("weight", "age", "again", "goes"),
        [
            (0.014, 30, 0, True),
            (0.015, 30, 0, False),
            (0.014, 29.9, 0, False),
            (0.014, 30, 1, False),
        ],
    )
    def test_associative_removes_what_cannot_carry_a_full_activation(
        self, weight, age, again, goes
    ):
        values = {"weight": weight, "reinforcements": again, "age-days": age}
        assert load_pack("associative").policies["prune"].row(values) is goes
        settings = load_pack("associative").settings
        assert goes == (
            weight * settings["damping"] < settings["spread-threshold"] and age >= 30 and not again
        )

    @pytest.mark.parametrize(
        ("change", "goes"),
        [
            ({}, True),
            ({"relation": "supersedes"}, False),
            ({"weight": 0.2}, False),
            ({"reinforcements": 1}, False),
            ({"age-days": 364.9}, False),
            ({"source-degree": 11}, False),
            ({"target-degree": 11}, False),
        ],
    )
    def test_cascade_removes_what_was_found_together_once_among_many(self, change, goes):
        values = {"relation": "relates-to", "weight": 0.1, "reinforcements": 0, "age-days": 365}
        values |= {"source-degree": 12, "target-degree": 12} | change
        assert load_pack("cascade").policies["prune"].row(values) is goes


class TestFanOut:
    @pytest.mark.long
    def test_a_hub_passes_over_its_newest_edges(self, lab):
        """Among unlike texts only the edges lead on from the one that the question finds."""
        lab.remember(["hub", *[f"quite {number} another text" for number in range(6)]])
        for other in range(2, 8):
            lab.graph.link(1, other)
        reached = {}
        for most in (2, 10_000):
            lab.policies.use(
                f"(pack p) (setting fan-out {most}) (setting dense-candidates 1) (setting lexical-candidates 0)"
                "(setting seeds 1) (defpolicy seed-score [] 1) (defpolicy spread [activation] (* 0.5 activation))"
            )
            reached[most] = sorted(hit.id for hit in lab.recall("hub", log=False))
        assert reached == {2: [1, 6, 7], 10_000: list(range(1, 8))}

    def test_edges_used_by_spreading_are_kept(self):
        one, other = (
            load_pack(f"(pack p) (setting fan-out {most})").fingerprints("e") for most in (5, 6)
        )
        assert {name for name in one if one[name] != other[name]} >= {
            "received",
            "activation",
            "hops",
        }


@pytest.mark.long
def test_ten_thousand_edges_in_blocks(lab):
    """Bounded blocks, each with an event of its own."""
    lab.policies.use(pack("(< weight 0.5)", ["weight"]))
    lab.remember([f"memory {number}" for number in range(100)])
    dice = np.random.default_rng(0)
    source = dice.integers(1, 101, 10_000)
    target = (source + dice.integers(0, 99, 10_000)) % 100 + 1
    weight = dice.uniform(0, 1, 10_000)
    with lab.io.store.writing() as tx:
        body = {
            "source": source.tolist(),
            "target": target.tolist(),
            "relation": "next",
            "weight": weight.tolist(),
        }
        tx.event("link", {"edges": body}, at=BEGIN)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(upkeep, "_EDGES", 3_000)
        report = lab.upkeep.maintain()
    assert report.pruned.height == (weight < 0.5).sum()
    assert len(report.events) == 4 + 1, "four for edges, one for labels"
