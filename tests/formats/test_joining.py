"""``lab.io.join``: two labs that diverged, and the same texts in use wherever they are joined."""

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import memlab
from memlab.errors import InputError, MemlabError, ReadOnlyLab
from memlab.kernel.base.clock import ManualClock
from memlab.kernel.state import Change, build_values

pytestmark = pytest.mark.long

SECRET = "ghp_" + "a1" * 20
TEXTS = [
    "The bakery opens at six.",
    "Ida lives in Bergen.",
    "Deploy with make ship.",
    "The cat is called Miso.",
]


@pytest.fixture
def pair(tmp_path, clock, trigrams):
    """Return a lab and its copy, both open, with one clock."""
    with memlab.open(tmp_path / "a", clock=clock, embedder=trigrams) as lab:
        for text in TEXTS:
            lab.remember(text, linking="off")
            clock.advance(minutes=1)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    clock.advance(days=1)
    with (
        memlab.open(tmp_path / "a", clock=clock, embedder=trigrams) as a,
        memlab.open(tmp_path / "b", clock=clock, embedder=trigrams) as b,
    ):
        yield a, b


def texts(lab):
    """Return the texts of active memories."""
    frame = lab.memories
    return sorted(frame.filter(frame["status"].is_in(["active", "staged", "confirmed"]))["text"])


def test_new_memories_are_added_once(pair, clock):
    a, b = pair
    new = b.remember(
        "Deploys go out on Tuesdays.",
        tags=["team"],
        visibility="private",
        creator="agent:x",
        linking="off",
    )
    a.remember("The office is closed on Fridays.", linking="off")
    b.graph.link(new, 1, relation="depends-on")
    joined = a.io.join(b)
    assert (joined.count("added"), joined.known, len(joined)) == (1, 4, 1)
    row = a.memories.row(joined.ids[0] - 1, named=True)
    assert (row["text"], row["tags"], row["visibility"]) == (
        "Deploys go out on Tuesdays.",
        ["team"],
        "private",
    )
    assert row["created"] == new.created
    assert ("depends-on", 1) in set(
        a.edges.filter(a.edges["source"] == joined.ids[0]).select("relation", "target").rows()
    )
    head = a.io.store.journal.head
    again = a.io.join(b)
    assert (len(again), again.known, a.io.store.journal.head) == (0, 5, head)


def test_an_edit_there_supersedes_here(pair, clock):
    a, b = pair
    b.edit(2, text="Ida lives in Oslo.")
    joined = a.io.join(b)
    assert "Ida lives in Oslo." in texts(a)
    assert "Ida lives in Bergen." not in texts(a)
    assert a.memories["superseded_by"][1] == joined.ids[0]
    assert joined.count("edited") == 1
    assert not joined.conflicts.height
    assert a.edit(2, text="Ida lives in Voss.").text == "Ida lives in Voss."


@pytest.mark.parametrize(
    ("act", "status"),
    [
        (lambda lab: lab.forget(1), "forgotten"),
        (lambda lab: lab.forget(1, how="delete"), "deleted"),
        (lambda lab: lab.forget(1, how="deprecate", reason="it moved"), "deprecated"),
    ],
)
def test_a_status_there_is_the_status_here(pair, clock, act, status):
    a, b = pair
    act(b)
    joined = a.io.join(b)
    assert a.memories["status"][0] == status
    assert joined.frame.select("memory_id", "what", "before", "after").rows() == [
        (1, "status", "active", status)
    ]
    clock.advance(days=1)
    b.restore(1)
    a.io.join(b)
    assert a.memories["status"][0] == "active"
    assert b.io.join(a).frame.is_empty()


def test_a_memory_changed_on_both_sides_is_a_conflict_and_the_later_change_wins(pair, clock):
    a, b = pair
    a.edit(2, text="Ida lives in Oslo.")
    clock.advance(minutes=1)
    b.edit(2, text="Ida lives in Voss.")
    result = a.io.join(b, dry_run=True)
    joined = a.io.join(b)
    assert result.frame.equals(joined.frame)
    row = joined.conflicts.row(0, named=True)
    assert (row["before"], row["after"]) == (
        "active: Ida lives in Oslo.",
        "active: Ida lives in Voss.",
    )
    assert row["stands"] == "there"
    other = b.io.join(a)
    assert texts(a) == texts(b) == sorted([TEXTS[0], TEXTS[2], TEXTS[3], "Ida lives in Voss."])
    assert not other.conflicts.height  # this lab holds both by now, and knows
    assert a.io.join(b).frame.is_empty()


