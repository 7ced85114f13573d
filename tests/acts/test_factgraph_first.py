"""Acts of the factgraph design, written from its description and the public reference alone."""

import math
import re

import polars as pl
import pytest

import memlab
from memlab.errors import InputError

IN_USE = ["active", "staged", "confirmed"]
VOCABULARY = (
    "marisol", "kestrel", "labs", "tromso", "murmansk", "boat", "engine", "oil", "manual", "room",
)  # fmt: skip


def word_vectors(texts):
    """An embedder of one's own: a dimension for each known word, and one for all other words."""
    rows = []
    for text in texts:
        row = [0.0] * (len(VOCABULARY) + 1)
        for word in re.findall(r"[a-z]+", text.lower()):
            row[VOCABULARY.index(word) if word in VOCABULARY else -1] += 1.0
        rows.append(row)
    return pl.DataFrame(rows, orient="row").to_numpy()


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-02")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="factgraph", clock=clock) as opened:
        yield opened


@pytest.mark.long
def test_01_entities_of_five_types_count_their_mentions(lab, clock):
    """Entities of the five types are declared, and facts told of one raise its mentions and last mention.

    "Entity: type (person, project, concept, decision, preference), name, aliases, embedding, mention count,
    last mentioned."
    """
    lab.facts.entities.declare("Ingeborg", type="person")
    lab.facts.entities.declare("Thistle", type="project", aliases=["the thistle rewrite"])
    lab.facts.entities.declare("backpressure", type="concept")
    lab.facts.entities.declare("drop IE11", type="decision")
    lab.facts.entities.declare("quiet mornings", type="preference")
    with pytest.raises(InputError):
        lab.facts.entities.declare("Millennium Falcon", type="spaceship")
    lab.facts.add("Thistle", "uses", "sqlite for the job queue", confidence=0.8)
    first = lab.facts.entities.frame().filter(pl.col("name") == "Thistle").to_dicts()[0]
    clock.advance(days=3)
    lab.facts.add("Thistle", "needs", "somebody who knows webpack", confidence=0.8)
    entities = lab.facts.entities.frame()
    second = entities.filter(pl.col("name") == "Thistle").to_dicts()[0]
    assert set(entities["type"]) >= {"person", "project", "concept", "decision", "preference"}
    assert list(second["aliases"]) == ["the thistle rewrite"]
    assert (first["mentions"], second["mentions"]) == (1, 2)
    assert second["last_mentioned"] > first["last_mentioned"]


@pytest.mark.long
def test_02_a_nickname_and_a_merged_name_are_the_same_person(lab):
    """A fact told under an alias, and one under a name merged later, are found under the full name and back.

    "top 3 entities by similarity (name and aliases count)"; reference-entities: "all names of entity stand for into".
    """
    lab.facts.entities.declare("Katarzyna Nowak", type="person", aliases=["Kasia"])
    lab.facts.add("kasia", "plays", "double bass in a klezmer band", confidence=0.8)
    lab.facts.add("K. from accounting", "allergic-to", "walnuts", confidence=0.8)
    lab.facts.entities.merge("K. from accounting", "Katarzyna Nowak")
    texts = " ".join(hit.text for hit in lab.recall("ordering cake for Kasia, anything to watch out for?"))
    assert "walnuts" in texts
    assert "double bass" in texts
    known = lab.facts.frame(subject="Katarzyna Nowak")
    assert set(known["predicate"]) == {"plays", "allergic-to"}


def test_03_a_fact_has_its_fields_and_an_end(lab):
    """A fact keeps confidence, source, access and end; it holds before its end and is left out after; 1.5 is refused.

    "Fact: subject, predicate, object (an entity) or value, confidence 0-1, status, source, access count, last
    accessed, valid until."; reference-facts: "What is superseded, retracted or over is left out."
    """
    lab.facts.add(
        "Dmitri", "borrows", object="cargo bike", confidence=0.7, source="file", valid_until="2026-07-01"
    )
    lab.facts.add("Dmitri", "speaks", "a bit of Georgian", confidence=0.8)
    row = lab.facts.frame(subject="Dmitri", predicate="borrows").to_dicts()[0]
    assert row["object"] == "cargo bike"
    assert row["value"] is None
    assert row["confidence"] == pytest.approx(0.7, abs=1e-6)
    assert (row["source"], row["access"]) == ("file", 0)
    assert row["valid_until"] is not None
    assert set(lab.facts.frame(at="2026-06-01", subject="Dmitri")["predicate"]) == {"borrows", "speaks"}
    assert lab.facts.frame(at="2026-08-01", subject="Dmitri")["predicate"].to_list() == ["speaks"]
    assert "cargo bike" not in lab.facts.narrative("what is Dmitri up to?", at="2026-08-01", log=False).text
    with pytest.raises(InputError):
        lab.facts.add("Dmitri", "owns", "a kayak", confidence=1.5)


