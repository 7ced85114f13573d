(require memlab.dialect *)

(pack associative
  "Spreading activation; what succeeded fades more slowly.")

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

; The design says nothing of conflicts: what contradicts is kept and joined, what ends another takes its place.
(from-pack cascade link resolve)

(defpolicy seed-score [closeness]
  "Activation starts from what is near the question."
  (max 0 closeness))

(defpolicy spread [activation weight damping]
  "A[j] += A[i] * W[i,j] * D."
  (* activation weight damping))

(defpolicy cut [seed received]
  "What a candidate has of its own and what arrived over edges."
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

; The original adds the item at every recall; a tenth of the chance is spread over the others, so that a log can tell more.
(setting probe-rate 1)
(setting probe-floor 0.1)

(defpolicy explore [tail-n access]
  "The first of the tail that was used fewer than five times, of a tail of three or more."
  (let [place (slate-rank (when (< access 5) 0))]
    (if (and (> tail-n 2) (= place 1)) 1 0)))

(defpolicy retention [energy elapsed-days half-life]
  "Energy at a time: energy * 0.5^(elapsed / half-life)."
  (* energy (half-life-decay elapsed-days half-life)))

; A full activation of 1 passes on weight * damping, and nothing below the threshold of 0.01 arrives: over an edge weaker
; than 0.01 / 0.7 it never does.
(defpolicy consolidate [kind pinned importance age-days older-than retention]
  "Old memories of any kind that are not important, once a quarter of their energy is left; a summary of summaries would
   say too little."
  (and (not pinned)
       (!= kind "summary")
       (< importance (param :important 0.8 :low 0 :high 2))
       (>= age-days older-than)
       (<= retention 0.25)))

(defpolicy prune [weight reinforcements age-days]
  "What is too weak to carry a full activation, was never strengthened and is older than the base half-life."
  (and (< (* 0.7 weight) 0.01) (= reinforcements 0) (>= age-days 30)))

(defpolicy label [age-days idle-days access]
  "Layers. Emerging is asked first: what is new and used once was also used within 7 days. A creation is no use."
  (cond (and (< age-days 7) (< access 2)) "emerging"
        (and (<= idle-days 7) (> access 0)) "active"
        (>= access 5) "stable"
        else "decaying"))
