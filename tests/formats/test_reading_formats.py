"""Each format, by a short file or object: the memories that are read from it, and the report."""

import csv
import io
import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime

import polars as pl
import pytest

from memlab.errors import DatasetError, InputError, UnknownName
from memlab.io.formats import Options, read_file, read_folder, read_object
from memlab.io.formats import lines as bounded

DAY = 1_767_225_600


def rows_of(source):
    return [row for _, row in source.rows]


def speakers_and_texts(rows):
    return [(row.get("speaker"), row["text"]) for row in rows]


@pytest.fixture
def file(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(
                content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
            )
        return path

    return written


OPENAI = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "Weather?"},
            {"type": "image_url", "image_url": {"url": "x"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"in": "Oslo"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "rain"},
    {"role": "assistant", "content": "Rain."},
]
ANTHROPIC = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "t", "name": "weather", "input": {"in": "Oslo"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t",
                "content": [{"type": "text", "text": "rain"}],
            }
        ],
    },
]


def test_messages_of_openai():
    source = read_object(OPENAI, Options(session="s"))
    assert speakers_and_texts(rows_of(source)) == [
        ("system", "Be brief."),
        ("user", "Weather?"),
        ("tool", 'weather({"in": "Oslo"})'),
        ("tool", "rain"),
        ("assistant", "Rain."),
    ]
    assert source.notes.left_out["part of type image_url"] == 1
    assert source.notes.guessed["role"] == "role"


def test_messages_of_anthropic():
    source = read_object(ANTHROPIC, Options(session="s"))
    rows = rows_of(source)
    assert speakers_and_texts(rows) == [
        ("user", "Weather?"),
        ("assistant", "Let me see."),
        ("tool", 'weather({"in":"Oslo"})'),
        ("tool", "rain"),
    ]
    assert {row["kind"] for row in rows} == {"turn"}
    assert source.notes.left_out["thinking"] == 1


@dataclass
class HumanMessage:
    content: object
    type: str = "human"


@dataclass
class AIMessage:
    content: object
    type: str = "ai"
    tool_calls: list = field(default_factory=list)


class Dumped:
    def model_dump(self):
        return {"role": "assistant", "content": "dumped"}


def test_messages_of_langchain_as_objects_and_as_dicts():
    calls = [{"name": "weather", "args": {"in": "Oslo"}, "id": "t"}]
    objects = [HumanMessage("Weather?"), AIMessage("", tool_calls=calls), Dumped()]
    assert speakers_and_texts(rows_of(read_object(objects, Options()))) == [
        ("user", "Weather?"),
        ("tool", 'weather({"in":"Oslo"})'),
        ("assistant", "dumped"),
    ]
    dicts = [
        {"type": "human", "data": {"content": "Weather?", "type": "human"}},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "AIMessage"],
            "kwargs": {"content": "Rain."},
        },
    ]
    assert speakers_and_texts(rows_of(read_object(dicts, Options()))) == [
        ("user", "Weather?"),
        ("assistant", "Rain."),
    ]


def test_an_object_that_raises_is_an_error_of_ours():
    class Broken:
        def model_dump(self):
            raise RuntimeError("no")

    with pytest.raises(InputError, match="to_mapping raised RuntimeError: no"):
        rows_of(read_object([Broken()], Options()))
    for nothing in (7, b"bytes", None):
        with pytest.raises(InputError, match="load needs a path, a list of messages"):
            read_object(nothing, Options())


def test_the_export_of_chatgpt_is_a_tree(file):
    def node(id, parent, role, text, at):
        message = role and {
            "id": id,
            "author": {"role": role},
            "create_time": at,
            "content": {"content_type": "text", "parts": [text]},
        }
        return {"id": id, "parent": parent, "message": message}

    tree = {
        "root": node("root", None, None, "", 0),
        "a": node("a", "root", "user", "Hello", DAY + 0.5),
        "b": node("b", "a", "assistant", "Hi (first try)", DAY + 1),
        "c": node("c", "a", "assistant", "Hi", DAY + 2),
    }
    talk = {"title": "Greeting", "conversation_id": "c-1", "mapping": tree, "current_node": "c"}
    source = read_file(file("conversations.json", [talk]), Options())
    rows = rows_of(source)
    assert speakers_and_texts(rows) == [("user", "Hello"), ("assistant", "Hi")]
    assert {row["session"] for row in rows} == {"c-1"}
    assert source.notes.left_out["message of another branch"] == 1
    tree["c"]["message"]["author"] = {"role": "tool", "name": "python"}
    assert rows_of(read_file(file("tool.json", [talk]), Options()))[1]["speaker"] == "tool"
    tree["a"]["parent"] = "c"  # a ring
    assert len(rows_of(read_file(file("ring.json", [talk]), Options()))) == 2


