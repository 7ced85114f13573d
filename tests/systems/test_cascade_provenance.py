"""cascade: provenance is a chain. A second telling adds a record; a correction keeps what it corrected."""

import json

import pytest
from click.testing import CliRunner

import memlab
from memlab.ui.cli import main


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-06-01")


def told_twice(lab, clock):
    first = lab.remember(
        "The API listens on port 8080",
        session="monday",
        context="we discussed ports",
        reason="Ada said so",
    )
    clock.advance(days=3)
    again = lab.remember(
        "The API listens on port 8080.",
        session="thursday",
        context="a new colleague asked",
        provenance="observed",
    )
    assert again.id == first.id
    return first


def test_a_second_telling_adds_a_record(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        memory = told_twice(lab, clock)
        chain = lab.upkeep.review.provenance(memory)
        assert chain.select("how", "session", "context", "reason", "provenance").rows() == [
            ("told", "monday", "we discussed ports", "Ada said so", "user-stated"),
            ("told again", "thursday", "a new colleague asked", None, "observed"),
        ]
        assert [at.day for at in chain["at"]] == [1, 4]


@pytest.mark.long
def test_a_correction_is_part_of_the_chain(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        memory = told_twice(lab, clock)
        clock.advance(days=1)
        corrected = lab.edit(memory, text="The API listens on port 9090")
        chain = lab.upkeep.review.provenance(corrected)
        assert chain.select("memory_id", "how").rows() == [
            (1, "corrected"),
            (1, "told again"),
            (2, "told"),
        ]


@pytest.mark.long
def test_the_chain_survives_opening_again_exporting_and_asking_of_the_past(clock, tmp_path):
    with memlab.open(tmp_path / "lab", pack="cascade", clock=clock) as lab:
        memory = told_twice(lab, clock)
        chain = lab.upkeep.review.provenance(memory)
        assert lab.at("2026-06-02").upkeep.review.provenance(1).height == 1
        file = lab.io.export(tmp_path / "lab.jsonl")
    with memlab.open(tmp_path / "lab") as again:
        assert again.upkeep.review.provenance(1).equals(chain)
    with memlab.open(pack="cascade") as other:
        other.load(file)
        assert other.upkeep.review.provenance(1).equals(chain)
    output = CliRunner().invoke(main, ["show", str(tmp_path / "lab"), "1", "--json"]).output
    assert [item["session"] for item in json.loads(output)["provenance_chain"]] == [
        "monday",
        "thursday",
    ]


@pytest.mark.long
def test_a_purge_takes_the_records_of_what_goes(clock, tmp_path):
    with memlab.open(tmp_path / "lab", pack="cascade", clock=clock) as lab:
        memory = told_twice(lab, clock)
        lab.remember("Lunch is at noon", session="thursday")
        receipt = lab.purge(session="thursday")
        assert receipt.found.is_empty()
        assert lab.upkeep.review.provenance(memory)["how"].to_list() == ["told"]
        lab.purge(memory)
        assert "colleague" not in repr([event.body for event in lab.io.store.journal.events()])


@pytest.mark.long
def test_a_viewer_sees_the_provenance_of_visible_memories(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        private = {"visibility": "private", "creator": "agent:coder"}
        for session in ("a", "b"):
            lab.remember("The key is under the mat", session=session, **private)
        memory = told_twice(lab, clock)
        other = lab.at(viewer="agent:tester")
        assert other.upkeep.review.provenance(memory).height == 2
        with pytest.raises(memlab.errors.UnknownName):
            other.upkeep.review.provenance(1)
        assert lab.at(viewer="agent:coder").upkeep.review.provenance(1)["session"].to_list() == [
            "a",
            "b",
        ]
