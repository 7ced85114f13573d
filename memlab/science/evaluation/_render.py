"""An evaluation as text and as HTML: the leaderboard, or the refusal and its reasons."""

from __future__ import annotations

from html import escape

import numpy as np

from memlab.kernel.base.display import Markup, paragraph, table, text_table, wrap
from memlab.kernel.base.printable import printable
from memlab.science.evaluation._clusters import Estimate
from memlab.science.evaluation._findings import Findings, PolicyValue
from memlab.science.evaluation._gates import rounded, share, untested_sentence

__all__ = [
    "as_html",
    "as_latex",
    "as_text",
    "caption",
    "headline",
    "interval",
    "next_step",
    "number",
    "reasons",
    "remarks",
    "stars",
]


def number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def interval(estimate: Estimate | None) -> str:
    if estimate is None or np.isnan(estimate.low):
        return ""
    return f"[{estimate.low:.3f}, {estimate.high:.3f}]"


def stars(p: float) -> str:
    """``***``, ``**``, ``*`` for an adjusted p below .001, .01 and .05."""
    return "" if np.isnan(p) else "*" * sum(p < threshold for threshold in (0.001, 0.01, 0.05))


def caption(ev: Findings) -> str:
    """What kind of number this is."""
    held = f"{_counted(ev.recalls, 'recall')} in {_counted(ev.clusters, 'cluster')}"
    if ev.settings.measure == "labels":
        return f"mean {ev.settings.metric} by labels, {held}; {ev.settings.level:.0%} intervals: {ev.method}"
    name = "self-normalised" if ev.settings.estimator == "snips" else "Horvitz-Thompson"
    return (
        f"value on logged recalls, long-term effects not modelled: mean reward per recall (top k); {name} inclusion "
        f"weights, {held}; {ev.settings.level:.0%} intervals: {ev.method}"
    )


def headline(ev: Findings) -> str:
    """The finding in one sentence, and the gates that are untested for what has a value."""
    untested = untested_sentence([gate for row in ev.rows if row.value is not None for gate in row.untested])
    return f"{_finding(ev)} {untested}".rstrip()


def _finding(ev: Findings) -> str:
    valued = [row for row in ev.rows if row.value is not None]
    if not valued:
        return "No ranking: this log cannot tell these policies apart, and says why below."
    base = next((row for row in ev.rows if row.policy == ev.baseline), None)
    better = [row.policy for row in ev.rows if row.verdict.startswith("better")]
    worse = [row.policy for row in ev.rows if row.verdict.startswith("worse")]
    if base is None or base.value is None:
        return f"No comparison: {ev.baseline}, which the others are compared to, has no value on this log."
    if len(ev.rows) == 1:
        return f"{base.policy} is worth {number(base.value.value)} a recall."
    if better:
        return f"{_listed(better)} would have done better than {ev.baseline}."
    if worse and len(worse) == len(ev.rows) - 1:
        return f"Nothing would have done better than {ev.baseline}."
    withheld = [row.policy for row in ev.rows if row.value is None]
    if withheld and len(withheld) == len(ev.rows) - 1:
        return f"No ranking: the log has a value for {base.policy} alone, and says below why not for the others."
    return f"Nothing in this log shows a policy to be better than {ev.baseline}."


def reasons(ev: Findings) -> list[tuple[str, str]]:
    """Policies and the reason that they share, for everything that has no value and for every untested gate.

    ``next_step`` says what to do.
    """
    pairs = [(one.policy, f"refused. {one.reason}") for one in ev.refusals]
    pairs += [(row.policy, f"withheld. {gate.finding}") for row in ev.rows for gate in row.closed]
    pairs += [
        (row.policy, f"untested. {gate.finding} {gate.advice}".rstrip()) for row in ev.rows for gate in row.untested
    ]
    shared: dict[str, list[str]] = {}
    for policy, reason in pairs:
        shared.setdefault(reason, []).append(policy)
    return [(_listed(policies), reason) for reason, policies in shared.items()]


_BEFORE_MORE = ("propensities", "balance", "clusters", "independence", "silence", "position", "redundancy")
"""Gates that no number of recalls opens, in the order in which to look at them."""


def next_step(ev: Findings) -> str:
    """The one thing to do where a value is withheld or policies are not told apart; "" where there is nothing."""
    closed = {gate.name: gate for row in reversed(ev.rows) for gate in row.closed}
    first = next((closed[name] for name in _BEFORE_MORE if name in closed), None)
    if first is not None:
        return f"Next: {first.advice or first.finding}"
    short = [row.policy for row in ev.rows if row.closed]
    apart = [row.policy for row in ev.rows if row.verdict == "not separated"]
    if not short and not apart:
        return ""
    if ev.settings.measure == "labels":
        more = "" if ev.needed is None else f" {_enough(ev, 'like these')}."
        return f"Next: label more recalls.{more}"
    wanted = (short or apart)[0]
    challenged = (
        f"show now and then, with its probability logged, what {wanted} would show and {ev.baseline} would not"
        if ev._lab is None
        else f'lab.challenge("{wanted}") shows what tells it from {ev.baseline}'
    )
    alone = "" if ev.needed is None or ev.needed[2] <= ev.recalls else f" {_enough(ev, 'at this probe rate')}."
    return f"Next: {challenged}; memlab.plan says for how many recalls.{alone}"


