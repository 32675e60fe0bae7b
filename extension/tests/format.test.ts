import assert from "node:assert/strict";
import { test } from "node:test";
import {
  capitalized,
  dtypeText,
  figure,
  percent,
  rateText,
  runsOf,
  significant,
  sizeText,
  timeUnit,
} from "../src/format";

test("numbers have three significant digits, as in Python", () => {
  const numbers = [0.00588, 0.0123, 0.412, 5.4, 38.04, 214.7, 12345.6, 9.996, -0.09996, 99.96, null];
  assert.deepEqual(numbers.map(significant), [
    "0.00588",
    "0.0123",
    "0.412",
    "5.40",
    "38.0",
    "215",
    "12,346",
    "10.0",
    "-0.100",
    "100",
    "–",
  ]);
});

test("figures of arrays get an exponent where they are very small or large", () => {
  assert.deepEqual([0, 0.41234, -12, 3.2e-9, 1.5e12, null].map(figure), [
    "0",
    "0.412",
    "-12.0",
    "3.20e-9",
    "1.50e+12",
    "–",
  ]);
});

test("sizes are binary, rates decimal", () => {
  const sizes = [0, 1000, 1024, 1536, 16 << 20, 3 * 2 ** 30, null];
  assert.deepEqual(sizes.map(sizeText), ["0 B", "1000 B", "1 KiB", "1.50 KiB", "16 MiB", "3 GiB", "–"]);
  assert.deepEqual([375.8, 0.0123, null].map(rateText), ["376 GB/s", "12.3 MB/s", "–"]);
});

test("percentages are whole with a sign that stays beside them, and no false 0 or 100, as in Python", () => {
  const shares = [0, 0.4, 1.51, 62.5, 99.8, 100, 1200, null];
  const texts = ["0 %", "<1 %", "2 %", "63 %", ">99 %", "100 %", "1,200 %", "–"];
  assert.deepEqual(
    shares.map(percent),
    texts.map((text) => text.replace(" ", "\u202f")),
  );
});

test("one outlier does not decide the unit of a column", () => {
  assert.deepEqual(timeUnit([3, 8, 2_000_000]), { name: "µs", us: 1 });
  assert.equal(timeUnit([3000, 8000]).name, "ms");
});

test("element types are short", () => {
  assert.deepEqual(["float32", "bfloat16", "int64", "uint8", "bool"].map(dtypeText), [
    "f32",
    "bf16",
    "i64",
    "u8",
    "bool",
  ]);
});

test("neighbours in a list of replicas are written as a run", () => {
  assert.equal(runsOf([7, 0, 1, 2, 5]), "0–2, 5, 7");
  assert.equal(runsOf([3, 4]), "3, 4");
});

test("a sentence begins with a capital, unless with a name of code", () => {
  assert.equal(capitalized("copies of w1:0 agree"), "Copies of w1:0 agree");
  assert.equal(capitalized("a.b is late"), "a.b is late");
  assert.equal(capitalized("wb.inspect found NaN"), "wb.inspect found NaN");
  assert.equal(capitalized("w1:0 differs"), "w1:0 differs");
  assert.equal(capitalized("step(x) ran"), "step(x) ran");
});
