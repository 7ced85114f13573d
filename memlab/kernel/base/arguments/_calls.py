"""Calls that check their arguments, descriptions of parameters, and former names of attributes."""

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

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


def checked(call: _Callable) -> _Callable:
    """Decorate a function, method or dataclass to check its arguments by their annotations.

    A check takes about a microsecond. Annotations are read at the first call, so importing costs nothing. Defaults are not
    checked.

    Parameters
    ----------
    call
        The function, method or dataclass.

    Returns
    -------
    Callable
        A function with the same signature.

    Examples
    --------
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
    def checking(*args: Any, **keywords: Any) -> Any:
        nonlocal plan
        if plan is None:
            plan = _Plan.of(function)
        if len(args) > plan.first:
            args = plan.check_positional(args)
        if keywords:
            plan.check_keywords(keywords)
        try:
            return function(*args, **keywords)
        except MemlabError:
            raise
        except KeyboardInterrupt as error:
            free_interrupted(error)
            raise
        except OSError as error:
            raise LabError(
                f"{plan.where}: the operating system reported an error: {error}."
            ) from error
        except Exception as error:
            # NumPy's comparison of records turns an interrupt into a TypeError.
            if isinstance(error.__cause__, KeyboardInterrupt):
                free_interrupted(error)
                raise KeyboardInterrupt from error
            at = error.__traceback__
            # A TypeError without a further frame means that Python refused the call itself.
            if type(error) is TypeError and at is not None and at.tb_next is None:
                plan.refuse_unknown(keywords)
            if type(error).__module__ != "polars.exceptions":
                raise
            raise InputError(f"{plan.where}: Polars reported an error: {error}") from error

    checking.__checked__ = True  # type: ignore[attr-defined]
    return cast("_Callable", checking)


class _Plan(NamedTuple):
    """The rules of one call by position and by name.

    `first` is the position of the first rule, because ``self`` has none. `rest` is the rule for
    ``*args``. `keywords` has the names that may be passed by keyword.
    """

    where: str
    first: int
    positions: tuple[tuple[str, Rule | None], ...]
    rest: tuple[str, Rule | None]
    names: Mapping[str, Rule]
    keywords: frozenset[str]

    @classmethod
    def of(cls, function: types.FunctionType) -> _Plan:
        """Build the argument-checking plan of a function from its signature."""
        where = _name_of(function)
        rules: dict[str, Rule | None] = {}
        for name, hint in _hints_of(function).items():
            rules[name] = rule_of(hint, f"{where}({name}=...)")
        positions: list[tuple[str, Rule | None]] = []
        rest: tuple[str, Rule | None] = ("", None)
        # A parameter of kind **kwargs is not checked, because its names are not fixed.
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                positions.append((name, rules.get(name)))
            elif parameter.kind is parameter.VAR_POSITIONAL:
                rest = (name, rules.pop(name, None))
            elif parameter.kind is parameter.VAR_KEYWORD:
                rules.pop(name, None)
        keywords = frozenset(
            name
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            and name != "self"
        )
        first = next(
            (number for number, (_, rule) in enumerate(positions) if rule is not None),
            len(positions),
        )
        by_name = {name: rule for name, rule in rules.items() if rule is not None}
        return cls(where, first, tuple(positions), rest, by_name, keywords)

    def check_positional(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return positional arguments, checked and converted."""
        positions = self.positions
        count = len(positions)
        converted = list(args)
        for number in range(self.first, len(args)):
            name, rule = positions[number] if number < count else self.rest
            if rule is not None:
                converted[number] = self._check(name, rule, args[number])
        return tuple(converted)

    def check_keywords(self, arguments: dict[str, Any]) -> None:
        """Check and convert keyword arguments in place."""
        for name in arguments:
            rule = self.names.get(name)
            if rule is not None:
                arguments[name] = self._check(name, rule, arguments[name])

    def refuse_unknown(self, arguments: Mapping[str, Any]) -> None:
        """Raise InputError for an unknown keyword and suggest the nearest name."""
        for name in arguments:
            if name not in self.keywords:
                raise InputError(
                    f'{self.where} has no argument "{name[:60]}". {did_you_mean(name, self.keywords)}'
                ) from None

    def _check(self, name: str, rule: Rule, value: Any) -> Any:
        """Convert an argument by the rule of its annotation, or raise InputError."""
        try:
            converted = rule.take(value)
        except MemlabError as error:
            raise InputError(f"{self.where}({name}=...): {error}") from error
        except Exception as error:
            raise InputError(
                f"{self.where}({name}=...): {name} cannot be read: {describe_error(error)}"
            ) from error
        if type(converted) is Misfit:
            if converted.word is not None:
                raise UnknownName(f"{name} of {self.where}", converted.word[:60], converted.words)
            end = "" if converted.given.endswith("?") else "."
            raise InputError(
                f"{self.where}({name}=...): {name}{converted.position} is {converted.expected}, not {converted.given}{end}"
            )
        return converted


