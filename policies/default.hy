(require memlab.dialect *)

(pack memlab
  "The default: meaning and words of the memory, its context, its speaker and time, and corrections.")

; The weights of recall-score come from experiments/fit_default_pack.py: the mean of a logistic regression and a listwise
; fit on half of LoCoMo and on eight chats of BEAM, each cross-validated by conversation, scaled so that the positive
; weights sum to about 1, and rounded. The weights of says-rule and of an assistant that is asked were set later, on twelve
; chats of BEAM, with the other weights kept. Those of takes-over were set by hand on the development pairs of
; experiments/outdated.py, and that of outdated on the same chats of BEAM. The cut, BM25's k1 and b, the fusion of scores
; and the damping were chosen on the same half of LoCoMo; docs/benchmarks.md has the figures.

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

; If the pool probably contains no answer, a recall shows five results instead of ten.
(setting known-floor 0.2)
(setting unknown-limit 5)

; One recall in five shows one additional memory, drawn from the thirty ranks below the results. Its logged probability
; lets an evaluation estimate other policies; the ten requested results stay unchanged.
(setting probe-rate 0.2)
(setting probe-depth 30)
(setting probe-floor 0.5)
(setting probes 1)

(defpolicy eligible [hops]
  "All memories that the search found or spreading reached."
  (>= hops 0))

(defpolicy seed-score [similarity lexical names-date]
  "Score fusion of similarity and words, plus a bonus for the date that the query names. With a small encoder score
   fusion beats rank fusion."
  (+ (* 0.5 (min-max similarity)) (* 0.5 (min-max lexical)) (* 0.2 (if-null names-date 0))))

(defpolicy spread [activation damping relation]
  "Activation passes to the turn before and the turn after, which often contain part of the answer."
  (if (= relation "next") (* damping activation) 0))

(defpolicy cut [seed received session-seed session-lexical names-other]
  "Own seed-score plus activation received, with a bonus for relevant sessions and a penalty for another speaker."
  (+ seed
     received
     (* 0.3 (min-max session-seed))
     (* 0.15 (min-max session-lexical))
     (if names-other -0.3 0)))

(defpolicy recall-score [late similarity coverage around-lexical around-similarity session-lexical session-seed
                         before-coverage names-date names-other names-speaker speaker-role asks-you asks answers words
                         first-person names-things says-when asks-when says-number asks-how-many asks-now takes-over
                         says-others says-change says-rule corrects kind outdated asks-over-time reliance]
  "Relevance of the memory itself, then of its context, then of its speaker, time and form. Of statements by one speaker
   on one subject, the later ranks at the earlier one's relevance."
  (+ (* 2 reliance                           ; meaning: a good embedder decides where words are of no use
        (** (max 0 (- 1 (* 2 (slate-max coverage)))) 3)
        (min-max similarity))
     (* 0.134 (min-max late))               ; meaning: contains words similar to the query's
     (* 0.05 late)                          ; meaning: similar words, on an absolute scale
     (* 0.089 (min-max similarity))         ; meaning: the whole text is similar
     (* 0.03 coverage)                      ; words: uses the words of the query
     (* 0.151 (min-max around-lexical))     ; context: nearby turns use the query's words
     (* 0.026 (min-max around-similarity))  ; context: nearby turns are similar in meaning
     (* 0.033 (min-max session-lexical))    ; context: its session uses the query's words
     (* 0.089 (min-max session-seed))       ; context: its session has a strong candidate
     (* 0.052 before-coverage)              ; context: replies to the query's words
     (* 0.121 (if-null names-date 0))       ; people and time: dates from the time that the query names
     (if names-other -0.149 0)              ; people and time: the query is about another speaker
     (if (and (= speaker-role "assistant")  ; people and time: assistants repeat the user at length,
              (not asks-you))               ; unless the query asks what they said, or for a summary
       -0.16
       0)
     (if (and says-rule                     ; words: a rule or preference of the user, in few words,
              (= speaker-role "user")       ; among memories of other kinds
              (not asks-how-many))
       (* (/ 4 (+ 20 words))
          (- 1 (slate-mean (if says-rule 1 0))))
       0)
     (if asks -0.019 0)                     ; words: is itself a question
     (if answers 0.015 0)                   ; words: replies to a question
     (* -0.019 (log (+ 1 words)))           ; words: penalty for long texts
     (if first-person 0.042 0)              ; people and time: the speaker talks about themselves
     (if (= speaker-role "other")           ; words: names people, places or things
       (* 0.03 names-things)
       0)
     (if says-when 0.021 0)                 ; people and time: says when it happened
     (if (and asks-when says-when) 0.053 0) ; people and time: the query asks when, the memory says when
     (if (and asks-how-many says-number) 0.063 0) ; words: the query asks for a number, the memory has one
     (if asks-over-time 0                   ; corrections: the statement was restated later
       (* -0.5 outdated))
     (if (= kind "correction") corrects     ; corrections: ranks with the memory it corrects
       (if (and asks-now (not (or asks says-others names-other)))
         (* (cond                           ; corrections: replaces an older statement
              (not names-speaker) (if says-change 0.3 0.1)
              (and says-change first-person) 0.15  ; of a named speaker, only statements about themselves
              else 0)
            (** (* 0.5 (+ (min-max late) (min-max similarity))) 2)
            takes-over)
         0))))

