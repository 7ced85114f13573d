"""Static models: the shipped one is what NumPy computes from its files, and it loads without network."""

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

import memlab.kernel.embedding
from memlab.errors import InputError
from memlab.kernel.embedding import load_embedder
from memlab.kernel.embedding._embedder import Model

SHIPPED = Path(memlab.kernel.embedding.__file__).parent / "model"
TEXTS = [
    "The user prefers tabs over spaces.",
    "When did Ann move to Lisbon, and why?",
    "def get_user_name(user): return user.name  # TypeError: 'NoneType'",
    "ok",
    "the",
    "Ça va? 東京で会いましょう 🙂",
    "x" * 300,
    "",
    "   ",
]


def by_hand(folder, texts, length=512):
    """Return the mean of the token vectors, read from the files."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    vectors = load_file(folder / "model.safetensors")["embeddings"].astype(np.float64)
    unknown = tokenizer.token_to_id("[UNK]")
    out = np.zeros((len(texts), vectors.shape[1]))
    for row, text in enumerate(texts):
        ids = tokenizer.encode(text, add_special_tokens=False).ids[:length]
        ids = [token for token in ids if token != unknown]
        if ids:
            out[row] = vectors[ids].mean(axis=0)
    return out


def rounded(raw):
    largest = np.abs(raw).max(axis=1, keepdims=True)
    return np.rint(127 * raw / np.where(largest > 0, largest, 1)).astype(int)


class TestShipped:
    @pytest.mark.long
    def test_a_text_is_the_mean_of_its_integer_token_vectors(self):
        vectors = load_embedder().encode(TEXTS)
        assert vectors.shape == (len(TEXTS), 256)
        # f32 holds the mean to 24 bits, so a component at a half may fall either way
        difference = vectors.astype(int) - rounded(by_hand(SHIPPED, TEXTS))
        assert np.abs(difference).max() <= 1
        assert (difference != 0).mean() < 0.001

    @pytest.mark.long
    def test_model2vec_gives_the_normalised_mean(self):
        from model2vec import StaticModel

        model = StaticModel.from_pretrained(SHIPPED, force_download=False)
        raw = by_hand(SHIPPED, TEXTS)
        norms = np.linalg.norm(raw, axis=1, keepdims=True)
        assert np.abs(model.encode(TEXTS) - raw / np.where(norms > 0, norms, 1)).max() < 1e-6
        assert model.embedding.dtype == np.int8

    @pytest.mark.long
    def test_a_batch_is_its_texts_one_by_one(self):
        embedder = load_embedder()
        texts = [*TEXTS, *(f"{text} {number}" for text in TEXTS for number in range(150))]
        together = embedder.encode(texts)
        assert (
            together[::7] == np.concatenate([embedder.encode([text]) for text in texts[::7]])
        ).all()

    @pytest.mark.long
    @settings(deadline=None)
    @given(st.text(max_size=60) | st.sampled_from([*TEXTS, "long " * 4000, "x" * 4000]))
    def test_a_text_has_the_same_bits_alone_and_in_a_batch(self, shipped, text):
        assert (
            shipped.encode([text]).tobytes() == shipped.encode([text, "and another"])[:1].tobytes()
        )

    def test_only_texts_without_a_known_token_are_zero(self):
        # 300 letters without a space are one unknown word
        assert load_embedder().encode(TEXTS).any(axis=1).tolist() == [True] * 6 + [False] * 3

    def test_near_is_near(self):
        ask, tabs, cat = (
            load_embedder()
            .encode(
                ["how should I indent my code?", "I indent with tabs", "The cat sleeps on the sofa"]
            )
            .astype(float)
        )
        assert np.linalg.norm(ask - tabs) < 0.7 * np.linalg.norm(ask - cat)

    def test_a_megabyte_costs_no_more_than_a_page(self):
        embedder = load_embedder()
        page = "a word and another " * 200
        embedder.encode([page])
        started = time.process_time()
        whole = embedder.encode([page * 260])
        assert time.process_time() - started < 5, (
            "2 ms where it was measured; all of its tokens would take many seconds"
        )
        assert (whole == embedder.encode([page])).all()

    def test_the_files_are_those_that_were_built(self):
        recorded = dict(
            line.split()[::-1] for line in (SHIPPED / "SHA256SUMS").read_text().splitlines()
        )
        assert set(recorded) == {"config.json", "model.safetensors", "tokenizer.json"}
        for name, digest in recorded.items():
            assert hashlib.sha256((SHIPPED / name).read_bytes()).hexdigest() == digest
        assert sum(item.stat().st_size for item in SHIPPED.iterdir()) < 8_500_000
        assert "Apache License" in (SHIPPED / "LICENSE").read_text()

    @pytest.mark.long
    def test_the_model_is_loaded_once_from_its_folder(self):
        assert load_embedder() is load_embedder(None)
        by_path = load_embedder(SHIPPED)
        assert (
            by_path.fingerprint
            == load_embedder().fingerprint
            == load_embedder(str(SHIPPED)).fingerprint
        )
        assert (by_path.name, load_embedder().name) == ("model", "memlab-minilm-256")
        assert (by_path.encode(TEXTS) == load_embedder().encode(TEXTS)).all()

    @pytest.mark.long
    def test_no_network_no_torch_and_no_model2vec_for_the_shipped_model(self):
        program = """
