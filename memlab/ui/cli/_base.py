"""What every command shares: how its options follow from a verb, how its lab is opened, what is printed, the help."""

from __future__ import annotations

import inspect
import json
import math
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

_READ = "memlab.ui.cli: who has read standard input"
_MOST = 64 << 20
"""Bytes of a text that are read from standard input: beyond the largest memory, and no danger to this machine."""


class Text(click.ParamType[str]):
    """A text; ``-`` reads it from standard input, without the line ends after it."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != "-":
            return str(value)
        given = _standard_input(param, ctx, _MOST + 1)
        if len(given) > _MOST:
            raise InputError(
                f"Standard input has more than {_MOST >> 20} MiB. For a large file: memlab load LAB FILE."
            )
        try:
            text = given.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"Standard input is not UTF-8: {error.reason} at byte {error.start}."
            ) from None
        if not text.strip():
            raise InputError(
                "Standard input is empty: there is no text to take. Pipe a text in, or give it in quotes."
            )
        return text


class LocalPath(click.Path):
    """A path of this machine."""

    def __init__(self, **given: Any) -> None:
        super().__init__(path_type=Path, **given)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if is_url(value):
            raise InputError(
                f"{value} is a URL, and memlab keeps labs and reads files on this machine. Give a path."
            )
        return super().convert(value, param, ctx)


class InputFile(LocalPath):
    """A file to read; ``-`` is standard input, kept in a temporary file called ``standard-input`` and ``suffix``."""

    def __init__(self, suffix: str = "", *, as_text: bool = False, **given: Any) -> None:
        super().__init__(**given)
        self._suffix, self._as_text = suffix, as_text

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == "-":
            value = self._kept(param, ctx)
        path = super().convert(value, param, ctx)
        return str(path) if self._as_text else path

    def _kept(self, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        given = _standard_input(param, ctx, -1)
        if not given.strip():
            raise InputError(
                "Standard input is empty: there is nothing to read. Pipe a file in, or name one."
            )
        folder = tempfile.TemporaryDirectory(prefix="memlab-")
        if ctx is not None:
            ctx.find_root().call_on_close(folder.cleanup)
        path = Path(folder.name) / f"standard-input{self._suffix}"
        path.write_bytes(given)
        return path


def _standard_input(param: click.Parameter | None, ctx: click.Context | None, most: int) -> bytes:
    """Read standard input, which one argument of a command can do."""
    if ctx is not None:
        if _READ in ctx.meta:
            called = param.human_readable_name if param is not None else "another argument"
            raise click.UsageError(
                f"{called}: standard input was read for {ctx.meta[_READ]} already.", ctx
            )
        ctx.meta[_READ] = param.human_readable_name if param is not None else "another argument"
    return sys.stdin.buffer.read(most)


# -- help by section, in lines of at most 63 characters; former names -------------------------------------------------

SECTIONS = {
    "Start": {
        "demo": "remember, recall, explain, swap and compare in seconds, offline",
        "notebook": "open copies of the tutorials in JupyterLab",
        "view": "look at a lab in a browser, with every widget",
    },
    "Remember and recall": {
        "load": "add chats, transcripts, tables, exports, folders of them",
        "remember": "add one memory",
        "recall": "the memories that come first for a question",
        "context": "what an agent needs for a task, as text for a prompt",
        "show": "one memory with all its fields, or the newest memories",
        "feedback": "log that a memory helped, or did not",
    },
    "Correct and remove": {
        "edit": "correct a memory",
        "forget": "out of every recall: forget, delete, deprecate, quarantine",
        "restore": "bring back what was forgotten, one by one or all of it",
        "purge": "remove for good from every file, with a receipt",
    },
    "For agents": {
        "serve": "serve a lab by the Model Context Protocol",
        "agent": "extract, run, modules, attribute, metrics, switch off ...",
    },
    "Policies": {
        "policy": "check, use, install, roll back, challenge, verdict ...",
        "evaluate": "estimate how each policy would have performed on a log",
        "bench": "quality on labelled questions; where wanted ones were lost",
    },
    "Keep": {
        "graph": "link, tag, trace, similar",
        "upkeep": "maintain, consolidate, check, back up, export, join ...",
    },
}

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
"""Commands of earlier versions, and what each is now."""


def rewritten(words: list[str]) -> list[str]:
    """Return the words of a command, those of an earlier version as they are written now."""
    name, rest = words[0], words[1:]
    places = [place for place, word in enumerate(rest) if word == "-" or not word.startswith("-")]
    if name not in FORMER or (name == "restore" and not _restores_backup(rest, places)):
        return words
    if name == "deprecate" and len(places) > 2:
        reason = rest.pop(places[2])
        return ["forget", *rest, "--how", "deprecate", "--reason", reason]
    if name == "release" and len(places) > 1:
        event = rest.pop(places[1])
        return ["restore", *rest, "--quarantine", event]
    return [
        *FORMER[name].replace(" --reason REASON", "").replace(" --quarantine EVENT", "").split(),
        *rest,
    ]


def _restores_backup(words: list[str], places: list[int]) -> bool:
    """Whether these are arguments of the former ``restore LAB [BACKUP]``, and not ids of memories or options."""
    options = {word for word in words if word.startswith("-") and not word.startswith("--json")}
    return (
        bool(places)
        and not options
        and not (len(places) > 1 and all(words[one].isdecimal() for one in places[1:]))
    )


def _refusal(command: Owned) -> str | None:
    """Return why an extension's command is refused."""
    if not isinstance(command.value, click.Command):
        return f"The command {command.name} is no click.Command."
    return (
        f"The command {command.name} is one of memlab's." if command.name in main.commands else None
    )


