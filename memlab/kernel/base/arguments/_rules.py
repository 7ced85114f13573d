"""Rules by which annotations check values, and descriptions of invalid values."""

from __future__ import annotations

import collections.abc
import functools
import math
import numbers
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast, overload

from memlab.errors import InputError, MemlabError, NoSuchItem
from memlab.kernel.base.disk import is_url


def describe_value(value: object, limit: int = 60) -> str:
    """Return a short representation of a value for an error message.

    The text has at most `limit` characters. A text is returned even if ``__repr__`` raises.
    """
    try:
        text = repr(value[:limit]) if isinstance(value, str | bytes) else _REPR.repr(value)
    except Exception:  # noqa: BLE001 - formatting an error must never raise another one
        return f"an object of the type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


Item = TypeVar("Item")

# An abbreviated repr, because a caller may pass a large frame or list.
_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxlong = 60


@overload
def get_item(items: Sequence[Item], index: int, what: str) -> Item: ...
@overload
def get_item(items: Sequence[Item], index: slice, what: str) -> Sequence[Item]: ...
@overload
def get_item(items: Sequence[Item], index: int | slice, what: str) -> Any: ...
def get_item(items: Sequence[Item], index: int | slice, what: str) -> Any:
    """Return the item at an index, or the items of a slice.

    Raises NoSuchItem for an index out of range.
    """
    try:
        return items[index]
    except IndexError:
        raise NoSuchItem(what, index, [f"0 to {len(items) - 1}"] if items else ()) from None


class Called:
    """A caller's function whose exceptions become an InputError with their cause.

    Parameters
    ----------
    function
        The caller's function.
    where
        Description of the function in messages.

    Examples
    --------
    >>> Called(int, "verify(accepted=...)")("x")
    Traceback (most recent call last):
    memlab.errors.InputError: verify(accepted=...): int raised ValueError: invalid literal for int() with base 10: 'x'
    """

    def __init__(self, function: Callable[..., Any], where: str) -> None:
        self.function, self.where = function, where

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        try:
            return self.function(*args, **keywords)
        except MemlabError:
            raise
        except Exception as error:
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            raise InputError(f"{self.where}: {name} raised {describe_error(error)}") from error

    def __repr__(self) -> str:
        return repr(self.function)


def iterate(items: Iterable[Any], where: str) -> Iterator[Any]:
    """Yield the items of a caller's iterable; its exceptions become an InputError."""
    iterator = Called(iter, where)(items)
    while (item := Called(next, where)(iterator, _END)) is not _END:
        yield item


# Marks the end of an iterator: an item may be None.
_END = object()


