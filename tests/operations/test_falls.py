"""A policy that does worse is proposed back: asked and unasked, by slot and by pack, with consent alone."""

import json

import pytest

import memlab
from memlab.errors import InputError, MemlabError
from memlab.science.evaluation import CONFOUNDED
from memlab.subjects.programs import adapt, adapting

pytestmark = pytest.mark.long

WORSE = "(lambda (activation recency) (+ (* -0.9 activation) (* 0.1 recency)))"


@pytest.fixture
def agent(clock):
    """Return a lab of four notes that answer and four that do not, under the pack's own settings."""
    with memlab.open(pack="associative", clock=clock) as lab:
        remember(lab)
        yield lab


def remember(lab):
    for n in range(4):
        lab.remember(f"rust build note {n}", linking="off")
    for n in range(4):
        lab.remember(f"cake note {n}", linking="off")


def live(lab, clock, days):
    """Run one judged recall a day, and return the notices."""
    notices = []
    for _ in range(days):
        clock.advance(days=1)
        hits = lab.recall("rust build", limit=3)
        notices += [
            lab.feedback(hit, "success" if "rust" in hit.text else "fail").notice for hit in hits
        ]
    return [notice for notice in notices if notice is not None]


def test_a_drop_is_reverted(agent, clock):
    good = agent.policies["recall-score"]
    assert live(agent, clock, 60) == []
    agent.policies.install("recall-score", WORSE)
    live(agent, clock, 60)
    rates = agent.policies.attribution("recall-score").frame["rate"].to_list()
    assert rates == [1.0, 0.0]
    agent.upkeep.operations.run('(adapt-policy "zero")', consent=True)
    assert agent.policies["recall-score"].source == good.source
    assert agent.policies.history("recall-score")["action"][-1] == "rollback"
    assert CONFOUNDED in agent.policies.history("recall-score")["reason"][-1]


def test_a_fall_is_proposed_unasked_and_once(agent, clock):
    live(agent, clock, 30)
    good = agent.policies["recall-score"].hash
    agent.policies.install("recall-score", WORSE)
    before = agent.policies.pack.hash
    (notice,) = live(agent, clock, 20)
    assert (notice.slot, notice.action, notice.after) == ("recall-score", "proposed", good)
    assert notice.gain[1] > 0
    assert CONFOUNDED in repr(notice)
    assert agent.policies.pack.hash == before
    asked = agent.upkeep.operations.check_fall()
    assert (asked.action, asked.after) == ("proposed", good)
    done = agent.upkeep.operations.adapt_policy(missing="zero", consent=True)
    assert (done.action, agent.policies["recall-score"].hash) == ("rolled back", good)
    assert agent.upkeep.operations.check_fall() is None


def test_the_notice_comes_within_a_few_judged_recalls(agent, clock):
    live(agent, clock, 30)
    agent.policies.install("recall-score", WORSE)
    days = next(day for day in range(1, 20) if live(agent, clock, 1))
    assert days <= 6


def test_judgements_of_another_process_count_and_the_notice_shows(disk, clock):
    with disk(pack="associative") as lab:
        remember(lab)
        for _ in range(20):
            clock.advance(days=1)
            for hit in lab.recall("rust", limit=3):
                lab.feedback(hit, "success")
        lab.policies.install("recall-score", WORSE)
        for _ in range(10):
            clock.advance(days=1)
            for hit in lab.recall("rust", limit=3):
                lab.feedback(hit, "fail")
    with disk() as lab:
        clock.advance(days=1)
        hits = lab.recall("rust", limit=3)
        told = [lab.feedback(hit, "fail") for hit in hits]
        assert told[0].notice is None  # a process that asks once does not read the log
        assert [item.notice is not None for item in told].count(True) == 1
        assert "on your consent, roll back" in repr(next(item for item in told if item.notice))
        many = lab.feedback([{"memory": hit, "outcome": "fail"} for hit in hits])
        assert all(item.notice is None for item in many)


def test_feedback_many_tells_of_a_fall_once(agent, clock):
    def judged(outcome, days):
        notices = []
        for _ in range(days):
            clock.advance(days=1)
            rows = [
                {"memory": hit, "outcome": outcome} for hit in agent.recall("rust build", limit=3)
            ]
            notices += [item.notice for item in agent.feedback(rows)]
        return [notice for notice in notices if notice is not None]

    judged("success", 20)
    agent.policies.install("recall-score", WORSE)
    assert len(judged("fail", 10)) == 1


def test_a_judgement_reads_only_what_came_since_the_last(agent, clock, monkeypatch):
    """Constant work: of the journal the new judgements alone, of the log nothing, while there is no fall."""
    live(agent, clock, 5)
    agent.policies.install("recall-score", WORSE)
    live(agent, clock, 2)
    asked, journal = [], agent.io.store.journal
    reads = journal.events

    def events(after=0, **more):
        items = list(reads(after, **more))
        asked.append(len(items))
        return iter(items)

    monkeypatch.setattr(journal, "events", events)
    monkeypatch.setattr(
        adapting, "propose_revert", lambda store: pytest.fail("the log was compared")
    )
    for hit in agent.recall("rust build", limit=3):
        asked.clear()
        agent.feedback(hit, "success")
        assert len(asked) == 1
        assert asked[0] <= 2  # the judgement, and the recall before the first


