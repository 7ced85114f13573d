(require memlab.dialect *)

(pack fsrs
  "FSRS-6: the stability of a memory decides how slowly it is forgotten and how much each use adds.")

; Open Spaced Repetition, FSRS-6 (the scheduler of Anki); Ye, Su and Cao, "A stochastic shortest path algorithm for
; optimizing spaced repetition scheduling", KDD 2022. Weights, bounds and the order of every operation are those of
; py-fsrs 6.3.2, so that stability, difficulty and retrievability equal its numbers; like py-fsrs, powers of e are powers
; of a constant. Days are whole days of 24 hours, and a use within 24 hours counts as the same day. They are counted from
; the previous use, rated or not; if every use is rated, that is the last review.

(setting context-fill false)

(defn w0 [] "Stability after a first again, days." (param :w0 0.212 :low 0.001 :high 100))
(defn w1 [] "Stability after a first hard, days." (param :w1 1.2931 :low 0.001 :high 100))
(defn w2 [] "Stability after a first good, days." (param :w2 2.3065 :low 0.001 :high 100))
(defn w3 [] "Stability after a first easy, days." (param :w3 8.2956 :low 0.001 :high 100))
(defn w4 [] "Difficulty after a first again." (param :w4 6.4133 :low 1 :high 10))
(defn w5 [] "Decrease of the first difficulty with the rating." (param :w5 0.8334 :low 0.001 :high 4))
(defn w6 [] "Change of the difficulty by a rating." (param :w6 3.0194 :low 0.001 :high 4))
(defn w7 [] "Reversion of the difficulty towards that of a first easy." (param :w7 0.001 :low 0.001 :high 0.75))
(defn w8 [] "Logarithm of the growth of stability after a success." (param :w8 1.8722 :low 0 :high 4.5))
(defn w9 [] "Decrease of the growth with stability." (param :w9 0.1666 :low 0 :high 0.8))
(defn w10 [] "Increase of the growth with the probability of having forgotten." (param :w10 0.796 :low 0.001 :high 3.5))
(defn w11 [] "Scale of the stability after a lapse." (param :w11 1.4835 :low 0.001 :high 5))
(defn w12 [] "Decrease of the stability after a lapse with difficulty." (param :w12 0.0614 :low 0.001 :high 0.25))
(defn w13 [] "Increase of the stability after a lapse with the stability before." (param :w13 0.2629 :low 0.001 :high 0.9))
(defn w14 [] "Increase of the stability after a lapse with the probability of having forgotten." (param :w14 1.6483 :low 0 :high 4))
(defn w15 [] "Factor of the growth after the rating hard." (param :w15 0.6014 :low 0 :high 1))
(defn w16 [] "Factor of the growth after the rating easy." (param :w16 1.8729 :low 1 :high 6))
(defn w17 [] "Same day: effect of the rating." (param :w17 0.5425 :low 0 :high 2))
(defn w18 [] "Same day: growth after the rating good." (param :w18 0.0912 :low 0 :high 2))
(defn w19 [] "Same day: decrease of the growth with stability." (param :w19 0.0658 :low 0 :high 0.8))
(defn w20 [] "Decay of the forgetting curve." (param :w20 0.1542 :low 0.1 :high 0.8))

(defn e-to [x]
  (pow 2.718281828459045 x))

(defn recall-chance [days stability]
  "Forgetting curve: probability of recall, 0.9 when the days equal the stability."
  (let [decay (- (w20))
        factor (- (pow 0.9 (/ 1 decay)) 1)]
    (pow (+ 1 (/ (* factor (max 0 (floor days))) stability)) decay)))

(defn first-stability [rating]
  (case rating 1 (w0) 2 (w1) 3 (w2) else (w3)))

(defn first-difficulty [rating]
  "Difficulty after a first rating, not yet clamped to 1..10."
  (+ (- (w4) (e-to (* (w5) (- rating 1)))) 1))

(defn next-difficulty [difficulty rating]
  "Difficulty after a rating: linear damping towards 10, reversion to the mean, clamped to 1..10."
  (let [change (- (* (w6) (- rating 3)))
        damped (+ difficulty (/ (* (- 10 difficulty) change) 9))]
    (clamp (+ (* (w7) (first-difficulty 4)) (* (- 1 (w7)) damped)) 1 10)))

(defn after-success [stability difficulty chance rating]
  (* stability
     (+ 1 (* (e-to (w8))
             (- 11 difficulty)
             (pow stability (- (w9)))
             (- (e-to (* (- 1 chance) (w10))) 1)
             (if (= rating 2) (w15) 1)
             (if (= rating 4) (w16) 1)))))

(defn after-lapse [stability difficulty chance]
  (min (* (w11)
          (pow difficulty (- (w12)))
          (- (pow (+ stability 1) (w13)) 1)
          (e-to (* (- 1 chance) (w14))))
       (/ stability (e-to (* (w17) (w18))))))

(defn after-same-day [stability rating]
  "Stability after a use on the same day; only the rating again may lower it."
  (let [growth (* (e-to (* (w17) (+ (- rating 3) (w18)))) (pow stability (- (w19))))]
    (* stability (if (>= rating 2) (max growth 1) growth))))

(defn next-stability [stability difficulty days rating]
  (max (cond (< days 1) (after-same-day stability rating)
             (= rating 1) (after-lapse stability difficulty (recall-chance days stability))
             else (after-success stability difficulty (recall-chance days stability) rating))
       0.001))

; Few uses are rated. A success counts as good and a failure as again. A verified result fits the query, the weakest form
; of success, and counts as hard. Being shown or rejected says nothing about retention: if display alone strengthened a
; memory, the top results would stay on top.
(defn rating-of [outcome]
  (case outcome "success" 3 "verified" 2 "fail" 1 else null))

(defpolicy reinforce [outcome rating elapsed-days stability difficulty]
  "Stability and difficulty after a use: FSRS-6."
  (let [grade (if-null rating (rating-of outcome))]
    (cond
      (null? grade) (update)
      (or (null? stability) (null? difficulty))
        (update :stability (first-stability grade)
                :difficulty (clamp (first-difficulty grade) 1 10))
      else
        (update :stability (next-stability stability difficulty elapsed-days grade)
                :difficulty (next-difficulty difficulty grade)))))

(defpolicy retention [stability elapsed-days]
  "Retrievability by FSRS-6; a memory without ratings decays as after a first good."
  (recall-chance elapsed-days (if-null stability (w2))))

(defpolicy cut [seed received]
  "Own seed-score plus activation received."
  (+ seed received))

(defpolicy recall-score [activation retention]
  "Expected relevance: activation times the probability of recall."
  (* activation retention))

(defpolicy inject [rank injected]
  "Priority by rank; nothing is injected twice in a session."
  (if injected 0 (/ 1 rank)))
