"""Calls that check their arguments by their annotations, parameters as described, and former names of attributes."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

from memlab.errors import (
    InputError,
    LabError,
    MemlabError,
    RenamedWarning,
    UnknownName,
    did_you_mean,
)
from memlab.kernel.base.arguments._rules import Misfit, Rule, Within, describe_error, rule_of
from memlab.kernel.base.threads import free_interrupted

__all__ = ["Parameter", "checked", "describe_parameters", "renamed", "warn_caller"]

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def checked(call: _Callable) -> _Callable:
    """A function, method or dataclass that checks its arguments by their annotations. It costs about a microsecond.

    Annotations are read at the first call, so that importing costs nothing. Defaults are not checked.

    >>> from memlab.kernel.base.arguments import Count
    >>> @checked
    ... def power(base: float, exponent: Count = 2) -> float:
    ...     return base**exponent
    >>> power(3.0, exponent=0)
    Traceback (most recent call last):
    memlab.errors.InputError: power(exponent=...): exponent is a whole number of at least 1, not 0.
    """
    if isinstance(call, type):
        call.__init__ = checked(call.__init__)  # type: ignore[misc]
        return call
    function = cast("types.FunctionType", call)
    plan: _Plan | None = None

    @functools.wraps(function)
    def checking(*args: Any, **given: Any) -> Any:
        nonlocal plan
        if plan is None:
            plan = _Plan.of(function)
        if len(args) > plan.first:
            args = plan.positional(args)
        if given:
            plan.named(given)
        try:
            return function(*args, **given)
        except MemlabError:
            raise
        except KeyboardInterrupt as error:
            free_interrupted(error)
            raise
        except OSError as error:
            raise LabError(f"{plan.where}: the system refused it: {error}.") from error
        except Exception as error:
            # NumPy's comparison of records makes a TypeError of it
            if isinstance(error.__cause__, KeyboardInterrupt):
                free_interrupted(error)
                raise KeyboardInterrupt from error
            at = error.__traceback__
            # Python refused the call itself
            if type(error) is TypeError and at is not None and at.tb_next is None:
                plan.refuse_unknown(given)
            if type(error).__module__ != "polars.exceptions":
                raise
            raise InputError(f"{plan.where}: Polars refused it: {error}") from error

    checking.__checked__ = True  # type: ignore[attr-defined]
    return cast("_Callable", checking)


class _Plan(NamedTuple):
    """The rules of one call: by place (``rest`` for ``*args``) and by name."""

    where: str
    first: int
    """The first place that has a rule: ``self`` has none."""
    places: tuple[tuple[str, Rule | None], ...]
    rest: tuple[str, Rule | None]
    names: Mapping[str, Rule]
    known: frozenset[str]
    """What may be given by name."""

    @classmethod
    def of(cls, function: types.FunctionType) -> _Plan:
        where = _place(function)
        rules: dict[str, Rule | None] = {}
        for name, hint in _hints_of(function).items():
            rules[name] = rule_of(hint, f"{where}({name}=...)")
        places: list[tuple[str, Rule | None]] = []
        rest: tuple[str, Rule | None] = ("", None)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                places.append((name, rules.get(name)))
            elif parameter.kind is parameter.VAR_POSITIONAL:
                rest = (name, rules.pop(name, None))
            elif parameter.kind is parameter.VAR_KEYWORD:
                rules.pop(name, None)
        known = frozenset(
            name
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            and name != "self"
        )
        first = next(
            (number for number, (_, rule) in enumerate(places) if rule is not None), len(places)
        )
        named = {name: rule for name, rule in rules.items() if rule is not None}
        return cls(where, first, tuple(places), rest, named, known)

    def positional(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        places = self.places
        count = len(places)
        taken = list(args)
        for number in range(self.first, len(args)):
            name, rule = places[number] if number < count else self.rest
            if rule is not None:
                taken[number] = self._taken(name, rule, args[number])
        return tuple(taken)

    def named(self, given: dict[str, Any]) -> None:
        for name in given:
            rule = self.names.get(name)
            if rule is not None:
                given[name] = self._taken(name, rule, given[name])

    def refuse_unknown(self, given: Mapping[str, Any]) -> None:
        """Raise InputError with the nearest name for the first that the call does not have."""
        for name in given:
            if name not in self.known:
                raise InputError(
                    f'{self.where} has no argument "{name[:60]}". {did_you_mean(name, self.known)}'
                ) from None

    def _taken(self, name: str, rule: Rule, value: Any) -> Any:
        try:
            taken = rule.take(value)
        except MemlabError as error:
            raise InputError(f"{self.where}({name}=...): {error}") from error
        except Exception as error:
            raise InputError(
                f"{self.where}({name}=...): {name} cannot be read: {describe_error(error)}"
            ) from error
        if type(taken) is Misfit:
            if taken.word is not None:
                raise UnknownName(f"{name} of {self.where}", taken.word[:60], taken.words)
            end = "" if taken.given.endswith("?") else "."
            raise InputError(
                f"{self.where}({name}=...): {name}{taken.place} is {taken.expected}, not {taken.given}{end}"
            )
        return taken


def _place(function: types.FunctionType) -> str:
    """How people call it: ``recall``, ``Lab``, ``open``."""
    *owners, name = function.__qualname__.split(".")
    if name in ("__init__", "__new__") and owners:
        return owners[-1]
    return {"open_lab": "open", "load_lab": "load", "pack_names": "packs"}.get(name, name)


class Parameter(NamedTuple):
    """A parameter of a call, as the call's signature, annotation and docstring describe it."""

    name: str
    types: tuple[Any, ...]
    """The alternatives of its annotation, without ``None`` and without limits."""
    required: bool
    default: Any
    limits: Within | None
    doc: str
    """The text below the parameter's name in the section "Parameters"; empty where there is none."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that are admitted, where the annotation lists them."""
        return next(
            (typing.get_args(kind) for kind in self.types if typing.get_origin(kind) is Literal), ()
        )


