"""Extraction of chats: answers with their questions, loaded chats, entities, what a session was like, feelings."""

from __future__ import annotations

import pytest

import memlab
from memlab.subjects.reading.acts import complete_answer
from memlab.subjects.reading.names import proper_names
from memlab.subjects.reading.tags import emotional_weight

TALK = [
    {"role": "user", "content": "Hi!", "at": "2026-01-01"},
    {"role": "assistant", "content": "Hello. What do you do for a living?", "at": "2026-01-01"},
    {"role": "user", "content": "Software engineer at Acme.", "at": "2026-01-02"},
    {"role": "assistant", "content": "Do you have any pets?", "at": "2026-01-02"},
    {"role": "user", "content": "No, I don't have pets. I like tea.", "at": "2026-01-03"},
]


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("What do you do?", "A nurse.", "I am a nurse."),
        ("And where are you living now?", "Oslo", "I live in Oslo"),
        ("How old are you?", "34.", "My age is 34."),
        ("Do you have any pets?", "Yes, two cats.", "I have two cats."),
        ("Are you married?", "Yes!", "I am married"),
        ("What is your favourite colour?", "Teal", "My favourite colour is Teal"),
        ("What instruments do you play?", "The cello", "I play the cello"),
    ],
)
def test_an_answer_is_completed_by_its_question(question, answer, statement):
    completed = complete_answer(question, answer)
    assert completed is not None
    assert completed.text == statement
    assert answer[completed.start : completed.stop] == answer


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do you have pets?", "No, I have none."),
        ("How was your day?", "Great!"),
        ("What do you do?", "Why do you ask?"),
        ("Where do you live?", "I'd rather not say."),
        ("Tea or coffee?", "Tea"),
    ],
)
def test_a_message_that_answers_no_question_about_oneself_completes_nothing(question, answer):
    assert complete_answer(question, answer) is None


def test_a_message_is_read_with_the_one_before_it(lab):
    extracted = lab.agents.extract(TALK)
    assert [(fact.text, fact.message) for fact in extracted.facts] == [
        ("The user is Software engineer", 2),
        ("The user works at Acme", 2),
        ("The user likes tea", 4),
    ]
    assert "correction" not in [item.kind for item in extracted]
    quoted = {fact.text: fact.span for fact in extracted.facts}
    assert (
        quoted["The user works at Acme"]
        == "Hello. What do you do for a living? Software engineer at Acme."[7:]
    )


