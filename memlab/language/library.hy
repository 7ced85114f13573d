;; Helpers of the dialect: standard curves of the field. A feature of the same name hides one of these.
;; Ages, half-lives and widths may be in any unit, as long as it is one unit.

(defn half-life-decay [age half-life]
  "1 when new, 1/2 after one half-life, 1/4 after two: Ebbinghaus' curve as an exponential."
  (exp (/ (* -0.6931471805599453 age) half-life)))

(defn exponential-decay [age time-constant]
  "1 when new, 1/e after one time constant."
  (exp (/ (- age) time-constant)))

(defn power-law [age scale exponent]
  "(1 + age/scale)^-exponent: forgetting that slows down (Wixted and Ebbesen 1991)."
  (pow (+ 1 (/ age scale)) (- exponent)))

(defn retrievability [days stability]
  "Chance of recall after some days, 0.9 at one stability: the forgetting curve of FSRS-5."
  (sqrt (/ 1 (+ 1 (* 0.2345679012345679 (/ days stability))))))

(defn base-level [uses age decay]
  "ACT-R's activation of something used evenly over its age, optimised learning: ln(n/(1-d)) - d ln(age)."
  (- (log (/ uses (- 1 decay))) (* decay (log age))))

(defn sigmoid [x]
  "The logistic curve: 0 far below zero, 1/2 at it, 1 far above."
  (/ 1 (+ 1 (exp (- x)))))

(defn saturate [x half]
  "x / (x + half): 0 at 0, 1/2 at half, towards 1: each further use counts for less."
  (/ x (+ x half)))

(defn capped [x cap]
  "x as a share of cap, at most 1."
  (min (/ x cap) 1))

(defn gauss [x centre width]
  "A bell: 1 at the centre, 0.61 one width from it."
  (let [z (/ (- x centre) width)]
    (exp (* -0.5 (* z z)))))

(defn linear [x from to]
  "A ramp: 0 at from, 1 at to, clamped outside."
  (clamp (/ (- x from) (- to from)) 0 1))

(defn mix [a b weight]
  "a at weight 0, b at weight 1."
  (+ (* (- 1 weight) a) (* weight b)))

(defn success-rate [success fail]
  "Share of successes after one success and one failure are assumed: Laplace's rule of succession."
  (/ (+ success 1) (+ success fail 2)))

(defn square [x]
  "x times x."
  (* x x))

(defn log2 [x]
  "Logarithm to base 2."
  (/ (log x) 0.6931471805599453))

(defn log10 [x]
  "Logarithm to base 10."
  (/ (log x) 2.302585092994046))
