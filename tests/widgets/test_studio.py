"""The Python half of the policy studio: what is typed, what moves, and what may be done with a draft."""

import polars as pl
import pytest

import memlab
from memlab.kernel.language.forms import FORMS
from memlab.kernel.language.macros import MACROS
from memlab.subjects.lens import vocabulary
from memlab.subjects.lens.highlight import FORM_SHAPES
from memlab.ui.widgets import PolicyStudio
from tests.displays import page_of
from tests.widgets.shared import shared

QUESTIONS = ["tabs or spaces?", "when do deploys go out?"]
TURNED = "(fn [similarity] (* (param :weight -1 :low -1 :high 1) similarity))"


@pytest.fixture
def studio(asked):
    return PolicyStudio(asked, questions=QUESTIONS)


@pytest.fixture
def type_text(ask):
    def typed(studio, source):
        return ask(studio, "check", source=source, view="one")

    return typed


def order(studio, column, question=QUESTIONS[0]):
    return studio.moves.filter(pl.col("question") == question).sort(column)["memory_id"].to_list()


@pytest.mark.long
def test_it_begins_with_the_live_policy_and_nothing_moves(studio, asked):
    assert (
        memlab.kernel.language.compile_policy(studio.source, memlab.SLOTS["recall-score"].signature)
        == asked.policies["recall-score"]
    )
    assert shared(studio, "about")["same"]
    assert order(studio, "rank_before") == order(studio, "rank_after")
    assert [one["pairs"] for one in shared(studio, "sums")] == [0, 0]


@pytest.mark.long
def test_before_is_what_the_lab_recalls(studio, asked):
    for question in QUESTIONS:
        hits = asked.recall(question, log=False)
        assert order(studio, "rank_before", question) == list(hits.ids)


@pytest.mark.long
def test_after_is_what_the_lab_recalls_once_it_is_installed(studio, asked, type_text):
    assert type_text(studio, TURNED) == {}
    after = [order(studio, "rank_after", question) for question in QUESTIONS]
    assert after[0] != order(studio, "rank_before")
    asked.policies.install("recall-score", TURNED)
    assert after == [list(asked.recall(question, log=False).ids) for question in QUESTIONS]


@pytest.mark.long
@pytest.mark.parametrize(
    ("slot", "source"),
    [
        ("eligible", '(fn [kind] (= kind "convention"))'),
        ("seed-score", "(fn [lexical] (- lexical))"),
        ("cut", "(fn [lexical] (- lexical))"),
        # no slate has this test
        ("recall-score", '(fn [similarity tags] (if (has tags "x") 1 (- similarity)))'),
    ],
)
def test_what_no_slate_can_tell_is_asked_of_the_lab(studio, asked, slot, source):
    studio.slot = slot
    studio.source = source
    assert studio.fault == ""
    asked.policies.install(slot, source)
    assert [order(studio, "rank_after", one) for one in QUESTIONS] == [
        _then_unranked(asked, one, studio) for one in QUESTIONS
    ]


def _then_unranked(lab, question, studio):
    """Return the memories without a rank after the change, then the results of the lab."""
    shown = list(lab.recall(question, log=False).ids)
    gone = studio.moves.filter((pl.col("question") == question) & pl.col("rank_after").is_null())
    return gone["memory_id"].to_list() + shown


@pytest.mark.long
def test_nothing_that_is_tried_is_logged_or_live(studio, asked, type_text):
    before = asked.log.height, asked.policies.pack.hash
    type_text(studio, TURNED)
    studio.slot = "eligible"
    assert (asked.log.height, asked.policies.pack.hash) == before


