"""The verbs of a lab, as a person uses them."""

import polars as pl
import pytest

import memlab
from memlab.errors import (
    EmbedderMismatch,
    InputError,
    NotALab,
    PolicyError,
    PrivacyError,
    ReadOnlyLab,
    UnknownName,
)
from tests.displays import html_of

TALK = [
    {"text": "Where did you grow up?", "speaker": "Ada", "session": "1"},
    {"text": "In a village by the sea, with two goats.", "speaker": "Ben", "session": "1"},
    {"text": "I never learned to swim.", "speaker": "Ada", "session": "1"},
    {"text": "The bakery opens at six.", "speaker": "Ben", "session": "2"},
]


class TestRemember:
    def test_returns_the_memory(self, lab):
        memory = lab.remember(
            "The user prefers tabs", kind="preference", tags=["style"], ref="note-1"
        )
        assert (memory.id, memory.text, memory.kind, memory.tags, memory.ref) == (
            1,
            "The user prefers tabs",
            "preference",
            ("style",),
            "note-1",
        )

    def test_many_are_one_event(self, lab):
        before = lab.io.store.journal.head
        added = lab.remember(TALK)
        assert lab.io.store.journal.head == before + 1
        assert list(added.ids) == [1, 2, 3, 4]
        assert added.frame["text"].to_list() == [turn["text"] for turn in TALK]

    @pytest.mark.long
    def test_a_frame_is_as_good_as_rows(self, lab, trigrams, clock):
        lab.remember(pl.DataFrame(TALK))
        with memlab.open(embedder=trigrams, clock=clock) as other:
            other.remember(TALK)
            assert lab.memories.equals(other.memories)

    def test_nothing_to_remember_is_nothing(self, lab):
        assert len(lab.remember([])) == 0

    def test_a_chain_links_the_turns_of_a_session(self, lab):
        lab.remember(TALK, chain=True)
        lab.remember("And then?", session="1", chain=True)
        assert lab.edges.select("source", "target").rows() == [(1, 2), (2, 3), (3, 5)]
        assert set(lab.edges["relation"]) == {"next"}

    def test_sessions_of_two_projects_are_not_chained(self, lab):
        lab.remember([{"text": "a", "session": "1", "project": p} for p in ("x", "y")], chain=True)
        assert lab.edges.height == 0

    def test_a_secret_never_arrives(self, lab):
        added = lab.remember(["my key is AKIAIOSFODNN7EXAMPLE, keep it"])
        assert "AKIAIOSFODNN7EXAMPLE" not in added[0].text
        assert "REDACTED" in added[0].text
        assert len(added.redacted) == 1

    def test_a_secret_among_the_tags_is_refused(self, lab):
        with pytest.raises(PrivacyError, match="tags"):
            lab.remember("a key", tags=["AKIAIOSFODNN7EXAMPLE"])

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"text": ""}, "empty"),
            ({"text": " \n\t"}, "empty"),
            ({"text": 7}, "must be a string"),
            ({"text": "a" * 1_000_001}, "1,000,001 bytes"),
            ({"text": "a\ud800b"}, "lone surrogate at character 1"),
            ({"text": "a", "kind": "preferense"}, "Did you mean preference"),
            ({"text": "a", "importance": float("nan")}, "finite"),
            ({"text": "a", "importance": 2}, r"0\.\.1"),
            ({"text": "a", "pinned": "yes"}, "true or false"),
            ({"text": "a", "tags": "style"}, "list of strings"),
            ({"text": "a", "at": "yesterday"}, "ISO 8601"),
            ({"text": "a", "speker": "Ada"}, "Did you mean speaker"),
            ({"text": "a", "project": ""}, "1 to 1000 characters"),
        ],
    )
    def test_bad_input_names_its_place_and_leaves_nothing(self, lab, fields, message):
        head = lab.io.store.journal.head
        with pytest.raises(InputError, match=message):
            lab.remember([{"text": "fine"}, fields])
        assert lab.io.store.journal.head == head
        assert len(lab) == 0


