"""A pack: a named set of policies and settings, complete once what it inherits is filled in.

Which extensions a pack needs, and the packs that challenge the live one, stand here as well.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping
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
from memlab.kernel.base.arguments import AnyNumber, Misfit, Taken, checked, describe_value
from memlab.kernel.base.display import Displayed, Markup, box, code_block, details
from memlab.kernel.base.printable import printable
from memlab.kernel.extension import describe_missing, load_installed
from memlab.kernel.language import (
    DIALECT,
    Import,
    PackSource,
    Policy,
    Signature,
    compile_policy,
    inline_imports,
    policy_form_text,
    read_pack,
)
from memlab.kernel.policies._features import FEATURES
from memlab.kernel.policies._settings import (
    SETTINGS,
    Setting,
    SettingValue,
    check_setting,
    current_setting,
)
from memlab.kernel.policies._slots import SLOTS, Slot, get_slot
from memlab.kernel.registry import split_owner

DEFAULT_PACK = "memlab"
_FOLDER = Path(__file__).parent / "packs"
_DEFAULTS = Path(__file__).parent / "defaults"
_FILES = {DEFAULT_PACK: "default"}
"""A pack's file bears its name, but for the default: Hy would take ``memlab.hy`` for the package of that name."""

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
"""The slots whose parameters one recall may have otherwise."""

_OF_THE_SCORE = frozenset({"known", "known-floor", "unknown-limit"})
"""What says what the scores of the recall-score beside it mean, and is not inherited under another one."""


