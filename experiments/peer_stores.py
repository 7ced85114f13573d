"""Adapters of memlab and its peers with one interface, for ``side_by_side.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from memlab import Lab
    from memlab.kernel.embedding import Embedder

__all__ = ["BASE", "PEERS", "SYSTEMS", "TEN", "Lookup", "MemlabStore", "Row", "Store", "System"]

DIM = 256
TEN = 10
"""The number of turns that a query returns."""

Row = Mapping[str, Any]
"""A turn: ``said`` (what is embedded), ``text``, ``speaker``, ``session``, ``ref``, ``at``."""
Lookup = Callable[[Sequence[str]], NDArray[np.float32]]
"""A function from texts to their precomputed vectors."""


class Store(Protocol):
    """One conversation in one system; ``save`` writes what ``add`` has not written."""

    def add(self, rows: Sequence[Row]) -> None: ...
    def save(self) -> None: ...
    def ask(self, question: str, at: str) -> list[str]: ...
    def close(self) -> None: ...


class MemlabStore:
    """A lab on disk."""

    def __init__(
        self, folder: Path, embedder: Embedder | None, *, pack: str | None, log: bool
    ) -> None:
        import memlab

        self.log = log
        self.lab: Lab = memlab.open(folder / "lab", embedder=embedder, pack=pack)

    def add(self, rows: Sequence[Row]) -> None:
        fields = ("text", "speaker", "session", "ref", "at")
        self.lab.remember(
            [{"kind": "turn"} | {name: row[name] for name in fields} for row in rows], chain=True
        )

    def save(self) -> None:
        pass

    def ask(self, question: str, at: str) -> list[str]:
        hits = self.lab.recall(question, limit=TEN, at=at, log=self.log)
        return [hit.ref or "" for hit in hits if not hit.probe]

    def close(self) -> None:
        self.lab.close()


class ChromaStore:
    """A persistent client with one collection and cosine distance."""

    def __init__(self, folder: Path, lookup: Lookup) -> None:
        import chromadb
        from chromadb.config import Settings

        self.lookup = lookup
        self.client = chromadb.PersistentClient(
            str(folder / "chroma"), Settings(anonymized_telemetry=False)
        )
        self.turns = self.client.create_collection(
            "turns", embedding_function=None, metadata={"hnsw:space": "cosine"}
        )

    def add(self, rows: Sequence[Row]) -> None:
        texts = [row["said"] for row in rows]
        self.turns.add(
            ids=[row["ref"] for row in rows],
            documents=texts,
            embeddings=self.lookup(texts),
            metadatas=[select_labels(row) for row in rows],
        )

    def save(self) -> None:
        pass

    def ask(self, question: str, at: str) -> list[str]:
        response = self.turns.query(query_embeddings=self.lookup([question]), n_results=TEN)
        return list(response["ids"][0])

    def close(self) -> None:
        del self.turns, self.client


class LangGraphStore:
    """An ``InMemoryStore`` with arrays as vectors, which are searched faster than lists."""

    def __init__(self, folder: Path, lookup: Lookup) -> None:
        from langgraph.store.memory import InMemoryStore

        self.store = InMemoryStore(
            index={"dims": DIM, "embed": lambda texts: list(lookup(texts)), "fields": ["said"]}
        )

    def add(self, rows: Sequence[Row]) -> None:
        from langgraph.store.base import PutOp

        # a batch with duplicate texts is refused: it counts vectors of different texts (1.2.22)
        first: dict[str, Row] = {}
        again = [row for row in rows if first.setdefault(row["said"], row) is not row]
        for batch in (list(first.values()), *([row] for row in again)):
            self.store.batch(
                [
                    PutOp(("turns",), row["ref"], {"said": row["said"], **select_labels(row)})
                    for row in batch
                ]
            )

    def save(self) -> None:
        pass

    def ask(self, question: str, at: str) -> list[str]:
        return [item.key for item in self.store.search(("turns",), query=question, limit=TEN)]

    def close(self) -> None:
        pass


class TxtaiStore:
    """Embeddings with words and content; in memory until ``save``."""

    def __init__(self, folder: Path, lookup: Lookup) -> None:
        from txtai import Embeddings

        self.path = str(folder / "txtai")
        self.index = Embeddings(method="external", transform=lookup, hybrid=True, content=True)

    def add(self, rows: Sequence[Row]) -> None:
        self.index.upsert(
            [(row["ref"], {"text": row["said"], **select_labels(row)}, None) for row in rows]
        )

    def save(self) -> None:
        self.index.save(self.path)

    def ask(self, question: str, at: str) -> list[str]:
        return [hit["id"] for hit in self.index.search(question, TEN)]

    def close(self) -> None:
        self.index.close()


class Mem0Store:
    """A ``Memory`` over its local Qdrant; ``infer=False`` stores turns unchanged, one by one."""

    def __init__(self, folder: Path, lookup: Lookup) -> None:
        from mem0 import Memory

        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        local = {"path": str(folder / "qdrant"), "embedding_model_dims": DIM, "on_disk": True}
        self.memory = Memory.from_config(
            {
                "llm": unused,
                "embedder": unused,
                "vector_store": {"provider": "qdrant", "config": local},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.memory.embedding_model = _Mem0Embedder(lookup)

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.memory.add(row["said"], user_id="user", metadata=select_labels(row), infer=False)

    def save(self) -> None:
        pass

    def ask(self, question: str, at: str) -> list[str]:
        response = self.memory.search(
            question, top_k=TEN, filters={"user_id": "user"}, threshold=0.0
        )
        return [memory["metadata"]["ref"] for memory in response["results"]]

    def close(self) -> None:
        self.memory.vector_store.client.close()
        self.memory.db.close()


@dataclass
class _Mem0Embedder:
    lookup: Lookup

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self.lookup([text])[0].tolist()
        return vector

    def embed_batch(
        self, texts: Sequence[str], memory_action: str | None = None
    ) -> list[list[float]]:
        vectors: list[list[float]] = self.lookup(texts).tolist()
        return vectors


@dataclass(frozen=True)
class System:
    """A contender: distributions that it needs, its storage and its search."""

    name: str
    needs: tuple[str, ...]
    keeps: str
    searches: str
    options: Mapping[str, Any] = field(default_factory=dict)


_MEMLAB = ("memlab",)
_SYNCED = "disk, synced"
_ALL, _WORDS, _DENSE = "vectors, words, graph", "vectors, words", "vectors"
SYSTEMS = (
    System("memlab", _MEMLAB, f"{_SYNCED}; logged", _ALL, {"log": True}),
    System("memlab unlogged", _MEMLAB, _SYNCED, _ALL, {"log": False}),
    System("memlab + embedding", _MEMLAB, f"{_SYNCED}; logged", _ALL, {"log": True, "embed": True}),
    System("memlab dense", _MEMLAB, _SYNCED, _DENSE, {"log": False, "dense": True}),
    System("chromadb", ("chromadb",), _SYNCED, _DENSE),
    System("langgraph", ("langgraph",), "memory only", _DENSE),
    System("txtai hybrid", ("txtai",), "memory, then disk", _WORDS),
    System("mem0", ("mem0ai", "qdrant-client"), _SYNCED, _DENSE),
)
PEERS: dict[str, Callable[[Path, Lookup], Store]] = {
    "chromadb": ChromaStore,
    "langgraph": LangGraphStore,
    "txtai hybrid": TxtaiStore,
    "mem0": Mem0Store,
}
BASE = SYSTEMS[0].name


def select_labels(row: Row) -> dict[str, str]:
    """Return the labels that are stored with the text of a turn."""
    return {name: row[name] for name in ("ref", "session", "speaker", "at")}
