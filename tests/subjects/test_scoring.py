"""``lab.score``, and ``lab.questions`` as the labels of failures, evaluate, tune and bench."""

import json
import os
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import InputError, PolicyError, RankingWarning, UnknownName
from memlab.science.bench import bench_lab
from memlab.science.evaluation import cluster_interval
from tests.labelled import ASKED, TEXTS

OLDEST = "(fn [age-days] age-days)"


@pytest.fixture
def lab():
    with memlab.open() as lab:
        for day, text in enumerate(TEXTS, 1):
            lab.remember(text, at=f"2026-01-{day:02}")
        lab.questions.add([{"query": query, "wants": wants} for query, wants in ASKED])
        yield lab


def values(scores, policy: str) -> list[float]:
    return scores.frame.filter(pl.col("policy") == policy)["value"].to_list()


class TestPolicies:
    @pytest.mark.long
    def test_texts_packs_files_and_features(self, lab, tmp_path):
        (tmp_path / "mine.hy").write_text(OLDEST, encoding="utf-8")
        pack = '(pack own "Mine." :inherits memlab)\n(defpolicy recall-score [age-days] age-days)\n'
        (tmp_path / "own.hy").write_text(pack, encoding="utf-8")
        compiled = lab.policies.check("recall-score", OLDEST)
        policies = {
            "text": OLDEST,
            "named": "(defpolicy recall-score [age-days] age-days)",
            "compiled": compiled,
            "file": tmp_path / "mine.hy",
            "path": str(tmp_path / "mine.hy"),
            "pack": pack,
            "pack file": tmp_path / "own.hy",
            "pack object": memlab.load_pack(pack),
            "feature": "age_days",
        }
        frame = lab.score(policies).frame
        own = {name: values(lab.score({name: policy}), name) for name, policy in policies.items()}
        assert len(set(map(tuple, own.values()))) == 1
        assert frame["policy"].unique(maintain_order=True).to_list() == ["active", *policies]

    @pytest.mark.long
    def test_names(self, lab, tmp_path):
        (tmp_path / "mine.hy").write_text(OLDEST, encoding="utf-8")
        scores = lab.score([tmp_path / "mine.hy", "similarity", "actr", "(fn [recency] recency)"])
        assert scores.policies[:3] == ("mine", "similarity", "actr")
        assert scores.policies[3].startswith("recall-score [")
        assert lab.score("actr").policies == ("actr",)
        assert lab.score().policies == ()

    @pytest.mark.long
    def test_a_policy_of_another_slot(self, lab):
        none = "(defpolicy eligible [age-days] (> age-days 1e9))"
        assert values(lab.score({"none": none}), "none") == [0, 0, 0, 0]

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("policies", "error"),
        [
            ("similarty", UnknownName),
            ("(fn [similarity] (+ similarity", PolicyError),
            ("(fn [speaker] speaker)", PolicyError),
            (["actr", "actr"], InputError),
            ({"active": "actr"}, InputError),
            (3, InputError),
            ("missing.hy", InputError),
        ],
    )
    def test_bad_policies(self, lab, policies, error):
        with pytest.raises(error):
            lab.score(policies)

    @pytest.mark.parametrize("metrics", ["ndgc@10", "hit@0", "hit@9999", [], ["mrr", 3]])
    def test_bad_metrics(self, lab, metrics):
        with pytest.raises(InputError):
            lab.score(metrics=metrics)


