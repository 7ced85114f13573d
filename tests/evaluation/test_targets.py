"""What each policy would have shown: re-scored by fingerprint, re-recalled by a lab, or refused by name."""

import json

import numpy as np
import polars as pl
import pytest
from probed_logs import World

from memlab import Slates
from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.policies import load_pack
from memlab.science.evaluation import evaluate

WORLD = World(clusters=3, recalls=4, pool=8, limit=2, depth=3, seed=4)


def logged_by(pack, embedder="the embedder"):
    """Return the fingerprints that a recall under a pack leaves."""
    return {"embedder": embedder} | dict(pack.fingerprints(embedder))


def slates(*, fingerprints=None, lab=None, **features):
    frames = WORLD.frames()
    size = frames["candidates"].height
    dice = np.random.default_rng(0)
    held = {name.replace("_", "-"): values for name, values in features.items()}
    for name in (
        "similarity",
        "lexical",
        "activation",
        "strength",
        "emotional-weight",
        "idle-days",
    ):
        held.setdefault(name, dice.random(size))
    frames["candidates"] = frames["candidates"].with_columns(
        **{name: pl.Series(v) for name, v in held.items()}
    )
    if fingerprints is not None:
        texts = [json.dumps(fingerprint) for fingerprint in fingerprints]
        frames["decisions"] = frames["decisions"].with_columns(
            fingerprints=pl.Series([texts[at % len(texts)] for at in range(WORLD.count)])
        )
    return Slates(
        *(frames[name].lazy() for name in ("decisions", "candidates", "exposures", "feedback")),
        lab=lab,
    )


def refusal(ev, name):
    return next(refusal.reason for refusal in ev.refusals if refusal.policy == name)


def kinds(ev):
    return {row.policy: row.kind for row in ev.rows}


VIVID = """(pack vivid "Settings of its own, and features that do not depend on them.")
(setting seeds 3) (setting damping 0.1)
(defpolicy recall-score [similarity strength idle-days] (+ similarity (/ (- strength idle-days) 100)))"""
SIMILAR = '(pack similar "Near.") (defpolicy recall-score [similarity] similarity)'


@pytest.mark.long
def test_every_sort_of_policy_gives_the_same_head():
    log = slates()
    ev = evaluate(
        log,
        {
            "text": "(fn [similarity] (* 2 similarity))",
            "defpolicy": "; a comment\n(defpolicy nearest [similarity] similarity)",
            "pack": SIMILAR,
            "object": load_pack(SIMILAR),
            "expression": pl.col("similarity") * 3,
            "column": "similarity",
        },
    )
    heads = {
        name: ev.target(name).row.tolist()
        for name in ("text", "defpolicy", "pack", "object", "expression", "column")
    }
    assert len({tuple(head) for head in heads.values()}) == 1
    assert set(kinds(ev).values()) == {"re-scored"}


def test_a_policy_may_read_any_column_of_the_log():
    ev = evaluate(slates(), ["(fn [good similarity] (+ good similarity))"])
    assert ev.refusals == ()


@pytest.mark.long
def test_names_come_from_what_is_given(tmp_path):
    path = tmp_path / "mine.hy"
    path.write_text(SIMILAR)
    ev = evaluate(slates(), [path])
    assert set(kinds(ev)) == {"logged", "similar"} == set(kinds(evaluate(slates(), str(path))))
    ev = evaluate(
        slates(),
        [pl.col("good"), pl.col("good").alias("twice"), (pl.col("good") * 2), "(fn [good] good)"],
    )
    names = set(kinds(ev)) - {"logged"}
    assert {"good", "twice"} < names
    assert any(name.startswith("recall-score [") for name in names)


@pytest.mark.long
def test_a_single_policy_need_not_be_in_a_list():
    assert set(kinds(evaluate(slates(), "good"))) == {"logged", "good"}
    assert set(kinds(evaluate(slates(), pl.col("good")))) == {"logged", "good"}


def test_packs_of_equal_name_are_distinguished_by_hash():
    other = SIMILAR.replace(" similarity)", " (* 2 similarity))")
    names = set(kinds(evaluate(slates(), [SIMILAR, other])))
    assert len(names) == 3
    assert {name.split(" [")[0] for name in names} == {"logged", "similar"}
    with pytest.raises(InputError, match="The policy similar was passed twice"):
        evaluate(slates(), [SIMILAR, SIMILAR])


@pytest.mark.parametrize(
    ("policies", "error", "reason"),
    [
        ([], InputError, "There are no policies to evaluate"),
        (["companoin"], UnknownName, "Did you mean companion"),
        (["gooood"], UnknownName, "Did you mean good"),
        ([pl.col("gooood")], UnknownName, "There is no column of the candidates"),
        (["(fn [similarity] (nonsense))"], PolicyError, "nonsense"),
        (["(pack broken"], PolicyError, "line 1"),
        ([3], InputError, "A policy must be a text, a Hy form"),
        ([pl.lit(1.0).alias("one")], InputError, "gives 1 values for 96 candidates"),
    ],
)
def test_an_invalid_policy_is_refused(policies, error, reason):
    with pytest.raises(error, match=reason):
        evaluate(slates(), policies)


