"""The label policy is asked without a question."""

import numpy as np
import polars as pl
import pytest

from memlab.kernel.policies import load_pack, pack_names
from memlab.subjects.clusters.stats import label_memories

pytestmark = pytest.mark.long

ROWS = [
    {"text": "Where is the kayak?", "session": "1", "tags": ["boat"], "kind": "goal"},
    {"text": "Behind the garage.", "session": "1", "importance": 0.9, "stability": 3.0},
    {"text": "It leaks", "session": "1", "pinned": True, "ttl_days": 3, "files": ["a.py", "b.py"]},
    {"text": "Fixed!", "session": "2", "emotional_weight": 80},
]


@pytest.fixture
def state(lab, clock):
    lab.remember(ROWS, chain=True)
    clock.advance(days=2)
    for query in ("kayak", "garage", "leaks"):
        hits = lab.recall(query, limit=2)
        lab.feedback(hits[0], "success")
        clock.advance(hours=30)
    return lab.io.store.state


@pytest.mark.parametrize("name", pack_names())
def test_the_label_policy_of_every_pack_can_be_asked(state, clock, name):
    words = label_memories(state, load_pack(name), np.arange(4), clock())
    assert len(words) == 4
    assert words.dtype == pl.String
    assert words.null_count() == 0


def test_sets_nulls_and_constants(state, clock):
    def labels_by(source):
        pack = load_pack(f'(pack mine "Mine.")\n(defpolicy label {source})')
        return label_memories(state, pack, np.arange(4), clock()).to_list()

    assert labels_by('[tags] (if (has tags "boat") "wet" "dry")') == ["wet", "dry", "dry", "dry"]
    assert labels_by('[stability] (if (null? stability) "new" "known")') == [
        "new",
        "known",
        "new",
        "new",
    ]
    assert labels_by('[] "same"') == ["same"] * 4
    assert labels_by("[kind] kind") == ["goal", "fact", "fact", "fact"]


def test_no_memories(state, clock):
    assert label_memories(state, load_pack("memlab"), np.arange(0), clock()).to_list() == []