@pytest.mark.long
def test_04_the_third_recall_confirms(lab, clock):
    """A new fact is staged, still staged after two recalls, and confirmed by upkeep after the third.

    "*staged* (weight 0.5 **(chosen)**) -> *confirmed* at 3 accesses".
    """
    lab.facts.add("user", "allergic-to", "penicillin", confidence=0.85)
    for _ in range(2):
        lab.recall("pharmacy run - is the user allergic to anything?")
        clock.advance(days=1)
    lab.upkeep.maintain()
    before = lab.facts.frame(subject="user").to_dicts()
    lab.recall("pharmacy run - is the user allergic to anything?")
    lab.upkeep.maintain()
    after = lab.facts.frame(subject="user").to_dicts()
    assert [(row["status"], row["access"]) for row in before] == [("staged", 2)]
    assert [(row["status"], row["access"]) for row in after] == [("confirmed", 3)]


@pytest.mark.long
def test_05_what_is_told_again_and_again_is_one_confirmed_fact_and_stands_first(lab):
    """A fact told three times more is one fact, confirmed, and comes before one that was told once.

    systems.txt: "a fact told three times more is confirmed"; "*staged* (weight 0.5) -> *confirmed* ... (full weight".
    """
    lab.facts.add("Tamsin", "allergic-to", "shellfish", confidence=0.8)
    for _ in range(4):
        lab.facts.add("Tamsin", "plays", "bass clarinet", confidence=0.8)
    lab.upkeep.maintain()
    music = lab.facts.frame(subject="Tamsin", predicate="plays", status=IN_USE)
    assert music["status"].to_list() == ["confirmed"]
    assert lab.facts.frame(subject="Tamsin", predicate="allergic-to")["status"].to_list() == ["staged"]
    assert "clarinet" in lab.recall("tell me about Tamsin", log=False)[0].text


@pytest.mark.long
def test_06_a_confirmed_fact_outlives_three_silent_years(tmp_path, clock):
    """A fact confirmed by three recalls is still confirmed and found in the lab reopened three years later.

    "*confirmed* at 3 accesses (full weight; retracted only by the user or a conflict **(chosen)**)".
    """
    with memlab.open(tmp_path / "family.memlab", pack="factgraph", clock=clock) as lab:
        lab.facts.add("Grandma Rosl", "hides-key", "under the third geranium", confidence=0.8)
        for _ in range(3):
            lab.recall("locked out at Grandma Rosl, where is the key??")
        lab.upkeep.maintain()
    clock.advance(days=1100)
    with memlab.open(tmp_path / "family.memlab", clock=clock) as lab:
        lab.upkeep.maintain()
        assert lab.facts.frame(subject="Grandma Rosl")["status"].to_list() == ["confirmed"]
        assert "geranium" in lab.recall("Grandma Rosl again, that key?")[0].text


@pytest.mark.long
def test_07_a_retracted_fact_takes_part_in_nothing_and_is_cleaned_up(lab, clock):
    """The user takes a confirmed joke back: it is out of recall at once, retracted, and cleaned up by later upkeep.

    "*retracted* by decay or by the user (to be cleaned up)"; reference-upkeep: "or retracted and then cleaned up".
    """
    joke = lab.facts.add("Wendell", "likes", "pineapple on sushi", confidence=0.9)
    lab.facts.add("Wendell", "drives", "a rusty Saab", confidence=0.9)
    for _ in range(3):
        lab.recall("Wendell")
    lab.upkeep.maintain()
    lab.facts.retract(joke, reason="haha no that was a joke")
    assert lab.facts.frame(subject="Wendell", status="retracted")["predicate"].to_list() == ["likes"]
    texts = [hit.text for hit in lab.recall("Wendell", log=False)]
    assert any("Saab" in text for text in texts)
    assert not any("pineapple" in text for text in texts)
    clock.advance(days=400)
    lab.upkeep.maintain()
    lab.upkeep.maintain()
    left = lab.memories.filter(pl.col("text").str.contains("pineapple"))
    assert set(left["status"]) <= {"deleted", "forgotten", "expired", "purged"}
    assert lab.facts.frame(subject="Wendell", predicate="drives")["status"].to_list() == ["confirmed"]


