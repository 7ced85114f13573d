;; The dialect in real Hy: with (require memlab.dialect *) a pack's file is also a module of Hy.
;;
;; Each of these forms is handed, as text, to the compiler that lab.use and load_pack have, which executes nothing of it.
;; The name is bound to what that compiler makes: a policy, which can be called. Whatever else stands in such a file is
;; Hy, and runs when it is imported.
;;
;; (pack name "what it is" :inherits other)   __pack__, __settings__; defn is the dialect's from here on
;; (from-pack memlab spread cut)              the slots and settings of another pack, as it has them
;; (setting damping 0.7)                      __settings__["damping"]
;; (defpolicy recall-score [a b] "doc" body)  recall_score, a policy of that slot
;; (defn helper [a b] "doc" body)             what the policies below may call; Hy's own defn without a pack
;; (lambda (a b) body)                        a policy as a value

(import memlab.subjects.lens [expand-form])

(defmacro pack [_hy-compiler #* _]
  (expand-form _hy-compiler))

(defmacro from-pack [_hy-compiler #* _]
  (expand-form _hy-compiler))

(defmacro setting [_hy-compiler #* _]
  (expand-form _hy-compiler))

(defmacro defpolicy [_hy-compiler #* _]
  (expand-form _hy-compiler))

(defmacro lambda [_hy-compiler #* _]
  (expand-form _hy-compiler))

(defmacro λ [_hy-compiler #* _]
  (expand-form _hy-compiler))

(defmacro define-helper [_hy-compiler #* _]
  (expand-form _hy-compiler))

(export
  :macros [pack from-pack setting defpolicy lambda λ])
