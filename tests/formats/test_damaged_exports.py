"""Exports that are cut off, mixed, in Windows encodings, or of the future: read or refused, never half a lab."""

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import memlab
from experiments import door
from memlab.errors import MemlabError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "exports"
WRITERS = {
    writer.__name__.removeprefix("write_"): writer for writer in (*door.NAMED, *door.BY_ROLE)
}
WORDS = ["Grüße", "aus", "Lisboa:", "the", "green", "suitcase", "of", "Šárka", "naïve", "café"]


def make_rows(start, roles):
    """Return 40 messages of two speakers on four days."""
    dice = random.Random(28)
    return [
        {
            "speaker": roles[number % 2],
            "text": " ".join(dice.sample(WORDS, 8)) + f" {number}",
            "at": start + timedelta(days=number // 10, minutes=number),
            "session": f"s{number // 10}",
        }
        for number in range(40)
    ]


@pytest.fixture(params=WRITERS)
def export(request, tmp_path):
    """Return the function that writes 40 messages in one format, from a time on."""
    writer = WRITERS[request.param]

    def write(start=datetime(2024, 1, 31, 23, 40, tzinfo=UTC)):
        folder = tmp_path / "export"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        roles = ("Ida", "Ben") if writer in door.NAMED else ("user", "assistant")
        rows = make_rows(start, roles)
        return writer(rows, folder), rows

    return write


def list_files(path):
    return (
        [path] if path.is_file() else [file for file in sorted(path.rglob("*.*")) if file.is_file()]
    )


def load_or_refuse(path):
    """Return the texts of a load; none if it is refused with a message, which leaves the lab empty."""
    lab, message = memlab.open(), ""
    try:
        loaded = lab.load(path)
    except MemlabError as refusal:
        message = str(refusal)
    if message:
        assert len(message) > 20
        assert len(lab.memories) == 0
        return []
    assert loaded.count("added") == len(lab.memories)
    assert repr(loaded)
    return lab.memories["text"].to_list()


def test_speakers_sessions_and_times_are_right_without_arguments(export):
    path, rows = export()
    lab = memlab.open()
    loaded = lab.load(path)
    stored = lab.memories.sort("created")
    assert stored["text"].to_list() == [row["text"] for row in rows]
    assert stored["speaker"].to_list() == [row["speaker"] for row in rows]
    assert [f"{at:%Y-%m-%d %H:%M}" for at in stored["created"]] == [
        f"{row['at']:%Y-%m-%d %H:%M}" for row in rows
    ]
    pairs = set(zip(stored["session"].to_list(), [row["session"] for row in rows], strict=True))
    days = {f"{row['at']:%Y-%m-%d}" for row in rows}
    # a chat has a session a day, an assistant one for each conversation
    assert len({session for session, _ in pairs}) == (
        len(days) if "Ida" in rows[0]["speaker"] else 4
    )
    assert loaded.rows["at"].null_count() == 0
    assert "speakers" in loaded.text()


def test_the_future_is_read(export):
    path, rows = export(datetime(2098, 6, 1, tzinfo=UTC))
    texts = load_or_refuse(path)
    assert sorted(texts) == sorted(row["text"] for row in rows)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_cut_off_file_is_refused_or_read_up_to_the_cut(export, share):
    path, rows = export()
    (victim, *_) = sorted(list_files(path), key=lambda file: -file.stat().st_size)
    data = victim.read_bytes()
    victim.write_bytes(data[: int(len(data) * share)])
    known = "\n".join(row["text"] for row in rows)
    texts = load_or_refuse(path)
    assert all(text.partition("\n")[0] in known for text in texts)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "cp1252", "utf-16-le"])
def test_windows_encodings_are_read_or_refused(export, encoding):
    path, rows = export()
    for file in list_files(path):
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            text = json.dumps(json.loads(text), ensure_ascii=False)
        file.write_bytes(text.encode(encoding, errors="replace"))
    texts = load_or_refuse(path)
    if encoding in ("utf-16", "utf-32", "utf-8-sig"):
        assert sorted(texts) == sorted(row["text"] for row in rows)
    else:
        # without a byte order mark, a wrong letter is worse than a refusal
        assert all("\0" not in text for text in texts)


def test_a_mixed_file_reads_what_it_knows_or_is_refused(export):
    path, rows = export()
    other = (FIXTURES / "whatsapp-ios-de.txt").read_bytes()
    for file in list_files(path):
        file.write_bytes(file.read_bytes() + b"\n" + other + b'\n{"a": [1,')
    texts = load_or_refuse(path)
    assert len(texts) <= len(rows) + 8


@pytest.mark.long
@pytest.mark.parametrize("fixture", sorted(FIXTURES.glob("*.[jt]*")), ids=lambda path: path.name)
@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_random_bytes_in_a_file_of_another_writer_end_in_no_other_error(fixture, count, tmp_path):
    dice = random.Random(fixture.name)
    data = fixture.read_bytes()
    path = tmp_path / fixture.name
    for _ in range(count):
        damaged = bytearray(data)
        for _ in range(dice.randint(1, 6)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        path.write_bytes(damaged)
        load_or_refuse(path)
