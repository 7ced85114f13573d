"""The privacy gate: secrets are replaced before the journal stores a text.

``screen`` finds four sorts of credentials. Some have a known form, such as a prefix, a key block or a URL with a
password. Some are given to a telling name (``password = ...``, "my password is '...'"), in several languages.
Some are where command lines and password files have them, and some are the words of a wallet. Each becomes
``[REDACTED: kind]``.

A text is also read without disguises such as escapes, encodings, look-alike letters and broken lines. The
redacted part is always that of the original text. The result has the type ``Screened``, the only one that the
journal stores, so a type checker finds texts that bypass the gate. All other strings of an event are checked by
``refuse_strings``.

The gate has known gaps, which docs/secrets.md lists. Personal identifiers are redacted where a pack's settings
say so.
"""

from memlab.kernel.privacy._disguises import MAX_ENCODED, VIEWS, Edit, View, read_views
from memlab.kernel.privacy._files import Ignored, find_ignore_file, is_sensitive, split_sensitive
from memlab.kernel.privacy._kinds import KINDS, Kind
from memlab.kernel.privacy._screen import (
    Finding,
    Screened,
    Screening,
    merge_findings,
    refuse,
    refuse_strings,
    screen,
    screen_many,
)
from memlab.kernel.privacy._secret_names import PERSONAL, personal_kinds

__all__ = [
    "KINDS",
    "MAX_ENCODED",
    "PERSONAL",
    "VIEWS",
    "Edit",
    "Finding",
    "Ignored",
    "Kind",
    "Screened",
    "Screening",
    "View",
    "find_ignore_file",
    "is_sensitive",
    "merge_findings",
    "personal_kinds",
    "read_views",
    "refuse",
    "refuse_strings",
    "screen",
    "screen_many",
    "split_sensitive",
]
