"""Acts of the cascade design, written from its description and the public reference alone."""

import math
import warnings

import polars as pl
import pytest

import memlab
from memlab.errors import MemlabError, MemoryOff, PrivacyError

START = "2026-03-01"


@pytest.fixture
def clock():
    return memlab.ManualClock(START)


@pytest.fixture
def lab(clock):
    with memlab.open(pack="cascade", clock=clock) as opened:
        yield opened


def vectors(table, dim):
    """An embedder with given vectors: {text: {axis: value}}; any other text lies on the last axis."""

    def encode(texts):
        rows = [next((vector for key, vector in table.items() if key in text), {dim - 1: 1.0}) for text in texts]
        columns = {f"d{axis}": [float(row.get(axis, 0.0)) for row in rows] for axis in range(dim)}
        return pl.DataFrame(columns, schema={name: pl.Float64 for name in columns}).to_numpy()

    return encode


def shown(hits):
    """The ids that a recall put first; probes, shown to learn about them, left out."""
    return [hit.id for hit in hits if not hit.probe]


def row(lab, memory_id):
    """A row of lab.memories."""
    return lab.memories.row(by_predicate=pl.col("id") == memory_id, named=True)


def test_01_tags_have_a_name_a_count_and_a_description(lab):
    """Notes are tagged at writing and afterwards, and one tag is described; the list of tags says how many bear
    each. "tag (name, description, count)", "Tags: given", "`#project:x`" and the tools "list (by tag)", "tag"."""
    uv = lab.remember("we use uv instead of pip, pip is banned", tags=["tooling", "project:atlas"], linking="off")
    ruff = lab.remember("ruff formats on save, don't argue with it", tags=["tooling"], linking="off")
    lunch = lab.remember("Friday lunch is on Benedikt", linking="off")
    lab.graph.tag(lunch, "#social")
    lab.graph.describe_tag("tooling", "what runs on a developer's machine")

    tags = {entry["tag"]: entry for entry in lab.graph.tags().to_dicts()}
    assert {"tooling", "project:atlas", "social"} <= set(tags)
    assert tags["tooling"]["memories"] == 2
    assert tags["project:atlas"]["memories"] == tags["social"]["memories"] == 1
    assert tags["tooling"]["description"] == "what runs on a developer's machine"
    listed = lab.memories.filter(pl.col("tags").list.contains("tooling"))
    assert sorted(listed["id"].to_list()) == sorted([uv.id, ruff.id])


@pytest.mark.long
def test_02_what_contradicts_is_kept_and_flagged(lab, clock):
    """A statement and, later, its denial are remembered: both stay in use and are recalled, joined by an edge.
    "`contradicts` (both kept, flagged)"."""
    first = lab.remember("Bruna likes cilantro", linking="now")
    clock.advance(hours=5)
    second = lab.remember("Bruna does not like cilantro", linking="now")

    assert second.id != first.id
    assert row(lab, first.id)["status"] == row(lab, second.id)["status"] == "active"
    flags = lab.edges.filter(pl.col("relation") == "contradicts")
    assert [{edge["source"], edge["target"]} for edge in flags.to_dicts()] == [{first.id, second.id}]
    assert {first.id, second.id} <= set(shown(lab.recall("does Bruna like cilantro?")))


def test_03_a_correction_supersedes_what_was_wrong(lab, clock):
    """A note is corrected by its user: the new one is recalled, the old one is out of use and says by what it was
    superseded. "`supersedes`", "superseded by", "provenance (user-stated, user-corrected, ...; a chain ...)"."""
    note = lab.remember("the recipe blog's nightly backup starts at 2am", provenance="observed", linking="off")
    clock.advance(days=2)
    edited = lab.edit(note, text="the recipe blog's nightly backup starts at 4am")

    ids = shown(lab.recall("when does the nightly backup start?"))
    assert edited.id in ids and note.id not in ids
    assert lab[note.id].superseded_by == edited.id
    assert row(lab, note.id)["status"] == "superseded"
    assert row(lab, edited.id)["provenance"] == "user-corrected"
    assert "corrected" in lab.upkeep.review.provenance(edited.id)["how"].to_list()


