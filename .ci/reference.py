"""Check the public surface: the list, the pages of the reference, and every public docstring.

    python .ci/reference.py            # everything; exits with 1 if anything is wrong
    python .ci/reference.py lab agents # the pages lab and agents alone

`docs/reference.toml` names what is public. The sources are read, not imported, so that adapters of frameworks that are
not installed are checked too.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[1]
MAXIMUM = 640  # names that a person can know with the help of a search; 40 for experiments, searches, guards
SUMMARY = 80  # characters: a summary is one line of a tooltip and of `memlab --help`

Pages = dict[str, dict[str, list[str]]]


def read_pages() -> Pages:
    return tomllib.loads((ROOT / "docs" / "reference.toml").read_text(encoding="utf-8"))


def resolve(package: griffe.Module, path: str) -> griffe.Object | None:
    """Return the object at a dotted path, or None. A name that a package re-exports is followed."""
    try:
        target = package[path.removeprefix("memlab.")]
    except (KeyError, griffe.AliasResolutionError, griffe.CyclicAliasError):
        return None
    return follow_alias(target)


def follow_alias(target: griffe.Object | griffe.Alias | None) -> griffe.Object | None:
    try:
        return target.final_target if target is not None and target.is_alias else target
    except (griffe.AliasResolutionError, griffe.CyclicAliasError):
        return None


def resolve_method(owner: griffe.Object, name: str) -> griffe.Object | None:
    try:
        members = owner.all_members
    except (griffe.AliasResolutionError, griffe.CyclicAliasError):
        return None
    return follow_alias(members.get(name))


def check_pages(pages: Pages) -> Iterator[str]:
    """Yield how the list differs from the directives on the pages of the reference."""
    for page, objects in pages.items():
        text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
        directives = set(re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE))
        yield from (f"{page}: the page lacks {name}" for name in sorted(set(objects) - directives))
        yield from (f"{page}: the list lacks {name}" for name in sorted(directives - set(objects)))
    count = sum(1 + len(methods) for objects in pages.values() for methods in objects.values())
    if count > MAXIMUM:
        yield f"{count} names are public; the maximum is {MAXIMUM}"


# Docstrings


def documented(target: griffe.Object, kind: griffe.DocstringSectionKind) -> list[str] | None:
    """Return the names in a section of a docstring, or None if there is no such section."""
    if target.docstring is None:
        return None
    for section in target.docstring.parse("numpy", warnings=False):
        if section.kind is kind:
            names = [getattr(item, "name", "") for item in section.value]
            return [part.strip().lstrip("*") for name in names for part in name.split(",")]
    return None


def parameters(function: griffe.Function) -> list[str]:
    return [
        parameter.name.lstrip("*")
        for parameter in function.parameters
        if parameter.name not in {"self", "cls"} and not parameter.name.startswith("_")
    ]


def check_summary(target: griffe.Object, name: str) -> Iterator[str]:
    if target.docstring is None or not target.docstring.value.strip():
        yield f"{name}: there is no docstring"
        return
    summary = target.docstring.value.strip().splitlines()[0]
    if len(summary) > SUMMARY:
        yield f"{name}: the summary has {len(summary)} characters; the maximum is {SUMMARY}"
    if not summary.endswith((".", "?", ":")):
        yield f"{name}: the summary does not end with a period on its first line"


def check_parameters(
    target: griffe.Object, function: griffe.Function, name: str, *, required: bool
) -> Iterator[str]:
    signature = parameters(function)
    section = documented(target, griffe.DocstringSectionKind.parameters) or []
    if is_dataclass(target) and documented(target, griffe.DocstringSectionKind.attributes):
        return  # the fields of a result; tests/test_reference.py compares them with the section
    if not signature or (not section and not required):
        return
    yield from (
        f"{name}: the parameter {each} is not documented"
        for each in signature
        if each not in section
    )
    yield from (
        f"{name}: {each} is documented and is no parameter"
        for each in section
        if each not in signature
    )


def check_function(function: griffe.Function, name: str) -> Iterator[str]:
    yield from check_summary(function, name)
    if function.docstring is None:
        return
    yield from check_parameters(function, function, name, required=True)
    returns = str(function.returns or "None")
    has_returns = "Returns\n" in function.docstring.value or "Yields\n" in function.docstring.value
    if returns not in {"None", "NoReturn", "Self"} and not has_returns:
        yield f"{name}: there is no section Returns (-> {returns})"


def is_dataclass(target: griffe.Object) -> bool:
    return any("dataclass" in str(decorator.value) for decorator in target.decorators)


def returned_classes(package: griffe.Module, pages: Pages) -> set[str]:
    """Return the names in the annotations of public methods: users receive these objects and make none."""
    names: set[str] = set()
    for objects in pages.values():
        for path in objects:
            target = resolve(package, path)
            if target is not None and target.is_class:
                members = [follow_alias(member) for member in target.members.values()]
                annotations = [getattr(member, "annotation", None) for member in members if member]
                annotations += [getattr(member, "returns", None) for member in members if member]
                names.update(re.findall(r"\w+", " ".join(map(str, annotations))))
    return names


def check_class(
    target: griffe.Class, name: str, methods: list[str], returned: set[str]
) -> Iterator[str]:
    yield from check_summary(target, name)
    constructor = target.members.get("__init__")
    if constructor is not None and constructor.is_function and target.docstring is not None:
        last = name.rpartition(".")[2]
        made_by_users = not last.startswith("Lab") and last not in returned
        documents = (
            constructor
            if documented(constructor, griffe.DocstringSectionKind.parameters)
            else target
        )
        yield from check_parameters(documents, constructor, name, required=made_by_users)
    for method in methods:
        member = resolve_method(target, method)
        if member is None or not member.is_function:
            yield f"{name}.{method}: there is no such method"
        else:
            yield from check_function(member, f"{name}.{method}")
    for property_name, member in target.members.items():
        if member.is_alias or property_name.startswith("_"):
            continue
        if member.is_attribute and "property" in member.labels:
            yield from check_summary(member, f"{name}.{property_name}")


def check_docstrings(
    package: griffe.Module, objects: dict[str, list[str]], returned: set[str]
) -> Iterator[str]:
    for path, methods in objects.items():
        target = resolve(package, path)
        if target is None:
            yield f"{path}: there is no such object"
        elif target.is_class:
            yield from check_class(target, path, methods, returned)
        elif target.is_function:
            yield from check_function(target, path)


# Examples


def public_functions(package: griffe.Module, pages: Pages) -> Iterator[tuple[str, griffe.Function]]:
    """Yield the verbs: the public functions, and the public methods of Lab and its accessors."""
    for objects in pages.values():
        for path, methods in objects.items():
            target = resolve(package, path)
            if target is None:
                continue
            if target.is_function:
                yield path, target
            elif path.rpartition(".")[2].startswith("Lab"):
                for method in methods:
                    member = resolve_method(target, method)
                    if member is not None and member.is_function:
                        yield f"{path}.{method}", member


def has_example(target: griffe.Object) -> bool:
    return target.docstring is not None and ">>>" in target.docstring.value


def check_examples(package: griffe.Module, pages: Pages, only: set[str]) -> Iterator[str]:
    """Yield the verbs, accessors and results without an example that runs."""
    page_of = {path: page for page, objects in pages.items() for path in objects}
    # These need a framework, a server or a notebook, as the functions that IPython calls do.
    excused = {"adapters", "serving", "errors", "extensions", "widgets"}
    by_name = {path.rpartition(".")[2]: path for path in page_of}
    needed: dict[str, griffe.Object] = {}
    for path, function in public_functions(package, pages):
        page = page_of.get(path) or page_of[path.rpartition(".")[0]]
        if page in excused or path.endswith("_ipython_extension"):
            continue
        needed[path] = function
        for name in re.findall(r"\w+", str(function.returns or "")):
            result = by_name.get(name)
            target = resolve(package, result) if result else None
            if result and target is not None and target.is_class and page_of[result] not in excused:
                needed[result] = target
    for path in page_of:
        target = resolve(package, path)
        if (
            path.rpartition(".")[2].startswith("Lab")
            and page_of[path] not in excused
            and target is not None
        ):
            needed[path] = target
    for path, target in needed.items():
        page = page_of.get(path) or page_of[path.rpartition(".")[0]]
        if page in only and not has_example(target):
            yield f"{path}: there is no example"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*")
    options = parser.parse_args()
    pages = read_pages()
    only = set(options.pages) or set(pages)
    package = griffe.load("memlab", search_paths=[str(ROOT)], allow_inspection=False)
    faults = [] if options.pages else [*check_pages(pages)]
    returned = returned_classes(package, pages)
    for page in sorted(only):
        faults += check_docstrings(package, pages[page], returned)
    faults += check_examples(package, pages, only)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
