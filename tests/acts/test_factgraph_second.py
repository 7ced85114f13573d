"""Acts of the factgraph design, written from its description and the public reference alone."""

from datetime import datetime, timezone

import polars as pl
import pytest

import memlab


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-02")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="factgraph", clock=clock) as opened:
        yield opened


@pytest.mark.long
def test_01_an_entity_is_one_under_all_its_names(lab, clock):
    """Facts told under two nicknames of a declared person count as mentions of that one person, with the last time.
    Rests on "Entity: type (person, ...), name, aliases, embedding, mention count, last mentioned"."""
    lab.facts.entities.declare("Katarzyna Wolska", type="person", aliases=["Kasia", "KW"])
    lab.facts.add("kasia", "practises", "cello most evenings")
    clock.advance(days=4)
    lab.facts.add("Pottery Shed", "run-by", object="KW")

    entities = lab.facts.entities.frame()
    row = entities.filter(pl.col("name") == "Katarzyna Wolska").row(0, named=True)
    assert row["type"] == "person"
    assert {"Kasia", "KW"} <= set(row["aliases"])
    assert row["mentions"] == 2
    assert row["last_mentioned"] == datetime(2026, 3, 6, tzinfo=timezone.utc)
    assert not {"kasia", "kw"} & {name.lower() for name in entities["name"].to_list()}
    assert lab.facts.frame(subject="Kasia")["predicate"].to_list() == ["practises"]


@pytest.mark.long
def test_02_a_fact_has_its_fields_and_a_recall_counts_as_an_access(lab, clock):
    """A fresh fact is staged with the given fields and no access; the first recall that shows it counts and dates it.
    Rests on "Fact: subject, predicate, object (an entity) or value, confidence 0-1, status, source, access count,
    last accessed, valid until"."""
    fact = lab.facts.add("Marisol", "plays", "bass in a ska band", confidence=0.7, source="file")
    row = lab.facts.frame(subject="Marisol").row(0, named=True)
    assert (row["predicate"], row["value"], row["object"]) == ("plays", "bass in a ska band", None)
    assert row["confidence"] == pytest.approx(0.7)
    assert (row["status"], row["source"], row["access"], row["valid_until"]) == ("staged", "file", 0, None)

    clock.advance(days=3)
    assert fact.id in lab.recall("hey what was it Marisol plays again?").ids
    stored = lab.memories.filter(pl.col("id") == fact.id).row(0, named=True)
    assert stored["access"] == 1
    assert stored["accessed"] == datetime(2026, 3, 5, tzinfo=timezone.utc)


@pytest.mark.long
def test_03_the_third_access_confirms_and_praise_does_not(lab, clock):
    """After two recalls and three times "success" a fact is still staged; after the third recall a pass confirms it.
    Rests on "*staged* ... -> *confirmed* at 3 accesses" (a success is feedback, not an access)."""
    fact = lab.facts.add("Dimitri", "allergic-to", "shellfish", confidence=0.8)
    lab.recall("is there anything Dimitri is allergic to?")
    hits = lab.recall("dinner saturday, what can't Dimitri eat")
    assert hits[0].id == fact.id
    for _ in range(3):
        lab.feedback(hits[0], "success")
    lab.upkeep.maintain()
    assert lab[fact.id].status == "staged"

    clock.advance(hours=5)
    lab.recall("remind me about Dimitri and shellfish")
    lab.upkeep.maintain()
    assert lab[fact.id].access == 3
    assert lab[fact.id].status == "confirmed"


@pytest.mark.long
def test_04_what_is_told_again_is_one_fact_and_gets_confirmed(lab, clock):
    """The same fact told four times is kept once, each repetition is an access, and the next pass confirms it.
    Rests on "*confirmed* at 3 accesses" and systems.txt, factgraph: "A fact that is told again gains an access
    (merge-access), so that a fact told three times more is confirmed"."""
    first = lab.facts.add("Bea", "drives", "a yellow Fiat Panda")
    for _ in range(3):
        clock.advance(days=1)
        assert lab.facts.add("Bea", "drives", "a yellow Fiat Panda").id == first.id
    assert lab.facts.frame(subject="Bea").height == 1
    assert lab[first.id].access == 3

    lab.upkeep.maintain()
    assert lab[first.id].status == "confirmed"