@pytest.mark.long
def test_04_a_rewritten_near_duplicate_adds_to_strength(lab, clock):
    """The same thing is noted in two sessions, with another punctuation: one memory is in use, its strength grew by
    one and its chain names both sessions. "`strength` (consolidations: rewriting a near-duplicate adds 1)"; "a chain
    with session, time"; strength begins at 1 (systems)."""
    first = lab.remember("The staging server runs on Hetzner in Falkenstein", session="monday", linking="now")
    assert row(lab, first.id)["strength"] == pytest.approx(1)
    clock.advance(days=4)
    again = lab.remember("The staging server runs on Hetzner, in Falkenstein.", session="friday", linking="now")

    in_use = lab.memories.filter(pl.col("status") == "active")
    assert in_use["id"].to_list() == [again.id]
    assert row(lab, again.id)["strength"] == pytest.approx(2)
    assert set(lab.upkeep.review.provenance(again.id)["session"].to_list()) == {"monday", "friday"}


@pytest.mark.long
def test_05_file_paths_give_tags(lab):
    """Remarks that point to Rust files are remembered: they bear the tag of the language beside what was given, and
    can be listed by it. "Tags: given, inferred (file paths, ...)", "`#rust`"."""
    early = lab.remember(
        "handlers bail out early, nobody nests five ifs here",
        files=["services/ledger/handler.rs"], tags=["preference"], linking="off",
    )
    retry = lab.remember("three retries, then page Oksana", files=["src/queue/retry.rs"], linking="off")
    plain = lab.remember("the mascot is an otter", linking="off")

    assert {"preference", "rust"} <= set(row(lab, early.id)["tags"])
    assert "rust" in row(lab, retry.id)["tags"]
    assert "rust" not in (row(lab, plain.id)["tags"] or [])
    counts = dict(lab.graph.tags().select("tag", "memories").rows())
    assert counts["rust"] == 2


@pytest.mark.long
def test_06_clusters_are_found_and_joined(clock):
    """Two heaps of notes are clustered, a new one falls beside the first heap, and the clusters are refined: it joins,
    and its likes are of its heap. "Clusters: HDBSCAN over embeddings ..., centroids kept, memories near a dense region
    join it. 'Find similar': `lab.graph.similar(id)`"."""
    bread = ["feed the starter", "score the loaf", "rye needs longer", "steam the oven", "proof overnight", "salt late"]
    bikes = ["true the wheel", "chain is worn", "grease the hub", "pump to 4 bar", "pads squeak", "bleed the brake"]
    table = {text: {0: 1.0, 2 + place: 0.15} for place, text in enumerate(bread)}
    table |= {text: {1: 1.0, 2 + place: 0.15} for place, text in enumerate(bikes)}
    table["never slice it hot"] = {0: 1.0}
    with memlab.open(pack="cascade", clock=clock, embedder=vectors(table, 9)) as lab:
        heap = set(lab.remember(bread, linking="off").ids)
        lab.remember(bikes, linking="off")
        lab.graph.clusters.find(min_size=4)
        assert lab.graph.clusters.frame()["members"].to_list() == [6, 6]
        assert lab.edges.filter(pl.col("relation") == "in-cluster").height == 12

        late = lab.remember("never slice it hot", linking="off")
        lab.graph.clusters.refine()
        assert lab.graph.clusters.frame()["members"].to_list() == [7, 6]
        assert set(lab.graph.similar(late.id, limit=6)["memory_id"].to_list()) == heap