def test_while_one_pack_was_live_nothing_is_watched(agent, clock, monkeypatch):
    monkeypatch.setattr(adapting.FallWatch, "_count", lambda *_: pytest.fail("the log was read"))
    live(agent, clock, 5)
    assert agent.upkeep.operations.check_fall() is None


def test_a_fall_of_a_whole_pack_brings_the_pack_back(agent, clock):
    live(agent, clock, 20)
    before = agent.policies.pack.hash
    agent.policies.use(
        '(pack other "Another." :inherits associative) (setting probes 2) (defpolicy recall-score '
        + WORSE
        + ")"
    )
    live(agent, clock, 12)
    decision = adapt(agent, missing="zero")
    assert (decision.slot, decision.action, decision.after) == ("pack", "proposed", before)
    assert "the pack associative of event" in decision.reason
    done = adapt(agent, missing="zero", consent=True)
    assert (done.action, agent.policies.pack.hash, done.after) == ("rolled back", before, before)


def test_a_pinned_slot_does_not_go_back(agent, clock):
    live(agent, clock, 20)
    agent.policies.install("recall-score", WORSE)
    live(agent, clock, 10)
    agent.policies.pin("recall-score")
    decision = adapt(agent, missing="zero", consent=True)
    assert decision.action == "kept"
    assert decision.evidence["why"].to_list() == ["recall-score is pinned."]
    assert agent.upkeep.operations.check_fall() is None


def test_versions_with_equal_results_are_not_distinguished_by_time(agent, clock):
    """Whatever becomes of the user: the numbers differ, and nothing that is shown does."""
    live(agent, clock, 20)
    policy = agent.policies["recall-score"].source.replace("(+ ", "(* 2 (+ ", 1)
    agent.policies.install(
        "recall-score", f"{policy})" if policy.count("(") > policy.count(")") else policy
    )
    for _ in range(12):
        clock.advance(days=1)
        for hit in agent.recall("rust build", limit=3):
            assert agent.feedback(hit, "fail").notice is None
    decision = adapt(agent, missing="zero", consent=True)
    assert decision.action != "rolled back"
    assert (
        "It would have shown the same memories in the recalls of the active version."
        in decision.evidence["why"].to_list()
    )


def test_a_drop_long_after_a_version_change_is_not_reverted(agent, clock):
    for day in range(60):
        clock.advance(days=1)
        if day == 20:
            agent.policies.install("recall-score", WORSE)
        for hit in agent.recall("rust build", limit=3):
            assert agent.feedback(hit, "success" if day < 40 else "fail").notice is None
    decision = adapt(agent, missing="zero")
    assert decision.action == "kept"
    assert any("a trend fits as well" in why for why in decision.evidence["why"])


def test_an_improvement_stays(agent, clock):
    agent.policies.install("recall-score", WORSE)
    live(agent, clock, 30)
    agent.policies.rollback("recall-score")
    assert live(agent, clock, 30) == []
    assert adapt(agent, missing="zero").action != "rolled back"


def test_the_operation_takes_names_and_the_command_line_too(run, tmp_path, clock):
    with memlab.open(tmp_path / "agent.memlab", pack="associative", clock=clock) as lab:
        remember(lab)
        live(lab, clock, 20)
        good = lab.policies["recall-score"].hash
        lab.policies.install("recall-score", WORSE)
        live(lab, clock, 12)
        step = lab.upkeep.operations.run('(adapt-policy "zero" :cluster "day" :horizon "1d")')[
            0
        ].value
        assert (step.action, step.after) == ("proposed", good)
        wide = lab.upkeep.operations.run('(adapt-policy :missing "zero" :horizon "11d")')[0].value
        assert wide.action == "kept"
    stdout = run("upkeep", "stats", "agent.memlab").stdout
    assert "on your consent, roll back" in stdout
    data = json.loads(
        run(
            "policy", "adapt", "agent.memlab", "--missing", "zero", "--horizon", "1d", "--json"
        ).stdout
    )
    assert (data["action"], data["after"]) == ("proposed", good)
    assert {row["verdict"] for row in data["evidence"]} >= {"better"}
    done = run("policy", "adapt", "agent.memlab", "--missing", "zero", "--cluster", "day", "--yes")
    assert "rolled back" in done.stdout
    assert "on your consent" not in run("upkeep", "stats", "agent.memlab").stdout


def judge(hit):
    return "success" if "rust" in hit.text else "fail"


def test_the_proposal_of_a_notice_can_be_run_with_few_recalls(agent, clock):
    live(agent, clock, 12)
    good = agent.policies["recall-score"].hash
    agent.policies.install("recall-score", WORSE)
    assert live(agent, clock, 6)
    done = agent.upkeep.operations.adapt_policy(missing="censor", consent=True)
    assert (done.action, done.judged, agent.policies["recall-score"].hash) == (
        "rolled back",
        18,
        good,
    )