@pytest.mark.long
def test_05_a_staged_fact_counts_half_in_the_ranking(lab, clock):
    """A confirmed fact of confidence .6 (told four times) stands above a staged one of .9 of the same person.
    Rests on "*staged* (weight 0.5) -> *confirmed* at 3 accesses (full weight)": .6 * 1.3 against .9 * .5."""
    for _ in range(4):
        known = lab.facts.add("Noor", "volunteers-at", "the animal shelter", confidence=0.6)
        clock.advance(minutes=20)
    fresh = lab.facts.add("Noor", "collects", "vintage postcards", confidence=0.9)
    clock.advance(hours=1)
    lab.upkeep.maintain()
    assert (lab[known.id].status, lab[fresh.id].status) == ("confirmed", "staged")

    ids = lab.recall("what do we know about Noor?").ids
    assert known.id in ids and fresh.id in ids
    assert ids.index(known.id) < ids.index(fresh.id)


@pytest.mark.long
def test_06_a_confirmed_fact_outlives_years_of_silence(lab, clock):
    """Three years unused, a confirmed fact is still confirmed and recalled, while a staged one is retracted.
    Rests on "*confirmed* ... (full weight; retracted only by the user or a conflict)" and "*retracted* by decay"."""
    bus = lab.facts.add("Yusuf", "commutes-by", "the number 14 bus", confidence=0.8)
    for _ in range(3):
        lab.recall("which bus does Yusuf take?")
    lab.upkeep.maintain()
    assert lab[bus.id].status == "confirmed"
    kiln = lab.facts.add("Petra", "rents", "a kiln in the old brewery", confidence=0.8)

    clock.advance(days=3 * 365)
    lab.upkeep.maintain()
    assert lab[bus.id].status == "confirmed"
    assert lab[kiln.id].status == "retracted"
    assert bus.id in lab.recall("which bus does Yusuf take?").ids
    assert kiln.id not in lab.recall("what does Petra rent?").ids


@pytest.mark.long
def test_07_the_user_retracts_a_fact_and_brings_it_back(lab):
    """A fact that the user retracts is in no recall and no narrative, only in the table; restore undoes it.
    Rests on "*retracted* by decay or by the user" and reference-facts, retract ("lab.restore brings it back")."""
    fact = lab.facts.add("Gwen", "works-at", object="Larkspur Dental", confidence=0.95)
    lab.facts.retract(fact, reason="she only temped there for a week")
    assert fact.id not in lab.recall("where does Gwen work?").ids
    assert "Larkspur" not in lab.facts.narrative("Gwen").text
    assert lab.facts.frame(subject="Gwen")["status"].to_list() == ["retracted"]

    lab.restore(fact)
    assert lab[fact.id].status == "staged"
    assert fact.id in lab.recall("where does Gwen work?").ids


@pytest.mark.long
def test_08_what_decayed_is_cleaned_up_step_by_step(tmp_path):
    """A vague staged fact is retracted, deleted at the next pass, due 30 days on and then purged; a sure one stays.
    Rests on "*retracted* by decay ... (to be cleaned up)" and howto-facts-and-entities, the life of a fact."""
    clock = memlab.ManualClock("2026-01-01")
    with memlab.open(tmp_path / "boats.memlab", pack="factgraph", clock=clock) as lab:
        vague = lab.facts.add("Hector", "might-buy", "a houseboat", confidence=0.25)
        sure = lab.facts.add("Simone", "repairs", "church organs", confidence=1.0, source="user-edit")
        clock.advance(days=60)
        lab.upkeep.maintain()
        assert lab[vague.id].status == "retracted"
        clock.advance(days=1)
        lab.upkeep.maintain()
        assert lab[vague.id].status == "deleted"
        clock.advance(days=31)
        assert vague.id in lab.upkeep.maintain().due["id"].to_list()

        assert lab.purge(overdue=True).ids == (vague.id,)
        assert (lab[vague.id].status, lab[vague.id].text) == ("purged", "")
        assert lab[sure.id].status == "staged"


