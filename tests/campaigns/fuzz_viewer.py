"""Check that private memories stay private: two labs, one with another user's private acts, read by every public reader.

    python -m tests.campaigns.fuzz_viewer [--lives 40] [--seed 0] [--steps 40]

A simulated run is a seeded series of public verbs: remembering, facts, links, recalls as a viewer, feedback, verdicts,
edits, deletions, purges, entities, clusters, upkeep, consolidation, several packs. It runs twice at the same instants:
once without and once with the private acts of Ann. These use the same projects, sessions and subjects, and link to
memories that others see. Then each public reader of ``lab.at(viewer=...)`` is called on both labs, and the answers
during the runs are compared as well. Ids, events and edges are renamed by their order; numbers agree to 1e-12. The
command prints the differences of each reader, of which there should be none, and the recall of planted answers for
both.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import memlab
from memlab.errors import MemlabError
from memlab.io.formats import read_bundle

__all__ = [
    "NOT_READ",
    "READERS",
    "Report",
    "Script",
    "compared",
    "lived",
    "public_names",
    "written",
]

START = datetime(2026, 3, 1, tzinfo=UTC)
STEP = timedelta(hours=7)
VIEWERS = ("bob", "dora")
"""Bob writes, in public and in private; Dora never did anything."""

OTHER = "ann"
PACKS = ("memlab", "associative", "companion", "factgraph", "workbench", "cascade")

NOUNS = ("goat", "barn", "meadow", "tractor", "fence", "salt", "hay", "vet", "market", "river")
VERBS = ("eats", "needs", "hates", "likes", "wants", "found", "lost", "repairs")
PLACES = (
    "by the river",
    "in the barn",
    "on Tuesday",
    "before the market",
    "since March",
    "without the vet",
    "at noon",
)
PEOPLE = ("Ada", "Grace", "Edsger", "Barbara")
OWN = ("Mallory", "Trudy")
"""People that only Ann mentions."""

KINDS = ("fact", "preference", "observation", "decision", "turn")
TAGS = ("farm", "money", "health", "tools")


@dataclass(frozen=True)
class Step:
    """One call of a verb, with memories by key; ``private`` calls are Ann's own."""

    verb: str
    at: datetime
    private: bool
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Script:
    """The events of a simulated run."""

    pack: str
    steps: tuple[Step, ...]


@dataclass
class Lived:
    """A lab after a simulated run, the ids of the memories in the script, and the answers during the run."""

    lab: memlab.Lab
    ids: dict[str, int]
    answers: list[tuple[str, str, Any]]


# -- scripts ----------------------------------------------------------------------------------------------------


def written(seed: int, *, steps: int, pack: str | None = None) -> Script:
    """Return the script of a simulated run by its seed."""
    return _Writer(seed, pack).script(steps)


