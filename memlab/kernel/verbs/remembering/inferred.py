"""What a memory gets by what it says, where the pack asks for it: tags, and a summary for prompts.

Tags come from paths (the language of a file, the folder that it lies in), from topics by words (plain English) and from
the entities of a fact. A summary is one or two of the text's own sentences, those with the words that it repeats.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from memlab.kernel.english import (
    count_tokens,
    emotional_weight,
    lexicon,
    proper_names,
    sentences_and_lines,
    shorten,
    vocabulary,
    words_of,
)
from memlab.kernel.policies import Pack
from memlab.kernel.schema import MEMORY, role_of
from memlab.kernel.state import State, entity_key, entity_name
from memlab.kernel.verbs.fact_rows import entities_of

__all__ = ["summary_of", "tags_of", "with_inferred"]

FEWEST, MOST = 25, 35
"""Tokens of a summary: at least, where the text has them, and at most."""

_READ = 20_000
"""Characters of a text that are read for its summary and topics."""

_SHORT = 8
"""Tokens below which a sentence gains nothing by being shorter."""

_LONGEST_TAG = 40
_NOT_OF_A_TAG = re.compile(r"[^\w:.+#]+")
_NOBODY = frozenset(["user", "team"])


def with_inferred(pack: Pack, columns: dict[str, list[Any]], texts: Sequence[str]) -> dict[str, list[Any]]:
    """The columns with tags as ``infer-tags`` says, and summaries where ``write-summary`` is; turns have none.

    Tags that are given stay first, and a summary that is given stays.
    """
    nothing: list[Any] = [None] * len(texts)
    kinds = columns.get("kind", nothing)
    said = [row for row, kind in enumerate(kinds) if kind != "turn"]
    after = dict(columns)
    if (how := pack.settings["infer-tags"]) != "off" and said:
        tags = [tuple(one or ()) for one in columns.get("tags", nothing)]
        names = ("files", "subject", "object")
        given = [columns.get(name, nothing) for name in names]
        for row in said:
            files, *entities = (column[row] for column in given)
            inferred = tags_of(texts[row] if how == "all" else "", files or (), entities if how == "all" else ())
            tags[row] = tuple(dict.fromkeys([*tags[row], *inferred]))
        if any(tags):
            after["tags"] = [list(one) for one in tags]
    if pack.settings["write-summary"] and said:
        summaries = list(columns.get("summary", nothing))
        steps = columns.get("steps", nothing)
        for row in said:
            if not steps[row]:  # a procedure is told by its steps
                summaries[row] = summaries[row] or summary_of(texts[row])
        after["summary"] = summaries
    return after


def with_feeling(columns: dict[str, list[Any]], missing: Sequence[int], texts: Sequence[str]) -> dict[str, list[Any]]:
    """The columns with the emotional weight of feelings for which none was given, where their texts show one."""
    kinds = columns.get("kind", [None] * len(texts))
    found = {row: weight for row in missing if kinds[row] == "feeling" and (weight := emotional_weight(texts[row]))}
    if not found:
        return columns
    given = columns.get("emotional_weight", [MEMORY["emotional_weight"].default] * len(texts))
    return {**columns, "emotional_weight": [found.get(row, weight) for row, weight in enumerate(given)]}


def names_in_texts(
    state: State, pack: Pack, columns: Mapping[str, Sequence[Any]], texts: Sequence[str]
) -> dict[int, list[str]]:
    """Return by row the names of entities in texts, as ``infer-entities`` says; of turns and facts none.

    A name that an entity bears stands for that entity; a speaker does not mention themselves. What an assistant writes
    names what is known already, and makes no new entity.
    """
    if pack.settings["infer-entities"] == "off":
        return {}
    nothing: list[Any] = [None] * len(texts)
    kinds, predicates = columns.get("kind", nothing), columns.get("predicate", nothing)
    speakers, entities = columns.get("speaker", nothing), entities_of(state)
    by_assistant = [speaker is not None and role_of(speaker, None) == "assistant" for speaker in speakers]
    found: dict[int, list[str]] = {}
    for row, text in enumerate(texts):
        if kinds[row] == "turn" or predicates[row] is not None:
            continue
        named = {name: entities.canonical(name) for name in proper_names(text)}
        names = [known or entity_name(name) for name, known in named.items() if known or not by_assistant[row]]
        own = None if speakers[row] is None else entity_key(speakers[row])
        if kept := [name for name in dict.fromkeys(names) if entity_key(name) != own]:
            found[row] = kept
    return found


def tags_of(text: str, files: Sequence[str], entities: Sequence[str | None] = ()) -> list[str]:
    """Tags of a text, the paths that it is about and the entities that it names; at most six.

    >>> tags_of("The login fails", ["src/auth/handler.rs"])
    ['rust', 'auth']
    """
    found = [tag for path in files for tag in _of_a_path(path)]
    names = [*entities, *proper_names(text)]
    found += [tag for name in names if name is not None and (tag := _tag(name)) and tag not in _NOBODY]
    topics, told = _topics(), Counter(words_of(text[:_READ]))
    of_topics = [(-told[word], topics[word]) for word in told if word in topics]
    found += [topic for _, topic in sorted(of_topics, key=lambda pair: pair[0])]
    return list(dict.fromkeys(found))[: lexicon()["tags"]["most"]]


def summary_of(text: str) -> str:
    """At most 35 tokens of a text's own words, and from 25 on where its sentences allow it.

    >>> summary_of("The cache is stale after a deploy.")
    'The cache is stale after a deploy.'
    """
    flat = " ".join(text[:_READ].split())
    if count_tokens(flat) <= MOST:
        return flat
    parts = sentences_and_lines(text[:_READ]) or [flat]
    said, plain = [words_of(part) for part in parts], vocabulary("negation", "fillers")
    told = Counter(word for words in said for word in words if word not in plain)
    weights = [
        sum(told[word] for word in set(words)) / (_SHORT + count_tokens(part)) ** 0.5
        for words, part in zip(said, parts, strict=True)
    ]
    best = max(range(len(parts)), key=lambda place: (weights[place], -place))
    summary = " ".join(parts[best].split())
    for later in range(best + 1, len(parts)):
        if count_tokens(summary) >= FEWEST:
            break
        longer = f"{summary} {' '.join(parts[later].split())}"
        if count_tokens(longer) > MOST and count_tokens(shorten(longer, MOST)) < FEWEST:
            break
        summary = longer
    return shorten(summary, MOST)


def _of_a_path(path: str) -> list[str]:
    """The language of a file by its ending, and the innermost folder that says something."""
    *folders, name = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")] or [""]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    found = [lexicon()["tags"]["extensions"].get(ending)]
    plain = vocabulary("tags", "plain-folders")
    telling = [tag for folder in folders if (tag := _tag(folder)) and tag not in plain and ":" not in tag]
    return [tag for tag in (*found, *telling[-1:]) if tag]


def _tag(name: str) -> str:
    """A name as a tag: small letters, words joined by hyphens; empty for what would be too long."""
    tag = _NOT_OF_A_TAG.sub("-", name.casefold()).strip("-.")
    return tag if len(tag) <= _LONGEST_TAG else ""


@cache
def _topics() -> dict[str, str]:
    return {word: topic for topic, words in lexicon()["tags"]["topics"].items() for word in words}
