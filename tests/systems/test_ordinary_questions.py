"""With the model that ships with memlab: ordinary questions find what they ask for, and others find nothing.

Both stories hold ten memories, and each has its question. Nothing was fitted to them: the scale was measured on other
conversations (``experiments/nearness.py``).
"""

import pytest

import memlab

OF_A_USER = (
    ("User now prefers tea over coffee", "What beverages does the user like?"),
    ("User likes hiking in the mountains", "hiking"),
    ("The user's sister Mara lives in Lisbon", "Where does the user's sister live?"),
    ("User is training for a half marathon in May", "What sport is the user training for?"),
    ("User is allergic to peanuts", "Does the user have any allergies, to nuts or peanuts?"),
    ("User works as a nurse on night shifts", "Does the user work at night?"),
    ("User wants to learn to play the cello", "Which instrument does the user want to learn?"),
    ("User gets anxious before flights", "How does the user feel about flying?"),
    ("User's cat is called Biscuit", "What is the user's cat called?"),
    ("User reads crime novels before going to sleep", "Which novels does the user read?"),
)
OF_A_CODE_BASE = (
    (
        "Run database migrations with `make migrate` before starting the server",
        "How do I run the migrations?",
    ),
    ("The API rate limit is 100 requests a minute per key", "What is our rate limit?"),
    ("We use pnpm, never npm, for frontend packages", "Which package manager do we use?"),
    ("Error responses follow RFC 7807 problem details", "What do error responses look like?"),
    ("The payments service talks to Stripe through a queue", "How does the payments service work?"),
    ("Never log access tokens or session cookies", "Can I write the token to the log?"),
    (
        "Integration tests need Docker running locally",
        "Why do the integration tests fail on my machine?",
    ),
    ("Feature flags live in config/flags.yaml", "Where are the feature flags defined?"),
    ("The nightly build deploys to staging at 02:00", "When is the nightly build deployed?"),
    ("User prefers small pull requests with one purpose", "How big should a pull request be?"),
)
UNRELATED = (
    "What is the capital of Mongolia?",
    "Explain the rules of cricket",
    "When did the Roman empire fall?",
    "recipe for beef stew",
    "how tall is Mount Everest",
    "Who painted the Mona Lisa?",
    "What causes thunder?",
    "convert fahrenheit to celsius",
    "history of the printing press",
    "how far away is the moon",
)


@pytest.fixture(
    params=[("companion", OF_A_USER), ("cascade", OF_A_CODE_BASE)], ids=["companion", "cascade"]
)
def story(request, clock):
    pack, told = request.param
    with memlab.open(pack=pack, clock=clock) as lab:
        lab.remember([{"text": text, "kind": "preference"} for text, _ in told], linking="off")
        yield lab, told


@pytest.mark.long
def test_all_ten_are_found(story):
    lab, told = story
    missed = [
        asked
        for text, asked in told
        if text not in [hit.text for hit in lab.recall(asked, log=False)]
    ]
    assert missed == []


@pytest.mark.long
def test_the_answer_ranks_first_for_most_queries(story):
    lab, told = story
    first = [lab.recall(asked, limit=1, log=False)[0].text == text for text, asked in told]
    assert sum(first) >= 8


def test_unrelated_questions_find_nothing(story):
    lab, _ = story
    result = {
        question: [hit.text for hit in lab.recall(question, log=False)] for question in UNRELATED
    }
    assert {question: texts for question, texts in result.items() if texts} == {}


def test_a_given_embedder_keeps_its_cosines(clock):
    import numpy as np

    def embed(texts):
        return np.array(
            [
                [1.0, 0.0] if text == "the question" else [0.39, (1 - 0.39**2) ** 0.5]
                for text in texts
            ]
        )

    with memlab.open(pack="cascade", clock=clock, embedder=embed) as lab:
        lab.remember("the question in other words")
        assert len(lab.recall("the question", log=False)) == 0
