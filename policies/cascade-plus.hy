(require memlab.dialect *)

(pack cascade-plus
  "The life of memories of cascade, ranked by the default pack; recent use and warnings that are called for lift."
  :inherits cascade)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-steps spread-threshold
  spread-mode fan-out damping eligible seed-score spread cut)
(from-pack memlab recall-score :as default-score)

(defpolicy recall-score [default-score recency-weight idle-days kind triggered]
  "The score of the default pack; recent use lifts by w e^(-hours / 24), and a warning that is called for comes first."
  (+ default-score
     (* 0.05 recency-weight (exp (- idle-days)))
     (if (and (= kind "negative") triggered) 1 0)))
