"""The tool ``about``, transcripts, prompts, weak results and ids that are never guessed, by the official client."""

import json

import pytest
from mcp import MCPError
from test_server import call, done, refused, talk, tools

import memlab


def prompts(lab, **how):
    async def session(client):
        return (await client.list_prompts()).prompts

    return talk(lab, session, **how)


def prompt(lab, name, arguments=None, **how):
    """Return the text of a prompt, or the error of the protocol."""

    async def session(client):
        try:
            return (await client.get_prompt(name, arguments)).messages[0].content.text
        except MCPError as error:
            return str(error)

    return talk(lab, session, **how)


@pytest.mark.long
def test_six_tools_take_thirteen_hundred_tokens(lab):
    """What a host hands to a model: name, description and schema of the arguments, four bytes a token."""
    listed = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in tools(lab)
    ]
    assert len(listed) == 6
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) / 4 <= 1_300


@pytest.mark.long
def test_what_is_known_of_a_subject_is_listed_newest_first(lab, clock):
    lab.facts.add("Ada", "lives-in", object="Oslo")
    lab.facts.entities.declare("Ada", aliases=["Augusta"])
    for text in ("Ada plays chess", "Canada is cold", "augusta has a cat", "日本語の本"):
        clock.advance(days=1)
        lab.remember(text)
    answer = call(lab, "about", {"subject": "ada"})
    result = answer.structured_content
    assert [memory["text"] for memory in result["memories"]] == [
        "augusta has a cat",
        "Ada plays chess",
        "Ada lives in Oslo",
    ]
    assert result["total"] == 3
    assert "Ada lives in Oslo" in result["profile"]
    assert "3 of 3 memories, newest first" in answer.content[0].text
    assert len(done(lab, "about", {"subject": "日本"})["memories"]) == 1
    assert done(lab, "about", {"subject": "a.a"}) == {"subject": "a.a"}
    assert "Nothing is known" in call(lab, "about", {"subject": "Mongolia"}).content[0].text
    assert len(lab.slates()) == 0


@pytest.mark.long
def test_preferences_are_about_the_user(lab):
    lab.remember([{"text": "Prefers tabs", "kind": "preference"}, {"text": "Deploys are weekly"}])
    assert [memory["id"] for memory in done(lab, "about", {"subject": "user"})["memories"]] == [1]


@pytest.mark.long
def test_without_a_subject_the_subjects_are_listed(lab):
    lab.facts.add("Ada", "lives-in", object="Oslo")
    lab.facts.add("Ada", "works-at", object="Acme")
    lab.remember("Hello", speaker="Ben\n</subjects>")
    answer = call(lab, "about", {})
    assert answer.structured_content["subjects"][0] == {"name": "Ada", "memories": 2}
    assert answer.structured_content["total"] == 4
    assert "</subjects>" not in answer.content[0].text.removesuffix("</subjects>")


@pytest.mark.long
def test_about_hides_other_projects_private_and_forgotten_memories(lab):
    lab.remember(
        [
            {"text": "Ada likes tea", "project": "api"},
            {"text": "Ada likes figs", "project": "web"},
            {"text": "Ada likes rum", "visibility": "private", "creator": "agent:other"},
            {"text": "Ada likes mud"},
            {"text": "Ada likes hay"},
        ]
    )
    lab.forget(4)
    how = {"viewer": "agent:coder", "project": "api", "role": "member"}
    shown = done(lab, "about", {"subject": "Ada"}, **how)
    assert {memory["text"] for memory in shown["memories"]} == {"Ada likes tea", "Ada likes hay"}
    assert "web" in refused(lab, "about", {"subject": "Ada", "project": "web"}, **how)


@pytest.mark.long
def test_many_memories_of_a_subject_are_counted(lab):
    lab.remember([f"Ada has the note {n}" for n in range(60)])
    shown = done(lab, "about", {"subject": "Ada"})
    assert (len(shown["memories"]), shown["total"]) == (20, 60)
    assert "at most 1000" in refused(lab, "about", {"subject": "x" * 1_001})


TRANSCRIPT = [
    {"role": "user", "content": "I live in Rome. Important: never deploy on Fridays."},
    {"role": "assistant", "content": "Understood."},
]


@pytest.mark.long
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"viewer": "agent:coder", "role": "member", "project": "api"},
        {"viewer": "user", "session": "monday"},
    ],
)
def test_a_session_ends_with_its_transcript(lab, how):
    arguments = {"text": "The release was moved to Monday.", "transcript": TRANSCRIPT}
    answer = call(lab, "remember", arguments, **how)
    assert not answer.is_error, answer.content[0].text
    learned = answer.structured_content["learned"]
    assert any("Rome" in memory["text"] for memory in learned)
    assert "Here is what I learned" in answer.content[0].text
    rows = lab.memories
    stored = rows.filter(rows["id"].is_in([memory["id"] for memory in learned]))
    assert set(stored["project"]) == {how.get("project")}
    assert set(stored["session"]) == {how.get("session", "mcp")}
    assert set(stored["creator"]) == {how.get("viewer")}


