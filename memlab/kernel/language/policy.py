"""Compiled policies: one meaning, three ways to run it, its hashes, and specialisation to known values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import InputError, MemlabError, UnknownName
from memlab.kernel.base.arguments import AnyNumber, checked, describe_value
from memlab.kernel.base.arrays import Flags, Values
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import printable
from memlab.kernel.hooks import load_part
from memlab.kernel.language.arrays import ArrayProgram, Column, Ready
from memlab.kernel.language.checker import Checker
from memlab.kernel.language.columns import ColumnProgram, Evaluation, RowProgram
from memlab.kernel.language.forms import forms_for
from memlab.kernel.language.graph import Node, Value, reachable, with_known
from memlab.kernel.language.macros import MACROS
from memlab.kernel.language.reader import canonical
from memlab.kernel.language.signature import Derived, Param, Signature
from memlab.kernel.language.texts import (
    INHERITED,
    PolicyForm,
    calls_inherited,
    digest,
    parse,
    source_hash,
)
from memlab.kernel.language.writer import is_hy_model, policy_form_text

DIALECT = "memlab-1"
"""Version of the policy language. It is part of every hash and changes whenever a meaning changes."""


class _Origin(NamedTuple):
    """The arguments from which a policy was compiled."""

    source: str | PolicyForm
    name: str | None
    helpers: tuple[str, ...]
    file: str | None


@dataclass(frozen=True, eq=False)
class Policy(Displayed):
    """A checked policy. Two policies are equal if their hashes are equal.

    Attributes
    ----------
    name
        Name of the policy in error messages.
    signature
        Contract of the slot that the policy was checked against.
    source
        Text of the policy.
    doc
        Document string of the policy.
    arguments
        Arguments in the order of the text.
    inputs
        Inputs that the policy reads, sorted. A test of sets counts as an input under its own text, such as
        ``(has tags "x")``.
    params
        Tunable parameters by name.
    source_hash
        Hash of the text, independent of layout and bound names.
    hash
        Hash of the version: language, source, helpers and parameter values.
    derived
        Tests of sets by name, with the sets that they read.
    root
        Graph of the computation.

    Examples
    --------
    >>> import memlab
    >>> policy = memlab.load_pack("memlab").policy("known")
    >>> policy.name, len(policy.hash)
    ('memlab/known', 64)
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
    _origin: _Origin = field(repr=False)
    _of: tuple[Policy, str] | None = field(repr=False, default=None)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Policy)
            and self.hash == other.hash
            and self.signature == other.signature
        )

    def __hash__(self) -> int:
        return hash(self.hash)

    def __reduce__(self) -> tuple[object, ...]:
        # A compiled program cannot be pickled, so a pickle has the text. Compiling takes a millisecond.
        if self._of is not None:
            return Policy.field, self._of
        params = {name: param.value for name, param in self.params.items()}
        origin = {**self._origin._asdict(), "params": params}
        return partial(compile_policy, signature=self.signature, **origin), ()

    @property
    def helpers(self) -> tuple[str, ...]:
        """The ``defn`` forms that the policy was compiled with, including unused ones."""
        return self._origin.helpers

    @cached_property
    def inherited(self) -> Policy | None:
        """The policy that ``(inherited)`` stands for, or None without inheritance.

        It has the parameter values of this policy. Its name is that of its pack and the slot, such as
        "memlab/recall-score".
        """
        if self._of is not None:
            record, field = self._of
            parent = record.inherited
            return parent.field(field) if parent is not None and field in parent.fields else None
        whole = parse(*self._origin)
        if INHERITED not in whole.helpers or not calls_inherited(whole.parts.body):
            return None
        item = whole.helpers[INHERITED]
        # The text after the name of the pack is a policy with its helpers.
        text = item.text.source[item.form.items[1].stop : item.form.stop - 1]
        parent = compile_policy(text, self.signature, name=f"{item.doc}/{self.signature.slot}")
        values = {name: self.params[name].value for name in parent.params if name in self.params}
        return parent.with_params(values) if values else parent

    @cached_property
    def meaning_hash(self) -> str:
        """The Merkle hash of the graph, equal for texts with the same operations."""
        return digest(DIALECT, self.root.digest)

    @checked
    def with_params(self, values: Mapping[str, Annotated[float, AnyNumber]]) -> Policy:
        """Return the policy with other parameter values and therefore another `hash`.

        Parameters
        ----------
        values
            Values by the name of a parameter. An underscore counts as a hyphen.

        Returns
        -------
        Policy
            The policy with these values.

        Raises
        ------
        UnknownName
            If the policy has no such parameter.
        InputError
            If a value is outside the bounds of its parameter.

        Examples
        --------
        >>> from memlab.kernel.language import Input
        >>> slot = Signature("recall-score", [Input("similarity")])
        >>> policy = compile_policy("(fn [similarity] (* (param :weight 1) similarity))", slot)
        >>> policy.with_params({"weight": 0.5}).row({"similarity": 0.8})
        0.4
        """
        if self._of is not None:
            record, field = self._of
            return record.with_params(values).field(field)
        merged = {p.name: p.value for p in self.params.values()} | _chosen(values)
        return compile_policy(**self._origin._asdict(), signature=self.signature, params=merged)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that a record policy may update, sorted; empty for other policies."""
        return self.root.value if self.root.op == "record" else ()

    @checked
    def field(self, name: str) -> Policy:
        """Return the policy of one field of a record.

        The policy of a field returns a scalar, so it can be explained and drawn.

        Parameters
        ----------
        name
            Name of the field.

        Returns
        -------
        Policy
            A policy that returns the new value of the field.

        Raises
        ------
        UnknownName
            If the policy does not update this field.

        Examples
        --------
        >>> from memlab.kernel.language import Input
        >>> slot = Signature("reinforce", [Input("strength")], "record", fields=("strength",))
        >>> grow = compile_policy("(fn [strength] (update :strength (+ 1 strength)))", slot)
        >>> grow.field("strength").row({"strength": 2})
        3.0
        """
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
        """Compute the policy for each row of a frame, in row order.

        Parameters
        ----------
        frame
            A column for each of `inputs`, named with hyphens or underscores (``age-days``, ``age_days``).
        by
            Column of slates if the frame contains several; aggregates are computed per slate.
        order
            Column of memory ids, which only aggregates read.

        Returns
        -------
        Series
            The values; for a record a struct of its `fields`.

        Raises
        ------
        InputError
            If a column is missing or has another type.

        Examples
        --------
        >>> from memlab.kernel.language import Input
        >>> policy = compile_policy("(fn [similarity] (* 2 similarity))", Signature("score", [Input("similarity")]))
        >>> policy.columns(pl.DataFrame({"similarity": [0.5, None]})).to_list()
        [1.0, None]
        """
        return self._columns.run(frame, by, order, self.name)

    @checked
    def aggregates(
        self, frame: pl.DataFrame, *, by: str | None = None, order: str = "memory_id"
    ) -> pl.DataFrame:
        """Return the aggregates of the slate for each row, which `row` and `explain` need.

        Parameters
        ----------
        frame
            A column for each of `inputs`.
        by
            Column of slates if the frame contains several.
        order
            Column of memory ids.

        Returns
        -------
        DataFrame
            One column for each aggregate, named by the hash of its node.
        """
        return self._columns.aggregates(frame, by, order)

    def arrays(
        self, columns: Mapping[str, Column], *, order: Values | None = None
    ) -> tuple[Values, Flags | None]:
        """Compute the policy for one slate of NumPy arrays, with null masks.

        The values agree with `columns` except for the last digit of ``exp``, ``log``, ``log1p``,
        ``tanh`` and ``pow``. The relative difference is at most 1e-12 unless cancellation magnifies
        it. For a record, use `updates`.

        Parameters
        ----------
        columns
            An array for each of `inputs`, or a pair of an array and a null mask. Strings are object or ``str`` arrays.
        order
            Memory ids for aggregates; by default the order of the rows counts.

        Returns
        -------
        tuple
            An array of values, and an array that is True for null, or None if there is no null.

        Raises
        ------
        InputError
            If an array is missing or has another type, or if the policy returns a record.
        """
        self._refuse_record("arrays")
        ((values, nulls),) = self._run(self._arrays.run, columns, order)
        return values, nulls

    def updates(
        self, columns: Mapping[str, Column], *, order: Values | None = None
    ) -> dict[str, tuple[Values, Flags | None]]:
        """Return the new values of each field that a record policy updates.

        Parameters
        ----------
        columns
            An array for each of `inputs`, or a pair of an array and a null mask.
        order
            Memory ids for aggregates; by default the order of the rows counts.

        Returns
        -------
        dict
            Values and nulls, as `arrays` returns them, by the name of the field.

        Raises
        ------
        InputError
            If the policy does not return a record.
        """
        if self.root.op != "record":
            raise InputError(
                f"{self.name} returns one value and updates no fields: call Policy.arrays instead."
            )
        return dict(zip(self.fields, self._run(self._arrays.run, columns, order), strict=True))

    def row(
        self, values: Mapping[str, object], *, aggregates: Mapping[str, float | None] | None = None
    ) -> Value | dict[str, Value]:
        """Compute the policy for one item, bit-identical to `columns`.

        Parameters
        ----------
        values
            A value for each of `inputs` by name. A set is any collection of strings.
        aggregates
            The item's row of `aggregates`, if the policy aggregates over its slate.

        Returns
        -------
        float, bool, str, None or dict
            The value; for a record one value per field.

        Raises
        ------
        InputError
            If a value is missing or has another type.

        Examples
        --------
        >>> from memlab.kernel.language import Input
        >>> policy = compile_policy("(fn [similarity] (* 2 similarity))", Signature("score", [Input("similarity")]))
        >>> policy.row({"similarity": 0.4})
        0.8
        """
        return self._row.value(self._run(self._row.run, values, aggregates))

    def __call__(
        self, *values: object, aggregates: Mapping[str, float | None] | None = None, **named: object
    ) -> Value | dict[str, Value]:
        """Compute the policy for one item, with arguments by position or name.

        >>> from memlab.kernel.language import Input
        >>> slot = Signature("recall-score", [Input("similarity"), Input("age-days")])
        >>> compile_policy("(fn [similarity age-days] (/ similarity (+ 1 age-days)))", slot)(0.5, age_days=1)
        0.25
        """
        if len(values) > len(self.arguments):
            raise InputError(
                f"{self.name} takes {len(self.arguments)} arguments, but {len(values)} are given."
            )
        names = {name.replace("/", "-"): name for name in (*self.arguments, *self.signature.inputs)}
        arguments = dict(zip(self.arguments, values, strict=False))
        arguments |= {names.get(canonical(name), name): value for name, value in named.items()}
        return self.row(arguments, aggregates=aggregates)

    @checked
    def explain(
        self,
        values: Mapping[str, object],
        *,
        aggregates: Mapping[str, float | None] | None = None,
        inherited: bool = False,
    ) -> Any:
        """Explain the policy's value for one item as additive terms.

        Parameters
        ----------
        values
            A value for each of `inputs` by name.
        aggregates
            The item's row of `aggregates`, if the policy aggregates over its slate.
        inherited
            Whether to split the value of ``(inherited)`` into the terms of its policy. By default it is one term.

        Returns
        -------
        memlab.subjects.lens.Explanation
            The additive terms of the active branch, which sum to the value, and the computation as a tree.

        Raises
        ------
        InputError
            If the policy returns a record: explain one field of it.

        Examples
        --------
        >>> from memlab.kernel.language import Input
        >>> policy = compile_policy("(fn [x y] (+ (* 2 x) y))", Signature("score", [Input("x"), Input("y")]))
        >>> [(term.text, term.value) for term in policy.explain({"x": 1, "y": 3}).terms]
        [('(* 2 x)', 2.0), ('y', 3.0)]
        """
        self._refuse_record("explain")
        return load_part("explain-value")(self._evaluated(values, aggregates), self, inherited)

    @checked
    def why(
        self,
        a: Mapping[str, object],
        b: Mapping[str, object],
        *,
        aggregates: tuple[Mapping[str, float | None], Mapping[str, float | None]] | None = None,
        names: tuple[str, str] = ("a", "b"),
    ) -> Any:
        """Compare the values of two items term by term.

        Parameters
        ----------
        a, b
            A value for each of `inputs` by name, for either item.
        aggregates
            The items' rows of `aggregates`, if the policy aggregates over its slate.
        names
            Names of the two items in the output.

        Returns
        -------
        memlab.subjects.lens.Why
            The differences of the terms, which sum to the difference of the values.

        Raises
        ------
        InputError
            If the policy returns a record: compare one field of it.

        Examples
        --------
        >>> from memlab.kernel.language import Input
        >>> policy = compile_policy("(fn [x y] (+ (* 2 x) y))", Signature("score", [Input("x"), Input("y")]))
        >>> [(t.text, t.difference) for t in policy.why({"x": 1, "y": 0}, {"x": 0, "y": 1}).terms]
        [('(* 2 x)', 2.0), ('y', -1.0)]
        """
        self._refuse_record("why")
        first, second = aggregates or (None, None)
        return load_part("compare-values")(
            self._evaluated(a, first), self._evaluated(b, second), names, self
        )

    def __repr__(self) -> str:
        return printable(f"<Policy {self.name} [{self.hash[:12]}]: {' '.join(self.inputs)}>")

    def _display(self) -> object:
        return load_part("show-policy")(self)

    def _run(self, run: Callable[..., Any], *values: Any) -> Any:
        """Run a program; raise InputError for values that it cannot read.

        Values are not checked beforehand, because programs run often.
        """
        try:
            return run(*values)
        except MemlabError:
            raise
        except Exception as error:
            raise InputError(f"{self.name} cannot read its arguments: {error}") from error

    def _evaluated(
        self, values: Mapping[str, object], aggregates: Mapping[str, float | None] | None
    ) -> Evaluation:
        """Return the values of all nodes of the graph for one item."""
        return Evaluation(self._row, self._run(self._row.run, values, aggregates))

    def _refuse_record(self, verb: str) -> None:
        """Raise an error if the policy returns a record, which `verb` does not accept."""
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
    """Read and check a policy against the signature of a slot. Results are cached by content.

    Parameters
    ----------
    source
        ``(fn [a b] body)``, ``(lambda (a b) body)`` or a ``defpolicy``, with helpers (``defn``) in front if needed; or
        the `PolicyForm` of a pack.
    signature
        Contract of the slot.
    name
        Name of the policy in error messages.
    params
        Values of parameters, which override their defaults.
    helpers
        Texts of ``defn`` forms that the policy may call.
    file
        Path of the file, for error messages.

    Returns
    -------
    Policy
        The compiled policy.

    Raises
    ------
    PolicyError
        If the policy is invalid, with line and column.
    InputError
        If a parameter has an invalid value.

    Examples
    --------
    >>> from memlab.kernel.language import Input
    >>> slot = Signature("recall-score", [Input("similarity"), Input("recency")])
    >>> policy = compile_policy("(fn [similarity recency] (+ (* 0.7 similarity) (* 0.3 recency)))", slot)
    >>> policy.row({"similarity": 1.0, "recency": 0.5})
    0.85
    """
    if not isinstance(source, str | PolicyForm):
        raise InputError(f"A policy must be a text, not {type(source).__name__}: {source!r}.")
    if not isinstance(signature, Signature):
        raise InputError(
            f"A policy is checked against a Signature, such as SLOTS[name].signature; not {signature!r}."
        )
    # The cache needs texts, because -0.0 and 0.0 are equal as keys but give different hashes.
    chosen = (
        tuple(sorted((key, value.hex()) for key, value in _chosen(params).items()))
        if params is not None
        else ()
    )
    return _compile(source, signature, name, chosen, tuple(helpers), file)


def _chosen(params: Mapping[str, float]) -> dict[str, float]:
    """Validate parameter values and return them by canonical name."""
    if not isinstance(params, Mapping):
        raise InputError(f"Parameters are given by name, such as {{'near': 0.5}}; not {params!r}.")
    for name, value in params.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise InputError(f"The parameter {name} must be a number, not {value!r}.")
    return {canonical(name): float(value) for name, value in params.items()}


# Recalls, evaluations and widgets compile the same texts again and again; compiling takes a millisecond.
@lru_cache(maxsize=1024)
def _compile(
    source: str | PolicyForm,
    signature: Signature,
    name: str | None,
    written: tuple[tuple[str, str], ...],
    helpers: tuple[str, ...],
    file: str | None,
) -> Policy:
    """Compile a policy from hashable arguments, with a result cache."""
    # The text, its arguments, then the values of parameters are checked, so that the first mistake is reported.
    params = [(key, float.fromhex(value)) for key, value in written]
    whole = parse(source, name, helpers, file)
    text, parts = whole.text, whole.parts
    names = tuple(a.text for a in parts.arguments)
    text = text._replace(name=name or parts.name or None, hash=source_hash(names, parts.body))
    checker = Checker(
        text,
        signature,
        whole.helpers,
        dict(params),
        forms_for(signature, names),
        (*MACROS, *whole.macros),
    )
    root = checker.result(parts.body, checker.bind(parts.arguments))
    for parameter, value in params:
        declared = checker.params.get(parameter)
        if declared is None:
            raise UnknownName("parameter", parameter, checker.params)
        if not (math.isfinite(value) and declared.low <= value <= declared.high):
            raise InputError(
                f"The parameter {parameter} must be between {declared.low:g} and {declared.high:g}, not {value!r}."
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
        _origin=_Origin(source, name, helpers, file),
    )


def _inputs(root: Node) -> tuple[str, ...]:
    """Return the sorted names of the inputs that a graph reads."""
    return tuple(sorted(str(n.value) for n in reachable(root) if n.op == "input"))


# Possible results of a policy and the fields that it changes, determined without running it.
#
# Known values become constants of the graph, which is then folded. A field whose graph is only its own old value stays
# unchanged for all values of the other inputs.


def changed_fields(policy: Policy, inputs: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the sorted fields that a policy may change for known inputs.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("reinforce", [Input("outcome", "str"), Input("strength")], "record", fields=("strength",))
    >>> grow = compile_policy('''(fn [outcome strength]
    ...     (if (= outcome "success") (update :strength (+ 1 strength)) (update)))''', slot)
    >>> changed_fields(grow, {"outcome": "success"}), changed_fields(grow, {"outcome": "fail"})
    (('strength',), ())
    """
    return _changed(policy, tuple(sorted(inputs.items())))


