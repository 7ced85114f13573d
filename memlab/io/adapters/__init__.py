"""Memory interfaces of other frameworks, implemented by a lab.

Each framework has a module, which is imported where it is used:

| module | class or functions | interface | needs |
|---|---|---|---|
| ``langgraph`` | ``LabStore`` | BaseStore of LangGraph | langgraph |
| ``openai_agents`` | ``LabSession`` | Session of OpenAI Agents | |
| ``claude`` | ``MemoryFiles`` | the six commands of Claude's memory tool | |
| ``claude_tool`` | ``LabMemoryTool``, ``AsyncLabMemoryTool`` | the same as a tool of the SDK | anthropic |
| ``mem0`` | ``Mem0Memory``, ``AsyncMem0Memory`` | Memory and AsyncMemory of mem0 | |
| ``memfs`` | ``read_memfs``, ``write_memfs`` | folders of Markdown, as Letta has them | |
| ``agent_framework`` | ``LabContext`` | ContextProvider of agent-framework | agent-framework-core |
| ``langchain`` | ``LabMiddleware``, ``LabRetriever`` | AgentMiddleware, BaseRetriever of LangChain | langchain |
| ``google_adk`` | ``LabMemoryService`` | BaseMemoryService of Google ADK | google-adk |

All of them use the lab's own verbs. Texts that an agent stores are in ``lab.memories`` and take part in recall, deleted
texts can be restored, and every query is logged.
"""

from memlab.io.adapters.claude import MemoryFiles
from memlab.io.adapters.mem0 import AsyncMem0Memory, Mem0Memory
from memlab.io.adapters.memfs import read_memfs, write_memfs
from memlab.io.adapters.openai_agents import LabSession

__all__ = [
    "AsyncMem0Memory",
    "LabSession",
    "Mem0Memory",
    "MemoryFiles",
    "read_memfs",
    "write_memfs",
]
