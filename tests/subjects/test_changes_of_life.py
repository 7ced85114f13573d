"""What people say when something in their life ends or becomes something else, and which facts are over then."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.kernel.english import words_of
from memlab.subjects.extraction.reading import read_facts
from memlab.subjects.facts.lifecycle import Triple, ends_fact

CHANGES = [
    ("I work as a nurse.", "I started a new job as a teacher."),
    ("I'm a nurse.", "I'm a teacher now."),
    ("I work at Acme.", "I got a new job at Globex last week."),
    ("I'm 34 years old.", "I turned 35 yesterday."),
    ("My favourite colour is blue.", "My favourite colour is green now."),
    ("I speak Spanish.", "I gave up Spanish."),
    ("I'm learning Spanish.", "I've given up on learning Spanish."),
    ("I'm single.", "We just got engaged."),
    ("I have a dog called Rex.", "My dog died last week."),
    ("I'm married to Tom.", "Tom and I got divorced."),
    ("I live in Rome.", "I moved to Oslo."),
    ("I work at Acme.", "I quit my job."),
    ("My girlfriend Mia is a nurse.", "Mia and I broke up."),
    ("I eat meat.", "I became vegetarian."),
    ("I'm vegetarian.", "I eat meat again."),
    ("I drive a Golf.", "I sold my car."),
    ("I use Vim.", "I switched from Vim to Emacs."),
    ("I study biology.", "I graduated last month."),
    ("I'm a teacher.", "I retired in May."),
    ("I play the piano.", "I don't play the piano anymore."),
    ("I drink coffee.", "I stopped drinking coffee."),
    ("I work at Acme.", "I no longer work at Acme."),
    ("I live in Leeds.", "We moved to Cardiff in May."),
    ("I eat meat.", "I've become a vegan."),
    ("I'm a nurse.", "I've just become a teacher."),
    ("My boss is Karl.", "My new boss is Lena."),
    ("I work at Acme.", "I started at Globex in March 2026."),
]
CONTROLS = [
    ("I have two cats.", "I lost my job."),
    ("I like tea.", "I like coffee."),
    ("I speak French.", "I gave up Spanish."),
    ("I drive a van.", "I sold my bike."),
    ("I'm a nurse.", "I'm a mother."),
    ("I have a dog.", "My cat died."),
    ("I'm married.", "My sister got divorced."),
    ("I work at Acme.", "I quit smoking."),
    ("I use Vim.", "I switched from Windows to Linux."),
    ("I eat meat.", "I gave up sugar."),
    ("I'm a nurse.", "I become a teacher when I finish."),
    ("My friend is Karl.", "My new friend is Lena."),
    ("My boss is Karl.", "My boss is French."),
]


def read_triples(text):
    return [Triple(fact.subject, fact.predicate, fact.value) for fact in read_facts(text)]


@pytest.mark.long
@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize("late", [False, True], ids=["in order", "told late"])
def test_a_change_ends_what_was_so_before_in_whatever_order_it_is_told(clock, before, after, late):
    messages = [
        {"role": "user", "content": before, "at": "2026-01-01"},
        {"role": "user", "content": after, "at": "2026-05-01"},
    ]
    with memlab.open(clock=clock) as lab:
        for message in reversed(messages) if late else messages:
            lab.agents.commit(lab.agents.extract([message]))
        facts = lab.facts.frame()
        old, new = (facts.filter(facts["valid_from"].dt.month() == month) for month in (1, 5))
        assert "superseded" in old["status"].to_list()
        assert set(new["status"].to_list()) == {"active"}
        over = old.filter(old["status"] == "superseded").row(0, named=True)
        assert over["superseded_by"] in new["id"].to_list()
        assert over["valid_until"] == new["valid_from"][0]
        assert over["id"] in lab.facts.frame(at="2026-03-01")["id"].to_list()
        assert over["id"] not in lab.facts.frame(at="2026-06-01")["id"].to_list()


@pytest.mark.parametrize(("before", "after"), CONTROLS)
def test_statements_on_other_subjects_end_nothing(before, after):
    assert not any(
        ends_fact(new, old) for new in read_triples(after) for old in read_triples(before)
    )


@given(st.sampled_from(CHANGES), st.sampled_from(CHANGES))
def test_nothing_ends_itself_and_the_answer_needs_nothing_but_the_two(first, second):
    for new in read_triples(first[1]):
        assert not ends_fact(new, new)
        for old in read_triples(second[0]):
            assert ends_fact(new, old) == ends_fact(
                Triple(new.subject, new.predicate, new.value), old
            )


HISTORY = [
    ("2026-01-01", "I live in Rome."),
    ("2026-01-05", "I'm a nurse."),
    ("2026-02-01", "I drive a Golf."),
    ("2026-02-10", "I speak Spanish."),
    ("2026-03-01", "I moved to Oslo."),
    ("2026-03-20", "I gave up Spanish."),
    ("2026-04-01", "I started a new job as a teacher."),
    ("2026-04-15", "I sold my car."),
    ("2026-05-01", "I moved to Bergen."),
    ("2026-05-10", "I'm single."),
    ("2026-06-01", "I got engaged to Sam."),
]


@pytest.mark.long
@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_a_history_gives_the_same_facts_in_whatever_order_it_is_told(clock, count):
    draw = random.Random("orders of one history")
    unique = set()
    for _ in range(count):
        order = draw.sample(HISTORY, len(HISTORY))
        with memlab.open(clock=clock) as lab:
            for at, text in order:
                lab.agents.commit(lab.agents.extract([{"role": "user", "content": text, "at": at}]))
            days = [f"2026-{month:02}-{day:02}" for month in range(1, 7) for day in (2, 16)]
            unique.add(
                tuple(tuple(sorted(lab.facts.frame(at=day)["text"].to_list())) for day in days)
            )
    assert len(unique) == 1
    assert "The user lives in Bergen" in next(iter(unique))[-1]


def test_a_doubtful_fact_ends_nothing_and_is_flagged(clock):
    with memlab.open(clock=clock) as lab:
        lab.agents.commit(
            lab.agents.extract([{"role": "user", "content": "I live in Rome.", "at": "2026-01-01"}])
        )
        doubt = [{"role": "user", "content": "I live in Oslo, I guess.", "at": "2026-02-01"}]
        lab.agents.commit(lab.agents.extract(doubt))
        facts = lab.facts.frame(predicate="lives-in")
        assert set(facts["status"].to_list()) == {"active"}
        assert "contradicts" in lab.edges["relation"].to_list()


def test_an_assistants_statement_about_a_user_is_staged_and_ends_nothing(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        lab.agents.commit(
            lab.agents.extract([{"role": "user", "content": "I live in Rome.", "at": "2026-01-01"}])
        )
        told = [{"role": "assistant", "content": "The user lives in Bonn.", "at": "2026-02-01"}]
        lab.agents.commit(lab.agents.extract(told))
        facts = dict(lab.facts.frame().select("text", "status").iter_rows())
        assert facts == {"The user lives in Rome": "active", "The user lives in Bonn": "staged"}


LABELLED = [
    Path(__file__).parents[2] / "experiments" / name
    for name in ("messages.jsonl", "properties.jsonl")
]
WORDS = """I we my our sister Ada is am live lives in Rome , . ? ; : " and but no longer not anymore sold gave up the a
nurse car 34 quit job died broke with got engaged to Tom now like love tea favourite colour green I've just switched
from Vim book never always yesterday"""


def stands_in_its_quotation(message, fact):
    # "my" as another says it
    own = {"their", "theirs", "them", "themselves", "team's", "team", "the"}
    unique = set(words_of(message[fact.start : fact.stop]))
    return set(words_of(fact.value)) - own <= unique


@pytest.mark.parametrize("labelled", LABELLED, ids=lambda path: path.stem)
def test_the_value_of_every_labelled_fact_is_in_its_quotation(labelled):
    for line in labelled.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for fact in read_facts(row["text"], row["role"]):
            assert stands_in_its_quotation(row["text"], fact), (row["text"], fact)


@given(st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=25).map(" ".join))
def test_the_value_of_every_fact_is_in_its_quotation(text):
    for fact in read_facts(text):
        assert stands_in_its_quotation(text, fact), fact
