;; Helpers of the dialect: standard curves of the field. A feature of the same name hides one of these.
;; Ages, half-lives and widths may be in any unit, as long as it is one unit, unless a helper names its own.
;; None calls another one, so a pack that defines a name again changes that name alone.

;; Forgetting: 1 when new, towards 0.

(defn half-life-decay [age half-life]
  "1 when new, 1/2 after one half-life, 1/4 after two: Ebbinghaus' curve as an exponential."
  (exp (/ (* -0.6931471805599453 age) half-life)))

(defn half-life [age half]
  "2^(-age/half): the share that is left at an age. half-life-decay by its short name."
  (exp (/ (* -0.6931471805599453 age) half)))

(defn recency [age half-life]
  "2^(-age/half-life): the feature recency, on any age and with any half-life."
  (exp (/ (* -0.6931471805599453 age) half-life)))

(defn exponential-decay [age time-constant]
  "1 when new, 1/e after one time constant."
  (exp (/ (- age) time-constant)))

(defn power-law [age scale exponent]
  "(1 + age/scale)^-exponent: forgetting that slows down (Wixted and Ebbesen 1991)."
  (pow (+ 1 (/ age scale)) (- exponent)))

(defn hyperbolic [age scale]
  "1 / (1 + age/scale): 1/2 at one scale (Mazur 1987)."
  (/ 1 (+ 1 (/ age scale))))

(defn stretched-decay [age scale shape]
  "exp(-(age/scale)^shape): a Weibull curve, 1/e at one scale; below shape 1 its tail is long (Rubin and Wenzel 1996)."
  (exp (- (pow (/ age scale) shape))))

(defn ebbinghaus-savings [age-minutes]
  "1.84 / (log10(age)^1.25 + 1.84): share of work saved at relearning, from one minute on (Ebbinghaus 1885)."
  (/ 1.84 (+ 1.84 (pow (/ (log (clamp age-minutes 1 null)) 2.302585092994046) 1.25))))

(defn retrievability [days stability]
  "Chance of recall after some days, 0.9 at one stability (in days): the forgetting curve of FSRS-5."
  (sqrt (/ 1 (+ 1 (* 0.2345679012345679 (/ days stability))))))

(defn forgetting-curve [days stability decay]
  "Chance of recall after some days, 0.9 at one stability (in days), with a trained decay > 0: FSRS-6."
  (pow (+ 1 (* (- (pow 0.9 (/ -1 decay)) 1) (/ days stability))) (- decay)))

;; Activation.

(defn base-level [uses age decay]
  "ACT-R's activation of something used evenly over its age, optimised learning: ln(n/(1-d)) - d ln(age)."
  (- (log (/ uses (- 1 decay))) (* decay (log age))))

(defn base-level-hybrid [uses idle age decay]
  "ACT-R's activation from the last use and the number of uses before it, spread evenly (Petrov 2006, k = 1)."
  (log (+ (pow idle (- decay))
          (if (<= age idle)
              0
              (/ (* (- uses 1) (- (pow age (- 1 decay)) (pow idle (- 1 decay)))) (* (- 1 decay) (- age idle)))))))

(defn recall-probability [activation threshold noise]
  "1 / (1 + exp((threshold - activation) / noise)): ACT-R's chance of retrieval; noise near 0.4."
  (/ 1 (+ 1 (exp (/ (- threshold activation) noise)))))

(defn fan-strength [most fan]
  "most - ln(fan): ACT-R's strength of an association that shares its source with others; fan counts them, itself too."
  (- most (log fan)))

;; Shapes: any number to a share, 0-1.

(defn sigmoid [x]
  "The logistic curve: 0 far below zero, 1/2 at it, 1 far above."
  (/ 1 (+ 1 (exp (- x)))))

(defn logistic [x centre width]
  "sigmoid((x - centre) / width): a soft threshold, 1/2 at the centre, 0.73 one width above."
  (/ 1 (+ 1 (exp (/ (- centre x) width)))))