def test_a_change_that_follows_a_join_is_no_conflict(pair, clock):
    a, b = pair
    a.forget(1)
    b.io.join(a)
    clock.advance(minutes=1)
    b.restore(1)
    joined = a.io.join(b)
    assert joined.frame["what"].to_list() == ["status"]
    assert a.memories["status"][0] == "active"


def test_fields_come_over(pair, clock):
    a, b = pair
    b.edit(3, importance=0.9, tags=["build"])
    joined = a.io.join(b)
    assert joined.frame["what"].to_list() == ["edited"]
    assert (a.memories["importance"][2], a.memories["tags"][2].to_list()) == (0.9, ["build"])


def test_purged_memories_stay_purged(pair, clock):
    a, b = pair
    a.purge(1)
    b.edit(1, text="The bakery opens at seven.")
    joined = a.io.join(b)
    assert joined.kept_away
    assert not any("bakery" in (text or "") for text in a.memories["text"])
    back = b.io.join(a)
    assert texts(b) == texts(a) == sorted(TEXTS[1:])
    assert {b.memories["status"][id - 1] for id in back.purged} <= {"deleted", "superseded"}
    assert 1 in back.purged


def test_a_text_that_was_purged_there_and_told_again_here_goes_too(pair, clock):
    a, b = pair
    b.purge(1)
    again = a.remember(TEXTS[0], session="later", linking="off")
    joined = a.io.join(b)
    assert joined.purged == (1, again.id)
    b.io.join(a)
    assert texts(a) == texts(b) == sorted(TEXTS[1:])
    assert a.io.join(b).frame.is_empty()


def test_a_dry_run_changes_nothing_and_a_read_only_lab_refuses(pair, clock, tmp_path, trigrams):
    a, b = pair
    b.remember("Deploys go out on Tuesdays.", linking="off")
    head = a.io.store.journal.head
    assert a.io.join(b, dry_run=True).count("added") == 1
    assert (a.io.store.journal.head, len(a)) == (head, 4)
    with (
        memlab.open(tmp_path / "a", read_only=True, embedder=trigrams) as lab,
        pytest.raises(ReadOnlyLab),
    ):
        lab.io.join(tmp_path / "b")


@pytest.mark.parametrize("name", ["b.jsonl", "b.md", "b.sexp", "b.parquet"])
def test_an_export_joins_as_the_lab_does(pair, clock, tmp_path, name):
    a, b = pair
    b.edit(2, text="Ida lives in Oslo.")
    b.forget(1)
    b.remember("Deploys go out on Tuesdays.", linking="off")
    joined = a.io.join(b.io.export(tmp_path / name))
    assert texts(a) == texts(b)
    assert (joined.count("added"), joined.count("status"), joined.count("edited")) == (2, 1, 1)
    assert a.io.join(tmp_path / name).frame.is_empty()


def test_a_lab_made_of_an_export_joins_too(pair, clock, tmp_path, trigrams):
    a, _ = pair
    with memlab.open(tmp_path / "c", clock=clock, embedder=trigrams) as lab:
        lab.load(a.io.export(tmp_path / "a.jsonl"))
        clock.advance(minutes=1)
        lab.edit(2, text="Ida lives in Oslo.")
        a.forget(1)
        a.io.join(lab)
        lab.io.join(tmp_path / "a")
        assert texts(a) == texts(lab) == sorted([TEXTS[2], TEXTS[3], "Ida lives in Oslo."])


def test_nothing_is_joined_with_itself_or_with_what_is_no_lab(pair, tmp_path):
    a, _ = pair
    for other in (a, tmp_path / "a", tmp_path / "none", 7):
        with pytest.raises(InputError):
            a.io.join(other)
    (tmp_path / "x.csv").write_text("text\nhello\n")
    with pytest.raises(InputError, match=r"lab\.load"):
        a.io.join(tmp_path / "x.csv")


