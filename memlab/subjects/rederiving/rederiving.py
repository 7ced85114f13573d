"""What a memory has by the words of its text, and what an edit of the text makes of it.

A summary, a fact and inferred tags are read from a text, so another text has others. Steps, triggers and other texts
that came with the first one may repeat its words. ``rederive`` decides for one memory from its fields alone: what can
be read again is rebuilt, what repeats corrected words is corrected with them or dropped, and the rest stays. Nothing is
asked of a state, so the same edit gives the same fields wherever it is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from memlab.kernel.english import STOP_WORDS, vocabulary, words_of
from memlab.kernel.hooks import list_hooks
from memlab.kernel.policies import Pack
from memlab.kernel.schema import MEMORY
from memlab.kernel.verbs.corrections.replacing import FACT, Rederived
from memlab.kernel.verbs.fact_rows import normalize_predicate
from memlab.subjects.fact_rows import fact_text
from memlab.subjects.reading.tags import emotional_weight, summary_of, tags_of

__all__ = ["Wording", "rederive", "retold"]


# -- what an edit did to the words ------------------------------------------------------------------------------------


_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_PATH = re.compile(r"[\w.~-]*(?:/[\w.-]+)+|[\w-]+\.[A-Za-z][A-Za-z0-9]{0,4}\b")
_LONGEST = 2_000
"""Words of a text up to which phrases are aligned: alignment takes quadratic time, 0.2 s for two texts of 2,000."""
_PHRASE = 8
"""Words of a phrase up to which another phrase is taken for its correction; a longer one is another sentence."""
_PLAIN = STOP_WORDS["english"]


class _Word(NamedTuple):
    low: str
    start: int
    stop: int


@dataclass(frozen=True)
class Wording:
    """The words of a text before and after an edit.

    Examples
    --------
    >>> words = Wording("Deploy with make ship", "Deploy with make deploy")
    >>> sorted(words.gone), words.corrected("run make ship twice")
    (['ship'], 'run make deploy twice')
    """

    old: str
    new: str

    @cached_property
    def gone(self) -> frozenset[str]:
        """Words with a meaning of their own that the old text has and the new text lacks, in lower case."""
        left = {word.low for word in self._new}
        return frozenset(
            word.low for word in self._old if word.low not in left and word.low not in _PLAIN
        )

    @cached_property
    def same_words(self) -> bool:
        """Whether both texts say the same words, whatever their marks, cases and plain words are."""
        fresh = {word.low for word in self._new}.difference(word.low for word in self._old)
        return not self.gone and fresh <= _PLAIN

    def quotes(self, text: str) -> frozenset[str]:
        """Return the words of ``text`` that only the old text has."""
        if not self.gone:
            return frozenset()
        low = text.lower()
        # scripts without spaces have no words to compare: there a run of letters may stand within a longer one
        unspaced = {word for word in self.gone if not word.isascii() and word in low}
        return self.gone.intersection(word.low for word in _words(text)) | unspaced

    def corrected(self, text: str) -> str:
        """Return ``text`` with each corrected phrase of the old text replaced by its correction."""
        for phrase, correction in self.corrections:
            text = phrase.sub(correction.replace("\\", r"\\"), text)
        return text

    def named(self, name: str) -> bool:
        """Whether the new text says ``name`` as whole words."""
        return _says(self.new, name)

    def was_named(self, name: str) -> bool:
        """Whether the old text says ``name`` as whole words."""
        return _says(self.old, name)

    @cached_property
    def corrections(self) -> list[tuple[re.Pattern[str], str]]:
        """Phrases of the old text, each with the words that took its place; the longest phrases come first."""
        old, new = self._old, self._new
        if not self.gone or max(len(old), len(new)) > _LONGEST:
            return []
        found: dict[tuple[str, ...], str] = {}
        aligned = SequenceMatcher(
            None, [word.low for word in old], [word.low for word in new], autojunk=False
        )
        for what, start, stop, first, last in aligned.get_opcodes():
            if what != "replace" or max(stop - start, last - first) > _PHRASE:
                continue
            self._correct(found, old[start:stop], new[first:last])
            if stop - start == last - first:
                for one, other in zip(old[start:stop], new[first:last], strict=True):
                    self._correct(found, [one], [other])
        ordered = sorted(found.items(), key=lambda pair: -len(pair[0]))
        return [(_pattern(phrase), said) for phrase, said in ordered]

    def corrected_path(self, path: str) -> str | None:
        """Return ``path`` as the new text writes it; None if the old text names it and the new text does not."""
        if path not in self.old or path in self.new:
            return path
        before, after = set(_PATH.findall(self.old)), set(_PATH.findall(self.new))
        fresh = after - before
        return fresh.pop() if len(fresh) == 1 and before - after == {path} else None

    def _correct(
        self, found: dict[tuple[str, ...], str], old: list[_Word], new: list[_Word]
    ) -> None:
        phrase = tuple(word.low for word in old)
        if self.gone.intersection(phrase):
            found.setdefault(phrase, self.new[new[0].start : new[-1].stop])

    @cached_property
    def _old(self) -> list[_Word]:
        return _words(self.old)

    @cached_property
    def _new(self) -> list[_Word]:
        return _words(self.new)


def _words(text: str) -> list[_Word]:
    return [
        _Word(_low(found.group()), found.start(), found.end()) for found in _TOKEN.finditer(text)
    ]


def _low(word: str) -> str:
    return word.lower().replace("\u2019", "'").removesuffix("'s")


def _says(text: str, name: str) -> bool:
    words = [word.low for word in _words(name)]
    return bool(words) and _pattern(words).search(text) is not None


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    joined = r"[\W_]+".join(re.escape(word).replace("'", "['\u2019]") for word in words)
    return re.compile(rf"(?<![^\W_]){joined}(?![^\W_])", re.IGNORECASE)


_WITHOUT_SUMMARY = ("turn",)
_LONGEST_NAME = 1000
_MOST_WORDS = 8
"""Words of the value of a fact that is read from a sentence of the form of the old one."""
_CLAUSE = re.compile(r"[,;:!?\n]|\.\s")
_QUOTED = 60
"""Characters of a value that a note quotes."""


class Fact(Protocol):
    """A fact that a text states, as the hooks at "read-facts" give it; ``entity``: its value is one."""

    @property
    def subject(self) -> str: ...
    @property
    def predicate(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def entity(self) -> bool: ...


def rederive(
    before: Mapping[str, Any], old: str, new: str, given: Mapping[str, Any], pack: Pack
) -> Rederived:
    """Return what the fields of a memory become when its text changes from ``old`` to ``new``.

    Parameters
    ----------
    before
        The fields of the memory as they are, by name; fields without a value may be missing.
    old, new
        Its text before and after the edit. They are equal where only fields are edited.
    given
        The fields that the edit itself sets, which stay as given.
    pack
        The live pack: its settings ``write-summary`` and ``infer-tags`` decide what is read from a text.
    """
    work = _Work(dict(before) | dict(given), frozenset(given), Wording(old, new))
    if old != new:
        _fact(work, before)
        _texts(work)
        _files(work)
    _tags(work, before, pack)
    _summary(work, before, pack)
    _feeling(work, before)
    columns = {
        name: value
        for name, value in work.after.items()
        if name not in given and _value(value) != _value(before.get(name))
    }
    columns |= {name: None for name in work.removed if before.get(name) is not None}
    return Rederived(
        columns,
        tuple(dict.fromkeys(work.rebuilt)),
        tuple(dict.fromkeys(work.dropped)),
        tuple(work.notes),
    )


def retold(before: Mapping[str, Any], given: Mapping[str, Any], text: str) -> str | None:
    """Return the sentence of a fact with the values that an edit gives; None if its text is not made of its fields."""
    if not any(name in given for name in FACT):
        return None
    after = {name: given.get(name, before.get(name)) for name in FACT}
    if given.get("value") is not None and "object" not in given:
        after["object"] = None
    was, now = _values(before), _values(after)
    if was is None or now is None or was == now:
        return None
    called = next(
        (form for form in _forms(was[0]) if text == fact_text(form, was[1], was[2])), None
    )
    if called is None:
        return None
    subject = called if now[0] == was[0] else now[0]
    return fact_text(subject, now[1], now[2])


class _Work:
    """The fields of one memory while they are decided, and what was decided."""

    def __init__(self, after: dict[str, Any], given: frozenset[str], words: Wording) -> None:
        self.after, self.given, self.words = after, given, words
        self.rebuilt: list[str] = []
        self.dropped: list[str] = []
        self.removed: list[str] = []
        self.notes: list[str] = []

    def rebuild(self, name: str, value: Any, note: str = "") -> None:
        before = self.after.get(name)
        self.after[name] = value
        self.rebuilt.append(name)
        self.notes.append(note or f"{name}: {_shown(before)} -> {_shown(value)}.")

    def drop(self, name: str, note: str) -> None:
        self.after.pop(name, None)
        self.removed.append(name)
        self.dropped.append(name)
        self.notes.append(note)


# -- the fact that a text states --------------------------------------------------------------------------------------


def _fact(work: _Work, before: Mapping[str, Any]) -> None:
    """Read subject, predicate and value again, unless the edit gives them."""
    was = _values(before)
    if work.given.intersection(FACT):
        _exclusive(work, before)
        return
    if was is None:
        _names(work, [name for name in FACT if name != "predicate"])
        return
    subject, predicate, value = was
    words = work.words
    column = "object" if before.get("object") is not None else "value"
    same_form = _in_same_form(words, was)
    stated = None if same_form is not None else _stated(words.new, subject, predicate)
    if same_form is not None:
        _replace(work, column, value, same_form)
    elif stated is not None:
        _restate(work, stated, was, column)
    elif words.same_words or (
        words.named(value) and not _denies_anew(words) and _about(words, subject)
    ):
        return
    else:
        for name in FACT:
            if before.get(name) is not None:
                work.drop(
                    name,
                    f"{name}: {_shown(before[name])} dropped, because the new text does not state it.",
                )


def _exclusive(work: _Work, before: Mapping[str, Any]) -> None:
    """Let a value that is given take the place of the object, and the other way round."""
    for one, other in (("value", "object"), ("object", "value")):
        if (
            work.after.get(one) is not None
            and one in work.given
            and other not in work.given
            and before.get(other)
        ):
            work.drop(
                other, f"{other}: {_shown(before[other])} dropped, because the edit gives a {one}."
            )


def _replace(work: _Work, column: str, value: str, other: str) -> None:
    if other != value:
        work.rebuild(column, other)


def _restate(work: _Work, fact: Fact, was: tuple[str, str, str], column: str) -> None:
    subject, predicate, value = was
    if fact.subject.casefold() != subject.casefold():
        work.rebuild("subject", fact.subject)
    same = (
        normalize_predicate(fact.predicate) == predicate.partition(":")[0]
        or fact.predicate == predicate
    )
    if not same:
        work.rebuild("predicate", fact.predicate)
        if (target := "object" if fact.entity else "value") != column:
            work.after.pop(column, None)
            work.removed.append(column)
            column = target
            work.rebuild(column, fact.value)
            return
    if fact.value != value:
        work.rebuild(column, fact.value)


def _in_same_form(words: Wording, was: tuple[str, str, str]) -> str | None:
    """The value in a new sentence that differs from the old one in its value alone; None if it differs elsewhere."""
    subject, predicate, value = was
    for form in _forms(subject):
        begins, found, ends = fact_text(form, predicate, "\0").partition("\0")
        if not found or words.old != f"{begins}{value}{ends}":
            continue
        stop = len(words.new) - len(ends)
        for close in ("", "."):
            if words.new.startswith(begins) and words.new.endswith(ends + close):
                other = words.new[len(begins) : stop - len(close)].strip()
                if other and _is_value(other):
                    return other
    return None


def _is_value(text: str) -> bool:
    said = words_of(text)
    plain = not _CLAUSE.search(text) and len(text) <= _LONGEST_NAME
    return plain and 0 < len(said) <= _MOST_WORDS and _turns().isdisjoint(said)


def _stated(text: str, subject: str, predicate: str) -> Fact | None:
    """The one fact that a text states of a subject, by this predicate if it states several; None where that is open."""
    found = list(
        dict.fromkeys(
            fact
            for role in ("assistant", "user")
            for read in list_hooks("read-facts")
            for fact in read(text, role)
        )
    )
    found = [fact for fact in found if _is_value(fact.value)]
    own = [fact for fact in found if fact.subject.casefold() == subject.casefold()] or found
    by = [
        fact for fact in own if normalize_predicate(fact.predicate) == predicate.partition(":")[0]
    ] or own
    return by[0] if len({(fact.subject, fact.predicate, fact.value) for fact in by}) == 1 else None


def _denies_anew(words: Wording) -> bool:
    """Whether the new text denies, or tells of a change, in words that the old one lacks."""
    return bool(_turns().intersection(words_of(words.new)).difference(words_of(words.old)))


def _turns() -> frozenset[str]:
    return vocabulary("conflicts", "denying", "changing") | {"longer", "anymore"}


def _about(words: Wording, subject: str) -> bool:
    said = frozenset(words_of(words.new))
    return words.named(subject) or (
        subject.casefold() == "user" and bool(said & vocabulary("first-person", "pronouns"))
    )


def _values(fields: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Subject, predicate, and object or value; None for what is no fact."""
    subject, predicate = fields.get("subject"), fields.get("predicate")
    value = fields.get("object") or fields.get("value")
    return (
        None
        if subject is None or predicate is None or value is None
        else (subject, predicate, value)
    )


