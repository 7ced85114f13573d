"""A lab's sealed slates: a kill loses nothing, damage is told, copies have them, and what was thinned is refused."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab.errors import DamageWarning, InputError
from memlab.kernel.slates import read_slates
from memlab.kernel.slates._slate import same_slates

SAID = ["goat by the sea", "a bakery", "six tabs", "the goat sleeps", "bread and salt"]
QUERIES = ["goat", "bakery", "tabs", "sea", "bread", "salt", "sleeps"]


def ask(lab, queries=QUERIES):
    for number, query in enumerate(queries):
        lab.feedback(lab.recall(query, limit=2)[0], ("success", "fail")[number % 2])


def tables(lab):
    slates = lab.slates()
    return [
        getattr(slates, name).collect()
        for name in ("decisions", "candidates", "exposures", "feedback")
    ]


def alike(first, second):
    return all(a.equals(b) for a, b in zip(first, second, strict=True))


@pytest.fixture
def folder(disk, tmp_path):
    """Return a closed lab of seven recalls, none of them sealed."""
    with disk() as lab:
        lab.remember(SAID)
        ask(lab)
    return tmp_path / "agent.memlab"


def change(folder, statement):
    """Change the database behind memlab's back."""
    with closing(sqlite3.connect(folder / "journal.db")) as database, database:
        assert database.execute(statement).rowcount


@pytest.mark.long
def test_sealed_or_not_the_tables_and_the_slates_are_the_same(disk, folder):
    with disk() as lab:
        before, slates = tables(lab), list(read_slates(lab.io.store.journal))
        assert lab.io.store.seal(every=3) == 6
        assert alike(tables(lab), before)
        assert all(
            same_slates(slate, two)
            for slate, two in zip(slates, read_slates(lab.io.store.journal), strict=True)
        )
        assert lab.recall("goat", log=False).ids
        ask(lab, ["goat", "salt"])
        assert lab.io.store.seal(every=3) == 3
    with disk(read_only=True) as lab:
        assert all(
            new.head(old.height).equals(old) for new, old in zip(tables(lab), before, strict=True)
        )
        assert len(lab.io.store.journal.segments()) == 3


@pytest.mark.long
def test_estimates_are_the_same_to_the_last_digit(disk, folder):
    def concluded(lab):
        evaluation = memlab.evaluate(
            lab.slates(), ["memlab", pl.col("similarity")], missing="censor", cluster="decision"
        )
        return repr(evaluation.to_dict())

    with disk() as lab:
        ask(lab, QUERIES * 6)
        before = concluded(lab)
        lab.io.store.seal(every=10)
        assert concluded(lab) == before


@pytest.mark.long
def test_the_digest_is_in_the_hash_chain_and_the_journal_keeps_no_copy(disk, folder):
    with disk() as lab:
        lab.io.store.seal(every=7)
        (event,) = lab.io.store.journal.events(kinds=("seal",))
        assert event.body["recalls"] == 7
        assert len(event.body["digest"]) == 64
        assert max(len(blob) for _, blob in lab.io.store.journal.slates()) < 500


def test_a_lab_in_memory_keeps_its_slates():
    with memlab.open() as lab:
        lab.remember(SAID)
        lab.recall("goat")
        assert lab.io.store.seal(every=1) == 0


@pytest.mark.long
def test_sealed_recalls_are_repeated_explained_and_visible_to_their_viewer(disk, folder):
    with disk() as lab:
        hits = lab.recall("goat", viewer="ana")
        own, pack = tables(lab.at(viewer="ana")), memlab.load_pack("workbench")
        again = lab.policies.recall_again({"decision": hits.decision}, pack)
        lab.io.store.seal(every=2)
        assert alike(tables(lab.at(viewer="ana")), own)
        assert own[0].height == 1
        assert lab.policies.recall_again({"decision": hits.decision}, pack).equals(again)


# -- kills ----------------------------------------------------------------------------------------------------------

