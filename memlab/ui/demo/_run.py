"""The demo, step by step: a few lines of the public API each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from memlab.errors import InputError
from memlab.io.ingest import conversation, read_locomo
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.base.display import clip, text_table
from memlab.subjects.opening import open_lab

if TYPE_CHECKING:
    from memlab.io.ingest import LabelledConversation
    from memlab.kernel.recall import Hit, Hits, ScoreExplanation
    from memlab.science.bench import BenchResult
    from memlab.science.simulation import World
    from memlab.ui.demo.quarter import Quarter

__all__ = ["CONVERSATION", "QUESTION", "SLOT", "SOURCE", "DemoResult", "run_demo"]


# What the demo shows, as objects of the public API.


CONVERSATION = Path(__file__).parent / "conversation.json"
"""171 turns in LoCoMo's format, with 39 questions and their evidence; written for memlab."""

QUESTION = "Should I offer Noor a coffee in the morning?"
SLOT = "recall-score"
SOURCE = """(fn [similarity lexical age-days]
  (+ (min-max similarity)
     (min-max lexical)
     (* 0.6 (pow 0.5 (/ age-days 30)))))"""


@dataclass(frozen=True)
class DemoResult:
    """The pages that were written and what they show.

    ``before`` and ``after`` are the refs of the turns that were recalled under either policy, best first. ``report``
    and ``quarter`` are None unless the demo was a full one.
    """

    output: Path
    report: Path | None
    seconds: float
    labelled: LabelledConversation
    memories: int
    edges: int
    ingest_seconds: float
    hits: Hits
    explanations: tuple[ScoreExplanation, ...]
    helped: Hit
    stale: Hit
    old_source: str
    hits_after: Hits
    restored: Hits
    bench: BenchResult
    embedder: str
    quarter: Quarter | None

    @property
    def before(self) -> tuple[str, ...]:
        return tuple(hit.ref or "" for hit in self.hits)

    @property
    def after(self) -> tuple[str, ...]:
        return tuple(hit.ref or "" for hit in self.hits_after)

    @property
    def hashes(self) -> Mapping[str, str]:
        """Conversation, embedder, and each policy and pack that took part, by hash."""
        found = {
            "conversation": hashlib.sha256(CONVERSATION.read_bytes()).hexdigest(),
            "embedder": self.embedder,
            f"policy {SLOT}, before": self.hits.pack.policies[SLOT].hash,
            f"policy {SLOT}, after": self.hits_after.pack.policies[SLOT].hash,
            "pack memlab, after": self.hits_after.pack.hash,
        }
        found |= {f"pack {system.name}": system.hash for system in self.bench.systems}
        if self.quarter is not None:
            found |= {
                "pack that logged the quarter": self.quarter.pack.hash,
                "log of the quarter": self.quarter.digest,
            }
        return found

    def to_dict(self) -> dict[str, object]:
        """As JSON takes it; ``report`` and ``quarter`` only of a full demo."""
        values: dict[str, object] = {
            "output": str(self.output),
            "seconds": round(self.seconds, 2),
            "memories": self.memories,
            "edges": self.edges,
            "question": QUESTION,
            "before": list(self.before),
            "after": list(self.after),
            "hashes": dict(self.hashes),
            "bench": self.bench.to_dict(),
        }
        if self.quarter is not None:
            values |= {"report": str(self.report), "quarter": self.quarter.to_dict()}
        return values

    def __repr__(self) -> str:
        recalls = "" if self.quarter is None else f", {self.quarter.recalls} simulated recalls"
        return f"<DemoResult {self.output}: {self.memories} memories{recalls}, {self.seconds:.1f} s>"


Say = Callable[[str], None]

_HOLDS_NOW, _HELD_ONCE = "D13:1", "D1:9"
_LIMIT = 8
_PRINTED = 3
_TERMS = 6
_PRINTED_CHARACTERS = 78


