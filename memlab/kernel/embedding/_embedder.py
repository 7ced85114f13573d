"""Embedders: a name, a fingerprint, and integer vectors.

A vector is scaled so that its largest component is 127 in magnitude, and rounded; a cosine does not see the scale,
and products of integers are exact in any order. A zero vector (an empty text) stays zero.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memlab.errors import InputError
from memlab.kernel.base.arguments import AsGiven, Called, checked
from memlab.kernel.embedding._calibration import SHIPPED_KNOTS, Knots, calibrated, even_length
from memlab.kernel.embedding._model import Model
from memlab.kernel.registry import Registry

__all__ = ["EMBEDDERS", "Embedder", "EmbedderSource", "EmbedderSpec", "load_embedder"]

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
        return _rounded(_checked_vectors(self._embed(texts), texts, self.dim, self.name))

    @checked
    def closeness(self, cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cosines on the scale of all-MiniLM-L6-v2, for which thresholds are usually written.

        Equal quantiles for the shipped model; any other embedder's cosines as they are.
        """
        return calibrated(cosine, self._knots)

    def scale(self, cosine: NDArray[np.float64]) -> NDArray[np.float64]:
        """What ``closeness`` gives, of cosines that were computed here."""
        return calibrated(cosine, self._knots)

    @checked
    def pair_closeness(self, cosine: NDArray[np.float64], length: NDArray[np.float64]) -> NDArray[np.float64]:
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

EmbedderSpec = Annotated[str | Path | Callable[[list[str]], ArrayLike] | Encodes | Embedder | None, AsGiven]
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
    embed = getattr(spec, "encode", spec)  # a SentenceTransformer can be called too, as a layer of a network
    if isinstance(spec, type) or not callable(embed):
        raise InputError(
            "An embedder is None (the shipped model), a model2vec folder or hub name, a callable from texts to "
            f"vectors, or an object with a method encode, not {type(spec).__name__}."
        )
    made = _of_callable(
        Called(embed, "open(embedder=...)"), name or getattr(spec, "__qualname__", None) or type(spec).__qualname__
    )
    return replace(made, remote=_remote(spec))


def _remote(spec: object) -> str | None:
    """Where an embedder says that it sends texts; InputError where it says so by something else than a name."""
    remote = getattr(spec, "remote", None)
    if remote is None:
        return None
    if not isinstance(remote, str) or not 0 < len(remote.strip()) <= 200 or not remote.isprintable():
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


def _checked_vectors(returned: ArrayLike, texts: list[str], dim: int | None, name: str) -> NDArray[np.float64]:
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


def _rounded(raw: NDArray[np.float64]) -> NDArray[np.int8]:
    largest = np.maximum.reduce(np.abs(raw), axis=1, keepdims=True)
    largest[largest == 0.0] = 1.0  # all are zero, and stay so
    # divided first: 127 / largest overflows for the smallest floats
    shares = raw / largest
    shares *= 127.0
    rounded: NDArray[np.int8] = np.rint(shares, out=shares).astype(np.int8)
    return rounded


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
