(require memlab.dialect *)

(pack companion
  "Assistant that knows its user: nearness, vividness and linked memories.")

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
(setting context-fill false)

; Only an agent's own memories lose strength. Facts about the user (personal, preference, goal, trait) stay as vivid as they
; were told and are not deleted when unused.

(defn of-the-user [kind]
  (in kind ["personal" "preference" "goal" "trait"]))

(defn daily-loss [kind emotional-weight]
  "Loss of strength per day: max(2, 5 - 0.03 emotional weight); 0 for a user fact."
  (if (of-the-user kind) 0 (max 2 (- 5 (* 0.03 emotional-weight)))))

(defn strength-now [kind strength emotional-weight days]
  "Current strength: strength at the last recall minus the loss since then."
  (clamp (- strength (* (daily-loss kind emotional-weight) days)) 0 100))

(defpolicy eligible [nearness hops]
  "Memories above the nearness threshold and memories linked to them within two hops."
  (or (> hops 0) (>= nearness (param :near 0.3 :low -1 :high 1))))

(defpolicy seed-score [nearness]
  nearness)

(defpolicy spread [activation depth relation]
  "Half of the activation to linked memories within two hops; a common tag does not count as a link."
  (if (and (<= depth 2) (!= relation "has-tag")) (* 0.5 activation) 0))

(defpolicy cut [seed received]
  "Own seed-score plus activation received."
  (+ seed received))

(defpolicy recall-score [nearness kind strength emotional-weight idle-days]
  "0.6 nearness plus 0.4 current strength; emotional weight slows the loss of strength."
  (+ (* (param :similarity-weight 0.6 :low 0 :high 1) nearness)
     (* (param :strength-weight 0.4 :low 0 :high 1) (/ (strength-now kind strength emotional-weight idle-days) 100))))

(defpolicy retention [kind strength emotional-weight elapsed-days]
  "Current strength as a share of 100."
  (/ (strength-now kind strength emotional-weight elapsed-days) 100))

(defpolicy reinforce [outcome kind strength emotional-weight elapsed-days]
  "A recall adds 5 to the current strength."
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
  "Memories without remaining strength."
  (<= (strength-now kind strength emotional-weight elapsed-days) 0))

(defpolicy admit [tells-identity tells-preference tells-goal tells-event greets holds-code commands asks-plainly]
  "Statements of speakers about themselves get 0.8, the confidence of a user fact: a reason to store outweighs every reason
   to skip. Utterances with neither reason stay below the threshold."
  (cond (or tells-identity tells-preference tells-goal tells-event) 0.8
        (or greets holds-code commands asks-plainly) 0
        else (param :neither 0.4 :low 0 :high 1)))

; Two decisions that the original leaves open: a memory with words for a change is an update even if it also denies the old
; one; and two memories conflict if one denies the other or if they give a single-valued property two values.

; A user fact belongs to all agents, so a fact told twice becomes one fact with two sources. An agent's memories are its
; own, and similar ones are kept.

(defn same-fact [new-kind old-kind closeness overlap same-order same-numbers negates update-words
                 same-subject same-predicate same-value]
  "True if both are one fact about the user: same property and value, or same words in the same order."
  (and (of-the-user new-kind)
       (of-the-user old-kind)
       (not negates)
       (not update-words)
       (or (if-null (and same-subject same-predicate same-value) false)
           (and (> closeness (param :similar 0.85 :low -1 :high 1)) (>= overlap 1) same-order same-numbers))))

(defpolicy link [new/kind old/kind pair/closeness pair/overlap pair/same-order pair/same-numbers pair/negates
                 pair/update-words pair/same-subject pair/same-predicate pair/same-value pair/conflicts pair/updates]
  "Above 0.85 a repetition, an update or a denial; from 0.6 on related. Updates and conflicts of short statements follow
   from the content of both texts at any closeness."
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
  "Repeated facts are merged. Of two conflicting memories the new one stays if the user stated it or if it is at least as
   confident; otherwise both are merged, or the old one stays if one denies the other."
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

(defpolicy inject [rank injected]
  "Priority by rank; nothing is injected twice in a session."
  (if injected 0 (/ 1 rank)))
