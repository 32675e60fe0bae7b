import assert from "node:assert/strict";
import { test } from "node:test";
import { Selection } from "../src/selection";
import { button, press, settled, show, textOf, written } from "./page";
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

/** The newest steps by keys: the last one, and `more` before it. */
async function extend(chart: Element, more: number): Promise<void> {
  press("ArrowLeft", chart);
  await settled();
  for (let step = 0; step < more; step++) {
    press("ArrowLeft", chart, true);
    await settled();
  }
}

function chartOf(root: Element, module: string): Element {
  return root.querySelector(`.wb-module-${module} .wb-chart`)!;
}

test("Shift and arrows pick steps out, which is said, and Escape lets views follow the run again", async () => {
  const selection = new Selection();
  const shown = show("overview", model, { selection });
  const chart = chartOf(shown.root, "lateness");
  await extend(chart, 2);

  assert.deepEqual(selection.now.range, { of, first: newest - 2, last: newest, time: undefined });
  const said = textOf(shown.root.querySelector(".wb-module-lateness output"));
  assert.match(said, new RegExp(`^steps ${newest - 2} to ${newest} · replica 0, step ${newest - 2}:`));
  assert.match(
    textOf(shown.root.querySelector(".wb-title")),
    new RegExp(`steps ${newest - 2} to ${newest} ×`),
  );

  press("Escape", chart);
  await settled();
  assert.equal(selection.now.range, null);
  assert.equal(shown.root.querySelector(".wb-brushed"), null);
  assert.match(textOf(shown.root.querySelector(".wb-module-lateness output")), /^replica 0/);
});

test("Enter pins the step at the cursor in every view of the run, and Escape lets it go", async () => {
  for (const view of ["heat_map", "lanes", "overview", "devices"] as const) {
    const selection = new Selection();
    const shown = show(view, view === "devices" ? used : model, { selection });
    const other = show("overview", model, { selection });
    const chart = [...shown.root.querySelectorAll(".wb-chart")].at(-1)!;
    press("ArrowLeft", chart);
    await settled();
    press("Enter", chart);
    await settled();
    assert.deepEqual(selection.now.range, { of, first: newest, last: newest }, view);
    assert.match(textOf(chart.nextElementSibling), new RegExp(`^step ${newest} pinned · `));
    assert.match(textOf(other.root.querySelector(".wb-title")), new RegExp(`step ${newest} ×`));

    press("Escape", chart);
    await settled();
    assert.equal(selection.now.range, null);
    shown.unmount();
    other.unmount();
  }
});

test("lanes show the steps that are picked out, figures are of them, and both say which", async () => {
  const selection = new Selection();
  const shown = show("overview", model, { selection });
  const time = shown.root.querySelectorAll(".wb-figure b")[2]!;
  const before = textOf(time);
  const calm = group.steps.reduce((least, step) =>
    step.waited_percent < least.waited_percent ? step : least,
  );
  selection.brush({ of, first: calm.step, last: calm.step });
  await settled();

  assert.equal(textOf(time), calm.waited_percent.toFixed(0));
  assert.notEqual(textOf(time), before);
  assert.ok(shown.root.querySelector(`[aria-label='Figures of step ${calm.step}']`));
  assert.match(
    chartOf(shown.root, "lanes").getAttribute("aria-label")!,
    new RegExp(`steps ${calm.step} to ${calm.step}$`),
  );

  selection.brush({ of, first: newest - 9, last: newest - 8 });
  await settled();
  assert.match(
    chartOf(shown.root, "lanes").getAttribute("aria-label")!,
    new RegExp(`steps ${newest - 9} to ${newest - 8}$`),
  );
  assert.ok(written.includes(`${newest - 9} to ${newest - 8}: in Lanes`));

  button(shown.root, `steps ${newest - 9} to ${newest - 8}`).click();
  await settled();
  assert.equal(selection.now.range, null);
  assert.equal(textOf(time), before);
});

