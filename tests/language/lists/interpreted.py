"""List policies for the interpreter, a slate for them, and how their results are read."""

from __future__ import annotations

from memlab.kernel.language import Input, Signature
from memlab.kernel.language._definition import definition
from memlab.kernel.language._library import helper, library, named
from memlab.kernel.language._lists import ListProgram
from memlab.kernel.language._reader import Text, read_forms
from tests.language.lists.test_originals import LISTS, TAIL

__all__ = ["ARGUMENTS", "INPUTS", "SLATE", "SLOT", "items", "policy_of", "program", "value", "weights"]

INPUTS = (
    *TAIL.inputs.values(),
    Input("kind", "str"),
    Input("pinned", "bool"),
    Input("tags", "set"),
    Input("query-words"),
)
SLOT = Signature("explore", INPUTS, lists={**LISTS, "kinds": "kind", "pins": "pinned"})
ARGUMENTS = "limit tail_n acts accs kinds pins"


def program(source: str, signature: Signature = SLOT, params: dict[str, float] | None = None) -> ListProgram:
    """A list policy from its text, helpers in front."""
    text = Text(source, "explore")
    forms = read_forms(text)
    own = named(helper(form, text) for form in forms if form.head == "defn")
    parts = definition(forms[-1], text)
    names = tuple(a.text for a in parts.arguments)
    return ListProgram(names, parts.body, text, signature, {**library(), **own}, params or {})


def policy_of(body: str) -> ListProgram:
    """The policy with this body, which may read all that the slot gives."""
    return program(f"(lambda ({ARGUMENTS}) {body})")


SLATE: dict[str, list] = {
    "limit": [10.0] * 4,
    "tail-n": [4.0] * 4,
    "activation": [0.5, 0.25, 0.75, 0.0],
    "access": [2.0, 7.0, 1.0, 9.0],
    "kind": ["fact", "event", None, "fact"],
    "pinned": [False, None, True, False],
}


def weights(body: str) -> list[float]:
    return policy_of(body).weights(SLATE, 4).tolist()


def value(expression: str) -> object:
    """What an expression gives, found by asking which numbers, or null, it equals."""
    answers = {
        "null": f"(if (null? {expression}) 0 -1)",
        "nan": f"(let [v {expression}] (if (null? v) -1 (if (and (= v v) (not (<= v 1e308)) (= v (/ 0 0))) 0 -1)))",
    }
    for name, test in answers.items():
        if weights(test) == [1, 0, 0, 0]:
            return name
    for number in [*range(-9, 100), 0.5, 0.25, 0.75]:
        if weights(f"(if (= {expression} {number}) 0 -1)") == [1, 0, 0, 0]:
            return number
    raise AssertionError(expression)


def items(expression: str) -> list[object]:
    """A list, item by item."""
    return [value(f"(nth {expression} {i})") for i in range(int(value(f"(length {expression})")))]
