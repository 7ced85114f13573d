"""What several test files share: a quick embedder, a clock that moves when told to, and a lab on disk."""

import gc
import json
import os
import shutil
import sys
from itertools import compress
from operator import not_
from pathlib import Path
from zlib import crc32

import pytest
from chromium import launched
from click.testing import CliRunner
from embedders import letters
from hypothesis import HealthCheck, is_hypothesis_test, settings

import memlab
from memlab.kernel import extension
from memlab.kernel.embedding import load_embedder
from memlab.kernel.journal import _vault
from memlab.kernel.storage.store import Store
from memlab.ui.cli import main

# Tests and studies are imported by their full names from the root, and studies import their shared modules by the names
# of files, as they do when they run as scripts.
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
sys.path.append(str(ROOT / "experiments"))

Store.strict = True
_vault._COST = (
    16  # scrypt takes 0.15 s of a core for each passphrase; processes that tests start pay it
)

# Tests assert what is right, never how long it takes: machines are noisy.
settings.register_profile(
    "quick", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=10
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=200)
settings.load_profile("quick")


def pytest_addoption(parser):
    parser.addoption(
        "--share",
        metavar="K/N",
        default="0/1",
        help="run the K-th of N shares of the tests, from 0",
    )


def pytest_configure(config):
    """Run property tests again with all their examples under ``pytest -m slow``."""
    # Tests run at the same time in several processes; threads of one that wait for others took most of the time of a
    # fit. Read when the libraries are loaded: by processes that start after this, and by those that need SciPy later.
    for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(threads, "1")
    # Thousands of labs are written and removed: in memory, this takes a third less time. It needs half a gigabyte.
    if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 4e9:
        os.environ.setdefault("TMPDIR", "/dev/shm")
    # Tests start some hundred processes: without a cache, each would compile its imports again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    gc.disable()  # until all is collected: nothing of it is garbage
    if config.option.markexpr == "slow":
        settings.load_profile("thorough")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    # A share by names: a test stays in its share when others are added, and all cases of a test are together.
    share, shares = map(int, config.option.share.split("/"))
    chosen = [crc32(item.nodeid.partition("[")[0].encode()) % shares == share for item in items]
    config.hook.pytest_deselected(items=[*compress(items, map(not_, chosen))])
    items[:] = compress(items, chosen)
    if config.option.markexpr == "slow":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("slow")


def pytest_collection_finish():
    """Freeze modules and tests, so that the garbage collector does not visit them again and again."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def trigrams():
    return load_embedder(letters)


@pytest.fixture(scope="session")
def browser():
    with launched() as opened:
        yield opened


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-01T12:00:00")


@pytest.fixture
def lab(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock) as opened:
        yield opened


@pytest.fixture
def disk(tmp_path, trigrams, clock):
    """Return a function that opens the same lab on disk, any number of times."""

    def opened(**more):
        return memlab.open(tmp_path / "agent.memlab", embedder=trigrams, clock=clock, **more)

    return opened


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the command line in an empty folder and returns the result."""
    monkeypatch.chdir(tmp_path)

    def call(*words, input=None):
        # --key-file sets the variable; the runner restores it
        env = {"MEMLAB_KEY": os.environ.get("MEMLAB_KEY")}
        return CliRunner().invoke(main, [str(word) for word in words], input=input, env=env)

    return call


@pytest.fixture
def json_of(run):
    """Return a function that runs a command, which must succeed, and parses its JSON."""

    def call(*words, input=None):
        result = run(*words, "--json", input=input)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return call


@pytest.fixture
def execute_notebook(tmp_path):
    """Return a function that runs a notebook (JSON) in a real kernel and returns it with its outputs."""
    # imported here: nbformat compiles a grammar of every kind of address, 3 s of each process that collects tests
    import nbclient
    import nbformat

    def execute(source):
        notebook = nbformat.reads(source, as_version=4)
        nbclient.NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
        ).execute()
        return notebook

    return execute


@pytest.fixture(autouse=True)
def _only_installed_extensions():
    """Remove extensions that a test registered, because extensions belong to the process."""
    before = set(extension.registered_names())
    yield
    for name in set(extension.registered_names()) - before:
        extension.forget_extension(name)
