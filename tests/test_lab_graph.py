"""The graph of a lab: tags as nodes, cascades through them, activation and traces."""

import memlab


def test_tags_are_nodes_that_memories_share():
    lab = memlab.open()
    lab.remember_many(
        [{"text": "a", "tags": ["rust", "style"]}, {"text": "b"}, {"text": "c", "tags": ["style", "style"]}]
    )
    edges = lab.edges.select("source", "target", "relation", "from_kind", "to_kind", "to").rows()
    assert edges == [
        (1, 1, "has-tag", "memory", "tag", "rust"),
        (1, 2, "has-tag", "memory", "tag", "style"),
        (3, 2, "has-tag", "memory", "tag", "style"),
    ]


def test_a_cascade_reaches_what_shares_a_tag_and_no_word(tmp_path):
    path = tmp_path / "a.memlab"
    with memlab.open(path, pack="cascade") as lab:
        lab.remember("The borrow checker rejects two mutable references", tags=["rust"])
        lab.remember("Tea is at four", tags=["rust"])
        lab.remember("Coffee is at nine")
        before = lab.recall("borrow checker mutable references", log=False)
        assert before.ids[:2] == (1, 2)  # memory, tag, memory: two hops
        assert before.frame.filter(memory_id=2)["hops"].item() == 2
        lab.snapshot()
    with memlab.open(path) as lab:  # the tags are in the snapshot
        assert lab.recall("borrow checker mutable references", log=False).ids == before.ids
        assert lab.edges.height == 2
