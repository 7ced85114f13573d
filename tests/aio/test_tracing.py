"""``memlab.trace``: spans by the semantic conventions for memory."""

import asyncio
import json

import pytest

import memlab
from memlab.errors import InputError, MissingExtra

# The attributes of a span of the conventions' type gen_ai.memory.client, and general ones of gen_ai.
KNOWN = {
    *("gen_ai.operation.name", "gen_ai.memory.store.id", "gen_ai.memory.record.id"),
    *("gen_ai.memory.record.count", "gen_ai.memory.query.text", "gen_ai.memory.records"),
    *(
        "gen_ai.conversation.id",
        "gen_ai.agent.name",
        "error.type",
        "memlab.pack",
        "memlab.decision",
    ),
}


@pytest.fixture
def spans():
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    exporter.provider = provider
    return exporter


def use(lab):
    lab.remember(["Deploys go out on Tuesdays", "The user prefers tabs"])
    lab.agent("coder", session="s1").recall("when do deploys go out?")
    lab.edit(2, text="The user prefers spaces")
    lab.forget(1)
    lab.restore(1)
    lab.purge(3)
    lab.remember("Ship on Fridays", linking="now")


def test_spans_follow_the_conventions(spans):
    lab = memlab.open()
    listener = memlab.trace(lab, provider=spans.provider)
    use(lab)
    with pytest.raises(InputError):
        lab._questions.ask(
            "", **dict.fromkeys(("limit", "project", "session", "filters", "at", "log"))
        )
    listener.remove()
    lab.recall("no longer traced")
    finished = spans.get_finished_spans()
    assert [span.name for span in finished] == [
        *("create_memory", "search_memory", "update_memory", "delete_memory", "update_memory"),
        *("delete_memory", "upsert_memory", "search_memory"),
    ]
    for span in finished:
        assert span.attributes["gen_ai.operation.name"] == span.name
        assert span.attributes["gen_ai.memory.store.id"] == "memory"
        assert set(span.attributes) <= KNOWN
        assert span.end_time >= span.start_time
        # Contents are opt-in.
        assert not {"gen_ai.memory.query.text", "gen_ai.memory.records"} & set(span.attributes)
        assert "deploys" not in str(span.to_json()).lower()
    search = finished[1].attributes
    assert search["gen_ai.agent.name"] == "coder"
    assert search["gen_ai.conversation.id"] == "s1"
    assert search["gen_ai.memory.record.count"] == 2
    assert search["memlab.pack"] == lab.policies.pack.hash
    assert "gen_ai.memory.record.id" not in finished[0].attributes  # two records
    assert [span.attributes["gen_ai.memory.record.id"] for span in finished[2:6]] == [
        "3",
        "1",
        "1",
        "3",
    ]
    failed = finished[-1]
    assert failed.attributes["error.type"] == "InputError"
    assert not failed.status.is_ok


@pytest.mark.parametrize("by_variable", [True, False])
def test_contents_are_captured_if_asked_for(spans, monkeypatch, by_variable):
    if by_variable:
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    lab = memlab.open()
    memlab.trace(lab, content=None if by_variable else True, provider=spans.provider, store="team")
    lab.remember("Deploys go out on Tuesdays")
    hits = lab.recall("when do deploys go out?")
    created, search = spans.get_finished_spans()
    assert created.attributes["gen_ai.memory.store.id"] == "team"
    assert search.attributes["gen_ai.memory.query.text"] == "when do deploys go out?"
    assert json.loads(search.attributes["gen_ai.memory.records"]) == [
        {"id": "1", "content": "Deploys go out on Tuesdays", "score": hits[0].score}
    ]
    assert json.loads(created.attributes["gen_ai.memory.records"])[0]["id"] == "1"


def test_the_variable_for_events_captures_nothing(spans, monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "EVENT_ONLY")
    lab = memlab.open()
    memlab.trace(lab, provider=spans.provider)
    lab.recall("secret question")
    (search,) = spans.get_finished_spans()
    assert "gen_ai.memory.query.text" not in search.attributes


def test_the_parent_is_the_span_of_the_caller(spans):
    tracer = spans.provider.get_tracer("test")

    async def main():
        async with memlab.AsyncLab() as lab:
            memlab.trace(lab.lab, provider=spans.provider)
            with tracer.start_as_current_span("turn") as turn:
                await lab.recall("tabs?")
            return turn.get_span_context().span_id

    parent = asyncio.run(main())
    assert spans.get_finished_spans()[0].parent.span_id == parent


def test_without_the_package_the_call_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.trace", None)
    with pytest.raises(MissingExtra, match=r"memlab-core\[opentelemetry\]"):
        memlab.trace(memlab.open())
