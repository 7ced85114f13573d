"""Two yardsticks, as packs: they run through the same engine, log the same slates and pay the same costs."""

__all__ = ["BASELINES", "BM25", "DENSE"]

BM25 = """(pack bm25
  "The words alone: Okapi BM25.")

(setting dense-candidates 0) (setting lexical-candidates 100)
(setting seeds 0) (setting spread-steps 0)

(defpolicy eligible [lexical] (> lexical 0))
(defpolicy seed-score [lexical] lexical)
(defpolicy cut [seed received] (+ seed received))
(defpolicy recall-score [lexical] lexical)
"""

DENSE = """(pack dense
  "The vectors alone: cosine similarity.")

(setting dense-candidates 100) (setting lexical-candidates 0)
(setting seeds 0) (setting spread-steps 0)

(defpolicy eligible [hops] (>= hops 0))
(defpolicy seed-score [similarity] similarity)
(defpolicy cut [seed received] (+ seed received))
(defpolicy recall-score [similarity] similarity)
"""

BASELINES = {"bm25": BM25, "dense": DENSE}
"""Name and source text."""
