"""cascade: what ignore files leave out is never stored; tags come from paths, topics and a shared context."""

import pytest

import memlab


@pytest.fixture
def lab():
    with memlab.open(pack="cascade", clock=memlab.ManualClock("2026-06-01")) as opened:
        yield opened


@pytest.fixture
def project(tmp_path, monkeypatch):
    root = tmp_path / "work" / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "inner").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*\n")  # above the repository: not its business
    (root / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    (root / ".secretsignore").write_text("private.txt\n")
    (root / "src" / ".gitignore").write_text("generated.ts\n")
    for name in ("private.txt", "run.log", "src/generated.ts", "src/inner/auth.ts"):
        (root / name).write_text("x")
    monkeypatch.chdir(tmp_path)
    return root


@pytest.mark.parametrize(
    "name", ["private.txt", "build/out.txt", "run.log", "src/generated.ts", "src/inner/x.log"]
)
def test_a_file_that_the_project_leaves_out_is_refused(lab, project, name):
    with pytest.raises(memlab.errors.PrivacyError, match="ignore"):
        lab.remember("It says something", files=[str(project / name)])
    assert len(lab) == 0


@pytest.mark.parametrize("name", ["src/inner/auth.ts", "keep.log", "README.md"])
def test_other_files_are_stored(lab, project, name):
    assert lab.remember("It says something", files=[str(project / name)]).id


def test_a_relative_path_is_one_of_the_working_directory_if_it_is_there(lab, project, monkeypatch):
    monkeypatch.chdir(project)
    with pytest.raises(memlab.errors.PrivacyError, match="secretsignore"):
        lab.remember("It says something", files=["private.txt"])
    memory = lab.remember("It says something", files=["elsewhere/private.txt"])
    with pytest.raises(memlab.errors.PrivacyError, match="secretsignore"):
        lab.edit(memory, files=["private.txt"])


def test_a_pack_that_does_not_ask_reads_no_files(project):
    with memlab.open(pack="memlab") as lab:
        assert lab.remember("It says something", files=[str(project / "private.txt")]).id


def test_tags_come_from_paths_topics_and_the_entities_of_a_fact(lab):
    memory = lab.remember("The login fails after a deploy", files=["src/payments/handler.rs"])
    assert memory.tags == ("rust", "payments", "auth", "deployment")
    lab.facts.add("JACQ", "uses", object="React")
    assert lab[2].tags == ("jacq", "react")


def verified(lab, texts, query):
    ids = [lab.remember(text, linking="off").id for text in texts]
    hits = lab.recall(query)
    return lab.agents.verify(hits, [id for id in ids if id in hits.ids])


@pytest.mark.long
def test_memories_that_share_a_context_and_no_tag_get_one(lab):
    done = verified(
        lab,
        ["our redis keeps the carts", "our redis needs two gigabytes"],
        "what do we know of redis?",
    )
    assert done.tag == "redis"
    assert lab.memories["tags"].to_list() == [["redis"], ["redis"]]


def test_a_word_that_one_of_them_lacks_is_no_tag(lab):
    done = verified(
        lab,
        ["our redis keeps the carts", "the carts need two gigabytes"],
        "what do we know of redis?",
    )
    assert done.tag is None


@pytest.mark.long
def test_a_memory_alone_shares_nothing_and_a_tag_of_two_is_enough(lab):
    assert verified(lab, ["our redis keeps the carts"], "redis carts").tag is None
    for text in ("our kafka is in the cellar", "our kafka is on the roof"):
        lab.remember(text, tags=["queue"], linking="off")
    hits = lab.recall("kafka")
    assert lab.agents.verify(hits, [2, 3]).tag is None
    assert lab.memories["tags"].to_list()[1:] == [["queue"], ["queue"]]


def test_tags_come_from_the_names_that_a_text_mentions(lab):
    assert lab.remember("Yesterday Sarah moved JACQ to the new cluster").tags == ("sarah", "jacq")
