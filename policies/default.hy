(require memlab.dialect *)

(pack memlab
  "The default: words and vectors, what the turns around say, who said it when, and statement before question.")

; The weights of recall-score come from experiments/fit_default_pack.py: the mean of a logistic regression and a listwise
; fit on half of LoCoMo and on eight chats of BEAM, each cross-validated by conversation, scaled so that the positive
; weights sum to about 1, and rounded. Those of takes-over are set by hand, on the pairs for development of
; experiments/outdated.py, and that of outdated on the same chats of BEAM. The cut was measured on the same half of LoCoMo,
; and BM25's k1 and b, the fusion and the damping before it; docs/benchmarks.md holds the figures.

(setting limit 10)
(setting dense-candidates 100)
(setting lexical-candidates 100)
(setting pool 100)
(setting language "english")
(setting bm25-k1 0.9)
(setting bm25-b 0.4)
(setting seeds 200)
(setting entity-seeds 0)
(setting spread-steps 1)
(setting spread-threshold 0)
(setting spread-mode "cascade")
(setting fan-out 10000)
(setting damping 0.5)
(setting base-half-life 30)

; Where it is rather certain that nothing answers, five are shown.
(setting known-floor 0.2)
(setting unknown-limit 5)

; One recall in five shows one memory more, drawn from the thirty ranks below: the log can then say what another policy
; would have been worth, and the ten that were asked for stay as they are.
(setting probe-rate 0.2)
(setting probe-depth 30)
(setting probe-floor 0.5)
(setting probes 1)

(defpolicy eligible [hops]
  "Everything that the question found or spreading reached."
  (>= hops 0))

(defpolicy seed-score [similarity lexical names-date]
  "Score fusion: with a small encoder it beats rank fusion. A memory of the day that is asked for leads on."
  (+ (* 0.5 (min-max similarity)) (* 0.5 (min-max lexical)) (* 0.2 (if-null names-date 0))))

(defpolicy spread [activation damping relation]
  "The turn before and the turn after carry part of the answer."
  (if (= relation "next") (* damping activation) 0))

(defpolicy cut [seed received session-seed session-lexical names-other]
  "What is scored: candidates of their own and their neighbours; of sessions that speak of it rather than of others."
  (+ seed
     received
     (* 0.3 (min-max session-seed))
     (* 0.15 (min-max session-lexical))
     (if names-other -0.3 0)))

(defpolicy recall-score [late similarity coverage around-lexical around-similarity session-lexical session-seed
                         before-coverage names-date names-other names-speaker speaker-role asks-you asks answers words
                         first-person names-things says-when asks-when says-number asks-how-many asks-now takes-over
                         says-others says-change corrects kind outdated asks-over-time]
  "Evidence in the memory, then around it, then when it was said, who said it and how. Of statements on one subject that
   one speaker made at different times, the later one rises to the older."
  (+ (* 0.134 (min-max late))               ; each word of the question has a word like it
     (* 0.05 late)                          ; whatever the others have
     (* 0.089 (min-max similarity))         ; it means the same
     (* 0.03 coverage)                      ; it uses the question's words
     (* 0.151 (min-max around-lexical))     ; and so do the turns around
     (* 0.026 (min-max around-similarity))  ; which mean the same, too
     (* 0.033 (min-max session-lexical))    ; its session speaks of it
     (* 0.089 (min-max session-seed))       ; its session holds a strong candidate
     (* 0.052 before-coverage)              ; it replies to the question's words
     (* 0.121 (if-null names-date 0))       ; it was said when the question says
     (if names-other -0.149 0)              ; the question is about someone else
     (if (= speaker-role "assistant")       ; an assistant repeats what it was told, at length
       (if asks-you -0.046 -0.16)           ; but it may be what is asked about
       0)
     (if asks -0.019 0)                     ; a question seldom holds the answer
     (if answers 0.015 0)                   ; what follows a question often does
     (* -0.019 (log (+ 1 words)))           ; a long text holds some of everything
     (if first-person 0.042 0)              ; who speaks of themselves says something
     (if (= speaker-role "other")           ; and so do people who name things
       (* 0.03 names-things)
       0)
     (if says-when 0.021 0)
     (if (and asks-when says-when) 0.053 0) ; a time for who asks when
     (if (and asks-how-many says-number) 0.063 0)
     (if asks-over-time 0                   ; what it says of that was put right later
       (* -0.5 outdated))
     (if (= kind "correction") corrects     ; it was made to lead what it corrects
       (if (and asks-now (not (or asks says-others names-other)))
         (* (cond                           ; what holds now was said later, above all if it says what changed
              (not names-speaker) (if says-change 0.3 0.1)
              (and says-change first-person) 0.15  ; of who is named, what they say of themselves
              else 0)
            (** (* 0.5 (+ (min-max late) (min-max similarity))) 2)
            takes-over)
         0))))

