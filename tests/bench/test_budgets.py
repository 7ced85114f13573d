"""Evidence within token budgets: the figures of a prompt, the baselines of the same run, and the offline reader."""

import json
import os
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.errors import DatasetError, InputError, NotALab
from memlab.io.ingest import read_locomo
from memlab.science.bench import bench_budgets, read_answer, token_f1
from memlab.ui.cli import main

CHATS = Path(__file__).parents[1] / "fixtures" / "two_chats.json"
LOCOMO = Path(os.environ.get("MEMLAB_DATA", "none")) / "locomo" / "locomo-dev5.json"


@pytest.fixture(scope="module")
def chats():
    return read_locomo(CHATS)


@pytest.fixture(scope="module")
def result(chats):
    return bench_budgets(chats, budgets=[400, 48], answers="offline", dataset="two chats")


def figures(result, system):
    """Return the rows of a system by budget."""
    rows = result.frame.filter(system=system).to_dicts()
    return {row["budget"]: row for row in rows}


@pytest.mark.long
def test_a_run_has_every_baseline_for_each_budget(result):
    plain = [f"{name}, plain fill" for name in ("memlab", "bm25", "dense")]
    assert result.frame["system"].unique().sort().to_list() == sorted(
        ["memlab", *plain, "oracle", "whole chat"]
    )
    for system in ("memlab", *plain, "oracle"):
        assert set(figures(result, system)) == {48, 400}
    assert (result.questions, result.budgets) == (
        13,
        (48, 400),
    )  # not the question without an answer
    assert result.frame["written"].to_list() == [0] * 11


@pytest.mark.long
def test_no_prompt_exceeds_its_budget(result):
    rows = result.records.filter(pl.col("budget").is_not_null())
    assert (rows["tokens"] <= rows["budget"]).all()


@pytest.mark.long
def test_the_figures_are_those_of_the_prompts(chats, result):
    with memlab.open() as lab:
        rows = chats[0].conversation.rows(project="boat")
        lab.remember(rows, chain=True)
        for question in chats[0].questions:
            at = chats[0].conversation.end.timestamp() + 86_400
            context = lab.context(
                question.text,
                budget=48,
                project="boat",
                at=chats[0].conversation.end.fromtimestamp(at, chats[0].conversation.end.tzinfo),
                log=False,
            )
            evidence = next(row["text"] for row in rows if row["ref"] == question.evidence[0])
            row = result.records.filter(text=question.text, system="memlab", budget=48).row(
                0, named=True
            )
            assert row["whole"] == float(evidence in context.text)
            assert row["tokens"] == context.tokens
            assert row["answer"] == read_answer(question.text, context.text)


@pytest.mark.long
def test_everything_fits_into_a_large_budget_and_the_oracle_needs_no_more(result):
    assert figures(result, "memlab")[400]["whole"] == 1
    assert figures(result, "oracle")[400]["whole"] == 1
    whole = figures(result, "whole chat")[None]
    assert (whole["whole"], whole["touched"]) == (1, 1)
    assert whole["tokens"] > 48
    assert figures(result, "bm25, plain fill")[48]["touched"] < 1


def test_an_oracle_bounds_every_plain_fill_of_whole_memories(result):
    oracle = figures(result, "oracle")
    for system in result.frame["system"].unique():
        for budget, row in figures(result, system).items():
            if budget is not None and "plain fill" in system:
                assert row["whole"] <= oracle[budget]["whole"]


@pytest.mark.long
def test_the_result_is_shown_as_text_json_figure_and_page(result, tmp_path):
    text = result.text(100)
    assert "two chats: 13 questions on 2 conversations" in text
    assert "100.0% /" in text
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert len(data["rows"]) == 11
    assert [line.get_label() for line in result.figure().axes[0].lines].count("oracle") == 1
    page = result.report(tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "whole chat" in page


@pytest.mark.long
def test_processes_measure_the_same(chats, result):
    other = bench_budgets(chats, budgets=[48, 400], answers="offline", executor=2)
    assert other.records.drop("ms").equals(result.records.drop("ms"))


@pytest.mark.long
def test_hostile_names_stay_text(chats, tmp_path):
    evil = "<script>alert(1)</script>"
    named = replace(chats[0], conversation=replace(chats[0].conversation, name=evil))
    result = bench_budgets([named], budgets=[60], baselines=False, dataset=evil)
    assert evil not in result.report(tmp_path / "page.html").read_text()
    assert evil not in result._repr_html_()


@pytest.mark.long
def test_a_users_lab_is_measured_and_not_changed(tmp_path):
    with memlab.open(tmp_path / "lab") as lab:
        lab.remember(["The spare key hangs in the boiler room.", "Rent is due on the third."])
    questions = pl.DataFrame({"question": ["Where is the spare key?"], "wanted": ["1"]})
    for packs in (None, ["companion", "memlab"]):
        result = bench_budgets(tmp_path / "lab", questions, budgets=[100], packs=packs)
        assert set(result.packs) == {"memlab", *(packs or [])}
        assert figures(result, "memlab")[100]["whole"] == 1
    with memlab.open(tmp_path / "lab") as lab:
        before = lab.log
        assert bench_budgets(lab, questions, budgets=[100]).questions == 1
        assert lab.log.equals(before)
        with pytest.raises(InputError, match="open lab is measured under its own pack"):
            bench_budgets(lab, questions, packs=["memlab"])
    with pytest.raises(NotALab, match="There is no lab"):
        bench_budgets(tmp_path / "none", questions)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budgets": []}, "the list is empty"),
        ({"answers": "online"}, 'answers must be "offline"'),
        ({"folder": "x"}, "need a language model"),
        ({"questions": pl.DataFrame()}, "Pass a lab together with questions="),
    ],
)
def test_arguments_that_contradict_are_refused(chats, arguments, message):
    with pytest.raises(InputError, match=message):
        bench_budgets(chats, **arguments)


