"""Moving a lab to another: what would go, what stays, and what is marked."""

import polars as pl
import pytest
from embedders import letters

import memlab
from memlab.errors import MemoryOff, ReadOnlyLab
from memlab.kernel.privacy import Screening
from memlab.subjects.io import storing

pytestmark = pytest.mark.long

KEY = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def two_projects(lab):
    first = lab.remember(
        "Deploys go out on Tuesdays", project="api", kind="convention", tags=["deploys"]
    )
    second = lab.remember(
        "Call ida@example.com before a deploy", project="api", creator="ida", visibility="private"
    )
    third = lab.remember("Dear diary, today was fine", project="diary")
    lab.remember("Tabs over spaces", kind="preference", summary="tabs")
    lab.graph.link(first, second, relation="relates-to")
    lab.graph.link(first, third, relation="relates-to")
    lab.forget(lab.remember("An old rule", project="api"))
    lab.purge(lab.remember("gone for good", project="api"))
    return lab


@pytest.fixture
def unscreened(monkeypatch):
    """Return a lab that was written before the gate recognised a secret."""

    def remember(lab, text, **fields):
        with monkeypatch.context() as patched:
            patched.setattr(
                "memlab.kernel.verbs.remembering.remember.screen_many",
                lambda texts, **_: [Screening(text) for text in texts],
            )
            return lab.remember(text, **fields)

    return remember


def opened(path, clock):
    return memlab.open(path, embedder=letters, clock=clock)


def test_a_preview_says_by_project_what_would_go(two_projects, unscreened):
    unscreened(two_projects, f"the key is {KEY}", project="api")
    two_projects.agents.switch_off("diary")
    head = two_projects.io.store.journal.head
    seen = two_projects.io.preview()
    rows = {row["project"]: row for row in seen.frame.to_dicts()}
    assert list(rows) == [None, "api", "diary"]
    api = rows["api"]
    assert (api["memories"], api["live"], api["private"], api["secrets"], api["personal"]) == (
        4,
        3,
        1,
        1,
        1,
    )
    assert (api["would_go"], api["why"]) == (True, None)
    assert (rows["diary"]["would_go"], rows["diary"]["why"]) == (False, "memory is off")
    assert rows[None]["characters"] == len("Tabs over spaces") + len("tabs")
    assert seen.memories == 5
    assert two_projects.io.preview([None, "api"]).memories == 0
    assert two_projects.io.preview("api").frame.filter(project="api")["why"].to_list() == [
        "excluded"
    ]
    assert two_projects.io.store.journal.head == head
    assert "diary (memory is off)" in repr(seen)


def test_memories_that_are_not_excluded_move_and_a_second_run_adds_nothing(
    two_projects, tmp_path, clock
):
    target = tmp_path / "there"
    moved = two_projects.io.move_to(target, exclude=["diary"], embedder=letters)
    assert (moved.added, moved.redacted) == (4, 0)
    assert moved.frame["project"].to_list() == [None, "api"]
    with opened(target, clock) as there:
        frame = there.memories
        assert set(frame["project"].to_list()) == {"api", None}
        assert "gone for good" not in frame["text"].to_list()
        assert "forgotten" in frame["status"].to_list()
        assert there.edges.filter(relation="relates-to").height == 1
        assert there.recall("deploys", project="api", viewer="agent:x")[0].text.startswith(
            "Deploys"
        )
        texts = frame.height
    assert two_projects.at(viewer="agent:x").io.synced().is_empty()
    synced = two_projects.io.synced().row(0, named=True)
    assert synced["target"] == str(target)
    assert (synced["memories"], synced["added"], synced["left_out"]) == (4, 4, 1)
    head = two_projects.io.store.journal.head
    again = two_projects.io.move_to(target, exclude=["diary"], embedder=letters)
    assert (again.added, again.edges, two_projects.io.store.journal.head) == (0, 0, head)
    two_projects.remember("A new rule", project="api")
    assert two_projects.io.move_to(target, exclude=["diary"], embedder=letters).added == 1
    assert two_projects.io.synced()["added"].to_list() == [4, 1]
    with opened(target, clock) as there:
        assert there.memories.height == texts + 1
    assert "synced" in two_projects.log["kind"].to_list()


def test_edges_between_projects_come_once_both_are_there(two_projects, tmp_path, clock):
    two_projects.io.move_to(tmp_path / "there", exclude=[None], embedder=letters)
    with opened(tmp_path / "there", clock) as there:
        assert there.edges.filter(relation="relates-to").height == 2


