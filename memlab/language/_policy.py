"""A compiled policy: one meaning, three ways to run it, and its identity."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from memlab.errors import InputError, PolicyNameError, PolicySyntaxError, UnknownName, did_you_mean
from memlab.language._arrays import ArrayProgram, Column
from memlab.language._check import Checker, Helper
from memlab.language._columns import ColumnProgram
from memlab.language._dag import Dag, Node, Value, reachable
from memlab.language._definition import Definition, definition
from memlab.language._derived import Derived
from memlab.language._forms import FORMS
from memlab.language._hash import digest, source_hash
from memlab.language._library import helper, helpers_of, named
from memlab.language._params import Param
from memlab.language._reader import Form, Text, canonical, read_forms
from memlab.language._row import RowProgram
from memlab.language._signature import Signature
from memlab.language.insight._explain import Explanation, explain
from memlab.language.lists._lift import LIFTED, Lifter, NotLiftable
from memlab.language.lists._program import ListProgram
from memlab.printable import printable

if TYPE_CHECKING:
    import polars as pl

    from memlab.language.insight._effects import Sensitivity, SlateSensitivity
    from memlab.language.insight._why import Why

__all__ = ["DIALECT", "Policy", "PolicyForm", "bound_arguments", "compile_policy", "read_parts"]

DIALECT = "memlab-1"
"""The version of the dialect, a part of every hash: a change of meaning changes it."""


@dataclass(frozen=True)
class PolicyForm:
    """A ``defpolicy`` of a pack, read and not yet checked. ``line`` is where it begins in the file."""

    slot: str
    inputs: tuple[str, ...]
    doc: str
    source: str
    line: int
    hash: str
    """The source hash."""
    form: Form = field(repr=False, compare=False)
    text: Text = field(repr=False, compare=False)


@dataclass(frozen=True, eq=False)
class Policy:
    """A checked policy. Two policies are equal when their hashes are; make one with ``compile_policy``.

    ``inputs`` are the features that it reads, sorted; tests of sets stand among them under their own text, such as
    ``(has tags "x")``, and in ``derived`` with the sets that they read. ``source_hash`` identifies the text up to
    layout and bound names, ``meaning_hash`` what it computes, ``hash`` the version: dialect, source, helpers and
    parameter values.
    """

    name: str
    signature: Signature
    source: str
    doc: str
    inputs: tuple[str, ...]
    params: Mapping[str, Param]
    source_hash: str
    hash: str
    derived: Mapping[str, Derived]
    root: Node = field(repr=False)
    _given: tuple[str | PolicyForm, str | None, tuple[str, ...], str | None] = field(repr=False)
    _of: tuple[Policy, str] | None = field(repr=False, default=None)
    """The record and the field of which this is the policy."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.hash == other.hash and self.signature == other.signature

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def helpers(self) -> tuple[str, ...]:
        """The ``defn`` forms that it was compiled with, used or not: with ``source``, enough to compile it again."""
        return self._given[2]

    @cached_property
    def meaning_hash(self) -> str:
        """A Merkle hash of the graph: equal for two texts that compute the same operations, parameter values
        included.
        """
        return digest(DIALECT, self.root.digest)

    def with_params(self, values: Mapping[str, float]) -> Policy:
        """The same policy with other parameter values, and so another ``hash``."""
        if self._of is not None:
            record, field = self._of
            return record.with_params(values).field(field)
        source, name, helpers, file = self._given
        merged = {p.name: p.value for p in self.params.values()} | _chosen(values)
        return compile_policy(source, self.signature, name=name, params=merged, helpers=helpers, file=file)

    @property
    def fields(self) -> tuple[str, ...]:
        """What the policy of a record slot may update, sorted; nothing for any other."""
        return self.root.value if self.root.op == "record" else ()

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
            signature=replace(self.signature, returns=declared.type, words=declared.words, fields=()),
            inputs=inputs,
            derived=MappingProxyType({n: d for n, d in self.derived.items() if n in inputs}),
            hash=digest(self.hash, "field", key),
            root=root,
            _of=(self, key),
        )

    def columns(self, frame: pl.DataFrame, *, by: str | None = None, order: str = "memory_id") -> pl.Series:
        """One value for each row of ``frame``, in its order.

        The frame has a column for each of ``inputs``, spelled either way (``age-days``, ``age_days``). ``by`` names
        the column of slates when the frame holds many; ``order`` the memory ids, which only aggregates read. A record
        gives a struct of its ``fields``.
        """
        return self._columns.run(frame, by, order, self.name)

    def aggregates(self, frame: pl.DataFrame, *, by: str | None = None, order: str = "memory_id") -> pl.DataFrame:
        """One column for each aggregate of the slate, named by its node's hash: what ``row`` and ``explain`` need."""
        return self._columns.aggregates(frame, by, order)

    def arrays(
        self, columns: Mapping[str, Column], *, order: npt.NDArray[Any] | None = None
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        """Values and nulls (or none) for one slate of NumPy arrays; a column is an array or an (array, null mask) pair.

        Strings come as object or ``str`` arrays. ``order`` gives the memory ids, for aggregates; without it the order
        of the rows counts. Agrees with ``columns`` within a relative 1e-12. For a record see ``updates``.
        """
        self._scalar("arrays")
        ((values, nulls),) = self._arrays.run(columns, order)
        return values, nulls

    def updates(
        self, columns: Mapping[str, Column], *, order: npt.NDArray[Any] | None = None
    ) -> dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]]:
        """What a record policy makes of each of its ``fields``, as ``arrays`` would give it."""
        if self.root.op != "record":
            raise InputError(f"{self.name} returns one value and updates nothing: use arrays.")
        return dict(zip(self.fields, self._arrays.run(columns, order), strict=True))

    def row(
        self, values: Mapping[str, object], *, aggregates: Mapping[str, float | None] | None = None
    ) -> Value | dict[str, Value]:
        """The value for one item, bit for bit as in ``columns``; of a record one value a field.

        ``aggregates`` is the item's row of ``aggregates``. A set is any collection of strings.
        """
        return self._row.value(self._row.run(values, aggregates))

    def explain(
        self, values: Mapping[str, object], *, aggregates: Mapping[str, float | None] | None = None
    ) -> Explanation:
        """The value for one item: as additive terms of the live branch, which sum to it, and as a tree."""
        self._scalar("explain")
        return explain(self._row, self._row.run(values, aggregates))

    def why(
        self,
        a: Mapping[str, object],
        b: Mapping[str, object],
        *,
        aggregates: tuple[Mapping[str, float | None], Mapping[str, float | None]] | None = None,
        names: tuple[str, str] = ("a", "b"),
    ) -> Why:
        """Why ``a`` has a greater value than ``b``, or a smaller one, term by term: see ``_why``."""
        from memlab.language.insight._why import why

        return why(self, a, b, aggregates=aggregates, names=names)

    def sensitivity(
        self, item: Mapping[str, object] | int, slate: pl.DataFrame | None = None, *, order: str = "memory_id"
    ) -> Sensitivity:
        """How the value of one item answers to each of its features: see ``_sensitivity``."""
        from memlab.language.insight._sensitivity import sensitivity

        return sensitivity(self, item, slate, order=order)

    def slate_sensitivity(self, slate: pl.DataFrame, *, top: int = 10, order: str = "memory_id") -> SlateSensitivity:
        """What the order of a slate owes to each feature: see ``_sensitivity``."""
        from memlab.language.insight._sensitivity import slate_sensitivity

        return slate_sensitivity(self, slate, top=top, order=order)

    def latex(self) -> str:
        """The policy as LaTeX for display mathematics, without the dollar signs; a record has one equation a field."""
        from memlab.language.insight._latex import latex

        return latex(self)

    def __repr__(self) -> str:
        return printable(f"<Policy {self.name} [{self.hash[:12]}]: {' '.join(self.inputs)}>")

    def _repr_html_(self) -> str:
        from memlab.language.insight._highlight import highlight

        head = f"{html.escape(self.name)} <code>[{self.hash[:12]}]</code>"
        return f"<div>{head}{highlight(self.source, 'html', features=self.inputs)}</div>"

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

    >>> from memlab.language import Input
    >>> slot = Signature("recall-score", [Input("similarity"), Input("recency")])
    >>> policy = compile_policy("(fn [similarity recency] (+ (* 0.7 similarity) (* 0.3 recency)))", slot)
    >>> policy.row({"similarity": 1.0, "recency": 0.5})
    0.85
    """
    if not isinstance(source, str | PolicyForm):
        raise InputError(f"A policy is text, not {type(source).__name__}: {source!r}.")
    if not isinstance(signature, Signature):
        raise InputError(f"A policy is checked against a Signature, such as SLOTS[name].signature; not {signature!r}.")
    chosen = tuple(sorted(_chosen(params).items())) if params is not None else ()
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
    params: tuple[tuple[str, float], ...],
    helpers: tuple[str, ...],
    file: str | None,
) -> Policy:
    known = helpers_of(helpers, file)
    if isinstance(source, PolicyForm):
        text = source.text._replace(name=name or source.slot)
        parts, shown = definition(source.form, text), source.source
    else:
        text = Text(source, name, file)
        parts, own = read_parts(text)
        known = {**known, **own} if own else known
        shown = source
    names = tuple(a.text for a in parts.arguments)
    text = text._replace(name=name or parts.name or None, hash=source_hash(names, parts.body))
    # a slot that offers lists also takes policies that read one item and give its weight
    over_lists = any(canonical(name) in signature.lists for name in names)
    checker: Checker | ListProgram
    if over_lists:
        root, checker = _over_lists(text, signature, parts, known, dict(params))
    else:
        checker = Checker(text, signature, known, dict(params), FORMS)
        root = checker.result(parts.body, bound_arguments(checker, parts))
    derived = checker.derived if isinstance(checker, Checker) else {}
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
    used = [f"{item.name}:{item.hash}" for item in sorted(checker.used.values(), key=lambda h: h.name)]
    values = [part for p in sorted(checker.params.values(), key=lambda p: p.name) for part in (p.name, p.value)]
    return Policy(
        name=name or parts.name or signature.slot,
        signature=signature,
        source=shown,
        doc=parts.doc,
        inputs=inputs,
        derived=MappingProxyType({name: item for name, item in derived.items() if name in inputs}),
        params=MappingProxyType(dict(sorted(checker.params.items()))),
        source_hash=text.hash,
        hash=digest(DIALECT, text.hash, str(len(used)), *used, *values),
        root=root,
        _given=(source, name, helpers, file),
    )


def _over_lists(
    text: Text, signature: Signature, parts: Definition, known: Mapping[str, Helper], params: Mapping[str, float]
) -> tuple[Node, Checker | ListProgram]:
    """A policy over the slate's lists as columns, where it is an expression over them; as a program elsewhere."""
    lifter = Lifter(text, signature, known, params, LIFTED)
    try:
        return lifter.result(parts.body, bound_arguments(lifter, parts)), lifter
    except NotLiftable:
        program = ListProgram(tuple(a.text for a in parts.arguments), parts.body, text, signature, known, params)
    dag = Dag()
    types = {name: item.type for name, item in signature.inputs.items()}
    lists = tuple(dag.input(name, type) for name in program.inputs if (type := types[name]) != "set")
    return dag.interpreted(program, lists), program