@pytest.mark.long
def test_pairs_and_top_five_are_counted(studio, type_text):
    type_text(studio, TURNED)
    for question, sums in zip(QUESTIONS, shared(studio, "sums"), strict=True):
        ranks = (
            studio.moves.filter(pl.col("question") == question)
            .select("rank_before", "rank_after")
            .rows()
        )
        turned = sum(
            (a < c) != (b < d) for n, (a, b) in enumerate(ranks) for c, d in ranks[n + 1 :]
        )
        new = sum(b <= 5 < a for a, b in ranks)
        assert (sums["question"], sums["pairs"], sums["of"], sums["new"]) == (
            question,
            turned,
            15,
            new,
        )


@pytest.mark.long
def test_a_broken_text_keeps_the_last_ranks_and_says_where(studio, type_text):
    type_text(studio, TURNED)
    good = studio.moves
    assert type_text(studio, "(fn [similarity]\n  (+ similarty 1))") == {}
    problem = shared(studio, "about")["problem"]
    assert "Did you mean similarity" in problem["text"]
    assert studio.source[slice(*problem["places"])] == "similarty"
    assert studio.moves.equals(good)
    assert studio.params == {"weight": -1}
    type_text(studio, "")
    assert "The text is empty" in shared(studio, "about")["problem"]["text"]
    type_text(studio, TURNED)
    assert shared(studio, "about")["problem"] is None


@pytest.mark.long
def test_places_are_as_a_browser_counts_them(studio, type_text):
    type_text(studio, f'"𝄞" {TURNED}'.replace('"𝄞"', "; 𝄞𝄞\n"))
    ((start, stop),) = shared(studio, "params")[0]["places"]
    encoded = studio.source.encode("utf-16-le")
    assert encoded[2 * start : 2 * stop].decode("utf-16-le") == "-1"


@pytest.mark.long
def test_params_have_their_bounds_and_places(studio, type_text):
    type_text(
        studio, "(fn [similarity] (+ (param :b 0.5) (* (param :a 2 :low 1 :high 3) similarity)))"
    )
    assert studio.params == {"a": 2, "b": 0.5}
    bounds = [(one["name"], one["low"], one["high"]) for one in shared(studio, "params")]
    assert bounds == [("b", None, None), ("a", 1, 3)]


@pytest.mark.long
def test_a_parameter_of_a_helper_that_is_never_called_has_no_slider(studio, type_text):
    type_text(studio, "(defn f [] (param :x 1)) (fn [similarity] similarity)")
    assert (shared(studio, "about")["problem"], shared(studio, "params")) == (None, [])


@pytest.mark.long
def test_numbers_become_parameters_and_mean_the_same(studio, ask):
    assert shared(studio, "about")["numbers"] == 33
    assert ask(studio, "text", of="sliders") == {}
    assert (
        shared(studio, "about")["numbers"],
        len(studio.params),
        shared(studio, "about")["meaning"],
    ) == (0, 33, True)
    assert ask(studio, "text", of="live") == {}
    assert shared(studio, "about")["same"]


@pytest.mark.long
def test_a_policy_with_helpers_and_other_parameters_is_one_text(lab):
    lab.policies.use("actr")
    lab.policies.install("recall-score", TURNED, params={"weight": 0.25})
    assert PolicyStudio(lab).params == {"weight": 0.25}
    for slot in memlab.SLOTS:
        studio = PolicyStudio(lab, slot=slot)
        assert shared(studio, "about")["problem"] is None
        assert shared(studio, "about")["meaning"], slot


@pytest.mark.long
def test_installing_needs_a_reason_and_a_text_that_compiles(studio, asked, ask, type_text):
    type_text(studio, TURNED)
    assert "Type a reason" in ask(studio, "install", reason=" ")
    type_text(studio, "(fn")
    assert "Correct the text first" in ask(studio, "install", reason="try")
    type_text(studio, TURNED)
    assert studio.installed is None
    assert ask(studio, "install", reason="try") == {}
    assert (studio.installed.number, studio.installed.reason) == (2, "try")
    assert asked.policies["recall-score"].source == TURNED
    assert shared(studio, "about")["same"]


