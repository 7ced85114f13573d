"""Acts of the associative design, written from its description and the public reference alone."""

import memlab
import polars as pl
import pytest
from memlab.errors import InputError, PolicyError

DECAY = """(lambda (success fail energy importance recency_ms base_half_ms)
  (let* ((total (+ success fail 1)) (ratio (/ success total)) (scale (+ 0.5 (* 1.5 ratio))))
    (* base_half_ms scale)))"""
RECALL_SCORE = """(lambda (activation recency importance access success fail)
  (+ (* 0.4 activation) (* 0.3 recency) (* 0.2 importance) (* 0.1 (/ success (+ success fail 1)))))"""
EXPLORATION = """(lambda (limit tail_n acts recs imps accs succ fails)
  (if (> tail_n 2)
      (let* ((under-explored (filter (lambda (i) (< (nth accs i) 5)) (range 0 (length acts)))))
        (if (not (empty? under-explored)) (first under-explored) -1))
      -1))"""


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-02")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="associative", clock=clock) as opened:
        yield opened


@pytest.mark.long
def test_01_a_memory_has_type_importance_and_tags(lab):
    """Two notes go in by the operation remember and one by the call; each is kept with what was said of it.

    "Memory: type, text, tags, importance 0-1 ..."; `(remember text type importance ttl tags)`; "Kinds and
    relations are open: any short word" (systems).
    """
    lab.upkeep.operations.run('(remember "dads sourdough starter gets rye on sundays, never wheat" "recipe" 0.8 "perpetual")')
    lab.upkeep.operations.run('(remember "dentist rang, we are on the 14th now" :importance 0.3 :ttl "30d")')
    lab.remember("the bakery by the canal sells fresh yeast by weight", tags=["bread"])
    rows = lab.memories.sort("id")
    assert rows["text"][0] == "dads sourdough starter gets rye on sundays, never wheat"
    assert rows["kind"][0] == "recipe"
    assert rows["importance"][0] == pytest.approx(0.8, abs=1e-4)
    assert rows["importance"][1] == pytest.approx(0.3, abs=1e-4)
    assert "bread" in lab.graph.tags()["tag"].to_list()


@pytest.mark.long
def test_02_it_is_an_s_expression_and_goes_to_another_instance(lab, tmp_path):
    """A linked pair is read as S-expressions, written to a file of them and loaded into a second lab, edge and
    all.

    "Kept as data and as S-expressions, for introspection"; "sharing between agents, several instances";
    reference of io: export writes "a file that lab.load reads back exactly".
    """
    hunch = lab.remember("i think the flaky checkout test is really a timezone thing", kind="hunch", linking="off")
    proof = lab.remember("ran CI with TZ=Asia/Tokyo, red every single time", kind="evidence", linking="off")
    lab.graph.link(proof, hunch, "backs-up", weight=0.75)
    assert hunch.sexp.startswith("(memory")
    assert "timezone thing" in hunch.sexp
    assert "hunch" in hunch.sexp
    written = lab.io.export(tmp_path / "shared.sexp", format="sexp")
    other = memlab.load(written, format="sexp", progress=False)
    assert set(other.memories["text"]) == set(lab.memories["text"])
    assert set(other.memories["kind"]) == {"hunch", "evidence"}
    edge = other.edges.filter(pl.col("relation") == "backs-up")
    assert edge.height == 1
    assert edge["weight"][0] == pytest.approx(0.75, abs=1e-3)


@pytest.mark.long
def test_03_thirty_days_are_over_and_perpetual_is_not(lab, clock):
    """Of two notes on the driveway the one with 30 days is shown on day 20 and not on day 40, when upkeep retires
    it.

    "time-to-live ("30d", "perpetual")"; "What is over is not recalled" (systems).
    """
    lab.upkeep.operations.run('(remember "the rubble skip is blocking our driveway" "note" 0.6 "30d")')
    lab.upkeep.operations.run('(remember "gravel on the driveway came from a quarry in the dales" "note" 0.6 "perpetual")')
    clock.advance(days=20)
    early = {hit.text for hit in lab.recall("what about the driveway?", limit=5)}
    assert len(early) == 2
    clock.advance(days=20)
    late = [hit.text for hit in lab.recall("what about the driveway?", limit=5)]
    assert len(late) == 1
    assert "gravel" in late[0]
    lab.upkeep.maintain(progress=False)
    status = dict(zip(lab.memories["text"], lab.memories["status"]))
    assert status["the rubble skip is blocking our driveway"] != "active"
    assert status["gravel on the driveway came from a quarry in the dales"] == "active"


