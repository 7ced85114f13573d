"""The contradictions of the designs' own documents are noticed, and what goes together is left alone."""

import json
from pathlib import Path

import pytest

import memlab
from memlab.subjects.reading.claims import claim, conflicts, updates

PAIRS = Path(__file__).parents[2] / "experiments" / "contradictions.jsonl"


def tell_and_read(pack, clock, *texts, kind="preference", **fields):
    with memlab.open(pack=pack, clock=clock) as lab:
        for text in texts:
            lab.remember(text, kind=kind, **fields)
            clock.advance(days=1)
        return lab.memories["status"].to_list(), set(lab.edges["relation"].to_list())


def test_cascade_keeps_both_and_flags_them(clock):
    status, relations = tell_and_read(
        "cascade", clock, "The user likes dark mode", "The user does not like dark mode"
    )
    assert (status, relations) == (["active", "active"], {"contradicts"})


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("The user likes dark mode", "The user does not like dark mode", "preference"),
        ("User is a student", "User is a software engineer", "personal"),
        ("User prefers coffee", "User now prefers tea over coffee", "preference"),
        ("User loves running", "User hates running", "preference"),
    ],
)
def test_companion_keeps_what_the_user_said_last(clock, old, new, kind):
    status, relations = tell_and_read("companion", clock, old, new, kind=kind)
    assert status == ["superseded", "active"]
    assert "supersedes" in relations


def test_workbench_deprecates_the_old_convention_and_says_so(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        lab.remember("Use tabs for indentation", kind="convention")
        why = (
            lab.remember([{"text": "Use spaces for indentation", "kind": "convention"}])
            .outcomes["why"]
            .to_list()
        )
        assert "Updated: tabs -> spaces" in why
        assert lab.memories["status"].to_list() == ["superseded", "active"]


@pytest.mark.parametrize("pack", ["cascade", "companion", "workbench", "factgraph"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The user likes tea", "The user likes coffee"),
        ("The user likes dark mode", "The user's brother does not like dark mode"),
        ("The user used to smoke in college", "The user does not smoke"),
        ("The user has two children", "The user's children go to school in Leeds"),
    ],
)
def test_compatible_statements_stay_together(clock, pack, first, second):
    status, relations = tell_and_read(pack, clock, first, second)
    assert len(set(status)) == 1
    assert not relations & {"contradicts", "supersedes", "updates"}


def test_on_the_pairs_for_development():
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["split"] == "development"]
    claims = [(claim(row["new"]), claim(row["old"])) for row in rows]
    results = [conflicts(*pair) or updates(*pair) for pair in claims]
    right = [row["label"] in ("contradiction", "update") for row in rows]
    hits = sum(a and b for a, b in zip(results, right, strict=True))
    assert hits / sum(results) >= 0.9
    assert hits / sum(right) >= 0.8


@pytest.mark.parametrize(
    "text",
    ["", "Hi", "a" * 5000, "return f(x);", "'s 's 's", "\u202e\u202e not no never", "no " * 16],
)
def test_a_text_that_is_no_statement_says_nothing_and_raises_nothing(text):
    one, other = claim(text), claim("The user does not like tea")
    assert conflicts(one, other) in (False, True)
    assert not conflicts(one, None)
    assert not updates(None, one)


def test_an_event_in_a_persons_life_ends_no_other_fact_about_them():
    def ends(new, old):
        return updates(claim(new), claim(old))

    assert not ends("Farah found a wallet in the park", "Farah works at the museum")
    assert not ends("Farah lives in Berlin now", "Farah has a cold and lost her voice")
    assert not ends("Chiara beat me at chess again", "Walked along the river with Chiara")
    assert ends("Farah lives in Berlin now", "Farah lives in Cairo")
    assert ends("Standup is now at 9:30", "Standup is at 10:00")
