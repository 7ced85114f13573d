"""Which memory superseded which is listed with the rule."""

import pytest

import memlab
from memlab.kernel.state import Change, build_values

pytestmark = pytest.mark.long


@pytest.fixture
def lab():
    with memlab.open(pack="workbench", clock=memlab.ManualClock("2026-06-01")) as opened:
        opened.remember("Deploy with make ship", kind="convention", project="p")
        opened.edit(1, text="Deploy with make deploy")
        opened.facts.add("Ada", "lives-in", object="Rome", confidence=0.9)
        opened.edit(3, text="Ada lives in Milan")
        yield opened


def test_supersessions_are_listed_by_rule(lab):
    lab.remember("We indent with tabs", kind="preference", project="q")
    lab.remember("We indent with spaces now, not tabs", kind="preference", project="q")
    lab.remember("goats", project="r")
    lab.remember("sheep", project="r")
    lab.graph.link(8, 7, "supersedes")
    listed = {
        row["memory_id"]: row["rule"]
        for row in lab.upkeep.review.supersessions().iter_rows(named=True)
    }
    assert listed[1] == listed[3] == "correction"
    assert listed[7] == "by hand"
    assert listed.get(5, "linking") == "linking"


def test_supersessions_name_the_policies_of_their_time():
    with memlab.open(pack="factgraph", clock=(clock := memlab.ManualClock("2026-01-01"))) as lab:
        lab.facts.add("Ada", "lives_in", object="Oslo", confidence=0.95)
        clock.advance(days=2)
        lab.facts.add("Ada", "lives_in", object="Bergen", confidence=0.95)
        live = lab.policies.pack
        lab.policies.use("memlab")
        row = lab.upkeep.review.supersessions().row(0, named=True)
        assert (row["memory_id"], row["superseded_by"], row["pack"]) == (1, 2, "factgraph")
        assert (row["rule"], row["pack_hash"], row["link_hash"]) == (
            "linking",
            live.hash,
            live.policies["link"].hash,
        )
        with lab.io.store.writing() as tx:
            gone = build_values([2], status="superseded")
            tx.event("resolve", Change(set=[gone]).body(), at=lab.io.store.clock())
        row = lab.upkeep.review.supersessions().row(1, named=True)
        assert (row["rule"], row["superseded_by"], row["pack"]) == ("unknown rule", None, "memlab")
