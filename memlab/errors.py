"""Every error that memlab raises on purpose, in one tree.

- MemlabError
  - InputError: an invalid argument (also a ValueError)
    - UnknownName: a kind, id, pack, slot or feature that does not exist
      - NoSuchItem: an index beyond the end of a sequence (also an IndexError)
  - PolicyError: an invalid policy; carries line, column, policy name and hash
    - PolicySyntaxError: a text that is no expression of the policy language
    - PolicyNameError: an undeclared name
    - PolicyTypeError: a form of the wrong type or shape
    - PolicyLimitError: a text that exceeds the limits of length, depth or size
  - LabError: a lab that cannot be opened or written
    - NotALab: a path to something else
    - NewerLab: a lab of a later version of memlab
    - DamagedLab: truncated, overwritten or missing files
    - ReadOnlyLab: a disk or lab that refuses writes (also a PermissionError)
    - LabBusy: a lock that another process holds (also a TimeoutError)
    - LabUnavailable: a folder, disk or server out of reach
    - MemoryOff: memory switched off, globally or for a project
    - NotPermitted: an action outside an agent's project or role (also a PermissionError)
    - EmbedderMismatch: vectors of another embedder
  - PrivacyError: a secret that cannot be redacted and must not reach the disk
  - DatasetError: a malformed benchmark or log file (also a ValueError)
  - ModelError: a failed call of a language model
    - NoAnswer: no answer: unreachable, refused, too late or too long
    - BadAnswer: an answer of the wrong form
    - OverBudget: a call beyond the allowed calls or tokens
  - ExtensionError: a function of an extension that failed
    - MissingExtension: an extension that is needed and not registered
  - WorkerLost: an executor that did not return the result of a task
  - MissingExtra: an optional dependency that is not installed or is damaged (also an ImportError)
  - UnsupportedSystem: an operating system on which memlab does not run (also an ImportError)

There are five warnings as well:

- DamageWarning: memlab reports or repairs damage and continues.
- RedactionWarning: a secret was removed from a text before it was stored.
- RankingWarning: a new pack ranks the memories differently than its predecessor.
- ExtensionWarning: an extension was skipped, is slow, or has another version than the logged one.
- RenamedWarning: a former name was used.

Every message says what is wrong, where, and the nearest valid value or the next step.
"""

from __future__ import annotations

import difflib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from memlab.kernel.base.printable import printable
from memlab.kernel.version import __version__

__all__ = [
    "BadAnswer",
    "DamageWarning",
    "DamagedLab",
    "DatasetError",
    "EmbedderMismatch",
    "ExtensionError",
    "ExtensionWarning",
    "InputError",
    "LabBusy",
    "LabError",
    "LabUnavailable",
    "MemlabError",
    "MemoryOff",
    "MissingExtension",
    "MissingExtra",
    "ModelError",
    "NewerLab",
    "NoAnswer",
    "NoSuchItem",
    "NotALab",
    "NotPermitted",
    "OverBudget",
    "PolicyError",
    "PolicyLimitError",
    "PolicyNameError",
    "PolicySyntaxError",
    "PolicyTypeError",
    "PrivacyError",
    "RankingWarning",
    "ReadOnlyLab",
    "RedactionWarning",
    "RenamedWarning",
    "UnknownName",
    "UnsupportedSystem",
    "WorkerLost",
]


