"""Policies, lists, kinds and questions are taken in the forms in which people have them."""

import hy
import polars as pl
import pytest

import memlab


@pytest.fixture
def lab():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as opened:
        yield opened


@pytest.mark.parametrize("text", ["(fn [similarity] (* 2 similarity))", "'(fn [similarity] (* 2 similarity))"])
def test_a_form_of_hy_is_a_policy(lab, text):
    version = lab.policies.install("recall-score", hy.read(text))
    assert version.hash == memlab.open().policies.install("recall-score", "(fn [similarity] (* 2 similarity))").hash


def test_a_compiled_policy_brings_its_helpers(lab):
    policy = memlab.load_pack("companion").policies["recall-score"]
    assert lab.policies.install("recall-score", policy).hash == policy.hash


@pytest.mark.parametrize("source", [3, None, ["fn"], object(), lambda similarity: similarity, hy.read("[1 2]")])
def test_anything_else_is_refused_in_one_sentence(lab, source):
    with pytest.raises(memlab.InputError, match="A policy is a text, a Hy form"):
        lab.policies.install("recall-score", source)


def test_a_form_nested_without_end_is_refused(lab):
    form = hy.read("(fn [similarity] similarity)")
    for _ in range(5000):
        form = hy.models.Expression([hy.models.Symbol("+"), form])
    with pytest.raises(memlab.InputError, match="nested deeper"):
        lab.policies.install("recall-score", form)


def test_kinds_and_relations_may_be_spelled_with_underscores():
    lab = memlab.open(pack="workbench", clock=memlab.ManualClock("2026-06-01"))
    first = lab.remember("x one", kind="error_pattern", source="user_edit")
    second = lab.remember("y two", kind="human_feedback")
    assert (first.kind, second.kind) == ("error-pattern", "human-feedback")
    lab.graph.link(second, first, "caused_by")
    assert lab.edges["relation"].to_list() == ["caused-by"]


@pytest.mark.parametrize("seeds", ["[1 2]", "(list 1 2)", "(1 2)", "'(1 2)"])
def test_a_list_is_a_list(seeds):
    lab = memlab.open(pack="associative", clock=memlab.ManualClock("2026-06-01"))
    lab.operations.run('(remember "x") (remember "y") (associate 1 2 "r" 0.5)')
    assert lab.operations.run(f"(activate {seeds} 3 0.7 0.01)")


def test_what_a_runner_writes_others_see():
    lab = memlab.open(pack="workbench", clock=memlab.ManualClock("2026-06-01"))
    lab.remember("The parser has three owners", creator="runner:insights", project="p")
    assert len(lab.agent("coder", project="p").recall("who owns the parser?")) == 1


def test_a_procedure_comes_up_when_its_trigger_occurs():
    lab = memlab.open(pack="cascade", clock=memlab.ManualClock("2026-06-01"))
    lab.remember("How we ship", kind="procedure", triggers=["deploy to production"], steps=["make deploy"])
    assert len(lab.recall("please deploy to production", log=False)) == 1
    assert len(lab.recall("please paint the fence", log=False)) == 0


def test_an_open_lab_is_benched_on_a_frame_of_questions(lab):
    lab.remember("a fact of rust")
    lab.remember("the bakery opens at six")
    questions = pl.DataFrame({"question": ["rust?", "when does the bakery open?"], "wanted": [[1], [2]]})
    before = lab.log.frame.height if hasattr(lab.log, "frame") else None
    found = memlab.bench_lab(lab, questions, packs=["memlab"], baselines=False)
    assert found.systems[0].metrics["recall@5"] == 1.0
    assert before is None or lab.log.frame.height == before
    with pytest.raises(memlab.InputError, match="needs the column wanted"):
        memlab.bench_lab(lab, questions.drop("wanted"))
    with pytest.raises(memlab.InputError, match='no column "wants"'):
        memlab.bench_lab(lab, questions.rename({"wanted": "wants"}))


def test_factgraph_answers_by_what_is_named_or_near():
    lab = memlab.open(pack="factgraph", clock=memlab.ManualClock("2026-06-01"))
    for subject, predicate, thing in [
        ("JACQ", "uses", "React"),
        ("Ada", "works_on", "JACQ"),
        ("Bob", "lives_in", "Oslo"),
        ("Carl", "likes", "Pizza"),
        ("Dora", "likes", "Sushi"),
        ("Zoe", "plays", "Cello"),
    ]:
        lab.facts.add(subject, predicate, object=thing, confidence=0.9)
    assert [hit.text for hit in lab.recall("sushi", log=False)] == ["Dora likes Sushi"]
    assert lab.facts.narrative("What does Bob do?").text.startswith("BOB CONTEXT")


def test_companion_knows_the_subject_of_a_query_from_the_verbs_around_it():
    lab = memlab.open(pack="companion", clock=memlab.ManualClock("2026-06-01"))
    lab.remember("User drinks coffee every morning", kind="observation")
    lab.remember("User now prefers tea over coffee", kind="observation")
    for text in ("User likes programming", "User likes hiking in the mountains"):
        lab.remember(text, kind="observation")
    assert "tea" in lab.recall("What beverages does the user like?", log=False)[0].text
