(require memlab.dialect *)

(pack companion-plus
  "Upkeep of companion, ranking of the default pack plus strength and links."
  :inherits companion)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight eligible seed-score cut)
(from-pack memlab recall-score :as default-score)
(from-pack memlab spread :as passed-to-turn)
(from-pack companion spread :as passed-to-linked)

(defpolicy spread [passed-to-turn passed-to-linked relation depth]
  "To adjacent turns as in the default pack; over other edges within two hops as in companion."
  (if (= relation "next")
    (if (= depth 1) passed-to-turn 0)
    passed-to-linked))

; The weights were chosen on the conversations of experiments/plus_packs.py: they change a tenth of the queries and cost less
; than .05.
(defpolicy recall-score [default-score retention received]
  "Score of the default pack plus current strength and activation received over links."
  (+ default-score
     (* (param :vivid 0.05 :low 0 :high 1) retention)
     (* (param :linked 0.02 :low 0 :high 1) received)))
