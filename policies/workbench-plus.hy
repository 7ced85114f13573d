(require memlab.dialect *)

(pack workbench-plus
  "Upkeep of workbench, ranking of the default pack plus freshness, use and a bonus for feedback by people."
  :inherits workbench)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight spread-steps seed-score spread cut)
(from-pack memlab recall-score :as default-score)

; The weight was chosen on the conversations of experiments/plus_packs.py: it changes a tenth of the queries and costs less
; than .05. The shares of freshness and use are those of workbench.
(defpolicy recall-score [default-score recency access kind]
  "Score of the default pack plus freshness by kind and use; a quarter more for feedback by people."
  (* (if (= kind "human-feedback") 1.25 1)
     (+ default-score
        (* (param :lived 0.1 :low 0 :high 1)
           (+ (* 0.25 recency)
              (* 0.15 (min (/ access 20) 1)))))))
