"""``lab.load``: nothing twice, nothing half, nothing lost, whatever the source."""

import itertools
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.errors import DatasetError, InputError, UnknownName
from memlab.subjects.io import loading
from tests.displays import html_of

SECRET = "ghp_" + "a1" * 20


@pytest.fixture
def chat(tmp_path):
    """Return a function that writes a file of so many messages, some of them equal."""

    def written(count, name="chat.jsonl", timed=True):
        rows = [
            {
                "role": ("user", "assistant")[n % 2],
                "content": f"message {n // 3}",
                "session_id": f"s{n % 2}",
            }
            | ({"created_at": 1_767_225_600 + n // 4} if timed else {})
            for n in range(count)
        ]
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return written


def content(lab):
    return lab.memories, lab.edges


@pytest.mark.long
def test_the_same_twice_adds_nothing(lab, chat):
    first = lab.load(chat(40))
    assert (first.count("added"), first.count("known")) == (40, 0)
    head, before = lab.io.store.journal.head, lab.memories
    again = lab.load(chat(40))
    assert (again.count("added"), again.count("known")) == (0, 40)
    assert lab.io.store.journal.head == head
    assert lab.memories.equals(before)
    assert lab.load(chat(50)).count("added") == 10
    assert len(lab) == 50


@pytest.mark.long
@given(
    timed=st.booleans(), rows=st.integers(1, 40), size=st.integers(1, 15), cut=st.integers(0, 40)
)
def test_any_split_into_batches_and_any_cut_gives_the_same_lab(
    trigrams, tmp_path_factory, timed, rows, size, cut
):
    folder = tmp_path_factory.mktemp("split")
    every = [
        {
            "role": ("user", "assistant")[n % 2],
            "content": f"message {n // 3}",
            "session_id": f"s{n % 2}",
        }
        | ({"created_at": 1_767_225_600 + n // 4} if timed and n % 5 else {})
        for n in range(rows)
    ]
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in every))
    part = folder / "part"
    part.mkdir()
    (part / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in every[:cut]))
    clock = memlab.ManualClock("2026-03-01")
    with (
        memlab.open(embedder=trigrams, clock=clock) as whole,
        memlab.open(embedder=trigrams, clock=clock) as split,
    ):
        whole.load(path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loading, "_ROWS", size)
            split.load(part / "chat.jsonl")
            loaded = split.load(path)
        assert loaded.count("known") == min(cut, rows)
        assert split.memories.equals(whole.memories)
        assert split.edges.drop("created").equals(whole.edges.drop("created"))


@pytest.mark.long
def test_an_interrupted_load_continues(tmp_path, trigrams, clock, chat, monkeypatch):
    path = chat(30)
    monkeypatch.setattr(loading, "_ROWS", 7)
    with memlab.open(tmp_path / "whole", embedder=trigrams, clock=clock) as whole:
        whole.load(path)
        wanted = whole.memories
    remember, calls = loading._Loading._remember, []

    def killed(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        remember(self, *arguments)

    with memlab.open(tmp_path / "cut", embedder=trigrams, clock=clock) as lab:
        monkeypatch.setattr("memlab.subjects.io.loading._Loading._remember", killed)
        with pytest.raises(KeyboardInterrupt):
            lab.load(path)
        assert len(lab) == 14
    with memlab.open(tmp_path / "cut", embedder=trigrams, clock=clock) as lab:
        loaded = lab.load(path)
        assert (loaded.count("known"), loaded.count("added")) == (14, 16)
        assert lab.memories.equals(wanted)


def test_two_at_once_add_nothing_twice(tmp_path, trigrams, clock, chat, monkeypatch):
    """What another process stores between the first look and the lock is seen under the lock."""
    path = chat(12)
    with memlab.open(tmp_path / "a", embedder=trigrams, clock=clock) as lab:
        with memlab.open(tmp_path / "a", embedder=trigrams, clock=clock) as other:
            embedder = lab.io.embedder

            def meanwhile(texts):
                monkeypatch.undo()
                other.load(path, linking="off")
                return embedder.encode(texts)

            double = {
                "encode": staticmethod(meanwhile),
                "__getattr__": lambda _, name: getattr(embedder, name),
            }
            monkeypatch.setattr(lab.io.store, "_embedder", type("E", (), double)())
            loaded = lab.load(path)
        assert (loaded.count("known"), loaded.count("added")) == (12, 0)
        assert len(lab) == 12


@pytest.mark.long
def test_a_purge_forgets_what_was_loaded_and_it_stays_away(tmp_path, trigrams, clock):
    path = tmp_path / "chat.jsonl"
    path.write_text(
        '{"role": "user", "content": "my diagnosis is private", "session_id": "s"}\n' * 2
    )
    with memlab.open(tmp_path / "lab", embedder=trigrams, clock=clock) as lab:
        lab.load(path)
        lab.purge(session="s")
        loaded = lab.load(path)
        assert (loaded.count("purged"), loaded.count("added")) == (2, 0)
    held = b"".join(file.read_bytes() for file in (tmp_path / "lab").rglob("*") if file.is_file())
    assert b"diagnosis" not in held


def test_turns_are_in_the_order_of_their_session(lab, chat):
    lab.load(chat(9))
    edges = lab.edges.filter(pl.col("relation") == "next")
    assert edges.select("source", "target").rows() == [
        (1, 3),
        (2, 4),
        (3, 5),
        (4, 6),
        (5, 7),
        (6, 8),
        (7, 9),
    ]
    assert set(lab.memories["kind"]) == {"turn"}


def test_two_conversations_that_begin_alike_are_two(lab):
    hello = {"role": "user", "content": "hello"}
    lab.load([{"role": "system", "content": "be brief"}, hello])
    lab.load([hello, {"role": "assistant", "content": "hi"}])
    lab.load([hello, {"role": "assistant", "content": "hi"}, hello])
    assert lab.memories["text"].to_list() == ["be brief", "hello", "hello", "hi", "hello"]
    assert lab.memories["session"].n_unique() == 2


def test_rows_that_a_memory_cannot_be_are_skipped_and_the_others_are_not(lab):
    rows = [
        {"role": "user", "content": "alpha", "session": "s"},
        {"role": "user", "content": "beta", "session": SECRET},
        {"role": "user", "content": "gamma" * 300_000, "session": "s"},
        {"role": "user", "content": "delta", "session": "x" * 2000},
        {"role": "user", "content": f"the token is {SECRET}", "session": "s"},
    ]
    loaded = lab.load(rows)
    assert lab.memories["text"].to_list()[0] == "alpha"
    assert SECRET not in lab.memories["text"].to_list()[1]
    assert [id for id, _ in loaded.redacted] == [2]
    assert loaded.count("skipped") == 3
    assert loaded.places["place"].to_list() == [2, 3, 4]
    assert SECRET not in str(loaded.places.to_dicts())
    with pytest.raises(DatasetError, match="what was given, message 2: secret in a name"):
        lab.load(rows, strict=True)


def test_records_are_linked_when_the_caller_says_so(lab):
    rows = [{"text": "The user likes coffee."}, {"text": "The user likes coffee!"}]
    lab.load(rows, linking="now")
    assert lab.edges["relation"].to_list() == ["similar-to"]
    assert lab.graph.waiting() == 0
    assert lab.load(rows, linking="now").count("known") == 2
    with pytest.raises(InputError, match="linking"):
        lab.load(rows, linking="soon")


def test_guessed_formats_are_reported(lab, tmp_path):
    (tmp_path / "a.csv").write_text("sender,message,score\nAnn,hello,3\n")
    loaded = lab.load(tmp_path / "a.csv")
    assert ("a.csv", "text", "message") in loaded.guessed.rows()
    assert loaded.left_out == {"column score": 1}
    assert loaded.text().splitlines() == [
        "1 memory from a.csv",
        "",
        "speakers       1: Ann (1)",
        "reader         records",
        "separator      ,",
        "text from      message",
        "speakers from  sender",
        "time from      nothing, so the time of loading counts",
        "left out       column score (1)",
        'To date rows by their order: lab.forget(loaded.ids, how="delete"); '
        f'lab.load("{tmp_path / "a.csv"}", columns={{"at": "2024-01-01"}})',
        "Next: lab.questions.propose()",
    ]
    assert loaded.frame.rows() == [(2, 1, "added", "a.csv")]
    assert html_of(loaded).startswith("<")


@pytest.mark.long
def test_the_card_proposes_the_call_that_reads_columns_with_similar_names(lab, tmp_path):
    path = tmp_path / "chat.csv"
    path.write_text(
        "usr,message,conv\nAnn,I moved to <b>Oslo</b>.,trip\nBen,And I stayed in Bergen.,trip\n"
    )
    loaded = lab.load(path)
    assert loaded.proposed == {"speaker": "usr", "session": "conv"}
    (call,) = (line for line in repr(loaded).splitlines() if "similar names" in line)
    exec(call.partition("use them: ")[2], {"lab": lab, "loaded": loaded})
    alive = lab.memories.filter(status="active")
    assert alive.select("speaker", "session").rows() == [("Ann", "trip"), ("Ben", "trip")]


def test_the_card_counts_speakers_sessions_and_times(lab):
    rows = [
        {
            "text": "One",
            "speaker": f"<i>{n % 9}",
            "session": f"s{n % 2}",
            "at": f"2026-01-0{1 + n % 5}",
        }
        for n in range(90)
    ]
    loaded = lab.load([*rows, {"text": "Without a time", "speaker": "Ann"}])
    text = loaded.text()
    assert "10: <i>0 (10), <i>1 (10), <i>2 (10), <i>3 (10), <i>4 (10), <i>5 (10) and 4 more" in text
    assert "2026-01-01 00:00 to 2026-01-05 00:00 UTC; 1 row without one" in text
    assert loaded.rows.height == 91
    assert "<i>" not in html_of(loaded)
    assert "&lt;i&gt;0 (10)" in html_of(loaded)
    assert "were already in the lab" in lab.load(rows).text()


def test_bad_arguments(lab, tmp_path):
    with pytest.raises(InputError, match="There is nothing at"):
        lab.load(tmp_path / "nowhere")
    (tmp_path / "chat.json").write_text("[]")
    with pytest.raises(InputError, match=r"Did you mean .*chat\.json\?$"):
        lab.load(tmp_path / "chta.json")
    with pytest.raises(UnknownName, match='no format "xml"'):
        lab.load(tmp_path, format="xml")
    with pytest.raises(InputError, match="is read from disk"):
        lab.load([], format="mem0")
    path = lab.io.export(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="columns= applies to rows"):
        lab.load(path, columns={"text": "a"})
    assert lab.load([]).count("added") == 0


def test_a_generator_that_raises_is_an_error_of_ours(lab):
    def rows():
        yield {"text": "alpha"}
        raise RuntimeError("no")

    with pytest.raises(InputError, match="RuntimeError: no"):
        lab.load(rows())


def test_a_long_load_shows_that_it_goes_on(lab, chat, monkeypatch, capsys):
    monkeypatch.setattr(loading, "_SECONDS", 0.0)
    monkeypatch.setattr(loading, "_ROWS", 10)
    monkeypatch.setattr("memlab.kernel.base.progress._SECONDS_PER_LINE", 0.0)
    lab.load(chat(40))
    assert "chat.jsonl: " in capsys.readouterr().err
    lab.load(chat(40), progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.long
@given(
    name=st.sampled_from(["a.jsonl", "a.json", "a.csv", "a.md", "a.txt"]),
    content=st.binary(max_size=200)
    | st.lists(
        st.sampled_from(
            [
                '{"role":',
                '"user"',
                ',"content":',
                '"x"',
                "[",
                "]",
                "}",
                "\n",
                "User: ",
                "**B:** ",
                "a,b",
                "- ",
            ]
        ),
        max_size=20,
    ).map(lambda parts: "".join(parts).encode()),
)
def test_any_file_is_loaded_or_refused_and_again_adds_nothing(
    trigrams, tmp_path_factory, name, content
):
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(content)
    with memlab.open(embedder=trigrams, clock=memlab.ManualClock("2026-03-01")) as lab:
        try:
            loaded = lab.load(path)
        except memlab.MemlabError:
            assert len(lab) == 0
        else:
            assert len(lab) == loaded.count("added")
            assert lab.load(path).count("added") == 0


def test_a_load_that_takes_too_long_stores_what_it_read_and_goes_on(trigrams, monkeypatch):
    rows = [{"text": f"message {n} about goats"} for n in range(50)]
    seconds = itertools.count()
    monkeypatch.setattr(loading, "monotonic", lambda: next(seconds))
    with memlab.open(embedder=trigrams) as lab:
        with pytest.raises(
            InputError, match=r"stopped at row 11 after 10 seconds\. The rows before it are stored"
        ):
            lab.load(rows, seconds=10, progress=False)
        count = len(lab)
        assert 0 < count < 50
        assert lab.load(rows, seconds=None, progress=False).count("added") == 50 - count
        assert lab.memories["text"].to_list() == [row["text"] for row in rows]
