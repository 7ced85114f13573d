"""A browser for tests.

A missing browser skips the test, unless MEMLAB_BROWSER is "required", as it is in continuous integration. Otherwise the
variable is the path of a Chromium that is not at one of the usual paths.
"""

import contextlib
import os
import shutil

import pytest


def absent(why):
    if os.environ.get("MEMLAB_BROWSER") == "required":
        pytest.fail(why)
    pytest.skip(why)


@contextlib.contextmanager
def launched():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("Playwright is not installed: pip install 'memlab-core[dev]'")
    value = os.environ.get("MEMLAB_BROWSER", "required")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = value if value != "required" else next(filter(None, map(shutil.which, names)), None)
    if path is None:
        absent("No Chromium was found; MEMLAB_BROWSER may be its path.")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()