@pytest.mark.parametrize("whole", [False, True])
def test_a_notice_names_the_call_that_does_it(agent, clock, whole):
    live(agent, clock, 20)
    before = agent.policies.pack.hash
    agent.policies.install("recall-score", WORSE)
    if whole:
        agent.policies.install("half-life", "(lambda () 5)")
    notice = live(agent, clock, 10)[0]
    _, call = notice.reason.split(" To roll back: ")
    assert ("recall-score" in call) != whole
    eval(call, {"lab": agent})
    assert agent.policies.pack.hash == before


def test_a_weekly_judged_drop_is_noticed_in_the_second_week(agent, clock):
    def weeks(count):
        for week in range(count):
            rows = []
            for _ in range(7):
                clock.advance(days=1)
                rows += [
                    {"memory": hit, "outcome": judge(hit)}
                    for hit in agent.recall("rust build", limit=3)
                ]
            if any(told.notice is not None for told in agent.feedback(rows)):
                return week
        return None

    assert weeks(8) is None
    agent.policies.install("recall-score", WORSE)
    assert weeks(4) == 1


def test_a_few_late_judgements_delay_nothing(agent, clock):
    live(agent, clock, 30)
    late = agent.recall("rust build", limit=3)
    live(agent, clock, 30)
    agent.policies.install("recall-score", WORSE)
    live(agent, clock, 1)
    for hit in late:
        agent.feedback(hit, "success")
    assert live(agent, clock, 5)


@pytest.mark.parametrize("a_day", [0, 24, 40])
def test_a_fall_within_a_day_or_two_is_noticed_within_40_recalls(agent, clock, a_day):
    def recalls(count):
        for number in range(count):
            clock.advance(days=1 / a_day if a_day else 0)
            rows = [
                {"memory": hit, "outcome": judge(hit)}
                for hit in agent.recall("rust build", limit=3)
            ]
            if any(told.notice is not None for told in agent.feedback(rows)):
                return number
        return None

    assert recalls(60) is None
    agent.policies.install("recall-score", WORSE)
    assert recalls(40) is not None


def test_a_policy_that_is_installed_again_is_told_of_again(agent, clock):
    live(agent, clock, 30)
    agent.policies.install("recall-score", WORSE)
    assert len(live(agent, clock, 20)) == 1
    agent.policies.rollback("recall-score")
    assert live(agent, clock, 20) == []
    agent.policies.install("recall-score", WORSE)
    assert len(live(agent, clock, 20)) == 1


def test_rewards_of_another_range_need_it_and_break_nothing(run, tmp_path, clock):
    with memlab.open(tmp_path / "agent.memlab", pack="associative", clock=clock) as lab:
        remember(lab)
        good = lab.policies["recall-score"].hash
        for day in range(40):
            if day == 25:
                lab.policies.install("recall-score", WORSE)
            clock.advance(days=1)
            for hit in lab.recall("rust build", limit=3):
                assert lab.feedback(hit, reward=5 if "rust" in hit.text else 1).notice is None
        with pytest.raises(InputError, match="reward_range"):
            lab.upkeep.operations.check_fall()
        assert lab.upkeep.operations.check_fall(reward_range=(1, 5)).after == good
        assert lab.upkeep.operations.adapt_policy(reward_range=(1, 5)).after == good
    assert "Pass the range of your rewards" in run("upkeep", "stats", "agent.memlab").stdout
    assert "roll back" in run("policy", "adapt", "agent.memlab", "--reward-range", "1", "5").stdout


def test_where_successes_alone_are_told_silence_is_said_to_be_none(agent, clock):
    for day in range(40):
        if day == 25:
            agent.policies.install("recall-score", WORSE)
        clock.advance(days=1)
        for hit in agent.recall("rust build", limit=3):
            if "rust" in hit.text:
                agent.feedback(hit, "success")
    assert agent.upkeep.operations.check_fall() is None
    assert (
        agent.upkeep.operations.check_fall(missing="zero", cluster="day", horizon="1d").action
        == "proposed"
    )


@pytest.mark.parametrize("judged", [0, 30])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [({"horizon": "soon"}, "a number and a unit"), ({"cluster": "moon"}, "no cluster")],
)
def test_arguments_that_mean_nothing_are_refused(agent, clock, judged, arguments, why):
    live(agent, clock, judged)
    with pytest.raises(MemlabError, match=why):
        agent.upkeep.operations.adapt_policy(**arguments)


def test_a_notice_converts_to_json(agent, clock):
    live(agent, clock, 20)
    agent.policies.install("recall-score", WORSE)
    live(agent, clock, 10)
    data = json.loads(json.dumps(agent.upkeep.operations.adapt_policy(missing="zero").to_dict()))
    assert (data["action"], data["slot"], data["params"]) == ("proposed", "recall-score", {})
    assert "better" in {row["verdict"] for row in data["evidence"]}