@dataclass(frozen=True)
class Pack(Displayed):
    """Policies by slot and settings by name. ``hash`` covers all of them and the dialect's version.

    ``sources`` are the texts it was read from, its own first and then what it inherits.
    """

    name: str
    doc: str
    policies: Mapping[str, Policy]
    settings: Mapping[str, SettingValue]
    sources: tuple[str, ...]
    hash: str
    known_for: str = ""
    """Hash of the ``recall-score`` that ``known`` was calibrated for: the one beside it when it was given."""
    _fingerprints: dict[tuple[str, int], dict[str, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @checked
    def with_policy(self, slot: str, policy: Policy) -> Pack:
        """This pack with another policy in one slot.

        ``known`` counts as calibrated for the ``recall-score`` that the pack has when it is given.
        """
        get_slot(slot)
        policies = {**self.policies, slot: policy}
        known_for = policies["recall-score"].hash if slot == "known" else self.known_for
        hash = _pack_hash(policies, self.settings)
        return replace(self, policies=MappingProxyType(policies), hash=hash, known_for=known_for)

    @property
    def tells_known(self) -> bool:
        """Whether ``known`` was calibrated for the ``recall-score`` that the pack has."""
        return self.known_for == self.policies["recall-score"].hash

    @checked
    def with_params(self, values: Mapping[str, Annotated[float, AnyNumber]]) -> Pack:
        """Return this pack with other values for parameters of the policies that a recall asks.

        Parameters
        ----------
        values
            A number by the name of a parameter, ``{"near": 0.5}``, which counts for each of these policies that has
            it, or of one of them alone, ``{"eligible:near": 0.5}``. An underscore stands for a hyphen.

        Raises
        ------
        UnknownName
            If none of these policies has such a parameter.
        InputError
            If a value lies outside the bounds of its parameter.
        """
        chosen: dict[str, dict[str, float]] = {}
        for given, value in values.items():
            name, slots = given.replace("_", "-"), tuple[str, ...](_ASKED_BY_A_RECALL)
            if ":" in name:
                slot, name = name.split(":", 1)
                slots = (slot,)
            having = [
                slot
                for slot in slots
                if slot in self.policies and name in self.policies[slot].params
            ]
            if not having:
                known = {name for slot in _ASKED_BY_A_RECALL for name in self.policies[slot].params}
                raise UnknownName(f"parameter of the pack {self.name}", given, sorted(known))
            for slot in having:
                chosen.setdefault(slot, {})[name] = value
        policies = {slot: self.policies[slot].with_params(given) for slot, given in chosen.items()}
        changed = {**self.policies, **policies}
        return replace(
            self, policies=MappingProxyType(changed), hash=_pack_hash(changed, self.settings)
        )

    def unit(self, slot: str) -> float:
        """How many of what the slot's policy returns make one of the slot's unit (an older spelling may differ)."""
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
        """The slots whose policies are not the defaults of these slots."""
        return frozenset(_decided(self.policies))

    @property
    def policy_hashes(self) -> dict[str, str]:
        """The hash of each policy, as slates and events hold them.

        A slot whose default is declared with it, as that of an extension is, is left out where it has the default.
        """
        decided = self.decided
        return {
            slot: policy.hash
            for slot, policy in self.policies.items()
            if slot in decided or slot not in SLOTS or not SLOTS[slot].source
        }

    @property
    def selects(self) -> bool:
        """Whether the pack has a policy of its own in the slot ``select``."""
        return "select" in self.decided

    @checked
    def fingerprints(self, embedder: str) -> dict[str, str]:
        """What decides the value of each feature under this pack and the embedder of this fingerprint, as hashes."""
        key = embedder, FEATURES.changes
        if (known := self._fingerprints.get(key)) is not None:
            return dict(known)
        given = {"embedder": embedder}
        # A setting with a default is left out where it has that, so that older fingerprints stay what they were.
        for name, value in _given(self.settings).items():
            given[name] = _versioned(repr(value), SETTINGS[name].version)
        for name, policy in self.policies.items():
            given[name] = _versioned(policy.hash, SLOTS[name].version if name in SLOTS else 1)
        self._fingerprints[key] = found = {
            name: of.fingerprint(given) for name, of in FEATURES.items()
        }
        return dict(found)

    def policy(self, slot: str) -> Policy:
        """Return the policy of a slot; the slot's default where the pack was read before the slot was declared."""
        if isinstance(slot, str) and slot in self.policies:
            return self.policies[slot]
        return _default(get_slot(slot))

    def count(self, setting: str) -> int:
        """The value of a setting, as a whole number."""
        return int(self.number(setting))

    def number(self, setting: str) -> float:
        """The value of a setting. UnknownName for a setting that is not declared."""
        is_name = isinstance(setting, str)
        value = self.settings.get(setting) if is_name else None
        if value is None and is_name and setting in SETTINGS:
            # of an extension that was registered after the pack was read
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


def _text_of_forms(given: object) -> Any:
    """Return the text of a pack whose forms Hy's reader read, and a ``Misfit`` for anything else."""
    forms = policy_form_text(given)
    if isinstance(given, Policy) or (forms is not None and not forms.startswith("(pack ")):
        raise InputError(
            "this is a policy and no pack: lab.policies.install(slot, policy) takes it."
        )
    return Misfit("the forms of a pack", describe_value(given)) if forms is None else forms


PackLike: TypeAlias = (
    str | Path | Pack | Annotated[Any, Taken("the forms of a pack", by=_text_of_forms)]
)
"""A pack by name, by path, by text, by the forms that ``hy.read_many`` returns, or as it was loaded."""


@cache
def pack_names() -> tuple[str, ...]:
    """The packs that come with memlab."""
    names = {stem: name for name, stem in _FILES.items()}
    return tuple(sorted(names.get(path.stem, path.stem) for path in _FOLDER.glob("*.hy")))


def pack_source(name: str) -> str:
    """The text of a pack that comes with memlab."""
    if name not in pack_names():
        raise UnknownName("pack", name, pack_names())
    return (_FOLDER / _file(name)).read_text(encoding="utf-8")


def _file(name: str) -> str:
    return f"{_FILES.get(name, name)}.hy"


@checked
def load_pack(spec: PackLike) -> Pack:
    """A pack by the name of one that comes with memlab, by the path of a ``.hy`` file, by its text or by its Hy forms.

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
        try:
            source = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"Cannot read the pack {path}: {error.strerror}.") from None
        except UnicodeDecodeError as error:
            raise InputError(
                f"The pack {path} is not UTF-8 text: {error.reason} at byte {error.start}."
            ) from None
        return pack_from_sources((source,), file=str(path))
    return pack_from_sources((pack_source(text),), file=_file(text))


def pack_from_sources(sources: tuple[str, ...], *, file: str | None = None) -> Pack:
    """Build the pack of the first text; the others are what it inherits and imports from.

    A pack that is inherited or imported from, and is not among the texts, is one that comes with memlab.
    """
    return _pack_from_sources(sources, file, (FEATURES.changes, SETTINGS.changes, SLOTS.changes))


@lru_cache(maxsize=64)
def _pack_from_sources(
    sources: tuple[str, ...], file: str | None, changes: tuple[int, ...]
) -> Pack:
    """Build a pack under what is declared now; ``changes`` counts what extensions have changed of that."""
    return _built(sources, file, ())


def _built(sources: tuple[str, ...], file: str | None, importing: tuple[str, ...]) -> Pack:
    """Build the pack of the first text; ``importing`` names the packs that wait for it.

    Each text inherits from the next one, up to a default pack that decides everything; those after it are only imported
    from.
    """
    texts, read = [sources[0]], [_read(sources[0], file)]
    if read[0].name in importing:
        raise InputError(f"The packs {' > '.join((*importing, read[0].name))} import in a circle.")
    rest = list(sources[1:])
    while rest and (read[-1].name != DEFAULT_PACK or _undecided(read)):
        texts.append(rest.pop(0))
        read.append(_read(texts[-1], None))
    libraries = {_read(text, None).name: text for text in rest}
    _inherit(texts, read, libraries)
    others = {}
    for name in dict.fromkeys(each.pack for source in read for each in source.imports):
        place = next((at for at, pack in enumerate(read) if at and pack.name == name), None)
        if place is None:
            own = [libraries[name] if name in libraries else pack_source(name)]
            above = {pack.name: text for text, pack in zip(texts, read, strict=True)}
            _inherit(own, [_read(own[0], _file(name))], above)
        else:
            own = texts[place:]
        others[name] = _built((*own, *rest), _file(name), (*importing, read[0].name))
    used = dict.fromkeys((*texts, *(text for pack in others.values() for text in pack.sources)))
    return _assembled(tuple(used), tuple(read), others, file)


def _inherit(texts: list[str], read: list[PackSource], given: Mapping[str, str]) -> None:
    """Append what the last text inherits, and what that inherits: ``given`` texts by name, else what memlab ships."""
    while (parent := _parent(read[-1])) is not None:
        if any(pack.name == parent for pack in read):
            raise InputError(
                f"The packs {' > '.join(pack.name for pack in read)} > {parent} inherit in a circle."
            )
        texts.append(given[parent] if parent in given else pack_source(parent))
        read.append(_read(texts[-1], _file(parent)))
    if _undecided(read):
        # A default pack that an earlier version logged: what it did not know is decided as today.
        texts.append(pack_source(DEFAULT_PACK))
        read.append(_read(texts[-1], f"{DEFAULT_PACK}.hy"))


@lru_cache(maxsize=64)
def _read(text: str, file: str | None) -> PackSource:
    """A pack's text as forms; every pack inherits, and reading the default one again took half of its time."""
    return read_pack(text, file=file)


def _undecided(read: list[PackSource]) -> bool:
    settings = {name for pack in read for name in pack.settings}
    policies = {name for pack in read for name in pack.policies}
    needed = {name for name, setting in SETTINGS.items() if setting.default is None}
    return not (
        settings >= needed
        and policies >= {name for name, slot in SLOTS.items() if not slot.has_default}
    )


def _parent(pack: PackSource) -> str | None:
    if pack.inherits is not None:
        return pack.inherits
    return None if pack.name == DEFAULT_PACK else DEFAULT_PACK


def _assembled(
    texts: tuple[str, ...],
    read: tuple[PackSource, ...],
    others: Mapping[str, Pack],
    file: str | None,
) -> Pack:
    policies: dict[str, Policy] = {}
    settings: dict[str, SettingValue] = {}
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
                policies[slot] = _compiled(source, slot, aliases, where)
        for each in source.imports:
            for name in _checked_imports(source, each, rescored):
                if name in SETTINGS:
                    settings.setdefault(name, others[each.pack].settings[name])
                else:
                    policies.setdefault(name, others[each.pack].policies[name])
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
            f"The pack {read[0].name} and what it inherits leave {', '.join(missing)} undecided."
        )
    return Pack(
        read[0].name,
        read[0].doc,
        MappingProxyType(policies),
        MappingProxyType(settings),
        texts,
        _pack_hash(policies, settings),
        policies["recall-score"].hash,
    )


def _compiled(source: PackSource, slot: str, aliases: Mapping[str, Policy], where: str) -> Policy:
    """Compile a policy of a pack, with the policies that it reads under another name written into it."""
    form, helpers = source.policies[slot], source.helpers
    text, more = inline_imports(form, aliases)
    signature, name = get_slot(slot).signature, f"{source.name}/{slot}"
    if text == form.source:
        return compile_policy(form, signature, name=name, helpers=helpers, file=where)
    return compile_policy(
        text, signature, name=name, helpers=tuple(dict.fromkeys((*helpers, *more))), file=where
    )


def _aliased(source: PackSource, others: Mapping[str, Pack]) -> dict[str, Policy]:
    """Return the policies of other packs by the names under which this pack's policies read them."""
    found = {}
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
            found[alias] = others[each.pack].policies[slot]
    return found


def _checked_imports(source: PackSource, each: Import, rescored: bool) -> list[str]:
    """Return the slots and settings that a pack imports. A PolicyNameError for an unknown or a second decision."""
    ranks = any(
        "recall-score" in names
        for names in (source.policies, *(other.names for other in source.imports))
    )
    for name in each.names:
        if name not in SLOTS and name not in SETTINGS:
            known = (*SLOTS, *SETTINGS)
            raise each.text.error(
                PolicyNameError, str(UnknownName("slot or setting", name, known)), each.form
            )
        if name in source.policies or name in source.settings:
            raise each.text.error(
                PolicyNameError, f"{name} is imported, and given in the file too.", each.form
            )
        if name in _OF_THE_SCORE and ranks and "recall-score" not in each.names:
            message = f"{name} is calibrated for the recall-score of {each.pack}, and this pack has another one."
            raise each.text.error(PolicyNameError, message, each.form)
    return [name for name in each.names if not (rescored and name in _OF_THE_SCORE)]


@lru_cache(maxsize=256)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _default(slot: Slot) -> Policy:
    """Return what a pack has in a slot that it does not name."""
    return _compiled_default(
        slot.name, slot.source or (slot.file or _DEFAULTS / f"{slot.name}.hy"), slot.signature
    )


@lru_cache(maxsize=64)
def _compiled_default(slot: str, source: str | Path, signature: Signature) -> Policy:
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    return compile_policy(text, signature, name=f"{DEFAULT_PACK}/{slot}", file=f"{slot}.hy")


def _pack_hash(policies: Mapping[str, Policy], settings: Mapping[str, SettingValue]) -> str:
    parts = [f"dialect {DIALECT}"]
    for name in sorted(_decided(policies)):
        slot = SLOTS[name]
        parts.append(f"{_versioned(name, slot.version)} {policies[name].hash}{_of_extension(slot)}")
    given = _given(settings)
    for name in sorted(given):
        setting = SETTINGS[name]
        parts.append(f"{_versioned(name, setting.version)} {given[name]!r}{_of_extension(setting)}")
    return _digest("\n".join(parts))


def _decided(policies: Mapping[str, Policy]) -> set[str]:
    """Return the slots in which a pack differs from what a pack has that does not name them."""
    decided = set()
    for name, policy in policies.items():
        slot = SLOTS.get(name)  # None: of an extension that was replaced by a version without it
        if slot is not None and (not slot.has_default or policy.hash != _default(slot).hash):
            decided.add(name)
    return decided


def _given(settings: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """Return the settings that differ from their defaults."""
    return {
        name: value
        for name, value in settings.items()
        if name in SETTINGS and value != SETTINGS[name].default
    }


def _of_extension(declared: Slot | Setting) -> str:
    return f" of {declared.owner}" if declared.owner else ""


def _versioned(name: str, version: int) -> str:
    """Return a name as hashes have it. Version 1 is left out, so that hashes from before versions stay equal."""
    return name if version == 1 else f"{name}/{version}"


# Which extensions a policy or a pack needs: those that declared what it reads, decides or sets.


_FINGERPRINT = re.compile(r"[0-9a-f]{16} ([a-z][a-z0-9-]*) (\S+)")
"""The fingerprint of an extension's feature: a hash, then name and version of the extension."""


def needs_of_policy(slot: str, policy: Policy) -> dict[str, str]:
    """Return the version of each extension that a policy of this slot needs, by name."""
    owners = [FEATURES[name].owner for name in _features_of(policy) if name in FEATURES]
    return _versions([SLOTS[slot].owner, *owners])


def needs_of_pack(pack: Pack) -> dict[str, str]:
    """Return the version of each extension that a pack needs, by name."""
    needs: dict[str, str] = {}
    for slot, policy in pack.policies.items():
        if not SLOTS[slot].owner or slot in pack.decided:
            needs |= needs_of_policy(slot, policy)
    given = [name for name, value in pack.settings.items() if value != SETTINGS[name].default]
    return needs | _versions(SETTINGS[name].owner for name in given)


def _features_of(policy: Policy) -> list[str]:
    """Return the features that a policy reads, those of pairs without their prefix."""
    return [name.removeprefix("new/").removeprefix("old/") for name in policy.inputs]


def _versions(owners: Iterable[str]) -> dict[str, str]:
    return dict(split_owner(owner) for owner in owners if owner)


def refusal_of(what: str, needs: Mapping[str, str] | None) -> str | None:
    """Return why ``what`` cannot be used here, if it needs an extension that is missing; None if it does not."""
    faults = describe_missing(needs) if needs else []
    if not faults:
        return None
    return (
        f"{what} needs an extension: {'; '.join(faults)}. Install it, or register it with memlab.extend(...), and open "
        "the lab again; or put another pack to use with lab.policies.use(...)."
    )


def warn_of_versions(what: str, needs: Mapping[str, str] | None) -> None:
    """Warn where ``what`` was logged with another version of an extension than the one that is registered."""
    faults = describe_missing(needs) if needs else []
    if faults:
        warnings.warn(
            f"{what} may decide otherwise than it did: {'; '.join(faults)}.",
            ExtensionWarning,
            stacklevel=4,
        )


def logged_owner(fingerprint: object) -> str | None:
    """Return the extension whose feature was logged under this fingerprint; None for a feature of memlab."""
    found = _FINGERPRINT.fullmatch(fingerprint) if isinstance(fingerprint, str) else None
    return None if found is None else f"{found[1]} {found[2]}"


# Packs that are compared with the live one, by showing now and then what only they would show.


ChallengeDesign = Literal["extra", "lot", "ab"]
CHALLENGE_DESIGNS: tuple[ChallengeDesign, ...] = ("extra", "lot", "ab")

_AFTER_THE_POOL = frozenset(
    {
        *(
            "limit",
            "probe-rate",
            "probe-depth",
            "probe-floor",
            "probes",
            "mmr-weight",
            "collapse-above",
        ),
        *("known-floor", "unknown-limit"),
    }
)
"""Settings that decide nothing until the candidates are scored."""

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
"""Slots that decide which candidates are scored, and what their features are."""


@dataclass(frozen=True)
class Challenge(Displayed):
    """One pack that is compared with the live one since the event ``seq``.

    ``design`` "extra": beside the head, ``extra`` items are shown that only challengers would show. "lot": as many
    items as ever are shown, and a lot decides among those on which the packs differ. "ab": the whole head of one of the
    packs is shown, each with the same probability. ``rate`` is the share of recalls.
    """

    pack: Pack
    design: ChallengeDesign
    extra: int
    rate: float
    seq: int
    at: int
    reason: str

    @property
    def name(self) -> str:
        """The name of its pack."""
        return self.pack.name

    def __repr__(self) -> str:
        items = {"lot": "by lot", "ab": "A/B"}.get(
            self.design, f"{self.extra} extra item{'s' * (self.extra > 1)}"
        )
        why = f": {self.reason}" if self.reason else ""
        return printable(
            f"<Challenge of {self.name} [{self.pack.hash[:12]}], {items} in {self.rate:.0%}{why}>"
        )


def same_candidates(live: Pack, other: Pack) -> bool:
    """Whether two packs score the same candidates with the same features, and so differ in the order alone."""
    if any(live.policies[slot].hash != other.policies[slot].hash for slot in _OF_THE_POOL):
        return False
    names = (live.settings.keys() | other.settings.keys()) - _AFTER_THE_POOL
    return all(live.settings.get(name) == other.settings.get(name) for name in names)