def test_a_column_with_the_name_of_a_pack_is_ambiguous():
    log = slates(companion=np.arange(96.0))
    with pytest.raises(InputError, match="is the name of both a pack and a column"):
        evaluate(log, ["companion"])
    assert set(kinds(evaluate(log, [pl.col("companion")]))) == {"logged", "companion"}


def test_a_feature_that_the_log_lacks_is_refused_by_name():
    ev = evaluate(slates(), ["cascade", "(fn [coverage] coverage)", "good"])
    assert "it reads recency-weight, which is not in the log" in refusal(ev, "cascade").lower()
    assert any("It reads coverage" in refusal.reason for refusal in ev.refusals)
    assert set(kinds(ev)) == {"logged", "good"}
    assert ev.frame.filter(pl.col("verdict") == "refused").height == 2


@pytest.mark.long
def test_a_log_without_fingerprints_is_taken_at_its_word_and_says_so():
    ev = evaluate(slates(), [VIVID])
    assert any("no fingerprints" in note for note in ev.notes)
    assert not any("no fingerprints" in note for note in evaluate(slates(), ["good"]).notes)


def test_equal_fingerprints_allow_scoring_again_though_other_settings_differ():
    logged = logged_by(load_pack("memlab"))
    ev = evaluate(slates(fingerprints=[logged]), [VIVID, SIMILAR])
    assert kinds(ev) == {"logged": "re-scored", "vivid": "re-scored", "similar": "re-scored"}
    assert not any("fingerprints" in note for note in ev.notes)


def test_a_feature_under_other_settings_is_refused_with_both_fingerprints():
    logged = logged_by(load_pack("memlab"))
    other = '(pack spread "Wider.") (setting damping 0.9) (defpolicy recall-score [activation] activation)'
    ev = evaluate(slates(fingerprints=[logged]), [other, "good"])
    result = refusal(ev, "spread")
    wanted = logged_by(load_pack(other))["activation"]
    assert "It reads activation, which depends on embedder" in result
    assert logged["activation"] in result
    assert wanted in result
    assert "Evaluate on the slates of a lab" in result


def test_another_embedder_is_refused():
    class Lab:
        io = type(
            "I", (), {"embedder": type("E", (), {"fingerprint": "another", "scoring": "another"})}
        )

    log = slates(fingerprints=[logged_by(load_pack("memlab"))], lab=Lab())
    ev = evaluate(log, [SIMILAR, "good"])
    assert "similarity, which depends on embedder" in refusal(ev, "similar")


@pytest.mark.long
def test_a_log_of_two_meanings_or_of_an_older_schema_is_refused():
    first = logged_by(load_pack("memlab"))
    second = logged_by(load_pack("memlab"), embedder="another")
    text = "(fn [similarity] similarity)"
    ev = evaluate(slates(fingerprints=[first, second]), [text, "good"])
    assert (
        "similarity, which has different fingerprints in different recalls" in ev.refusals[0].reason
    )
    older = {name: value for name, value in first.items() if name != "similarity"}
    ev = evaluate(slates(fingerprints=[first, older]), [text, "good"])
    assert "older schema, without a fingerprint of similarity" in ev.refusals[0].reason


class TestWhatADefaultLogLeavesOut:
    """``phrase`` is computed on demand, so recalls under a pack that does not read it do not keep it."""

    PHRASES = """(pack phrases "Pairs of words first.")
(defpolicy recall-score [lexical phrase] (+ (* 100 phrase) lexical))"""

    @pytest.fixture
    def log(self, lab):
        for text in (
            "the board",
            "board game in the meeting room",
            "a meeting",
            "the board meeting",
            "meeting a board",
        ):
            lab.remember(text)
        for hits in (
            lab.recall("when is the board meeting?", limit=1),
            lab.recall("board meeting", limit=1),
        ):
            lab.feedback(hits[0], "success")
        return lab.slates()

    def test_the_log_has_neither_the_feature_nor_its_fingerprint(self, log):
        assert "phrase" not in log.candidates.collect_schema()
        decision = log.decisions.select("decision").collect()["decision"][0]
        assert "phrase" not in log.fingerprints(decision)
        assert "similarity" in log.fingerprints(decision)

    @pytest.mark.long
    def test_a_pack_that_reads_it_is_recalled_again_and_has_it(self, log, lab):
        ev = evaluate(log, [self.PHRASES], missing="zero")
        assert kinds(ev)["phrases"] == "re-recalled"
        target = next(target for target in ev._targets if target.name == "phrases")
        assert target.memory.to_list() == [4, 4]
        assert target.pool.filter(pl.col("phrase") == 1.0)["memory_id"].to_list() == [4, 4]

    @pytest.mark.long
    def test_a_policy_alone_is_refused_by_name(self, log):
        ev = evaluate(log, ["(fn [phrase] phrase)"], missing="zero")
        assert "it reads phrase, which is not in the log" in ev.refusals[0].reason.lower()

    @pytest.mark.long
    def test_where_a_later_pack_kept_it_the_earlier_recalls_do_not_pass_for_it(self, log, lab):
        lab.policies.use(self.PHRASES)
        lab.feedback(lab.recall("who called a board meeting?", limit=1)[0], "success")
        ev = evaluate(lab.slates(), [self.PHRASES, "(fn [phrase] phrase)"], missing="zero")
        assert kinds(ev)["phrases"] == "re-recalled"
        assert "under a pack that does not read it" in ev.refusals[0].reason


