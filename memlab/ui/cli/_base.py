"""Shared parts of all commands: options from verbs, opening labs, output, help."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import shutil
import sys
import tempfile
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import click

import memlab
from memlab.errors import InputError, MemlabError
from memlab.kernel.base.arguments import Parameter, describe_parameters
from memlab.kernel.base.disk import is_url
from memlab.kernel.base.printable import json_safe, printable
from memlab.kernel.extension import load_installed
from memlab.kernel.registry import Owned, Registry
from memlab.kernel.schema import normalise_word

if TYPE_CHECKING:
    import polars as pl

# -- texts and files as arguments -------------------------------------------------------------------------------------

# Key of the context under which the argument that read standard input is recorded.
_READER = "memlab.ui.cli: reader of standard input"
_MAX_TEXT_BYTES = 64 << 20
"""Maximum bytes of a text from standard input: more than the largest memory, and little for any machine."""


if TYPE_CHECKING:
    TextType = click.ParamType[str]
else:
    TextType = click.ParamType  # generic since click 8.4


class Text(TextType):
    """A text argument; ``-`` reads standard input, without its final line ends."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, or the text of standard input for ``-``."""
        if value != "-":
            return str(value)
        data = _read_standard_input(param, ctx, _MAX_TEXT_BYTES + 1)
        if len(data) > _MAX_TEXT_BYTES:
            raise InputError(
                f"Standard input has more than {_MAX_TEXT_BYTES >> 20} MiB. Load a large file with: memlab load LAB FILE."
            )
        try:
            text = data.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"Standard input is not UTF-8: {error.reason} at byte {error.start}."
            ) from None
        if not text.strip():
            raise InputError("Standard input is empty. Pipe a text in, or give it in quotes.")
        return text


MODEL_KEY = "MEMLAB_MODEL_KEY"
"""Environment variable of a model's key, which a command line would reveal to other users."""


class LocalPath(click.Path):
    """An argument of the command line with a path on this machine."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path unchanged, or raise InputError for a URL."""
        if is_url(value):
            raise InputError(
                f"{value} is a URL, but memlab uses files on this machine only. Give a path."
            )
        return super().convert(value, param, ctx)


