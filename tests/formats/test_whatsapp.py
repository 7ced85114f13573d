"""WhatsApp exports of several phones and languages, as texts and zip archives."""

import struct
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

import memlab
from memlab.errors import DatasetError
from memlab.io.formats.archives import open_archive, read_member

FIXTURES = Path(__file__).parents[1] / "fixtures" / "exports"


def load(path):
    lab = memlab.open()
    loaded = lab.load(path)
    rows = lab.memories.select("text", "speaker", "session", "created").rows()
    return rows, loaded


@pytest.mark.parametrize(
    "path", sorted(FIXTURES.glob("whatsapp-*.txt")), ids=lambda path: path.stem
)
def test_files_of_another_writer_keep_speakers_days_and_times(path):
    rows, loaded = load(path)
    assert [(text, speaker, at.replace(tzinfo=UTC)) for text, speaker, _, at in rows] == [
        (
            "My train to Bergen leaves at nine: platform 3.",
            "Ida",
            datetime(2023, 12, 3, 21, 41, tzinfo=UTC),
        ),
        (
            "Thanks!\nI will bring the green suitcase.",
            "Ben",
            datetime(2023, 12, 3, 21, 42, tzinfo=UTC),
        ),
        ("Happy new year 🎆", "+47 900 12 345", datetime(2023, 12, 31, 0, 5, tzinfo=UTC)),
    ]
    assert [session.rpartition("/")[2] for _, _, session, _ in rows] == [
        "2023-12-03",
        "2023-12-03",
        "2023-12-31",
    ]
    assert not loaded.skipped
    assert not loaded.left_out


ANDROID = (
    "12/31/23, 9:41\u202fPM - Messages and calls are end-to-end encrypted.\n"
    "12/31/23, 9:41\u202fPM - Ida: Hello\n\nsecond paragraph\n"
    "12/31/23, 9:42\u202fPM - Ben: <Media omitted>\n"
    "1/1/24, 12:05\u202fAM - Ben: Happy new year! <This message was edited>\n"
    '1/1/24, 12:06\u202fAM - Ben changed the subject to "Trip: Rome"\n'
    "1/1/24, 12:07\u202fAM - Ben: This message was deleted\n"
    "1/1/24, 12:08\u202fAM - Ida: IMG-1.jpg (file attached)\nour cat\n"
)
IOS = (
    "\ufeff[31.12.23, 21:41:05] Ausflug: \u200eNachrichten sind Ende-zu-Ende-verschlüsselt.\r\n"
    "[31.12.23, 21:41:06] ~\u202fIda: Hallo\r\n\r\nzweiter Absatz\r\n"
    "\u200e[31.12.23, 21:42:05] Ben: \u200eBild weggelassen\r\n"
    "[01.01.24, 00:05:06] Ben: Frohes Neues! \u200e<Diese Nachricht wurde bearbeitet.>\r\n"
    "[01.01.24, 00:07:07] Ben: \u200eDiese Nachricht wurde gelöscht.\r\n"
    "\u200e[01.01.24, 00:08:06] Ida: unsere Katze \u200e<Anhang: 1-PHOTO.jpg>\r\n"
)
FRENCH = (
    "31/12/2023 à 21:41 - Les messages sont chiffrés de bout en bout.\n"
    "31/12/2023 à 21:41 - Ida: Bonjour\n\nsuite\n"
    "31/12/2023 à 21:42 - Ben: <Médias omis>\n"
    "01/01/2024 à 00:05 - Ben: Bonne année ! <Ce message a été modifié>\n"
    "01/01/2024 à 00:07 - Ben: Ce message a été supprimé\n"
    "01/01/2024 à 00:08 - Ida: IMG-1.jpg (fichier joint)\nnotre chat\n"
)
SPANISH = (
    "31/12/23, 9:41 p. m. - Los mensajes están cifrados.\n"
    "31/12/23, 9:41 p.\u00a0m. - Ida: Hola\n\nmás\n"
    "31/12/23, 9:42 p. m. - Ben: <Multimedia omitido>\n"
    "1/1/24, 12:05 a. m. - Ben: ¡Feliz año! <Se editó este mensaje.>\n"
    "1/1/24, 12:07 a. m. - Ben: Se eliminó este mensaje\n"
    "1/1/24, 12:08 a. m. - Ida: IMG-1.jpg (archivo adjunto)\nnuestro gato\n"
)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("WhatsApp Chat with Trip.txt", ANDROID),
        ("WhatsApp Chat mit Trip.txt", IOS),
        ("Discussion WhatsApp avec Trip.txt", FRENCH),
        ("Chat de WhatsApp con Trip.txt", SPANISH),
    ],
)
def test_lines_of_the_program_are_counted_and_not_stored(tmp_path, name, source):
    (tmp_path / name).write_text(source)
    rows, loaded = load(tmp_path / name)
    assert [speaker for _, speaker, _, _ in rows] == ["Ida", "Ben", "Ida"]
    assert [session for _, _, session, _ in rows] == [
        "Trip/2023-12-31",
        "Trip/2024-01-01",
        "Trip/2024-01-01",
    ]
    assert "\n\n" in rows[0][0]
    assert "<" not in rows[1][0]
    assert "." not in rows[2][0]
    assert [at.hour for *_, at in rows] == [21, 0, 0]
    assert loaded.left_out["picture or other file"] == 2
    assert loaded.left_out["deleted message"] == 1
    assert loaded.left_out["mark of an edited message"] == 1
    assert loaded.left_out["system line"] >= 1
    assert not loaded.skipped


