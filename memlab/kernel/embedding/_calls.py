"""Calls of an embedder that a caller brings: batches, attempts, a time limit, and async functions.

Vectors leave this module as integers, each checked once.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import cache
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from memlab.errors import InputError, MemlabError
from memlab.kernel.base.arguments import describe_error
from memlab.kernel.base.arrays import Components, Floats
from memlab.kernel.base.progress import Step, bar
from memlab.kernel.base.threads import ThreadLock

BATCH = 256
"""Default number of texts per call. Services refuse more than 2,048 texts, and larger batches are not faster."""

_FIRST_PAUSE = 0.1
"""Seconds before the second attempt. Each later pause is four times as long."""

_PROGRAMMING = (
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    NotImplementedError,
    ImportError,
)
"""Errors that another attempt would only repeat."""

_SHOWN_FROM = 2.0
"""Expected seconds of the remaining batches from which their progress is shown."""

_KEPT = 100_000
"""Maximum number of vectors that are kept after a failed batch, 38 MB of 384 components."""

_QUERIES = 512
"""Number of queries whose vectors are cached: several users' last hours, 0.2 MB."""


class Calls:
    """A function from texts to int8 vectors, computed by calls of a caller's function.

    If a batch fails, the vectors of the batches before it are kept, and the next call embeds only the rest.

    Parameters
    ----------
    function
        A function from a list of texts to vectors. It may be async.
    name
        Name of the embedder, for messages.
    prefix
        Text in front of every text.
    dimensions
        Number of leading components that are kept, or None for all.
    batch_size
        Maximum number of texts per call.
    retries
        Number of further attempts after a failed one.
    timeout
        Maximum seconds of a call, or None for no limit.
    progress
        Whether to show the progress of work of more than two seconds.
    """

    def __init__(
        self,
        function: Callable[[list[str]], ArrayLike | Awaitable[ArrayLike]],
        name: str,
        *,
        prefix: str = "",
        dimensions: int | None = None,
        batch_size: int = BATCH,
        retries: int = 2,
        timeout: float | None = None,
        progress: bool = True,
    ) -> None:
        self._function, self._name, self._prefix = function, name, prefix
        self._dimensions, self._batch, self._retries = dimensions, batch_size, retries
        self._timeout, self._progress = timeout, progress
        self._kept: dict[bytes, Components] = {}
        self._queries: OrderedDict[str, Components] = OrderedDict()
        # Several threads may recall and remember at once.
        self._lock = ThreadLock()
        self.dim: int | None = None

    @property
    def is_changed(self) -> bool:
        """Whether a prefix or a truncation changes the vectors that the function returns."""
        return bool(self._prefix) or self._dimensions is not None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to pickle, without the lock."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=ThreadLock())

    def raw(self, texts: list[str]) -> Floats:
        """Return the checked vectors of one call, truncated to ``dimensions``."""
        vectors = checked_vectors(
            self._attempt([self._prefix + text for text in texts]),
            texts,
            self.dim if self._dimensions is None else None,
            self._name,
        )
        wanted = self._dimensions
        if wanted is not None and wanted > vectors.shape[1]:
            raise InputError(
                f"Embedder {self._name} returns {vectors.shape[1]} dimensions, so {wanted} cannot be kept. Pass "
                f"dimensions={vectors.shape[1]} or fewer."
            )
        return vectors[:, :wanted]

    def __call__(self, texts: list[str]) -> Components:
        """Return the int8 vectors of texts, batch by batch."""
        if len(texts) <= self._batch and not self._kept:
            return quantize(self.raw(texts))
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        with self._lock:
            vectors = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        try:
            self._embed_batches(missing, vectors)
        except BaseException as error:
            with self._lock:
                self._kept = dict(islice(vectors.items(), _KEPT))
            if vectors and isinstance(error, MemlabError):
                error.add_note(
                    f"{len(vectors):,} of {len(set(keys)):,} texts are embedded. Repeat the call with the same embedder "
                    "object to embed only the rest."
                )
            raise
        with self._lock:
            self._kept = {}
        return np.stack([vectors[key] for key in keys])

    def _embed_batches(
        self, missing: Mapping[bytes, str], vectors: dict[bytes, Components]
    ) -> None:
        """Add the vector of each text in ``missing`` to ``vectors``, by its key, and show progress if that takes long."""
        keys, started = list(missing), time.monotonic()
        with ExitStack() as stack:
            step: Step | None = None
            for start in range(0, len(keys), self._batch):
                part = keys[start : start + self._batch]
                rows = quantize(self.raw([missing[key] for key in part]))
                vectors.update(zip(part, rows, strict=True))
                if step is None:  # The first batch tells how long the others will take.
                    expected = (time.monotonic() - started) * (len(keys) / len(part) - 1)
                    visible = self._progress and expected > _SHOWN_FROM
                    step = stack.enter_context(
                        bar(visible, len(keys), unit="text", desc="embedding")
                    )
                step(len(part))

    def query(self, text: str) -> Components:
        """Return the vector of a query, from the cache if embedded recently."""
        with self._lock:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        vector: Components = quantize(self.raw([text]))[0]
        vector.flags.writeable = False
        with self._lock:
            self._queries[text] = vector
            if len(self._queries) > _QUERIES:
                self._queries.popitem(last=False)
        return vector

    def forget(self) -> None:
        """Clear the cached vectors of queries and texts, as a purge requires."""
        with self._lock:
            self._queries.clear()
            self._kept.clear()

    def _attempt(self, texts: list[str]) -> Any:
        """Call the embedding function, with pauses and retries after errors.

        Errors of memlab and programming errors are not retried.
        """
        for attempt in range(self._retries + 1):
            try:
                return self._call(texts)
            except MemlabError:
                raise
            except Exception as error:
                if attempt == self._retries or isinstance(error, _PROGRAMMING):
                    function = getattr(self._function, "__qualname__", self._name)
                    tries = f" ({attempt + 1} attempts)" if attempt else ""
                    raise InputError(
                        f"open(embedder=...): {function} raised {describe_error(error)}{tries}"
                    ) from error
            time.sleep(_FIRST_PAUSE * 4**attempt)
        raise AssertionError  # the last attempt returns or raises

    def _call(self, texts: list[str]) -> Any:
        """Call the embedding function once, on a thread if it is async or has a time limit."""
        if inspect.iscoroutinefunction(self._function) or self._timeout is None:
            returned = self._function(texts)
            if not inspect.isawaitable(returned):
                return returned
            future = asyncio.run_coroutine_threadsafe(_await(returned), _loop())
            try:
                return future.result(self._timeout)
            except TimeoutError as error:
                if not future.cancel():
                    raise  # the function itself raised it
                raise self._late(len(texts)) from error
            except BaseException:
                future.cancel()
                raise
        return self._call_in_thread(texts)

    def _call_in_thread(self, texts: list[str]) -> Any:
        """Call a synchronous function on a thread, which is abandoned after the time limit."""
        outcome: list[Any] = []

        def run() -> None:
            try:
                outcome.extend((True, self._function(texts)))
            except BaseException as error:  # noqa: BLE001  raised again by the caller
                outcome.extend((False, error))

        thread = threading.Thread(target=run, name="memlab embedder", daemon=True)
        thread.start()
        thread.join(self._timeout)
        if len(outcome) < 2:
            raise self._late(len(texts))
        succeeded, value = outcome
        if not succeeded:
            raise value
        return value

    def _late(self, count: int) -> InputError:
        """Return the error for an embedding call of ``count`` texts that exceeded its time limit."""
        return InputError(
            f"Embedder {self._name} returned nothing for {count:,} texts within {self._timeout:g} seconds. Try again, or "
            "pass load_embedder a longer timeout or a smaller batch_size."
        )


