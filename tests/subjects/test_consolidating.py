"""Consolidation: which memories go into which summary, what it says and weighs, and the way back."""

import itertools
import math
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab.errors import InputError, RenamedWarning
from memlab.kernel.embedding import load_embedder
from memlab.kernel.policies import load_pack
from memlab.kernel.state import latest_snapshot, load_snapshot, save_snapshot
from memlab.kernel.verbs.projections import PROJECTIONS, new_state
from memlab.subjects.clusters.grouping import form_groups, get_summaries, select_candidates
from memlab.subjects.clusters.wording import Utterance, choose_sentences, write_summary
from memlab.subjects.reading.sentences import count_tokens, sentences_and_lines, shorten

DAY = 86_400_000_000
HERD = {
    "The goat on meadow": "wants hay and salt",
    "Deploy number": "ships the release to staging",
    "Sourdough loaf": "rises overnight in the bakery",
}

FIELDS = {
    "kind": ["observation", "event", "fact"],
    "visibility": ["private", "project"],
    "creator": ["ann", None],
    "tags": [None, ["a"], ["a", "b"]],
    "importance": [0.2, 0.9],
}


EPISODES = """
    (require memlab.dialect *)
    (pack episodes)
    (defpolicy consolidate [kind] (!= kind "summary"))
    (setting consolidate-least 2)
"""


def rows(count=10, **fields):
    return [
        {"text": f"{what} {n} {does}", "kind": "observation", **fields}
        for what, does in HERD.items()
        for n in range(count)
    ]


def content_of(lab):
    """Return the memories without the time of their last change, and the edges."""
    return lab.memories.drop("changed"), lab.edges


@pytest.fixture
def old(lab, clock):
    lab.remember(rows())
    clock.advance(days=100)
    lab.graph.clusters.find()
    return lab


class TestWhatMayGo:
    """The ``consolidate`` policy of the pack decides; a fact of a subject never goes."""

    def may(self, lab, **more):
        with lab.io.store.reading() as state:
            days = more.pop("older_than", lab.policies.pack.number("consolidate-days"))
            candidates = select_candidates(
                state, lab.policies.pack, lab.io.store.clock(), older_than=days, **more
            )
            return (candidates + 1).tolist()

    @pytest.mark.parametrize(
        ("fields", "goes"),
        [
            ({}, True),
            ({"kind": "turn"}, True),
            ({"kind": "fact"}, False),
            ({"kind": "convention"}, False),
            ({"kind": "summary"}, False),
            ({"pinned": True}, False),
            ({"importance": 0.8}, False),
            ({"importance": 0.79}, True),
        ],
    )
    def test_of_the_default_pack(self, lab, clock, fields, goes):
        lab.remember("It rained", **{"kind": "event", **fields})
        clock.advance(days=90)
        assert bool(self.may(lab)) is goes

    def test_age_use_and_status(self, lab, clock):
        lab.remember(rows(2))
        clock.advance(days=89)
        assert self.may(lab) == []
        clock.advance(days=1)
        assert self.may(lab) == [1, 2, 3, 4, 5, 6]
        lab.forget(2)
        lab.recall("goat meadow", limit=1)
        used = lab.memories.filter(pl.col("access") > 0)["id"].to_list()
        assert self.may(lab) == [id for id in (1, 3, 4, 5, 6) if id not in used]

    def test_the_caller_may_say_another_age(self, lab, clock):
        lab.remember(rows(1))
        clock.advance(days=3)
        assert self.may(lab, older_than=3) == [1, 2, 3]
        assert self.may(lab, older_than=4) == []

    def test_a_fact_of_a_subject_stays_whatever_the_policy_says(self, lab, clock):
        lab.policies.use("(require memlab.dialect *)\n(pack all)\n(defpolicy consolidate [] true)")
        lab.remember("It rained", kind="event")
        lab.facts.add("Ada", "lives-in", object="Oslo")
        assert self.may(lab) == [1]

    def test_null_is_no(self, lab):
        lab.policies.use(
            "(require memlab.dialect *)\n(pack some)\n(defpolicy consolidate [ttl-days] (> ttl-days 3))"
        )
        lab.remember([{"text": "a"}, {"text": "b", "ttl_days": 5}])
        assert self.may(lab) == [2]

    def test_associative_consolidates_memories_of_low_energy(self):
        policy = load_pack("associative").policies["consolidate"]
        arguments = {
            "kind": "learning",
            "pinned": False,
            "age-days": 200.0,
            "older-than": 90.0,
            "retention": 0.25,
        }
        arguments |= {"importance": 0.5}
        assert policy.row(arguments) is True
        assert policy.row({**arguments, "importance": 0.8}) is False
        assert policy.with_params({"important": 2}).row({**arguments, "importance": 1.0}) is True
        assert policy.row({**arguments, "retention": 0.26}) is False
        assert policy.row({**arguments, "kind": "summary"}) is False
        assert policy.row({**arguments, "age-days": 89.0}) is False


