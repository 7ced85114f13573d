"""The labs that an HTTP server serves: one lab, or the labs of a folder.

The token of a request decides which client sent it, and with a folder also which lab answers.
"""

from __future__ import annotations

import resource
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Condition

from memlab.errors import LabBusy, MemlabError
from memlab.io.serving._connection import Client, Connection, read_clients
from memlab.io.serving.audit import AuditLog
from memlab.kernel.base.threads import ThreadLock
from memlab.subjects.lab import Lab
from memlab.subjects.loopback import is_same_token
from memlab.subjects.opening import open_lab

# Maximum file descriptors of one open lab, and the descriptors that the server reserves for its clients.
_LAB_DESCRIPTORS = 6
_OTHER_DESCRIPTORS = 96
# Labs that close in the background at most: each keeps its descriptors until then.
_MOST_CLOSING = 4
# Default maximum of open labs: each takes some megabytes, and opening a lab takes 5 ms.
_MOST_OPEN = 64
# Seconds that a request waits while all open labs are in use: the default timeout of a client.
_PATIENCE = 30.0


def find_client(clients: Mapping[str, Client], token: str) -> Client | None:
    """Return the client with this token, or None if the token is unknown."""
    # every token is compared, so that the response time reveals nothing about them
    matches = [client for valid, client in clients.items() if is_same_token(token, valid)]
    return matches[0] if matches else None


class LabDoor:
    """The single lab of an HTTP server, which stays open, and the clients of the lab."""

    def __init__(self, lab: Lab, clients: list[Client], audit: AuditLog | None) -> None:
        self._clients = {client.token: client for client in clients}
        self._connections = {
            client.token: Connection.from_lab(
                lab,
                project=client.project,
                viewer=client.viewer,
                session=None,
                role=client.role,
                audit=audit,
            )
            for client in clients
        }
        self._audit = audit

    def find_client(self, token: str) -> Client | None:
        """Return the client with this token, or None if the token is unknown."""
        return find_client(self._clients, token)

    def connect(self, client: Client) -> AbstractContextManager[Connection]:
        """Return a context manager that yields a client's connection."""
        return nullcontext(self._connections[client.token])

    def refuse(self) -> None:
        """Count a request without a valid token in the audit log."""
        if self._audit is not None:
            self._audit.refuse_login()

    def close(self) -> None:
        """Close the audit log; the lab stays open."""
        if self._audit is not None:
            self._audit.close()


def default_capacity() -> int:
    """Return how many labs the system's limit on open files permits, at most 64."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(_MOST_OPEN, (files - _OTHER_DESCRIPTORS) // _LAB_DESCRIPTORS))


class _OpenLab:
    """A lab of a folder, its audit log, and the number of requests that use it."""

    def __init__(self, path: Path, *, audit: bool) -> None:
        self.requests = 0
        self._path, self._keeps_audit = path, audit
        self._lab: Lab | None = None
        self._audit: AuditLog | None = None
        # Held while this lab opens: other labs open meanwhile.
        self._lock = ThreadLock()

    def connect(self, client: Client) -> Connection:
        """Open the lab on the first request, and return the client's connection."""
        with self._lock:
            if self._lab is None:
                lab = open_lab(self._path)
                try:
                    self._audit = AuditLog(self._path) if self._keeps_audit else None
                except BaseException:
                    lab.close()  # no call is served without its log
                    raise
                self._lab = lab
        return Connection.from_lab(
            self._lab,
            project=client.project,
            viewer=client.viewer,
            session=None,
            role=client.role,
            audit=self._audit,
        )

    def close(self) -> None:
        """Close the lab and its audit log."""
        if self._audit is not None:
            self._audit.close()
        if self._lab is not None:
            self._lab.close()


class RootDoor:
    """The labs of a folder that an HTTP server serves, and the clients of each lab.

    A lab is opened by the first request of one of its clients. When ``capacity`` labs are open, the one that was used
    least recently is closed. The file of clients is read again when it changes.
    """

    def __init__(self, root: Path, clients: Path, capacity: int, *, audit: bool) -> None:
        self._root, self._path, self._capacity = root, clients, capacity
        self._labs: OrderedDict[str, _OpenLab] = OrderedDict()
        # Held while labs are listed, never while one opens or closes; a request waits on it for an idle lab.
        self._free = Condition()
        # A lab closes in the background, because its last write to the disk takes longer than a recall.
        self._closer = ThreadPoolExecutor(1)
        self._closing: deque[Future[None]] = deque()
        self._audit = AuditLog(root) if audit else None
        self._stamp = (0, 0)
        self._fault = ""
        self._clients: dict[str, Client] = {}
        self._read_clients()

    def _read_clients(self) -> None:
        """Read the file of clients again if the file has changed."""
        about = self._path.stat()
        stamp = (about.st_mtime_ns, about.st_size)
        if stamp != self._stamp:
            self._clients = {client.token: client for client in read_clients(self._path, labs=True)}
            self._stamp = stamp

    def find_client(self, token: str) -> Client | None:
        """Return the client with this token, or None if the token is unknown.

        While the file of clients is invalid, its last valid content is used.
        """
        try:
            self._read_clients()
        except (MemlabError, OSError) as error:
            if str(error) != self._fault:  # each fault is printed once, not at each request
                print(f"The clients stay as they were: {error}", file=sys.stderr)
            self._fault = str(error)
        return find_client(self._clients, token)

    @contextmanager
    def connect(self, client: Client) -> Iterator[Connection]:
        """Yield a connection to the client's lab, and open the lab if necessary."""
        with self._free:
            last_closing = self._make_room(client.lab)
            opened = self._labs.setdefault(
                client.lab, _OpenLab(self._root / client.lab, audit=self._audit is not None)
            )
            self._labs.move_to_end(client.lab)
            opened.requests += 1
        try:
            if last_closing is not None and (error := last_closing.exception()) is not None:
                print(f"A lab could not be closed: {error}", file=sys.stderr)
            yield opened.connect(client)
        finally:
            with self._free:
                opened.requests -= 1
                self._free.notify_all()

    def _make_room(self, name: str) -> Future[None] | None:
        """Close idle labs until the lab ``name`` may be opened, unless it is open already.

        The caller holds the lock. If too many labs are being closed, the future of the oldest closing is returned,
        so that the caller waits without the lock; otherwise None. If all open labs stay in use, LabBusy is raised.
        """
        last_closing = None
        while name not in self._labs and len(self._labs) >= self._capacity:
            idle = next((lab for lab, opened in self._labs.items() if not opened.requests), None)
            if idle is not None:
                self._closing.append(self._closer.submit(self._labs.pop(idle).close))
                if len(self._closing) > _MOST_CLOSING:
                    last_closing = self._closing.popleft()
            elif not self._free.wait(_PATIENCE):
                raise LabBusy(
                    f"{self._capacity} labs are open, which is the maximum, and all are in use. Try again later."
                )
        return last_closing

    def refuse(self) -> None:
        """Count a request without a valid token in the audit log."""
        if self._audit is not None:
            self._audit.refuse_login()

    def close(self) -> None:
        """Close all labs and audit logs."""
        with self._free:
            while self._labs:
                self._labs.popitem()[1].close()
        self._closer.shutdown()
        if self._audit is not None:
            self._audit.close()
