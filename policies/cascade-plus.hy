(require memlab.dialect *)

(pack cascade-plus
  "Upkeep of cascade, ranking of the default pack plus confidence, recent use and links."
  :inherits cascade)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight eligible seed-score cut)
(from-pack memlab recall-score :as default-score)
(from-pack memlab spread :as passed-to-turn)

(defpolicy spread [passed-to-turn relation activation weight depth]
  "To adjacent turns as in the default pack; over other edges as in cascade, in proportion to the activation at the start,
   because two hundred seeds spread instead of ten."
  (if (= relation "next")
    (if (= depth 1) passed-to-turn 0)
    (* 0.7
       activation
       (case relation
         "has-tag" 0.8
         "in-cluster" 0.6
         "supersedes" 0.9
         "relates-to" weight
         else 0.3))))

; Cascade maintains the current confidence most carefully, but its own ranking does not read it. The weight was chosen on
; the conversations of experiments/plus_packs.py: it changes a tenth of the queries and costs less than .05.
(defpolicy recall-score [default-score retention received recency-weight idle-days kind triggered]
  "Score of the default pack plus confidence, links and recent use; warnings and procedures with a matching trigger come first."
  (+ default-score
     (* (param :confidence 0.05 :low 0 :high 1) retention)
     (* (param :linked 0.02 :low 0 :high 1) received)
     (* (param :recent 0.05 :low 0 :high 1) recency-weight (exp (- idle-days)))
     (if (and (in kind ["negative" "procedure"]) triggered) 1 0)))
