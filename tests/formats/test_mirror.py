"""A readable copy next to the lab: names that every system accepts, only what changed, no foreign files."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.io.formats import build_file_name
from memlab.subjects.io.mirror import FILE_PATTERN


def files(folder):
    return sorted(item.name for item in folder.iterdir())


@pytest.mark.long
def test_a_mirror_has_a_page_for_each_memory_and_an_index(lab, tmp_path):
    lab.remember("CON: the user prefers tabs?", tags=["style"])
    lab.remember("```\nnot <b>markup</b>\n```")
    lab.graph.link(1, 2, "caused-by", weight=0.5)
    mirror = lab.io.mirror(tmp_path / "copy")
    assert files(mirror.folder) == [
        "0000001-con-the-user-prefers-tabs.md",
        "0000002-not-b-markup-b.md",
        "index.json",
    ]
    page = (mirror.folder / "0000001-con-the-user-prefers-tabs.md").read_text()
    assert page.startswith('---\nid: 1\nkind: "fact"\n')
    assert "# 1: CON: the user prefers tabs?\n" in page
    assert "- caused-by [2](0000002-not-b-markup-b.md) (0.5)\n" in page
    assert "- has-tag `" in page
    assert "tag/style" in page
    other = (mirror.folder / "0000002-not-b-markup-b.md").read_text()
    assert "# 2: \\`\\`\\` not &lt;b&gt;markup&lt;/b&gt;" in other
    assert "````escaped memlab\n```\nnot &#60;b>markup&#60;/b>\n```\n````" in other
    index = json.loads((mirror.folder / "index.json").read_text())
    assert index["memlab"] == "mirror"
    assert len(index["files"]) == len(mirror) == 2


@pytest.mark.long
def test_only_what_changed_is_written_and_what_is_purged_goes(lab, tmp_path):
    lab.remember(["one", "two", "three"])
    lab.graph.link(1, 3)
    mirror = lab.io.mirror(tmp_path / "copy")
    before = {item.name: item.stat().st_mtime_ns for item in mirror.folder.iterdir()}
    assert mirror.update() == 0
    lab.feedback(2, "success")
    assert mirror.update() == 1
    after = {item.name: item.stat().st_mtime_ns for item in mirror.folder.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {
        "0000002-two.md",
        "index.json",
    }
    assert "success: 1.0" in (mirror.folder / "0000002-two.md").read_text()
    lab.forget(2)
    mirror.update()
    assert 'status: "forgotten"' in (mirror.folder / "0000002-two.md").read_text()
    assert "0000003-three.md" in (mirror.folder / "0000001-one.md").read_text()
    lab.forget(3, how="delete")
    mirror.update()
    assert files(mirror.folder) == ["0000001-one.md", "0000002-two.md", "index.json"]
    assert "three" not in (mirror.folder / "0000001-one.md").read_text()
    lab.purge(2)
    mirror.update()
    assert files(mirror.folder) == ["0000001-one.md", "index.json"]
    assert "two" not in (mirror.folder / "index.json").read_text()


@pytest.mark.long
def test_a_second_mirror_goes_on_where_the_first_left_off(disk, tmp_path):
    with disk() as lab:
        lab.remember(["one", "two"])
        lab.io.mirror(tmp_path / "copy")
    folder = tmp_path / "copy"
    before = {item.name: item.stat().st_mtime_ns for item in folder.iterdir()}
    (folder / "0000009-left-over.md.draft").write_text("half")
    (folder / "0000002-two.md").unlink()
    with disk() as lab:
        lab.io.mirror(folder)
    after = {item.name: item.stat().st_mtime_ns for item in folder.iterdir()}
    assert after.keys() == before.keys()
    assert after["0000001-one.md"] == before["0000001-one.md"]


@pytest.mark.long
def test_a_folder_that_holds_other_things_is_refused(lab, tmp_path, trigrams):
    lab.remember("tabs")
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "diary.txt").write_text("mine")
    with pytest.raises(memlab.InputError, match=r"it contains diary.txt"):
        lab.io.mirror(folder)
    assert files(folder) == ["diary.txt"]
    (folder / "diary.txt").rename(folder / "0000001.md")
    with pytest.raises(memlab.InputError, match="no mirror index"):
        lab.io.mirror(folder)
    (folder / "0000001.md").rename(folder / "index.json")
    with pytest.raises(memlab.InputError, match="no mirror index"):
        lab.io.mirror(folder)
    (folder / "index.json").write_text("[" * 100_000)
    with pytest.raises(memlab.InputError, match="no mirror index"):
        lab.io.mirror(folder)
    with memlab.open(embedder=trigrams, clock=memlab.ManualClock("2020-01-01")) as other:
        other.remember("x")
        other.io.mirror(tmp_path / "theirs")
        with pytest.raises(memlab.InputError, match="mirrors another lab"):
            lab.io.mirror(tmp_path / "theirs")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    with pytest.raises(memlab.InputError, match="is a link"):
        lab.io.mirror(tmp_path / "link")
    (tmp_path / "file").write_text("x")
    with pytest.raises(memlab.InputError, match="cannot be used"):
        lab.io.mirror(tmp_path / "file")


@pytest.mark.long
def test_links_in_the_folder_are_replaced_and_never_followed(lab, tmp_path):
    lab.remember("tabs")
    mirror = lab.io.mirror(tmp_path / "copy")
    outside = tmp_path / "precious.txt"
    outside.write_text("precious")
    page = mirror.folder / "0000001-tabs.md"
    page.unlink()
    page.symlink_to(outside)
    (mirror.folder / "0000001-tabs.md.draft").symlink_to(outside)
    lab.feedback(1, "success")
    mirror.update()
    assert outside.read_text() == "precious"
    assert not page.is_symlink()
    assert "tabs" in page.read_text()


@pytest.mark.long
def test_names_in_an_index_lead_nowhere_else(lab, tmp_path):
    lab.remember("tabs")
    mirror = lab.io.mirror(tmp_path / "copy")
    outside = tmp_path / "precious.md"
    outside.write_text("precious")
    index = mirror.folder / "index.json"
    data = json.loads(index.read_text())
    data["files"] |= {"../precious.md": [7, 7], "/etc/passwd": [8, 8], "0000009.md": "x"}
    index.write_text(json.dumps(data))
    again = lab.io.mirror(mirror.folder)
    lab.remember("more")
    again.update()
    assert outside.read_text() == "precious"


@pytest.mark.long
def test_a_thread_keeps_it_in_step_until_it_is_stopped(disk, tmp_path):
    with disk() as lab:
        lab.remember("one")
        with lab.io.mirror(tmp_path / "copy", every=0.01) as mirror:
            assert mirror.active
            lab.remember("two")
            for _ in range(500):
                if len(mirror) == 2:
                    break
                time.sleep(0.01)
            assert len(mirror) == 2
            assert mirror.problem is None
        assert not mirror.active
        kept = lab.io.mirror(tmp_path / "copy", every=0.01)
    # The lab is closed, and the thread has nothing to read any more.
    for _ in range(500):
        if not kept.active:
            break
        time.sleep(0.01)
    assert not kept.active
    assert kept.update() == 0
    with disk() as lab, pytest.raises(memlab.InputError, match="every is a number above 0"):
        lab.io.mirror(tmp_path / "x", every=0)


@given(st.integers(1, 10**9), st.text(st.characters(exclude_categories=["Cs"])))
def test_every_system_takes_the_names(id, text):
    name = build_file_name(id, text)
    assert FILE_PATTERN.fullmatch(name)
    assert name.isascii()
    assert len(name) <= 80
    assert name[0].isdigit()


@pytest.mark.parametrize(
    "text", ["CON", "aux.txt", "a/b\\c", "..", "👩‍👩‍👧‍👦", "שלום", "x" * 5000, "", "trailing. "]
)
def test_reserved_and_strange_texts_have_plain_names(text):
    assert FILE_PATTERN.fullmatch(build_file_name(1, text))
