"""An event that declares its fields leaks nothing: to another viewer, into an export, or after a purge.

An extension declares a random kind of event with random nested fields. Its events contain the ids, texts and names of
memories that are private, or that are purged afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from embedders import letters
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import InputError, LabError, MissingExtension, PrivacyError
from memlab.kernel.embedding import load_embedder
from memlab.kernel.extension import Extension, extend, forget_extension
from memlab.kernel.journal import Event
from memlab.kernel.state import EventType, Field, Projection, State, list_field, mapping_field
from memlab.kernel.state.events import rows_field
from memlab.kernel.verbs.projections import new_state

KIND = "sightings/seen"
LIKE_A_TOKEN = "eaaace310cf4883acf70b8db7d9576a59e9c6a6935c2230ffa3270be08330a7e"
OPEN, PRIVATE, PURGED = "open", "private", "purged"

PLAIN = [Field(role) for role in ("number", "time", "flag", "word", "hash", "bytes", "last-memory")]
STRINGS = [
    *(Field(role) for role in ("text", "note", "label")),
    *(
        Field(role, held=held)
        for role in ("project", "session", "creator", "agent", "name", "tag", "entity")
        for held in ("memories", "reference")
    ),
]
ASKED = {
    "question": Field("text", asked=True),
    "vector": Field("vector"),
    "project": Field("project"),
}
NAMED_BY = {"project": "project", "session": "session", "entity": "subject", "tag": "tag"}


@dataclass(frozen=True)
class Source:
    """A memory as events speak of it."""

    id: int
    fate: str
    text: str
    names: Mapping[str, str]

    @property
    def secrets(self) -> list[str]:
        """Return the words that identify this memory and no other."""
        return [self.text, *self.names.values(), self.text[::-1]]


# -- random declarations --------------------------------------------------------------------------------------------


def members(depth: int) -> st.SearchStrategy[Field]:
    """Return the fields of an event or an item."""
    leaves = st.sampled_from([*PLAIN, *STRINGS, Field("memory")])
    if not depth:
        return leaves
    inner = members(depth - 1)
    item = st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3)
    own = item.map(lambda fields: {**fields, "memory": Field("memory")})
    return st.one_of(
        leaves,
        item.map(mapping_field),
        st.builds(
            lambda fields, drops: list_field(mapping_field(fields), drops=drops), own, st.booleans()
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda fields: list_field(Field("memory"), *fields)
        ),
        st.sampled_from(STRINGS).map(
            lambda field: rows_field({"memory": Field("memory"), "said": field})
        ),
        st.just(mapping_field({"*": Field("number")}, keys="project")),
        st.just(mapping_field(ASKED)),
    )


bodies = st.dictionaries(st.sampled_from("efghij"), members(2), min_size=1, max_size=5)


# -- random values --------------------------------------------------------------------------------------------------


class Values:
    """Values of declared fields. Every string is of one of the memories that its item or event names."""

    def __init__(self, data: st.DataObject, sources: list[Source]) -> None:
        self._draw, self._sources = data.draw, sources

    def sources(self) -> list[Source]:
        return self._draw(
            st.lists(
                st.sampled_from(self._sources), min_size=1, max_size=3, unique_by=lambda s: s.id
            )
        )

    def of(self, field: Field, about: list[Source]) -> Any:
        result = getattr(self, f"_{field.role.replace('-', '_')}", None)
        if result is not None:
            return result(field, about)
        one = self._draw(st.sampled_from(about))
        if field.role in ("text", "note", "label"):
            return one.text
        return one.names.get(NAMED_BY.get(field.role, "project"))

    def _memory(self, field: Field, about: list[Source]) -> Any:
        ids = [item.id for item in about]
        return self._draw(st.sampled_from([ids, ids[0]]))

    def _number(self, field: Field, about: list[Source]) -> int:
        return self._draw(st.integers(0, 9))

    _time = _number

    def _last_memory(self, field: Field, about: list[Source]) -> int:
        return self._draw(st.integers(0, len(self._sources)))

    def _flag(self, field: Field, about: list[Source]) -> bool:
        return self._draw(st.booleans())

    def _word(self, field: Field, about: list[Source]) -> str:
        return "hand"

    def _hash(self, field: Field, about: list[Source]) -> str:
        return LIKE_A_TOKEN

    def _bytes(self, field: Field, about: list[Source]) -> bytes:
        return b"\0\1"

    def _vector(self, field: Field, about: list[Source]) -> bytes:
        return about[0].text[::-1].encode()

    def _mapping(self, field: Field, about: list[Source]) -> dict[str, Any]:
        if field.keys:
            return {item.names["project"]: 1 for item in about}
        if "memory" in field.fields:
            about = self.sources()
            held = {name: self.of(part, about) for name, part in field.fields.items()}
            return {
                **held,
                "memory": [item.id for item in about] if len(about) > 1 else about[0].id,
            }
        if field.fields == ASKED:
            about = about[:1]
        return {name: self.of(part, about) for name, part in field.fields.items()}

    def _list(self, field: Field, about: list[Source]) -> list[Any]:
        return [self.of(field.items[0], about) for _ in range(self._draw(st.integers(0, 3)))]

    def _tuple(self, field: Field, about: list[Source]) -> list[Any]:
        about = self.sources()[:1]
        return [about[0].id, *(self.of(part, about) for part in field.items[1:])]

    def _rows(self, field: Field, about: list[Source]) -> dict[str, Any]:
        listed = self.sources()
        said = [self.of(field.fields["said"], [item]) for item in listed]
        return {"memory": [item.id for item in listed], "said": said}


# -- a lab with such events -----------------------------------------------------------------------------------------


def body_of(fields: Mapping[str, Field]) -> Field:
    """Return the field of an event's body whose texts describe the memories in ``about``."""
    texts = ("text", "note", "label")
    own = {
        name: replace(field, of="about") if field.role in texts else field
        for name, field in fields.items()
    }
    return mapping_field({"about": Field("memory"), **own})


