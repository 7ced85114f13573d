"""A short text is embedded from the tokens of its words, and as the tokeniser reads it whole."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.embedding import Model, load_embedder
from tests.properties import examples

SHIPPED = load_embedder()


def shipped_model() -> Model:
    SHIPPED.encode(["a"])
    model = SHIPPED._embed.__self__  # type: ignore[attr-defined]
    assert isinstance(model, Model)
    return model


def static_of(model: Model) -> Any:
    """Return the model of model2vec."""
    return model._static


def few_of(model: Model) -> Any:
    """Return what embeds few texts at once."""
    assert model._few is not None
    return model._few


def read_whole(model: Model, text: str) -> list[int]:
    static = static_of(model)
    tokens = static.tokenizer.encode(text[: few_of(model).characters], add_special_tokens=False).ids
    return [token for token in tokens if token != static.unk_token_id]


@examples(200)
@given(st.text(st.characters(max_codepoint=0x17F), max_size=200))
def test_tokens_of_words_are_those_of_the_text(text: str) -> None:
    model = shipped_model()
    assert few_of(model).pieces is not None
    assert few_of(model).tokens(text) == read_whole(model, text)


def test_a_long_text_is_cut_where_the_tokeniser_cuts_it() -> None:
    model = shipped_model()
    text = " ".join(f"w{number}x" for number in range(900))
    assert few_of(model).tokens(text) == read_whole(model, text)
    assert few_of(model).tokens("a" * 150) == read_whole(model, "a" * 150)


def test_several_texts_have_the_vectors_of_each_alone() -> None:
    texts = ["when is the regatta?", "", "Zx qq", "[PAD] is no word", "été à Genève"]
    alone = np.concatenate([SHIPPED.encode([text]) for text in texts])
    assert np.array_equal(SHIPPED.encode(texts), alone)
    whole = static_of(shipped_model()).encode(texts, normalize=False, use_multiprocessing=False)
    assert np.array_equal(shipped_model().encode(texts), whole.astype(np.float32))
