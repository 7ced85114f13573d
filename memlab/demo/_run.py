"""The steps of the demo, in order; a few lines of the public API each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import TextIO

from memlab.clock import ManualClock
from memlab.demo._page import digests, page
from memlab.demo._quarter import Quarter, live_quarter
from memlab.demo._result import DemoResult, Story
from memlab.errors import InputError
from memlab.evaluation import bench_locomo
from memlab.ingest import conversation, read_locomo
from memlab.lab import open_lab
from memlab.recall import Hit, Hits
from memlab.simulation import World

__all__ = ["CONVERSATION", "run_demo"]

CONVERSATION = Path(__file__).parent / "conversation.json"
"""171 turns in LoCoMo's format, with 39 questions and their evidence; written for memlab."""

QUESTION = "Should I offer Noor a coffee in the morning?"
NOW, ONCE = "D13:1", "D1:9"
LIMIT = 8

SLOT = "recall-score"
SOURCE = """(fn [similarity lexical age-days]
  (+ (min-max similarity)
     (min-max lexical)
     (* 0.6 (pow 0.5 (/ age-days 30)))))"""


def run_demo(*, output: str | Path = "memlab-demo.html", quiet: bool = False, world: World | None = None) -> DemoResult:
    """Run the demo and write its page to ``output``: one file of HTML that asks for nothing else.

    The full report of the evaluation is written beside it, as ``<stem>-evaluation.html``. ``world`` is lived instead of
    the quarter.

    Raises ``InputError`` when the page cannot be written, before anything else is done.

    >>> run_demo(quiet=True).output                                      # doctest: +SKIP
    PosixPath('memlab-demo.html')
    """
    target = _writable(Path(output).expanduser())
    report = _writable(target.with_name(f"{target.stem}-evaluation.html"))
    say = _Teller(None if quiet else sys.stdout)
    start = perf_counter()
    story = _tell(say, start, report, world)
    html = page(story, report=report.name)
    target.write_text(html, encoding="utf-8")
    seconds = perf_counter() - start
    say(f"the report of the evaluation: {report}")
    say(f"{seconds:.1f} s in all; wrote {target}")
    return DemoResult(
        target,
        report,
        seconds,
        story.memories,
        story.edges,
        QUESTION,
        tuple(hit.ref or "" for hit in story.before),
        tuple(hit.ref or "" for hit in story.after),
        story.bench,
        story.quarter,
        digests(story),
    )


def _tell(say: _Teller, start: float, report: Path, world: World | None) -> Story:
    (labelled,) = read_locomo(CONVERSATION)
    talk = labelled.conversation
    first, last = talk.turns[0].at, talk.end
    say.title(
        f"memlab demo: {' and '.join(talk.speakers)}, {first:%-d %B} to {last:%-d %B %Y}, {len(talk.turns)} turns"
    )

    with open_lab(clock=ManualClock(last + timedelta(days=1))) as lab:
        lab.embedder.encode(["the first text loads the model"])
        since = perf_counter()
        conversation(lab, talk)
        ingest = perf_counter() - since
        edges = lab.edges.height
        say.step("remember", f"{len(lab)} memories and {edges} edges in {ingest * 1000:.0f} ms")

        before = lab.recall(QUESTION, limit=LIMIT, project=talk.name)
        say.step("recall", f'"{QUESTION}" with pack {before.pack.name} [{before.pack.hash[:12]}]')
        say.hits(before)

        explanations = tuple(hit.explain() for hit in before)
        top = explanations[0]
        say.step("explain", f"the first hit scores {top.score:.3f}, the sum of")
        for text, value in top.terms:
            say(f"    {value:+.3f}  {text}")

        helped, stale = _by_ref(before, NOW), _by_ref(before, ONCE)
        lab.feedback(helped, "success")
        lab.feedback(stale, "fail")
        say.step("feedback", f"rank {helped.rank} helped, rank {stale.rank} is out of date: both logged")

        old = lab.policies[SLOT].source
        lab.policies.install(SLOT, SOURCE, reason="what is new weighs more")
        after = lab.recall(QUESTION, limit=LIMIT, project=talk.name)
        say.step("swap", f"{SLOT} is now")
        for line in SOURCE.splitlines():
            say(f"    {line}")
        say.moved(before, after)
        lab.policies.rollback(SLOT, reason="end of the demo")
        restored = lab.recall(QUESTION, limit=LIMIT, project=talk.name)
        memories = len(lab)
        embedder = lab.embedder.fingerprint

    bench = bench_locomo([labelled], dataset=talk.name, progress=say.live)
    say.step(
        "bench", f"{bench.questions} questions with labels, {len(bench.systems)} systems, each on a lab of its own"
    )
    for system in bench.systems:
        found = system.metrics
        say(
            f"    {system.name:<12} recall@5 {found['recall@5']:.2f}  recall@10 {found['recall@10']:.2f}  "
            f"ndcg@10 {found['ndcg@10']:.2f}  {system.latency_ms['p50']:.1f} ms"
        )
    with say.stages(4) as stage:
        quarter = live_quarter(world=world, report=report, progress=say.live, stage=stage)
    say.quarter(quarter)
    return Story(
        labelled,
        memories,
        edges,
        ingest,
        before,
        explanations,
        helped,
        stale,
        SLOT,
        old,
        SOURCE,
        after,
        restored,
        bench,
        embedder,
        quarter,
        perf_counter() - start,
    )


