"""Pull hostile published packs, and check that each one is refused or read, and none executed.

    python -m tests.campaigns.hostile_packs                        # 10,000 files
    python -m tests.campaigns.hostile_packs --cases 300 --seed 3

Valid files are published packs of memlab with evidence. Some mutations change bytes of the file, so that the checksum
refuses them. Others change the content and seal it again with a correct checksum, as a forger would. They write hostile
forms into policies, and nest texts 100,000 deep. They state huge numbers, wrong hashes, cells of other packs and control
characters. Each file is pulled, and shown as text, HTML and JSON. Then its pack challenges the active one of a lab. An
audit hook hears what the process opens, imports, compiles or executes meanwhile.

    read      the pack was pulled and is a challenger
    refused   an error of memlab
    raw       an error from outside memlab's tree
    executed  something was executed, imported, or opened besides the file
    unsafe    the text or HTML has characters or markup that act
    slow      more than ten seconds of the processor
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gzip
import hashlib
import io
import json
import os
import pickle
import random
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import memlab
from memlab.errors import MemlabError
from memlab.science.bench.parts import summarise_rows
from memlab.science.cells import Cell, write_cell
from memlab.science.experiments import digest_data
from tests.campaigns.fuzzing.canaries import Canaries
from tests.campaigns.hostile_files import MUTATIONS

__all__ = ["Outcome", "Puller", "hostile_packs", "publish_valid", "seal"]

SECONDS = 10.0
DEEP = 100_000

# Data on which a pulled pack is checked.
DIGEST = digest_data(memlab.examples.CONVERSATION)

# Forms that would act if any part of a pack were evaluated by Hy, Python or a shell.
FORMS = (
    "(memlab-canary)",
    "(import os)",
    '(import os) (os.system "touch canary")',
    "(eval '(memlab-canary))",
    "(eval-when-compile (memlab-canary))",
    "(eval-and-compile (memlab-canary))",
    "(do-mac (memlab-canary))",
    '(py "memlab_canary()")',
    '(pys "memlab_canary()")',
    "(defmacro m [] (memlab-canary)) (m)",
    "(defreader r (memlab-canary)) #r",
    "(require os *)",
    "(hy.eval '(memlab-canary))",
    "#.(memlab-canary)",
    "(defpolicy recall-score [similarity] (memlab-canary))",
    "(defpolicy recall-score [similarity] (.__class__ similarity))",
    '(defpolicy recall-score [similarity] (getattr similarity "__class__"))',
    'f"{(memlab-canary)}"',
    '(pack evil :inherits "../../../../etc/passwd")',
    "(pack evil :inherits /etc/passwd)",
    "(pack evil :inherits evil)",
    '(import "../../canary" [recall-score])',
    '(include "../../canary")',
    "(setting limit 1e400)",
    f"(setting limit {'9' * 5000})",
    "(setting limit -1)",
    "(defpolicy recall-score [similarity] (/ 1 0))",
)
# Values for any field of the content.
STRINGS = (
    "",
    "\0",
    "\x1b[31mred\x1b[0m\x07",
    "\u202egnp.exe",
    "<script>memlab_canary()</script>",
    "<img src=x onerror=alert(1)>",
    "../../../etc/passwd",
    "/dev/zero",
    "__import__('os').system('touch canary')",
    "{0.__class__}",
    "%s%n",
    "$(touch canary)",
    "a" * 100_000,
    "\ufffe\uffff",
    "0" * 64,
    "F" * 64,
)
NUMBERS = (
    0,
    -1,
    1.5,
    -0.0,
    5e-324,
    1.7e308,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    True,
    None,
)
# Texts of JSON that no encoder writes.
RAW = (
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
    '"\\ud800"',
    '"\\u0000"',
    "9" * 100_000,
    "[" * DEEP,
    '{"a":' * DEEP,
    "01",
    "'a'",
)


def seal(body: bytes, head: bytes = b"mempack 1 sha256:") -> bytes:
    """Return a published file with this content and a correct checksum."""
    return head + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def publish_valid(folder: Path, packs: int = 13) -> list[bytes]:
    """Return the bytes of published packs, with cells of 5 and 50 questions."""
    folder.mkdir(exist_ok=True)
    dice = random.Random(0)
    files = []
    for number, name in enumerate(memlab.packs()[:packs]):
        pack = memlab.load_pack(name)
        runs = folder / f"runs-{name}"
        for size in (5, 50)[: number % 3]:
            rows = pl.DataFrame(
                {
                    "cluster": ["c"] * size,
                    "question": [f"q{n}" for n in range(size)],
                    "ranking": [["1", "2"]] * size,
                    "recall@5": [dice.random() for _ in range(size)],
                }
            )
            write_cell(runs, make_cell(pack.hash, rows))
        evidence = runs if runs.exists() else ()
        path = memlab.publish_pack(
            name, folder / f"{name}.mempack", evidence=evidence, licence="MIT"
        )
        files.append(path.read_bytes())
    return files


def make_cell(pack: str, rows: pl.DataFrame) -> Cell:
    """Return a cell as an experiment writes it, with the mean of one metric."""
    inputs = {"pack": pack, "data": "0" * 64, "size": rows.height, "versions": {"memlab": "0"}}
    about = {"pack": {"hash": pack}, "data": {"name": "made.json", "sha256": "0" * 64}}
    return Cell(inputs, about, summarise_rows(rows, ["recall@5"]), rows)


# -- mutations of the content -----------------------------------------------------------------------------------------


def _walk(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value within a JSON value."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value[:3])
        for key, inner in items:
            yield from _walk(inner, (*path, key))


def _put(content: Any, path: Sequence[Any], value: Any) -> Any:
    """Replace the value at a path."""
    if not path:
        return value
    target = content
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return content


def _get(content: Any, path: Sequence[Any]) -> Any:
    for key in path:
        content = content[key]
    return content


def _form(content: Any, dice: random.Random) -> Any:
    """Write a hostile form into a text of the pack."""
    number = dice.randrange(len(content["sources"]))
    text, form = content["sources"][number], dice.choice(FORMS)
    where = dice.choice(
        [0, len(text), dice.randrange(len(text)), text.find("(", dice.randrange(len(text)))]
    )
    changed = form if dice.random() < 0.2 else text[:where] + f" {form} " + text[where:]
    content["sources"][number] = changed
    return content


def _nested(content: Any, dice: random.Random) -> Any:
    """Nest a form deeply, or open many."""
    opening = dice.choice(["(", "[", "(+ ", "'(", "#(", "{", "(if "])
    depth = dice.choice([99, 101, 1_000, DEEP])
    inner = opening * depth + "1" + dice.choice([")", "]", "", "}"]) * depth
    content["sources"][0] = dice.choice(
        [inner, f"(pack deep)\n(defpolicy recall-score [similarity] {inner})"]
    )
    return content


def _text(content: Any, dice: random.Random) -> Any:
    """Change characters of a text of the pack."""
    number = dice.randrange(len(content["sources"]))
    text = bytearray(content["sources"][number].encode())
    changed = MUTATIONS[dice.randrange(len(MUTATIONS))](text, content["sources"][-1].encode(), dice)
    content["sources"][number] = changed.decode(errors=dice.choice(["replace", "ignore"]))
    return content


def _value(content: Any, dice: random.Random) -> Any:
    """Replace any value of the content."""
    path = dice.choice(list(_walk(content)))
    value = dice.choice([dice.choice(STRINGS), dice.choice(NUMBERS), [], {}, [[]] * 50, {"a": {}}])
    return _put(content, path, value)


def _field(content: Any, dice: random.Random) -> Any:
    """Remove, rename or add a field."""
    path = dice.choice([path for path in _walk(content) if isinstance(_get(content, path), dict)])
    fields = _get(content, path)
    if fields and dice.random() < 0.6:
        fields.pop(dice.choice(list(fields)))
    if dice.random() < 0.7:
        fields[dice.choice(STRINGS)] = dice.choice([*STRINGS, *NUMBERS])
    return content


def _hash(content: Any, dice: random.Random) -> Any:
    """State another hash of the pack or of a cell."""
    target = dice.choice([content, *content["cells"]])
    target["hash"] = dice.choice(
        [f"{dice.getrandbits(256):064x}", target["hash"].upper(), target["hash"][:-1], "0" * 64]
    )
    return content


def _evidence(content: Any, dice: random.Random) -> Any:
    """Forge cells of the pack whose hash is right."""
    column = dice.choice(
        [[1] * 5_000, [dice.choice(NUMBERS)] * 3, [1, "a"], [[1]], [{}], ["x" * 100_000], []]
    )
    inputs = dice.choice(
        [
            {"pack": content["hash"], "data": dice.choice([*STRINGS, *NUMBERS])},
            {"pack": content["hash"]},
            {},
        ]
    )
    figure = {"value": 0.5, "low": None, "high": None}
    metrics = dice.choice(
        [
            {},
            [],
            None,
            {"a": dice.choice(NUMBERS)},
            {dice.choice(STRINGS): figure},
            {
                "a": figure
                | {dice.choice(["value", "low", "b"]): dice.choice([*NUMBERS, *STRINGS, []])}
            },
            {f"m{n}": figure for n in range(5_000)},
        ]
    )
    rows = (
        {"question": [1, 2, 3], dice.choice(STRINGS): column}
        if dice.random() < 0.8
        else {f"c{n}": [] for n in range(5_000)}
    )
    if dice.random() < 0.5:
        # figures that agree with their rows
        numbers = [
            dice.choice([n for n in NUMBERS if n is None or abs(n) < 2**63]) for _ in range(3)
        ]
        rows = {"cluster": ["a", "b", dice.choice(STRINGS)], "question": [1, 2, 3], "a": numbers}
        frame = pl.DataFrame(rows | {"a": pl.Series(numbers, dtype=pl.Float64, strict=False)})
        metrics = summarise_rows(frame, ["a"])["metrics"]
        inputs = {"pack": content["hash"], "data": "0" * 64}
    cell = {"hash": "0" * 64, "inputs": inputs, "metrics": metrics, "rows": rows}
    cell |= {"data": dice.choice(STRINGS), "sha256": dice.choice(STRINGS)}
    with contextlib.suppress(ValueError):
        cell["hash"] = Cell(inputs, {}, {}, pl.DataFrame()).hash
    content["cells"] = [cell] * dice.choice([1, 1, 1, 200])
    return content


def _inputs(content: Any, dice: random.Random) -> Any:
    """State inputs of an experiment that nobody ran, on data that exist, so that a check computes them."""
    deep: Any = 0
    for _ in range(dice.choice([1, 50, 300])):
        deep = [deep]
    values = [*STRINGS, *NUMBERS, deep, {"a": deep}]
    metrics = [
        ["recall@10"],
        dice.choice(values),
        [dice.choice(STRINGS)],
        [f"recall@{10 ** dice.choice([2, 18, 400])}"],
    ]
    inputs = {
        "pack": content["hash"],
        "data": DIGEST,
        "measure": "retrieval",
        "metrics": dice.choice(metrics),
        "seed": dice.choice([0, dice.choice(values)]),
        "versions": dice.choice(values),
        dice.choice(STRINGS): dice.choice(values),
    }
    return _with_inputs(content, inputs)


def _with_inputs(content: Any, inputs: dict[str, Any]) -> Any:
    """Give the pack one cell with these inputs, whose figures agree with its row."""
    rows = {"cluster": ["a"], "question": ["q"], "recall@10": [1.0]}
    figures = summarise_rows(pl.DataFrame(rows), ["recall@10"])["metrics"]
    cell = {"inputs": inputs, "metrics": figures, "rows": rows, "data": "talk", "sha256": DIGEST}
    content["cells"] = [cell | {"hash": Cell(inputs, {}, {}, pl.DataFrame()).hash}]
    return content


def _claim(content: Any, dice: random.Random) -> Any:
    """State an origin, a licence, versions or extensions that nobody has."""
    words = [dice.choice(STRINGS) for _ in range(dice.choice([0, 1, 3, 200]))]
    content["lineage"] = {
        "parents": words,
        "operator": dice.choice(STRINGS),
        "evidence": dice.choice(STRINGS),
    }
    content["licence"] = dice.choice(STRINGS)
    content["versions"] = {word: dice.choice(STRINGS) for word in words}
    if dice.random() < 0.3:
        content["needs"] = {word: dice.choice(STRINGS) for word in words}
    return content


_CONTENT: tuple[Callable[[Any, random.Random], Any], ...] = (
    _form, _nested, _text, _value, _field, _hash, _evidence, _inputs, _claim,
)  # fmt: skip


# -- mutations of the bytes -------------------------------------------------------------------------------------------


def _raw_json(body: bytes, dice: random.Random) -> bytes:
    """Write a text that is no JSON, or an extreme one, in the place of a value."""
    places = [place for place in range(len(body)) if body[place : place + 1] in b":,["]
    place = dice.choice(places) + 1
    return body[:place] + dice.choice(RAW).encode() + b"," * (dice.random() < 0.5) + body[place:]


def _other_files(dice: random.Random, valid: bytes) -> bytes:
    """Return a file of another kind, with or without the first line of a published pack."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../canary", b"x")
        archive.writestr("bomb", bytes(5_000_000))
    body = dice.choice(
        [
            packed.getvalue(),
            gzip.compress(bytes(5_000_000)),
            pickle.dumps(_Bomb()),
            b"",
            b"\0" * 1_000,
            b"\xff\xfe" + valid.decode().encode("utf-16-le"),
            b"\xef\xbb\xbf" + valid,
            valid.replace(b"\n", b"\r\n"),
            b"[" * DEEP,
            b"null",
            b"[]",
            b"import os",
        ]
    )
    return dice.choice(
        [
            body,
            seal(body),
            seal(body, b"mempack 2 sha256:"),
            seal(body, b"mempack 999999999 sha256:"),
            seal(body, b"mempack 0 sha256:"),
        ]
    )


