import assert from "node:assert/strict";
import { test } from "node:test";
import { Selection } from "../src/selection";
import { press, settled, show, textOf } from "./page";
import * as recorded from "./recorded";

const model = recorded.collectives;
const group = model.snapshot.groups.find((one) => one.group === model.overview.group)!;
const of = `${group.run_id}|${group.group}`;
const newest = group.lateness.steps.at(-1)!;

test("a step that the cursor of one chart is at is pointed at in all views, and no longer when it leaves", async () => {
  const selection = new Selection();
  const lanes = show("lanes", model, { selection });
  const overview = show("overview", model, { selection });
  const chart = lanes.root.querySelector(".wb-chart")!;
  press("ArrowLeft", chart);
  await settled();

  assert.deepEqual(selection.now.step, { of, number: group.items.at(-1)!.step });
  assert.ok(overview.root.querySelectorAll(".wb-course-pointed").length > 0);

  press("Escape", chart);
  await settled();
  assert.equal(selection.now.step, null);
  assert.equal(overview.root.querySelectorAll(".wb-course-pointed").length, 0);
});

test("a chart that goes away while its cursor is at a step points at none", async () => {
  const selection = new Selection();
  const shown = show("heat_map", model, { selection });
  press("ArrowLeft", shown.root.querySelector(".wb-chart")!);
  await settled();
  assert.deepEqual(selection.now.step, { of, number: newest });

  shown.unmount();
  await settled();
  assert.equal(selection.now.step, null);
});

test("steps of another run are not meant", async () => {
  const selection = new Selection();
  const shown = show("overview", model, { selection });
  selection.point({ of: "another run|MirroredStrategy/1", number: newest });
  await settled();

  assert.equal(shown.root.querySelectorAll(".wb-course-pointed").length, 0);
});

test("lines of the log are marked with their step, and point at it", async () => {
  const selection = new Selection();
  const events = [newest - 1, newest, -1].map((step, index) => ({
    ...model.snapshot.events[0]!,
    key: `event ${index}`,
    message: `at ${step}`,
    step,
  }));
  const alone = { ...model, snapshot: { ...model.snapshot, groups: [group], events } };
  const shown = show("log", alone, { selection });
  selection.point({ of, number: newest });
  await settled();
  const marked = [...shown.root.querySelectorAll("tr[aria-current=step]")];
  assert.equal(marked.length, 1);
  assert.match(textOf(marked[0]!), new RegExp(`at ${newest}`));

  shown.root.querySelectorAll<HTMLElement>("tbody tr:first-child td")[0]!.focus();
  await settled();
  assert.deepEqual(selection.now.step, { of, number: newest - 1 });
});
