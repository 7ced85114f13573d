;; Helpers of the policy language: standard curves, means and rates. An argument of a policy hides a helper of the same
;; name. Ages, half-lives and widths may have any unit, as long as both have the same; a unit in a name is binding.
;; No helper calls another one, so a pack that redefines a helper changes that helper only.

;; Forgetting curves: 1 at age 0, towards 0.

(defn half-life-decay [age half-life]
  "Exponential decay by half-life: 1 at age 0, 1/2 after one half-life, 1/4 after two."
  (exp (/ (* -0.6931471805599453 age) half-life)))

(defn half-life [age half]
  "Short name of half-life-decay: 2^(-age/half)."
  (exp (/ (* -0.6931471805599453 age) half)))

(defn recency [age half-life]
  "Exponential decay as in the feature recency, for any age and half-life: 2^(-age/half-life)."
  (exp (/ (* -0.6931471805599453 age) half-life)))

(defn exponential-decay [age time-constant]
  "Exponential decay by time constant: 1 at age 0, 1/e after one time constant."
  (exp (/ (- age) time-constant)))

(defn power-law [age scale exponent]
  "Power-law forgetting: (1 + age/scale)^-exponent, slower and slower with age (Wixted and Ebbesen 1991)."
  (pow (+ 1 (/ age scale)) (- exponent)))

(defn hyperbolic [age scale]
  "Hyperbolic decay: 1 / (1 + age/scale), 1/2 at age = scale (Mazur 1987)."
  (/ 1 (+ 1 (/ age scale))))

(defn stretched-decay [age scale shape]
  "Weibull decay: exp(-(age/scale)^shape), 1/e at age = scale; a shape below 1 gives a long tail (Rubin and Wenzel 1996)."
  (exp (- (pow (/ age scale) shape))))

(defn ebbinghaus-savings [age-minutes]
  "Savings at relearning, 1.84 / (log10(age)^1.25 + 1.84), for ages from one minute (Ebbinghaus 1885)."
  (/ 1.84 (+ 1.84 (pow (/ (log (clamp age-minutes 1 null)) 2.302585092994046) 1.25))))

(defn retrievability [days stability]
  "Probability of recall by FSRS-5: 0.9 after `stability` days."
  (sqrt (/ 1 (+ 1 (* 0.2345679012345679 (/ days stability))))))

(defn forgetting-curve [days stability decay]
  "Probability of recall by FSRS-6: 0.9 after `stability` days, with a trained decay > 0."
  (pow (+ 1 (* (- (pow 0.9 (/ -1 decay)) 1) (/ days stability))) (- decay)))

;; Activation of ACT-R.

(defn base-level [uses age decay]
  "Base-level activation of ACT-R for uses spread evenly over the age: ln(n/(1-d)) - d ln(age)."
  (- (log (/ uses (- 1 decay))) (* decay (log age))))

(defn base-level-hybrid [uses idle age decay]
  "Base-level activation of ACT-R from the last use exactly and earlier uses spread evenly (Petrov 2006, k = 1)."
  (log (+ (pow idle (- decay))
          (if (<= age idle)
              0
              (/ (* (- uses 1) (- (pow age (- 1 decay)) (pow idle (- 1 decay)))) (* (- 1 decay) (- age idle)))))))

(defn recall-probability [activation threshold noise]
  "Probability of retrieval in ACT-R: 1 / (1 + exp((threshold - activation) / noise)), with noise near 0.4."
  (/ 1 (+ 1 (exp (/ (- threshold activation) noise)))))

(defn fan-strength [most fan]
  "Associative strength in ACT-R: most - ln(fan), where fan counts all associations of the source."
  (- most (log fan)))

;; Shapes: curves that map a number to a score.

(defn sigmoid [x]
  "Logistic function: 1/2 at 0, towards 0 below and 1 above."
  (/ 1 (+ 1 (exp (- x)))))

(defn logistic [x centre width]
  "Soft threshold: sigmoid((x - centre) / width), 1/2 at the centre and 0.73 one width above."
  (/ 1 (+ 1 (exp (/ (- centre x) width)))))

(defn logit [share]
  "Inverse of sigmoid: ln(p / (1 - p))."
  (log (/ share (- 1 share))))

(defn saturate [x half]
  "Saturating count: x / (x + half), 0 at 0, 1/2 at half, towards 1."
  (/ x (+ x half)))