def test_07_from_a_similarity_of_04_and_ten_at_most(clock):
    """Of two notes about ferries one is near enough to the question and one is not; then fourteen nearer ones come,
    and ten of these are shown. "similarity >= 0.4, top 10 as seeds", "10 results"; vectors are given (bring an
    embedder)."""
    question = "when does the last ferry leave?"
    near = {f"boat note number {place:02d}, see pier": {0: 0.6, place: 0.8} for place in range(1, 15)}
    table = {question: {0: 1.0}, "harbour master knows": {0: 0.46, 15: 0.888}, "gulls steal chips": {0: 0.34, 16: 0.94}}
    with memlab.open(pack="cascade", clock=clock, embedder=vectors(table | near, 18)) as lab:
        enough = lab.remember("harbour master knows", linking="off")
        lab.remember("gulls steal chips", linking="off")
        assert shown(lab.recall(question, log=False)) == [enough.id]

        nearer = lab.remember(list(near), linking="off").ids
        best = shown(lab.recall(question, log=False))
        assert len(best) == 10
        assert set(best) <= set(nearer)


def test_08_what_the_cascade_reaches_scores_by_edge_and_depth(clock):
    """Five notes hang on one that the question finds, by links of either direction; a sixth is three edges away. They
    score as the design says, relative to the seed: "breadth-first to depth 2, both directions", "scores *that edge's*
    weight * 0.7^(d+1)", "relates-to its own weight, else 0.3", "reached twice it keeps its best score"."""
    question = "why is the importer slow?"
    texts = ["importer locks the table", "vacuum runs at noon", "disk is nearly full", "Ewa ordered disks",
             "old incident report", "the mover script"]
    table = {text: {2 + place: 1.0} for place, text in enumerate(texts)}
    table |= {question: {0: 1.0}, texts[0]: {0: 0.8, 1: 0.6}}
    with memlab.open(pack="cascade", clock=clock, embedder=vectors(table, 9)) as lab:
        seed, one, two, three, source, twice = lab.remember(texts, linking="off").ids
        lab.graph.link(one, seed, weight=0.9)
        lab.graph.link(one, two, weight=0.8)
        lab.graph.link(two, three, weight=1.0)
        lab.graph.link(seed, source, "derived-from")
        lab.graph.link(pl.DataFrame({"source": [seed, one], "target": [twice, twice], "weight": [0.5, 1.0]}))

        scores = {hit.id: hit.score for hit in lab.recall(question, log=False)}
        assert set(scores) == {seed, one, two, source, twice}
        expected = {one: 0.9 * 0.7, two: 0.8 * 0.49, source: 0.3 * 0.7, twice: 1.0 * 0.49}
        for memory_id, value in expected.items():
            assert scores[memory_id] / scores[seed] == pytest.approx(value / 0.8, rel=0.03)


def test_09_a_shared_tag_leads_from_one_note_to_another(lab):
    """A question finds one note by its words and another, that shares no word with it, by their common tag; without
    the tag it is not found. "tags and clusters are passed through and count as a hop"."""
    stubs = lab.remember("regenerate the protobuf stubs before you tag a build", tags=["shipping"], linking="off")
    wanda = lab.remember("Wanda signs the macOS installer by hand, give her a day", tags=["shipping"], linking="off")
    canteen = lab.remember(
        "the canteen downstairs closes at three on Fridays because the cook has to fetch her kids", linking="off"
    )
    ids = shown(lab.recall("protobuf stubs", log=False))
    assert stubs.id in ids and wanda.id in ids and canteen.id not in ids

    lab.graph.tag(wanda, "shipping", remove=True)
    assert shown(lab.recall("protobuf stubs", log=False)) == [stubs.id]


