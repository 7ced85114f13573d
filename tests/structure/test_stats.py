"""The whole at a glance: of labs of every sort, as text, as a page, and as a figure."""

import importlib
from html.parser import HTMLParser

import polars as pl
import pytest

import memlab
from memlab.kernel.policies import load_pack
from memlab.subjects.clusters.finding import assign
from memlab.subjects.clusters.stats import Stats, compute_stats
from memlab.subjects.drawing import INK
from tests.displays import html_of, png_of

pytestmark = pytest.mark.long

# the package has a function of this name
STATS = importlib.import_module("memlab.subjects.clusters.stats")

SUBJECTS = (
    ("The garden needs water", "garden"),
    ("Deploys go out on Tuesdays", "deploy"),
    ("The user prefers tabs", "style"),
)


def filled(lab, clock, each=12):
    """Fill a lab with three subjects over some weeks, each chained."""
    rows = [
        {
            "text": f"{text}, note {number} <b>&",
            "session": tag,
            "kind": "goal" if number % 4 else "fact",
        }
        for number in range(each)
        for text, tag in SUBJECTS
    ]
    for start in range(0, len(rows), 6):
        lab.remember(rows[start : start + 6], chain=True)
        clock.advance(days=4)
    for query in ("garden water", "tabs", "tabs or spaces"):
        lab.recall(query, limit=3)
    return lab


def of(lab, clock, **more):
    with lab.io.store.reading() as state:
        return compute_stats(state, lab.policies.pack, now=clock(), **more)


@pytest.fixture
def whole(lab, clock):
    return of(filled(lab, clock), clock)


def test_the_frames(whole, lab):
    frames = whole.frames
    total = dict(frames["totals"].iter_rows())
    assert total["memories"] == total["in use"] == len(lab) == 36
    assert total["edges"] == 33
    assert total["components"] == 3
    assert total["used"] == frames["kinds"]["access"].sum() - (frames["key"]["access"] - 1).sum()
    assert frames["kinds"]["memories"].to_list() == [27, 9]
    assert frames["layers"]["memories"].sum() == 36
    assert frames["relations"].row(0)[:3] == ("next", 33, 1.0)
    assert frames["communities"]["size"].sum() == 36
    assert frames["nodes"].height == 36
    assert {
        "totals",
        "kinds",
        "layers",
        "layers_by_kind",
        "layers_by_week",
        "relations",
        "nodes",
        "communities",
    } | {
        "bridges",
        "key",
        "clusters",
    } == set(frames)


def test_words_tell_what_communities_are_about(whole):
    words = [set(word) for word in whole.frames["communities"]["words"].to_list()]
    assert all(
        word & {"garden", "water", "needs", "deploys", "tuesdays", "user", "prefers", "tabs"}
        for word in words
    )


def test_key_memories_are_the_most_used(whole, lab):
    key = whole.frames["key"]
    assert key["key"].is_sorted(descending=True)
    best = lab.memories.sort("access", "id", descending=[True, False]).row(0, named=True)
    assert key.row(0, named=True)["memory_id"] == best["id"]
    assert key.row(0, named=True)["text"] == best["text"]


def test_new_memories_may_join_the_clusters(whole, lab):
    labels = assign(whole.found, lab.io.embedder.encode(["The garden needs water, note 3 <b>&"]))
    assert labels.shape == (1,)
    assert labels[0] < len(whole.found)


def test_the_layers_are_those_of_a_pack_that_speaks_of_them(lab, clock):
    filled(lab, clock)
    own = of(lab, clock)
    assert "memlab's defaults" in own.notes[0]
    lab.policies.use("associative")
    theirs = of(lab, clock)
    assert "label policy of associative" in theirs.notes[0]
    assert theirs.frames["layers"].equals(own.frames["layers"])
    lab.policies.use(load_pack('(pack mine "All last.")\n(defpolicy label [] "stable")'))
    assert of(lab, clock).frames["layers"]["memories"].to_list() == [0, 36, 0, 0]


def test_a_memory_that_recall_cannot_find_counts_in_no_layer(lab, clock):
    filled(lab, clock)
    lab.forget(1)
    result = of(lab, clock)
    total = dict(result.frames["totals"].iter_rows())
    assert (total["memories"], total["in use"]) == (36, 35)
    assert result.frames["layers"]["memories"].sum() == 35
    assert 0 not in result.found.rows
    assert result.frames["nodes"].height == 36
    assert "35 in use" in repr(result)


def test_the_same_lab_gives_the_same_statistics(lab, clock):
    filled(lab, clock)
    one, other = of(lab, clock, seed=5), of(lab, clock, seed=5)
    assert all(one.frames[name].equals(other.frames[name]) for name in one.frames)
    assert html_of(one) == html_of(other)


def test_tags_do_not_count_as_memories(lab, clock):
    lab.remember([{"text": f"Note {number}", "tags": ["a", "b"]} for number in range(8)])
    total = dict(of(lab, clock).frames["totals"].iter_rows())
    assert total["memories"] == 8


# -- shown ------------------------------------------------------------------------------------------------------


