"""Measure the precision of extraction on development chats, as judged by a reader.

    python experiments/extraction_judged.py FOLDER [--draw N --seed TEXT [--sort fact] [--judge FILE]] [--show]
    python experiments/extraction_judged.py FOLDER --held-out
    python experiments/extraction_judged.py FOLDER --chitchat dataset.json

``judgements/extraction.jsonl`` has one line per judged proposal: its chat, the number of its message, its sort, its
rule, its number within that rule and message, and the judgement. A judgement is "useful", "useless" (true, but nobody
would query it) or "wrong". The file holds no text; FOLDER has the chats and PrefEval's conversations.

``--held-out`` reads the held-out chats (``held_out.py``) alone, with ``judgements/extraction-held-out.jsonl``. There
"second" is the judgement of another reader on a third of them. Printed are the shares by rule and by confidence, and
the number of unjudged proposals.

``--draw`` prints proposals to judge, drawn by a seed, and ``--judge`` writes a line for each. ``--show`` prints the
proposals judged useless or wrong. ``--chitchat`` names the file of the package chitchat-dataset 0.9.0 (MIT), chats
between students, of which a seed draws 760 conversations.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from held_out import BEAM_HELD_OUT, BEAM_READ, LOCOMO_HELD_OUT, LOCOMO_READ

import memlab
from memlab.io.ingest import read_beam, read_locomo
from memlab.subjects.extraction.staged import Proposed

JUDGEMENTS = Path(__file__).with_name("judgements")
Key = tuple[str, int, str, str, int]


def read_chats(
    folder: Path, *, held_out: bool = False
) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield development or held-out chats; speakers are names of people, or roles."""
    locomo, beam = (LOCOMO_HELD_OUT, BEAM_HELD_OUT) if held_out else (LOCOMO_READ, BEAM_READ)
    for chat in read_locomo(folder / "locomo/locomo-dev5.json"):
        if chat.conversation.name in locomo:
            messages = [
                {"role": "user", "content": turn.text, "speaker": turn.speaker}
                for turn in chat.conversation.turns
            ]
            yield chat.conversation.name, messages
    for number in beam:
        turns = read_beam(folder / "beam100k" / str(number))[0].conversation.turns
        yield f"beam-{number}", [{"role": turn.speaker, "content": turn.text} for turn in turns]


def read_preferences(folder: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield PrefEval's preferences and questions, one chat per topic."""
    for path in sorted((folder / "prefeval").glob("*.json")):
        rows = json.loads(path.read_text(encoding="utf-8"))
        messages = [
            {"role": "user", "content": row[part]}
            for row in rows
            for part in ("preference", "question")
        ]
        yield f"prefeval-{path.stem}", messages


def read_chitchat(path: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield the drawn chats of chitchat-dataset; speakers are prefixes of their numbers."""
    every = json.loads(path.read_text(encoding="utf-8"))
    names = sorted(every)
    random.Random("chitchat split").shuffle(names)
    half = len(names) // 2
    for name in (*names[:CHITCHAT_A], *names[half : half + CHITCHAT_B]):
        turns = (turn if isinstance(turn, list) else [turn] for turn in every[name]["messages"])
        messages = [message for turn in turns for message in turn if message["text"].strip()]
        rows = [
            {"role": "user", "content": entry["text"], "speaker": f"P{entry['sender'][:6]}"}
            for entry in messages
        ]
        yield f"chitchat-{name}", rows


CHITCHAT_A, CHITCHAT_B = 500, 260
"""Chats of the first half, for the rules, and of the second half."""


def propose_facts(
    folder: Path, *, held_out: bool = False, also: Path | None = None
) -> Iterator[tuple[Key, Proposed]]:
    """Yield every proposal under companion with its key; ``also`` adds chitchat-dataset."""
    every = [read_chats(folder, held_out=held_out)]
    if not held_out:
        every.append(read_preferences(folder))
    if also is not None:
        every.append(read_chitchat(also))
    with memlab.open(pack="companion") as lab:
        for name, messages in chain(*every):
            counts: Counter[tuple[int, str, str]] = Counter()
            for proposal in lab.agents.extract(messages):
                key = (proposal.message, proposal.sort, proposal.rule)
                yield (name, *key, counts[key]), proposal
                counts[key] += 1


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--sort", choices=("fact", "memory"))
    parser.add_argument("--judge", type=Path)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--chitchat", type=Path)
    arguments = parser.parse_args()
    proposals = dict(
        propose_facts(arguments.folder, held_out=arguments.held_out, also=arguments.chitchat)
    )
    if arguments.draw:
        fit = sorted(key for key in proposals if arguments.sort in (None, key[2]))
        drawn = random.Random(arguments.seed).sample(fit, min(arguments.draw, len(fit)))
        for key in drawn:
            print(
                *key,
                f"{proposals[key].confidence:g}",
                "|",
                proposals[key].text,
                "<<",
                " ".join(proposals[key].span.split()),
            )
        if arguments.judge is not None:
            names = ("chat", "message", "sort", "rule", "nth")
            lines = [
                json.dumps(dict(zip(names, key, strict=True)) | {"judgement": None}) + "\n"
                for key in drawn
            ]
            arguments.judge.write_text("".join(lines), encoding="utf-8")
        return
    name = "extraction-held-out.jsonl" if arguments.held_out else "extraction.jsonl"
    rows = [
        json.loads(line) for line in (JUDGEMENTS / name).read_text(encoding="utf-8").splitlines()
    ]
    judged = {
        (row["chat"], row["message"], row["sort"], row["rule"], row["nth"]): row["judgement"]
        for row in rows
    }
    by_rule: dict[str, Counter[str]] = defaultdict(Counter)
    by_confidence: dict[str, Counter[str]] = defaultdict(Counter)
    for key, word in judged.items():
        if key in proposals:
            proposal = proposals[key]
            by_rule[f"{proposal.sort} {proposal.rule}"][word] += 1
            step = (
                "below .6"
                if proposal.confidence < 0.6
                else ".6 to .85"
                if proposal.confidence < 0.85
                else ".85 and above"
            )
            by_confidence[f"{proposal.sort}, {step}"][word] += 1
            if arguments.show and word != "useful":
                print(word, *key, f"{proposal.confidence:g}", "|", proposal.text)
    for table in (by_rule, by_confidence):
        for name, words in sorted(table.items()):
            share = words["useful"] / words.total()
            print(f"{name:32} n {words.total():3}  useful {share:.3f}  {dict(words)}")
    gone, new = (
        sum(key not in proposals for key in judged),
        sum(key not in judged for key in proposals),
    )
    print(
        f"{len(proposals)} proposals; {len(judged)} judged, of which {gone} are no longer made; {new} not judged"
    )


if __name__ == "__main__":
    main()
