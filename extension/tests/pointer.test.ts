// What a pointer does in charts: it points at a step, drags pick steps out, a click selects a replica.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cellsOf, gutters } from "../src/overview/gutters";
import { Selection } from "../src/selection";
import { drawn, point, press, settled, show, textOf } from "./page";
import * as recorded from "./recorded";

const WIDTH = 640; // of a chart that is not laid out
const ROW = 24; // of the lateness
const model = recorded.collectives;
const group = model.snapshot.groups.find((one) => one.group === model.overview.group)!;
const of = `${group.run_id}|${group.group}`;
const { steps } = group.lateness;
const newest = steps.at(-1)!;

/** The middle of a step's column in the lateness. */
function placeOf(step: number): number {
  const { left, first, size } = cellsOf(steps.length, WIDTH);
  return left + (steps.indexOf(step) - first + 0.5) * size;
}

function lateness() {
  const selection = new Selection();
  const shown = show("overview", model, { selection });
  const canvas = shown.root.querySelector(".wb-module-lateness canvas")!;
  const said = () => textOf(shown.root.querySelector(".wb-module-lateness output"));
  return { selection, canvas, said, root: shown.root };
}

async function drag(canvas: Element, from: number, to: number): Promise<void> {
  point("down", canvas, from, ROW / 2);
  await drawn();
  point("move", canvas, (from + to) / 2, ROW / 2);
  await drawn();
  point("up", canvas, to, ROW / 2);
  await drawn();
}

test("what the pointer is at stays while a menu is open for it, which Enter then pins", async () => {
  const { selection, canvas, said, root } = lateness();
  point("move", canvas, placeOf(newest - 3), 5 + 2.5 * ROW);
  await settled();
  canvas.dispatchEvent(new Event("contextmenu", { bubbles: true }));
  point("leave", canvas);
  await settled();
  assert.match(said(), new RegExp(`^replica 2, step ${newest - 3}: `));

  press("Enter", root.querySelector(".wb-module-lateness .wb-chart")!);
  await settled();
  assert.deepEqual(selection.now.range, { of, first: newest - 3, last: newest - 3 });

  point("move", canvas, placeOf(newest - 2), 5 + 2.5 * ROW);
  point("leave", canvas);
  await settled();
  assert.doesNotMatch(said(), new RegExp(`step ${newest - 2}`));
});

test("the pointer points at the step below it in all views, until it leaves", async () => {
  const { selection, canvas, said, root } = lateness();
  point("move", canvas, placeOf(newest - 3), 5 + 2.5 * ROW);
  await settled();
  assert.deepEqual(selection.now.step, { of, number: newest - 3 });
  assert.match(said(), new RegExp(`^replica 2, step ${newest - 3}: `));
  assert.ok(root.querySelector(".wb-course-pointed"));

  point("move", canvas, placeOf(newest - 2), 5 + 0.5 * ROW);
  await settled();
  assert.deepEqual(selection.now.step, { of, number: newest - 2 });
  assert.match(said(), new RegExp(`^replica 0, step ${newest - 2}: `));

  point("move", canvas, 4, 5 + 0.5 * ROW); // at the name of the row
  await settled();
  assert.equal(selection.now.step, null);
  assert.equal(said(), "");

  point("move", canvas, placeOf(newest), 5 + 0.5 * ROW);
  await drawn();
  point("leave", canvas);
  await settled();
  assert.equal(selection.now.step, null);
});

test("a drag picks out the steps from its one end to the other, whichever comes first", async () => {
  const { selection, canvas } = lateness();
  for (const [from, to] of [
    [newest - 8, newest - 2],
    [newest - 2, newest - 8],
  ] as const) {
    await drag(canvas, placeOf(from), placeOf(to));
    assert.deepEqual(selection.now.range, { of, first: newest - 8, last: newest - 2, time: undefined });
    selection.brush(null);
    await settled();
  }
  await drag(canvas, placeOf(newest - 4), WIDTH + 50); // beyond the end of the axis
  assert.deepEqual(selection.now.range, { of, first: newest - 4, last: newest, time: undefined });
  assert.equal(selection.now.replica, null);
});

test("a drag goes on where the pointer leaves the chart, and a gesture that is taken away picks nothing", async () => {
  const { selection, canvas } = lateness();
  point("down", canvas, placeOf(newest - 5), ROW / 2);
  await drawn();
  point("leave", canvas);
  await drawn();
  point("up", canvas, placeOf(newest - 1), -40);
  await drawn();
  assert.deepEqual(selection.now.range, { of, first: newest - 5, last: newest - 1, time: undefined });

  point("down", canvas, placeOf(newest - 9), ROW / 2);
  await drawn();
  point("cancel", canvas);
  await drawn();
  point("up", canvas, placeOf(newest), ROW / 2);
  await drawn();
  assert.deepEqual(selection.now.range, { of, first: newest - 5, last: newest - 1, time: undefined });
});

test("a double click shows the newest steps again", async () => {
  const { selection, canvas } = lateness();
  await drag(canvas, placeOf(newest - 8), placeOf(newest - 2));
  await settled();
  canvas.dispatchEvent(new Event("dblclick", { bubbles: true }));
  await settled();
  assert.equal(selection.now.range, null);
});