def test_a_zip_reads_the_chat_and_leaves_attachments(tmp_path):
    path = tmp_path / "WhatsApp Chat - Ida.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_chat.txt", IOS)
        archive.writestr("notes.md", "# Of another person\n\nAn attached document.")
        archive.writestr("1-PHOTO.jpg", b"\xff\xd8\0")
    rows, loaded = load(path)
    assert rows[0][2] == "Ida/2023-12-31"
    assert len(rows) == 3
    assert loaded.left_out["side file of an export"] == 1
    assert loaded.left_out["file of no known format"] == 1
    assert loaded.source == "WhatsApp Chat - Ida.zip"


@pytest.mark.parametrize(
    ("dates", "months"),
    [
        (("2/1/24, 10:00", "3/1/24, 10:00", "1/2/24, 10:00"), [1, 1, 2]),
        (("1/2/24, 10:00", "1/3/24, 10:00", "2/1/24, 10:00"), [1, 1, 2]),
        (("1/2/24, 10:00 AM", "1/2/24, 10:01 AM"), [1, 1]),
        (("1.2.24, 10:00", "1.2.24, 10:01"), [2, 2]),
        (("2/20/24, 10:00", "1/5/24, 10:00"), [2, 1]),
    ],
)
def test_the_order_of_day_and_month_comes_from_the_whole_file(tmp_path, dates, months):
    path = tmp_path / "WhatsApp Chat with Ida.txt"
    path.write_text("".join(f"{date} - Ida: message {n}\n" for n, date in enumerate(dates)))
    rows, loaded = load(path)
    assert [at.month for *_, at in rows] == months
    assert any("as UTC" in guess for _, field, guess in loaded.guessed.rows() if field == "at")


def test_bad_dates_windows_encodings_and_mixed_files(tmp_path):
    path = tmp_path / "WhatsApp Chat with Ida.txt"
    mixed = (
        "31.12.23, 21:41 - Ida: Grüße\n"
        "31.02.23, 21:42 - Ida: no such day\n"
        "[01/25/24, 9:00:00 AM] Ben: pasted from another phone\n"
        "31.12.2999, 09:00 - Ida: from the future\n"
        "31.12.23, 21:4"
    )
    path.write_bytes(mixed.encode("cp1252"))
    rows, loaded = load(path)
    assert [text for text, *_ in rows] == [
        "Grüße",
        "pasted from another phone",
        "from the future\n31.12.23, 21:4",
    ]
    assert loaded.skipped == {"at not understood": 1}
    assert loaded.left_out["line read as Windows-1252, because it is not UTF-8"] == 1
    assert loaded.places["place"].to_list() == [2]


@pytest.mark.long
def test_broken_archives_say_what_to_do(tmp_path):
    path = tmp_path / "chat.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_chat.txt", IOS * 50)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="not a readable zip archive"):
        memlab.open().load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_chat.txt", b"0" * (64 << 20))
    with pytest.raises(DatasetError, match="unpacks from"):
        memlab.open().load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../_chat.txt", IOS)
    with pytest.raises(DatasetError, match="outside the archive"):
        memlab.open().load(path)
    assert not (tmp_path.parent / "_chat.txt").exists()


def rewrite(path, *changes):
    """Overwrite fields of the first entries of an archive: signature, offset and packed bytes."""
    data = bytearray(path.read_bytes())
    for signature, offset, value in changes:
        at = data.find(signature) + offset
        data[at : at + len(value)] = value
    path.write_bytes(data)


LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_of_another_compression_is_refused_before_it_is_unpacked(tmp_path, compression):
    path = tmp_path / "chat.zip"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("_chat.txt", ANDROID)
    with pytest.raises(DatasetError, match="compression method"):
        memlab.open().load(path)


