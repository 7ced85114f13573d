"""The vocabulary of packs has a number: a text in a later one is not blamed for words that its reader does not know."""

import hashlib
import json
from dataclasses import replace

import pytest

import memlab
from memlab.errors import InputError, NewerLab, PolicyError
from memlab.kernel.journal import Event, Journal
from memlab.kernel.language import DIALECT
from memlab.kernel.policies import (
    FEATURES,
    POLICY_FORMAT,
    SETTINGS,
    SLOTS,
    VOCABULARY,
    VersionLog,
    load_pack,
)
from memlab.kernel.policies._packs import pack_source
from memlab.kernel.registry import Registry
from memlab.subjects.lens import vocabulary as dialect_words

VOCABULARIES = {
    1: "a04806a73aab",
    2: "06f58f80012b",
    3: "b5b3055af91a",
    4: "b5eaf07fcfbf",
    5: "fee9237e5bf0",
    6: "7a6acb8fb761",
    7: "7ca5a3f5828c",
}
"""Digest of what packs may say, by the number of the vocabulary."""

LATER = POLICY_FORMAT + 1
DEFAULT = pack_source("memlab")


def words():
    """Return every name that the text of a pack may use, with its kind."""
    return {
        "dialect": DIALECT,
        "forms": sorted(word.name for word in dialect_words()),
        "slots": [
            [
                name,
                slot.version,
                slot.signature.returns,
                slot.signature.words,
                slot.signature.fields,
                sorted(
                    (item.name, item.type, item.words) for item in slot.signature.inputs.values()
                ),
            ]
            for name, slot in sorted(SLOTS.items())
        ],
        "settings": [
            [name, one.version, one.type, one.low, one.high, one.words]
            for name, one in sorted(SETTINGS.items())
        ],
        "features": [
            [name, one.version, one.type, one.words] for name, one in sorted(FEATURES.items())
        ],
    }


def test_another_vocabulary_has_another_number():
    digest = hashlib.blake2b(json.dumps(words()).encode(), digest_size=6).hexdigest()
    assert VOCABULARIES.get(POLICY_FORMAT) == digest, (
        f"What packs may say has changed since POLICY_FORMAT was raised. Raise it to {max(VOCABULARIES) + 1} in "
        f"memlab/kernel/policies/_versions.py, and write {max(VOCABULARIES) + 1}: {digest!r} into VOCABULARIES here."
    )


def fold(kind, texts, body):
    """Fold the versions after the default pack and one more event."""
    versions = VersionLog()
    shelf = {"default": DEFAULT, **texts}
    versions.fold(Event(1, 0, "use", {"sources": ["default"]}), shelf.__getitem__)
    versions.fold(Event(2, 0, kind, body), shelf.__getitem__)
    return versions


PACK = {"pack": "mine", "sources": ["mine"]}
TRIAL = {**PACK, "design": "extra", "extra": 1, "rate": 1.0, "reason": ""}
RANKING = {"slot": "recall-score", "source": "mine"}
UNKNOWN = [
    (
        "use",
        '(pack mine "Mine.") (setting moon-phase 1)',
        PACK,
        'There is no setting "moon-phase" here.',
    ),
    (
        "challenge",
        '(pack mine "Mine.") (setting moon-phase 1)',
        TRIAL,
        'There is no setting "moon-phase" here.',
    ),
    (
        "use",
        '(pack mine "Mine.") (defpolicy dream [similarity] similarity)',
        PACK,
        'no policy slot "dream"',
    ),
    ("use", '(pack mine "Mine.") (defpolicy prune [moonlight] (> moonlight 0))', PACK, "moonlight"),
    ("install", "(fn [moonlight] moonlight)", RANKING, "moonlight"),
    ("pin", "(fn [moonlight] moonlight)", RANKING, "moonlight"),
    ("rollback", "(fn [similarity] (ponder similarity))", RANKING, "ponder"),
    (
        "install",
        "(fn [similarity] similarity)",
        {**RANKING, "slot": "dream"},
        'There is no policy slot "dream" here.',
    ),
]


