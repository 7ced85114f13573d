"""A corrected memory is nowhere in its old words: no context, profile, narrative, recall, tag, summary or export.

Each trial remembers a text with a unique word, corrects it to another unique word, and searches for the old word
wherever a lab shows its present knowledge. A thousand trials under all eight packs run with ``pytest -m slow``.
"""

import json
import random

import polars as pl
import pytest

import memlab
from memlab.kernel.schema import RECALLABLE

pytestmark = pytest.mark.long

PACKS = memlab.packs()
KINDS = (
    "fact",
    "convention",
    "gotcha",
    "decision",
    "personal",
    "preference",
    "goal",
    "event",
    "learning",
    "correction",
)
NOTES = (
    "The {} server holds the nightly backups",
    "Deploy with make {} before lunch",
    "We chose {} because the old broker lost messages",
    "I went to {} with my sister last weekend",
    "Never call {} from the request thread. It blocks for a second. Use the queue and look at the dashboard after it.",
    "{}: two retries, then give up",
)
FACTS = (
    ("user", "lives-in", "The user lives in {}", "object"),
    ("user", "works-at", "The user works at {}", "object"),
    ("Ada", "uses", "Ada uses {}", "value"),
    ("memlab", "status", "memlab has status {}", "value"),
    ("user", "prefers:theme", "The user prefers {} (theme)", "value"),
)
SAID = (
    "I live in {} and I like tea",
    "My sister lives in {}",
    "I work at {}",
    "I moved to {} yesterday",
)