test("of steps whose collectives are no longer kept the lanes say so", async () => {
  const selection = new Selection();
  const shown = show("overview", model, { selection });
  const [first] = group.steps;
  selection.brush({ of, first: first!.step, last: first!.step + 1 });
  await settled();

  const about = textOf(shown.root.querySelector(".wb-module-lanes .wb-about"));
  assert.equal(
    about,
    `collectives of steps ${first!.step} to ${first!.step + 1} are no longer kept: the newest`,
  );
});

test("steps that are looked at stay while the run goes on, and its verdict goes on", async () => {
  const selection = new Selection();
  const shown = show("overview", model, { selection });
  selection.brush({ of, first: newest - 3, last: newest });
  await settled();
  const gone = { ...model.overview.verdict, code: "gone", severity: "error", sentence: "Replica 3 is gone" };
  await shown.update({ ...model, overview: { ...model.overview, step: 4711, verdict: gone } });
  assert.doesNotMatch(textOf(shown.root), /4711/);
  assert.match(textOf(shown.root), /Replica 3 is gone/);

  selection.brush(null);
  await settled();
  assert.match(textOf(shown.root), /step 4711/);
});

test("a view that opens when the steps have gone follows the run", async () => {
  const selection = new Selection();
  selection.brush({ of, first: 3, last: 5 });
  const shown = show("overview", model, { selection });
  await settled();
  assert.match(textOf(shown.root), /collectives of steps 3 to 5 are no longer kept/);
  assert.match(textOf(shown.root.querySelector(".wb-figures")), /Steps per second–/);

  await shown.update({ ...model, overview: { ...model.overview, step: 4711 } });
  assert.match(textOf(shown.root), /step 4711/);
});

test("the log has the lines of the steps that are picked out, and by their time those of none", async () => {
  const selection = new Selection();
  const [early, late] = [group.steps[3]!, group.steps[9]!];
  const lines = [
    ["before", early.step, 0],
    ["inside", late.step, 0],
    ["timely", -1, late.begin_ns],
    ["late", -1, group.steps[12]!.begin_ns],
  ] as const;
  const events = lines.map(([message, step, t_ns]) => ({
    ...model.snapshot.events[0]!,
    ...{ key: message, message, step, t_ns },
  }));
  const alone = { ...model, snapshot: { ...model.snapshot, groups: [group], events } };
  const shown = show("log", alone, { selection });
  selection.brush({ of, first: late.step - 1, last: late.step + 1 });
  await settled();

  const rows = [...shown.root.querySelectorAll("tbody tr")].map(textOf);
  assert.equal(rows.length, 2);
  assert.match(rows[0]!, /inside/);
  assert.match(rows[1]!, /timely/);
});

const sampled = { run_id: group.run_id, group: group.group, steps: [-1, newest - 40, newest - 20, newest] };
const used = {
  ...recorded.devices,
  sampled,
  devices: recorded.devices.devices.map((device) => ({ ...device, recent_percent: [5, 10, 95, 20] })),
};

test("devices lie on the axis of steps: they follow, and their steps can be picked out", async () => {
  const selection = new Selection();
  const shown = show("devices", used, { selection });
  const overview = show("overview", model, { selection });
  const chart = shown.root.querySelector(".wb-chart")!;
  press("ArrowLeft", chart);
  await settled();
  assert.deepEqual(selection.now.step, { of, number: newest });
  assert.match(textOf(shown.root.querySelector("output")), new RegExp(`, step ${newest}: 20 %`));
  assert.ok(overview.root.querySelector(".wb-course-pointed"));

  press("ArrowLeft", chart, true);
  await settled();
  assert.deepEqual(selection.now.range, { of, first: newest - 20, last: newest, time: undefined });
  assert.match(textOf(overview.root), new RegExp(`steps ${newest - 20} to ${newest}`));
  await shown.update({ ...used, devices: [] });
  assert.match(textOf(shown.root), /no devices/); // how full they are is told as it is now
});

