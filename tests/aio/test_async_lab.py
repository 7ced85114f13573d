"""``AsyncLab``: the results, errors and order of ``Lab``, cancellation, and its types."""

import asyncio
import sys
import threading
import warnings
from pathlib import Path

import pytest

import memlab
from memlab.errors import LabError

sys.path.insert(0, str(Path(__file__).parents[1]))
from async_stub import STUB, write_stub


def run(main):
    return asyncio.run(main())


def hold(lab):
    """Occupy the lab's thread until the event is set; return the event and the task."""
    go = threading.Event()
    return go, asyncio.ensure_future(lab.run(go.wait))


@pytest.mark.long
def test_results_are_those_of_a_lab():
    def note(lab):
        lab.remember(["Deploys go out on Tuesdays", "The user prefers tabs"])

    plain = memlab.open()
    note(plain)

    async def main():
        async with memlab.AsyncLab() as lab:
            await lab.remember(["Deploys go out on Tuesdays", "The user prefers tabs"])
            hits = await lab.recall("when do deploys go out?")
            assert [(hit.id, hit.score) for hit in hits] == [
                (hit.id, hit.score) for hit in plain.recall("when do deploys go out?")
            ]
            assert (await lab.memories).height == 2
            assert (await lab[2]).text == "The user prefers tabs"
            assert (await lab.agents.observe("I like tea")).memory.kind == "preference"
            assert (await lab.policies.pack).name == "memlab"
            assert (await lab.policies["recall-score"]) == lab.lab.policies["recall-score"]
            assert await lab.run(hits[0].explain) is not None
            async with lab.agents.turns() as turns:
                await turns.offer("deploys")
                assert await turns.wait()
            past = await lab.at(event=3)
            assert (await past.memories).height == 2

    run(main)


def test_every_public_name_of_a_lab_is_there_and_no_other():
    async def main():
        async with memlab.AsyncLab() as lab:
            for name in dir(memlab.Lab):
                if not name.startswith("_"):
                    assert hasattr(lab, name), name
            with pytest.raises(AttributeError, match="no attribute 'recal'"):
                lab.recal("x")

    run(main)


def test_errors_are_those_of_a_lab():
    async def main():
        async with memlab.AsyncLab() as lab:
            with pytest.raises(memlab.InputError, match="limit is a whole number"):
                await lab.recall("x", limit=0)
            with pytest.raises(LookupError):
                await lab[7]
        with pytest.raises(LabError, match="closed"):
            await lab.recall("x")
        await lab.close()
        with pytest.raises(LabError, match="not open"):
            memlab.AsyncLab().recall("x")

    run(main)


@pytest.mark.long
def test_calls_are_coroutines_that_run_once():
    async def main():
        async with memlab.AsyncLab() as lab, asyncio.TaskGroup() as group:
            tasks = [group.create_task(lab.remember(f"note {i}")) for i in range(20)]
        assert [task.result().text for task in tasks] == [f"note {i}" for i in range(20)]
        async with memlab.AsyncLab() as lab:
            call = lab.remember("once")
            assert (await call).id == (await call).id
            assert len(await lab.memories) == 1

    run(main)


def test_a_forgotten_await_warns():
    async def main():
        async with memlab.AsyncLab() as lab:
            lab.remember("lost")
            lab.memories  # noqa: B018 - a name alone runs nothing
            assert len(await lab.memories) == 0

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(main)
    assert [str(warning.message) for warning in caught] == [
        "remember(...) was never awaited, so it did not run."
    ]


def test_a_cancelled_call_that_waits_never_begins():
    async def main():
        async with memlab.AsyncLab() as lab:
            go, holding = hold(lab)
            waiting = asyncio.ensure_future(lab.remember("never"))
            await asyncio.sleep(0)
            waiting.cancel()
            # The loop passes a cancellation on in its next step; the lab's thread must not be free before.
            await asyncio.sleep(0)
            go.set()
            await holding
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert len(await lab.memories) == 0

    run(main)


def test_a_cancelled_call_that_runs_is_completed():
    async def main():
        begun, go = threading.Event(), threading.Event()
        async with memlab.AsyncLab() as lab:

            def write():
                begun.set()
                go.wait()
                lab.lab.remember("whole")

            writing = asyncio.ensure_future(lab.run(write))
            await asyncio.to_thread(begun.wait)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            go.set()
            assert [*(await lab.memories)["text"]] == ["whole"]

    run(main)


def test_a_cancelled_opening_leaves_no_open_lab(tmp_path):
    async def main():
        opened = []
        go, lab = threading.Event(), memlab.AsyncLab(tmp_path / "lab")
        plain = lab._open

        def slowly():
            go.wait()
            opened.append(plain())
            return opened[0]

        lab._open = slowly
        opening = asyncio.ensure_future(lab.__aenter__())
        await asyncio.sleep(0.01)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        go.set()
        await lab.run(int)  # behind the opening, and the closing that follows it
        assert opened[0]._core.store.journal.closed

    run(main)


def test_the_end_of_a_block_is_completed_although_it_is_cancelled(tmp_path):
    async def main():
        lab = await memlab.AsyncLab.open(tmp_path / "lab")
        go, holding = hold(lab)
        closing = asyncio.ensure_future(lab.close())
        await asyncio.sleep(0.01)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        go.set()
        await holding
        while not lab.lab._core.store.journal.closed:
            await asyncio.sleep(0.001)

    run(main)


@pytest.mark.long
def test_a_session_is_async_too():
    async def main():
        async with memlab.AsyncLab() as lab:
            coder = lab.agent("coder")
            await coder.remember("Deploys go out on Tuesdays", kind="convention")
            async with coder.session("s1") as session:
                messages = await session.before("When do deploys go out?")
                assert "Tuesdays" in messages[-1]["content"]
                assert (await session.after("On Tuesdays.")) is not None
            assert await session.learned is not None
            turns = (await lab.memories).filter(kind="turn")
            assert turns["text"].to_list() == ["When do deploys go out?", "On Tuesdays."]

    run(main)


def test_listeners_may_be_coroutine_functions():
    async def main():
        heard = asyncio.Queue()

        async def hear(call):
            await heard.put((call.verb, call.arguments["query"]))

        async with memlab.AsyncLab() as lab:
            with await lab.on("recall", hear):
                await lab.recall("tabs?")
                assert await asyncio.wait_for(heard.get(), 5) == ("recall", "tabs?")
            await lab.recall("spaces?")
            await asyncio.sleep(0.01)
            assert heard.empty()

    run(main)


def test_an_open_lab_can_be_wrapped():
    lab = memlab.open()
    lab.remember("The user prefers tabs")

    async def main():
        async with memlab.AsyncLab(lab) as wrapped:
            assert wrapped.lab is lab
            return len(await wrapped.recall("tabs?"))

    assert run(main) == 1


@pytest.mark.long  # formatted by ruff, which the tests alone do not need
def test_the_types_are_those_of_the_sources():
    assert STUB.read_text(encoding="utf-8") == write_stub(), "run python tests/async_stub.py"
