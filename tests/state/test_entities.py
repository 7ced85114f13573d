"""Entities: names in any spelling, merges that can be undone, and a fold that may stop anywhere."""

import msgspec
import pytest
from events import Event
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import InputError
from memlab.kernel.schema import NEVER
from memlab.kernel.state import Entities, entity_key, normalize_entity_name

NAMES = ["Ada", "ada", "A. L.", "Zoë", "ZOE\u0308", "Straße", "نور", "🦊", "王明"]


def mention(at, *names, first=1, **columns):
    join = [
        {
            "source": [first + position for position in range(len(names))],
            "kind": "entity",
            "target": list(names),
        }
    ]
    join[0] |= {"relation": "mentions", "weight": [1.0] * len(names)}
    return Event(
        at, at, "remember", {"first": first, "count": len(names), "columns": columns, "join": join}
    )


def nothing_moved(**ids):
    return {"subject": [], "object": [], "edges": [], "shared": []} | ids


def folded(events):
    entities = Entities()
    for event in events:
        entities.fold(event)
    return entities


class TestNames:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("Ada Lovelace", "  ada   LOVELACE "),
            ("Zo\u00eb", "ZOE\u0308"),
            ("Straße", "STRASSE"),
            ("\u200f\u0646\u0648\u0631\u200e", "\u0646\u0648\u0631"),
            ("🦊", "🦊 "),
            ("ΟΔΟΣ", "οδος"),
        ],
    )
    def test_two_spellings_of_one_name(self, first, second):
        assert entity_key(first) == entity_key(second)

    def test_strings_that_are_no_spelling_of_a_name(self):
        assert entity_key("Ada") != entity_key("Adá") != entity_key("Ad a")

    @pytest.mark.parametrize("empty", ["", " ", "\n\t", "\u200e\u200f", "\u2067 \u2069"])
    def test_a_name_of_nothing_is_refused(self, empty):
        with pytest.raises(InputError, match="is empty"):
            normalize_entity_name(empty)

    @pytest.mark.long
    @given(st.text(min_size=1, max_size=20))
    def test_a_key_is_the_key_of_itself(self, text):
        try:
            key = entity_key(text)
        except InputError:
            return
        assert entity_key(key) == key == entity_key(normalize_entity_name(text))


class TestMentions:
    def test_are_counted_under_any_case_and_dated_by_the_memory(self):
        entities = folded([mention(5, "Ada", "Oslo"), mention(9, "ADA", "ada", created=[3, 7])])
        ada, oslo = entities.summarize_all()
        assert (ada.name, ada.mentions, ada.last) == ("Ada", 3, 7)
        assert (oslo.mentions, oslo.last) == (1, 5)

    def test_a_declared_entity_has_none(self):
        entities = folded(
            [Event(1, 1, "entity", {"name": "Ada", "type": "person", "aliases": ["A. L."]})]
        )
        assert entities.summarize_all()[0][1:6] == ("Ada", "person", ("A. L.",), 0, NEVER)

    def test_memories_of_another_lab_are_counted_unless_their_register_is_imported(self):
        graph = {
            "nodes": [["tag", "x"], ["entity", "Ada"]],
            "source": [1, 2, 3],
            "target": [-2, -1, -2],
        }
        graph |= {"relation": ["mentions", "has-tag", "mentions"], "created": [4, 5, 3]}
        assert [
            item[1:6] for item in folded([Event(9, 9, "import", {"graph": graph})]).summarize_all()
        ] == [("Ada", None, (), 2, 4)]
        assert (
            len(folded([Event(9, 9, "import", {"graph": graph, "registers": {"entities": {}}})]))
            == 0
        )

    def test_other_relations_mention_nothing(self):
        event = mention(1, "Ada")
        event.body["join"][0]["relation"] = "relates-to"
        assert len(folded([event])) == 0

    def test_a_change_of_older_memories_is_dated_by_the_event(self):
        event = mention(9, "Ada", first=1, created=[3])
        event.body["first"] = 4
        assert folded([event]).summarize_all()[0].last == 9