def test_an_edge_that_was_removed_stays_removed(pair, clock):
    a, b = pair
    a.graph.link(1, 2, relation="depends-on")
    assert b.io.join(a).edges == 1
    with a.io.store.writing() as tx:
        result = a.edges.filter(a.edges["relation"] == "depends-on")["edge"].to_list()
        tx.event("unlink", Change(unlink=result).body(), at=clock())
    assert a.io.join(b).edges == 0
    assert a.edges.is_empty()


def test_a_label_that_upkeep_gave_is_no_correction(pair, clock):
    a, b = pair
    b.edit(2, text="Ida lives in Oslo.")
    clock.advance(days=1)
    with a.io.store.writing() as tx:
        tx.event(
            "maintain",
            Change(set=[build_values([2], label="fading", changed=clock())]).body(),
            at=clock(),
        )
    joined = a.io.join(b)
    assert "Ida lives in Oslo." in texts(a)
    assert not joined.conflicts.height
    b.io.join(a)
    assert texts(a) == texts(b)


def test_secrets_are_screened(pair, tmp_path):
    a, b = pair
    b.remember("The token is here.", linking="off")
    path = b.io.export(tmp_path / "b.jsonl")
    path.write_text(path.read_text().replace("The token is here.", f"The token is {SECRET}."))
    joined = a.io.join(path)
    assert len(joined.redacted) == 1
    assert SECRET not in "".join(a.memories["text"])


def test_feedback_is_counted_once(pair, clock):
    a, b = pair
    b.feedback(1, "success")
    b.feedback(1, "success")
    a.feedback(1, "success")
    a.io.join(b)
    assert a.memories["success"][0] == 2
    head = a.io.store.journal.head
    a.io.join(b)
    assert a.io.store.journal.head == head


acts = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["remember", "edit", "forget", "delete", "restore", "importance", "join"]),
        st.integers(0, 9),
    ),
    max_size=14,
)


@given(acts)
@examples(200, quick=4)
def test_either_way_the_same_texts_are_in_use(tmp_path_factory, trigrams, done):
    folder, clock = tmp_path_factory.mktemp("joined"), ManualClock("2026-01-01")
    with memlab.open(folder / "a", clock=clock, embedder=trigrams) as lab:
        lab.remember(TEXTS, linking="off")
        lab.edit(1, text="The bakery opens at five.")
    shutil.copytree(folder / "a", folder / "b")
    with (
        memlab.open(folder / "a", clock=clock, embedder=trigrams) as a,
        memlab.open(folder / "b", clock=clock, embedder=trigrams) as b,
    ):
        for number, (where, act, which) in enumerate(done):
            clock.advance(minutes=1)
            lab, other = (a, b) if where == "a" else (b, a)
            id = which % len(lab) + 1
            try:
                if act == "remember":
                    lab.remember(f"Note {number} of {where}.", linking="off")
                elif act == "edit":
                    lab.edit(id, text=f"Edit {number} of {where}.")
                elif act == "importance":
                    lab.edit(id, importance=number / 20)
                elif act == "join":
                    lab.io.join(other)
                elif act == "delete":
                    lab.forget(id, how="delete")
                else:
                    lab.forget(id, how="delete") if act == "delete" else getattr(lab, act)(id)
            except MemlabError:
                pass  # what is deleted cannot be edited, what is superseded cannot be restored
        shutil.copytree(folder / "b", folder / "c")
        b.io.join(a)
        a.io.join(folder / "c")
        assert texts(a) == texts(b)
        # an edit and what it replaced can both be restored
        if not any(act == "restore" for _, act, _ in done):
            assert len(texts(a)) <= len(TEXTS) + sum(act == "remember" for _, act, _ in done)
        for lab, other in ((a, b), (b, a)):
            before = texts(lab)
            lab.io.join(other)
            assert texts(lab) == before
            head = lab.io.store.journal.head
            assert lab.io.join(other).frame.is_empty()
            assert lab.io.store.journal.head == head
