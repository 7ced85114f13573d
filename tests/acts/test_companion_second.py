"""Acts of the companion design, written from its description and the public reference alone."""

import time
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import memlab


def given(vectors):
    """Return an embedder that gives the texts named in vectors their vector, and any other text an axis of its own."""

    def encode(texts):
        rows = [list(vectors.get(text, (0.0, 0.0, 0.0, 1.0))) for text in texts]
        return pl.DataFrame(rows, schema={axis: pl.Float64 for axis in "abcd"}, orient="row").to_numpy()

    return encode


def letters(texts):
    """Stand in for a remote embedding service: count letters."""
    rows = [[1.0 + text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    return pl.DataFrame(rows, schema={f"c{i}": pl.Float64 for i in range(26)}, orient="row").to_numpy()


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-02")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="companion", clock=clock) as opened:
        yield opened


@pytest.mark.long
def test_01_an_agent_keeps_an_observation_of_its_own(lab, clock):
    """A tutor notes an observation: it begins with the defaults, only the tutor recalls it, and that use is counted.

    Design: "*Agent memories*, one agent's: ... strength 0-100 (starts 100), emotional weight 0-100 (default 5),
    created, last recalled, recall count".
    """
    tutor, coach = lab.agents("tutor"), lab.agents("coach")
    note = tutor.remember("Ravi went quiet when long division came up, so we got the lego bricks", kind="observation")
    new = lab.memories.filter(id=note.id).row(0, named=True)
    assert (new["strength"], new["emotional_weight"], new["access"]) == (100, 5, 0)
    assert new["creator"] == "agent:tutor"
    clock.advance(days=1)
    assert len(coach.recall("how did Ravi do with long division and the lego bricks?")) == 0
    assert tutor.recall("how did Ravi do with long division and the lego bricks?").ids == (note.id,)
    used = lab.memories.filter(id=note.id).row(0, named=True)
    assert used["access"] == 1
    assert used["created"] == datetime(2026, 3, 2, tzinfo=UTC)
    assert used["accessed"] == datetime(2026, 3, 3, tzinfo=UTC)


@pytest.mark.long
def test_02_a_fact_about_the_user_is_shared_by_all_agents(lab):
    """Two agents state one thing about the user: it is one fact with both as contributors, and a third agent knows it.

    Design: "*user facts*, shared by all agents: category (personal, ...), confidence 0-100 (default 80), contributing
    agents".
    """
    for name in ("tutor", "coach"):
        lab.agents(name).remember("The user is allergic to shellfish", kind="personal")
    facts = lab.memories.filter(kind="personal", status="active")
    assert facts.height == 1
    assert set(facts["agents"][0]) == {"agent:tutor", "agent:coach"}
    assert facts["confidence"][0] == pytest.approx(0.8)
    hits = lab.agents("planner").recall("what is the user allergic to, shellfish?")
    assert hits.ids == (facts["id"][0],)


def test_03_a_relationship_grows_with_conversations_and_judgements(lab):
    """An agent has two conversations, one recall that helped and one that did not: familiarity and trust follow.

    Design: "familiarity += (100 - familiarity) * 0.01 a conversation; trust += 1 a helpful recall, - 2 an unhelpful
    one"; trust begins at 50 by systems.txt, Settings of each pack.
    """
    mentor = lab.agents("mentor")
    assert mentor.conversation().familiarity == pytest.approx(1.0)
    assert mentor.conversation().familiarity == pytest.approx(1.99)
    lab.remember("The user rehearses the pitch on Thursday evenings", kind="preference")
    mentor.feedback(mentor.recall("when does the user rehearse the pitch?")[0], "success")
    known = lab.agents.relationships()
    assert known.height == 1
    assert known["trust"][0] == pytest.approx(51)
    mentor.feedback(mentor.recall("does the user rehearse the pitch in the evenings?")[0], "fail")
    row = lab.agents.relationships().row(0, named=True)
    assert row["trust"] == pytest.approx(49)
    assert (row["conversations"], row["helpful"], row["unhelpful"]) == (2, 1, 1)


def test_04_small_talk_commands_and_plain_questions_are_skipped(lab):
    """The user greets, pastes code, gives a command or asks plainly: nothing is stored, and the answer says why.

    Design: "skip greetings, code and commands, plain questions ("what is", "how do I")"; "the answer carries a reason
    and a confidence".
    """
    for said, reason in [
        ("Good morning!", "greets"),
        ("thanks so much, bye!", "greets"),
        ("```python\nfor row in rows:\n    print(row.total)\n```", "holds-code"),
        ("Run the linter on the payments folder", "commands"),
        ("What is the difference between TCP and UDP?", "asks-plainly"),
        ("How do I undo the last git commit?", "asks-plainly"),
    ]:
        seen = lab.agents.observe(said)
        assert seen.memory is None, said
        assert not seen.admission.admitted, said
        assert reason in seen.admission.reasons, said
        assert 0 <= seen.admission.confidence <= 1, said
    assert lab.memories.height == 0


@pytest.mark.long
def test_05_what_users_tell_of_themselves_is_kept(lab):
    """The user says who they are, what they like, want or did: it is stored as stated by the user, with the reason.

    Design: 'extract "I am", "my name is", "I like / prefer", "I want to / plan to", "yesterday / recently I"'; kinds
    and provenance by reference-lab.txt, observe.
    """
    for said, reason in [
        ("I am a night porter at the hospital in Trondheim", "tells-identity"),
        ("my name is Thandiwe btw", "tells-identity"),
        ("I prefer tea to coffee in the afternoon", "tells-preference"),
        ("I like hiking way more than the gym", "tells-preference"),
        ("I plan to repaint the boat before summer", "tells-goal"),
        ("I want to learn enough Czech to order lunch", "tells-goal"),
        ("Yesterday I missed the last ferry and slept at the terminal", "tells-event"),
        ("Recently I sold the old piano to a neighbour", "tells-event"),
    ]:
        seen = lab.agents.observe(said)
        assert seen.memory is not None, said
        assert reason in seen.admission.reasons, said
        assert seen.memory.text == said
        if reason == "tells-preference":
            assert seen.memory.kind == "preference", said
    assert set(lab.memories["provenance"]) == {"user-stated"}


@pytest.mark.long
def test_06_telling_wins_over_greeting_and_asking(lab):
    """A message greets or asks and also tells something of the user: it is remembered, because of what it tells.

    Design: "an extract pattern wins over a skip pattern".
    """
    for said, reason in [
        ("Hi! My name is Jonas.", "tells-identity"),
        ("Thanks! I prefer short answers with no bullet points", "tells-preference"),
        ("What is a good lens for that? I want to photograph the northern lights", "tells-goal"),
        ("How do I book a room? I plan to stay in Ljubljana for a week", "tells-goal"),
    ]:
        seen = lab.agents.observe(said)
        assert seen.admission.admitted, said
        assert reason in seen.admission.reasons, said
        assert seen.memory is not None, said
    assert lab.memories.height == 4


def test_07_one_message_gives_a_fact_and_a_memory(lab):
    """A coach hears what the user does: a fact that every agent sees, and a memory that is the coach's own.

    Design: "One message may yield a user fact *and* an agent memory."; who sees which by reference-lab.txt, extract.
    """
    found = lab.agents.extract("I'm a beekeeper.", agent="coach")
    assert len(found.facts) >= 1
    assert len(found.memories) >= 1
    stored = lab.agents.commit(found)
    facts = {number for one, number in zip(found.items, stored.standing, strict=True) if one.sort == "fact"}
    memories = {number for one, number in zip(found.items, stored.standing, strict=True) if one.sort == "memory"}
    assert not facts & memories
    assert any("beekeeper" in text for text in lab.memories.filter(pl.col("id").is_in(list(facts)))["text"])
    assert facts | memories <= set(lab.agents("coach").memories["id"])
    others = set(lab.at(viewer="agent:tutor").memories["id"])
    assert facts <= others
    assert not memories & others


def test_08_both_sides_of_a_conversation_are_read(lab):
    """An answer is understood with the assistant's question; what the assistant says of itself is no fact of the user.

    Design: "Smart extraction sees the user's and the assistant's message"; howto-extract.txt: 'after "What do you do?",
    "A nurse." is the fact that the user is a nurse', "an assistant's "I" is not the user".
    """
    answer = lab.agents.extract([
        {"role": "assistant", "content": "What do you do?"},
        {"role": "user", "content": "A carpenter."},
    ])
    assert any("carpenter" in fact.text and "user" in fact.text for fact in answer.facts.items)
    talk = lab.agents.extract([
        {"role": "user", "content": "I live in Gdansk."},
        {"role": "assistant", "content": "Lovely. I am an assistant, I live in the cloud and I like long talks."},
    ])
    assert {fact.message for fact in talk.facts.items} == {0}
    assert any("Gdansk" in fact.text for fact in talk.facts.items)
    assert lab.memories.height == 0


def test_09_personal_identifiers_may_pass(lab):
    """The user gives a phone number and an e-mail address: this pack keeps them, and a later recall has them.

    Design: "Personal identifiers may pass (this pack's setting)."
    """
    seen = lab.agents.observe("My name is Ilse Brandt, call me at +49 151 23456789 or mail ilse.brandt@example.org")
    assert seen.memory is not None
    assert seen.memory.redacted == ()
    hits = lab.recall("how do I call or mail Ilse Brandt?")
    assert hits.ids == (seen.memory.id,)
    assert "+49 151 23456789" in hits[0].text
    assert "ilse.brandt@example.org" in hits[0].text


def test_10_vectors_of_two_models_are_never_mixed(tmp_path):
    """A lab made with a service's vectors is refused with the local model, until every memory is embedded again.

    Design: "never mixed: a query uses only its own fingerprint's vectors"; the way is howto-bring-an-embedder.txt.
    """
    path = tmp_path / "agent.memlab"
    with memlab.open(path, pack="companion", embedder=letters) as lab:
        note = lab.remember("The user keeps two goats behind the garage", kind="personal")
        remote = lab.io.embedder.fingerprint
    with pytest.raises(memlab.LabError):
        memlab.open(path)
    with memlab.open(path, reembed=True) as lab:
        assert lab.io.embedder.fingerprint != remote
        assert lab.policies.pack.name == "companion"
        assert lab.recall("where does the user keep the goats?").ids == (note.id,)


def test_11_the_score_is_likeness_and_what_strength_is_left(clock):
    """A question near one of two notes, ten days on: the near one has the design's score, the far one is not shown.

    Design: "0.6 similarity + 0.4 strength/100, similarity >= 0.3", with strength 100 - 10 * (5 - 0.03 * 5) = 51.5.
    """
    fridge, boiler = "half a cauliflower and leftover dal in the fridge", "the boiler man comes at noon"
    question = "ideas for cooking tonight?"
    vectors = {question: (1, 0, 0, 0), fridge: (0.8, 0.6, 0, 0), boiler: (0.2, 0, 0.98, 0)}
    with memlab.open(pack="companion", clock=clock, embedder=given(vectors)) as lab:
        near, _ = (lab.remember(text, kind="observation", linking="off") for text in (fridge, boiler))
        clock.advance(days=10)
        hits = lab.recall(question)
        assert hits.ids == (near.id,)
        assert hits[0].score == pytest.approx(0.6 * 0.8 + 0.4 * 0.515, abs=0.01)


def test_12_of_two_alike_the_vivid_one_comes_first(lab, clock):
    """Two rehearsal notes twelve days apart answer alike: the fresh one comes first, and a shopping note not at all.

    Design: "Hybrid retrieval: 0.6 similarity + 0.4 strength/100, similarity >= 0.3".
    """
    old = lab.remember("Rehearsal: the cellos drag in bar forty", kind="observation", linking="off")
    clock.advance(days=12)
    fresh = lab.remember("Rehearsal: the violas drag in bar ninety", kind="observation", linking="off")
    lab.remember("Bought cat litter and two light bulbs at the supermarket", kind="event", linking="off")
    hits = lab.recall("which instruments drag at rehearsal, and in which bar?")
    assert hits.ids == (fresh.id, old.id)
    assert hits[0].score > hits[1].score


def test_13_related_memories_come_along_within_two_hops(clock):
    """Four notes are linked in a chain and only the first is like the question: its two next come along, not the third.

    Design: "related memories within 2 hops".
    """
    chain = [
        "Aunt Petra is moving into the flat upstairs",
        "The lift has a limit of four people",
        "Caretaker answers the phone before ten",
        "Bins go out on Wednesday",
    ]
    question = "news from Petra?"
    vectors = dict(zip(chain, [(0.9, 0.43, 0, 0), (0, 0, 1, 0), (0, 0, 1, 0.5), (0, 0, 0.5, 1)], strict=True))
    with memlab.open(pack="companion", clock=clock, embedder=given({question: (1, 0, 0, 0), **vectors})) as lab:
        notes = [lab.remember(text, kind="observation", linking="off") for text in chain]
        for one, other in zip(notes[:-1], notes[1:], strict=True):
            lab.graph.link(one, other)
        hits = lab.recall(question)
        assert set(hits.ids) == {note.id for note in notes[:3]}
        assert hits.ids[0] == notes[0].id


def test_14_new_memories_are_linked_by_how_alike_they_are(clock):
    """Three notes come after a first one, at likenesses .95, .7 and .3: one is similar, one related, one unlinked.

    Design: "similarity > 0.85 `similar`; 0.6-0.85 `related`" and "links (with similarity and time)"; the names of the
    edges are those of policy-language.txt, What link and resolve leave.
    """
    vectors = {
        "The sourdough starter lives in the blue jar": (1, 0, 0, 0),
        "Somebody has to feed the sourdough on Thursdays": (0.95, 0.312, 0, 0),
        "Rye flour comes from the mill in Lund": (0.7, 0, 0.714, 0),
        "The parking permit runs out in October": (0.3, -0.954, 0, 0),
    }
    with memlab.open(pack="companion", clock=clock, embedder=given(vectors)) as lab:
        first, similar, related, other = (lab.remember(text, kind="observation") for text in vectors)
        edges = lab.edges.filter(target=first.id, to_kind="memory")
        assert dict(edges.select("source", "relation").rows()) == {similar.id: "similar-to", related.id: "relates-to"}
        assert edges.filter(source=similar.id)["weight"][0] == pytest.approx(0.95, abs=0.02)
        assert edges["created"].to_list() == [datetime(2026, 3, 2, tzinfo=UTC)] * 2
        assert other.id not in edges["source"]


def test_15_what_says_that_it_changed_updates(clock):
    """The standup moves to another hour, said with "now": the new note has an edge that says it updates the old one.

    Design: "> 0.85 with update words `updates`".
    """
    before, after = "Standup is at 9:30 in the small room", "Standup is now at 10:00 in the small room"
    vectors = {before: (1, 0, 0, 0), after: (0.95, 0.312, 0, 0)}
    with memlab.open(pack="companion", clock=clock, embedder=given(vectors)) as lab:
        old = lab.remember(before, kind="observation")
        clock.advance(days=2)
        new = lab.remember(after, kind="observation")
        assert new.id != old.id
        assert "updates" in lab.edges.filter(source=new.id, target=old.id)["relation"].to_list()
        assert lab.recall(after).ids[0] == new.id


@pytest.mark.long
def test_16_the_user_changes_their_mind(lab, clock):
    """The user says the opposite three days later: the old preference is superseded then, and recall has the new one.

    Design: "> 0.85 with negation `contradicts`"; "keep-new (old superseded)", "keep-new when the new one is
    user-stated"; "superseded at".
    """
    old = lab.remember("The user likes cilantro on tacos", kind="preference")
    clock.advance(days=3)
    new = lab.remember("The user does not like cilantro on tacos", kind="preference")
    row = lab.memories.filter(id=old.id).row(0, named=True)
    assert (row["status"], row["superseded_by"]) == ("superseded", new.id)
    assert "contradicts" in lab.edges.filter(source=new.id, target=old.id)["relation"].to_list()
    done = lab.upkeep.review.supersessions().row(0, named=True)
    assert (done["memory_id"], done["superseded_by"]) == (old.id, new.id)
    assert done["at"] == datetime(2026, 3, 5, tzinfo=UTC)
    assert lab.recall("does the user like cilantro on tacos?").ids == (new.id,)


@pytest.mark.long
def test_17_a_guess_does_not_overturn_but_a_sure_inference_does(lab):
    """An unsure inference denies what the user said and is skipped; one that is as sure as it takes its place.

    Design: "keep-old (new one skipped)"; "keep-new when the new one is user-stated or at least as confident, ...
    else keep-old".
    """
    said = lab.remember("The user eats fish on Fridays", kind="preference", confidence=0.9)
    denial = "The user does not eat fish on Fridays"
    guess = lab.remember(denial, kind="preference", provenance="inferred", confidence=0.4)
    assert guess.id == said.id
    assert lab.memories["status"].to_list() == ["active"]
    sure = lab.remember(denial, kind="preference", provenance="inferred", confidence=0.9)
    assert sure.id != said.id
    assert lab.memories.filter(id=said.id)["superseded_by"].to_list() == [sure.id]
    assert lab.recall("does the user eat fish on Fridays?").ids == (sure.id,)


def test_18_where_neither_denies_the_other_nothing_is_lost(lab):
    """An unsure inference names another town than the user did: what is in use then says both, and no text is changed.

    Design: "merge when neither negates the other"; systems.txt: "Merge makes one memory that says what both say, and
    supersedes the old one: no text is ever changed." (or both stay, where it is not nearly certain).
    """
    old = lab.remember("The user lives in Bergen", kind="personal", confidence=0.9)
    lab.remember("The user lives in Tromso", kind="personal", provenance="inferred", confidence=0.5)
    in_use = " ".join(lab.memories.filter(status="active")["text"])
    assert "Bergen" in in_use
    assert "Tromso" in in_use
    row = lab.memories.filter(id=old.id).row(0, named=True)
    assert row["text"] == "The user lives in Bergen"
    if row["status"] == "superseded":
        merged = lab.memories.filter(id=int(row["superseded_by"]))["text"][0]
        assert "Bergen" in merged
        assert "Tromso" in merged


def test_19_what_was_felt_outlasts_what_was_filed(lab, clock):
    """A dry event and a moving day fade unused, at 4.85 and 2.3 a day; after 25 days only the moving day is recalled.

    Design: "max(2, 5 - 0.03 * emotional weight) * days since recall" and "at 0 deleted"; that a recall needs no upkeep
    for this is systems.txt, What is over is not recalled.
    """
    filed = lab.remember("Filed the expense report for February", kind="event", linking="off")
    felt = lab.remember(
        "Grandpa's last birthday, everybody sang and cried", kind="feeling", emotional_weight=90.0, linking="off"
    )
    frame = lab.upkeep.forecast([filed, felt], "2026-03-27", points=6).frame.sort("at")
    left = {note.id: frame.filter(memory_id=note.id)["retention"].to_list() for note in (filed, felt)}
    assert left[filed.id][2] == pytest.approx(1 - 0.0485 * 10, abs=1e-6)
    assert left[felt.id][2] == pytest.approx(1 - 0.023 * 10, abs=1e-6)
    clock.advance(days=25)
    assert len(lab.recall("was the expense report for February filed?")) == 0
    assert lab.recall("how was grandpa's last birthday?").ids == (felt.id,)


@pytest.mark.long
def test_20_a_recall_strengthens_by_five_as_it_stands(lab, clock):
    """A note is looked up after four days: a look that is not logged changes nothing, each recall adds 5 up to 100.

    Design: "recall adds 5 to the strength as it stands (at most 100)".
    """
    note = lab.remember("Vet says Mishka's left ear is infected, drops twice a day", kind="event")
    question = "what did the vet say about Mishka's ear?"
    clock.advance(days=4)
    assert lab.recall(question, log=False).ids == (note.id,)
    assert lab.memories.select("strength", "access").row(0) == (100, 0)
    strengths = []
    for _ in range(4):
        lab.recall(question)
        strengths.append(lab.memories["strength"][0])
    assert strengths == pytest.approx([85.6, 90.6, 95.6, 100])
    assert lab.memories["access"][0] == 4
    assert lab.memories["accessed"][0] == datetime(2026, 3, 6, tzinfo=UTC)


@pytest.mark.long
def test_21_a_memory_fades_from_vivid_to_deleted_and_comes_back(lab, clock):
    """An unused note goes from vivid over clear, hazy and fragment to deleted in three weeks; restore brings it back.

    Design: "Label: >= 80 vivid, >= 50 clear, >= 20 hazy, else fragment; at 0 deleted (softly)"; restore by
    reference-lab.txt.
    """
    text = "Left the good umbrella on the number 12 tram"
    note = lab.remember(text, kind="event")
    labels = []
    for days in (1, 4, 7, 6):  # on the days 1, 5, 12 and 18
        clock.advance(days=days)
        lab.upkeep.maintain()
        labels.append(lab.memories["label"][0])
    assert labels == ["vivid", "clear", "hazy", "fragment"]
    clock.advance(days=3)
    lab.upkeep.maintain()
    assert lab.memories.select("status", "text").row(0) == ("deleted", text)
    assert len(lab.recall("where is the good umbrella, on the tram?")) == 0
    lab.restore(note)
    assert lab.memories.select("status", "strength").row(0) == ("active", pytest.approx(5))
    assert lab.recall("where is the good umbrella, on the tram?").ids == (note.id,)


@pytest.mark.long
def test_22_a_context_holds_what_this_agent_may_know(lab):
    """A planner asks for the context of a task: it has the shared fact and its own memory, not what another keeps.

    Design: "*user facts*, shared by all agents"; "*Agent memories*, one agent's"; howto-context.txt: within a budget,
    "Nothing is injected twice in a session".
    """
    planner, listener = lab.agents("planner"), lab.agents("listener")
    listener.remember("The user prefers vegetarian dinners", kind="preference")
    planner.remember("Dinner for the parents went well, they loved the lentil soup", kind="event")
    listener.remember("The dinner for the parents felt boring and far too long", kind="feeling")
    task = "plan a vegetarian dinner for the parents"
    context = planner.context(task, budget=400)
    assert "vegetarian" in context.text
    assert "lentil soup" in context.text
    assert "boring" not in context.text
    assert context.tokens <= 400
    assert "lentil soup" not in planner.context(task, budget=400).text


@pytest.mark.long
def test_23_the_schedule_notes_what_changed_while_nobody_looked(lab, clock):
    """A lab is looked after again after six days: the schedule makes a pass at its start, and then one in four hours.

    Design: "A scheduler notes transitions every 4 hours and at start."
    """
    note = lab.remember("Swapped night shifts with Olu for the wedding weekend", kind="event")
    clock.advance(days=6)
    with lab.upkeep.schedule() as schedule:
        assert schedule.every == timedelta(hours=4)
        end = time.monotonic() + 30
        while schedule.last is None and time.monotonic() < end:
            time.sleep(0.05)
        assert schedule.last is not None
        assert note.id in schedule.last.frame["id"].to_list()
    assert lab.memories["label"].to_list() == ["clear"]


@pytest.mark.long
def test_24_the_profile_is_written_for_a_prompt_and_follows_corrections(lab):
    """What the user told is one sentence about them; when a fact of it is corrected, the sentence says the new one.

    Design: 'Written for a prompt: "The user is a software engineer who likes Python ..."'; corrections by
    howto-correct.txt.
    """
    lab.agents.commit(lab.agents.extract("I'm a veterinary nurse. I like folk music.").facts)
    profile = lab.facts.profile().text
    assert profile.startswith("The user is a veterinary nurse")
    assert "likes folk music" in profile
    wrong = lab.memories.filter(pl.col("text").str.contains("veterinary"), status="active")["id"][0]
    right = lab.edit(wrong, text="The user is a midwife")
    profile = lab.facts.profile().text
    assert profile.startswith("The user is a midwife")
    assert "veterinary" not in profile
    assert "likes folk music" in profile
    assert lab.memories.filter(id=wrong)["superseded_by"].to_list() == [right.id]


@pytest.mark.long
def test_25_memories_move_to_another_lab_with_their_lives(lab, clock, tmp_path):
    """A lab is exported and loaded elsewhere: contributors, use, strength, links and privacy are as they were.

    Design: the fields of user facts and agent memories ("contributing agents", "strength", "last recalled, recall
    count, links"); memlab.load: of an export "every memory keeps its times, counts and status".
    """
    tutor, coach = lab.agents("tutor"), lab.agents("coach")
    for agent in (tutor, coach):
        fact = agent.remember("The user wants to play the accordion at the harvest fair", kind="goal")
    note = tutor.remember("Bellows broke halfway, borrowed one from Marek", kind="event")
    lab.graph.link(note, fact, "depends-on")
    clock.advance(days=3)
    assert tutor.recall("did the bellows break, and what did Marek lend?").ids[0] == note.id
    path = lab.io.export(tmp_path / "agent.jsonl")
    columns = ["text", "kind", "status", "agents", "creator", "visibility", "strength", "access", "created", "accessed"]
    with memlab.open(pack="companion", clock=clock) as other:
        other.load(path, progress=False)
        assert other.memories.select(columns).sort("text").rows() == lab.memories.select(columns).sort("text").rows()
        texts = dict(other.memories.select("id", "text").rows())
        edge = other.edges.filter(relation="depends-on").row(0, named=True)
        assert (texts[edge["source"]], texts[edge["target"]]) == (note.text, fact.text)
        assert "Marek" in other.agents("tutor").recall("did the bellows break, and what did Marek lend?")[0].text
        seen = other.agents("coach").recall("did the bellows break, and what did Marek lend?")
        assert not any("Marek" in hit.text for hit in seen)