def _inputs(root: Node) -> tuple[str, ...]:
    return tuple(sorted(str(n.value) for n in reachable(root) if n.op == "input"))


def read_parts(text: Text) -> tuple[Definition, dict[str, Helper]]:
    """The policy of a text, and the helpers in front of it."""
    forms = read_forms(text)
    if not forms:
        raise text.error(PolicySyntaxError, "The text is empty: a policy is (fn [features] body).", None)
    own = named(helper(form, text) for form in forms if form.head == "defn")
    policies = [form for form in forms if form.head != "defn"]
    if not policies:
        raise text.error(PolicySyntaxError, "Helpers alone are no policy: (fn [features] body) is missing.", forms[-1])
    for form in policies:
        if form.head in ("pack", "setting"):
            raise text.error(PolicySyntaxError, "This is the text of a pack: lab.use takes it.", form)
        if form.head not in ("fn", "lambda", "λ", "defpolicy"):
            raise text.error(
                PolicySyntaxError, "A policy is (fn [features] body) or (defpolicy name [features] body).", form
            )
    if len(policies) > 1:
        raise text.error(PolicySyntaxError, "A second policy stands here; a text holds one.", policies[1])
    return definition(policies[0], text), own


def bound_arguments(checker: Checker, parts: Definition) -> dict[str, object]:
    """What each argument of a policy stands for."""
    env: dict[str, object] = {}
    for argument in parts.arguments:
        value = checker.argument(argument.text)
        if value is None:
            known = checker.argument_names()
            raise checker.error(
                f"{argument.text} is no input of {checker.signature.slot}. {did_you_mean(argument.text, known)}",
                argument,
                PolicyNameError,
            )
        env[argument.text] = value
    return env
