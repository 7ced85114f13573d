"""Measure what linking costs as a lab grows: processor seconds for each further block of memories.

    python experiments/linking_scale.py --size 70000 --block 10000

Short statements about a code base with one of six tags are remembered 500 at a time under a pack that links at writing.
The ratio is that of a block to the first one.
"""

from __future__ import annotations

import random
import time

from measuring import positive
from results import Results
from writing import draw_sentences

import memlab

TAGS = ("infra", "billing", "search", "interface", "auth", "deploy")
_CALL = 500
"""Memories per call, as an agent's import has."""


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--size", type=positive, default=70_000)
    parser.add_argument("--block", type=positive, default=10_000)
    parser.add_argument("--pack", default="associative")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    results = Results("linking_scale", arguments)
    texts, drawn = draw_sentences(arguments.seed), random.Random(arguments.seed)
    rows = []
    with memlab.open(pack=arguments.pack) as lab:
        for size in range(0, arguments.size, arguments.block):
            began = time.process_time()
            for _ in range(0, arguments.block, _CALL):
                part = [{"text": next(texts), "tags": [drawn.choice(TAGS)]} for _ in range(_CALL)]
                lab.remember(part, linking="now")
            seconds = time.process_time() - began
            rows.append({"before": size, "seconds": round(seconds, 2)})
            rows[-1]["ratio"] = round(seconds / rows[0]["seconds"], 2)
            print(rows[-1], flush=True)
    results.save(rows)


if __name__ == "__main__":
    main()
