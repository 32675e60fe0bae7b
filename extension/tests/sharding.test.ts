import assert from "node:assert/strict";
import { test } from "node:test";
import type { DatasetSharding, Reader } from "../src/models";
import { Selection } from "../src/selection";
import { columnsOf, remainderOf, rowsOf } from "../src/sharding/columns";
import { isLong, waitIn, waitsOf } from "../src/sharding/progress";
import { INSERT } from "../src/view";
import { button, drawn, press, settled, show, textOf, written } from "./page";
import * as recorded from "./recorded";

/** What the chart of a dataset writes. */
function drawnOf(model: DatasetSharding): string[] {
  written.length = 0;
  show("dataset_sharding", model).unmount();
  return [...written];
}

test("a dataset is drawn as rows by step and replica, with sums of both", () => {
  const texts = drawnOf(recorded.datasetMemory);

  assert.deepEqual(texts.slice(0, 9), ["step", "rows", "0", "1", "2", "3", "4", "5", "6"]);
  const all = texts.slice(texts.indexOf("all replicas"));
  assert.deepEqual(all.slice(1, 9), ["100", "16", "16", "16", "16", "16", "16", "4"]);
  assert.deepEqual(all.slice(9), []);
  const first = texts.slice(texts.indexOf("replica 0"));
  assert.deepEqual(first.slice(1, 9), ["25", "4", "4", "4", "4", "4", "4", "1"]);
});

test("the remainder is named below the steps that it is, or below the matrix where the text has no room", () => {
  assert.ok(drawnOf(recorded.datasetMemory).includes("the remainder is 4 × 1"));
  const remainder_text = `the remainder is ${"1 + ".repeat(60)}1`;
  assert.ok(!drawnOf({ ...recorded.datasetMemory, remainder_text }).includes(remainder_text));
  const shown = show("dataset_sharding", { ...recorded.datasetMemory, remainder_text });
  assert.match(textOf(shown.root), /the remainder is 1 \+ 1/);
  shown.unmount();

  const { readers, together, steps } = recorded.datasetMemory;
  const columns = columnsOf(recorded.datasetMemory, Infinity, 1);
  assert.equal(remainderOf(columns, together!.at(-1)), steps - 1);
  const even = { ...readers[0]!, readings: readers[0]!.readings.map((reading) => ({ ...reading, rows: 4 })) };
  assert.equal(remainderOf(columns, even), steps);
});

test("who waited long for a batch has a mark at it, and the time in words and in the table", async () => {
  const waits = [
    { first: 1, count: 1, passed_us: 200_000, waited_us: [900, 120_000, 100, 100] },
    { first: 4, count: 2, passed_us: 200_000, waited_us: [39_000, 100, 100, 100] },
  ];
  const progress = { ...recorded.datasetRunning.progress!, waits };
  const model = { ...recorded.datasetRunning, progress };
  const waitOf = (replica: number, step: number) => {
    const column = { first: step, last: step };
    return waitIn(waitsOf(model, [column]), replica, column);
  };
  const long = (replica: number, step: number) => isLong(waitOf(replica, step));
  assert.deepEqual([long(1, 1), long(0, 1), long(0, 4), long(1, 5)], [true, false, false, false]);
  assert.deepEqual([waitOf(-1, 1), waitOf(0, 2)], [null, null]);

  const shown = show("dataset_sharding", model);
  assert.match(textOf(shown.root.querySelector(".wb-legend")), /waited for data$/);
  const chart = shown.root.querySelector("[role=application]")!;
  for (const key of ["Home", "Home", "ArrowRight", "ArrowDown"]) {
    press(key, chart);
    await drawn();
  }
  const said = () => textOf(shown.root.querySelector("output"));
  assert.match(said(), /^replica 1 · step 1 · .* · waited 120 ms for batch 1, 60 % of the time$/);
  for (const key of ["ArrowUp", "ArrowRight", "ArrowRight", "ArrowRight"]) {
    press(key, chart);
    await drawn();
  }
  assert.match(said(), /^replica 0 · step 4 · .* · waited 39.0 ms for batches 4 to 5, 20 % of the time$/);
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"]) {
    press(key, chart);
    await drawn();
  }
  assert.match(said(), /^all replicas · step 4 · 16 rows$/);
  button(shown.root, "Table").click();
  await drawn();
  const rows = [...shown.root.querySelectorAll("[aria-label='Who reads what'] tbody tr")].map(textOf);
  assert.equal(rows.filter((row) => row.includes("120 ms")).length, 1);
  shown.unmount();

  const quiet = show("dataset_sharding", { ...model, progress: { ...progress, waits: [] } });
  assert.doesNotMatch(textOf(quiet.root.querySelector(".wb-legend")), /waited/);
  quiet.unmount();
});

