"""Packs: named sets of policies and settings, completed by the packs that they inherit from.

The module also finds the extensions that a pack needs, and declares challenges: packs compared with the active one.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

from memlab.errors import (
    ExtensionWarning,
    InputError,
    PolicyNameError,
    PolicyTypeError,
    UnknownName,
)
from memlab.kernel.base.arguments import AnyNumber, Misfit, Taken, Within, checked, describe_value
from memlab.kernel.base.disk import read_source_file
from memlab.kernel.base.display import Displayed, Markup, box, code_block, details
from memlab.kernel.base.printable import printable
from memlab.kernel.extension import describe_missing, load_installed
from memlab.kernel.language import (
    DIALECT,
    Import,
    PackSource,
    Policy,
    PolicyForm,
    Signature,
    compile_policy,
    inherit_form,
    inline_imports,
    needs_parent,
    policy_form_text,
    read_pack,
)
from memlab.kernel.policies._features import FEATURES
from memlab.kernel.policies._lineage import Lineage
from memlab.kernel.policies._settings import (
    SETTINGS,
    Setting,
    SettingValue,
    check_setting,
    current_setting,
)
from memlab.kernel.policies._slots import SLOTS, Slot, get_slot
from memlab.kernel.registry import split_owner

# The pack that every other one inherits from, and the folders of shipped packs and of default policies.
DEFAULT_PACK = "memlab"
_FOLDER = Path(__file__).parent / "packs"
_DEFAULTS = Path(__file__).parent / "defaults"
_FILES = {DEFAULT_PACK: "default"}
"""Files whose name differs from the pack: Hy would import ``memlab.hy`` instead of the package memlab."""

_ASKED_BY_A_RECALL = (
    "eligible",
    "seed-score",
    "spread",
    "cut",
    "recall-score",
    "known",
    "select",
    "explore",
    "retention",
    "half-life",
)
"""Slots whose parameters a single recall may override."""

_OF_THE_SCORE = frozenset({"known", "known-floor", "unknown-limit"})
"""Decisions calibrated for one recall-score, which a pack with another recall-score does not inherit."""

UNCALIBRATED = "known is not calibrated for this recall-score: lab.policies.calibrate() refits it"
"""The phrase that every view shows instead of the probability of an answer."""

_READ_BY_KNOWN = ("seed-score", "spread", "cut", "recall-score")
"""Slots that decide the candidates and the scores that ``known`` reads. Another policy in one of them changes the
distribution of these values, so that probabilities fitted before no longer hold."""


@dataclass(frozen=True)
class Pack(Displayed):
    """Policies by slot and settings by name.

    Attributes
    ----------
    name
        Name of the pack.
    doc
        Description of the pack.
    policies
        The policy of each slot.
    settings
        The value of each setting.
    sources
        Texts the pack was read from: its own first, then those it inherits and imports from.
    hash
        Hash of all policies and settings and of the version of the language.
    known_for
        Hash of the ranking (the slots seed-score, spread, cut and recall-score) for which `known` was calibrated.
    lineage
        Packs that the pack was made from, and the operator. None if it was written by hand.

    Examples
    --------
    >>> import memlab
    >>> pack = memlab.load_pack("companion")
    >>> pack.name, pack.policy("recall-score").name
    ('companion', 'companion/recall-score')
    """

    name: str
    doc: str
    policies: Mapping[str, Policy]
    settings: Mapping[str, SettingValue]
    sources: tuple[str, ...]
    hash: str
    known_for: str = ""
    lineage: Lineage | None = field(default=None, compare=False)
    _fingerprints: dict[tuple[str, int], dict[str, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @checked
    def with_policy(self, slot: str, policy: Policy) -> Pack:
        """Return a copy of the pack with the policy of one slot replaced.

        A policy in the slot ``known`` counts as calibrated for the ranking that the pack has at that time.

        Parameters
        ----------
        slot
            Name of the slot.
        policy
            The policy that replaces the slot's policy.

        Returns
        -------
        Pack
            The changed pack, with another hash.

        Raises
        ------
        UnknownName
            If no slot has this name.

        Examples
        --------
        >>> pack = load_pack("memlab")
        >>> changed = pack.with_policy("recall-score", load_pack("actr").policies["recall-score"])
        >>> changed.hash != pack.hash
        True
        """
        get_slot(slot)
        policies = {**self.policies, slot: policy}
        known_for = _hash_ranking(policies) if slot == "known" else self.known_for
        hash = _pack_hash(policies, self.settings)
        return replace(self, policies=MappingProxyType(policies), hash=hash, known_for=known_for)

    def __reduce__(self) -> tuple[object, ...]:
        # A read-only mapping cannot be pickled.
        mappings = dict(self.policies), dict(self.settings)
        rest = self.sources, self.hash, self.known_for, self.lineage
        return Pack, (self.name, self.doc, *mappings, *rest)

    @property
    def tells_known(self) -> bool:
        """True if the policy ``known`` was calibrated for the pack's ranking."""
        return self.known_for == _hash_ranking(self.policies)

    @checked
    def differing(self, other: Pack) -> dict[str, Policy]:
        """Return the policies that differ from another pack's policies, in installation order.

        ``known`` comes first if it is not calibrated for this pack's ranking, so that it is not
        afterwards.
        """
        changed = {
            slot: policy
            for slot, policy in self.policies.items()
            if other.policies[slot].hash != policy.hash
        }
        return dict(
            sorted(changed.items(), key=lambda item: (item[0] == "known") == self.tells_known)
        )

    @property
    def uncalibrated(self) -> str:
        """A phrase that says why recalls have no probability of an answer.

        The phrase is empty if recalls have that probability, or if the pack does not estimate it.
        """
        return "" if self.tells_known or "known" not in self.decided else UNCALIBRATED

    @checked
    def with_params(self, values: Mapping[str, Annotated[float, AnyNumber]]) -> Pack:
        """Return a copy of the pack with other parameter values.

        The parameters are those of policies that a recall runs.

        Parameters
        ----------
        values
            Number by name of a parameter. ``{"near": 0.5}`` changes every policy with this parameter, and
            ``{"eligible:near": 0.5}`` the policy of one slot. An underscore counts as a hyphen.

        Returns
        -------
        Pack
            The changed pack, with another hash.

        Raises
        ------
        UnknownName
            If no policy has such a parameter.
        InputError
            If a value is outside the bounds of its parameter.

        Examples
        --------
        >>> load_pack("companion").with_params({"eligible:near": 0.5}).policies["eligible"].params["near"].value
        0.5
        """
        chosen: dict[str, dict[str, float]] = {}
        # A plain name applies to all policies of a recall, "slot:name" to one of them.
        for key, value in values.items():
            name, slots = key.replace("_", "-"), tuple[str, ...](_ASKED_BY_A_RECALL)
            if ":" in name:
                slot, name = name.split(":", 1)
                slots = (slot,)
            having = [
                slot
                for slot in slots
                if slot in self.policies and name in self.policies[slot].params
            ]
            if not having:
                names = {name for slot in _ASKED_BY_A_RECALL for name in self.policies[slot].params}
                raise UnknownName(f"parameter of the pack {self.name}", key, sorted(names))
            for slot in having:
                chosen.setdefault(slot, {})[name] = value
        policies = {slot: self.policies[slot].with_params(new) for slot, new in chosen.items()}
        changed = {**self.policies, **policies}
        return replace(
            self, policies=MappingProxyType(changed), hash=_pack_hash(changed, self.settings)
        )

    def unit(self, slot: str) -> float:
        """Return the number of policy units in one unit of the slot.

        A policy in an older spelling may use another unit, such as milliseconds instead of days.

        Parameters
        ----------
        slot
            Name of the slot.

        Returns
        -------
        float
            1.0 for a policy in the unit of the slot.

        Raises
        ------
        UnknownName
            If no slot has this name.
        """
        policy = self.policies.get(slot) if isinstance(slot, str) else None
        if policy is None:
            raise UnknownName(
                "policy slot",
                str.__str__(slot) if isinstance(slot, str) else describe_value(slot),
                SLOTS,
            )
        for adapter in SLOTS[slot].adapters:
            if adapter.input in policy.inputs:
                return adapter.per_unit
        return 1.0

    @property
    def decided(self) -> frozenset[str]:
        """The slots whose policies differ from the default policies."""
        return frozenset(_decided(self.policies))

    @property
    def policy_hashes(self) -> dict[str, str]:
        """The hash of each policy, as recorded in slates and events.

        A slot that declares its default as text, as slots of extensions do, is omitted while it has the default.
        """
        decided = self.decided
        return {
            slot: policy.hash
            for slot, policy in self.policies.items()
            if slot in decided or slot not in SLOTS or not SLOTS[slot].source
        }

    @property
    def selects(self) -> bool:
        """True if the pack has its own policy in the slot ``select``."""
        return "select" in self.decided

    @checked
    def fingerprints(self, embedder: str) -> dict[str, str]:
        """Return the fingerprint of each feature under this pack and an embedder.

        Parameters
        ----------
        embedder
            Fingerprint of the embedder.

        Returns
        -------
        dict
            Hash of the feature's definition and dependencies, by name of the feature.
        """
        key = embedder, FEATURES.changes
        # Every recall needs the fingerprints, and they change only with the registry of features.
        if (cached := self._fingerprints.get(key)) is not None:
            return dict(cached)
        parts = {"embedder": embedder}
        # A setting at its default is omitted, so that older fingerprints stay equal.
        for name, value in _changed_settings(self.settings).items():
            parts[name] = _versioned(repr(value), SETTINGS[name].version)
        for name, policy in self.policies.items():
            parts[name] = _versioned(policy.hash, SLOTS[name].version if name in SLOTS else 1)
        self._fingerprints[key] = fingerprints = {
            name: feature.fingerprint(parts) for name, feature in FEATURES.items()
        }
        return dict(fingerprints)

    def policy(self, slot: str) -> Policy:
        """Return the policy of a slot, or the slot's default if the pack has none.

        Parameters
        ----------
        slot
            Name of the slot.

        Returns
        -------
        Policy
            The policy in use.

        Raises
        ------
        UnknownName
            If no slot has this name.

        Examples
        --------
        >>> load_pack("memlab").policy("forget").doc
        'No memory is forgotten automatically.'
        """
        if isinstance(slot, str) and slot in self.policies:
            return self.policies[slot]
        return _default(get_slot(slot))

    def count(self, setting: str) -> int:
        """Return a setting as an integer.

        Parameters
        ----------
        setting
            Name of the setting.

        Returns
        -------
        int
            The value, rounded towards zero.

        Raises
        ------
        UnknownName
            If no setting has this name.

        Examples
        --------
        >>> load_pack("memlab").count("limit")
        10
        """
        return int(self.number(setting))

    def number(self, setting: str) -> float:
        """Return a setting as a float.

        Parameters
        ----------
        setting
            Name of the setting.

        Returns
        -------
        float
            The value of the setting as a float.

        Raises
        ------
        UnknownName
            If no setting has this name.

        Examples
        --------
        >>> load_pack("memlab").number("damping")
        0.5
        """
        is_name = isinstance(setting, str)
        value = self.settings.get(setting) if is_name else None
        if value is None and is_name and setting in SETTINGS:
            # The setting may belong to an extension that was registered after the pack was read.
            value = SETTINGS[setting].default
        if value is None:
            name = str.__str__(setting) if is_name else describe_value(setting)
            raise UnknownName("setting", name, SETTINGS)
        return float(value)

    def __repr__(self) -> str:
        return printable(f"<Pack {self.name} [{self.hash[:12]}]: {len(self.policies)} policies>")

    def _display(self) -> object:
        parts = [
            details(
                Markup("<b>{}</b> <code>{}</code> {}").format(slot, policy.hash[:12], policy.doc),
                code_block(printable(policy.source)),
            )
            for slot, policy in sorted(self.policies.items())
        ]
        return repr(self), box(parts)