@pytest.mark.long
class TestGroups:
    """A group shares its label and everything that says who may see it; the most important stay out."""

    def test_against_a_plain_loop(self, lab):
        chance = np.random.default_rng(7)
        lab.remember(
            [
                {
                    "text": f"memory {n}",
                    "project": str(chance.choice(["api", "web"])),
                    "visibility": str(chance.choice(["private", "team", "project"])),
                    "creator": str(chance.choice(["ann", "bob"])),
                    "scope": str(chance.choice(["project", "session"])),
                    "session": str(chance.choice(["s1", "s2"])),
                    "importance": float(chance.integers(0, 4)) / 4,
                }
                for n in range(200)
            ]
        )
        labels = chance.integers(-1, 3, 200)
        with lab.io.store.reading() as state:
            result = form_groups(
                state, np.arange(200), labels, {n: f"g{n}" for n in range(3)}, min_size=3, keep=2
            )
        slow = {}
        for row in lab.memories.to_dicts():
            label = int(labels[row["id"] - 1])
            if label >= 0:
                bound = row["session"] if row["scope"] == "session" else None
                key = (
                    label,
                    row["project"],
                    row["visibility"],
                    row["creator"],
                    row["scope"],
                    bound,
                )
                slow.setdefault(key, []).append((-row["importance"], row["id"] - 1))
        expected = sorted(
            sorted(row for _, row in sorted(group)[2:])
            for group in slow.values()
            if len(group) >= 5
        )
        assert [item.rows.tolist() for item in result] == expected
        assert {item.label for item in result} <= {"g0", "g1", "g2"}