/** As if no line of text had room for what replicas read. */
function shuffled(model: DatasetSharding): DatasetSharding {
  const readers = model.readers.map((reader) => ({
    ...reader,
    readings: reader.readings.map((reading) => ({ ...reading, text: "1, 4, 7, 9, and 12 more", hidden: 12 })),
  }));
  return { ...model, readers };
}

test("a click lists the elements that a line of text has no room for, until they are closed", async () => {
  const asked: unknown[] = [];
  const ask = (request: unknown) => asked.push(request);
  const model = shuffled(recorded.datasetMemory);
  const shown = show("dataset_sharding", model, { ask });
  const chart = shown.root.querySelector("[role=application]")!;
  for (const key of ["Home", "Home", "ArrowDown", "Enter"]) {
    press(key, chart);
    await drawn();
  }
  assert.deepEqual(asked, [{ kind: "list", step: 0, replica: 1 }]);
  shown.unmount();

  const listed = { step: 0, replica: 1, rows: 4, runs: ["9", "4", "7–8"], hidden: 3 };
  const again = show("dataset_sharding", { ...model, listed }, { ask });
  const list = again.root.querySelector("[aria-label='Elements of replica 1 in step 0']")!;
  assert.match(textOf(list), /4 rows, in the order in which they are read.*9, 4, 7–8.*3 more runs/);
  list.querySelector("button")!.click();
  assert.deepEqual(asked.at(-1), { kind: "list", step: -1, replica: -1 });
  again.unmount();

  const alone = show("dataset_sharding", { ...model, listed });
  assert.equal(alone.root.querySelector(".wb-listed button"), null);
  alone.unmount();
});

test("elements are listed also while replicas go through the dataset, where the click pins a step", async () => {
  const asked: { kind: string; step: number; replica: number }[] = [];
  const options = { ask: (request: unknown) => asked.push(request as never), selection: new Selection() };
  const model = shuffled(recorded.datasetRunning);
  const shown = show("dataset_sharding", model, options);
  const chart = shown.root.querySelector("[role=application]")!;
  for (const key of ["Home", "Home", "ArrowDown", "Enter"]) {
    press(key, chart);
    await settled();
  }
  assert.deepEqual(asked, [{ kind: "list", step: 0, replica: 1 }]);
  assert.ok(options.selection.now.range);

  const listed = { step: 0, replica: 1, rows: 4, runs: ["9", "4", "7–8"], hidden: 0 };
  await shown.update({ ...model, listed });
  assert.match(textOf(shown.root.querySelector(".wb-listed")), /9, 4, 7–8/);
  await shown.update(model);
  assert.equal(shown.root.querySelector(".wb-listed"), null);
  shown.unmount();
});

test("what helps is put into a notebook by whatever surrounds the view, else it is shown as code", async () => {
  const helped = {
    sentence: "Replica 3 gets no data",
    advice: "policy DATA helps",
    remedy: "data_policy",
  };
  const shown = show("dataset_sharding", { ...recorded.datasetMemory, ...helped });
  const inserted: string[] = [];
  const insert = (event: Event) => {
    inserted.push((event as CustomEvent<{ code: string }>).detail.code);
    event.preventDefault();
  };
  document.addEventListener(INSERT, insert);
  button(shown.root, "Use policy DATA →").click();
  await drawn();
  assert.match(inserted.join(), /AutoShardPolicy\.DATA\ndataset = dataset\.with_options\(options\)$/);
  assert.equal(shown.root.querySelector("code"), null);

  document.removeEventListener(INSERT, insert);
  button(shown.root, "Use policy DATA →").click();
  await drawn();
  assert.equal(textOf(shown.root.querySelector("[role=status] code")), inserted[0]!.replaceAll("\n", " "));
  shown.unmount();
});

