/** Unit tests of the recall log and the overview. */
import assert from "node:assert/strict";
import test from "node:test";
import { type Day, describeDay, stack } from "../overview/index";
import { groupByDay, judge, type Recall, summarizePage, toDayAndTime } from "../recalls/list";

const recall = (decision: number, at: string) => ({ decision, at: Date.parse(at) }) as Recall;
const DAY: Day = {
  day: "2026-04-17",
  recalls: 5,
  stale: 1,
  tokens: 1200,
  helped: 3,
  failed: 1,
  nothing: 0,
  unrated: 1,
};

test("recalls are grouped by their day in UTC, in their order", () => {
  const days = groupByDay([
    recall(9, "2026-04-17T00:30Z"),
    recall(8, "2026-04-16T23:59Z"),
    recall(7, "2026-04-16T01:00Z"),
  ]);
  assert.deepEqual(
    days.map(([day, group]) => [day, group.map(({ decision }) => decision)]),
    [
      ["2026-04-17", [9]],
      ["2026-04-16", [8, 7]],
    ],
  );
  assert.deepEqual(toDayAndTime(Date.parse("2026-04-17T09:05:59Z")), ["2026-04-17", "09:05"]);
});

test("a memory helped from a reward of one half on, and is not rated without a reward", () => {
  assert.deepEqual(
    [null, 0, 0.49, 0.5, 1].map((reward) => judge(reward)),
    ["unrated", "failed", "failed", "helped", "helped"],
  );
});

test("a page says which recalls it has", () => {
  assert.equal(summarizePage({ matching: 0, page: 20 }, 0), "no recalls");
  assert.equal(summarizePage({ matching: 1, page: 20 }, 0), "1 to 1 of 1 recall");
  assert.equal(
    summarizePage({ matching: 1234, page: 20 }, 1220),
    "1,221 to 1,234 of 1,234 recalls",
  );
});

test("a day is stacked by outcome, in percent of the highest day", () => {
  assert.deepEqual(stack(DAY, 10), [
    ["helped", 30],
    ["failed", 10],
    ["unrated", 10],
  ]);
  assert.equal(describeDay(DAY), "5 recalls, 3 helped, 1 did not help, 1 not rated, 1,200 tokens");
});
