"""Shared code of studies that compare programs: child processes, disk use, machines, figures.

Every contender runs in a child process, so that its memory, threads and caches do not affect the others. The parent
stays small and imports none of them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import logging
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FIGURES",
    "Failed",
    "disk_mb",
    "missing",
    "peak_mb",
    "percentile_ms",
    "positive",
    "provenance",
    "run_child",
    "save_figure",
    "serve_child",
    "stated",
    "timed",
    "versions",
]

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"

_CHILD = "--child"
_QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "MEM0_TELEMETRY": "False",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1",
}
"""Documented switches of the compared programs that turn off telemetry and downloads."""

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class Failed(Exception):
    """A child process ended without a result; the message is its error."""


def run_child(
    script: str, name: str, arguments: Mapping[str, Any], *, threads: int | None = None
) -> dict[str, Any]:
    """Call the function ``name`` of ``script`` in a new process without a network; return its result.

    Arguments and result are files of JSON, because libraries print to the output. ``threads`` limits BLAS and OpenMP.
    Raises ``Failed``.
    """
    with tempfile.TemporaryDirectory(prefix="child-") as folder:
        arguments_path, returned = Path(folder) / "given.json", Path(folder) / "returned.json"
        arguments_path.write_text(json.dumps(arguments), encoding="utf-8")
        environment = os.environ | _QUIET | {"MEM0_DIR": folder}
        if threads is not None:
            environment |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        command = [sys.executable, script, _CHILD, name, str(arguments_path), str(returned)]
        ended = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
        if not returned.exists():
            raise Failed(f"{name} ended with status {ended.returncode}")
        answer_of_child = json.loads(returned.read_text(encoding="utf-8"))
    if "failed" in answer_of_child:
        raise Failed(f"{name}: {answer_of_child['failed']}")
    result: dict[str, Any] = answer_of_child["result"]
    return result


def serve_child(functions: Iterable[Callable[..., dict[str, Any]]]) -> bool:
    """In a child of ``run_child``, call the requested function; return False in the parent."""
    if len(sys.argv) != 5 or sys.argv[1] != _CHILD:
        return False
    _, _, name, arguments_path, returned = sys.argv
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    _refuse_network()
    answer = Path(returned)

    def report_error(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        message = str(error).strip().splitlines() or [""]
        answer.write_text(
            json.dumps({"failed": f"{kind.__name__}: {message[0]}"}), encoding="utf-8"
        )
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = report_error
    chosen = {function.__name__: function for function in functions}[name]
    result = chosen(**json.loads(Path(arguments_path).read_text(encoding="utf-8")))
    answer.write_text(json.dumps({"result": result}), encoding="utf-8")
    return True


def _refuse_network() -> None:
    """Make connections to the internet fail."""
    connect = socket.socket.connect

    def refused(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            raise OSError(f"an experiment has no network; refused to connect to {address}")
        connect(self, address)

    socket.socket.connect = refused  # type: ignore[assignment,method-assign]


def peak_mb() -> float:
    """Return the peak resident memory of this process in MB (10**6 bytes).

    On Linux the kernel's own mark of this process image is read, because ``getrusage`` of a child begins with the peak of
    its parent.
    """
    status = Path("/proc/self/status")
    if status.exists() and (
        match := re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"))
    ):
        return int(match[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def disk_mb(path: Path) -> float:
    """Return the disk use of a file or folder in MB (10**6 bytes), in blocks as ``du`` counts."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_blocks for file in files) * 512 / 1e6


def timed(
    call: Callable[Arguments, Returned], *args: Arguments.args, **keywords: Arguments.kwargs
) -> tuple[float, Returned]:
    """Call a function; return the seconds and its result."""
    started = time.perf_counter()
    returned = call(*args, **keywords)
    return time.perf_counter() - started, returned


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    """Return a percentile of durations in milliseconds."""
    import numpy as np

    return 1000 * float(np.percentile(seconds, percent))


def missing(names: Iterable[str]) -> str | None:
    """Return why a contender that needs these distributions cannot run, or None."""
    wanted = list(names)
    absent = [name for name in wanted if name not in versions(wanted)]
    return f"not installed: pip install {' '.join(absent)}" if absent else None


def versions(names: Iterable[str]) -> dict[str, str]:
    """Return the version of each installed distribution."""
    installed = {}
    for name in names:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def provenance(names: Iterable[str]) -> dict[str, Any]:
    """Return date, machine, commit, and versions of Python and these distributions."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores, {_memory()}",
        "versions": {"python": platform.python_version()} | versions(names),
        "commit": _commit(),
    }


def stated(facts: Mapping[str, Any]) -> str:
    """Return ``provenance`` as lines above a table."""
    names = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return f"{facts['date']}, commit {facts['commit']}, {facts['machine']}\n{names}"


def save_figure(figure: Figure, name: str, folder: Path = FIGURES) -> Path:
    """Write an SVG whose bytes depend on the figure alone."""
    from matplotlib import rc_context

    from memlab.subjects.drawing import STYLE

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    return path


def positive(text: str) -> int:
    """Parse an integer of at least 1, for ``argparse``."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def _processor() -> str:
    """Return the name of the processor."""
    cpus = Path("/proc/cpuinfo")
    if cpus.exists() and (
        match := re.search(r"model name\s*:\s*(.+)", cpus.read_text(encoding="utf-8"))
    ):
        return match[1].strip()
    return platform.processor() or "unknown processor"


def _memory() -> str:
    """Return the size of the memory."""
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _commit() -> str:
    """Return the commit of the measured memlab, if it is a checkout."""
    spec = importlib.util.find_spec("memlab")
    if spec is None or spec.origin is None or shutil.which("git") is None:
        return "none"
    here = Path(spec.origin).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=here, capture_output=True, text=True, check=False
        ).stdout.strip()

    head = git("rev-parse", "--short", "HEAD")
    changed = head and git("status", "--porcelain", "--untracked-files=no", "--", str(here))
    return (f"{head} and changes" if changed else head) or "none"
