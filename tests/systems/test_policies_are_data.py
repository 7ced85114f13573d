"""Every verb takes a policy in every form: text, Hy form, file, name, pack or compiled policy."""

from functools import cache

import hy
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab.errors import UnknownName
from memlab.kernel.language import (
    Input,
    Signature,
    compile_policy,
    policy_form_text,
    policy_parts,
)
from memlab.kernel.policies import as_pack, as_packs, list_policies, read_policy
from memlab.science.bench import bench_lab
from memlab.science.simulation import World
from memlab.ui.widgets import EvaluationBoard, PolicyStudio
from tests.properties import examples

TEXT = "(fn [similarity recency] (+ similarity (* 0.25 recency)))"
BUILT = "(setv weight 0.25) `(fn [similarity recency] (+ similarity (* ~weight recency)))"
INHERITING = "(fn [recency] (+ (inherited) (* 0.1 recency)))"
MEMORIES = ["The user prefers tabs", "Deploys go out on Tuesdays", "Ana lives in Rome"]


@pytest.fixture
def lab():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as opened:
        opened.remember(MEMORIES)
        yield opened


@pytest.fixture
def forms(tmp_path):
    """The policy of ``TEXT`` in every form."""
    path = tmp_path / "mine.hy"
    path.write_text(TEXT)
    policy = memlab.open().policies.check("recall-score", TEXT)
    return {
        "text": TEXT,
        "quoted text": f"'{TEXT}",
        "form": hy.read(TEXT),
        "quoted form": hy.read(f"'{TEXT}"),
        "spliced form": hy.eval(hy.read_many(BUILT)),
        "path": path,
        "path as text": str(path),
        "policy": policy,
        "pack": memlab.load_pack("memlab").with_policy("recall-score", policy),
    }


@pytest.mark.long
def test_each_form_has_the_hash_of_its_text(lab, forms):
    wanted = lab.policies.check("recall-score", TEXT).hash
    for name, form in forms.items():
        assert lab.policies.check("recall-score", form).hash == wanted, name
        version = lab.policies.install("recall-score", form, reason=name)
        assert version.hash == wanted, name
        if name != "pack":
            assert lab.policies.use(form).policies["recall-score"].hash == wanted, name


def test_a_pack_gives_the_policy_of_a_slot_and_a_name_is_a_pack_or_a_feature(lab):
    companion = memlab.load_pack("companion")
    for pack in ("companion", companion, companion.sources[0]):
        installed = lab.policies.install("recall-score", pack, compare=0)
        assert installed.hash == companion.policies["recall-score"].hash
    assert lab.policies.check("recall-score", "age_days").source == "(fn [age-days] age-days)"
    with pytest.raises(UnknownName, match="Did you mean companion"):
        lab.policies.check("recall-score", "companoin")


