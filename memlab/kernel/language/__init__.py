"""The policy language: S-expressions, checked into a typed graph and run on columns, arrays or one row. Never
executed as code.

>>> slot = Signature("recall-score", [Input("similarity"), Input("age_days")])
>>> policy = compile_policy("(fn [similarity age-days] (* similarity (half-life-decay age-days 30)))", slot)
>>> policy.inputs
('age-days', 'similarity')
>>> policy.row({"similarity": 0.8, "age_days": 30})
0.4
"""

from typing import Any

from memlab.errors import missing_name
from memlab.kernel.language._arrays import Coded
from memlab.kernel.language._changes import changed_fields, possible_results
from memlab.kernel.language._dag import Value
from memlab.kernel.language._derived import Derived
from memlab.kernel.language._diff import Change, FormDiff, diff_packs, diff_policies
from memlab.kernel.language._edit import (
    NumericLiteral,
    Subtree,
    literals,
    parametrize,
    replace,
    subtrees,
    with_param,
)
from memlab.kernel.language._explain import Branch, Explanation, Term
from memlab.kernel.language._given import policy_form_text, policy_parts
from memlab.kernel.language._highlight import highlight
from memlab.kernel.language._inline import inlined
from memlab.kernel.language._known import Known, Program
from memlab.kernel.language._pack import (
    Import,
    PackSource,
    Setting,
    read_header,
    read_import,
    read_pack,
    read_policy_form,
    read_setting,
    with_setting,
)
from memlab.kernel.language._params import Param
from memlab.kernel.language._parsed import PolicyForm, slot_of
from memlab.kernel.language._policy import DIALECT, Policy, compile_policy
from memlab.kernel.language._reader import Form, Text, read_forms
from memlab.kernel.language._signature import Input, InputType, Returns, Signature, Type
from memlab.kernel.language._tree import Tree, TreeNode
from memlab.kernel.language._vocabulary import FORM_SHAPES, Word, vocabulary
from memlab.kernel.language._why import FeatureGap, TermGap, Why
from memlab.kernel.language._words import canonical
from memlab.kernel.language._writer import read_data, write_call, write_data

__all__ = [
    "DIALECT",
    "FORM_SHAPES",
    "Branch",
    "Change",
    "Coded",
    "Derived",
    "Explanation",
    "FeatureGap",
    "Form",
    "FormDiff",
    "Import",
    "Input",
    "InputType",
    "Known",
    "NumericLiteral",
    "PackSource",
    "Param",
    "Policy",
    "PolicyForm",
    "Program",
    "Returns",
    "Setting",
    "Signature",
    "Subtree",
    "Term",
    "TermGap",
    "Text",
    "Tree",
    "TreeNode",
    "Type",
    "Value",
    "Why",
    "Word",
    "canonical",
    "changed_fields",
    "compile_policy",
    "diff_packs",
    "diff_policies",
    "highlight",
    "inlined",
    "literals",
    "parametrize",
    "policy_form_text",
    "policy_parts",
    "possible_results",
    "read_data",
    "read_forms",
    "read_header",
    "read_import",
    "read_pack",
    "read_policy_form",
    "read_setting",
    "replace",
    "slot_of",
    "subtrees",
    "vocabulary",
    "with_param",
    "with_setting",
    "write_call",
    "write_data",
]

_REMOVED = {name: f"memlab.science.breeding.{name}" for name in ("MUTATIONS", "Offspring", "crossover", "mutate")}
"""Public names of earlier versions, and where they are now."""


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name, _REMOVED)
