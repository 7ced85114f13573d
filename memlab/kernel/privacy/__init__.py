"""The privacy gate: what may not reach the disk is replaced before the journal sees it.

``screen`` finds credentials: those of a known form (a prefix, a key block, a URL with a password), values that are
given to a telling name (``password = ...``, "my password is '...'", in several languages), what stands where command
lines and files of passwords have it, and the words of a wallet. Each becomes ``[REDACTED: kind]``. A text is also read
as it would be without its disguises: escapes, encodings, look-alike letters, broken lines. What is redacted is what
stands in the text itself. The result has the type ``Screened``, the only one that the journal stores, so a type checker
finds text that went round the gate; ``refuse_strings`` is for everything else that an event holds.

The gate is a net with known holes; docs/secrets.md says which. Personal identifiers are looked for where a pack says.
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
