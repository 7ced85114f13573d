"""Lineage: where a pack came from, through packs, events, histories and reopened labs."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, PrivacyError
from memlab.kernel.policies import Pack, as_pack
from memlab.subjects.lab import Lab

TEXT = """(pack bred "A bred pack." :inherits memlab)
(defpolicy recall-score [similarity recency] (+ similarity (* 0.2 recency)))"""
LINEAGE = memlab.Lineage(("a" * 64, "b" * 64), "crossover", "c" * 64)


def bred() -> Pack:
    return replace(as_pack(TEXT, lambda: memlab.load_pack("memlab")), lineage=LINEAGE)


def latest(lab: Lab, slot: str = "recall-score") -> tuple[object, ...]:
    return lab.policies.history(slot).select("parents", "operator", "evidence").row(-1)


STORED = (list(LINEAGE.parents), LINEAGE.operator, LINEAGE.evidence)


@pytest.mark.long
def test_a_lineage_is_no_part_of_hash_and_equality() -> None:
    pack = bred()
    assert pack == replace(pack, lineage=None)
    assert pack.hash == replace(pack, lineage=None).hash
    assert pickle.loads(pickle.dumps(pack)).lineage == LINEAGE
    policy = memlab.load_pack("actr").policies["recall-score"]
    assert pack.with_policy("recall-score", policy).lineage == LINEAGE


def test_use_stores_the_lineage(tmp_path: Path) -> None:
    lab = memlab.open(tmp_path / "a.memlab")
    assert latest(lab) == (None, None, None)
    lab.policies.use(bred(), compare=0)
    assert latest(lab) == STORED
    history = lab.policies.history().filter(pl.col("operator") == "crossover")
    assert set(history["slot"]) == {"recall-score", "known"}
    assert lab.policies.pack.lineage == LINEAGE
    lab.close()
    lab = memlab.open(tmp_path / "a.memlab")
    assert (latest(lab), lab.policies.pack.lineage) == (STORED, LINEAGE)


def test_the_active_pack_gets_a_lineage(tmp_path: Path) -> None:
    lab = memlab.open(tmp_path / "a.memlab")
    active = lab.policies.pack
    rows = lab.policies.history().height
    lab.policies.use(active, compare=0)
    assert lab.policies.history().height == rows  # Nothing changed.
    lab.policies.use(replace(active, lineage=LINEAGE), reason="with its lineage", compare=0)
    lab.close()
    lab = memlab.open(tmp_path / "a.memlab")
    assert (lab.policies.pack.hash, lab.policies.pack.lineage) == (active.hash, LINEAGE)
    assert latest(lab) == STORED
    history = lab.policies.history()
    assert history.filter(reason="with its lineage")["slot"].to_list() == list(lab.policies)
    assert history.filter("live").height == len(lab.policies)
    assert history.filter("live")["version"].unique().to_list() == [1]
    before = lab.policies.history("recall-score").row(0, named=True)
    assert (before["operator"], before["live"]) == (None, False)


def test_evidence_alone_is_stored(tmp_path: Path) -> None:
    lineage = memlab.Lineage((), "", "e" * 64)
    with memlab.open(tmp_path / "a.memlab") as lab:
        lab.policies.use(replace(memlab.load_pack("companion"), lineage=lineage))
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.policies.pack.lineage == lineage


def test_policies_on_top_of_a_text_keep_the_lineage() -> None:
    lab = memlab.open()
    policy = memlab.load_pack("actr").policies["recall-score"]
    lab.policies.use(bred().with_policy("recall-score", policy), compare=0)
    assert lab.policies["recall-score"].hash == policy.hash
    assert latest(lab) == STORED


def test_install_stores_the_lineage_of_a_pack_and_a_rollback_returns_it() -> None:
    lab = memlab.open()
    version = lab.policies.install("recall-score", bred(), compare=0)
    assert version.lineage == LINEAGE
    assert latest(lab) == STORED
    lab.policies.install("recall-score", "(fn [similarity] similarity)", compare=0)
    assert latest(lab) == (None, None, None)
    lab.policies.rollback("recall-score")
    assert latest(lab) == STORED
    lab.policies.use("memlab", compare=0)
    lab.policies.rollback()
    assert lab.policies.pack.lineage == LINEAGE


def test_a_challenge_keeps_the_lineage(tmp_path: Path) -> None:
    lab = memlab.open(tmp_path / "a.memlab")
    lab.challenge(bred())
    lab.close()
    [challenge] = memlab.open(tmp_path / "a.memlab").policies.challenges
    assert challenge.pack.lineage == LINEAGE


@pytest.mark.parametrize(
    "fields",
    [
        ("abc",),
        (("a",) * 101,),
        ((1,),),
        (("a",), b"mutate"),
        (("a",), "x" * 101),
        ((), "", None),
        ((), "\ud800"),
    ],
)
def test_lineages_that_are_no_texts_are_refused(fields: tuple[object, ...]) -> None:
    with pytest.raises(InputError, match="lineage"):
        memlab.Lineage(*fields)  # type: ignore[arg-type]


def test_a_secret_in_the_name_of_an_operator_is_refused() -> None:
    lab = memlab.open()
    secret = memlab.Lineage((), "ghp_" + "a1B2" * 9)
    with pytest.raises(PrivacyError, match="operator"):
        lab.policies.use(replace(bred(), lineage=secret), compare=0)
    assert lab.policies.pack.name == "memlab"
