"""Clusters of a lab: who belongs to them, what joins, what merges, and what keeps its name."""

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.kernel.policies import load_pack
from memlab.subjects.clusters.membership import (
    current_clusters,
    decide_clusters,
    decide_joins,
    decide_refinement,
    get_centroids,
    rows_in_use,
)
from memlab.subjects.clusters.registers import Centroids

GOATS = [f"The goat on meadow {n} wants hay and salt" for n in range(10)]
SHIPS = [f"Deploy {n} ships the release to staging" for n in range(10)]
BREAD = [f"Sourdough loaf {n} rises overnight in the bakery" for n in range(10)]


def fond(pack, **settings):
    """Return a pack with other settings."""
    text = "\n".join(
        f"(setting {name.replace('_', '-')} {value})" for name, value in settings.items()
    )
    return f"(require memlab.dialect *)\n(pack fond :inherits {pack})\n{text}"


def membership(lab):
    """Return the name of the cluster of each clustered memory by id."""
    edges = lab.edges.filter(pl.col("relation") == "in-cluster")
    return dict(zip(edges["source"], edges["to"], strict=True))


def parts(lab):
    """Return the partition of the memories, without the names of the clusters."""
    by_name = {}
    for id, name in membership(lab).items():
        by_name.setdefault(name, set()).add(id)
    return sorted(map(sorted, by_name.values()))


@pytest.fixture
def herd(lab):
    lab.remember([*GOATS, *SHIPS])
    lab.graph.clusters.find()
    return lab


@pytest.mark.long
def test_memories_of_equal_meaning_are_a_cluster_with_weighted_edges(herd):
    assert parts(herd) == [list(range(1, 11)), list(range(11, 21))]
    state = herd.io.store.state
    found, ids = current_clusters(state)
    unit = state.vectors.take(found.rows).astype(float)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    away = unit - found.centre
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    slow = {
        int(row) + 1: float(away[at] @ found.centroids[found.labels[at]])
        for at, row in enumerate(found.rows)
    }
    weights = herd.edges.filter(pl.col("relation") == "in-cluster")
    assert dict(zip(weights["source"], weights["weight"], strict=True)) == pytest.approx(
        slow, abs=1e-4
    )
    assert ids.tolist() == [1, 2]


@pytest.mark.long
def test_a_second_search_finds_the_same_and_writes_nothing(herd):
    before = herd.io.store.journal.head
    again = herd.graph.clusters.find()
    assert again.event is None
    assert set(again.frame["what"]) == {"kept"}
    assert herd.io.store.journal.head == before


@pytest.mark.long
def test_a_cluster_keeps_number_and_name_while_its_members_stay_together(herd):
    names = dict(herd.graph.clusters.frame().select("cluster", "name").iter_rows())
    herd.remember([*(f"{text} again" for text in GOATS), *BREAD])
    clusters = herd.graph.clusters.find()
    rows = herd.graph.clusters.frame().filter(pl.col("cluster").is_in(list(names)))
    assert dict(rows.select("cluster", "name").iter_rows()) == names
    assert clusters.frame.filter(pl.col("what") == "new")["cluster"].to_list() == [3]
    assert dict(herd.graph.clusters.frame().select("cluster", "members").iter_rows()) == {
        1: 20,
        2: 10,
        3: 10,
    }


@pytest.mark.long
def test_inactive_memories_are_no_members_and_an_empty_cluster_ends(herd):
    herd.forget(list(range(11, 21)))
    clusters = herd.graph.clusters.find()
    assert dict(clusters.frame.select("cluster", "what").iter_rows())[2] == "gone"
    assert set(membership(herd)) <= set(range(1, 11)), "and its edges with it"
    assert get_centroids(herd.io.store.state).all[2].centroid == b""


def test_a_name_tells_nothing_that_is_private_or_that_one_memory_alone_says(lab):
    secret = [
        {"text": f"The mortgage of house {n} is overdue", "visibility": "private"} for n in range(8)
    ]
    lab.remember([*secret, *GOATS, *SHIPS, "The goat wants hay and salt: quinquennial"])
    lab.graph.clusters.find()
    names = " ".join(lab.graph.clusters.frame()["name"])
    assert "mortgage" not in names
    assert "overdue" not in names
    assert "quinquennial" not in names
    assert "goat" in names


