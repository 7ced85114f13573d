"""Which recalls explore, what they may leave to chance, and whether the logged probabilities are exact."""

import itertools
import math
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import ExplorationWarning, InputError
from memlab.kernel.policies import Challenge, load_pack
from memlab.kernel.recall import Question, Recaller, draw_challenge, generator
from memlab.kernel.recall._ranking import choose

ALWAYS = "(pack always :inherits memlab) (setting probe-rate 1)"
TOPICS = ("harbour", "boat", "tide", "rope", "sail", "anchor")
LABS = Path(__file__).parents[1] / "fixtures" / "labs"


def fill(lab, count=60):
    lab.remember([f"note {n} on {TOPICS[n % 6]} and {TOPICS[n * 5 % 6]}" for n in range(count)])


# -- a slow reference: all outcomes of the random numbers, one by one


class Branch:
    """A random generator that returns one of all possible outcomes.

    ``cuts`` has, for each call of ``random``, the values between which every draw has the same
    effect.
    """

    def __init__(self, path, cuts):
        self._path, self._cuts, self.taken, self.chance = path, iter(cuts), [], 1.0

    def _pick(self, weights):
        at = len(self.taken)
        option = self._path[at] if at < len(self._path) else 0
        self.taken.append((option, len(weights)))
        self.chance *= weights[option]
        return option

    def integers(self, count):
        return self._pick([1 / count] * count)

    def random(self):
        ends = np.unique([0.0, *next(self._cuts), 1.0])
        option = self._pick(np.diff(ends))
        return float(ends[option : option + 2].mean())

    def permutation(self, items):
        values = range(items) if isinstance(items, int) else np.asarray(items).tolist()
        orders = list(itertools.permutations(values))
        return np.array(orders[self._pick([1 / len(orders)] * len(orders))], dtype=np.int64)


def outcomes(call, cuts):
    """Yield the result of ``call(generator)`` for every outcome, with its probability."""
    path = []
    while True:
        branch = Branch(path, cuts)
        yield call(branch), branch.chance
        taken = branch.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        path = [option for option, _ in taken]
        path[-1] += 1


class Tally:
    """Exact probabilities that an item is shown, is shown at a position, and that an order is shown."""

    def __init__(self, results):
        self._shown, self._at = {}, {}
        for items, chance in results:
            for position, item in enumerate(items, start=1):
                self._shown.setdefault(item, []).append(chance)
                self._at.setdefault((item, position), []).append(chance)

    def shown(self, item):
        return math.fsum(self._shown.get(item, ()))

    def at(self, item, position):
        return math.fsum(self._at.get((item, position), ()))


def check_places(tally, drawn, size):
    """Check that a drawn item is never first, and at every position below equally often."""
    for item in drawn:
        assert tally.at(item, 1) == 0
        for position in range(2, size + 1):
            assert tally.at(item, position) == pytest.approx(
                tally.shown(item) / (size - 1), abs=1e-12
            )


class Pool:
    def __init__(self, count, weights):
        self.scores = np.linspace(1, 0.1, count)
        self.rows = np.arange(count)
        self._weights = weights

    def __getitem__(self, name):
        assert name == "activation"
        return self._weights


@pytest.mark.long
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from([0.3, 1.0]),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=7, max_size=7),
)
@examples(60)
def test_a_probe_has_its_probability_and_each_place_below_the_first(
    limit, depth, rate, floor, weights
):
    pack = load_pack(
        f"(pack trial) (setting probe-rate {rate}) (setting probe-depth {depth}) (setting probe-floor {floor})"
        "(setting probes 1) (defpolicy explore [activation] activation)"
    )
    pool = Pool(7, np.array(weights))
    band = list(range(limit, min(limit + depth, 7)))
    share = np.array([weights[item] for item in band])
    assume(share.sum() > 0)
    share = (1 - floor) * share / share.sum() + floor / len(band)
    results = []
    for shown, chance in outcomes(
        lambda generator: choose(pack, pool, pool.scores, limit=limit, chance=generator),
        [[rate], np.cumsum(share)[:-1]],
    ):
        results.append((shown.places.tolist(), chance))
        # the results above keep their order, and nothing else is drawn
        assert [item for item in results[-1][0] if item < limit] == list(range(limit))
        assert shown.places[0] == 0
    tally = Tally(results)
    assert math.fsum(chance for _, chance in results) == pytest.approx(1, abs=1e-12)
    for item in range(7):
        assert shown.propensity[item] == pytest.approx(tally.shown(item), abs=1e-12)
    assert shown.propensity[band] == pytest.approx(rate * share, abs=1e-12)
    check_places(tally, band, limit + 1)


