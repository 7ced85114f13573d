"""The policy language: S-expressions, checked into a typed graph and run on columns, arrays or one row. Never
executed as code.

>>> slot = Signature("recall-score", [Input("similarity"), Input("age_days")])
>>> policy = compile_policy("(fn [similarity age-days] (* similarity (half-life-decay age-days 30)))", slot)
>>> policy.inputs
('age-days', 'similarity')
>>> policy.row({"similarity": 0.8, "age_days": 30})
0.4
"""

from memlab.language._changes import changed_fields
from memlab.language._derived import Derived
from memlab.language._pack import PackSource, Setting, read_pack
from memlab.language._params import Param
from memlab.language._policy import DIALECT, Policy, PolicyForm, compile_policy
from memlab.language._signature import Input, InputType, Returns, Signature, Type
from memlab.language._writer import read_data, write_call, write_data
from memlab.language.edits._breed import MUTATIONS, Offspring, crossover, mutate
from memlab.language.edits._diff import Change, FormDiff, diff_packs, diff_policies
from memlab.language.edits._edit import (
    NumericLiteral,
    Subtree,
    literals,
    parameters,
    parametrize,
    replace,
    subtrees,
    with_param,
)
from memlab.language.edits._parsed import slot_of
from memlab.language.edits._setting import with_setting
from memlab.language.insight._effects import Sensitivity, SlateSensitivity
from memlab.language.insight._explain import Branch, Explanation, Term
from memlab.language.insight._highlight import highlight
from memlab.language.insight._tree import Tree, TreeNode
from memlab.language.insight._why import FeatureGap, TermGap, Why

__all__ = [
    "DIALECT",
    "MUTATIONS",
    "Branch",
    "Change",
    "Derived",
    "Explanation",
    "FeatureGap",
    "FormDiff",
    "Input",
    "InputType",
    "NumericLiteral",
    "Offspring",
    "PackSource",
    "Param",
    "Policy",
    "PolicyForm",
    "Returns",
    "Sensitivity",
    "Setting",
    "Signature",
    "SlateSensitivity",
    "Subtree",
    "Term",
    "TermGap",
    "Tree",
    "TreeNode",
    "Type",
    "Why",
    "changed_fields",
    "compile_policy",
    "crossover",
    "diff_packs",
    "diff_policies",
    "highlight",
    "literals",
    "mutate",
    "parameters",
    "parametrize",
    "read_data",
    "read_pack",
    "replace",
    "slot_of",
    "subtrees",
    "with_param",
    "with_setting",
    "write_call",
    "write_data",
]