def test_10_recency_lifts_a_memory_by_its_own_weight(clock):
    """Three equally near notes have no, the usual and the full weight of recency: fresh, and a day later, they score
    by it. "Recency boost 1 + w e^(-hours since access / 24), w per memory, default 0.5"."""
    question = "which gate today?"
    texts = ["gate B12 says Kwame", "gate changed twice", "lounge is closed"]
    table = {text: {0: 0.8, 1 + place: 0.6} for place, text in enumerate(texts)} | {question: {0: 1.0}}
    with memlab.open(pack="cascade", clock=clock, embedder=vectors(table, 6)) as lab:
        flat = lab.remember(texts[0], recency_weight=0.0, linking="off")
        usual = lab.remember(texts[1], linking="off")
        keen = lab.remember(texts[2], recency_weight=1.0, linking="off")

        fresh = {hit.id: hit.score for hit in lab.recall(question, log=False)}
        assert fresh[usual.id] / fresh[flat.id] == pytest.approx(1.5, rel=0.01)
        assert fresh[keen.id] / fresh[flat.id] == pytest.approx(2.0, rel=0.01)

        clock.advance(hours=24)
        later = {hit.id: hit.score for hit in lab.recall(question, log=False)}
        assert later[usual.id] / later[flat.id] == pytest.approx(1 + 0.5 / math.e, rel=0.01)
        assert later[keen.id] / later[flat.id] == pytest.approx(1 + 1 / math.e, rel=0.01)


@pytest.mark.long
def test_11_scopes_reach_a_session_a_project_or_everywhere(lab, clock):
    """Three notes about the standup have the three scopes: each is recalled where it reaches, the project's until it
    is deleted, the global one years later too. "`scope` (global: permanent; project: until deleted; session: this
    session)"."""
    room = lab.remember("standup is in the tiny room, just today", scope="session", session="mon", linking="off")
    wiki = lab.remember("standup minutes go to the payments wiki", scope="project", project="payments", linking="off")
    tongue = lab.remember("standup is held in Portuguese", scope="global", linking="off")

    assert set(shown(lab.recall("standup", session="mon", project="payments"))) == {room.id, wiki.id, tongue.id}
    assert shown(lab.recall("standup", session="tue", project="mobile")) == [tongue.id]
    lab.forget(project="payments", how="delete")
    assert set(shown(lab.recall("standup", session="mon", project="payments"))) == {room.id, tongue.id}
    clock.advance(days=800)
    assert shown(lab.recall("standup", session="another", project="payments")) == [tongue.id]


def test_12_a_seasonal_memory_waits_for_its_season(lab):
    """A note belongs to the release week: it is recalled while the caller names that season, and neither without nor
    under another. "seasonal (a named season that the caller switches on: 'release-week')"."""
    freeze = lab.remember("merges to main are frozen, ask Ingrid for exceptions", season="release-week", linking="off")
    always = lab.remember("merges to main need two thumbs up", linking="off")

    assert shown(lab.recall("merges to main")) == [always.id]
    assert set(shown(lab.recall("merges to main", season="release-week"))) == {freeze.id, always.id}
    assert shown(lab.recall("merges to main", season="summer-party")) == [always.id]


@pytest.mark.long
def test_13_confidence_fades_by_kind_and_by_provenance(lab):
    """Seven notes are left alone: after as many days as the design gives its kind, 1/e is left of each. "e^(-age in
    days / half-life)", "correction 365, preference 90, procedure 60, fact 30, provenance inferred 7 days whatever the
    kind, negative as correction"."""
    notes = [
        ("no, the client's name is Thandiwe, not Tandi", "correction", "user-stated", "2027-03-01"),
        ("I like my diffs small", "preference", "user-stated", "2026-05-30"),
        ("to reset the kiosk hold both buttons", "procedure", "user-stated", "2026-04-30"),
        ("the kiosk sits in the lobby", "fact", "user-stated", "2026-03-31"),
        ("never reboot the kiosk during a demo", "negative", "user-stated", "2027-03-01"),
        ("she probably works from Cork", "fact", "inferred", "2026-03-08"),
        ("he seems to favour dark roasts", "preference", "inferred", "2026-03-08"),
    ]
    for text, kind, provenance, until in notes:
        note = lab.remember(text, kind=kind, provenance=provenance, confidence=0.8, linking="off")
        curve = lab.upkeep.forecast(note.id, until, points=2).frame.sort("at")["retention"].to_list()
        assert curve[-1] / curve[0] == pytest.approx(math.exp(-1), rel=0.005), (kind, provenance)


