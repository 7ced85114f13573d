(pack companion
  "An assistant that knows its user: nearness and vividness, and what is linked to it.")

(setting seeds 10)
(setting spread-steps 2)
(setting spread-combine "max")
(setting lexical-candidates 0)

(defpolicy eligible [closeness hops]
  "Near enough, or linked within two hops to what is."
  (or (> hops 0) (>= closeness (param :near 0.3 :low -1 :high 1))))

(defpolicy seed-score [closeness]
  closeness)

(defpolicy spread [activation depth]
  "Linked memories within two hops come along."
  (if (<= depth 2) (* 0.5 activation) 0))

(defpolicy recall-score [closeness strength emotional-weight idle-days]
  "0.6 nearness and 0.4 strength as it stands now; feeling slows its fading."
  (let [loss (* (max 2 (- 5 (* 0.03 emotional-weight))) idle-days)
        now (clamp (- strength loss) 0 100)]
    (+ (* 0.6 closeness) (* 0.4 (/ now 100)))))
