(require memlab.dialect *)

(pack workbench-plus
  "Memories live as in workbench; the default pack ranks them, and what is fresh, used or said by people lifts."
  :inherits workbench)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight spread-steps seed-score spread cut)
(from-pack memlab recall-score :as default-score)

; The weight was set on the read conversations of experiments/plus_packs.py: visible in a tenth of the queries, at a cost of
; less than .05. The shares of freshness and use are those of workbench.
(defpolicy recall-score [default-score recency access kind]
  "The score of the default pack, and freshness by kind and use on top; of what people said a quarter more."
  (* (if (= kind "human-feedback") 1.25 1)
     (+ default-score
        (* (param :lived 0.1 :low 0 :high 1)
           (+ (* 0.25 recency)
              (* 0.15 (min (/ access 20) 1)))))))
