"""Acts of the companion design, written from its description and the public reference alone."""

import time
from datetime import timedelta

import memlab
import polars as pl
import pytest
from memlab.errors import EmbedderMismatch

IN_USE = ["active", "staged", "confirmed"]


def embedder_of(vectors):
    """An embedder that gives these texts these vectors of five components, and any other text the fifth axis."""

    def embed(texts):
        rows = [[float(x) for x in vectors.get(text, (0, 0, 0, 0, 1))] for text in texts]
        return pl.DataFrame(rows, schema=["a", "b", "c", "d", "e"], orient="row").to_numpy()

    return embed


def letters(texts):
    """Another model than the shipped one: counts letters, and one component that is never 0."""
    rows = [[1.0] + [float(text.lower().count(x)) for x in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    return pl.DataFrame(rows, schema=[f"c{n}" for n in range(27)], orient="row").to_numpy()


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-01")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="companion", clock=clock) as made:
        yield made


@pytest.mark.long
def test_01_facts_are_shared_and_memories_are_one_agents(lab):
    """One agent notes a preference and an observation; another agent recalls the first and never sees the second.

    Design: "*user facts*, shared by all agents" and "*Agent memories*, one agent's".
    """
    cook, trainer = lab.agents("cook"), lab.agents("trainer")
    fact = cook.remember("The user likes lentil soup with a lot of lemon", kind="preference")
    noticed = cook.remember("Got grumpy when the lentil soup took over an hour", kind="observation")
    own = cook.recall("lentil soup", log=False).ids
    other = trainer.recall("lentil soup", log=False).ids
    assert fact.id in own and noticed.id in own
    assert fact.id in other
    assert noticed.id not in other


@pytest.mark.long
def test_02_what_a_memory_begins_with(lab):
    """A fact and an agent memory are remembered with no numbers given; each begins with the design's defaults.

    Design: "confidence 0-100 (default 80)", "strength 0-100 (starts 100), emotional weight 0-100 (default 5)";
    confidence is a share from 0 to 1 in the reference of features.
    """
    buddy = lab.agents("buddy")
    fact = buddy.remember("The user wants to get a motorbike licence this summer", kind="goal")
    felt = buddy.remember("The rainy ride home felt endless", kind="feeling")
    rows = lab.memories
    assert rows.filter(pl.col("id") == fact.id)["confidence"].item() == pytest.approx(0.8)
    felt_row = rows.filter(pl.col("id") == felt.id)
    assert felt_row["strength"].item() == pytest.approx(100)
    assert felt_row["emotional_weight"].item() == pytest.approx(5)
    assert felt_row["access"].item() == 0


@pytest.mark.long
def test_03_the_same_fact_from_two_agents_is_one(lab):
    """Two agents note the same fact and the same impression: one fact with both as sources, two impressions.

    Design: "contributing agents"; systems, companion: "A user fact that is told again, in the same words ... is
    one fact with the sources of both. What agents remember alike stays with each."
    """
    desk, night = lab.agents("desk"), lab.agents("night")
    for agent in (desk, night):
        agent.remember("The user is allergic to penicillin", kind="personal", linking="now")
        agent.remember("Sounded worn out after the call with the clinic", kind="feeling", linking="now")
    rows = lab.memories.filter(pl.col("status").is_in(IN_USE))
    facts = rows.filter(pl.col("kind") == "personal")
    assert facts.height == 1
    assert set(facts["agents"].to_list()[0]) == {"agent:desk", "agent:night"}
    assert rows.filter(pl.col("kind") == "feeling").height == 2


@pytest.mark.long
def test_04_a_relationship_grows_with_use(lab):
    """Three conversations, three helpful recalls and one unhelpful: familiarity and trust move as the design says.

    Design: "familiarity += (100 - familiarity) * 0.01 a conversation; trust += 1 a helpful recall, - 2 an
    unhelpful one".
    """
    pal = lab.agents("pal")
    pal.remember("The user keeps the spare key at the bakery downstairs", kind="personal")
    pal.conversation()
    first = lab.agents.relationships().row(0, named=True)
    pal.conversation()
    pal.conversation()
    for outcome in ("success", "success", "success", "fail"):
        hits = pal.recall("where is the spare key?")
        pal.feedback(hits[0], outcome)
    last = lab.agents.relationships().row(0, named=True)
    assert 100 - last["familiarity"] == pytest.approx((100 - first["familiarity"]) * 0.99**2)
    assert last["trust"] == pytest.approx(first["trust"] + 3 - 2)


def test_05_small_talk_code_and_plain_questions_are_skipped(lab):
    """The user greets, commands, pastes code and asks plain questions; nothing of it is remembered.

    Design: "skip greetings, code and commands, plain questions ("what is", "how do I")".
    """
    said = [
        "good morning!!",
        "Translate this paragraph into Dutch for me",
        "What is the capital of Mongolia?",
        "how do I rename a branch in git?",
        "```python\nfor row in rows:\n    print(row)\n```",
    ]
    kept = [text for text in said if lab.agents.observe(text).memory is not None]
    assert kept == []
    assert len(lab) == 0


@pytest.mark.long
def test_06_what_a_user_tells_of_themselves_is_kept(lab):
    """The user says who they are, what they like, plan and lived through; each is remembered, with a reason.

    Design: "extract "I am", "my name is", "I like / prefer", "I want to / plan to", "yesterday / recently I"; ...
    the answer carries a reason and a confidence". The reasons are the detectors of the slot admit.
    """
    said = {
        "my name is Oyelaran but everybody just says Oye": "tells-identity",
        "I am a piano tuner, mostly for schools": "tells-identity",
        "I prefer the aisle seat on long trains tbh": "tells-preference",
        "I want to learn to sail before I turn fifty": "tells-goal",
        "I plan to move my workshop to Ghent": "tells-goal",
        "Yesterday I locked myself out of the flat again": "tells-event",
    }
    seen = {text: lab.agents.observe(text) for text in said}
    assert [text for text in said if seen[text].memory is None] == []
    assert [text for text, reason in said.items() if reason not in seen[text].admission.reasons] == []
    assert all(0 < one.admission.confidence <= 1 for one in seen.values())


def test_07_what_is_worth_keeping_wins_over_what_is_skipped(lab):
    """A greeting with a question, and a command, each also tell something of the user; both are remembered.

    Design: "an extract pattern wins over a skip pattern (chosen)".
    """
    job = lab.agents.observe("Hi there! I am a beekeeper. How do I label jars for customs?")
    taste = lab.agents.observe("Write me a packing list please, I prefer to travel light")
    assert job.memory is not None and "tells-identity" in job.admission.reasons
    assert taste.memory is not None and "tells-preference" in taste.admission.reasons


@pytest.mark.long
def test_08_one_message_gives_a_fact_and_a_memory(lab):
    """A message says what the user's job is; committed, it is a fact for all and a memory of the agent that heard it.

    Design: "One message may yield a user fact *and* an agent memory"; systems, Extraction: "I'm a nurse" is the
    fact "The user is a nurse" and the observation that the user shared it.
    """
    extracted = lab.agents.extract("Sorry, long shift again. I'm a nurse.", agent="nightowl")
    assert any("nurse" in one.text and one.kind == "personal" for one in extracted.facts)
    assert any(one.kind in ("observation", "event", "feeling", "learning") for one in extracted.memories)
    lab.agents.commit(extracted)
    owl = lab.agents("nightowl").recall("is the user a nurse?", log=False).frame["kind"].to_list()
    other = lab.agents("gymbot").recall("is the user a nurse?", log=False).frame["kind"].to_list()
    assert "personal" in owl and "observation" in owl
    assert "personal" in other and "observation" not in other


def test_09_both_sides_of_the_talk_are_read(lab):
    """An assistant talks of itself, then asks and gets a short answer: only the answer is a fact about the user.

    Design: "Smart extraction sees the user's and the assistant's message"; systems, companion: of an assistant
    "who it is and what it likes are no facts about the user"; extract: "A short answer is read together with the
    question before it".
    """
    bragging = lab.agents.extract(
        [
            {"role": "user", "content": "ok tell me something"},
            {"role": "assistant", "content": "I am a language model and I like long walks. I live in the cloud."},
        ]
    )
    assert len(bragging.facts) == 0
    answered = lab.agents.extract(
        [{"role": "assistant", "content": "What do you do?"}, {"role": "user", "content": "A locksmith."}]
    )
    assert any("locksmith" in one.text and "user" in one.text for one in answered.facts)


def test_10_personal_identifiers_may_pass(lab):
    """A note with a name, an e-mail address and a phone number is remembered and found again word for word.

    Design: "Personal identifiers may pass (this pack's setting)."
    """
    note = "The user's landlady is Marta Kowalczyk, marta.kowalczyk@posteo.pl or +48 22 555 01 47"
    done = lab.remember([{"text": note, "kind": "personal"}])
    assert not done.redacted
    assert lab.memories["text"].to_list() == [note]
    assert lab.recall("who is the user's landlady?", log=False)[0].text == note


@pytest.mark.long
def test_11_vectors_of_two_models_are_never_mixed(tmp_path):
    """A lab of the shipped model is opened with another one: refused, unless all is embedded again; nothing is lost.

    Design: "never mixed: a query uses only its own fingerprint's vectors"; howto: Bring an embedder.
    """
    path = tmp_path / "diary.memlab"
    text = "The allotment gate sticks, lift it before you push"
    with memlab.open(path, pack="companion") as lab:
        lab.remember(text, kind="learning")
        shipped = lab.io.embedder.fingerprint
    with pytest.raises(EmbedderMismatch):
        memlab.open(path, embedder=letters)
    with memlab.open(path) as lab:
        assert lab.recall("the allotment gate sticks", log=False)[0].text == text
    with memlab.open(path, embedder=letters, reembed=True) as lab:
        assert lab.io.embedder.dim == 27
        assert lab.io.embedder.fingerprint != shipped
        assert lab.recall("the allotment gate sticks", log=False)[0].text == text


@pytest.mark.long
def test_12_score_is_of_similarity_and_strength(clock):
    """Two notes of known similarity are asked for, today and ten days later; the far one never comes.

    Design: "0.6 similarity + 0.4 strength/100, similarity >= 0.3", with the strength of the closed form,
    100 - 4.85 * 10 after ten days.
    """
    near, far, asked = "The boat is moored at pontoon seven", "Oat milk is on offer again", "pontoon of the boat"
    vectors = {near: (0.8, 0.6, 0, 0, 0), far: (0.2, 0, 0.98, 0, 0), asked: (1, 0, 0, 0, 0)}
    with memlab.open(pack="companion", clock=clock, embedder=embedder_of(vectors)) as lab:
        lab.remember([{"text": text, "kind": "observation"} for text in (near, far)], linking="off")
        today = lab.recall(asked, log=False).frame
        clock.advance(days=10)
        later = lab.recall(asked, log=False).frame
    assert today["text"].to_list() == [near]
    assert today["score"].item() == pytest.approx(0.6 * 0.8 + 0.4, abs=0.02)
    assert later["text"].to_list() == [near]
    assert later["score"].item() == pytest.approx(0.6 * 0.8 + 0.4 * 0.515, abs=0.02)


def test_13_related_memories_come_along_within_two_hops(clock):
    """Four notes are linked in a row and only the first answers: the next two come along, the last does not.

    Design: "related memories within 2 hops".
    """
    texts = [
        "Rehearsal moved to the chapel",
        "The heating there only works on Sundays",
        "Bring the blue blankets from the shed",
        "Wasps have a nest behind the mower",
    ]
    axes = [(0.9, 0.43, 0, 0, 0), (0, 0, 1, 0, 0), (0, 0, 0, 1, 0), (0, 0, 0, 0, 1)]
    vectors = dict(zip(texts, axes, strict=True)) | {"where do we sing?": (1, 0, 0, 0, 0)}
    with memlab.open(pack="companion", clock=clock, embedder=embedder_of(vectors)) as lab:
        ids = lab.remember([{"text": text, "kind": "observation"} for text in texts], linking="off").ids
        for one, other in zip(ids, ids[1:], strict=False):
            lab.graph.link(one, other, "relates-to")
        shown = lab.recall("where do we sing?", limit=10, log=False).ids
    assert shown[0] == ids[0]
    assert {ids[1], ids[2]} <= set(shown)
    assert ids[3] not in shown


def test_14_of_two_alike_the_vivid_one_comes_first(lab, clock):
    """Two meetings with one friend, two weeks apart; asked about them, the fresh one stands above the faded one.

    Design: "0.6 similarity + 0.4 strength/100", where strength falls by some 4.85 a day.
    """
    old = lab.remember(
        "Had tea with Priya at the harbour cafe, she talked about her thesis", kind="event", linking="off"
    )
    clock.advance(days=15)
    new = lab.remember(
        "Had coffee with Priya at the harbour cafe, she talked about her thesis", kind="event", linking="off"
    )
    clock.advance(days=1)
    shown = lab.recall("what did Priya say about her thesis at the harbour cafe?", log=False).ids
    assert shown == (new.id, old.id)


@pytest.mark.long
def test_15_new_memories_are_linked_by_likeness(clock):
    """A note is followed by a very like one, one on the same topic and one on nothing of it: similar, related, none.

    Design: "Linker: similarity > 0.85 `similar`; 0.6-0.85 `related`", and links "with similarity".
    """
    texts = [
        "The tomato seedlings on the balcony are watered every evening",
        "Watering the balcony tomatoes takes ten minutes after dinner",
        "Bought two bags of potting soil for the boxes outside",
        "The waiting room of the dentist smells of mint",
    ]
    axes = [(1, 0, 0, 0, 0), (0.93, 0.3676, 0, 0, 0), (0.72, 0, 0.694, 0, 0), (0.2, 0, 0, 0.98, 0)]
    vectors = dict(zip(texts, axes, strict=True))
    with memlab.open(pack="companion", clock=clock, embedder=embedder_of(vectors)) as lab:
        ids = [lab.remember(text, kind="observation", linking="now").id for text in texts]
        edges = lab.edges.filter(pl.col("relation").is_in(["similar-to", "relates-to"]))
        rows = edges.select("source", "target", "relation", "weight").rows()
    found = {frozenset((source, target)): (relation, weight) for source, target, relation, weight in rows}
    relation, weight = found[frozenset((ids[0], ids[1]))]
    assert relation == "similar-to" and weight == pytest.approx(0.93, abs=0.03)
    relation, weight = found[frozenset((ids[0], ids[2]))]
    assert relation == "relates-to" and weight == pytest.approx(0.72, abs=0.03)
    assert not any(ids[3] in pair for pair in found)


@pytest.mark.long
def test_16_a_changed_time_is_linked_as_an_update(clock):
    """A weekly meeting is noted, then that it is now at another time; the new note stands and updates the old one.

    Design: "> 0.85 with update words `updates`". Where the old note is retired at once, an edge supersedes says so.
    """
    old, new = "The Friday standup is at nine", "The Friday standup is now at ten instead"
    vectors = {old: (1, 0, 0, 0, 0), new: (0.96, 0.28, 0, 0, 0)}
    with memlab.open(pack="companion", clock=clock, embedder=embedder_of(vectors)) as lab:
        before = lab.remember(old, kind="observation", linking="now")
        clock.advance(days=2)
        after = lab.remember(new, kind="observation", linking="now")
        edges = lab.edges.select("source", "target", "relation").rows()
        status = lab.memories.filter(pl.col("text") == new)["status"].to_list()
    between = {relation for source, target, relation in edges if {source, target} == {before.id, after.id}}
    assert between & {"updates", "supersedes"}
    assert len(status) == 1 and status[0] in IN_USE


@pytest.mark.long
def test_17_what_the_user_says_now_takes_the_place_of_the_old(lab, clock):
    """The user takes back a preference in their own words; the old one is superseded, dated, and not recalled.

    Design: "keep-new (old superseded) ... keep-new when the new one is user-stated or at least as confident",
    and "superseded at".
    """
    old = lab.remember("The user likes strong black coffee", kind="preference", linking="now")
    clock.advance(days=3)
    new = lab.remember(
        "The user does not like strong black coffee", kind="preference", provenance="user-stated", linking="now"
    )
    assert lab.memories.filter(pl.col("id") == old.id)["status"].item() == "superseded"
    told = lab.upkeep.review.supersessions().filter(pl.col("memory_id") == old.id)
    assert told["superseded_by"].to_list() == [new.id]
    assert told["at"].null_count() == 0
    assert lab.recall("does the user like strong black coffee?", log=False).ids == (new.id,)


def test_18_a_weak_guess_does_not_take_back_what_is_sure(lab, clock):
    """An agent infers, with little confidence, the opposite of a sure fact; the guess is skipped, the fact stays.

    Design: "keep-old (new one skipped)", chosen where the new one is neither user-stated nor at least as confident
    and one negates the other.
    """
    sure = lab.remember(
        "The user likes spicy ramen", kind="preference", provenance="user-stated", confidence=0.95, linking="now"
    )
    clock.advance(days=2)
    guess = {"text": "The user does not like spicy ramen", "kind": "preference", "provenance": "inferred"}
    done = lab.remember([guess | {"confidence": 0.3}], linking="now")
    assert "skipped" in done.outcomes["outcome"].to_list()
    assert done.standing == (sure.id,)
    shown = lab.recall("spicy ramen", log=False)
    assert [hit.text for hit in shown] == ["The user likes spicy ramen"]


@pytest.mark.long
def test_19_two_that_exclude_but_do_not_deny_are_merged(clock):
    """A less sure note gives the user another home, with no denial; one memory says both, and the old one is retired.

    Design: "merge when neither negates the other"; systems, companion: "Merge makes one memory that says what both
    say, and supersedes the old one".
    """
    old, new = "The user lives in Porto", "The user lives in Braga"
    vectors = {old: (1, 0, 0, 0, 0), new: (0.94, 0.34, 0, 0, 0)}
    with memlab.open(pack="companion", clock=clock, embedder=embedder_of(vectors)) as lab:
        lab.remember(old, kind="personal", provenance="user-stated", confidence=0.9, linking="now")
        clock.advance(days=1)
        lab.remember(new, kind="personal", provenance="inferred", confidence=0.4, linking="now")
        rows = lab.memories.select("text", "status").rows()
    standing = [text for text, status in rows if status in IN_USE]
    assert any("Porto" in text and "Braga" in text for text in standing)
    assert (old, "superseded") in rows


@pytest.mark.long
def test_20_a_plain_memory_fades_and_a_moving_one_lasts(lab, clock):
    """A plain note and one full of feeling are left alone for three weeks; upkeep notes how each of them fades.

    Design: "max(2, 5 - 0.03 * emotional weight) * days since recall" and ">= 80 vivid, >= 50 clear, >= 20 hazy,
    else fragment; at 0 deleted".
    """
    plain = lab.remember("The printer on the second floor needs A3 paper", kind="observation")
    moving = lab.remember(
        "My daughter took her first steps in the garden today", kind="event", emotional_weight=100
    )
    noted = {plain.id: [], moving.id: []}
    for days in (5, 6, 6):
        clock.advance(days=days)
        changes = lab.upkeep.maintain().frame.filter(pl.col("what") == "label")
        for memory, label in changes.select("id", "to").rows():
            noted[memory].append(label)
    assert noted[plain.id] == ["clear", "hazy", "fragment"]
    assert noted[moving.id][-1] == "clear"
    clock.advance(days=4)
    last = lab.upkeep.maintain().frame.filter(pl.col("what") == "status")
    assert last.select("id", "to").rows() == [(plain.id, "deleted")]
    assert lab.upkeep.maintain().frame.is_empty()


@pytest.mark.long
def test_21_recall_keeps_a_memory_alive(lab, clock):
    """One note is recalled after ten days, another only on its first day: on day 21 the first is there, not the other.

    Design: "recall adds 5 to the strength as it stands (at most 100)"; systems: what has no strength left is not
    shown "for want of a pass of upkeep".
    """
    dumplings = lab.remember("Grandma's plum dumplings recipe is in the green tin", kind="observation")
    bike = lab.remember("The bike lock code is written under the saddle", kind="observation")
    assert lab.recall("bike lock code under the saddle", limit=1).ids == (bike.id,)
    clock.advance(days=10)
    assert lab.recall("plum dumplings recipe", limit=1).ids == (dumplings.id,)
    clock.advance(days=11)
    assert dumplings.id in lab.recall("plum dumplings recipe", log=False).ids
    assert bike.id not in lab.recall("bike lock code under the saddle", log=False).ids


@pytest.mark.long
def test_22_the_scheduler_cleans_up_softly(lab, clock):
    """A note of three weeks ago is deleted by the first pass of the schedule, and comes back when it is restored.

    Design: "at 0 deleted (softly). A scheduler notes transitions every 4 hours and at start."
    """
    note = lab.remember("The lawnmower man comes on alternate Thursdays", kind="observation")
    clock.advance(days=22)
    with lab.upkeep.schedule() as schedule:
        assert schedule.every == timedelta(hours=4)
        end = time.monotonic() + 30
        while schedule.last is None and time.monotonic() < end:
            time.sleep(0.05)
        assert schedule.last is not None
    assert lab.memories.filter(pl.col("id") == note.id)["status"].item() == "deleted"
    assert lab.recall("when does the lawnmower man come?", log=False).ids == ()
    lab.restore(note.id)
    assert lab.memories.filter(pl.col("id") == note.id)["status"].item() in IN_USE
    assert lab.recall("when does the lawnmower man come?", log=False).ids == (note.id,)


@pytest.mark.long
def test_23_the_profile_is_a_sentence_for_a_prompt(lab):
    """The user tells their trade, then a taste; the profile says both in one piece of prose.

    Design: "Written for a prompt: "The user is a software engineer who likes Python ..."".
    """
    lab.agents.commit(lab.agents.extract("I'm a landscape gardener."))
    lab.agents.commit(lab.agents.extract("I like jazz."))
    profile = lab.facts.profile()
    assert profile.text.startswith("The user is a landscape gardener")
    assert "likes jazz" in profile.text


@pytest.mark.long
def test_24_a_correction_reaches_the_prompt(lab, clock):
    """A goal stands in a session's context and is then corrected; the context has the new words once, never the old.

    Howto Correct a memory: "Another text is another memory, which supersedes the first" and "the corrected memory
    may be injected once more"; systems: "Nothing comes twice in a session". Design: "Written for a prompt".
    """
    task = "plan this week of training for the user's marathon"
    goal = lab.remember("The user is training for the Ghent marathon in April", kind="goal")
    assert "April" in lab.context(task, session="tuesday").text
    clock.advance(hours=1)
    edited = lab.edit(goal, text="The user is training for the Ghent marathon in September")
    assert edited.memory.id != goal.id
    assert lab.memories.filter(pl.col("id") == goal.id)["status"].item() == "superseded"
    again = lab.context(task, session="tuesday").text
    assert "September" in again and "April" not in again
    assert "September" not in lab.context(task, session="tuesday").text
    profile = lab.facts.profile().text
    assert "September" in profile and "April" not in profile


@pytest.mark.long
def test_25_an_export_goes_on_fading_where_it_stood(lab, clock, tmp_path):
    """A lab of six days is exported and loaded elsewhere; a fortnight later the same memories are left in both.

    Reference of load: of an export "every memory keeps its times, counts and status" and policies uses its pack;
    design: "Strength at a time = strength at last recall - max(2, 5 - 0.03 * emotional weight) * days".
    """
    plain = "Someone left a red umbrella in the meeting room"
    moving = "The whole choir cried when Tomasz said goodbye"
    lab.remember(plain, kind="observation")
    lab.remember(moving, kind="event", emotional_weight=60)
    clock.advance(days=6)
    file = lab.io.export(tmp_path / "companion.jsonl")
    with memlab.load(file, clock=memlab.ManualClock("2026-03-07"), progress=False) as copy:
        assert copy.policies.pack.name == "companion"
        assert copy.memories["text"].to_list() == [plain, moving]
        for one in (lab, copy):
            one.upkeep.maintain("2026-03-23", progress=False)
            left = one.memories.filter(pl.col("status").is_in(IN_USE))["text"].to_list()
            assert left == [moving]
