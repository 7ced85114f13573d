"""Embedders: a name, a fingerprint, and integer vectors.

A vector is scaled so that its largest component is 127 in magnitude, and rounded; a cosine does not see the scale,
and products of integers are exact in any order. A zero vector (an empty text) stays zero.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import AsGiven, Called, checked
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.registry import Registry

__all__ = [
    "EMBEDDERS",
    "SHIPPED_KNOTS",
    "Embedder",
    "EmbedderSource",
    "EmbedderSpec",
    "Knots",
    "Model",
    "calibrated",
    "load_embedder",
]


# A model2vec folder: static token vectors, averaged.


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
                raise InputError(
                    f"{folder} is a file; an embedder is the folder in which model2vec saved a model."
                )
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
            static = self._load() if self._static is None else self._static
            few = self._few
            if few is not None and len(texts) <= _BATCH and sum(map(len, texts)) <= _SHORT:
                return few.encode(texts)
            if len(texts) <= _BATCH and static.token_mapping is None and static.weights is None:
                return _of_few(static, texts).astype(np.float32, copy=False)
            # not normalised: the caller scales, and one rounding less is one place less for the last bit to differ
            vectors: NDArray[Any] = static.encode(
                texts, normalize=False, batch_size=_BATCH, use_multiprocessing=False
            )
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
                    read = {
                        path.name: json.loads(path.read_bytes())
                        for path in self.folder.glob("*.json")
                    }
                    static = StaticModel.from_pretrained(self.folder, force_download=False)
                except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
                    raise InputError(
                        f"{self.folder} does not hold a model2vec model: {error}"
                    ) from None
                self._few = _Few.of(static, read.get("tokenizer.json", {}).get("model", {}))
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
    pieces: _Pieces | None
    """The tokens of words, where words are read one by one; None where they are not."""

    @classmethod
    def of(cls, static: Any, described: dict[str, Any]) -> _Few | None:
        """``described`` is the model of the tokeniser, as its file has it. None where the model is of another kind: its sums depend on their order, or it pads to the longest text."""
        padding = static.tokenizer.padding
        pads = padding is not None and padding["length"] is None
        plain = (
            static.token_mapping is None
            and static.weights is None
            and static.embedding.dtype == np.int8
        )
        if pads or not plain:
            return None
        kept = None if static.max_length is None else static.max_length * static.median_token_length
        pieces = _Pieces(described) if _reads_words(static.tokenizer) else None
        return cls(
            static.tokenizer, static.embedding, kept, static.unk_token_id, static.max_length, pieces
        )

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """What ``static.encode(texts)`` gives, to the bit: sums of whole numbers are exact in any order."""
        vectors = np.zeros((len(texts), self.table.shape[1]), dtype=np.float32)
        tokens = [self.tokens(text) for text in texts]
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

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text, those that are unknown left out; those of words that are new are kept."""
        text, pieces = text[: self.kept], self.pieces
        # an opening bracket may begin a token with a name of its own, such as [PAD]
        if pieces is not None and text.isascii() and text.isprintable() and "[" not in text:
            words = _ASCII_WORD.findall(text.lower())
            tokens = list(chain.from_iterable([pieces[word] for word in words]))[: self.most]
        else:
            tokens = self.tokenizer.encode(text, add_special_tokens=False).ids
        return (
            [token for token in tokens if token != self.unknown]
            if self.unknown in tokens
            else tokens
        )


class _Pieces(dict[str, list[int]]):
    """The tokens of words by WordPiece; those of a word are found when it is first looked up, and kept.

    The tokeniser's own call takes some 20 microseconds a word, ten times as much.
    """

    def __init__(self, described: dict[str, Any]) -> None:
        super().__init__()
        self._vocabulary: dict[str, int] = described["vocab"]
        self._unknown = [self._vocabulary[described["unk_token"]]]
        self._before: str = described["continuing_subword_prefix"]
        self._longest: int = described["max_input_chars_per_word"]

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= _WORDS:
            self.clear()
        tokens = self[word] = self._unknown
        # from its beginning on, each the longest that the vocabulary has
        vocabulary, found, start = self._vocabulary, [], 0
        if len(word) > self._longest:
            return tokens
        while start < len(word):
            rest = self._before + word[start:] if start else word
            shortest = len(rest) - len(word) + start
            for stop in range(len(rest), shortest, -1):
                token = vocabulary.get(rest[:stop])
                if token is not None:
                    break
            else:
                return tokens
            found.append(token)
            start += stop - shortest
        self[word] = found
        return found


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
    found = np.zeros(
        (len(texts), table.shape[1]), dtype=np.float32 if table.dtype == np.int8 else table.dtype
    )
    of_length: dict[int, list[int]] = {}
    for place, own in enumerate(tokens):
        if own:
            of_length.setdefault(len(own), []).append(place)
    for places in of_length.values():
        # summed in the same order and rounded to the same type
        found[places] = table[np.array([tokens[place] for place in places], dtype=np.int64)].mean(
            axis=1
        )
    return found


