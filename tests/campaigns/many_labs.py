"""Ask 500 labs of one server, with few descriptors: one command, seeded, times at the end.

    python -m tests.campaigns.many_labs --labs 500 --files 256 --calls 3000 --seed 1

Each lab has ten memories and a token of its own. Clients ask labs at random, eight at a time. Every answer must be a
memory of the lab that was asked, and none may fail. The status is 1 if one does. Times are those of the client, with the
connection, the opening of the lab where it was closed, and the answer.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import memlab
from memlab.io.serving import connect

TOKEN = "the-token-of-lab-{:04}"


def build_labs(root: Path, count: int) -> None:
    """Create the labs and the file of their tokens."""
    tables = []
    for number in range(count):
        with memlab.open(root / f"lab{number}") as lab:
            lab.remember([f"Lab {number} keeps note {note} about doors" for note in range(10)])
        tables.append(f'[lab{number}]\ntoken = "{TOKEN.format(number)}"\nrole = "owner"\n')
    path = root / "clients.toml"
    path.write_text("\n".join(tables), encoding="utf-8")
    path.chmod(0o600)


def ask(url: str, number: int) -> tuple[float, str]:
    """Recall from one lab; return the seconds, and what was wrong."""
    lab = connect(url, token=TOKEN.format(number), timeout=60)
    begin = time.perf_counter()
    try:
        hits = lab.recall("which note is about doors?", limit=3)
    except memlab.MemlabError as error:
        return time.perf_counter() - begin, f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - begin
    foreign = [hit.text for hit in hits if not hit.text.startswith(f"Lab {number} keeps")]
    return seconds, f"lab {number} answered {foreign[:1]}" if foreign or not len(hits) else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labs", type=int, default=500)
    parser.add_argument("--files", type=int, default=256, help="limit of open files of the server")
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--clients", type=int, default=8, help="clients that ask at the same time")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        build_labs(root, options.labs)
        command = [sys.executable, "-m", "memlab", "serve", "--root", folder]
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (options.files,) * 2)  # noqa: E731
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit
        ) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            numbers = [dice.randrange(options.labs) for _ in range(options.calls)]
            ask(url, 0)
            for clients in (1, options.clients):
                with ThreadPoolExecutor(clients) as pool:
                    answers = list(pool.map(lambda number: ask(url, number), numbers))
                seconds = sorted(second for second, _ in answers)
                shares = {
                    share: 1e3 * seconds[int(share * len(seconds))] for share in (0.5, 0.95, 0.99)
                }
                faults = [fault for _, fault in answers if fault]
                print(
                    f"{clients} clients, {len(answers):,} recalls, {len(faults)} failed, ms: ",
                    end="",
                )
                print(", ".join(f"p{100 * share:.0f} {ms:.1f}" for share, ms in shares.items()))
                for fault in faults[:5]:
                    print(f"    {fault}")
            descriptors = sum(1 for _ in Path(f"/proc/{server.pid}/fd").iterdir())
            server.terminate()
            _, errors = server.communicate(timeout=60)
        print(
            f"{descriptors} descriptors at the end; {len(errors.splitlines())} lines on standard error"
        )
    return 1 if faults or errors else 0


if __name__ == "__main__":
    sys.exit(main())
