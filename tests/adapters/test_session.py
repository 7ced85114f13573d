"""OpenAI Agents' Session on a lab: history in order, as it was given."""

import asyncio

import pytest
from embedders import letters

import memlab
from memlab.io.adapters import LabSession
from memlab.kernel.embedding import load_embedder

ITEMS = [
    {"role": "user", "content": "What is the weather in Oslo?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "gAAAAABo" + "xY9z" * 40,
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city": "Oslo"}',
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "Snow, -3°"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "It snows.", "annotations": [], "logprobs": []}
        ],
    },
]


def opened(path=None):
    return memlab.open(path, embedder=load_embedder(letters, name="letters"))


@pytest.mark.long
def test_items_come_back_in_order_as_they_were(tmp_path):
    with opened(tmp_path / "lab") as lab:
        session = LabSession("ada-1", lab)
        asyncio.run(session.add_items(ITEMS[:2]))
        asyncio.run(session.add_items(ITEMS[2:]))
        asyncio.run(session.add_items([]))
    with opened(tmp_path / "lab") as lab:
        session = LabSession("ada-1", lab)
        assert asyncio.run(session.get_items()) == ITEMS
        assert asyncio.run(session.get_items(2)) == ITEMS[-2:]
        assert asyncio.run(session.get_items(0)) == []
        assert asyncio.run(LabSession("ada-2", lab).get_items()) == []
        assert lab.memories["speaker"].to_list() == [
            "user",
            "assistant",
            "assistant",
            "tool",
            "assistant",
        ]
        assert lab.memories["text"].to_list()[2:] == [
            'weather({"city": "Oslo"})',
            "Snow, -3°",
            "It snows.",
        ]
        assert "Oslo" in lab.recall("the weather in Oslo", session="ada-1")[0].text
        assert "reasoning" not in [hit.text for hit in lab.recall("reasoning", limit=9)]


@pytest.mark.long
def test_pop_and_clear_take_away_and_can_be_undone():
    with opened() as lab:
        session, other = LabSession("s", lab), LabSession('s"', lab)
        assert asyncio.run(session.pop_item()) is None
        asyncio.run(session.add_items([{"role": "user", "content": text} for text in "ab"]))
        asyncio.run(other.add_items([{"role": "user", "content": "mine"}]))
        assert asyncio.run(session.pop_item()) == {"role": "user", "content": "b"}
        assert asyncio.run(session.get_items()) == [{"role": "user", "content": "a"}]
        asyncio.run(session.add_items([{"role": "user", "content": "c"}]))
        asyncio.run(session.clear_session())
        assert asyncio.run(session.get_items()) == []
        assert len(asyncio.run(other.get_items())) == 1
        lab.restore([1, 4])
        assert [item["content"] for item in asyncio.run(session.get_items())] == ["a", "c"]


def test_a_secret_is_replaced_and_what_json_cannot_say_is_refused():
    with opened() as lab:
        session = LabSession("s", lab)
        key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
        asyncio.run(session.add_items([{"role": "user", "content": f"my key is {key}"}]))
        assert asyncio.run(session.get_items()) == [
            {"role": "user", "content": "my key is [REDACTED: OpenAI key]"}
        ]
        for bad in ["text", {1: "x"}, {"x": object()}, {"x": float("nan")}]:
            with pytest.raises(memlab.InputError):
                asyncio.run(session.add_items([{"role": "user", "content": "fine"}, bad]))
        assert len(lab) == 1
        with pytest.raises(memlab.InputError):
            LabSession(" ", lab)
