"""The trusted road: a pack file as a module of Hy. Whoever takes it runs the file's code; ``lab.use`` never does.

The macros of ``memlab.dialect`` call ``expanded``. Every policy becomes an ordinary function of its arguments, whose
values are those of the safe road on one row, to the bit. Beyond the safe dialect a body may use whatever the module
holds: names that the dialect does not know are the module's own.
"""

from __future__ import annotations

import builtins
import importlib
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import hy.macros
from hy.compiler import hy_compile
from hy.errors import HyLanguageError
from hy.models import Dict, Expression, Float, Integer, Keyword, List, String, Symbol
from hy.reader import HyReader, mangle, read_many

from memlab.errors import InputError, PolicyError, PolicyNameError, PolicySyntaxError
from memlab.language._check import Helper
from memlab.language._definition import Definition, definition
from memlab.language._library import helper, library
from memlab.language._pack import read_header, read_setting
from memlab.language._params import Param
from memlab.language._reader import Form, Text, canonical
from memlab.language.trusted._expand import Expander, Facts, Scope, expression, local_name, memlab
from memlab.language.trusted._expand_forms import SPECIAL
from memlab.language.trusted._total import TOTAL

__all__ = ["CELL_MACROS", "compiled", "expanded", "library_function", "load_trusted"]

CELL_MACROS = ("pack", "setting", "defpolicy", "lambda", "let*", "λ")
"""The macros of ``memlab.dialect``. ``pack`` adds ``defn``, which is Hy's own everywhere else."""


class _Known:
    """What the macros have seen of one module."""

    def __init__(self) -> None:
        self.helpers: dict[str, Helper] = {}
        self.facts: dict[str, Facts] = {}
        self.policies: set[str] = set()
        self.params: dict[str, Param] = {}


_MODULES: WeakKeyDictionary[ModuleType, _Known] = WeakKeyDictionary()


def load_trusted(path: str | Path) -> ModuleType:
    """The module that a trusted pack file is. **This executes the file**, with all that it imports and calls: it is
    for your own files, and for those that you would run as a Python script. ``memlab.load_pack`` is for all others.

    The file need not begin with ``(require memlab.dialect *)``, and may write ``#t`` and ``#f``. The module has a
    function for each policy and helper (``recall-score`` is ``recall_score``), and ``__pack__`` (name, doc, inherits),
    ``__settings__`` and ``__params__``, which may be changed: ``module.__params__["near"] = 0.5``.

    Raises ``InputError`` for a file that cannot be read and ``PolicyError`` for a form that the dialect refuses.
    """
    file = Path(path).expanduser()
    try:
        source = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot read the pack {file}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"The pack {file} is not UTF-8 text: {error.reason} at byte {error.start}.") from None
    module = ModuleType(mangle(file.stem))
    module.__file__ = str(file)
    for code in compiled(source, module, str(file)):
        exec(code, module.__dict__)
    return module


def compiled(source: str, module: ModuleType, file: str) -> tuple[CodeType, CodeType]:
    """Trusted Hy code with the dialect's macros, as two code objects: what to execute, and its last expression.

    What ``pack`` makes of ``defn`` ends with the source.
    """
    hy.macros.require("memlab.dialect", module, assignments=[[name, name] for name in CELL_MACROS])
    macros: dict[str, Any] = module.__dict__["_hy_macros"]
    before = macros.get("defn")
    reader = HyReader()
    for tag, word in {"t": "True", "true": "True", "f": "False", "false": "False"}.items():
        reader.reader_macros[mangle(tag)] = lambda reader, key, word=word: Symbol(word)
    try:
        tree = read_many(source, filename=file, reader=reader, skip_shebang=True)
        body, last = hy_compile(tree, module, get_expr=True, filename=file, source=source)
    except HyLanguageError as error:
        if isinstance(error.__context__, PolicyError):  # a macro's, which says more
            raise error.__context__ from None
        raise PolicySyntaxError(str(error).strip(), file=file) from error
    finally:
        if macros.get("defn") is _dialects_defn():
            del macros["defn"]
            if before is not None:
                macros["defn"] = before
    return compile(body, file, "exec"), compile(last, file, "eval")


def _dialects_defn() -> Any:
    return importlib.import_module("memlab.dialect")._hy_macros["define_helper"]


# What the macros expand to.


def expanded(compiler: Any) -> Any:
    """The expansion of the macro call that ``compiler`` is at."""
    call = compiler.this
    text = Text(compiler.source or "", None, compiler.filename)
    reading = _Reading(text)
    form = reading.form(call)
    known = _MODULES.setdefault(compiler.module, _Known())
    head = form.head
    if head == "pack":
        return _pack(form, text, compiler.module)
    if head == "setting":
        name, setting = read_setting(form, text)
        return expression("do", _IMPORT, memlab("give", expression("globals"), String(name), _atom(setting.value)))
    helpers = {**library(), **known.helpers}
    expander = Expander(text, helpers, known.facts, reading.models, lambda name: _is_macro(name, compiler), SPECIAL)
    if head in ("lambda", "λ", "let*"):
        code = memlab("plain", expander.code(form, Scope({})))
        if expander.aggregates:
            raise expander.error(f"A {head} sees no slate; a policy does: (defpolicy name [features] body).", form)
        return expression("do", _IMPORT, *_declared(expander, known, text), code)
    parts = definition(form, text)
    if head == "defn":
        return _helper(form, parts, expander, known)
    return _policy(form, parts, expander, known)


