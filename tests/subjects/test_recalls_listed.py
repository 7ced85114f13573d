"""``lab.agents.recalls``: the queries of each agent, the memories that they showed, and whether these helped."""

import pytest

import memlab


@pytest.fixture
def asked(lab, clock):
    """A lab whose recalls had each outcome, one per day."""
    lab.remember(
        [
            {"text": "Ada likes tabs"},
            {"text": "Bob keeps tabs in a secret list", "visibility": "private", "creator": "bob"},
        ]
    )
    clock.advance(days=1)
    lab.feedback(lab.recall("tabs?", viewer="bob", session="s", limit=2)[0], "success")
    clock.advance(days=1)
    lab.feedback(lab.recall("likes tabs?", viewer="ada")[0], "fail")
    clock.advance(days=1)
    lab.agents.verify(lab.recall("my password is 'hunter2swordfish'"), [])
    clock.advance(days=1)
    lab.context("tabs?", budget=100)
    return lab


@pytest.mark.long
def test_each_recall_has_its_outcome_its_agent_and_its_tokens(asked):
    recalls = asked.agents.recalls()
    assert recalls["outcome"].to_list() == ["helped", "failed", "nothing", "unrated"]
    assert recalls["agent"].to_list() == ["bob", "ada", None, None]
    assert recalls["session"].to_list() == ["s", None, None, None]
    helped, failed, nothing, context = recalls.to_dicts()
    assert sorted(helped["shown"]) == [1, 2]
    assert helped["helped"] == helped["shown"][:1]
    assert failed["shown"] == failed["failed"] == [1]
    assert nothing["failed"] == nothing["shown"]
    texts = dict(asked.memories.select("id", "text").iter_rows())
    assert helped["tokens"] == sum(-(-len(texts[id].encode()) // 4) for id in helped["shown"])
    assert context["tokens"] == asked.agents.metrics().contexts["tokens"].item()
    assert "hunter2" not in str(recalls.to_dicts())


@pytest.mark.long
def test_a_memory_that_was_superseded_since_is_stale(asked):
    assert asked.agents.recalls()["stale"].list.len().to_list() == [0, 0, 0, 0]
    asked.edit(1, text="Ada likes spaces")
    stale = asked.agents.recalls().select("shown", "stale").rows()
    assert [ids for _, ids in stale] == [[id for id in shown if id == 1] for shown, _ in stale]


@pytest.mark.long
def test_a_viewer_sees_own_recalls_alone_and_no_private_memory(asked):
    recalls = asked.at(viewer="ada").agents.recalls()
    assert recalls["query"].to_list() == ["likes tabs?"]
    assert recalls["shown"].to_list() == [[1]]


@pytest.mark.long
def test_since_and_a_lab_without_recalls(asked, lab, clock):
    recalls = asked.agents.recalls()
    assert asked.agents.recalls(since=recalls["at"][2]).equals(recalls[2:])
    empty = memlab.open().agents.recalls()
    assert empty.height == 0
    assert empty.schema == recalls.schema


def test_a_recall_without_results_found_nothing():
    lab = memlab.open()
    lab.recall("is there anything?")
    row = lab.agents.recalls().row(0, named=True)
    assert (row["outcome"], row["shown"], row["tokens"]) == ("nothing", [], 0)


def test_the_mean_of_several_judgements_decides(lab):
    lab.remember("Ada likes tabs")
    hits = lab.recall("tabs?")
    for outcome in ("fail", "success", "success"):
        lab.feedback(hits[0], outcome)
    assert lab.agents.recalls()["outcome"].item() == "helped"
