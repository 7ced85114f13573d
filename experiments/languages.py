"""Measure how the setting ``language`` changes retrieval in German, Russian and Japanese.

    python experiments/languages.py [--json]

``data/talk-de.json``, ``talk-ru.json`` and ``talk-ja.json`` are conversations of two friends over a year in LoCoMo's
format. Each has some 120 turns and a hundred questions, written by hand without translation or templates. A question
uses other forms or other words than the turn that answers it.

The default pack, BM25 and the vectors alone run with the language, with ``english`` (the default) and with ``none``.
Snowball has no stemmer for Japanese, which has no spaces either. Its language is ``none``, and its words are pairs of
characters under every setting.

There is one conversation per language, so there is no interval by conversation. The standard error of a share of .8 of
a hundred questions is .04, and of a difference between two settings of one pack about half of that.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from results import Results, plot_dots

from memlab.io.ingest import LabelledConversation, read_locomo
from memlab.kernel.base.progress import bar
from memlab.kernel.policies import load_pack
from memlab.science.bench import bench_conversations
from memlab.science.evaluation import BASELINES

DATA = Path(__file__).parent / "data"
LANGUAGES = {"de": "german", "ru": "russian", "ja": "none"}
METRICS = ("recall@10", "ndcg@10")


def read_talk(code: str) -> tuple[LabelledConversation, ...]:
    """Read the conversation of a language."""
    return read_locomo(DATA / f"talk-{code}.json")


def set_language(source: str, language: str) -> str:
    """Return the source of a pack with the setting ``language``."""
    return source.rstrip() + f'\n(setting language "{language}")\n'


def measure_language(code: str, settings: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each pack and setting; the vectors alone have one, as they read no words."""
    conversations = read_talk(code)
    sources = {"memlab": '(pack memlab-here "The default." :inherits memlab)', **BASELINES}
    rows = []
    for name, source in sources.items():
        for setting in settings if name != "dense" else settings[:1]:
            pack = load_pack(set_language(source, setting))
            (system,) = bench_conversations(conversations, packs=[pack], baselines=False).systems
            rows.append(
                {
                    "language": code,
                    "pack": name,
                    "setting": setting if name != "dense" else "",
                    "questions": system.questions,
                    **{metric: system.metrics[metric] for metric in METRICS},
                }
            )
    return rows


def main() -> None:
    """Run the study."""
    parser = Results.build_parser(__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = Results(
        "languages", arguments, data=[DATA / f"talk-{code}.json" for code in LANGUAGES]
    )
    rows: list[dict[str, Any]] = []
    with bar(sys.stderr.isatty(), len(LANGUAGES), unit="language") as step:
        for code, language in LANGUAGES.items():
            rows += measure_language(code, list(dict.fromkeys((language, "english", "none"))))
            step(1)
    points = [row | {"system": f"{row['language']}, {row['pack']}"} for row in rows]
    results.save(
        rows,
        plot_dots(
            points,
            label="system",
            value="recall@10",
            group="setting",
            title="The language's own stemmer finds more",
        ),
    )
    if arguments.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    print(f"{'':<4}{'pack':<10}{'language':<10}" + "".join(f"{metric:>11}" for metric in METRICS))
    for row in rows:
        figures = "".join(f"{row[metric]:>11.3f}" for metric in METRICS)
        print(f"{row['language']:<4}{row['pack']:<10}{row['setting']:<10}{figures}")


if __name__ == "__main__":
    main()
