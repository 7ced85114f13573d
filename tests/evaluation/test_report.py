"""What people see: text, notebook, figures, and one HTML file that asks for nothing else."""

import re
from html.parser import HTMLParser

import polars as pl
import pytest
from matplotlib.figure import Figure
from probed_logs import World

import memlab
from memlab.errors import InputError, UnknownName
from memlab.kernel.base.printable import printable
from memlab.science.evaluation import GATES, evaluate
from memlab.science.evaluation._tests import GATE_TITLES
from memlab.subjects.drawing import draw_figure
from tests.displays import html_of, png_of

WORLD = World(clusters=8, recalls=40, limit=4, depth=6)
SOURCE = '(defpolicy evil [good] "<script>alert(1)</script>" good)'


@pytest.fixture(scope="module")
def ev():
    frames = WORLD.frames()
    frames["decisions"] = frames["decisions"].with_columns(
        query=pl.format("what is <i>{}</i>?", pl.col("decision"))
    )
    return evaluate(WORLD.slates(**frames), [SOURCE, "noise", "far", "cascade"])


@pytest.fixture(scope="module")
def html(ev, tmp_path_factory):
    path = ev.report(tmp_path_factory.mktemp("report") / "new" / "out.html")
    return path.read_text(encoding="utf-8")


class Elements(HTMLParser):
    """Checks that elements nest, and collects ids and what attributes point to."""

    VOID = ("meta", "br", "img", "path", "use", "line", "rect", "circle", "input", "hr", "link")

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.targets, self.tags = [], [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href"):
                self.targets.append(value)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.long
def test_the_report_is_whole_and_asks_for_nothing(html):
    seen = Elements()
    seen.feed(html)
    assert seen.open == []
    assert len(seen.ids) == len(set(seen.ids))
    assert all(target.startswith("#") and target[1:] in seen.ids for target in seen.targets)
    assert "script" not in seen.tags
    assert not re.search(r"url\((?!#)|https?://|@import", html)
    assert "prefers-color-scheme: dark" in html


@pytest.mark.long
def test_the_report_says_what_must_be_said(html, ev):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
    for wanted in (
        *(GATE_TITLES.get(name, name) for name in GATES),
        "long-term effects not modelled",
        "an extrapolation",
        "cascade: refused.",
        "Bonferroni",
        "reward known",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "memlab.evaluate(slates, [",
        "what is &lt;i&gt;",
        next(row for row in ev._targets if row.name == "evil").ranker.hash[:16],
    ):
        assert wanted in text.replace("&#39;", "'"), wanted
    assert "<i>1</i>" not in html


@pytest.mark.long
def test_the_report_says_what_missing_feedback_counts_as(tmp_path):
    zero = evaluate(WORLD.slates(**WORLD.frames()), ["noise"], missing="zero").report(
        tmp_path / "out.html"
    )
    assert "<dt>missing feedback counts as</dt><dd>zero</dd>" in zero.read_text(encoding="utf-8")


@pytest.mark.long
def test_the_same_evaluation_gives_the_same_report(ev, html, tmp_path):
    assert ev.report(tmp_path / "again.html").read_text(encoding="utf-8") == html


@pytest.mark.long
def test_a_report_that_cannot_be_written_is_refused(ev, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="The page cannot be written"):
        ev.report(tmp_path / "file" / "out.html")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["leaderboard", "weights", "disagreement"])
def test_figures_are_matplotlibs(ev, kind, tmp_path):
    figure = ev.figure(kind)
    figure.savefig(tmp_path / "figure.png")
    assert figure.axes


@pytest.mark.long
def test_a_figure_is_drawn_on_the_callers_axes(ev):
    own = Figure()
    left, right = own.subplots(1, 2)
    assert ev.figure(axes=right) is own
    assert {text.get_text() for text in right.get_yticklabels()} == {row.policy for row in ev.rows}
    assert not left.lines
    with pytest.raises(InputError, match="axes must be axes of matplotlib"):
        ev.figure(axes=own)