@pytest.mark.long
def test_rolling_back_takes_the_editor_along_unless_it_holds_a_draft(studio, asked, ask, type_text):
    live = studio.source
    assert "nothing to roll back" in ask(studio, "rollback", reason="")
    type_text(studio, TURNED)
    ask(studio, "install", reason="try")
    assert ask(studio, "rollback", reason="worse") == {}
    assert studio.source == live
    assert asked.policies.history("recall-score")["action"].to_list() == [
        "use",
        "install",
        "rollback",
    ]
    type_text(studio, TURNED)
    ask(studio, "rollback", reason="again")
    assert studio.source == TURNED


@pytest.mark.long
def test_a_challenger_is_the_live_pack_with_the_draft(studio, asked, ask, type_text):
    assert "is the active pack" in ask(studio, "challenge", reason="")
    asked.policies.install(
        "explore", "(fn [recency] (* (param :r 0.5) recency))", params={"r": 0.75}
    )
    type_text(studio, TURNED)
    assert ask(studio, "challenge", reason="better?") == {}
    (challenge,) = asked.policies.challenges
    assert challenge.pack.policies["recall-score"].hash == studio.policy.hash
    assert challenge.pack.policies["explore"].meaning_hash == asked.policies["explore"].meaning_hash
    assert challenge.pack.settings == asked.policies.pack.settings
    assert challenge.reason == "better?"
    asked.recall("tabs?")
    assert "is a challenger already" in ask(studio, "challenge", reason="")