class TestRecall:
    @pytest.mark.long
    def test_finds_what_shares_words(self, lab):
        lab.remember(TALK)
        hits = lab.recall("when does the bakery open?", limit=2)
        assert hits[0].text == "The bakery opens at six."
        assert [hit.rank for hit in hits] == [1, 2]
        assert hits.frame["memory_id"].to_list() == list(hits.ids)

    def test_an_empty_lab_answers_nothing(self, lab):
        assert len(lab.recall("anything?")) == 0

    @pytest.mark.long
    @pytest.mark.parametrize("pack", memlab.packs())
    def test_terms_sum_to_the_score(self, lab, pack):
        lab.remember(TALK, chain=True)
        lab.policies.use(pack)
        for hit in lab.recall("goats by the sea"):
            explained = hit.explain()
            assert sum(value for _, value in explained.terms) == pytest.approx(hit.score, abs=1e-12)

    def test_projects_are_kept_apart_and_what_has_none_is_everywhere(self, lab):
        lab.remember([{"text": f"The deploy day of {p}", "project": p} for p in ("api", "web")])
        lab.remember("Every deploy needs a review")
        texts = {hit.text for hit in lab.recall("deploy", project="api")}
        assert texts == {"The deploy day of api", "Every deploy needs a review"}

    def test_a_forgotten_memory_is_not_retrieved_until_restored(self, lab):
        memory = lab.remember("The bakery opens at six.")
        lab.forget(memory)
        assert len(lab.recall("bakery")) == 0
        lab.restore(memory)
        assert len(lab.recall("bakery")) == 1

    def test_a_neighbour_comes_along(self, lab):
        lab.remember(TALK, chain=True)
        received = (
            lab.recall("goats", limit=4).frame.filter(pl.col("memory_id") == 1)["received"].item()
        )
        assert received > 0

    def test_each_recall_is_an_access(self, lab, clock):
        memory = lab.remember("The bakery opens at six.")
        clock.advance(days=2)
        lab.recall("bakery")
        row = lab.memories.row(0, named=True)
        assert row["access"] == 1
        assert (row["accessed"] - row["created"]).days == 2
        assert lab[memory.id].access == 1

    def test_unlogged_leaves_no_trace(self, lab):
        lab.remember("The bakery opens at six.")
        head = lab.io.store.journal.head
        assert lab.recall("bakery", log=False).decision is None
        assert lab.io.store.journal.head == head

    @pytest.mark.long
    def test_the_same_recall_gives_the_same_bytes(self, trigrams):
        def life():
            clock = memlab.ManualClock("2026-03-01")
            with memlab.open(embedder=trigrams, clock=clock) as lab:
                lab.remember(TALK, chain=True)
                lab.feedback(lab.recall("goats")[0], "success")
                lab.recall("sea and goats")
                return [blob for _, blob in lab.io.store.journal.slates()]

        assert life() == life()

    @pytest.mark.parametrize("limit", [0, -1, 2.5, True])
    def test_limit_must_be_a_positive_whole_number(self, lab, limit):
        with pytest.raises(InputError, match="limit"):
            lab.recall("bakery", limit=limit)

    @pytest.mark.parametrize("query", ["", "   ", "a\udfff"])
    def test_a_query_must_be_text(self, lab, query):
        with pytest.raises(InputError):
            lab.recall(query)

    def test_html_is_escaped(self, lab):
        lab.remember("<script>alert(1)</script>", speaker="<b>")
        hits = lab.recall("<script> alert")
        assert "<script>" not in html_of(hits)
        assert "<script>" not in html_of(hits[0].explain())


