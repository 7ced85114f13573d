"""Vectors whose groups are known."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def blobs():
    """Return a function that draws int8 vectors around random directions, and their labels; the last ones are noise."""

    def make_blobs(count, each, dim, *, spread=0.15, seed=0, noise=0):
        dice = np.random.default_rng(seed)
        middle = dice.normal(size=(count, dim))
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        points = np.repeat(middle, each, axis=0) + spread / np.sqrt(dim) * dice.normal(
            size=(count * each, dim)
        )
        points = np.concatenate([points, dice.normal(size=(noise, dim))])
        points *= 127 / np.abs(points).max(axis=1, keepdims=True)
        return np.rint(points).astype(np.int8), np.append(
            np.repeat(np.arange(count), each), np.full(noise, -1)
        )

    return make_blobs