(defn logit [share]
  "ln(p / (1 - p)): undoes sigmoid."
  (log (/ share (- 1 share))))

(defn saturate [x half]
  "x / (x + half): 0 at 0, 1/2 at half, towards 1: each further use counts for less."
  (/ x (+ x half)))

(defn hill [x half steepness]
  "1 / (1 + (half/x)^steepness), for x >= 0: saturate with a knee; steepness 1 is saturate (Hill 1910)."
  (/ 1 (+ 1 (pow (/ half x) steepness))))

(defn log-saturate [x cap]
  "ln(1 + x) / ln(1 + cap), at most 1: for counts that span decades."
  (clamp (/ (log1p x) (log1p cap)) null 1))

(defn capped [x cap]
  "x as a share of cap, at most 1."
  (clamp (/ x cap) null 1))

(defn gauss [x centre width]
  "A bell: 1 at the centre, 0.61 one width from it."
  (let [z (/ (- x centre) width)]
    (exp (* -0.5 (* z z)))))

(defn linear [x from to]
  "A ramp: 0 at from, 1 at to, clamped outside."
  (clamp (/ (- x from) (- to from)) 0 1))

(defn smoothstep [x from to]
  "A ramp without corners: 0 at from, 1 at to, 3t^2 - 2t^3 between."
  (let [t (clamp (/ (- x from) (- to from)) 0 1)]
    (* t t (- 3 (* 2 t)))))

(defn softplus [x]
  "ln(1 + e^x): 0 far below zero, x far above."
  (+ (max x 0) (log1p (exp (- (abs x))))))

;; Means and ranks.

(defn mix [a b weight]
  "a at weight 0, b at weight 1."
  (+ (* (- 1 weight) a) (* weight b)))

(defn harmonic-mean [a b]
  "2ab / (a + b): small when either is; of precision and recall, F1."
  (/ (* 2 a b) (+ a b)))

(defn geometric-mean [a b]
  "sqrt(ab), for numbers >= 0: 0 when either is."
  (sqrt (* a b)))

(defn reciprocal-rank [rank k]
  "1 / (k + rank): sum it over rankings to fuse them; k = 60 (Cormack, Clarke and Buettcher 2009)."
  (/ 1 (+ k rank)))

(defn rank-discount [rank]
  "1 / log2(1 + rank): what a place is worth in DCG (Jaervelin and Kekaelaeinen 2002)."
  (/ 0.6931471805599453 (log1p rank)))

;; Feedback.

(defn success-rate [success fail]
  "Share of successes after one success and one failure are assumed: Laplace's rule of succession."
  (/ (+ success 1) (+ success fail 2)))

(defn smoothed-rate [success fail prior weight]
  "Share of successes when weight trials at the rate prior are assumed: the mean of a beta posterior."
  (/ (+ success (* prior weight)) (+ success fail weight)))

(defn wilson-lower [success fail z]
  "Lower end of the interval of a share; z = 1.96 for 95%, 0 without feedback (Wilson 1927)."
  (/ (- (+ success (* 0.5 z z))
        (* z (sqrt (+ (/ (* success fail) (max 1 (+ success fail))) (* 0.25 z z)))))
     (+ success fail (* z z))))

(defn ucb1 [mean uses total]
  "mean + sqrt(2 ln(total) / uses), total >= 2: optimism about what was seldom tried (Auer et al. 2002)."
  (+ mean (sqrt (/ (* 2 (log total)) uses))))

(defn sm2-ease [ease quality]
  "The next ease factor after an answer of quality 0-5, at least 1.3: SuperMemo 2 (Wozniak 1990)."
  (let [missing (- 5 quality)]
    (clamp (+ ease (- 0.1 (* missing (+ 0.08 (* 0.02 missing))))) 1.3 null)))

;; Numbers.

(defn square [x]
  "x times x."
  (* x x))

(defn log2 [x]
  "Logarithm to base 2."
  (/ (log x) 0.6931471805599453))

(defn log10 [x]
  "Logarithm to base 10."
  (/ (log x) 2.302585092994046))
