"""A call that is right of every public callable, on a small lab in memory: where junk takes the place of an argument.

A new public callable needs one line in ``EXAMPLES``: its name as people say it, and a function from a ``Desk`` (what
lies ready: a lab, hits, slates, a policy ...) to what is called and its arguments by name. Arguments that are left out
are tried all the same. ``tests/test_signatures.py`` names the callables that have none.
"""

from __future__ import annotations

import datetime
import hashlib
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import memlab
from memlab.embedding import load_embedder
from memlab.ingest import Conversation, LabelledConversation, Question, Turn, conversation, download_locomo, read_locomo
from memlab.simulation import Asked, Phase, Said, Transcript, User, World, from_conversations, live
from memlab.slates import WIDE
from memlab.structure import Clusters
from memlab.verifiers import Verdict, overlap

__all__ = ["EXAMPLES", "Desk", "Example"]

Example = tuple[Callable[..., Any], dict[str, Any]]

RULE = "(fn [similarity recency] (+ similarity (* (param :d 0.5 :low 0.0 :high 1.0) recency)))"
FACTS = {"similarity": 0.5, "recency": 0.25}
SAID = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)


def hashed(texts: Sequence[str]) -> np.ndarray:
    """Vectors that cost nothing: fuzzing is not about what they mean."""
    return np.array(
        [np.frombuffer(hashlib.blake2b(text.encode()).digest(), dtype=np.int8) for text in texts], dtype=float
    )


EMBEDDER = load_embedder(hashed, name="hashed")


