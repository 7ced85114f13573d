(require memlab.dialect *)

(pack factgraph-plus
  "Upkeep of factgraph, ranking of the default pack plus relevance and the entities of the query."
  :inherits factgraph)

(from-pack memlab
  limit dense-candidates lexical-candidates pool language bm25-k1 bm25-b seeds spread-threshold spread-mode fan-out damping
  mmr-weight anchors eligible seed-score cut)
(from-pack memlab recall-score :as default-score)
(from-pack memlab spread :as passed-to-turn)
(from-pack factgraph spread :as passed-to-fact)

(defpolicy spread [passed-to-turn passed-to-fact relation depth]
  "To adjacent turns as in the default pack; around an entity the subgraph of two hops as in factgraph."
  (if (= relation "next")
    (if (= depth 1) passed-to-turn 0)
    (if (= relation "mentions") passed-to-fact 0)))

; The weights were chosen on the conversations of experiments/plus_packs.py: they change a tenth of the queries and cost less
; than .05.
(defpolicy recall-score [default-score received confidence source retention access status]
  "Score of the default pack plus relevance (confidence * source * time * usage, clamped, by status) and links to the
   entities of the query."
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
