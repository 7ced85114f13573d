"""Policies that a caller gives: as text, as a Hy form, or as a policy that was compiled before."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from memlab.errors import InputError
from memlab.language._policy import Policy

__all__ = ["policy_form_text", "policy_parts"]

_DEEPEST = 400
"""Levels of nesting of a form; the reader of texts has the same kind of limit."""


def policy_parts(source: object) -> tuple[str, tuple[str, ...], dict[str, float]]:
    """Return the text, the helpers and the parameter values of a policy that a caller gives.

    Parameters
    ----------
    source
        The text of a policy, a form that Hy's reader made (a quote in front is removed), or a compiled ``Policy``.
        A form is written as text and then read like any other text; none of it is evaluated.

    Returns
    -------
    tuple of str, tuple of str, dict of str to float
        The text; the ``defn`` forms that it was compiled with; the values of parameters that differ from their
        defaults. A text and a form have no helpers and no values.

    Raises
    ------
    InputError
        If ``source`` is none of the three, or a form is nested too deep.

    Examples
    --------
    >>> policy_parts("(fn [similarity] similarity)")
    ('(fn [similarity] similarity)', (), {})
    """
    if isinstance(source, str):
        return str.__str__(source), (), {}
    if isinstance(source, Policy):
        values = {param.name: param.value for param in source.params.values() if param.value != param.default}
        return source.source, source.helpers, values
    text = policy_form_text(source)
    if text is None:
        raise InputError(
            "A policy is a text, a Hy form such as hy.read(...), or a compiled policy such as "
            f'load_pack("companion").policies["recall-score"]; not {type(source).__name__}.'
        )
    return text, (), {}


def policy_form_text(source: object) -> str | None:
    """Return a Hy form as text without a quote in front, or None if ``source`` is no Hy form.

    Raises
    ------
    InputError
        If the form is nested deeper than the reader of policies allows.
    """
    models = sys.modules.get("hy.models")  # whoever holds a form has imported it
    if models is None or not isinstance(source, models.Expression):
        return None
    form: Sequence[object] = source
    while len(form) == 2 and form[0] == models.Symbol("quote") and isinstance(form[1], models.Expression):
        form = form[1]
    level: list[object] = [form]
    for _ in range(_DEEPEST):
        level = [part for one in level if isinstance(one, models.Sequence) for part in one]
        if not level:
            break
    else:
        raise InputError(f"This form is nested deeper than {_DEEPEST} levels; a policy is shallower.")
    import hy

    return str(hy.repr(form)).removeprefix("'")