def test_the_export_of_claude(file):
    talk = {
        "uuid": "u-1",
        "name": "Greeting",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "Hello",
                "content": [],
                "created_at": "2026-05-02T10:00:00Z",
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "Hi",
                "content": [{"type": "text", "text": "Hi"}],
            },
        ],
    }
    rows = rows_of(read_file(file("conversations.json", [talk]), Options()))
    assert speakers_and_texts(rows) == [("user", "Hello"), ("assistant", "Hi")]
    assert [row["ref"] for row in rows] == ["m1", "m2"]
    assert {row["session"] for row in rows} == {"u-1"}


@pytest.mark.parametrize(
    "talk",
    [
        {"conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi"}]},
        {
            "messages": [
                {"role": "user", "parts": [{"text": "Hello"}]},
                {"role": "model", "parts": [{"text": "Hi"}]},
            ]
        },
        {
            "messages": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hi", "refusal": None},
            ]
        },
    ],
)
def test_conversations_of_other_names(file, talk):
    assert (
        speakers_and_texts(rows_of(read_file(file("talks.jsonl", lines([talk, talk])), Options())))
        == [
            ("user", "Hello"),
            ("assistant", "Hi"),
        ]
        * 2
    )


def test_a_thread_is_listed_newest_first():
    def thread_message(number, role):
        text = {"type": "text", "text": {"value": f"message {number}", "annotations": []}}
        return {
            "id": f"m{number}",
            "thread_id": "th",
            "role": role,
            "created_at": DAY + number,
            "content": [text],
        }

    rows = rows_of(
        read_object(
            {"object": "list", "data": [thread_message(2, "assistant"), thread_message(1, "user")]},
            Options(),
        )
    )
    assert speakers_and_texts(rows) == [("user", "message 1"), ("assistant", "message 2")]
    assert {row["session"] for row in rows} == {"th"}


TRANSCRIPT = [
    {"type": "summary", "summary": "A fix", "leafUuid": "u2"},
    {
        "type": "user",
        "message": {"role": "user", "content": "fix the build"},
        "timestamp": "2026-05-02T10:00:00.000Z",
        "sessionId": "s1",
        "cwd": "/src/proj",
        "gitBranch": "main",
        "uuid": "u1",
        "isSidechain": False,
    },
    {
        "type": "user",
        "message": {"role": "user", "content": "<caveat>"},
        "sessionId": "s1",
        "isMeta": True,
    },
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "id": "x",
            "content": [{"type": "tool_use", "name": "Bash", "input": {"c": "ls"}}],
        },
        "timestamp": "2026-05-02T10:00:01.000Z",
        "sessionId": "s1",
        "cwd": "/src/proj",
        "uuid": "u2",
        "isSidechain": True,
    },
    {
        "type": "tool",
        "content": "README.md",
        "sessionId": "s1",
        "timestamp": "2026-05-02T10:00:02Z",
    },
]


