"""``memlab.record``: log the searches of any retriever, so that changes to the retriever can be evaluated.

The recorder asks the search for more results than it shows. It shows the first results, and with
known probability one of the other results. So the log has rewards of results that another policy,
or another search, would have shown.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.io.recorder._items import Item, finite, measure_texts, read_items, read_time
from memlab.io.recorder._log import REWARDED, SEARCHED, open_log, pack, read_search, read_tables
from memlab.io.recorder._stores import Searched, find_store
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Seed, Within, checked, warn_caller
from memlab.kernel.base.clock import Clock, system_clock
from memlab.kernel.base.printable import printable
from memlab.kernel.hooks import list_hooks
from memlab.kernel.policies import ChallengeDesign, ExtraItems
from memlab.kernel.privacy import screen
from memlab.kernel.recall import (
    ChallengeDraw,
    ChallengerResults,
    describe_challenge,
    draw_challenge,
    generator,
    put_among,
)
from memlab.kernel.slates import ATTRIBUTED, Slates

if TYPE_CHECKING:
    from memlab.kernel.journal import Journal
    from memlab.science.evaluation import Verdicts

_TIMEOUT = 5.0
"""Seconds for which a search waits for another process that writes the log; it is then shown unrecorded.

A write takes less than a millisecond, so this is long enough for thousands of waiting searches.
"""
_MORE = 10
"""Results asked beyond the limit: a probe then has a probability of a tenth, which still gives
precise estimates, and few changes move a result by more than ten ranks."""

Feature = Callable[[str, Sequence[Any]], Sequence[float | None]]
"""A function from the query and the results to one number for each result."""


@dataclass(frozen=True)
class _Challenger:
    """Another search that is compared with the recorded one, with the fields of a lab's challenge."""

    name: str
    hash: str
    searched: Searched
    design: ChallengeDesign
    extra: int | Literal["auto"]
    rate: float
    timeout: float
    # The log counts its comparisons.
    number: int = 0
    share: float = 0.0

    @property
    def pack(self) -> _Challenger:
        """The challenger itself, because code for labs looks up the challenger's pack here."""
        return self


@dataclass(frozen=True)
class Settings:
    """The arguments of ``memlab.record``."""

    log: Path
    limit: int
    probes: int
    pool: int
    features: Mapping[str, Feature]
    name: str
    version: str
    reward_range: tuple[float, float]
    seed: int
    clock: Clock


def _draw_probes(limit: int, count: int, probes: int, chance: np.random.Generator) -> ChallengeDraw:
    """Draw probes uniformly from the items after ``limit``, and insert them at random ranks after rank 1."""
    active, rest = np.arange(limit), np.arange(limit, count)
    number = min(probes, len(rest)) if limit else 0
    drawn = chance.permutation(rest)[:number]
    propensity = np.ones(count)
    propensity[limit:] = number / max(len(rest), 1)
    return ChallengeDraw(put_among(active, drawn, chance), drawn, propensity, number)


class RecordedHits(list[Any]):
    """The results that a recorded search showed, as the store returned them.

    Attributes
    ----------
    decision
        The number of the search in the log; None if it could not be recorded.
    query
        The query.
    ids
        The ids of the results as text, in order.

    Examples
    --------
    >>> import tempfile
    >>> import memlab
    >>> log = tempfile.mkdtemp()
    >>> search = memlab.record(lambda query, k: ["Ana prefers tabs", "Ben prefers spaces"], log=log)
    >>> hits = search("tabs or spaces?")
    >>> hits.feedback(hits[0], 1)
    >>> hits, hits.decision
    (['Ana prefers tabs', 'Ben prefers spaces'], 1)
    """

    def __init__(
        self,
        recorder: Recorder,
        query: str,
        decision: int | None,
        items: Sequence[Item],
        pool: Sequence[Item],
    ) -> None:
        super().__init__(item.raw for item in items)
        self.query, self.decision, self.ids = query, decision, [item.id for item in items]
        self._recorder, self._pool = recorder, pool

    @checked
    def used(self, answer: str, *, arguments: str = "", reply: str = "") -> dict[str, float]:
        """Infer from an answer which of the results contributed, and record their rewards.

        Parameters
        ----------
        answer
            The answer that was written with these results.
        arguments
            The arguments of tools that were called for the answer.
        reply
            The next message of the user, who may correct the answer.

        Returns
        -------
        dict
            The reward from 0 to 1 of each result on which the answer decides, by id.

        Notes
        -----
        The rewards are inferred as by ``lab.agents.credits.answer``. A reward that was stated with
        ``feedback`` replaces an inferred one. The texts are read here and not stored.

        Examples
        --------
        >>> import tempfile
        >>> import memlab
        >>> texts = ["Ana prefers tabs", "Deploys go out on Tuesdays"]
        >>> search = memlab.record(lambda query, k: texts, log=tempfile.mkdtemp())
        >>> hits = search("When do we deploy?")
        >>> rewards = hits.used("On Tuesdays.")
        >>> max(rewards, key=rewards.get) == hits.ids[1]
        True
        """
        read = self.query, answer, self._recorder.settings.clock(), arguments, reply
        texts = {item.id: (item.text, read_time(item.time)) for item in self._pool}
        rows = self._recorder.answers.rewards(read, texts, self.ids)
        self._recorder._write_rewards(self.decision, rows, ATTRIBUTED)
        return {id: reward for id, reward, _ in rows}

    @checked
    def feedback(self, item: Annotated[Any, AsGiven], reward: float) -> None:
        """Record the reward of a result; the last reward of a result counts.

        Parameters
        ----------
        item
            A result of this list, or its id.
        reward
            The reward, within the recorder's ``reward_range``.

        Raises
        ------
        UnknownName
            If the search did not show the item.
        InputError
            If the reward is outside the range.
        """
        index = next((index for index, raw in enumerate(self) if raw is item), None)
        self._recorder.feedback(self.decision, item if index is None else self.ids[index], reward)


