"""Adapters under the frameworks themselves: their own runners, with models that answer from a script."""

import asyncio
import inspect
import json

import pytest

import memlab
from memlab.io.adapters import AsyncMem0Memory, LabSession, Mem0Memory, MemoryFiles

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("default")]


# -- OpenAI Agents ------------------------------------------------------------------------------------------------


@pytest.fixture
def agents(monkeypatch):
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    return pytest.importorskip("agents")


def test_openai_agents_keeps_a_conversation(agents, lab):
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(Model):
        """Asks for the weather once, then answers with how much it was given."""

        def __init__(self):
            self.given = []

        async def get_response(self, system_instructions, input, *args, **kwargs):
            self.given.append(list(input) if isinstance(input, list) else [input])
            asked = any(
                isinstance(item, dict) and item.get("type") == "function_call"
                for item in self.given[-1]
            )
            output = (
                ResponseOutputMessage(
                    id="msg_1",
                    type="message",
                    role="assistant",
                    status="completed",
                    content=[
                        ResponseOutputText(
                            type="output_text", text="It snows in Oslo.", annotations=[]
                        )
                    ],
                )
                if asked
                else ResponseFunctionToolCall(
                    type="function_call",
                    call_id="call_1",
                    name="weather",
                    arguments='{"city": "Oslo"}',
                )
            )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *args, **kwargs):
            raise NotImplementedError

    @agents.function_tool
    def weather(city: str) -> str:
        """Return the weather in a city."""
        return f"Snow in {city}"

    model = Scripted()
    agent = agents.Agent(name="a", model=model, tools=[weather])
    session = LabSession("ada", lab)
    from agents.memory import Session

    assert isinstance(session, Session)
    result = asyncio.run(agents.Runner.run(agent, "What is the weather in Oslo?", session=session))
    assert result.final_output == "It snows in Oslo."
    again = asyncio.run(agents.Runner.run(agent, "And tomorrow?", session=LabSession("ada", lab)))
    assert again.final_output == "It snows in Oslo."
    roles = [item.get("role") or item.get("type") for item in model.given[-1]]
    assert roles == ["user", "function_call", "function_call_output", "assistant", "user"]
    process = asyncio.run(session.get_items())
    assert [item.get("role") or item.get("type") for item in process] == [*roles, "assistant"]
    assert "Oslo" in lab.recall("snow in Oslo")[0].text


def test_openai_agents_session_does_what_the_sqlite_session_does(agents, lab):
    from agents.memory import SessionSettings, SQLiteSession

    async def live(session):
        seen = [await session.pop_item(), await session.get_items()]
        await session.add_items([{"role": "user", "content": str(n)} for n in range(5)])
        seen += [
            await session.get_items(),
            await session.get_items(limit=2),
            await session.pop_item(),
        ]
        await session.add_items(
            [{"role": "assistant", "content": [{"type": "output_text", "text": "é\ud83c"}]}]
        )
        seen += [await session.get_items(), await session.get_items(limit=99)]
        await session.clear_session()
        seen += [await session.get_items(), await session.pop_item()]
        return seen

    settings = SessionSettings(limit=3)
    assert asyncio.run(live(LabSession("s", lab))) == asyncio.run(live(SQLiteSession("s")))
    ours, theirs = LabSession("t", lab), SQLiteSession("t", session_settings=settings)
    ours.session_settings = settings
    assert asyncio.run(live(ours)) == asyncio.run(live(theirs))


