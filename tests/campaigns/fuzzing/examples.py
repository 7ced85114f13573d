"""A valid call of every public callable, on a small lab in memory, in which junk can replace an argument.

A new public callable needs one line in ``EXAMPLES``. The line has its public name, and a function from a ``Desk`` (a
lab, hits, slates, a policy ...) to the callable and its arguments by name. Omitted arguments are tried as well.
``tests/test_signatures.py`` names the callables without an example.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import memlab
from memlab.io.adapters import (
    AsyncMem0Memory,
    LabSession,
    Mem0Memory,
    MemoryFiles,
    read_memfs,
    write_memfs,
)
from memlab.io.adapters.hooks import answer_hook, hook_settings, read_transcript
from memlab.io.ingest import (
    Conversation,
    LabelledConversation,
    Question,
    Turn,
    WantedMemories,
    check_digest,
    conversation,
    correct_evidence,
    digest,
    download_locomo,
    read_beam,
    read_lmeb,
    read_locomo,
    read_longmemeval,
    read_questions,
)
from memlab.io.recorder import Recorder
from memlab.io.serving import connect, lab_server, read_audit_log
from memlab.kernel.embedding import load_embedder
from memlab.kernel.slates import WIDE
from memlab.kernel.state import Projection
from memlab.kernel.verbs.seam import Seam
from memlab.science.bench import BudgetResult, read_answer, token_f1
from memlab.science.evaluation import (
    Earnings,
    Sums,
    cluster_interval,
    compare_periods,
    judge,
    measure,
    partial,
)
from memlab.science.simulation import (
    MessageEvent,
    Phase,
    QuestionEvent,
    Transcript,
    User,
    World,
    from_conversations,
    live,
    trial,
)
from memlab.subjects.agent_verbs.agents import Agent
from memlab.subjects.agents.turns import Surfaced
from memlab.subjects.verifiers import Verdict, local, overlap
from memlab.ui.demo import sample_lab

__all__ = ["EXAMPLES", "Desk", "Example"]


class Visits(Projection):
    """A projection that no lab has."""

    name = "visits"


Example = tuple[Callable[..., Any], dict[str, Any]]

RULE = "(fn [similarity recency] (+ similarity (* (param :d 0.5 :low 0.0 :high 1.0) recency)))"
FACTS = {"similarity": 0.5, "recency": 0.25}
TALK = [
    {"role": "user", "content": "tabs or spaces?"},
    {"role": "assistant", "content": "You prefer tabs."},
]
JUDGED = pl.DataFrame({"credit": [0.1, 0.9] * 20, "useful": [0.0, 1.0] * 20})
SAID = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)


def hashed(texts: Sequence[str]) -> np.ndarray:
    """Embed texts by hash, which costs nothing, because their meaning does not matter here."""
    return np.array(
        [np.frombuffer(hashlib.blake2b(text.encode()).digest(), dtype=np.int8) for text in texts],
        dtype=float,
    )


EMBEDDER = load_embedder(hashed, name="hashed")
REVIEWS = pl.DataFrame(
    {"card_id": [1] * 8, "rating": [3, 3, 1, 3] * 2, "day_offset": range(1, 17, 2)}
)


class Desk:
    """Prepared arguments for calls, rebuilt after a call that changed the lab. Call ``close`` at the end."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="memlab-fuzz-")
        self.folder = Path(self._folder.name)
        self.clock = memlab.ManualClock("2026-03-01")
        self.lab = memlab.open(embedder=EMBEDDER, clock=self.clock)
        self.lab.remember(
            [
                {
                    "text": "The user prefers tabs",
                    "kind": "preference",
                    "project": "api",
                    "session": "s1",
                },
                {
                    "text": "Deploys go out on Tuesdays",
                    "kind": "convention",
                    "project": "api",
                    "tags": ["release"],
                },
                {"text": "a note with operations", "operations": '(remember "done")'},
            ]
        )
        self.lab.facts.add("Ada", "lives-in", object="Oslo")
        self.lab.facts.entities.declare("Bob", type="person")
        self.lab.forget(self.lab.remember("what was deleted"), how="delete")
        self.hits = self.lab.recall("tabs or spaces?", limit=2)
        self.lab.feedback(self.hits[0], "success")

    @cached_property
    def mempack(self) -> Path:
        return memlab.publish_pack("actr", self.folder / "actr.mempack")

    @cached_property
    def verified(self) -> int:
        """Return the number of an open gap."""
        return self.lab.agents.verify(self.lab.recall("who knows?"), []).gap or 0

    @cached_property
    def seam(self) -> Seam:
        return Seam(self.lab, self.lab._core, "fuzzed")

    @cached_property
    def agent(self) -> Agent:
        return self.lab.agents("tutor", project="api")

    @cached_property
    def own(self) -> int:
        """Return the id of a memory of the agent."""
        return self.agent.remember("Fractions went badly", kind="learning").id

    @cached_property
    def slates(self) -> memlab.Slates:
        for number, text in enumerate(("tabs", "deploys", "Oslo", "notes") * 3):
            hits = self.lab.recall(text, project=f"p{number % 4}", limit=1)
            if hits:
                self.lab.feedback(hits[0], "success" if number % 2 else "fail")
        return self.lab.slates()

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
            "exposures": pl.DataFrame(
                {"decision": ["q1", "q2"], "memory_id": [1, 2], "propensity": [1.0, 0.5]}
            ),
            "feedback": pl.DataFrame(
                {"decision": ["q1"], "memory_id": [1], "outcome": ["success"]}
            ),
        }

    @cached_property
    def log(self) -> memlab.Slates:
        return memlab.Slates.from_frames(**self.frames)

    @property
    def scanned(self) -> Any:
        """Return the modules of a lab with a map of the project api."""
        (self.folder / "core").mkdir(exist_ok=True)
        for name in ("one", "two"):
            (self.folder / "core" / f"{name}.py").write_text('"""The core."""')
        self.lab.agents.modules.scan(self.folder, project="api", progress=False)
        return self.lab.agents.modules

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
        arguments = {"num": np.array([0.5]), "bool": np.array([True])}
        return {
            name: arguments.get(
                inputs[name].type, np.array([next(iter(inputs[name].words), "x")], dtype=object)
            )
            for name in self.updating.inputs
        }

    @cached_property
    def rows(self) -> pl.DataFrame:
        return pl.DataFrame(
            {"memory_id": [1, 2], **{name: [value, 0.1] for name, value in FACTS.items()}}
        )

    @cached_property
    def talk(self) -> Conversation:
        return Conversation("talk", (Turn("D1:1", "Ada", "I moved to Oslo", "session_1", SAID),))

    @cached_property
    def labelled(self) -> LabelledConversation:
        return LabelledConversation(self.talk, (Question("Where does Ada live?", 1, ("D1:1",)),))

    @cached_property
    def life(self) -> Any:
        return live(
            World("tiny", days=2, projects=2, messages_per_day=4, questions_per_day=3),
            embedder=EMBEDDER,
        )

    @cached_property
    def quarantined(self) -> int:
        return self.lab.forget(session="s1", how="quarantine").event

    @cached_property
    def on_disk(self) -> Path:
        with memlab.open(self.folder / "on-disk", embedder=EMBEDDER) as lab:
            lab.remember("kept on disk")
        return self.folder / "on-disk"

    @cached_property
    def exported(self) -> Path:
        return self.lab.io.export(self.folder / "kept.jsonl")

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

    @cached_property
    def sums(self) -> Sums:
        return partial(self.log, ["similarity"], missing="zero")

    def evaluation(self) -> memlab.science.evaluation.Evaluation:
        return memlab.evaluate(self.log, ["similarity", "recency"], missing="zero")

    def evolved(self) -> memlab.science.evolution.Evolved:
        return memlab.evolve(self.rewarded, "near", missing="zero", budget=4)

    def experiment(self) -> memlab.Experiment:
        """An experiment of two baselines on a conversation."""
        return memlab.Experiment(
            "words",
            ["bm25", "dense"],
            {"talk": [self.labelled]},
            metrics="recall@5",
            folder=self.folder / "runs",
            embedder=EMBEDDER,
        )

    def budgets(self) -> BudgetResult:
        return memlab.bench_budgets(
            [self.labelled], budgets=[60], baselines=False, embedder=EMBEDDER
        )

    @cached_property
    def challenged(self) -> memlab.Lab:
        """Return a lab whose live pack is challenged, with a few recalls since."""
        self.lab.challenge("associative", reason="an example")
        for text in ("tabs", "deploys", "Oslo", "notes") * 3:
            for hit in self.lab.recall(text, limit=1):
                self.lab.feedback(hit, "success" if "tabs" in hit.text else "fail")
        return self.lab

    @cached_property
    def asked(self) -> memlab.Lab:
        """Return the lab with a labelled question that it was asked."""
        self.lab.questions.add("tabs or spaces?", wants=1)
        return self.lab

    @cached_property
    def rewarded(self) -> memlab.Slates:
        """Return a log of sixty recalls of three items with a score and a probe, enough to fit a model of rewards."""
        rows = [
            {
                "q": q,
                "m": m,
                "rank": (m < 2) * (m + 1),
                "won": float((q + m) % 3 == 0),
                "p": (1.0, 0.5, 0.5)[m],
            }
            | {"near": float(m) + q % 5, "far": float(-m)}
            for q in range(60)
            for m in range(3)
        ]
        frame = pl.DataFrame(rows).with_columns(won=pl.when(pl.col("rank") > 0).then("won"))
        columns = {
            "decision": "q",
            "item": "m",
            "shown": "rank",
            "reward": "won",
            "propensity": "p",
        }
        return memlab.Slates.from_wide(frame, **columns, scores=["near", "far"], limit=1)

    @cached_property
    def files(self) -> MemoryFiles:
        files = MemoryFiles(self.lab)
        files.create("/memories/a.md", "one line")
        return files

    @cached_property
    def recorded(self) -> Recorder:
        search = memlab.record(
            lambda query, k: ["tabs", "spaces"], log=self.folder / "searches", limit=1
        )
        search.challenge(lambda query, k: ["spaces"], name="old")
        hits = search("tabs or spaces?")
        for id in hits.ids:
            hits.feedback(id, 1.0)
        return search

    @cached_property
    def spans(self) -> Path:
        attributes = {
            "gen_ai.operation.name": "search_memory",
            "gen_ai.memory.records": [{"id": "m1", "content": "tabs"}],
        }
        path = self.folder / "spans.jsonl"
        path.write_text(json.dumps({"span_id": "a1", "attributes": attributes}))
        return path

    @cached_property
    def mem0(self) -> Mem0Memory:
        return Mem0Memory(self.lab)

    @cached_property
    def mem0_id(self) -> str:
        added: str = self.mem0.add("I prefer tea", user_id="ada")["results"][0]["id"]
        return added

    def session(self, verb: str) -> Callable[..., Any]:
        """Return a function that runs a method of a session to its end."""
        return lambda **arguments: asyncio.run(
            getattr(LabSession("s1", self.lab), verb)(**arguments)
        )

    @cached_property
    def chat(self) -> Any:
        """A chat of an agent, after a first ``before``."""
        chat = self.agent.session("s1")
        chat.before("how did fractions go?")
        return chat

    @cached_property
    def memfs(self) -> Path:
        folder = self.folder / "memfs"
        folder.mkdir()
        (folder / "a.md").write_text("---\ndescription: a\n---\nOslo\n")
        return folder

    def close(self) -> None:
        self.lab.close()
        if "life" in vars(self):
            self.life.lab.close()
        self._folder.cleanup()


