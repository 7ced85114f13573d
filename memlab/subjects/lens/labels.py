"""Labels for the terms of a score, read from the comments of the policy's text.

A comment at the end of a line labels the outermost form that begins on that line. A comment on a line of its own labels
the next form. The comment ``; words: uses the words of the query`` also assigns the form to the group "words". Labels
are only presentation: comments are no part of any hash, so an edited comment changes no version of a policy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from memlab.kernel.base.printable import count_of
from memlab.kernel.language.policy import Policy
from memlab.kernel.language.reader import Form
from memlab.kernel.language.texts import walk
from memlab.kernel.recall import ScoreExplanation
from memlab.subjects.lens.edit import parsed, sites
from memlab.subjects.lens.highlight import read_tokens

# At most four words before the colon, so that a sentence with a colon in its middle is no group.
_GROUP = re.compile(r"([A-Za-z][\w-]*(?: [\w-]+){0,3}): (\S.*)", re.DOTALL)

# Four decimals are printed: a smaller contribution would read +0.0000.
SMALLEST_SHOWN = 0.00005


class Label(NamedTuple):
    """The words for a term, and the group that it belongs to (empty for none)."""

    text: str = ""
    group: str = ""


class _Comment(NamedTuple):
    """A comment, the line and column where it begins, and whether no code precedes it on the line."""

    text: str
    line: int
    column: int
    alone: bool


def read_labels(policy: Policy) -> Mapping[str, Label]:
    """Return the label of each commented expression of a policy, by the digest of its node."""
    whole = policy if policy._of is None else policy._of[0]
    return _read_labels(whole.source, whole)


# A recall explains each of its hits by one policy. The text is part of the key because policies are equal whatever
# their comments.
@lru_cache(maxsize=64)
def _read_labels(source: str, whole: Policy) -> Mapping[str, Label]:
    """Return the labels of a policy; ``source`` is part of the cache key."""
    parts = parsed(whole)
    nodes = sites(whole)
    labels: dict[str, Label] = {}
    for span, label in _label_forms(source, parts.parts.body).items():
        site = nodes.get(span)
        if site is not None:
            labels.setdefault(site.node.digest, label)
    return labels


def _label_forms(source: str, body: Form) -> dict[tuple[int, int], Label]:
    """Return the labels of the forms of a policy's body, by span."""
    # The first item of a call is the name of its function, which is no expression.
    forms = [form for path, form, _ in walk(body) if not path or path[-1]]
    labels: dict[tuple[int, int], Label] = {}
    continued: _Comment | None = None
    for comment in _read_comments(source):
        if continued:
            comment = comment._replace(text=f"{continued.text} {comment.text}", line=continued.line)
        # A comment that ends with a comma is continued by the next.
        continued = comment if comment.text.endswith(",") else None
        if continued:
            continue
        match = _GROUP.fullmatch(comment.text)
        label = Label(match[2], match[1].lower()) if match else Label(comment.text)
        form = _find_form(source, forms, comment)
        if form is not None and (not comment.alone or (form.start, form.stop) not in labels):
            labels[form.start, form.stop] = label
    return labels


def _find_form(source: str, forms: list[Form], comment: _Comment) -> Form | None:
    """Return the form that a comment describes."""
    for form in forms:
        line = source.count("\n", 0, form.start)
        ends = source.count("\n", 0, form.stop)
        # A sum or a binding that continues below is described by no comment beside its first argument.
        opens = form.head in ("+", "-", "let", "let*") and ends > line
        if comment.alone and line > comment.line:
            # The comment above the whole body describes the policy, not one of its terms.
            return None if form is forms[0] else form
        if not comment.alone and line == comment.line and not opens:
            return form
    return None


def _read_comments(source: str) -> Iterator[_Comment]:
    """Yield the comments of a text, joining lines that start in the same column."""
    pending: _Comment | None = None
    position = last_line = 0
    for kind, text in read_tokens(source, frozenset()):
        if kind == "comment" and text.startswith(";"):
            start = source.rfind("\n", 0, position) + 1
            line, column = source.count("\n", 0, position), position - start
            alone = not source[start:position].strip()
            words = text.lstrip("; ").rstrip()
            if pending and alone and (line, column) == (last_line + 1, pending.column):
                # The line of a comment that stands alone is its last, because it labels what follows.
                anchor = line if pending.alone else pending.line
                pending = pending._replace(text=f"{pending.text} {words}", line=anchor)
            else:
                if pending:
                    yield pending
                pending = _Comment(words, line, column, alone)
            last_line = line
        position += len(text)
    if pending:
        yield pending


def group_terms(explanation: ScoreExplanation) -> tuple[tuple[str, str, float], ...]:
    """Return the group, label and value of each part of a score, largest group first."""
    sums: dict[tuple[str, str], float] = {}
    sizes: dict[str, float] = {}
    for text, value, label, group in explanation.frame.rows():
        key = (group, label or text)
        sums[key] = sums.get(key, 0.0) + value
        sizes[group] = sizes.get(group, 0.0) + value
    parts = [(group, label, value) for (group, label), value in sums.items()]
    parts.sort(key=lambda part: (-abs(sizes[part[0]]), part[0], -abs(part[2])))
    return tuple(parts)


def list_lines(explanation: ScoreExplanation) -> list[tuple[str, float | None]]:
    """Return the lines of a score explanation, each with its value or None."""
    # A group is one line with its sum, and its parts follow. Parts without a group are lines of their own.
    terms = [("", *term) for term in explanation.terms]
    parts = terms if explanation.expressions else explanation.parts
    visible = [part for part in parts if not abs(part[2]) < SMALLEST_SHOWN]
    lines: list[tuple[str, float | None]] = []
    for group, members in groupby(visible, key=lambda part: part[0]):
        values = [(label, value) for _, label, value in members]
        if group:
            lines.append((group, math.fsum(value for _, value in values)))
        lines += [(f"  {label}" if group else label, value) for label, value in values]
    hidden = len(parts) - len(visible)
    if hidden:
        lines.append((f"{count_of(hidden, 'other term')} contributed nothing", None))
    return lines