def _text_of_forms(source: object) -> Any:
    """Return the Hy forms of a pack as text, or a `Misfit` for other values, even a `Pack`; refuse a policy."""
    forms = policy_form_text(source)
    if isinstance(source, Policy) or (forms is not None and not forms.startswith("(pack ")):
        raise InputError(
            "this is a policy, not a pack: pass it to lab.policies.install(slot, policy)."
        )
    return Misfit("the forms of a pack", describe_value(source)) if forms is None else forms


PackLike: TypeAlias = (
    str | Path | Pack | Annotated[Any, Taken("the forms of a pack", by=_text_of_forms)]
)
"""A pack: its name, path, text, the forms that ``hy.read_many`` returns, or a loaded `Pack`."""


# The folder is listed once per process.
@cache
def pack_names() -> tuple[str, ...]:
    """Return the names of the packs that come with memlab.

    Returns
    -------
    tuple of str
        The names, sorted.

    Examples
    --------
    >>> "memlab" in pack_names()
    True
    """
    names = {stem: name for name, stem in _FILES.items()}
    return tuple(sorted(names.get(path.stem, path.stem) for path in _FOLDER.glob("*.hy")))


def pack_source(name: str) -> str:
    """Return the text of a pack that comes with memlab."""
    if name not in pack_names():
        raise UnknownName("pack", name, pack_names())
    return (_FOLDER / _file(name)).read_text(encoding="utf-8")


