"""``lab.questions``: labelled questions, stored with the lab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import polars as pl

from memlab.errors import InputError, UnknownName
from memlab.kernel.base.arguments import AsGiven, Count, checked
from memlab.kernel.base.clock import INSTANT, When, to_micros
from memlab.kernel.base.display import Displayed
from memlab.kernel.base.printable import count_of, printable
from memlab.kernel.privacy import personal_kinds, screen
from memlab.kernel.slates import Slates
from memlab.kernel.state import validate_text
from memlab.kernel.verbs.core import Core
from memlab.subjects.questions.proposing import propose_rows
from memlab.subjects.questions.register import Labels
from memlab.subjects.questions.rows import Row, Wanted, question_key, read_rows, read_wants

_SCHEMA: dict[str, Any] = {
    "id": pl.Int64,
    "query": pl.String,
    "wants": pl.List(pl.Int64),
    "project": pl.String,
    "viewer": pl.String,
    "at": pl.Int64,
    "category": pl.String,
    "source": pl.String,
    "accepted": pl.Boolean,
}
"""The columns of ``lab.questions.frame``; times are integers until the frame is built."""

_SUCCESS = 0.5
"""The minimum mean reward of a memory that counts as an answer, as in ``memlab.failures``."""


Ids = int | pl.DataFrame | Iterable[int]
"""Numbers of questions, or a frame with a column ``id``."""


class LabQuestions(Displayed):
    """The labelled questions of a lab: queries with the memories that answer them.

    A lab scores policies on its questions (``lab.score``). ``memlab.failures``, ``evaluate``,
    ``tune`` and ``bench_lab`` accept ``lab.questions`` as labels. Each change is an event, so
    ``lab.at`` shows the questions of the past. A purge of a wanted memory removes the question.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
    >>> added = lab.questions.add("tabs or spaces?", wants=["The user prefers tabs"])
    >>> added.select("id", "query", "wants").row(0)
    (1, 'tabs or spaces?', [1])
    """

    def __init__(self, lab: Any, core: Core) -> None:
        self._lab, self._core = lab, core

    @property
    def frame(self) -> pl.DataFrame:
        """A frame with one row per question, including proposed questions.

        ``wants`` has the ids of the memories, ``source`` is hand, frame, file, benchmark, feedback
        or rule.
        """
        with self._core.reading() as state:
            return questions_frame(state.projection(Labels).all)

    def __len__(self) -> int:
        """Return the number of accepted questions."""
        return self.frame.filter("accepted").height

    @checked
    def add(
        self,
        questions: Annotated[Any, AsGiven],
        wants: Annotated[Any, AsGiven] = None,
        *,
        project: str | None = None,
        viewer: str | None = None,
        at: When | None = None,
        category: str = "",
    ) -> pl.DataFrame:
        """Add one or several questions.

        Parameters
        ----------
        questions
            The query of one question. Or several questions: a frame, a list of dicts, or the path
            of a ``.csv``, ``.jsonl`` or ``.parquet`` file. Columns are the names of the other
            arguments and ``query``. Or labelled conversations whose turns the lab has, such as the
            result of ``memlab.ingest.read_locomo``.
        wants
            The memories that answer the query: ids, refs, texts or memories, or one of them.
        project
            The project of the recall.
        viewer
            The user or agent whose recall it is. Other viewers do not see the question.
        at
            The time of the recall. Default: the time of each score.
        category
            A word that groups questions.

        Returns
        -------
        DataFrame
            The rows of ``frame`` for these questions. A question that the lab has already is not
            added again. A proposed one is accepted, unless ``accepted`` is false in its row.

        Raises
        ------
        InputError
            If a row is invalid, or contradicts another question: the same query with other wanted
            memories. If a wanted memory is not in the lab, was purged, or is hidden from the viewer.
            No question is added then.
        PrivacyError
            If a name of a question holds a secret. Secrets in queries are redacted.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> rows = pl.DataFrame({"query": ["tabs?", "when do we deploy?"], "wants": [1, 2]})
        >>> lab.questions.add(rows).height
        2
        """
        if wants is None:
            if (project, viewer, at, category) != (None, None, None, ""):
                raise InputError(
                    "For several questions, give project, viewer, at and category in columns. Pass wants= for one question."
                )
            return self._add(*self._read(questions))
        if not isinstance(questions, str):
            raise InputError(
                "With wants=, pass the text of one query. Write several queries, each with its wants, in columns."
            )
        validate_text(questions)
        instant = None if at is None else to_micros(at)
        where, wanted = "The question", read_wants("The question", wants)
        row = Row(where, questions, wanted, project, viewer, instant, category)
        return self._add([row], "hand")

    @checked
    def infer(self) -> pl.DataFrame:
        """Add questions from logged recalls with feedback or attributed rewards.

        A memory whose mean reward for a query is at least .5 is wanted. Queries that the lab has a
        question for are left out.

        Returns
        -------
        DataFrame
            The rows of ``frame`` for the new questions.

        Notes
        -----
        Users judge what a recall showed. So inferred questions favour the policy that was active,
        and miss memories that it did not show.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["The user prefers tabs", "Deploys go out on Tuesdays"])
        >>> _ = lab.feedback(lab.recall("tabs or spaces?")[0], "success")
        >>> lab.questions.infer()["query"].to_list()
        ['tabs or spaces?']
        """
        return self._add(self._inferred_rows(), "feedback", lenient=True)

    @checked
    def propose(self, limit: Count = 20) -> pl.DataFrame:
        """Propose questions by rules, each answered by one stored memory.

        A rule turns a fact or a simple statement around: "Ana lives in Rome" answers "Where does Ana
        live?". Messages without such a statement are asked for by a phrase that no other message
        has: "What did Ana say about the old harbour?". What two memories state is left out, and so
        is a question that was removed. Proposed questions count in no score until ``accept``.

        Parameters
        ----------
        limit
            The maximum number of questions, spread over the lab.

        Returns
        -------
        DataFrame
            The rows of ``frame`` for the proposed questions.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember(["Ana lives in Rome", "Deploys go out on Tuesdays"])
        >>> lab.questions.propose().select("query", "accepted").row(0)
        ('Where does Ana live?', False)
        """
        with self._core.reading() as state:
            existing = {question_key(row) for row in state.projection(Labels).all}
            rows = propose_rows(state, limit, existing, self._removed())
        return self._add(rows, "rule", lenient=True)

    @checked
    def accept(self, ids: Ids) -> pl.DataFrame:
        """Accept proposed questions, which scores then use.

        Parameters
        ----------
        ids
            Numbers of questions, or a frame with a column ``id``.

        Returns
        -------
        DataFrame
            The rows of ``frame`` for these questions.

        Raises
        ------
        UnknownName
            If there is no such question. No question is accepted then.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Ana lives in Rome")
        >>> lab.questions.accept(lab.questions.propose())["accepted"].to_list()
        [True]
        """
        accepted = self._change("accept-question", ids)
        return self.frame.filter(pl.col("id").is_in(accepted))

    @checked
    def remove(self, ids: Ids) -> int:
        """Remove questions from the current state; views of the past keep them.

        Parameters
        ----------
        ids
            Numbers of questions, or a frame with a column ``id``.

        Returns
        -------
        int
            The number of removed questions.

        Raises
        ------
        UnknownName
            If there is no such question. No question is removed then.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("Ana lives in Rome")
        >>> lab.questions.remove(lab.questions.propose())
        1
        """
        return len(self._change("remove-question", ids))

    @checked
    def label_recalls(self, slates: Slates) -> pl.DataFrame:
        """Return labels for the logged recalls whose query is one of the questions.

        Parameters
        ----------
        slates
            The log whose recalls are labelled.

        Returns
        -------
        DataFrame
            A row with ``decision``, ``memory_id`` and ``relevance`` for each wanted memory.

        Raises
        ------
        InputError
            If no recall has the query of a question.

        Examples
        --------
        >>> import memlab
        >>> lab = memlab.open()
        >>> _ = lab.remember("The user prefers tabs")
        >>> _ = lab.questions.add("tabs or spaces?", wants=1)
        >>> _ = lab.recall("tabs or spaces?")
        >>> lab.questions.label_recalls(lab.slates())["memory_id"].to_list()
        [1]
        """
        # A question without a project or viewer labels the recalls of every project or viewer.
        recalls = slates.decisions.select(
            "decision", "query", "project", viewer=pl.col("filters").str.json_path_match("$.viewer")
        ).collect()
        own = self.frame.filter("accepted").select("query", "wants", "project", "viewer")
        labels = (
            recalls.join(own, on="query", suffix="_asked")
            .filter(
                pl.col(f"{name}_asked").is_null() | pl.col(f"{name}_asked").eq_missing(pl.col(name))
                for name in ("project", "viewer")
            )
            .explode("wants")
            .select("decision", memory_id="wants", relevance=pl.lit(1.0))
            .unique(maintain_order=True)
        )
        if not labels.height:
            raise InputError(
                f"None of {count_of(recalls.height, 'recall')} of the log has the query of one of "
                f"{count_of(len(self), 'question')}. Ask the questions with lab.recall, or use lab.score."
            )
        return labels

    def _read(self, source: object) -> tuple[list[Row], str]:
        with self._core.reading() as state:
            projects = list(state.names["project"].vocabulary)
        return read_rows(source, projects)

    def _removed(self) -> set[tuple[str, tuple[int, ...]]]:
        """Return the query and wanted memories of each question that was removed."""
        added: dict[int, tuple[str, tuple[int, ...]]] = {}
        removed: set[tuple[str, tuple[int, ...]]] = set()
        kinds = ("question", "remove-question")
        for event in self._core.store.journal.events(kinds=kinds):
            if event.kind == "question":
                for row in event.body["added"]:
                    added[row["question"]] = row["query"].casefold(), tuple(row["wants"])
            else:
                # A purge takes questions out of the events, not their numbers.
                removed.update(added[own] for own in event.body["questions"] if own in added)
        return removed

    def _inferred_rows(self) -> Iterator[Row]:
        """Yield a question for each logged query with a memory that helped."""
        slates = self._lab.slates()
        names = ("query", "project", "filters")
        judged = (
            slates.feedback.join(slates.decisions.select("decision", *names), on="decision")
            .filter(pl.col("query").str.strip_chars().str.len_chars() > 0)
            .with_columns(viewer=pl.col("filters").str.json_path_match("$.viewer"))
            .group_by("query", "project", "viewer", "memory_id", maintain_order=True)
            .agg(pl.col("reward").mean(), pl.col("decision").min())
            .filter(pl.col("reward") >= _SUCCESS)
            .group_by("query", "project", "viewer", maintain_order=True)
            .agg("memory_id", pl.col("decision").min())
            .sort("decision")
            .collect()
        )
        for row in judged.iter_rows(named=True):
            where = f"The recall {row['decision']}"
            yield Row(where, row["query"], tuple(row["memory_id"]), row["project"], row["viewer"])

    def _add(self, rows: Iterable[Row], source: str, *, lenient: bool = False) -> pl.DataFrame:
        """Add questions in one event per viewer, and return the rows of the questions.

        If ``lenient``, rows that the lab has, that contradict a question or want a purged memory are
        left out, and no proposed question is accepted.
        """
        core = self._core
        numbers: list[int] = []
        accepted: list[int] = []
        with core.store.writing() as tx:
            labels, now = core.store.state.projection(Labels), core.instant(None)
            proposed = {row["question"] for row in labels.all if not row["accepted"]}
            resolved = _resolve_rows(core, rows, labels.all, lenient=lenient)
            last = labels.last
            added: dict[str | None, list[dict[str, Any]]] = {}
            for row in resolved:
                # A row of the lab has its number already. Lenient callers want new questions only.
                if "question" in row:
                    if lenient:
                        continue
                    if row["accepted"] and row["question"] in proposed:
                        accepted.append(row["question"])
                else:
                    last += 1
                    row |= {"question": last, "source": source}
                    if source == "rule":
                        row["accepted"] = False
                    added.setdefault(row.get("viewer"), []).append(row)
                numbers.append(row["question"])
            for questions in added.values():
                tx.event("question", {"added": questions, "last": last}, at=now)
            if accepted:
                tx.event("accept-question", {"questions": accepted}, at=now)
        return self.frame.filter(pl.col("id").is_in(numbers))

    def _change(self, kind: str, ids: Any) -> list[int]:
        """Write an event about existing questions, and return the questions' numbers."""
        if isinstance(ids, pl.DataFrame):
            if "id" not in ids.columns or not ids["id"].dtype.is_integer():
                raise InputError("A frame of questions needs the column id, with integers.")
            ids = ids["id"].to_list()
        numbers = [ids] if isinstance(ids, int) else list(dict.fromkeys(ids))
        with self._core.store.writing() as tx:
            labels = self._core.store.state.projection(Labels)
            for number in numbers:
                if isinstance(number, bool) or number not in labels:
                    raise UnknownName(
                        "question", number, [str(own["question"]) for own in labels.all]
                    )
            if numbers:
                tx.event(kind, {"questions": numbers}, at=self._core.instant(None))
        return numbers

    def __repr__(self) -> str:
        proposed = self.frame.height - len(self)
        also = f", {proposed} proposed" if proposed else ""
        return printable(f"<{count_of(len(self), 'labelled question')}{also}>")


