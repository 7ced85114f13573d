"""Wrong memories of a code base: flagged, out of injection, and as they were when the flag was a mistake."""

import pytest

import memlab


@pytest.fixture
def lab(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        yield lab


@pytest.mark.long
def test_restore_gives_back_what_deprecate_took(lab, clock):
    memory = lab.remember("Use spaces", kind="convention")
    lab.forget(memory, how="deprecate", reason="flagged by the user")
    assert lab.memories["confidence"][0] == 0.25
    clock.advance(days=1)
    lab.restore(memory)
    assert lab.memories.select("confidence", "status").rows() == [(0.5, "active")]


@pytest.mark.long
def test_restore_undoes_the_last_flag_and_again(lab):
    memory = lab.remember("Use spaces", kind="convention")
    for _ in range(3):
        lab.forget(memory, how="deprecate", reason="flagged by the user")
        lab.restore(memory)
        assert lab.memories["confidence"][0] == 0.5


def test_fields_changed_since_are_not_reset(lab):
    memory = lab.remember("Use spaces", kind="convention")
    lab.forget(memory, how="deprecate", reason="flagged by the user")
    lab.edit(memory, confidence=0.7)
    lab.restore(memory)
    assert lab.memories["confidence"][0] == 0.7


def test_several_at_once_get_each_their_own(lab):
    memories = [
        lab.remember(f"note {n}", confidence=c, linking="off") for n, c in enumerate((0.2, 0.9))
    ]
    lab.forget(memories, how="deprecate", reason="flagged by the user")
    lab.restore(memories)
    assert lab.memories["confidence"].to_list() == [0.2, 0.9]
