"""A pack says in which language words are read; the log keeps what that decided."""

import pytest

import memlab
from memlab.kernel.policies import FEATURES, load_pack
from memlab.kernel.recall import Recaller
from memlab.kernel.slates import encode
from memlab.kernel.verbs.recalling.past import Past

WORDS_ALONE = """(setting dense-candidates 0) (setting spread-steps 0) (setting probe-rate 0)
    (defpolicy recall-score [lexical] lexical)"""


def pack(language):
    return f'(pack trial) (setting language "{language}") {WORDS_ALONE}'


@pytest.fixture
def house(lab):
    lab.remember(
        [{"text": text} for text in ("Die Häuser am Meer", "Ein Flugzeug landet", "我住在东京")]
    )
    return lab


@pytest.mark.parametrize(
    ("language", "question", "ids"),
    [
        ("german", "Wer hat das Haus?", (1,)),
        ("english", "Wer hat das Haus?", ()),
        ("none", "Häuser", (1,)),
        ("none", "Haus", ()),
        ("none", "东京好吗", (3,)),
        ("english", "东京好吗", (3,)),
    ],
)
def test_the_language_decides_what_words_find(house, language, question, ids):
    house.policies.use(pack(language))
    assert house.recall(question, log=False).ids == ids


def test_memories_from_before_and_after_the_switch_are_retrieved(house):
    house.policies.use(pack("german"))
    assert house.recall("Haus", log=False).ids == (1,)
    house.remember("Das Haus brennt")
    assert set(house.recall("Haus", log=False).ids) == {1, 4}
    house.policies.use(pack("english"))
    assert house.recall("Haus", log=False).ids == (4,)


def test_a_length_is_counted_in_the_language_of_the_pack(house):
    house.policies.use('(pack trial) (setting language "german") (setting dense-candidates 9)')
    assert house.recall("Meer", log=False).slate.numbers["length"].tolist() == [2, 2, 9]
    house.policies.use('(pack trial) (setting language "none") (setting dense-candidates 9)')
    assert house.recall("Meer", log=False).slate.numbers["length"].tolist() == [4, 3, 9]


@pytest.mark.long
def test_a_logged_recall_is_repeated_byte_by_byte_whatever_pack_lives_now(house):
    house.policies.use(pack("german"))
    decision = house.recall("Wer hat das Haus?").decision
    house.remember("Noch ein Haus")
    house.policies.use(pack("english"))
    house.recall("Haus", log=False)
    past = Past(house.io.store.journal, Recaller(house.io.store.embedder))
    logged = past.logged(decision)
    assert encode(past.recall(decision, load_pack(pack("german")))) == encode(logged)
    assert past.recall(decision, load_pack(pack("english"))).ids.tolist() == []


def test_features_of_words_are_not_those_of_another_language():
    german, english = (
        load_pack(pack(language)).fingerprints("e") for language in ("german", "english")
    )
    changed = {name for name in FEATURES if german[name] != english[name]}
    assert {
        "lexical",
        "coverage",
        "session-lexical",
        "before-coverage",
        "length",
        "seed",
        "activation",
    } <= changed
    assert not changed & {
        "similarity",
        "closeness",
        "asks",
        "names-speaker",
        "age-days",
        "importance",
    }


def test_an_unknown_language_is_refused():
    with pytest.raises(memlab.errors.PolicyTypeError, match="language must be one of none, arabic"):
        load_pack(pack("englisch"))
