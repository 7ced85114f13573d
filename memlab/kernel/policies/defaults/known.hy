; What a pack has that says nothing of `known`.

(defpolicy known []
  "Nobody knows."
  null)
