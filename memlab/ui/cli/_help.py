"""What ``memlab --help`` says of each command: one line of at most 63 characters, by what it is for; former names."""

from __future__ import annotations

__all__ = ["FORMER", "SECTIONS", "rewritten"]

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
        "evaluate": "what each policy would have been worth on a log",
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
    "upkeep": "backup check consolidate export join maintain mirror move rebuild restore stats",
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
    return [*FORMER[name].replace(" --reason REASON", "").replace(" --quarantine EVENT", "").split(), *rest]


def _restores_backup(words: list[str], places: list[int]) -> bool:
    """Whether these are arguments of the former ``restore LAB [BACKUP]``, and not ids of memories or options."""
    options = {word for word in words if word.startswith("-") and not word.startswith("--json")}
    return bool(places) and not options and not (len(places) > 1 and all(words[one].isdecimal() for one in places[1:]))