class TestFeedback:
    @pytest.mark.long
    def test_feedback_is_counted_and_belongs_to_its_recall(self, lab):
        lab.remember("The bakery opens at six.")
        hit = lab.recall("bakery")[0]
        logged = lab.feedback(hit, "success", reward=0.8)
        assert (logged.decision, logged.memory) == (hit.decision, 1)
        assert lab.memories["success"].item() == 1
        row = lab.slates().feedback.collect().row(0, named=True)
        assert (row["decision"], row["memory_id"], row["outcome"], row["reward"]) == (
            hit.decision,
            1,
            "success",
            0.8,
        )

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (lambda lab: lab.feedback(1), InputError),
            (lambda lab: lab.feedback(1, "sucess"), UnknownName),
            (lambda lab: lab.feedback(99, "success"), UnknownName),
            (lambda lab: lab.feedback(1, reward=float("inf")), InputError),
        ],
    )
    def test_bad_feedback_is_refused(self, lab, call, error):
        lab.remember("The bakery opens at six.")
        with pytest.raises(error):
            call(lab)
        assert lab.slates().feedback.collect().height == 0


class TestSlates:
    def test_four_tables(self, lab):
        lab.remember(TALK, chain=True)
        hits = lab.recall("goats", limit=2)
        slates = lab.slates()
        assert slates.decisions.collect()["query"].to_list() == ["goats"]
        assert slates.candidates.collect().height == len(hits.slate)
        assert slates.exposures.collect()["memory_id"].to_list() == list(hits.ids)

    @pytest.mark.long
    def test_a_query_with_a_secret_is_redacted(self, lab):
        lab.remember("a key")
        lab.recall("is AKIAIOSFODNN7EXAMPLE my key?")
        assert "AKIAIOSFODNN7EXAMPLE" not in lab.slates().decisions.collect()["query"].item()


class TestPolicies:
    def test_a_swap_decides_the_next_recall(self, lab):
        lab.remember(["short", "a rather longer text than the other"])
        lab.policies.install("recall-score", "(fn [length] length)", reason="long first")
        assert lab.recall("text")[0].id == 2
        lab.policies.install("recall-score", "(fn [length] (- length))")
        assert lab.recall("text")[0].id == 1
        lab.policies.rollback("recall-score")
        assert lab.recall("text")[0].id == 2

    def test_history_and_diff(self, lab):
        lab.policies.install("recall-score", "(fn [length] length)", reason="long first")
        history = lab.policies.history("recall-score")
        assert history["action"].to_list() == ["use", "install"]
        assert history["reason"].to_list() == ["", "long first"]
        diff = repr(lab.policies.diff("recall-score"))
        assert "(fn [" in diff
        assert "(fn [length]" in diff

    def test_a_malformed_policy_changes_nothing(self, lab):
        before = lab.policies.pack.hash
        with pytest.raises(PolicyError):
            lab.policies.install("recall-score", "(fn [length] (+ length")
        with pytest.raises(UnknownName, match="recall-score"):
            lab.policies.install("recall-scor", "(fn [length] length)")
        with pytest.raises(UnknownName):
            lab.policies.use("no-such-pack")
        assert lab.policies.pack.hash == before

    def test_rollback_across_packs_keeps_helpers(self, lab):
        lab.policies.use(
            "(pack mine) (defn twice [x] (* 2 x)) (defpolicy recall-score [length] (twice length))"
        )
        mine = lab.policies["recall-score"].hash
        lab.policies.install("recall-score", "(fn [length] length)")
        lab.policies.rollback("recall-score")
        assert lab.policies["recall-score"].hash == mine