class TestMerging:
    def test_all_names_stand_for_one_and_the_counts_add_up(self):
        entities = folded(
            [
                mention(1, "Ada", "A. L.", "Countess"),
                Event(
                    2,
                    2,
                    "merge-entity",
                    {"entity": "A. L.", "into": "Ada", "moved": nothing_moved()},
                ),
                Event(
                    3,
                    3,
                    "merge-entity",
                    {"entity": "Ada", "into": "Countess", "moved": nothing_moved()},
                ),
            ]
        )
        assert [entities.canonical_name(name) for name in ("ada", "a. l.", "countess")] == [
            "Countess"
        ] * 3
        ada, short, countess = entities.summarize_all()
        assert (countess.aliases, countess.mentions) == (("Ada", "A. L."), 3)
        assert ada.merged_into == short.merged_into == "Countess"
        assert countess.merged_into is None

    def test_splitting_the_middle_of_a_chain_takes_its_own_along(self):
        entities = folded(
            [
                mention(1, "a", "b", "c"),
                Event(
                    2,
                    2,
                    "merge-entity",
                    {"entity": "a", "into": "b", "moved": nothing_moved(edges=[1])},
                ),
                Event(
                    3,
                    3,
                    "merge-entity",
                    {"entity": "b", "into": "c", "moved": nothing_moved(edges=[1, 2])},
                ),
                Event(4, 4, "split-entity", {"entity": "b"}),
            ]
        )
        assert [entities.canonical_name(name) for name in "abc"] == ["b", "b", "c"]

    def test_splitting_the_first_of_a_chain_is_remembered_by_the_next(self):
        entities = folded(
            [
                mention(1, "a", "b", "c"),
                Event(
                    2,
                    2,
                    "merge-entity",
                    {"entity": "a", "into": "b", "moved": nothing_moved(edges=[1])},
                ),
                Event(
                    3,
                    3,
                    "merge-entity",
                    {"entity": "b", "into": "c", "moved": nothing_moved(edges=[1, 2])},
                ),
                Event(4, 4, "split-entity", {"entity": "a"}),
            ]
        )
        assert [entities.canonical_name(name) for name in "abc"] == ["a", "c", "c"]
        assert entities.entries[1].moved["edges"] == [2]

    def test_a_part_takes_names_and_mentions(self):
        body = {"entity": "Al", "from": "Alex", "aliases": ["Alex B."], "mentions": 1, "last": 1}
        entities = folded(
            [
                mention(1, "Alex", "Alex"),
                Event(2, 2, "entity", {"name": "Alex", "type": "person", "aliases": ["Al"]}),
                Event(3, 3, "split-entity", body),
            ]
        )
        alex, al = entities.summarize_all()
        assert (alex.name, alex.mentions, alex.aliases) == ("Alex", 1, ())
        assert (al.name, al.mentions, al.aliases, al.type) == ("Al", 1, ("Alex B.",), "person")

    def test_ten_thousand_aliases(self):
        names = [f"alias {number}" for number in range(10_000)]
        entities = folded([Event(1, 1, "entity", {"name": "Ada", "type": None, "aliases": names})])
        assert entities.canonical_name("ALIAS 9999") == "Ada"
        assert entities.summarize_all()[0].aliases == tuple(names)