@pytest.mark.long
class TestScores:
    def test_values_by_hand(self, lab):
        scores = lab.score({"oldest": OLDEST}, metrics=["hit@2", "recall@3", "mrr"])
        # The oldest memory has rank 1: the wanted ones have the ranks 1, 2, 3, 4 and 6.
        assert values(scores, "oldest") == pytest.approx(
            [2 / 5, 3 / 5, (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 6) / 5]
        )
        assert scores.ranks["oldest"].to_list() == [1, 2, 3, 4, 6]
        assert scores.cut == 2
        lost = scores.lost("oldest")
        assert lost["after"].to_list() == [3, 4, 6]
        row = scores.frame.row(3, named=True)
        assert (row["gained"], row["lost"]) == (0, 3)
        paired = cluster_interval(
            np.array([rank <= 2 for rank in scores.ranks["oldest"]], float)
            - np.array([rank <= 2 for rank in scores.ranks["active"]], float),
            ["a", "b", "c", "d", "e"],
        )
        assert (row["difference_low"], row["difference_high"]) == (paired.low, paired.high)

    def test_gained_is_lost_the_other_way(self, lab):
        forwards = lab.score({"oldest": OLDEST}, metrics="hit@2")
        lab.policies.install("recall-score", OLDEST, reason="test", compare=0)
        default = memlab.load_pack("memlab")
        backwards = lab.score({"default": default}, metrics="hit@2")
        assert forwards.lost("oldest")["query"].equals(backwards.gained("default")["query"])
        assert backwards.lost("default").is_empty()
        with pytest.raises(UnknownName):
            forwards.gained("oldset")

    def test_one_question_has_no_interval(self, lab):
        lab.questions.remove([2, 3, 4, 5])
        row = lab.score("similarity").frame.row(-1, named=True)
        assert row["low"] is None
        assert row["difference_low"] is None
        assert "similarity" in lab.score("similarity").sentence

    def test_other_questions(self, lab):
        rows = pl.DataFrame(
            {"query": ["who maintains the parser?"], "wants": ["Bob maintains the parser"]}
        )
        assert lab.score(questions=rows).ranks.height == 1
        # Those of the lab's own frame that are proposed count in no score.
        proposed = lab.questions.propose()
        assert proposed.height
        scores = lab.score(questions=lab.questions.frame)
        assert scores.ranks["id"].len() == len(lab.questions) < lab.questions.frame.height
        with pytest.raises(InputError, match="no accepted question"):
            lab.score(questions=proposed)
        assert len(lab.questions) == len(ASKED)
        with pytest.raises(InputError, match="Row 1"):
            lab.score(questions=rows.with_columns(wants=pl.lit("nobody")))

    def test_nothing_is_written(self, lab):
        before, frame = lab.io.store.journal.head, lab.memories
        first = lab.score(["similarity", "actr"])
        assert lab.io.store.journal.head == before
        assert lab.memories.equals(frame)
        assert first.frame.equals(lab.score(["similarity", "actr"]).frame)

    def test_display_and_json(self, lab):
        scores = lab.score({"oldest": OLDEST})
        assert json.loads(json.dumps(scores.to_dict()))["questions"] == len(ASKED)
        assert "oldest" in scores._repr_html_()
        assert "worse" in scores.sentence
        assert "oldest" in repr(scores)

    def test_a_lab_on_disk_and_its_past(self, lab, tmp_path):
        with memlab.open(tmp_path / "lab") as own:
            for day, text in enumerate(TEXTS, 1):
                own.remember(text, at=f"2026-01-{day:02}")
            own.questions.add(lab.questions.frame)
            event = own.io.store.journal.head
            own.questions.remove(1)
        with memlab.open(tmp_path / "lab", read_only=True) as own:
            assert values(own.score("age-days"), "age-days") != []
            past = own.at(event=event).score("age-days")
            assert values(past, "age-days") == values(lab.score("age-days"), "age-days")


@pytest.mark.long
class TestInstall:
    def test_a_loss_beyond_its_interval_is_reported_before_the_install(self, lab):
        lab.remember([{"text": f"an old note {n}", "at": "2020-01-01"} for n in range(9)])
        with pytest.warns(RankingWarning, match=r"this policy: 0.000 .*; 0 gained, 5 lost\)"):
            lab.policies.install("recall-score", OLDEST, reason="test")
        assert lab.policies["recall-score"].source == OLDEST

    def test_other_installs_say_nothing(self, lab, recwarn):
        lab.policies.install("recall-score", "(fn [similarity] similarity)", reason="test")
        lab.questions.remove(lab.questions.frame)
        lab.policies.install("recall-score", OLDEST, reason="test")
        assert not [one for one in recwarn if one.category is RankingWarning]


