"""Reinforcement: every pack's numbers through a real lab, against the packages and formulas they come from."""

import math
from datetime import timedelta

import numpy as np
import pytest
from fsrs import Card, Rating, Scheduler
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.kernel.base.clock import DAY, from_micros
from memlab.kernel.language import changed_fields
from memlab.kernel.policies import load_pack
from memlab.kernel.recall import Moment, columns
from memlab.kernel.schema import MEMORY
from memlab.kernel.verbs.reinforcement import days_between_uses, reinforce

OUTCOMES = ("success", "fail", "recalled", "verified", "rejected")
NOTES = ["tabs in the editor", "deploys go out on Tuesdays", "the bakery opens at six"]


FIELDS = {
    "memlab": {},
    "actr": {},
    "associative": {},
    "factgraph": {},
    "cascade": {
        "success": ("confidence", "strength"),
        "fail": ("confidence",),
        "verified": ("confidence",),
        "rejected": ("confidence",),
    },
    "companion": {"recalled": ("strength",)},
    "workbench": dict.fromkeys(("success", "fail", "recalled", "rejected"), ("confidence",)),
    "fsrs": dict.fromkeys(("success", "fail", "verified"), ("difficulty", "stability")),
}


@pytest.fixture
def opened(trigrams, clock):
    """Return a function that opens a lab with the notes under a pack, or under a policy for ``reinforce``."""

    def begin(pack, **columns):
        if pack.startswith("(defpolicy"):
            pack = f'(pack mine "For a test.") {pack}'
        lab = memlab.open(embedder=trigrams, clock=clock, pack=pack)
        lab.remember([{"text": text, **columns} for text in NOTES], linking="off")
        return lab

    return begin


def column(lab, name):
    return lab.memories[name].to_list()


def last_body(lab):
    return list(lab.io.store.journal.events())[-1].body


class TestWhatIsAsked:
    """Which fields an outcome can change is read off the policy's text; where there is none, it is not run."""

    @pytest.mark.parametrize("pack", FIELDS)
    def test_the_fields_of_every_pack(self, pack):
        policy = load_pack(pack).policies["reinforce"]
        result = {
            outcome: changed_fields(policy, {"outcome": outcome, "rating": None})
            for outcome in OUTCOMES
        }
        assert {outcome: fields for outcome, fields in result.items() if fields} == FIELDS[pack]

    def test_without_a_rating_being_known_any_field_may_change(self):
        assert changed_fields(load_pack("fsrs").policies["reinforce"], {"outcome": "recalled"})

    @pytest.mark.parametrize("pack", ["memlab", "cascade", "fsrs", "actr"])
    def test_a_recall_that_changes_nothing_says_nothing(self, opened, pack):
        with opened(pack) as lab:
            lab.recall("tabs", limit=3)
            assert last_body(lab).keys() == {"ids", "probes", "pack"}

    def test_only_what_moves_is_written(self, opened):
        with opened("companion") as lab:
            lab.recall("tabs in the editor", limit=3)
            assert "set" not in last_body(lab), "at full strength there is nothing to add"

    def test_all_that_was_shown_in_one_call(self, opened, clock):
        with opened("companion") as lab:
            clock.advance(days=8)
            hits = lab.recall("the bakery", limit=3)
            (part,) = last_body(lab)["set"]
            assert sorted(part["ids"]) == sorted(hits.ids)


@pytest.mark.long
class TestCascade:
    def test_helpful_and_not(self, opened):
        with opened("cascade", strength=3.0, confidence=0.5) as lab:
            hits = lab.recall("the bakery opens", limit=1)
            lab.feedback(hits[0], "success")
            at = hits[0].id - 1
            assert (column(lab, "strength")[at], column(lab, "confidence")[at]) == (4.0, 0.55)
            lab.feedback(hits[0], "fail")
            assert (column(lab, "strength")[at], column(lab, "confidence")[at]) == (4.0, 0.55 - 0.1)

    def test_confidence_ends_at_nothing_and_at_one(self, opened):
        with opened("cascade", confidence=0.5) as lab:
            for _ in range(12):
                lab.feedback(1, "success")
                lab.feedback(2, "fail")
            assert column(lab, "confidence") == [1.0, 0.0, 0.5]


