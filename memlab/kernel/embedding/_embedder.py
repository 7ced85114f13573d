"""Embedders: a name, a fingerprint, and integer vectors.

A vector is scaled so that its largest component is 127 in magnitude, and rounded. Cosines do not
depend on the scale, and sums of integer products are exact in any order of addition. A zero
vector (an empty text) remains zero.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from msgspec import DecodeError
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError, require_extra
from memlab.kernel.base.arguments import AsGiven, Count, Seconds, Within, checked
from memlab.kernel.base.arrays import Components, Floats, Values
from memlab.kernel.base.threads import ThreadLock
from memlab.kernel.embedding._calls import BATCH, Calls, quantize
from memlab.kernel.embedding._minilm import MiniLM
from memlab.kernel.embedding._wordpiece import WordPiece
from memlab.kernel.registry import Registry

# Static token vectors, averaged: the shipped model, and models of model2vec.


# Texts per call of a model: larger batches are not faster and take more memory.
_BATCH = 1024
# Texts whose token vectors the shipped model gathers at once: at most 32 MB, for 512 tokens of 256 bytes.
_TEXTS = 256


class Model:
    """A model in a folder of model2vec. It is loaded when the first text is encoded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = ThreadLock()
        self._static: Any = None

    @classmethod
    def of(cls, spec: str | Path) -> Model:
        """Return the loaded model of a folder or of the model hub.

        Raises InputError if there is no model, and MissingExtra without model2vec.
        """
        folder = Path(spec)
        if not folder.is_dir():
            if folder.exists():
                raise InputError(
                    f"{folder} is a file, not a folder. Pass the folder in which model2vec saved a model."
                )
            folder = _from_hub(str(spec))
        model = ShippedModel(folder) if folder.samefile(_SHIPPED) else Model(folder)
        model._load()
        return model

    def digest(self) -> str:
        """Return the SHA-256 of the model's weights, tokeniser and settings."""
        digest = hashlib.sha256()
        for path in _files(self.folder):
            digest.update(path.relative_to(self.folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def dim(self) -> int:
        """Return the number of components of a vector."""
        return int(self._load().dim)

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the mean token vector of each text as a row.

        The row is zero for a text without a known token.
        """
        # model2vec sets the tokeniser's length limit at every call, so no other thread may use it meanwhile.
        with self._lock:
            # The caller scales the vectors. Without a normalisation here, one fewer rounding can
            # differ.
            vectors: Values = self._load().encode(
                texts, normalize=False, batch_size=_BATCH, use_multiprocessing=False
            )
        return vectors.astype(np.float32, copy=False)

    def _load(self) -> Any:
        """Return the loaded model, reading it at the first call."""
        if self._static is None:
            with self._lock:
                if self._static is None:
                    try:
                        self._static = self._read()
                    except (OSError, ValueError, KeyError, TypeError, DecodeError) as error:
                        raise InputError(
                            f"{self.folder} does not contain a model2vec model: {error}"
                        ) from None
        return self._static

    def _read(self) -> Any:
        """Read the model from its folder."""
        with require_extra("models", "An embedder of another model"):
            from model2vec import StaticModel
            from safetensors import SafetensorError

        # The tokeniser's own reader raises a bare Exception for invalid JSON.
        for path in self.folder.glob("*.json"):
            json.loads(path.read_bytes())
        try:
            return StaticModel.from_pretrained(self.folder, force_download=False)
        except SafetensorError as error:
            raise ValueError(str(error)) from None


class ShippedModel(Model):
    """The model that ships with memlab. It is read without model2vec.

    Its vectors are equal to those of model2vec: sums of whole numbers are exact in any order.
    """

    def dim(self) -> int:
        """Return the number of components of a vector."""
        return _read_header(self.folder)[1][1]

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Return the mean token vector of each text as a row."""
        pieces, table = self._load()
        vectors = np.zeros((len(texts), table.shape[1]), dtype=np.float32)
        # The tokeniser changes its cache of words, so only one thread may use it at a time.
        with self._lock:
            tokens = [pieces.read(text) for text in texts]
        positions = [position for position, own in enumerate(tokens) if own]
        for start in range(0, len(positions), _TEXTS):
            part = positions[start : start + _TEXTS]
            own = [tokens[position] for position in part]
            rows = table.take(list(chain.from_iterable(own)), axis=0)
            if (
                len(part) == 1
            ):  # A single text is the usual query. The general case takes 4 us more.
                vectors[part[0]] = np.add.reduce(rows, axis=0, dtype=np.int32) / len(own[0])
                continue
            counts = [len(row) for row in own]
            starts = list(accumulate(counts[:-1], initial=0))
            totals = np.add.reduceat(rows, starts, axis=0, dtype=np.int32)
            vectors[part] = totals / np.array(counts)[:, None]
        return vectors

    def _read(self) -> tuple[WordPiece, Components]:
        """Read the tokeniser and the table of token vectors."""
        config = json.loads((self.folder / "config.json").read_bytes())
        offset, shape = _read_header(self.folder)
        table = np.fromfile(
            self.folder / _WEIGHTS, dtype=np.int8, count=math.prod(shape), offset=offset
        )
        return WordPiece(self.folder / "tokenizer.json", config["max_length"]), table.reshape(shape)


def _files(folder: Path) -> list[Path]:
    """Return the files of a model that determine its vectors, in a fixed order."""
    wanted = [
        *folder.rglob("*.safetensors"),
        *folder.rglob("tokenizer.json"),
        *folder.rglob("config.json"),
    ]
    return sorted(wanted, key=lambda path: path.relative_to(folder).as_posix())


def _read_header(folder: Path) -> tuple[int, tuple[int, int]]:
    """Return the byte position and the shape of the vector table in the shipped model's file.

    A file of safetensors has the length of its header in 8 bytes, the header as JSON, and the arrays.
    """
    with (folder / _WEIGHTS).open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        table = json.loads(file.read(size))["embeddings"]
    rows, dim = table["shape"]
    return 8 + size + table["data_offsets"][0], (rows, dim)


def _from_hub(name: str) -> Path:
    """Download a model from the model hub and return its folder."""
    with require_extra("models", f'A model "{name}" of the hub'):
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )

    try:
        return Path(snapshot_download(name, allow_patterns=["*.safetensors", "*.json"]))
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(
            f'There is no folder "{name}", and the model hub has no model with that name: {reason.rstrip(".")}. '
            "Pass the folder of a model2vec model, or None for the model that ships with memlab."
        ) from None


# The shipped model's cosines on the scale of its teacher.
#
# Token vectors that keep half of their common direction rank better, but their cosines are compressed: an unrelated
# question and turn have a cosine of .79, where all-MiniLM-L6-v2 has .10. Thresholds and weights written for such an encoder
# would accept everything. ``closeness`` maps a cosine of the shipped model to the cosine of its teacher at the same
# quantile over 578,185 pairs of a question and a turn (``experiments/calibrate_closeness.py``). The map is monotone, so a
# ranking by similarity alone does not change.


Knots = tuple[tuple[float, float], ...]

SHIPPED_KNOTS: Knots = (
    (-1.0, -1.0),
    (0.5922, -0.10),
    (0.6760, -0.05),
    (0.7295, 0.00),
    (0.7631, 0.05),
    (0.7886, 0.10),
    (0.8085, 0.15),
    (0.8255, 0.20),
    (0.8409, 0.25),
    (0.8552, 0.30),
    (0.8685, 0.35),
    (0.8808, 0.40),
    (0.8919, 0.45),
    (0.9016, 0.50),
    (0.9107, 0.55),
    (0.9191, 0.60),
    (0.9273, 0.65),
    (0.9354, 0.70),
    (0.9441, 0.75),
    (1.0, 1.0),
)
"""Cosine of the shipped model, and the teacher's cosine at the same quantile."""


# Words of a typical turn without stop words, and the slope in its logarithm, both fitted by experiments/nearness.py.
_TYPICAL, _PER_LOG_WORD = 12.0, 0.126


def evened(closeness: Floats, coverage: Floats, length: Floats) -> Values:
    """Return the shipped model's closeness, corrected for length and common words.

    Longer texts are nearer to any question. One in ten turns is above a certain closeness to a
    question of another conversation: .20 for turns of 4 words, .43 for turns of 28 words. The
    correction subtracts 0.126 times the logarithm of a ratio: the length divided by that of a typical turn.
    The length counts words without stop words. The share of the question's rare words in the text
    is added.

    Measured on 705 questions of LoCoMo, each among ten turns (its evidence and nine others), and on ten turns of another
    conversation (``experiments/nearness.py``):

    | threshold | evidence, closeness | evidence, corrected | other, closeness | other, corrected |
    |---|---|---|---|---|
    | above .3 | .73 | .90 | .20 | .19 |
    | above .4 | .53 | .83 | .06 | .05 |
    """
    longer = _PER_LOG_WORD * np.log(np.maximum(length, 1.0) / _TYPICAL)
    return np.asarray(np.minimum(1.0, closeness + coverage - longer))


def calibrated(cosine: Floats, knots: Knots | None) -> Floats:
    """Interpolate cosines between calibration knots; without knots, return them unchanged."""
    if knots is None:
        return cosine
    scale, levels = _axes(knots)
    return np.asarray(np.interp(cosine, scale, levels))


# Every recall interpolates with the same knots.
@cache
def _axes(knots: Knots) -> tuple[Floats, Floats]:
    """Return the cosines and the calibrated values of calibration pairs as two arrays."""
    scale, levels = np.array(knots).T
    return np.ascontiguousarray(scale), np.ascontiguousarray(levels)


# Closeness of pairs of short statements at eight quantiles, and for each length the closeness at the same quantiles.
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
"""Length of a pair in characters, and the closeness of unrelated pairs.

The length is the geometric mean of both texts. The closeness is given at the quantiles of
``_PAIR_LEVELS``. Fitted by ``experiments/calibrate_pairs.py``.
"""


def even_length(closeness: Floats, length: Floats) -> Floats:
    """Rescale the closeness of text pairs to be independent of text length.

    Equal quantiles of unrelated pairs map the closeness to the scale of short statements.

    Long texts are near each other regardless of their content. The median closeness of two unrelated messages
    is .02 at 40 to 60 characters and .75 above 1,000. `length` is the geometric mean of the
    characters of both texts. Up to 55 characters nothing changes, and neither do -1 and 1.
    """
    lengths = np.log([knot for knot, _ in PAIR_KNOTS])
    table = np.array([(-1.0, *levels, 1.0) for _, levels in PAIR_KNOTS])
    at = np.log(np.maximum(length, 1.0))
    knots = np.stack([np.interp(at, lengths, column) for column in table.T], axis=-1)
    levels = np.array(_PAIR_LEVELS)
    segment = np.clip((closeness[:, None] >= knots).sum(axis=1) - 1, 0, len(levels) - 2)
    rows = np.arange(len(closeness))
    low, high = knots[rows, segment], knots[rows, segment + 1]
    share = np.clip((closeness - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
    return np.asarray(levels[segment] + share * (levels[segment + 1] - levels[segment]))


_RULE = b"largest component 127, rounded half to even: 1"
"""The rounding rule of vectors, a part of every fingerprint.

Vectors of another rounding rule count as vectors of another embedder.
"""

# Folder of the shipped model.
_SHIPPED, _WEIGHTS = Path(__file__).parent / "model", "model.safetensors"

# Texts that differ in length, case, topic and script. The fingerprints of callables depend on their vectors.
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
    """A function from texts to int8 vectors. `load_embedder` creates one.

    Attributes
    ----------
    name
        Name of the embedder.
    fingerprint
        SHA-256 over weights, tokeniser, settings and the rounding rule. Only vectors with one fingerprint are comparable.
    dim
        Number of components of a vector.
    remote
        Host or service to which the embedder says that it sends texts; None if they stay on this machine.
    reliance
        How much better than the shipped model the embedder is on the lab's own texts, 0 to 1. Policies weigh similarity by
        it; see the feature of that name. The shipped model has 0, and so has an embedder before its calibration.
    scoring
        Fingerprint of the vectors and of the calibration. Features with one such fingerprint are comparable.

    Examples
    --------
    >>> import memlab
    >>> embedder = memlab.open().io.embedder
    >>> embedder.dim, embedder.encode(["tabs or spaces?"]).shape
    (256, (1, 256))
    """

    name: str
    fingerprint: str
    dim: int
    _embed: Callable[[list[str]], ArrayLike] = field(repr=False, compare=False)
    _knots: Knots | None = field(default=None, repr=False, compare=False)
    remote: str | None = field(default=None, compare=False)
    reliance: float = field(default=0.0, compare=False)
    scoring: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.scoring:
            object.__setattr__(self, "scoring", self.fingerprint)

    _query: Calls | None = field(default=None, repr=False, compare=False)
    _pair_knots: Knots | None = field(default=None, repr=False, compare=False)
    _plain: Embedder | None = field(default=None, repr=False, compare=False)
    # Every recall scales the embedder of its lab, nearly always as the recall before did.
    _scaled: dict[str, tuple[Any, Embedder]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @checked
    def encode(self, texts: Sequence[str]) -> Components:
        """Return the vector of each text as a row of an int8 matrix.

        A model reads the first ``max_length`` tokens of a text. The shipped model reads 512, about
        400 words, so a long text costs no more than a page.

        Parameters
        ----------
        texts
            The texts to embed.

        Returns
        -------
        ndarray
            An int8 matrix (texts, dim) with components -127..127.

        Raises
        ------
        InputError
            If a text is not valid Unicode, or if a callable returns no vector of `dim` finite numbers for it.

        Examples
        --------
        >>> load_embedder().encode(["tabs or spaces", "rain"]).shape
        (2, 256)
        """
        return self.embed(list(texts))

    def embed(self, texts: list[str]) -> Components:
        """Return the vector of each text, without checking the texts.

        Parameters
        ----------
        texts
            Texts that are valid Unicode.

        Returns
        -------
        ndarray
            An int8 matrix (texts, dim).
        """
        if not texts:
            return np.zeros((0, self.dim), dtype=np.int8)
        if isinstance(self._embed, Calls):
            return self._embed(texts)
        return quantize(np.asarray(self._embed(texts), np.float64))

    def embed_query(self, text: str) -> Components:
        """Return the vector of a query, without checking the text.

        Parameters
        ----------
        text
            Valid Unicode.

        Returns
        -------
        ndarray
            An int8 vector (dim,). The vectors of recent queries are cached, except those of the shipped model.
        """
        calls = self._query or self._embed
        return calls.query(text) if isinstance(calls, Calls) else self.embed([text])[0]

    @checked
    def encode_queries(self, texts: Sequence[str]) -> Components:
        """Return the vector of each query as a row of an int8 matrix.

        The vectors differ from those of `encode` if the model reads queries in another way than texts.

        Parameters
        ----------
        texts
            The queries to embed.

        Returns
        -------
        ndarray
            An int8 matrix (queries, dim) with components -127..127.

        Examples
        --------
        >>> load_embedder().encode_queries(["tabs or spaces?"]).shape
        (1, 256)
        """
        return self.embed(list(texts)) if self._query is None else self._query(list(texts))

    @checked
    def closeness(self, cosine: Floats) -> Floats:
        """Convert cosines to the scale of all-MiniLM-L6-v2.

        Thresholds are usually written for that model.

        Parameters
        ----------
        cosine
            Cosines of vectors.

        Returns
        -------
        ndarray
            The cosines of all-MiniLM-L6-v2 at equal quantiles. Cosines of other models are unchanged until a lab has
            enough memories for a calibration.

        Examples
        --------
        >>> load_embedder().closeness(np.array([0.7886, 1.0])).tolist()
        [0.1, 1.0]
        """
        return calibrated(cosine, self._knots)

    def scale(self, cosine: Floats) -> Floats:
        """Convert cosines computed by memlab into closeness; see `closeness`.

        Parameters
        ----------
        cosine
            Cosines of vectors.

        Returns
        -------
        ndarray
            The closeness of each cosine.
        """
        return cosine if self._knots is None else np.interp(cosine, *_axes(self._knots))

    @checked
    def pair_closeness(self, cosine: Floats, length: Floats) -> Floats:
        """Return the closeness of text pairs, corrected for text length.

        Parameters
        ----------
        cosine
            Cosine of each pair.
        length
            Geometric mean of the characters of both texts.

        Returns
        -------
        ndarray
            The closeness. The length is corrected only for the shipped model. For other models, closeness is calibrated
            on pairs of the lab's memories.

        Examples
        --------
        >>> load_embedder().pair_closeness(np.array([1.0]), np.array([30.0])).tolist()
        [1.0]
        """
        if self._pair_knots is not None:
            return calibrated(cosine, self._pair_knots)
        closeness = self.closeness(cosine)
        return even_length(closeness, length) if self.is_shipped else closeness

    @property
    def is_shipped(self) -> bool:
        """True for the model that memlab ships."""
        return self._knots is SHIPPED_KNOTS

    @property
    def plain(self) -> Embedder:
        """The embedder without the calibration of a lab."""
        return self._plain or self

    def scaled(self, scale: Mapping[str, Any]) -> Embedder:
        """Return the embedder with the calibration of a lab, which changes `scoring`.

        Parameters
        ----------
        scale
            A calibration, as `measure_scale` returns it.

        Returns
        -------
        Embedder
            An embedder with equal vectors and another closeness.
        """
        last = self._scaled.get("last")
        if last is not None and last[0] is scale:
            return last[1]
        digest = hashlib.sha256(self.fingerprint.encode())
        digest.update(json.dumps(scale, sort_keys=True).encode())
        scaled = replace(
            self.plain,
            scoring=digest.hexdigest(),
            reliance=scale["reliance"],
            _knots=tuple(map(tuple, scale["knots"])),
            _pair_knots=tuple(map(tuple, scale["pairs"])),
            _plain=self.plain,
        )
        self._scaled["last"] = scale, scaled
        return scaled


class Encodes(Protocol):
    """An object with a method `encode` from texts to vectors, such as a SentenceTransformer."""

    def encode(self, texts: list[str], /) -> ArrayLike: ...


@dataclass(frozen=True)
class EmbedderSource:
    """An embedder that an extension offers under a name.

    Parameters
    ----------
    name
        Name of the embedder.
    doc
        Description in one sentence.
    make
        Function that returns a callable from texts to vectors, or an object with a method ``encode``.
    owner
        Name and version of the extension that declares it.
    """

    name: str
    doc: str
    make: Callable[[], Any] = field(compare=False)
    owner: str = ""


# The one embedder that the package index has with its weights; docs/howto/bring-an-embedder.md has its licence and hash.
_MINILM = EmbedderSource(
    "minilm",
    "all-MiniLM-L6-v2 on this machine, 384 dimensions; needs the extra minilm.",
    lambda: MiniLM(_SHIPPED / "tokenizer.json"),
)

EMBEDDERS: Registry[EmbedderSource] = Registry(
    "embedder", (_MINILM,), kind="embedders", about="doc"
)
"""The embedders by name: memlab's own, and those that extensions declare."""

EmbedderSpec = Annotated[
    str | Path | Callable[[list[str]], ArrayLike] | Encodes | Embedder | None, AsGiven
]
"""An embedder: None for the shipped model, a model2vec folder or hub name, a callable, an object with a method
``encode``, or an `Embedder`.
"""


@checked
def load_embedder(
    spec: EmbedderSpec = None,
    *,
    name: str | None = None,
    query_prefix: str = "",
    passage_prefix: str = "",
    dimensions: Count | None = None,
    batch_size: Count = BATCH,
    retries: Annotated[int, Within(0, 10)] = 2,
    timeout: Seconds | None = None,
    progress: bool = True,
) -> Embedder:
    """Return the embedder that a specification describes.

    Callables and objects are fingerprinted by their name, the dimension, and the largest components
    of the vectors of a few fixed texts. Rounding noise of a remote service does not change these
    components, but another model does. An attribute ``remote``, such as "api.example.com", states
    that texts are sent there: ``repr(lab)`` and packs that need consent disclose it.

    Parameters
    ----------
    spec
        None for the shipped model (256 dimensions). A str is the name of an embedder of an extension or "minilm",
        otherwise a folder of model2vec, otherwise a name on the model hub, which needs the network once. A callable, async
        or not, maps texts to an array (texts, dim). An object with a method ``encode``, such as a SentenceTransformer, is
        used by that method; its methods ``encode_query`` and ``encode_document`` are preferred where it has them.
    name
        Name of the embedder; by default that of the specification.
    query_prefix
        Text in front of every query, such as "query: " for E5.
    passage_prefix
        Text in front of every memory, such as "passage: " for E5.
    dimensions
        Number of leading components that are kept, for models trained to be cut. By default all.
    batch_size
        Maximum number of texts per call.
    retries
        Number of further attempts after a failed call. Errors of programming, such as a TypeError, are not repeated.
    timeout
        Maximum seconds of a call. By default there is no limit.
    progress
        Whether to show the progress of work of more than two seconds.

    Returns
    -------
    Embedder
        The embedder that the specification describes.

    Raises
    ------
    InputError
        If a folder contains no model, the hub cannot be reached, a callable fails or does not return vectors,
        or options are passed for the shipped model.

    Examples
    --------
    >>> load_embedder().encode(["tabs or spaces"]).shape
    (1, 256)
    """
    options: dict[str, Any] = {
        "dimensions": dimensions,
        "batch_size": batch_size,
        "retries": retries,
        "timeout": timeout,
        "progress": progress,
    }
    if isinstance(spec, Embedder) or spec is None:
        if query_prefix or passage_prefix or dimensions is not None:
            raise InputError(
                "Prefixes and dimensions can be set only for your own model, not for "
                f"{'the shipped model' if spec is None else 'an Embedder'}. Pass the "
                "callable, object or folder of your model."
            )
        return _shipped() if spec is None else spec.plain
    if isinstance(spec, str):
        spec = str.__str__(spec)  # A subclass may override this method.
    embed: Any
    query: Any = None
    digest = None
    if isinstance(spec, str) and spec in EMBEDDERS:
        name = name or spec
        spec = EMBEDDERS[spec].make()
        if isinstance(spec, Embedder):
            return spec.plain
    if isinstance(spec, str | Path):
        model = Model.of(spec)
        name = name or (str(spec) if isinstance(spec, str) else spec.name)
        embed, digest = model.encode, model.digest()
    else:
        # A SentenceTransformer is also callable, because it is a layer of a network. So `encode` comes first.
        embed = getattr(spec, "encode_document", None) or getattr(spec, "encode", spec)
        if isinstance(spec, type) or not callable(embed):
            raise InputError(
                "An embedder must be None (the shipped model), a model2vec folder or hub "
                f"name, a callable from texts to vectors, or an object with a method encode, not {type(spec).__name__}."
            )
        query = getattr(spec, "encode_query", None)
        name = name or str(getattr(spec, "__qualname__", None) or type(spec).__qualname__)
    calls = Calls(embed, name, prefix=passage_prefix, **options)
    queries = None
    if query is not None or query_prefix != passage_prefix:
        queries = Calls(query or embed, name, prefix=query_prefix, **options)
    return replace(_fingerprinted(calls, queries, name, digest), remote=_remote(spec))


def _remote(spec: object) -> str | None:
    """Return the remote host that an embedder declares as the recipient of texts, or None for a local one.

    Raises InputError if the declared host is not a printable name.
    """
    remote = getattr(spec, "remote", None)
    if remote is None:
        return None
    if (
        not isinstance(remote, str)
        or not 0 < len(remote.strip()) <= 200
        or not remote.isprintable()
    ):
        raise InputError(
            f"An embedder's remote must be the host or service to which it sends texts, a printable name of 1 to 200 "
            f"characters, not {remote!r:.60}."
        )
    return remote.strip()


# Every lab uses the same model, whose files are hashed once per process.
@cache
def _shipped() -> Embedder:
    """Return the embedder of the shipped model."""
    model = ShippedModel(_SHIPPED)
    embedder = _of_model(model, json.loads((_SHIPPED / "config.json").read_bytes())["name"])
    return replace(embedder, _knots=SHIPPED_KNOTS)


def _of_model(model: Model, name: str) -> Embedder:
    """Return the embedder of a model, with the fingerprint of its files."""
    digest = hashlib.sha256(_RULE)
    digest.update(model.digest().encode())
    return Embedder(name, digest.hexdigest(), model.dim(), model.encode)


def _fingerprinted(calls: Calls, queries: Calls | None, name: str, model: str | None) -> Embedder:
    """Build an embedder from embedding calls, with a fingerprint of its vectors.

    ``model`` is a text that identifies the model. If it is None, the vectors of fixed texts identify
    it. Queries that get the same vectors as texts are embedded as texts.
    """
    probes = list(_PROBES)
    raw = calls.raw(probes)
    digest, dim = hashlib.sha256(_RULE), raw.shape[1]
    described = _format_probes(name, raw)
    digest.update(described if model is None else model.encode())
    calls.dim = dim
    if model is not None and calls.is_changed:
        digest.update(described)
    if queries is not None:
        queries.dim = dim
        query_vectors = queries.raw(probes)
        # Rounding may differ between two calls of a service.
        if np.abs(quantize(query_vectors).astype(int) - quantize(raw)).max() <= _NOISE:
            queries = None
        else:
            digest.update(_format_probes("queries", query_vectors))
    return Embedder(name, digest.hexdigest(), dim, calls, _query=queries)


_NOISE = 2
"""Maximum difference of components from -127 to 127 that counts as rounding."""


def _format_probes(name: str, raw: Floats) -> bytes:
    """Return, as JSON, a name, the dimension, and the index and sign of each vector's largest component.

    ``raw`` has the vectors of fixed texts.
    """
    largest = np.abs(raw).argmax(axis=1)
    signs = np.sign(raw[np.arange(len(raw)), largest]).astype(int)
    return json.dumps([name, raw.shape[1], largest.tolist(), signs.tolist()]).encode()
