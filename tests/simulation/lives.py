"""Worlds cut down to what a test can live in a moment."""

from dataclasses import replace

from memlab.science.simulation import WORLDS

SINGLE = """(pack single "Five memories and one probe from the next twenty." :inherits memlab)
(setting limit 5) (setting probe-rate 0.9) (setting probe-depth 20) (setting probe-floor 0.5)"""


def small(name, **more):
    """Return a fortnight of one of the worlds."""
    world = WORLDS[name]
    options = {
        "days": 14,
        "projects": 3,
        "people": 2,
        "messages_per_day": 12,
        "questions_per_day": 6,
    } | more
    packs = tuple((day * options["days"] // world.days, pack) for day, pack in world.packs)
    return replace(world, **({"packs": packs} | options))
