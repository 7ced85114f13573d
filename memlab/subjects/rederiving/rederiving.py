"""Fields that are derived from a text, and their update when the text is edited.

A summary, a fact and inferred tags are read from a text, so they change with it. Steps, triggers
and other texts of the same memory may repeat its words. ``rederive`` decides for one memory from
its fields alone. Derived fields are rebuilt, repeated words are corrected or dropped, and other
fields stay. No state is read, so the same edit gives the same fields everywhere.
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

# The words of a text before and after an edit.


# Words and paths in a text.
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
# A search starts only where a word begins, so that a long word takes linear time.
_PATH = re.compile(
    r"(?<![\w.~-])[\w.~-]*+(?:/[\w.-]+)+|(?<![\w-])[\w-]++\.[A-Za-z][A-Za-z0-9]{0,4}\b"
)
_LONGEST = 2_000
"""Maximum words of texts that are aligned: alignment is quadratic and takes 0.2 s for 2,000 words."""
_PHRASE = 8
"""Maximum words of a phrase that is a correction of another; a longer one is another sentence."""
# Words whose change does not count as a change of the text.
_PLAIN = STOP_WORDS["english"]


class _Word(NamedTuple):
    """A word in lower case and its position in a text."""

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
        """The content words of the old text that the new text lacks, in lower case."""
        new_words = {word.low for word in self._new}
        return frozenset(
            word.low for word in self._old if word.low not in new_words and word.low not in _PLAIN
        )

    @cached_property
    def same_words(self) -> bool:
        """Whether both texts have the same content words."""
        added = {word.low for word in self._new}.difference(word.low for word in self._old)
        return not self.gone and added <= _PLAIN

    def quotes(self, text: str) -> frozenset[str]:
        """Return the words of `text` that the old text has and the new text lacks."""
        if not self.gone:
            return frozenset()
        low = text.lower()
        # scripts without spaces have no separate words, so a word may be part of a longer run of letters
        unspaced = {word for word in self.gone if not word.isascii() and word in low}
        return self.gone.intersection(word.low for word in _split_words(text)) | unspaced

    def corrected(self, text: str) -> str:
        """Return `text` with old phrases replaced by their new wording."""
        for phrase, correction in self.corrections:
            text = phrase.sub(correction.replace("\\", r"\\"), text)
        return text

    def new_contains(self, name: str) -> bool:
        """Return whether the new text contains `name` as whole words."""
        return _contains_name(self.new, name)

    def old_contains(self, name: str) -> bool:
        """Return whether the old text contains `name` as whole words."""
        return _contains_name(self.old, name)

    @cached_property
    def corrections(self) -> list[tuple[re.Pattern[str], str]]:
        """Patterns of replaced phrases with their new wording, the longest phrase first."""
        # Replaced phrases of equal length are also aligned word by word, because texts repeat single words.
        old, new = self._old, self._new
        if not self.gone or max(len(old), len(new)) > _LONGEST:
            return []
        by_phrase: dict[tuple[str, ...], str] = {}
        aligned = SequenceMatcher(
            None, [word.low for word in old], [word.low for word in new], autojunk=False
        )
        for operation, start, stop, first, last in aligned.get_opcodes():
            if operation != "replace" or max(stop - start, last - first) > _PHRASE:
                continue
            self._correct(by_phrase, old[start:stop], new[first:last])
            if stop - start == last - first:
                for old_word, new_word in zip(old[start:stop], new[first:last], strict=True):
                    self._correct(by_phrase, [old_word], [new_word])
        ordered = sorted(by_phrase.items(), key=lambda pair: -len(pair[0]))
        return [(_compile_phrase(phrase), correction) for phrase, correction in ordered]

    def corrected_path(self, path: str) -> str | None:
        """Return `path` as the new text writes it, or None if only the old text names it."""
        if path not in self.old or path in self.new:
            return path
        before, after = set(_PATH.findall(self.old)), set(_PATH.findall(self.new))
        added = after - before
        return added.pop() if len(added) == 1 and before - after == {path} else None

    def _correct(
        self, by_phrase: dict[tuple[str, ...], str], old: list[_Word], new: list[_Word]
    ) -> None:
        """Record the new wording of a phrase if the edit removed one of the phrase's words."""
        phrase = tuple(word.low for word in old)
        if self.gone.intersection(phrase):
            by_phrase.setdefault(phrase, self.new[new[0].start : new[-1].stop])

    @cached_property
    def _old(self) -> list[_Word]:
        """The words of the old text, with their positions."""
        return _split_words(self.old)

    @cached_property
    def _new(self) -> list[_Word]:
        """The words of the new text, with their positions."""
        return _split_words(self.new)