@pytest.mark.long
def test_false_sizes_and_offsets_unpack_no_more_than_stated(tmp_path):
    path = tmp_path / "chat.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_chat.txt", bytes(40 << 20))
    rewrite(path, (CENTRAL, 24, struct.pack("<I", 100)))
    tracemalloc.start()
    with open_archive(path) as archive, pytest.raises(DatasetError, match="damaged"):
        read_member(archive, archive.infolist()[0], "chat.zip")
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    for method in (0, 8, 93):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("_chat.txt", ANDROID)
        rewrite(
            path,
            (CENTRAL, 10, struct.pack("<H", method)),
            (CENTRAL, 20, struct.pack("<I", 0xFFFFFFF0)),
        )
        with open_archive(path) as archive, pytest.raises(DatasetError, match="larger than the"):
            read_member(archive, archive.infolist()[0], "chat.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_chat.txt", ANDROID)
    with open_archive(path) as archive:
        member = archive.infolist()[0]
        member.header_offset = -5
        with pytest.raises(DatasetError, match="damaged"):
            read_member(archive, member, "chat.zip")


@pytest.mark.long
def test_the_limit_of_an_archive_counts_bytes_that_were_really_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "chat.zip"
    text = ANDROID.encode()
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + (1 | len(text) << 3).to_bytes(3, "little") + text
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_chat.txt", frame)
    method, stated = struct.pack("<H", 93), struct.pack("<I", 1)
    rewrite(path, (LOCAL, 8, method), (CENTRAL, 10, method), (CENTRAL, 24, stated))
    assert len(load(path)[0]) == 3
    monkeypatch.setattr("memlab.io.formats.archives.MAX_UNPACKED_BYTES", 100)
    with pytest.raises(DatasetError, match="unpacks to more than 100 bytes"):
        load(path)


def test_messages_with_marks_of_direction_and_words_like_omitted_are_kept(tmp_path):
    path = tmp_path / "WhatsApp Chat - Trip.txt"
    path.write_text(
        "[31/12/2023, 21:40:04] Trip: \u200eIda created this group\n"
        "[31/12/2023, 21:40:05] Ida: \u200eIda added Ben\n"
        "[31/12/2023, 21:41:05] Ida: call me \u200e+49 170 while I am absent\n"
        "[31/12/2023, 21:42:05] Ida: \u200emy number is 5\n"
        "[31/12/2023, 21:43:05] Ben: <omitted for brevity>\n"
        "[31/12/2023, 21:44:05] Ben: \u200eMissed voice call\n"
        "[31/12/2023, 21:45:05] Ben: Plan.pdf • \u200e3 pages \u200edocument omitted\n"
        "[31/12/2023, 21:46:05] Ben: \u200eimmagine omessa\n"
    )
    rows, loaded = load(path)
    assert [text for text, *_ in rows] == [
        "call me +49 170 while I am absent",
        "my number is 5",
        "<omitted for brevity>",
    ]
    assert loaded.left_out == {"system line": 3, "picture or other file": 2}


CAPTIONS = {
    "en": ("<Media omitted>", "\u200eimage omitted"),
    "de": ("<Medien ausgeschlossen>", "\u200eBild weggelassen"),
    "fr": ("<Médias omis>", "\u200eimage absente"),
    "es": ("<Multimedia omitido>", "\u200eimagen omitida"),
    "pt": ("<Mídia oculta>", "\u200eimagem ocultada"),
    "it": ("<Media omessi>", "\u200eimmagine omessa"),
}


@pytest.mark.parametrize("locale", CAPTIONS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_caption_of_an_omitted_file_is_kept_without_the_words_of_the_program(
    tmp_path, locale, encoding
):
    android, ios = CAPTIONS[locale]
    path = tmp_path / "WhatsApp Chat with Ida.txt"
    lines = [
        f"31.12.23, 21:40 - Ida: {android}\nour cat Šárka\non the roof",
        f"31.12.23, 21:41 - Ben: {android}",
        f"31.12.23, 21:42 - Ida: the same cat\n{android}",
        f"[31.12.23, 21:43:05] Ben: a green door {ios}",
        f"[31.12.23, 21:44:05] Ida: {ios}\nmy suitcase",
        f"\u200e[31.12.23, 21:45:05] Ben: {ios}",
        f"31.12.23, 21:46 - Ida: I typed {android} here",
    ]
    path.write_text("\n".join(lines), encoding=encoding)
    rows, loaded = load(path)
    assert [text for text, *_ in rows] == [
        "our cat Šárka\non the roof",
        "the same cat",
        "a green door",
        "my suitcase",
        f"I typed {android} here",
    ]
    assert loaded.left_out["picture or other file"] == 6
    assert not loaded.skipped