def _file(name: str) -> str:
    """Return the file name of a shipped pack."""
    return f"{_FILES.get(name, name)}.hy"


@checked
def load_pack(spec: PackLike) -> Pack:
    """Return a pack by its name, path, text or Hy forms.

    Parameters
    ----------
    spec
        Name of a shipped pack, path of a ``.hy`` file, text of a pack, forms of Hy's reader, or a pack.

    Returns
    -------
    Pack
        The pack with everything that it inherits.

    Raises
    ------
    UnknownName
        If no shipped pack has this name.
    InputError
        If the file cannot be read.
    PolicyError
        If the text is invalid, with line and column.

    Examples
    --------
    >>> load_pack("associative").name
    'associative'
    """
    load_installed()
    if isinstance(spec, Pack):
        return spec
    text = str(spec)
    if isinstance(spec, str) and text.lstrip().startswith(("(", ";")):
        return pack_from_sources((text,))
    if text.endswith(".hy"):
        path = Path(spec).expanduser()
        return pack_from_sources((read_source_file(path),), file=str(path))
    return pack_from_sources((pack_source(text),), file=_file(text))


def pack_from_sources(sources: tuple[str, ...], *, file: str | None = None) -> Pack:
    """Build a pack from its text and the texts that it inherits or imports.

    A pack that is inherited or imported from, but missing among the texts, is one that comes with
    memlab.
    """
    return _pack_from_sources(sources, file, (FEATURES.changes, SETTINGS.changes, SLOTS.changes))


