"""The import of a pack's file as a Hy module. Its forms are compiled by the safe compiler.

The macros of ``memlab.dialect`` call ``expand_form``. The code that this function returns calls ``bind_form`` when the
module runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from memlab.errors import PolicyTypeError
from memlab.kernel.language import (
    Input,
    Policy,
    PolicyForm,
    Signature,
    Text,
    Value,
    compile_policy,
    inline_imports,
    read_forms,
    read_header,
    read_import,
    read_policy_form,
    read_setting,
)
from memlab.kernel.language.macros import read_macro
from memlab.kernel.policies import (
    FEATURES,
    SETTINGS,
    SLOTS,
    check_setting,
    get_slot,
    inherited_helpers,
    load_pack,
)

_LONGEST = 10_000_000
"""The maximum number of characters of a module. The lines before a form are read as blank lines."""


class PackHeader(NamedTuple):
    """The header of a pack: ``(pack name "description" :inherits other)``."""

    name: str
    doc: str
    inherits: str | None


@dataclass(frozen=True)
class HelperFunction:
    """A helper of a pack (``defn``) as a Python function, compiled for the types of its arguments."""

    name: str
    arguments: tuple[str, ...]
    doc: str
    helpers: tuple[str, ...]

    def __call__(self, *values: object) -> Value | dict[str, Value] | list[float]:
        """Call the helper with numbers, booleans or strings, and return its value."""
        types = [
            "bool" if isinstance(v, bool) else "str" if isinstance(v, str) else "num"
            for v in values
        ]
        if len(values) != len(self.arguments):
            raise PolicyTypeError(
                f"{self.name} takes {len(self.arguments)} arguments, not {len(values)}."
            )
        inputs = [Input(name, type) for name, type in zip(self.arguments, types, strict=True)]  # type: ignore[arg-type]
        names = " ".join(self.arguments)
        return _compile_any(
            f"(fn [{names}] ({self.name} {names}))", inputs, self.name, self.helpers
        )(*values)


def expand_form(compiler: Any) -> Any:
    """Return the Hy code that passes the text of a macro call to ``bind_form``.

    The code passes the text of the form as a string to ``bind_form``.
    """
    import hy
    from hy.models import Expression, Integer, Keyword, List, String, Symbol

    form = compiler.this
    if str(form[0]) == "pack":
        macros = compiler.module.__dict__.setdefault("_hy_macros", {})
        macros["defn"] = macros["defmacro"] = _dialect_macros()["define_helper"]
    lines = (compiler.source or "").splitlines(keepends=True)
    if lines:
        within = lines[form.start_line - 1 : form.end_line]
        within[-1] = within[-1][: form.end_column]
        text, line = "".join(within)[form.start_column - 1 :], form.start_line
    else:
        text, line = hy.repr(form).removeprefix("'"), 1
    name, package = (
        Symbol("_memlab_bind_form"),
        Expression(map(Symbol, (".", "memlab", "subjects", "lens"))),
    )
    imported = Expression(
        [Symbol("import"), package, List([Symbol("bind-form"), Keyword("as"), name])]
    )
    arguments = [
        Expression([Symbol("globals")]),
        String(text),
        String(compiler.filename or ""),
        Integer(line),
    ]
    return Expression([Symbol("do"), imported, Expression([name, *arguments])])


def _dialect_macros() -> dict[str, Any]:
    """Return the macros of ``memlab.dialect``; the late import avoids an import cycle."""
    import importlib

    macros: dict[str, Any] = importlib.import_module("memlab.dialect")._hy_macros
    return macros


def bind_form(module: dict[str, Any], text: str, file: str, line: int) -> Policy | None:
    """Bind the names in one pack form in a module; return the policy of an unnamed form.

    Returns None for a form with a name. If the compiler refuses the form, a ``PolicyError`` gives the file, the line
    and the column.
    """
    from hy.reader import mangle

    # Each kind of form binds its own names. Helpers and aliases are stored under private names for later forms.
    source = Text("\n" * (line - 1) + text, None, file or None)
    form = read_forms(source, characters=_LONGEST)[0]
    if form.head == "pack":
        module.update(
            __pack__=PackHeader(*read_header(form, source)),
            __settings__={},
            __helpers__=(),
            __aliases__={},
        )
        return None
    if form.head == "from-pack":
        imported = read_import(form, source)
        other = load_pack(imported.pack)
        for item in imported.names:
            if item in SETTINGS:
                module.setdefault("__settings__", {})[item] = other.settings[item]
            else:
                get_slot(item)
                module[mangle(item)] = other.policies[item]
        aliases = {
            alias: other.policies[get_slot(slot).name] for alias, slot in imported.aliases.items()
        }
        module["__aliases__"] = {**module.get("__aliases__", {}), **aliases}
        return None
    if form.head == "setting":
        name, setting = read_setting(form, source)
        module.setdefault("__settings__", {})[name] = check_setting(name, setting.value)
        return None
    helpers: tuple[str, ...] = module.get("__helpers__", ())
    if form.head == "defmacro":
        read_macro(form, source)
        module["__helpers__"] = (*helpers, text)
        return None
    parts = read_policy_form(form, source)
    if form.head == "defn":
        module["__helpers__"] = helpers = (*helpers, text)
        bound: Any = HelperFunction(parts.slot, parts.inputs, parts.doc, helpers)
    elif parts.slot in SLOTS:
        inlined_text, more = inline_imports(parts, module.get("__aliases__", {}), helpers)
        whole = parts if inlined_text == parts.source else inlined_text
        every = tuple(dict.fromkeys((*helpers, *more)))
        if parent := module.get("__pack__", PackHeader("", "", None)).inherits:
            every = inherited_helpers(parts.slot, whole, every, lambda: load_pack(parent))
        bound = compile_policy(whole, SLOTS[parts.slot].signature, helpers=every, file=file or None)
    else:
        inputs = [Input(n, FEATURES[n].type if n in FEATURES else "num") for n in parts.inputs]
        bound = _compile_any(parts, inputs, parts.slot, helpers)
    if not parts.slot:
        return bound  # type: ignore[no-any-return]
    module[mangle(parts.slot.replace("/", "_"))] = bound
    return None


def _compile_any(
    source: str | PolicyForm, inputs: list[Input], name: str, helpers: tuple[str, ...]
) -> Policy:
    """Compile a policy that fills no slot, with the first return type that fits: number, boolean or text."""
    first: PolicyTypeError | None = None
    for returns in ("num", "bool", "str"):
        try:
            return compile_policy(
                source,
                Signature(name or "lambda", {i.name: i for i in inputs}, returns),
                helpers=helpers,
            )
        except PolicyTypeError as error:
            first = first or error
    assert first is not None
    raise first
