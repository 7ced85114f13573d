"""The policy language: S-expressions, checked into a typed graph and run on columns, arrays or one row. Never
executed as code.

>>> slot = Signature("recall-score", [Input("similarity"), Input("age_days")])
>>> policy = compile_policy("(fn [similarity age-days] (* similarity (half-life-decay age-days 30)))", slot)
>>> policy.inputs
('age-days', 'similarity')
>>> policy.row({"similarity": 0.8, "age_days": 30})
0.4
"""

from memlab.language._derived import Derived
from memlab.language._explain import Branch, Explanation, Term
from memlab.language._pack import PackSource, Setting, read_pack
from memlab.language._params import Param
from memlab.language._policy import DIALECT, Policy, PolicyForm, compile_policy
from memlab.language._signature import Input, InputType, Returns, Signature, Type

__all__ = [
    "DIALECT",
    "Branch",
    "Derived",
    "Explanation",
    "Input",
    "InputType",
    "PackSource",
    "Param",
    "Policy",
    "PolicyForm",
    "Returns",
    "Setting",
    "Signature",
    "Term",
    "Type",
    "compile_policy",
    "read_pack",
]