def describe_error(error: Exception) -> str:
    """Return the type and the message of an error, even if ``__str__`` raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - formatting an error must never raise another one
        return type(error).__name__


# -- rules ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Within:
    """Limits of a number, both inclusive unless `above` excludes the lower limit.

    Parameters
    ----------
    lower, upper
        The lower and the upper limit.
    above
        True if the number must be above the lower limit.
    """

    lower: float = -math.inf
    upper: float = math.inf
    above: bool = False

    def admits(self, value: float) -> bool:
        """Return True if a number is within the limits.

        Parameters
        ----------
        value
            The number to check.

        Returns
        -------
        bool
            False for NaN.
        """
        return (self.lower < value if self.above else self.lower <= value) and value <= self.upper

    def __str__(self) -> str:
        if self.upper == math.inf:
            return f" above {self.lower:g}" if self.above else f" of at least {self.lower:g}"
        low, high = (
            f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
            for bound in (self.lower, self.upper)
        )
        return f" above {low} and at most {high}" if self.above else f" from {low} to {high}"


@dataclass(frozen=True)
class Taken:
    """The description of a type in error messages, and the rule that checks values.

    Parameters
    ----------
    expected
        Description of the type, which completes "limit is ...".
    by
        Function that returns the converted value or raises InputError; None for the rule of the annotation itself.
    """

    expected: str
    by: Callable[[Any], Any] | None = None


class AnyNumber:
    """A marker for numbers that may be infinite or NaN."""


class AsGiven:
    """A marker for arguments that the call checks itself."""


Count = Annotated[int, Within(1)]
Seed = Annotated[int, Within(0, 2**64 - 1)]
Share = Annotated[float, Within(0, 1)]
Seconds = Annotated[float, Within(0, 9_000_000_000)]
"""Seconds that a thread can wait: up to 285 years."""

# The range of 64-bit integers, in which Polars and NumPy store whole numbers.
_WORD = Within(-(2**63), 2**63 - 1)


class Misfit(NamedTuple):
    """A value that does not fit: the expected type, the value, and its position.

    The position is relative to the argument. If the type is a closed vocabulary, the text `word` is
    not one of its `words`.
    """

    expected: str
    given: str
    position: str = ""
    word: str | None = None
    words: tuple[str, ...] = ()


class Rule(NamedTuple):
    """A rule: `take` returns the converted value or a `Misfit`, and `expected` completes "limit is ..."."""

    expected: str
    take: Callable[[Any], Any]


def rule_of(hint: Any, where: str) -> Rule | None:
    """Return the checking rule of an annotation, or None if any value is allowed."""
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return None
    # Rules in Annotated take precedence over the type. Next come unions, vocabularies, functions, containers and plain
    # types.
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        for extra in args[1:]:
            if isinstance(extra, Taken):
                return (
                    Rule(extra.expected, extra.by)
                    if extra.by
                    else _rename(extra.expected, rule_of(args[0], where))
                )
            if isinstance(extra, Within):
                return _integer(extra) if args[0] is int else _number(extra)
            if extra is AnyNumber:
                return _number(None)
            if extra is AsGiven:
                return None
        return rule_of(args[0], where)
    if origin in (typing.Union, types.UnionType):
        return _union(args, where)
    if origin is Literal:
        return _literal(args)
    if hint is Callable or origin is collections.abc.Callable:
        return Rule("a function", functools.partial(_called, where))
    if origin is not None and isinstance(origin, type):
        return _several(origin, args, where)
    return _PLAIN[hint] if hint in _PLAIN else _instance(hint)


def _rename(expected: str, rule: Rule | None) -> Rule:
    """Return a rule like ``rule`` whose errors name ``expected``, except errors about an item of a container."""
    assert rule is not None
    original = rule.take

    def take(value: Any) -> Any:
        converted = original(value)
        return (
            Misfit(expected, describe_value(value))
            if type(converted) is Misfit and not converted.position
            else converted
        )

    return Rule(expected, take)


def _integer(limits: Within) -> Rule:
    """Return the rule for an integer, not a boolean, within ``limits`` and the range of a signed 64-bit integer."""
    expected = f"a whole number{'' if limits is _WORD else limits}"
    lower, upper = (
        max(limits.lower, _WORD.lower),
        limits.upper if limits.upper < math.inf else _WORD.upper,
    )

    def take(value: Any) -> Any:
        if type(value) is not int:
            if not isinstance(value, numbers.Integral) or isinstance(value, bool):
                return Misfit(expected, describe_value(value) + _near(value))
            value = int(value)
        return value if lower <= value <= upper else Misfit(expected, describe_value(value))

    return Rule(expected, take)


def _near(value: object) -> str:
    """Return ". Did you mean 3?" for an integer given as 3.0 or "3", otherwise an empty string."""
    number = (
        int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value
    )
    integral = isinstance(number, float) and number.is_integer()
    return (
        f". Did you mean {number:.0f}?"
        if integral or (number is not value and isinstance(number, int))
        else ""
    )


def _number(limits: Within | None) -> Rule:
    """Return the rule for a real number, not a boolean, within ``limits``; without limits, NaN and infinity are valid."""
    expected = (
        f"a number{limits}"
        if limits and limits != Within()
        else "a finite number"
        if limits
        else "a number"
    )

    def take(value: Any) -> Any:
        if type(value) is not float and type(value) is not int:
            if not isinstance(value, numbers.Real) or isinstance(value, bool):
                return Misfit(expected, describe_value(value))
            value = int(value) if isinstance(value, numbers.Integral) else float(value)
        if not -_GREATEST <= value <= _GREATEST and (limits is not None or isinstance(value, int)):
            return Misfit(expected, describe_value(value))
        return (
            value
            if limits is None or limits.admits(value)
            else Misfit(expected, describe_value(value))
        )

    return Rule(expected, take)


# The largest finite float: integers beyond it have no float.
_GREATEST = 1.7976931348623157e308


def _text(value: Any) -> Any:
    """Return a text of valid Unicode, or a `Misfit` for any other value."""
    if type(value) is not str:
        if not isinstance(value, str):
            return Misfit("a text", describe_value(value))
        value = str.__str__(value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return Misfit(
                "a text of valid Unicode",
                f"one with a lone surrogate at character {error.start}: decode its source as UTF-8, or clean it with "
                'text.encode("utf-8", "replace").decode()',
            )
    return value


def _flag(value: Any) -> Any:
    """Return a Python or NumPy boolean as a bool, or a `Misfit` for other values."""
    if value is True or value is False:
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    return Misfit("True or False", describe_value(value))


def _path(value: Any) -> Any:
    """Return a path or text unchanged, or a `Misfit` for a URL, an empty text or an invalid path."""
    text = _text(str(value) if isinstance(value, Path) else value)
    if type(text) is Misfit:
        return Misfit("a path", text.given)
    if "\0" in text or not text:
        return Misfit("a path", "an empty text" if not text else "one with a NUL character")
    if is_url(text):
        return Misfit(
            "a path of this machine",
            f"the URL {describe_value(text)}; memlab reads and writes local files only",
        )
    try:
        Path(text.partition("/")[0]).expanduser()
    except RuntimeError:
        return Misfit("a path", f"below the home of a user who is not here: {describe_value(text)}")
    return value if isinstance(value, Path) else text


def _is_slice(value: Any) -> bool:
    """Return True for a slice whose parts are integers or None and whose step is not 0."""
    if not isinstance(value, slice):
        return False
    parts = (value.start, value.stop, value.step)
    return value.step != 0 and all(part is None or type(part) is int for part in parts)


def _fitting(expected: str, fits: Callable[[Any], bool]) -> Rule:
    """Build a rule that accepts the values that ``fits`` admits, without conversion."""
    return Rule(
        expected, lambda value: value if fits(value) else Misfit(expected, describe_value(value))
    )


# Rules of plain types, and descriptions of classes that users know by other words than the class name.
_PLAIN: dict[Any, Rule] = {
    int: _integer(_WORD),
    float: _number(Within()),
    str: Rule("a text", _text),
    bool: Rule("True or False", _flag),
    bytes: _fitting("bytes", lambda value: isinstance(value, bytes)),
    Path: Rule(
        "a Path",
        lambda value: (
            _path(value) if isinstance(value, Path) else Misfit("a Path", describe_value(value))
        ),
    ),
    slice: _fitting("a slice of whole numbers", _is_slice),
    type(None): _fitting("None", lambda value: value is None),
}
# Descriptions of classes for messages.
_EXPECTED = {
    "Expr": 'a Polars expression, such as pl.col("kind") == "fact"',
    "DataFrame": "a Polars DataFrame",
    "LazyFrame": "a Polars LazyFrame",
    "Series": "a Polars Series",
    "ndarray": "a NumPy array",
    "timedelta": "a timedelta, such as timedelta(hours=4)",
    "Hits": "what lab.recall returned",
    "Slates": "memlab.Slates (lab.slates(), Slates.from_frames, Slates.from_wide)",
}


def _instance(kind: Any) -> Rule | None:
    """Return the rule of a class or protocol, or None for any other annotation."""
    if not isinstance(kind, type):
        return None
    name = kind.__name__
    if getattr(kind, "_is_protocol", False):
        return _protocol(kind)
    expected = _EXPECTED.get(name) or f"a{'n' if name[0] in 'AEIOU' else ''} {name}"
    return _fitting(expected, lambda value: isinstance(value, kind))


def _protocol(kind: type) -> Rule:
    """Return the rule that a value has all public attributes of a protocol."""
    owners = [owner for owner in kind.__mro__ if getattr(owner, "_is_protocol", False)]
    names = sorted(
        {
            name
            for owner in owners
            for name in (*vars(owner), *getattr(owner, "__annotations__", ()))
            if not name.startswith("_")
        }
    )
    return _fitting(
        f"something with {', '.join(names)}",
        lambda value: all(hasattr(value, name) for name in names),
    )


def _array(args: tuple[Any, ...]) -> Rule:
    """Return the rule for a NumPy array of the annotated kind; a float annotation also admits integers and booleans.

    The call itself checks the dimensions.
    """
    wanted = str(typing.get_args(args[1])[0]) if len(args) > 1 and typing.get_args(args[1]) else ""
    kinds = (
        "b"
        if "bool" in wanted
        else "fiub"
        if "float" in wanted
        else "iu"
        if "int" in wanted
        else ""
    )
    expected = (
        f"a NumPy array{' of numbers' if 'i' in kinds else ' of true and false' if kinds else ''}"
    )
    return _fitting(
        expected,
        lambda value: (
            type(value).__name__ == "ndarray" and (not kinds or value.dtype.kind in kinds)
        ),
    )


def _literal(words: tuple[Any, ...]) -> Rule:
    """Return the rule for a ``Literal`` annotation of strings."""
    quoted = [f'"{word}"' for word in words]
    expected = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)

    def take(value: Any) -> Any:
        word = _text(value)
        if type(word) is Misfit:
            return Misfit(expected, describe_value(value))
        return word if word in words else Misfit(expected, describe_value(value), "", word, words)

    return Rule(expected, take)


def _called(where: str, value: Any) -> Any:
    """Wrap a caller's function in `Called`, or return a `Misfit` for any other value."""
    if isinstance(value, Called):
        return value
    return Called(value, where) if callable(value) else Misfit("a function", describe_value(value))


