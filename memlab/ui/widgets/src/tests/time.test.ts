/** Unit tests of what depends on time: the axis and the texts of versions, key frames, and the planner. */
import assert from "node:assert/strict";
import test from "node:test";
import { formatDuration, placeDay, roundUp } from "../board/planner";
import { placeDots } from "../front/plot";
import { findFrame, splitFrames } from "../player/frames";
import type { Table } from "../shared/table";
import { createScale, formatTime, isCrowded, listPeriods } from "../timeline/axis";
import { splitLines } from "../timeline/diff";
import { describeLineage } from "../timeline/lineage";

test("an axis is even in time, or gives each event the same width", () => {
  const times = [0, 10, 100];
  const byTime = createScale(times, 100, "time");
  assert.deepEqual([0, 10, 100, 500].map(byTime), [0, 10, 100, 100]);
  const byOrder = createScale(times, 100, "order");
  assert.deepEqual([0, 10, 55, 100, 500].map(byOrder), [0, 50, 75, 100, 100]);
});

test("a version of a moment makes an axis of time crowded", () => {
  assert(isCrowded([0, 1], 1000));
  assert(!isCrowded([0, 500], 1000));
});

test("the period of a version ends where the next begins", () => {
  const event = { slot: "s", live: true, action: "install", pack: "p", hash: "", reason: "" };
  const periods = listPeriods(
    [
      { ...event, version: 1, at: 10, pinned: false, event: 1 },
      { ...event, version: 2, at: 20, pinned: true, event: 2 },
    ],
    50,
  );
  assert.deepEqual(
    periods.map(({ version, from, to, pinned }) => [version, from, to, pinned]),
    [
      [1, 10, 20, false],
      [2, 20, 50, true],
    ],
  );
});

test("times on one day are times of day, others are dates", () => {
  const noon = new Date(2026, 2, 1, 12, 0, 0).getTime();
  assert.equal(formatTime(noon, [noon, noon + 60_000]), "12:00");
  assert.equal(formatTime(noon, [noon, noon + 1000]), "12:00:00");
  assert.equal(formatTime(noon, [noon, noon + 3 * 86_400_000]), "1 Mar");
  const acrossMidnight = [0, 6, 12, 18].map((hours) => noon + hours * 3_600_000);
  assert.equal(new Set(acrossMidnight.map((time) => formatTime(time, acrossMidnight))).size, 4);
  assert.equal(formatTime(noon, [noon, noon + 400 * 86_400_000]), "1 Mar 2026");
});

test("two lines are split at their common start and end", () => {
  assert.deepEqual(splitLines("(* 0.1 age)", "(* 0.25 age)"), [
    ["(* 0.", "1", " age)"],
    ["(* 0.", "25", " age)"],
  ]);
  assert.deepEqual(splitLines("aa", "aaa"), [
    ["aa", "", ""],
    ["aa", "a", ""],
  ]);
});

function tableOf(columns: Record<string, ArrayLike<number>>, count: number): Table {
  return {
    numRows: count,
    getChild: (name: string) => ({ toArray: () => columns[name] }),
  } as unknown as Table;
}

test("a table of key frames is split by event", () => {
  const codes = Uint8Array.from([1, 2, 3]);
  const frames = splitFrames(
    tableOf(
      {
        event: Int32Array.from([5, 5, 9]),
        id: Int32Array.from([1, 2, 1]),
        status_a: codes,
        status_b: codes,
        keep_a: codes,
        keep_b: codes,
      },
      3,
    ),
  );
  assert.deepEqual(
    frames.map(({ event, ids, keep }) => [event, Array.from(ids), Array.from(keep[1])]),
    [
      [5, [1, 2], [1, 2]],
      [9, [1], [3]],
    ],
  );
  assert.equal(findFrame(frames, 8)!.event, 5);
  assert.equal(findFrame(frames, 9)!.event, 9);
  assert.equal(findFrame(frames, 1)!.event, 5);
  assert.deepEqual(splitFrames(null), []);
  assert.equal(findFrame([], 1), undefined);
});

test("the planner rounds up to two digits", () => {
  assert.equal(roundUp(0.2), "1");
  assert.equal(roundUp(99.2), "100");
  assert.equal(roundUp(12_345), "13,000");
});

test("the planner names times and places them on its axis", () => {
  assert.equal(formatDuration(1), "about a day");
  assert.equal(formatDuration(12.2), "about 13 days");
  assert.equal(formatDuration(90), "about 3 months");
  assert.equal(formatDuration(10_000), "more than two years");
  assert.equal(placeDay(0.1, 730), 0);
  assert.equal(placeDay(10_000, 730), 100);
  assert(placeDay(7, 730) < placeDay(30, 730));
});

test("the origin of a version names its parents by version if they were active before", () => {
  const event = {
    slot: "s",
    live: true,
    pinned: false,
    at: 0,
    action: "use",
    pack: "p",
    hash: "",
    reason: "",
  };
  const first = { ...event, version: 1, event: 2, pack_hash: "a".repeat(64) };
  const made = {
    ...event,
    version: 2,
    event: 5,
    pack_hash: "b".repeat(64),
    parents: ["a".repeat(64), "f".repeat(64), "b".repeat(64)],
    operator: "crossover",
    evidence: "c".repeat(64),
  };
  assert.equal(describeLineage(first, [first, made]), "");
  assert.equal(
    describeLineage(made, [first, made]),
    `crossover of version 1, ${"f".repeat(12)}, ${"b".repeat(12)}, evidence ${"c".repeat(12)}`,
  );
  assert.equal(
    describeLineage({ ...first, parents: null, operator: "hand" }, []),
    "hand of no parent",
  );
});

test("the dots of a front lie between the ends of their intervals", () => {
  const point = { best: false, low: 0.2, high: 0.6 };
  const { dots, values } = placeDots(
    [
      { ...point, hash: "a", size: 1, value: 0.4 },
      { ...point, hash: "b", size: 9, value: 0.5, low: null, high: null },
      { ...point, hash: "c", size: 3, value: null },
    ],
    0.1,
  );
  assert.deepEqual(
    dots.map(({ point: { hash } }) => hash),
    ["a", "b"],
  );
  const [a, b] = dots;
  assert(a!.low < a!.bottom && a!.bottom < a!.high && a!.left < b!.left);
  assert.deepEqual([b!.low, b!.high], [b!.bottom, b!.bottom]);
  assert(values.place(0.1) > 0);
});
