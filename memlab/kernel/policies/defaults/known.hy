; Default of the slot known, for packs that do not fill it.

(defpolicy known []
  "The probability of an answer is unknown."
  null)
