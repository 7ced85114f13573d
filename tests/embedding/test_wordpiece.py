"""The shipped model is read without model2vec, with the tokens of ``tokenizers`` and the vectors of model2vec."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.kernel.embedding import load_embedder
from memlab.kernel.embedding._wordpiece import WordPiece
from tests.properties import examples

tokenizers = pytest.importorskip("tokenizers")
SHIPPED = load_embedder()
FOLDER = Path(SHIPPED._embed.__self__.folder)  # type: ignore[attr-defined]
UNKNOWN = 1
ROOT = Path(__file__).parents[2]


OWN = WordPiece(FOLDER / "tokenizer.json", 512)
REFERENCE = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
REFERENCE.enable_truncation(512)


def assert_equal_tokens(text: str) -> None:
    """Compare the tokens of a text, of which model2vec reads 6 characters for each of 512 tokens."""
    expected = REFERENCE.encode(text[:3072], add_special_tokens=False).ids
    assert OWN.read(text) == [token for token in expected if token != UNKNOWN], ascii(text[:200])


# characters whose treatment differs: special tokens, sigmas, letters that grow, marks, ideographs, controls, late scripts
SPECIAL = st.sampled_from(
    [
        *"[]ΣσςİßẞŉǰΐﬁÅé一丁가각",
        *"\0\t\n\r\x0b\x1c\x85\xa0\u0301\u0323\u0898\u200b\u200d\u2028\u3000\ue000\ufeff\ufffd",
        *"\U0002b820\U0002b920\U0002fa1e\U000f0000",
        *("[PAD]", "[UNK]", "[CLS]", "##a", "a" * 101),
    ]
)


@pytest.mark.long
@examples(200)
@given(st.lists(st.text(max_size=30) | st.text(st.characters(max_codepoint=0x17F)) | SPECIAL))
def test_tokens_are_those_of_tokenizers(parts: list[str]) -> None:
    assert_equal_tokens("".join(parts))


@pytest.mark.long
@pytest.mark.parametrize("stop", [0x3400, pytest.param(0x110000, marks=pytest.mark.slow, id="all")])
def test_each_character_within_a_word_and_alone(stop: int) -> None:
    for start in range(0, stop, 64):
        codes = [code for code in range(start, start + 64) if not 0xD800 <= code < 0xE000]
        assert_equal_tokens(" ".join(f"ab{chr(code)}cd {chr(code)}" for code in codes))


def test_a_long_text_is_cut_where_the_tokeniser_cuts_it() -> None:
    assert_equal_tokens(" ".join(f"w{number}x" for number in range(900)))
    assert_equal_tokens("a " * 900)
    assert_equal_tokens("a" * 150)
    assert len(OWN.read("a " * 900)) == 512


@pytest.mark.long
def test_texts_of_the_project_and_of_data_sets() -> None:
    folders = [ROOT / "docs", ROOT / "memlab" / "science" / "examples"]
    if "MEMLAB_DATA" in os.environ:
        folders += [Path(os.environ["MEMLAB_DATA"]), ROOT / "experiments" / "data"]
    texts = {
        line
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in {".csv", ".json", ".jsonl", ".md", ".py"}
        for line in path.read_text(encoding="utf-8").splitlines()
    }
    assert len(texts) > 1_000
    print(f"{len(texts):,} texts")
    for text in texts:
        assert_equal_tokens(text)


@pytest.mark.long
def test_vectors_are_those_of_model2vec_to_the_bit() -> None:
    model2vec = pytest.importorskip("model2vec")
    texts = ["when is the regatta?", "", "Zx qq", "[PAD] is no word", "été à Genève", "湖の水 ΟΔΟΣ"]
    texts += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    texts += [f"turn {number}" for number in range(1_000)]  # more than are gathered at once
    reference = model2vec.StaticModel.from_pretrained(FOLDER, force_download=False)
    expected = reference.encode(texts, normalize=False, use_multiprocessing=False)
    own = SHIPPED._embed(texts)
    assert np.asarray(own).tobytes() == expected.astype(np.float32).tobytes()
    alone = np.concatenate([SHIPPED.encode([text]) for text in texts])
    assert np.array_equal(SHIPPED.encode(texts), alone)