@pytest.mark.long
def test_08_a_fact_that_a_verdict_rejects_three_times_is_not_confirmed(lab):
    """Of two facts shown three times, the one that is accepted each time is confirmed, the rejected one stays staged.

    systems.txt: "What a verifier rejects has its access, its list of uses and its freshness as before; what passes
    was counted once"; "*confirmed* at 3 accesses".
    """
    lab.facts.add("Niamh", "repairs", "old oboes", confidence=0.8)
    lab.facts.add("Niamh", "supports", "Bohemians FC", confidence=0.8)
    for _ in range(3):
        hits = lab.recall("who was it that fixes woodwind, Niamh?")
        lab.agents.verify(hits, [hit for hit in hits if "oboes" in hit.text])
    lab.upkeep.maintain()
    passed = lab.facts.frame(subject="Niamh", predicate="repairs").to_dicts()[0]
    rejected = lab.facts.frame(subject="Niamh", predicate="supports").to_dicts()[0]
    assert (passed["status"], passed["access"]) == ("confirmed", 3)
    assert (rejected["status"], rejected["access"]) == ("staged", 0)


@pytest.mark.long
def test_09_who_said_it_weighs(lab):
    """Four fresh facts that differ in their source have relevances in the proportion of the four sources.

    "source (user-edit 2.0, file 1.5, system 1.2, conversation 1.0)".
    """
    lab.facts.add("build box", "runs", "Debian 12", confidence=0.8, source="conversation")
    lab.facts.add("build box", "has-disk", "two terabytes", confidence=0.8, source="system")
    lab.facts.add("build box", "sits-in", "the cupboard by the kitchen", confidence=0.8, source="file")
    lab.facts.add("build box", "nicknamed", "Gustav", confidence=0.8, source="user-edit")
    facts = lab.facts.frame(subject="build box")
    weights = dict(facts.select("source", "relevance").rows())
    base = weights["conversation"]
    assert weights["system"] == pytest.approx(1.2 * base, rel=1e-3)
    assert weights["file"] == pytest.approx(1.5 * base, rel=1e-3)
    assert weights["user-edit"] == pytest.approx(2.0 * base, rel=1e-3)


def test_10_a_week_of_grace_then_a_twentieth_a_week_to_a_half_and_a_use_makes_fresh(lab, clock):
    """Relevance stays for 7 days, loses 5% a week after that, ranks at no less than half, and a recall renews it.

    "0.95^(max(0, days since access - 7) / 7)"; "For ranking the factors are clamped: ... time 0.5-1".
    """
    lab.facts.add("Olumide", "drinks", "rooibos, never coffee", confidence=1.0)
    seen = [lab.facts.frame(subject="Olumide")["relevance"][0]]
    for days in (7, 7, 7, 99):
        clock.advance(days=days)
        seen.append(lab.facts.frame(subject="Olumide")["relevance"][0])
    lab.recall("making a round, what does Olumide drink?")
    renewed = lab.facts.frame(subject="Olumide")["relevance"][0]
    assert [value / seen[0] for value in seen] == pytest.approx([1, 1, 0.95, 0.95**2, 0.5], rel=1e-3)
    assert renewed / seen[0] == pytest.approx(1 + 0.5 * math.log10(2), rel=1e-3)