@pytest.mark.long
def test_09_the_source_and_the_confidence_weigh_the_relevance(lab):
    """Of equally sure facts, one edited by the user is worth 2, one from a file 1.5, from the system 1.2 times one
    from a conversation, and half the confidence half. Rests on "Relevance = confidence * source (user-edit 2.0,
    file 1.5, system 1.2, conversation 1.0)"."""
    lab.facts.add("Anselm", "brews", "ginger beer", confidence=0.6, source="conversation")
    lab.facts.add("Rooftop sensor", "reports-to", "the grey box in the hall", confidence=0.6, source="system")
    lab.facts.add("Invoice tool", "written-in", "Elixir", confidence=0.6, source="file")
    lab.facts.add("Wanda", "dislikes", "voice messages", confidence=0.6, source="user-edit")
    lab.facts.add("Tilo", "owns", "two ferrets", confidence=0.3, source="conversation")

    talk, system, file, edit, half = lab.facts.frame()["relevance"].to_list()
    assert edit / talk == pytest.approx(2.0, rel=1e-6)
    assert file / talk == pytest.approx(1.5, rel=1e-6)
    assert system / talk == pytest.approx(1.2, rel=1e-6)
    assert half / talk == pytest.approx(0.5, rel=1e-6)


@pytest.mark.long
def test_10_a_week_is_free_then_a_twentieth_goes_each_week_down_to_half(lab, clock):
    """For ranking a fact keeps all its relevance for seven days, has .95 after fourteen, and never less than half.
    Rests on "0.95^(max(0, days since access - 7) / 7)" and "For ranking the factors are clamped: ... time 0.5-1"."""
    lab.facts.add("Oksana", "teaches", "night classes in welding", confidence=0.9)
    new = lab.facts.frame(subject="Oksana")["relevance"].item()
    clock.advance(days=7)
    assert lab.facts.frame(subject="Oksana")["relevance"].item() == pytest.approx(new, rel=1e-6)
    clock.advance(days=7)
    assert lab.facts.frame(subject="Oksana")["relevance"].item() == pytest.approx(0.95 * new, rel=1e-6)
    clock.advance(days=21)
    assert lab.facts.frame(subject="Oksana")["relevance"].item() == pytest.approx(0.95**4 * new, rel=1e-6)
    clock.advance(days=2000)
    assert lab.facts.frame(subject="Oksana")["relevance"].item() == pytest.approx(0.5 * new, rel=1e-6)


@pytest.mark.long
def test_11_use_makes_a_fact_more_relevant(lab):
    """Nine recalls make a fact worth half as much again.
    Rests on "Relevance = ... * (1 + 0.5 log10(access + 1))"."""
    lab.facts.add("Benedikt", "keeps", "bees behind the garage", confidence=0.5)
    before = lab.facts.frame(subject="Benedikt")["relevance"].item()
    for _ in range(9):
        lab.recall("where are the bees of Benedikt?")
    after = lab.facts.frame(subject="Benedikt").row(0, named=True)
    assert after["access"] == 9
    assert after["relevance"] == pytest.approx(1.5 * before, rel=1e-6)


@pytest.mark.long
def test_12_clean_up_looks_at_the_relevance_without_bounds(lab, clock):
    """A hint of .25 goes between day 37 and 38, a statement of .8 by day 250, and not if the user had written it.
    Rests on "for clean-up they are not [clamped]. Below 0.2: retracted" and the half weight being for ranking alone
    (howto-facts-and-entities)."""
    hint = lab.facts.add("Rosalind", "considers", "quitting the choir", confidence=0.25)
    said = lab.facts.add("Garage door", "opens-with", "a code nobody wrote down", confidence=0.8)
    typed = lab.facts.add("Ferry", "leaves-from", "pier six", confidence=0.8, source="user-edit")
    clock.advance(days=37)
    lab.upkeep.maintain()
    assert [lab[one.id].status for one in (hint, said, typed)] == ["staged", "staged", "staged"]
    clock.advance(days=1)
    lab.upkeep.maintain()
    assert [lab[one.id].status for one in (hint, said, typed)] == ["retracted", "staged", "staged"]

    clock.advance(days=212)
    lab.upkeep.maintain()
    assert lab[said.id].status == "retracted"
    assert lab[typed.id].status == "staged"


@pytest.mark.long
def test_13_a_correction_by_the_user_replaces_the_fact(lab, clock):
    """An edit of a confirmed fact makes a confirmed one from "user-edit" that starts unused, and the old is kept,
    not used. Rests on "source (user-edit 2.0 ...)", "*superseded* ... (kept, not used)" and reference-lab, edit."""
    fact = lab.facts.add("Leif", "lives-in", object="Bergen", confidence=0.8)
    for _ in range(3):
        lab.recall("where does Leif live?")
    clock.advance(days=1)
    lab.upkeep.maintain()
    edited = lab.edit(fact, object="Stavanger")

    assert edited.id != fact.id
    assert (edited.status, edited.access, edited.object) == ("confirmed", 0, "Stavanger")
    assert lab.memories.filter(pl.col("id") == edited.id)["source"].item() == "user-edit"
    assert (lab[fact.id].status, lab[fact.id].superseded_by) == ("superseded", edited.id)
    told = lab.facts.narrative("where does Leif live?").text
    assert "Stavanger" in told and "Bergen" not in told


