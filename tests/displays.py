"""What a notebook shows of a value: the methods of IPython's display protocol, called here alone."""

from typing import Any


def html_of(value: Any) -> str:
    """Return a value as HTML."""
    return value._repr_html_()


def png_of(figure: Any) -> bytes:
    """Return a figure as a picture."""
    return figure._repr_png_()


def page_of(widget: Any) -> str:
    """Return the HTML that replaces a widget on a page without Python."""
    data, _ = widget._repr_mimebundle_()
    return data["text/html"]


def completions_of(value: Any) -> list[str]:
    """Return the keys that IPython offers after ``value[``."""
    return value._ipython_key_completions_()