def _forms(subject: str) -> tuple[str, ...]:
    return subject, f"The {subject}"


# -- texts and paths that repeat the words ----------------------------------------------------------------------------


def _names(work: _Work, names: Iterable[str]) -> None:
    """Correct names that repeat the words of the text; drop those that cannot be corrected."""
    for name in names:
        value = work.after.get(name)
        if value is None or name in work.given or not work.words.quotes(value):
            continue
        other = work.words.corrected(value)
        if work.words.quotes(other):
            work.drop(name, _repeats(name, work.words.quotes(other)))
        else:
            work.rebuild(name, other)


def _texts(work: _Work) -> None:
    """Correct what a procedure consists of; drop a context, a reason and operations that repeat corrected words."""
    _names(work, ["title"])
    for name in ("steps", "prerequisites", "warnings", "triggers"):
        entries = work.after.get(name)
        if not entries or name in work.given or not any(work.words.quotes(one) for one in entries):
            continue
        others = [work.words.corrected(one) for one in entries]
        left = frozenset(word for one in others for word in work.words.quotes(one))
        if not left:
            work.rebuild(name, others)
        elif name == "triggers" and (kept := [one for one in others if not work.words.quotes(one)]):
            work.rebuild(name, kept)
        else:  # a procedure with one step missing would be another procedure
            work.drop(name, _repeats(name, left))
    for name in ("context", "reason", "operations"):
        value = work.after.get(name)
        if value is not None and name not in work.given and (quoted := work.words.quotes(value)):
            work.drop(name, _repeats(name, quoted))