class _Bomb:
    """An object whose pickle writes a file when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch canary",))


def hostile_packs(valid: Sequence[bytes], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield the name of a mutation and the bytes of a file, ``count`` times."""
    dice = random.Random(seed)
    contents = [json.loads(data.partition(b"\n")[2]) for data in valid]
    kinds = [*_CONTENT, *_CONTENT, "bytes", "json", "other"]
    for number in range(count):
        kind, data = kinds[number % len(kinds)], dice.choice(valid)
        if kind == "bytes":
            mutation = MUTATIONS[dice.randrange(len(MUTATIONS))]
            yield "bytes", bytes(mutation(bytearray(data), dice.choice(valid), dice))
        elif kind == "json":
            yield "json", seal(_raw_json(data.partition(b"\n")[2], dice))
        elif kind == "other":
            yield "other", _other_files(dice, data)
        else:
            assert callable(kind)
            content = kind(copy.deepcopy(dice.choice(contents)), dice)
            body = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
            yield kind.__name__[1:], seal(body)


# -- pulling ----------------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """The result of pulling one file, with the reason."""

    kind: str
    why: str


# Events that no experiment causes, whatever it reads and writes.
_ACTS = (
    "exec",
    "compile",
    "import",
    "subprocess.",
    "socket.",
    "pickle.",
    "marshal.",
    "ctypes.",
    "os.system",
    "os.exec",
    "os.spawn",
)


