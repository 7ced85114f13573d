"""``memlab policy`` on files: packs and single policies, checked, shown, hashed, compared, explained, set in LaTeX."""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from click.testing import CliRunner

import memlab
from memlab.errors import RankingWarning
from memlab.kernel.policies import load_pack
from memlab.ui.cli import main

NEAR = "(defpolicy recall-score [similarity recency]\n  (+ (* 0.7 similarity) (* 0.3 recency)))\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words, status=0):
        result = CliRunner().invoke(main, ["policy", *(str(word) for word in words)])
        assert result.exit_code == status, result.output
        assert "Traceback" not in result.output
        return result

    return call


@pytest.fixture
def json_of(run):
    return lambda *words, status=0: json.loads(run(*words, "--json", status=status).stdout)


@pytest.fixture
def file(tmp_path):
    def write(text, name="mine.hy"):
        (tmp_path / name).write_text(text)
        return name

    return write


@pytest.mark.long
def test_a_guard_is_forecast_begun_reported_and_ended(json_of, run, tmp_path):
    with memlab.open(tmp_path / "a.memlab") as lab:
        lab.remember("The deploy day is Friday.")
    assert "No pack was guarded" in run("guard", "a.memlab", status=1).stderr
    plan = json_of("guard", "a.memlab", "companion", "--plan")
    assert (plan["state"], len(plan["forecast"]), plan["loss"]) == ("planned", 4, None)
    assert "running" in run("guard", "a.memlab", "companion", "--share", 0.2).stdout
    run("challenge", "a.memlab", "companion", "--end", "--reason", "enough")
    ended = json_of("guard", "a.memlab")
    assert (ended["state"], ended["share"], ended["end_reason"]) == ("ended", 0.2, "enough")
    reward = ("--reward-range", -1, 1, "--tolerance", 1.5)
    assert json_of("guard", "a.memlab", "companion", *reward)["tolerance"] == 1.5


def test_a_file_is_a_pack_or_a_policy_that_names_its_slot(json_of, run, file):
    assert json_of("check", "cascade")["ok"]
    assert list(json_of("check", file(NEAR))["slots"]) == ["recall-score"]
    assert (
        json_of("check", file("; mine\n(require memlab.dialect *)\n(pack mine)"))["pack"] == "mine"
    )
    bare = file("(fn [similarity] similarity)", "bare.hy")
    assert "--slot" in run("check", bare, status=1).stderr
    assert list(json_of("check", bare, "--slot", "seed-score")["slots"]) == ["seed-score"]
    assert (
        "Did you mean recall-score" in run("check", bare, "--slot", "recal-score", status=1).stderr
    )


def test_check_tells_every_error_with_file_line_and_column(run, json_of, file):
    broken = file(
        "(pack broken)\n"
        "(defpolicy recall-score [similarty] similarty)\n"
        "(defpolicy seed-score [lexical]\n  (+ lexical true))\n"
        "(defpolicy spread [weight] weight)\n"
    )
    lines = run("check", broken, status=1).stderr.splitlines()
    assert [line.split(" ")[0] for line in lines if line.startswith("mine.hy")] == [
        "mine.hy:2:26:",
        "mine.hy:4:14:",
    ]
    assert "  (defpolicy recall-score [similarty] similarty)" in lines
    assert "                           ^^^^^^^^^" in lines
    assert lines[-1] == "memlab: mine.hy has 2 errors"
    data = json_of("check", broken, status=1)
    assert data["ok"] is False
    assert [(error["line"], error["column"]) for error in data["errors"]] == [(2, 26), (4, 14)]
    answer = json_of(
        "check",
        file("(fn [similarity]\n  (+ similarity)", "single.hy"),
        "--slot",
        "recall-score",
        status=1,
    )
    assert [(error["file"], error["line"]) for error in answer["errors"]] == [("single.hy", 1)]
    assert json_of("check", file("(pack p)\n(setting limit 0)"), status=1)["errors"][0]["line"] == 2


