"""Features of the words around, of late interaction and of signs, each against a slow way to the same value."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab.embedding import load_embedder
from memlab.index import STOP_WORDS, Words
from memlab.policies import load_pack
from memlab.schema import role_of

NUMBERS = ("late", "around-lexical", "around-similarity", "names-things", "words")
FLAGS = ("says-when", "says-number", "first-person", "asks-when", "asks-how-many", "asks-you")
READS_ALL = f"""(pack terms "Reads what no other policy reads.")
(setting dense-candidates 1000) (setting lexical-candidates 1000) (setting pool 1000)
(defpolicy cut [seed] 0)
(defpolicy recall-score [speaker-role {" ".join(NUMBERS + FLAGS)}]
  (+ (if (= speaker-role "user") 1 0) {" ".join(NUMBERS)} {" ".join(f"(if {name} 1 0)" for name in FLAGS)}))"""

WORDS = ["kayak", "garages", "Lisbon", "may", "three", "2023", "my", "the", "Ann", "running", "runs", "mellow", "7pm"]
ASKED = [*WORDS, "boat", "when", "how many", "you", "harbour"]
SPEAKERS = [None, "Ann", "assistant", "User"]
TURNS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([*WORDS, "."]), max_size=7).map(" ".join).map(lambda text: text or "and"),
        st.sampled_from(SPEAKERS),
        st.sampled_from([None, "1", "2"]),
    ),
    min_size=1,
    max_size=9,
)
QUESTIONS = st.lists(st.sampled_from(ASKED), min_size=1, max_size=5).map(" ".join)


def tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def stem(word: str) -> str | None:
    (found,) = Words().stems(word) or (None,)
    return found


class Slow:
    """The features of some turns of one project, worked out turn by turn."""

    def __init__(self, turns: list[tuple[str, str | None, str | None]], question: str) -> None:
        self.turns, self.question = turns, question
        self.names = {word for _, speaker, _ in turns for word in tokens(speaker or "")}
        said = [tokens(f"{speaker}: {text}" if speaker else text) for text, speaker, _ in turns]
        self.stems = [[one for word in words if (one := stem(word))] for words in said]
        content = {}
        for word in tokens(question):
            if (one := stem(word)) is not None:
                content.setdefault(one, word)
        self.content = {one: word for one, word in content.items() if word not in self.names}

    def idf(self, one: str) -> float:
        df = sum(one in stems for stems in self.stems)
        return math.log(1 + (len(self.turns) - df + 0.5) / (df + 0.5))

    def window(self, row: int) -> list[int]:
        session = self.turns[row][2]
        inside = [other for other, turn in enumerate(self.turns) if session is not None and turn[2] == session] or [row]
        at = inside.index(row)
        return inside[max(at - 2, 0) : at + 3]

    def late(self, row: int) -> float:
        total = 0.0
        for one, word in self.content.items():
            nearest = 0.0
            for other in tokens(self.turns[row][0]):
                if other in STOP_WORDS["english"] or other in self.names:
                    continue
                a, b = load_embedder().encode([word, other]).astype(float)
                cosine = a @ b / (np.linalg.norm(a) * np.linalg.norm(b) or 1.0)
                nearest = max(nearest, 1.0 if stem(other) == one else cosine)
            total += self.idf(one) * nearest
        return total / sum(map(self.idf, self.content)) if self.content else 0.0

    def around_lexical(self, row: int) -> float:
        mean = sum(map(len, self.stems)) / len(self.stems)
        norm = 0.9 * (1 - 0.2 + 0.2 * len(self.stems[row]) / (mean or 1.0))
        counts = {one: sum(self.stems[other].count(one) for other in self.window(row)) for one in self.content}
        return sum(self.idf(one) * tf / (tf + norm) for one, tf in counts.items())

    def names_things(self, row: int) -> float:
        text = self.turns[row][0]
        found = set()
        for match in re.finditer(r"[A-Z]\w+", text):
            before = text[: match.start()].rstrip()
            if before and before[-1] not in ".!?:" and match[0].lower() not in self.names:
                found.add(match[0].lower())
        return min(len(found), 3)


def asked(turns, question):
    with memlab.open(pack=READS_ALL) as lab:
        lab.remember_many(
            [
                {"text": text, "project": "p"}
                | ({"speaker": speaker} if speaker else {})
                | ({"session": session} if session else {})
                for text, speaker, session in turns
            ],
            chain=True,
        )
        lab.remember("Another project: kayak, garages, Ann, harbour", project="q", speaker="Mellow")
        return lab.recall(question, project="p", log=False).slate


@settings(max_examples=25, deadline=None)
@given(TURNS, QUESTIONS)
def test_terms_are_what_a_slow_way_finds(turns, question):
    slate, slow = asked(turns, question), Slow(turns, question)
    rows = (slate.ids - 1).tolist()
    assert rows == list(range(len(turns)))
    for name, of in (("late", slow.late), ("around-lexical", slow.around_lexical), ("names-things", slow.names_things)):
        assert slate.numbers[name] == pytest.approx([of(row) for row in rows], abs=1e-6), name
    similarity = slate.numbers["similarity"]
    around = [np.mean(similarity[slow.window(row)]) for row in rows]
    assert slate.numbers["around-similarity"] == pytest.approx(around, abs=1e-12)
    texts = [tokens(turns[row][0]) for row in rows]
    assert slate.numbers["words"].tolist() == [len(words) for words in texts]
    assert slate.numbers["says-when"].tolist() == [bool({"may", "2023"} & set(words)) for words in texts]
    assert slate.numbers["says-number"].tolist() == [bool({"three", "2023", "7pm"} & set(words)) for words in texts]
    assert slate.numbers["first-person"].tolist() == ["my" in words for words in texts]
    assert set(slate.numbers["asks-when"].tolist()) == {question.startswith("when")}
    assert set(slate.numbers["asks-how-many"].tolist()) == {"how many" in question}
    assert set(slate.numbers["asks-you"].tolist()) == {"you" in question}
    assert slate.words["speaker-role"] == [role_of(turn[1], None) for turn in turns]


def test_late_is_the_same_in_parts_and_whole(lab):
    """What a value is does not depend on what else is in the pool: products are exact in any order."""
    turns = [f"The {word} stands in the {other}" for word in WORDS for other in WORDS]
    many = asked([(text, None, None) for text in turns], "boat harbour running")
    few = asked([(text, None, None) for text in turns[:1]] * len(turns), "boat harbour running")
    assert few.numbers["late"][0] == few.numbers["late"][-1]
    assert many.numbers["late"].max() <= 1.0


def test_a_memory_that_was_given_up_is_no_part_of_what_is_around(clock):
    with memlab.open(pack=READS_ALL, clock=clock) as lab:
        lab.remember_many([{"text": text, "session": "1"} for text in ("kayak", "tea", "milk")], chain=True)
        before = lab.recall("kayak", log=False).slate.numbers["around-lexical"]
        lab.forget(1)
        after = lab.recall("kayak", log=False).slate.numbers["around-lexical"]
    assert before[1] > 0
    assert after.tolist() == [0, 0]


def test_a_language_without_signs_shows_none():
    with memlab.open(pack=READS_ALL.replace("(defpolicy cut", '(setting language "german") (defpolicy cut')) as lab:
        lab.remember("May 2023")
        slate = lab.recall("when", log=False).slate
    assert not slate.numbers["says-when"].any()
    assert not slate.numbers["asks-when"].any()


@pytest.mark.parametrize(
    ("speaker", "creator", "role"),
    [
        ("Assistant", None, "assistant"),
        ("human", None, "user"),
        ("Ida", "agent:coder", "other"),
        (None, "agent:coder", "assistant"),
        (None, "user", "user"),
        (None, None, "other"),
        ("tool", None, "tool"),
    ],
)
def test_roles(speaker, creator, role):
    assert role_of(speaker, creator) == role


# -- the slot cut ---------------------------------------------------------------------------------------------


def test_the_cut_decides_what_is_scored():
    pack = "(pack c) (setting pool 2) (defpolicy cut [words] words) (defpolicy recall-score [seed] seed)"
    with memlab.open(pack=pack) as lab:
        lab.remember_many([{"text": text} for text in ("kayak", "kayak and tea and milk", "kayak and tea")])
        slate = lab.recall("kayak", log=False).slate
    assert slate.ids.tolist() == [2, 3]
    assert slate.policies["cut"] == load_pack(pack).policies["cut"].hash
    assert slate.cut == f"2 best by cut {slate.policies['cut'][:12]}, ties by id"


def test_unless_it_is_given_the_best_by_seed_and_received_are_scored():
    assert load_pack("actr").policies["cut"].hash != load_pack("memlab").policies["cut"].hash
    pack = load_pack("(pack c) (setting pool 3) (defpolicy cut [seed received] (+ received seed))")
    with memlab.open(pack=pack) as lab:
        lab.remember_many([{"text": f"kayak {'tea ' * number}", "session": "1"} for number in range(9)], chain=True)
        small = lab.recall("kayak", log=False).slate
        lab.policies.use(pack.sources[0].replace("pool 3", "pool 9"))
        whole = lab.recall("kayak", log=False).slate
    activation = whole.numbers["seed"] + whole.numbers["received"]
    best = sorted(range(9), key=lambda row: (-activation[row], row))[:3]
    assert small.ids.tolist() == sorted(row + 1 for row in best)


# -- words as they are written --------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from([*WORDS, "."]), max_size=6).map(" ".join), max_size=8), st.integers(0, 8))
def test_saved_in_the_middle_is_the_same(tmp_path_factory, texts, split):
    path = tmp_path_factory.mktemp("words") / "words.npz"
    speakers = [SPEAKERS[number % 4] for number in range(len(texts))]
    whole, part = Words(), Words()
    whole.append(texts, speakers)
    part.append(texts[:split], speakers[:split])
    part.save(path)
    part = Words.load(path)
    for text, speaker in zip(texts[split:], speakers[split:], strict=True):
        part.append([text], [speaker])
    one, other = whole.written, part.written
    rows = np.arange(len(texts))
    assert one.signs.tolist() == other.signs.tolist()
    assert one.counts.tolist() == other.counts.tolist() == [len(tokens(text)) for text in texts]
    for a, b in zip(one.held(rows), other.held(rows), strict=True):
        assert a.tolist() == b.tolist()
    held, _, counts = one.held(rows)
    names = iter(one.names(held))
    for text, count in zip(texts, counts.tolist(), strict=True):
        expected = dict.fromkeys(word for word in tokens(text) if word not in STOP_WORDS["english"])
        assert [next(names) for _ in range(count)] == list(expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=5), max_size=6))
def test_around_follows_sessions(batches):
    from memlab.state.columns import Names
    from memlab.state.sessions import Sessions

    contexts, sessions = Names(), Sessions()
    for batch in batches:
        contexts.append(batch)
        every = contexts.series("s").to_list()
        rows = np.arange(len(every))
        found = sessions.around(contexts, rows, 2)
        for row, name in enumerate(every):
            same = [other for other, one in enumerate(every) if one == name] if name else [row]
            at = same.index(row)
            before = [*reversed(same[:at]), -1, -1][:2]
            after = [*same[at + 1 :], -1, -1][:2]
            assert found[:, row].tolist() == [row, *before, *after]
        for code, name in enumerate(contexts.vocabulary):
            assert sessions.last(contexts, code) == max(row for row, one in enumerate(every) if one == name)
