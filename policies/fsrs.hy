(require memlab.dialect *)

(pack fsrs
  "FSRS-6: how well a memory is learned decides how long it stays, and how much one more use adds.")

; Open Spaced Repetition, FSRS-6 (the scheduler of Anki); Ye, Su and Cao, "A stochastic shortest path algorithm for
; optimizing spaced repetition scheduling", KDD 2022. Weights, bounds and the order of every operation are those of
; py-fsrs 6.3.2, so that stability, difficulty and retrievability are its numbers; powers of e are powers of the
; constant there, and so here. Its whole days are kept: a day has passed after 24 hours, and a use within them counts as
; the same day. Days count from the use before, rated or not; where every use is rated, that is the last review.

(defn w0 [] "Stability after a first again, days." (param :w0 0.212 :low 0.001 :high 100))
(defn w1 [] "Stability after a first hard, days." (param :w1 1.2931 :low 0.001 :high 100))
(defn w2 [] "Stability after a first good, days." (param :w2 2.3065 :low 0.001 :high 100))
(defn w3 [] "Stability after a first easy, days." (param :w3 8.2956 :low 0.001 :high 100))
(defn w4 [] "Difficulty after a first again." (param :w4 6.4133 :low 1 :high 10))
(defn w5 [] "How fast the first difficulty falls with the rating." (param :w5 0.8334 :low 0.001 :high 4))
(defn w6 [] "How much a rating changes the difficulty." (param :w6 3.0194 :low 0.001 :high 4))
(defn w7 [] "Reversion of the difficulty to that of a first easy." (param :w7 0.001 :low 0.001 :high 0.75))
(defn w8 [] "Growth of stability after a success: its logarithm." (param :w8 1.8722 :low 0 :high 4.5))
(defn w9 [] "The stabler, the less it grows." (param :w9 0.1666 :low 0 :high 0.8))
(defn w10 [] "The nearer to forgotten, the more it grows." (param :w10 0.796 :low 0.001 :high 3.5))
(defn w11 [] "Stability after a lapse: its scale." (param :w11 1.4835 :low 0.001 :high 5))
(defn w12 [] "The more difficult, the less is left." (param :w12 0.0614 :low 0.001 :high 0.25))
(defn w13 [] "The stabler, the more is left." (param :w13 0.2629 :low 0.001 :high 0.9))
(defn w14 [] "The nearer to forgotten, the more is left." (param :w14 1.6483 :low 0 :high 4))
(defn w15 [] "What hard takes from the growth." (param :w15 0.6014 :low 0 :high 1))
(defn w16 [] "What easy adds to the growth." (param :w16 1.8729 :low 1 :high 6))
(defn w17 [] "Same day: how much the rating tells." (param :w17 0.5425 :low 0 :high 2))
(defn w18 [] "Same day: the growth of a good." (param :w18 0.0912 :low 0 :high 2))
(defn w19 [] "Same day: the stabler, the less it grows." (param :w19 0.0658 :low 0 :high 0.8))
(defn w20 [] "Decay of the forgetting curve." (param :w20 0.1542 :low 0.1 :high 0.8))

(defn e-to [x]
  (pow 2.718281828459045 x))

(defn recall-chance [days stability]
  "The forgetting curve: 0.9 after as many days as the stability says."
  (let [decay (- (w20))
        factor (- (pow 0.9 (/ 1 decay)) 1)]
    (pow (+ 1 (/ (* factor (max 0 (floor days))) stability)) decay)))

(defn first-stability [rating]
  (case rating 1 (w0) 2 (w1) 3 (w2) else (w3)))

(defn first-difficulty [rating]
  "Not yet held within 1 and 10."
  (+ (- (w4) (e-to (* (w5) (- rating 1)))) 1))

(defn next-difficulty [difficulty rating]
  "Linear damping towards 10, reversion to the mean, then 1 to 10."
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
  "Only again may lower it."
  (let [growth (* (e-to (* (w17) (+ (- rating 3) (w18)))) (pow stability (- (w19))))]
    (* stability (if (>= rating 2) (max growth 1) growth))))

(defn next-stability [stability difficulty days rating]
  (max (cond (< days 1) (after-same-day stability rating)
             (= rating 1) (after-lapse stability difficulty (recall-chance days stability))
             else (after-success stability difficulty (recall-chance days stability) rating))
       0.001))

; Few uses are rated. What succeeded was good, and what failed must be learned again; that a verifier let it pass says
; that it fits the question, the least of a success. That it was shown, or was rejected, says nothing of how well it is
; remembered: if display alone strengthened, whatever is on top would stay there.
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
  "Retrievability: FSRS-6; what nobody has rated yet fades as after a first good."
  (recall-chance elapsed-days (if-null stability (w2))))

(defpolicy cut [seed received]
  "What a candidate has of its own and what arrived over edges."
  (+ seed received))

(defpolicy recall-score [activation retention]
  "Expected relevance: what a memory is worth to the question if it is recalled, times the chance that it is."
  (* activation retention))
