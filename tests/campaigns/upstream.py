"""Tests of frameworks whose memory interfaces memlab implements, run unchanged but for the class that they construct.

    python -m tests.campaigns.upstream FOLDER [SUITE...] [--failures]

FOLDER has the suites, as the frameworks publish them in their repositories or source distributions: ``langgraph``,
``openai-agents-python``, ``anthropic-sdk-python``, ``mem0``, and optionally ``langgraph_prebuilt-VERSION``. The packages
of the frameworks must be installed, with ``pytest-asyncio``, ``pytest-mock``, ``anyio`` and ``syrupy``. Suites whose files
or packages are missing are named. The exit status is the number of failures.

Each suite runs in a process of its own, in which this module is a plugin of pytest. The plugin replaces the constructed
class in the modules of the suite. It skips the tests that do not apply, each with its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest

import memlab
from memlab.kernel.embedding import load_embedder

# Reasons why a test does not apply.
SQL = "is about SQL, tables or connections of the framework's own store"
CORRUPT = "writes a corrupt row into the framework's own table"
CLOSING = "is about a connection that a session owns; the lab of a session belongs to its owner"
DISK = "is about files and links on a disk; a lab has paths without files"
LARGE = "needs a file of 5 MB; the text of a memory has at most 1 MB"
MOCK = "primes or asserts internal functions of the framework, by mocks"
CONFIG = (
    "reads the configuration of embeddings back from the store; a lab's embedder belongs to the lab"
)
FILLING = (
    "ends with items without an index that fill the results of InMemoryStore; those of SqliteStore and LabStore leave "
    "them out, and the same test of SqliteStore passes"
)

# Scores that suites compare with cosines; everything else is as in the default pack.
COSINE = '(pack cosine "Similarity alone.") (defpolicy eligible [] true) (defpolicy recall-score [similarity] similarity)'


@dataclass(frozen=True)
class Suite:
    """A suite: its files below the folder, what replaces its classes, and what does not apply.

    ``omitted`` maps patterns of names to reasons. ``select`` is an expression of pytest's ``-k``.
    """

    files: tuple[str, ...]
    root: str
    needs: tuple[str, ...]
    replace: Callable[[Any], None]
    omitted: dict[str, str] = field(default_factory=dict)
    select: str = ""


# -- LangGraph --------------------------------------------------------------------------------------------------------


def make_store_class() -> type:
    """Return a class of stores whose constructor takes an index of LangGraph."""
    from memlab.io.adapters.langgraph import LabStore

    class Store(LabStore):
        """Stands for a store of LangGraph: its embedder, and cosines as scores."""

        def __init__(self, index: dict[str, Any] | None = None) -> None:
            if index is None:
                super().__init__(memlab.open())
                return
            embed = index["embed"]
            embedder = load_embedder(
                lambda texts: np.array(embed.embed_documents(list(texts))), name="theirs"
            )
            fields = index.get("fields") or index.get("text_fields") or ["$"]
            super().__init__(memlab.open(embedder=embedder, pack=COSINE), fields=fields)

        def setup(self) -> None:
            """Do nothing, because a lab needs no tables."""

    return Store


def replace_memory_store(module: Any) -> None:
    """Replace ``InMemoryStore``."""
    if hasattr(module, "InMemoryStore"):
        module.InMemoryStore = make_store_class()


class SqliteStore:
    """Stands for LangGraph's ``SqliteStore``."""

    MIGRATIONS = ()

    @staticmethod
    @contextlib.contextmanager
    def from_conn_string(conn_string: str, index: dict[str, Any] | None = None) -> Iterator[Any]:
        """Provide a store; a lab needs no ``setup``."""
        yield make_store_class()(index)


def replace_sqlite_store(module: Any) -> None:
    """Replace ``SqliteStore``."""
    module.SqliteStore = SqliteStore


@pytest.fixture
def sync_store(request: pytest.FixtureRequest) -> Any:
    """LangGraph's fixture of the store, which its ``conftest.py`` makes with databases that are missing here."""
    return make_store_class()()


async_store = pytest.fixture(name="async_store")(lambda: make_store_class()())


