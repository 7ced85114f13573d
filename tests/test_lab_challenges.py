"""Challenges of a lab: logged events, what a recall shows while packs are compared, and a verdict on real slates."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import InputError, UnknownName
from memlab.kernel.extension import forget_extension
from memlab.kernel.slates import decode
from memlab.kernel.slates._slate import same_slates

WORDS = '(pack words "Words alone.") (defpolicy recall-score [lexical] lexical)'
CLOSED = '(pack closed "Lets nothing pass that was of use.") (defpolicy eligible [success] (= success 0))'


@pytest.fixture
def challenged_lab(lab, clock):
    """Return a lab of forty notes with twenty recalls, during which a words-only policy was a challenger."""
    topics = ["harbour", "boat", "tide", "rope", "sail"]
    # No two notes are near-duplicates, whose rewards would be bounded.
    other = ["barley", "copper", "violin", "glacier", "pepper", "lantern", "orchid", "marble"]
    lab.remember(
        [
            f"note {n} on the {topics[n % 5]} and the {topics[n * 3 % 5]}, by the {other[n // 5]} and "
            f"{other[(n // 5 + 3) % 8]} merchant of {other[n % 8]} street"
            for n in range(40)
        ]
    )
    lab.challenge(WORDS, reason="are words enough?")
    for number in range(20):
        clock.advance(hours=1)
        for hit in lab.recall(f"what of the {topics[number % 5]} and note {number}", limit=4):
            lab.feedback(hit, "success" if topics[number % 5] in hit.text else "fail")
    return lab


def test_a_challenge_is_an_event_that_survives_reopening_and_ends(disk):
    with disk() as lab:
        challenge = lab.challenge("companion", extra=2, rate=0.5, reason="is fresh better?")
        assert (
            challenge.name,
            challenge.design,
            challenge.extra,
            challenge.rate,
            challenge.reason,
        ) == (
            *("companion", "extra", 2, 0.5),
            "is fresh better?",
        )
        assert "2 extra items in 50%" in repr(challenge)
    with disk() as lab:
        (again,) = lab.policies.challenges
        assert (again.pack.hash, again.extra, again.at) == (challenge.pack.hash, 2, challenge.at)
        lab.policies.end_challenge("companion", reason="seen enough")
        assert lab.policies.challenges == ()
        assert [row["kind"] for row in lab.log.tail(2).iter_rows(named=True)] == [
            "challenge",
            "end-challenge",
        ]
    with disk() as lab:
        assert lab.policies.challenges == ()


@pytest.mark.parametrize(
    ("ask", "error", "reason"),
    [
        (lambda lab: lab.challenge("companion"), InputError, "is a challenger already"),
        (
            lambda lab: lab.challenge("cascade", design="lot"),
            InputError,
            "use the same design",
        ),
        (lambda lab: lab.challenge(lab.policies.pack), InputError, "is the active pack"),
        (lambda lab: lab.challenge("compagnon"), UnknownName, "companion"),
        (lambda lab: lab.policies.end_challenge("cascade"), UnknownName, "There is no challenger "),
        (lambda lab: lab.challenge("cascade", extra=0), InputError, "extra is a whole number"),
        (lambda lab: lab.challenge("cascade", rate=0), InputError, "rate is a number"),
        (lambda lab: lab.challenge("cascade", design="duel"), UnknownName, "lot"),
    ],
)
def test_an_invalid_challenge_is_refused_and_changes_nothing(lab, ask, error, reason):
    lab.challenge("companion")
    head = lab.io.store.state.seq
    with pytest.raises(error, match=reason):
        ask(lab)
    assert lab.io.store.state.seq == head
    assert [challenge.name for challenge in lab.policies.challenges] == ["companion"]


@pytest.mark.long
def test_the_agent_keeps_its_head_and_sees_one_more(challenged_lab):
    hits = challenged_lab.recall("boat and rope", limit=4)
    challenge = hits.slate.challenge
    own = set(challenge["heads"]["words"]["ids"]) - set(challenge["live"])
    items = list(hits.slate.shown)
    assert [item for item in items if item not in hits.slate.probes] == challenge["live"]
    assert set(hits.slate.probes) <= own
    assert len(items) == 4 + bool(own)
    frame = hits.slate.frame
    assert frame.filter(pl.col("memory_id").is_in(list(own)))[
        "propensity"
    ].to_list() == pytest.approx([1 / len(own)] * len(own))
    assert frame["propensity"].sum() == pytest.approx(len(items))


@pytest.mark.long
def test_an_unlogged_recall_is_neither_challenged_nor_evidence(challenged_lab):
    hits = challenged_lab.recall("boat and rope", limit=4, log=False)
    assert hits.slate.challenge is None
    assert len(hits) == 4


@pytest.mark.long
def test_slates_carry_the_heads_and_give_a_verdict(challenged_lab):
    logged = challenged_lab.slates().decisions.collect()["challenge"]
    assert logged.null_count() == 0
    verdict = challenged_lab.verdict("words")
    words = verdict["words"]
    assert words.recalls == 20
    assert words.track.height == 20
    assert words.difference.low <= words.difference.value <= words.difference.high
    assert words.better is None
    assert words.title == "After 20 recalls, words and memlab are indistinguishable."
    assert verdict.frame["challenger"].to_list() == ["words"]
    assert "memlab.trial" in repr(verdict)
    assert memlab.verdict(challenged_lab).frame.equals(challenged_lab.verdict().frame)


@pytest.mark.long
def test_a_report_is_one_page_that_asks_for_nothing(challenged_lab, tmp_path):
    verdict = challenged_lab.verdict("words")
    page = verdict.report(tmp_path / "reports" / "verdict.html").read_text(encoding="utf-8")
    text = page.replace("&#43;", "+").replace("&#39;", "'")
    assert verdict["words"].title in text
    assert verdict["words"].details in text
    assert "<svg" in page
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?!#|data:)[^"'>\s]+""", page)
    with pytest.raises(InputError, match="The page cannot be written to"):
        verdict.report(tmp_path / "reports" / "verdict.html" / "below.html")