TAGS = {
    "div",
    "p",
    "b",
    "br",
    "span",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "svg",
    "g",
    "path",
    "text",
}
TAGS |= {"defs", "rect", "style", "use", "clippath", "pattern"}


class Strict(HTMLParser):
    """Every tag that is opened is closed, and none is unknown."""

    open = ()

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS
        self.open = self.open if tag in ("br",) else (*self.open, tag)

    def handle_endtag(self, tag):
        assert self.open[-1] == tag
        self.open = self.open[:-1]


def page_of(stats):
    page = html_of(stats)
    parser = Strict()
    parser.feed(page)
    assert parser.open == ()
    assert page.count("<svg") == 1
    return page


def test_text_is_told_in_order_and_escaped_on_the_page(whole):
    text = repr(whole)
    assert text.startswith("36 memories, all in use")
    for title in ("layers", "communities", "key memories", "Layers are"):
        assert f"\n{title}" in text
    page = page_of(whole)
    assert "&lt;b&gt;&amp;" in page
    assert "note 0 <b>" not in page
    assert INK not in page  # ink is the page's own


def test_markup_and_mathematics_in_words_stay_words(lab, clock):
    kinds = [{"text": "$x^2$ </svg><script>alert(1)</script> $y_3$ 記憶"} for _ in range(20)]
    lab.remember([{**row, "session": "s"} for row in kinds], chain=True)
    page = page_of(of(lab, clock))
    assert "<script" not in page


@pytest.mark.parametrize("count", [0, 1, 5])
def test_little_labs(lab, clock, count):
    lab.remember([f"Thing {number}" for number in range(count)])
    result = of(lab, clock)
    assert isinstance(result, Stats)
    assert repr(result).startswith(f"{count} memories")
    assert "no memories are linked" in repr(result)
    page = page_of(result)
    assert ("no memories yet" in page) == (count == 0)


def labels_of(figure, panel):
    return [text.get_text() for text in figure.axes[panel].texts]


def test_the_figure_shows_communities_then_clusters_then_kinds(lab, clock, trigrams):
    def title(stats):
        figure = stats.figure()
        assert png_of(figure)[:4] == b"\x89PNG"
        return figure.axes[0].get_title(loc="left")

    assert title(of(filled(lab, clock), clock)) == "Communities"
    with memlab.open(embedder=trigrams, clock=clock) as plain:
        plain.remember([f"{text} {number % 3}" for text, _ in SUBJECTS for number in range(8)])
        result = of(plain, clock)
        assert title(result) == "Clusters"
        assert len(result.found) >= 2
    with memlab.open(embedder=trigrams, clock=clock) as few:
        few.remember(["One", {"text": "Two", "kind": "goal"}])
        assert title(of(few, clock)) == "Kinds"


def test_the_legend_counts_the_layers(whole):
    figure = whole.figure()
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    counted = dict(whole.frames["layers"].select("layer", "memories").iter_rows())
    assert sorted(legend) == sorted(f"{name} {count}" for name, count in counted.items())
    bars = sum(patch.get_height() for patch in figure.axes[1].patches)
    assert bars == 36


def test_a_bar_spans_weeks_where_there_are_many(lab, clock):
    for _ in range(130):
        lab.remember("Another week")
        clock.advance(days=7)
    figure = of(lab, clock).figure()
    assert figure.axes[1].get_xlabel() == "3 weeks of their creation"
    assert len(figure.axes[1].patches) == 4 * 44
    assert sum(patch.get_height() for patch in figure.axes[1].patches) == 130


def test_of_many_communities_the_largest_are_drawn(lab, clock):
    lab.remember(
        [{"text": f"Turn {turn}", "session": str(turn % 30)} for turn in range(90)], chain=True
    )
    result = of(lab, clock)
    assert result.frames["communities"].height == 30
    said = labels_of(result.figure(), 0)
    assert any("18 smaller ones left out (54 memories)" in text for text in said)
    assert "the 8 largest of 30" in repr(result)


def test_a_bar_is_drawn_for_what_takes_long(lab, clock, capsys, monkeypatch):
    monkeypatch.setattr(STATS, "_SLOW", 10)
    filled(lab, clock)
    of(lab, clock, progress=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("memlab.kernel.base.progress._SECONDS_PER_LINE", 0)
    of(lab, clock)
    assert "stats: 5 of 5 (step)" in capsys.readouterr().err


def test_communities_of_a_large_graph_are_those_of_its_newest_edges(lab, clock, monkeypatch):
    monkeypatch.setattr(STATS, "_MOST_EDGES", 10)
    result = of(filled(lab, clock), clock)
    assert "newest edges" in result.notes[1]
    assert result.frames["communities"]["size"].sum() < 36
    assert result.frames["nodes"].height == 36
    assert result.frames["nodes"]["community"].null_count() > 0
    assert result.frames["nodes"].filter(pl.col("community").is_not_null())["memory_id"].min() > 20


def test_words_are_read_from_every_community(lab, clock, monkeypatch):
    monkeypatch.setattr(STATS, "_READ", 6)
    words = of(filled(lab, clock), clock).frames["communities"]["words"].to_list()
    assert all(words)
