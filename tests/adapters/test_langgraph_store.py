"""A lab as LangGraph's store: what its own in-memory store does is the oracle for all that is no search by meaning."""

import asyncio
import random
from datetime import UTC

import pytest
from embedders import letters

import memlab
from memlab.kernel.embedding import load_embedder

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("default")]


@pytest.fixture
def base():
    return pytest.importorskip("langgraph.store.base")


@pytest.fixture
def make_store(base):
    from memlab.io.adapters.langgraph import LabStore

    return LabStore


@pytest.fixture
def store(make_store, lab):
    return make_store(lab)


VALUES = [
    {"text": "pizza", "n": 1},
    {"text": "sushi", "n": 2, "deep": {"a": [1, {"b": None}], "é": "ü\u2028🍕 \ud83c"}},
    {},
    {"n": 3.5, "flag": False, "big": 2**80, "tiny": 5e-324, "list": []},
    {"text": "", "quote": '"],["', "nul": "\x00"},
]
LABELS = ["a", "b", "a,b", '"', "ä", " ", "\\"]
FILTERS = [
    None,
    {"n": 1},
    {"n": {"$gte": 2}},
    {"n": {"$lt": 2, "$ne": 0}},
    {"deep": {"a": [1, {"b": None}]}},
]


def as_data(results):
    def as_plain(item):
        if hasattr(item, "namespace"):
            assert item.created_at.tzinfo is not None
            return (item.namespace, item.key, item.value)
        return sorted(map(as_plain, item), key=repr) if isinstance(item, list) else item

    return [as_plain(result) for result in results]


@pytest.mark.parametrize("seed", range(6))
def test_the_store_behaves_as_the_in_memory_store(base, store, lab, seed):
    """Batches of every operation, among names that try to leave their namespace."""
    oracle = pytest.importorskip("langgraph.store.memory").InMemoryStore()
    chance = random.Random(seed)

    def path():
        return tuple(chance.choices(LABELS, k=chance.randint(1, 3)))

    def operation():
        kind = chance.random()
        if kind < 0.45:
            value = None if chance.random() < 0.25 else chance.choice(VALUES)
            return base.PutOp(path(), chance.choice(LABELS), value)
        if kind < 0.65:
            return base.GetOp(path(), chance.choice(LABELS))
        if kind < 0.85:
            wanted = chance.choice(FILTERS)
            if wanted and "$" in repr(wanted):  # the oracle turns what has no number into an error
                wanted = {"n": 1}
            return base.SearchOp(path()[: chance.randint(0, 2)], wanted, limit=100)
        prefix = base.MatchCondition("prefix", (chance.choice([*LABELS, "*"]),))
        suffix = base.MatchCondition("suffix", (chance.choice([*LABELS, "*"]),))
        wanted = chance.sample([prefix, suffix], chance.randint(0, 2))
        return base.ListNamespacesOp(tuple(wanted), chance.choice([None, 1, 2]), 100)

    for _ in range(12):
        ops = [operation() for _ in range(chance.randint(1, 5))]
        wanted, search_keys = oracle.batch(ops), store.batch(ops)
        for op, item, other in zip(ops, wanted, search_keys, strict=True):
            if isinstance(op, base.ListNamespacesOp):
                # the oracle lists namespaces that have become empty, too
                assert set(other) <= set(item)
            else:
                assert as_data([item]) == as_data([other])
    assert not lab.slates().decisions.collect().height


def test_filters_by_operators(store):
    for n in range(5):
        store.put(("n",), str(n), {"n": n, "word": "x" * n})

    def search_keys(**wanted):
        return [item.key for item in store.search(("n",), filter=wanted)]

    assert search_keys(n={"$gt": 1, "$lte": 3}) == ["2", "3"]
    assert search_keys(word={"$ne": "xx"}) == ["0", "1", "3", "4"]
    assert search_keys(word={"$gte": "xxx"}) == ["3", "4"]
    assert search_keys(missing={"$gt": 1}) == []
    with pytest.raises(memlab.InputError, match="operator"):
        search_keys(n={"$near": 1})
    assert [item.key for item in store.search(("n",), limit=2, offset=1)] == ["1", "2"]


def test_a_search_with_a_question_is_a_recall(store, lab):
    store.put(("users", "ada"), "food", {"likes": "pizza with olives"})
    store.put(("users", "bob"), "food", {"likes": "pizza with ham"})
    store.put(("users", "ada"), "home", {"city": "Oslo"})
    match = store.search(("users", "ada"), query="who likes pizza?")
    assert match[0].value == {"likes": "pizza with olives"}
    assert {item.namespace for item in match} == {("users", "ada")}
    assert match[0].score == store.hits[0].score
    decisions = lab.slates().decisions.collect()
    assert decisions.height == 1
    assert lab.feedback(store.hits[0], "success").decision == store.hits.decision
    assert [
        item.key for item in store.search(("users",), query="city", filter={"city": "Oslo"})
    ] == ["home"]
    assert store.search(("users", "ad"), query="pizza") == []
    assert store.search(("users",), query="pizza", limit=0) == []
    assert len(store.search((), query="pizza", limit=2)) <= 2


def test_unindexed_items_are_stored_and_never_recalled(store, lab):
    store.put(("a",), "secret", {"text": "olives and pizza"}, index=False)
    store.put(("a",), "open", {"title": "pizza", "body": "engines and wheels"}, index=["title"])
    assert [item.key for item in store.search(("a",), query="olives pizza")] == ["open"]
    assert store.get(("a",), "secret").value == {"text": "olives and pizza"}
    assert len(store.search(("a",))) == 2
    assert lab[2].text == "pizza"
    store.put(("a",), "secret", {"text": "olives and pizza"})
    assert "secret" in [item.key for item in store.search(("a",), query="olives pizza")]