@pytest.mark.long
def test_an_observation_is_the_weighted_difference(challenged_lab):
    """The reference is a plain loop over the shown items of each recall."""
    slates = challenged_lab.slates()
    track = challenged_lab.verdict("words")["words"].track
    rewards = {
        (d, m): r
        for d, m, r in slates.feedback.select("decision", "memory_id", "reward")
        .collect()
        .iter_rows()
    }
    total, means = 0.0, []
    for number, (_, blob) in enumerate(challenged_lab.io.store.journal.slates(), 1):
        slate = memlab.kernel.slates.decode(blob, decision=_)
        live, other = set(slate.challenge["live"]), set(slate.challenge["heads"]["words"]["ids"])
        chance = dict(zip(slate.ids.tolist(), slate.propensity.tolist(), strict=True))
        for memory in slate.shown:
            sign = (memory in other) - (memory in live)
            total += sign * rewards[slate.decision, memory] / chance[memory]
        means.append(total / number)
    assert track["difference"].to_list() == pytest.approx(means)


@pytest.mark.long
def test_nothing_is_shown_that_the_live_pack_forbids(lab):
    lab.policies.use(CLOSED)
    lab.remember([f"note {n} on the harbour" for n in range(12)])
    used = lab.recall("harbour note 3", limit=2, log=False).ids
    for memory in used:
        lab.feedback(memory, "success")
    lab.challenge("(pack open :inherits memlab) (defpolicy eligible [success] (>= success 0))")
    for _ in range(10):
        slate = lab.recall("harbour note 3", limit=3).slate
        assert not set(used) & set(slate.shown)
        assert not set(used) & set(slate.ids.tolist())
        assert set(used) & set(slate.challenge["heads"]["open"]["ids"])


def test_a_challenger_that_fails_is_left_out_of_the_recall_with_a_warning(lab):
    lab.remember([f"note {n} on the harbour" for n in range(12)])
    lists = '(pack lists "Asks for more than it may.") (defpolicy recall-score [similarity] (/ similarity 0))'
    lab.challenge(lists)
    slate = lab.recall("harbour note 3", limit=3).slate
    assert set(slate.challenge["live"]) <= set(slate.shown)


