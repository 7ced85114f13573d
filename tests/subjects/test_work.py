"""Lessons of work: failed and passed commands, corrections, rules; what a session teaches is stored once."""

import polars as pl
import pytest

import memlab


def call(name, arguments, result, *, failed=False, id="t"):
    """A call of a tool and its result, as Claude Code writes them."""
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": arguments}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}]},
    ]  # fmt: skip


def bash(command, result, *, failed=False):
    return call("Bash", {"command": command}, result, failed=failed)


def edit(path):
    return call("Edit", {"file_path": path, "old_string": "a", "new_string": "b"}, "ok")


def user(text):
    return [{"role": "user", "content": text}]


def agent(text):
    return [{"role": "assistant", "content": text}]


def learn(*parts, lab=None, session="s1"):
    lab = memlab.open() if lab is None else lab
    lab.agents.end_session(session, [message for part in parts for message in part], project="p")
    return lab.memories


def test_a_command_that_failed_and_passed_is_a_gotcha_with_what_changed_between():
    frame = learn(
        user("Test the signer."),
        bash("pytest tests -q", "E   ModuleNotFoundError: No module named 'freezegun'\n1 error", failed=True),
        bash("pip install -r requirements/tests.txt", "Successfully installed freezegun"),
        edit("src/signer.py"),
        bash("uv run pytest tests -q", "12 passed"),
    )  # fmt: skip
    (row,) = frame.to_dicts()
    assert row["kind"] == "gotcha"
    assert row["text"] == (
        "`pytest tests -q` failed: ModuleNotFoundError: No module named 'freezegun'. "
        "`uv run pytest tests -q` passed instead. "
        "It passed after `pip install -r requirements/tests.txt` and a change of src/signer.py."
    )
    assert row["files"][0] == "src/signer.py"
    assert "pytest" in row["tags"]


def test_readers_and_repeated_failures_teach_nothing():
    frame = learn(
        user("Look."),
        bash("grep -rn x .", "", failed=True),
        bash("grep -rn y .", "src/a.py: y"),
        bash("make", "error: no rule", failed=True),
        bash("make", "error: no rule", failed=True),
    )
    assert not frame.height


def test_a_failure_without_any_file_is_a_quirk_of_the_environment():
    frame = learn(
        user("Build."), bash("make", "error: no rule", failed=True), bash("make all", "done")
    )
    assert frame["kind"].to_list() == ["environment-quirk"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Releases are always tagged without a leading v.", "convention"),
        ("We renamed the release branch: it is main now, no longer stable.", "correction"),
        ("No no. Say what changes for users, and the number goes last.", "human-feedback"),
        ("The changelog of the project lives in CHANGES.rst.", "context"),
    ],
)
def test_what_a_user_says_at_work(said, kind):
    frame = learn(user("Add a test to tests/test_a.py."), edit("tests/test_a.py"), user(said))
    assert frame["kind"].to_list() == [kind]
    assert frame["text"][0].startswith(said[:40])
    if kind == "human-feedback":
        assert frame["files"].to_list() == [["tests/test_a.py"]]


@pytest.mark.parametrize(
    "said",
    [
        "It must never fail.",  # without an object
        "Always that?",
        "I'll always remember this place.",
        "Thanks, looks good!",
        "Let's raise the limit for now in this PR only.",
        "We never know.",
    ],
)
def test_what_is_no_lesson(said):
    assert not learn(user("Fix a.py"), edit("a.py"), user(said)).height


def test_a_task_is_no_statement():
    assert not learn(
        user("The signer in src/signer.py returns bytes for text keys."), edit("a.py")
    ).height


def test_an_agent_that_repeats_its_user_is_not_quoted():
    frame = learn(
        user("Add it."),
        edit("a.py"),
        user("Releases are always tagged without a leading v."),
        agent("Understood: releases are always tagged without a leading v."),
    )
    assert frame["provenance"].to_list() == ["user-stated"]


def test_a_session_is_learned_once_even_after_its_lesson_was_corrected_or_forgotten():
    lab = memlab.open()
    first = [user("Add it."), edit("a.py"), user("The release branch is always called stable.")]
    later = [
        user("Go on."),
        edit("a.py"),
        user("The release branch is main now, no longer stable."),
    ]
    learn(*first, lab=lab)
    learn(*later, lab=lab, session="s2")
    learn(*first, lab=lab)
    assert lab.memories["status"].to_list() == ["superseded", "active"]
    lab.forget(2)
    learn(*later, lab=lab, session="s2")
    assert lab.memories.height == 2
    assert lab.memories.filter(pl.col("status") == "active").is_empty()


def test_talk_without_work_is_learned_as_before():
    lab = memlab.open()
    learned = lab.agents.end_session(
        "s", [{"role": "user", "content": "Important: never deploy on Fridays."}]
    )
    assert {item.rule for item in learned.extracted} & {"avoid", "cue"}


def test_calls_are_paired_with_their_results_in_order():
    frame = learn(
        user("Go"),
        [{"role": "assistant", "content": [
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "tox -e py311"}},
            {"type": "tool_use", "id": "2", "name": "Bash", "input": {"command": "ruff check src/a.py"}},
        ]}],
        [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "ok"},
            {"type": "tool_result", "tool_use_id": "2", "content": "error: E501 in src/a.py", "is_error": True},
        ]}],
        bash("ruff check src/a.py", "All checks passed"),
    )  # fmt: skip
    assert frame["text"].to_list() == [
        "`ruff check src/a.py` failed: error: E501 in src/a.py. It passed when it was run again, without a change."
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Mails go out through Mailgun, on the EU region.", "We moved off Mailgun, Postmark sends the mails."),
        ("FEED_CHUNK is 500, the endpoint chokes on more.", "I raised FEED_CHUNK, the new API takes 2000."),
    ],
)  # fmt: skip
def test_a_context_leaves_out_what_a_later_statement_of_the_project_corrects(old, new):
    lab = memlab.open()
    for session, text in (("s1", old), ("s2", new)):
        lab.remember(text, kind="convention", project="p", session=session)
    text = lab.context("mails and FEED_CHUNK", project="p").text
    assert new[:20] in text
    assert old[:20] not in text


def test_a_later_statement_with_a_common_word_corrects_nothing():
    lab = memlab.open()
    for session, text in (
        ("s1", "Exit with 2 when the file has bad rows."),
        ("s2", "follow eats the processor when the file is deleted."),
    ):
        lab.remember(text, kind="convention", project="p", session=session)
    assert lab.edges.filter(pl.col("relation") == "updates").is_empty()


def test_a_command_for_the_same_thing_replaces_one_that_never_passed():
    frame = learn(
        user("Build the css."),
        bash("npm install", "npm error Unsupported engine", failed=True),
        bash("pnpm install --frozen-lockfile", "Done"),
    )
    assert "`pnpm install --frozen-lockfile` passed instead" in frame["text"][0]
