"""A faulty file is refused completely, with the position of the fault; nothing in a file is ever executed."""

import json
import random

import polars as pl
import pytest

import memlab
from memlab.errors import DatasetError, NewerLab, PrivacyError, UnknownName
from memlab.io.formats import text_formats as jsonl
from memlab.io.formats.records import export_records

HEADER = {"memlab": {"schema": 1, "lab": "there", "whole": False}}


def lines(*records):
    return "\n".join(json.dumps(record) for record in records) + "\n"


def memory(id=1, **more):
    return {"memory": {"id": id, "text": f"memory {id}", **more}}


def edge(**more):
    return {"edge": {"source": 1, "target": 2, "relation": "next", "weight": 0.5} | more}


BAD = [
    ("", "The file is empty"),
    ("nonsense\n", r"line 1, column 5"),
    (
        '{"memlab": {"schema": 1, "lab": "x"}}\n{"memory": {"id": 1, "text": }}\n',
        r"line 2, column 30",
    ),
    (lines({"memory": {"id": 1}}), "line 1: An export must begin with its header"),
    (
        lines({"memlab": {"schema": 2, "lab": "x"}}),
        r"line 1, field schema: A newer memlab wrote the file \(schema 2",
    ),
    (lines({"memlab": {"schema": "one", "lab": "x"}}), "line 1, field schema"),
    (lines({"memlab": {"schema": 1}}), "line 1, field lab"),
    (lines(HEADER, {"memries": {}}), 'line 2: There is no record "memries"'),
    (lines(HEADER, ["memory"]), "line 2: Expected one record"),
    (lines(HEADER, {"memory": 3}), "line 2: A record must be an object"),
    (lines(HEADER, memory(), memory()), "line 3, field id: Two memories have the id 1"),
    (lines(HEADER, memory(0)), "line 2, field id"),
    (lines(HEADER, memory(1.5)), "line 2, field id"),
    (lines(HEADER, {"memory": {"id": 1}}), "line 2: A text must be a string, not NoneType"),
    (lines(HEADER, memory(text="  ")), "line 2: The text is empty"),
    (lines(HEADER, memory(text=7)), "line 2, field text: Expected a text, not 7"),
    (
        lines(HEADER, memory(), memory(2, colour="red")),
        'line 3: The record of a memory has no field "colour"',
    ),
    (lines(HEADER, memory(importanc=1)), "Did you mean importance"),
    (lines(HEADER, memory(), memory(2, importance=2)), "line 3: importance must be in 0..1, not 2"),
    (
        lines(HEADER, memory(importance="high")),
        "line 2, field importance: Expected a finite number",
    ),
    (lines(HEADER, memory(), memory(2, kind="factt")), 'line 3: There is no kind "factt"'),
    (lines(HEADER, memory(status="gone")), 'line 2: There is no status "gone"'),
    (lines(HEADER, memory(access=-1)), "line 2: access must be in 0..inf, not -1"),
    (
        lines(HEADER, memory(created="yesterday")),
        'line 2, field created: "yesterday" is not an ISO 8601 time',
    ),
    (lines(HEADER, memory(created="99999999999999999999us")), "line 2, field created"),
    (lines(HEADER, memory(tags="a")), "line 2, field tags: Expected a list of texts"),
    (lines(HEADER, memory(tags=[""])), "line 2: tags must be a string of 1 to 1000 characters"),
    (lines(HEADER, memory(uses=["x"])), "line 2, field uses"),
    (
        lines(HEADER, memory(), memory(2, operations="(recal)")),
        'line 3: .*There is no operation "recal"',
    ),
    (lines(HEADER, memory(pinned=1)), "line 2, field pinned: Expected true or false"),
    (lines(HEADER, memory(), memory(2), edge(relation="likes")), "line 4, field relation"),
    (lines(HEADER, memory(), memory(2), edge(weight=2)), "line 4, field weight"),
    (
        lines(HEADER, memory(), memory(2), edge(target=9)),
        "line 4, field target: No memory of the file has the id 9",
    ),
    (
        lines(HEADER, memory(), memory(2), edge(target=1)),
        "line 4, field target: An edge must join two different nodes",
    ),
    (
        lines(HEADER, memory(), memory(2), edge(target="thing/x")),
        "line 4, field target: Expected an id, tag/",
    ),
    (lines(HEADER, memory(), memory(2), edge(reinforcements=-1)), "line 4, field reinforcements"),
    (
        lines(HEADER, memory(), memory(2), edge(colour=1)),
        'line 4: The record of an edge has no field "colour"',
    ),
    (
        lines({"memlab": HEADER["memlab"] | {"memories": 3}}, memory()),
        "announces 3 memories, but the file has 1",
    ),
    (lines(HEADER, {"nodes": {"kind": "memory", "names": []}}), "line 2, field kind"),
    (lines(HEADER, {"nodes": {"kind": "tag", "names": ["a", "a"]}}), "Two nodes of kind tag"),
    (lines(HEADER, {"register": {"name": "gaps", "msgpack": "??"}}), "line 2, field msgpack"),
    ("[" * 100_000, "nested too deeply|line 1"),
]