def _surfaced(lab: memlab.Lab) -> Surfaced:
    """Return the result of an offer once its search has ended, because the search writes to the lab."""
    with lab.agents.turns() as turns:
        return turns.offer("tabs")


def _await(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs a coroutine function to its end; `callables` sees the checked one."""

    def awaited(**arguments: Any) -> Any:
        async def run() -> Any:
            return await call(**arguments)

        return asyncio.run(run())

    return awaited


EXAMPLES: dict[str, Callable[[Desk], Example]] = {
    # -- opening ------------------------------------------------------------------------------------------------------
    "open": lambda d: (memlab.open, {"embedder": EMBEDDER}),
    "Lab": lambda d: (memlab.Lab, {"embedder": EMBEDDER}),
    "load": lambda d: (memlab.load, {"x": d.exported, "embedder": EMBEDDER, "progress": False}),
    "publish_pack": lambda d: (
        memlab.publish_pack,
        {"pack": "actr", "path": d.folder / "a.mempack", "evidence": (), "licence": "MIT"},
    ),
    "pull_pack": lambda d: (memlab.pull_pack, {"path": d.mempack}),
    "PublishedPack.check": lambda d: (memlab.pull_pack(d.mempack).check, {}),
    "load_pack": lambda d: (memlab.load_pack, {"spec": "memlab"}),
    "ManualClock": lambda d: (memlab.ManualClock, {"start": 0}),
    "ManualClock.advance": lambda d: (memlab.ManualClock(0).advance, {"days": 1}),
    "ManualClock.set": lambda d: (memlab.ManualClock(0).set, {"when": "2026-01-01"}),
    "trace": lambda d: (memlab.trace, {"lab": d.lab, "store": "x"}),
    "AsyncLab": lambda d: (memlab.AsyncLab, {"path": d.folder / "async"}),
    "AsyncLab.open": lambda d: (_await(memlab.AsyncLab.open), {"path": d.folder / "async"}),
    "AsyncLab.run": lambda d: (_await(memlab.AsyncLab(d.lab).run), {"f": d.lab.close}),
    "AsyncLab.on": lambda d: (
        _await(memlab.AsyncLab(d.lab).on),
        {"verb": "recall", "f": print},
    ),
    # -- remembering --------------------------------------------------------------------------------------------------
    "Lab.remember": lambda d: (d.lab.remember, {"text": "new", "kind": "fact"}),
    "Lab.load": lambda d: (
        d.lab.load,
        {"x": [{"role": "user", "content": "hello"}], "progress": False},
    ),
    "LabAgents.admit": lambda d: (d.lab.agents.admit, {"text": "I prefer tabs"}),
    "LabAgents.observe": lambda d: (d.lab.agents.observe, {"text": "How are you?"}),
    "LabAgents.extract": lambda d: (d.lab.agents.extract, {"messages": "I live in Rome"}),
    "Extracted.__getitem__": lambda d: (
        d.lab.agents.extract("I live in Rome").__getitem__,
        {"index": 0},
    ),
    "LanguageModel": lambda d: (
        memlab.LanguageModel,
        {"url": "http://127.0.0.1:9/v1", "name": "small"},
    ),
    "LanguageModel.ask": lambda d: (
        memlab.LanguageModel("http://127.0.0.1:9/v1", "small").ask,  # where nobody listens
        {"instructions": "Answer", "text": "What?"},
    ),
    "LabAgents.commit": lambda d: (
        d.lab.agents.commit,
        {"extracted": d.lab.agents.extract("I live in Rome")},
    ),
    "LabAgents.end_session": lambda d: (
        d.lab.agents.end_session,
        {"session": "s9", "messages": ["I live in Rome"]},
    ),
    "LabFeatures.add": lambda d: (
        d.lab.features.add,
        {"name": "own", "given": pl.col("importance")},
    ),
    "LabFeatures.remove": lambda d: (
        d.lab.features.remove,
        {"name": d.lab.features.add("own", pl.col("importance")).name},
    ),
    "LabFacts.add": lambda d: (
        d.lab.facts.add,
        {"subject": "Ada", "predicate": "likes", "value": "tea"},
    ),
    "LabGraph.describe_tag": lambda d: (
        d.lab.graph.describe_tag,
        {"tag": "release", "description": "when a version is published"},
    ),
    "LabGraph.tag": lambda d: (d.lab.graph.tag, {"memories": 1, "tags": "ci"}),
    "LabGraph.link": lambda d: (d.lab.graph.link, {"source": 1, "target": 2}),
    "LabGraph.link_waiting": lambda d: (d.lab.graph.link_waiting, {"timeout": 0.0}),
    "conversation": lambda d: (conversation, {"lab": d.lab, "conversation": d.talk}),
    "Remembered.__getitem__": lambda d: (d.lab.remember(["new"]).__getitem__, {"index": 0}),
    # -- asking -------------------------------------------------------------------------------------------------------
    "Lab.recall": lambda d: (d.lab.recall, {"query": "tabs"}),
    "Lab.context": lambda d: (d.lab.context, {"task": "tabs in api.py", "files": ["api.py"]}),
    "LabAgents.recalls": lambda d: (d.lab.agents.recalls, {"since": "2026-01-01"}),
    "LabAgents.metrics": lambda d: (d.lab.agents.metrics, {}),
    "Metrics.__getitem__": lambda d: (d.lab.agents.metrics().__getitem__, {"metric": "coverage"}),
    "Metrics.report": lambda d: (
        d.lab.agents.metrics().report,
        {"path": d.folder / "metrics.html"},
    ),
    "LabGraph.similar": lambda d: (d.lab.graph.similar, {"memory": 1}),
    "LabPolicies.recall_again": lambda d: (
        d.lab.policies.recall_again,
        {"decision": {"decision": d.hits.decision}, "pack": d.lab.policies.pack},
    ),
    "LabAgents.turns": lambda d: (d.lab.agents.turns, {}),
    "LabAgents.switch_off": lambda d: (
        d.lab.agents.switch_off,
        {"project": "api", "reason": "under audit"},
    ),
    "LabAgents.switch_on": lambda d: (d.lab.agents.switch_on, {"project": "api", "by": "ida"}),
    "LabAgents.__call__": lambda d: (d.lab.agents, {"name": "tutor", "project": "api"}),
    "Agent.remember": lambda d: (
        d.agent.remember,
        {"text": "Fractions went badly", "kind": "learning"},
    ),
    "Session.before": lambda d: (
        d.agent.session("s1").before,
        {"text": "tabs", "system": "Be brief"},
    ),
    "Session.after": lambda d: (d.chat.after, {"answer": "Fractions went badly"}),
    "Lab.agent": lambda d: (d.lab.agent, {"name": "tutor", "project": "algebra"}),
    "Lab.on": lambda d: (d.lab.on, {"verb": "recall", "f": print}),
    "Agent.recall": lambda d: (d.agent.recall, {"query": "tabs"}),
    "Agent.context": lambda d: (d.agent.context, {"task": "tabs in api.py", "files": ["api.py"]}),
    "Agent.feedback": lambda d: (d.agent.feedback, {"hit": d.hits[0], "outcome": "success"}),
    "Agent.edit": lambda d: (d.agent.edit, {"memory": d.own, "text": "Fractions went well"}),
    "Agent.forget": lambda d: (d.agent.forget, {"memory": d.own}),
    "Agent.restore": lambda d: (d.agent.restore, {"memory": d.own}),
    "Agent.turns": lambda d: (d.agent.turns, {}),
    "Agent.end_session": lambda d: (d.agent.end_session, {"messages": ["I live in Rome"]}),
    "Agent.touch": lambda d: ((d.scanned, d.agent.touch)[1], {"files": ["deploys/x.py"]}),
    "Agent.conversation": lambda d: (d.agent.conversation, {"at": SAID}),
    "Turns.offer": lambda d: (d.lab.agents.turns().offer, {"context": "tabs"}),
    "Turns.wait": lambda d: (d.lab.agents.turns().wait, {"timeout": 0.0}),
    "Surfaced.__getitem__": lambda d: (_surfaced(d.lab).__getitem__, {"index": slice(None)}),
    "LabFacts.frame": lambda d: (d.lab.facts.frame, {}),
    "LabFacts.narrative": lambda d: (d.lab.facts.narrative, {"about": "Where does Ada live?"}),
    "LabFacts.profile": lambda d: (d.lab.facts.profile, {"subject": "Ada"}),
    "Lab.__getitem__": lambda d: (d.lab.__getitem__, {"memory": 1}),
    "LabGraph.activate": lambda d: (d.lab.graph.activate, {"seeds": [1, 2]}),
    "LabGraph.trace": lambda d: (d.lab.graph.trace, {"memory": 1}),
    "LabGraph.stats": lambda d: (d.lab.graph.stats, {"progress": False}),
    "Lab.at": lambda d: (d.lab.at, {"when": "2026-03-01"}),
    "LabReview.provenance": lambda d: (d.lab.upkeep.review.provenance, {"memory": 1}),
    "LabReview.related": lambda d: (d.lab.upkeep.review.related, {}),
    "LabUpkeep.forecast": lambda d: (
        d.lab.upkeep.forecast,
        {"memories": 1, "until": "2026-04-01", "points": 3},
    ),
    "Hits.__getitem__": lambda d: (d.hits.__getitem__, {"index": 0}),
    "Hit.explain": lambda d: (d.hits[0].explain, {}),
    "Hits.explain": lambda d: (d.hits.explain, {"memory": d.hits[0]}),
    "Hits.why": lambda d: (d.hits.why, {"a": d.hits[0].id}),
    "Hit.above": lambda d: (d.hits[0].above, {}),
    "Tree.text": lambda d: (d.hits.explain(d.hits[0]).tree.text, {}),
    # -- use ----------------------------------------------------------------------------------------------------------
    "Lab.feedback": lambda d: (d.lab.feedback, {"hit": d.hits[0], "outcome": "success"}),
    "LabCredits.answer": lambda d: (
        d.lab.agents.credits.answer,
        {"answer": "You prefer tabs", "hits": d.hits},
    ),
    "LabCredits.transcript": lambda d: (d.lab.agents.credits.transcript, {"messages": TALK}),
    "LabCredits.calibrate": lambda d: (d.lab.agents.credits.calibrate, {"judged": JUDGED}),
    "Calibration.chance": lambda d: (
        d.lab.agents.credits.calibration.chance,
        {"credit": np.array([0.5])},
    ),
    "Calibration.confidence": lambda d: (
        d.lab.agents.credits.calibration.confidence,
        {"credit": np.array([0.5])},
    ),
    "LabAgents.verify": lambda d: (d.lab.agents.verify, {"hits": d.hits, "accepted": d.hits[:1]}),
    "overlap": lambda d: (overlap, {"hits": d.hits}),
    "local": lambda d: (local, {"hits": d.hits}),
    "Verdict": lambda d: (Verdict, {"accepted": [1]}),
    "LabReview.close_gap": lambda d: (
        d.lab.upkeep.review.close_gap,
        {"gap": d.verified, "reason": "told"},
    ),
    "LabAgents.conversation": lambda d: (d.lab.agents.conversation, {"agent": "coder"}),
    # -- correcting ---------------------------------------------------------------------------------------------------
    "Lab.edit": lambda d: (d.lab.edit, {"memory": 1, "importance": 0.75}),
    "LabReview.deprecate": lambda d: (
        d.lab.upkeep.review.deprecate,
        {"memory": 1, "reason": "wrong"},
    ),
    "Lab.forget": lambda d: (d.lab.forget, {"memory": 1}),
    "Lab.restore": lambda d: (d.lab.restore, {"memory": 5}),
    "LabFacts.retract": lambda d: (d.lab.facts.retract, {"fact": 4}),
    "Lab.purge": lambda d: (d.lab.purge, {"memory": 2}),
    "LabEntities.declare": lambda d: (d.lab.facts.entities.declare, {"name": "Carol"}),
    "LabEntities.merge": lambda d: (d.lab.facts.entities.merge, {"entity": "Bob", "into": "Ada"}),
    "LabEntities.split": lambda d: (
        d.lab.facts.entities.split,
        {"entity": "Ada", "name": "Ada (Oslo)", "facts": [4]},
    ),
    # -- living -------------------------------------------------------------------------------------------------------
    "LabUpkeep.maintain": lambda d: (d.lab.upkeep.maintain, {"progress": False}),
    "LabUpkeep.log_days": lambda d: (d.lab.upkeep.log_days, {"full_days": 9.0, "thin_days": 99.0}),
    "LabUpkeep.thin": lambda d: (
        d.lab.upkeep.thin,
        {"full_days": 9.0, "thin_days": 99.0, "consent": False},
    ),
    "LabUpkeep.schedule": lambda d: (d.lab.upkeep.schedule, {"every": datetime.timedelta(hours=1)}),
    "LabClusters.find": lambda d: (d.lab.graph.clusters.find, {}),
    "Clustered.figure": lambda d: (d.lab.graph.clusters.find().figure, {"axes": None}),
    "Comparison.figure": lambda d: (memlab.compare(d.lab, d.lab, points=2).figure, {"axes": None}),
    "Forecast.figure": lambda d: (
        d.lab.upkeep.forecast(1, "2026-04-01", points=3).figure,
        {"axes": None},
    ),
    "Stats.figure": lambda d: (d.lab.graph.stats().figure, {"axes": None}),
    "LabConsolidation.run": lambda d: (
        d.lab.upkeep.consolidation.run,
        {"older_than_days": 0, "keep": 0},
    ),
    "LabConsolidation.undo": lambda d: (d.lab.upkeep.consolidation.undo, {"summary": 1}),
    # -- moving -------------------------------------------------------------------------------------------------------
    "LabIO.check": lambda d: (d.lab.io.check, {}),
    "LabReview.quarantine": lambda d: (d.lab.upkeep.review.quarantine, {"session": "s1"}),
    "LabReview.release": lambda d: (d.lab.upkeep.review.release, {"quarantine": d.quarantined}),
    "check": lambda d: (memlab.check, {"path": d.on_disk}),
    "restore": lambda d: (memlab.restore, {"path": d.on_disk}),
    "decrypt": lambda d: (memlab.decrypt, {"path": d.on_disk}),
    "encrypt": lambda d: (memlab.encrypt, {"path": d.on_disk, "key": "a"}),
    "rekey": lambda d: (memlab.rekey, {"path": d.on_disk, "new_key": "b"}),
    "LabIO.backup": lambda d: (d.lab.io.backup, {"folder": d.folder / "copies"}),
    "LabIO.preview": lambda d: (d.lab.io.preview, {"exclude": ["api"]}),
    "LabIO.move_to": lambda d: (
        d.lab.io.move_to,
        {"target": d.folder / "moved", "exclude": ["api"], "embedder": EMBEDDER},
    ),
    "LabIO.reembed": lambda d: (d.lab.io.reembed, {"timeout": 0.0}),
    "LabIO.scan": lambda d: (d.lab.io.scan, {"table": "edges"}),
    "LabIO.export": lambda d: (
        d.lab.io.export,
        {"path": d.folder / "out.jsonl", "overwrite": True},
    ),
    "LabIO.mirror": lambda d: (d.lab.io.mirror, {"folder": d.folder / "mirror"}),
    "LabIO.join": lambda d: (d.lab.io.join, {"other": d.exported, "dry_run": True}),
    "Joined.count": lambda d: (d.lab.io.join(d.exported, dry_run=True).count, {"what": "added"}),
    "Mirror.wait": lambda d: (d.lab.io.mirror(d.folder / "mirror").wait, {"seconds": 0.0}),
    "Loaded.count": lambda d: (d.lab.load(d.exported).count, {"what": "added"}),
    "LabOperations.run": lambda d: (d.lab.upkeep.operations.run, {"operations": "(stats)"}),
    "LabOperations.adapt_policy": lambda d: (d.lab.upkeep.operations.adapt_policy, {}),
    "LabOperations.check_fall": lambda d: (d.lab.upkeep.operations.check_fall, {}),
    "LabOperations.proposals": lambda d: (d.lab.upkeep.operations.proposals, {"memories": [3]}),
    "Ran.__getitem__": lambda d: (d.lab.upkeep.operations.run("(stats)").__getitem__, {"index": 0}),
    # -- deciding -----------------------------------------------------------------------------------------------------
    "LabPolicies.watch": lambda d: (
        d.lab.policies.watch,
        {"path": d.pack_file, "on_change": print},
    ),
    "LabPolicies.use": lambda d: (d.lab.policies.use, {"pack": "companion"}),
    "LabPolicies.check": lambda d: (d.lab.policies.check, {"slot": "recall-score", "source": RULE}),
    "LabPolicies.install": lambda d: (
        d.lab.policies.install,
        {"slot": "recall-score", "source": RULE},
    ),
    "LabPolicies.rollback": lambda d: (
        d.rule and d.lab.policies.rollback,
        {"slot": "recall-score"},
    ),
    "LabPolicies.pin": lambda d: (d.lab.policies.pin, {"slot": "recall-score"}),
    "LabPolicies.unpin": lambda d: (
        d.lab.policies.pin("link") and d.lab.policies.unpin,
        {"slot": "link"},
    ),
    "LabPolicies.explore": lambda d: (d.lab.policies.explore, {"on": True}),
    "LabPolicies.history": lambda d: (d.lab.policies.history, {}),
    "LabPolicies.diff": lambda d: (d.rule and d.lab.policies.diff, {"slot": "recall-score"}),
    "LabPolicies.deciders": lambda d: (d.lab.policies.deciders, {"pack": d.lab.policies.pack.hash}),
    "LabPolicies.attribution": lambda d: (d.lab.policies.attribution, {}),
    "LabPolicies.__getitem__": lambda d: (d.lab.policies.__getitem__, {"slot": "link"}),
    "FormDiff.text": lambda d: (d.rule and d.lab.policies.diff("recall-score").forms.text, {}),
    "Pack.count": lambda d: (d.lab.policies.pack.count, {"setting": "limit"}),
    "Pack.number": lambda d: (d.lab.policies.pack.number, {"setting": "probe-rate"}),
    "Pack.policy": lambda d: (d.lab.policies.pack.policy, {"slot": "recall-score"}),
    "Pack.unit": lambda d: (d.lab.policies.pack.unit, {"slot": "recall-score"}),
    "Pack.differing": lambda d: (d.lab.policies.pack.differing, {"other": d.lab.policies.pack}),
    "Pack.fingerprints": lambda d: (d.lab.policies.pack.fingerprints, {"embedder": "x"}),
    "Pack.with_params": lambda d: (
        memlab.load_pack("companion").with_params,
        {"values": {"near": 0.5}},
    ),
    "Pack.with_policy": lambda d: (
        d.lab.policies.pack.with_policy,
        {"slot": "recall-score", "policy": d.policy},
    ),
    "Policy.with_params": lambda d: (d.rule.with_params, {"values": {"d": 0.25}}),
    "Policy.field": lambda d: (d.updating.field, {"name": "strength"}),
    "Policy.columns": lambda d: (d.rule.columns, {"frame": d.rows}),
    "Policy.aggregates": lambda d: (d.rule.aggregates, {"frame": d.rows}),
    "Policy.arrays": lambda d: (
        d.rule.arrays,
        {"columns": {n: np.array([v]) for n, v in FACTS.items()}},
    ),
    "Policy.updates": lambda d: (d.updating.updates, {"columns": d.updated}),
    "Policy.row": lambda d: (d.rule.row, {"values": FACTS}),
    "Policy.explain": lambda d: (d.rule.explain, {"values": FACTS}),
    "Policy.why": lambda d: (d.rule.why, {"a": FACTS, "b": {**FACTS, "recency": 0.0}}),
    # -- the index ----------------------------------------------------------------------------------------------------
    "LabModules.scan": lambda d: (
        d.lab.agents.modules.scan,
        {"path": d.folder, "project": "api", "progress": False},
    ),
    "LabModules.map": lambda d: (d.scanned.map, {"project": "api"}),
    "LabModules.find": lambda d: (
        d.scanned.find,
        {"task": "deploys", "project": "api", "limit": 2},
    ),
    "LabModules.touch": lambda d: (
        d.scanned.touch,
        {"files": ["deploys/x.py"], "project": "api", "session": "s"},
    ),
    "ModuleMap.to_html": lambda d: (d.scanned.map("api").to_html, {"path": d.folder / "map.html"}),
    "LabModules.describe": lambda d: (
        d.scanned.describe,
        {
            "module": "deploys",
            "project": "api",
            "description": "How it goes out.",
            **{name: ["deploys/x.py"] for name in ("files", "tests", "entry_points")},
            "depends_on": ["core"],
            "new": True,
        },
    ),
    "LabIndex.report": lambda d: (d.lab.upkeep.index.report, {"progress": False}),
    "LabIndex.rebuild": lambda d: (d.lab.upkeep.index.rebuild, {}),
    "LabIndex.wait": lambda d: (d.lab.upkeep.index.wait, {"timeout": 0.0}),
    "Embedder.encode": lambda d: (EMBEDDER.encode, {"texts": ["tabs"]}),
    "Embedder.pair_closeness": lambda d: (
        EMBEDDER.pair_closeness,
        {"cosine": np.array([0.5]), "length": np.array([40.0])},
    ),
    "Embedder.closeness": lambda d: (EMBEDDER.closeness, {"cosine": np.array([0.5])}),
    # -- logs ---------------------------------------------------------------------------------------------------------
    "Slates": lambda d: (memlab.Slates, {name: frame.lazy() for name, frame in d.frames.items()}),
    "Slates.from_frames": lambda d: (memlab.Slates.from_frames, d.frames),
    "Slates.from_wide": lambda d: (memlab.Slates.from_wide, {"frame": d.log.to_wide(), **WIDE}),
    "Slates.filter": lambda d: (d.log.filter, {}),
    "Slates.split": lambda d: (d.log.split, {"by": "cluster"}),
    "Slates.to_wide": lambda d: (d.log.to_wide, {}),
    "Slates.fingerprints": lambda d: (d.lab.slates().fingerprints, {"decision": d.hits.decision}),
    "failures": lambda d: (
        memlab.failures,
        {"slates": d.log, "labels": pl.DataFrame({"decision": ["q1", "q2"], "memory_id": [1, 1]})},
    ),
    "evaluate": lambda d: (
        memlab.evaluate,
        {"slates": d.log, "policies": ["similarity"], "missing": "zero"},
    ),
    "partial": lambda d: (partial, {"table": d.log, "policies": ["similarity"], "missing": "zero"}),
    "Sums.merge": lambda d: (Sums.merge, {"parts": [d.sums]}),
    "Sums.evaluate": lambda d: (d.sums.evaluate, {"level": 0.9}),
    "Sums.from_bytes": lambda d: (Sums.from_bytes, {"content": d.sums.to_bytes()}),
    "record": lambda d: (
        memlab.record,
        {"search": lambda query, k: ["tabs", "spaces"], "log": d.folder / "recorded"},
    ),
    "read_record": lambda d: (memlab.read_record, {"log": d.recorded.settings.log}),
    "read_spans": lambda d: (memlab.read_spans, {"path": d.spans}),
    "Recorder.challenge": lambda d: (
        d.recorded.challenge,
        {"search": lambda query, k: ["spaces"], "name": "new"},
    ),
    "Recorder.end_challenge": lambda d: (d.recorded.end_challenge, {"name": "old"}),
    "Recorder.feedback": lambda d: (
        d.recorded.feedback,
        {"decision": 1, "item": d.recorded("tabs?").ids[0], "reward": 1.0},
    ),
    "Recorder.verdict": lambda d: (d.recorded.verdict, {"challenger": "old"}),
    "RecordedHits.used": lambda d: (d.recorded("tabs?").used, {"answer": "Use tabs."}),
    "RecordedHits.feedback": lambda d: (
        (hits := d.recorded("tabs?")).feedback,
        {"item": hits.ids[0], "reward": 1.0},
    ),
    "verdict": lambda d: (memlab.verdict, {"slates": d.challenged, "missing": "zero"}),
    "Verdicts.report": lambda d: (
        memlab.verdict(d.challenged).report,
        {"path": d.folder / "verdict.html"},
    ),
    "Verdicts.figure": lambda d: (memlab.verdict(d.challenged).figure, {"axes": None}),
    "Verdicts.__getitem__": lambda d: (
        memlab.verdict(d.challenged).__getitem__,
        {"challenger": "associative"},
    ),
    "Lab.score": lambda d: (d.asked.score, {"policies": "similarity", "metrics": "mrr"}),
    "LabQuestions.add": lambda d: (
        d.lab.questions.add,
        {"questions": "when?", "wants": [2], "project": "api", "category": "time"},
    ),
    "LabQuestions.propose": lambda d: (d.lab.questions.propose, {"limit": 3}),
    "LabQuestions.accept": lambda d: (d.asked.questions.accept, {"ids": [1]}),
    "LabQuestions.remove": lambda d: (d.asked.questions.remove, {"ids": [1]}),
    "LabQuestions.label_recalls": lambda d: (
        d.asked.questions.label_recalls,
        {"slates": d.asked.slates()},
    ),
    "Scores.gained": lambda d: (d.asked.score("recency").gained, {"policy": "recency"}),
    "Scores.lost": lambda d: (d.asked.score("recency").lost, {"policy": "recency"}),
    "Lab.verdict": lambda d: (d.challenged.verdict, {"missing": "zero"}),
    "Lab.challenge": lambda d: (d.lab.challenge, {"pack": "cascade", "reason": "is it better?"}),
    "Lab.guard": lambda d: (d.lab.guard, {"pack": "cascade", "reason": "is it as good?"}),
    "LabPolicies.calibrate": lambda d: (
        d.asked.policies.calibrate,
        {"questions": [{"query": f"tabs {n}?", "wants": [1]} for n in range(20)], "install": False},
    ),
    "LabPolicies.challenge": lambda d: (d.lab.policies.challenge, {"pack": "cascade"}),
    "LabPolicies.end_challenge": lambda d: (
        d.challenged.policies.end_challenge,
        {"name": "associative"},
    ),
    "judge": lambda d: (judge, {"rankings": [["a", "b"]], "evidence": [["b"]], "depth": 2}),
    "measure": lambda d: (
        measure,
        {"judged": judge([["a"]], [["a"]], depth=1), "name": "recall@1"},
    ),
    "cluster_interval": lambda d: (
        cluster_interval,
        {"values": [0.2, 0.4, 0.5], "clusters": ["a", "a", "b"]},
    ),
    "compare_periods": lambda d: (
        compare_periods,
        {"slates": d.rewarded, "packs": ["a", "b"], "live": "b"},
    ),
    "Earnings.add": lambda d: (Earnings().add, {"pack": "a", "day": 1, "reward": 1.0}),
    "Earnings.may_have_fallen": lambda d: (
        Earnings().may_have_fallen,
        {"packs": ["a", "b"], "live": "b"},
    ),
    "Seam.ask": lambda d: (d.seam.ask, {"slot": "promote"}),
    "Seam.write": lambda d: (d.seam.write, {"kind": "fuzzed", "body": {}}),
    "Seam.projection": lambda d: (d.seam.projection, {"kind": Visits}),
    "load_embedder": lambda d: (load_embedder, {"spec": hashed, "name": "hashed"}),
    "Embedder.encode_queries": lambda d: (EMBEDDER.encode_queries, {"texts": ["tabs?"]}),
    "connect": lambda d: (connect, {"url": "http://127.0.0.1:9", "token": "x" * 20}),
    "read_audit_log": lambda d: (read_audit_log, {"folder": d.folder}),
    "lab_server": lambda d: (lab_server, {"lab": d.lab}),
    "MemoryTable.link": lambda d: (
        memlab.widgets.MemoryTable(d.lab).link,
        {"other": memlab.widgets.MemoryMap(d.lab)},
    ),
    "PolicyStudio.save": lambda d: (
        memlab.widgets.PolicyStudio(d.lab, questions=["tabs"]).save,
        {"path": d.folder / "studio.hy"},
    ),
    "Widget.answer": lambda d: (
        memlab.widgets.MemoryTable(d.lab).answer,
        {"message": {"id": 1, "verb": "page", "arguments": {}}},
    ),
    "extend": lambda d: (memlab.extend, {"extension": memlab.Extension("fuzzed", "1.0")}),
    "plan": lambda d: (
        memlab.plan,
        {"slates": d.rewarded, "policies": ["near", "far"], "baseline": "near"},
    ),
    "evolve": lambda d: (
        memlab.evolve,
        {
            "data": d.rewarded,
            "start": "near",
            "missing": "zero",
            "budget": 4,
            "cluster": "decision",
        },
    ),
    "Evolved.diff": lambda d: (d.evolved().diff, {"policy": d.evolved().front["hash"][0]}),
    "Evolved.figure": lambda d: (d.evolved().figure, {}),
    "Evolved.report": lambda d: (d.evolved().report, {"path": d.folder / "evolved.html"}),
    "tune": lambda d: (
        memlab.tune,
        {
            "slates": d.slates,
            "policy": RULE,
            "metric": "value",
            "missing": "zero",
            "budget": 20,
            "folds": 2,
        },
    ),
    "Evaluation.disagreements": lambda d: (
        d.evaluation().disagreements,
        {"a": "similarity", "b": "recency"},
    ),
    "Estimate.at_level": lambda d: (
        cluster_interval([0.2, 0.4, 0.5], ["a", "a", "b"]).at_level,
        {"level": 0.9},
    ),
    "Evaluation.pairs": lambda d: (d.evaluation().pairs, {"adjust": "bh"}),
    "Evaluation.figure": lambda d: (d.evaluation().figure, {"kind": "leaderboard", "axes": None}),
    "Report.text": lambda d: (d.evaluation().text, {"width": 60}),
    "Evaluation.report": lambda d: (d.evaluation().report, {"path": d.folder / "report.html"}),
    "Evaluation.target": lambda d: (d.evaluation().target, {"policy": "similarity"}),
    "Disagreements.__getitem__": lambda d: (
        d.evaluation().disagreements("similarity", "recency").__getitem__,
        {"at": 0},
    ),
    "Settings.by": lambda d: (d.evaluation().settings.by, {"metric": "recall@10"}),
    "compare": lambda d: (memlab.compare, {"a": d.lab, "b": d.lab, "points": 2}),
    "replay": lambda d: (memlab.replay, {"lab": d.lab, "pack": "companion", "progress": False}),
    "bench_budgets": lambda d: (
        memlab.bench_budgets,
        {
            "source": [d.labelled],
            "budgets": [60],
            "baselines": False,
            "embedder": EMBEDDER,
        },
    ),
    "BudgetResult.figure": lambda d: (d.budgets().figure, {"axes": None}),
    "BudgetResult.report": lambda d: (d.budgets().report, {"path": d.folder / "budgets.html"}),
    "ForecastResult.figure": lambda d: (
        memlab.bench_reviews(REVIEWS, packs=["fsrs"]).figure,
        {"packs": ["fsrs"], "axes": None},
    ),
    "hook_settings": lambda d: (hook_settings, {"host": "claude", "command": "memlab hook run"}),
    "answer_hook": lambda d: (
        answer_hook,
        {"lab": d.lab, "event": {"hook_event_name": "SessionStart", "session_id": "s"}},
    ),
    "read_transcript": lambda d: (read_transcript, {"path": d.folder / "none.jsonl"}),
    "read_answer": lambda d: (
        read_answer,
        {"question": "When did Ida sail?", "context": "- 2026-05-08, Ida: I sailed yesterday."},
    ),
    "token_f1": lambda d: (token_f1, {"answer": "7 May", "expected": "May 7"}),
    "bench_conversations": lambda d: (
        memlab.bench_conversations,
        {
            "conversations": [d.labelled],
            "packs": ["memlab"],
            "baselines": False,
            "embedder": EMBEDDER,
        },
    ),
    "Experiment": lambda d: (
        memlab.Experiment,
        {
            "name": "words",
            "policies": ["bm25"],
            "data": {"talk": [d.labelled]},
            "metrics": ["recall@5"],
            "seeds": [0],
            "folder": d.folder / "runs",
            "measure": None,
            "embedder": EMBEDDER,
        },
    ),
    "Experiment.read": lambda d: (memlab.Experiment.read, {"path": d.folder / "none.toml"}),
    "Experiment.run": lambda d: (d.experiment().run, {"progress": False}),
    "Experiment.compare": lambda d: (
        d.experiment().run().compare,
        {"a": "bm25", "b": "dense", "level": 0.9, "adjust": "bh"},
    ),
    "Experiment.figure": lambda d: (
        d.experiment().run().figure,
        {"metric": "recall@5", "axes": None},
    ),
    "Experiment.report": lambda d: (
        d.experiment().run().report,
        {"path": d.folder / "experiment.html"},
    ),
    "bench_dynamics": lambda d: (
        memlab.bench_dynamics,
        {"conversations": [d.labelled], "packs": ["memlab"], "embedder": EMBEDDER},
    ),
    "bench_reviews": lambda d: (
        memlab.bench_reviews,
        {
            "reviews": REVIEWS,
            "packs": ["fsrs"],
        },
    ),
    "bench_wanted": lambda d: (memlab.bench_wanted, {"lab": d.lab, "packs": ["fsrs"]}),
    "bench_lab": lambda d: (
        memlab.bench_lab,
        {
            "lab": d.folder / "none",
            "questions": [WantedMemories("tabs?", ("1",))],
            "packs": ["memlab"],
            "baselines": False,
            "embedder": EMBEDDER,
        },
    ),
    # -- conversations and lives --------------------------------------------------------------------------------------
    "Turn": lambda d: (
        Turn,
        {"ref": "D1:1", "speaker": "Ada", "text": "hi", "session": "s", "at": SAID},
    ),
    "Question": lambda d: (Question, {"text": "Where?", "category": 1, "evidence": ("D1:1",)}),
    "Conversation": lambda d: (Conversation, {"name": "talk", "turns": d.talk.turns}),
    "Conversation.rows": lambda d: (d.talk.rows, {}),
    "LabelledConversation": lambda d: (
        LabelledConversation,
        {"conversation": d.talk, "questions": ()},
    ),
    "download_locomo": lambda d: (
        download_locomo,
        {"target": d.downloaded[0], "sha256": d.downloaded[1], "url": "file:///nowhere"},
    ),
    "WantedMemories": lambda d: (WantedMemories, {"text": "Where?", "wanted": ("1",)}),
    "correct_evidence": lambda d: (
        correct_evidence,
        {"conversations": (LabelledConversation(d.talk, ()),), "path": d.folder / "none.json"},
    ),
    "check_digest": lambda d: (check_digest, {"path": d.folder, "expected": ""}),
    "digest": lambda d: (digest, {"path": d.folder}),
    "read_lmeb": lambda d: (read_lmeb, {"folder": d.folder / "none"}),
    "read_longmemeval": lambda d: (read_longmemeval, {"path": d.folder / "none.json"}),
    "read_questions": lambda d: (read_questions, {"path": d.folder / "none.jsonl"}),
    "read_beam": lambda d: (read_beam, {"folder": d.folder / "none"}),
    "read_locomo": lambda d: (read_locomo, {"path": d.folder / "none.json"}),
    "MessageEvent": lambda d: (MessageEvent, {"at": 0, "ref": "r", "text": "tabs"}),
    "QuestionEvent": lambda d: (QuestionEvent, {"at": 0, "number": 1, "text": "tabs?"}),
    "Phase": lambda d: (Phase, {}),
    "World": lambda d: (World, {"name": "tiny", "days": 1, "projects": 1}),
    "World.phase": lambda d: (World("tiny", days=2).phase, {"day": 0}),
    "User": lambda d: (User, {}),
    "User.react": lambda d: (
        User().react,
        {"utility": np.array([0.5]), "rng": np.random.default_rng(1)},
    ),
    "User.reward": lambda d: (User().reward, {"utility": np.array([0.5])}),
    "Transcript": lambda d: (Transcript, {"name": "t", "script": (MessageEvent(0, "r", "tabs"),)}),
    "from_conversations": lambda d: (
        from_conversations,
        {
            "turns": {"talk": d.talk.rows()},
            "questions": {"talk": [{"text": "Where?", "evidence": ["D1:1"]}]},
        },
    ),
    "live": lambda d: (
        live,
        {"world": World("tiny", days=1, projects=1, messages_per_day=2), "embedder": EMBEDDER},
    ),
    "Life.earned": lambda d: (d.life.earned, {"of": "utility"}),
    "sample_lab": lambda d: (sample_lab, {"path": None}),
    "trial": lambda d: (
        trial,
        {
            "packs": ["memlab", "workbench"],
            "world": World("tiny", days=1, projects=1, messages_per_day=2),
            "seeds": 1,
            "embedder": EMBEDDER,
        },
    ),
    "Life.truth": lambda d: (d.life.truth, {"policy": "memlab", "how": "rescore"}),
    # -- other frameworks' interfaces ---------------------------------------------------------------------------------
    "LabSession": lambda d: (LabSession, {"session_id": "s1", "lab": d.lab}),
    "LabSession.add_items": lambda d: (
        d.session("add_items"),
        {"items": [{"role": "user", "content": "tabs"}]},
    ),
    "LabSession.get_items": lambda d: (d.session("get_items"), {}),
    "Mem0Memory": lambda d: (Mem0Memory, {"lab": d.lab}),
    "AsyncMem0Memory": lambda d: (AsyncMem0Memory, {"lab": d.lab}),
    "AsyncMem0Memory.from_config": lambda d: (AsyncMem0Memory.from_config, {"config_dict": {}}),
    "Mem0Memory.from_config": lambda d: (Mem0Memory.from_config, {"config_dict": {}}),
    "Mem0Memory.add": lambda d: (d.mem0.add, {"messages": TALK, "user_id": "ada"}),
    "Mem0Memory.delete": lambda d: (d.mem0.delete, {"memory_id": d.mem0_id}),
    "Mem0Memory.delete_all": lambda d: (d.mem0.delete_all, {"user_id": "ada"}),
    "Mem0Memory.get": lambda d: (d.mem0.get, {"memory_id": d.mem0_id}),
    "Mem0Memory.get_all": lambda d: (d.mem0.get_all, {"filters": {"user_id": "ada"}}),
    "Mem0Memory.history": lambda d: (d.mem0.history, {"memory_id": d.mem0_id}),
    "Mem0Memory.search": lambda d: (d.mem0.search, {"query": "tea", "filters": {"user_id": "ada"}}),
    "Mem0Memory.update": lambda d: (
        d.mem0.update,
        {"memory_id": d.mem0_id, "text": "I prefer mate"},
    ),
    "MemoryFiles": lambda d: (MemoryFiles, {"lab": d.lab}),
    "MemoryFiles.create": lambda d: (d.files.create, {"path": "/memories/b.md", "file_text": "b"}),
    "MemoryFiles.delete": lambda d: (d.files.delete, {"path": "/memories/a.md"}),
    "MemoryFiles.insert": lambda d: (
        d.files.insert,
        {"path": "/memories/a.md", "insert_line": 0, "insert_text": "zero"},
    ),
    "MemoryFiles.rename": lambda d: (
        d.files.rename,
        {"old_path": "/memories/a.md", "new_path": "/memories/b.md"},
    ),
    "MemoryFiles.run": lambda d: (
        d.files.run,
        {"command": {"command": "view", "path": "/memories"}},
    ),
    "MemoryFiles.str_replace": lambda d: (
        d.files.str_replace,
        {"path": "/memories/a.md", "old_str": "one", "new_str": "a"},
    ),
    "MemoryFiles.view": lambda d: (d.files.view, {"path": "/memories/a.md"}),
    "read_memfs": lambda d: (read_memfs, {"lab": d.lab, "folder": d.memfs}),
    "write_memfs": lambda d: (write_memfs, {"lab": d.lab, "folder": d.folder / "written"}),
}
