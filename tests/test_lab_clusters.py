"""Clusters and summaries as a person uses them: results, figures, what cascade finds, refusals."""

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, ReadOnlyLab, UnknownName
from tests.displays import html_of

GOATS = [f"The goat on meadow {n} wants hay and salt" for n in range(10)]
SHIPS = [f"Deploy {n} ships the release to staging" for n in range(10)]


@pytest.fixture
def herd(lab):
    lab.remember([{"text": text, "kind": "observation"} for text in (*GOATS, *SHIPS)])
    return lab


class TestCascade:
    """The pack passes over ``in-cluster``: what shares no word with the question is found through its cluster."""

    PACK = """
        (require memlab.dialect *)
        (pack near :inherits cascade)
        (setting dense-candidates 1)
        (setting limit 30)
        (defpolicy eligible [similarity hops] "One seed alone." (or (> hops 0) (> similarity 0.999)))
    """

    def recalled_ids(self, lab):
        return {hit.id for hit in lab.recall("The goat on meadow 3 wants hay and salt", log=False)}

    @pytest.mark.long
    def test_finds_through_the_cluster(self, herd):
        herd.policies.use(self.PACK)
        assert len(self.recalled_ids(herd)) == 1
        herd.graph.clusters.find()
        assert self.recalled_ids(herd) == set(range(1, 11))

    @pytest.mark.long
    def test_the_default_pack_keeps_its_results(self, herd):
        before = [(hit.id, hit.score) for hit in herd.recall("goat hay", log=False)]
        herd.graph.clusters.find()
        assert [(hit.id, hit.score) for hit in herd.recall("goat hay", log=False)] == before

    def test_a_private_memory_of_another_stays_out(self, herd):
        herd.remember(
            "The goat on meadow 77 wants hay and salt", visibility="private", creator="ann"
        )
        herd.policies.use(self.PACK)
        herd.graph.clusters.find()
        ids = {hit.id for hit in herd.recall(GOATS[3], log=False, viewer="bob")}
        assert ids
        assert 21 not in ids


@pytest.mark.long
class TestResults:
    def test_clusters_are_a_frame_a_figure_and_a_line(self, herd):
        clusters = herd.graph.clusters.find()
        assert clusters.frame.columns == ["cluster", "name", "members", "what", "into"]
        assert len(clusters) == 2
        assert repr(clusters) == "<Clusters 2 of 20 memories: 2 new>"
        assert clusters.figure().axes[0].get_title(loc="left") == "2 clusters"
        assert herd.graph.clusters.frame().columns == [
            "cluster",
            "name",
            "members",
            "radius",
            "created",
            "refined",
        ]

    def test_rendered_texts_are_escaped(self, lab, clock):
        lab.remember(
            [{"text": f"<script>x{n}</script> goat hay meadow", "kind": "event"} for n in range(12)]
        )
        lab.remember([{"text": text, "kind": "event"} for text in SHIPS])
        clock.advance(days=100)
        shown = html_of(lab.graph.clusters.find()) + html_of(lab.upkeep.consolidation.run())
        assert "<script>" not in shown

    def test_summaries_are_listed_with_what_became_of_them(self, herd, clock):
        clock.advance(days=100)
        consolidation = herd.upkeep.consolidation.run()
        assert repr(consolidation) == "<Consolidated 20 memories became 2 summaries, pack memlab>"
        herd.restore(consolidation.ids[0])
        assert herd[consolidation.ids[0]].status == "forgotten"
        frame = herd.upkeep.consolidation.frame()
        assert frame["memory_id"].to_list() == consolidation.ids
        assert frame["undone"].is_null().to_list() == [False, True]
        assert frame["by"].to_list() == ["clusters", "clusters"]
        assert (
            frame["of"].to_list() == herd.graph.clusters.frame().sort("cluster")["name"].to_list()
        )

    def test_restore_brings_a_member_back_next_to_its_summary(self, herd, clock):
        clock.advance(days=100)
        consolidation = herd.upkeep.consolidation.run()
        herd.restore(1)
        assert herd[1].status == "active"
        assert herd[consolidation.ids[0]].status == "active"


