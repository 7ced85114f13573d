; The default of packs without a policy `credit`. The weights are a rounded logistic regression of
; experiments/attribution.py on the first half of its conversations: verbatim answers, paraphrases, and
; answers to another question, to which no retrieved memory contributed. The credit of a quote, an id, an
; argument and a correction is set by hand, because none of those conversations has any.

(defpolicy credit [evidence-lead near-lead asked-lead words-lead alike asked-words rarest same-date said-then
                   of-another length quoted cited in-arguments abstains corrected denied]
  "Credit a memory that covers the query and the answer more than the other hits do. An id alone gives half. A memory
   that the user then corrects misled. An answer without new words decides nothing."
  (let [joined (sigmoid (+ -2.3
                           (* 2.8 evidence-lead)
                           (* 19 near-lead)
                           (* 2 asked-lead)
                           (* 0.4 words-lead)
                           (* 0.3 alike)
                           (* 0.65 asked-words)
                           (* 1.7 rarest)
                           (* 1.7 same-date)
                           (if said-then 1 0)
                           (if of-another -2.5 0)
                           (* -0.008 length)))
        marked (max joined
                    (if (>= quoted 8) 0.8 0)
                    (if (>= in-arguments 0.5) 0.7 0)
                    (if cited (if (or (> rarest 0) (> same-date 0)) 0.9 0.5) 0))]
    (cond abstains 0
          (and (= alike 0) (= same-date 0) (= in-arguments 0) (not (or said-then cited))) null
          (and (>= marked 0.5) (or corrected denied)) (- 0 marked)
          else marked)))