@pytest.mark.long
def test_14_trust_and_use_move_confidence(lab):
    """Five facts of one initial confidence came to be known in five ways, and one of them is recalled: what is left of
    each is by its trust, and the recalled one gains by its access. "(1 + 0.1 ln(access count + 1)) * trust", "`trust`
    by provenance: 1.0, 1.0, 0.8, 0.6, 0.7"."""
    trust = {"user-stated": 1.0, "user-corrected": 1.0, "observed": 0.8, "inferred": 0.6, "extracted": 0.7}
    texts = ["the piano was tuned in May", "Leila's cat is called Mops", "tram 9 skips our stop",
             "the attic leaks a bit", "Jonas swims before work"]
    ids = {}
    for text, provenance in zip(texts, trust, strict=True):
        ids[provenance] = lab.remember(text, provenance=provenance, confidence=0.6, linking="off").id

    before = lab.upkeep.forecast(list(ids.values()), "2026-03-10", points=2).frame.sort("at", maintain_order=True)
    left = dict(before.head(5).select("memory_id", "retention").rows())
    for provenance, factor in trust.items():
        assert left[ids[provenance]] / left[ids["user-stated"]] == pytest.approx(factor, rel=0.01), provenance

    assert ids["observed"] in shown(lab.recall("tram 9"))
    after = lab.upkeep.forecast(ids["observed"], "2026-03-10", points=2).frame.sort("at")["retention"][0]
    assert after / left[ids["observed"]] == pytest.approx(1 + 0.1 * math.log(2), rel=0.01)


def test_15_a_negative_memory_surfaces_at_its_trigger(lab):
    """A warning with a trigger comes up when what is being done holds the trigger, although they share nothing else,
    and not at other work. "Negative memories ... carry trigger patterns and surface when one matches the context"."""
    warning = lab.remember(
        "never print what customers typed into payment forms", kind="negative", triggers=["console.log"], linking="off"
    )
    matching = "I'll stick a console.log into the parser and look what it eats"
    assert warning.id in shown(lab.recall(matching))
    assert warning.id not in shown(lab.recall("rename the sidebar colours of our dark theme"))
    assert "never print what customers typed" in lab.context(matching).text


@pytest.mark.long
def test_16_a_procedure_gives_its_steps_when_it_is_called(lab):
    """A procedure is stored with all its parts; a task that holds its trigger gets its steps, a task about something
    else does not. "Procedures carry name, trigger, steps, prerequisites, warnings"."""
    steps = ["export the mix as flac", "upload it to the archive", "mail the link to Noor"]
    episode = lab.remember(
        "How a podcast episode is published", kind="procedure", title="Publish an episode",
        triggers=["episode goes out"], steps=steps, prerequisites=["the jingle is cleared"],
        warnings=["never on a Sunday night"], linking="off",
    )
    stored = row(lab, episode.id)
    assert list(stored["prerequisites"]) == ["the jingle is cleared"]
    assert list(stored["warnings"]) == ["never on a Sunday night"]

    called = lab.context("ok folks, tonight the Episode goes out, what do I do").text
    assert all(step in called for step in steps)
    assert steps[0] not in lab.context("water the plants in the corner office").text