@pytest.mark.parametrize("text", ["{not json", "[1]"])
def test_fingerprints_that_cannot_be_read_are_refused(text):
    log = slates()
    broken = Slates(
        log.decisions.with_columns(fingerprints=pl.lit(text)),
        log.candidates,
        log.exposures,
        log.feedback,
    )
    with pytest.raises(InputError, match=r"is not valid JSON|is a JSON"):
        evaluate(broken, ["good"])


class Again:
    """A lab that recalls again: its pools hold every second candidate of the log, and one that the log never saw."""

    def __init__(self, frame=None, gone=()):
        self.asked, self.gone = [], gone
        self.io = type(
            "I",
            (),
            {"embedder": type("E", (), {"fingerprint": "the embedder", "scoring": "the embedder"})},
        )
        self.policies = self

    def recall_again(self, decision, pack):
        self.asked.append((decision["decision"], pack.name))
        if decision["decision"] in self.gone:
            return None
        return pl.DataFrame(
            {
                "memory_id": [2, 4, 99],
                "activation": [0.5, 0.7, 0.9],
                "score": [0.5, float("nan"), 0.9],
            }
        )

    def __getitem__(self, memory):
        return type("M", (), {"text": f"text of {memory}"})


OTHER = (
    '(pack spread "Wider.") (setting damping 0.9) (defpolicy recall-score [activation] activation)'
)


@pytest.mark.long
def test_where_settings_differ_a_lab_recalls_again_in_time_order():
    lab = Again()
    frames = WORLD.frames()
    logged = json.dumps(logged_by(load_pack("memlab")))
    decisions = frames["decisions"].with_columns(
        pl.col("at").reverse(), fingerprints=pl.lit(logged)
    )
    log = WORLD.slates(decisions=decisions)
    log = Slates(log.decisions, log.candidates, log.exposures, log.feedback, lab=lab)
    ev = evaluate(log, [OTHER, "good"])
    assert kinds(ev) == {"logged": "re-scored", "good": "re-scored", "spread": "re-recalled"}
    assert lab.asked == [(number, "spread") for number in range(12, 0, -1)]
    target = ev.target("spread")
    # memory 99 is not in the log: it could not have been shown; memory 4 has no score
    assert target.memory.to_list() == [99, 2] * 12
    assert target.row.tolist()[::2] == [-1] * 12
    assert (
        target.unscored,
        next(row for row in ev.rows if row.policy == "spread").measured.unsupported >= 0.5,
    ) == (
        12,
        True,
    )
    assert ev.model_values["spread"] != ev.model_values["spread"]
    differ = ev.disagreements("spread", "logged", 1)
    assert differ[0].items[0].text.startswith("text of")
    assert any(item.terms[0] for item in differ[0].items)


def test_a_state_that_cannot_be_had_again_refuses_the_policy():
    log = slates(fingerprints=[logged_by(load_pack("memlab"))], lab=Again(gone=(7,)))
    assert "recall 7 cannot be repeated" in refusal(evaluate(log, [OTHER, "good"]), "spread")


@pytest.mark.long
def test_scores_that_are_no_numbers_are_reported_and_never_shown():
    scores = WORLD.good.ravel().copy()
    scores[:3] = np.nan
    ev = evaluate(slates(mine=scores), ["mine"])
    assert not set(ev.target("mine").row.tolist()) & {0, 1, 2}
    assert "mine gives 3 candidates no finite score and would not show them." in ev.notes
    ev = evaluate(slates(mine=np.full(96, np.nan)), ["mine", "good"])
    assert refusal(ev, "mine").startswith("None of its 96 scores is a finite number")


def test_words_are_no_scores():
    with pytest.raises(InputError, match="Column kind of the candidates has the type String"):
        evaluate(slates(kind=["fact"] * 96), ["kind"])
    with pytest.raises(InputError, match="gives values of type String"):
        evaluate(slates(kind=["fact"] * 96), [pl.col("kind").str.to_uppercase()])


@pytest.mark.long
def test_the_pack_that_logged_is_what_others_are_compared_with(lab, clock):
    lab.remember([f"note {number} about the harbour" for number in range(8)])
    for _ in range(3):
        clock.advance(hours=1)
        hits = lab.recall("harbour notes", limit=2, explore=True)
        lab.feedback(hits[0], "success")
    ev = evaluate(lab.slates(), ["memlab"], missing="zero")
    assert "memlab" in kinds(ev)
    assert ev.baseline == "memlab"