@pytest.fixture
def sync_checkpointer() -> Any:
    """LangGraph's fixture of a checkpointer in memory."""
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


async_checkpointer = sync_checkpointer


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of LangGraph's tests."""
    return "asyncio"


# -- OpenAI Agents ----------------------------------------------------------------------------------------------------


class Sessions:
    """Makes sessions; those with the same place share a lab, and every place is a folder of its own."""

    def __init__(self) -> None:
        self.labs: dict[str, Any] = {}
        self.folder = tempfile.mkdtemp()

    def make(self, base: str, **attributes: Any) -> type:
        """Return a class of sessions with the constructor of the framework's class."""
        from agents.memory import SessionSettings
        from agents.memory.sqlite_session import SQLiteSession as Theirs

        from memlab.io.adapters import LabSession

        sessions = self

        class Session(LabSession):
            """Stands for a class of sessions of the SDK."""

            def __init__(
                self,
                session_id: str,
                where: Any = ":memory:",
                *,
                session_settings: Any = None,
                **kwargs: Any,
            ) -> None:
                where = str(kwargs.get("engine") or where)
                lab = sessions.labs.get(where)
                if lab is None:
                    lab = memlab.open(Path(sessions.folder) / f"lab{len(sessions.labs)}")
                    if ":memory:" not in where:
                        sessions.labs[where] = lab
                super().__init__(session_id, lab)
                # the SDK's own reading of settings: None, a dict or its class
                settings = Theirs("settings", session_settings=session_settings).session_settings
                self.session_settings = settings or SessionSettings()

            @classmethod
            def from_url(cls, session_id: str, *, url: str, **kwargs: Any) -> Session:
                """Construct a session by the address of a database."""
                return cls(session_id, urlsplit(url).path or ":memory:", **kwargs)

        for name, value in attributes.items():
            setattr(Session, name, value)
        Session.__name__ = base
        return Session


def replace_sessions(module: Any) -> None:
    """Replace the classes of sessions."""
    sessions = Sessions()

    async def close(self: Any) -> None:
        """Close the session; its lab stays open for others."""

    async def dispose() -> None:
        """Dispose of nothing."""

    for name, attributes in {
        "SQLiteSession": {"close": lambda self: None},
        "AsyncSQLiteSession": {"close": close},
        # tests end with ``await session.engine.dispose()``
        "SQLAlchemySession": {"engine": types.SimpleNamespace(dispose=dispose)},
    }.items():
        if hasattr(module, name):
            setattr(module, name, sessions.make(name, **attributes))


def stub_responses() -> types.ModuleType:
    """Return the module of the SDK's tests that makes messages of a model."""
    module = types.ModuleType("tests.test_responses")

    def get_text_message(content: str) -> Any:
        """Return a message of a model."""
        from openai.types.responses import ResponseOutputMessage, ResponseOutputText

        text = ResponseOutputText(text=content, type="output_text", annotations=[], logprobs=[])
        return ResponseOutputMessage(
            id="1", type="message", role="assistant", content=[text], status="completed"
        )

    module.get_text_message = get_text_message  # type: ignore[attr-defined]
    return module


# -- Anthropic --------------------------------------------------------------------------------------------------------