class Trial:
    """One lab under one pack in which memories are corrected again and again."""

    def __init__(self, pack, seed, trigrams):
        self.random = random.Random(f"{pack} {seed}")
        self.clock = memlab.ManualClock("2026-03-01")
        self.lab = memlab.open(pack=pack, clock=self.clock, embedder=trigrams, seed=seed)
        self.old, self.session = [], 0
        self.lab.remember(["The office closes at six", "Lunch is at noon", "The user likes walks"])

    def word(self):
        return "q" + "".join(self.random.choices("bcdfghjklmnpqrstvwxz", k=7))

    def note(self, one, two):
        kind, template = self.random.choice(KINDS), self.random.choice(NOTES)
        other = self.random.choice((template, self.random.choice(NOTES)))
        fields = {"tags": [one, "stays"]} if self.random.random() < 0.3 else {}
        if self.random.random() < 0.3:
            fields |= {"files": [f"src/{one}/run.py"]}
            template = f"{template} in src/{{}}/run.py"
            return self.remember(template.format(one, one), kind=kind, **fields), other.format(two)
        if self.random.random() < 0.3:
            fields |= {"summary": f"About {one}", "context": f"a colleague said {one}"}
        return self.remember(template.format(one), kind=kind, **fields), other.format(two)

    def remember(self, text, **fields):
        linking = self.random.choice((None, "now", "off"))
        return self.lab.remember(text, linking=linking, **fields)

    def procedure(self, one, two):
        steps = [f"open {one}", "wait a minute", f"close {one} again"]
        result = self.remember(
            f"How to restart {one}",
            kind="procedure",
            steps=steps,
            triggers=[one, "restart"],
            title=f"Restart {one}",
        )
        return result, self.random.choice(
            (f"How to restart {two}", f"Ask {two} for a new instance")
        )

    def fact(self, one, two):
        subject, predicate, text, column = self.random.choice(FACTS)
        arguments = {column: one}
        result = self.lab.facts.add(subject, predicate, confidence=0.9, **arguments)
        return result, self.random.choice(
            (text.format(two), f"{text.format(two)}.", f"Nobody knows about {two}")
        )

    def extract_facts(self, one, two):
        """Extract facts and observations from a memory."""
        self.session += 1
        place = {"session": f"s{self.session}"}
        before, after = self.random.choice(SAID), self.random.choice(SAID)
        turn = self.lab.remember(before.format(one), kind="turn", speaker="user", **place)
        if self.random.random() < 0.5:
            self.lab.agents.end_session(place["session"], agent="tutor")
        else:
            self.lab.agents.commit(self.lab.agents.extract(before.format(one), **place))
        return turn, after.format(two)

    def of_an_agent(self, one, two):
        agent = self.lab.agents("coder")
        result = agent.remember(f"The parser of {one} has three owners", kind="codebase-discovery")
        edited = agent.edit(result, text=f"The parser of {two} has two owners")
        return edited, None

    def run(self):
        one, two = self.word(), self.word()
        make = self.random.choice(
            (
                self.note,
                self.note,
                self.procedure,
                self.fact,
                self.fact,
                self.extract_facts,
                self.of_an_agent,
            )
        )
        memory, text = make(one, two)
        self.clock.advance(hours=self.random.choice((1, 30)))
        self.old.append(one)
        if text is None:
            return self.look(one)
        # linking merged it into what was there
        if memory.status not in RECALLABLE or one not in memory.text:
            return None
        edited = self.lab.edit(memory, text=text)
        assert edited.text == text
        self.look(one)
        if self.random.random() < 0.3:
            three = self.word()
            self.old.append(two)
            assert self.lab.edit(
                self.random.choice((memory, edited)), text=text.replace(two, three)
            ).text
            self.look(two)
        return None

    def look(self, word):
        lab = self.lab
        for query in (
            f"what about {word}?",
            "where does the user live, and how do we deploy and restart?",
        ):
            hits = lab.recall(query, limit=20, log=False)
            assert not [hit.text for hit in hits if word in hit.text]
            context = lab.context(query, budget=2000, log=False)
            assert word not in context.text + context.markdown
            assert word not in lab.facts.narrative(query, log=False).text
        for subject in ("user", "Ada", "memlab"):
            if (
                lab.facts.frame()
                .filter(pl.col("subject").str.to_lowercase() == subject.lower())
                .height
            ):
                assert word not in lab.facts.profile(subject, budget_tokens=5000).text
        assert word not in str(self.current().rows())

    def current(self):
        return self.lab.memories.filter(pl.col("status").is_in(RECALLABLE))

    def close(self, folder):
        """Check what is derived from all memories later: summaries and exports."""
        lab = self.lab
        self.clock.advance(days=400)
        lab.upkeep.consolidation.run(older_than_days=1, keep=0)
        made = str(lab.upkeep.consolidation.frame().rows()) + str(self.current().rows())
        assert not [word for word in self.old if word in made]
        for suffix in ("jsonl", "md", "sexp"):
            present = lab.io.export(
                folder / f"now.{suffix}", where=pl.col("status").is_in(RECALLABLE), policies=False
            )
            text = present.read_text()
            assert not [word for word in self.old if word in text]
        now = set(self.current()["id"])
        for line in lab.io.export(folder / "all.jsonl", policies=False).read_text().splitlines():
            if any(word in line for word in self.old):
                kind, record = next(iter(json.loads(line).items()))
                # rows of the past, edges that leave them, and the names of their tags and entities
                assert kind in ("memory", "edge", "nodes", "register")
                assert {"memory": record.get("id"), "edge": record.get("source")}.get(
                    kind
                ) not in now
        lab.close()


def trial(pack, seed, count, folder, trigrams):
    result = Trial(pack, seed, trigrams)
    for _ in range(count):
        result.run()
    result.close(folder)


@pytest.mark.parametrize("pack", PACKS)
def test_the_old_word_is_nowhere(pack, tmp_path, trigrams):
    trial(pack, 1, 3, tmp_path, trigrams)


@pytest.mark.slow
@pytest.mark.parametrize("pack", PACKS)
def test_the_old_word_is_nowhere_in_a_thousand_edits(pack, tmp_path, trigrams):
    for seed in range(2, 7):
        (tmp_path / str(seed)).mkdir()
        trial(pack, seed, 25, tmp_path / str(seed), trigrams)