def did_you_mean(name: str, known: Iterable[str], *, most: int = 12) -> str:
    """Return a sentence that suggests the nearest known names.

    Parameters
    ----------
    name
        The name that was not recognised.
    known
        The valid names.
    most
        Maximum number of names to list if none is similar.

    Returns
    -------
    str
        "Did you mean ...?" with up to three similar names, otherwise a list of the known names.

    Examples
    --------
    >>> did_you_mean("recencey", ["recency", "similarity"])
    'Did you mean recency?'
    """
    options = sorted(set(known))
    near = difflib.get_close_matches(name, options, n=3, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if not options:
        return "There are none yet."
    listed = ", ".join(options[:most])
    return f"Known: {listed}{', ...' if len(options) > most else ''}."


def missing_name(module: str, name: str, removed: Mapping[str, str]) -> AttributeError:
    """Build the error for a name that a module does not have.

    Parameters
    ----------
    module
        Name of the module.
    name
        The name that was requested.
    removed
        Replacement of each removed name.

    Returns
    -------
    AttributeError
        An error that names the replacement if the name was removed.

    Examples
    --------
    >>> str(missing_name("memlab", "audit", {"audit": "lab.edges"}))
    'memlab.audit was removed; instead: lab.edges.'
    """
    if name in removed:
        return AttributeError(f"{module}.{name} was removed; instead: {removed[name]}.")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


# Frames of files below this folder are hidden from tracebacks in notebooks.
_PACKAGE = str(Path(__file__).parent)


class MemlabError(Exception):
    """Base class of all errors that memlab raises on purpose.

    ``except memlab.MemlabError`` catches every one of them.
    """

    def __str__(self) -> str:
        return printable(super().__str__())

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))

    def _render_traceback_(self) -> list[str]:
        """Return the traceback for IPython with the caller's frames, without memlab's own frames.

        ``%debug`` and plain Python still show all frames.
        """
        from IPython.core.getipython import get_ipython

        frames, chain = [], None
        trace = self.__traceback__
        while trace is not None:
            if not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
                frames.append(trace)
            trace = trace.tb_next
        for frame in reversed(frames):
            chain = TracebackType(chain, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        shell = get_ipython()
        assert shell is not None  # Only IPython calls this method.
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, chain)
        return lines


class InputError(MemlabError, ValueError):
    """An argument that the call does not accept."""


# Ends a message about an id that does not exist.
_NO_GUESS = "Use an id that the lab returned: ids are not guessed."


class UnknownName(InputError, LookupError):
    """A name or id that does not exist in the lab or in memlab.

    Parameters
    ----------
    what
        Type of the named thing, such as "pack".
    name
        The name that was not recognised.
    known
        Valid names, from which the message suggests the nearest. None, or a number as ``name``: the name
        is an id, and a suggested one would only make a program use the wrong memory or recall.
    where
        Beginning of the message, such as "Row 3: ".

    Examples
    --------
    >>> UnknownName("pack", "associatve", ["associative", "cascade"])
    UnknownName('There is no pack "associatve". Did you mean associative?')
    """

    def __init__(
        self, what: str, name: object, known: Iterable[str] | None = (), *, where: str = ""
    ) -> None:
        self.what, self.name = what, name
        is_id = known is None or isinstance(name, int)
        # a text of megabytes in the place of a name is not repeated in the message
        label = str(name) if len(str(name)) <= 200 else f"{str(name)[:200]}..."
        hint = _NO_GUESS if is_id else did_you_mean(label, known or ())
        super().__init__(f'{where}There is no {what} "{label}". {hint}')


class NoSuchItem(UnknownName, IndexError):
    """An index beyond the end of a sequence.

    Parameters
    ----------
    what
        Type of the item, such as "hit".
    index
        The index.
    known
        The range of valid indices, as a text.
    """

    def __init__(self, what: str, index: object, known: Iterable[str] = ()) -> None:
        # the valid indices are a range, so they suggest no item
        super().__init__(what, str(index), known)
        self.name = index


# Maximum length of a message: a name in an untrusted text may be as long as the text.
_MAX_MESSAGE = 600