def test_show_is_coloured_on_demand_and_its_text_is_the_source(run, file):
    plain, coloured = (run("show", file(NEAR), flag).stdout for flag in ("--no-color", "--color"))
    assert NEAR.strip() in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert "\x1b[" not in run("show", "cascade").stdout
    assert "\x1b" not in run("show", file(NEAR.replace("\n", ' "\x1b[2J"\n', 1))).stdout
    settings = [
        line for line in run("show", "memlab").stdout.splitlines() if line.startswith("(setting")
    ]
    assert '(setting spread-mode "cascade")' in settings


def test_hashes(json_of, run, file):
    pack = load_pack("cascade")
    data = json_of("hash", "cascade")
    assert data["hash"] == pack.hash
    policy = pack.policies["spread"]
    assert data["slots"]["spread"] == {
        "hash": policy.hash,
        "source": policy.source_hash,
        "meaning": policy.meaning_hash,
    }
    first, second = (
        json_of("hash", file(text))["slots"]["recall-score"]
        for text in (NEAR, NEAR.replace("0.7", "0.70"))
    )
    assert first == second
    assert run("hash", "cascade").stdout.splitlines()[0] == pack.hash


def test_diff_of_policies_is_by_form(run, json_of, file):
    old, new = (
        file(NEAR, "a.hy"),
        file("; other\n" + NEAR.replace("0.7", "0.6").replace("  (", " ("), "b.hy"),
    )
    assert "(* [-0.7-]{+0.6+} similarity)" in run("diff", old, new, status=1).stdout
    assert "\x1b[31" in run("diff", old, new, "--color", status=1).stdout
    (change,) = json_of("diff", old, new, status=1)["changes"]
    assert (change["kind"], change["before"], change["after"]) == ("changed", "0.7", "0.6")
    assert run("diff", old, old).stdout == "no difference\n"
    whole, point = (
        file(f"(defpolicy recall-score [recency] (* {n} recency))", f"{n}.hy") for n in ("2", "2.0")
    )
    assert "the same forms, written differently" in run("diff", whole, point, status=1).stdout


def test_diff_of_packs_and_of_a_pack_with_a_policy(json_of, run, file):
    data = json_of("diff", "memlab", "cascade", status=1)
    assert "recall-score" in data["slots"]
    assert data["settings"]["spread-steps"] == {"before": 1, "after": 2}
    assert {change["place"] for change in data["changes"]} >= {"settings", "recall-score"}
    assert "recall-score" in json_of("diff", "memlab", file(NEAR), status=1)["slots"]
    assert list(json_of("diff", "memlab", "cascade", "--slot", "spread", status=1)["slots"]) == [
        "spread"
    ]


VALUES = '{"similarity": 0.8, "recency": 0.5}'


def test_explain_takes_json_or_pairs(json_of, run, file):
    name = file(NEAR)
    data = json_of("explain", name, "--values", VALUES)
    (item,) = data["explained"].values()
    assert item["value"] == pytest.approx(0.71)
    assert {term["text"]: term["value"] for term in item["terms"]} == pytest.approx(
        {"(* 0.7 similarity)": 0.56, "(* 0.3 recency)": 0.15}
    )
    assert json_of("explain", name, "--values", "similarity=0.8", "--values", "recency=0.5")[
        "explained"
    ] == {"recall-score": item}
    text = run("explain", name, "--values", VALUES).stdout
    assert "recall-score = 0.71" in text
    assert "(* 0.7 similarity)" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--values", "similarity=1"), "needs recency"),
        (("--values", "similarty=1"), "Did you mean similarity"),
        (("--values", "similarity"), "name=value"),
        (("--values", "{similarity}"), "not JSON"),
        (("--values", "similarity=high", "--values", "recency=1"), "similarity must be a num"),
        (("--frame", "absent.csv"), "no file absent.csv"),
        (("--frame", "mine.hy"), ".parquet, .csv or .jsonl"),
    ],
)
def test_explain_says_what_is_missing(run, file, words, message):
    assert message in run("explain", file(NEAR), *words, status=1).stderr


def test_explain_of_a_pack_needs_a_slot(run):
    assert "--slot" in run("explain", "cascade", "--values", "x=1", status=1).stderr


