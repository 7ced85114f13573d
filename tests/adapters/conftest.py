"""A lab in memory, and a folder for labs on disk."""

import pytest
from embedders import letters

import memlab
from memlab.kernel.embedding import load_embedder


@pytest.fixture
def lab():
    with memlab.open(embedder=load_embedder(letters, name="letters")) as lab:
        yield lab
