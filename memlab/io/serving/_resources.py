"""Resources of the server: lab, policies, entities, recalls, memories, verdicts."""

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
from memlab.io.serving._connection import NOTE, Connection, format_element
from memlab.kernel.base.printable import json_safe, printable
from memlab.kernel.language import DIALECT
from memlab.kernel.policies import SETTINGS, SLOTS, get_slot
from memlab.kernel.schema import RECALLABLE
from memlab.kernel.verbs.recalling.past import read_hits
from memlab.subjects.lens import vocabulary
from memlab.ui.widgets.bundles import bundle

# The scheme of all addresses, which the protocol lets the server choose.
_SCHEME = "memlab://"
# A resource and the name or number in it; a name may contain any character, also a line end.
_NAMED_URI = re.compile(r"(memlab://[a-z]+)/(.+)", re.DOTALL)
# Maximum names in the description of a lab: a large lab has thousands of projects and entities.
_MAX_NAMES = 100
# Assumptions about missing feedback that a verdict can be read under.
_ASSUMPTIONS = ("zero", "censor", "inverse", "bounds")


@dataclass(frozen=True)
class Resource:
    """A text of the server that a client can read by its address.

    Attributes
    ----------
    uri
        The address, without the parameter.
    description
        What the text contains, for a model.
    read
        The function that writes the text for a connection and the value of the parameter.
    mime
        The media type of the text.
    parameter
        What the last part of the address stands for, such as "id"; empty for a fixed address.
    """

    uri: str
    description: str
    read: Callable[[Connection, str], str]
    mime: str = "application/json"
    parameter: str = ""

    @property
    def name(self) -> str:
        """The last segment of the resource's URI."""
        return self.uri.rpartition("/")[2]

    @property
    def template(self) -> str:
        """The resource's address, with its parameter in braces."""
        return f"{self.uri}/{{{self.parameter}}}" if self.parameter else self.uri


def build_uri(name: str, value: object = None) -> str:
    """Return the address of a resource, with the value of its parameter filled in.

    >>> build_uri("profile", "Ada L.")
    'memlab://profile/Ada%20L.'
    """
    return f"{_SCHEME}{name}" + ("" if value is None else f"/{quote(str(value), safe='')}")


def read_resource(connection: Connection, uri: str) -> tuple[str, str]:
    """Return the text and media type of a resource; raise UnknownName for an unknown resource."""
    match = _NAMED_URI.fullmatch(uri)
    base, resources, value = (match[1], NAMED, unquote(match[2])) if match else (uri, FIXED, "")
    resource = next((resource for resource in resources if resource.uri == base), None)
    if resource is None:
        raise UnknownName("resource", uri, [resource.template for resource in (*FIXED, *NAMED)])
    return resource.read(connection, value), resource.mime


def _dump_json(value: Any) -> str:
    """Return a value as JSON for a model, without control characters of terminals."""
    return json_safe(json.dumps(value, default=str, ensure_ascii=False, indent=1))


def _describe_lab(connection: Connection, _: str) -> str:
    """Return counts, projects, entities and the active pack of a lab as JSON."""
    lab, memories = connection.visible, connection.visible.memories
    used = memories.filter(pl.col("status").is_in(RECALLABLE))
    names = (
        lab.facts.entities.frame()
        .sort("mentions", descending=True)["name"]
        .head(_MAX_NAMES)
        .to_list()
    )
    path = connection.lab.io.path
    summary = {
        "lab": "in memory" if path is None else path.name,
        "read_only": connection.read_only,
        "project": connection.project,
        "viewer": connection.viewer,
        "role": connection.identity.role,
        "memories": {"in_use": used.height, "all": len(lab)},
        "kinds": dict(used.group_by("kind").len().sort("len", descending=True).iter_rows()),
        "projects": used["project"].drop_nulls().unique().sort().to_list()[:_MAX_NAMES],
        "oldest": used["created"].min(),
        "newest": used["created"].max(),
        "edges": lab.edges.height,
        "entities": names,
        "recalls": len(lab.slates()),
        "pack": {"name": lab.policies.pack.name, "hash": lab.policies.pack.hash},
        "challengers": [challenge.name for challenge in lab.policies.challenges],
    }
    return _dump_json(summary)


