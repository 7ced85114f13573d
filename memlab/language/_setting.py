"""Another value for a setting in the text of a pack, everything else as it was written."""

from __future__ import annotations

from memlab.errors import InputError
from memlab.language._limits import MAX_PACK_CHARACTERS, MAX_PACK_FORMS
from memlab.language._pack import blanked
from memlab.language._reader import Text, read_forms
from memlab.language._writer import write_data

__all__ = ["with_setting"]


def with_setting(source: str, name: str, value: float | str | bool) -> str:
    """The text of a pack with ``(setting name value)``, in the place of the one that it has or after its header.

    >>> with_setting('(pack tiny "One setting.")\\n(setting seeds 10)', "seeds", 5)
    '(pack tiny "One setting.")\\n(setting seeds 5)'
    """
    forms = read_forms(Text(blanked(source)), characters=MAX_PACK_CHARACTERS, forms=MAX_PACK_FORMS)
    if not forms or forms[0].head != "pack":
        raise InputError("A setting belongs into the text of a pack, which begins with (pack name).")
    written = f"(setting {name} {write_data(value)})"
    for form in forms:
        if form.head == "setting" and len(form.items) == 3 and form.items[1].text == name:
            return source[: form.start] + written + source[form.stop :]
    return f"{source[: forms[0].stop]}\n{written}{source[forms[0].stop :]}"