@pytest.mark.long
def test_04_an_edge_has_relation_weight_and_reinforcements(lab):
    """Two ideas are joined by a relation of one's own, and again with more weight: one edge, reinforced once,
    traced.

    "Edge: relation, weight 0-1, reinforcements"; reference of graph: an edge that is there "gets the weight,
    which counts as a reinforcement where it is another one".
    """
    song, walk = lab.remember(
        ["wrote the chorus of the harbour song today", "long foggy walk past the old cranes"], linking="off"
    ).ids
    lab.graph.link(song, walk, "inspired-by", weight=0.4)
    before = lab.edges.filter(pl.col("relation") == "inspired-by")
    assert (before["source"][0], before["target"][0]) == (song, walk)
    assert before["weight"][0] == pytest.approx(0.4, abs=1e-3)
    lab.graph.link(song, walk, "inspired-by", weight=0.7)
    after = lab.edges.filter(pl.col("relation") == "inspired-by")
    assert after.height == 1
    assert after["weight"][0] == pytest.approx(0.7, abs=1e-3)
    assert after["reinforcements"][0] == before["reinforcements"][0] + 1
    assert walk in lab.graph.trace(song, 2).frame["to_id"].to_list()


def test_05_activation_spreads_by_weight_and_decay_in_both_directions(lab):
    """Along a chain of 0.8 and 0.5 with D 0.5 the next has 0.4 and the one after it 0.1, from either end; F stops
    it.

    "A[j] += A[i] * W[i,j] * D, both directions, several steps, cut off below a threshold F".
    """
    a, b, c = lab.remember(
        ["queue backs up at noon", "the worker restarts on its own", "disk alarm in the cellar rack"], linking="off"
    ).ids
    lab.graph.link(a, b, weight=0.8)
    lab.graph.link(b, c, weight=0.5)
    one = lab.graph.activate(a, steps=1, decay=0.5, threshold=0.01)
    one = dict(zip(one["id"], one["activation"]))
    assert one[b] == pytest.approx(0.4, abs=1e-3)
    assert c not in one
    two = lab.graph.activate(a, steps=2, decay=0.5, threshold=0.01)
    assert dict(zip(two["id"], two["activation"]))[c] == pytest.approx(0.1, abs=1e-3)
    back = lab.graph.activate(c, steps=2, decay=0.5, threshold=0.01)
    assert dict(zip(back["id"], back["activation"]))[a] == pytest.approx(0.1, abs=1e-3)
    assert c not in lab.graph.activate(a, steps=2, decay=0.5, threshold=0.5)["id"].to_list()


def test_06_what_is_linked_comes_up_with_what_was_asked(lab):
    """A question about the espresso machine brings the linked tin before things that have as little to do with it.

    "Spreading activation ... both directions" and "recall score ... (* 0.4 activation)".
    """
    machine, tin, choir, bus = lab.remember(
        [
            "espresso machine hisses on startup, needs descaling again",
            "citric acid lives in the green tin over the fridge",
            "choir rehearsal got pushed to thursdays",
            "bus 42 skips our stop while they mend the bridge",
        ],
        linking="off",
    ).ids
    lab.graph.link(machine, tin, "fixed-with", weight=1.0)
    hits = lab.recall("espresso machine hisses, descaling?", limit=4)
    shown = list(hits.ids)
    assert shown[0] == machine
    assert tin in shown
    for other in (choir, bus):
        assert other not in shown or shown.index(tin) < shown.index(other)
    received = dict(zip(hits.frame["memory_id"], hits.frame["received"]))
    assert received[tin] > 0
    assert all(received.get(other, 0) == 0 for other in (choir, bus))


