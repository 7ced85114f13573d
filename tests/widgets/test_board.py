"""The Python half of the evaluation board: what is evaluated, planned and followed, and what is refused."""

import json

import polars as pl
import pytest

import memlab
from memlab.ui.widgets import EvaluationBoard
from tests.widgets.shared import set_shared, shared

WORDS = '(pack words "Words alone.") (defpolicy recall-score [lexical] lexical)'


@pytest.fixture
def judged(lab, clock):
    """A lab of forty notes that was asked twenty questions while words alone were a challenger."""
    topics = ["harbour", "boat", "tide", "rope", "sail"]
    lab.remember(
        [f"note {n} on the {topics[n % 5]} and the {topics[n * 3 % 5]}" for n in range(40)]
    )
    lab.challenge(WORDS, reason="are words enough?")
    for number in range(20):
        clock.advance(hours=7)
        for hit in lab.recall(f"what of the {topics[number % 5]} and note {number}", limit=4):
            lab.feedback(hit, "success" if topics[number % 5] in hit.text else "fail")
    return lab


@pytest.fixture
def board(judged):
    return EvaluationBoard(judged, ["memlab", WORDS], missing="zero")


def settled(board, ask):
    """What a browser does: ask until nothing is under way. The last answer."""
    while isinstance(found := ask(board, "progress"), dict) and found:
        pass
    return found


@pytest.mark.long
def test_it_is_what_evaluate_gives(board, judged):
    found = board.evaluate()
    direct = memlab.evaluate(judged, ["memlab", WORDS], missing="zero")
    assert found.frame.equals(direct.frame)
    shown = shared(board, "evaluation")
    assert [row["policy"] for row in shown["rows"]] == direct.frame["policy"].to_list()
    assert {len(row["gates"]) for row in shown["rows"]} == {9}
    states = [[gate.state for gate in row.measured.gates] for row in direct.rows]
    assert [[gate["state"] for gate in row["gates"]] for row in shown["rows"]] == states
    said = [
        gate
        for row in shown["rows"]
        for gate in row["gates"]
        if gate["state"] in ("closed", "untested")
    ]
    assert all(gate["finding"] for gate in said)
    json.dumps(shown, allow_nan=False)


@pytest.mark.long
def test_it_works_in_a_thread_that_a_browser_asks_about(board, ask):
    assert ask(board, "begin", part="evaluation") == {}
    assert settled(board, ask) == {}
    assert board.evaluation is not None
    assert shared(board, "differences")["recalls"]
    first = shared(board, "evaluation")
    set_shared(board, "evaluation", {})
    ask(board, "begin", part="evaluation")  # known by its settings: at once
    assert shared(board, "evaluation") == first


@pytest.mark.long
def test_the_heads_of_a_disagreement_are_the_top_five_of_both(board):
    found = board.evaluate()
    board.finish()
    a, b = board.pair
    for one, direct in zip(
        shared(board, "differences")["recalls"], found.disagreements(a, b, 6), strict=True
    ):
        for side in (0, 1):
            ranks = {
                str(item.memory): item.ranks[side] for item in direct.items if item.ranks[side]
            }
            assert {item["memory"]: item["rank"] for item in one["heads"][side]} == {
                memory: rank for memory, rank in ranks.items() if rank <= 5
            }


@pytest.mark.long
def test_the_planner_has_a_design_for_each_number_of_extra_items(board, judged, ask):
    ask(board, "begin", part="plan")
    assert settled(board, ask) == {}
    designs = pl.DataFrame(shared(board, "plan")["designs"])
    wanted = {
        "challenge by lot",
        "A/B by recall",
        *(f"challenge, {extra} extra" for extra in range(1, 6)),
    }
    assert wanted <= set(designs["design"])
    direct = memlab.plan(judged, ["memlab", WORDS], missing="zero").frame
    both = direct.join(designs, on=["policy", "design"], suffix="_shown")
    assert both.height == direct.height
    assert both["half_width"].to_list() == pytest.approx(both["half_width_shown"].to_list())


@pytest.mark.long
def test_a_challenge_is_followed_day_by_day(board, judged, ask):
    ask(board, "begin", part="challenge")
    assert settled(board, ask) == {}
    track, (shown,) = (
        judged.verdict(missing="zero")["words"].track,
        shared(board, "challenge")["verdicts"],
    )
    assert shown["days"][-1]["low"] == pytest.approx(track["low"][-1])
    assert [day["day"] for day in shown["days"]] == sorted({str(at.date()) for at in track["at"]})
    assert shown["sentence"] == judged.verdict(missing="zero")["words"].sentence


