"""The steps of the demo, each a few lines of the public API, and its page."""

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

from memlab.errors import InputError, require_extra
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
    "render_demo",
    "run_demo",
]


# The query of the demo, and the policy that it installs: half of the answer is outdated, which recency decides.
QUESTION = "Should I offer Noor a coffee in the morning?"
SLOT = "recall-score"
SOURCE = """(fn [similarity lexical age-days]
  (+ (min-max similarity)
     (min-max lexical)
     (* 0.6 (pow 0.5 (/ age-days 30)))))"""


@dataclass(frozen=True)
class DemoResult:
    """The pages of the demo, and the results that they show.

    ``report`` and ``quarter`` are None unless the demo was a full one.
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
        """Refs of the recalled turns under the first policy, best first."""
        return tuple(hit.ref or "" for hit in self.hits)

    @property
    def after(self) -> tuple[str, ...]:
        """Refs of the turns recalled under the second policy, best first."""
        return tuple(hit.ref or "" for hit in self.hits_after)

    @property
    def hashes(self) -> Mapping[str, str]:
        """Hashes of the conversation, the embedder, policies and packs."""
        hashes = {
            "conversation": hashlib.sha256(CONVERSATION.read_bytes()).hexdigest(),
            "embedder": self.embedder,
            f"policy {SLOT}, before": self.hits.pack.policies[SLOT].hash,
            f"policy {SLOT}, after": self.hits_after.pack.policies[SLOT].hash,
            "pack memlab, after": self.hits_after.pack.hash,
        }
        hashes |= {f"pack {system.name}": system.hash for system in self.bench.systems}
        if self.quarter is not None:
            hashes |= {
                "pack that logged the quarter": self.quarter.pack.hash,
                "log of the quarter": self.quarter.digest,
            }
        return hashes

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON values, without parts that the demo skipped."""
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

# Refs of the turn that answers the query now, and of the outdated one.
_CURRENT, _OUTDATED = "D13:1", "D1:9"
# Sizes of the printed steps: each takes a few lines of 80 columns.
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
    """Run the demo, and write its result as one self-contained HTML file.

    Parameters
    ----------
    output
        Path of the page.
    full
        Add the simulated quarter, and the report of its evaluation as ``<stem>-evaluation.html``.
    quiet
        Print nothing.
    progress
        Show progress bars on standard error.
    world
        World to simulate instead of the quarter.

    Returns
    -------
    DemoResult
        What the page shows.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    InputError
        If a page cannot be written; this is checked first.

    Examples
    --------
    >>> run_demo(quiet=True).output                                      # doctest: +SKIP
    PosixPath('memlab-demo.html')
    """
    # Before seconds of work whose figures could not be drawn.
    with require_extra("plots", "memlab demo"):
        import matplotlib.figure  # noqa: F401
    start = perf_counter()
    target = _create_file(Path(output).expanduser())
    report = _create_file(target.with_name(f"{target.stem}-evaluation.html")) if full else None
    # flushed, so that a pipe receives each line at once
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
        _say_terms(explanations[0], say)

        helped, stale = _find_hit(before, _CURRENT), _find_hit(before, _OUTDATED)
        lab.feedback(helped, "success")
        lab.feedback(stale, "fail")
        say(
            f"4 feedback  rank {helped.rank} helped, rank {stale.rank} is outdated: both are logged"
        )

        old_source = lab.policies[SLOT].source
        lab.policies.install(SLOT, SOURCE, reason="weight recent memories more")
        after = lab.recall(QUESTION, limit=_LIMIT, project=talk.name)
        _say_swap(before, after, say)
        lab.policies.rollback(SLOT, reason="end of the demo")
        restored = lab.recall(QUESTION, limit=_LIMIT, project=talk.name)
        embedder = lab.io.embedder.fingerprint

    # imported here, because it delays the first lines of the demo
    from memlab.science.bench import bench_conversations

    bench = bench_conversations([labelled], dataset=talk.name, progress=progress)
    _say_bench(bench, say)
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
    target.write_text(render_demo(result), encoding="utf-8")
    if report is not None:
        say(f"report of the evaluation: {report}")
    result = replace(result, seconds=perf_counter() - start)
    say(f"{result.seconds:.1f} s in total; wrote {target}")
    return result


