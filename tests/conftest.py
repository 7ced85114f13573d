"""What several test files share: a quick embedder, a clock that moves when told to, and a lab on disk."""

import pytest
from embedders import letters
from hypothesis import HealthCheck, settings

import memlab
from memlab.embedding import load_embedder

# Tests assert what is right, never how long it takes: machines are noisy.
settings.register_profile("memlab", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memlab")


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