class _Writer:
    def __init__(self, seed: int, pack: str | None) -> None:
        self.chance = np.random.default_rng(seed)
        self.pack = PACKS[int(self.chance.integers(len(PACKS)))] if pack is None else pack
        self.shared: list[str] = []
        self.own: dict[str, list[str]] = {"bob": [], OTHER: []}
        self.facts: list[str] = []
        self.named: set[str] = set()
        self.steps: list[Step] = []
        self.count = 0
        self.last = ""

    def script(self, steps: int) -> Script:
        for number in range(steps):
            at = START + number * STEP
            for part in range(int(self.chance.integers(0, 3))):
                self._private(at - timedelta(hours=3) + timedelta(minutes=part))
            self._public(at)
        return Script(self.pack, tuple(self.steps))

    def _of(self, words: Sequence[Any]) -> Any:
        return words[int(self.chance.integers(len(words)))]

    def _odds(self, share: float) -> bool:
        return bool(self.chance.random() < share)

    def _add(self, verb: str, at: datetime, private: bool, **arguments: Any) -> None:
        self.steps.append(Step(verb, at, private, arguments))

    def _text(self) -> str:
        if self.last and self._odds(0.25):
            return self.last + self._of((".", "", " now", " again", " never"))
        person = self._of(PEOPLE)
        self.last = f"{person} says the {self._of(NOUNS)} {self._of(VERBS)} {self._of(NOUNS)} {self._of(PLACES)}"
        return self.last

    def _row(self, creator: str, visibility: str) -> dict[str, Any]:
        row: dict[str, Any] = {"text": self._text(), "creator": creator, "visibility": visibility}
        if self._odds(0.5):
            row["project"] = self._of(("north", "south"))
        if self._odds(0.5):
            row["session"] = self._of(("s1", "s2"))
        if self._odds(0.4):
            row["tags"] = sorted({self._of(TAGS) for _ in range(2)})
        if self._odds(0.3):
            row["kind"] = self._of(KINDS)
        if self._odds(0.3):
            row["speaker"] = self._of(PEOPLE)
        if self._odds(0.5):
            row["importance"] = round(self.chance.random(), 2)
        if self._odds(0.15):
            row["triggers"] = [self._of(NOUNS)]
        if self._odds(0.1):
            row["ttl_days"] = 5.0
        return row

    def _key(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _fact(self, creator: str, visibility: str, names: Sequence[str]) -> dict[str, Any]:
        predicate = self._of(("lives-in", "likes", "status"))
        fields = {
            "subject": self._of(names),
            "predicate": predicate,
            "creator": creator,
            "visibility": visibility,
        }
        return fields | (
            {"object": self._of(PEOPLE)} if self._odds(0.3) else {"value": self._of(NOUNS)}
        )

    # -- public acts ---------------------------------------------------------------------------------------------

    def _public(self, at: datetime) -> None:
        known_keys = [*self.shared, *self.own["bob"]]
        verbs = ["remember"] * 4 + ["batch"] * 2 + ["fact"] * 3
        if len(known_keys) > 3:
            verbs += (
                ["recall"] * 5
                + ["context"] * 2
                + ["link", "edit", "deprecate", "forget", "restore", "delete", "maintain"]
            )
            verbs += ["cluster", "refine", "consolidate", "conversation", "turn", "entity", "link"]
            verbs += ["purge", "strength"] * self._odds(0.3)
        if len(self.facts) > 2:
            verbs += ["retract", "merge", "split"]
        verb = self._of(verbs)
        private = self._odds(0.2)
        visibility = "private" if private else self._of(("project", "team"))
        creator = "bob" if private or self._odds(0.5) else "agent:carol"
        mine = self.own["bob"] if private else self.shared
        if verb in ("remember", "batch"):
            rows = [self._row(creator, visibility) for _ in range(1 if verb == "remember" else 4)]
            keys = [self._key("m") for _ in rows]
            mine += keys
            self._add("remember", at, False, rows=rows, keys=keys, chain=self._odds(0.4))
        elif verb == "fact":
            key = self._key("f")
            mine.append(key)
            result = self._fact(creator, visibility, PEOPLE)
            if not private:
                self.facts.append(key)
                self.named |= {result["subject"], result.get("object", result["subject"])}
            self._add("fact", at, False, key=key, **result)
        elif verb == "recall":
            self._recall(at, "bob", private=False)
        elif verb == "context":
            result = {
                "task": self._text(),
                "viewer": "bob",
                "session": self._of(("s1", "s2", None)),
            }
            self._add("context", at, False, budget=self._of((90, 300, 1800)), **result)
        elif verb == "link":
            ends = self._two(known_keys)
            relation = self._of(("relates-to", "supersedes", "depends-on", "next"))
            self._add(
                "link",
                at,
                False,
                ends=ends,
                relation=relation,
                weight=round(self.chance.random(), 2),
            )
        elif verb == "edit":
            change = (
                {"text": self._text()}
                if self._odds(0.5)
                else {"tags": [self._of(TAGS)], "importance": 0.9}
            )
            self._add("edit", at, False, key=self._of(known_keys), change=change)
        elif verb in ("deprecate", "forget", "restore", "delete", "retract"):
            self._add(
                verb, at, False, key=self._of(self.facts if verb == "retract" else known_keys)
            )
        elif verb == "purge":
            self._add("purge", at, False, key=self._of(self.shared or known_keys))
        elif verb in ("merge", "split"):
            # a user who merges sees everything, and so could merge names that nobody else knows
            ordered = sorted(self.named)
            self._add(
                verb,
                at,
                False,
                names=[self._of(ordered), self._of(ordered)],
                key=self._of(self.facts),
            )
        elif verb == "entity":
            self._add(
                "entity", at, False, name=self._of(PEOPLE), type=self._of(("person", "concept"))
            )
        elif verb == "consolidate":
            self._add("consolidate", at, False, by=self._of(("clusters", "communities")))
        else:
            self._add(verb, at, False, query=self._text())

    def _two(self, keys: Sequence[str]) -> list[str]:
        return [keys[int(position)] for position in self.chance.choice(len(keys), 2, replace=False)]

    def _recall(self, at: datetime, viewer: str, *, private: bool) -> None:
        arguments = {
            "query": self._text(),
            "viewer": viewer,
            "limit": int(self.chance.integers(1, 5)),
        }
        if self._odds(0.3):
            arguments["project"] = self._of(("north", "south"))
        if self._odds(0.2):
            arguments["session"] = self._of(("s1", "s2"))
        after = self._of(("nothing", "success", "fail", "verify", "verify", "both"))
        self._add("recall", at, private, after=after, **arguments)

    # -- private acts of Ann -------------------------------------------------------------------------------------

    def _private(self, at: datetime) -> None:
        mine, others_too = self.own[OTHER], [*self.shared, *self.own[OTHER]]
        verbs = ["remember"] * 4 + ["batch"] + ["fact"] * 2
        if len(mine) > 2:
            # no purge: it empties the questions of others that quote what went, and is meant to
            verbs += (
                ["link"] * 3 + ["recall"] * 3 + ["edit", "forget", "delete", "deprecate", "restore"]
            )
        verb = self._of(verbs)
        if verb in ("remember", "batch"):
            rows = [self._row(OTHER, "private") for _ in range(1 if verb == "remember" else 6)]
            for row in rows:
                row["tags"] = [*row.get("tags", ()), "secret"]
            keys = [self._key("a") for _ in rows]
            mine += keys
            self._add("remember", at, True, rows=rows, keys=keys, chain=self._odds(0.4))
        elif verb == "fact":
            key = self._key("a")
            mine.append(key)
            self._add("fact", at, True, key=key, **self._fact(OTHER, "private", (*PEOPLE, *OWN)))
        elif verb == "link" and len(others_too) > 1:
            ends = [
                self._of(mine),
                self._of([key for key in others_too if key not in mine] or mine),
            ]
            if ends[0] != ends[1]:
                self._add("link", at, True, ends=ends, relation="relates-to", weight=1.0)
        elif verb == "recall":
            self._recall(at, OTHER, private=True)
        elif verb == "edit":
            change = (
                {"text": self._text()} if self._odds(0.5) else {"tags": ["secret", self._of(TAGS)]}
            )
            self._add("edit", at, True, key=self._of(mine), change=change)
        elif verb != "link":
            self._add(verb, at, True, key=self._of(mine))


# -- living -----------------------------------------------------------------------------------------------------


def lived(script: Script, *, private: bool, folder: Path | None = None) -> Lived:
    """Run a life in a lab; with ``private``, run the acts of Ann as well."""
    clock = memlab.ManualClock(START)
    lab = memlab.open(folder, pack=script.pack, clock=clock, seed=7)
    life = Lived(lab, {}, [])
    for number, step in enumerate(script.steps):
        if step.private and not private:
            continue
        clock.set(step.at)
        try:
            answer = _VERBS[step.verb](life, step)
        except MemlabError as error:
            answer = type(error).__name__
        lab.graph.link_waiting()
        if not step.private:
            life.answers.append((step.verb, str(number), answer))
    return life


def _remember(life: Lived, step: Step) -> Any:
    result = life.lab.remember(step.arguments["rows"], chain=step.arguments["chain"])
    life.ids.update(zip(step.arguments["keys"], result.standing, strict=True))
    return result.outcomes


def _fact(life: Lived, step: Step) -> Any:
    values = dict(step.arguments)
    key, subject, predicate = values.pop("key"), values.pop("subject"), values.pop("predicate")
    memory = life.lab.facts.add(subject, predicate, values.pop("value", None), **values)
    life.ids[key] = memory.id
    return memory.text, memory.status


def _link(life: Lived, step: Step) -> None:
    source, target = (life.ids[key] for key in step.arguments["ends"])
    life.lab.graph.link(source, target, step.arguments["relation"], weight=step.arguments["weight"])


def _recall(life: Lived, step: Step) -> Any:
    values = dict(step.arguments)
    query, after = values.pop("query"), values.pop("after")
    if step.private:
        values["visibility"] = "private"
    hits = life.lab.recall(query, explore=True, **values)
    if after in ("success", "both") and len(hits):
        for hit in hits[:2]:
            life.lab.feedback(hit, "success", agent=values["viewer"])
    if after == "fail" and len(hits):
        life.lab.feedback(hits[0], "fail")
    if after in ("verify", "both") and hits.decision is not None:
        life.lab.agents.verify(hits, list(hits.ids[:2]) if len(query) % 3 else [])
    return hits.frame


def _context(life: Lived, step: Step) -> Any:
    context = life.lab.context(**step.arguments)
    if len(context):
        life.lab.feedback(context.hits[0], "success", agent=step.arguments["viewer"])
    return [context.frame, context.left_out, context.tokens]


def _edit(life: Lived, step: Step) -> Any:
    memory = life.lab.edit(life.ids[step.arguments["key"]], **step.arguments["change"])
    return memory.text


def _by_key(verb: str) -> Callable[[Lived, Step], Any]:
    def call(life: Lived, step: Step) -> Any:
        id = life.ids[step.arguments["key"]]
        if verb == "deprecate":
            return life.lab.forget(id, how="deprecate", reason="it is wrong").frame
        done = getattr(life.lab.facts if verb == "retract" else life.lab, verb)(id)
        return None if verb == "purge" else getattr(done, "frame", None)

    return call


def _merge(life: Lived, step: Step) -> None:
    life.lab.facts.entities.merge(*step.arguments["names"])


def _split(life: Lived, step: Step) -> Any:
    return life.lab.facts.entities.split(step.arguments["names"][0]).name


def _quietly(done: object) -> None:
    """Ignore what the owner of the whole lab is told: it is no viewer's answer."""


def _upkeep(life: Lived, step: Step) -> None:
    life.lab.upkeep.maintain(progress=False)


_VERBS: dict[str, Callable[[Lived, Step], Any]] = {
    "remember": _remember,
    "fact": _fact,
    "link": _link,
    "recall": _recall,
    "context": _context,
    "edit": _edit,
    **{
        verb: _by_key(verb)
        for verb in ("deprecate", "forget", "restore", "delete", "retract", "purge")
    },
    "merge": _merge,
    "split": _split,
    "maintain": _upkeep,
    "strength": _upkeep,
    "cluster": lambda life, step: _quietly(life.lab.graph.clusters.find(min_size=2)),
    "refine": lambda life, step: _quietly(life.lab.graph.clusters.refine()),
    "consolidate": lambda life, step: _quietly(
        life.lab.upkeep.consolidation.run(by=step.arguments["by"], older_than_days=0.0)
    ),
    "conversation": lambda life, step: life.lab.agents.conversation("bob").familiarity,
    "turn": lambda life, step: None,
    "entity": lambda life, step: (
        life.lab.facts.entities.declare(step.arguments["name"], type=step.arguments["type"]).name
    ),
}


# -- readers ----------------------------------------------------------------------------------------------------

Asked = Callable[[memlab.Lab, "Names"], Any]


@dataclass(frozen=True)
class Names:
    """What the lab's memories, events and edges are called: by their order among what the viewer sees."""

    memories: Mapping[int, int]
    clusters: Mapping[int, int]
    events: Mapping[int, int]
    edges: Mapping[int, int]
    folder: Path

    def some(self, limit: int) -> list[int]:
        """Return the ids of a few memories."""
        return [
            id
            for id, value in self.memories.items()
            if value % max(1, len(self.memories) // limit) == 0
        ]


def _names(lab: memlab.Lab, folder: Path) -> Names:
    def places(values: Sequence[int]) -> dict[int, int]:
        return {value: index for index, value in enumerate(values, 1)}

    return Names(
        places(lab.memories["id"].to_list()),
        places(lab.graph.clusters.frame()["cluster"].sort().to_list()),
        places(lab.log["event"].to_list()),
        places(lab.edges["edge"].drop_nulls().to_list()),
        folder,
    )


def _exported(format: str) -> Asked:
    """Return a reader of an export: the import of it, and the words of Ann in its files.

    Tables of bytes with ids in them are left out, because the readers of their names are compared instead.
    """

    def export(lab: memlab.Lab, names: Names) -> Any:
        path = lab.io.export(names.folder / f"out-{format}", format=format, overwrite=True)
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        leaked = [
            word for word in (*OWN, OTHER, "secret") for file in files if f'"{word}' in _read(file)
        ]
        bundle = read_bundle(path, format)
        registers = {
            name: bundle.registers[name]
            for name in ("entities", "relationships")
            if name in bundle.registers
        }
        if "entities" in registers:  # what a merge moved is told by id
            registers["entities"]["entries"] = [
                entry[:5] for entry in registers["entities"]["entries"]
            ]
        return [leaked, bundle.memories, bundle.edges, bundle.nodes, registers, bundle.complete]

    return export


def _read(file: Path) -> str:
    if file.suffix == ".parquet":
        return pl.read_parquet(file).write_json()
    return file.read_text(encoding="utf-8", errors="replace")


def _mirrored(lab: memlab.Lab, names: Names) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        lab.io.mirror(Path(folder) / "mirror").update()
        texts = [
            file.read_text(encoding="utf-8") for file in (Path(folder) / "mirror").rglob("*.md")
        ]
        return sorted(texts, key=lambda text: int(text.split("id: ")[1].split()[0]))


def _past(lab: memlab.Lab, names: Names) -> Any:
    events = list(names.events)
    then = lab.at(event=events[len(events) * 2 // 3], progress=False)
    return [
        then.memories,
        then.log,
        then.graph.stats(progress=False).frames,
        then.recall("goat hay").frame,
        len(then),
    ]


def _each(ask: Callable[[memlab.Lab, int], Any]) -> Asked:
    return lambda lab, names: [ask(lab, id) for id in names.some(6)]


def _contexts(lab: memlab.Lab) -> Any:
    results = [
        lab.context(
            "Ada says the goat eats hay in the barn", budget=900, session=session, project="north"
        )
        for session in ("s1", None)
    ]
    return [
        [item.frame, item.left_out, _UNMARKED.sub("", item.text), item.hits.frame]
        for item in results
    ]


def _content(lab: memlab.Lab, names: Names) -> Any:
    hits = lab.recall("Ada says the goat eats hay", limit=4)
    explained = [hit.explain().frame for hit in hits]
    return [hits.frame, hits.slate.frame, repr(hits), explained, [hit.also for hit in hits]]


READERS: dict[str, Asked] = {
    "memories": lambda lab, names: lab.memories,
    "edges": lambda lab, names: lab.edges,
    "len": lambda lab, names: len(lab),
    "repr": lambda lab, names: repr(lab).replace(repr(lab).split(":")[0], ""),
    "log": lambda lab, names: lab.log,
    "getitem": _each(lambda lab, id: vars(lab[id])),
    "facts.entities.frame": lambda lab, names: lab.facts.entities.frame(),
    "facts.frame": lambda lab, names: [
        lab.facts.frame(),
        lab.facts.frame(at=START + 9 * STEP),
        lab.facts.frame(status="superseded"),
    ],
    "graph.clusters.frame": lambda lab, names: lab.graph.clusters.frame(),
    "upkeep.consolidation.frame": lambda lab, names: lab.upkeep.consolidation.frame(),
    "agents.credits.frame": lambda lab, names: lab.agents.credits.frame,
    "agents.credits.calibration": lambda lab, names: lab.agents.credits.calibration,
    "upkeep.review.supersessions": lambda lab, names: lab.upkeep.review.supersessions(),
    "io.scan": lambda lab, names: [lab.io.scan().collect(), lab.io.scan("edges").collect()],
    "upkeep.review.gaps": lambda lab, names: lab.upkeep.review.gaps(),
    "agents.relationships": lambda lab, names: lab.agents.relationships(),
    "agents.modules.projects": lambda lab, names: lab.agents.modules.projects(),
    "agents.modules.map": lambda lab, names: (
        lab.agents.modules.map("p").frame if "p" in lab.agents.modules.projects() else None
    ),
    "agents.modules.find": lambda lab, names: _or_error(
        lambda task: lab.agents.modules.find(task, project="p").rows(), "goat hay"
    ),
    "upkeep.review.related": lambda lab, names: [
        lab.upkeep.review.related(),
        lab.upkeep.review.related(names.some(6)),
    ],
    "graph.stats": lambda lab, names: [
        dict((s := lab.graph.stats(progress=False)).frames),
        s.notes,
        repr(s),
    ],
    "facts.narrative": lambda lab, names: [
        str(lab.facts.narrative("goat hay barn")),
        str(lab.facts.narrative(names.some(6))),
    ],
    "facts.profile": lambda lab, names: [
        str(lab.facts.profile()),
        *(_or_error(lab.facts.profile, name) for name in PEOPLE),
    ],
    "graph.similar": _each(lambda lab, id: lab.graph.similar(id)),
    "graph.trace": _each(lambda lab, id: [lab.graph.trace(id).frame, lab.graph.trace(id, 3).tree]),
    "graph.activate": lambda lab, names: lab.graph.activate(names.some(3)),
    "recall": _content,
    "context": lambda lab, names: _contexts(lab),
    "agents.metrics": lambda lab, names: [(m := lab.agents.metrics()).contexts, m.memories],
    "agents.recalls": lambda lab, names: [lab.agents.recalls()],
    "recall where": lambda lab, names: (
        lab.recall("goat", where=pl.col("importance") > pl.col("importance").mean()).frame
    ),
    "recall status": lambda lab, names: (
        lab.recall("goat", status=["superseded", "active", "deleted", "purged"]).frame
    ),
    "upkeep.forecast": lambda lab, names: [
        (
            f := lab.upkeep.forecast(
                names.some(4), START + timedelta(days=90), at=START + timedelta(days=60), points=5
            )
        ).frame,
        f.transitions,
    ],
    "slates": lambda lab, names: {
        table: getattr(lab.slates(), table).collect()
        for table in ("decisions", "candidates", "exposures", "feedback")
    },
    "upkeep.review.provenance": lambda lab, names: [
        lab.upkeep.review.provenance(id) for id in names.some(6)
    ],
    "graph.tags": lambda lab, names: lab.graph.tags(),
    "questions.frame": lambda lab, names: lab.questions.frame,
    "agents.extract": lambda lab, names: (
        lab.agents.extract("I live in Oslo. Ada says the goat prefers hay to the barn.").frame
    ),
    "graph.waiting": lambda lab, names: lab.graph.waiting(),
    "agents.admit": lambda lab, names: vars(lab.agents.admit("I prefer the goat with hay")),
    "agents.turns": lambda lab, names: _turned(lab),
    "agents.switched_off": lambda lab, names: lab.agents.switched_off(),
    "agents.consents": lambda lab, names: lab.agents.consents(),
    "io.preview": lambda lab, names: lab.io.preview().frame,
    "io.synced": lambda lab, names: lab.io.synced(),
    "agents": lambda lab, names: _as_agents(lab),
    "upkeep.operations.proposals": lambda lab, names: len(
        lab.upkeep.operations.proposals(names.some(6))
    ),
    "upkeep.consolidation.run": lambda lab, names: (
        lab.upkeep.consolidation.run(dry_run=True, older_than_days=0.0).frame
    ),
    "io.export jsonl": _exported("jsonl"),
    "io.export parquet": _exported("parquet"),
    "io.export markdown": _exported("markdown"),
    "io.export sexp": _exported("sexp"),
    "io.mirror": _mirrored,
    "at": _past,
}
"""The public readers of a lab, called on the view of a viewer."""

NOT_READ = {
    "writes, and is refused": (
        *(
            "remember",
            "agents.observe",
            "feedback",
            "agents.verify",
            "edit",
            "forget",
            "restore",
            "purge",
        ),
        *(
            "facts.add",
            "facts.retract",
            "facts.entities.declare",
            "facts.entities.merge",
            "facts.entities.split",
        ),
        *("graph.link", "upkeep.schedule", "agents.conversation", "upkeep.operations.check_fall"),
        *("graph.tag", "graph.describe_tag"),
        *("questions.add", "questions.infer", "questions.propose"),
        *("questions.accept", "questions.remove"),
        *(
            "graph.clusters.find",
            "graph.clusters.refine",
            "upkeep.consolidation.undo",
            "upkeep.maintain",
        ),
        *(
            "upkeep.review.deprecate",
            "upkeep.review.quarantine",
            "upkeep.review.release",
            "upkeep.review.close_gap",
        ),
        *("agents.modules.touch", "upkeep.operations.adapt_policy"),
        *(
            "agents.credits.answer",
            "agents.credits.calibrate",
            "agents.credits.transcript",
            "agents.modules.scan",
        ),
        *(
            "agents.modules.describe",
            "agents.commit",
            "agents.end_session",
            "agents.switch_off",
            "agents.switch_on",
        ),
        *("upkeep.thin", "upkeep.log_days", "upkeep.usage"),
        *(
            "upkeep.operations.run",
            "load",
            "io.move_to",
            "io.join",
            "io.reembed",
            "io.backup",
            "io.check",
            "challenge",
            "guard",
        ),
    ),
    "reads nothing that turns does not": ("graph.link_waiting", "io.snapshot", "close"),
    "speaks of no memory": (
        *("io.embedder", "io.path", "io.seed", "policies", "io.reembedding"),
        *("features.add", "features.remove", "features.added"),
    ),
    "is the search of the whole lab, and refused": ("upkeep.index",),
    "is made of the slates, which are read": ("verdict",),
    "is made of recalls and questions, which are read": ("score", "questions.label_recalls"),
    "is the view's own": ("io.store",),
    "is agents, of one agent": ("agent",),
    "calls a function for verbs, which are read": ("on",),
}
"""Public names of a lab that are not called, by reason."""


def public_names() -> set[str]:
    """Return the public names of a lab and its accessors, such as ``facts.entities.declare``."""
    with memlab.open() as lab:
        return {"agents", *_names_of(lab, "")}


def _names_of(accessor: object, path: str) -> set[str]:
    names = set()
    for name in dir(accessor):
        called = f"{path}{name}"
        if name.startswith("_"):
            continue
        kind = getattr(type(accessor), name, None)
        value = getattr(accessor, name) if isinstance(kind, property) else None
        if called not in ("policies", "upkeep.index") and type(value).__name__.startswith("Lab"):
            names |= _names_of(value, f"{called}.")
        else:
            names.add(called)
    return names


def _or_error(ask: Callable[..., Any], *arguments: Any) -> str:
    try:
        return str(ask(*arguments))
    except MemlabError as error:
        return str(error)


def _turned(lab: memlab.Lab) -> Any:
    with lab.agents.turns(limit=3) as turns:
        turns.offer("Ada says the goat eats hay")
        turns.wait()
        return turns.offer("and the barn").frame


def _as_agents(lab: memlab.Lab) -> Any:
    """Return the lab as agents see it; None for another viewer's lab."""
    agents = [lab.agents(name, session="s1") for name in ("carol", "bob")]
    return [
        [
            agent.memories,
            _or_error(lambda agent: str(agent.recall("goat hay", log=False).frame.rows()), agent),
        ]
        for agent in agents
    ]


# -- comparing --------------------------------------------------------------------------------------------------

_MEMORIES = (
    "id",
    "memory_id",
    "memories",
    "members",
    "superseded_by",
    "of",
    "central",
    "to_id",
    "also",
    "shown",
    "helped",
    "failed",
    "stale",
    "summary",
)
_EVENTS = ("event", "decision", "gap", "state", "seq")
_MARKS = [
    re.compile(
        r'(#|# |[Mm]emory |:(?:id|source|target|superseded-by) |(?:id|superseded_by): |"id": ?|^ *(?=\d+:)|[→─] )'
        r'(\d+)(?:\.0)?(?=[: ,"}\s)]|$)',
        re.MULTILINE,
    ),
    re.compile(r"( \[)(\d+)(?=\]\()"),
    re.compile(r"(\]\()(\d{7})(?=-)"),
]
_UNMARKED = re.compile(r"(?<=<memory )[0-9a-f]{8}|(?<=</memory )[0-9a-f]{8}")
_GIVEN = re.compile(r"\b[0-9a-f]{16}\b|purged \d+-")
"""Marks that differ between labs: lab ids and events of a purge."""


@dataclass
class Report:
    """Differences by reader, with the first few as text."""

    counts: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    hits: list[tuple[float, float]] = field(default_factory=list)

    def note(self, reader: str, where: str, without: Any, present: Any) -> None:
        self.counts[reader] += 1
        if sum(example.startswith(reader) for example in self.examples) < 3:
            without, present = _near(without, present)
            self.examples.append(
                f"{reader} {where}\n    without: {without}\n    with:    {present}"
            )


def compared(script: Script, report: Report, *, viewers: Sequence[str] = VIEWERS) -> None:
    """Perform a simulated run with and without the private acts, and report the differences."""
    with tempfile.TemporaryDirectory() as folder:
        without, present = lived(script, private=False), lived(script, private=True)
        with without.lab, present.lab:
            for viewer in viewers:
                views = without.lab.at(viewer=viewer), present.lab.at(viewer=viewer)
                names = tuple(_names(view, Path(folder)) for view in views)
                for reader, ask in READERS.items():
                    report.calls[reader] += 1
                    results = [
                        _plain(_answer(ask, view, name), name)
                        for view, name in zip(views, names, strict=True)
                    ]
                    _differ(report, reader, f"{script.pack} {viewer}", *results)
                if viewer == "bob":
                    report.hits.append(tuple(_recall_of(view) for view in views))  # type: ignore[arg-type]
                    report.calls["on the way"] += len(without.answers)
                    for (verb, step, mine), (_, _, theirs) in zip(
                        without.answers, present.answers, strict=True
                    ):
                        results = [
                            _plain(answer, name)
                            for answer, name in zip((mine, theirs), names, strict=True)
                        ]
                        _differ(
                            report, f"on the way: {verb}", f"{script.pack} step {step}", *results
                        )


def _answer(ask: Asked, lab: memlab.Lab, names: Names) -> Any:
    try:
        return ask(lab, names)
    except MemlabError as error:
        return f"{type(error).__name__}: {error}"


def _recall_of(lab: memlab.Lab) -> float:
    """Return the recall@5 of each memory queried by its own words without the first and the last."""
    recalled, count = 0, 0
    for row in lab.memories.filter(
        pl.col("status").is_in(["active", "confirmed", "staged"])
    ).iter_rows(named=True):
        words = row["text"].split()
        hits = lab.recall(" ".join(words[1:-1] or words), limit=5)
        recalled, count = recalled + (row["id"] in hits.ids), count + 1
    return recalled / count if count else math.nan


def _plain(value: Any, names: Names) -> Any:
    """Return a value of an answer as lists and words, with ids renamed."""
    if isinstance(value, pl.DataFrame):
        return {name: _column(name, value[name].to_list(), value, names) for name in value.columns}
    if isinstance(value, Mapping):
        return {
            str(key): _plain(item, names)
            if key == "memories" or not isinstance(item, int | float | list | tuple)
            else _column(str(key), [item], None, names)[0]
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, names) for item in value]
    if isinstance(value, str):
        for mark in _MARKS:
            value = mark.sub(
                lambda match: match[1] + str(names.memories.get(int(match[2]), match[2])), value
            )
        return re.sub(r"[ ─]+", " ", _GIVEN.sub("[given]", value))
    return value


_KINDS_OF = {"source": "from_kind", "target": "to_kind", "to_id": "to_kind", "id": "kind"}
"""Columns whose values are memories where another column says so, if the frame has it."""


def _column(name: str, values: list[Any], frame: pl.DataFrame | None, names: Names) -> list[Any]:
    columns = () if frame is None else frame.columns
    if name in _EVENTS or name == "edge":
        return [
            _renamed(value, names.edges if name == "edge" else names.events) for value in values
        ]
    if name == "id" and "aliases" in columns:
        return values
    if name == "cluster" and "refined" in columns:
        return [_renamed(value, names.clusters) for value in values]
    if (
        frame is not None and _KINDS_OF.get(name) in columns and "activation" in columns
    ) or "to_kind" in columns:
        kinds = (
            frame[_KINDS_OF[name]].to_list()
            if frame is not None and name in _KINDS_OF
            else [None] * len(values)
        )
        pairs = zip(values, kinds, strict=True)
        return [
            _renamed(value, names.memories) if kind == "memory" else _plain(value, names)
            for value, kind in pairs
        ]
    if name == "node" and "memory_id" in columns:
        return [names.memories.get(value + 1, value) for value in values]
    if name == "cluster" and "query" in columns:
        return [
            _renamed(int(value), names.events) if value.isdecimal() else _plain(value, names)
            for value in values
        ]
    if name in ("memories", "members") and not all(isinstance(value, list) for value in values):
        return values
    if name in _MEMORIES or (
        name in ("source", "target") and all(isinstance(value, int | None) for value in values)
    ):
        return [_renamed(value, names.memories) for value in values]
    return [_plain(value, names) for value in values]


def _renamed(value: Any, new_ids: Mapping[int, int]) -> Any:
    if isinstance(value, list | tuple):
        return [_renamed(item, new_ids) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return new_ids.get(int(value), f"?{value}")
    return value


def _differ(
    report: Report, reader: str, where: str, without: Any, present: Any, path: str = ""
) -> bool:
    """Note the first difference of two answers; whether there is one."""
    if isinstance(without, dict) and isinstance(present, dict):
        if list(without) != list(present):
            report.note(reader, f"{where} {path}", list(without), list(present))
            return True
        return any(
            _differ(report, reader, where, without[key], present[key], f"{path}/{key}")
            for key in without
        )
    if isinstance(without, list) and isinstance(present, list):
        if len(without) != len(present):
            report.note(reader, f"{where} {path}", without, present)
            return True
        pairs = enumerate(zip(without, present, strict=True))
        return any(_differ(report, reader, where, a, b, f"{path}/{at}") for at, (a, b) in pairs)
    if isinstance(without, float) and isinstance(present, float):
        same = math.isclose(without, present, rel_tol=1e-12, abs_tol=1e-12) or (
            without != without and present != present
        )
    else:
        same = without == present
    if not same:
        report.note(reader, f"{where} {path}", without, present)
    return not same


def _near(without: Any, present: Any) -> tuple[str, str]:
    """Return two values as text, from shortly before their first difference."""
    texts = str(without), str(present)
    parts = next(
        (at for at, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]),
        min(map(len, texts)),
    )
    return texts[0][max(0, parts - 80) : parts + 160], texts[1][max(0, parts - 80) : parts + 160]


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--lives", type=int, default=40)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--pack", choices=PACKS)
    options.add_argument("--examples", type=int, default=20)
    arguments = options.parse_args()
    report = Report()
    warnings.simplefilter("ignore")
    for seed in range(arguments.seed, arguments.seed + arguments.lives):
        compared(written(seed, steps=arguments.steps, pack=arguments.pack), report)
    print(
        f"{arguments.lives} lives from seed {arguments.seed}, {arguments.steps} steps, {len(VIEWERS)} viewers"
    )
    for reader in [*READERS, *sorted(set(report.counts) - set(READERS))]:
        print(
            f"  {reader:24s} asked {report.calls[reader]:5d}   differences {report.counts[reader]:5d}"
        )
    print(f"differences: {sum(report.counts.values())}")
    without, present = (np.nanmean(column) for column in zip(*report.hits, strict=True))
    print(f"recall@5 as bob: {without:.6f} without the private rows, {present:.6f} with them")
    for example in report.examples[: arguments.examples]:
        print(example)


if __name__ == "__main__":
    main()