def _union(hints: Iterable[Any], where: str) -> Rule | None:
    """Return the checking rule for a union, or None if one of its types has no rule.

    The first matching type is used.
    """
    hints = list(hints)
    if str in hints and Path in hints:
        hints = [hint for hint in hints if hint not in (str, Path)]
        alone = set(hints) <= {type(None)}
        rules: list[Rule | None] = [Rule("a path" if alone else "a name, a path or a text", _path)]
    else:
        rules = []
    rules += [rule_of(hint, where) for hint in hints if hint is not type(None)]
    if any(rule is None for rule in rules):
        return None
    alternatives = cast("list[Rule]", rules)
    optional = type(None) in hints
    expected = " or ".join(rule.expected for rule in alternatives)
    if len(alternatives) == 1:
        take_one = alternatives[0].take
        return (
            Rule(expected, lambda value: None if value is None else take_one(value))
            if optional
            else alternatives[0]
        )
    takes = [(rule.expected, rule.take) for rule in alternatives]

    def take(value: Any) -> Any:
        # A misfit inside a container, or with a more specific description, is the better message.
        if value is None and optional:
            return None
        specific = None
        for expects, take_alternative in takes:
            converted = take_alternative(value)
            if type(converted) is not Misfit:
                return converted
            if converted.position or (isinstance(value, str) and converted.expected != expects):
                specific = converted
        return specific or Misfit(expected, describe_value(value))

    return Rule(expected, take)


