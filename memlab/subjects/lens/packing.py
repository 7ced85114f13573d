"""The text of a compiled policy, and of a pack in which it replaces the policy of its slot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from memlab.errors import InputError
from memlab.kernel.language import Form, Policy, Text, read_forms
from memlab.kernel.language.texts import DEFINING
from memlab.kernel.policies import SLOTS, Pack, inherited_helpers, pack_from_sources


def text_of(policy: Policy, pack: Pack | None = None) -> str:
    """Return the self-contained source of a policy, with helpers and parameter values.

    The text of ``(inherited)`` is left out if ``pack`` still has the same policy.
    """
    slot = policy.signature.slot
    if pack is not None and slot in SLOTS:
        parent = inherited_helpers(slot, policy.source, (), lambda: pack)
        policy = replace(
            policy,
            _origin=policy._origin._replace(
                helpers=tuple(h for h in policy.helpers if h not in parent)
            ),
        )
    # Helpers may call helpers, so their names are collected until none is new.
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
    values = [
        (span, _format_number(policy.params[name].value))
        for name, spans in param_places(text).items()
        for span in spans
        if name in policy.params
    ]
    for (start, stop), value in sorted(values, reverse=True):
        if float(text[start:stop]) != float(value):
            text = text[:start] + value + text[stop:]
    return text


def rebased_text(policy: Policy, pack: Pack) -> str | None:
    """Return a policy's text if its inherited policy is no longer in the pack's file.

    None if the pack's file still has that policy, or has this one, or if the policy inherits nothing.
    """
    slot = policy.signature.slot
    stored = [helper for helper in policy.helpers if _name(helper) == "inherited"]
    today = inherited_helpers(slot, policy.source, (), lambda: pack) if stored else ()
    if set(stored) <= set(today) or pack_from_sources(pack.sources).policies[slot] == policy:
        return None
    rest = tuple(helper for helper in policy.helpers if helper not in stored)
    return text_of(replace(policy, _origin=policy._origin._replace(helpers=rest)))


_WRITTEN = [["keyword", "int"], ["keyword", "float"]]
"""Kinds of a parameter's name and default, as they are written."""


def param_places(source: str) -> dict[str, list[tuple[int, int]]]:
    """Return the source spans of the numbers in ``param`` forms, by parameter name."""
    places: dict[str, list[tuple[int, int]]] = {}
    for form in _walk(source):
        # In a template of a macro, the name or the number may be a parameter of the macro.
        if form.head == "param" and [i.kind for i in form.items[1:3]] in _WRITTEN:
            places.setdefault(form.items[1].text, []).append(
                (form.items[2].start, form.items[2].stop)
            )
    return dict(sorted(places.items(), key=lambda item: min(item[1])))


def draft_pack(pack: Pack, slot: str, policy: Policy, name: str) -> Pack:
    """Return a pack with another policy in one slot, and with texts that define all policies.

    Each changed policy is a text of its own, so that helpers of two policies may share a name.
    """
    read = pack_from_sources(pack.sources)
    after = pack.with_policy(slot, policy)
    changed = {
        other: own for other, own in after.policies.items() if own != read.policies[other]
    } | {slot: policy}
    doc = f"{pack.name} with another {slot}."
    # A pack with its own recall-score inherits neither the policy known nor its settings. It gets the policy only if it
    # was calibrated for this recall-score.
    if "recall-score" in changed:
        first = {"known": after.policies["known"]} if after.tells_known else {}
        changed = first | {other: own for other, own in changed.items() if other != "known"}
    layers = [_layer(name, doc, other, own) for other, own in changed.items()]
    if "recall-score" in changed:
        floor = "".join(
            f"(setting {setting} {_format_number(pack.number(setting))})\n"
            for setting in ("known-floor", "unknown-limit")
        )
        layers[0] += floor
    written = pack_from_sources((*layers, *pack.sources))
    for other, own in changed.items():
        if written.policies[other].meaning_hash != own.meaning_hash:
            raise InputError(
                f"The policy {other} of {pack.name} cannot be written as the text of a pack. Write the pack yourself: "
                f"(pack {name} :inherits {read.name})."
            )
    return written


def _layer(name: str, doc: str, slot: str, policy: Policy) -> str:
    text = text_of(policy)
    form = next(form for form in read_forms(Text(text)) if form.head not in DEFINING)
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
    form = read_forms(Text(helper))[0]
    return "inherited" if form.head == "inherit" else form.items[1].text


def _format_number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
