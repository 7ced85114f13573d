"""``lab.guard``: shown results, rollbacks, the ends of a guard, and forecasts."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import InputError
from memlab.kernel.journal import Event
from memlab.kernel.verbs.policies.policies import LabPolicies
from memlab.subjects.guard.process import WEIGHTS, LossProcess, forecast_recalls
from memlab.subjects.guard.register import Guards
from memlab.subjects.lab import Lab

TOPICS = ("harbour", "boat", "tide", "rope", "sail", "anchor")
WORSE = '(pack worse "Other results." :inherits memlab) (defpolicy recall-score [similarity] (- 1 similarity))'
SAME = '(pack twin "The same results." :inherits memlab) (setting upkeep-hours 5)'


def make_lab(path: Path | None = None) -> Lab:
    lab = memlab.open(path, seed=3)
    lab.remember([f"note {n} on {TOPICS[n % 6]} and {TOPICS[n * 5 % 6]}" for n in range(30)])
    return lab


def shows_guarded(hits: memlab.Hits) -> bool:
    return bool((hits.slate.challenge or {}).get("whose"))


def serve(lab: Lab, recalls: int, *, guarded: float = 0.0, active: float = 1.0) -> int:
    """Recall and judge until the guard ends, and return the number of recalls."""
    for number in range(recalls):
        hits = lab.recall(f"{TOPICS[number % 6]} {number % 7}", limit=3)
        lab.feedback(hits[0], reward=guarded if shows_guarded(hits) else active)
        if not lab.policies.challenges:
            return number + 1
    return recalls


@pytest.mark.long
def test_a_worse_pack_is_rolled_back_by_feedback_alone(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "a.memlab")
    lab.guard(WORSE, share=0.3, wait=2)
    served = serve(lab, 300)
    assert served < 300
    guard = lab.guard()
    frame = guard.frame
    assert (guard.state, guard.pack, lab.policies.pack.name) == ("rolled back", "worse", "memlab")
    assert guard.low > 0
    assert guard.judged == served - 2
    [end] = lab.io.store.journal.events(kinds=["end-challenge"])
    assert "Rolled back after" in end.body["reason"]
    assert guard.end_reason == end.body["reason"]
    assert lab.policies.challenge_history["end_reason"].to_list() == [end.body["reason"]]
    assert not shows_guarded(lab.recall("boat"))
    lab.close()
    again = memlab.open(tmp_path / "a.memlab")
    assert again.guard().frame.equals(frame)
    assert (again.guard().low, again.guard().served) == (guard.low, guard.served)
    assert again.guard().end_reason == guard.end_reason


@pytest.mark.long
def test_the_reason_of_an_end_is_kept_in_a_snapshot(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "a.memlab")
    lab.guard(WORSE, reason="why")
    assert (lab.guard().reason, lab.guard().end_reason) == ("why", "")
    assert lab.policies.challenge_history["end_reason"].to_list() == [None]
    lab.policies.end_challenge("worse", reason="enough")
    lab.guard(WORSE)
    lab.policies.use("companion", compare=0)
    ends = ["enough", "The active pack changed."]
    lab.io.store.snapshot()
    lab.close()
    lab = memlab.open(tmp_path / "a.memlab")
    assert lab.guard().end_reason == ends[1]
    assert lab.policies.challenge_history["end_reason"].to_list() == ends


@pytest.mark.long
def test_two_handles_and_an_agent_share_one_guard(tmp_path: Path) -> None:
    one = make_lab(tmp_path / "a.memlab")
    one.guard(WORSE, share=0.3, wait=0)
    two = memlab.open(tmp_path / "a.memlab", seed=5)
    agent = two.agent("coder")
    for number in range(200):
        hits = agent.recall(f"{TOPICS[number % 6]} {number}", limit=3)
        judge = (one, two, agent)[number % 3]
        judge.feedback(hits[0].id, reward=float(not shows_guarded(hits)), decision=hits.decision)
        if not two.policies.challenges:
            break
    assert one.guard().state == two.guard().state == "rolled back"
    assert one.guard().served == two.guard().served


@pytest.mark.long
def test_a_reopened_lab_continues_with_equal_numbers(tmp_path: Path) -> None:
    whole, parts = make_lab(), make_lab(tmp_path / "a.memlab")
    for lab in (whole, parts):
        lab.guard(WORSE, share=0.2, wait=5)
    serve(whole, 60, guarded=0.5, active=0.6)
    for number in range(60):
        if number in (17, 40):
            if number == 40:
                parts.io.store.snapshot()
            parts.close()
            parts = memlab.open(tmp_path / "a.memlab", seed=3)
        hits = parts.recall(f"{TOPICS[number % 6]} {number % 7}", limit=3)
        parts.feedback(hits[0], reward=0.5 if shows_guarded(hits) else 0.6)
    assert parts.guard().frame.drop("recall").equals(whole.guard().frame.drop("recall"))
    assert parts.guard().served == whole.guard().served


@pytest.mark.long
def test_the_share_is_that_of_the_coin_and_is_logged() -> None:
    lab = make_lab()
    lab.guard(WORSE, share=0.25)
    shown = [shows_guarded(lab.recall(f"{TOPICS[n % 6]} {n}", limit=3)) for n in range(160)]
    # Four standard deviations of a binomial share.
    assert abs(np.mean(shown) - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 160)
    challenge = json.loads(lab.slates().decisions.collect()["challenge"][-1])
    assert challenge["shares"] == {"": 0.75, "worse": 0.25}
    guard = lab.guard()
    assert guard.served[1] == sum(shown)
    assert sum(guard.served) == 160


@pytest.mark.long
def test_a_pack_with_the_same_results_has_no_loss() -> None:
    lab = make_lab()
    lab.guard(SAME, share=0.5, wait=0)
    rng = np.random.default_rng(1)
    for number in range(40):
        lab.feedback(lab.recall(TOPICS[number % 6])[0], reward=float(rng.random()))
    guard = lab.guard()
    assert (guard.loss, guard.served[:2], guard.judged) == (0.0, (0, 0), 40)
    assert guard.frame["guarded"].unique().to_list() == [-1]


@pytest.mark.long
def test_shadow_shows_the_active_results_and_logs_both() -> None:
    lab = make_lab()
    plain = [hit.id for hit in lab.recall("boat", limit=5, log=False)]
    lab.guard(WORSE, shadow=True)
    for _ in range(5):
        hits = lab.recall("boat", limit=5)
        assert [hit.id for hit in hits] == plain
        assert not shows_guarded(hits)
    lab.feedback(hits[0], "success")
    guard = lab.guard()
    assert (guard.share, guard.judged) == (0.0, 0)
    assert guard.frame["common"].max() < 1
    assert guard.frame["reward"].to_list() == [0, 0, 0, 0, 1]
    assert "in shadow" in guard.title
    with pytest.raises(InputError, match="No recall of this log was challenged"):
        lab.verdict(missing="zero")


@pytest.mark.long
def test_a_guard_ends_with_the_active_pack() -> None:
    lab = make_lab()
    lab.guard(WORSE)
    lab.policies.use(lab.policies.challenges[0].pack, compare=0)
    assert (lab.guard().state, lab.policies.challenges) == ("in use", ())
    lab.guard("companion")
    lab.policies.install("recall-score", "(fn [similarity] similarity)", compare=0)
    assert lab.guard().state == "replaced"
    lab.guard("companion")
    lab.policies.install("retention", lab.policies["retention"], compare=0)
    assert lab.guard().state == "running"
    lab.policies.end_challenge("companion", reason="seen enough")
    assert lab.guard().state == "ended"


@pytest.mark.long
def test_a_guard_needs_consent_and_stands_alone() -> None:
    lab = make_lab()
    with pytest.raises(InputError, match="No pack was guarded yet"):
        lab.guard()
    lab.policies.explore(False)
    with pytest.raises(InputError, match=r"refused random draws with .*explore\(False\)"):
        lab.guard("companion")
    lab.policies.explore(True)
    with pytest.raises(InputError, match="is the active pack"):
        lab.guard("memlab")
    lab.guard("companion")
    for begin in (lab.guard, lab.challenge):
        with pytest.raises(InputError, match="companion is a challenger already"):
            begin("cascade")
    lab.policies.end_challenge("companion")
    lab.challenge("companion")
    with pytest.raises(InputError, match="companion is a challenger already"):
        lab.guard("cascade")
    assert [row["name"] for row in lab.policies.challenge_history.to_dicts()] == ["companion"] * 2


@pytest.mark.parametrize(
    "options",
    [
        {"share": 0.0},
        {"share": 0.6},
        {"level": 1.0},
        {"tolerance": -1},
        {"tolerance": 2},
        {"wait": -1},
        {"wait": 0, "missing": "zero"},
        {"missing": "bounds"},
        {"reward_range": (1, 1)},
        {"reward_range": (0, float("inf"))},
        {"reward_range": (float("nan"), 1)},
    ],
)
def test_bad_options_begin_nothing(options: dict[str, object]) -> None:
    lab = make_lab()
    head = lab.io.store.journal.head
    with pytest.raises(InputError):
        lab.guard("companion", **options)  # type: ignore[arg-type]
    assert lab.io.store.journal.head == head


@pytest.mark.long
def test_a_plan_begins_nothing_and_needs_more_recalls_for_smaller_losses() -> None:
    lab = make_lab()
    rng = np.random.default_rng(5)
    for number in range(60):
        hits = lab.recall(f"{TOPICS[number % 6]} {number}", limit=3)
        if number % 2:
            lab.feedback(hits[0], reward=float(rng.random() < 0.7))
    head = lab.io.store.journal.head
    plan = lab.guard(WORSE, plan=True)
    assert lab.io.store.journal.head == head
    assert (plan.state, lab.policies.challenges) == ("planned", ())
    assert "30 judged recalls" in plan.basis
    assert "100% of 20" in plan.basis
    for name in ("judged", "judged_95", "recalls_95"):
        assert plan.forecast[name].is_sorted(descending=True)
    assert (plan.forecast["recalls_95"] > 1.9 * plan.forecast["judged_95"]).all()
    small = lab.guard(WORSE, share=0.02, plan=True).forecast
    assert (small["judged_95"] > plan.forecast["judged_95"]).all()
    assert lab.guard(SAME, plan=True).forecast["judged"].to_list() == [None] * 4


@pytest.mark.long
def test_a_challenge_states_the_share_of_its_guarded_pack() -> None:
    lab = make_lab()
    guard = lab.guard("companion", share=0.3)
    assert "guarded in 30%" in repr(lab.policies.challenges[0])
    lab.feedback(lab.recall("boat")[0], "success")
    assert "No judged recall counts yet." in guard.title
    assert "No judged recall counts yet." in lab.guard().title


@pytest.mark.long
def test_whoever_refuses_random_draws_ends_the_guard() -> None:
    lab = make_lab()
    lab.guard("companion", share=0.5)
    lab.policies.explore(False)
    assert lab.guard().state == "ended"
    assert lab.policies.challenge_history["reason"].to_list() == [""]
    assert not any(shows_guarded(lab.recall(f"boat {number}", limit=3)) for number in range(20))


@pytest.mark.long
def test_a_guard_that_another_process_ended_first_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, other = make_lab(tmp_path / "a.memlab"), memlab.open(tmp_path / "a.memlab")
    end = LabPolicies.end_challenge

    def end_second(self: LabPolicies, name: str, *, reason: str = "") -> None:
        """End the guard after another process did."""
        monkeypatch.undo()
        end(other.policies, name, reason="by another process")
        end(self, name, reason=reason)

    monkeypatch.setattr(LabPolicies, "end_challenge", end_second)
    lab.guard(WORSE, share=0.5, wait=0)
    serve(lab, 200)
    assert lab.guard().state == "rolled back"
    assert LabPolicies.end_challenge is end
    assert len(lab.policies.challenge_history) == 1


@pytest.mark.long
def test_one_judged_recall_is_in_the_singular() -> None:
    lab = make_lab()
    lab.guard(WORSE, share=0.5, wait=0)
    lab.feedback(lab.recall("boat", limit=3)[0], "success")
    assert "After 1 judged recall, the loss" in lab.guard().title


@pytest.mark.long
def test_missing_feedback_counts_as_zero_on_request() -> None:
    lab = make_lab()
    lab.guard(WORSE, share=0.3, missing="zero", wait=1)
    for number in range(200):
        hits = lab.recall(f"{TOPICS[number % 6]} {number % 7}", limit=3)
        if not shows_guarded(hits):  # Nobody finds anything under the guarded pack.
            lab.feedback(hits[0], "success")
        if not lab.policies.challenges:
            break
    assert lab.guard().state == "rolled back"
    silent = make_lab()
    silent.guard(WORSE, share=0.3, wait=1)
    for number in range(100):
        hits = silent.recall(f"{TOPICS[number % 6]} {number % 7}", limit=3)
        if not shows_guarded(hits):
            silent.feedback(hits[0], "success")
    guard = silent.guard()
    assert guard.state == "running"
    assert guard.frame["guarded"].max() == 0


@pytest.mark.long
def test_the_reward_of_a_recall_is_the_mean_within_the_range() -> None:
    lab = make_lab()
    lab.guard(WORSE, reward_range=(-1, 1), wait=1)
    first = lab.recall("boat", limit=3)
    lab.feedback(
        [
            {"memory": first[0], "reward": 1.0},
            {"memory": first[1], "reward": -5.0},
            {"memory": first[2], "outcome": "fail"},
        ]
    )
    assert lab.guard().judged == 0
    lab.feedback(lab.recall("tide", limit=3)[0], "success")
    lab.feedback(first[0], reward=1.0)
    guard = lab.guard()
    assert guard.judged == 1
    assert guard.frame["reward"].to_list() == [pytest.approx((1 + 0 + 0.5) / 3)]


@pytest.mark.long
def test_the_verdict_on_a_guard_reads_its_coin() -> None:
    lab = make_lab()
    lab.guard(WORSE, share=0.3)
    serve(lab, 100, guarded=0.4, active=0.6)
    verdict = lab.verdict(missing="censor")["worse"]
    assert verdict.recalls > 50
    assert verdict.difference.low < -0.2 < verdict.difference.high


@pytest.mark.long
def test_a_guard_shows_hostile_names_as_text() -> None:
    lab = make_lab()
    guard = lab.guard(WORSE, reason="<script>alert(1)</script>")
    assert "<script>" not in guard._repr_html_()
    assert "worse at 10% of recalls: running" in repr(guard)


@pytest.mark.long
def test_answers_alone_roll_a_pack_back() -> None:
    lab = make_lab()
    lab.guard(WORSE, share=0.4, wait=0)
    for number in range(120):
        hits = lab.recall(f"note {number % 30} on {TOPICS[number % 6]}", limit=3)
        answer = "I do not know." if shows_guarded(hits) else f"That is {hits[0].text}."
        lab.agents.credits.answer(answer, hits)
        if not lab.policies.challenges:
            break
    assert lab.guard().state == "rolled back"


# -- the fold ---------------------------------------------------------------------------------------------------------

OPTIONS = {"share": 0.3, "tolerance": 0.0, "level": 0.95, "shadow": 0, "low": 0.0, "high": 1.0}


def history(draw: st.DataObject) -> list[Event]:
    """Draw events of one or two guards, with late, repeated and foreign judgements."""
    zero, wait = draw.draw(st.integers(0, 1)), draw.draw(st.integers(0, 3))
    options = OPTIONS | {"zero": zero, "wait": wait}
    begin = {"pack": "p", "hash": "h", "live": "l", "reason": "", "guard": options}
    events = [("challenge", begin)]
    for _ in range(draw.draw(st.integers(0, 40))):
        decision = draw.draw(st.integers(1, len(events) + 1))
        reward = draw.draw(st.sampled_from([None, 0.0, 0.25, 1.0, 7.0]))
        judgement = {"decision": decision, "outcome": "success", "reward": reward}
        guarded = {"guarded": draw.draw(st.sampled_from([-1, 0, 0, 1]))}
        kinds = [("recall", guarded), ("recall", {}), ("feedback", judgement)]
        events.append(
            draw.draw(st.sampled_from([*kinds, *kinds, ("end-challenge", {"pack": "p"})]))
        )
        if events[-1][0] == "end-challenge":
            events.append(("challenge", begin))
    return [Event(seq, 10 * seq, kind, body) for seq, (kind, body) in enumerate(events, 1)]


def fold(events: list[Event], dumped: object = None) -> Guards:
    guards = Guards()
    if dumped is not None:
        guards.load(dumped)
    for event in events:
        guards.fold(event)
    return guards


@pytest.mark.long
@given(st.data())
@examples(50)
def test_folding_a_prefix_and_the_rest_equals_folding_all(data: st.DataObject) -> None:
    events = history(data)
    cut = data.draw(st.integers(0, len(events)))
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(fold(events[:cut]).dump()))
    assert fold(events[cut:], stored).dump() == fold(events).dump()


# -- the sequence -----------------------------------------------------------------------------------------------------


def run(process: LossProcess, arms: np.ndarray, rewards: np.ndarray) -> None:
    for guarded, reward in zip(arms, rewards, strict=True):
        process.add(guarded, reward)


def draw_recalls(seed: int, n: int, runs: int, loss: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    arms = np.where(rng.random((n, runs)) < 0.3, -1, (rng.random((n, runs)) < 0.2).astype(np.int64))
    return arms, (rng.random((n, runs)) < np.where(arms == 1, 0.6 - loss, 0.6)).astype(np.float64)


@pytest.mark.long
def test_many_runs_equal_single_runs_to_the_bit() -> None:
    arms, rewards = draw_recalls(1, 200, 9, 0.2)
    together = LossProcess(0.2, runs=9)
    run(together, arms, rewards)
    for index in range(9):
        alone = LossProcess(0.2)
        run(alone, arms[:, [index]], rewards[:, [index]])
        for one, many in zip(alone.bounds(0.95), together.bounds(0.95), strict=True):
            assert one[0] == many[index]


@pytest.mark.long
def test_a_lab_and_a_simulation_agree() -> None:
    lab = make_lab()
    lab.guard(WORSE, share=0.2, wait=0)
    serve(lab, 60, guarded=0.5, active=0.6)
    frame, process = lab.guard().frame, LossProcess(0.2)
    rows = frame.select("guarded", "reward", "loss", "low", "high").iter_rows()
    assert frame["guarded"].n_unique() > 1
    for guarded, reward, *expected in rows:
        process.add(np.array([guarded]), np.array([reward]))
        # A processor may compute logarithms of one run and of many runs by different instructions.
        bounds = [float(bound[0]) for bound in process.bounds(0.95)]
        assert bounds == pytest.approx(expected, abs=1e-12)


@pytest.mark.long
def test_an_equal_pack_is_seldom_excluded_and_the_interval_covers() -> None:
    arms, rewards = draw_recalls(2, 600, 300, 0.0)
    process, excluded, missed = LossProcess(0.2, runs=300), np.zeros(300, bool), np.zeros(300, bool)
    for step, (guarded, reward) in enumerate(zip(arms, rewards, strict=True)):
        process.add(guarded, reward)
        excluded |= process.exceeds(0.0, 0.95)
        if step % 20 == 0:
            _, low, high = process.bounds(0.95)
            missed |= (low > 0) | (high < 0)
            assert (low <= high).all()
    # One side has 5%, both have 10%; three standard deviations of 300 runs are 3.8% and 5.2%.
    assert excluded.mean() <= 0.05 + 0.038
    assert missed.mean() <= 0.1 + 0.052


@pytest.mark.long
def test_the_mean_is_the_loss_per_recall() -> None:
    arms, rewards = draw_recalls(3, 2000, 50, 0.3)
    process = LossProcess(0.2, runs=50)
    run(process, arms, rewards)
    loss, low, high = process.bounds(0.95)
    # Of all recalls, 70% have other results, so the loss per recall is .7 of .3.
    assert loss.mean() == pytest.approx(0.21, abs=0.02)
    assert ((low < 0.21) & (high > 0.21)).mean() > 0.9
    assert process.exceeds(0.0, 0.95).all()
    assert not process.exceeds(0.25, 0.95).any()


@pytest.mark.long
def test_forecasts_agree_with_simulated_rollbacks() -> None:
    rng, runs, share = np.random.default_rng(6), 300, 0.2
    process, ends = LossProcess(share, runs=runs), np.full(runs, np.inf)
    for number in range(1, 1500):
        guarded = (rng.random(runs) < share).astype(np.int64)
        process.add(guarded, (rng.random(runs) < np.where(guarded, 0.4, 0.6)).astype(np.float64))
        ends[process.exceeds(0.0, 0.95) & np.isinf(ends)] = number
    rewards = np.repeat([0.0, 1.0], [40, 60])
    for chance in (0.5, 0.95):
        expected = forecast_recalls(rewards, 0.2, share, level=0.95, chance=chance)
        assert expected == pytest.approx(np.quantile(ends, chance), rel=0.25)
    assert forecast_recalls(rewards, 0.7, share, level=0.95, chance=0.5) is None
    assert forecast_recalls(rewards, 0.0, share, level=0.95, chance=0.5) is None


@pytest.mark.long
def test_the_sequence_of_one_pack_matches_its_definition() -> None:
    """Compare with the product over recalls, computed from the definition with plain loops."""
    arms, rewards = draw_recalls(4, 600, 1, 0.3)
    process = LossProcess(0.2)
    run(process, arms, rewards)
    share, capital = 0.2, np.zeros(len(process.rates))
    count, sums, total = [0, 0], [0.0, 0.0], 0.0
    for guarded, reward in zip(arms[:, 0].tolist(), rewards[:, 0].tolist(), strict=True):
        if guarded < 0:
            continue
        active = (sums[0] + 0.5) / (count[0] + 1)
        own = (sums[1] + 10 * active) / (count[1] + 10)
        typical = 0.8 * own + 0.2 * active
        loss = (typical - reward) / share if guarded else (reward - typical) / (1 - share)
        floor = -max((1 - typical) / share, typical / (1 - share))
        expected = max(total / (sum(count) + 1), floor)
        for index, rate in enumerate(process.rates):
            reach = rate * (expected - floor)
            factor = 1.0 if reach < 1 else 0.9 / reach
            capital[index] += np.log1p(rate * factor * (loss - expected))
            capital[index] += rate * (floor + factor * (expected - floor))
        total += loss
        count[guarded] += 1
        sums[guarded] += reward
    mixture = np.log(np.exp(capital) @ WEIGHTS)
    assert mixture > 1
    assert process.exceeds(0.0, 1 - np.exp(-mixture + 1e-6))[0]
    assert not process.exceeds(0.0, 1 - np.exp(-mixture - 1e-6))[0]


@pytest.mark.long
def test_frames_have_their_types_without_rows() -> None:
    lab = make_lab()
    lab.guard(WORSE, wait=0)
    serve(lab, 5)
    lab.policies.end_challenge("worse")
    for options in ({}, {"shadow": True}):
        planned = lab.guard(WORSE, plan=True, **options)  # type: ignore[arg-type]
        assert planned.frame.height == 0
        assert "planned" in repr(planned)
    assert lab.guard().frame.height == 5
    lab.guard(WORSE, wait=0)
    report = lab.guard()
    serve(lab, 3)
    assert (report.frame.height, lab.guard().frame.height) == (0, 3)
    lab.policies.end_challenge("worse")
    lab.guard(WORSE)
    frame = lab.guard().frame
    assert frame.height == 0
    assert frame.schema["loss"] == pl.Float64
