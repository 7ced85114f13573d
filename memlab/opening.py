"""``memlab.open`` and ``memlab.load``: a lab in a directory, in memory, or made of what a file holds."""

from __future__ import annotations

from pathlib import Path

from memlab.arguments import Seed, checked
from memlab.clock import Clock, system_clock
from memlab.embedding import EmbedderSpec
from memlab.lab import Lab
from memlab.policies import Pack

__all__ = ["load_lab", "open_lab"]


@checked
def open_lab(
    path: str | Path | None = None,
    *,
    pack: str | Path | Pack | None = None,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
    seed: Seed = 0,
    read_only: bool = False,
    reembed: bool = False,
    index: str = "annoy",
    backups: bool = False,
) -> Lab:
    """Open the lab in the directory ``path``, or a new one there; without a path, a lab in memory.

    ``pack`` is used from now on (a new lab starts with "memlab"). ``embedder`` is the shipped static model, or a
    model2vec folder or hub name, or a callable from texts to vectors. A lab that holds vectors of another embedder
    is refused, unless ``reembed=True`` embeds every memory again.

    ``seed`` decides, with what the lab has seen, which probes are drawn. ``index`` is what proposes neighbours among
    more than 100,000 memories: "annoy", or "graph" (an extra).

    ``backups=True`` keeps three backups in the lab's folder: one is made on opening if the newest is a day old, and one
    on closing if anything happened since; ``lab.io.backup()`` makes one at any time. Each reads every page of
    the journal, so that damage is noticed (DamagedLab) while there is a sound copy.

    Raises NotALab, NewerLab, DamagedLab, ReadOnlyLab, EmbedderMismatch, MissingExtra.

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
    )


@checked
def load_lab(
    path: str | Path,
    *,
    format: str | None = None,
    embedder: EmbedderSpec = None,
    clock: Clock = system_clock,
    policies: bool = True,
) -> Lab:
    """A lab in memory with what is at ``path``: an export, another lab's folder, a file of another tool.

    See ``lab.io.load`` for formats and errors. ``policies=False`` leaves the file's pack aside.

    >>> lab = memlab.load("agent.jsonl")                                                   # doctest: +SKIP
    """
    lab = Lab(embedder=embedder, clock=clock)
    lab.io.load(path, format=format, policies=policies)
    return lab