def test_07_the_published_recall_score_installs_unchanged_and_scores(lab, clock):
    """The design's recall score goes in as it is spelled; days later each score is the sum that it says.

    "Policies, in this spelling, must install unchanged: ... recall score `(lambda (activation recency
    importance access success fail) ...`".
    """
    rows = [
        {"text": "marathon training: long run on saturday, 24k", "importance": 0.9},
        {"text": "physio says no hills during training until the knee calms down", "importance": 0.4},
        {"text": "new running shoes are half a size up", "importance": 0.1},
    ]
    first = lab.remember(rows, linking="off").ids[0]
    lab.policies.install("recall-score", RECALL_SCORE, reason="as published")
    lab.feedback(first, "success")
    clock.advance(days=3)
    frame = lab.recall("training run plan, knee and shoes", limit=3).frame
    assert first in frame["memory_id"].to_list()
    for row in frame.iter_rows(named=True):
        used = row["success"] / (row["success"] + row["fail"] + 1)
        expected = 0.4 * row["activation"] + 0.3 * row["recency"] + 0.2 * row["importance"] + 0.1 * used
        assert row["score"] == pytest.approx(expected, abs=1e-4)
    assert frame.filter(pl.col("memory_id") == first)["success"].item() == 1


@pytest.mark.long
def test_08_the_published_decay_is_a_half_life_that_success_lengthens(lab):
    """With the design's decay installed, one success makes the half-life 2.5 times as long; energy halves by it.

    "a half-life; energy at a time = energy * 0.5^(elapsed / half-life)", scale 0.5 + 1.5 * success / (success +
    fail + 1).
    """
    helped, untouched, mixed = lab.remember(
        [
            "rinse the brushes in cold water first",
            "landlord prefers texts to calls",
            "crate 7 holds the christmas lights",
        ],
        linking="off",
    ).ids
    lab.policies.install("half-life", DECAY)
    lab.feedback(helped, "success")
    lab.feedback(mixed, "success")
    lab.feedback(mixed, "fail")
    frame = lab.upkeep.forecast([helped, untouched, mixed], "2026-03-12", points=2).frame.sort("at")
    half, left = {}, {}
    for memory in (helped, untouched, mixed):
        rows = frame.filter(pl.col("memory_id") == memory)
        half[memory] = rows["half_life"][0]
        left[memory] = rows["retention"][-1] / rows["retention"][0]
        days = (rows["at"][-1] - rows["at"][0]).total_seconds() / 86400
    assert half[helped] / half[untouched] == pytest.approx(2.5, rel=1e-3)
    assert half[mixed] / half[untouched] == pytest.approx(2.0, rel=1e-3)
    for memory in (helped, untouched, mixed):
        assert left[memory] == pytest.approx(0.5 ** (days / half[memory]), rel=1e-2)


def test_09_what_helped_stays_fresh_longer_than_what_failed(lab, clock):
    """Of two like notes one helped thrice and one failed thrice; five days on the first is fresher and stands
    above.

    decay: "scale (+ 0.5 (* 1.5 ratio))" with ratio of successes, and "recency = 0.5^(time since access /
    half-life)".
    """
    good, bad = lab.remember(
        [
            "pepper seedlings on the sill want water each morning",
            "tomato seedlings on the porch want water each evening",
        ],
        linking="off",
    ).ids
    for _ in range(3):
        lab.feedback(good, "success")
        lab.feedback(bad, "fail")
    clock.advance(days=5)
    hits = lab.recall("when do the seedlings want water", limit=2)
    assert list(hits.ids) == [good, bad]
    recency = dict(zip(hits.frame["memory_id"], hits.frame["recency"]))
    assert recency[good] > recency[bad]


def test_10_exploration_adds_a_seldom_seen_item_of_a_long_tail(clock):
    """With the design's exploration always on, of three bike notes none is a probe; of eight one is.

    "exploration `(lambda (limit tail_n ...) (if (> tail_n 2) ...`: the index of a tail item to add, or -1";
    reference of recall: "A probe (hit.probe, always last) comes from just below".
    """
    pack = """(pack curious "Adds one of the tail to every recall." :inherits associative)
    (setting probe-rate 1)
    (setting probe-floor 0)"""
    with memlab.open(pack=pack, clock=clock) as lab:
        lab.policies.install("explore", EXPLORATION)
        lab.remember(
            [
                "bike chain skips in third gear",
                "the small brass one opens the bike lock",
                "bike rack fits only the hatchback",
            ],
            linking="off",
        )
        short = lab.recall("anything about the bike?", limit=2)
        assert not any(hit.probe for hit in short)
        lab.remember(
            [
                "bike lights charge over usb",
                "lent the bike pump to Joris",
                "bike shop closes at one on mondays",
                "winter bike tyres are in the loft",
                "bike insurance renews in july",
            ],
            linking="off",
        )
        long = list(lab.recall("anything about the bike?", limit=2))
        assert long[-1].probe
        assert not any(hit.probe for hit in long[:-1])
        assert long[-1].id not in [hit.id for hit in long[:-1]]


