;; Examples of the reference of the policy language, by section. The first comment of a block gives the features; behind
;; each form is its value. tests/language/reference_page.py writes them into docs/reference/policy-language.md, and
;; tests/language/test_documentation.py runs them on all back ends.

;;; Null and NaN
; x null, y 8
(+ x 1)                                                     ; => null
(min x y)                                                   ; => 8
(if (> x 1) 1 2)                                            ; => 2
(and (> x 1) false)                                         ; => false
(null? (or (> x 1) false))                                  ; => true
(= (/ 0 0) (/ 0 0))                                         ; => true
(> (/ 0 0) (/ 1 0))                                         ; => true
(clamp x 0 1)                                               ; => null
(if-null x y 7)                                             ; => 8

;;; Numbers
; x 2, y 8
(+ x y 1)                                                   ; => 11
(- y x 1)                                                   ; => 5
(- x)                                                       ; => -2
(* x y 2)                                                   ; => 32
(/ y x 2)                                                   ; => 2
(/ x)                                                       ; => 0.5
(/ x 0)                                                     ; => inf
(min x y 1)                                                 ; => 1
(max x y)                                                   ; => 8
(clamp y 0 1)                                               ; => 1
(abs (- x y))                                               ; => 6
(sign (- x y))                                              ; => -1
(floor -0.5)                                                ; => -1
(ceil 0.2)                                                  ; => 1
(sqrt 9)                                                    ; => 3
(pow x 10)                                                  ; => 1024
(exp 1)                                                     ; => 2.718281828
(log (exp 2))                                               ; => 2
(log1p 0)                                                   ; => 0
(tanh 0.5)                                                  ; => 0.4621171573

;;; Tests
; x 2, y 8, kind "fact", pinned false
(< x y)                                                     ; => true
(< 0 x y)                                                   ; => true
(<= x x)                                                    ; => true
(> y x)                                                     ; => true
(>= x y)                                                    ; => false
(= kind "fact")                                             ; => true
(!= x 2)                                                    ; => false
(and (< x y) (not pinned))                                  ; => true
(or pinned (= x 2))                                         ; => true
(not pinned)                                                ; => true
(null? x)                                                   ; => false

;;; Choice
; x 2, kind "fact", pinned false
(if pinned 1 (* x 10))                                      ; => 20
(when pinned x)                                             ; => null
(unless pinned x)                                           ; => 2
(do kind x)                                                 ; => 2
(cond pinned 1
      (> x 1) 2
      else 3)                                               ; => 2
(case kind
  ["event" "goal"] 1
  "fact" 0.5
  else 0)                                                   ; => 0.5
(in kind ["fact" "event"])                                  ; => true
(not-in kind ["fact" "event"])                              ; => false
(one-of kind "fact" "event")                                ; => true
(if-null null x)                                            ; => 2

;;; Binding
; x 2
(let [a (+ x 1)
      b (* a a)]
  (- b a))                                                  ; => 6
(let ((a 1) (a (+ a 1))) a)                                 ; => 2
(= "a" (quote a))                                           ; => true

;;; Units
; idle-hours 36
(days 3)                                                    ; => 3
(hours idle-hours)                                          ; => 1.5
(minutes 720)                                               ; => 0.5
(weeks 2)                                                   ; => 14

;;; Slate aggregates
; similarity [0.2 0.8 0.5 null]
(slate-min similarity)                                      ; => [0.2 0.2 0.2 0.2]
(slate-max similarity)                                      ; => [0.8 0.8 0.8 0.8]
(slate-mean similarity)                                     ; => [0.5 0.5 0.5 0.5]
(slate-rank similarity)                                     ; => [3 1 2 null]
(min-max similarity)                                        ; => [0 1 0.5 null]
(reciprocal-rank (slate-rank similarity) 60)                ; => [0.0158730159 0.0163934426 0.0161290323 null]