@pytest.mark.long
def test_a_figure_has_a_line_for_each_policy(ev):
    labels = [text.get_text() for text in ev.figure().axes[0].get_yticklabels()]
    assert sorted(labels) == sorted(row.policy for row in ev.rows)


@pytest.mark.long
def test_unknown_figures_are_refused(ev):
    with pytest.raises(UnknownName, match="Did you mean leaderboard"):
        ev.figure("leaderbord")
    alone = evaluate(WORLD.slates(), ["good"], baseline="good")
    with pytest.raises(InputError, match="needs two policies"):
        alone.figure("disagreement")
    same = evaluate(WORLD.slates(), [pl.col("score").alias("same")])
    with pytest.raises(InputError, match="the same items in the same order"):
        same.figure("disagreement")


@pytest.mark.long
def test_a_single_policy_a_refusal_and_labels_have_reports_too(tmp_path):
    alone = evaluate(WORLD.slates(), ["good"], baseline="good")
    nothing = evaluate(WORLD.slates(), ["cascade"], baseline="cascade")
    relevance = pl.Series((WORLD.truth.ravel() > 0.7).astype(int))
    labels = (
        WORLD.frames()["candidates"]
        .select("decision", "memory_id")
        .with_columns(relevance=relevance)
    )
    judged = evaluate(WORLD.slates(), ["good"], labels=labels)
    for ev in (alone, nothing, judged):
        seen = Elements()
        seen.feed(ev.report(tmp_path / "out.html").read_text(encoding="utf-8"))
        assert seen.open == []
        ev.figure("leaderboard").savefig(tmp_path / "figure.png")
    with pytest.raises(InputError, match="uses no importance weights"):
        judged.figure("weights")
    assert repr(nothing).startswith("No ranking")
    assert "cascade: refused." in repr(nothing)


def test_a_notebook_shows_the_table_and_the_reasons(ev):
    html = html_of(ev)
    assert html.count("<tr>") == 1 + len(ev.rows)
    assert "cascade: refused." in html
    seen = Elements()
    seen.feed(html)
    assert seen.open == []


@pytest.mark.long
def test_a_reason_that_policies_share_is_told_once():
    frames = World(clusters=1, recalls=60).frames()
    at_once = frames["decisions"].with_columns(at=pl.lit(frames["decisions"]["at"][0]))
    ev = evaluate(
        World(clusters=1, recalls=60).slates(**{**frames, "decisions": at_once}), ["good", "noise"]
    )
    assert repr(ev).count("1 cluster; at least 2 are needed.") == 1
    assert "good and noise: withheld. The log has 1 cluster;" in repr(ev)
    assert ev.rows[0].policy == "logged"
    assert ev.rows[0].value is not None, "what happened is never withheld"
    assert "60 recalls in 1 cluster;" in repr(ev)


@pytest.mark.long
@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width):
    relevance = pl.Series((WORLD.truth.ravel() > 0.7).astype(int))
    labels = (
        WORLD.frames()["candidates"]
        .select("decision", "memory_id")
        .with_columns(relevance=relevance)
    )
    for given in ({"baseline": "good"}, {"labels": labels}):
        evaluation = evaluate(WORLD.slates(), ["good", "noise", "far"], **given)
        lines = evaluation.text(width).splitlines()
        assert max(map(len, lines)) <= width
        head = next(line.split() for line in lines if line.startswith("policy"))
        assert head[:2] == ["policy", "value"]
        assert head[-1] == "verdict"
        full = next(
            line.split() for line in repr(evaluation).splitlines() if line.startswith("policy")
        )
        assert set(head) < set(full)


@pytest.mark.long
def test_stars_mark_what_is_significant():
    ev = evaluate(World(clusters=40, recalls=50).slates(), ["good"])
    assert "**" in repr(ev).splitlines()[5]
    assert "better" in repr(ev).splitlines()[5]