@st.composite
def lives(draw):
    """Draw possible events of a lab: resolved names, and merges between roots."""
    events, entities = [], Entities()

    def happen(kind, body):
        events.append(Event(len(events) + 1, len(events) + 1, kind, body))
        entities.fold(events[-1])

    for _ in range(draw(st.integers(0, 12))):
        roots = [entry for entry in entities.entries if entry.into is None]
        merged = [entry for entry in entities.entries if entry.into is not None]
        what = draw(st.sampled_from(["mention", "mention", "entity", "merge", "undo", "part"]))
        one = draw(st.sampled_from(NAMES))
        name = entities.canonical_name(one) or one
        if what == "mention":
            happen("remember", mention(0, name, first=draw(st.integers(1, 9))).body)
        elif what == "entity":
            alias = draw(st.sampled_from(NAMES))
            if entities.find_number(alias) in (None, entities.find_number(one)):
                happen(
                    "entity",
                    {
                        "name": name,
                        "type": draw(st.sampled_from([None, "person"])),
                        "aliases": [alias],
                    },
                )
        elif what == "merge" and len(roots) > 1:
            pair = draw(st.lists(st.sampled_from(roots), min_size=2, max_size=2, unique_by=id))
            ids = draw(st.lists(st.integers(1, 9), unique=True, max_size=4))
            moved = nothing_moved(subject=ids, edges=ids)
            happen("merge-entity", {"entity": pair[0].name, "into": pair[1].name, "moved": moved})
        elif what == "undo" and merged:
            happen("split-entity", {"entity": draw(st.sampled_from(merged)).name})
        elif what == "part" and roots and entities.find_number("part") is None:
            source = draw(st.sampled_from(roots)).name
            happen(
                "split-entity",
                {"entity": "part", "from": source, "aliases": [], "mentions": 1, "last": 3},
            )
    return events


@pytest.mark.long
@given(lives(), st.data())
def test_prefix_and_rest_equal_all_written_down_or_not(events, data):
    cut = data.draw(st.integers(0, len(events)))
    whole, before = folded(events), folded(events[:cut])
    restored = Entities()
    restored.load(msgspec.msgpack.decode(msgspec.msgpack.encode(before.dump())))
    for entities in (before, restored):
        for event in events[cut:]:
            entities.fold(event)
        assert entities.dump() == whole.dump()
        assert entities.summarize_all() == whole.summarize_all()
        assert [entities.canonical_name(name) for name in NAMES] == [
            whole.canonical_name(name) for name in NAMES
        ]


@pytest.mark.long
@given(lives())
def test_every_name_has_one_entity_and_mentions_are_never_lost(events):
    entities = folded(events)
    listed = entities.summarize_all()
    own = [item for item in listed if item.merged_into is None]
    assert len({entity_key(name) for name in entities.names}) == len(entities.names)
    assert {entities.canonical_name(name) for name in entities.names} <= {item.name for item in own}
    assert all(item.mentions >= 0 for item in listed)
    told = {name for item in own for name in (item.name, *item.aliases)}
    assert told == set(entities.names), "every name is told by one entity"
    roots = entities.find_roots().tolist()
    assert roots == [entities.find_root(number) for number in range(len(entities))]


@pytest.mark.long
@given(lives(), st.data())
def test_a_merge_and_its_split_change_nothing(events, data):
    entities = folded(events)
    roots = [entry.name for entry in entities.entries if entry.into is None]
    if len(roots) < 2:
        return
    one, other = data.draw(st.permutations(roots))[:2]
    before = entities.dump()
    entities.fold(
        Event(
            90,
            90,
            "merge-entity",
            {"entity": one, "into": other, "moved": nothing_moved(edges=[1])},
        )
    )
    assert entities.canonical_name(one) == other
    entities.fold(Event(91, 91, "split-entity", {"entity": one}))
    assert entities.dump() == before


@pytest.mark.parametrize("into", [(1, 0), (0, None), (7, None), (-1, None)])
def test_entities_that_are_merged_in_a_circle_are_refused(into):
    """A file may declare such a circle, and a search for the last entity of it would never end."""
    entities = Entities()
    entities.fold(Event(1, 0, "entity", {"name": "Ada"}))
    entities.fold(Event(2, 0, "entity", {"name": "Grace"}))
    dumped = msgspec.msgpack.decode(msgspec.msgpack.encode(entities.dump()))
    for entry, target in zip(dumped["entries"], into, strict=True):
        entry[4] = target
    with pytest.raises(InputError, match="in a cycle or into a missing entity"):
        Entities().load(dumped)
