"""Everything that a person may do to a lab, each with arguments drawn from the dice that it is given."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

import memlab
from memlab.kernel.schema import FIELDS, OUTCOMES
from tests.campaigns.living.words import Words, letters

__all__ = ["VERBS", "Verb"]

Verb = Callable[[memlab.Lab, random.Random, Words, Path], Any]
"""Called with the lab, the dice, the vocabulary, and a folder for files."""

VERBS: dict[str, tuple[float, Verb]] = {}
"""By name: how often it is drawn, relative to others, and what it does."""

_POLICIES = (
    "(fn [similarity] similarity)",
    "(fn [lexical recency] (+ lexical recency))",
    "(fn [importance] importance)",
)
_PACKS = ("memlab", "associative", "cascade", "companion", "factgraph", "workbench")


def verb(weight: float) -> Callable[[Verb], Verb]:
    def named(function: Verb) -> Verb:
        VERBS[function.__name__] = (weight, function)
        return function

    return named


def _id(lab: memlab.Lab, dice: random.Random) -> int:
    return dice.randint(1, max(1, len(lab)))


def _ids(lab: memlab.Lab, dice: random.Random) -> list[int]:
    return [_id(lab, dice) for _ in range(dice.randint(1, 4))]


def _fields(dice: random.Random, words: Words) -> dict[str, Any]:
    """Return some fields of a memory, of every type of storage."""
    word = lambda: words.one(dice)  # noqa: E731
    every = {
        "tags": lambda: words.some(dice),
        "project": lambda: dice.choice(words.all[:2]),
        "session": lambda: dice.choice(words.all[:3]),
        "speaker": word,
        "branch": word,
        "creator": word,
        "subject": word,
        "predicate": lambda: dice.choice(["lives-in", "likes", word()]),
        "object": word,
        "value": word,
        "title": word,
        "season": word,
        "files": lambda: words.some(dice),
        "triggers": lambda: words.some(dice),
        "steps": lambda: words.some(dice),
        "summary": lambda: words.text(dice),
        "context": lambda: words.text(dice),
        "reason": lambda: words.text(dice),
        "ref": word,
        "kind": lambda: dice.choice(memlab.KINDS),
        "importance": dice.random,
        "ttl_days": lambda: dice.uniform(0, 40),
        "valid_until": lambda: "2026-03-09",
        "visibility": lambda: dice.choice(["private", "team", "project"]),
        "operations": lambda: f'(remember "{words.text(dice)}")',
    }
    assert every.keys() <= set(FIELDS)
    return {
        name: every[name]() for name in dice.sample(sorted(every), dice.choice([0, 0, 1, 2, 4, 8]))
    }


# -- remembering ------------------------------------------------------------------------------------------------------


@verb(8)
def remember(lab, dice, words, folder):
    return lab.remember(words.text(dice), chain=dice.random() < 0.3, **_fields(dice, words))


@verb(3)
def remember_many(lab, dice, words, folder):
    rows = [{"text": words.text(dice), **_fields(dice, words)} for _ in range(dice.randint(0, 8))]
    done = lab.remember(
        rows, chain=dice.random() < 0.3, linking=dice.choice([None, "off", "now", "later"])
    )
    lab.graph.link_waiting()
    return done


@verb(1)
def hear(lab, dice, words, folder):
    return lab.agents.observe(
        f"I prefer {words.text(dice)}", role=dice.choice(["user", "assistant"])
    )


@verb(2)
def link(lab, dice, words, folder):
    relation = dice.choice(["relates-to", "supersedes", "derived-from", "next", "contradicts"])
    lab.graph.link(_id(lab, dice), _id(lab, dice), relation, weight=dice.random())


# -- facts and entities -----------------------------------------------------------------------------------------------


@verb(5)
def fact(lab, dice, words, folder):
    what = {dice.choice(["value", "object"]): words.one(dice)}
    return lab.facts.add(
        words.one(dice), dice.choice(["lives-in", "likes", words.one(dice)]), **what
    )


@verb(1)
def retract(lab, dice, words, folder):
    lab.facts.retract(_id(lab, dice), reason=words.text(dice))


@verb(3)
def entity(lab, dice, words, folder):
    kind = dice.choice([None, "person", "project"])
    return lab.facts.entities.declare(
        words.one(dice), type=kind, aliases=words.some(dice) if dice.random() < 0.5 else ()
    )


def _name(lab: memlab.Lab, dice: random.Random, words: Words) -> str:
    names = lab.facts.entities.frame()["name"].to_list()
    return dice.choice(names) if names and dice.random() < 0.8 else words.one(dice)


@verb(2)
def merge_entities(lab, dice, words, folder):
    return lab.facts.entities.merge(_name(lab, dice, words), _name(lab, dice, words))


@verb(2)
def split_entity(lab, dice, words, folder):
    name = _name(lab, dice, words)
    if dice.random() < 0.5:
        return lab.facts.entities.split(name)
    facts = lab.facts.frame(subject=name)["id"].to_list()
    return lab.facts.entities.split(name, words.one(dice), facts=facts[: dice.randint(0, 2)])


# -- correcting -------------------------------------------------------------------------------------------------------


@verb(2)
def edit(lab, dice, words, folder):
    text = words.text(dice) if dice.random() < 0.5 else None
    fields = _fields(dice, words)
    fields.update({name: None for name in fields if dice.random() < 0.2})
    return lab.edit(_id(lab, dice), text=text, **fields)


@verb(1)
def deprecate(lab, dice, words, folder):
    return lab.forget(_ids(lab, dice), how="deprecate", reason=words.text(dice))


@verb(1)
def forget(lab, dice, words, folder):
    return lab.forget(_ids(lab, dice))


@verb(1)
def delete(lab, dice, words, folder):
    return lab.forget(**_which(lab, dice, words), how="delete")


@verb(1)
def restore(lab, dice, words, folder):
    return lab.restore(**_which(lab, dice, words))


@verb(4)
def purge(lab, dice, words, folder):
    if dice.random() < 0.15:
        return lab.purge(overdue=True)
    return lab.purge(**_which(lab, dice, words), reason=dice.choice(["", "asked for"]))


def _which(lab: memlab.Lab, dice: random.Random, words: Words) -> dict[str, Any]:
    return (
        {"project": dice.choice(words.all[:2])}
        if dice.random() < 0.15
        else {"memory": _ids(lab, dice)}
    )


# -- using ------------------------------------------------------------------------------------------------------------


@verb(3)
def recall(lab, dice, words, folder):
    scope = {"project": dice.choice(words.all[:2])} if dice.random() < 0.3 else {}
    if dice.random() < 0.2:
        scope["session"] = dice.choice(words.all[:3])
    if dice.random() < 0.2:
        scope["where"] = pl.col("subject") != words.one(dice)
    return lab.recall(words.text(dice), **scope)


@verb(3)
def feedback(lab, dice, words, folder):
    hits = list(lab.recall(words.text(dice)))
    target = dice.choice(hits) if hits else _id(lab, dice)
    agent = words.one(dice) if dice.random() < 0.4 else None
    return lab.feedback(
        target, dice.choice(OUTCOMES), agent=agent, source=dice.choice(["user", words.one(dice)])
    )


@verb(2)
def verify(lab, dice, words, folder):
    hits = lab.recall(words.text(dice))
    return lab.agents.verify(hits, dice.sample(list(hits.ids), dice.randint(0, len(hits.ids))))


@verb(1)
def close_gap(lab, dice, words, folder):
    gaps = lab.upkeep.review.gaps().filter(pl.col("closed").is_null())["gap"].to_list()
    if gaps:
        lab.upkeep.review.close_gap(dice.choice(gaps), words.text(dice))


@verb(1)
def conversation(lab, dice, words, folder):
    return lab.agents.conversation(words.one(dice))


@verb(1)
def agent(lab, dice, words, folder):
    agent = lab.agents(
        dice.choice(["tutor", "coach"]),
        project=dice.choice([None, words.all[0]]),
        session=words.all[0],
    )
    fields = {
        name: value
        for name, value in _fields(dice, words).items()
        if name not in ("creator", "project")
    }
    result = agent.remember(words.text(dice), **fields)
    hits = agent.recall(words.text(dice))
    if hits and dice.random() < 0.5:
        agent.feedback(hits[0], dice.choice(OUTCOMES))
    return (
        agent.forget(result)
        if dice.random() < 0.3
        else agent.edit(result, importance=dice.random())
    )


@verb(0.5)
def switch(lab, dice, words, folder):
    """Switch memory off and on again, so that a life continues; sometimes leave a project off for a while."""
    project = dice.choice([None, words.all[0], words.all[1]])
    lab.agents.switch_off(project, reason=words.text(dice).strip())
    lab.recall(words.text(dice))
    for name in (project, None) if dice.random() < 0.8 else (None,):
        lab.agents.switch_on(name)


@verb(0.5)
def turns(lab, dice, words, folder):
    with lab.agents.turns() as begun:
        begun.offer(words.text(dice))
        begun.wait()


@verb(0.5)
def run(lab, dice, words, folder):
    return lab.upkeep.operations.run(
        f'(remember "{words.text(dice)}") (recall "{words.one(dice)}" 2)'
    )


# -- upkeep -----------------------------------------------------------------------------------------------------------


@verb(2)
def maintain(lab, dice, words, folder):
    return lab.upkeep.maintain(progress=False)


@verb(2)
def cluster(lab, dice, words, folder):
    return lab.graph.clusters.find(min_size=2)


@verb(1)
def refine(lab, dice, words, folder):
    return lab.graph.clusters.refine()


@verb(2)
def consolidate(lab, dice, words, folder):
    by = dice.choice(["clusters", "communities"])
    return lab.upkeep.consolidation.run(older_than_days=0, keep=dice.randint(0, 2), by=by)


@verb(1)
def unconsolidate(lab, dice, words, folder):
    result = lab.upkeep.consolidation.frame()["memory_id"].to_list()
    return lab.upkeep.consolidation.undo(dice.choice(result) if result else _id(lab, dice))


# -- policies ---------------------------------------------------------------------------------------------------------


@verb(1)
def use(lab, dice, words, folder):
    return lab.policies.use(dice.choice(_PACKS), reason=words.text(dice))


@verb(1)
def install(lab, dice, words, folder):
    return lab.policies.install("recall-score", dice.choice(_POLICIES), reason=words.text(dice))


@verb(0.5)
def rollback(lab, dice, words, folder):
    return lab.policies.rollback(dice.choice(["recall-score", None]))


@verb(0.5)
def pin(lab, dice, words, folder):
    return (
        lab.policies.unpin("recall-score")
        if lab.policies.pins
        else lab.policies.pin("recall-score")
    )


@verb(0.5)
def decide_exploration(lab, dice, words, folder):
    return lab.policies.explore(dice.random() < 0.5, reason=words.text(dice))


# -- moving, looking back ---------------------------------------------------------------------------------------------


@verb(1)
def load(lab, dice, words, folder):
    """Load a small lab of the same words, purged, merged and clustered, into this one."""
    target = folder / f"other.{dice.choice(['jsonl', 'parquet'])}"
    with memlab.open(embedder=letters, clock=memlab.ManualClock("2026-02-01")) as other:
        for _ in range(dice.randint(1, 12)):
            name = dice.choice(
                [
                    *[remember] * 3,
                    fact,
                    entity,
                    merge_entities,
                    cluster,
                    purge,
                    recall,
                    conversation,
                ]
            )
            try:
                name(other, dice, words, folder)
            except memlab.MemlabError:
                continue
        other.io.export(target, overwrite=True)
    return lab.load(target, project=dice.choice([None, None, words.all[0]]))


@verb(0.5)
def load_itself(lab, dice, words, folder):
    """Load the lab's own export, which must add nothing, whatever was purged since."""
    return lab.load(lab.io.export(folder / "own.jsonl", overwrite=True))


@verb(1)
def snapshot(lab, dice, words, folder):
    lab.io.snapshot()


@verb(1)
def backup(lab, dice, words, folder):
    return lab.io.backup()


@verb(0.5)
def at(lab, dice, words, folder):
    with lab.at(event=dice.randint(1, lab.io.store.journal.head), progress=False) as past:
        past.recall(words.text(dice))
        return past.memories


@verb(0.2)
def replay(lab, dice, words, folder):
    return memlab.replay(lab, dice.choice(_PACKS), progress=False)


@verb(0.5)
def mirror(lab, dice, words, folder):
    result = lab.io.mirror(folder / "mirror")
    result.update()


@verb(1)
def look(lab, dice, words, folder):
    """Call readers, which must raise no error of their own, whatever was purged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if len(lab):
            lab.graph.similar(_id(lab, dice))
            lab.graph.trace(_id(lab, dice))
        lab.facts.narrative(words.text(dice))
        lab.upkeep.operations.proposals(range(1, len(lab) + 1))
        repr(lab)
