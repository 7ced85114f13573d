"""``lab.features``: features of one's own, from an expression or a function, for any policy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from memlab.errors import ExtensionError, InputError, UnknownName
from memlab.kernel.base.arguments import AsGiven, checked
from memlab.kernel.base.printable import printable
from memlab.kernel.extension import Extension, forget_extension, register_extension
from memlab.kernel.language import canonical
from memlab.kernel.policies import FEATURES, Feature
from memlab.kernel.recall import Pool
from memlab.kernel.registry import split_owner
from memlab.kernel.schema import MEMORY

__all__ = ["LabFeatures", "PairScorer"]

PairScorer = Callable[[str, list[str]], Sequence[float] | np.ndarray[Any, Any]]
"""A function from a query and some texts to one number for each text."""

_MODULE = "lab.features"
"""The module under which these features are registered: each call of ``add`` replaces the feature of its name."""


class LabFeatures:
    """Features of one's own, beside those in ``memlab.FEATURES``.

    A feature that is added can be read by any policy: it is checked, hashed, logged with each recall whose pack reads
    it, and explained, as the features of memlab are. It lives in this process, for all of its labs. A function is never
    stored: a lab whose pack reads a feature that is not there opens, and says by name what is missing.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.features.add("from-emi", pl.col("speaker") == "Emi")
    >>> _ = lab.policies.install("recall-score", "(fn [similarity from-emi] (+ similarity (if from-emi 0.1 0)))")
    """

    @checked
    def add(
        self,
        name: str,
        given: Annotated[Any, AsGiven],
        *,
        version: str | None = None,
        type: Literal["num", "bool", "str"] | None = None,
        doc: str = "",
        nullable: bool = True,
    ) -> Feature:
        """Add a feature under ``name``, or replace the one that was added under it.

        Parameters
        ----------
        name
            The name that policies read. It must not be one of ``memlab.FEATURES`` that memlab or an installed extension
            declares.
        given
            A Polars expression over the columns of ``lab.memories``, one value for each row by itself; or a function
            from the query and a list of texts to one number for each text, which is called once for each recall.
        version
            A word that is logged with the values. It may be left out for an expression, whose own text is logged. Raise
            it whenever a function changes what it returns.
        type
            What a value is; that of the expression unless given, and ``"num"`` for a function.
        doc
            One sentence for errors, completion and explanations.
        nullable
            Whether a value may be null or NaN.

        Raises
        ------
        InputError
            If the name is taken, if the expression reads other rows or an unknown column, or if a function has no
            version.
        """
        name = canonical(name)
        if isinstance(given, pl.Expr):
            feature = _of_expression(name, given, type, doc, nullable)
            version = version or "1"
        elif callable(given):
            if version is None:
                raise InputError(
                    f'Give the feature {name} a version, as in version="1", and raise it whenever the function changes '
                    "what it returns: values of two versions are never mixed."
                )
            feature = _of_function(name, given, type or "num", doc, nullable)
        else:
            raise InputError(
                f"The feature {name} is a Polars expression or a function (query, texts) -> numbers, "
                f"not {given.__class__.__name__}."
            )
        added = register_extension(Extension(name, version, features=(feature,)), _MODULE)
        return added.features[0]  # type: ignore[return-value]

    @checked
    def remove(self, name: str) -> None:
        """Remove a feature that ``add`` added. UnknownName if there is none of this name."""
        name = canonical(name)
        if name not in self.added:
            raise UnknownName("added feature", name, self.added)
        forget_extension(name)

    @property
    def added(self) -> tuple[str, ...]:
        """The names of the features that ``add`` added."""
        return tuple(
            name for name, feature in FEATURES.items() if split_owner(feature.owner)[0] == name
        )

    def __repr__(self) -> str:
        added = ", ".join(self.added)
        return printable(f"<{len(FEATURES)} features; added here: {added or 'none'}>")


def _of_expression(
    name: str, given: pl.Expr, type: str | None, doc: str, nullable: bool
) -> Feature:
    columns = given.meta.root_names()
    for column in columns:
        if column not in MEMORY and column != "id":
            raise UnknownName(
                "column of memories", column, ("id", *MEMORY), where=f"Feature {name}: "
            )
    try:
        written, separable = given.meta.serialize(format="json"), given.meta.is_row_separable()
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"The feature {name} is an expression that Polars cannot describe ({error}). If it calls a Python "
            "function, give that function."
        ) from None
    if not separable:
        raise InputError(
            f"The feature {name} reads other rows than its own (an aggregate, a window, a sort). A feature is a value "
            "of one memory; a policy has aggregates of the pool, such as (rank x)."
        )
    own_type = type or _type_of(name, given)
    digest = hashlib.sha256(written.encode()).hexdigest()[:16]

    def compute(pool: Pool) -> pl.Series:
        frame = pool.frame(*columns) if columns else pool.frame("id")
        values = frame.select(given.alias(name))[name]
        return (
            values.extend_constant(values[0], len(pool) - 1)
            if len(values) == 1 < len(pool)
            else values
        )

    formula = f"{doc or given} [{digest}]"
    return Feature(name, own_type, "memory", formula, nullable=nullable, compute=compute)  # type: ignore[arg-type]


def _type_of(name: str, given: pl.Expr) -> str:
    """Return the type of an expression's values, on a frame of no rows."""
    from memlab.kernel.state import State

    dtype = State().memories().select(given.alias(name))[name].dtype
    if dtype == pl.Boolean:
        return "bool"
    if dtype.is_numeric():
        return "num"
    if dtype in (pl.String, pl.Categorical):
        return "str"
    raise InputError(
        f"The feature {name} has values of type {dtype}. A feature is a number, true or false, or a string."
    )


def _of_function(name: str, given: PairScorer, type: str, doc: str, nullable: bool) -> Feature:
    def compute(pool: Pool) -> Any:
        if not len(pool):
            return np.zeros(0)
        values = given(pool.query, pool.texts)
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise ExtensionError(
                f"it returned {values.__class__.__name__}, and one value for each text is needed."
            )
        return values

    called = getattr(given, "__qualname__", given.__class__.__name__)
    formula = doc or f"what {called} returns for the query and the text"
    return Feature(name, type, "query", formula, nullable=nullable, compute=compute)  # type: ignore[arg-type]