(defn hill [x half steepness]
  "Hill function for x >= 0: 1 / (1 + (half/x)^steepness); steepness 1 equals saturate (Hill 1910)."
  (/ 1 (+ 1 (pow (/ half x) steepness))))

(defn log-saturate [x cap]
  "Logarithmic share of a count, at most 1: ln(1 + x) / ln(1 + cap)."
  (clamp (/ (log1p x) (log1p cap)) null 1))

(defn capped [x cap]
  "Share of a cap, at most 1: x / cap."
  (clamp (/ x cap) null 1))

(defn gauss [x centre width]
  "Gaussian bell: 1 at the centre, 0.61 at one width from it."
  (let [z (/ (- x centre) width)]
    (exp (* -0.5 (* z z)))))

(defn linear [x from to]
  "Linear ramp: 0 at from, 1 at to, clamped outside."
  (clamp (/ (- x from) (- to from)) 0 1))

(defn smoothstep [x from to]
  "Smooth ramp: 0 at from, 1 at to, 3t^2 - 2t^3 between."
  (let [t (clamp (/ (- x from) (- to from)) 0 1)]
    (* t t (- 3 (* 2 t)))))

(defn softplus [x]
  "Smooth maximum of x and 0: ln(1 + e^x)."
  (+ (max x 0) (log1p (exp (- (abs x))))))

;; Changes of a score, such as that of (inherited). For a feature that may be null, write (if-null feature 0).

(defn boost [score signal weight]
  "Score plus weight times a signal."
  (+ score (* weight signal)))

(defn penalise [score signal weight]
  "Score minus weight times a signal."
  (- score (* weight signal)))

(defn blend [score other weight]
  "Weighted mean of two scores: the first at weight 0, the other at weight 1."
  (+ (* (- 1 weight) score) (* weight other)))

;; Means and ranks.

(defn mix [a b weight]
  "Weighted mean: a at weight 0, b at weight 1."
  (+ (* (- 1 weight) a) (* weight b)))

(defn harmonic-mean [a b]
  "Harmonic mean: 2ab / (a + b); of precision and recall, the F1 score."
  (/ (* 2 a b) (+ a b)))

(defn geometric-mean [a b]
  "Geometric mean of two numbers >= 0: sqrt(ab)."
  (sqrt (* a b)))

(defn reciprocal-rank [rank k]
  "Term of reciprocal rank fusion: 1 / (k + rank), usually with k = 60 (Cormack, Clarke and Buettcher 2009)."
  (/ 1 (+ k rank)))

(defn rank-discount [rank]
  "Discount of a rank in DCG: 1 / log2(1 + rank) (Jaervelin and Kekaelaeinen 2002)."
  (/ 0.6931471805599453 (log1p rank)))

;; Success rates and other statistics of feedback.

(defn success-rate [success fail]
  "Success rate by Laplace's rule of succession: (success + 1) / (success + fail + 2)."
  (/ (+ success 1) (+ success fail 2)))

(defn smoothed-rate [success fail prior weight]
  "Mean of a beta posterior: the success rate after `weight` prior trials at the rate `prior`."
  (/ (+ success (* prior weight)) (+ success fail weight)))

(defn wilson-lower [success fail z]
  "Lower bound of the Wilson interval of a success rate: z = 1.96 for 95%; 0 without feedback (Wilson 1927)."
  (/ (- (+ success (* 0.5 z z))
        (* z (sqrt (+ (/ (* success fail) (max 1 (+ success fail))) (* 0.25 z z)))))
     (+ success fail (* z z))))

(defn ucb1 [mean uses total]
  "Upper confidence bound UCB1 for total >= 2: mean + sqrt(2 ln(total) / uses) (Auer et al. 2002)."
  (+ mean (sqrt (/ (* 2 (log total)) uses))))

(defn sm2-ease [ease quality]
  "Next ease factor of SuperMemo 2 after an answer of quality 0-5, at least 1.3 (Wozniak 1990)."
  (let [missing (- 5 quality)]
    (clamp (+ ease (- 0.1 (* missing (+ 0.08 (* 0.02 missing))))) 1.3 null)))

;; Arithmetic.

(defn square [x]
  "Square of x."
  (* x x))

(defn log2 [x]
  "Logarithm to base 2."
  (/ (log x) 0.6931471805599453))

(defn log10 [x]
  "Logarithm to base 10."
  (/ (log x) 2.302585092994046))
