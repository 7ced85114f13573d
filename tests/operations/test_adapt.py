"""``(adapt-policy)``: back where a version does worse, forward where another does better on what was held out."""

import random

import pytest

import memlab
from memlab.operations import adapt

PACK = """(pack mine "Scores by activation; importance counts little."  :inherits associative)
(setting limit 3) (setting probe-rate 1) (setting probes 3) (setting probe-depth 9) (setting pool 12)
(defpolicy recall-score [activation importance] (+ (* 0.6 activation) (* 0.15 importance)))
"""
WORDS = ["goat", "sea", "bakery", "tabs", "spaces", "deploy", "review"]


@pytest.fixture
def agent(trigrams, clock):
    """A lab whose user finds important memories helpful, and no others."""
    with memlab.open(embedder=trigrams, clock=clock, pack=PACK) as lab:
        chance = random.Random(0)
        texts = [f"{chance.choice(WORDS)} and {chance.choice(WORDS)} {n}" for n in range(12)]
        lab.remember_many([{"text": t, "importance": n % 2} for n, t in enumerate(texts)])
        lab.graph.link_waiting()  # what is linked in the background decides what is probed
        yield lab


def live(lab, clock, recalls, *, helps=None, seed=1):
    chance = random.Random(seed)
    importance = lab.memories["importance"].to_list()
    for _ in range(recalls):
        clock.advance(hours=1)
        for hit in lab.recall(f"{chance.choice(WORDS)} {chance.choice(WORDS)}"):
            helped = importance[hit.id - 1] > 0.5 if helps is None else helps(hit, chance)
            lab.feedback(hit, "success" if helped else "fail")


def test_a_log_that_is_too_small_changes_nothing_and_says_so(agent, clock):
    before = agent.pack.hash
    adapted = adapt(agent)
    assert (adapted.action, adapted.judged) == ("kept", 0)
    assert "0 recalls were judged, and 20 is the minimum" in adapted.reason
    live(agent, clock, 10)
    assert adapt(agent).action == "kept"
    assert agent.pack.hash == before


def test_what_does_better_where_the_search_has_not_looked_is_installed(agent, clock):
    live(agent, clock, 60)
    before = agent.policies["recall-score"].hash
    adapted = agent.operations.run("(adapt-policy)")[0].value
    assert adapted.action == "installed"
    assert adapted.gain[1] > 0  # the whole interval, on recalls that were held out
    params = dict(adapted.params)
    assert params["w2"] / params["w1"] > 0.15 / 0.6  # importance counts for more
    assert (adapted.before, adapted.after) == (before, agent.policies["recall-score"].hash)
    assert agent.policies.history("recall-score")["reason"][-1].startswith("adapt-policy: Fitting pays")
    agent.policies.rollback("recall-score")
    assert agent.policies["recall-score"].hash == before


def test_where_nothing_is_better_nothing_is_installed(agent, clock):
    live(agent, clock, 40, helps=lambda hit, chance: chance.random() < 0.5)
    before = agent.pack.hash
    adapted = adapt(agent)
    assert adapted.action == "kept"
    assert agent.pack.hash == before
    assert "not separated" in adapted.reason or "harm" in adapted.reason


def test_a_version_that_does_worse_is_taken_back(agent, clock):
    live(agent, clock, 25)
    good = agent.policies["recall-score"].hash
    agent.policies.install("recall-score", "(fn [importance] (- 1 importance))", reason="a bad idea")
    live(agent, clock, 25)
    adapted = adapt(agent)
    assert adapted.action == "rolled back"
    assert adapted.after == good
    assert agent.policies["recall-score"].hash == good
    assert "succeeds at 0." in adapted.reason
    assert "judgements" in adapted.reason
    assert agent.policies.history("recall-score")["action"].to_list()[-1] == "rollback"
    # The version that came back has not been judged as such yet: nothing is taken back twice.
    assert adapt(agent).action != "rolled back"


def test_a_pinned_slot_is_left_alone(agent, clock):
    live(agent, clock, 25)
    agent.policies.install("recall-score", "(fn [importance] (- 1 importance))")
    live(agent, clock, 25)
    agent.policies.pin("recall-score")
    adapted = adapt(agent)
    assert (adapted.action, adapted.reason) == ("kept", "the slot is pinned")


def test_a_policy_without_numbers_has_nothing_to_search(agent, clock):
    agent.policies.install("recall-score", "(fn [activation] activation)")
    live(agent, clock, 25)
    assert adapt(agent).reason == "the policy has no number that could be another one"


def test_it_is_the_same_every_time(trigrams):
    def once():
        clock = memlab.ManualClock("2026-03-01")
        with memlab.open(embedder=trigrams, clock=clock, pack=PACK) as lab:
            lab.remember_many([{"text": f"{w} {n}", "importance": n / 7} for n, w in enumerate(WORDS)])
            lab.graph.link_waiting()
            live(lab, clock, 25)
            return repr(adapt(lab))

    assert once() == once()
