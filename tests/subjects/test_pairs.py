"""Pairs of a new memory and an old one: who is compared with whom, and what is seen of the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from embedders import letters
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.kernel.embedding import load_embedder
from memlab.kernel.language import compile_policy
from memlab.kernel.policies import SLOTS
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.state import State
from memlab.kernel.verbs.core import Core
from memlab.subjects.linking.candidates import Candidates, PairedState, Scopes, find_candidates
from memlab.subjects.linking.linking import Comparing
from memlab.subjects.linking.pairs import Pairs
from memlab.subjects.reading.claims import Statement
from memlab.subjects.reading.comparison import compare, read_text

TRIGRAMS = load_embedder(letters)
OLD_WORDS, NEW_WORDS = (
    st.lists(st.sampled_from(words), min_size=1, max_size=6).map(" ".join)
    for words in (
        ["tabs", "not", "spaces", "never", "now", "we"],
        ["tabs", "no", "longer", "spaces", "use", "instead"],
    )
)


def joined(lab: memlab.Lab, rows: list[dict[str, Any]]) -> tuple[PairedState, np.ndarray]:
    """Return the pairs of a lab's memories with these rows, which are not stored."""
    state, now = lab.io.store.state, lab.io.store.clock()
    texts = [row["text"] for row in rows]
    names = {name for row in rows for name in row} - {"text"}
    columns = {name: [row.get(name) for row in rows] for name in names}
    if "kind" in columns:
        columns["kind"] = [kind or "fact" for kind in columns["kind"]]
    if "scope" in columns:
        columns["scope"] = [scope or "project" for scope in columns["scope"]]
    if "visibility" in columns:
        columns["visibility"] = [word or "project" for word in columns["visibility"]]
    fresh = State.from_rows(columns, texts, TRIGRAMS.encode(texts), at=now, like=state)
    return PairedState(state, lab.policies.pack, now, fresh=fresh), len(state) + np.arange(
        len(rows)
    )


def met(lab: memlab.Lab, rows: list[dict[str, Any]], *, count: int = 3) -> Candidates:
    joint, new = joined(lab, rows)
    return find_candidates(
        joint, new, Scopes(joint, new), Comparing(Core(lab.io.store, 0))._populate, count=count
    )


def ids(candidates: Candidates, row: int) -> list[int]:
    """Return the ids that one new row is compared with, nearest first."""
    return (candidates.old[candidates.new == row] + 1).tolist()