@pytest.mark.long
def test_14_five_accesses_save_a_weak_fact(lab, clock):
    """A weak fact that was asked for five times is still in use two years later; its unasked twin is retracted.
    Rests on "Below 0.2: retracted, unless accessed 5 times"."""
    asked = lab.facts.add("Old laptop", "boots-only-with", "the lid half closed", confidence=0.3)
    for _ in range(5):
        lab.recall("how do I get the old laptop to boot??")
    assert lab[asked.id].access == 5
    unasked = lab.facts.add("Ottilie", "rumoured-to-own", "a parrot", confidence=0.3)

    clock.advance(days=730)
    lab.upkeep.maintain()
    assert lab[asked.id].status in ("staged", "confirmed")
    assert lab[unasked.id].status == "retracted"
    assert asked.id in lab.recall("old laptop won't boot again").ids


@pytest.mark.long
def test_15_a_move_supersedes_the_old_home(lab, clock):
    """A sure new home ends the old one, even a confirmed one, as of now, and is itself staged; the past stays known.
    Rests on "a new fact with confidence > 0.9 and another value for the same subject and *single-valued* predicate
    (lives-in ...) supersedes the old (`valid until` now) and is staged"."""
    for _ in range(4):
        old = lab.facts.add("Tomasz", "lives-in", object="Gdansk", confidence=0.9)
        clock.advance(days=1)
    lab.upkeep.maintain()
    assert lab[old.id].status == "confirmed"
    clock.set("2026-06-01")
    new = lab.facts.add("Tomasz", "lives-in", object="Leipzig", confidence=0.95)

    assert (lab[old.id].status, lab[old.id].superseded_by) == ("superseded", new.id)
    assert lab[new.id].status == "staged"
    ended = lab.facts.frame(subject="Tomasz", status="superseded")["valid_until"].item()
    assert ended == datetime(2026, 6, 1, tzinfo=timezone.utc)
    assert lab.facts.frame(at="2026-04-01", subject="Tomasz")["object"].to_list() == ["Gdansk"]
    assert lab.facts.frame(at="2026-06-02", subject="Tomasz")["object"].to_list() == ["Leipzig"]
    ids = lab.recall("what city does Tomasz live in these days?").ids
    assert new.id in ids and old.id not in ids


@pytest.mark.long
def test_16_a_doubtful_or_many_valued_fact_ends_nothing(lab, clock):
    """Another status of confidence .9 leaves the old one in force, and so does a second tool or friend, however sure.
    Rests on "a new fact with confidence > 0.9" and "*single-valued* predicate (...; not uses, knows ...)"."""
    lab.facts.add("Rooftop garden", "status", "on hold", confidence=0.95)
    lab.facts.add("Ines", "uses", "Neovim", confidence=0.99)
    lab.facts.add("Ines", "knows", object="Baptiste", confidence=0.99)
    clock.advance(days=10)
    lab.facts.add("Rooftop garden", "status", "approved", confidence=0.9)
    lab.facts.add("Ines", "uses", "Blender", confidence=0.99)
    lab.facts.add("Ines", "knows", object="Chiamaka", confidence=0.99)

    facts = lab.facts.frame()
    assert facts["status"].to_list() == ["staged"] * 6
    assert facts["valid_until"].null_count() == 6


@pytest.mark.long
def test_17_a_context_says_what_holds_once_a_session(lab, clock):
    """A context for a task that names a project has its facts in one line, without the superseded status, and only
    once a session. Rests on "*superseded* ... (kept, not used)", "grouped by entity" and howto-context ("facts of one
    entity share a line", "Nothing is injected twice in a session")."""
    lab.facts.add("Marigold app", "status", "prototype", confidence=0.95)
    clock.advance(days=20)
    lab.facts.add("Marigold app", "status", "in beta", confidence=0.95)
    lab.facts.add("Marigold app", "looked-after-by", object="Sunita", confidence=0.8)

    task = "draft the announcement mail for the Marigold app"
    text = lab.context(task, session="tuesday").text
    assert any("in beta" in line and "Sunita" in line for line in text.splitlines())
    assert "prototype" not in text
    assert "in beta" not in lab.context(task, session="tuesday").text
    assert "in beta" in lab.context(task, session="friday").text


