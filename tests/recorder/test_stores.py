"""Recorded searches of the packages themselves: Chroma, LangGraph and mem0."""

import asyncio
import hashlib

import pytest

import memlab

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("default")]

TEXTS = [f"Fact {number} about Friday" for number in range(25)]


def embed(text):
    return [byte / 255 for byte in hashlib.sha256(str(text).encode()).digest()[:16]]


def test_a_chroma_collection_is_recorded(tmp_path):
    chromadb = pytest.importorskip("chromadb")

    class Letters(chromadb.EmbeddingFunction):
        def __init__(self):
            pass

        def __call__(self, input):
            return [embed(text) for text in input]

    collection = chromadb.EphemeralClient().create_collection(
        f"facts-{tmp_path.name}", embedding_function=Letters()
    )
    collection.add(
        ids=[f"m{number}" for number in range(25)],
        documents=TEXTS,
        metadatas=[{"number": number} for number in range(25)],
    )
    recorded = memlab.record(collection, log=tmp_path / "log", limit=5)
    hits = recorded("Friday", where={"number": {"$gte": 5}})
    assert len(hits) == 6
    assert all(hit["metadata"]["number"] >= 5 for hit in hits)
    candidates = recorded.slates().candidates.collect().sort("rank")
    assert candidates.height == 15
    assert candidates["search-score"].is_sorted(descending=True)
    assert recorded.slates().features == ("search-score", "words", "overlap")


def test_a_langgraph_store_is_recorded(tmp_path):
    memory = pytest.importorskip("langgraph.store.memory")
    store = memory.InMemoryStore(
        index={"embed": lambda texts: [embed(text) for text in texts], "dims": 16}
    )
    for number, text in enumerate(TEXTS):
        store.put(("users", "ada"), f"k{number}", {"text": text})
    recorded = memlab.record(store, log=tmp_path / "log", limit=5)
    hits = recorded("Friday", ("users",))
    assert len(hits) == 6
    assert hits.ids[0] == f"users/ada/{hits[0].key}"
    later = memlab.record(store.asearch, log=tmp_path / "log", limit=5)
    later.challenge(store.asearch, name="same")
    assert len(asyncio.run(later("Friday", namespace=("users", "ada")))) == 5
    assert recorded.slates().decisions.collect()["session"].to_list() == ["users", "users/ada"]


def test_mem0_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    mem0 = pytest.importorskip("mem0")
    pytest.importorskip("chromadb")
    factory = pytest.importorskip("mem0.utils.factory")

    class Letters:
        config = type("Config", (), {"embedding_dims": 16})()

        def embed(self, text, *args, **options):
            return embed(text)

        def embed_batch(self, texts, *args, **options):
            return [embed(text) for text in texts]

    monkeypatch.setattr(factory.EmbedderFactory, "create", lambda *args, **options: Letters())
    monkeypatch.setattr(factory.LlmFactory, "create", lambda *args, **options: None)
    chroma = {"collection_name": "facts", "path": str(tmp_path / "chroma")}
    memory = mem0.Memory.from_config(
        {
            "vector_store": {"provider": "chroma", "config": chroma},
            "history_db_path": str(tmp_path / "history.db"),
        }
    )
    for text in TEXTS:
        memory.add(text, user_id="ada", infer=False)
    recorded = memlab.record(memory, log=tmp_path / "log", limit=5)
    recorded.challenge(memory.search, name="same")
    hits = recorded("Friday", filters={"user_id": "ada"}, threshold=0.0)
    assert len(hits) == 5  # both show the same, so there is nothing to draw
    assert {hit["memory"] for hit in hits} <= set(TEXTS)
    assert hits.ids == [hit["id"] for hit in hits]
    assert recorded.slates().decisions.collect()["session"].to_list() == ["ada"]
