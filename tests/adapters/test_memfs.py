"""Folders of Markdown with front matter, read into a lab and written from it."""

import polars as pl
import pytest
from embedders import letters

import memlab
from memlab.io.adapters import read_memfs, write_memfs
from memlab.kernel.embedding import load_embedder

PERSONA = '---\ndescription: "Who I am: careful"\nlimit: 5000\nread_only: true\n---\nI am careful.\r\nI ask.\n'
FILES = {
    "system/persona.md": PERSONA,
    "reference/api/notes.md": "---\ndescription: >\n  folded\nextra:\n  - a\n---\n# Notes\n---\nDeploys on Tuesdays\n",
    "plain.md": "No front matter here.",
}


def laid(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())


def read_files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.long
def test_a_folder_comes_back_byte_for_byte(lab, tmp_path):
    laid(tmp_path / "in", FILES)
    assert sorted(read_memfs(lab, tmp_path / "in").added) == sorted(FILES)
    done = write_memfs(lab, tmp_path / "out")
    assert read_files(tmp_path / "out") == FILES
    assert len(done.added) == 3
    assert len(write_memfs(lab, tmp_path / "out").same) == 3
    memory = lab.memories.filter(pl.col("ref").str.contains("persona")).to_dicts()[0]
    assert (memory["summary"], memory["pinned"], memory["text"]) == (
        "Who I am: careful",
        True,
        "I am careful.\r\nI ask.\n",
    )
    assert lab.recall("when are deploys?")[0].text.startswith("# Notes")


@pytest.mark.long
def test_a_changed_file_is_an_edit_and_a_missing_one_is_deleted_if_asked(lab, tmp_path):
    laid(tmp_path, FILES)
    read_memfs(lab, tmp_path)
    (tmp_path / "plain.md").write_text("Another text.")
    (tmp_path / "system/persona.md").unlink()
    again = read_memfs(lab, tmp_path)
    assert (again.changed, again.same, again.deleted) == (
        ("plain.md",),
        ("reference/api/notes.md",),
        (),
    )
    assert read_memfs(lab, tmp_path, delete=True).deleted == ("system/persona.md",)
    assert sorted(lab.memories["status"]) == ["active", "active", "deleted", "superseded"]


def test_links_hidden_folders_and_other_files_are_left(lab, tmp_path):
    laid(
        tmp_path / "a",
        {"x.md": "x", ".git/y.md": "y", "z.txt": "z", "empty.md": "---\ndescription: e\n---\n"},
    )
    laid(tmp_path / "outside", {"secret.md": "s"})
    (tmp_path / "a" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "a" / "l.md").symlink_to(tmp_path / "outside" / "secret.md")
    read = read_memfs(lab, tmp_path / "a")
    assert read.added == ("x.md",)
    assert [path for path, _ in read.skipped] == ["empty.md", "l.md", "link"]


def test_bad_files_are_named_and_nothing_is_stored(lab, tmp_path):
    laid(tmp_path, {"a.md": "fine"})
    (tmp_path / "b.md").write_bytes(b"\xff\xfe")
    with pytest.raises(memlab.MemlabError, match=r"b\.md is not UTF-8: invalid byte at 0"):
        read_memfs(lab, tmp_path)
    (tmp_path / "b.md").write_bytes(b"x" * 2_000_001)
    with pytest.raises(memlab.MemlabError, match=r"b\.md has more than"):
        read_memfs(lab, tmp_path)
    with pytest.raises(memlab.InputError, match="is not a folder"):
        read_memfs(lab, tmp_path / "c")
    assert not len(lab)


def test_other_memories_are_copies_that_are_known_again(lab, tmp_path):
    lab.remember("Deploys go out on Tuesdays", kind="convention", summary='when "deploys" go out')
    lab.remember("I am Ada", pinned=True)
    lab.forget(lab.remember("out of use"))
    done = write_memfs(lab, tmp_path, memories=[1, 2, 3])
    assert done.added == (
        "reference/convention/0000001-deploys-go-out-on-tuesdays.md",
        "system/0000002-i-am-ada.md",
    )
    first = tmp_path / done.added[0]
    assert first.read_text().startswith(
        '---\ndescription: "when \\"deploys\\" go out"\nmemlab: "1 '
    )
    read = read_memfs(lab, tmp_path)
    assert not read.added
    assert len(read.skipped) == 2
    first.write_text(first.read_text().replace("Tuesdays", "Fridays"))
    assert read_memfs(lab, tmp_path).added == (done.added[0],)


def test_writing_never_leaves_the_folder(lab, tmp_path):
    laid(tmp_path / "in", {"a/x.md": "x"})
    read_memfs(lab, tmp_path / "in")
    (tmp_path / "outside").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(memlab.InputError, match="is a link"):
        write_memfs(lab, tmp_path / "out")
    assert not read_files(tmp_path / "outside")


@pytest.mark.long
def test_a_purge_finds_what_was_written_and_removes_it_if_asked(tmp_path):
    with memlab.open(tmp_path / "lab", embedder=load_embedder(letters, name="letters")) as lab:
        laid(tmp_path / "in", {"a.md": "Ada lives in Trondheim, in the yellow house"})
        read_memfs(lab, tmp_path / "in")
        write_memfs(lab, tmp_path / "out")
        assert str(tmp_path / "out" / "a.md") in repr(lab.purge(1))
    with memlab.open(tmp_path / "again", embedder=load_embedder(letters, name="letters")) as lab:
        read_memfs(lab, tmp_path / "in")
        write_memfs(lab, tmp_path / "gone")
        lab.purge(1, remove_exports=True)
        assert not read_files(tmp_path / "gone")
