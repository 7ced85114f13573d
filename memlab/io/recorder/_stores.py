"""Search functions of mem0, LangGraph's stores and Chroma, without importing these packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memlab.errors import InputError
from memlab.io.recorder._items import read_item


@dataclass(frozen=True)
class Searched:
    """A search, a function that converts its answers to lists of results, and the session of a call.

    ``call`` takes the query, the number of results and the caller's other arguments. It may return
    an awaitable.
    """

    call: Callable[..., Any]
    results: Callable[[Any], Any] = lambda answer: answer
    session: Callable[[Sequence[Any], Mapping[str, Any]], str | None] = lambda args, options: None


def find_store(search: Any) -> Searched:
    """Build the search function of another package's store, or of a plain function."""
    owner = getattr(search, "__self__", search)
    packages = {kind.__module__.partition(".")[0] for kind in type(owner).__mro__}
    for package, method, wrap in (
        ("mem0", "search", _mem0),
        ("langgraph", "search", _langgraph),
        ("chromadb", "query", _chroma),
    ):
        if package in packages:
            return wrap(getattr(search, method) if owner is search else search)
    if not callable(search):
        raise InputError(
            f"A search must be a function of a query and a number of results, a mem0 Memory, a LangGraph store or a "
            f"Chroma collection, not {type(search).__name__}. Wrap it: memlab.record(lambda query, k: ..., log=...)."
        )
    return Searched(search)


def _mem0(search: Any) -> Searched:
    """Build the search function of mem0's ``Memory`` or ``AsyncMemory``.

    The session is the user, agent and run of the filters.
    """

    def session(args: Sequence[Any], options: Mapping[str, Any]) -> str | None:
        """Return the session that a call's owners form, or None for a call without owners."""
        scope = {**options, **(options.get("filters") or {})}
        names = [str(scope[name]) for name in ("user_id", "agent_id", "run_id") if name in scope]
        return "/".join(names) or None

    return Searched(
        lambda query, k, **options: search(query, top_k=k, **options),
        lambda answer: answer["results"],
        session,
    )


def _langgraph(search: Any) -> Searched:
    """Build the search function of a LangGraph ``BaseStore``, given its namespace first.

    Record ``store.asearch`` where the store is asynchronous.
    """
    return Searched(
        lambda query, k, namespace=(), **options: search(
            tuple(namespace), query=query, limit=k, **options
        ),
        lambda items: [
            read_item(item)._replace(id="/".join((*item.namespace, item.key))) for item in items
        ],
        lambda args, options: "/".join(args[0] if args else options.get("namespace", ())) or None,
    )


def _chroma(query: Any) -> Searched:
    """Build the search function of a Chroma collection, with distances negated to scores."""

    def results(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the results of a Chroma answer to a single query."""
        names = {"id": "ids", "text": "documents", "score": "distances", "metadata": "metadatas"}
        columns = {name: answer[own][0] for name, own in names.items() if answer.get(own)}
        if "score" in columns:
            columns["score"] = [-distance for distance in columns["score"]]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    return Searched(
        lambda text, k, **options: query(query_texts=[text], n_results=k, **options),
        results,
    )