class TestCandidates:
    def test_the_nearest_first(self, lab: memlab.Lab) -> None:
        lab.remember(
            [
                "goats by the sea",
                "the bakery opens at six",
                "goats by the lake",
                "nothing of the sort",
            ]
        )
        result = met(lab, [{"text": "goats by the sea"}], count=2)
        assert ids(result, 4) == [1, 3]
        assert result.rank.tolist() == [1, 2]
        assert result.similarity[0] == 1

    def test_earlier_rows_of_the_same_batch_are_candidates(self, lab: memlab.Lab) -> None:
        result = met(lab, [{"text": "goats"}, {"text": "goats"}, {"text": "goats"}])
        assert [ids(result, row) for row in range(3)] == [[], [1], [1, 2]]

    def test_projects_branches_sessions_and_private_notes_are_apart(self, lab: memlab.Lab) -> None:
        same = {"text": "goats by the sea"}
        lab.remember(
            [
                {**same, "project": "a"},
                {**same, "project": "b"},
                same,
                {**same, "project": "a", "branch": "x"},
                {**same, "project": "a", "scope": "session", "session": "s"},
                {**same, "project": "a", "visibility": "private", "creator": "user"},
                {**same, "project": "a", "kind": "turn"},
            ]
        )
        lab.forget(lab.remember(**same, project="a"))

        def compared(**fields: Any) -> set[int]:
            return set(ids(met(lab, [{**same, **fields}], count=9), len(lab)))

        assert compared(project="a", creator="agent:coder") == {1, 3, 4}
        assert compared(project="a", creator="user") == {1, 3, 4}, (
            "what all see says nothing of what one keeps private"
        )
        assert compared(project="a", visibility="private", creator="user") == {1, 3, 4, 6}
        assert compared(project="a", branch="y", creator="agent:coder") == {1, 3}
        assert compared(project="a", scope="session", session="s", creator="agent:coder") == {
            1,
            3,
            4,
            5,
        }
        assert compared(project="b", creator="agent:coder") == {2, 3}
        assert compared(creator="agent:coder") == {3}, (
            "what holds everywhere says nothing of one project"
        )

    def test_turns_do_not_crowd_out_what_was_learned(self, lab: memlab.Lab) -> None:
        lab.remember(
            [{"text": "goats by the sea", "kind": "turn"}] * 12 + [{"text": "goats by the lake"}]
        )
        assert ids(met(lab, [{"text": "goats by the sea"}], count=2), 13) == [13]

    def test_a_fact_meets_all_with_its_subject_and_predicate_however_far(
        self, lab: memlab.Lab
    ) -> None:
        ada = {"subject": "Ada", "predicate": "lives-in"}
        lab.remember(
            [
                {"text": "zzzz qqqq", **ada, "value": "Rome"},
                {"text": "xxxx wwww", **ada, "value": "Oslo"},
                {"text": "uuuu vvvv", "subject": "Ada", "predicate": "knows", "value": "Ben"},
                {
                    "text": "Ada lives in Bonn",
                    "subject": "Ben",
                    "predicate": "lives-in",
                    "value": "Bonn",
                },
            ]
        )
        result = met(lab, [{"text": "Ada lives in Bonn", **ada, "value": "Bonn"}], count=1)
        assert {1, 2, 4} <= set(ids(result, 4))
        assert ids(result, 4)[0] == 4
        assert len(set(ids(result, 4))) == len(ids(result, 4))

    @pytest.mark.long
    @given(st.data())
    def test_single_rows_and_blocks_equal_a_slow_count(self, data: st.DataObject) -> None:
        words = st.sampled_from(["goat", "sea", "bakery", "tabs", "spaces"])
        texts = st.lists(words, min_size=1, max_size=3).map(" ".join)
        row = st.fixed_dictionaries(
            {
                "text": texts,
                "project": st.sampled_from(["a", None]),
                "branch": st.sampled_from(["x", None]),
            }
        )
        old, new = (
            data.draw(st.lists(row, max_size=8)),
            data.draw(st.lists(row, min_size=1, max_size=9)),
        )
        count = data.draw(st.integers(1, 4))
        with memlab.open(embedder=TRIGRAMS) as lab:
            lab.remember(old)
            result = met(lab, new, count=count)
            joint, rows = joined(lab, new)
            vectors = np.concatenate(
                [lab.io.store.state.vectors.take(), joint.fresh.vectors.take()]
            )  # type: ignore[union-attr]
        everyone = [*old, *new]
        for index, mine in enumerate(new):
            row_ = len(old) + index
            seen = []
            for other, theirs in enumerate(everyone[:row_]):
                if other < len(old):
                    near = theirs["project"] == mine["project"] or (
                        mine["project"] and theirs["project"] is None
                    )
                    nowhere = mine["project"] is None and all(
                        item["project"] is None for item in old
                    )
                    near = near or nowhere
                    near = near and (
                        mine["branch"] is None or theirs["branch"] in (mine["branch"], None)
                    )
                else:
                    near = (theirs["project"], theirs["branch"]) == (
                        mine["project"],
                        mine["branch"],
                    )
                if near:
                    one, two = vectors[row_].astype(float), vectors[other].astype(float)
                    norm = np.sqrt((one @ one) * (two @ two))
                    seen.append((-(one @ two) / norm if norm else 0.0, other))
            expected = [other for _, other in sorted(seen)[:count]]
            assert (result.old[result.new == rows[index]]).tolist() == expected


