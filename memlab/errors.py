"""Every error that memlab raises on purpose, in one tree.

    MemlabError
    ├── InputError            a value that a caller passed                 (also a ValueError)
    │   └── UnknownName       a kind, id, pack, slot, feature ... that does not exist
    │       └── NoSuchItem        a place beyond the end of a sequence             (also an IndexError)
    ├── PolicyError           a policy's source; carries line, column, policy name and hash
    │   ├── PolicySyntaxError     it cannot be read
    │   ├── PolicyNameError       a name that nothing declares
    │   ├── PolicyTypeError       a form of the wrong type or shape
    │   └── PolicyLimitError      longer, deeper or larger than the limits allow
    ├── LabError              a lab on disk
    │   ├── NotALab               the path holds something else
    │   ├── NewerLab              written by a later version of memlab
    │   ├── DamagedLab            truncated or overwritten files
    │   ├── ReadOnlyLab           the disk or the lab refuses writes      (also a PermissionError)
    │   ├── LabBusy               another process holds the writer's lock (also a TimeoutError)
    │   ├── LabUnavailable        the folder, the disk or the server of the lab is out of reach
    │   ├── MemoryOff             memory is switched off, for all or for a project
    │   ├── NotPermitted          outside an agent's project or the role of a connection (also a PermissionError)
    │   └── EmbedderMismatch      vectors of another embedder
    ├── PrivacyError          text that must not reach the disk
    ├── DatasetError          a malformed benchmark or log file            (also a ValueError)
    ├── ModelError            a language model that was asked
    │   ├── NoAnswer              nobody listens, too late, too long, refused
    │   ├── BadAnswer             an answer that is not what was asked for
    │   └── OverBudget            more calls or tokens than its caller allowed
    ├── ExtensionError        an extension's function that failed, or returned what it may not
    │   └── MissingExtension      an extension that a pack, a log or a lab was written with
    └── MissingExtra          an optional dependency that is not installed (also an ImportError)

Five warnings beside them: DamageWarning, for damage that memlab reports or repairs and goes on with;
RedactionWarning, for a secret that was taken out of a text before the text was stored; RankingWarning, for a pack that
ranks otherwise than the one before it; ExtensionWarning, for an extension that was left out, is slow, or has another
version than the one that was logged; RenamedWarning, for a name of an earlier version.

Every message says what is wrong, where, and the nearest valid thing or the way out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
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
    "did_you_mean",
    "missing_name",
]


def did_you_mean(name: str, known: Iterable[str], *, most: int = 12) -> str:
    """A closing clause that names the nearest known names, or lists them all when none is near.

    >>> did_you_mean("recencey", ["recency", "similarity"])
    'Did you mean recency?'
    """
    options = sorted(set(known))
    near = difflib.get_close_matches(name, options, n=3, cutoff=0.6)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if not options:
        return "There are none yet."
    shown = ", ".join(options[:most])
    return f"Known: {shown}{', ...' if len(options) > most else ''}."


def missing_name(module: str, name: str, removed: Mapping[str, str]) -> AttributeError:
    """Build the error for a name that a module lacks; a removed name is answered by its replacement.

    >>> str(missing_name("memlab", "audit", {"audit": "lab.edges"}))
    'memlab.audit was removed; instead: lab.edges.'
    """
    if name in removed:
        return AttributeError(f"{module}.{name} was removed; instead: {removed[name]}.")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


_PACKAGE = str(Path(__file__).parent)


class MemlabError(Exception):
    """The root of the tree: ``except memlab.MemlabError`` catches all that memlab raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of the whole traceback: the caller's code, without the frames within memlab.

        ``%debug`` and plain Python have all of them.
        """
        from IPython.core.getipython import get_ipython

        frames, kept = [], None
        trace = self.__traceback__
        while trace is not None:
            if not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
                frames.append(trace)
            trace = trace.tb_next
        for one in reversed(frames):
            kept = TracebackType(kept, one.tb_frame, one.tb_lasti, one.tb_lineno)
        shell = get_ipython()
        assert shell is not None  # IPython asked
        shown: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, kept)
        return shown


class InputError(MemlabError, ValueError):
    """A value that a caller passed is outside what the call accepts."""


class UnknownName(InputError, LookupError):
    """A name or id that nothing in the lab or in memlab declares; ``where`` opens the message, as "Row 3: ".

    >>> UnknownName("pack", "associatve", ["associative", "cascade"])
    UnknownName('There is no pack "associatve". Did you mean associative?')
    """

    def __init__(
        self, what: str, name: object, known: Iterable[str] = (), *, where: str = ""
    ) -> None:
        self.what, self.name = what, name
        super().__init__(f'{where}There is no {what} "{name}". {did_you_mean(str(name), known)}')

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


class NoSuchItem(UnknownName, IndexError):
    """A place beyond the end of a sequence."""


_MOST_SAID = 600


class PolicyError(MemlabError):
    """A policy's source is not acceptable; the message shows the line with a caret below the form.

    ``line`` and ``column`` count from 1; ``policy`` is its name and ``hash`` its source hash, where known.
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
        # A name in an untrusted text may be as long as the text.
        message = message if len(message) <= _MOST_SAID else f"{message[: _MOST_SAID - 4]} ..."
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
        shown = lines[self.line - 1]
        start = max(0, (self.column or 1) - 1)
        stop = self.end_column if self.end_column and self.end_column > start else start + 1
        window = max(0, start - 60)
        caret = " " * (start - window) + "^" * max(1, min(stop, len(shown)) - start)
        return printable(
            f"{where}: {self.message}\n  {shown[window : window + 120]}\n  {caret[:120]}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


class PolicySyntaxError(PolicyError):
    """The text is not a readable S-expression of the dialect."""


class PolicyNameError(PolicyError):
    """The source names a feature, function, slot or parameter that nothing declares."""


class PolicyTypeError(PolicyError):
    """A form has the wrong type, the wrong number of arguments or the wrong shape."""


class PolicyLimitError(PolicyError):
    """The source is longer, deeper or larger than the limits of the dialect."""


class LabError(MemlabError):
    """A lab on disk cannot be opened or written as asked."""


class NotALab(LabError):
    """The path exists and holds something else."""


class NewerLab(LabError):
    """The lab was written by a later version of memlab."""

    @classmethod
    def of_format(
        cls, what: str, number: int, known: int, *, written_by: str = "", noun: str = "format"
    ) -> NewerLab:
        """Return the error for ``what``, which has the format ``number`` where this memlab reads up to ``known``.

        ``written_by`` is the version of memlab that wrote it, where that is known.
        """
        by = f"memlab {written_by}" if written_by else "a later memlab"
        return cls(
            f"{what} has {noun} {number}, written by {by}. This is memlab {__version__}, which reads {noun}s up to "
            f"{known}. Upgrade memlab."
        )

    @classmethod
    def of_word(cls, what: str) -> NewerLab:
        """Return the error for ``what``, a clause that names something unknown here, such as a kind of event."""
        return cls(
            f"{what}, which memlab {__version__} does not know: a later memlab wrote it. Upgrade memlab."
        )


class DamagedLab(LabError):
    """Files of the lab are truncated, overwritten or missing."""


class DamageWarning(UserWarning):
    """A file of a lab is not believed and is rebuilt from the journal, or events are missing from the journal."""


class RankingWarning(UserWarning):
    """A pack that was put to use ranks this lab's memories otherwise than the pack before it."""


class RedactionWarning(UserWarning):
    """A secret or a personal identifier was taken out of a text before the text was stored."""


class RenamedWarning(DeprecationWarning):
    """A name of an earlier version was used. It works throughout 0.2; the message has the new name."""


class ReadOnlyLab(LabError, PermissionError):
    """The disk, or the way in which the lab was opened, refuses writes."""


class LabBusy(LabError, TimeoutError):
    """Another process has held the writer's lock for longer than the timeout."""


class LabUnavailable(LabError):
    """The folder, the disk or the server of a lab is out of reach: nothing was written elsewhere.

    An agent goes on without memory. The next call looks again, and finds the lab once it is back.

    Attributes
    ----------
    sent
        Whether a server may have carried out the request, because the failure came after it was sent. False: nothing
        was written at all.
    """

    sent: bool = False

    @classmethod
    def at(cls, path: Path | str, why: str) -> LabUnavailable:
        """The error for the lab at ``path``; ``why`` is what the system says."""
        return cls(
            f"Memory is unavailable: {path} is out of reach ({why}). Nothing was written, there or elsewhere. Go on "
            "without memory, and bring the disk or the folder back: the next call looks again."
        )

    @classmethod
    def behind(cls, url: str, why: str, *, sent: bool) -> LabUnavailable:
        """Return the error for the server at ``url``; ``sent`` says whether it may have carried out the request."""
        written = (
            "It may have carried out the request, which is not sent again; nothing was written elsewhere."
            if sent
            else "Nothing was written, there or elsewhere."
        )
        error = cls(
            f"Memory is unavailable: the lab behind {url} gives no answer ({why.rstrip('.')}). {written} Go on without "
            "memory, and see to the server: the next call asks it again."
        )
        error.sent = sent
        return error


class MemoryOff(LabError):
    """Memory is switched off, for all or for the project for which something was to be remembered."""


class NotPermitted(LabError, PermissionError):
    """An agent or a connection wants what its project or its role does not allow."""


class EmbedderMismatch(LabError):
    """The lab holds vectors of another embedder than the one it was opened with."""


class PrivacyError(MemlabError):
    """Text that must not reach the disk stands where it cannot be redacted."""


class DatasetError(MemlabError, ValueError):
    """A benchmark or log file is malformed; the message names the place in the file."""


class ModelError(MemlabError):
    """A language model that was asked, and gave nothing that can be used."""


class NoAnswer(ModelError):
    """The server cannot be reached, refuses, sends too much, or has not answered in time."""


class BadAnswer(ModelError):
    """What the model answered is not what it was asked for."""


class OverBudget(ModelError):
    """A call that might take more calls or tokens than its caller allowed is not made."""


class ExtensionError(MemlabError):
    """A function of an extension raised, or returned values that memlab cannot use; the message names both."""


class MissingExtension(ExtensionError):
    """A pack, a log or a lab was written with an extension that is not registered here, or not in that version."""


class ExtensionWarning(UserWarning):
    """An extension was not loaded, takes long, or has another version than the one that was logged."""


class MissingExtra(MemlabError, ImportError):
    """A feature needs an optional dependency; the message gives the pip command."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs {package}. Install it with: pip install 'memlab[{extra}]'"
        )


def _rebuild(
    cls: type[MemlabError], args: tuple[object, ...], state: dict[str, object]
) -> MemlabError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error
