"""Commands for the hooks of Claude Code and Codex."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

import memlab
from memlab.io.adapters.hooks import HOSTS, answer_hook, hook_settings
from memlab.kernel.base.disk import read_source, replacing
from memlab.ui.cli._base import LAB, LocalPath, Report, command, hook

# An event is a small object; a prompt that the user pastes may be long.
_MAX_EVENT_BYTES = 16 << 20


@command(hook)
@LAB
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=800,
    show_default=True,
    help="Maximum number of tokens of a context.",
)
@click.option("--project", help="Project of the memories. Default: the name of the repository.")
def run(lab: Path, budget: int, project: str | None) -> Report:
    """Answer an event of a coding agent, read from standard input.

    The host runs this command. An error becomes a notice of the host, so that a session never fails because of LAB.

    Example: memlab hook run my.memlab < event.json
    """
    try:
        event = _read_event(sys.stdin.buffer.read(_MAX_EVENT_BYTES))
        with memlab.open(lab) as opened:
            answer = answer_hook(opened, event, budget=budget, project=project)
    except (memlab.MemlabError, OSError) as error:
        answer = {"systemMessage": f"memlab: {error}"}
    return (answer, json.dumps(answer)) if answer else None


def _read_event(data: bytes) -> dict[str, object]:
    """Return the event in a JSON text; raise InputError if there is no event."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise memlab.InputError(
            "Standard input is not the JSON object of a hook's event. Coding agents pass it; see memlab hook install."
        )
    return event


@command(hook)
@LAB
@click.option(
    "--host",
    type=click.Choice(list(HOSTS)),
    default="claude",
    show_default=True,
    help="Coding agent whose settings get the hooks.",
)
@click.option(
    "--folder",
    type=LocalPath(),
    default=".",
    help="Folder of the coding agent's settings. Default: this folder.",
)
@click.option("--yes", is_flag=True, help="Write the settings instead of printing them.")
def install(lab: Path, host: str, folder: Path, yes: bool) -> Report:
    """Print the settings that make a coding agent use LAB, or write them with --yes.

    Hooks of other programs stay. The folder of the user makes the hooks valid in every project.

    Example: memlab hook install my.memlab --host codex --folder ~ --yes
    """
    path = folder / HOSTS[host][0]
    try:
        settings = json.loads(read_source(path)) if path.exists() else {}
    except (ValueError, RecursionError) as error:
        raise memlab.InputError(f"{path} is not JSON ({error}). Correct it first.") from None
    if not isinstance(settings, dict):
        raise memlab.InputError(f"{path} is not a JSON object. Correct it first.")
    line = f"memlab hook run {shlex.quote(str(lab.absolute()))}"
    settings = hook_settings(host, line, settings)
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    if not yes:
        return settings, f"{text}\n\nThis would be {path}. Write it with --yes."
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())
    return (
        settings,
        f"{path} written: {host} starts sessions with memories of {lab}, and {lab} learns from them.",
    )