def _tokens(static: Any, texts: list[str]) -> list[list[int]]:
    """What ``static.tokenize(texts)`` gives."""
    padding = static.tokenizer.padding
    # as long as the longest
    if sum(map(len, texts)) > _SHORT or (padding is not None and padding["length"] is None):
        found: list[list[int]] = static.tokenize(texts)
        return found
    unknown = static.unk_token_id
    own = [static.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return (
        own
        if unknown is None
        else [[token for token in tokens if token != unknown] for tokens in own]
    )


def _files(folder: Path) -> list[Path]:
    """What decides the vectors, in a fixed order."""
    wanted = [
        *folder.rglob("*.safetensors"),
        *folder.rglob("tokenizer.json"),
        *folder.rglob("config.json"),
    ]
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


# The shipped model's cosines on the scale of its teacher.
#
# Token vectors that keep half of their common direction rank better, but their cosines crowd: a question and a turn
# that have nothing in common stand at .79, where all-MiniLM-L6-v2 says .10. Thresholds and weights written for such an
# encoder would let everything pass. ``closeness`` maps a cosine of the shipped model to the one its teacher exceeds as
# often, equal quantiles over 578,185 pairs of a question and a turn (``experiments/calibrate_closeness.py``). It is
# monotone: no ranking by similarity alone changes.


Knots = tuple[tuple[float, float], ...]

SHIPPED_KNOTS: Knots = (
    *(
        (-1.0, -1.0),
        (0.5922, -0.10),
        (0.6760, -0.05),
        (0.7295, 0.00),
        (0.7631, 0.05),
        (0.7886, 0.10),
        (0.8085, 0.15),
    ),
    *(
        (0.8255, 0.20),
        (0.8409, 0.25),
        (0.8552, 0.30),
        (0.8685, 0.35),
        (0.8808, 0.40),
        (0.8919, 0.45),
        (0.9016, 0.50),
    ),
    *((0.9107, 0.55), (0.9191, 0.60), (0.9273, 0.65), (0.9354, 0.70), (0.9441, 0.75), (1.0, 1.0)),
)
"""Cosine of the shipped model, cosine of the teacher at the same quantile."""


_TYPICAL, _PER_LOG_WORD = 12.0, 0.126


def evened(
    closeness: NDArray[np.float64], coverage: NDArray[np.float64], length: NDArray[np.float64]
) -> NDArray[Any]:
    """The closeness of the shipped model as a threshold wants it: whatever the length of the text, and words counted.

    The longer a text, the nearer it stands to any question: of turns of 4 words and a question of somebody else's
    conversation one in ten is above .20, of turns of 28 words one above .43. That is taken away, by 0.126 of the
    logarithm of the length (words, stop words left out) over that of a typical turn; and the share of the question's
    rare words that the text holds is added. Of 705 questions of LoCoMo each among ten turns (its evidence and nine
    others), and asked of ten turns of another conversation (``experiments/nearness.py``):

        above .3: evidence found .73 by closeness, .90 so; a turn of the other conversation .20, and .19
        above .4: evidence found .53 by closeness, .83 so; a turn of the other conversation .06, and .05
    """
    longer = _PER_LOG_WORD * np.log(np.maximum(length, 1.0) / _TYPICAL)
    return np.asarray(np.minimum(1.0, closeness + coverage - longer))


def calibrated(cosine: NDArray[np.float64], knots: Knots | None) -> NDArray[np.float64]:
    """``cosine`` between the knots by straight lines; without knots, as it is."""
    if knots is None:
        return cosine
    scale, levels = _axes(knots)
    return np.asarray(np.interp(cosine, scale, levels))


@cache
def _axes(knots: Knots) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scale, levels = np.array(knots).T
    return np.ascontiguousarray(scale), np.ascontiguousarray(levels)


_PAIR_LEVELS = (-1.0, -0.06, 0.02, 0.19, 0.40, 0.57, 0.66, 1.0)
PAIR_KNOTS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (55.0, _PAIR_LEVELS[1:-1]),
    (70.0, (0.082, 0.223, 0.403, 0.562, 0.682, 0.739)),
    (101.0, (0.178, 0.347, 0.543, 0.691, 0.771, 0.799)),
    (137.0, (0.290, 0.463, 0.621, 0.729, 0.785, 0.808)),
    (186.0, (0.427, 0.584, 0.720, 0.799, 0.837, 0.856)),
    (262.0, (0.609, 0.730, 0.807, 0.854, 0.882, 0.894)),
    (540.0, (0.324, 0.595, 0.798, 0.870, 0.908, 0.921)),
    (858.0, (0.526, 0.689, 0.797, 0.858, 0.888, 0.901)),
    (1120.0, (0.605, 0.741, 0.822, 0.879, 0.906, 0.914)),
    (2394.0, (0.654, 0.791, 0.896, 0.947, 0.971, 0.978)),
)
"""Characters of a pair (geometric mean of both), and the closeness that as many unrelated pairs of that length exceed as
pairs of short statements exceed each of ``_PAIR_LEVELS``; fitted by ``experiments/calibrate_pairs.py``."""


