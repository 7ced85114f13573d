"""Simulated runs that several tests read; each is lived once."""

import pytest
from lives import SINGLE, small

from memlab.science.simulation import WORLDS, live


@pytest.fixture(scope="session")
def fortnight():
    """Return a small run of the world whose packs differ, logged with at most one probe."""
    with live(small("differs"), pack=SINGLE) as life:
        yield life


SHORT = small("reverses", days=50, questions_per_day=5)
REVERSES = [
    pytest.param(SHORT, id="short"),
    pytest.param(WORLDS["reverses"], id="whole", marks=pytest.mark.slow),
]


@pytest.fixture(scope="session", params=REVERSES)
def reversal(request):
    """Return a run of the world that reverses; of full size with ``pytest -m slow``."""
    with live(request.param) as life:
        yield life
