"""The memory service of Google ADK, under its own runner with a model that answers from a script."""

import asyncio

import pytest

from memlab.errors import InputError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("default")]
pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools import load_memory, preload_memory
from google.genai import types

from memlab.io.adapters.google_adk import LabMemoryService


def event(name, text, author="user", time=1_700_000_000.0):
    parts = [types.Part(text=text)] if text else None
    content = types.Content(parts=parts) if parts else None
    return Event(id=name, invocation_id=f"i-{name}", author=author, timestamp=time, content=content)


def session(name, *events, app="shop", user="ada"):
    return Session(app_name=app, user_id=user, id=name, last_update_time=0, events=list(events))


@pytest.fixture
def service(lab):
    return LabMemoryService(lab)


def search(service, query, app="shop", user="ada"):
    answer = service.search_memory(app_name=app, user_id=user, query=query)
    return list(asyncio.run(answer).memories)


def test_a_session_is_stored_once_with_its_times_and_authors(lab, service):
    said = session(
        "s1", event("e1", "I live in Oslo"), event("e2", None), event("e3", "Noted.", "helper")
    )
    for _ in range(2):
        asyncio.run(service.add_session_to_memory(said))
    assert lab.memories["text"].to_list() == ["I live in Oslo", "Noted."]
    assert lab.memories["speaker"].to_list() == ["user", "helper"]
    assert lab.memories["session"].to_list() == ["s1", "s1"]
    entry = search(service, "where does she live?")[0]
    assert (entry.id, entry.author, entry.content.role) == ("e1", "user", "user")
    assert entry.timestamp == "2023-11-14T22:13:20+00:00"
    assert entry.custom_metadata["recall"] == service.hits.decision


def test_events_are_added_to_a_session_and_not_replaced(service):
    asyncio.run(service.add_session_to_memory(session("s1", event("e1", "I live in Oslo"))))
    later = [event("e1", "I live in Rome"), event("e2", "I work in a bakery")]
    add = service.add_events_to_memory(
        app_name="shop", user_id="ada", events=later, session_id="s1", custom_metadata={"a": 1}
    )
    asyncio.run(add)
    texts = {entry.content.parts[0].text: entry for entry in search(service, "live, work")}
    assert set(texts) == {"I live in Oslo", "I work in a bakery"}
    assert texts["I work in a bakery"].custom_metadata["a"] == 1


@pytest.mark.parametrize(
    ("app", "user"), [("shop", "bob"), ("other", "ada"), ("shop/ada", ""), ('shop","ada', "x")]
)
def test_another_user_or_app_sees_nothing(service, app, user):
    asyncio.run(service.add_session_to_memory(session("s1", event("e1", "The code is 4711"))))
    assert search(service, "what is the code?", app, user) == []
    assert len(search(service, "what is the code?")) == 1


def test_a_deleted_memory_stays_deleted(lab, service):
    said = session("s1", event("e1", "I live in Oslo"), event("e2", "I work in a bakery"))
    asyncio.run(service.add_session_to_memory(said))
    for name in ("e1", "unknown", None):
        asyncio.run(service.delete_memory(app_name="shop", user_id="ada", memory_id=name))
    asyncio.run(service.add_session_to_memory(said))
    assert [entry.id for entry in search(service, "Oslo, bakery")] == ["e2"]
    asyncio.run(service.delete_memory(app_name="shop", user_id="bob", memory_id="e2"))
    assert [entry.id for entry in search(service, "Oslo, bakery")] == ["e2"]


def test_thoughts_are_not_stored(lab, service):
    parts = [types.Part(text="hmm", thought=True), types.Part(text="It rains.")]
    said = Event(author="helper", content=types.Content(parts=parts))
    asyncio.run(service.add_session_to_memory(session("s1", said)))
    assert lab.memories["text"].to_list() == ["It rains."]


def test_memories_are_added_as_they_are(lab, service):
    entries = [
        MemoryEntry(content=types.Content(parts=[types.Part(text="Ada prefers tea")])),
        MemoryEntry(
            id="m2",
            content=types.Content(parts=[types.Part(text="Ada has a dog")]),
            timestamp="2024-05-01T10:00:00",
            custom_metadata={"from": "form"},
        ),
    ]
    asyncio.run(service.add_memory(app_name="shop", user_id="ada", memories=entries))
    found = {entry.id: entry for entry in search(service, "Ada's dog and tea")}
    assert found["m2"].custom_metadata["from"] == "form"
    assert found["m2"].timestamp == "2024-05-01T10:00:00+00:00"
    wrong = MemoryEntry(content=types.Content(parts=[types.Part(text="x")]), timestamp="yesterday")
    with pytest.raises(InputError, match=r"memories\[0\].timestamp"):
        asyncio.run(service.add_memory(app_name="shop", user_id="ada", memories=[wrong]))
    empty = MemoryEntry(content=types.Content(parts=[]))
    with pytest.raises(InputError, match="has no text"):
        asyncio.run(service.add_memory(app_name="shop", user_id="ada", memories=[empty]))
    assert len(lab.memories) == 2


@pytest.mark.parametrize(("tool", "calls_it"), [(preload_memory, False), (load_memory, True)])
def test_a_runner_reads_what_an_earlier_session_said(lab, service, tool, calls_it):
    class Scripted(BaseLlm):
        requests: list[object]

        async def generate_content_async(self, llm_request, stream=False):
            self.requests.append(llm_request)
            part = types.Part(text="You live in Oslo.")
            if calls_it and len(self.requests) == 1:
                call = types.FunctionCall(
                    name="load_memory", args={"query": "where the user lives"}
                )
                part = types.Part(function_call=call)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    model = Scripted(model="scripted", requests=[])
    sessions = InMemorySessionService()

    async def talk():
        old = session("s1", event("e1", "I live in Oslo"))
        await service.add_session_to_memory(old)
        agent = LlmAgent(name="helper", model=model, tools=[tool])
        runner = Runner(
            app_name="shop", agent=agent, session_service=sessions, memory_service=service
        )
        await sessions.create_session(app_name="shop", user_id="ada", session_id="s2")
        message = types.Content(role="user", parts=[types.Part(text="Where do I live?")])
        async for _ in runner.run_async(user_id="ada", session_id="s2", new_message=message):
            pass
        done = await sessions.get_session(app_name="shop", user_id="ada", session_id="s2")
        await service.add_session_to_memory(done)

    asyncio.run(talk())
    assert "I live in Oslo" in model.requests[-1].model_dump_json()
    assert lab.memories.filter(session="s2")["text"].to_list() == [
        "Where do I live?",
        "You live in Oslo.",
    ]