; A logistic regression fitted by experiments/known.py on chats, documents and preferences in five languages. Its inputs are
; positions and differences within the pool, which carry over to other languages; similarity on the scale of English does
; not. Only a query that names a speaker falls below known-floor: without a name, a preference that shares no word with the
; query looks like no answer at all.
(defpolicy known [score late coverage names-other names-speaker]
  "Probability of an answer. If the query names a speaker, it depends on the lead of that speaker's candidates over the
   others and on the word similarity of the first candidate; otherwise on the words of the query that the first has."
  (let [unnamed (+ score (if names-other 0.149 0))
        lead (- (slate-max (if names-other null unnamed)) (slate-max (if names-other unnamed null)))
        first (= (slate-rank score) 1)]
    (sigmoid (if (> (slate-max (if names-speaker 1 0)) 0)
               (+ 0.8 (if-null (- (* 9.2 lead) 1.5) 0) (if-null (slate-max (if first late null)) 0))
               (+ -0.7 (* 4.8 (if-null (slate-max (if first coverage null)) 0)))))))

(defpolicy explore [activation]
  "Probability of a probe proportional to its activation."
  (max 0 activation))

(defpolicy half-life [base-half-days]
  "The same half-life for every memory."
  base-half-days)

; Settings of writing, linking, contexts and upkeep.
(setting triggers false)
(setting fact-status "active")
(setting mmr-weight 1)
(setting collapse-above 1)
(setting linking "corrections")
(setting link-candidates 5)
(setting destroy-certainty 0.9)
(setting conflict-closeness 1)
(setting edges-per-node 0)
(setting merge-gain 1)
(setting edge-gain 0)
(setting edge-pairs 45)  ; all 45 pairs of ten results
(setting tag-share 1)
(setting verify-coverage 0.25)
(setting admit-threshold 0.25)
(setting initial-confidence 0.8)
(setting session-writes 0)
(setting write-bytes 0)
(setting redact-cards false)  ; credentials are redacted in any case
(setting redact-ibans false)
(setting redact-social-security false)
(setting redact-phones false)
(setting redact-emails false)
(setting tier-1-tokens 600)
(setting tier-2-tokens 1200)
(setting tier-3-tokens 30)
(setting context-days true)
(setting context-fill true)
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

; The policies below change memories between recalls. They do not affect the results of a recall.

(defpolicy retention [elapsed-days half-life]
  "Exponential decay: 1/2 after one half-life without use, 1/4 after two."
  (half-life-decay elapsed-days half-life))

