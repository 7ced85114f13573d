"""Compare recalls of one chat that is loaded as rows and through exports of other programs.

    MEMLAB_DATA=FOLDER python experiments/door.py        # FOLDER has locomo/locomo-dev5.json

Each LoCoMo development conversation is written in every format by a small writer, and loaded without arguments. A hit is
a wanted message among the first five results. The formats of assistants know roles only, so their rows have roles, too.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import memlab
from memlab.io.ingest import read_locomo

Row = dict[str, Any]


def write_whatsapp(rows: list[Row], folder: Path) -> Path:
    path = folder / "WhatsApp Chat with Friend.txt"
    lines = (f"{row['at']:%d.%m.%y, %H:%M} - {row['speaker']}: {row['text']}\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_slack(rows: list[Row], folder: Path) -> Path:
    names = sorted({row["speaker"] for row in rows})
    days = defaultdict(list)
    for row in rows:
        message = {
            "user": f"U{names.index(row['speaker'])}",
            "text": row["text"].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
        }
        days[f"{row['at']:%Y-%m-%d}"].append(message | {"ts": f"{row['at'].timestamp():.6f}"})
    users = [
        {"id": f"U{number}", "profile": {"display_name": name}} for number, name in enumerate(names)
    ]
    (folder / "users.json").write_text(json.dumps(users))
    (folder / "general").mkdir()
    for day, messages in days.items():
        (folder / "general" / f"{day}.json").write_text(json.dumps(messages))
    return folder


def write_discord(rows: list[Row], folder: Path) -> Path:
    messages = [
        {
            "type": "Default",
            "timestamp": row["at"].isoformat(),
            "content": row["text"],
            "author": {"name": row["speaker"]},
        }
        for row in rows
    ]
    path = folder / "channel.json"
    path.write_text(
        json.dumps({"guild": {"name": "G"}, "channel": {"name": "c"}, "messages": messages})
    )
    return path


def write_telegram(rows: list[Row], folder: Path) -> Path:
    messages = [
        {
            "type": "message",
            "date_unixtime": str(int(row["at"].timestamp())),
            "from": row["speaker"],
            "text": row["text"],
        }
        for row in rows
    ]
    path = folder / "result.json"
    path.write_text(json.dumps({"name": "Friend", "type": "personal_chat", "messages": messages}))
    return path


def list_sessions(rows: list[Row]) -> dict[str, list[Row]]:
    sessions: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        sessions[row["session"]].append(row)
    return sessions


def write_chatgpt(rows: list[Row], folder: Path) -> Path:
    talks = []
    for session, turns in list_sessions(rows).items():
        mapping = {
            str(number): {
                "parent": str(number - 1) if number else None,
                "message": {
                    "author": {"role": row["speaker"]},
                    "create_time": row["at"].timestamp(),
                    "content": {"content_type": "text", "parts": [row["text"]]},
                },
            }
            for number, row in enumerate(turns)
        }
        talks.append({"id": session, "mapping": mapping, "current_node": str(len(turns) - 1)})
    (folder / "conversations-000.json").write_text(json.dumps(talks))
    (folder / "user.json").write_text("{}")
    return folder


def write_claude(rows: list[Row], folder: Path) -> Path:
    talks = [
        {
            "uuid": session,
            "chat_messages": [
                {
                    "sender": "human" if row["speaker"] == "user" else "assistant",
                    "text": row["text"],
                    "created_at": row["at"].isoformat(),
                }
                for row in turns
            ],
        }
        for session, turns in list_sessions(rows).items()
    ]
    (folder / "conversations.json").write_text(json.dumps(talks))
    (folder / "users.json").write_text("[]")
    return folder


def write_codex(rows: list[Row], folder: Path) -> Path:
    for number, turns in enumerate(list_sessions(rows).values()):
        lines = [
            {
                "timestamp": turns[0]["at"].isoformat(),
                "type": "session_meta",
                "payload": {"id": str(number)},
            }
        ]
        for row in turns:
            kind = "input_text" if row["speaker"] == "user" else "output_text"
            item = {
                "type": "message",
                "role": row["speaker"],
                "content": [{"type": kind, "text": row["text"]}],
            }
            lines.append(
                {"timestamp": row["at"].isoformat(), "type": "response_item", "payload": item}
            )
        (folder / f"rollout-{number:03}.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
        )
    return folder


def write_spans(rows: list[Row], folder: Path) -> Path:
    lines = []
    for session, turns in list_sessions(rows).items():
        for row in turns:
            message = [
                {"role": row["speaker"], "parts": [{"type": "text", "content": row["text"]}]}
            ]
            attributes = {
                "gen_ai.conversation.id": session,
                "gen_ai.input.messages": json.dumps(message),
            }
            lines.append(
                {
                    "context": {"trace_id": "0x1"},
                    "parent_id": None,
                    "start_time": row["at"].isoformat(),
                    "attributes": attributes,
                }
            )
    path = folder / "spans.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


NAMED = (write_whatsapp, write_slack, write_discord, write_telegram)
BY_ROLE = (write_chatgpt, write_claude, write_codex, write_spans)


def count_hits(lab: Any, questions: list[tuple[str, set[str]]]) -> list[bool]:
    return [
        any(hit.text.strip() in wanted for hit in lab.recall(query, limit=5))
        for query, wanted in questions
    ]


def main() -> None:
    data = Path(os.environ["MEMLAB_DATA"]) / "locomo" / "locomo-dev5.json"
    hits: dict[str, list[bool]] = defaultdict(list)
    stored: dict[str, int] = defaultdict(int)
    for item in read_locomo(data):
        by_name = [dict(row) for row in item.conversation.rows()]
        speakers = sorted({row["speaker"] for row in by_name})
        by_role = [
            row | {"speaker": ("user", "assistant")[speakers.index(row["speaker"]) % 2]}
            for row in by_name
        ]
        texts = {row["ref"]: row["text"].strip() for row in by_name}
        questions = [
            (question.text, {texts[ref] for ref in question.evidence if ref in texts})
            for question in item.questions
            if any(ref in texts for ref in question.evidence)
        ]
        now = max(row["at"] for row in by_name)
        for rows, base, writers in (
            (by_name, "rows with names", NAMED),
            (by_role, "rows with roles", BY_ROLE),
        ):
            sources: list[tuple[str, Callable[[Path], Any]]] = [(base, lambda _, rows=rows: rows)]
            sources += [
                (
                    writer.__name__.removeprefix("write_"),
                    lambda folder, rows=rows, writer=writer: writer(rows, folder),
                )
                for writer in writers
            ]
            for name, make in sources:
                with tempfile.TemporaryDirectory() as folder:
                    lab = memlab.open(clock=lambda now=now: int(now.timestamp() * 1_000_000))
                    lab.load(make(Path(folder)))
                hits[name] += count_hits(lab, questions)
                stored[name] += len(lab.memories)
    for name, results in hits.items():
        print(
            f"{name:16} {stored[name]:6,} memories  hit@5 {sum(results) / len(results):.3f}  of {len(results)} questions"
        )


if __name__ == "__main__":
    main()
