"""The FastAPI program of docs/howto/async.md, under FastAPI itself, and 50 users at once."""

import asyncio
import re
from pathlib import Path

import pytest

import memlab

PAGE = (Path(memlab.__file__).parents[1] / "docs/howto/async.md").read_text(encoding="utf-8")


def test_fifty_users_at_once(tmp_path, monkeypatch):
    pytest.importorskip("fastapi")
    httpx = pytest.importorskip("httpx")
    monkeypatch.chdir(tmp_path)
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(snippet, "async.md", "exec"), names)
    app = names["app"]

    async def main():
        async with app.router.lifespan_context(app):
            lab = app.state.lab
            for user in range(50):
                await lab.agent(f"u{user}").remember(
                    "Deploys go out on Tuesdays", kind="convention"
                )
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://lab") as client:
                posts = [
                    client.post(f"/chat/u{user}", params={"text": "When do deploys go out?"})
                    for user in range(50)
                ]
                answers = await asyncio.gather(*posts)
                assert {answer.status_code for answer in answers} == {200}
                assert {answer.json()["answer"] for answer in answers} == {"On Tuesdays."}
                ended = await client.post("/chat/u0/end")
                assert ended.status_code == 200
            assert (await lab.memories).filter(kind="turn").height == 100

    asyncio.run(main())