# Logs name the same few packs again and again.
@lru_cache(maxsize=64)
def _pack_from_sources(
    sources: tuple[str, ...], file: str | None, changes: tuple[int, ...]
) -> Pack:
    """Build a pack under the current declarations, or return the cached pack.

    `changes` identifies the declarations by the states of the registries.
    """
    return _build(sources, file, ())


def _build(sources: tuple[str, ...], file: str | None, importing: tuple[str, ...]) -> Pack:
    """Build the pack of the first text, with the packs that it inherits or imports.

    Each text inherits from the next one, up to a default pack that decides everything. The texts
    after that one are only imported from. `importing` names the packs whose construction waits for
    this pack.
    """
    # The chain of inheritance is built first, and then the packs imported from, each in the same
    # way.
    texts, read = [sources[0]], [_read(sources[0], file)]
    if read[0].name in importing:
        raise InputError(
            f"The packs {' > '.join((*importing, read[0].name))} import in a circle. Remove one of these imports."
        )
    rest = list(sources[1:])
    while rest and (read[-1].name != DEFAULT_PACK or _undecided(read)):
        texts.append(rest.pop(0))
        read.append(_read(texts[-1], None))
    libraries = {_read(text, None).name: text for text in rest}
    _inherit(texts, read, libraries)
    others = {}
    for name in dict.fromkeys(each.pack for source in read for each in source.imports):
        position = next((at for at, pack in enumerate(read) if at and pack.name == name), None)
        if position is None:
            own = [libraries[name] if name in libraries else pack_source(name)]
            above = {pack.name: text for text, pack in zip(texts, read, strict=True)}
            _inherit(own, [_read(own[0], _file(name))], above)
        else:
            own = texts[position:]
        others[name] = _build((*own, *rest), _file(name), (*importing, read[0].name))
    used = dict.fromkeys((*texts, *(text for pack in others.values() for text in pack.sources)))
    return _assemble(tuple(used), tuple(read), others, file)


