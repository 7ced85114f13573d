"""Two working days of a scripted agent, by the official client and a process of ``memlab serve`` for each day."""

import asyncio
import os
import random
import sys

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from running import run_alone

import memlab

pytestmark = pytest.mark.long

NEWEST = '(pack newest "The newest first." :inherits memlab) (defpolicy recall-score [age-days] (- age-days))'
PEOPLE = ["Ada", "Grace", "Edsger", "Barbara", "Alan", "Donald"]
MANIFEST = '[project]\nname = "shop"\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
PROJECT = {
    "pyproject.toml": MANIFEST,
    "shop/__init__.py": '"""A shop."""\n',
    "shop/billing/__init__.py": '"""Invoices: amounts, taxes and rounding."""\n',
    "shop/billing/tax.py": "from shop import billing\n",
    "tests/test_billing.py": "def test_tax():\n    pass\n",
}


class Agent:
    """What a model would call: tools by name. A call that is refused fails the test."""

    def __init__(self, client):
        self._client = client

    async def call(self, tool, **arguments):
        answer = await self._client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content[0].text
        return answer.structured_content

    async def read(self, name):
        return (await self._client.read_resource(f"memlab://{name}")).contents[0].text


def work(folder, day):
    """Run a coroutine function with an agent that is connected to a server process of its own."""
    words = ["-m", "memlab", "serve", str(folder), "--project", "shop", "--viewer", "agent:coder"]

    async def connected():
        process = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        async with Client(stdio_client(process)) as client:
            return await day(Agent(client))

    return run_alone(asyncio.wait_for(connected(), 120))


def test_an_agent_works_is_corrected_recalls_better_after_a_restart_and_gives_a_verdict(
    tmp_path, run
):
    folder, project = tmp_path / "agent.memlab", tmp_path / "shop"
    for name, text in PROJECT.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    assert run("agent", "scan", folder, project).exit_code == 0
    dice = random.Random(5)
    closed = {
        f"PAY-{number}": dice.choice(PEOPLE) for number in dice.sample(range(1_000, 9_999), 22)
    }
    when = "when do releases go out?"

    async def first(agent):
        files = ["shop/billing/tax.py"]
        result = await agent.call(
            "context", task="mend the rounding in the billing module", files=files
        )
        gotcha = "Amounts are rounded twice unless the tax is taken first"
        await agent.call("remember", text=gotcha, kind="gotcha", files=files)
        for ticket, person in closed.items():
            await agent.call("remember", text=f"Ticket {ticket} was closed by {person}")
        wrong = await agent.call("remember", text="Releases go out on Tuesday", kind="convention")
        asked = await agent.call("recall", query=when)
        answer = {"recall": asked["recall"], "answer": "Releases go out on Tuesday."}
        said = await agent.call("feedback", **answer, reply="No, on Friday!")
        right = await agent.call("remember", text="Releases go out on Friday", replaces=wrong["id"])
        return result["text"], asked["memories"][0]["id"], said["credited"], wrong["id"], right

    known, led, credited, wrong, right = work(folder, first)
    assert "Invoices: amounts, taxes and rounding" in known
    assert led == wrong
    assert right["superseded"] == [wrong]
    assert {item["memory"]: item["reward"] for item in credited}[wrong] < 0.1

    (tmp_path / "newest.hy").write_text(NEWEST)
    assert (
        run(
            "policy", "challenge", folder, "newest.hy", "--reason", "would the newest do?"
        ).exit_code
        == 0
    )

    async def second(agent):
        result = await agent.call("recall", query=when, limit=2)
        answer = {"recall": result["recall"], "answer": "Releases go out on Friday."}
        said = await agent.call("feedback", **answer, reply="Thanks, that is right.")
        await judge(agent)
        return result["memories"], said["credited"], await agent.read("verdict/zero")

    async def judge(agent):
        for ticket in closed:
            found = await agent.call("recall", query=f"who closed ticket {ticket}?", limit=2)
            right = [memory["id"] for memory in found["memories"] if ticket in memory["text"]]
            await agent.call("feedback", recall=found["recall"], memories=right, outcome="success")
        return await agent.read("verdict/zero")

    memories, credited, early = work(folder, second)
    # A verdict must hold without any one session, so there are three more.
    late = [work(folder, judge) for _ in range(3)][-1]
    assert memories[0]["id"] == right["id"]
    assert wrong not in {memory["id"] for memory in memories}
    assert {item["memory"]: item["reward"] for item in credited}[right["id"]] > 0.9
    assert "indistinguishable" in early
    assert "more recalls are needed" in early
    with memlab.open(folder) as lab:
        assert lab.memories["creator"].unique().to_list() == ["agent:coder"]
        (verdict,) = lab.verdict(missing="zero")
        assert (verdict.better, verdict.recalls, verdict.closed) == (
            "memlab",
            4 * len(closed) + 1,
            (),
        )
        assert verdict.sentence == late
    assert memlab.check(folder).sound
