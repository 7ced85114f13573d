"""Types of ``AsyncLab``, written by ``python tests/async_stub.py``: do not edit."""

# A text is an iterable of texts, as in the sources.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, overload

import polars as pl

from memlab.kernel.base.arguments import Count, Seconds, Seed
from memlab.kernel.base.clock import Clock, When
from memlab.kernel.embedding import Embedder, EmbedderSpec
from memlab.kernel.index import IndexReport
from memlab.kernel.journal import KeySource
from memlab.kernel.language import Policy
from memlab.kernel.policies import (
    Challenge,
    ChallengeDesign,
    ExtraItems,
    Feature,
    Pack,
    PackLike,
    PolicyLike,
    Version,
    VersionLog,
)
from memlab.kernel.recall import Hits, WordOrWords
from memlab.kernel.slates import Slates
from memlab.kernel.storage.store import Store
from memlab.kernel.verbs.core import Memories, MemoryLike
from memlab.kernel.verbs.corrections.corrections import Corrected
from memlab.kernel.verbs.results import Edited, Edits, Feedback, Memory, Remembered
from memlab.science.batch import Workers
from memlab.science.evaluation import Verdicts
from memlab.subjects.agents.relationships import Relationship
from memlab.subjects.agents.turns import Surfaced
from memlab.subjects.agents.verifying import Verified
from memlab.subjects.attribution.attribution import Attributed, Messages
from memlab.subjects.attribution.known import Calibration
from memlab.subjects.clusters.clusters import Clustered
from memlab.subjects.clusters.consolidation import Consolidated, Summarise
from memlab.subjects.clusters.grouping import Grouping
from memlab.subjects.clusters.stats import Stats
from memlab.subjects.context.context import Context, Metrics
from memlab.subjects.extraction.extraction import Learned
from memlab.subjects.extraction.staged import Extracted
from memlab.subjects.facts.entities import Entity
from memlab.subjects.facts.narrative import Narrative
from memlab.subjects.guard.guard import Guard
from memlab.subjects.identity import Identity
from memlab.subjects.io.backups import Backup
from memlab.subjects.io.checking import Checked
from memlab.subjects.io.keeping import Thinning, Usage
from memlab.subjects.io.migrating import Moved, Preview
from memlab.subjects.io.mirror import Mirror
from memlab.subjects.io.reembedding import Reembedding
from memlab.subjects.io.results import Joined, Loaded
from memlab.subjects.lab import Lab
from memlab.subjects.listening import Listener, VerbCall
from memlab.subjects.models import LanguageModel, Otherwise
from memlab.subjects.modules.module_map import ModuleMap
from memlab.subjects.observing.observing import Admission, Observation
from memlab.subjects.programs.adapting import Adapted, Estimator, Missing
from memlab.subjects.programs.operations import Fuel, Proposal, Ran
from memlab.subjects.purge.receipt import Purged
from memlab.subjects.questions.questions import Ids
from memlab.subjects.questions.scoring import Scores
from memlab.subjects.retention.forecast import Forecast
from memlab.subjects.retention.retention import OnUpkeep, Schedule
from memlab.subjects.retention.upkeep import Upkeep
from memlab.subjects.review.review import Quarantined
from memlab.subjects.verifiers import Verifier

