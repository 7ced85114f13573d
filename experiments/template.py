"""Measure how the weight of word matches changes retrieval: a complete small study, to be copied.

    python experiments/template.py                                # the bundled conversation, a few seconds
    python experiments/template.py --data locomo-dev5.json --weights 0 1 2

Each row of the table is one pack, which scores a memory by ``similarity + weight * coverage``. Both features are
stretched to 0..1 over the candidate pool. The figure shows recall@10 against the weight. Intervals need several
conversations; the bundled data has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results import Results, plot_lines

from memlab.io.ingest import LabelledConversation, read_locomo
from memlab.kernel.policies import load_pack
from memlab.science.bench import bench_conversations
from memlab.science.examples import CONVERSATION

PACK = """(pack weighted "Similarity plus {weight} times coverage.")
(defpolicy recall-score [similarity coverage]
  (+ (min-max similarity) (* {weight} (min-max coverage))))"""


def measure(
    conversations: Sequence[LabelledConversation], weights: Sequence[float]
) -> list[dict[str, Any]]:
    """Return one row of metrics for each weight."""
    rows = []
    for weight in weights:
        pack = load_pack(PACK.format(weight=weight))
        (system,) = bench_conversations(conversations, packs=[pack], baselines=False).systems
        rows.append(
            {
                "weight": weight,
                "questions": system.questions,
                "recall@10": round(system.metrics["recall@10"], 4),
                "ndcg@10": round(system.metrics["ndcg@10"], 4),
            }
        )
    return rows


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, default=CONVERSATION, help="conversations in LoCoMo's format"
    )
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.5, 1.0, 2.0])
    arguments = parser.parse_args()
    results = Results("template", arguments, data=[arguments.data])
    rows = measure(read_locomo(arguments.data), arguments.weights)
    print(f"{'weight':>8}{'recall@10':>11}{'nDCG@10':>9}")
    for row in rows:
        print(f"{row['weight']:>8}{row['recall@10']:>11.3f}{row['ndcg@10']:>9.3f}")
    results.save(rows, plot_lines(rows, x="weight", y="recall@10", title="Word matches help"))


if __name__ == "__main__":
    main()
