(require memlab.dialect *)

(pack companion-plus
  "Memories live as in companion; the default pack ranks them, and what is vivid or linked lifts."
  :inherits companion)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight eligible seed-score cut)
(from-pack memlab recall-score :as default-score)
(from-pack memlab spread :as passed-to-turn)
(from-pack companion spread :as passed-to-linked)

(defpolicy spread [passed-to-turn passed-to-linked relation depth]
  "Turns as in the default pack, and what is linked within two hops as in companion."
  (if (= relation "next")
    (if (= depth 1) passed-to-turn 0)
    passed-to-linked))

; The weights were set on the read conversations of experiments/plus_packs.py: visible in a tenth of the queries, at a cost
; of less than .05.
(defpolicy recall-score [default-score retention received]
  "The score of the default pack, and strength as it stands and links on top."
  (+ default-score
     (* (param :vivid 0.05 :low 0 :high 1) retention)
     (* (param :linked 0.02 :low 0 :high 1) received)))
