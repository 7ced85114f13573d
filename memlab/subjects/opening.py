"""``memlab.open`` and ``memlab.load``: labs in a directory, in memory or from a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from memlab.kernel.base.arguments import AsGiven, Seconds, Seed, checked
from memlab.kernel.base.clock import Clock, system_clock
from memlab.kernel.embedding import EmbedderSpec
from memlab.kernel.journal import KeySource
from memlab.kernel.policies import PackLike
from memlab.subjects.lab import Lab


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
    key: KeySource | None = None,
) -> Lab:
    """Open the lab in a directory, or create a lab there.

    Without a path, the lab is in memory.

    Parameters
    ----------
    path
        The directory of the lab; None for a lab in memory.
    pack
        The pack to use from now on. Default: the lab's active pack, "memlab" for a new lab.
    embedder
        The source of vectors: a model2vec folder or hub name, or a callable from texts to
        vectors. Default: the static model that memlab ships.
    clock
        A function that returns the current time in microseconds UTC, for tests.
    seed
        The seed from which, together with the recalls so far, exploration items are drawn.
    read_only
        Whether to open the lab without writing to it.
    reembed
        What to do if the lab has vectors of another embedder: False refuses it, True embeds every
        memory before the call returns, "background" embeds in a thread, the newest first.
    index
        The index that proposes neighbours among more than 100,000 memories: "annoy".
    backups
        Whether to keep three backups in the lab's directory: one is made on opening if the newest
        is a day old, and one on closing if anything has changed.
    create
        Whether to make a lab if the directory has none. False is for a disk that may be absent.
    key
        The key of an encrypted lab: a passphrase, at least 32 random bytes, or a function that
        returns either. A new lab is encrypted if a key is given. Default: the environment variable
        MEMLAB_KEY; for an encrypted lab then the key ring of the operating system.

    Returns
    -------
    Lab
        The lab; use it in a ``with`` block, or call ``close``.

    Raises
    ------
    NotALab
        If the path is a file, or a directory with other content.
    NewerLab
        If a later version of memlab wrote the lab.
    DamagedLab
        If the journal is damaged.
    ReadOnlyLab
        If the directory cannot be written.
    LabUnavailable
        If ``create`` is False and the directory has no lab, or if the directory disappears while
        the lab is open. The lab continues once the directory is back.
    WrongKey
        If the lab is encrypted and the key is missing or wrong.
    EmbedderMismatch
        If the lab has vectors of another embedder and ``reembed`` is False.
    MissingExtra
        If the embedder, the index or the encryption needs a package that is not installed.

    Notes
    -----
    While ``reembed="background"`` runs, memories without a new vector match by their words alone.
    ``lab.io.reembedding()`` reports the progress, and the next opening continues it.

    ``lab.io.backup()`` makes a backup at any time. Each backup reads every page of the journal, so
    damage is noticed while an intact copy exists.

    Examples
    --------
    >>> import memlab
    >>> with memlab.open() as lab:
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
        key=key,
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
    seconds: Seconds | None = 3600,
    progress: bool = True,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
    key: KeySource | None = None,
) -> Lab:
    """Load a file, folder, frame or messages into a new lab in memory.

    ``lab.load`` adds to an existing lab. Loading the same source again adds nothing, and an interrupted
    load continues where it stopped.

    Parameters
    ----------
    x
        A path or a Python object in one of the formats below.
    format
        The name of the format. Default: recognized from the contents.
    columns
        The column of each field of a memory, of ``role`` or of ``at``; None leaves a field out.
    project
        The project of all memories.
    session
        The session of memories that name none.
    linking
        When the memories are compared, as for ``Lab.remember``; every row keeps its own memory,
        and "now" links them before the call returns.
    policies
        Whether to use the pack of an export.
    strict
        Whether to raise DatasetError at the first broken line instead of counting it.
    extract
        Whether to also store the facts and observations that ``lab.agents.extract`` finds. "I" is
        the speaker among several people, and the user in a conversation with an assistant.
    seconds
        The seconds after which reading stops with an InputError; what was read is stored. None sets no limit.
    progress
        Whether to show a progress bar for work of more than a second.
    embedder
        The source of vectors, as for ``memlab.open``.
    clock
        A function that returns the current time in microseconds UTC.
    key
        The key of the encrypted lab at ``x``, as for ``memlab.open``.

    Returns
    -------
    Lab
        A lab in memory with the loaded memories.

    Raises
    ------
    InputError
        If the file does not exist or its format is not recognized.
    UnknownName
        If the format or a column does not exist.
    DatasetError
        If a line is broken and ``strict`` is True.
    PrivacyError
        If a name holds a secret. Secrets in texts are redacted.
    NotALab
        If a folder is not a lab though ``format="lab"``.
    NewerLab
        If a later version of memlab wrote the lab or export.
    DamagedLab
        If the lab or export is damaged.
    WrongKey
        If the lab is encrypted and the key is missing or wrong.

    Notes
    -----
    Formats are recognized from the contents:

    - messages with a role and content, as OpenAI, Anthropic and LangChain write them, with tool
      calls and results; exports of ChatGPT and Claude; transcripts of coding assistants. They are
      JSON, JSON Lines or lists.
    - rows: a frame of Polars or pandas, CSV, Parquet, JSON, JSON Lines, a list of dicts or texts.
    - logs in Markdown or text ("User:", "**Ida:**", "## Assistant"), and Markdown without
      speakers as paragraphs.
    - a folder of such files, or of BEAM's chats; a file of LoCoMo.
    - an export of a lab ("jsonl", "parquet", "markdown", "sexp"), a lab's folder ("lab"), and
      exports of mem0 and LangGraph. Their memories keep times, counts and status.

    ``format`` takes one of the words above, or "messages", "records", "csv", "log", "notes",
    "locomo", "beam". Messages become memories of the kind "turn" in the order of their session; a
    speaker without a name is called by the role.

    Lines that are broken, longer than 16 MiB or without a valid time are skipped and counted
    (``skipped`` and ``places`` of ``lab.load``). A loaded memory is recognized by its project,
    session, speaker, text and time.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.load([{"role": "user", "content": "I moved to Bergen."}])
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
        seconds=seconds,
        progress=progress,
        key=key,
    )
    return lab