class Recorder:
    """A search that logs its results. ``memlab.record`` returns a recorder.

    Call it like the search, without the number of results. It is also the log for
    ``memlab.evaluate``, ``memlab.plan`` and ``memlab.verdict``.

    Parameters
    ----------
    searched
        The search.
    settings
        The arguments of ``memlab.record``.

    Examples
    --------
    >>> import tempfile
    >>> import memlab
    >>> memories = ["tabs", "spaces", "Fridays"]
    >>> search = memlab.record(lambda query, k: memories[:k], log=tempfile.mkdtemp(), limit=1)
    >>> len(search("How do I indent?"))
    2
    >>> search.slates().candidates.collect()["propensity"].to_list()
    [1.0, 0.5, 0.5]
    """

    def __init__(self, searched: Searched, settings: Settings) -> None:
        self.settings, self._searched = settings, searched
        # A probe is drawn like the item of a challenger that would show all candidates below the limit.
        self._challengers: tuple[_Challenger, ...] = ()
        self._journals: dict[int, Journal] = {}
        self._journal()

    def __repr__(self) -> str:
        against = [f", compared with {challenger.name}" for challenger in self._challengers]
        return printable(
            f"<Recorder of {self.settings.name} in {self.settings.log}{''.join(against)}>"
        )

    def _journal(self) -> Journal:
        """Return the journal of this process; open the journal again after a fork."""
        process = os.getpid()
        if process not in self._journals:
            self._journals[process] = open_log(self.settings.log, _TIMEOUT)
        return self._journals[process]

    @cached_property
    def answers(self) -> Any:
        """The reader of answers, which loads an embedding model on first use."""
        import memlab.kernel.verbs.projections  # noqa: F401 - registers the hooks of memlab's extensions

        return list_hooks("read-answers")[-1]()

    # -- searching --------------------------------------------------------------------------------------------

    def __call__(self, query: str, *args: Any, session: str | None = None, **options: Any) -> Any:
        """Search, record the results that are shown, and return ``RecordedHits``.

        The result is awaitable if the search is asynchronous. ``session`` names searches that depend
        on one another; other arguments are passed to the search. If the search raises an error or is
        cancelled, nothing is recorded.
        """
        if not isinstance(query, str):
            raise InputError(f"The query of a search must be a text, not {type(query).__name__}.")
        session = self._searched.session(args, options) if session is None else session
        challengers = self._challengers
        answer = self._searched.call(query, self.settings.pool, *args, **options)
        others = []
        for challenger in challengers:
            try:
                others.append(
                    challenger.searched.call(query, self.settings.limit, *args, **options)
                )
            except Exception as error:  # noqa: BLE001 - the user gets the results of the recorded search
                others.append(error)
        if inspect.isawaitable(answer):
            return self._wait(query, session, answer, challengers, others)
        return self._show(query, session, answer, challengers, others)

    async def _wait(
        self,
        query: str,
        session: str | None,
        answer: Any,
        challengers: Sequence[_Challenger],
        others: Sequence[Any],
    ) -> RecordedHits:
        """Await the answers of all searches together, and record the search.

        An error of the recorded search is raised. A challenger that fails or is late is left out.
        """
        waiting = [
            asyncio.wait_for(other, challenger.timeout)
            if inspect.isawaitable(other)
            else _now(other)
            for challenger, other in zip(challengers, others, strict=True)
        ]
        first, *rest = await asyncio.gather(answer, *waiting, return_exceptions=True)
        if isinstance(first, BaseException):
            raise first
        return self._show(query, session, first, challengers, rest)

    def _show(
        self,
        query: str,
        session: str | None,
        answer: Any,
        challengers: Sequence[_Challenger],
        others: Sequence[Any],
    ) -> RecordedHits:
        """Draw the results to show, record them, and return them.

        If they cannot be recorded, the first results are returned without probes.
        """
        items = read_items(self._searched.results(answer))[: self.settings.pool]
        index = {item.id: number for number, item in enumerate(items)}
        active = np.arange(min(self.settings.limit, len(items)))
        results: list[Any] = []
        failed = []
        for challenger, other in zip(challengers, others, strict=True):
            try:
                if isinstance(other, BaseException):
                    raise other
                top = read_items(challenger.searched.results(other))[: self.settings.limit]
            except Exception as error:  # noqa: BLE001 - the user gets the results of the recorded search
                warn_caller(f"The challenger {challenger.name} is left out of a search: {error!r}.")
                failed.append(challenger.name)
                continue
            new = [item for item in top if item.id not in index]
            index |= {item.id: number for number, item in enumerate(new, start=len(items))}
            items += new
            rows = np.array([index[item.id] for item in top], dtype=np.int64)
            results.append(ChallengerResults(challenger, rows))  # type: ignore[arg-type]  # has the fields that are read
        features, ids = self._measure(query, items), list(index)
        try:
            with self._journal().write(durable=False) as tx:
                chance, challenge = generator(self.settings.seed, tx.head + 1), None
                sampler = "probe"
                if results:
                    challenges = [each.challenge for each in results]
                    tops = [each.rows for each in results]
                    draw = draw_challenge(active, tops, len(items), challenges, chance)
                    design = challenges[0].design
                    sampler = "challenge" if design == "extra" else design
                    challenge = describe_challenge(
                        results, design, draw, active, np.arange(len(items))
                    )
                    challenge["live"] = ids[: len(active)]
                    for head in challenge["heads"].values():
                        head["ids"] = [ids[number - 1] for number in head["ids"]]
                    if draw.groups is not None:
                        challenge["groups"] = [[ids[at] for at in group] for group in draw.groups]
                else:
                    draw = _draw_probes(len(active), len(items), self.settings.probes, chance)
                positions, drawn = draw.results.tolist(), set(draw.drawn.tolist())
                row = {
                    "of": {
                        "query": screen(query).text,
                        "limit": self.settings.limit,
                        "pack": self.settings.name,
                        "pack_hash": self.settings.version,
                        "sampler": sampler if results or draw.draws else "deterministic",
                        "seed": self.settings.seed if draw.draws else None,
                        "session": session,
                        "challenge": challenge and msgspec.json.encode(challenge).decode(),
                        "failed": ", ".join(failed) or None,
                    },
                    "tables": (
                        {
                            "memory_id": ids,
                            "rank": list(range(1, len(ids) + 1)),
                            "propensity": draw.propensity.tolist(),
                            **features,
                        },
                        {
                            "memory_id": [ids[position] for position in positions],
                            "probe": [position in drawn for position in positions],
                        },
                    ),
                }
                decision = tx.event(SEARCHED, {"row": pack(row)}, at=self.settings.clock())
        except MemlabError as error:
            warn_caller(f"A search was not recorded, and is shown without probes. {error}")
            return RecordedHits(self, query, None, items[: len(active)], items)
        return RecordedHits(
            self, query, decision, [items[position] for position in positions], items
        )

    def _measure(self, query: str, items: Sequence[Item]) -> dict[str, list[float | None]]:
        """Return columns of numbers for the candidates of a query: text statistics and the caller's features.

        A feature whose function fails is left out with a warning. A value that is not finite is None.
        """
        columns = measure_texts(query, items)
        for name, compute in self.settings.features.items():
            try:
                values = compute(query, [item.raw for item in items])
                columns[name] = [finite(value) for _, value in zip(items, values, strict=True)]
            except Exception as error:  # noqa: BLE001 - code of the caller, which must not stop a search
                warn_caller(
                    f"The feature {name} could not be computed and is missing from a search: {error!r}."
                )
        return columns

    # -- rewards ----------------------------------------------------------------------------------------------

    @checked
    def feedback(
        self,
        decision: int | None,
        item: str | int,
        reward: float,
    ) -> None:
        """Record the reward of a result that a search showed, also in another process.

        Parameters
        ----------
        decision
            The number of the search: ``hits.decision``. Nothing is recorded if it is None.
        item
            The id of the result, one of ``hits.ids``.
        reward
            The reward, within ``reward_range``.

        Raises
        ------
        UnknownName
            If the search did not show the item, or the log has no such search.
        InputError
            If the reward is outside the range.
        """
        low, high = self.settings.reward_range
        if not low <= reward <= high:
            raise InputError(
                f"The reward {reward:g} is outside {low:g}..{high:g}. Pass the range of your rewards to memlab.record as "
                "reward_range=(low, high)."
            )
        if decision is not None:
            ids = read_search(self._journal(), decision)["tables"][1]["memory_id"]
            if str(item) not in ids:
                raise UnknownName(f"result of search {decision}", str(item), None)
        self._write_rewards(decision, [(str(item), float(reward), None)], "user")

    def _write_rewards(
        self,
        decision: int | None,
        rows: Sequence[tuple[str, float, float | None]],
        source: str,
    ) -> None:
        """Write the rewards of one search; do nothing without rewards or without a decision number."""
        if decision is None or not rows:
            return
        names = ("memory_id", "reward", "confidence")
        row = {
            "decision": decision,
            "source": source,
            **dict(zip(names, zip(*rows, strict=True), strict=True)),
        }
        with self._journal().write(durable=False) as tx:
            tx.event(REWARDED, {"row": pack(row)}, at=self.settings.clock())

    # -- challenges and the log -------------------------------------------------------------------------------

    @checked
    def challenge(
        self,
        search: Annotated[Any, AsGiven],
        *,
        name: str,
        version: str = "",
        design: ChallengeDesign = "extra",
        extra: ExtraItems = "auto",
        rate: Annotated[float, Within(0.001, 1.0)] = 1.0,
        timeout: Seconds = 2.0,
    ) -> None:
        """Compare another search with the recorded search, from the next search on.

        Parameters
        ----------
        search
            The other search, in the same forms as for ``memlab.record``. Each query is sent to both,
            with the same arguments.
        name
            The name of the challenger.
        version
            A text that you change with the settings of the challenger, so that searches under other
            settings are not mixed.
        design
            "extra" adds results that only the challenger would show. "lot" draws among the results
            on which both differ. "draft" fills these positions with the best results of both, in
            turn. "ab" shows the results of one of them.
        extra
            The number of additional results in the designs "extra" and "draft". "auto" adds half the
            results that only the challenger would show, at most 3 for 10, and none to a draft.
        rate
            The share of searches that take part.
        timeout
            The number of seconds for which an asynchronous challenger is awaited. A challenger that
            is not asynchronous runs after the search and is not interrupted.

        Raises
        ------
        InputError
            If a challenge with another design is running, or a draft has another challenger.

        Notes
        -----
        A challenger that raises an error or is late is left out of that search, with a warning.

        Examples
        --------
        >>> import tempfile
        >>> import memlab
        >>> old, new = ["tabs", "spaces"], ["spaces", "tabs"]
        >>> search = memlab.record(lambda query, k: old[:k], log=tempfile.mkdtemp(), limit=1)
        >>> search.challenge(lambda query, k: new[:k], name="new")
        >>> for number in range(3):
        ...     hits = search("How do I indent?")
        ...     hits.feedback("tabs" if "tabs" in hits else hits[0], 1)
        >>> print(search.verdict(missing="zero")["new"].title)
        After 3 recalls, new and search are indistinguishable.
        """
        others = tuple(each for each in self._challengers if each.name != name)
        if any(each.design != design for each in others):
            raise InputError(
                f"The challenge of {others[0].name} has the design {others[0].design!r}. End it with end_challenge, or "
                "give the same design."
            )
        if others and design == "draft":
            raise InputError(
                f'A challenge with design="draft" compares two searches, and {others[0].name} is a challenger already. '
                "End it with end_challenge."
            )
        challenger = _Challenger(name, version, find_store(search), design, extra, rate, timeout)
        self._challengers = (*others, challenger)

    @checked
    def end_challenge(self, name: str) -> None:
        """Stop comparing a challenger. The log keeps the challenger's searches.

        Parameters
        ----------
        name
            The name of the challenger.

        Raises
        ------
        UnknownName
            If there is no such challenger.
        """
        names = [each.name for each in self._challengers]
        if name not in names:
            raise UnknownName("challenger", name, names)
        self._challengers = tuple(each for each in self._challengers if each.name != name)

    def slates(self) -> Slates:
        """Return the recorded log as tables.

        Returns
        -------
        Slates
            The log so far, with the searches of all processes that record to this log.

        Raises
        ------
        InputError
            If no search was recorded.
        """
        return read_tables(self._journal())

    @checked
    def verdict(self, challenger: str | None = None, **options: Any) -> Verdicts:
        """Decide whether the recorded search or a challenger is better, at any time.

        Parameters
        ----------
        challenger
            The name of one challenger; all challengers by default.
        **options
            The arguments of ``memlab.verdict``, such as ``missing`` and ``cluster``.

        Returns
        -------
        Verdicts
            One verdict for each challenger.
        """
        from memlab.science.evaluation import verdict

        return verdict(self.slates(), challenger, **options)

    def close(self) -> None:
        """Close the log. Later searches still return results but are not recorded."""
        self._journal().close()


