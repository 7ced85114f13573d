"""Facts extracted from messages: assertion, owner and position; and no text exceeds the limits."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import memlab
from memlab.io.formats import parse_messages
from memlab.subjects.extraction.learning import find_lessons
from memlab.subjects.extraction.proposing import Scope
from memlab.subjects.extraction.reading import read_facts
from memlab.subjects.reading.clauses import asserted

LABELLED = [
    Path(__file__).parents[2] / "experiments" / name
    for name in ("messages.jsonl", "properties.jsonl")
]
PLAIN = [
    ("I live in Rome and I work at Acme", [("user", "lives-in", "Rome"), ("user", "works-at", "Acme")]),
    ("I'm now living in Graz", [("user", "lives-in", "Graz")]),
    ("I like jazz, blues and soul", [("user", "likes", "jazz, blues and soul")]),
    ("Dr. Okafor speaks Igbo.", [("Dr. Okafor", "speaks", "Igbo")]),
    ("My sister is ill. She lives in Oslo.", [("user's sister", "lives-in", "Oslo")]),
    ("I use my own server at Hetzner", []),
    ("We moved to Berlin on March 3, 2024", [("team", "lives-in", "Berlin")]),
    ("I play chess with my dad", [("user", "plays", "chess")]),
    ("My favourite teacher is my aunt", [("user", "favourite-teacher", "their aunt")]),
    ("My parents' house is in Leeds", [("user's parents", "house", "in Leeds")]),
    ("James' brother lives in Oslo", [("James's brother", "lives-in", "Oslo")]),
    ("Our standup is at 9:30.", [("team", "standup", "at 9:30")]),
    ("The API\u2019s port is 80 and its host is web2", [("API", "port", "80")]),
    ("The logs are sent to S3", [("logs", "is-sent-to", "S3")]),
    ("Ada's mother is Greek", []),
    ("The release is planned to go well", []),
    ("Our team is in Berlin this week", []),
]  # fmt: skip


def triples(text, role="user"):
    return [(fact.subject, fact.predicate, fact.value) for fact in read_facts(text, role)]


@pytest.mark.parametrize(("text", "facts"), PLAIN)
def test_explicit_statements_are_extracted(text, facts):
    assert triples(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "If I lived in Rome, I would work at Acme",
        "Do I live in Rome?",
        "I don't live in Rome",
        "She said: I live in Rome",
        'Translate "I live in Rome"',
        "Translate the following.\nI live in Rome.",
        "```\nI live in Rome\n```",
        "> I live in Rome",
        "Tom says I live in Rome",
        "I used to live in Rome",
        "I might live in Rome",
        "I live in Rome, don't I?",
        "I live in Rome, just kidding",
        "Imagine I live in Rome",
    ],
)
def test_hypothetical_statements_give_no_facts(text):
    assert triples(text) == []


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_only_the_user_refers_to_the_user_as_i(role):
    assert triples("I am a nurse, I live in Rome and my sister lives in Oslo.", role) == []


def test_an_assistant_may_tell_of_the_user():
    assert triples("The user lives in Utrecht.", "assistant") == [("user", "lives-in", "Utrecht")]


@pytest.mark.parametrize("labelled", LABELLED, ids=lambda path: path.stem)
def test_the_labelled_messages_for_development(labelled):
    rows = [json.loads(line) for line in labelled.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["split"] == "development"]
    pairs = [
        (set(triples(row["text"], row["role"])), set(map(tuple, row["facts"]))) for row in rows
    ]
    right = sum(len(a & b) for a, b in pairs)
    assert right >= 0.9 * sum(len(b) for _, b in pairs)
    assert right >= 0.95 * sum(len(a) for a, _ in pairs)


WORDS = """I we my sister Ada is am live lives in Rome , . ? ; : ( " ' ` and but if says I'm not the a nurse 34
years old favourite name call me user like to from Ada's port of are kept at number > ``` \u00e9 \u0130 \u2019 you've"""
TALK = st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=40).map(" ".join)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.text(max_size=200), TALK), st.sampled_from(["user", "assistant", "system", "tool"])
)
@example("THE IS 0", "user")  # an article, and no thing
def test_no_text_raises_and_every_fact_has_its_position(text, role):
    for fact in read_facts(text, role):
        assert 0 <= fact.start < fact.stop <= len(text)
        assert fact.value
        assert fact.subject
        assert 0 < fact.confidence < 1
    for clause in asserted(text):
        assert 0 <= clause.start <= clause.stop <= len(text)
    find_lessons(parse_messages(text, role), Scope(), budget=2_000, open_words=False)


@pytest.mark.long
@pytest.mark.parametrize(
    "unit",
    ["I live in ", "my sister ", "and ", ", ", '"', "'", "```", "If ", "says ", "I am a ", "really ", "(", ". ", "> "],
)  # fmt: skip
def test_time_is_in_proportion_to_the_text(unit):
    begun = time.process_time()
    read_facts(unit * (20_000 // len(unit)))
    find_lessons(
        parse_messages(unit * (20_000 // len(unit)), "user"),
        Scope(),
        budget=2_000,
        open_words=False,
    )
    assert time.process_time() - begun < 2.0
    begun = time.process_time()
    read_facts(unit * (900_000 // len(unit)))
    assert time.process_time() - begun < 2.0


@pytest.mark.parametrize(
    "text",
    [
        "I don't eat peanuts",
        "I drive a Volvo",
        "I have a dog",
        "My favourite colour is blue",
        "I am married to Ines",
    ],
)
def test_shared_information_is_stored_in_its_own_words(lab, text):
    assert f'The user shared: "{text}"' in [
        memory.text.replace('."', '"') for memory in lab.agents.extract(f"{text}.").memories
    ]


class TestStaged:
    def test_nothing_is_stored_until_it_is_committed(self, lab):
        extracted = lab.agents.extract("I live in Rome and I work at Acme")
        assert len(lab) == 0
        assert extracted.facts.frame.select("subject", "predicate", "object").rows() == [
            ("user", "lives-in", "Rome"),
            ("user", "works-at", "Acme"),
        ]
        assert [memory.text for memory in extracted.memories] == [
            'The user shared: "I live in Rome and I work at Acme"'
        ]
        lab.agents.commit(extracted, only=[1])
        assert lab.facts.frame().select("predicate", "object").rows() == [("works-at", "Acme")]

    def test_each_says_where_it_comes_from(self, lab):
        text = "Hello! I live in Rome."
        fact = lab.agents.extract(["hm", text])[0]
        assert (fact.message, text[fact.start : fact.stop], fact.span) == (
            1,
            "I live in Rome.",
            "I live in Rome.",
        )
        lab.agents.commit(lab.agents.extract(text).facts)
        row = lab.memories.row(0, named=True)
        assert (row["provenance"], row["context"]) == ("user-stated", "I live in Rome.")
        assert row["reason"] == "extracted by the rule lives-in"

    def test_its_operations_run_as_they_are_read_and_as_they_are_edited(self, lab):
        extracted = lab.agents.extract('I live in Rome. My dog Rex plays the "piano".')
        lab.upkeep.operations.run(extracted.operations.replace("Rome", "Oslo"))
        assert "Oslo" in lab.facts.frame()["object"].to_list()
        assert len(lab) == len(extracted)

    def test_a_secret_is_redacted_and_a_batch_is_one_event(self, lab):
        key = "AKIA" + "Q3EGSIBUKDA7LMNP"
        before = lab.log.height
        lab.agents.commit(lab.agents.extract(f"Yesterday I found {key} in the log. I like tea."))
        assert lab.log.height == before + 1
        assert not lab.memories["text"].str.contains(key).any()

    def test_in_a_conversation_of_several_i_is_the_speaker(self, lab):
        facts = lab.agents.extract(
            [{"speaker": "Caroline", "content": "I live in Rome and my sister lives in Oslo"}]
        ).facts
        assert facts.frame["subject"].to_list() == ["Caroline", "Caroline's sister"]

    def test_parts_and_calls_of_both_forms_of_messages(self):
        openai = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"function": {"name": "grep"}}],
        }
        parts = [
            {"type": "tool_result", "content": "no", "is_error": True},
            {"type": "text", "text": "I like tea"},
        ]
        calls, result, said = parse_messages([openai, {"role": "user", "content": parts}], "user")
        assert (calls.calls, result.role, result.failed, said.text) == (
            ("grep",),
            "tool",
            True,
            "I like tea",
        )

    @pytest.mark.parametrize(
        "wrong", [3, [3], [{"role": "king", "content": "x"}], [{}], [{"content": [1]}]]
    )
    def test_an_invalid_message_is_refused(self, lab, wrong):
        with pytest.raises(memlab.MemlabError):
            lab.agents.extract(wrong)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I moved to Cardiff in May.", ("user", "lives-in", "Cardiff")),
        ("We live in Winter Park since 2019.", ("user", "lives-in", "Winter Park")),
        ("I live in Fall River.", ("user", "lives-in", "Fall River")),
        ("I started at Siemens in March 2026.", ("user", "works-at", "Siemens")),
        ("I work at Monday.com.", ("user", "works-at", "Monday.com")),
        ("My new boss is Lena.", ("user", "boss", "Lena")),
        ("My boss is Karl Huber.", ("user", "boss", "Karl Huber")),
        ("My sister is French.", ("user's sister", "is", "French")),
        ("We use tabs.", ("team", "uses", "tabs")),
        ("We have two kids.", ("user", "has", "two kids")),
    ],
)
def test_a_place_has_no_date_and_we_are_a_team_only_at_work(text, fact):
    with memlab.open() as lab:
        rows = [fact.row for fact in lab.agents.extract(text).facts]
    assert [
        (row["subject"], row["predicate"], row.get("value") or row.get("object")) for row in rows
    ] == [fact]