@pytest.mark.long
def test_18_a_preference_changes_and_spellings_of_a_predicate_are_one(lab, clock):
    """A new theme takes the place of the old and leaves the editor alone; livesIn ends what lives_in said.
    Rests on "*single-valued* predicate (lives-in, status, prefers:theme ...)" and systems.txt, factgraph ("lives_in,
    livesIn and lives-in are one predicate")."""
    lab.facts.add("user", "prefers:theme", "dark", confidence=0.95)
    lab.facts.add("user", "prefers:editor", "Kate", confidence=0.95)
    lab.facts.add("user", "lives_in", object="Faro", confidence=0.95)
    clock.advance(days=30)
    lab.facts.add("user", "prefers:theme", "light", confidence=0.95)
    lab.facts.add("user", "livesIn", object="Braga", confidence=0.95)

    assert lab.facts.frame(subject="user", status="superseded").height == 2
    told = lab.facts.narrative("which theme and editor does the user prefer, and where does the user live?").text
    assert "light" in told and "Kate" in told and "Braga" in told
    assert "dark" not in told and "Faro" not in told


def test_19_the_table_of_single_values_can_be_read_and_extended(tmp_path, clock):
    """The shipped table names the predicates of the design; a pack of one's own adds "sits-at", which then has one
    value. Rests on "a declared table" and "Every number here is a default of that pack, readable and changeable"."""
    table = str(memlab.load_pack("factgraph").settings["single-valued"]).split()
    assert "lives-in" in table and "status" in table
    assert "uses" not in table and "knows" not in table

    mine = tmp_path / "desks.hy"
    mine.write_text(
        '(pack desks "One desk each." :inherits factgraph)\n'
        '(setting single-valued "lives-in status prefers:* sits-at")\n'
    )
    with memlab.open(pack=str(mine), clock=clock) as lab:
        old = lab.facts.add("Priya", "sits-at", "the desk by the window", confidence=0.95)
        clock.advance(days=2)
        new = lab.facts.add("Priya", "sits-at", "the corner desk upstairs", confidence=0.95)
        assert (lab[old.id].status, lab[old.id].superseded_by) == ("superseded", new.id)
        assert lab[new.id].status == "staged"


def bikes_or_taxes(texts):
    words = [("bike", "cycling"), ("tax", "invoice")]
    rows = [[float(any(word in text.lower() for word in group)) for group in words] + [0.2] for text in texts]
    return pl.DataFrame(rows, schema=["bikes", "taxes", "rest"], orient="row").to_numpy()


@pytest.mark.long
def test_20_a_question_begins_at_the_entity_that_it_is_near_or_nicknames(clock):
    """With vectors of one's own, a question near an entity, or one with an alias of it, brings up that entity's fact
    before a surer one of another. Rests on "top 3 entities by similarity (name and aliases count)"."""
    with memlab.open(pack="factgraph", clock=clock, embedder=bikes_or_taxes) as lab:
        lab.facts.entities.declare("gravel bike", aliases=["Rocinante"])
        lab.facts.add("tax return", "due-by", "the last day of July", confidence=0.9)
        tyres = lab.facts.add("gravel bike", "needs", "new tyres", confidence=0.6)
        assert lab.recall("anything left to do before we go cycling?")[0].id == tyres.id
        assert lab.recall("what does Rocinante still need")[0].id == tyres.id


def test_21_a_recall_reaches_two_hops_and_no_further(lab):
    """From a named person a recall finds her fact, then that of her workplace, and not that of the workplace's mill.
    Rests on "2-hop subgraph, score" and howto-facts-and-entities ("a fact of the named entity has 1 and a fact of its
    neighbour 3", three edges in all)."""
    own = lab.facts.add("Lena", "works-at", object="Brightwell Bakery", confidence=0.8)
    near = lab.facts.add("Brightwell Bakery", "buys-flour-from", object="Canal Mill", confidence=0.8)
    far = lab.facts.add("Canal Mill", "powered-by", object="wooden waterwheel", confidence=0.8)

    ids = lab.recall("tell me something about Lena").ids
    assert own.id in ids and near.id in ids
    assert ids.index(own.id) < ids.index(near.id)
    assert far.id not in ids


