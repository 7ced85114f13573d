"""The file of a pack: settings, policies and helpers, read but not yet checked against any slot.

- ``(require memlab.dialect *)`` is optional. It makes the file a module of Hy as well.
- ``(pack associative "Spreading activation." :inherits memlab)``
- ``(from-pack companion retention forget :as is-forgotten)``
- ``(setting damping (param :damping 0.7 :low 0 :high 1))``
- ``(defn ratio [a b] (/ a (+ a b 1)))``
- ``(defmacro square-of [x] `(let [t ~x] (* t t)))``
- ``(defpolicy recall-score [activation recency] "..." (+ (* 0.4 activation) ...))``
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from memlab.errors import InputError, PolicyNameError, PolicySyntaxError, PolicyTypeError
from memlab.kernel.language.policy import DIALECT, Policy
from memlab.kernel.language.reader import (
    LITERALS,
    MAX_PACK_CHARACTERS,
    MAX_PACK_FORMS,
    Form,
    Text,
    definition,
    read_forms,
)
from memlab.kernel.language.signature import Param, declared_param
from memlab.kernel.language.texts import (
    DEFINING,
    Definitions,
    PolicyForm,
    calls_inherited,
    define,
    digest,
    library,
    parse,
    source_hash,
)
from memlab.kernel.language.writer import write_data

_MACROS = re.compile(r"(?:\s|;[^\n]*\n){0,2000}\(require memlab\.dialect \*\)")
"""The line that makes a pack's file a module of Hy as well, with the space and comments before it."""


@dataclass(frozen=True)
class Setting:
    """The value of a setting in a pack.

    Parameters
    ----------
    value
        The value as written.
    param
        Declaration of the parameter if the value may be tuned.
    line, column
        Position in the file, both from 1.
    """

    value: float | str | bool
    param: Param | None = None
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Import:
    """The decisions that ``(from-pack pack name other :as alias)`` imports from another pack.

    `names` are slots and settings that are imported unchanged. `aliases` maps a name in this pack's
    policies to the slot of the other pack whose value the name stands for.
    """

    pack: str
    names: tuple[str, ...]
    aliases: Mapping[str, str]
    form: Form
    text: Text


@dataclass(frozen=True)
class PackSource:
    """The parts of a pack's text.

    `hash` covers settings, policies, helpers, imports, the inherited pack and the version of the language, but no prose.
    """

    name: str
    doc: str
    inherits: str | None
    settings: Mapping[str, Setting]
    policies: Mapping[str, PolicyForm]
    helpers: tuple[str, ...]
    hash: str
    file: str | None = None
    imports: tuple[Import, ...] = ()


def read_pack(text: str, *, file: str | None = None) -> PackSource:
    """Parse a pack file without checking its policies.

    Policies are checked later, by `compile_policy`.

    Parameters
    ----------
    text
        Content of the file.
    file
        Path of the file, for error messages.

    Returns
    -------
    PackSource
        The parts of the pack.

    Raises
    ------
    PolicyError
        If the text is no pack, with line and column.

    Examples
    --------
    >>> pack = read_pack('(pack tiny "One setting.") (setting seeds 10)')
    >>> pack.name, pack.settings["seeds"].value
    ('tiny', 10.0)
    """
    text = _blanked(text)
    source = Text(text, None, file)
    forms = read_forms(source, characters=MAX_PACK_CHARACTERS, forms=MAX_PACK_FORMS)
    if not forms or forms[0].head != "pack":
        raise source.error(
            PolicySyntaxError,
            'A pack begins with (pack name "description"). Install a single policy with lab.policies.install.',
            forms[0] if forms else None,
        )
    name, doc, inherits = read_header(forms[0], source)
    settings: dict[str, Setting] = {}
    policies: dict[str, PolicyForm] = {}
    helpers = []
    imports: list[Import] = []
    for form in forms[1:]:
        if form.head == "setting":
            key, setting = read_setting(form, source)
            if key in settings:
                raise source.error(PolicyNameError, f"The setting {key} is given twice.", form)
            settings[key] = setting
        elif form.head == "defpolicy":
            policy = read_policy_form(form, source)
            if policy.slot in policies:
                raise source.error(
                    PolicyNameError, f"The policy {policy.slot} is given twice.", form
                )
            policies[policy.slot] = policy
        elif form.head in DEFINING:
            helpers.append(form)
        elif form.head == "from-pack":
            imports.append(read_import(form, source))
        else:
            raise source.error(
                PolicySyntaxError,
                "A pack contains the forms pack, from-pack, setting, defpolicy, defn and defmacro only.",
                form,
            )
    twice = _imported_twice(imports)
    if twice:
        raise source.error(PolicyNameError, f"{twice[1]} is imported twice.", twice[0].form)
    # Macros and helpers may follow the policies that call them.
    definitions = define(((form, source) for form in helpers), Definitions(library(), {}))
    expander = definitions.expander()
    for slot, policy in policies.items():
        body = definition(expander.definition(policy.form, source), source).body
        policies[slot] = replace(policy, hash=source_hash(policy.inputs, body))
    # The order of the parts is fixed, because the hash of every pack depends on it.
    own = {item.name: item for item in definitions.helpers.values() if item.text is source}
    parts: list[str | float] = [DIALECT, name, inherits or ""]
    for key, setting in sorted(settings.items()):
        parts += ["setting", key, type(setting.value).__name__, setting.value]
    for slot, policy in sorted(policies.items()):
        parts += ["policy", slot, policy.hash]
    for key, item in sorted(own.items()):
        parts += ["helper", key, item.hash]
    for each in imports:
        parts += ["import", each.pack, *each.names]
        parts += [
            part for alias, slot in sorted(each.aliases.items()) for part in ("as", slot, alias)
        ]
    return PackSource(
        name,
        doc,
        inherits,
        MappingProxyType(settings),
        MappingProxyType(policies),
        tuple(text[form.start : form.stop] for form in helpers),
        digest(*parts),
        file,
        tuple(imports),
    )


