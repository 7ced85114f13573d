"""What a file of messages says: facts and memories proposed, by rules or by a language model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

import memlab
from memlab.io.formats import Options, read_file
from memlab.ui.cli._base import LAB, agent, as_json_option, existing, tell
from memlab.ui.cli._input import InputFile, LocalPath

_KEY = "MEMLAB_MODEL_KEY"


@agent.command()
@LAB
@click.argument("file", type=InputFile())
@click.option("--format", "format_", help="Else it is guessed; see: memlab.load.")
@click.option("--agent", help="Whose memories they become.")
@click.option("--project")
@click.option("--session")
@click.option(
    "--model", "url", metavar="URL", help=f"Ask a model at URL, such as http://127.0.0.1:8080/v1. Key: {_KEY}."
)
@click.option("--model-name", help="What its server calls it.")
@click.option("--model-calls", type=click.IntRange(1), help="Most requests. Default: any number.")
@click.option("--model-tokens", type=click.IntRange(1), default=1_000_000, show_default=True, help="Most tokens.")
@click.option("--model-cache", type=LocalPath(), help="Keep answers in this folder.")
@click.option(
    "--otherwise",
    type=click.Choice(["raise", "rules", "skip"]),
    default="raise",
    show_default=True,
    help="What becomes of a message that the model does not read.",
)
@click.option("--commit", is_flag=True, help="Store them.")
@as_json_option
def extract(
    lab: Path,
    file: Path,
    format_: str | None,
    url: str | None,
    model_name: str | None,
    model_calls: int | None,
    model_tokens: int,
    model_cache: Path | None,
    otherwise: Any,
    commit: bool,
    as_json: bool,
    **where: Any,
) -> None:
    """Propose facts and memories of the messages in FILE (- for standard input), as operations.

    Nothing is stored in LAB without --commit.
    """
    if (url is None) is not (model_name is None):
        raise click.UsageError("--model and --model-name belong together.")
    model = None
    if url is not None and model_name is not None:
        key = os.environ.get(_KEY) or None
        model = memlab.LanguageModel(
            url, model_name, key=key, calls=model_calls, tokens=model_tokens, cache=model_cache
        )
    said = [
        {name: row[name] for name in ("text", "speaker", "at") if name in row}
        for _, row in read_file(file, Options(format=format_)).rows
    ]
    with existing(lab, read_only=not commit) as opened:
        found = opened.agents.extract(said, model=model, otherwise=otherwise, **where)
        stored = list(opened.agents.commit(found).ids) if commit else []
    asked = [] if found.asked is None else found.asked.lines
    report = {"messages": found.messages, "proposed": found.frame.to_dicts(), "stored": stored, "asked": asked}
    end = [f"stored as {len(stored)} memories"] if commit else []
    tell(report, as_json=as_json, text=lambda: "\n".join([repr(found), *end]))
