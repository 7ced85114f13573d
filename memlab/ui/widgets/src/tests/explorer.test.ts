/** Unit tests of the parts of a score. */
import assert from "node:assert/strict";
import test from "node:test";
import {
  buildPalette,
  colour,
  groupTerms,
  identifyPart,
  isNegligible,
  measureExtent,
  nameTerm,
  splitScore,
  sumTerms,
  type Term,
} from "../explorer/terms";

const TERMS: Term[] = [
  { term: "(* 0.1 late)", value: 0.1, label: "similar words", group: "meaning" },
  { term: "(* 0.2 similarity)", value: 0.2, label: "similar text", group: "meaning" },
  { term: "(* 0.4 coverage)", value: 0.4, label: "uses the words", group: "words" },
  { term: "(* -0.3 (log words))", value: -0.3, label: "long text", group: "words" },
  { term: "fresh", value: 0.05 },
];

test("terms of a group share one part, and a term without a group is its own part", () => {
  const palette = buildPalette(TERMS);
  assert.deepEqual(
    [...palette.values()].map(({ name, letter, isGroup }) => [name, letter, isGroup]),
    [
      ["meaning", "A", true],
      ["words", "B", true],
      ["fresh", "C", false],
    ],
  );
  assert.equal(palette.get("group words")!.terms.length, 2);
});

test("a term of an old snapshot has neither a label nor a group", () => {
  const term = { term: "(* 0.1 late)", value: 0.1 };
  assert.equal(nameTerm(term), "(* 0.1 late)");
  assert.equal(identifyPart(term), "term (* 0.1 late)");
});

test("the same term of several memories is listed once", () => {
  assert.equal(buildPalette([...TERMS, ...TERMS]).get("group meaning")!.terms.length, 2);
});

test("only the eight largest parts have a colour of their own", () => {
  const many = Array.from({ length: 10 }, (_, index) => ({ term: `t${index}`, value: index + 1 }));
  const palette = buildPalette(many);
  const parts = [...palette.values()];
  assert.deepEqual(
    parts.filter((part) => part.colour < 0).map((part) => part.name),
    ["t0", "t1"],
  );
  assert.equal(colour(parts[0]), "var(--rest)");
  assert.equal(colour(parts[2]), "var(--c0)");
  assert.equal(colour(undefined), "var(--c0)");
});

test("groups follow the order of the palette and keep their sums", () => {
  const palette = buildPalette(TERMS);
  const sums = groupTerms([...TERMS].reverse(), palette).map(([part, terms]) => [
    part.name,
    Number(sumTerms(terms).toFixed(6)),
  ]);
  assert.deepEqual(sums, [
    ["meaning", 0.3],
    ["words", 0.1],
    ["fresh", 0.05],
  ]);
});

test("a bar has a segment for each part, and an open part one for each term", () => {
  const palette = buildPalette(TERMS);
  const names = (open: string[]) =>
    splitScore(TERMS, palette, new Set(open)).map((segment) => segment.name);
  assert.deepEqual(names([]), ["meaning", "words", "fresh"]);
  assert.deepEqual(names(["group words"]), ["meaning", "uses the words", "long text", "fresh"]);
});

test("segments sum to the score, whichever parts are open", () => {
  const palette = buildPalette(TERMS);
  for (const open of [[], ["group words"], ["group words", "group meaning"]]) {
    const segments = splitScore(TERMS, palette, new Set(open));
    const total = segments.reduce((sum, segment) => sum + segment.value, 0);
    assert(Math.abs(total - sumTerms(TERMS)) < 1e-12);
  }
});

test("one scale fits the negative and the positive ends of all bars", () => {
  const palette = buildPalette(TERMS);
  const open = splitScore(TERMS, palette, new Set(["group words"]));
  const [low, high] = measureExtent([open, []]);
  assert.equal(low, -0.3);
  assert(Math.abs(high - 0.75) < 1e-12);
  assert.deepEqual(measureExtent([]), [0, 0]);
});

test("a contribution that would print as zero is negligible", () => {
  assert(isNegligible({ term: "x", value: -0.00004 }));
  assert(!isNegligible({ term: "x", value: 0.00006 }));
});
