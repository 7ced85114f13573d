"""Lives that several tests look at; each is lived once."""

import pytest
from lives import SINGLE, small

from memlab.simulation import WORLDS, live


@pytest.fixture(scope="session")
def fortnight():
    """The world that differs, lived small, logged with one probe at most."""
    with live(small("differs"), pack=SINGLE) as life:
        yield life


@pytest.fixture(scope="session")
def reversal():
    """The world that reverses, as large as it is."""
    with live(WORLDS["reverses"]) as life:
        yield life
