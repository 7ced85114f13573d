"""Upkeep and consolidation from the command line."""

import pytest

import memlab

pytestmark = pytest.mark.long


@pytest.fixture
def old(run):
    clock = memlab.ManualClock("2020-01-01T00:00:00")
    rows = [f"The goat on meadow {n} wants hay and salt" for n in range(9)]
    rows += [f"Deploy {n} ships the release to staging" for n in range(9)]
    with memlab.open("a.memlab", clock=clock) as lab:
        lab.remember([{"text": text, "kind": "observation", "project": "farm"} for text in rows])
        lab.remember("Ships at noon", ttl_days=3)
    return "a.memlab"


def test_upkeep_tells_what_changed_and_then_nothing(json_of, run, old):
    first = json_of("upkeep", "maintain", old, "--at", "2020-01-10")
    assert {"what": "status", "from": "active", "to": "expired", "memories": 1} in first["changes"]
    assert (first["at"], first["pack"], len(first["events"])) == (
        "2020-01-10T00:00:00+00:00",
        "memlab",
        1,
    )
    assert json_of("upkeep", "maintain", old, "--at", "2020-01-10")["events"] == []
    assert "nothing changed" in run("upkeep", "maintain", old, "--at", "2020-01-10").output


def test_consolidation_there_and_back(json_of, run, old):
    before = json_of("show", old)
    dry = json_of("upkeep", "consolidate", old, "--dry-run")
    assert (dry["dry_run"], dry["event"], {summary["summary"] for summary in dry["summaries"]}) == (
        True,
        None,
        {None},
    )
    assert "would become" in run("upkeep", "consolidate", old, "--dry-run").output
    assert json_of("show", old) == before
    summaries = json_of("upkeep", "consolidate", old)["summaries"]
    assert [item["members"] for item in summaries] == [
        summary["members"] for summary in dry["summaries"]
    ]
    assert {json_of("show", old, id)["status"] for id in summaries[0]["members"]} == {
        "consolidated"
    }
    json_of("restore", old, summaries[0]["summary"])
    assert json_of("show", old, summaries[0]["summary"])["status"] == "forgotten"
    assert {json_of("show", old, id)["status"] for id in summaries[0]["members"]} == {"active"}
    assert (
        "0 memories" in run("upkeep", "consolidate", old, "--project", "farm", "--keep", 100).output
    )


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("consolidate", "a.memlab", "--keep", "-1"), 1, "keep is a whole number"),
        (("consolidate", "a.memlab", "--project", "frm"), 1, "farm"),
        (("consolidate", "a.memlab", "--by", "age"), 2, "communities"),
        (("unconsolidate", "a.memlab", "99"), 1, "There is no memory"),
        (("maintain", "a.memlab", "--at", "soon"), 1, "soon"),
        (("maintain", "no.memlab"), 1, "There is no lab"),
    ],
)
def test_a_refusal_is_one_line_with_a_reason(run, old, words, status, message):
    result = run(*words)
    assert result.exit_code == status
    assert message in result.output
