"""export, import, run and mirror on the command line."""

import pytest

import memlab


@pytest.fixture
def day(tmp_path):
    path = tmp_path / "day.hy"
    path.write_text(
        '(remember "tabs are better" "preference" 0.8 "30d" ["style"])\n(recall "tabs" 1)\n'
    )
    return path


@pytest.mark.long
def test_out_of_one_lab_and_into_another(json_of, run):
    json_of("remember", "a.memlab", "The bakery opens at six.", "--project", "town")
    json_of("remember", "a.memlab", "Tabs.")
    for path in ("a.jsonl", "a.md", "a.sexp", "a.parquet"):
        assert json_of("upkeep", "export", "a.memlab", path) == {"path": path, "memories": 2}
        loaded = json_of("load", f"{path}.memlab", path)
        assert (loaded["added"], loaded["known"]) == (2, 0)
        assert json_of("load", f"{path}.memlab", path)["known"] == 2
    assert (
        json_of("upkeep", "export", "a.memlab", "town.jsonl", "--project", "town")["memories"] == 1
    )
    assert json_of("load", "b.memlab", "a.memlab", "--project", "all")["added"] == 2
    assert {row["project"] for row in json_of("show", "b.memlab")} == {"all"}
    assert run("load", "b.memlab", "a.memlab").stdout.startswith(
        "0 memories and 0 edges from a.memlab; 2 were already in the lab"
    )
    result = run("upkeep", "export", "a.memlab", "a.md")
    assert result.exit_code == 1
    assert "--overwrite" not in result.stdout
    assert "overwrite=True" in result.stderr
    assert (
        run("upkeep", "export", "a.memlab", "a.md", "--overwrite").stdout == "2 memories in a.md\n"
    )


@pytest.mark.long
def test_two_copies_are_joined(json_of, run):
    json_of("remember", "a.memlab", "The bakery opens at six.")
    json_of("upkeep", "export", "a.memlab", "a.jsonl")
    json_of("load", "b.memlab", "a.jsonl")
    json_of("remember", "b.memlab", "Deploys go out on Tuesdays.")
    json_of("forget", "b.memlab", "1")
    data = json_of("upkeep", "join", "a.memlab", "b.memlab", "--dry-run")
    assert (data["added"], data["status"], data["dry_run"]) == (1, 1, True)
    joined = json_of("upkeep", "join", "a.memlab", "b.memlab")
    assert (joined["rows"], joined["dry_run"]) == (data["rows"], False)
    assert {row["id"]: row["status"] for row in json_of("show", "a.memlab")} == {
        1: "forgotten",
        2: "active",
    }
    assert run("upkeep", "join", "a.memlab", "b.memlab").stdout.startswith(
        "joined b.memlab: 0 memories and 0 edges added"
    )
    refused = run("upkeep", "join", "a.memlab", "none.memlab")
    assert refused.exit_code == 1
    assert "nothing at none.memlab" in refused.stderr


@pytest.mark.long
def test_a_pack_goes_along_when_it_is_wanted(json_of):
    json_of("remember", "a.memlab", "x")
    json_of("policy", "use", "a.memlab", "cascade")
    json_of("upkeep", "export", "a.memlab", "a.jsonl")
    json_of("load", "b.memlab", "a.jsonl", "--policies")
    assert json_of("upkeep", "stats", "b.memlab")["pack"] == "cascade"
    json_of("upkeep", "export", "a.memlab", "bare.jsonl", "--no-policies")
    json_of("load", "c.memlab", "bare.jsonl", "--policies")
    assert json_of("upkeep", "stats", "c.memlab")["pack"] == "memlab"


def test_a_bad_file_says_where(run, tmp_path):
    (tmp_path / "bad.jsonl").write_text(
        '{"memlab": {"schema": 1, "lab": "x"}}\n{"memory": {"id": 1, "text": 3}}\n'
    )
    result = run("load", "a.memlab", "bad.jsonl")
    assert result.exit_code == 1
    assert result.stderr == "memlab: bad.jsonl, line 2, field text: Expected a text, not 3.\n"
    assert "xml" in run("load", "a.memlab", "bad.jsonl", "--format", "xml").stderr


@pytest.mark.long
def test_operations_run_on_consent(run, json_of, day):
    result = run("agent", "run", "a.memlab", day, input="n\n")
    assert result.exit_code == 1
    assert "adds     (remember" in result.stdout
    refused = run("agent", "run", "a.memlab", day, "--json")
    assert refused.exit_code == 1
    assert "Consent with --yes" in refused.stderr
    ran = json_of("agent", "run", "a.memlab", day, "--yes")
    assert [step["operation"] for step in ran["steps"]] == ["remember", "recall"]
    assert ran["steps"][1]["rows"][0]["text"] == "tabs are better"
    day.write_text('(recall "tabs" 1)')
    assert "1 operation " in run("agent", "run", "a.memlab", day).stdout
    assert run("agent", "run", "none.memlab", day).exit_code == 1


def test_operations_that_are_wrong_run_nothing(run, day):
    day.write_text('(remember "a")\n(recal "a")')
    result = run("agent", "run", "a.memlab", day, "--yes")
    assert result.exit_code == 1
    assert "day.hy, line 2, column 2" in result.stderr
    assert "^^^^^" in result.stderr
    assert not memlab.open("a.memlab").memories.height


@pytest.mark.long
def test_a_mirror(json_of, run, tmp_path):
    json_of("remember", "a.memlab", "Tabs.")
    assert json_of("upkeep", "mirror", "a.memlab", "copy") == {"folder": "copy", "memories": 1}
    assert sorted(item.name for item in (tmp_path / "copy").iterdir()) == [
        "0000001-tabs.md",
        "index.json",
    ]
    (tmp_path / "copy" / "mine.txt").write_text("x")
    assert "it contains mine.txt" in run("upkeep", "mirror", "a.memlab", "copy").stderr
