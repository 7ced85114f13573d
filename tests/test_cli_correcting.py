"""The commands that correct a lab: what they tell, and exit statuses that mean something."""

import pytest

import memlab

pytestmark = pytest.mark.long


@pytest.fixture
def lab(json_of):
    for text in ("deploys on Tuesdays", "tabs, not spaces", "the quokkas are in the shed"):
        json_of("remember", "a.memlab", text, "--project", "api")
    return "a.memlab"


def test_a_field_is_changed_in_the_memory_and_a_text_in_a_new_one(json_of, run, lab):
    edited = json_of(
        "edit",
        lab,
        2,
        "--set",
        "importance=0.9",
        "--set",
        "summary=tabs",
        "--set",
        "pinned=true",
        "--tag",
        "x",
    )
    told = {"rebuilt": [], "dropped": [], "notes": []}
    assert edited == {"id": 2, "text": "tabs, not spaces", "supersedes": None, **told}
    row = json_of("show", lab, 2)
    assert (row["importance"], row["summary"], row["pinned"], row["tags"]) == (
        0.9,
        "tabs",
        True,
        ["x"],
    )
    json_of("edit", lab, 2, "--set", "summary=null")
    assert json_of("show", lab, 2)["summary"] is None
    assert json_of("edit", lab, 1, "--text", "deploys on Fridays") == {
        "id": 4,
        "text": "deploys on Fridays",
        "supersedes": 1,
        **told,
    }
    said = run("edit", lab, 1, "--text", "deploys on Mondays").stdout.splitlines()
    assert said == [
        "#5 supersedes #1: deploys on Mondays",
        "  Memory 1 was edited before: this edit changed memory 4.",
    ]
    assert run("edit", lab, 1).exit_code == 1
    assert run("edit", lab, 1, "--set", "importance").exit_code == 2
    assert run("edit", lab, 1, "--set", "text=new").exit_code == 2
    wrong = run("edit", lab, 1, "--set", "importance=high")
    assert wrong.exit_code == 1
    assert "finite number" in wrong.stderr


def test_flag_delete_and_restore(json_of, run, lab):
    json_of("edit", lab, 1, "--text", "deploys on Fridays")
    flagged = json_of("deprecate", lab, 4, "it never changed")
    assert [row["status"] for row in flagged["changed"]] == ["deprecated"]
    assert [row["memory_id"] for row in flagged["review"]] == [1]
    assert run("restore", lab, 4).stdout.splitlines() == [
        "#4 is active (was deprecated)",
        "review #1 (superseded by it: #4) deploys on Tuesdays",
    ]
    assert [
        row["memory_id"]
        for row in json_of("forget", "--how", "delete", lab, "--project", "api")["changed"]
    ] == [
        1,
        2,
        3,
        4,
    ]
    assert run("forget", "--how", "delete", lab, "--project", "api").stdout == "nothing to change\n"
    restored = json_of("restore", lab, "--project", "api")["changed"]
    assert [row["status"] for row in restored] == ["superseded", "active", "active", "active"]
    assert [
        row["memory_id"] for row in json_of("forget", "--how", "delete", lab, 2, 3)["changed"]
    ] == [2, 3]
    assert run("forget", "--how", "delete", lab).exit_code == 1
    assert run("restore", lab, 99).exit_code == 1


def test_a_purge_has_to_be_meant(json_of, run, lab, tmp_path):
    json_of("upkeep", "backup", lab)
    refused = run("purge", lab, 3)
    assert refused.exit_code == 1
    assert "--yes" in refused.stderr
    assert json_of("purge", lab, 3, "--yes", "--reason", "asked for")["purged"] == [3]
    held = [
        file for file in tmp_path.rglob("*") if file.is_file() and b"quokka" in file.read_bytes()
    ]
    assert held == []
    assert json_of("purge", lab, "--overdue", "--yes")["purged"] == []
    assert "Purged 3 memories" not in run("purge", lab, "--project", "nobody", "--yes").stdout
    assert run("purge", lab, "--yes").exit_code == 1
    assert run("purge", lab, 2, "--session", "s", "--yes").exit_code == 1
    assert json_of("show", lab, 3)["status"] == "purged"


def test_a_backup_is_a_lab(json_of, run, lab, tmp_path):
    data = json_of("upkeep", "backup", lab, "--folder", tmp_path / "kept", "--keep", 1)
    assert data["kept"] == 1
    with memlab.open(data["path"], read_only=True) as copy:
        assert len(copy) == 3
    again = json_of("upkeep", "backup", lab, "--folder", tmp_path / "kept", "--keep", 1)
    assert again["kept"] == 1
    assert again["path"] != data["path"]
    assert run("upkeep", "backup", lab, "--keep", 0).exit_code == 1
    assert run("upkeep", "backup", "nowhere").exit_code == 1


def test_a_purge_prints_its_receipt(json_of, run, lab, tmp_path):
    json_of("remember", lab, "Fennel tops for the rabbit", "--session", "monday")
    json_of("upkeep", "export", lab, tmp_path / "out.md")
    json_of("upkeep", "mirror", lab, tmp_path / "copy")
    printed = run("purge", lab, "--session", "monday", "--yes").stdout
    assert "removed  1 memories" in printed
    assert f"removed  1 mirrors in {tmp_path / 'copy'} (updated)" in printed
    assert f"in {tmp_path / 'out.md'} (file; an export, which is kept)" in printed
    json_of("remember", lab, "Hay for the rabbit", "--session", "friday")
    json_of("upkeep", "export", lab, tmp_path / "again.md")
    done = json_of("purge", lab, "--session", "friday", "--remove-exports", "--yes")
    assert [row["where"] for row in done["receipt"] if row["what"] == "exports"] == [
        str(tmp_path / "again.md")
    ]
    assert not [
        row for row in done["receipt"] if row["step"] == "found" and "again" in row["where"]
    ]


def test_a_refusal_names_the_commands_of_verbs(run, lab):
    refused = run("edit", lab, 1, "--set", "status=deleted")
    assert refused.exit_code == 1
    assert refused.stderr.endswith(" At the command line: memlab forget, memlab restore.\n")