class InputFile(LocalPath):
    """An argument of the command line that names a file; ``-`` is standard input.

    Standard input is copied to a temporary file named ``standard-input`` with ``suffix``.
    """

    def __init__(self, suffix: str = "", *, as_text: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._suffix, self._as_text = suffix, as_text

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a file's path, or the path of a copy of standard input."""
        if str(value) == "-":
            value = self._copy_standard_input(param, ctx)
        path = super().convert(value, param, ctx)
        return str(path) if self._as_text else path

    def _copy_standard_input(
        self, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Copy standard input to a temporary file, and return its path."""
        data = _read_standard_input(param, ctx, -1)
        if not data.strip():
            raise InputError("Standard input is empty. Pipe a file in, or name one.")
        folder = tempfile.TemporaryDirectory(prefix="memlab-")
        if ctx is not None:
            ctx.find_root().call_on_close(folder.cleanup)
        path = Path(folder.name) / f"standard-input{self._suffix}"
        path.write_bytes(data)
        return path


def _read_standard_input(
    param: click.Parameter | None, ctx: click.Context | None, size: int
) -> bytes:
    """Read standard input; refuse a second argument that would also read from it."""
    if ctx is not None:
        if _READER in ctx.meta:
            name = param.human_readable_name if param is not None else "another argument"
            raise click.UsageError(
                f"{name}: standard input is already used for {ctx.meta[_READER]}.", ctx
            )
        ctx.meta[_READER] = param.human_readable_name if param is not None else "another argument"
    return sys.stdin.buffer.read(size)


# -- help by section; former names -----------------------------------------------------------------------------------

# At most 63 characters each, so that the help fits 80 columns.
SECTIONS = {
    "Start": {
        "demo": "see the main steps on a bundled conversation, offline",
        "notebook": "open copies of the tutorials in JupyterLab",
        "repl": "open Hy on a lab, to build policies as data",
        "try": "open a sample or your own data in a browser",
        "view": "show a lab in a browser, with all widgets",
    },
    "Remember and recall": {
        "load": "add chats, transcripts, tables, exports or folders",
        "remember": "store a text as a memory",
        "recall": "show the memories that rank highest for a query",
        "context": "build a prompt context for a task",
        "show": "show a memory with all fields, or the newest memories",
        "feedback": "record whether a memory was helpful",
    },
    "Correct and remove": {
        "edit": "correct a memory",
        "forget": "forget, delete, deprecate or quarantine memories",
        "restore": "restore forgotten, deleted or quarantined memories",
        "purge": "remove memories permanently, with a receipt",
    },
    "For agents": {
        "serve": "serve a lab over the Model Context Protocol",
        "agent": "extract, run, modules, attribute, metrics, switch off ...",
        "hook": "give Claude Code and Codex a memory that learns from work",
    },
    "Policies": {
        "policy": "check, use, install, roll back, challenge, verdict ...",
        "pack": "publish a pack with its evidence, pull a published pack",
        "evaluate": "estimate how each policy would have performed on a log",
        "evolve": "search for a better policy on a lab's questions or log",
        "bench": "measure retrieval quality on labelled questions",
        "experiment": "measure policies on data once, compare, report",
    },
    "Keep": {
        "graph": "link, tag, trace, similar",
        "audit-log": "show which client of a served lab called what",
        "upkeep": "maintain, consolidate, check, back up, export, join ...",
    },
}

# Commands that were at the top level in version 0.1, by their group now.
_GROUPS = {
    "agent": "attribute extract metrics modules run scan switch-off switch-on touch",
    "bench": "failures",
    "graph": "link similar tag trace",
    "policy": "adapt challenge packs plan use verdict",
    "upkeep": "backup check consolidate export join maintain mirror move restore stats",
}

FORMER = {name: f"{group} {name}" for group, names in _GROUPS.items() for name in names.split()} | {
    "delete": "forget --how delete",
    "deprecate": "forget --how deprecate --reason REASON",
    "list": "show",
    "quarantine": "forget --how quarantine",
    "release": "restore --quarantine EVENT",
    "unconsolidate": "restore",
    "undelete": "restore",
}
"""Commands of version 0.1, and what replaces each."""


def replace_former_command(words: list[str]) -> list[str]:
    """Replace a command's former name in a command line."""
    name, rest = words[0], words[1:]
    positions = [
        position for position, word in enumerate(rest) if word == "-" or not word.startswith("-")
    ]
    if name not in FORMER or (name == "restore" and not _restores_backup(rest, positions)):
        return words
    if name == "deprecate" and len(positions) > 2:
        reason = rest.pop(positions[2])
        return ["forget", *rest, "--how", "deprecate", "--reason", reason]
    if name == "release" and len(positions) > 1:
        event = rest.pop(positions[1])
        return ["restore", *rest, "--quarantine", event]
    return [
        *FORMER[name].replace(" --reason REASON", "").replace(" --quarantine EVENT", "").split(),
        *rest,
    ]


def _restores_backup(words: list[str], positions: list[int]) -> bool:
    """Return whether the arguments are those of the former ``restore LAB [BACKUP]``."""
    options = {word for word in words if word.startswith("-") and not word.startswith("--json")}
    return (
        bool(positions)
        and not options
        and not (
            len(positions) > 1 and all(words[position].isdecimal() for position in positions[1:])
        )
    )


def _find_fault(command: Owned) -> str | None:
    """Return why an extension's command is refused, or None if the command is valid."""
    if not isinstance(command.value, click.Command):
        return f"The command {command.name} is not a click.Command."
    return (
        f"The command {command.name} already exists in memlab."
        if command.name in main.commands
        else None
    )


COMMANDS: Registry[Owned] = Registry("command", kind="commands", about="doc", check=_find_fault)
"""The commands of extensions."""


# Calls of verbs in messages, and the groups of commands for the accessors of verbs.
_ACCESSORS = {"policies": "policy", "agents": "agent", "upkeep": "upkeep"}
_CALL = re.compile(r"\b(?:mem)?lab\.(?:(policies|agents|upkeep)\.)?([a-z_]+)\b")


class _Sections(click.Group):
    """Group of all commands; its help lists them by section, extensions last."""

    def invoke(self, ctx: click.Context) -> Any:
        """Print an error of memlab as one line, and exit with status 1."""
        try:
            return super().invoke(ctx)
        except MemlabError as error:
            say(f"memlab: {error}{self._name_commands(str(error))}", err=True)
            ctx.exit(1)

    def _name_commands(self, text: str) -> str:
        """Return the commands of the verbs that a message names as calls of Python."""
        commands: dict[str, None] = {}
        for accessor, verb in _CALL.findall(text):
            name, group = verb.replace("_", "-"), _ACCESSORS.get(accessor, "")
            if name in getattr(self.commands.get(group, self), "commands", ()):
                commands[f"memlab {group} {name}".replace("  ", " ")] = None
        return f" At the command line: {', '.join(commands)}." if commands else ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, including extensions."""
        load_installed()
        return [*super().list_commands(ctx), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called ``cmd_name``, or None if there is no such command."""
        own = super().get_command(ctx, cmd_name)
        if own is None:
            load_installed()
            own = COMMANDS[cmd_name].value if cmd_name in COMMANDS else None
        return own

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by name, and print a notice for a former name."""
        new = replace_former_command(args)
        if new != args and args[0] not in COMMANDS:
            say(
                f"memlab {args[0]} is now memlab {FORMER[args[0]]}; the former name will be removed after 0.2.",
                err=True,
            )
            args = new
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands to the help text, by section."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=14)
        load_installed()
        if COMMANDS:
            with formatter.section("Extensions"):
                formatter.write_dl(
                    [(name, printable(entry.doc)[:63]) for name, entry in COMMANDS.items()],
                    col_max=14,
                )


class Word(click.Choice[str]):
    """A choice of words in which underscores equal hyphens."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice, spelled with hyphens."""
        return super().convert(normalise_word(str(value), self.choices), param, ctx)


# Arguments and options of several commands.
LAB = click.argument("lab", type=LocalPath())
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")

Report: TypeAlias = tuple[Any, object] | tuple[Any, object, int] | None
"""Output of a command: a value for ``--json``, a text (lines, or an object with a repr), an exit status."""
Opener: TypeAlias = Callable[[Path, Mapping[str, Any]], memlab.Lab]
"""Function that opens the lab at a path, with the options of the command."""


class _Command(click.Command):
    """A command that builds its parameters when they are first needed.

    Describing the parameters of a verb imports its package, which would slow down every other command.
    """

    def __init__(
        self, name: str, make_params: Callable[[], list[click.Parameter]], **options: Any
    ) -> None:
        super().__init__(name, **options)
        self._make_params = make_params
        del self.params

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        """The parameters of the command."""
        return self._make_params()


def command(
    group: click.Group,
    opens: Opener | None = None,
    *,
    name: str | None = None,
    verb: str = "",
    options: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., Report]], click.Command]:
    """Return a decorator that makes a function a command of ``group``.

    The command has the option ``--json`` and prints what the function returns.

    Parameters
    ----------
    group
        Group to which the command is added.
    opens
        Function that opens the lab at the command's first argument. The function of the command receives the lab, which
        is closed afterwards.
    name
        Name of the command. Default: the function's name, with hyphens.
    verb
        The verb that the command calls, such as ``"memlab:recall"``.
    options
        Parameters of the verb that are options of the command, with their help. An empty help is replaced by the verb's
        documentation; types, limits, choices and defaults come from the verb.

    Returns
    -------
    Callable
        The decorator.
    """

    def decorate(function: Callable[..., Report]) -> click.Command:
        """Turn a function into a command, add it to the group, and return the command."""
        wants_json = "as_json" in inspect.signature(function).parameters
        declared: list[click.Parameter] = getattr(function, "__click_params__", [])[::-1]

        def make_params() -> list[click.Parameter]:
            """Return the parameters of the command, in the order of the help text."""
            lab = [] if opens is None else [click.Argument(["lab"], type=LocalPath())]
            return [*lab, *declared, *_build_options(verb, options), _JSON]

        def run(*, as_json: bool, **arguments: Any) -> None:
            """Open the lab, call the function and print its result."""
            if wants_json:
                arguments["as_json"] = as_json
            if opens is None:
                print_report(function(**arguments), as_json=as_json)
                return
            with opens(arguments["lab"], arguments) as lab:
                print_report(function(**{**arguments, "lab": lab}), as_json=as_json)

        command_name = name or function.__name__.replace("_", "-")
        # "\b" keeps click from breaking the line of an example
        text = (inspect.getdoc(function) or "").replace("\n\nExample:", "\n\n\b\nExample:")
        built = _Command(command_name, make_params, callback=run, help=text)
        group.add_command(built)
        return built

    return decorate


