"""Replay the inputs of a lab at their times, under another pack.

Inputs are the actions of a person or an agent: memories, recalls, feedback, edges and manual
corrections. The decisions of the lab's own pack (links, merged duplicates, labels, promotions,
deletions) are left out, and the other pack decides again. Time is simulated: the replay of a year
takes as long as its events, and upkeep runs when it is due in that time.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, overload

import numpy as np
import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Count, Seed, Within, checked
from memlab.kernel.base.clock import DAY, ManualClock, Micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.embedding import EmbedderSpec, load_embedder
from memlab.kernel.journal import Event, Journal, copy_journal
from memlab.kernel.language import Policy
from memlab.kernel.policies import Pack, PolicyLike, as_pack, list_policies
from memlab.kernel.recall import Filters, Hits
from memlab.kernel.schema import FIELDS, RECALLABLE
from memlab.kernel.slates import Slate, read_slates
from memlab.kernel.state import EVENTS
from memlab.science.batch import Workers, run_tasks
from memlab.subjects.lab import Lab
from memlab.subjects.opening import open_lab

_MIN_DAYS = 1 / 24
"""The minimum interval of upkeep: an hour. More frequent upkeep changes no decision and takes long."""
_COPY = "source"
"""The folder of the copy of a lab that workers replay, next to the folders of their new labs."""
_Settings: TypeAlias = tuple[float, int, int]
"""The interval of upkeep in days, the last event, and the seed of exploration."""
_MAX_PASSES = 400
"""The maximum number of upkeep passes between two events.