class Desk:
    """What lies ready for calls: made anew after a call that changed the lab. ``close`` it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="memlab-fuzz-")
        self.folder = Path(self._folder.name)
        self.clock = memlab.ManualClock("2026-03-01")
        self.lab = memlab.open(embedder=EMBEDDER, clock=self.clock)
        self.lab.remember_many(
            [
                {"text": "The user prefers tabs", "kind": "preference", "project": "api", "session": "s1"},
                {"text": "Deploys go out on Tuesdays", "kind": "convention", "project": "api", "tags": ["release"]},
                {"text": "a note with operations", "operations": '(remember "done")'},
            ]
        )
        self.lab.fact("Ada", "lives-in", object="Oslo")
        self.lab.entity("Bob", type="person")
        self.lab.delete(self.lab.remember("what was deleted"))
        self.hits = self.lab.recall("tabs or spaces?", limit=2)
        self.lab.feedback(self.hits[0], "success")

    @cached_property
    def verified(self) -> int:
        """The number of a gap that is open."""
        return self.lab.verify(self.lab.recall("who knows?"), []).gap or 0

    @cached_property
    def slates(self) -> memlab.Slates:
        for number, text in enumerate(("tabs", "deploys", "Oslo", "notes") * 3):
            hits = self.lab.recall(text, project=f"p{number % 4}", limit=1)
            if hits:
                self.lab.feedback(hits[0], "success" if number % 2 else "fail")
        return self.lab.slates

    @cached_property
    def frames(self) -> dict[str, pl.DataFrame]:
        return {
            "decisions": pl.DataFrame({"decision": ["q1", "q2"], "cluster": ["a", "b"]}),
            "candidates": pl.DataFrame(
                {
                    "decision": ["q1", "q1", "q2", "q2"],
                    "memory_id": [1, 2, 1, 2],
                    "similarity": [0.9, 0.4, 0.2, 0.3],
                    "recency": [0.1, 0.2, 0.3, 0.4],
                    "score": [0.9, 0.4, 0.2, 0.3],
                }
            ),
            "exposures": pl.DataFrame({"decision": ["q1", "q2"], "memory_id": [1, 2], "propensity": [1.0, 0.5]}),
            "feedback": pl.DataFrame({"decision": ["q1"], "memory_id": [1], "outcome": ["success"]}),
        }

    @cached_property
    def log(self) -> memlab.Slates:
        return memlab.Slates.from_frames(**self.frames)

    @property
    def policy(self) -> Any:
        return self.lab.policies["recall-score"]

    @cached_property
    def rule(self) -> Any:
        self.lab.policies.install("recall-score", RULE)
        return self.policy

    @property
    def updating(self) -> Any:
        return memlab.load_pack("companion").policies["reinforce"]

    @property
    def updated(self) -> dict[str, Any]:
        inputs = self.updating.signature.inputs
        given = {"num": np.array([0.5]), "bool": np.array([True])}
        return {
            name: given.get(inputs[name].type, np.array([next(iter(inputs[name].words), "x")], dtype=object))
            for name in self.updating.inputs
        }

    @cached_property
    def rows(self) -> pl.DataFrame:
        return pl.DataFrame({"memory_id": [1, 2], **{name: [value, 0.1] for name, value in FACTS.items()}})

    @cached_property
    def talk(self) -> Conversation:
        return Conversation("talk", (Turn("D1:1", "Ada", "I moved to Oslo", "session_1", SAID),))

    @cached_property
    def labelled(self) -> LabelledConversation:
        return LabelledConversation(self.talk, (Question("Where does Ada live?", 1, ("D1:1",)),))

    @cached_property
    def life(self) -> Any:
        return live(World("tiny", days=2, projects=2, said_per_day=4, asked_per_day=3), embedder=EMBEDDER)

    @cached_property
    def clusters(self) -> Path:
        path = self.folder / "found.npz"
        self.lab.stats(progress=False).found.save(path)
        return path

    @cached_property
    def quarantined(self) -> int:
        return self.lab.quarantine(session="s1").event

    @cached_property
    def on_disk(self) -> Path:
        with memlab.open(self.folder / "on-disk", embedder=EMBEDDER) as lab:
            lab.remember("kept on disk")
        return self.folder / "on-disk"

    @cached_property
    def exported(self) -> Path:
        return self.lab.export(self.folder / "kept.jsonl")

    @cached_property
    def pack_file(self) -> Path:
        path = self.folder / "mine.hy"
        path.write_text('(pack mine "mine" :inherits memlab)')
        return path

    @cached_property
    def downloaded(self) -> tuple[Path, str]:
        path = self.folder / "locomo.json"
        path.write_text("[]")
        return path, hashlib.sha256(b"[]").hexdigest()

    @property
    def differing(self) -> Any:
        return self.evaluation().disagreements("similarity", "recency")

    def evaluation(self) -> memlab.evaluation.Evaluation:
        return memlab.evaluate(self.log, ["similarity", "recency"])

    def close(self) -> None:
        self.lab.close()
        if "life" in vars(self):
            self.life.lab.close()
        self._folder.cleanup()


EXAMPLES: dict[str, Callable[[Desk], Example]] = {
    # -- opening ------------------------------------------------------------------------------------------------------
    "open": lambda d: (memlab.open, {"embedder": EMBEDDER}),
    "Lab": lambda d: (memlab.Lab, {"embedder": EMBEDDER}),
    "load": lambda d: (memlab.load, {"path": d.exported, "embedder": EMBEDDER}),
    "load_pack": lambda d: (memlab.load_pack, {"spec": "memlab"}),
    "ManualClock": lambda d: (memlab.ManualClock, {"start": 0}),
    "ManualClock.advance": lambda d: (memlab.ManualClock(0).advance, {"days": 1}),
    "ManualClock.set": lambda d: (memlab.ManualClock(0).set, {"when": "2026-01-01"}),
    # -- remembering --------------------------------------------------------------------------------------------------
    "Lab.remember": lambda d: (d.lab.remember, {"text": "new", "kind": "fact"}),
    "Lab.remember_many": lambda d: (d.lab.remember_many, {"rows": ["new", "newer"]}),
    "Lab.extend": lambda d: (d.lab.extend, {"rows": [{"text": "new"}]}),
    "Lab.admit": lambda d: (d.lab.admit, {"text": "I prefer tabs"}),
    "Lab.hear": lambda d: (d.lab.hear, {"text": "How are you?"}),
    "Lab.fact": lambda d: (d.lab.fact, {"subject": "Ada", "predicate": "likes", "value": "tea"}),
    "Lab.link": lambda d: (d.lab.link, {"source": 1, "target": 2}),
    "Lab.settle": lambda d: (d.lab.settle, {"timeout": 0.0}),
    "conversation": lambda d: (conversation, {"lab": d.lab, "conversation": d.talk}),
    "Remembered.__getitem__": lambda d: (d.lab.remember_many(["new"]).__getitem__, {"index": 0}),
    # -- asking -------------------------------------------------------------------------------------------------------
    "Lab.recall": lambda d: (d.lab.recall, {"query": "tabs"}),
    "Lab.similar": lambda d: (d.lab.similar, {"memory": 1}),
    "Lab.turn": lambda d: (d.lab.turn, {"context": "tabs"}),
    "Lab.turns": lambda d: (d.lab.turns, {}),
    "Turns.turn": lambda d: (d.lab.turns().turn, {"context": "tabs"}),
    "Turns.wait": lambda d: (d.lab.turns().wait, {"timeout": 0.0}),
    "Surfaced.__getitem__": lambda d: (d.lab.turn("tabs").__getitem__, {"index": slice(None)}),
    "Lab.facts": lambda d: (d.lab.facts, {}),
    "Lab.narrative": lambda d: (d.lab.narrative, {"about": "Where does Ada live?"}),
    "Lab.profile": lambda d: (d.lab.profile, {"subject": "Ada"}),
    "Lab.__getitem__": lambda d: (d.lab.__getitem__, {"memory": 1}),
    "Lab.activate": lambda d: (d.lab.activate, {"seeds": [1, 2]}),
    "Lab.trace": lambda d: (d.lab.trace, {"memory": 1}),
    "Lab.stats": lambda d: (d.lab.stats, {"progress": False}),
    "Lab.at": lambda d: (d.lab.at, {"when": "2026-03-01"}),
    "Lab.review": lambda d: (d.lab.review, {}),
    "Lab.forecast": lambda d: (d.lab.forecast, {"memories": 1, "until": "2026-04-01", "points": 3}),
    "Hits.__getitem__": lambda d: (d.hits.__getitem__, {"index": 0}),
    "Hits.explain": lambda d: (d.hits.explain, {"memory": d.hits[0]}),
    "Hits.why": lambda d: (d.hits.why, {"a": d.hits[0].id}),
    "Hits.sensitivity": lambda d: (d.hits.sensitivity, {}),
    "Hit.above": lambda d: (d.hits[0].above, {}),
    "Tree.text": lambda d: (d.hits.explain(d.hits[0]).tree.text, {}),
    # -- use ----------------------------------------------------------------------------------------------------------
    "Lab.feedback": lambda d: (d.lab.feedback, {"hit": d.hits[0], "outcome": "success"}),
    "Lab.verify": lambda d: (d.lab.verify, {"hits": d.hits, "accepted": d.hits[:1]}),
    "overlap": lambda d: (overlap, {"hits": d.hits}),
    "Verdict": lambda d: (Verdict, {"accepted": [1]}),
    "Lab.close_gap": lambda d: (d.lab.close_gap, {"gap": d.verified, "reason": "told"}),
    "Lab.conversation": lambda d: (d.lab.conversation, {"agent": "coder"}),
    # -- correcting ---------------------------------------------------------------------------------------------------
    "Lab.edit": lambda d: (d.lab.edit, {"memory": 1, "importance": 0.75}),
    "Lab.deprecate": lambda d: (d.lab.deprecate, {"memory": 1, "reason": "wrong"}),
    "Lab.forget": lambda d: (d.lab.forget, {"memory": 1}),
    "Lab.delete": lambda d: (d.lab.delete, {"memory": 1}),
    "Lab.restore": lambda d: (d.lab.restore, {"memory": 5}),
    "Lab.retract": lambda d: (d.lab.retract, {"fact": 4}),
    "Lab.purge": lambda d: (d.lab.purge, {"memory": 2}),
    "Lab.entity": lambda d: (d.lab.entity, {"name": "Carol"}),
    "Lab.merge_entities": lambda d: (d.lab.merge_entities, {"entity": "Bob", "into": "Ada"}),
    "Lab.split_entity": lambda d: (d.lab.split_entity, {"entity": "Ada", "name": "Ada (Oslo)", "facts": [4]}),
    # -- living -------------------------------------------------------------------------------------------------------
    "Lab.maintain": lambda d: (d.lab.maintain, {"progress": False}),
    "Lab.schedule": lambda d: (d.lab.schedule, {"every": datetime.timedelta(hours=1)}),
    "Lab.cluster": lambda d: (d.lab.cluster, {}),
    "Lab.consolidate": lambda d: (d.lab.consolidate, {"older_than_days": 0, "keep": 0}),
    "Lab.unconsolidate": lambda d: (d.lab.unconsolidate, {"summary": 1}),
    "Clusters.save": lambda d: (Clusters.load(d.clusters).save, {"path": d.folder / "again.npz"}),
    "Clusters.load": lambda d: (Clusters.load, {"path": d.clusters}),
    # -- moving -------------------------------------------------------------------------------------------------------
    "Lab.check": lambda d: (d.lab.check, {}),
    "Lab.quarantine": lambda d: (d.lab.quarantine, {"session": "s1"}),
    "Lab.release": lambda d: (d.lab.release, {"quarantine": d.quarantined}),
    "Lab.viewed_by": lambda d: (d.lab.viewed_by, {"viewer": "agent:coder"}),
    "check": lambda d: (memlab.check, {"path": d.on_disk}),
    "restore": lambda d: (memlab.restore, {"path": d.on_disk}),
    "Lab.backup": lambda d: (d.lab.backup, {"folder": d.folder / "copies"}),
    "Lab.export": lambda d: (d.lab.export, {"path": d.folder / "out.jsonl", "overwrite": True}),
    "Lab.load": lambda d: (d.lab.load, {"path": d.exported}),
    "Lab.mirror": lambda d: (d.lab.mirror, {"folder": d.folder / "mirror"}),
    "Mirror.wait": lambda d: (d.lab.mirror(d.folder / "mirror").wait, {"seconds": 0.0}),
    "Loaded.count": lambda d: (d.lab.load(d.exported).count, {"what": "added"}),
    "Lab.run": lambda d: (d.lab.run, {"operations": "(stats)"}),
    "Lab.proposals": lambda d: (d.lab.proposals, {"memories": [3]}),
    "Ran.__getitem__": lambda d: (d.lab.run("(stats)").__getitem__, {"index": 0}),
    # -- deciding -----------------------------------------------------------------------------------------------------
    "Lab.use": lambda d: (d.lab.use, {"pack": "companion"}),
    "Lab.watch": lambda d: (d.lab.watch, {"path": d.pack_file, "on_change": print}),
    "LabPolicies.use": lambda d: (d.lab.policies.use, {"pack": "companion"}),
    "LabPolicies.install": lambda d: (d.lab.policies.install, {"slot": "recall-score", "source": RULE}),
    "LabPolicies.rollback": lambda d: (d.rule and d.lab.policies.rollback, {"slot": "recall-score"}),
    "LabPolicies.pin": lambda d: (d.lab.policies.pin, {"slot": "recall-score"}),
    "LabPolicies.unpin": lambda d: (d.lab.policies.pin("link") and d.lab.policies.unpin, {"slot": "link"}),
    "LabPolicies.history": lambda d: (d.lab.policies.history, {}),
    "LabPolicies.diff": lambda d: (d.rule and d.lab.policies.diff, {"slot": "recall-score"}),
    "LabPolicies.deciders": lambda d: (d.lab.policies.deciders, {"pack": d.lab.pack.hash}),
    "LabPolicies.attribution": lambda d: (d.lab.policies.attribution, {}),
    "LabPolicies.__getitem__": lambda d: (d.lab.policies.__getitem__, {"slot": "link"}),
    "FormDiff.text": lambda d: (d.rule and d.lab.policies.diff("recall-score").forms.text, {}),
    "Pack.count": lambda d: (d.lab.pack.count, {"setting": "limit"}),
    "Pack.number": lambda d: (d.lab.pack.number, {"setting": "probe-rate"}),
    "Pack.unit": lambda d: (d.lab.pack.unit, {"slot": "recall-score"}),
    "Pack.fingerprints": lambda d: (d.lab.pack.fingerprints, {"embedder": "x"}),
    "Pack.with_policy": lambda d: (d.lab.pack.with_policy, {"slot": "recall-score", "policy": d.policy}),
    "Policy.with_params": lambda d: (d.rule.with_params, {"values": {"d": 0.25}}),
    "Policy.field": lambda d: (d.updating.field, {"name": "strength"}),
    "Policy.columns": lambda d: (d.rule.columns, {"frame": d.rows}),
    "Policy.aggregates": lambda d: (d.rule.aggregates, {"frame": d.rows}),
    "Policy.arrays": lambda d: (d.rule.arrays, {"columns": {n: np.array([v]) for n, v in FACTS.items()}}),
    "Policy.updates": lambda d: (d.updating.updates, {"columns": d.updated}),
    "Policy.row": lambda d: (d.rule.row, {"values": FACTS}),
    "Policy.explain": lambda d: (d.rule.explain, {"values": FACTS}),
    "Policy.why": lambda d: (d.rule.why, {"a": FACTS, "b": {**FACTS, "recency": 0.0}}),
    "Policy.sensitivity": lambda d: (d.rule.sensitivity, {"item": FACTS}),
    "Policy.slate_sensitivity": lambda d: (d.rule.slate_sensitivity, {"slate": d.rows}),
    # -- the index ----------------------------------------------------------------------------------------------------
    "LabIndex.report": lambda d: (d.lab.index.report, {"progress": False}),
    "LabIndex.rebuild": lambda d: (d.lab.index.rebuild, {}),
    "LabIndex.wait": lambda d: (d.lab.index.wait, {"timeout": 0.0}),
    "Embedder.encode": lambda d: (EMBEDDER.encode, {"texts": ["tabs"]}),
    "Embedder.closeness": lambda d: (EMBEDDER.closeness, {"cosine": np.array([0.5])}),
    # -- logs ---------------------------------------------------------------------------------------------------------
    "Slates": lambda d: (memlab.Slates, {name: frame.lazy() for name, frame in d.frames.items()}),
    "Slates.from_frames": lambda d: (memlab.Slates.from_frames, d.frames),
    "Slates.from_wide": lambda d: (memlab.Slates.from_wide, {"frame": d.log.to_wide(), **WIDE}),
    "Slates.filter": lambda d: (d.log.filter, {}),
    "Slates.split": lambda d: (d.log.split, {"by": "cluster"}),
    "Slates.to_wide": lambda d: (d.log.to_wide, {}),
    "Slates.fingerprints": lambda d: (d.lab.slates.fingerprints, {"decision": d.hits.decision}),
    "evaluate": lambda d: (memlab.evaluate, {"slates": d.log, "policies": ["similarity"]}),
    "tune": lambda d: (memlab.tune, {"slates": d.slates, "policy": RULE, "missing": "zero", "budget": 20, "folds": 2}),
    "Evaluation.disagreements": lambda d: (d.evaluation().disagreements, {"a": "similarity", "b": "recency"}),
    "Evaluation.figure": lambda d: (d.evaluation().figure, {"kind": "leaderboard"}),
    "Evaluation.report": lambda d: (d.evaluation().report, {"path": d.folder / "report.html"}),
    "Evaluation.target": lambda d: (d.evaluation().target, {"policy": "similarity"}),
    "Disagreements.__getitem__": lambda d: (
        d.evaluation().disagreements("similarity", "recency").__getitem__,
        {"at": 0},
    ),
    "Settings.by": lambda d: (d.evaluation().settings.by, {"metric": "recall@10"}),
    "compare": lambda d: (memlab.compare, {"a": d.lab, "b": d.lab, "points": 2}),
    "replay": lambda d: (memlab.replay, {"lab": d.lab, "pack": "companion", "progress": False}),
    "bench_locomo": lambda d: (
        memlab.bench_locomo,
        {"conversations": [d.labelled], "packs": ["memlab"], "baselines": False, "embedder": EMBEDDER},
    ),
    # -- conversations and lives --------------------------------------------------------------------------------------
    "Turn": lambda d: (Turn, {"ref": "D1:1", "speaker": "Ada", "text": "hi", "session": "s", "at": SAID}),
    "Question": lambda d: (Question, {"text": "Where?", "category": 1, "evidence": ("D1:1",)}),
    "Conversation": lambda d: (Conversation, {"name": "talk", "turns": d.talk.turns}),
    "Conversation.rows": lambda d: (d.talk.rows, {}),
    "LabelledConversation": lambda d: (LabelledConversation, {"conversation": d.talk, "questions": ()}),
    "download_locomo": lambda d: (
        download_locomo,
        {"target": d.downloaded[0], "sha256": d.downloaded[1], "url": "file:///nowhere"},
    ),
    "read_locomo": lambda d: (read_locomo, {"path": d.folder / "none.json"}),
    "Said": lambda d: (Said, {"at": 0, "ref": "r", "text": "tabs"}),
    "Asked": lambda d: (Asked, {"at": 0, "number": 1, "text": "tabs?"}),
    "Phase": lambda d: (Phase, {}),
    "World": lambda d: (World, {"name": "tiny", "days": 1, "projects": 1}),
    "World.phase": lambda d: (World("tiny", days=2).phase, {"day": 0}),
    "User": lambda d: (User, {}),
    "User.react": lambda d: (User().react, {"utility": np.array([0.5]), "rng": np.random.default_rng(1)}),
    "User.reward": lambda d: (User().reward, {"utility": np.array([0.5])}),
    "Transcript": lambda d: (Transcript, {"name": "t", "script": (Said(0, "r", "tabs"),)}),
    "from_conversations": lambda d: (
        from_conversations,
        {
            "turns": {"talk": d.talk.rows()},
            "questions": {"talk": [{"text": "Where?", "evidence": ["D1:1"]}]},
        },
    ),
    "live": lambda d: (live, {"world": World("tiny", days=1, projects=1, said_per_day=2), "embedder": EMBEDDER}),
    "Life.truth": lambda d: (d.life.truth, {"policy": "memlab", "how": "rescore"}),
}
