"""A purge takes the names in the rows of an extension's events for names, and their words for no names."""

import pytest

import memlab
from memlab import Extension
from memlab.kernel.extension import forget_extension
from memlab.kernel.state import EventType, Field
from memlab.kernel.state.events import rows_field

SEEN = rows_field({"memory": Field("memory"), "who": Field("name"), "how": Field("word")})
TOLD = Field("name", held="reference", shared=True)


@pytest.fixture
def sightings():
    kind = EventType("sightings/seen", "A person was seen.", {"seen": SEEN, "told": TOLD})
    memlab.extend(Extension("sightings", "1.0", events=(kind,)))
    yield
    forget_extension("sightings")


def test_a_purge_takes_out_the_names_of_a_purged_row_and_not_its_words(sightings, trigrams):
    with memlab.open(embedder=trigrams) as lab:
        lab.remember(["A visitor came to the shed", "There is a shed in Ghent"])
        seen = {"memory": [1, 2], "who": ["zanzibarov", "meg"], "how": ["glimpsed", "met"]}
        with lab.io.store.writing() as tx:
            tx.event("sightings/seen", {"seen": seen}, at=0)
            tx.event("sightings/seen", {"told": "zanzibarov"}, at=0)
            tx.event("sightings/seen", {"told": "glimpsed"}, at=0)
        lab.purge(1)
        _, name, word = lab.io.store.journal.events(kinds=["sightings/seen"])
        assert name.body["told"] != "zanzibarov"
        assert word.body["told"] == "glimpsed"
