"""``lab.agent(name).session(id)``: messages before an answer, credits and turns after it, learning at the end."""

import pytest

import memlab
from memlab.errors import InputError, NotPermitted


@pytest.fixture
def lab():
    lab = memlab.open()
    lab.agent("coder").remember("Deploys go out on Tuesdays", kind="convention")
    return lab


@pytest.mark.long
def test_messages_are_history_memories_and_the_text(lab):
    with lab.agent("coder").session("s1") as session:
        first = session.before("When do deploys go out?", system="Be brief.")
        assert [message["role"] for message in first] == ["system", "user"]
        assert "Deploys go out on Tuesdays" in first[1]["content"]
        assert first[1]["content"].endswith("\n\nWhen do deploys go out?")
        attributed = session.after("On Tuesdays.")
        assert attributed.frame["reward"].to_list() == pytest.approx([1.0])

        second = session.before("Thanks, and the tests?")
        assert second[:2] == [first[1], {"role": "assistant", "content": "On Tuesdays."}]
        # Nothing twice: the memory and the turns are in the history.
        assert second[2] == {"role": "user", "content": "Thanks, and the tests?"}
        session.after("They run first.")
    turns = lab.memories.filter(kind="turn", session="s1")
    assert turns["speaker"].to_list() == ["user", "assistant"] * 2
    assert turns["creator"].unique().to_list() == ["agent:coder"]
    assert session.learned is not None


@pytest.mark.long
def test_a_session_continues_in_another_process(tmp_path):
    with memlab.open(tmp_path / "lab") as lab, lab.agent("coder").session("s1") as session:
        lab.agent("coder").remember("Deploys go out on Tuesdays", kind="convention")
        session.before("When do deploys go out?")
        session.after("On Tuesdays.")
    with memlab.open(tmp_path / "lab") as lab, lab.agent("coder").session("s1") as session:
        messages = session.before("When do deploys go out, again?")
        assert [message["content"] for message in messages[:2]] == [
            "When do deploys go out?",
            "On Tuesdays.",
        ]
        # The context of the first process is not part of the stored history, so it comes again.
        assert "Deploys go out on Tuesdays" in messages[2]["content"]


@pytest.mark.long
def test_what_left_the_window_comes_again(lab):
    session = lab.agent("coder").session("s1", history=1)
    session.before("When do deploys go out?")
    session.after("On Tuesdays.")
    assert "<memory" not in session.before("Do deploys go out on Tuesdays?")[-1]["content"]
    session.after("Yes.")
    messages = session.before("When do deploys go out?")
    assert len(messages) == 3
    assert "Deploys go out on Tuesdays" in messages[-1]["content"]


@pytest.mark.long
def test_without_history_only_the_text_is_sent(lab):
    session = lab.agent("coder").session("s1", history=0)
    for _ in range(2):
        messages = session.before("When do deploys go out?")
        assert len(messages) == 1
        session.after("On Tuesdays.")


@pytest.mark.long
def test_a_correction_takes_credit_back(lab):
    session = lab.agent("coder").session("s1")
    session.before("When do deploys go out?")
    decision = session.context.decision
    session.after("On Tuesdays.")
    session.before("No, that is wrong.")
    credits = lab.agents.credits.frame.filter(decision=decision)
    assert credits["reward"].to_list() == [0.0]


@pytest.mark.long
def test_a_repeated_before_is_the_same_exchange(lab):
    session = lab.agent("coder").session("s1")
    session.before("When do deploys go out?")
    session.before("When do deploys go out?")
    session.after("On Tuesdays.")
    assert lab.memories.filter(kind="turn").height == 2
    with pytest.raises(InputError, match="call before"):
        session.after("On Tuesdays.")


@pytest.mark.long
def test_a_bad_answer_stores_nothing(lab):
    session = lab.agent("coder").session("s1")
    with pytest.raises(InputError):
        session.before("")
    session.before("When do deploys go out?")
    for answer in ("", 3):
        with pytest.raises(InputError):
            session.after(answer)
    assert lab.memories.filter(kind="turn").height == 0
    session.after("On Tuesdays.")
    assert lab.memories.filter(kind="turn").height == 2


def test_memory_that_is_off_stores_nothing_and_breaks_no_chat(lab):
    lab.agents.switch_off()
    with lab.agent("coder").session("s1") as session:
        assert session.before("Hello") == [{"role": "user", "content": "Hello"}]
        assert session.after("Hello!") is None
    assert session.learned is None
    assert lab.memories.filter(kind="turn").height == 0


@pytest.mark.long
def test_an_error_of_the_block_is_the_one_to_see(lab):
    def chat(session, *, end=None, fail=False):
        with session:
            session.before("I live in Rome.")
            session.after("Nice.")
            if end is not None:
                session._agent.end_session = end
            if fail:
                raise ZeroDivisionError

    def end(**_options):
        raise memlab.MemlabError("no model")

    session = lab.agent("coder").session("s1")
    with pytest.raises(ZeroDivisionError):
        chat(session, fail=True)
    assert session.learned is not None  # what was said before the error counts
    with pytest.raises(ZeroDivisionError):
        chat(lab.agent("coder").session("s2"), end=end, fail=True)
    with pytest.raises(memlab.MemlabError, match="no model"):
        chat(lab.agent("coder").session("s3"), end=end)


@pytest.mark.long
def test_a_reader_stores_nothing(lab):
    session = lab.agent("guest", role="reader").session("s1")
    session.before("When do deploys go out?")
    with pytest.raises(NotPermitted):
        session.after("On Tuesdays.")
    assert lab.memories.filter(kind="turn").height == 0


def test_a_session_is_still_the_name_of_one(lab):
    coder = lab.agent("coder", session="monday")
    assert coder.session == "monday"
    assert coder.session().name == "monday"
    assert lab.agents("coder", session="monday").session == coder.session
    with pytest.raises(InputError):
        coder.session("")
    with pytest.raises(InputError):
        coder.session("s", history=-1)
