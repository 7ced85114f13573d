"""``lab.features``: user-defined features for any policy, as expressions or functions."""

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

PairScorer = Callable[[str, list[str]], Sequence[float] | np.ndarray[Any, Any]]
"""A function from a query and some texts to one number for each text."""

_MODULE = "lab.features"
"""The module name under which these features are registered.

A feature that is added again under its name replaces the former one.
"""


class LabFeatures:
    """User-defined features, next to those in ``memlab.FEATURES``.

    Any policy can read an added feature. The feature is checked, hashed, logged and explained like
    a built-in feature. The feature exists in this process, for all labs of the process. Functions
    are never stored. A lab whose pack reads a missing feature opens, and its error names the
    feature.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.features.add("from-emi", pl.col("speaker") == "Emi")
    >>> _ = lab.policies.install(
    ...     "recall-score", "(fn [similarity from-emi] (+ similarity (if from-emi 0.1 0)))"
    ... )
    >>> lab.features.remove("from-emi")
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
        """Add a feature, replacing any feature added under the same name.

        Parameters
        ----------
        name
            The name that policies read. Names that memlab or an installed extension declares are
            reserved.
        given
            A Polars expression or a function. An expression reads the columns of ``lab.memories``,
            one row at a time. A function maps the query and a list of texts to one number for each
            text, and is called once per recall.
        version
            A word that is logged with the values. A function needs a version: change it whenever the function returns
            different values. The text of an expression is logged in any case.
        type
            The type of a value. Default: the type of the expression, ``"num"`` for a function.
        doc
            One sentence for errors, completion and explanations.
        nullable
            Whether a value may be null or NaN.

        Returns
        -------
        Feature
            The feature as policies read it.

        Raises
        ------
        InputError
            If the name is reserved, if the expression reads other rows, or if a function has no
            version.
        UnknownName
            If the expression reads an unknown column.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> feature = lab.features.add("short", pl.col("text").str.len_chars() < 40)
        >>> feature.name, feature.type
        ('short', 'bool')
        >>> lab.features.remove("short")
        """
        name = canonical(name)
        if isinstance(given, pl.Expr):
            feature = _make_expression_feature(name, given, type, doc, nullable)
            version = version or "1"
        elif callable(given):
            if version is None:
                raise InputError(
                    f'Give the feature {name} a version, as in version="1", and raise it whenever the function changes '
                    "what it returns: values of two versions are never mixed."
                )
            feature = _make_function_feature(name, given, type or "num", doc, nullable)
        else:
            raise InputError(
                f"The feature {name} must be a Polars expression or a function (query, texts) -> numbers, "
                f"not {given.__class__.__name__}."
            )
        added = register_extension(Extension(name, version, features=(feature,)), _MODULE)
        return added.features[0]  # type: ignore[return-value]

    @checked
    def remove(self, name: str) -> None:
        """Remove a feature that ``add`` added.

        Parameters
        ----------
        name
            The name of the feature.

        Raises
        ------
        UnknownName
            If no feature was added under this name.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.features.add("short", pl.col("text").str.len_chars() < 40)
        >>> lab.features.remove("short")
        >>> lab.features.added
        ()
        """
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


def _make_expression_feature(
    name: str, expression: pl.Expr, type: str | None, doc: str, nullable: bool
) -> Feature:
    """Return the feature of a Polars expression that reads one row at a time."""
    columns = expression.meta.root_names()
    for column in columns:
        if column not in MEMORY and column != "id":
            raise UnknownName(
                "column of memories", column, ("id", *MEMORY), where=f"Feature {name}: "
            )
    try:
        written, separable = (
            expression.meta.serialize(format="json"),
            expression.meta.is_row_separable(),
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"The feature {name} is an expression that Polars cannot describe ({error}). If it calls a Python "
            "function, pass this function as the feature."
        ) from None
    if not separable:
        raise InputError(
            f"The feature {name} reads other rows than its own (an aggregate, a window, a sort). A feature is a value "
            "of one memory; a policy has aggregates of the pool, such as (rank x)."
        )
    own_type = type or _infer_type(name, expression)
    digest = hashlib.sha256(written.encode()).hexdigest()[:16]

    def compute(pool: Pool) -> pl.Series:
        frame = pool.frame(*columns) if columns else pool.frame("id")
        values = frame.select(expression.alias(name))[name]
        return (
            values.extend_constant(values[0], len(pool) - 1)
            if len(values) == 1 < len(pool)
            else values
        )

    formula = f"{doc or expression} [{digest}]"
    return Feature(name, own_type, "memory", formula, nullable=nullable, compute=compute)  # type: ignore[arg-type]


def _infer_type(name: str, expression: pl.Expr) -> str:
    """Return the type of an expression's values, evaluated on an empty frame."""
    from memlab.kernel.state import State

    dtype = State().memories().select(expression.alias(name))[name].dtype
    if dtype == pl.Boolean:
        return "bool"
    if dtype.is_numeric():
        return "num"
    if dtype in (pl.String, pl.Categorical):
        return "str"
    raise InputError(
        f"The feature {name} has values of type {dtype}. A feature is a number, true or false, or a string."
    )


def _make_function_feature(
    name: str, function: PairScorer, type: str, doc: str, nullable: bool
) -> Feature:
    """Build a feature from a function that scores texts for a query."""

    def compute(pool: Pool) -> Any:
        if not len(pool):
            return np.zeros(0)
        values = function(pool.query, pool.texts)
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise ExtensionError(
                f"it returned {values.__class__.__name__}; return one value for each text."
            )
        return values

    name_of_function = getattr(function, "__qualname__", function.__class__.__name__)
    formula = doc or f"what {name_of_function} returns for the query and the text"
    return Feature(name, type, "query", formula, nullable=nullable, compute=compute)  # type: ignore[arg-type]