def _repeats(name: str, quoted: Iterable[str]) -> str:
    said = ", ".join(sorted(quoted)[:3])
    return f"{name}: dropped, because it repeats words that the new text lacks ({said}). Give {name}= to keep it."


def _files(work: _Work) -> None:
    """Correct the paths that the old text names and the new text writes otherwise."""
    paths = work.after.get("files")
    if not paths or "files" in work.given:
        return
    others = [other for path in paths if (other := work.words.corrected_path(path)) is not None]
    if others == list(paths):
        return
    if others:
        work.rebuild("files", others)
    else:
        work.drop(
            "files", f"files: {_shown(paths)} dropped, because the new text does not name them."
        )


# -- what is inferred -------------------------------------------------------------------------------------------------


def _tags(work: _Work, before: Mapping[str, Any], pack: Pack) -> None:
    """Infer tags again; those that only the old words or paths gave go, and what was given by hand stays."""
    if "tags" in work.given or work.after.get("kind") == "turn":
        return
    how, words = str(pack.settings["infer-tags"]), work.words
    was = list(before.get("tags") or ())
    inferred = _inferred(words.old, before, how), _inferred(words.new, work.after, how)
    kept = [
        tag
        for tag in was
        if (tag not in inferred[0] or tag in inferred[1]) and not _only_old(words, tag, inferred)
    ]
    tags = list(dict.fromkeys([*kept, *inferred[1]]))
    if tags == was:
        return
    left, fresh = [tag for tag in was if tag not in tags], [tag for tag in tags if tag not in was]
    if tags:
        said = [f"{_shown(left)} dropped"] * bool(left) + [f"{_shown(fresh)} added"] * bool(fresh)
        work.rebuild("tags", tags, f"tags: {', '.join(said)}.")
    else:
        work.drop("tags", f"tags: {_shown(left)} dropped, because only the old words gave them.")