def _inherit(texts: list[str], read: list[PackSource], available: Mapping[str, str]) -> None:
    """Append the ancestors of the last pack to ``texts`` and ``read``.

    Texts of ancestors come from ``available`` or from the shipped packs. Raises InputError if packs
    inherit in a circle.
    """
    while (parent := _parent(read[-1])) is not None:
        if any(pack.name == parent for pack in read):
            raise InputError(
                f"The packs {' > '.join(pack.name for pack in read)} > {parent} inherit in a circle. Remove one :inherits."
            )
        texts.append(available[parent] if parent in available else pack_source(parent))
        read.append(_read(texts[-1], _file(parent)))
    if _undecided(read):
        # This is a default pack that an earlier version logged. It gets the decisions that it lacks
        # from the current one.
        texts.append(pack_source(DEFAULT_PACK))
        read.append(_read(texts[-1], f"{DEFAULT_PACK}.hy"))


# Every pack inherits from the default pack. Without the cache, reading its text takes half of the
# time.
@lru_cache(maxsize=64)
def _read(text: str, file: str | None) -> PackSource:
    """Read a pack's text into its settings, policies, helpers and imports."""
    return read_pack(text, file=file)


def _undecided(read: list[PackSource]) -> bool:
    """Return True if a chain of packs lacks a required slot or setting."""
    settings = {name for pack in read for name in pack.settings}
    policies = {name for pack in read for name in pack.policies}
    needed = {name for name, setting in SETTINGS.items() if setting.default is None}
    return not (
        settings >= needed
        and policies >= {name for name, slot in SLOTS.items() if not slot.has_default}
    )


def _parent(pack: PackSource) -> str | None:
    """Return the name of the pack that a pack inherits from, by default the default pack.

    The default pack has no parent, so the result is None.
    """
    if pack.inherits is not None:
        return pack.inherits
    return None if pack.name == DEFAULT_PACK else DEFAULT_PACK


def _assemble(
    texts: tuple[str, ...],
    read: tuple[PackSource, ...],
    others: Mapping[str, Pack],
    file: str | None,
) -> Pack:
    """Merge a chain of packs: the first decision on a slot or setting wins."""
    policies: dict[str, Policy] = {}
    settings: dict[str, SettingValue] = {}
    known_for: str | None = None
    # After a text that replaces the recall-score, decisions calibrated for another one are ignored.
    for depth, source in enumerate(read):
        where = file if depth == 0 and file else f"{source.name}.hy"
        rescored = "recall-score" in policies
        aliases = _aliased(source, others)
        for name, setting in source.settings.items():
            if rescored and name in _OF_THE_SCORE:
                continue
            try:
                current, value = current_setting(name, setting.value)
                settings.setdefault(current, check_setting(current, value))
            except InputError as error:
                raise PolicyTypeError(
                    str(error),
                    source=texts[depth],
                    line=setting.line,
                    column=setting.column,
                    policy=name,
                    file=where,
                ) from None
        for slot, form in source.policies.items():
            if slot not in SLOTS:
                raise form.text.error(
                    PolicyNameError, str(UnknownName("policy slot", slot, SLOTS)), form.form
                )
            if slot not in policies and not (rescored and slot in _OF_THE_SCORE):
                rest = texts[depth + 1 :] if source.inherits else ()
                policies[slot] = _compile(source, slot, aliases, where, rest)
        for each in source.imports:
            for name in _checked_imports(source, each, rescored):
                if name in SETTINGS:
                    settings.setdefault(name, others[each.pack].settings[name])
                else:
                    policies.setdefault(name, others[each.pack].policies[name])
                    if name == "known" and known_for is None:
                        known_for = others[each.pack].known_for
        # A text above the one with `known` that changes the ranking voids the calibration.
        if (
            known_for is None
            and "known" not in policies
            and not policies.keys().isdisjoint(_READ_BY_KNOWN)
        ):
            known_for = ""
    for name, declared in SETTINGS.items():
        if declared.default is not None:
            settings.setdefault(name, declared.default)
    for name, slot_declared in SLOTS.items():
        if slot_declared.has_default and name not in policies:
            policies[name] = _default(slot_declared)
    missing = [name for name in SETTINGS if name not in settings] + [
        name for name in SLOTS if name not in policies
    ]
    if missing:
        raise InputError(
            f"The pack {read[0].name} and the packs it inherits from do not define {', '.join(missing)}. Add each "
            "setting or policy."
        )
    return Pack(
        read[0].name,
        read[0].doc,
        MappingProxyType(policies),
        MappingProxyType(settings),
        texts,
        _pack_hash(policies, settings),
        _hash_ranking(policies) if known_for is None else known_for,
    )


