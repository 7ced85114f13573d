"""mem0's calls on a lab, as mem0's documentation uses them."""

import asyncio
import logging

import polars as pl
import pytest
from embedders import letters

import memlab
from memlab.io.adapters import AsyncMem0Memory, Mem0Memory
from memlab.io.adapters._records import decode_value
from memlab.kernel.embedding import load_embedder


@pytest.fixture
def memory(lab):
    return Mem0Memory(lab)


def texts(filter_texts):
    return [item["memory"] for item in filter_texts["results"]]


def test_the_life_of_a_memory(lab, memory):
    added = memory.add("I prefer tea over coffee", user_id="ada", metadata={"category": "drinks"})[
        "results"
    ]
    assert [(item["memory"], item["event"], item["role"]) for item in added] == [
        ("I prefer tea over coffee", "ADD", "user")
    ]
    id = added[0]["id"]
    assert memory.get(id)["metadata"] == {"category": "drinks"}
    assert memory.get(id)["user_id"] == "ada"
    assert memory.update(id, text="I prefer mate over coffee") == {
        "message": "Memory updated successfully!"
    }
    memory.update(id, metadata={"sure": True})
    assert memory.get(id)["memory"] == "I prefer mate over coffee"
    assert memory.get(id)["metadata"] == {"category": "drinks", "sure": True}
    assert memory.delete(id) == {"message": "Memory deleted successfully!"}
    assert memory.get(id) is None
    history = memory.history(id)
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in history] == [
        ("ADD", None, "I prefer tea over coffee"),
        ("UPDATE", "I prefer tea over coffee", "I prefer mate over coffee"),
        ("DELETE", "I prefer mate over coffee", None),
    ]
    lab.restore(2)
    assert memory.get(id)["memory"] == "I prefer mate over coffee"


@pytest.mark.long
def test_a_search_is_a_recall_of_whose_memory_it_is(lab, memory):
    memory.add("I prefer tea", user_id="ada")
    memory.add("I prefer coffee", user_id="bob")
    match = memory.search("what do I prefer to drink?", filters={"user_id": "ada"})
    assert texts(match) == ["I prefer tea"]
    assert match["results"][0]["score"] == memory.hits[0].score
    assert lab.slates().decisions.collect().height == 1
    assert memory.search("tea", filters={"user_id": "eve"}) == {"results": []}
    with pytest.raises(ValueError, match="user_id, agent_id, run_id"):
        memory.search("tea", filters={"category": "x"})
    with pytest.raises(ValueError, match="user_id, agent_id, run_id"):
        memory.search("tea", filters={"OR": [{"user_id": "ada"}, {"category": "x"}]})


def test_infer_leaves_out_what_is_not_worth_it(memory):
    said = [
        {"role": "system", "content": "You are kind."},
        {"role": "user", "content": "I prefer tea over coffee"},
        {"role": "assistant", "content": "How are you?"},
    ]
    assert texts(memory.add(said, user_id="ada")) == ["I prefer tea over coffee"]
    assert texts(memory.add(said, user_id="bob", infer=False)) == [
        "I prefer tea over coffee",
        "How are you?",
    ]


def test_filters_as_mem0_writes_them(memory):
    for number in range(4):
        memory.add(
            f"note {number}",
            user_id="ada",
            infer=False,
            metadata={"n": number, "tag": f"t{number % 2}"},
        )

    def filter_texts(**narrower):
        return texts(memory.get_all(filters={"user_id": "ada", **narrower}))

    assert filter_texts(n={"gte": 1, "lt": 3}) == ["note 1", "note 2"]
    assert filter_texts(tag="t1") == ["note 1", "note 3"]
    assert filter_texts(n={"in": [0, 3]}) == ["note 0", "note 3"]
    assert filter_texts(NOT=[{"tag": "t1"}]) == ["note 0", "note 2"]
    assert filter_texts(OR=[{"n": 0}, {"n": 3}]) == ["note 0", "note 3"]
    assert filter_texts(missing="*") == []
    assert filter_texts(tag={"icontains": "T1"}) == ["note 1", "note 3"]
    assert texts(memory.get_all(filters={"AND": [{"user_id": "ada"}, {"n": 2}]})) == ["note 2"]
    with pytest.raises(memlab.InputError, match="Did you mean gte"):
        filter_texts(n={"gtee": 1})


