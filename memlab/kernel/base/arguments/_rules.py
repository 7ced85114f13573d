"""Rules of annotations, and what a caller gives: shown in errors, and called so that its errors are reported."""

from __future__ import annotations

import collections.abc
import functools
import math
import numbers
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast, overload

from memlab.errors import InputError, MemlabError, NoSuchItem
from memlab.kernel.base.disk import is_url

__all__ = [
    "AnyNumber",
    "AsGiven",
    "Called",
    "Count",
    "Misfit",
    "Rule",
    "Seconds",
    "Seed",
    "Share",
    "Taken",
    "Within",
    "describe_error",
    "describe_value",
    "get_item",
    "rule_of",
]


def describe_value(value: object, most: int = 60) -> str:
    """What was given, in few characters, also where its ``__repr__`` raises."""
    try:
        text = repr(value[:most]) if isinstance(value, str | bytes) else _REPR.repr(value)
    except Exception:  # noqa: BLE001 - what tells of an error does not add its own
        return f"an object of the type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


Item = TypeVar("Item")

_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxlong = 60


@overload
def get_item(items: Sequence[Item], index: int, what: str) -> Item: ...
@overload
def get_item(items: Sequence[Item], index: slice, what: str) -> Sequence[Item]: ...
@overload
def get_item(items: Sequence[Item], index: int | slice, what: str) -> Any: ...
def get_item(items: Sequence[Item], index: int | slice, what: str) -> Any:
    """What stands at a place of a sequence, or in a slice of it; NoSuchItem beyond its end."""
    try:
        return items[index]
    except IndexError:
        raise NoSuchItem(what, index, [f"0 to {len(items) - 1}"] if items else ()) from None


class Called:
    """A caller's function: what it raises is an InputError that names it, with the cause.

    >>> Called(int, "verify(accepted=...)")("x")
    Traceback (most recent call last):
    memlab.errors.InputError: verify(accepted=...): int raised ValueError: invalid literal for int() with base 10: 'x'
    """

    def __init__(self, function: Callable[..., Any], where: str) -> None:
        self.function, self.where = function, where

    def __call__(self, *args: Any, **given: Any) -> Any:
        try:
            return self.function(*args, **given)
        except MemlabError:
            raise
        except Exception as error:
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            raise InputError(f"{self.where}: {name} raised {describe_error(error)}") from error

    def __repr__(self) -> str:
        return repr(self.function)


def describe_error(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - what tells of an error does not add its own
        return type(error).__name__


# -- rules ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Within:
    """The limits of a number, both of them included unless ``above`` says that the least is not."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False

    def admits(self, value: float) -> bool:
        return (self.least < value if self.above else self.least <= value) and value <= self.most

    def __str__(self) -> str:
        if self.most == math.inf:
            return f" above {self.least:g}" if self.above else f" of at least {self.least:g}"
        low, high = (
            f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"
            for bound in (self.least, self.most)
        )
        return f" above {low} and at most {high}" if self.above else f" from {low} to {high}"


@dataclass(frozen=True)
class Taken:
    """What a type is called (``expected``), and its own rule: ``by`` gives what is passed on, or raises InputError."""

    expected: str
    by: Callable[[Any], Any] | None = None


class AnyNumber:
    """A number that may be infinite or NaN."""


class AsGiven:
    """What a call reads by itself, and checks as it does."""


Count = Annotated[int, Within(1)]
Seed = Annotated[int, Within(0, 2**64 - 1)]
Share = Annotated[float, Within(0, 1)]
Seconds = Annotated[float, Within(0, 9_000_000_000)]
"""What a thread can wait for: up to 285 years."""

_WORD = Within(-(2**63), 2**63 - 1)


class Misfit(NamedTuple):
    """What was ``expected``, at which place within the argument, and what was given."""

    expected: str
    given: str
    place: str = ""
    word: str | None = None
    """A text that is none of ``words``."""
    words: tuple[str, ...] = ()


class Rule(NamedTuple):
    """``take`` gives what is passed on, or a ``Misfit``; ``expected`` completes "limit is ..."."""

    expected: str
    take: Callable[[Any], Any]


def rule_of(hint: Any, where: str) -> Rule | None:
    """The rule of an annotation; None if everything fits."""
    if hint is Any or hint is object or isinstance(hint, TypeVar):
        return None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        for extra in args[1:]:
            if isinstance(extra, Taken):
                return (
                    Rule(extra.expected, extra.by)
                    if extra.by
                    else _named(extra.expected, rule_of(args[0], where))
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


def _named(expected: str, rule: Rule | None) -> Rule:
    assert rule is not None
    known = rule.take

    def take(value: Any) -> Any:
        taken = known(value)
        return (
            Misfit(expected, describe_value(value))
            if type(taken) is Misfit and not taken.place
            else taken
        )

    return Rule(expected, take)


def _integer(limits: Within) -> Rule:
    expected = f"a whole number{'' if limits is _WORD else limits}"
    least, most = (
        max(limits.least, _WORD.least),
        limits.most if limits.most < math.inf else _WORD.most,
    )

    def take(value: Any) -> Any:
        if type(value) is not int:
            if not isinstance(value, numbers.Integral) or isinstance(value, bool):
                return Misfit(expected, describe_value(value) + _near(value))
            value = int(value)
        return value if least <= value <= most else Misfit(expected, describe_value(value))

    return Rule(expected, take)


def _near(value: object) -> str:
    """The whole number that was probably meant."""
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


_GREATEST = 1.7976931348623157e308


def _text(value: Any) -> Any:
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
    if value is True or value is False:
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    return Misfit("True or False", describe_value(value))


def _path(value: Any) -> Any:
    """A path as text or Path: no NUL, and no longer than a system takes."""
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
    if not isinstance(value, slice):
        return False
    parts = (value.start, value.stop, value.step)
    return value.step != 0 and all(part is None or type(part) is int for part in parts)


def _fitting(expected: str, fits: Callable[[Any], bool]) -> Rule:
    """Return the rule that passes on every value that fits, as it is."""
    return Rule(
        expected, lambda value: value if fits(value) else Misfit(expected, describe_value(value))
    )


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
    if not isinstance(kind, type):
        return None
    name = kind.__name__
    if getattr(kind, "_is_protocol", False):
        return _protocol(kind)
    expected = _EXPECTED.get(name) or f"a{'n' if name[0] in 'AEIOU' else ''} {name}"
    return _fitting(expected, lambda value: isinstance(value, kind))


def _protocol(kind: type) -> Rule:
    """Whatever has what the protocol names."""
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
    """An array of numbers, or of true and false, as its annotation says; the dimensions are the call's business."""
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
    quoted = [f'"{word}"' for word in words]
    expected = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)

    def take(value: Any) -> Any:
        word = _text(value)
        if type(word) is Misfit:
            return Misfit(expected, describe_value(value))
        return word if word in words else Misfit(expected, describe_value(value), "", word, words)

    return Rule(expected, take)