@pytest.mark.long
def test_data_without_evidence_or_answers_are_refused(chats):
    none = replace(chats[0], questions=())
    with pytest.raises(DatasetError, match="nothing to measure"):
        bench_budgets([none], budgets=[60])
    bare = replace(
        chats[0], questions=tuple(replace(each, answer="") for each in chats[0].questions)
    )
    with pytest.raises(DatasetError, match="No question has an expected answer"):
        bench_budgets([bare], budgets=[60], answers="offline")


@pytest.mark.long
def test_the_command_prints_the_curve_and_the_answers(tmp_path):
    def run(*words):
        return CliRunner().invoke(main, ["bench", "locomo", str(CHATS), *words])

    page = tmp_path / "page.html"
    done = run("--budgets", "400,60", "--answers", "offline", "--json", "--report", str(page))
    assert done.exit_code == 0, done.output
    rows = {(row["system"], row["budget"]): row for row in json.loads(done.output)["rows"]}
    assert rows["memlab", 400]["f1"] >= 0.9
    assert page.exists()
    assert run("--budgets", "60,many").exit_code == 2
    assert (
        "--answers, --model URL NAME and --run FOLDER" in run("--budgets", "60", "--answers").output
    )
    assert "need --budgets" in run("--answers", "offline").output


# -- the offline reader


def test_the_reader_answers_a_small_file(result):
    rows = result.records.filter(system="memlab", budget=400)
    when = rows.filter(pl.col("text").str.starts_with("When"))
    assert rows["f1"].mean() >= 0.9
    assert when["f1"].mean() == 1


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("I left the day before yesterday.", "6 May 2026"),
        ("I left last Tues for Rome.", "The Tuesday before 8 May 2026"),
        ("I left two weeks ago.", "two weeks before 8 May 2026"),
        ("I left 3 days ago.", "5 May 2026"),
        ("I left five months ago.", "December 2025"),
        ("I left a few years ago.", "A few years ago"),
        ("I left on April 3rd.", "3 April 2026"),
        ("I left in 2019.", "2019"),
        ("I left.", "8 May 2026"),
        ("I left 99999999999999999999 days ago.", "8 May 2026"),
    ],
)
def test_a_time_is_read_from_the_day_on_which_it_was_said(said, answer):
    assert read_answer("When did Ida leave?", f"- 2026-05-08, Ida: {said}") == answer


def test_a_question_that_leaves_a_choice_is_answered_with_the_thing_in_the_context():
    context = "- 2026-05-08, Ida: I love coffee.\n- 2026-05-09, Ida: More coffee!"
    assert read_answer("Does Ida prefer tea or coffee?", context) == "coffee"
    assert read_answer("Would Ida order a coffee or a tea?", context) == "a coffee"
    assert read_answer("Does Ida like coffee?", context) == "Yes"


@pytest.mark.parametrize(
    "other",
    [
        "That boat really is just so very great, I always think so, Oskar.",
        "Your boat carries iron chains.",
    ],
)
def test_fillers_and_statements_about_the_listener_say_less(other):
    context = f"- 2026-05-08, Ida: {other} My boat carries seven lanterns."
    assert read_answer("What is with the boat?", context) == "carries seven lanterns"


@pytest.mark.parametrize("context", ["", "no lines", "- 2026-02-31, Ida: I left.", "- : \n! x\n-"])
def test_a_context_of_any_form_is_read(context):
    assert isinstance(read_answer("When did Ida leave?", context), str)


@pytest.mark.long
@given(st.text(max_size=80), st.text(max_size=80))
def test_the_reader_and_its_score_take_any_text(question, text):
    answer = read_answer(question, f"- 2026-05-08, Ida: {text}")
    assert 0 <= token_f1(answer, question) <= 1


def test_the_score_is_that_of_locomo():
    assert token_f1("The red boats", "a red boat") == 1
    assert token_f1("red, boat and car", "red boat") == pytest.approx(0.8)
    assert token_f1("", "red") == token_f1("red", "") == 0


@pytest.mark.long
@pytest.mark.skipif(
    not LOCOMO.exists(), reason="needs conversations of LoCoMo below the folder MEMLAB_DATA"
)
def test_conversations_that_were_not_read_for_the_rules_are_answered():
    result = bench_budgets(
        read_locomo(LOCOMO)[3:], budgets=[1000], answers="offline", baselines=False
    )
    rows = result.records.filter(system="memlab")
    when = rows.filter(pl.col("text").str.to_lowercase().str.starts_with("when"))
    assert when["f1"].mean() >= 0.45
    assert rows["f1"].mean() >= 0.235