def _name_of(function: types.FunctionType) -> str:
    """Return the name by which users call a function: ``recall``, ``Lab``, ``open``."""
    *owners, name = function.__qualname__.split(".")
    if name in ("__init__", "__new__") and owners:
        return owners[-1]
    return {"open_lab": "open", "load_lab": "load", "pack_names": "packs"}.get(name, name)


class Parameter(NamedTuple):
    """A parameter of a call, from the call's signature, annotation and docstring.

    Attributes
    ----------
    name
        Name of the parameter.
    types
        Alternatives of the annotation, without ``None`` and limits.
    required
        True if the parameter has no default.
    default
        The default, or None.
    limits
        Limits of a number.
    doc
        Text of the parameter in the section "Parameters"; empty if there is none.
    """

    name: str
    types: tuple[Any, ...]
    required: bool
    default: Any
    limits: Within | None
    doc: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words of the parameter's ``Literal`` annotation, or ``()`` for other types."""
        return next(
            (typing.get_args(kind) for kind in self.types if typing.get_origin(kind) is Literal), ()
        )


def describe_parameters(call: Callable[..., Any]) -> dict[str, Parameter]:
    """Describe a function's parameters for building commands and forms.

    >>> from memlab.kernel.base.arguments import Count
    >>> def power(base: float, exponent: Count | None = 2) -> float: ...
    >>> describe_parameters(power)["exponent"][1:5]
    ((<class 'int'>,), False, 2, Within(lower=1, upper=inf, above=False))
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
    """Return the evaluated annotation of each parameter of a function, by the parameter's name.

    Annotations are text of this package, so that evaluating them is safe.
    """
    return {
        name: eval(hint, function.__globals__) if isinstance(hint, str) else hint
        for name, hint in function.__annotations__.items()
        if name != "return"
    }


def _alternatives(hint: Any, extras: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each alternative of an annotation except None, with its ``Annotated`` metadata.

    ``extras`` is the metadata of an ``Annotated`` around the annotation, which each alternative of a
    union gets.
    """
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        yield from _alternatives(args[0], args[1:])
    elif origin in (typing.Union, types.UnionType):
        for arg in args:
            yield from _alternatives(arg, extras)
    elif hint is not type(None):
        yield hint, extras


def _parameter_docs(function: types.FunctionType) -> dict[str, str]:
    """Return each parameter's description from a NumPy docstring, on one line."""
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
    """Return the replacement of a renamed attribute, and warn the caller.

    Parameters
    ----------
    owner
        The object that had the attribute.
    called
        Name of the owner in examples, such as ``lab``.
    name
        The former name of the attribute.
    table
        Replacement by former name. A replacement is the path of an attribute, or a pair of the call
        to write and a function that returns a callable for the owner.

    Returns
    -------
    Any
        The attribute, or a callable in its place.

    Raises
    ------
    KeyError
        If the table does not have the name.
    """
    entry = table[name]
    instead, replacement = (entry, attrgetter(entry)) if isinstance(entry, str) else entry
    message = (
        f"{called}.{name} is {called}.{instead} from now on; the former name works throughout 0.2."
    )
    warn_caller(message, RenamedWarning)
    return replacement(owner)


# -- warnings that name the caller's line -----------------------------------------------------------------------------

# Frames of this package are skipped.
_PACKAGE = __name__.partition(".")[0]


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the innermost line outside memlab."""
    frame, level = sys._getframe(1), 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
