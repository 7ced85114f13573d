"""A call reads its annotations once, and says which argument does not fit, of which call, and what would."""

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
import pytest

from memlab.errors import InputError, LabError, NoSuchItem, UnknownName
from memlab.kernel.base.arguments import (
    Called,
    Count,
    Seed,
    Share,
    Taken,
    Within,
    checked,
    describe_value,
    get_item,
)
from memlab.kernel.base.clock import When


@checked
def call(
    text: str = "",
    *rest: int,
    limit: Count | None = None,
    seed: Seed = 0,
    share: Share = 0.5,
    log: bool = True,
    words: str | Sequence[str] | None = None,
    ids: Iterable[int] = (),
    pair: tuple[float, float] = (0.0, 1.0),
    weights: Mapping[str, float] | None = None,
    by: Literal["time", "cluster"] = "time",
    path: str | Path | None = None,
    at: When | None = None,
    where: pl.Expr | None = None,
    every: datetime.timedelta | None = None,
    then: Callable[[int], int] | None = None,
    depth: Annotated[int, Within(1, 5)] = 3,
    anything: Any = None,
    **fields: Any,
) -> dict[str, Any]:
    return {name: value for name, value in locals().items() if value is not None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": 3}, "call(text=...): text is a text, not 3."),
        ({"text": "a\ud800"}, "lone surrogate at character 1: decode its source as UTF-8"),
        ({"limit": 0}, "limit is a whole number of at least 1, not 0."),
        ({"limit": True}, "limit is a whole number of at least 1, not True."),
        ({"limit": "3"}, "not '3'. Did you mean 3?"),
        ({"limit": 2.0}, "not 2.0. Did you mean 2?"),
        ({"limit": 2**63}, "limit is a whole number"),
        ({"seed": -1}, "seed is a whole number from 0 to 18,446,744,073,709,551,615, not -1."),
        ({"share": 1.5}, "share is a number from 0 to 1, not 1.5."),
        ({"share": float("nan")}, "share is a number from 0 to 1, not nan."),
        ({"log": 1}, "log is True or False, not 1."),
        ({"words": ["a", None]}, "words[1] is a text, not None."),
        ({"ids": 3}, "ids is a list of which each is a whole number, not 3."),
        ({"ids": {1: 2}}, "ids is a list of which each is a whole number, not {1: 2}."),
        ({"pair": (1, 2, 3)}, "pair is a tuple of 2"),
        ({"pair": (1, "x")}, "pair[1] is a finite number, not 'x'."),
        ({"weights": {"a": "x"}}, "weights['a'] is a finite number, not 'x'."),
        ({"weights": {1: 1.0}}, "weights key 1 is a text"),
        ({"by": 3}, 'by is "time" or "cluster", not 3.'),
        ({"path": "a\0b"}, "path is a path, not one with a NUL character."),
        ({"at": 10**30}, "a time must be in the years 1 to 9998"),
        (
            {"where": "x"},
            'where is a Polars expression, such as pl.col("kind") == "fact", not \'x\'.',
        ),
        ({"every": 3}, "every is a timedelta, such as timedelta(hours=4), not 3."),
        ({"then": 3}, "then is a function, not 3."),
        ({"depth": 6}, "depth is a whole number from 1 to 5, not 6."),
    ],
)
def test_an_invalid_argument_is_refused_with_a_valid_alternative(arguments, message):
    with pytest.raises(InputError) as error:
        call(**arguments)
    assert message in str(error.value)
    assert str(error.value).startswith(f"call({next(iter(arguments))}=...): ")


def test_a_word_that_is_not_known_is_told_with_the_nearest():
    with pytest.raises(
        UnknownName, match=r"There is no by of call .*clustre.* Did you mean cluster"
    ):
        call(by="clustre")


def test_valid_arguments_are_passed_on():
    arguments = {
        "limit": 5,
        "words": ["a"],
        "anything": object(),
        "field": 3,
        "depth": 1,
        "at": 0,
        "every": None,
    }
    answer = call("x", 1, 2, **arguments)
    assert answer["rest"] == (1, 2)
    assert answer["fields"] == {"field": 3}
    assert answer["anything"] is arguments["anything"]