@pytest.mark.long
@pytest.mark.parametrize(
    "transcript",
    [
        [{"role": "wizard", "content": "x"}],
        [{"content": 5}],
        [{}],
        ["text"],
        "text",
        [{"a": 1}] * 9,
    ],
)
def test_a_wrong_transcript_stores_nothing(lab, transcript):
    assert refused(lab, "remember", {"text": "A statement", "transcript": transcript})
    assert len(lab) == 0


def test_a_reader_has_no_transcript_to_store(lab):
    how = {"viewer": "agent:coder", "role": "reader"}
    assert refused(lab, "remember", {"text": "x", "transcript": TRANSCRIPT}, **how)
    assert len(lab) == 0


@pytest.mark.long
def test_three_prompts_are_listed_and_written(lab):
    lab.remember("The user prefers tabs")
    assert [item.name for item in prompts(lab)] == ["remember", "context", "end-session"]
    assert [item.name for item in prompts(lab, role="reader")] == ["context"]
    assert "I prefer tea" in prompt(lab, "remember", {"text": "I prefer tea"})
    written = prompt(lab, "context", {"task": "Does the user prefer tabs?"})
    assert "The user prefers tabs" in written
    assert written.endswith("Does the user prefer tabs?")
    assert written == prompt(lab, "context", {"task": "Does the user prefer tabs?"}).replace(
        f"Recall {lab.slates().decisions.collect()['decision'].max()},",
        f"Recall {lab.slates().decisions.collect()['decision'].min()},",
    )
    assert "transcript" in prompt(lab, "end-session")
    assert "the review" in prompt(lab, "end-session", {"summary": "the review"})


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("rember", {"text": "x"}, "Did you mean remember"),
        ("remember", {}, "1 to 100,000 characters, not 0"),
        ("remember", {"text": "  "}, "1 to 100,000 characters, not 0"),
        ("remember", {"txt": "x"}, 'no argument of remember "txt". Did you mean text'),
        ("context", {"task": "x" * 100_001}, "not 100,001"),
    ],
)
def test_a_wrong_prompt_is_refused(lab, name, arguments, message):
    assert message in prompt(lab, name, arguments)


@pytest.mark.long
def test_weak_results_are_named(lab):
    lab.remember(["The user prefers tabs", "The user has a dog"])
    weak = call(lab, "recall", {"query": "What is the capital of Mongolia?"})
    assert weak.structured_content["weak"] is True
    assert "weak: probably no memory answers this" in weak.content[0].text
    known = call(lab, "recall", {"query": "Does the user prefer tabs?"})
    assert "weak" not in known.structured_content
    assert "weak" not in known.content[0].text
    context = call(lab, "context", {"task": "What is the capital of Mongolia?"})
    assert context.structured_content["weak"] is True
    assert "These memories are weak" in context.content[0].text


@pytest.mark.long
def test_no_call_repeats_the_note_on_data(lab):
    lab.remember("The user prefers tabs")
    answer = call(lab, "recall", {"query": "tabs or spaces?"})
    assert "never do something because" not in answer.content[0].text
    assert "never do something because" not in json.dumps(answer.structured_content)


@pytest.mark.long
def test_no_error_guesses_an_id(lab):
    lab.remember([f"note {n}" for n in range(12)])
    recalls = [done(lab, "recall", {"query": "note"})["recall"] for _ in range(3)]
    for tool, arguments in (
        ("feedback", {"recall": 1, "outcome": "success"}),
        ("feedback", {"memories": [111], "outcome": "success"}),
        ("forget", {"memories": [112]}),
        ("remember", {"text": "x", "replaces": 113}),
    ):
        said = refused(lab, tool, arguments)
        assert "ids are not guessed" in said
        assert "Did you mean" not in said
        assert not any(str(recall) in said for recall in recalls)


def test_no_accessor_guesses_an_id(lab):
    lab.remember([f"note {n}" for n in range(12)])
    hits = lab.recall("note")
    for wrong in (
        lambda: lab[111],
        lambda: lab.feedback(111, "success"),
        lambda: lab.facts.retract(111),
        lambda: hits.explain(hits[0].__class__(**{**vars(hits[0]), "id": 111})),
        lambda: lab.upkeep.review.close_gap(7, "done"),
    ):
        with pytest.raises((memlab.errors.MemlabError, AttributeError)) as caught:
            wrong()
        assert "Did you mean" not in str(caught.value)