@pytest.mark.long
def test_17_feedback_moves_strength_and_confidence(lab):
    """A memory is recalled, helps, and later misleads; two others stand at the ends of the scale. "use adds an access;
    helpful: strength + 1, confidence + 0.05 (at most 1); not helpful: confidence - 0.1 (at least 0)"."""
    reach = lab.remember("Tomás answers faster on Signal than by mail", confidence=0.7, linking="off")
    sure = lab.remember("water boils lower up at the hut", confidence=0.98, linking="off")
    vague = lab.remember("someone mentioned a second key", confidence=0.04, linking="off")

    hits = lab.recall("Tomás Signal")
    assert hits[0].id == reach.id and row(lab, reach.id)["access"] == 1
    lab.feedback(hits[0], "success")
    assert row(lab, reach.id)["strength"] == pytest.approx(2)
    assert row(lab, reach.id)["confidence"] == pytest.approx(0.75, abs=1e-3)
    lab.feedback([
        {"memory": reach.id, "outcome": "fail"},
        {"memory": sure.id, "outcome": "success"},
        {"memory": vague.id, "outcome": "fail"},
    ])
    assert row(lab, reach.id)["confidence"] == pytest.approx(0.65, abs=1e-3)
    assert row(lab, sure.id)["confidence"] == pytest.approx(1.0, abs=1e-3)
    assert row(lab, vague.id)["confidence"] == pytest.approx(0.0, abs=1e-3)


@pytest.mark.long
def test_18_verified_memories_grow_together(lab):
    """A recall shows three notes, two pass and one does not, twice over: the two get an edge that grows, accesses and
    confidence, the third loses some. "two or more verified memories get or strengthen `relates-to` edges (+0.1, at most
    1)"; "verified ones gain an access and 0.02 confidence; rejected ones lose 0.02"."""
    texts = ["kitchen tiles arrive Thursday", "grout for the kitchen tiles is beige",
             "my gran had kitchen tiles like that"]
    remembered = lab.remember([{"text": text, "confidence": 0.6} for text in texts], linking="off")
    tiles, grout, gran = remembered.ids

    weights = []
    for _ in range(2):
        hits = lab.recall("kitchen tiles")
        assert set(shown(hits)) == {tiles, grout, gran}
        lab.agents.verify(hits, [tiles, grout], rejected=[gran])
        edges = lab.edges.filter(pl.col("relation") == "relates-to")
        assert [{edge["source"], edge["target"]} for edge in edges.to_dicts()] == [{tiles, grout}]
        weights.append(edges["weight"][0])

    assert weights[1] == pytest.approx(min(1, weights[0] + 0.1), abs=1e-3)
    assert row(lab, tiles)["confidence"] == row(lab, grout)["confidence"] == pytest.approx(0.64, abs=1e-3)
    assert row(lab, gran)["confidence"] == pytest.approx(0.56, abs=1e-3)
    assert [row(lab, memory_id)["access"] for memory_id in (tiles, grout, gran)] == [2, 2, 0]


def test_19_a_verifier_names_relations_and_a_tag_spreads(lab):
    """Six notes about refunds pass; five bear one tag, and the verifier says that one replaces another: the sixth gets
    the tag, and what is replaced is recalled no more. "the verifier may name relations"; "infer a common tag when
    memories share a context"."""
    texts = ["the refund window is 14 days", "since the new consumer law a refund can be asked for all summer",
             "no refund on gift cards", "bring the receipt or no refund", "Yusuf signs each refund above 500"]
    tagged = lab.remember([{"text": text, "tags": ["refunds"]} for text in texts], linking="off").ids
    bare = lab.remember("a refund goes back to the same card", linking="off")

    hits = lab.recall("refund")
    assert set(shown(hits)) == {*tagged, bare.id}
    verified = lab.agents.verify(hits, [*tagged, bare.id], relations={(tagged[1], tagged[0]): "supersedes"})
    assert verified.tag == "refunds"
    assert "refunds" in row(lab, bare.id)["tags"]
    assert lab[tagged[0]].superseded_by == tagged[1]
    assert tagged[0] not in shown(lab.recall("refund"))


