"""``lab.on`` and the logger ``memlab``."""

import gc
import logging
import subprocess
import sys
import weakref

import pytest

import memlab
from memlab.errors import InputError, UnknownName
from memlab.kernel.base.logs import LOGGER
from memlab.subjects.listening import VERBS


@pytest.fixture(autouse=True)
def _logging(monkeypatch):
    """Undo what a test of the same process did: import-linter disables loggers that exist, a study all of them."""
    monkeypatch.setattr(LOGGER, "disabled", False)
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)
    LOGGER.manager._clear_cache()


@pytest.fixture
def lab():
    lab = memlab.open()
    lab.remember(["Deploys go out on Tuesdays", "The user prefers tabs"])
    return lab


@pytest.mark.long
def test_verbs_are_reported_however_they_are_called(lab):
    heard = []
    lab.on("*", heard.append)
    coder = lab.agent("coder")
    coder.remember("Run the tests first", kind="convention")
    context = coder.context("when do deploys go out?")
    coder.feedback(context.hits[0], "success")
    lab.agents.credits.answer("On Tuesdays.", context.hits)
    lab.agents.verify(lab.recall("tabs?"), [2])
    lab.agents.observe("I like tea")
    lab.edit(2, text="The user prefers spaces")
    lab.forget(1)
    lab.restore(1)
    lab.challenge("companion")
    lab.feedback(lab.recall("deploys?")[0], "fail")
    lab.verdict(missing="zero")
    lab.policies.install("recall-score", "(fn [recency] recency)")
    lab.policies.rollback("recall-score")
    lab.purge(3)
    lab.close()
    assert [call.verb for call in heard] == [
        *("remember", "recall", "feedback", "credit", "recall", "verify", "remember", "edit"),
        *("forget", "restore", "challenge", "recall", "feedback", "verdict", "install", "rollback"),
        *("purge", "close"),
    ]
    assert heard[1].arguments["query"] == "when do deploys go out?"
    assert heard[1].result.decision == context.decision
    assert all(call.error is None and call.seconds >= 0 for call in heard)
    assert {call.verb for call in heard} <= set(VERBS)


def test_recalls_of_turns_in_the_background_are_reported(lab):
    heard = []
    with lab.on("recall", heard.append), lab.agents.turns() as turns:
        turns.offer("when do deploys go out?")
        turns.wait()
    assert [call.arguments["query"] for call in heard] == ["when do deploys go out?"]


def test_an_error_of_a_verb_is_reported_and_raised(lab):
    heard = []
    lab.on("verdict", heard.append)
    with pytest.raises(InputError):
        lab.verdict()
    with pytest.raises(InputError, match="no argument"):
        lab.verdict(unknown=1)
    assert [type(call.error) for call in heard] == [InputError, InputError]
    assert heard[0].result is None


def test_an_error_of_a_listener_breaks_no_verb(lab, caplog):
    listener = lab.on("recall", lambda call: 1 / 0)
    with pytest.warns(UserWarning, match="ZeroDivisionError.*not affected"):
        assert len(lab.recall("tabs?")) == 2
    # Warnings are errors in these tests, and the verb still returns.
    other = lab.on("recall", lambda call: {}["missing"])
    assert len(lab.recall("tabs?")) == 2
    assert (listener.errors, other.errors) == (2, 1)
    assert caplog.text.count("A listener of recall failed") == 3


def test_a_listener_may_recall_without_being_called_again(lab):
    queries = []

    def listen(call):
        queries.append(call.arguments["query"])
        lab.recall("from the listener")

    with lab.on("recall", listen):
        lab.recall("tabs?")
    assert queries == ["tabs?"]


def test_without_listeners_nothing_is_replaced(lab):
    parts = (lab, lab._questions, lab._remembering, lab._judgements, lab._corrections)
    before = [set(vars(part)) for part in parts]
    first, second = lab.on("recall", print), lab.on("verdict", print)
    assert "ask" in vars(lab._questions)
    first.remove()
    first.remove()
    second.remove()
    assert [set(vars(part)) for part in parts] == before


@pytest.mark.long
def test_a_listened_lab_is_released():
    lab = memlab.open()
    lab.on("recall", print)
    gc.collect()
    gc.disable()
    try:
        released = weakref.ref(lab)
        del lab
        assert released() is None
    finally:
        gc.enable()


def test_a_past_lab_has_no_listeners(lab):
    heard = []
    lab.on("recall", heard.append)
    lab.at(event=3).recall("tabs?")
    assert heard == []


def test_bad_listeners_are_refused(lab):
    async def later(call): ...

    with pytest.raises(UnknownName, match="recall"):
        lab.on("recal", print)
    with pytest.raises(InputError, match="function of one argument"):
        lab.on("recall", 3)
    with pytest.raises(InputError, match="AsyncLab"):
        lab.on("recall", later)
    assert "ask" not in vars(lab._questions)


def test_the_log_of_the_program_names_writes_and_no_content(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, logger="memlab")
    with memlab.open(tmp_path / "agent.memlab") as lab:
        lab.remember("Deploys go out on Tuesdays", project="apollo")
        lab.recall("when do deploys go out?")
    levels = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert ("INFO", "agent.memlab: opened, 0 memories") in levels
    assert ("INFO", "agent.memlab: remember, event 3") in levels
    assert ("DEBUG", "agent.memlab: recall, event 4") in levels
    assert levels[-1] == ("INFO", "agent.memlab: closed")
    assert not any(word in caplog.text.lower() for word in ("tuesdays", "apollo", "deploys"))


@pytest.mark.long
def test_the_logger_is_silent_by_default():
    assert any(isinstance(handler, logging.NullHandler) for handler in LOGGER.handlers)
    program = (
        "import memlab; lab = memlab.open(); lab.remember('x'); lab.recall('x'); lab.close(); "
        "import sys; assert 'opentelemetry' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
