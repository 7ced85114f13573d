"""One reader reads messages in all forms in which agents keep them, for every caller."""

import pytest

import memlab
from memlab.errors import InputError
from memlab.io.formats import parse_messages
from memlab.subjects.attribution.attribution import read_turns

CALL = {"function": {"name": "grep", "arguments": '{"pattern": "login"}'}}
FORMS = {
    "OpenAI": [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
    "Anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "name": "grep", "input": {"pattern": "login"}}],
        }
    ],
    "LangChain": [
        {
            "type": "ai",
            "data": {"content": "", "tool_calls": [{"name": "grep", "args": {"pattern": "login"}}]},
        }
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_call_of_a_tool(form):
    (message,) = parse_messages(FORMS[form])
    assert (message.role, message.text, message.calls) == ("assistant", "", ("grep",))
    answer = {"role": "assistant", "content": "In auth.py."}
    (turn,) = read_turns([{"role": "user", "content": "where?"}, *FORMS[form], answer])
    assert turn.asked == ("where?", "login")


def test_a_result_of_a_tool_counts_though_it_says_nothing():
    parts = [
        {"type": "tool_result", "content": ""},
        {"type": "tool_result", "content": "no", "is_error": True},
    ]
    result = parse_messages([{"role": "user", "content": parts}])
    assert [(item.role, item.text, item.failed, item.index) for item in result] == [
        ("tool", "", False, 0),
        ("tool", "no", True, 0),
    ]


def test_each_report_names_its_message():
    given = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "tool_result", "content": "b"}],
        },
        "c",
    ]
    assert [
        (message.role, message.text, message.index) for message in parse_messages(given, "user")
    ] == [
        ("tool", "b", 0),
        ("user", "a", 0),
        ("user", "c", 1),
    ]


def test_a_role_is_needed_where_none_is_given():
    for wrong in ("text", {"content": "x"}, {"role": None, "content": "x"}):
        with pytest.raises(memlab.MemlabError, match="essage 0"):
            parse_messages([wrong])
    assert parse_messages("text", "user")[0].role == "user"


@pytest.mark.parametrize(
    "wrong", [3, b"x", [3], [{}], [{"role": "user"}], [{"role": "user", "content": 1.5}]]
)
def test_objects_that_are_no_message(wrong):
    with pytest.raises(InputError):
        parse_messages(wrong, "user")
