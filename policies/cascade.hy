(require memlab.dialect *)

(pack cascade
  "Memory graph of a coding assistant: seeds by nearness, then a walk over the edges.")

(setting seeds 10)
(setting spread-steps 2)
(setting spread-mode "cascade")
(setting lexical-candidates 10)
(setting dense-candidates 10)
(setting linking "now")
(setting redact-cards true)  ; personal identifiers are not stored
(setting redact-ibans true)
(setting redact-social-security true)
(setting redact-phones true)
(setting redact-emails true)
(setting triggers true)
(setting initial-strength 1)  ; strength counts consolidations, and the first statement is one
(setting edge-gain 0.1)
(setting tag-share 0.5)  ; the majority
(setting infer-tags "all")
(setting infer-common-tag true)
(setting ignored-files true)
(setting flag-contradictions true)
(setting topic-closeness 0.3)
(setting refine-every 50)
(setting cluster-closeness 0.4)  ; measured on real turns: members have quartiles .44 .52 .63; 5% of outsiders are above .35
(setting context-days false)
(setting context-fill false)

(defpolicy eligible [nearness hops kind triggered]
  "Seeds above the nearness threshold, memories reached over edges, and warnings or procedures with a matching trigger."
  (or (> hops 0)
      (>= nearness (param :near 0.4 :low -1 :high 1))
      (and (in kind ["negative" "procedure"]) triggered)))

(defpolicy seed-score [nearness kind triggered]
  "Nearness; 1 for a warning or procedure with a matching trigger."
  (if (and (in kind ["negative" "procedure"]) triggered) 1 nearness))

(defpolicy spread [relation weight depth]
  "Weight by relation, discounted by the distance from the seeds."
  (* (case relation
       "has-tag" 0.8
       "in-cluster" 0.6
       "supersedes" 0.9
       "relates-to" weight
       else 0.3)
     (pow 0.7 depth)))

(defpolicy cut [seed received]
  "Own seed-score plus activation received."
  (+ seed received))

(defpolicy recall-score [activation recency-weight idle-days]
  "Activation, raised by recent use: 1 + w e^(-hours / 24)."
  (* activation (+ 1 (* recency-weight (exp (- idle-days))))))

; Confidence in a memory. The original calls the time constant of e^(-age / t) its half-life.

(defn time-constant [kind provenance]
  "Time constant in days by kind; 7 for inferred memories of any kind."
  (if (= provenance "inferred")
      7
      (case kind
        ["correction" "negative"] 365
        "preference" 90
        "procedure" 60
        else 30)))

(defn trust-in [trust provenance]
  "Trust of the memory if it has one, otherwise by provenance."
  (if-null trust
    (case provenance
      ["user-stated" "user-corrected"] 1
      "observed" 0.8
      "inferred" 0.6
      else 0.7)))

(defpolicy half-life [kind provenance]
  "Half-life in days: ln 2 times the time constant."
  (* 0.6931471805599453 (time-constant kind provenance)))

(defpolicy retention [confidence age-days kind provenance trust access]
  "Current confidence: decayed with age, raised by use, multiplied by trust."
  (clamp (* confidence
            (exponential-decay age-days (time-constant kind provenance))
            (+ 1 (* 0.1 (log (+ access 1))))
            (trust-in trust provenance))
         0 1))

(defpolicy uncertain [retention]
  "True if the current confidence is below 0.1."
  (< retention (param :unsure 0.1 :low 0 :high 1)))

(defpolicy reinforce [outcome strength confidence]
  "Success adds 1 to the strength and 0.05 to the confidence, failure subtracts 0.1; a verifier moves it by 0.02."
  (case outcome
    "success" (update :strength (+ strength 1) :confidence (min 1 (+ confidence 0.05)))
    "fail" (update :confidence (max 0 (- confidence 0.1)))
    "verified" (update :confidence (min 1 (+ confidence 0.02)))
    "rejected" (update :confidence (max 0 (- confidence 0.02)))
    else (update)))

; The original links memories that one recall returned with weight 0.1 and does not say when such an edge ends. A year is
; its longest time constant, and a walk shows 10 memories. At nodes with more than 10 other edges, an edge that nothing has
; strengthened for a year has no effect.
(defpolicy prune [relation weight reinforcements age-days source-degree target-degree]
  "Edges from a single joint recall, not strengthened within a year, between nodes with more than ten other edges."
  (and (= relation "relates-to")
       (<= weight 0.1)
       (= reinforcements 0)
       (>= age-days 365)
       (> source-degree 11)
       (> target-degree 11)))

; The original gives its similarity thresholds for longer texts. For short statements, their content is more reliable.
(defpolicy link [pair/closeness pair/conflicts pair/updates pair/negates pair/update-words pair/same-numbers
                 pair/same-order]
  "Updates and conflicts by the content of both texts; otherwise the thresholds of the default pack."
  (cond pair/updates "updates"
        pair/conflicts "contradicts"
        (< pair/closeness 0.6) "none"
        (<= pair/closeness 0.85) "related"
        pair/update-words "updates"
        pair/negates "contradicts"
        (and (> pair/closeness 0.95) pair/same-numbers pair/same-order) "duplicate"
        else "similar"))

(defpolicy resolve [pair/conflicts pair/updates pair/negates pair/update-words]
  "Near-duplicates are merged, updates supersede, and contradictions are kept and marked by their edge."
  (cond (or pair/updates pair/update-words) "keep-new"
        (or pair/conflicts pair/negates) "keep-both"
        else "merge"))

(defpolicy inject [rank injected]
  "Priority by rank; nothing is injected twice in a session."
  (if injected 0 (/ 1 rank)))