@pytest.mark.long
class TestCompanion:
    def test_a_recall_adds_five_to_the_current_strength(self, opened, clock):
        with opened("companion", emotional_weight=40.0) as lab:
            strength, last = dict.fromkeys((1, 2, 3), 100.0), dict.fromkeys((1, 2, 3), clock())
            for days in (3, 0.5, 0, 11, 2):
                clock.advance(days=days)
                hits = lab.recall("the bakery opens at six", limit=2)
                for id in hits.ids:
                    stands = strength[id] - max(2, 5 - 0.03 * 40) * (clock() - last[id]) / DAY
                    strength[id], last[id] = min(100, 5 + max(0, stands)), clock()
                assert column(lab, "strength") == pytest.approx(list(strength.values()), rel=1e-12)

    def test_feedback_leaves_it_alone(self, opened, clock):
        with opened("companion") as lab:
            clock.advance(days=4)
            hits = lab.recall("the bakery", limit=1)
            before = column(lab, "strength")
            lab.feedback(hits[0], "success")
            assert column(lab, "strength") == before


@pytest.mark.long
class TestWorkbench:
    def test_confidence_grows_with_retrieval_and_drops_when_it_is_wrong(self, opened):
        with opened("workbench", confidence=0.5) as lab:
            hits = lab.recall("tabs", limit=3)
            assert column(lab, "confidence") == pytest.approx([0.525] * 3, rel=1e-15)
            lab.feedback(hits[0], "success")
            lab.feedback(hits[1], "fail")
            results = [column(lab, "confidence")[hit.id - 1] for hit in hits]
            assert results == pytest.approx([0.525 + 0.05 * 0.475, 0.2625, 0.525], rel=1e-15)


moments = st.lists(
    st.tuples(
        st.floats(math.log(60), math.log(3 * 365 * 86_400)).map(
            lambda x: timedelta(seconds=round(math.exp(x)))
        ),
        st.lists(st.integers(1, 4), min_size=3, max_size=3),
        st.sampled_from([timedelta(0), timedelta(minutes=7), timedelta(days=3)]),
    ),
    min_size=1,
    max_size=12,
)