; A logistic regression of experiments/absence.py on the same conversations, with questions asked of the wrong one.
(defpolicy known [score late names-other names-speaker]
  "Who is named leads the others, were nobody named; else the best candidate has words like those of the question."
  (let [unnamed (+ score (if names-other 0.149 0))
        lead (- (slate-max (if names-other null unnamed)) (slate-max (if names-other unnamed null)))
        worth (slate-mean score)
        best (slate-max late)]
    (sigmoid (if (> (slate-max (if names-speaker 1 0)) 0)
               (+ 2.7 (if-null (- (* 14.7 lead) 5.3) 0) (* 8.2 worth) (* 2.2 best))
               (+ -12.3 (* 9.6 worth) (* 14.5 best))))))

(defpolicy explore [activation]
  "Probe by activation."
  (max 0 activation))

(defpolicy half-life [base-half-days]
  "One half-life for all."
  base-half-days)

; Between two recalls, and around them.
(setting triggers false)
(setting fact-status "active")
(setting mmr-weight 1)
(setting collapse-above 1)
(setting linking "off")
(setting link-candidates 5)
(setting destroy-certainty 0.9)
(setting conflict-closeness 1)
(setting edges-per-node 0)
(setting merge-gain 1)
(setting edge-gain 0)
(setting edge-pairs 45)  ; all pairs of ten
(setting tag-share 1)
(setting verify-coverage 0.25)
(setting admit-threshold 0.25)
(setting initial-confidence 0.8)
(setting session-writes 0)
(setting write-bytes 0)
(setting redact-cards false)  ; credentials are redacted whatever stands here
(setting redact-ibans false)
(setting redact-social-security false)
(setting redact-phones false)
(setting redact-emails false)
(setting tier-1-tokens 600)
(setting tier-2-tokens 1200)
(setting tier-3-tokens 30)
(setting context-days true)
(setting topic-closeness 0.3)
(setting refine-every 0)
(setting cluster-closeness 0)
(setting cluster-merge 0.5)
(setting consolidate-days 90)
(setting consolidate-least 5)
(setting consolidate-keep 0)
(setting summary-tokens 120)
(setting familiarity-start 0)
(setting familiarity-gain 0)
(setting trust-start 50)  ; neither trusted nor distrusted
(setting trust-gain 0)
(setting trust-loss 0)
(setting forgotten-as "forgotten")
(setting upkeep-hours 4)
(setting grace-days 30)

; Below: what happens to memories between recalls. Nothing here changes what a recall finds.

(defpolicy retention [elapsed-days half-life]
  "Half after one half-life without use, a quarter after two."
  (half-life-decay elapsed-days half-life))

(defpolicy reinforce [outcome]
  "A use is counted, and what was said of a memory stays as it was said."
  (update))

(defpolicy admit [tells-identity tells-preference tells-goal tells-event corrects greets commands asks-plainly]
  "What someone says about themselves, and what they put right; then statements; greetings, orders and questions last."
  (cond (or tells-identity tells-preference tells-goal tells-event corrects) 1
        (or greets commands asks-plainly) 0
        else 0.5))

(defpolicy link [pair/closeness pair/negates pair/update-words pair/same-numbers pair/same-order pair/restates]
  "Almost the same text is a duplicate, unless one of the two denies it, says what changed or holds other numbers. Of two
   others, one may make a statement of the other anew."
  (cond (and (> pair/closeness 0.85) pair/update-words) "updates"
        (and (> pair/closeness 0.85) pair/negates) "contradicts"
        (>= pair/restates 0.4) "restates"
        (< pair/closeness 0.6) "none"
        (<= pair/closeness 0.85) "related"
        (and (> pair/closeness 0.95) pair/same-numbers pair/same-order) "duplicate"
        else "similar"))

(defpolicy resolve [new/confidence old/confidence pair/negates pair/update-words]
  "Duplicates merge; of two that disagree the surer stays, the newer if both are as sure."
  (cond (not (or pair/negates pair/update-words)) "merge"
        (>= new/confidence old/confidence) "keep-new"
        else "keep-old"))

(defpolicy promote [status age-days ttl-days]
  "What was to live for a time expires when it is over; else a status changes only when someone says so."
  (if (if-null (>= age-days ttl-days) false) "expired" status))

(defpolicy forget []
  "Nothing is let go by itself."
  false)

(defpolicy label [retention]
  "How much is left of it, in a word."
  (cond (>= retention 0.8) "vivid"
        (>= retention 0.5) "clear"
        (>= retention 0.2) "hazy"
        else "fragment"))

(defpolicy consolidate [kind pinned importance access idle-days older-than]
  "What merely happened, was hardly ever used, and not for long; not what holds, nor what someone marked. The kind that a
   memory has when nobody says one is fact, and stays."
  (and (not pinned)
       (< importance 0.8)
       (<= access 2)
       (>= idle-days older-than)
       (case kind
         ["turn" "observation" "event" "feeling" "context" "session-insight" "task-outcome" "codebase-discovery"
          "pr-review" "pr-finding"] true
         else false)))

(defpolicy prune []
  "What was joined stays joined."
  false)

(defpolicy inject [rank injected]
  "By rank, and nothing twice in a session."
  (if injected 0 (/ 1 rank)))
