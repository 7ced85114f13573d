"""A lab as one viewer sees it: what others keep private is nowhere, and moves nothing."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import InputError, MemlabError, ReadOnlyLab, UnknownName
from tests.campaigns.fuzz_viewer import NOT_READ, READERS, Report, compared, public_names, written

SECRET = {"visibility": "private", "creator": "ann"}


@pytest.fixture
def farm(lab: memlab.Lab) -> memlab.Lab:
    """Return a lab in which memories 1 and 3 are public, 2 is Ann's and 4 is Bob's."""
    lab.remember("The goat eats hay", creator="bob", tags=["farm"])
    lab.remember("The goat of Ann eats gold", tags=["gold"], **SECRET)
    lab.remember("The horse eats oats", creator="bob")
    lab.remember("Bob fears the horse", visibility="private", creator="bob")
    lab.graph.link(1, 2)
    lab.graph.link(1, 3)
    return lab


class TestView:
    @pytest.mark.long
    def test_each_sees_what_all_see_and_their_own(self, farm: memlab.Lab) -> None:
        assert farm.at(viewer="bob").memories["id"].to_list() == [1, 3, 4]
        assert farm.at(viewer="ann").memories["id"].to_list() == [1, 2, 3]
        assert farm.at(viewer="dora").memories["id"].to_list() == [1, 3]
        assert len(farm.at(viewer="dora")) == 2

    def test_nothing_leads_to_what_is_hidden(self, farm: memlab.Lab) -> None:
        view = farm.at(viewer="bob")
        assert "2" not in str(view.graph.trace(1, 3).frame["to_id"].to_list())
        assert set(view.graph.activate(1)["name"]) == {
            "1: The goat eats hay",
            "3: The horse eats oats",
            "tag farm",
        }
        assert view.edges.filter(relation="relates-to").select("source", "target").rows() == [
            (1, 3)
        ]
        assert view.log.filter(kind="link")["memories"].to_list() == [[1, 3]]
        with pytest.raises(UnknownName):
            view[2]

    def test_a_view_follows_the_lab(self, farm: memlab.Lab) -> None:
        view = farm.at(viewer="bob")
        farm.remember("The mule eats thistles", **SECRET)
        farm.remember("The sheep eats clover")
        farm.edit(3, tags=["new"])
        assert view.memories["id"].to_list() == [1, 3, 4, 6]
        assert view[3].tags == ("new",)

    @pytest.mark.long
    def test_visibility_follows_changes_to_public_and_private(self, farm: memlab.Lab) -> None:
        view = farm.at(viewer="bob")
        farm.edit(2, visibility="project")
        assert view[2].text == "The goat of Ann eats gold"
        assert 2 in view.edges["target"].to_list()
        farm.edit(2, visibility="private")
        assert view.memories["id"].to_list() == [1, 3, 4]

    def test_memories_forgotten_with_a_hidden_one_are_forgotten_for_the_viewer(
        self, farm: memlab.Lab
    ) -> None:
        view = farm.at(viewer="bob")
        before = view.memories
        farm.forget([2, 3])
        whole = farm.memories
        assert not view.memories.equals(before)
        assert view.memories.select("id", "status").rows() == [
            row for row in whole.select("id", "status").rows() if row[0] != 2
        ]

    @pytest.mark.long
    def test_scores_are_those_of_a_lab_without_it(self, farm: memlab.Lab) -> None:
        before = farm.at(viewer="bob").recall("goat hay").frame
        farm.remember([{"text": f"goat hay {n}", "tags": ["farm"], **SECRET} for n in range(30)])
        for id in range(5, 35):
            farm.graph.link(id, 1)
        assert farm.at(viewer="bob").recall("goat hay").frame.equals(before)
        assert farm.recall("goat hay", viewer="bob", log=False).frame.equals(before)

    def test_an_expression_ranges_over_what_is_seen(self, farm: memlab.Lab) -> None:
        farm.edit(2, importance=1.0)
        heavy = pl.col("importance") >= pl.col("importance").max()
        assert set(farm.recall("goat", viewer="bob", where=heavy, log=False).ids) == {1, 3, 4}

    def test_a_view_is_read_only(self, farm: memlab.Lab, tmp_path: Path) -> None:
        view, head = farm.at(viewer="bob"), farm.log.height
        with pytest.raises(ReadOnlyLab, match='as "bob" sees it'):
            view.remember("x")
        for verb in (
            view.upkeep.maintain,
            view.graph.clusters.find,
            view.graph.clusters.refine,
            view.io.backup,
            lambda: view.forget(1),
        ):
            with pytest.raises(MemlabError):
                verb()
        with pytest.raises(InputError):
            view.upkeep.index.report()
        assert view.recall("goat").decision is None
        assert farm.log.height == head

    def test_a_view_cannot_be_opened_for_another_viewer(self, farm: memlab.Lab) -> None:
        view = farm.at(viewer="bob")
        assert view.at(viewer="bob") is view
        with pytest.raises(InputError, match="original lab"):
            view.at(viewer="ann")
        with pytest.raises(InputError, match='viewer of this lab is "bob"'):
            view.recall("goat", viewer="ann")
        with pytest.raises(InputError, match="viewer must be the name of a user"):
            farm.at(viewer="")

    @pytest.mark.long
    def test_a_viewer_reads_the_recalls_that_were_asked_as_that_viewer(
        self, farm: memlab.Lab
    ) -> None:
        for viewer in ("ann", "bob", None):
            farm.recall(f"goat for {viewer}", viewer=viewer)
        assert farm.at(viewer="bob").slates().decisions.collect()["query"].to_list() == [
            "goat for bob"
        ]

    def test_beyond_the_exact_limit_no_index_is_asked(self, farm: memlab.Lab) -> None:
        farm.remember([{"text": f"goat hay {n % 7}", **SECRET} for n in range(40)])
        before = farm.at(viewer="bob").recall("goat hay").frame
        with farm.io.store.reading() as state:
            state.vectors.exact_up_to = 2
            state.vectors.attach(Nothing(len(state) - 1, state.vectors.dim))
        assert farm.at(viewer="bob").recall("goat hay").frame.equals(before)


class Nothing:
    """An index that proposes what is hidden, and nothing else."""

    def __init__(self, rows: int, dim: int) -> None:
        self.rows, self.dim = rows, dim

    def __len__(self) -> int:
        return self.rows

    def candidates(self, query: np.ndarray, n: int, *, effort: float = 1.0) -> np.ndarray:
        return np.array([1, 5, 6, 7])


class TestDecisions:
    """What everyone sees is decided by what everyone sees."""

    def test_a_memory_for_all_is_not_merged_into_what_one_keeps_private(
        self, lab: memlab.Lab
    ) -> None:
        lab.policies.use("workbench")
        lab.remember("The build fails without a cache", **SECRET)
        result = lab.remember(
            "The build fails without a cache", visibility="project", creator="ann"
        )
        assert result.id == 2

    def test_a_session_goes_on_from_what_is_seen(self, lab: memlab.Lab) -> None:
        for row in ({}, SECRET, {}):
            lab.remember("hm", session="s", chain=True, **row)
        assert lab.edges.select("source", "target").rows() == [(1, 2), (1, 3)]

    @pytest.mark.long
    def test_clusters_of_all_hold_nothing_private(self, lab: memlab.Lab) -> None:
        texts = [f"The goat on meadow {n} wants hay" for n in range(9)] + [
            f"Deploy {n} ships it" for n in range(9)
        ]
        lab.remember(texts)
        lab.remember([{"text": text, **SECRET} for text in texts])
        lab.graph.clusters.find()
        assert sorted(lab.at(viewer="bob").graph.clusters.frame()["members"]) == [9, 9]
        assert set(lab.at(viewer="ann").graph.clusters.frame()["name"]) - set(
            lab.at(viewer="bob").graph.clusters.frame()["name"]
        )


class TestVisibilityOfAPack:
    @pytest.mark.parametrize(
        ("setting", "expected"),
        [
            ("project", ["project"] * 3),
            ("by-creator", ["private", "project", "project"]),
            ("team", ["team", "team", "project"]),
        ],
    )
    def test_the_default_visibility_without_a_policy(
        self, lab: memlab.Lab, setting: str, expected: list[str]
    ) -> None:
        lab.policies.use(
            f'(require memlab.dialect *)\n(pack mine)\n(setting visibility "{setting}")'
        )
        lab.remember(
            [{"text": "a", "creator": "user"}, {"text": "b", "creator": "agent:coder"}, "c"]
        )
        assert lab.memories["visibility"].to_list() == expected
        lab.remember("d", creator="user", visibility="team")
        assert lab.memories["visibility"][3] == "team"

    def test_a_pack_without_the_policy_behaves_as_before(self) -> None:
        assert memlab.load_pack("memlab").settings["visibility"] == "project"
        named = memlab.load_pack(
            '(require memlab.dialect *)\n(pack memlab)\n(setting visibility "project")'
        )
        assert named.hash == memlab.load_pack("memlab").hash


def test_only_a_viewers_own_recalls_strengthen_edges(trigrams) -> None:
    with memlab.open(pack="associative", embedder=trigrams) as lab:
        own = {"creator": "ann", "visibility": "private"}
        rows = [{"text": f"the secret of the {name}", **own} for name in ("north", "south", "west")]
        lab.remember([*rows, "the harbour is frozen", "the harbour has a crane"], linking="off")
        lab.graph.link(1, 2, "relates-to", weight=0.3)
        lab.graph.link(2, 3, "relates-to", weight=0.3)
        lab.graph.link(4, 5, "relates-to", weight=0.3)
        hits = lab.recall("what of the harbour?", viewer="bob", limit=2)
        assert {4, 5} <= set(hits.ids)
        weights = lab.edges.filter(relation="relates-to").select("source", "weight").rows()
        assert weights == [(1, 0.3), (2, 0.3), (4, pytest.approx(0.35))]


@pytest.mark.long
class TestPurge:
    """What a purge leaves of a logged recall tells the asker nothing of what others keep private."""

    @pytest.fixture
    def purge_after_recalls(self, lab: memlab.Lab) -> memlab.Lab:
        """Run the same recall as each viewer, with the gaps that each sees; purge the memory that answers."""
        lab.remember("In Ghent Zanzibarov keeps 17 quokkas", creator="bob", project="zoo")
        lab.remember("Ann also saw Zanzibarov with 17 quokkas", project="zoo", **SECRET)
        lab.remember("The horse eats oats", creator="bob")
        for viewer in ("bob", "ann", "dora", None):
            hits = lab.recall("does Zanzibarov have 17 of them", project="zoo", viewer=viewer)
            lab.agents.verify(hits, [])
        lab.purge(1)
        return lab

    def questions(self, lab: memlab.Lab) -> list[tuple[str, str]]:
        return lab.slates().decisions.select("query", "project").collect().rows()

    def test_a_query_that_quotes_a_hidden_memory_is_hidden(
        self, purge_after_recalls: memlab.Lab
    ) -> None:
        for viewer, value in {"bob": False, "dora": False, "ann": True}.items():
            ((question, project),) = self.questions(purge_after_recalls.at(viewer=viewer))
            assert (question != "", project == "zoo") == (value, value), viewer
            gaps = purge_after_recalls.at(viewer=viewer).upkeep.review.gaps()
            # the second was asked by nobody in particular, and what it says all may see
            assert [snippet != "" for snippet in gaps["snippet"]] == [value, False], viewer
            assert [project == "zoo" for project in gaps["project"]] == [value, False], viewer
        assert [question != "" for question, _ in self.questions(purge_after_recalls)] == [
            False,
            True,
            False,
            True,
        ]

    def test_the_recall_of_the_purged_lab_is_the_same_without_it(
        self, purge_after_recalls: memlab.Lab
    ) -> None:
        assert purge_after_recalls.recall("quokkas", viewer="bob").ids == (3,)
        assert 2 in purge_after_recalls.recall("quokkas", viewer="ann").ids


class TestDifferential:
    def test_every_public_name_is_read_or_said_why_not(self) -> None:
        known = {name.split()[0] for name in READERS} | {
            name for names in NOT_READ.values() for name in names
        }
        assert known == public_names() | {"len", "repr", "getitem"}

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("seed", "pack"), [(1, "associative"), pytest.param(2, "cascade", marks=pytest.mark.slow)]
    )
    def test_private_memories_of_others_change_nothing(self, seed: int, pack: str) -> None:
        """The short form of tests/campaigns/fuzz_viewer.py."""
        report = Report()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compared(written(seed, steps=10, pack=pack), report, viewers=("bob",))
        assert not report.examples
        assert [pair[0] == pytest.approx(pair[1]) for pair in report.hits] == [True]


@pytest.mark.long
def test_private_memories_of_others_do_not_move_the_exploration_item():
    """Labs that differ only in private memories of another agent show the same item by the same dice."""
    shown = []
    for private in (0, 1, 2, 5):
        lab = memlab.open(seed=3)
        lab.policies.use("(pack exploring :inherits memlab) (setting probe-rate 1.0)")
        lab.remember([f"Note {number} on the garden" for number in range(60)], linking="off")
        for number in range(private):
            lab.agents("other").remember(f"Secret {number}", linking="off")
        lab.remember("The last note on the garden", linking="off")
        hits = lab.agents("reader").recall("the garden", limit=3)
        assert any(hit.probe for hit in hits)
        shown.append([hit.text for hit in hits])
    assert shown.count(shown[0]) == len(shown)
