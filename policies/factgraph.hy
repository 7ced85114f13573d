(require memlab.dialect *)

(pack factgraph
  "Entities and facts with a life cycle: staged, confirmed, superseded, retracted.")

; Three entities begin: those that the query names, then the nearest. Two hops between entities are three edges from the
; first entity to the facts of its neighbours: entity, fact, entity, fact. The original gives no nearness from which an
; entity is near; 0.4 is that of a seed of cascade. Where no entity is so near, the three nearest facts begin, from the same
; nearness.
(setting seeds 3)
(setting entity-seeds 3)
(setting entity-floor 0.4)
(setting anchors "entities-first")
(setting dense-candidates 3)
(setting lexical-candidates 0)
(setting maintain-after-session true)  ; promotion, decay and conflicts are settled after each conversation
(setting linking "now")
(setting spread-steps 3)
(setting spread-mode "cascade")
(setting fact-status "staged")
(setting infer-entities "names")
; The original names lives-in, status and prefers:theme; the others are of their kind. Not: uses, knows.
(setting single-valued "lives-in works-at status name age birthday prefers:* role timezone employer email phone")
(setting merge-access 1)  ; a fact that is told again was met again
(setting forgotten-as "deleted")
(setting context-days false)

; Relevance = confidence * source * time * usage. Ranking clamps the three factors, clean-up does not.

(defn source-factor [source]
  (case source
    "user-edit" 2
    "file" 1.5
    "system" 1.2
    else 1))

(defn time-factor [days]
  "A week of grace, then 5% a week."
  (pow 0.95 (/ (max 0 (- days 7)) 7)))

(defn usage-factor [access]
  (+ 1 (* 0.5 (log10 (+ access 1)))))

(defn relevance [confidence source days access]
  "For clean-up."
  (* confidence (source-factor source) (time-factor days) (usage-factor access)))

(defn clamped-relevance [confidence source days access]
  "For ranking."
  (* confidence
     (clamp (source-factor source) 0.5 2)
     (clamp (time-factor days) 0.5 1)
     (clamp (usage-factor access) 1 2)))

(defpolicy eligible [nearness hops]
  "Near enough to begin where no entity does, or reached from what began."
  (or (> hops 0) (>= nearness (param :near 0.4 :low -1 :high 1))))

(defpolicy seed-score [nearness]
  "Nearness alone."
  nearness)

(defpolicy spread [activation weight depth]
  "The subgraph of two hops around what begins. What arrives is divided by its distance, so that the facts of an anchor
   stand before those of its neighbours."
  (/ (* activation weight) depth))

(defpolicy cut [seed received]
  "What a candidate has of its own and what arrived over edges."
  (+ seed received))

(defpolicy recall-score [activation confidence source idle-days access status]
  "Relevance, weighted by what arrived from the anchor; what is staged counts half, what was superseded or retracted
   nothing."
  (* activation
     (clamped-relevance confidence source idle-days access)
     (case status
       "staged" 0.5
       ["active" "confirmed"] 1
       else 0)))

(defpolicy retention [elapsed-days]
  (time-factor elapsed-days))

(defpolicy promote [kind status confidence source elapsed-days access age-days ttl-days]
  "Confirmed at 3 accesses, and then only a user or a conflict retracts it; below 0.2 retracted, unless accessed 5 times.
   A memory of any kind is a fact here, but for turns of a conversation; what was given a time to live expires with it."
  (cond (not (in status ["active" "staged" "confirmed"])) status
        (if-null (>= age-days ttl-days) false) "expired"
        (= kind "turn") status
        (= status "confirmed") status
        (>= access 3) "confirmed"
        (and (< (relevance confidence source elapsed-days access) 0.2) (< access 5)) "retracted"
        else "staged"))

(defpolicy forget [status]
  "What was retracted is cleaned up."
  (= status "retracted"))

(defn two-values [same-subject same-predicate same-value single-valued]
  "A property that has one value at a time is given another."
  (if-null (and same-subject same-predicate single-valued (not same-value)) false))

(defn in-words [same-predicate]
  "One of the two names no predicate."
  (null? same-predicate))

(defpolicy link [pair/same-subject pair/same-predicate pair/same-value pair/single-valued pair/conflicts pair/updates]
  "By subject, predicate and value; of what is told in words alone by what both say."
  (cond (and pair/same-subject pair/same-predicate pair/same-value) "duplicate"
        (two-values pair/same-subject pair/same-predicate pair/same-value pair/single-valued) "contradicts"
        (and (in-words pair/same-predicate) pair/updates) "updates"
        (and (in-words pair/same-predicate) pair/conflicts) "contradicts"
        pair/same-subject "related"
        else "none"))

(defpolicy resolve [new/confidence pair/same-subject pair/same-predicate pair/same-value pair/single-valued
                    pair/conflicts pair/updates]
  "A surer new value supersedes the old one; duplicates merge."
  (cond (and pair/same-subject pair/same-predicate pair/same-value) "merge"
        (not (or (two-values pair/same-subject pair/same-predicate pair/same-value pair/single-valued)
                 (and (in-words pair/same-predicate) (or pair/conflicts pair/updates)))) "keep-both"
        (> new/confidence 0.9) "keep-new"
        else "keep-both"))
