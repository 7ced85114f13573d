; What a pack has that says nothing of `cut`.

(defpolicy cut [seed received]
  "What a candidate has of its own and what arrived over edges: a pack that spreads needs room for what was reached."
  (+ seed received))
