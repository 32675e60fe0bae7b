// Which replicas of a value have a row, of which one the elements can be seen, and whether figures are drawn: without a page.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { InspectedValue, Summary } from "../src/models";
import { shownOf } from "../src/values/shown";
import { drawn, show, textOf } from "./page";
import * as recorded from "./recorded";

const [VALUE] = recorded.values.values;
const [REPLICA] = VALUE!.replicas;
const AGREED = { in_sync: true, sha256: "ab", max_abs_difference: 0, first_replica: -1, since: "" };

/** A value of as many replicas as there are shapes; null is a component that is no array. */
function valueOf(shapes: (number[] | null)[], more: Partial<InspectedValue> = {}): InspectedValue {
  const replicas = shapes.map((shape, replica) => ({
    ...REPLICA!,
    replica,
    summary: shape ? { ...(REPLICA!.summary as Summary), dtype: "float32", shape, histogram: [1, 2] } : "str",
  }));
  return { ...VALUE!, name: "w", replicas, agreement: null, spread: null, ...more };
}

function rowsOf(value: InspectedValue): number[] {
  return shownOf(value, null).rows.map(({ replica }) => replica);
}

test("copies that agree have one row, which stands for all", () => {
  const value = valueOf([[], [], []], { agreement: AGREED });
  const shown = shownOf(value, 2);
  assert.deepEqual([shown.same, shown.areNumbers, shown.name], [true, false, "w"]);
  assert.deepEqual(rowsOf(value), [0]);
  assert.equal(shownOf(valueOf([[]], { agreement: AGREED }), null).same, false);
});

test("of many replicas those that are far from the others have the first rows", () => {
  const spread = { quantiles: [], outliers: [1, 3], outlying: 2, not_finite: 0 };
  const value = valueOf([[4], [4], [4], [4]], { spread });
  assert.deepEqual(rowsOf(value), [1, 3, 0, 2]);
  assert.equal(shownOf(value, null).spread, spread);
  const same = shownOf({ ...value, agreement: AGREED }, null);
  assert.deepEqual([same.spread, same.rows.length], [null, 1]);
});

test("elements are those of the selected replica, or of the first that has some", () => {
  const value = valueOf([null, [0, 3], [2, 3], [2, 3]]);
  const holder = (selected: number | null) => shownOf(value, selected).holder?.replica;
  assert.deepEqual([null, 0, 1, 2, 3].map(holder), [2, 2, 2, 2, 3]);
  const shown = shownOf(value, 3);
  assert.equal(shown.name, "w, replica 3");
  assert.equal(shown.histogram, value.replicas[3]!.summary);
  assert.deepEqual(shown.arrays, ["str", "f32[0,3]", "f32[2,3]"]);
  const none = shownOf(valueOf([null, [0]]), 1);
  assert.deepEqual([none.holder, none.histogram], [undefined, null]);
});

test("one number per replica is a ring each, unless copies agree or some hold more", () => {
  const numbers = (...shapes: (number[] | null)[]) => shownOf(valueOf(shapes), null).areNumbers;
  assert.equal(numbers([], [1, 1]), true);
  assert.deepEqual([numbers([]), numbers([], [2]), numbers([], null)], [false, false, false]);
});

test("the table has columns for what there is: places, differences, steps and notes", async () => {
  const headings = async (value: InspectedValue) => {
    const shown = show("values", { ...recorded.values, values: [value], first: null });
    await drawn();
    const found = [...shown.root.querySelectorAll("thead th")].map(textOf);
    shown.unmount();
    return found;
  };
  const plain = valueOf([[2], [2]]);
  plain.replicas = plain.replicas.map((one) => ({
    ...one,
    step: -1,
    note: "",
    summary: { ...(one.summary as Summary), histogram: [] },
  }));
  const figures = ["mean", "deviation", "min", "max", "norm", "zeros", "NaN", "infinite"];
  const places = ["replica", "host:device"];
  assert.deepEqual(await headings(plain), [...places, ...figures, "age"]);

  const [first, second] = plain.replicas;
  const parted = {
    ...AGREED,
    in_sync: false,
    max_abs_difference: 2,
    first_replica: 1,
    differences: [{ replica: 1, largest: 2, elements: 1 }],
  };
  const replicas = [
    { ...first!, step: 4, summary: { ...(first!.summary as Summary), shape: [3], histogram: [1, 2] } },
    { ...second!, note: "read in part" },
  ];
  assert.deepEqual(await headings({ ...plain, replicas, agreement: parted }), [
    ...places,
    ...["array", "largest difference", "elements that differ"],
    ...figures,
    ...["histogram", "age", "step", "note"],
  ]);
  assert.deepEqual(await headings({ ...plain, agreement: AGREED }), ["replica", ...figures, "age"]);
});
