"""Embedders of users: query sides, prefixes, batches, failures, async functions, and the calibration on a lab."""

import asyncio
import json
import pickle
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import memlab
from memlab.errors import InputError, MissingExtra
from memlab.kernel.embedding import load_embedder, measure_scale
from memlab.kernel.embedding._calls import _FIRST_PAUSE
from memlab.ui.cli import main

LETTERS = "abcdefghijklmnopqrstuvwxyz: "


def letters(texts):
    return [[text.lower().count(letter) for letter in LETTERS] for text in texts]


def words(texts, dim=512):
    """Return sums of a fixed random vector for each word: a bag of words, without any meaning."""
    rows = np.zeros((len(texts), dim))
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().replace(".", "").split():
            seed = int.from_bytes(word.encode()[:16].ljust(16, b"\0"), "little")
            row += np.random.default_rng(seed).standard_normal(dim)
    return rows


class TwoSides:
    """An object with the methods of sentence-transformers."""

    def __init__(self):
        self.documents, self.queries = [], []

    def encode(self, texts):
        raise AssertionError("encode_document and encode_query come first")

    def encode_document(self, texts):
        self.documents += texts
        return letters(texts)

    def encode_query(self, texts):
        self.queries += texts
        return letters([f"qqqq {text}" for text in texts])


class Recorder:
    """A callable that records its calls, and fails or hangs at one of them."""

    def __init__(self, fails_at=None, error=None, hangs=False):
        self.calls, self.fails_at, self.hangs = [], fails_at, hangs
        self.error = error or ConnectionError("reset")
        self.release = threading.Event()

    def __call__(self, texts):
        self.calls.append(list(texts))
        if len(self.calls) == self.fails_at:
            if self.hangs:
                self.release.wait(10)
            else:
                raise self.error
        return letters(texts)


MANY = [f"memory {chr(97 + number % 26) * (number + 1)}" for number in range(40)]


class TestSides:
    def test_queries_and_memories_use_their_own_methods(self):
        model = TwoSides()
        with memlab.open(embedder=model) as lab:
            lab.remember("Ana prefers tabs")
            lab.recall("tabs or spaces?")
        assert "Ana prefers tabs" in model.documents
        assert "tabs or spaces?" in model.queries
        assert "tabs or spaces?" not in model.documents

    def test_a_query_side_is_part_of_the_fingerprint_and_an_equal_one_is_not(self):
        class Equal(TwoSides):
            def encode_query(self, texts):
                return letters(texts)

        plain = load_embedder(letters, name="m")
        assert load_embedder(Equal(), name="m").fingerprint == plain.fingerprint
        assert load_embedder(TwoSides(), name="m").fingerprint != plain.fingerprint

    def test_prefixes_stand_before_queries_and_passages(self):
        model = Recorder()
        embedder = load_embedder(model, query_prefix="query: ", passage_prefix="passage: ")
        model.calls.clear()
        embedder.encode(["tabs"])
        embedder.embed_query("tabs")
        assert model.calls == [["passage: tabs"], ["query: tabs"]]

    def test_dimensions_cut_and_are_refused_beyond_the_model(self):
        whole, cut = load_embedder(letters), load_embedder(letters, dimensions=5)
        assert cut.dim == 5
        assert cut.fingerprint != whole.fingerprint
        raw = np.array(letters(["cabbage"]))[:, :5]
        assert (cut.encode(["cabbage"]) == np.rint(raw / raw.max() * 127)).all()
        with pytest.raises(InputError, match="28 dimensions, so 29 cannot be kept"):
            load_embedder(letters, dimensions=29)

    def test_the_shipped_model_takes_no_prefix(self):
        with pytest.raises(InputError, match="can be set only for your own model"):
            load_embedder(query_prefix="query: ")


