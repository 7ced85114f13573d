/** Unit tests of the quality of policies: verdicts, differences and samples in words. */
import assert from "node:assert/strict";
import test from "node:test";
import {
  describeCounts,
  describeDifference,
  describeHits,
  describeSample,
  judge,
  type Metric,
} from "../ranks/quality";

const metric = (low: number | null, high: number | null): Metric => ({
  metric: "hit@5",
  value: 0.74,
  difference: 0.04,
  low,
  high,
  gained: 2,
  lost: 1,
});

test("an interval that excludes zero gives a verdict", () => {
  assert.equal(judge(metric(0.01, 0.07)), "better");
  assert.equal(judge(metric(-0.07, -0.01)), "worse");
  assert.equal(judge(metric(-0.01, 0.09)), "unclear");
  assert.equal(judge(metric(0, 0)), "unclear");
  assert.equal(judge(metric(null, null)), "unclear");
});

test("a difference is described with its interval", () => {
  assert.equal(describeDifference(metric(0.01, 0.07)), "+0.040 (+0.010 to +0.070), better");
  assert.equal(
    describeDifference(metric(-0.01, 0.09)),
    "+0.040 (−0.010 to +0.090), no significant difference",
  );
  assert.equal(describeDifference(metric(null, null)), "+0.040, too few questions for an interval");
});

test("a rate of hits comes with its counts", () => {
  const hits = { ...metric(null, null), value: 0.95, difference: 0.1 };
  assert.equal(describeCounts(hits, 20, false), " (17 of 20 → 19 of 20)");
  assert.equal(describeCounts({ ...hits, difference: 0 }, 20, true), " (19 of 20)");
  assert.equal(describeCounts({ ...hits, metric: "ndcg@10" }, 20, false), "");
  assert.equal(describeHits(17, 20), "0.850 (17 of 20)");
});

test("a sample of questions is stated", () => {
  assert.equal(describeSample({ count: 1, total: 1 }), "1 labelled question");
  assert.equal(
    describeSample({ count: 100, total: 2400 }),
    "a random sample of 100 of 2,400 labelled questions",
  );
});
