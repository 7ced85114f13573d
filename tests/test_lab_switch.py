"""Memory switched off, for all or for a project: nothing is remembered or recalled, and it says so."""

import polars as pl
import pytest
from embedders import letters

import memlab
from memlab.errors import MemoryOff
from memlab.kernel.embedding import load_embedder
from tests.displays import html_of


@pytest.fixture
def noted(lab):
    lab.remember("deploys go out on Tuesdays", project="api", kind="convention", pinned=True)
    lab.remember("deploys are reviewed", project="web")
    lab.remember("deploys are announced")
    return lab


@pytest.mark.long
def test_off_for_all(noted, clock):
    noted.agents.switch_off(reason="under audit")
    head = noted.io.store.journal.head
    for write in (
        lambda: noted.remember("x"),
        lambda: noted.remember(["x"]),
        lambda: noted.load([{"role": "user", "content": "x"}], progress=False),
        lambda: noted.facts.add("Ada", "likes", "tea"),
        lambda: noted.upkeep.operations.run('(remember "x")'),
        lambda: noted.agents("coder").remember("x"),
        lambda: noted.agents.commit(noted.agents.extract("I live in Rome")),
    ):
        with pytest.raises(
            MemoryOff,
            match=r"off for all since .*: under audit. Nothing .* lab.agents.switch_on\(\)",
        ):
            write()
    hits = noted.recall("deploys")
    assert (len(hits), len(hits.slate), hits.decision) == (0, 0, None)
    assert hits.off == "Memory is off for all since 2026-03-01 12:00 UTC: under audit."
    assert hits.off in repr(hits)
    assert hits.off in html_of(hits)
    context = noted.context("deploys", project="api")
    assert (context.text, context.left_out["why"].to_list()) == ("", [hits.off])
    assert noted.facts.narrative("deploys").text == ""
    with noted.agents.turns() as turns:
        turns.offer("deploys")
        assert turns.wait(30)
        offer = turns.offer("deploys")
        assert (len(offer), offer.notes) == (0, (hits.off,))
        assert turns.wait(30)
    assert noted.io.store.journal.head - head <= 1, "nothing is logged but the run of an operation"
    noted.agents.switch_on()
    assert len(noted.recall("deploys")) == 3
    noted.remember("x")


@pytest.mark.long
def test_off_for_a_project(noted, tmp_path):
    noted.agents.switch_off("api")
    with pytest.raises(
        MemoryOff, match=r'off for the project "api" .* lab.agents.switch_on\(project=\'api\'\)'
    ):
        noted.remember(["x", {"text": "y", "project": "api"}])
    (tmp_path / "module.py").write_text("import os\n")
    with pytest.raises(MemoryOff):
        noted.agents.modules.scan(tmp_path, project="api")
    assert noted.recall("deploys", project="api").off is not None
    assert set(noted.recall("deploys", project="web").ids) == {2, 3}
    everywhere = noted.recall("deploys")
    assert (set(everywhere.ids), everywhere.off) == ({2, 3}, None)
    assert everywhere.decision is not None
    noted.remember("z", project="web")
    noted.agents.switch_on("api")
    assert 1 in noted.recall("deploys", project="api").ids
    assert set(
        noted.policies.recall_again({"decision": everywhere.decision}, noted.policies.pack)[
            "memory_id"
        ]
    ) == {
        2,
        3,
    }, "a question of the past is asked again as it was"


@pytest.mark.long
def test_stored_memories_can_be_read_and_corrected(noted):
    hits = noted.recall("deploys")
    noted.agents.switch_off()
    assert noted.memories.height == 3
    noted.feedback(hits[0], "success")
    noted.edit(1, text="deploys go out on Wednesdays")
    noted.forget(2)
    noted.purge(3)
    assert noted.memories["status"].to_list() == ["superseded", "forgotten", "purged", "active"]


@pytest.mark.long
def test_a_switch_is_logged_reversible_and_visible_in_the_past(noted, clock):
    then = noted.io.store.journal.head
    clock.advance(hours=1)
    assert noted.agents.switch_off("api", reason="moved").rows() == [
        ("api", memlab.kernel.base.clock.from_micros(clock()), "moved")
    ]
    noted.agents.switch_off("api", reason="again")
    noted.agents.switch_on()
    assert noted.io.store.journal.head == then + 1, "an unchanged switch is not written"
    noted.agents.switch_off()
    assert noted.agents.switched_off()["project"].to_list() == [None, "api"]
    noted.agents.switch_on()
    assert noted.agents.switched_off()["project"].to_list() == ["api"]
    noted.agents.switch_on("api")
    assert noted.agents.switched_off().is_empty()
    switched = noted.log.filter(pl.col("kind") == "switch")["what"].to_list()
    assert switched == ["off, project api, moved", "off, for all", "on, for all", "on, project api"]
    assert noted.at(event=then + 1).recall("deploys", project="api").off is not None
    assert noted.at(event=then).recall("deploys", project="api").off is None