@pytest.mark.long
def test_20_what_nothing_answers_is_a_gap_until_the_session_ends(lab):
    """A question finds something near, the verifier lets nothing pass, and the session ends: the gap is there to be
    reviewed beside what the session taught, which bears tags. "seeds but nothing verified: log a *gap* (context
    embedding, snippet, time, session), reviewed at the end of a session"; tags "extracted at the end of a session"."""
    gate = lab.remember("the allotment gate code changes every spring", linking="off")
    hits = lab.recall("which tram goes to the allotment gate", session="thursday")
    assert gate.id in shown(hits)
    verified = lab.agents.verify(hits, lambda found: [])
    assert verified.gap is not None
    gaps = lab.upkeep.review.gaps()
    assert gaps["session"].to_list() == ["thursday"] and "tram" in gaps["snippet"][0]

    learned = lab.agents.end_session("thursday", [
        {"role": "user", "content": "the map page is broken again, please look"},
        {"role": "assistant", "content": "The root cause was a stale cache key. Don't use the shared redis in tests."},
    ])
    assert len(learned.gaps) == 1
    lessons = lab.memories.filter(pl.col("id") != gate.id)
    assert lessons.height >= 1
    assert any(tags for tags in lessons["tags"].to_list())

    lab.upkeep.review.close_gap(verified.gap, "line 4, asked Piotr")
    assert lab.upkeep.review.gaps()["closed"].null_count() == 0


@pytest.mark.long
def test_21_an_agent_goes_on_and_gets_its_memories_a_turn_later(clock):
    """An agent offers its contexts: nothing at first, then what the turn before called up, once on a topic and again
    after another topic came between. "results of turn n are ready at turn n+1"; "a new topic (similarity to the last
    context < 0.3) clears the set of already surfaced memories"."""
    orders = ["postgres: moving orders, first go", "postgres: moving orders, index now", "postgres: back to orders"]
    cake = "which cake for Omar on Saturday"
    table = {text: {0: 1.0} for text in orders} | {cake: {1: 1.0}, "copy the orders table to a shadow first": {0: 1.0}}
    with memlab.open(pack="cascade", clock=clock, embedder=vectors(table, 4)) as lab:
        shadow = lab.remember("copy the orders table to a shadow first", linking="off")
        with lab.agents.turns() as turns:
            assert len(list(turns.offer(orders[0]))) == 0
            assert turns.wait(60)
            assert [hit.id for hit in turns.offer(orders[1])] == [shadow.id]
            assert turns.wait(60)
            assert list(turns.offer(cake)) == []
            assert turns.wait(60)
            assert list(turns.offer(orders[2])) == []
            assert turns.wait(60)
            last = turns.offer(orders[2])
            assert [hit.id for hit in last] == [shadow.id]
            assert last.new_topic


@pytest.mark.long
def test_22_forgetting_deactivates_and_memory_can_be_off(lab):
    """A note is forgotten and brought back, then memory is switched off and on: what is off neither takes nor gives.
    The tool "forget (deactivate)" and "memory can be off"."""
    dentist = lab.remember("dentist wants me back in September", linking="off")
    lab.forget(dentist)
    assert shown(lab.recall("dentist September")) == []
    assert row(lab, dentist.id)["status"] == "forgotten"
    lab.restore(dentist)
    assert shown(lab.recall("dentist September")) == [dentist.id]

    lab.agents.switch_off(reason="guests on the machine")
    with pytest.raises(MemoryOff):
        lab.remember("guest wifi is slow")
    quiet = lab.recall("dentist September")
    assert len(quiet) == 0 and quiet.off is not None
    lab.agents.switch_on()
    assert shown(lab.recall("dentist September")) == [dentist.id]


