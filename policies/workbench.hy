(require memlab.dialect *)

(pack workbench
  "Knowledge about a code base: nearness, freshness by kind, and use.")

(setting seeds 0)
(setting spread-steps 0)
(setting lexical-candidates 0)
(setting linking "now")
; The original gives no weight for its MMR. From 0.71 on, a second copy ranks above a different memory with four fifths of
; its score; below 0.65, an unrelated memory ranks above a second copy.
(setting mmr-weight 0.65)
(setting link-candidates 3)
(setting initial-confidence 0.5)
(setting session-writes 50)
(setting write-bytes 2048)
(setting visibility "by-creator")
; Written when a memory is stored, for use in prompts; it takes a twentieth of the time for storing and linking.
(setting write-summary true)
(setting tier-1-tokens 600)
(setting tier-2-tokens 1200)
(setting tier-3-tokens 30)
(setting context-days false)
(setting context-fill false)
; Tier 3 is fetched at an agent's request and shows no memory twice in a session.
(setting recall-again false)

(defpolicy eligible [same-branch]
  "Memories of the same branch or of no branch; those of unmerged branches stay there."
  same-branch)

(defpolicy seed-score [closeness]
  "Closeness to the query."
  closeness)

(defpolicy half-life [kind pinned]
  "Half-life in days by kind; conventions, decisions, feedback by people and pinned memories never decay."
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
  "Own seed-score plus activation received."
  (+ seed received))

; The original gives feedback by people the highest weight of all kinds, without a number. With a quarter more it ranks
; above a memory of another kind that is equally fresh and up to a quarter nearer.
(defpolicy recall-score [closeness recency access kind]
  "0.6 closeness, 0.25 freshness and 0.15 use up to twenty accesses; a quarter more for feedback by people."
  (* (if (= kind "human-feedback") 1.25 1)
     (+ (* 0.6 closeness)
        (* 0.25 recency)
        (* 0.15 (min (/ access 20) 1)))))

(defpolicy retention [elapsed-days half-life]
  "Exponential decay: e^(-rate days) with rate = ln 2 / half-life."
  (half-life-decay elapsed-days half-life))

(defpolicy reinforce [outcome confidence]
  "Confidence grows when a memory is recalled and drops when a user calls it wrong; the original gives no numbers."
  (case outcome
    ["recalled" "success"] (update :confidence (+ confidence (* 0.05 (- 1 confidence))))
    ["fail" "rejected"] (update :confidence (* 0.5 confidence))
    else (update)))

; The original gives no threshold for a contradiction. Contradicting texts are less near, because the decisive words differ:
; two sentences that differ in one word may share only half of their words.

(defn one-word-changed [closeness overlap]
  (or (> closeness (param :near 0.8 :low -1 :high 1))
      (and (>= overlap (param :shared 0.5 :low 0 :high 1))
           (>= closeness (param :about 0.35 :low -1 :high 1)))))

(defpolicy link [pair/closeness pair/overlap pair/conflicts pair/updates pair/negates pair/update-words pair/same-numbers
                 pair/same-order]
  "Near-duplicates among the three nearest memories, contradictions and updates. Texts that differ in a number (a port, a
   date, a version) are never duplicates."
  (cond pair/updates "updates"
        (and pair/conflicts pair/same-numbers) "contradicts"
        (and pair/update-words (one-word-changed pair/closeness pair/overlap)) "updates"
        (and pair/negates (one-word-changed pair/closeness pair/overlap)) "contradicts"
        (<= pair/closeness (param :near 0.8 :low -1 :high 1)) "none"
        (and (> pair/closeness (param :duplicate 0.92 :low -1 :high 1)) pair/same-numbers pair/same-order) "duplicate"
        else "related"))

(defpolicy resolve [pair/conflicts pair/updates pair/negates pair/update-words]
  "A contradiction supersedes the old memory; near-duplicates are merged."
  (if (or pair/conflicts pair/updates pair/negates pair/update-words) "keep-new" "merge"))

; A prompt should contain just enough, and the original gives no threshold. Measured by experiments/nearness.py on 705
; questions of LoCoMo: 90% of the evidence and 20% of unrelated memories are above 0.3. Memories about files of other modules
; need 0.6, which 5% of unrelated memories and half of the evidence reach.
(defpolicy inject [tier kind pinned in-task called elsewhere injected nearness rank]
  "Tier 1: the map, pinned memories, conventions and decisions. Tier 2: memories of the modules that the task names. Tier 3:
   memories that the task triggers or is near to, never twice in a session. By rank within each tier."
  (let [fits (or called
                 (>= nearness (if elsewhere
                                  (param :fits-elsewhere 0.6 :low -1 :high 1)
                                  (param :fits 0.3 :low -1 :high 1))))
        wanted (case tier
                 1 (or pinned (in kind ["codebase-map" "convention" "decision"]))
                 2 in-task
                 else (and fits (not injected)))]
    (if wanted (/ 1 rank) 0)))
