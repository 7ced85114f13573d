"""The six commands of Claude's memory tool over memories as files."""

import pytest
from embedders import letters
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.io.adapters import MemoryFiles
from memlab.kernel.embedding import load_embedder


def opened(path=None):
    return memlab.open(path, embedder=load_embedder(letters, name="letters"))


@pytest.fixture
def files(lab):
    return MemoryFiles(lab)


@pytest.mark.long
def test_a_file_is_a_memory_and_a_view_of_it_leaves_a_slate(lab, files):
    assert files.run(
        {"command": "create", "path": "/memories/ada.md", "file_text": "Ada likes tea.\nAnd rain."}
    ) == ("File created successfully at: /memories/ada.md")
    assert lab[1].text == "Ada likes tea.\nAnd rain."
    result = files.run({"command": "view", "path": "/memories/ada.md"})
    assert result == (
        "Here's the content of /memories/ada.md with line numbers:\n     1\tAda likes tea.\n     2\tAnd rain."
    )
    assert lab[1].access == 1
    assert [hit.id for hit in files.hits] == [1]
    assert lab.slates().decisions.collect().height == 1
    assert "ada" in lab.recall("tea")[0].ref


def test_a_folder_shows_names_and_no_texts_and_logs_nothing(lab, files):
    files.create("/memories/people/ada.md", "Ada likes tea.")
    files.create("/memories/people/deep/er/x.md", "far down")
    files.create("/memories/.hidden", "not listed")
    listing = files.view("/memories")
    assert listing.splitlines()[1:] == [
        "32B\t/memories",
        "22B\t/memories/people/",
        "14B\t/memories/people/ada.md",
        "8B\t/memories/people/deep/",
    ]
    assert files.view("/memories/people/").splitlines()[2] == "14B\t/memories/people/ada.md"
    assert not lab.slates().decisions.collect().height


@pytest.mark.long
def test_edits_supersede_and_keep_the_past(lab, files):
    files.create("/memories/todo.md", "one\ntwo\n")
    files.insert("/memories/todo.md", 1, "between")
    assert "     2\tbetween" in files.view("/memories/todo.md")
    files.insert("/memories/todo.md", 0, "first\n")
    files.str_replace("/memories/todo.md", "two", "three")
    assert files.view("/memories/todo.md", [3, -1]).splitlines()[1:] == [
        "     3\tbetween",
        "     4\tthree",
        "     5\t",
    ]
    assert lab.memories["status"].to_list() == ["superseded"] * 3 + ["active"]
    assert lab[4].text == "first\none\nbetween\nthree\n"


@pytest.mark.long
def test_rename_and_delete_of_files_and_folders(lab, files):
    files.create("/memories/a/x.md", "x")
    files.create("/memories/a/b/y.md", "y")
    files.rename("/memories/a", "/memories/c")
    assert "/memories/c/b/" in files.view("/memories")
    files.rename("/memories/c/x.md", "/memories/x.md")
    files.delete("/memories/c")
    assert files.view("/memories").splitlines()[2:] == ["1B\t/memories/x.md"]
    ids = lab.memories.filter(memlab.subjects.lab.pl.col("status") == "deleted")["id"].to_list()
    lab.restore(ids)
    assert "y.md" in files.view("/memories/c/b")
    assert files.clear() == "All memory cleared"
    assert files.view("/memories").splitlines()[1:] == ["0B\t/memories"]