@pytest.mark.long
def test_22_a_recall_begins_at_three_entities(lab):
    """A question that names four unconnected entities brings up the facts of three of them.
    Rests on "Retrieval: top 3 entities by similarity"."""
    facts = [
        lab.facts.add("Ravi", "sprained", "an ankle on the stairs", confidence=0.8),
        lab.facts.add("Marguerite", "paints", "shop signs", confidence=0.8),
        lab.facts.add("Bluebird project", "needs", "a second reviewer", confidence=0.8),
        lab.facts.add("Osaka office", "closes-at", "half past five", confidence=0.8),
    ]
    ids = lab.recall("news on Ravi, Marguerite, the Bluebird project and the Osaka office please").ids
    assert len(ids) == 3
    assert set(ids) < {fact.id for fact in facts}


@pytest.mark.long
def test_23_a_narrative_is_short_and_grouped_by_entity(lab):
    """Facts that were told in turns come as one line an entity, the one asked first in front, within a given budget.
    Rests on "then a short narrative grouped by entity" and reference-facts, narrative."""
    lab.facts.add("Odile", "breeds", "axolotls")
    lab.facts.add("Farid", "mends", "accordions")
    lab.facts.add("Odile", "speaks", "Flemish")
    lab.facts.add("Farid", "cycles-to", "the allotment")

    narrative = lab.facts.narrative("what can you tell me about Farid and Odile?")
    entities = [entity.lower() for entity in narrative.frame["entity"].to_list()]
    assert entities == ["farid", "farid", "odile", "odile"]
    assert narrative.frame["staged"].all()
    lines = [line for line in narrative.text.splitlines() if line.strip()]
    assert len(lines) == 2
    assert "accordions" in lines[0] and "allotment" in lines[0]
    assert "axolotls" in lines[1] and "Flemish" in lines[1]

    short = lab.facts.narrative("what can you tell me about Farid and Odile?", budget_tokens=20)
    assert short.tokens <= 20
    assert short.left_out > 0


@pytest.mark.long
def test_24_the_end_of_a_conversation_promotes_decays_and_settles_conflicts(lab, clock):
    """When a talk with a change of home ends, the old home is superseded, a fact told four times is confirmed and a
    vague one retracted, without any other call. Rests on "After conversations: promotion, decay, conflict passes"."""
    lab.agents.commit(lab.agents.extract("I live in Porto.").facts)
    for _ in range(4):
        often = lab.facts.add("Zeynep", "coaches", "handball for the under tens", confidence=0.8)
        clock.advance(hours=2)
    vague = lab.facts.add("Aunt Rosa", "might-sell", "the cottage", confidence=0.25)

    clock.advance(days=60)
    talk = [
        {"role": "user", "content": "I moved to Utrecht last month."},
        {"role": "assistant", "content": "Oh nice, how is it?"},
    ]
    lab.agents.end_session("thursday", talk)
    homes = lab.facts.frame(subject="user", predicate="lives-in").sort("id")
    assert homes["object"].to_list() == ["Porto", "Utrecht"]
    assert homes["status"].to_list() == ["superseded", "staged"]
    assert lab[often.id].status == "confirmed"
    assert lab[vague.id].status == "retracted"


@pytest.mark.long
def test_25_an_export_takes_entities_and_the_life_of_facts_along(lab, clock, tmp_path):
    """A lab that was exported and loaded elsewhere has the same facts with status, accesses and times, knows the alias
    and uses the same design. Rests on the fields of "Entity" and "Fact", and reference-io, export ("reads
    back exactly")."""
    lab.facts.entities.declare("Wilhelmina Okafor", type="person", aliases=["Billie"])
    lab.facts.add("Billie", "status", "on parental leave", confidence=0.95)
    clock.advance(days=15)
    lab.facts.add("Billie", "status", "back half days", confidence=0.95)
    for _ in range(4):
        lab.facts.add("Billie", "answers", "the pager on weekends", confidence=0.8)
        clock.advance(hours=2)
    lab.upkeep.maintain()
    path = lab.io.export(tmp_path / "team.jsonl")

    with memlab.load(str(path), clock=clock) as other:
        assert other.policies.pack.name == "factgraph"
        columns = ["predicate", "value", "confidence", "status", "source", "access", "valid_until"]
        ours, theirs = (one.facts.frame().select(columns).sort("value") for one in (lab, other))
        assert sorted(ours["status"].to_list()) == ["confirmed", "staged", "superseded"]
        assert theirs.rows() == ours.rows()
        texts = " ".join(hit.text for hit in other.recall("is Billie around?"))
        assert "back half days" in texts and "on parental leave" not in texts
