(require memlab.dialect *)

(pack factgraph
  "Entities and facts with a life cycle: staged, confirmed, superseded, retracted.")

; Activation starts at three entities: those that the query names, then the nearest. Two hops between entities are three
; edges from the first entity to the facts of its neighbours: entity, fact, entity, fact. The original gives no threshold
; for the nearness of an entity; 0.4 is the threshold for seeds in cascade. If no entity is near enough, activation starts at
; the three nearest facts above the same threshold.
(setting seeds 3)
(setting entity-seeds 3)
(setting entity-floor 0.4)
(setting anchors "entities-first")
(setting dense-candidates 3)
(setting lexical-candidates 0)
(setting maintain-after-session true)  ; promotion, decay and conflicts are handled after each conversation
(setting linking "now")
(setting spread-steps 3)
(setting spread-mode "cascade")
(setting fact-status "staged")
(setting infer-entities "names")
; The original names lives-in, status and prefers:theme; the others are similar. Excluded: uses, knows.
(setting single-valued "lives-in works-at status name age birthday prefers:* role timezone employer email phone")
(setting merge-access 1)  ; a repeated fact counts as an access
(setting forgotten-as "deleted")
(setting context-days false)
(setting context-fill false)

; Relevance = confidence * source * time * usage. Ranking clamps the last three factors, clean-up does not.

(defn source-factor [source]
  (case source
    "user-edit" 2
    "file" 1.5
    "system" 1.2
    else 1))

(defn time-factor [days]
  "Factor of age: 1 for a week, then 5% less each week."
  (pow 0.95 (/ (max 0 (- days 7)) 7)))

(defn usage-factor [access]
  (+ 1 (* 0.5 (log10 (+ access 1)))))

(defn relevance [confidence source days access]
  "Relevance for clean-up."
  (* confidence (source-factor source) (time-factor days) (usage-factor access)))

(defn clamped-relevance [confidence source days access]
  "Relevance for ranking, with clamped factors."
  (* confidence
     (clamp (source-factor source) 0.5 2)
     (clamp (time-factor days) 0.5 1)
     (clamp (usage-factor access) 1 2)))

(defpolicy eligible [nearness hops]
  "Facts above the nearness threshold, and facts reached from the seeds."
  (or (> hops 0) (>= nearness (param :near 0.4 :low -1 :high 1))))

(defpolicy seed-score [nearness]
  "Nearness to the query."
  nearness)

(defpolicy spread [activation weight depth]
  "Activation divided by the distance from the seed, within two hops. Facts of an anchor entity therefore rank above
   those of its neighbours."
  (/ (* activation weight) depth))

(defpolicy cut [seed received]
  "Own seed-score plus activation received."
  (+ seed received))

(defpolicy recall-score [activation confidence source idle-days access status]
  "Relevance times activation from the anchor. Staged facts count half; superseded and retracted facts count nothing."
  (* activation
     (clamped-relevance confidence source idle-days access)
     (case status
       "staged" 0.5
       ["active" "confirmed"] 1
       else 0)))

(defpolicy retention [elapsed-days]
  (time-factor elapsed-days))

(defpolicy promote [kind status confidence source elapsed-days access age-days ttl-days]
  "Confirmed at 3 accesses; only a user or a conflict retracts a confirmed fact. Retracted below a relevance of 0.2, unless
   accessed 5 times. Every memory except a turn counts as a fact, and expires at the end of its time to live."
  (cond (not (in status ["active" "staged" "confirmed"])) status
        (if-null (>= age-days ttl-days) false) "expired"
        (= kind "turn") status
        (= status "confirmed") status
        (>= access 3) "confirmed"
        (and (< (relevance confidence source elapsed-days access) 0.2) (< access 5)) "retracted"
        else "staged"))

(defpolicy forget [status]
  "Retracted facts are removed."
  (= status "retracted"))

(defn two-values [same-subject same-predicate same-value single-valued]
  "True if two facts give a single-valued property different values."
  (if-null (and same-subject same-predicate single-valued (not same-value)) false))

(defn in-words [same-predicate]
  "True if at least one memory has no predicate."
  (null? same-predicate))

(defpolicy link [pair/same-subject pair/same-predicate pair/same-value pair/single-valued pair/conflicts pair/updates]
  "By subject, predicate and value; for memories without a predicate by the content of both texts."
  (cond (and pair/same-subject pair/same-predicate pair/same-value) "duplicate"
        (two-values pair/same-subject pair/same-predicate pair/same-value pair/single-valued) "contradicts"
        (and (in-words pair/same-predicate) pair/updates) "updates"
        (and (in-words pair/same-predicate) pair/conflicts) "contradicts"
        pair/same-subject "related"
        else "none"))

(defpolicy resolve [new/confidence pair/same-subject pair/same-predicate pair/same-value pair/single-valued
                    pair/conflicts pair/updates]
  "A new value with a confidence above 0.9 supersedes the old one; duplicates are merged."
  (cond (and pair/same-subject pair/same-predicate pair/same-value) "merge"
        (not (or (two-values pair/same-subject pair/same-predicate pair/same-value pair/single-valued)
                 (and (in-words pair/same-predicate) (or pair/conflicts pair/updates)))) "keep-both"
        (> new/confidence 0.9) "keep-new"
        else "keep-both"))

(defpolicy inject [rank injected]
  "Priority by rank; nothing is injected twice in a session."
  (if injected 0 (/ 1 rank)))