class TestJoining:
    """``cluster-closeness``: what is new joins the nearest centroid that is near enough."""

    @pytest.fixture
    def grown(self, herd):
        herd.remember(["The goat on meadow 99 wants hay and salt", "Quite something else: jazz"])
        return herd

    def near(self, lab, closeness):
        with lab.io.store.reading() as state:
            looked = get_centroids(state).looked
            pack = load_pack(fond("memlab", cluster_closeness=closeness))
            return decide_joins(state, pack, np.arange(looked, len(state)))

    def test_the_default_pack_pays_nothing(self, grown):
        assert grown.policies.pack.number("cluster-closeness") == 0
        assert not self.near(grown, 0)

    def test_the_near_one_joins_and_the_other_does_not(self, grown):
        (part,) = self.near(grown, 0.6).change.join
        assert part["source"] == [21]
        assert part["target"] == [membership(grown)[1]]
        assert 0.6 <= part["weight"][0] <= 1

    @pytest.mark.long
    def test_no_memory_joins_twice(self, grown, clock):
        grown.policies.use(fond("memlab", cluster_closeness=0.6))
        grown.upkeep.maintain()
        assert membership(grown)[21] == membership(grown)[1]
        head = grown.io.store.journal.head
        grown.upkeep.maintain()
        assert grown.io.store.journal.head == head, "what did not join is not asked about again"

    @pytest.mark.long
    def test_the_threshold_is_the_cosine_less_the_mean(self, grown):
        (part,) = self.near(grown, 0.01).change.join
        (cosine,) = [
            weight for id, weight in zip(part["source"], part["weight"], strict=True) if id == 21
        ]
        assert self.near(grown, cosine - 1e-3)
        assert 21 not in [
            id
            for made in self.near(grown, min(cosine + 1e-3, 1)).change.join
            for id in made["source"]
        ]


class TestRefinement:
    """Centroids go where their members are, near clusters become one, empty ones end."""

    @pytest.mark.long
    def test_a_centroid_moves_to_its_members(self, herd):
        before = get_centroids(herd.io.store.state).all[1].centroid
        herd.forget([1, 2, 3])
        herd.graph.clusters.refine()
        kept = get_centroids(herd.io.store.state)
        assert kept.all[1].size == 7
        assert kept.all[1].centroid != before
        found, _ = current_clusters(herd.io.store.state)
        unit = found.centroids.astype(float)
        assert np.linalg.norm(unit, axis=1) == pytest.approx(1)

    @pytest.mark.long
    def test_near_clusters_merge_into_the_larger_and_keep_its_name(self, herd):
        # each counts as near whatever lies within twice a radius
        herd.policies.use(fond("memlab", cluster_merge=2))
        kept = get_centroids(herd.io.store.state)
        wide = {id: item.radius for id, item in kept.all.items()}
        for value in kept.all.values():
            value.radius = 2.0
        herd.forget([11])
        names = membership(herd)
        with herd.io.store.reading() as state:
            step = decide_refinement(state, herd.policies.pack)
        assert step.body["gone"] == [[2, 1]]
        (part,) = step.change.join
        assert set(part["source"]) == set(range(11, 21)), (
            "one that left recall moves with the others"
        )
        assert set(part["target"]) == {names[1]}
        assert wide[1] < 2

    def test_an_empty_one_ends(self, herd):
        herd.forget(list(range(11, 21)))
        result = herd.graph.clusters.refine()
        assert dict(result.frame.select("cluster", "what").iter_rows())[2] == "gone"
        assert list(get_centroids(herd.io.store.state).live) == [1]

    @pytest.mark.long
    def test_refining_resets_the_count_even_without_moves(self, herd):
        herd.recall("goat")
        assert herd.io.store.state.projections["recalls"].since_refined == 1
        herd.graph.clusters.refine()
        assert herd.io.store.state.projections["recalls"].since_refined == 0


