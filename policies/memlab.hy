(pack memlab
  "The default: words and vectors, what the turns around say, who said it, and statement before question.")

; The weights of recall-score come from experiments/fit_default_pack.py: a logistic regression on half of LoCoMo,
; cross-validated by conversation, scaled so that the positive weights sum to about 1, and rounded. BM25's k1 and b,
; the fusion and the damping were measured on the same half; docs/benchmarks.md holds the figures.

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

; One recall in five shows one memory more, drawn from the thirty ranks below: the log can then say what another policy
; would have been worth, and the ten that were asked for stay as they are.
(setting probe-rate 0.2)
(setting probe-depth 30)
(setting probe-floor 0.5)
(setting probes 1)

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
                         names-other asks answers]
  "Evidence in the memory, then around it, then who said it and how."
  (+ (* 0.21 (min-max similarity))        ; it means the same
     (* 0.15 (min-max lexical))           ; it uses the same rare words
     (* 0.14 coverage)                    ; and many of the question's words
     (* 0.14 (min-max session-lexical))   ; its session speaks of it
     (* 0.18 (min-max session-seed))      ; its session holds a strong candidate
     (* 0.05 (min-max received))          ; the turn before or after is one
     (* 0.09 before-coverage)             ; it replies to the question's words
     (if names-other -0.24 0)             ; the question is about someone else
     (if asks -0.04 0)                    ; a question seldom holds the answer
     (if answers 0.05 0)))                ; what follows a question often does

(defpolicy explore [activation]
  "Probe by activation."
  (max 0 activation))

(defpolicy half-life [base-half-days]
  "One half-life for all."
  base-half-days)