async function click(canvas: Element, x: number, row: number): Promise<void> {
  const y = 5 + (row + 0.5) * ROW;
  point("down", canvas, x, y);
  await drawn();
  point("move", canvas, x + 2, y);
  await drawn();
  point("up", canvas, x + 3, y);
  await settled();
}

test("a click, however shaky, pins the step and lights up the replica; one beside the rows does nothing", async () => {
  const { selection, canvas, said, root } = lateness();
  const pinned = (step: number) => ({ of, first: step, last: step });
  await click(canvas, placeOf(newest - 2), 1);
  assert.equal(selection.now.replica, 1);
  assert.deepEqual(selection.now.range, pinned(newest - 2));
  assert.match(said(), new RegExp(`^step ${newest - 2} pinned · replica 1, step ${newest - 2}: `));
  assert.match(textOf(root.querySelector(".wb-title")), new RegExp(`step ${newest - 2} ×`));
  assert.ok(root.querySelector(`[aria-label='Figures of step ${newest - 2}']`));

  await click(canvas, placeOf(newest - 2), 50);
  assert.equal(selection.now.replica, 1);

  await click(canvas, placeOf(newest - 3), 1); // the replica stays lit up
  assert.equal(selection.now.replica, 1);
  assert.deepEqual(selection.now.range, pinned(newest - 3));

  await click(canvas, placeOf(newest - 3), 2); // the step stays pinned
  assert.equal(selection.now.replica, 2);
  assert.deepEqual(selection.now.range, pinned(newest - 3));

  await click(canvas, placeOf(newest - 3), 2);
  assert.equal(selection.now.replica, null);
  assert.equal(selection.now.range, null);
});

test("a drag over the lanes of the overview picks out steps, whose lanes are shown then", async () => {
  const selection = new Selection();
  const shown = show("overview", model, { selection });
  const chart = shown.root.querySelector(".wb-module-lanes .wb-chart")!;
  const label = () => chart.getAttribute("aria-label")!;
  const [before, last] = label().match(/\d+/g)!.slice(-2).map(Number) as [number, number];
  const { left, right } = gutters(WIDTH);
  await drag(chart.querySelector("canvas")!, WIDTH - right - 2, left + 0.4 * (WIDTH - left - right));
  await settled();
  const range = selection.now.range!;
  assert.equal(range.of, of);
  assert.equal(range.last, last);
  assert.ok(before <= range.first && range.first < last);
  assert.match(label(), new RegExp(`in steps ${range.first} to ${last}$`));
});

test("a drag over the lanes zooms into a part of the time of their steps, and further", async () => {
  const selection = new Selection();
  const shown = show("lanes", model, { selection });
  const lanes = [...shown.root.querySelectorAll(".wb-part")].find((one) =>
    textOf(one).includes("MirroredStrategy, 4 replicas"),
  )!;
  const canvas = lanes.querySelector("canvas")!;
  await drag(canvas, 600, 300);
  await settled();
  const { first, last, time } = selection.now.range!;
  assert.ok(first <= last && time![0] < time![1]);
  const inside = group.items.filter(({ step }) => step >= first && step <= last);
  assert.ok(Math.min(...inside.map(({ ready_ns }) => ready_ns)) < time![1]);
  assert.ok(Math.max(...inside.map(({ last_end_ns }) => last_end_ns)) >= time![0]);

  await drag(canvas, 300, 500);
  await settled();
  const nearer = selection.now.range!.time!;
  assert.ok(nearer[0] >= time![0] && nearer[1] <= time![1] && nearer[1] - nearer[0] < time![1] - time![0]);
});

test("a drag over a dataset picks out the steps for which it is read", async () => {
  const selection = new Selection();
  const progress = recorded.datasetRunning.progress!;
  const sampled = { run_id: group.run_id, group: group.group, steps: [20, 21, 22, 23] };
  const read = { ...recorded.datasetRunning, progress: { ...progress, sampled } };
  const shown = show("dataset_sharding", read, { selection });
  const canvas = shown.root.querySelector("canvas")!;
  const column = (step: number) => 92 + ((step + 0.5) * (WIDTH - 92 - 132)) / read.steps;
  point("move", canvas, column(1), 34 + 11);
  await settled();
  assert.deepEqual(selection.now.step, { of, number: 21 });
  point("leave", canvas);
  await settled();
  assert.equal(selection.now.step, null);

  await drag(canvas, column(1), column(2));
  assert.deepEqual(selection.now.range, { of, first: 21, last: 22, time: undefined });
  await drag(canvas, column(6), column(2)); // for what has not been read yet the closest counts
  assert.deepEqual(selection.now.range, { of, first: 22, last: 23, time: undefined });
});

test("a drag over a dataset of which no step is known yet picks none out", async () => {
  const selection = new Selection();
  const progress = recorded.datasetRunning.progress!;
  const sampled = { run_id: group.run_id, group: group.group, steps: [] };
  const shown = show(
    "dataset_sharding",
    { ...recorded.datasetRunning, progress: { ...progress, sampled } },
    { selection },
  );
  await drag(shown.root.querySelector("canvas")!, 150, 300);
  assert.equal(selection.now.range, null);
});
