;; The dialect for trusted code: with (require memlab.dialect *) a pack file is a module of Hy.
;;
;; Whoever imports or runs such a file executes it. lab.use and load_pack read the same file and never execute any of
;; it; the values are the same on both roads, to the bit.
;;
;; (pack name "what it is" :inherits other)   __pack__, __settings__, __params__; defn is the dialect's from here on
;; (setting damping 0.7)                      __settings__["damping"]
;; (defpolicy recall-score [a b] "doc" body)  a function recall_score(a, b)
;; (defn helper [a b] "doc" body)             a function that policies call; Hy's own defn without a pack
;; (lambda (a b) body), (let* ((a 1)) body)   a function, and a value, that mean what they mean in a policy
;;
;; In Hy's own fn, let, + and so on stay Hy's: only these words carry the dialect into their bodies. There a name that
;; the dialect does not know is the module's own, so a trusted policy may call any function of Hy or Python.

(import memlab.language.trusted._total [slate-aggregates]
        memlab.language.trusted._trusted [expanded load-trusted])

(defmacro pack [_hy-compiler #* _]
  (expanded _hy-compiler))

(defmacro setting [_hy-compiler #* _]
  (expanded _hy-compiler))

(defmacro defpolicy [_hy-compiler #* _]
  (expanded _hy-compiler))

(defmacro lambda [_hy-compiler #* _]
  (expanded _hy-compiler))

(defmacro λ [_hy-compiler #* _]
  (expanded _hy-compiler))

(defmacro let* [_hy-compiler #* _]
  (expanded _hy-compiler))

(defmacro define-helper [_hy-compiler #* _]
  (expanded _hy-compiler))

(export
  :objects [load-trusted slate-aggregates]
  :macros [pack setting defpolicy lambda λ let*])
