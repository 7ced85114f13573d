"""Gates: each closes on what it names, says its figure and threshold, and what would help."""

import re
from dataclasses import replace

import numpy as np
import pytest

from memlab.science.evaluation import GATES
from memlab.science.evaluation._tests import (
    Balance,
    Facts,
    effective_count,
    format_count,
    gates,
    independence_p,
    recalls_to_open,
)
from memlab.science.evaluation.parts import untested_sentence

NAN = float("nan")
SOUND = Facts(
    unknown=0.0,
    clusters=8,
    recalls=1000,
    probes=300,
    effective=120.0,
    independence=0.4,
    balance=0.4,
    missing=0.4,
    position=0.4,
    redundancy=0.4,
)


def gates_of(**changed):
    return {gate.name: gate for gate in gates(replace(SOUND, **changed))}


def test_a_sound_log_opens_every_gate():
    assert list(gates_of()) == list(GATES)
    assert all(gate.open for gate in gates_of().values())


TESTED = ("independence", "balance", "influence", "silence", "position", "redundancy")


@pytest.mark.parametrize("name", TESTED)
def test_an_untested_gate_withholds_nothing_and_is_not_open(name):
    fact = {"influence": "effective", "silence": "missing"}.get(name, name)
    gate = gates_of(**{fact: NAN})[name]
    assert (gate.state, gate.shown, gate.open, gate.closed, gate.more) == (
        "untested",
        "untested",
        False,
        False,
        0,
    )
    assert "not tested" in str(gate)
    assert untested_sentence([gate]) == f"Untested: {gate.title}."


def test_a_gate_that_is_not_needed_is_neither_open_nor_untested():
    unasked = dict.fromkeys(
        ("independence", "balance", "missing", "position", "redundancy", "probes", "effective")
    )
    states = {name: gate.state for name, gate in gates_of(**unasked).items()}
    assert states == dict.fromkeys(GATES, "not needed") | {
        "propensities": "open",
        "clusters": "open",
    }
    assert untested_sentence(list(gates_of(**unasked).values())) == ""


@pytest.mark.parametrize(
    ("name", "changed", "says"),
    [
        ("propensities", {"unknown": 0.2}, "Log the probability"),
        ("clusters", {"clusters": 1}, "a column of the decisions"),
        ("independence", {"independence": 0.009}, "column cluster"),
        ("balance", {"balance": 0.0009}, "Fix the logging"),
        ("answered probes", {"probes": 8}, "Log about 1,500 more recalls at this probe rate"),
        ("answered probes", {"probes": 0}, "lab.challenge"),
        ("influence", {"effective": 3.0}, "shows probes where the policies differ"),
        ("silence", {"missing": 0.0001}, 'missing="inverse"'),
        ("position", {"position": 0.0001}, "random positions"),
        ("redundancy", {"redundancy": 0.0001}, "whole result lists"),
    ],
)
def test_a_single_fault_closes_a_single_gate(name, changed, says):
    closed = [gate for gate in gates_of(**changed).values() if gate.closed]
    assert [gate.name for gate in closed] == [name]
    assert says in closed[0].advice
    assert re.match(r"[A-Z0-9].+[.;)] .+\.", str(closed[0]))


def test_recalls_are_asked_for_only_where_they_would_do():
    assert recalls_to_open(list(gates_of(probes=8).values())) == 1500
    assert recalls_to_open(list(gates_of(probes=8, effective=2.0).values())) == 1500
    assert recalls_to_open(list(gates_of(probes=8, balance=0.0001).values())) is None
    assert recalls_to_open(list(gates_of().values())) == 0
    assert gates_of(effective=1.0)["influence"].more == 3000


def test_equal_parts_count_as_many_and_one_great_part_as_one():
    assert effective_count(np.array([2.0, -2.0, 2.0])) == pytest.approx(3)
    assert effective_count(np.array([100.0, 0.1, 0.1])) == pytest.approx(1, abs=0.01)
    assert np.isnan(effective_count(np.zeros(4)))


@pytest.mark.parametrize(
    ("count", "text"), [(0.2, "1"), (7.1, "8"), (99, "99"), (1234, "1,300"), (45_678, "46,000")]
)
def test_extrapolations_have_two_digits(count, text):
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("logged", "right"),
    [(1 / 7, True), (float(np.float32(1 / 7)), True), (0.143, True), (0.2, False)],
)
def test_a_probe_in_every_recall_is_no_randomisation_unless_logged(logged, right):
    """The number of probes never varies: rounding of the propensities is nothing, another number is wrong."""
    dice = np.random.default_rng(0)
    recall = np.repeat(np.arange(200), 7)
    shown = (np.arange(7)[None, :] == dice.integers(0, 7, 200)[:, None]).ravel()
    features = np.column_stack([np.ones(1400), np.tile(np.arange(7) / 7, 200)])
    p = Balance(features[:, :1], shown, np.full(1400, logged), recall).p(features[:, 1:])
    assert p >= 0.001 if right else p == 0


@pytest.mark.parametrize(("wrong", "right"), [(1.0, True), (1.4, False)])
def test_propensities_given_the_threshold_of_a_draw_are_tested_as_such(wrong, right):
    """Three probes of twenty by Gumbel top-k, whose propensity follows from the first that was not drawn."""
    dice = np.random.default_rng(3)
    shares = 0.8 / 20 + 0.2 * np.exp(-np.arange(20) / 4) / np.exp(-np.arange(20) / 4).sum()
    keys = np.log(shares) + dice.gumbel(size=(400, 20))
    threshold = -np.sort(-keys, axis=1)[:, 3:4]
    shown = (keys > threshold) & (dice.random((400, 1)) < 0.6)
    propensity = 0.6 * -np.expm1(-np.exp(np.log(shares) - threshold)) * wrong
    features = np.column_stack([np.ones(8000), np.tile(np.arange(20) / 20, 400)])
    usual = np.tile(propensity.mean(axis=0), 400)
    drawn = shown.ravel(), propensity.ravel(), np.repeat(np.arange(400), 20), usual
    p = Balance(features[:, :1], *drawn).p(features[:, 1:])
    assert (p >= 0.001) == right


def test_recalls_that_earn_alike_weakly_and_for_long_are_not_independent():
    """Thirty users of twenty recalls, whose moods show in ten recalls before they show in one."""
    dice = np.random.default_rng(5)
    noise = dice.normal(size=(100, 600))
    moods = np.repeat(dice.normal(0, 0.4, (100, 30)), 20, axis=1)
    # .70 by the recall before alone
    assert np.mean([independence_p(earned) < 0.01 for earned in moods + noise]) > 0.9
    assert np.mean([independence_p(earned) < 0.01 for earned in noise]) <= 0.05