@pytest.mark.long
def test_each_form_is_scored_evaluated_and_recalled(lab, forms):
    lab.questions.add(pl.DataFrame({"query": ["tabs?", "where is Ana?"], "wants": [1, 3]}))
    for query in ("tabs", "Ana", "Rome", "deploys"):
        lab.feedback(lab.recall(query)[0], "success")
    scores = lab.score(forms).frame.filter(pl.col("policy") != "active").drop("policy")
    rows = scores.rows()
    assert rows == rows[: len(rows) // len(forms)] * len(forms)
    frame = memlab.evaluate(lab.slates(), forms, missing="zero").frame
    values = [frame.filter(policy=name).drop("policy") for name in forms if name != "pack"]
    assert all(own.equals(values[0]) for own in values)
    orders = {lab.recall("tabs", pack=form, log=False).ids for form in forms.values()}
    assert len(orders) == 1


@pytest.mark.long
def test_a_list_has_the_names_of_files_and_slots(lab, forms):
    lab.questions.add("tabs?", wants=1)
    scored = lab.score([forms["path"], forms["form"], INHERITING, "companion", "similarity"])
    first = lab.policies.check("recall-score", TEXT).hash[:8]
    second = lab.policies.check("recall-score", INHERITING).hash[:8]
    assert scored.policies == (
        *("mine", f"recall-score [{first}]", f"recall-score [{second}]"),
        *("companion", "similarity"),
    )
    assert lab.score(forms["form"]).policies == (f"recall-score [{first}]",)
    with pytest.raises(memlab.InputError, match="passed twice"):
        lab.score([TEXT, forms["form"]])


@pytest.mark.long
def test_score_takes_expressions_over_features_and_memories(lab):
    lab.questions.add(pl.DataFrame({"query": ["tabs?", "where is Ana?"], "wants": [1, 3]}))
    newest = pl.col("id").cast(pl.Float64)
    scores = lab.score(
        {"cosine": pl.col("similarity"), "newest": newest, "name": "similarity"}, metrics="mrr"
    )
    ranks = scores.ranks.select("cosine", "name", "newest")
    assert ranks["cosine"].to_list() == ranks["name"].to_list()
    assert ranks["newest"].to_list() == [3, 1]
    unscored = pl.when(pl.col("id") == 1).then(None).otherwise(newest)
    assert lab.score({"x": unscored}, metrics="mrr").ranks["x"].to_list() == [None, 1]
    with pytest.raises(UnknownName, match="Did you mean similarity"):
        lab.score(pl.col("similarty"))
    for wrong in (pl.col("text"), pl.lit(1.0), pl.col("tags")):
        with pytest.raises(memlab.InputError, match="The expression"):
            lab.score(wrong)


@pytest.mark.long
def test_a_bare_text_challenges_as_the_active_pack_with_it(tmp_path):
    with memlab.open(tmp_path / "lab") as lab:
        lab.remember(MEMORIES)
        # Helpers of the same name, an inherited value and a parameter, each in a slot of its own.
        lab.policies.install("seed-score", "(defn f [x] (* 2 x)) (fn [similarity] (f similarity))")
        lab.policies.install("cut", "(defn f [x] (* 3 x)) (fn [seed] (+ (inherited) (f seed)))")
        lab.policies.install(
            "explore", "(fn [recency] (* (param :r 0.5) recency))", params={"r": 0.75}
        )
        active = lab.policies.pack
        challenge = lab.challenge(INHERITING, reason="newer first")
        pack = challenge.pack
        for slot, policy in active.policies.items():
            if slot not in ("recall-score", "known"):
                assert pack.policies[slot].meaning_hash == policy.meaning_hash, slot
        own = lab.policies.check("recall-score", INHERITING)
        assert pack.policies["recall-score"].hash == own.hash
        assert pack.settings == active.settings
        assert challenge.name == f"recall-score-{own.hash[:8]}"
        with pytest.raises(memlab.InputError, match="is a challenger already"):
            lab.challenge(INHERITING)
        lab.challenge("(defpolicy eligible [similarity] (> similarity 0.1))")
        with pytest.raises(memlab.InputError, match="is the active pack"):
            lab.challenge(active.policies["seed-score"])
        hits = lab.recall("tabs")
        assert hits.slate.challenge is not None
    with memlab.open(tmp_path / "lab") as lab:
        names = [each.name for each in lab.policies.challenges]
        assert names[0] == challenge.name
        assert names[1].startswith("eligible-")
        assert lab.policies.challenges[0].pack.hash == challenge.pack.hash
        lab.policies.use(lab.policies.challenges[0].pack, compare=0)
        assert lab.policies["recall-score"].hash == own.hash


def test_a_policy_of_another_recall_score_is_not_called_known(lab):
    assert lab.policies.pack.tells_known
    pack = as_pack(TEXT, lambda: lab.policies.pack)
    assert pack.policies["known"] != lab.policies["known"]
    eligible = as_pack("(defpolicy eligible [hops] (>= hops 0))", lambda: lab.policies.pack)
    assert eligible.policies["known"] == lab.policies["known"]


@pytest.mark.long
def test_benchmarks_and_simulations_take_policies(lab, forms, tmp_path):
    questions = pl.DataFrame({"question": ["tabs?", "where is Ana?"], "wanted": [[1], [3]]})
    result = bench_lab(lab, questions, packs={"mine": forms["spliced form"]}, baselines=False)
    assert [system.name for system in result.systems] == ["mine"]
    with memlab.open(tmp_path / "closed") as closed:
        closed.remember(MEMORIES)
    result = bench_lab(tmp_path / "closed", questions, packs=forms["path"], baselines=False)
    assert [system.name for system in result.systems] == ["mine"]
    again = memlab.replay(lab, forms["form"])
    assert again.lab.policies["recall-score"].meaning_hash == read_hash(lab)
    world = World("tiny", days=2, projects=2, messages_per_day=4, questions_per_day=2)
    trial = memlab.trial(["memlab", INHERITING], world, seeds=1)
    assert trial.frame["policy" if "policy" in trial.frame.columns else "pack"].len() == 2
    future = lab.upkeep.forecast(
        1, "2100-01-01", points=2, packs=["(defpolicy half-life [] (days 3))", "companion"]
    )
    assert future.frame.height == 4


def read_hash(lab):
    return lab.policies.check("recall-score", TEXT).meaning_hash


@pytest.mark.long
def test_the_studio_and_the_board_begin_with_a_policy(lab, forms):
    studio = PolicyStudio(lab, questions=["tabs"], source=forms["spliced form"])
    assert studio.source == TEXT
    assert studio.policy.hash == lab.policies.check("recall-score", TEXT).hash
    assert "(inherited)" in PolicyStudio(lab, questions=["tabs"], source=INHERITING).source
    board = EvaluationBoard(lab, [TEXT, forms["path"], "companion", pl.col("similarity")])
    assert board.policies == [TEXT, "mine", "companion", 'col("similarity")']


@pytest.mark.long
def test_the_forms_of_a_pack_are_a_list(lab):
    built = hy.eval(
        hy.read_many(
            "(setv n 3)"
            '`[(pack ~(hy.models.Symbol "few") "Few results." :inherits memlab)'
            "  (setting limit ~n)"
            "  (defpolicy seed-score [similarity] similarity)]"
        )
    )
    text = '(pack few "Few results." :inherits memlab)\n(setting limit 3)\n'
    text += "(defpolicy seed-score [similarity] similarity)"
    for forms in (built, list(built), hy.read_many(text)):
        assert memlab.load_pack(forms).hash == memlab.load_pack(text).hash
    assert lab.policies.use(built).count("limit") == 3
    assert [name for name, _ in list_policies([hy.read(TEXT), built])] == ["", ""]
    assert as_packs(list(built))[0].name == "few"


@pytest.mark.parametrize("spec", [3, None, object(), [1], {"a": 1}, b"(fn [x] x)", ["(fn"], 1.5])
def test_other_objects_are_refused_everywhere(lab, spec):
    lab.questions.add("tabs?", wants=1)
    before = lab.io.store.journal.head
    calls = (
        lambda: lab.policies.check("recall-score", spec),
        lambda: lab.policies.install("recall-score", spec),
        lambda: lab.policies.use(spec),
        lambda: lab.challenge(spec),
        lambda: lab.score([spec]),
        lambda: memlab.evaluate(lab.slates(), [spec]),
    )
    for call in calls:
        with pytest.raises(memlab.MemlabError):
            call()
    assert lab.io.store.journal.head == before


SIMILARITY = hy.models.Symbol("similarity")


def form_with(item):
    body = hy.models.Expression([hy.models.Symbol("+"), SIMILARITY, item])
    return hy.models.Expression([hy.models.Symbol("fn"), hy.models.List([SIMILARITY]), body])


@pytest.mark.parametrize(
    "item",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        10**400,
        object(),
        {"a": 1},
        hy.models.Keyword("a"),
    ],
)
def test_values_without_a_literal_are_refused(lab, item):
    with pytest.raises(memlab.MemlabError):
        lab.challenge(form_with(item))
    assert not lab.policies.challenges


