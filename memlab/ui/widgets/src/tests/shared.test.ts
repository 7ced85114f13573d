/** Unit tests of shared functions: scales and texts. */
import assert from "node:assert/strict";
import test from "node:test";
import { scale } from "../shared/scale";
import { clip, num, plural, splitAtWords, visible } from "../shared/text";
import { Link } from "../shared/widget";

test("a scale contains all finite values and has round ticks", () => {
  const { low, high, ticks, digits, place } = scale([0, 1, null, undefined, Number.NaN], 4);
  assert(low < 0 && high > 1);
  assert.deepEqual(ticks, [0, 0.5, 1]);
  assert.equal(digits, 1);
  assert.equal(place(low), 0);
  assert.equal(place(high), 1);
});

test("a scale of one value, or of none, has a width", () => {
  const single = scale([3]);
  assert(single.low < 3 && 3 < single.high);
  assert.equal(single.place(3), 0.5);
  const empty = scale([]);
  assert(empty.low < 0 && empty.high > 1);
});

test("a scale of large values has no decimals", () => {
  assert.equal(scale([1000, 9000]).digits, 0);
});

test("a number that rounds to zero has no sign", () => {
  assert.equal(num(-0.00001), "0.0000");
  assert.equal(num(-0, 2, true), "0.00");
  assert.equal(num(0.00001, 4, true), "0.0000");
});

test("numbers have a true minus, and a plus if it is asked for", () => {
  assert.equal(num(-1.5, 1), "−1.5");
  assert.equal(num(1.5, 1, true), "+1.5");
  assert.equal(num(1.5, 1), "1.5");
});

test("values that are no finite numbers have names", () => {
  assert.equal(num(null), "null");
  assert.equal(num(Number.NaN), "NaN");
  assert.equal(num(Number.POSITIVE_INFINITY), "∞");
  assert.equal(num(Number.NEGATIVE_INFINITY), "−∞");
});

test("a noun follows its count", () => {
  assert.equal(plural(1, "term"), "1 term");
  assert.equal(plural(1200, "term"), "1,200 terms");
  assert.equal(plural(0, "memory", "memories"), "0 memories");
});

test("a text is shortened by characters, not by UTF-16 units", () => {
  assert.equal(clip("abc", 3), "abc");
  assert.equal(clip("abcd", 3), "ab…");
  assert.equal(clip("😀😀😀", 3), "😀😀😀");
  assert.equal(clip("😀😀😀😀", 3), "😀😀…");
});

test("control and bidirectional characters become visible", () => {
  assert.equal(visible("a\u0000b\u007f"), "a\u2400b\u2421");
  assert.equal(visible("a\u202eb"), "a\ufffdb");
  assert.equal(visible("tab\tand\r\nline"), "tab\tand\nline");
});

test("a text is split at whole words, in any case", () => {
  assert.deepEqual(splitAtWords("Tabs, not tabstops", ["tabs"]), ["", "Tabs", ", not tabstops"]);
  assert.deepEqual(splitAtWords("a tab-stop", ["tab", "stop"]), ["a ", "tab", "-", "stop", ""]);
  assert.deepEqual(splitAtWords("caf\u00e9 cafe", ["cafe"]), ["caf\u00e9 ", "cafe", ""]);
  assert.deepEqual(splitAtWords("nothing", []), ["nothing"]);
});

test("a word of a script without spaces may be inside a run", () => {
  assert.deepEqual(splitAtWords("東京です", ["東京", "東"]), ["", "東京", "です"]);
});

test("an answer removes faults that were shown before its request, and no later ones", async () => {
  const handlers: Record<string, (message: { id: number }) => void> = {};
  const model = {
    on: (name: string, call: never) => (handlers[name] = call),
    get: () => "",
    send() {},
  };
  const link = new Link(model as never);
  const early = link.ask("fill");
  link.showFault("The file is too large.");
  handlers["msg:custom"]?.({ id: 1 });
  await early;
  assert.equal(link.fault, "The file is too large.");
  const later = link.ask("fill");
  handlers["msg:custom"]?.({ id: 2 });
  await later;
  assert.equal(link.fault, "");
});