def _split_words(text: str) -> list[_Word]:
    """Return the words of a text, with their positions."""
    return [
        _Word(_fold_word(match.group()), match.start(), match.end())
        for match in _TOKEN.finditer(text)
    ]


def _fold_word(word: str) -> str:
    """Return a word in lower case without its possessive ending."""
    return word.lower().replace("\u2019", "'").removesuffix("'s")


def _contains_name(text: str, name: str) -> bool:
    """Return whether a text contains a name as whole words."""
    words = [word.low for word in _split_words(name)]
    return bool(words) and _compile_phrase(words).search(text) is not None


def _compile_phrase(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of whole words in sequence, with only spaces or punctuation between them, in any case."""
    joined = r"[\W_]+".join(re.escape(word).replace("'", "['\u2019]") for word in words)
    return re.compile(rf"(?<![^\W_]){joined}(?![^\W_])", re.IGNORECASE)


# Kinds without a summary, limits of a value that is read from a sentence, and marks that end a
# value. A longer value is a clause of its own.
_WITHOUT_SUMMARY = ("turn",)
_LONGEST_NAME = 1000
_MOST_WORDS = 8
_CLAUSE = re.compile(r"[,;:!?\n]|\.\s")
_QUOTED = 60
"""Maximum characters of a value in a note."""


class Fact(Protocol):
    """A fact that a text states, as hooks at "read-facts" return it.

    ``entity`` means that the value is an entity.
    """

    @property
    def subject(self) -> str:
        """The subject of the fact."""

    @property
    def predicate(self) -> str:
        """The predicate of the fact."""

    @property
    def value(self) -> str:
        """The value of the fact."""

    @property
    def entity(self) -> bool:
        """Whether the value is an entity."""


def rederive(
    before: Mapping[str, Any], old: str, new: str, edited: Mapping[str, Any], pack: Pack
) -> Rederived:
    """Derive the fields of a memory again after a change of its text to `new`.

    Parameters
    ----------
    before
        The present fields of the memory, by name; fields without a value may be missing.
    old, new
        The text before and after the edit; equal if only fields are edited.
    edited
        The fields that the edit sets itself, which are kept.
    pack
        The active pack, whose settings ``write-summary`` and ``infer-tags`` decide what is derived.
    """
    work = _Work(dict(before) | dict(edited), frozenset(edited), Wording(old, new))
    if old != new:
        _rederive_fact(work, before)
        _correct_texts(work)
        _correct_files(work)
    _rederive_tags(work, before, pack)
    _rederive_summary(work, before, pack)
    _rederive_feeling(work, before)
    columns = {
        name: value
        for name, value in work.after.items()
        if name not in edited and _freeze_value(value) != _freeze_value(before.get(name))
    }
    columns |= {name: None for name in work.removed if before.get(name) is not None}
    return Rederived(
        columns,
        tuple(dict.fromkeys(work.rebuilt)),
        tuple(dict.fromkeys(work.dropped)),
        tuple(work.notes),
    )


def retell(before: Mapping[str, Any], edited: Mapping[str, Any], text: str) -> str | None:
    """Return a fact's sentence with edited values, or None for an unrelated text.

    Return None if ``text`` was not made from the fact's fields.
    """
    if not any(name in edited for name in FACT):
        return None
    after = {name: edited.get(name, before.get(name)) for name in FACT}
    if edited.get("value") is not None and "object" not in edited:
        after["object"] = None
    old_fact, new_fact = _fact_values(before), _fact_values(after)
    if old_fact is None or new_fact is None or old_fact == new_fact:
        return None
    named_subject = next(
        (
            form
            for form in _subject_forms(old_fact[0])
            if text == fact_text(form, old_fact[1], old_fact[2])
        ),
        None,
    )
    if named_subject is None:
        return None
    subject = named_subject if new_fact[0] == old_fact[0] else new_fact[0]
    return fact_text(subject, new_fact[1], new_fact[2])


class _Work:
    """The fields of one memory while they are derived again, with notes."""

    def __init__(self, after: dict[str, Any], edited: frozenset[str], words: Wording) -> None:
        self.after, self.given, self.words = after, edited, words
        self.rebuilt: list[str] = []
        self.dropped: list[str] = []
        self.removed: list[str] = []
        self.notes: list[str] = []

    def rebuild(self, name: str, value: Any, note: str = "") -> None:
        """Set a derived field, and note the old and new value."""
        before = self.after.get(name)
        self.after[name] = value
        self.rebuilt.append(name)
        self.notes.append(note or f"{name}: {_quote_value(before)} -> {_quote_value(value)}.")

    def drop(self, name: str, note: str) -> None:
        """Remove a field, and add the reason to the notes."""
        self.after.pop(name, None)
        self.removed.append(name)
        self.dropped.append(name)
        self.notes.append(note)


# The fact that a text states.


def _rederive_fact(work: _Work, before: Mapping[str, Any]) -> None:
    """Derive subject, predicate and value from the new text, or drop them if it does not state them.

    Parts that the edit sets are left unchanged.
    """
    # A sentence of the same form is the most reliable reading, then a single fact that rules find.
    old_fact = _fact_values(before)
    if work.given.intersection(FACT):
        _clear_other_value(work, before)
        return
    if old_fact is None:
        _correct_names(work, [name for name in FACT if name != "predicate"])
        return
    subject, predicate, value = old_fact
    words = work.words
    column = "object" if before.get("object") is not None else "value"
    same_form = _read_same_form(words, old_fact)
    stated = None if same_form is not None else _read_single_fact(words.new, subject, predicate)
    if same_form is not None:
        _replace_value(work, column, value, same_form)
    elif stated is not None:
        _restate_fact(work, stated, old_fact, column)
    elif words.same_words or (
        words.new_contains(value) and not _is_new_denial(words) and _is_about(words, subject)
    ):
        return
    else:
        for name in FACT:
            if before.get(name) is not None:
                work.drop(
                    name,
                    f"{name}: {_quote_value(before[name])} dropped, because the new text does not state it.",
                )


def _clear_other_value(work: _Work, before: Mapping[str, Any]) -> None:
    """Drop a fact's object after an edit of the value, or its value after a new object."""
    for column, other_column in (("value", "object"), ("object", "value")):
        if (
            work.after.get(column) is not None
            and column in work.given
            and other_column not in work.given
            and before.get(other_column)
        ):
            work.drop(
                other_column,
                f"{other_column}: {_quote_value(before[other_column])} dropped, because the edit gives a {column}.",
            )


def _replace_value(work: _Work, column: str, value: str, other: str) -> None:
    """Set a column of a fact to another value if the value differs."""
    if other != value:
        work.rebuild(column, other)


def _restate_fact(work: _Work, fact: Fact, old_fact: tuple[str, str, str], column: str) -> None:
    """Set the parts of a fact that the new text states differently."""
    subject, predicate, value = old_fact
    if fact.subject.casefold() != subject.casefold():
        work.rebuild("subject", fact.subject)
    is_same_predicate = (
        normalize_predicate(fact.predicate) == predicate.partition(":")[0]
        or fact.predicate == predicate
    )
    if not is_same_predicate:
        work.rebuild("predicate", fact.predicate)
        if (target := "object" if fact.entity else "value") != column:
            work.after.pop(column, None)
            work.removed.append(column)
            column = target
            work.rebuild(column, fact.value)
            return
    if fact.value != value:
        work.rebuild(column, fact.value)


def _read_same_form(words: Wording, old_fact: tuple[str, str, str]) -> str | None:
    """Return the new value if the new sentence differs from the old one in the value only, or None."""
    subject, predicate, value = old_fact
    for form in _subject_forms(subject):
        prefix, separator, suffix = fact_text(form, predicate, "\0").partition("\0")
        if not separator or words.old != f"{prefix}{value}{suffix}":
            continue
        stop = len(words.new) - len(suffix)
        for close in ("", "."):
            if words.new.startswith(prefix) and words.new.endswith(suffix + close):
                candidate = words.new[len(prefix) : stop - len(close)].strip()
                if candidate and _is_value(candidate):
                    return candidate
    return None


def _is_value(text: str) -> bool:
    """Return whether a text is short and has no clause, denial or change, so that it can be the value of a fact."""
    words = words_of(text)
    is_plain = not _CLAUSE.search(text) and len(text) <= _LONGEST_NAME
    return is_plain and 0 < len(words) <= _MOST_WORDS and _change_words().isdisjoint(words)


def _read_single_fact(text: str, subject: str, predicate: str) -> Fact | None:
    """Return the one fact that a text states, preferably about a subject, or None for no or several facts.

    If there are several, those with the same predicate are preferred.
    """
    facts = list(
        dict.fromkeys(
            fact
            for role in ("assistant", "user")
            for read in list_hooks("read-facts")
            for fact in read(text, role)
        )
    )
    facts = [fact for fact in facts if _is_value(fact.value)]
    of_subject = [fact for fact in facts if fact.subject.casefold() == subject.casefold()] or facts
    candidates = [
        fact
        for fact in of_subject
        if normalize_predicate(fact.predicate) == predicate.partition(":")[0]
    ] or of_subject
    return (
        candidates[0]
        if len({(fact.subject, fact.predicate, fact.value) for fact in candidates}) == 1
        else None
    )


def _is_new_denial(words: Wording) -> bool:
    """Return whether the new text has a word of denial or change that the old text lacks."""
    return bool(_change_words().intersection(words_of(words.new)).difference(words_of(words.old)))


def _change_words() -> frozenset[str]:
    """Return the words that express a denial or a change."""
    return vocabulary("conflicts", "denying", "changing") | {"longer", "anymore"}


def _is_about(words: Wording, subject: str) -> bool:
    """Return whether the new text is about a subject."""
    words_said = frozenset(words_of(words.new))
    return words.new_contains(subject) or (
        subject.casefold() == "user" and bool(words_said & vocabulary("first-person", "pronouns"))
    )


def _fact_values(fields: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return a fact's subject, predicate and object or value, or None for other memories."""
    subject, predicate = fields.get("subject"), fields.get("predicate")
    value = fields.get("object") or fields.get("value")
    return (
        None
        if subject is None or predicate is None or value is None
        else (subject, predicate, value)
    )


def _subject_forms(subject: str) -> tuple[str, ...]:
    """Return the forms in which a sentence may name a subject."""
    return subject, f"The {subject}"


# Texts and paths that repeat words of the text.


def _correct_names(work: _Work, names: Iterable[str]) -> None:
    """Correct fields that repeat words which an edit replaced, and drop fields that cannot be corrected."""
    for name in names:
        value = work.after.get(name)
        if value is None or name in work.given or not work.words.quotes(value):
            continue
        correction = work.words.corrected(value)
        if work.words.quotes(correction):
            work.drop(name, _note_repeated(name, work.words.quotes(correction)))
        else:
            work.rebuild(name, correction)


def _correct_texts(work: _Work) -> None:
    """Correct or drop text fields that quote words that an edit replaced.

    The other texts are the context, the reason and operations.
    """
    _correct_names(work, ["title"])
    for name in ("steps", "prerequisites", "warnings", "triggers"):
        entries = work.after.get(name)
        if (
            not entries
            or name in work.given
            or not any(work.words.quotes(entry) for entry in entries)
        ):
            continue
        corrections = [work.words.corrected(entry) for entry in entries]
        remaining = frozenset(word for entry in corrections for word in work.words.quotes(entry))
        if not remaining:
            work.rebuild(name, corrections)
        elif name == "triggers" and (
            clean := [entry for entry in corrections if not work.words.quotes(entry)]
        ):
            work.rebuild(name, clean)
        else:  # a procedure without one of its steps would be wrong
            work.drop(name, _note_repeated(name, remaining))
    for name in ("context", "reason", "operations"):
        value = work.after.get(name)
        if value is not None and name not in work.given and (quoted := work.words.quotes(value)):
            work.drop(name, _note_repeated(name, quoted))


def _note_repeated(name: str, quoted: Iterable[str]) -> str:
    """Return the note about a field that was dropped for quoting outdated words."""
    listing = ", ".join(sorted(quoted)[:3])
    return f"{name}: dropped, because it repeats words that the new text lacks ({listing}). Give {name}= to keep it."


def _correct_files(work: _Work) -> None:
    """Correct a file path that the new text spells differently, and drop paths that only the old text names."""
    paths = work.after.get("files")
    if not paths or "files" in work.given:
        return
    corrected = [
        corrected_path
        for path in paths
        if (corrected_path := work.words.corrected_path(path)) is not None
    ]
    if corrected == list(paths):
        return
    if corrected:
        work.rebuild("files", corrected)
    else:
        work.drop(
            "files",
            f"files: {_quote_value(paths)} dropped, because the new text does not name them.",
        )


# Tags, summary and feeling.


def _rederive_tags(work: _Work, before: Mapping[str, Any], pack: Pack) -> None:
    """Infer tags from the new text, drop tags of the old text, and keep manual tags."""
    if "tags" in work.given or work.after.get("kind") == "turn":
        return
    mode, words = str(pack.settings["infer-tags"]), work.words
    old_tags = list(before.get("tags") or ())
    inferred = _infer_tags(words.old, before, mode), _infer_tags(words.new, work.after, mode)
    kept_tags = [
        tag
        for tag in old_tags
        if (tag not in inferred[0] or tag in inferred[1])
        and not _is_outdated_tag(words, tag, inferred)
    ]
    tags = list(dict.fromkeys([*kept_tags, *inferred[1]]))
    if tags == old_tags:
        return
    removed, added = (
        [tag for tag in old_tags if tag not in tags],
        [tag for tag in tags if tag not in old_tags],
    )
    if tags:
        notes = [f"{_quote_value(removed)} dropped"] * bool(removed) + [
            f"{_quote_value(added)} added"
        ] * bool(added)
        work.rebuild("tags", tags, f"tags: {', '.join(notes)}.")
    else:
        work.drop(
            "tags", f"tags: {_quote_value(removed)} dropped, because only the old words gave them."
        )


def _infer_tags(text: str, fields: Mapping[str, Any], mode: str) -> list[str]:
    """Return the tags of a text and its fields under the pack's setting ``infer-tags``."""
    if mode == "off":
        return []
    entities = (fields.get("subject"), fields.get("object")) if mode == "all" else ()
    return tags_of(text if mode == "all" else "", fields.get("files") or (), entities)


def _is_outdated_tag(words: Wording, tag: str, inferred: tuple[list[str], list[str]]) -> bool:
    """Return whether a tag repeats words that the new text lacks.

    Tags that are inferred again do not count.
    """
    return tag not in inferred[1] and bool(words.quotes(tag)) and words.old_contains(tag)


def _rederive_summary(work: _Work, before: Mapping[str, Any], pack: Pack) -> None:
    """Rebuild a summary if a rule wrote it or the pack writes summaries; drop any other summary."""
    words, old_summary = work.words, before.get("summary")
    steps = work.after.get("steps")
    if "summary" in work.given or (
        words.old == words.new and not (old_summary is not None and "steps" in work.given)
    ):
        return
    has_summary = bool(pack.settings["write-summary"]) or (
        old_summary is not None and old_summary == summary_of(words.old)
    )
    has_summary = has_summary and not steps and work.after.get("kind") not in _WITHOUT_SUMMARY
    if has_summary:
        new_summary = summary_of(words.new)
        if new_summary != old_summary:
            work.rebuild("summary", new_summary, "summary: rebuilt from the new text.")
    elif old_summary is not None:
        reason = "the steps describe the procedure" if steps else "it summarises the old text"
        work.drop("summary", f"summary: dropped, because {reason}. Give summary= to keep it.")


def _rederive_feeling(work: _Work, before: Mapping[str, Any]) -> None:
    """Recompute a feeling's emotional weight if it was computed from the old text."""
    words, default = work.words, MEMORY["emotional_weight"].default
    old_weight = before.get("emotional_weight", default)
    if (
        words.old == words.new
        or "emotional_weight" in work.given
        or before.get("kind") != "feeling"
    ):
        return
    if (
        old_weight == (emotional_weight(words.old) or default)
        and (new_weight := emotional_weight(words.new) or default) != old_weight
    ):
        work.rebuild("emotional_weight", new_weight)


def _freeze_value(value: Any) -> Any:
    """Return a list as a tuple, and any other value unchanged, for comparison."""
    return tuple(value) if isinstance(value, list | tuple) else value


def _quote_value(value: Any) -> str:
    """Return a value as short text for a note."""
    text = (
        "nothing"
        if value is None
        else ", ".join(map(str, value))
        if isinstance(value, list | tuple)
        else str(value)
    )
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}\u2026"
