"""Tools to explain, compare, edit and highlight policies.

The kernel runs policies without this package. It imports some of its functions by name (``memlab.kernel.hooks.PARTS``).
"""

from memlab.subjects.lens.attribution import Attribution
from memlab.subjects.lens.diff import Change, FormDiff, PolicyDiff, diff_packs, diff_policies
from memlab.subjects.lens.edit import (
    NumericLiteral,
    Subtree,
    literals,
    parametrize,
    replace,
    subtrees,
    with_param,
)
from memlab.subjects.lens.explain import Branch, Explanation, FeatureGap, Term, TermGap, Why
from memlab.subjects.lens.highlight import FORM_SHAPES, Word, highlight, vocabulary
from memlab.subjects.lens.module import bind_form, expand_form
from memlab.subjects.lens.tree import Tree, TreeNode

__all__ = [
    "FORM_SHAPES",
    "Attribution",
    "Branch",
    "Change",
    "Explanation",
    "FeatureGap",
    "FormDiff",
    "NumericLiteral",
    "PolicyDiff",
    "Subtree",
    "Term",
    "TermGap",
    "Tree",
    "TreeNode",
    "Why",
    "Word",
    "bind_form",
    "diff_packs",
    "diff_policies",
    "expand_form",
    "highlight",
    "literals",
    "parametrize",
    "replace",
    "subtrees",
    "vocabulary",
    "with_param",
]
