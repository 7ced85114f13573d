"""Extension of griffe for the documentation site: public methods, and docstrings in Markdown.

A class shows only the methods that `docs/reference.toml` lists. Examples become fenced code without directives of doctest,
paths of pages become links, and a dataclass without a section ``Attributes`` gets one from its fields.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import griffe

_EXAMPLE = re.compile(r"^>>>.*(?:\n(?!\s*$).*)*", flags=re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*(?:\\\s*\n\.\.\.\s*)?# doctest:.*")
_PAGE = re.compile(r"(?<![\w/`])(?<!\]\()docs/((?:[\w-]+/)*[\w-]+)\.md(#[\w-]+)?")
_SECTION = re.compile(r"^Attributes\n-+$", flags=re.MULTILINE)
_DOCS = Path(__file__).parent


def fence_examples(text: str) -> str:
    """Return a docstring in which each example is a block of code.

    >>> fence_examples("Adds.\\n\\n>>> 1 + 1  # doctest: +SKIP\\n2").splitlines()
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    return _EXAMPLE.sub(lambda match: f"```pycon\n{_DIRECTIVE.sub('', match.group())}\n```", text)


def link_pages(text: str) -> str:
    """Return a docstring in which the path of a page is a link, relative to a page of the reference.

    >>> link_pages("See docs/howto/load.md.")
    'See [Load your data](../howto/load.md).'
    """
    return _PAGE.sub(
        lambda match: f"[{_read_title(match[1], match[2])}](../{match[1]}.md{match[2] or ''})", text
    )


def _read_title(page: str, anchor: str | None) -> str:
    """Return the heading of a page, or of its section with this anchor."""
    headings = re.findall(
        r"^#+ (.+)$", (_DOCS / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    if anchor is None:
        return headings[0]
    by_anchor = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"): heading for heading in headings
    }
    return by_anchor[anchor[1:]].replace("`", "")


def add_attributes(text: str, fields: dict[str, str]) -> str:
    """Return the docstring of a class with a section of its fields, unless it has that section.

    >>> print(add_attributes("A point.", {"x": "Across.", "y": ""}))
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
        for name, description in fields.items()
        for line in (name, *(f"    {part}" for part in description.splitlines()))
    ]
    return "\n".join([text, "", "Attributes", "----------", *items])


def read_public_methods() -> dict[str, list[str]]:
    """Return the public methods of each class and function of the reference, by path."""
    pages = tomllib.loads((_DOCS / "reference.toml").read_text(encoding="utf-8"))
    return {path: methods for page in pages.values() for path, methods in page.items()}


def remove_other_methods(package: griffe.Module, public: Mapping[str, list[str]]) -> None:
    """Remove the methods of public classes that the list does not name. Attributes and properties stay."""
    for path, methods in public.items():
        target = package[path.removeprefix("memlab.")]
        if target.is_alias:
            target = target.final_target
        if not target.is_class:
            continue
        for name, member in list(target.members.items()):
            # A name with an underscore is private already, and ``__init__`` has the signature of the class.
            if member.is_function and not name.startswith("_") and name not in methods:
                target.del_member(name)


class Docstrings(griffe.Extension):
    """Prepare every object that the site reads."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        if pkg.name == "memlab":
            remove_other_methods(pkg, read_public_methods())

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = link_pages(fence_examples(obj.docstring.value))

    def on_class_members(self, *, cls: griffe.Class, **_: object) -> None:
        constructor = cls.members.get("__init__")
        # An attribute that the constructor sets from a parameter has the type of that parameter.
        for name, member in cls.members.items():
            if (
                constructor is not None
                and member.is_attribute
                and member.annotation is None
                and name in constructor.parameters
            ):
                member.annotation = constructor.parameters[name].annotation
        decorators = {decorator.callable_path.split(".")[-1] for decorator in cls.decorators}
        if cls.docstring is None or "dataclass" not in decorators:
            return
        fields = {
            name: member
            for name, member in cls.members.items()
            if member.is_attribute
            and not name.startswith("_")
            and "property" not in member.labels
            and member.annotation
            and "ClassVar" not in str(member.annotation)
        }
        descriptions = {
            name: member.docstring.value if member.docstring else ""
            for name, member in fields.items()
        }
        cls.docstring.value = add_attributes(cls.docstring.value, descriptions)
        # The section describes the fields, so the site does not list them again.
        for member in fields.values():
            member.docstring = None
