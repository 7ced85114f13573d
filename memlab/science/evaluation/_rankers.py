"""What may be evaluated: packs, single policies, expressions and columns of scores, each as a ranker with a name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import Misfit, Taken, shown
from memlab.kernel.language import Input, InputType, Policy, Signature, compile_policy, policy_form_text, policy_parts
from memlab.kernel.policies import Pack, load_pack, pack_names, slot_named
from memlab.science.evaluation._log import RESERVED

__all__ = ["SLOT", "PolicySpec", "Ranker", "logged", "rankers_of"]

SLOT = "recall-score"


def _form_as_text(given: object) -> Any:
    """Return a Hy form as text, and a ``Misfit`` for anything else."""
    text = policy_form_text(given)
    return Misfit("a Hy form", shown(given)) if text is None else text


PolicySpec: TypeAlias = str | Path | Pack | Policy | pl.Expr | Annotated[Any, Taken("a Hy form", by=_form_as_text)]
"""The name, path, text or object of a pack; the text or object of a recall-score; an expression over candidates; the
name of a column of scores."""


@dataclass(frozen=True)
class Ranker:
    """One policy: ``reads`` are the columns of candidates that it needs, ``source`` what it says, ``hash`` its
    version.
    """

    name: str
    sort: Literal["pack", "policy", "expression", "column", "logged"]
    reads: tuple[str, ...]
    source: str
    hash: str
    policy: Policy | None = None
    pack: Pack | None = None
    expression: pl.Expr | None = None


def rankers_of(
    policies: PolicySpec | Sequence[PolicySpec] | Mapping[str, PolicySpec], schema: pl.Schema
) -> list[Ranker]:
    """The rankers, in the order given, under names of their own; ``schema`` is that of the candidates."""
    if isinstance(policies, Mapping):
        found = [replace(_ranker(spec, schema), name=name) for name, spec in policies.items()]
    else:
        single = isinstance(policies, str | Path | Pack | Policy | pl.Expr)
        given: Sequence[PolicySpec] = [policies] if single else policies  # type: ignore[assignment]
        found = [_ranker(spec, schema) for spec in given]
    if not found:
        raise InputError("No policies are given: name a pack, a column of scores, or pass the text of a recall-score.")
    hashes: dict[str, str] = {}
    for ranker in found:
        if ranker.name in hashes and hashes[ranker.name] == ranker.hash:
            raise InputError(f"The policy {ranker.name} is given twice.")
        hashes[ranker.name] = ranker.hash
    names = [ranker.name for ranker in found]
    return [
        replace(ranker, name=f"{ranker.name} [{ranker.hash[:8]}]") if names.count(ranker.name) > 1 else ranker
        for ranker in found
    ]


def _ranker(spec: PolicySpec, schema: pl.Schema) -> Ranker:
    if isinstance(spec, pl.Expr):
        return _of_expression(spec, schema)
    if isinstance(spec, Pack | Path):
        return _of_pack(load_pack(spec), schema)
    if isinstance(spec, Policy):
        return _of_policy(spec, spec.source, schema)
    if not isinstance(spec, str):
        raise InputError(
            f"A policy is a pack, a path, a text, a Hy form, a Polars expression or the name of a column, not {spec!r}."
        )
    text = policy_parts(spec.strip())[0]
    if text.startswith(("(", ";")):
        return _of_pack(load_pack(text), schema) if _is_pack(text) else _of_text(text, schema)
    if text.endswith(".hy"):
        return _of_pack(load_pack(text), schema)
    if text in schema.names() and text in pack_names():
        raise InputError(
            f'"{text}" is a pack and a column of the candidates: say load_pack("{text}") or pl.col("{text}").'
        )
    if text in pack_names():
        return _of_pack(load_pack(text), schema)
    if text in schema.names():
        return _of_column(text, schema)
    raise UnknownName("pack or column of scores", text, (*pack_names(), *_numbers(schema)))


def _is_pack(text: str) -> bool:
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(";"))
    return next(lines, "").lstrip().startswith("(pack")


def _of_pack(pack: Pack, schema: pl.Schema) -> Ranker:
    policy = pack.policies[SLOT]
    return Ranker(pack.name, "pack", _reads(policy, schema), "\n".join(pack.sources[:1]), pack.hash, policy, pack)


def _reads(policy: Policy, schema: pl.Schema) -> tuple[str, ...]:
    """The columns that a policy needs: a test of sets that the log does not hold is made from its sets."""
    names: dict[str, None] = {}
    for name in policy.inputs:
        made = name in policy.derived and name not in schema.names()
        names.update(dict.fromkeys(policy.derived[name].sets if made else (name,)))
    return tuple(names)


def _of_text(text: str, schema: pl.Schema) -> Ranker:
    """A policy of its own may read every feature that is declared, and every column that the log has beside them."""
    declared = slot_named(SLOT).signature
    own = {
        item.name: item
        for name, dtype in schema.items()
        if name not in RESERVED and (kind := _type(dtype)) is not None
        for item in [Input(name, kind)]
        if item.name not in declared.inputs
    }
    signature = Signature(SLOT, {**own, **declared.inputs}, aggregates=True)
    return _of_policy(compile_policy(text, signature), text, schema)


def _of_policy(policy: Policy, text: str, schema: pl.Schema) -> Ranker:
    if policy.signature.returns not in ("num", "bool"):
        raise InputError(f"The policy {policy.name} returns a {policy.signature.returns}; a ranking needs a number.")
    name = policy.name if policy.name != SLOT else f"{SLOT} [{policy.hash[:8]}]"
    return Ranker(name, "policy", _reads(policy, schema), text, policy.hash, policy)


def _type(dtype: pl.DataType) -> InputType | None:
    if dtype.is_numeric():
        return "num"
    if dtype == pl.Boolean:
        return "bool"
    if dtype == pl.List(pl.String):
        return "set"
    return "str" if dtype == pl.String else None


def _of_expression(expression: pl.Expr, schema: pl.Schema) -> Ranker:
    reads = tuple(dict.fromkeys(expression.meta.root_names()))
    for column in reads:
        if column not in schema.names():
            raise UnknownName("column of the candidates", column, schema.names())
    source = str(expression)
    name = expression.meta.output_name()
    if name in reads and not expression.meta.is_column():
        name = source if len(source) <= 48 else f"{name} [{_hash(source)[:8]}]"
    return Ranker(name, "expression", reads, source, _hash(source), expression=expression)


def _of_column(name: str, schema: pl.Schema) -> Ranker:
    if not (schema[name].is_numeric() or schema[name] == pl.Boolean):
        raise InputError(f"Column {name} of the candidates holds {schema[name]}; scores are numbers.")
    return Ranker(name, "column", (name,), f'pl.col("{name}")', _hash(name), expression=pl.col(name))


def logged(candidates: pl.LazyFrame, schema: pl.Schema) -> Ranker | None:
    """The ranking of whoever logged, by its own scores or ranks; none if the log holds neither."""
    held = candidates.select(
        pl.col(name).is_not_null().any() for name in ("score", "rank") if name in schema.names()
    ).collect()
    scored = "score" in held.columns and bool(held["score"].item())
    if scored and "rank" in held.columns and bool(held["rank"].item()):
        # ranks tell what scores do not: an order by likeness. What has no finite score is never shown.
        expression = pl.when(pl.col("score").is_finite()).then(-pl.col("rank").cast(pl.Float64)).otherwise(None)
        return Ranker(
            "logged", "logged", ("score", "rank"), "the ranks in the log", _hash("rank"), expression=expression
        )
    if scored:
        return Ranker(
            "logged", "logged", ("score",), "the scores in the log", _hash("score"), expression=pl.col("score")
        )
    if "rank" in held.columns and held["rank"].item():
        expression = -pl.col("rank").cast(pl.Float64)
        return Ranker("logged", "logged", ("rank",), "the ranks in the log", _hash("rank"), expression=expression)
    return None


def _numbers(schema: pl.Schema) -> list[str]:
    return [name for name, dtype in schema.items() if dtype.is_numeric() and name not in RESERVED]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