@pytest.mark.long
def test_11_use_and_confirmation_raise_relevance_up_to_twice(lab):
    """A staged fact counts half; confirmed by three uses it counts in full with its usage, which ends at 2.

    "(1 + 0.5 log10(access + 1))", "staged (weight 0.5)", "usage 1-2".
    """
    lab.facts.add("Bartholomew", "collects", "tram tickets", confidence=0.8)
    staged = lab.facts.frame(subject="Bartholomew")["relevance"][0]
    for _ in range(3):
        lab.recall("birthday idea for Bartholomew")
    lab.upkeep.maintain()
    confirmed = lab.facts.frame(subject="Bartholomew")["relevance"][0]
    for _ in range(147):
        lab.recall("birthday idea for Bartholomew")
    often = lab.facts.frame(subject="Bartholomew")["relevance"][0]
    assert staged == pytest.approx(0.8 * 0.5, rel=1e-3)
    assert confirmed == pytest.approx(0.8 * (1 + 0.5 * math.log10(4)), rel=1e-3)
    assert often == pytest.approx(0.8 * 2, rel=1e-3)


@pytest.mark.long
def test_12_what_nobody_asks_for_decays_but_five_accesses_save(lab, clock):
    """Two years on, a fact that was used twice is retracted, and one that was used five times is still there.

    "Below 0.2: retracted, unless accessed 5 times."
    """
    lab.facts.add("Tobias", "wants", "to sell his moped", confidence=0.6)
    lab.facts.add("Yewande", "wants", "to learn glassblowing", confidence=0.6)
    for _ in range(2):
        lab.recall("anything new with Tobias?", limit=1)
    for _ in range(5):
        lab.recall("anything new with Yewande?", limit=1)
    assert lab.facts.frame(subject="Tobias")["access"].to_list() == [2]
    assert lab.facts.frame(subject="Yewande")["access"].to_list() == [5]
    clock.advance(days=730)
    done = lab.upkeep.maintain()
    assert "retracted" in done.frame.filter(pl.col("what") == "status")["to"].to_list()
    assert lab.facts.frame(subject="Tobias", status=IN_USE).is_empty()
    assert lab.facts.frame(subject="Yewande", status=IN_USE).height == 1
    assert "glassblowing" in lab.recall("Yewande?", log=False)[0].text


@pytest.mark.long
def test_13_clean_up_does_not_clamp_and_heeds_source_and_use(lab, clock):
    """After 146 days a hearsay of confidence .5 is retracted; what the user wrote and twice looked up is not.

    "For ranking the factors are clamped: source 0.5-2, time 0.5-1, usage 1-2; for clean-up they are not."
    """
    lab.facts.add("Hotel Adria", "has", "a noisy lift", confidence=0.5, source="conversation")
    lab.facts.add("dentist", "opens", "at half past seven", confidence=0.5, source="user-edit")
    for _ in range(2):
        lab.recall("when does the dentist open", limit=1)
    assert lab.facts.frame(subject="dentist")["access"].to_list() == [2]
    assert lab.facts.frame(subject="Hotel Adria")["access"].to_list() == [0]
    clock.advance(days=146)
    lab.upkeep.maintain()
    assert lab.facts.frame(subject="Hotel Adria", status=IN_USE).is_empty()
    assert lab.facts.frame(subject="dentist", status=IN_USE).height == 1


def test_14_a_correction_by_hand_takes_the_place_of_the_fact_and_weighs_more(lab):
    """A fact whose object is edited is replaced by one of source user-edit, which counts more; the old one is unused.

    "source (user-edit 2.0, ... conversation 1.0)"; reference-lab, edit: "supersedes the old one, and is
    "user-corrected" from a "user-edit""; howto-correct: an edit of the object makes the text again.
    """
    wrong = lab.facts.add(
        "Oyelaran", "works-at", object="Brightwater", confidence=0.8, source="conversation"
    )
    before = lab.facts.frame(subject="Oyelaran")["relevance"][0]
    lab.edit(wrong, object="Saltmarsh")
    now = lab.facts.frame(subject="Oyelaran", status=IN_USE).to_dicts()
    assert [(row["object"], row["source"]) for row in now] == [("Saltmarsh", "user-edit")]
    assert now[0]["relevance"] > before
    assert lab.facts.frame(subject="Oyelaran", status="superseded")["object"].to_list() == ["Brightwater"]
    texts = [hit.text for hit in lab.recall("which firm is Oyelaran with")]
    assert any("Saltmarsh" in text for text in texts)
    assert not any("Brightwater" in text for text in texts)


