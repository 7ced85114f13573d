"""What corrections of earlier versions left in old words is found, rebuilt, and listed."""

import polars as pl
import pytest
from embedders import letters

import memlab
from memlab.kernel.privacy import screen
from memlab.kernel.state import Change, values_of, with_speaker
from memlab.kernel.verbs.corrections.editing import carried_fields, superseding
from memlab.kernel.verbs.projections import new_state
from memlab.kernel.verbs.remembering.rows import event_body


@pytest.fixture
def lab():
    """A lab as earlier versions left it: corrected, with the summary and the fact of the old words."""
    with memlab.open(pack="workbench", clock=memlab.ManualClock("2026-06-01")) as opened:
        opened.remember("Deploy with make ship", kind="convention", project="p")
        opened.edit(1, text="Deploy with make deploy")
        opened.facts.add("Ada", "lives-in", object="Rome", confidence=0.9)
        opened.edit(3, text="Ada lives in Milan")
        old = [values_of([2], summary=["Deploy with make ship"]), values_of([4], object=["Rome"])]
        with opened.io.store.writing() as tx:
            tx.event("edit", {"memory": 2, **Change(set=old).body()}, at=opened.io.store.clock())
        yield opened


def test_it_is_found_by_review_and_by_check(lab):
    assert lab.upkeep.review.stale().select("memory_id", "field", "holds").rows() == [
        (2, "summary", "Deploy with make ship"),
        (4, "object", "Rome"),
    ]
    found = lab.io.check()
    assert found.sound, "stale words are no damage"
    assert found.frame.filter(pl.col("state") == "stale")["part"].to_list() == ["memory 2", "memory 4"]


def test_it_is_rebuilt_by_events_once(lab):
    before = lab.log.height
    assert lab.upkeep.review.rebuild().height == 2
    assert lab.log.height == before + 2
    assert "make deploy" in lab.context("deploy", project="p").text
    assert "make ship" not in lab.context("deploy", project="p").text
    assert lab[4].object == "Milan"
    assert lab.upkeep.review.stale().is_empty()
    again = lab.log.height
    assert lab.upkeep.review.rebuild().is_empty()
    assert lab.log.height == again


def test_a_lab_on_disk_says_so_and_the_command_rebuilds(tmp_path, run):
    folder = tmp_path / "old.memlab"
    with memlab.open(folder, pack="workbench") as lab:
        lab.remember("Deploy with make ship", kind="convention")
        lab.edit(1, text="Deploy with make deploy")
        with lab.io.store.writing() as tx:
            old = Change(set=[values_of([2], summary=["Deploy with make ship"])])
            tx.event("edit", {"memory": 2, **old.body()}, at=lab.io.store.clock())
    assert memlab.check(folder).frame.filter(pl.col("state") == "stale").height == 1
    assert "1 fields rebuilt" in run("upkeep", "rebuild", str(folder)).output
    assert memlab.check(folder).frame.filter(pl.col("state") == "stale").height == 0


def test_supersessions_are_listed_by_rule(lab):
    lab.remember("We indent with tabs", kind="preference", project="q")
    lab.remember("We indent with spaces now, not tabs", kind="preference", project="q")
    lab.remember("goats", project="r")
    lab.remember("sheep", project="r")
    lab.graph.link(8, 7, "supersedes")
    listed = {row["memory_id"]: row["rule"] for row in lab.upkeep.review.supersessions().iter_rows(named=True)}
    assert listed[1] == listed[3] == "correction"
    assert listed[7] == "by hand"
    assert listed.get(5, "linking") == "linking"


def edit_as_before(lab, id, text):
    """What an edit wrote before corrections reached anything: every field is carried over, nothing is derived."""
    with lab.io.store.writing() as tx:
        state, now = lab.io.store.state, lab.io.store.clock()
        new = tx.next_id
        carried = {"provenance": "user-corrected", "source": "user-edit", **carried_fields(state, id - 1)}
        tx.payloads([new], [screen(text).text])
        speaker = carried.get("speaker")
        tx.vectors(new, lab.io.embedder.fingerprint, lab.io.embedder.encode([with_speaker(text, speaker)]))
        body = event_body(state, {name: [value] for name, value in carried.items()}, new, 1, chain=False)
        tx.event("remember", body | {"edit": id, **superseding(id, new, now).body()}, at=now)
    return new


def stale_of(lab):
    return set(lab.upkeep.review.stale().select("memory_id", "field").rows())