@pytest.mark.parametrize(("kind", "text", "body", "said"), UNKNOWN)
def test_a_text_in_a_later_vocabulary_is_not_blamed(kind, text, body, said):
    with pytest.raises(NewerLab) as caught:
        fold(kind, {"mine": text}, {**body, VOCABULARY: LATER})
    message = str(caught.value)
    assert message.startswith(
        f"Event 2 ({kind}) is written in the vocabulary of policies {LATER}, but memlab {memlab.__version__} reads "
        f"vocabularies up to {POLICY_FORMAT}. "
    )
    assert said.removesuffix(" here.") in message
    assert message.endswith(" Upgrade memlab.")
    assert "\n" not in message


@pytest.mark.parametrize(("kind", "text", "body", "message"), UNKNOWN)
@pytest.mark.parametrize("number", [{}, {VOCABULARY: POLICY_FORMAT}])
def test_a_text_in_a_known_vocabulary_is(kind, text, body, message, number):
    with pytest.raises((PolicyError, InputError)):
        fold(kind, {"mine": text}, {**body, **number})


def test_a_text_in_a_later_vocabulary_without_new_words_is_read():
    versions = fold(
        "install", {"mine": "(fn [similarity] similarity)"}, {**RANKING, VOCABULARY: LATER}
    )
    assert versions.pack.policies["recall-score"].source == "(fn [similarity] similarity)"


def test_a_text_that_is_gone_is_not_taken_for_a_later_one():
    with pytest.raises(KeyError):
        fold("install", {}, {**RANKING, VOCABULARY: LATER})


def test_every_event_with_a_text_says_its_vocabulary(disk, tmp_path):
    with disk() as lab:
        lab.policies.install("recall-score", "(fn [similarity] similarity)")
        lab.policies.rollback("recall-score")
        lab.policies.pin("recall-score")
        lab.policies.challenge("companion")
        lab.policies.use("cascade", compare=0)
    with Journal.open(tmp_path / "agent.memlab", read_only=True) as journal:
        numbers = {event.kind: event.body.get(VOCABULARY) for event in journal.events()}
    assert numbers == {"embedder": None} | dict.fromkeys(
        ("use", "install", "rollback", "pin", "challenge"), POLICY_FORMAT
    )


def _with(registry, name):
    """Replace a declaration of a registry by a second version."""
    items = [replace(item, version=2) if item.name == name else item for item in registry.values()]
    return Registry(registry.noun, items, about="doc")


def test_version_1_is_not_hashed_and_a_later_one_is(monkeypatch):
    """The golden record holds the hashes from before there were versions."""
    pack = load_pack("memlab")
    policy = pack.policies["prune"]
    assert pack.with_policy("prune", policy).hash == pack.hash
    before = pack.fingerprints("e")
    monkeypatch.setattr("memlab.kernel.policies._packs.SLOTS", _with(SLOTS, "prune"))
    assert pack.with_policy("prune", policy).hash != pack.hash
    monkeypatch.undo()
    monkeypatch.setattr("memlab.kernel.policies._packs.SETTINGS", _with(SETTINGS, "damping"))
    assert pack.with_policy("prune", policy).hash != pack.hash
    after = load_pack(DEFAULT).with_policy("prune", policy)
    after._fingerprints.clear()
    differ = {name for name, value in after.fingerprints("e").items() if value != before[name]}
    assert differ == {name for name, value in FEATURES.items() if "damping" in value.depends}


def test_a_setting_of_a_former_version_is_the_one_that_took_its_place():
    assert (
        load_pack('(pack mine "Mine.") (setting spread-combine "sum")').settings["spread-mode"]
        == "energy"
    )
    with pytest.raises(
        PolicyError, match=r"spread-combine \(now named spread-mode\) must be one of max, sum"
    ):
        load_pack('(pack mine "Mine.") (setting spread-combine "least")')
    assert "spread-combine" not in SETTINGS