@pytest.mark.long
@given(
    st.integers(2, 5),
    st.integers(1, 4),
    st.sampled_from([0.3, 1.0]),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=7, max_size=7),
)
@examples(60)
def test_a_probe_within_the_limit_takes_the_last_rank_whose_item_keeps_the_rest(
    limit, depth, rate, weights
):
    pack = load_pack(
        f"(pack trial) (setting probe-rate {rate}) (setting probe-depth {depth}) (setting probe-floor 0.25)"
        "(setting probes 1) (defpolicy explore [activation] activation)"
    )
    pool = Pool(7, np.array(weights))
    band = list(range(limit - 1, min(limit - 1 + depth, 7)))
    share = np.array([weights[item] for item in band])
    assume(share.sum() > 0)
    share = 0.75 * share / share.sum() + 0.25 / len(band)
    results = []
    for shown, chance in outcomes(
        lambda generator: choose(
            pack, pool, pool.scores, limit=limit, chance=generator, within=True
        ),
        [[rate], np.cumsum(share)[:-1]],
    ):
        results.append((shown.places.tolist(), chance))
        assert len(set(results[-1][0])) == limit
        assert shown.places[0] == 0
    tally = Tally(results)
    assert math.fsum(chance for _, chance in results) == pytest.approx(1, abs=1e-12)
    for item in range(7):
        assert shown.propensity[item] == pytest.approx(tally.shown(item), abs=1e-12)
    assert shown.propensity.sum() == pytest.approx(limit, abs=1e-12)
    # what fits is shown, and a limit of one leaves nothing to chance
    for all_shown in (1, 7):
        shown = choose(
            pack, pool, pool.scores, limit=all_shown, chance=np.random.default_rng(1), within=True
        )
        assert shown.places.tolist() == list(range(all_shown))
        assert shown.propensity.tolist() == [1.0] * all_shown + [0.0] * (7 - all_shown)


HEADS = st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True)


@pytest.mark.long
@given(
    HEADS,
    st.lists(HEADS, min_size=1, max_size=2),
    st.sampled_from(["extra", "lot", "draft"]),
    st.sampled_from([1, 2, "auto"]),
    st.sampled_from([0.4, 1.0]),
)
@examples(60)
def test_a_challenge_has_its_probabilities_by_enumeration_of_all_draws(
    active, others, design, extra, rate
):
    """Frequencies are the logged probabilities, groups are independent, and weighted sums are unbiased."""
    others = others[:1] if design == "draft" else others
    challenges = [Challenge(load_pack("companion"), design, extra, rate, 1, 0, "")] * len(others)
    heads = [np.array(other) for other in others]
    cuts = cuts_of(np.array(active), heads, challenges, generator(7, 0))
    assume(math.prod(len(cut) + 1 for cut in cuts) <= 200)
    results, together = [], {}
    for outcome, chance in outcomes(
        lambda branch: draw_challenge(np.array(active), heads, 7, challenges, branch),
        [*([[rate]] if rate < 1 else ()), *cuts],
    ):
        shown, added, propensity, _, _, groups = outcome
        results.append((shown.tolist(), chance))
        assert set(added.tolist()) == set(shown.tolist()) - set(active)
        if design == "extra":
            assert [item for item in shown.tolist() if item not in added.tolist()] == active
        drawn = tuple(item for group in groups or () for item in group if item in shown)
        assert len(drawn) == len(groups or ())
        together.setdefault(drawn, []).append(chance)
    tally = Tally(results)
    for item in range(7):
        assert propensity[item] == pytest.approx(tally.shown(item), abs=1e-12)
    for drawn, chances in together.items():
        expected = math.prod(propensity[item] for item in drawn)
        assert rate < 1 or math.fsum(chances) == pytest.approx(expected, abs=1e-12)
    if design == "extra":
        added = [item for item in range(7) if propensity[item] > 0 and item not in active]
        check_places(tally, added, len(results[0][0]) if rate == 1 else 0)