__all__ = ["AsyncLab"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

class _Live:
    def __await__(self) -> Generator[Any, Any, Self]: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

class AsyncLab:
    @property
    def policies(self) -> AsyncLabPolicies:
        """The accessor for packs and policies: choose, install, pin, compare, watch."""
    @property
    def features(self) -> AsyncLabFeatures:
        """The accessor for features, which are defined by expressions or functions."""
    @property
    def facts(self) -> AsyncLabFacts:
        """The accessor for facts as rows, facts as text, and entities."""
    @property
    def graph(self) -> AsyncLabGraph:
        """The accessor for edges, activation, similar memories, clusters and statistics."""
    @property
    def upkeep(self) -> AsyncLabUpkeep:
        """The accessor for decay, schedules, forecasts, consolidation and review."""
    @property
    def agents(self) -> AsyncLabAgents:
        """The accessor for agents; ``lab.agents("tutor")`` returns the agent "tutor"."""
    def agent(
        self,
        name: str,
        *,
        project: str | None = None,
        session: str | None = None,
        role: str = "member",
    ) -> AsyncAgent:
        """Return an agent that reads and writes memories under its own name."""
    @property
    def io(self) -> AsyncLabIO:
        """The accessor for exports, mirrors, backups, checks and re-embedding."""
    @property
    def questions(self) -> AsyncLabQuestions:
        """The accessor for labelled questions: add, infer, propose, accept, remove."""
    @overload
    async def remember(
        self,
        text: str,
        *,
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory: ...
    @overload
    async def remember(
        self,
        text: pl.DataFrame | Iterable[Mapping[str, Any] | str],
        *,
        chain: bool = False,
        linking: str | None = None,
    ) -> Remembered: ...
    async def load(
        self,
        x: Any,
        *,
        format: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        project: str | None = None,
        session: str | None = None,
        linking: str | None = None,
        policies: bool = False,
        strict: bool = False,
        extract: bool = False,
        seconds: Seconds | None = 3600,
        progress: bool = True,
        key: KeySource | None = None,
    ) -> Loaded:
        """Add the contents of a file, a folder, another lab, a frame or messages."""
    async def recall(
        self,
        query: str,
        *,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        branch: WordOrWords = None,
        scope: WordOrWords = None,
        visibility: WordOrWords = None,
        status: WordOrWords = None,
        season: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
        at: When | None = None,
        pack: PolicyLike | None = None,
        params: Mapping[str, float] | None = None,
        log: bool = True,
        explore: bool | Literal["within"] | None = None,
        again: bool | None = True,
    ) -> Hits:
        """Retrieve the memories that the active pack ranks highest for ``query``."""
    async def context(
        self,
        task: str,
        *,
        budget: Count = 1800,
        session: str | None = None,
        project: str | None = None,
        files: str | Sequence[str] = (),
        viewer: str | None = None,
        at: When | None = None,
        again: bool = False,
        log: bool = True,
        tokens: Callable[[str], float] | None = None,
    ) -> Context:
        """Build a prompt context for ``task`` within a token budget."""
    @overload
    async def feedback(
        self,
        hit: MemoryLike,
        outcome: str | None = None,
        *,
        rating: int | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
        decision: int | None = None,
    ) -> Feedback: ...
    @overload
    async def feedback(
        self,
        hit: pl.DataFrame | list[MemoryLike] | Iterable[Mapping[str, Any]],
        outcome: str | None = None,
        *,
        rating: int | None = None,
        reward: float | None = None,
        agent: str | None = None,
        source: str = "user",
        at: When | None = None,
        decision: int | None = None,
    ) -> tuple[Feedback, ...]: ...
    @overload
    async def edit(
        self, memory: MemoryLike, *, text: str | None = None, **fields: Any
    ) -> Edited: ...
    @overload
    async def edit(self, memory: pl.DataFrame) -> Edits: ...
    @overload
    async def forget(
        self,
        memory: Memories | None = None,
        *,
        how: Literal["forget", "delete", "deprecate"] = "forget",
        project: str | None = None,
        reason: str = "",
    ) -> Corrected: ...
    @overload
    async def forget(
        self,
        *,
        how: Literal["quarantine"],
        source: str | None = None,
        session: str | None = None,
        creator: str | None = None,
        since: When | None = None,
        reason: str = "",
        dry_run: bool = False,
        replay: int = 100,
        progress: bool = True,
    ) -> Quarantined: ...
    async def restore(
        self, memory: Memories | None = None, *, project: str | None = None, quarantine: Any = None
    ) -> Corrected:
        """Restore forgotten, deleted, expired, deprecated or quarantined memories."""
    async def purge(
        self,
        memory: Memories | None = None,
        *,
        project: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        creator: str | None = None,
        overdue: bool = False,
        remove_exports: bool = False,
        reason: str = "",
    ) -> Purged:
        """Delete memories permanently, and return a receipt."""
    @property
    def memories(self) -> Awaitable[pl.DataFrame]:
        """Every memory as a row, whatever its status, ordered by id."""
    @property
    def edges(self) -> Awaitable[pl.DataFrame]:
        """Every edge as a row, in the order of creation."""
    @property
    def log(self) -> Awaitable[pl.DataFrame]:
        """Every event as a row: event, at, kind, memories, edges, what."""
    async def slates(self) -> Slates:
        """Return every logged recall and its feedback as four lazy frames."""
    def at(
        self,
        when: When | None = None,
        *,
        event: int | None = None,
        viewer: str | None = None,
        progress: bool = True,
    ) -> AsyncLab:
        """Return the lab as of a past time or event, as a viewer sees it, or both."""
    async def challenge(
        self,
        pack: PolicyLike,
        *,
        design: ChallengeDesign = "extra",
        extra: ExtraItems = "auto",
        rate: float = 1.0,
        reason: str = "",
    ) -> Challenge:
        """Compare a pack with the active pack in every logged recall from now on."""
    async def guard(
        self,
        pack: PolicyLike | None = None,
        *,
        share: float = 0.1,
        tolerance: float = 0.0,
        level: float = 0.95,
        shadow: bool = False,
        missing: Literal["censor", "zero"] = "censor",
        wait: int = 20,
        reward_range: tuple[float, float] = ...,
        plan: bool = False,
        reason: str = "",
    ) -> Guard:
        """Let a pack serve a share of recalls, and roll it back if it earns less."""
    async def verdict(
        self,
        challenger: str | None = None,
        *,
        horizon: str | timedelta | None = None,
        missing: Literal["censor", "inverse", "bounds", "zero"] | None = None,
        cluster: str | None = None,
        level: float = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> Verdicts:
        """Return the verdict on each challenger, valid at every interim analysis."""
    async def score(
        self,
        policies: Any = (),
        questions: Any = None,
        *,
        metrics: str | Sequence[str] = ...,
        executor: Workers = None,
    ) -> Scores:
        """Score policies and the active pack on labelled questions, without logging."""

    def __init__(
        self,
        path: str | Path | Lab | None = None,
        *,
        pack: PackLike | None = None,
        embedder: EmbedderSpec = None,
        clock: Clock = ...,
        seed: int = 0,
        read_only: bool = False,
        reembed: bool | Literal["background"] = False,
        index: str = "annoy",
        backups: bool = False,
        create: bool = True,
        key: KeySource | None = None,
    ) -> None: ...
    @classmethod
    async def open(
        cls,
        path: str | Path | None = None,
        *,
        pack: PackLike | None = None,
        embedder: EmbedderSpec = None,
        clock: Clock = ...,
        seed: int = 0,
        read_only: bool = False,
        reembed: bool | Literal["background"] = False,
        index: str = "annoy",
        backups: bool = False,
        create: bool = True,
        key: KeySource | None = None,
    ) -> Self: ...
    @property
    def lab(self) -> Lab: ...
    async def run(self, f: Callable[_P, _T], *args: _P.args, **keywords: _P.kwargs) -> _T: ...
    async def on(self, verb: str, f: Callable[[VerbCall], object]) -> Listener: ...
    async def close(self) -> None: ...
    def __getitem__(self, memory: MemoryLike) -> Awaitable[Memory]: ...
    if not TYPE_CHECKING:
        # Accessors that extensions declare.
        def __getattr__(self, name: str) -> Any: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

class AsyncLabPolicies(_Live):
    async def recall_again(self, decision: Mapping[str, Any], pack: Pack) -> pl.DataFrame | None:
        """Return the candidates that a pack would have had for a logged decision."""
    async def watch(
        self,
        path: str | Path,
        slot: str | None = None,
        *,
        every: float = 0.2,
        on_change: Callable[[Any], None] | None = None,
    ) -> Any:
        """Use the pack or policy of a ``.hy`` file, now and after each save."""
    async def use(self, pack: PolicyLike, *, reason: str = "", compare: int = 10) -> Pack:
        """Make a pack active. Pinned slots keep their policies."""
    async def check(
        self,
        slot: str,
        source: PolicyLike,
        *,
        helpers: tuple[str, ...] = (),
        params: Mapping[str, float] | None = None,
    ) -> Policy:
        """Return the policy that ``install`` would install, without installing it."""
    async def install(
        self,
        slot: str,
        source: PolicyLike,
        *,
        helpers: tuple[str, ...] = (),
        params: Mapping[str, float] | None = None,
        reason: str = "",
        compare: int = 100,
    ) -> Version:
        """Install a policy in one slot of the active pack."""
    async def calibrate(
        self, questions: Any = None, *, install: bool = True, reason: str = ""
    ) -> Any:
        """Fit the policy ``known`` to the active ranking on labelled questions."""
    async def challenge(
        self,
        pack: PolicyLike,
        *,
        design: ChallengeDesign = "extra",
        extra: ExtraItems = "auto",
        rate: float = 1.0,
        reason: str = "",
    ) -> Challenge:
        """Compare a pack with the active pack in all later logged recalls."""
    async def end_challenge(self, name: str, *, reason: str = "") -> None:
        """End a challenge and keep its log."""
    @property
    def challenges(self) -> Awaitable[tuple[Challenge, ...]]:
        """The current challenges, oldest first."""
    @property
    def challenge_history(self) -> Awaitable[pl.DataFrame]:
        """All challenges, current and ended, oldest first."""
    @overload
    async def rollback(
        self, slot: str, *, to: int | str | None = None, reason: str = ""
    ) -> Version: ...
    @overload
    async def rollback(
        self, slot: None = None, *, to: int | str | None = None, reason: str = ""
    ) -> Pack: ...
    async def pin(self, slot: str, to: int | str | None = None, *, reason: str = "") -> Version:
        """Keep a slot at one version through every later ``use``, until ``unpin``."""
    async def unpin(self, slot: str, *, reason: str = "") -> Version:
        """Unpin a slot. Its current policy stays active until another policy is installed."""
    async def explore(self, on: bool, *, reason: str = "") -> None:
        """Decide whether plain recalls explore as the active pack declares."""
    @property
    def explores(self) -> Awaitable[bool]:
        """Whether plain recalls explore as the active pack declares."""
    @property
    def pack(self) -> Awaitable[Pack]:
        """The active pack."""
    @property
    def pins(self) -> Awaitable[dict[str, Version]]:
        """The pinned version of each pinned slot."""
    async def __getitem__(self, slot: str) -> Policy:
        """Return the active policy of a slot."""
    async def history(self, slot: str | None = None) -> pl.DataFrame:
        """Return the history of one slot or of all slots, oldest first."""
    async def diff(
        self, slot: str, before: int | str | None = None, after: int | str | None = None
    ) -> Any:
        """Compare two versions of a slot."""
    async def deciders(self, pack: str) -> dict[str, Version]:
        """Return the version of each slot in an earlier pack."""
    async def attribution(self, slot: str = "recall-score") -> Any:
        """Compare the feedback on each version of a slot, with 95% credible intervals."""
    async def reading(self) -> Iterator[VersionLog]:
        """Lock the policy versions against changes within the block, and yield the versions."""

class AsyncLabFeatures(_Live):
    async def add(
        self,
        name: str,
        given: Any,
        *,
        version: str | None = None,
        type: Literal["num", "bool", "str"] | None = None,
        doc: str = "",
        nullable: bool = True,
    ) -> Feature:
        """Add a feature, replacing any feature added under the same name."""
    async def remove(self, name: str) -> None:
        """Remove a feature that ``add`` added."""
    @property
    def added(self) -> Awaitable[tuple[str, ...]]:
        """The names of the features that ``add`` added."""

class AsyncLabFacts(_Live):
    @property
    def entities(self) -> AsyncLabEntities:
        """The accessor for entities: declare, list, merge and split them."""
    async def add(
        self,
        subject: str,
        predicate: str,
        value: str | bool | float | None = None,
        *,
        object: str | None = None,
        text: str | None = None,
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        **fields: Any,
    ) -> Memory:
        """Remember a fact: a subject, a predicate, and a value or a second entity."""
    async def frame(
        self,
        *,
        at: When | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        status: str | Iterable[str] | None = None,
    ) -> pl.DataFrame:
        """Return a frame with one row per fact, ordered by id."""
    async def retract(self, fact: Memories, *, reason: str | None = None) -> None:
        """Mark a fact as never true, so that only ``lab.facts.frame`` still lists it."""
    async def narrative(
        self,
        about: str | Hits | Memories,
        *,
        budget_tokens: Count | None = None,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        at: When | None = None,
        log: bool = True,
    ) -> Narrative:
        """Write facts about a query, or the given memories, with one line per entity."""
    async def profile(
        self,
        subject: str = ...,
        *,
        budget_tokens: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        at: When | None = None,
    ) -> Narrative:
        """Write a prose description of one entity, for a prompt."""

class AsyncLabGraph(_Live):
    @property
    def clusters(self) -> AsyncLabClusters:
        """The accessor for clusters of memories: find, refine and list clusters."""
    async def stats(
        self, *, at: When | None = None, seed: Seed = 0, progress: bool = True
    ) -> Stats:
        """Compute statistics of all memories, as frames and one figure."""

class AsyncLabUpkeep(_Live):
    @property
    def consolidation(self) -> AsyncLabConsolidation:
        """The accessor for summaries that replace many old memories."""
    @property
    def review(self) -> AsyncLabReview:
        """The accessor for doubtful and stale memories, their origins, and open gaps."""
    @property
    def operations(self) -> AsyncLabOperations:
        """The accessor for operations, which are S-expressions that change a lab."""
    @property
    def index(self) -> AsyncLabIndex:
        """The accessor for the nearest-neighbour index and its quality."""
    async def maintain(self, now: When | None = None, *, progress: bool = True) -> Upkeep:
        """Apply decay as of `now`: change statuses and labels, and prune edges."""
    async def thin(
        self,
        *,
        full_days: float | None = None,
        thin_days: float | None = None,
        consent: bool = False,
    ) -> Thinning:
        """Preview the thinning of the recall log, or thin the log with `consent`."""
    async def log_days(
        self, full_days: float | None = None, thin_days: float | None = None
    ) -> dict[str, float]:
        """Set and return the numbers of days for which the lab keeps its log."""
    async def usage(self) -> Usage:
        """Return the disk space of each part of the lab, in descending order of size."""
    async def schedule(
        self, *, every: timedelta | None = None, on_upkeep: OnUpkeep | None = None
    ) -> Schedule:
        """Run ``maintain`` in the background until ``stop`` or ``lab.close``."""
    async def forecast(
        self,
        memories: Memories,
        until: When,
        *,
        points: int = 100,
        packs: PolicyLike | None = None,
        at: When | None = None,
    ) -> Forecast:
        """Forecast memories until an instant, assuming that nothing uses them."""

class AsyncLabAgents(_Live):
    def __call__(
        self,
        name: str | Identity,
        *,
        project: str | None = None,
        session: str | None = None,
        role: str = "member",
    ) -> AsyncAgent:
        """Return an agent with the verbs of daily use; see ``Agent``."""
    @property
    def credits(self) -> AsyncLabCredits:
        """The accessor for rewards that are inferred from answers and transcripts."""
    @property
    def modules(self) -> AsyncLabModules:
        """The accessor for code modules: scan a code base, map and describe modules."""
    async def observe(
        self,
        text: str,
        *,
        role: str = "user",
        at: When | None = None,
        chain: bool = False,
        linking: str | None = None,
        before: str | None = None,
        **fields: Any,
    ) -> Observation:
        """Remember an utterance if the pack's policy ``admit`` accepts it."""
    async def extract(
        self,
        messages: Any,
        *,
        role: str = "user",
        agent: str | None = None,
        project: str | None = None,
        session: str | None = None,
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
    ) -> Extracted:
        """Extract facts and memories from a text or from messages; store nothing."""
    async def verify(
        self,
        hits: Hits,
        accepted: Verifier | Memories,
        *,
        rejected: Memories | None = None,
        relations: Mapping[tuple[int, int], str] | None = None,
        at: When | None = None,
    ) -> Verified:
        """Apply a verifier's verdict to a logged recall, at most once per recall."""
    def turns(
        self,
        *,
        verifier: Verifier | None = ...,
        patience: Seconds = ...,
        limit: Count | None = None,
        project: str | None = None,
        session: str | None = None,
        branch: WordOrWords = None,
        season: WordOrWords = None,
        viewer: str | None = None,
        where: pl.Expr | None = None,
    ) -> AsyncTurns:
        """Start background recall for the turns of an agent's conversation."""
    async def admit(
        self, text: str, *, role: str = "user", project: str | None = None
    ) -> Admission:
        """Decide by the active pack's policy ``admit`` whether to remember an utterance."""
    async def commit(
        self, extracted: Extracted, *, only: Iterable[int] | None = None, linking: str | None = None
    ) -> Remembered:
        """Store the facts and memories that ``extract`` proposed, in one transaction."""
    async def end_session(
        self,
        session: str,
        messages: Any = None,
        *,
        agent: str | None = None,
        project: str | None = None,
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
        store: bool = True,
    ) -> Learned:
        """Extract memories from a session, and store them."""
    async def conversation(self, agent: str, *, at: When | None = None) -> Relationship:
        """Record one more conversation of an agent with its user."""
    async def relationships(self) -> pl.DataFrame:
        """Return the relationship of each agent with its user."""
    async def switch_off(self, project: str | None = None, *, reason: str = "") -> pl.DataFrame:
        """Switch memory off for one project or for all projects."""
    async def switch_on(
        self, project: str | None = None, *, reason: str = "", by: str = "user"
    ) -> pl.DataFrame:
        """Switch memory on for one project or for all, and record a person's consent."""
    async def switched_off(self) -> pl.DataFrame:
        """Return the projects for which memory is switched off, one row per project."""
    async def consents(self) -> pl.DataFrame:
        """Return the consents of users to memory, one row per project."""
    async def metrics(self, *, since: When | None = None) -> Metrics:
        """Summarize prompt contexts: tokens injected and saved, coverage and warnings."""
    async def recalls(self, *, since: When | None = None) -> pl.DataFrame:
        """List the logged recalls with their query, viewer, results and reward."""

class AsyncAgent(_Live):
    @property
    def name(self) -> Awaitable[str]:
        """The ``creator`` and ``viewer`` value of this agent, such as "agent:tutor"."""
    @property
    def project(self) -> Awaitable[str | None]:
        """The project of this agent, or None if each call may name a project."""
    @property
    def session(self) -> AsyncSessionName:
        """The name of this agent's session; ``agent.session("s1")`` opens a chat session."""
    @property
    def role(self) -> Awaitable[str]:
        """The role of this agent: "reader", "member" or "owner"."""
    @property
    def memories(self) -> Awaitable[pl.DataFrame]:
        """The rows of ``lab.memories`` that this agent created or contributed to."""
    @overload
    async def remember(
        self, text: str, *, at: When | None = None, linking: str | None = None, **fields: Any
    ) -> Memory: ...
    @overload
    async def remember(
        self, text: pl.DataFrame | Iterable[Mapping[str, Any] | str], *, linking: str | None = None
    ) -> Remembered: ...
    async def recall(
        self,
        query: str,
        *,
        limit: Count | None = None,
        project: str | None = None,
        branch: WordOrWords = None,
        season: WordOrWords = None,
        where: pl.Expr | None = None,
        at: When | None = None,
        log: bool = True,
        again: bool | None = None,
    ) -> Hits:
        """Retrieve the highest-ranked memories that this agent may see."""
    async def context(
        self,
        task: str,
        *,
        budget: Count = 1800,
        project: str | None = None,
        files: str | Sequence[str] = (),
        at: When | None = None,
        again: bool = False,
        log: bool = True,
        tokens: Callable[[str], float] | None = None,
    ) -> Context:
        """Build a prompt context for a task, as this agent; see ``lab.context``."""
    async def feedback(
        self,
        hit: MemoryLike,
        outcome: str | None = None,
        *,
        rating: int | None = None,
        reward: float | None = None,
        source: str = "agent",
        at: When | None = None,
        decision: int | None = None,
    ) -> Feedback:
        """Record feedback on a memory that this agent retrieved."""
    async def edit(self, memory: MemoryLike, *, text: str | None = None, **fields: Any) -> Edited:
        """Correct a memory of this agent; see ``lab.edit``."""
    async def forget(self, memory: Memories) -> Corrected:
        """Remove memories of this agent, with their corrections, from every recall."""
    async def restore(self, memory: Memories) -> Corrected:
        """Restore memories of this agent that are out of use; see ``lab.restore``."""
    def turns(
        self,
        *,
        verifier: Verifier | None = ...,
        patience: Seconds = ...,
        limit: Count | None = None,
        project: str | None = None,
        branch: WordOrWords = None,
        season: WordOrWords = None,
        where: pl.Expr | None = None,
    ) -> AsyncTurns:
        """Start background recall for the turns of a conversation, as this agent."""
    async def end_session(
        self,
        messages: Any = None,
        *,
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
        store: bool = True,
    ) -> Learned:
        """Extract memories from this agent's session, and store them."""
    async def touch(
        self, files: str | Iterable[str | Mapping[str, Any]] | Mapping[str, Any]
    ) -> ModuleMap:
        """Log the files that the agent's session read or wrote."""
    async def conversation(self, *, at: When | None = None) -> Relationship:
        """Record one more conversation of this agent with its user."""

class AsyncLabIO(_Live):
    @property
    def path(self) -> Awaitable[Path | None]:
        """The lab's folder, or None for a lab in memory."""
    @property
    def embedder(self) -> Awaitable[Embedder]:
        """The embedder of the lab, which turns texts into vectors."""
    @property
    def seed(self) -> Awaitable[int]:
        """The seed of the random draws of exploration items."""
    @property
    def store(self) -> Awaitable[Store]:
        """The journal and the folded state, for tools that read events."""
    async def scan(self, table: Literal["memories", "edges"] = "memories") -> pl.LazyFrame:
        """Return a lazy frame of memories or edges."""
    async def export(
        self,
        path: str | Path,
        *,
        format: str | None = None,
        where: pl.Expr | None = None,
        project: str | None = None,
        subject: str | None = None,
        creator: str | None = None,
        viewer: str | None = None,
        policies: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Write the lab to a file from which ``lab.load`` restores it exactly."""
    async def join(self, other: Any, *, dry_run: bool = False) -> Joined:
        """Merge the memories and edges of another lab into this lab."""
    async def mirror(self, folder: str | Path, *, every: float | None = None) -> Mirror:
        """Keep a readable copy of the lab in a folder."""
    async def backup(self, folder: str | Path | None = None, *, keep: Count = 3) -> Backup:
        """Copy the lab into a folder of backups."""
    async def check(self, *, repair: bool = True) -> Checked:
        """Compare every part of this lab with its checksums, and repair damaged parts."""
    async def preview(self, exclude: str | Iterable[str | None] = ()) -> Preview:
        """Count the memories and secrets that ``move_to`` would copy, by project."""
    async def move_to(
        self,
        target: str | Path,
        *,
        exclude: str | Iterable[str | None] = (),
        embedder: EmbedderSpec = None,
    ) -> Moved:
        """Copy memories of this lab to another lab, and record the move here."""
    async def synced(self) -> pl.DataFrame:
        """Return the recorded moves of this lab's memories to other labs."""
    async def reembedding(self) -> Reembedding:
        """Return the number of memories that have a vector of the current embedder."""
    async def reembed(self, timeout: Seconds | None = None) -> bool:
        """Embed the memories that have no vector of the lab's current embedder."""
    async def snapshot(self) -> None:
        """Write a snapshot of the folded state, so that the lab opens faster."""

class AsyncLabQuestions(_Live):
    @property
    def frame(self) -> Awaitable[pl.DataFrame]:
        """A frame with one row per question, including proposed questions."""
    async def add(
        self,
        questions: Any,
        wants: Any = None,
        *,
        project: str | None = None,
        viewer: str | None = None,
        at: When | None = None,
        category: str = "",
    ) -> pl.DataFrame:
        """Add one or several questions."""
    async def infer(self) -> pl.DataFrame:
        """Add questions from logged recalls with feedback or attributed rewards."""
    async def propose(self, limit: Count = 20) -> pl.DataFrame:
        """Propose questions by rules, each answered by one stored memory."""
    async def accept(self, ids: Ids) -> pl.DataFrame:
        """Accept proposed questions, which scores then use."""
    async def remove(self, ids: Ids) -> int:
        """Remove questions from the current state; views of the past keep them."""
    async def label_recalls(self, slates: Slates) -> pl.DataFrame:
        """Return labels for the logged recalls whose query is one of the questions."""

class AsyncLabEntities(_Live):
    async def frame(self) -> pl.DataFrame:
        """Return a frame with one row per entity."""
    async def declare(
        self, name: str, *, type: str | None = None, aliases: Sequence[str] = ()
    ) -> Entity:
        """Create or extend an entity, and return it."""
    async def merge(self, entity: str, into: str) -> Entity:
        """Merge one entity into another, with all names and facts."""
    async def split(
        self,
        entity: str,
        name: str | None = None,
        *,
        facts: Memories = (),
        aliases: Sequence[str] = (),
    ) -> Entity:
        """Undo a merge, or separate two entities that share a name."""

class AsyncLabClusters(_Live):
    async def find(self, *, min_size: int | None = None, seed: Seed = 0) -> Clustered:
        """Cluster the recallable memories by HDBSCAN over their vectors."""
    async def frame(self) -> pl.DataFrame:
        """Return a frame with one row per active cluster, in descending order of size."""
    async def refine(self) -> Clustered:
        """Move centroids to the mean of their members, and merge near clusters."""

class AsyncLabConsolidation(_Live):
    async def run(
        self,
        *,
        older_than_days: float | None = None,
        keep: int | None = None,
        summarise: Summarise | None = None,
        project: str | None = None,
        by: Grouping = "clusters",
        seed: Seed = 0,
        dry_run: bool = False,
    ) -> Consolidated:
        """Replace old memories of each cluster or community by a summary, in one event."""
    async def undo(self, summary: MemoryLike) -> Memory:
        """Undo a summary; call ``lab.restore(summary)`` instead."""
    async def frame(self) -> pl.DataFrame:
        """Return a frame with one row per summary, both active and undone."""

class AsyncLabReview(_Live):
    async def deprecate(self, memory: Memories, reason: str) -> Corrected:
        """Mark memories as wrong and remove them from recall, until ``lab.restore``."""
    async def related(self, memory: Memories | None = None) -> pl.DataFrame:
        """Return memories that superseded, or were superseded by, deprecated memories."""
    async def supersessions(self) -> pl.DataFrame:
        """Return each supersession: the two memories, the time and the rule."""
    async def provenance(self, memory: MemoryLike) -> pl.DataFrame:
        """Return every statement of a memory, in chronological order."""
    async def gaps(self) -> pl.DataFrame:
        """Return the gaps: recalls without a useful result, oldest first."""
    async def close_gap(self, gap: int, reason: str) -> None:
        """Close a gap, for example after remembering an answer; ``gaps`` still lists it."""
    async def quarantine(
        self,
        *,
        source: str | None = None,
        session: str | None = None,
        creator: str | None = None,
        since: When | None = None,
        reason: str = "",
        dry_run: bool = False,
        replay: int = 100,
        progress: bool = True,
    ) -> Quarantined:
        """Remove all memories of a source, session or creator from recall, in one event."""
    async def release(self, quarantine: Quarantined | int) -> Corrected:
        """Undo a quarantine, and restore each memory's former status and values."""

class AsyncLabOperations(_Live):
    async def run(
        self,
        operations: str | Path | MemoryLike | Proposal,
        *,
        consent: bool = False,
        fuel: Fuel | None = None,
    ) -> Ran:
        """Run operations, such as ``(remember "tabs" "preference" 0.8 "30d")``."""
    async def adapt_policy(
        self,
        *,
        missing: Missing | None = None,
        horizon: str | None = None,
        cluster: str | None = None,
        estimator: Estimator = "snips",
        level: float = 0.95,
        reward_range: tuple[float, float] | None = None,
        consent: bool = False,
        seed: Seed = 0,
    ) -> Adapted:
        """Roll back a policy that performs worse, or install a better policy."""
    async def check_fall(
        self,
        *,
        missing: Missing = "censor",
        horizon: str | None = None,
        cluster: str | None = None,
        level: float = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> Adapted | None:
        """Return a proposal to restore an earlier policy, or None if there is no fall."""
    async def proposals(self, memories: Memories) -> tuple[Proposal, ...]:
        """Return the operations that are stored with memories, without running them."""

class AsyncLabIndex(_Live):
    async def report(
        self,
        queries: Sequence[str] | None = None,
        *,
        n: Count = 10,
        sample: Count = 200,
        seed: Seed = 0,
        verify: bool = False,
        progress: bool = True,
        compare: bool = False,
    ) -> IndexReport:
        """Compare the index with exact search, and measure the memory and time of both."""
    async def rebuild(
        self, *, wait: bool = True, trees: Count | None = None, search_k: Count | None = None
    ) -> bool:
        """Rebuild the nearest-neighbour index, even if there are few memories."""
    async def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait until the running build ends."""
    @property
    def building(self) -> Awaitable[bool]:
        """Whether an index is being built."""

class AsyncLabCredits(_Live):
    async def answer(
        self,
        answer: str,
        hits: Hits | int,
        *,
        arguments: str | None = None,
        reply: str | None = None,
        at: When | None = None,
    ) -> Attributed:
        """Infer which memories of a recall an answer used, and log rewards for them."""
    async def transcript(self, messages: Messages) -> tuple[Attributed, ...]:
        """Attribute each answer of a transcript to the recalls that preceded it."""
    @property
    def frame(self) -> Awaitable[pl.DataFrame]:
        """A frame with one row per reward in effect."""
    @property
    def calibration(self) -> Awaitable[Calibration]:
        """The active policy's curve from credit to probability of use."""
    async def calibrate(self, judged: pl.DataFrame | None = None) -> Calibration:
        """Fit the curve from credit to probability of use, and activate the curve."""

class AsyncLabModules(_Live):
    async def scan(
        self, path: str | Path, *, project: str | None = None, progress: bool = True
    ) -> ModuleMap:
        """Scan a project's folder, and store its module map as one event."""
    async def map(self, project: str) -> ModuleMap:
        """Return a project's current module map, with the files that memories name."""
    async def find(self, task: str, *, project: str, limit: Count = 3) -> pl.DataFrame:
        """Return the modules that share words with a task, in descending order of score."""
    async def describe(
        self,
        module: str,
        *,
        project: str,
        description: str = "",
        files: Sequence[str] = (),
        tests: Sequence[str] = (),
        entry_points: Sequence[str] = (),
        depends_on: Sequence[str] = (),
        new: bool = False,
    ) -> ModuleMap:
        """Describe a module or add files to it; later scans keep the description."""
    async def touch(
        self,
        files: str | Iterable[str | Mapping[str, Any]] | Mapping[str, Any],
        *,
        project: str,
        session: str | None = None,
    ) -> ModuleMap:
        """Record the files that a session read or wrote; return the current module map."""
    async def projects(self) -> tuple[str, ...]:
        """Return the names of the projects that have a module map."""

class AsyncTurns(_Live):
    async def offer(self, context: str) -> Surfaced:
        """Queue a context for background recall; return the hits of earlier contexts."""
    async def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait until the worker has searched all contexts."""
    async def close(self) -> None:
        """Finish the current search, drop waiting contexts, and end the turns."""

class AsyncSessionName(_Live):
    def __call__(
        self,
        name: str | None = None,
        *,
        budget: Count = 1800,
        history: int = 20,
        user: str = "user",
        model: LanguageModel | None = None,
        otherwise: Otherwise = "raise",
    ) -> AsyncSession:
        """Open or continue a session of the agent for a chat."""

class AsyncSession(_Live):
    async def before(
        self, text: str, *, system: str | None = None, files: str | Sequence[str] = ()
    ) -> list[dict[str, str]]:
        """Return the messages for a chat model: history, memories and the user's text."""
    async def after(self, answer: str, *, arguments: str | None = None) -> Attributed | None:
        """Store the exchange, and log which memories the answer used."""
    async def end(self) -> Learned | None:
        """Extract memories from the turns of the session, as ``agent.end_session`` does."""
    @property
    def name(self) -> Awaitable[str]: ...
    @property
    def context(self) -> Awaitable[Context | None]: ...
    @property
    def learned(self) -> Awaitable[Learned | None]: ...
