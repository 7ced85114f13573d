"""The parts of the language that a package needs to edit a policy's text: forms, sites, names and features."""

from memlab.kernel.language._check import Env
from memlab.kernel.language._dag import Node, reachable
from memlab.kernel.language._edit import Span, edited, form_at, missing_features, parsed, sites
from memlab.kernel.language._parsed import Path, fragment, symbols_of, used_helpers
from memlab.kernel.language._reader import flat_pairs
from memlab.kernel.language._source import number
from memlab.kernel.language._words import ALIASES, quoted

__all__ = [
    "ALIASES",
    "Env",
    "Node",
    "Path",
    "Span",
    "edited",
    "flat_pairs",
    "form_at",
    "fragment",
    "missing_features",
    "number",
    "parsed",
    "quoted",
    "reachable",
    "sites",
    "symbols_of",
    "used_helpers",
]
