"""Hooks of coding agents: context when a session starts, lessons when it ends.

Claude Code and Codex run a command at events of a session, with a JSON object on standard input. The transcript of
the session is read up to a maximum length. A host may pass the same transcript any number of times; each lesson is
stored once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memlab.errors import InputError
from memlab.io.formats import parse_messages
from memlab.io.formats.messages import unwrap_message
from memlab.kernel.base.arguments import checked
from memlab.kernel.base.disk import open_regular
from memlab.subjects.lab import Lab

_TAIL_BYTES = 16 << 20
"""Maximum bytes of a transcript that are read, from its end: hours of work, in about a second."""

_LINE_BYTES = 4 << 20
"""Maximum bytes of a line of a transcript; a longer one contains an image or a dump."""

_KEPT = 4_000
"""Characters that are kept of the beginning and of the end of a text; errors are at either end."""

# What hosts write in the name of the user: orders of the program, instructions, notices of interruptions. A result of a
# rejected call quotes the user.
_BY_THE_HOST = ("<", "# AGENTS.md", "[Request interrupted", "Caveat: ", "The user wants to clarify")
_TOLD = re.compile(
    r"\A(?:Error: )?The user doesn't want to .*?the user said:\s*(.+?)(?:\n\nNote: .*)?\Z", re.S
)
_NOT_SAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly")

HOSTS = {
    "claude": (".claude/settings.json", ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd")),
    "codex": (".codex/hooks.json", ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop")),
}  # fmt: skip
"""The file of settings and the events of each host."""

# What a session needs to know before its task is known.
_STANDING = (
    "rules of our work: rules for commits, branches, reviews and approval by owners, days of deploys and releases, running "
    "tests, local setup, ports, services, environment variables, migrations, dependencies and secrets"
)

# Claude Code ends without waiting long for SessionEnd, so each Stop learns too; Codex has no other end.
_LEARNS = ("Stop", "SessionEnd", "PreCompact")
_SECONDS = 60
"""Time limit of a hook; a usual one takes about two seconds."""


@checked
def answer_hook(
    lab: Lab, event: Mapping[str, Any], *, budget: int = 800, project: str | None = None
) -> dict[str, Any]:
    """Handle an event of a coding agent, and return the answer for its host.

    ``SessionStart`` and ``UserPromptSubmit`` get a context; ``Stop``, ``PreCompact`` and ``SessionEnd`` learn from the
    transcript. Other events change nothing.

    Parameters
    ----------
    lab
        The lab.
    event
        The object that the host passes, with ``hook_event_name``, ``session_id``, ``transcript_path`` and ``cwd``.
    budget
        The maximum length of a context in tokens.
    project
        The project of the memories. Default: the name of the repository that contains ``cwd``.

    Returns
    -------
    dict
        The answer, as JSON on standard output; empty if there is nothing to say.

    Raises
    ------
    InputError
        If the event has no name or no session.

    Examples
    --------
    >>> import memlab
    >>> from memlab.io.adapters.hooks import answer_hook
    >>> lab = memlab.open()
    >>> _ = lab.remember("Releases are tagged without a v", kind="convention", project="api")
    >>> event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Tag the release"}
    >>> answer = answer_hook(lab, event, project="api")
    >>> "without a v" in answer["hookSpecificOutput"]["additionalContext"]
    True
    """
    name, session = event.get("hook_event_name"), event.get("session_id")
    if not isinstance(name, str) or not isinstance(session, str) or not session:
        raise InputError(
            "The event of a hook needs hook_event_name and session_id. Pass the JSON of the host unchanged."
        )
    folder = str(event.get("cwd") or "")
    project = project or _find_project(folder)
    if name in _LEARNS and event.get("transcript_path"):
        messages = list(read_transcript(Path(str(event["transcript_path"])), folder))
        if messages:
            lab.agents.end_session(session, messages, project=project)
        return {}
    if name == "SessionStart":
        task = f"{_STANDING} in {project or 'this project'}"
    elif name == "UserPromptSubmit":
        task = str(_clean(str(event.get("prompt") or ""), ""))[:_KEPT]
    else:
        return {}
    if not task.strip():
        return {}
    # after a compaction the host has lost what the session was told
    again = name == "SessionStart" and event.get("source") == "compact"
    context = lab.context(task, budget=budget, session=session, project=project, again=again)
    if not context.text:
        return {}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context.text}}


def _find_project(folder: str) -> str | None:
    """Return the name of the repository that contains a folder, or the folder's own name.

    The result is None without a folder, and for the root folder.
    """
    if not folder:
        return None
    path = Path(folder)
    root = next((parent for parent in (path, *path.parents) if (parent / ".git").exists()), path)
    return root.name or None


@checked
def read_transcript(path: Path, folder: str = "") -> Iterator[dict[str, Any]]:
    """Yield the messages of a transcript of Claude Code or Codex.

    The messages have the form that ``lab.agents.end_session`` takes. Paths below ``folder`` become
    relative. Of a long file, the end is read; lines and messages that cannot be read are left out,
    and a missing file has none.

    Parameters
    ----------
    path
        The transcript, as JSON Lines.
    folder
        The working folder of the session.

    Yields
    ------
    dict
        The messages, with the time of each as ``at``.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from memlab.io.adapters.hooks import read_transcript
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "s1.jsonl"
    >>> line = {"type": "user", "message": {"role": "user", "content": "Use nox"}}
    >>> _ = path.write_text(json.dumps(line))
    >>> [message["content"] for message in read_transcript(path)]
    ['Use nox']
    """
    if not path.exists():
        return  # deleted by the user, or not written yet
    own: set[str] = set()
    with open_regular(path) as file:
        skipped = max(0, path.stat().st_size - _TAIL_BYTES)
        file.seek(skipped)
        while line := file.readline(_LINE_BYTES):
            if not line.endswith(b"\n") and len(line) == _LINE_BYTES:
                while len(file.readline(_LINE_BYTES)) == _LINE_BYTES:
                    pass
                continue
            try:
                entry = json.loads(line)
                messages = _read_entry(entry, folder, own) if isinstance(entry, dict) else []
            except (ValueError, RecursionError):
                continue  # half a line, at the cut or while the host writes, or a deeply nested line
            yield from messages


def _read_entry(entry: Mapping[str, Any], folder: str, own: set[str]) -> list[dict[str, Any]]:
    """Return the messages in a transcript's line: one, none, or one with words of the user in results of tools.

    ``own`` gets the ids of calls of the host's own tools. Only their results may quote the user: a server of the Model
    Context Protocol could write the same words.
    """
    if any(entry.get(name) is True for name in _NOT_SAID):
        return []
    payload, attached = entry.get("payload"), entry.get("attachment")
    item: Mapping[str, Any] | None
    # said while the agent worked
    if isinstance(attached, dict) and attached.get("type") == "queued_command":
        if attached.get("commandMode", "prompt") != "prompt":
            return []
        entry = {**entry, "type": "user", "role": "user", "content": attached.get("prompt")}
    if isinstance(payload, dict):
        item = payload if entry.get("type") == "response_item" else None
    else:
        item = entry if entry.get("type") in ("user", "assistant") else None
    if item is None:
        return []
    message = {**_clean(unwrap_message(item), folder), "at": entry.get("timestamp")}
    try:
        parsed = parse_messages([message])
    except InputError:
        return []
    if any(part.role == "user" and part.text.lstrip().startswith(_BY_THE_HOST) for part in parsed):
        return []
    content = message.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    own.update(
        str(block.get("id"))
        for block in blocks
        if block.get("type") == "tool_use" and not str(block.get("name")).startswith("mcp__")
    )
    if any(
        str(block.get("tool_use_id")) not in own
        for block in blocks
        if block.get("type") == "tool_result"
    ):
        return [message]
    replies = [_TOLD.match(part.text) for part in parsed if part.role == "tool" and part.failed]
    texts = [match[1] for match in replies if match and not match[1].startswith(_BY_THE_HOST)]
    result = entry.get("toolUseResult")
    if isinstance(result, dict) and isinstance(result.get("answers"), dict):
        texts += [f"{question} {answer}" for question, answer in result["answers"].items()]
    template = {"role": "user", "at": message["at"]}
    return [message, *({**template, "content": _clean(text, folder)} for text in texts)]


def _clean(value: Any, folder: str) -> Any:
    """Return a JSON value with long texts cut to their first and last characters, and with relative paths.

    Invalid characters are removed. Paths are relative to ``folder``.
    """
    if isinstance(value, str):
        if len(value) > 2 * _KEPT:
            value = f"{value[:_KEPT]}\n{value[-_KEPT:]}"
        value = value.encode("utf-8", "replace").decode().replace("\0", "")
        return value.replace(f"{folder.rstrip('/')}/", "") if folder else value
    if isinstance(value, list):
        return [_clean(item, folder) for item in value]
    if isinstance(value, dict):
        return {name: _clean(item, folder) for name, item in value.items()}
    return value


@checked
def hook_settings(
    host: str, command: str, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Add memlab's hooks to the settings of a host.

    Parameters
    ----------
    host
        "claude" or "codex".
    command
        The command line that the host runs.
    settings
        The present settings. Default: none. Hooks of others stay, and former hooks of memlab are replaced.

    Returns
    -------
    dict
        The settings.

    Raises
    ------
    InputError
        If the present settings have no object of hooks.

    Examples
    --------
    >>> from memlab.io.adapters.hooks import hook_settings
    >>> sorted(hook_settings("codex", "memlab hook run agent.memlab")["hooks"])
    ['PreCompact', 'SessionStart', 'Stop', 'UserPromptSubmit']
    """
    result = dict(settings or {})
    hooks = result.get("hooks") or {}
    if not isinstance(hooks, dict) or not all(
        isinstance(groups, list) for groups in hooks.values()
    ):
        raise InputError(
            '"hooks" in the settings must be an object whose values are lists. Correct '
            "the file first."
        )
    hooks = {
        name: [group for group in groups if "memlab hook run" not in json.dumps(group)]
        for name, groups in hooks.items()
    }
    for name in HOSTS[host][1]:
        hook = {"type": "command", "command": command, "timeout": _SECONDS}
        if name == "Stop" and host == "claude":
            hook["async"] = True
        hooks[name] = [*hooks.get(name, []), {"hooks": [hook]}]
    return result | {"hooks": {name: groups for name, groups in hooks.items() if groups}}