def test_versions_stay_and_what_is_deleted_comes_back(store, lab):
    store.put(("a",), "k", {"text": "one"})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"text": "two"})
    second = store.get(("a",), "k")
    assert (first.created_at, second.value) == (second.created_at, {"text": "two"})
    assert second.updated_at > first.updated_at
    assert second.updated_at.tzinfo is UTC
    head = lab.io.store.journal.head
    store.put(("a",), "k", {"text": "two"})
    assert lab.io.store.journal.head == head
    store.delete(("a",), "k")
    store.delete(("a",), "never")
    assert store.get(("a",), "k") is None
    assert store.list_namespaces() == []
    lab.restore(2)
    assert store.get(("a",), "k").value == {"text": "two"}
    assert lab.memories["status"].to_list() == ["superseded", "active"]
    lab.purge(2)
    assert store.get(("a",), "k") is None


def test_calls_that_the_contract_refuses(base, store, lab):
    with pytest.raises(base.InvalidNamespaceError):
        store.put(("a.b",), "k", {"x": 1})
    with pytest.raises(base.InvalidNamespaceError):
        store.batch([base.PutOp(("a.b",), "k", {"x": 1})])
    with pytest.raises(memlab.InputError, match="ttl_days"):
        store.put(("a",), "k", {"x": 1}, ttl=5)
    with pytest.raises(memlab.InputError, match="ttl_days"):
        asyncio.run(store.aput(("a",), "k", {"x": 1}, ttl=5))
    with pytest.raises(memlab.InputError, match="ttl_days"):
        store.batch([base.PutOp(("a",), "k", {"x": 1}, ttl=0.5)])
    for value in [
        {"x": object()},
        {1: "x"},
        {"x": float("inf")},
        {"x": {"y": {1, 2}}},
        ["x"],
        {"x": "\ud83c\udf55"},
    ]:
        with pytest.raises(ValueError, match=r"JSON|string|dict|UTF-16"):
            store.put(("a",), "k", value)
    with pytest.raises(memlab.errors.PrivacyError, match="OpenAI key"):
        store.put(("a",), "k", {"key": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"})
    for wrong in ({"limit": -1}, {"limit": "x"}, {"offset": -1}, {"query": 5}, {"filter": [1]}):
        with pytest.raises(memlab.InputError):
            store.search(("a",), **wrong)
    for wrong in ([5], True, "text"):
        with pytest.raises(memlab.InputError, match="index"):
            store.put(("a",), "k", {"x": 1}, index=wrong)
    for wrong in ({"max_depth": "x"}, {"limit": "x"}, {"offset": -3}):
        with pytest.raises(memlab.InputError):
            store.list_namespaces(**wrong)
    assert not len(lab)


def test_a_batch_reads_first_and_the_last_put_counts(base, store, lab):
    results = store.batch(
        [
            base.PutOp(("a",), "k", {"n": 1}),
            base.GetOp(("a",), "k"),
            base.PutOp(("a",), "k", {"n": 2}),
        ]
    )
    assert results == [None, None, None]
    assert store.get(("a",), "k").value == {"n": 2}
    assert len(lab) == 1


def test_the_store_is_durable_and_shared_by_two_processes(make_store, tmp_path):
    def opened():
        return memlab.open(tmp_path / "lab", embedder=load_embedder(letters, name="letters"))

    with opened() as lab, opened() as other:
        make_store(lab).put(("a",), "k", {"n": 1})
        make_store(other).put(("a",), "k", {"n": 2})
        store = make_store(lab)
        assert store.get(("a",), "k").value == {"n": 2}
        make_store(lab, name="apart").put(("a",), "k", {"n": 3})
        assert store.get(("a",), "k").value == {"n": 2}
    with opened() as again:
        assert make_store(again).get(("a",), "k").value == {"n": 2}


def test_a_graph_remembers_from_one_thread_to_another(store):
    graph = pytest.importorskip("langgraph.graph")
    from langgraph.store.base import BaseStore

    def answer(state: dict, *, store: BaseStore) -> dict:
        match = store.search(("ada",), query=state["said"])
        store.put(("ada",), str(len(store.search(("ada",)))), {"said": state["said"]})
        return {"said": state["said"], "known": [item.value["said"] for item in match]}

    builder = graph.StateGraph(dict)
    builder.add_node("answer", answer)
    builder.add_edge(graph.START, "answer")
    built = builder.compile(store=store)
    assert built.invoke({"said": "I like pizza with olives"})["known"] == []
    assert built.invoke({"said": "order pizza with olives"})["known"] == [
        "I like pizza with olives"
    ]


def test_the_asynchronous_half(store):
    async def talk():
        await asyncio.gather(*(store.aput(("a", str(n % 3)), str(n), {"n": n}) for n in range(12)))
        await store.adelete(("a", "0"), "0")
        return await asyncio.gather(
            store.aget(("a", "1"), "1"),
            store.asearch(("a",), limit=50),
            store.alist_namespaces(prefix=("a",)),
        )

    as_plain, every, namespaces = asyncio.run(talk())
    assert as_plain.value == {"n": 1}
    assert sorted(item.value["n"] for item in every) == list(range(1, 12))
    assert namespaces == [("a", "0"), ("a", "1"), ("a", "2")]
