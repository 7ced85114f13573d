"""Going over to another embedder while the lab is used: ``memlab.open(path, embedder=..., reembed="background")``."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from embedders import letters

import memlab
from memlab.errors import EmbedderMismatch, InputError, ReadOnlyLab
from memlab.kernel.embedding import load_embedder
from memlab.kernel.state import State
from memlab.kernel.storage import store as stores
from memlab.kernel.verbs.projections import PROJECTIONS
from memlab.subjects.io.reembedding import Reembedding

pytestmark = pytest.mark.long

WORDS = "apple bridge candle desert engine forest garden harbour island jacket kettle ladder market needle orchard"
TEXTS = [
    f"The {word} is behind the {other}, said {name}"
    for word in WORDS.split()
    for other, name in zip(WORDS.split(), "ABCDE", strict=False)
]
SAID = [f"Ida: {text}" if row % 3 else text for row, text in enumerate(TEXTS)]


def initials(texts):
    """Embed in the dimensions of ``letters`` by another model, so that mixed products would be numbers."""
    out = np.zeros((len(texts), 32))
    for row, text in enumerate(texts):
        for word in text.lower().split():
            out[row, ord(word[0]) % 32] += 1.0
            out[row, len(word) % 32] += 0.5
    return out


class Gate:
    """The embedder ``initials`` with a gate: while it is shut, calls wait. It counts the texts."""

    def __init__(self):
        self.open = threading.Event()
        self.open.set()
        self.failing = False
        self.waits = threading.Event()
        """Set when a thread waits at the gate with its texts."""
        self.seen = []

    def __call__(self, texts):
        if len(texts) > 1 and not texts[0].startswith("The user"):
            self.waits.set()
            assert self.open.wait(10)
            if self.failing:
                raise RuntimeError("no network")
            self.seen += texts
        return initials(texts)


def name_embedder(embed):
    return load_embedder(embed, name="test gate")


@pytest.fixture
def small(monkeypatch):
    """Use batches of sixteen texts, in pieces of eight."""
    monkeypatch.setattr(stores, "_EMBED_AT_ONCE", 16)
    monkeypatch.setattr(stores, "_EMBED_PIECE", 8)


@pytest.fixture
def shut():
    """Return an embedder whose gate is shut, and the gate."""
    gate = Gate()
    embedder = name_embedder(gate)
    gate.open.clear()
    yield embedder, gate
    gate.open.set()


def filled(path, clock, texts=TEXTS):
    with memlab.open(path, embedder=letters, clock=clock) as lab:
        lab.remember(
            [
                {"text": text, "speaker": "Ida" if row % 3 else None}
                for row, text in enumerate(texts)
            ]
        )
    return path


def contents(lab):
    """Return all data that scores depend on."""
    with lab.io.store.reading() as state:
        blocks = {first + row: vector.tolist() for first, matrix in lab.io.store.journal.vectors(state.fingerprint)
                  for row, vector in enumerate(matrix)}  # fmt: skip
        return {
            "vectors": state.vectors.take().tolist(),
            "journal": blocks,
            "fingerprint": (state.fingerprint, state.embedder_name, state.unembedded),
            "memories": state.memories().rows(),
            "edges": state.edge_frame().rows(),
        }


def scores(lab):
    queries = [
        "where is the kettle?",
        "the market behind the bridge",
        "Ida",
        "said B",
        "quite another thing",
    ]
    return [
        lab.recall(query, log=False).frame.drop("age", strict=False).rows() for query in queries
    ]


@pytest.mark.parametrize("way", ["thread", "foreground", "again"])
def test_the_end_is_that_of_the_foreground_to_the_bit(tmp_path, clock, small, way):
    with memlab.open(
        filled(tmp_path / "one", clock), embedder=name_embedder(initials), clock=clock, reembed=True
    ) as lab:
        wanted, ranked = contents(lab), scores(lab)
    path = filled(tmp_path / "two", clock)
    with memlab.open(
        path, embedder=name_embedder(initials), clock=clock, reembed="background"
    ) as lab:
        if way == "thread":
            while not lab.io.reembedding().finished:
                threading.Event().wait(0.01)
        elif way == "foreground":
            assert lab.io.reembed()
    with memlab.open(
        path, embedder=name_embedder(initials), clock=clock, reembed=way == "again"
    ) as lab:
        assert lab.io.reembedding() == Reembedding(len(TEXTS), len(TEXTS))
        assert contents(lab) == wanted
        assert scores(lab) == ranked
        assert lab.io.check().sound


@pytest.mark.parametrize("all_at_once", [True, False])
def test_meanwhile_words_find_what_has_no_vector(
    tmp_path, clock, small, shut, monkeypatch, all_at_once
):
    if not all_at_once:
        monkeypatch.setattr("memlab.kernel.recall._query._ALL", 10)
    embedder, gate = shut
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
        assert repr(lab.io.reembedding()) == "<Reembedding: 0 of 75 memories>"
        new = lab.remember("A quince hangs over the fence")
        hits = lab.recall("kettle", log=False)
        assert all("kettle" in hit.text for hit in hits[:5])
        assert set(hits.frame["similarity"].to_list()[:5]) == {0.0}
        near = lab.recall("a q h o t f", limit=20, log=False)  # its words are those of nothing
        assert near[0].id == new.id
        assert near.frame["similarity"][0] > 0.5
        assert lab.graph.similar(new).is_empty()
        assert lab.graph.similar(1).is_empty()
        assert (lab.io.reembedding().done, lab.io.reembedding().total) == (1, 76)
        gate.open.set()
        assert lab.io.reembed()
        assert lab.io.reembedding().finished
        assert len(lab.graph.similar(new))
        assert (lab.recall("kettle", log=False).frame["similarity"] > 0).all()


def test_the_newest_come_first_and_a_timeout_ends_it(tmp_path, clock, small, shut):
    embedder, gate = shut
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
        assert not lab.io.reembed(timeout=0)
        gate.open.set()
        while not lab.io.reembedding().finished:
            threading.Event().wait(0.01)
        assert sorted(gate.seen) == sorted(SAID)
        assert gate.seen[:8] == SAID[-8:]
        assert lab.io.reembed(timeout=0)


def test_vectors_of_two_models_are_never_mixed(tmp_path, clock, small, shut):
    """A writer with the lab open is told; a writer with either model sees only vectors of the one in use."""
    embedder, gate = shut
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=letters, clock=clock) as before:
        before.recall("kettle")
        with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
            for call in (
                lambda: before.recall("kettle"),
                lambda: before.remember("a quince"),
                lambda: before.memories,
            ):
                with pytest.raises(EmbedderMismatch, match="embedded again by another process"):
                    call()
            with pytest.raises(EmbedderMismatch, match="background"):
                memlab.open(path, embedder=letters, clock=clock)
            with memlab.open(path, embedder=embedder, clock=clock, read_only=True) as reader:
                assert reader.io.reembedding().done == 0
                with pytest.raises(ReadOnlyLab):
                    reader.io.reembed()
                gate.open.set()
                assert lab.io.reembed()
                assert reader.io.reembedding().finished
                assert contents(reader) == contents(lab)


def test_a_killed_process_goes_on_where_it_was(tmp_path, clock, small):
    path = filled(tmp_path / "lab", clock)
    script = f"""
        import os, sys
        sys.path[:0] = {[str(Path(__file__).parent)]!r}
        import memlab
        from memlab.kernel.storage import store as stores
        from test_lab_reembedding import initials, name_embedder
        stores._EMBED_AT_ONCE, stores._EMBED_PIECE = 16, 8
        calls = []
        def dying(texts):
            calls.append(texts)
            if len(texts) == 8 and len(calls) > 6:
                os._exit(9)
            return initials(texts)
        lab = memlab.open({str(path)!r}, embedder=name_embedder(dying), reembed="background")
        lab.io.reembed()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], check=False, capture_output=True
    )
    assert done.returncode == 9, done.stderr.decode()
    with memlab.open(path, embedder=name_embedder(initials), clock=clock, read_only=True) as lab:
        assert 0 < lab.io.reembedding().done < 75
    # no word of reembed: it goes on by itself
    with memlab.open(path, embedder=name_embedder(initials), clock=clock) as lab:
        while not lab.io.reembedding().finished:
            threading.Event().wait(0.01)
        content = contents(lab)
    with memlab.open(
        filled(tmp_path / "one", clock), embedder=name_embedder(initials), clock=clock, reembed=True
    ) as lab:
        assert content == contents(lab)


