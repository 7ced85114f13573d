"""Limits of readers: kinds of files, decoded bytes, values, files and levels of folders."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import memlab
from memlab.errors import DatasetError, InputError, MemlabError, NotALab
from memlab.io import ingest
from memlab.io.formats import lines, parquet_limits, scan_parquet, sources
from memlab.kernel.base.arguments import _rules
from memlab.kernel.base.disk import read_source_file
from memlab.ui.cli._base import read_frame


@pytest.fixture
def lab() -> Iterator[memlab.Lab]:
    with memlab.open() as lab:
        yield lab


# -- kinds of files ---------------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[Path], Any]] = {
    "f.jsonl": lambda path: ingest.read_questions(path),
    "f.json": lambda path: ingest.read_locomo(path),
    "f.tsv": lambda path: ingest.digest(path),
    "f.hy": lambda path: memlab.open(pack=path),
    "f.txt": read_source_file,
    "f.parquet": scan_parquet,
}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "md", "txt", "csv", "sexp", "json"])
def test_a_pipe_is_refused_without_waiting(suffix: str, tmp_path: Path, lab: memlab.Lab) -> None:
    path = tmp_path / f"pipe.{suffix}"
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file but a pipe"):
        lab.load(path)


@pytest.mark.parametrize("name", READERS)
def test_every_reader_refuses_a_pipe_a_device_and_a_socket(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        READERS[name](path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="not a regular file"):
        READERS[name](path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        with pytest.raises(InputError, match="not a regular file"):
            READERS[name](path)


def test_a_folder_is_read_without_its_pipes(tmp_path: Path, lab: memlab.Lab) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to("/dev/zero")
    (tmp_path / "c.jsonl").write_text('{"text": "hello"}')
    loaded = lab.load(tmp_path)
    assert len(lab) == 1
    assert loaded.skipped == {"file not read": 1}
    assert loaded.left_out == {"link": 1}


@pytest.mark.parametrize("name", ["journal.db", "head"])
def test_a_lab_whose_file_is_a_pipe_is_told(name: str, tmp_path: Path) -> None:
    memlab.open(tmp_path / "lab").close()
    (tmp_path / "lab" / name).unlink()
    os.mkfifo(tmp_path / "lab" / name)
    if name == "head":
        with pytest.warns(memlab.errors.DamageWarning, match="not a regular file"):
            memlab.open(tmp_path / "lab", read_only=True).close()
    else:
        with pytest.raises(NotALab, match="not a regular file"):
            memlab.open(tmp_path / "lab")


# -- decoded bytes ----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_kilobyte_that_decodes_to_600_megabytes_is_refused_within_a_second(
    tmp_path: Path, lab: memlab.Lab
) -> None:
    path = tmp_path / "texts.parquet"
    pl.DataFrame({"text": ["x" * 10_000] * 60_000}).write_parquet(path)
    assert path.stat().st_size < 1_100
    began = time.process_time()
    with pytest.raises(DatasetError, match="decodes to 600,480,000"):
        lab.load(path)
    assert time.process_time() - began < 1
    assert len(lab) == 0
    with pytest.raises(DatasetError, match="decodes to"):
        read_frame(path)


@pytest.mark.long
@pytest.mark.parametrize("inner", ["list", "struct", "binary", "category", "array"])
def test_texts_within_other_types_count(inner: str, tmp_path: Path) -> None:
    texts = pl.Series(["x" * 10_000] * 10_000)
    columns = {
        "list": texts.reshape((5_000, 2)).arr.to_list(),
        "array": texts.reshape((5_000, 2)),
        "struct": pl.DataFrame({"a": texts}).to_struct(),
        "binary": texts.cast(pl.Binary),
        "category": texts.cast(pl.Categorical),
    }
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": columns[inner]}).write_parquet(path)
    with pytest.raises(DatasetError, match="decodes to 100,"):
        scan_parquet(path)


@pytest.mark.long
def test_values_are_counted_before_they_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.select(pl.repeat(0, 10_000_000).implode().alias("text")).write_parquet(path)
    with pytest.raises(DatasetError, match="decodes to 80,"):
        scan_parquet(path)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "uncompressed", "gzip", "lz4", "brotli"])
def test_the_footer_counts_the_values_of_every_encoding(compression: Any, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "text": [f"text {n}" for n in range(1_000)],
            "number": range(1_000),
            "flag": [n % 3 == 0 for n in range(1_000)],
            "list": [[n, n] for n in range(1_000)],
        }
    )
    path = tmp_path / "a.parquet"
    frame.write_parquet(path, compression=compression, row_group_size=128, statistics="full")
    with path.open("rb") as file:
        assert parquet_limits._count_values(file, path.stat().st_size) == 5_000
    assert scan_parquet(path).collect().equals(frame)


@pytest.mark.parametrize(
    "tail", [b"", b"PAR1", b"\xff\xff\xff\x7fPAR1", b"\0\0\0\0PAR1", b"\x15\x02\x08\0\0\0PAR1"]
)
def test_a_damaged_footer_is_refused(tail: bytes, tmp_path: Path, lab: memlab.Lab) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + b"\x19\xfc" * 50 + tail)
    with pytest.raises(DatasetError, match=r"a\.parquet"):
        scan_parquet(path)
    with pytest.raises(DatasetError, match=r"a\.parquet"):
        lab.load(path)


@pytest.mark.parametrize(
    ("footer", "message"),
    [
        (b"\x15" + b"\xff" * 400_000 + b"\x01\0", "an integer has more than 64 bits"),
        (b"\x15" + b"\xff" * 10 + b"\x01\0", "an integer has more than 64 bits"),
        (b"\x18" + b"\xff" * 9 + b"\x01\0", "cannot be read"),
    ],
    ids=["long", "eleven bytes", "length of a text"],
)
def test_an_integer_of_a_footer_has_a_maximum(footer: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DatasetError, match=rf"a\.parquet .*{message}"):
        scan_parquet(path)


def test_an_integer_of_a_footer_may_have_64_bits() -> None:
    largest = io.BytesIO(b"\xff" * 9 + b"\x01")
    assert parquet_limits._read_varint(largest) == 2**64 - 1


def test_an_ordinary_file_may_decode_to_much_more_than_its_size(
    tmp_path: Path, lab: memlab.Lab
) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame(
        {"text": [f"The user likes tea number {n % 7}" for n in range(50_000)]}
    ).write_parquet(path)
    assert scan_parquet(path).collect().height == 50_000


def test_a_time_that_no_date_can_hold_is_refused(tmp_path: Path, lab: memlab.Lab) -> None:
    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({"text": ["hello"], "at": pl.Series([1 << 60]).cast(pl.Datetime("us"))})
    frame.write_parquet(path)
    for data in (path, frame):
        with pytest.raises(DatasetError, match=r"The rows from 1 on cannot be read: year \d+"):
            lab.load(data)


def test_a_document_of_many_short_values_is_refused(
    tmp_path: Path, lab: memlab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_VALUES", 100)
    path = tmp_path / "a.json"
    path.write_text("[" + "0," * 200 + "0]")
    with pytest.raises(DatasetError, match="200 commas; the maximum of a JSON document is 100"):
        lab.load(path)
    with pytest.raises(DatasetError, match="200 commas"):
        ingest.read_locomo(path)


def test_a_long_line_of_a_labelled_file_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memlab.io.formats.labelled.LONGEST_LINE", 1_000)
    for name, start in (("a.jsonl", ""), ("a.csv", "query,wanted\n")):
        (tmp_path / name).write_text(start + "a" * 5_000)
        with pytest.raises(DatasetError, match="more than 1,000 characters"):
            ingest.read_questions(tmp_path / name)


def test_a_compressed_or_overlong_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(DatasetError, match="compressed"):
        read_frame(path)
    path.write_text("a,b\n1,2\n")
    assert read_frame(path).height == 1
    monkeypatch.setattr(lines, "MAX_TABLE_BYTES", 5)
    with pytest.raises(DatasetError, match="Convert it to Parquet"):
        read_frame(path)


def test_folders_have_limits_of_files_and_levels(
    tmp_path: Path, lab: memlab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path.joinpath(*["d"] * 70)
    deep.mkdir(parents=True)
    (deep / "a.jsonl").write_text('{"text": "too deep"}')
    (tmp_path / "b.jsonl").write_text('{"text": "hello"}')
    assert lab.load(tmp_path).left_out == {"folder below 64 others": 1}
    monkeypatch.setattr(sources, "MAX_FILES", 3)
    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_text('{"text": "a"}')
    with pytest.raises(DatasetError, match="more than 3 files"):
        lab.load(tmp_path)


# -- iterables --------------------------------------------------------------------------------------------------------


class _Counted:
    """An endless iterator of numbers that counts how many were taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        for number in itertools.count():
            self.taken += 1
            yield number