def test_11_a_file_of_operations_is_run_and_a_broken_one_does_nothing(lab, tmp_path):
    """Two operations in a file are run in order; of a text with an unknown operation not even the first part is
    run.

    "Operations, as S-expressions too, by `lab.run(text)` and `memlab agent run FILE`"; reference of operations: "All
    of them are checked before the first is run".
    """
    path = tmp_path / "monday.lisp"
    path.write_text(
        '(remember "Ines has the early shift until june" "roster" 0.7)\n'
        '(remember "ask Kofi a day ahead if you want to swap" "roster")\n'
    )
    ran = lab.upkeep.operations.run(path)
    assert ran.frame["operation"].to_list() == ["remember", "remember"]
    assert lab.memories["kind"].to_list() == ["roster", "roster"]
    with pytest.raises(PolicyError):
        lab.upkeep.operations.run('(remember "Ines is off sick") (tidy-everything)')
    assert lab.memories.height == 2


@pytest.mark.long
def test_12_what_is_superseded_by_association_is_no_longer_the_answer(lab):
    """Two notes on the standup conflict; associating the new one as superseding the old retires it, still to be
    found.

    `(associate from to relation weight)`; "supersedes retires. An edge made by hand ... puts the older one out
    of use" (systems), and a recall with status=("active", "superseded") "still finds it".
    """
    old, new = lab.remember(
        ["standup is half nine in the small room", "standup is at ten in the big room, since the move"], linking="off"
    ).ids
    assert set(lab.recall("when and where is standup?", limit=2).ids) == {old, new}
    lab.upkeep.operations.run(f'(associate {new} {old} "supersedes" 1.0)')
    assert list(lab.recall("when and where is standup?", limit=2).ids) == [new]
    assert lab.memories.filter(pl.col("id") == old)["status"].item() == "superseded"
    both = lab.recall("when and where is standup?", limit=2, status=("active", "superseded"))
    assert set(both.ids) == {old, new}


@pytest.mark.long
def test_13_decay_sets_how_fast_things_fade(lab):
    """After (decay! 2) less of a note is left in ten days than after (decay! 60).

    `(decay! half-life-days)`, and "energy at a time = energy * 0.5^(elapsed / half-life)".
    """
    note = lab.remember("the blue folder is with the accountant till she is done")
    lab.upkeep.operations.run("(decay! 2)")
    fast = lab.upkeep.forecast(note, "2026-03-12", points=2).frame.sort("at")
    lab.upkeep.operations.run("(decay! 60)")
    slow = lab.upkeep.forecast(note, "2026-03-12", points=2).frame.sort("at")
    assert fast["half_life"][-1] < slow["half_life"][-1]
    assert fast["retention"][-1] < slow["retention"][-1]


def test_14_being_recalled_together_strengthens_an_edge(lab):
    """Two linked notes are shown by one recall: their edge goes from 0.5 to 0.55; one that is not logged adds
    nothing.

    "Co-activation and success strengthen edges (+0.05 a time, at most 1, reinforcements + 1 (chosen))".
    """
    yeast, flour = lab.remember(
        ["pizza dough: two grams of dry yeast is plenty", "pizza dough wants strong flour, the cheap one tears"],
        linking="off",
    ).ids
    lab.graph.link(yeast, flour, weight=0.5)
    before = lab.edges.filter(pl.col("relation") == "relates-to")
    assert set(lab.recall("pizza dough yeast and flour", limit=2).ids) == {yeast, flour}
    after = lab.edges.filter(pl.col("relation") == "relates-to")
    assert after.height == 1
    assert after["weight"][0] == pytest.approx(0.55, abs=1e-3)
    assert after["reinforcements"][0] == before["reinforcements"][0] + 1
    lab.recall("pizza dough yeast and flour", limit=2, log=False)
    assert lab.edges.filter(pl.col("relation") == "relates-to")["weight"][0] == pytest.approx(0.55, abs=1e-3)


