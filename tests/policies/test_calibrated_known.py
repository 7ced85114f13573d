"""The probability of an answer is shown only for the ranking it was fitted for, and refitted on questions."""

import json
import shutil

import numpy as np
import pytest

import memlab
from memlab.errors import InputError
from memlab.io.ingest import read_locomo
from memlab.kernel.policies import load_pack
from memlab.kernel.policies._packs import UNCALIBRATED
from memlab.science.examples import CONVERSATION

SWAPS = {
    "recall-score": "(fn [similarity] similarity)",
    "seed-score": "(fn [lexical] lexical)",
    "spread": "(fn [activation] (* 0.1 activation))",
    "cut": "(fn [seed] seed)",
}


@pytest.fixture(scope="module")
def conversation(tmp_path_factory):
    """Return the folder of a lab of the bundled conversation with its questions."""
    (chat,) = read_locomo(CONVERSATION)
    folder = tmp_path_factory.mktemp("conversation") / "lab"
    with memlab.open(folder) as lab:
        lab.remember(list(chat.conversation.rows()), chain=True)
        for question in chat.questions:
            if question.answerable and question.evidence:
                lab.questions.add(question.text, wants=list(question.evidence))
    return folder


@pytest.fixture
def lab(conversation, tmp_path):
    shutil.copytree(conversation, tmp_path / "lab")
    with memlab.open(tmp_path / "lab") as lab:
        yield lab


@pytest.mark.long
@pytest.mark.parametrize("slot", SWAPS)
def test_no_probability_is_shown_and_nothing_is_hidden_after_a_swap(lab, slot):
    query = "Which ship did the mayor of Lisbon buy?"
    lab.policies.install("known", "(fn [score] (* 0 score))")
    assert len(lab.recall(query, log=False)) == 5, "below the floor"
    lab.policies.install(slot, SWAPS[slot], compare=0)
    hits = lab.recall(query, log=False)
    assert (hits.known, hits.confidence, len(hits)) == (None, UNCALIBRATED, 10)
    assert UNCALIBRATED in repr(hits)
    assert UNCALIBRATED in hits._repr_html_()
    lab.policies.rollback(slot)
    assert len(lab.recall(query, log=False)) == 5


@pytest.mark.long
def test_a_rollback_of_known_keeps_the_ranking_of_its_fit(lab):
    lab.policies.install("recall-score", SWAPS["recall-score"], compare=0)
    lab.policies.install("known", "(fn [score] (+ 0.5 (* 0 score)))")
    assert lab.recall("work", log=False).known == 0.5
    lab.policies.rollback("known")
    assert lab.recall("work", log=False).known is None


@pytest.mark.long
def test_a_pin_of_known_keeps_the_ranking_of_its_fit(lab):
    lab.policies.pin("known")
    lab.policies.use("companion", compare=0)
    assert lab.policies.pack.policies["known"].hash == load_pack("memlab").policies["known"].hash
    assert lab.recall("work", log=False).confidence == UNCALIBRATED


@pytest.mark.long
def test_a_pack_that_moves_to_another_lab_keeps_what_known_was_fitted_for(lab):
    lab.policies.install("known", "(fn [score] (+ 0.5 (* 0 score)))")
    with memlab.open() as other:
        other.remember("I work at the harbour.")
        other.policies.use(lab.policies.pack, compare=0)
        assert other.recall("work", log=False).known == 0.5
        lab.policies.install("cut", SWAPS["cut"])
        other.policies.use(lab.policies.pack, compare=0)
        assert other.policies.pack.hash == lab.policies.pack.hash
        assert other.recall("work", log=False).confidence == UNCALIBRATED


@pytest.mark.parametrize("slot", ["seed-score", "cut", "spread"])
def test_a_pack_that_inherits_known_and_not_its_ranking_shows_none(slot):
    body = SWAPS[slot].removeprefix("(fn")
    pack = load_pack(f'(pack other "Another {slot}.") (defpolicy {slot} {body}')
    assert "known" in pack.decided
    assert pack.uncalibrated == UNCALIBRATED
    own = load_pack(
        f'(pack other "Its own.") (defpolicy known [score] 0.5) (defpolicy {slot} {body}'
    )
    assert own.tells_known


def test_a_pack_without_an_estimate_says_nothing():
    assert (load_pack("companion").uncalibrated, load_pack("memlab").uncalibrated) == ("", "")


@pytest.mark.long
def test_a_calibration_fits_known_to_the_new_ranking(lab):
    lab.policies.install("recall-score", SWAPS["recall-score"], compare=0)
    kept = lab.policies.calibrate(install=False)
    assert kept.version is None
    assert lab.recall("work", log=False).known is None
    fitted = lab.policies.calibrate(reason="another score")
    assert fitted.policy == kept.policy
    assert (fitted.questions, fitted.version) == (len(lab.questions), 2)
    assert 0.5 < fitted.auc <= 1
    assert json.loads(json.dumps(fitted.to_dict()))["version"] == 2
    known = [lab.recall(query, log=False).known for query in lab.questions.frame["query"]]
    assert np.mean(known) > 0.5
    assert "AUC" in repr(fitted)
    # Another fit on the same ranking does not read the policy known, so it is equal.
    assert lab.policies.calibrate(install=False).policy == fitted.policy


@pytest.mark.long
def test_the_policy_computes_the_terms_of_the_fit(lab):
    from memlab.subjects.questions import calibrating

    fitted = lab.policies.calibrate()
    numbers = [
        float(line.split()[1])
        for line in fitted.policy.splitlines()
        if line.strip().startswith("(* ")
    ]
    constant = float(fitted.policy.split("(sigmoid (+ ")[1].split()[0])
    for query in lab.questions.frame["query"]:
        hits = lab.recall(query, log=False)
        margin, lead, late, coverage = calibrating._compute_terms(hits)
        logit = constant + np.dot(numbers, [margin, lead, late, coverage])
        assert hits.known == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-9)


@pytest.mark.long
def test_too_few_questions_are_refused(lab):
    with pytest.raises(InputError, match="needs at least 20 questions, and there are 1"):
        lab.policies.calibrate([{"query": "Who?", "wants": [1]}])
    with memlab.open() as empty, pytest.raises(InputError, match="there are 0"):
        empty.policies.calibrate()