(defpolicy reinforce [outcome]
  "A use is counted and changes no field of the memory."
  (update))

(defpolicy admit [tells-identity tells-preference tells-goal tells-event corrects greets commands asks-plainly]
  "Statements of speakers about themselves and corrections first, then other statements, then greetings, commands and
   questions."
  (cond (or tells-identity tells-preference tells-goal tells-event corrects) 1
        (or greets commands asks-plainly) 0
        else 0.5))

(defpolicy link [new/kind pair/closeness pair/conflicts pair/updates pair/negates pair/update-words pair/same-numbers
                 pair/same-order pair/restates]
  "A statement that reports a change updates the statement that it ends; a correction contradicts a statement that it
   denies. Nearly equal texts are duplicates, unless one denies the other, names a change or has other numbers. Of two
   other texts, one may restate a statement of the other."
  (cond pair/updates "updates"
        (and (= new/kind "correction") (or pair/conflicts pair/negates)) "contradicts"
        (and (> pair/closeness 0.85) pair/update-words) "updates"
        (and (> pair/closeness 0.85) pair/negates) "contradicts"
        (>= pair/restates 0.4) "restates"
        (< pair/closeness 0.6) "none"
        (<= pair/closeness 0.85) "related"
        (and (> pair/closeness 0.95) pair/same-numbers pair/same-order) "duplicate"
        else "similar"))

(defpolicy resolve [new/confidence old/confidence pair/updates pair/negates pair/update-words]
  "A statement ends what it updates, unless the older one has more confidence. Duplicates are merged. Of two conflicting
   memories the one with more confidence stays; the newer if equal."
  (cond pair/updates (if (>= new/confidence old/confidence) "keep-new" "keep-both")
        (not (or pair/negates pair/update-words)) "merge"
        (>= new/confidence old/confidence) "keep-new"
        else "keep-old"))

(defpolicy promote [status age-days ttl-days]
  "A memory expires at the end of its time to live. Otherwise its status changes only by an explicit call."
  (if (if-null (>= age-days ttl-days) false) "expired" status))

(defpolicy forget []
  "No memory is forgotten automatically."
  false)

(defpolicy label [retention]
  "Label of the remaining retention."
  (cond (>= retention 0.8) "vivid"
        (>= retention 0.5) "clear"
        (>= retention 0.2) "hazy"
        else "fragment"))

(defpolicy consolidate [kind pinned importance access idle-days older-than]
  "Unimportant events and turns, recalled at most twice and idle for long, may be summarised. Facts, the default kind, and
   memories that a user marked stay."
  (and (not pinned)
       (< importance 0.8)
       (<= access 2)
       (>= idle-days older-than)
       (case kind
         ["turn" "observation" "event" "feeling" "context" "session-insight" "task-outcome" "codebase-discovery"
          "pr-review" "pr-finding"] true
         else false)))

(defpolicy prune []
  "No edge is removed."
  false)

; What an agent learned at work competes by more than rank, because most of it never helps again. The exponents were chosen
; on nine labelled lives of a coding agent (docs/benchmarks/chats.md). Others keep the priority that was measured on chats.
(defpolicy inject [tier called rank share tokens injected kind confidence closeness coverage]
  "Priority by rank, less for long memories, because a budget holds fewer of them; nothing twice in a session, and no
   result with less than a share of the best score. Lessons of work also by confidence, meaning and words."
  (if (or injected
          (and (> tier 1) (not called) (< share (param :least 0.1 :low 0 :high 1))))
      0
      (case kind
        ["convention" "correction" "human-feedback" "gotcha" "environment-quirk" "learning" "codebase-discovery"
         "context"]
        (/ (* (** confidence 4) (exp (+ (* 3 closeness) (* 8 coverage) -1.5)))
           (* (** rank 0.5) (** (+ tokens 8) 0.8)))
        else (/ 1 (* rank (+ tokens 8))))))
