"""``lab.on``: functions that are called after a verb of a lab."""

from __future__ import annotations

import inspect
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from time import perf_counter
from typing import Any, Self

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import describe_value, warn_caller
from memlab.kernel.base.logs import LOGGER

# The methods that are reported, by the component that has them; each under the name of its verb.
_METHODS: dict[str, dict[str, str]] = {
    "questions": {"ask": "recall"},
    "remembering": {"remember_many": "remember"},
    "judgements": {"feedback": "feedback", "feedback_many": "feedback"},
    "corrections": {
        "edit": "edit",
        "edit_frame": "edit",
        "forget": "forget",
        "delete": "forget",
        "deprecate": "forget",
        "restore": "restore",
    },
    "attributions": {"answer": "credit"},
    "extraction": {"end": "learn"},
    "verifying": {"verify": "verify"},
    "policies": {
        name: name
        for name in ("use", "install", "rollback", "pin", "unpin", "challenge", "end_challenge")
    },
    "lab": {"verdict": "verdict", "purge": "purge", "close": "close"},
}

VERBS = tuple(sorted({verb for methods in _METHODS.values() for verb in methods.values()}))
"""The verbs that ``lab.on`` takes."""


@dataclass(frozen=True)
class VerbCall:
    """One finished call of a verb, as a listener gets it.

    Attributes
    ----------
    verb
        The name of the verb, such as "recall".
    arguments
        The arguments by name. A recall has ``query``, ``limit``, ``project``, ``session`` and ``filters``.
    result
        The result: ``Hits`` of a recall, ``Remembered`` of "remember", ``Verdicts`` of "verdict". None after an error.
    error
        The error that the verb raised, or None.
    seconds
        The duration of the call.
    """

    verb: str
    arguments: Mapping[str, Any] = field(repr=False)
    result: Any
    error: Exception | None
    seconds: float


class Listener:
    """A function that ``lab.on`` registered, until ``remove`` or the end of ``with``.

    Attributes
    ----------
    verb
        The verb, or "*" for all.
    errors
        The number of calls in which the function raised an error.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> with lab.on("remember", lambda call: print(call.verb, len(call.result))) as listener:
    ...     _ = lab.remember("The user prefers tabs")
    remember 1
    >>> listener.errors
    0
    """

    def __init__(self, verb: str, call: Callable[[VerbCall], object], listeners: Listeners) -> None:
        self.verb, self._call, self._listeners, self.errors = verb, call, listeners, 0

    def __call__(self, call: VerbCall) -> None:
        """Call the function; log every error, and raise a warning for the first error only."""
        try:
            self._call(call)
        except Exception as error:  # noqa: BLE001 - the verb has already done its work
            LOGGER.exception("A listener of %s failed.", call.verb)
            self.errors += 1
            if self.errors == 1:
                # Where warnings are errors, the log has the failure, and the verb still returns.
                with suppress(Warning):
                    warn_caller(
                        f"A listener of {call.verb!r} failed: {type(error).__name__}: {error}. The verb itself "
                        "was not affected. Later failures are only logged (logger memlab)."
                    )

    def remove(self) -> None:
        """Stop calling the function; a second call has no effect.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> listener = lab.on("recall", print)
        >>> listener.remove()
        """
        self._listeners.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Listener of {self.verb}: {describe_value(self._call)}>"


class Listeners:
    """The listeners of one lab.

    Methods are replaced on the objects of this lab while there are listeners, so a lab without listeners spends nothing.
    """

    def __init__(self) -> None:
        self._by_verb: defaultdict[str, tuple[Listener, ...]] = defaultdict(tuple)
        self._watched: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()
        # A listener may recall; that recall is not reported to listeners.
        self._thread = threading.local()

    def add(self, verb: str, call: Callable[[VerbCall], object]) -> Listener:
        """Register a function to call after a verb, or after every verb for "*"."""
        if verb != "*" and verb not in VERBS:
            raise UnknownName("verb", verb, [*VERBS, "*"])
        if not callable(call) or inspect.iscoroutinefunction(call):
            raise InputError(
                f"on({verb!r}, f) takes a function of one argument, not {describe_value(call)}. AsyncLab.on takes "
                "coroutine functions."
            )
        listener = Listener(verb, call, self)
        self._by_verb[verb] += (listener,)
        return listener

    def remove(self, listener: Listener) -> None:
        """Remove a listener; the last removal restores the methods of all watched objects."""
        self._by_verb[listener.verb] = tuple(
            other for other in self._by_verb[listener.verb] if other is not listener
        )
        if not any(self._by_verb.values()):
            for target, methods in self._watched.items():
                for method in methods:
                    target.__dict__.pop(method, None)
            self._watched.clear()

    def watch(self, name: str, target: Any) -> Any:
        """Report the verbs of a component to listeners, if any; return the component."""
        methods = _METHODS.get(name)
        if methods and any(self._by_verb.values()) and target not in self._watched:
            self._watched[target] = methods
            for method, verb in methods.items():
                # A strong reference to the lab or its parts would keep them until the garbage collector
                # runs. An accessor is made for one call, and nobody else holds it.
                owner = (lambda: target) if name == "policies" else weakref.ref(target)
                target.__dict__[method] = self._report(getattr(type(target), method), owner, verb)
        return target

    def _report(
        self, function: Callable[..., Any], owner: Callable[[], Any], verb: str
    ) -> Callable[..., Any]:
        """Return a method that calls a verb and then the verb's listeners."""
        signature = inspect.signature(function)

        def name_arguments(args: Any, keywords: Any) -> dict[str, Any]:
            try:
                bound = signature.bind_partial(None, *args, **keywords).arguments
            except TypeError:  # the verb refused the arguments; its own error is in flight
                return dict(keywords)
            return {name: value for name, value in bound.items() if name != "self"}

        @wraps(function)
        def reporting(*args: Any, **keywords: Any) -> Any:
            own = owner()
            listeners = self._by_verb[verb] + self._by_verb["*"]
            if not listeners or getattr(self._thread, "reports", False):
                return function(own, *args, **keywords)
            began = perf_counter()
            result: Any = None
            failure: Exception | None = None
            try:
                result = function(own, *args, **keywords)
            except Exception as error:
                failure = error
                raise
            finally:
                self._thread.reports = True
                try:
                    call = VerbCall(
                        verb,
                        name_arguments(args, keywords),
                        result,
                        failure,
                        perf_counter() - began,
                    )
                    for listener in listeners:
                        listener(call)
                finally:
                    self._thread.reports = False
            return result

        return reporting