@pytest.mark.long
def test_a_switch_survives_reopening_and_applies_to_every_viewer(disk):
    with disk() as lab:
        lab.remember("deploys go out on Tuesdays", project="api")
        lab.agents.switch_off("api")
        lab.io.snapshot()
    with disk() as lab:
        assert lab.recall("deploys", project="api").off is not None
        seen = lab.at(viewer="agent:coder")
        assert seen.recall("deploys", project="api").off is not None
        assert seen.agents.switched_off()["project"].to_list() == ["api"]
        with pytest.raises(memlab.errors.ReadOnlyLab):
            seen.agents.switch_on("api")


@pytest.mark.long
def test_a_replay_switches_as_it_was_switched(noted):
    noted.agents.switch_off("api")
    noted.recall("deploys")
    noted.agents.switch_on("api")
    replay = memlab.replay(noted, "workbench", progress=False)
    assert replay.lab.log.filter(pl.col("kind") == "switch").height == 2
    replay.lab.close()


def test_a_purged_projects_name_is_gone_from_it(noted):
    noted.agents.switch_off("web")
    noted.purge(project="web")
    assert noted.agents.switched_off().height == 1, (
        "its name has gone, and it is the switch of nobody"
    )
    assert "web" not in str(noted.agents.switched_off().rows())


@pytest.mark.parametrize("arguments", [{"project": ""}, {"reason": "AKIAIOSFODNN7EXAMPLE"}])
def test_invalid_projects_and_reasons(lab, arguments):
    with pytest.raises((memlab.InputError, memlab.errors.PrivacyError)):
        lab.agents.switch_off(**arguments)


@pytest.mark.long
def test_from_the_command_line(tmp_path, run, json_of):
    folder = tmp_path / "agent.memlab"
    memlab.open(folder).close()
    assert (
        "Memory is off for api."
        in run("agent", "switch-off", folder, "--project", "api", "--reason", "audit").stdout
    )
    assert json_of("agent", "switch-off", folder)["off"][0]["project"] is None
    assert "Memory is off for api." in run("agent", "switch-on", folder).stdout
    assert "Memory is on." in run("agent", "switch-on", folder, "--project", "api").stdout


# -- consent ----------------------------------------------------------------------------------------------------------


def elsewhere(host="vectors.example.com"):
    """Return an embedder that names the host it sends texts to, and records them."""

    def embed(texts):
        embed.sent += texts
        return letters(texts)

    embed.remote, embed.sent = host, []
    return embed


NEEDED = '(pack careful) (setting consent "needed")'


@pytest.mark.long
def test_under_a_pack_that_needs_consent_a_project_is_off_until_somebody_consents(lab, clock):
    lab.remember("deploys are frozen", project="old")
    lab.policies.use(NEEDED)
    with pytest.raises(
        MemoryOff, match=r'off for the project "api": the active pack needs consent .*project=\'api'
    ):
        lab.remember("deploys go out on Tuesdays", project="api")
    hits = lab.recall("deploys", project="api")
    assert (len(hits), "needs consent" in hits.off, hits.decision) == (0, True, None)
    clock.advance(hours=1)
    assert lab.agents.switch_on("api", reason="kick-off", by="ida").is_empty()
    head = lab.io.store.journal.head
    lab.agents.switch_on("api", reason="again")
    assert lab.io.store.journal.head == head, "a consent that holds is not written again"
    consent = lab.agents.consents().row(0, named=True)
    assert (consent["project"], consent["creator"], consent["reason"]) == ("api", "ida", "kick-off")
    assert consent["since"] == memlab.kernel.base.clock.from_micros(clock())
    assert consent["remote"] is None
    assert "consent of ida" in lab.log.filter(pl.col("kind") == "switch")["what"][0]
    lab.remember("deploys go out on Tuesdays", project="api")
    assert len(lab.recall("deploys", project="api")) == 1
    with pytest.raises(
        MemoryOff, match=r"off for memories with no project: .* lab.agents.switch_on\(\)"
    ):
        lab.remember("deploys are announced")
    assert lab.recall("deploys").off is not None
    lab.agents.switch_on()
    lab.remember("deploys are announced")
    assert {hit.text for hit in lab.recall("deploys")} == {
        "deploys go out on Tuesdays",
        "deploys are announced",
    }
    lab.agents.switch_off("api")
    assert lab.agents.consents()["project"].to_list() == [None]
    lab.policies.use("memlab")
    assert len(lab.recall("deploys", project="old")) == 2


