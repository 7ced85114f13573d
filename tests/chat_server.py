"""A server of this machine that speaks OpenAI's chat completions, and answers as a test says."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["completion", "serving"]


def completion(content, *, tokens=None, finish="stop"):
    """Return the body of a completion with this content; anything but a text is written as JSON."""
    words = content if isinstance(content, str) or content is None else json.dumps(content)
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": words},
        "finish_reason": finish,
    }
    usage = {} if tokens is None else {"usage": {"total_tokens": tokens}}
    return json.dumps({"object": "chat.completion", "choices": [choice], **usage}).encode()


@contextlib.contextmanager
def serving(answer):
    """Yield the address of a server and the list of its requests: each (path, headers, body).

    ``answer`` is given the body and the handler: it returns the bytes of a completion, a status with such, or None
    where it has written to the handler itself.
    """
    requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, dict(self.headers), body))
            with contextlib.suppress(OSError):  # the other side may have gone
                reply = answer(body, self)
                if reply is None:
                    self.close_connection = True
                    return
                status, data = reply if isinstance(reply, tuple) else (200, reply)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
