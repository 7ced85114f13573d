"""Pages of HTML from a template, in one style: a file asks for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["render_page"]


def render_page(template: Path, filters: Mapping[str, Callable[..., Any]], **values: object) -> str:
    """The page that ``template`` makes of ``values``, everything from texts escaped.

    A template has its neighbours and ``page.css``, the style of every page, to include.
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
