"""Exports of chat services and assistants, as folders and zip archives, each written after its documentation."""

import json
import shutil
from datetime import UTC, datetime

import pytest

import memlab
from memlab.errors import DatasetError

AT = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)
TS = AT.timestamp()


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return root


def load(path):
    lab = memlab.open()
    loaded = lab.load(path)
    rows = lab.memories.select("text", "speaker", "session", "created").rows()
    return [
        (text, speaker, session, at.astimezone(UTC)) for text, speaker, session, at in rows
    ], loaded


def both(root):
    """Return a folder and the zip archive of it, with the folder inside."""
    return root, shutil.make_archive(str(root), "zip", root.parent, root.name)


SLACK = {
    "users.json": [
        {"id": "U1", "name": "ida", "profile": {"display_name": "Ida", "real_name": "Ida Lie"}},
        {"id": "U2", "name": "ben", "profile": {"display_name": "", "real_name": "Ben Vik"}},
    ],
    "channels.json": [{"id": "C1", "name": "general"}],
    "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
    "integration_logs.json": [{"service": "x", "text": "no message"}],
    "canvases.html": "<p>",
    "general/2024-03-01.json": [
        {
            "type": "message",
            "subtype": "channel_join",
            "user": "U2",
            "ts": str(TS - 9),
            "text": "<@U2> has joined",
        },
        {
            "type": "message",
            "user": "U1",
            "ts": f"{TS:.6f}",
            "text": "Lunch at <https://cafe.no|the café> &amp; then <#C1|general>, <@U2>?",
        },
        {
            "type": "message",
            "user": "U2",
            "ts": f"{TS + 60:.6f}",
            "thread_ts": f"{TS + 60:.6f}",
            "text": "Who has the keys?",
        },
    ],
    "general/2024-03-02.json": [
        {
            "type": "message",
            "user": "U1",
            "ts": f"{TS + 86400:.6f}",
            "thread_ts": f"{TS + 60:.6f}",
            "text": "I do.",
        },
        {
            "type": "message",
            "user": "U3",
            "user_profile": {"display_name": "Eva"},
            "ts": f"{TS + 86460:.6f}",
            "text": "Hello",
        },
    ],
    "D1/2024-03-01.json": [
        {"type": "message", "user": "U1", "ts": f"{TS:.6f}", "text": "Just between us"}
    ],
}


@pytest.mark.long
def test_slack_has_names_channels_and_threads(tmp_path):
    for path in both(write(tmp_path / "slack", SLACK)):
        rows, loaded = load(path)
        assert [row[:3] for row in rows] == [
            ("Just between us", "Ida", "Ida, Ben Vik/2024-03-01"),
            (
                "Lunch at the café (https://cafe.no) & then #general, @Ben Vik?",
                "Ida",
                "general/2024-03-01",
            ),
            ("Who has the keys?", "Ben Vik", f"general/thread {TS + 60:.6f}"),
            ("I do.", "Ida", f"general/thread {TS + 60:.6f}"),
            ("Hello", "Eva", "general/2024-03-02"),
        ]
        assert rows[1][3] == AT
        assert loaded.left_out["system message"] == 1
        assert not loaded.skipped
    rows, _ = load(tmp_path / "slack" / "general")
    assert [row[1] for row in rows] == ["Ida", "Ben Vik", "Ida", "Eva"]


DISCORD = {
    "guild": {"id": "1", "name": "Climbers"},
    "channel": {"id": "2", "type": "GuildTextChat", "category": "Text", "name": "trips"},
    "dateRange": {"after": None, "before": None},
    "exportedAt": "2024-04-01T00:00:00+00:00",
    "messages": [
        {
            "id": "1",
            "type": "GuildMemberJoin",
            "timestamp": AT.isoformat(),
            "content": "Joined the server.",
            "author": {"name": "ida"},
        },
        {
            "id": "2",
            "type": "Default",
            "timestamp": AT.isoformat(),
            "timestampEdited": None,
            "content": "Ropes are packed.",
            "author": {"id": "9", "name": "ida", "nickname": "Ida"},
        },
        {
            "id": "3",
            "type": "Reply",
            "timestamp": AT.isoformat(),
            "content": "",
            "attachments": [{"fileName": "x.png"}],
            "author": {"name": "ben"},
        },
    ],
    "messageCount": 3,
}


def test_discord(tmp_path):
    write(tmp_path, {"Climbers - Text - trips [2].json": DISCORD})
    rows, loaded = load(tmp_path / "Climbers - Text - trips [2].json")
    assert rows == [("Ropes are packed.", "Ida", "Climbers - trips/2024-03-01", AT)]
    assert loaded.left_out == {"system message": 1, "entry without words": 1}


CHAT = {
    "name": "Ida",
    "type": "personal_chat",
    "id": 7,
    "messages": [
        {
            "id": 1,
            "type": "service",
            "date": "2024-03-01T10:30:00",
            "date_unixtime": str(int(TS)),
            "actor": "Ida",
            "action": "phone_call",
            "text": "",
        },
        {
            "id": 2,
            "type": "message",
            "date": "2024-03-01T10:30:00",
            "date_unixtime": str(int(TS)),
            "from": "Ida",
            "from_id": "user1",
            "text": ["See ", {"type": "link", "text": "https://x.no"}, " now"],
        },
        {
            "id": 3,
            "type": "message",
            "date": "2024-03-01T10:31:00",
            "from": "Ben",
            "from_id": "user2",
            "text": "Done",
            "edited": "2024-03-01T10:32:00",
        },
        {
            "id": 4,
            "type": "message",
            "date": "2024-03-01T10:31:00",
            "from": "Ben",
            "text": "",
            "photo": "photos/1.jpg",
        },
    ],
}