def _compile(
    source: PackSource,
    slot: str,
    aliases: Mapping[str, Policy],
    where: str,
    inherits: tuple[str, ...],
) -> Policy:
    """Compile a pack's policy, inlining the policies that it reads.

    The text may give these policies other names. `inherits` are the texts of the pack that
    ``:inherits`` names, which has the value of ``(inherited)``.
    """
    form = source.policies[slot]
    text, more = inline_imports(form, aliases, source.helpers)
    signature, name = get_slot(slot).signature, f"{source.name}/{slot}"
    whole = form if text == form.source else text
    helpers = tuple(dict.fromkeys((*source.helpers, *more)))
    if inherits:
        helpers = inherited_helpers(
            slot, whole, helpers, lambda: pack_from_sources(inherits), name=name, file=where
        )
    return compile_policy(whole, signature, name=name, helpers=helpers, file=where)


def inherited_helpers(
    slot: str,
    source: str | PolicyForm,
    helpers: tuple[str, ...],
    parent: Callable[[], Pack],
    *,
    name: str | None = None,
    file: str | None = None,
) -> tuple[str, ...]:
    """Return the helpers of a policy, including the policy that its ``(inherited)`` stands for.

    Parameters
    ----------
    slot
        Name of the slot.
    source
        Text of the policy.
    helpers
        Texts of ``defn`` forms that the policy may call.
    parent
        Function that returns the pack that is inherited. It is called only if the policy needs it. Policies that were
        installed in the pack are ignored: its text counts.
    name
        Name of the policy in error messages. Default: the slot.
    file
        Path of the file, for error messages.

    Returns
    -------
    tuple of str
        `helpers`, and the form ``(inherit pack policy)`` if the policy calls ``(inherited)``.

    Raises
    ------
    PolicyError
        If the text is invalid, with line and column.
    """
    if not needs_parent(source, name or slot, helpers, file):
        return helpers
    pack = parent()
    return (
        *helpers,
        inherit_form(pack_from_sources(pack.sources).policy(get_slot(slot).name), pack.name),
    )


def _aliased(source: PackSource, others: Mapping[str, Pack]) -> dict[str, Policy]:
    """Return the policies that a pack imports under another name, keyed by that name."""
    policies = {}
    for each in source.imports:
        for alias, slot in each.aliases.items():
            if slot not in SLOTS:
                raise each.text.error(
                    PolicyNameError, str(UnknownName("policy slot", slot, SLOTS)), each.form
                )
            if alias in FEATURES:
                raise each.text.error(
                    PolicyNameError, f"{alias} is a feature; choose another name.", each.form
                )
            policies[alias] = others[each.pack].policies[slot]
    return policies


def _checked_imports(source: PackSource, each: Import, rescored: bool) -> list[str]:
    """Check the names of one import and return them.

    ``rescored`` says that an earlier text of the chain replaces the recall-score; names calibrated for
    another one are then left out. Raises PolicyNameError for an unknown, repeated or wrongly calibrated
    name.
    """
    ranks = any(
        "recall-score" in names
        for names in (source.policies, *(other.names for other in source.imports))
    )
    for name in each.names:
        if name not in SLOTS and name not in SETTINGS:
            names = (*SLOTS, *SETTINGS)
            raise each.text.error(
                PolicyNameError, str(UnknownName("slot or setting", name, names)), each.form
            )
        if name in source.policies or name in source.settings:
            raise each.text.error(
                PolicyNameError,
                f"{name} is imported, but the file decides it as well. Remove one of the two.",
                each.form,
            )
        if name in _OF_THE_SCORE and ranks and "recall-score" not in each.names:
            message = f"{name} is calibrated for the recall-score of {each.pack}, but this pack has another one."
            raise each.text.error(PolicyNameError, message, each.form)
    return [name for name in each.names if not (rescored and name in _OF_THE_SCORE)]


# Every use of a pack computes the hash of the same combinations.
@lru_cache(maxsize=256)
def _digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _default(slot: Slot) -> Policy:
    """Return the default policy of a slot."""
    return _compiled_default(
        slot.name, slot.source or (slot.file or _DEFAULTS / f"{slot.name}.hy"), slot.signature
    )


