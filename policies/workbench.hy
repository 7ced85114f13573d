(require memlab.dialect *)

(pack workbench
  "What was learned in a code base: nearness, freshness by kind, and use.")

(setting seeds 0)
(setting spread-steps 0)
(setting lexical-candidates 0)
(setting linking "now")
; The original gives no weight for its MMR. From 0.71 on a second copy stands before what is different and has four fifths
; of its score; below 0.65 what has nothing to do with the question stands before a second copy.
(setting mmr-weight 0.65)
(setting link-candidates 3)
(setting initial-confidence 0.5)
(setting session-writes 50)
(setting write-bytes 2048)
(setting visibility "by-creator")
; Made when a memory is stored, for injection: a twentieth of the time that storing and linking it takes.
(setting write-summary true)
(setting tier-1-tokens 600)
(setting tier-2-tokens 1200)
(setting tier-3-tokens 30)
(setting context-days false)
; Tier 3 is what an agent asks for, and shows no memory twice in a session.
(setting recall-again false)

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

(defpolicy cut [seed received]
  "What a candidate has of its own and what arrived over edges."
  (+ seed received))

; The original says that what people said has the highest weight of all kinds, and gives no number: a quarter more puts it
; before another kind of equal freshness that is up to a quarter nearer.
(defpolicy recall-score [closeness recency access kind]
  "0.6 nearness, 0.25 freshness, 0.15 use up to twenty accesses; of what people said a quarter more."
  (* (if (= kind "human-feedback") 1.25 1)
     (+ (* 0.6 closeness)
        (* 0.25 recency)
        (* 0.15 (min (/ access 20) 1)))))

(defpolicy retention [elapsed-days half-life]
  "e^(-rate days) with rate = ln 2 / half-life."
  (half-life-decay elapsed-days half-life))

(defpolicy reinforce [outcome confidence]
  "Confidence grows with retrieval and drops when someone says that it is wrong; the original gives no numbers."
  (case outcome
    ["recalled" "success"] (update :confidence (+ confidence (* 0.05 (- 1 confidence))))
    ["fail" "rejected"] (update :confidence (* 0.5 confidence))
    else (update)))

; The original names no threshold for a contradiction. These need less nearness, as the words differ that matter: what
; is left of two sentences when one word was exchanged is that they share half of their words.

(defn one-word-changed [closeness overlap]
  (or (> closeness (param :near 0.8 :low -1 :high 1))
      (and (>= overlap (param :shared 0.5 :low 0 :high 1))
           (>= closeness (param :about 0.35 :low -1 :high 1)))))

(defpolicy link [pair/closeness pair/overlap pair/conflicts pair/updates pair/negates pair/update-words pair/same-numbers
                 pair/same-order]
  "A near-duplicate, of the three nearest; or what contradicts or updates it. What differs in a number (a port, a date,
   a version) is no duplicate, however near it is."
  (cond pair/updates "updates"
        (and pair/conflicts pair/same-numbers) "contradicts"
        (and pair/update-words (one-word-changed pair/closeness pair/overlap)) "updates"
        (and pair/negates (one-word-changed pair/closeness pair/overlap)) "contradicts"
        (<= pair/closeness (param :near 0.8 :low -1 :high 1)) "none"
        (and (> pair/closeness (param :duplicate 0.92 :low -1 :high 1)) pair/same-numbers pair/same-order) "duplicate"
        else "related"))

(defpolicy resolve [pair/conflicts pair/updates pair/negates pair/update-words]
  "A contradiction deprecates the old one; near-duplicates merge."
  (if (or pair/conflicts pair/updates pair/negates pair/update-words) "keep-new" "merge"))

; A prompt is to hold just enough, and the original gives no floor. Measured by experiments/nearness.py on 705 questions of
; LoCoMo: above 0.3 is nine tenths of the evidence and a fifth of what is about something else. What was learned of files
; of other modules has to be as near as only a twentieth of the unrelated is to the median of the evidence.
(defpolicy inject [tier kind pinned in-task called elsewhere injected nearness rank]
  "Tier 1: the map, what is pinned, conventions and decisions; tier 2: what belongs to the modules that the task names;
   tier 3: what the task calls up or is about, never twice in a session. By rank within each."
  (let [fits (or called
                 (>= nearness (if elsewhere
                                  (param :fits-elsewhere 0.6 :low -1 :high 1)
                                  (param :fits 0.3 :low -1 :high 1))))
        wanted (case tier
                 1 (or pinned (in kind ["codebase-map" "convention" "decision"]))
                 2 in-task
                 else (and fits (not injected)))]
    (if wanted (/ 1 rank) 0)))
