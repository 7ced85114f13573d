;; The policy language in Hy: with (require memlab.dialect *) a pack's file is also a Hy module.
;;
;; The text of each form below is passed to the compiler of lab.policies.use and load_pack, which executes nothing in it.
;; The name is bound to the result, such as a policy, which can be called. All other code in the file is Hy, and runs
;; when the module is imported.
;;
;; (pack name "description" :inherits other)  __pack__, __settings__; defn and defmacro now belong to the policy language
;; (from-pack memlab spread cut)              the slots and settings of another pack
;; (setting damping 0.7)                      __settings__["damping"]
;; (defpolicy recall-score [a b] "doc" body)  recall_score, a policy of that slot
;; (defn helper [a b] "doc" body)             a helper for the policies below; Hy's own defn without a pack
;; (defmacro name [a] `(template ~a))          a macro for the policies below; Hy's own defmacro without a pack
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