def _say_terms(explanation: ScoreExplanation, say: Say) -> None:
    """Print the largest terms of a hit's score."""
    terms = sorted(
        ((label, value) for _, label, value in explanation.parts if value),
        key=lambda term: -abs(term[1]),
    )
    say(
        f"3 explain   the first hit scores {explanation.score:.3f}, the sum of {len(terms)} terms; the largest:"
    )
    for text, value in terms[:_TERMS]:
        say(f"    {value:+.3f}  {clip(text, 100)}")


def _say_swap(before: Hits, after: Hits, say: Say) -> None:
    """Print the second policy, and the first hits with their ranks under the first policy."""
    say(f"5 swap      {SLOT} is now")
    for line in SOURCE.splitlines():
        say(f"    {line}")
    ranks = {hit.id: hit.rank for hit in before}
    for hit in after[:_PRINTED]:
        was = f"was {ranks[hit.id]}" if hit.id in ranks else "new  "
        say(f"    {hit.rank}  {was}  {hit.speaker}: {clip(hit.text, _PRINTED_CHARACTERS)}")


def _say_bench(bench: BenchResult, say: Say) -> None:
    """Print the metrics of each system."""
    say(
        f"6 bench     {bench.questions} labelled questions, {len(bench.systems)} systems, each on its own lab"
    )
    metrics = ("recall@5", "recall@10", "ndcg@10")
    rows = [
        [
            system.name,
            *(f"{system.metrics[name]:.2f}" for name in metrics),
            f"{system.latency_ms['p50']:.1f} ms",
        ]
        for system in bench.systems
    ]
    _say_table(say, ["system", *metrics, "latency"], rows)
    say(
        "    NAME-plus is the design NAME with the ranking of memlab. companion forgets memories that are not recalled."
    )


def _say_quarter(quarter: Quarter, say: Say) -> None:
    """Print the results of the simulated quarter."""
    agreed = quarter.agreement
    say(
        f"7 simulate  {quarter.world.days} days: {quarter.memories:,} memories, {quarter.recalls:,} recalls, "
        f"{quarter.probes:,} exploration items, {quarter.answers:,} feedback events"
    )
    say("8 evaluate  every pack from the log alone; mean reward per recall, 95% interval")
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
    _say_table(say, ["pack", "estimate", "true value", "verdict"], rows)
    say(
        f"9 compare   {agreed.ordered} of {agreed.pairs} pairs in the true order, "
        f"{agreed.holding} of {agreed.intervals} intervals contain the true value"
    )


def _say_table(say: Say, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table with each line indented by four spaces."""
    for line in text_table(columns, rows, left=(0, len(columns) - 1)):
        say(f"    {line}")


def _find_hit(hits: Hits, ref: str) -> Hit:
    """Return the hit of a turn, or the last hit if the turn is not in the results."""
    return next((hit for hit in hits if hit.ref == ref), hits[-1])


def _create_file(target: Path) -> Path:
    """Create a file and return its path; raise InputError on failure."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise InputError(
            f"The page cannot be written to {target}: {error.strerror}. Give another --output."
        ) from None
    return target


# The figures of the page are SVG in the colours and typeface of the page, readable in light and dark themes. The same
# numbers give the same bytes.


