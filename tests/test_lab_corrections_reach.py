"""A correction reaches what was derived from a memory: summary, fact, tags, edges, what was read from it, contexts."""

import polars as pl
import pytest
from embedders import letters

import memlab
from memlab.errors import InputError, NotPermitted, ReadOnlyLab, UnknownName
from memlab.kernel.verbs.projections import new_state


def kinds(lab):
    return [event.kind for event in lab.io.store.journal.events()]


def row(lab, id):
    return lab.memories.row(id - 1, named=True)


# -- what was derived from the text ----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_value_of_a_fact_follows_its_text_and_the_other_way_round():
    lab = memlab.open(pack="companion")
    fact = lab.facts.add("user", "lives-in", object="Rome", text="The user lives in Rome")
    result = lab.edit(fact, text="The user lives in Milan")
    assert (result.object, result.rebuilt) == ("Milan", ("object",))
    assert lab.facts.frame(status="active")["object"].to_list() == ["Milan"]
    moved = lab.edit(result, object="Oslo")
    assert (moved.id, moved.text, moved.object) == (3, "The user lives in Oslo", "Oslo")
    worker = lab.edit(moved, text="The user works at Acme")
    assert (worker.subject, worker.predicate, worker.object or worker.value) == (
        "user",
        "works-at",
        "Acme",
    )


@pytest.mark.parametrize("text", ["The user no longer lives in Rome", "The user went there once"])
def test_a_fact_that_the_new_text_does_not_state_is_dropped(text):
    lab = memlab.open(pack="companion")
    fact = lab.facts.add("user", "lives-in", object="Rome", text="The user lives in Rome")
    edited = lab.edit(fact, text=text)
    assert (edited.subject, edited.predicate, edited.object, edited.value) == (
        None,
        None,
        None,
        None,
    )
    assert edited.dropped == ("subject", "predicate", "object")
    assert "Rome" not in lab.facts.profile(budget_tokens=1000).text


def test_tags_by_path_follow_the_paths():
    lab = memlab.open(pack="cascade")
    memory = lab.remember(
        "It fails at times", kind="gotcha", files=["src/auth/handler.rs"], tags=["mine"]
    )
    assert set(lab[1].tags) >= {"mine", "rust", "auth"}
    assert set(lab.edit(memory, files=["src/billing/run.py"]).tags) == {"mine", "python", "billing"}
    edges = lab.edges.filter(relation="has-tag")["to"].to_list()
    assert sorted(edges) == ["billing", "mine", "python"]


@pytest.mark.long
def test_edges_of_the_old_words_go_and_stated_edges_stay():
    lab = memlab.open(pack="workbench")
    lab.remember(
        ["Tests run on every push", "Tests run on every push to main", "Ada owns the tests"]
    )
    lab.graph.link(2, 3, "caused-by", weight=0.5)
    lab.graph.link(2, 3, "relates-to", weight=0.4)
    lab.graph.link(1, 2, "contradicts", weight=0.9)
    edited = lab.edit(2, text="Lunch is at noon on Fridays")
    joined = lab.edges.filter(
        pl.col("relation").is_in(["caused-by", "relates-to", "contradicts", "similar-to"])
    )
    of_the_new = joined.filter(pl.col("source") == edited.id)
    assert set(of_the_new.select("target", "relation", "weight").rows()) == {
        (3, "caused-by", 0.5),
        (3, "relates-to", 0.4),
    }
    assert joined.filter(pl.col("relation").is_in(["contradicts", "similar-to"])).is_empty()


def test_new_words_are_linked_and_what_a_person_corrected_stays():
    lab = memlab.open(pack="workbench")
    lab.remember("The build uses make")
    lab.remember("Lunch is at noon")
    edited = lab.edit(2, text="The build uses make")
    assert [item.status for item in (lab[1], edited)] == ["active", "active"]
    assert lab.edges.filter(relation="similar-to").select("source", "target").rows() == [(3, 1)]
    assert "states the same" in " ".join(edited.notes)


@pytest.mark.long
def test_facts_and_observations_that_were_read_from_it_are_read_again():
    lab = memlab.open(pack="companion")
    text = "I live in Rome and I work at Acme"
    turn = lab.remember(text, kind="turn", speaker="user", session="s")
    lab.agents.commit(lab.agents.extract(text, session="s"))
    edited = lab.edit(turn, text="I live in Milan")
    now = lab.memories.filter(pl.col("status") == "active")["text"].to_list()
    assert set(now) == {
        "I live in Milan",
        'The user shared: "I live in Milan"',
        "The user lives in Milan",
    }
    assert (edited.rebuilt, edited.dropped) == (("extracted",), ("extracted",))
    assert lab.facts.profile().text == "The user lives in Milan."


def test_statements_of_other_speakers_are_not_read_again():
    lab = memlab.open(pack="companion")
    for session in ("s", "t"):
        lab.remember("I live in Rome", kind="turn", speaker="user", session=session)
    lab.agents.commit(lab.agents.extract("I live in Rome"))
    lab.edit(1, text="I live in Milan")
    assert lab.facts.profile().text == "The user lives in Rome."


