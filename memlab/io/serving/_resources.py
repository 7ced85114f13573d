"""What there is to read beside the tools: the lab, its policies, entities, recalls, memories and verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote, unquote

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.io.serving._desk import NOTE, Desk, element
from memlab.kernel.base.printable import json_safe, printable
from memlab.kernel.language import DIALECT
from memlab.kernel.policies import SETTINGS, SLOTS, get_slot
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.verbs.recalling.asking import read_hits
from memlab.subjects.lens import vocabulary
from memlab.ui.widgets.bundles import bundle

__all__ = ["FIXED", "NAMED", "RECALL_APP", "Resource", "address", "read"]

_SCHEME = "memlab://"
_BELOW = re.compile(r"(memlab://[a-z]+)/(.+)", re.DOTALL)
_MOST_NAMES = 100
_SILENCES = ("zero", "censor", "inverse", "bounds")


@dataclass(frozen=True)
class Resource:
    """Something to read at ``uri``, or below it if it is about a ``named`` thing."""

    uri: str
    about: str
    read: Callable[[Desk, str], str]
    mime: str = "application/json"
    named: str = ""

    @property
    def name(self) -> str:
        """What it is called: the end of its address."""
        return self.uri.rpartition("/")[2]

    @property
    def template(self) -> str:
        """Its address with what is named in braces."""
        return f"{self.uri}/{{{self.named}}}" if self.named else self.uri


def address(name: str, of: object = None) -> str:
    """The address of a resource.

    >>> address("profile", "Ada L.")
    'memlab://profile/Ada%20L.'
    """
    return f"{_SCHEME}{name}" + ("" if of is None else f"/{quote(str(of), safe='')}")


def read(desk: Desk, uri: str) -> tuple[str, str]:
    """The text at an address and its media type; UnknownName where there is nothing."""
    below = _BELOW.fullmatch(uri)
    wanted, among, of = (below[1], NAMED, unquote(below[2])) if below else (uri, FIXED, "")
    found = next((one for one in among if one.uri == wanted), None)
    if found is None:
        raise UnknownName("resource", uri, [one.template for one in (*FIXED, *NAMED)])
    return found.read(desk, of), found.mime


def _json(value: Any) -> str:
    return json_safe(json.dumps(value, default=str, ensure_ascii=False, indent=1))


def _lab(desk: Desk, _: str) -> str:
    lab, memories = desk.seen, desk.seen.memories
    used = memories.filter(pl.col("status").is_in(RECALLABLE))
    names = (
        lab.facts.entities.frame()
        .sort("mentions", descending=True)["name"]
        .head(_MOST_NAMES)
        .to_list()
    )
    path = desk.lab.io.path
    about = {
        "lab": "in memory" if path is None else path.name,
        "read_only": desk.read_only,
        "project": desk.project,
        "viewer": desk.viewer,
        "role": desk.who.role,
        "memories": {"in_use": used.height, "all": len(lab)},
        "kinds": dict(used.group_by("kind").len().sort("len", descending=True).iter_rows()),
        "projects": used["project"].drop_nulls().unique().sort().to_list()[:_MOST_NAMES],
        "oldest": used["created"].min(),
        "newest": used["created"].max(),
        "edges": lab.edges.height,
        "entities": names,
        "recalls": len(lab.slates()),
        "pack": {"name": lab.policies.pack.name, "hash": lab.policies.pack.hash},
        "challengers": [one.name for one in lab.policies.challenges],
    }
    return _json(about)


def _policies(desk: Desk, _: str) -> str:
    live, pins = desk.seen.policies.pack, desk.seen.policies.pins
    slots = {
        name: {"hash": policy.hash, "pinned": name in pins, "decides": SLOTS[name].doc}
        for name, policy in live.policies.items()
    }
    settings = {name: live.settings[name] for name in sorted(live.settings)}
    return _json({"pack": live.name, "hash": live.hash, "slots": slots, "settings": settings})


def _policy(desk: Desk, slot: str) -> str:
    return printable(desk.seen.policies[slot].source)


def _profile(desk: Desk, entity: str) -> str:
    said = desk.seen.facts.profile(entity, project=desk.project)
    return f"{NOTE}\n{element('profile', said.text, {'of': entity})}"


def _narrative(desk: Desk, entity: str) -> str:
    facts = desk.seen.facts.frame(subject=entity, status=RECALLABLE)["id"].to_list()
    own = [
        id for id in facts if desk.project is None or desk.seen[id].project in (None, desk.project)
    ]
    text = desk.seen.facts.narrative(own).text if own else ""
    return f"{NOTE}\n{element('narrative', text, {'of': entity})}"


def _memory(desk: Desk, id: str) -> str:
    memory = desk.memory(_number(id, "memory"))
    row = desk.seen.memories.row(memory.id - 1, named=True)
    return _json(
        {
            "note": NOTE,
            "memory": {name: value for name, value in row.items() if value not in (None, [])},
        }
    )


def _recall(desk: Desk, number: str) -> str:
    decision = _number(number, "recall")
    desk.slate(decision)
    hits = read_hits(desk.seen.io.store, decision)
    return f"{NOTE}\n" + "\n\n".join([repr(hits), *(repr(hit.explain()) for hit in hits)])


def _terms(desk: Desk, number: str) -> str:
    slate = desk.slate(_number(number, "recall"))
    hits = read_hits(desk.seen.io.store, slate.decision)
    memories = [
        {"id": hit.id, "score": hit.score, "terms": hit.explain().frame.to_dicts()} for hit in hits
    ]
    policy = hits.pack.policies["recall-score"]
    asked = {"recall": slate.decision, "query": printable(slate.query)}
    return _json(
        {
            **asked,
            "policy": f"{hits.pack.name}/{policy.name}",
            "hash": policy.hash,
            "memories": memories,
        }
    )


def _slates(desk: Desk, _: str) -> str:
    return repr(desk.seen.slates())


def _verdict(desk: Desk, missing: str) -> str:
    challengers = [one.name for one in desk.seen.policies.challenges]
    if not challengers:
        return "No pack is compared with the live one. Begin with lab.challenge(pack)."
    if missing and missing not in _SILENCES:
        raise UnknownName("meaning of silence", missing, _SILENCES)
    try:
        found = desk.seen.verdict(missing=cast("Literal['zero']", missing) if missing else None)
    except InputError as error:
        more = (
            ""
            if missing
            else f" Read it as {address('verdict', 'zero')}, or with another of these words."
        )
        raise InputError(f"{error}{more}") from None
    return printable("\n".join(one.sentence for one in found))


def _language(desk: Desk, _: str) -> str:
    words = [
        {"name": one.name, "kind": one.kind, "shape": one.shape, "doc": one.doc}
        for one in vocabulary()
    ]
    slots = {
        name: {"returns": slot.signature.returns, "decides": slot.doc}
        for name, slot in SLOTS.items()
    }
    settings = {name: {"type": one.type, "doc": one.doc} for name, one in SETTINGS.items()}
    return _json({"dialect": DIALECT, "words": words, "slots": slots, "settings": settings})


def _slot(desk: Desk, name: str) -> str:
    slot = get_slot(name)
    signature = slot.signature
    inputs = {
        one.name: {"type": one.type, "doc": one.doc, "words": one.words}
        for one in signature.inputs.values()
    }
    given = {
        "returns": signature.returns,
        "words": signature.words,
        "fields": signature.fields,
        "inputs": inputs,
    }
    return _json({"slot": name, "decides": slot.doc, **given})


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text)):
        raise InputError(f"A {what} has a number, such as {address(what, 7)}, not {text[:40]!r}.")
    return int(text)


def _app(_: Desk, __: str) -> str:
    page = (Path(__file__).parent / "app.html").read_text(encoding="utf-8")
    return page.replace("{script}", bundle("app"))


_TEXT = "text/plain"
RECALL_APP = "ui://memlab/recall.html"
"""What a host that speaks MCP Apps shows beside the answer of ``recall``: each score as its terms, and two buttons."""
APP_MIME = "text/html;profile=mcp-app"
FIXED = (
    Resource(
        address("lab"),
        "What this memory holds: counts by kind, projects, entities, the live pack.",
        _lab,
    ),
    Resource(
        address("policies"),
        "The live pack: every slot with the hash of its policy, and the settings.",
        _policies,
    ),
    Resource(
        address("slates"),
        "The log of recalls at a glance: how many, by which packs, how much of it was judged.",
        _slates,
        _TEXT,
    ),
    Resource(
        address("verdict"),
        "Whether a pack that is compared with the live one is better, in a sentence.",
        _verdict,
        _TEXT,
    ),
    Resource(
        address("language"), "The language of policies: its words, slots and settings.", _language
    ),
    Resource(
        RECALL_APP,
        "Why a recall showed what it showed, for the user to see and judge.",
        _app,
        APP_MIME,
    ),
)
"""What has one address."""

NAMED = (
    Resource(address("memory"), "One memory with all its fields, by its id.", _memory, named="id"),
    Resource(
        address("recall"),
        "Why a recall showed what it showed: each score as its terms.",
        _recall,
        _TEXT,
        named="number",
    ),
    Resource(
        address("terms"), "The terms of each score of a recall, as data.", _terms, named="number"
    ),
    Resource(
        address("profile"),
        "What holds of a person or thing, in prose; of the user: user.",
        _profile,
        _TEXT,
        named="entity",
    ),
    Resource(
        address("narrative"),
        "What holds of a person or thing, as a line of facts.",
        _narrative,
        _TEXT,
        named="entity",
    ),
    Resource(
        address("verdict"),
        "The verdict where what nobody judged counts as zero (nobody used it), or as censor, inverse, bounds.",
        _verdict,
        _TEXT,
        named="missing",
    ),
    Resource(
        address("policy"), "The source of the live policy of a slot.", _policy, _TEXT, named="slot"
    ),
    Resource(
        address("slot"),
        "What a policy of a slot may read, and what it returns.",
        _slot,
        named="slot",
    ),
)
"""What has an address for each name or number."""
