"""A hook of the documentation's build: examples of policies name their slot after the language, which Markdown does not."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page with ```` ```hy SLOT ```` as ```` ```hy ````, which would not begin a block of code."""
    return re.sub(r"^```hy \S+$", "```hy", markdown, flags=re.MULTILINE)