class TestFeatures:
    def pairs(self, lab: memlab.Lab, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Pairs:
        lab.remember(old)
        joint, rows = joined(lab, new)
        first, second = (
            places.ravel()
            for places in np.meshgrid(range(len(new)), range(len(old)), indexing="ij")
        )
        cosine = np.linspace(0.1, 0.9, len(first))
        known = joint.side(np.arange(len(old)))
        return Pairs(
            joint.side(rows),
            known,
            first,
            second,
            cosine,
            cosine,
            np.ones(len(first), dtype=np.int64),
        )

    def test_the_features_of_a_pair(self, lab: memlab.Lab) -> None:
        lives = {"predicate": "lives-in"}
        pairs = self.pairs(
            lab,
            [
                {
                    "text": "Ada lives in Rome",
                    "subject": "ada",
                    **lives,
                    "object": "Rome",
                    "session": "1",
                },
                {"text": "The port is 8080", "speaker": "Ben", "kind": "gotcha"},
            ],
            [
                {
                    "text": "Ada lives in Rome",
                    "subject": "Ada",
                    **lives,
                    "value": "rome",
                    "session": "1",
                },
            ],
        )
        assert pairs["pair/same-subject"].tolist() == [True, None]
        assert pairs["pair/same-predicate"].tolist() == [True, None]
        assert pairs["pair/same-value"].tolist() == [True, None]
        assert pairs["pair/single-valued"].tolist() == [True, True]
        assert pairs["pair/same-session"].tolist() == [True, False]
        assert pairs["pair/same-speaker"].tolist() == [True, False]
        assert pairs["pair/same-kind"].tolist() == [True, False]
        assert pairs["pair/same-numbers"].tolist() == [True, False]
        assert pairs["pair/overlap"].tolist() == [1, 0]
        assert pairs["pair/days-apart"].tolist() == [0, 0]
        assert pairs["new/tags"].tolist() == [(), ()]

    def test_every_declared_input_has_a_value(self, lab: memlab.Lab) -> None:
        pairs = self.pairs(lab, [{"text": "one two"}, {"text": "three"}], [{"text": "one two"}])
        for name in SLOTS["link"].signature.inputs:
            assert len(pairs[name]) == 2, name

    @pytest.mark.parametrize(
        "body",
        [
            '(if (has new/tags "x") "duplicate" "none")',
            '(if (> (overlap new/tags old/tags) 0) "similar" "none")',
            '(if (null? pair/same-subject) "related" "none")',
            '(if (null? new/stability) "related" "none")',
            '"none"',
        ],
    )
    def test_any_policy_can_be_asked(self, lab: memlab.Lab, body: str) -> None:
        names = "new/tags old/tags pair/same-subject new/stability"
        policy = compile_policy(f"(fn [{names}] {body})", SLOTS["link"].signature)
        pairs = self.pairs(
            lab, [{"text": "a", "tags": ["x"]}], [{"text": "b", "tags": ["x", "y"]}, {"text": "c"}]
        )
        assert len(pairs.ask(policy)) == 2

    @pytest.mark.long
    @given(OLD_WORDS, NEW_WORDS)
    def test_said_by_pairs_is_said_by_texts(self, old: str, new: str) -> None:
        with memlab.open(embedder=TRIGRAMS) as lab:
            pairs = self.pairs(lab, [{"text": old}, {"text": new}], [{"text": new}])
        said = [
            compare(read_text(new), read_text(text), same_speaker=True, user_speaks=True)
            for text in (old, new)
        ]
        assert pairs["pair/negates"].tolist() == [verdict.denies for verdict in said]
        assert pairs["pair/update-words"].tolist() == [verdict.changes for verdict in said]
        # a pair says no more than its words: what states nothing denies and changes nothing
        one, two = Statement(old), Statement(new)
        assert not pairs["pair/negates"][0] or two.denies(one) or one.denies(two)
        assert not pairs["pair/update-words"][0] or two.updates(one)
        assert not pairs["pair/update-words"][1], "said again, nothing changes"


@pytest.mark.parametrize("chain", [False, True])
def test_a_chain_says_whether_the_new_one_answers(lab: memlab.Lab, chain: bool) -> None:
    """The edge from the turn before is not there yet, and counts."""
    lab.remember("Where do goats live?", session="1")
    lab.policies.install(
        "link", '(fn [new/answers] (if new/answers "similar" "none"))', reason="what answers"
    )
    lab.remember("By the sea.", session="1", chain=chain, linking="now")
    assert ("similar-to" in lab.edges["relation"].to_list()) is chain


def test_inactive_memories_are_no_candidates(lab: memlab.Lab) -> None:
    first = lab.remember("goats by the sea")
    assert "superseded" not in RECALLABLE
    lab.forget(first)
    assert len(met(lab, [{"text": "goats by the sea"}])) == 0
