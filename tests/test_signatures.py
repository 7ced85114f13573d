"""Whatever a public call is given, it answers from the error tree, and a lab that refused is as it was.

A hundred and twenty cases, seeded, and two thousand with ``pytest -m slow``; all of them are
``tests/campaigns/fuzz_signatures.py``. A new public callable fails here until
``tests/campaigns/fuzzing/examples.py`` has an example of it.
"""

import asyncio
import importlib.util
import inspect

import pytest

import memlab
from tests.campaigns.fuzzing.callables import parameters, public_callables
from tests.campaigns.fuzzing.examples import EXAMPLES, Desk
from tests.campaigns.fuzzing.signatures import Case, fuzz, sampled

SEED = 20261122
REFUSED = {
    "LabConsolidation.undo",
    "LabIndex.rebuild",
    "Experiment.read",
    "bench_lab",
    "bench_wanted",
    "correct_evidence",
    "read_beam",
    "read_lmeb",
} | {
    "read_locomo",
    "read_longmemeval",
    "read_questions",
    "LanguageModel.ask",
    "Seam.projection",
    "compare_periods",
    "Seam.write",
    "decrypt",
    "rekey",
}
if importlib.util.find_spec("sqlcipher3") is None:
    REFUSED.add("encrypt")
"""What a small lab cannot do: their examples are refused as well."""
CHECKED_WHERE_THEY_FAIL = {
    *(
        "Pack.count",
        "Pack.number",
        "Pack.policy",
        "Pack.unit",
        "Policy.arrays",
        "Policy.row",
        "Policy.updates",
        "extend",
    )
}
"""Asked many times a recall: their arguments are looked at only once something has failed."""


@pytest.mark.long
def test_every_public_callable_has_an_example():
    assert sorted(EXAMPLES) == sorted(public_callables())


@pytest.mark.long
def test_every_public_callable_checks_its_arguments():
    """By ``memlab.kernel.base.arguments.checked``, which marks it."""
    unchecked = {
        name for name, call in public_callables().items() if not getattr(call, "__checked__", False)
    }
    assert unchecked == CHECKED_WHERE_THEY_FAIL | {"Verdict"}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_parameter_has_an_annotation(name):
    call = public_callables()[name]
    assert set(parameters(call)) <= set(call.__annotations__)


@pytest.mark.long
def test_the_examples_are_right():
    refused = set()
    for name, example in EXAMPLES.items():
        desk = Desk()
        call, given = example(desk)
        try:
            answer = call(**given)
            end = getattr(answer, "stop", None) or getattr(answer, "close", None)
            if callable(end):
                ended = end()
                if inspect.isawaitable(ended):
                    asyncio.run(ended)
        except memlab.MemlabError:
            refused.add(name)
        desk.close()
    assert refused == REFUSED


@pytest.mark.long
@pytest.mark.parametrize("cases", [120, pytest.param(2_000, marks=pytest.mark.slow)])
def test_no_call_answers_junk_with_a_raw_error_or_takes_nonsense(cases):
    report = fuzz(sampled(cases, SEED))
    assert report.calls == cases
    assert not report.raw, str(report)
    assert not report.nonsense, str(report)
    assert not report.changed, str(report)


NONSENSE = [
    Case("Lab.recall", "project", "1.0"),
    Case("Lab.recall", "log", "x"),
    Case("LabAgents.turns", "limit", "-1"),
    Case("LabAgents.turns", "where", "x"),
    Case("open", "reembed", "x"),
    Case("open", "read_only", "1"),
    Case("LabFacts.frame", "at", "10**30"),
    Case("ManualClock", "start", "10**30"),
    Case("ManualClock.advance", "days", "1e308"),
    Case("Lab.purge", "memory", "{}"),
    Case("LabAgents.observe", "unknown", "x"),
    Case("LabAgents.observe", "importance", "nan"),
    Case("LabAgents.observe", "linking", "x"),
]


@pytest.mark.long
@pytest.mark.parametrize("case", NONSENSE, ids=str)
def test_nonsense_is_refused(case):
    assert fuzz([case]).refused == 1