def cuts_of(active, heads, challenges, chance):
    """Return the cut points of each group's draw: cumulative probabilities below 1."""
    whole = [replace(challenge, rate=1.0) for challenge in challenges]
    draw = draw_challenge(active, heads, 7, whole, chance)
    cuts = [np.cumsum(draw.propensity[group])[:-1].tolist() for group in draw.groups]
    # Under a draft, a coin decides each round of the order.
    return cuts + [[0.5]] * 4 if challenges[0].design == "draft" else cuts


@pytest.fixture
def recalled(lab, monkeypatch):
    """Return a function from a mode to the slates of all outcomes of one recall, with their probabilities."""
    fill(lab, 8)
    store = lab.io.store
    recaller = Recaller(store.embedder)
    question = Question("boat and rope", at=store.clock())

    def run(pack, cuts, **how):
        def call(generator):
            monkeypatch.setattr(
                "memlab.kernel.recall._pipeline.chance_of", lambda seed, state: generator
            )
            return recaller.recall(store.state, pack, question, limit=3, seed=0, **how)

        return list(outcomes(call, cuts))

    return run


PACK = load_pack(
    "(pack trial :inherits memlab) (setting probe-rate 0.4) (setting probe-depth 4) (setting probe-floor 1)"
)
WORDS = load_pack("(pack words :inherits memlab) (defpolicy recall-score [age-days] age-days)")


def check_slates(slates):
    """Check every logged probability against the tally, and return the tally and a slate."""
    tally = Tally([(slate.shown, chance) for slate, chance in slates])
    slate = slates[0][0]
    for number, item in enumerate(slate.ids.tolist()):
        assert slate.inclusion[number] == pytest.approx(tally.shown(item), abs=1e-12)
    return tally, slate


@pytest.mark.long
def test_every_mode_logs_exact_probabilities(recalled):
    """Explore off, on, and four designs of a challenge, through all stages of a recall."""
    off = recalled(PACK, [], explores=False)
    assert len(off) == 1
    _, plain = check_slates(off)
    assert plain.sampler == "deterministic"
    assert plain.seed is None
    assert set(plain.inclusion.tolist()) == {0.0, 1.0}

    on = recalled(PACK, [[0.4], [0.25, 0.5, 0.75]])
    tally, slate = check_slates(on)
    drawn = [item for item in slate.ids.tolist() if 0 < tally.shown(item) < 1]
    assert sum(map(tally.shown, drawn)) == pytest.approx(0.4, abs=1e-12)
    check_places(tally, drawn, 4)
    for slate, _ in on:
        # the ranks are those of a recall that does not explore, with the probe among them
        assert tuple(item for item in slate.shown if item not in slate.probes) == plain.shown
        assert slate.ranking.tolist() == plain.ranking.tolist()

    for explores in (True, False):
        challenge = Challenge(WORDS, "extra", 1, 1.0, 1, 0, "")
        heads = recalled(PACK, [[0.5]], explores=explores, challenges=[challenge])[0][0].challenge
        free = set(heads["heads"]["words"]["ids"]) - set(heads["live"])
        assert len(free) > 1
        cuts = [[number / len(free) for number in range(1, len(free))]]
        extra = recalled(PACK, cuts, explores=explores, challenges=[challenge])
        tally, _ = check_slates(extra)
        assert {slate.shown[0] for slate, _ in extra} == {plain.shown[0]}
        assert {slate.sampler for slate, _ in extra} == {"challenge"}
        for item in free:
            assert tally.shown(item) == pytest.approx(1 / len(free), abs=1e-12)
        check_places(tally, free, 4)

    for design in ("lot", "draft", "ab"):
        challenge = Challenge(WORDS, design, "auto", 1.0, 1, 0, "")
        # Pairs and the rounds of a draft are coins.
        slates = recalled(PACK, [[0.5]] * 6, explores=False, challenges=[challenge])
        check_slates(slates)
        assert len({slate.shown for slate, _ in slates}) > 1