def _build_options(verb: str, options: Mapping[str, str]) -> list[click.Parameter]:
    """Build the command-line options for some parameters of a verb."""
    if not options:
        return []
    parameters = describe_parameters(resolve_name(verb))
    return [_build_option(parameters[name], text) for name, text in options.items()]


def _build_option(parameter: Parameter, text: str) -> click.Option:
    """Build the command-line option for one parameter of a verb."""
    names, help_text = (
        [f"--{parameter.name.replace('_', '-')}", parameter.name],
        text or parameter.doc or None,
    )
    if bool in parameter.types:
        return click.Option(names, is_flag=True, help=help_text)
    several = any(typing.get_origin(kind) is Sequence for kind in parameter.types)
    pair = next(
        (typing.get_args(kind) for kind in parameter.types if typing.get_origin(kind) is tuple), ()
    )
    return click.Option(
        names,
        type=_choose_type(parameter, *pair),
        default=parameter.default,
        show_default=parameter.default not in (None, "", ()),
        multiple=several,
        nargs=len(pair) or 1,
        help=help_text,
    )


# The help shows the limits of a number; the verb itself refuses other values, so that its message is that of Python.
class _Whole(click.IntRange):
    """An integer whose limits are shown in the help."""

    convert = staticmethod(click.INT.convert)


