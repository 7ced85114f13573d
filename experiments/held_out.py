"""Print the held-out chats of linking and extraction, and the numbers of their messages.

    python experiments/held_out.py FOLDER     # FOLDER holds locomo/locomo-dev5.json and beam100k/1 ... 12

A seed drew two of the five LoCoMo conversations and four of the twelve BEAM chats before the first rule was written.
These six are read once, after the rules are fixed. Nothing is tuned on them.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

__all__ = ["BEAM_HELD_OUT", "BEAM_READ", "LOCOMO_HELD_OUT", "LOCOMO_READ"]

LOCOMO = ("conv-26", "conv-30", "conv-41", "conv-42", "conv-43")
BEAM = tuple(range(1, 13))
SEED = "memlab linking, 2026-11-23"

_draw = random.Random(SEED)
LOCOMO_HELD_OUT = tuple(sorted(_draw.sample(LOCOMO, 2)))
BEAM_HELD_OUT = tuple(sorted(_draw.sample(BEAM, 4)))
LOCOMO_READ = tuple(name for name in LOCOMO if name not in LOCOMO_HELD_OUT)
BEAM_READ = tuple(number for number in BEAM if number not in BEAM_HELD_OUT)


def main(folder: Path) -> None:
    """Print the draw."""
    from memlab.io.ingest import read_beam, read_locomo

    chats = {
        chat.conversation.name: len(chat.conversation.turns)
        for chat in read_locomo(folder / "locomo/locomo-dev5.json")
    }
    print(
        "LoCoMo set aside:", {name: chats[name] for name in LOCOMO_HELD_OUT}, "read:", LOCOMO_READ
    )
    beam = {
        number: len(read_beam(folder / "beam100k" / str(number))[0].conversation.turns)
        for number in BEAM_HELD_OUT
    }
    print("BEAM set aside:", beam, "read:", BEAM_READ)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