@pytest.mark.long
def test_15_a_changed_preference_supersedes_even_a_confirmed_one(lab, clock):
    """A confirmed theme gives way to a newer, sure one: the old is kept with an end and unused, the new is staged.

    "a new fact with confidence > 0.9 and another value for the same subject and *single-valued* predicate
    (lives-in, status, prefers:theme ...) supersedes the old (`valid until` now) and is staged"; "kept, not used".
    """
    lab.facts.add("user", "prefers:theme", "dark", confidence=0.95)
    for _ in range(3):
        lab.recall("which theme does the user want?")
    lab.upkeep.maintain()
    assert lab.facts.frame(subject="user")["status"].to_list() == ["confirmed"]
    clock.advance(days=20)
    lab.facts.add("user", "prefers:theme", "light", confidence=0.95)
    rows = {row["value"]: row for row in lab.facts.frame(subject="user").to_dicts()}
    assert {value: row["status"] for value, row in rows.items()} == {"dark": "superseded", "light": "staged"}
    assert rows["dark"]["superseded_by"] == rows["light"]["id"]
    assert rows["dark"]["valid_until"] is not None
    assert rows["light"]["valid_until"] is None
    texts = [hit.text for hit in lab.recall("which theme does the user want?")]
    assert any("light" in text for text in texts)
    assert not any("dark" in text for text in texts)


@pytest.mark.long
def test_16_only_a_sure_fact_supersedes(lab, clock):
    """Another status at confidence .9 leaves the old one in use; one at .91 takes the place of what is there.

    "Conflict: a new fact with confidence > 0.9".
    """
    lab.facts.add("checkout rewrite", "status", "blocked", confidence=0.95)
    lab.facts.add("newsletter job", "status", "paused", confidence=0.95)
    clock.advance(days=2)
    lab.facts.add("checkout rewrite", "status", "shipped", confidence=0.9)
    lab.facts.add("newsletter job", "status", "running", confidence=0.91)
    unsure = lab.facts.frame(subject="checkout rewrite", status=IN_USE)
    sure = lab.facts.frame(subject="newsletter job", status=IN_USE)
    assert set(unsure["value"]) == {"blocked", "shipped"}
    assert sure["value"].to_list() == ["running"]


@pytest.mark.long
def test_17_somebody_may_use_and_know_several(lab, clock):
    """Sure facts of predicates with several values stand side by side, and one subject's status is not another's.

    "(lives-in, status, prefers:theme; not uses, knows; a declared table)".
    """
    lab.facts.add("Farouk", "uses", "Python", confidence=0.97)
    lab.facts.add("Farouk", "knows", object="Beatrix", confidence=0.97)
    lab.facts.add("Farouk", "lives-in", object="Malmo", confidence=0.97)
    clock.advance(days=30)
    lab.facts.add("Farouk", "uses", "Rust", confidence=0.97)
    lab.facts.add("Farouk", "knows", object="Ludovic", confidence=0.97)
    lab.facts.add("Beatrix", "lives-in", object="Porto", confidence=0.97)
    assert lab.facts.frame(status="superseded").is_empty()
    assert set(lab.facts.frame(subject="Farouk", predicate="uses", status="staged")["value"]) == {"Python", "Rust"}
    friends = lab.facts.frame(subject="Farouk", predicate="knows", status="staged")["object"]
    assert set(friends) == {"Beatrix", "Ludovic"}


@pytest.mark.long
def test_18_where_somebody_lived_when(lab, clock):
    """Moves told under two spellings of lives-in end the one before, and the frame tells who lived where at a time.

    "supersedes the old (`valid until` now)"; systems.txt: "lives_in, livesIn and lives-in are one predicate";
    reference-facts: frame(at=...) has "those that held at that instant".
    """
    lab.facts.add("Svetlana", "lives-in", object="Graz", confidence=0.95)
    clock.advance(days=60)
    lab.facts.add("Svetlana", "lives_in", object="Valencia", confidence=0.95)
    clock.advance(days=60)
    lab.facts.add("Svetlana", "livesIn", object="Cork", confidence=0.95)
    clock.advance(days=1)
    assert lab.facts.frame(at="2026-04-01", subject="Svetlana")["object"].to_list() == ["Graz"]
    assert lab.facts.frame(at="2026-06-01", subject="Svetlana")["object"].to_list() == ["Valencia"]
    assert lab.facts.frame(at="2026-07-01", subject="Svetlana")["object"].to_list() == ["Cork"]
    assert lab.facts.frame(subject="Svetlana", status=IN_USE)["object"].to_list() == ["Cork"]
    assert lab.facts.frame(subject="Svetlana", status="superseded").height == 2


