(require memlab.dialect *)

(pack factgraph-plus
  "Facts live as in factgraph; the default pack ranks them, and relevance and the entities of the query lift."
  :inherits factgraph)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight anchors eligible seed-score cut)
(from-pack memlab recall-score :as default-score)
(from-pack memlab spread :as passed-to-turn)
(from-pack factgraph spread :as passed-to-fact)

(defpolicy spread [passed-to-turn passed-to-fact relation depth]
  "Turns as in the default pack; the subgraph of two hops around an entity as in factgraph."
  (if (= relation "next")
    (if (= depth 1) passed-to-turn 0)
    (if (= relation "mentions") passed-to-fact 0)))

; The weights were set on the read conversations of experiments/plus_packs.py: visible in a tenth of the queries, at a cost
; of less than .05.
(defpolicy recall-score [default-score received confidence source retention access status]
  "The score of the default pack, and relevance (confidence * source * time * usage, clamped, by status) and the entities
   of the query on top."
  (+ default-score
     (* (param :linked 0.05 :low 0 :high 1) received)
     (* (param :relevant 0.1 :low 0 :high 1)
        confidence
        (case source
          "user-edit" 2
          "file" 1.5
          "system" 1.2
          else 1)
        (clamp retention 0.5 1)
        (clamp (+ 1 (* 0.5 (log10 (+ access 1)))) 1 2)
        (case status
          "staged" 0.5
          ["active" "confirmed"] 1
          else 0))))
