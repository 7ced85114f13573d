"""The process of ``memlab serve``, and coroutines that run in a thread of their own.

A browser of another test may have left a loop running in this one.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from mcp.client.extension import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID

TOKEN = "a-token-of-the-tests"
APPS = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})]
"""What a client says that shows pages of MCP Apps."""


def run_alone(coroutine):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


@contextlib.contextmanager
def serving(folder, *words):
    """Run ``memlab serve`` as a process, which is killed in the end."""
    command = [sys.executable, "-m", "memlab", "serve", str(folder), *words]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes, env=os.environ | {"MEMLAB_TOKEN": TOKEN}) as process:
        try:
            yield process
        finally:
            process.kill()
