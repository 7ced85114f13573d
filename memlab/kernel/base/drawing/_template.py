"""Pages of HTML from a template, in one style: a file asks for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memlab.errors import InputError

__all__ = ["render_page", "write_page"]


def render_page(template: Path, filters: Mapping[str, Callable[..., Any]], **values: object) -> str:
    """The page that ``template`` makes of ``values``, everything from texts escaped.

    A template has its neighbours to include, and ``layout.html``, what every page begins and ends with, to extend.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template(template.name).render(values)


def write_page(html: str, path: str | Path) -> Path:
    """Write a page, its folders too, and return its path; InputError where that is not possible."""
    target = Path(path).expanduser()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InputError(f"The page cannot be written to {target}: {error.strerror}. Name another path.") from None
    return target
