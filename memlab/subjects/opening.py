"""``memlab.open`` and ``memlab.load``: a lab in a directory, in memory, or made of what a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from memlab.kernel.base.arguments import AsGiven, Seed, checked
from memlab.kernel.base.clock import Clock, system_clock
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.policies import PackLike
from memlab.subjects.lab import Lab

__all__ = ["load_lab", "open_lab"]


@checked
def open_lab(
    path: str | Path | None = None,
    *,
    pack: PackLike | None = None,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
    seed: Seed = 0,
    read_only: bool = False,
    reembed: bool | Literal["background"] = False,
    index: str = "annoy",
    backups: bool = False,
    create: bool = True,
) -> Lab:
    """Open the lab in the directory ``path``, or a new one there; without a path, a lab in memory.

    ``pack`` is used from now on (a new lab starts with "memlab"). ``embedder`` is the shipped static model, or a
    model2vec folder or hub name, or a callable from texts to vectors. A lab that holds vectors of another embedder
    is refused, unless ``reembed=True`` embeds every memory again before this returns, or ``reembed="background"`` does
    so in a thread, the newest first; until a memory has its new vector it is found by its words alone, and
    ``lab.io.reembedding()`` says how far that is. What is left when the lab is closed goes on at the next opening.

    ``seed`` decides, with what the lab has seen, which probes are drawn. ``index`` is what proposes neighbours among
    more than 100,000 memories: "annoy".

    ``backups=True`` keeps three backups in the lab's folder: one is made on opening if the newest is a day old, and one
    on closing if anything happened since; ``lab.io.backup()`` makes one at any time. Each reads every page of
    the journal, so that damage is noticed (DamagedLab) while there is a sound copy.

    ``create=False`` is for a lab on a disk that may be away: where no lab is at ``path`` nothing is made, and
    LabUnavailable says so. A lab whose folder goes away while it is open raises LabUnavailable from every call, writes
    nothing anywhere, and goes on once the folder is back.

    Raises NotALab, NewerLab, DamagedLab, ReadOnlyLab, LabUnavailable, EmbedderMismatch, MissingExtra.

    >>> with open_lab() as lab:
    ...     _ = lab.remember("The user prefers tabs", kind="preference")
    ...     lab.recall("tabs or spaces?")[0].text
    'The user prefers tabs'
    """
    return Lab(
        path,
        pack=pack,
        embedder=embedder,
        clock=clock,
        seed=seed,
        read_only=read_only,
        reembed=reembed,
        index=index,
        backups=backups,
        create=create,
    )


@checked
def load_lab(
    x: Annotated[Any, AsGiven],
    *,
    format: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    project: str | None = None,
    session: str | None = None,
    linking: str | None = None,
    policies: bool = True,
    strict: bool = False,
    extract: bool = False,
    progress: bool = True,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
) -> Lab:
    """A lab in memory with what ``x`` holds; ``lab.load(x)`` adds it to a lab that is there.

    ``x`` is a path or what Python holds:

    - messages with a role and content, as OpenAI, Anthropic and LangChain write them (dicts or objects), with calls of
      tools and their results; conversations of such; the exports of ChatGPT and Claude; transcripts of coding
      assistants: JSON, JSON Lines or lists.
    - rows: a frame of Polars or pandas, CSV, Parquet, JSON, JSON Lines, a list of dicts or of texts.
    - logs in Markdown or text ("User:", "**Ida:**", "## Assistant"); Markdown without speakers, as paragraphs.
    - a folder of all these, of BEAM's chats; a file of LoCoMo.
    - an export of a lab ("jsonl", "parquet", "markdown", "sexp"), a lab's folder ("lab"), what mem0 or LangGraph
      exports. Of these every memory keeps its times, counts and status; it is one transaction.

    What it is, is guessed; ``loaded.guessed`` of ``lab.load`` says what was. ``format`` overrides it: one of the words
    above, or "messages", "records", "csv", "log", "notes", "locomo", "beam". ``columns`` says from which column a field
    of a memory is taken, or ``role`` or ``at``; None: from none. ``project`` is given to all memories, ``session`` to
    those that name none. What is said is stored as turns (kind "turn") in its session's order; a speaker without a name
    is called by the role. ``linking`` is that of ``remember``, but every row has a memory of its own: "now" links
    them before it returns. ``policies`` also uses the pack of an export. ``extract=True`` also stores the facts and
    observations that ``lab.agents.extract`` finds in what is added: "I" is the speaker by name where several people
    talk, and the user where one person talks with an assistant. What an assistant says of the user is staged.

    The same again adds nothing, and a load that was killed goes on where it was: batches are transactions, and a memory
    is known by its project, session, speaker, text and time. Texts pass the privacy gate, and nothing is run.

    Lines that are broken, longer than 16 MiB or of no known time are skipped and counted (``loaded.skipped``,
    ``loaded.places``); ``strict=True`` raises DatasetError at the first. InputError where there is no file or it is
    nothing that is read here; UnknownName for a format or a column; PrivacyError, NotALab, NewerLab, DamagedLab.

    >>> lab = load_lab([{"role": "user", "content": "I moved to Bergen."}])
    >>> lab.recall("where do I live?")[0].text
    'I moved to Bergen.'
    """
    lab = Lab(embedder=embedder, clock=clock)
    lab.load(
        x,
        format=format,
        columns=columns,
        project=project,
        session=session,
        linking=linking,
        policies=policies,
        strict=strict,
        extract=extract,
        progress=progress,
    )
    return lab