_IMPORT = expression(
    "import", "memlab.language.trusted._total", List([Symbol("TOTAL"), Keyword("as"), Symbol("_memlab")])
)


def _atom(value: float | str | bool | None) -> Any:
    if isinstance(value, str):
        return String(value)
    return Float(value) if type(value) is float else Symbol(str(value))


def _pack(form: Form, text: Text, module: ModuleType) -> Any:
    """``__pack__`` and fresh settings and parameters; from here on ``defn`` is the dialect's."""
    name, doc, inherits = read_header(form, text)
    _MODULES[module] = _Known()
    module.__dict__.setdefault("_hy_macros", {})["defn"] = _dialects_defn()
    header = memlab("header", String(name), String(doc), _atom(inherits))
    fresh = [expression("setv", name, Dict()) for name in ("__settings__", "__params__")]
    return expression("do", _IMPORT, expression("setv", "__pack__", header), *fresh)


def _policy(form: Form, parts: Definition, expander: Expander, known: _Known) -> Any:
    name = local_name(parts.name)
    if parts.name in known.helpers:
        raise expander.error(f"{parts.name} is a helper of this file, and a module has one thing of a name.", form)
    known.policies.add(parts.name)
    body = expander.body(parts)
    if expander.fields is not None:
        old = {field: Symbol(local_name(field)) for field in sorted(expander.fields)}
        body = memlab("record", body, Dict([part for f, s in old.items() for part in (String(f), s)]))
    else:
        body = memlab("index" if expander.over_lists else "plain", body)
    return expression("do", *_defined(name, parts, expander, known, body))


def _helper(form: Form, parts: Definition, expander: Expander, known: _Known) -> Any:
    if parts.name in known.policies:
        raise expander.error(f"{parts.name} is a policy of this file, and a module has one thing of a name.", form)
    item = helper(form, expander.text)
    known.helpers.pop(item.name, None)
    known.facts.pop(item.name, None)
    code = _defined(local_name(item.name), parts, expander, known, expander.body(parts))
    known.helpers[item.name] = item
    known.facts[item.name] = Facts(
        not expander.foreign, bool(expander.aggregates), expander.over_lists, expander.models
    )
    name = local_name(item.name)
    return expression("do", *code, expression("setv", name, memlab("helper", Symbol(name))))


def _defined(name: str, parts: Definition, expander: Expander, known: _Known, body: Any) -> list[Any]:
    doc = [String(parts.doc)] if parts.doc else []
    inputs = List([String(a.text) for a in parts.arguments])
    function = expression(_DEFN, name, expander.parameters(parts), *doc, body)
    return [
        _IMPORT,
        *_declared(expander, known, expander.text),
        function,
        memlab("describe", Symbol(name), inputs, expander.slate_functions(parts)),
    ]


_DEFN = expression(".", "hy", "R", "hy/core/result-macros", "defn")
"""Hy's own ``defn``, whatever the module calls so."""


def _declared(expander: Expander, known: _Known, text: Text) -> list[Any]:
    """Code that declares the parameters of a definition. A module has one value a name."""
    for name, param in expander.params.items():
        if known.params.setdefault(name, param) != param:
            raise text.error(
                PolicyNameError,
                f":{name} is declared twice in this file, with another default or other bounds; a module has one.",
                None,
            )
    if not expander.params:
        return []
    defaults = [part for p in expander.params.values() for part in (String(p.name), Float(p.default))]
    return [memlab("declare", expression("globals"), Dict(defaults))]


def _is_macro(name: str, compiler: Any) -> bool:
    mangled = mangle(name)
    return any(mangled in getattr(module, "_hy_macros", ()) for module in (compiler.module, builtins))


@lru_cache(maxsize=256)
def library_function(name: str) -> Any:
    """A helper of the library as a function, compiled at its first use."""
    item = library()[name]
    parts = definition(item.form, item.text)
    expander = Expander(item.text, library(), {}, {}, lambda name: False, SPECIAL)
    body = expander.body(parts)
    function = expression("fn", expander.parameters(parts), body)
    return hy.eval(function, {"_memlab": TOTAL}, module="memlab.language.trusted._total")


class _Reading:
    """Hy models as forms, with their places in the text, and the models that they came from."""

    def __init__(self, text: Text) -> None:
        self.models: dict[int, Any] = {}
        self.lines = [0]
        for line in text.source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.known = bool(text.source)

    def form(self, model: Any) -> Form:
        start, stop = self.place(model)
        kind = type(model)
        if kind is Symbol:
            form = Form("symbol", canonical(str(model)), 0.0, (), start, stop)
        elif kind is Keyword:
            form = Form("keyword", canonical(model.name), 0.0, (), start, stop)
        elif kind is Integer:
            form = Form("int", "", float(model), (), start, stop)
        elif kind is Float:
            form = Form("float", "", float(model), (), start, stop)
        elif kind is String:
            form = Form("str", str(model), 0.0, (), start, stop)
        elif kind is Expression or kind is List:
            items = tuple([self.form(item) for item in model])
            form = Form("call" if kind is Expression else "list", "", 0.0, items, start, stop)
        else:
            form = Form("call", "", 0.0, (), start, stop)
        self.models[id(form)] = model
        return form

    def place(self, model: Any) -> tuple[int, int]:
        if not self.known or model.start_line >= len(self.lines) or model.end_line >= len(self.lines):
            return 0, 0
        return (
            self.lines[model.start_line - 1] + model.start_column - 1,
            self.lines[model.end_line - 1] + model.end_column,
        )