class TestASummary:
    @pytest.mark.long
    def test_a_summary_leads_to_its_members(self, old):
        before = dict(old.memories.select("id", "status").iter_rows())
        consolidation = old.upkeep.consolidation.run()
        assert len(consolidation) == 3
        after = dict(old.memories.select("id", "status").iter_rows())
        derived = old.edges.filter(pl.col("relation") == "derived-from")
        for summary, ids in consolidation.frame.select("summary", "members").iter_rows():
            assert {before[id] for id in ids} == {"active"}
            assert {after[id] for id in ids} == {"consolidated"}
            assert derived.filter(pl.col("source") == summary)["target"].sort().to_list() == ids
            assert after[summary] == "active"
        assert sorted(id for ids in consolidation.frame["members"] for id in ids) == list(
            range(1, 31)
        )

    @pytest.mark.long
    def test_takes_part_in_recall_in_their_place(self, old):
        consolidation = old.upkeep.consolidation.run()
        assert {hit.id for hit in old.recall("goat hay salt", limit=10)} <= set(consolidation.ids)

    @pytest.mark.long
    def test_says_what_they_are_about_and_sentences_of_its_members_within_the_budget(self, old):
        consolidation = old.upkeep.consolidation.run()
        texts = set(old.memories["text"].head(30))
        for text in consolidation.frame["text"]:
            assert count_tokens(text) <= old.policies.pack.count("summary-tokens")
            head, _, left = text.partition("): ")
            assert re.fullmatch(r"\w+(, \w+)* \(10 notes, [0-9-]{10}( to [0-9-]{10})?", head)
            for item in sorted(texts, key=len, reverse=True):
                left = left.replace(item, "")
            assert not left.strip(" .")

    def test_quotes_no_question_and_no_bare_exclamation_while_something_is_stated(self):
        texts = [
            "Does the goat eat hay? See you!",
            "The goat eats hay. Great!",
            "Hay for the goat? It is in the barn",
        ]
        members = [
            Utterance(text, ("Ada", "Bob", "Ada")[n], n * 86_400_000_000)
            for n, text in enumerate(texts)
        ]
        text = write_summary(members, load_embedder(None), 120, language="english")
        head, body = text.split("): ")
        assert head == "Goat, hay (3 notes, 1970-01-01 to 1970-01-03"
        assert body == "Bob: The goat eats hay. Ada: It is in the barn."
        only = [
            Utterance("Does the goat eat hay?", None, 0),
            Utterance("Hay for the goat?", None, 0),
        ]
        assert "hay" in write_summary(only, load_embedder(None), 120, language="english").lower()

    @pytest.mark.long
    def test_weighs_what_its_members_weighed(self, lab, clock):
        created = []
        for n in range(6):
            at = f"2026-01-0{n + 1}T00:00:00"
            lab.remember(
                f"The goat wants hay and salt {n}",
                kind="event",
                at=at,
                importance=0.1 * n,
                confidence=0.9 - 0.1 * n,
                emotional_weight=10.0 * n,
                session="s",
                first_message=n + 1,
                last_message=n + 2,
                tags=["goats", f"t{n}"],
                agents=["ann"] if n else ["bob"],
                project="farm",
                creator="ann",
            )
            created.append(at)
        for id, outcome in ((1, "success"), (2, "success"), (3, "fail")):
            lab.feedback(id, outcome)
        lab.remember(rows(8))
        clock.advance(days=365)
        consolidation = lab.upkeep.consolidation.run(project="farm")
        (id,) = consolidation.ids
        row = lab.memories.row(id - 1, named=True)
        assert (row["kind"], row["provenance"], row["source"]) == ("summary", "inferred", "system")
        assert (row["project"], row["session"], row["creator"], row["tags"]) == (
            "farm",
            "s",
            "ann",
            ["goats"],
        )
        assert row["agents"] == ["ann", "bob"]
        assert (row["importance"], row["emotional_weight"]) == pytest.approx((0.5, 50))
        assert row["confidence"] == pytest.approx(0.4)
        assert (row["success"], row["fail"], row["access"]) == (2, 1, 0)
        assert (row["first_message"], row["last_message"]) == (1, 7)
        assert row["created"].isoformat() == f"{created[-1]}+00:00", (
            "consolidating makes nothing old look new"
        )
        assert row["valid_from"].isoformat() == f"{created[0]}+00:00"

    @pytest.mark.long
    def test_the_most_important_member_stays_active_next_to_the_summary(self, old, clock):
        old.edit(4, importance=0.7)
        consolidation = old.upkeep.consolidation.run(keep=1)
        assert 4 not in {id for ids in consolidation.frame["members"] for id in ids}
        assert [len(ids) for ids in consolidation.frame["members"]] == [9, 9, 9]
        assert old[4].status == "active"
        assert not old.upkeep.consolidation.run(keep=1)

    @pytest.mark.long
    def test_the_summary_names_the_speakers_if_there_are_several(self, lab, clock):
        lab.remember([{**row, "speaker": ("Ann", "Bob")[n % 2]} for n, row in enumerate(rows(8))])
        lab.remember(rows(8, speaker="Cy", project="other"))
        clock.advance(days=100)
        consolidation = lab.upkeep.consolidation.run()
        for id, project, text in consolidation.frame.select(
            "summary", "project", "text"
        ).iter_rows():
            assert (lab[id].speaker == "Cy") is (project == "other")
            assert ("Ann:" in text or "Bob:" in text) is (project is None)