class PolicyError(MemlabError):
    """An invalid policy. The message shows the line, with a caret below the form.

    Parameters
    ----------
    message
        Description of the fault.
    source
        Text of the policy.
    line, column
        Position of the form, both counted from 1.
    end_column
        Column after the end of the form.
    policy
        Name of the policy.
    hash
        Source hash of the policy.
    file
        File of the policy.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        column: int | None = None,
        end_column: int | None = None,
        policy: str | None = None,
        hash: str | None = None,
        file: str | None = None,
    ) -> None:
        message = message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 4]} ..."
        self.message = message
        self.source, self.line, self.column, self.end_column = source, line, column, end_column
        self.policy, self.hash, self.file = policy, hash, file
        super().__init__(message)

    def __str__(self) -> str:
        where = self.file or "policy"
        if self.policy:
            where += f" {self.policy}" if not self.file else f", {self.policy}"
        if self.hash:
            where += f" [{self.hash[:12]}]"
        if self.line is None:
            return printable(f"{where}: {self.message}")
        where += f", line {self.line}, column {self.column}"
        lines = (self.source or "").split("\n")
        if not 1 <= self.line <= len(lines):
            return printable(f"{where}: {self.message}")
        text = lines[self.line - 1]
        start = max(0, (self.column or 1) - 1)
        stop = self.end_column if self.end_column and self.end_column > start else start + 1
        window = max(0, start - 60)
        caret = " " * (start - window) + "^" * max(1, min(stop, len(text)) - start)
        return printable(
            f"{where}: {self.message}\n  {text[window : window + 120]}\n  {caret[:120]}"
        )


class PolicySyntaxError(PolicyError):
    """A text that is no readable S-expression of the policy language."""


class PolicyNameError(PolicyError):
    """An undeclared feature, function, slot or parameter in a policy."""


class PolicyTypeError(PolicyError):
    """A form of the wrong type or shape, or with the wrong number of arguments."""


class PolicyLimitError(PolicyError):
    """A policy that exceeds the limits of length, depth or size."""


class LabError(MemlabError):
    """A lab that cannot be opened or written."""


class NotALab(LabError):
    """A path that exists and is not a lab."""


class NewerLab(LabError):
    """A lab written by a later version of memlab."""

    @classmethod
    def of_format(
        cls, what: str, number: int, known: int, *, written_by: str = "", noun: str = "format"
    ) -> NewerLab:
        """Build the error for data in a format newer than this version of memlab supports.

        Parameters
        ----------
        what
            Description of the file or lab; it begins the message.
        number
            Format of the file or lab.
        known
            Newest format that this version reads.
        written_by
            Version of memlab that wrote it, if known.
        noun
            Name of the numbered thing, such as "format".

        Returns
        -------
        NewerLab
            The error, to be raised by the caller.
        """
        by = f"memlab {written_by}" if written_by else "a later memlab"
        return cls(
            f"{what} has {noun} {number}, written by {by}. This is memlab {__version__}, which reads {noun}s up to "
            f"{known}. Upgrade memlab."
        )

    @classmethod
    def of_word(cls, what: str) -> NewerLab:
        """Build the error for an event kind or keyword that only a newer version knows.

        Parameters
        ----------
        what
            Clause that names the unknown word; it begins the message.

        Returns
        -------
        NewerLab
            The error, to be raised by the caller.
        """
        return cls(
            f"{what}, which memlab {__version__} does not know: a later memlab wrote it. Upgrade memlab."
        )


class DamagedLab(LabError):
    """Truncated, overwritten or missing files of a lab."""


class DamageWarning(UserWarning):
    """Damage that memlab works around, such as a file rebuilt from the journal."""


class ExplorationWarning(UserWarning):
    """Plain recalls of an old lab that still explore, until its owner decides."""


class RankingWarning(UserWarning):
    """A new pack that ranks the memories of this lab differently than its predecessor."""


class RedactionWarning(UserWarning):
    """A secret or personal identifier that was removed before a text was stored."""


class RenamedWarning(DeprecationWarning):
    """A former name, which works throughout 0.2. The message gives the new name."""


class ReadOnlyLab(LabError, PermissionError):
    """A disk, or a lab opened for reading, that refuses writes."""


class LabBusy(LabError, TimeoutError):
    """A lock for writing that another process held for longer than the timeout."""


class LabUnavailable(LabError):
    """A folder, disk or server of a lab that cannot be reached; nothing was written.

    An agent can continue without memory: the next call tries again and succeeds once the lab is back.

    Attributes
    ----------
    sent
        True if a server may have executed the request, because the failure came after it was sent. False if nothing
        was written.
    """

    sent: bool = False

    @classmethod
    def at(cls, path: Path | str, why: str) -> LabUnavailable:
        """Build the error for a lab whose folder cannot be reached.

        Parameters
        ----------
        path
            Folder of the lab.
        why
            Reason given by the operating system.

        Returns
        -------
        LabUnavailable
            The error, to be raised by the caller.
        """
        remedy = (
            "Close other labs, or raise the limit (ulimit -n)"
            if why == os.strerror(errno.EMFILE)
            else "Continue without memory and restore the disk or folder"
        )
        return cls(
            f"Memory is unavailable: {path} is out of reach ({why}). Nothing was written, there or elsewhere. "
            f"{remedy}: the next call tries again."
        )

    @classmethod
    def behind(cls, url: str, why: str, *, sent: bool) -> LabUnavailable:
        """Build the error for a lab whose server does not answer.

        Parameters
        ----------
        url
            Address of the server.
        why
            Reason of the failure.
        sent
            True if the server may have executed the request.

        Returns
        -------
        LabUnavailable
            The error, to be raised by the caller.
        """
        written = (
            "It may have executed the request, which is not sent again; nothing was written elsewhere."
            if sent
            else "Nothing was written, there or elsewhere."
        )
        error = cls(
            f"Memory is unavailable: the lab behind {url} does not answer ({why.rstrip('.')}). {written} Continue without "
            "memory and check the server: the next call tries again."
        )
        error.sent = sent
        return error


class MemoryOff(LabError):
    """A call that is refused because memory is off, globally or for the project."""


class NotPermitted(LabError, PermissionError):
    """An action that the role or the project of the caller does not allow."""


class WrongKey(LabError):
    """A key of an encrypted lab that is missing or wrong; nothing was read or changed."""


class EmbedderMismatch(LabError):
    """A lab with vectors of another embedder than the one it was opened with."""


class PrivacyError(MemlabError):
    """A secret that cannot be redacted in its place, so nothing was stored."""


class DatasetError(MemlabError, ValueError):
    """A malformed benchmark or log file. The message names the position in the file."""


class ModelError(MemlabError):
    """A call of a language model without a usable result."""


class NoAnswer(ModelError):
    """A model server that is down, refuses, answers too late or sends too much."""


class BadAnswer(ModelError):
    """An answer of a language model that does not have the requested form."""


class OverBudget(ModelError):
    """A call of a language model that might exceed the allowed calls or tokens."""


class ExtensionError(MemlabError):
    """A function of an extension that raised or returned unusable values."""


class MissingExtension(ExtensionError):
    """An extension, or a version of it, that is needed and not registered."""


class ExtensionWarning(UserWarning):
    """An extension that was not loaded, is slow, or differs from the logged version."""


class WorkerLost(MemlabError):
    """An executor that did not return the result of a task.

    A worker ended, or a task or its result could not be sent.
    """


class MissingExtra(MemlabError, ImportError):
    """A missing or damaged optional dependency. The message gives the pip command.

    Parameters
    ----------
    feature
        The feature that was requested.
    package
        The missing package.
    extra
        The extra of memlab-core that installs the package.
    fault
        The error of a package that is installed and cannot be imported; None if the package is missing.
    """

    def __init__(
        self, feature: str, package: str, extra: str, fault: Exception | None = None
    ) -> None:
        state, option = "", ""
        if fault is not None:
            state = f", which is installed but cannot be imported ({type(fault).__name__}: {fault})"
            option = "--force-reinstall "
        super().__init__(
            f"{feature} needs {package}{state}. Install it with: pip install {option}'memlab-core[{extra}]'"
        )


class UnsupportedSystem(MemlabError, ImportError):
    """An operating system on which memlab does not run."""


@contextmanager
def require_extra(extra: str, feature: str) -> Iterator[None]:
    """Turn a failed import of an optional package into an error that names the extra.

    Parameters
    ----------
    extra
        The extra of memlab-core that installs the packages: "plots", "science", "widgets", "models", "minilm", "annoy",
        "simd", "mcp", "opentelemetry" or "secure".
    feature
        The feature that needs the packages, as the subject of a sentence.

    Raises
    ------
    MissingExtra
        If an import fails, because a package is missing or because its installation is incomplete.

    Examples
    --------
    >>> from memlab.errors import require_extra
    >>> with require_extra("science", "A search for weights"):
    ...     from scipy.optimize import differential_evolution
    """
    try:
        yield
    except MissingExtra:
        raise
    except Exception as error:  # The code of an incomplete package may raise anything.
        name = (error.name if isinstance(error, ImportError) else None) or f"the extra {extra}"
        package = name.partition(".")[0]
        # A package is missing only if the failed name is its own: `matplotlib`, not `matplotlib.figure`.
        missing = isinstance(error, ModuleNotFoundError) and name == package
        raise MissingExtra(feature, package, extra, None if missing else error) from error


def _rebuild(
    cls: type[MemlabError], args: tuple[object, ...], state: dict[str, object]
) -> MemlabError:
    """Rebuild a pickled exception without calling its constructor."""
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error