const waiting = (root: Element) => root.querySelector("[aria-label^='Waiting for batches']")!;

test("input lies on it, too, and what was recorded without steps has no cursor there", async () => {
  const selection = new Selection();
  const fetched = { ...recorded.inputStarving, sampled, waited_percent: [0, 10, 80, 30] };
  const shown = show("input", fetched, { selection });
  selection.brush({ of, first: newest - 20, last: newest });
  await settled();
  assert.match(textOf(shown.root.querySelector(".wb-head")), new RegExp(`steps ${newest - 20} to ${newest}`));
  press("ArrowLeft", waiting(shown.root));
  await settled();
  assert.match(
    textOf(waiting(shown.root).nextElementSibling),
    new RegExp(`longest wait, step ${newest}: 30 %`),
  );
  shown.unmount();

  for (const without of [null, undefined, { ...sampled, steps: [-1, -1, -1] }]) {
    const { sampled: _, ...old } = used;
    const bare = show("devices", without === undefined ? old : { ...old, sampled: without }, { selection });
    press("ArrowLeft", bare.root.querySelector(".wb-chart")!);
    await settled();
    assert.equal(textOf(bare.root.querySelector("output")), "worker 0: 20 %");
    assert.equal(selection.now.step, null);
    assert.match(textOf(bare.root), /worker 0/);
    bare.unmount();
  }
});

test("a drag over lanes means a part of the time of its steps, which 0 and the button give up", async () => {
  const selection = new Selection();
  const shown = show("lanes", model, { selection });
  const [from, to] = [group.items.at(-5)!, group.items.at(-1)!];
  selection.brush({ of, first: from.step, last: to.step, time: [from.ready_ns, to.ready_ns] });
  await settled();
  assert.ok(button(shown.root, `steps ${from.step} to ${to.step}`));

  press("0", shown.root.querySelector(".wb-chart")!);
  await settled();
  assert.equal(selection.now.range, null);
});

test("steps that only the newest model has are shown, although an earlier one was kept for others", async () => {
  const selection = new Selection();
  const { steps } = group;
  const middle = steps.length - 30;
  const [early, late] = [steps[middle - 8]!, steps[middle + 10]!];
  const part = (some: typeof steps, version: number) => ({
    ...model,
    snapshot: { ...model.snapshot, version, groups: [{ ...group, steps: some }] },
  });
  const shown = show("overview", part(steps.slice(0, middle), 1), { selection });
  const waited = () => textOf(shown.root.querySelectorAll(".wb-figure b")[2]!);
  const expected = [early, late].map((step) => step.waited_percent.toFixed(0));
  assert.notEqual(...(expected as [string, string]));

  selection.brush({ of, first: early.step, last: early.step });
  await settled();
  await shown.update(part(steps.slice(middle), 2));
  assert.equal(waited(), expected[0]);

  selection.brush({ of, first: late.step, last: late.step });
  await settled();
  assert.equal(waited(), expected[1]);
});

const progress = recorded.datasetRunning.progress!; // it was given batches 0 to 3
const read = {
  ...recorded.datasetRunning,
  progress: {
    ...progress,
    sampled: {
      run_id: group.run_id,
      group: group.group,
      steps: [newest - 5, newest - 4, newest - 2, newest],
    },
  },
};

test("a step that another chart points at is marked in a dataset, which says what each replica reads for it", async () => {
  const selection = new Selection();
  const shown = show("dataset_sharding", read, { selection });
  const overview = show("overview", model, { selection });
  const said = () => textOf(shown.root.querySelector("output"));
  assert.equal(said(), "");

  press("ArrowLeft", chartOf(overview.root, "lateness"));
  await settled();
  const each = read.readers.map(({ replica, readings }) => `replica ${replica}: 4 rows ${readings[3]!.text}`);
  assert.equal(said(), [`step ${newest}: batch 3 of epoch 0`, ...each].join(" · "));

  for (const [step, batch] of [
    [newest - 1, 2], // two steps work with a batch
    [newest - 2, 2],
    [newest - 4, 1],
  ]) {
    selection.point({ of, number: step! });
    await settled();
    assert.match(
      said(),
      new RegExp(`^step ${step}: batch ${batch} of epoch 0 · replica 0: 4 rows ${16 * batch!}–`),
    );
  }
  for (const step of [newest - 6, newest + 1]) {
    selection.point({ of, number: step });
    await settled();
    assert.equal(said(), `step ${step}: none of the batches that are drawn`);
  }
  selection.point(null);
  await settled();
  assert.equal(said(), "");
});

