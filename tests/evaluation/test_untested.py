"""A gate that the log cannot test is called untested wherever a value is shown; reports open in every state."""

import html
import json
import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from probed_logs import World
from test_verdicts import challenged

import memlab
from memlab.errors import InputError
from memlab.kernel.slates import Slates
from memlab.science.evaluation import GATES
from memlab.science.evaluation._tests import Facts, Gate, gates
from memlab.ui.cli import main
from tests.displays import html_of

SEEN = np.array([1.0, 0.75, 0.55, 0.42])
TABLES = ("decisions", "candidates", "exposures", "feedback")
UNTESTED = ["position", "redundancy"]


def position_bias(seed=0, recalls=400, pool=12, limit=3, ranked=False):
    """Return a wide table, as a user would export it, in which an item earns less further down.

    Unless ``ranked``, no column is the score that ranked the log.
    """
    dice = np.random.default_rng(seed)
    quality = dice.normal(size=(recalls, pool))
    old = quality + dice.normal(0, 1.5, (recalls, pool))
    order = np.argsort(-old, axis=1)
    rows = []
    for recall in range(recalls):
        head, probe = (
            order[recall, :limit].tolist(),
            int(dice.choice(order[recall, limit : limit + 4])),
        )
        shown = [*head, probe]
        for item in range(pool):
            rank = shown.index(item) + 1 if item in shown else None
            chance = (
                1.0 if item in head else 0.25 if item in order[recall, limit : limit + 4] else 0.0
            )
            worth = 0 if rank is None else SEEN[rank - 1] / (1 + math.exp(-quality[recall, item]))
            clicked = None if rank is None else float(dice.random() < worth)
            score = float(old[recall, item])
            rows.append(
                (
                    recall,
                    item,
                    rank,
                    clicked,
                    chance,
                    score if ranked else score + float(dice.normal()),
                    score + 0.3 * float(quality[recall, item]),
                )
            )
    columns = ["query_id", "memory_id", "rank", "clicked", "p", "old_score", "new_score"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def slates_of(log, **more):
    return Slates.from_wide(
        log,
        decision="query_id",
        item="memory_id",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=3,
        scores=["old_score", "new_score"],
        **more,
    )


@pytest.fixture(scope="module")
def biased():
    return slates_of(position_bias())


@pytest.mark.long
def test_a_log_without_a_score_names_untested_gates_everywhere(biased, tmp_path):
    evaluation = memlab.evaluate(biased, ["old_score", "new_score"], missing="zero")
    assert any(row.value is not None for row in evaluation.rows)
    for row in evaluation.rows:
        states = {gate.name: gate.state for gate in row.measured.gates}
        assert [states[name] for name in UNTESTED] == ["untested", "untested"]
        assert states["silence"] == "not needed"
    ends = "Untested: independence, position and redundancy."
    assert evaluation.to_dict()["headline"].endswith(ends)
    assert ends in evaluation.text().splitlines()[0]
    assert "independence, position, redundancy" in evaluation.text()  # the table
    details = "\n".join(evaluation.details)
    assert "untested. The dependence of rewards on the position" in details
    assert evaluation.frame["untested"].to_list() == ["independence, position, redundancy"] * 2
    tested = evaluation.diagnostics.filter(pl.col("gate").is_in(UNTESTED))
    assert tested["state"].unique().to_list() == ["untested"]
    assert tested["open"].null_count() == tested.height
    data = json.loads(json.dumps(evaluation.to_dict()))
    assert {item["gate"] for item in data["untested"]} == {"independence", *UNTESTED}
    assert ends in html_of(evaluation)
    page = evaluation.report(tmp_path / "out.html").read_text()
    assert "untested ?" in page
    assert ends in page
    assert set(evaluation.pairs()["untested"]) <= {"independence, position, redundancy"}


@pytest.mark.long
@pytest.mark.parametrize("named", [{}, {"score": "old_score"}])
def test_the_score_that_ranked_the_log_tests_them(named):
    slates = slates_of(position_bias(ranked=True), **named)
    evaluation = memlab.evaluate(slates, ["old_score", "new_score"], missing="zero")
    states = {gate.name: gate.state for row in evaluation.rows for gate in row.measured.gates}
    assert not {states[name] for name in UNTESTED} & {"untested", "not needed"}


@pytest.mark.long
def test_a_complete_log_has_no_untested_gate():
    log = World(clusters=20).slates()
    candidates = log.candidates.with_columns(group="memory_id")
    log = Slates(log.decisions, candidates, log.exposures, log.feedback, policies=log.policies)
    evaluation = memlab.evaluate(log, ["good"])
    assert [gate.name for row in evaluation.rows for gate in row.untested] == []
    assert "Untested" not in evaluation.text()


@pytest.mark.long
def test_tune_names_untested_gates(biased):
    policy = "(lambda (new_score old_score) (+ old_score (* (param :w 0 :low 0 :high 9) (- new_score old_score))))"
    result = memlab.tune(biased, policy, metric="value", missing="zero", folds=2, budget=20)
    assert result.closed == ()
    assert [gate.name for gate in result.untested][-2:] == UNTESTED
    assert result.verdict.endswith("position and redundancy.")


def state_of(name, state):
    """Return a gate in a state, with the texts of the library."""
    if state == "closed" or name in ("propensities", "clusters", "answered probes"):
        facts = Facts(0.5, 1, 100, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    else:
        facts = Facts(0.0, 9, 100, *([math.nan] * 2), 30.0, *([math.nan] * 4))
    gate: Gate = next(gate for gate in gates(facts) if gate.name == name)
    return replace(gate, state=state)


@pytest.mark.long
@pytest.mark.parametrize("design", ["extra", "lot", "ab"])
def test_a_verdict_of_each_design_has_a_report(design, tmp_path):
    page = (
        memlab.verdict(challenged(design, recalls=60, seed=1))
        .report(tmp_path / "out.html")
        .read_text()
    )
    assert "<dt>missing feedback counts as</dt>" in page
    assert "Why there is no verdict" not in page


@pytest.fixture(scope="module")
def judged():
    return memlab.verdict(challenged("extra", recalls=200))


@pytest.mark.long
@pytest.mark.parametrize("state", ["closed", "untested"])
@pytest.mark.parametrize("name", list(GATES))
def test_a_verdict_has_a_report_for_each_gate_in_each_state(judged, name, state, tmp_path):
    gate = state_of(name, state)
    one = judged.verdicts[0]
    changed = (
        replace(one, closed=(gate,), better=None)
        if state == "closed"
        else replace(one, untested=(gate,))
    )
    result = replace(judged, verdicts=(changed,))
    page = result.report(tmp_path / "out.html").read_text()
    heading = {"closed": "Why there is no verdict", "untested": "Untested gates"}
    assert [word in page for word in heading.values()] == [state == key for key in heading]
    said = result.to_dict()["verdicts"][0]
    if state == "closed":
        assert said["withheld"] == [str(gate)]
        assert "No verdict on b" in said["sentence"]
        assert "Untested" not in said["sentence"]
    else:
        assert said["untested"] == [{"gate": name, "reason": str(gate)}]
        assert said["sentence"].endswith(f"Untested: {gate.title}.")
        assert f"Untested: {gate.title}." in repr(result)
        assert f"Untested: {gate.title}." in html_of(result)
        assert result.frame["untested"].to_list() == [name]


@pytest.mark.long
def test_a_withheld_verdict_of_a_log_has_a_report(tmp_path):
    verdict = memlab.verdict(challenged("lot", examined=np.array([1.0, 1.0, 0.3, 0.1])))
    assert verdict.withheld
    page = verdict.report(tmp_path / "out.html").read_text()
    assert "Why there is no verdict" in page
    assert "Rewards depend on the position" in page


def test_a_verdict_on_few_recalls_says_what_was_not_tested():
    result = memlab.verdict(challenged("extra", recalls=12))["b"]
    assert {"position", "redundancy", "balance"} <= {gate.name for gate in result.untested}
    assert "Untested: balance, position and redundancy." in result.sentence


@pytest.mark.long
def test_whole_heads_need_neither_position_nor_redundancy():
    assert memlab.verdict(challenged("ab"))["b"].untested == ()


@pytest.mark.long
def test_the_command_line_names_untested_gates(tmp_path):
    path = tmp_path / "log.parquet"
    position_bias(recalls=200).write_parquet(path)
    columns = [
        "--decision",
        "query_id",
        "--shown",
        "rank",
        "--reward",
        "clicked",
        "--propensity",
        "p",
        "--limit",
        "3",
    ]
    texts = ["-p", "old_score", "-p", "new_score", "--missing", "zero", "--json"]
    done = CliRunner().invoke(main, ["evaluate", str(path), *columns, *texts])
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert {item["gate"] for item in data["untested"]} >= set(UNTESTED)
    assert "Untested: " in data["headline"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("design", "drawn"),
    [("extra", "0.5"), ("lot", "0.5"), ("ab", "0.5"), ("draft", "0.5")],
    ids=str,
)
def test_the_page_of_a_verdict_states_what_it_rests_on(design, drawn, tmp_path):
    slates = challenged(design, recalls=60)
    lost = slates.feedback.collect()[::4]
    feedback = slates.feedback.collect().join(lost, on=["decision", "memory_id"], how="anti")
    slates = replace(slates, feedback=feedback.lazy())
    verdicts = memlab.verdict(slates, missing="zero", reward_range=(0, 2))
    (verdict,) = verdicts
    basis = verdict.basis
    shown = slates.exposures.collect().height
    assert (basis.design, basis.items, basis.missing) == (design, shown, lost.height)
    assert (basis.hash, basis.live_hash, basis.rewards) == ("h", "a", (0, 2))
    assert basis.gates == tuple(gate for gate in basis.gates if gate.name in GATES)
    assert {gate for gate in basis.gates if gate.closed} == set(verdict.closed)
    low, high = basis.observation
    assert low < 0 < high
    # The live pack shows the first four items; "extra" shows all of them.
    shown_live = slates.exposures.collect().filter(pl.col("memory_id") < 4).height
    assert basis.displaced == pytest.approx(1 - shown_live / (4 * 60))
    assert (basis.displaced == 0) == (design == "extra")
    # Shown items stand for those that were not: the recall of the live pack, less that of the first results.
    relevant = slates.feedback.collect().filter(pl.col("reward") > 0)
    of_shown = relevant.join(slates.exposures.collect(), on=["decision", "memory_id"])
    weight = 1 / of_shown["propensity"]
    first = (of_shown["position"] <= 4).sum()
    live = weight.filter(of_shown["memory_id"] < 4).sum()
    assert basis.recall_cost == pytest.approx((live - first) / weight.sum())
    page = re.sub(r"\s+", " ", verdicts.report(tmp_path / "out.html").read_text())
    for wanted in (
        "number 1, at a level of 96.96%",
        f"{lost.height} of {shown} items shown",
        f"<td>{drawn}</td>",
        "0 to 2",
        "Mineiro 2022",
        "p at least 0.001",
        verdicts._log.digest(),
        memlab.__version__,
    ):
        assert wanted in page, wanted
    data = json.loads(json.dumps(verdicts.to_dict()))["verdicts"][0]
    assert data["basis"]["design"] == design
    assert {gate["name"] for gate in data["basis"]["gates"]} == {g.name for g in basis.gates}


@pytest.mark.long
def test_the_page_of_a_draft_says_that_it_compares_credits(tmp_path):
    pages = [
        memlab.verdict(challenged("draft", recalls=60, extra=extra))
        .report(tmp_path / "out.html")
        .read_text()
        for extra in (0, 1)
    ]
    assert ["A draft compares credits" in page for page in pages] == [True, False]


@pytest.mark.long
def test_the_digest_of_a_log_covers_its_challenges():
    """Other results of the challenger are another log, even if the same items were shown."""
    first = challenged("extra", recalls=30)
    changed = first.decisions.with_columns(pl.col("challenge").str.replace('"h"', '"g"'))
    assert (
        memlab.verdict(first)._log.digest()
        != memlab.verdict(replace(first, decisions=changed))._log.digest()
    )


@pytest.mark.long
def test_the_packs_of_a_table_are_those_of_each_row(judged):
    """Two challengers may have met different live packs."""
    one = judged.verdicts[0]
    table = replace(judged, verdicts=(one, replace(one, challenger="c", live="later"))).text()
    rows = [line.split()[:2] for line in table.splitlines() if line[:3] in ("b  ", "c  ")]
    assert rows == [["b", "live"], ["c", "later"]]


@pytest.mark.long
@pytest.mark.parametrize("state", ["closed", "untested"])
@pytest.mark.parametrize("name", list(GATES))
def test_an_evaluation_has_a_report_for_each_gate_in_each_state(plain, name, state, tmp_path):
    gate = state_of(name, state)
    gone = {"value": None, "difference": None, "verdict": "withheld"} if state == "closed" else {}
    rows = tuple(
        replace(
            row,
            **gone,
            measured=replace(
                row.measured,
                gates=tuple(
                    gate if own.name == name else replace(own, state="open")
                    for own in row.measured.gates
                ),
            ),
        )
        for row in plain.rows
    )
    evaluation = replace(plain, rows=rows)
    page = html.unescape(evaluation.report(tmp_path / "out.html").read_text())
    assert gate.finding in page
    assert (" ✕" in page, " ?" in page) == (state == "closed", state == "untested")
    assert ("withheld" in evaluation.to_latex()) == (state == "closed")


@pytest.fixture(scope="module")
def plain():
    return memlab.evaluate(World(clusters=20).slates(), ["plain", "noise"])


@pytest.mark.long
def test_an_evaluation_without_any_value_has_a_report(tmp_path):
    frames = World(clusters=4).frames()
    frames["candidates"] = frames["candidates"].drop("score", "rank")
    log = Slates(*(frames[name].lazy() for name in TABLES))
    evaluation = memlab.evaluate(log, ["cascade", "companion"], baseline="cascade")
    assert not evaluation.rows
    page = evaluation.report(tmp_path / "out.html").read_text()
    for refusal in evaluation.refusals:
        assert html.escape(refusal.reason) in page
    with pytest.raises(InputError, match="Every policy was refused"):
        evaluation.to_latex()