class TestBatches:
    def test_no_call_has_more_texts_than_the_batch_size(self):
        model = Recorder()
        embedder = load_embedder(model, batch_size=8)
        model.calls.clear()
        vectors = embedder.encode([*MANY, MANY[0]])
        assert [len(call) for call in model.calls] == [8] * 5
        assert (vectors == load_embedder(letters).encode([*MANY, MANY[0]])).all()

    def test_a_failed_batch_loses_only_itself(self):
        model = Recorder(fails_at=4, error=ValueError("no"))  # the first call has the probes
        embedder = load_embedder(model, batch_size=8)
        with pytest.raises(InputError, match="raised ValueError: no") as caught:
            embedder.encode(MANY)
        assert "16 of 40 texts are embedded" in caught.value.__notes__[0]
        model.fails_at = None
        model.calls.clear()
        vectors = embedder.encode(MANY)
        assert [text for call in model.calls for text in call] == MANY[16:]
        assert (vectors == load_embedder(letters).encode(MANY)).all()
        model.calls.clear()
        embedder.encode(MANY)
        assert sum(map(len, model.calls)) == 40  # kept vectors serve one call

    @pytest.mark.long
    def test_a_connection_that_breaks_is_tried_again_and_a_mistake_is_not(self):
        model = Recorder(fails_at=2)
        embedder = load_embedder(model)
        assert (embedder.encode(["tabs"]) == load_embedder(letters).encode(["tabs"])).all()
        assert len(model.calls) == 3
        model = Recorder(fails_at=2, error=TypeError("tokens"))
        with pytest.raises(InputError, match="raised TypeError: tokens"):
            load_embedder(model).encode(["tabs"])
        assert len(model.calls) == 2
        with pytest.raises(InputError, match=r"raised ConnectionError: reset \(1 attempt|reset$"):
            load_embedder(Recorder(fails_at=1), retries=0)
        assert _FIRST_PAUSE * 5 < 1  # two pauses stay below a second

    @pytest.mark.long
    @pytest.mark.parametrize("is_async", [False, True])
    def test_a_batch_that_hangs_is_named_and_those_before_it_are_kept(self, is_async):
        model = Recorder(fails_at=4, hangs=not is_async)

        async def slow(texts):
            model.calls.append(list(texts))
            await asyncio.sleep(30 if len(model.calls) == 4 else 0)
            return letters(texts)

        embedder = load_embedder(slow if is_async else model, batch_size=8, timeout=0.2)
        started = time.monotonic()
        with pytest.raises(InputError, match=r"returned nothing for 8 texts within 0\.2 seconds"):
            embedder.encode(MANY)
        assert time.monotonic() - started < 5
        model.release.set()
        model.calls = model.calls[:5] * 2
        seen = len(model.calls)
        embedder.encode(MANY)
        assert [text for call in model.calls[seen:] for text in call] == MANY[16:]

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (lambda texts: np.full((len(texts), 28), np.nan), "returned nan in component 0"),
            (lambda texts: letters(texts)[:-1], r"array \(0,\) for 1 texts|array"),
            (lambda texts: [row[:9] for row in letters(texts)], "returned 9 dimensions"),
        ],
    )
    def test_what_is_no_vector_leaves_the_lab_as_it_was(self, answer, message):
        state = {"answer": letters}
        with memlab.open(embedder=lambda texts: state["answer"](texts)) as lab:
            lab.remember("Ana prefers tabs")
            state["answer"] = answer
            with pytest.raises(InputError, match=message):
                lab.remember("Ben prefers spaces")
            state["answer"] = letters
            assert len(lab) == 1
            lab.remember("Ben prefers spaces")
            assert len(lab) == 2

    def test_equal_queries_are_embedded_once(self):
        model = Recorder()
        with memlab.open(embedder=model) as lab:
            lab.remember("Ana prefers tabs")
            model.calls.clear()
            for _ in range(3):
                lab.recall("tabs or spaces?")
        assert model.calls == [["tabs or spaces?"]]

    def test_an_embedder_travels_to_another_process(self):
        embedder = pickle.loads(pickle.dumps(load_embedder(letters, batch_size=8)))
        assert (embedder.encode(MANY) == load_embedder(letters).encode(MANY)).all()


class TestAsync:
    def test_an_async_function_is_an_embedder(self):
        async def embed(texts):
            await asyncio.sleep(0)
            return letters(texts)

        with memlab.open(embedder=embed) as lab:
            lab.remember(["Ana prefers tabs", "Ben prefers spaces"])
            assert lab.recall("tabs")[0].text == "Ana prefers tabs"

    def test_it_runs_below_a_running_event_loop(self):
        async def embed(texts):
            await asyncio.sleep(0)
            return letters(texts)

        async def main():
            return load_embedder(embed).encode(["tabs"])

        assert asyncio.run(main()).shape == (1, 28)


STATEMENTS = Path(__file__).parents[2] / "experiments" / "data" / "changes_of_state.jsonl"
MANY_TEXTS = [
    pair[side]["text"]
    for pair in map(json.loads, STATEMENTS.read_text(encoding="utf-8").splitlines())
    for side in ("before", "after")
    if side in pair
]