class TestFsrs:
    """Sequences of remember, recall and feedback: py-fsrs reviews each card at the recall that was judged."""

    @pytest.mark.long
    @examples(25, quick=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(moments)
    def test_any_history_of_ratings(self, trigrams, history):
        reference = Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
        clock, cards = memlab.ManualClock("2026-01-01"), {id: Card() for id in (1, 2, 3)}
        with memlab.open(embedder=trigrams, clock=clock, pack="fsrs") as lab:
            lab.remember(NOTES, linking="off")
            for gap, ratings, pause in history:
                clock.advance(seconds=gap.total_seconds())
                hits, shown = lab.recall("what opens at six?", limit=3), from_micros(clock())
                assert sorted(hits.ids) == [1, 2, 3]
                # a judgement may come long after the use
                clock.advance(seconds=pause.total_seconds())
                for hit, rating in zip(hits, ratings, strict=True):
                    lab.feedback(hit, rating=rating)
                    cards[hit.id], _ = reference.review_card(cards[hit.id], Rating(rating), shown)
                assert column(lab, "stability") == pytest.approx(
                    [c.stability for c in cards.values()], rel=1e-12
                )
                assert column(lab, "difficulty") == pytest.approx(
                    [c.difficulty for c in cards.values()], rel=1e-12
                )

    @pytest.mark.long
    def test_a_success_is_good_and_a_failure_again(self, opened, clock):
        with opened("fsrs") as lab, opened("fsrs") as rated:
            for outcome, rating in (("success", 3), ("fail", 1), ("success", 3)):
                clock.advance(days=5)
                lab.feedback(lab.recall("the bakery", limit=3)[0], outcome)
                rated.feedback(rated.recall("the bakery", limit=3)[0], rating=rating)
            assert lab.memories.equals(rated.memories)

    def test_a_judgement_of_an_earlier_recall_counts_from_the_use_before_that(self, opened, clock):
        with opened("fsrs", stability=10.0, difficulty=5.0) as lab:
            clock.advance(days=4)
            judged = lab.recall("the bakery", limit=3)
            clock.advance(days=9)
            lab.recall("the bakery", limit=3)
            lab.feedback(judged[0], "success")
            card = Card(stability=10.0, difficulty=5.0, last_review=from_micros(0))
            card, _ = Scheduler(learning_steps=()).review_card(
                card, Rating.Good, from_micros(4 * DAY)
            )
            assert column(lab, "stability")[judged[0].id - 1] == pytest.approx(
                card.stability, rel=1e-12
            )


class TestActr:
    """The base level is that of the uses that the lab has seen: the creation, and recalls but of what was rejected."""

    def test_a_result_that_the_verifier_rejects_is_no_use(self, opened, clock):
        with opened("actr") as lab:
            uses = {id: [clock()] for id in (1, 2, 3)}
            for days in (1, 4, 2):
                clock.advance(days=days)
                hits = lab.recall("the bakery opens", limit=2)
                for id in hits.ids:
                    uses[id].append(clock())
                clock.advance(hours=3)
                lab.agents.verify(hits, hits[0])
                for hit in hits[1:]:
                    uses[hit.id].pop()
            clock.advance(days=6)
            slate = lab.recall("the bakery opens", limit=3, log=False).slate
            base = [
                math.log(sum(((clock() - use) / DAY) ** -0.5 for use in uses[id]))
                for id in slate.ids.tolist()
            ]
            expected = np.array(base) + 4 * slate.numbers["seed"] + 2 * slate.numbers["received"]
            np.testing.assert_allclose(slate.scores, expected, rtol=1e-12)


class TestBounds:
    @pytest.mark.parametrize(
        ("update", "field", "expected"),
        [
            ("(update :confidence (+ confidence 9))", "confidence", 1.0),
            ("(update :confidence (- confidence 9))", "confidence", 0.0),
            ("(update :strength (- strength 1e9))", "strength", 0.0),
            ("(update :strength (* strength 3))", "strength", 300.0),
            ("(update :difficulty 0)", "difficulty", 1.0),
            ("(update :emotional-weight 250)", "emotional_weight", 100.0),
            # what is no number, or none that ends, leaves the value as it was
            ("(update :confidence null)", "confidence", 0.25),
            ("(update :confidence (/ 0 (- confidence confidence)))", "confidence", 0.25),
            ("(update :strength (exp (* 100 strength)))", "strength", 100.0),
            ("(update :stability (exp (* 100 strength)))", "stability", 3.0),
            ("(update :stability null)", "stability", None),
        ],
    )
    def test_a_value_stays_in_the_range_of_its_column(self, opened, update, field, expected):
        source = f"(defpolicy reinforce [confidence strength stability] {update})"
        with opened(source, confidence=0.25, stability=3.0) as lab:
            lab.feedback(1, "success")
            assert column(lab, field)[0] == expected

    def test_every_value_reads_the_state_before(self, opened):
        swap = "(defpolicy reinforce [confidence energy success] (update :confidence energy :energy confidence))"
        with opened(swap, confidence=0.25, energy=0.75) as lab:
            lab.feedback(2, "fail")
            assert (column(lab, "confidence")[1], column(lab, "energy")[1]) == (0.75, 0.25)

    def test_counts_are_those_before_the_outcome(self, opened):
        with opened(
            "(defpolicy reinforce [success access] (update :importance (* 0.1 (+ success access))))"
        ) as lab:
            hits = lab.recall("the bakery", limit=1)
            assert column(lab, "importance")[hits[0].id - 1] == 0.0
            lab.feedback(hits[0], "success")
            assert column(lab, "importance")[hits[0].id - 1] == pytest.approx(0.1)


class TestElapsed:
    """``elapsed-days`` is the time from the use before to the one that is judged."""

    MARK = "(defpolicy reinforce [elapsed-days outcome] (update :stability elapsed-days))"

    @pytest.mark.long
    def test_at_a_recall_it_is_the_time_since_the_last_use(self, opened, clock):
        with opened(self.MARK) as lab:
            for days in (3, 1.5, 0):
                clock.advance(days=days)
                hits = lab.recall("the bakery opens at six", limit=1)
                assert column(lab, "stability")[hits[0].id - 1] == days

    def test_a_memory_that_was_never_recalled_is_judged_by_its_age(self, opened, clock):
        with opened(self.MARK) as lab:
            clock.advance(days=6)
            lab.feedback(2, "success")
            assert column(lab, "stability") == [None, 6.0, None]

    def test_a_memory_that_is_named_is_judged_by_its_latest_use(self, opened, clock):
        with opened(self.MARK) as lab:
            clock.advance(days=2)
            hits = lab.recall("the bakery opens at six", limit=1)
            clock.advance(days=30)
            lab.feedback(hits[0].id, "success")
            assert column(lab, "stability")[hits[0].id - 1] == 2.0

    def test_a_recall_that_was_not_logged_is_no_use(self, opened, clock):
        with opened(self.MARK) as lab:
            clock.advance(days=2)
            lab.recall("the bakery opens at six", limit=3)
            clock.advance(days=5)
            hits = lab.recall("the bakery opens at six", limit=1, log=False)
            lab.feedback(hits[0], "success")
            assert column(lab, "stability")[hits[0].id - 1] == 5.0

    @pytest.mark.long
    def test_uses_at_one_instant_and_a_clock_that_goes_back(self, opened, clock):
        with opened(self.MARK) as lab:
            clock.advance(days=2)
            _, second = (lab.recall("the bakery opens at six", limit=3) for _ in range(2))
            lab.feedback(second[0], "success")
            assert column(lab, "stability")[second[0].id - 1] == 0.0
            clock.advance(days=-40)
            back = lab.recall("the bakery opens at six", limit=3)
            lab.feedback(back[0], "success")
            assert min(column(lab, "stability")) == 0.0

    @pytest.mark.long
    def test_beyond_the_latest_eight_uses_only_the_creation_is_known(self, opened, clock):
        with opened(self.MARK) as lab:
            hits = []
            for _ in range(12):
                clock.advance(days=1)
                hits.append(lab.recall("the bakery opens at six", limit=3))
            result = {}
            for position in (11, 5, 4, 2):
                lab.feedback(hits[position][0], "success")
                result[position] = column(lab, "stability")[hits[position][0].id - 1]
            assert result == {11: 1.0, 5: 1.0, 4: 5.0, 2: 3.0}

    @pytest.mark.long
    @given(st.data())
    @examples(40, quick=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_against_a_list_of_all_uses(self, trigrams, data):
        clock = memlab.ManualClock("1905-05-05")
        with memlab.open(embedder=trigrams, clock=clock) as lab:
            lab.remember(NOTES, linking="off")
            uses = [clock()]
            for hours in data.draw(st.lists(st.integers(0, 99), max_size=7)):
                clock.advance(hours=hours)
                lab.recall("tabs in the editor", limit=3)
                uses.append(clock())
            with lab.io.store.reading() as state:
                for index, used in enumerate(uses[1:], 1):
                    # of several at one instant, the latest
                    first = len(uses) - 1 - uses[::-1].index(used)
                    (days,) = days_between_uses(state, np.array([0]), clock(), used=used)
                    assert days == pytest.approx((used - uses[first - 1]) / DAY), index


class TestAgainstOneRowAtATime:
    @pytest.mark.parametrize("pack", ["cascade", "companion", "workbench", "fsrs"])
    @pytest.mark.parametrize("outcome", OUTCOMES)
    @pytest.mark.parametrize("rating", [None, 1, 4])
    def test_a_batch_is_its_rows(self, opened, clock, pack, outcome, rating):
        chance = np.random.default_rng(7)
        with opened(pack) as lab:
            lab.remember(
                [
                    {
                        "text": f"note {i} of the bakery",
                        "confidence": float(chance.random()),
                        "strength": float(chance.uniform(0, 100)),
                        "emotional_weight": float(chance.uniform(0, 100)),
                        "stability": None if i % 3 == 0 else float(chance.uniform(0.1, 90)),
                        "difficulty": None if i % 3 == 0 else float(chance.uniform(1, 10)),
                    }
                    for i in range(40)
                ],
                linking="off",
            )
            clock.advance(days=9)
            lab.recall("note of the bakery")
            clock.advance(days=3.5)
            with lab.io.store.reading() as state:
                rows, policy = np.arange(len(state)), lab.policies.pack.policies["reinforce"]
                change = reinforce(
                    state, lab.policies.pack, rows, clock(), outcome=outcome, rating=rating
                )
                told = {} if not change.set else change.set[0]
                moment = Moment(state, lab.policies.pack, rows, clock())
                extra = {
                    "outcome": lambda: np.full(len(rows), outcome, object),
                    "rating": lambda: np.zeros(len(rows)),
                }
                read = columns(moment, policy, inputs=extra)
                expected = {}
                for row in rows.tolist():
                    values = {name: _value(values, row) for name, values in read.items()}
                    values["rating"] = rating
                    after = policy.row({name: values[name] for name in policy.inputs})
                    for field, value in after.items():
                        declared = MEMORY[field.replace("-", "_")]
                        old = state.column(declared.name)[row]
                        value = (
                            value if value is None else min(max(value, declared.low), declared.high)
                        )
                        if value != old:
                            expected[row + 1, declared.name] = value
            got = {
                (id, name): values[at]
                for name, values in told.get("columns", {}).items()
                for at, id in enumerate(told["ids"])
            }
            assert expected.keys() <= got.keys()
            assert {key: got[key] for key in expected} == pytest.approx(expected, rel=1e-12)


def _value(values, row):
    if isinstance(values, tuple):
        return None if values[1][row] else values[0][row].item()
    result = values[row]
    return result.item() if isinstance(result, np.generic) else result


class TestBadInput:
    @pytest.mark.parametrize("rating", [0, 5, 2.5, True, "good"])
    def test_a_rating_is_one_of_four(self, opened, rating):
        with opened("fsrs") as lab:
            head = lab.io.store.journal.head
            with pytest.raises(memlab.InputError, match="rating is a whole number from 1 to 4"):
                lab.feedback(1, rating=rating)
            assert lab.io.store.journal.head == head

    def test_feedback_says_something(self, opened):
        with (
            opened("fsrs") as lab,
            pytest.raises(memlab.InputError, match=r"an outcome.*a rating or a reward"),
        ):
            lab.feedback(1)
