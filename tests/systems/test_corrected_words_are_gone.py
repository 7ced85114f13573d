"""After a correction, no reader of the present meets the old words, whichever pack decides."""

import random

import polars as pl
import pytest

import memlab

KINDS = (
    "fact",
    "preference",
    "convention",
    "decision",
    "gotcha",
    "observation",
    "event",
    "context",
)
FRAMES = (
    "The {thing} is called {word}",
    "We keep the {thing} in {word} since spring. Nobody else knows where it is",
    "Never touch {word} while the {thing} is running",
    "The {thing} moved to {word}, and the team likes it there",
    "Ask {word} about the {thing} before every release; it saves an hour of guessing in most weeks of the year",
)
THINGS = ("parser", "bakery", "release", "garden", "login", "database", "choir", "invoice")
SUBJECTS = ("Ada", "Bob", "user", "JACQ")
PREDICATES = ("lives-in", "works-at", "uses", "status")


def _word(number):
    """Return a word that is used nowhere else."""
    letters = "bcdfghklmnprstvz"
    return (
        "qu"
        + "".join(
            letters[number // 16**position % 16] + "ao"[position % 2] for position in range(4)
        )
        + "x"
    )


def _edited(pack, seed, edits):
    """Return a lab with remembered and corrected memories, and the words that must not appear any more."""
    chance, clock = random.Random(seed), memlab.ManualClock("2026-06-01")
    lab = memlab.open(pack=pack, clock=clock)
    number, held, gone = seed * 4096 % 60_000, [], []
    for _ in range(max(4, edits // 3)):
        number += 1
        word, clock_step = _word(number), chance.randrange(1, 40)
        if chance.random() < 0.4:
            memory = lab.facts.add(
                chance.choice(SUBJECTS),
                chance.choice(PREDICATES),
                word,
                confidence=chance.choice((0.6, 0.95)),
            )
        else:
            text = chance.choice(FRAMES).format(thing=chance.choice(THINGS), word=word)
            memory = lab.remember(
                text,
                kind=chance.choice(KINDS),
                project=chance.choice((None, "p")),
                session=chance.choice((None, "s")),
            )
        clock.advance(hours=clock_step)
        if (
            lab[memory.id].text
            and word in lab[memory.id].text
            and lab[memory.id].status in ("active", "staged")
        ):
            held.append((memory.id, word))
    for _ in range(edits):
        place = chance.randrange(len(held))
        id, word = held[place]
        now = lab[id]
        if now.status not in ("active", "staged", "confirmed") or word not in now.text:
            continue
        if chance.random() < 0.3:
            lab.context(f"what about {word}", project="p", session="told")
        number += 1
        after = lab.edit(id, text=now.text.replace(word, _word(number)))
        held[place] = (after.id, _word(number))
        gone.append(word)
        clock.advance(hours=1)
    return lab, gone


def _met(lab, words):
    """Return where the lab shows one of the words at present."""
    said = {}
    now = lab.memories.filter(
        ~pl.col("status").is_in(["superseded", "deprecated", "retracted", "deleted"])
    )
    said["memories"] = str(now.select(pl.exclude("context", "reason")).to_dicts())
    said["profile"] = "".join(lab.facts.profile(name).text for name in ("user",))
    said["facts"] = str(lab.facts.frame(status=["active", "staged", "confirmed"]).to_dicts())
    for word in words:
        said[f"recall {word}"] = " ".join(
            hit.text for hit in lab.recall(f"what about {word}?", log=False)
        )
        said[f"narrative {word}"] = lab.facts.narrative(f"what about {word}?", log=False).text
    for thing in THINGS:
        said[f"context {thing}"] = lab.context(f"look after the {thing}", project="p").text
    lab.upkeep.consolidation.run()
    now = lab.memories.filter(
        ~pl.col("status").is_in(["superseded", "deprecated", "retracted", "deleted"])
    )
    said["consolidated"] = str(now.select("text", "summary", "tags").to_dicts())
    return {place: word for place, text in said.items() for word in words if word in text}


@pytest.mark.long
@pytest.mark.parametrize("pack", memlab.packs())
def test_no_old_word_is_met_under_any_pack(pack):
    lab, gone = _edited(pack, 1, 9)
    assert gone
    assert _met(lab, gone) == {}


@pytest.mark.slow
@pytest.mark.parametrize("pack", memlab.packs())
@pytest.mark.parametrize("seed", range(2, 7))
def test_a_thousand_corrections_leave_no_old_word(pack, seed):
    lab, gone = _edited(pack, seed, 28)
    assert len(gone) >= 15
    assert _met(lab, gone) == {}


@pytest.mark.long
def test_the_history_keeps_the_old_words():
    lab, gone = _edited("workbench", 1, 9)
    text = str(lab.memories.filter(pl.col("status") == "superseded")["text"].to_list())
    assert all(word in text for word in gone)


@pytest.mark.parametrize("blank", ["", "   ", "\n"])
def test_a_correction_that_empties_a_text_is_refused(blank):
    lab = memlab.open(clock=memlab.ManualClock("2026-06-01"))
    lab.remember("tabs")
    with pytest.raises(memlab.InputError, match="empty"):
        lab.edit(1, text=blank)
    assert lab.memories["text"].to_list() == ["tabs"]


@pytest.mark.long
def test_purged_or_foreign_memories_are_not_corrected_and_corrections_are_idempotent():
    lab = memlab.open(clock=memlab.ManualClock("2026-06-01"))
    lab.remember("tabs")
    lab.remember("spaces")
    lab.forget(2, how="delete")
    lab.purge(2)
    before = lab.memories
    with pytest.raises(memlab.InputError, match="purged"):
        lab.edit(2, text="four spaces")
    with pytest.raises(memlab.errors.UnknownName):
        lab.edit(7, text="four spaces")
    assert lab.memories.equals(before)
    first = lab.edit(1, text="four spaces")
    assert lab.edit(1, text="four spaces").id == first.id, (
        "the same correction again changes nothing"
    )
    assert lab.memories.height == 3
    assert lab.edit(1, text="two spaces").id == 4, (
        "a superseded memory is corrected in what stands for it"
    )
    other = memlab.open(clock=memlab.ManualClock("2026-06-01"))
    other.remember("goats")
    with pytest.raises(memlab.MemlabError):
        lab.edit(other.recall("goats", log=False)[0], text="sheep") if len(other) > 9 else lab.edit(
            99, text="sheep"
        )