def lines(entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def test_a_transcript_of_a_coding_assistant(file):
    source = read_file(file("session.jsonl", lines(TRANSCRIPT)), Options())
    rows = rows_of(source)
    assert [(row["speaker"], row["text"], row["session"]) for row in rows] == [
        ("user", "fix the build", "s1"),
        ("tool", 'Bash({"c":"ls"})', "s1/sidechain"),
        ("tool", "README.md", "s1"),
    ]
    assert rows[0]["project"] == "proj"
    assert rows[0]["branch"] == "main"
    assert source.notes.left_out["line of type summary"] == 1
    assert source.notes.left_out["message that the program wrote to itself"] == 1
    assert source.notes.guessed["project"] == "cwd"


def test_lines_that_are_broken_are_counted_with_their_numbers(file, monkeypatch):
    monkeypatch.setattr(bounded, "MAX_LINE_BYTES", 400)
    good = {"role": "user", "content": "hello"}
    text = (
        lines([good])
        + "{broken\n"
        + "\n"
        + '"text"\n'
        + lines([{**good, "content": "x" * 5000}])
        + lines([good])[:-4]
    )
    path = file("a.jsonl", text)
    source = read_file(path, Options())
    assert len(rows_of(source)) == 1
    assert [place for _, place, _ in source.notes.locations] == [2, 4, 5, 6]
    assert source.notes.skipped["line of more than 400 bytes"] == 1
    assert "5,0" in source.notes.locations[2][2]
    assert source.done() == source.size
    with pytest.raises(DatasetError, match=r"a.jsonl, line 2: line is not JSON"):
        rows_of(read_file(path, Options(strict=True)))


def test_a_sheet(file):
    path = file(
        "chat.csv",
        'sender;message;sent;score\nAnn;"two\nlines";2026-05-02T10:00;1\nBen;=SUM(A1);1767225600;\n;a;b;c;d\n',
    )
    source = read_file(path, Options())
    rows = rows_of(source)
    assert speakers_and_texts(rows) == [("Ann", "two\nlines"), ("Ben", "=SUM(A1)")]
    assert [row["kind"] for row in rows] == ["turn"] * 2
    assert source.notes.guessed["separator"] == ";"
    assert source.notes.guessed["at"] == "sent (ISO 8601)"
    assert source.notes.left_out["column score"] == 1
    assert source.notes.locations == [("chat.csv", 5, "more cells than columns: 5 of 4")]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_a_cell_that_is_too_long_is_skipped_to_its_end(file, seed):
    dice = random.Random(seed)
    parts = ["a,b\n", 'said "no",\n', '""\n', "x"]
    texts = ["".join(dice.choices(parts, k=dice.choice((1, 3, 60_000)))) for _ in range(12)]
    out = io.StringIO()
    csv.writer(out).writerows([("speaker", "text"), *(("Ann", text) for text in texts)])
    rows = rows_of(read_file(file("chat.csv", out.getvalue()), Options()))
    wanted = [text for text in texts if len(text) <= 131_072 and text.strip()]
    assert len(wanted) < 12
    assert [row["text"].strip() for row in rows] == [text.strip() for text in wanted]


@pytest.mark.long
def test_a_quote_that_is_not_closed_ends_the_sheet(file):
    source = read_file(file("chat.csv", 'text\none\n"' + "a\n" * 70_000), Options())
    assert [row["text"] for row in rows_of(source)] == ["one"]
    assert source.notes.locations == [("chat.csv", 3, "row is not CSV: a quote is not closed")]


def test_columns_are_as_the_caller_says(file):
    path = file("notes.csv", "a,b,when\nshort,The river is high this year,yesterday\n")
    source = read_file(path, Options())
    assert rows_of(source) == [{"text": "The river is high this year"}]
    options = Options(columns={"text": "a", "context": "b"}, project="p")
    assert rows_of(read_file(path, options)) == [
        {"text": "short", "context": "The river is high this year", "project": "p"}
    ]
    with pytest.raises(UnknownName, match=r"no column of notes.csv"):
        rows_of(read_file(path, Options(columns={"text": "c"})))
    with pytest.raises(UnknownName, match="field of columns"):
        Options(columns={"txt": "a"})
    with pytest.raises(DatasetError, match=r"no column looks like a text. The columns are a"):
        rows_of(read_file(file("short.csv", "a\nb\n"), Options()))


def test_times_that_nobody_understands_are_skipped_or_left(file):
    path = file("a.csv", "text,date\nalpha,2026-05-02\nbeta,03/04/2026\n")
    source = read_file(path, Options())
    assert [row["text"] for row in rows_of(source)] == ["alpha"]
    assert source.notes.skipped == {"at not understood": 1}
    assert len(rows_of(read_file(path, Options(columns={"at": None})))) == 2
    source = read_file(file("b.csv", "text,date\nalpha,03/04/2026\n"), Options())
    assert len(rows_of(source)) == 1
    assert source.notes.guessed["at"].startswith("nothing: date contains no known form of time")


LOG = """# A talk

**User:** I moved to Bergen.
And I like it.

```
User: this is code
```

**Assistant** (2026-05-02 10:00): Noted.

## Ida

Hello.
"""


def test_a_log_in_markdown(file):
    source = read_file(file("log.md", LOG), Options())
    rows = rows_of(source)
    assert speakers_and_texts(rows)[0] == (
        "user",
        "I moved to Bergen.\nAnd I like it.\n\n```\nUser: this is code\n```",
    )
    assert rows[1]["text"] == "Noted.\n\n## Ida\n\nHello."  # one heading is no speaker
    assert rows[1]["at"] == int(datetime(2026, 5, 2, 10, tzinfo=UTC).timestamp() * 1e6)
    assert source.notes.left_out["line before the first speaker"] == 1
    assert len({row["session"] for row in rows}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "User: hello\nAssistant: hi\n",
        "## User\nhello\n\n## Assistant\nhi\n",
        "### User (2026-05-02 10:00)\n\nhello\n### Assistant:\nhi\n",
        "__User__: hello\n__Assistant__: hi\n",
        "[2026-05-02 10:00] User: hello\n[2026-05-02 10:01] Assistant: hi\n",
        "2026-05-02T10:00:00Z User: hello\n2026-05-02T10:00:00Z Assistant: hi\n",
        "\ufeffUser: hello\r\nAssistant: hi\r\n",
    ],
)
def test_ways_to_name_a_speaker(file, text):
    assert speakers_and_texts(rows_of(read_file(file("log.md", text), Options()))) == [
        ("user", "hello"),
        ("assistant", "hi"),
    ]