class _Number(click.FloatRange):
    """A number whose limits are shown in the help."""

    convert = staticmethod(click.FLOAT.convert)


class _WholeOrWord(click.ParamType[Any]):
    """An integer or a word, which the verb itself checks, so that its message is the same."""

    name = "integer or word"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert an integer in text form; keep other texts."""
        return int(value) if str(value).lstrip("-").isdecimal() else value


def _choose_type(parameter: Parameter, *parts: Any) -> Any:
    """Return the type of click for a parameter of a verb."""
    limits, kinds = parameter.limits, (*parts, *parameter.types)
    if parameter.choices:
        return _WholeOrWord() if int in kinds else click.Choice(parameter.choices)
    if Path in kinds:
        return LocalPath()
    if str in kinds:
        return str
    number: type = int if int in kinds else float
    if limits is None:
        return number
    ends = {"min": limits.lower, "max": limits.upper, "min_open": limits.above}
    ends = {end: value for end, value in ends.items() if value not in (-math.inf, math.inf)}
    return _Whole(**ends) if number is int else _Number(**ends)  # type: ignore[arg-type]


def get_fields(result: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return selected attributes of a result as JSON values.

    Keyword arguments give the name in JSON and the attribute.
    """
    attributes = {name: name for name in names} | renamed
    return {
        name: _convert_value(getattr(result, attribute)) for name, attribute in attributes.items()
    }


def _convert_value(value: Any) -> Any:
    """Convert a value to JSON types, such as a frame to rows and a time to ISO 8601."""
    if hasattr(value, "to_dicts"):
        return value.to_dicts()
    if isinstance(value, datetime):
        return value.isoformat()
    return (
        dict(value)
        if isinstance(value, Mapping)
        else list(value)
        if isinstance(value, tuple)
        else value
    )


def print_report(report: Report, *, as_json: bool) -> None:
    """Print the result of a command, and exit with its status."""
    if report is None:
        return
    value, text, *status = report
    if as_json:
        click.echo(json_safe(json.dumps(value, default=str, ensure_ascii=False)))
    else:
        text = "\n".join(text) if isinstance(text, list) else text
        say(text if isinstance(text, str) else repr(text))
    if status and status[0]:
        raise click.exceptions.Exit(status[0])


