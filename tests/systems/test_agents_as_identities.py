"""Several agents on one lab: own memories, shared facts about the user, and separate projects."""

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, NotPermitted, UnknownName


@pytest.fixture
def companion(clock):
    with memlab.open(pack="companion", clock=clock) as lab:
        yield lab


@pytest.fixture
def workbench(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        yield lab


class TestCompanion:
    def test_an_agents_memories_are_its_own(self, companion):
        coach, tutor = companion.agents("coach"), companion.agents("tutor")
        coach.remember("We laughed about the goat", kind="event")
        assert [hit.text for hit in coach.recall("the goat we laughed about")] == [
            "We laughed about the goat"
        ]
        assert len(tutor.recall("the goat we laughed about")) == 0
        assert (coach.memories.height, tutor.memories.height) == (1, 0)
        assert companion.memories["creator"].to_list() == ["agent:coach"]

    @pytest.mark.long
    def test_a_fact_is_one_with_both_as_sources(self, companion):
        for name in ("coach", "tutor"):
            companion.agents(name).remember("User likes farm animals", kind="preference")
        assert companion.memories.select("text", "agents").rows() == [
            ("User likes farm animals", ["agent:coach", "agent:tutor"])
        ]
        for name in ("coach", "tutor"):
            assert len(companion.agents(name).recall("does the user like farm animals?")) == 1

    def test_the_relationship_is_the_agents(self, companion):
        tutor = companion.agents("tutor")
        tutor.remember("User likes farm animals", kind="preference")
        tutor.conversation()
        tutor.feedback(tutor.recall("does the user like farm animals?")[0], "success")
        (row,) = companion.agents.relationships().to_dicts()
        assert (row["agent"], row["trust"], row["familiarity"]) == ("tutor", 51.0, 1.0)

    @pytest.mark.long
    def test_lessons_of_a_session_are_the_agents_and_its_facts_are_shared(self, companion):
        tutor, coach = companion.agents("tutor", session="monday"), companion.agents("coach")
        learned = tutor.end_session(
            [{"role": "user", "content": "I live in Rome. Yesterday I visited my sister."}]
        )
        assert learned.session == "monday"
        rows = companion.memories.select("kind", "creator", "visibility", "agents").rows()
        facts = [row for row in rows if row[0] == "personal"]
        own = [row for row in rows if row[0] != "personal"]
        assert facts
        assert own
        assert {row[1:3] for row in facts} == {("agent:tutor", "project")}
        assert {row[1:3] for row in own} == {("agent:tutor", "private")}
        assert {tuple(row[3]) for row in rows} == {("agent:tutor",)}
        assert [hit.text for hit in coach.recall("where does the user live?")] == [
            "The user lives in Rome"
        ]

    @pytest.mark.long
    def test_a_gap_of_one_agent_is_none_of_another(self, companion):
        companion.remember("The bakery opens at six", kind="event", visibility="project")
        tutor, coach = (companion.agents(name, session="monday") for name in ("tutor", "coach"))
        with tutor.turns(verifier=lambda hits: []) as turns:
            turns.offer("when does the bakery open?")
            assert turns.wait(60)
        assert tutor.end_session().gaps.height == 1
        assert coach.end_session([]).gaps.height == 0


class TestWorkbench:
    def test_an_agent_writes_only_to_its_own_project(self, workbench):
        coder = workbench.agents("coder", project="api")
        coder.remember("Tests run with pytest -n auto", kind="convention")
        assert workbench.memories.select("project", "visibility").row(0) == ("api", "project"), (
            "as the pack says"
        )
        with pytest.raises(
            NotPermitted,
            match='agent:coder belongs to the project "api", and neither reads nor writes "web"',
        ):
            coder.remember("Tests run with tox", kind="convention", project="web")
        with pytest.raises(NotPermitted, match="leave `project` out"):
            coder.recall("tests", project="web")
        with pytest.raises(NotPermitted, match="leave `project` out"):
            coder.edit(1, project="web")
        assert len(workbench) == 1

    def test_an_agent_is_nobody_else(self, workbench):
        coder = workbench.agents("coder", project="api")
        for field in (
            {"creator": "user"},
            {"creator": "agent:reviewer"},
            {"agents": ["agent:reviewer"]},
        ):
            with pytest.raises(NotPermitted, match="only in its own name"):
                coder.remember("Tests run with tox", **field)
        assert len(workbench) == 0

    @pytest.mark.long
    def test_an_agent_deletes_no_memory_of_another(self, workbench):
        coder, reviewer = (workbench.agents(name, project="api") for name in ("coder", "reviewer"))
        theirs = reviewer.remember("Never merge on a Friday", kind="convention")
        users = workbench.remember(
            "I prefer tabs", kind="preference", creator="user", project="api"
        )
        other = workbench.remember("Tests run with tox", project="web", creator="agent:coder")
        with pytest.raises(
            NotPermitted,
            match=r"Memory 1 is of agent:reviewer, and agent:coder changes only its own",
        ):
            coder.forget(theirs)
        with pytest.raises(UnknownName):
            coder.forget(users)
        with pytest.raises(UnknownName):
            coder.forget(other)
        assert workbench.memories["status"].unique().to_list() == ["active"]
        assert reviewer.forget(theirs).ids == (1,)
        assert reviewer.restore(theirs).ids == (1,)
        assert workbench.agents("lead", project="api", role="owner").forget(theirs).ids == (1,)

    def test_a_users_memories_are_private_to_the_user(self, workbench):
        """Private is the default for what a user writes; the project's for what an agent writes."""
        note = workbench.remember(
            "My private note on the token refresh", creator="user", project="api"
        )
        assert workbench.memories["visibility"].to_list() == ["private"]
        coder = workbench.agents("coder", project="api")
        assert len(coder.recall("my private note on the token refresh")) == 0
        assert str(coder.context("my private note on the token refresh")) == ""
        with pytest.raises(UnknownName):
            coder.feedback(note, "success")
        with pytest.raises(UnknownName):
            coder.edit(note, importance=0.1)

    @pytest.mark.long
    def test_fifty_memories_a_session(self, workbench):
        coder = workbench.agents("coder", project="api")
        coder.remember(
            [f"Module {row} belongs to team {row * 7}" for row in range(50)], linking="off"
        )
        assert workbench.memories["session"].unique().to_list() == [coder.session]
        with pytest.raises(InputError, match="written 50 memories in session"):
            coder.remember("One too many")
        workbench.agents("coder", project="api", session="tuesday").remember(
            "The next session may go on"
        )

    def test_a_reader_only_recalls(self, workbench):
        workbench.agents("coder", project="api").remember(
            "Tests run with pytest -n auto", kind="convention"
        )
        guest = workbench.agents("guest", project="api", role="reader")
        hits = guest.recall("how do tests run?")
        assert [hit.id for hit in hits] == [1]
        acts = [
            lambda: guest.remember("x"),
            lambda: guest.remember(["x"]),
            lambda: guest.forget(1),
            lambda: guest.edit(1, importance=0.1),
            lambda: guest.restore(1),
            lambda: guest.feedback(hits[0], "success"),
            lambda: guest.conversation(),
            lambda: guest.end_session(["I live in Rome"]),
        ]
        for act in acts:
            with pytest.raises(NotPermitted, match="agent:guest is a reader"):
                act()

    def test_the_same_agent_by_either_name(self, workbench):
        assert (
            workbench.agents("agent:coder", session="s").name
            == workbench.agents("coder", session="s").name
        )
        with pytest.raises(InputError, match="1 to 1000 characters"):
            workbench.agents("")
        with pytest.raises(UnknownName, match='no role "boss"'):
            workbench.agents("coder", role="boss")

    def test_turns_are_asked_as_the_agent(self, workbench):
        workbench.remember("My private note on the token refresh", creator="user", project="api")
        coder = workbench.agents("coder", project="api")
        coder.remember("The token refresh races with two tabs", kind="gotcha")
        with coder.turns() as turns:
            turns.offer("fix the token refresh")
            assert turns.wait(60)
            assert [hit.id for hit in turns.offer("and on")] == [2]


@pytest.mark.parametrize("pack", ["memlab", "associative", "cascade", "workbench"])
def test_a_fact_that_two_agents_state_in_the_same_words_is_one_under_every_pack(clock, pack):
    with memlab.open(pack=pack, clock=clock) as lab:
        for name in ("coach", "tutor"):
            lab.agents(name).remember("The user works at Acme", kind="personal")
        lab.graph.link_waiting()
        used = lab.memories.filter(pl.col("status") == "active")
        assert used.select("text", "agents").rows() == [
            ("The user works at Acme", ["agent:coach", "agent:tutor"])
        ]


def test_a_fact_of_a_graph_is_one_with_both_as_sources(clock):
    with memlab.open(pack="factgraph", clock=clock) as lab:
        for name, text in (("coach", "The user works at Acme"), ("tutor", "Acme employs the user")):
            lab.agents(name).remember(text, subject="user", predicate="works-at", value="Acme")
        assert lab.memories["agents"].to_list() == [["agent:coach", "agent:tutor"]]


def test_an_explicit_non_fact_is_the_agents_own(clock):
    with memlab.open(clock=clock) as lab:
        tutor = lab.agents("tutor")
        tutor.remember("Fractions went badly")
        tutor.remember("Fractions are taught on Mondays", kind="fact")
        tutor.remember("Fractions need pictures", visibility="project")
        assert lab.memories["visibility"].to_list() == ["private", "project", "project"]


CREATORS = (None, "user", "agent:coder", "agent:tutor")
SOURCES = (
    (),
    ("agent:coder",),
    ("agent:tutor",),
    ("agent:coder", "agent:tutor"),
    ("agent:tutor", "agent:coder"),
)
CHANGES = {
    "edit": lambda agent, memory: agent.edit(memory, importance=0.1),
    "forget": lambda agent, memory: agent.forget(memory),
    "restore": lambda agent, memory: agent.restore(memory),
}


@pytest.mark.long
@pytest.mark.parametrize("act", CHANGES)
@pytest.mark.parametrize("role", ["reader", "member", "owner"])
def test_a_member_changes_only_its_own_memories_without_other_contributors(lab, role, act):
    coder = lab.agents("coder", role=role)
    for creator in CREATORS:
        for sources in SOURCES:
            fields = {"creator": creator} if creator else {}
            memory = lab.remember(
                "x", visibility="project", agents=list(sources), linking="off", **fields
            )
            if act == "restore":
                lab.forget(memory)
            before = lab.memories
            own = creator == "agent:coder" and set(sources) <= {"agent:coder"}
            if role == "owner" or (role == "member" and own):
                CHANGES[act](coder, memory)
                continue
            with pytest.raises(NotPermitted) as refused:
                CHANGES[act](coder, memory)
            assert lab.memories.equals(before)
            if role == "member" and creator == "agent:coder":
                assert f"Memory {memory.id} is shared with agent:tutor" in str(refused.value)


def test_a_memory_of_another_keeps_its_named_fields(lab):
    coder, tutor = lab.agents("coder"), lab.agents("tutor")
    mine = coder.remember("mine", visibility="project")
    theirs = tutor.remember("theirs", visibility="project")
    for chosen in ([mine, theirs], [theirs, mine]):
        with pytest.raises(NotPermitted, match=f"Memory {theirs.id} is of agent:tutor"):
            coder.forget(chosen)
    assert lab.memories["status"].to_list() == ["active", "active"]


def test_a_fact_that_another_agent_confirmed_is_no_longer_ones_own(companion):
    coach, tutor = companion.agents("coach"), companion.agents("tutor")
    fact = coach.remember("User likes farm animals", kind="preference")
    coach.edit(fact, importance=0.9)
    assert companion.memories["importance"].to_list() == [0.9]
    tutor.remember("User likes farm animals", kind="preference")
    for act in CHANGES.values():
        with pytest.raises(NotPermitted, match="shared with agent:tutor"):
            act(coach, fact)
        with pytest.raises(NotPermitted, match="of agent:coach"):
            act(tutor, fact)
    assert companion.agents("chief", role="owner").forget(fact).ids == (fact.id,)
