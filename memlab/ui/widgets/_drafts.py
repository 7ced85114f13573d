"""A policy as the text of an editor: complete, with its numbers in place, and as a pack that can challenge."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from memlab.errors import PolicyError
from memlab.kernel.language import (
    Form,
    Policy,
    Text,
    compile_policy,
    read_forms,
    slot_of,
)
from memlab.kernel.policies import Pack, pack_from_sources, slot_named
from memlab.subjects.lens import literals

__all__ = ["Draft", "draft_pack", "read_draft", "text_of"]


class Draft(NamedTuple):
    """A text as a policy with its ``sliders``, or else what is wrong with it: ``text`` and ``places``."""

    policy: Policy | None
    problem: dict[str, Any] | None
    sliders: list[dict[str, Any]]
    numbers: int
    """How many numbers of the text could have a slider and have none."""


def read_draft(source: str, slot: str) -> Draft:
    """A text checked for a slot. Places are offsets as a browser counts them: in UTF-16."""
    try:
        policy = compile_policy(source, slot_named(slot).signature, name=slot)
        if (named := slot_of(source)) not in ("", slot):
            raise PolicyError(f"This is a policy of {named}, and here it is for {slot}.")
    except PolicyError as error:
        place = _error_place(error, source)
        return Draft(None, {"text": error.message, "places": place and _utf16(source, *place)}, [], 0)
    sliders = []
    for name, spans in _param_places(source).items():
        if (one := policy.params.get(name)) is not None:  # it is not where the helper that holds it is never called
            low, high = (bound if math.isfinite(bound) else None for bound in (one.low, one.high))
            places = [_utf16(source, *span) for span in spans]
            sliders.append({"name": name, "value": one.value, "low": low, "high": high, "places": places})
    interpreted = policy.root.op == "interpreted"
    return Draft(policy, None, sliders, 0 if interpreted else sum(not one.structural for one in literals(policy)))


def text_of(policy: Policy) -> str:
    """The text that compiles to the policy by itself: helpers that it calls in front, parameters at their values."""
    helpers = {_name(helper): helper for helper in policy.helpers}
    used: dict[str, str] = {}
    waiting = [policy.source]
    while waiting:
        names = {form.text for form in _walk(waiting.pop()) if form.kind == "symbol"}
        for name in sorted((names & helpers.keys()) - used.keys()):
            used[name] = helpers[name]
            waiting.append(helpers[name])
    parts = [helpers[name] for name in helpers if name in used]
    text = "\n\n".join([*parts, policy.source]).replace("\r\n", "\n").replace("\r", "\n").strip()
    given = [
        (span, _written(policy.params[name].value))
        for name, spans in _param_places(text).items()
        for span in spans
        if name in policy.params
    ]
    for (start, stop), value in sorted(given, reverse=True):
        if float(text[start:stop]) != float(value):
            text = text[:start] + value + text[stop:]
    return text


def _param_places(source: str) -> dict[str, list[tuple[int, int]]]:
    """Where the number of each ``(param :name number ...)`` stands in a text, in its order."""
    places: dict[str, list[tuple[int, int]]] = {}
    for form in _walk(source):
        if form.head == "param" and len(form.items) > 2:
            places.setdefault(form.items[1].text, []).append((form.items[2].start, form.items[2].stop))
    return dict(sorted(places.items(), key=lambda item: min(item[1])))


def _error_place(error: PolicyError, source: str) -> tuple[int, int] | None:
    """The stretch of the text that an error is about; to the end of its line where the form goes on below."""
    if error.line is None:
        return None
    lines = source.split("\n")
    before = sum(len(line) + 1 for line in lines[: error.line - 1])
    end = len(lines[error.line - 1]) if error.line <= len(lines) else 0
    start = min((error.column or 1) - 1, end)
    stop = min(error.end_column or end, end)
    return before + start, before + max(stop, start)


def draft_pack(pack: Pack, slot: str, policy: Policy, name: str) -> Pack:
    """``pack`` with the policy in a slot, as texts of its own: what a lab can log and name."""
    read = pack_from_sources(pack.sources)
    changed = {one: own for one, own in pack.policies.items() if own != read.policies[one]} | {slot: policy}
    doc = f"{pack.name} with another {slot}."
    layers = [_layer(name, doc, one, own) for one, own in changed.items()]
    if "recall-score" in changed:  # above a recall-score of its own a pack inherits nothing of what is known
        floor = "".join(f"(setting {one} {_written(pack.number(one))})\n" for one in ("known-floor", "unknown-limit"))
        layers.insert(0, _layer(name, doc, "known", changed.get("known", pack.policies["known"])) + floor)
    return replace(pack_from_sources((*layers, *pack.sources)), known_for=pack.known_for)


def _layer(name: str, doc: str, slot: str, policy: Policy) -> str:
    text = text_of(policy)
    form = next(form for form in read_forms(Text(text)) if form.head != "defn")
    if form.head != "defpolicy":
        text = f"{text[: form.start]}(defpolicy {slot} {text[form.start : form.stop]}){text[form.stop :]}"
    return f'(pack {name} "{doc}")\n{text}\n'


def _walk(source: str) -> Iterator[Form]:
    waiting = list(read_forms(Text(source)))
    while waiting:
        form = waiting.pop()
        yield form
        waiting += form.items


def _name(helper: str) -> str:
    return read_forms(Text(helper))[0].items[1].text


def _written(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _utf16(source: str, *places: int) -> list[int]:
    """Offsets as a browser counts them."""
    if source.isascii():
        return list(places)
    return [len(source[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in places]
