"""Claude's memory tool of the ``anthropic`` package on a lab.

See ``memlab.io.adapters.claude`` for the commands.

    from memlab.io.adapters.claude_tool import LabMemoryTool
    client.beta.messages.tool_runner(tools=[LabMemoryTool(MemoryFiles(lab))], ...)

``AsyncLabMemoryTool`` is for ``AsyncAnthropic``.
"""

from __future__ import annotations

import asyncio
from typing import Any

from memlab.errors import MemlabError, require_extra
from memlab.io.adapters.claude import MemoryFiles

with require_extra("claude", "memlab.io.adapters.claude_tool"):
    from anthropic.lib.tools import (
        BetaAbstractMemoryTool,
        BetaAsyncAbstractMemoryTool,
        ToolError,
    )


class LabMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool of the ``anthropic`` SDK, which stores files in a lab.

    Refused commands raise ToolError, which the model reads.

    Parameters
    ----------
    files
        The files.
    cache_control
        The value that is passed on to the SDK.

    Examples
    --------
    >>> LabMemoryTool(MemoryFiles(lab)).call({"command": "view", "path": "/memories"})     # doctest: +SKIP
    """

    def __init__(self, files: MemoryFiles, *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self.files = files

    def _run(self, command: Any) -> str:
        """Execute a command of the model; raise ToolError if the command is refused."""
        return _run_command(self.files, command)

    view = create = str_replace = insert = delete = rename = _run

    def clear_all_memory(self) -> str:
        """Delete all memory files."""
        return self.files.clear()


class AsyncLabMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same tool for ``AsyncAnthropic``, which does not block the event loop.

    Parameters
    ----------
    files
        The files.
    cache_control
        The value that is passed on to the SDK.

    Examples
    --------
    >>> tools = [AsyncLabMemoryTool(MemoryFiles(lab))]                                     # doctest: +SKIP
    >>> AsyncAnthropic().beta.messages.tool_runner(tools=tools, ...)                       # doctest: +SKIP
    """

    def __init__(self, files: MemoryFiles, *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self.files = files

    async def _run(self, command: Any) -> str:
        """Execute a command of the model; raise ToolError if the command is refused."""
        return await asyncio.to_thread(_run_command, self.files, command)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        """Delete all memory files."""
        return await asyncio.to_thread(self.files.clear)


def _run_command(files: MemoryFiles, command: Any) -> str:
    """Execute a command of the model; raise ToolError if the command is refused."""
    try:
        return files.run(command.model_dump(exclude_none=True))
    except MemlabError as error:
        raise ToolError(str(error)) from error
