"""Count the changes of state that each pack notices, and its false alarms.

    python experiments/changes_of_state.py --pairs data/changes_of_state.jsonl [--pack companion] [--show]
    python experiments/changes_of_state.py --beam FOLDER [--held-out] [--pack companion] [--show]

A line of a file of pairs is {"id", "kind": "change" or "control", "domain", "before": {"speaker", "text"}, "after":
...}. A new lab remembers each pair with linking "now", a day apart and after three unrelated messages. The pair
is *superseded* if the later message replaces the earlier one. It is *flagged* if an edge ``updates`` or ``contradicts``
joins both. Otherwise the outcome is *nothing*.

FOLDER holds the chats of BEAM (1 ... 12). Each question of "knowledge_update" gives two pairs: the statements of the
data set, and the sentences of the user's messages that state them (``source_chat_ids``). Printed are counts by kind.
``--show`` prints each wrong pair, or on BEAM each pair, with the rule that fired and its certainty.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from held_out import BEAM_HELD_OUT, BEAM_READ
from linking_decisions import DESTROYS, KINDS

import memlab
from memlab.io.ingest import read_beam
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.embedding import Embedder, load_embedder
from memlab.kernel.english import words_of
from memlab.subjects.reading.claims import stem
from memlab.subjects.reading.comparison import compare, read_text
from memlab.subjects.reading.sentences import sentences

NOTICED = ("updates", "contradicts")
UNRELATED = (
    "The bakery on the corner sells rye bread on Fridays.",
    "Somebody left an umbrella in the hallway.",
    "The printer needs a new cartridge.",
)


def find_outcome(pack: str, pair: dict[str, Any], embedder: Embedder) -> str:
    """Return "superseded", "flagged" or "nothing" for two messages under a pack."""
    clock = ManualClock("2026-03-01")
    kind = KINDS[pack]
    with memlab.open(pack=pack, embedder=embedder, clock=clock) as lab:
        lab.remember(
            [{"text": text, "speaker": "Sam", "kind": kind} for text in UNRELATED], linking="now"
        )
        clock.advance(days=1)
        lab.remember([{**pair["before"], "kind": kind}], linking="now")
        clock.advance(days=1)
        outcomes = lab.remember([{**pair["after"], "kind": kind}], linking="now").outcomes
    met = outcomes.filter(outcomes["of"] == len(UNRELATED) + 1)
    if met["outcome"].is_in(DESTROYS).any():
        return "superseded"
    return "flagged" if met["relation"].is_in(NOTICED).any() else "nothing"


def find_reason(pair: dict[str, Any]) -> str:
    """Return the rule that fires between the two texts, and its certainty."""
    same = pair["before"]["speaker"] == pair["after"]["speaker"]
    comparison = compare(
        read_text(pair["after"]["text"]),
        read_text(pair["before"]["text"]),
        same_speaker=same,
        user_speaks=False,
    )
    return f"{comparison.rule or 'no rule'} {comparison.certainty:.2f}"


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """Read pairs from a file with one pair per line."""
    return [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]


def read_beam_pairs(folder: Path, numbers: Iterable[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield "data set" or "messages", and a pair, for each question about an updated value."""
    for number in numbers:
        chat = read_beam(folder / str(number))[0].conversation
        texts = {turn.ref: turn.text for turn in chat.turns if turn.role == "user"}
        questions = json.loads(
            (folder / str(number) / "probing_questions/probing_questions.json").read_bytes()
        )
        for position, question in enumerate(questions["knowledge_update"]):
            stated = question["conversation_references"]
            name = f"beam-{number}-{position + 1}"
            yield "data set", _build_pair(name, stated[0], stated[-1])
            cut = [
                _find_sentence(
                    refs,
                    [
                        texts[str(ref)]
                        for ref in question["source_chat_ids"][side]
                        if str(ref) in texts
                    ],
                )
                for refs, side in zip(
                    (stated[0], stated[-1]), ("original_info", "updated_info"), strict=True
                )
            ]
            yield "messages", _build_pair(name, *cut)


def _build_pair(name: str, before: str, after: str) -> dict[str, Any]:
    """Return a pair of one speaker."""
    sides = {
        "before": {"speaker": "user", "text": before},
        "after": {"speaker": "user", "text": after},
    }
    return {"id": name, "kind": "change", "domain": "beam", **sides}


def _find_sentence(stated: str, messages: list[str]) -> str:
    """Return the sentence that shares most words with a statement; numbers count three times."""
    wanted = {stem(word): 3 if word[0].isdigit() else 1 for word in words_of(stated)}
    candidates = [
        part.strip() for message in messages for part in sentences(message) if part.strip()
    ]
    if not candidates:
        return stated

    def share(sentence: str) -> float:
        words = {stem(word) for word in words_of(sentence)}
        return sum(wanted.get(word, 0) for word in words) / (8 + len(words)) ** 0.5

    return max(candidates, key=share)


def print_counts(
    title: str, pairs: list[dict[str, Any]], packs: list[str], embedder: Embedder, *, show: str
) -> None:
    """Print the counts of some pairs by pack; ``show`` is "wrong", "all" or "none"."""
    for pack in packs:
        outcomes = [find_outcome(pack, pair, embedder) for pair in pairs]
        counts = Counter(
            (pair["kind"], result) for pair, result in zip(pairs, outcomes, strict=True)
        )
        domains = Counter(pair["domain"] for pair, result in zip(pairs, outcomes, strict=True)
                          if pair["kind"] == "change" and result == "nothing")  # fmt: skip
        texts = "; ".join(
            f"{kind}: "
            + ", ".join(f"{counts[kind, result]} {result}" for result in ("superseded", "flagged", "nothing"))
            for kind in ("change", "control") if any(pair["kind"] == kind for pair in pairs)
        )  # fmt: skip
        print(
            f"{title} {pack:10s} {texts}"
            + (f"; missed {dict(domains.most_common(8))}" if show != "none" else "")
        )
        for pair, result in zip(pairs, outcomes, strict=True):
            wrong = (pair["kind"] == "change") != (result != "nothing")
            if show == "all" or (show == "wrong" and wrong):
                print(
                    f"--- {pair['id']} {pair['kind']} {pair['domain']}: {result} ({find_reason(pair)})"
                )
                for side in ("before", "after"):
                    print(f"    {pair[side]['speaker']}: {' '.join(pair[side]['text'].split())}")


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, action="append", default=[])
    parser.add_argument("--beam", type=Path)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--pack", action="append", choices=list(KINDS))
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    embedder, packs = load_embedder(None), arguments.pack or list(KINDS)
    for path in arguments.pairs:
        print_counts(
            path.stem, read_pairs(path), packs, embedder, show="wrong" if arguments.show else "none"
        )
    if arguments.beam is not None:
        pairs_of_chats = list(
            read_beam_pairs(arguments.beam, BEAM_HELD_OUT if arguments.held_out else BEAM_READ)
        )
        for source in ("data set", "messages"):
            pairs = [pair for of, pair in pairs_of_chats if of == source]
            print_counts(
                f"BEAM, {source}", pairs, packs, embedder, show="all" if arguments.show else "none"
            )


if __name__ == "__main__":
    main()
