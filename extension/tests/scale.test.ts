import assert from "node:assert/strict";
import { test } from "node:test";
import { blended, linear, logarithmic, roundTicks } from "../src/scale";

test("a linear scale goes there and back, also beyond its ends", () => {
  const scale = linear([10, 20], [0, 100]);

  assert.deepEqual([scale(10), scale(15), scale(25)], [0, 50, 150]);
  assert.deepEqual([scale.invert(0), scale.invert(50), scale.invert(150)], [10, 15, 25]);
});

test("pieces of a scale have lengths of their own", () => {
  const scale = linear([0, 10, 1000, 1010], [0, 10, 15, 25]);

  assert.deepEqual([0, 5, 10, 505, 1000, 1005].map(scale), [0, 5, 10, 12.5, 15, 20]);
  assert.equal(scale.invert(20), 1005);
});

test("a single value stands in the middle", () => {
  assert.equal(linear([7, 7], [0, 100])(7), 50);
  assert.equal(logarithmic([64, 64], [0, 100])(64), 50);
});

test("equal factors are equal lengths on a logarithmic scale", () => {
  const scale = logarithmic([1, 10_000], [0, 400]);

  assert.deepEqual(
    [1, 10, 100, 1000].map((value) => Math.round(scale(value))),
    [0, 100, 200, 300],
  );
});

test("ticks are round, inside the range and without dust", () => {
  assert.deepEqual(roundTicks(-1, 0, 5), [-1, -0.8, -0.6, -0.4, -0.2, 0]);
  assert.deepEqual(roundTicks(-613.2, 0, 3), [-500, 0]);
  assert.deepEqual(roundTicks(5, 5, 4), []);
});

test("colours between two are between them in each channel", () => {
  assert.equal(blended(["000000", "ff8040"], 0.5), "#804020");
  assert.equal(blended(["000000", "ff8040"], 7), "#ff8040");
});