def _inferred(text: str, fields: Mapping[str, Any], how: str) -> list[str]:
    if how == "off":
        return []
    entities = (fields.get("subject"), fields.get("object")) if how == "all" else ()
    return tags_of(text if how == "all" else "", fields.get("files") or (), entities)


def _only_old(words: Wording, tag: str, inferred: tuple[list[str], list[str]]) -> bool:
    """Whether a tag consists of words of the old text of which one is gone; what is inferred again stays."""
    return tag not in inferred[1] and bool(words.quotes(tag)) and words.was_named(tag)


def _summary(work: _Work, before: Mapping[str, Any], pack: Pack) -> None:
    """Write the summary again where the pack writes summaries or a rule wrote the old one; else drop it."""
    words, was = work.words, before.get("summary")
    steps = work.after.get("steps")
    if "summary" in work.given or (
        words.old == words.new and not (was is not None and "steps" in work.given)
    ):
        return
    told = bool(pack.settings["write-summary"]) or (
        was is not None and was == summary_of(words.old)
    )
    told = told and not steps and work.after.get("kind") not in _WITHOUT_SUMMARY
    if told:
        fresh = summary_of(words.new)
        if fresh != was:
            work.rebuild("summary", fresh, "summary: rebuilt from the new text.")
    elif was is not None:
        why = "the steps tell the procedure" if steps else "it sums up the old text"
        work.drop("summary", f"summary: dropped, because {why}. Give summary= to keep it.")


def _feeling(work: _Work, before: Mapping[str, Any]) -> None:
    """Weigh a feeling again whose weight was read from the old text."""
    words, default = work.words, MEMORY["emotional_weight"].default
    was = before.get("emotional_weight", default)
    if (
        words.old == words.new
        or "emotional_weight" in work.given
        or before.get("kind") != "feeling"
    ):
        return
    if (
        was == (emotional_weight(words.old) or default)
        and (fresh := emotional_weight(words.new) or default) != was
    ):
        work.rebuild("emotional_weight", fresh)


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else value


def _shown(value: Any) -> str:
    text = (
        "nothing"
        if value is None
        else ", ".join(map(str, value))
        if isinstance(value, list | tuple)
        else str(value)
    )
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}\u2026"