class Puller:
    """Pulls files within an audit hook, and lets their packs challenge the active pack of a lab."""

    def __init__(self, folder: Path, valid: bytes) -> None:
        self.path = folder / "hostile.mempack"
        self._canaries = Canaries(folder)
        # Whatever is imported or compiled at the first call is so now, and not when a hostile file is read.
        for _ in range(2):
            self.path.write_bytes(valid)
            self._pull()
        content = json.loads(valid.partition(b"\n")[2])
        inputs = {
            "pack": content["hash"],
            "data": DIGEST,
            "measure": "retrieval",
            "metrics": ["recall@10"],
            "seed": 0,
        }
        self.path.write_bytes(seal(json.dumps(_with_inputs(content, inputs)).encode()))
        self._pull()

    def _pull(self) -> str:
        """Pull the file, show it in each way, and let it challenge; return what is unsafe about its text."""
        published = memlab.pull_pack(self.path)
        text, page = repr(published), published._repr_html_()
        json.dumps(published.to_dict())
        if any(cell.inputs.get("data") == DIGEST for cell in published.cells):
            self._check(published)
        with memlab.open() as lab:
            lab.remember("The user prefers tea", kind="preference")
            active = lab.policies.pack.hash
            if published.pack.hash != active:
                lab.challenge(published.pack)
                lab.recall("tea?")
            if lab.policies.pack.hash != active:
                return "the pulled pack became active"
        acts = [c for c in text if ord(c) < 32 and c != "\n"] + [
            m for m in ("<script", "<img") if m in page
        ]
        return f"the text has {acts[0]!r}" if acts else ""

    def _check(self, published: Any) -> None:
        """Compute the figures again; the experiment writes its own files in a temporary folder."""
        before = len(self._canaries.song)
        try:
            repr(published.check(memlab.examples.CONVERSATION))
        finally:
            later = self._canaries.song[before:]
            self._canaries.song[before:] = [note for note in later if note.startswith(_ACTS)]

    def pull(self, data: bytes) -> Outcome:
        """Pull a file with these bytes."""
        self.path.write_bytes(data)
        self._canaries.song.clear()
        began = time.process_time()
        try:
            with warnings.catch_warnings(action="ignore"), self._canaries.near():
                unsafe = self._pull()
            outcome = Outcome("unsafe", unsafe) if unsafe else Outcome("read", "")
        except MemlabError as error:
            outcome = Outcome("refused", f"{type(error).__name__}: {error}")
        except BaseException as error:  # noqa: BLE001  whatever comes out is what is looked for
            outcome = Outcome("raw", f"{type(error).__name__}: {error}"[:300])
        # the file itself, the lab in memory, and memlab's own annotations at the first call of a function
        allowed = (
            f"open ('{memlab.examples.CONVERSATION}'",
            f"open ('{self.path}'",
            "sqlite3.connect (':memory:',)",
            "sqlite3.connect/handle",
        )
        song = [note for note in self._canaries.song if not note.startswith(allowed)]
        if song or Path("canary").exists() or (self.path.parent / "canary").exists():
            outcome = Outcome("executed", f"{song[:1]}")
        elif time.process_time() - began > SECONDS:
            outcome = Outcome("slow", outcome.why)
        return outcome


def main() -> None:
    """Run the campaign, and print how many files had each outcome."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        valid = publish_valid(Path(folder) / "valid")
        puller = Puller(Path(folder), valid[2])
        counts: Counter[tuple[str, str]] = Counter()
        for name, data in hostile_packs(valid, arguments.cases, arguments.seed):
            outcome = puller.pull(data)
            counts[name, outcome.kind] += 1
            if outcome.kind not in ("read", "refused"):
                print(f"{name}: {outcome.kind}: {outcome.why}")
    pl.Config.set_tbl_rows(-1)
    print(
        pl.DataFrame(
            [(*key, n) for key, n in sorted(counts.items())],
            schema=["mutation", "outcome", "files"],
            orient="row",
        )
    )


if __name__ == "__main__":
    main()
