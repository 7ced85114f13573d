"""Other frameworks' interfaces for memory, kept by a lab: one module for each, imported where it is used.

    from memlab.io.adapters.langgraph import LabStore              # LangGraph's BaseStore; needs langgraph
    from memlab.io.adapters.openai_agents import LabSession        # OpenAI Agents' Session
    from memlab.io.adapters.claude import MemoryFiles              # the six commands of Claude's memory tool
    from memlab.io.adapters.claude_tool import LabMemoryTool       # them as the SDK's tool; needs anthropic
    from memlab.io.adapters.mem0 import Mem0Memory                 # mem0's Memory
    from memlab.io.adapters.memfs import read_memfs, write_memfs   # folders of Markdown, as Letta keeps them
    from memlab.io.adapters.agent_framework import LabContext      # agent-framework's ContextProvider; needs its core

All of them write memories by the lab's own verbs: what an agent keeps by one is in ``lab.memories`` and takes part in
recall, what it deletes is deleted and can be restored, and every question leaves a slate.
"""

from memlab.io.adapters._records import Records as Records  # for tests
from memlab.io.adapters._records import written as written  # for tests
from memlab.io.adapters.claude import MemoryFiles
from memlab.io.adapters.mem0 import Mem0Memory
from memlab.io.adapters.memfs import Synced, read_memfs, write_memfs
from memlab.io.adapters.openai_agents import LabSession

__all__ = ["LabSession", "Mem0Memory", "MemoryFiles", "Synced", "read_memfs", "write_memfs"]
