"""Draw the README's picture from a real run: ``python experiments/readme_figures.py``.

Above, every candidate of one recall on the bundled conversation; below, the ranking before and after one policy was
swapped in the open lab. Writes ``docs/figures/swap.png``; the same code gives the same bytes.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

import memlab
from memlab.demo import CONVERSATION, QUESTION, SLOT, SOURCE
from memlab.demo.figures import STYLE, draw_moves, draw_timeline
from memlab.ingest import conversation, read_locomo

TARGET = Path(__file__).parents[1] / "docs" / "figures" / "swap.png"


def main() -> None:
    (labelled,) = read_locomo(CONVERSATION)
    talk = labelled.conversation
    with memlab.open(clock=memlab.ManualClock(talk.end + timedelta(days=1))) as lab:
        conversation(lab, talk)
        when = dict(lab.memories.select("id", "created").iter_rows())
        before = lab.recall(QUESTION, limit=8)
        lab.policies.install(SLOT, SOURCE, reason="for the picture")
        after = lab.recall(QUESTION, limit=8)
    marked = [hit for hit in before if hit.ref in ("D13:1", "D1:9")]
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 7.4), layout="constrained", facecolor="white")
        figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12)
        above, below = figure.subplots(2, 1, height_ratios=[3, 3])
        draw_timeline(before, when, marked)(above)
        above.set_title(f"“{QUESTION}”  {len(before.slate)} candidates, by when they were said", pad=26)
        draw_moves(before, after)(below)
        below.set_title(f"\n{SLOT}, swapped live:")
        below.text(
            1, 1.04, SOURCE, transform=below.transAxes, family="monospace", size=8.5, ha="right", va="bottom", ma="left"
        )
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(TARGET, dpi=160, metadata={"Software": None})
    print(f"{TARGET.relative_to(TARGET.parents[2])}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
