"""Files that a session touched make their modules better known, whatever names them."""

import json

import polars as pl
import pytest
from click.testing import CliRunner

import memlab
from memlab.errors import InputError, NotPermitted, UnknownName
from memlab.subjects.modules.modules import known_path, paths_in
from memlab.ui.cli import main

FILES = [
    "src/auth/tokens.ts",
    "src/auth/session.ts",
    "src/billing/invoice.ts",
    "src/billing/vat.ts",
]
FILES += ["src/utils/jwt.ts", "src/utils/dates.ts", "src/utils/mails.ts", "src/utils/smtp.ts"]
EDIT = {
    "tool_name": "Edit",
    "tool_input": {"file_path": "src/auth/tokens.ts", "old_string": "a", "new_string": "b"},
}


@pytest.fixture
def tree(tmp_path):
    for name in FILES:
        path = tmp_path / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path / "shop"


@pytest.fixture
def mapped(lab, tree):
    lab.agents.modules.scan(tree, project="shop")
    return lab


def confidence(lab):
    return dict(lab.agents.modules.map("shop").frame.select("module", "confidence").rows())


def test_confidence_rises_with_the_sessions_that_touched_a_module(mapped):
    assert set(confidence(mapped).values()) == {"shallow"}
    for session, expected in (("mon", "partial"), ("tue", "partial"), ("wed", "mapped")):
        mapped.agents.modules.touch(EDIT, project="shop", session=session)
        assert confidence(mapped) | {"src/auth": expected} == confidence(mapped)
    assert confidence(mapped)["src/billing"] == "shallow"
    assert len(mapped) == 0


def test_the_same_again_writes_nothing(mapped):
    mapped.agents.modules.touch(FILES[:2], project="shop", session="mon")
    before = mapped.log.height
    mapped.agents.modules.touch(FILES[:2], project="shop", session="mon")
    assert mapped.log.height == before


def test_a_new_file_joins_its_module_and_secrets_and_strange_paths_do_not(mapped):
    mapped.agents.modules.touch(
        ["src/auth/mfa.ts", ".env", "/etc/passwd", "/home/me/shop/src/billing/tax.ts"],
        project="shop",
    )
    files = dict(mapped.agents.modules.map("shop").frame.select("module", "files").rows())
    assert "src/auth/mfa.ts" in files["src/auth"]
    assert "src/billing/tax.ts" in files["src/billing"]
    assert "passwd" not in str(files)
    assert ".env" not in str(files)


@pytest.mark.long
def test_touched_files_survive_reopening_and_another_scan(disk, tree):
    with disk() as lab:
        lab.agents.modules.scan(tree, project="shop")
        lab.agents.modules.touch(EDIT, project="shop", session="mon")
        lab.io.snapshot()
        lab.agents.modules.touch(EDIT, project="shop", session="tue")
        lab.agents.modules.scan(tree, project="shop")
    with disk() as lab:
        row = lab.agents.modules.map("shop").frame.row(
            by_predicate=pl.col("module") == "src/auth", named=True
        )
        assert (row["touched"], row["sessions"], row["confidence"]) == (1, 2, "partial")


def test_an_agent_touches_as_itself(mapped):
    mapped.agents("coder", project="shop", session="mon").touch([EDIT])
    assert confidence(mapped)["src/auth"] == "partial"
    with pytest.raises(NotPermitted):
        mapped.agents("coder", project="shop", role="reader").touch([EDIT])
    with pytest.raises(InputError, match="project"):
        mapped.agents("coder").touch([EDIT])
    with pytest.raises(UnknownName):
        mapped.agents.modules.touch([EDIT], project="shoq")


@pytest.mark.parametrize(
    "text",
    [
        "a/b.py",
        {"tool_name": "Read", "tool_input": {"file_path": "a/b.py"}},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "name": "Write", "input": {"path": "a/b.py"}}],
        },
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "edit", "arguments": '{"path": "a/b.py"}'}}],
        },
        {"message": {"content": [{"type": "tool_use", "input": {"notebook_path": "a/b.py"}}]}},
    ],
)
def test_forms_that_name_a_file(text):
    assert list(paths_in(text)) == ["a/b.py"]


@pytest.mark.parametrize(
    "text",
    [{"role": "user", "content": "look at a/b.py"}, {"input": {"command": "ls"}}, {}, {"input": 7}],
)
def test_texts_that_name_no_file(text):
    assert list(paths_in(text)) == []


def test_absolute_paths_count_by_the_end_that_is_known():
    files = ["src/a.py", "src/b.py"]
    assert known_path("/home/x/src/a.py", files) == "src/a.py"
    assert known_path("C:\\work\\src\\new.py", files) == "src/new.py"
    assert known_path("./src/new.py", files) == "src/new.py"
    assert known_path("/elsewhere/x.py", files) is None


@pytest.mark.long
class TestCommand:
    def run(self, *words, text=None):
        return CliRunner().invoke(main, list(map(str, words)), input=text)

    def test_a_hook_gives_its_report_to_standard_input(self, tmp_path, tree):
        lab = tmp_path / "lab"
        assert self.run("agent", "scan", lab, tree, "--project", "shop").exit_code == 0
        report = EDIT | {
            "session_id": "abc",
            "hook_event_name": "PostToolUse",
            "cwd": "/home/me/shop",
        }
        assert self.run("agent", "touch", lab, "-", text=json.dumps(report)).exit_code == 0
        assert (
            self.run(
                "agent", "touch", lab, "-", text="src/billing/vat.ts\nsrc/billing/invoice.ts\n"
            ).exit_code
            == 0
        )
        with memlab.open(lab) as opened:
            rows = (
                opened.agents.modules.map("shop")
                .frame.select("module", "touched", "sessions")
                .rows()
            )
            assert {row[0]: row[1:] for row in rows}["src/auth"] == (1, 1)
            assert {row[0]: row[1:] for row in rows}["src/billing"] == (2, 0)

    def test_conventions_are_reviewed_and_accepted_and_the_map_is_a_page(self, tmp_path, tree):
        lab, page = tmp_path / "lab", tmp_path / "map.html"
        (tree / "AGENTS.md").write_text("- Use tabs, always.\n- Never commit <b>secrets</b>.\n")
        self.run("agent", "scan", lab, tree, "--project", "shop")
        assert "2  Never commit" in self.run("agent", "modules", lab, "--conventions").output
        assert self.run("agent", "modules", lab, "--accept", 3).exit_code == 1
        assert self.run("agent", "modules", lab, "--accept", 2).exit_code == 0
        assert self.run("agent", "modules", lab, "--html", page).exit_code == 0
        text = page.read_text()
        assert "src/billing" in text
        assert "Use tabs, always." in text
        assert "<b>secrets" not in text
        with memlab.open(lab) as opened:
            assert opened.memories["text"].to_list() == ["Never commit <b>secrets</b>."]
            assert opened.memories["kind"].to_list() == ["convention"]