@pytest.mark.long
class TestUpkeep:
    """``maintain`` does what is due."""

    def test_recalls_only_count_and_upkeep_refines(self, herd):
        herd.policies.use(fond("memlab", refine_every=3))
        for _ in range(2):
            herd.recall("goat hay", limit=2)
        assert not self.refinements(herd)
        herd.upkeep.maintain()
        assert not self.refinements(herd), "not due yet: what the last one showed is of one cluster"
        herd.recall("goat hay", limit=2)
        herd.upkeep.maintain()
        assert len(self.refinements(herd)) == 1
        herd.upkeep.maintain()
        assert len(self.refinements(herd)) == 1

    def test_results_that_span_clusters_make_it_due(self, herd):
        herd.policies.use(fond("memlab", refine_every=1000))
        herd.recall("goat deploy release hay", limit=20)
        herd.upkeep.maintain()
        assert len(self.refinements(herd)) == 1

    def test_where_there_are_no_clusters_they_are_found(self, lab):
        lab.remember([*GOATS, *SHIPS])
        lab.policies.use(fond("memlab", refine_every=1))
        lab.recall("goat")
        lab.upkeep.maintain()
        assert len(lab.graph.clusters.frame()) == 2

    def test_the_default_pack_does_nothing(self, herd):
        herd.recall("goat deploy release hay", limit=20)
        before = get_centroids(herd.io.store.state).dump()
        herd.remember("The goat on meadow 99 wants hay and salt")
        herd.upkeep.maintain()
        assert not self.refinements(herd)
        assert get_centroids(herd.io.store.state).dump() == before

    def refinements(self, lab):
        return list(lab.io.store.journal.events(kinds=("refine",)))


@pytest.mark.long
class TestAnotherEmbedder:
    """Centroids belong to one embedder's vectors: under another they gain no member until they are recomputed."""

    def test_names_outlive_the_embedder_and_centroids_do_not(self, tmp_path, trigrams, clock):
        def shifted(texts):
            return np.roll(trigrams.encode(texts).astype(float), 5, axis=1) * np.linspace(1, 2, 32)

        with memlab.open(tmp_path / "lab", embedder=trigrams, clock=clock) as lab:
            lab.remember([*GOATS, *SHIPS])
            lab.graph.clusters.find()
            before = dict(lab.graph.clusters.frame().select("cluster", "name").iter_rows())
        with memlab.open(tmp_path / "lab", embedder=shifted, clock=clock, reembed=True) as lab:
            with lab.io.store.reading() as state:
                assert current_clusters(state) is None
                assert not decide_refinement(state, load_pack("cascade"))
            assert not len(lab.graph.clusters.frame())
            lab.graph.clusters.find()
            assert dict(lab.graph.clusters.frame().select("cluster", "name").iter_rows()) == before
            assert current_clusters(lab.io.store.state) is not None


@pytest.mark.long
def test_memories_changed_during_the_search_are_left_out(herd):
    """``clustered`` is given what was sought in an older state."""
    state = herd.io.store.state
    found, _ = current_clusters(state)
    herd.forget([1, 2])
    step = decide_clusters(state, found, state.fingerprint, len(state))
    assert not {id for part in step.change.join for id in part["source"]} & {1, 2}
    assert {cluster["id"]: cluster["size"] for cluster in step.body["clusters"]}[1] == 8


@pytest.mark.long
def test_the_lab_opens_with_its_clusters_from_journal_and_snapshot(disk):
    with disk() as lab:
        lab.remember([*GOATS, *SHIPS])
        lab.graph.clusters.find()
        told, joined = lab.graph.clusters.frame(), membership(lab)
    with disk() as lab:
        assert lab.graph.clusters.frame().equals(told)
        lab.io.snapshot()
    with disk() as lab:
        assert lab.graph.clusters.frame().equals(told)
        assert membership(lab) == joined
        assert isinstance(lab.io.store.state.projections["clusters"], Centroids)


def test_in_use_is_what_recall_may_find(herd):
    herd.forget([3])
    assert rows_in_use(herd.io.store.state).tolist() == [row for row in range(20) if row != 2]
