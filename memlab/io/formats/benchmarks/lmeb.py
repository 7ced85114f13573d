"""Folders in the format of LMEB (Zhao et al. 2026, arXiv 2603.12572): retrieval tasks over candidates of a scene.

    Dialogue/LoCoMo/corpus.jsonl               {"id", "title", "text"} a line
    Dialogue/LoCoMo/candidates.jsonl           {"scene_id", "candidate_doc_ids"} a line
    Dialogue/LoCoMo/single_hop/queries.jsonl   {"id", "text"} a line
    Dialogue/LoCoMo/single_hop/qrels.tsv       query, document, score; without a head

The corpus and the candidates stand beside the queries or in a folder above. A query's scene is its id, or its id up to
the second "_"; without candidates all documents are those of one scene. The texts have no time, so all are of one day.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from memlab.errors import DatasetError
from memlab.io.formats.benchmarks.conversation import Conversation, Turn
from memlab.io.formats.benchmarks.files import Place, lines, opened
from memlab.io.formats.benchmarks.labels import LabelledConversation, Question
from memlab.kernel.base.arguments import checked

__all__ = ["read_lmeb"]

_AT = datetime(2024, 1, 1, tzinfo=UTC)
_ABOVE = 2
"""How far above its queries a task's corpus stands at most."""


@checked
def read_lmeb(folder: str | Path) -> tuple[LabelledConversation, ...]:
    """The tasks below a folder: a conversation for each scene, whose turns are its candidates in the order given.

    ``category`` is the path of the task below ``folder``. Raises ``DatasetError``.

    >>> from memlab.io.ingest import read_lmeb
    >>> len(read_lmeb("eval_data/Dialogue/LoCoMo"))                     # doctest: +SKIP
    10
    """
    folder = Path(folder).expanduser()
    tasks = sorted(path.parent for path in folder.rglob("queries.jsonl")) if folder.is_dir() else []
    if not tasks:
        raise DatasetError(
            f"{folder} holds no queries.jsonl: LMEB is a folder of tasks with queries.jsonl and qrels.tsv."
        )
    corpora: dict[Path, Mapping[str, str]] = {}
    scenes: dict[tuple[Path, tuple[str, ...]], list[Question]] = {}
    for task in tasks:
        corpus = _beside(task, "corpus.jsonl")
        if corpus is None:
            raise DatasetError(f"{task} has no corpus.jsonl beside its queries or in the {_ABOVE} folders above.")
        if corpus not in corpora:
            corpora[corpus] = dict(_corpus(corpus))
        category = task.relative_to(folder).as_posix() if task != folder else task.resolve().name
        for candidates, question in _questions(task, category, corpora[corpus]):
            scenes.setdefault((corpus, candidates), []).append(question)
    return tuple(
        LabelledConversation(_conversation(f"scene-{number}", candidates, corpora[corpus]), tuple(questions))
        for number, ((corpus, candidates), questions) in enumerate(scenes.items(), 1)
    )


def _beside(task: Path, name: str) -> Path | None:
    return next((place / name for place in (task, *task.parents[:_ABOVE]) if (place / name).is_file()), None)


def _corpus(path: Path) -> Iterator[tuple[str, str]]:
    for number, value in lines(path, "LMEB's corpus"):
        place = Place(path, f"line {number}")
        item = place.record(value, "(itself)")
        title = place.text(item, "title", "", required=False)
        yield place.text(item, "id", ""), f"{title} {place.text(item, 'text', '', required=False)}".strip()


def _questions(task: Path, category: str, corpus: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], Question]]:
    candidates = _candidates(task, corpus)
    wanted = _qrels(task / "qrels.tsv")
    for number, value in lines(task / "queries.jsonl", "LMEB's queries"):
        place = Place(task / "queries.jsonl", f"line {number}")
        item = place.record(value, "(itself)")
        query = str(item["id"]) if isinstance(item.get("id"), int) else place.text(item, "id", "")
        scene = query if query in candidates else "_".join(query.split("_")[:2])
        if candidates and scene not in candidates:
            raise place.error("id", f'"{query[:60]}" is of no scene of candidates.jsonl.')
        held = candidates.get(scene, tuple(corpus))
        relevant = wanted.get(query, ())
        known = set(held)
        yield (
            held,
            Question(
                place.text(item, "text", ""),
                category,
                tuple(document for document in relevant if document in known),
                dropped=tuple(document for document in relevant if document not in known),
            ),
        )


def _candidates(task: Path, corpus: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    path = _beside(task, "candidates.jsonl")
    found: dict[str, tuple[str, ...]] = {}
    for number, value in lines(path, "LMEB's candidates") if path else ():
        place = Place(path or task, f"line {number}")
        item = place.record(value, "(itself)")
        scene = str(item["scene_id"]) if isinstance(item.get("scene_id"), int) else place.text(item, "scene_id", "")
        ids = place.items(item.get("candidate_doc_ids"), "candidate_doc_ids", "ids")
        strange = next((one for one in ids if not isinstance(one, str) or one not in corpus), None)
        if strange is not None:
            raise place.error("candidate_doc_ids", f"the corpus has no document {str(strange)[:60]!r}.")
        found[scene] = tuple(dict.fromkeys(ids))
    return found


def _qrels(path: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    with opened(path, "LMEB's qrels") as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
            if not row or (number == 1 and row[-1] == "score"):
                continue
            if len(row) != 3 or not row[2].lstrip("-").isdecimal():
                raise DatasetError(
                    f"{path}, line {number}: expected query, document and a whole score, with tabs between."
                )
            if int(row[2][:9]) > 0:
                found.setdefault(row[0], []).append(row[1])
    return {query: tuple(dict.fromkeys(documents)) for query, documents in found.items()}


def _conversation(name: str, candidates: Sequence[str], corpus: Mapping[str, str]) -> Conversation:
    if not candidates:
        raise DatasetError(f"{name} has no candidates: there is nothing to find.")
    return Conversation(name, tuple(Turn(document, "", corpus[document], "session_1", _AT) for document in candidates))