COMMANDS: Registry[Owned] = Registry("command", kind="commands", about="doc", check=_refusal)
"""The commands that extensions declare."""


class _Sections(click.Group):
    """The group of all commands: its help lists them by what they are for, those of extensions last."""

    def invoke(self, ctx: click.Context) -> Any:
        """Turn an error of memlab's into one clear line and exit status 1."""
        try:
            return super().invoke(ctx)
        except MemlabError as error:
            say(f"memlab: {error}", err=True)
            ctx.exit(1)

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
            say(
                f"memlab {args[0]} is memlab {FORMER[args[0]]} from now on, and goes after 0.2.",
                err=True,
            )
            args = new
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()), col_max=14)
        load_installed()
        if COMMANDS:
            with formatter.section("Extensions"):
                formatter.write_dl(
                    [(name, printable(one.doc)[:63]) for name, one in COMMANDS.items()], col_max=14
                )


class Word(click.Choice[str]):
    """A choice of words in which an underscore stands for a hyphen."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(normalise_word(str(value), self.choices), param, ctx)


LAB = click.argument("lab", type=LocalPath())
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")

Told: TypeAlias = tuple[Any, object] | tuple[Any, object, int] | None
"""What a command prints: a value for ``--json``, a text (or lines, or what is shown by its repr), an exit status."""
Opener: TypeAlias = Callable[[Path, Mapping[str, Any]], memlab.Lab]
"""Opens the lab at a path; the options of the command say how."""


class _Command(click.Command):
    """A command whose parameters are made when they are asked for: the package of its verb has to be loaded."""

    def __init__(
        self, name: str, make_params: Callable[[], list[click.Parameter]], **given: Any
    ) -> None:
        super().__init__(name, **given)
        self._make_params = make_params
        del self.params

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        return self._make_params()


def command(
    group: click.Group,
    opens: Opener | None = None,
    *,
    name: str | None = None,
    verb: str = "",
    options: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., Told]], click.Command]:
    """Make a function a command of ``group`` that takes ``--json`` and prints what the function returns.

    Parameters
    ----------
    group
        The group to which the command is added.
    opens
        How the lab at the command's first argument is opened. The function gets the lab, which is then closed.
    name
        The name of the command. Default: the function's name, with hyphens.
    verb
        The call of memlab's that the command stands for, such as ``"memlab:recall"``.
    options
        Parameters of the verb that are options of the command, each with its help. Types, limits, choices and defaults
        are the verb's; so is the help, where none is given.
    """

    def decorate(function: Callable[..., Told]) -> click.Command:
        wants_json = "as_json" in inspect.signature(function).parameters
        own: list[click.Parameter] = getattr(function, "__click_params__", [])[::-1]

        def make_params() -> list[click.Parameter]:
            lab = [] if opens is None else [click.Argument(["lab"], type=LocalPath())]
            return [*lab, *own, *_options_of(verb, options), _JSON]

        def run(*, as_json: bool, **given: Any) -> None:
            if wants_json:
                given["as_json"] = as_json
            if opens is None:
                tell(function(**given), as_json=as_json)
                return
            with opens(given["lab"], given) as lab:
                tell(function(**{**given, "lab": lab}), as_json=as_json)

        called = name or function.__name__.replace("_", "-")
        made = _Command(called, make_params, callback=run, help=inspect.getdoc(function))
        group.add_command(made)
        return made

    return decorate


def _options_of(verb: str, options: Mapping[str, str]) -> list[click.Parameter]:
    if not options:
        return []
    known = describe_parameters(resolve_name(verb))
    return [_option_of(known[name], text) for name, text in options.items()]


def _option_of(parameter: Parameter, text: str) -> click.Option:
    """Return a parameter of a verb as an option."""
    names, about = (
        [f"--{parameter.name.replace('_', '-')}", parameter.name],
        text or parameter.doc or None,
    )
    if bool in parameter.types:
        return click.Option(names, is_flag=True, help=about)
    several = any(typing.get_origin(kind) is Sequence for kind in parameter.types)
    pair = next(
        (typing.get_args(kind) for kind in parameter.types if typing.get_origin(kind) is tuple), ()
    )
    return click.Option(
        names,
        type=_type_of(parameter, *pair),
        default=parameter.default,
        show_default=parameter.default not in (None, "", ()),
        multiple=several,
        nargs=len(pair) or 1,
        help=about,
    )


class _Whole(click.IntRange):
    """A whole number whose limits stand in the help; the verb refuses what lies beyond them, in its own words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.INT.convert(value, param, ctx)