OUTSIDE = [
    "/etc/passwd",
    "/memoriesX/a",
    "memories/a",
    "/memories/../a",
    "/memories/a/../../b",
    "/memories/./a",
    "/memories/%2e%2e/a",
    "/memories/%2E%2e%2fa",
    "/memories/..\\a",
    "/memories/．．/a",
    "/memories/a\x00b",
    "/memories/a\nb",
    "/memories/.. /a",
    "/memories/" + "x/" * 40 + "y",
    "/memories/" + "x" * 300,
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_elsewhere_is_refused_by_every_command(lab, files, path):
    files.create("/memories/a", "a")
    for command in [
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "a", "new_str": "b"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/b"},
        {"command": "rename", "old_path": "/memories/a", "new_path": path},
    ]:
        with pytest.raises(memlab.InputError):
            files.run(command)
    assert len(lab) == 1


def test_an_impossible_command_is_reported_and_changes_nothing(lab, files):
    files.create("/memories/notes.md", "tea tea")
    files.create("/memories/d/x.md", "x")
    refused = [
        ({"command": "create", "path": "/memories/notes.md", "file_text": ""}, "already exists"),
        ({"command": "create", "path": "/memories/d", "file_text": ""}, "already exists"),
        (
            {"command": "create", "path": "/memories/notes.md/x", "file_text": ""},
            "is not a directory",
        ),
        ({"command": "create", "path": "/memories", "file_text": ""}, "already exists"),
        ({"command": "view", "path": "/memories/note.md"}, "Did you mean /memories/notes.md?"),
        (
            {"command": "view", "path": "/memories/notes.md", "view_range": [9, 10]},
            "view_range must be within 1 to 1",
        ),
        (
            {
                "command": "str_replace",
                "path": "/memories/notes.md",
                "old_str": "tea",
                "new_str": "",
            },
            r"Multiple occurrences of old_str `tea` in lines: 1, 1\. Please",
        ),
        (
            {
                "command": "str_replace",
                "path": "/memories/notes.md",
                "old_str": "mate",
                "new_str": "",
            },
            "verbatim",
        ),
        (
            {"command": "str_replace", "path": "/memories/d", "old_str": "x", "new_str": ""},
            "The path /memories/d is not a file",
        ),
        (
            {
                "command": "insert",
                "path": "/memories/notes.md",
                "insert_line": 5,
                "insert_text": "",
            },
            r"within the range \[0, 1\]",
        ),
        ({"command": "delete", "path": "/memories"}, "Cannot delete the /memories directory"),
        (
            {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e"},
            "into itself",
        ),
        (
            {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/notes.md"},
            "already exists",
        ),
        ({"command": "erase", "path": "/memories/d"}, "no command"),
        ({"command": "view"}, "needs path"),
        ({"command": "view", "path": "/memories", "recursive": True}, "no argument"),
        ({"command": "view", "path": 7}, "path"),
    ]
    seq = lab.io.store.journal.head
    for command, why in refused:
        with pytest.raises(memlab.InputError, match=why):
            files.run(command)
    assert lab.io.store.journal.head == seq


def test_a_secret_in_a_file_is_redacted(files):
    files.create(
        "/memories/keys.md", "The key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD, keep it."
    )
    assert "[REDACTED: OpenAI key]" in files.view("/memories/keys.md")


@pytest.mark.long
def test_files_are_there_after_a_restart_and_apart_by_name(tmp_path):
    with opened(tmp_path / "lab") as lab:
        MemoryFiles(lab).create("/memories/ada.md", "Ada likes tea.")
    with opened(tmp_path / "lab") as lab:
        assert "Ada likes tea." in MemoryFiles(lab).view("/memories/ada.md")
        assert "ada.md" not in MemoryFiles(lab, name="other").view("/memories")


CONTENT = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)


@pytest.mark.long
@given(st.lists(CONTENT, min_size=1, max_size=4))
def test_written_files_are_read_back(contents):
    """Every file as it was written: blank ones, any character, any line ends; unless the gate redacts it."""
    with opened() as lab:
        files = MemoryFiles(lab)
        for number, content in enumerate(contents):
            files.create(f"/memories/{number}", content)
        for number, content in enumerate(contents):
            kept = files.view(f"/memories/{number}").split("\n")[1:]
            assert [line[7:] for line in kept] == content.split("\n")


@pytest.mark.parametrize("pack", ["cascade", "companion"])
def test_a_pack_with_a_threshold_shows_a_file_that_is_viewed(pack):
    with memlab.open(pack=pack) as lab:
        files = MemoryFiles(lab)
        files.create("/memories/deploy.md", "Deploys go out on Tuesdays\n" * 30)
        files.view("/memories/deploy.md")
        assert [hit.id for hit in files.hits] == [1]