def test_identity_is_what_the_arguments_say(memory):
    id = memory.add("tea", user_id="ada", infer=False, metadata={"user_id": "bob", "role": "x"})[
        "results"
    ][0]["id"]
    memory.update(id, metadata={"user_id": "bob"})
    assert memory.get(id)["user_id"] == "ada"
    assert not memory.get_all(filters={"user_id": "bob"})["results"]
    memory.add("coffee", user_id="bob", infer=False)
    memory.delete_all(user_id="ada")
    assert texts(memory.get_all(filters={"user_id": "bob"})) == ["coffee"]
    for call in [
        lambda: memory.add("x"),
        lambda: memory.add("x", user_id="a b"),
        lambda: memory.delete_all(),
        lambda: memory.add([{"role": "user"}], user_id="ada"),
        lambda: memory.add("x", user_id="ada", metadata={"x": float("nan")}),
        lambda: memory.add("x", user_id="ada", expiration_date="soon"),
        lambda: memory.update("none", text="x"),
    ]:
        with pytest.raises(memlab.InputError):
            call()


def test_expired_memories_are_hidden():
    with memlab.open(
        embedder=load_embedder(letters, name="letters"), clock=memlab.ManualClock("2026-05-05")
    ) as lab:
        memory = Mem0Memory(lab)
        memory.add("old", user_id="ada", infer=False, expiration_date="2026-05-04")
        memory.add("new", user_id="ada", infer=False, expiration_date="2026-05-05")
        assert texts(memory.get_all(filters={"user_id": "ada"})) == ["new"]
        assert texts(memory.get_all(filters={"user_id": "ada"}, show_expired=True)) == [
            "old",
            "new",
        ]


def test_a_secret_is_redacted_in_a_text_and_refused_in_metadata(lab, memory):
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    assert texts(memory.add(f"the key is {key}", user_id="ada", infer=False)) == [
        "the key is [REDACTED: OpenAI key]"
    ]
    with pytest.raises(memlab.MemlabError, match="OpenAI key"):
        memory.add("tea", user_id="ada", infer=False, metadata={"key": key})
    assert len(lab) == 1


@pytest.mark.long
def test_a_name_that_quotes_is_nobody_else(lab, memory):
    memory.add("mine", user_id="ada", infer=False)
    for name in ['x,"user_id=ada",y', '"user_id=ada"', "ada,", "ADA", 'ada"']:
        memory.add("of another", user_id=name, infer=False)
        assert texts(memory.search("mine or of another", filters={"user_id": "ada"})) == ["mine"]
        assert texts(memory.search("mine or of another", filters={"user_id": name})) == [
            "of another"
        ]
    memory.add("both", user_id="ada", run_id="r1", infer=False)
    assert texts(memory.search("both or mine", filters={"user_id": "ada", "run_id": "r1"})) == [
        "both"
    ]
    assert "r1" not in lab.slates().decisions.collect()["query"].to_list()


@pytest.mark.long
def test_a_search_explores_as_the_pack_declares_and_returns_what_is_logged(lab, memory):
    lab.policies.use("(pack always :inherits memlab) (setting probe-rate 1)")
    for number in range(12):
        memory.add(f"I own boat number {number}", user_id="ada")
    for count, probes in ((4, 1), (1, 0)):
        found = memory.search("boat", filters={"user_id": "ada"}, top_k=count)["results"]
        shown = lab.slates().exposures.collect()
        last = shown.filter(pl.col("decision") == shown["decision"].max())
        assert (last.height, last["probe"].sum()) == (count, probes)
        assert len(found) == count


REFUSED = [
    (lambda m: m.search("tea", filters={"user_id": " "}), "Invalid user_id: cannot be empty"),
    (lambda m: m.search("tea", filters={"run_id": "a b"}), "Invalid run_id: cannot contain white"),
    (lambda m: m.search(" ", filters={"user_id": "ada"}), "Invalid query: cannot be empty"),
    (lambda m: m.search("tea", filters={"user_id": "ada"}, threshold=2), "Must be between 0 and 1"),
    (lambda m: m.search("tea", filters={"user_id": "ada"}, top_k=-1), "Must be a non-negative"),
    (lambda m: m.search("tea", user_id="ada"), "Top-level entity parameters"),
    (lambda m: m.get_all(user_id="ada"), "Top-level entity parameters"),
    (lambda m: m.get_all(filters={"user_id": "ada"}, topk=3), "no argument"),
    (lambda m: m.get_all(filters={"user_id": "*"}), "must contain at least one"),
    (lambda m: m.add("x"), "At least one of 'user_id', 'agent_id', or 'run_id' must be provided"),
    (lambda m: m.add("x", filters={"app_id": "a"}), "is not an owner"),
    (lambda m: m.add("x", user_id="ada", memory_type="other"), "Please pass procedural_memory"),
    (lambda m: m.add("x", user_id="ada", prompt="Be brief"), "instructs a language model"),
    (lambda m: m.add("x", user_id="ada", timestamp=float("inf")), "timestamp"),
    (lambda m: m.delete_all(), "use the `reset"),
    (lambda m: m.delete("none"), "Memory with id none not found"),
    (lambda m: m.update("none"), "At least one of text, metadata"),
    (lambda m: Mem0Memory.from_config({"llm": {"provider": "openai"}}), "Remove llm"),
    (lambda m: Mem0Memory.from_config({"vector_store": {"provider": "qdrant"}}), "other provider"),
]