@pytest.mark.long
def test_23_a_mirror_keeps_step_and_an_export_comes_back(lab, tmp_path):
    """A lab is mirrored, changed and mirrored again, exported and loaded elsewhere: the folder follows, and the copy
    has the same memories, tags, edges and pack. "A readable mirror of the store (Markdown and JSON, kept in step);
    export and import"."""
    tea = lab.remember("Saskia takes her rooibos without sugar", kind="preference", tags=["office"], linking="off")
    mug = lab.remember("the blue mug is hers", tags=["office"], linking="off")
    cake = lab.remember("marzipan cake was a mistake", linking="off")
    lab.graph.link(tea, mug, weight=0.4)
    mirror = lab.io.mirror(tmp_path / "mirror")
    mirror.update()
    pages = "".join(page.read_text() for page in (tmp_path / "mirror").rglob("*.md"))
    assert "rooibos" in pages and "marzipan" in pages and (tmp_path / "mirror" / "index.json").exists()
    lab.forget(cake, how="delete")
    mirror.update()
    pages = "".join(page.read_text() for page in (tmp_path / "mirror").rglob("*.md"))
    assert "rooibos" in pages and "marzipan" not in pages

    path = lab.io.export(tmp_path / "office.jsonl")
    with memlab.load(path, progress=False) as copy:
        def told(which):
            used = which.memories.filter(pl.col("status") == "active")
            return sorted((one["text"], one["kind"], tuple(sorted(one["tags"] or ()))) for one in used.to_dicts())

        assert len(told(lab)) == 2 and told(copy) == told(lab)
        joined = copy.edges.filter(pl.col("relation") == "relates-to")
        assert joined["weight"].to_list() == pytest.approx([0.4], abs=1e-3)
        assert copy.policies.pack.name == "cascade"


@pytest.mark.long
def test_24_credentials_and_personal_identifiers_are_never_stored(clock, tmp_path):
    """People paste a key, a mail address and a card number into their notes and questions: the caller is told, the
    rest of the note stays, and no file of the lab holds them. "Never stored: secrets, credentials, personal
    identifiers (this pack's setting)"."""
    key, mail, card = "AKIAQ3ZT7WPLM5KXN2RD", "joana.prates@ferrovia-sul.pt", "4539 1488 0343 6467"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with memlab.open(tmp_path / "lab", pack="cascade", clock=clock) as lab:
            remembered = lab.remember([
                f"the deploy bot signs in as {key}, ask me before you rotate it",
                f"for the train invoices write to {mail}, she is quick",
                f"book the hostel with {card} please",
            ], linking="off")
            assert {memory_id for memory_id, _ in remembered.redacted} == set(remembered.ids)
            texts = " ".join(lab.memories["text"].to_list())
            assert not any(secret in texts for secret in (key, mail, card))
            assert "deploy bot" in texts and "train invoices" in texts and "hostel" in texts
            assert lab.recall(f"who is {mail}?").redacted
    held = b"".join(file.read_bytes() for file in (tmp_path / "lab").rglob("*") if file.is_file())
    assert not any(secret.encode() in held for secret in (key, mail, card))


@pytest.mark.long
def test_25_files_of_secrets_and_ignored_files_stay_out(lab, tmp_path):
    """Memories that point to an environment file, to what .gitignore leaves out or to what .secretsignore names are
    refused, and a loaded folder gives nothing of its .env. "what `.gitignore` or `.secretsignore` covers, content of
    `.env`, paths marked sensitive"."""
    (tmp_path / ".gitignore").write_text("logs/\n")
    (tmp_path / ".secretsignore").write_text("payroll/\n")
    for name in ("logs/run.txt", "payroll/march.csv", "src/app.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x = 1\n")
    with pytest.raises(PrivacyError):
        lab.remember("the mail settings are in there", files=[".env"])
    with pytest.raises(MemlabError):
        lab.remember("the crash is near the end", files=[str(tmp_path / "logs" / "run.txt")])
    with pytest.raises(MemlabError):
        lab.remember("Greta's raise is in line 40", files=[str(tmp_path / "payroll" / "march.csv")])
    assert lab.memories.height == 0
    app = lab.remember("x is one for a reason", files=[str(tmp_path / "src" / "app.py")], linking="off")

    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "todo.md").write_text("Paint the shed before the rain comes.\n")
    (notes / ".env").write_text("GREETING=bonjour-from-the-basement\n")
    lab.load(notes, progress=False)
    loaded = lab.memories.filter(pl.col("id") != app.id)["text"].to_list()
    assert any("Paint the shed" in text for text in loaded)
    assert not any("basement" in text for text in loaded)