def describe_parameters(call: Callable[..., Any]) -> dict[str, Parameter]:
    """Describe the parameters of a function or method by name, for forms and commands that are made of them.

    >>> from memlab.kernel.base.arguments import Count
    >>> def power(base: float, exponent: Count | None = 2) -> float: ...
    >>> describe_parameters(power)["exponent"][1:5]
    ((<class 'int'>,), False, 2, Within(least=1, most=inf, above=False))
    """
    function = cast("types.FunctionType", inspect.unwrap(call))
    docs, described = _parameter_docs(function), {}
    for name, hint in _hints_of(function).items():
        parameter = inspect.signature(function).parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kinds = list(_alternatives(hint))
        limits = next(
            (extra for _, extras in kinds for extra in extras if isinstance(extra, Within)), None
        )
        required = parameter.default is parameter.empty
        default = None if required else parameter.default
        types_ = tuple(kind for kind, _ in kinds)
        described[name] = Parameter(name, types_, required, default, limits, docs.get(name, ""))
    return described


def _hints_of(function: types.FunctionType) -> dict[str, Any]:
    """Evaluate the annotations of a function's parameters; they are text of this package."""
    return {
        name: eval(hint, function.__globals__) if isinstance(hint, str) else hint
        for name, hint in function.__annotations__.items()
        if name != "return"
    }


def _alternatives(hint: Any, extras: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Give each type that an annotation admits but None, with what ``Annotated`` says of it."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        yield from _alternatives(args[0], args[1:])
    elif origin in (typing.Union, types.UnionType):
        for arg in args:
            yield from _alternatives(arg, extras)
    elif hint is not type(None):
        yield hint, extras


def _parameter_docs(function: types.FunctionType) -> dict[str, str]:
    """Read the section "Parameters" of a NumPy docstring: the text of each parameter, on one line."""
    _, _, rest = (inspect.getdoc(function) or "").partition("\nParameters\n----------\n")
    docs: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in rest.partition("\n\n")[0].splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
        else:
            lines = docs[line.strip()] = []
    return {name: " ".join(words) for name, words in docs.items()}


# -- names of earlier versions ----------------------------------------------------------------------------------------


def renamed(
    owner: object,
    called: str,
    name: str,
    table: Mapping[str, str | tuple[str, Callable[[Any], Any]]],
) -> Any:
    """Return what a former name of an attribute stands for, and warn.

    Parameters
    ----------
    owner
        The object that had the attribute.
    called
        What the owner is called in examples, such as ``lab``.
    name
        The former name.
    table
        By former name, the path of the attribute that replaces it, or the call to write and a function from the owner
        to something that is called as the former attribute was.

    Raises
    ------
    KeyError
        If the table does not have the name.
    """
    entry = table[name]
    instead, found = (entry, attrgetter(entry)) if isinstance(entry, str) else entry
    message = (
        f"{called}.{name} is {called}.{instead} from now on; the former name works throughout 0.2."
    )
    warn_caller(message, RenamedWarning)
    return found(owner)


# -- warnings that name the caller's line -----------------------------------------------------------------------------

_PACKAGE = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that is not memlab's own, however many of memlab's calls lie between."""
    frame, level = sys._getframe(1), 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