def _several(origin: type, args: tuple[Any, ...], where: str) -> Rule | None:
    """Return the rule of a container with that of its items, or of another generic class; None for ``type[...]``."""
    # Containers are tested from the most specific to the most general.
    if issubclass(origin, type):
        return None
    if issubclass(origin, collections.abc.Mapping):
        return _mapping(args, where)
    if origin.__name__ == "ndarray":
        return _array(args)
    if getattr(origin, "_is_protocol", False) and origin not in _ITERABLES:
        return _protocol(origin)
    if origin is tuple and args and args[-1] is not Ellipsis:
        return _fixed(args, where)
    if not (issubclass(origin, tuple | list | set | frozenset) or origin in _ITERABLES):
        return _instance(origin)
    rule = rule_of(args[0], where) if args else None
    expected = f"a list of which each is {rule.expected}" if rule else "a list"
    container = origin if origin in (tuple, set, frozenset) else list

    def take(value: Any) -> Any:
        if isinstance(value, str | bytes | collections.abc.Mapping) or not isinstance(
            value, collections.abc.Iterable
        ):
            near = f". Did you mean [{describe_value(value)}]?" if isinstance(value, str) else ""
            return Misfit(expected, describe_value(value) + near)
        if isinstance(value, collections.abc.Sized) and len(value) > _MAX_ITEMS:
            raise InputError(_TOO_MANY)
        items, take_item = [], rule.take if rule else None
        # Items are checked and counted as they are read, because an iterator may have no end.
        for number, member in enumerate(value):
            converted = take_item(member) if take_item else member
            if type(converted) is Misfit:
                return converted._replace(position=f"[{number}]{converted.position}")
            if number >= _MAX_ITEMS:
                raise InputError(_TOO_MANY)
            items.append(converted)
        return items if container is list else container(items)

    return Rule(expected, take)