@pytest.mark.long
def test_15_what_succeeds_together_grows_together(lab):
    """Two strangers that both helped with one question get an edge, which grows when both help again, up to 1.

    "Co-activation and success strengthen edges (+0.05 a time, at most 1 ...)"; reference of feedback: "edges to
    the other memories that succeeded in the same recall are made or strengthened".
    """
    visa, photo = lab.remember(
        ["visa form wants the hotel address in capitals", "visa photo must be 35 by 45 millimetres, no glasses"],
        linking="off",
    ).ids
    assert lab.edges.height == 0
    for hit in lab.recall("what do I need for the visa form and photo?", limit=2):
        lab.feedback(hit, "success")
    first = lab.edges.filter(pl.col("source").is_in([visa, photo]) & pl.col("target").is_in([visa, photo]))
    assert first.height >= 1
    lab.recall("what do I need for the visa form and photo?", limit=2)
    lab.upkeep.operations.run(f'(feedback {visa} "success") (feedback {photo} :success)')
    again = lab.edges.filter(pl.col("source").is_in([visa, photo]) & pl.col("target").is_in([visa, photo]))
    assert first["weight"].sum() < again["weight"].sum()
    assert 0 < again["weight"].min() and again["weight"].max() <= 1


@pytest.mark.long
def test_16_communities_emerge_with_bridges_and_key_memories(lab):
    """Kitchen and server notes, each all linked, and one link between: two communities, a bridge, and a key
    memory.

    "communities emerge"; "Topology: density, clustering, bridges between communities, key nodes (important and
    used)".
    """
    texts = [
        "oven runs twenty degrees hot",
        "the good knife is in the drawer liner",
        "never put cast iron in the dishwasher",
        "stock cubes expire in may",
        "server fan rattles under load",
        "swap is full on the build box",
        "kernel update waits for sunday",
        "rack key hangs by the router",
    ]
    rows = [{"text": text, "importance": 0.95 if "cast iron" in text else 0.2} for text in texts]
    ids = lab.remember(rows, linking="off").ids
    pairs = [(a, b) for group in (ids[:4], ids[4:]) for a in group for b in group if a < b] + [(ids[3], ids[4])]
    lab.graph.link(pl.DataFrame({"source": [a for a, _ in pairs], "target": [b for _, b in pairs]}))
    for _ in range(3):
        lab.recall("can cast iron go in the dishwasher?", limit=1, where=pl.col("id") == ids[2])
    stats = lab.graph.stats(progress=False)
    assert stats.communities.height == 2
    assert stats.bridges.height >= 1
    measures = " ".join(stats.totals["measure"].to_list()).lower()
    assert "density" in measures and "clustering" in measures
    assert any(value in (ids[2], texts[2]) for value in stats.key.row(0))


@pytest.mark.long
def test_17_each_memory_has_its_layer_in_time(lab, clock):
    """After two months one note was just used, one used six times long ago, one is new and one was never looked
    at.

    "layers (active: used within 7 days; stable: older, used 5 times; emerging: newer than 7 days, used less
    than twice; decaying: the rest (chosen))".
    """
    stable = lab.remember("grandma's plum cake: 200 grams of butter, cold", linking="off").id
    active = lab.remember("printer jams unless you open the back flap", linking="off").id
    lab.remember("someone left a striped scarf at the party", linking="off")
    for _ in range(6):
        clock.advance(hours=5)
        lab.recall("how much butter goes in the plum cake?", limit=1, where=pl.col("id") == stable)
    clock.advance(days=60)
    lab.recall("the printer jams again", limit=1, where=pl.col("id") == active)
    lab.remember("new neighbour plays the trombone", linking="off")
    layers = lab.graph.stats(progress=False).layers
    assert dict(zip(layers["layer"], layers["memories"])) == {"active": 1, "stable": 1, "emerging": 1, "decaying": 1}


