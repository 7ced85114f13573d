"""Measure how the weight of word matches changes retrieval: a complete small study, to be copied.

    python experiments/template.py                                # the bundled conversation, a few seconds
    python experiments/template.py --data locomo-dev5.json --weights 0 1 2

Each policy scores a memory by ``similarity + weight * coverage``. Both features are stretched to 0..1 over the candidate
pool. The comparison is with the first weight. Intervals need several conversations; the bundled data has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from results import Results, run_experiment

import memlab
from memlab.science.examples import CONVERSATION

POLICY = "(fn [similarity coverage] (+ (min-max similarity) (* {weight} (min-max coverage))))"


def build_experiment(data: Path, weights: Sequence[float], folder: Path) -> memlab.Experiment:
    """Return the experiment: a policy for each weight."""
    policies = {f"weight-{weight:g}": POLICY.format(weight=weight) for weight in weights}
    return memlab.Experiment("template", policies, data, folder=folder)


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument(
        "--data", type=Path, default=CONVERSATION, help="conversations in LoCoMo's format"
    )
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.5, 1.0, 2.0])
    arguments = parser.parse_args()
    experiment = build_experiment(arguments.data, arguments.weights, arguments.results)
    run_experiment(experiment)
    first, *others = experiment.packs
    for name in others:
        print(f"\n{experiment.compare(name, first)}")


if __name__ == "__main__":
    main()