async def _now(value: Any) -> Any:
    """Return ``value``, as an awaitable in place of a search whose answer is already known."""
    return value


@checked
def record(
    search: Annotated[Any, AsGiven],
    *,
    log: str | Path,
    limit: Annotated[int, Within(1, 1_000)] = 10,
    probes: Annotated[int, Within(0, 20)] = 1,
    pool: Count | None = None,
    features: Mapping[str, Feature] | None = None,
    name: str = "search",
    version: str = "",
    reward_range: tuple[float, float] = (0.0, 1.0),
    seed: Seed = 0,
    clock: Clock = system_clock,
) -> Recorder:
    """Record a retriever's searches for evaluation of changes to the retriever.

    Parameters
    ----------
    search
        A function ``search(query, k)``, sync or async, that returns the best results first; or a
        mem0 ``Memory``, a LangGraph store, a Chroma collection, or the search method of one. A
        result is a text, or an object or dict with an id (``id``, ``memory_id`` or ``key``) and
        optionally ``score`` and a text. A pair of a result and a score works too.
    log
        The folder of the log, which is created. Several processes may record to one folder.
    limit
        The number of results to show.
    probes
        The number of additional results, drawn from those below the limit and shown at random
        positions below the first. With 0, no item is randomised, and the log is no evidence for
        other policies until a challenge begins.
    pool
        The number of results that the search is asked for; by default ``limit`` + 10.
    features
        Functions by name, called with the query and the list of results. Each returns a number per
        result, such as the score of a new reranker.
    name, version
        The name of this search, and a text that you change with its settings.
    reward_range
        The minimum and maximum reward.
    seed
        The seed from which probes are drawn, together with the number of the search.
    clock
        The clock of the log.

    Returns
    -------
    Recorder
        The search that records. It returns ``RecordedHits``: a list of results with ``used`` and
        ``feedback``.

    Raises
    ------
    InputError
        If an argument is invalid, or ``log`` is a lab.

    Notes
    -----
    The log has the query without secrets, and ids, ranks, probabilities and features of results. It
    has no text of a result. A search that was returned survives the death of the process, but not
    always a power failure. If the log cannot be written, the results are returned with a warning
    and without a probe.

    Examples
    --------
    >>> import tempfile
    >>> import memlab
    >>> memories = ["The deploy day is Friday.", "Tests run with pytest.", "Ana prefers tabs."]
    >>> def search(query, k):
    ...     return memories[:k]
    >>> search = memlab.record(search, log=tempfile.mkdtemp(), limit=1)
    >>> hits = search("When do we deploy?")
    >>> rewards = hits.used("On Friday.")
    >>> len(hits), len(search.slates())
    (2, 1)
    """
    size = limit + _MORE if pool is None else pool
    if size < limit + probes:
        raise InputError(
            f"A pool of {size} results is too small for {limit} results and {probes} "
            "probes. Give a larger pool, or leave it out."
        )
    low, high = reward_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"reward_range must be a pair (minimum, maximum), not {reward_range!r}.")
    settings = Settings(
        Path(log),
        limit,
        probes,
        size,
        dict(features or {}),
        name,
        version,
        reward_range,
        seed,
        clock,
    )
    return Recorder(find_store(search), settings)