@pytest.mark.parametrize(("call", "why"), REFUSED)
def test_what_mem0_refuses_is_refused_in_its_words_and_changes_nothing(lab, memory, call, why):
    memory.add("I prefer tea", user_id="ada")
    head = lab.io.store.journal.head
    with pytest.raises(memlab.InputError, match=why):
        call(memory)
    assert lab.io.store.journal.head == head


def test_owners_are_trimmed_and_may_be_numbers(memory):
    memory.add("I prefer tea", user_id=42)
    assert texts(memory.get_all(filters={"user_id": "42"})) == ["I prefer tea"]
    assert texts(memory.search("tea", filters={"user_id": " 42 "})) == ["I prefer tea"]
    memory.add("I prefer coffee", filters={"user_id": "bob", "agent_id": "x"})
    assert texts(memory.get_all(filters={"agent_id": "x"})) == ["I prefer coffee"]
    memory.delete_all(user_id=42)
    assert texts(memory.get_all(filters={"user_id": 42})) == []
    memory.reset()
    assert texts(memory.get_all(filters={"user_id": "bob"})) == []
    with pytest.raises(NotImplementedError):
        memory.chat("tea")


@pytest.mark.long
def test_times_explanations_and_procedures(lab, memory, caplog):
    memory.add("I prefer tea", user_id="ada", timestamp="2026-01-02T03:04:05Z")
    memory.add("I prefer coffee", user_id="ada", timestamp=0)
    created = {
        item["memory"]: item["created_at"]
        for item in memory.get_all(filters={"user_id": "ada"})["results"]
    }
    assert created["I prefer tea"].startswith("2026-01-02T03:04:05")
    assert created["I prefer coffee"].startswith("1970-01-01T00:00:00")
    asked = {"filters": {"user_id": "ada"}, "explain": True, "reference_date": "2026-02-01"}
    item = memory.search("tea", **asked)["results"][0]
    assert sum(item["score_details"].values()) == pytest.approx(item["score"])
    assert str(lab.slates().decisions.collect()["at"][-1]).startswith("2026-02-01")
    talk = [{"role": "user", "content": "Run make"}, {"role": "assistant", "content": "Then push"}]
    made = memory.add(talk, agent_id="coder", memory_type="procedural_memory")["results"]
    assert [item["memory"] for item in made] == ["Run make\nThen push"]
    with caplog.at_level(logging.WARNING):
        memory.update(made[0]["id"], data="Run make, then push")
    assert "deprecated" in caplog.text
    assert memory.get(made[0]["id"])["memory"] == "Run make, then push"
    assert lab.memories["kind"].to_list()[-1] == "procedure"


@pytest.mark.long
def test_a_configuration_opens_a_lab_and_closes_it(tmp_path):
    config = {"vector_store": {"provider": "memlab", "config": {"path": str(tmp_path / "lab")}}}
    with Mem0Memory.from_config(config) as memory:
        memory.add("I prefer tea", user_id="ada")

    async def read():
        async with AsyncMem0Memory.from_config(config) as again:
            await again.add("I prefer rain", user_id="ada")
            found = await again.search("tea", filters={"user_id": "ada"}, top_k=1)
            return found, again.hits, await again.get_all(filters={"user_id": "ada"})

    found, hits, everything = asyncio.run(read())
    assert texts(found) == ["I prefer tea"]
    assert len(hits) == 1
    assert texts(everything) == ["I prefer tea", "I prefer rain"]


@pytest.mark.long
def test_a_search_of_an_owner_reads_no_memory_in_python(lab, memory, monkeypatch):
    memory.add([{"role": "user", "content": f"I own boat {n}"} for n in range(30)], user_id="ada")
    decoded = []
    monkeypatch.setattr(
        "memlab.io.adapters.mem0.decode_value",
        lambda text: decoded.append(text) or decode_value(text),
    )
    assert len(memory.search("boat", filters={"user_id": "ada"}, top_k=3)["results"]) == 3
    assert len(decoded) == 3
    assert len(memory.get_all(filters={"user_id": "ada"}, top_k=3)["results"]) == 3
    assert len(decoded) <= 9
