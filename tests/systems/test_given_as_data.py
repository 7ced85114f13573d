"""Policies, lists, kinds and questions are taken in the forms in which people have them."""

import hy
import numpy as np
import polars as pl
import pytest

import memlab
from memlab.kernel.language import compile_policy, policy_parts


@pytest.fixture
def lab():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as opened:
        yield opened


@pytest.mark.parametrize(
    "text", ["(fn [similarity] (* 2 similarity))", "'(fn [similarity] (* 2 similarity))"]
)
def test_a_form_of_hy_is_a_policy(lab, text):
    version = lab.policies.install("recall-score", hy.read(text))
    assert (
        version.hash
        == memlab.open().policies.install("recall-score", "(fn [similarity] (* 2 similarity))").hash
    )


def test_a_compiled_policy_brings_its_helpers(lab):
    policy = memlab.load_pack("companion").policies["recall-score"]
    assert lab.policies.install("recall-score", policy).hash == policy.hash


@pytest.mark.parametrize(
    "source", [3, None, ["fn"], object(), lambda similarity: similarity, hy.read("[1 2]")]
)
def test_anything_else_is_refused_in_one_sentence(lab, source):
    with pytest.raises(memlab.InputError, match="A policy must be a text, a Hy form"):
        lab.policies.install("recall-score", source)


@pytest.mark.long
def test_a_form_nested_without_end_is_refused(lab):
    form = hy.read("(fn [similarity] similarity)")
    for _ in range(5000):
        form = hy.models.Expression([hy.models.Symbol("+"), form])
    with pytest.raises(memlab.InputError, match="nested deeper"):
        lab.policies.install("recall-score", form)


def test_a_form_that_holds_itself_is_refused(lab):
    held = []
    held.append(held)
    with pytest.raises(memlab.InputError, match="nested deeper"):
        lab.policies.install(
            "recall-score", expression("fn", hy.models.List([hy.models.Symbol("x")]), held)
        )


def expression(head, *parts):
    return hy.models.Expression([hy.models.Symbol(head), *parts])


class Loud:
    def __repr__(self):
        raise AssertionError("a form was looked at by its own code")


@pytest.mark.parametrize(
    "atom",
    [
        hy.models.Bytes(b"x"),
        hy.models.Dict([]),
        hy.models.Complex(1j),
        hy.models.Symbol("x) (evil", from_parser=True),
        Loud(),
        (1, 2),
    ],
)
def test_a_form_with_a_value_that_the_dialect_does_not_have_is_refused(lab, atom):
    form = expression("fn", hy.models.List([hy.models.Symbol("similarity")]), expression("+", atom))
    with pytest.raises(memlab.InputError, match="of the policy language"):
        lab.policies.install("recall-score", form)


@pytest.mark.long
def test_a_form_of_thousands_of_atoms_is_refused(lab):
    with pytest.raises(memlab.InputError, match="more than 4,000"):
        lab.policies.install(
            "recall-score", expression("fn", hy.models.List([hy.models.Integer(1)] * 5000))
        )


def test_numbers_of_numpy_and_spliced_lists_are_values_of_a_form(lab):
    form = expression(
        "fn",
        [hy.models.Symbol("similarity")],
        expression("*", np.float64(0.25), hy.models.Symbol("similarity")),
    )
    assert lab.policies.install("recall-score", form).policy(similarity=2) == 0.5


@pytest.mark.long
@pytest.mark.parametrize("pack", memlab.packs())
def test_the_forms_of_a_published_pack_have_the_hashes_of_its_text(pack):
    for slot, policy in memlab.load_pack(pack).policies.items():
        form = hy.read(policy.source)
        again = compile_policy(policy_parts(form)[0], policy.signature, helpers=policy.helpers)
        assert again.source_hash == policy.source_hash, slot


def test_a_policy_is_checked_without_being_installed(lab):
    live = lab.policies["recall-score"].hash
    checked = lab.policies.check("recall-score", hy.read("'(fn [similarity] (* 2 similarity))"))
    assert (
        checked.hash
        == lab.policies.check("recall-score", "'(fn [similarity] (* 2 similarity))").hash
    )
    assert lab.policies.check("recall-score", checked).hash == checked.hash
    assert lab.policies["recall-score"].hash == live
    with pytest.raises(memlab.PolicyError):
        lab.policies.check("recall-score", hy.read("(fn [similarity] (open similarity))"))
    with pytest.raises(memlab.InputError, match="This policy is for"):
        lab.policies.check("recall-score", "(defpolicy seed-score [similarity] similarity)")


def test_a_pack_may_be_forms_too(lab):
    text = '(pack mine "of forms" :inherits memlab)\n(setting limit 3)\n(defpolicy seed-score [similarity] similarity)'
    assert lab.policies.use(hy.read_many(text)).hash == memlab.load_pack(text).hash
    for policy in (
        hy.read("(fn [similarity] similarity)"),
        memlab.load_pack("companion").policies["recall-score"],
    ):
        with pytest.raises(memlab.InputError, match="this is a policy, not a pack"):
            memlab.load_pack(policy)
        used = lab.policies.use(policy)
        assert used.name == "mine"
        assert used.policies["recall-score"].hash == lab.policies.check("recall-score", policy).hash