@pytest.mark.long
def test_a_text_is_saved_where_the_notebook_is(
    studio, asked, ask, type_text, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    type_text(studio, TURNED)
    assert ask(studio, "save", name="mine") == {}
    assert (tmp_path / "mine.hy").read_text() == TURNED + "\n"
    assert ask(studio, "save", name="mine.hy") == {}  # its own file
    (tmp_path / "other.hy").write_text("x")
    assert "exists already" in ask(studio, "save", name="other.hy")
    for name in ("../up.hy", "a/b.hy", "..", "", "/etc/x.hy", "a\\b.hy"):
        assert "no folder" in ask(studio, "save", name=name), name
    assert studio.save(tmp_path / "two.hy").exists()
    with pytest.raises(memlab.InputError, match=r"end in \.hy"):
        studio.save("notes.txt")
    with asked.policies.watch("mine.hy", "recall-score"):
        assert asked.policies["recall-score"].source.strip() == TURNED


@pytest.mark.long
def test_what_python_sets_is_checked_and_ranked(studio):
    studio.source = TURNED
    assert shared(studio, "author") == ""
    assert studio.params == {"weight": -1}
    studio.questions = ["changelog"]
    assert studio.moves["question"].unique().to_list() == ["changelog"]


@pytest.mark.long
def test_each_slot_has_a_draft_of_its_own(studio):
    studio.source = TURNED
    studio.slot = "eligible"
    assert "hops" in studio.source
    studio.slot = "nowhere"
    assert 'no policy slot "nowhere"' in studio.fault
    studio.slot = "recall-score"
    assert (studio.source, studio.fault) == (TURNED, "")


@pytest.mark.long
def test_a_slot_that_ranks_nothing_is_checked_all_the_same(studio, ask, type_text):
    studio.slot = "explore"
    assert not shared(studio, "about")["ranks"]
    type_text(studio, "(fn [acts] (first (range (length acts))))")  # over lists
    assert shared(studio, "about")["problem"] is None
    assert order(studio, "rank_before") == order(studio, "rank_after")
    assert ask(studio, "install", reason="lists") == {}
    assert "over lists" in ask(studio, "text", of="sliders") or studio.params == {}


@pytest.mark.long
def test_a_policy_of_another_slot_is_a_problem(studio, type_text):
    type_text(studio, "(defpolicy eligible [similarity] similarity)")
    assert "is for eligible" in shared(studio, "about")["problem"]["text"]


@pytest.mark.long
def test_a_hit_is_explained_by_the_draft(studio, ask, type_text):
    type_text(studio, "(fn [similarity lexical] (+ (* 2 similarity) lexical))")
    best = order(studio, "rank_after")[0]
    found = ask(studio, "explain", memory=best)
    assert found["terms"]["term"].to_list() == ["(* 2 similarity)", "lexical"]
    score = studio.moves.filter(
        (pl.col("memory_id") == best) & (pl.col("question") == QUESTIONS[0])
    )["score_after"][0]
    assert found["score"] == pytest.approx(score)
    assert "candidates of this recall" in ask(studio, "explain", memory=99)


@pytest.mark.long
def test_the_words_of_the_slot_have_their_docs(studio, ask):
    words = {name: (kind, shape, doc) for name, kind, shape, doc in ask(studio, "words")["words"]}
    assert words["similarity"][0] == "num feature"
    assert words["half-life-decay"][1] == "(half-life-decay age half-life)"
    assert all(doc or shape != name for name, (_, shape, doc) in words.items())
    named = {word.name for word in vocabulary() if word.kind == "form"}
    assert named == ({*FORMS, *MACROS, "defmacro"} - {"pack", "setting"}) == set(FORM_SHAPES)


@pytest.mark.long
def test_unless_given_the_questions_are_the_latest_ten(asked):
    for number in range(12):
        asked.recall(f"question {number}")
    asked.recall("question 3")
    assert PolicyStudio(asked).questions == [
        "question 3",
        *(f"question {n}" for n in (11, 10, 9, 8, 7, 6, 5, 4, 2)),
    ]


@pytest.mark.long
def test_what_happens_elsewhere_is_seen(studio, asked, type_text):
    asked.remember("Tabs or spaces? Spaces, since today")
    type_text(studio, TURNED)
    assert 7 in order(studio, "rank_after")
    asked.policies.install("recall-score", "(fn [lexical] lexical)")
    type_text(studio, "(fn [lexical] lexical)")
    assert shared(studio, "about")["same"]


@pytest.mark.long
def test_two_studios_on_one_lab_do_not_disturb_each_other(studio, asked, ask, type_text):
    other = PolicyStudio(asked, questions=["deploys"])
    type_text(studio, TURNED)
    ask(studio, "install", reason="one")
    assert other.source != TURNED
    type_text(other, other.source + " ")
    assert shared(other, "about")["live"] == 2


@pytest.mark.long
def test_an_empty_lab_and_one_without_questions(lab):
    studio = PolicyStudio(lab)
    assert (studio.questions, studio.moves.height, shared(studio, "about")["memories"]) == (
        [],
        0,
        0,
    )
    studio.questions = ["anything?"]
    assert (studio.fault, studio.moves.height) == ("", 0)


def test_a_closed_lab_is_said(studio, asked, type_text):
    asked.close()
    assert "was closed" in type_text(studio, TURNED)
    studio.source = "(fn [lexical] lexical)"
    assert "was closed" in studio.fault


@pytest.mark.long
def test_a_pinned_slot_is_said(studio, asked, ask, type_text):
    asked.policies.pin("recall-score")
    type_text(studio, TURNED)
    assert shared(studio, "about")["pinned"] == 1
    assert "is pinned" in ask(studio, "install", reason="try")


@pytest.mark.parametrize(
    "bad", [{"slot": "recal-score"}, {"slot": 3}, {"questions": ["x"] * 51}, {"questions": [1]}]
)
def test_a_constructor_refuses_what_it_cannot_show(asked, bad):
    with pytest.raises(memlab.InputError):
        PolicyStudio(asked, **bad)


@pytest.mark.long
def test_a_page_without_python_has_the_ranks(studio, asked):
    page = page_of(studio)
    assert "&lt;img src=x" in page
    assert "<img" not in page
    assert page_of(PolicyStudio(asked, questions=[]))
