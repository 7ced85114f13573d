"""Measure how the setting ``language`` changes retrieval in German, Russian and Japanese.

    python experiments/languages.py

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

from pathlib import Path

from results import Results, run_experiment

import memlab
from memlab.io.ingest import LabelledConversation, read_locomo
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


def build_experiment(code: str, folder: Path) -> memlab.Experiment:
    """Return the experiment on a language: each pack under each setting; the vectors alone read no words."""
    sources = {"memlab": '(pack memlab-here "The default." :inherits memlab)', **BASELINES}
    settings = dict.fromkeys((LANGUAGES[code], "english", "none"))
    policies = {
        f"{name}-{setting}": set_language(source, setting)
        for name, source in sources.items()
        for setting in settings
        if name != "dense" or setting == "none"
    }
    data = {code: DATA / f"talk-{code}.json"}
    return memlab.Experiment(f"languages-{code}", policies, data, metrics=METRICS, folder=folder)


def main() -> None:
    """Run the study."""
    arguments = Results.build_parser(__doc__).parse_args()
    for code in LANGUAGES:
        run_experiment(build_experiment(code, arguments.results))


if __name__ == "__main__":
    main()
