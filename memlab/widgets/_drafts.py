"""A policy as the text of an editor: complete, with its numbers in place, and as a pack that can challenge."""

from __future__ import annotations

from collections.abc import Iterator

from memlab.errors import PolicyError
from memlab.language import Form, Policy, Text, read_forms
from memlab.policies import Pack, pack_from_sources

__all__ = ["draft_pack", "error_place", "param_places", "text_of", "utf16"]


def text_of(policy: Policy) -> str:
    """The text that compiles to what the policy computes, alone: helpers that it calls in front, parameters in force."""
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
    given = [(span, _written(policy.params[name].value)) for name, spans in param_places(text).items() for span in spans]
    for (start, stop), value in sorted(given, reverse=True):
        if float(text[start:stop]) != float(value):
            text = text[:start] + value + text[stop:]
    return text


def param_places(source: str) -> dict[str, list[tuple[int, int]]]:
    """Where the number of each ``(param :name number ...)`` stands in a text, in its order."""
    places: dict[str, list[tuple[int, int]]] = {}
    for form in _walk(source):
        if form.head == "param" and len(form.items) > 2:
            places.setdefault(form.items[1].text, []).append((form.items[2].start, form.items[2].stop))
    return dict(sorted(places.items(), key=lambda item: min(item[1])))


def error_place(error: PolicyError, source: str) -> tuple[int, int] | None:
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
    return pack_from_sources((*(_layer(name, doc, one, own) for one, own in changed.items()), *pack.sources))


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


def utf16(source: str, *places: int) -> list[int]:
    """Offsets as a browser counts them."""
    if source.isascii():
        return list(places)
    return [len(source[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in places]