def declare(fields: Mapping[str, Field]) -> type[Projection]:
    """Declare the kind of event, and a projection that keeps all bodies."""
    body = body_of(fields)

    class Sightings(Projection):
        """The bodies of all events of the kind."""

        name: ClassVar[str] = "sightings"
        kinds: ClassVar[tuple[str, ...]] = (KIND,)
        dumped: ClassVar[Field] = list_field(replace(body), drops=True)

        def __init__(self) -> None:
            self.bodies: list[dict[str, Any]] = []

        def fold(self, event: Event) -> None:
            self.bodies.append(event.body)

        def dump(self) -> Any:
            return list(self.bodies)

        def load(self, dumped: Any) -> None:
            self.bodies = list(dumped)

    kind = EventType(KIND, "A person saw memories.", body.fields)
    extend(Extension("sightings", "1.0", events=(kind,), projections=(Sightings,)))
    return Sightings


def remember(lab: memlab.Lab, fate: str, number: int) -> Source:
    """Remember a memory whose words and names no other has."""
    stem = f"{fate}{number}"
    text = f"Zq{stem} keeps Xv{stem} beside Yw{stem}."
    names = {
        "project": f"Proj Mk{stem}",
        "session": f"Sess Nj{stem}",
        "subject": f"Ent Qp{stem}",
        "tag": f"Tag Rl{stem}",
    }
    row = {
        "text": text,
        "project": names["project"],
        "session": names["session"],
        "subject": names["subject"],
    }
    row |= {"predicate": "keeps", "object": f"Obj{stem}", "tags": [names["tag"]], "creator": "bob"}
    if fate == PRIVATE:
        row["visibility"] = "private"
    (id,) = lab.remember([row], linking="off").standing
    return Source(id, fate, text, names)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    forget_extension("sightings")


def write(lab: memlab.Lab, fields: Mapping[str, Field], values: Values, times: int) -> None:
    with lab.io.store.writing() as tx:
        for _ in range(times):
            about = values.sources()
            body = {name: values.of(field, about) for name, field in fields.items()}
            tx.event(KIND, {"about": [item.id for item in about], **body}, at=lab.io.store.clock())


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield name
            yield from strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings(part)