@pytest.mark.long
def test_forms_and_policies_are_evaluated_as_their_texts_are(lab):
    for text in ("the cat sleeps", "the dog barks", "a cat and a dog"):
        lab.remember(text)
    for number in range(6):
        lab.feedback(lab.recall(f"cat {number}")[0], "success")
    text = "(fn [similarity] (* 2 similarity))"
    policies = {
        "text": text,
        "form": hy.read(text),
        "policy": lab.policies.check("recall-score", text),
    }
    frame = memlab.evaluate(lab.slates(), policies, missing="zero").frame
    values = [
        frame.filter(pl.col("policy") == name).drop("policy", strict=False) for name in policies
    ]
    assert values[0].equals(values[1])
    assert values[0].equals(values[2])


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
    lab.upkeep.operations.run('(remember "x") (remember "y") (associate 1 2 "r" 0.5)')
    assert lab.upkeep.operations.run(f"(activate {seeds} 3 0.7 0.01)")


def test_memories_of_a_runner_are_visible_to_others():
    lab = memlab.open(pack="workbench", clock=memlab.ManualClock("2026-06-01"))
    lab.remember("The parser has three owners", creator="runner:insights", project="p")
    assert len(lab.agents("coder", project="p").recall("who owns the parser?")) == 1


def test_a_procedure_comes_up_when_its_trigger_occurs():
    lab = memlab.open(pack="cascade", clock=memlab.ManualClock("2026-06-01"))
    lab.remember(
        "How we ship", kind="procedure", triggers=["deploy to production"], steps=["make deploy"]
    )
    assert len(lab.recall("please deploy to production", log=False)) == 1
    assert len(lab.recall("please paint the fence", log=False)) == 0


@pytest.mark.long
def test_an_open_lab_is_benched_on_a_frame_of_questions(lab):
    lab.remember("a fact of rust")
    lab.remember("the bakery opens at six")
    questions = pl.DataFrame(
        {"question": ["rust?", "when does the bakery open?"], "wanted": [[1], [2]]}
    )
    before = lab.log.frame.height if hasattr(lab.log, "frame") else None
    result = memlab.bench_lab(lab, questions, packs=["memlab"], baselines=False)
    assert result.systems[0].metrics["recall@5"] == 1.0
    assert before is None or lab.log.frame.height == before
    with pytest.raises(memlab.InputError, match="needs the column wanted"):
        memlab.bench_lab(lab, questions.drop("wanted"))
    with pytest.raises(memlab.InputError, match='cannot have a column "wants"'):
        memlab.bench_lab(lab, questions.rename({"wanted": "wants"}))


@pytest.mark.long
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


@pytest.mark.long
def test_companion_knows_the_subject_of_a_query_from_the_verbs_around_it():
    lab = memlab.open(pack="companion", clock=memlab.ManualClock("2026-06-01"))
    lab.remember("User drinks coffee every morning", kind="observation")
    lab.remember("User now prefers tea over coffee", kind="observation")
    for text in ("User likes programming", "User likes hiking in the mountains"):
        lab.remember(text, kind="observation")
    assert "tea" in lab.recall("What beverages does the user like?", log=False)[0].text


@pytest.mark.long
def test_underscores_are_hyphens_wherever_a_word_of_ours_is_given(tmp_path):
    lab = memlab.open(tmp_path / "lab", pack="workbench", clock=memlab.ManualClock("2026-06-01"))
    rows = pl.DataFrame(
        {"text": ["port 80 is taken"], "kind": ["error_pattern"], "provenance": ["user_stated"]}
    )
    lab.load(rows, project="p")
    lab.upkeep.operations.run(
        '(remember "it says so" "human_feedback") (associate 1 2 "caused_by" 0.5)'
    )
    lab.facts.add("Ada", "lives_in", "Rome", source="user_edit")
    assert lab.memories["kind"].to_list() == ["error-pattern", "human-feedback", "fact"]
    assert lab.edges.filter(pl.col("to_kind") == "memory")["relation"].to_list() == ["caused-by"]
    assert lab.forget(source="user_edit", dry_run=True, how="quarantine").frame[
        "memory_id"
    ].to_list() == [3]
    assert lab.edit(1, kind="pr_review").kind == "pr-review"
    cascade = memlab.open(pack="cascade", clock=memlab.ManualClock("2026-06-01"))
    cascade.remember(["port 80 is taken", "port 80 is used by the proxy"])
    cascade.agents.verify(cascade.recall("port 80"), [1, 2], relations={(1, 2): "caused_by"})
    assert "caused-by" in cascade.edges["relation"].to_list()
