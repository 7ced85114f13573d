(require memlab.dialect *)

(pack actr
  "ACT-R: activation from frequent and recent use, activation spread from the query, and retrieval under noise.")

; Anderson and Schooler, "Reflections of the environment in memory" (1991); Anderson et al., "An integrated theory of
; the mind" (2004). The eight latest uses count exactly and all older ones together, after Petrov, "Computationally
; efficient approximation of the base-level learning equation in ACT-R" (2006). Ages are days; in seconds, the unit of
; ACT-R itself, each activation, and so the threshold, is lower by decay * ln 86400, which is 5.68.

(setting context-fill false)
(setting seeds 10)
(setting spread-steps 1)
(setting spread-mode "energy")

; A probe is a retrieval under noise: its probability comes from the model alone, without a uniform share.
(setting probe-floor 0)

(defn decay [] "d: decay of the trace of one use." (param :decay 0.5 :low 0 :high 0.99))
(defn noise [] "s: scale of the retrieval noise." (param :noise 0.25 :low 0.05 :high 2))
(defn threshold [] "tau: retrieval threshold; a single use is retrieved with probability 1/2 after 30 days." (param :threshold -1.7 :low -20 :high 20))
(defn attention [] "W: activation that the query adds to a full match." (param :attention 4 :low 0 :high 20))
(defn association [] "S: activation that a neighbour adds over an edge of weight 1." (param :association 2 :low 0 :high 20))

(defn past [age]
  "Age in days, at least 50 ms as in ACT-R, so that a use at this moment has a finite trace."
  (if (null? age) null (max age 5.787037037037037e-7)))

(defn trace [age]
  "Trace of one use: age^-d."
  (if-null (pow (past age) (- (decay))) 0))

(defn older-traces [count youngest oldest]
  "Summed traces of `count` uses spread evenly between two ages."
  (let [gap (- oldest youngest)
        rest (- 1 (decay))]
    (cond
      (<= count 0) 0
      ; The quotient loses precision for nearly equal ages; the trace of their mean then differs by less than 1e-11.
      (<= gap (* 1e-5 oldest)) (* count (trace (/ (+ oldest youngest) 2)))
      else (* count (/ (- (pow oldest rest) (pow youngest rest)) (* rest gap))))))

(defn use-strength [a b c d e f g h uses age]
  "B: base-level activation, ln of the summed traces of all uses."
  (log (+ (trace a) (trace b) (trace c) (trace d) (trace e) (trace f) (trace g) (trace h)
          (if-null (older-traces (- uses 8) (past h) (past age)) 0))))

(defpolicy spread [activation weight]
  "Activation in proportion to the weight of the edge: W_j S_ji (Anderson 1983)."
  (* activation weight))

(defpolicy cut [seed received]
  "Own seed-score plus activation received."
  (+ seed received))

(defpolicy recall-score [use-1-days use-2-days use-3-days use-4-days use-5-days use-6-days use-7-days use-8-days
                         uses age-days seed received]
  "Activation A = B + W match + S neighbours (Anderson et al. 2004)."
  (+ (use-strength use-1-days use-2-days use-3-days use-4-days use-5-days use-6-days use-7-days use-8-days
                   uses age-days)
     (* (attention) seed)
     (* (association) received)))

(defpolicy explore [use-1-days use-2-days use-3-days use-4-days use-5-days use-6-days use-7-days use-8-days
                    uses age-days seed received]
  "Boltzmann weights exp(A / t) with t = s sqrt 2, relative to the maximum (Anderson and Lebiere 1998)."
  (let [a (+ (use-strength use-1-days use-2-days use-3-days use-4-days use-5-days use-6-days use-7-days use-8-days
                           uses age-days)
             (* (attention) seed)
             (* (association) received))]
    (exp (/ (- a (slate-max a)) (* 1.4142135623730951 (noise))))))

(defpolicy retention [use-1-days use-2-days use-3-days use-4-days use-5-days use-6-days use-7-days use-8-days
                      uses age-days]
  "Probability that noise lifts B above the threshold: 1 / (1 + exp((tau - B) / s)) (Anderson et al. 2004)."
  (/ 1 (+ 1 (exp (/ (- (threshold)
                       (use-strength use-1-days use-2-days use-3-days use-4-days use-5-days use-6-days use-7-days
                                     use-8-days uses age-days))
                    (noise))))))

(defpolicy reinforce []
  "A use is added to the list of uses and changes no other field."
  (update))

(defpolicy inject [rank injected]
  "Priority by rank; nothing is injected twice in a session."
  (if injected 0 (/ 1 rank)))