def replace_memory_tools(module: Any) -> None:
    """Replace the memory tools; ``base_path`` shows a folder with the files of the lab."""
    from memlab.io.adapters import MemoryFiles
    from memlab.io.adapters.claude_tool import AsyncLabMemoryTool, LabMemoryTool

    def export(self: Any) -> str:
        """Write the files of the lab to a folder, as tests look for them."""
        folder = Path(tempfile.mkdtemp())
        for record in self.files._records.get_below():
            path = folder.joinpath("memories", *record.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(record.text)
        return str(folder)

    for name, base in {
        "BetaLocalFilesystemMemoryTool": LabMemoryTool,
        "BetaAsyncLocalFilesystemMemoryTool": AsyncLabMemoryTool,
    }.items():

        def construct(self: Any, base_path: str, base: type = base) -> None:
            """Construct the tool on a new lab."""
            base.__init__(self, MemoryFiles(memlab.open()))  # type: ignore[misc]

        setattr(
            module,
            name,
            type(name, (base,), {"__init__": construct, "base_path": property(export)}),
        )


# -- mem0 -------------------------------------------------------------------------------------------------------------


def replace_memory(module: Any) -> None:
    """Replace ``Memory``; its parts are mocks, which tests may prepare."""
    from unittest.mock import Mock

    from memlab.io.adapters import Mem0Memory

    class Memory(Mem0Memory):
        """Stands for mem0's ``Memory``."""

        def __init__(self, config: Any = None) -> None:
            super().__init__(memlab.open())
            self.vector_store, self.embedding_model = Mock(), Mock()

    module.Memory = Memory


SUITES = {
    "LangGraph, store": Suite(
        ("langgraph/libs/checkpoint/tests/test_store.py",),
        "langgraph/libs/checkpoint",
        ("langgraph.store.base",),
        replace_memory_store,
        {"vector_store_initialization": CONFIG, "embed_with_path": FILLING},
    ),
    "LangGraph, store on SQLite": Suite(
        ("langgraph/libs/checkpoint-sqlite/tests/test_store.py",),
        "langgraph/libs/checkpoint-sqlite",
        ("langgraph.store.sqlite",),
        replace_sqlite_store,
        {
            "vector_store_initialization": CONFIG,
            "sql_injection_vulnerability": SQL,  # its values, and keys that are no SQL, are tested
            "nonnull_migrations|escape_glob_literal|match_pattern|indexable_condition": SQL,
        },
    ),
    "LangGraph, prebuilt agents": Suite(
        ("langgraph_prebuilt-*/tests",),
        "langgraph_prebuilt-*",
        ("langgraph.prebuilt",),
        replace_memory_store,
        select="store or inject",
    ),
    "OpenAI Agents, sessions": Suite(
        (
            "openai-agents-python/tests/memory/test_session.py",
            "openai-agents-python/tests/memory/test_session_limit.py",
        ),
        "openai-agents-python",
        ("agents",),
        replace_sessions,
        {
            "await_mutation|post_commit_cancellation|file_lock_is_shared": SQL,
            "corrupt": CORRUPT,
            "close_closes_worker|closed_rejects": CLOSING,
            "failed_.*(releases|rolls_back)|rollback_failure|quarantined": SQL,
        },
    ),
    "OpenAI Agents, other sessions": Suite(
        (
            "openai-agents-python/tests/extensions/memory/test_async_sqlite_session.py",
            "openai-agents-python/tests/extensions/memory/test_sqlalchemy_session.py",
        ),
        "openai-agents-python",
        ("agents", "aiosqlite", "sqlalchemy"),
        replace_sessions,
        {
            "corrupt": CORRUPT,
            "closed_|close_before_use|close_is_idempotent|cancelled_close": CLOSING,
            "same_timestamp|orders_by_id_for_ties": SQL,
            "mutation|rolls_back|rollback|releases_write_lock|initialization|quarantined|cancelled_connect": SQL,
            "ascii_storage|non_ascii_without|reserves_writer|unknown_delete_rowcount|returning_claim": SQL,
            "transient_sqlite_write_lock|table_init_lock|shared_init_lock": SQL,
            "engine_property|configuration_registry": SQL,
        },
    ),
    "Anthropic, memory tool": Suite(
        ("anthropic-sdk-python/tests/lib/tools/memory_tools/test_filesystem.py",),
        "anthropic-sdk-python",
        ("anthropic",),
        replace_memory_tools,
        {"mkdir_parents|symlink": DISK, "too_many_lines": LARGE},
    ),
    "mem0, memory": Suite(
        ("mem0/tests/test_main.py",),
        "mem0",
        ("mem0",),
        replace_memory,
        {
            "^test_(add|add_stores.*|get|get_all|update.*|delete|delete_all|delete_all_paginates.*)$": MOCK,
            "^test_search$|_hides_expired_|_can_show_expired_": MOCK,
            "telemetry_vector_store|before_list|coerces_integer_user_id$|before_embedding": MOCK,
        },
    ),
}

# -- the plugin ---------------------------------------------------------------------------------------------------------

_SUITE = "MEMLAB_UPSTREAM_SUITE"
_ROOT = "MEMLAB_UPSTREAM_ROOT"


def _read_suite() -> Suite | None:
    """Return the suite of this process, None in the process that starts the others."""
    name = os.environ.get(_SUITE)
    return None if name is None else SUITES[name]


def pytest_configure(config: pytest.Config) -> None:
    """Make the suite's folder ``tests`` importable, which this project has as well."""
    suite = _read_suite()
    if suite is None:
        return
    package = types.ModuleType("tests")
    package.__path__ = [str(Path(os.environ[_ROOT]) / "tests")]
    sys.modules["tests"] = package
    sys.modules["tests.test_responses"] = stub_responses()


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> None:
    """Leave the module to pytest; the classes are replaced when its tests are collected."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Replace the constructed classes, and skip the tests that do not apply."""
    suite = _read_suite()
    if suite is None:
        return
    for module in {item.module for item in items}:  # type: ignore[attr-defined]
        suite.replace(module)
    for item in items:
        for pattern, reason in suite.omitted.items():
            if re.search(pattern, item.name):
                item.add_marker(pytest.mark.skip(reason=reason))
                break


# -- the campaign -------------------------------------------------------------------------------------------------------


def run_suite(folder: Path, name: str, shows_failures: bool) -> Counter[str] | None:
    """Run a suite and print its result; None if its files or its packages are missing."""
    suite = SUITES[name]
    files = [str(path) for pattern in suite.files for path in sorted(folder.glob(pattern))]
    missing = [module for module in suite.needs if not _has_module(module)]
    if not files or missing:
        print(f"{name}: left out, because {', '.join(missing) or 'its folder'} is missing.")
        return None
    root = next(iter(sorted(folder.glob(suite.root))))
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        here = Path(__file__).resolve()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "upstream",
            "--noconftest",
            "--import-mode=importlib",
        ]
        command += [
            "-c",
            os.devnull,
            f"--rootdir={scratch}",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
        ]
        command += [
            "-o",
            "asyncio_mode=auto",
            "-o",
            "asyncio_default_fixture_loop_scope=function",
            "--tb=short",
            "-o",
            "faulthandler_timeout=30",
        ]
        command += ["-k", suite.select] if suite.select else []
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(here.parent), str(here.parents[2])]),
            _SUITE: name,
            _ROOT: str(root),
            "ANTHROPIC_API_KEY": "none",
            "MEM0_TELEMETRY": "False",
        }
        done = subprocess.run(
            [*command, *files],
            env=environment,
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
        )
        if not report.exists():
            print(f"{name}: not run.\n{done.stdout}{done.stderr}")
            return Counter(failed=1)
        cases = list(ElementTree.parse(report).iter("testcase"))
    counts, reasons = Counter[str](), Counter[str]()
    failures = []
    for case in cases:
        skipped = case.find("skipped")
        if skipped is not None:
            counts["omitted"] += 1
            reasons[skipped.get("message", "")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            failures.append(case.get("name", ""))
        else:
            counts["passed"] += 1
    print(
        f"{name}: {counts['passed']} passed, {counts['failed']} failed, {counts['omitted']} not applicable"
    )
    for reason, count in reasons.most_common():
        print(f"  {count:>3} not applicable: {reason}")
    for failure in failures:
        print(f"  failed: {failure}")
    if shows_failures and failures:
        print(done.stdout)
    return counts


def _has_module(name: str) -> bool:
    """Return whether a module can be imported."""
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def main() -> int:
    """Run the suites of a folder, and return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder with the suites")
    parser.add_argument("suites", nargs="*", help="parts of the names of suites; default: all")
    parser.add_argument("--failures", action="store_true", help="print the tracebacks of failures")
    arguments = parser.parse_args()
    total = Counter[str]()
    for name in SUITES:
        if not arguments.suites or any(part.lower() in name.lower() for part in arguments.suites):
            total += run_suite(arguments.folder, name, arguments.failures) or Counter()
    print(
        f"all: {total['passed']} passed, {total['failed']} failed, {total['omitted']} not applicable"
    )
    return total["failed"]


if __name__ == "__main__":
    sys.exit(min(main(), 100))
