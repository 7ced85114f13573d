"""Journals that an earlier version's purge left with names cut to nothing open again: the fold gets a name."""

import pytest

from memlab.kernel.journal import Event
from memlab.kernel.state import PLACEHOLDER, build_join, build_values
from memlab.kernel.verbs.fact_rows import get_entities
from memlab.kernel.verbs.projections import new_state
from memlab.subjects.mending import repair_names

MOVED = {"subject": [], "object": [], "edges": [], "shared": []}


def event(kind, seq=9, **body):
    return Event(seq, 0, kind, body)


def test_a_sound_state_is_unchanged():
    assert repair_names(event("entity", name="Ada", type=None, aliases=["A."])) is None
    assert repair_names(event("merge-entity", entity="Ada", into="Bob", moved=MOVED)) is None
    assert repair_names(event("remember", first=1, count=1, columns={})) is None


def test_a_name_is_taken_from_what_the_event_still_tells():
    lost = event("entity", name="", type="person", aliases=["Ada", " "])
    assert repair_names(lost) == {"name": "Ada", "type": "person", "aliases": []}
    joined = {"join": [build_join([1, 2], "entity", ["[purged 7-1]", "Ada"], "mentions")]}
    assert (
        repair_names(event("merge-entity", entity="Bob", into="", moved=MOVED, **joined))["into"]
        == "Ada"
    )
    renamed = {"set": [build_values([2], subject="Ada")]}
    assert (
        repair_names(event("split-entity", **{"from": "Bob"}, entity="", aliases=[], **renamed))[
            "entity"
        ]
        == "Ada"
    )


def test_a_memory_without_an_event_has_a_placeholder_of_its_own():
    both = repair_names(event("merge-entity", entity="", into="", moved=MOVED))
    assert both["entity"].startswith(PLACEHOLDER)
    assert both["into"].startswith(PLACEHOLDER)
    assert both["entity"] != both["into"]
    assert (
        repair_names(event("merge-entity", entity="rest", into="Rest", moved=MOVED))["entity"]
        != "rest"
    )


def test_imported_registers_and_clusters_have_names_again():
    entities = {"entries": [["", None, 1, 3, None, {}], ["Ada", None, 0, 3, None, {}]]}
    entities |= {"names": ["", "Ada", ""], "owners": [0, 1, 1]}
    lost = event("import", registers={"entities": entities, "recalls": [0, []]})
    body = repair_names(lost)
    state = new_state()
    state.fold([Event(9, 0, "import", body)], None)
    assert [entry.name for entry in get_entities(state).entries] == ["[purged 9-00]", "Ada"]
    assert get_entities(state).summarize_all()[1].aliases == ()
    clusters = [{"id": 4, "name": "", "size": 2}, {"id": 5, "size": 2}]
    assert (
        repair_names(event("cluster", clusters=clusters))["clusters"][0]["name"] == "[purged 9-04]"
    )


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "entity", "name": "", "type": "person", "aliases": []},
        {"kind": "merge-entity", "entity": "", "into": "Ada", "moved": MOVED},
        {"kind": "merge-entity", "entity": " ", "into": "", "moved": MOVED},
        {"kind": "split-entity", "entity": ""},
        {
            "kind": "split-entity",
            "entity": "",
            "from": "",
            "aliases": ["", "x"],
            "mentions": 1,
            "last": 3,
        },
    ],
)
def test_the_fold_takes_what_was_mended(body):
    kind = body.pop("kind")
    embedder = Event(1, 0, "embedder", {"fingerprint": "f", "name": "f", "dim": 4})
    new_state().fold([embedder, Event(9, 0, kind, repair_names(event(kind, **body)))], None)
