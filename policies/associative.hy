(require memlab.dialect *)

(pack associative
  "Spreading activation; successful memories decay more slowly.")

(setting seeds 10)
(setting spread-steps 3)
(setting spread-mode "energy")
(setting spread-threshold 0.01)
(setting damping (param :damping 0.7 :low 0 :high 1))
(setting base-half-life 30)
(setting edge-gain 0.05)
(setting coactivation-gain 0.05)
(setting linking "later")
(setting open-words true)
(setting context-days false)
(setting context-fill false)

; The design does not mention conflicts. Contradicting memories are kept and linked; an update supersedes the old memory.
(from-pack cascade link resolve)

(defpolicy seed-score [closeness]
  "Closeness to the query, from which activation starts."
  (max 0 closeness))

(defpolicy spread [activation weight damping]
  "A[j] += A[i] * W[i,j] * D."
  (* activation weight damping))

(defpolicy cut [seed received]
  "Own seed-score plus activation received."
  (+ seed received))

(defpolicy recall-score
  (lambda (activation recency importance access success fail)
    (+ (* 0.4 activation)
       (* 0.3 recency)
       (* 0.2 importance)
       (* 0.1 (/ success (+ success fail 1))))))

(defpolicy half-life
  (lambda (success fail energy importance recency_ms base_half_ms)
    (let* ((total (+ success fail 1))
           (ratio (/ success total))
           (scale (+ 0.5 (* 1.5 ratio))))
      (* base_half_ms scale))))

; The original adds the item to every recall. A tenth of the probability is spread over the other candidates, so that a log
; supports the evaluation of more policies.
(setting probe-rate 1)
(setting probe-floor 0.1)

(defpolicy explore [tail-n access]
  "The best candidate of the tail with fewer than five accesses, if the tail has three or more candidates."
  (let [place (slate-rank (when (< access 5) 0))]
    (if (and (> tail-n 2) (= place 1)) 1 0)))

(defpolicy retention [energy elapsed-days half-life]
  "Current energy: energy * 0.5^(elapsed / half-life)."
  (* energy (half-life-decay elapsed-days half-life)))

; The full activation 1 passes weight * damping over an edge, and less than the threshold 0.01 is dropped. An edge with a
; weight below 0.01 / 0.7 therefore never passes anything.
(defpolicy consolidate [kind pinned importance age-days older-than retention]
  "Old, unimportant memories of any kind that retain at most a quarter of their energy. Summaries are excluded, because a
   summary of summaries would say too little."
  (and (not pinned)
       (!= kind "summary")
       (< importance (param :important 0.8 :low 0 :high 2))
       (>= age-days older-than)
       (<= retention 0.25)))

(defpolicy prune [weight reinforcements age-days]
  "Edges too weak to pass a full activation, never strengthened, and older than the base half-life."
  (and (< (* 0.7 weight) 0.01) (= reinforcements 0) (>= age-days 30)))

(defpolicy label [age-days idle-days access]
  "Layers of a memory. Emerging comes first, because a new memory used once was also used within 7 days. The creation does
   not count as a use."
  (cond (and (< age-days 7) (< access 2)) "emerging"
        (and (<= idle-days 7) (> access 0)) "active"
        (>= access 5) "stable"
        else "decaying"))

(defpolicy inject [rank injected]
  "Priority by rank; nothing is injected twice in a session."
  (if injected 0 (/ 1 rank)))
