"""Packs: the contents of a file, inheritance, what the hash covers, and errors."""

import pytest

from memlab.errors import InputError, PolicyError, UnknownName
from memlab.kernel.policies import (
    FEATURES,
    SETTINGS,
    SLOTS,
    load_pack,
    pack_from_sources,
    pack_names,
)

SMALL = '(pack small "Nearness alone.")\n(defpolicy recall-score [similarity] similarity)'


def test_the_five_systems_and_the_default_are_there():
    assert {"memlab", "associative", "workbench", "companion", "cascade", "factgraph"} <= set(
        pack_names()
    )


@pytest.mark.parametrize("name", pack_names())
def test_every_pack_decides_everything(name):
    pack = load_pack(name)
    assert pack.policies.keys() == SLOTS.keys()
    assert pack.settings.keys() == SETTINGS.keys()
    assert pack.doc


def test_a_pack_inherits_omitted_policies_from_the_default():
    small, default = load_pack(SMALL), load_pack("memlab")
    assert small.policies["seed-score"].hash == default.policies["seed-score"].hash
    assert small.policies["recall-score"].hash != default.policies["recall-score"].hash
    assert small.hash != default.hash


def test_the_hash_ignores_spelling_and_covers_settings():
    spaced = SMALL.replace("[similarity] similarity", "[similarity]\n   ; a comment\n   similarity")
    changed = SMALL + "\n(setting limit 3)"
    assert load_pack(spaced).hash == load_pack(SMALL).hash
    assert load_pack(changed).hash != load_pack(SMALL).hash


def test_an_older_default_pack_gets_newer_policies_from_the_present_one():
    older = '(pack memlab "Of an earlier version.") (setting limit 7) (defpolicy recall-score [similarity] similarity)'
    pack, today = pack_from_sources((older,)), load_pack("memlab")
    assert pack.settings["limit"] == 7
    assert pack.policies["recall-score"].hash == load_pack(SMALL).policies["recall-score"].hash
    assert pack.policies["retention"].hash == today.policies["retention"].hash


def test_a_pack_loads_from_a_path(tmp_path):
    path = tmp_path / "mine.hy"
    path.write_text(SMALL, encoding="utf-8")
    assert load_pack(path).hash == load_pack(SMALL).hash


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean associative"):
        load_pack("asociative")


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.hy.*No such file"):
        load_pack(tmp_path / "nothing.hy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(pack p) (setting limitt 3)", "Did you mean limit"),
        ("(pack p) (setting limit 0)", "between 1 and 10000"),
        ("(pack p) (setting limit 2.5)", "whole number"),
        ('(pack p) (setting spread-mode "mean")', "cascade, energy, hops, ppr"),
        ("(pack p) (defpolicy recal-score [similarity] similarity)", "Did you mean recall-score"),
        ("(pack p) (defpolicy recall-score [similarty] similarty)", "similarity"),
        ("(pack p) (defpolicy eligible [similarity] similarity)", "true or false"),
        ("(pack p) (defpolicy spread [similarity] similarity)", "similarity"),
        ("(pack p) (defpolicy recall-score [similarity] (+ similarity", "clos|end"),
    ],
)
def test_a_bad_pack_is_refused_with_a_place(text, message):
    with pytest.raises(PolicyError, match=message) as caught:
        load_pack(text)
    assert caught.value.line == 1
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    ("slot", "own"),
    [("half-life", "recency"), ("half-life", "retention"), ("retention", "retention")],
)
def test_no_policy_reads_the_feature_that_it_decides(slot, own):
    with pytest.raises(PolicyError, match=own):
        load_pack(f"(pack p) (defpolicy {slot} [{own}] {own})")


@pytest.mark.parametrize("slot", ["link", "resolve"])
def test_pairs_read_both_memories_and_what_lies_between(slot):
    inputs = SLOTS[slot].signature.inputs
    for name, feature in FEATURES.items():
        if feature.stage == "memory":
            assert inputs[f"new/{name}"].type == inputs[f"old/{name}"].type == feature.type
            assert inputs[f"new/{name}"].words == feature.words
    assert {name.split("/")[0] for name in inputs} == {"new", "old", "pair"}


def test_reinforce_reads_the_values_from_before_its_updates():
    signature = SLOTS["reinforce"].signature
    assert set(signature.fields) == {
        *(
            "strength",
            "confidence",
            "importance",
            "energy",
            "stability",
            "difficulty",
            "emotional-weight",
        )
    }
    assert set(signature.inputs) >= {*signature.fields, "outcome", "rating", "elapsed-days"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('(pack p) (defpolicy link [pair/closeness] "duplicat")', "duplicate"),
        ('(pack p) (defpolicy promote [status] "confirmd")', "confirmed"),
        ("(pack p) (defpolicy reinforce [strength] (update :strenth 1))", "strength"),
        ("(pack p) (defpolicy reinforce [strength] strength)", "reinforce returns"),
        (
            '(pack p) (defpolicy reinforce [outcome] (if (= outcome "sucess") (update) (update)))',
            "success",
        ),
        ("(pack p) (defpolicy resolve [old/confidense] 1)", "old/confidence"),
        ("(pack p) (defpolicy recall-score [tags] tags)", "tags"),
    ],
)
def test_the_new_slots_refuse_with_the_nearest_name(text, message):
    with pytest.raises(PolicyError, match=message) as caught:
        load_pack(text)
    assert "^" in str(caught.value)


def test_every_feature_has_a_description():
    for name, feature in FEATURES.items():
        assert feature.name == name
        assert feature.formula
        assert feature.doc
        assert all(
            item == "embedder" or item in SETTINGS or item in SLOTS for item in feature.depends
        ), name


@pytest.mark.parametrize("name", [["seeds"], {}, 3])
def test_a_name_that_is_no_text_is_refused_as_an_unknown_name(name: object) -> None:
    pack = load_pack("memlab")
    for read in (pack.number, pack.count, pack.policy):
        with pytest.raises(UnknownName):
            read(name)
