"""Proper names: what is written with a capital because it is a title, a label or the beginning of an item is none."""

import pytest

import memlab
from memlab.subjects.reading.names import proper_names

MARKDOWN = """### Steps to Balance Work and Rest Days

1. **Contract Details**: Encourage Heather to read them before she meets Wyatt.
2. Milestone Reviews
- **Overuse**: Handle mails first. Exercise can help.
- Case studies or testimonials from successful teams.
| Cost Comparison | Total |
- Ada wants the report on Mondays.
In Scrivener you can split the window."""


def test_a_text_in_markdown_names_what_its_sentences_name():
    assert proper_names(MARKDOWN) == ["Wyatt", "Ada", "Scrivener"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We met Tom. As Tanya said, it was late.", ["Tom", "Tanya"]),
        ('She typed "done". Make sure that Bob hears of it.', ["Bob"]),
        ("See Dr. Okafor on Tuesdays", ["Dr. Okafor"]),
        ("packing list:\n- socks\n- Passport Copies", []),
        ("that was SUPER fun, i COULD not stop, im DUNNNNNN", []),
        ("my Fam has a Sofa and i like Meiosis and Statistics", []),
        ("i study Human Development as a Junior and a Product Intern", []),
        ("then i had CS and HS and some PB", []),
        (
            "i love Back to the Future and Pride and Prejudice",
            ["Back to the Future", "Pride and Prejudice"],
        ),
        ("we read Goblet of Fire by Mt. Timp", ["Goblet of Fire", "Mt. Timp"]),
        ("well, Dear Anna-Lena and Emily Blunt XD", ["Anna-Lena", "Emily Blunt"]),
        ("i just Googled John Mayer at BYU", ["John Mayer", "BYU"]),
        ("", []),
        ("**", []),
        ("- ", []),
        ("|", []),
    ],
)
def test_names(text, names):
    assert proper_names(text) == names


@pytest.mark.long
def test_an_assistant_names_what_is_known_and_makes_no_entity(trigrams):
    with memlab.open(embedder=trigrams, pack="factgraph") as lab:
        lab.remember("I met Sarah in Lisbon", speaker="user", kind="event")
        lab.remember("Tell Sarah about Porto", speaker="assistant", kind="event")
        assert sorted(lab.facts.entities.frame()["name"]) == ["Lisbon", "Sarah"]
        values = dict(lab.facts.entities.frame().select("name", "mentions").rows())
        assert values == {"Lisbon": 1, "Sarah": 2}
