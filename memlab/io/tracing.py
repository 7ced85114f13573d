"""``memlab.trace``: spans of OpenTelemetry for the verbs of a lab.

The names follow the semantic conventions for generative AI, section memory (status: development).
"""

from __future__ import annotations

import json
import os
import time
import weakref
from typing import Annotated, Any

from memlab.errors import require_extra
from memlab.kernel.base.arguments import AsGiven, checked
from memlab.kernel.recall import Hit, Hits
from memlab.kernel.verbs.gate import format_agent
from memlab.kernel.verbs.results import Edited, Edits, Remembered
from memlab.kernel.version import __version__
from memlab.subjects.lab import Lab
from memlab.subjects.listening import Listener, VerbCall

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable of the conventions. memlab writes spans and no events, so EVENT_ONLY captures nothing."""

# Other verbs have no operation in the conventions.
_OPERATIONS = {
    "recall": "search_memory",
    "remember": "create_memory",
    "edit": "update_memory",
    "restore": "update_memory",
    "forget": "delete_memory",
    "purge": "delete_memory",
}


@checked
def trace(
    lab: Lab,
    *,
    content: bool | None = None,
    store: str | None = None,
    provider: Annotated[Any, AsGiven] = None,
) -> Listener:
    """Record a span of OpenTelemetry for each recall and each change of a memory.

    Needs the extra ``opentelemetry``. Nothing is imported or recorded before the call.

    Parameters
    ----------
    lab
        The lab; of an ``AsyncLab``, its ``lab``.
    content
        Whether spans contain queries and texts of memories. Default: as the environment variable
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says ("true", "SPAN_ONLY" or
        "SPAN_AND_EVENT").
    store
        The value of ``gen_ai.memory.store.id``. Default: the name of the lab's directory, or "memory".
    provider
        The tracer provider. Default: the global tracer provider.

    Returns
    -------
    Listener
        The listener; ``remove`` ends the tracing.

    Raises
    ------
    MissingExtra
        If OpenTelemetry is not installed.

    Notes
    -----
    Recalls and contexts are spans search_memory. Writes are create_memory or, if the new memories may be
    merged into stored ones, upsert_memory, update_memory (edits, restored memories) and delete_memory
    (forgotten, deleted and purged memories). They have ``gen_ai.operation.name``, the store, the number
    of records and, of one record, its id; the session as ``gen_ai.conversation.id`` and the agent as
    ``gen_ai.agent.name``. A search has its number in the log (``memlab.decision``) and the hash of its
    pack (``memlab.pack``). An error is ``error.type``. The parent is the span in which the verb was
    called.

    Examples
    --------
    >>> import memlab
    >>> lab = memlab.open()
    >>> tracing = memlab.trace(lab, content=True)  # doctest: +SKIP
    """
    with require_extra("opentelemetry", "memlab.trace"):
        from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer
    captures = content
    if captures is None:
        captures = os.environ.get(_CONTENT, "").upper() in ("TRUE", "SPAN_ONLY", "SPAN_AND_EVENT")
    path = lab.io.path
    name = store or ("memory" if path is None else path.name)
    watched = weakref.ref(lab)  # the lab holds its listeners
    tracer = get_tracer("memlab", __version__, tracer_provider=provider)

    def record(call: VerbCall) -> None:
        operation = _OPERATIONS.get(call.verb)
        if operation is None:
            return
        if operation == "create_memory" and _compares(watched(), call):
            operation = "upsert_memory"
        attributes = _attributes_of(call, captures)
        attributes |= {"gen_ai.operation.name": operation, "gen_ai.memory.store.id": name}
        if call.error is not None:
            attributes["error.type"] = type(call.error).__qualname__
        # Spans are in the wall time of their program, whatever clock the lab has.
        end = time.time_ns()
        span = tracer.start_span(
            operation,
            kind=SpanKind.INTERNAL,
            attributes=attributes,
            start_time=end - int(call.seconds * 1e9),
        )
        if call.error is not None:
            span.set_status(Status(StatusCode.ERROR, str(call.error) if captures else None))
        span.end(end)

    return lab.on("*", record)


def _compares(lab: Lab | None, call: VerbCall) -> bool:
    """Return whether a call may merge new memories into stored ones.

    The call's argument ``linking`` decides, or else the setting of the lab's pack.
    """
    linking = call.arguments.get("linking")
    if linking is None and lab is not None:
        linking = lab.policies.pack.settings["linking"]
    return linking not in ("off", "corrections")


def _attributes_of(call: VerbCall, captures: bool) -> dict[str, Any]:
    """Return trace attributes for the arguments and the result of a call."""
    attributes: dict[str, Any] = {}
    session, filters = call.arguments.get("session"), call.arguments.get("filters")
    viewer = None if filters is None else filters.viewer
    if session is not None:
        attributes["gen_ai.conversation.id"] = str(session)
    if viewer is not None and viewer == format_agent(viewer):
        attributes["gen_ai.agent.name"] = viewer.removeprefix("agent:")
    if captures and "query" in call.arguments:
        attributes["gen_ai.memory.query.text"] = call.arguments["query"]
    result = call.result
    if result is None:
        return attributes
    if isinstance(result, Hits):
        attributes["memlab.pack"] = result.pack.hash
        if result.decision is not None:
            attributes["memlab.decision"] = result.decision
    # A large load is counted, and its memories are read only for the contents.
    entries: Any = [result] if isinstance(result, Edited) else result
    attributes["gen_ai.memory.record.count"] = len(entries)
    if isinstance(result, Edited | Edits | Remembered | Hits):
        if len(entries) == 1 and not isinstance(result, Hits):
            attributes["gen_ai.memory.record.id"] = str(entries[0].id)
        if captures:
            records = [
                {"id": str(memory.id), "content": memory.text}
                | ({"score": memory.score} if isinstance(memory, Hit) else {})
                for memory in entries
            ]
            # A list of objects is no attribute of a span: the records of the conventions are JSON.
            attributes["gen_ai.memory.records"] = json.dumps(records)
    elif len(entries) == 1:
        attributes["gen_ai.memory.record.id"] = str(result.ids[0])
    return attributes
