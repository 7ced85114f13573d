"""Entities that a question is about begin to spread too, where a pack's setting says so."""

import numpy as np
import pytest

from memlab.kernel.policies import load_pack, pack_names
from memlab.kernel.recall._query import EntityNames
from memlab.kernel.slates import encode

LEXICAL = "(setting dense-candidates 0) (defpolicy seed-score [lexical] lexical)"
PASS = "(defpolicy spread [activation] activation) (defpolicy recall-score [received] received)"


def pack(*forms, seeds=3, steps=1):
    numbers = f"(setting entity-seeds {seeds}) (setting spread-steps {steps})"
    return f"(pack trial) {numbers} {LEXICAL} {PASS} {' '.join(forms)}"


def reached(lab, query, **more):
    """Return the memories that only spreading reached, with their activation."""
    slate = lab.recall(query, log=False, **more).slate
    return {
        int(id): received
        for id, received in zip(slate.ids, slate.numbers["received"], strict=True)
        if received > 0
    }


@pytest.fixture
def town(lab):
    """Return a lab with facts of three people; a fact shares only names with the queries below."""
    lab.facts.add("Ada Lovelace", "lives-in", object="Oslo", text="one")
    lab.facts.add("Ada Lovelace", "knows", object="Grace Hopper", text="two")
    lab.facts.add("Grace Hopper", "uses", "COBOL", text="three")
    lab.facts.add("Zygmunt", "uses", "xylophones", text="four")
    lab.policies.use(pack())
    return lab


class TestWhatBegins:
    @pytest.mark.long
    def test_an_entity_that_is_named_brings_its_facts_at_full_nearness(self, town):
        town.policies.use(pack(seeds=1))
        assert reached(town, "where is ADA  lovelace?") == {1: 1.0, 2: 1.0}

    def test_an_alias_counts_as_much_as_the_name(self, town):
        town.facts.entities.declare("Zygmunt", aliases=["the xylophonist"])
        town.policies.use(pack(seeds=1))
        assert reached(town, "and the Xylophonist's plans?") == {4: 1.0}

    def test_a_near_name_begins_with_its_closeness(self, town):
        town.policies.use(pack(seeds=1))
        result = reached(town, "lovelaces of old")
        cosine = pytest.approx(_cosine(town, "lovelaces of old", "Ada Lovelace"))
        assert result == {1: cosine, 2: cosine}

    @pytest.mark.long
    def test_the_setting_counts_them(self, town):
        question = "Ada Lovelace, Grace Hopper, Oslo and Zygmunt"
        for seeds, ids in ((1, {1, 2}), (4, {1, 2, 3, 4})):
            town.policies.use(pack(seeds=seeds))
            assert reached(town, question).keys() == ids

    def test_no_seed_memory_is_needed(self, town):
        town.policies.use(pack("(setting seeds 0)", seeds=1))
        assert reached(town, "Zygmunt") == {4: 1.0}

    @pytest.mark.long
    def test_two_hops_between_entities_are_three_edges(self, town):
        for steps, ids in ((1, {1, 2}), (2, {1, 2}), (3, {1, 2, 3})):
            town.policies.use(pack(seeds=1, steps=steps))
            assert reached(town, "ada lovelace").keys() == ids

    @pytest.mark.long
    def test_the_factgraph_pack_goes_that_far(self, town):
        town.policies.use("factgraph")
        hits = town.recall("ada lovelace", log=False)
        assert {1, 2, 3} <= set(hits.slate.ids.tolist())

    @pytest.mark.long
    def test_a_merged_name_seeds_the_surviving_entity(self, town):
        town.facts.add("A. L.", "likes", "bees", text="five")
        town.facts.entities.merge("A. L.", into="Ada Lovelace")
        town.policies.use(pack(seeds=1))
        assert reached(town, "a. l.").keys() == {1, 2, 5}
        town.facts.entities.split("A. L.")
        assert reached(town, "a. l.") == {5: 1.0}

    @pytest.mark.long
    def test_names_are_learned_as_they_come(self, town):
        town.policies.use(pack(seeds=1))
        town.facts.entities.declare("Quentin")
        assert reached(town, "Quentin?").keys() != {5}
        town.facts.add("Quentin", "uses", "x", text="five")
        assert reached(town, "Quentin?") == {5: 1.0}
        town.facts.entities.declare("Quentin", aliases=["Mr Q"])
        assert reached(town, "mr q") == {5: 1.0}
        town.facts.entities.split("Quentin", "Mr Q", facts=[])
        assert reached(town, "mr q").get(5, 0) < 1


