"""A store takes in its own writes from memory, and those of others from the journal: both are the same state."""

import contextlib
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.index._postings import segment_of
from memlab.kernel.storage.store import Store

steps = st.tuples(
    st.integers(0, 1),
    st.sampled_from(["remember", "several", "recall", "forget", "feedback", "use"]),
)


def do(lab, what, number):
    if what == "remember":
        lab.remember(
            f"note {number}: what about tabs?",
            session="s",
            chain=True,
            tags=["style"],
            speaker="Ana",
        )
    elif what == "several":
        lab.remember(
            [{"text": f"turn {number} {part}", "session": "s"} for part in "ab"], chain=True
        )
    elif what == "recall":
        lab.recall("tabs in a note", limit=3)
    elif what == "use":
        lab.policies.use("workbench" if number % 2 else "memlab")
    elif len(lab):
        (lab.forget if what == "forget" else lambda memory: lab.feedback(memory, "success"))(
            1 + number % len(lab)
        )


def content_of(lab):
    state = lab.io.store.state
    words = state.words
    return {
        "memories": lab.memories.to_dicts(),
        "edges": lab.edges.to_dicts(),
        "vectors": state.vectors.take().tolist(),
        "lengths": words.lengths.tolist(),
        "hits": [
            rows.tolist() for rows, _ in words.hits(words.query("tabs about note turn")).parts
        ],
        "uses": state.uses.values.tolist(),
        "last": state.last_in_session(None, "s"),
        "seq": state.seq,
        "pack": lab.policies.pack.hash,
    }


@pytest.mark.long
@examples(25, quick=8)
@given(st.lists(steps, max_size=12))
def test_two_stores_on_one_folder_and_a_third_that_folds_all_at_once_agree(tmp_path_factory, story):
    folder = tmp_path_factory.mktemp("store") / "lab"
    embed = {"embedder": lambda texts: [[1.0, len(text), text.count("a")] for text in texts]}
    with memlab.open(folder, **embed) as lab, memlab.open(folder, **embed) as other:
        for number, (which, what) in enumerate(story):
            do((lab, other)[which], what, number)
        first, second = content_of(lab), content_of(other)
    with memlab.open(folder, **embed) as afresh:
        assert first == second == content_of(afresh)


@pytest.mark.long
def test_an_interrupt_while_a_snapshot_is_written_loses_no_word(disk, monkeypatch):
    """Postings are sealed as they are written down: the state was left without them, and the next snapshot too."""
    sealed, struck = segment_of, []

    def interrupted(*columns):
        if not struck:
            struck.append(True)
            raise KeyboardInterrupt
        return sealed(*columns)

    with disk() as lab:
        lab.remember([f"zebra {number}" for number in range(5)])
        monkeypatch.setattr("memlab.kernel.index._postings.segment_of", interrupted)
        with contextlib.suppress(KeyboardInterrupt):
            lab.io.snapshot()
        assert struck
        assert (lab.recall("zebra", log=False).frame["lexical"] > 0).all()
        lab.io.snapshot()
    with disk() as lab:
        assert (lab.recall("zebra", log=False).frame["lexical"] > 0).all()


@pytest.mark.parametrize("where", ["exclusive", "reading", "writing"])
def test_a_block_that_an_interrupt_left_open_holds_up_nobody(where):
    """The interrupt occurs at the end of a block, before its lock is released, and its traceback is kept alive."""
    code = getattr(Store, where).__wrapped__.__code__
    unique: set[tuple[int, int]] = set()

    def inside(frame, event, argument):
        # the line of a ``with``, on the way out
        if event == "line" and (id(frame), frame.f_lineno) in unique:
            unique.clear()
            sys.settrace(None)
            raise KeyboardInterrupt
        unique.add((id(frame), frame.f_lineno))
        return inside

    with memlab.open() as lab:
        lab.remember("tabs")
        before = sys.gettrace()
        sys.settrace(lambda frame, event, argument: inside if frame.f_code is code else None)
        try:
            if where == "exclusive":
                lab.policies.install("recall-score", "(fn [similarity] similarity)")
            else:
                lab.remember("spaces")
        except KeyboardInterrupt as error:
            kept = error
        finally:
            sys.settrace(before)
        assert kept.__traceback__ is not None
        other = threading.Thread(target=lab.remember, args=("neither",), daemon=True)
        other.start()
        other.join(30)
        assert not other.is_alive()
        assert lab.memories["text"].to_list()[-1] == "neither"