def test_the_pack_itself_as_its_challenger_is_no_consent(recalled):
    challenge = Challenge(PACK, "extra", 1, 1.0, 1, 0, "")
    slates = recalled(PACK, [], explores=False, challenges=[challenge])
    assert [slate.probes for slate, _ in slates] == [()]


# -- which recalls explore


@pytest.mark.long
def test_a_plain_recall_shows_no_probe_unless_it_asks_for_them(lab):
    lab.policies.use(ALWAYS)
    fill(lab)
    hits = [lab.recall(f"the {TOPICS[number % 6]}", limit=5) for number in range(60)]
    assert {len(one) for one in hits} == {5}
    assert {one.probes for one in hits} == {()}
    assert all(len(lab.recall("boat", limit=5, explore=True).probes) == 1 for _ in range(20))
    decisions = lab.slates().decisions.collect()
    assert decisions["sampler"].to_list() == ["deterministic"] * 60 + ["probe"] * 20
    assert decisions["seed"].head(60).null_count() == 60


@pytest.mark.slow
@pytest.mark.parametrize("pack", ["memlab", "associative"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_thousand_plain_recalls_show_no_chance_item(trigrams, pack, seed):
    with memlab.open(pack=pack, embedder=trigrams, seed=seed) as lab:
        fill(lab)
        count = sum(len(lab.recall(f"the {TOPICS[n % 6]}").probes) for n in range(1000))
        drawn = ((lab.slates().candidates.collect()["propensity"] % 1) != 0).sum()
        print(f"{pack}, seed {seed}: {count} exploration items in 1,000 plain recalls")
        assert (count, drawn) == (0, 0)


@pytest.mark.long
def test_the_lab_may_decide_that_plain_recalls_explore(disk):
    with disk(pack=ALWAYS) as lab:
        fill(lab)
        assert not lab.policies.explores
        lab.policies.explore(True, reason="collect evidence")
        assert lab.log.tail(1).select("kind", "what").row(0) == ("explore", "on, collect evidence")
        head = lab.log.height
        lab.policies.explore(True)
        assert lab.log.height == head, "a decision that changes nothing is not written"
        assert len(lab.recall("boat").probes) == 1
        assert lab.recall("boat", explore=False).probes == ()
    with disk() as lab:
        assert lab.policies.explores
        assert not lab.at(event=1 + lab.policies.history()["event"].min()).policies.explores
        assert len(lab.recall("boat").probes) == 1
        lab.policies.explore(False)
        assert lab.recall("boat").probes == ()
        lab.io.store.snapshot()
    with disk() as lab:
        assert not lab.policies.explores
        lab.purge([1], reason="asked for")
        assert not lab.policies.explores


def test_exploration_that_would_not_be_logged_is_refused(lab):
    fill(lab)
    for how in ({"log": False}, {"pack": "companion"}):
        with pytest.raises(InputError, match="explore=True needs a logged recall"):
            lab.recall("boat", explore=True, **how)


@pytest.mark.long
def test_agents_sessions_and_contexts_explore(lab):
    lab.policies.use(ALWAYS)
    fill(lab)
    agent = lab.agents("coder")
    assert all(len(agent.recall("boat", limit=5).probes) == 1 for _ in range(5))
    lab.policies.explore(False)
    assert len(agent.recall("boat", limit=5).probes) == 1, "the setting is that of plain recalls"
    for turns in (lab.agents.turns(verifier=None), agent.turns(verifier=None)):
        with turns:
            turns.offer("a rope for the boat")
            turns.wait()
            assert any(hit.probe for hit in turns.offer("a tide"))
    decision = lab.context("mend the boat", budget=100).decision
    sampler = lab.slates().decisions.collect().filter(decision=decision)["sampler"].item()
    assert sampler == "probe"


@pytest.mark.long
def test_a_challenge_is_consent_and_hits_say_how_many_items_it_adds(lab):
    fill(lab)
    lab.challenge("(pack words) (defpolicy recall-score [age-days] age-days)", extra=2)
    first = lab.recall("boat and rope", limit=4, log=False)[0].id
    for _ in range(30):
        hits = lab.recall("boat and rope", limit=4)
        assert (len(hits), len(hits.probes)) == (6, 2)
        assert hits[0].id == hits.slate.challenge["live"][0]
    assert first in hits.ids
    note = "2 exploration items (?): not a result of memlab; drawn at random for the challenge of words"
    assert note in repr(hits)
    assert note in hits._repr_html_()
    assert [hit.id for hit in hits if hit.probe] == [id for id in hits.ids if id in hits.probes]
    lab.policies.end_challenge("words")
    assert "exploration" not in repr(lab.recall("boat and rope", limit=4))


def test_without_a_result_of_the_active_pack_nothing_is_drawn(lab):
    """The first result is never drawn at random, so it is not an item of a challenger either."""
    fill(lab, 12)
    lab.policies.use(
        "(pack closed :inherits memlab) (defpolicy recall-score [] (/ 0 0))", compare=0
    )
    lab.challenge("(pack words) (defpolicy recall-score [age-days] age-days)")
    hits = lab.recall("boat")
    assert (len(hits), hits.probes) == (0, ())
    assert not hits.slate.inclusion.any()
    (own,) = hits.slate.challenge["heads"].values()
    assert own["ids"], "the challenger has results"


# -- labs that an earlier memlab began


@pytest.fixture
def old_lab(tmp_path, trigrams, clock):
    """Return a function that opens a copy of a lab that an earlier memlab wrote."""
    with zipfile.ZipFile(LABS / "past-12.zip") as packed:
        packed.extractall(tmp_path)
    (folder,) = {path.parent for path in tmp_path.rglob("journal.db")}
    with memlab.open(folder) as lab:
        for challenge in lab.policies.challenges:
            lab.policies.end_challenge(challenge.name)
    return lambda **more: memlab.open(folder, **more)


def exploration_warnings(caught):
    return [str(item.message) for item in caught if item.category is ExplorationWarning]


@pytest.mark.long
def test_an_old_lab_keeps_exploring_and_says_so_once(old_lab):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with old_lab() as lab:
            assert lab.policies.explores
            fill(lab)
            lab.policies.use(ALWAYS)
            lab.agents("coder").recall("boat")
            lab.recall("boat", explore=False)
            lab.recall("boat", explore=True)
            lab.recall("boat", log=False)
            assert exploration_warnings(caught) == []
            assert len(lab.recall("boat").probes) == 1
            (message,) = exploration_warnings(caught)
            assert "lab.policies.explore(False)" in message
            assert "memlab policy explore LAB off" in message
            assert caught[-1].filename == __file__
            assert len(lab.recall("boat").probes) == 1
        for _ in range(2):
            with old_lab() as lab:
                assert len(lab.recall("boat").probes) == 1
        assert len(exploration_warnings(caught)) == 1
        with old_lab() as lab:
            lab.policies.explore(False)
            assert lab.recall("boat").probes == ()
        with old_lab() as lab:
            lab.io.store.snapshot()
        with old_lab() as lab:
            assert lab.recall("boat").probes == ()
        assert len(exploration_warnings(caught)) == 1


@pytest.mark.long
def test_an_old_lab_that_decides_first_is_told_nothing(old_lab):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExplorationWarning)
        with old_lab() as lab:
            lab.policies.use(ALWAYS)
            fill(lab)
            lab.policies.explore(True)
            assert len(lab.recall("boat").probes) == 1
        with old_lab(read_only=True) as lab:
            assert lab.recall("boat").probes == ()


@pytest.mark.long
def test_a_lab_loaded_from_an_old_one_is_new(old_lab):
    with old_lab() as lab:
        folder = lab.io.store.folder
    loaded = memlab.load(folder, progress=False)
    assert not loaded.policies.explores


@pytest.mark.long
def test_an_evaluation_of_a_log_without_chance_says_so_in_one_line(lab, clock):
    fill(lab)
    for explore, told in ((False, 1), (True, 0)):
        for number in range(40):
            clock.advance(hours=7)
            for hit in lab.recall(TOPICS[number % 6], limit=3, explore=explore):
                lab.feedback(hit, "success" if number % 2 else "fail")
        evaluation = memlab.evaluate(lab, ["companion"], cluster="decision")
        lines = [line for line in repr(evaluation).splitlines() if "No exploration" in line]
        assert len(lines) == told
        assert all("lab.challenge(pack)" in line and "explore=True" in line for line in lines)