@pytest.mark.long
class TestCalibration:
    def test_quantiles_of_the_labs_own_pairs_are_met(self):
        texts = MANY_TEXTS[:150]
        embedder, shipped = load_embedder(words), load_embedder()
        scale = measure_scale(embedder, texts)
        cosines, levels = np.array(scale["knots"]).T
        assert (np.diff(cosines) > 0).all()
        assert (np.diff(levels) > 0).all()
        scaled = embedder.scaled(scale)
        matrix = [model.encode(texts).astype(float) for model in (scaled, shipped)]
        unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in matrix]
        above = np.triu_indices(len(texts), 1)
        close = [
            model.closeness((rows @ rows.T)[above])
            for model, rows in zip((scaled, shipped), unit, strict=True)
        ]
        for share in (0.1, 0.5, 0.9, 0.99):
            assert abs(np.quantile(close[0], share) - np.quantile(close[1], share)) < 0.02

    def test_reliance_needs_meaning(self):
        texts = MANY_TEXTS[:150]
        generator = np.random.default_rng(7)
        noise = load_embedder(lambda some: generator.standard_normal((len(some), 64)), name="noise")
        assert measure_scale(noise, texts)["reliance"] == 0.0
        assert measure_scale(load_embedder(letters), texts)["reliance"] == 0.0
        assert measure_scale(load_embedder(), texts)["reliance"] == 0.0

    def test_it_is_recorded_at_first_use_and_read_again(self, tmp_path):
        path = tmp_path / "lab"
        with memlab.open(path, embedder=words) as lab:
            lab.remember(MANY_TEXTS[:90])
            lab.recall("Who prefers tabs?")
            assert lab.io.store.state.scale is None
            lab.remember(MANY_TEXTS[90:130])
            before = lab.recall("Who prefers tabs?").slate
            scale = lab.io.store.state.scale
            assert scale["rows"] == 100
            assert before.fingerprints["embedder"] == lab.io.embedder.scoring
            assert lab.io.embedder.scoring != lab.io.embedder.fingerprint
        with memlab.open(path, embedder=words) as lab:
            assert lab.io.store.state.scale == scale
            slate = lab.recall("Who prefers tabs?", log=False).slate
            assert (slate.scores == before.scores).all()
            lab.io.snapshot()
        with memlab.open(path, embedder=words) as lab:
            assert lab.io.store.state.scale == scale
        with memlab.open(path, reembed=True) as lab:
            assert lab.io.store.state.scale is None
            assert lab.io.embedder.reliance == 0.0

    def test_a_read_only_lab_and_the_shipped_model_are_not_calibrated(self, tmp_path):
        path = tmp_path / "lab"
        with memlab.open(path, embedder=words) as lab:
            lab.remember(MANY_TEXTS[:120])
        with memlab.open(path, embedder=words, read_only=True) as lab:
            lab.recall("Who prefers tabs?")
            assert lab.io.store.state.scale is None
        with memlab.open() as lab:
            lab.remember(MANY_TEXTS[:120])
            lab.recall("Who prefers tabs?")
            assert lab.io.store.state.scale is None

    def test_a_service_gets_no_text_while_memory_is_off(self):
        sent = []

        def embed(texts):
            sent.extend(texts)
            return words(texts)

        embed.remote = "vectors.example.com"
        with memlab.open(embedder=embed) as lab:
            lab.remember(MANY_TEXTS[:120])
            lab.agents.switch_off()
            sent.clear()
            lab.recall("Who prefers tabs?")
            assert sent == []
            assert lab.io.store.state.scale is None


def test_minilm_is_the_model_it_says():
    try:
        embedder = load_embedder("minilm")
    except MissingExtra as error:
        pytest.skip(str(error))
    vectors = embedder.encode(
        ["When did Ann move to Lisbon?", "Ann moved to Portugal in May", "Rain"]
    ).astype(float)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert embedder.dim == 384
    assert (unit @ unit.T)[0, 1] == pytest.approx(0.84, abs=0.02)
    assert (unit @ unit.T)[0, 2] < 0.3


@pytest.mark.long
def test_a_benchmark_takes_the_embedder_of_a_module(tmp_path, monkeypatch):
    (tmp_path / "models_of_mine.py").write_text(
        "calls = []\n"
        "def embed(texts):\n"
        "    calls.append(len(texts))\n"
        "    return [[text.count(letter) for letter in 'aeiou'] for text in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    with memlab.open("lab") as lab:
        lab.remember([{"text": "Ana prefers tabs", "ref": "a"}, {"text": "It rains", "ref": "b"}])
    (tmp_path / "wanted.csv").write_text("question,ref\nWhat does Ana prefer?,a\n")
    run = partial(CliRunner().invoke, main)
    command = ["bench", "lab", "lab", "wanted.csv", "--packs", "memlab", "--embedder"]
    refused = run([*command, "models_of_mine:nothing"])
    assert refused.exit_code == 2
    assert "models_of_mine:nothing cannot be imported" in refused.output
    assert "EmbedderMismatch" in repr(run([*command, "models_of_mine:embed"])) or (
        "holds vectors of" in run([*command, "models_of_mine:embed"]).output
    )
    memlab.open("lab", embedder=sys.modules["models_of_mine"].embed, reembed=True).close()
    done = run([*command, "models_of_mine:embed"])
    assert done.exit_code == 0, done.output