class TestWhatDoesNot:
    @pytest.mark.long
    def test_a_declared_entity_that_nothing_mentions_takes_no_place(self, town):
        town.facts.entities.declare("xylophone of Zygmunt")
        town.policies.use(pack(seeds=1))
        assert reached(town, "xylophone of Zygmunt").keys() == {4}

    def test_an_entity_of_another_project_takes_no_place(self, lab):
        lab.facts.add("Orion", "has", "tests", project="a", text="one")
        lab.facts.add("Orion prime", "has", "bugs", project="b", text="two")
        lab.policies.use(pack(seeds=1))
        assert reached(lab, "orion prime", project="a") == {1: 1.0}
        assert reached(lab, "orion prime", project="b") == {2: 1.0}

    @pytest.mark.long
    def test_retracted_facts_are_not_reached_and_take_no_seed(self, town):
        town.policies.use(pack(seeds=1))
        town.facts.retract(4)
        assert 4 not in reached(town, "Zygmunt")

    def test_part_of_a_word_names_nobody(self, lab):
        lab.facts.add("Al", "likes", "tea", text="one")
        lab.policies.use(pack(seeds=1))
        assert reached(lab, "Alabama also").get(1, 0) < 1

    def test_a_stop_word_is_meant_as_a_word(self, lab):
        lab.facts.add("The", "is", "a band", text="one")
        lab.policies.use(pack(seeds=1))
        assert reached(lab, "the price of tea").get(1, 0) < 1

    def test_without_entities_nothing_happens(self, lab):
        lab.remember("kayak")
        lab.policies.use(pack())
        assert lab.recall("kayak", log=False).ids == (1,)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("نور", "أين نور الآن؟"),
        ("🦊", "what does 🦊 say"),
        ("王明", "王明住在哪里"),
        ("김철수", "김철수는 어디에"),
        ("C++", "is c++ fast?"),
        ("हिन्दी", "हिन्दी कौन"),
        ("Zo\u00eb", "is ZOE\u0308 in?"),
        ("Weiß", "herr WEISS, bitte"),
        ("O'Brien", "ask o'brien's dog"),
    ],
)
def test_names_of_all_scripts_are_named_outright(lab, name, question):
    lab.facts.add(name, "uses", "qqq", text="one")
    lab.policies.use(pack(seeds=1))
    assert reached(lab, question) == {1: 1.0}


class TestWithoutTheSetting:
    def test_a_pack_that_has_none_asks_for_no_names(self, town, monkeypatch):
        town.policies.use(pack(seeds=0))
        before = encode(town.recall("Ada Lovelace", log=False).slate)
        monkeypatch.setattr(EntityNames, "about", None)
        assert encode(town.recall("Ada Lovelace", log=False).slate) == before

    @pytest.mark.long
    def test_no_pack_but_factgraph_has_one(self):
        counts = {name: load_pack(name).settings["entity-seeds"] for name in pack_names()}
        assert {name for name, count in counts.items() if count} == {"factgraph", "factgraph-plus"}
        assert counts["factgraph"] == 3


class TestSlates:
    def test_the_setting_decides_the_fingerprint_of_what_was_received(self, town):
        one, other = (load_pack(pack(seeds=seeds)).fingerprints("e") for seeds in (0, 3))
        changed = {name for name in one if one[name] != other[name]}
        assert changed == {
            "received",
            "activation",
            "hops",
            "session-seed",
            "takes-over",
            "corrects",
        }

    @pytest.mark.long
    def test_a_logged_recall_is_recalled_again_as_it_was(self, disk):
        with disk() as lab:
            lab.facts.add("Ada Lovelace", "lives-in", object="Oslo", text="one")
            lab.policies.use(pack(seeds=2))
            logged = lab.recall("ada lovelace").slate
            lab.facts.add("Ada Lovelace", "knows", object="Grace", text="two")
            lab.facts.entities.merge("Ada Lovelace", into="Grace")
        with disk() as lab:
            decision = lab.slates().decisions.collect().row(0, named=True)
            again = lab.policies.recall_again(decision, lab.policies.pack)
            assert again["memory_id"].to_list() == logged.ids.tolist() == [1]
            assert again["received"].to_list() == logged.numbers["received"].tolist()


@pytest.mark.long
def test_the_nearest_of_many_names_counts(lab):
    """Ten thousand aliases do not bury the one that is meant."""
    lab.facts.entities.declare(
        "Ada",
        aliases=[f"pseudonym number {number}" for number in range(10_000)] + ["quixotic zebra"],
    )
    lab.facts.add("Ada", "uses", "x", text="one")
    lab.facts.add("zebras", "use", "y", text="two")
    lab.policies.use(pack(seeds=1))
    assert reached(lab, "a quixotic zebra?") == {1: 1.0}


def _cosine(lab, first, second):
    a, b = lab.io.embedder.encode([first, second]).astype(np.float64)
    return a @ b / np.sqrt((a @ a) * (b @ b))