def _blanked(text: str) -> str:
    """Replace the line ``(require memlab.dialect *)`` by spaces of equal length."""
    macros = _MACROS.match(text)
    return text if macros is None else re.sub(r"[^\n]", " ", macros.group()) + text[macros.end() :]


def read_header(form: Form, source: Text) -> tuple[str, str, str | None]:
    """Return the name, description and parent from a pack's header."""
    shape = '(pack name "description" :inherits other)'
    rest = form.items[1:]
    if not rest or rest[0].kind != "symbol":
        raise source.error(PolicySyntaxError, f"A pack begins with its name: {shape}.", form)
    name, rest = rest[0].text, rest[1:]
    doc = ""
    if rest and rest[0].kind == "str":
        doc, rest = rest[0].text, rest[1:]
    if not rest:
        return name, doc, None
    if (
        len(rest) == 2
        and rest[0].kind == "keyword"
        and rest[0].text == "inherits"
        and rest[1].kind == "symbol"
    ):
        return name, doc, rest[1].text
    raise source.error(PolicySyntaxError, f"This form is not allowed here; write {shape}.", rest[0])


def read_import(form: Form, source: Text) -> Import:
    """Read the form ``(from-pack pack name other :as alias)``."""
    shape = "(from-pack pack slot-or-setting ...), or slot :as name to read its value in a policy"
    items = list(form.items[1:])
    if len(items) < 2 or items[0].kind != "symbol":
        raise source.error(
            PolicySyntaxError,
            f"An import names a pack, then slots or settings of that pack: {shape}.",
            form,
        )
    names: list[str] = []
    aliases: dict[str, str] = {}
    rest = items[1:]
    # Each step consumes a name, or a name with its alias.
    while rest:
        name, rest = rest[0], rest[1:]
        if name.kind != "symbol":
            raise source.error(
                PolicySyntaxError, f"This form is not allowed here; write {shape}.", name
            )
        if rest and rest[0].kind == "keyword" and rest[0].text == "as":
            if len(rest) < 2 or rest[1].kind != "symbol":
                raise source.error(PolicySyntaxError, f"A name must follow :as, {shape}.", rest[0])
            if rest[1].text in aliases:
                raise source.error(PolicyNameError, f"{rest[1].text} is imported twice.", rest[1])
            aliases[rest[1].text], rest = name.text, rest[2:]
        else:
            names.append(name.text)
    return Import(items[0].text, tuple(names), MappingProxyType(aliases), form, source)


def _imported_twice(imports: list[Import]) -> tuple[Import, str] | None:
    """Return the first repeated import and the name it repeats, or None without repeats."""
    names: set[str] = set()
    for each in imports:
        for name in (*each.names, *each.aliases):
            if name in names:
                return each, name
            names.add(name)
    return None


def read_setting(form: Form, source: Text) -> tuple[str, Setting]:
    """Return the name and the value of ``(setting name value)``."""
    if len(form.items) != 3 or form.items[1].kind != "symbol":
        raise source.error(
            PolicySyntaxError, "A setting is a name and a value: (setting damping 0.7).", form
        )
    name, value = form.items[1].text, form.items[2]
    at = source.line(form.start), source.column(form.start)
    if value.kind in ("int", "float"):
        return name, Setting(value.number, None, *at)
    if value.kind == "str":
        return name, Setting(value.text, None, *at)
    constant = LITERALS.get(value.text) if value.kind == "symbol" else None
    if constant is not None:
        return name, Setting(constant, None, *at)
    if value.head == "param":
        param = declared_param(value, source)
        return name, Setting(param.value, param, *at)
    raise source.error(
        PolicyTypeError,
        "A setting is a number, a string, true, false or (param :name default :low a :high b).",
        value,
    )