def traces(value: Any, sources: list[Source], fate: str) -> list[str]:
    """Return the secrets of memories of this fate that are in a value."""
    held = "\n".join(strings(value))
    return [
        secret
        for source in sources
        if source.fate == fate
        for secret in source.secrets
        if secret in held
    ]


def open_lab(path: Path | None = None) -> memlab.Lab:
    return memlab.open(
        path, embedder=load_embedder(letters), clock=memlab.ManualClock("2026-03-01")
    )


@pytest.mark.long
@examples(60, 12)
@given(bodies, st.data())
def test_another_viewer_sees_nothing_of_private_memories(
    fields: dict[str, Field], data: st.DataObject
) -> None:
    kept = declare(fields)
    with open_lab() as lab, tempfile.TemporaryDirectory() as folder:
        sources = [remember(lab, fate, number) for number in range(2) for fate in (OPEN, PRIVATE)]
        write(lab, fields, Values(data, sources), 3)
        seen = lab.at(viewer="ann")
        state = seen.io.store.state
        dumped = state.projection(kept).dump()
        assert not traces(dumped, sources, PRIVATE)
        hidden = {source.id for source in sources if source.fate == PRIVATE}
        body = body_of(fields)
        assert not any(hidden & set(body.ids(item)) for item in dumped)
        exported = seen.io.export(Path(folder) / "lab.jsonl").read_text()
        assert not [
            secret
            for source in sources
            if source.fate == PRIVATE
            for secret in source.secrets
            if secret in exported
        ]
        own = lab.at(viewer="bob").io.store.state.projection(kept).dump()
        assert own == lab.io.store.state.projection(kept).dump()


@pytest.mark.long
@examples(40, 8)
@given(bodies, st.data())
def test_no_file_of_the_lab_holds_anything_of_purged_memories(
    fields: dict[str, Field], data: st.DataObject
) -> None:
    declare(fields)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lab"
        with open_lab(path) as lab:
            sources = [
                remember(lab, fate, number) for number in range(2) for fate in (OPEN, PURGED)
            ]
            write(lab, fields, Values(data, sources), 3)
            lab.io.store.snapshot()
            done = lab.purge([source.id for source in sources if source.fate == PURGED])
            assert done.found.is_empty()
            lab.io.export(Path(folder) / "export.jsonl")
            lab.io.store.snapshot()
        gone = [
            secret.encode()
            for source in sources
            if source.fate == PURGED
            for secret in source.secrets
        ]
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        assert len(files) > 3
        held = {file: file.read_bytes() for file in files}
        assert [
            (file.name, secret) for file in files for secret in gone if secret in held[file]
        ] == []
        with open_lab(path) as lab:
            assert len(lab.memories) == 2 + 2


@pytest.mark.long
@examples(40, 8)
@given(bodies, st.data(), st.integers(0, 12))
def test_a_prefix_and_the_rest_fold_to_the_same(
    fields: dict[str, Field], data: st.DataObject, cut: int
) -> None:
    kept = declare(fields)
    with open_lab() as lab:
        sources = [remember(lab, fate, number) for number in range(2) for fate in (OPEN, PRIVATE)]
        write(lab, fields, Values(data, sources), 3)
        journal = lab.io.store.journal
        cut = min(cut, journal.head)
        parts, whole = new_state(), new_state()
        parts.fold(journal.events(upto=cut), journal)
        again = copy_of(parts)
        again.fold(journal.events(after=cut), journal)
        whole.fold(journal.events(), journal)
        assert again.projection(kept).dump() == whole.projection(kept).dump()
        assert again.memories().equals(whole.memories())
        assert again.edge_frame().equals(whole.edge_frame())


def copy_of(state: State) -> State:
    """Return the same state, with projections that were dumped and loaded."""
    for projection in state.projections.values():
        dumped = projection.dump()
        projection.__init__()  # type: ignore[misc]
        projection.load(dumped)
    return state


