"""Pack associative against its formulas in plain Python, and its three originals as they were written."""

import pytest
from conformance import decide, decisions, every

from memlab.kernel.policies import load_pack
from memlab.kernel.policies._packs import pack_source

DAY_MS = 86_400_000.0

ORIGINALS = (
    "(lambda (success fail energy importance recency_ms base_half_ms) (let* ((total (+ success fail 1))"
    " (ratio (/ success total)) (scale (+ 0.5 (* 1.5 ratio)))) (* base_half_ms scale)))",
    "(lambda (activation recency importance access success fail) (+ (* 0.4 activation) (* 0.3 recency)"
    " (* 0.2 importance) (* 0.1 (/ success (+ success fail 1)))))",
    "(lambda (limit tail_n acts recs imps accs succ fails) (if (> tail_n 2) (let* ((under-explored"
    " (filter (lambda (i) (< (nth accs i) 5)) (range 0 (length acts))))) (if (not (empty? under-explored))"
    " (first under-explored) -1)) -1))",
)


@pytest.mark.parametrize("original", ORIGINALS[:2])
def test_the_originals_stand_in_the_pack_word_for_word(original):
    assert " ".join(original.split()) in " ".join(pack_source("associative").split())


class TestScores:
    """0.4 activation, 0.3 recency, 0.2 importance, 0.1 success rate; a half-life that success stretches."""

    def test_recall_score(self):
        rows = every(
            activation=[0.0, 0.6, 2.5],
            recency=[0.25, 1.0],
            importance=[0.9],
            access=[7],
            success=[0, 3],
            fail=[0, 1],
        )
        expected = [
            0.4 * row["activation"]
            + 0.3 * row["recency"]
            + 0.2 * row["importance"]
            + 0.1 * row["success"] / (row["success"] + row["fail"] + 1)
            for row in rows
        ]
        assert decisions("associative", "recall-score", rows) == pytest.approx(expected, rel=1e-15)

    def test_half_life_is_handed_over_in_milliseconds(self):
        pack = load_pack("associative")
        rows = every(success=[0, 3, 50], fail=[0, 1, 9], base_half_ms=[30 * DAY_MS])
        got = [
            half / pack.unit("half-life") for half in decisions("associative", "half-life", rows)
        ]
        expected = [
            30 * (0.5 + 1.5 * row["success"] / (row["success"] + row["fail"] + 1)) for row in rows
        ]
        assert got == pytest.approx(expected, rel=1e-15)

    def test_energy_halves_with_every_half_life(self):
        rows = every(energy=[0.0, 0.4, 1.0], elapsed_days=[0, 1, 45, 300], half_life=[15.0, 58.5])
        expected = [row["energy"] * 0.5 ** (row["elapsed-days"] / row["half-life"]) for row in rows]
        assert decisions("associative", "retention", rows) == pytest.approx(expected, rel=1e-13)

    def test_spreading_passes_activation_times_weight_times_damping(self):
        assert load_pack("associative").settings["damping"] == 0.7
        assert load_pack("associative").settings["spread-mode"] == "energy"
        result = decide("associative", "spread", activation=0.5, weight=0.8, damping=0.7)
        assert result == pytest.approx(0.5 * 0.8 * 0.7)


class TestLife:
    @pytest.mark.long
    def test_layers(self):
        """Emerging: newer than 7 days, used less than twice; active: used within 7 days; stable: used 5 times."""
        rows = every(
            age_days=[1, 6.9, 7, 300], idle_days=[0.5, 7, 7.1, 90], access=[0, 1, 2, 4, 5, 60]
        )

        def expected(row):
            if row["age-days"] < 7 and row["access"] < 2:
                return "emerging"
            if row["idle-days"] <= 7 and row["access"]:
                return "active"
            return "stable" if row["access"] >= 5 else "decaying"

        wanted = [expected(row) for row in rows]
        assert set(wanted) == {"emerging", "active", "stable", "decaying"}
        assert decisions("associative", "label", rows) == wanted

    def test_time_to_live(self):
        rows = every(age_days=[29.9, 30, 400], ttl_days=[30, None], status=["active"])
        wanted = ["active", "active", "expired", "active", "expired", "active"]
        assert decisions("associative", "promote", rows) == wanted

    def test_shared_use_strengthens_an_edge(self):
        assert load_pack("associative").settings["edge-gain"] == 0.05