SLATE = pl.DataFrame(
    {"memory_id": [1, 2, 3], "similarity": [0.2, 0.6, 1.0], "recency": [1.0, 0.5, 0.0]}
)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_aggregates_come_from_a_frame(json_of, run, file, tmp_path, suffix):
    name = file("(fn [similarity recency] (+ (min-max similarity) recency))")
    write = {"parquet": SLATE.write_parquet, "csv": SLATE.write_csv, "jsonl": SLATE.write_ndjson}[
        suffix
    ]
    write(tmp_path / f"slate.{suffix}")
    words = ("explain", name, "--slot", "recall-score")
    (item,) = json_of(*words, "--frame", f"slate.{suffix}", "--row", 1)["explained"].values()
    assert item["value"] == pytest.approx(1.0)
    assert "no row 3" in run(*words, "--frame", f"slate.{suffix}", "--row", 3, status=1).stderr
    assert (
        "slate" in run(*words, "--values", "similarity=1", "--values", "recency=1", status=1).stderr
    )


def test_a_record_is_explained_field_by_field(json_of):
    policy = load_pack("cascade").policies["reinforce"]
    values = {name: _example(policy.signature.inputs[name]) for name in policy.inputs}
    words = ("explain", "cascade", "--slot", "reinforce", "--values", json.dumps(values))
    assert len(json_of(*words)["explained"]) == len(policy.fields)
    assert len(json_of(*words, "--field", policy.fields[0])["explained"]) == 1


def _example(declared):
    return {"num": 0.5, "bool": True, "str": (*declared.words, "")[0], "set": []}[declared.type]


@pytest.mark.long
def test_a_score_compares_files_packs_and_features(json_of, run, file, tmp_path):
    with memlab.open(tmp_path / "own.memlab") as lab:
        lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        lab.questions.add("when do deploys go out?", wants=2)
        before = lab.io.store.journal.head
    scores = json_of("score", "own.memlab", file(NEAR), "actr", "similarity", "--metric", "mrr")
    assert [row["policy"] for row in scores["scores"]] == ["active", "mine", "actr", "similarity"]
    assert scores["questions"] == 1
    (tmp_path / "own.csv").write_text("query,wants\ntabs or spaces?,1\nnone?,9\n", encoding="utf-8")
    assert (
        "Row 2 of own.csv wants"
        in run("score", "own.memlab", "--questions", "own.csv", status=1).output
    )
    assert "hit@5" in run("score", "own.memlab").output
    with memlab.open(tmp_path / "own.memlab", read_only=True) as lab:
        assert lab.io.store.journal.head == before


@pytest.mark.long
def test_check_scores_a_file_on_the_questions_of_a_lab(run, json_of, file, tmp_path):
    aged = file("(defpolicy recall-score [age-days] age-days)")
    with memlab.open(tmp_path / "lab") as lab:
        lab.remember([{"text": f"an old note {n}", "at": "2020-01-01"} for n in range(9)])
        lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
    without = run("check", aged, "--lab", "lab").output
    assert "a valid policy" in without
    assert 'lab.questions.add("..."' in without
    with memlab.open(tmp_path / "lab") as lab:
        lab.questions.add([{"query": "tabs?", "wants": [10]}, {"query": "deploys?", "wants": [11]}])
        before = lab.io.store.journal.head
    text = run("check", aged, "--lab", "lab").output
    assert "Lost by recall-score" in text
    assert "tabs?" in text
    report = json_of("check", aged, "--lab", "lab")
    assert report["ok"]
    assert [row["lost"] for row in report["scores"]["scores"]] == [None, None, 2, 2]
    line = file("(fn [recency] (+ (inherited) (* 0.1 recency)))", "line.hy")
    assert (
        "recall-score: 1.000" in run("check", line, "--slot", "recall-score", "--lab", "lab").output
    )
    assert "memlab: 1.000" in run("check", "memlab", "--lab", "lab").output
    with memlab.open(tmp_path / "lab") as lab:
        assert lab.io.store.journal.head == before
    with pytest.warns(RankingWarning, match="2 lost"):
        assert "2 lost" in run("install", "lab", "recall-score", aged).stdout