class TestRefusals:
    @pytest.mark.parametrize("arguments", [1, 0, -3, True, 2.5, "ten"])
    def test_min_size(self, herd, arguments):
        with pytest.raises(InputError, match="min_size"):
            herd.graph.clusters.find(min_size=arguments)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"older_than_days": -1}, "older_than_days is a number"),
            ({"older_than_days": float("nan")}, "older_than_days is a number"),
            ({"older_than_days": True}, "older_than_days is a number"),
            ({"keep": 1.5}, "keep is a whole number"),
            ({"keep": -1}, "keep is a whole number"),
            ({"summarise": "gpt"}, "summarise is a function"),
        ],
    )
    def test_consolidate(self, herd, arguments, message):
        with pytest.raises(InputError, match=message):
            herd.upkeep.consolidation.run(**arguments)

    def test_names_come_with_the_nearest(self, herd):
        herd.remember("x", project="farm")
        with pytest.raises(UnknownName, match="farm"):
            herd.upkeep.consolidation.run(project="frm")
        with pytest.raises(UnknownName, match="communities"):
            herd.upkeep.consolidation.run(by="community")
        with pytest.raises(UnknownName):
            herd.restore(99)

    def test_a_read_only_lab_is_left_alone(self, disk, clock):
        with disk() as lab:
            lab.remember(GOATS)
        with disk(read_only=True) as lab:
            for verb in (
                lab.graph.clusters.find,
                lab.graph.clusters.refine,
                lab.upkeep.consolidation.run,
                lambda: lab.restore(1),
            ):
                with pytest.raises(ReadOnlyLab):
                    verb()
            assert not lab.upkeep.consolidation.run(dry_run=True)

    def test_a_lab_with_nothing_to_group_is_fine(self, lab):
        assert len(lab.graph.clusters.find()) == 0
        assert lab.graph.clusters.frame().is_empty()
        assert lab.graph.clusters.refine().frame.is_empty()
        assert lab.upkeep.consolidation.frame().is_empty()
        lab.remember("one")
        assert len(lab.graph.clusters.find()) == 0


@pytest.mark.long
def test_two_processes_see_the_same_clusters(disk):
    with disk() as one, disk() as other:
        one.remember(GOATS + SHIPS)
        one.graph.clusters.find()
        assert other.graph.clusters.frame().equals(one.graph.clusters.frame())
        assert other.graph.clusters.find().event is None


@pytest.mark.long
def test_the_same_journal_gives_the_same_bytes(trigrams):
    def life():
        clock = memlab.ManualClock("2026-01-01T00:00:00")
        lab = memlab.open(embedder=trigrams, clock=clock)
        lab.remember([{"text": text, "kind": "observation"} for text in (*GOATS, *SHIPS)])
        clock.advance(days=100)
        lab.graph.clusters.find()
        lab.graph.clusters.refine()
        lab.upkeep.consolidation.run(keep=1)
        return [(event.kind, event.at, event.body) for event in lab.io.store.journal.events()]

    assert life() == life()


@pytest.mark.long
def test_exported_memories_keep_their_clusters(herd, tmp_path, trigrams, clock):
    herd.graph.clusters.find()
    herd.io.export(tmp_path / "all.jsonl")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        other.load(tmp_path / "all.jsonl")
        assert other.graph.clusters.frame().equals(herd.graph.clusters.frame())
        assert other.graph.clusters.find().event is None, "and they are known again"


@pytest.mark.long
def test_a_purged_member_takes_its_edge_along(herd, clock):
    herd.graph.clusters.find()
    herd.purge(1)
    joined = herd.edges.filter(pl.col("relation") == "in-cluster")
    assert 1 not in joined["source"].to_list()
    assert herd.graph.clusters.refine().frame.filter(pl.col("cluster") == 1)[
        "members"
    ].to_list() == [9]