@pytest.mark.long
class TestOneFormOfLabels:
    def test_bench(self, lab):
        result = bench_lab(lab, lab.questions, packs=["memlab", "actr"], baselines=False)
        metrics = ["recall@10", "recall_any@5", "mrr@10", "ndcg@10"]
        scores = lab.score("actr", metrics=metrics)
        for system in result.systems:
            policy = "active" if system.name == "memlab" else system.name
            assert values(scores, policy) == [system.metrics[name] for name in metrics]

    def test_failures_evaluate_and_tune(self, lab):
        for query, _ in ASKED:
            lab.recall(query, limit=3)
        lab.recall("a query without a question")
        lost = memlab.failures(lab, lab.questions)
        assert lost.known == len(ASKED)
        assert lost.unlabelled == 1
        by_frame = memlab.failures(lab, lab.questions.label_recalls(lab.slates()))
        assert lost.rows.equals(by_frame.rows)
        evaluation = memlab.evaluate(lab, ["similarity", "recency"], labels=lab.questions)
        names = {row.policy: row.metrics["recall@3"] for row in evaluation.rows}
        assert names["similarity"] > names["recency"]
        policy = (
            "(fn [similarity recency] (+ similarity (* (param :w 0.5 :low 0 :high 1) recency)))"
        )
        tuned = memlab.tune(
            lab.slates(), policy, metric="recall@3", labels=lab.questions, budget=20, folds=2
        )
        assert tuned.metric == "recall@3"

    def test_a_log_without_the_questions(self, lab):
        lab.recall("a query without a question")
        with pytest.raises(InputError, match="None of 1 recall"):
            memlab.failures(lab, lab.questions)

    def test_a_project_of_a_question_labels_its_recalls_only(self, lab):
        lab.questions.remove(1)
        lab.questions.add("tabs or spaces?", wants=1, project="p")
        lab.recall("tabs or spaces?", project="p")
        lab.recall("tabs or spaces?", project="q")
        assert lab.questions.label_recalls(lab.slates()).height == 1

    def test_a_viewer_of_a_question_labels_its_recalls_only(self, lab):
        lab.questions.remove(1)
        for id, viewer in ((1, "ana"), (2, "bob")):
            lab.questions.add("tabs or spaces?", wants=id, viewer=viewer)
        for viewer in ("ana", "bob", None):
            lab.recall("tabs or spaces?", viewer=viewer)
        labels = lab.questions.label_recalls(lab.slates())
        assert labels["memory_id"].to_list() == [1, 2]
        assert labels["decision"].n_unique() == 2
        lab.questions.add("tabs or spaces?", wants=3)
        labels = lab.questions.label_recalls(lab.slates())
        assert labels["memory_id"].value_counts().sort("memory_id")["count"].to_list() == [1, 1, 3]


DATA = Path(os.environ.get("MEMLAB_DATA", "nowhere")) / "locomo" / "locomo-dev5.json"


@pytest.mark.skipif(not DATA.is_file(), reason="MEMLAB_DATA has no locomo/locomo-dev5.json")
class TestOnConversations:
    def test_the_scores_are_those_of_bench(self):
        conversations = memlab.ingest.read_locomo(DATA)[:2]
        with memlab.open() as lab:
            for labelled in conversations:
                source = labelled.conversation
                lab.remember(source.rows(project=source.name), chain=True)
            assert lab.questions.add(conversations).height == len(lab.questions) > 200
            metrics = ["recall@10", "recall_any@5", "mrr@10", "ndcg@10"]
            result = bench_lab(lab, lab.questions, packs=["memlab", "actr"], baselines=False)
            scores = lab.score("actr", metrics=metrics)
            assert scores.clustered == "project"
            for system in result.systems:
                policy = "active" if system.name == "memlab" else "actr"
                assert values(scores, policy) == [system.metrics[name] for name in metrics]

    def test_four_policies_on_seventy_questions_take_two_seconds(self):
        with memlab.open() as lab:
            for labelled in memlab.ingest.read_locomo(DATA)[:3]:
                source = labelled.conversation
                lab.remember(source.rows(project=source.name), chain=True)
                lab.questions.add([labelled])
            lab.questions.remove(lab.questions.frame[70:])
            assert len(lab) >= 1_000
            assert len(lab.questions) == 70
            lab.recall("warm up", log=False)
            began = time.process_time()
            lab.score(["similarity", "actr", "companion", "(fn [recency] recency)"])
            assert time.process_time() - began < 2.0