def draw_timeline(hits: Hits, when: dict[int, datetime], marked: Sequence[Hit]) -> Draw:
    """Draw every candidate by time and score; results are filled circles."""
    pool = [
        (when[int(memory)], float(score))
        for memory, score in zip(hits.slate.ids, hits.slate.scores, strict=True)
    ]
    results = [(when[hit.id], hit.score) for hit in hits]

    def draw(axes: Axes) -> None:
        """Draw on the axes."""
        import matplotlib.dates

        dates: Any = matplotlib.dates  # has no types

        axes.scatter(
            *_split_points(pool),
            s=16,
            facecolors="none",
            edgecolors=GREY,
            linewidths=0.8,
            label="considered",
        )
        axes.scatter(*_split_points(results), s=30, color=BLUE, label="shown")
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


def draw_moves(before: Hits, after: Hits, *, limit: int = 8) -> Draw:
    """Draw the ranks of the hits under two policies, connected by lines."""
    old, new = (
        {hit.id: hit.rank for hit in before[:limit]},
        {hit.id: hit.rank for hit in after[:limit]},
    )
    texts = {hit.id: clip(hit.text, 42) for hit in (*before, *after)}
    rows = [(old.get(id), new.get(id), texts[id]) for id in sorted(old.keys() | new.keys())]
    return draw_ranks(("before", "after"), rows, maximum=limit)


_LONGEST_TERM = 30
"""Maximum characters of a term in the legend: three columns of longer terms leave no room for the bars."""


