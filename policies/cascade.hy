(require memlab.dialect *)

(pack cascade
  "A coding assistant's memory graph: seeds by nearness, then a walk over its edges.")

(setting seeds 10)
(setting spread-steps 2)
(setting spread-mode "cascade")
(setting lexical-candidates 10)
(setting dense-candidates 10)
(setting linking "now")
(setting redact-cards true)  ; what is not to be remembered: identifiers of a person
(setting redact-ibans true)
(setting redact-social-security true)
(setting redact-phones true)
(setting redact-emails true)
(setting triggers true)
(setting initial-strength 1)  ; it counts consolidations, and the first telling is one
(setting edge-gain 0.1)
(setting tag-share 0.5)  ; most of them
(setting infer-tags "all")
(setting infer-common-tag true)
(setting ignored-files true)
(setting flag-contradictions true)
(setting topic-closeness 0.3)
(setting refine-every 50)
(setting cluster-closeness 0.4)  ; members of a cluster of real turns: quartiles .44 .52 .63; one outsider in twenty is above .35
(setting context-days false)

(defpolicy eligible [nearness hops kind triggered]
  "Near enough to be a seed, reached over edges, or a warning or procedure whose trigger occurs."
  (or (> hops 0)
      (>= nearness (param :near 0.4 :low -1 :high 1))
      (and (in kind ["negative" "procedure"]) triggered)))

(defpolicy seed-score [nearness kind triggered]
  "Seeds keep their nearness as score; a warning or procedure whose trigger occurs comes first."
  (if (and (in kind ["negative" "procedure"]) triggered) 1 nearness))

(defpolicy spread [relation weight depth]
  "The edge's weight, discounted by its distance from the seeds."
  (* (case relation
       "has-tag" 0.8
       "in-cluster" 0.6
       "supersedes" 0.9
       "relates-to" weight
       else 0.3)
     (pow 0.7 depth)))

(defpolicy cut [seed received]
  "What a candidate has of its own and what arrived over edges."
  (+ seed received))

(defpolicy recall-score [activation recency-weight idle-days]
  "Recent use lifts: 1 + w e^(-hours / 24)."
  (* activation (+ 1 (* recency-weight (exp (- idle-days))))))

; How sure one may be of a memory. The original calls the time constant of e^(-age / t) its half-life.

(defn time-constant [kind provenance]
  "Days by kind; what was inferred holds a week, whatever it is."
  (if (= provenance "inferred")
      7
      (case kind
        ["correction" "negative"] 365
        "preference" 90
        "procedure" 60
        else 30)))

(defn trust-in [trust provenance]
  "What was given, else by provenance."
  (if-null trust
    (case provenance
      ["user-stated" "user-corrected"] 1
      "observed" 0.8
      "inferred" 0.6
      else 0.7)))

(defpolicy half-life [kind provenance]
  "ln 2 of the time constant."
  (* 0.6931471805599453 (time-constant kind provenance)))

(defpolicy retention [confidence age-days kind provenance trust access]
  "Confidence as it stands: faded with age, lifted by use, weighed by trust."
  (clamp (* confidence
            (exponential-decay age-days (time-constant kind provenance))
            (+ 1 (* 0.1 (log (+ access 1))))
            (trust-in trust provenance))
         0 1))

(defpolicy uncertain [retention]
  "Confidence as it stands is below one in ten."
  (< retention (param :unsure 0.1 :low 0 :high 1)))

(defpolicy reinforce [outcome strength confidence]
  "Helpful: strength + 1, confidence + 0.05; not helpful: - 0.1; a verifier moves it by 0.02."
  (case outcome
    "success" (update :strength (+ strength 1) :confidence (min 1 (+ confidence 0.05)))
    "fail" (update :confidence (max 0 (- confidence 0.1)))
    "verified" (update :confidence (min 1 (+ confidence 0.02)))
    "rejected" (update :confidence (max 0 (- confidence 0.02)))
    else (update)))

; The original joins what was found together once by 0.1, and says nothing of what becomes of it. A year is its longest
; time constant, and a walk shows 10: beside more edges than that, what nothing has repeated in a year carries nobody.
(defpolicy prune [relation weight reinforcements age-days source-degree target-degree]
  "What was found together once, and not again within a year, where both have more than ten other edges."
  (and (= relation "relates-to")
       (<= weight 0.1)
       (= reinforcements 0)
       (>= age-days 365)
       (> source-degree 11)
       (> target-degree 11)))

; The nearness at which two memories are alike was given for longer texts: what a short statement says tells more.
(defpolicy link [pair/closeness pair/conflicts pair/updates pair/negates pair/update-words pair/same-numbers
                 pair/same-order]
  "What excludes or ends the other, by what both say; else as near as the default has it."
  (cond pair/updates "updates"
        pair/conflicts "contradicts"
        (< pair/closeness 0.6) "none"
        (<= pair/closeness 0.85) "related"
        pair/update-words "updates"
        pair/negates "contradicts"
        (and (> pair/closeness 0.95) pair/same-numbers pair/same-order) "duplicate"
        else "similar"))

(defpolicy resolve [pair/conflicts pair/updates pair/negates pair/update-words]
  "A near-duplicate is rewritten into one; an update supersedes; what contradicts is kept, and flagged by its edge."
  (cond (or pair/updates pair/update-words) "keep-new"
        (or pair/conflicts pair/negates) "keep-both"
        else "merge"))
