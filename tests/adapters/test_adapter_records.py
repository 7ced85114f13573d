"""Values under paths, as memories."""

import asyncio
import collections
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import memlab
from memlab.io.adapters import LabSession, MemoryFiles
from memlab.io.adapters._records import Records, build_write

pytestmark = pytest.mark.long


def test_of_two_that_two_processes_wrote_at_once_the_newer_counts_and_both_are_deleted(lab):
    """As it would be had another process added a memory between the look and the write."""
    records = Records(lab, "x")
    for text in ("older", "newer"):
        records.append([build_write(("k",), text)])
    assert [record.text for record in records.get_below()] == ["newer"]
    records.put([build_write(("k",), "newest")])
    assert lab.memories["status"].to_list() == ["deleted", "superseded", "active"]
    records.append([build_write(("k",), "another")])
    records.delete(records.get_below())
    assert not records.get_below()


EVERYTHING = pl.col("id") > 0


@pytest.mark.parametrize("probes", [1, 2])
def test_a_recall_of_records_has_as_many_as_there_are_and_says_so_in_the_log(lab, probes):
    lab.policies.use(
        f'(pack eager "Eager." :inherits memlab) (setting probe-rate 0.5) (setting probes {probes})'
    )
    records = Records(lab, "x")
    records.put([build_write((str(n),), f"Ada likes tea, says note {n}.") for n in range(40)])
    drawn = 0
    for limit in (1, 2, 10, 10, 10, 10, 10, 10, 10, 10):
        results = records.recall("tea of Ada", limit, EVERYTHING)
        assert [record.id for record, _ in results] == list(records.hits.ids)
        assert len(results) == limit
        drawn += bool(records.hits.probes)
    assert 0 < drawn < 10
    assert len(records.recall("tea of Ada", 100, EVERYTHING)) == 40
    assert not records.hits.probes


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pages_of_a_search_show_everything_once(lab, size):
    records = Records(lab, "x")
    records.put([build_write((str(n),), f"Ada likes tea, says note {n}.") for n in range(20)])

    def read_page(start):
        found = records.recall("tea of Ada", size, EVERYTHING, offset=start, search="tea")
        return [record.path for record, _ in found]

    pages = [read_page(start) for start in range(0, 20, size)]
    assert all(len(page) == size for page in pages)
    assert len({path for page in pages for path in page}) == 20
    assert read_page(20) == []
    assert len(set(read_page(0) + read_page(size))) == 2 * size
    # an edit between two pages does not show the record again
    first = read_page(0)
    records.put([build_write(first[0], "Ada likes tea, says a corrected note.")])
    assert set(read_page(size)).isdisjoint(first)


def test_a_page_that_follows_none_is_that_part_of_the_ranking(lab):
    records = Records(lab, "x")
    records.put([build_write((str(n),), f"Ada likes tea, says note {n}.") for n in range(20)])
    ranking = lab.recall("tea of Ada", limit=6, log=False)
    page = records.recall("tea of Ada", 3, EVERYTHING, offset=3, search="tea")
    assert [record.id for record, _ in page] == list(ranking.ids[3:])


def test_the_best_text_of_a_record_counts_and_a_record_is_returned_once(lab):
    records = Records(lab, "x")
    parts = [f"pizza number {n} is for Grace" for n in range(5)]
    records.put([build_write(("menu",), "A list of dishes", parts=parts)])
    records.put([build_write((str(n),), f"pizza for table {n}") for n in range(4)])
    results = records.recall("pizza for Grace", 5, EVERYTHING)
    assert {record.path for record, _ in results} == {("menu",), *((str(n),) for n in range(4))}
    assert results[0][0].path == ("menu",)
    assert results[0][0].text == "A list of dishes"
    assert next(record.path for record in records.get_below()) == ("menu",)
    # a text that is changed or gone is not found any more
    records.put([build_write(("menu",), "A list of dishes", parts=["soup"])])
    assert lab.memories.filter(pl.col("status") == "active")["text"].to_list() == [
        "A list of dishes",
        *(f"pizza for table {n}" for n in range(4)),
        "soup",
    ]
    records.delete(records.get_below()[:1])
    assert records.recall("soup", 5, records.select_records([])) == []
    assert lab.memories.filter(pl.col("status") == "active").height == 4


def test_two_sessions_of_one_lab_never_pop_the_same_item(tmp_path):
    lab = memlab.open(tmp_path / "lab")
    with memlab.open(tmp_path / "lab") as other:
        for handle in (lab, other):
            one, two = LabSession("s", lab), LabSession("s", handle)

            async def pop_both(one=one, two=two):
                await one.add_items([{"role": "user", "content": str(n)} for n in range(10)])
                return await asyncio.gather(*(s.pop_item() for s in (one, two) * 5))

            popped = [item["content"] for item in asyncio.run(pop_both())]
            assert sorted(popped) == [str(n) for n in range(10)]
    lab.close()


def test_files_that_two_adapters_edit_at_once_lose_no_edit(lab):
    files = [MemoryFiles(lab), MemoryFiles(lab)]
    files[0].create("/memories/log.md", "begin\n")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: files[n % 2].insert("/memories/log.md", 1, f"line {n}"), range(20)))
    shown = files[0].view("/memories/log.md")
    assert all(f"line {n}\n" in shown + "\n" for n in range(20))


_POPS = """
import asyncio, sys, memlab
from memlab.io.adapters import LabSession
with memlab.open(sys.argv[1]) as lab:
    session = LabSession("s", lab)
    while (item := asyncio.run(session.pop_item())) is not None:
        print(item["content"], flush=True)
"""


def test_two_processes_never_pop_the_same_item(tmp_path):
    with memlab.open(tmp_path / "lab") as lab:
        items = [{"role": "user", "content": str(n)} for n in range(60)]
        asyncio.run(LabSession("s", lab).add_items(items))
    command = [sys.executable, "-c", _POPS, str(tmp_path / "lab")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    popped = [line for process in processes for line in process.communicate()[0].split()]
    assert [process.returncode for process in processes] == [0, 0]
    assert collections.Counter(popped) == collections.Counter(str(n) for n in range(60))