def read_asked(own: LabQuestions, source: object) -> list[dict[str, Any]]:
    """Return the questions to score, which are the lab's questions by default."""
    if source is None:
        source = own
    if isinstance(source, LabQuestions):
        with source._core.reading() as state:
            return [dict(row) for row in state.projection(Labels).all if row["accepted"]]
    return [row for row in _resolve_rows(own._core, own._read(source)[0]) if row["accepted"]]


def questions_frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Return a frame of questions, ordered by number."""
    records = [{**row, "id": row["question"]} for row in rows]
    frame = pl.DataFrame(records, schema=_SCHEMA).sort("id")
    return frame.with_columns(pl.col("at").cast(INSTANT))


def _resolve_rows(
    core: Core,
    rows: Iterable[Row],
    existing: Iterable[Mapping[str, Any]] = (),
    *,
    lenient: bool = False,
) -> list[dict[str, Any]]:
    """Return the distinct rows with redacted queries and the ids of wanted memories.

    A row that equals one of the ``existing`` questions is returned as that question, accepted if
    either is. A row that contradicts it or another row raises InputError, or is left out if
    ``lenient``.
    """
    with core.reading() as state:
        wanted, personal = Wanted(state), personal_kinds(core.pack.settings)
        first = {question_key(row): ("The lab", dict(row)) for row in existing}
        resolved: dict[Any, dict[str, Any]] = {}
        for row in rows:
            row = row._replace(query=screen(row.query, personal=personal).text)
            key = question_key(row._asdict())
            try:
                ids = wanted.ids(row)
                where, own = first.setdefault(key, (row.where, _plain(row, ids)))
                if own["wants"] != ids:
                    raise InputError(
                        f'{row.where} wants {ids} for "{row.query[:60]}". {where} wants {own["wants"]} for it. Remove '
                        "one of the two questions."
                    )
            except InputError:
                if lenient:
                    continue
                raise
            own["accepted"] |= row.accepted
            resolved[key] = own
        return list(resolved.values())


def _plain(row: Row, ids: list[int]) -> dict[str, Any]:
    """Return the fields of a row for an event, without empty fields."""
    fields = row._asdict() | {"wants": ids, "where": None}
    return {name: value for name, value in fields.items() if value not in (None, "")}
