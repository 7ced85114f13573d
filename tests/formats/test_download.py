"""Fetching the original: only what has the expected hash is kept. A local server stands for the far one."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from memlab.errors import DatasetError
from memlab.io.ingest import download_locomo

BODY = b'[{"sample_id": "one"}]'
HASH = hashlib.sha256(BODY).hexdigest()


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        result = self.path == "/locomo.json"
        self.send_response(200 if result else 404)
        self.send_header("Content-Length", str(len(BODY) if result else 0))
        self.end_headers()
        if result:
            self.wfile.write(BODY)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_download_fills_a_new_folder_once(server, tmp_path):
    target = tmp_path / "data" / "locomo.json"
    assert download_locomo(target, url=f"{server}/locomo.json", sha256=HASH) == target
    assert target.read_bytes() == BODY
    assert [path.name for path in target.parent.iterdir()] == ["locomo.json"]
    assert download_locomo(target, url="http://127.0.0.1:1/not-asked", sha256=HASH) == target


def test_another_hash_is_refused_and_nothing_is_kept(server, tmp_path):
    with pytest.raises(DatasetError, match=f"sent a file with the sha256 {HASH}"):
        download_locomo(tmp_path / "locomo.json", url=f"{server}/locomo.json")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_never_overwritten(server, tmp_path):
    target = tmp_path / "locomo.json"
    target.write_bytes(b"mine")
    with pytest.raises(DatasetError, match="exists and is another file"):
        download_locomo(target, url=f"{server}/locomo.json", sha256=HASH)
    assert target.read_bytes() == b"mine"


def test_a_failing_fetch_says_how_to_go_on(server, tmp_path):
    with pytest.raises(
        DatasetError, match=r"could not be downloaded: Not Found\. Download it by hand"
    ):
        download_locomo(tmp_path / "locomo.json", url=f"{server}/missing.json", sha256=HASH)
    with pytest.raises(DatasetError, match="could not be downloaded"):
        download_locomo(tmp_path / "locomo.json", url="http://127.0.0.1:1/closed", sha256=HASH)


def test_a_folder_is_no_target(server, tmp_path):
    with pytest.raises(DatasetError, match="cannot be read"):
        download_locomo(tmp_path, url=f"{server}/locomo.json", sha256=HASH)