# -- Claude -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
def test_claude_works_in_the_files(lab, is_async):
    anthropic = pytest.importorskip("anthropic")
    transport = pytest.importorskip("httpx2")
    from memlab.io.adapters.claude_tool import AsyncLabMemoryTool, LabMemoryTool

    commands = [
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/ada.md", "file_text": "Ada likes tea."},
        {"command": "str_replace", "path": "/memories/ada.md", "old_str": "tea", "new_str": "mate"},
        {
            "command": "insert",
            "path": "/memories/ada.md",
            "insert_line": 1,
            "insert_text": "And rain.",
        },
        {
            "command": "rename",
            "old_path": "/memories/ada.md",
            "new_path": "/memories/people/ada.md",
        },
        {"command": "view", "path": "/memories/people/ada.md", "view_range": [1, 2]},
        {"command": "view", "path": "/memories/../etc"},
        {"command": "delete", "path": "/memories/people"},
    ]
    answers = []

    def handler(request):
        messages = json.loads(request.content)["messages"]
        if messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list):
            answers.extend(messages[-1]["content"])
        step = len(answers)
        content = (
            [{"type": "tool_use", "id": f"t{step}", "name": "memory", "input": commands[step]}]
            if step < len(commands)
            else [{"type": "text", "text": "Done."}]
        )
        return transport.Response(
            200,
            json={
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "claude",
                "content": content,
                "stop_reason": "tool_use" if step < len(commands) else "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        )

    mocked, files = transport.MockTransport(handler), MemoryFiles(lab)
    request = {
        "model": "claude",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "Hello"}],
    }
    if is_async:
        http = transport.AsyncClient(transport=mocked)
        client = anthropic.AsyncAnthropic(api_key="none", http_client=http)
        tools = [AsyncLabMemoryTool(files)]

        async def run():
            return await client.beta.messages.tool_runner(tools=tools, **request).until_done()

        final = asyncio.run(run())
    else:
        http = transport.Client(transport=mocked)
        client = anthropic.Anthropic(api_key="none", http_client=http)
        tools = [LabMemoryTool(files)]
        final = client.beta.messages.tool_runner(tools=tools, **request).until_done()
    assert final.content[0].text == "Done."
    contents = [answer["content"] for answer in answers]
    assert len(contents) == len(commands)
    assert contents[1] == "File created successfully at: /memories/ada.md"
    assert contents[5].endswith("     1\tAda likes mate.\n     2\tAnd rain.")
    assert [bool(answer.get("is_error")) for answer in answers] == [False] * 6 + [True, False]
    assert "would escape /memories directory" in str(contents[6])
    assert lab.slates().decisions.collect().height == 1