@pytest.mark.long
def test_several_challengers_share_the_error(challenged_lab):
    challenged_lab.challenge("companion")
    for number in range(5):
        for hit in challenged_lab.recall(f"tide and sail {number}", limit=4):
            challenged_lab.feedback(hit, "success")
    verdict = challenged_lab.verdict()
    assert [item.challenger for item in verdict] == ["words", "companion"]
    assert verdict["companion"].recalls == 5
    assert [item.number for item in verdict] == [1, 2]
    assert verdict["words"].level < verdict["companion"].level
    alone = challenged_lab.verdict("words")["words"].difference
    assert (alone.low, alone.high) == (
        verdict["words"].difference.low,
        verdict["words"].difference.high,
    )
    with pytest.raises(UnknownName, match="There is no challenger "):
        challenged_lab.verdict("companyon")


@pytest.mark.long
def test_recalls_under_another_version_of_the_live_pack_are_left_out(challenged_lab):
    challenged_lab.policies.use("cascade")
    for number in range(3):
        for hit in challenged_lab.recall(f"tide and sail {number}", limit=4):
            challenged_lab.feedback(hit, "success")
    verdict = challenged_lab.verdict("words")
    assert verdict["words"].recalls == 3
    assert any("20 recalls left out: other versions" in note for note in verdict.notes)


@pytest.mark.long
def test_a_log_without_a_challenge_says_how_to_have_one(lab):
    lab.remember("a note")
    lab.recall("note")
    with pytest.raises(InputError, match=r"lab\.challenge"):
        lab.verdict()


@pytest.mark.long
def test_silence_is_asked_about_and_may_mean_anything(challenged_lab):
    for number in range(10):
        challenged_lab.recall(f"tide and sail {number}", limit=4)
    with pytest.raises(InputError, match="set what missing feedback counts as"):
        challenged_lab.verdict("words")
    zero, bounds = (
        challenged_lab.verdict("words", missing=how)["words"].difference
        for how in ("zero", "bounds")
    )
    assert bounds.low <= zero.low
    assert bounds.high >= zero.high
    with pytest.raises(InputError, match="each interim analysis may use earlier"):
        challenged_lab.verdict("words", missing="inverse")


@pytest.mark.long
def test_a_slate_with_a_challenge_is_the_same_after_its_bytes(challenged_lab):
    (_, blob), *_ = challenged_lab.io.store.journal.slates()
    slate = memlab.kernel.slates.decode(blob)
    assert (
        memlab.kernel.slates.decode(memlab.kernel.slates.encode(slate)).challenge == slate.challenge
    )
    assert np.isfinite(slate.propensity).all()


TOPICS = ("harbour", "boat", "tide", "rope", "sail", "mast", "keel", "crew")


@pytest.fixture(scope="module")
def twice_told(trigrams):
    """Return logs of three hundred queries whose answer is stored five times; only the first result is useful."""

    def challenged_lab(design, live, challenger):
        clock = memlab.ManualClock("2026-03-01T12:00:00")
        with memlab.open(embedder=trigrams, clock=clock, pack=live) as lab:
            texts = [f"the {topic} is kept by keeper {n}" for n, topic in enumerate(TOPICS)]
            lab.remember(
                [
                    {"text": f"{text}, copy {copy}", "kind": "turn"}
                    for text in texts
                    for copy in range(5)
                ]
            )
            lab.challenge(challenger, design=design)
            truth = []
            for number in range(300):
                clock.advance(hours=1)
                question = f"who keeps the {TOPICS[number % 8]}?"
                wanted = f"keeper {number % 8},"
                served = {
                    pack: any(
                        wanted in hit.text
                        for hit in lab.recall(question, limit=4, pack=pack, log=False)
                    )
                    for pack in (live, challenger)
                }
                truth.append(served[challenger] - served[live])
                of_use = True
                for hit in lab.recall(question, limit=4):
                    lab.feedback(hit, reward=float(of_use and wanted in hit.text))
                    of_use = of_use and wanted not in hit.text
            return lab.verdict(), float(np.mean(truth)), lab.slates()

    return challenged_lab


@pytest.mark.long
def test_where_one_item_makes_another_worthless_whole_heads_are_compared(twice_told):
    blind = '(pack blind "Looks at what was least asked for.") (defpolicy recall-score [access] (- 0 access))'
    by_items, _, _ = twice_told("lot", blind, WORDS)
    assert "redundancy" in {gate.name for gate in by_items["words"].closed}
    found, truth, slates = twice_told("ab", blind, WORDS)
    verdict = found["words"]
    assert verdict.closed == ()
    assert verdict.difference.low <= truth <= verdict.difference.high
    assert verdict.planned.low <= truth <= verdict.planned.high
    assert verdict.better == "words"
    assert slates.decisions.collect()["sampler"].unique().to_list() == ["ab"]