async def _await(awaitable: Awaitable[Any]) -> Any:
    """Await any awaitable, coroutine or not, and return its result."""
    return await awaitable


# Clients of async services belong to the event loop of their first call, so all calls share one loop.
@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop on which async embedders run, in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="memlab async embedder", daemon=True).start()
    return loop


def quantize(raw: Floats) -> Components:
    """Scale each row so that its largest component is 127, and round the components."""
    largest = np.maximum.reduce(np.abs(raw), axis=1, keepdims=True)
    largest[largest == 0.0] = 1.0  # Zero vectors remain zero.
    # The division comes first, because 127 / largest overflows for the smallest floats.
    shares = raw / largest
    shares *= 127.0
    rounded: Components = np.rint(shares, out=shares).astype(np.int8)
    return rounded


def checked_vectors(returned: ArrayLike, texts: list[str], dim: int | None, name: str) -> Floats:
    """Validate vectors and return them as a float matrix (texts, dim).

    Raises InputError that names the text without a valid vector.
    """
    try:
        raw = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        raw = _ragged(returned, texts, dim, name)
    except Exception as error:  # Reading an object of the caller may raise anything.
        raise InputError(
            f"Embedder {name} returned a {type(returned).__name__} that cannot be read: {error!r}"
        ) from error
    if raw.ndim != 2 or raw.shape[0] != len(texts) or not raw.shape[1]:
        raise InputError(
            f"Embedder {name} returned an array {raw.shape} for {len(texts)} texts, the first of them "
            f"{_quote(texts[0])}; expected ({len(texts)}, {dim or 'dim'})."
        )
    if dim is not None and raw.shape[1] != dim:
        raise InputError(
            f"Embedder {name} returned {raw.shape[1]} dimensions for text 0 ({_quote(texts[0])}), but {dim} before."
        )
    if not np.isfinite(raw).all():
        finite = np.isfinite(raw).all(axis=1)
        number = int(np.argmin(finite))
        component = int(np.argmin(np.isfinite(raw[number])))
        raise InputError(
            f"Embedder {name} returned {raw[number, component]} in component {component} for text {number} "
            f"({_quote(texts[number])}); all numbers must be finite."
        )
    return raw


def _ragged(returned: Any, texts: list[str], dim: int | None, name: str) -> Floats:
    """Raise InputError that names the first text whose vector is malformed or of another length; never return.

    If no vector differs, the error is about the whole result.
    """
    vectors = list(returned) if hasattr(returned, "__iter__") else []
    for number, vector in enumerate(vectors[: len(texts)]):
        try:
            shape = np.asarray(vector, dtype=np.float64).shape
        except (TypeError, ValueError):
            shape = None
        if shape is None or len(shape) != 1 or (dim is not None and shape != (dim,)):
            what = "no vector of numbers" if shape is None else f"an array {shape}"
            raise InputError(
                f"Embedder {name} returned {what} for text {number} ({_quote(texts[number])}); "
                f"expected {f'{dim} numbers' if dim else 'as many numbers as for the others'}."
            )
        dim = shape[0]
    raise InputError(f"Embedder {name} returned no array of numbers for {len(texts)} texts.")


def _quote(text: str) -> str:
    """Return a text in quotes, clipped to 60 characters."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