def test_claude_files_answer_as_the_files_of_the_sdk(lab, tmp_path):
    """The same commands, the same sentences, where the lab does not say more."""
    tools = pytest.importorskip("anthropic.lib.tools._beta_builtin_memory_tool")
    from memlab.io.adapters.claude_tool import LabMemoryTool

    ours, theirs = (
        LabMemoryTool(MemoryFiles(lab)),
        tools.BetaLocalFilesystemMemoryTool(str(tmp_path)),
    )
    for command in [
        {"command": "create", "path": "/memories/a/x.md", "file_text": "one\ntwo\nthree\n"},
        {"command": "view", "path": "/memories/a/x.md"},
        {"command": "view", "path": "/memories/a/x.md", "view_range": [2, 3]},
        {"command": "str_replace", "path": "/memories/a/x.md", "old_str": "two", "new_str": "2\n2"},
        {
            "command": "insert",
            "path": "/memories/a/x.md",
            "insert_line": 0,
            "insert_text": "zero\n",
        },
        {"command": "insert", "path": "/memories/a/x.md", "insert_line": 5, "insert_text": "last"},
        {"command": "view", "path": "/memories/a/x.md"},
        {"command": "rename", "old_path": "/memories/a/x.md", "new_path": "/memories/y.md"},
        {"command": "delete", "path": "/memories/y.md"},
    ]:
        assert ours.call(command) == theirs.call(command), command
    for tool in (ours, theirs):
        tool.call({"command": "create", "path": "/memories/z.md", "file_text": "aaa\nb"})
        tool.call({"command": "create", "path": "/memories/f/x.md", "file_text": "x"})
    for command in [
        {"command": "create", "path": "/memories/z.md", "file_text": "x"},
        {"command": "create", "path": "/memories", "file_text": "x"},
        {"command": "create", "path": "/memories/f", "file_text": "x"},
        {"command": "create", "path": "/elsewhere", "file_text": "x"},
        {"command": "create", "path": "/memories/../x", "file_text": "x"},
        {"command": "view", "path": "/memories/none"},
        {"command": "str_replace", "path": "/memories/none", "old_str": "a", "new_str": "b"},
        {"command": "str_replace", "path": "/memories/f", "old_str": "a", "new_str": "b"},
        {"command": "str_replace", "path": "/memories/z.md", "old_str": "c", "new_str": "b"},
        {"command": "str_replace", "path": "/memories/z.md", "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": "/memories/z.md", "insert_line": 9, "insert_text": "b"},
        {"command": "delete", "path": "/memories"},
        {"command": "delete", "path": "/memories/none"},
        {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"},
        {"command": "rename", "old_path": "/memories/z.md", "new_path": "/memories/f"},
        {"command": "rename", "old_path": "/memories/none", "new_path": "/memories/x"},
    ]:
        with pytest.raises(tools.ToolError) as expected:
            theirs.call(command)
        with pytest.raises(tools.ToolError) as refused:
            ours.call(command)
        # the lab may add a hint
        assert str(refused.value).startswith(str(expected.value)), command


# -- agent-framework ----------------------------------------------------------------------------------------------


def test_agent_framework_recalls_attributes_and_remembers(lab):
    framework = pytest.importorskip("agent_framework")
    from memlab.io.adapters.agent_framework import HEADING, LabContext

    given = []

    class Scripted(framework.BaseChatClient):
        async def _inner_get_response(self, *, messages, stream=False, options=None, **kwargs):
            given.append([message.text for message in messages])
            return framework.ChatResponse(
                messages=[framework.Message("assistant", ["Order the pizza with olives for Ada."])],
                response_id="r",
            )

    lab.remember("Ada likes pizza with olives")
    agent = framework.Agent(client=Scripted(), context_providers=[LabContext(lab)])
    session = agent.create_session()

    async def talk():
        first = await agent.run("What shall I order for Ada?", session=session)
        await agent.run("And to drink?", session=session)
        return first

    assert asyncio.run(talk()).text == "Order the pizza with olives for Ada."
    assert given[0][0] == f"{HEADING}\n- [memory 1] Ada likes pizza with olives"
    assert lab.memories["text"].to_list()[1:] == [
        "What shall I order for Ada?",
        "Order the pizza with olives for Ada.",
        "And to drink?",
        "Order the pizza with olives for Ada.",
    ]
    assert set(lab.memories["session"].to_list()[1:]) == {session.session_id}
    rewards = lab.slates().feedback.collect()
    assert rewards["source"].to_list()[:1] == ["attributed"]
    assert not any("What shall I order" in text for text in given[1][:1])


# -- mem0 ---------------------------------------------------------------------------------------------------------


def test_mem0_has_the_arguments_that_the_facade_has(lab):
    main = pytest.importorskip("mem0.memory.main")
    for name in ("add", "search", "get", "get_all", "update", "delete", "delete_all", "history"):
        theirs = inspect.signature(getattr(main.Memory, name)).parameters
        ours = inspect.signature(getattr(Mem0Memory, name)).parameters
        # ``filters`` of ``add`` are the owners as the platform has them
        assert set(ours) - {"filters"} == set(theirs) - {"filters"}, name
        kinds = [our.kind for key, our in ours.items() if key in theirs]
        assert kinds == [theirs[key].kind for key in ours if key in theirs], name
    for name in ("from_config", "reset", "close", "chat"):
        assert set(inspect.signature(getattr(Mem0Memory, name)).parameters) == set(
            inspect.signature(getattr(main.Memory, name)).parameters
        )
    for name, method in inspect.getmembers(main.AsyncMemory, inspect.isfunction):
        if not name.startswith("_"):
            ours = getattr(AsyncMem0Memory, name)
            assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(method), name


def test_mem0_knows_what_the_facade_gives(lab):
    base = pytest.importorskip("mem0.configs.base")
    memory = Mem0Memory(lab)
    memory.add("I like tea", user_id="ada", metadata={"k": 1})
    for item in memory.search("tea", filters={"user_id": "ada"})["results"]:
        known = base.MemoryItem(**item)
        assert (known.memory, known.metadata) == ("I like tea", {"k": 1})
        assert isinstance(memlab.__version__, str)


def test_agent_framework_uses_the_lab_as_mem0(lab):
    provider = pytest.importorskip("agent_framework_mem0")
    framework = pytest.importorskip("agent_framework")
    memory = AsyncMem0Memory(lab)
    context = provider.Mem0ContextProvider(mem0_client=memory, user_id="ada", search_user_id="ada")
    given = []

    async def talk(text):
        session = framework.AgentSession(session_id=text)
        run = framework.SessionContext(
            session_id=text, input_messages=[framework.Message("user", [text])]
        )
        async with context:
            await context.before_run(agent=None, session=session, context=run, state={})
            given.append([part.text for parts in run.context_messages.values() for part in parts])
            run._response = framework.AgentResponse(
                messages=[framework.Message("assistant", ["Noted."])]
            )
            await context.after_run(agent=None, session=session, context=run, state={})

    asyncio.run(talk("I prefer tea over coffee"))
    asyncio.run(talk("What do I prefer to drink?"))
    assert given[0] == []
    assert "I prefer tea over coffee" in given[1][0]
    assert lab.memories["text"][0] == "I prefer tea over coffee"
