"""Operations run by the verbs of a lab, with fuel, and written into its journal."""

import json

import pytest

import memlab
from memlab.errors import PolicyLimitError, PolicyNameError
from memlab.subjects.programs import Fuel
from tests.displays import html_of

DAY = """
; a day of an agent
(remember "tabs are better than spaces" "preference" 0.8 "30d" ["style"])
(remember "spaces align tables" fact nil perpetual)
(associate 1 2 contradicts 0.5)
(recall "tabs or spaces" 2)
(feedback 1 "success")
(decay! 12)
(set-policy-fn decay (lambda (success fail base_half_ms) (* base_half_ms 2)))
(get-policy)
(adapt-policy)
(stats)
(trace 1 2)
(activate [1] 2 0.5 0.001)
"""


@pytest.fixture
def agent(trigrams, clock):
    with memlab.open(embedder=trigrams, clock=clock, pack="associative") as opened:
        yield opened


@pytest.mark.long
def test_a_day_in_operations(agent):
    ran = agent.upkeep.operations.run(DAY)
    assert ran.frame["operation"].to_list() == [
        *("remember", "remember", "associate", "recall", "feedback", "decay!"),
        *("set-policy-fn", "get-policy", "adapt-policy", "stats", "trace", "activate"),
    ]
    assert ran.frame["line"].to_list() == list(range(3, 15))
    first, second = agent.memories.to_dicts()
    assert (
        first["text"],
        first["kind"],
        first["importance"],
        first["ttl_days"],
        first["tags"],
    ) == (
        "tabs are better than spaces",
        "preference",
        0.8,
        30.0,
        ["style"],
    )
    assert (second["kind"], second["importance"], second["ttl_days"], first["success"]) == (
        "fact",
        0.5,
        None,
        1.0,
    )
    assert agent.policies.pack.settings["base-half-life"] == 12
    joined = agent.edges.filter(
        agent.edges["relation"] == "contradicts", agent.edges["to_kind"] == "memory"
    )
    assert joined.select("source", "target", "relation", "weight").row(0) == (
        1,
        2,
        "contradicts",
        0.5,
    )
    assert ran[3].value.ids == (1, 2)
    assert ran[3].rows[0]["text"] == first["text"]
    assert ran[9].result.startswith("2 memories")
    # A[2] = 1 * .5 * .5, and A[1] = 1 + .25 * .5 * .5 one step later, the tag aside.
    received = {(row["kind"], row["id"]): row["activation"] for row in ran[11].rows}
    assert received["memory", 2] > 0.25
    data = json.loads(ran.json())
    assert [step["operation"] for step in data["steps"]] == ran.frame["operation"].to_list()
    assert "12 operations" in repr(ran)
    assert "<table" in html_of(ran)


@pytest.mark.long
def test_a_run_and_its_actions_are_events(agent):
    ran = agent.upkeep.operations.run(DAY)
    events = list(agent.io.store.journal.events(after=ran.event - 1))
    assert events[0].kind == "run"
    assert events[0].body["operations"][0] == "remember"
    assert events[0].body["hash"] == ran.hash
    assert events[0].body["memory"] is None
    kinds = [event.kind for event in events[1:]]
    assert kinds[:3] == ["remember", "remember", "link"]
    assert {"recall", "feedback", "use", "install"} <= set(kinds)


def test_nothing_runs_where_anything_is_wrong(agent):
    head = agent.io.store.journal.head
    with pytest.raises(memlab.PolicyError):
        agent.upkeep.operations.run('(remember "a") (remember "b") (recal "a")')
    with pytest.raises(PolicyNameError, match="No memory has the id 2"):
        agent.upkeep.operations.run('(remember "a") (associate 1 2)')
    assert len(agent) == 0
    assert agent.io.store.journal.head == head


def test_an_error_midway_reports_the_completed_steps(agent):
    agent.policies.pin("half-life")
    with pytest.raises(memlab.InputError, match="pinned") as raised:
        agent.upkeep.operations.run(
            '(remember "a")\n(set-policy-fn decay (fn [base-half-days] base-half-days))'
        )
    assert "Operation 2 of 2, line 2" in raised.value.__notes__[0]
    assert "are done and stay" in raised.value.__notes__[0]
    assert len(agent) == 1