test("of another epoch a dataset says whose elements it shows", async () => {
  const selection = new Selection();
  const again = { ...read, progress: { ...read.progress, epoch: 2 } };
  const shown = show("dataset_sharding", again, { selection });
  selection.point({ of, number: newest });
  await settled();
  assert.match(
    textOf(shown.root.querySelector("output")),
    /: batch 3 of epoch 2 · replica 0: .* · elements as in epoch 0$/,
  );
});

test("steps can be picked out in a dataset: it says what was read for them, and shows them while others come", async () => {
  const selection = new Selection();
  const shown = show("dataset_sharding", read, { selection });
  const overview = show("overview", model, { selection });
  const chart = shown.root.querySelector(".wb-chart")!;
  selection.brush({ of, first: newest - 5, last: newest - 4 });
  await settled();
  assert.equal(
    textOf(shown.root.querySelector("output")),
    `steps ${newest - 5} to ${newest - 4}: batches 0 to 1 of epoch 0 · replica 0: 8 rows · replica 1: 8 rows · replica 2: 8 rows · replica 3: 8 rows`,
  );
  press("Home", chart);
  await settled();
  press("Home", chart);
  await settled();
  assert.deepEqual(selection.now.step, { of, number: newest - 5 });
  press("ArrowRight", chart, true);
  await settled();
  assert.deepEqual(selection.now.range, { of, first: newest - 5, last: newest - 4, time: undefined });
  assert.ok(button(overview.root, `steps ${newest - 5} to ${newest - 4}`));

  const later = { ...read.progress, given: 100 };
  await shown.update({
    ...read,
    progress: later,
    readers: read.readers.map((one) => ({ ...one, readings: [] })),
  });
  assert.ok(button(shown.root, `steps ${newest - 5} to ${newest - 4}`));
  assert.match(textOf(shown.root.querySelector("output")), /replica 0 · step 1 · 4 rows: 16–19 · waited/);

  press("Escape", chart);
  await settled();
  assert.equal(selection.now.range, null);
  assert.equal(textOf(shown.root.querySelector("output")), "");
});

test("the table of a dataset marks the rows of the step, and points at theirs", async () => {
  const selection = new Selection();
  const shown = show("dataset_sharding", read, { selection });
  button(shown.root, "Table").click();
  selection.point({ of, number: newest });
  await settled();
  const marked = [...shown.root.querySelectorAll("tr[aria-current=step]")].map(textOf);
  assert.deepEqual(
    marked.map((row) => row.slice(0, 2)),
    ["30", "31", "32", "33", "3a"], // the last one of all replicas
  );
  shown.root.querySelector<HTMLElement>("[aria-label='Who reads what'] tbody td")!.focus();
  await settled();
  assert.deepEqual(selection.now.step, { of, number: newest - 5 });
});

test("a dataset of a file that was written before it knew steps is drawn without them", async () => {
  const selection = new Selection();
  const { sampled: _, ...old } = read.progress;
  const shown = show("dataset_sharding", { ...read, progress: old }, { selection });
  selection.point({ of, number: newest });
  press("ArrowLeft", shown.root.querySelector(".wb-chart")!);
  await settled();
  assert.match(textOf(shown.root.querySelector("output")), /^replica 0 · step 6/);
  assert.deepEqual(selection.now.step, { of, number: newest });
});
