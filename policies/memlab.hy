(pack memlab
  "The default: words and vectors, what the turns around say, who said it, and statement before question.")

; Where a number is not explained, findings of the field or the pipeline's cost set it; docs/benchmarks.md holds
; the measurements. The weights of recall-score were fitted by logistic regression on half of LoCoMo, cross-validated by
; conversation, and rounded; scores come out roughly between 0 and 1.

(setting limit 10)
(setting dense-candidates 100)
(setting lexical-candidates 100)
(setting pool 100)
(setting bm25-k1 0.9)
(setting bm25-b 0.4)
(setting seeds 200)
(setting spread-steps 1)
(setting spread-threshold 0)
(setting spread-combine "max")
(setting damping 0.5)
(setting base-half-life 30)

(defpolicy eligible [hops]
  "Everything that the question found or spreading reached."
  (>= hops 0))

(defpolicy seed-score [similarity lexical]
  "Score fusion: with a small encoder it beats rank fusion."
  (+ (* 0.5 (min-max similarity)) (* 0.5 (min-max lexical))))

(defpolicy spread [activation damping relation]
  "The turn before and the turn after carry part of the answer."
  (if (= relation "next") (* damping activation) 0))

(defpolicy recall-score [similarity lexical coverage session-lexical session-seed received before-coverage
                         names-speaker names-other asks answers]
  "Evidence in the memory, then around it, then who said it and how."
  (+ (* 0.24 (min-max similarity))        ; it means the same
     (* 0.16 (min-max lexical))           ; it uses the same rare words
     (* 0.16 coverage)                    ; and many of the question's words
     (* 0.19 (min-max session-lexical))   ; its session speaks of it
     (* 0.12 (min-max session-seed))      ; its session holds a strong candidate
     (* 0.09 (min-max received))          ; the turn before or after is one
     (* 0.12 before-coverage)             ; it replies to the question's words
     (if names-speaker 0.03 0)            ; the question is about who said it
     (if names-other -0.22 0)             ; the question is about someone else
     (if asks -0.07 0)                    ; a question seldom holds the answer
     (if answers 0.04 0)))                ; what follows a question often does

(defpolicy explore [activation]
  "Probe by activation."
  (max 0 activation))

(defpolicy half-life [base-half-days]
  "One half-life for all."
  base-half-days)