@pytest.mark.long
def test_an_answer_that_is_observed_is_remembered_as_a_statement(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        seen = lab.agents.observe("A nurse.", before="What is your profession?")
        assert seen.memory is not None
        assert (seen.memory.text, lab.memories["context"][0]) == (
            "I am a nurse.",
            "What is your profession? A nurse.",
        )
        lab.remember("Where do you live?", kind="turn", session="s", speaker="assistant")
        assert lab.agents.observe("Rome", session="s").memory.text == "I live in Rome"
        assert (
            lab.agents.observe("No, I don't have pets", before="Do you have pets?").memory is None
        )
        assert lab.agents.admit("I'm learning Python").admitted


@pytest.mark.long
def test_messages_to_an_agent_are_its_own_and_the_fact_is_shared(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        lab.agents.commit(lab.agents.extract("I'm a nurse", agent="tutor"))
        kept = lab.memories.select("text", "kind", "visibility").rows()
        assert kept == [
            ("The user is a nurse", "personal", "project"),
            ('The user shared: "I\'m a nurse"', "observation", "private"),
        ]
        assert lab.recall("nurse", viewer="agent:coach", log=False)[0].text == "The user is a nurse"


class TestLoading:
    @pytest.mark.long
    def test_a_chat_is_loaded_with_its_facts_once(self, lab):
        loaded = lab.load(TALK, extract=True, progress=False)
        facts = lab.facts.frame()["text"].to_list()
        assert facts == [
            "The user is Software engineer",
            "The user works at Acme",
            "The user likes tea",
        ]
        assert loaded.extracted == len(lab) - len(TALK)
        again = lab.load(TALK, extract=True, progress=False)
        assert (again.extracted, lab.facts.frame().height) == (0, len(facts))
        assert lab.facts.frame(at="2026-01-02")["text"].to_list() == facts[:2]

    @pytest.mark.long
    def test_facts_of_a_chat_that_was_loaded_before_are_extracted_later(self, lab):
        assert lab.load(TALK, progress=False).extracted == 0
        assert lab.load(TALK, extract=True, progress=False).extracted > 0
        more = [*TALK, {"role": "user", "content": "I live in Rome.", "at": "2026-01-04"}]
        assert lab.load(more, extract=True, progress=False).extracted == 2
        assert lab.facts.frame().height == 4

    def test_among_several_people_i_is_the_speaker(self, lab):
        said = [
            {"speaker": "Ada", "content": "I live in Rome."},
            {"speaker": "Bob", "content": "I live in Oslo."},
        ]
        lab.load(said, extract=True, progress=False)
        assert lab.facts.frame().select("subject", "object", "status").rows() == [
            ("Ada", "Rome", "active"),
            ("Bob", "Oslo", "active"),
        ]

    def test_a_single_person_with_an_assistant_is_the_user(self, lab):
        said = [
            {"speaker": "Ada", "content": "I live in Rome."},
            {"speaker": "assistant", "content": "Nice."},
        ]
        lab.load(said, extract=True, progress=False)
        assert lab.facts.frame()["subject"].to_list() == ["user"]

    def test_an_export_describes_its_content(self, lab, tmp_path):
        lab.remember("a note")
        lab.io.export(tmp_path / "lab.jsonl")
        with pytest.raises(memlab.InputError):
            lab.load(tmp_path / "lab.jsonl", extract=True, progress=False)


class TestEntities:
    def test_types_follow_from_facts_and_a_declared_one_wins(self, lab):
        lab.facts.add("JACQ", "uses", "React")
        lab.facts.add("Sarah", "works_on", object="JACQ")
        lab.facts.add("User", "lives_in", object="Oslo")
        types = dict(lab.facts.entities.frame().select("name", "type").rows())
        assert types == {"JACQ": "project", "Sarah": "person", "User": "person", "Oslo": "place"}
        assert lab.facts.entities.declare("Oslo", type="concept").type == "concept"
        assert dict(lab.facts.entities.frame().select("name", "type").rows())["Oslo"] == "concept"

    def test_a_retracted_fact_speaks_for_no_type(self, lab):
        fact = lab.facts.add("Ada", "lives-in", object="Oslo")
        lab.facts.retract(fact)
        assert dict(lab.facts.entities.frame().select("name", "type").rows())["Oslo"] is None

    @pytest.mark.long
    def test_factgraph_finds_the_entities_of_a_plain_text_and_others_do_not(self, clock):
        for pack, names in (("factgraph", {"Sarah", "JACQ"}), ("companion", set())):
            with memlab.open(pack=pack, clock=clock) as lab:
                lab.remember("Yesterday Sarah worked on JACQ. Well, both others left.")
                assert set(lab.facts.entities.frame()["name"].to_list()) == names

    @pytest.mark.long
    def test_a_known_name_refers_to_its_entity(self, clock):
        with memlab.open(pack="factgraph", clock=clock) as lab:
            lab.facts.entities.declare("Sarah Lee", aliases=["Sarah"])
            lab.remember("We met Sarah today.")
            assert lab.facts.entities.frame().select("name", "mentions").rows() == [
                ("Sarah Lee", 1)
            ]

    @pytest.mark.long
    def test_a_purge_leaves_no_name_of_a_purged_text(self, clock):
        with memlab.open(pack="factgraph", clock=clock) as lab:
            lab.remember("We met Xanthippe today.")
            lab.purge(1)
            assert lab.facts.entities.frame().height == 0

    @pytest.mark.parametrize(
        "junk", ["Besides I think so.", "Well, yes.", "Yesterday it rained.", "Both others left."]
    )
    def test_a_capitalised_first_word_is_no_name(self, junk):
        assert proper_names(junk) == []


@pytest.mark.long
def test_a_session_has_its_dynamics_and_cues(clock):
    talk = [
        {"role": "user", "content": "Fix the failing build."},
        {"role": "tool", "name": "npm", "content": "error: failed"},
        {"role": "assistant", "content": "I pinned node to 18."},
        {"role": "user", "content": "No, that's wrong, I said node 20."},
        {"role": "assistant", "content": "The root cause was an unpinned dependency."},
        {"role": "user", "content": "Perfect, thanks! Please remember to pin everything in CI."},
    ]
    with memlab.open(pack="cascade", clock=clock) as lab:
        learned = lab.agents.end_session("monday", talk)
        result = {item.rule: item.text for item in learned.extracted}
        assert result["cue"] == "Please remember to pin everything in CI."
        assert "corrected the agent once" in result["dynamics"]
        assert result["dynamics"].endswith("it ended in success and the user was pleased")


@pytest.mark.long
def test_a_feeling_has_the_weight_of_its_words_unless_one_is_given(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        lab.remember("Ada was heartbroken", kind="feeling")
        lab.remember("Ada was heartbroken again", kind="feeling", emotional_weight=10)
        lab.remember("Ada was heartbroken as an observation", kind="observation")
        assert lab.memories["emotional_weight"].to_list() == [90.0, 10.0, 5.0]
    assert (
        emotional_weight("a bit worried")
        < emotional_weight("worried")
        < emotional_weight("very worried")
    )


@pytest.mark.long
class TestLessons:
    def test_a_lesson_is_not_known_because_its_turn_is_there(self, trigrams):
        text = "Found it: the root cause was a stale lock file in the cache folder."
        with memlab.open(embedder=trigrams) as lab:
            lab.load(
                [{"role": "user", "content": "hi"}, {"role": "assistant", "content": text}],
                session="s",
            )
            assert lab.agents.end_session("s").text
            assert lab.memories["text"].to_list().count(text) == 2  # the turn and the lesson
            lab.agents.end_session("s")
            assert lab.memories.height == 3


GROWING = [
    {"role": "user", "content": "I love chess.", "at": "2026-02-01T10:00:00"},
    {"role": "assistant", "content": "What do you do for a living?", "at": "2026-02-01T10:01:00"},
    {"role": "user", "content": "A gardener.", "at": "2026-02-01T10:02:00"},
    {"role": "user", "content": "I live in Lund.", "at": "2026-02-01T10:03:00"},
]


def with_ids(messages):
    return [
        {**message, "session": "s", "id": f"m{index}"} for index, message in enumerate(messages)
    ]


def facts_of(lab):
    return lab.facts.frame().select("text", "status").rows()


@pytest.mark.long
class TestGrowingHistory:
    @pytest.mark.parametrize("cut", [1, 2, 3])
    @pytest.mark.parametrize("again", ["whole", "rest"])
    def test_a_question_and_its_answer_in_two_loads_are_read_together(self, lab, cut, again):
        with memlab.open() as whole:
            whole.load(with_ids(GROWING), extract=True, progress=False)
            wanted = facts_of(whole)
        assert "The user is a gardener" in dict(wanted)
        lab.load(with_ids(GROWING)[:cut], extract=True, progress=False)
        lab.load(with_ids(GROWING)[cut if again == "rest" else 0 :], extract=True, progress=False)
        assert facts_of(lab) == wanted

    def test_messages_left_unread_by_a_killed_load_are_read_later(self, lab):
        lab.load(with_ids(GROWING)[:1], extract=True, progress=False)
        # as a load that was killed between its turns and its facts
        lab.load(with_ids(GROWING), progress=False)
        lab.load(with_ids(GROWING), extract=True, progress=False)
        assert "The user lives in Lund" in dict(facts_of(lab))
        held = len(lab)
        assert lab.load(with_ids(GROWING), extract=True, progress=False).extracted == 0
        assert len(lab) == held

    def test_a_fact_that_was_merged_is_not_told_again_by_a_second_load(self, clock):
        with memlab.open(pack="companion", clock=clock) as lab:
            lab.load(with_ids(GROWING[:1]), extract=True, progress=False)
            later = [
                {"role": "user", "content": "I love chess.", "at": "2026-03-01", "session": "t"}
            ]
            lab.load(later, extract=True, progress=False)
            height = lab.upkeep.review.provenance(lab.facts.frame()["id"][0]).height
            lab.load(later, extract=True, progress=False)
            assert lab.upkeep.review.provenance(lab.facts.frame()["id"][0]).height == height


MOVES = ["I live in Zagreb.", "I moved to Sofia."] * 2


@pytest.mark.long
@pytest.mark.parametrize("pack", ["companion", "cascade", "workbench", "factgraph", "memlab"])
@pytest.mark.parametrize("sessions", ["aaaa", "aabb", "abcd"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_value_that_comes_back_is_in_force_again_in_one_session_as_in_several(
    pack, sessions, count, clock
):
    said = [
        {
            "role": "user",
            "content": words,
            "at": f"2026-01-{1 + 5 * number:02d}",
            "session": sessions[number],
        }
        for number, words in enumerate(MOVES[:count])
    ]
    places = ["The user lives in Zagreb", "The user lives in Sofia"] * 2
    with memlab.open(pack=pack, clock=clock) as lab:
        lab.load(said, extract=True, progress=False)
        in_force = lab.facts.frame(status=("active", "staged", "confirmed"))["text"].to_list()
        assert in_force == [places[count - 1]]
        for number in range(count):
            held = lab.facts.frame(at=f"2026-01-{2 + 5 * number:02d}")["text"].to_list()
            assert held == [places[number]]