# Each use of a memory needs this for the same few outcomes.
@lru_cache(maxsize=1024)
def _changed(policy: Policy, inputs: tuple[tuple[str, Value], ...]) -> tuple[str, ...]:
    """Return the fields that a policy may change if ``inputs`` have the given values; see `changed_fields`."""
    if not policy.fields:
        return ()
    ends = with_known(policy.root.args, dict(inputs))
    return tuple(
        name
        for name, end in zip(policy.fields, ends, strict=True)
        if (end.op, end.value) != ("input", name)
    )


def possible_results(
    policy: Policy, inputs: Mapping[str, Value]
) -> frozenset[tuple[str, Value]] | None:
    """Return every possible result of a policy for known input values.

    A result is ("const", value), or ("input", name) if the policy returns an input unchanged. The answer is None if the
    policy computes a value or returns a record.

    >>> from memlab.kernel.language import Input, Signature, compile_policy
    >>> slot = Signature("promote", [Input("status", "str"), Input("ttl")], "str")
    >>> fade = compile_policy('(fn [status ttl] (if (if-null (> ttl 3) false) "expired" status))', slot)
    >>> possible_results(fade, {"ttl": None})
    frozenset({('input', 'status')})
    """
    return _possible(policy, tuple(sorted(inputs.items())))