def _enough(ev: Findings, how: str) -> str:
    assert ev.needed is not None
    first, second, count = ev.needed
    return f"Separating {first} and {second} needs about {rounded(count)} recalls {how}"


def remarks(ev: Findings) -> list[str]:
    lines = []
    if ev.open_windows:
        lines.append(f"{ev.open_windows} recalls whose horizon had not closed are left out.")
    if ev.settings.measure == "feedback" and ev.silent:
        lines.append(f"{share(ev.silent)} of shown items have no feedback and are left out.")
    return lines + list(ev.notes)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def cells(ev: Findings) -> tuple[list[str], list[list[str]]]:
    labels = ev.settings.measure == "labels"
    metrics = list(ev.rows[0].metrics) if labels and ev.rows else []
    head = ["policy", "value", "interval", f"to {ev.baseline}", "interval", "p", ""]
    head += metrics if labels else ["bounds", "probes", "unsupported", "untested gates"]
    rows = []
    for row in ev.rows:
        gap = row.difference
        cell = [
            row.policy,
            number(row.value.value if row.value else None),
            interval(row.value),
            "" if gap is None or np.isnan(gap.value) else f"{gap.value:+.3f}",
            interval(gap),
            "" if np.isnan(row.adjusted) else "<.001" if row.adjusted < 0.001 else f"{row.adjusted:.3f}",
            stars(row.adjusted),
        ]
        if labels:
            cell += [number(row.metrics[name]) for name in metrics]
        else:
            cell += _feedback_cells(row)
        rows.append([*cell, row.kind, row.verdict])
    return [*head, "kind", "verdict"], rows


def _feedback_cells(row: PolicyValue) -> list[str]:
    assert row.measured is not None
    return [
        f"{number(row.lower, 2)}..{number(row.upper, 2)}" if row.upper - row.lower >= 0.005 else "",
        f"{row.measured.probes:,}",
        share(row.measured.unsupported),
        ", ".join(gate.name for gate in row.untested),
    ]


_LEGEND = "p-values are Holm-adjusted; * < .05, ** < .01, *** < .001."


_OPTIONAL = ("untested gates", "bounds", "probes", "kind", "unsupported", "p", "interval")
"""What a narrow terminal has no room for, in this order; of metrics the last first. Untested gates are named above and
below the table too."""


def as_text(ev: Findings, width: int | None = None) -> str:
    """The finding, its table and the reasons; in lines of at most ``width`` characters."""
    parts = [headline(ev), caption(ev)]
    lines = [line for part in parts for line in wrap(part, width)]
    if ev.rows:
        head, rows = cells(ev)
        metrics = [name for name in reversed(head) if ev.settings.measure == "labels" and name in ev.rows[0].metrics]
        optional = [at for name in (*metrics, *_OPTIONAL) for at in reversed(range(len(head))) if head[at] == name]
        left = (0, len(head) - 2, len(head) - 1)
        lines_of_table = text_table(head, rows, left=left, width=width, optional=optional)
        lines += ["", *lines_of_table, *wrap(_LEGEND, width)]
    why = [line for policy, reason in reasons(ev) for line in wrap(f"{policy}: {reason}", width)]
    notes = [line for remark in remarks(ev) for line in wrap(remark, width)]
    for part in (why, notes, wrap(next_step(ev), width) if next_step(ev) else []):
        lines += ["", *part] if part else []
    return "\n".join(lines)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


def as_latex(ev: Findings) -> str:
    """A table of booktabs; all text escaped."""
    head, rows = cells(ev) if ev.rows else (["policy", "verdict"], [])
    left = {"policy", "kind", "verdict"}
    columns = "".join("l" if name in left else "r" for name in head)
    lines = [" & ".join(map(_latex, row)) + r" \\" for row in [head, *rows]]
    refused = [rf"{_latex(one.policy)} & \multicolumn{{{len(head) - 1}}}{{l}}{{refused}} \\" for one in ev.refusals]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_latex(headline(ev))} {_latex(caption(ev))}. {_latex(_LEGEND)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            *refused,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in printable(text)).replace("\n", " ")


def as_html(ev: Findings) -> str:
    title = Markup(
        f"<b>{escape(headline(ev))}</b><br><span style='opacity:.7'>{escape(caption(ev))}</span>",
    )
    head, rows = cells(ev) if ev.rows else ([], [])
    parts: list[str] = [table(title, head, rows, notes=[_LEGEND] if rows else [])]
    why = reasons(ev)
    if why:
        items = "".join(f"<li><b>{escape(policy)}</b>: {escape(reason)}</li>" for policy, reason in why)
        parts.append(f"<ul>{items}</ul>")
    parts += map(paragraph, filter(None, [*remarks(ev), next_step(ev)]))
    return f"<div>{''.join(parts)}</div>"
