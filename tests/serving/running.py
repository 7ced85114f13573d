"""Coroutines run in a thread of their own: a browser of another test may have left a loop running in this one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def run_alone(coroutine):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
