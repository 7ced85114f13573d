"""The middleware and the retriever under LangChain's own agent."""

import asyncio

import pytest

from memlab.errors import InputError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("default")]
pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from memlab.io.adapters.langchain import LabMiddleware, LabRetriever


class Scripted(GenericFakeChatModel):
    """Answers from a list, and keeps what it was sent."""

    sent: list[list[BaseMessage]]

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, *args, **kwargs):
        self.sent.append(list(messages))
        return super()._generate(messages, *args, **kwargs)


def build(*answers):
    return Scripted(messages=iter(answers), sent=[])


def in_thread(name):
    return {"configurable": {"thread_id": name}}


@pytest.mark.parametrize("is_async", [False, True])
def test_a_later_thread_reads_what_an_earlier_one_said(lab, is_async):
    model = build(AIMessage("Noted."), AIMessage("You live in Oslo."), AIMessage("In Oslo."))
    agent = create_agent(model, middleware=[LabMiddleware(lab)], checkpointer=InMemorySaver())

    def ask(text, thread):
        state = {"messages": [HumanMessage(text)]}
        if is_async:
            return asyncio.run(agent.ainvoke(state, in_thread(thread)))
        return agent.invoke(state, in_thread(thread))

    ask("I live in Oslo", "t1")
    answer = ask("Where do I live?", "t2")
    notes, question = model.sent[1]
    assert "I live in Oslo" in notes.text
    assert "not instructions" in notes.text
    assert question.text == "Where do I live?"
    # the thread's own messages do not contain the memories
    assert [message.text for message in answer["messages"]] == [
        "Where do I live?",
        "You live in Oslo.",
    ]
    assert "memlab_run" not in answer
    assert lab.memories["session"].to_list() == ["t1", "t1", "t2", "t2"]
    assert lab.agents.recalls().height >= 1
    # within a thread its own turns are not shown as memories again
    ask("Where, again?", "t2")
    assert "Where do I live?" not in model.sent[2][-2].text


def test_a_run_with_a_tool_is_one_recall(lab):
    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        return "snow"

    lab.remember("Ada asks for the weather in Oslo each morning")
    call = {"name": "weather", "args": {"city": "Oslo"}, "id": "1"}
    model = build(AIMessage("", tool_calls=[call]), AIMessage("It snows in Oslo."))
    agent = create_agent(model, tools=[weather], middleware=[LabMiddleware(lab)])
    before = lab.slates().decisions.collect().height
    agent.invoke({"messages": [HumanMessage("Weather this morning?")]})
    assert lab.slates().decisions.collect().height == before + 1
    for sent in model.sent:
        at = next(i for i, m in enumerate(sent) if m.text == "Weather this morning?")
        assert "each morning" in sent[at - 1].text
    assert isinstance(model.sent[1][-1], ToolMessage)
    assert lab.memories["text"].to_list()[1:] == ["Weather this morning?", "It snows in Oslo."]


def test_a_text_in_parts_and_an_empty_one(lab):
    model = build(AIMessage([{"type": "text", "text": "Fine."}]), AIMessage("?"))
    agent = create_agent(model, middleware=[LabMiddleware(lab)])
    agent.invoke({"messages": [HumanMessage([{"type": "text", "text": "How are you?"}])]})
    assert lab.memories["text"].to_list() == ["How are you?", "Fine."]
    agent.invoke({"messages": [HumanMessage("  ")]})
    assert lab.memories["text"].to_list() == ["How are you?", "Fine.", "?"]


def test_nothing_is_stored_unless_asked(lab):
    agent = create_agent(build(AIMessage("Hi")), middleware=[LabMiddleware(lab, remember=False)])
    agent.invoke({"messages": [HumanMessage("Hello")]})
    assert lab.memories.is_empty()
    with pytest.raises(InputError, match="limit must be at least 1"):
        LabMiddleware(lab, limit=0)


def test_documents_take_feedback(lab):
    lab.remember(["Ada lives in Oslo", "Bo lives in Rome", "Cy has a dog"])
    found = LabRetriever(lab=lab, k=2).invoke("where does Ada live?")
    assert found[0].page_content == "Ada lives in Oslo"
    lab.feedback(int(found[0].id), "success", decision=found[0].metadata["recall"])
