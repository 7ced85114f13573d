"""For the documentation site: examples of docstrings become fenced code, without their directives to doctest."""

import re

import griffe

_EXAMPLE = re.compile(r"^>>>.*(?:\n(?!\s*$).*)*", flags=re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*(?:\\\s*\n\.\.\.\s*)?# doctest:.*")


def fenced(text: str) -> str:
    """A docstring whose examples are fenced.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1  # doctest: +SKIP\\n2"))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{_DIRECTIVE.sub('', found.group())}\n```", text)


class DoctestFences(griffe.Extension):
    """Fences the examples of every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