import sys
def deny(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        raise RuntimeError(f"{event} {arguments}")
sys.addaudithook(deny)
from memlab.kernel.embedding import load_embedder
embedder = load_embedder()
assert len(embedder.fingerprint) == 64 and embedder.dim == 256
assert embedder.encode(["offline", "été 湖"]).any()
assert not {"huggingface_hub", "model2vec", "safetensors", "tokenizers", "torch"} & set(sys.modules)
print("done")
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.fixture(scope="module")
def shipped():
    return Model(SHIPPED)


@pytest.fixture
def tiny(tmp_path):
    """Return a function that writes a model of four words in a dtype."""

    def make(name, vectors, **config):
        folder = tmp_path / name
        folder.mkdir()
        tokens = ["[PAD]", "[UNK]", "tabs", "spaces", "lisbon"]
        tokenizer = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": {"type": "Lowercase"},
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "WordLevel",
                "vocab": {token: number for number, token in enumerate(tokens)},
                "unk_token": "[UNK]",
            },
        }
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        (folder / "config.json").write_text(json.dumps({"normalize": True, **config}))
        save_file({"embeddings": vectors}, folder / "model.safetensors")
        return folder

    return make


VECTORS = np.array([[0, 0, 0], [1, 1, 1], [4, 0, -2], [2, 0, 2], [0, 0, 1]])


class TestFolders:
    @pytest.mark.long
    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
    def test_any_precision_gives_the_same_integers(self, tiny, dtype):
        embedder = load_embedder(tiny("model", VECTORS.astype(dtype)))
        assert embedder.dim == 3
        # the unknown word is left out: (4, 0, -2) + (2, 0, 2) = (6, 0, 0)
        assert embedder.encode(["Tabs unheard spaces", "lisbon tabs", "unheard", ""]).tolist() == [
            [127, 0, 0],
            [127, 0, -32],
            [0, 0, 0],
            [0, 0, 0],
        ]

    @pytest.mark.long
    def test_the_fingerprint_covers_weights_and_settings(self, tiny):
        prints = [
            load_embedder(folder).fingerprint
            for folder in (
                tiny("one", VECTORS.astype(np.float32)),
                tiny("two", VECTORS.astype(np.float32)),
                tiny("other weights", (VECTORS + 1).astype(np.float32)),
                tiny("other settings", VECTORS.astype(np.float32), max_length=8),
            )
        ]
        assert prints[0] == prints[1]
        assert len(set(prints)) == 3

    def test_a_folder_without_a_model_is_refused(self, tmp_path, tiny):
        with pytest.raises(InputError, match="does not contain a model2vec model"):
            load_embedder(tmp_path)
        for name in ("model.safetensors", "tokenizer.json", "config.json"):
            folder = tiny(name, VECTORS.astype(np.float32))
            (folder / name).write_bytes(b"nonsense")
            with pytest.raises(InputError, match="does not contain a model2vec model"):
                load_embedder(folder)
        with pytest.raises(InputError, match="is a file"):
            load_embedder(tiny("file", VECTORS.astype(np.float32)) / "config.json")

    @pytest.mark.long
    def test_a_name_that_the_hub_does_not_give_says_so(self, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        with pytest.raises(
            InputError, match=r'no folder "memlab/no-such-model".* None for the model that ships'
        ):
            load_embedder("memlab/no-such-model")
        with pytest.raises(InputError, match="no folder"):
            load_embedder("neither a folder nor a name?")
