"""Policies and packs in the forms in which people have them: text, Hy form, file, name or object."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import AsGiven, describe_value
from memlab.kernel.base.disk import read_source_file
from memlab.kernel.extension import load_installed
from memlab.kernel.hooks import load_part
from memlab.kernel.language import (
    Policy,
    compile_policy,
    is_hy_model,
    is_policy_form,
    policy_form_text,
    policy_parts,
    slot_of,
)
from memlab.kernel.policies._features import FEATURES
from memlab.kernel.policies._packs import (
    DEFAULT_PACK,
    Pack,
    inherited_helpers,
    load_pack,
    pack_from_sources,
    pack_names,
)
from memlab.kernel.policies._slots import get_slot

PolicyLike: TypeAlias = Annotated[Any, AsGiven]
"""A policy or a pack, in one of these forms:

- a text, or a form of Hy, also one that quasiquotation built
- the path of a ``.hy`` file
- the name of a pack that comes with memlab, or of a feature to rank by
- a compiled `Policy`, or a `Pack`
"""

# White space and comments; a text is a pack if its first form is one, after the usual require.
_SPACE = r"(?:\s|;[^\n]*+)*+"
_PACK = re.compile(rf"{_SPACE}(?:\(require memlab\.dialect \*\){_SPACE})?\({_SPACE}pack\b")
_NAME = re.compile(r"[\w.+-]+")


class SinglePolicy(NamedTuple):
    """A policy that is not part of a pack.

    Attributes
    ----------
    text, helpers, params
        Text of the policy, the texts of its helpers, and the parameter values that differ from their defaults.
    slot
        Slot that the text names or the policy was compiled for, or "recall-score".
    name
        Name of the file or feature, or "".
    file
        Path of the file, for error messages.
    """

    text: str
    helpers: tuple[str, ...]
    params: Mapping[str, float]
    slot: str
    name: str = ""
    file: str | None = None

    @classmethod
    def of(cls, policy: Policy) -> SinglePolicy:
        """Return the parts of a compiled policy."""
        return cls(*policy_parts(policy), policy.signature.slot)

    def compile(
        self,
        pack: Callable[[], Pack],
        slot: str | None = None,
        *,
        helpers: tuple[str, ...] = (),
        params: Mapping[str, float] | None = None,
    ) -> Policy:
        """Compile the policy for a slot, by default for the policy's own slot."""
        slot = slot or self.slot
        signature = get_slot(slot).signature
        own = tuple(dict.fromkeys((*self.helpers, *helpers)))
        own = inherited_helpers(slot, self.text, own, pack, file=self.file)
        values = {**self.params, **(params or {})} or None
        policy = compile_policy(
            self.text, signature, name=slot, params=values, helpers=own, file=self.file
        )
        own_slot = slot_of(self.text)
        if own_slot not in ("", slot):
            raise InputError(
                f"This policy is for the slot {own_slot}, not for {slot}: rename it, or install it in {own_slot}."
            )
        return policy


def is_pack_text(text: str) -> bool:
    """Return True if the first form of a text is ``(pack ...)``."""
    return _PACK.match(text) is not None


def read_policy(spec: object) -> Pack | SinglePolicy:
    """Return the pack, or the single policy, that an argument stands for.

    Nothing is evaluated. A Hy form is written as text first, so that its hash is that of the text.

    Parameters
    ----------
    spec
        Any form of `PolicyLike`.

    Returns
    -------
    Pack or SinglePolicy
        A single policy is not yet compiled.

    Raises
    ------
    InputError
        If the argument has another type, a file cannot be read, or a form contains an unsupported value.
    UnknownName
        If no pack and no feature has the name.
    PolicyError
        If a text cannot be read, with line and column.
    """
    load_installed()
    # Texts and paths are recognised before names, so that no name of a pack can hide a policy.
    if isinstance(spec, Pack | SinglePolicy):
        return spec
    if isinstance(spec, Policy):
        return SinglePolicy.of(spec)
    is_text = isinstance(spec, str) and not is_hy_model(spec)
    text = spec if is_text else str(spec) if isinstance(spec, Path) else policy_form_text(spec)
    if not isinstance(text, str):
        raise InputError(
            "A policy must be a text, a Hy form such as hy.read(...), a compiled policy such as "
            'load_pack("companion").policies["recall-score"], a pack, or the path or name of one; not '
            f"{describe_value(spec)}."
        )
    text = policy_parts(str.__str__(text))[0]
    name = text.strip()
    if name.endswith(".hy") and not name.startswith(("(", ";")):
        path = Path(name).expanduser()
        source = read_source_file(path)
        if is_pack_text(source):
            return pack_from_sources((source,), file=str(path))
        slot = slot_of(source, file=str(path))
        return SinglePolicy(source, (), {}, slot or "recall-score", path.stem, str(path))
    if is_pack_text(text):
        return load_pack(text)
    if _NAME.fullmatch(name) is None:
        return SinglePolicy(text, (), {}, slot_of(text) or "recall-score")
    feature = name.replace("_", "-")
    if name not in pack_names() and feature in FEATURES:
        return SinglePolicy(f"(fn [{feature}] {feature})", (), {}, "recall-score", feature)
    if name not in pack_names():
        raise UnknownName("pack or feature", name, (*pack_names(), *FEATURES))
    return load_pack(name)


def as_pack(spec: object, active: Callable[[], Pack] | None = None, name: str = "") -> Pack:
    """Return an argument as a pack; a single policy replaces its slot in the active pack.

    Parameters
    ----------
    spec
        Any form of `PolicyLike`.
    active
        Function that returns the active pack. It is called only for a single policy, which takes its slot there.
        Default: the default pack.
    name
        Name of the pack. Default: that of the pack or file, or else of the slot and the policy's hash.

    Returns
    -------
    Pack
        The pack, whose texts contain the policy.
    """
    read = read_policy(spec)
    if isinstance(read, Pack):
        return replace(read, name=name) if name else read
    pack = load_pack(DEFAULT_PACK) if active is None else active()
    policy = read.compile(lambda: pack)
    if policy.hash == pack.policies[read.slot].hash:
        return pack
    # A name in the text of a pack is one word.
    name = re.sub(r"[^\w.+-]+", "-", name or read.name) or f"{read.slot}-{policy.hash[:8]}"
    written: Pack = load_part("write-pack")(pack, read.slot, policy, name)
    return written


def as_packs(policies: object, active: Callable[[], Pack] | None = None) -> list[Pack]:
    """Return one or several policies as packs by name; see `as_pack`."""
    return [as_pack(spec, active, name) for name, spec in list_policies(policies)]


def list_policies(policies: object) -> list[tuple[str, Any]]:
    """Return policies as (name, policy) pairs, with "" for a policy without a name."""
    if isinstance(policies, Mapping):
        return [(str(name), spec) for name, spec in policies.items()]
    single = isinstance(policies, str) or is_policy_form(policies)
    several = policies if isinstance(policies, Iterable) and not single else [policies]
    return [("", spec) for spec in several]