@pytest.mark.long
class TestTheWayBack:
    def test_is_what_was_before(self, old):
        before = content_of(old)
        consolidation = old.upkeep.consolidation.run()
        for id in consolidation.ids:
            old.restore(id)
        after = content_of(old)
        assert after[0].head(30).equals(before[0])
        assert after[1].equals(before[1])
        assert {old[id].status for id in consolidation.ids} == {"forgotten"}

    def test_with_tags_statuses_and_any_order(self, lab, clock):
        lab.remember(rows(tags=["farm"], files=["a.py"]))
        lab.policies.use(
            '(require memlab.dialect *)\n(pack all :inherits memlab)\n(setting fact-status "staged")'
        )
        clock.advance(days=100)
        lab.graph.clusters.find()
        before = content_of(lab)
        consolidation = lab.upkeep.consolidation.run()
        for id in reversed(consolidation.ids):
            lab.restore(id)
        after = content_of(lab)
        assert after[0].head(30).equals(before[0])
        assert after[1].equals(before[1])

    def test_members_that_left_the_summary_since_are_unchanged(self, old):
        consolidation = old.upkeep.consolidation.run()
        first, members = consolidation.frame.row(0)[0], consolidation.frame["members"][0].to_list()
        old.forget(members[0], how="delete")
        old.restore(members[1])
        old.forget(members[1])
        old.restore(first)
        assert old[members[0]].status == "deleted"
        assert old[members[1]].status == "forgotten"
        assert {old[id].status for id in members[2:]} == {"active"}

    def test_undone_members_can_be_consolidated_again(self, old):
        consolidation = old.upkeep.consolidation.run()
        old.restore(consolidation.ids[0])
        again = old.upkeep.consolidation.run()
        assert again.frame["members"].to_list() == [consolidation.frame["members"][0].to_list()]
        assert again.ids == [34]

    def test_the_former_name_warns_and_its_errors_say_why(self, old):
        warns = pytest.warns(RenamedWarning, match="lab.restore")
        with warns, pytest.raises(InputError, match="Memory 1 is not an active summary"):
            old.upkeep.consolidation.undo(1)
        consolidation = old.upkeep.consolidation.run()
        with pytest.warns(RenamedWarning):
            assert old.upkeep.consolidation.undo(consolidation.ids[0]).status == "forgotten"
        with pytest.warns(RenamedWarning), pytest.raises(InputError, match="undone already"):
            old.upkeep.consolidation.undo(consolidation.ids[0])

    def test_members_and_other_memories_come_back_in_one_call(self, old):
        consolidation = old.upkeep.consolidation.run()
        members = consolidation.frame["members"][0].to_list()
        old.forget(consolidation.ids[1])
        done = old.restore(consolidation.ids[:2])
        assert set(done.ids) == {consolidation.ids[0], consolidation.ids[1], *members}
        assert (old[consolidation.ids[0]].status, old[consolidation.ids[1]].status) == (
            "forgotten",
            "active",
        )
        assert {old[id].status for id in members} == {"active"}

    def test_an_agent_brings_no_members_back(self, old):
        summary = old.upkeep.consolidation.run().ids[0]
        agent = old.agents("coder", role="owner")
        assert len(agent.restore(summary)) in (0, 1)
        assert old[summary].status == "active"

    def test_a_summary_of_summaries_is_undone_from_the_outside(self, lab, clock):
        lab.policies.use(
            "(require memlab.dialect *)\n(pack all)\n(defpolicy consolidate [] true)\n(setting consolidate-least 2)"
        )
        lab.remember(rows(6))
        lab.graph.link(1, 2)
        lab.graph.link(2, 3)
        inner = lab.upkeep.consolidation.run(by="communities")
        assert inner.frame["members"].to_list() == [[1, 2, 3]]
        lab.remember("The goat on the meadow wants hay")
        lab.graph.link(inner.ids[0], 20)
        outer = lab.upkeep.consolidation.run(by="communities")
        assert outer.frame["members"].to_list() == [[19, 20]]
        with (
            pytest.warns(RenamedWarning),
            pytest.raises(InputError, match="itself part of another"),
        ):
            lab.upkeep.consolidation.undo(inner.ids[0])
        lab.restore(outer.ids[0])
        lab.restore(inner.ids[0])
        assert {lab[id].status for id in (1, 2, 3, 20)} == {"active"}


