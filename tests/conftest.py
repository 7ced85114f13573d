"""What several test files share: a quick embedder, a clock that moves when told to, and a lab on disk."""

import hashlib

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import memlab
from memlab.embedding import load_embedder

# Tests assert what is right, never how long it takes: machines are noisy.
settings.register_profile("memlab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memlab")


def letters(texts):
    """A quick stand-in for an encoder: hashed character trigrams, so that texts that share words are near."""
    out = np.zeros((len(texts), 32))
    for row, text in enumerate(texts):
        padded = f"  {text.lower()}  "
        for start in range(len(padded) - 2):
            digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=2).digest()
            out[row, digest[0] % 32] += 1 if digest[1] % 2 else -1
    return out


@pytest.fixture(scope="session")
def trigrams():
    return load_embedder(letters)


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-01T12:00:00")


@pytest.fixture
def lab(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock) as opened:
        yield opened


@pytest.fixture
def disk(tmp_path, trigrams, clock):
    """Opens the same lab on disk, as often as one likes."""

    def opened(**more):
        return memlab.open(tmp_path / "agent.memlab", embedder=trigrams, clock=clock, **more)

    return opened
