"""The bench: packs on labelled conversations, each pack in a lab of its own."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import memlab
from memlab.errors import DatasetError, InputError, PolicyError, UnknownName
from memlab.io.ingest import Conversation, LabelledConversation, Question, Turn, read_locomo
from memlab.science.bench import BenchResult, bench_conversations
from memlab.science.evaluation import BASELINES
from memlab.ui.demo import CONVERSATION
from tests.displays import html_of

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
FACTS = {
    "harbour": [
        "The ferry to Texel leaves at noon.",
        "My boat is called Albatross.",
        "Herring season opens in June.",
    ],
    "kitchen": [
        "The sourdough needs salt.",
        "Grandmother's tureen is cracked.",
        "Saffron is kept in the blue tin.",
    ],
}
QUESTIONS = {
    "harbour": [
        "When does the ferry to Texel leave?",
        "What is the boat called?",
        "When does herring season open?",
    ],
    "kitchen": ["What does the sourdough need?", "What is cracked?", "Where is the saffron kept?"],
}


def labelled(name, *, extra=()):
    turns = [
        Turn(f"D1:{number}", "Ida", text, "session_1", START + timedelta(minutes=number))
        for number, text in enumerate(FACTS[name], 1)
    ]
    questions = [
        Question(text, 1 + at % 2, (f"D1:{at + 1}",)) for at, text in enumerate(QUESTIONS[name])
    ]
    return LabelledConversation(Conversation(name, tuple(turns)), (*questions, *extra))


BOTH = (labelled("harbour"), labelled("kitchen"))


@pytest.fixture(scope="module")
def result():
    return bench_conversations(BOTH, packs=["memlab", "cascade"], dataset="tiny")


def steady(result: BenchResult):
    """Return the result without the clock's readings."""
    data = result.to_dict()
    for system in data["systems"]:
        del system["latency_ms"], system["ingest_per_s"]
    return data


@pytest.mark.long
def test_the_json_has_the_agreed_shape(result):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(data) == {"dataset", "sha256", "unit", "questions", "unjudged", "limit", "systems"}
    assert (data["dataset"], data["questions"]) == ("tiny", 6)
    assert {system["name"] for system in data["systems"]} == {"memlab", "cascade", *BASELINES}
    for system in data["systems"]:
        told_of = {"name", "hash", "labels", "questions", "metrics", "by_category", "intervals"}
        assert set(system) == told_of | {"latency_ms", "ingest_per_s"}
        names = {
            f"{kind}@{cut}"
            for kind in ("recall", "recall_any", "recall_all")
            for cut in (5, 10, 20)
        }
        assert set(system["metrics"]) == set(system["intervals"]) == names | {"mrr@10", "ndcg@10"}
        assert set(system["by_category"]) == {"1", "2"}
        assert set(system["by_category"]["1"]) == set(system["metrics"])
        assert 0 < system["latency_ms"]["p50"] <= system["latency_ms"]["p95"]
        assert system["ingest_per_s"] > 0
        assert system["hash"]


def relabelled(conversations, *evidence):
    """Return the same questions with other evidence, in order."""
    given = iter(evidence)
    return [
        replace(
            conversation,
            questions=tuple(
                replace(asked, evidence=next(given)) for asked in conversation.questions
            ),
        )
        for conversation in conversations
    ]


@pytest.mark.long
def test_two_sets_of_labels_judge_the_same_rankings(result):
    other = relabelled(BOTH, ("D1:1",), ("D1:1", "D1:2"), (), ("D1:1",), ("D1:2",), ("D1:3",))
    both = bench_conversations(
        BOTH, packs=["memlab", "cascade"], labels={"corrected": other}, dataset="tiny"
    )
    assert [system.labels for system in both.systems] == ["published"] * 4 + ["corrected"] * 4
    assert [system.questions for system in both.systems] == [6] * 4 + [5] * 4
    systems = steady(both)["systems"]
    assert systems[:4] == steady(result)["systems"]
    first = next(
        system for system in both.systems if (system.labels, system.name) == ("corrected", "memlab")
    )
    assert first.counts == {1: 3, 2: 2}
    assert "published and corrected labels" in repr(both)
    assert repr(both).splitlines()[2].split()[:2] == ["system", "labels"]
    assert both.frame.filter(pl.col("category").is_null())["labels"].unique(
        maintain_order=True
    ).to_list() == [
        "published",
        "corrected",
    ]