def _describe_policies(connection: Connection, _: str) -> str:
    """Return the slots, hashes and settings of the active pack as JSON."""
    pack, pins = connection.visible.policies.pack, connection.visible.policies.pins
    slots = {
        name: {"hash": policy.hash, "pinned": name in pins, "decides": SLOTS[name].doc}
        for name, policy in pack.policies.items()
    }
    settings = {name: pack.settings[name] for name in sorted(pack.settings)}
    return _dump_json({"pack": pack.name, "hash": pack.hash, "slots": slots, "settings": settings})


def _format_policy(connection: Connection, slot: str) -> str:
    """Return the source of a slot's active policy."""
    return printable(connection.visible.policies[slot].source)


def _format_profile(connection: Connection, entity: str) -> str:
    """Return an entity's profile as an element of a prompt."""
    profile = connection.visible.facts.profile(entity, project=connection.project)
    return f"{NOTE}\n{format_element('profile', profile.text, {'of': entity})}"


def _format_narrative(connection: Connection, entity: str) -> str:
    """Return sentences about an entity, built from its current facts, as an element of a prompt."""
    facts = connection.visible.facts.frame(subject=entity, status=RECALLABLE)["id"].to_list()
    in_project = [
        id
        for id in facts
        if connection.project is None
        or connection.visible[id].project in (None, connection.project)
    ]
    text = connection.visible.facts.narrative(in_project).text if in_project else ""
    return f"{NOTE}\n{format_element('narrative', text, {'of': entity})}"


def _describe_memory(connection: Connection, id: str) -> str:
    """Return the non-empty fields of a memory as JSON."""
    memory = connection.get_memory(_parse_number(id, "memory"))
    row = connection.visible.memories.row(memory.id - 1, named=True)
    return _dump_json(
        {
            "note": NOTE,
            "memory": {name: value for name, value in row.items() if value not in (None, [])},
        }
    )


def _explain_recall(connection: Connection, number: str) -> str:
    """Return the results of a logged recall, each with an explanation of its score."""
    decision = _parse_number(number, "recall")
    connection.get_slate(decision)
    hits = read_hits(connection.visible.io.store, decision)
    return f"{NOTE}\n" + "\n\n".join([repr(hits), *(repr(hit.explain()) for hit in hits)])


def _describe_terms(connection: Connection, number: str) -> str:
    """Return the terms of each score of a logged recall as JSON."""
    slate = connection.get_slate(_parse_number(number, "recall"))
    hits = read_hits(connection.visible.io.store, slate.decision)
    memories = [
        {"id": hit.id, "score": hit.score, "terms": hit.explain().frame.to_dicts()} for hit in hits
    ]
    policy = hits.pack.policies["recall-score"]
    return _dump_json(
        {
            "recall": slate.decision,
            "query": printable(slate.query),
            "policy": f"{hits.pack.name}/{policy.name}",
            "hash": policy.hash,
            "memories": memories,
        }
    )


def _summarise_slates(connection: Connection, _: str) -> str:
    """Return a summary of the logged recalls as text."""
    return repr(connection.visible.slates())


def _format_verdict(connection: Connection, missing: str) -> str:
    """Return the verdict on each challenger, under an assumption about missing feedback."""
    challengers = [challenge.name for challenge in connection.visible.policies.challenges]
    if not challengers:
        return "No challenger is being compared with the active pack. Start a comparison with lab.challenge(pack)."
    if missing and missing not in _ASSUMPTIONS:
        raise UnknownName("assumption about missing feedback", missing, _ASSUMPTIONS)
    try:
        verdicts = connection.visible.verdict(
            missing=cast("Literal['zero']", missing) if missing else None
        )
    except InputError as error:
        advice = f" Read {build_uri('verdict', 'zero')}, or use another of these words."
        raise InputError(f"{error}{advice * (not missing)}") from None
    return printable("\n".join(verdict.sentence for verdict in verdicts))