@pytest.mark.long
def test_a_figure_shows_itself_in_a_notebook():
    figure = draw_figure(lambda axes: axes.plot([0, 1], [0, 1]), width=3, height=2)
    assert png_of(figure).startswith(b"\x89PNG")


def read_latex(text):
    """Parse a table: return the caption and the cells of each row; fail on anything a writer of tables has not."""
    lines = text.splitlines()
    begin, end = lines.index(r"\toprule"), lines.index(r"\bottomrule")
    assert lines[:3] == [r"% \usepackage{booktabs}", r"\begin{table}", r"\centering"]
    assert lines[end + 1 :] == [r"\end{tabular}", r"\end{table}"]
    assert lines[begin + 2] == r"\midrule"
    columns = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[begin - 1])[1]
    rows = [lines[begin + 1], *lines[begin + 3 : end]]
    caption = re.fullmatch(r"\\caption\{(.*)\}", "\n".join(lines[3 : begin - 1]))[1]
    cells = []
    for row in rows:
        assert row.endswith(r" \\")
        assert row[0] not in "[*"
        cells.append(re.split(r"(?<!\\) & ", row[:-3]))
        assert len(cells[-1]) == len(columns)
    return unescape(caption), [[unescape(cell) for cell in row] for row in cells]


def unescape(text):
    """Return the characters that LaTeX prints; fail at a command that is not one character of text."""
    names = {"textbackslash{}": "\\", "textasciitilde{}": "~", "textasciicircum{}": "^"}
    out, rest = "", text
    while rest:
        if rest[0] == "\\":
            name = next((name for name in names if rest[1:].startswith(name)), rest[1:2])
            assert name in names or name in "&%$#_{}"
            out, rest = out + names.get(name, name), rest[1 + len(name) :]
        elif sign := re.match(r"\$([-<>|])\$|\{([\[*])\}", rest):
            out, rest = out + (sign[1] or sign[2]), rest[sign.end() :]
        else:
            assert rest[0] not in "&%$#_{}~^<>|"
            out, rest = out + rest[0], rest[1:]
    return out


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [r"\input{/etc/passwd}", "[3] & 50% ~ #1_a^b $x$", "*|<b>|", "a\\\\ -1", "tab\nand \x1b[1m"],
)
def test_the_table_for_a_paper_prints_every_name_as_it_is(name):
    evaluation = evaluate(WORLD.slates(), {name: "noise", "good": "good"}, baseline=name)
    text, rows = read_latex(evaluation.to_latex())
    printed = printable(name).replace("\n", " ")
    heads = rows[0]
    assert printed in [row[0] for row in rows[1:]]
    assert f"vs. {printed}" in heads or "vs." not in " ".join(heads)
    frame = evaluation.frame.head(len(evaluation.rows))
    values = [f"{value:.3f}" if value is not None else "-" for value in frame["value"]]
    assert [row[heads.index("value")] for row in rows[1:]] == values
    for target in evaluation._targets:
        assert f"{printable(target.name)} {target.ranker.hash[:12]}".replace("\n", " ") in text
    assert f"log {evaluation._log.digest()[:16]}" in text
    assert f"memlab {memlab.__version__}" in text
    assert "seed of the draws: not logged" in text


@pytest.mark.long
def test_the_table_of_verdicts_for_a_paper_names_packs_log_and_seed():
    with memlab.open(seed=11) as lab:
        lab.remember(["The deploy day is Friday.", "Tests run with pytest."])
        lab.challenge("companion", reason="a test")
        for _ in range(3):
            lab.feedback(lab.recall("When do we deploy?", limit=1)[0], "success")
        verdicts = lab.verdict(missing="zero")
        text, rows = read_latex(verdicts.to_latex())
        assert [row[:2] for row in rows] == [["challenger", "vs."], ["companion", "memlab"]]
        for pack in ("companion", "memlab"):
            assert f"{pack} {memlab.load_pack(pack).hash[:12]}" in text
        assert "seed of the draws: 11;" in text
        assert f"log {verdicts._log.digest()[:16]}" in text
        assert "Mineiro 2022" in text