def draw_terms(explanations: Sequence[ScoreExplanation], texts: Sequence[str]) -> Draw:
    """Plot one bar per hit, stacked from its score terms.

    A term has its own colour if it is large in any hit; all terms beyond the available colours are grey.
    """
    # colours go to the terms with the largest value in any hit
    rows = [{label: value for _, label, value in explanation.parts} for explanation in explanations]
    size = {
        term: max(abs(terms.get(term, 0.0)) for terms in rows) for terms in rows for term in terms
    }
    order = sorted((term for term in size if size[term] > 0), key=lambda term: -size[term])

    def draw(axes: Axes) -> None:
        """Draw on the axes."""
        # positive terms are stacked to the right of 0, negative ones to the left
        ends = {1: [0.0] * len(rows), -1: [0.0] * len(rows)}
        rest = len(order) - len(CYCLE)
        for index, (term, colour) in enumerate(
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
            if index < len(CYCLE):
                axes.barh([0], [0], color=colour, label=clip(term, _LONGEST_TERM))
        if rest > 0:
            axes.barh(
                [0],
                [0],
                color=GREY,
                label=clip(order[-1], _LONGEST_TERM) if rest == 1 else f"{rest} smaller terms",
            )
        for row, (explanation, up) in enumerate(zip(explanations, ends[1], strict=True)):
            axes.text(up + 0.012, row, f"{explanation.score:.2f}", va="center")
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
    """Draw the estimate of each pack with its interval against the true value.

    Exact estimates are on the dashed line.
    """
    # withheld estimates are drawn hollow and without an interval
    rows = quarter.evaluation.rows
    valued = [
        (row.policy, quarter.truth[row.policy], row.value) for row in rows if row.value is not None
    ]
    withheld = [
        (row.policy, quarter.truth[row.policy], row.estimate) for row in rows if row.value is None
    ]

    def draw(axes: Axes) -> None:
        """Draw on the axes."""
        # the axes cover all intervals, also those of withheld estimates, with room for labels
        ends = [end for _, true, value in valued for end in (true, value.low, value.high)]
        ends += [end for _, true, estimate in withheld for end in (true, estimate)]
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
        for _, true, estimate in withheld:
            axes.scatter(
                [true],
                [estimate],
                s=46,
                facecolors="none",
                edgecolors=GREY,
                linewidths=1.6,
                zorder=3,
            )
        names = [(name, true, value.high) for name, true, value in valued]
        names += [(f"{name}, withheld", true, estimate) for name, true, estimate in withheld]
        trues = [true for _, true, _ in names]
        left, right = min(trues) - 0.11, max(trues) + 0.13
        _label_points(axes, sorted(names, key=lambda label: label[1]), near=0.055 * (right - left))
        axes.set_xlim(left, right)
        axes.set_ylim(low, high)
        axes.set_xlabel("true value: mean reward per recall (top k)")
        axes.set_ylabel("estimated from the log alone")
        axes.grid(color=GREY, alpha=0.18, linewidth=0.6)

    return draw


def _label_points(axes: Axes, names: Sequence[tuple[str, float, float]], *, near: float) -> None:
    """Write labels above points, which are sorted from left to right.

    Labels of two close points are placed on opposite sides.
    """
    for index, (name, x, y) in enumerate(names):
        after = index > 0 and x - names[index - 1][1] < near
        before = index + 1 < len(names) and names[index + 1][1] - x < near
        side = "center" if after == before else "right" if before else "left"
        axes.annotate(name, (x, y), xytext=(0, 6), textcoords="offset points", ha=side)


def _split_points(points: Sequence[tuple[datetime, float]]) -> tuple[Any, list[float]]:
    """Split points into a list of times and a list of scores."""
    return [at for at, _ in points], [score for _, score in points]


# Packages whose version can change a figure, and the width of figures in inches.
_PACKAGES = ("hy", "polars", "numpy")
_WIDTH = 8.2


def render_demo(story: DemoResult) -> str:
    """Return the page as HTML, with all texts escaped.

    Tables are those that a notebook shows for the same objects.
    """
    talk, quarter = story.labelled.conversation, story.quarter
    # memories are numbered from 1 in the order of the conversation
    when = {
        number: turn.at
        for number, turn in enumerate((turn for turn in talk.turns if turn.content), 1)
    }
    tables: dict[str, Any] = {"hits": story.hits, "bench": story.bench}
    if quarter is not None:
        tables["evaluation"] = quarter.evaluation
    return render_page(
        Path(__file__).parent / "page.html",
        {},
        story=story,
        slot=SLOT,
        new_source=SOURCE,
        talk=talk,
        excerpt=_select_excerpt(story),
        quarter=quarter,
        back=_list_ids(story.restored) == _list_ids(story.hits),
        figures={name: Markup(text) for name, text in _draw_figures(story, when).items()},
        tables={name: render_html(table) for name, table in tables.items()},
        versions=[("memlab", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in _PACKAGES],
    )


def _draw_figures(story: DemoResult, when: dict[int, datetime]) -> dict[str, str]:
    """Return the figures as SVG texts by name."""
    drawings = {
        "timeline": (draw_timeline(story.hits, when, [story.helped, story.stale]), 3.4),
        "moves": (draw_moves(story.hits, story.hits_after), 3.1),
        "terms": (draw_terms(story.explanations, [hit.text for hit in story.hits]), 3.6),
    }
    if story.quarter is not None:
        drawings["truth"] = (draw_truth(story.quarter), 4.4)
    figures = {
        name: draw_svg(draw, name=name, width=_WIDTH, height=height)
        for name, (draw, height) in drawings.items()
    }
    if story.quarter is not None:
        figures["leaderboard"] = render_svg(
            story.quarter.evaluation.figure("leaderboard"), name="leaderboard"
        )
    return figures


def _list_ids(hits: Hits) -> list[int]:
    """Return the ids of the hits, without exploration items."""
    return [hit.id for hit in hits if not hit.probe]


def _select_excerpt(story: DemoResult) -> list[tuple[Turn, bool]]:
    """Return the turns near the helpful and the outdated turn; mark these two turns."""
    turns = story.labelled.conversation.turns
    marked = {story.helped.ref, story.stale.ref}
    near = {
        index
        for position, turn in enumerate(turns)
        if turn.ref in marked
        for index in (position - 1, position, position + 1)
        if 0 <= index < len(turns) and turns[index].session == turn.session
    }
    return [(turns[position], turns[position].ref in marked) for position in sorted(near)]
