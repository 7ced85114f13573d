"""memlab: a Jupyter-native laboratory for the long-term memory of AI agents.

    import memlab
    lab = memlab.open("agent.memlab")
    lab.remember("The user prefers tabs", kind="preference")
    lab.recall("how should I indent?")

Everything is loaded at its first use, so that importing memlab costs a few milliseconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from memlab.version import __version__

if TYPE_CHECKING:
    from memlab import adapters as adapters
    from memlab import examples as examples
    from memlab import ingest as ingest
    from memlab import simulation as simulation
    from memlab import verifiers as verifiers
    from memlab import widgets as widgets
    from memlab.bench import bench_conversations as bench_conversations
    from memlab.bench import bench_dynamics as bench_dynamics
    from memlab.bench import bench_lab as bench_lab
    from memlab.clock import ManualClock as ManualClock
    from memlab.clock import system_clock as system_clock
    from memlab.errors import DamageWarning as DamageWarning
    from memlab.errors import ExtensionError as ExtensionError
    from memlab.errors import ExtensionWarning as ExtensionWarning
    from memlab.errors import InputError as InputError
    from memlab.errors import LabError as LabError
    from memlab.errors import MemlabError as MemlabError
    from memlab.errors import PolicyError as PolicyError
    from memlab.errors import RankingWarning as RankingWarning
    from memlab.errors import RedactionWarning as RedactionWarning
    from memlab.evaluation import evaluate as evaluate
    from memlab.evaluation import failures as failures
    from memlab.evaluation import plan as plan
    from memlab.evaluation import tune as tune
    from memlab.evaluation import verdict as verdict
    from memlab.extension import Extension as Extension
    from memlab.extension import extend as extend
    from memlab.extension import extensions as extensions
    from memlab.history import compare as compare
    from memlab.history import replay as replay
    from memlab.lab import Lab as Lab
    from memlab.models import LanguageModel as LanguageModel
    from memlab.notebook import load_ipython_extension as load_ipython_extension
    from memlab.notebook import unload_ipython_extension as unload_ipython_extension
    from memlab.opening import load_lab, open_lab
    from memlab.policies import FEATURES as FEATURES
    from memlab.policies import SETTINGS as SETTINGS
    from memlab.policies import SLOTS as SLOTS
    from memlab.policies import Feature as Feature
    from memlab.policies import Pack as Pack
    from memlab.policies import Setting as Setting
    from memlab.policies import Slot as Slot
    from memlab.policies import load_pack as load_pack
    from memlab.policies import pack_names
    from memlab.recall import Hit as Hit
    from memlab.recall import Hits as Hits
    from memlab.recall import Pool as Pool
    from memlab.schema import FIELDS as FIELDS
    from memlab.schema import KINDS as KINDS
    from memlab.simulation import trial as trial
    from memlab.slates import Slates as Slates
    from memlab.subjects.backups.checking import check as check
    from memlab.subjects.backups.restoring import restore as restore
    from memlab.subjects.results import Memory as Memory

    load = load_lab
    open = open_lab
    packs = pack_names

_WHERE = {
    "DamageWarning": "errors",
    "Extension": "extension",
    "ExtensionError": "errors",
    "ExtensionWarning": "errors",
    "FEATURES": "policies",
    "FIELDS": "schema",
    "KINDS": "schema",
    "SETTINGS": "policies",
    "SLOTS": "policies",
    "Feature": "policies",
    "Hit": "recall",
    "Hits": "recall",
    "InputError": "errors",
    "Lab": "lab",
    "LabError": "errors",
    "LanguageModel": "models",
    "ManualClock": "clock",
    "MemlabError": "errors",
    "Memory": "subjects.results",
    "Pack": "policies",
    "PolicyError": "errors",
    "Pool": "recall",
    "RankingWarning": "errors",
    "RedactionWarning": "errors",
    "Setting": "policies",
    "Slates": "slates",
    "Slot": "policies",
    "bench_conversations": "bench",
    "bench_dynamics": "bench",
    "bench_lab": "bench",
    "check": "subjects.backups.checking",
    "compare": "history",
    "evaluate": "evaluation",
    "extend": "extension",
    "extensions": "extension",
    "failures": "evaluation",
    "load": ("opening", "load_lab"),
    "load_ipython_extension": "notebook",
    "load_pack": "policies",
    "open": ("opening", "open_lab"),
    "plan": "evaluation",
    "packs": ("policies", "pack_names"),
    "replay": "history",
    "restore": "subjects.backups.restoring",
    "system_clock": "clock",
    "trial": "simulation",
    "tune": "evaluation",
    "unload_ipython_extension": "notebook",
    "verdict": "evaluation",
}

_REMOVED = {
    "audit": "memlab.open(pack='cascade').remember_many(memlab.load(x).memories.select('text', at='created'), "
    "linking='now'), then lab.edges",
}
"""Public names of earlier versions, and what to use instead."""

__all__ = [
    *_WHERE,
    "adapters",
    "examples",
    "ingest",
    "simulation",
    "verifiers",
    "widgets",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in ("adapters", "examples", "ingest", "simulation", "verifiers", "widgets"):
        return importlib.import_module(f"memlab.{name}")
    if name not in _WHERE:
        from memlab.errors import missing_name

        raise missing_name(__name__, name, _REMOVED)
    if name in ("FEATURES", "SETTINGS", "SLOTS"):
        importlib.import_module("memlab.extension").load_installed()
    where = _WHERE[name]
    module, attribute = (where, name) if isinstance(where, str) else where
    value = getattr(importlib.import_module(f"memlab.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