def test_a_snapshot_in_between_and_what_is_remembered_meanwhile(tmp_path, clock, small, shut):
    embedder, gate = shut
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
        lab.remember("A quince hangs over the fence")
        lab.io.snapshot()
        gate.open.set()
    with memlab.open(path, embedder=embedder, clock=clock) as lab:
        assert lab.io.reembed()
        content = contents(lab)
        again = lab.io.backup(tmp_path / "backup").path
    with memlab.open(path, embedder=embedder, clock=clock) as lab:
        assert contents(lab) == content
    with memlab.open(again, embedder=embedder, clock=clock, read_only=True) as lab:
        assert contents(lab)["vectors"] == content["vectors"]
    assert content["vectors"] == embedder.encode([*SAID, "A quince hangs over the fence"]).tolist()


def test_the_past_knows_no_vector_that_came_later(tmp_path, clock, small):
    path = filled(tmp_path / "lab", clock)
    with memlab.open(
        path, embedder=name_embedder(initials), clock=clock, reembed="background"
    ) as lab:
        assert lab.io.reembed()
        journal = lab.io.store.journal
        whole = np.array(contents(lab)["vectors"])
        _, *steps = journal.events(kinds=("embedder",))
        waiting = [event.body.get("waiting", 0) for event in steps]
        assert waiting == sorted(waiting, reverse=True)
        assert (waiting[0], waiting[-1]) == (75, 0)
        going_on = State(PROJECTIONS)
        for event, left in zip(steps, waiting, strict=True):
            state = State(PROJECTIONS)
            state.fold(journal.events(upto=event.seq), journal)
            going_on.fold(journal.events(after=going_on.seq, upto=event.seq), journal)
            for item in (state, going_on):
                assert item.unembedded == left
                assert (
                    item.vectors.take() == np.where(np.arange(75)[:, None] < left, 0, whole)
                ).all()