def run_demo(
    *,
    output: str | Path = "memlab-demo.html",
    full: bool = False,
    quiet: bool = False,
    progress: bool = False,
    world: World | None = None,
) -> DemoResult:
    """Run the demo and write its page to ``output``: one file of HTML that asks for nothing else.

    ``full`` adds the simulated quarter, and the report of its evaluation beside the page as ``<stem>-evaluation.html``;
    ``world`` is lived instead of the quarter. ``quiet`` prints no story; ``progress`` is shown on stderr.

    Raises ``InputError`` when a page cannot be written, before anything else is done.

    >>> run_demo(quiet=True).output                                      # doctest: +SKIP
    PosixPath('memlab-demo.html')
    """
    start = perf_counter()
    target = _writable(Path(output).expanduser())
    report = _writable(target.with_name(f"{target.stem}-evaluation.html")) if full else None
    say: Say = (lambda line: None) if quiet else partial(print, flush=True)  # in a pipe, too, line by line
    (labelled,) = read_locomo(CONVERSATION)
    talk = labelled.conversation
    first, last = talk.turns[0].at, talk.end
    say(f"memlab demo: {' and '.join(talk.speakers)}, {first:%-d %B} to {last:%-d %B %Y}, {len(talk.turns)} turns")

    with open_lab(clock=ManualClock(last + timedelta(days=1))) as lab:
        lab.io.embedder.encode(["the first text loads the model"])
        since = perf_counter()
        conversation(lab, talk)
        ingest_seconds = perf_counter() - since
        memories, edges = len(lab), lab.edges.height
        say(f"1 remember  {memories} memories and {edges} edges in {ingest_seconds * 1000:.0f} ms")

        before = lab.recall(QUESTION, limit=_LIMIT, project=talk.name)
        say(f'2 recall    "{QUESTION}" with pack {before.pack.name} [{before.pack.hash[:12]}]')
        for hit in before[:_PRINTED]:
            say(f"    {hit.rank}  {hit.score:.3f}  {hit.speaker}: {clip(hit.text, _PRINTED_CHARACTERS)}")

        explanations = tuple(hit.explain() for hit in before)
        terms = sorted((term for term in explanations[0].terms if term[1]), key=lambda term: -abs(term[1]))
        say(f"3 explain   the first hit scores {explanations[0].score:.3f}, the sum of {len(terms)} terms, above all")
        for text, value in terms[:_TERMS]:
            say(f"    {value:+.3f}  {clip(text, 100)}")

        helped, stale = _find(before, _HOLDS_NOW), _find(before, _HELD_ONCE)
        lab.feedback(helped, "success")
        lab.feedback(stale, "fail")
        say(f"4 feedback  rank {helped.rank} helped, rank {stale.rank} is out of date: both logged")

        old_source = lab.policies[SLOT].source
        lab.policies.install(SLOT, SOURCE, reason="what is new weighs more")
        after = lab.recall(QUESTION, limit=_LIMIT, project=talk.name)
        say(f"5 swap      {SLOT} is now")
        for line in SOURCE.splitlines():
            say(f"    {line}")
        ranks = {hit.id: hit.rank for hit in before}
        for hit in after[:_PRINTED]:
            was = f"was {ranks[hit.id]}" if hit.id in ranks else "new  "
            say(f"    {hit.rank}  {was}  {hit.speaker}: {clip(hit.text, _PRINTED_CHARACTERS)}")
        lab.policies.rollback(SLOT, reason="end of the demo")
        restored = lab.recall(QUESTION, limit=_LIMIT, project=talk.name)
        embedder = lab.io.embedder.fingerprint

    # From here on seconds pass, so what they need is imported only now.
    from memlab.science.bench import bench_conversations
    from memlab.ui.demo.page import page

    bench = bench_conversations([labelled], dataset=talk.name, progress=progress)
    say(f"6 bench     {bench.questions} questions with labels, {len(bench.systems)} systems, each on a lab of its own")
    metrics = ("recall@5", "recall@10", "ndcg@10")
    rows = [
        [one.name, *(f"{one.metrics[name]:.2f}" for name in metrics), f"{one.latency_ms['p50']:.1f} ms"]
        for one in bench.systems
    ]
    _say_table(say, ["system", *metrics, "latency"], rows)
    say(
        "    NAME-plus is the design NAME ranked as memlab ranks: for daily use. companion forgets what nobody recalls."
    )
    quarter = None
    if full:
        from memlab.ui.demo.quarter import live_quarter

        quarter = live_quarter(world=world, report=report, progress=progress)
        _say_quarter(quarter, say)
    result = DemoResult(
        target,
        report,
        perf_counter() - start,
        labelled,
        memories,
        edges,
        ingest_seconds,
        before,
        explanations,
        helped,
        stale,
        old_source,
        after,
        restored,
        bench,
        embedder,
        quarter,
    )
    target.write_text(page(result), encoding="utf-8")
    if report is not None:
        say(f"the report of the evaluation: {report}")
    result = replace(result, seconds=perf_counter() - start)
    say(f"{result.seconds:.1f} s in all; wrote {target}")
    return result


def _say_quarter(quarter: Quarter, say: Say) -> None:
    agreed = quarter.agreement
    say(
        f"7 live      {quarter.world.days} simulated days: {quarter.memories:,} memories, {quarter.recalls:,} recalls, "
        f"{quarter.probes:,} probes, {quarter.answers:,} answers"
    )
    say("8 evaluate  every pack on that log alone; mean reward per recall, 95% interval")
    rows = [
        [
            row.policy,
            "withheld" if row.value is None else f"{row.value.value:.2f} [{row.value.low:.2f}, {row.value.high:.2f}]",
            f"{quarter.truth[row.policy]:.2f}",
            row.verdict,
        ]
        for row in quarter.evaluation.rows
    ]
    _say_table(say, ["pack", "value", "truth", "verdict"], rows)
    say(
        f"9 truth     {agreed.ordered} of {agreed.pairs} pairs in the true order, "
        f"{agreed.holding} of {agreed.intervals} intervals hold the truth"
    )


def _say_table(say: Say, heads: list[str], rows: list[list[str]]) -> None:
    for line in text_table(heads, rows, left=(0, len(heads) - 1)):
        say(f"    {line}")


def _find(hits: Hits, ref: str) -> Hit:
    """The hit of a turn; the last one where the turn was not shown."""
    return next((hit for hit in hits if hit.ref == ref), hits[-1])


def _writable(target: Path) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise InputError(f"The page cannot be written to {target}: {error.strerror}. Name another --output.") from None
    return target
