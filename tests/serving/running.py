"""Coroutines run in a thread of their own: a browser of another test may have left a loop running in this one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from mcp.client.extension import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID

APPS = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})]
"""What a client says that shows pages of MCP Apps."""


def run_alone(coroutine):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