@pytest.mark.long
class TestOnceAndWhole:
    def test_a_second_call_writes_nothing(self, old):
        old.upkeep.consolidation.run()
        head = old.io.store.journal.head
        assert not old.upkeep.consolidation.run()
        assert old.io.store.journal.head == head

    def test_a_dry_run_writes_nothing_and_tells_what_would_be(self, lab, clock):
        lab.remember(rows())
        clock.advance(days=100)
        head = lab.io.store.journal.head
        dry = lab.upkeep.consolidation.run(dry_run=True)
        assert (lab.io.store.journal.head, dry.ids, dry.event) == (head, [], None)
        assert (
            lab.upkeep.consolidation.run().frame["members"].to_list()
            == dry.frame["members"].to_list()
        )

    def test_an_error_of_the_caller_leaves_nothing_behind(self, old):
        calls = []

        def fails(texts):
            calls.append(texts)
            if len(calls) == 2:
                raise RuntimeError("no model")
            return "fine"

        before, head = content_of(old), old.io.store.journal.head
        with pytest.raises(memlab.InputError, match="raised RuntimeError: no model") as raised:
            old.upkeep.consolidation.run(summarise=fails)
        assert isinstance(raised.value.__cause__, RuntimeError)
        assert old.io.store.journal.head == head
        assert content_of(old)[0].equals(before[0])

    def test_changes_while_a_summary_is_written_are_considered(self, old):
        """Another process forgets a member while the caller's model thinks."""
        calls = []

        def slow(texts):
            calls.append(len(texts))
            if len(calls) == 1:
                old.forget(1)
            return "A summary"

        consolidation = old.upkeep.consolidation.run(summarise=slow)
        assert calls == [10, 10, 10, 9], "only what changed is asked again"
        assert [len(ids) for ids in consolidation.frame["members"]] == [9, 10, 10]
        assert old[1].status == "forgotten"

    def test_summaries_survive_the_journal_and_a_snapshot(self, disk, clock):
        with disk() as lab:
            lab.remember(rows())
            clock.advance(days=100)
            consolidation = lab.upkeep.consolidation.run()
            before = lab.memories, lab.edges, lab.upkeep.consolidation.frame()
        for _ in range(2):
            with disk() as lab:
                assert lab.memories.equals(before[0])
                assert lab.edges.equals(before[1])
                assert lab.upkeep.consolidation.frame().equals(before[2])
                lab.io.snapshot()
        with disk() as lab:
            lab.restore(consolidation.ids[0])
            assert lab[1].status == "active"


class TestPrivacy:
    """A summary is never wider than its members."""

    @pytest.mark.long
    def test_a_wider_summary_contains_nothing_private(self, lab, clock):
        chance = np.random.default_rng(3)
        mixed = []
        for row in rows(24):
            text = str(chance.choice(["private", "team", "project"]))
            who, project = str(chance.choice(["ann", "bob"])), str(chance.choice(["api", "web"]))
            words = f"{row['text']} mark-{text}-{who}-{project}"
            mixed.append(
                {**row, "text": words, "visibility": text, "creator": who, "project": project}
            )
        lab.remember(mixed)
        clock.advance(days=100)
        consolidation = lab.upkeep.consolidation.run()
        assert len(consolidation)
        for row in lab.memories.filter(pl.col("kind") == "summary").iter_rows(named=True):
            marks = {word.strip(".") for word in row["text"].split() if word.startswith("mark-")}
            assert marks == {f"mark-{row['visibility']}-{row['creator']}-{row['project']}"}

    @pytest.mark.long
    def test_a_summary_from_outside_goes_through_the_gate(self, old):
        consolidation = old.upkeep.consolidation.run(
            summarise=lambda texts: "The key is AKIAIOSFODNN7EXAMPLE"
        )
        assert consolidation.redacted == 3
        assert not old.memories["text"].str.contains("AKIAIOSFODNN7EXAMPLE").any()

    @pytest.mark.parametrize("gave", ["", "  ", 3, None, "\ud800"])
    def test_and_is_a_text(self, old, gave):
        with pytest.raises(InputError):
            old.upkeep.consolidation.run(summarise=lambda texts: gave)

    def test_the_callers_function_sees_the_texts_in_order_of_time(self, old):
        seen = []
        old.upkeep.consolidation.run(summarise=lambda texts: seen.append(texts) or "A summary")
        assert seen[0] == [f"The goat on meadow {n} wants hay and salt" for n in range(10)]


