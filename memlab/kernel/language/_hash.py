"""The source hash: the same for two spellings of one program, another for any other program.

Forms are written out typed and length-prefixed. White space, comments, the document string, brackets against
parentheses in binders, ``fn`` against ``lambda`` and ``defpolicy``, ``let`` against ``let*``, the spelling of
strings, quotes and names (``a-b``, ``a_b``), and the names that let and a helper's arguments bind do not count. ``1``
and ``1.0`` differ.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping

from memlab.kernel.language._dag import constant_key
from memlab.kernel.language._reader import Form, flat_pairs
from memlab.kernel.language._words import RESPELLED

__all__ = ["digest", "helper_hash", "source_hash"]

Scope = Mapping[str, int]


def digest(*parts: bytes | str | float) -> str:
    """SHA-256 of parts, each with its length."""
    encoded = [p if isinstance(p, bytes) else p.encode() if isinstance(p, str) else constant_key(p) for p in parts]
    return hashlib.sha256(b"".join(struct.pack(">I", len(p)) + p for p in encoded)).hexdigest()


def source_hash(arguments: tuple[str, ...], body: Form) -> str:
    """Of a policy: its arguments keep their names, because they are matched by name."""
    out: list[bytes] = []
    _emit(body, {}, out)
    return digest("policy", b"".join(map(_atom, ("s" + a for a in arguments))), b"".join(out))


def helper_hash(name: str, arguments: tuple[str, ...], body: Form) -> str:
    """Of a ``defn``: its arguments are only places."""
    out: list[bytes] = []
    _emit(body, {argument: i for i, argument in enumerate(arguments)}, out)
    return digest("helper", name, str(len(arguments)), b"".join(out))


def _atom(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">I", len(data)) + data


def _emit(form: Form, scope: Scope, out: list[bytes]) -> None:
    kind = form.kind
    if kind == "symbol":
        level = scope.get(form.text)
        out.append(_atom("s" + RESPELLED.get(form.text, form.text) if level is None else f"v{level}"))
    elif kind == "int":
        out.append(b"i" + struct.pack(">d", form.number))
    elif kind == "float":
        out.append(b"f" + struct.pack(">d", form.number))
    elif kind == "str":
        out.append(_atom("t" + form.text))
    elif kind == "keyword":
        out.append(_atom("k" + form.text))
    elif form.head == "quote" and len(form.items) == 2:
        _emit_quoted(form.items[1], out)
    elif (bindings := _flat_bindings(form)) is not None:
        _emit_let(form, bindings, scope, out)
    elif form.head in ("fn", "lambda") and len(form.items) > 1 and form.items[1].kind in ("list", "call"):
        arguments = form.items[1].items
        level = _next(scope)
        inner = {**scope, **{a.text: level + i for i, a in enumerate(arguments)}}
        out.append(b"(" + struct.pack(">I", len(form.items)) + _atom("sfn") + struct.pack(">I", len(arguments)))
        for item in form.items[2:]:
            _emit(item, inner, out)
    else:
        out.append((b"(" if kind == "call" else b"[") + struct.pack(">I", len(form.items)))
        for item in form.items:
            _emit(item, scope, out)


def _emit_quoted(form: Form, out: list[bytes]) -> None:
    if form.kind == "symbol":
        out.append(_atom("t" + form.text))
    elif form.kind in ("call", "list"):
        out.append(b"[" + struct.pack(">I", len(form.items)))
        for item in form.items:
            _emit_quoted(item, out)
    else:
        _emit(form, {}, out)


def _next(scope: Scope) -> int:
    return 1 + max(scope.values(), default=-1)


def _flat_bindings(form: Form) -> tuple[Form, ...] | None:
    """Names and values of a let in turn, or None if it is malformed, which the checker reports."""
    if form.head not in ("let", "let*") or len(form.items) < 2 or form.items[1].kind not in ("list", "call"):
        return None
    pairs = form.items[1].items
    if pairs and pairs[0].kind in ("list", "call") and any(len(pair.items) != 2 for pair in pairs):
        return None
    items = flat_pairs(pairs)
    return None if len(items) % 2 or any(name.kind != "symbol" for name in items[::2]) else items


def _emit_let(form: Form, bindings: tuple[Form, ...], scope: Scope, out: list[bytes]) -> None:
    inner = dict(scope)
    level = _next(scope)
    out.append(b"(" + struct.pack(">I", len(form.items)) + _atom("slet") + struct.pack(">I", len(bindings)))
    for name, value in zip(bindings[::2], bindings[1::2], strict=True):
        _emit(value, inner, out)
        # A second binding of one name is a new place.
        inner[name.text] = level
        level += 1
    for item in form.items[2:]:
        _emit(item, inner, out)