# Recalls need this for the same few combinations of known values.
@lru_cache(maxsize=1024)
def _possible(
    policy: Policy, inputs: tuple[tuple[str, Value], ...]
) -> frozenset[tuple[str, Value]] | None:
    """Return all possible results of a policy if ``inputs`` have the given values; see `possible_results`.

    The result is None if not all of them are constants or inputs.
    """
    results: set[tuple[str, Value]] = set()
    waiting = with_known((policy.root,), dict(inputs)) if not policy.fields else []
    while waiting:
        node = waiting.pop()
        if node.op == "if":
            waiting += node.args[1:]
        elif node.op in ("const", "input"):
            results.add((node.op, node.value))
        else:
            return None
    return frozenset(results) or None


# The accepted types of a policy, for the error message.
_EXPECTED = (
    "A policy must be a text, a Hy form such as hy.read(...), or a compiled policy such as "
    'load_pack("companion").policies["recall-score"]'
)


def policy_parts(source: object) -> tuple[str, tuple[str, ...], dict[str, float]]:
    """Return the text, helpers and parameter values of a policy.

    Any accepted type of a policy can be passed.

    Parameters
    ----------
    source
        A text, a form of Hy's reader, or a compiled ``Policy``. A form is written as text without a leading quote.
        Nothing is evaluated.

    Returns
    -------
    tuple of str, tuple of str, dict of str to float
        The text, the ``defn`` forms it was compiled with, and the parameter values that differ from their defaults. A
        text or form has no helpers and no values.

    Raises
    ------
    InputError
        If ``source`` has another type, or if a form is nested too deep, too large or contains an unsupported value.

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
                f"{source.name} is one field of a record policy: pass the whole policy."
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


# A policy as a program over arrays, with smaller programs for known inputs.
#
# Many inputs of a recall are equal for all candidates, for example that the query names no speaker and no day. Everything
# that follows from them is folded once for each combination, instead of being computed for every row of every recall.


Known = tuple[tuple[str, Value], ...]
"""Inputs by name with the value that all rows have, None for null."""


class Program:
    """A policy with one result as a program over arrays of its inputs.

    The tuple `reads` has the inputs in the order of `compute`. The inputs in `compares` may also be passed as `Coded`.
    The flag `aggregates` is True if the value of one row depends on the others.
    """

    def __init__(self, policy: Policy, constants: Known = ()) -> None:
        self.policy = policy
        (root,) = (
            with_known((policy.root,), dict(constants), rounded=False)
            if constants
            else (policy.root,)
        )
        self._arrays = ArrayProgram(root, policy.derived)
        self.reads = tuple(name for _, name, _, _ in self._arrays.inputs)
        self.compares = self._arrays.coded
        self.aggregates = self._arrays.aggregates

    def specialise(self, constants: Known) -> Program:
        """Compile a program for rows that share the given input values.

        Parameters
        ----------
        constants
            Inputs by name with the value of all rows, sorted.

        Returns
        -------
        Program
            A program that does not read these inputs.
        """
        return Program(self.policy, constants)

    def compute(
        self,
        ready: Sequence[Ready],
        size: int,
        *,
        order: Values | None = None,
        quiet: bool = False,
    ) -> tuple[Values, Values | None]:
        """Compute values and null masks for rows of inputs.

        Parameters
        ----------
        ready
            For each of `reads` an array of the input's type and a null mask, or None if no value is null.
        size
            Number of rows to compute.
        order
            Memory ids for aggregates; by default the order of the rows counts.
        quiet
            True if the caller has switched NumPy's warnings off.

        Returns
        -------
        tuple
            An array of values, and an array that is True for null, or None if there is no null.

        Raises
        ------
        InputError
            If an array has an unusable type.
        """
        try:
            ((values, nulls),) = self._arrays.compute(ready, size, order, quiet)
        except MemlabError:
            raise
        except Exception as error:
            raise InputError(f"{self.policy.name} cannot read its arguments: {error}") from error
        return values, nulls