def test_labels_of_other_questions_are_refused():
    with pytest.raises(InputError, match='labels "corrected" must have the same questions'):
        bench_conversations(BOTH, packs=["memlab"], labels={"corrected": BOTH[:1]})


@pytest.mark.long
def test_ir_measures_gives_the_same_figures():
    """ir_measures, given the rankings and the evidence, finds what the bench says."""
    import ir_measures
    from ir_measures import RR, R, Success, nDCG

    other = relabelled(
        BOTH, ("D1:1",), ("D1:1", "D1:2"), ("D1:3",), ("D1:1",), ("D1:2",), ("D1:1", "D1:3")
    )
    trap = Question("What is the ferry called?", 5, ("D1:2",))
    given = [labelled("harbour", extra=[trap]), BOTH[1]]
    other = [replace(other[0], questions=(*other[0].questions, trap)), other[1]]
    bench = bench_conversations(given, packs=["memlab", "cascade"], labels={"corrected": other})
    measures = {
        "recall@5": R @ 5,
        "recall_any@5": Success @ 5,
        "mrr@10": RR @ 10,
        "ndcg@10": nDCG @ 10,
    }
    answerable = bench.queries[: bench.questions]
    for system in bench.systems:
        evidence = bench.evidence[system.labels][: bench.questions]
        qrels = [
            ir_measures.Qrel(query, item, 1)
            for query, items in zip(answerable, evidence, strict=True)
            for item in items
        ]
        run = [
            ir_measures.ScoredDoc(query, item, -rank)
            for query, ranking in zip(bench.queries, system.rankings, strict=True)
            for rank, item in enumerate(dict.fromkeys(ranking))
        ]
        theirs = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
        assert {name: theirs[value] for name, value in measures.items()} == pytest.approx(
            {name: system.metrics[name] for name in measures}
        )


@pytest.mark.long
def test_every_conversation_is_its_own_project(result):
    # three turns each: whatever is found within five ranks comes from the conversation that was asked about
    dense = next(system for system in result.systems if system.name == "dense")
    assert dense.metrics["recall@5"] == 1.0


@pytest.mark.long
def test_two_runs_give_the_same_numbers(result):
    assert steady(bench_conversations(BOTH, packs=["memlab", "cascade"], dataset="tiny")) == steady(
        result
    )


@pytest.mark.long
def test_no_packs_run_reaches_anothers_scores(result):
    alone = bench_conversations(BOTH, packs=["cascade"], baselines=False, dataset="tiny")
    (expected,) = [system for system in steady(result)["systems"] if system["name"] == "cascade"]
    assert steady(alone)["systems"] == [expected]


@pytest.mark.long
def test_category_5_is_asked_last_and_counted_apart(result):
    trap = Question("What is the ferry called?", 5, ("D1:2",))
    apart = bench_conversations(
        [labelled("harbour", extra=[trap]), labelled("kitchen")],
        packs=["memlab", "cascade"],
        dataset="tiny",
    )
    assert apart.questions == 6
    for system, before in zip(apart.systems, result.systems, strict=True):
        assert system.metrics == before.metrics
        assert system.counts == {1: 4, 2: 2, 5: 1}
        assert set(system.by_category) == {1, 2, 5}


@pytest.mark.long
def test_questions_without_evidence_are_left_out_and_counted():
    open_question = Question("Would Ida like a lighthouse?", 3, ())
    bench = bench_conversations(
        [labelled("harbour", extra=[open_question])], packs=["memlab"], baselines=False
    )
    assert (bench.questions, bench.unjudged) == (3, 1)
    assert 3 not in bench.systems[0].by_category
    assert "1 without evidence left out" in repr(bench)