@pytest.mark.long
def test_fuel_bounds_operations_and_memories(agent):
    with pytest.raises(PolicyLimitError, match="There are 2 operations, and the fuel allows 1"):
        agent.upkeep.operations.run("(stats) (stats)", fuel=Fuel(operations=1))
    agent.remember([f"memory {n}" for n in range(20)])
    agent.policies.explore(True)  # a probe counts as a memory
    with pytest.raises(
        PolicyLimitError, match="may touch 10 memories, and the fuel has 4 of"
    ) as raised:
        agent.upkeep.operations.run(
            '(recall "memory" 5)\n(recall "memory" 10)', fuel=Fuel(memories=10)
        )
    assert raised.value.line == 2
    assert (
        agent.upkeep.operations.run(
            '(recall "memory" 5) (recall "memory" 5)', fuel=Fuel(memories=12)
        ).touched
        <= 12
    )
    for bad in (Fuel(operations=0), Fuel(memories=True)):
        with pytest.raises(memlab.InputError, match="fuel"):
            agent.upkeep.operations.run("(stats)", fuel=bad)


@pytest.mark.long
def test_consolidation_counts_its_members(agent, clock):
    agent.remember([f"the deploy of monday number {n} went out" for n in range(15)])
    agent.remember([f"grandma bakes an apple cake {n} times" for n in range(15)])
    agent.graph.link_waiting()
    clock.advance(days=400)
    with pytest.raises(PolicyLimitError, match="operation may touch"):
        agent.upkeep.operations.run("(consolidate)", fuel=Fuel(memories=1))
    ran = agent.upkeep.operations.run("(consolidate)")
    assert (
        ran.touched == agent.memories.filter(agent.memories["status"] == "consolidated").height > 1
    )
    assert ran[0].result == f"{ran.touched} memories became {len(ran[0].value)} summaries"


class TestDecay:
    """``(decay! days)`` is a logged change of the pack's text; what was installed over it stays."""

    def test_a_run_is_reversible_and_keeps_the_installed_pack(self, agent):
        before = agent.policies.pack
        agent.policies.install("recall-score", "(fn [activation] activation)")
        agent.upkeep.operations.run("(decay! 7)")
        assert agent.policies.pack.settings == {**before.settings, "base-half-life": 7.0}
        assert agent.policies["recall-score"].source == "(fn [activation] activation)"
        agent.policies.rollback()
        assert agent.policies.pack.settings["base-half-life"] == 30

    @pytest.mark.long
    def test_a_half_life_halves_what_is_left(self, agent, clock):
        """The log of a recall has ``recency`` = 0.5^(days / half-life)."""
        agent.remember("tabs")
        agent.upkeep.operations.run("(decay! 10)")
        clock.advance(days=20)
        score = agent.recall("tabs", log=False).slate.frame
        # success 0 and fail 0: the pack's half-life policy halves the base.
        assert score["recency"][0] == pytest.approx(0.5 ** (20 / 5))

    def test_a_pack_without_the_setting_gets_it(self, lab):
        lab.policies.use('(pack mine "x" :inherits cascade)\n(setting limit 3)')
        lab.upkeep.operations.run("(decay! 5)")
        assert lab.policies.pack.settings["base-half-life"] == 5
        assert lab.policies.pack.settings["limit"] == 3