# Items of an argument: a lab is made for a million memories, and an iterator may have no end.
_MAX_ITEMS = 2_000_000
_TOO_MANY = f"The list has more than {_MAX_ITEMS:,} items. Pass it in parts."
# Abstract types whose values are read once into a list.
_ITERABLES = (
    collections.abc.Iterable,
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.Iterator,
    collections.abc.Set,
)


def _fixed(args: tuple[Any, ...], where: str) -> Rule:
    """Return the rule of a tuple with a fixed number of items; a list of that length is converted."""
    rules = [rule_of(arg, where) for arg in args]
    expected = f"a tuple of {len(rules)} ({', '.join(rule.expected if rule else 'anything' for rule in rules)})"

    def take(value: Any) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(rules):
            return Misfit(expected, describe_value(value))
        converted = tuple(
            rule.take(member) if rule else member for rule, member in zip(rules, value, strict=True)
        )
        for number, member in enumerate(converted):
            if type(member) is Misfit:
                return member._replace(position=f"[{number}]{member.position}")
        return converted

    return Rule(expected, take)


def _mapping(args: tuple[Any, ...], where: str) -> Rule:
    """Return the checking rule for a mapping, its keys and its values."""
    key_rule, value_rule = (rule_of(arg, where) for arg in args) if args else (None, None)
    expected = "a dict"
    if key_rule and value_rule:
        expected += f" (from {key_rule.expected} to {value_rule.expected})"

    def take(value: Any) -> Any:
        if not isinstance(value, collections.abc.Mapping):
            return Misfit(expected, describe_value(value))
        if key_rule is None and value_rule is None:
            return value
        checked: dict[Any, Any] = {}
        for key, raw in value.items():
            name = key_rule.take(key) if key_rule else key
            if type(name) is Misfit:
                return name._replace(position=f" key {describe_value(key)}")
            converted = value_rule.take(raw) if value_rule else raw
            if type(converted) is Misfit:
                return converted._replace(position=f"[{describe_value(key)}]{converted.position}")
            checked[name] = converted
        return checked

    return Rule(expected, take)