@pytest.mark.long
def test_19_two_hops_and_no_further(clock):
    """A question about a person brings her employer and where that is, but not what is a third step away.

    "top 3 entities by similarity (name and aliases count), 2-hop subgraph, score".
    """
    with memlab.open(pack="factgraph", clock=clock, embedder=word_vectors) as lab:
        lab.facts.add("Marisol", "works-at", object="Kestrel Labs", confidence=0.9)
        lab.facts.add("Kestrel Labs", "based-in", object="Tromso", confidence=0.9)
        lab.facts.add("Tromso", "twinned-with", object="Murmansk", confidence=0.9)
        texts = " | ".join(hit.text for hit in lab.recall("Marisol", limit=10, log=False))
        assert "Marisol" in texts
        assert "Tromso" in texts
        assert "Murmansk" not in texts


@pytest.mark.long
def test_20_the_three_nearest_entities_begin(clock):
    """Of four entities that share words with the question, the facts of the three nearest come, not of the fourth.

    "Retrieval: top 3 entities by similarity (name and aliases count)".
    """
    with memlab.open(pack="factgraph", clock=clock, embedder=word_vectors) as lab:
        lab.facts.add("engine room", "smells-of", "diesel and wet dog", confidence=0.9)
        lab.facts.add("engine oil", "kept-in", "the blue locker", confidence=0.9)
        lab.facts.add("boat oil", "bought-from", "the chandlery in Kiel", confidence=0.9)
        lab.facts.add("boat engine manual", "borrowed-by", "uncle Piet", confidence=0.9)
        texts = " | ".join(hit.text for hit in lab.recall("boat engine oil", limit=10, log=False))
        assert "locker" in texts
        assert "chandlery" in texts
        assert "Piet" in texts
        assert "diesel" not in texts


@pytest.mark.long
def test_21_the_narrative_has_a_line_for_each_entity(lab, clock):
    """What is known of the user and of a colleague is told entity by entity, and what was superseded is not told.

    "then a short narrative grouped by entity ("USER CONTEXT: prefers dark mode ...")".
    """
    lab.facts.add("user", "prefers:theme", "sepia", confidence=0.95)
    lab.facts.add("Priya", "plays", "ultimate frisbee", confidence=0.8)
    clock.advance(days=5)
    lab.facts.add("user", "uses", "Fedora", confidence=0.8)
    lab.facts.add("user", "prefers:theme", "high contrast", confidence=0.95)
    story = lab.facts.narrative("intro for the new hire: what about the user, what about Priya?")
    lines = story.text.splitlines()
    mine = [line for line in lines if "high contrast" in line]
    assert "USER CONTEXT" in story.text
    assert len(mine) == 1
    assert "Fedora" in mine[0]
    assert "frisbee" not in mine[0]
    assert any("frisbee" in line for line in lines)
    assert "sepia" not in story.text
    entities = story.frame["entity"].to_list()
    assert len(entities) == 3
    assert entities[0] == entities[1] or entities[1] == entities[2]


@pytest.mark.long
def test_22_a_context_holds_the_facts_of_what_the_task_names_once_a_session(lab, clock):
    """A task that names a project gets its facts that hold, not the superseded one, and not again in the session.

    "*superseded* by a newer conflicting fact (kept, not used)"; howto-context: tier 2 has "facts of entities that
    it names", and "Nothing is injected twice in a session".
    """
    lab.facts.entities.declare("Lanternfish", type="project")
    lab.facts.add("Lanternfish", "uses", "Postgres with row level security", confidence=0.8)
    lab.facts.add("Lanternfish", "status", "frozen", confidence=0.95)
    clock.advance(days=4)
    lab.facts.add("Lanternfish", "status", "in beta", confidence=0.95)
    first = lab.context("slides for the Lanternfish demo on friday", session="tuesday")
    again = lab.context("slides for the Lanternfish demo on friday", session="tuesday")
    other = lab.context("slides for the Lanternfish demo on friday", session="wednesday")
    assert "Postgres" in first.text
    assert "in beta" in first.text
    assert "frozen" not in first.text
    assert "Postgres" not in again.text
    assert "Postgres" in other.text