@pytest.mark.long
def test_a_summary_that_quotes_it_is_undone():
    lab = memlab.open(embedder=letters, clock=(clock := memlab.ManualClock("2026-01-01")))
    goats = [
        f"the goat ate the {what} in the barn"
        for what in ("oats", "hay", "corn", "straw", "bread", "apples")
    ]
    ships = [
        f"a ship of {what} sails tonight"
        for what in ("iron", "coal", "sand", "wine", "salt", "wool")
    ]
    lab.remember([{"text": text, "kind": "observation"} for text in (*goats, *ships)])
    clock.advance(days=300)
    lab.graph.clusters.find()
    consolidation = lab.upkeep.consolidation.run(older_than_days=1, keep=0)
    summary = consolidation.frame["summary"][0]
    member = consolidation.frame["members"][0][0]
    edited = lab.edit(member, text="the horse slept")
    assert (edited.status, lab[summary].status, lab[member].status) == (
        "active",
        "forgotten",
        "superseded",
    )
    assert "consolidation" in edited.dropped
    assert lab.upkeep.consolidation.frame()["undone"].null_count() == len(consolidation.frame) - 1


def test_history_keeps_the_old_words(lab, clock):
    lab.remember("tabs", summary="about tabs")
    before = lab.io.store.journal.head
    clock.advance(days=1)
    lab.edit(1, text="spaces")
    then = lab.at(event=before)
    assert (then[1].text, then.memories["summary"].to_list()) == ("tabs", ["about tabs"])
    assert lab[1].text == "tabs"
    assert row(lab, 1)["summary"] == "about tabs"


@pytest.mark.long
def test_a_memory_that_was_injected_may_be_injected_again_once_it_is_edited():
    lab = memlab.open(pack="workbench")
    lab.remember("Deploy with make ship", kind="convention", project="p")
    ask = {"project": "p", "session": "s"}
    assert "make ship" in lab.context("deploy", **ask).text
    assert lab.context("deploy", **ask).text == ""
    lab.edit(1, text="Deploy with make deploy")
    assert "make deploy" in lab.context("deploy", **ask).text
    lab.edit(1, summary="Use make deploy, always")
    assert "always" in lab.context("deploy", **ask).text
    lab.edit(1, importance=0.9)
    assert lab.context("deploy", **ask).text == ""


@pytest.mark.long
def test_the_fold_of_a_prefix_and_the_rest_is_the_fold_of_all():
    lab = memlab.open(pack="companion")
    text = "I live in Rome and I work at Acme"
    lab.remember(text, kind="turn", speaker="user", session="s")
    lab.agents.commit(lab.agents.extract(text, session="s"))
    lab.remember("Deploy with make ship", tags=["ship"], summary="make ship")
    lab.context("deploy", session="s")
    lab.edit(1, text="I live in Milan")
    lab.edit(5, summary="ship it")
    lab.edit(5, text="Deploy with make deploy")
    events, journal = list(lab.io.store.journal.events()), lab.io.store.journal

    def folded(*parts):
        state = new_state()
        for part in parts:
            state.fold(part, journal)
        return state

    whole = folded(events)
    for cut in range(1, len(events)):
        other = folded(events[:cut], events[cut:])
        assert other.memories().equals(whole.memories())
        assert other.edge_frame().equals(whole.edge_frame())
        for name, projection in whole.projections.items():
            assert other.projections[name].dump() == projection.dump()


# -- bad input --------------------------------------------------------------------------------------------------------


def unchanged(lab, call, error, match):
    before, events = lab.memories, kinds(lab)
    with pytest.raises(error, match=match):
        call()
    assert lab.memories.equals(before)
    assert kinds(lab) == events


def test_an_edit_that_empties_a_text_is_refused(lab):
    lab.remember("tabs")
    for text in ("", "  ", "\n\t"):
        unchanged(lab, lambda text=text: lab.edit(1, text=text), InputError, "empty")


@pytest.mark.long
def test_purged_or_deleted_memories_are_not_edited(lab):
    lab.remember(["tabs", "spaces"])
    lab.forget(1, how="delete")
    unchanged(lab, lambda: lab.edit(1, text="other"), InputError, "deleted. Restore it first")
    lab.purge(1)
    unchanged(lab, lambda: lab.edit(1, text="other"), InputError, "purged. Its content is gone")


@pytest.mark.long
def test_a_memory_of_another_lab_is_not_edited(lab):
    lab.remember("tabs")
    with memlab.open() as other:
        foreign = other.remember("the neighbour's text")
        unchanged(lab, lambda: lab.edit(foreign, text="other"), InputError, "to another lab")
    unchanged(lab, lambda: lab.edit(7, text="other"), UnknownName, "memory")


@pytest.mark.long
def test_memories_the_caller_may_not_change_are_not_edited(lab):
    coder = lab.agents("coder", project="web")
    lab.remember("a private note", creator="agent:tutor", visibility="private")
    lab.remember("of the other project", project="api")
    mine = coder.remember("the parser has owners")
    unchanged(lab, lambda: coder.edit(1, text="other"), UnknownName, "memory")
    unchanged(lab, lambda: coder.edit(2, text="other"), UnknownName, "memory")
    lab.edit(mine, text="the parser has three owners", creator="user", visibility="project")
    unchanged(lab, lambda: coder.edit(mine.id, text="other"), NotPermitted, "changes only its own")
    unchanged(
        lab, lambda: lab.at(viewer="agent:coder").edit(2, text="other"), ReadOnlyLab, "view|read"
    )


def test_the_same_edit_twice_changes_nothing_and_says_so(lab, clock):
    lab.remember("tabs", tags=["x"])
    lab.edit(1, text="spaces", importance=0.9)
    before, events = lab.memories, kinds(lab)
    clock.advance(days=1)
    for given in ({"text": "spaces", "importance": 0.9}, {"text": "spaces"}, {"tags": ["x"]}):
        again = lab.edit(1, **given)
        assert again.id == 2
        assert again.notes[-1] == "Memory 2 is unchanged: it has these values already."
    assert lab.memories.equals(before)
    assert kinds(lab) == events
