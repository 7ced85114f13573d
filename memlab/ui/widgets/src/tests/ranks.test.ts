/** Unit tests of moves between ranks, of sliders, and of the charts above the columns of the table. */
import assert from "node:assert/strict";
import test from "node:test";
import { direction, type Move, summarizeMoves } from "../ranks/moves";
import { sliderRange } from "../studio/sliders";
import { findEnds, formatEdge, short } from "../table/heads";

function move(rank_before: number | null, rank_after: number | null): Move {
  return {
    question: 0,
    memory_id: 1,
    rank_before,
    rank_after,
    score_before: null,
    score_after: null,
    text: "",
    kind: "",
    wanted: false,
  };
}

test("a memory without a rank is below all others", () => {
  assert.equal(direction(move(3, 1)), "up");
  assert.equal(direction(move(1, 3)), "down");
  assert.equal(direction(move(2, 2)), "level");
  assert.equal(direction(move(null, 4)), "up");
  assert.equal(direction(move(4, null)), "down");
});

test("moves of all queries are summed", () => {
  const sums = [
    { question: "a", pairs: 30, of: 200, new: 3 },
    { question: "b", pairs: 8, of: 250, new: 0 },
  ];
  assert.equal(summarizeMoves(sums), "38 of 450 pairs reordered · 3 new in the top 5 of 1 query");
  assert.equal(summarizeMoves([{ ...sums[0]!, pairs: 0, new: 0 }]), "Same order in 1 query");
});

test("a slider without bounds keeps its first range while the value fits", () => {
  const ranges = new Map<string, [number, number]>();
  const param = { name: "weight", value: 0.3, low: null, high: null, places: [] };
  assert.deepEqual(sliderRange(param, ranges), [0, 1]);
  assert.deepEqual(sliderRange({ ...param, value: 0.01 }, ranges), [0, 1]);
  assert.deepEqual(sliderRange({ ...param, value: 3 }, ranges), [0, 10]);
  assert.deepEqual(sliderRange({ ...param, low: -1, high: 2 }, ranges), [-1, 2]);
});

test("a filter selects the edges nearest to its bounds", () => {
  const edges = [0, 10, 20, 30];
  assert.deepEqual(findEnds(undefined, edges, false), [0, 3]);
  assert.deepEqual(findEnds([9, null], edges, false), [1, 3]);
  assert.deepEqual(findEnds([null, 21], edges, false), [0, 2]);
  const days = [0, 1, 2].map((day) => Date.UTC(2026, 0, 1 + day));
  assert.deepEqual(findEnds(["2026-01-02T00:00:00Z", null], days, true), [1, 2]);
});

test("edges of a chart are as precise as its range needs", () => {
  assert.equal(formatEdge(1200, false, [0, 1200]), "1,200");
  const start = Date.UTC(2026, 0, 5, 10, 30);
  const after = (days: number) => [start, start + days * 86_400_000];
  assert.equal(formatEdge(start, true, after(1)), "01-05 10:30");
  assert.equal(formatEdge(start, true, after(30)), "5 Jan");
  assert.equal(formatEdge(start, true, after(400)), "2026-01");
  assert.equal(formatEdge(undefined, true, []), "");
});

test("large counts are short", () => {
  assert.equal(short(9_999), "9,999");
  assert.equal(short(12_345), "12k");
  assert.equal(short(2_300_000), "2.3M");
});