In a longer gap, this number of passes is evenly spaced.
"""


@dataclass(frozen=True)
class Replay(Displayed):
    """A replayed lab with counts of applied inputs; the result of ``memlab.replay``.

    Parameters
    ----------
    lab
        The new lab.
    pack, pack_hash
        The name and the hash of the pack of the new lab.
    seed
        The seed of exploration in the new lab.
    every_days
        The interval of upkeep in simulated days.
    frame
        A row for each kind of input, with the number of ``inputs``, of ``applied`` and of
        ``left_out`` ones, and the reasons in ``why``.
    ids
        A row for each memory of the old lab: ``memory_id``, and ``replayed_id`` in the new lab, or
        null.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> hits = lab.recall("When do we deploy?")
    >>> again = memlab.replay(lab, "companion")
    >>> again.pack, len(again.lab), again.ids.rows()
    ('companion', 2, [(1, 1), (2, 2)])
    """

    lab: Lab
    pack: str
    pack_hash: str
    seed: int
    every_days: float
    frame: pl.DataFrame = field(repr=False)
    ids: pl.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        applied, inputs = self.frame["applied"].sum(), self.frame["inputs"].sum()
        return printable(
            f"<Replay under {self.pack} [{self.pack_hash[:12]}]: {applied:,} of {inputs:,} inputs applied>"
        )


@overload
def replay(
    lab: Lab,
    pack: str | Path | Pack | Policy,
    *,
    path: str | Path | None = ...,
    every_days: float = ...,
    upto: int | None = ...,
    seed: int | None = ...,
    progress: bool = ...,
    executor: Workers = ...,
) -> Replay: ...


@overload
def replay(
    lab: Lab,
    pack: PolicyLike,
    *,
    path: str | Path | None = ...,
    every_days: float = ...,
    upto: int | None = ...,
    seed: int | None = ...,
    progress: bool = ...,
    executor: Workers = ...,
) -> Replay | tuple[Replay, ...]: ...


@checked
def replay(
    lab: Lab,
    pack: PolicyLike,
    *,
    path: str | Path | None = None,
    every_days: Annotated[float, Within(0, 1_000_000)] = 1.0,
    upto: Count | None = None,
    seed: Seed | None = None,
    progress: bool = True,
    executor: Workers = None,
) -> Any:
    """Apply a lab's inputs to a new lab with another pack and a simulated clock.

    Parameters
    ----------
    lab
        The lab whose history is replayed.
    pack
        A pack in any form, or a policy that replaces the policy of its slot in the lab's pack. A list or a
        mapping of packs gives a new lab for each.
    path
        A folder for the new lab, or for a folder of each pack's name; in memory by default.
    every_days
        The interval of upkeep (``lab.upkeep.maintain``) in simulated days: 0 for no upkeep,
        otherwise at least one hour.
    upto
        The number of the last event to replay; all events by default.
    seed
        The seed of exploration. Default: the seed of the old lab.
    progress
        Whether to show a progress bar.
    executor
        A number of processes, or an object with ``submit``, such as a ``dask.distributed.Client``.
        The replay under each pack is a task. Workers read a copy of the lab next to ``path`` and
        write there, so ``path`` is required. Default: this thread.

    Returns
    -------
    Replay
        The new lab, with the inputs that were applied and left out. For several packs, a tuple of
        replays in their order.

    Raises
    ------
    InputError
        If a lab or file exists at ``path``, or ``every_days`` is too small. With several packs, if
        two have the same name; with an executor, if there is no ``path``.
    UnknownName, PolicyError
        If the pack does not exist or is invalid.
    WorkerLost
        If the executor does not return the result of a replay.

    Notes
    -----
    Feedback counts only if the new lab showed the memory too, because a user can only judge
    memories that were shown. If the new pack merged or refused a memory, later inputs apply to
    the memory that replaces it, or are left out. A duplicate that the old lab merged is not in
    its journal and cannot be replayed.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> memories = lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
    >>> hits = lab.recall("When do we deploy?")
    >>> memlab.replay(lab, "companion").frame.select("kind", "applied").rows()
    [('recall', 1), ('remember', 1)]
    >>> [again.pack for again in memlab.replay(lab, ["companion", "cascade"])]
    ['companion', 'cascade']
    """
    if 0 < every_days < _MIN_DAYS:
        raise InputError(
            f"every_days must be 0 or at least an hour ({_MIN_DAYS:.4f} days), not {every_days!r}."
        )
    target = None if path is None else Path(path).expanduser()
    if target is not None and target.exists():
        raise InputError(f"{path} exists, and a replay needs a new lab. Pass another path.")
    given = list_policies(pack)
    packs = [as_pack(spec, lambda: lab.policies.pack, name) for name, spec in given]
    several = len(given) != 1 or given[0][1] is not pack
    names = [new.name if several else "" for new in packs]
    if len(set(names)) < len(names) or not names:
        raise InputError("A replay needs at least one pack, and packs with different names.")
    journal, embedder = lab.io.store.journal, lab.io.embedder
    last = journal.head if upto is None else min(upto, journal.head)
    settings = every_days, last, lab.io.seed if seed is None else seed
    with bar(progress and last > 500, last * len(packs), unit="event", desc="replay") as step:
        if executor is None:
            replays = [
                _play(lab, new, target and target / name, embedder, settings, step)[0]
                for name, new in zip(names, packs, strict=True)
            ]
        elif target is None or not isinstance(journal, Journal):
            raise InputError(
                "With an executor, a replay needs a path for the new lab and a lab that "
                "is not a view of the past. Pass a path, and the lab itself with upto=."
            )
        else:
            # The shipped embedder holds its model, so workers load their own.
            sent = None if embedder is load_embedder() else embedder
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".memlab-replay-", dir=target.parent) as own:
                folder = Path(own).resolve()
                copy_journal(journal, folder / _COPY)
                play = partial(_play_copy, folder, sent, settings)
                played = run_tasks(play, packs, executor, step, last)
                labs = folder / "labs"
                if several:
                    labs.mkdir()
                for name, (path, *_) in zip(names, played, strict=True):
                    path.rename(labs / name)
                # All new labs appear at once, so an error leaves none.
                labs.rename(target)
            replays = [
                Replay(
                    open_lab(
                        target / name, embedder=embedder, clock=ManualClock(now), seed=settings[2]
                    ),
                    **values,
                )
                for name, (_, now, values) in zip(names, played, strict=True)
            ]
    return tuple(replays) if several else replays[0]


def _play(
    lab: Lab,
    pack: Pack,
    path: Path | None,
    embedder: EmbedderSpec,
    settings: _Settings,
    step: Step,
) -> tuple[Replay, Micros]:
    """Replay a lab under a pack; return the replay with its open lab, and the last time."""
    every_days, last, seed = settings
    journal = lab.io.store.journal
    began = next(iter(journal.events(upto=last)), None)
    clock = ManualClock(0 if began is None else began.at)
    fresh = open_lab(path, pack=pack, embedder=embedder, clock=clock, seed=seed)
    try:
        _grant_consent(lab, fresh)
        player = _Player(lab, fresh, clock, round(every_days * DAY))
        for event in journal.events(upto=last):
            player.play(event)
            step(1)
    except BaseException:
        fresh.close()
        raise
    hash, frames = fresh.policies.pack.hash, (player.summary(), player.pairs())
    return Replay(fresh, pack.name, hash, seed, float(every_days), *frames), clock.now


def _play_copy(
    folder: Path, embedder: EmbedderSpec, settings: _Settings, pack: Pack, step: Step
) -> tuple[Path, Micros, dict[str, Any]]:
    """Replay a lab in a worker, from a copy of the lab.

    Returns the folder of the new lab, its last time, and the fields of the replay without the lab.
    """
    # A task that runs twice, because a worker ended or was late, writes another folder each time.
    path = Path(tempfile.mkdtemp(dir=folder)) / "lab"
    with open_lab(folder / _COPY, read_only=True, embedder=embedder) as lab:
        again, now = _play(lab, pack, path, embedder, settings, step)
    again.lab.close()
    values = dict(vars(again))
    del values["lab"]
    return path, now, values


def _grant_consent(lab: Lab, fresh: Lab) -> None:
    """Grant consent for the old lab's projects, if the new lab's pack requires consent."""
    if fresh.policies.pack.settings["consent"] == "needed":
        for project in (None, *lab.memories["project"].drop_nulls().unique(maintain_order=True)):
            fresh.agents.switch_on(project, reason="a replay of what was remembered", by="replay")


class _Player:
    """A replay of events one by one, which maps old memories and recalls to new ones."""

    def __init__(self, old: Lab, new: Lab, clock: ManualClock, every: Micros) -> None:
        self._old, self._new, self._clock, self._every = old, new, clock, every
        self._due: Micros | None = None
        self._ids: dict[int, int | None] = {}
        self._hits: dict[int, Hits] = {}
        self._applied: Counter[str] = Counter()
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._slates = _Slates(old)
        self._acts: dict[str, Callable[[Event], str | None]] = {
            "remember": self._remember,
            "import": self._remember,
            "recall": self._recall,
            "feedback": self._feedback,
            "verify": self._verify,
            "conversation": self._conversation,
            "link": self._link,
            "switch": self._switch,
            "describe-tag": self._describe_tag,
            **{
                kind: self._set_fields for kind, known in EVENTS.items() if known.replay == "values"
            },
        }

    def play(self, event: Event) -> None:
        """Run the upkeep that is due before an event, then replay the event."""
        self._pass_time(event.at)
        if EVENTS[event.kind].replay == "left-out":
            self._left_out[event.kind, "depends on the state of the old lab"] += 1
        handler = self._acts.get(event.kind)
        if handler is None or (event.kind == "link" and event.body.get("by") != "hand"):
            return
        reason = handler(event)
        # Background linking must finish at this simulated time. Otherwise results would depend on the speed of the
        # machine.
        self._new.graph.link_waiting()
        if reason is None:
            self._applied[event.kind] += 1
        else:
            self._left_out[event.kind, reason] += 1

    def _pass_time(self, now: Micros) -> None:
        """Run the upkeep that is due up to a time, and set the clock to that time."""
        if self._due is None:
            self._due = now + self._every
        interval = max(self._every, (now - self._due) // _MAX_PASSES)
        while self._every and self._due <= now:
            self._clock.set(self._due)
            if len(self._new):
                self._new.upkeep.maintain(progress=False)
            self._due += interval
        self._clock.set(max(now, self._clock.now))

    # -- handlers of inputs: each returns the reason why the input was left out, or None --------------------------

    def _remember(self, event: Event) -> str | None:
        """Replay an event that stored memories or recorded an edit; return the reason of an omission, or None."""
        body, count = event.body, event.body.get("count", 0)
        if not count:
            return "nothing was remembered"
        ids = range(body["first"], body["first"] + count)
        texts = self._old.io.store.journal.texts(ids)
        columns = {
            name: expand_column(values, count)
            for name, values in body["columns"].items()
            if name in FIELDS
        }
        if "edit" in body:
            return self._edit(
                ids[0],
                body["edit"],
                texts[0],
                {name: values[0] for name, values in columns.items()},
            )
        created = expand_column(body["columns"].get("created", event.at), count)
        rows = [
            {"text": text, "at": at, **{name: values[row] for name, values in columns.items()}}
            for row, (text, at) in enumerate(zip(texts, created, strict=True))
        ]
        present = [row for row, text in enumerate(texts) if text]
        edges = body.get("edges")
        chain = isinstance(edges, dict) and "next" in expand_column(
            edges["relation"], len(edges["source"])
        )
        standing = (
            self._new.remember([rows[row] for row in present], chain=chain).standing
            if present
            else ()
        )
        self._ids.update(dict.fromkeys(ids))
        self._ids.update(zip((ids[row] for row in present), standing, strict=True))
        return None if present else "purged since"

    def _switch(self, event: Event) -> str | None:
        """Switch the memory of a project on or off; the result is None, because nothing is omitted."""
        agents, body = self._new.agents, event.body
        (agents.switch_on if body["on"] else agents.switch_off)(
            body["project"], reason=body["reason"]
        )
        return None

    def _edit(self, id: int, before: int, text: str, fields: dict[str, Any]) -> str | None:
        """Replay an edit of a memory; return the reason if the edit is omitted, otherwise None."""
        self._ids[id] = None
        memory = self._ids.get(before)
        if memory is None or not text:
            return "the memory is missing in the new lab"
        fields.pop("status", None)
        try:
            self._ids[id] = self._new.edit(memory, text=text, **fields).id
        except InputError:
            return "deleted in the new lab"
        return None

    def _recall(self, event: Event) -> str | None:
        """Replay a recall or a request for context; return the reason if it is omitted, otherwise None."""
        slate = self._slates.find(event.seq)
        if slate is None:
            return "no slate was logged"
        try:
            filters = Filters.read(slate.filters)
        except InputError:
            return "filtered by an expression that is not in the log"
        if "budget" in event.body:
            context = self._new.context(
                slate.query,
                budget=event.body["budget"],
                again=event.body.get("again", False),
                project=slate.project,
                session=slate.session,
                viewer=filters.viewer,
                at=event.at,
            )
            self._hits[event.seq] = context.hits
            return None
        self._hits[event.seq] = self._new.recall(
            slate.query,
            limit=slate.wanted or slate.limit,
            project=slate.project,
            session=slate.session,
            at=event.at,
            explore=slate.sampler != "deterministic",
            **filters.arguments(),
        )
        return None

    def _feedback(self, event: Event) -> str | None:
        """Replay feedback on a memory; return None, or the reason if the new lab did not return the memory."""
        body = event.body
        memory = self._ids.get(body["memory"])
        if memory is None:
            return "the memory is missing in the new lab"
        judged: Any = memory
        if body.get("decision") is not None:
            hits = self._hits.get(body["decision"])
            judged = next((hit for hit in hits or () if hit.id == memory), None)
            if judged is None:
                return "not shown by the new lab"
        more = {name: body[name] for name in ("rating", "agent") if body.get(name) is not None}
        self._new.feedback(
            judged,
            body.get("outcome"),
            reward=body.get("reward"),
            source=body["source"],
            at=event.at,
            **more,
        )
        return None

    def _verify(self, event: Event) -> str | None:
        """Replay an agent's verdict on results that the new lab returned; return the reason of an omission, or None."""
        hits = self._hits.get(event.body["decision"])
        if hits is None:
            return "the recall was left out"
        shown = {hit.id for hit in hits}
        accepted, rejected = (
            [id for id in map(self._ids.get, event.body[verdict]) if id in shown]
            for verdict in ("verified", "rejected")
        )
        if not accepted and not rejected and (event.body["verified"] or event.body["rejected"]):
            return "not shown by the new lab"
        self._new.agents.verify(hits, accepted, rejected=rejected, at=event.at)
        return None

    def _conversation(self, event: Event) -> str | None:
        """Replay an event that recorded a conversation; the result is None, because nothing is omitted."""
        self._new.agents.conversation(event.body["relationship"]["agent"], at=event.at)
        return None

    def _link(self, event: Event) -> str | None:
        """Replay edges that a person added and weights that a person set; return the reason of an omission, or None."""
        edges, reason = event.body.get("edges"), self._set_weights(event.body.get("strengthen"))
        if edges is None:
            return reason
        count = len(edges["source"])
        relations, weights = (
            expand_column(edges["relation"], count),
            expand_column(edges["weight"], count),
        )
        for source, target, relation, weight in zip(
            edges["source"], edges["target"], relations, weights, strict=True
        ):
            first, second = self._ids.get(source), self._ids.get(target)
            if first is None or second is None or first == second:
                reason = "an end is missing in the new lab"
            else:
                self._new.graph.link(first, second, relation, weight=weight)
        return reason

    def _set_weights(self, strengthened: dict[str, Any] | None) -> str | None:
        """Replay the edge weights that a person set; return the reason if a weight is omitted, otherwise None."""
        if strengthened is None:
            return None
        edges, reason = self._old.io.store.state.edges, None
        numbers = np.asarray(strengthened["edges"], dtype=np.int64)
        ends = [nodes.tolist() for nodes in edges.ends(numbers)]
        words = edges.words_of(edges.relation[numbers]).tolist()
        for source, target, relation, weight in zip(
            *ends, words, strengthened["weight"], strict=True
        ):
            first, second = self._ids.get(source + 1), self._ids.get(target + 1)
            if first is None or second is None or first == second:
                reason = "an end is missing in the new lab"
                continue
            row = {
                "source": [first],
                "target": [second],
                "relation": [relation],
                "weight": [weight],
            }
            self._new.graph.link(pl.DataFrame(row))
        return reason

    def _describe_tag(self, event: Event) -> str | None:
        """Replay a tag's description; return None, or the reason if no memory of the new lab has the tag."""
        try:
            self._new.graph.describe_tag(event.body["tag"], event.body["description"])
        except UnknownName:
            return "no memory has the tag"
        return None

    def _set_fields(self, event: Event) -> str | None:
        """Replay field changes that a person made, for memories of the new lab; return why they are omitted, or None."""
        parts = []
        for part in event.body.get("set", ()):
            ids = [self._ids.get(id) for id in part["ids"]]
            present = [
                index
                for index, id in enumerate(ids)
                if id is not None and self._applies(id, part["columns"])
            ]
            columns = {
                name: [values[index] for index in present] if isinstance(values, list) else values
                for name, values in part["columns"].items()
            }
            columns = {name: values for name, values in columns.items() if name != "superseded_by"}
            if present:
                parts.append({"ids": [ids[index] for index in present], "columns": columns})
        if not parts:
            return "the memory is missing in the new lab"
        fields = {
            name: value for name, value in event.body.items() if name in ("reason", "project")
        }
        with self._new.io.store.writing() as tx:
            tx.event(event.kind, {**fields, "set": parts}, at=event.at)
        return None

    def _applies(self, id: int, columns: dict[str, Any]) -> bool:
        """Return whether a logged field change would still have an effect on the memory.

        A change of status does not, if the memory already has the status, or if both statuses are recallable or neither
        is.
        """
        status = columns.get("status")
        if not isinstance(status, str):
            return True
        now = self._new.io.store.state.names["status"].value_at(id - 1)
        return now != status and (now in RECALLABLE) != (status in RECALLABLE)

    # -- results ---------------------------------------------------------------------------------------------------

    def summary(self) -> pl.DataFrame:
        """Return a table of the replayed inputs, one row for each kind."""
        kinds = sorted({*self._applied, *(kind for kind, _ in self._left_out)})
        rows = []
        for kind in kinds:
            reasons = {why: count for (of, why), count in self._left_out.items() if of == kind}
            left = sum(reasons.values())
            why = "; ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
            rows.append((kind, self._applied[kind] + left, self._applied[kind], left, why))
        schema = {
            "kind": pl.String,
            "inputs": pl.Int64,
            "applied": pl.Int64,
            "left_out": pl.Int64,
            "why": pl.String,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def pairs(self) -> pl.DataFrame:
        """Return a table with the old id and the new id (null if omitted) of each memory."""
        pairs = list(self._ids.items())
        return pl.DataFrame(
            pairs, schema={"memory_id": pl.Int64, "replayed_id": pl.Int64}, orient="row"
        )


class _Slates:
    """The slates of a lab by decision.

    Decisions must be requested in ascending order.
    """

    def __init__(self, lab: Lab) -> None:
        self._remaining: Iterator[Slate] = read_slates(lab.io.store.journal)
        self._next: Slate | None = next(self._remaining, None)

    def find(self, decision: int) -> Slate | None:
        """Return the slate of a decision, or None if the decision has no slate."""
        while self._next is not None and self._next.decision < decision:
            self._next = next(self._remaining, None)
        return None if self._next is None or self._next.decision != decision else self._next


def expand_column(values: Any, count: int) -> list[Any]:
    """Repeat a scalar ``count`` times in a list, or return a list unchanged."""
    return values if isinstance(values, list) else [values] * count