class TestOnDisk:
    @pytest.mark.long
    def test_everything_is_there_again(self, disk):
        with disk() as lab:
            lab.remember(TALK, chain=True)
            lab.policies.use("associative", reason="to see")
            lab.policies.install("recall-score", "(fn [activation] activation)")
            lab.feedback(lab.recall("goats")[0], "success")
            before = (
                lab.memories,
                lab.edges,
                lab.policies.pack.hash,
                lab.recall("sea", log=False).frame,
            )
        with disk() as lab:
            assert lab.memories.equals(before[0])
            assert lab.edges.equals(before[1])
            assert lab.policies.pack.hash == before[2]
            assert lab.recall("sea", log=False).frame.equals(before[3])

    @pytest.mark.long
    def test_a_snapshot_changes_nothing(self, disk):
        with disk() as lab:
            lab.remember(TALK, chain=True)
            lab.io.snapshot()
            lab.remember("after the snapshot", session="1", chain=True)
            before = lab.memories, lab.edges, lab.recall("goats", log=False).frame
        with disk() as lab:
            assert lab.memories.equals(before[0])
            assert lab.edges.equals(before[1])
            assert lab.recall("goats", log=False).frame.equals(before[2])

    @pytest.mark.long
    def test_a_damaged_snapshot_is_rebuilt_and_said(self, disk, tmp_path):
        with disk() as lab:
            lab.remember(TALK)
            lab.io.snapshot()
        (path,) = (tmp_path / "agent.memlab" / "snapshots").glob("*/memories.parquet")
        path.write_bytes(path.read_bytes()[:100])
        with pytest.warns(UserWarning, match="truncated.*rebuilt"), disk() as lab:
            assert len(lab) == 4

    def test_two_labs_see_each_others_events(self, disk):
        with disk() as one, disk() as two:
            one.remember("from one")
            assert [hit.text for hit in two.recall("from")] == ["from one"]
            assert two.remember("from two").id == 2
            assert one.memories["text"].to_list() == ["from one", "from two"]
            two.policies.use("workbench")
            assert one.policies.pack.name == "workbench"

    @pytest.mark.long
    def test_another_embedder_is_refused_and_told_the_way_out(self, disk, tmp_path):
        with disk() as lab:
            lab.remember(TALK)

        def sizes(texts):
            return [[len(text), 1.0] for text in texts]

        path = tmp_path / "agent.memlab"
        with pytest.raises(EmbedderMismatch, match="reembed=True"):
            memlab.open(path, embedder=sizes)
        with memlab.open(path, embedder=sizes, reembed=True) as lab:
            assert len(lab.recall("goats")) == 4
        with memlab.open(path, embedder=sizes) as lab:
            assert len(lab) == 4

    def test_read_only_reads_and_refuses(self, disk):
        with disk() as lab:
            lab.remember(TALK)
        with disk(read_only=True) as lab:
            assert lab.recall("bakery").decision is None
            with pytest.raises(ReadOnlyLab):
                lab.remember("more")

    def test_a_folder_of_something_else_is_left_alone(self, tmp_path, trigrams):
        (tmp_path / "thesis.txt").write_text("mine")
        with pytest.raises(NotALab):
            memlab.open(tmp_path, embedder=trigrams)
        assert [item.name for item in tmp_path.iterdir()] == ["thesis.txt"]


class TestLink:
    def test_an_edge_is_made(self, lab):
        one, two = lab.remember(["a", "b"])
        lab.graph.link(one, two, "supersedes", weight=0.5)
        assert lab.edges.select("source", "target", "relation", "weight").row(0) == (
            1,
            2,
            "supersedes",
            0.5,
        )

    @pytest.mark.parametrize(
        ("ends", "more", "error"),
        [
            ((1, 1), {}, InputError),
            ((1, 9), {}, UnknownName),
            ((1, 2), {"relation": "supercedes"}, UnknownName),
            ((1, 2), {"weight": 1.5}, InputError),
        ],
    )
    def test_bad_edges_are_refused(self, lab, ends, more, error):
        lab.remember(["a", "b"])
        with pytest.raises(error):
            lab.graph.link(*ends, **more)
        assert lab.edges.height == 0


def test_a_public_frame_is_a_copy(lab):
    memory = lab.remember("The bakery opens at six.")
    before = lab.memories
    lab.recall("bakery")
    lab.feedback(memory, "success")
    assert before["access"].item() == 0
    assert before["success"].item() == 0
