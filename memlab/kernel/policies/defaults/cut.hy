; Default of the slot cut, for packs that do not fill it.

(defpolicy cut [seed received]
  "Own seed-score plus activation received, so that memories reached by spreading enter the pool."
  (+ seed received))