def test_numpy_numbers_count_as_numbers():
    answer = call(
        limit=np.int64(3),
        share=np.float32(0.5),
        log=np.bool_(False),
        text=np.str_("x"),
        ids=np.array([1, 2]),
    )
    assert [answer[name] for name in ("limit", "share", "log", "text", "ids")] == [
        3,
        0.5,
        False,
        "x",
        [1, 2],
    ]
    assert [type(answer[name]) for name in ("limit", "share", "log", "text")] == [
        int,
        float,
        bool,
        str,
    ]


def test_several_are_read_once():
    assert call(ids=(number for number in (1, 2)))["ids"] == [1, 2]


def test_positional_arguments_are_checked_too():
    with pytest.raises(InputError, match=r"call\(rest=\.\.\.\)"):
        call("x", 1, "2")


def test_defaults_are_not_checked_and_a_wrong_number_of_arguments_is_pythons():
    @checked
    def first_call(value: int = "nothing") -> object:
        return value

    assert first_call() == "nothing"
    with pytest.raises(TypeError, match="positional"):
        first_call(1, 2)


def test_an_unknown_name_is_refused_with_the_nearest():
    @checked
    def first_call(self: object, value: int = 0, *, most: int = 1) -> None:
        second_call(vlaue=value)

    @checked
    def second_call(value: int = 0) -> None:
        raise TypeError("of its own")

    with pytest.raises(
        InputError, match=r'^first_call has no argument "vallue"\. Did you mean value\?$'
    ):
        first_call(None, vallue=1)
    with pytest.raises(InputError, match=r"Known: most, value\."):
        first_call(None, zzz=1)
    with pytest.raises(InputError, match='second_call has no argument "vlaue"'):
        first_call(None)
    with pytest.raises(TypeError, match="of its own"):
        second_call(value=1)


def test_a_dataclass_checks_its_arguments():
    from memlab.science.simulation import Phase

    with pytest.raises(InputError, match=r"Phase\(until=\.\.\.\): until is a finite number"):
        Phase(until="x")


class Broken:
    def __repr__(self):
        raise RuntimeError("spite")

    __iter__ = __len__ = __eq__ = __hash__ = __repr__


def test_an_object_that_raises_is_told_of_all_the_same():
    assert "Broken" in describe_value(Broken())
    for name in ("limit", "text", "where", "log", "weights", "by"):
        with pytest.raises(InputError, match="not <Broken instance"):
            call(**{name: Broken()})
    with pytest.raises(InputError, match="ids cannot be read: RuntimeError: spite"):
        call(ids=Broken())


def test_values_in_messages_are_short():
    assert len(describe_value("x" * 10**6)) <= 60
    assert len(describe_value(list(range(10**5)))) <= 60


def test_a_callers_function_is_called_with_its_errors_told():
    then = call(then=lambda number: 1 // number)["then"]
    assert then(1) == 1
    with pytest.raises(
        InputError, match=r"call\(then=\.\.\.\): .* raised ZeroDivisionError"
    ) as error:
        then(0)
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    with pytest.raises(UnknownName):
        Called(lambda: (_ for _ in ()).throw(UnknownName("slot", "x")), "call")()


def _halved(value):
    if value % 2:
        raise InputError(f"{value} is odd.")
    return value // 2


Even = Annotated[int, Taken("an even number", _halved)]


def test_a_type_may_have_a_rule_of_its_own():
    @checked
    def half(number: Even | None = None) -> int | None:
        return number

    assert half(4) == 2
    with pytest.raises(InputError, match=r"half\(number=\.\.\.\): 3 is odd"):
        half(3)


def test_an_error_of_the_system_becomes_an_error_of_memlab():
    @checked
    def read(path: str | Path) -> str:
        return Path(path).read_text()

    with pytest.raises(LabError, match="read: the operating system reported an error") as error:
        read("nowhere/at/all")
    assert isinstance(error.value.__cause__, FileNotFoundError)


def test_a_fault_of_the_call_itself_goes_through():
    @checked
    def wrong(number: int) -> float:
        return number / 0

    with pytest.raises(ZeroDivisionError):
        wrong(1)


def test_an_interrupt_that_a_library_made_an_error_of_is_an_interrupt():
    @checked
    def compare(count: int) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:  # as NumPy does where it compares records
            raise TypeError("Cannot compare structured arrays") from error

    with pytest.raises(KeyboardInterrupt):
        compare(1)


def test_places_beyond_the_end_are_named():
    assert get_item("abc", 2, "letter") == "c"
    with pytest.raises(NoSuchItem, match='There is no letter "3"') as error:
        get_item("abc", 3, "letter")
    assert isinstance(error.value, IndexError)