class _Number(click.FloatRange):
    """A number whose limits stand in the help, as of ``_Whole``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.FLOAT.convert(value, param, ctx)


def _type_of(parameter: Parameter, *parts: Any) -> Any:
    limits, kinds = parameter.limits, (*parts, *parameter.types)
    if parameter.choices:
        return click.Choice(parameter.choices)
    if Path in kinds:
        return LocalPath()
    if str in kinds:
        return str
    number: type = int if int in kinds else float
    if limits is None:
        return number
    ends = {"min": limits.least, "max": limits.most, "min_open": limits.above}
    ends = {end: value for end, value in ends.items() if value not in (-math.inf, math.inf)}
    return _Whole(**ends) if number is int else _Number(**ends)  # type: ignore[arg-type]


def fields_of(result: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of a result as values for JSON; by keyword, those that have another name there."""
    attributes = {name: name for name in names} | renamed
    return {name: _plain(getattr(result, attribute)) for name, attribute in attributes.items()}


def _plain(value: Any) -> Any:
    """Return a frame as rows, a mapping as a dict, a tuple as a list and a time in ISO 8601."""
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


def tell(told: Told, *, as_json: bool) -> None:
    """Print what a command returned; end with its exit status."""
    if told is None:
        return
    value, text, *status = told
    if as_json:
        click.echo(json_safe(json.dumps(value, default=str, ensure_ascii=False)))
    else:
        say(
            "\n".join(text)
            if isinstance(text, list)
            else text
            if isinstance(text, str)
            else repr(text)
        )
    if status and status[0]:
        raise click.exceptions.Exit(status[0])


def say(text: str, *, err: bool = False, painted: bool = False) -> None:
    """Print for a person: nothing that a memory holds reaches the terminal as a command to it.

    A ``painted`` text has its own colours, and whoever painted it has made the rest ``printable``.
    """
    click.echo(text if painted else printable(text), err=err, color=painted or None)


def terminal_width() -> int | None:
    """Characters in a line of the terminal; None where there is none, as in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def existing(path: Path, *, read_only: bool = False) -> memlab.Lab:
    """Open a lab that is there."""
    if not path.exists():
        raise memlab.InputError(
            f"There is no lab at {path}. Make one with: memlab remember {path} TEXT"
        )
    return memlab.open(path, read_only=read_only)


# -- how a command opens its lab --------------------------------------------------------------------------------------


def make(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab, which is made if it is new."""
    return memlab.open(path)


def read(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab that is there to be read."""
    return existing(path, read_only=True)


def write(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab that is there to be written."""
    return existing(path)


def write_if(option: str, wanted: bool = True) -> Opener:
    """Open a lab to be written only where an option is given, or only where it is not ``wanted``."""
    return lambda path, options: existing(path, read_only=bool(options[option]) is not wanted)


def keep(path: Path, options: Mapping[str, Any]) -> memlab.Lab:
    """Open a lab that can list the copies made of it; a lab that cannot be written is read."""
    try:
        return existing(path)
    except memlab.errors.ReadOnlyLab:
        return existing(path, read_only=True)


# -- what commands read -----------------------------------------------------------------------------------------------


def value_of(text: str) -> Any:
    """Read a value as JSON where it is JSON, else as the text itself: ``kind=fact`` needs no quotation marks."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def read_text(path: Path) -> str:
    """Read a file as UTF-8; InputError where that fails."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text: {error.reason} at byte {error.start}."
        ) from None


def read_frame(path: Path, *, dates: bool = False) -> pl.DataFrame:
    """Read a table from a .parquet, .csv or .jsonl file; with ``dates`` times are recognised in a .csv file."""
    import polars as pl

    from memlab.io.formats import UNREADABLE

    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".parquet": pl.read_parquet,
        ".csv": partial(pl.read_csv, try_parse_dates=dates),
        ".jsonl": pl.read_ndjson,
        ".ndjson": pl.read_ndjson,
    }
    if path.suffix not in readers:
        raise InputError(f"{path} is no table: give a .parquet, .csv or .jsonl file.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.")
    try:
        return readers[path.suffix](path)
    except UNREADABLE as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix}: {str(error).splitlines()[0]}"
        ) from None


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
    """Maintain a lab: decay, checks, disk space, backups, copies, and moves into other labs."""


@main.group()
def policy() -> None:
    """Check and compare policy files, and see what a lab has used."""


@main.group()
def bench() -> None:
    """Retrieval quality and latency on labelled questions: what is found, turn by turn."""
