(require memlab.dialect *)

(pack cascade-plus
  "Memories live as in cascade; the default pack ranks them, and confidence, recent use and links lift."
  :inherits cascade)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight eligible seed-score cut)
(from-pack memlab recall-score :as default-score)
(from-pack memlab spread :as passed-to-turn)

(defpolicy spread [passed-to-turn relation activation weight depth]
  "Turns as in the default pack. Over other edges the walk of cascade, here in proportion to the memory that is left, as
   two hundred begin and not ten."
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

; Confidence as it stands is what cascade keeps most carefully, and its own ranking does not read it. The weight was set on
; the read conversations of experiments/plus_packs.py: visible in a tenth of the queries, at a cost of less than .05.
(defpolicy recall-score [default-score retention received recency-weight idle-days kind triggered]
  "The score of the default pack, and confidence, links and recent use on top; a warning or procedure whose trigger occurs leads."
  (+ default-score
     (* (param :confidence 0.05 :low 0 :high 1) retention)
     (* (param :linked 0.02 :low 0 :high 1) received)
     (* (param :recent 0.05 :low 0 :high 1) recency-weight (exp (- idle-days)))
     (if (and (in kind ["negative" "procedure"]) triggered) 1 0)))