# Every pack compares its policies with the defaults.
@lru_cache(maxsize=64)
def _compiled_default(slot: str, source: str | Path, signature: Signature) -> Policy:
    """Compile the default policy of a slot from its text or file."""
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    return compile_policy(text, signature, name=f"{DEFAULT_PACK}/{slot}", file=f"{slot}.hy")


def _hash_ranking(policies: Mapping[str, Policy]) -> str:
    """Return the hash of the policies that determine the inputs of the policy ``known``."""
    return _digest(" ".join(policies[slot].hash for slot in _READ_BY_KNOWN))


def _pack_hash(policies: Mapping[str, Policy], settings: Mapping[str, SettingValue]) -> str:
    """Return the hash of the decisions of a pack that differ from the defaults."""
    parts = [f"dialect {DIALECT}"]
    for name in sorted(_decided(policies)):
        slot = SLOTS[name]
        parts.append(f"{_versioned(name, slot.version)} {policies[name].hash}{_owner_suffix(slot)}")
    changed = _changed_settings(settings)
    for name in sorted(changed):
        setting = SETTINGS[name]
        parts.append(
            f"{_versioned(name, setting.version)} {changed[name]!r}{_owner_suffix(setting)}"
        )
    return _digest("\n".join(parts))


def _decided(policies: Mapping[str, Policy]) -> set[str]:
    """Return the slots that have no default policy, or have another policy than the default."""
    decided = set()
    for name, policy in policies.items():
        slot = SLOTS.get(name)  # None if a new version of an extension no longer declares it.
        if slot is not None and (not slot.has_default or policy.hash != _default(slot).hash):
            decided.add(name)
    return decided


