"""What every command shares: the group that owns the errors, ``--json``, and how a lab is opened."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import memlab
from memlab.errors import MemlabError
from memlab.kernel.base.printable import json_safe, printable
from memlab.kernel.extension import load_installed
from memlab.kernel.registry import Owned, Registry
from memlab.kernel.schema import spelled
from memlab.ui.cli._help import FORMER, SECTIONS, rewritten
from memlab.ui.cli._input import InputFile, LocalPath

__all__ = [
    "COMMANDS",
    "FILE",
    "LAB",
    "F",
    "Word",
    "agent",
    "as_json_option",
    "existing",
    "graph",
    "keeping",
    "main",
    "say",
    "taken_out",
    "tell",
    "terminal_width",
    "upkeep",
]

F = TypeVar("F", bound=Callable[..., Any])


class _Commands(click.Group):
    """A group that turns memlab's errors into one clear line and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MemlabError as error:
            say(f"memlab: {error}", err=True)
            ctx.exit(1)


def _refusal(command: Owned) -> str | None:
    """Return why an extension's command is refused."""
    if not isinstance(command.value, click.Command):
        return f"The command {command.name} is no click.Command."
    return f"The command {command.name} is one of memlab's." if command.name in main.commands else None


COMMANDS: Registry[Owned] = Registry("command", kind="commands", about="doc", check=_refusal)
"""The commands that extensions declare."""


class _Sections(_Commands):
    """The group of all commands: its help lists them by what they are for, those of extensions last."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        load_installed()
        return [*super().list_commands(ctx), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is None:
            load_installed()
            own = COMMANDS[cmd_name].value if cmd_name in COMMANDS else None
        return own

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the words name; a form of earlier versions works, and says what to write instead."""
        new = rewritten(args)
        if new != args and args[0] not in COMMANDS:
            say(f"memlab {args[0]} is memlab {FORMER[args[0]]} from now on, and goes after 0.2.", err=True)
            args = new
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=14)
        load_installed()
        if COMMANDS:
            with formatter.section("Extensions"):
                formatter.write_dl([(name, printable(one.doc)[:63]) for name, one in COMMANDS.items()], col_max=14)


def as_json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


class Word(click.Choice[str]):
    """A choice of words in which an underscore stands for a hyphen."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(spelled(str(value), self.choices), param, ctx)


LAB = click.argument("lab", type=LocalPath())


def tell(value: Any, *, as_json: bool, text: Callable[[], str] | None = None) -> None:
    if as_json:
        click.echo(json_safe(json.dumps(value, default=str, ensure_ascii=False)))
    else:
        say(text() if text is not None else str(value))


def say(text: str, *, err: bool = False, painted: bool = False) -> None:
    """Print for a person: nothing that a memory holds reaches the terminal as a command to it.

    A ``painted`` text has its own colours, and whoever painted it has made the rest ``printable``.
    """
    click.echo(text if painted else printable(text), err=err, color=painted or None)


def taken_out(memory: memlab.Memory) -> list[str]:
    """Return a line that says what was taken out of a memory before it was stored; none if nothing was."""
    return [f"taken out before it was stored: {', '.join(memory.redacted)}"] if memory.redacted else []


def terminal_width() -> int | None:
    """Characters in a line of the terminal; None where there is none, as in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def existing(path: Path, *, read_only: bool = False) -> memlab.Lab:
    if not path.exists():
        raise memlab.InputError(f"There is no lab at {path}. Make one with: memlab remember {path} TEXT")
    return memlab.open(path, read_only=read_only)


def keeping(path: Path) -> memlab.Lab:
    """A lab that can list the copies made of it; one that cannot be written is read."""
    try:
        return existing(path)
    except memlab.errors.ReadOnlyLab:
        return existing(path, read_only=True)


@click.group(cls=_Sections, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memlab.__version__, prog_name="memlab")
def main() -> None:
    """A laboratory for the long-term memory of AI agents.

    A lab is a directory; most commands take its path first. `memlab COMMAND --help` says more of each.
    """


@main.group()
def agent() -> None:
    """For agents that live on a lab: what they say, learn, touch and are credited with; their switch."""


@main.group()
def graph() -> None:
    """Edges and tags of a lab, and what is near a memory."""


@main.group()
def upkeep() -> None:
    """Keep a lab: what time does to it, checks, backups, copies, and the way into other labs."""


FILE = click.argument("file", type=InputFile(".hy", as_text=True))
