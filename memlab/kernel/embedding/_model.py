"""A model2vec folder: static token vectors, averaged."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import InputError
from memlab.kernel.base.threads import ThreadLock

__all__ = ["Model"]

_BATCH = 1024
_SHORT = 4096
"""Characters that are read one text after the other: a batch waits for other threads, on a busy machine 2 ms."""


class Model:
    """A folder as model2vec writes it, read at the first text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = ThreadLock()
        self._static: Any = None
        self._few: _Few | None = None

    @classmethod
    def of(cls, spec: str | Path) -> Model:
        """The folder, or what the model hub has under that name; InputError if there is no model."""
        folder = Path(spec)
        if not folder.is_dir():
            if folder.exists():
                raise InputError(f"{folder} is a file; an embedder is the folder in which model2vec saved a model.")
            folder = _from_hub(str(spec))
        model = cls(folder)
        model._load()
        return model

    def digest(self) -> str:
        """sha256 over weights, tokeniser and settings."""
        digest = hashlib.sha256()
        for path in _files(self.folder):
            digest.update(path.relative_to(self.folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def dim(self) -> int:
        return int(self._static.dim) if self._static is not None else _announced_dim(self.folder)

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """The mean token vector of each text, (texts, dim); zero for a text without a known token."""
        # model2vec sets the tokeniser's length limit at every call, which no other thread may be using by then
        with self._lock:
            static = self._load()
            few = self._few
            if few is not None and len(texts) <= _BATCH and sum(map(len, texts)) <= _SHORT:
                return few.encode(texts)
            if len(texts) <= _BATCH and static.token_mapping is None and static.weights is None:
                return _of_few(static, texts).astype(np.float32, copy=False)
            # not normalised: the caller scales, and one rounding less is one place less for the last bit to differ
            vectors: NDArray[Any] = static.encode(texts, normalize=False, batch_size=_BATCH, use_multiprocessing=False)
        return vectors.astype(np.float32, copy=False)

    def _load(self) -> Any:
        if self._static is not None:
            return self._static
        with self._lock:
            if self._static is None:
                from model2vec import StaticModel
                from safetensors import SafetensorError

                try:
                    # the tokenizer's own reader raises a bare Exception for what is no JSON
                    for path in self.folder.glob("*.json"):
                        json.loads(path.read_bytes())
                    static = StaticModel.from_pretrained(self.folder, force_download=False)
                except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
                    raise InputError(f"{self.folder} does not hold a model2vec model: {error}") from None
                self._few = _Few.of(static)
                self._static = static
            return self._static


@dataclass(frozen=True)
class _Few:
    """What a few short texts need of a model whose components are int8: their vectors cost a quarter so."""

    tokenizer: Any
    table: NDArray[np.int8]
    kept: int | None
    """Characters of a text that are read."""
    unknown: int | None
    most: int | None
    """Tokens of a text that are read."""
    pieces: dict[str, list[int]] | None
    """The tokens of words that were read, where words are read one by one; None where they are not."""

    @classmethod
    def of(cls, static: Any) -> _Few | None:
        """None where the model is of another kind: its sums depend on their order, or it pads to the longest text."""
        padding = static.tokenizer.padding
        pads = padding is not None and padding["length"] is None
        plain = static.token_mapping is None and static.weights is None and static.embedding.dtype == np.int8
        if pads or not plain:
            return None
        kept = None if static.max_length is None else static.max_length * static.median_token_length
        pieces: dict[str, list[int]] | None = {} if _reads_words(static.tokenizer) else None
        return cls(static.tokenizer, static.embedding, kept, static.unk_token_id, static.max_length, pieces)

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """What ``static.encode(texts)`` gives, to the bit: sums of whole numbers are exact in any order."""
        vectors = np.zeros((len(texts), self.table.shape[1]), dtype=np.float32)
        tokens = [self._tokens(text) for text in texts]
        places = [place for place, own in enumerate(tokens) if own]
        if not places:
            return vectors
        counts = [len(tokens[place]) for place in places]
        rows = self.table.take(list(chain.from_iterable(tokens)), axis=0)
        if len(places) == 1:
            vectors[places[0]] = np.add.reduce(rows, axis=0, dtype=np.int32) / counts[0]
        else:
            starts = list(accumulate(counts[:-1], initial=0))
            totals = np.add.reduceat(rows, starts, axis=0, dtype=np.int32)
            vectors[places] = totals / np.array(counts)[:, None]
        return vectors

    def _tokens(self, text: str) -> list[int]:
        text = text[: self.kept]
        # an opening bracket may begin a token with a name of its own, such as [PAD]
        if self.pieces is not None and text.isascii() and text.isprintable() and "[" not in text:
            tokens = self._of_words(_ASCII_WORD.findall(text.lower()), self.pieces)
        else:
            tokens = self.tokenizer.encode(text, add_special_tokens=False).ids
        return [token for token in tokens if token != self.unknown] if self.unknown in tokens else tokens

    def _of_words(self, words: list[str], pieces: dict[str, list[int]]) -> list[int]:
        """The tokens of these words, one after the other; those of words that are new are kept."""
        if len(pieces) >= _WORDS:
            pieces.clear()
        fresh = [word for word in words if word not in pieces]
        if fresh:
            self._learn(list(dict.fromkeys(fresh)), pieces)
        return list(chain.from_iterable([pieces[word] for word in words]))[: self.most]

    def _learn(self, words: list[str], pieces: dict[str, list[int]]) -> None:
        read = self.tokenizer.encode(" ".join(words), add_special_tokens=False)
        if self.most is not None and len(read.ids) >= self.most:  # it may have been cut off
            for word in words:
                pieces[word] = self.tokenizer.encode(word, add_special_tokens=False).ids
            return
        for word in words:
            pieces[word] = []
        for token, place in zip(read.ids, read.word_ids, strict=True):
            pieces[words[place]].append(token)


_ASCII_WORD = re.compile(r"[0-9a-z]+|[!-/:-@\[-`{-~]")
"""What BERT's rule parts a printable ASCII text in lower case into: letters and digits, and each other sign alone."""

_WORDS = 20_000
"""Words whose tokens are kept: 4 MB."""


def _reads_words(tokenizer: Any) -> bool:
    """Whether the tokens of a text are those of its words, by BERT's rule in lower case."""
    normalizer, added = tokenizer.normalizer, tokenizer.get_added_tokens_decoder().values()
    return (
        type(normalizer).__name__ == "BertNormalizer"
        and bool(normalizer.lowercase)
        and type(tokenizer.pre_tokenizer).__name__ == "BertPreTokenizer"
        and type(tokenizer.model).__name__ == "WordPiece"
        and all(token.content.startswith("[") for token in added)
    )


def _of_few(static: Any, texts: list[str]) -> NDArray[Any]:
    """What ``static.encode(texts)`` gives, to the bit, without the 50 to 150 microseconds in which it gets ready."""
    table = static.embedding
    kept = None if static.max_length is None else static.max_length * static.median_token_length
    tokens = _tokens(static, [text[:kept] for text in texts])
    found = np.zeros((len(texts), table.shape[1]), dtype=np.float32 if table.dtype == np.int8 else table.dtype)
    of_length: dict[int, list[int]] = {}
    for place, own in enumerate(tokens):
        if own:
            of_length.setdefault(len(own), []).append(place)
    for places in of_length.values():
        # summed in the same order and rounded to the same type
        found[places] = table[np.array([tokens[place] for place in places], dtype=np.int64)].mean(axis=1)
    return found


def _tokens(static: Any, texts: list[str]) -> list[list[int]]:
    """What ``static.tokenize(texts)`` gives."""
    padding = static.tokenizer.padding
    if sum(map(len, texts)) > _SHORT or (padding is not None and padding["length"] is None):  # as long as the longest
        found: list[list[int]] = static.tokenize(texts)
        return found
    unknown = static.unk_token_id
    own = [static.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return own if unknown is None else [[token for token in tokens if token != unknown] for tokens in own]


def _files(folder: Path) -> list[Path]:
    """What decides the vectors, in a fixed order."""
    wanted = [*folder.rglob("*.safetensors"), *folder.rglob("tokenizer.json"), *folder.rglob("config.json")]
    return sorted(wanted, key=lambda path: path.relative_to(folder).as_posix())


def _announced_dim(folder: Path) -> int:
    """The dimension from the header of the weights, without reading them."""
    with (folder / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return int(header["embeddings"]["shape"][1])


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=["*.safetensors", "*.json"]))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f'There is no folder "{name}", and the model hub did not give a model of that name: {reason.rstrip(".")}. '
            "Pass the folder of a model2vec model, or None for the model that ships with memlab."
        ) from None
