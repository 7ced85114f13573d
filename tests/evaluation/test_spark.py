"""The lines for Spark of ``docs/howto/evaluate-large-logs.md``, on a local session; skipped without pyspark."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import memlab
from memlab.science.evaluation import Sums, partial

# Spark warns of versions of pandas later than its own.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
PAGE = Path(__file__).parents[2] / "docs/howto/evaluate-large-logs.md"
COLUMNS = {
    "decision": "query_id",
    "item": "memory_id",
    "shown": "rank",
    "reward": "clicked",
    "propensity": "p",
    "limit": 3,
}
POLICIES = ["old_score", "new_score"]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.mark.parametrize("recalls", [418, 3])
def test_the_lines_of_the_page_give_the_bits_of_one_process(
    spark: Any, tmp_path: Path, recalls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.read_parquet(memlab.examples.LOG)
    frame = frame.filter(pl.col("query_id").rank("dense") <= recalls)
    (tmp_path / "log").mkdir()
    for code in range(4):
        frame.filter(pl.col("query_id") % 4 == code).write_parquet(tmp_path / f"log/{code}.parquet")
    monkeypatch.chdir(tmp_path)
    (lines,) = re.findall(r"### Spark\n.*?```py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    # Three recalls leave most of the partitions empty.
    space: dict[str, Any] = {
        "spark": spark,
        "columns": COLUMNS,
        "policies": POLICIES,
        "partial": partial,
        "Sums": Sums,
    }
    for before, after in {'"log"': repr(str(tmp_path / "log")), "(100,": "(8,"}.items():
        assert before in lines
        lines = lines.replace(before, after)
    exec(lines, space)
    assert len(space["rows"]) == 8
    here = memlab.evaluate("log", POLICIES, columns=COLUMNS, missing="zero")
    assert space["evaluation"].frame.equals(here.frame)
    assert space["evaluation"].frame.height == 2
