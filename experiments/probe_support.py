"""Measure the cost of exploration items and the support that they give other policies.

    python experiments/probe_support.py locomo-dev5.json

The default pack recalls every question with and without exploration items (probes), all logged. Printed are recall@10
of the results, recall with the probe included, and the share of another policy's top ten that the log supports. An item
is supported if it is among the results or can be drawn as a probe.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from results import Results, plot_dots

import memlab
from memlab.io.ingest import conversation, read_locomo

OTHERS = {"bm25": "lexical", "dense": "similarity"}


def build_pack(rate: float, depth: int) -> str:
    """Return the default pack with this rate and depth of probes."""
    return (
        f"(pack probing :inherits memlab) (setting probe-rate {rate}) (setting probe-depth {depth})"
    )


def measure_support(path: Path, rate: float, depth: int) -> dict[str, float]:
    """Return the recall of the results and of all shown items, and the support of each policy."""
    collected: dict[str, list[float]] = {
        "results": [],
        "shown": [],
        **{name: [] for name in OTHERS},
    }
    for benchmark in read_locomo(path):
        with memlab.open(pack=build_pack(rate, depth)) as lab:
            conversation(lab, benchmark.conversation, project="p")
            ids = dict(lab.memories.select("ref", "id").iter_rows())
            for question in benchmark.questions:
                if question.category == 5 or not question.evidence:
                    continue
                hits = lab.recall(
                    question.text,
                    project="p",
                    limit=10,
                    at=benchmark.conversation.end,
                    explore=True,
                )
                gold = {ids[ref] for ref in question.evidence}
                collected["results"].append(
                    len(gold & {hit.id for hit in hits if not hit.probe}) / len(gold)
                )
                collected["shown"].append(len(gold & set(hits.ids)) / len(gold))
                for name, feature in OTHERS.items():
                    ten = np.argsort(-hits.slate.numbers[feature], kind="stable")[:10]
                    collected[name].append(float((hits.slate.inclusion[ten] > 0).mean()))
    return {name: float(np.mean(values)) for name, values in collected.items()}


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("path", type=Path)
    arguments = parser.parse_args()
    results = Results("probe_support", arguments, data=[arguments.path])
    rows = []
    print(
        f"{'rate':>5}{'depth':>7}{'recall@10':>11}{'all shown':>11}{'bm25 supported':>16}{'dense supported':>17}"
    )
    for rate, depth in ((0.0, 30), (0.2, 30), (1.0, 30), (1.0, 90)):
        metrics = measure_support(arguments.path, rate, depth)
        rows.append({"rate": rate, "depth": depth, **metrics})
        print(
            f"{rate:>5}{depth:>7}{metrics['results']:>11.3f}{metrics['shown']:>11.3f}{metrics['bm25']:>16.2f}{metrics['dense']:>17.2f}"
        )
    points = [
        {
            "probe": f"rate {row['rate']}, depth {row['depth']}",
            "policy": name,
            "supported": row[name],
        }
        for row in rows
        for name in OTHERS
    ]
    results.save(
        rows,
        plot_dots(
            points,
            label="probe",
            value="supported",
            group="policy",
            title="Exploration lets a log judge other policies",
        ),
    )


if __name__ == "__main__":
    main()
