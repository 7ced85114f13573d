"""The demo, step by step: a few lines of the public API each."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from memlab.errors import InputError
from memlab.io.ingest import conversation, read_locomo
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.base.display import Markup, clip, render_html, text_table
from memlab.kernel.version import __version__
from memlab.science.examples import CONVERSATION
from memlab.subjects.drawing import (
    BLUE,
    CYCLE,
    GREY,
    ORANGE,
    Draw,
    draw_ranks,
    draw_svg,
    render_page,
    render_svg,
)
from memlab.subjects.opening import open_lab

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from memlab.io.ingest import LabelledConversation, Turn
    from memlab.kernel.recall import Hit, Hits, ScoreExplanation
    from memlab.science.bench import BenchResult
    from memlab.science.simulation import World
    from memlab.ui.demo.quarter import Quarter

__all__ = [
    "CONVERSATION",
    "QUESTION",
    "SLOT",
    "SOURCE",
    "DemoResult",
    "draw_moves",
    "draw_terms",
    "draw_timeline",
    "draw_truth",
    "page",
    "run_demo",
]


# What the demo shows, as objects of the public API.


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
        return (
            f"<DemoResult {self.output}: {self.memories} memories{recalls}, {self.seconds:.1f} s>"
        )


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
    # in a pipe, too, line by line
    say: Say = (lambda line: None) if quiet else partial(print, flush=True)
    (labelled,) = read_locomo(CONVERSATION)
    talk = labelled.conversation
    first, last = talk.turns[0].at, talk.end
    say(
        f"memlab demo: {' and '.join(talk.speakers)}, {first:%-d %B} to {last:%-d %B %Y}, {len(talk.turns)} turns"
    )

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
            say(
                f"    {hit.rank}  {hit.score:.3f}  {hit.speaker}: {clip(hit.text, _PRINTED_CHARACTERS)}"
            )

        explanations = tuple(hit.explain() for hit in before)
        terms = sorted(
            (term for term in explanations[0].terms if term[1]), key=lambda term: -abs(term[1])
        )
        say(
            f"3 explain   the first hit scores {explanations[0].score:.3f}, the sum of {len(terms)} terms, above all"
        )
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

    bench = bench_conversations([labelled], dataset=talk.name, progress=progress)
    say(
        f"6 bench     {bench.questions} questions with labels, {len(bench.systems)} systems, each on a lab of its own"
    )
    metrics = ("recall@5", "recall@10", "ndcg@10")
    rows = [
        [
            one.name,
            *(f"{one.metrics[name]:.2f}" for name in metrics),
            f"{one.latency_ms['p50']:.1f} ms",
        ]
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
            "withheld"
            if row.value is None
            else f"{row.value.value:.2f} [{row.value.low:.2f}, {row.value.high:.2f}]",
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
        raise InputError(
            f"The page cannot be written to {target}: {error.strerror}. Name another --output."
        ) from None
    return target


# The page of the demo: one file of HTML that asks for nothing else.


# The figures of the page, as SVG that takes its ink from the page: readable on a light ground and on a dark one.
#
# Text stays text, in the page's own typeface. The same numbers give the same bytes.


def draw_timeline(hits: Hits, when: dict[int, datetime], marked: Sequence[Hit]) -> Draw:
    """Every candidate of a recall by when it was said and by its score; what was shown is filled."""
    pool = [
        (when[int(memory)], float(score))
        for memory, score in zip(hits.slate.ids, hits.slate.scores, strict=True)
    ]
    shown = [(when[hit.id], hit.score) for hit in hits]

    def draw(axes: Axes) -> None:
        import matplotlib.dates

        dates: Any = matplotlib.dates  # which has no types

        axes.scatter(
            *_columns(pool),
            s=16,
            facecolors="none",
            edgecolors=GREY,
            linewidths=0.8,
            label="considered",
        )
        axes.scatter(*_columns(shown), s=30, color=BLUE, label="shown")
        for hit in marked:
            at: Any = when[hit.id]
            axes.scatter(
                [at], [hit.score], s=120, facecolors="none", edgecolors=ORANGE, linewidths=1.8
            )
            axes.annotate(
                f"{at.day} {at:%B}, rank {hit.rank}",
                (at, hit.score),
                xytext=(11, 0),
                textcoords="offset points",
                va="center",
            )
        axes.xaxis.set_major_locator(dates.MonthLocator())
        axes.xaxis.set_major_formatter(dates.DateFormatter("1 %B"))
        axes.set_ylabel("score")
        axes.margins(y=0.1)
        axes.legend(
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=2,
            borderpad=0,
            handletextpad=0.3,
        )

    return draw


def draw_moves(before: Hits, after: Hits, *, most: int = 8) -> Draw:
    """The ranks of the hits under two policies, joined by lines."""
    old, new = (
        {hit.id: hit.rank for hit in before[:most]},
        {hit.id: hit.rank for hit in after[:most]},
    )
    texts = {hit.id: clip(hit.text, 42) for hit in (*before, *after)}
    rows = [(old.get(id), new.get(id), texts[id]) for id in sorted(old.keys() | new.keys())]
    return draw_ranks(("before", "after"), rows, maximum=most)


_LONGEST_TERM = 30
"""Characters of a term in the legend: three columns of longer ones leave no room for the bars."""


def draw_terms(explanations: Sequence[ScoreExplanation], texts: Sequence[str]) -> Draw:
    """One bar a hit, best first: the terms that its score is the sum of, as the policy's source writes them.

    A term has a colour of its own if it adds or takes much in any hit; those beyond the colours are one group.
    """
    rows = [dict(one.terms) for one in explanations]
    size = {
        term: max(abs(terms.get(term, 0.0)) for terms in rows) for terms in rows for term in terms
    }
    order = sorted((term for term in size if size[term] > 0), key=lambda term: -size[term])

    def draw(axes: Axes) -> None:
        ends = {1: [0.0] * len(rows), -1: [0.0] * len(rows)}
        rest = len(order) - len(CYCLE)
        for place, (term, colour) in enumerate(
            zip(order, [*CYCLE, *[GREY] * len(order)], strict=False)
        ):
            for row, terms in enumerate(rows):
                value = terms.get(term, 0.0)
                if value:
                    side = 1 if value > 0 else -1
                    axes.barh(
                        row, value, left=ends[side][row], height=0.62, color=colour, linewidth=0
                    )
                    ends[side][row] += value
            if place < len(CYCLE):
                axes.barh([0], [0], color=colour, label=clip(term, _LONGEST_TERM))
        if rest > 0:
            axes.barh(
                [0],
                [0],
                color=GREY,
                label=clip(order[-1], _LONGEST_TERM) if rest == 1 else f"{rest} smaller terms",
            )
        for row, (one, up) in enumerate(zip(explanations, ends[1], strict=True)):
            axes.text(up + 0.012, row, f"{one.score:.2f}", va="center")
        names = [f"{clip(text, 44)}  {rank}" for rank, text in enumerate(texts, 1)]
        axes.set_yticks(range(len(rows)), names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(min([0.0, *ends[-1]]) - 0.01, max(ends[1]) + 0.05)
        axes.axvline(0, color=GREY, linewidth=0.8)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("score, as the sum of its terms")
        axes.legend(
            frameon=False,
            loc="lower right",
            bbox_to_anchor=(1, 1.01),
            ncols=3,
            borderpad=0,
            handlelength=0.9,
            columnspacing=1.6,
            prop={"family": "monospace", "size": 8.5},
        )

    return draw


def draw_truth(quarter: Quarter) -> Draw:
    """Each pack by its true value and by what the log alone said, with its interval; on the line the two are one."""
    rows = quarter.evaluation.rows
    valued = [
        (row.policy, quarter.truth[row.policy], row.value) for row in rows if row.value is not None
    ]
    withheld = [
        (row.policy, quarter.truth[row.policy], row.estimate) for row in rows if row.value is None
    ]

    def draw(axes: Axes) -> None:
        ends = [end for _, true, value in valued for end in (true, value.low, value.high)]
        ends += [end for _, true, found in withheld for end in (true, found)]
        room = 0.06 * (max(ends) - min(ends))
        low, high = max(0.0, min(ends) - room), max(ends) + 2 * room
        axes.plot(
            [low, high], [low, high], color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0
        )
        for name, true, value in valued:
            colour = ORANGE if name == quarter.evaluation.baseline else BLUE
            axes.plot(
                [true, true],
                [value.low, value.high],
                color=colour,
                linewidth=2.2,
                solid_capstyle="round",
            )
            axes.scatter([true], [value.value], s=52, color=colour, zorder=3)
        for _, true, found in withheld:
            axes.scatter(
                [true], [found], s=46, facecolors="none", edgecolors=GREY, linewidths=1.6, zorder=3
            )
        names = [(name, true, value.high) for name, true, value in valued]
        names += [(f"{name}, withheld", true, found) for name, true, found in withheld]
        trues = [true for _, true, _ in names]
        left, right = min(trues) - 0.11, max(trues) + 0.13
        _name_all(axes, sorted(names, key=lambda one: one[1]), near=0.055 * (right - left))
        axes.set_xlim(left, right)
        axes.set_ylim(low, high)
        axes.set_xlabel("true value: mean reward per recall (top k)")
        axes.set_ylabel("estimated from the log alone")
        axes.grid(color=GREY, alpha=0.18, linewidth=0.6)

    return draw


def _name_all(axes: Axes, names: Sequence[tuple[str, float, float]], *, near: float) -> None:
    """Write names above their points, given from left to right; of two that are near, each on its own side."""
    for place, (name, x, y) in enumerate(names):
        after = place > 0 and x - names[place - 1][1] < near
        before = place + 1 < len(names) and names[place + 1][1] - x < near
        side = "center" if after == before else "right" if before else "left"
        axes.annotate(name, (x, y), xytext=(0, 6), textcoords="offset points", ha=side)


def _columns(points: Sequence[tuple[datetime, float]]) -> tuple[Any, list[float]]:
    return [at for at, _ in points], [score for _, score in points]


_PACKAGES = ("hy", "polars", "numpy", "model2vec")
_WIDTH = 8.2


def page(story: DemoResult) -> str:
    """The story as HTML, everything from texts escaped. Tables are what a notebook shows of the same objects."""
    talk, quarter = story.labelled.conversation, story.quarter
    # The demo's lab numbers memories from 1, in the order of the conversation.
    when = {
        number: turn.at
        for number, turn in enumerate((turn for turn in talk.turns if turn.content), 1)
    }
    shown: dict[str, Any] = {"hits": story.hits, "bench": story.bench}
    if quarter is not None:
        shown["evaluation"] = quarter.evaluation
    return render_page(
        Path(__file__).parent / "page.html",
        {},
        story=story,
        slot=SLOT,
        new_source=SOURCE,
        talk=talk,
        excerpt=_excerpt(story),
        quarter=quarter,
        back=_unprobed(story.restored) == _unprobed(story.hits),
        figures={name: Markup(text) for name, text in _draw(story, when).items()},
        tables={name: render_html(one) for name, one in shown.items()},
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def _draw(story: DemoResult, when: dict[int, datetime]) -> dict[str, str]:
    """The figures as SVG, by name."""
    drawn = {
        "timeline": (draw_timeline(story.hits, when, [story.helped, story.stale]), 3.4),
        "moves": (draw_moves(story.hits, story.hits_after), 3.1),
        "terms": (draw_terms(story.explanations, [hit.text for hit in story.hits]), 3.6),
    }
    if story.quarter is not None:
        drawn["truth"] = (draw_truth(story.quarter), 4.4)
    found = {
        name: draw_svg(draw, name=name, width=_WIDTH, height=height)
        for name, (draw, height) in drawn.items()
    }
    if story.quarter is not None:
        found["leaderboard"] = render_svg(
            story.quarter.evaluation.figure("leaderboard"), name="leaderboard"
        )
    return found


def _unprobed(hits: Hits) -> list[int]:
    return [hit.id for hit in hits if not hit.probe]


def _excerpt(story: DemoResult) -> list[tuple[Turn, bool]]:
    """The turns around the two on which the demo hangs, and whether each is one of them."""
    turns = story.labelled.conversation.turns
    marked = {story.helped.ref, story.stale.ref}
    near = {
        place
        for at, turn in enumerate(turns)
        if turn.ref in marked
        for place in (at - 1, at, at + 1)
        if 0 <= place < len(turns) and turns[place].session == turn.session
    }
    return [(turns[at], turns[at].ref in marked) for at in sorted(near)]