SEALING = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import memlab
from embedders import letters
lab = memlab.open({path!r}, embedder=letters, clock=memlab.ManualClock("2026-03-01T12:00:00"))
left = [{step}]
def count(frame, event, function):
    if event == "c_call" and function.__name__ in ("execute", "executemany", "pwrite", "fsync"):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(count)
{act}
sys.setprofile(None)
os._exit(0)
"""


def killed_at(folder, step, act):
    """Let a process that does it be killed at its ``step``-th call of the database or the disk; whether it was."""
    code = SEALING.format(tests=str(Path(__file__).parent), path=str(folder), step=step, act=act)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


ACTS = {"seal": "lab.io.store.seal(every=3)", "thin": "lab.upkeep.thin(full_days=1, consent=True)"}


@pytest.mark.long
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    "first", [8, *(pytest.param(first, marks=pytest.mark.slow) for first in (1, 2, 3, 4, 5, 6, 7))]
)
def test_killed_anywhere_nothing_is_lost(disk, clock, folder, tmp_path, act, first):
    clock.set(clock.now + 3 * 86_400_000_000)
    with disk() as lab:
        whole = tables(lab)
        if act == "thin":
            lab.io.store.seal(every=3)
    killed = 0
    for step in range(first, 90, 8):
        copy = tmp_path / "copy.memlab"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        if not killed_at(copy, step, ACTS[act]):
            break
        killed += 1
        with memlab.open(copy, embedder=lab.io.embedder, clock=clock) as again:
            contents = tables(again)
            assert [frame.height for frame in contents] == [frame.height for frame in whole]
            assert contents[2].equals(whole[2])
            if act == "seal":
                assert alike(contents, whole)
        assert memlab.check(copy).sound
    assert killed


# -- damage, backups and copies -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE segment SET data = x'00' WHERE name = 'similarity'",
        "DELETE FROM segment WHERE name = 'similarity'",
        "DELETE FROM segment WHERE name = ''",
        "DELETE FROM segment",
    ],
)
def test_a_damaged_segment_is_told_and_the_lab_still_opens(disk, folder, harm):
    with disk() as lab:
        lab.io.store.seal(every=3)
        whole = tables(lab)
        first = next(iter(lab.io.store.journal.segments()))
    change(folder, f"{harm} {'AND' if 'WHERE' in harm else 'WHERE'} upto = {first}")
    with disk() as lab:
        with pytest.warns(DamageWarning, match="slates are lost"):
            contents = tables(lab)
        assert contents[0].height == 4
        assert alike(contents, [frame.filter(pl.col("decision") > first) for frame in whole])
        with pytest.warns(DamageWarning):
            assert "slates are lost" in repr(lab.slates())
        assert lab.recall("goat").ids
        assert lab[1].text == SAID[0]
    checked = memlab.check(folder)
    assert not checked.sound
    assert (
        f"sealed slates up to event {first}"
        in checked.frame.filter(state="damaged")["part"].to_list()
    )


@pytest.mark.long
def test_a_damaged_segment_comes_from_a_backup(disk, folder):
    with disk() as lab:
        lab.io.store.seal(every=3)
        lab.io.backup()
        whole = tables(lab)
    change(folder, "DELETE FROM segment WHERE name IN ('similarity', 'score')")
    change(folder, "UPDATE segment SET data = x'00' WHERE name = 'rank'")
    checked = memlab.check(folder)
    assert checked.sound
    assert "repaired" in checked.frame["state"].to_list()
    with disk() as lab:
        assert alike(tables(lab), whole)


@pytest.mark.long
def test_a_restored_backup_has_what_was_sealed(disk, folder):
    with disk() as lab:
        lab.io.store.seal(every=7)
        whole = tables(lab)
        lab.io.backup()
    (folder / "journal.db").write_bytes(b"gone")
    memlab.restore(folder)
    with disk() as lab:
        assert alike(tables(lab), whole)


@pytest.mark.long
def test_slates_sealed_by_earlier_versions_are_a_cache_that_is_removed(disk, folder):
    (folder / "slates" / "slates-000000000000-000000000003").mkdir(parents=True)
    with disk() as lab:
        assert tables(lab)[0].height == 7
    assert not (folder / "slates").exists()


@pytest.mark.long
def test_a_purge_changes_the_question_and_no_segment(disk, folder):
    with disk() as lab:
        lab.recall("goat by the sea, six tabs")
        lab.io.store.seal(every=8)
        before = tables(lab)
        digests = lab.io.store.journal.segments()
        done = lab.purge(1)
        assert done.slates == done.questions == 1
        assert lab.io.store.journal.segments() == digests
        after = tables(lab)
        assert all(item.equals(two) for item, two in zip(before[1:], after[1:], strict=True))
        assert after[0]["query"].to_list()[:7] == before[0]["query"].to_list()[:7]
        assert after[0]["query"].to_list()[-1] == ""
        assert done.found.is_empty()
    assert memlab.check(folder).sound


# -- thinning -------------------------------------------------------------------------------------------------------


@pytest.fixture
def old(disk, folder, clock):
    """Return an open lab with 42 recalls, the 40 older ones sealed."""
    with disk() as lab:
        ask(lab, QUERIES * 5)
        lab.io.store.seal(every=10)
        clock.set(clock.now + 10 * 86_400_000_000)
        yield lab


@pytest.mark.long
def test_nothing_is_thinned_without_consent(old):
    head, before = old.io.store.journal.head, tables(old)
    plan = old.upkeep.thin(full_days=5)
    assert (len(plan), plan.done, old.io.store.journal.head) == (4, False, head)
    assert plan.frame["recalls"].to_list() == [10] * 4
    assert plan.bytes > 10_000
    (ends,) = plan.ends
    assert "the 40 recalls from" in ends
    assert "consent=True" in repr(plan)
    assert alike(tables(old), before)
    assert len(old.upkeep.thin(full_days=20)) == len(old.upkeep.thin()) == 0
    with pytest.raises(InputError, match="dropped after 2 days"):
        old.upkeep.thin(full_days=5, thin_days=2)


@pytest.mark.long
def test_a_lab_says_how_long_it_keeps_its_log(old, disk):
    assert old.upkeep.log_days() == {"full_days": 0, "thin_days": 0}
    assert old.upkeep.log_days(full_days=5) == {"full_days": 5, "thin_days": 0}
    assert len(old.upkeep.thin()) == 4
    with pytest.raises(InputError, match="dropped after 2 days"):
        old.upkeep.log_days(thin_days=2)
    assert old.upkeep.log_days(thin_days=9)["full_days"] == 5
    assert old.upkeep.thin().frame["act"].unique().to_list() == ["drop"]


@pytest.mark.long
def test_a_thinned_log_is_refused_by_name(old, folder):
    policies = {"by score": pl.col("score"), "same": "memlab"}
    before = memlab.evaluate(
        old.slates(), policies["by score"], missing="censor", cluster="decision"
    )
    whole = tables(old)
    done = old.upkeep.thin(full_days=5, consent=True)
    assert done.done
    contents = tables(old)
    assert contents[2].equals(whole[2])
    assert contents[3].equals(whole[3])
    after = memlab.evaluate(
        old.slates(), policies["by score"], missing="censor", cluster="decision"
    )
    assert [repr(item.to_dict()["policies"]) for item in (after,)] == [
        repr(item.to_dict()["policies"]) for item in (before,)
    ]
    refused = memlab.evaluate(
        old.slates(),
        {"kept": pl.col("score"), "gone": pl.col("similarity")},
        missing="censor",
        cluster="decision",
    )
    assert "lab.upkeep.thin" in repr(refused)
    assert "similarity" in repr(refused)
    with pytest.raises(InputError, match=r"lab\.upkeep\.thin"):
        memlab.evaluate(old.slates(), pl.col("score"), missing="inverse", cluster="decision")
    again = memlab.evaluate(old.slates(), "memlab", missing="censor", cluster="decision")
    assert "memlab" in repr(again)
    assert "thinned" in repr(old.slates())
    assert memlab.check(folder).sound
    assert len(old.upkeep.thin(full_days=5)) == 0


@pytest.mark.long
def test_dropped_recalls_leave_the_log(old, folder, disk):
    first = list(old.io.store.journal.segments())
    plan = old.upkeep.thin(full_days=3, thin_days=5)
    assert plan.frame["act"].unique().to_list() == ["drop"]
    assert "Nothing can be evaluated" in plan.ends[0]
    old.upkeep.thin(thin_days=5, consent=True)
    decisions, _, exposures, feedback = tables(old)
    assert decisions.height == 2
    assert min(*decisions["decision"], *exposures["decision"], *feedback["decision"]) > first[-1]
    assert "dropped" in repr(old.slates())
    assert memlab.check(folder).sound
    assert old.purge(2).ids == (2,)
    assert memlab.check(folder).sound


@pytest.mark.long
def test_usage_says_who_takes_the_space(old, run, folder):
    used = old.upkeep.usage()
    rows = dict(used.frame.select("what", "count").iter_rows())
    assert rows["sealed slates: features"] == 4
    assert rows["questions of sealed slates"] == 40
    assert rows["slates"] == 2
    assert used.total == pytest.approx(
        sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), rel=0.3
    )
    assert "bytes" in repr(used)


@pytest.mark.long
def test_the_command_line_says_so_too(run):
    run("remember", "agent.memlab", "goat by the sea")
    used = run("upkeep", "du", "agent.memlab")
    assert used.exit_code == 0, used.output
    assert "texts (1)" in used.output
    thinned = run("upkeep", "thin", "agent.memlab", "--full-days", "30")
    assert "nothing to thin" in thinned.output
    assert run("upkeep", "thin", "agent.memlab", "--full-days", "30", "--consent").exit_code == 0
