"""The privacy gate: secrets are replaced before the journal stores a text.

``screen`` finds credentials and replaces each of them by ``[REDACTED: kind]``. It finds credentials with a known form,
such as a prefix, a key block or a URL with a password. It finds values of telling names (``password = ...``, "my
password is '...'") in several languages. It also finds credentials in command lines and password files, and seed
phrases of wallets.

A text is also searched after undoing disguises such as escapes, encodings, look-alike letters and broken lines. The
redaction is always applied to the original text. The result has the type ``Screened``. The journal stores only texts of
this type, so a type checker finds texts that bypass the gate. ``refuse_strings`` checks all other strings of an event.

docs/secrets.md lists the known gaps of the gate. Personal identifiers are redacted if the pack's settings request it.
"""

from memlab.kernel.privacy._files import Ignored, find_ignore_file, is_sensitive, split_sensitive
from memlab.kernel.privacy._screen import (
    Finding,
    Screened,
    Screening,
    refuse,
    refuse_strings,
    screen,
    screen_many,
)
from memlab.kernel.privacy._secret_names import PERSONAL, personal_kinds

__all__ = [
    "PERSONAL",
    "Finding",
    "Ignored",
    "Screened",
    "Screening",
    "find_ignore_file",
    "is_sensitive",
    "personal_kinds",
    "refuse",
    "refuse_strings",
    "screen",
    "screen_many",
    "split_sensitive",
]