@pytest.mark.parametrize(
    "call",
    [
        lambda lab, items: lab.remember(items),
        lambda lab, items: lab.feedback(items),
        lambda lab, items: lab.agents("coder").remember(items),
        lambda lab, items: lab.agents.extract(items),
        lambda lab, items: lab.facts.add(items),
    ],
)
def test_an_iterable_is_refused_at_the_first_item_that_is_no_row(
    call: Any, lab: memlab.Lab
) -> None:
    endless = _Counted()
    with pytest.raises(MemlabError):
        call(lab, endless)
    assert endless.taken <= 1
    with pytest.raises(MemlabError):
        call(lab, range(10**12))
    assert len(lab) == 0


def test_load_refuses_an_endless_iterable_of_other_things(lab: memlab.Lab) -> None:
    for items in (
        itertools.count(),
        range(10**12),
        itertools.chain([{"text": "a"}], itertools.count()),
    ):
        with pytest.raises(
            InputError, match=r"The 1000 items up to item .* are neither messages nor rows"
        ):
            lab.load(items)
    # a few strange items are skipped, as before
    loaded = lab.load([1, {"text": "hello"}, None])
    assert loaded.skipped == {"neither a message nor a row": 2}


def test_a_list_of_too_many_items_is_refused(
    lab: memlab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        InputError, match=r"forget\(memory=\.\.\.\): The list has more than 2,000,000 items"
    ):
        lab.forget(range(1, 10**12))
    monkeypatch.setattr(_rules, "_MAX_ITEMS", 10)
    with pytest.raises(InputError, match="Pass it in parts"):
        lab.remember({"text": "a"} for _ in itertools.count())