# -- what a declaration refuses -------------------------------------------------------------------------------------


def test_a_field_that_is_not_declared_is_refused() -> None:
    declare({"why": Field("text")})
    with open_lab() as lab:
        with (
            pytest.raises(LabError, match=r"sightings/seen\.whose is not declared"),
            lab.io.store.writing() as tx,
        ):
            tx.event(KIND, {"about": [], "whose": "nobody's"}, at=0)
        with (
            pytest.raises(LabError, match=r"sightings/seen\.why is not declared"),
            lab.io.store.writing() as tx,
        ):
            tx.event(KIND, {"about": [], "why": {"deep": "text"}}, at=0)


@pytest.mark.long
def test_an_undeclared_field_is_private_and_purged() -> None:
    kept = declare({})
    with open_lab() as lab:
        lab.io.store.strict = False
        sources = [remember(lab, fate, 0) for fate in (OPEN, PRIVATE)]
        with lab.io.store.writing() as tx:
            body = {"about": [source.id for source in sources], "note": [{"of": sources[1].text}]}
            tx.event(KIND, body, at=0)
        assert not traces(
            lab.at(viewer="ann").io.store.state.projection(kept).dump(), sources, PRIVATE
        )
        lab.purge([sources[1].id])
        assert not traces(lab.io.store.state.projection(kept).dump(), sources, PRIVATE)


def test_only_a_declared_hash_may_look_like_a_secret() -> None:
    declare({"pack": Field("hash"), "why": Field("text")})
    with open_lab() as lab:
        with lab.io.store.writing() as tx:
            tx.event(KIND, {"about": [], "pack": LIKE_A_TOKEN}, at=0)
        with pytest.raises(PrivacyError), lab.io.store.writing() as tx:
            tx.event(KIND, {"about": [], "why": LIKE_A_TOKEN}, at=0)


def test_events_of_an_extension_that_is_missing_tell_nobody_anything(tmp_path: Path) -> None:
    declare({"why": Field("text")})
    with open_lab(tmp_path / "lab") as lab:
        sources = [remember(lab, fate, 0) for fate in (OPEN, PRIVATE)]
        with lab.io.store.writing() as tx:
            tx.event(
                KIND, {"about": [source.id for source in sources], "why": sources[1].text}, at=0
            )
        event = lab.io.store.journal.head
    forget_extension("sightings")
    with open_lab(tmp_path / "lab") as lab:
        store = lab.at(viewer="ann").io.store
        body = store.state.visible_body(
            next(lab.io.store.journal.events(after=event - 1, upto=event))
        )
        assert not traces(body, sources, PRIVATE)
        with pytest.raises(MissingExtension, match="sightings"):
            lab.purge([sources[1].id])


def test_a_kind_of_memlab_cannot_be_declared_again() -> None:
    with pytest.raises(InputError, match="begin with the name of its extension"):
        extend(Extension("sightings", "1.0", events=(EventType("recall", "Another one."),)))


@pytest.mark.long
def test_a_purge_takes_the_name_of_a_creator_out_of_their_private_clusters(tmp_path: Path) -> None:
    creator, words = "agent:robert-quux", ("goat hay meadow", "deploy release ships")
    with open_lab(tmp_path / "lab") as lab:
        rows = [
            {"text": f"{words[row % 2]}{' in public' * (row >= 30)} {row}"} for row in range(60)
        ]
        own = [{**row, "creator": creator, "visibility": "private"} for row in rows[:30]]
        lab.remember([*own, *rows[30:]], linking="off")
        lab.graph.clusters.find()
        clusters = next(lab.io.store.journal.events(kinds=["cluster"])).body["clusters"]
        assert [
            event.body.get("of") for event in lab.io.store.journal.events(kinds=["cluster"])
        ] == [None, creator]
        assert lab.purge(creator=creator).found.is_empty()
        assert next(lab.io.store.journal.events(kinds=["cluster"])).body["clusters"] == clusters
    assert not [
        file
        for file in tmp_path.rglob("*")
        if file.is_file() and creator.encode() in file.read_bytes()
    ]
