(require memlab.dialect *)

(pack companion
  "An assistant that knows its user: nearness and vividness, and what is linked to it.")

(setting seeds 10)
(setting spread-steps 2)
(setting spread-mode "cascade")
(setting linking "now")
(setting merge-gain 0)  ; strength is vividness here
(setting admit-threshold 0.5)
(setting conflict-closeness 0.8)
(setting initial-confidence 0.8)
(setting forgotten-as "deleted")
(setting upkeep-hours 4)
(setting familiarity-gain 0.01)
(setting trust-gain 1)
(setting trust-loss 2)
(setting context-days false)

; Strength is what an agent's memories have. What is known of the user (personal, preference, goal, trait) has none that
; could fade: it stays as vivid as it was told, and is not deleted for being left alone.

(defn of-the-user [kind]
  (in kind ["personal" "preference" "goal" "trait"]))

(defn daily-loss [kind emotional-weight]
  "max(2, 5 - 0.03 feeling) a day; nothing of a user fact."
  (if (of-the-user kind) 0 (max 2 (- 5 (* 0.03 emotional-weight)))))

(defn strength-now [kind strength emotional-weight days]
  "Strength at the last recall, less what was lost since."
  (clamp (- strength (* (daily-loss kind emotional-weight) days)) 0 100))

(defpolicy eligible [nearness hops]
  "Near enough, or linked within two hops to what is."
  (or (> hops 0) (>= nearness (param :near 0.3 :low -1 :high 1))))

(defpolicy seed-score [nearness]
  nearness)

(defpolicy spread [activation depth relation]
  "Linked memories within two hops come along; a common tag is no link."
  (if (and (<= depth 2) (!= relation "has-tag")) (* 0.5 activation) 0))

(defpolicy cut [seed received]
  "What a candidate has of its own and what arrived over edges."
  (+ seed received))

(defpolicy recall-score [nearness kind strength emotional-weight idle-days]
  "0.6 nearness and 0.4 strength as it stands now; feeling slows its fading."
  (+ (* (param :similarity-weight 0.6 :low 0 :high 1) nearness)
     (* (param :strength-weight 0.4 :low 0 :high 1) (/ (strength-now kind strength emotional-weight idle-days) 100))))

(defpolicy retention [kind strength emotional-weight elapsed-days]
  "Strength as it stands, as a share."
  (/ (strength-now kind strength emotional-weight elapsed-days) 100))

(defpolicy reinforce [outcome kind strength emotional-weight elapsed-days]
  "A recall adds 5 to the strength as it stands."
  (if (= outcome "recalled")
      (update :strength (min 100 (+ 5 (strength-now kind strength emotional-weight elapsed-days))))
      (update)))

(defpolicy label [kind strength emotional-weight elapsed-days]
  (let [now (strength-now kind strength emotional-weight elapsed-days)]
    (cond (>= now 80) "vivid"
          (>= now 50) "clear"
          (>= now 20) "hazy"
          else "fragment")))

(defpolicy forget [kind strength emotional-weight elapsed-days]
  "What has no strength left."
  (<= (strength-now kind strength emotional-weight elapsed-days) 0))

(defpolicy admit [tells-identity tells-preference tells-goal tells-event greets holds-code commands asks-plainly]
  "What someone says about themselves, at the confidence of a user fact, 80 of 100: a reason to extract wins over every
   reason to skip. What gives neither reason stays below the threshold."
  (cond (or tells-identity tells-preference tells-goal tells-event) 0.8
        (or greets holds-code commands asks-plainly) 0
        else (param :neither 0.4 :low 0 :high 1)))

; Two readings that the original leaves open: what says that something changed is an update even if it also denies, and
; a pair conflicts when one of the two denies the other, or when a property that has one value is given two.

; A user fact belongs to all agents, so that one which is told twice is one fact with two sources. What an agent
; remembers is its own, and stays beside what it remembers alike.

(defn same-fact [new-kind old-kind closeness overlap same-order same-numbers negates update-words
                 same-subject same-predicate same-value]
  "The same of the user again: the same property and value, or the same words in the same order."
  (and (of-the-user new-kind)
       (of-the-user old-kind)
       (not negates)
       (not update-words)
       (or (if-null (and same-subject same-predicate same-value) false)
           (and (> closeness (param :similar 0.85 :low -1 :high 1)) (>= overlap 1) same-order same-numbers))))

(defpolicy link [new/kind old/kind pair/closeness pair/overlap pair/same-order pair/same-numbers pair/negates
                 pair/update-words pair/same-subject pair/same-predicate pair/same-value pair/conflicts pair/updates]
  "Above 0.85 the same thing, said again, changed or denied; from 0.6 on related. What a short statement excludes or ends
   is told by what both say, however near they are."
  (cond pair/updates "updates"
        pair/conflicts "contradicts"
        (same-fact new/kind old/kind pair/closeness pair/overlap pair/same-order pair/same-numbers pair/negates
                   pair/update-words pair/same-subject pair/same-predicate pair/same-value) "duplicate"
        (< pair/closeness (param :related 0.6 :low -1 :high 1)) "none"
        (<= pair/closeness (param :similar 0.85 :low -1 :high 1)) "related"
        pair/update-words "updates"
        pair/negates "contradicts"
        else "similar"))

(defpolicy resolve [new/kind old/kind pair/overlap pair/same-order pair/same-numbers pair/update-words new/provenance new/confidence old/confidence pair/closeness pair/negates
                    pair/same-subject pair/same-predicate pair/same-value pair/single-valued pair/conflicts pair/updates]
  "A fact told again is one; of two that conflict the new one stays if the user stated it or it is as sure; else both
   merge, or if one denies, the old one stays."
  (let [two-values (and pair/same-subject pair/same-predicate pair/single-valued (not pair/same-value))
        conflict (or pair/conflicts
                     pair/updates
                     (and (> pair/closeness (param :conflict 0.8 :low -1 :high 1)) (or pair/negates two-values)))]
    (cond pair/updates "keep-new"
          (same-fact new/kind old/kind pair/closeness pair/overlap pair/same-order pair/same-numbers pair/negates
                     pair/update-words pair/same-subject pair/same-predicate pair/same-value) "merge"
          (not (if-null conflict false)) "keep-both"
          (or (= new/provenance "user-stated") (>= new/confidence old/confidence)) "keep-new"
          (not pair/negates) "merge"
          else "keep-old")))
