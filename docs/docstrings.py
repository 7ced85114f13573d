"""For the documentation site: docstrings as they are printed.

Examples become fenced code, without their directives to doctest; paths of other pages become links; and a dataclass
that lists no attributes gets the section ``Attributes`` from its fields.
"""

import re
from pathlib import Path

import griffe

_EXAMPLE = re.compile(r"^>>>.*(?:\n(?!\s*$).*)*", flags=re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*(?:\\\s*\n\.\.\.\s*)?# doctest:.*")
_PAGE = re.compile(r"(?<![\w/`])(?<!\]\()docs/((?:[\w-]+/)*[\w-]+)\.md(#[\w-]+)?")
_SECTION = re.compile(r"^Attributes\n-+$", flags=re.MULTILINE)
_DOCS = Path(__file__).parent


def fenced(text: str) -> str:
    """A docstring whose examples are fenced.

    >>> fenced("Adds.\\n\\n>>> 1 + 1  # doctest: +SKIP\\n2").splitlines()
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{_DIRECTIVE.sub('', found.group())}\n```", text)


def linked(text: str) -> str:
    """Return a docstring in which the path of a page is a link to it, as seen from a page of the reference.

    >>> linked("See docs/howto/load.md.")
    'See [Load your data](../howto/load.md).'
    """
    return _PAGE.sub(
        lambda found: f"[{_title(found[1], found[2])}](../{found[1]}.md{found[2] or ''})", text
    )


def _title(page: str, anchor: str | None) -> str:
    """The heading of a page, or of the part of it that the anchor names."""
    headings = re.findall(
        r"^#+ (.+)$", (_DOCS / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    if anchor is None:
        return headings[0]
    by_anchor = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-"): one for one in headings}
    return by_anchor[anchor[1:]].replace("`", "")


def with_attributes(text: str, fields: dict[str, str]) -> str:
    """Return the docstring of a class with a section of its fields, unless it has one.

    >>> print(with_attributes("A point.", {"x": "Across.", "y": ""}))
    A point.
    <BLANKLINE>
    Attributes
    ----------
    x
        Across.
    y
    """
    if not fields or _SECTION.search(text):
        return text
    items = [
        line
        for name, about in fields.items()
        for line in (name, *(f"    {one}" for one in about.splitlines()))
    ]
    return "\n".join([text, "", "Attributes", "----------", *items])


class Docstrings(griffe.Extension):
    """Prepares every docstring that is read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = linked(fenced(obj.docstring.value))

    def on_class_members(self, *, cls: griffe.Class, **_: object) -> None:
        made = cls.members.get("__init__")
        # what is taken over from an argument has the argument's type
        for name, one in cls.members.items():
            if (
                made is not None
                and one.is_attribute
                and one.annotation is None
                and name in made.parameters
            ):
                one.annotation = made.parameters[name].annotation
        if cls.docstring is None or "dataclass" not in {
            one.callable_path.split(".")[-1] for one in cls.decorators
        }:
            return
        fields = {
            name: one
            for name, one in cls.members.items()
            if one.is_attribute and not name.startswith("_")
        }
        fields = {
            name: one
            for name, one in fields.items()
            if "property" not in one.labels and one.annotation
        }
        fields = {
            name: one for name, one in fields.items() if "ClassVar" not in str(one.annotation)
        }
        about = {name: one.docstring.value if one.docstring else "" for name, one in fields.items()}
        cls.docstring.value = with_attributes(cls.docstring.value, about)
        for one in fields.values():
            one.docstring = None