def test_every_kind_of_stale_words_is_found_and_rebuilt():
    with memlab.open(pack="companion", clock=(clock := memlab.ManualClock("2026-01-01"))) as lab:
        said = "I live in Rome and I work at Acme"
        turn = lab.remember(said, kind="turn", speaker="user", session="s").id
        lab.agents.commit(lab.agents.extract(said, session="s"))
        at = {text: id for id, text in lab.memories.select("id", "text").rows()}
        fact = edit_as_before(lab, at["The user lives in Rome"], "The user lives in Milan")
        edit_as_before(lab, turn, "I live in Milan")
        lab.policies.use("workbench")
        note = lab.remember("Deploy with make ship", kind="convention", project="p", tags=["ship"]).id
        other = lab.remember("Ada deploys", project="p", linking="off").id
        lab.graph.link(note, other, "caused-by")
        lab.graph.link(note, other, "contradicts")
        note = edit_as_before(lab, note, "Deploy with make deploy")
        steps = lab.remember("How to restart zephyr", kind="procedure", steps=["stop zephyr"], triggers=["zephyr"]).id
        steps = edit_as_before(lab, steps, "How to restart mistral")
        found = stale_of(lab)
        assert {(fact, "object"), (note, "summary"), (note, "tags"), (note, "edges"), (steps, "steps")} <= found
        assert (at["The user works at Acme"], "extracted") in found
        superseded = lab.upkeep.review.supersessions()
        clock.advance(days=1)
        assert set(lab.upkeep.review.rebuild().select("memory_id", "field").rows()) == found
        assert stale_of(lab) == set()
        assert lab.upkeep.review.supersessions().filter(
            pl.col("memory_id").is_in(superseded["memory_id"])
        ).height == len(superseded), "supersessions of the past stay"
        now = lab.memories.filter(pl.col("status").is_in(["active", "staged", "confirmed"]))
        assert not [word for word in ("Rome", "Acme", "ship", "zephyr") if word in str(now.rows())]
        joined = lab.edges.filter(pl.col("source") == note, pl.col("to_kind") == "memory")
        assert set(joined.select("target", "relation").rows()) >= {(other, "caused-by")}
        assert lab.edges.filter(relation="contradicts").is_empty()
        events = lab.log.height
        lab.upkeep.review.rebuild()
        assert lab.log.height == events


def test_a_summary_that_quotes_what_was_corrected_before_is_undone():
    with memlab.open(embedder=letters, clock=(clock := memlab.ManualClock("2026-01-01"))) as lab:
        goats = [f"the goat ate the {what} in the barn" for what in ("oats", "hay", "corn", "straw", "bread", "apples")]
        ships = [f"a ship of {what} sails tonight" for what in ("iron", "coal", "sand", "wine", "salt", "wool")]
        lab.remember([{"text": text, "kind": "observation"} for text in (*goats, *ships)], linking="off")
        clock.advance(days=300)
        lab.graph.clusters.find()
        made = lab.upkeep.consolidation.run(older_than_days=1, keep=0).frame
        summary, member = made["summary"][0], made["members"][0][0]
        new = edit_as_before(lab, member, "the horse slept")
        assert stale_of(lab) == {(summary, "consolidation")}
        lab.upkeep.review.rebuild()
        assert (lab[new].status, lab[summary].status) == ("active", "forgotten")
        assert lab[made["members"][0][1]].status == "active"


def test_what_an_edit_gave_itself_is_not_stale():
    with memlab.open(pack="workbench") as lab:
        lab.remember("Deploy with make ship", kind="convention", summary="Use make")
        lab.edit(1, text="Deploy with make deploy", summary="Use make")
        assert lab.upkeep.review.stale().is_empty()


def test_the_fold_of_a_rebuilt_lab_is_the_same_from_any_event_on():
    with memlab.open(pack="workbench") as lab:
        lab.remember("Deploy with make ship", kind="convention")
        lab.context("deploy", session="s")
        edit_as_before(lab, 1, "Deploy with make deploy")
        lab.upkeep.review.rebuild()
        events, journal = list(lab.io.store.journal.events()), lab.io.store.journal
        for cut in range(1, len(events)):
            state, whole = new_state(), new_state()
            whole.fold(events, journal)
            for part in (events[:cut], events[cut:]):
                state.fold(part, journal)
            assert state.memories().equals(whole.memories())
            assert {n: p.dump() for n, p in state.projections.items()} == {
                n: p.dump() for n, p in whole.projections.items()
            }


def test_supersessions_name_the_policies_of_their_time():
    with memlab.open(pack="factgraph", clock=(clock := memlab.ManualClock("2026-01-01"))) as lab:
        lab.facts.add("Ada", "lives_in", object="Oslo", confidence=0.95)
        clock.advance(days=2)
        lab.facts.add("Ada", "lives_in", object="Bergen", confidence=0.95)
        live = lab.policies.pack
        lab.policies.use("memlab")
        row = lab.upkeep.review.supersessions().row(0, named=True)
        assert (row["memory_id"], row["superseded_by"], row["pack"]) == (1, 2, "factgraph")
        assert (row["rule"], row["pack_hash"], row["link_hash"]) == ("linking", live.hash, live.policies["link"].hash)
        with lab.io.store.writing() as tx:
            gone = values_of([2], status="superseded")
            tx.event("resolve", Change(set=[gone]).body(), at=lab.io.store.clock())
        row = lab.upkeep.review.supersessions().row(1, named=True)
        assert (row["rule"], row["superseded_by"], row["pack"]) == ("unknown rule", None, "memlab")