;;; Macros
; x 2, y 8
(-> x (* 10) (- y) sqrt)                                    ; => 3.464101615
(->> x (- y) (/ 1))                                         ; => 0.1666666667
(defmacro share-of [part #* others]
  `(let [total (+ ~part ~@others)]
     (if (= total 0) 0 (/ ~part total))))
(fn [x y] (share-of x y 10))                                ; => 0.1
(defmacro square-of [value] `(let [t ~value] (* t t)))
(fn [x] (let [t (+ x 1)] (-> t square-of square-of)))       ; => 81

;;; Sets
; tags {"style" "python"}, query-tags {"python" "tabs" "style"}
(has tags "style")                                          ; => true
(has-any tags ["prose" "style"])                            ; => true
(has-all tags ["prose" "style"])                            ; => false
(overlap tags query-tags)                                   ; => 2
(jaccard tags query-tags)                                   ; => 0.6666666667
(size tags)                                                 ; => 2

;;; link (link)
; pair/closeness 0.97, pair/negates false, new/confidence 0.9, old/confidence 0.5
(fn [pair/closeness pair/negates new/confidence old/confidence]
  (cond pair/negates "contradicts"
        (> pair/closeness 0.95) "duplicate"
        (> (- new/confidence old/confidence) 0.5) "updates"
        else "related"))                                    ; => "duplicate"

;;; Records (reinforce)
; outcome "success", stability 10, difficulty 5, retention 0.9
(fn [outcome stability difficulty retention]
  (if (= outcome "success")
      (update :stability (* stability (+ 1 (* (- 11 difficulty) (- 1 retention))))
              :difficulty (clamp (- difficulty 0.5) 1 10))
      (update :stability (* stability 0.5))))               ; => :difficulty 4.5 :stability 16

;;; Thompson sampling (explore)
; success [3 0 0], fail [1 0 9]
(-> (beta-sample (+ 1 success) (+ 1 fail))
    (* 1000)
    (+ 0.5)
    floor
    (/ 1000))                                               ; => [0.666 0.333 0.001]

;;; explore (explore)
; activation [0.9 0.4 0.1], access [9 0 1]
(fn [activation access] (/ activation (+ 1 access)))        ; => [0.09 0.4 0.05]

;;; explore (explore)
; access [9 3 1 0]
(lambda (accs)
  (let* ((seldom (filter (lambda (i) (< (nth accs i) 5)) (range 0 (length accs)))))
    (if (empty? seldom) -1 (first seldom))))                ; => [0 1 0 0]

;;; Helpers
; x 3
(defn twice [n] "Doubles." (* 2 n))
(fn [x] (twice (twice x)))                                  ; => 12

;;; Helpers
; age 30, days 10, uses 10, x 2, share 0.9, rank 1, success 8, fail 2
(half-life-decay age 30)                                    ; => 0.5
(half-life age 15)                                          ; => 0.25
(recency age 60)                                            ; => 0.7071067812
(exponential-decay age 30)                                  ; => 0.3678794412
(power-law 3 1 0.5)                                         ; => 0.5
(hyperbolic age 30)                                         ; => 0.5
(stretched-decay age 30 0.5)                                ; => 0.3678794412
(ebbinghaus-savings 1440)                                   ; => 0.3041101222
(retrievability days 10)                                    ; => 0.9
(forgetting-curve days 10 0.1542)                           ; => 0.9
(base-level uses 100 0.5)                                   ; => 0.6931471806
(base-level-hybrid uses 1 100 0.5)                          ; => 0.9694005572
(recall-probability 0.4 0 0.4)                              ; => 0.7310585786
(fan-strength 2 4)                                          ; => 0.6137056389
(sigmoid x)                                                 ; => 0.880797078
(logistic x 1 0.5)                                          ; => 0.880797078
(logit share)                                               ; => 2.1972245773
(saturate x 2)                                              ; => 0.5
(hill x 1 2)                                                ; => 0.8
(log-saturate x 8)                                          ; => 0.5
(capped x 20)                                               ; => 0.1
(gauss x 0 2)                                               ; => 0.6065306597
(linear x 0 8)                                              ; => 0.25
(smoothstep x 0 8)                                          ; => 0.15625
(softplus x)                                                ; => 2.126928011
(mix 1 3 0.25)                                              ; => 1.5
(boost 0.5 share 0.1)                                       ; => 0.59
(penalise 0.5 share 0.1)                                    ; => 0.41
(blend 0.5 share 0.25)                                      ; => 0.6
(harmonic-mean 0.5 1)                                       ; => 0.6666666667
(geometric-mean 4 9)                                        ; => 6
(reciprocal-rank rank 60)                                   ; => 0.0163934426
(rank-discount rank)                                        ; => 1
(success-rate success fail)                                 ; => 0.75
(smoothed-rate success fail 0.5 10)                         ; => 0.65
(wilson-lower success fail 1.96)                            ; => 0.4901568467
(ucb1 0.5 3 100)                                            ; => 2.252173923
(sm2-ease 2.5 3)                                            ; => 2.36
(square x)                                                  ; => 4
(log2 8)                                                    ; => 3
(log10 1000)                                                ; => 3

;;; Inheritance
; x 3
(inherit memlab (fn [x] (* 2 x)))
(fn [x] (+ (inherited) (* 0.1 x)))                          ; => 6.3

;;; Definitions
; x 3
(* x (param :scale 2 :low 0 :high 10))                      ; => 6