@pytest.mark.long
class TestCommunities:
    """``by="communities"``: what is linked, whatever it says."""

    @pytest.fixture
    def linked(self, lab, clock):
        lab.remember([{"text": f"memory {letter}", "kind": "turn"} for letter in "abcdefghijklmn"])
        for first in (1, 8):
            for one, other in itertools.combinations(range(first, first + 7), 2):
                lab.graph.link(one, other)
        clock.advance(days=100)
        return lab

    def test_each_becomes_one_and_is_found_again(self, linked):
        before = content_of(linked)
        consolidation = linked.upkeep.consolidation.run(by="communities")
        assert consolidation.frame["members"].to_list() == [list(range(1, 8)), list(range(8, 15))]
        assert consolidation.frame["of"].str.starts_with("community ").all()
        assert not linked.upkeep.consolidation.run(by="communities")
        for id in consolidation.ids:
            linked.restore(id)
        after = content_of(linked)
        assert after[0].head(14).equals(before[0])
        assert after[1].equals(before[1])


class TestExtraction:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            ("One. Two? Three!", ["One.", "Two?", "Three!"]),
            ("Version 3.5 is out", ["Version 3.5 is out"]),
            ("今日は雨。明日は晴れ。", ["今日は雨。", "明日は晴れ。"]),
            ("- a\n- b\n\n***", ["- a", "- b"]),
            ('He said "no." She left.', ['He said "no.', "She left."]),
        ],
    )
    def test_sentences(self, text, expected):
        assert sentences_and_lines(text) == expected

    def test_the_central_and_the_different(self):
        """Two groups of likes and one outsider: two sentences are one of each group."""
        texts = ["a one", "a two", "a three", "b one", "b two", "b three", "lonely"]
        vectors = np.array(
            [
                [99, 9, 0],
                [99, 0, 0],
                [99, 9, 9],
                [0, 99, 9],
                [0, 99, 0],
                [9, 99, 9],
                [-60, -60, 90],
            ],
            np.int8,
        )
        both = choose_sentences(texts, vectors, count_tokens("a three b three"))
        assert len({texts[position][0] for position in both}) == 2

    @pytest.mark.long
    @given(
        st.lists(st.text("abc é", min_size=1, max_size=30), min_size=1, max_size=12),
        st.integers(0, 20),
        st.randoms(use_true_random=False),
    )
    def test_budget_order_and_no_repetition(self, sentences, budget, chance):
        vectors = np.array(
            [[chance.randint(-127, 127) for _ in range(4)] for _ in sentences], dtype=np.int8
        )
        places = choose_sentences(sentences, vectors, budget)
        assert places == sorted(set(places))
        assert count_tokens(" ".join(sentences[position] for position in places)) <= budget
        assert len({sentences[position].casefold() for position in places}) == len(places)
        assert places == choose_sentences(sentences, vectors, budget)

    @pytest.mark.long
    @given(st.text(min_size=1, max_size=200), st.integers(1, 30))
    def test_a_summary_is_cut_to_its_budget(self, text, budget):
        assert count_tokens(shorten(text, budget)) <= max(budget, 2)
        assert shorten(text, budget) == text or shorten(text, budget).endswith("…")

    @pytest.mark.long
    def test_a_long_text_and_no_space(self, lab, clock):
        lab.policies.use(
            "(require memlab.dialect *)\n(pack all)\n(defpolicy consolidate [] true)\n(setting consolidate-least 2)"
        )
        lab.remember([{"text": letter * 200_000} for letter in "xy"])
        lab.graph.link(1, 2)
        consolidation = lab.upkeep.consolidation.run(by="communities")
        assert math.ceil(len(consolidation.frame["text"][0].encode()) / 4) <= 120


