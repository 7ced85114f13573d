"""Commands on published packs: packs that travel with their evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import memlab
from memlab.ui.cli._base import (
    InputFile,
    LocalPath,
    Report,
    command,
    get_fields,
    open_existing,
    publishing,
)


@command(
    publishing,
    verb="memlab.io.publishing:publish_pack",
    options={"licence": 'Licence of the pack, such as "MIT".'},
)
@click.argument("file", type=InputFile(".hy", as_text=True))
@click.option(
    "--evidence", multiple=True, type=LocalPath(), help="Folder of experiments with this pack."
)
@click.option("--output", type=LocalPath(), help="File to write. Default: NAME.mempack.")
def publish(file: str, evidence: tuple[Path, ...], output: Path | None, licence: str) -> Report:
    """Write the pack FILE and its evidence to one file.

    FILE is a pack's name or file. NAME.mempack contains the texts of the pack, its hash, parents and licence. It also has
    the results that experiments in the folders measured for this pack, with their rows.

    Example: memlab pack publish mine.hy --evidence runs --licence MIT
    """
    target = output or Path(file).with_suffix(".mempack").name
    memlab.publish_pack(file, target, evidence=evidence, licence=licence)
    written = memlab.pull_pack(target)
    return {"file": str(target), **written.to_dict()}, f"{target} is written\n\n{written!r}"


@command(publishing)
@click.argument("file", type=LocalPath())
@click.option(
    "--lab",
    type=LocalPath(),
    help="Lab that compares the pack with its active pack; recalls also show results of the pack.",
)
@click.option("--reason", default="", help="Reason for the change, recorded in the history.")
@click.option(
    "--check",
    multiple=True,
    type=LocalPath(),
    metavar="DATA",
    help="File, folder or lab of the evidence, whose figures are computed again and compared. May be repeated.",
)
def pull(file: Path, lab: Path | None, reason: str, check: tuple[Path, ...]) -> Report:
    """Read the published pack FILE and check its texts and evidence.

    With --lab, the pack becomes a challenger of the lab, as by `memlab policy challenge`. It is
    never active by itself. With --check, the exit status is 1 if a figure differs, and no lab is changed.

    Example: memlab pack pull mine.mempack --check locomo10.json --lab my.memlab
    """
    published = memlab.pull_pack(file)
    report: dict[str, Any] = published.to_dict()
    parts = [repr(published)]
    if check:
        figures = published.check(*check)
        report["check"] = figures.to_dicts()
        parts += ["", str(figures)]
        if not figures["equal"].all():
            return report, [*parts, "", "Some figures differ from those of the file."], 1
    if lab is not None:
        with open_existing(lab) as opened:
            challenger = opened.challenge(
                published.pack,
                reason=reason or f"pulled from {file.name} [{published.checksum[:12]}]",
            )
        report["challenge"] = get_fields(challenger, "name", "design", "extra", "rate", "reason")
        parts += ["", repr(challenger).strip("<>")]
    return report, parts
