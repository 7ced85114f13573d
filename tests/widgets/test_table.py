"""The Python half of the memory table: filters, searches, pages, corrections, and what is read back."""

import polars as pl
import pytest

import memlab
from memlab.ui.widgets import MemoryMap, MemoryTable
from tests.displays import page_of
from tests.widgets.shared import shared

ALL = {"filters": {}, "search": "", "by": "word", "sort": []}


@pytest.fixture
def table(asked):
    return MemoryTable(asked)


def shown(table):
    return table.frame["id"].to_list()


def bars(table, frame_of, column):
    return {
        one["value"]: (one["all"], one["shown"])
        for one in frame_of(shared(table, "bars")).filter(column=column).to_dicts()
    }


@pytest.fixture
def frame_of():
    import io

    return lambda given: pl.read_ipc_stream(io.BytesIO(given))


def test_all_rows_are_shown_the_newest_first(table, ask):
    assert shown(table) == [6, 5, 4, 3, 2, 1]
    page = ask(table, "page", start=1, count=2)["rows"]
    assert page["id"].to_list() == [5, 4]
    assert set(page.columns) >= {
        "text",
        "kind",
        "status",
        "speaker",
        "created",
        "pinned",
        "conflict",
    }


def test_a_filter_narrows_the_rows_and_the_bars_of_all_other_heads(table, frame_of):
    table.filters = {"kind": ["convention"]}
    assert shown(table) == [6, 2]
    assert bars(table, frame_of, "kind") == {
        "fact": (3, 3),
        "convention": (2, 2),
        "preference": (1, 1),
    }
    assert bars(table, frame_of, "speaker") == {"Ada": (6, 2)}


def test_the_selection_is_an_expression_over_memories(table, asked):
    table.filters = {
        "kind": ["convention", "preference"],
        "created": ["2026-01-01", None],
        "access": [0, 1],
    }
    assert (
        sorted(shown(table))
        == sorted(asked.memories.filter(table.selection)["id"].to_list())
        == [1, 2, 6]
    )
    table.ids = [2]
    assert asked.memories.filter(table.selection)["id"].to_list() == [2]
    table.ids, table.filters = [], {}
    assert asked.memories.filter(table.selection).height == 6


def test_none_stands_for_what_has_no_word(table, asked):
    asked.remember("Nobody said this", project="web")
    table.filters = {"speaker": [None]}
    assert shown(table) == [7]


def test_a_search_by_word_wants_all_words_in_any_case(table):
    table.search = "TABS prefers"
    assert shown(table) == [1]
    table.search = "<b>"
    assert shown(table) == [3]
    table.search = "(["
    assert (shown(table), table.fault) == ([], "")


@pytest.mark.long
def test_a_search_by_meaning_is_not_logged_and_has_the_best_first(table, asked, ask):
    before = asked.log.height
    ask(table, "show", **{**ALL, "search": "when do deploys go out?", "by": "meaning"})
    assert shown(table)[0] == 2
    assert asked.log.height == before
    ask(table, "show", **{**ALL, "search": "1", "by": "like"})
    assert shown(table)[0] == 1


def test_rows_are_sorted_by_any_column(table):
    table.sort = ["text", False]
    assert table.frame["text"].to_list() == sorted(table.frame["text"].to_list())
    table.sort = ["id", True]
    assert shown(table) == [6, 5, 4, 3, 2, 1]


def test_pages_follow_what_is_written_elsewhere(table, asked, ask):
    new = asked.remember("Written meanwhile")
    assert ask(table, "page", start=0, count=1)["rows"]["id"].to_list() == [new.id]
    assert shared(table, "about")["memories"] == 7


@pytest.mark.long
def test_a_text_is_corrected_by_one_that_supersedes_it(table, asked, ask):
    new = ask(table, "edit", memory=2, text="Deploys go out on Wednesdays")["memory"]
    assert asked[new].text == "Deploys go out on Wednesdays"
    assert asked[2].superseded_by == new
    found = ask(table, "memory", memory=new)
    assert found["conflicts"].select("id", "how", "outgoing").rows() == [(2, "supersedes", True)]
    assert ["provenance", "user-corrected"] in found["fields"]


@pytest.mark.long
def test_forget_restore_pin_and_wrong_are_verbs_of_the_lab(table, asked, ask, frame_of):
    assert ask(table, "forget", memories=[1, 2]) == {"ids": [1, 2]}
    assert bars(table, frame_of, "status") == {"active": (4, 4), "forgotten": (2, 2)}
    assert ask(table, "restore", memories=1) == {"ids": [1]}
    assert asked[1].status == "active"
    ask(table, "pin", memory=1, pinned=True)
    assert ask(table, "memory", memory=1)["pinned"]
    ask(table, "wrong", memories=[3], reason="made up")
    assert asked[3].status == "deprecated"
    events = ask(table, "history", memory=3)["events"]
    assert "made up" in events["what"][0]
    assert events["kind"].to_list()[-1] == "remember"


