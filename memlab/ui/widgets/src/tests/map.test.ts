/** Unit tests of the map: selection, the force layout and the looks of points. */
import assert from "node:assert/strict";
import test from "node:test";
import { computeLooks } from "../map/draw";
import { Force } from "../map/force";
import { nearest, parseColour, selectWithin } from "../map/places";

const POINTS = {
  id: Int32Array.from([1, 2, 3, 4]),
  x: Float32Array.from([0, 1, 0, 5]),
  y: Float32Array.from([0, 0, 1, 5]),
};

test("the nearest point lies within the distance", () => {
  assert.equal(nearest(POINTS, 0.9, 0.1, 0.5), 1);
  assert.equal(nearest(POINTS, 3, 3, 0.5), -1);
});

test("a lasso selects the points inside its path", () => {
  const square: [number, number][] = [
    [-0.5, -0.5],
    [1.5, -0.5],
    [1.5, 1.5],
    [-0.5, 1.5],
  ];
  assert.deepEqual(selectWithin(POINTS, square), [1, 2, 3]);
});

test("a lasso with a notch leaves out the points in the notch", () => {
  const notched: [number, number][] = [
    [-0.5, -0.5],
    [1.5, -0.5],
    [1.5, 1.5],
    [0, 0.5],
    [-0.5, 1.5],
  ];
  assert.deepEqual(selectWithin(POINTS, notched), [1, 2]);
});

test("a colour becomes three numbers", () => {
  assert.deepEqual(parseColour(" #ff0080 "), [1, 0, 128 / 255]);
});

const NET = {
  count: 6,
  source: [0, 0, 0, 3],
  target: [1, 2, 3, 4],
  weight: [1, 1, 1, 1],
  hops: [0, 1, 1, 1, 2, 2],
};

test("the layout is the same each time", () => {
  const layouts = [new Force(NET), new Force(NET)];
  for (const layout of layouts) for (let step = 0; step < 50; step++) layout.step();
  assert.deepEqual([...layouts[0]!.x], [...layouts[1]!.x]);
});

test("the layout cools down, keeps nodes apart and connected nodes near", () => {
  const layout = new Force(NET);
  for (let step = 0; step < 340; step++) layout.step();
  const distance = (a: number, b: number) =>
    Math.hypot(layout.x[a]! - layout.x[b]!, layout.y[a]! - layout.y[b]!);
  assert(layout.heat < 0.01);
  for (let a = 0; a < NET.count; a++)
    for (let b = 0; b < a; b++) assert(distance(a, b) > 15, `${a} and ${b} overlap`);
  for (let edge = 0; edge < NET.source.length; edge++)
    assert(distance(NET.source[edge]!, NET.target[edge]!) < 120);
  const [left, top, right, bottom] = layout.box();
  assert(layout.x.every((x) => left <= x && x <= right));
  assert(layout.y.every((y) => top <= y && y <= bottom));
});

test("points have the colour of their word, of their value, or none", () => {
  const cloud = {
    x: new Float32Array(3),
    y: new Float32Array(3),
    place: Uint8Array.from([1, 255, 255]),
    value: Float32Array.from([Number.NaN, 0.5, Number.NaN]),
    picked: Uint8Array.from([0, 1, 0]),
    some: true,
  };
  const ink = {
    places: [
      [0, 0, 0],
      [1, 0, 0],
    ] as [number, number, number][],
    low: [0, 0, 0] as [number, number, number],
    high: [0, 1, 1] as [number, number, number],
    none: [0.25, 0.25, 0.25] as [number, number, number],
  };
  const { tints, looks } = computeLooks(cloud, ink);
  assert.deepEqual([...tints], [1, 0, 0, 0, 0.5, 0.5, 0.25, 0.25, 0.25]);
  assert.deepEqual([looks[0], looks[3], looks[6]], [1, 0, 0]);
  assert.deepEqual([looks[2], looks[5], looks[8]], [0, 1, 0]);
});