test("an unknown remedy draws no link, whatever a saved notebook holds", () => {
  for (const remedy of ["", "import os", "constructor", "__proto__"]) {
    const helped = { sentence: "No data", advice: "this helps", remedy, remedy_code: "import os" };
    const shown = show("dataset_sharding", { ...recorded.datasetMemory, ...helped });
    assert.equal(shown.root.querySelector(".wb-link"), null);
    shown.unmount();
  }
});

test("a dataset without elements has no cell, whatever key is pressed", async () => {
  const readers = recorded.datasetMemory.readers.map((reader) => ({ ...reader, rows: 0, readings: [] }));
  const shown = show("dataset_sharding", { ...recorded.datasetMemory, readers, together: [], steps: 0 });
  const chart = shown.root.querySelector("[role=application]")!;
  for (const key of ["ArrowLeft", "ArrowRight", "End"]) {
    press(key, chart);
    await drawn();
  }
  assert.equal(textOf(shown.root.querySelector("output")), "");
  shown.unmount();
});

test("files lie above the matrix, with how many elements each has and which replicas read it", () => {
  const texts = drawnOf(recorded.datasetFiles);

  assert.deepEqual(texts.slice(0, 6), [
    ...["part-0.txt · 10", "read by replicas 0–1"],
    ...["part-1.txt · 14", "read by replicas 2–3"],
    ...["part-2.txt · 18", "read by replicas 0–1"],
  ]);
});

test("a replica without data has a row that says why, and the view begins with it", () => {
  const [reader, ...others] = recorded.datasetMemory.readers;
  const none = { ...reader!, rows: 0, nothing: "a batch of 3 has no row for it" };
  const model = {
    ...recorded.datasetMemory,
    readers: [...others, none],
    sentence: "Replica 0 gets no data: a batch of 3 has no row for it",
    advice: "larger batches help",
  };
  const texts = drawnOf(model);
  assert.ok(texts.includes("✖ a batch of 3 has no row for it: it reads nothing"));

  const shown = show("dataset_sharding", model);
  assert.match(
    textOf(shown.root.querySelector(".wb-verdict")),
    /Replica 0 gets no data: .*Larger batches help\.$/,
  );
  assert.match(
    shown.root.querySelector("[role=application]")!.getAttribute("aria-label")!,
    /Replica 0 gets no data/,
  );
  shown.unmount();
});

test("an axis that is too narrow for all numbers sums steps up, and what lies around the steps that are known", () => {
  const readings = Array.from({ length: 64 }, (_, index) => ({
    step: 668 + index,
    rows: 4,
    ranges: [],
    text: "",
  }));
  const reader: Reader = {
    ...{ replica: 0, host: 0, rows: 4000, empty_steps: 0, readings, rows_before: 2672 },
  };
  const model = { ...recorded.datasetMemory, readers: [reader], together: [], steps: 1000 };

  const columns = columnsOf(model, 500, 4);
  assert.ok(columns.length * 24 <= 500);
  assert.deepEqual(columns[0], { first: 0, last: 667 });
  assert.deepEqual(columns.at(-1), { first: 732, last: 999 });
  columns.slice(1).forEach((column, index) => assert.equal(column.first, columns[index]!.last + 1));
  assert.deepEqual(
    [columns[0], columns[1]!, columns.at(-1)!].map((column) => rowsOf(reader, column)),
    [2672, 4 * (columns[1]!.last - 667), 4000 - 2672 - 64 * 4],
  );
  assert.equal(columnsOf(model, Infinity, 4).length, 66);
  const { rows_before: _, ...older } = reader; // what lies around is not known
  const known = columnsOf({ ...model, readers: [older] }, Infinity, 4);
  assert.deepEqual([known.length, known[0], known.at(-1)!.last], [64, { first: 668, last: 668 }, 731]);

  written.length = 0;
  const shown = show("dataset_sharding", model);
  const [, steps] = /a cell: (\d) steps$/.exec(textOf(shown.root.querySelector(".wb-legend")))!;
  const line = written.slice(written.indexOf("replica 0"));
  assert.deepEqual(line.slice(1, 4), ["4,000", "2,672", String(4 * Number(steps))]);
  shown.unmount();
});