@pytest.mark.long
def test_the_register_maps_members_to_summaries(old):
    consolidation = old.upkeep.consolidation.run()
    kept = get_summaries(old.io.store.state).all
    assert list(kept) == consolidation.ids
    assert [kept[id].members for id in consolidation.ids] == consolidation.frame[
        "members"
    ].to_list()
    assert kept[31].was == {"active": kept[31].members}


def test_a_lab_without_anything_old_is_left_alone(lab):
    assert not lab.upkeep.consolidation.run()
    lab.remember("new")
    assert not lab.upkeep.consolidation.run()
    assert (
        lab.io.store.journal.head == memlab.open(embedder=lab.io.embedder).io.store.journal.head + 1
    )


@pytest.mark.long
def test_any_prefix_of_the_journal_and_then_the_rest_is_all_of_it(old, tmp_path):
    """With clusters, a refinement, summaries and one that was undone."""
    consolidation = old.upkeep.consolidation.run(keep=1)
    old.graph.clusters.refine()
    old.restore(consolidation.ids[0])
    journal = old.io.store.journal
    events = list(journal.events())
    whole = folded(new_state(), events, journal)
    for cut_at in range(1, len(events)):
        state = folded(new_state(), events[:cut_at], journal)
        save_snapshot(state, tmp_path)
        state = folded(
            load_snapshot(latest_snapshot(tmp_path), PROJECTIONS).state, events[cut_at:], journal
        )
        assert state.memories().equals(whole.memories())
        assert state.edge_frame().equals(whole.edge_frame())
        for name in ("clusters", "summaries"):
            assert state.projections[name].dump() == whole.projections[name].dump()
    assert whole.memories().equals(old.memories)


def folded(state, events, contents):
    state.fold(events, contents)
    return state


@pytest.mark.long
@settings(max_examples=20)
@given(
    st.lists(st.tuples(*map(st.sampled_from, FIELDS.values())), min_size=12, max_size=40), st.data()
)
def test_consolidating_and_undoing_is_as_if_nothing_was(trigrams, kinds, data):
    """Whatever the memories are; and each member was live before and consolidated in between."""
    clock = memlab.ManualClock("2026-01-01T00:00:00")
    texts = [f"{what} {n} {does}" for what, does in HERD.items() for n in range(14)]
    with memlab.open(embedder=trigrams, clock=clock) as lab:
        lab.policies.use(EPISODES)
        lab.remember(
            [
                {"text": text, **dict(zip(FIELDS, kind, strict=True))}
                for text, kind in zip(texts, kinds, strict=False)
            ]
        )
        for id in data.draw(st.lists(st.integers(1, len(kinds)), unique=True, max_size=5)):
            lab.forget(id)
        lab.graph.clusters.find(min_size=2)
        before = content_of(lab)
        consolidation = lab.upkeep.consolidation.run(keep=data.draw(st.integers(0, 2)))
        status = dict(lab.memories.select("id", "status").iter_rows())
        was = dict(before[0].select("id", "status").iter_rows())
        for ids in consolidation.frame["members"]:
            assert {was[id] for id in ids} == {"active"}
            assert {status[id] for id in ids} == {"consolidated"}
        assert all(
            status[id] == was[id]
            for id in was
            if id not in set(consolidation.frame["members"].explode())
        )
        assert not lab.upkeep.consolidation.run(keep=2), "what is left is too few of a kind"
        for id in data.draw(st.permutations(consolidation.ids)):
            lab.restore(id)
        after = content_of(lab)
        assert after[0].head(len(kinds)).equals(before[0])
        assert after[1].equals(before[1])