def test_names_speak_where_they_do_so_again_and_again(file):
    text = "Ida: hello\nBo: hi\nNote: this is none\nIda: bye\nBo: see http://a.b: c\n"
    assert speakers_and_texts(rows_of(read_file(file("log.txt", text), Options()))) == [
        ("Ida", "hello"),
        ("Bo", "hi\nNote: this is none"),
        ("Ida", "bye"),
        ("Bo", "see http://a.b: c"),
    ]


def test_notes_are_paragraphs_under_headings(file):
    text = "---\ntags: [style, go]\nupdated: 2026-05-02\nowner: me\n---\n"
    text += "# Style\n\n- tabs\n- [x] gofmt\n\n## Names\nShort\nones.\n"
    source = read_file(file("AGENTS.md", text), Options())
    rows = rows_of(source)
    assert [(row["text"], row.get("title")) for row in rows] == [
        ("tabs", "Style"),
        ("[x] gofmt", "Style"),
        ("Short\nones.", "Style / Names"),
    ]
    assert rows[0]["tags"] == ["style", "go"]
    assert rows[0]["source"] == "file"
    assert "at" in rows[0]
    assert source.notes.left_out["field owner"] == 1


def test_frames(file, tmp_path):
    frame = pl.DataFrame(
        {"sender": ["Ann", None], "message": ["hello", "hi"], "sent": [datetime(2026, 5, 2), None]}
    )
    rows = rows_of(read_object(frame, Options()))
    assert speakers_and_texts(rows) == [("Ann", "hello"), (None, "hi")]
    assert rows_of(read_object(frame.lazy(), Options())) == rows
    frame.write_parquet(tmp_path / "chat.parquet")
    assert rows_of(read_file(tmp_path / "chat.parquet", Options())) == rows


class Series:
    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values


class At:
    def __init__(self, columns):
        self.columns = list(columns.values())

    def __getitem__(self, where):
        return Series(self.columns[where[1]])


class PandasFrame:
    """As much of a frame of pandas as is asked for."""

    __module__ = "pandas.core.frame"

    def __init__(self, columns):
        self.columns, self.iloc = list(columns), At(columns)


def test_a_frame_of_pandas_without_pandas():
    frame = PandasFrame({"text": ["hello", "hi"], "importance": [0.5, float("nan")]})
    rows = rows_of(read_object(frame, Options(columns={"importance": "importance"})))
    assert rows == [{"text": "hello", "importance": 0.5}, {"text": "hi"}]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"text": ["hello", "hi"], "at": [pandas.Timestamp("2026-05-02"), pandas.NaT]}
    )
    assert [row.get("at") for row in rows_of(read_object(frame, Options()))] == [
        1_777_680_000_000_000,
        None,
    ]


def test_records_of_json(file):
    assert rows_of(
        read_file(file("a.json", {"items": [{"text": "alpha", "tags": "a, b"}]}), Options())
    ) == [{"text": "alpha", "tags": ["a", "b"]}]
    assert rows_of(read_file(file("b.json", ["alpha", "beta"]), Options())) == [
        {"text": "alpha"},
        {"text": "beta"},
    ]
    assert rows_of(read_object(["alpha"], Options())) == [{"text": "alpha"}]
    with pytest.raises(DatasetError, match=r"c.json, line 2, column 4"):
        read_file(file("c.json", '[{"text": "alpha"},\n  {oops}]'), Options())


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv"])
def test_an_empty_file_holds_nothing(file, name):
    assert rows_of(read_file(file(name, ""), Options())) == []


