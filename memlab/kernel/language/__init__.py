"""The policy language: S-expressions, checked into a typed graph and run on columns, arrays or one row.

No part of a policy is executed as Python code. ``memlab.subjects.lens`` explains, compares and edits policies.

>>> slot = Signature("recall-score", [Input("similarity"), Input("age_days")])
>>> policy = compile_policy("(fn [similarity age-days] (* similarity (half-life-decay age-days 30)))", slot)
>>> policy.inputs
('age-days', 'similarity')
>>> policy.row({"similarity": 0.8, "age_days": 30})
0.4
"""

from typing import Any

from memlab.kernel.former_paths import moved_name
from memlab.kernel.language.arrays import Coded
from memlab.kernel.language.graph import Value
from memlab.kernel.language.pack import (
    Import,
    PackSource,
    inline_imports,
    read_header,
    read_import,
    read_pack,
    read_policy_form,
    read_setting,
    with_setting,
)
from memlab.kernel.language.policy import (
    DIALECT,
    Known,
    Policy,
    Program,
    changed_fields,
    compile_policy,
    policy_parts,
    possible_results,
)
from memlab.kernel.language.reader import Form, Text, canonical, read_forms
from memlab.kernel.language.signature import Input, InputType, Param, Returns, Signature
from memlab.kernel.language.texts import PolicyForm, inherit_form, needs_parent, slot_of
from memlab.kernel.language.writer import (
    is_hy_model,
    is_policy_form,
    policy_form_text,
    read_data,
    write_call,
    write_data,
)

__all__ = [
    "DIALECT",
    "Coded",
    "Form",
    "Import",
    "Input",
    "InputType",
    "Known",
    "PackSource",
    "Param",
    "Policy",
    "PolicyForm",
    "Program",
    "Returns",
    "Signature",
    "Text",
    "Value",
    "canonical",
    "changed_fields",
    "compile_policy",
    "inherit_form",
    "inline_imports",
    "is_hy_model",
    "is_policy_form",
    "needs_parent",
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
    "slot_of",
    "with_setting",
    "write_call",
    "write_data",
]

_MOVED = {
    **dict.fromkeys(("crossover", "mutate"), "memlab.science.breeding"),
    **dict.fromkeys(
        (
            "Branch",
            "Change",
            "Explanation",
            "FORM_SHAPES",
            "FeatureGap",
            "FormDiff",
            "NumericLiteral",
            "Subtree",
            "Term",
            "TermGap",
            "Tree",
            "TreeNode",
            "Why",
            "Word",
            "diff_packs",
            "diff_policies",
            "highlight",
            "literals",
            "parametrize",
            "replace",
            "subtrees",
            "vocabulary",
            "with_param",
        ),
        "memlab.subjects.lens",
    ),
}
"""Public names of earlier versions, and the packages that contain them now."""


def __getattr__(name: str) -> Any:
    return moved_name(__name__, name, _MOVED)
