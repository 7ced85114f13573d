"""What an audit finds in other tools' stores, and that it tells no secret and runs nothing."""

import json

import pytest

import memlab
from memlab.auditing import FINDINGS
from memlab.errors import InputError, UnknownName

SECRET = "ghp_" + "a1" * 20
STATEMENTS = [
    "The user likes dark mode",
    "The user likes dark mode.",
    "The user does not like dark mode",
    "Deploys go out on Tuesdays",
    "The user lives in Boston",
    "The user has moved to Seattle",
    f"the token is {SECRET}",
]


@pytest.fixture(scope="module")
def found():
    return [
        {"id": str(n), "memory": text, "created_at": f"2026-0{1 + n}-01T10:00:00Z"} for n, text in enumerate(STATEMENTS)
    ]


@pytest.fixture
def mem0(tmp_path, found):
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps({"results": found}))
    return path


def pairs(audit, finding):
    return {frozenset(row) for row in audit.of(finding).select("id", "other").rows()}


def test_an_export_of_mem0(mem0):
    audit = memlab.audit(mem0, at="2026-08-01", stale_days=150)
    assert pairs(audit, "duplicate") == {frozenset({1, 2})}
    assert any(3 in pair for pair in pairs(audit, "contradiction"))
    assert audit.of("outdated").select("id", "other").rows() == [(5, 6)]
    assert audit.of("stale")["id"].to_list() == [1, 2, 3]
    assert audit.of("secret").select("id", "why").rows()[0][0] == 7
    assert audit.counts["never recalled"] == 0
    assert list(audit.counts) == list(FINDINGS)
    assert audit.memories["place"].to_list() == list(range(1, 8))


def test_no_secret_leaves_it(mem0, tmp_path):
    audit = memlab.audit(mem0)
    page = audit.to_html(tmp_path / "page.html").read_text()
    for text in (page, audit.json, audit.text(), repr(audit), audit._repr_html_(), str(audit.memories.to_dicts())):
        assert SECRET not in text
    assert json.loads(audit.json)["counts"]["secret"] == 1


def test_a_page_is_whole_and_nothing_in_it_is_markup(tmp_path):
    hostile = "<script>alert(1)</script> is the user's favourite \x1b[31m"
    audit = memlab.audit([hostile, hostile], columns={"text": "text"})
    page = audit.to_html(tmp_path / "page.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
    assert "http" not in page.replace("http-equiv", "")
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        audit.to_html(tmp_path / "taken" / "page.html")


def test_a_folder_of_memory_files(tmp_path):
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "human.md").write_text(
        "---\ndescription: about the user\nlimit: 2000\n---\n# Taste\n- The user likes dark mode\n- Tea\n"
    )
    (tmp_path / "notes.md").write_text("The user does not like dark mode\n")
    audit = memlab.audit(tmp_path)
    assert audit.counts["contradiction"] == 1
    row = audit.of("contradiction").to_dicts()[0]
    sources = dict(audit.memories.select("id", "source").iter_rows())
    assert {sources[row["id"]], sources[row["other"]]} == {"notes.md", "system/human.md"}
    assert audit.loaded.left_out["field description"] == 1


def test_what_the_store_says_of_recalls_counts(tmp_path):
    with memlab.open(tmp_path / "lab") as lab:
        lab.remember_many([{"text": "Deploys go out on Tuesdays"}, {"text": "Unrelated walrus paperwork"}])
        lab.recall("when do deploys go out?", limit=1)
    audit = memlab.audit(tmp_path / "lab")
    assert audit.of("never recalled")["id"].to_list() == [2]


def test_turns_are_not_compared():
    turns = [{"role": "user", "content": text} for text in STATEMENTS[:3]]
    audit = memlab.audit(turns)
    assert (audit.compared, len(audit.memories)) == (0, 3)
    assert "0 of them compared; in turns of a conversation only secrets are looked for" in audit.text()
    assert "nothing was found" in audit.text()


def test_bad_arguments(tmp_path):
    with pytest.raises(InputError, match="There is nothing at"):
        memlab.audit(tmp_path / "nowhere")
    with pytest.raises(UnknownName, match="no finding"):
        memlab.audit([]).of("double")
    with pytest.raises(UnknownName, match="no pack"):
        memlab.audit([], pack="cascad")


def test_the_commands(run, json_of, mem0, tmp_path):
    printed = json_of("audit", mem0, "--html", "page.html")
    assert printed["counts"]["secret"] == 1
    assert (tmp_path / "page.html").is_file()
    assert "contradiction: It excludes" in run("audit", mem0).stdout
    (tmp_path / "chat.csv").write_text("who,body\nAnn,hello there\n")
    loaded = json_of("load", "a.memlab", "chat.csv", "--column", "text=body", "--column", "at=")
    assert (loaded["added"], loaded["skipped"]) == (1, 0)
    assert ["chat.csv", "text", "body"] in loaded["guessed"]
    assert json_of("load", "a.memlab", "chat.csv", "--column", "text=body")["known"] == 1