def _by_ref(hits: Hits, ref: str) -> Hit:
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


class _Teller:
    """Lines on a terminal, or nothing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._steps = 0
        self.live = stream is not None and sys.stderr.isatty()

    def __call__(self, line: str) -> None:
        if self._stream is not None:
            print(line, file=self._stream)

    def title(self, line: str) -> None:
        self(line)

    def step(self, verb: str, line: str) -> None:
        self._steps += 1
        self(f"{self._steps} {verb:<9} {line}")

    def hits(self, hits: Hits, *, most: int = 3) -> None:
        for hit in hits[:most]:
            self(f"    {hit.rank}  {hit.score:.3f}  {hit.speaker}: {_clip(hit.text)}")

    def moved(self, before: Hits, after: Hits, *, most: int = 3) -> None:
        ranks = {hit.id: hit.rank for hit in before}
        for hit in after[:most]:
            was = f"was {ranks[hit.id]}" if hit.id in ranks else "new  "
            self(f"    {hit.rank}  {was}  {hit.speaker}: {_clip(hit.text)}")

    def quarter(self, quarter: Quarter) -> None:
        found, agreed = quarter.evaluation, quarter.agreement
        self.step(
            "live",
            f"{quarter.world.days} simulated days: {quarter.memories:,} memories, {quarter.recalls:,} recalls, "
            f"{quarter.probes:,} probes, {quarter.told:,} answers",
        )
        self.step("evaluate", "every pack on that log alone; rewards a recall, 95% interval")
        for row in found.rows:
            value = row.value
            told = "withheld" if value is None else f"{value.value:.2f} [{value.low:.2f}, {value.high:.2f}]"
            self(f"    {row.policy:<12} {told:<19} truth {quarter.truth[row.policy]:.2f}  {row.verdict}")
        self.step(
            "truth",
            f"{agreed.ordered} of {agreed.pairs} pairs in the true order, "
            f"{agreed.holding} of {agreed.intervals} intervals hold the truth",
        )
        self.step("refuse", f"the same user without probes, {quarter.refused.recalls} recalls: no ranking, and why")

    @contextmanager
    def stages(self, count: int) -> Iterator[Callable[[str], None]]:
        """One bar over what takes long, where somebody looks on."""
        if not self.live:
            yield lambda name: None
            return
        from tqdm.auto import tqdm

        with tqdm(total=count, bar_format="{desc} {bar} {n_fmt}/{total_fmt} {elapsed}", leave=False) as bar:
            begun: list[str] = []

            def stage(name: str) -> None:
                bar.update(1 if begun else 0)
                begun.append(name)
                bar.set_description_str(name)

            yield stage


def _clip(text: str, most: int = 78) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