@pytest.mark.long
def test_a_single_conversation_has_no_interval():
    bench = bench_conversations([labelled("kitchen")], packs=["memlab"], baselines=False)
    assert set(bench.systems[0].intervals.values()) == {None}
    assert "interval" not in repr(bench)


@pytest.mark.long
def test_the_frame_has_a_row_for_each_system_and_category(result):
    frame = result.frame
    assert frame.height == len(result.systems) * 3
    whole = frame.filter(pl.col("category").is_null())
    assert whole["system"].to_list() == [system.name for system in result.systems]
    assert whole["recall@10"].to_list() == [
        system.metrics["recall@10"] for system in result.systems
    ]
    assert whole["ndcg@10"].is_sorted(descending=True)
    assert frame.filter(pl.col("category") == 1)["questions"].unique().to_list() == [4]


@pytest.mark.long
def test_a_bench_renders_in_a_terminal_and_a_notebook(result):
    lines = repr(result).splitlines()
    assert lines[0].endswith("[95% interval by conversation]")
    assert lines[0].startswith(
        "tiny: 6 answerable questions on 2 conversations; turn level, published"
    )
    assert lines[2].split()[:3] == ["system", "recall@5", "recall@10"]
    assert max(len(line) for line in lines[2:7]) <= 150
    assert html_of(result).count("<tr>") == 2 * (1 + len(result.systems))
    assert "&lt;b&gt;" in html_of(
        bench_conversations(BOTH, packs=["memlab"], baselines=False, dataset="<b>")
    )


@pytest.mark.long
def test_packs_may_be_paths(tmp_path):
    path = tmp_path / "mine.hy"
    path.write_text('(pack mine "Mine.")\n(defpolicy recall-score [similarity] similarity)')
    bench = bench_conversations(BOTH, packs=[path], baselines=False)
    assert [system.name for system in bench.systems] == ["mine"]
    assert bench.systems[0].hash == memlab.load_pack(path).hash


@pytest.mark.long
def test_conversations_that_a_file_held():
    bench = bench_conversations(
        read_locomo(CONVERSATION), packs=["memlab"], baselines=False, dataset="noor"
    )
    assert (bench.dataset, bench.conversations, bench.questions) == ("noor", 1, 36)
    assert bench.systems[0].counts == {1: 7, 2: 7, 3: 3, 4: 19, 5: 3}
    assert bench.systems[0].metrics["recall@10"] > 0.6


def test_a_path_is_refused_with_the_way_to_read_it():
    with pytest.raises(
        InputError, match=r"what memlab.ingest.read_locomo\(path\) returns, not 'talk.json'"
    ):
        bench_conversations("talk.json")


@pytest.mark.parametrize("limit", [19, 0, -1, 20.0, True])
def test_a_limit_that_cannot_measure_recall_at_20_is_refused(limit):
    with pytest.raises(InputError, match="limit is a whole number of at least 20"):
        bench_conversations(BOTH, limit=limit)


def test_unknown_packs_and_broken_policies_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(UnknownName, match='There is no pack or feature "memlap"'):
        bench_conversations(BOTH, packs=["memlap"])
    broken = tmp_path / "broken.hy"
    broken.write_text("(pack broken")
    with pytest.raises(PolicyError):
        bench_conversations(BOTH, packs=[broken])


def test_without_judged_questions_there_is_nothing_to_measure():
    silent = LabelledConversation(
        BOTH[0].conversation, (Question("Why?", 5, ("D1:1",)), Question("Who?", 1, ()))
    )
    with pytest.raises(DatasetError, match="No answerable question has evidence"):
        bench_conversations([silent], packs=["memlab"])
    with pytest.raises(DatasetError):
        bench_conversations([], packs=["memlab"])
