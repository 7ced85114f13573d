"""An act on a memory that was edited reaches its corrections, whichever version the caller names."""

import pytest
from click.testing import CliRunner

import memlab
from memlab.errors import NotPermitted
from memlab.ui.cli import main

VERBS = {
    "forgotten": lambda lab, ids: lab.forget(ids),
    "deleted": lambda lab, ids: lab.forget(ids, how="delete"),
    "deprecated": lambda lab, ids: lab.forget(ids, how="deprecate", reason="wrong"),
}


@pytest.fixture
def lab():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as lab:
        lab.remember("The user indents with tabs")
        lab.edit(1, text="The user indents with four spaces")
        lab.edit(1, text="The user indents with two spaces")
        yield lab


def statuses(lab):
    return lab.memories["status"].to_list()


@pytest.fixture(params=VERBS)
def status(request):
    return request.param


@pytest.mark.long
def test_the_first_handle_reaches_every_correction(lab, status):
    done = VERBS[status](lab, 1)
    assert done.ids == (1, 2, 3)
    assert statuses(lab) == [status] * 3
    assert len(lab.recall("how does the user indent?", log=False)) == 0
    assert done.review.is_empty(), "no version of the memory is left to review"


def test_a_middle_handle_reaches_what_came_after_it(lab, status):
    assert VERBS[status](lab, 2).ids == (2, 3)
    assert statuses(lab) == ["superseded", status, status]


def test_the_newest_handle_reaches_itself_alone(lab, status):
    assert VERBS[status](lab, 3).ids == (3,)


def test_several_handles_of_one_memory_count_once(lab, status):
    assert VERBS[status](lab, [2, 3, 1]).ids == (2, 3, 1)


@pytest.mark.long
def test_restore_by_the_first_handle_undoes_the_act(lab, status):
    before = statuses(lab)
    VERBS[status](lab, 1)
    assert lab.restore(1).ids == (1, 2, 3)
    assert statuses(lab) == before == ["superseded", "superseded", "active"]
    (hit,) = lab.recall("how does the user indent?", log=False)
    assert hit.id == 3
    assert VERBS[status](lab, 1).ids == (1, 2, 3), "the chain is whole again"


def test_the_old_words_come_back_once_the_newest_alone_is_out_of_use(lab):
    lab.forget(3)
    lab.restore(2)
    assert statuses(lab) == ["superseded", "active", "forgotten"]
    assert lab.forget(1).ids == (1, 2), "a restored version is independent"


def test_restore_leaves_what_was_put_out_of_use_by_another_act(lab):
    lab.forget(3)
    lab.forget(1, how="delete")
    assert statuses(lab) == ["deleted"] * 3
    lab.restore(1)
    assert statuses(lab) == ["superseded", "superseded", "forgotten"]


def test_an_edit_of_a_forgotten_handle_edits_the_newest(lab):
    lab.forget(1)
    assert (
        "Memory 1 was edited before" in lab.edit(1, text="The user indents with one space").notes[0]
    )
    assert lab[4].status == "forgotten"
    assert lab.restore(1).ids == (1, 2, 4)
    assert statuses(lab) == ["superseded"] * 3 + ["active"]


def test_a_newer_fact_is_no_correction():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as lab:
        lab.remember("Ada lives in Paris")
        lab.remember("Ada lives in Rome")
        lab.agents.verify(
            lab.recall("Where does Ada live?"), [1, 2], relations={(2, 1): "supersedes"}
        )
        assert lab[1].status == "superseded"
        assert lab.forget(1).ids == (1,)
        assert lab[2].status == "active"


@pytest.mark.long
def test_a_purge_removes_the_named_memory_alone_and_lists_its_corrections(lab):
    done = lab.purge(1)
    assert done.ids == (1,)
    assert done.review["memory_id"].to_list() == [2]
    assert statuses(lab) == ["purged", "superseded", "active"]


def test_an_agent_is_refused_where_the_correction_is_not_its_own():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as lab:
        coder = lab.agents("coder", role="member")
        own = coder.remember("The user indents with tabs").id
        lab.edit(
            own,
            text="The user indents with four spaces",
            creator="user",
            agents=None,
            visibility=None,
        )
        before = lab.memories
        for act in (lambda: coder.edit(own, text="no"), lambda: coder.forget(own)):
            with pytest.raises(NotPermitted):
                act()
        assert lab.memories.equals(before)
        lab.forget(own)
        with pytest.raises(NotPermitted):
            coder.restore(own)


def test_an_agent_forgets_and_restores_its_own_by_the_first_handle():
    with memlab.open(clock=memlab.ManualClock("2026-06-01")) as lab:
        coder = lab.agents("coder", role="member")
        own = coder.remember("The user indents with tabs").id
        new = coder.edit(own, text="The user indents with four spaces").id
        assert coder.forget(own).ids == (own, new)
        assert coder.restore(own).ids == (own, new)
        assert statuses(lab) == ["superseded", "active"]


@pytest.mark.long
def test_the_command_line_says_which_corrections_were_reached(tmp_path):
    path = str(tmp_path / "lab")
    with memlab.open(path) as lab:
        lab.remember("The user indents with tabs")
        lab.edit(1, text="The user indents with four spaces")
    done = CliRunner().invoke(main, ["forget", path, "1"])
    assert done.output == "#1 is forgotten, with its corrections #2\n"
    with memlab.open(path) as lab:
        assert statuses(lab) == ["forgotten", "forgotten"]
