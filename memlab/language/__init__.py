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
from memlab.language._arrays import Coded
from memlab.language._changes import changed_fields, possible_results
from memlab.language._dag import Value
from memlab.language._derived import Derived
from memlab.language._diff import Change, FormDiff, diff_packs, diff_policies
from memlab.language._edit import (
    NumericLiteral,
    Subtree,
    literals,
    parametrize,
    replace,
    subtrees,
    with_param,
)
from memlab.language._explain import Branch, Explanation, Term
from memlab.language._given import policy_form_text, policy_parts
from memlab.language._highlight import highlight
from memlab.language._inline import inlined
from memlab.language._known import Known, Program
from memlab.language._pack import (
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
from memlab.language._params import Param
from memlab.language._parsed import PolicyForm, slot_of
from memlab.language._policy import DIALECT, Policy, compile_policy
from memlab.language._reader import Form, Text, read_forms
from memlab.language._signature import Input, InputType, Returns, Signature, Type
from memlab.language._tree import Tree, TreeNode
from memlab.language._vocabulary import FORM_SHAPES, Word, vocabulary
from memlab.language._why import FeatureGap, TermGap, Why
from memlab.language._words import canonical
from memlab.language._writer import read_data, write_call, write_data

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

_REMOVED = {name: f"memlab.breeding.{name}" for name in ("MUTATIONS", "Offspring", "crossover", "mutate")}
"""Public names of earlier versions, and where they are now."""


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name, _REMOVED)