def test_a_viewer_sees_the_same_memories_after_the_change(tmp_path, clock, small, shut):
    embedder, gate = shut
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
        lab.remember("A quince hangs over the fence", creator="agent:one", visibility="private")
        mine = lab.remember(
            "A quince lies below the fence", creator="agent:two", visibility="private"
        )
        two = lab.agents("two")
        near = two.recall("a q l o t f", log=False)
        assert (near[0].id, near.frame["similarity"][0] > 0.5) == (mine.id, True)
        assert 76 not in near.frame["memory_id"]
        assert (
            repr(lab.at(viewer="agent:two").io.reembedding()) == "<Reembedding: 1 of 76 memories>"
        )
        with pytest.raises(ReadOnlyLab):
            lab.at(viewer="agent:two").io.reembed()
        assert set(two.recall("kettle", log=False).frame["similarity"][:5]) == {0.0}
        gate.open.set()
        assert lab.io.reembed()
        assert (two.recall("kettle", log=False).frame["similarity"] > 0).all()


def test_the_past_of_a_former_embedder_is_refused(tmp_path, clock, small):
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=letters, clock=clock) as lab:
        head = lab.io.store.journal.head
    with memlab.open(
        path, embedder=name_embedder(initials), clock=clock, reembed="background"
    ) as lab:
        assert lab.io.reembed()
        with pytest.raises(EmbedderMismatch):
            lab.at(event=head)
        then = lab.at(event=head + 1)
        assert (then.io.reembedding().done, lab.io.reembedding().done) == (0, 75)
        assert set(then.recall("kettle").frame["similarity"][:5]) == {0.0}


def test_a_purge_meanwhile_leaves_nothing_of_the_text(tmp_path, clock, small, shut):
    embedder, gate = shut
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
        assert gate.waits.wait(10)
        lab.purge(70)  # the thread holds its text
        gate.open.set()
        assert lab.io.reembed()
        with lab.io.store.reading() as state:
            vector = state.vectors.take(np.array([69]))
        assert (vector == embedder.encode([""])).all()
        assert lab.io.check().sound


def test_an_embedder_that_fails_is_told_of_and_asked_again(tmp_path, clock, small, shut):
    embedder, gate = shut
    gate.failing = True
    gate.open.set()
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
        while lab.io.reembedding().error is None:
            threading.Event().wait(0.01)
        assert "no network" in str(lab.io.reembedding().error)
        assert "no network" in repr(lab.io.reembedding())
        with pytest.raises(memlab.MemlabError, match="no network"):
            lab.io.reembed()
        assert lab.recall("kettle")[0].text.count("kettle")
        gate.failing = False
        assert lab.io.reembed()
        assert lab.io.reembedding().error is None


def test_a_memory_linked_later_waits_for_its_vector(tmp_path, clock, small, shut):
    embedder, gate = shut
    path = filled(tmp_path / "lab", clock, [*TEXTS, "The heating is set to nineteen degrees"])
    with memlab.open(path, embedder=embedder, clock=clock, reembed="background") as lab:
        first = lab.remember("The heating is set to nineteen degrees", linking="now")
        second = lab.remember("The heating is set to nineteen degrees", linking="later")
        assert (first.id, second.id) == (77, 78)  # nothing to compare with yet but the first
        gate.open.set()
        assert lab.io.reembed()
        assert lab.graph.link_waiting()
        assert "superseded" in lab.memories["status"].to_list()[76:]


def test_back_and_forth_and_an_empty_lab(tmp_path, clock, small):
    path = filled(tmp_path / "lab", clock)
    with memlab.open(path, embedder=letters, clock=clock) as lab:
        before = contents(lab)["vectors"]
    memlab.open(path, embedder=name_embedder(initials), clock=clock, reembed="background").close()
    with memlab.open(path, embedder=letters, clock=clock, reembed="background") as lab:
        assert lab.io.reembed()
        assert contents(lab)["vectors"] == before
    with memlab.open(tmp_path / "empty", embedder=letters, clock=clock) as lab:
        assert lab.io.reembedding().finished
    with memlab.open(
        tmp_path / "empty", embedder=name_embedder(initials), clock=clock, reembed="background"
    ) as lab:
        assert lab.io.reembed()
        lab.remember("a quince")
        assert lab.io.reembedding().finished
    with pytest.raises(InputError, match="reembed"):
        memlab.open(path, embedder=letters, reembed="now")