def read_policy_form(form: Form, source: Text) -> PolicyForm:
    """Split a ``defpolicy`` form into its unchecked parts."""
    parts = definition(form, source)
    inputs = tuple(a.text for a in parts.arguments)
    text = source.source[form.start : form.stop]
    return PolicyForm(
        parts.name,
        inputs,
        parts.doc,
        text,
        source.line(form.start),
        source_hash(inputs, parts.body),
        form,
        source,
    )


def with_setting(source: str, name: str, value: float | str | bool) -> str:
    r"""Return the text of a pack with another value for a setting.

    Parameters
    ----------
    source
        Text of the pack.
    name
        Name of the setting. If the pack does not assign it, it is added after the header.
    value
        The value to assign to the setting.

    Returns
    -------
    str
        The text with the setting.

    Raises
    ------
    InputError
        If the text is not a pack.

    Examples
    --------
    >>> with_setting('(pack tiny "One setting.")\n(setting seeds 10)', "seeds", 5)
    '(pack tiny "One setting.")\n(setting seeds 5)'
    """
    forms = read_forms(Text(_blanked(source)), characters=MAX_PACK_CHARACTERS, forms=MAX_PACK_FORMS)
    if not forms or forms[0].head != "pack":
        raise InputError(
            "A setting can only be set in the text of a pack, which begins with (pack name)."
        )
    written = f"(setting {name} {write_data(value)})"
    for form in forms:
        if form.head == "setting" and len(form.items) == 3 and form.items[1].text == name:
            return source[: form.start] + written + source[form.stop :]
    return f"{source[: forms[0].stop]}\n{written}{source[forms[0].stop :]}"


# A policy that reads the value of another policy is rewritten as one text.
#
# (defpolicy recall-score [other-score age-days] (+ other-score (/ 1 (+ 1 age-days)))), in which ``other-score`` stands for
# (fn [similarity] (* 2 similarity)), becomes
#
# (defpolicy recall-score [similarity age-days]
# (let [other-score (* 2 similarity)]
# (+ other-score (/ 1 (+ 1 age-days)))))
#
# The text is complete: it can be read, hashed, installed, edited and restored without the pack of the other policy.


def inline_imports(
    form: PolicyForm, values: Mapping[str, Policy], helpers: tuple[str, ...] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return a policy's text with the policies that it imports inlined.

    The helpers of these policies are returned too.

    Parameters
    ----------
    form
        A policy whose arguments may include names of ``values``.
    values
        The policy for each name that ``form`` may read.
    helpers
        Texts of the helpers and macros that ``form`` may call.

    Returns
    -------
    tuple of str and tuple of str
        The text, which is unchanged if the policy reads none of the names, and the texts of the helpers.

    Raises
    ------
    PolicyNameError
        If ``(inherited)`` would stand for two policies.
    """
    read = [name for name in form.inputs if name in values]
    if not read:
        return form.source, ()
    whole = parse(form, None, helpers)
    parts = whole.parts
    arguments: dict[str, None] = {}
    bindings, more = [], dict[str, None]()
    inherits = {"own" if calls_inherited(parts.body) else ""}
    for argument in parts.arguments:
        other = values.get(argument.text)
        if other is None:
            arguments[argument.text] = None
            continue
        read_policy = parse(other.source, None, other.helpers)
        inherits.add("" if other.inherited is None else other.inherited.hash)
        arguments |= dict.fromkeys(each.text for each in read_policy.parts.arguments)
        more |= dict.fromkeys(other.helpers)
        value = read_policy.written
        bindings.append(
            f"{argument.text}\n          {read_policy.text.source[value.start : value.stop]}"
        )
    if len(inherits - {""}) > 1:
        raise form.text.error(
            PolicyNameError,
            f"{form.slot} and the policies that it reads inherit from two packs, so (inherited) has two values. "
            "Import the policy from its parent instead.",
            form.form,
        )
    body = whole.text.source[whole.written.start : whole.written.stop]
    doc = f"\n  {write_data(parts.doc)}" if parts.doc else ""
    listed, bound = " ".join(arguments), "\n         ".join(bindings)
    return f"(defpolicy {form.slot} [{listed}]{doc}\n  (let [{bound}]\n    {body}))", tuple(more)