@pytest.fixture
def full(lab):
    lab.remember("it was here before", tags=["a"])
    return lab


@pytest.mark.parametrize(("text", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_file_is_refused_with_its_place_and_nothing_is_added(full, tmp_path, text, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    head, before = full.io.store.journal.head, full.memories
    with pytest.raises(DatasetError, match=message) as refused:
        full.load(path, format="jsonl")
    assert "bad.jsonl" in str(refused.value)
    assert full.io.store.journal.head == head
    assert full.memories.equals(before)


def test_bytes_that_are_no_text_are_refused_with_their_line(full, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(lines(HEADER).encode() + b'{"memory": {"id": 1, "text": "\xff"}}\n')
    with pytest.raises(DatasetError, match=r"bad.jsonl, line 2"):
        full.load(path)
    path = tmp_path / "bad.md"
    path.write_bytes(b"# a\n\n\xff\n")
    with pytest.raises(DatasetError, match=r"bad.md, line 3: The file is not UTF-8"):
        full.load(path, format="markdown")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(memlab :schema 1 :lab", r"line 1, column 1: The text ends"),
        (
            '(memlab :schema 1 :lab "x")\n(memory :id 1 :text (hy.eval "1"))',
            r"line 2, column 22: hy.eval is a dotted name",
        ),
        (
            '(memlab :schema 1 :lab "x")\n(memory :id 1 :text (open "f"))',
            r"line 2, column 21: Data must be a number",
        ),
        ('(memlab :schema 1 :lab "x")\n(memory :id 1 :text #(1))', r"line 2, column 21"),
        (
            '(memlab :schema 1 :lab "x")\n(memory :id 1 :id 2)',
            r"line 2, column 15: :id occurs twice",
        ),
        ('(memlab :schema 1 :lab "x")\n(memory :id)', r"line 2, column 1: .* pairs"),
        ('(memlab :schema 1 :lab "x")\n\n(memory :id "one")', r"line 3, field id"),
        ('(memlab :schema 1 :lab "x") 7', "line 1, column 29: Expected a record such as"),
        ("(memlab :schema " + "(" * 200, "nest deeper"),
    ],
)
def test_an_s_expression_is_data_and_nothing_else(full, tmp_path, text, message):
    path = tmp_path / "bad.sexp"
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        full.load(path)
    assert len(full) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# only prose\n", "The file is empty"),
        ("```yaml memlab\nschema: 1\n", "line 1: The fence is not closed"),
        ("```yaml memlab\nschema: 1\nlab: x\n```\n", "line 3, column 1"),
        (
            "```yaml memlab\nschema: 1\nschema: 1\n```\n",
            "line 3, field schema: The field occurs twice",
        ),
        ("```yaml memlab\nschema\n```\n", "line 2: Expected a name, a colon and a value"),
        (
            '```yaml memlab\nschema: 1\nlab: "x"\n```\n```text memlab\na\n```\n',
            "line 5: A text must follow the fields",
        ),
        (
            '```yaml memlab\nschema: 1\nlab: "x"\n```\n```toml memlab\na\n```\n',
            "line 5: A fence must be yaml, text, escaped or json",
        ),
    ],
)
def test_a_page_whose_fences_are_broken_is_refused(full, tmp_path, text, message):
    path = tmp_path / "bad.md"
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        full.load(path, format="markdown")


@pytest.mark.long
def test_a_page_may_be_annotated_and_have_other_ends_of_lines(lab, tmp_path, trigrams, clock):
    lab.remember([{"text": "one\ntwo", "tags": ["a"]}, "three"])
    path = lab.io.export(tmp_path / "a.md")
    page = path.read_text().replace(
        "## 1", "A note of mine, `code` and all.\n\n```python\nprint(1)\n```\n\n## 1"
    )
    path.write_bytes(page.replace("\n", "\r\n").encode())
    with memlab.load(path, embedder=trigrams, clock=clock) as other:
        assert other.memories["text"].to_list() == ["one\ntwo", "three"]


def test_no_table_of_a_lab(full, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 junk PAR1")
    with pytest.raises(DatasetError, match="cannot be read as Parquet"):
        full.load(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(DatasetError, match='a column "table"'):
        full.load(path, format="parquet")
    pl.DataFrame({"table": ["memory"], "memory": [1]}).write_parquet(
        path, metadata={"memlab": "[]"}
    )
    with pytest.raises(DatasetError, match="field memory: Expected a struct"):
        full.load(path)
    about = json.dumps([{"memlab": {"schema": 1, "lab": "x"}}])
    row = pl.DataFrame({"table": ["memory"], "memory": [{"id": 1, "text": 7}]})
    row.write_parquet(path, metadata={"memlab": about})
    with pytest.raises(
        DatasetError, match="table memories, row 1, field text: Expected a text, not 7"
    ):
        full.load(path)


def test_a_register_that_is_none_is_refused(full, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(lines(HEADER, {"register": {"name": "spells", "dump": []}}))
    with pytest.raises(NewerLab, match='projection "spells"'):
        full.load(path)
    path.write_text(lines(HEADER, {"register": {"name": "purged", "dump": {"hashes": 7}}}))
    with pytest.raises(DatasetError, match='projection "purged" cannot be read'):
        full.load(path)


@pytest.mark.long
def test_a_memory_purged_here_is_not_imported_again(lab, tmp_path):
    lab.remember("my diagnosis is private")
    lab.remember("tabs")
    path = lab.io.export(tmp_path / "a.jsonl")
    lab.purge(1)
    report = lab.load(path)
    assert (report.count("purged"), report.count("known"), report.count("added")) == (1, 1, 0)
    path.write_text(
        path.read_text().replace(
            json.loads(path.read_text().splitlines()[0])["memlab"]["lab"], "elsewhere"
        )
    )
    report = lab.load(path)
    assert report.frame["what"].to_list() == ["purged", "added"]
    assert "diagnosis" not in str(lab.memories["text"].to_list())


@pytest.mark.long
def test_a_memory_purged_there_keeps_only_its_number(lab, tmp_path, trigrams, clock):
    lab.remember(["one", "zwölf", "three"])
    lab.graph.link(1, 3)
    lab.purge(2)
    path = lab.io.export(tmp_path / "a.jsonl")
    assert "zwölf" not in path.read_text()
    with memlab.load(path, embedder=trigrams, clock=clock) as other:
        assert other.memories.drop("origin").equals(lab.memories.drop("origin"))
        assert other[3].text == "three"
        assert other.io.store.state.projections["purged"].is_purged("zwölf")
    with memlab.open(embedder=trigrams, clock=clock) as other:
        other.remember("zero")
        other.load(path)
        assert other.memories["text"].to_list() == ["zero", "one", "three"]


def test_secrets_are_redacted_in_texts_and_refused_in_names(lab, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(lines(HEADER, memory(text="the password is 'hunter2!'")))
    report = lab.load(path)
    assert lab[1].text == "the password is '[REDACTED: password]'"
    assert [id for id, _ in report.redacted] == [1]
    path.write_text(lines(HEADER, memory(2), memory(3, project="ghp_" + "a1" * 20)))
    with pytest.raises(PrivacyError, match=r"a.jsonl, line 3: .*field project holds .* secret"):
        lab.load(path)
    assert len(lab) == 1


@pytest.mark.long
def test_paths_and_formats(lab, tmp_path):
    lab.remember("tabs")
    with pytest.raises(memlab.InputError, match="names no format"):
        lab.io.export(tmp_path / "lab.txt")
    with pytest.raises(UnknownName, match="Did you mean markdown"):
        lab.io.export(tmp_path / "lab", format="markdwn")
    path = lab.io.export(tmp_path / "deep" / "er" / "lab.md")
    with pytest.raises(memlab.InputError, match="overwrite=True"):
        lab.io.export(path)
    assert lab.io.export(path, overwrite=True) == path
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "mine.txt").write_text("mine")
    with pytest.raises(memlab.InputError, match="with other files"):
        lab.io.export(tmp_path / "things", format="parquet", overwrite=True)
    folder = lab.io.export(tmp_path / "tables", format="parquet")
    assert sorted(item.name for item in folder.iterdir()) == [
        "edges.parquet",
        "events.parquet",
        "manifest.json",
        "memories.parquet",
    ]
    assert pl.read_parquet(folder / "events.parquet")["kind"].to_list() == [
        "embedder",
        "use",
        "remember",
    ]
    lab.io.export(folder, format="parquet", overwrite=True)
    assert not [item for item in tmp_path.iterdir() if item.name.startswith(".")]
    with pytest.raises(memlab.InputError, match="There is nothing at"):
        lab.load(tmp_path / "nowhere.md")
    with pytest.raises(UnknownName, match="no format"):
        lab.load(path, format="xml")
    with pytest.raises(
        DatasetError, match=r"contains no export .* mine.txt: no speakers were found"
    ):
        lab.load(tmp_path / "things")
    with pytest.raises(memlab.InputError, match="true or false for each memory"):
        lab.io.export(tmp_path / "x.md", where=pl.col("text"))
    with pytest.raises(memlab.InputError, match="cannot be evaluated"):
        lab.io.export(tmp_path / "x.md", where=pl.col("colour") == "red")


def test_a_failed_export_leaves_what_was_there(lab, tmp_path, monkeypatch):
    lab.remember("tabs")
    path = lab.io.export(tmp_path / "a.jsonl")
    before = path.read_bytes()

    def full_disk(bundle):
        yield next(export_records(bundle))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jsonl, "export_records", full_disk)
    with pytest.raises(memlab.LabError, match="the disk is full"):
        lab.io.export(path, overwrite=True)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.long
def test_a_parquet_file_that_was_changed_anywhere_is_read_or_refused(lab, tmp_path):
    """Polars answers some of them with a panic, which is no Exception."""
    lab.remember(["tabs", "spaces"])
    whole = lab.io.export(tmp_path / "whole.parquet").read_bytes()
    dice = random.Random(20261122)
    for number in range(60):
        changed = bytearray(whole)
        for _ in range(dice.choice((1, 2, 8))):
            place = dice.randrange(len(changed))
            if number % 2:
                changed[place] ^= 1 << dice.randrange(8)
            else:
                del changed[place : place + dice.randrange(1, 32)]
        (tmp_path / "changed.parquet").write_bytes(changed)
        before = len(lab)
        try:
            lab.load(tmp_path / "changed.parquet", format="parquet")
        except memlab.MemlabError:
            assert len(lab) == before
