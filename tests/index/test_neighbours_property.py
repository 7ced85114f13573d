"""Whatever happens to rows, masks and files, and in whatever order: what a search returns is true."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.kernel.index import BLOCK, Neighbours, Vectors
from memlab.kernel.index._neighbours import build_from_spool as build_here

pytest.importorskip("annoy")

DIM = 8
LIMIT = 500

step = st.one_of(
    st.tuples(
        st.just("append"), st.integers(1, 3_000), st.sampled_from(["random", "equal", "zero"])
    ),
    st.tuples(st.just("mask"), st.sampled_from([0.0, 0.05, 0.3, 0.9, 1.0])),
    st.tuples(st.just("rebuild")),
    st.tuples(st.just("crash"), st.sampled_from(["before the index", "before the header"])),
    st.tuples(st.just("reopen")),
    st.tuples(
        st.just("damage"), st.sampled_from(["flip", "cut", "no header", "no index", "nonsense"])
    ),
    st.tuples(st.just("embedder")),
)


class World:
    """Vectors and their index, next to a plain matrix and a plain mask."""

    def __init__(self, folder, kind, seed):
        self.folder, self.kind = folder / "neighbours", kind
        self.file = folder / "vectors"
        self.chance = np.random.default_rng(seed)
        self.matrix = np.zeros((0, DIM), dtype=np.int8)
        self.share = 1.0
        self.vectors = Vectors(DIM, exact_up_to=LIMIT)
        self.neighbours = self.neighbours_of(self.vectors)
        self.append(BLOCK + 50, "random")
        self.rebuild()

    def neighbours_of(self, vectors):
        return Neighbours(self.folder, vectors, kind=self.kind, background=False)

    def append(self, rows, sort):
        block = self.chance.integers(-127, 128, (rows, DIM), dtype=np.int8)
        if sort == "equal":
            block[:] = block[0]
        if sort == "zero":
            block[:] = 0
        self.vectors.append(block)
        self.matrix = np.concatenate([self.matrix, block])

    def mask(self, share):
        self.share = share

    def rebuild(self):
        self.folder.mkdir(exist_ok=True)
        rows = len(self.vectors) // BLOCK * BLOCK
        spool = self.folder / ".draft-vectors"
        spool.unlink(missing_ok=True)
        self.vectors.prefix(rows).spool(spool)
        build_here(str(self.folder), self.kind, str(rows), self.vectors.digest(rows), str(spool))

    def crash(self, when):
        self.rebuild()
        index, header = self.newest()
        if when == "before the index":
            index.rename(self.folder / f".draft-{self.kind}")
        header.unlink(missing_ok=True)

    def reopen(self):
        self.vectors.save(self.file)
        self.neighbours.close()
        self.vectors = Vectors.load(self.file, exact_up_to=LIMIT)
        self.neighbours = self.neighbours_of(self.vectors)

    def damage(self, how):
        index, header = self.newest()
        if index is None:
            return
        if how == "flip":
            data = bytearray(index.read_bytes())
            data[int(self.chance.integers(len(data)))] ^= 255
            index.unlink()  # a new file, because a reader may have mapped the old one
            index.write_bytes(data)
        elif how == "cut":
            data = index.read_bytes()
            index.unlink()
            index.write_bytes(data[: len(data) // 2])
        elif how == "nonsense":
            header.write_text('{"format": 1')
        else:
            (header if how == "no header" else index).unlink(missing_ok=True)

    def embedder(self):
        self.vectors = Vectors(DIM, exact_up_to=LIMIT)
        self.matrix = -self.matrix[:, ::-1]
        self.vectors.append(self.matrix)
        self.neighbours.refresh(self.vectors)

    def newest(self):
        ordered = sorted(self.folder.glob("*.index"))
        return (
            (ordered[-1], ordered[-1].with_name(f"{ordered[-1].name}.json"))
            if ordered
            else (None, None)
        )

    def check(self):
        self.neighbours.refresh()
        mask = self.chance.random(len(self.matrix)) < self.share
        rows = np.flatnonzero(mask)
        near = self.matrix[int(self.chance.integers(len(self.matrix)))]
        for query in (
            near,
            self.chance.integers(-127, 128, DIM, dtype=np.int8),
            np.zeros(DIM, dtype=np.int8),
        ):
            self.check_search(query, mask, rows, n=int(self.chance.integers(0, 30)))

    def check_search(self, query, mask, rows, n):
        wide, asked = self.matrix.astype(np.int64), query.astype(np.int64)
        norms = np.sqrt(((wide * wide).sum(axis=1) * (asked @ asked)).astype(np.float64))
        truth = np.divide(wide @ asked, norms, out=np.zeros(len(wide)), where=norms > 0)
        best = rows[np.lexsort((rows, -truth[rows]))][:n]
        found, cosines = self.vectors.top(query, n, rows=rows, mask=mask)
        assert cosines.tolist() == truth[found].tolist()
        assert list(zip(-cosines, found, strict=True)) == sorted(
            set(zip(-cosines, found, strict=True))
        )
        assert mask[found].all()
        assert len(found) == len(best)
        base = self.neighbours.base
        if base is None or len(rows) <= LIMIT:
            assert found.tolist() == best.tolist()
        else:
            assert set(best[best >= len(base)].tolist()) <= set(found.tolist())
            assert self.vectors.digest(len(base), rehash=True) == base.header.vectors


@pytest.mark.long
@settings(deadline=None, max_examples=2, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, min_size=2, max_size=9), st.integers(0, 2**32 - 1))
def test_search_results_are_correct(tmp_path_factory, steps, seed):
    live(tmp_path_factory.mktemp("world"), "annoy", steps, seed)


@pytest.mark.slow
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, min_size=5, max_size=25), st.integers(0, 2**32 - 1))
def test_search_results_are_correct_in_long_runs(tmp_path_factory, steps, seed):
    live(tmp_path_factory.mktemp("world"), "annoy", steps, seed)


def live(folder, kind, steps, seed):
    world = World(folder, kind, seed)
    world.check()
    assert world.neighbours.base is not None
    for name, *rest in steps:
        getattr(world, name)(*rest)
        world.check()
    world.neighbours.wait()
    world.check()
    world.rebuild()
    world.check()
    assert len(world.neighbours.base) == len(world.matrix) // BLOCK * BLOCK
    world.neighbours.close()