def test_without_consent_what_is_there_is_corrected_where_nothing_is_sent_elsewhere(lab):
    lab.remember("The goat eats hay")
    lab.policies.use(NEEDED)
    assert lab.edit(1, text="The goat eats straw").id == 2


def test_nothing_is_sent_elsewhere_before_consent_and_the_place_is_disclosed(clock):
    embedder = elsewhere()
    with memlab.open(embedder=embedder, clock=clock) as lab:
        lab.remember("the user prefers spaces", project="api", kind="preference")
        lab.facts.add("Ada", "lives-in", "Rome", project="api")
        lab.policies.use(NEEDED)
        assert "embedded by vectors.example.com" in repr(lab)
        embedder.sent.clear()
        for asked in (
            lambda: lab.remember("a private matter", project="api"),
            lambda: lab.agents.observe("I prefer tabs over spaces", project="api"),
            lambda: lab.load([{"role": "user", "content": "x"}], project="api", progress=False),
        ):
            with pytest.raises(MemoryOff, match=r"sent to vectors.example.com to be embedded"):
                asked()
        assert "sent to vectors.example.com" in lab.recall("a private matter", project="api").off
        lab.context("a private matter", project="api")
        with pytest.raises(MemoryOff):
            lab.edit(1, text="the user prefers tabs")
        assert embedder.sent == []
        lab.agents.switch_on("api")
        assert lab.agents.consents()["remote"].to_list() == ["vectors.example.com"]
        lab.remember("a private matter", project="api")
        assert embedder.sent == ["a private matter"]


@pytest.mark.long
def test_consent_is_not_one_to_another_place(tmp_path, clock):
    def opened(embedder):
        return memlab.open(
            tmp_path / "lab", embedder=load_embedder(embedder, name="letters"), clock=clock
        )

    with opened(letters) as lab:
        lab.policies.use(NEEDED)
        lab.agents.switch_on("api")
        lab.remember("x", project="api")
        lab.io.snapshot()
    with opened(elsewhere()) as lab:
        assert lab.recall("x", project="api").off is not None
        with pytest.raises(MemoryOff, match=r"vectors\.example\.com"):
            lab.remember("y", project="api")
        lab.agents.switch_on("api")
        lab.remember("y", project="api")
        lab.io.snapshot()
    with opened(letters) as lab:
        lab.remember("here again", project="api")
        assert lab.agents.consents()["remote"].to_list() == ["vectors.example.com"]
        lab.purge(project="api")
        assert "api" not in str(lab.agents.consents().rows())


@pytest.mark.long
def test_no_export_brings_a_consent_along(tmp_path, clock):
    with memlab.open(embedder=letters, clock=clock, pack=NEEDED) as lab:
        lab.agents.switch_on("api", by="ida")
        lab.remember("x", project="api")
        lab.io.export(tmp_path / "out.jsonl")
    with memlab.open(embedder=letters, clock=clock, pack=NEEDED) as other:
        with pytest.raises(MemoryOff):
            other.load(tmp_path / "out.jsonl")
        other.agents.switch_on("api", by="ada")
        assert other.load(tmp_path / "out.jsonl").count("added") == 1
        assert other.agents.consents()["creator"].to_list() == ["ada"]


@pytest.mark.long
def test_a_replay_under_a_pack_that_needs_consent(noted):
    replay = memlab.replay(noted, NEEDED, progress=False)
    assert replay.lab.memories.height == 3
    assert set(replay.lab.agents.consents()["creator"]) == {"replay"}
    replay.lab.close()


def test_the_setting_changes_no_pack_that_does_not_give_it():
    pack = memlab.load_pack("memlab")
    assert pack.settings["consent"] == "given"
    assert memlab.load_pack(NEEDED).settings["consent"] == "needed"


@pytest.mark.parametrize("remote", [7, "", "a\nb"])
def test_invalid_hosts(remote):
    embedder = elsewhere(remote)
    with pytest.raises(memlab.InputError, match="remote must be the host or service"):
        memlab.open(embedder=embedder)


def test_consent_from_the_command_line(tmp_path, run):
    with memlab.open(tmp_path / "lab", pack=NEEDED):
        pass
    assert (
        run("agent", "switch-on", tmp_path / "lab", "--project", "api", "--by", "ida").exit_code
        == 0
    )
    with memlab.open(tmp_path / "lab") as lab:
        assert lab.agents.consents()["creator"].to_list() == ["ida"]
