"""An encoder for tests: quick, and near where texts share letters."""

import hashlib

import numpy as np


def letters(texts):
    """A quick stand-in for an encoder: hashed character trigrams, so that texts that share words are near."""
    out = np.zeros((len(texts), 32))
    for row, text in enumerate(texts):
        padded = f"  {text.lower()}  "
        for start in range(len(padded) - 2):
            digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=2).digest()
            out[row, digest[0] % 32] += 1 if digest[1] % 2 else -1
    return out
