"""A policy that reads the value of another policy, as one text.

(defpolicy recall-score [other-score age-days] (+ other-score (/ 1 (+ 1 age-days)))), where ``other-score`` stands for
(fn [similarity] (* 2 similarity)), becomes

(defpolicy recall-score [similarity age-days]
  (let [other-score (* 2 similarity)]
    (+ other-score (/ 1 (+ 1 age-days)))))

The text is complete: it can be read, hashed, installed, edited and rolled back without the pack of the other policy.
"""

from __future__ import annotations

from collections.abc import Mapping

from memlab.kernel.language._definition import definition
from memlab.kernel.language._parsed import PolicyForm, parse
from memlab.kernel.language._policy import Policy
from memlab.kernel.language._writer import write_data

__all__ = ["inlined"]


def inlined(form: PolicyForm, values: Mapping[str, Policy]) -> tuple[str, tuple[str, ...]]:
    """Return the text of a policy with other policies written into it, and the helpers of those.

    Parameters
    ----------
    form
        A policy whose list of arguments may hold names of ``values``.
    values
        The policy that each of these names stands for.

    Returns
    -------
    tuple of str and tuple of str
        The text as it is where the policy reads none of the names.
    """
    read = [name for name in form.inputs if name in values]
    if not read:
        return form.source, ()
    parts = definition(form.form, form.text)
    arguments: dict[str, None] = {}
    bindings, helpers = [], dict[str, None]()
    for argument in parts.arguments:
        other = values.get(argument.text)
        if other is None:
            arguments[argument.text] = None
            continue
        text, _, inner, _ = parse(other.source, None, other.helpers)
        arguments |= dict.fromkeys(each.text for each in inner.arguments)
        helpers |= dict.fromkeys(other.helpers)
        bindings.append(f"{argument.text}\n          {text.source[inner.body.start : inner.body.stop]}")
    body = form.text.source[parts.body.start : parts.body.stop]
    doc = f"\n  {write_data(parts.doc)}" if parts.doc else ""
    listed, bound = " ".join(arguments), "\n         ".join(bindings)
    return f"(defpolicy {form.slot} [{listed}]{doc}\n  (let [{bound}]\n    {body}))", tuple(helpers)
