"""What mem0 and LangGraph stores export. The shapes are those that mem0ai 2.2.1 and langgraph 1.2.22 give."""

import json
from datetime import UTC, datetime

import pytest

from memlab.errors import DatasetError

MEM0 = {
    "results": [
        {
            "id": "0f9b3c52-1e11-4bb0-9f4c-0d2c1f6c1a01",
            "memory": "Dev works at TechCorp as a senior engineer",
            "hash": "6d6e2b",
            "metadata": {"type": "fact", "category": "professional", "source_app": "desk"},
            "created_at": "2026-01-05T10:15:30.123456-08:00",
            "updated_at": "2026-01-06T00:00:00+00:00",
            "user_id": "dev",
            "agent_id": "coder",
            "run_id": "r1",
            "actor_id": "Dev",
            "role": "user",
        },
        {
            "id": "0f9b3c52-1e11-4bb0-9f4c-0d2c1f6c1a02",
            "memory": "Prefers morning meetings",
            "hash": "aa",
            "metadata": None,
            "created_at": "2026-01-07T10:15:30-08:00",
            "updated_at": None,
            "user_id": "arjun",
            "expiration_date": "2026-12-31",
            "categories": ["work", "meetings"],
        },
    ]
}
LANGGRAPH = [
    {
        "namespace": ["memories", "u1"],
        "key": "m-1",
        "value": {"text": "Likes tabs", "kind": "preference", "tags": ["style"], "score_hint": 3},
        "created_at": "2026-02-01T08:00:00.000001+00:00",
        "updated_at": "2026-02-02T08:00:00+00:00",
    },
    {
        "namespace": ["memories", "u1"],
        "key": "m-2",
        "value": {"kind": "Memory", "content": {"content": "Lives in Oslo"}},
        "created_at": "2026-02-03T08:00:00+00:00",
        "updated_at": "2026-02-03T08:00:00+00:00",
    },
    {
        "namespace": ["profile"],
        "key": "rules",
        "value": {"rules": ["short", "polite"], "n": 2},
        "created_at": "2026-02-04T08:00:00+00:00",
        "updated_at": "2026-02-04T08:00:00+00:00",
        "score": 0.3,
    },
]


@pytest.fixture
def file(tmp_path):
    def written(value, name="export.json"):
        path = tmp_path / name
        path.write_text(json.dumps(value))
        return path

    return written


@pytest.mark.long
def test_mem0(lab, file):
    loaded = lab.load(file(MEM0))
    first, second = lab.memories.to_dicts()
    assert first["text"] == "Dev works at TechCorp as a senior engineer"
    assert first["origin"] == "mem0:0f9b3c52-1e11-4bb0-9f4c-0d2c1f6c1a01"
    assert (
        first["created"]
        == first["accessed"]
        == datetime(2026, 1, 5, 18, 15, 30, 123456, tzinfo=UTC)
    )
    assert first["changed"] == datetime(2026, 1, 6, tzinfo=UTC)
    kept = {
        name: first[name] for name in ("kind", "creator", "agents", "session", "speaker", "tags")
    }
    assert kept == {
        "kind": "fact",
        "creator": "dev",
        "agents": ["coder"],
        "session": "r1",
        "speaker": "Dev",
        "tags": ["professional"],
    }
    assert second["tags"] == ["work", "meetings"]
    assert second["valid_until"] == datetime(2026, 12, 31, tzinfo=UTC)
    # Every field that is left out is reported.
    assert loaded.left_out == {"metadata.source_app": 1, "role": 1}
    assert "metadata.source_app (1)" in repr(loaded)
    assert lab.recall("who works at TechCorp?")[0].id == 1


@pytest.mark.long
def test_mem0_as_its_platform_pages_it_and_as_a_bare_list(lab, file):
    lab.load(file({"count": 2, "next": None, "previous": None, **MEM0}))
    assert lab.load(file(MEM0["results"], "bare.json")).count("known") == 2
    assert len(lab) == 2


@pytest.mark.long
def test_langgraph(lab, file):
    loaded = lab.load(file(LANGGRAPH))
    one, two, three = lab.memories.to_dicts()
    assert (one["text"], one["kind"], one["tags"], one["ref"]) == (
        "Likes tabs",
        "preference",
        ["style"],
        "m-1",
    )
    assert (one["project"], one["origin"]) == ("memories/u1", "langgraph:memories/u1/m-1")
    assert one["created"] == datetime(2026, 2, 1, 8, 0, 0, 1, tzinfo=UTC)
    assert two["text"] == "Lives in Oslo"
    assert json.loads(three["text"]) == {"rules": ["short", "polite"], "n": 2}
    assert loaded.left_out == {"value.score_hint": 1, "value.kind": 1}


@pytest.mark.long
def test_langgraph_as_its_server_answers_and_line_by_line(lab, file, tmp_path):
    items = [
        {**item, "createdAt": item["created_at"], "updatedAt": item["updated_at"]}
        for item in LANGGRAPH
    ]
    for item in items:
        del item["created_at"], item["updated_at"]
    lab.load(file({"items": items}), project="mine")
    assert lab.memories["project"].to_list() == ["mine"] * 3
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(json.dumps(item) for item in LANGGRAPH))
    assert lab.load(path).count("known") == 3


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"id": 1, "memory": "  "}, "entry 2, field memory: Expected a text"),
        ({"id": None, "memory": "a"}, "entry 2, field id"),
        ({"id": "x", "memory": "a", "created_at": "soon"}, "entry 2, field created_at"),
        ({"id": "x", "memory": "a", "metadata": "m"}, "entry 2, field metadata"),
        ({"id": "x", "memory": "a", "categories": [1]}, "entry 2, field categories"),
        ({"id": "x", "memory": "a", "agent_id": 3}, "entry 2, field agent_id"),
        ("a", "entry 2: A memory must be an object, not str"),
    ],
)
def test_a_bad_entry_of_mem0_refuses_the_file(lab, file, entry, message):
    with pytest.raises(DatasetError, match=f"export.json, {message}"):
        lab.load(file({"results": [MEM0["results"][0], entry]}))
    assert not len(lab)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": 3}, "entry 1, field key"),
        ({"namespace": "a.b"}, "entry 1, field namespace"),
        ({"value": []}, "entry 1, field value"),
    ],
)
def test_a_bad_item_of_langgraph_refuses_the_file(lab, file, change, message):
    with pytest.raises(DatasetError, match=message):
        lab.load(file([LANGGRAPH[0] | change]))


def test_an_unknown_format_says_so(lab, file):
    with pytest.raises(DatasetError, match="no column looks like a text"):
        lab.load(file([{"title": "a"}]))
    with pytest.raises(DatasetError, match="Expected a list of memories"):
        lab.load(file({"a": 1}), format="mem0")
    assert lab.load(file([])).count("added") == 0
    with pytest.raises(DatasetError, match="field memory"):
        lab.load(file(LANGGRAPH), format="mem0")
