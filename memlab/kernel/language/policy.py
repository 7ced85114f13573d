"""A compiled policy: one meaning, three ways to run it, its identity, and what follows from values known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from numpy.typing import NDArray

from memlab.errors import InputError, MemlabError, PolicyNameError, UnknownName, did_you_mean
from memlab.kernel.base.arguments import AnyNumber, checked, describe_value
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.hooks import load_part
from memlab.kernel.language.arrays import ArrayProgram, Column, Ready
from memlab.kernel.language.checker import Checker, Env
from memlab.kernel.language.columns import ColumnProgram, Evaluation, RowProgram
from memlab.kernel.language.forms import forms_for
from memlab.kernel.language.graph import Node, Value, reachable, with_known
from memlab.kernel.language.reader import Definition, canonical
from memlab.kernel.language.signature import Derived, Param, SetName, Signature
from memlab.kernel.language.texts import PolicyForm, digest, parse, source_hash
from memlab.kernel.language.writer import is_hy_model, policy_form_text

DIALECT = "memlab-1"
"""The version of the dialect, a part of every hash: a change of meaning changes it."""


class _Given(NamedTuple):
    """What a policy was compiled from."""

    source: str | PolicyForm
    name: str | None
    helpers: tuple[str, ...]
    file: str | None


@dataclass(frozen=True, eq=False)
class Policy(Displayed):
    """A checked policy. Two policies are equal when their hashes are; make one with ``compile_policy``.

    ``arguments`` are as the text lists them; ``inputs`` are the features that it reads, sorted; tests of sets are
    among them under their own text, such as ``(has tags "x")``, and in ``derived`` with the sets that they read.
    ``source_hash`` identifies the text up to layout and bound names, ``meaning_hash`` what it computes, ``hash`` the
    version: dialect, source, helpers and parameter values.
    """

    name: str
    signature: Signature
    source: str
    doc: str
    arguments: tuple[str, ...]
    inputs: tuple[str, ...]
    params: Mapping[str, Param]
    source_hash: str
    hash: str
    derived: Mapping[str, Derived]
    root: Node = field(repr=False)
    _given: _Given = field(repr=False)
    _of: tuple[Policy, str] | None = field(repr=False, default=None)
    """The record and the field of which this is the policy."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Policy)
            and self.hash == other.hash
            and self.signature == other.signature
        )

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def helpers(self) -> tuple[str, ...]:
        """The ``defn`` forms that it was compiled with, used or not: with ``source``, enough to compile it again."""
        return self._given.helpers

    @cached_property
    def meaning_hash(self) -> str:
        """A Merkle hash of the graph.

        Equal for two texts that compute the same operations, parameter values included.
        """
        return digest(DIALECT, self.root.digest)

    @checked
    def with_params(self, values: Mapping[str, Annotated[float, AnyNumber]]) -> Policy:
        """The same policy with other parameter values, and so another ``hash``."""
        if self._of is not None:
            record, field = self._of
            return record.with_params(values).field(field)
        merged = {p.name: p.value for p in self.params.values()} | _chosen(values)
        return compile_policy(**self._given._asdict(), signature=self.signature, params=merged)

    @property
    def fields(self) -> tuple[str, ...]:
        """What the policy of a record slot may update, sorted; nothing for any other."""
        return self.root.value if self.root.op == "record" else ()

    @checked
    def field(self, name: str) -> Policy:
        """The policy of one field of a record alone: a scalar that can be explained, drawn and ranked."""
        key = canonical(name)
        if key not in self.fields:
            raise UnknownName(f"field of {self.name}", name, self.fields)
        root = self.root.args[self.fields.index(key)]
        declared = self.signature.inputs[key]
        assert declared.type != "set"
        inputs = _inputs(root)
        return replace(
            self,
            name=f"{self.name} :{key}",
            signature=replace(
                self.signature, returns=declared.type, words=declared.words, fields=()
            ),
            inputs=inputs,
            derived=MappingProxyType({n: d for n, d in self.derived.items() if n in inputs}),
            hash=digest(self.hash, "field", key),
            root=root,
            _of=(self, key),
        )

    @checked
    def columns(
        self, frame: pl.DataFrame, *, by: str | None = None, order: str = "memory_id"
    ) -> pl.Series:
        """One value for each row of ``frame``, in its order.

        The frame has a column for each of ``inputs``, spelled either way (``age-days``, ``age_days``). ``by`` names
        the column of slates when the frame holds many; ``order`` the memory ids, which only aggregates read. A record
        gives a struct of its ``fields``.
        """
        return self._columns.run(frame, by, order, self.name)

    @checked
    def aggregates(
        self, frame: pl.DataFrame, *, by: str | None = None, order: str = "memory_id"
    ) -> pl.DataFrame:
        """One column for each aggregate of the slate, named by its node's hash: what ``row`` and ``explain`` need."""
        return self._columns.aggregates(frame, by, order)

    def arrays(
        self, columns: Mapping[str, Column], *, order: npt.NDArray[Any] | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        """Values and nulls (or none) for one slate of NumPy arrays; a column is an array or an (array, null mask) pair.

        Strings come as object or ``str`` arrays. ``order`` gives the memory ids, for aggregates; without it the order
        of the rows counts. Agrees with ``columns`` but for the last place of ``exp``, ``log``, ``log1p``, ``tanh`` and
        ``pow``: within a relative 1e-12, unless what follows cancels and magnifies it. For a record see ``updates``.
        """
        self._scalar("arrays")
        ((values, nulls),) = self._read(self._arrays.run, columns, order)
        return values, nulls

    def updates(
        self, columns: Mapping[str, Column], *, order: npt.NDArray[Any] | None = None
    ) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """What a record policy makes of each of its ``fields``, as ``arrays`` would give it."""
        if self.root.op != "record":
            raise InputError(f"{self.name} returns one value and updates nothing: use arrays.")
        return dict(zip(self.fields, self._read(self._arrays.run, columns, order), strict=True))

    def row(
        self, values: Mapping[str, object], *, aggregates: Mapping[str, float | None] | None = None
    ) -> Value | dict[str, Value]:
        """The value for one item, bit for bit as in ``columns``; of a record one value a field.

        ``aggregates`` is the item's row of ``aggregates``. A set is any collection of strings.
        """
        return self._row.value(self._read(self._row.run, values, aggregates))

    def __call__(
        self, *values: object, aggregates: Mapping[str, float | None] | None = None, **named: object
    ) -> Value | dict[str, Value]:
        """The value for one item, as ``row`` gives it; ``arguments`` come in their order or by name.

        >>> from memlab.kernel.language import Input
        >>> slot = Signature("recall-score", [Input("similarity"), Input("age-days")])
        >>> compile_policy("(fn [similarity age-days] (/ similarity (+ 1 age-days)))", slot)(0.5, age_days=1)
        0.25
        """
        if len(values) > len(self.arguments):
            raise InputError(
                f"{self.name} takes {len(self.arguments)} arguments, and here are {len(values)}."
            )
        known = {name.replace("/", "-"): name for name in (*self.arguments, *self.signature.inputs)}
        given = dict(zip(self.arguments, values, strict=False))
        given |= {known.get(canonical(name), name): value for name, value in named.items()}
        return self.row(given, aggregates=aggregates)

    @checked
    def explain(
        self, values: Mapping[str, object], *, aggregates: Mapping[str, float | None] | None = None
    ) -> Any:
        """Explain the value for one item: a ``memlab.subjects.lens.Explanation``.

        It has the additive terms of the live branch, which sum to the value, and the computation as a tree.
        """
        self._scalar("explain")
        return load_part("explain-value")(self._evaluated(values, aggregates))

    @checked
    def why(
        self,
        a: Mapping[str, object],
        b: Mapping[str, object],
        *,
        aggregates: tuple[Mapping[str, float | None], Mapping[str, float | None]] | None = None,
        names: tuple[str, str] = ("a", "b"),
    ) -> Any:
        """Compare the values of two items term by term: a ``memlab.subjects.lens.Why``.

        ``aggregates`` are their rows of ``aggregates``. InputError for a record: take one field of it.

        >>> from memlab.kernel.language import Input
        >>> policy = compile_policy("(fn [x y] (+ (* 2 x) y))", Signature("score", [Input("x"), Input("y")]))
        >>> [(t.text, t.difference) for t in policy.why({"x": 1, "y": 0}, {"x": 0, "y": 1}).terms]
        [('(* 2 x)', 2.0), ('y', -1.0)]
        """
        self._scalar("why")
        first, second = aggregates or (None, None)
        return load_part("compare-values")(
            self._evaluated(a, first), self._evaluated(b, second), names
        )

    def __repr__(self) -> str:
        return printable(f"<Policy {self.name} [{self.hash[:12]}]: {' '.join(self.inputs)}>")

    def _display(self) -> object:
        return load_part("show-policy")(self)

    def _read(self, run: Callable[..., Any], *given: Any) -> Any:
        """What a program makes of a caller's values, which are checked where they fail: it runs many times."""
        try:
            return run(*given)
        except MemlabError:
            raise
        except Exception as error:
            raise InputError(f"{self.name} cannot read what was given: {error}") from error

    def _evaluated(
        self, values: Mapping[str, object], aggregates: Mapping[str, float | None] | None
    ) -> Evaluation:
        return Evaluation(self._row, self._read(self._row.run, values, aggregates))

    def _scalar(self, verb: str) -> None:
        if self.root.op == "record":
            name = self.fields[0] if self.fields else "name"
            raise InputError(
                f"{self.name} returns a record: {verb} takes one field, policy.field({name!r}).{verb}(...)."
            )

    @cached_property
    def _columns(self) -> ColumnProgram:
        return ColumnProgram(self.root, self.derived)

    @cached_property
    def _arrays(self) -> ArrayProgram:
        return ArrayProgram(self.root, self.derived)

    @cached_property
    def _row(self) -> RowProgram:
        return RowProgram(self.root, self.derived)


def compile_policy(
    source: str | PolicyForm,
    signature: Signature,
    *,
    name: str | None = None,
    params: Mapping[str, float] | None = None,
    helpers: tuple[str, ...] = (),
    file: str | None = None,
) -> Policy:
    """Reads and checks a policy against a slot's signature; cached by content.

    ``source`` is ``(fn [a b] body)``, its Scheme spelling ``(lambda (a b) body)`` or a ``defpolicy``, with helpers
    (``defn``) in front if need be; or a ``PolicyForm`` of a pack. ``params`` gives values to ``(param :name default)``.

    Raises a ``PolicyError`` with line and column, or an ``InputError`` for a parameter's value.

    >>> from memlab.kernel.language import Input
    >>> slot = Signature("recall-score", [Input("similarity"), Input("recency")])
    >>> policy = compile_policy("(fn [similarity recency] (+ (* 0.7 similarity) (* 0.3 recency)))", slot)
    >>> policy.row({"similarity": 1.0, "recency": 0.5})
    0.85
    """
    if not isinstance(source, str | PolicyForm):
        raise InputError(f"A policy is text, not {type(source).__name__}: {source!r}.")
    if not isinstance(signature, Signature):
        raise InputError(
            f"A policy is checked against a Signature, such as SLOTS[name].signature; not {signature!r}."
        )
    # as text, since -0.0 and 0.0 are equal and not the same
    chosen = (
        tuple(sorted((key, value.hex()) for key, value in _chosen(params).items()))
        if params is not None
        else ()
    )
    return _compile(source, signature, name, chosen, tuple(helpers), file)


def _chosen(params: Mapping[str, float]) -> dict[str, float]:
    if not isinstance(params, Mapping):
        raise InputError(f"Parameters are given by name, such as {{'near': 0.5}}; not {params!r}.")
    for name, value in params.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise InputError(f"The parameter {name} is a number, not {value!r}.")
    return {canonical(name): float(value) for name, value in params.items()}


@lru_cache(maxsize=1024)
def _compile(
    source: str | PolicyForm,
    signature: Signature,
    name: str | None,
    written: tuple[tuple[str, str], ...],
    helpers: tuple[str, ...],
    file: str | None,
) -> Policy:
    params = [(key, float.fromhex(value)) for key, value in written]
    text, _, parts, known = parse(source, name, helpers, file)
    names = tuple(a.text for a in parts.arguments)
    text = text._replace(name=name or parts.name or None, hash=source_hash(names, parts.body))
    checker = Checker(text, signature, known, dict(params), forms_for(signature, names))
    root = checker.result(parts.body, bound_arguments(checker, parts))
    for parameter, value in params:
        declared = checker.params.get(parameter)
        if declared is None:
            raise UnknownName("parameter", parameter, checker.params)
        if not (math.isfinite(value) and declared.low <= value <= declared.high):
            raise InputError(
                f"The parameter {parameter} lies between {declared.low:g} and {declared.high:g}; {value!r} does not."
            )
    assert text.hash is not None
    inputs = _inputs(root)
    used = [
        f"{item.name}:{item.hash}" for item in sorted(checker.used.values(), key=lambda h: h.name)
    ]
    values = [
        part
        for p in sorted(checker.params.values(), key=lambda p: p.name)
        for part in (p.name, p.value)
    ]
    return Policy(
        name=name or parts.name or signature.slot,
        signature=signature,
        source=source if isinstance(source, str) else source.source,
        doc=parts.doc,
        arguments=names,
        inputs=inputs,
        derived=MappingProxyType(
            {name: item for name, item in checker.derived.items() if name in inputs}
        ),
        params=MappingProxyType(dict(sorted(checker.params.items()))),
        source_hash=text.hash,
        hash=digest(DIALECT, text.hash, str(len(used)), *used, *values),
        root=root,
        _given=_Given(source, name, helpers, file),
    )


def _inputs(root: Node) -> tuple[str, ...]:
    return tuple(sorted(str(n.value) for n in reachable(root) if n.op == "input"))


def bound_arguments(checker: Checker, parts: Definition) -> Env:
    """The node, or the set, of each argument of a policy."""
    env: dict[str, Node | SetName] = {}
    for argument in parts.arguments:
        value = checker.argument(argument.text)
        if value is None:
            slot, known = (
                checker.signature.slot,
                did_you_mean(argument.text, checker.signature.inputs),
            )
            raise checker.error(
                f"Unknown input {argument.text} of {slot}. {known}", argument, PolicyNameError
            )
        env[argument.text] = value
    return env


# What a policy can come out as, and which fields of a record policy other than they went in, before anything is run.
#
# Values that some inputs are known to have are put into the graph, which folds what follows from them. A field that is
# then nothing but its own old value is left alone, whatever the other inputs are.


def changed_fields(policy: Policy, given: Mapping[str, Value]) -> tuple[str, ...]:
    """The fields that ``policy`` may change when its inputs have the values ``given``, sorted.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("reinforce", [Input("outcome", "str"), Input("strength")], "record", fields=("strength",))
    >>> grow = compile_policy('''(fn [outcome strength]
    ...     (if (= outcome "success") (update :strength (+ 1 strength)) (update)))''', slot)
    >>> changed_fields(grow, {"outcome": "success"}), changed_fields(grow, {"outcome": "fail"})
    (('strength',), ())
    """
    return _changed(policy, tuple(sorted(given.items())))


@lru_cache(maxsize=1024)
def _changed(policy: Policy, given: tuple[tuple[str, Value], ...]) -> tuple[str, ...]:
    if not policy.fields:
        return ()
    ends = with_known(policy.root.args, dict(given))
    return tuple(
        name
        for name, end in zip(policy.fields, ends, strict=True)
        if (end.op, end.value) != ("input", name)
    )


def possible_results(
    policy: Policy, given: Mapping[str, Value]
) -> frozenset[tuple[str, Value]] | None:
    """What ``policy`` can give when its inputs have the values ``given``: ("const", value), or ("input", name) where an
    input is handed through. None where it computes something, or is a record.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("promote", [Input("status", "str"), Input("ttl")], "str")
    >>> fade = compile_policy('(fn [status ttl] (if (if-null (> ttl 3) false) "expired" status))', slot)
    >>> possible_results(fade, {"ttl": None})
    frozenset({('input', 'status')})
    """
    return _possible(policy, tuple(sorted(given.items())))


@lru_cache(maxsize=1024)
def _possible(
    policy: Policy, given: tuple[tuple[str, Value], ...]
) -> frozenset[tuple[str, Value]] | None:
    found: set[tuple[str, Value]] = set()
    waiting = with_known((policy.root,), dict(given)) if not policy.fields else []
    while waiting:
        node = waiting.pop()
        if node.op == "if":
            waiting += node.args[1:]
        elif node.op in ("const", "input"):
            found.add((node.op, node.value))
        else:
            return None
    return frozenset(found) or None


_EXPECTED = (
    "A policy is a text, a Hy form such as hy.read(...), or a compiled policy such as "
    'load_pack("companion").policies["recall-score"]'
)


def policy_parts(source: object) -> tuple[str, tuple[str, ...], dict[str, float]]:
    """Return the text, the helpers and the parameter values of a policy that a caller gives.

    Parameters
    ----------
    source
        The text of a policy, a form that Hy's reader made (a quote in front is removed), or a compiled ``Policy``.
        A form is written as text and then read like any other text; none of it is evaluated.

    Returns
    -------
    tuple of str, tuple of str, dict of str to float
        The text; the ``defn`` forms that it was compiled with; the values of parameters that differ from their
        defaults. A text and a form have no helpers and no values.

    Raises
    ------
    InputError
        If ``source`` is none of the three, or a form is nested too deep, too large, or holds what is no value of the
        dialect.

    Examples
    --------
    >>> policy_parts("(fn [similarity] similarity)")
    ('(fn [similarity] similarity)', (), {})
    """
    if isinstance(source, str) and not is_hy_model(source):
        text = str.__str__(source)
        return (text.lstrip()[1:] if text.lstrip().startswith("'(") else text), (), {}
    if isinstance(source, Policy):
        if source._of is not None:
            raise InputError(
                f"{source.name} is one field of a record policy: give the whole policy."
            )
        values = {
            param.name: param.value
            for param in source.params.values()
            if param.value != param.default
        }
        return source.source, source.helpers, values
    text_of_form = policy_form_text(source)
    if text_of_form is None:
        raise InputError(f"{_EXPECTED}; not {describe_value(source)}.")
    return text_of_form, (), {}


# A policy as a program over arrays, and the smaller one that it is where some inputs are known beforehand.
#
# Much of a recall is the same for all candidates: what the query asks for, that it names no speaker and no day. What
# follows from that is folded once, for each combination that is met, and not computed for every row of every recall.


Known = tuple[tuple[str, Value], ...]
"""Inputs by name with the value that all rows have, None for null."""

_MOST = 64
"""Combinations of known inputs of one policy whose programs are kept."""


class Program:
    """What a policy with one result computes from arrays of its inputs."""

    def __init__(self, policy: Policy, known: Known = ()) -> None:
        self.policy = policy
        (root,) = (
            with_known((policy.root,), dict(known), rounded=False) if known else (policy.root,)
        )
        self._arrays = ArrayProgram(root, policy.derived)
        self._smaller: dict[Known, Program] = {}
        self.reads = tuple(name for _, name, _, _ in self._arrays.inputs)
        """The inputs in the order in which ``compute`` takes them."""
        self.compares = self._arrays.coded
        """The inputs of words that ``compute`` takes as ``Coded``, too."""
        self.aggregates = self._arrays.aggregates
        """Whether its value for one row depends on the others."""

    def knowing(self, known: Known) -> Program:
        """The program where all rows have these values."""
        program = self._smaller.get(known)
        if program is None:
            if len(self._smaller) >= _MOST:
                self._smaller.clear()
            program = self._smaller[known] = Program(self.policy, known)
        return program

    def compute(
        self,
        ready: Sequence[Ready],
        size: int,
        *,
        order: NDArray[Any] | None = None,
        quiet: bool = False,
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Values and nulls (or none) of ``size`` rows, whose inputs come in the order of ``reads``: each an array of
        the input's type and a null mask, None where nothing is null. ``quiet``: NumPy's warnings are off.
        """
        try:
            ((values, nulls),) = self._arrays.compute(ready, size, order, quiet)
        except MemlabError:
            raise
        except Exception as error:
            raise InputError(f"{self.policy.name} cannot read what was given: {error}") from error
        return values, nulls
