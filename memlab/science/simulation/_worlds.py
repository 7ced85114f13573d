"""Worlds with a purpose: what an honest tool must find, must not be misled by, and must not claim."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from memlab.science.simulation._world import Phase, World

__all__ = ["FRESH", "HABIT", "PROBING", "SURE", "WORLDS"]

_PROBES = (
    "(setting limit 5) (setting probe-rate 1) (setting probe-depth 95) (setting probe-floor 0.5) (setting probes 8)"
)

PROBING = f"""(pack probing "The default pack: five memories, and eight probes from all its pool." :inherits memlab)
{_PROBES}
"""

SURE = """(pack sure "The default pack, five memories, never a probe." :inherits memlab)
(setting limit 5) (setting probe-rate 0)
"""

HABIT = f"""(pack habit "What is near, and what is old and was often recalled." :inherits memlab)
{_PROBES}
(defpolicy recall-score [similarity lexical access age-days]
  (+ (min-max similarity) (min-max lexical) (* 0.5 (min-max access)) (* 1.5 (min-max age-days))))
"""

FRESH = f"""(pack fresh "What is near, and what is new." :inherits memlab)
{_PROBES}
(defpolicy recall-score [similarity lexical age-days]
  (- (+ (min-max similarity) (min-max lexical)) (* 0.8 (min-max age-days))))
"""

_DIFFERS = World(
    "differs",
    "A quarter of work in eight projects, with probes in every recall. The packs differ by much, and an offline "
    "ranking of them from the log of one must find the order.",
    seed=11,
    phases=(Phase(0.4, change_days=45.0), Phase(1.0, change_days=30.0)),
    synonyms=0.2,
    packs=((0, PROBING),),
)

_REVERSES = World(
    "reverses",
    "A quiet half in which nothing changes and everything is said again and again, then a hectic half in which values "
    "last a week, among three times the noise. The pack of habit was live in the first, the fresh one in the second: "
    "habit earned more a recall, and fresh is the better one. Comparing what each earned takes the wrong one; weighing "
    "all decisions by their propensities does not.",
    seed=23,
    phases=(
        Phase(0.5, change_days=400.0, repeats=4.0, noise=0.5, questions=1.0),
        Phase(1.0, change_days=6.0, repeats=0.4, noise=1.5, questions=1.5),
    ),
    replies=0.15,
    synonyms=0.2,
    about=(1.0, 0.0, 0.0),
    packs=((0, HABIT), (45, FRESH)),
)

_SAME = World(
    "same",
    "The user is as pleased with one memory as with another; only the hour and the project matter. Every policy that "
    "shows five is worth the same, so an honest tool declares no winner.",
    seed=37,
    grading="alike",
    packs=((0, PROBING),),
)

WORLDS: Mapping[str, World] = MappingProxyType({world.name: world for world in (_DIFFERS, _REVERSES, _SAME)})
"""Seeded worlds by name; ``WORLDS[name].doc`` says what each one is for."""
