"""Labels for the terms of a score, read from the comments of the policy's text.

A comment at the end of a line labels the outermost form that begins on that line. A comment on a line of its own labels
the next form. The comment ``; words: uses the words of the query`` also assigns the form to the group "words". Comments
are not part of any hash, so editing a comment creates no new version of a policy.
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

# A group has at most four words before the colon, so that a sentence with a colon in its middle is not read as a group.
_GROUP = re.compile(r"([A-Za-z][\w-]*(?: [\w-]+){0,3}): (\S.*)", re.DOTALL)

# Contributions are printed with four decimals. A smaller contribution would be printed as +0.0000.
SMALLEST_SHOWN = 0.00005


class Label(NamedTuple):
    """The words that describe a term, and the group of the term, "" without a group."""

    text: str = ""
    group: str = ""


class _Comment(NamedTuple):
    """A comment, the line and column of its start, and whether it is alone on its line."""

    text: str
    line: int
    column: int
    alone: bool


def read_labels(policy: Policy) -> Mapping[str, Label]:
    """Return the labels of a policy's commented expressions, by digest of the graph node."""
    whole = policy if policy._of is None else policy._of[0]
    labels = _read_labels(whole.source, whole)
    parent = policy.inherited
    if parent is None or not parent.root.args:
        return labels
    # The policy's own comments come last, because they describe its use of the inherited value.
    title = Label(f"the policy of {parent.name.split('/')[0]}")
    return {**read_labels(parent), parent.root.digest: title, **labels}


# Labels are cached, because a recall explains all its hits with one policy. The text is part of the key, because
# policies that differ in comments are equal.
@lru_cache(maxsize=64)
def _read_labels(source: str, whole: Policy) -> Mapping[str, Label]:
    """Return the labels of the policy ``whole`` by the digest of the labelled node; ``source`` only keys the cache."""
    parts = parsed(whole)
    nodes = sites(whole)
    labels: dict[str, Label] = {}
    for span, label in _label_forms(source, parts.written).items():
        site = nodes.get(span)
        if site is not None:
            labels.setdefault(site.node.digest, label)
    return labels


def _label_forms(source: str, body: Form) -> dict[tuple[int, int], Label]:
    """Return the labels that comments give to forms in a policy's body, by span."""
    # The first item of a call is the name of its function, which is not an expression.
    forms = [form for path, form, _ in walk(body) if not path or path[-1]]
    labels: dict[tuple[int, int], Label] = {}
    continued: _Comment | None = None
    for comment in _read_comments(source):
        if continued:
            comment = comment._replace(text=f"{continued.text} {comment.text}", line=continued.line)
        # A comment that ends with a comma is continued by the next comment.
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
    """Return the form that a comment describes, or None without such a form."""
    for form in forms:
        line = source.count("\n", 0, form.start)
        ends = source.count("\n", 0, form.stop)
        # A comment at the end of the first line of a sum or binding describes an argument, and not the whole form.
        opens = form.head in ("+", "-", "let", "let*") and ends > line
        if comment.alone and line > comment.line:
            # A comment above the whole body describes the policy, and not one of its terms.
            return None if form is forms[0] else form
        if not comment.alone and line == comment.line and not opens:
            return form
    return None


def _read_comments(source: str) -> Iterator[_Comment]:
    """Yield the comments of a text, with consecutive comment lines joined."""
    pending: _Comment | None = None
    position = last_line = 0
    for kind, text in read_tokens(source, frozenset()):
        if kind == "comment" and text.startswith(";"):
            start = source.rfind("\n", 0, position) + 1
            line, column = source.count("\n", 0, position), position - start
            alone = not source[start:position].strip()
            words = text.lstrip("; ").rstrip()
            if pending and alone and (line, column) == (last_line + 1, pending.column):
                # A comment that is alone on its lines gets the number of its last line, because it labels the next form.
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
    """Return the group, label and value of each term, starting with the largest group."""
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
    """Return the lines of a printed score explanation, with their values."""
    # A group is one line with its sum, followed by its terms. Terms without a group have their own lines.
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