class TestProposals:
    """A memory may hold operations; they are shown when it is recalled, and run on consent only."""

    TEXT = '(recall "release" 3)\n(remember "the release was announced" "event")'

    def test_a_bad_text_is_refused_when_it_is_remembered(self, lab):
        with pytest.raises(
            memlab.PolicyError, match="row 1, field operations, line 1, column 2"
        ) as raised:
            lab.remember([{"text": "a"}, {"text": "b", "operations": "(recal 1)"}])
        assert "^" in str(raised.value)
        assert not len(lab)
        with pytest.raises(PolicyLimitError, match="more than 100 operations"):
            lab.remember("a", operations="(stats)" * 101)

    def test_a_recall_runs_nothing_and_shows_what_would_be_done(self, lab):
        lab.remember("on release day, announce it", operations=self.TEXT)
        hits = lab.recall("release day")
        assert len(lab) == 1
        (proposal,) = lab.upkeep.operations.proposals(hits)
        assert proposal.memory == 1
        assert proposal.frame["does"].to_list() == ["reads", "adds"]
        assert "on your consent" in repr(proposal)
        assert "<table" in html_of(proposal)
        assert lab.upkeep.operations.proposals([]) == ()

    def test_an_operation_with_consent_runs_and_names_its_proposer(self, lab):
        memory = lab.remember("on release day, announce it", operations=self.TEXT)
        for refused in (memory, memory.id, lab.recall("release day")[0]):
            with pytest.raises(memlab.InputError, match="consent=True"):
                lab.upkeep.operations.run(refused)
        with pytest.raises(memlab.InputError, match="consent is True or False"):
            lab.upkeep.operations.run(memory, consent="yes")
        assert len(lab) == 1
        ran = lab.upkeep.operations.run(memory, consent=True)
        assert ran.memory == 1
        assert lab[2].kind == "event"
        logged = next(event for event in lab.io.store.journal.events(kinds=("run",)))
        assert logged.body["memory"] == 1
        with pytest.raises(memlab.InputError, match="has no operations"):
            lab.upkeep.operations.run(lab[2], consent=True)

    @pytest.mark.long
    def test_a_proposal_runs_as_it_was_shown(self, lab):
        from memlab.kernel.state import Change, build_values

        memory = lab.remember("release", operations='(recall "release")')
        (shown,) = lab.upkeep.operations.proposals(memory)
        with lab.io.store.writing() as tx:
            change = Change(set=[build_values([1], operations='(remember "something else")')])
            tx.event("edit", change.body(), at=0)
        lab.upkeep.operations.run(shown, consent=True)
        assert len(lab) == 1

    def test_a_retrieved_program_does_not_run(self, lab):
        lab.remember("inner", operations='(remember "inner was here")')
        outer = lab.remember("outer", operations='(recall "inner" 5)')
        lab.upkeep.operations.run(outer, consent=True)
        assert "inner was here" not in lab.memories["text"].to_list()

    def test_fuel_holds_for_it_too(self, lab):
        memory = lab.remember("x", operations='(remember "a") (remember "b")')
        with pytest.raises(PolicyLimitError):
            lab.upkeep.operations.run(memory, consent=True, fuel=Fuel(memories=1))

    def test_a_text_of_a_later_version_is_shown_and_not_run(self, lab):
        from memlab.kernel.state import Change, build_values

        lab.remember("x")
        with lab.io.store.writing() as tx:
            tx.event(
                "edit", Change(set=[build_values([1], operations="(teleport 1)")]).body(), at=0
            )
        (proposal,) = lab.upkeep.operations.proposals(1)
        assert proposal.program is None
        assert "teleport" in proposal.problem
        with pytest.raises(memlab.InputError, match="cannot be run"):
            lab.upkeep.operations.run(1, consent=True)


def test_a_memory_as_an_s_expression(lab):
    from memlab.kernel.language.reader import Text, read_forms

    memory = lab.remember('say "hi"\n', kind="preference", tags=["a", "b"], at="2026-01-01")
    assert memory.sexp == (
        '(memory :id 1 :text "say \\"hi\\"\\n" :kind "preference" :tags ["a" "b"] :status "active" '
        ':created "2026-01-01T00:00:00+00:00" :access 0)'
    )
    assert read_forms(Text(memory.sexp))[0].head == "memory"


def test_a_file_of_operations(lab, tmp_path):
    path = tmp_path / "day.hy"
    path.write_text('(remember "tabs")\n(recal)')
    with pytest.raises(PolicyNameError, match=r"day.hy, line 2, column 2"):
        lab.upkeep.operations.run(path)
    path.write_text('(remember "tabs")')
    assert lab.upkeep.operations.run(path)[0].value.text == "tabs"
    with pytest.raises(memlab.InputError, match="cannot be read"):
        lab.upkeep.operations.run(tmp_path / "nowhere.hy")