def test_encodings(file):
    rows = [{"role": "user", "content": "Grüße"}]
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        for name, text in (("a.jsonl", lines(rows) * 2), ("a.json", json.dumps(rows))):
            source = read_file(
                file(name, text.replace("\\u00fc", "ü").replace("\\u00df", "ß").encode(encoding)),
                Options(),
            )
            assert {row["text"] for row in rows_of(source)} == {"Grüße"}
    source = read_file(file("a.csv", "text,at\nGrüße,2026-05-02\n".encode("cp1252")), Options())
    assert [row["text"] for row in rows_of(source)] == ["Grüße"]
    assert source.notes.left_out["line read as Windows-1252, because it is not UTF-8"] == 1


def test_content_that_is_no_text_is_refused(file, tmp_path):
    import os

    with pytest.raises(DatasetError, match="binary"):
        read_file(file("a.csv", b"a,b\0\n"), Options())
    with pytest.raises(DatasetError, match="The format of"):
        read_file(file("a.xyz", "hello"), Options())
    with pytest.raises(DatasetError, match="no speakers were found"):
        read_file(file("a.txt", "hello"), Options())
    with pytest.raises(UnknownName, match="no format"):
        Options("xml")
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InputError, match="not a regular file"):
        read_file(tmp_path / "pipe.jsonl", Options())


def test_a_folder_is_its_files_without_links_and_secrets(file, tmp_path):
    file("logs/a/one.md", "User: hello\nAssistant: hi\n")
    file("logs/two.jsonl", lines([{"role": "user", "content": "hey"}]))
    file("logs/.env", "KEY=1")
    file("logs/.hidden/x.jsonl", lines([{"role": "user", "content": "no"}]))
    file("logs/binary.csv", b"\0\0")
    file("logs/photo.png", b"\0\0")
    (tmp_path / "logs" / "round").symlink_to(tmp_path / "logs")
    (tmp_path / "logs" / "again.md").symlink_to(tmp_path / "logs" / "a" / "one.md")
    sources = list(read_folder(tmp_path / "logs", Options()))
    assert [source.notes.source for source in sources] == ["two.jsonl", "a/one.md", "logs"]
    assert [len(rows_of(source)) for source in sources] == [1, 2, 0]
    rest = sources[-1].notes
    assert (rest.left_out["link"], rest.left_out["file of secrets"]) == (2, 1)
    assert rest.skipped == {"file not read": 1}
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="contains no export"):
        list(read_folder(tmp_path / "empty", Options()))


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        (
            {"version": 1, "proverbs": [{"text": "go far"}, {"text": "go fast"}]},
            ["go far", "go fast"],
        ),
        ({"info": {"by": "Ida"}, "notes": [{"text": "alpha"}], "tags": ["a"]}, ["alpha"]),
        # next to a text, a list belongs to it, and of two lists none is chosen
        ({"body": "Water the mint.", "comments": [{"text": "no"}]}, ["Water the mint."]),
        ({"note": "Two lists.", "a": [{"text": "x"}], "b": [{"text": "y"}]}, ["Two lists."]),
    ],
)
def test_the_only_list_of_objects_in_a_document_has_its_entries(file, document, texts):
    rows = rows_of(read_file(file("a.json", document), Options()))
    assert [row["text"] for row in rows] == texts


def test_benchmarks(file, tmp_path):
    turn = {"speaker": "Ida", "dia_id": "D1:1", "text": "I moved."}
    talk = {
        "speaker_a": "Ida",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [turn],
    }
    rows = rows_of(
        read_file(
            file("locomo.json", [{"sample_id": "c1", "conversation": talk, "qa": []}]), Options()
        )
    )
    assert rows[0]["speaker"] == "Ida"
    assert (rows[0]["session"], rows[0]["project"]) == ("c1/session_1", "c1")
    batches = [
        {
            "turns": [
                [
                    {
                        "role": "user",
                        "id": 1,
                        "content": "hello ->-> 1,1",
                        "time_anchor": "March-15-2024",
                    }
                ]
            ]
        }
    ]
    file("beam/1/chat.json", batches)
    file("beam/1/probing_questions/probing_questions.json", {})
    (source,) = read_folder(tmp_path / "beam", Options())
    assert speakers_and_texts(rows_of(source)) == [("user", "hello")]