@pytest.mark.long
def test_forms_of_a_hundred_thousand_levels_are_refused(lab):
    nested, quoted, cyclic = hy.read("similarity"), hy.read(TEXT), [SIMILARITY]
    for _ in range(100_000):
        nested = hy.models.Expression([hy.models.Symbol("+"), nested])
        quoted = hy.models.Expression([hy.models.Symbol("quote"), quoted])
    cyclic.append(cyclic)
    for verb in (lab.policies.use, lab.challenge, lab.score, read_policy):
        for form in (form_with(nested), form_with(cyclic)):
            with pytest.raises(memlab.InputError, match="nested deeper"):
                verb(form)
    assert policy_form_text(quoted) == TEXT
    for deep in ("(" * 100_000, "(fn [similarity] " + "(+ " * 100_000):
        with pytest.raises(memlab.PolicyError):
            lab.challenge(deep)
    assert not lab.policies.challenges


def test_strings_keep_quotes_and_line_ends():
    text = 'say "hi" \\ and\nthen'
    word = hy.models.Symbol("word")
    body = hy.models.Expression([hy.models.Symbol("="), word, text])
    form = hy.models.Expression([hy.models.Symbol("fn"), hy.models.List([word]), body])
    signature = Signature("eligible", [Input("word", "str")], "bool")
    assert compile_policy(policy_form_text(form), signature)(text) is True


# Hypothesis calls the test with one lab for all examples, because opening one takes longer than the test.
@cache
def empty_lab():
    return memlab.open()


@pytest.mark.long
@given(st.data())
@examples(30)
def test_a_form_built_from_parts_equals_the_text_with_the_parts(data):
    numbers = st.one_of(
        st.integers(-(2**53), 2**53), st.floats(-1e300, 1e300, allow_subnormal=False)
    )
    leaf = st.one_of(numbers, st.sampled_from(["similarity", "recency"]))
    tree = st.recursive(leaf, lambda inner: st.tuples(st.sampled_from("+*"), inner, inner))

    def as_text(node):
        if isinstance(node, tuple):
            return f"({node[0]} {as_text(node[1])} {as_text(node[2])})"
        return node if isinstance(node, str) else repr(node)

    def as_form(node):
        if isinstance(node, tuple):
            head, *rest = node
            return hy.models.Expression([hy.models.Symbol(head), *map(as_form, rest)])
        return hy.models.Symbol(node) if isinstance(node, str) else node

    drawn = data.draw(tree)
    text = f"(fn [similarity recency] (+ similarity recency {as_text(drawn)}))"
    form = hy.models.Expression(
        [
            hy.models.Symbol("fn"),
            hy.models.List([SIMILARITY, hy.models.Symbol("recency")]),
            hy.models.Expression(
                [hy.models.Symbol("+"), SIMILARITY, hy.models.Symbol("recency"), as_form(drawn)]
            ),
        ]
    )
    check = empty_lab().policies.check
    assert check("recall-score", form).hash == check("recall-score", text).hash
    assert check("recall-score", policy_parts(form)[0]).hash == check("recall-score", text).hash
