"""A conflict that neither side denies is merged: both are combined into one."""

import numpy as np
import pytest

import memlab

pytestmark = pytest.mark.long


def embed(texts):
    """Embed texts so that all texts about Ada are near."""
    out = np.zeros((len(texts), 64))
    for row, text in enumerate(texts):
        out[row, 0] = 0.95 if "Ada" in text else 0.0
        out[row, 1 + sum(map(ord, text)) % 63] = 0.31 if "Ada" in text else 1.0
    return out


ACME = {
    "text": "Ada works at Acme.",
    "subject": "Ada",
    "predicate": "works-at",
    "value": "Acme",
    "confidence": 0.9,
    "kind": "personal",
    "agents": ["coach"],
    "tags": ["work"],
}
GLOBEX = {
    **ACME,
    "text": "Ada works at Globex in sales",
    "value": "Globex",
    "confidence": 0.5,
    "agents": ["tutor"],
}


@pytest.fixture
def lab(clock):
    with memlab.open(pack="companion", clock=clock, embedder=embed) as lab:
        lab.remember([ACME])
        yield lab


def test_the_merged_memory_has_the_content_of_both(lab):
    result = lab.remember([GLOBEX | {"provenance": "inferred"}])
    now = lab.memories.filter(status="active").to_dicts()
    assert [row["text"] for row in now] == ["Ada works at Acme; Ada works at Globex in sales"]
    assert [(row["value"], row["confidence"], row["agents"]) for row in now] == [
        ("Acme; Globex", 0.9, ["tutor", "coach"])
    ]
    assert result.standing == (now[0]["id"],)
    assert lab.memories["superseded_by"].to_list() == [now[0]["id"], None]
    assert any(str(why).startswith("Merged: ") for why in result.outcomes["why"])
    assert lab.recall("What does Ada do?", log=False).ids[0] == now[0]["id"]


def test_the_vector_is_that_of_the_combined_text(lab):
    lab.remember([GLOBEX | {"provenance": "inferred"}])
    (text,) = lab.memories.filter(status="active")["text"]
    stored = lab.io.store.state.vectors.take(np.array([1]))
    np.testing.assert_array_equal(stored, lab.io.embedder.encode([text]))


def test_a_statement_without_new_content_adds_no_words(lab):
    lab.remember([GLOBEX | {"provenance": "inferred", "text": "Ada works"}])
    assert lab.memories.filter(status="active")["text"].to_list() == ["Ada works at Acme."]


def test_a_user_statement_supersedes_the_older_one(lab):
    lab.remember([GLOBEX])
    assert lab.memories.filter(status="active")["text"].to_list() == [
        "Ada works at Globex in sales"
    ]