def even_length(closeness: NDArray[np.float64], length: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map the closeness of pairs to that of short statements which as many unrelated pairs exceed.

    Long texts are near one another whatever they say: the median closeness of two messages that have nothing to do with
    each other is .02 at 40 to 60 characters and .75 above 1,000. ``length`` is the geometric mean of the characters of
    both texts. Up to 55 characters nothing changes; -1 and 1 stay as they are.
    """
    lengths = np.log([knot for knot, _ in PAIR_KNOTS])
    table = np.array([(-1.0, *levels, 1.0) for _, levels in PAIR_KNOTS])
    at = np.log(np.maximum(length, 1.0))
    knots = np.stack([np.interp(at, lengths, column) for column in table.T], axis=-1)
    levels = np.array(_PAIR_LEVELS)
    place = np.clip((closeness[:, None] >= knots).sum(axis=1) - 1, 0, len(levels) - 2)
    rows = np.arange(len(closeness))
    low, high = knots[rows, place], knots[rows, place + 1]
    share = np.clip((closeness - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
    return np.asarray(levels[place] + share * (levels[place + 1] - levels[place]))


_RULE = b"largest component 127, rounded half to even: 1"
"""Part of every fingerprint: vectors of another rule are vectors of another embedder."""

_SHIPPED = Path(__file__).parent / "model"

# chosen to differ in length, case, topic and script
_PROBES = (
    "The user prefers tabs over spaces.",
    "When did Ann move to Lisbon?",
    "def main(): return 42",
    "deploy failed: connection refused",
    "Das Treffen ist am Montag.",
    "rain",
    "I promised to call my sister before the weekend, and then forgot about it entirely.",
    "記憶は宝物です。",
)


@dataclass(frozen=True)
class Embedder:
    """Turns texts into int8 vectors; made by ``load_embedder``.

    ``fingerprint`` (sha256) tells whose vectors may be compared: it covers weights, tokeniser, settings and the rule
    of rounding. ``remote`` is the host or service to which texts are sent, where the embedder declares one; None: they
    stay on this machine, as far as it says.
    """

    name: str
    fingerprint: str
    dim: int
    _embed: Callable[[list[str]], ArrayLike] = field(repr=False, compare=False)
    _knots: Knots | None = field(default=None, repr=False, compare=False)
    remote: str | None = field(default=None, compare=False)

    @checked
    def encode(self, texts: Sequence[str]) -> NDArray[np.int8]:
        """The vectors of ``texts``, an int8 matrix (texts, dim) of components -127..127.

        InputError names the text that is no str or no valid Unicode, or for which a callable gave no vector of
        ``dim`` finite numbers. A model reads the first ``max_length`` tokens of a text (512 for the shipped one,
        about 400 words), so a long text costs no more than a page.
        """
        return self.embed(list(texts))

    def embed(self, texts: list[str]) -> NDArray[np.int8]:
        """What ``encode`` gives, of texts that were checked."""
        if not texts:
            return np.zeros((0, self.dim), dtype=np.int8)
        returned = self._embed(texts)
        own = self._knots is not None  # the model that ships: its vectors are sound
        raw = (
            np.asarray(returned, np.float64)
            if own
            else _checked_vectors(returned, texts, self.dim, self.name)
        )
        largest = np.maximum.reduce(np.abs(raw), axis=1, keepdims=True)
        largest[largest == 0.0] = 1.0  # all are zero, and stay so
        # divided first: 127 / largest overflows for the smallest floats
        shares = raw / largest
        shares *= 127.0
        rounded: NDArray[np.int8] = np.rint(shares, out=shares).astype(np.int8)
        return rounded

    @checked
    def closeness(self, cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cosines on the scale of all-MiniLM-L6-v2, for which thresholds are usually written.

        Equal quantiles for the shipped model; any other embedder's cosines as they are.
        """
        return calibrated(cosine, self._knots)

    def scale(self, cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        """What ``closeness`` gives, of cosines that were computed here."""
        return cosine if self._knots is None else np.interp(cosine, *_axes(self._knots))

    @checked
    def pair_closeness(
        self, cosine: NDArray[np.float64], length: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the closeness of pairs of texts on the scale of short statements, whatever their length.

        ``length`` is the geometric mean of the characters of both. Only the shipped model was measured: for another the
        closeness is returned as it is.
        """
        found = self.closeness(cosine)
        return even_length(found, length) if self.calibrated else found

    @property
    def calibrated(self) -> bool:
        """Whether ``closeness`` is a scale of its own, made for this model."""
        return self._knots is not None


class Encodes(Protocol):
    """An object with a method ``encode`` from texts to vectors, as a SentenceTransformer is."""

    def encode(self, texts: list[str], /) -> ArrayLike: ...


@dataclass(frozen=True)
class EmbedderSource:
    """An embedder that an extension offers under a name: ``memlab.open(path, embedder=NAME)``.

    ``make`` returns what ``embedder=`` takes: a callable from texts to vectors, or an object with a method ``encode``.
    """

    name: str
    doc: str
    make: Callable[[], Any] = field(compare=False)
    owner: str = ""


EMBEDDERS: Registry[EmbedderSource] = Registry("embedder", kind="embedders", about="doc")
"""The embedders that extensions declare."""

EmbedderSpec = Annotated[
    str | Path | Callable[[list[str]], ArrayLike] | Encodes | Embedder | None, AsGiven
]
"""What names an embedder: None for the shipped model, a model2vec folder or hub name, a callable, an object with a
method ``encode``, or an Embedder.
"""


def load_embedder(spec: EmbedderSpec = None, *, name: str | None = None) -> Embedder:
    """The embedder that ``spec`` names.

    None is the model that ships with memlab (256 dimensions; its weights are read at the first text). A str is the name
    of an embedder that an extension declares, else, as a Path is, a folder written by model2vec; only if there is no
    such folder is it a name on the model hub, which needs the network once. A callable takes texts and returns an
    array (texts, dim); an object with a method ``encode``, as a SentenceTransformer is, stands for that method.

    Both are fingerprinted by ``name`` (the qualified name unless given), the dimension, and which component is
    largest in the vectors of a few fixed texts: rounding noise of a remote service does not move that, another
    model does.

    A callable or object with an attribute ``remote``, such as "api.example.com", says that it sends texts there:
    ``repr(lab)`` and a pack that needs consent disclose it.

    InputError: a folder that holds no model, a hub that cannot be reached, a callable that returns something else.

    >>> load_embedder().encode(["tabs or spaces"]).shape
    (1, 256)
    """
    if isinstance(spec, Embedder):
        return spec
    if spec is None:
        return _shipped()
    if isinstance(spec, str):
        spec = str.__str__(spec)  # a subclass may say something else of itself
    if isinstance(spec, str) and spec in EMBEDDERS:
        return load_embedder(EMBEDDERS[spec].make(), name=name or spec)
    if isinstance(spec, str | Path):
        model = Model.of(spec)
        return _of_model(model, name or (str(spec) if isinstance(spec, str) else spec.name))
    # a SentenceTransformer can be called too, as a layer of a network
    embed = getattr(spec, "encode", spec)
    if isinstance(spec, type) or not callable(embed):
        raise InputError(
            "An embedder is None (the shipped model), a model2vec folder or hub name, a callable from texts to "
            f"vectors, or an object with a method encode, not {type(spec).__name__}."
        )
    made = _of_callable(
        Called(embed, "open(embedder=...)"),
        name or getattr(spec, "__qualname__", None) or type(spec).__qualname__,
    )
    return replace(made, remote=_remote(spec))


def _remote(spec: object) -> str | None:
    """Where an embedder says that it sends texts; InputError where it says so by something else than a name."""
    remote = getattr(spec, "remote", None)
    if remote is None:
        return None
    if (
        not isinstance(remote, str)
        or not 0 < len(remote.strip()) <= 200
        or not remote.isprintable()
    ):
        raise InputError(
            f"An embedder's remote is the host or service to which it sends texts, a printable name of 1 to 200 "
            f"characters, not {remote!r:.60}."
        )
    return remote.strip()


@cache
def _shipped() -> Embedder:
    model = Model(_SHIPPED)
    embedder = _of_model(model, json.loads((_SHIPPED / "config.json").read_bytes())["name"])
    return replace(embedder, _knots=SHIPPED_KNOTS)


def _of_model(model: Model, name: str) -> Embedder:
    digest = hashlib.sha256(_RULE)
    digest.update(model.digest().encode())
    return Embedder(name, digest.hexdigest(), model.dim(), model.encode)


def _of_callable(embed: Callable[[list[str]], ArrayLike], name: str) -> Embedder:
    probes = list(_PROBES)
    raw = _checked_vectors(embed(probes), probes, None, name)
    digest = hashlib.sha256(_RULE)
    largest = np.abs(raw).argmax(axis=1)
    signs = np.sign(raw[np.arange(len(raw)), largest]).astype(int)
    digest.update(json.dumps([name, raw.shape[1], largest.tolist(), signs.tolist()]).encode())
    return Embedder(name, digest.hexdigest(), raw.shape[1], embed)


def _checked_vectors(
    returned: ArrayLike, texts: list[str], dim: int | None, name: str
) -> NDArray[np.float64]:
    """``returned`` as a float matrix (texts, dim); InputError says which text it fails for."""
    try:
        raw = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        raw = _ragged(returned, texts, dim, name)
    except Exception as error:  # an object of the caller's raised while it was read
        raise InputError(
            f"Embedder {name} returned a {type(returned).__name__} that cannot be read: {error!r}"
        ) from error
    if raw.ndim != 2 or raw.shape[0] != len(texts) or not raw.shape[1]:
        raise InputError(
            f"Embedder {name} returned an array {raw.shape} for {len(texts)} texts, the first of them "
            f"{_shown(texts[0])}; expected ({len(texts)}, {dim or 'dim'})."
        )
    if dim is not None and raw.shape[1] != dim:
        raise InputError(
            f"Embedder {name} returned {raw.shape[1]} dimensions for text 0 ({_shown(texts[0])}), and {dim} before."
        )
    if not np.isfinite(raw).all():
        finite = np.isfinite(raw).all(axis=1)
        number = int(np.argmin(finite))
        place = int(np.argmin(np.isfinite(raw[number])))
        raise InputError(
            f"Embedder {name} returned {raw[number, place]} in component {place} for text {number} "
            f"({_shown(texts[number])})."
        )
    return raw


def _ragged(returned: Any, texts: list[str], dim: int | None, name: str) -> NDArray[np.float64]:
    """Name the vector that does not fit the others."""
    vectors = list(returned) if hasattr(returned, "__iter__") else []
    for number, vector in enumerate(vectors[: len(texts)]):
        try:
            shape = np.asarray(vector, dtype=np.float64).shape
        except (TypeError, ValueError):
            shape = None
        if shape is None or len(shape) != 1 or (dim is not None and shape != (dim,)):
            what = "no vector of numbers" if shape is None else f"an array {shape}"
            raise InputError(
                f"Embedder {name} returned {what} for text {number} ({_shown(texts[number])}); "
                f"expected {dim or 'as many numbers as for the others'}."
            )
        dim = shape[0]
    raise InputError(f"Embedder {name} returned no array of numbers for {len(texts)} texts.")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