test("the table of a dataset has the numbers of the matrix, and of all replicas together", async () => {
  const shown = show("dataset_sharding", recorded.datasetMemory);
  button(shown.root, "Table").click();
  await drawn();

  const rows = [...shown.root.querySelectorAll("[aria-label='Who reads what'] tbody tr")].map((row) =>
    [...row.querySelectorAll("td")].map(textOf),
  );
  assert.deepEqual(rows[0], ["0", "0", "0", "4", recorded.datasetMemory.readers[0]!.readings[0]!.text]);
  assert.deepEqual(rows.at(-1), ["6", "all replicas", "–", "4", "–"]);
  const replicas = shown.root.querySelectorAll("[aria-label='Rows by replica'] tbody tr");
  assert.deepEqual([...replicas[3]!.querySelectorAll("td")].map(textOf), ["3", "–", "25", "–", "–"]);
  shown.unmount();
});

test("Enter in the matrix pins a step in every view of the run, and lights up the replica", async () => {
  const selection = new Selection();
  const progress = { ...recorded.datasetRunning.progress!, epoch: 2 };
  const { run_id, group, steps } = progress.sampled!;
  const shown = show("dataset_sharding", { ...recorded.datasetRunning, progress }, { selection });
  const chart = shown.root.querySelector("[role=application]")!;
  for (const key of ["ArrowRight", "Home", "Enter"]) {
    press(key, chart);
    await settled();
  }

  const first = steps[steps.length - progress.given]!;
  assert.deepEqual(selection.now.range, { of: `${run_id}|${group}`, first, last: first });
  assert.equal(selection.now.replica, 0);
  assert.match(
    textOf(shown.root.querySelector("output")),
    /pinned · replica 0 · step 0 · .* · elements as in epoch 0 · waited/,
  );
  shown.unmount();
});

test("on demand the elements that each replica reads are drawn on their axis, where they are known", async () => {
  const shown = show("dataset_sharding", recorded.datasetMemory);
  written.length = 0;
  button(shown.root, "Elements").click();
  await drawn();
  assert.equal(written.filter((text) => text === "6").length, 0); // too narrow for a number
  assert.ok(written.filter((text) => text === "5").length >= 4);
  assert.ok(!written.includes("all replicas"));

  const chart = shown.root.querySelector("[role=application]")!;
  for (const key of ["Home", "Home"]) {
    press(key, chart);
    await drawn();
  }
  assert.equal(textOf(shown.root.querySelector("output")), "replica 0 · step 0 · 4 rows: 0–3");
  shown.unmount();

  const unknown = show("dataset_sharding", { ...recorded.datasetMemory, positions: 0 });
  assert.throws(() => button(unknown.root, "Elements"));
  unknown.unmount();
});

test("a dataset that was recorded before rows were summed up is drawn without sums", () => {
  const { together: _, sentence: __, remainder_text: ___, ...old } = recorded.datasetMemory;
  const texts = drawnOf(old);

  assert.ok(texts.includes("replica 3"));
  assert.ok(!texts.includes("all replicas"));
});

test("while a dataset is gone through it is shown where each replica is, and which waited for input", async () => {
  const progress = { ...recorded.datasetRunning.progress!, steps: [3, 3, 2, 3] };
  progress.elapsed_seconds = 2;
  progress.waited_seconds = [0.1, 0.1, 0.1, 1];
  assert.equal(drawnOf({ ...recorded.datasetRunning, progress }).filter((text) => text === "now").length, 1);
  const shown = show("dataset_sharding", { ...recorded.datasetRunning, progress });

  assert.match(textOf(shown.root), /epoch 0 · 4 of 7 steps begun/);
  assert.match(textOf(shown.root), /▲ waited for input 5 % to 50 % of the time/);
  assert.match(textOf(shown.root.querySelector(".wb-legend")), /readto comepart of a batch/);

  const chart = shown.root.querySelector("[role=application]")!;
  for (const key of ["Home", "Home", "ArrowRight", "ArrowRight", "ArrowRight"]) {
    press(key, chart);
    await drawn();
  }
  assert.match(textOf(shown.root.querySelector("output")), /^replica 0 · step 3 · .* · is here$/);
  button(shown.root, "Table").click();
  await settled();
  const twin = shown.root.querySelector("[role=grid]")!;
  assert.deepEqual([...twin.querySelectorAll("tbody tr:last-child td")].map(textOf), [
    "3",
    "3",
    "25",
    "1.00 s",
    "50 %",
  ]);
  shown.unmount();
});
