"""Features of the words around, of late interaction and of signs, each against a slow way to the same value."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlab
from memlab.kernel.embedding import load_embedder
from memlab.kernel.english import STOP_WORDS
from memlab.kernel.index import Words, passages_of
from memlab.kernel.policies import load_pack
from memlab.kernel.schema import infer_role
from memlab.kernel.slates import decode, encode
from tests.displays import html_of

NUMBERS = ("late", "around-lexical", "around-similarity", "names-things", "words", "takes-over")
FLAGS = (
    *("says-when", "says-number", "first-person", "says-change", "says-others", "says-rule"),
    *("asks-when", "asks-how-many", "asks-you", "asks-now"),
)
READS_ALL = f"""(pack terms "Reads what no other policy reads.")
(setting dense-candidates 1000) (setting lexical-candidates 1000) (setting pool 1000)
(defpolicy cut [seed] 0)
(defpolicy recall-score [speaker-role {" ".join(NUMBERS + FLAGS)}]
  (+ (if (= speaker-role "user") 1 0) {" ".join(NUMBERS)} {" ".join(f"(if {name} 1 0)" for name in FLAGS)}))"""

WORDS = [
    "kayak",
    "garages",
    "Lisbon",
    "may",
    "three",
    "2023",
    "my",
    "the",
    "Ann",
    "running",
    "runs",
    "mellow",
    "7pm",
]
WORDS += ["moved", "she", "many", "prefer"]
ASKED = [
    *WORDS,
    "boat",
    "when",
    "how many",
    "how often",
    "you",
    "did you",
    "recap",
    "harbour",
    "is",
    "was",
]
SPEAKERS = [None, "Ann", "assistant", "User"]
TURNS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([*WORDS, "."]), max_size=7)
        .map(" ".join)
        .map(lambda text: text or "and"),
        st.sampled_from(SPEAKERS),
        st.sampled_from([None, "1", "2"]),
    ),
    min_size=1,
    max_size=9,
)
QUESTIONS = st.lists(st.sampled_from(ASKED), min_size=1, max_size=5).map(" ".join)


START = datetime(2025, 3, 1, tzinfo=UTC)


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
        held = {stem for stems in self.stems for stem in stems}
        self.content = {
            key: word
            for key, word in content.items()
            if word not in self.names and (key in held or word not in ("many", "much", "often"))
        }

    def idf(self, term: str) -> float:
        df = sum(term in stems for stems in self.stems)
        return math.log(1 + (len(self.turns) - df + 0.5) / (df + 0.5))

    def window(self, row: int) -> list[int]:
        session = self.turns[row][2]
        inside = [
            other
            for other, turn in enumerate(self.turns)
            if session is not None and turn[2] == session
        ] or [row]
        at = inside.index(row)
        return inside[max(at - 2, 0) : at + 3]

    def late(self, row: int) -> float:
        text = self.turns[row][0]
        return max(self.late_of(text[start:stop]) for start, stop in passages_of(text))

    def late_of(self, text: str) -> float:
        total = 0.0
        for key, word in self.content.items():
            nearest = 0.0
            for other in tokens(text):
                if other in STOP_WORDS["english"] or other in self.names:
                    continue
                a, b = load_embedder().encode([word, other]).astype(float)
                cosine = a @ b / (np.linalg.norm(a) * np.linalg.norm(b) or 1.0)
                nearest = max(nearest, 1.0 if stem(other) == key else cosine)
            total += self.idf(key) * nearest
        return total / sum(map(self.idf, self.content)) if self.content else 0.0

    def around_lexical(self, row: int) -> float:
        mean = sum(map(len, self.stems)) / len(self.stems)
        norm = 0.9 * (1 - 0.2 + 0.2 * len(self.stems[row]) / (mean or 1.0))
        counts = {
            item: sum(self.stems[other].count(item) for other in self.window(row))
            for item in self.content
        }
        return sum(self.idf(key) * tf / (tf + norm) for key, tf in counts.items())

    def takes_over(self, row: int, relevance: list[float]) -> float:
        text, speaker, session = self.turns[row]
        own = embedded(text, speaker)
        result = 0.0
        for older, (other, who, where) in enumerate(self.turns[:row]):
            if who == speaker and (where is None or where != session):
                cosine = (
                    own
                    @ (vector := embedded(other, who))
                    / (np.linalg.norm(own) * np.linalg.norm(vector) or 1.0)
                )
                near = max(load_embedder().closeness(np.array([cosine]))[0], 0.0)
                result = max(result, near * relevance[older] ** 3)
        return result

    def names_things(self, row: int) -> float:
        text = self.turns[row][0]
        unique = set()
        for match in re.finditer(r"[A-Z]\w+", text):
            before = text[: match.start()].rstrip()
            if before and before[-1] not in ".!?:" and match[0].lower() not in self.names:
                unique.add(match[0].lower())
        return min(len(unique), 3)


def embedded(text: str, speaker: str | None) -> np.ndarray:
    (found,) = load_embedder().encode([f"{speaker}: {text}" if speaker else text]).astype(float)
    return found


def scaled(values) -> np.ndarray:
    low, high = min(values), max(values)
    return np.array([(value - low) / (high - low) if high > low else 0.0 for value in values])


def recall_turns(turns, question):
    with memlab.open(pack=READS_ALL) as lab:
        lab.remember(
            [
                {"text": text, "project": "p", "at": START + timedelta(hours=index)}
                | ({"speaker": speaker} if speaker else {})
                | ({"session": session} if session else {})
                for index, (text, speaker, session) in enumerate(turns)
            ],
            chain=True,
        )
        lab.remember("Another project: kayak, garages, Ann, harbour", project="q", speaker="Mellow")
        return lab.recall(question, project="p", log=False).slate


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(TURNS, QUESTIONS)
def test_terms_are_what_a_slow_way_finds(turns, question):
    slate, slow = recall_turns(turns, question), Slow(turns, question)
    rows = (slate.ids - 1).tolist()
    assert rows == list(range(len(turns)))
    for name, of in (
        ("late", slow.late),
        ("around-lexical", slow.around_lexical),
        ("names-things", slow.names_things),
    ):
        assert slate.numbers[name] == pytest.approx([of(row) for row in rows], abs=1e-6), name
    similarity = slate.numbers["similarity"]
    around = [np.mean(similarity[slow.window(row)]) for row in rows]
    assert slate.numbers["around-similarity"] == pytest.approx(around, abs=1e-12)
    texts = [tokens(turns[row][0]) for row in rows]
    assert slate.numbers["words"].tolist() == [len(words) for words in texts]
    assert slate.numbers["says-when"].tolist() == [
        bool({"may", "2023"} & set(words)) for words in texts
    ]
    assert slate.numbers["says-number"].tolist() == [
        bool({"three", "2023", "7pm"} & set(words)) for words in texts
    ]
    assert slate.numbers["first-person"].tolist() == ["my" in words for words in texts]
    assert set(slate.numbers["asks-when"].tolist()) == {question.startswith("when")}
    assert set(slate.numbers["asks-how-many"].tolist()) == {
        "how many" in question or "how often" in question
    }
    assert set(slate.numbers["asks-you"].tolist()) == {"did you" in question or "recap" in question}
    assert set(slate.numbers["asks-now"].tolist()) == {
        bool({"is", "may"} & set(tokens(question))) and not {"was", "did"} & set(tokens(question))
    }
    assert slate.numbers["says-change"].tolist() == ["moved" in words for words in texts]
    assert slate.numbers["says-others"].tolist() == ["she" in words for words in texts]
    assert slate.numbers["says-rule"].tolist() == ["prefer" in words for words in texts]
    relevance = ((scaled(slate.numbers["late"]) + scaled(similarity)) / 2).tolist()
    taken = [slow.takes_over(row, relevance) for row in rows]
    assert slate.numbers["takes-over"] == pytest.approx(taken, abs=1e-9)
    assert slate.words["speaker-role"] == [infer_role(turn[1], None) for turn in turns]


@pytest.mark.long
@settings(deadline=None, max_examples=12)
@given(TURNS, QUESTIONS)
def test_late_of_a_long_text_is_that_of_its_best_passage(turns, question):
    with pytest.MonkeyPatch.context() as patch:
        for module in ("_tokens", "_postings"):
            patch.setattr(f"memlab.kernel.index.{module}.LONG", 2)
        patch.setattr("memlab.kernel.index._tokens._WORDS", 2)
        slate, slow = recall_turns(turns, question), Slow(turns, question)
        assert slate.numbers["late"] == pytest.approx(
            [slow.late(row) for row in range(len(turns))], abs=1e-6
        )


@pytest.mark.long
def test_late_is_the_same_in_parts_and_whole(lab):
    """What a value is does not depend on what else is in the pool: products are exact in any order."""
    turns = [f"The {word} is in the {other}" for word in WORDS for other in WORDS]
    many = recall_turns([(text, None, None) for text in turns], "boat harbour running")
    few = recall_turns(
        [(text, None, None) for text in turns[:1]] * len(turns), "boat harbour running"
    )
    assert few.numbers["late"][0] == few.numbers["late"][-1]
    assert many.numbers["late"].max() <= 1.0


def test_a_memory_that_was_given_up_is_no_part_of_what_is_around(clock):
    with memlab.open(pack=READS_ALL, clock=clock) as lab:
        lab.remember(
            [{"text": text, "session": "1"} for text in ("kayak", "tea", "milk")], chain=True
        )
        before = lab.recall("kayak", log=False).slate.numbers["around-lexical"]
        lab.forget(1)
        after = lab.recall("kayak", log=False).slate.numbers["around-lexical"]
    assert before[1] > 0
    assert after.tolist() == [0, 0]


def test_a_language_without_signs_shows_none():
    with memlab.open(
        pack=READS_ALL.replace("(defpolicy cut", '(setting language "german") (defpolicy cut')
    ) as lab:
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
    assert infer_role(speaker, creator) == role


# -- the slot cut ---------------------------------------------------------------------------------------------


def test_the_cut_decides_what_is_scored():
    pack = "(pack c) (setting pool 2) (defpolicy cut [words] words) (defpolicy recall-score [seed] seed)"
    with memlab.open(pack=pack) as lab:
        lab.remember(
            [{"text": text} for text in ("kayak", "kayak and tea and milk", "kayak and tea")]
        )
        slate = lab.recall("kayak", log=False).slate
    assert slate.ids.tolist() == [2, 3]
    assert slate.policies["cut"] == load_pack(pack).policies["cut"].hash
    assert slate.cut == f"2 best by cut {slate.policies['cut'][:12]}, ties by id"


def test_unless_it_is_given_the_best_by_seed_and_received_are_scored():
    assert load_pack("actr").policies["cut"].hash != load_pack("memlab").policies["cut"].hash
    pack = load_pack("(pack c) (setting pool 3) (defpolicy cut [seed received] (+ received seed))")
    with memlab.open(pack=pack) as lab:
        lab.remember(
            [{"text": f"kayak {'tea ' * number}", "session": "1"} for number in range(9)],
            chain=True,
        )
        small = lab.recall("kayak", log=False).slate
        lab.policies.use(pack.sources[0].replace("pool 3", "pool 9"))
        whole = lab.recall("kayak", log=False).slate
    activation = whole.numbers["seed"] + whole.numbers["received"]
    best = sorted(range(9), key=lambda row: (-activation[row], row))[:3]
    assert small.ids.tolist() == sorted(row + 1 for row in best)


@pytest.mark.long
def test_a_word_that_only_asks_is_not_missed():
    """No text has "much", and rents are known all the same; a query about nothing is not known."""
    with memlab.open() as lab:
        lab.remember([{"text": "Rent is 950 euros"}, {"text": "The rent went up to 1010 euros"}])
        rent = lab.recall("How much is the rent?").known
        assert rent > lab.recall("How many dogs does Ada have?").known + 0.05


# -- words as they are written --------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([*WORDS, "."]), max_size=6).map(" ".join), max_size=8),
    st.integers(0, 8),
)
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
    for a, b in zip(one.forms_of(rows), other.forms_of(rows), strict=True):
        assert a.tolist() == b.tolist()
    held, _, counts = one.forms_of(rows)
    names = iter(one.names(held))
    for text, count in zip(texts, counts.tolist(), strict=True):
        expected = dict.fromkeys(word for word in tokens(text) if word not in STOP_WORDS["english"])
        assert [next(names) for _ in range(count)] == list(expected)


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from([None, "a", "b", "c"]), max_size=5), max_size=6))
def test_around_follows_sessions(batches):
    from memlab.kernel.state.columns import Names, Sessions

    contexts, sessions = Names(), Sessions()
    for batch in batches:
        contexts.append(batch)
        every = contexts.series("s").to_list()
        rows = np.arange(len(every))
        result = sessions.around(contexts, rows, 2)
        for row, name in enumerate(every):
            same = [other for other, item in enumerate(every) if item == name] if name else [row]
            at = same.index(row)
            before = [*reversed(same[:at]), -1, -1][:2]
            after = [*same[at + 1 :], -1, -1][:2]
            assert result[:, row].tolist() == [row, *before, *after]
        for code, name in enumerate(contexts.vocabulary):
            assert sessions.last(contexts, code) == max(
                row for row, item in enumerate(every) if item == name
            )


# -- replaced statements, and the chance of an answer --------------------------------------------------------------


def test_the_later_statement_leads_where_the_question_asks_what_holds():
    with memlab.open() as lab:
        for day, text in enumerate(
            (
                "The gateway timeout is five seconds.",
                "I like tea.",
                "We changed the gateway timeout to twenty seconds.",
            )
        ):
            lab.remember(text, at=START + timedelta(days=day), linking="off")
        lead = {}
        for word in ("is", "was"):
            hits = lab.recall(f"What {word} the gateway timeout?", log=False)
            assert [hit.id for hit in hits][:2] == [3, 1]
            lead[word] = hits[0].score - hits[1].score
        assert lead["is"] > lead["was"] + 0.1


@pytest.mark.long
def test_a_correction_ranks_above_the_statement_it_corrects_for_any_query():
    lead = {}
    for kind in ("fact", "correction"):
        with memlab.open() as lab:
            lab.remember("The gateway timeout is five seconds.", at=START)
            lab.remember("The timeout has twenty of them.", kind=kind, at=START + timedelta(days=1))
            lab.remember("I like tea.", at=START)
            scores = {hit.id: hit.score for hit in lab.recall("Gateway timeout?", log=False)}
            lead[kind] = scores[2] - scores[1]
    assert lead["correction"] > lead["fact"] + 0.1


def test_an_old_statement_without_replacement_loses_nothing():
    with memlab.open() as lab:
        for day, text in enumerate(
            ("The boiler is in the cellar.", "I like tea.", "My bicycle is red.")
        ):
            lab.remember(text, at=START + timedelta(days=day))
        slate = lab.recall("Where is the boiler?", log=False).slate
        assert slate.numbers["takes-over"][0] == 0
        assert lab.recall("Where is the boiler?", log=False)[0].id == 1


@pytest.mark.long
def test_a_pack_says_what_is_known_and_shows_fewer_below_its_floor():
    for value, count in ((0.4, 1), (0.6, 3)):
        pack = (
            '(pack knows "Says how sure it is.") (setting known-floor 0.5) (setting unknown-limit 1) '
            f"(setting probe-rate 0) (defpolicy known [score] (+ (* 0 (slate-max score)) {value}))"
        )
        with memlab.open(pack=pack) as lab:
            for text in ("one cat", "two cats", "three cats"):
                lab.remember(text)
            hits = lab.recall("cats")
            assert hits.known == pytest.approx(value)
            assert len(hits) == count
            assert f"{value:.0%} likely that one of these answers the question" in repr(hits)
            assert f"{value:.0%} likely that one of these answers the question" in html_of(hits)
            assert hits.slate.policies["known"] == lab.policies["known"].hash
            assert lab.slates().decisions.collect()["known"].to_list() == [hits.known]
        assert decode(encode(hits.slate)).known == hits.known


@pytest.mark.long
def test_a_recall_score_of_its_own_says_nothing_of_what_is_known():
    assert load_pack("memlab").policies["known"].inputs
    own = load_pack("(pack own) (defpolicy recall-score [similarity] similarity)")
    assert not own.policies["known"].inputs
    with memlab.open(pack="(pack own) (defpolicy recall-score [similarity] similarity)") as lab:
        assert lab.recall("cats").known is None
        assert lab.slates().decisions.collect()["known"].to_list() == [None]
        lab.remember("one cat")
        hits = lab.recall("cats")
        assert hits.known is None
        assert "known" not in repr(hits)


def test_nothing_is_known_of_nothing():
    with memlab.open() as lab:
        assert lab.recall("cats").known == 0.0


@pytest.mark.long
def test_a_question_of_something_else_is_less_known():
    with memlab.open() as lab:
        for text in ("The cat sleeps.", "I indent with tabs, always.", "My bicycle is red."):
            lab.remember(text)
        assert lab.recall("Where is my bicycle?", log=False).known > 0.9
        assert lab.recall("Who won the election in Portugal?", log=False).known < 0.4


@pytest.mark.long
def test_the_chance_of_an_answer_is_shown_only_under_its_calibrated_score():
    with memlab.open() as lab:
        lab.remember("I keep bees on the roof")
        ask = lambda: lab.recall("who keeps bees?", log=False)  # noqa: E731
        assert ask().known is not None
        calibrated = lab.policies["known"]
        lab.policies.install("recall-score", "(fn [similarity] similarity)")
        assert ask().known is None
        for shown in (repr(ask()), html_of(ask())):
            assert "likely" not in shown
            assert (
                "known is not calibrated for this recall-score: lab.policies.calibrate()" in shown
            )
        lab.policies.install("known", calibrated, reason="calibrated again")
        assert ask().known is not None, "who installs another score installs what is known of it"
        lab.policies.rollback("recall-score")
        lab.policies.install("known", calibrated)
        assert ask().known is not None


def test_a_rollback_of_the_score_tells_again_what_is_known():
    with memlab.open() as lab:
        lab.remember("I keep bees on the roof")
        lab.policies.install("recall-score", "(fn [similarity] similarity)")
        lab.policies.rollback("recall-score")
        assert lab.recall("who keeps bees?", log=False).known is not None
