(pack cascade
  "A coding assistant's memory graph: seeds by nearness, then a walk over its edges.")

(setting seeds 10)
(setting spread-steps 2)
(setting spread-combine "max")
(setting lexical-candidates 0)
(setting dense-candidates 10)

(defpolicy eligible [closeness hops]
  "Near enough to be a seed, or reached over edges."
  (or (> hops 0) (>= closeness (param :near 0.4 :low -1 :high 1))))

(defpolicy seed-score [closeness]
  "Seeds keep their nearness as score."
  closeness)

(defpolicy spread [relation weight depth]
  "The edge's weight, discounted by its distance from the seeds."
  (* (case relation
       "has-tag" 0.8
       "in-cluster" 0.6
       "supersedes" 0.9
       "relates-to" weight
       else 0.3)
     (pow 0.7 depth)))

(defpolicy recall-score [activation recency-weight idle-days]
  "Recent use lifts: 1 + w e^(-hours / 24)."
  (* activation (+ 1 (* recency-weight (exp (- idle-days))))))