def say(text: str, *, err: bool = False, painted: bool = False) -> None:
    """Print a text without control characters.

    A ``painted`` text contains colours; its parts must be printable already.
    """
    click.echo(text if painted else printable(text), err=err, color=painted or None)


def terminal_width() -> int | None:
    """Return the width of the terminal in characters, or None if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def open_existing(path: Path, *, read_only: bool = False) -> memlab.Lab:
    """Open an existing lab, or raise InputError if the lab does not exist."""
    if not path.exists():
        raise memlab.InputError(
            f"There is no lab at {path}. Create one with: memlab remember {path} TEXT"
        )
    return memlab.open(path, read_only=read_only)


# -- how a command opens its lab --------------------------------------------------------------------------------------


def make(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab, creating it if it does not exist."""
    return memlab.open(path)


def read(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open an existing lab for reading."""
    return open_existing(path, read_only=True)


def write(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open an existing lab for writing."""
    return open_existing(path)


def write_if(option: str, value: bool = True) -> Opener:
    """Return an opener that opens a lab for writing only if an option has this value."""
    return lambda path, options: open_existing(path, read_only=bool(options[option]) is not value)


def keep(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open an existing lab; open it read-only if it cannot be written."""
    try:
        return open_existing(path)
    except memlab.errors.ReadOnlyLab:
        return open_existing(path, read_only=True)


# -- values and files -------------------------------------------------------------------------------------------------


def parse_value(text: str) -> Any:
    """Parse a value as JSON; return invalid JSON as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def read_frame(path: Path, *, dates: bool = False) -> pl.DataFrame:
    """Return the table in a .parquet, .csv or .jsonl file.

    ``dates`` parses times in a .csv file.
    """
    import polars as pl

    from memlab.io.formats import UNREADABLE, check_table, scan_parquet

    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".parquet": lambda path: scan_parquet(path).collect(),
        ".csv": partial(pl.read_csv, try_parse_dates=dates),
        ".jsonl": pl.read_ndjson,
        ".ndjson": pl.read_ndjson,
    }
    if path.suffix not in readers:
        raise InputError(f"{path} is not a table. Give a .parquet, .csv or .jsonl file.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    if path.suffix != ".parquet":
        check_table(path)
    try:
        return readers[path.suffix](path)
    except (*UNREADABLE, MemoryError) as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix}: {str(error)[:1_000].partition(chr(10))[0]}"
        ) from None


@click.group(cls=_Sections, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memlab.__version__, prog_name="memlab")
@click.option(
    "--key-file",
    type=LocalPath(),
    help="File with the key of encrypted and new labs. Default: the variable MEMLAB_KEY.",
)
def main(key_file: Path | None) -> None:
    """Run a laboratory for the long-term memory of AI agents.

    A lab is a directory; most commands take its path first. `memlab COMMAND --help` describes a command.

    Example: memlab recall my.memlab "Where does Ada live?"
    """
    if key_file is not None:
        os.environ["MEMLAB_KEY"] = read_key(key_file)


def read_key(path: Path) -> str:
    """Return the key in a file; only the file's owner may have access."""
    try:
        with path.open(encoding="utf-8") as file:
            readable = os.fstat(file.fileno()).st_mode & 0o077
            key = file.read(_MAX_TEXT_BYTES).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The key file {path} cannot be read: {error}") from None
    if readable:
        raise InputError(f"Other users may read the key file {path}. Run: chmod 600 {path}")
    if not key:
        raise InputError(f"The key file {path} is empty. Write a long passphrase into it.")
    return key


@main.group()
def agent() -> None:
    """Extract facts, run programs, map code, and switch memory on or off."""


@main.group()
def hook() -> None:
    """Connect a lab to the hooks of Claude Code and Codex."""


@main.group()
def graph() -> None:
    """Link, tag and trace memories, and find similar ones."""


@main.group()
def upkeep() -> None:
    """Maintain, check, back up, export and join labs."""


@main.group()
def policy() -> None:
    """Check, compare, install and evaluate policies."""


@main.group(name="pack")
def publishing() -> None:
    """Publish packs with their evidence, and pull published packs."""


@main.group()
def bench() -> None:
    """Measure retrieval quality and latency on labelled questions."""