@pytest.mark.long
def test_23_the_end_of_a_conversation_promotes_and_lets_decay(lab, clock):
    """Without a call of upkeep, a conversation's end confirms what was used thrice, and a late one drops what was not.

    "After conversations: promotion, decay, conflict passes."; reference-agents: "Under a pack with
    maintain-after-session a pass of lab.upkeep.maintain follows."
    """
    lab.facts.add("Jun", "eats", "no coriander, tastes of soap", confidence=0.8)
    lab.facts.add("Ottoline", "saw", "a heron at the canal", confidence=0.6)
    for _ in range(3):
        lab.recall("dinner for Jun, what to leave out?", limit=1)
    clock.advance(days=1)
    lab.agents.conversation("kitchen")
    assert lab.facts.frame(subject="Jun")["status"].to_list() == ["confirmed"]
    assert lab.facts.frame(subject="Ottoline")["status"].to_list() == ["staged"]
    clock.advance(days=300)
    lab.agents.conversation("kitchen")
    assert lab.facts.frame(subject="Jun")["status"].to_list() == ["confirmed"]
    assert lab.facts.frame(subject="Ottoline", status=IN_USE).is_empty()


@pytest.mark.long
def test_24_a_chat_tells_of_a_move_and_its_end_settles_the_conflict(lab, clock):
    """A chat in which the user says that they moved stores the new home, staged, and ends the old one.

    "After conversations: ... conflict passes."; "supersedes the old (`valid until` now) and is staged";
    howto-extract: "I moved to Bonn last month".
    """
    lab.facts.add("user", "lives-in", object="Leipzig", confidence=0.95)
    clock.advance(days=120)
    chat = [
        {"role": "user", "content": "ugh, still unpacking. I moved to Ghent last month."},
        {"role": "assistant", "content": "Congrats! Need help with the address changes?"},
        {"role": "user", "content": "How do I tell the tax office?"},
    ]
    lab.agents.end_session("thursday", chat)
    assert lab.facts.frame(subject="user", predicate="lives-in", status="staged")["object"].to_list() == ["Ghent"]
    old = lab.facts.frame(subject="user", predicate="lives-in", status="superseded")
    assert old["object"].to_list() == ["Leipzig"]
    assert old["valid_until"].null_count() == 0
    assert not any("Leipzig" in hit.text for hit in lab.recall("in which town does the user live now?"))


@pytest.mark.long
def test_25_an_export_carries_the_life_of_facts(tmp_path, lab, clock):
    """A lab written to a file and loaded again has the same facts with status, use and relevance, and the aliases.

    "confidence 0-1, status, source, access count"; reference-index, load: of an export "every memory keeps its
    times, counts and status", and its pack is used.
    """
    lab.facts.entities.declare("Harrison Achterberg", type="person", aliases=["Harry"])
    lab.facts.add("Harry", "status", "on parental leave", confidence=0.95, source="file")
    lab.facts.add("Harry", "knows", "every crossword trick", confidence=0.7)
    for _ in range(3):
        lab.recall("what is Harry doing these days")
    lab.upkeep.maintain()
    clock.advance(days=10)
    lab.facts.add("Harry", "status", "back at the office", confidence=0.95)
    lab.io.export(tmp_path / "team.jsonl")
    other = memlab.load(tmp_path / "team.jsonl", clock=clock)
    columns = ["predicate", "value", "status", "source", "access"]
    here = lab.facts.frame(subject="Harry").sort("predicate", "value")
    there = other.facts.frame(subject="Harrison Achterberg").sort("predicate", "value")
    assert set(here["status"]) == {"superseded", "staged", "confirmed"}
    assert there.select(columns).rows() == here.select(columns).rows()
    use = pl.col("status").is_in(IN_USE)
    assert there.filter(use)["relevance"].to_list() == pytest.approx(here.filter(use)["relevance"].to_list())
    texts = [hit.text for hit in other.recall("is Harry around?")]
    assert any("back at the office" in text for text in texts)
    assert not any("parental leave" in text for text in texts)