@pytest.mark.long
def test_conflicts_in_use_can_be_filtered(table, asked, ask):
    asked.graph.link(1, 5, "contradicts")
    ask(table, "show", **{**ALL, "filters": {"conflict": [True]}})
    assert shown(table) == [5, 1]
    ask(table, "forget", memories=5)
    assert (shown(table), shared(table, "about")["conflicts"]) == ([], 0)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"knd": ["fact"]}, 'no column to filter "knd". Did you mean kind?'),
        ({"kind": "fact"}, "must be a list"),
        ({"kind": [3]}, "a list of words"),
        ({"access": [1]}, "[low, high]"),
        ({"access": ["a", "b"]}, "must be a number"),
        ({"created": ["yesterday", None]}, "yesterday"),
    ],
)
def test_a_filter_that_cannot_be_is_said_and_the_widget_goes_on(table, filters, said, ask):
    assert said in ask(table, "show", **{**ALL, "filters": filters})
    assert table.filters == {}
    table.filters = filters
    assert said in table.fault
    table.filters = {}
    assert (table.fault, len(shown(table))) == ("", 6)


def test_searches_and_orders_that_cannot_be_are_said(table, ask):
    assert "number of a memory" in ask(table, "show", **{**ALL, "search": "x", "by": "like"})
    assert "way to search" in ask(table, "show", **{**ALL, "search": "x", "by": "luck"})
    assert "no order" in ask(table, "show", **{**ALL, "sort": ["size", True]})
    assert "99" in ask(table, "memory", memory=99)


def test_an_empty_lab_has_no_rows_and_no_fault(lab, ask):
    empty = MemoryTable(lab)
    assert (empty.frame.height, empty.fault) == (0, "")
    ask(empty, "show", **{**ALL, "search": "anything", "by": "meaning"})
    assert (empty.frame.height, empty.fault) == (0, "")


def test_a_lab_closed_under_it_is_said(table, asked, ask):
    asked.close()
    assert "was closed" in ask(table, "show", **ALL)
    table.search = "x"
    assert "was closed" in table.fault


@pytest.mark.long
def test_two_tables_on_one_lab_show_what_the_other_wrote(table, asked, ask):
    other = MemoryTable(asked)
    ask(other, "forget", memories=[1])
    table.filters = {"status": ["forgotten"]}
    assert shown(table) == [1]
    assert other.filters == {}


@pytest.mark.long
def test_a_selection_goes_from_the_map_to_the_table_and_back(table, asked):
    chart = MemoryMap(asked)
    table.link(chart)
    chart.ids = [2, 5]
    assert (table.ids, sorted(shown(table))) == ([2, 5], [2, 5])
    table.ids = [2]
    assert chart.ids == [2]
    assert sorted(shown(table)) == [2, 5]


def test_what_another_keeps_private_is_not_in_the_table(lab):
    lab.remember("A secret wish", creator="user:ada", visibility="private")
    lab.remember("Known to all")
    assert MemoryTable(lab.at(viewer="user:bob")).frame["text"].to_list() == ["Known to all"]


def test_a_page_without_python_has_rows_as_text(table):
    assert "&lt;img src=x" in page_of(table)


@pytest.mark.long
def test_an_export_has_the_selected_rows_in_parts_that_load_reads(
    asked, ask, tmp_path, monkeypatch
):
    monkeypatch.setattr("memlab.ui.widgets._table._PART", 10_000)
    for _ in range(2):
        long = asked.remember("tide " + "-" * 9_900)
    asked.remember("The last")
    table = MemoryTable(asked)
    table.ids = [2, long.id - 1, long.id, long.id + 1]
    parts, start = [], 0
    while start is not None:
        part = ask(table, "export", start=start)
        parts.append(part["lines"])
        start = part["next"]
    assert [len(part.splitlines()) for part in parts] == [3, 1]
    path = tmp_path / "memories.jsonl"
    path.write_text("".join(parts), encoding="utf-8")
    again = memlab.open()
    again.load(path, progress=False)
    assert sorted(again.memories["text"]) == sorted(asked[memory].text for memory in table.ids)
    table.ids = []
    assert ask(table, "export", start=0) == {"lines": "", "next": None}