@pytest.mark.long
@pytest.mark.parametrize(
    "document",
    [CHAT, {"about": "x", "personal_information": {}, "chats": {"about": "x", "list": [CHAT]}}],
)
def test_telegram(tmp_path, document):
    files = {
        "result.json": document,
        "files/notes.md": "An attached document.",
        "photos/1.jpg": "x",
    }
    for path in both(write(tmp_path / "ChatExport", files)):
        rows, loaded = load(path)
        assert [row[:3] for row in rows] == [
            ("See https://x.no now", "Ida", "Ida/2024-03-01"),
            ("Done", "Ben", "Ida/2024-03-01"),
        ]
        assert rows[0][3] == AT
        assert loaded.left_out["side file of an export"] == 1
        assert loaded.left_out["system message"] == 1


def node(id, parent, role, text, at):
    message = {
        "id": id,
        "author": {"role": role},
        "create_time": at,
        "content": {"content_type": "text", "parts": [text]},
    }
    return {"id": id, "parent": parent, "children": [], "message": message}


def chatgpt(id, text):
    mapping = {
        "a": node("a", None, "user", text, TS),
        "b": node("b", "a", "assistant", "Noted.", TS + 5),
    }
    return {"id": id, "title": "Trip", "create_time": TS, "mapping": mapping, "current_node": "b"}


@pytest.mark.long
@pytest.mark.parametrize(
    "names", [["conversations.json"], ["conversations-000.json", "conversations-001.json"]]
)
def test_chatgpt(tmp_path, names):
    files = {
        name: [chatgpt(f"c{n}", f"My train {n} leaves at nine.")] for n, name in enumerate(names)
    }
    files |= {
        "user.json": {"id": "user-1", "email": "ida@example.org"},
        "message_feedback.json": [{"id": "x", "rating": "thumbsUp", "content": '{"text": "good"}'}],
        "shared_conversations.json": [{"id": "c0", "title": "Trip to Bergen in the spring"}],
        "chat.html": "<html>",
        "file-upload.md": "A document of mine.",
    }
    for path in both(write(tmp_path / "chatgpt", files)):
        rows, loaded = load(path)
        assert [row[1:] for row in rows[:2]] == [
            ("user", "c0", AT),
            ("assistant", "c0", datetime.fromtimestamp(TS + 5, UTC)),
        ]
        assert len(rows) == 2 * len(names)
        assert loaded.left_out["side file of an export"] == 4
        assert not loaded.skipped


def test_claude(tmp_path):
    messages = [
        {
            "uuid": f"m{n}",
            "sender": sender,
            "text": text,
            "content": [{"type": "text", "text": text}],
            "created_at": AT.isoformat().replace("+00:00", "Z"),
        }
        for n, (sender, text) in enumerate(
            [("human", "My train leaves at nine."), ("assistant", "Noted.")]
        )
    ]
    files = {
        "conversations.json": [
            {"uuid": "c1", "name": "Trip", "created_at": AT.isoformat(), "chat_messages": messages}
        ],
        "users.json": [{"uuid": "u", "full_name": "Ida Lie", "email_address": "ida@example.org"}],
        "projects.json": [
            {
                "uuid": "p",
                "name": "How to use",
                "description": "An example project with a long text",
            }
        ],
        "memories.json": [{"conversations_memory": "Ida likes trains and long walks"}],
    }
    for path in both(write(tmp_path / "claude", files)):
        rows, loaded = load(path)
        assert rows == [
            ("My train leaves at nine.", "user", "c1", AT),
            ("Noted.", "assistant", "c1", AT),
        ]
        assert loaded.left_out["side file of an export"] == 3


@pytest.mark.parametrize("document", [DISCORD, CHAT])
def test_a_file_that_is_cut_off_says_where(tmp_path, document):
    whole = json.dumps(document)
    path = tmp_path / "result.json"
    path.write_text(whole[: -len(whole) // 3])
    with pytest.raises(DatasetError, match=r"result.json, line 1.*truncated"):
        load(path)
    path.write_text(json.dumps(document | {"messages": [1, None, "x", {}, *document["messages"]]}))
    rows, _ = load(path)
    assert rows


def test_a_day_of_slack_that_is_cut_off_is_skipped(tmp_path):
    root = write(tmp_path / "slack", SLACK | {"general/2024-03-01.json": '[{"text": "Hel'})
    rows, loaded = load(root)
    assert len(rows) == 3
    assert loaded.skipped == {"file not read": 1}


def test_a_side_file_that_is_no_list_of_messages_ends_no_load(tmp_path):
    files = {
        "a.json": {"version": 3},
        "b.json": [{"n": 1}],
        "chat.json": [{"role": "user", "content": "Hello"}],
    }
    rows, loaded = load(write(tmp_path / "mixed", files))
    assert [row[0] for row in rows] == ["Hello"]
    assert loaded.skipped == {"file not read": 2}
