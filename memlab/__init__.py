"""memlab: a Jupyter-native laboratory for the long-term memory of AI agents.

    import memlab
    lab = memlab.open("agent.memlab")
    lab.remember("The user prefers tabs", kind="preference")
    lab.recall("how should I indent?")

Submodules are imported at first use, so that ``import memlab`` takes only a few milliseconds.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from memlab.kernel.former_paths import redirect_former_paths
from memlab.kernel.version import __version__

if sys.platform == "win32":
    # Locks of a lab are `flock`, and files are synced and renamed as POSIX promises.
    from memlab.errors import UnsupportedSystem

    raise UnsupportedSystem(
        "memlab does not run on Windows, because it needs POSIX file locks: install it on Linux, macOS or the "
        "Windows Subsystem for Linux."
    )

redirect_former_paths()

if TYPE_CHECKING:
    from memlab.errors import DamageWarning as DamageWarning
    from memlab.errors import ExplorationWarning as ExplorationWarning
    from memlab.errors import ExtensionError as ExtensionError
    from memlab.errors import ExtensionWarning as ExtensionWarning
    from memlab.errors import InputError as InputError
    from memlab.errors import LabError as LabError
    from memlab.errors import MemlabError as MemlabError
    from memlab.errors import PolicyError as PolicyError
    from memlab.errors import RankingWarning as RankingWarning
    from memlab.errors import RedactionWarning as RedactionWarning
    from memlab.io import adapters as adapters
    from memlab.io import ingest as ingest
    from memlab.io.aio import AsyncLab as AsyncLab
    from memlab.io.publishing import publish_pack as publish_pack
    from memlab.io.publishing import pull_pack as pull_pack
    from memlab.io.recorder import read_record as read_record
    from memlab.io.recorder import read_spans as read_spans
    from memlab.io.recorder import record as record
    from memlab.io.tracing import trace as trace
    from memlab.kernel.base.clock import ManualClock as ManualClock
    from memlab.kernel.base.clock import system_clock as system_clock
    from memlab.kernel.extension import Extension as Extension
    from memlab.kernel.extension import extend as extend
    from memlab.kernel.extension import extensions as extensions
    from memlab.kernel.policies import FEATURES as FEATURES
    from memlab.kernel.policies import SETTINGS as SETTINGS
    from memlab.kernel.policies import SLOTS as SLOTS
    from memlab.kernel.policies import Feature as Feature
    from memlab.kernel.policies import Lineage as Lineage
    from memlab.kernel.policies import Pack as Pack
    from memlab.kernel.policies import Setting as Setting
    from memlab.kernel.policies import Slot as Slot
    from memlab.kernel.policies import load_pack as load_pack
    from memlab.kernel.policies import pack_names
    from memlab.kernel.recall import Hit as Hit
    from memlab.kernel.recall import Hits as Hits
    from memlab.kernel.recall import Pool as Pool
    from memlab.kernel.schema import FIELDS as FIELDS
    from memlab.kernel.schema import KINDS as KINDS
    from memlab.kernel.slates import Slates as Slates
    from memlab.kernel.verbs.results import Memory as Memory
    from memlab.science import examples as examples
    from memlab.science import simulation as simulation
    from memlab.science.bench import bench_budgets as bench_budgets
    from memlab.science.bench import bench_conversations as bench_conversations
    from memlab.science.bench import bench_dynamics as bench_dynamics
    from memlab.science.bench import bench_lab as bench_lab
    from memlab.science.bench import bench_reviews as bench_reviews
    from memlab.science.bench import bench_wanted as bench_wanted
    from memlab.science.evaluation import evaluate as evaluate
    from memlab.science.evaluation import failures as failures
    from memlab.science.evaluation import plan as plan
    from memlab.science.evaluation import tune as tune
    from memlab.science.evaluation import verdict as verdict
    from memlab.science.evolution import evolve as evolve
    from memlab.science.experiments import Experiment as Experiment
    from memlab.science.history import compare as compare
    from memlab.science.history import replay as replay
    from memlab.science.simulation import trial as trial
    from memlab.subjects import verifiers as verifiers
    from memlab.subjects.io.checking import check as check
    from memlab.subjects.io.encrypting import decrypt as decrypt
    from memlab.subjects.io.encrypting import encrypt as encrypt
    from memlab.subjects.io.encrypting import rekey as rekey
    from memlab.subjects.io.restoring import restore as restore
    from memlab.subjects.lab import Lab as Lab
    from memlab.subjects.models import LanguageModel as LanguageModel
    from memlab.subjects.opening import load_lab, open_lab
    from memlab.ui import widgets as widgets
    from memlab.ui.notebook import load_ipython_extension as load_ipython_extension
    from memlab.ui.notebook import unload_ipython_extension as unload_ipython_extension

    load = load_lab
    open = open_lab
    packs = pack_names

# The module that defines each public name; a tuple if the name differs in that module.
_WHERE = {
    "AsyncLab": "io.aio",
    "DamageWarning": "errors",
    "Experiment": "science.experiments",
    "Extension": "kernel.extension",
    "ExplorationWarning": "errors",
    "ExtensionError": "errors",
    "ExtensionWarning": "errors",
    "FEATURES": "kernel.policies",
    "FIELDS": "kernel.schema",
    "KINDS": "kernel.schema",
    "SETTINGS": "kernel.policies",
    "SLOTS": "kernel.policies",
    "Feature": "kernel.policies",
    "Lineage": "kernel.policies",
    "Hit": "kernel.recall",
    "Hits": "kernel.recall",
    "InputError": "errors",
    "Lab": "subjects.lab",
    "LabError": "errors",
    "LanguageModel": "subjects.models",
    "ManualClock": "kernel.base.clock",
    "MemlabError": "errors",
    "Memory": "kernel.verbs.results",
    "Pack": "kernel.policies",
    "PolicyError": "errors",
    "Pool": "kernel.recall",
    "RankingWarning": "errors",
    "RedactionWarning": "errors",
    "Setting": "kernel.policies",
    "Slates": "kernel.slates",
    "Slot": "kernel.policies",
    "bench_budgets": "science.bench",
    "bench_conversations": "science.bench",
    "bench_dynamics": "science.bench",
    "bench_lab": "science.bench",
    "bench_reviews": "science.bench",
    "bench_wanted": "science.bench",
    "check": "subjects.io.checking",
    "compare": "science.history",
    "decrypt": "subjects.io.encrypting",
    "encrypt": "subjects.io.encrypting",
    "evaluate": "science.evaluation",
    "evolve": "science.evolution",
    "extend": "kernel.extension",
    "extensions": "kernel.extension",
    "failures": "science.evaluation",
    "load": ("subjects.opening", "load_lab"),
    "load_ipython_extension": "ui.notebook",
    "load_pack": "kernel.policies",
    "open": ("subjects.opening", "open_lab"),
    "plan": "science.evaluation",
    "packs": ("kernel.policies", "pack_names"),
    "publish_pack": "io.publishing",
    "pull_pack": "io.publishing",
    "read_record": "io.recorder",
    "read_spans": "io.recorder",
    "record": "io.recorder",
    "rekey": "subjects.io.encrypting",
    "replay": "science.history",
    "restore": "subjects.io.restoring",
    "system_clock": "kernel.base.clock",
    "trace": "io.tracing",
    "trial": "science.simulation",
    "tune": "science.evaluation",
    "unload_ipython_extension": "ui.notebook",
    "verdict": "science.evaluation",
}

_REMOVED = {
    "audit": "memlab.open(pack='cascade').remember(memlab.load(x).memories.select('text', at='created'), "
    "linking='now'), then lab.edges",
}
"""Removed public names and their replacements."""

# Public submodules and their paths below `memlab`.
_MODULES = {
    "adapters": "io.adapters",
    "examples": "science.examples",
    "ingest": "io.ingest",
    "simulation": "science.simulation",
    "verifiers": "subjects.verifiers",
    "widgets": "ui.widgets",
}

__all__ = [*_WHERE, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"memlab.{_MODULES[name]}")
    if name not in _WHERE:
        from memlab.errors import missing_name

        raise missing_name(__name__, name, _REMOVED)
    # Extensions of installed packages add to these tables, so they are loaded first.
    if name in ("FEATURES", "SETTINGS", "SLOTS"):
        importlib.import_module("memlab.kernel.extension").load_installed()
    where = _WHERE[name]
    module, attribute = (where, name) if isinstance(where, str) else where
    value = getattr(importlib.import_module(f"memlab.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