@pytest.mark.long
def test_18_old_memories_are_clustered_and_fewer_remain(lab, clock):
    """Of 24 entries of two diaries, six weeks old, summaries take the place of most; undoing one brings its own
    back.

    "old memories are clustered and down-sampled on consolidation"; reference of consolidation: members stay
    "with the status "consolidated", out of recall".
    """
    numbers = "one two three four five six seven eight nine ten eleven twelve".split()
    rows = [{"text": f"watered the tomato bed, row {n}, soil still dry", "kind": "event"} for n in numbers]
    rows += [{"text": f"deploy pipeline failed on runner {n}, retried the job", "kind": "event"} for n in numbers]
    lab.remember(rows, linking="off")
    clock.advance(days=45)
    done = lab.upkeep.consolidation.run(older_than_days=30)
    assert len(done.ids) >= 1
    gone = set(lab.memories.filter(pl.col("status") == "consolidated")["id"])
    assert len(gone) > len(done.ids)
    assert lab.memories.filter(pl.col("status") == "active").height < 24
    assert not gone & set(lab.recall("tomato bed soil, deploy pipeline runner", limit=10).ids)
    lab.upkeep.consolidation.undo(done.ids[0])
    assert set(lab.memories.filter(pl.col("status") == "consolidated")["id"]) < gone


@pytest.mark.long
def test_19_success_and_failure_are_counted_for_each_version(lab):
    """An answer under the pack's score helped and one under a new score failed; each version has its own count and
    hash.

    "Self-modification: every version hashed; success and failure counted per version".
    """
    lab.remember(
        ["bin store opens at seven, ask Bo if it is shut", "the cat next door answers to Biscuit"], linking="off"
    )
    lab.feedback(lab.recall("when does the bin store open?", limit=1)[0], "success")
    lab.policies.install("recall-score", "(lambda (similarity) similarity)", reason="nearness alone")
    lab.feedback(lab.recall("what is the neighbour's cat called?", limit=1)[0], "fail")
    frame = lab.policies.attribution("recall-score").frame.sort("version")
    assert frame["success"].to_list() == [1, 0]
    assert frame["fail"].to_list() == [0, 1]
    assert frame["hash"].n_unique() == 2


@pytest.mark.long
def test_20_a_policy_is_set_by_an_operation_and_rolled_back(lab):
    """Set to importance alone, recall puts the contract first whatever is asked; rolled back, the pressure is
    first again.

    `(get-policy)`, `(set-policy-fn name code)`; "every version hashed"; how-to swap a policy: "Go back. Every
    version is kept and has a number and a hash".
    """
    pressure, contract = lab.remember(
        [
            {"text": "boiler pressure drops below one bar after each cold night", "importance": 0.3},
            {"text": "boiler service contract runs out in october", "importance": 0.5},
        ],
        linking="off",
    ).ids
    assert lab.recall("boiler pressure on a cold night", limit=2)[0].id == pressure
    assert lab.upkeep.operations.run("(get-policy)")[0].value is not None
    before = lab.policies.pack.hash
    lab.upkeep.operations.run('(set-policy-fn "recall-score" "(lambda (importance) importance)")')
    assert lab.policies.pack.hash != before
    assert lab.recall("boiler pressure on a cold night", limit=2)[0].id == contract
    lab.policies.rollback("recall-score")
    assert lab.policies.pack.hash == before
    assert lab.recall("boiler pressure on a cold night", limit=2)[0].id == pressure


@pytest.mark.long
def test_21_a_version_that_does_worse_is_taken_back(lab, clock):
    """Sixty days of good answers, then sixty of bad ones under a new score: a fall is found, and consent undoes
    it.

    "rollback when a version does worse"; how-to swap a policy: "A fall: the live version earns less than an
    earlier one did while that was live", carried out "on consent alone".
    """
    right, wrong = lab.remember(
        ["recycling bin goes out tuesday night", "the garden waste bin is for spring and summer only"], linking="off"
    ).ids
    for day in range(120):
        if day == 60:
            lab.policies.install("recall-score", "(lambda (similarity) (- similarity))", reason="a bad idea")
        hit = lab.recall("which night does the recycling bin go out?", limit=1)[0]
        lab.feedback(hit, "success" if hit.id == right else "fail")
        clock.advance(days=1)
    assert hit.id == wrong
    assert lab.upkeep.operations.check_fall() is not None
    assert lab.upkeep.operations.adapt_policy(consent=True).action == "rolled back"
    assert lab.recall("which night does the recycling bin go out?", limit=1)[0].id == right