def _changed_settings(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """Return the settings that differ from their defaults, by name."""
    return {
        name: value
        for name, value in settings.items()
        if name in SETTINGS and value != SETTINGS[name].default
    }


def _owner_suffix(declared: Slot | Setting) -> str:
    """Return the suffix " of OWNER" for the hashed text of an extension's slot or setting."""
    return f" of {declared.owner}" if declared.owner else ""


def _versioned(name: str, version: int) -> str:
    """Return a name with its version, omitting version 1.

    Therefore hashes that are older than versions stay equal.
    """
    return name if version == 1 else f"{name}/{version}"


# The extensions that a policy or pack needs: those that declare its features, slots or settings.


_FINGERPRINT = re.compile(r"[0-9a-f]{16} ([a-z][a-z0-9-]*) (\S+)")
"""Fingerprint of an extension's feature: a hash, then name and version of the extension."""


def needs_of_policy(slot: str, policy: Policy) -> dict[str, str]:
    """Return the extensions that a policy of the slot needs, with their versions."""
    owners = [FEATURES[name].owner for name in _features_of(policy) if name in FEATURES]
    return _versions([SLOTS[slot].owner, *owners])


def needs_of_pack(pack: Pack) -> dict[str, str]:
    """Return the extensions that a pack needs, with their versions."""
    needs: dict[str, str] = {}
    for slot, policy in pack.policies.items():
        if not SLOTS[slot].owner or slot in pack.decided:
            needs |= needs_of_policy(slot, policy)
    changed = [name for name, value in pack.settings.items() if value != SETTINGS[name].default]
    return needs | _versions(SETTINGS[name].owner for name in changed)


def _features_of(policy: Policy) -> list[str]:
    """Return the names of features that a policy reads, without "new/" or "old/"."""
    return [name.removeprefix("new/").removeprefix("old/") for name in policy.inputs]


def _versions(owners: Iterable[str]) -> dict[str, str]:
    """Return the version of each extension by name, from owners such as "name 1.0"."""
    return dict(split_owner(owner) for owner in owners if owner)


def refusal_of(what: str, needs: Mapping[str, str] | None) -> str | None:
    """Explain which missing extension makes `what` unusable, or return None."""
    faults = describe_missing(needs) if needs else []
    if not faults:
        return None
    return (
        f"{what} needs an extension: {'; '.join(faults)}. Install it or register it with memlab.extend(...), then open "
        "the lab again; or switch to another pack with lab.policies.use(...)."
    )


def warn_of_versions(what: str, needs: Mapping[str, str] | None) -> None:
    """Warn if `what` was logged with another version of an extension."""
    faults = describe_missing(needs) if needs else []
    if faults:
        warnings.warn(
            f"{what} may decide differently than before: {'; '.join(faults)}.",
            ExtensionWarning,
            stacklevel=4,
        )


def logged_owner(fingerprint: object) -> str | None:
    """Return the extension named in a feature's logged fingerprint, or None if unnamed."""
    match = _FINGERPRINT.fullmatch(fingerprint) if isinstance(fingerprint, str) else None
    return None if match is None else f"{match[1]} {match[2]}"


# Challenges compare packs with the active one by occasionally showing results that only they would show.


ChallengeDesign = Literal["extra", "lot", "draft", "ab"]

ExtraItems: TypeAlias = Annotated[int, Within(1, 20)] | Literal["auto"]
"""The number of items that a challenge adds to a recall. Events store "auto" as 0."""

_AFTER_THE_POOL = frozenset(
    {
        "limit",
        "probe-rate",
        "probe-depth",
        "probe-floor",
        "probes",
        "mmr-weight",
        "collapse-above",
        "known-floor",
        "unknown-limit",
    }
)
"""Settings that take effect only after the candidates are scored."""

_OF_THE_POOL = (
    "promote",
    "forget",
    "eligible",
    "seed-score",
    "spread",
    "cut",
    "half-life",
    "retention",
)
"""Slots that determine the scored candidates and their features."""


_AUTO = (
    "extra items: half of what only the challenger would show, up to 3 for 10 results (that "
    "many shorten the comparison most, and cost at most .02 of recall@10)"
)
"""The choice of ``extra="auto"`` and its reason, as ``Challenge`` prints it."""


@dataclass(frozen=True)
class Challenge(Displayed):
    """One pack that is compared with the active one.

    Attributes
    ----------
    pack
        The pack that challenges the active one.
    design
        "extra" shows additional items that only challengers would show. "lot" shows the usual number of items and draws
        among those on which the packs differ. "draft" shows the better half of these items of each pack. "ab" shows the
        results of one pack, each with the same probability.
    extra
        Number of additional items in the designs "extra" and "draft", or "auto".
    rate
        Share of recalls that take part.
    seq
        Number of the event that started the challenge.
    at
        Start of the challenge in microseconds since 1970-01-01 UTC.
    reason
        Reason given for the challenge.
    number
        Number of the comparison with the active pack among those of the lab, from 1. It is 0 if the challenge began
        before comparisons were numbered.
    share
        Share of the lab's error that the comparison may spend; see ``error_share``.
    guard
        Whether ``lab.guard`` began the challenge, so that it ends by itself.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> challenge = lab.challenge("companion")
    >>> challenge.extra, challenge.number, round(challenge.share, 2)
    ('auto', 1, 0.61)
    """

    pack: Pack
    design: ChallengeDesign
    extra: int | Literal["auto"]
    rate: float
    seq: int
    at: int
    reason: str
    number: int = 0
    share: float = 0.0
    guard: bool = False

    @property
    def name(self) -> str:
        """The name of the pack."""
        return self.pack.name

    def __repr__(self) -> str:
        added = "" if self.extra == "auto" else f"{self.extra} extra item{'s' * (self.extra > 1)}"
        items = {
            "lot": "by lot",
            "ab": "guarded" if self.guard else "A/B",
            "draft": f"by draft{added and f' and {added}'}",
        }.get(self.design, added or _AUTO)
        why = f": {self.reason}" if self.reason else ""
        # A guard draws one of two packs, and states how often that is the guarded one.
        share = self.rate / 2 if self.guard else self.rate
        return printable(
            f"<Challenge of {self.name} [{self.pack.hash[:12]}], {items} in {share:.0%}{why}>"
        )


def error_share(number: int) -> float:
    """Return the share of a lab's error budget that a comparison may spend, by number.

    The share of number k is 6 / (pi k)^2, so the shares of all numbers sum to 1.

    >>> [round(error_share(number), 2) for number in (1, 2, 3)]
    [0.61, 0.15, 0.07]
    """
    return 6 / (math.pi * number) ** 2


def same_candidates(live: Pack, other: Pack) -> bool:
    """Return True if two packs differ at most in the order of candidates.

    Such packs score the same candidates with the same features.
    """
    if any(live.policies[slot].hash != other.policies[slot].hash for slot in _OF_THE_POOL):
        return False
    names = (live.settings.keys() | other.settings.keys()) - _AFTER_THE_POOL
    return all(live.settings.get(name) == other.settings.get(name) for name in names)
