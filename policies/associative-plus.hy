(require memlab.dialect *)

(pack associative-plus
  "Upkeep of associative, ranking of the default pack plus activation, recency, importance and success."
  :inherits associative)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-mode fan-out seed-score cut)
(from-pack memlab recall-score :as default-score)

(defpolicy spread [activation weight damping relation depth]
  "To the adjacent turns half of the activation, as in the default pack; over other edges A[i] * W[i,j] * D, as in
   associative."
  (if (= relation "next")
    (if (= depth 1) (* 0.5 activation) 0)
    (* activation weight damping)))

; The shares of activation, recency, importance and success are those of associative. The weight of their sum was chosen on
; the conversations of experiments/plus_packs.py: it changes a tenth of the queries and costs less than .05.
(defpolicy recall-score [default-score received recency importance success fail]
  "Score of the default pack plus activation received, recency, importance and success."
  (+ default-score
     (* (param :lived 0.1 :low 0 :high 1)
        (+ (* 0.4 received)
           (* 0.3 recency)
           (* 0.2 importance)
           (* 0.1 (/ success (+ success fail 1)))))))