def test_a_lab_goes_whole_where_nothing_is_excluded(two_projects, tmp_path, clock):
    assert two_projects.io.move_to(tmp_path / "there", embedder=letters).added == 6
    with opened(tmp_path / "there", clock) as there:
        same = ["text", "kind", "project", "status", "visibility", "created"]
        assert there.memories.select(same).equals(two_projects.memories.select(same))


def test_secrets_are_redacted_on_the_way_and_embedded_without_them(
    two_projects, unscreened, tmp_path, clock
):
    unscreened(two_projects, f"the key is {KEY}", project="api")
    sent = []

    def embed(texts):
        sent.extend(texts)
        return letters(texts)

    embed.__qualname__ = "letters"
    assert (
        two_projects.io.move_to(tmp_path / "there", exclude=["diary"], embedder=embed).redacted == 1
    )
    assert KEY not in "".join(sent)
    with opened(tmp_path / "there", clock) as there:
        assert not there.memories.filter(pl.col("text").str.contains(KEY)).height
        assert there.memories.filter(pl.col("text").str.contains("REDACTED")).height == 1


def test_a_move_that_stopped_goes_on(two_projects, tmp_path, clock, monkeypatch):
    load, calls = storing.load_bundle, []

    def second_fails(*options, **names):
        calls.append(options)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return load(*options, **names)

    with monkeypatch.context() as patched:
        patched.setattr(storing, "load_bundle", second_fails)
        with pytest.raises(KeyboardInterrupt):
            two_projects.io.move_to(tmp_path / "there", exclude=["diary"], embedder=letters)
    with opened(tmp_path / "there", clock) as there:
        assert there.memories["project"].to_list() == [None]
    assert two_projects.io.synced().is_empty(), "what did not go whole is not marked"
    assert (
        two_projects.io.move_to(tmp_path / "there", exclude=["diary"], embedder=letters).added == 3
    )


def test_the_target_decides_what_to_store(two_projects, tmp_path, clock):
    with opened(tmp_path / "there", clock) as there:
        there.policies.use('(pack careful) (setting consent "needed")')
        there.agents.switch_on("api")
    with pytest.raises(MemoryOff, match="no project"):
        two_projects.io.move_to(tmp_path / "there", embedder=letters)
    with opened(tmp_path / "there", clock) as there:
        assert not there.memories.height
    assert (
        two_projects.io.move_to(tmp_path / "there", exclude=[None, "diary"], embedder=letters).added
        == 3
    )


def test_moves_that_are_refused(disk, two_projects, tmp_path):
    with pytest.raises(memlab.errors.UnknownName, match="Did you mean diary"):
        two_projects.io.move_to(tmp_path / "there", exclude=["dairy"])
    with pytest.raises(memlab.InputError, match=r"exclude\[0\] is a text"):
        two_projects.io.preview([3])
    assert not (tmp_path / "there").exists()
    with disk() as lab, pytest.raises(memlab.InputError, match="is this lab"):
        lab.io.move_to(lab.io.store.folder)
    with disk(read_only=True) as lab, pytest.raises(ReadOnlyLab):
        lab.io.move_to(tmp_path / "there")
    with pytest.raises(ReadOnlyLab):
        two_projects.at(viewer="agent:x").io.move_to(tmp_path / "there")
    assert (
        two_projects.at(viewer="agent:x").io.preview().frame.filter(project="api")["private"].item()
        == 0
    )


def test_a_purge_leaves_no_project_in_a_mark(two_projects, tmp_path):
    two_projects.io.move_to(tmp_path / "there", exclude=["diary"], embedder=letters)
    two_projects.purge(project="diary")
    assert "diary" not in str(
        [event.body for event in two_projects.io.store.journal.events(kinds=("synced",))]
    )


def test_from_the_command_line(json_of, run):
    json_of("remember", "a.memlab", "Deploys go out on Tuesdays", "--project", "api")
    json_of("remember", "a.memlab", "Dear diary", "--project", "diary")
    data = json_of("upkeep", "move", "a.memlab", "b.memlab", "--exclude", "diary", "--preview")
    assert (data["memories"], [row["would_go"] for row in data["projects"]]) == (1, [True, False])
    assert run("upkeep", "move", "a.memlab", "b.memlab", "--preview").stdout.startswith(
        "2 memories of 2 projects would move"
    )
    assert json_of("upkeep", "move", "a.memlab", "b.memlab", "--exclude", "diary")["added"] == 1
    assert "1 were already there" in run("upkeep", "move", "a.memlab", "b.memlab").stdout
    assert len(json_of("show", "b.memlab")) == 2