def _called(where: str, value: Any) -> Any:
    if isinstance(value, Called):
        return value
    return Called(value, where) if callable(value) else Misfit("a function", describe_value(value))


def _union(hints: Iterable[Any], where: str) -> Rule | None:
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
    known = cast("list[Rule]", rules)
    nothing = type(None) in hints
    expected = " or ".join(rule.expected for rule in known)
    if len(known) == 1:
        take_one = known[0].take
        return (
            Rule(expected, lambda value: None if value is None else take_one(value))
            if nothing
            else known[0]
        )
    takes = [(rule.expected, rule.take) for rule in known]

    def take(value: Any) -> Any:
        if value is None and nothing:
            return None
        within = None
        for expects, one in takes:
            taken = one(value)
            if type(taken) is not Misfit:
                return taken
            if taken.place or (isinstance(value, str) and taken.expected != expects):
                within = taken
        return within or Misfit(expected, describe_value(value))

    return Rule(expected, take)


def _several(origin: type, args: tuple[Any, ...], where: str) -> Rule | None:
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
    made = origin if origin in (tuple, set, frozenset) else list

    def take(value: Any) -> Any:
        if isinstance(value, str | bytes | collections.abc.Mapping) or not isinstance(
            value, collections.abc.Iterable
        ):
            near = f". Did you mean [{describe_value(value)}]?" if isinstance(value, str) else ""
            return Misfit(expected, describe_value(value) + near)
        items = list(value)
        if rule is not None:
            one = rule.take
            for number, one_item in enumerate(items):
                taken = one(one_item)
                if taken is not one_item:
                    if type(taken) is Misfit:
                        return taken._replace(place=f"[{number}]{taken.place}")
                    items[number] = taken
        return items if made is list else made(items)

    return Rule(expected, take)


_ITERABLES = (
    collections.abc.Iterable,
    collections.abc.Sequence,
    collections.abc.Collection,
    collections.abc.Iterator,
    collections.abc.Set,
)


def _fixed(args: tuple[Any, ...], where: str) -> Rule:
    rules = [rule_of(arg, where) for arg in args]
    expected = f"a tuple of {len(rules)} ({', '.join(rule.expected if rule else 'anything' for rule in rules)})"

    def take(value: Any) -> Any:
        if not isinstance(value, tuple | list) or len(value) != len(rules):
            return Misfit(expected, describe_value(value))
        taken = tuple(
            rule.take(one_item) if rule else one_item
            for rule, one_item in zip(rules, value, strict=True)
        )
        for number, one_item in enumerate(taken):
            if type(one_item) is Misfit:
                return one_item._replace(place=f"[{number}]{one_item.place}")
        return taken

    return Rule(expected, take)


def _mapping(args: tuple[Any, ...], where: str) -> Rule:
    key_rule, value_rule = (rule_of(arg, where) for arg in args) if args else (None, None)
    expected = "a dict"
    if key_rule and value_rule:
        expected += f" (from {key_rule.expected} to {value_rule.expected})"

    def take(value: Any) -> Any:
        if not isinstance(value, collections.abc.Mapping):
            return Misfit(expected, describe_value(value))
        if key_rule is None and value_rule is None:
            return value
        found: dict[Any, Any] = {}
        for key, held in value.items():
            name = key_rule.take(key) if key_rule else key
            if type(name) is Misfit:
                return name._replace(place=f" key {describe_value(key)}")
            kept = value_rule.take(held) if value_rule else held
            if type(kept) is Misfit:
                return kept._replace(place=f"[{describe_value(key)}]{kept.place}")
            found[name] = kept
        return found

    return Rule(expected, take)
