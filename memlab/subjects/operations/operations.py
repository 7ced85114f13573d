"""``lab.upkeep.operations``: operations written down as text, proposed by memories, run with consent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from memlab.errors import InputError, PolicyError
from memlab.kernel.base.arguments import Seed, Within, checked
from memlab.kernel.verbs.core import Core, Memories, MemoryLike
from memlab.kernel.verbs.policies.falls import propose_revert
from memlab.subjects.programs import (
    Adapted,
    Estimator,
    Fuel,
    Missing,
    OperableLab,
    Program,
    Proposal,
    Ran,
    adapt,
    read_program,
    run_program,
)

__all__ = ["LabOperations"]


class LabOperations:
    """``lab.upkeep.operations``: run S-expressions that call the verbs of a lab, and see what memories propose."""

    def __init__(self, lab: OperableLab, core: Core) -> None:
        self._lab, self._core = lab, core

    @checked
    def run(
        self, operations: str | Path | MemoryLike | Proposal, *, consent: bool = False, fuel: Fuel | None = None
    ) -> Ran:
        """Run operations such as ``(remember "tabs" "preference" 0.8 "30d")``: a text, a file, or what a memory holds.

        All of them are checked before the first is run: names, arity, types, limits and ids. A memory's operations run
        only with ``consent=True``; a proposal runs as it was shown, whatever the memory holds by now. Those of memories
        that are recalled meanwhile do not run. ``fuel`` bounds how many operations there may be and how many memories
        they touch. The operations and their arguments: docs/reference/operations.md. The run is an event, and so is
        whatever it does.

        Raises a PolicyError with line and caret; InputError without consent.

        >>> lab.upkeep.operations.run('(recall "how should I indent?" 3) (stats)')  # doctest: +SKIP
        """
        if isinstance(operations, str):
            return self._run(read_program(operations), fuel, consent)
        if isinstance(operations, Path):
            try:
                source = operations.expanduser().read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"Cannot read the operations in {operations}: {error}.") from None
            return self._run(read_program(source, file=str(operations)), fuel, consent)
        if isinstance(operations, Proposal):
            proposal = operations
        else:
            proposals = self.proposals(operations)
            if not proposals:
                raise InputError(f"{operations!r} holds no operations: there is nothing to run.")
            proposal = proposals[0]
        if proposal.program is None:
            raise InputError(f"The operations of memory {proposal.memory} cannot be run: {proposal.problem}")
        if consent is not True:
            raise InputError(
                f"{proposal}\nTo run this, consent: lab.upkeep.operations.run({proposal.memory}, consent=True)."
            )
        return self._run(proposal.program, fuel, consent, proposal.memory)

    def _run(self, program: Program, fuel: Fuel | None, consent: bool, memory: int | None = None) -> Ran:
        store = self._core.store

        def record() -> int:
            body = {"memory": memory, "operations": [call.name for call in program.calls], "hash": program.hash}
            with store.writing() as tx:
                program.check_ids(len(store.state))
                if not store.versions.pack.settings["open-words"]:
                    program.check_words()
                return tx.event("run", body, at=store.clock())

        return run_program(self._lab, program, fuel=fuel or Fuel(), record=record, memory=memory, consent=consent)

    @checked
    def adapt_policy(
        self,
        *,
        missing: Missing | None = None,
        horizon: str | None = None,
        cluster: str | None = None,
        estimator: Estimator = "snips",
        level: Annotated[float, Within(0.5, 0.999)] = 0.95,
        reward_range: tuple[float, float] | None = None,
        consent: bool = False,
        seed: Seed = 0,
    ) -> Adapted:
        """Revert a policy that does worse, or install one that does better, as ``(adapt-policy)`` does.

        Below 20 recalls with a judgement nothing is concluded.

        Parameters
        ----------
        missing
            What missing feedback counts as, as in ``memlab.evaluate``: "zero", "censor", "inverse" or "bounds".
        horizon
            The time that each recall has to earn, such as "7d". Recalls that are younger are left out.
        cluster
            What belongs together and counts once: "day", "session", "decision" or a column of the decisions.
        estimator
            "snips" or "ht", as in ``memlab.evaluate``.
        level
            The probability with which nothing is called better wrongly, for each way of comparing.
        reward_range
            The smallest and the largest reward, where they are not 0 and 1.
        consent
            Whether to carry out the step. Without it, the step is proposed.
        seed
            The seed of the search for other numbers.

        Returns
        -------
        Adapted
            What was done or proposed, and the evidence.

        Raises
        ------
        InputError
            For a horizon that is no span of time, and for a cluster that is no column of the log.

        Examples
        --------
        >>> lab.upkeep.operations.adapt_policy(missing="zero", cluster="day", horizon="1d")             # doctest: +SKIP
        """
        return adapt(
            self._lab,
            missing=missing,
            horizon=horizon,
            cluster=cluster,
            estimator=estimator,
            level=level,
            reward_range=reward_range,
            consent=consent,
            seed=seed,
        )

    @checked
    def check_fall(
        self,
        *,
        missing: Missing = "censor",
        horizon: str | None = None,
        cluster: str | None = None,
        level: Annotated[float, Within(0.5, 0.999)] = 0.95,
        reward_range: tuple[float, float] | None = None,
    ) -> Adapted | None:
        """Return the proposal to bring an earlier policy back, or None where the live one has not fallen.

        ``lab.feedback`` gives the proposal of the defaults, once, with the judgement that showed the fall. The
        arguments are those of ``adapt_policy``; a log of successes alone needs ``missing="zero"``.

        Returns
        -------
        Adapted or None
            The proposal, with the call that carries it out.

        Raises
        ------
        InputError
            Where the log cannot be compared, such as rewards outside ``reward_range``.
        """
        return propose_revert(
            self._core.store, missing=missing, horizon=horizon, cluster=cluster, level=level, reward_range=reward_range
        )

    @checked
    def proposals(self, memories: Memories) -> tuple[Proposal, ...]:
        """What these memories would do: hits of a recall, say, of which some hold operations. Nothing is run.

        A memory holds operations when it is remembered with them, at most 100 in 20,000 characters:
        ``lab.remember("On release day", kind="procedure", operations='(recall "release")')``. They are checked then.

        >>> lab.upkeep.operations.proposals(lab.recall("release day"))  # doctest: +SKIP
        """
        found = []
        with self._core.reading() as state:
            held = [(row + 1, state.notes["operations"].at(row)) for row in self._core.rows(memories)]
        for memory, text in held:
            if text is None:
                continue
            try:
                found.append(Proposal(memory, text, read_program(text, file=f"memory {memory}")))
            except PolicyError as error:
                found.append(Proposal(memory, text, None, str(error)))
        return tuple(found)