def _describe_language(connection: Connection, _: str) -> str:
    """Return the words, slots and settings of the policy language as JSON."""
    words = [
        {"name": word.name, "kind": word.kind, "shape": word.shape, "doc": word.doc}
        for word in vocabulary()
    ]
    slots = {
        name: {"returns": slot.signature.returns, "decides": slot.doc}
        for name, slot in SLOTS.items()
    }
    settings = {name: {"type": row.type, "doc": row.doc} for name, row in SETTINGS.items()}
    return _dump_json({"dialect": DIALECT, "words": words, "slots": slots, "settings": settings})


def _describe_slot(connection: Connection, name: str) -> str:
    """Return the inputs and the results of a slot's policies as JSON."""
    slot = get_slot(name)
    signature = slot.signature
    inputs = {
        row.name: {"type": row.type, "doc": row.doc, "words": row.words}
        for row in signature.inputs.values()
    }
    return _dump_json(
        {
            "slot": name,
            "decides": slot.doc,
            "returns": signature.returns,
            "words": signature.words,
            "fields": signature.fields,
            "inputs": inputs,
        }
    )


def _parse_number(text: str, what: str) -> int:
    """Return the positive number in a resource's address; raise InputError for other texts."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text)):
        raise InputError(
            f"Name a {what} by its number, such as {build_uri(what, 7)}, not by {text[:40]!r}."
        )
    return int(text)


def _render_app(_: Connection, __: str) -> str:
    """Return the HTML page of the MCP app that explains a recall."""
    page = (Path(__file__).parent / "app.html").read_text(encoding="utf-8")
    return page.replace("{script}", bundle("app"))


# The media type of resources that are not JSON.
_TEXT = "text/plain"
RECALL_APP = "ui://memlab/recall.html"
"""The page that a host with MCP Apps shows next to the answer of ``recall``: terms of the scores, two buttons."""
# the media type that the specification of MCP Apps prescribes
APP_MIME = "text/html;profile=mcp-app"
FIXED = (
    Resource(
        build_uri("lab"),
        "Contents of this lab: counts by kind, projects, entities, the active pack.",
        _describe_lab,
    ),
    Resource(
        build_uri("policies"),
        "The active pack: the policy hash of each slot, and the settings.",
        _describe_policies,
    ),
    Resource(
        build_uri("slates"),
        "Summary of the recall log: number of recalls, packs, share with feedback.",
        _summarise_slates,
        _TEXT,
    ),
    Resource(
        build_uri("verdict"),
        "Whether each challenger is better than the active pack, in one sentence.",
        _format_verdict,
        _TEXT,
    ),
    Resource(
        build_uri("language"), "The policy language: words, slots and settings.", _describe_language
    ),
    Resource(
        RECALL_APP,
        "A page that explains the results of a recall and lets the user rate them.",
        _render_app,
        APP_MIME,
    ),
)
"""Resources with a fixed address."""

NAMED = (
    Resource(
        build_uri("memory"), "All fields of one memory, by id.", _describe_memory, parameter="id"
    ),
    Resource(
        build_uri("recall"),
        "Why a recall returned its results: the terms of each score.",
        _explain_recall,
        _TEXT,
        parameter="number",
    ),
    Resource(
        build_uri("terms"),
        "The terms of each score of a recall, as JSON.",
        _describe_terms,
        parameter="number",
    ),
    Resource(
        build_uri("profile"),
        "Current facts about a person or thing, in prose; use the name user for the user.",
        _format_profile,
        _TEXT,
        parameter="entity",
    ),
    Resource(
        build_uri("narrative"),
        "Current facts about a person or thing, in one line.",
        _format_narrative,
        _TEXT,
        parameter="entity",
    ),
    Resource(
        build_uri("verdict"),
        "The verdict under an assumption about missing feedback: zero, censor, inverse or bounds.",
        _format_verdict,
        _TEXT,
        parameter="missing",
    ),
    Resource(
        build_uri("policy"),
        "Source of the active policy of a slot.",
        _format_policy,
        _TEXT,
        parameter="slot",
    ),
    Resource(
        build_uri("slot"),
        "Inputs that policies of a slot may read, and what they return.",
        _describe_slot,
        parameter="slot",
    ),
)
"""Resources with a parameter in their address."""