@pytest.mark.long
def test_a_pack_that_shows_the_same_is_never_better(twice_told):
    same = '(pack same "The words again." :inherits words) (defpolicy recall-score [lexical] (* 2 lexical))'
    found, _, _ = twice_told("ab", WORDS, same.replace(" :inherits words", ""))
    assert found["same"].difference.value == 0
    assert found["same"].better is None


class TestFeaturesOfChallengers:
    """A slate holds what its challengers read, so that a log without its lab can be scored again under them."""

    PHRASES = '(pack phrases "Pairs of words.") (defpolicy recall-score [lexical phrase] (+ phrase lexical))'

    @pytest.fixture
    def words(self, lab):
        lab.policies.use(WORDS)
        lab.remember([f"note {n} on the {'harbour tide' if n % 3 else 'boat'}" for n in range(12)])
        return lab

    def logged(self, lab, hits):
        return decode(dict(lab.io.store.journal.slates())[hits.decision], decision=hits.decision)

    @pytest.mark.long
    def test_a_feature_that_only_a_challenger_reads_is_logged_while_it_is_one(self, words):
        before = words.recall("the harbour tide")
        words.challenge(self.PHRASES)
        while_challenged = words.recall("the harbour tide")
        words.policies.end_challenge("phrases")
        after = words.recall("the harbour tide")
        present = ["phrase" in hits.slate.numbers for hits in (before, while_challenged, after)]
        assert present == [False, True, False]
        slates = words.slates()
        assert [
            "phrase" in slates.fingerprints(hits.decision)
            for hits in (before, while_challenged, after)
        ] == present
        logged = self.logged(words, while_challenged)
        alone = words.recall("the harbour tide", pack=memlab.load_pack(self.PHRASES)).slate
        expected = dict(zip(alone.ids.tolist(), alone.numbers["phrase"].tolist(), strict=True))
        assert {1.0, 0.0} <= set(expected.values())
        for id, value in zip(logged.ids.tolist(), logged.numbers["phrase"].tolist(), strict=True):
            assert value == expected[id]

    @pytest.mark.long
    def test_the_challenger_is_scored_again_on_the_log_alone(self, words):
        words.challenge(self.PHRASES)
        for number in range(4):
            words.feedback(words.recall(f"note {number} on the harbour tide")[0], "success")
        evaluation = memlab.evaluate(words.slates(), "(fn [phrase] phrase)", missing="zero")
        assert not evaluation.refusals

    def test_a_feature_that_means_something_else_under_the_challenger_is_not_logged(self, words):
        text = (
            '(pack ofpool "Another pool.") (setting pool 7)'
            "(defpolicy recall-score [takes-over late] (+ takes-over late))"
        )
        words.challenge(text)
        numbers = words.recall("the harbour tide").slate.numbers
        assert "late" in numbers
        assert "takes-over" not in numbers

    def test_a_slate_with_features_of_challengers_is_the_same_after_its_bytes(self, words):
        words.challenge(self.PHRASES)
        hits = words.recall("the harbour tide")
        expected = replace(hits.slate, decision=hits.decision)
        assert same_slates(expected, self.logged(words, hits))

    @pytest.mark.long
    def test_a_feature_that_fails_only_in_the_log_costs_no_recall(self, words):
        calls = []

        def compute(pool):
            calls.append(len(pool))
            if len(calls) % 2 == 0:
                raise ValueError("every second call")
            return [1.0] * len(pool)

        feature = memlab.Feature("failing", "num", "memory", "one", compute=compute)
        memlab.extend(memlab.Extension("failing", "1", features=[feature]))
        try:
            words.challenge(
                '(pack failing "Other candidates.") (defpolicy seed-score [lexical] lexical)'
                "(defpolicy recall-score [failing] failing)"
            )
            with pytest.warns(UserWarning, match="only challengers read are missing"):
                hits = words.recall("the harbour tide")
            assert calls
            assert "failing" not in hits.slate.numbers
            assert hits.slate.challenge["heads"]
        finally:
            words.policies.end_challenge("failing")
            forget_extension("failing")