@pytest.mark.long
def test_a_challenge_begins_from_the_planner(board, judged, ask):
    answer = ask(
        board, "challenge", policy="companion", design="extra", extra=2, rate=0.5, reason="fresher?"
    )
    assert answer == {}
    assert shared(board, "about")["challengers"] == ["words", "companion"]
    assert judged.policies.challenges[-1].extra == 2
    assert "is a challenger already" in ask(
        board, "challenge", policy="companion", design="extra", extra=1, rate=1.0, reason=""
    )


@pytest.mark.long
def test_the_number_of_extra_items_may_be_auto(judged, ask):
    judged.policies.end_challenge("words")
    board = EvaluationBoard(judged)
    settings = {"policy": "companion", "design": "extra", "extra": "auto", "rate": 1.0}
    assert ask(board, "challenge", **settings, reason="") == {}
    assert judged.policies.challenges[-1].extra == "auto"
    assert "extra" in ask(board, "challenge", **settings | {"extra": "many"}, reason="")


@pytest.mark.long
@pytest.mark.parametrize("design", ["lot", "ab", "draft"])
def test_designs_without_extra_items_begin_as_well_and_share_no_challenge(judged, ask, design):
    board = EvaluationBoard(judged)
    extra = "auto" if design == "draft" else 1
    rest = {"policy": "companion", "design": design, "extra": extra, "rate": 1.0, "reason": ""}
    assert "use the same design" in ask(board, "challenge", **rest)
    judged.policies.end_challenge("words")
    assert ask(board, "challenge", **rest) == {}
    assert judged.policies.challenges[-1].design == design


@pytest.mark.long
def test_what_is_refused_in_the_thread_is_said(judged, ask):
    board = EvaluationBoard(judged, ["compagnon"], missing="zero")
    ask(board, "begin", part="evaluation")
    assert "Did you mean companion" in settled(board, ask)
    board.policies = []
    assert "Choose a policy" in ask(board, "begin", part="evaluation")


@pytest.mark.long
def test_a_log_without_feedback_and_an_empty_lab_say_so(lab, ask):
    board = EvaluationBoard(lab)
    assert (shared(board, "about")["recalls"], shared(board, "about")["judged"]) == (0, 0)
    ask(board, "begin", part="evaluation")
    assert isinstance(settled(board, ask), str)
    lab.remember("The user prefers tabs")
    lab.recall("tabs?")
    board.refresh()
    assert (shared(board, "about")["recalls"], shared(board, "about")["judged"]) == (1, 0)
    ask(board, "begin", part="plan")
    assert isinstance(settled(board, ask), str)


@pytest.mark.long
def test_a_lab_closed_under_it_is_said(board, judged, ask):
    judged.close()
    assert "was closed" in ask(board, "begin", part="evaluation")


@pytest.mark.long
def test_two_boards_at_work_on_one_lab(board, judged, ask):
    other = EvaluationBoard(judged, ["memlab", "companion"], missing="zero")
    ask(board, "begin", part="evaluation")
    ask(other, "begin", part="evaluation")
    assert settled(board, ask) == settled(other, ask) == {}
    for one, policies in ((board, ["memlab", WORDS]), (other, ["memlab", "companion"])):
        direct = memlab.evaluate(judged, policies, missing="zero")
        assert one.evaluation.frame.equals(direct.frame)


@pytest.mark.long
def test_a_log_needs_no_lab():
    log = pl.read_parquet(memlab.examples.LOG)
    slates = memlab.Slates.from_wide(
        log,
        decision="query_id",
        item="memory_id",
        shown="rank",
        reward="clicked",
        propensity="p",
        limit=3,
        scores=["old_score", "new_score"],
    )
    board = EvaluationBoard(slates, missing="zero")
    assert board.policies == ["old_score", "new_score"]
    assert board.evaluate().rows[0].policy == "new_score"
    assert "new_score" in board.page()
    assert "a log" in repr(board)


@pytest.mark.parametrize("bad", [{"missing": "maybe"}, {"horizon": 7}, {"policies": 7}])
def test_a_constructor_refuses_what_it_cannot_evaluate(lab, bad):
    with pytest.raises(memlab.InputError):
        EvaluationBoard(lab, **bad)


def test_the_active_pack_is_compared_first():
    with memlab.open(pack="companion") as lab:
        lab.remember("Deploys go out on Tuesday")
        assert EvaluationBoard(lab).policies[:2] == ["companion", "memlab"]


@pytest.mark.long
def test_it_opens_on_the_active_pack_and_its_challengers(judged, lab):
    assert EvaluationBoard(judged).policies == ["memlab", "words"]
    assert shared(EvaluationBoard(judged), "about")["known"][:2] == ["memlab", "words"]
    judged.policies.end_challenge("words")
    judged.policies.use("companion")
    assert EvaluationBoard(judged).policies == ["companion", "memlab"]
