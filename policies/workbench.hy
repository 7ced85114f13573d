(pack workbench
  "What was learned in a code base: nearness, freshness by kind, and use.")

(setting seeds 0)
(setting spread-steps 0)
(setting lexical-candidates 0)

(defpolicy eligible [same-branch]
  "What another, unmerged branch taught stays there."
  same-branch)

(defpolicy seed-score [closeness]
  "Nearness alone finds the candidates."
  closeness)

(defpolicy half-life [kind pinned]
  "Days by kind; conventions, decisions and what people said never fade, nor does what is pinned."
  (if pinned
      1e300
      (case kind
        ["convention" "decision" "dependency-relation" "human-feedback" "codebase-map"] 1e300
        "preference" 180
        ["pr-review" "pr-finding" "pr-pattern" "pr-gotcha"] 90
        ["gotcha" "error-pattern"] 60
        ["session-insight" "task-outcome" "codebase-discovery"] 30
        ["context" "environment-quirk"] 7
        else 30)))

(defpolicy recall-score [closeness recency access]
  "0.6 nearness, 0.25 freshness, 0.15 use up to twenty accesses."
  (+ (* 0.6 closeness)
     (* 0.25 recency)
     (* 0.15 (min (/ access 20) 1))))