@pytest.mark.long
def test_22_a_session_teaches_in_s_expression_commands(lab):
    """A debugging session gives its solution, what to avoid and the tools that led there, as commands that then
    store it.

    "Session ingestion: breakthroughs, failures (and what to avoid), pivots, solutions; tool sequences that led
    to success ...; written as S-expression commands".
    """
    talk = [
        {"role": "user", "content": "Find out why the nightly import dies."},
        {"role": "tool", "name": "grep", "content": "2 matches"},
        {"role": "tool", "name": "pytest", "content": "18 passed"},
        {"role": "assistant", "content": "The root cause was a stale lockfile. Don't use npm link in the monorepo."},
    ]
    learned = lab.agents.end_session("tuesday", talk, agent="coder", store=False)
    assert lab.memories.height == 0
    program = learned.extracted.operations
    assert "(remember" in program
    lab.upkeep.operations.run(program)
    texts = lab.memories["text"].to_list()
    assert any("lockfile" in text for text in texts)
    assert any("npm link" in text for text in texts)
    assert any("pytest" in text for text in texts)


def test_23_two_agents_share_a_fact_and_keep_their_own(lab):
    """The tutor and the coach hear the same preference: one fact of both; the tutor's own lesson stays with the
    tutor.

    "Wanted next: ... sharing between agents"; how-to agents: facts are shared, what is the same is "the same
    words under every pack", and "What an agent remembers is its own".
    """
    tutor, coach = lab.agents("tutor"), lab.agents("coach")
    tutor.remember("Mika likes dinosaurs way more than trains", kind="preference")
    coach.remember("Mika likes dinosaurs way more than trains", kind="preference")
    shared = lab.memories.filter(pl.col("kind") == "preference")
    assert shared.height == 1
    assert set(shared["agents"][0]) == {"agent:tutor", "agent:coach"}
    lesson = tutor.remember("fractions went badly today, start from pizza slices next time", kind="learning")
    assert lesson.id in tutor.recall("how did fractions go today?").ids
    assert lesson.id not in coach.recall("how did fractions go today?").ids


@pytest.mark.long
def test_24_a_corrected_note_speaks_in_its_new_words_only(lab):
    """The receiver of the release notes is put right: recall and context have the new name and not the old one.

    The design keeps "created / updated"; how-to correct: "Another text is another memory, which supersedes the
    first", and the old one has "the status superseded".
    """
    note = lab.remember("release notes go to Priyanka before the friday ship", importance=0.7)
    lab.remember("the coffee fund jar is empty, chip in")
    edited = lab.edit(note, text="release notes go to Marguerite before the friday ship")
    hits = lab.recall("who gets the release notes before the friday ship?", limit=3)
    assert edited.memory.id in hits.ids
    assert not any("Priyanka" in hit.text for hit in hits)
    context = lab.context("write the release notes for the friday ship", budget=300)
    assert "Marguerite" in context.text
    assert "Priyanka" not in context.text
    assert context.tokens <= 300
    assert lab.memories.filter(pl.col("id") == note.id)["status"].item() == "superseded"


@pytest.mark.long
def test_25_an_executable_memory_proposes_and_runs_on_consent_only(lab):
    """A routine holds an operation: recalled it proposes it, refuses to run unasked, and with consent it is done.

    "executable memories: a memory that holds operations in the safe dialect and, when recalled, proposes them;
    they run only on consent, with fuel".
    """
    routine = lab.remember(
        "release day routine: jot down that the tag went out",
        kind="procedure",
        operations='(remember "tag 4.2 went out without drama" "event")',
    )
    proposals = lab.upkeep.operations.proposals(lab.recall("release day, what is the routine?"))
    assert len(proposals) == 1
    assert lab.memories.height == 1
    with pytest.raises(InputError):
        lab.upkeep.operations.run(routine)
    assert lab.memories.height == 1
    lab.upkeep.operations.run(routine, consent=True)
    assert "tag 4.2 went out without drama" in lab.memories["text"].to_list()
