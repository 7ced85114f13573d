(require memlab.dialect *)

(pack associative-plus
  "Memories live as in associative; the default pack ranks them, and activation, recency, importance and success lift."
  :inherits associative)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-mode fan-out seed-score cut)
(from-pack memlab recall-score :as default-score)

(defpolicy spread [activation weight damping relation depth]
  "Over turns as in the default pack, half to the next; over all other edges as in associative: A[i] * W[i,j] * D."
  (if (= relation "next")
    (if (= depth 1) (* 0.5 activation) 0)
    (* activation weight damping)))

; The shares of activation, recency, importance and success are those of associative. The weight of their sum was set on the
; read conversations of experiments/plus_packs.py: visible in a tenth of the queries, at a cost of less than .05.
(defpolicy recall-score [default-score received recency importance success fail]
  "The score of the default pack, and what spreading, use and feedback tell on top."
  (+ default-score
     (* (param :lived 0.1 :low 0 :high 1)
        (+ (* 0.4 received)
           (* 0.3 recency)
           (* 0.2 importance)
           (* 0.1 (/ success (+ success fail 1)))))))
