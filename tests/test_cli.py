"""Every command: text for people, ``--json`` for programs, and exit statuses that mean something."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import click
import pytest

import memlab
from memlab.ui.cli import SECTIONS, main


def commands(group=main, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize(
    ("path", "command"),
    list(commands()),
    ids=lambda item: " ".join(item) if isinstance(item, tuple) else "",
)
def test_every_command_is_documented_and_speaks_json(path, command):
    assert command.help
    assert "as_json" in {parameter.name for parameter in command.params}


def test_the_help_lists_every_command_once_in_80_columns(run):
    listed = [name for commands in SECTIONS.values() for name in commands]
    assert sorted(listed) == sorted(
        name for name, command in main.commands.items() if not command.hidden
    )
    lines = run("--help").output.splitlines()
    assert max(map(len, lines)) <= 80
    assert [
        line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in listed
    ] == listed


@pytest.mark.long
def test_a_day_with_a_lab(json_of):
    assert (
        json_of(
            "remember", "a.memlab", "The bakery opens at six.", "--kind", "fact", "--tag", "town"
        )["id"]
        == 1
    )
    json_of("remember", "a.memlab", "My sister lives in Oslo.")
    hits = json_of("recall", "a.memlab", "When does the bakery open?", "--explain")
    best = hits["hits"][0]
    assert best["id"] == 1
    assert sum(term["value"] for term in best["terms"]) == pytest.approx(best["score"])
    assert json_of("feedback", "a.memlab", 1, "success")["outcome"] == "success"
    assert [row["id"] for row in json_of("show", "a.memlab")] == [1, 2]
    assert json_of("show", "a.memlab", 1)["tags"] == ["town"]
    json_of("forget", "a.memlab", 1)
    assert [hit["id"] for hit in json_of("recall", "a.memlab", "bakery")["hits"]] == [2]
    json_of("restore", "a.memlab", 1)
    stats = json_of("upkeep", "stats", "a.memlab")
    assert (stats["memories"], stats["recalls"], stats["feedback"]) == (2, 2, 1)


@pytest.mark.long
def test_policies_from_the_command_line(json_of, run, tmp_path):
    json_of("remember", "a.memlab", "short")
    policy = tmp_path / "long.hy"
    policy.write_text("(fn [length] length)")
    assert json_of("policy", "use", "a.memlab", "associative")["pack"] == "associative"
    assert json_of("policy", "install", "a.memlab", "recall-score", policy)["version"] == 3
    history = json_of("policy", "history", "a.memlab", "recall-score")
    assert [row["action"] for row in history] == ["use", "use", "install"]
    back = json_of("policy", "rollback", "a.memlab", "recall-score")
    assert back["hash"] == history[1]["hash"]
    assert "recall-score" in run("policy", "show", "associative").output


@pytest.mark.long
def test_packs_and_files(json_of, run):
    names = {pack["name"] for pack in json_of("policy", "packs")}
    assert names == set(memlab.packs())
    assert (
        json_of("policy", "check", "cascade")["hash"]
        == json_of("policy", "hash", "cascade")["hash"]
    )
    assert run("policy", "diff", "memlab", "memlab").exit_code == 0
    differs = run("policy", "diff", "memlab", "cascade", "--json")
    assert differs.exit_code == 1
    assert "recall-score" in json.loads(differs.stdout)["slots"]
    assert "defpolicy" in run("policy", "show", "cascade", "--slot", "spread").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("recall", "nowhere.memlab", "x"), "There is no lab at nowhere.memlab"),
        (("remember", "a.memlab", ""), "The text is empty"),
        (("remember", "a.memlab", "x", "--kind", "fatc"), "Did you mean fact"),
        (("recall", "here.memlab", "x", "--limit", "0"), "limit is a whole number"),
        (("show", "here.memlab", "7"), 'no memory "7"'),
        (("use", "here.memlab", "cascad"), "Did you mean cascade"),
        (("policy", "check", "broken.hy"), "line 2, column 26"),
        (("policy", "check", "absent.hy"), "Cannot read absent.hy"),
        (("policy", "show", "memlab", "--slot", "recal-score"), "Did you mean recall-score"),
        (("policy", "history", "here.memlab", "recal-score"), "Did you mean recall-score"),
        (("bench", "locomo", "broken.json"), "broken.json"),
        (("list", "thesis"), "thesis"),
    ],
)
def test_a_refusal_is_one_clear_line_and_status_1(run, words, message):
    run("remember", "here.memlab", "x")
    Path("broken.hy").write_text("(pack broken)\n(defpolicy recall-score [similarty] similarty)")
    Path("broken.json").write_text("{")
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("mine")
    result = run(*words)
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not Path("a.memlab").exists() or len(memlab.open("a.memlab")) == 0


def test_a_wrong_call_has_status_2(run):
    assert run("recall").exit_code == 2
    assert run("bench", "locomo").exit_code == 2


WIDE = """query_id,memory_id,rank,clicked,p,mine,theirs
{rows}"""


@pytest.fixture
def log(tmp_path):
    """Write a log of 400 recalls with two columns of scores: the top results, and one probe drawn from four."""
    dice, rows = random.Random(4), []
    for query in range(400):
        probe = dice.randrange(1, 5)
        for item in range(5):
            shown = 1 if item == 0 else 2 if item == probe else 0
            good = int(dice.random() < (0.7 if item == 3 else 0.3)) if shown else ""
            p = 1 if item == 0 else 0.25
            rows.append(f"{query},{item},{shown},{good},{p},{-item},{-abs(item - 3)}")
    path = tmp_path / "log.csv"
    path.write_text(WIDE.format(rows="\n".join(rows)))
    return path


@pytest.mark.long
def test_two_score_columns_of_a_csv(json_of, run, log):
    words = (
        "evaluate",
        log,
        "-p",
        "mine",
        "-p",
        "theirs",
        "--decision",
        "query_id",
        "--shown",
        "rank",
    )
    words += ("--reward", "clicked", "--propensity", "p", "--cluster", "query_id", "--limit", 1)
    data = json_of(*words, "--report", "out.html")
    value = {row["policy"]: row["value"] for row in data["policies"]}
    assert value["theirs"] > value["mine"]
    assert Path("out.html").read_text().startswith("<!doctype html>")
    assert "theirs" in run(*words).output


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", [60, 80])
def test_the_table_fits_the_terminal(log, width):
    import fcntl
    import pty
    import struct
    import termios

    words = f"evaluate {log} -p mine -p theirs --decision query_id --reward clicked --propensity p --cluster query_id"
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "memlab", *words.split(), "--limit", "1"]
    done = subprocess.run(
        command, stdin=theirs, stdout=theirs, check=True, cwd=log.parent, env=environment
    )
    os.close(theirs)
    lines = os.read(ours, 100_000).decode().splitlines()
    os.close(ours)
    assert done.returncode == 0
    assert any(line.startswith("theirs") for line in lines)
    assert max(map(len, lines)) <= width


@pytest.mark.long
def test_a_log_without_probabilities_is_refused_with_status_1(run, log):
    words = (
        "evaluate",
        log,
        "-p",
        "mine",
        "-p",
        "theirs",
        "--decision",
        "query_id",
        "--reward",
        "clicked",
    )
    result = run(*words)
    assert result.exit_code == 1
    assert "unknown probability" in result.output
    assert "propensit" in run(*words, "--details").output


@pytest.mark.long
def test_json_holds_every_reason_of_the_text(run, log):
    """A log without probabilities, and without what a pack is computed from."""
    words = (
        "evaluate",
        log,
        "-p",
        "mine",
        "-p",
        "cascade",
        "--decision",
        "query_id",
        "--shown",
        "rank",
    )
    words += ("--reward", "clicked", "--limit", 1)
    text = run(*words, "--details").output
    data = json.loads(run(*words, "--json").stdout)
    assert data["headline"] in run(*words).output
    assert data["headline"] in text
    assert [refusal["policy"] for refusal in data["refusals"]] == ["cascade"]
    assert data["withheld"]
    for item in [
        *data["refusals"],
        *data["withheld"],
        *({"reason": note} for note in data["notes"]),
    ]:
        assert item["reason"] in text


@pytest.mark.long
def test_every_setting_of_an_evaluation(json_of, run, log, tmp_path):
    words = (
        "evaluate",
        log,
        "-p",
        "mine",
        "-p",
        "theirs",
        "--decision",
        "query_id",
        "--shown",
        "rank",
    )
    words += ("--reward", "clicked", "--propensity", "p", "--cluster", "query_id", "--limit", 1)
    plain = json_of(*words)
    wide = json_of(
        *words,
        "--level",
        0.99,
        "--baseline",
        "theirs",
        "--missing",
        "bounds",
        "--reward-range",
        0,
        2,
    )
    rows = [{row["policy"]: row for row in found["policies"]} for found in (plain, wide)]
    assert rows[1]["theirs"]["verdict"] == "baseline"
    assert (
        rows[1]["mine"]["high"] - rows[1]["mine"]["low"]
        > rows[0]["mine"]["high"] - rows[0]["mine"]["low"]
    )
    for kind in ("censor", "inverse", "zero"):
        assert json_of(*words, "--missing", kind)["policies"]
    assert run(*words, "--missing", "never").exit_code == 2
    assert run(*words, "--level", 2).exit_code == 2
    refused = run(*words, "--baseline", "nobody")
    assert refused.exit_code == 1
    assert "nobody" in refused.output
    assert "random positions" in run(*words, "--position").output


@pytest.mark.long
def test_times_of_a_file(json_of, run, tmp_path):
    dice, rows = random.Random(1), ["decision,memory_id,rank,reward,p,good,said,answered"]
    for query in range(200):
        day = f"2026-03-{1 + query // 10:02}"
        for item in range(3):
            rank = 1 if item == 0 else 2 if item == 1 + query % 2 else 0
            answer = f"{day}T1{1 if query % 4 else 5}:00:00" if rank else ""
            won, p = int(dice.random() < 0.5) if rank else "", 0.5 if item else 1
            rows.append(f"{query},{item},{rank},{won},{p},{item},{day}T10:00:00,{answer}")
    (tmp_path / "log.csv").write_text("\n".join(rows))
    words = (
        "evaluate",
        "log.csv",
        "-p",
        "good",
        "--propensity",
        "p",
        "--limit",
        1,
        "--missing",
        "zero",
    )
    words += ("--at", "said", "--feedback-at", "answered")
    data = json_of(*words, "--horizon", "2h", "--cluster", "day")
    assert "clusters (day)" in data["method"]
    # of four answers one came after five hours
    late = json_of(*words, "--horizon", "9h", "--cluster", "day")
    values = [{row["policy"]: row["value"] for row in item["policies"]} for item in (data, late)]
    assert len(values[0]) == 1
    assert values[1]["good"] != values[0]["good"]
    assert run(*words, "--horizon", "soon").exit_code == 1


@pytest.mark.long
def test_labels_in_a_file(json_of, run, log, tmp_path):
    labels = ["decision,memory_id,relevance", *(f"{query},3,1" for query in range(400))]
    (tmp_path / "labels.csv").write_text("\n".join(labels))
    words = (
        "evaluate",
        log,
        "-p",
        "mine",
        "-p",
        "theirs",
        "--decision",
        "query_id",
        "--shown",
        "rank",
    )
    data = json_of(*words, "--limit", 1, "--labels", "labels.csv")
    assert {row["policy"]: row["value"] for row in data["policies"]} == {
        "theirs": 1.0,
        "mine": 0.0,
    }
    assert run(*words, "--labels", "labels.txt").exit_code == 1


@pytest.mark.long
def test_a_challenger_from_the_command_line(json_of, run):
    texts = [
        f"The user likes {drink} on day {day}"
        for day in range(8)
        for drink in ("tea", "cocoa", "milk", "juice")
    ]
    with memlab.open("a.memlab") as lab:
        lab.remember(texts)
    json_of("recall", "a.memlab", "tea")
    assert run("policy", "verdict", "a.memlab").exit_code == 1
    assert "No recall of this log was challenged" in run("policy", "verdict", "a.memlab").output
    data = json_of(
        "policy",
        "challenge",
        "a.memlab",
        "cascade",
        "--reason",
        "does it spread?",
        "--extra",
        2,
        "--rate",
        1,
    )
    assert (data["name"], data["design"], data["extra"], data["reason"]) == (
        "cascade",
        "extra",
        2,
        "does it spread?",
    )
    with memlab.open("a.memlab") as lab:
        for query in range(60):
            for hit in lab.recall(f"what does the user like on day {query % 8}?", limit=3):
                lab.feedback(hit, "success" if "cocoa" in hit.text or query % 3 == 0 else "fail")
    answer = json_of(
        "policy", "verdict", "a.memlab", "cascade", "--cluster", "decision", "--level", 0.9
    )
    assert answer["verdicts"][0]["recalls"] == 60
    assert (
        answer["verdicts"][0]["sentence"]
        in run("policy", "verdict", "a.memlab", "--level", 0.9).output
    )
    planned = json_of("policy", "plan", "a.memlab", "cascade", "companion")
    assert {row["policy"] for row in planned["designs"]} >= {"cascade"}
    assert set(planned["best"]) <= {"cascade", "companion"}
    assert "challenge, 1 extra" in run("policy", "plan", "a.memlab", "cascade").output
    assert json_of("policy", "challenge", "a.memlab", "cascade", "--end") == {"ended": "cascade"}
    assert run("policy", "challenge", "a.memlab", "cascade", "--end").exit_code == 1
    assert run("policy", "challenge", "a.memlab", "cascade", "--design", "luck").exit_code == 2


@pytest.mark.long
def test_a_lab_without_recalls(run):
    run("remember", "a.memlab", "x")
    assert run("evaluate", "a.memlab").exit_code == 1


def test_policy_from_standard_input(json_of):
    json_of("remember", "a.memlab", "x")
    assert (
        json_of("policy", "install", "a.memlab", "recall-score", "-", input="(fn [length] length)")[
            "version"
        ]
        == 2
    )


@pytest.mark.long
def test_the_policies_of_a_lab(run, json_of, tmp_path):
    json_of("remember", "a.memlab", "The bakery opens at six.")
    json_of("recall", "a.memlab", "when does the bakery open?")
    json_of("feedback", "a.memlab", 1, "success")
    json_of("policy", "install", "a.memlab", "recall-score", "-", input="(fn [recency] recency)")
    assert json_of("policy", "pin", "a.memlab", "recall-score", "--reason", "keep")["version"] == 2
    refused = run("policy", "rollback", "a.memlab", "recall-score")
    assert (refused.exit_code, "unpin" in refused.output) == (1, True)
    json_of("policy", "use", "a.memlab", "cascade")
    assert {row["slot"] for row in json_of("policy", "history", "a.memlab")} >= {
        "recall-score",
        "spread",
    }
    assert json_of("policy", "unpin", "a.memlab", "recall-score")["pack"] == "cascade"
    assert json_of("policy", "rollback", "a.memlab")["pack"] == "memlab"
    assert sum(row["recalls"] for row in json_of("policy", "attribution", "a.memlab")) == 1
    (tmp_path / "mine.hy").write_text("(fn [similarity] similarity)")
    changes = json_of(
        "policy", "watch", "a.memlab", "mine.hy", "--slot", "recall-score", "--seconds", "0"
    )
    assert [row["outcome"] for row in changes] == ["live"]


@pytest.mark.long
def test_the_memories_joined_to_a_memory(json_of, run):
    json_of("remember", "a.memlab", "The borrow checker", "--tag", "rust")
    json_of("remember", "a.memlab", "Tea is at four", "--tag", "rust")
    assert [row["to"] for row in json_of("graph", "trace", "a.memlab", 1)] == [
        "tag rust",
        "2: Tea is at four",
    ]
    assert "has-tag" in run("graph", "trace", "a.memlab", 1).output
    assert [row["memory_id"] for row in json_of("graph", "similar", "a.memlab", 1)] == [2]


@pytest.mark.long
def test_a_judgement_belongs_to_the_recall_that_is_named(run, json_of):
    json_of("remember", "a.memlab", "The user indents with tabs", "--at", "2026-01-10")
    hits = json_of("recall", "a.memlab", "tabs", "--at", "2026-02-10")
    assert json_of("show", "a.memlab", 1)["created"].startswith("2026-01-10")
    assert (
        json_of("feedback", "a.memlab", 1, "success", "--decision", hits["decision"])["decision"]
        == hits["decision"]
    )
    assert (
        f"for recall {hits['decision']}"
        in run("feedback", "a.memlab", 1, "fail", "--decision", hits["decision"]).stdout
    )
    refused = run("feedback", "a.memlab", 1, "fail", "--decision", 99)
    assert refused.exit_code == 1
    assert 'There is no logged recall "99"' in refused.output


@pytest.mark.long
def test_a_judgement_belongs_to_the_last_recall_where_none_is_named(run, json_of):
    json_of("remember", "a.memlab", "The user indents with tabs")
    assert "for no recall" in run("feedback", "a.memlab", 1, "fail").stdout
    data = json_of("recall", "a.memlab", "tabs")
    assert json_of("feedback", "a.memlab", 1, "success")["decision"] == data["decision"]


@pytest.mark.long
def test_an_answer_is_attributed(run, json_of, tmp_path):
    json_of("remember", "a.memlab", "Deploys need the approval of Priya Natarajan")
    json_of("remember", "a.memlab", "The garden project costs 4200 euros")
    data = json_of("recall", "a.memlab", "Who approves deploys?")
    (tmp_path / "reply.txt").write_text("No, that is wrong.")
    answer = json_of(
        "attribute",
        "a.memlab",
        "--recall",
        data["decision"],
        "--answer",
        "-",
        input="Priya Natarajan does.",
    )
    assert answer["logged"] == 2
    best = max(answer["memories"], key=lambda row: row["credit"])
    assert best["memory_id"] == 1
    again = run(
        "agent",
        "attribute",
        "a.memlab",
        "--recall",
        data["decision"],
        "--answer",
        "-",
        input="Priya Natarajan does.",
    )
    assert "rewards for 0 of 2 hits" in again.output
    more = ("--reply", tmp_path / "reply.txt")
    answer = json_of(
        "attribute",
        "a.memlab",
        "--recall",
        data["decision"],
        "--answer",
        "-",
        *more,
        input="Priya Natarajan.",
    )
    assert answer["memories"][0]["credit"] < 0
    refused = run("agent", "attribute", "a.memlab", "--recall", 99, "--answer", "-", input="x")
    assert (refused.exit_code, 'no logged recall "99"' in refused.output) == (1, True)


@pytest.mark.long
def test_a_recall_under_another_pack_leaves_the_lab_as_it_is(json_of):
    json_of("remember", "a.memlab", "The user indents with tabs")
    other = json_of("recall", "a.memlab", "how does the user indent?", "--pack", "associative")
    assert (other["pack"], other["decision"], other["hits"][0]["id"]) == ("associative", None, 1)
    assert json_of("upkeep", "stats", "a.memlab")["pack"] == "memlab"
    assert json_of("upkeep", "stats", "a.memlab")["recalls"] == 0
